"""Laws of the `__zmeta__` document: what is written is read as the same, for any type, fill value and settings."""
import json
import string

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zcore.blosc import COMPRESSORS
from zcore.formats import format_of
from zcore.model.dtypes import from_descr, to_descr
from zcore.model.fill_value import fill_scalar

zmeta = format_of("zmeta")

UNITS = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "25s", "10ns"]

numbers = st.sampled_from(["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"])
flexible = st.builds(str.__add__, st.sampled_from("SUV"), st.integers(1, 400).map(str))
dates = st.builds("{}8[{}]".format, st.sampled_from("mM"), st.sampled_from(UNITS))
simple_types = st.builds(
    lambda text, order: np.dtype(text).newbyteorder(order), numbers | flexible | dates, st.sampled_from("<>")
)
names = st.text(string.ascii_letters + "é _", min_size=1, max_size=4)


@st.composite
def structures(draw, parts):
    labels = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    formats, offsets, end = [], [], 0
    for _ in labels:
        base = draw(parts)
        shape = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
        end += draw(st.integers(0, 3))
        formats.append((base, shape) if shape else base)
        offsets.append(end)
        end += np.dtype(formats[-1]).itemsize
    titles = [draw(st.none() | st.just(f"title of {i}")) for i in range(len(labels))]
    return np.dtype({
        "names": labels, "formats": formats, "offsets": offsets, "titles": titles,
        "itemsize": end + draw(st.integers(0, 3)),
    })


types = st.recursive(simple_types, structures, max_leaves=4)


@st.composite
def arrays(draw):
    dtype = draw(types)
    shape = draw(st.lists(st.integers(0, 2**15), min_size=1, max_size=4))
    chunks = [draw(st.integers(1, 16)) for _ in shape]
    if dtype.names is not None:
        fill_value = draw(st.sampled_from([None, 0]))
    elif dtype.kind in "SV":
        ascii_bytes = st.binary(max_size=dtype.itemsize).map(lambda raw: bytes(byte & 0x7F for byte in raw))
        fill_value = draw(st.none() | ascii_bytes)
    elif dtype.kind == "U":
        fill_value = draw(st.none() | st.text(max_size=dtype.itemsize // 4))
    elif dtype.kind == "b":
        fill_value = draw(st.none() | st.booleans())
    else:
        raw = draw(st.binary(min_size=dtype.itemsize, max_size=dtype.itemsize))
        fill_value = draw(st.none() | st.just(fill_scalar(dtype, raw)))
    return zmeta.new_array(
        shape, dtype, chunks, fill_value, cname=draw(st.sampled_from(COMPRESSORS)),
        clevel=draw(st.integers(0, 9)), shuffle=draw(st.integers(0, 2)),
    ).replace(extra=draw(st.dictionaries(st.text(max_size=3), st.lists(st.integers()), max_size=2)))


@given(types)
def test_type_is_the_same_after_writing_and_reading(dtype):
    """ZM-META-04, ZM-META-06"""
    descr = to_descr(dtype)
    back = from_descr(json.loads(json.dumps(descr)))
    assert back == dtype and back.itemsize == dtype.itemsize and back.fields == dtype.fields
    assert to_descr(back) == descr


@given(types)
def test_descr_is_numpys_own(dtype):
    """Arrays of the time hold `dtype.descr`, or `dtype.str` without fields."""
    def listed(part):
        return [listed(item) for item in part] if isinstance(part, (list, tuple)) else part

    assert to_descr(dtype) == (dtype.str if dtype.names is None else listed(dtype.descr))


@given(arrays())
def test_document_is_the_same_after_writing_and_reading(array):
    """ZM-META-01, ZM-META-14"""
    raw = zmeta.render_array(array)
    back = zmeta.parse_array(raw, "a")
    assert back == array and back.fill_bytes == array.fill_bytes
    assert zmeta.render_array(back) == raw
    json.loads(raw, parse_constant=lambda token: (_ for _ in ()).throw(AssertionError(token)))


@given(st.dictionaries(st.text(), st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children), max_leaves=10,
)))
def test_attributes_are_the_same_after_writing_and_reading(attributes):
    """ZM-ATTR-01, ZM-ATTR-03"""
    assert zmeta.parse_attributes(zmeta.render_attributes(attributes), "a") == attributes
