"""Data types of Zarr v3: names to NumPy types and back, what a caller may name, and what is refused."""
import sys

import numpy as np
import pytest

from tests.each import each
from zcore.errors import UnsupportedError
from zcore.formats.zarr_v3.dtypes import named_dtype, packed, parse_data_type, render_data_type, stored_byte_order


def named(name, **configuration):
    return {"name": name, "configuration": configuration}


def struct(*fields, name="struct"):
    return named(name, fields=[{"name": label, "data_type": data_type} for label, data_type in fields])


TYPES = [
    # V3-DT-01 to V3-DT-04
    ("bool", "|b1"), ("int8", "|i1"), ("int16", "<i2"), ("int32", "<i4"), ("int64", "<i8"), ("uint8", "|u1"),
    ("uint16", "<u2"), ("uint32", "<u4"), ("uint64", "<u8"), ("float16", "<f2"), ("float32", "<f4"),
    ("float64", "<f8"), ("complex64", "<c8"), ("complex128", "<c16"),
    # V3-XDT-03, V3-XDT-04, V3-XDT-07
    (named("fixed_length_utf32", length_bytes=20), "<U5"), (named("null_terminated_bytes", length_bytes=3), "|S3"),
    (named("raw_bytes", length_bytes=300), "|V300"), (named("numpy.datetime64", unit="ns", scale_factor=1), "<M8[ns]"),
    (named("numpy.datetime64", unit="s", scale_factor=25), "<M8[25s]"),
    (named("numpy.timedelta64", unit="generic", scale_factor=1), "<m8"),
    (named("numpy.datetime64", unit="generic", scale_factor=1), "<M8"),
    (named("numpy.timedelta64", unit="Y", scale_factor=2**31 - 1), "<m8[2147483647Y]"),
    # V3-XDT-05
    (struct(("a", "int8"), ("b", struct(("c", "float64"), ("d", named("raw_bytes", length_bytes=3))))),
     [("a", "i1"), ("b", [("c", "<f8"), ("d", "V3")])]),
]


@each(("name", "dtype"), TYPES)
def test_name_and_type(name, dtype):
    """V3-DT-01, V3-DT-02, V3-DT-03, V3-DT-04, V3-XDT-03, V3-XDT-04, V3-XDT-05, V3-XDT-07"""
    dtype = np.dtype(dtype)
    assert parse_data_type(name, "<") == (dtype, name) and render_data_type(dtype) == name
    swapped, _ = parse_data_type(name, ">")
    assert swapped == dtype.newbyteorder(">") and render_data_type(swapped) == name
    assert stored_byte_order(swapped) == (">" if stored_byte_order(dtype) else None)


@each(("name", "dtype"), [
    ("r8", "V1"), ("r16", "V2"), ("r1024", "V128"), ("complex_float32", "<c8"), ("complex_float64", "<c16"),
    (named("numpy.datetime64", unit="μs", scale_factor=1), "<M8[us]"), ("binary", object),
    ("variable_length_bytes", object), ("bytes", object),
])
def test_other_names_of_a_type(name, dtype):
    """V3-DT-05, V3-XDT-02, V3-XDT-04, V3-XDT-09"""
    assert parse_data_type(name, "<") == (np.dtype(dtype), name)


def test_text_of_varying_length():
    """V3-XDT-01"""
    assert parse_data_type("string", "<") == (np.dtypes.StringDType(), "string")
    assert render_data_type(np.dtypes.StringDType()) == "string" and render_data_type(np.dtype(object)) == "bytes"


@each("value", [
    "r", "r0", "r12", "r08", "r016",                                                              # V3-DT-05
    named("fixed_length_utf32", length_bytes=0), named("fixed_length_utf32", length_bytes=6),     # V3-XDT-03
    named("fixed_length_utf32", length_bytes=4.0), named("fixed_length_utf32"), "fixed_length_utf32",
    named("raw_bytes", length_bytes=0), named("raw_bytes", length_bytes=-1), named("raw_bytes", length_bytes=True),
    named("null_terminated_bytes", length_bytes="3"), named("null_terminated_bytes", length_bytes=3, x=1),
    named("null_terminated_bytes", length_bytes=10**4000),
    named("numpy.datetime64", unit="ns"), named("numpy.datetime64", scale_factor=1), "numpy.datetime64",  # V3-XDT-04
    named("numpy.datetime64", unit="min", scale_factor=1), named("numpy.datetime64", unit=1, scale_factor=1),
    named("numpy.datetime64", unit="s", scale_factor=0), named("numpy.datetime64", unit="s", scale_factor=2**31),
    named("numpy.datetime64", unit="s", scale_factor=1.0), named("numpy.datetime64", unit="s", scale_factor=1, x=1),
    named("numpy.timedelta64", unit="generic", scale_factor=2), named("numpy.datetime64", unit=["s"], scale_factor=1),
    struct(), named("struct"), "struct", named("struct", fields={}), named("struct", fields=None),  # V3-XDT-05
    struct(("a", "int8"), ("a", "int8")), struct(("", "int8")), struct((1, "int8")), struct(("a", "string")),
    struct(("a", struct(("b", "bytes")))), struct(("a", None)), named("struct", fields=[["a", "int8"]]),
    named("struct", fields=[{"name": "a", "data_type": "int8", "offset": 0}]), named("struct", fields=[{"name": "a"}]),
    named("structured", fields=[["a", "int8", [2]]]), named("structured", fields=["a"]),
    named("float64", endian="little"), {"name": "float64", "x": 1}, None, 1, [], {},
])
def test_name_that_breaks_a_rule(value):
    """V3-DT-05, V3-XDT-03, V3-XDT-04, V3-XDT-05, V3-EXT-05"""
    with pytest.raises(ValueError) as caught:
        parse_data_type(value, "<")
    assert len(str(caught.value)) < 400


