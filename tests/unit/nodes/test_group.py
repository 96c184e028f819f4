"""Groups: a hierarchy of nodes as a mapping, in every store and format that has groups."""
import contextlib
import copy
import errno
import json
import os
import pickle
import shutil
import sys
import threading
import time
import warnings

import numpy as np
import pytest

import zcore
from tests.each import each
from zcore.formats import NAMES, format_of
from zcore.hierarchy import creation, deletion, lookup
from zcore.stores.base import Store
from zcore.stores.directory.staged import StagedDirectory

WITH_GROUPS = [name for name in NAMES if format_of(name).group_document is not None]


@pytest.fixture(params=["directory", "memory"])
def store(request, tmp_path):
    return zcore.DirectoryStore(tmp_path) if request.param == "directory" else zcore.MemoryStore()


@pytest.fixture(params=WITH_GROUPS)
def group(request, store):
    return zcore.create_group(store, zarr_format=request.param, attributes={"title": "weather"})


def fill(group):
    """A hierarchy of two levels: /a, /g, /g/b, /g/h, /g/h/c."""
    group.create_array("a", shape=4, chunks=2, dtype="i4", attributes={"n": 1})[...] = range(4)
    group.create_array("g/b", shape=(2, 2), dtype="f8")
    group.create_group("g/h", attributes={"deep": True})
    group["g"].create_array("h/c", shape=3, dtype="u1")[...] = 7
    return group


@pytest.mark.parametrize("zarr_format", WITH_GROUPS)
def test_links_to_what_lies_above_are_not_listed(tmp_path, zarr_format):
    """A walk ends, and consolidated metadata hold each node once; two links to one node elsewhere are two members."""
    group = fill(zcore.create_group(tmp_path / "store", zarr_format=zarr_format))
    expected = [path for path, _ in group.members(None)]
    os.symlink(".", tmp_path / "store/g/itself")
    os.symlink("../..", tmp_path / "store/g/h/root")
    os.symlink(tmp_path / "store", tmp_path / "store/root")
    # Beyond the base: from there the way leads back to it.
    zcore.create_group(tmp_path, zarr_format=zarr_format)
    os.symlink(tmp_path, tmp_path / "store/g/beyond")
    found = [path for path, _ in group.members(None)]
    assert [path for path in found if "beyond" not in path] == expected
    # What lies above the base is listed once, and each of its own links at most once more.
    assert "g/beyond/store/a" in found and not any(path.count("beyond") > 1 for path in found)
    os.unlink(tmp_path / "store/g/beyond")
    os.symlink("h", tmp_path / "store/g/other")
    assert list(group["g"]) == ["b", "h", "other"]
    assert sorted(zcore.consolidate_metadata(tmp_path / "store")._copy) == sorted([*expected, "g/other", "g/other/c"])
    assert group["g/itself/h/c"][0] == 7


def test_a_new_group(group, store):
    assert (group.path, group.name, group.basename, group.read_only) == ("", "/", "", False)
    assert list(group) == [] and len(group) == 0 and group.tree() == "/"
    assert group.attrs.asdict() == {"title": "weather"}
    found = zcore.open(store)
    assert isinstance(found, zcore.Group) and found == group and found.read_only
    assert hash(found) == hash(group) and found.zarr_format == group.zarr_format


def test_members(group):
    """V3-OP-03, V2-GRP-03, D3-STO-02"""
    fill(group)
    assert sorted(group) == ["a", "g"] == sorted(group.keys()) and len(group) == 2
    assert [name for name, _ in group.arrays()] == ["a"] == list(group.array_keys())
    assert [name for name, _ in group.groups()] == ["g"] == list(group.group_keys())
    assert [path for path, _ in group.members()] == ["a", "g"]
    assert [path for path, _ in group.members(1)] == ["a", "g", "g/b", "g/h"]
    assert [path for path, _ in group.members(None)] == ["a", "g", "g/b", "g/h", "g/h/c"]
    assert group.nmembers() == 2 and group.nmembers(None) == 5
    assert dict(group.items()).keys() == {"a", "g"} and len(list(group.values())) == 2
    assert group["g/h/c"][...].tolist() == [7] * 3 == group["g"]["h"]["c"][...].tolist()
    assert group["g"].name == "/g" and group["g/h"].basename == "h"
    assert group["g/h"].attrs["deep"] is True and group["a"].attrs["n"] == 1
    assert "g/b" in group and "g/x" not in group and 42 not in group
    assert group.get("none", 5) == 5 and isinstance(group.get("/g"), zcore.Group)


@pytest.mark.parametrize("name", ["none", "a/b", "g/none", "g/h/c/d"])
def test_a_member_that_is_not_there(group, name):
    with pytest.raises(KeyError) as caught:
        fill(group)[name]
    assert isinstance(caught.value, zcore.NodeNotFoundError) and caught.value.path == name
    with pytest.raises(zcore.NodeNotFoundError):
        del group[name]


@pytest.mark.parametrize("name", ["", "/"])
def test_the_path_of_a_group_itself(group, name):
    """As in zarr-python. It is not among the members, and nothing can be made there."""
    for own in (group, group.create_group("g")):
        assert own[name] is own.get(name) is own.get_group(name) is own and name in own and name not in list(own)
    for call in (lambda: group.get_array(name), lambda: group.require_array(name, shape=1, dtype="i1"),
                 lambda: group.require_group(name)):
        with pytest.raises(zcore.NodeNotFoundError):
            call()
    for call in (lambda: group.create_array(name, shape=1, dtype="i1"),
                 lambda: group.create_group(name), lambda: group.__delitem__(name), lambda: group.move("a", name)):
        with pytest.raises(zcore.NodeNotFoundError, match=" has no member without a name$"):
            call()


@pytest.mark.parametrize("name", ["../a", "./a", "g/../a", "a\0", "\ud800"])
def test_names_that_are_none(group, name):
    """V3-NAME-04, V3-NAME-05, V2-KEY-03"""
    assert name not in group and group.get(name, 5) == 5
    group.create_group("g")
    for call in (lambda: group[name], lambda: group.create_array(name, shape=1, dtype="i1"),
                 lambda: group.create_group(name), lambda: group.move("g", name)):
        with pytest.raises(zcore.InvalidKeyError):
            call()


def test_tree(group):
    assert fill(group).tree().splitlines() == [
        "/", "├── a (4,) int32", "└── g", "    ├── b (2, 2) float64", "    └── h", "        └── c (3,) uint8"]
    assert group.tree(max_depth=0).splitlines() == ["/", "├── a (4,) int32", "└── g"]


