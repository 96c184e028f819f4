"""What a copy promises: the source is read before its place is touched, a part is never there, and what was read counts
only if the source is the same in the end. Each step fails once, or the process ends there."""
import errno
import itertools
import os
import shutil
import subprocess
import sys
import sysconfig
import threading
import warnings

import numpy as np
import pytest

import zcore
from zcore.formats import format_of
from zcore.hierarchy import exchange, lookup
from zcore.stores.directory import staged
from zcore.tools.copy import destinations, document_last, transfer
from zcore.tools.copy.destinations import Building

zarr_v3 = format_of(3)

VALUES = np.arange(1, 101, dtype="i4").reshape(10, 10)
OLD = VALUES[:4] * -1


class Destination:
    """One place, for which each call of `store` gives a new store, and `below` one of a directory in it, if it can."""

    def __init__(self, kind, folder):
        self.kind = kind
        self.path = str(folder / "place")
        self.client = None
        if kind == "memory":
            self.client = zcore.MemoryStore()
        elif kind == "remote":
            self.client = pytest.importorskip("obstore").store.MemoryStore()
        elif kind == "linked":
            os.symlink(self.path, folder / "link")

    def store(self):
        if self.kind == "memory":
            return self.client
        if self.kind == "remote":
            return zcore.RemoteStore(self.client)
        return zcore.DirectoryStore(self.path, confined=self.kind == "confined")

    def other(self):
        """The same place by another name, if it has one."""
        return zcore.DirectoryStore(os.path.dirname(self.path) + "/link") if self.kind == "linked" else self.store()

    def below(self, name):
        """(store, path) of what lies in it."""
        if self.kind in ("confined", "directory"):
            return zcore.DirectoryStore(f"{self.path}/{name}"), ""
        return self.other(), name

    def left(self):
        """What lies there and belongs to no node."""
        report = zcore.verify(self.store())
        if self.kind not in ("memory", "remote"):
            names = {"place", "link"} if self.kind == "linked" else {"place"}
            assert set(os.listdir(os.path.dirname(self.path))) == names
        return report.problems


@pytest.fixture(params=["memory", "remote", "directory", "confined", "linked"])
def spot(request, tmp_path):
    return Destination(request.param, tmp_path)


# overlaps

@pytest.mark.parametrize("wanted", [{}, {"chunks": (4, 9)}, {"zarr_format": 2}], ids=str)
def test_copy_onto_itself_keeps_every_element(spot, wanted):
    zcore.create_array(spot.store(), data=VALUES, chunks=(3, 3), attributes={"x": 1})
    new = zcore.copy(spot.store(), spot.other(), overwrite=True, **wanted)
    assert np.array_equal(new[...], VALUES) and dict(new.attrs) == {"x": 1}
    assert spot.left() == []


def test_handle_onto_its_own_place_keeps_every_element(spot):
    handle = zcore.create_array(spot.store(), data=VALUES, chunks=(3, 3))
    new = zcore.copy(handle, spot.other(), overwrite=True, selection=np.s_[::-1])
    assert np.array_equal(new[...], VALUES[::-1]) and spot.left() == []


def test_member_over_its_group_keeps_every_element(spot):
    group = zcore.create_group(spot.store())
    group.create_array("b/c", data=VALUES, chunks=(3, 3))
    group.create_array("d", data=OLD)
    store, path = spot.below("b")
    new = zcore.copy(store, spot.store(), path=path, overwrite=True)
    assert list(new) == ["c"] and np.array_equal(new["c"][...], VALUES) and spot.left() == []


def test_group_into_its_own_member_keeps_every_element(spot):
    group = zcore.create_group(spot.store(), attributes={"x": 1})
    group.create_array("a", data=VALUES, chunks=(3, 3))
    for overwrite in (False, True):     # the second time all that is there goes into its member as well
        store, path = spot.below("b/c") if overwrite else (spot.other(), "b/c")
        new = zcore.copy(spot.store(), store, destination_path=path, overwrite=overwrite)
        assert np.array_equal(new["a"][...], VALUES) and new.attrs["x"] == 1
        assert np.array_equal(zcore.open(spot.store(), path="a")[...], VALUES)
    assert np.array_equal(new["b/c/a"][...], VALUES) and spot.left() == []


def test_failed_copy_leaves_the_node_that_it_was_to_replace(spot):
    source = zcore.create_array(zcore.MemoryStore(), data=VALUES, chunks=(3, 3))
    source.store.set("c/2/1", source.store.get("c/2/1")[:-4])
    zcore.create_group(spot.store()).create_array("a", data=OLD)
    zcore.consolidate_metadata(spot.store())
    for path in ("a", ""):
        with pytest.raises(zcore.ChunkError):
            zcore.copy(source, spot.store(), destination_path=path, chunks=(5, 5), overwrite=True)
    assert np.array_equal(zcore.open_consolidated(spot.store())["a"][...], OLD)
    if spot.kind in ("memory", "remote"):
        assert spot.left() == []


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_copy_over_a_group_has_consolidated_metadata_of_its_own(spot, zarr_format):
    source = zcore.create_group(zcore.MemoryStore(), zarr_format=zarr_format)
    source.create_array("a", data=VALUES)
    zcore.create_group(spot.store(), zarr_format=zarr_format).create_array("b", data=OLD)
    for store in (source.store, spot.store()):
        zcore.consolidate_metadata(store)
    zcore.copy(source.store, spot.other(), overwrite=True)
    assert list(zcore.open_consolidated(spot.store())) == ["a"] and spot.left() == []


def test_nodes_below_a_place_without_one_are_not_replaced(spot):
    zcore.create_group(spot.store()).create_array("a/b", data=OLD)
    store = spot.store()
    for key in ("zarr.json", "a/zarr.json"):
        store.erase(key)
    with pytest.raises(zcore.NodeExistsError):
        zcore.copy(zcore.array(VALUES), store, destination_path="a", overwrite=True)
    assert np.array_equal(zcore.open(store, path="a/b")[...], OLD)


