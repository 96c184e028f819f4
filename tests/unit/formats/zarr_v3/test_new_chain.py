"""The chain of a new Zarr v3 array: what is completed inside shards, and what stands behind them."""
import json

import numpy as np
import pytest

import zcore
from tests.each import each
from zcore.codecs import BloscCodec, BytesCodec, GzipCodec, ShardingCodec
from zcore.formats.zarr_v3.new_chain import specs_of

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


@each(("settings", "typesize", "shuffle"), [
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


@pytest.mark.parametrize("zarr_format", [3, 2, "zmeta"])
@pytest.mark.parametrize(("given", "found"), [
    ({}, (8, "shuffle")), ({"typesize": 2}, (2, "shuffle")), ({"shuffle": "noshuffle"}, (8, "noshuffle")),
    ({"typesize": 1, "shuffle": "bitshuffle"}, (1, "bitshuffle")),
])
def test_blosc_of_zarr_python_is_adapted_to_the_array(zarr_format, given, found):
    """What its object does not say has a value nonetheless, that of bytes."""
    theirs = pytest.importorskip("zarr.codecs").BloscCodec(cname="lz4", **given)
    if not hasattr(theirs, "_tunable_attrs"):
        pytest.skip("an older zarr-python")
    if zarr_format == "zmeta" and "typesize" in given:
        return  # its documents have no other than the array's
    values = np.arange(1000.0)
    a = zcore.create_array(zcore.MemoryStore(), data=values, zarr_format=zarr_format, compressors=theirs)
    assert (a.compressors[0].typesize, a.compressors[0].shuffle) == found and (a[...] == values).all()


def test_blosc_of_zarr_python_in_its_shards():
    theirs = pytest.importorskip("zarr.codecs")
    blosc = theirs.BloscCodec(cname="lz4")
    if not hasattr(blosc, "_tunable_attrs"):
        pytest.skip("an older zarr-python")
    serializer = theirs.ShardingCodec(chunk_shape=(2, 2), codecs=[theirs.BytesCodec(), blosc])
    for settings in ({"serializer": serializer}, {"codecs": [ShardingCodec(chunk_shape=(4, 4), codecs=[serializer])]}):
        a = zcore.create_array(zcore.MemoryStore(), shape=(8, 8), chunks=(4, 4), dtype="f8", **settings)
        found = innermost_blosc([{"name": codec.name, "configuration": codec.configuration}
                                 for codec in a.metadata.codecs])
        assert (found["typesize"], found["shuffle"]) == (8, "shuffle")


@each(("name", "given", "completed"), [
    ("delta", {}, {"dtype": "<f8", "astype": "<f8"}), ("delta", {"dtype": "<i8"}, {"astype": "<i8"}),
    ("fixedscaleoffset", {"offset": 0, "scale": 10}, {"dtype": "<f8", "astype": "<f8"}),
    ("quantize", {"digits": 3, "astype": "<f4"}, {"dtype": "<f8"}),
    ("astype", {"encode_dtype": "<f4"}, {"decode_dtype": "<f8"}), ("shuffle", {}, {"elementsize": 8}),
    ("shuffle", {"elementsize": 2}, {}), ("crc32", {}, {}),
])
def test_documents_say_all_that_readers_need_of_codecs_of_numcodecs(name, given, completed):
    """zarr-python has no default for these, or another one, and looks for a configuration that is empty."""
    if name in ("quantize", "astype"):
        pytest.importorskip("numcodecs")
    codec = {"name": f"numcodecs.{name}", "configuration": given}
    values = (np.arange(100) / 4).astype("<f8")
    store = zcore.MemoryStore()
    keyword = "compressors" if name in ("shuffle", "crc32") else "filters"
    zcore.create_array(store, data=values, **{keyword: [codec]})
    stored = [codec for codec in json.loads(store.get("zarr.json"))["codecs"] if codec["name"] == f"numcodecs.{name}"]
    assert given.items() | completed.items() <= stored[0]["configuration"].items()
    assert np.allclose(zcore.open(store)[...], values, atol=0.05)


def test_items_behind_a_codec_that_changes_them():
    pytest.importorskip("numcodecs")
    a = zcore.create_array(zcore.MemoryStore(), shape=8, dtype="f8", filters=[
        {"name": "numcodecs.astype", "configuration": {"encode_dtype": "<i2"}}, {"name": "numcodecs.delta"}])
    native = np.dtype("i2").str      # what a filter says of the order means nothing
    assert a.metadata.codecs[1].configuration == {"dtype": native, "astype": native} and a.compressors[0].typesize == 2


@pytest.mark.parametrize("astype", ["<i4", ">i4", "<i2"])
@pytest.mark.parametrize("dtype", [">i4", "<i4"])
def test_an_array_keeps_its_byte_order_behind_filters(dtype, astype):
    """What a filter says of it means nothing."""
    values = np.arange(20, dtype=dtype)
    a = zcore.create_array(zcore.MemoryStore(), data=values, filters=[
        {"name": "numcodecs.delta", "configuration": {"dtype": "<i4", "astype": astype}}])
    assert a.dtype == dtype and (a[...] == values).all()


def test_a_shuffle_that_does_not_say_the_size_of_items():
    """As zarr-python has it: that of the array's."""
    store = zcore.MemoryStore()
    zcore.create_array(store, data=np.arange(100.0), compressors={"name": "numcodecs.shuffle"}, checksum=False)
    chunk = store.get("c/0")
    document = json.loads(store.get("zarr.json"))
    assert document["codecs"][1]["configuration"].pop("elementsize") == 8
    store.set("zarr.json", json.dumps(document).encode())
    a = zcore.open(store, mode="r+")
    assert (a[...] == np.arange(100.0)).all()
    a[...] = np.arange(100.0)
    assert store.get("c/0") == chunk


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


@each("configuration", [{}, {"codecs": 3}, {"codecs": []}, {"codecs": [3]}, 3, None])
def test_shards_that_are_not_described_are_refused(configuration):
    with pytest.raises((ValueError, TypeError)):
        zcore.create_array(zcore.MemoryStore(), shape=(4, 4), dtype="i4",
                           serializer={"name": "sharding_indexed", "configuration": configuration})


def test_one_codec_needs_no_list():
    assert specs_of("crc32c", F8, 2) == specs_of(["crc32c"], F8, 2)
