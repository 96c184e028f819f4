"""A node is created as a whole or not at all: what can be checked is checked before the first byte changes."""
import contextlib
import functools
import os
import shutil
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import zcore
from tests import both_ways
from tests.at_once import at_once
from tests.crash.failing.service import Service
from tests.each import each
from zcore.engine.array_binding import ArrayBinding
from zcore.formats import NODE_DOCUMENTS
from zcore.hierarchy import creation, new_nodes
from zcore.stores.base import Store
from zcore.stores.directory import atomic
from zcore.stores.remote.store import RemoteStore


@pytest.fixture(params=["directory", "memory"])
def store(request, tmp_path):
    return zcore.DirectoryStore(tmp_path / "s") if request.param == "directory" else zcore.MemoryStore()


def content(store):
    return {key: store.get(key) for key in store.list()}


class Unwritable:
    """What neither JSON nor any type holds."""


BAD_ARRAYS = {
    "no shape": {"dtype": "i4"},
    "no type": {"shape": 4},
    "shape": {"shape": -1, "dtype": "i4"},
    "shape of text": {"shape": "4", "dtype": "i4"},
    "type": {"shape": 4, "dtype": "nonsense"},
    "objects": {"shape": 4, "dtype": object},
    "chunks": {"shape": 4, "dtype": "i4", "chunks": 0},
    "chunks of other dimensions": {"shape": 4, "dtype": "i4", "chunks": (2, 2)},
    "fill value": {"shape": 4, "dtype": "i4", "fill_value": "x"},
    "fill value that is too large": {"shape": 4, "dtype": "i1", "fill_value": 1000},
    "attributes": {"shape": 4, "dtype": "i4", "attributes": {"a": Unwritable()}},
    "attributes that are none": {"shape": 4, "dtype": "i4", "attributes": [1]},
    "names of attributes": {"shape": 4, "dtype": "i4", "attributes": {1: 2}},
    "codec": {"shape": 4, "dtype": "i4", "compressors": {"name": "nonsense"}},
    "format": {"shape": 4, "dtype": "i4", "zarr_format": 4},
    "overwrite": {"shape": 4, "dtype": "i4", "overwrite": "yes"},
    "keyword": {"shape": 4, "dtype": "i4", "nonsense": 1},
    "data": {"data": [[1], [2, 3]]},
    "data of objects": {"data": np.array([Unwritable()])},
    "data that the type does not hold": {"data": ["x"], "dtype": "i4"},
    "numbers that the type does not hold": {"data": [1000], "dtype": "i1"},
    "data and a shape": {"data": [1], "shape": 1},
    "text that is no text": {"data": np.array(["\ud800"], object), "dtype": str},
    "numbers that a codec does not take": {
        "data": np.array([1000.0]), "fill_value": 0, "filters": {"name": "cast_value", "configuration": {
            "data_type": "int8"}}},
}
CALLS = {
    "create_array": lambda store, **keywords: zcore.create_array(store, **{"overwrite": True, **keywords}),
    "in a group": lambda store, **keywords: zcore.open_group(store, "r+").create_array(
        "g/a", **{"overwrite": True, **keywords}),
}
OPENING = {
    "open": lambda store, **keywords: zcore.open(store, "w", **keywords),
    "open_array": lambda store, **keywords: zcore.open_array(store, "w", **keywords),
    "create": lambda store, shape=None, **keywords: zcore.create(shape, store=store, **keywords),
    "zeros": lambda store, shape=None, **keywords: zcore.zeros(shape, store=store, **keywords),
}


def old_group(store, zarr_format=3):
    group = zcore.create_group(store, zarr_format=zarr_format, attributes={"old": 1}, overwrite=True)
    group.create_array("g/a", data=np.arange(4), chunks=2)
    return content(store)


@pytest.mark.thinned(2, "store", "call", "zarr_format")
@pytest.mark.parametrize("zarr_format", [3, 2])
@each("bad", BAD_ARRAYS)
@pytest.mark.parametrize("call", CALLS | OPENING)
def test_an_array_that_cannot_be_made_replaces_nothing(store, call, bad, zarr_format):
    keywords = {"zarr_format": zarr_format, **BAD_ARRAYS[bad]}
    if zarr_format == 2 and "filters" in keywords or call in OPENING and {"data", "overwrite"} & keywords.keys():
        return      # it has no such keyword
    before = old_group(store, zarr_format)
    with pytest.raises((TypeError, ValueError, NotImplementedError, OverflowError, zcore.ZcoreError)):
        {**CALLS, **OPENING}[call](store, **keywords)
    assert content(store) == before


@pytest.mark.parametrize("keywords", [{"chunks": (2,)}, {"dtype": "i4"}, {"fill_value": 0}, {"compressors": None},
                                      {"cname": "lz4"}, {"chunks": 2, "attributes": {}}])
@pytest.mark.parametrize("mode", ["a", "w", "w-", "x"])
def test_what_describes_an_array_makes_no_group(store, mode, keywords):
    for open_it in (zcore.open, zcore.open_array):
        with pytest.raises((TypeError, zcore.NodeNotFoundError)):
            open_it(store, mode, **keywords)
        assert list(store.list()) == []
    before = old_group(store)
    if mode == "w":
        for open_it in (zcore.open, zcore.open_array):
            with pytest.raises(TypeError, match="needs shape="):
                open_it(store, mode, **keywords)
        assert content(store) == before