@pytest.mark.parametrize("path", ["", "x"])
@pytest.mark.parametrize("stray", ["c/0/7", "c/3", "c", "g/b/c/1/1", "g/b/c/1/1/1"])
@pytest.mark.parametrize("kind", ["memory", "remote", "other"])
def test_what_a_lost_node_has_left_is_not_erased_unasked(kind, stray, path, tmp_path):
    """In a store without directories. In a directory it is in the way of any copy."""
    store = Failing() if kind == "other" else Destination(kind, tmp_path).store()
    zcore.create_group(store, path="y")
    prefix = f"{path}/" if path else ""
    source = zcore.create_group(zcore.MemoryStore(), attributes={"x": 1})
    source.create_array("g/b", data=VALUES, chunks=(3, 3))
    if not stray.startswith("g/"):
        source = zcore.array(VALUES, chunks=(3, 3))
    if not path:
        store.erase("zarr.json")
        store.erase("y/zarr.json")
    keys = [f"{prefix}{stray}", f"{prefix}README", f"{prefix}g/b/README"]
    for key in keys:
        store.set(key, b"mine")
    before = {key: store.get(key) for key in store.list()}
    with pytest.raises(zcore.StoreError, match="overwrite=True") as caught:
        zcore.copy(source, store, destination_path=path)
    assert caught.value.key.endswith(stray) and {key: store.get(key) for key in store.list()} == before
    new = zcore.copy(source, store, destination_path=path, overwrite=True)
    new = new["g/b"] if stray.startswith("g/") else new
    assert np.array_equal(new[...], VALUES)
    assert [store.get(key) for key in keys[1:]] == [b"mine"] * 2 and store.get(keys[0]) != b"mine"


def test_another_thread_creates_nothing_where_a_copy_is_going_on(tmp_path):
    """Its chunks would get mixed with those of the copy, which have their keys already."""
    store, outcomes, threads = Failing(), [], []

    def create():
        try:
            outcomes.append(zcore.create_array(store, name="a", data=-VALUES, chunks=(3, 3)))
        except zcore.NodeExistsError as error:
            outcomes.append(error)

    def tell(done, total):
        if not threads:
            threads.append(threading.Thread(target=create))
            threads[0].start()
            threads[0].join(0.1)

    zcore.create_group(store)
    new = zcore.copy(zcore.array(VALUES, chunks=(3, 3)), store, destination_path="a", progress=tell)
    threads[0].join()
    assert isinstance(outcomes[0], zcore.NodeExistsError) and np.array_equal(new[...], VALUES)


@pytest.mark.parametrize("kind", ["memory", "remote"])
def test_a_group_is_moved_after_a_copy_to_its_member_has_ended(kind, tmp_path):
    """Chunks of the copy would stay behind; and the two calls could wait for each other."""
    store, threads = Destination(kind, tmp_path).store(), []
    group = zcore.create_group(store)
    group.create_group("g")

    def tell(done, total):
        if not threads:
            threads.append(threading.Thread(target=group.move, args=("g", "h")))
            threads[0].start()
            threads[0].join(0.1)

    zcore.copy(zcore.array(VALUES, chunks=(3, 3)), store, destination_path="g/a", progress=tell)
    threads[0].join()
    assert np.array_equal(group["h/a"][...], VALUES) and "g" not in group and zcore.verify(store).ok


def make_groups(folder):
    """A group with the group s, which is copied, and the group g, into which it is copied."""
    group = zcore.create_group(folder / "x")
    for name in "ab":
        group.create_array(f"s/{name}", data=VALUES, chunks=(5, 10))
    group.create_group("g")
    return group


def copied_into_g(group, change, overwrite):
    """Copy s to g/d. The `change` comes after the first object."""
    changes = [change]
    return zcore.copy(group["s"], group.store, destination_path="g/d", overwrite=overwrite,
                      progress=lambda done, total: changes and changes.pop()(group))


def moved(group):
    group.move("g", "h")


def moved_and_made_again(group):
    group.move("g", "h")
    group.create_group("g")


def replaced(group):
    zcore.copy(zcore.create_group(zcore.MemoryStore()), group.store, destination_path="g", overwrite=True)


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("change, left", [(moved, "h"), (moved_and_made_again, "gh"), (replaced, "g")])
def test_a_group_above_is_moved_or_replaced_while_it_is_copied_to(change, left, is_there, tmp_path):
    """Part of the copy would be at each of two places, chunks without their documents."""
    group = make_groups(tmp_path)
    if is_there:
        group.create_array("g/d", data=OLD)
    with pytest.raises(zcore.StoreError, match="a group above .* was moved, replaced or deleted"):
        copied_into_g(group, change, is_there)
    assert sorted(group) == sorted(["s", *left]) and zcore.verify(group).ok
    assert [name for one in left for name in group[one]] == (["d"] if is_there and "h" in left else [])


def test_a_copy_to_the_old_path_of_a_group_keeps_out_of_another_one(tmp_path):
    """The two have containers of one name, one after the other."""
    group, threads, outcomes = make_groups(tmp_path), [], []
    begun, ended = threading.Event(), threading.Event()

    def wait(done, total):
        begun.set()
        assert ended.wait(60)

    def copy_too():
        try:
            source = zcore.create_group(zcore.MemoryStore())
            source.create_array("b", data=-VALUES, chunks=(5, 10))
            outcomes.append(zcore.copy(source, group.store, destination_path="g/d", progress=wait))
        finally:
            begun.set()

    def change(group):
        moved_and_made_again(group)
        threads.append(threading.Thread(target=copy_too))
        threads[0].start()
        assert begun.wait(60)

    try:
        with pytest.raises(zcore.StoreError, match="was moved, replaced or deleted"):
            copied_into_g(group, change, False)
    finally:
        ended.set()
        threads[0].join()
    assert list(outcomes[0]) == ["b"] and np.array_equal(outcomes[0]["b"][...], -VALUES)
    assert zcore.verify(group).ok


def test_a_group_above_is_deleted_before_a_copy_gets_its_name(tmp_path, monkeypatch):
    group, put = make_groups(tmp_path), Building.commit

    def late(work, replace):
        del group["g"]
        put(work, replace)

    monkeypatch.setattr(Building, "commit", late)
    with pytest.raises(zcore.StoreError, match="a group above .* was moved, replaced or deleted"):
        zcore.copy(group["s"], group.store, destination_path="g/d")
    assert os.listdir(group.store.path) in (["s", "zarr.json"], ["zarr.json", "s"])