@each("value", [
    "complex_float4_e2m1fn", "complex_float6_e2m3fn", "complex_float6_e3m2fn", "complex_float8_e3m4",
    "complex_float8_e4m3", "complex_float8_e4m3b11fnuz", "complex_float8_e4m3fnuz", "complex_float8_e5m2",
    "complex_float8_e5m2fnuz", "complex_float8_e8m0fnu",
    "<f8", "f8", "float128", "Float64", " float64", "object", "", "rx", "structured2", named("raw", length_bytes=1),
    "https://example.org/x", "r999999999992", named("raw_bytes", length_bytes=2**24 + 1),
    struct(("a", named("raw_bytes", length_bytes=2**24)), ("b", "int8")), "x" * 10000,
])
def test_unknown_type_is_named(value):
    """V3-DT-06, V3-EXT-02, V3-EXT-08"""
    with pytest.raises(UnsupportedError) as caught:
        parse_data_type(value, "<")
    assert caught.value.feature and len(str(caught.value)) < 200


@each("dtype", [np.longdouble, np.clongdouble, [("a", "<i4", (2,))], "S0", "U0", "V0"])
def test_type_without_a_name(dtype):
    with pytest.raises(UnsupportedError):
        render_data_type(np.dtype(dtype))


@pytest.mark.parametrize("dtype", [
    {"names": ["a", "b"], "formats": ["i1", "<i4"], "offsets": [0, 4], "itemsize": 8},
    {"names": ["a"], "formats": ["i1"], "itemsize": 2}, [(("title", "a"), "i1")],
    {"names": ["a", "b"], "formats": ["i1", "i1"], "offsets": [1, 0]}, [("a", "<i4"), ("b", ">i4")],
])
def test_structure_that_is_not_packed_cannot_be_written(dtype):
    """V3-XDT-05"""
    with pytest.raises(ValueError):
        render_data_type(np.dtype(dtype))


def test_structure_of_a_caller_is_packed():
    """V3-XDT-05: without padding, in one byte order."""
    padded = np.dtype({"names": ["a", "b"], "formats": ["i1", ">i4"], "offsets": [0, 4], "itemsize": 8})
    assert named_dtype(padded)[0] == np.dtype([("a", "i1"), ("b", ">i4")])
    mixed = [("a", "<i4"), ("b", [("c", ">f8"), ("d", "S2")])]
    assert named_dtype(mixed)[0] == np.dtype([("a", "<i4"), ("b", [("c", "<f8"), ("d", "S2")])])
    assert packed(np.dtype(mixed), ">") == np.dtype([("a", ">i4"), ("b", [("c", ">f8"), ("d", "S2")])])
    with pytest.raises(ValueError, match="title"):
        named_dtype([(("title", "a"), "i1")])


@each(("given", "dtype", "name"), [
    (str, np.dtypes.StringDType(), None), ("string", np.dtypes.StringDType(), "string"),
    (bytes, np.dtype(object), None),
    (np.dtypes.StringDType(na_object=None), np.dtypes.StringDType(), None), ("bytes", np.dtype(object), "bytes"),
    ("float32", np.dtype("f4"), "float32"), (">i4", np.dtype(">i4"), None), (float, np.dtype("f8"), None),
    ("r16", np.dtype("V2"), "r16"), ("M8[ns]", np.dtype("M8[ns]"), None), (np.uint8, np.dtype("u1"), None),
    ({"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}, np.dtype("U2"),
     {"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}),
])
def test_what_a_caller_may_name(given, dtype, name):
    assert named_dtype(given) == (dtype, name)


def test_what_a_caller_may_not_name():
    for given in (object, "O", "U", "S", "V", [("a", "O")]):
        with pytest.raises(ValueError, match="objects are no data type|items of no bytes"):
            named_dtype(given)
    with pytest.raises(TypeError):
        named_dtype("nonsense")


@each("name", [
    "bfloat16", "int2", "int4", "uint2", "uint4", "float8_e4m3", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn",
    "complex_bfloat16",
])
def test_types_of_ml_dtypes(name):
    """V3-XDT-08, V3-XDT-09, V3-XDT-10, V3-TIER-3"""
    pytest.importorskip("ml_dtypes", minversion="0.6")
    dtype, kept = parse_data_type(name, "<")
    assert kept == name == render_data_type(dtype)
    assert stored_byte_order(dtype) == (None if dtype.itemsize == 1 else "<")
    if name == "bfloat16":
        assert stored_byte_order(parse_data_type(name, ">")[0]) == ">"


def test_package_that_is_missing_is_named(monkeypatch):
    """V3-XDT-10, V3-TIER-3"""
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(UnsupportedError, match=r"'uint4' needs ml_dtypes, .* \"zcore-array\[ml\]\"") as caught:
        parse_data_type(struct(("a", named("raw_bytes", length_bytes=1)), ("b", {"name": "uint4"})), "=")
    assert caught.value.feature == "ml_dtypes"
