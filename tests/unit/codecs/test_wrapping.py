"""`n5_default` and `conditional`: blocks and chunks made byte by byte from their descriptions."""
import gzip
import json
import struct

import numpy as np
import pytest

import zcore
from tests.each import each
from zcore.codecs.chain import codec_of
from zcore.errors import ChunkError, CodecError, MetadataError

NUMBERS = np.arange(35, dtype="<i4").reshape(5, 7) * 1000


def zipped(data):
    return gzip.compress(data, mtime=0)


def n5(endian="big", *compressors, ndim=2):
    return {"name": "n5_default", "configuration": {"codecs": [
        {"name": "transpose", "configuration": {"order": list(range(ndim))[::-1]}},
        {"name": "bytes", "configuration": {"endian": endian} if endian else {}}, *compressors]}}


def document(*codecs, shape=(5, 7), chunks=(3, 4), data_type="int32", **members):
    return {"zarr_format": 3, "node_type": "array", "shape": list(shape), "data_type": data_type,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunks)}},
            "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}}, "fill_value": 0,
            "codecs": list(codecs), "attributes": {}, **members}


def opened(*codecs, mode="r+", objects=None, **members):
    store = zcore.MemoryStore({"zarr.json": json.dumps(document(*codecs, **members)).encode(), **(objects or {})})
    return zcore.open(store, mode), store


def padded(part, shape):
    whole = np.zeros(shape, part.dtype)
    whole[tuple([slice(n) for n in part.shape])] = part
    return whole


