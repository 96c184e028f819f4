"""What a new Zarr v3 array gets, from what is said and what is left open."""
import json

import numpy as np
import pytest

from tests.each import each
from zcore.codecs import BloscCodec, Crc32cCodec
from zcore.formats import format_of
from zcore.formats.codec_specs import BLOSC_DEFAULTS
from zcore.model.chunk_keys import ChunkKeyEncoding
from zcore.model.metadata import CodecSpec

zarr_v3 = format_of(3)

CRC32C = CodecSpec("crc32c")
LITTLE = CodecSpec("bytes", {"endian": "little"})
GZIP = {"name": "gzip", "configuration": {"level": 1}}


def new(shape=(100, 100), dtype="<f4", chunks=(10, 20), **keywords):
    """Return the metadata of a new array, once it has been through its document."""
    array = zarr_v3.new_array(shape, dtype, chunks, **keywords)
    assert zarr_v3.parse_array(zarr_v3.render_array(array), "x") == array
    return array


def blosc(typesize, shuffle, **changes):
    return CodecSpec("blosc", {"typesize": typesize, **BLOSC_DEFAULTS, "shuffle": shuffle, "blocksize": 0, **changes})


@each(("dtype", "serializer", "typesize", "shuffle"), [
    ("<f4", LITTLE, 4, "shuffle"), (">i8", CodecSpec("bytes", {"endian": "big"}), 8, "shuffle"),
    ("u1", CodecSpec("bytes"), 1, "bitshuffle"), ("?", CodecSpec("bytes"), 1, "bitshuffle"),
    ("S300", CodecSpec("bytes"), 1, "shuffle"), ("<U5", LITTLE, 20, "shuffle"), ("<c16", LITTLE, 16, "shuffle"),
    ([("a", "i1"), ("b", "S2")], LITTLE, 3, "shuffle"), ([("a", "<i2"), ("b", ">f8")], LITTLE, 10, "shuffle"),
    (str, CodecSpec("vlen-utf8"), 1, "noshuffle"), (bytes, CodecSpec("vlen-bytes"), 1, "noshuffle"),
])
def test_default_chain(dtype, serializer, typesize, shuffle):
    """V3-BLOSC-01, V3-BLOSC-03, V3-BYTES-03, V3-XDT-01, V3-XDT-02"""
    array = new(dtype=dtype)
    assert array.codecs == (serializer, blosc(typesize, shuffle), CRC32C)
    assert (array.chunk_shape, array.attributes, array.dimension_names) == ((10, 20), {}, None)
    assert array.chunk_keys == ChunkKeyEncoding.v3("/")


@each(("dtype", "fill_value"), [
    ("i4", 0), ("f8", 0.0), ("?", False), ("U3", ""), ("S3", b""), (str, ""), (bytes, b""), ("c8", 0j),
])
def test_default_fill_value_is_recorded(dtype, fill_value):
    """V3-META-07, V3-PY-06"""
    for array in (new(dtype=dtype), new(dtype=dtype, fill_value=None)):
        assert array.fill_value == fill_value and array.fill_value is not None
        assert json.loads(zarr_v3.render_array(array))["fill_value"] is not None


def test_default_fill_value_of_dates_is_nat():
    """V3-PY-06"""
    assert np.isnat(new(dtype="M8[ns]").fill_value) and np.isnat(new(dtype="m8[s]").fill_value)
    assert new(dtype="M8[D]", fill_value=0).fill_value == np.datetime64(0, "D")


@each(("dtype", "given", "stored"), [
    ("f4", float("nan"), "NaN"), ("f8", -0.0, -0.0), ("u8", 2**64 - 1, 2**64 - 1), ("M8[s]", np.datetime64(5, "s"), 5),
    (str, np.str_("é"), "é"), (bytes, bytearray(b"a"), "YQ=="),
    ("f4", np.array(0x7fc00001, "u4").view("f4")[()], "0x7fc00001"),
    ([("a", "i1"), ("b", "f4")], {"b": 1.5, "a": 2}, {"a": 2, "b": 1.5}),
    ([("a", "i1"), ("b", "f4")], (2, 1.5), {"a": 2, "b": 1.5}),
    ("V2", b"\0\1", "AAE="), ("r16", b"\0\1", [0, 1]), ("binary", b"a", "YQ=="),
])
def test_fill_value_that_is_given(dtype, given, stored):
    """V3-FV-05, V3-FV-06, V3-XDT-05"""
    assert json.loads(zarr_v3.render_array(new(dtype=dtype, fill_value=given)))["fill_value"] == stored