def test_visititems(group):
    fill(group)
    seen = []
    assert group.visititems(lambda path, node: seen.append(path)) is None
    assert seen == [path for path, _ in group.members(None)]
    assert group.visititems(lambda path, node: path if path.startswith("g") else None) == "g"


def test_groups_above_are_created(store):
    """V3-OP-01, D3-GRP-01"""
    a = zcore.create_array(store, name="x/y/a", shape=2, dtype="i1")
    assert isinstance(zcore.open(store), zcore.Group)
    assert [path for path, _ in zcore.open_group(store).members(None)] == ["x", "x/y", "x/y/a"]
    assert a.path == "x/y/a"


def test_what_is_in_the_way_is_said(group):
    fill(group)
    for create in (group.create_group, lambda name: group.create_array(name, shape=1, dtype="i1")):
        for name, message in (("a/b", "there is an array at"), ("g/b/x/y", "there is an array at"), ("a", "already"),
                              ("g", "already")):
            with pytest.raises(zcore.NodeExistsError, match=message):
                create(name)


def test_a_group_is_no_values(group):
    """NumPy made an array of the names."""
    fill(group)
    for call in (lambda: group.__setitem__("new", group), lambda: group["a"].append(group), lambda: zcore.array(group)):
        with pytest.raises(TypeError, match="is a group, expected values; zcore.copy"):
            call()
    h5py = pytest.importorskip("h5py")
    with h5py.File("x", "w", driver="core", backing_store=False) as file:
        file["name"] = 1
        with pytest.raises(TypeError, match="a File is no values; zcore.copy copies groups"):
            group["new"] = file
    assert "new" not in group


def test_require(group):
    fill(group)
    assert group.require_array("a", shape=4, dtype="i4")[...].tolist() == [0, 1, 2, 3]
    assert group.require_group("g") == group["g"]
    with pytest.raises(zcore.ArrayMismatchError, match=r"is there; group\['a'\] opens it as it is$"):
        group.require_array("a", shape=5, dtype="i4")
    for call in (lambda: group.require_array("g", shape=1, dtype="i1"), lambda: group.require_group("a")):
        with pytest.raises(zcore.NodeExistsError):
            call()
    assert group.require_array("new", shape=5, dtype="i4").shape == (5,)
    assert group.require_group("new2").path == "new2"


def test_deletion_of_the_root(group, store):
    deletion.delete(store, "", fill(group)._binding.options)
    assert list(store.list()) == [] and len(store.list_dir("")[1]) == 0


def test_files_of_others_stay(tmp_path):
    group = fill(zcore.open_group(tmp_path, mode="w"))
    for name in ("README", "g/notes.txt", "a/c/x", "a/c/00"):
        (tmp_path / name).write_bytes(b"mine")
    del group["g"], group["a"]
    zcore.open_group(tmp_path, mode="w")
    left = sorted(os.path.relpath(os.path.join(folder, name), tmp_path)
                  for folder, _, names in os.walk(tmp_path) for name in names)
    assert left == ["README", "a/c/00", "a/c/x", "g/notes.txt", "zarr.json"]


@pytest.mark.parametrize("delete", [
    lambda group: group.__delitem__("g"), lambda group: group.__delitem__("g/elsewhere"),
    lambda group: group.create_group("g", overwrite=True),
])
@pytest.mark.parametrize("zarr_format", WITH_GROUPS)
def test_what_links_lead_to_is_not_deleted(tmp_path, zarr_format, delete):
    other = fill(zcore.create_group(tmp_path / "other", zarr_format=zarr_format))
    group = fill(zcore.create_group(tmp_path / "store", zarr_format=zarr_format))
    os.symlink(tmp_path / "other", tmp_path / "store/g/elsewhere")
    os.symlink("..", tmp_path / "store/g/up")
    assert "g/elsewhere/a" in group and "g/up/g" in group
    zcore.consolidate_metadata(group.store)
    delete(group)
    assert not os.path.lexists(tmp_path / "store/g/elsewhere") and "g/elsewhere" not in group
    assert other["a"][...].tolist() == group["a"][...].tolist() == [0, 1, 2, 3]
    assert other.nmembers(None) == 5 and "g/elsewhere" not in dict(zcore.open(group.store).members(None))


def test_chunks_of_an_array_that_is_gone_do_not_come_back(tmp_path):
    """A kill between the document and the rest leaves chunks that no array has; so does a document that was lost."""
    make = lambda **keywords: zcore.create_array(tmp_path, shape=4, chunks=2, dtype="i4", **keywords)  # noqa: E731
    for keywords in ({}, {"chunk_key_encoding": {"name": "v2", "separator": "."}}):
        make(**keywords)[...] = 5
        document = (tmp_path / "zarr.json").read_bytes()
        (tmp_path / "zarr.json").unlink()
        with pytest.raises(zcore.StoreError, match="overwrite=True"):
            make(**keywords)
        (tmp_path / "zarr.json").write_bytes(document)
        assert zcore.open(tmp_path)[...].tolist() == [5] * 4
        (tmp_path / "zarr.json").unlink()
        assert make(overwrite=True, **keywords)[...].tolist() == [0] * 4
        (tmp_path / "zarr.json").unlink()


def test_modes(store):
    for mode in ("r", "r+"):
        with pytest.raises(zcore.NodeNotFoundError):
            zcore.open_group(store, mode)
    with pytest.raises(ValueError, match="mode"):
        zcore.open_group(store, "q")
    fill(zcore.open_group(store, "a"))
    assert zcore.open_group(store, "a").nmembers() == 2
    for mode in ("w-", "x"):
        with pytest.raises(zcore.NodeExistsError):
            zcore.open_group(store, mode)
    reader = zcore.open_group(store)
    for change in (lambda: reader.create_group("x"), lambda: reader.create_array("x", shape=1, dtype="i1"),
                   lambda: reader.__delitem__("a"), lambda: reader.attrs.update(x=1),
                   lambda: reader["a"].__setitem__(0, 1), lambda: reader["g"].create_group("x")):
        with pytest.raises(zcore.ReadOnlyError):
            change()
    assert zcore.open_group(store, "w").nmembers() == 0
    with pytest.raises(zcore.NodeNotFoundError, match="group, not an array; zcore.open_group opens it"):
        zcore.open_array(store)
    with pytest.raises(zcore.NodeNotFoundError, match="group, not an array"):
        zcore.open(store, mode="a", shape=4, dtype="i1")
    zcore.create_array(store, name="b", shape=1, dtype="i1")
    with pytest.raises(zcore.NodeNotFoundError, match="array, not a group; zcore.open opens it"):
        zcore.open_group(store, path="b")