def test_mode_a_without_a_shape_opens_an_array(store):
    with pytest.raises(zcore.NodeNotFoundError):
        zcore.open_array(store, "a")
    zcore.create_array(store, shape=4, chunks=2, dtype="i4")
    assert zcore.open_array(store, "a", chunks=2)[...].tolist() == [0] * 4
    assert not zcore.open_array(store, "a").read_only


@pytest.mark.parametrize("keywords", [
    {"attributes": {"a": Unwritable()}}, {"attributes": "x"}, {"zarr_format": "zmeta"}, {"zarr_format": 5},
    {"use_consolidated": True}, {"lock": "no"}, {"attributes": {1: 2}},
])
def test_a_group_that_cannot_be_made_replaces_nothing(store, keywords):
    before = old_group(store)
    calls = [lambda: zcore.open_group(store, "w", **keywords), lambda: zcore.group(store, overwrite=True, **keywords)]
    if "use_consolidated" not in keywords:
        calls.append(lambda: zcore.create_group(store, overwrite=True, **keywords))
    for call in calls:
        with pytest.raises((TypeError, ValueError, zcore.ZcoreError)):
            call()
        assert content(store) == before
    empty = zcore.MemoryStore()
    with pytest.raises((TypeError, ValueError, zcore.ZcoreError)):
        zcore.open_group(empty, "a", **keywords)
    assert list(empty.list()) == []


@pytest.mark.parametrize("bad", [np.array([Unwritable()]), [[1], [2, 3]], np.array(["a", 1], object)])
def test_arrays_that_cannot_all_be_stored_replace_none(store, bad):
    before = old_group(store)
    for save in (zcore.save, zcore.save_group):
        with pytest.raises((TypeError, ValueError, zcore.ZcoreError)):
            save(store, a=np.arange(3), b=bad, overwrite=True)
        assert content(store) == before
    with pytest.raises(zcore.InvalidKeyError):
        zcore.save(store, np.arange(3), overwrite=True, **{"a/../b": [1]})
    with pytest.raises(ValueError):
        zcore.save(store, [1], overwrite=True, zarr_format=2, **{"a//b": [1], "a/b": [2]})
    assert content(store) == before
    zcore.save(store, a=np.arange(3), b=[1.5], overwrite=True)
    assert {name: data.tolist() for name, data in zcore.load(store).items()} == {"a": [0, 1, 2], "b": [1.5]}


def test_arrays_are_saved_where_all_places_are_free(store):
    zcore.create_array(store, name="b/x", data=[7])
    for key in ("zarr.json", "b/zarr.json"):
        store.erase(key)
    before = content(store)
    for overwrite in (False, True):     # the root is no node, so what is below belongs to nobody's group
        with pytest.raises(zcore.NodeExistsError, match="b/x"):
            zcore.save_group(store, a=[1], **{"b/x": [2]}, overwrite=overwrite)
        assert content(store) == before
    zcore.create_group(store)
    zcore.save_group(store, a=[1], **{"b/x": [2]}, overwrite=True)
    assert zcore.load(store, "b/x").tolist() == [2]


def test_an_item_that_is_assigned_replaces_an_array_and_nothing_else(store):
    group = zcore.create_group(store)
    group["a"] = [1, 2]
    group["a"] = [3, 4, 5]
    assert group["a"][...].tolist() == [3, 4, 5]
    before = content(store)
    for bad in (np.array([Unwritable()]), [[1], [2, 3]]):
        with pytest.raises((TypeError, ValueError, zcore.ZcoreError)):
            group["a"] = bad
        assert content(store) == before
    store.erase("a/zarr.json")
    group["a"] = [1]     # what is left of an array goes, as the array would
    assert group["a"][...].tolist() == [1]
    group.create_array("b/x/y", data=[1])
    for lost in ("b/x/zarr.json", "b/zarr.json"):
        store.erase(lost)
        before = content(store)
        with pytest.raises(zcore.NodeExistsError, match="b"):
            group["b"] = [1]
        assert content(store) == before


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_hierarchy_is_made_as_a_whole_or_not_at_all(store, overwrite):
    before = old_group(store)
    array, group = zcore.zeros(3).metadata, zcore.group().metadata
    wrong = [
        {"new": group, "new/a": array, "new/a/b": array},
        {"new": group, "g/a/below": array},
        {"new": group, "bad": zcore.group().metadata.replace(attributes={"x": Unwritable()})},
        {"new": group, "/new": array},
        {"new": group, "__bad": array},
    ]
    if not overwrite:
        wrong += [{"new": group, "g/a": array}, {"new": group, "g": group}]
    for nodes in wrong:
        with pytest.raises((TypeError, ValueError, zcore.ZcoreError)):
            zcore.create_hierarchy(store=store, nodes=nodes, overwrite=overwrite)
        assert content(store) == before


# What lost nodes have left


