"""Data types as documents spell them: typestrs, lists of fields, and what is refused."""
import warnings

import numpy as np
import pytest

from tests.each import each
from zcore.errors import UnsupportedError
from zcore.model.dtypes import byte_order, from_descr, from_typestr, to_descr

CANONICAL = [
    "|b1", "|i1", "<i2", ">i4", "<i8", "|u1", ">u2", "<u4", "<u8", "<f2", ">f4", "<f8", "<c8", ">c16", "|S1", "|S10",
    "<U5", ">U1", "|V6", "<M8[ns]", ">M8[D]", "<m8[25s]", "<M8[Y]", "<m8", "<m8[as]",
]


@each("text", CANONICAL)
def test_canonical_typestr_comes_back(text):
    """ZM-META-04, ZM-META-06"""
    dtype = from_descr(text)
    assert dtype == np.dtype(text)
    assert dtype.byteorder == np.dtype(text).byteorder
    assert to_descr(dtype) == text


@each(("given", "stored"), [
    ("i4", "<i4"), (np.int32, "<i4"), ("=f8", "<f8"), (">i4", ">i4"), ("i1", "|i1"), (bool, "|b1"), ("S3", "|S3"),
    ("U3", "<U3"), ("M8[us]", "<M8[us]"), ("V4", "|V4"), (complex, "<c16"),
])
def test_stored_typestr_always_says_its_order(given, stored):
    """ZM-META-04: i4 is stored as <i4, single bytes with |."""
    assert to_descr(np.dtype(given)) == stored


@each(("text", "meant"), [
    ("i4", "<i4"), ("=i4", "<i4"), ("int32", "<i4"), ("float64", "<f8"), ("U3", "<U3"), ("M8[s]", "<M8[s]"),
    ("|f8", "<f8"), ("complex64", "<c8"), ("=m8", "<m8"),
])
def test_missing_byte_order_is_assumed_with_a_warning(text, meant):
    """ZM-META-05"""
    with pytest.warns(UserWarning, match="byte order"):
        assert from_typestr(text, default_order="<") == np.dtype(meant)
    with pytest.raises(ValueError, match="byte order"):
        from_typestr(text)


