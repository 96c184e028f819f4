"""Ctrl-C after any call in C, and at the first line of any function, leaves no open descriptor.

Python handles a signal when a call in C has returned, and at the first line of a function. A profile function is called
at the same places, so one that raises KeyboardInterrupt is a signal that comes there. The places are tried one after
the other: by default those where one instruction, called by another one, makes the first or the second such event, and
under `slow` all.
"""
import gc
import os
import sys
from collections import Counter

import numpy as np
import pytest

import zcore
from tests.descriptors import descriptors, needs_a_list
from zcore.stores.directory import atomic

pytestmark = needs_a_list


def interrupted(work, n, events=("c_return",)):
    """Call `work` with Ctrl-C at its `n`-th event; return whether it had that many."""
    n_left = n

    def count(frame, event, argument):
        nonlocal n_left
        n_left -= event in events
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


def positions(work, events, n_same):
    """Return the numbers of the events of `work`, without those that have as many before them from the same place."""
    met, seen = [], Counter()

    def note(frame, event, argument):
        if event in events:
            caller = frame.f_back
            met.append((event, frame.f_code, frame.f_lasti, caller.f_code, caller.f_lasti))

    try:
        sys.setprofile(note)
        work()
    finally:
        sys.setprofile(None)
    numbers = []
    for n, place in enumerate(met):
        if seen[place] < n_same:
            numbers.append(n)
        seen[place] += 1
    return numbers


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


def read_an_array_of_asdf(place):
    zcore.asdf.write(place / "a.asdf", {"x": np.arange(10)})
    array = zcore.open(place / "a.asdf")["x"]
    return lambda: array[...]


def read_a_block_of_asdf(place):
    zcore.asdf.write(place / "a.asdf", {"x": np.arange(10)})

    def work():
        with zcore.asdf.open(place / "a.asdf") as file:
            assert file.tree and file.blocks[0].read()
    return work


def update_asdf(place):
    zcore.asdf.write(place / "a.asdf", {"x": np.arange(10)})

    def work():
        with zcore.asdf.open(place / "a.asdf", "rw") as file:
            file.tree["y"] = 4
            file.update()
    return work


def update_asdf_in_place(place):
    zcore.asdf.write(place / "a.asdf", {"x": np.arange(10)}, pad=1000)

    def work():
        with zcore.asdf.open(place / "a.asdf", "rw") as file:
            file.tree["y"] = 4
            assert file.update(in_place=True)
    return work


def append_a_block_of_asdf(place):
    def work():
        zcore.asdf.write(place / "a.asdf", {"x": np.arange(10)})
        with zcore.asdf.open(place / "a.asdf", "rw") as file:
            file.append_block(b"xyz")
    return work


def append_rows_of_asdf(place):
    def work():
        with zcore.asdf.stream(place / "a.asdf", {"rows": zcore.asdf.Stream((3,), "<i2")}) as rows:
            rows.append([1, 2, 3])
    return work


def block_of_asdf(place):
    zcore.asdf.write(place / "a.asdf", {"x": np.arange(10)})
    opened = zcore.asdf.open(place / "a.asdf")
    return lambda: os.close(opened.blocks[0].descriptor())


def read_an_array_of_zip(place):
    zcore.save(place / "a.zip", np.arange(10))
    array = zcore.open(place / "a.zip")
    return lambda: array[...]


def write_zip(place):
    def write():
        with zcore.ZipStore(place / "a.zip", mode="w") as store:
            store.set("a", b"x")
    return write


def read_zip(place):
    write_zip(place)()
    return lambda: zcore.ZipStore(place / "a.zip").get("a")


def save_and_open_zip(place):
    def work():
        with zcore.ZipStore(place / "a.zip", mode="w") as store:
            zcore.save(store, np.arange(10))
        with zcore.ZipStore(place / "a.zip") as store:
            assert zcore.open(store)[3] == 3
    return work


def read_references(place):
    (place / "f.bin").write_bytes(bytes(range(40)))
    store = zcore.ReferenceStore({"version": 1, "refs": {"x": ["f.bin", 0, 20]}}, base=str(place))
    return lambda: store.get("x")


def copy_to(name):
    def prepare(place):
        group = zcore.group()
        group.create_array("x", data=np.arange(24).reshape(4, 6))
        return lambda: zcore.copy(group if name == "a.npz" else group["x"], place / name, overwrite=True, threads=1)
    prepare.__name__ = f"copy_to_{name}"
    return prepare


