"""What is deleted or overwritten goes with all below it, and does not come back; what nobody named stays."""
import contextlib
import errno
import fcntl
import functools
import os
import shutil
import sys
import threading
import time

import numpy as np
import pytest

import zcore
from tests.unit.stores.conformance import run_threads
from zcore.engine.options import Options
from zcore.formats import NODE_DOCUMENTS
from zcore.hierarchy import creation_lock, deletion, exchange
from zcore.stores.directory import cleanup
from zcore.stores.directory.staged import StagedDirectory

WITH_GROUPS = [3, 2]
DOCUMENTS = [document for documents in NODE_DOCUMENTS.values() for document in documents]


@pytest.fixture(params=["directory", "memory"])
def store(request, tmp_path):
    return zcore.DirectoryStore(tmp_path / "s") if request.param == "directory" else zcore.MemoryStore()


@pytest.fixture
def step_by_step(monkeypatch):
    """Directories do not change hands, as where the user may not rename them."""
    monkeypatch.setattr(exchange, "directory_of", lambda store, path: None)


def fill(store, zarr_format=3):
    """A group with members at several depths, some without groups above them."""
    group = zcore.create_group(store, zarr_format=zarr_format, attributes={"old": True})
    for path in ("a", "g/b", "g/h/c"):
        group.create_array(path, shape=4, chunks=2, dtype="i4", attributes={"old": path})[...] = 7
    return group


def below(store):
    """Paths of all that has a document."""
    return sorted({key.rpartition("/")[0] for key in store.list() if key.rpartition("/")[2] in DOCUMENTS})


REPLACE = {
    "open_group": lambda store, path, zarr_format: zcore.open_group(store, "w", path=path, zarr_format=zarr_format),
    "create_group": lambda store, path, zarr_format: zcore.create_group(
        store, path=path, zarr_format=zarr_format, overwrite=True),
    "group": lambda store, path, zarr_format: zcore.group(store, path=path, zarr_format=zarr_format, overwrite=True),
    "open": lambda store, path, zarr_format: zcore.open(
        store, "w", path=path, zarr_format=zarr_format, shape=4, chunks=2, dtype="i4"),
    "create_array": lambda store, path, zarr_format: zcore.create_array(
        store, name=path, zarr_format=zarr_format, shape=4, chunks=2, dtype="i4", overwrite=True),
}


@pytest.mark.thinned(2, "store", "replace", "zarr_format", "path")
@pytest.mark.parametrize("path", ["", "g"])
@pytest.mark.parametrize("zarr_format", WITH_GROUPS)
@pytest.mark.parametrize("replace", REPLACE)
def test_nothing_below_survives_what_replaces_it(store, replace, zarr_format, path):
    fill(store, zarr_format)
    store.set(f"{path}/notes.txt".lstrip("/"), b"mine")
    node = REPLACE[replace](store, path, zarr_format)
    assert below(store) == ([""] if path == "" else ["", "a", "g"])
    assert node.attrs == {} and store.get(f"{path}/notes.txt".lstrip("/")) == b"mine"
    if isinstance(node, zcore.Array):
        assert node[...].tolist() == [0] * 4
    else:
        again = node.create_array("h/c", shape=4, chunks=2, dtype="i4")
        assert again[...].tolist() == [0] * 4 and again.attrs == {}


@pytest.mark.parametrize("zarr_format", WITH_GROUPS)
def test_a_copy_of_lost_metadata_is_no_copy_of_new_ones(store, zarr_format):
    fill(store, zarr_format)
    zcore.consolidate_metadata(store)
    store.erase(NODE_DOCUMENTS[zarr_format][-1])
    for path in ("a", "g"):
        assert deletion.delete(store, path, Options())
    group = zcore.open_group(store, "w", zarr_format=zarr_format)
    assert list(zcore.open_group(store)) == list(group) == []


def test_members_below_directories_that_are_no_groups_are_deleted(store):
    group = fill(store)
    group.create_array("g/x/y/z", data=np.arange(3))
    store.erase("g/x/zarr.json")
    store.erase("g/x/y/zarr.json")
    del group["g"]
    assert below(store) == ["", "a"] and not list(store.list_prefix("g/"))


def test_nodes_below_an_array_are_deleted_with_it(store):
    """Nothing may be there, and yet other programs, and runs that were killed, have left some."""
    for path in ("a/c/n/c/m", "a/n", "a/c/n"):
        zcore.create_array(store, name=path, data=np.arange(4), chunks=2)
        for above in ("a", "a/c", "a/c/n/c"):
            store.erase(above + "/zarr.json")
        if path == "a/c/n/c/m":
            store.erase("a/c/n/zarr.json")
    zcore.create_array(store, name="a", data=np.arange(4), chunks=2)
    group = zcore.open_group(store, "r+")
    del group["a"]
    assert list(store.list()) == ["zarr.json"]


def test_reserved_names_and_other_formats_stay(store):
    """A directory that no node can be in is somebody else's, and so is a node of a format to come."""
    group = fill(store)
    for key in ("g/__mine/zarr.json", "g/v1/meta"):
        store.set(key, store.get("g/zarr.json"))
    del group["g"]
    assert [key for key in store.list() if key.startswith("g/")] == ["g/__mine/zarr.json", "g/v1/meta"]


class Failing(zcore.MemoryStore):
    """Fails at its n-th change."""

    n_left = -1

    def _count(self):
        if self.n_left == 0:
            raise zcore.StoreError("injected", errno=errno.EIO)
        self.n_left -= 1


for _name in ("set", "set_if_not_exists", "erase", "erase_prefix"):
    def _counted(self, *arguments, _name=_name):
        self._count()
        return getattr(zcore.MemoryStore, _name)(self, *arguments)
    setattr(Failing, _name, _counted)