@each(("text", "meant"), [
    ("i1", "|i1"), ("<i1", "|i1"), (">b1", "|b1"), ("<V4", "|V4"), ("S3", "|S3"), ("bool", "|b1"), ("uint8", "|u1"),
    ("=S3", "|S3"),
])
def test_byte_order_of_single_bytes_does_not_matter(text, meant):
    """ZM-META-05: nothing to assume, so nothing to warn about."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert from_typestr(text) == np.dtype(meant)


@each("text", [
    "|O", "O", "object", "", "<", "i3", "<i3", "<i16", "<f16", ">c32", "<f12", "<f", "float", "int", "<g", "f4,i4",
    "(2,)f4", "(99999,99999)i4", "<i4 ", " <i4", "<I4", "T", "<T16", "<i04", "<i-4", "<b2", "<U5[2]", "<M4[s]",
    "<M8[s", "M8[s]]", "<i4\n", "<i٤", "a5", "<V99999999999", "|S16777217", "<U4194305", "|S4294967297",
])
def test_text_that_names_no_portable_type_is_unsupported(text):
    """ZM-META-06"""
    with pytest.raises(UnsupportedError) as caught:
        from_descr(text, default_order="<")
    assert caught.value.feature


@each("text", [
    "<M8", "<M8[generic]", "<m8[5generic]", "<M8[x]", "<M8[B]", "<m8[2147483648s]", "<M8[2generic]",
])
def test_date_without_a_unit_is_refused(text):
    """ZM-META-06: M and m with unit."""
    with pytest.raises(ValueError, match="unit"):
        from_descr(text)


STRUCTURES = [
    ([["a", "<i4"]], np.dtype([("a", "<i4")])),
    ([["x", "<f4"], ["y", ">i2", [2, 2]]], np.dtype([("x", "<f4"), ("y", ">i2", (2, 2))])),
    ([["foo", "<f4"], ["bar", [["baz", "<f4"], ["qux", "<i4"]]]],
     np.dtype([("foo", "<f4"), ("bar", [("baz", "<f4"), ("qux", "<i4")])])),
    ([["n", [["s", "|S3"]], [2]]], np.dtype([("n", [("s", "S3")], (2,))])),
    ([[["title", "a"], "<i4"], ["b", "|u1"]], np.dtype([(("title", "a"), "<i4"), ("b", "u1")])),
    ([["a", "|i1"], ["", "|V7"], ["b", "<f8"], ["", "|V8"]],
     np.dtype({"names": ["a", "b"], "formats": ["i1", "<f8"], "offsets": [0, 8], "itemsize": 24})),
    ([["", "|V2"], ["a", "<u2"]], np.dtype({"names": ["a"], "formats": ["<u2"], "offsets": [2]})),
    ([["empty", "|S0"], ["a", "<u2"]], np.dtype([("empty", "S0"), ("a", "<u2")])),
    ([["raw", "|V5"], ["temps", "<M8[D]", [3]]], np.dtype([("raw", "V5"), ("temps", "<M8[D]", (3,))])),
]


@each(("descr", "dtype"), STRUCTURES)
def test_structure_comes_back(descr, dtype):
    """ZM-META-06, as arrays of 2016 have it: nested fields, subarrays, titles and padding."""
    read = from_descr(descr)
    assert read == dtype
    assert read.itemsize == dtype.itemsize
    assert to_descr(read) == descr


def test_short_forms_of_a_field_shape():
    assert from_descr([["a", "<i4", 2]]) == from_descr([["a", "<i4", [2]]])
    assert from_descr([["a", "<i4", []]]) == from_descr([["a", "<i4"]])


def test_aligned_structure_keeps_its_offsets():
    dtype = np.dtype([("a", "i1"), ("b", "<f8")], align=True)
    assert from_descr(to_descr(dtype)).fields == dtype.fields


@each("descr", [
    [], [[]], [["a"]], [["a", "<i4", [2], 1]], ["a", "<i4"], [["a", 4]], [["a", None]], [[1, "<i4"]], [["", "<i4"]],
    [["", "|V4"]], [["", "|V4", [2]], ["a", "|u1"]], [["", [["b", "|u1"]]], ["a", "|u1"]], [["a", "<i4"], ["a", "<i4"]],
    [[["t", "a"], "<i4"], [["t", "b"], "<i4"]], [[["a", "a"], "<i4"]], [[["t", ""], "|V4"], ["b", "|u1"]],
    [[["t", 1], "<i4"]], [[["t", "a", "x"], "<i4"]], [[[1, "a"], "<i4"]], [["a", "<i4", [0]]], [["a", "<i4", [-1]]],
    [["a", "<i4", [True]]], [["a", "<i4", [2.0]]], [["a", "<i4", "2"]], [["a", "<i4", -1]], [["a", "|u1", [1] * 65]],
    [["a", []]], [["a", "i4"]], [["a", "<M8"]], [{"a": "<i4"}], {"a": "<i4"}, 4, None, True, 1.5,
])
def test_malformed_structure_is_refused(descr):
    with pytest.raises(ValueError):
        from_descr(descr)


@each("descr", [
    [["a", "|O"]], [["a", [["b", "|O"]]]], [["a", "<f16"]], [["a", "|V16777216"], ["b", "|u1"]],
    [["a", "<f8", [2097153]]], [["a", "<f8", [2**31, 2**31, 2**31]]], [["a", "<f8", [2**62]]],
    [["a", [["b", "|V10000000"]], [2]]], [["a", "|u1", [2] * 10**6]], [["a", "|u1", [10**4000] * 4000]],
])
def test_structure_of_unsupported_parts_is_unsupported(descr):
    """An item's size is computed exactly, as far as it counts: numpy would let 2**31 bytes come out negative."""
    with pytest.raises(UnsupportedError):
        from_descr(descr)


@pytest.mark.parametrize("dtype", [
    np.dtype("O"), np.dtype([("a", "O")]), np.dtype(np.longdouble), np.dtype(np.clongdouble), np.dtypes.StringDType(),
])
def test_type_without_portable_bytes_is_not_written(dtype):
    with pytest.raises(UnsupportedError):
        to_descr(dtype)


@pytest.mark.parametrize("dtype", [
    np.dtype("M8"), np.dtype(("<i4", (2,))), np.dtype([]),
    np.dtype({"names": ["a", "b"], "formats": ["<i4", "<i4"], "offsets": [0, 2]}),
    np.dtype({"names": ["a", "b"], "formats": ["<i4", "<i4"], "offsets": [4, 0]}),
])
def test_type_that_would_come_back_as_another_is_not_written(dtype):
    """Fields in another order than in memory would be assigned to each other by position."""
    with pytest.raises(ValueError):
        to_descr(dtype)


def test_byte_order_in_the_terms_of_the_bytes_codec():
    orders = [byte_order(np.dtype(text)) for text in ("<i4", ">i4", "i1", "S4", "<U1", ">M8[s]", "<c8")]
    assert orders == ["little", "big", None, None, "little", "big", "little"]
    assert byte_order(np.dtype([("a", ">i4")])) is None