STRAY = {
    "chunks": (3, "c/0", "create_array"), "chunks of Zarr v2": (2, "0", "create_array"),
    "chunks of 2016": ("zmeta", "__zdata__/0.blosc", "create_array"), "attributes": (2, ".zattrs", "create_array"),
    "attributes of 2016": ("zmeta", "__zattr__", "create_array"),
    "attributes of a group": (2, ".zattrs", "create_group"),
    "a copy": (2, ".zmetadata", "create_group"),
}
WAYS = {
    "create_array": {
        "create_array": lambda store, **keywords: zcore.create_array(store, name="a", shape=4, dtype="i4", **keywords),
        "mode a": lambda store, **keywords: zcore.open(store, "a", path="a", shape=4, dtype="i4", **keywords),
        "mode w-": lambda store, **keywords: zcore.open(store, "w-", path="a", shape=4, dtype="i4", **keywords),
        "save": lambda store, **keywords: zcore.save(store, np.arange(4), path="a", **keywords),
        "zeros": lambda store, **keywords: zcore.zeros(4, store=store, path="a", **keywords),
        "require_array": lambda store, zarr_format: zcore.open_group(store, "a", zarr_format=zarr_format).require_array(
            "a", shape=4, dtype="i4"),
    },
    "create_group": {
        "create_group": lambda store, **keywords: zcore.create_group(store, path="a", **keywords),
        "mode a": lambda store, **keywords: zcore.open_group(store, "a", path="a", **keywords),
        "mode w-": lambda store, **keywords: zcore.open_group(store, "w-", path="a", **keywords),
        "save_group": lambda store, **keywords: zcore.save_group(store, [1], path="a", **keywords),
        "require_group": lambda store, zarr_format: zcore.open_group(
            store, "a", zarr_format=zarr_format).require_group("a"),
        "above another": lambda store, **keywords: zcore.create_array(
            store, name="a/b", shape=4, dtype="i4", **keywords),
    },
}


@pytest.mark.thinned(2, "store", "stray", "way")
@pytest.mark.parametrize(("stray", "way"), [(stray, way) for stray in STRAY for way in WAYS[STRAY[stray][2]]])
def test_what_a_lost_node_has_left_is_not_erased_unasked(store, stray, way):
    zarr_format, key, kind = STRAY[stray]
    if zarr_format == "zmeta" and way == "require_array":
        pytest.skip("the format has no groups")
    store.set("a/" + key, b"{}")
    with pytest.raises(zcore.StoreError, match="overwrite=True") as caught:
        WAYS[kind][way](store, zarr_format=zarr_format)
    assert store.get("a/" + key) == b"{}" and caught.value.key == "a/" + key
    assert not isinstance(caught.value, zcore.NodeExistsError)
    replace = zcore.create_group if kind == "create_group" else functools.partial(
        zcore.create_array, shape=4, dtype="i4")
    node = replace(store, **{"path" if kind == "create_group" else "name": "a"}, zarr_format=zarr_format,
                   overwrite=True)
    assert store.get("a/" + key) is None and node.attrs == {}


FORMS = [{}, {"chunks": (5, 3)}, {"shape": (0, 9)}, {"dtype": "f4", "fill_value": np.nan}, {"fill_value": True},
         {"dtype": "i4", "fill_value": 1.0}, {"dtype": str}, {"chunks": "auto"}, {"chunks": -1},
         {"dtype": np.dtype("i2", metadata={"a": 1})}, {"dtype": [("a", "i2"), ("b", "f4")]}]
FORMS_V3 = [{"dimension_names": ("x", None)}, {"chunks": (5, 3), "shards": (10, 9)}, {"dtype": "f4", "order": "F"},
            {"chunks": [[5, 15], -1], "shape": (20, 9)},
            {"codecs": [{"name": "transpose", "configuration": {"order": [1, 0]}},
                        {"name": "bytes", "configuration": {"endian": "little"}}]}]


@pytest.mark.parametrize(("zarr_format", "keywords"), [
    *[(zarr_format, one) for zarr_format in (3, 2) for one in FORMS], *[(3, one) for one in FORMS_V3]], ids=str)
def test_the_handle_of_a_new_array_says_what_a_reader_of_its_document_finds(store, zarr_format, keywords):
    """Of arrays that are alike the first document is read before it is stored, and no other one."""
    group = zcore.create_group(store, zarr_format=zarr_format)
    for i, attributes in enumerate((None, {"a": 1.5, "b": None}, {"a": "x"}, {"a": (1, [2, {}])}, {"a": np.int8(1)})):
        made = group.create_array(f"{i}", **{"shape": (20 + i, 9), "chunks": (10, 2 + i), "dtype": "i2", **keywords},
                                  attributes=attributes)
        known, read = made._binding.view, zcore.open(store, path=f"{i}")._binding.view
        assert repr(known.metadata) == repr(read.metadata)
        assert (known.raw, known.template, known.notes) == (read.raw, read.template, read.notes)
        for name in ("dtype", "chunk_shape", "array_types", "sizes", "step_names", "max_encoded", "header_itemsize"):
            assert getattr(known.chain, name) == getattr(read.chain, name)


def test_a_caller_who_changes_a_value_changes_no_new_array(store):
    value = [1]
    arrays = [zcore.create_array(store, name=name, shape=4, dtype="i4", attributes={"a": value}) for name in "ab"]
    value.append(2)
    assert [array.metadata.attributes for array in arrays] == [{"a": [1]}] * 2