def test_a_node_that_is_to_be_replaced_is_deleted_before_its_place_is_held(tmp_path, monkeypatch):
    group, place = make_groups(tmp_path), exchange.Place
    group.create_array("g/d", data=OLD)
    left = ["g/d"]

    def late(*args, **keywords):
        if left:
            del group[left.pop()]
        return place(*args, **keywords)

    monkeypatch.setattr(exchange, "Place", late)
    zcore.copy(group["s"], group.store, destination_path="g/d", overwrite=True)
    assert not left and np.array_equal(group["g/d/b"][...], VALUES)


def test_zip_and_numpy_files_are_copied_onto_themselves(tmp_path):
    for name in ("a.zip", "a.npy", "a.npz"):
        place = tmp_path / name
        zcore.copy(zcore.array(VALUES), place)
        zcore.copy(place, place, overwrite=True, **({"path": "arr_0"} if name == "a.npz" else {}))
        back = zcore.copy(place, zcore.MemoryStore(), path="arr_0" if name == "a.npz" else "")
        assert np.array_equal(back[...], VALUES)


# steps that fail

def make_old(store):
    group = zcore.create_group(store, attributes={"age": "old"})
    group.create_array("a", data=OLD, chunks=(2, 5))
    group.create_array("g/b", data=OLD, chunks=(2, 5))


def make_new(store):
    group = zcore.create_group(store, attributes={"age": "new"})
    group.create_array("a", data=VALUES, chunks=(3, 6))
    group.create_array("h/c", data=VALUES, chunks=(6, 6))
    return store


def age_of(store, path=""):
    """Which of both stands there, whole; None for neither."""
    try:
        group = zcore.open(store, path=path)
    except zcore.NodeNotFoundError:
        return None
    age = group.attrs["age"]
    below, values = (["a", "g", "g/b"], OLD) if age == "old" else (["a", "h", "h/c"], VALUES)
    assert sorted(name for name, _ in group.members(None)) == below, age
    for name in below[::2]:
        assert np.array_equal(group[name][...], values), (age, name)
    return age


class Failing(zcore.MemoryStore):
    """A store of which the call number `at` fails, and all that follow if it is `dead` then."""

    at, dead = None, False
    n_calls = 0

    def _count(self):
        self.n_calls += 1
        if self.at is not None and (self.n_calls >= self.at if self.dead else self.n_calls == self.at):
            raise zcore.StoreError("the service is gone")


def counted(method):
    def call(self, *args, **keywords):
        self._count()
        return method(self, *args, **keywords)

    return call


for name in ("get", "get_with_identity", "get_first", "existing", "list_dir", "getsize", "set", "set_if_not_exists",
             "erase", "erase_prefix", "identity"):
    setattr(Failing, name, counted(getattr(zcore.MemoryStore, name)))


ONE, ALL, CTRL_C = "one call fails", "all further calls fail", "Ctrl-C"
NEXT = ["repair", "the same copy", "a refused copy", "another copy"]


def cases(*lists, quick, stride=1):
    """All combinations, as slow tests, with 1 behind them; and those that are quick to tell, with `stride`."""
    return [(*case, stride) for case in quick] + [
        pytest.param(*case, 1, marks=pytest.mark.slow) for case in itertools.product(*lists)]


@pytest.mark.parametrize("path, comes_next, fault, stride", cases(
    ["", "x/y"], NEXT, [ONE, ALL], quick=[("", NEXT[0], ALL), ("x/y", NEXT[1], ALL), ("x/y", NEXT[2], ONE)], stride=3))
def test_replacement_in_a_store_fails_at_every_call(path, comes_next, fault, stride):
    """The old node stands, or the new one; or it does as soon as somebody comes by."""
    source = make_new(zcore.MemoryStore())
    filled = zcore.MemoryStore()
    zcore.copy(make_old_in_memory(), filled, destination_path=path)
    zcore.consolidate_metadata(filled, path=path)     # a deletion of a member changes the group's document
    items = {key: filled.get(key) for key in filled.list()}
    seen = set()
    for at in itertools.count(1, stride):
        store = Failing(items)
        store.n_calls, store.at, store.dead = 0, at, fault == ALL
        try:
            zcore.copy(source, store, destination_path=path, overwrite=True)
            is_done = store.n_calls < at
        except zcore.StoreError:
            is_done = False
        store.at = None
        # As long as nothing of the old node was deleted, it is the old one that stays.
        journaled = any(key.endswith("/journal") for key in store.list())
        assert not journaled or fault == ALL     # an error in the middle of the exchange lets the copy finish it
        try:
            before = age_of(store, path)
        except AssertionError:
            before = None     # members of the old node are gone
        assert before is not None or journaled
        seen.add(before)
        if comes_next == "repair":
            zcore.verify(store, repair=True)
        elif comes_next == "a refused copy":
            with pytest.raises(zcore.NodeExistsError):
                zcore.copy(source, store, destination_path=path)
        else:
            wanted = {} if comes_next == "the same copy" else {"zarr_format": 2}
            zcore.copy(source, store, destination_path=path, overwrite=True, **wanted)
        age = age_of(store, path)
        assert age == "new" or (age == before == "old" and comes_next in ("repair", "a refused copy"))
        assert not any(key.startswith(document_last.STAGING) for key in store.list())
        assert zcore.verify(store).ok
        if is_done:
            break
    assert seen - {None} == {"old", "new"}


def make_old_in_memory():
    store = zcore.MemoryStore()
    make_old(store)
    return store


@pytest.mark.parametrize("can_exchange", [True, False])
def test_what_is_deleted_before_it_is_replaced(can_exchange, tmp_path, monkeypatch):
    make_old(tmp_path / "x")
    swap = staged.exchange

    def late(*names):
        shutil.rmtree(tmp_path / "x")
        if not can_exchange:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        swap(*names)

    monkeypatch.setattr(staged, "exchange", late)
    zcore.copy(make_new(zcore.MemoryStore()), tmp_path / "x", overwrite=True)
    assert age_of(tmp_path / "x") == "new" and os.listdir(tmp_path) == ["x"]