@each(("dtype", "fill_value"), [
    ("i1", 200), ("i1", 0.5), ("f4", 1e39), (str, 5), (bytes, "a"), ([("a", "i1")], {"b": 1}), ("S1", "ab"),
    (str, "\ud800"),
])
def test_fill_value_that_the_type_does_not_hold(dtype, fill_value):
    """V3-META-07"""
    with pytest.raises(ValueError):
        new(dtype=dtype, fill_value=fill_value)


def test_compressors():
    assert new(compressors=None).codecs == (LITTLE, CRC32C)
    assert new(compressors=(), checksum=False).codecs == (LITTLE,)
    assert new(checksum=False).codecs == (LITTLE, blosc(4, "shuffle"))
    assert new(compressors=GZIP).codecs == (LITTLE, CodecSpec("gzip", {"level": 1}), CRC32C)
    assert new(compressors=[GZIP, "crc32c"]).codecs == (LITTLE, CodecSpec("gzip", {"level": 1}), CRC32C)
    assert new(compressors=CodecSpec("zstd", {"level": 3})).codecs[1] == CodecSpec("zstd", {"level": 3})
    assert new(compressors=BloscCodec(cname="lz4", clevel=1)).codecs[1] == blosc(4, "shuffle", cname="lz4", clevel=1)
    assert new(compressors={"name": "blosc", "configuration": {"shuffle": 2}}).codecs[1] == blosc(4, "bitshuffle")
    with pytest.raises(TypeError, match="expected a codec, such as"):
        new(compressors=5)


def test_order_f_is_a_transpose():
    """V3-TRANS-03, D3-MEM-03, D3-MEM-05, D3-MEM-06, V3-PY-08"""
    assert new(order="F").codecs[0] == CodecSpec("transpose", {"order": [1, 0]})
    assert new((7,), chunks=(2,), order="F").codecs[0] == LITTLE
    with pytest.raises(ValueError, match="whose items vary in length"):
        new(dtype=str, order="F")
    with pytest.raises(ValueError, match="order"):
        new(order="K")


def test_filters_and_serializer():
    """V3-COD-01"""
    bitround = {"name": "bitround", "configuration": {"keepbits": 3}}
    array = new(order="F", filters=[bitround], serializer={"name": "bytes", "configuration": {"endian": "big"}})
    assert [codec.name for codec in array.codecs] == ["transpose", "bitround", "bytes", "blosc", "crc32c"]
    assert array.dtype == np.dtype(">f4")
    with pytest.raises(ValueError, match="'vlen-utf8' cannot store"):
        new(serializer="vlen-utf8")


def test_codecs_are_taken_as_they_are():
    big = CodecSpec("bytes", {"endian": "big"})
    array = new(codecs=(big, Crc32cCodec(), GZIP))
    assert array.codecs == (big, CRC32C, CodecSpec("gzip", {"level": 1})) and array.dtype == np.dtype(">f4")
    for other in ({"order": "F"}, {"filters": []}, {"serializer": LITTLE}, {"compressors": None}, {"shards": (10, 20)}):
        with pytest.raises(ValueError, match="codecs= is the whole chain"):
            new(codecs=(big,), **other)
    with pytest.raises(ValueError, match="'endian'"):
        new(codecs=["bytes"])


def test_shards():
    """V3-SHARD-01, V3-SHARD-05, V3-PY-02: a checksum behind every inner chunk and the index, none around the shard."""
    array = new(shards=(20, 40), order="F")
    assert array.chunk_shape == (20, 40)
    (sharding,) = array.codecs
    assert sharding.configuration == {
        "chunk_shape": [10, 20], "index_location": "end",
        "codecs": [{"name": "transpose", "configuration": {"order": [1, 0]}},
                   {"name": "bytes", "configuration": {"endian": "little"}},
                   {"name": "blosc", "configuration": blosc(4, "shuffle").configuration}, {"name": "crc32c"}],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
    }
    plain = new(shards={"shape": (20, 40), "index_location": "start"}, compressors=None, checksum=False)
    assert plain.codecs[0].configuration["index_location"] == "start"
    assert [codec["name"] for codec in plain.codecs[0].configuration["codecs"]] == ["bytes"]
    big = new(shards=(20, 40), dtype=">f4")
    assert big.codecs[0].configuration["codecs"][0]["configuration"] == {"endian": "big"}
    nested = new(serializer=array.codecs[0], chunks=(20, 40), compressors=None)
    assert nested.codecs == array.codecs