def copy_from_npy(place):
    np.save(place / "a.npy", np.arange(24).reshape(4, 6))
    return lambda: zcore.copy(place / "a.npy", zcore.MemoryStore(), chunks=(4, 3), threads=1)


def copy_from_a_directory(place):
    array = zcore.create_array(place / "a", data=np.arange(24).reshape(4, 6), chunks=(4, 3))
    documents = [place / "a" / "zarr.json", *(place / "a" / "c").rglob("*")]

    def work():
        for document in documents:
            os.utime(document)      # files that are younger than two seconds are held open
        zcore.copy(array, zcore.MemoryStore(), threads=1)
    return work


def share_an_array_of_asdf_with_c(place):
    zcore.asdf.write(place / "a.asdf", {"x": np.arange(10)})
    binding = zcore.open(place / "a.asdf")["x"]._binding
    return lambda: binding.transfers(1)


@pytest.mark.filterwarnings("ignore:.* was not closed")
@pytest.mark.parametrize("prepare", [
    write_a_value, read_a_value, create_by_locks_of_directories, create_by_lock_files, write_asdf, open_asdf,
    update_asdf, block_of_asdf, write_zip, read_references,
    *[pytest.param(work, marks=pytest.mark.slow) for work in (
        read_an_array_of_asdf, read_zip, share_an_array_of_asdf_with_c, read_a_block_of_asdf, append_a_block_of_asdf,
        read_an_array_of_zip, save_and_open_zip, copy_from_npy, update_asdf_in_place, append_rows_of_asdf)],
])
@pytest.mark.parametrize("n_same", [1, pytest.param(1 << 30, marks=pytest.mark.slow)])
def test_an_interrupt_leaves_no_descriptor_open(tmp_path, monkeypatch, prepare, n_same):
    # Python reports an interrupt in a finalizer, and goes on.
    monkeypatch.setattr(sys, "unraisablehook", lambda found: None)
    work = prepare(tmp_path)
    work()
    gc.collect()     # what other tests have left
    gc.freeze()      # so that it is not looked at again
    before = descriptors()
    numbers = positions(work, ("c_return", "call"), n_same)
    for n in numbers:
        if not interrupted(work, n, ("c_return", "call")):
            break
        if not descriptors() <= before:
            gc.collect()     # the objects of the call that was interrupted
        assert descriptors() <= before, f"after event {n}"
    assert len(numbers) > 3 and n > numbers[-1] // 2


@pytest.mark.parametrize("prepare", [copy_from_a_directory, share_an_array_of_asdf_with_c])
@pytest.mark.parametrize("n_same", [1, pytest.param(1 << 30, marks=pytest.mark.slow)])
def test_an_interrupt_leaves_no_descriptor_open_until_garbage_is_collected(tmp_path, monkeypatch, prepare, n_same):
    """And Ctrl-C is not swallowed by a finalizer."""
    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    work = prepare(tmp_path)
    work()
    gc.collect()
    gc.disable()
    try:
        before = descriptors()
        for n in (numbers := positions(work, ("c_return", "call"), n_same)):
            if not interrupted(work, n, ("c_return", "call")):
                break
            assert descriptors() <= before, f"after event {n}"
    finally:
        gc.enable()
    # Python's own weak dictionaries have finalizers in Python.
    assert len(numbers) > 30 and n > numbers[-1] // 2
    assert not [found for found in unraisable if found.object.__module__.startswith("zcore")]


@pytest.mark.parametrize("prepare", [copy_to("a.asdf"), *[
    pytest.param(copy_to(name), marks=pytest.mark.slow) for name in ("a.npy", "a.npz", "a.zip")]])
@pytest.mark.parametrize("n_same", [1, pytest.param(1 << 30, marks=pytest.mark.slow)])
def test_an_interrupt_leaves_no_file_of_a_copy(tmp_path, monkeypatch, prepare, n_same):
    """A temporary directory that was just made was left, and one whose removal was interrupted."""
    monkeypatch.setattr(sys, "unraisablehook", lambda found: None)
    work = prepare(tmp_path)
    work()
    gc.collect()
    before, files = descriptors(), sorted(os.listdir(tmp_path))
    for n in (numbers := positions(work, ("c_return",), n_same)):
        if not interrupted(work, n):
            break
        if not descriptors() <= before or sorted(os.listdir(tmp_path)) != files:
            gc.collect()
        assert descriptors() <= before, f"after call {n}"
        assert sorted(os.listdir(tmp_path)) == files, f"after call {n}"
    assert len(numbers) > 30 and n > numbers[-1] // 2