STEPS = [(staged, "exchange")] + [
    (os, name) for name in ("rename", "unlink", "rmdir", "mkdir", "open", "write", "ftruncate", "replace", "fsync",
                            "listdir", "scandir", "lstat")]


@pytest.mark.parametrize("fault, comes_next, n_renames, stride", cases(
    [ONE, ALL, CTRL_C], [*NEXT[:3], "repair of the group above"], [1, 2],
    quick=[(ALL, NEXT[2], 1), (CTRL_C, "repair of the group above", 2)], stride=7))
def test_replacement_of_a_directory_fails_at_every_call(fault, comes_next, n_renames, stride, tmp_path, monkeypatch):
    source = make_new(zcore.MemoryStore())
    make_old(tmp_path / "original")

    def unknown(*_):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    if n_renames == 2:
        monkeypatch.setattr(staged, "exchange", unknown)
    monkeypatch.setattr("zcore.tools.verify.repair.YOUNG", 0)
    group, place = str(tmp_path / "group"), str(tmp_path / "group/x")
    zcore.create_group(group)
    seen = set()
    for at in itertools.count(1, stride):
        shutil.copytree(tmp_path / "original", place)
        n_calls = 0

        def failing(function):
            def call(*args, **keywords):
                nonlocal n_calls
                n_calls += 1
                if n_calls == at or (n_calls > at and fault == ALL):
                    raise KeyboardInterrupt if fault == CTRL_C else OSError(errno.EIO, os.strerror(errno.EIO))
                return function(*args, **keywords)

            return call

        with monkeypatch.context() as patch:
            for module, name in STEPS:
                patch.setattr(module, name, failing(getattr(module, name)))
            try:
                zcore.copy(source, place, overwrite=True)
                is_done = n_calls < at
            except (zcore.StoreError, KeyboardInterrupt):
                is_done = False
        before = age_of(place)
        seen.add(before)
        if comes_next == "repair":
            zcore.verify(place, repair=True)
        elif comes_next == "repair of the group above":
            zcore.verify(group, repair=True)
        elif comes_next == "a refused copy":
            with pytest.raises(zcore.NodeExistsError):
                zcore.copy(source, place)
        else:
            zcore.copy(source, place, overwrite=True)
        after = age_of(place)
        assert after == "new" or (after == "old" and comes_next != "the same copy"), at
        assert before is None or after == before or comes_next == "the same copy"
        assert zcore.verify(place).ok
        zcore.verify(group, repair=True)
        assert os.listdir(group) in (["x", "zarr.json"], ["zarr.json", "x"])
        shutil.rmtree(place)
        if is_done:
            break
    assert seen - {None} == {"old", "new"}
    assert None not in seen or n_renames == 2


@pytest.mark.parametrize("name", ["x", "n" * 240])
@pytest.mark.parametrize("is_whole", [True, False])
def test_what_a_kill_has_left_without_a_name_gets_one(name, is_whole, tmp_path, monkeypatch):
    """Killed between two renames: the new node, which is whole then, or the old one."""
    place = str(tmp_path / name)
    make_old(place)
    work = Building(place, {"x": 1})
    if is_whole:
        make_new(work.node)
    os.mkdir(os.path.join(work.container, "old"))
    os.rename(place, os.path.join(work.container, "old", name))
    work.leave()
    zcore.create_group(tmp_path)
    monkeypatch.setattr("zcore.tools.verify.repair.YOUNG", 0)
    zcore.verify(tmp_path, repair=True)
    assert age_of(place) == ("new" if is_whole else "old") and sorted(os.listdir(tmp_path)) == [name, "zarr.json"]


@pytest.mark.parametrize("content", [[], ["node/x"]])
def test_a_container_is_not_removed_while_another_process_begins_to_build(content, tmp_path, monkeypatch):
    place = str(tmp_path / "x")
    container = destinations.container_of(place)
    for name in ("", *content):
        os.makedirs(os.path.join(container, name))
    lock, works = staged._locked, []

    def begin(*arguments):
        monkeypatch.setattr(staged, "_locked", lock)
        works.append(Building(place, {"x": 1}))
        make_old(works[0].node)
        return lock(*arguments)

    monkeypatch.setattr(staged, "_locked", begin)
    assert staged.recover(container, removes=True) is None
    works[0].commit(False)
    works[0].discard("completed")
    works[0].leave()
    assert age_of(place) == "old" and os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("content", [[], ["node/x"]])
def test_a_container_without_a_request_is_removed(content, tmp_path):
    container = destinations.container_of(str(tmp_path / "x"))
    for name in ("", *content):
        os.makedirs(os.path.join(container, name))
    assert staged.recover(container) is None and os.path.isdir(container)
    assert staged.recover(container, removes=True) is None and os.listdir(tmp_path) == []
    assert staged.recover(container, removes=True) is None


@pytest.mark.skipif(sysconfig.get_config_var("Py_GIL_DISABLED") and sys.version_info < (3, 14), reason="CPython 3.13t "
                    "never frees modules and functions once it has had two threads, and calls these finalizers last")
