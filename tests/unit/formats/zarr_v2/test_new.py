"""New Zarr v2 arrays: what callers say and leave open."""
import json

import numpy as np
import pytest

from tests.each import each
from zcore.codecs import BloscCodec, BytesCodec, Crc32cCodec
from zcore.errors import UnsupportedError
from zcore.formats import format_of
from zcore.model.chunk_keys import ChunkKeyEncoding
from zcore.model.metadata import CodecSpec

zarr_v2 = format_of(2)

LITTLE = CodecSpec("bytes", {"endian": "little"})


def members(*arguments, **settings):
    array = zarr_v2.new_array(*arguments, **settings)
    raw = zarr_v2.render_array(array)
    assert zarr_v2.parse_array(raw, "a") == array.replace(attributes=None)
    return json.loads(raw)


def test_defaults_are_those_of_zarr_python_2():
    assert members((4, 6), "<i4", (2, 3)) == {
        "zarr_format": 2, "shape": [4, 6], "chunks": [2, 3], "dtype": "<i4", "fill_value": 0, "order": "C",
        "filters": None, "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
    }


@pytest.mark.parametrize("compressors", [
    {"id": "zlib", "level": 3}, [{"id": "zlib", "level": 3}], CodecSpec("numcodecs.zlib", {"level": 3}),
    {"name": "numcodecs.zlib", "configuration": {"level": 3}}, ({"id": "zlib", "level": 3},),
])
def test_codec_may_be_named_in_any_terms(compressors):
    assert members(4, "<i4", 2, compressors=compressors)["compressor"] == {"id": "zlib", "level": 3}


def test_codecs_of_numcodecs_are_taken():
    numcodecs = pytest.importorskip("numcodecs")
    found = members(4, "<i4", 2, filters=[numcodecs.Delta("<i4", "<i2")], compressors=numcodecs.Zlib(3))
    assert (found["filters"], found["compressor"]) == (
        [{"id": "delta", "dtype": "<i4", "astype": "<i2"}], {"id": "zlib", "level": 3},
    )
    assert members(4, "<i4", 2, compressors=numcodecs.Zstd(3))["compressor"]["level"] == 3


def test_codecs_of_zcore_are_taken():
    found = members(4, "<i4", 2, compressors=BloscCodec(cname="zstd", clevel=1))
    assert found["compressor"] == {"id": "blosc", "cname": "zstd", "clevel": 1, "shuffle": 1, "blocksize": 0}
    found = members(4, "<i4", 2, filters=Crc32cCodec(), compressors=BloscCodec())
    assert (found["filters"], found["compressor"]["shuffle"]) == ([{"id": "crc32c"}], 2)  # single bytes come to it
    assert members(4, "|u1", 2, compressors=BloscCodec())["compressor"]["shuffle"] == 2
    assert members(4, "<i4", 2, compressors=None, serializer=BytesCodec())["filters"] is None


def test_item_size_that_was_asked_for_is_kept():
    delta = {"id": "delta", "dtype": "<f8", "astype": "<f4"}
    for filters, typesize, written in ((None, 8, None), (None, 4, 4), ([delta], 8, 8), ([delta], 4, None)):
        found = members(4, "<f8", 2, filters=filters, compressors=BloscCodec(typesize=typesize))
        assert found["compressor"].get("typesize") == written


def test_several_compressors_are_filters_but_the_last():
    found = members(4, "<i4", 2, compressors=[{"id": "zlib", "level": 1}, {"id": "zlib", "level": 2}])
    assert (found["filters"], found["compressor"]) == ([{"id": "zlib", "level": 1}], {"id": "zlib", "level": 2})
    assert members(4, "<i4", 2, compressors=[])["compressor"] is None


