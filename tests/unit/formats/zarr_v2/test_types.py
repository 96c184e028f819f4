"""Types and fill values of Zarr v2 documents."""
import base64
import json
import math

import numpy as np
import pytest

from tests.each import each
from zcore.errors import MetadataError, UnsupportedError
from zcore.formats import format_of

zarr_v2 = format_of(2)

PLAIN = {
    "zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i4", "fill_value": None, "order": "C", "filters": None,
    "compressor": None,
}


def parse(dtype, fill_value=None, **changes):
    return zarr_v2.parse_array(json.dumps({**PLAIN, "dtype": dtype, "fill_value": fill_value, **changes}).encode(), "a")


def rewritten(array):
    """Return the members that are written, which must be JSON without bare constants."""
    return json.loads(zarr_v2.render_array(array), parse_constant=pytest.fail)


@each("dtype", [
    "|b1", "|i1", "<i2", ">i4", "<i8", "|u1", ">u2", "<u4", ">u8", "<f2", ">f4", "<f8", "<c8", ">c16",
    "|S1", "|S300", "<U5", ">U2", "|V6", "<M8[ns]", ">M8[D]", "<M8[25s]", "<m8[25s]", "<m8",
])
def test_simple_type(dtype):
    """V2-DT-01, V2-DT-02, V2-DT-03, V2-DT-05, V2-DT-06"""
    array = parse(dtype)
    assert array.dtype == np.dtype(dtype) and array.dtype.str == dtype
    assert rewritten(array)["dtype"] == dtype
    order = {"<": "little", ">": "big"}.get(dtype[0])
    assert array.codecs[0].configuration == ({} if order is None else {"endian": order})


@pytest.mark.parametrize(("dtype", "canonical"), [("<i1", "|i1"), (">b1", "|b1"), ("<V4", "|V4"), (">S2", "|S2")])
def test_byte_order_of_single_bytes_is_harmless(dtype, canonical):
    """V2-DT-01"""
    assert rewritten(parse(dtype))["dtype"] == canonical


def test_size_of_text_counts_characters():
    """V2-DT-04"""
    assert parse("<U5").itemsize == 20


@pytest.mark.parametrize(("dtype", "meant"), [
    ([["x", "<f4"], ["y", ">i2", [2, 2]]], [("x", "<f4"), ("y", ">i2", (2, 2))]),
    ([["foo", "<f4"], ["bar", [["baz", "<f4"], ["qux", "<i4"]]]],
     [("foo", "<f4"), ("bar", [("baz", "<f4"), ("qux", "<i4")])]),
    ([["s", "|S3"], ["t", "<M8[D]"], ["v", "|V2"], ["u", ">U1"]],
     [("s", "S3"), ("t", "<M8[D]"), ("v", "V2"), ("u", ">U1")]),
    ([["n", [["a", "|b1"]], [3]]], [("n", [("a", "?")], (3,))]),
])
def test_structure(dtype, meant):
    """V2-ST-01, V2-ST-02, V2-ST-04, V2-ST-06"""
    array = parse(dtype)
    assert array.dtype == np.dtype(meant)
    assert rewritten(array)["dtype"] == dtype
    assert array.codecs[0].configuration == {}


def test_length_of_a_field_may_be_a_number():
    """V2-ST-01: as in numpy's descr."""
    assert parse([["a", "<i4", 3]]).dtype == np.dtype([("a", "<i4", (3,))])


def test_padding_is_kept():
    """V2-ST-03: unnamed fields of aligned structures."""
    descr = [["a", "|i1"], ["", "|V3"], ["b", "<f4"]]
    array = parse(descr)
    assert array.dtype.names == ("a", "b") and array.itemsize == 8
    assert rewritten(array)["dtype"] == descr


def test_object_inside_a_structure_is_unsupported():
    """V2-ST-05"""
    with pytest.raises(UnsupportedError):
        parse([["a", "|O"]], filters=[{"id": "vlen-utf8"}])