def test_a_copy_by_a_finalizer_when_the_interpreter_exits(tmp_path):
    """The built-in `open` is gone then."""
    zcore.create_array(tmp_path / "a", data=np.arange(10), chunks=4)
    code = f"""
import os, sys, zcore

class Last:
    def __del__(self, copy=zcore.copy, write=os.write, place={str(tmp_path)!r}, form=repr):
        try:
            assert sys.meta_path is None
            copy(place + "/a", place + "/b")
            write(1, b"done")
        except BaseException as error:
            write(1, form(error).encode())

zcore.copy({str(tmp_path / "a")!r}, {str(tmp_path / "first")!r})
last = Last()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("done", "")
    assert zcore.open(tmp_path / "b")[...].tolist() == list(range(10)) and zcore.verify(tmp_path / "b").ok


def test_a_container_that_another_process_removes_while_it_is_recovered(tmp_path, monkeypatch):
    work = Building(str(tmp_path / "x"), {"x": 1})
    work.leave()
    lock = staged._locked

    def lock_and_lose(*arguments):
        fd = lock(*arguments)
        shutil.rmtree(work.container)
        return fd

    monkeypatch.setattr(staged, "_locked", lock_and_lose)
    assert staged.recover(work.container, removes=True) is None


@pytest.mark.parametrize("can_exchange", [True, False])
def test_what_was_replaced_does_not_come_back_when_its_successor_is_deleted(can_exchange, tmp_path, monkeypatch):
    make_old(tmp_path / "x")
    with monkeypatch.context() as patch:
        patch.setattr("zcore.stores.directory.cleanup.remove_directory",
                      lambda path: (_ for _ in ()).throw(KeyboardInterrupt))
        if not can_exchange:
            patch.setattr(staged, "exchange", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSYS, "no")))
        with pytest.raises(KeyboardInterrupt):
            zcore.copy(make_new(zcore.MemoryStore()), tmp_path / "x", overwrite=True)
    assert age_of(tmp_path / "x") == "new"
    shutil.rmtree(tmp_path / "x")
    new = zcore.copy(zcore.array(VALUES), tmp_path / "x")
    assert np.array_equal(new[...], VALUES) and os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("name", ["", "a", "below/other"])
def test_nobody_creates_a_node_between_the_one_that_a_copy_replaces_and_the_new_one(monkeypatch, name):
    """Its chunks would stay among those of the new one."""
    store, source = make_old_in_memory(), make_new(zcore.MemoryStore())
    way, threads, outcomes = document_last._make_way, [], []

    def create():
        try:
            outcomes.append(zcore.create_array(store, name=f"g/{name}".rstrip("/"), data=[1, 2], chunks=1))
        except zcore.NodeExistsError as error:
            outcomes.append(error)

    def watched_way(*arguments):
        way(*arguments)
        threads.append(threading.Thread(target=create))
        threads[0].start()
        threads[0].join(0.05)
        assert outcomes == [] and "g" not in zcore.open_group(store, zarr_format=3)

    zcore.copy(source, store, destination_path="g", overwrite=True)
    monkeypatch.setattr(document_last, "_make_way", watched_way)
    copied = zcore.copy(source, store, destination_path="g", overwrite=True)
    threads[0].join()
    assert zcore.verify(store).problems == []
    assert {path for path, _ in copied.members(None)} - {"below", "below/other"} == {
        path for path, _ in zcore.open(source).members(None)}
    assert (type(outcomes[0]) is zcore.Array) == (name == "below/other")


@pytest.mark.parametrize("change", ["elements", "attributes", "resize"])
def test_copy_into_memory_waits_for_a_change_of_what_it_replaces(change):
    """Else what was begun in the old array would come to its end in the new one."""
    store, source = make_old_in_memory(), make_new(zcore.MemoryStore())
    source = zcore.create_group(zcore.MemoryStore())
    source.create_array("a", data=VALUES[:4], chunks=zcore.open(store, path="a").chunks)
    array, threads, put = zcore.open(store, "r+", path="a"), [], store.set

    def copy():
        zcore.copy(source, store, overwrite=True)

    def delayed(key, value):
        if not threads:
            threads.append(threading.Thread(target=copy))
            threads[0].start()
            threads[0].join(0.1)
        put(key, value)

    store.set = delayed
    if change == "elements":
        array[0, 0] = 7
    elif change == "attributes":
        array.attrs["x"] = 1
    else:
        array.resize((2, 2))
    threads[0].join()
    new = zcore.open(store, path="a")
    assert np.array_equal(new[...], VALUES[:4]) and dict(new.attrs) == {}


def test_copy_that_is_robbed_of_what_it_has_made_replaces_nothing():
    old, source = make_old_in_memory(), make_new(zcore.MemoryStore())
    store = Failing({key: old.get(key) for key in old.list()})     # one that is no plain MemoryStore
    n_told = 0

    def tell(done, total):
        nonlocal n_told
        n_told += 1
        if n_told == 3:
            zcore.verify(store, repair=True)

    with pytest.raises(zcore.StoreError, match="removed meanwhile"):
        zcore.copy(source, store, overwrite=True, progress=tell)
    assert age_of(store) == "old" and zcore.verify(store).ok


def test_copy_that_gets_no_answer_when_it_begins_leaves_nothing():
    class Mute(zcore.MemoryStore):
        def set(self, key, value):
            super().set(key, value)
            if key.startswith(document_last.STAGING):
                raise zcore.StoreError("no answer")

    store = Mute({key: old.get(key) for old in [make_old_in_memory()] for key in old.list()})
    before = list(store.list())
    with pytest.raises(zcore.StoreError, match="no answer"):
        zcore.copy(make_new(zcore.MemoryStore()), store, overwrite=True)
    assert list(store.list()) == before


def test_interrupted_replacement_is_a_left_over_of_the_store():
    store = make_old_in_memory()
    staged = document_last.Staged(store, "")
    staged.begin()
    staged.set("a/c/0", b"x")
    report = zcore.verify(store)
    assert [problem.kind for problem in report.problems] == ["left-over"]
    assert zcore.verify(store, repair=True).n_removed == 0     # it has gone before the store is looked through
    assert zcore.verify(store).ok and age_of(store) == "old"
    staged = document_last.Staged(store, "a")
    staged.begin()
    staged.set("c/0", b"x")
    assert zcore.verify(store, repair=True).n_removed == 1 and zcore.verify(store).ok
    store.set(document_last.STAGING + "0/1/journal", b'{"path": "a", "documents": {}}')
    with pytest.raises(zcore.StoreError, match="not what zcore writes"):
        zcore.verify(store)


# names that a destination cannot have

@pytest.mark.parametrize("name", ["n" * 300, "a/" + "n" * 300])
def test_copy_that_is_refused_for_a_name_leaves_nothing(name, tmp_path):
    source = zcore.MemoryStore()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zcore.create_group(source).create_array(name, data=VALUES)
        with pytest.raises(zcore.StoreError):
            zcore.copy(source, tmp_path / "x")
    assert os.listdir(tmp_path) == []


def test_copy_that_is_refused_for_a_key_leaves_nothing(tmp_path):
    """A name that another format reserves."""
    source = zcore.MemoryStore()
    zcore.create_group(source, zarr_format=2).create_array("a/__b", data=VALUES)
    for path in ("", "c/d"):
        with pytest.raises(zcore.InvalidKeyError):
            zcore.copy(source, tmp_path / "x", destination_path=path, zarr_format=3)
        memory = zcore.MemoryStore()
        with pytest.raises(zcore.InvalidKeyError):
            zcore.copy(source, memory, destination_path=path, zarr_format=3)
        assert list(memory.list()) == []
    assert os.listdir(tmp_path) in ([], ["x"]) and not any(files for _, _, files in os.walk(tmp_path))


@pytest.mark.parametrize("kind", ["in the way", "fifo", "too many", "new node", "new array above"])
def test_copy_that_is_refused_in_its_last_step_leaves_nothing(kind, tmp_path, monkeypatch):
    source, group = zcore.create_group(tmp_path / "a"), zcore.create_group(tmp_path / "b")
    source.create_array("x/y", data=VALUES)
    old = tmp_path / "b" / "old"
    if kind in ("in the way", "fifo", "too many"):
        group.create_array("old", data=OLD)
        (old / "x" / "y").mkdir(parents=True)
        (old / "x" / "y" / "zarr.json").mkdir()
        (old / "x" / "y" / "zarr.json" / "note").write_text("")
        os.mkfifo(old / "c" / "fifo") if kind == "fifo" else None
        monkeypatch.setattr(exchange, "_MAX_KEPT", 0 if kind == "too many" else 10)
    else:
        close = destinations.StoreSink.close
        monkeypatch.setattr(destinations.StoreSink, "close", lambda sink: (group.create_array("old", data=OLD),
                                                                           close(sink)))
    path = "old/below" if kind == "new array above" else "old"
    with pytest.raises((zcore.StoreError, zcore.NodeExistsError)):
        zcore.copy(source, tmp_path / "b", destination_path=path, overwrite=not kind.startswith("new"))
    assert np.array_equal(group["old"][...], OLD)
    assert not [name for _, names, _ in os.walk(tmp_path) for name in names if "zc_tmp" in name]


# the source

class Hooked(zcore.MemoryStore):
    """A store that calls `hook` before the object number `at` is read."""

    at, hook, n_objects = None, None, 0

    def get(self, key, byte_range=None):
        if "c/" in key:
            self.n_objects += 1
            if self.n_objects == self.at:
                self.hook(self)
        return super().get(key, byte_range)


def group_of(store):
    return zcore.open_group(store, mode="r+")


def delete(store):
    del group_of(store)["a"]


def delete_group(store):
    zcore.copy(zcore.array(OLD), store, overwrite=True)


def replace(store):
    group_of(store).create_array("a", data=VALUES.astype("f8"), chunks=(3, 3), overwrite=True)


def shrink(store):
    group_of(store)["a"].resize((7, 7))


def grow(store):
    group_of(store)["a"].resize((12, 12))


def change_attributes(store):
    group_of(store)["a"].attrs["x"] = 2


def erase_chunk(store):
    """What a writer of fill values does."""
    group_of(store)["a"][9, 9] = 0


CHANGES = {delete: zcore.NodeNotFoundError, delete_group: zcore.NodeNotFoundError, replace: zcore.StoreError,
           shrink: zcore.SelectionError, grow: None, change_attributes: None, erase_chunk: None}


@pytest.mark.thinned(2, "change", "wanted", "there")
@pytest.mark.parametrize("there", ["memory", "directory"])
@pytest.mark.parametrize("wanted", [{}, {"chunks": (4, 4), "memory": 2000}], ids=["objects", "slabs"])
@pytest.mark.parametrize("change", CHANGES)
def test_source_changes_at_every_object(change, wanted, there, tmp_path):
    """Passed on as they are or read: fill values of an array that is gone, or another's bits, are no success."""
    for at in itertools.count(1):
        store = Hooked()
        zcore.create_group(store).create_array("a", data=VALUES, chunks=(3, 3))
        store.at, store.hook, store.n_objects = at, change, 0
        place = zcore.MemoryStore() if there == "memory" else tmp_path / str(at)
        try:
            new = zcore.copy(store, place, path="a", threads=1, **wanted)
        except zcore.ZcoreError as error:
            assert CHANGES[change] is not None and isinstance(error, CHANGES[change]), (at, error)
            assert list(place.list()) == [] if there == "memory" else not place.exists()
            continue
        if store.n_objects < at:
            break
        assert CHANGES[change] is None, at
        difference = new[...] != VALUES
        assert new.shape == VALUES.shape and not difference[:9].any() and not difference[:, :9].any()
        assert change is erase_chunk or not difference.any()
    assert at == 17 or wanted
    if not wanted:     # what came of the others was good for nothing
        assert not any(name.startswith(".") for name in os.listdir(tmp_path))