def test_options_are_handed_down(store):
    group = zcore.create_group(store, missing="raise", threads=3, write_empty_chunks=True)
    a = group.create_array("a", shape=4, chunks=2, dtype="i4")
    assert (a.missing, a.threads, group["a"].missing, group["a"].threads) == ("raise", 3, "raise", 3)
    assert group.create_array("b", shape=4, dtype="i4", missing="fill").missing == "fill"


def test_attributes(group, store):
    group.attrs["x"] = [1, {"y": None}]
    group.attrs.update(z="ä", title="t")
    assert zcore.open_group(store).attrs.asdict() == {"title": "t", "x": [1, {"y": None}], "z": "ä"}
    fill(group)
    del group.attrs["x"]
    assert sorted(group.attrs) == ["title", "z"] and group.nmembers(None) == 5
    found = group.attrs.asdict()
    found["mine"] = 1
    assert "mine" not in group.attrs, "a dict that is handed out is the caller's"


def test_copies_and_pickles(tmp_path):
    group = fill(zcore.open_group(tmp_path, mode="w"))
    for other in (pickle.loads(pickle.dumps(group)), copy.copy(group), copy.deepcopy(group)):
        assert other == group and sorted(other) == ["a", "g"] and not other.read_only
    assert repr(group["g/h"]) == f"<zcore.Group '{tmp_path.name}/g/h', format 3>"
    with group as same:
        assert same is group


def test_a_node_that_is_replaced_by_one_of_another_kind(group):
    a = fill(group)["a"]
    group.create_group("a", overwrite=True)
    with pytest.raises((zcore.NodeNotFoundError, zcore.StoreError)):
        a[...]
    with pytest.raises((zcore.NodeNotFoundError, zcore.StoreError)):
        a[...] = 1
    assert isinstance(group["a"], zcore.Group) and np.array_equal(group["g/h/c"][...], [7] * 3)


@pytest.mark.parametrize("at_once", [True, False])
def test_what_was_created_is_not_taken_for_what_replaces_it_at_once(group, store, monkeypatch, at_once):
    """Where nothing is, a store makes it by one call; else, and in other stores, it takes steps."""
    place, make_with = creation.Place, type(store.folders).make_directory_with

    def make_and_replace(*arguments):
        monkeypatch.undo()
        made = make_with(*arguments)
        if made is not None:
            group.create_array("a", shape=2, dtype="f8", overwrite=True)
        return made

    @contextlib.contextmanager
    def hold_until_another_comes(*arguments):
        with place(*arguments) as held:
            yield held
        monkeypatch.setattr(creation, "Place", place)
        group.create_array("a", shape=2, dtype="f8", overwrite=True)

    if at_once and isinstance(store, zcore.DirectoryStore):
        monkeypatch.setattr(type(store), "make_directory_with", make_and_replace)
    else:
        monkeypatch.setattr(creation, "Place", hold_until_another_comes)
        monkeypatch.setattr(type(store.folders), "make_directory_with", lambda *_: None)
    created = group.create_array("a", shape=4, dtype="i4")
    assert (created.shape, created.dtype, group["a"].dtype) == ((4,), np.int32, np.float64)


# Move


def test_a_node_that_goes_while_it_is_moved(tmp_path, monkeypatch):
    group = fill(zcore.create_group(tmp_path))
    monkeypatch.setattr(creation.consolidated, "drop", lambda *_, **__: shutil.rmtree(tmp_path / "g", True))
    with pytest.raises(zcore.NodeNotFoundError, match="gone"):
        group.move("g", "h")


@pytest.mark.parametrize("zarr_format", WITH_GROUPS)
@pytest.mark.parametrize("step", ["before all", "after all"])
def test_a_group_is_moved_while_a_node_below_is_created_at_once(tmp_path, zarr_format, step):
    """The node is there as a whole, listed, at the one path or the other, and nothing else is."""
    class Store(zcore.DirectoryStore):
        moves = False

        def make_directory_with(self, *arguments):
            self._meet("before all")
            made = super().make_directory_with(*arguments)
            self._meet("after all")
            return made

        def _meet(self, met):
            if self.moves and met == step:
                self.moves = False
                zcore.open_group(tmp_path, "r+").move("g", "moved")

    store = Store(tmp_path)
    group = zcore.create_group(store, zarr_format=zarr_format)
    group.create_group("g", attributes={"n": 1})
    store.moves = True
    create = lambda: group.create_array("g/x", shape=2, chunks=1, dtype="i1", attributes={"n": 2})  # noqa: E731
    if step == "after all":
        with pytest.raises(zcore.NodeNotFoundError):
            create()[...]
        assert [path for path, _ in group.members(None)] == ["moved", "moved/x"]
        found = group["moved/x"]
    else:
        found = create()
        assert [path for path, _ in group.members(None)] == ["g", "g/x", "moved"]
    assert not store.moves
    assert found.attrs == {"n": 2} and group["moved"].attrs == {"n": 1}
    found[...] = [1, 2]
    assert found[...].tolist() == [1, 2] and not _temporary(tmp_path)


def _temporary(base):
    return [name for _, _, names in os.walk(base) for name in names if name.startswith(".__zc_tmp")]


def _files(base):
    return sorted([os.path.relpath(os.path.join(folder, name), base) for folder, _, names in os.walk(base)
                   for name in names])


class Meeting(zcore.DirectoryStore):
    """Right before a method is called for a key or prefix, another thread calls something, from beginning to end."""

    meets = None

    def meet(self, method, name, call):
        """Call ``call()`` before the next ``method(name, …)``; return a function that returns its result."""
        outcome = []

        def run():
            try:
                outcome.append(call())
            except zcore.ZcoreError as error:
                outcome.append(error)

        self.meets = method, name, threading.Thread(target=run)
        return lambda: outcome[0]

    def _meet(self, method, name):
        if self.meets is not None and self.meets[:2] == (method, name):
            thread, self.meets = self.meets[2], None
            thread.start()
            thread.join(60)
            assert not thread.is_alive()

    def make_directory_with(self, prefix, *rest):
        """Do nothing, so that all steps are taken."""
        return None

    def is_empty(self, prefix):
        self._meet("is_empty", prefix)
        return super().is_empty(prefix)

    def set_at(self, directory, key, value):
        self._meet("set", key)
        super().set_at(directory, key, value)

    def set_if_not_exists(self, key, value):
        self._meet("set_if_not_exists", key)
        return super().set_if_not_exists(key, value)

    def move(self, source, destination, last=(), renewed=None):
        self._meet("move", source)
        super().move(source, destination, last, renewed)


