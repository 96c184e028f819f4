"""Fill values of Zarr v3: every encoding of the data types page, to the bit, and what breaks its rules."""
import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.each import each
from zcore.errors import MetadataError
from zcore.formats import format_of
from zcore.formats.zarr_v3.dtypes import render_data_type
from zcore.formats.zarr_v3.fill import parse_fill, render_fill

zarr_v3 = format_of(3)


def through(dtype, text, name=None):
    """Return the bytes that a JSON text stands for, and the JSON text that is written for them."""
    dtype = np.dtype(dtype)
    value, raw = parse_fill(dtype, json.loads(text))
    return raw, json.dumps(render_fill(dtype, value, raw, name or render_data_type(dtype)))


@each(("dtype", "text", "raw"), [
    # V3-FV-01, V3-FV-02
    ("?", "true", b"\1"), ("?", "false", b"\0"), ("i1", "-128", b"\x80"), (">i2", "-2", b"\xff\xfe"),
    ("<u8", "18446744073709551615", b"\xff" * 8), ("<i8", "-9223372036854775808", b"\0" * 7 + b"\x80"),
    ("<u8", "9007199254740993", struct.pack("<Q", 2**53 + 1)),
    # V3-FV-03, V3-FV-06
    ("<f4", "0.1", struct.pack("<f", 0.1)), ("<f8", "-0.0", struct.pack("<d", -0.0)), (">f2", "1.5", b"\x3e\x00"),
    ("<f4", '"NaN"', b"\x00\x00\xc0\x7f"), ("<f8", '"Infinity"', struct.pack("<d", float("inf"))),
    (">f4", '"-Infinity"', struct.pack(">f", float("-inf"))), ("<f8", "5e-324", b"\1" + b"\0" * 7),
    # V3-FV-04, V3-FV-05: payloads, signalling and negative NaN
    ("<f4", '"0x7fc00001"', b"\x01\x00\xc0\x7f"), (">f4", '"0x7fa00000"', b"\x7f\xa0\x00\x00"),
    ("<f2", '"0xfe00"', b"\x00\xfe"), ("<f8", '"0xfff8000000000000"', b"\0" * 6 + b"\xf8\xff"),
    ("<f8", '"0x7ff0000000000001"', b"\1" + b"\0" * 5 + b"\xf0\x7f"),
    # V3-FV-08
    ("<c8", '["-Infinity", "NaN"]', struct.pack("<f", float("-inf")) + b"\x00\x00\xc0\x7f"),
    (">c16", '[-0.0, "0x7ff0000000000001"]', struct.pack(">d", -0.0) + b"\x7f\xf0" + b"\0" * 5 + b"\1"),
    # V3-XDT-03, V3-XDT-04, V3-XDT-07
    ("<U3", '"é"', "é\0\0".encode("utf-32-le")), (">U2", '"ab"', "ab".encode("utf-32-be")),
    ("<M8[s]", "-9223372036854775808", b"\0" * 7 + b"\x80"), (">m8[D]", "5", struct.pack(">q", 5)),
    ("S3", '"YWI="', b"ab\0"), ("V2", '"AAE="', b"\0\1"),
])
def test_value_keeps_its_bits(dtype, text, raw):
    """V3-FV-01, V3-FV-02, V3-FV-03, V3-FV-04, V3-FV-05, V3-FV-06, V3-FV-08, V3-XDT-03, V3-XDT-04, V3-XDT-07"""
    assert through(dtype, text) == (raw, json.dumps(json.loads(text)))


@each(("dtype", "text", "written"), [
    ("<f4", '"0x7fc00000"', '"NaN"'), ("<f2", '"0x7E00"', '"NaN"'), ("<f8", '"0x7ff8000000000000"', '"NaN"'),
    ("<f4", '"0x3f800000"', "1.0"), ("<f4", '"0x7f800000"', '"Infinity"'), ("<f8", "1", "1.0"),
    ("<f4", "0.10000000149011612", "0.1"), ("<f2", "0.0999755859375", "0.1"), ("<M8[s]", '"NaT"', str(-2**63)),
    ("<f4", "16777217", "16777216.0"), ("<f8", "9007199254740993", "9007199254740992.0"), ("<f4", "1e-60", "0.0"),
])
def test_value_is_written_in_one_form(dtype, text, written):
    """V3-FV-03, V3-FV-04, V3-FV-05, V3-PY-06"""
    assert through(dtype, text)[1] == written


def test_raw_bits_are_a_list_and_raw_bytes_base64():
    """V3-FV-09, V3-XDT-07: either form is read for either name."""
    for text in ("[0, 255, 7]", '"AP8H"'):
        assert through("V3", text, "r24") == (b"\0\xff\7", "[0, 255, 7]")
        assert through("V3", text) == (b"\0\xff\7", '"AP8H"')


def test_values_of_varying_length():
    """V3-XDT-01, V3-XDT-02, V3-PY-03"""
    assert parse_fill(np.dtypes.StringDType(), "é😀") == ("é😀", b"")
    assert parse_fill(np.dtype(object), "AP8=") == parse_fill(np.dtype(object), [0, 255]) == (b"\0\xff", b"")
    assert render_fill(np.dtype(object), b"\0\xff", b"", "bytes") == "AP8="
    assert render_fill(np.dtypes.StringDType(), "é", b"", "string") == "é"