@pytest.mark.thinned(2, "there", "wanted", "by")
@pytest.mark.parametrize("by", ["create_array", "copy"])
@pytest.mark.parametrize("wanted", [{}, {"chunks": (4, 4), "memory": 500}], ids=["objects", "slabs"])
@pytest.mark.parametrize("there", ["memory", "directory"])
def test_source_is_replaced_by_its_like_at_every_object(there, wanted, by, tmp_path):
    """The document has the same bytes, the elements are others: a mixture of both is no success."""
    def change(_):
        if by == "create_array":
            group_of(store).create_array("a", data=-VALUES, chunks=(3, 3), overwrite=True)
        else:
            zcore.copy(zcore.create_array(zcore.MemoryStore(), data=-VALUES, chunks=(3, 3)), store,
                       destination_path="a", overwrite=True)

    def tell(done, total):
        nonlocal n_told
        n_told += 1
        if n_told == at:
            change(None)

    for at in itertools.count(1):
        store, n_told = (Hooked() if there == "memory" else zcore.DirectoryStore(tmp_path / str(at))), 0
        zcore.create_group(store).create_array("a", data=VALUES, chunks=(3, 3))
        if there == "memory":
            store.at, store.hook, store.n_objects = at, change, 0
        place = zcore.MemoryStore()
        try:
            new = zcore.copy(store, place, path="a", threads=1, progress=None if there == "memory" else tell, **wanted)
        except zcore.StoreError as error:
            assert "was replaced by another one while it was copied" in str(error) and list(place.list()) == []
            continue
        assert np.array_equal(new[...], VALUES)
        break
    assert at > 2 if wanted else at > 16


