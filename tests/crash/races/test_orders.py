"""Orders of two calls in which one once undid or mixed what the other had done, each of them forced."""
import os
import threading

import numpy as np
import pytest

import zcore
from zcore.hierarchy import exchange
from zcore.stores.directory import cleanup


@pytest.fixture
def group(place):
    group = zcore.create_group(place)
    group.create_array("x", data=np.arange(40), chunks=4)
    return group


def deleted(group):
    del zcore.open_group(group.store, "r+")["x"]


def test_a_copy_waits_for_the_writers_of_what_it_replaces(group):
    """Else a change of the old array would go on in the new one."""
    source = zcore.array(np.full(40, 7), chunks=5)
    thread = threading.Thread(target=lambda: zcore.copy(source, group.store, destination_path="x", overwrite=True))
    with group["x"]._binding.exclusive():
        thread.start()
        thread.join(0.3)
        assert thread.is_alive() and (group["x"][...] == np.arange(40)).all()
    thread.join(60)
    assert (group["x"][...] == 7).all() and zcore.verify(group).ok


def test_of_two_deletions_one_finds_nothing(group, monkeypatch):
    hold = exchange.Place

    def hold_later(*args, **kwargs):
        monkeypatch.setattr(exchange, "Place", hold)
        deleted(group)
        return hold(*args, **kwargs)

    monkeypatch.setattr(exchange, "Place", hold_later)
    with pytest.raises(zcore.NodeNotFoundError):
        del group["x"]


def test_a_deletion_spares_what_is_created_after_it(group, monkeypatch):
    hold = exchange.Place

    class Hold:
        def __init__(self, *args, **kwargs):
            self.held = hold(*args, **kwargs)

        def __enter__(self):
            return self.held.__enter__()

        def __exit__(self, *exc_info):
            self.held.__exit__(*exc_info)
            monkeypatch.setattr(exchange, "Place", hold)
            zcore.create_array(group.store, name="x", data=np.full(9, 3))

    monkeypatch.setattr(exchange, "Place", Hold)
    del group["x"]
    assert (group["x"][...] == 3).all()


def test_a_writer_that_waited_finds_that_the_node_was_moved(group, place):
    errors = []
    waiting = group["x"]

    def change():
        try:
            waiting.attrs["a"] = 1
        except zcore.NodeNotFoundError as error:
            errors.append(error)

    thread = threading.Thread(target=change)
    with zcore.open(place, "r+", path="x")._binding.exclusive():
        thread.start()
        thread.join(0.3)
        os.rename(place + "/x", place + "/z")
    thread.join(60)
    assert len(errors) == 1 and zcore.open(place, path="z").attrs.asdict() == {}


def test_a_copy_whose_source_goes_keeps_nothing(group, place):
    """The same copy would fail again."""
    def delete_it(done, total):
        if "x" in group:
            deleted(group)

    with pytest.raises(zcore.NodeNotFoundError):
        zcore.copy(group.store, group.store, path="x", destination_path="y", dtype="f8", memory=64, threads=1,
                   progress=delete_it)
    assert [name for name in os.listdir(place) if name.startswith(".")] == []


def test_attributes_that_change_while_a_copy_begins(group, monkeypatch):
    """The array is the same one, so it is copied."""
    from zcore.engine.freshness import Freshness

    look, n_changes = Freshness.look, []

    def look_and_change(freshness):
        look(freshness)
        if not n_changes:
            n_changes.append(1)
            zcore.open(group.store, "r+", path="x").attrs["a"] = 1

    monkeypatch.setattr(Freshness, "look", look_and_change)
    zcore.copy(group.store, group.store, path="x", destination_path="y")
    assert (group["y"][...] == np.arange(40)).all()