DOCUMENT = {3: ("zarr.json", "zarr.json"), 2: (".zgroup", ".zarray")}


@pytest.mark.parametrize("zarr_format", WITH_GROUPS)
@pytest.mark.parametrize("step", ["directory", "attributes", "document"])
def test_a_node_that_is_being_created_goes_along_when_a_group_above_is_moved(tmp_path, zarr_format, step):
    """Chunks stayed without a document where the group went, or the array was at both places."""
    store = Meeting(tmp_path)
    group = zcore.create_group(store, zarr_format=zarr_format)
    group.create_group("g", attributes={"n": 1})
    store.set("g/x/notes.txt", b"mine")     # so it is created in its place
    moved = store.meet(*{"directory": ("is_empty", "g/x/"), "document": ("set", f"g/x/{DOCUMENT[zarr_format][1]}"),
                         "attributes": ("set", f"g/x/{'.zattrs' if zarr_format == 2 else 'zarr.json'}")}[step],
                       lambda: zcore.open_group(tmp_path, "r+").move("g", "moved"))
    a = group.create_array("g/x", data=[1, 2], chunks=1, attributes={"n": 2})
    assert moved() is None
    assert [path for path, _ in group.members(None)] == ["moved", "moved/x"]
    assert group["moved/x"][...].tolist() == [1, 2] and group["moved/x"].attrs == {"n": 2}
    with pytest.raises(zcore.NodeNotFoundError):
        a[...]
    assert not [name for name in _files(tmp_path) if name.startswith("g")] and not _temporary(tmp_path)
    assert [problem[:2] for problem in zcore.verify(tmp_path).problems] == [("foreign", "moved/x/notes.txt")]


@pytest.mark.parametrize("verb", ["move", "delete", "replace"])
@pytest.mark.parametrize("old", [None, "array"])
def test_what_is_made_beside_its_place_when_the_group_above_goes(tmp_path, monkeypatch, verb, old):
    """The creation comes afterwards, and makes the group again."""
    group = zcore.create_group(tmp_path)
    group.create_group("g", attributes={"n": 1})
    if old:
        group.create_array("g/x", data=[0, 0, 0])
    put = StagedDirectory.commit

    def change_and_put(self, replace):
        monkeypatch.undo()
        other = zcore.open_group(tmp_path, "r+")
        {"move": lambda: other.move("g", "moved"), "delete": lambda: other.__delitem__("g"),
         "replace": lambda: other.create_group("g", overwrite=True)}[verb]()
        put(self, replace)

    monkeypatch.setattr(StagedDirectory, "commit", change_and_put)
    assert group.create_array("g/x", data=[1, 2], overwrite=True)[...].tolist() == [1, 2]
    old = ["moved", "moved/x"] if old and verb == "move" else ["moved"] if verb == "move" else []
    assert [path for path, _ in group.members(None)] == ["g", "g/x", *old]
    assert not _temporary(tmp_path) and zcore.verify(tmp_path).ok


@pytest.mark.parametrize("zarr_format", WITH_GROUPS)
def test_a_group_is_moved_while_groups_are_made_below(tmp_path, zarr_format):
    """Their documents came where the group had been, and what others created in them was below no group."""
    store = Meeting(tmp_path)
    group = zcore.create_group(store, zarr_format=zarr_format)
    group.create_group("g")
    moved = store.meet("set_if_not_exists", f"g/h/i/{DOCUMENT[zarr_format][0]}",
                       lambda: zcore.open_group(tmp_path, "r+").move("g/h", "moved"))
    group.create_array("g/h/i/x", data=[1, 2], chunks=1)
    assert moved() is None
    assert [path for path, _ in group.members(None)] == ["g", "g/h", "g/h/i", "g/h/i/x", "moved"]
    assert zcore.verify(tmp_path).ok and not _temporary(tmp_path)


@pytest.mark.parametrize("zarr_format", WITH_GROUPS)
def test_a_group_is_moved_while_a_node_below_is_deleted(tmp_path, monkeypatch, zarr_format):
    """The chunks of the array stayed where the group went."""
    group = zcore.create_group(tmp_path, zarr_format=zarr_format)
    group.create_array("g/h/x", data=[1, 2], chunks=1)
    put = StagedDirectory.commit

    def move_and_put(self, replace):
        monkeypatch.undo()
        zcore.open_group(tmp_path, "r+").move("g", "moved")
        put(self, replace)

    monkeypatch.setattr(StagedDirectory, "commit", move_and_put)
    with pytest.raises(zcore.NodeNotFoundError):
        del group["g/h/x"]
    assert group["moved/h/x"][...].tolist() == [1, 2] and not _temporary(tmp_path)
    assert [path for path, _ in group.members(None)] == ["moved", "moved/h", "moved/h/x"]


def test_a_group_is_moved_while_a_node_below_is_moved(tmp_path):
    """It was a StoreError: the directory was gone when it got its new name."""
    store = Meeting(tmp_path)
    group = zcore.create_group(store)
    group.create_array("g/h/x", data=[1, 2], chunks=1)
    moved = store.meet("move", "g/h/", lambda: zcore.open_group(tmp_path, "r+").move("g", "moved"))
    with pytest.raises(zcore.NodeNotFoundError):
        group.move("g/h", "g/i")
    assert moved() is None and not (tmp_path / "g").exists()
    assert [path for path, _ in group.members(None)] == ["moved", "moved/h", "moved/h/x"]


def test_a_node_is_moved_to_where_another_one_is_being_created(tmp_path, monkeypatch):
    """That is refused then: nothing is replaced."""
    group = zcore.create_group(tmp_path)
    group.create_array("a", data=[1, 2])
    put = StagedDirectory.commit

    def move_and_put(self, replace):
        monkeypatch.undo()
        zcore.open_group(tmp_path, "r+").move("a", "x")
        put(self, replace)

    monkeypatch.setattr(StagedDirectory, "commit", move_and_put)
    with pytest.raises(zcore.NodeExistsError):
        group.create_array("x", data=[3, 4])
    assert list(group) == ["x"] and group["x"][...].tolist() == [1, 2] and not _temporary(tmp_path)


def test_a_link_to_a_directory_above_is_moved(tmp_path):
    """It has the lock of that directory, which the move holds already."""
    group = zcore.create_group(tmp_path)
    group.create_array("g/h/x", data=[1, 2])
    os.symlink(tmp_path / "g", tmp_path / "g/h/up")
    group.move("g/h/up", "g/link")
    group.create_array("g/link/y", data=[3])
    with pytest.raises(zcore.NodeExistsError):
        group.create_array("g/link", data=[3])
    assert os.path.islink(tmp_path / "g/link") and sorted(group["g/link"]) == ["h", "y"]