@each("shards", [True, (0, 1), (1, 2, 3), (1,), (1.5, 2), [[1, 2], 3]])
def test_an_error_about_shards_speaks_of_shards(shards):
    with pytest.raises((ValueError, TypeError), match="^shards: expected"):
        new((10, 10), "<f4", (5, 5), shards=shards)


@each(("shape", "chunks", "shards", "inner", "outer"), [
    ((100, 100), (10, 20), -1, (10, 20), (100, 100)), ((95, 100), (10, 20), (-1, 40), (10, 20), (100, 40)),
    ((95, 100), 10, (20, -1), (10, 10), (20, 100)), ((0, 5), (3, 5), -1, (3, 5), (3, 5)),
    ((16, 16), (9, 9), (None, -1), (9, 9), (18, 18)), ((16, 16), (9, 9), "4 MB", (9, 9), (18, 18)),
    ((16, 16), (9, 9), "auto", (9, 9), (18, 18)), ((), (), (), (), ()),
    ((8192, 8192), None, (4096, 4096), (512, 512), (4096, 4096)), ((100, 100), (10, 20), "8 kB", (10, 20), (30, 60)),
    ((100, 100), (10, 20), "auto", (10, 20), (100, 100)), ((2**20,), None, (10**6,), (250000,), (10**6,)),
])
def test_shapes_of_shards(shape, chunks, shards, inner, outer):
    """V3-SHARD-02"""
    array = new(shape, "<f4", chunks, shards=shards)
    assert tuple(array.codecs[0].configuration["chunk_shape"]) == inner
    assert all(n % m == 0 for n, m in zip(array.chunk_shape, inner, strict=True))
    assert array.chunk_shape == outer


@each("keywords", [
    {"shards": (15, 20)}, {"shards": (5, 20)}, {"shape": (16, 16), "chunks": (9, 9), "shards": (16, 16)},
    {"shape": (16, 16), "chunks": (9, 9), "shards": iter((16, 16))}, {"shape": 16, "chunks": 9, "shards": 16},
    {"shape": (0,), "chunks": (2,), "shards": (1,)}, {"shards": (20, 40, 2)}, {"shards": {"shape": (20, 40), "x": 1}},
    {"shards": {}}, {"shards": {"shape": (20, 40), "index_location": "middle"}}, {"shards": "many"},
    {"shape": (999983 * 4,), "chunks": None, "shards": (999983 * 2 + 1,)}, {"chunk_key_encoding": "v1"},
    {"chunk_key_encoding": ChunkKeyEncoding.zmeta()}, {"chunk_key_encoding": {"name": "v2", "separator": "-"}},
    {"dimension_names": ["a"]}, {"shape": (2**20, 2**20), "chunks": (2**16, 2**16)}, {"chunks": (0, 1)},
    {"shape": (-1, 3)},
])
def test_what_cannot_be_made(keywords):
    """V3-SHARD-02, V3-KEY-03, D3-KEY-11, V3-META-22, V3-GRID-01"""
    with pytest.raises((ValueError, NotImplementedError)):
        new(**keywords)


@pytest.mark.parametrize(("encoding", "expected"), [
    ("v2", ChunkKeyEncoding.v2(".")), ({"name": "v2", "separator": "/"}, ChunkKeyEncoding.v2("/")),
    ({"name": "default", "configuration": {"separator": "."}}, ChunkKeyEncoding.v3(".")),
    (ChunkKeyEncoding.v2("/"), ChunkKeyEncoding.v2("/")),
])
def test_chunk_keys(encoding, expected):
    """V3-KEY-01, V3-KEY-02"""
    assert new(chunk_key_encoding=encoding).chunk_keys == expected


def test_other_members():
    """V3-META-20, V3-META-22"""
    attributes = {"a": [1]}
    array = new(attributes=attributes, dimension_names=["x", None])
    assert (array.attributes, array.dimension_names) == (attributes, ("x", None)) and array.attributes is not attributes
    assert new(5, "i1", 2).shape == (5,) and new((), "i1", ()).n_chunks == 1


def test_automatic_chunks_of_a_size():
    """V3-GRID-01"""
    array = new((10000, 10000), "f8", "auto")
    assert 2**19 < array.chunk_nbytes <= 2**20
    assert new((10000, 10000), "f8", "4 MB").chunk_nbytes <= 4_000_000
