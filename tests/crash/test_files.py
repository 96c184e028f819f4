"""What lies in the place of a chunk, and what the files are that we put there."""
import os
import socket
import stat
from pathlib import Path

import numpy as np
import pytest

import zcore
from tests.both_ways import WAYS, directory
from zcore.errors import ChunkError, StoreError

FILL = -1


@pytest.fixture(params=WAYS)
def store(request, place):
    return directory(place, request.param)


def create(store, **options):
    array = zcore.open(store, mode="w", shape=(8,), chunks=(4,), dtype="i4", fill_value=FILL, cname="lz4", **options)
    array[...] = 7
    return array


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def make_directory(path):
    os.mkdir(path)


def make_full_directory(path):
    os.mkdir(path)
    open(path + "/file", "w").close()


def make_fifo(path):
    os.mkfifo(path)


def make_socket(path):
    # Its address is limited to about 100 bytes: bound where it is, by a short name.
    here = os.getcwd()
    os.chdir(os.path.dirname(path))
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(os.path.basename(path))
    finally:
        os.chdir(here)


def make_dangling_link(path):
    os.symlink("nowhere", path)


@pytest.mark.parametrize("make", [make_directory, make_full_directory])
def test_a_directory_is_not_a_chunk(store, place, make):
    """The key is missing, as in every other call of the store."""
    array = create(store)
    chunk = place + "/__zdata__/0.blosc"
    os.unlink(chunk)
    make(chunk)
    assert array.store.get("__zdata__/0.blosc") is None
    assert array[...].tolist() == [FILL] * 4 + [7] * 4
    with pytest.raises(ChunkError, match="missing='raise'"):
        zcore.open(store, missing="raise")[...]
    for value in (slice(1, 3), slice(0, 4)):
        with pytest.raises(StoreError):
            array[value] = 5
        assert array[...].tolist() == [FILL] * 4 + [7] * 4
    assert not [name for name in os.listdir(place + "/__zdata__") if name.startswith(".__zc_tmp.")]


@pytest.mark.parametrize("make", [make_fifo, make_socket, make_dangling_link])
def test_what_cannot_be_read_is_no_absent_chunk(store, place, make):
    """Nobody waits for a FIFO or takes it for a chunk that was never written; who writes a chunk replaces it."""
    array = create(store)
    chunk = place + "/__zdata__/0.blosc"
    os.unlink(chunk)
    make(chunk)
    for use in (lambda: array[...], lambda: array[2], lambda: array.__setitem__(slice(1, 3), 5),
                lambda: array.store.get("__zdata__/0.blosc")):
        with pytest.raises(StoreError, match="0.blosc"):
            use()
    assert array[4:].tolist() == [7] * 4
    assert not [name for name in os.listdir(place + "/__zdata__") if name.startswith(".__zc_tmp.")]
    array[:4] = 5
    assert os.path.isfile(chunk) and not os.path.islink(chunk)
    assert array[...].tolist() == [5] * 4 + [7] * 4


def test_a_directory_in_the_place_of_a_chunk_is_not_erased(store, place):
    array = create(store)
    chunk = place + "/__zdata__/0.blosc"
    os.unlink(chunk)
    make_full_directory(chunk)
    try:
        array[...] = FILL
    except StoreError as exc:
        assert exc.errno is not None
    assert os.listdir(chunk) == ["file"]
    assert (zcore.open(store)[:4] == FILL).all()


def test_a_linked_chunk_is_read_and_replaced_not_followed(store, place):
    array = create(store)
    # No link may lead out of a store that is confined.
    chunk, target = place + "/__zdata__/0.blosc", Path(place, "target") if store.confined else Path(place + ".target")
    os.rename(chunk, target)
    os.symlink(target, chunk)
    before = target.read_bytes()
    assert (array[...] == 7).all()
    array[1] = 5
    assert not os.path.islink(chunk) and target.read_bytes() == before
    assert array[:4].tolist() == [7, 5, 7, 7]


def test_a_chunk_directory_that_is_a_file(store, place):
    array = create(store)
    os.rename(place + "/__zdata__", place + "/elsewhere")
    open(place + "/__zdata__", "w").close()
    assert (array[...] == FILL).all()
    with pytest.raises(StoreError):
        array[...] = 5
    with pytest.raises(StoreError):
        array[1] = 5


def test_a_missing_chunk_directory_is_made_again(store, place):
    import shutil

    array = create(store)
    shutil.rmtree(place + "/__zdata__")
    array[1] = 5
    assert array[...].tolist() == [FILL, 5] + [FILL] * 6


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_new_files_get_what_the_umask_leaves(store, place, umask):
    old = os.umask(umask)
    try:
        array = create(store, attributes={"a": 1})
        array[1] = 5
        array.resize(12)
        array.append([1, 2, 3, 4])
        array.attrs["b"] = 2
    finally:
        os.umask(old)
    files = [os.path.join(folder, name) for folder, _, names in os.walk(place) for name in names]
    assert len(files) == 5
    assert {mode_of(path) for path in files} == {0o666 & ~umask}
    assert mode_of(place) == mode_of(place + "/__zdata__") == 0o777 & ~umask


def test_replaced_files_keep_their_mode(store, place):
    array = create(store, attributes={"a": 1})
    files = {place + "/__zdata__/0.blosc": 0o640, place + "/__zdata__/1.blosc": 0o600, place + "/__zmeta__": 0o660,
             place + "/__zattr__": 0o606}
    for path, mode in files.items():
        os.chmod(path, mode)
    inodes = {path: os.stat(path).st_ino for path in files}
    array[:6] = 5
    array.attrs["a"] = 2
    array.resize(9)
    assert {path: mode_of(path) for path in files} == files
    assert all(os.stat(path).st_ino != inodes[path] for path in files)


def test_fsync(store, place):
    """Every kind of change, with files and directories brought to the disk."""
    synced = zcore.DirectoryStore(place, fsync=True, confined=True) if store.confined else place
    array = create(synced, fsync=True)
    array[1] = 5
    array[4:] = FILL
    assert not os.path.exists(place + "/__zdata__/1.blosc")
    array[4:] = 9
    array.attrs["a"] = 1
    array.resize(6)
    array.append([1, 2])
    assert zcore.open(store)[...].tolist() == [7, 5, 7, 7, 9, 9, 1, 2]
    again = zcore.open(synced, mode="r+", fsync=True)
    assert again.store.fsync
    again[...] = np.arange(8)
    assert zcore.open(store)[...].tolist() == list(range(8))


def test_a_key_that_is_in_the_way(store, place):
    """Two arrays where the file of one would have to be a directory of the other."""
    array = create(store)
    with pytest.raises(StoreError):
        zcore.open(store, mode="w", path="__zdata__/0.blosc", shape=3, dtype="i4", cname="lz4")
    assert (array[...] == 7).all()