@pytest.mark.parametrize("lock", [None, "file"])
def test_nodes_come_and_go_without_locks_of_the_system(tmp_path, monkeypatch, lock):
    """Missing groups above took locks, whatever the caller said; and `lock=None` lost the array that was replaced."""
    import fcntl

    def refuse(fd, kind):
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    group = zcore.open_group(tmp_path, "w", lock=lock)
    monkeypatch.setattr(fcntl, "flock", refuse)
    group.create_array("g/h/x", data=[1, 2], chunks=1)
    group.create_array("g/h/x", data=[3, 4, 5], chunks=1, overwrite=True)
    group.move("g/h", "k/h")
    assert group["k/h/x"][...].tolist() == [3, 4, 5]
    del group["k"]
    assert list(group) == ["g"]


def test_a_group_that_another_program_moves_while_it_is_created_keeps_its_members(tmp_path):
    """It was overwritten when it was made again, if it had a document of attributes."""
    class Moved(zcore.DirectoryStore):
        def make_directory_with(self, prefix, *rest):
            return None

        def set_at(self, directory, key, value):
            if key == "g/x/.zgroup":
                os.rename(tmp_path / "g", tmp_path / "moved")
            super().set_at(directory, key, value)
            if key == "g/x/.zgroup":
                zcore.create_array(tmp_path, name="g/x/member", shape=2, dtype="i4", zarr_format=2)

    group = zcore.create_group(Moved(tmp_path), zarr_format=2)
    group.create_group("g")
    group.create_group("g/x", attributes={"n": 1})
    assert group["moved/x"].attrs == {"n": 1}
    assert [path for path, _ in group.members(None)] == ["g", "g/x", "g/x/member", "moved", "moved/x"]


def test_a_move_in_a_store_that_is_confined(tmp_path):
    """The lock of the destination made its directory, which was then in the way: no move was possible."""
    group = zcore.create_group(zcore.DirectoryStore(tmp_path, confined=True))
    group.create_array("a", data=[1, 2])
    group.move("a", "b/c")
    group.move("b", "d")
    assert group["d/c"][...].tolist() == [1, 2] and list(group) == ["d"]


def test_a_handle_on_what_was_moved(tmp_path):
    group = fill(zcore.open_group(tmp_path, mode="w"))
    a = group["a"]
    group.move("a", "b")
    with pytest.raises(zcore.NodeNotFoundError):
        a[...]
    with pytest.raises(zcore.NodeNotFoundError):
        a[0] = 1
    assert group["b"][...].tolist() == [0, 1, 2, 3]


# Consolidated metadata


def test_a_copy_lists_the_members(group, store):
    """V3-GRP-06, V2-CON-02"""
    fill(group)
    with pytest.raises(ValueError, match="no consolidated metadata"):
        zcore.open_group(store, use_consolidated=True)
    assert zcore.consolidate_metadata(store) == group
    copy = zcore.open_group(store)
    assert [path for path, _ in copy.members(None)] == ["a", "g", "g/b", "g/h", "g/h/c"]
    assert copy["g/h/c"][...].tolist() == [7] * 3 and copy["g"].attrs.asdict() == {}
    # It is the copy that is listed: what another library adds without dropping it is not seen.
    for key in [key for key in store.list() if key.startswith("a/")]:
        store.set("later/" + key[2:], store.get(key))
    assert sorted(zcore.open_group(store, use_consolidated=True)) == ["a", "g"]
    assert sorted(zcore.open_group(store, use_consolidated=False)) == ["a", "g", "later"]
    assert sorted(copy.refresh()) == ["a", "g", "later"]
    assert zcore.open_group(store)["later"][...].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("mode", ["r", "r+"])
@pytest.mark.parametrize("use", [None, True, False])
def test_a_copy_that_is_out_of_date_never_reads_wrong(group, store, mode, use):
    """Another library changes documents and leaves the copy as it is."""
    for name in ("grown", "shrunk", "replaced", "gone", "same"):
        group.create_array(name, data=np.arange(8), chunks=4)
    zcore.consolidate_metadata(store)
    before = {key: store.get(key) for key in store.list() if "/" not in key}
    group["grown"].append(np.arange(4))
    group["shrunk"].resize(2)
    group.create_array("replaced", data=np.arange(8.0), chunks=2, overwrite=True)
    del group["gone"]
    group.create_array("new", data=np.arange(3))
    for key, document in before.items():
        store.set(key, document)
    found = zcore.open_group(store, mode, use_consolidated=use)
    by_copy = mode == "r" and use is not False
    assert found["same"][...].tolist() == list(range(8))
    assert found["new"][...].tolist() == [0, 1, 2], "the store has the last word"
    grown = found["grown"]
    assert grown.shape == ((8,) if by_copy else (12,))
    assert grown[:8].tolist() == list(range(8)) and grown.refresh().shape == (12,)
    assert grown[8:].tolist() == [0, 1, 2, 3]
    if not by_copy:
        assert found["shrunk"].shape == (2,) and found["replaced"].dtype == "f8" and "gone" not in found
        return
    with pytest.raises(zcore.SelectionError, match="shrunk to"):
        found["shrunk"][...]
    assert found["shrunk"].refresh()[...].tolist() == [0, 1]
    with pytest.raises(zcore.StoreError, match="replaced by another one"):
        found["replaced"][...]
    with pytest.raises(zcore.NodeNotFoundError):
        found["gone"][...]
    assert sorted(found.refresh()) == ["grown", "new", "replaced", "same", "shrunk"]


@pytest.mark.parametrize("members", [{}, {"zarr_format": 9}, {"node_type": "array", "zarr_format": 3}])
def test_a_copy_that_is_damaged_for_a_member_is_not_used_for_it(members):
    group = zcore.group()
    group.create_array("a", data=np.arange(4))
    group.create_array("b", data=np.arange(5))
    zcore.consolidate_metadata(group.store)
    document = json.loads(group.store.get("zarr.json"))
    document["consolidated_metadata"]["metadata"]["a"] = members
    group.store.set("zarr.json", json.dumps(document).encode())
    found = zcore.open(group.store)
    assert found["a"][...].tolist() == [0, 1, 2, 3] and found["b"].shape == (5,)


