"""Decoded chunks that are kept: never another's, never more than asked for, and the same elements as without."""
import mmap
import os
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import zcore
from tests.at_once import at_once
from tests.both_ways import WAYS, directory
from zcore.kernel.plan.cache import CHUNKS, ChunkCache

COUNTS = ("hits", "misses", "chunks")


@pytest.fixture(autouse=True)
def trusting(monkeypatch):
    """Trust documents of any age; `opened` does the same for chunks."""
    monkeypatch.setattr("zcore.engine.views.TRUSTED_AGE_NS", -1)
    yield
    zcore.config.cache = 0


@pytest.fixture(params=WAYS)
def store_of(request):
    """Return what makes a store of a directory: one whose files the kernel opens, or one that brings it their bytes."""
    return lambda path: directory(path, request.param)


def opened(store, capacity=1 << 20, age_ns=0, **keywords):
    """Return an array, opened with a cache that trusts any chunk of that age, and the cache."""
    array = zcore.open(store, cache=capacity, **keywords)
    options = array._binding.options
    options._chunks = ChunkCache(capacity, age_ns)
    return array, options.chunks


def counts(cache):
    return tuple(cache.info()[name] for name in COUNTS)


def rewrite(path):
    """Give a file another identity, with the same bytes."""
    raw = path.read_bytes()
    (path.parent / "new").write_bytes(raw)
    os.replace(path.parent / "new", path)


@pytest.mark.parametrize(("zarr_format", "chunk"), [(3, "c/1/0"), (2, "1.0"), ("zmeta", "__zdata__/1.0.blosc")])
def test_a_chunk_is_decoded_once_while_its_object_stays(tmp_path, store_of, zarr_format, chunk):
    data = np.arange(48, dtype="<i4").reshape(8, 6)
    zcore.create_array(tmp_path, data=data, chunks=(4, 3), zarr_format=zarr_format)
    array, cache = opened(store_of(tmp_path))
    assert (array[5, 1], counts(cache)) == (data[5, 1], (0, 1, 1))
    assert (array[4, 2], counts(cache)) == (data[4, 2], (1, 1, 1))
    np.testing.assert_array_equal(array[4:8:2, ::-1], data[4:8:2, ::-1])
    assert counts(cache) == (2, 2, 2)
    rewrite(tmp_path / chunk)
    assert (array[5, 1], counts(cache)) == (data[5, 1], (2, 3, 3))
    os.unlink(tmp_path / chunk)
    assert array[5, 1] == 0
    assert counts(cache)[1:] == (3, 3)


def test_a_write_of_another_handle_is_seen(tmp_path, store_of):
    zcore.create_array(tmp_path, data=np.zeros((4, 4)), chunks=(2, 2))
    array, cache = opened(store_of(tmp_path))
    other = zcore.open(tmp_path, "r+")
    for i in range(1, 20):
        other[1, 1] = i
        assert array[1, 1] == i == array[0:2, 0:2].max() == array[1, 1]
    assert cache.info()["hits"] >= 19


def test_a_store_in_memory_has_identities_too(tmp_path):
    store = zcore.MemoryStore()
    zcore.create_array(store, data=np.arange(10), chunks=5)
    array, cache = opened(store, mode="r+")
    assert [int(array[i]) for i in (1, 2, 7, 1)] == [1, 2, 7, 1] and counts(cache) == (2, 2, 2)
    array[1] = 9
    assert array[1] == 9 and array[2] == 2
    assert cache.info()["misses"] == 3
    other = zcore.MemoryStore()
    assert store.identity("zarr.json")[:2] != other.__class__({"zarr.json": b"{}"}).identity("zarr.json")[:2]


def test_what_is_young_is_not_kept(tmp_path, store_of):
    """A call that writes in place may still go on, however the file system counts time."""
    zcore.create_array(tmp_path, data=np.arange(10), chunks=5)
    written_in_place(tmp_path / "c" / "0")
    array, cache = opened(store_of(tmp_path), age_ns=3600 * 10**9)
    assert array[1] == array[1] == 1
    assert counts(cache) == (0, 2, 0)


def written_in_place(path):
    with open(path, "r+b") as file:
        file.write(path.read_bytes())


def tells_changes(directory):
    """Return whether a file in a directory that was looked at has another time after each change."""
    times = set()
    with open(directory / "tried", "wb", buffering=0) as file:
        for _ in range(20):
            file.write(b"x")
            times.add(os.fstat(file.fileno()).st_ctime_ns)
    return len(times) == 20


@pytest.mark.skipif("ZCORE_MACHINE_PYTHON" in os.environ,
                    reason="a change by an emulator may take so long that zcore does not trust the times of the file")
