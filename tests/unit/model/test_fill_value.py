"""Fill values: the bytes that `ndarray.fill` stores, numbers refused that would change, numbers in JSON."""
import math
import re
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zcore
from tests.each import each
from zcore.model.fill_value import fill_bytes, fill_scalar, real_from_json, real_to_json

STRUCT = np.dtype([("i", ">i4"), ("s", "S3"), ("n", [("f", "<f4"), ("u", "<U2")], (2,)), ("t", "<M8[D]")])


@each(("dtype", "value"), [
    ("?", 0), ("?", 1), ("?", True), ("i1", -128), ("u1", 255), (">i2", 258), ("<u8", 2**64 - 1), ("<i8", -2**63),
    ("<i4", True), ("<f2", 1.5), (">f4", 0.1), ("<f8", -0.0), ("<f8", math.inf), ("<f4", 7), ("<f8", 2**70),
    ("<c8", 1.5 - 2j), (">c16", 3), ("S10", 0), ("S3", 1.5), ("S4", True), ("S3", math.nan), ("U5", 0), (">U5", "é€😀"),
    ("U2", "\ud800"), ("S3", "ab"), ("S3", b"ab"), ("S2", "\0a"), ("<M8[D]", 0), (">m8[s]", -5), ("<M8[ns]", "NaT"),
    ("<m8[25s]", "NaT"), ("<M8[s]", "2016-01-02T03:04"), ("<M8[D]", np.datetime64("2016-01-02T00", "h")),
    ("<m8[s]", np.timedelta64(2, "m")), ("<i4", np.int64(7)), ("<f4", np.float64(1.5)), ("V3", b"abc"), ("?", np.True_),
    (STRUCT, 0), (STRUCT, 1),
])
def test_bytes_are_those_of_fill(dtype, value):
    """ZM-META-10, and 0 on text is the character "0"."""
    dtype = np.dtype(dtype)
    filled = np.zeros((), dtype)
    filled.fill(value)
    assert fill_bytes(dtype, value) == filled.tobytes()


@each(("dtype", "value", "expected"), [
    ("<i4", None, b"\0\0\0\0"), ("S2", None, b"\0\0"), ("V3", 0, b"\0\0\0"), ("V3", "ab", b"ab\0"),
    ("<i4", 5.0, b"\5\0\0\0"), ("<f8", "NaN", struct.pack("<d", math.nan)),
    ("<f4", "-Infinity", struct.pack("<f", -math.inf)),
    ("<c8", "NaN", struct.pack("<ff", math.nan, 0)), ("S2", "", b"\0\0"), ("<M8[s]", "NaT", b"\0" * 7 + b"\x80"),
    (np.dtype([("v", "V2"), ("i", "u1")]), 0, b"\0\0\0"),
])
def test_bytes_where_fill_of_numpy_says_nothing(dtype, value, expected):
    assert fill_bytes(np.dtype(dtype), value) == expected


@each(("dtype", "value"), [
    ("?", 2), ("?", "true"), ("?", 0.5), ("i1", 128), ("i1", -129), ("u1", -1), ("u8", 2**64), ("i8", 2**63),
    ("i4", 1.5),
    ("i4", math.nan), ("i4", math.inf), ("i4", "1"), ("i4", b"1"), ("i4", 1j), ("f4", 1e39), ("f2", 65520.0),
    ("f8", 10**400),
    ("f4", "1.5"), ("f4", "nan"), ("f4", "+Infinity"), ("f4", 1j), ("c8", 1e39), ("c8", "x"), ("c8", b""), ("S3", "é"),
    ("S3", "abcd"), ("S3", b"abcd"), ("S1", 10), ("U2", "abc"), ("U2", b"a"), ("M8[D]", 2**63), ("M8[D]", 1.0),
    ("M8[D]", True), ("M8[D]", "now"), ("M8[D]", "today"), ("M8[D]", ""), ("M8[D]", "2016-13-01"), ("m8[s]", "5"),
    ("M8[D]", "2016-01-02T10"), ("M8[as]", "2016-01-01"), ("M8[as]", "2016-01-01T00:00:00.123456789012345678"),
    ("M8[D]", "2016-01-01Z"), ("m8[s]", np.datetime64(0, "s")),
    ("m8[s]", np.timedelta64(1, "ms")), ("V2", 1), ("V2", b"abc"), ("V2", 0.0), ("V2", np.void(b"abc")), ("i4", [1]),
    ("i4", {}),
    ("i4", object()), (STRUCT, math.nan), (STRUCT, "x"), (STRUCT, (1, 2)), (STRUCT, 2**31), ("S2", object()),
    ("f8", []),
])
def test_value_that_the_type_does_not_hold_is_refused(dtype, value):
    """ZM-META-07: out of range, fractions, text that is too long or not text of the type."""
    with pytest.raises(ValueError):
        fill_bytes(np.dtype(dtype), value)


@pytest.mark.parametrize(("dtype", "value"), [
    ("S3", "abcdef"), ("U2", "abcdef"), ("S2", 12345), (">U1", 10), ("S2", True),
])
def test_long_text_is_cut_on_request_as_fill_does(dtype, value):
    filled = np.zeros((), dtype)
    filled.fill(value)
    assert fill_bytes(np.dtype(dtype), value, cut_text=True) == filled.tobytes()


