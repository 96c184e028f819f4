"""Shards in files: what a read fetches, what a write leaves, and indices that lie. V3-SHARD-05 to -12, -14, -15."""
import os
import struct
import threading

import numpy as np
import pytest

from tests.at_once import at_once
from tests.both_ways import WAYS, directory
from zcore.errors import ChecksumError, ChunkError, CodecError, ShardIndexError, StoreError
from zcore.kernel.codec.checksums import crc32c
from zcore.kernel.codec.program import Program
from zcore.kernel.plan.plan import PlanOptions
from zcore.kernel.plan.read import ReadPlan
from zcore.kernel.plan.shard_index import INDICES, IndexCache, ShardProgram
from zcore.kernel.select.box import Box
from zcore.kernel.select.open_array import OpenArray

EMPTY = 2**64 - 1
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
CRC = {"name": "crc32c"}
BLOSC = {"name": "blosc",
         "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 2, "blocksize": 0}}


@pytest.fixture(params=WAYS)
def store(request, tmp_path):
    """Return a store whose files the kernel opens, and one that brings it their bytes."""
    return directory(tmp_path, request.param)


def index_of(*entries, order="<", checksum=True):
    """Return the bytes of an index."""
    words = [word for entry in entries for word in entry]
    raw = struct.pack(f"{order}{len(words)}Q", *words)
    return raw + crc32c(raw).to_bytes(4, "little") if checksum else raw


def entries_of(raw, n, at_start=False):
    """Return the entries of a little-endian index with a checksum."""
    words = struct.unpack(f"<{2 * n}Q", raw[:16 * n] if at_start else raw[-16 * n - 4:-4])
    return list(zip(words[::2], words[1::2], strict=True))


def shards_of(rows, columns, *codecs, location="end"):
    """The document of shards of chunks of that shape."""
    return {"name": "sharding_indexed", "configuration": {
        "chunk_shape": [rows, columns], "codecs": list(codecs) or [LITTLE], "index_codecs": [LITTLE, CRC],
        "index_location": location}}


def four_chunks(sharded, store, **options):
    """An array of one shard of four chunks of two elements of two bytes."""
    return sharded.create(store, (4, 2), "<u2", (4, 2), (1, 2), fill_value=9, **options)


# The format.

def test_bytes_of_a_shard(sharded, tmp_path, store):
    """V3-SHARD-05, V3-SHARD-07, V3-SHARD-12: four chunks have an index of 68 bytes, behind the data; an empty one has
    the mark."""
    array = four_chunks(sharded, store)
    array[...] = [[1, 2], [9, 9], [5, 6], [7, 8]]
    raw = (tmp_path / "c/0/0").read_bytes()
    assert raw == struct.pack("<6H", 1, 2, 5, 6, 7, 8) + index_of((0, 4), (EMPTY, EMPTY), (4, 4), (8, 4))
    assert len(raw) == 12 + 68
    np.testing.assert_array_equal(sharded.open(store)[...], [[1, 2], [9, 9], [5, 6], [7, 8]])


def test_an_index_at_the_start_counts_itself(sharded, tmp_path, store):
    """V3-SHARD-06: the first offset is the size of the index."""
    array = four_chunks(sharded, store, index_location="start")
    array[...] = [[1, 2], [9, 9], [5, 6], [7, 8]]
    raw = (tmp_path / "c/0/0").read_bytes()
    assert raw == index_of((68, 4), (EMPTY, EMPTY), (72, 4), (76, 4)) + struct.pack("<6H", 1, 2, 5, 6, 7, 8)
    assert array[2].tolist() == [5, 6]


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("checksum", [True, False])
def test_index_codecs(sharded, tmp_path, store, order, checksum):
    """V3-SHARD-04: either byte order, with a checksum or without."""
    array = four_chunks(sharded, store, index_codecs=[LITTLE if order == "<" else BIG] + [CRC] * checksum)
    array[1:3] = [[1, 2], [3, 4]]
    entries = (EMPTY, EMPTY), (0, 4), (4, 4), (EMPTY, EMPTY)
    assert (tmp_path / "c/0/0").read_bytes()[8:] == index_of(*entries, order=order, checksum=checksum)
    assert array[...].tolist() == [[9, 9], [1, 2], [3, 4], [9, 9]]


def test_a_shard_without_dimensions(sharded, tmp_path, store):
    """V3-SHARD-02: one chunk, an index of one entry."""
    array = sharded.create(store, (), "<i4", (), ())
    assert array[()] == 0
    array[...] = 7
    assert (tmp_path / "c").read_bytes() == struct.pack("<i", 7) + index_of((0, 4))
    assert array[()] == 7


def test_chunks_in_any_order_with_gaps(sharded, tmp_path, store):
    """V3-SHARD-10: a writer may leave gaps, turn the order around, and (V3-SHARD-08) store equal chunks once."""
    array = four_chunks(sharded, store)
    os.makedirs(tmp_path / "c/0")
    (tmp_path / "c/0/0").write_bytes(b"gap" + struct.pack("<4H", 1, 2, 3, 4) + b"gap"
                                     + index_of((7, 4), (3, 4), (7, 4), (5, 4)))
    assert array[...].tolist() == [[3, 4], [1, 2], [3, 4], [2, 3]]
    # What is carried over goes on sharing its bytes, and the gaps go.
    array[1, 0] = 8
    assert (tmp_path / "c/0/0").read_bytes() == (
        struct.pack("<5H", 2, 3, 4, 8, 2) + index_of((2, 4), (6, 4), (2, 4), (0, 4)))
    assert array[...].tolist() == [[3, 4], [8, 2], [3, 4], [2, 3]]


# What a write does.

def test_a_shard_of_nothing_but_the_fill_value_is_erased(sharded, tmp_path, store):
    """V3-SHARD-12."""
    array = four_chunks(sharded, store)
    array[1] = 5
    assert (tmp_path / "c/0/0").exists()
    array[1, 0] = 9
    array[1, 1] = 9
    assert not (tmp_path / "c/0/0").exists()
    array[...] = 1
    array[...] = 9
    assert not (tmp_path / "c/0/0").exists()


def test_filled_chunks_are_stored_on_request(sharded, tmp_path, store):
    """V3-OP-07, V3-PY-07, V3-SHARD-09: Chunks beyond the array stay empty even then (V3-SHARD-09)."""
    array = sharded.create(store, (3, 2), "<u2", (4, 2), (1, 2), fill_value=9, write_empty_chunks=True)
    array[...] = 9
    assert entries_of((tmp_path / "c/0/0").read_bytes(), 4) == [(0, 4), (4, 4), (8, 4), (EMPTY, EMPTY)]


def test_a_partial_write_carries_the_others_over(sharded, tmp_path, store):
    """V3-SHARD-14: bytes of a chunk that is not touched are copied, even such that do not decode."""
    array = four_chunks(sharded, store, codecs=[LITTLE, CRC])
    array[...] = [[1, 2], [3, 4], [5, 6], [7, 8]]
    raw = bytearray((tmp_path / "c/0/0").read_bytes())
    raw[0] ^= 1
    (tmp_path / "c/0/0").write_bytes(raw)
    array[2, 1] = 0
    array[3] = [1, 1]
    assert array[1:].tolist() == [[3, 4], [5, 0], [1, 1]]
    assert (tmp_path / "c/0/0").read_bytes()[:8] == raw[:8]
    with pytest.raises(ChecksumError, match=r"c/0/0: inner chunk \(0, 0\): checksum") as caught:
        array[0]
    assert caught.value.inner_coords == (0, 0) and caught.value.chunk_coords == (0, 0)
    assert caught.value.offset == 4 and caught.value.codec == "crc32c"
    # A chunk that is written whole is not read.
    array[0] = [1, 2]
    assert array[0].tolist() == [1, 2]


def test_a_whole_shard_is_written_without_a_look_at_the_old_one(sharded, tmp_path, store):
    array = sharded.create(store, (3, 3), "<u2", (4, 4), (2, 2))
    os.makedirs(tmp_path / "c/0")
    (tmp_path / "c/0/0").write_bytes(b"no shard")
    array[...] = np.arange(9).reshape(3, 3)
    assert array[...].tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_a_damaged_shard_is_not_written_over_in_part(sharded, tmp_path, store):
    array = four_chunks(sharded, store)
    os.makedirs(tmp_path / "c/0")
    (tmp_path / "c/0/0").write_bytes(b"no shard")
    with pytest.raises(ShardIndexError, match="shard has 8 bytes, its index alone needs 68"):
        array[0, 0] = 1
    assert (tmp_path / "c/0/0").read_bytes() == b"no shard"
    assert os.listdir(tmp_path / "c/0") == ["0"]


def test_a_damaged_chunk_that_is_covered_as_far_as_the_array_goes_is_written_over(sharded, tmp_path, store):
    """A chunk at the border, and one of a single row: what lies beyond the array, or between steps, is nobody's."""
    array = sharded.create(store, (5, 2), "<u2", (8, 2), (4, 2))
    array[...] = model = np.arange(10).reshape(5, 2)
    file = tmp_path / "c/0/0"
    raw = bytearray(file.read_bytes())
    raw[-4 - 16:-4] = struct.pack("<QQ", 2**62, 1)
    raw[-4:] = crc32c(bytes(raw[-4 - 32:-4])).to_bytes(4, "little")
    file.write_bytes(raw)
    array[::4] = model[::4] = 7
    np.testing.assert_array_equal(array[...], model)
    file.write_bytes(raw)
    with pytest.raises(ShardIndexError, match="ends at byte"):
        array[4, 0] = 1


def test_a_damaged_chunk_of_no_bytes_keeps_its_shard(sharded, tmp_path, store):
    """It is no empty chunk, so it is carried over, and a shard of nothing else is not erased."""
    array = four_chunks(sharded, store)
    array[...] = 1
    file = tmp_path / "c/0/0"
    file.write_bytes(b"\1\0\2\0" + index_of((0, 4), (4, 0), (EMPTY, EMPTY), (EMPTY, EMPTY)))
    array[0] = 9
    assert entries_of(file.read_bytes(), 4) == [(EMPTY, EMPTY), (0, 0), (EMPTY, EMPTY), (EMPTY, EMPTY)]
    with pytest.raises(CodecError, match="decodes to 0 bytes, expected 4"):
        array[1]


def test_growing_shows_nothing_that_others_left(sharded, tmp_path, store):
    """Beyond the shape lie a whole chunk and a part of one; neither shows when the array grows."""
    array = sharded.create(store, (3, 2), "<u2", (8, 2), (2, 2))
    os.makedirs(tmp_path / "c/0")
    (tmp_path / "c/0/0").write_bytes(
        np.arange(1, 17, dtype="<u2").tobytes() + index_of((0, 8), (8, 8), (16, 8), (24, 8)))
    assert array[...].tolist() == [[1, 2], [3, 4], [5, 6]]
    array.resize((8, 2))
    assert array[...].tolist() == [[1, 2], [3, 4], [5, 6]] + [[0, 0]] * 5
    assert entries_of((tmp_path / "c/0/0").read_bytes(), 4) == [(0, 8), (8, 8), (EMPTY, EMPTY), (EMPTY, EMPTY)]


def test_shrinking_erases_and_resets(sharded, tmp_path, store):
    array = sharded.create(store, (9, 4), "<u2", (4, 4), (2, 2))
    array[...] = 5
    array.resize((3, 3))
    assert not (tmp_path / "c/1/0").exists()
    array.resize((9, 4))
    expected = np.zeros((9, 4), "<u2")
    expected[:3, :3] = 5
    np.testing.assert_array_equal(array[...], expected)


def test_a_border_that_has_nothing_beyond_is_left_alone(sharded, tmp_path, store):
    array = sharded.create(store, (4, 4), "<u2", (8, 8), (2, 2))
    array[...] = 5
    before = os.stat(tmp_path / "c/0/0")
    array.resize((6, 6))
    after = os.stat(tmp_path / "c/0/0")
    if not store.confined:
        assert before.st_ino == after.st_ino and before.st_mtime_ns == after.st_mtime_ns
    assert array[3].tolist() == [5, 5, 5, 5, 0, 0]


def test_append(sharded, store):
    array = sharded.create(store, (3, 5), "<u2", (8, 8), (2, 2))
    expected = np.arange(15, dtype="<u2").reshape(3, 5)
    array[...] = expected
    for n in (1, 4, 9):
        more = np.full((n, 5), n, "<u2")
        array.append(more)
        expected = np.concatenate([expected, more])
        np.testing.assert_array_equal(array[...], expected)


def test_missing_raise(sharded, tmp_path, store):
    """An absent shard is an error then; an empty chunk is not, as its shard says that it is empty."""
    four_chunks(sharded, store)[1] = 5
    array = sharded.open(store, missing="raise")
    assert array[...].tolist() == [[9, 9], [5, 5], [9, 9], [9, 9]]
    array[0, 0] = 3
    os.remove(tmp_path / "c/0/0")
    for use in (lambda: array[0], lambda: array.__setitem__((0, 0), 1)):
        with pytest.raises(ChunkError, match="c/0/0: object is absent"):
            use()


# Indices that lie.

HUGE = 2**64 - 16
LIES = [
    ((61, 4), ShardIndexError, "index entry ends at byte 65, expected at most 64"),
    ((64, 4), ShardIndexError, "index entry ends at byte 68, expected at most 64"),   # in the index
    ((0, 2**40), ShardIndexError, f"index entry ends at byte {2**40}, expected at most 64"),
    ((HUGE, 4), ShardIndexError, f"index entry ends at byte {2**63 - 1}"),
    ((HUGE, HUGE), ShardIndexError, f"index entry ends at byte {2**63 - 1}"),
    ((2, 2**64 - 2), ShardIndexError, f"index entry ends at byte {2**63 - 1}"),
    ((EMPTY, 4), ShardIndexError, "one half of the index entry marks an empty chunk, the other half is 4"),
    ((4, EMPTY), ShardIndexError, "one half of the index entry marks an empty chunk, the other half is 4"),
    ((0, EMPTY), ShardIndexError, "one half of the index entry marks an empty chunk, the other half is 0"),
    ((0, 5), CodecError, "stored object has 5 bytes, its chunk encodes to at most 4"),
    ((0, 3), CodecError, "chunk decodes to 3 bytes, expected 4"),
    ((8, 0), CodecError, "chunk decodes to 0 bytes, expected 4"),                     # V3-SHARD-11
]


@pytest.mark.parametrize(("entry", "error", "message"), LIES)
def test_entries_that_lie(sharded, tmp_path, store, entry, error, message):
    """V3-SHARD-07, V3-SHARD-08, V3-SHARD-10, V3-SHARD-11: the error names the key and the chunk; other chunks of the
    shard can be read."""
    array = four_chunks(sharded, store)
    os.makedirs(tmp_path / "c/0")
    raw = bytes(64) + index_of((0, 4), (4, 4), entry, (EMPTY, EMPTY))
    (tmp_path / "c/0/0").write_bytes(raw)
    for use in (lambda: array[...], lambda: array[2], lambda: array.__setitem__((2, 0), 1)):
        with pytest.raises(error, match=message) as caught:
            use()
        assert caught.value.inner_coords == (2, 0) and caught.value.key == "c/0/0"
        assert caught.value.message.startswith("c/0/0: inner chunk (2, 0): ")
    assert array[:2].tolist() == [[0, 0], [0, 0]] and array[3].tolist() == [9, 9]
    assert (tmp_path / "c/0/0").read_bytes() == raw


def test_an_entry_in_an_index_at_the_start(sharded, tmp_path, store):
    array = four_chunks(sharded, store, index_location="start")
    os.makedirs(tmp_path / "c/0")
    (tmp_path / "c/0/0").write_bytes(index_of((68, 4), (64, 4), (70, 4), (0, 0)) + bytes(4))
    assert array[0].tolist() == [0, 0]
    for i, message in ((1, "starts at byte 64, inside the index, which ends at byte 68"),
                       (2, "ends at byte 74, expected at most 72"), (3, "decodes to 0 bytes")):
        with pytest.raises(CodecError, match=message):
            array[i]


def test_a_damaged_index(sharded, tmp_path, store):
    """V3-SHARD-15: its checksum is verified whenever it is read."""
    array = four_chunks(sharded, store)
    array[...] = 5
    raw = bytearray((tmp_path / "c/0/0").read_bytes())
    raw[20] ^= 64
    (tmp_path / "c/0/0").write_bytes(raw)
    for use in (lambda: array[0], lambda: array.__setitem__((0, 0), 1)):
        with pytest.raises(ChecksumError, match="c/0/0: shard index: checksum 0x"):
            use()
    assert (tmp_path / "c/0/0").read_bytes() == raw


@pytest.mark.parametrize("size", [0, 1, 67])
def test_an_object_shorter_than_the_index(sharded, tmp_path, store, size):
    """V3-SHARD-10."""
    array = four_chunks(sharded, store)
    os.makedirs(tmp_path / "c/0")
    (tmp_path / "c/0/0").write_bytes(bytes(size))
    with pytest.raises(ShardIndexError, match=f"shard has {size} bytes, its index alone needs 68") as caught:
        array[0]
    assert (caught.value.expected, caught.value.found) == (68, size)


def test_an_index_of_many_chunks_asks_for_no_memory(sharded, tmp_path):
    """2**26 chunks whose index no object has: refused by its size, before a gigabyte is asked for."""
    array = sharded.create(tmp_path, (2**26,), "u1", (2**26,), (1,))
    assert array[2**25] == 0
    (tmp_path / "c").mkdir()
    (tmp_path / "c/0").write_bytes(bytes(1000))
    with pytest.raises(ShardIndexError, match="shard has 1000 bytes, its index alone needs 1073741828"):
        array[2**25]


def test_what_is_no_file_is_no_shard(sharded, tmp_path):
    array = four_chunks(sharded, tmp_path)
    os.makedirs(tmp_path / "c/0/0")
    assert array[0].tolist() == [9, 9]
    os.rmdir(tmp_path / "c/0/0")
    os.mkfifo(tmp_path / "c/0/0")
    for use in (lambda: array[0], lambda: array.__setitem__((0, 0), 1)):
        with pytest.raises(StoreError, match="c/0/0: cannot read"):
            use()
    os.remove(tmp_path / "c/0/0")
    array[...] = 1
    os.chmod(tmp_path / "c/0/0", 0)
    if os.geteuid():
        with pytest.raises(StoreError, match="c/0/0: cannot open"):
            array[0]


# Threads.

@pytest.mark.thinned(3, "codecs", "threads")
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("codecs", [[LITTLE], [LITTLE, BLOSC], [LITTLE, BLOSC, CRC], [shards_of(16, 32)],
                                    [shards_of(64, 64, shards_of(8, 32), location="start")]])
def test_threads_share_shards(sharded, tmp_path, threads, codecs):
    """Three large shards of many chunks, some empty, one absent: all ways to cut them into tasks give the same."""
    model = np.random.default_rng(5).integers(0, 99, (3 * 1024, 1024)).astype("<u2")
    model[:1000, 10:500] = 0
    model[2048:] = 0
    array = sharded.create(tmp_path, model.shape, "<u2", (1024, 1024), (64, 128), codecs=codecs, threads=threads)
    array[...] = model
    for selection in (np.s_[...], np.s_[100:2900:3, ::-1], np.s_[::-7, 5:900:11], np.s_[1500:1600]):
        np.testing.assert_array_equal(array[selection], model[selection])


def test_a_failure_in_one_of_many_tasks(sharded, tmp_path):
    array = sharded.create(tmp_path, (2048, 1024), "<u2", (1024, 1024), (64, 128), codecs=[LITTLE, CRC], threads=4)
    array[...] = 1
    raw = bytearray((tmp_path / "c/1/0").read_bytes())
    raw[100_000] ^= 1
    (tmp_path / "c/1/0").write_bytes(raw)
    with pytest.raises(ChecksumError, match=r"c/1/0: inner chunk \(0, 6\): checksum"):
        array[...]
    # Whoever leaves the plan last closes the shards that are open.
    identity = os.stat(tmp_path / "c/1/0").st_ino
    assert identity not in [os.stat(int(fd)).st_ino for fd in os.listdir("/dev/fd") if os.path.exists(f"/dev/fd/{fd}")]
    assert (array[:1024] == 1).all()


def test_parallel_writers_of_one_shard_lose_nothing(sharded, tmp_path):
    array = sharded.create(tmp_path, (64, 8), "<u2", (64, 8), (4, 4))

    def write(i):
        handle = sharded.open(tmp_path)
        for j in range(i, 64, 4):
            handle[j, 1:7] = j + 1

    at_once(threading.Thread(target=write, args=(i,)) for i in range(4))
    assert (array[:, 1:7] == np.arange(1, 65)[:, None]).all() and not array[:, 0].any()


# Indices that are kept.

def read_plan(tmp_path, cache, array, row):
    out = np.empty((1, 2), "<u2")
    opened = OpenArray((4, 2), (4, 2), program=array._binding.chain.program, fill=b"\x09\0",
                       template=(b"c/", b"/", b""), directory=os.fsencode(tmp_path))
    plan = ReadPlan(opened, Box((row, 0), (1, 1), (1, 2)), out, PlanOptions(indices=cache))
    plan.run()
    plan.raise_failure(())
    return out[0].tolist()


def test_an_index_is_kept_by_the_identity_of_its_shard(sharded, tmp_path):
    array = four_chunks(sharded, tmp_path)
    array[...] = [[1, 2], [3, 4], [5, 6], [7, 8]]
    cache = IndexCache(1 << 20, 0)
    for i, row in enumerate([0, 3, 3, 1]):
        assert read_plan(tmp_path, cache, array, row) == [2 * row + 1, 2 * row + 2]
        assert (cache.info()["hits"], cache.info()["misses"], cache.info()["indices"]) == (i, 1, 1)
    array[0] = 0
    array[1] = 9
    assert read_plan(tmp_path, cache, array, 3) == [7, 8] and read_plan(tmp_path, cache, array, 1) == [9, 9]
    assert (cache.info()["misses"], cache.info()["indices"]) == (2, 2)
    cache.clear()
    assert cache.info()["nbytes"] == cache.info()["indices"] == 0


def test_the_index_of_a_young_shard_is_not_kept(sharded, tmp_path):
    array = four_chunks(sharded, tmp_path)
    array[...] = 1
    shard, = [path for path in (tmp_path / "c").rglob("*") if path.is_file()]
    shard.write_bytes(shard.read_bytes())      # in place: one that was renamed may be final at once
    cache = IndexCache(1 << 20, 3600 * 10**9)
    assert read_plan(tmp_path, cache, array, 0) == [1, 1] == read_plan(tmp_path, cache, array, 0)
    assert cache.info()["hits"] == cache.info()["indices"] == 0


def test_no_more_is_kept_than_there_is_room(sharded, tmp_path):
    """The index that was used longest ago goes first."""
    arrays = []
    for i in range(4):
        arrays.append(four_chunks(sharded, tmp_path / str(i)))
        arrays[i][...] = i
    cache = IndexCache(750, 0)
    for i in (0, 1, 2, 0, 3, 0, 2):
        assert read_plan(tmp_path / str(i), cache, arrays[i], 1) == [i, i]
        assert cache.info()["nbytes"] <= 750
    assert cache.info()["indices"] == 3 and cache.info()["hits"] == 3
    assert read_plan(tmp_path / "0", IndexCache(100, 0), arrays[0], 1) == [0, 0]


def test_the_indices_of_shards_in_a_shard_are_kept_by_their_places(sharded, tmp_path):
    """V3-SHARD-03"""
    array = sharded.create(tmp_path, (4, 2), "<u2", (4, 2), (2, 2), codecs=[shards_of(1, 2)], fill_value=9)
    array[...] = [[1, 2], [3, 4], [5, 6], [7, 8]]
    cache = IndexCache(1 << 20, 0)
    for row, hits, indices in ((0, 0, 2), (1, 2, 2), (2, 3, 3), (3, 5, 3), (0, 7, 3)):
        assert read_plan(tmp_path, cache, array, row) == [2 * row + 1, 2 * row + 2]
        assert (cache.info()["hits"], cache.info()["indices"]) == (hits, indices)


def test_kept_indices_survive_a_fork():
    before = INDICES.info()
    child = os.fork()
    if child == 0:
        os._exit(0 if INDICES.info() == before else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 and INDICES.info() == before


def test_programs_that_cannot_be():
    for shard_shape, chunk_shape, message in (((4, 4), (3, 2), "not cut"), ((4,), (2, 2), "not cut"),
                                              ((2**27,), (1,), "at most 67108864")):
        with pytest.raises(ValueError, match=message):
            ShardProgram(shard_shape, chunk_shape, Program(()))
    with pytest.raises(ValueError, match=r"chunks of shape \(2, 3\) are no shards of shape \(3, 2\)"):
        ShardProgram((4, 6), (2, 3), ShardProgram((3, 2), (1, 1), Program(())))
    program = Program(())
    for side in (2, 4, 8):
        program = ShardProgram((side,), (side // 2,), program)
    assert program.n_levels == 3 and program.inner.inner.inner is None
    with pytest.raises(ValueError, match="4 deep in each other, at most 3"):
        ShardProgram((16,), (8,), program)
    program = ShardProgram((4, 6), (2, 2), Program(()), [("crc32c",)], at_start=True)
    assert (program.n_chunks, program.index_nbytes, program.chunk_shape) == (6, 100, (2, 2)) and program.at_start
