"""Laws of the Zarr v2 document: what is written is read as the same, for any type, fill value and settings."""
import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zcore.formats import format_of
from zcore.model.fill_value import fill_scalar

zarr_v2 = format_of(2)

numbers = st.sampled_from(["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"])
flexible = st.builds(str.__add__, st.sampled_from("SV"), st.integers(1, 300).map(str))
dates = st.builds("{}8[{}]".format, st.sampled_from("mM"), st.sampled_from(["D", "s", "25m", "ns", "as"]))
simple_types = st.builds(
    lambda text, order: np.dtype(text).newbyteorder(order), numbers | flexible | dates, st.sampled_from("<>")
)


@st.composite
def structures(draw, parts):
    labels = draw(st.lists(st.text("abcé_", min_size=1, max_size=3), min_size=1, max_size=3, unique=True))
    return np.dtype([(label, draw(parts), tuple(draw(st.lists(st.integers(1, 3), max_size=2)))) for label in labels])


types = st.recursive(simple_types, structures, max_leaves=4)
filters = st.lists(st.sampled_from([
    {"id": "crc32"}, {"id": "shuffle", "elementsize": 4}, {"id": "zlib", "level": 1}, {"id": "other", "a": [1, None]},
    {"id": "adler32", "location": "end"},
]), max_size=3)
compressors = st.none() | st.sampled_from([
    {"id": "zlib", "level": 3}, {"id": "zstd", "level": 1, "checksum": False}, {"id": "blosc", "shuffle": -1},
    {"id": "gzip", "level": -1}, {"id": "blosc", "cname": "zstd", "clevel": 9, "shuffle": 2, "blocksize": 256},
])


@st.composite
def arrays(draw):
    dtype = draw(types)
    shape = draw(st.lists(st.integers(0, 2**15), max_size=4))
    chunks = [draw(st.integers(1, 16)) for _ in shape]
    raw = draw(st.none() | st.binary(min_size=dtype.itemsize, max_size=dtype.itemsize))
    if raw is not None and dtype.kind == "b":
        raw = bytes([raw[0] & 1])
    return zarr_v2.new_array(
        shape, dtype, chunks, None if raw is None else fill_scalar(dtype, raw), order=draw(st.sampled_from("CF")),
        filters=draw(filters), compressors=draw(compressors), chunk_key_encoding=draw(st.sampled_from("./")),
    ).replace(extra=draw(st.dictionaries(st.text(max_size=3), st.lists(st.integers()), max_size=2)))


@given(arrays())
def test_document_is_the_same_after_writing_and_reading(array):
    """V2-ARR-01, V2-ARR-09, V2-ARR-10, V2-DT-01, V2-ST-01, V2-FV-02 to V2-FV-09"""
    raw = zarr_v2.render_array(array)
    back = zarr_v2.parse_array(raw, "a")
    assert back == array and back.fill_bytes == array.fill_bytes
    assert zarr_v2.render_array(back) == raw
    json.loads(raw, parse_constant=lambda token: (_ for _ in ()).throw(AssertionError(token)))