def test_fields_take_a_tuple_or_a_void():
    value = np.zeros((), STRUCT)[()]
    value["i"], value["s"], value["n"]["u"][1], value["t"] = 7, b"x", "ab", "NaT"
    assert fill_bytes(STRUCT, value) == value.tobytes()
    assert fill_bytes(STRUCT, tuple(value)) == value.tobytes()
    other = np.dtype([("i", "<i8"), ("s", "S5"), ("n", STRUCT["n"]), ("t", "<M8[h]")])
    assert fill_bytes(STRUCT, value.astype(other)) == value.tobytes()


def test_padding_of_fields_is_zero():
    dtype = np.dtype({"names": ["a"], "formats": ["u1"], "offsets": [2], "itemsize": 5})
    assert fill_bytes(dtype, 255) == b"\0\0\xff\0\0"


@each("dtype", ["<f2", ">f2", "<f4", ">f4", "<f8", ">f8", ">c8"])
def test_payload_of_a_nan_and_sign_of_zero_survive(dtype):
    dtype = np.dtype(dtype)
    for raw in (bytes(range(0x71, 0x71 + dtype.itemsize)), struct.pack(">f", -0.0)[:2].ljust(dtype.itemsize, b"\xff")):
        assert fill_bytes(dtype, fill_scalar(dtype, raw)) == raw


def test_scalar_reads_the_stored_order():
    assert fill_scalar(np.dtype(">i2"), b"\1\2") == 258
    assert fill_scalar(np.dtype("S3"), b"ab\0") == b"ab"
    assert fill_scalar(np.dtype("<M8[D]"), bytes(8)) == np.datetime64("1970-01-01")
    assert fill_scalar(STRUCT, bytes(STRUCT.itemsize))["s"] == b""


@each("value", [True, None, "nan", "inf", "+Infinity", "1", [], {}, [1.0]])
def test_json_that_is_no_real_is_refused(value):
    with pytest.raises(ValueError, match="expected a number"):
        real_from_json(value)


@each(("value", "text"), [
    (np.float32("nan"), "NaN"), (np.float64("inf"), "Infinity"), (np.float16("-inf"), "-Infinity"),
    (np.float32(0.1), 0.1), (np.float64(0.1), 0.1), (np.float16(65504), 65500.0), (np.float32(1e-45), 1e-45),
])
def test_real_in_json_is_short_or_a_string(value, text):
    """ZM-META-08"""
    assert real_to_json(value) == text


@given(st.sampled_from([np.float16, np.float32, np.float64]), st.data())
def test_real_in_json_reads_back_bit_for_bit(kind, data):
    value = kind(data.draw(st.floats(width=np.dtype(kind).itemsize * 8, allow_nan=False)))
    back = kind(real_from_json(real_to_json(value)))
    assert back.tobytes() == value.tobytes()


def test_array_of_no_dimensions_is_its_element():
    assert fill_bytes(np.dtype(">i2"), np.array(258)) == b"\1\2"


def test_field_with_a_shape_takes_an_array_of_it():
    dtype = np.dtype([("m", "<i2", (2, 2)), ("u", "u1")])
    assert fill_bytes(dtype, ([[1, 2], [3, 4]], 5)) == b"\1\0\2\0\3\0\4\0\5"
    for wrong in ([[1, 2, 3]], [["x", 0], [0, 0]], [[2**15, 0], [0, 0]]):
        with pytest.raises(ValueError, match="cannot hold"):
            fill_bytes(dtype, (wrong, 5))


STRUCTURE = [("a", "<i4"), ("b", "<f4")]


@pytest.mark.parametrize("zarr_format", [3, 2, "zmeta"])
@pytest.mark.parametrize(("dtype", "value"), [
    ("i4", "abc"), ("i4", 2**200), ("f4", 1e300), ("f4", "abc"), ("M8[s]", "abc"), ("S3", "abcd"),
    (STRUCTURE, (1, 2, 3)), (STRUCTURE, {"a": 1}), (str, 5), ("U3", float("nan"))])
def test_a_wrong_argument_is_named(zarr_format, dtype, value):
    if (dtype, zarr_format) == (str, "zmeta"):
        return     # it has no such type
    shown = "an integer beyond 2**128" if value == 2**200 else repr(value)
    of = "StringDType()" if dtype is str else str(np.dtype(dtype))
    with pytest.raises(ValueError, match=re.escape(f"fill_value is {shown} for the dtype {of}: ")):
        zcore.create_array(zcore.MemoryStore(), shape=4, dtype=dtype, fill_value=value, zarr_format=zarr_format)


def test_a_wrong_argument_of_objects_is_named():
    with pytest.raises(TypeError, match="^fill_value is {'a'} for the dtype object: .* of type set is no JSON value"):
        zcore.create_array(zcore.MemoryStore(), shape=4, dtype="O", fill_value={"a"}, zarr_format=2,
                           filters=[{"id": "json2"}])
