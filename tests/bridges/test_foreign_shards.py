"""Shards in stores of zarr-python: the index and the selected chunks are requested, all of one version."""
from functools import cache

import numpy as np
import pytest

import zcore

zarr = pytest.importorskip("zarr")

from zarr.abc.store import SuffixByteRequest  # noqa: E402
from zarr.codecs import BytesCodec, Crc32cCodec, ShardingCodec, ZstdCodec  # noqa: E402

from tests.strict_store import Sized, Strict  # noqa: E402

PIPELINE = "zcore.zarr.ZcoreCodecPipeline"
SHAPE, SHARD, CHUNK = (256, 512), (256, 256), (16, 16)
VALUES = np.random.default_rng(1).integers(1, 1 << 30, SHAPE).astype("i4")
INDEX_NBYTES = 16 * 16 * 16


def by_zcore(store):
    return zcore.open(store, "r+")


def by_zarr(store):
    with zarr.config.set({"codec_pipeline.path": PIPELINE}):
        return zarr.open_array(store, mode="r+")


OPENED = pytest.mark.parametrize("opened", [by_zarr, by_zcore])
# The codecs of chunks, those of the index, and where it is.
FORMS = {
    "end": ([BytesCodec()], [BytesCodec(), Crc32cCodec()], "end"),
    "start": ([BytesCodec()], [BytesCodec(), Crc32cCodec()], "start"),
    "zstd": ([BytesCodec(), ZstdCodec()], [BytesCodec(), Crc32cCodec()], "end"),
    "crc32c": ([BytesCodec(), Crc32cCodec()], [BytesCodec()], "end"),
    "no sum": ([BytesCodec()], [BytesCodec()], "start"),
    "nested": ([ShardingCodec(chunk_shape=(4, 4), codecs=[BytesCodec(), ZstdCodec()])],
               [BytesCodec(), Crc32cCodec()], "end"),
}
ALL_FORMS = pytest.mark.parametrize("form", FORMS)


OLD, NEW, FEW = VALUES.copy(), np.random.default_rng(2).integers(1, 1 << 30, SHAPE).astype("i4"), np.zeros(SHAPE, "i4")
OLD[:64] = 5      # compressed, these chunks are short
FEW[:32, :64] = VALUES[:32, :64]
ARRAYS = {"values": VALUES, "old": OLD, "new": NEW, "few": FEW}


@cache
def stored(form, values):
    """Return the objects of an array of two shards."""
    codecs, index_codecs, location = FORMS[form]
    store = zarr.storage.MemoryStore()
    with zarr.config.set({"codec_pipeline.path": PIPELINE}):
        zarr.create_array(store, shape=SHAPE, chunks=SHARD, dtype="i4", compressors=None, serializer=ShardingCodec(
            chunk_shape=CHUNK, codecs=codecs, index_codecs=index_codecs, index_location=location))[...] = ARRAYS[values]
    return store._store_dict


def made(form, kind=Strict, values="values"):
    """Return a store with the array, of which nothing was asked."""
    return kind(zarr.storage.MemoryStore(dict(stored(form, values))))


@OPENED
@ALL_FORMS
@pytest.mark.parametrize("kind", [Strict, Sized])
def test_one_chunk_costs_the_index_and_the_chunk(opened, form, kind):
    store = made(form, kind)
    array = opened(store)
    assert array[0, 0] == VALUES[0, 0]
    store.asked.clear()
    np.testing.assert_array_equal(array[64:80, 96:112], VALUES[64:80, 96:112])
    assert len(store.chunks) == (3 if form == "nested" else 2)
    assert sum(n for _, _, n in store.chunks) <= INDEX_NBYTES + 4 + 16 * 16 * 4 + (600 if form == "nested" else 100)
    # All other requests are one for the document, by which a re-created array is noticed.
    assert len(store.asked) == len(store.chunks) + 1


@OPENED
@ALL_FORMS
def test_chunks_that_lie_close_are_one_request(opened, form):
    store = made(form)
    array = opened(store)
    store.asked.clear()
    np.testing.assert_array_equal(array[3:100:25, 245:265], VALUES[3:100:25, 245:265])
    assert {key for key, _, _ in store.chunks} == {"c/0/0", "c/0/1"}
    assert len(store.chunks) <= (6 if form == "nested" else 4)
    store.asked.clear()
    np.testing.assert_array_equal(array[:150, :300], VALUES[:150, :300])
    whole = [key for key, part, _ in store.chunks if part is None]
    assert whole == ["c/0/0"], "more than half of its chunks"


@pytest.mark.parametrize("nested", [False, True])
def test_small_shards_are_requested_together_and_once(nested):
    """On zarr-python's loop: the indices of all shards, then the chunks."""
    inner = zarr.storage.MemoryStore()
    codecs = [BytesCodec()]
    if nested:
        codecs = [ShardingCodec(chunk_shape=(4, 4), codecs=codecs)]
    zarr.create_array(inner, shape=(64, 64), chunks=(32, 32), dtype="i4", compressors=None, serializer=ShardingCodec(
        chunk_shape=(8, 8), codecs=codecs))[:40] = VALUES[:40, :64]
    expected = np.zeros((64, 64), "i4")
    expected[:40] = VALUES[:40, :64]
    store = Strict(inner)
    array = by_zarr(store)
    assert array[0, 0] == expected[0, 0]
    for selection, n in [(np.s_[2, 31:33], 2), (np.s_[31:33, 31:33], 4), (np.s_[50, 31:33], None)]:
        store.asked.clear()
        np.testing.assert_array_equal(array[selection], expected[selection])
        assert n is None or len(store.asked) == n * (3 if nested else 2) + 1
        assert len({(key, part) for key, part, _ in store.asked}) == len(store.asked)
    np.testing.assert_array_equal(array.vindex[[1, 39, 40], [63, 1, 0]], expected[[1, 39, 40], [63, 1, 0]])