@each("dtype", ["<f8", "|S3", "<U2", "|V2", "|b1", [["a", "<i4"], ["b", "<M8[D]"]]])
def test_null_is_undefined_and_reads_as_zeros(dtype):
    """V2-FV-01"""
    array = parse(dtype, None)
    assert array.fill_value is None and array.fill_bytes == bytes(array.itemsize)
    assert rewritten(array)["fill_value"] is None


@pytest.mark.parametrize("dtype", ["<M8[D]", ">M8[ns]", "<m8[10s]"])
def test_of_dates_null_is_undefined_and_reads_as_not_a_time(dtype):
    """V2-FV-01: zarr-python 3 stores no chunk of nothing else then."""
    array = parse(dtype, None)
    assert array.fill_value is None and np.isnat(np.frombuffer(array.fill_bytes, dtype)).all()
    assert rewritten(array)["fill_value"] is None


@each(("dtype", "value", "expected"), [
    # V2-FV-02
    ("<f8", 0.1, 0.1), ("<f4", 0.10000000149011612, np.float32(0.1)), ("<f8", "NaN", math.nan),
    ("<f2", "Infinity", math.inf), (">f4", "-Infinity", -math.inf), ("<f8", -0.0, -0.0), ("<f8", 5e-324, 5e-324),
    # V2-FV-03
    ("<i8", -2**63, -2**63), ("<u8", 2**64 - 1, 2**64 - 1), ("|i1", -128, -128),
    # V2-FV-04
    ("|b1", True, True), ("|b1", False, False),
    # V2-FV-05
    ("<c8", [1.0, -2.5], 1 - 2.5j), (">c16", ["NaN", "-Infinity"], complex(math.nan, -math.inf)),
    # V2-FV-06
    ("|S3", "YWI=", b"ab"), ("|S3", "", b""), ("|S2", "/wA=", b"\xff"), ("|V3", "YQAA", np.void(b"a\0\0")),
    # V2-FV-08
    ("<U3", "hé", "hé"), ("<U3", "", ""), (">U2", "\U0001f600b", "\U0001f600b"),
    # V2-FV-09
    ("<M8[D]", 18321, np.datetime64("2020-02-29")), (">m8[s]", -5, np.timedelta64(-5, "s")),
    ("<M8[ns]", -2**63, np.datetime64("NaT", "ns")),
])
def test_fill_value_is_read_and_rewritten(dtype, value, expected):
    """V2-FV-02, V2-FV-03, V2-FV-04, V2-FV-05, V2-FV-06, V2-FV-08, V2-FV-09"""
    array = parse(dtype, value)
    assert array.fill_bytes == np.array(expected, dtype).tobytes()
    text = rewritten(array)["fill_value"]
    if dtype != "|S2":  # zeros at the end of bytes are no part of them
        assert text == value and math.copysign(1, text if type(text) is float else 1) == math.copysign(
            1, value if type(value) is float else 1)


@each(("dtype", "value", "expected", "written"), [
    ("<i4", 5.0, 5, 5), ("|u1", 0.0, 0, 0), ("|b1", 0, False, False),
    ("|b1", 1, True, True), ("<f8", 3, 3.0, 3.0), ("<c8", 2, 2, [2.0, 0.0]), ("<c8", "NaN", math.nan, ["NaN", 0.0]),
    ("|S3", 0, b"", ""), ("|V2", 0, np.void(b"\0\0"), "AAA="), ("|V3", "YQ==", np.void(b"a\0\0"), "YQAA"),
    ("<U3", 0, "", ""), ("<M8[s]", "NaT", np.datetime64("NaT", "s"), -2**63),
    ("<m8[s]", "NaT", np.timedelta64("NaT", "s"), -2**63),
])
def test_fill_value_of_old_programs_is_read(dtype, value, expected, written):
    """V2-FV-02, V2-FV-03, V2-FV-04, V2-FV-05, V2-FV-06, V2-FV-08, V2-FV-09"""
    array = parse(dtype, value)
    assert array.fill_bytes == np.array(expected, dtype).tobytes()
    assert rewritten(array)["fill_value"] == written