def test_whole_chain_is_taken_literally():
    """V2-ARR-05"""
    chain = (CodecSpec("transpose", {"order": (1, 0)}), LITTLE, CodecSpec("crc32c"))
    found = members((4, 6), "<i4", (2, 3), codecs=chain)
    assert (found["order"], found["filters"], found["compressor"]) == ("F", [{"id": "crc32c"}], None)
    dicts = [{"name": "bytes"}, {"name": "zstd", "configuration": {"level": 1}}]
    assert members(4, "|u1", 2, codecs=dicts)["compressor"] == {"id": "zstd", "level": 1}
    assert members(4, "|u1", 2, codecs=[BytesCodec()])["compressor"] is None
    for codecs in ([], [Crc32cCodec()], [BytesCodec(endian="big")], [CodecSpec("sharding_indexed")]):
        with pytest.raises(ValueError):
            zarr_v2.new_array(4, "<i4", 2, codecs=codecs)


def test_f_order():
    """V2-ARR-05"""
    array = zarr_v2.new_array((4, 6), "<i4", (2, 3), order="F", compressors=None)
    assert array.codecs == (CodecSpec("transpose", {"order": [1, 0]}), LITTLE)
    assert members((4, 6), "<i4", (2, 3), order="F")["order"] == "F"
    for order in ("A", "f", None, 1):
        with pytest.raises(ValueError, match="order"):
            zarr_v2.new_array(4, "<i4", order=order)


@each(("encoding", "key"), [
    (None, "1.2"), (".", "1.2"), ("/", "1/2"), ({"name": "v2", "separator": "/"}, "1/2"), ({"name": "v2"}, "1.2"),
    ({"name": "v2", "configuration": {"separator": "/"}}, "1/2"), (ChunkKeyEncoding.v2("/"), "1/2"),
    ("v2", "1.2"), ({"name": "v2"}, "1.2"),
])
def test_chunk_keys(encoding, key):
    """V2-ARR-07"""
    array = zarr_v2.new_array((4, 6), "<i4", (2, 3), chunk_key_encoding=encoding)
    assert array.chunk_keys.encode((1, 2)) == key
    written = members((4, 6), "<i4", (2, 3), chunk_key_encoding=encoding).get("dimension_separator", ".")
    assert written == array.chunk_keys.separator


@each("encoding", [
    "-", "", {"name": "default"}, {}, ChunkKeyEncoding.v3(), ChunkKeyEncoding.zmeta(),
])
def test_other_chunk_keys_are_refused(encoding):
    """V2-ARR-07"""
    with pytest.raises(ValueError):
        zarr_v2.new_array((4, 6), "<i4", (2, 3), chunk_key_encoding=encoding)


@each(("dtype", "fill_value", "written"), [
    ("<f8", ..., 0.0), ("<f8", None, None), ("<f4", 0.1, 0.10000000149011612), ("|b1", True, True), ("|S3", 0, ""),
    ("|S3", ..., ""), ("|S3", b"ab", "YWI="), ("|S3", "ab", "YWI="), ("<U3", 0, ""), ("<U3", np.int64(0), ""),
    ("|V2", 0, "AAA="),
    ("|V2", b"a", "YQA="), ([("x", "<f4"), ("y", ">i2")], (1.5, 2), "AADAPwAC"),
    ([("x", "<f4"), ("s", "S2")], 0, "AAAAAAAA"),
    ("<M8[D]", "2020-02-29", 18321), ("<c8", 1 + 2j, [1.0, 2.0]), ("<u8", np.uint64(2**64 - 1), 2**64 - 1),
    (str, ..., ""), (str, None, None), (str, "ü", "ü"), (np.dtypes.StringDType(), 0, ""),
])
def test_fill_value(dtype, fill_value, written):
    """V2-FV-01 to V2-FV-10"""
    assert members(4, dtype, 2, fill_value)["fill_value"] == written


def test_types_are_stored_in_canonical_form():
    """V2-DT-01, V2-ST-01"""
    order = np.dtype(float).str[0]
    for given, stored in (("i4", f"{order}i4"), (float, f"{order}f8"), (bool, "|b1"), ("M8[ns]", f"{order}M8[ns]"),
                          (">u2", ">u2"), ([("a", "i2", (2,))], [["a", f"{order}i2", [2]]]), (str, "|O")):
        assert members(4, given, 2)["dtype"] == stored


