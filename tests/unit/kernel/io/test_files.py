"""Objects in files, through plans that read and write one: sizes, temporary files, and what the system refuses."""
import contextlib
import errno
import json
import os
import resource
import subprocess
import sys
import threading

import numpy as np
import pytest

import zcore
from tests.descriptors import descriptors
from zcore.errors import ChunkError, CodecError, StoreError
from zcore.kernel.io.files import barrier, write_out, write_out_below

CHUNK = "__zdata__/0.blosc"


@pytest.fixture
def array(tmp_path):
    """One chunk of random numbers: stored as they are, so that its object is as long as one can be."""
    array = zcore.open(tmp_path / "a", mode="w", shape=1000, chunks=1000, dtype="i4", cname="lz4")
    array[...] = np.random.default_rng(1).integers(-2**31, 2**31, 1000)
    return array


def names(array):
    return sorted(os.listdir(os.path.join(array.store.path, "__zdata__")))


def test_an_object_replaced_while_it_is_read_is_one_or_the_other(tmp_path):
    array = zcore.open(tmp_path, mode="w", shape=300_000, chunks=300_000, dtype="i4", cname="lz4", clevel=0)
    array[...] = 0
    stop = threading.Event()

    def replace():
        n = 0
        while not stop.is_set():
            n += 1
            array[...] = n

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(100):
            found = array[...]
            assert (found == found[0]).all()
    finally:
        stop.set()
        thread.join()


def test_a_longer_object_than_any_chunk_makes(array):
    raw = array.store.get(CHUNK)
    for n_more in (1, 1000, 5_000_000):
        array.store.set(CHUNK, raw + bytes(n_more))
        with pytest.raises(CodecError, match="0.blosc"):
            array[...]
    with pytest.raises(CodecError):
        array[5] = 1
    assert array.store.getsize(CHUNK) == len(raw) + 5_000_000
    array[...] = 1
    assert (array[...] == 1).all()


def test_a_sparse_file_of_huge_size_is_not_read_whole(array):
    with open(os.path.join(array.store.path, CHUNK), "r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(CodecError):
        array[...]


def test_an_empty_object_is_damaged_not_missing(array):
    array.store.set(CHUNK, b"")
    for use in (lambda: array[...], lambda: array.__setitem__(5, 1)):
        with pytest.raises(ChunkError, match="0 bytes"):
            use()


def test_left_over_temporary_files_do_no_harm(array):
    before = array[...]
    folder = os.path.join(array.store.path, "__zdata__")
    for name in (".__zc_tmp.0", ".__zc_tmp." + "f" * 24):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(b"part of a chunk")
    assert array.nchunks_initialized == 1 and (array[...] == before).all()
    array.resize(1500)
    array.resize(1000)
    assert (array[...] == before).all()
    assert array.store.clean_temporary(older_than=-60) == 2
    assert names(array) == ["0.blosc"]


def run_limited(path, code):
    """Run `code` with `array` in a process that may write no file longer than 1000 bytes."""
    code = f"""
import json, resource, signal
import numpy
import zcore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
array = zcore.open({path!r}, mode="r+")
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
found = []
{code}
print(json.dumps(found))
"""
    environment = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(zcore.__file__)))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_write_that_fails_leaves_the_old_object(array):
    """A file that cannot grow is the nearest thing to a full disk: the first bytes go, the rest does not."""
    before = array[...]
    found = run_limited(array.store.path, """
noise = numpy.random.default_rng(2).integers(0, 2**31, 3000)
for selection in (slice(None), slice(3, 500)):
    try:
        array[selection] = noise[:1000][selection]
    except zcore.errors.StoreError as exc:
        found.append([exc.errno, exc.key])
try:
    array.append(noise)
except zcore.errors.StoreError as exc:
    found.append([exc.errno, exc.key])
array.attrs["small"] = 1
try:
    array.attrs["large"] = "x" * 2000
except zcore.errors.StoreError as exc:
    found.append([exc.errno, exc.key])
""")
    assert found == [[errno.EFBIG, CHUNK], [errno.EFBIG, CHUNK], [errno.EFBIG, "__zdata__/1.blosc"],
                     [errno.EFBIG, "__zattr__"]]
    assert (array[...] == before).all() and array.refresh().shape == (1000,)
    assert names(array) == ["0.blosc"]
    assert array.attrs.asdict() == {"small": 1}


