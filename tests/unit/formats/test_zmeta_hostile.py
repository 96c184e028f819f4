"""Hostile `__zmeta__` documents: each ends in an error of zcore that names the place, or in right metadata."""
import json

import pytest

from tests.each import each
from zcore.errors import MetadataError, UnsupportedError
from zcore.formats import format_of

zmeta = format_of("zmeta")

VALID = {
    "shape": [10, 10], "chunks": [5, 5], "dtype": "<i4", "fill_value": 0, "cname": "lz4", "clevel": 5, "shuffle": 1,
}
DEEP = "[" * 60 + "]" * 60

WRONG = [  # (member, JSON text)
    # ZM-META-02
    ("shape", "[-1, 10]"), ("shape", "[10.0, 10]"), ("shape", "[true, 10]"), ("shape", "[1e1, 10]"),
    ("shape", '["10", 10]'),
    ("shape", "[null, 10]"), ("shape", "[[10], 10]"), ("shape", "10"), ("shape", "null"), ("shape", '"10,10"'),
    ("shape", "{}"),
    ("shape", "[9223372036854775808, 1]"), ("shape", "[4294967296, 4294967296]"), ("shape", "[0, 9223372036854775808]"),
    ("shape", "[NaN, 1]"), ("shape", "[" + "9" * 4000 + ", 1]"), ("shape", DEEP), ("shape", "[-0.0, 1]"),
    # ZM-META-03, ZM-CHK-12
    ("chunks", "[0, 5]"), ("chunks", "[-5, 5]"), ("chunks", "[5.0, 5]"), ("chunks", "[true, 5]"), ("chunks", "[5]"),
    ("chunks", "[5, 5, 5]"), ("chunks", "[]"), ("chunks", "5"), ("chunks", "null"), ("chunks", "[[5], [5]]"),
    ("chunks", '"auto"'),
    ("chunks", "[9223372036854775807, 5]"), ("chunks", "[3037000500, 3037000500]"), ("chunks", "[23171, 23171]"),
    ("chunks", "[" + "9" * 4000 + ", 5]"),
    # ZM-META-04, ZM-META-06
    ("dtype", "null"), ("dtype", "4"), ("dtype", "true"), ("dtype", "{}"), ("dtype", "[]"), ("dtype", '["<i4"]'),
    ("dtype", '[["a"]]'), ("dtype", '[["a", "<i4", "x"]]'), ("dtype", '[["a", "<i4"], ["a", "<i4"]]'),
    ("dtype", '[["", "<i4"]]'),
    ("dtype", '[["a", "<i4", [0]]]'), ("dtype", '[["a", "<i4", [true]]]'), ("dtype", '[[1, "<i4"]]'),
    ("dtype", '"<M8"'),
    ("dtype", '"|S0"'), ("dtype", '"<U0"'), ("dtype", '[["a", "|V0"]]'), ("dtype", '"<M8[x]"'), ("dtype", DEEP),
    ("dtype", '[["a", "<M8[generic]"]]'), ("dtype", "NaN"),
    # ZM-META-07, ZM-META-10
    ("fill_value", "[]"), ("fill_value", "[0]"), ("fill_value", "{}"), ("fill_value", "2147483648"),
    ("fill_value", "-2147483649"),
    ("fill_value", "0.5"), ("fill_value", '"0"'), ("fill_value", "NaN"), ("fill_value", "Infinity"),
    ("fill_value", '"NaN"'),
    ("fill_value", "9" * 4000), ("fill_value", "[0, 0]"), ("fill_value", '""'), ("fill_value", "1e300"),
    # ZM-META-11
    ("cname", '"gzip"'), ("cname", '""'), ("cname", '"LZ4"'), ("cname", '"lz4\\u0000"'), ("cname", "null"),
    ("cname", "1"),
    ("cname", '["lz4"]'), ("cname", "{}"), ("cname", '"\\ud800"'),
    # ZM-META-12
    ("clevel", "-1"), ("clevel", "10"), ("clevel", "5.0"), ("clevel", "true"), ("clevel", '"5"'), ("clevel", "null"),
    ("clevel", "1e0"),
    ("clevel", "[5]"), ("clevel", "NaN"),
    # ZM-META-13
    ("shuffle", "-1"), ("shuffle", "3"), ("shuffle", "true"), ("shuffle", "false"), ("shuffle", '"shuffle"'),
    ("shuffle", "1.0"),
    ("shuffle", "null"), ("shuffle", "256"), ("shuffle", "[1]"),
]