@pytest.mark.parametrize("dtype", [np.longdouble, [("a", object)]])
def test_type_without_portable_bytes_is_unsupported(dtype):
    """V2-DT-03, V2-ST-05"""
    with pytest.raises(UnsupportedError):
        zarr_v2.new_array(4, dtype)


def test_objects():
    """V2-OBJ-01, V2-FV-10"""
    assert members(4, str, 2, compressors=None)["filters"] == [{"id": "vlen-utf8"}]
    found = members(4, object, 2, filters=[{"id": "vlen-bytes"}, {"id": "crc32"}])
    assert (found["dtype"], found["fill_value"]) == ("|O", "")
    found = members(4, object, 2, serializer=CodecSpec("numcodecs.json2"), fill_value=["a"], compressors=None)
    assert (found["filters"], found["fill_value"]) == ([{"id": "json2"}], ["a"])
    assert members(4, str, 2, filters=[{"id": "json2"}])["filters"] == [{"id": "json2"}]
    with pytest.raises(ValueError, match="objects need a codec"):
        zarr_v2.new_array(4, object)
    with pytest.raises(UnsupportedError, match="pickle"):
        zarr_v2.new_array(4, object, filters=[{"id": "pickle"}])


@pytest.mark.parametrize("dtype", [bytes, "bytes"])
def test_bytes_of_any_length(dtype):
    """V2-OBJ-01: as `str` is text of any length, and as in Zarr v3."""
    found = members(4, dtype, 2, compressors=None)
    assert (found["dtype"], found["filters"], found["fill_value"]) == ("|O", [{"id": "vlen-bytes"}], "")
    assert members(4, dtype, 2, fill_value=b"ab")["fill_value"] == "YWI="
    assert members(4, dtype, 2, filters=[{"id": "json2"}])["filters"] == [{"id": "json2"}]


def test_attributes_are_part_of_the_value_alone():
    """V2-ATT-01"""
    array = zarr_v2.new_array(4, "<i4", attributes={"a": 1})
    assert array.attributes == {"a": 1} and b"attributes" not in zarr_v2.render_array(array)
    assert zarr_v2.new_group({"a": 1}).attributes == {"a": 1}


@each(("settings", "error"), [
    ({"shards": (4,)}, ValueError), ({"dimension_names": ("x",)}, ValueError), ({"compressors": "delta"}, ValueError),
    ({"compressors": {"name": "zlib"}}, ValueError), ({"compressors": {}}, TypeError), ({"filters": 5}, TypeError),
    ({"compressors": {"id": "zlib", "level": 99}}, ValueError), ({"fill_value": "x"}, ValueError),
    ({"fill_value": 2**31}, ValueError), ({"chunks": 0}, ValueError),
    ({"filters": [{"id": "vlen-utf8"}]}, ValueError),
])
def test_what_the_format_cannot_hold_is_refused_at_create(settings, error):
    with pytest.raises(error):
        zarr_v2.new_array(**{"shape": (4,), "dtype": "<i4", "chunks": (2,), **settings})


def test_chunk_of_blosc_is_limited():
    limit = (2**31 - 1 - 16) // 4
    assert zarr_v2.new_array(2**40, "<i4", limit).chunk_shape == (limit,)
    with pytest.raises(ValueError, match="limit of blosc"):
        zarr_v2.new_array(2**40, "<i4", limit + 1)
    assert zarr_v2.new_array(2**40, "<i4", limit + 1, compressors=None).chunk_shape == (limit + 1,)


@pytest.mark.parametrize("codec", [{"id": "zstd", "configuration": {"level": 3}}, {"id": "zlib", "depth": 3}])
def test_codecs_have_no_other_parameters(codec):
    with pytest.raises(TypeError, match=f"codec '{codec['id']}' has no parameter '{[*codec][1]}'"):
        zarr_v2.new_array((1,), "i4", (1,), compressors=codec)