@pytest.mark.parametrize("wanted", [{}, {"chunks": (4, 4), "memory": 500}], ids=["objects", "slabs"])
def test_source_grows_during_each_part_of_a_copy(wanted, tmp_path):
    group = zcore.create_group(tmp_path / "a")
    group.create_array("b", data=VALUES, chunks=(3, 3))
    values, changer = [], zcore.open(tmp_path / "a", mode="r+", path="b")

    def tell(done, total):
        values.append(changer.append(VALUES[:1]))

    new = zcore.copy(tmp_path / "a", zcore.MemoryStore(), path="b", progress=tell, threads=1, **wanted)
    assert np.array_equal(new[...], VALUES) and len(values) > (1 if wanted else 15)


def test_files_of_a_source_that_is_deleted_midway(tmp_path):
    """Objects that the system copies, from file to file."""
    values = np.random.default_rng(1).integers(0, 9, (2000, 600))
    source = zcore.create_array(tmp_path / "a", data=values, chunks=(500, 600))

    def copy(*args):
        shutil.rmtree(tmp_path / "a")
        return real(*args)

    real, transfer._copy_file = transfer._copy_file, copy
    try:
        with pytest.raises(zcore.NodeNotFoundError):
            zcore.copy(source, tmp_path / "b", threads=1)
    finally:
        transfer._copy_file = real
    assert os.listdir(tmp_path) == []


def test_directory_that_is_gone_from_the_destination_is_an_error(tmp_path, monkeypatch):
    """No object of the source, which would read as the fill value."""
    (tmp_path / "a").write_bytes(b"value")
    monkeypatch.setattr(os, "makedirs", lambda *args, **keywords: None)
    with pytest.raises(zcore.StoreError, match="cannot copy"):
        transfer._copy_file(str(tmp_path / "a"), str(tmp_path / "nowhere/a"))
    assert not transfer._copy_file(str(tmp_path / "b"), str(tmp_path / "c"))


@pytest.mark.parametrize("change, expected", [
    ("a member that is to come is deleted", zcore.NodeNotFoundError),
    ("a member that is to come is another one", zcore.StoreError),
    ("the group is deleted", zcore.NodeNotFoundError),
    ("a member is created", None)])
def test_group_changes_while_it_is_copied(change, expected):
    store = Hooked()
    group = zcore.create_group(store)
    for name in ("a", "b"):
        group.create_array(name, data=VALUES, chunks=(3, 3))
    group.create_group("z")

    def hook(store):
        if "created" in change:
            group.create_array("c", data=OLD)
        elif "the group" in change:
            for key in ("z/zarr.json", "zarr.json"):
                store.erase(key)
        elif "deleted" in change:
            del group["b"]
        else:
            group.create_array("b", data=OLD, chunks=(2, 2), overwrite=True)

    store.at, store.hook, store.n_objects = 2, hook, 0
    new = zcore.MemoryStore()
    if expected is None:
        assert sorted(zcore.copy(store, new)) == ["a", "b", "z"]
    else:
        with pytest.raises(expected):
            zcore.copy(store, new)
        assert list(new.list()) == []


# the cost

def n_calls_of(depth, destination_path):
    source = zcore.MemoryStore()
    document = zarr_v3.render_group(zarr_v3.new_group({}))
    for i in range(depth):
        source.set("a/" * i + "zarr.json", document)
    target = Failing()
    zcore.copy(source, target, destination_path=destination_path)
    return target.n_calls


def test_cost_of_deep_groups_grows_with_their_number():
    for path in (lambda n: "", lambda n: "/".join("b" * n)):
        few, many = [n_calls_of(n, path(n)) for n in (50, 200)]
        assert many < 5 * few


# a full disk

