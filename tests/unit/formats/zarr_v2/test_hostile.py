"""Hostile Zarr v2 documents: each ends in an error of zcore that names the place, or in right metadata."""
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.each import each
from tests.unit.formats.conformance import JSON
from zcore.errors import MetadataError, UnsupportedError, ZcoreError
from zcore.formats import format_of

zarr_v2 = format_of(2)

VALID = {
    "zarr_format": 2, "shape": [10, 10], "chunks": [5, 5], "dtype": "<i4", "fill_value": 0, "order": "C",
    "filters": [{"id": "delta", "dtype": "<i4", "astype": "<i4"}], "dimension_separator": "/",
    "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
}
DEEP = "[" * 60 + "]" * 60

WRONG = [  # (member, JSON text)
    # V2-ARR-02
    ("zarr_format", "3"), ("zarr_format", "2.0"), ("zarr_format", '"2"'), ("zarr_format", "NaN"),
    # V2-ARR-03
    ("shape", "[-1, 10]"), ("shape", "[10.0, 10]"), ("shape", "[true, 10]"), ("shape", '["10", 10]'), ("shape", "-10"),
    ("shape", "null"), ("shape", "{}"), ("shape", "[[10], 10]"), ("shape", "[9223372036854775808, 1]"),
    ("shape", "[4294967296, 4294967296]"), ("shape", "[NaN, 1]"), ("shape", "[" + "9" * 4000 + ", 1]"), ("shape", DEEP),
    # V2-ARR-04
    ("chunks", "[0, 5]"), ("chunks", "[-5, 5]"), ("chunks", "[5.0, 5]"), ("chunks", "[5]"), ("chunks", "[5, 5, 5]"),
    ("chunks", "[]"), ("chunks", "null"), ("chunks", "true"), ("chunks", "[9223372036854775807, 5]"),
    ("chunks", "[3037000500, 3037000500]"), ("chunks", "[2147483648, 2147483647]"),
    # V2-DT-01, V2-DT-05, V2-ST-01, V2-ST-03
    ("dtype", "null"), ("dtype", "4"), ("dtype", "{}"), ("dtype", "[]"), ("dtype", '["<i4"]'), ("dtype", '[["a"]]'),
    ("dtype", '[["a", "<i4"], ["a", "<i4"]]'), ("dtype", '[["a", "<i4", [0]]]'), ("dtype", '"<M8"'), ("dtype", DEEP),
    ("dtype", '"i4"'), ("dtype", '"=i4"'), ("dtype", '[["a", "i4"]]'),
    # V2-FV-03
    ("fill_value", "[]"), ("fill_value", "{}"), ("fill_value", "2147483648"), ("fill_value", "0.5"),
    ("fill_value", '"0.5"'), ("fill_value", "NaN"), ("fill_value", "9" * 4000), ("fill_value", "1e300"),
    # V2-ARR-05
    ("order", '"A"'), ("order", "null"), ("order", "0"), ("order", '["C"]'),
    # V2-ARR-06
    ("filters", "{}"), ("filters", "[1]"), ("filters", '["delta"]'), ("filters", '[{"id": 1}]'), ("filters", "false"),
    ("filters", '[{"id": "delta"}]'), ("filters", '[{"id": "delta", "dtype": "' + "<" * 9999 + '"}]'),
    ("filters", DEEP),
    ("filters", "[" + "9" * 4000 + "]"), ("filters", '[{"id": "bitround", "keepbits": NaN}]'),
    ("compressor", "[]"), ("compressor", "true"), ("compressor", '"zlib"'), ("compressor", '{"level": 1}'),
    ("compressor", '{"id": "zlib", "level": 1e0}'), ("compressor", '{"id": "blosc", "cname": "\\ud800"}'),
    ("compressor", '{"id": "zlib", "level": {"a": ' + DEEP + "}}"), ("compressor", '{"id": ""}'),
    # V2-ARR-07
    ("dimension_separator", "null"), ("dimension_separator", '""'), ("dimension_separator", '"\\\\"'),
    ("dimension_separator", '"../"'), ("dimension_separator", "0"),
]