def test_the_longest_key(tmp_path):
    """64 dimensions and an index of 18 digits; no array has a longer key, as its elements can be counted."""
    last = (10**18 - 1,) + (0,) * 63
    array = zcore.open(tmp_path, mode="w", shape=(10**18,) + (1,) * 63, chunks=(1,) * 64, dtype="i1", cname="lz4")
    array[last] = 1
    assert array[last] == 1 and list(array.store.list_prefix("__zdata__/")) == [
        "__zdata__/" + ".".join(map(str, last)) + ".blosc"]


def test_directories_pruned_under_a_writer(tmp_path):
    """An eraser that empties the chunk directory removes it; a writer makes it again, however often."""
    array = zcore.open(tmp_path, mode="w", shape=40, chunks=1, dtype="i4", cname="lz4")
    stop = threading.Event()
    other = zcore.open(tmp_path, mode="r+")

    def erase():
        while not stop.is_set():
            other.store.erase_prefix("__zdata__/")

    thread = threading.Thread(target=erase)
    thread.start()
    try:
        for i in range(1, 60):
            try:
                array[...] = i
            except StoreError as exc:
                # A temporary file was erased with the rest: that write failed and says so.
                assert exc.errno == errno.ENOENT
    finally:
        stop.set()
        thread.join()
    array[...] = 7
    assert (array[...] == 7).all()


def test_modes_of_old_and_new_objects(tmp_path):
    """Replaced objects keep their mode, new ones have what the umask leaves, in whichever order they come."""
    array = zcore.open(tmp_path, mode="w", shape=60, chunks=10, dtype="i4", cname="lz4", threads=1)
    folder = tmp_path / "__zdata__"
    array[10:20] = array[30:50] = 1
    (folder / "fresh").touch()
    default = (folder / "fresh").stat().st_mode
    for i, mode in ((1, 0o600), (3, 0o640), (4, 0o444)):
        (folder / f"{i}.blosc").chmod(mode)
    for values in (2, 3):
        array[...] = values
        modes = [(folder / f"{i}.blosc").stat().st_mode & 0o7777 for i in range(6)]
        assert modes == [default & 0o7777, 0o600, default & 0o7777, 0o640, 0o444, default & 0o7777]
        assert (array[...] == values).all()


@pytest.mark.parametrize("call", [write_out, barrier])
def test_what_cannot_be_synced_is_an_error(call, tmp_path):
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        call(-1)
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        barrier(fd)
    finally:
        os.close(fd)


@pytest.mark.parametrize("n", [0, 3, 64, 65, 200])
def test_all_files_below_are_written_out(tmp_path, n):
    before = descriptors()
    (tmp_path / "c" / "0").mkdir(parents=True)
    for i in range(n):
        (tmp_path / "c" / "0" / str(i)).write_bytes(b"x")
    os.symlink("nowhere", tmp_path / "link")
    os.mkfifo(tmp_path / "fifo")
    write_out_below(str(tmp_path))
    assert descriptors() == before
    with pytest.raises(FileNotFoundError):
        write_out_below(str(tmp_path / "missing"))


@pytest.mark.parametrize("change", ["append", "overwrite"])
def test_few_descriptors_are_enough_to_write_out_many_files(tmp_path, change):
    """In memory nothing is written out, and this tests nothing."""
    data = np.arange(60.0)
    zcore.create_array(tmp_path / "a", data=data[:2], chunks=1, compressors=None)
    array = zcore.open(tmp_path / "a", mode="r+", threads=1)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(int(fd) for fd in os.listdir("/dev/fd")) + 20, hard))
    taken = []
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open(tmp_path, os.O_RDONLY))
        for _ in range(14):
            os.close(taken.pop())
        if change == "append":
            array.append(data[2:])
        else:
            zcore.create_array(tmp_path / "a", data=data, chunks=1, overwrite=True)
    finally:
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert np.array_equal(zcore.load(tmp_path / "a"), data)