CUT = {
    **{name: functools.partial(replace, path="g", zarr_format=None) for name, replace in REPLACE.items()
       if name in ("open_group", "open")},
    **{name: functools.partial(REPLACE[name], path="g") for name in ("create_group", "create_array")},
    "del": lambda store, zarr_format: zcore.open_group(store, "r+").__delitem__("g"),
}


@pytest.mark.parametrize("zarr_format", WITH_GROUPS)
@pytest.mark.parametrize("call", CUT)
def test_what_is_cut_off_at_any_change_goes_on_when_it_is_called_again(call, zarr_format):
    """In between there is the old group with some of its members, as they were, or nothing, or the new node."""
    run = functools.partial(CUT[call], zarr_format=zarr_format)
    n = 0
    while True:
        store = Failing()
        fill(store, zarr_format)
        zcore.consolidate_metadata(store, path="g")
        store.n_left = n
        try:
            run(store)
            break
        except zcore.StoreError as error:
            assert "injected" in str(error)
        store.n_left = -1
        check_partly_deleted(store)
        is_standing = "g" in zcore.open_group(store)
        try:
            run(store)
        except zcore.NodeNotFoundError:
            assert call == "del" and not is_standing
        assert call != "del" or not {"g/.zattrs", "g/.zmetadata"}.intersection(store.list())
        assert below(store) == ["", "a"] + (["g"] if call != "del" else [])
        if call != "del":
            found = zcore.open(store, path="g")
            assert found.attrs == {} and (isinstance(found, zcore.Group) or not found[...].any())
        n += 1
    assert n > 5


VALUES = np.arange(15).reshape(3, 5) + 1
MAKE = {
    "create_array": lambda store, **keywords: zcore.create_array(
        store, name="g/new", data=VALUES, chunks=2, **keywords),
    "save": lambda store, **keywords: zcore.save(store, VALUES, path="g/new", **keywords),
    "array": lambda store, **keywords: zcore.array(VALUES, store=store, path="g/new", chunks=(2, 5), **keywords),
    "item": lambda store, zarr_format: zcore.open_group(store, "r+").__setitem__("g/new", VALUES),
    "attributes": lambda store, **keywords: zcore.create_array(
        store, name="g/new", data=VALUES, attributes={"a": 1}, **keywords),
}


def cut_at_each_change(make, store_of, check):
    """Let each change of a call fail in turn; `check(node)` judges what is left, unless it is all.

    Then the same call ends what was begun.
    """
    n = 0
    while True:
        store = store_of()
        store.n_left = n
        try:
            make(store)
            return n
        except zcore.StoreError as error:
            assert "injected" in str(error)
        store.n_left = -1
        found = zcore.open_group(store).get("g/new")
        if found is None or found.shape != VALUES.shape or (found[...] != VALUES).any():
            check(found)
            make(store)
        assert (zcore.load(store, "g/new") == VALUES).all()
        n += 1


@pytest.mark.parametrize("zarr_format", WITH_GROUPS)
@pytest.mark.parametrize("call", MAKE)
def test_an_array_that_is_created_with_its_elements_is_never_there_without_some(call, zarr_format):
    def store_of():
        store = Failing()
        fill(store, zarr_format)
        return store

    def check(found):
        assert found is None

    assert cut_at_each_change(functools.partial(MAKE[call], zarr_format=zarr_format), store_of, check) > 1


@pytest.mark.parametrize("zarr_format", WITH_GROUPS)
def test_an_item_that_is_assigned_in_the_place_of_an_array(zarr_format):
    """Cut off at any change, it is the old one, nothing, or the new one; assigned again it is the new one."""
    def store_of():
        store = Failing()
        fill(store, zarr_format)
        zcore.create_array(store, name="g/new", data=np.full((4, 4), 99), chunks=2, zarr_format=zarr_format)
        return store

    def check(found):
        assert found is None or (found[...] == np.full((4, 4), 99)).all()

    assert cut_at_each_change(functools.partial(MAKE["item"], zarr_format=zarr_format), store_of, check) > 5


@pytest.mark.thinned(2, "zarr_format", "separators", "shape")
@pytest.mark.parametrize("shape", [(), 5, (3, 5), (3, 5, 2)])
@pytest.mark.parametrize("separators", ["..", "//", "./", "/."])
@pytest.mark.parametrize("zarr_format", WITH_GROUPS)
def test_an_array_that_replaces_one_of_another_shape(zarr_format, separators, shape):
    """Chunks that are left of the old one are in nobody's way."""
    old, new = separators if zarr_format == 2 else [{"name": "default", "separator": name} for name in separators]

    def store_of():
        store = Failing()
        zcore.create_array(store, name="g/new", data=np.full(shape, 99), zarr_format=zarr_format,
                           chunks=2 if shape else "auto", chunk_key_encoding=old)
        return store

    def check(found):
        assert found is None or (found.shape == np.zeros(shape).shape and (found[...] == 99).all())

    cut_at_each_change(functools.partial(
        zcore.create_array, name="g/new", data=VALUES, chunks=2, zarr_format=zarr_format, chunk_key_encoding=new,
        overwrite=True), store_of, check)


def check_partly_deleted(store):
    """What stands at g is the old group, or nothing, or the new node; each member is whole or not there at all."""
    top = zcore.open_group(store)
    assert top["a"][...].tolist() == [7] * 4
    found = top.get("g")
    if not isinstance(found, zcore.Group):
        assert found is None or (not found[...].any() and found.attrs == {})
        assert set(below(store)) <= {"", "a", "g"}
        return
    listed = [path for path, _ in found.members(None)]
    assert [f"g/{path}" for path in sorted(listed)] == [path for path in below(store) if path.startswith("g/")]
    assert found.attrs == ({"old": True} if found.attrs else {})
    for path in listed:
        node = found[path]
        if isinstance(node, zcore.Array):
            assert node[...].tolist() == [7] * 4 and node.attrs == {"old": f"g/{path}"}


