"""Destinations: what fails leaves the old file and nothing else, and the first error is told."""
import errno
import os

import numpy as np
import pytest

import zcore
from zcore.tools.copy.destinations import StoreSink
from zcore.tools.files.asdf import AsdfSink
from zcore.tools.files.hdf5 import Hdf5Sink
from zcore.tools.files.numpy import NpySink, NpzSink

VALUES = np.arange(60).reshape(6, 10)
SINKS = {".npy": NpySink, ".npz": NpzSink, ".asdf": AsdfSink, ".h5": Hdf5Sink, ".zip": StoreSink}


@pytest.fixture(params=SINKS)
def place(request, tmp_path):
    """Path of a file that is there."""
    pytest.importorskip({".asdf": "yaml", ".h5": "h5py"}.get(request.param, "numpy"))
    place = tmp_path / f"a{request.param}"
    place.write_bytes(b"old")
    return place


def fail(error):
    def call(*_, **__):
        raise error

    return call


@pytest.mark.thinned(3, "place", "error", "step")
@pytest.mark.parametrize("step", ["array", "end", "close", "group"])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "first"), RuntimeError("first"), KeyboardInterrupt("first")],
                         ids=lambda error: type(error).__name__)
def test_the_first_error_is_raised_and_nothing_is_left(place, step, error, monkeypatch):
    sink = SINKS[place.suffix]
    monkeypatch.setattr(sink, step, fail(error))
    if sink is not StoreSink:
        monkeypatch.setattr(sink, "discard", fail(RuntimeError("second")))
    group = zcore.group(zcore.MemoryStore())
    group["a"] = VALUES
    expected = zcore.StoreError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected, match="first") as raised:
        zcore.copy(group if step == "group" else group["a"], place, overwrite=True)
    if isinstance(error, OSError):
        assert raised.value.errno == errno.EIO and str(place) in str(raised.value)
    assert place.read_bytes() == b"old" and os.listdir(place.parent) == [place.name]
    if sink is Hdf5Sink:
        close_files_of_hdf5()


def close_files_of_hdf5():
    """Else HDF5 does it when the process ends, and calls Python, which has ended: a crash."""
    import h5py

    for file in h5py.h5f.get_obj_ids(h5py.h5f.OBJ_ALL, h5py.h5f.OBJ_FILE):
        h5py.File(file).close()


def test_a_directory_that_cannot_be_removed_hides_no_error(place, monkeypatch):
    def rmdir(path, **_):
        raise PermissionError(errno.EACCES, "second", path)

    monkeypatch.setattr("os.rmdir", rmdir)
    monkeypatch.setattr(SINKS[place.suffix], "end", fail(OSError(errno.ENOSPC, "first")))
    with pytest.raises(zcore.StoreError, match="first"):
        zcore.copy(zcore.array(VALUES), place, overwrite=True)
    assert place.read_bytes() == b"old"


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_that_comes_meanwhile_is_replaced_only_on_request(place, overwrite, monkeypatch):
    sink = SINKS[place.suffix]
    close = sink.close

    def close_late(self):
        close(self)
        place.write_bytes(b"another")

    os.unlink(place)
    monkeypatch.setattr(sink, "close", close_late)
    if overwrite:
        zcore.copy(zcore.array(VALUES), place, overwrite=True)
    else:
        with pytest.raises(zcore.NodeExistsError, match="there already"):
            zcore.copy(zcore.array(VALUES), place)
    assert (place.read_bytes() == b"another") == (not overwrite) and os.listdir(place.parent) == [place.name]


def test_a_directory_that_is_not_there(place):
    with pytest.raises(zcore.StoreError, match="No such file") as raised:
        zcore.copy(zcore.array(VALUES), place.parent / "no" / place.name)
    assert raised.value.errno == errno.ENOENT


def test_errors_of_the_source_are_told_as_they_are(place):
    source = zcore.create_array(zcore.MemoryStore(), data=VALUES, chunks=(3, 10))
    source.store.set("c/1/0", b"damaged")
    with pytest.raises(zcore.ChunkError):
        zcore.copy(source, place, overwrite=True, dtype="f8")
    assert place.read_bytes() == b"old" and os.listdir(place.parent) == [place.name]


def test_a_container_that_another_copy_has_just_removed(tmp_path, monkeypatch):
    """It had been there for mkdir, and was gone when it was looked at: that was an error of the system."""
    answers = [FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))]
    make = os.makedirs

    def made(path, *args, **keywords):
        if answers:
            raise answers.pop()
        return make(path, *args, **keywords)

    monkeypatch.setattr("os.makedirs", made)
    zcore.copy(zcore.array(np.arange(4)), tmp_path / "x")
    assert not answers and zcore.open(tmp_path / "x")[...].tolist() == [0, 1, 2, 3]


def test_an_old_node_that_stays_is_told_from_a_copy_that_fails(tmp_path, monkeypatch):
    zcore.save(tmp_path / "x", np.arange(3))
    with monkeypatch.context() as patch:
        patch.setattr("zcore.stores.directory.cleanup.remove_directory", fail(OSError(errno.EIO, "broken")))
        with pytest.raises(zcore.StoreError, match=r"the temporary files of the completed change in .*broken"):
            zcore.copy(zcore.array(np.arange(4)), tmp_path / "x", overwrite=True)
    assert zcore.open(tmp_path / "x")[...].tolist() == [0, 1, 2, 3]


def test_a_container_that_is_no_directory(tmp_path):
    (tmp_path / ".__zc_tmp.copy.x").write_bytes(b"")
    with pytest.raises(zcore.StoreError, match="cannot build"):
        zcore.copy(zcore.array(np.arange(4)), tmp_path / "x")


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_empty_directory_is_free_where_locks_are_files(tmp_path, monkeypatch, overwrite):
    monkeypatch.setattr(zcore.config, "lock", "file")
    (tmp_path / "x").mkdir()
    assert zcore.copy(zcore.array(np.arange(4)), tmp_path / "x", overwrite=overwrite)[...].tolist() == [0, 1, 2, 3]


def test_a_copy_replaces_an_array_that_is_created_while_it_looks(tmp_path, monkeypatch):
    """It came between two looks at the directory, and the copy took it for a directory without a node."""
    place, exists = str(tmp_path / "x"), os.path.lexists

    def looked_at(path):
        if path == place and not exists(path):
            monkeypatch.undo()
            zcore.create_array(tmp_path / "x", data=np.arange(3))
        return exists(path)

    monkeypatch.setattr(os.path, "lexists", looked_at)
    zcore.copy(zcore.array(np.arange(4)), tmp_path / "x", overwrite=True)
    assert zcore.open(tmp_path / "x")[...].tolist() == [0, 1, 2, 3]


def test_a_copy_replaces_an_array_that_is_deleted_while_it_looks(tmp_path, monkeypatch):
    """The directory was listed, and gone when its permissions were asked for: it counted as forbidden."""
    zcore.create_group(tmp_path / "h").create_array("x", data=np.arange(3))
    may = os.access

    def asked(path, mode, **keywords):
        monkeypatch.undo()
        del zcore.open_group(tmp_path / "h", "r+")["x"]
        return may(path, mode, **keywords)

    monkeypatch.setattr(os, "access", asked)
    zcore.copy(zcore.array(np.arange(4)), tmp_path / "h", destination_path="x", overwrite=True)
    assert zcore.open(tmp_path / "h")["x"][...].tolist() == [0, 1, 2, 3]