@each(("dtype", "value", "expected"), [
    ("<i4", "0", 0), ("|u1", "255", 255), (">i2", "-32768", -32768), ("<u8", "18446744073709551615", 2**64 - 1),
    ("<i4", "0.0", 0), ("<i4", "1e3", 1000), ("<f4", "0", 0.0), ("<f8", "-1.5", -1.5), ("<f8", "1e-3", 1e-3),
    ("<f8", "-0", -0.0), ("<c8", "0", 0j),
])
def test_fill_value_that_is_a_number_as_text_is_read(dtype, value, expected):
    """V2-FV-02, V2-FV-03: n5-zarr writes all fill values so."""
    array = parse(dtype, value)
    assert array.fill_bytes == np.array(expected, dtype).tobytes()
    assert rewritten(array)["fill_value"] == ([0.0, 0.0] if dtype == "<c8" else expected)


# By netcdf-c, each with the attribute ``_FillValue`` of the same value.
@each(("dtype", "value", "without", "expected"), [
    ("|S128", "x y", b"x y", b"x y"), ("|S128", "é", "é".encode(), "é".encode()), ("|S8", "YWI", b"YWI", b"YWI"),
    (">S1", "x", b"x", b"x"), (">S1", 5, b"5", b"5"), (">S1", "\n", b"\n", b"\n"), (">S1", "=", b"=", b"="),
    # Base64 as well: the attribute decides.
    ("|S128", "fill", b"~)e", b"fill"), ("|S4", "TBD=", b"L\x10", b"TBD="), (">S1", 0, b"", b"0"),
    # Base64 that is no text of the type
    ("|S1", "eA==", b"x", b"x"), ("|S3", "fill", b"~)e", b"~)e"), ("|S128", "", b"", b""), ("|S2", 0, b"", b""),
])
def test_fill_value_that_is_the_text_itself(dtype, value, without, expected):
    """V2-FV-06"""
    array = parse(dtype, value)
    assert array.fill_value == without
    assert zarr_v2.with_attributes(array, lambda: {"_FillValue": "other"}) is array
    signed = zarr_v2.with_attributes(array, lambda: {"_FillValue": value})
    assert signed.fill_value == expected and signed.fill_bytes == expected.ljust(signed.itemsize, b"\0")
    if expected and not expected == b"0":
        assert rewritten(signed)["fill_value"] == value     # which netcdf-c still reads
    assert rewritten(signed.replace(fill_value=b"z"))["fill_value"] == "eg=="


def test_attributes_are_not_asked_about_most_fill_values():
    for dtype, value in (("|S3", "YWI="), ("|S4", None), ("|S4", ""), ("|V9", "fill"), ("<i4", 0), ("<U4", "fill")):
        array = parse(dtype, value)
        assert zarr_v2.with_attributes(array, pytest.fail) is array


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("dtype", ["<f4", "<c8"])
def test_bare_constants_are_read_and_written_in_quotes(dtype, token):
    """V2-FV-02"""
    shown = f"[0.0, {token}]" if dtype == "<c8" else token
    raw = json.dumps({**PLAIN, "dtype": dtype}).replace('"fill_value": null', f'"fill_value": {shown}').encode()
    array = zarr_v2.parse_array(raw, "a")
    assert rewritten(array)["fill_value"] == ([0.0, token] if dtype == "<c8" else token)


def test_structured_fill_value_keeps_each_byte_order():
    """V2-FV-06, V2-FV-07"""
    array = parse([["x", "<f4"], ["y", ">i2"]], "AADAPwAC")
    assert array.fill_value.item() == (1.5, 2)
    assert array.fill_bytes == b"\0\0\xc0\x3f\0\2"
    assert rewritten(array)["fill_value"] == "AADAPwAC"
    for value in (0, ""):
        assert parse([["x", "<f4"], ["y", ">i2"]], value).fill_bytes == bytes(6)