def document(**texts):
    members = {name: json.dumps(value) for name, value in VALID.items()}
    return ("{" + ", ".join(f'"{name}": {text}' for name, text in {**members, **texts}.items()) + "}").encode()


@each(("member", "text"), WRONG, ids=[f"{member}-{text[:30]}" for member, text in WRONG])
def test_wrong_member_is_named(member, text):
    """V2-ARR-02 to V2-ARR-07, V2-DT-01, V2-ST-01, V2-FV-03"""
    with pytest.raises((MetadataError, UnsupportedError)) as caught:
        zarr_v2.parse_array(document(**{member: text}), "x.zarr")
    assert str(caught.value).startswith("x.zarr/.zarray: ") and len(str(caught.value)) < 400
    if isinstance(caught.value, MetadataError) and "nested" not in str(caught.value):
        assert (caught.value.path, caught.value.document, caught.value.member) == ("x.zarr", ".zarray", member)


def test_too_many_dimensions_are_unsupported():
    with pytest.raises(UnsupportedError):
        zarr_v2.parse_array(document(shape=json.dumps([1] * 65), chunks=json.dumps([1] * 65)), "x")


def check(raw):
    """Read a document; what could be read must come back the same after it was written."""
    try:
        array = zarr_v2.parse_array(raw, "x")
    except ZcoreError:
        return
    written = zarr_v2.render_array(array)
    assert zarr_v2.parse_array(written, "x") == array and zarr_v2.render_array(array) == written


codecs = st.fixed_dictionaries({"id": st.sampled_from([
    "blosc", "zlib", "zstd", "gzip", "delta", "shuffle", "packbits", "astype", "bitround", "json2", "vlen-utf8",
    "crc32", "crc32c", "categorize", "quantize", "lzma", "other",
])}, optional={
    "level": st.integers(-2, 12), "dtype": st.sampled_from(["<i4", "|u1", ">f8", "|O"]),
    "keepbits": st.integers(-1, 60),
    "astype": st.sampled_from(["<i4", "|u1", ">f8"]), "elementsize": st.integers(-1, 9), "shuffle": st.integers(-2, 3),
    "encode_dtype": st.just("<f4"), "decode_dtype": st.just("<f8"), "digits": st.integers(0, 3),
    "checksum": st.booleans(), "labels": st.just(["a"]),
    "location": st.sampled_from(["start", "end", "x"]), "typesize": st.integers(0, 9),
})


@pytest.mark.filterwarnings("ignore")
@given(st.lists(codecs, max_size=3), st.none() | codecs, st.sampled_from(["<i4", ">f8", "|O", "|S3", "|b1"]),
       st.sampled_from("CF"))
def test_any_codecs_end_in_an_error_of_zcore_or_in_metadata(filters, compressor, dtype, order):
    """V2-ARR-06, V2-OBJ-01"""
    check(json.dumps({**VALID, "dtype": dtype, "filters": filters, "compressor": compressor, "order": order,
                      "fill_value": None}).encode())


@pytest.mark.filterwarnings("ignore")
@given(st.dictionaries(st.sampled_from([".zgroup", ".zattrs", "a/.zarray", "a/.zgroup", "a/b/.zgroup", "/", "x"]),
                       JSON | st.just({"zarr_format": 2})), JSON | st.just(1))
def test_any_consolidated_json_ends_in_an_error_of_zcore_or_in_nodes(copies, number):
    copies = {".zgroup": {"zarr_format": 2}, **copies}
    raw = json.dumps({"zarr_consolidated_format": number, "metadata": copies}).encode()
    try:
        nodes = zarr_v2.parse_consolidated(raw, "x").consolidated
    except ZcoreError:
        return
    for path in nodes:
        try:
            nodes[path]
        except ZcoreError:
            continue