def test_chunks_that_are_too_large_are_refused_after_others_of_their_type(store):
    for length in (4, 1 << 31):
        with pytest.raises(ValueError, match="blosc") if length > 4 else contextlib.nullcontext():
            zcore.create_array(store, name=f"a{length}", shape=(1 << 31,), chunks=(length,), dtype="i4")
    assert list(zcore.open_group(store)) == ["a4"]


@pytest.mark.parametrize(("key", "shape", "separator"), [
    ("c/0", (4, 4), "/"), ("c", (4,), "/"), ("c/0/0", (4,), "/"), ("c/0/0/0", (4,), "/"), ("c/0", (), "/"),
    ("c.0/0", (4,), "."),
])
@pytest.mark.parametrize("data", [False, True])
def test_chunks_of_another_number_of_dimensions_are_not_erased_unasked(store, key, shape, separator, data):
    """A file stands where a directory of chunks has to be, or the other way round."""
    zcore.create_group(store)
    store.set("a/" + key, b"old")
    before = content(store)
    values = np.ones(shape, "i4")
    what = {"data": values} if data else {"shape": shape, "dtype": "i4"}
    create = functools.partial(zcore.create_array, store, name="a", chunks=2 if shape else "auto", **what,
                               chunk_key_encoding={"name": "default", "separator": separator})
    with pytest.raises(zcore.StoreError, match="overwrite=True") as caught:
        create()
    assert caught.value.key == "a/" + key and content(store) == before
    array = create(overwrite=True)
    array[...] = values
    assert (zcore.open(store, path="a")[...] == values).all() and store.get("a/" + key) != b"old"


@pytest.mark.parametrize("key", ["c/x", "d/0", "0", "0/0", "c.0.0", "c/00/0", "c/0/0/.zattrs.txt"])
def test_what_is_in_no_chunks_way_stays(store, key):
    separator = "/" if key != "c/0/0/.zattrs.txt" else "."
    store.set("a/" + key, b"mine")
    zcore.create_array(store, name="a", data=np.ones((4, 4)), chunks=2,
                       chunk_key_encoding={"name": "default", "separator": separator})
    assert store.get("a/" + key) == b"mine"


@pytest.mark.parametrize("zarr_format", [3, 2, "zmeta"])
@pytest.mark.parametrize("place", [*both_ways.WAYS, "memory"])
def test_a_creation_goes_on_where_it_was_cut_off_and_only_there(tmp_path, place, zarr_format):
    """What lies there is what the same call has written. Anything else may be all that is left of another array."""
    store = zcore.MemoryStore() if place == "memory" else both_ways.directory(tmp_path, place)
    values = np.arange(8000.0).reshape(80, 100)
    make = functools.partial(zcore.create_array, store, name="a", chunks=(9, 100), zarr_format=zarr_format,
                             attributes={"x": 1}, threads=2)
    make(data=values)
    document = NODE_DOCUMENTS[zarr_format][0]
    store.erase(f"a/{document}")
    store.erase(next(key for key in store.list_prefix("a/") if key.endswith(("0", "0.blosc"))))
    before = content(store)
    for other in (values + 1, values[:40], values[:, :50]):
        with pytest.raises(zcore.StoreError, match="overwrite=True"):
            make(data=other)
    with pytest.raises(zcore.StoreError, match="overwrite=True"):
        make(shape=(80, 100), dtype="f8")
    assert content(store) == before
    assert (make(data=values)[...] == values).all() and zcore.open(store, path="a").attrs == {"x": 1}


def test_a_document_that_has_come_meanwhile_is_not_replaced():
    """Locks of a store of somebody else keep out this process alone."""
    class Elsewhere(zcore.MemoryStore):
        def is_empty(self, prefix):
            is_empty = super().is_empty(prefix)
            self.set(prefix + "zarr.json", b"of another process")
            return is_empty

    store = Elsewhere()
    with pytest.raises(zcore.NodeExistsError):
        zcore.create_array(store, name="a", shape=4, dtype="i4")
    assert store.get("a/zarr.json") == b"of another process"


def test_nobody_sees_an_array_before_it_holds_its_elements(tmp_path, monkeypatch):
    seen = []
    write_once = ArrayBinding.write_once

    def watched(binding, *arguments, **keywords):
        if seen:
            assert zcore.load(tmp_path, "a").tolist() == [0, 1, 2, 3], "the old one"
        else:
            with pytest.raises(zcore.NodeNotFoundError):
                zcore.open(tmp_path, path="a")
        seen.append(binding)
        return write_once(binding, *arguments, **keywords)

    monkeypatch.setattr(ArrayBinding, "write_once", watched)
    for overwrite in (False, True):
        zcore.create_array(tmp_path, name="a", data=np.arange(4), overwrite=overwrite)
    assert len(seen) == 2 and zcore.load(tmp_path, "a").tolist() == [0, 1, 2, 3]