def blocks_of(numbers, compress=bytes, is_cut=False, chunks=(3, 4)):
    """The blocks of N5: mode, number of dimensions and shape, then big-endian numbers, the first index the fastest."""
    objects = {}
    for i in range(-(-numbers.shape[0] // chunks[0])):
        for j in range(-(-numbers.shape[1] // chunks[1])):
            part = numbers[chunks[0] * i:chunks[0] * (i + 1), chunks[1] * j:chunks[1] * (j + 1)]
            part = part if is_cut else padded(part, chunks)
            header = struct.pack(">HH2I", 0, 2, *part.shape)
            objects[f"{i}/{j}"] = header + compress(part.astype(part.dtype.newbyteorder(">")).tobytes("F"))
    return objects


GZIP = {"name": "gzip", "configuration": {"level": 5}}


@pytest.mark.parametrize("is_cut", [True, False])
@pytest.mark.parametrize("compressors, compress", [((), bytes), ((GZIP,), zipped)], ids=["raw", "gzip"])
@pytest.mark.parametrize("data_type", ["int32", "uint64", "float32", "float64", "int8"])
def test_blocks_of_n5_are_read(is_cut, compressors, compress, data_type):
    """V3-XC-09: at the border they may be cut off, as by Java, or padded, as by tensorstore."""
    numbers = (NUMBERS % 100).astype(data_type)
    array, _ = opened(n5("big" if data_type != "int8" else None, *compressors), data_type=data_type,
                      objects=blocks_of(numbers, compress, is_cut))
    np.testing.assert_array_equal(array[...], numbers)
    np.testing.assert_array_equal(array[::-2, 5], numbers[::-2, 5])


@pytest.mark.parametrize("compressors", [(), (GZIP,)], ids=["raw", "gzip"])
def test_blocks_of_n5_are_written(compressors):
    """V3-XC-09"""
    array, store = opened(n5("big", *compressors))
    array[...] = NUMBERS
    array[1, 1:6] = expected = NUMBERS[1, 1:6] + 1
    numbers = NUMBERS.copy()
    numbers[1, 1:6] = expected
    for key, raw in blocks_of(numbers).items():
        found = store.get(key)
        assert found[:12] + (gzip.decompress(found[12:]) if compressors else found[12:]) == raw
    np.testing.assert_array_equal(zcore.open(store)[...], numbers)
    assert json.loads(store.get("zarr.json"))["codecs"] == [n5("big", *compressors)]


@pytest.mark.parametrize("compression, compressor", [({"type": "raw"}, ()), ({"type": "gzip"}, (GZIP,))],
                         ids=["raw", "gzip"])
def test_arrays_of_n5_are_those_of_tensorstore(tmp_path, compression, compressor):
    """V3-XC-09"""
    tensorstore = pytest.importorskip("tensorstore")
    spec = {"driver": "n5", "kvstore": {"driver": "file", "path": str(tmp_path)}, "metadata": {
        "dimensions": [5, 7], "blockSize": [3, 4], "dataType": "int32", "compression": compression}}
    theirs = tensorstore.open(spec, create=True).result()
    theirs[...] = NUMBERS
    (tmp_path / "zarr.json").write_text(json.dumps(document(n5("big", *compressor))))
    ours = zcore.open(tmp_path, "r+")
    np.testing.assert_array_equal(ours[...], NUMBERS)
    ours[2:, 3:] = -1
    again = tensorstore.open({name: spec[name] for name in ("driver", "kvstore")}).result().read().result()
    np.testing.assert_array_equal(again, ours[...])


@each("damage, match", [
    (b"", "its header alone needs 12"), (bytes(11), "its header alone needs 12"),
    (struct.pack(">HH2I", 1, 2, 3, 4) + bytes(48), "mode 1 and 2 dimensions, expected mode 0 and 2"),
    (struct.pack(">HH2I", 0, 3, 3, 4) + bytes(48), "mode 0 and 3 dimensions"),
    (struct.pack(">HH2I", 0, 2, 3, 4) + bytes(47), None), (struct.pack(">HH2I", 0, 2, 3, 4) + bytes(49), None),
    (struct.pack(">HH2I", 0, 2, 0, 4), "says the shape"),
    (struct.pack(">HH2I", 0, 2, 2**32 - 1, 2**32 - 1) + bytes(48), "says the shape"),
    (struct.pack(">HH2I", 0, 2, 2**24, 1) + bytes(48), None),
])
def test_a_damaged_block_of_n5(damage, match):
    """V3-XC-09"""
    array, _ = opened(n5(), objects={"0/0": damage})
    with pytest.raises(ChunkError, match=match):
        array[0]


def test_a_longer_block_of_n5_is_cut_off():
    array, _ = opened(n5(), objects=blocks_of(NUMBERS, chunks=(5, 7)))
    np.testing.assert_array_equal(array[:3, :4], NUMBERS[:3, :4])


LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
TURN = {"name": "transpose", "configuration": {"order": [1, 0]}}


@each("codecs, data_type", [
    ([], "int32"), ([BIG], "int32"), ([TURN, LITTLE], "int32"), ([TURN, "bytes"], "int32"),
    ([TURN, BIG, GZIP, GZIP], "int32"),
    ([{"name": "transpose", "configuration": {"order": [0, 1]}}, BIG], "int32"), ([TURN, BIG], "float16"),
    ([TURN, BIG], "complex64"), ([TURN, BIG, TURN], "int32"), ("gzip", "int32"),
])
def test_what_n5_does_not_have(codecs, data_type):
    """V3-XC-09"""
    members = {"fill_value": [0, 0]} if data_type == "complex64" else {}
    with pytest.raises(MetadataError):
        opened({"name": "n5_default", "configuration": {"codecs": codecs}}, data_type=data_type, **members)
    for configuration in ({}, {"codecs": [TURN, BIG], "x": 1}):
        with pytest.raises(MetadataError):
            opened({"name": "n5_default", "configuration": configuration})


def conditional(*codecs, **more):
    return {"name": "conditional", "configuration": {"codecs": list(codecs), **more}}


SHUFFLE = {"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}}
CHUNK = np.arange(1000, dtype="<i4")


@pytest.mark.parametrize("mask, stored", [
    (0b00, CHUNK.tobytes()), (0b01, CHUNK.view("u1").reshape(-1, 4).T.tobytes()),
    (0b10, zipped(CHUNK.tobytes())),
    (0b11, zipped(CHUNK.view("u1").reshape(-1, 4).T.tobytes())),
])
@pytest.mark.parametrize("header_bits", [None, 8, 24])
def test_the_bits_of_a_conditional_chunk(mask, stored, header_bits):
    """V3-XC-09"""
    more = {} if header_bits is None else {"header_bits": header_bits}
    array, _ = opened(LITTLE, conditional(SHUFFLE, GZIP, **more), shape=[1000], chunks=[1000],
                      objects={"0": mask.to_bytes((header_bits or 8) // 8, "little") + stored})
    np.testing.assert_array_equal(array[...], CHUNK)
    np.testing.assert_array_equal(array[5:900:7], CHUNK[5:900:7])


def test_a_conditional_chunk_is_encoded_if_that_makes_it_shorter():
    """V3-XC-09"""
    array, store = opened(LITTLE, conditional(SHUFFLE, GZIP), "crc32c", shape=[1000], chunks=[1000])
    array[...] = CHUNK
    raw = store.get("0")
    assert raw[0] == 0b11 and len(raw) < 2000
    assert gzip.decompress(raw[1:-4]) == CHUNK.view("u1").reshape(-1, 4).T.tobytes()
    noise = np.random.default_rng(0).integers(-2**31, 2**31, 1000).astype("<i4")
    array[...] = noise
    assert store.get("0")[:-4] == b"\0" + noise.tobytes()
    np.testing.assert_array_equal(zcore.open(store)[...], noise)


@pytest.mark.parametrize("wrap", [lambda codec: [LITTLE, conditional(codec)], lambda codec: [n5("big", codec, ndim=1)]],
                         ids=["conditional", "n5_default"])
def test_blosc_inside_may_name_another_item_size(wrap):
    """V3-XC-09, V3-BLOSC-01: its default is that of the array, and 1 behind a header of bytes."""
    blosc = {"name": "blosc", "configuration": {"cname": "zstd", "clevel": 5, "shuffle": "shuffle", "typesize": 8,
                                                "blocksize": 0}}
    array, store = opened(*wrap(blosc), shape=[1000], chunks=[1000])
    array[...] = CHUNK
    other = {"name": "blosc", "configuration": {**blosc["configuration"], "typesize": 2}}
    reader, _ = opened(*wrap(other), shape=[1000], chunks=[1000], objects={"0": store.get("0")})
    np.testing.assert_array_equal(reader[...], CHUNK)


def test_conditional_chunks_in_shards():
    """V3-XC-09"""
    shards = {"name": "sharding_indexed", "configuration": {"chunk_shape": [100], "codecs": [
        LITTLE, conditional(SHUFFLE, GZIP)], "index_codecs": [LITTLE, "crc32c"]}}
    array, store = opened(shards, shape=[1000], chunks=[500])
    expected = np.concatenate([CHUNK[:300], np.random.default_rng(0).integers(-2**31, 2**31, 700)]).astype("<i4")
    array[...] = expected
    array[250:350] = expected[250:350]
    np.testing.assert_array_equal(zcore.open(store)[...], expected)


@each("damage, match", [
    (b"", "its header alone needs 1"), (b"\4" + CHUNK.tobytes(), "names codec 2, there are 2"),
    (b"\x80" + CHUNK.tobytes(), "names codec 7"), (b"\0" + CHUNK.tobytes()[1:], "content has 3999 bytes"),
    (b"\0" + CHUNK.tobytes() + b"x", "content has 4001 bytes"), (b"\2" + zipped(bytes(5000)), "4000"),
    (b"\2" + zipped(bytes(5000))[:-1], None), (b"\1" + bytes(3999), None),
])
def test_a_damaged_conditional_chunk(damage, match):
    """V3-XC-09"""
    codec = codec_of("conditional", {"codecs": [SHUFFLE, GZIP]})
    with pytest.raises(CodecError, match=match):
        codec.decode(damage, 4000)
    array, _ = opened(LITTLE, conditional(SHUFFLE, GZIP), shape=[1000], chunks=[1000], objects={"0": damage})
    with pytest.raises(ChunkError):
        array[...]


@each("configuration", [
    {}, {"codecs": []}, {"codecs": "gzip"}, {"codecs": [LITTLE]}, {"codecs": [GZIP], "header_bits": 7},
    {"codecs": [GZIP] * 9, "header_bits": 8}, {"codecs": [GZIP], "header_bits": "8"}, {"codecs": [GZIP], "x": 1},
    {"codecs": [{"name": "gzip", "configuration": {"level": 99}}]},
], ids=str)
def test_what_conditional_does_not_take(configuration):
    """V3-XC-09"""
    with pytest.raises((MetadataError, zcore.UnsupportedError)):
        opened(LITTLE, {"name": "conditional", "configuration": configuration}, shape=[1000], chunks=[1000])


@pytest.mark.parametrize("name, kwargs", [("n5_default", n5("big", GZIP)["configuration"]),
                                          ("conditional", conditional(GZIP, header_bits=16)["configuration"])])
def test_new_arrays_take_them(name, kwargs):
    """V3-XC-09"""
    spec = {"name": name, "configuration": kwargs}
    keywords = {"serializer": spec, "compressors": None} if name == "n5_default" else {"compressors": spec}
    store = zcore.MemoryStore()
    array = zcore.create_array(store, shape=(5, 7), chunks=(3, 4), dtype="i4", checksum=False, **keywords)
    array[...] = NUMBERS
    np.testing.assert_array_equal(zcore.open(store)[...], NUMBERS)
    assert spec in json.loads(store.get("zarr.json"))["codecs"]