def document(**texts):
    members = {name: json.dumps(value) for name, value in VALID.items()}
    return ("{" + ", ".join(f'"{name}": {text}' for name, text in {**members, **texts}.items()) + "}").encode()


@each(("member", "text"), WRONG, ids=[f"{member}-{text[:30]}" for member, text in WRONG])
def test_wrong_member_is_named(member, text):
    with pytest.raises(MetadataError) as caught:
        zmeta.parse_array(document(**{member: text}), "x.zarr")
    assert (caught.value.path, caught.value.document) == ("x.zarr", "__zmeta__")
    assert caught.value.member == member
    assert str(caught.value).startswith(f"x.zarr/__zmeta__: member '{member}': ")
    assert len(str(caught.value)) < 400


@each(("dtype", "text"), [
    ("|b1", "2"), ("|b1", '"true"'), ("|u1", "256"), ("|u1", "-1"), ("<u8", "18446744073709551616"),
    ("<i8", "9223372036854775808"),
    ("<f4", "1e39"), ("<f4", "-1e39"), ("<f2", "65520"), ("<f8", '"nan"'), ("<f8", '"1.5"'), ("<f8", '"+Infinity"'),
    ("<f8", "9" * 400),
    ("<f8", "[1.0]"), ("<c8", "[1.0]"), ("<c8", "[1.0, 2.0, 3.0]"), ("<c8", '[1.0, "x"]'), ("<c8", "[1.0, null]"),
    ("<c8", "[[1], 2]"),
    ("<c8", "[1e39, 0]"), ("<c8", "[true, 0]"), ("|S3", '"\\u00e9"'), ("|S3", "[]"), ("<U3", "{}"), ("<M8[D]", "0.0"),
    ("<M8[D]", "true"), ("<M8[D]", '"now"'), ("<M8[D]", '"2016-99-99"'), ("<M8[D]", "9223372036854775808"),
    ("<m8[s]", '"1"'),
    ("<m8[s]", "NaN"), ("|V3", "1"), ("|V3", '"\\u0100"'), ("|V3", "0.0"),
])
def test_fill_value_that_the_type_does_not_hold_is_refused(dtype, text):
    """ZM-META-07"""
    with pytest.raises(MetadataError) as caught:
        zmeta.parse_array(document(dtype=json.dumps(dtype), fill_value=text), "")
    assert caught.value.member == "fill_value"
    assert str(caught.value).startswith("__zmeta__: member 'fill_value': ")


@each("dtype", [
    '"|O"', '"<i3"', '"<f16"', '"f4,i4"', '"|S2147483647"', '"|V99999999999"', '[["a", "|V16777216"], ["b", "|u1"]]',
    '[["a", "<i4", [2147483648, 2147483648]]]', '[["a", "|O"]]', '""', '"\\ud800"', json.dumps("<" * 10000),
])
def test_type_without_portable_size_is_unsupported(dtype):
    with pytest.raises(UnsupportedError) as caught:
        zmeta.parse_array(document(dtype=dtype), "x")
    assert str(caught.value).startswith("x/__zmeta__: member 'dtype': ") and len(str(caught.value)) < 200


def test_too_many_dimensions_are_unsupported():
    with pytest.raises(UnsupportedError):
        zmeta.parse_array(document(shape=json.dumps([1] * 65), chunks=json.dumps([1] * 65)), "x")