def test_a_place_with_other_files_and_directories_is_free(store):
    keys = ("a/notes.txt", "a/c/notes.txt", "a/00", "a/c/x/1", "a/0.0")
    for key in keys:
        store.set(key, b"mine")
    zcore.create_array(store, name="a", data=[1, 2], chunks=1)
    zcore.create_array(store, name="a", data=[1, 2], chunks=1, overwrite=True)
    assert [store.get(key) for key in keys] == [b"mine"] * len(keys)


@pytest.mark.parametrize(("zarr_format", "other"), [(3, 2), (2, 3), (3, "zmeta")])
def test_nothing_is_created_in_a_group_that_is_an_array_of_another_format_too(tmp_path, zarr_format, other):
    zcore.create_group(tmp_path / "g", zarr_format=zarr_format)
    zcore.create_array(tmp_path / "a", shape=3, dtype="i4", zarr_format=other)
    shutil.copytree(tmp_path / "a", tmp_path / "g", dirs_exist_ok=True)
    with pytest.raises(zcore.NodeExistsError, match="nothing can be below it"):
        zcore.create_array(tmp_path / "g", name="b", shape=3, dtype="i4", zarr_format=zarr_format)


@pytest.mark.parametrize("path", ["a", "b"])
def test_nobody_creates_a_node_among_keys_that_are_moved(path):
    """The attributes and chunks that a move had yet to erase were taken for those of a lost node."""
    begun, results = threading.Event(), []

    class Slow(zcore.MemoryStore):
        """It moves key by key, and waits after the first one at the destination, and before each one that is erased."""

        move = Store.move

        def set(self, key, value):
            super().set(key, value)
            if path == "b" and key.startswith("b/") and not begun.is_set():
                begun.set()
                time.sleep(0.1)

        def erase(self, key):
            begun.set()
            time.sleep(0.02)
            super().erase(key)

    def create():
        begun.wait()
        try:
            zcore.create_array(store, name=path, data=np.full(6, 7), chunks=2, zarr_format=2)
            results.append("created")
        except zcore.NodeExistsError:
            results.append("exists")

    store = Slow()
    group = zcore.create_group(store, zarr_format=2)
    group.create_array("a", data=np.arange(9), chunks=2, attributes={"x": 1})
    thread = threading.Thread(target=create)
    thread.start()
    group.move("a", "b")
    thread.join()
    assert results == ["created" if path == "a" else "exists"]
    assert group["b"][...].tolist() == list(range(9))
    if path == "a":
        assert group["a"][...].tolist() == [7] * 6 and not dict(group["a"].attrs)


class MovesByKey(zcore.MemoryStore):
    """A store whose moves are many steps, as at a service."""

    move = Store.move


def at_a_service():
    return zcore.RemoteStore(pytest.importorskip("obstore.store").MemoryStore())


@pytest.mark.thinned(2, "change", "new_store")
@pytest.mark.parametrize("n_rounds", [24, pytest.param(120, marks=pytest.mark.slow)])
@pytest.mark.parametrize("new_store", [zcore.MemoryStore, MovesByKey, at_a_service])
@pytest.mark.parametrize("change", ["create", "overwrite", "assign", "delete"])
def test_a_group_that_is_moved_while_a_node_below_it_changes(change, new_store, n_rounds):
    """Chunks went with the group and the document stayed, so elements read as fill values, or those of two arrays.

    Where a move is many steps, what was created was lost, or what was deleted came back.
    """
    changes = {"create": lambda group: group.create_array("g/b", data=np.full(8, 2), chunks=2),
               "overwrite": lambda group: group.create_array("g/a", data=np.full(8, 2), chunks=8, overwrite=True),
               "assign": lambda group: group.__setitem__("g/a", np.full(8, 2)),
               "delete": lambda group: group.__delitem__("g/a")}
    interval = sys.getswitchinterval()

    def called(function):
        outcomes.append((function, refused(function)))

    def refused(function):
        try:
            function(group)
        except zcore.NodeNotFoundError:
            return True
        return False

    def move(group):
        group.move("g", "m")

    try:
        for i in range(n_rounds):
            outcomes, group = [], zcore.create_group(new_store())
            group.create_array("g/a", data=np.full(8, 1), chunks=2)
            sys.setswitchinterval((1e-6, 1e-5, 1e-4)[i % 3])
            threads = [threading.Thread(target=called, args=(function,)) for function in (changes[change], move)]
            for thread in threads[::(1, -1)[i % 2]]:
                thread.start()
            for thread in threads:
                thread.join()
            sys.setswitchinterval(interval)
            found = {path: node[...].tolist() for path, node in group.members(None) if isinstance(node, zcore.Array)}
            assert all(values in ([1] * 8, [2] * 8) for values in found.values()), found
            is_refused = dict(outcomes)[changes[change]]
            assert ("g/a" in found or "m/a" in found) == (change != "delete" or is_refused), (found, outcomes)
            assert ([2] * 8 in found.values()) == (change != "delete"), found
            assert zcore.verify(group.store).problems == []
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("n", [200, pytest.param(600, marks=pytest.mark.slow)])
@pytest.mark.parametrize("lock", ["on", "file"])
def test_threads_that_write_to_arrays_that_others_replace(tmp_path, lock, n):
    """What a write had staged was gone with the old directory, or its lock file was, as if another process had it."""
    def replace(i):
        zcore.create_array(tmp_path, name=f"a{i % 3}", shape=4, dtype="i4", chunks=1 + i % 3, overwrite=True,
                           lock=lock)[...] = 7

    zcore.create_group(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(replace, range(n)))
    assert [a[...].tolist() for _, a in zcore.open_group(tmp_path).arrays()] == 3 * [4 * [7]]


