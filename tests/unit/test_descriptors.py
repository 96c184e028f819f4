"""Ctrl-C after any call in C leaves no open descriptor.

Python handles a signal when a call in C has returned. A profile function is called at the same places, so one that
raises KeyboardInterrupt is a signal that comes there; all places are tried, one after the other.
"""
import gc
import itertools
import os
import sys

import numpy as np
import pytest

import zcore
from zcore.stores.directory import atomic

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs the list of open descriptors")


def interrupted(work, n):
    """Call `work` with Ctrl-C after its `n`-th call in C; return whether it had that many."""
    n_left = n

    def count(frame, event, argument):
        nonlocal n_left
        n_left -= event == "c_return"
        if n_left < 0:
            sys.setprofile(None)
            raise KeyboardInterrupt

    try:
        sys.setprofile(count)
        work()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return n_left < 0


def descriptors():
    found = {}
    for fd in os.listdir("/proc/self/fd"):
        try:
            found[fd] = os.readlink(f"/proc/self/fd/{fd}")
        except FileNotFoundError:
            pass     # that of the listing
    return found


def write_a_value(place):
    return lambda: atomic.write_file(f"{place}/a", memoryview(b"x" * 100), fsync=True)


def read_a_value(place):
    store = zcore.DirectoryStore(place)
    store.set("a/b", b"x" * 100)
    return lambda: store.get("a/b")


def create_by_locks_of_directories(place):
    return lambda: zcore.create_group(place / "g", overwrite=True)


def create_by_lock_files(place):
    return lambda: zcore.create_group(place / "g", overwrite=True, lock="file")


def write_asdf(place):
    return lambda: zcore.asdf.write(place / "a.asdf", {"x": np.arange(10)})


def open_asdf(place):
    zcore.asdf.write(place / "a.asdf", {"x": np.arange(10)})
    return lambda: zcore.open(place / "a.asdf").tree()


def write_zip(place):
    def write():
        with zcore.ZipStore(place / "a.zip", mode="w") as store:
            store.set("a", b"x")
    return write


def read_zip(place):
    write_zip(place)()
    return lambda: zcore.ZipStore(place / "a.zip").get("a")


def read_references(place):
    (place / "f.bin").write_bytes(bytes(range(40)))
    store = zcore.ReferenceStore({"version": 1, "refs": {"x": ["f.bin", 0, 20]}}, base=str(place))
    return lambda: store.get("x")


@pytest.mark.parametrize("prepare", [
    write_a_value, read_a_value, create_by_locks_of_directories, create_by_lock_files, write_asdf, open_asdf,
    write_zip, read_zip, read_references,
])
def test_an_interrupt_leaves_no_descriptor_open(tmp_path, monkeypatch, prepare):
    # Python reports an interrupt in a finalizer, and goes on.
    monkeypatch.setattr(sys, "unraisablehook", lambda found: None)
    work = prepare(tmp_path)
    work()
    before = descriptors()
    for n in itertools.count():
        if not interrupted(work, n):
            break
        if descriptors() != before:
            gc.collect()     # the objects of the call that was interrupted
        assert descriptors() == before, f"after call {n}"
    assert n > 3