FULL = """
import sys, numpy as np, zcore
from zcore.errors import StoreError
folder = sys.argv[1]
values = np.random.default_rng(1).integers(0, 2**60, (64, 1024))
zcore.create_array(folder + "/x", data=values, chunks=(8, 1024))
source = zcore.create_array(zcore.MemoryStore(), data=-values, chunks=(16, 1024))
try:
    zcore.copy(source, folder + "/x", overwrite=True)
except StoreError as error:
    assert error.errno == 28, error
else:
    raise AssertionError("the disk is not full")
assert np.array_equal(zcore.open(folder + "/x")[...], values) and zcore.verify(folder + "/x").ok
import os, shutil
assert sorted(os.listdir(folder)) == [".__zc_tmp.copy.x", "x"]
shutil.rmtree(folder + "/x")
new = zcore.copy(source, folder + "/x")
assert np.array_equal(new[...], -values) and os.listdir(folder) == ["x"]
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("unshare") is None,
                    reason="to mount a small disk takes root and unshare")
def test_full_disk_leaves_what_was_to_be_replaced(tmp_path):
    can = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", tmp_path], capture_output=True)
    if can.returncode:
        pytest.skip("no file system can be mounted here")
    command = f'mount -t tmpfs -o size=900k none "{tmp_path}" && exec "$0" -c "$1" "{tmp_path}"'
    subprocess.run(["unshare", "-m", "sh", "-c", command, sys.executable, FULL], check=True, timeout=100,
                   env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(zcore.__file__))})


# A store without renames that fails once, at one call.


class FailsOnce(zcore.MemoryStore):
    failing = None

    def _fail(self, *call):
        if self.failing == call:
            self.failing = None
            raise zcore.StoreError(f"no {call[0]} of {call[1]}")

    def set(self, key, value):
        self._fail("set", key)
        super().set(key, value)

    def erase(self, key):
        self._fail("erase", key)
        super().erase(key)


def elements_in(store):
    return {path: node[...].tolist() for path, node in zcore.open_group(store).members(None)
            if isinstance(node, zcore.Array)}


@pytest.mark.parametrize("how", ["created", "moved", "deleted"])
@pytest.mark.parametrize("comes_next", ["repair", "copy"])
def test_an_interrupted_copy_takes_no_newer_node_away(how, comes_next):
    store = FailsOnce()
    group = zcore.create_group(store)
    for name, value in (("a", 1), ("b", 2), ("keep", 7)):
        group[name] = np.array([value])
    store.failing = "erase", "b/zarr.json"
    with pytest.raises(zcore.StoreError):
        zcore.copy(store, store, path="a", destination_path="b", overwrite=True)
    expected = {"a": [1], "keep": [7]}
    if how == "created":
        group["b"] = np.array([9])
        expected["b"] = [9]
    else:
        del group["b"]
    if how == "moved":
        group.move("keep", "b")
        expected["b"] = expected.pop("keep")
    assert elements_in(store) == expected
    if comes_next == "repair":
        zcore.verify(store, repair=True)
        if how != "deleted":
            assert elements_in(store) == expected
    elif how == "deleted":
        # Nobody can tell this deletion from that of the copy, which is brought to its end first.
        zcore.copy(store, store, path="a", destination_path="b", overwrite=True)
        assert elements_in(store) == expected | {"b": [1]}
    else:
        with pytest.raises(zcore.NodeExistsError):
            zcore.copy(store, store, path="a", destination_path="b")
        assert elements_in(store) == expected


def test_a_copy_that_was_cut_off_is_ended_before_its_source_is_read():
    store = FailsOnce()
    group = zcore.create_group(store)
    group.create_group("g/h")
    group["g/x"], group["g/h/z"] = np.array([3]), np.array([5])
    store.failing = "erase", "g/h/zarr.json"
    for _ in range(2):
        try:
            zcore.copy(store, store, path="g", destination_path="g/h", overwrite=True)
        except zcore.StoreError:
            pass
    assert [5] in elements_in(store).values() and elements_in(store)["g/x"] == [3]


def test_a_rechunk_in_place_that_was_cut_off_is_ended_by_the_same_call():
    store = FailsOnce()
    zcore.create_group(store)["a"] = np.arange(4)
    store.failing = "erase", "a/c/0"
    with pytest.raises(zcore.StoreError):
        zcore.copy(store, store, path="a", destination_path="a", chunks=(1,), overwrite=True)
    assert zcore.copy(store, store, path="a", destination_path="a", chunks=(1,), overwrite=True).chunks == (1,)
    assert elements_in(store) == {"a": [0, 1, 2, 3]}


@pytest.mark.parametrize("confined", [False, True])
def test_a_member_that_is_a_link_is_replaced_not_what_it_leads_to(tmp_path, confined):
    mine = zcore.create_group(tmp_path / "mine")
    mine["new"] = np.arange(3)
    other = zcore.create_group(tmp_path / "mine" / "other")
    other["precious"] = np.arange(5)
    (tmp_path / "mine" / "link").symlink_to("other")
    store = zcore.DirectoryStore(tmp_path / "mine", confined=confined)
    zcore.copy(store, store, path="new", destination_path="link", overwrite=True)
    assert not (tmp_path / "mine" / "link").is_symlink()
    assert elements_in(store)["link"] == [0, 1, 2] and elements_in(store)["other/precious"] == [0, 1, 2, 3, 4]
    assert sorted(os.listdir(tmp_path / "mine")) == ["link", "new", "other", "zarr.json"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_no_call_of_a_move_that_fails_invents_elements(zarr_format):
    """In a store without renames: each array that stands has its elements."""
    for at in itertools.count(1):
        store = MovesByKeys()
        group = zcore.create_group(store, zarr_format=zarr_format)
        group["x"] = np.array([3, 4])
        store.left = at
        try:
            group.move("x", "m")
        except zcore.StoreError:
            store.left = -1
            found = elements_in(store)
            assert found and set(found) <= {"x", "m"} and all(values == [3, 4] for values in found.values())
            continue
        assert elements_in(store) == {"m": [3, 4]}
        break


class MovesByKeys(zcore.MemoryStore):
    """Fails at the call after which `left` is 0."""

    left = -1

    def set(self, key, value):
        self._count()
        super().set(key, value)

    def erase(self, key):
        self._count()
        super().erase(key)

    def _count(self):
        self.left -= 1
        if self.left == 0:
            raise zcore.StoreError("no more")


def test_a_source_whose_group_is_moved_again_and_again(tmp_path, monkeypatch):
    """Each look met a move. After the last one, the copy ended as if all was well, without the elements."""
    root = zcore.open_group(tmp_path / "s", mode="w")
    root.create_array("g/x", data=np.arange(1, 9), chunks=(2,))
    get = zcore.DirectoryStore.get

    def moved(store, key, *args):
        if not key.endswith("c/1"):
            return get(store, key, *args)
        os.rename(tmp_path / "s/g", tmp_path / "s/z")
        try:
            return get(store, key, *args)
        finally:
            os.rename(tmp_path / "s/z", tmp_path / "s/g")

    monkeypatch.setattr(zcore.DirectoryStore, "get", moved)
    with pytest.raises(zcore.StoreError, match="moved again and again"):
        zcore.copy(root, tmp_path / "new", path="g")
    monkeypatch.undo()
    zcore.copy(root, tmp_path / "new", path="g")
    assert np.array_equal(zcore.open(tmp_path / "new")["x"], np.arange(1, 9))


def test_a_source_whose_group_is_moved_away_and_back(tmp_path, monkeypatch):
    """An object and a member that were looked up by their paths in the meantime seemed absent."""
    root = zcore.open_group(tmp_path / "s", mode="w")
    for name in ("g/x", "g/y"):
        root.create_array(name, data=np.arange(1, 9), chunks=(2,))
    asked = set()

    def moved(function, key_of, is_one):
        def call(*args, **keywords):
            key = key_of(args)
            if not is_one(key) or key in asked:
                return function(*args, **keywords)
            asked.add(key)
            os.rename(tmp_path / "s/g", tmp_path / "s/z")
            try:
                return function(*args, **keywords)
            finally:
                os.rename(tmp_path / "s/z", tmp_path / "s/g")
        return call

    monkeypatch.setattr(zcore.DirectoryStore, "get", moved(zcore.DirectoryStore.get, lambda args: args[1],
                                                           lambda key: key.endswith("c/1")))
    monkeypatch.setattr(lookup, "_look", moved(lookup._look, lambda args: args[2], lambda path: path.endswith("y")))
    zcore.copy(root, tmp_path / "new", path="g")
    copied = zcore.open(tmp_path / "new")
    assert sorted(asked) == ["g/x/c/1", "g/y", "g/y/c/1"]
    assert all(np.array_equal(copied[name], np.arange(1, 9)) for name in ("x", "y"))