def test_an_array_that_comes_where_another_call_creates_one_is_replaced_in_one_step(tmp_path, monkeypatch):
    """Its document is there all the time, and so are its elements."""
    def overwritten(**keywords):
        return zcore.create_array(tmp_path, name="a", dtype="i4", overwrite=True, **keywords)

    calls, made_in_place, written = [], creation._Creation.made_in_place, creation._Creation.written

    def later(self):
        if not calls:
            calls.append(None)
            calls.append(overwritten(data=np.full(4, 7), chunks=1))
        return made_in_place(self)

    def seen(self, place, is_replaced):
        assert not is_replaced or calls[1][...].tolist() == 4 * [7]
        return written(self, place, is_replaced)

    zcore.create_group(tmp_path)
    monkeypatch.setattr(creation._Creation, "made_in_place", later)
    monkeypatch.setattr(creation._Creation, "written", seen)
    assert overwritten(shape=4, chunks=2)[...].tolist() == 4 * [0]
    assert len(calls) == 2 and zcore.open(tmp_path, path="a").chunks == (2,)


def test_a_move_does_not_mix_with_what_is_there(store):
    group = zcore.create_group(store)
    group.create_array("a", shape=4, chunks=2, dtype="i4")[:2] = 1
    group.create_array("b", shape=4, chunks=2, dtype="i4")[...] = 2
    store.erase("b/zarr.json")
    before = content(store)
    with pytest.raises(zcore.NodeExistsError, match="not free"):
        group.move("a", "b")
    assert content(store) == before


# Several at once


@pytest.mark.parametrize("zarr_format", [3, 2])
@pytest.mark.parametrize("way", ["open_group", "group", "open", "require_group", "require_array", "below"])
def test_threads_that_open_or_create_the_same_node(tmp_path, way, zarr_format):
    calls = {
        "open_group": lambda place: zcore.open_group(place, "a", zarr_format=zarr_format),
        "group": lambda place: zcore.group(place, zarr_format=zarr_format),
        "open": lambda place: zcore.open(place, "a", zarr_format=zarr_format),
        "require_group": lambda place: zcore.group(place, zarr_format=zarr_format).require_group("g"),
        "require_array": lambda place: zcore.group(place, zarr_format=zarr_format).require_array(
            "g", shape=4, dtype="i4"),
        "below": lambda place: zcore.group(place, zarr_format=zarr_format).require_group(
            f"g/h/{threading.get_ident()}"),
    }
    errors = []

    def work(barrier, place):
        barrier.wait()
        try:
            calls[way](place)
        except Exception as error:
            errors.append(error)

    for n in range(15):
        barrier = threading.Barrier(4)
        at_once(threading.Thread(target=work, args=(barrier, tmp_path / str(n))) for _ in range(4))
    assert errors == []


@pytest.mark.parametrize("another", [lambda path: zcore.create_group(path, overwrite=True), shutil.rmtree])
def test_a_node_that_another_call_replaces_at_once_was_made(tmp_path, monkeypatch, another):
    """Both calls end well; the handle of the first finds out when it is used."""
    path, check = tmp_path / "x", creation._Creation.check_groups
    zcore.create_array(path, shape=3, dtype="i4")

    def replaced(steps):
        check(steps)
        if not steps.is_below:     # it is made, and has its place
            monkeypatch.setattr(creation._Creation, "check_groups", check)
            another(path)

    monkeypatch.setattr(creation._Creation, "check_groups", replaced)
    array = zcore.create_array(path, data=np.arange(4), overwrite=True)
    assert creation._Creation.check_groups is check and array.shape == (4,)
    with pytest.raises(zcore.NodeNotFoundError):
        array[...]


def test_what_comes_and_goes_all_the_time_is_an_error_in_the_end(store, monkeypatch):
    zcore.create_group(store)
    calls = []
    monkeypatch.setattr(new_nodes.lookup, "find", lambda *arguments: calls.append(arguments))
    with pytest.raises(zcore.NodeNotFoundError):
        zcore.open_group(store, "a")
    assert 1 < len(calls) < 100


# Members


@pytest.mark.parametrize("max_depth", [-1, 1.5, "2", True])
def test_depths_that_are_none(store, max_depth):
    group = zcore.group(store)
    for call in (group.members, group.walk, group.nmembers, group.tree):
        with pytest.raises((ValueError, TypeError), match="max_depth"):
            call(max_depth)


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_the_metadata_of_a_consolidated_group_have_the_copy(store, zarr_format):
    old_group(store, zarr_format)
    assert zcore.open_group(store).metadata.consolidated is None
    for group in (zcore.consolidate_metadata(store), zcore.open_group(store), zcore.open_consolidated(store)):
        assert list(group.metadata.consolidated) == ["g", "g/a"]
        assert group.metadata.consolidated["g/a"].shape == (4,)
    group = zcore.open_group(store, "r+")
    del group["g/a"]
    assert zcore.open_group(store).metadata.consolidated is None