def test_what_was_renamed_is_kept_where_the_file_system_tells_each_change(tmp_path):
    zcore.create_array(tmp_path / "a", data=np.arange(10), chunks=5)
    array, cache = opened(tmp_path / "a", age_ns=3600 * 10**9)
    assert array[1] == array[1] == 1
    assert counts(cache) == ((1, 1, 1) if tells_changes(tmp_path) else (0, 2, 0))


@pytest.mark.parametrize("way", ["renamed", "renamed unseen", "in place"])
def test_young_chunks_that_are_replaced_again_and_again(tmp_path, way):
    """Each by one of the same size, as quickly as can be, by zcore or by others that look at nothing."""
    writer = zcore.create_array(tmp_path / "a", data=np.arange(10), chunks=10, compressors=None, checksum=False)
    array, cache = opened(tmp_path / "a", age_ns=3600 * 10**9)
    path = tmp_path / "a" / "c" / "0"
    for i in range(300):
        new = np.arange(i, i + 10)
        if way == "renamed":
            writer[...] = new
        else:
            other = path if way == "in place" else tmp_path / "other"
            with open(other, "r+b" if way == "in place" else "wb", buffering=0) as file:
                file.write(new.tobytes())
            if way == "renamed unseen":
                os.replace(other, path)
        assert array[3] == array[3] == i + 3
    if tells_changes(tmp_path) and way != "renamed unseen":
        assert (cache.info()["hits"] > 0) == (way == "renamed")


def test_no_more_is_kept_than_there_is_room(tmp_path, store_of):
    """The chunk that was used longest ago goes first; a chunk that is larger than all stays out."""
    data = np.arange(4000, dtype="i4").reshape(4, 1000)
    zcore.create_array(tmp_path, data=data, chunks=(1, 1000))
    array, cache = opened(store_of(tmp_path), 13_000)
    for i in (0, 1, 2, 0, 3, 0, 2, 1):
        assert array[i, 5] == data[i, 5]
        assert cache.info()["nbytes"] <= 13_000
    assert counts(cache) == (3, 5, 3)
    array, cache = opened(store_of(tmp_path), 4000)
    assert array[1, 5] == array[1, 5] == 1005
    assert counts(cache)[0] == counts(cache)[2] == cache.info()["nbytes"] == 0


def test_what_does_not_fit_as_a_whole_drives_nothing_out(tmp_path, store_of):
    data = np.arange(4000, dtype="i4").reshape(4, 1000)
    zcore.create_array(tmp_path, data=data, chunks=(1, 1000))
    array, cache = opened(store_of(tmp_path), 13_000)
    assert array[2, 5] == 2005
    np.testing.assert_array_equal(array[...], data)
    np.testing.assert_array_equal(array[:, 3], data[:, 3])
    assert counts(cache) == (2, 7, 1)
    np.testing.assert_array_equal(array[1:3], data[1:3])
    assert counts(cache) == (3, 8, 2)


def test_a_damaged_chunk_is_not_kept(tmp_path, store_of):
    zcore.create_array(tmp_path, data=np.arange(10), chunks=5)
    path = tmp_path / "c/1"
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    array, cache = opened(store_of(tmp_path))
    for _ in range(2):
        with pytest.raises(zcore.ChecksumError):
            array[7]
        with pytest.raises(zcore.ChecksumError):
            array[5:7]
    assert cache.info()["chunks"] == cache.info()["hits"] == 0