def test_a_damaged_document_of_a_copy_does_not_keep_a_group_closed():
    group = zcore.group(zarr_format=2)
    group.create_array("a", data=np.arange(4))
    group.store.set(".zmetadata", b'{"zarr_consolidated_format": 7, "metadata": {}}')
    with pytest.warns(UserWarning, match="the consolidated metadata are not used"):
        found = zcore.open(group.store)
    assert list(found) == ["a"] and found["a"][...].tolist() == [0, 1, 2, 3]
    with pytest.raises(zcore.MetadataError):
        zcore.open_group(group.store)


WRONG_COPIES = [(3, value) for value in (
    1, [], "inline", {}, {"kind": "inline", "metadata": {}},
    {"kind": "inline", "must_understand": True, "metadata": {}}, {"kind": "inline", "must_understand": False},
    {"kind": "external", "must_understand": False, "metadata": {}},
    {"kind": "inline", "must_understand": False, "metadata": []})]
WRONG_COPIES += [(2, value) for value in (1, [], "inline", {}, {"metadata": {}}, {"zarr_consolidated_format": 1},
                                          {"zarr_consolidated_format": 1, "metadata": []})]


@each("zarr_format, value", WRONG_COPIES)
def test_a_copy_of_a_wrong_kind_is_only_in_the_way_of_a_reader_that_asks_for_it(zarr_format, value):
    """V3-GRP-03, V3-GRP-06: the error and the warning name the repair."""
    def make():
        group = zcore.group(zarr_format=zarr_format)
        group.create_array("a", data=np.arange(4))
        if zarr_format == 2:
            group.store.set(".zmetadata", json.dumps(value).encode())
        else:
            group.store.set("zarr.json", json.dumps(
                {**json.loads(group.store.get("zarr.json")), "consolidated_metadata": value}).encode())
        return group.store

    store = make()
    repairs = "zcore.consolidate_metadata makes them anew.*repair=.stale copy.. drops them"
    for open_it in (zcore.open_group, zcore.open_consolidated, lambda store: zcore.open_group(store, "a")):
        with pytest.raises(zcore.MetadataError, match=f"use_consolidated=False opens the group.*{repairs}"):
            open_it(store)
    with pytest.warns(UserWarning, match=f"the consolidated metadata are not used.*{repairs}"):
        assert list(zcore.open(store)) == ["a"]
    for mode in ("r", "r+", "a"):
        assert list(zcore.open_group(store, mode, use_consolidated=False)) == ["a"]
    assert list(zcore.open(store, "a")) == list(zcore.open(store, "r+")) == ["a"]
    for change in (lambda group: group.attrs.update(x=1), lambda group: group["a"].resize(3)):
        store = make()
        change(zcore.open_group(store, "r+", use_consolidated=False))
        assert list(zcore.open_group(store)) == ["a"] and zcore.verify(store).ok
    assert list(zcore.consolidate_metadata(make()).metadata.consolidated) == ["a"]
    with pytest.warns(UserWarning, match="not used"):
        assert zcore.copy(make(), zcore.MemoryStore()) is not None
    store = make()
    (problem,) = zcore.verify(store).problems
    assert problem.kind == "stale copy" and problem.key == (".zmetadata" if zarr_format == 2 else "zarr.json")
    assert zcore.verify(store, repair="stale copy").ok and zcore.verify(store).ok