# While an array is created with its elements, for as long as these are written


@pytest.fixture
def during_creation(tmp_path, monkeypatch):
    """Return a function that creates the array g/s/a, and does something when its elements are there, its document not.

    A thread does it, as it may have to wait for the creation: that goes on after `seconds`. The function returns what
    the thread returned or raised.
    """
    values = np.arange(1, 17).reshape(4, 4)

    def create(change, seconds=0.2):
        outcome, threads = [], []
        write_once = ArrayBinding.write_once

        def other():
            try:
                outcome.append(change())
            except zcore.ZcoreError as error:
                outcome.append(error)

        def write_and_change(binding, *arguments, **options):
            plan = write_once(binding, *arguments, **options)
            if binding.path in ("g/s/a", "") and not threads:
                threads.append(threading.Thread(target=other))
                threads[0].start()
                threads[0].join(seconds)
            return plan

        monkeypatch.setattr(ArrayBinding, "write_once", write_and_change)
        try:
            zcore.create_array(tmp_path, name="g/s/a", data=values, chunks=(2, 2))
        finally:
            threads[0].join()
        return outcome[0]

    zcore.create_group(tmp_path, path="g/s")
    create.values = values
    return create


@pytest.mark.parametrize("repair", [True, "foreign"])
def test_repair_leaves_the_elements_of_an_array_that_is_being_created(tmp_path, during_creation, repair):
    during_creation(lambda: zcore.verify(tmp_path, repair=repair))
    assert np.array_equal(zcore.load(tmp_path, "g/s/a"), during_creation.values)
    assert zcore.verify(tmp_path).problems == []


def test_a_group_that_is_made_in_the_place_of_an_array_that_is_being_created_stays(tmp_path, during_creation):
    with pytest.raises(zcore.NodeExistsError, match="a group"):
        during_creation(lambda: zcore.create_array(tmp_path, name="g/s/a/b", data=np.arange(5)))
    assert np.array_equal(zcore.load(tmp_path, "g/s/a/b"), np.arange(5))
    assert zcore.verify(tmp_path).problems == []


@pytest.mark.parametrize("lock", [True, None])
def test_a_group_that_is_deleted_while_an_array_is_created_below(tmp_path, during_creation, lock):
    """The creation comes after the deletion, so the group is made again."""
    during_creation(lambda: zcore.open_group(tmp_path / "g", mode="r+", lock=lock).__delitem__("s"))
    assert dict(zcore.open_group(tmp_path / "g").members(None)).keys() == {"s", "s/a"}
    assert zcore.verify(tmp_path).problems == []


@pytest.mark.parametrize("lock", [True, "file"])
@pytest.mark.parametrize("keywords", [{"shape": 4, "dtype": "i4"}, {"data": np.arange(4)}], ids=str)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_group_that_is_deleted_before_a_step_of_a_creation_below(tmp_path, monkeypatch, zarr_format, keywords, lock):
    """Before each file that is written, and each directory that is made, in turn. The array is made again, whole."""
    steps, when = [], None

    def watched(call):
        def watched_call(*arguments, **options):
            if root is not None:
                steps.append(call.__name__)
                if len(steps) == when:
                    os.rename(root / "g", root / "moved")
                    shutil.rmtree(root / "moved")
            return call(*arguments, **options)
        return watched_call

    for where, name in ((atomic, "write_file_at"), (zcore.DirectoryStore, "make_directory"),
                        (zcore.DirectoryStore, "set"), (ArrayBinding, "write_once")):
        monkeypatch.setattr(where, name, watched(getattr(where, name)))
    monkeypatch.setattr(creation._Creation, "made_at_once", lambda new: None)     # as where a step of it fails
    for when in range(50):
        root = None
        zcore.create_group(tmp_path / str(when), path="g", zarr_format=zarr_format)
        del steps[:]
        root = tmp_path / str(when)
        z = zcore.create_array(root, name="g/a", chunks=2, attributes={"x": 1}, lock=lock, zarr_format=zarr_format,
                               **keywords)
        assert (dict(z.attrs), z.shape) == ({"x": 1}, (4,))
        assert np.array_equal(z[...], keywords.get("data", np.zeros(4)))
        assert zcore.open_array(root, path="g/a").shape == (4,)
        assert zcore.verify(root).problems == []
        if len(steps) < when:
            break
    assert 2 < when < 49


def test_a_group_that_becomes_an_array_meanwhile_has_nothing_below(tmp_path, during_creation):
    """That comes after the creation below."""
    notes = tmp_path / "g/s/a/notes.txt"
    notes.parent.mkdir()
    notes.write_text("mine")
    during_creation(lambda: zcore.create_array(tmp_path, name="g/s", data=np.arange(5), overwrite=True))
    assert np.array_equal(zcore.load(tmp_path, "g/s"), np.arange(5))
    assert [path for path in (tmp_path / "g/s/a").rglob("*") if path.is_file()] == [notes]


