"""Codecs without a C form, and items of varying length: the same values and bytes, whoever opens the objects."""
import numpy as np
import pytest

import zcore
from tests.both_ways import WAYS, directory

SHAPE, CHUNKS = (19, 37), (8, 16)
LITTLE, BIG = ({"name": "bytes", "configuration": {"endian": endian}} for endian in ("little", "big"))
TEXT = np.array(["", "a", "b\u00e9", "longer text"], np.dtypes.StringDType())


def codec(name, **configuration):
    return {"name": name, "configuration": configuration}


ZSTD, CRC = codec("zstd", level=0, checksum=False), {"name": "crc32c"}
LZMA, DELTA = codec("numcodecs.lzma", preset=1), codec("numcodecs.delta", dtype="<i4")
TURNED = codec("transpose", order=[1, 0])


def shard(side, codecs, index_codecs=(LITTLE, CRC), location="end"):
    return codec("sharding_indexed", chunk_shape=[side, side], codecs=codecs, index_codecs=list(index_codecs),
                 index_location=location)


CHAINS = {
    "one": [LITTLE, LZMA],
    "in front of a checksum": [LITTLE, LZMA, CRC],
    "between steps in C": [LITTLE, ZSTD, LZMA, ZSTD],
    "more than a program has": [LITTLE, *[CRC] * 11],
    "more filters than a program has": [*[DELTA] * 9, LITTLE, CRC],
    "more filters than a program has, in shards": [shard(4, [*[DELTA] * 9, LITTLE, CRC])],
    "of elements": [DELTA, TURNED, LITTLE, ZSTD],
    "of chunks in shards": [shard(4, [LITTLE, LZMA])],
    "of a turned index": [shard(4, [BIG], [codec("transpose", order=[2, 0, 1]), BIG, CRC], "start")],
    "before shards": [DELTA, shard(4, [LITTLE, codec("gzip", level=1)])],
    "behind shards": [shard(4, [LITTLE]), LZMA],
    "shards four deep": [shard(8, [shard(4, [shard(2, [shard(1, [LITTLE])])])])],
    "turned around shards": [TURNED, shard(4, [TURNED, LITTLE, ZSTD])],
}
ARRAYS = {
    **{name: {"codecs": codecs} for name, codecs in CHAINS.items()},
    "chunks that differ": {"codecs": [LITTLE, LZMA], "chunks": [[3, 5, 11], 16]},
    "elements of chunks that differ": {"codecs": [DELTA, TURNED, LITTLE], "chunks": [[3, 5, 11], 16]},
    "text": {"dtype": str},
    "text in shards": {"dtype": str, "chunks": (4, 8), "shards": (8, 16)},
    "text in turned shards": {"dtype": str, "codecs": [TURNED, shard(4, [{"name": "vlen-utf8"}, ZSTD])],
                              "fill_value": "x"},
}


def live(array, rng):
    """Write, read, cut and grow an array beside a NumPy one."""
    model = array[...]
    for k in range(10):
        rows, columns = sorted(rng.integers(0, 20, 2)), sorted(rng.integers(0, 38, 2))
        selection = slice(rows[0], rows[1], int(rng.integers(1, 3))), slice(*columns)
        if k % 4 == 3:
            selection = rng.integers(0, 19, 5), rng.integers(0, 37, 5)
        shape = model[selection].shape
        values = TEXT[rng.integers(0, 4, shape)] if model.dtype.kind == "T" else rng.integers(0, 3, shape) * 7
        model[selection] = array[selection] = values
        assert (array[...] == model).all()
        lists = rng.integers(0, 19, 4)[:, None], rng.integers(0, 37, 3)
        assert (array[lists] == model[lists]).all()
        assert (array[3:17:4, ::-5] == model[3:17:4, ::-5]).all()
    array.resize((11, 23))
    array.resize(SHAPE)
    cut = np.full(SHAPE, array.fill_value, model.dtype)
    cut[:11, :23] = model[:11, :23]
    assert (array[...] == cut).all()


@pytest.mark.parametrize("keywords", ARRAYS.values(), ids=ARRAYS)
def test_every_way_gives_the_same_bytes(tmp_path, keywords):
    found = []
    for store in (*[directory(tmp_path / way, way) for way in WAYS], zcore.MemoryStore()):
        array = zcore.create_array(store, **{"shape": SHAPE, "dtype": "i4", "chunks": CHUNKS, **keywords})
        live(array, np.random.default_rng(0))
        found.append({key: store.get(key) for key in store.list() if key != "zarr.json"})
    assert found[0] and found[0] == found[1] == found[2]


def test_what_a_codec_raises_says_where(tmp_path):
    array = zcore.create_array(tmp_path, shape=(4, 4), chunks=(2, 2), dtype="i4", codecs=[LITTLE, LZMA])
    array[...] = 5
    (tmp_path / "c" / "1" / "0").write_bytes(b"no stream")
    with pytest.raises(zcore.errors.CodecError, match="c/1/0: ") as caught:
        array[...]
    assert (caught.value.key, caught.value.chunk_coords, caught.value.codec) == ("c/1/0", (1, 0), "numcodecs.lzma")
    assert array[:2].tolist() == [[5] * 4] * 2


def test_any_exception_of_a_codec_ends_the_call(tmp_path, monkeypatch):
    """An exception that is none of zcore's comes out as it is, once, and the array works on."""
    array = zcore.create_array(tmp_path, shape=(64,), chunks=(2,), dtype="i4", codecs=[LITTLE, LZMA], threads=4)
    array[...] = 5
    codec_of = type(array._binding.chain.compressors[0])
    with monkeypatch.context() as patch:
        patch.setattr(codec_of, "decode", lambda *args: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            array[...]
        patch.setattr(codec_of, "encode", lambda *args: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            array[...] = 6
    assert (array[...] == 5).all()