CHANGES = {
    "create": lambda group: group.create_array("g/h/new", shape=1, dtype="i1"),
    "delete": lambda group: group.__delitem__("g/b"),
    "attributes of an array": lambda group: group["g/h/c"].attrs.update(x=1),
    "attributes of a group": lambda group: group["g/h"].attrs.update(x=1),
    "resize": lambda group: group["g/h/c"].resize(5),
    "append": lambda group: group["g/h/c"].append([1]),
    "move": lambda group: group.move("g/b", "b"),
    "overwrite": lambda group: group.create_group("g/h", overwrite=True),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_below_drops_the_copies_above(group, store, change):
    """V3-GRP-08"""
    fill(group)
    for path in ("", "g", "g/h"):
        zcore.consolidate_metadata(store, path=path)
    zcore.open_group(store, "r+", use_consolidated=False)
    CHANGES[change](zcore.open_group(store, "r+"))
    for path in ("", "g"):
        with pytest.raises(ValueError, match="no consolidated metadata"):
            zcore.open_group(store, path=path, use_consolidated=True)


@pytest.mark.parametrize("change", ["delete", "attributes of an array", "resize", "append"])
def test_a_change_below_drops_a_copy_that_is_of_no_use(store, change):
    """V3-GRP-08: other libraries may use a copy that lacks a group, and would have seen the old shape."""
    fill(zcore.create_group(store))
    zcore.consolidate_metadata(store)
    document = json.loads(store.get("zarr.json"))
    del document["consolidated_metadata"]["metadata"]["g/h"]
    store.set("zarr.json", json.dumps(document).encode())
    with pytest.warns(UserWarning, match="'g/h/c' has no group above it"):
        opened = zcore.open_group(store, "r+")
    CHANGES[change](opened)
    assert "consolidated_metadata" not in json.loads(store.get("zarr.json"))


def test_nodes_of_two_formats_in_one_place(store):
    """V3-VER-01"""
    zcore.create_array(store, name="a", shape=3, dtype="i4", zarr_format=2)[...] = 2
    raw = store.get("a/.zarray")
    zcore.create_array(store, name="a", shape=3, dtype="i4", overwrite=True)[...] = 3
    store.set("a/.zarray", raw)
    with pytest.warns(UserWarning, match=r"holds zarr.json and .zarray: the node is of format 3"):
        assert zcore.open(store, path="a")[...].tolist() == [3] * 3
    assert zcore.open(store, path="a", zarr_format=2).shape == (3,)
    zcore.create_array(store, name="a", shape=1, dtype="i4", overwrite=True)
    assert store.get("a/.zarray") is None, "what is replaced are the nodes of all formats"


@pytest.mark.parametrize("zarr_format", WITH_GROUPS)
def test_a_copy_would_hide_members_of_other_formats(store, zarr_format):
    """It is refused before anything is changed: they would vanish from the listing."""
    group = zcore.create_group(store, zarr_format=zarr_format)
    group.create_array("a", shape=3, dtype="i4")
    zcore.consolidate_metadata(store)
    copies = {key: store.get(key) for key in store.list()}
    group.create_group("g")
    other = 5 - zarr_format
    for path, format in (("b", other), ("g/c", "zmeta")):
        zcore.create_array(store, name=path, shape=3, dtype="i4", zarr_format=format)
    with pytest.raises(zcore.UnsupportedError, match="would hide the members") as caught:
        zcore.consolidate_metadata(store)
    assert f"'b' (Zarr v{other})" in str(caught.value) and "'g/c' (__zmeta__)" in str(caught.value)
    names = ["a", "b", "g", "g/c"]
    assert [name for name, _ in zcore.open_group(store).members(None)] == names
    for key, raw in copies.items():
        store.set(key, raw)      # what others have written, who do not see these members
    with pytest.warns(UserWarning, match="does not keep consolidated metadata of groups with members of several"):
        copied = zcore.copy(store, zcore.MemoryStore())
    assert [name for name, _ in copied.members(None)] == names
    group.refresh()
    for path in ("b", "g"):
        del group[path]
    assert list(zcore.consolidate_metadata(store)) == ["a"]


DAMAGE = {
    "json": (lambda document: document.write_text("{"), zcore.MetadataError),
    "loop": (lambda document: document.symlink_to("zarr.json"), zcore.StoreError),
    "away": (lambda document: document.symlink_to("nowhere"), zcore.StoreError),
    "fifo": (os.mkfifo, zcore.StoreError),
    "foreign": (lambda document: document.with_name("meta").write_text("{}"), zcore.UnsupportedError),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_member_that_cannot_be_opened_spoils_no_other(tmp_path, kind):
    """It is named by each listing, and an error for who asks for it."""
    damage, error = DAMAGE[kind]
    group = zcore.group(tmp_path)
    group.create_array("a", shape=3, dtype="i4")
    group.create_array("c/e", shape=2, dtype="u1")
    (tmp_path / "c" / "d").mkdir()
    damage(tmp_path / "c" / "d" / "zarr.json")
    assert list(group["c"]) == ["d", "e"] and len(group["c"]) == 2
    for members in (lambda: group.members(None), lambda: [(f"c/{name}", node) for name, node in group["c"].items()]):
        with pytest.warns(UserWarning) as caught:
            found = [name for name, _ in members()]
        assert found[-1] == "c/e" and "c/d" not in found
        assert len(caught) == 1 and str(tmp_path / "c" / "d") in str(caught[0].message)
        assert str(caught[0].message).endswith("it is left out of the members")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert group.tree() == f"/\n├── a (3,) int32\n└── c\n    ├── d ({error.__name__})\n    └── e (2,) uint8"
        assert group.tree(0) == "/\n├── a (3,) int32\n└── c"
    for ask in (lambda: group["c/d"], lambda: group["c"].get("d"), lambda: zcore.open(tmp_path, path="c/d")):
        with pytest.raises(error, match="c/d"):
            ask()
    with pytest.raises(error, match="c/d"):
        zcore.consolidate_metadata(tmp_path)     # a copy without it would say that it is not there


def test_a_document_that_was_young_when_it_was_read_is_not_trusted_later(tmp_path, monkeypatch):
    """It may be read long before it is used: what counts is the clock before it was read."""
    zcore.create_array(tmp_path, shape=3, dtype="i4")
    monkeypatch.setattr("zcore.engine.views.time_ns", lambda: time.time_ns() + 10**10)
    assert not zcore.open_array(tmp_path)._binding.view.trusted
    monkeypatch.setattr("zcore.hierarchy.lookup.time_ns", lambda: time.time_ns() + 10**10)
    assert zcore.open_array(tmp_path)._binding.view.trusted


def test_what_any_member_may_meet_is_an_error_of_the_listing(tmp_path, monkeypatch):
    """A disk that fails must not look like a group without members."""
    group = zcore.group(tmp_path)
    group.create_group("a")
    failing = zcore.StoreError("cannot read", key="a/zarr.json", errno=errno.EIO)

    def fail(self, prefix, names, limit):
        raise failing

    monkeypatch.setattr(zcore.DirectoryStore, "get_first", fail)
    for listing in (group.keys, group.members, group.tree):
        with pytest.raises(zcore.StoreError):
            list(listing())


class CountingStore(zcore.MemoryStore):
    """Counts what it is asked."""

    n_calls = 0

    def __getattribute__(self, name):
        found = super().__getattribute__(name)
        if name[0] != "_" and callable(found):
            self.n_calls += 1
        return found


@pytest.fixture
def low_limit():
    """A recursion limit that a deep group reaches soon: the time grows with the square of the depth."""
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    yield 400
    sys.setrecursionlimit(usual)


@pytest.mark.parametrize("zarr_format", WITH_GROUPS)
def test_what_a_deep_group_costs(zarr_format, low_limit):
    """To make, list and delete it, as many calls as there are levels, times a few; and no stack, however deep it is."""
    n_calls = []
    for depth in (low_limit // 2, low_limit):
        store = CountingStore()
        group = zcore.group(store, zarr_format=zarr_format)
        path = "/".join(["a"] * depth)
        group.create_group(path)
        assert [node.path.count("/") for _, node in group.members(None)] == list(range(depth))
        assert sum(1 for _ in group.members(depth - 2)) == depth - 1
        assert group.tree().count("a") == depth
        del group["a"]
        assert len(list(store.list())) == 1
        n_calls.append(store.n_calls)
    assert n_calls[1] < 2.1 * n_calls[0] and n_calls[1] < 61 * depth


def test_a_deletion_that_fails_far_below_gives_back_what_it_holds():
    store = zcore.MemoryStore()
    group = zcore.group(store)
    group.create_group("a/b/c/d")
    erase = store.erase

    def fail(key):
        if key.startswith("a/b/c/"):
            raise zcore.StoreError("no")
        erase(key)

    store.erase = fail
    with pytest.raises(zcore.StoreError, match="no"):
        del group["a"]
    store.erase = erase
    assert "a/b/c/d" in group
    del group["a"]
    assert list(store.list()) == ["zarr.json"]


@pytest.mark.parametrize("document", ["{", '{"zarr_format": 3, "node_type": "array"}'])
def test_a_damaged_member_can_be_deleted(tmp_path, document):
    """h5py and zarr-python delete by name as well; who cannot open it wants it gone all the more."""
    group = zcore.create_group(tmp_path)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/zarr.json").write_text(document)
    del group["bad"]
    assert list(group) == [] and not (tmp_path / "bad/zarr.json").exists()
    with pytest.raises(zcore.NodeNotFoundError, match="no member 'bad'"):
        del group["bad"]


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("dtype", [str, "string", bytes, "bytes", np.dtype([("a", "i1"), ("b", "<i4")], align=True)])
def test_an_array_of_a_type_is_found_as_it_was_asked_for(zarr_format, dtype):
    """What a name means, and how a structure lies, is for the format to say."""
    if zarr_format == 2 and isinstance(dtype, np.dtype):
        dtype = np.dtype([("a", "i1"), ("b", "<i4")])
    group = zcore.create_group(zcore.MemoryStore(), zarr_format=zarr_format)
    made = group.require_array("a", shape=4, dtype=dtype)
    assert group.require_array("a", shape=4, dtype=dtype) == made
    assert zcore.open(group.store, mode="r", path="a", dtype=dtype) == made
    for other in ("i4", "S3", bytes if made.dtype.kind == "T" else str):
        with pytest.raises(zcore.ArrayMismatchError):
            group.require_array("a", shape=4, dtype=other)


class Service(zcore.MemoryStore):
    """A store whose answers take long, `n_requests` at a time. It notes how many are on the way at once."""

    n_requests = 8
    get_first, existing = Store.get_first, Store.existing

    def __init__(self):
        super().__init__()
        self.n_asked, self.most, self.wait = 0, 0, 0
        self._lock = threading.Lock()

    def _answered(self, answer, *args):
        with self._lock:
            self.n_asked += 1
            self.most = max(self.most, self.n_asked)
        time.sleep(self.wait)
        with self._lock:
            self.n_asked -= 1
        return answer(*args)

    def get_with_identity(self, *args):
        return self._answered(super().get_with_identity, *args)

    def getsize(self, key):
        return self._answered(super().getsize, key)

    def list_dir(self, prefix):
        return self._answered(super().list_dir, prefix)


def in_service(zarr_format=3):
    """12 arrays, one damaged and one doubtful, and 12 groups of one array each."""
    store = Service()
    group = zcore.create_group(store, zarr_format=zarr_format)
    for i in range(12):
        group.create_array(f"a{i:02}", shape=i, dtype="i4")
        group.create_array(f"g{i:02}/x/y", shape=i, dtype="i4")
    store.set("a03/zarr.json", b"{")
    store.set("g05/x/y/__zmeta__", b"{}")
    store.wait = 0.002
    return zcore.open_group(store, mode="r"), store


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("listed", [
    lambda group: [path for path, _ in group.walk()], lambda group: [path for path, _ in group.walk(1)],
    lambda group: [path for path, _ in group.walk(0)], list, lambda group: group.tree().splitlines(),
], ids=["all", "two levels", "members", "names", "tree"])
def test_many_members_of_a_service_are_looked_for_at_once(listed, zarr_format):
    group, store = in_service(zarr_format)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = listed(group)
    assert 4 <= store.most <= 2 * store.n_requests
    store.n_requests = 0
    with warnings.catch_warnings(record=True) as told_alone:
        warnings.simplefilter("always")
        assert listed(group) == found
    # A document of another format beside that of a node is looked for where that costs no request.
    assert [str(one.message) for one in told] == [
        str(one.message) for one in told_alone if "the other document is ignored" not in str(one.message)]
    assert {one.filename for one in [*told, *told_alone]} <= {__file__}


def test_a_walk_of_a_service_raises_what_a_listing_raises(monkeypatch):
    group, store = in_service()

    def list_dir(self, prefix):
        if prefix == "g07/":
            raise zcore.StoreError("the service is gone", errno=errno.EIO)
        return zcore.MemoryStore.list_dir(self, prefix)

    monkeypatch.setattr(Service, "list_dir", list_dir)
    seen = []
    with pytest.raises(zcore.StoreError, match="the service is gone"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for path, _ in group.walk():
            seen.append(path)
    assert len(seen) == 12 + 3 * 7 + 1 and seen[-1] == "g07"


def test_consolidated_metadata_of_a_service_are_made_many_at_once():
    group, store = in_service()
    with pytest.raises(zcore.MetadataError, match="a03"):
        zcore.consolidate_metadata(store)
    store.set("a03/zarr.json", store.get("a02/zarr.json"))
    store.most = 0
    zcore.consolidate_metadata(store)
    assert 4 <= store.most <= 2 * store.n_requests
    assert len(zcore.open_group(store, mode="r").metadata.consolidated) == 12 * 4


@pytest.fixture(params=["directory", "memory", "service"])
def place(request, tmp_path):
    return zcore.DirectoryStore(tmp_path) if request.param == "directory" else (
        zcore.MemoryStore() if request.param == "memory" else Service())


@pytest.mark.parametrize("depth", [0, None])
def test_what_the_loop_itself_changes_is_seen_by_later_members(place, depth):
    """Whatever was read ahead: a handle of an array that was replaced or deleted could write into the new one."""
    group = zcore.create_group(place)
    for i in range(12):
        group.create_array(f"a{i:02}", data=np.arange(6), chunks=(2,))
        group.create_array(f"g{i:02}/x", data=np.arange(6), chunks=(2,))
    seen = {}
    for name, node in zcore.open_group(place, mode="r+").members(depth):
        seen[name] = getattr(node, "shape", None), getattr(node, "dtype", None)
        if name == "a01":
            group.create_array("a02", data=np.ones(3), chunks=(3,), overwrite=True)
            del group["a03"]
            group["a04"].resize(2)
            group["a05"].append(np.arange(4))
        elif name == "g00":
            group.create_array("g00/x", data=np.ones(3), chunks=(3,), overwrite=True)
            del group["g01/x"]
            group.create_array("g02/y", data=np.ones(4), chunks=(3,))
            del group["g03"]
    assert seen["a02"] == ((3,), np.float64) and seen["a04"][0] == (2,) and seen["a05"][0] == (10,)
    assert "a03" not in seen and "g03" not in seen
    if depth is None:
        assert seen["g00/x"] == ((3,), np.float64) and seen["g02/y"][0] == (4,) and "g01/x" not in seen
    names = iter(group)
    assert next(names) == "a00"
    del group["a01"]
    assert next(names) == "a02"


@pytest.mark.filterwarnings("ignore:a03")
def test_few_members_are_looked_for_before_the_first_comes_and_no_long_documents():
    group, store = in_service()
    asked = []
    get = Service.get_with_identity

    def noted(self, key, byte_range):
        asked.append(key)
        return get(self, key, byte_range)

    Service.get_with_identity = noted
    try:
        next(group.members(None))
        assert len(asked) <= store.n_requests
        zcore.open_group(store, mode="r+")["a01"].attrs["long"] = "x" * lookup.MAX_SHORT
        asked.clear()
        arrays = dict(group.arrays())
        assert asked.count("a01/zarr.json") == 2
        assert arrays["a01"].attrs["long"][-1] == "x"
    finally:
        Service.get_with_identity = get