@pytest.mark.thinned(2, "store_of", "order", "dtype")
@pytest.mark.parametrize("dtype", ["?", "i1", ">u2", "<f8", ">c16", "<M8[s]", "S5", "<U3", "V7", "f2",
                                   [("a", "<i4"), ("b", "?")]], ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
def test_elements_are_those_of_a_read_without_a_cache(tmp_path, store_of, dtype, order):
    dtype = np.dtype(dtype)
    raw = np.random.default_rng(1).integers(0, 2 if dtype.kind in "?V" else 100, 7 * 5 * dtype.itemsize, dtype="u1")
    if dtype.kind == "U":
        raw = np.array(list("abcäöüxyz" * 12)[:35 * 3], "<U1").view("u1")
    data = raw.view(dtype).reshape(7, 5)
    zcore.create_array(tmp_path, data=data, chunks=(3, 2), order=order, zarr_format=2)
    array, cache = opened(store_of(tmp_path))
    plain = zcore.open(tmp_path)
    for _ in range(2):
        for i in range(-7, 7):
            for j in range(-5, 5):
                found, expected = array[i, j], plain[i, j]
                assert type(found) is type(expected) and found.dtype == expected.dtype
                assert found.tobytes() == expected.tobytes() == data[i, j].tobytes()
    assert cache.info()["misses"] == 9
    for wrong in ((7, 0), (0, -6), (2**70, 0), (0, 0, 0)):
        with pytest.raises(IndexError):
            array[wrong]


def test_bytes_that_are_neither_true_nor_false(tmp_path):
    store = zcore.create_array(tmp_path, shape=4, chunks=4, dtype="?", compressors=None, zarr_format=2).store
    store.set("0", b"\x00\x01\x02\xff")
    array, _ = opened(tmp_path)
    for _ in range(2):
        assert [array[i].tobytes() for i in range(4)] == [b"\0", b"\1", b"\1", b"\1"]


def test_arrays_without_dimensions_and_strings(tmp_path, store_of):
    zcore.create_array(tmp_path / "a", data=np.float32(3.5))
    array, cache = opened(store_of(tmp_path / "a"))
    assert array[()] == array[()] == 3.5 and isinstance(array[...], np.ndarray) and cache.info()["hits"] == 2
    zcore.create_array(tmp_path / "s", shape=3, chunks=3, dtype="string")[...] = ["a", "bc", ""]
    array, cache = opened(store_of(tmp_path / "s"))
    assert [str(array[i]) for i in (1, 0, 1)] == ["bc", "a", "bc"]
    assert cache.info()["chunks"] == 0


def test_chunks_that_differ_in_length(tmp_path, store_of):
    data = np.arange(10)
    zcore.create_array(tmp_path, data=data, chunks=[[2, 3, 5]])
    array, cache = opened(store_of(tmp_path))
    assert [int(array[i]) for i in (*range(10), *range(10))] == [*range(10), *range(10)]
    assert counts(cache) == (17, 3, 3)


def test_a_chunk_of_another_form_is_another_chunk(tmp_path, monkeypatch):
    """Two arrays that share a file by a hard link, and make other elements of it."""
    zcore.create_array(tmp_path / "a", data=np.arange(4, dtype="<i4"), chunks=4, compressors=None, checksum=False)
    zcore.create_array(tmp_path / "b", data=np.arange(4, dtype=">i4"), chunks=4, compressors=None, checksum=False)
    os.unlink(tmp_path / "b/c/0")
    os.link(tmp_path / "a/c/0", tmp_path / "b/c/0")
    monkeypatch.setattr("zcore.engine.options.CHUNKS", ChunkCache(1 << 20, 0))
    monkeypatch.setattr(zcore.config, "_cache", 1 << 20)
    for way in ("native", "confined", "native"):
        a, b = (zcore.open(directory(tmp_path / name, way)) for name in "ab")
        for _ in range(2):
            assert a[1] == 1 and b[1] == 1 << 24
            assert a[0:2].tolist() == [0, 1] and b[0:2].tolist() == [0, 1 << 24]


def test_what_follows_from_the_document_is_asked_each_time(tmp_path):
    """The array is replaced, shrunk or deleted under a handle that reads elements of chunks it keeps."""
    zcore.create_array(tmp_path / "a", data=np.arange(10), chunks=5)
    array, _ = opened(tmp_path / "a")
    assert array[7] == array[7] == 7
    zcore.open(tmp_path / "a", "r+").attrs["new"] = 1
    assert array[7] == array[7] == 7
    zcore.open(tmp_path / "a", "r+").resize(6)
    with pytest.raises(IndexError):
        array[7]
    assert array[5] == 5
    (tmp_path / "a/zarr.json").unlink()
    with pytest.raises(zcore.NodeNotFoundError):
        array[5]


def test_all_handles_share_what_the_configuration_grants(tmp_path, monkeypatch):
    zcore.create_array(tmp_path, data=np.arange(10), chunks=5)
    cache = ChunkCache(0, 0)
    monkeypatch.setattr("zcore.engine.options.CHUNKS", cache)
    monkeypatch.setattr("zcore.kernel.plan.cache.CHUNKS", cache)
    a, b = zcore.open(tmp_path), zcore.open(tmp_path)
    assert a.cache is None and a[1] == 1 and counts(cache) == (0, 0, 0)
    zcore.config.cache = "1 MB"
    assert zcore.config.cache == 1_000_000 == cache.info()["capacity"]
    assert a[1] == b[1] == 1 and counts(cache) == (1, 1, 1)
    assert zcore.open(tmp_path, cache=0)[1] == 1 and counts(cache) == (1, 1, 1)
    zcore.config.cache = 0
    assert cache.info()["nbytes"] == 0
    assert a[1] == 1 and cache.info()["chunks"] == 0


def test_the_environment_may_grant_it(monkeypatch):
    monkeypatch.setenv("ZCORE_CACHE", "2 MiB")
    monkeypatch.setattr(zcore.config, "_cache", None)
    assert zcore.config.cache == 2 << 20 == CHUNKS.capacity
    monkeypatch.setenv("ZCORE_CACHE", "much")
    monkeypatch.setattr(zcore.config, "_cache", None)
    with pytest.raises(ValueError, match="ZCORE_CACHE: expected a size"):
        str(zcore.config.cache)
    monkeypatch.setattr(zcore.config, "_cache", 0)


@pytest.mark.parametrize(("value", "error"), [
    ("much", ValueError), ("9999999999 TB", ValueError),
    (-1, ValueError), (2**80, ValueError), (1.5, TypeError), (True, TypeError), ([], TypeError)])
def test_what_is_no_size_is_refused(tmp_path, value, error):
    for call in (lambda: zcore.create_array(tmp_path, shape=3, dtype="i4", cache=value),
                 lambda: setattr(zcore.config, "cache", value)):
        with pytest.raises(error, match="cache"):
            call()
    assert not (tmp_path / "zarr.json").exists()


def test_the_option_travels_with_the_handle(tmp_path):
    zcore.create_group(tmp_path, cache="3 MB").create_array("a", shape=3, dtype="i4")
    for array in (zcore.open_group(tmp_path, cache=3_000_000)["a"],
                  pickle.loads(pickle.dumps(zcore.open(tmp_path / "a", cache="3 MB")))):
        assert array.cache == 3_000_000 == array._binding.options.chunks.capacity
    assert zcore.open(tmp_path / "a").cache is None
    group = zcore.open_group(tmp_path, cache="3 MB")
    assert group["a"]._binding.options.chunks is group["a"]._binding.options.chunks


@pytest.mark.parametrize("n_forks", [3, pytest.param(60, marks=pytest.mark.slow)])
def test_kept_chunks_survive_a_fork(tmp_path, n_forks):
    """While threads of the parent read, children find every cache free, and use what is in it."""
    data = np.arange(64).reshape(8, 8)
    zcore.create_array(tmp_path, data=data, chunks=(2, 2))
    array, cache = opened(tmp_path, 600)
    stop = threading.Event()

    def read():
        k = 0
        while not stop.is_set():
            k += 1
            assert array[k % 8, k // 8 % 8] == data[k % 8, k // 8 % 8]

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(n_forks):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    status = int(not (np.array_equal(array[...], data) and array[3, 3] == array[3, 3] == 27))
                finally:
                    os._exit(status)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert cache.info()["nbytes"] <= 600


FORKER = """
import os, sys
caches = []
# Registered before those of zcore: `before` runs after them, the others before them.
os.register_at_fork(before=caches.clear, after_in_parent=lambda: caches.append(ChunkCache(10)),
                    after_in_child=lambda: caches.append(ChunkCache(10)))
from zcore.kernel.plan.cache import ChunkCache
caches.append(ChunkCache(100))
for _ in range(3):
    child = os.fork()
    caches.append(ChunkCache(100))
    caches.clear()
    if child == 0:
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_caches_may_come_and_go_while_a_process_forks():
    """Whatever hooks of others drop, or the garbage collector while they run."""
    subprocess.run([sys.executable, "-c", FORKER], check=True, timeout=60)


WRITER = """
import sys, time, mmap
import zcore
from tests.both_ways import WAYS, directory
path, shared, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
array = zcore.open(path, "r+")
with open(shared, "r+b") as file:
    done = mmap.mmap(file.fileno(), 8)
for version in range(1, n + 1):
    if version % 2:
        array[...] = version
    else:
        array[0:1000] = version
    done[:] = version.to_bytes(8, "little")
    time.sleep(0.06)
"""


@pytest.mark.parametrize("checksum", [True, False])
def test_readers_see_every_write_of_another_process_whole(tmp_path, checksum):
    """Eight threads read while a process replaces the chunk: nothing older than what was complete, nothing mixed."""
    n = 12
    array = zcore.create_array(tmp_path / "a", data=np.zeros(1000, "i8"), chunks=1000, checksum=checksum)
    array, cache = opened(tmp_path / "a", age_ns=30_000_000)
    (tmp_path / "shared").write_bytes(bytes(8))
    with open(tmp_path / "shared", "r+b") as file:
        done = mmap.mmap(file.fileno(), 8)
    wrong = []

    def read(k):
        version = 0
        while version < n and not wrong and time.monotonic() < deadline:
            before = int.from_bytes(done[:], "little")
            found = {int(array[k])} if version % 2 else set(array[k:k + 900].tolist())
            version = before
            if len(found) != 1 or not before <= min(found) <= n:
                wrong.append((before, found))

    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "a"), str(tmp_path / "shared"), str(n)])
    # Without a GIL, eight readers leave it no processor to start with.
    while writer.poll() is None and not any(done[:]):
        time.sleep(0.001)
    deadline = time.monotonic() + 60
    at_once(threading.Thread(target=read, args=(k,)) for k in range(8))
    assert writer.wait() == 0
    assert not wrong
    assert cache.info()["hits"] > 0 and set(array[...].tolist()) == {n}


MEASURED = """
import resource, sys
import numpy as np
import zcore
from tests.both_ways import WAYS, directory
from zcore.kernel.plan.cache import ChunkCache

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

array = zcore.open(sys.argv[1], cache="8 MiB", threads=2)
array._binding.options._chunks = ChunkCache(8 << 20, 0)
array[0, 0]
before = peak()
for _ in range(3):
    for i in range(64):
        array[i, 0]
        array[i - 1:i + 1, 5]
print(peak() - before, array._binding.options.chunks.info()["chunks"])
"""


def test_memory_is_what_was_granted_and_a_chunk_a_thread(tmp_path):
    zcore.create_array(tmp_path, data=np.arange(64.0)[:, None].repeat(1 << 17, axis=1), chunks=(1, 1 << 17))
    done = subprocess.run([sys.executable, "-c", MEASURED, str(tmp_path)], check=True, capture_output=True, text=True)
    grown, n_chunks = map(int, done.stdout.split())
    assert n_chunks == 7
    # Each thread has room for an encoded chunk, too.
    assert grown <= (8 << 20) + 2 * (2 << 20) + (1 << 20)


def test_chunks_of_a_shard_are_kept_by_their_places(tmp_path):
    """V3-SHARD-03"""
    data = np.arange(256, dtype="<i4").reshape(16, 16)
    zcore.create_array(tmp_path, data=data, chunks=(4, 4), shards=(8, 16), threads=1)
    array, cache = opened(tmp_path)
    for i, j, hits, misses in ((1, 1, 0, 1), (3, 3, 1, 1), (1, 5, 1, 2), (9, 1, 1, 3), (2, 6, 2, 3)):
        assert array[i, j] == data[i, j] and counts(cache)[:2] == (hits, misses)
    np.testing.assert_array_equal(array[::3, ::-5], data[::3, ::-5])
    np.testing.assert_array_equal(array[...], data)
    np.testing.assert_array_equal(array[...], data)
    assert cache.info()["chunks"] == 16
    zcore.open(tmp_path, "r+")[0, 0] = -1
    assert array[0, 0] == -1 and array[1, 1] == data[1, 1] and array[12, 12] == data[12, 12]
    raw = bytearray((tmp_path / "c/1/0").read_bytes())
    raw[10] ^= 1
    (tmp_path / "new").write_bytes(raw)
    os.replace(tmp_path / "new", tmp_path / "c/1/0")
    n_chunks = cache.info()["chunks"]
    with pytest.raises(zcore.ChecksumError):
        array[8:, :]
    assert all(np.array_equal(array[i], data[i]) for i in range(1, 8)) and cache.info()["chunks"] >= n_chunks


@pytest.mark.parametrize("around", [[], [{"name": "gzip", "configuration": {"level": 1}}]])
def test_shards_in_shards(tmp_path, around):
    """Chunks are kept where they are parts of the file, and never mixed up where they are not."""
    def shards_of(shape, codecs):
        return {"name": "sharding_indexed", "configuration": {
            "chunk_shape": shape, "codecs": codecs, "index_location": "end",
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]}}

    plain = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
    data = np.arange(256, dtype="<i4").reshape(16, 16)
    for i, codecs in enumerate(([shards_of((4, 4), [shards_of((2, 2), plain), *around])],
                                [shards_of((4, 4), [shards_of((2, 2), plain)]), *around])):
        zcore.create_array(tmp_path / str(i), shape=(16, 16), dtype="<i4", chunks=(8, 8), codecs=codecs)[...] = data
        array, cache = opened(tmp_path / str(i))
        for _ in range(2):
            np.testing.assert_array_equal(array[1:9, 3:7], data[1:9, 3:7])
            np.testing.assert_array_equal(array[::5, 11], data[::5, 11])
            assert array[3, 3] == data[3, 3]
        # Decoded shards with codecs behind them are the chunks that are kept.
        assert cache.info()["hits"] > 0