@pytest.mark.parametrize("zarr_format", [3, 2, "zmeta"])
def test_a_copy_has_shape_and_attributes_of_one_moment(zarr_format, monkeypatch):
    """The array is resized, then its attributes change, after its document was read and before its attributes are."""
    from zcore.tools.copy import sources

    array = zcore.create_array(zcore.MemoryStore(), data=np.arange(8), chunks=4, attributes={"n": 8},
                               zarr_format=zarr_format)
    read, changes = sources.read_attributes, [True]

    def change_and_read(*args):
        if changes:
            changes.clear()
            array.resize(9)
            array.attrs["n"] = 9
        return read(*args)

    monkeypatch.setattr(sources, "read_attributes", change_and_read)
    new = zcore.copy(array.store, zcore.MemoryStore())
    assert new.attrs.asdict() == {"n": new.shape[0]}


@pytest.mark.parametrize("zarr_format", [3, 2, "zmeta"])
def test_a_copy_replaces_what_is_created_in_memory_while_it_looks(zarr_format):
    """It may replace all that is there. Later the copy holds the place, and others wait."""
    store, made = zcore.MemoryStore(), []
    look = store.list_prefix

    def create_and_look(prefix):
        if not made:
            made.append(1)
            zcore.create_array(store, name="x", data=np.arange(9), zarr_format=zarr_format)
        return look(prefix)

    store.list_prefix = create_and_look
    source = zcore.array(np.full(40, 7), chunks=5, zarr_format=zarr_format)
    zcore.copy(source, store, destination_path="x", overwrite=True, threads=1)
    assert made and (zcore.open(store, path="x")[...] == 7).all() and zcore.verify(store, path="x").ok


@pytest.mark.parametrize("shards", [None, 10])
def test_what_is_overwritten_is_moved_away_before(group, place, monkeypatch, shards):
    """The new array is created all the same, where the old one was."""
    commit = exchange.commit

    def move_and_commit(*args):
        monkeypatch.setattr(exchange, "commit", commit)
        zcore.open_group(place, "r+").move("x", "z")
        commit(*args)

    monkeypatch.setattr(exchange, "commit", move_and_commit)
    new = zcore.create_array(place, name="x", data=np.full(30, 7), chunks=5, shards=shards, overwrite=True)
    assert (new[...] == 7).all() and (group["x"][...] == 7).all() and (group["z"][...] == np.arange(40)).all()
    assert zcore.verify(group).ok


def test_of_two_moves_to_one_place_one_finds_nothing(place, monkeypatch):
    """At no moment there were both the source and the destination, so the other one is not to blame."""
    group = zcore.create_group(zcore.DirectoryStore(place))
    group.create_array("x", data=np.arange(40))
    is_empty = group.store.is_empty

    def move_and_look(prefix):
        monkeypatch.setattr(type(group.store), "is_empty", lambda self, prefix: is_empty(prefix))
        zcore.open_group(place, "r+").move("x", "z")
        return is_empty(prefix)

    monkeypatch.setattr(type(group.store), "is_empty", lambda self, prefix: move_and_look(prefix))
    with pytest.raises(zcore.NodeNotFoundError):
        group.move("x", "z")
    assert (group["z"][...] == np.arange(40)).all()


def test_a_copy_that_ends_does_not_remove_what_the_next_one_builds(group, monkeypatch):
    """Both build in the same hidden directory, which goes with the first one."""
    entries, threads, built, outcomes = cleanup._entries, [], threading.Event(), []

    def copy(value, **kwargs):
        source = zcore.array(np.full(40, value), chunks=5)
        zcore.copy(source, group.store, destination_path="x", overwrite=True, **kwargs)

    def copy_too():
        try:
            copy(8, progress=lambda done, total: done == total and built.set())
            outcomes.append(8)
        except zcore.StoreError:
            outcomes.append(7)
        built.set()

    def entries_later(directory):
        if os.path.basename(directory).startswith("node.") and not threads:
            threads.append(threading.Thread(target=copy_too))
            threads[0].start()
            assert built.wait(60)
        return entries(directory)

    monkeypatch.setattr(cleanup, "_entries", entries_later)
    copy(7)
    threads[0].join(60)
    assert group["x"][...].tolist() == outcomes * 40 and zcore.verify(group).ok