def test_the_document_never_comes_without_the_elements_when_a_group_above_is_moved(tmp_path, during_creation):
    """The array is made again under its name; what another process has created there meanwhile is not replaced."""
    def change():
        os.rename(tmp_path / "g/s", tmp_path / "g/t")
        zcore.create_array(tmp_path, name="g/s/a", data=np.full((7, 7), 7))

    with pytest.raises(zcore.NodeExistsError):
        during_creation(change, seconds=60)
    assert np.array_equal(zcore.load(tmp_path, "g/s/a"), np.full((7, 7), 7))
    assert "a" not in zcore.open_group(tmp_path, path="g/t")


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_empty_directories_are_in_no_chunks_way(tmp_path, zarr_format):
    """A deletion that was cut off leaves them where an array of more dimensions was."""
    values = np.arange(4).reshape(2, 2)
    zcore.create_group(tmp_path, zarr_format=zarr_format)
    for _ in range(2):
        (tmp_path / "a" / ("c/0" if zarr_format == 3 else "") / ("0" if zarr_format == 3 else "0.0") / "1").mkdir(
            parents=True, exist_ok=True)
        zcore.create_array(tmp_path, name="a", data=values, chunks=(2, 2), zarr_format=zarr_format, overwrite=True)
        assert np.array_equal(zcore.load(tmp_path, "a"), values)
        zcore.open_group(tmp_path, mode="r+").__delitem__("a")


@pytest.mark.parametrize("zarr_format", [3, 2, "zmeta"])
def test_arrays_of_equal_arguments_are_arrays_of_their_own(tmp_path, zarr_format):
    """The metadata of arrays with all defaults are made once; arguments that are only equal do not share them."""
    settings = {"shape": (1, 3), "chunks": (1, 2), "dtype": "i2", "zarr_format": zarr_format}
    one, two = [zcore.create_array(str(tmp_path / name), **settings) for name in "ab"]
    one.attrs["x"] = 1
    one.resize(2, 3)
    one[...] = 5
    three = zcore.create_array(str(tmp_path / "c"), **settings)
    for array in (two, three):
        assert (array.shape, dict(array.attrs), array[...].tolist()) == ((1, 3), {}, [[0, 0, 0]])
    # 1.0 and True equal 1, but are no lengths.
    for shape in ((1.0, 3), (True, 3)):
        with pytest.raises(TypeError):
            zcore.create_array(str(tmp_path / "d"), **settings | {"shape": shape})
    assert zcore.create_array(str(tmp_path / "e"), **settings, fill_value=7)[0].tolist() == [7, 7, 7]


@pytest.mark.parametrize("zarr_format", [3, 2, "zmeta"])
def test_an_array_with_elements_is_created_without_locks(tmp_path, zarr_format):
    """The lock had made the directory, so without one the call failed."""
    a = zcore.create_array(tmp_path, name="a", data=[1, 2], chunks=1, zarr_format=zarr_format, lock=None)
    assert a[...].tolist() == [1, 2] and zcore.verify(tmp_path, path="a").ok


@pytest.mark.parametrize("create", [zcore.create_group, functools.partial(zcore.create_array, shape=3, dtype="i4")])
def test_behind_a_link_that_leads_nowhere_a_document_of_today_is_named(tmp_path, create):
    (tmp_path / "gone").symlink_to(tmp_path / "unmounted" / "disk")
    for place in ("gone", "gone/a"):
        with pytest.raises(zcore.StoreError, match=r"cannot read 'zarr\.json' of .*: a symbolic link leads nowhere; "):
            create(tmp_path / place)


def test_arrays_that_are_created_together_are_whole_after_ctrl_c():
    """Nothing is written in the background, and nothing more begins."""
    service, begun, ended = Service(), [], []

    def put(name, *args):
        try:
            begun.append(name)
            if len(begun) == 30:
                os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.02)
            return type(service).put(service, name, *args)
        finally:
            ended.append(name)

    service.put = put
    store = RemoteStore(service, n_requests=4)
    with pytest.raises(KeyboardInterrupt):
        zcore.save(store, **{str(i): np.ones(3) for i in range(50)})
    assert sorted(begun) == sorted(ended)
    assert 0 < len(zcore.open(store)) < 50


def test_the_first_of_several_failures_is_the_error():
    """Whichever answer comes first."""
    service = Service()
    store = RemoteStore(service)
    nodes = {name: zcore.create_array(zcore.MemoryStore(), shape=3, dtype="i4").metadata for name in "abcdef"}
    for name in "cde":
        zcore.create_array(store, name=name, shape=3, dtype="i4")
    service.list_dir = lambda prefix: time.sleep(0.05 * (prefix == "c/")) or type(service).list_dir(service, prefix)
    with pytest.raises(zcore.NodeExistsError, match="^c in"):
        zcore.create_hierarchy(store=store, nodes=nodes)
    assert sorted(store.list()) == ["c/zarr.json", "d/zarr.json", "e/zarr.json", "zarr.json"]


def test_warnings_of_arrays_that_are_created_together_name_the_line_of_the_caller():
    nodes = {name: zcore.create_array(zcore.MemoryStore(), shape=3, dtype="i4").metadata for name in ("a", "b ", "c ")}
    with pytest.warns(UserWarning, match="not portable") as caught:
        list(zcore.create_hierarchy(store=RemoteStore(Service()), nodes=nodes))
    assert {warning.filename for warning in caught} == {__file__}