@pytest.mark.parametrize("name", ["unlink", "rmdir", "replace", "link", "mkdir"])
def test_a_directory_whose_system_fails_at_any_call(tmp_path, monkeypatch, name):
    original, count = getattr(os, name), [0]

    def failing(*arguments, **keywords):
        if "old" in os.fspath(arguments[0]):
            count[0] -= 1
            if count[0] == -1:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
        return original(*arguments, **keywords)

    for n in range(200):
        place = tmp_path / f"old{n}"
        fill(zcore.DirectoryStore(place))
        count[0] = n
        monkeypatch.setattr(os, name, failing)
        try:
            zcore.open_group(place, "w", path="g")
            is_done = count[0] >= 0
        except zcore.StoreError as error:
            assert error.errno == errno.EIO
            is_done = False
        monkeypatch.undo()
        check_partly_deleted(zcore.DirectoryStore(place))
        group = zcore.open_group(place, "w", path="g")
        assert list(group) == [] and group.attrs == {}
        if is_done:
            break
    else:
        pytest.fail("it never came to an end")


# What is no node


BELOW = "'plain/x', 'plain/y/w', 'plain/y/z/deep'"


def stores_below(store):
    """A directory that is no node, with nodes at several depths, and files of others."""
    zcore.create_group(store)
    for path in ("plain/x", "plain/y/z/deep", "plain/y/w"):
        zcore.create_array(store, name=path, data=np.arange(4), chunks=2)
    for above in ("plain", "plain/y", "plain/y/z"):
        store.erase(above + "/zarr.json")
    store.set("plain/photo.jpg", b"mine")
    return zcore.open_group(store, "r+")


ERASE = {
    "del": lambda group: group.__delitem__("plain"),
    "move": lambda group: group.move("plain", "other"),
    **{name: functools.partial(lambda call, group: call(group.store, "plain", 3), call)
       for name, call in REPLACE.items()},
    "save": lambda group: zcore.save(group.store, [1, 2], path="plain", overwrite=True),
    "save_group": lambda group: zcore.save(group.store, a=[1, 2], path="plain", overwrite=True),
    "item": lambda group: group.__setitem__("plain", [1, 2]),
    "copy": lambda group: zcore.copy(group["plain/x"], group.store, destination_path="plain", overwrite=True),
    "hierarchy": lambda group: group.create_hierarchy({"plain": group.metadata}, overwrite=True),
}


@pytest.mark.parametrize("call", ERASE)
def test_what_is_no_node_is_not_erased_and_neither_are_nodes_below(store, call):
    """They were, at any depth, although no caller had named them."""
    group = stores_below(store)
    assert "plain" not in group and list(group) == []
    before = {key: store.get(key) for key in store.list()}
    with pytest.raises((zcore.NodeNotFoundError, zcore.NodeExistsError), match="plain") as caught:
        ERASE[call](group)
    assert {key: store.get(key) for key in store.list()} == before
    if call != "item":
        assert "holds no node" in str(caught.value)
        assert f"nodes lie below, each with a name of its own: {BELOW}" in str(caught.value)
    for name in ("x", "y/w", "y/z/deep"):
        del group[f"plain/{name}"]
    assert list(store.list_prefix("plain/")) == ["plain/photo.jpg"]
    with pytest.raises(zcore.NodeNotFoundError, match="holds no node$"):
        del group["plain"]
    assert list(zcore.open_group(store, "w", path="plain")) == [] and store.get("plain/photo.jpg") == b"mine"


def test_a_store_in_a_service_is_erased_by_the_same_rule():
    store = zcore.RemoteStore(pytest.importorskip("obstore.store").MemoryStore())
    group = stores_below(store)
    before = {key: store.get(key) for key in store.list()}
    for call in ("del", "open_group", "create_array", "save", "copy"):
        with pytest.raises((zcore.NodeNotFoundError, zcore.NodeExistsError), match=BELOW):
            ERASE[call](group)
        assert {key: store.get(key) for key in store.list()} == before


def test_a_message_names_the_first_nodes_and_counts_the_others(tmp_path, monkeypatch):
    for i in range(9):
        zcore.create_group(tmp_path / f"plain/{i}")
    zcore.create_group(tmp_path)
    group = zcore.open_group(tmp_path, "r+")
    named = ", ".join(f"'plain/{i}'" for i in range(5))
    with pytest.raises(zcore.NodeNotFoundError, match=f"{named} and 4 more$"):
        del group["plain"]
    for i in range(20):
        (tmp_path / f"other/{i:02}/folder").mkdir(parents=True)
    zcore.create_group(tmp_path / "other/near")
    zcore.create_group(tmp_path / "other/00/folder/far")
    monkeypatch.setattr(deletion, "_MAX_LOOKS", 23)
    with pytest.raises(zcore.NodeNotFoundError, match=r"'other/near' \(found in the 23 nearest directories\)$"):
        del group["other"]


@pytest.mark.parametrize("target", ["empty", "photos", "photos/1.jpg"])
def test_a_link_to_what_is_no_node_is_no_member_to_delete(tmp_path, target):
    group = zcore.create_group(tmp_path / "s")
    (tmp_path / "empty").mkdir()
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos/1.jpg").write_text("mine")
    (tmp_path / "s/link").symlink_to(tmp_path / target)
    with pytest.raises(zcore.NodeNotFoundError, match="holds no node"):
        del group["link"]
    assert (tmp_path / "s/link").is_symlink() and (tmp_path / "photos/1.jpg").exists()


