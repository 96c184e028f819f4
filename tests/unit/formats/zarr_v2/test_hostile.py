"""Hostile Zarr v2 documents: each ends in an error of zcore that names the place, or in right metadata."""
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.formats.conformance import DEEP, DIGITS, JSON, LONE
from zcore.errors import ZcoreError
from zcore.formats import format_of

zarr_v2 = format_of(2)

VALID = {
    "zarr_format": 2, "shape": [10, 10], "chunks": [5, 5], "dtype": "<i4", "fill_value": 0, "order": "C",
    "filters": [{"id": "delta", "dtype": "<i4", "astype": "<i4"}], "dimension_separator": "/",
    "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
}
WRONG = [  # (member, JSON text), and what the class of all formats has
    ("zarr_format", "NaN"), ("dtype", '"i4"'), ("dtype", '"=i4"'), ("dtype", '"|f8"'), ("dtype", '"int32"'),
    ("dtype", '"U5"'),
    ("dtype", '[["a", "i4"]]'),
    # V2-ARR-05
    ("order", '"A"'), ("order", "null"), ("order", "0"), ("order", '["C"]'),
    # V2-ARR-06
    ("filters", "{}"), ("filters", "[1]"), ("filters", '["delta"]'), ("filters", '[{"id": 1}]'), ("filters", "false"),
    ("filters", '[{"id": "delta"}]'), ("filters", DEEP), ("filters", f"[{DIGITS}]"),
    ("filters", '[{"id": "bitround", "keepbits": NaN}]'),
    ("compressor", "[]"), ("compressor", "true"), ("compressor", '"zlib"'), ("compressor", '{"level": 1}'),
    ("compressor", '{"id": "zlib", "level": 1e0}'), ("compressor", f'{{"id": "blosc", "cname": {LONE}}}'),
    ("compressor", '{"id": "zlib", "level": {"a": ' + DEEP + "}}"), ("compressor", '{"id": ""}'),
]
UNKNOWN = [("filters", '[{"id": "delta", "dtype": "' + "<" * 9999 + '"}]'),
           *[("dtype", text) for text in ('"|S0"', '"<U0"', '"|V0"', '[["a", "|V0"]]')]]


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