RECORD = np.dtype([("a", ">i2"), ("b", [("c", ">f4"), ("d", "S2")])])


def test_structure_has_every_field():
    """V3-XDT-05"""
    text = '{"a": 258, "b": {"c": "0x7fc00001", "d": "eA=="}}'
    assert through(RECORD, text) == (b"\1\2\x7f\xc0\0\1x\0", text)


def test_structure_in_base64_is_read():
    """V3-XDT-06"""
    raw, text = through(RECORD, '"AQJ/wAABeAA="')
    assert raw == b"\1\2\x7f\xc0\0\1x\0" and text.startswith('{"a": 258')


@each(("data_type", "text"), [
    # V3-FV-01, V3-FV-02, V3-PY-04
    ("bool", "1.0"), ("bool", "null"), ("int32", "1.5"), ("uint64", "1e17"), ("int32", '"1"'), ("int32", "true"),
    ("int32", "null"),
    # V3-FV-03, V3-FV-07
    ("float64", '"1.5"'), ("float64", "true"), ("float64", "null"), ("int64", "-Infinity"),
    # V3-FV-04
    ("float32", '"0x7fc0"'), ("float32", '"0x7ff8000000000000"'), ("float32", '"0x7fc0000g"'), ("float32", '"0x"'),
    ("float32", '"0X7fc00000"'), ("float32", '"7fc00000"'), ("float32", '"0x 7fc0000"'), ("float32", '"0x-fc00000"'),
    # V3-FV-08
    ("complex64", "1.0"), ("complex64", '"NaN"'), ("complex64", '["0x7ff8000000000000", 0]'),
    # V3-FV-09
    ("r16", "[0]"), ("r16", "[0, 256]"), ("r16", "[0, -1]"), ("r16", "[0, true]"), ("r16", "0"), ("r16", '"AA=="'),
    # V3-XDT-01 to V3-XDT-04, V3-XDT-07
    ("string", "0"), ("string", "null"), ("string", '"\\ud800"'), ("bytes", '"A"'), ("bytes", '"AA=\\n="'),
    ("bytes", '"_-=="'), ("bytes", "[256]"), ("bytes", "0"), ("bytes", "[1.0]"), ("bytes", '"AA==x"'),
    ({"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}, '"abc"'),
    ({"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}, "0"),
    ({"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}, '"2020-01-01"'),
    ({"name": "null_terminated_bytes", "configuration": {"length_bytes": 2}}, '"YWJj"'),
    ({"name": "raw_bytes", "configuration": {"length_bytes": 2}}, '"YQ=="'),
    # V3-XDT-05
    ({"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "int8"}]}}, '{"a": 1, "b": 1}'),
    ({"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "int8"}]}}, '{"a": 200}'),
    ({"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "int8"}]}}, '"AAA="'),
])
def test_value_that_the_type_does_not_have_is_refused(data_type, text):
    """V3-META-07, V3-FV-01, V3-FV-02, V3-FV-03, V3-FV-04, V3-FV-07, V3-FV-08, V3-FV-09, V3-PY-04, V3-XDT-05"""
    serializer = {"string": "vlen-utf8", "bytes": "vlen-bytes"}.get(data_type if type(data_type) is str else "")
    codec = {"name": serializer} if serializer else {"name": "bytes", "configuration": {"endian": "little"}}
    raw = json.dumps({
        "zarr_format": 3, "node_type": "array", "shape": [1], "data_type": data_type, "fill_value": "FILL",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}}, "chunk_key_encoding": "default",
        "codecs": [codec],
    }).replace('"FILL"', text).encode()
    with pytest.raises(MetadataError) as caught:
        zarr_v3.completed(zarr_v3.parse_array(raw, "x"), True)
    assert str(caught.value).startswith(("x/zarr.json: member 'fill_value': ", "x/zarr.json: expected JSON",
                                         "member 'fill_value': "))
    assert len(str(caught.value)) < 400


@given(st.sampled_from(["f2", "f4", "f8", "c8", "c16", "i8", "u8", "V9", "M8[us]"]), st.sampled_from("<>"), st.data())
def test_any_bits_survive(code, order, data):
    """V3-FV-02, V3-FV-04, V3-FV-05, V3-FV-06"""
    dtype = np.dtype(code).newbyteorder(order)
    raw = data.draw(st.binary(min_size=dtype.itemsize, max_size=dtype.itemsize))
    text = json.dumps(render_fill(dtype, None, raw, render_data_type(dtype)), allow_nan=False)
    assert parse_fill(dtype, json.loads(text))[1] == raw


@given(st.sampled_from(["<f2", "<f4", ">f8"]), st.floats(width=16))
def test_numbers_are_compared_by_their_bytes(code, number):
    """V3-FV-06, V3-FV-10: -0.0 is another fill value than 0.0, and NaN is itself."""
    array = zarr_v3.new_array((4,), code, (2,), number)
    back = zarr_v3.parse_array(zarr_v3.render_array(array), "x")
    assert back == array
    if number == 0:
        assert back != array.replace(fill_value=-number)