@OPENED
@ALL_FORMS
def test_absent_shards_and_absent_chunks(opened, form):
    store, values = made(form, values="few"), FEW
    array = opened(store)
    store.asked.clear()
    np.testing.assert_array_equal(array[:64, 32:96], values[:64, 32:96])
    assert (array[:10, 300:350] == 0).all() and (array[250, 250:265] == 0).all()
    assert [part for key, part, _ in store.chunks if key == "c/0/1"] and all(
        n == 0 for key, _, n in store.chunks if key == "c/0/1")
    assert all(part is not None for _, part, _ in store.chunks)


@OPENED
@ALL_FORMS
def test_partial_writes_keep_the_other_chunks(opened, form):
    store = made(form)
    expected = VALUES.copy()
    array = opened(store)
    array[40:50, 240:265] = expected[40:50, 240:265] = -3
    array[7, 7] = expected[7, 7] = -4
    np.testing.assert_array_equal(array[30:60, 225:300], expected[30:60, 225:300])
    np.testing.assert_array_equal(zcore.open(store._store)[...], expected)
    np.testing.assert_array_equal(zarr.open_array(store, mode="r")[30:50, 235:270], expected[30:50, 235:270])


class NoSuffix(Sized):
    async def get(self, key, prototype, byte_range=None):
        if isinstance(byte_range, SuffixByteRequest):
            raise NotImplementedError("suffix")
        return await super().get(key, prototype, byte_range)


@OPENED
def test_a_store_without_suffixes_is_asked_by_size(opened):
    store = made("zstd", NoSuffix)
    array = opened(store)
    store.asked.clear()
    np.testing.assert_array_equal(array[64:80, 96:112], VALUES[64:80, 96:112])
    assert len(store.chunks) == 2 and sum(n for _, _, n in store.chunks) < 10_000


class Swapping(Strict):
    """Replaces a shard after the n-th request for it."""

    turn = new = None

    async def get(self, key, prototype, byte_range=None):
        found = await super().get(key, prototype, byte_range)
        if key == "c/0/0" and self.turn is not None:
            type(self).turn -= 1
            if self.turn == 0:
                type(self).turn = None
                if self.new is None:
                    await self._store.delete(key)
                else:
                    await self._store.set(key, self.new)
        return found


@pytest.fixture
def swapping():
    yield Swapping
    Swapping.turn = Swapping.new = None


@pytest.mark.thinned(3, "opened", "form", "turn", "change")
@OPENED
@ALL_FORMS
@pytest.mark.parametrize("turn", [1, 2, 3])
@pytest.mark.parametrize("change", ["other values", "erased", "short", "empty", "zeros"])
def test_a_shard_that_is_replaced_between_two_requests_is_not_mixed(opened, form, turn, change, swapping):
    store, old, new = made(form, swapping, "old"), OLD, NEW
    array = opened(store)
    whole = stored(form, "new")["c/0/0"]
    Swapping.new = {"other values": whole, "erased": None, "short": whole[:5000], "empty": whole[:0],
                    "zeros": type(whole).from_bytes(bytes(len(whole)))}[change]
    Swapping.turn = turn
    box = np.s_[90:130, 90:130]
    try:
        found = array[box]
    except zcore.ZcoreError:
        assert change not in ("other values", "erased")
    else:
        wholes = [old[box], new[box] if change == "other values" else np.zeros((40, 40))]
        assert any((found == values).all() for values in wholes)


@OPENED
@pytest.mark.parametrize("form", ["zstd", "crc32c", "nested"])
def test_damage_that_stays_is_an_error_with_its_place(opened, form):
    store = made(form)
    value = bytearray(store._store._store_dict["c/0/0"].to_bytes())
    value[:len(value) // 2] = bytes(len(value) // 2)
    store._store._store_dict["c/0/0"] = zarr.core.buffer.cpu.Buffer.from_bytes(bytes(value))
    with pytest.raises(zcore.ChunkError, match=r"c/0/0.*chunk|chunk.*c/0/0") as caught:
        opened(store)[2:5, 3]
    assert str(1 << 60)[:9] not in str(caught.value)
    store._store._store_dict["c/0/0"] = zarr.core.buffer.cpu.Buffer.from_bytes(b"short")
    with pytest.raises(zcore.ChunkError, match="c/0/0"):
        opened(store)[2:5, 3]


def test_a_filesystem_of_fsspec_is_read_in_parts(tmp_path):
    """It tells no tags either."""
    filesystem = pytest.importorskip("fsspec").filesystem("file")
    array = zcore.create_array(tmp_path / "a", data=VALUES, chunks=CHUNK, shards=SHARD, compressors=None)
    sizes, cat_file = [], filesystem.cat_file

    def counted(*args, **keywords):
        found = cat_file(*args, **keywords)
        sizes.append(len(found))
        return found

    filesystem.cat_file = counted
    try:
        opened = zcore.open(filesystem.get_mapper(str(tmp_path / "a")))
        np.testing.assert_array_equal(opened[33:35, 5:15], array[33:35, 5:15])
    finally:
        del filesystem.cat_file
    assert sum(sizes) < 20_000