def test_payload_of_a_nan_becomes_the_usual_one():
    """V2-FV-02: the document cannot carry it, so the array that is made has what its reader will see."""
    payload = np.frombuffer(b"\x01\0\xc0\xff", "<f4")[0]
    assert zarr_v2.new_array(3, "<f4", fill_value=payload).fill_bytes == np.array(np.nan, "<f4").tobytes()


@each(("dtype", "value"), [
    ("<i4", " 0"), ("<i4", "2147483648"), ("<f4", "1e39"), ("|V2", 1), ("|V2", "YWJj"), ("|V9", "x y"),
    ("|S3", "YWJjZA=="), ("|S3", "ab!="), ("|S1", "é"), ("|S3", 1), ("|S1", 10), ("|S1", True), ("|S3", []),
    ("|S3", " YWI="), ("<U2", "abc"), ("<U2", 1), ([["a", "|S9"]], "x y"), ([["a", "<i4"]], "AAAAAAA="),
    ([["a", "<i4"]], 5),
])
def test_fill_value_that_the_type_does_not_hold_is_refused(dtype, value):
    """V2-FV-02, V2-FV-03, V2-FV-04, V2-FV-05, V2-FV-06, V2-FV-08, V2-FV-09"""
    with pytest.raises(MetadataError, match="a/.zarray: member 'fill_value': ") as caught:
        parse(dtype, value)
    assert caught.value.member == "fill_value" and len(str(caught.value)) < 400


UTF8, BYTES, JSON2 = [{"id": "vlen-utf8"}], [{"id": "vlen-bytes"}], [{"id": "json2"}]


@each(("filters", "value", "expected", "written"), [
    (UTF8, "ü", "ü", "ü"), (UTF8, "", "", ""), (UTF8, 0, "", ""), (UTF8, None, None, None),
    (BYTES, "YWI=", b"ab", "YWI="), (BYTES, "", b"", ""), (BYTES, 0, b"", ""), (BYTES, None, None, None),
    (JSON2, 0, 0, 0), (JSON2, "x", "x", "x"), (JSON2, [1, "a"], [1, "a"], [1, "a"]), (JSON2, None, None, None),
    ([{"id": "vlen-array", "dtype": "<i4"}], 0, 0, 0),
])
def test_fill_value_of_objects(filters, value, expected, written):
    """V2-FV-10"""
    array = parse("|O", value, filters=filters)
    assert array.fill_value == expected and array.fill_bytes == b""
    assert type(array.fill_value) is type(expected)
    members = rewritten(array)
    assert (members["dtype"], members["fill_value"], members["filters"]) == ("|O", written, filters)
    assert array == zarr_v2.parse_array(zarr_v2.render_array(array), "a") == array.replace()
    assert array != array.replace(fill_value="other")


@each(("filters", "value"), [
    (UTF8, 1), (UTF8, ["a"]), (UTF8, True), (BYTES, "x"), (BYTES, 1), (BYTES, []),
])
def test_fill_value_that_the_objects_codec_does_not_hold_is_refused(filters, value):
    """V2-FV-10"""
    with pytest.raises(MetadataError, match="member 'fill_value'"):
        parse("|O", value, filters=filters)


def test_fill_value_that_is_no_element_is_not_written():
    """V2-FV-10"""
    for filters, value in ((UTF8, b"a"), (BYTES, "a")):
        with pytest.raises(ValueError, match="fill value of type"):
            zarr_v2.render_array(parse("|O", None, filters=filters).replace(fill_value=value))


def test_strings_have_numpys_string_type():
    """V2-OBJ-04"""
    assert parse("|O", filters=UTF8).dtype == np.dtypes.StringDType()
    for filters in (BYTES, JSON2, [{"id": "vlen-array", "dtype": "<f8"}]):
        assert parse("|O", filters=filters).dtype == np.dtype(object)


def test_base64_is_the_standard_one():
    """V2-FV-06"""
    raw = bytes(range(250, 256)) * 2
    text = base64.standard_b64encode(raw).decode()
    assert "/" in text and "+" in text
    assert parse("|V12", text).fill_bytes == raw and rewritten(parse("|V12", text))["fill_value"] == text
