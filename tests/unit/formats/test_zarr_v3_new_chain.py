"""The chain of a new Zarr v3 array: what is completed inside shards, and what stands behind them."""
import json

import numpy as np
import pytest

import zcore
from zcore.codecs import BloscCodec, BytesCodec, GzipCodec, ShardingCodec
from zcore.formats.zarr_v3_new_chain import specs_of

F8 = np.dtype("<f8")
CAST = {"name": "cast_value", "configuration": {"data_type": "int16"}}


def shards_of(*codecs):
    return ShardingCodec(chunk_shape=(1, 1), codecs=[*codecs, BytesCodec(), BloscCodec()])


def innermost_blosc(codecs):
    """Return the configuration of the last codec, of the innermost shard if these are any."""
    if codecs[-1]["name"] == "sharding_indexed":
        return innermost_blosc(codecs[-1]["configuration"]["codecs"])
    assert codecs[-1]["name"] == "blosc"
    return codecs[-1]["configuration"]


@pytest.mark.parametrize(("settings", "typesize", "shuffle"), [
    ({"dtype": "i4", "serializer": shards_of()}, 4, "shuffle"),
    ({"dtype": "u1", "serializer": shards_of()}, 1, "bitshuffle"),
    ({"dtype": "i4", "codecs": [shards_of()]}, 4, "shuffle"),
    ({"dtype": "i4", "codecs": [shards_of().spec()]}, 4, "shuffle"),
    ({"dtype": "i4", "codecs": [ShardingCodec(chunk_shape=(1, 1), codecs=[shards_of()])]}, 4, "shuffle"),
    ({"dtype": "f8", "codecs": [CAST, shards_of()]}, 2, "shuffle"),
    ({"dtype": "f8", "serializer": shards_of(CAST)}, 2, "shuffle"),
    ({"dtype": "f8", "codecs": [CAST, BytesCodec(), BloscCodec()]}, 2, "shuffle"),
])
def test_blosc_is_completed_by_the_items_that_it_gets(settings, typesize, shuffle):
    """V3-BLOSC-03"""
    store = zcore.MemoryStore()
    values = np.arange(16).reshape(4, 4)
    zcore.create_array(store, shape=(4, 4), chunks=(2, 2), **settings)[...] = values
    found = innermost_blosc(json.loads(store.get("zarr.json"))["codecs"])
    assert (found["typesize"], found["shuffle"]) == (typesize, shuffle)
    assert np.array_equal(zcore.open(store)[...], values)


def test_behind_shards_stands_what_is_asked_for_and_nothing_else():
    store = zcore.MemoryStore()
    for settings, names in (({}, []), ({"compressors": None}, []), ({"compressors": GzipCodec(level=1)}, ["gzip"])):
        a = zcore.create_array(store, shape=(4, 4), chunks=(2, 2), dtype="i4", serializer=shards_of(), overwrite=True,
                               **settings)
        assert [codec.name for codec in a.codecs] == ["sharding_indexed", *names]
        assert (a.chunks, a.shards) == ((1, 1), (2, 2))


def test_shards_of_zarr_python():
    theirs = pytest.importorskip("zarr.codecs")
    serializer = theirs.ShardingCodec(chunk_shape=(2, 2), codecs=[theirs.BytesCodec(), theirs.ZstdCodec(level=3)])
    a = zcore.create_array(zcore.MemoryStore(), shape=(8, 8), chunks=(4, 4), dtype="i4", serializer=serializer)
    a[...] = 5
    assert a.chunks == (2, 2) and a.compressors[0].level == 3 and (a[...] == 5).all()


@pytest.mark.parametrize("configuration", [{}, {"codecs": 3}, {"codecs": []}, {"codecs": [3]}, 3, None])
def test_shards_that_are_not_described_are_refused(configuration):
    with pytest.raises((ValueError, TypeError)):
        zcore.create_array(zcore.MemoryStore(), shape=(4, 4), dtype="i4",
                           serializer={"name": "sharding_indexed", "configuration": configuration})


def test_one_codec_needs_no_list():
    assert specs_of("crc32c", F8, 2) == specs_of(["crc32c"], F8, 2)