def test_a_folder_of_photos_keeps_them(tmp_path):
    """Also those whose folders have the names of chunks."""
    names = ["1.jpg", "2016/05/1.jpg", "2016/notes.txt", "c/0/1.jpg", "c/1.jpg", ".hidden", "empty/x/y.png"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    before = content(tmp_path)
    for zarr_format, shape, encoding in ((3, 4, None), (2, (4, 4), "/"), (2, 4, "."), (2, (4, 4, 4), "/"),
                                         ("zmeta", 4, None), (3, (), None)):
        keywords = {"chunk_key_encoding": {"name": "v2", "separator": encoding}} if encoding else {}
        with contextlib.suppress(zcore.StoreError):
            zcore.create_array(tmp_path, shape=shape, dtype="i4", chunks=1, zarr_format=zarr_format, overwrite=True,
                               **keywords)
        assert before.items() <= content(tmp_path).items()
    assert list(zcore.open_group(tmp_path, "w")) == []
    assert before.items() <= content(tmp_path).items()


def test_members_whose_names_are_those_of_chunks_are_replaced(store):
    """As in a pyramid of images."""
    group = zcore.create_group(store, path="p")
    for name in "012":
        group.create_array(name, data=np.arange(8).reshape(2, 4), chunks=1)
    array = zcore.create_array(store, name="p", data=np.arange(4), chunks=1, zarr_format=2, overwrite=True)
    assert array[...].tolist() == [0, 1, 2, 3]
    assert sorted(store.list_prefix("p/")) == ["p/.zarray", "p/1", "p/2", "p/3"]


@pytest.mark.parametrize("make", [zcore.MemoryStore, lambda: zcore.RemoteStore(
    pytest.importorskip("obstore.store").MemoryStore())])
def test_a_copy_leaves_files_that_are_no_chunks(make):
    store = make()
    store.set("a/2016/1.jpg", b"mine")
    with contextlib.suppress(zcore.StoreError):
        zcore.copy(zcore.array([1, 2, 3], chunks=1), store, destination_path="a", zarr_format=2, overwrite=True)
    assert store.get("a/2016/1.jpg") == b"mine"


# Links


@pytest.fixture
def elsewhere(tmp_path):
    """A hierarchy that links lead to, and that nobody names."""
    group = zcore.create_group(tmp_path / "elsewhere")
    group.create_array("m/a", data=np.arange(4), chunks=2)
    (tmp_path / "elsewhere" / "notes.txt").write_text("mine")
    return tmp_path / "elsewhere"


def content(directory):
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("target", ["a node", "a directory above nodes", "what is not there"])
@pytest.mark.parametrize("call", ["del", "create_group", "create_array", "delete of the link"])
def test_a_member_that_is_a_link_is_unlinked(tmp_path, elsewhere, call, target):
    group = zcore.create_group(zcore.DirectoryStore(tmp_path / "s"))
    group.create_group("g")
    if target == "a directory above nodes":
        (elsewhere / "zarr.json").unlink()
    before = content(elsewhere)
    link = tmp_path / "s/g/link"
    link.symlink_to(tmp_path / "none" if target == "what is not there" else elsewhere)
    if call == "del":
        del group["g"]
        assert not os.path.lexists(tmp_path / "s/g")
    elif call == "delete of the link" and target == "a directory above nodes":
        with pytest.raises(zcore.NodeNotFoundError, match="holds no node; .*: 'g/link/m'$"):
            del group["g/link"]
        assert link.is_symlink()
    elif call == "delete of the link":
        del group["g/link"]
        assert not os.path.lexists(link)
    elif call == "create_group":
        assert list(group.create_group("g/link", overwrite=True)) == []
        assert not link.is_symlink()
    else:
        assert group.create_array("g/link", shape=4, dtype="i8", overwrite=True)[...].tolist() == [0] * 4
        assert not link.is_symlink()
    assert content(elsewhere) == before


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_what_was_on_a_disk_that_is_not_mounted_is_not_back_with_it(tmp_path, zarr_format):
    """Documents and chunks may be links each by itself, as in a dataset of which the content was dropped."""
    store = zcore.DirectoryStore(tmp_path / "s")
    group = fill(store, zarr_format)
    document = NODE_DOCUMENTS[zarr_format][0]
    chunk = "c/0" if zarr_format == 3 else "0"
    for name in (f"a/{chunk}", f"g/b/{document}", "a/notes.txt"):
        (tmp_path / "s" / name).unlink(missing_ok=True)
        (tmp_path / "s" / name).symlink_to(tmp_path / "disk" / name)
    del group["a"]
    left = content(tmp_path / "s")
    for call in (lambda: group.__delitem__("g"), lambda: zcore.open_group(store, "w")):
        with pytest.raises(zcore.StoreError, match=document):
            call()     # which chunks are those of g/b, nobody can tell
        assert content(tmp_path / "s") == left
    group.create_group("g/b", overwrite=True)
    del group["g"]
    left = [path.name for path in (tmp_path / "s").rglob("*") if path.is_symlink()]
    assert left == ["notes.txt"]
    (tmp_path / "s/a" / chunk).parent.mkdir(exist_ok=True)
    (tmp_path / "s/a" / chunk).symlink_to(tmp_path / "disk/0")
    make = functools.partial(group.create_array, "a", shape=4, chunks=2, dtype="i4")
    with pytest.raises(zcore.StoreError, match="overwrite=True"):
        make()
    assert make(overwrite=True)[...].tolist() == [0] * 4


@pytest.mark.parametrize("is_new", [True, False])
def test_nothing_behind_a_link_is_listed_to_make_a_node(tmp_path, monkeypatch, is_new):
    """But the directory itself may be: a member may be a link."""
    (tmp_path / "away/below").mkdir(parents=True)
    (tmp_path / "s").mkdir()
    if not is_new:
        zcore.create_group(tmp_path / "s")
    (tmp_path / "s/raw").symlink_to(tmp_path / "away")
    listed, real = [], zcore.DirectoryStore.list_dir
    monkeypatch.setattr(zcore.DirectoryStore, "list_dir",
                        lambda store, prefix: listed.append(prefix) or real(store, prefix))
    zcore.create_array(tmp_path / "s", shape=3, dtype="i4", overwrite=True)
    assert "raw/below/" not in listed and (tmp_path / "s/raw").is_symlink()


def test_a_link_to_what_is_no_node_stays(tmp_path):
    group = fill(zcore.DirectoryStore(tmp_path / "s"))
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/x").write_text("mine")
    (tmp_path / "s/g/raw").symlink_to(tmp_path / "raw")
    del group["g"]
    assert os.listdir(tmp_path / "s/g") == ["raw"] and (tmp_path / "s/g/raw/x").read_text() == "mine"


def test_the_root_of_a_store_may_be_a_link(tmp_path):
    fill(zcore.DirectoryStore(tmp_path / "s"))
    (tmp_path / "link").symlink_to("s")
    group = zcore.open_group(tmp_path / "link", "w")
    assert (tmp_path / "link").is_symlink() and list(group) == list(zcore.open(tmp_path / "s")) == []


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_chunks_behind_a_link_are_not_the_arrays_to_delete(tmp_path, zarr_format):
    """Two arrays may share a directory of chunks."""
    make = functools.partial(zcore.create_array, data=np.arange(4), chunks=2, zarr_format=zarr_format,
                             chunk_key_encoding={"name": "v2", "separator": "/"} if zarr_format == 2 else None)
    kept = make(tmp_path / "kept") if zarr_format == 3 else make(tmp_path / "kept", data=np.arange(16).reshape(4, 4))
    shared = "c" if zarr_format == 3 else "1"
    group = zcore.create_group(tmp_path / "s", zarr_format=zarr_format)
    make(tmp_path / "s", name="a", data=kept[...])
    for name in os.listdir(tmp_path / "s/a" / shared):
        os.unlink(tmp_path / "s/a" / shared / name)
    os.rmdir(tmp_path / "s/a" / shared)
    (tmp_path / "s/a" / shared).symlink_to(tmp_path / "kept" / shared)
    before = content(tmp_path / "kept")
    del group["a"]
    assert content(tmp_path / "kept") == before and not os.path.lexists(tmp_path / "s/a")


@pytest.mark.parametrize("change", ["shrink", "shrink to the border", "grow"])
@pytest.mark.parametrize("linked", ["c", "c/1"])
def test_what_lies_behind_a_link_is_not_erased_by_another_shape(tmp_path, linked, change):
    values = np.arange(16).reshape(4, 4)
    for name in ("kept", "a"):
        zcore.create_array(tmp_path / name, data=values, chunks=2)
    shutil.rmtree(tmp_path / "a" / linked)
    (tmp_path / "a" / linked).symlink_to(tmp_path / "kept" / linked)
    array = zcore.open(tmp_path / "a", "r+")
    if change == "grow":
        document = tmp_path / "a/zarr.json"     # chunks lie outside of what it says
        document.write_text(document.read_text().replace("[4, 4]", "[2, 4]").replace("[4,4]", "[2,4]"))
        assert array.refresh().shape == (2, 4)
    before = content(tmp_path)
    with pytest.raises(zcore.StoreError, match="is a link to a directory") as caught:
        array.resize({"shrink": (2, 4), "shrink to the border": (3, 4), "grow": (5, 4)}[change])
    assert caught.value.key == linked and content(tmp_path) == before
    assert array.shape == ((2, 4) if change == "grow" else (4, 4))
    if linked == "c/1":
        zcore.create_array(tmp_path / "a", shape=4, dtype="i4", overwrite=True)
        assert (zcore.load(tmp_path / "kept") == values).all()


def test_a_repair_removes_nothing_behind_a_link(tmp_path):
    """Chunks outside the grid of one array are chunks of another."""
    for name, n in (("kept", 4), ("a", 2)):
        zcore.create_array(tmp_path / name, data=np.arange(n), chunks=2)
    shutil.rmtree(tmp_path / "a/c")
    (tmp_path / "a/c").symlink_to(tmp_path / "kept/c")
    before = content(tmp_path)
    report = zcore.verify(tmp_path / "a", repair=("left-over", "damaged", "truncated"))
    assert not report.ok and content(tmp_path) == before


def test_an_array_whose_chunks_lie_behind_a_link_can_grow(tmp_path):
    """Nothing is erased: they may be on a larger disk."""
    (tmp_path / "disk").mkdir()
    array = zcore.create_array(tmp_path / "a", shape=4, chunks=2, dtype="i4")
    (tmp_path / "a/c").symlink_to(tmp_path / "disk")
    array[...] = 7
    array.append([8, 8])
    array.resize(9)
    assert array[...].tolist() == [7, 7, 7, 7, 8, 8, 0, 0, 0] and (tmp_path / "a/c").is_symlink()


# Costs


def counted(call, calls):
    return lambda *arguments, **keywords: calls.append(None) or call(*arguments, **keywords)


def test_what_a_store_without_directories_cannot_list_is_told_before_a_node_is_deleted():
    class Unlisted(zcore.MemoryStore):
        def list_dir(self, prefix):
            if prefix == "g/a/c/":
                raise zcore.StoreError("no permission", key=prefix)
            return super().list_dir(prefix)

    store = Unlisted()
    group = zcore.create_group(store)
    for name in ("a", "b"):
        group.create_array(f"g/{name}", data=[1, 2], zarr_format=3)
    for change in (lambda: group.__delitem__("g"), lambda: group.create_group("g", overwrite=True)):
        with pytest.raises(zcore.StoreError, match="no permission"):
            change()
        assert list(group["g"]) == ["a", "b"] and group["g/b"][...].tolist() == [1, 2]


@pytest.mark.parametrize("shape", ["deep", "wide"])
def test_a_deletion_costs_what_there_is(tmp_path, shape, monkeypatch):
    """As many calls as there are nodes, times a few, whether they lie side by side or one in the other."""
    n_calls = []
    for n in (200, 400):
        store = zcore.MemoryStore()
        group = zcore.group(store)
        for path in ["/".join(["n"] * n)] if shape == "deep" else [f"n/{i}" for i in range(n - 1)]:
            group.create_group(path)
        calls = []
        for name in ("get", "get_first", "existing", "list_dir", "erase", "list_prefix", "exists"):
            monkeypatch.setattr(store, name, counted(getattr(store, name), calls))
        del group["n"]
        assert len(list(store.list())) == 1
        n_calls.append(len(calls))
    assert n_calls[1] < 2.1 * n_calls[0] and n_calls[1] < 20 * 400


def test_a_deletion_opens_a_few_directories_for_each_group_however_deep_they_lie(tmp_path, monkeypatch):
    """It locked each directory above, for each group: 12.5 s for groups 800 deep, now 0.6."""
    n_calls = []
    for call in (lambda group: group.__delitem__("n"), lambda group: group.create_group("n", overwrite=True)):
        for n in (50, 100):
            group = zcore.group(tmp_path / f"{n}", overwrite=True)
            group.create_group("/".join(["n"] * n))
            calls = []
            with monkeypatch.context() as patch:
                patch.setattr(creation_lock, "Descriptor", counted(creation_lock.Descriptor, calls))
                call(group)
            n_calls.append(len(calls))
    assert n_calls[1] < 2.1 * n_calls[0] and n_calls[3] < 2.1 * n_calls[2] and max(n_calls) < 4 * 100


@pytest.mark.slow
def test_a_directory_as_deep_as_paths_may_be(tmp_path):
    """More levels than a process may open files, or than its stack holds."""
    depth = max(1100, sys.getrecursionlimit() + 100)
    group = zcore.group(tmp_path / "s")
    group.create_group("/".join(["n"] * depth))
    del group["n"]
    assert os.listdir(tmp_path / "s") == ["zarr.json"]


@pytest.mark.parametrize("change", ["delete", "overwrite", "resize"])
def test_chunks_that_cannot_be_listed_are_told_before_anything_changes(tmp_path, monkeypatch, change):
    group = zcore.create_group(tmp_path)
    array = group.create_array("x", shape=(4, 4), chunks=(2, 2), dtype="f8")
    array[...] = 7
    scandir = os.scandir

    def refused(path):
        if str(path).endswith("c/1"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refused)
        with pytest.raises(zcore.StoreError, match="cannot list"):
            if change == "delete":
                del group["x"]
            elif change == "overwrite":
                group["x"] = np.ones(3)
            else:
                array.resize((1, 4))
    assert (zcore.open_group(tmp_path)["x"][...] == np.full((4, 4), 7)).all()


@pytest.mark.parametrize("where", ["c/1", "c", "below"])
@pytest.mark.parametrize("change", ["delete", "overwrite", "hierarchy", "copy"])
def test_what_cannot_be_listed_in_a_member_is_told_before_another_member_goes(tmp_path, monkeypatch, change, where):
    group = zcore.create_group(tmp_path).create_group("g")
    for name in "abc":
        group.create_array(name, data=np.full((4, 4), 7), chunks=(2, 2))
        (tmp_path / "g" / name / "below").mkdir()
    before = content(tmp_path)
    scandir = os.scandir

    def refused(path):
        if str(path).endswith(f"b/{where}"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refused)
        with pytest.raises(zcore.StoreError, match="cannot (list|replace)"):
            if change == "delete":
                del zcore.open_group(tmp_path, "r+")["g"]
            elif change == "overwrite":
                zcore.create_group(tmp_path, path="g", overwrite=True)
            elif change == "hierarchy":
                zcore.create_hierarchy(store=tmp_path, nodes={"g/a": group["a"].metadata, "g/b": group["b"].metadata},
                                       overwrite=True)
            else:
                zcore.copy(zcore.ones(3, chunks=3), tmp_path, destination_path="g", overwrite=True)
    assert content(tmp_path) == before


@pytest.mark.parametrize("names", ["a", "g/a", ",a"])
@pytest.mark.parametrize("what", ["directory", "file"])
def test_nothing_is_made_above_what_cannot_be_replaced(tmp_path, monkeypatch, names, what):
    """Chunks of a lost array that cannot be listed, or a file that is no chunk; for one node, and for several."""
    place = tmp_path / names.split(",")[-1] / "c" / "1" / "1"
    place.mkdir(parents=True)
    (place / "1.jpg").write_bytes(b"photo")
    scandir, new = os.scandir, zcore.zeros(shape=(4, 4), chunks=(2, 2))

    def refused(path):
        if what == "directory" and str(path).endswith("c/1"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    nodes = {name: new.metadata if name else zcore.group(zcore.MemoryStore()).metadata for name in names.split(",")}
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refused)
        with pytest.raises(zcore.StoreError, match="cannot list|in the way"):
            zcore.create_hierarchy(store=tmp_path, nodes=nodes, overwrite=True)
        with pytest.raises(zcore.StoreError, match="cannot list|in the way"):
            zcore.create_array(tmp_path, name=names.strip(","), shape=(4, 4), chunks=(2, 2), dtype="f8", overwrite=True)
    assert not list(tmp_path.rglob("zarr.json"))


def test_a_group_keeps_its_attributes_until_its_document_goes():
    class Failing(zcore.MemoryStore):
        is_failing = False

        def erase(self, key):
            if self.is_failing and key == "g/.zgroup":
                raise zcore.StoreError("no")
            super().erase(key)

    store = Failing()
    group = zcore.create_group(store, zarr_format=2)
    group.create_group("g", attributes={"a": 1})
    store.is_failing = True
    with pytest.raises(zcore.StoreError):
        del group["g"]
    assert dict(zcore.open_group(store, path="g").attrs) == {"a": 1}


@pytest.mark.parametrize("zarr_format", [3, 2])
@pytest.mark.parametrize("n", range(6))
def test_a_member_whose_document_cannot_be_looked_at_is_never_left_without_an_error(tmp_path, zarr_format, n):
    """Overwriting a group passed over it, and the old array was a member of the new group."""
    class Losing(zcore.DirectoryStore):
        n_left = None

        def existing(self, prefix, names):
            if prefix == "g/a/" and self.n_left is not None:
                self.n_left -= 1
                if self.n_left == -1:
                    raise zcore.StoreError("cannot look at g/a/", key=prefix, errno=errno.EACCES)
            return super().existing(prefix, names)

    store = Losing(tmp_path)
    zcore.create_group(store, path="g", zarr_format=zarr_format).create_array("a", data=[1, 2])
    store.n_left = n
    with contextlib.suppress(zcore.StoreError):
        zcore.create_group(store, path="g", zarr_format=zarr_format, overwrite=True)
        assert list(zcore.open_group(tmp_path, path="g")) == []
    zcore.create_group(store, path="g", zarr_format=zarr_format, overwrite=True)
    assert list(zcore.open_group(tmp_path, path="g")) == []


@pytest.mark.parametrize("zarr_format", WITH_GROUPS)
def test_a_member_that_is_created_while_its_group_is_deleted_goes_with_it(store, step_by_step, monkeypatch,
                                                                         zarr_format):
    """It stayed and belonged to no group, so copies of metadata, which are made through groups, lacked it.

    The other call is one of another process: in a store without files, locks keep out threads.
    """
    group = fill(store, zarr_format)
    erase, document = type(store).erase, NODE_DOCUMENTS[zarr_format][-1]

    def create_and_erase(self, key):
        if key == f"g/h/{document}":
            monkeypatch.undo()
            if type(store) is zcore.DirectoryStore:
                # A creation that takes several steps would wait.
                zcore.create_array(store, name="g/h/new", shape=2, dtype="i4", zarr_format=zarr_format)
            else:
                zcore.create_array(store, name="g/h/k/new", data=[1, 2], zarr_format=zarr_format, lock=None)
        erase(self, key)

    monkeypatch.setattr(type(store), "erase", create_and_erase)
    del group["g"]
    assert type(store).erase is erase, "the member was created"
    assert [key for key in store.list() if key.startswith("g/")] == []


@pytest.mark.parametrize("zarr_format", WITH_GROUPS)
@pytest.mark.parametrize(("method", "key"), [("set_if_not_exists", "g/h/"), ("set", "g/h/a/"),
                                             ("make_directory_with", "g/h/a/")])
def test_a_group_that_is_deleted_while_a_node_below_it_is_created_is_made_again(store, monkeypatch, zarr_format, method,
                                                                                key):
    names = NODE_DOCUMENTS[zarr_format]
    group = zcore.create_group(store, zarr_format=zarr_format)
    if method != "set_if_not_exists":
        group.create_group("g/h")
    store.set("g/h/notes.txt", b"a directory is not pruned then")
    data = None if method == "make_directory_with" else [1, 2]
    of = type(store)
    if of is zcore.MemoryStore:
        method = "set_if_not_exists"
    elif method == "set":
        of, method, key = StagedDirectory, "commit", False
    called, calls = getattr(of, method), []

    def delete_and_call(self, name, *rest):
        if not key or name in (key, key + names[0], key + names[-1]):
            monkeypatch.undo()
            del zcore.open_group(store, "r+", lock=None)["g"]
            calls.append(name)
        return called(self, name, *rest)

    monkeypatch.setattr(of, method, delete_and_call)
    array = group.create_array("g/h/a", shape=None if data else (2,), dtype=None if data else "i8", data=data,
                               chunks=(1,))
    assert array[...].tolist() == (data or [0, 0])
    assert calls
    assert dict(group.members(None)).keys() == {"g", "g/h", "g/h/a"}


def test_a_deletion_waits_for_a_member_that_is_being_made(tmp_path, step_by_step):
    """A creation that has seen the group may write its document after that of the group is erased."""
    group = zcore.create_group(tmp_path)
    group.create_group("g")
    os.mkdir(tmp_path / "g/new")
    fd = os.open(tmp_path / "g/new", os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    deletion = threading.Thread(target=group.__delitem__, args=("g",))
    deletion.start()
    while deletion.is_alive() and (tmp_path / "g/zarr.json").exists():
        time.sleep(0.001)
    shutil.copy(tmp_path / "zarr.json", tmp_path / "g/new")
    fcntl.flock(fd, fcntl.LOCK_UN)
    os.close(fd)
    deletion.join()
    assert not (tmp_path / "g").exists()


@pytest.mark.parametrize("lock", ["on", "file", None])
def test_a_deletion_makes_nothing_in_directories_of_other_programs(tmp_path, lock):
    """Nobody may be allowed to write there."""
    group = zcore.create_group(tmp_path, lock=lock)
    group.create_group("g")
    (tmp_path / "g/other/deep").mkdir(parents=True)
    (tmp_path / "g/other/deep/file").touch()
    changed = [os.stat(tmp_path / "g" / name).st_mtime_ns for name in ("other", "other/deep")]
    del group["g"]
    assert [os.stat(tmp_path / "g" / name).st_mtime_ns for name in ("other", "other/deep")] == changed
    assert not (tmp_path / "g/zarr.json").exists()


def test_a_deletion_ends_if_its_group_is_made_again(tmp_path, step_by_step, monkeypatch):
    """A member that is created after the deletion has begun makes the group again, and both stay."""
    store = zcore.DirectoryStore(tmp_path / "a")
    group = zcore.create_group(store)
    zcore.create_group(store, path="g")
    erase_all, calls = deletion._erase_all, []
    thread = threading.Thread(target=lambda: zcore.create_array(store, name="g/x", shape=(4,), dtype="i4"))

    def erasing(*args):
        calls.append(args)
        assert len(calls) < 5
        is_ours = erase_all(*args)
        if len(calls) == 1:
            thread.start()
            thread.join(0.1)
            assert thread.is_alive(), "it waits for the deletion"
        return is_ours

    monkeypatch.setattr(deletion, "_erase_all", erasing)
    del group["g"]
    thread.join(60)
    assert list(group["g"]) == ["x"]


def test_a_group_that_is_moved_while_it_is_created_keeps_what_others_create_in_it(tmp_path):
    for i in range(60):
        store = zcore.DirectoryStore(tmp_path / str(i))
        root = zcore.create_group(store)
        zcore.create_group(store, path="g")
        works = [lambda store=store: zcore.create_array(store, name="g/h/a", shape=(4,), dtype="i4"),
                 lambda store=store: zcore.create_group(store, path="g/h"), lambda root=root: root.move("g", "m")]
        done = []

        def run(k, works=works, done=done):
            with contextlib.suppress(zcore.ZcoreError):
                works[k]()
                done.append(k)

        run_threads(len(works), run)
        assert 0 not in done or any([key.endswith("/a/zarr.json") for key in store.list()])


def test_an_array_that_comes_by_a_move_of_its_group_keeps_its_elements(tmp_path, step_by_step, monkeypatch):
    """Its path is that of an array whose document was erased. The chunks there were taken for those of that one."""
    root = zcore.create_group(tmp_path)
    for name in ("g/a", "other/a"):
        root.create_array(name, data=np.full(4, 7), chunks=1)
    clear, calls = deletion._clear, []

    def later(*args):
        if not calls:
            root.move("g", "moved")
            root.move("other", "g")
        clear(*args)
        if not calls:
            calls.append(zcore.open(tmp_path, path="g/a")[...].tolist())

    monkeypatch.setattr(deletion, "_clear", later)
    root.create_array("g/a", data=np.full(4, 8), chunks=2, overwrite=True)
    assert calls == [4 * [7]]
    assert [(name, *a[...]) for name, a in root.walk() if name.endswith("/a")] == [("g/a", 8, 8, 8, 8)]


@pytest.mark.parametrize("change", ["move", "delete"])
def test_nothing_hidden_stays_of_a_change_whose_group_is_moved_or_deleted_while_it_ends(tmp_path, monkeypatch, change):
    root = zcore.create_group(tmp_path)
    root.create_group("g")
    remove, entries, calls = cleanup.remove_directory, cleanup._entries, []

    def later(directory):
        if not calls:
            calls.append(directory)
            root.move("g", "moved")
        remove(directory)

    def earlier(directory):
        """Return what was there before the other change has begun."""
        return [entry for entry in entries(directory) if entry.name != os.path.basename(work.container)]

    if change == "delete":
        monkeypatch.setattr(cleanup, "_entries", earlier)
    with StagedDirectory(str(tmp_path / "g/a")) as work:
        os.mkdir(work.node)
        if change == "delete":
            del root["g"]
            assert len(os.listdir(tmp_path)) == 2
            monkeypatch.undo()
        else:
            monkeypatch.setattr(cleanup, "remove_directory", later)
    assert [name for _, directories, _ in os.walk(tmp_path) for name in directories] == ["moved"] * len(calls)


@pytest.mark.parametrize("change", [
    pytest.param(lambda root: zcore.copy(zcore.array([1, 2]), root.store, destination_path="g", overwrite=True),
                 id="copy"),
    pytest.param(lambda root: root.__delitem__("g"), id="delete")])
def test_a_group_goes_while_an_array_in_it_is_replaced_by_one_with_fewer_dimensions(tmp_path, monkeypatch, change):
    """A directory of chunks was a file by then: an error, as if the group could not be removed."""
    root = zcore.create_group(tmp_path)
    root.create_array("g/a", data=np.full((2, 2), 7), chunks=1)
    scandir, pending = os.scandir, [str(tmp_path / "g/a/c")]

    def listed(path="."):
        if path not in pending:
            return scandir(path)
        found = list(scandir(pending.pop()))
        root.create_array("g/a", data=np.full(2, 7), chunks=1, overwrite=True)
        return contextlib.nullcontext(found)

    monkeypatch.setattr(os, "scandir", listed)
    change(root)
    assert not pending and [a[...].tolist() for a in root.values()] in ([], [[1, 2]])
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]
