"""Files as destinations: what fails leaves the old file and nothing else, and the first error is told."""
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
        zcore.copy(source, place, overwrite=True, chunks=(2, 10))
    assert place.read_bytes() == b"old" and os.listdir(place.parent) == [place.name]
