"""Symbolic links in a directory store: followed for reading, never for removing, and refused outside on request."""
import errno
import itertools
import os

import pytest

from zcore.errors import StoreError
from zcore.stores import OBJECTS
from zcore.stores.directory.reading import lies_in
from zcore.stores.directory.store import DirectoryStore


@pytest.fixture
def outside(tmp_path):
    (tmp_path / "outside" / "d").mkdir(parents=True)
    (tmp_path / "outside" / "file").write_bytes(b"outside")
    (tmp_path / "outside" / "d" / "k").write_bytes(b"below")
    return tmp_path / "outside"


@pytest.fixture
def store(tmp_path):
    store = DirectoryStore(tmp_path / "base")
    store.set("a/k", b"inside")
    return store


def link(store, name, target):
    os.symlink(target, os.path.join(store.path, name))


def test_links_are_followed_for_reading(store, outside):
    """FS-K2P-11, FS-GET-08."""
    link(store, "file", outside / "file")
    link(store, "d", outside)
    assert store.get("file") == b"outside"
    assert store.get("d/d/k") == b"below"
    assert store.exists("file") and store.getsize("file") == 7
    assert list(store.list()) == ["a/k", "d/d/k", "d/file", "file"]
    assert store.list_dir("")[:2] == (["file"], ["a/", "d/"])
    assert store.list_dir("d/")[:2] == (["d/file"], ["d/d/"])


def test_a_confined_store_refuses_links_that_leave_the_base(store, outside):
    """FS-K2P-11."""
    link(store, "file", outside / "file")
    link(store, "d", outside)
    link(store, "b", "a")
    link(store, "l", "a/k")
    confined = DirectoryStore(store.path, confined=True)
    assert confined.locate("") == confined.locate("a/") == OBJECTS
    for call in (confined.get, confined.exists, confined.getsize, confined.identity, confined.get_with_identity,
                 lambda key: confined.get_first("", [key], 9),
                 lambda key: confined.set("d/" + key, b""), lambda key: confined.set_if_not_exists("d/" + key, b""),
                 lambda key: confined.make_directory("d/"), lambda key: confined.make_directory("d/new/"),
                 lambda key: confined.delete("d/" + key), lambda key: confined.erase_prefix("d/d/"),
                 lambda key: confined.list_dir("d/"), lambda key: list(confined.list_prefix("d/"))):
        with pytest.raises(StoreError, match="leads out of") as caught:
            call("file")
        assert caught.value.errno == errno.ELOOP and caught.value.key
    assert (outside / "file").read_bytes() == b"outside" and os.listdir(outside / "d") == ["k"]
    assert sorted(os.listdir(outside)) == ["d", "file"]
    assert list(confined.list()) == ["a/k", "b/k", "d", "file", "l"]
    assert confined.list_dir("") == (["l"], ["a/", "b/"], ["d", "file"])
    assert confined.get("b/k") == confined.get("l") == b"inside"


def test_what_lies_in_a_directory_is_what_all_links_resolved_lie_in(tmp_path, store, outside):
    for name, target in (("out", outside), ("in", "a"), ("up", ".."), ("round", "../base"), ("nowhere", "no/where"),
                         ("self", "self"), ("a/out", outside / "file"), ("a/in", "k")):
        link(store, name, target)
    os.symlink(store.path, tmp_path / "way")
    names = ["", ".", "..", "a", "k", "d", "out", "in", "up", "round", "nowhere", "self", "base", "none", "x" * 300]
    found = set()
    for base in (store.path, str(tmp_path / "way"), str(tmp_path), "/", store.path + "x"):
        real = os.path.realpath(base)
        for place, first, second in itertools.product({store.path, base}, names, names):
            path = f"{place}/{first}/{second}"
            lies = f"{os.path.realpath(path)}/".startswith(f"{real}/".replace("//", "/"))
            assert lies_in(path, base) == lies, (path, base)
            found.add(lies)
    assert found == {True, False}


def test_a_confined_store_may_lie_behind_a_link_itself(tmp_path, store):
    """FS-K2P-11."""
    os.symlink(store.path, tmp_path / "way")
    confined = DirectoryStore(tmp_path / "way", confined=True)
    confined.set("x/y", b"v")
    assert list(confined.list()) == ["a/k", "x/y"]
    assert store.get("x/y") == b"v"
    confined.erase_prefix("")
    assert os.path.islink(tmp_path / "way") and os.listdir(store.path) == []


def test_set_replaces_a_link_and_not_its_target(store, outside):
    """FS-SET-01, FS-MOD-04: one key, one file."""
    link(store, "file", outside / "file")
    store.set("file", b"new")
    assert store.get("file") == b"new"
    assert (outside / "file").read_bytes() == b"outside"


def test_removing_takes_the_link_and_not_the_target(store, outside):
    """FS-DEL-06."""
    for remove, name in ((store.delete, "d1"), (lambda key: store.erase_prefix(key + "/"), "d2")):
        link(store, name, outside)
        remove(name)
        assert not os.path.lexists(f"{store.path}/{name}")
    link(store, "file", outside / "file")
    store.erase("file")
    os.mkdir(f"{store.path}/deep")
    link(store, "deep/d", outside)
    link(store, "deep/file", outside / "file")
    store.erase_prefix("deep/")
    link(store, "again", outside)
    store.erase_prefix("")
    assert os.listdir(store.path) == []
    assert sorted(os.listdir(outside)) == ["d", "file"] and os.listdir(outside / "d") == ["k"]


def test_erase_of_a_linked_directory_does_nothing(store, outside):
    """FS-DEL-03: it is no key."""
    link(store, "d", outside)
    link(store, "file", outside / "file")
    store.erase("d")
    store.erase_prefix("file/")
    assert sorted(os.listdir(store.path)) == ["a", "d", "file"]


def test_links_that_cannot_be_followed_are_removed_and_nothing_else(store, outside):
    """FS-DEL-03, FS-DEL-06: nobody can tell whether they are keys or prefixes, so they go as either."""
    confined = DirectoryStore(store.path, confined=True)
    for place in (store, confined):
        for target in ("nowhere", "round", outside / "none"):
            for remove in (place.erase, place.delete, lambda key, place=place: place.erase_prefix(key + "/")):
                link(store, "round", target)
                remove("round")
                assert os.listdir(store.path) == ["a"], (target, remove)
    for target in (outside / "file", outside / "d"):
        for remove in (confined.erase, confined.delete, lambda key: confined.erase_prefix(key + "/")):
            link(store, "out", target)
            remove("out")
            assert os.listdir(store.path) == ["a"], (target, remove)
    assert (outside / "file").read_bytes() == b"outside" and os.listdir(outside / "d") == ["k"]


def test_loops_end(store):
    """FS-LST-10: a link to a directory above it is not entered; one key that is a loop is an error."""
    link(store, "a/up", "..")
    link(store, "a/self", ".")
    link(store, "a/base", store.path)
    link(store, "round", "round")
    assert list(store.list()) == ["a/k", "round"]
    assert store.getsize_prefix("a/") == 6
    for call in (lambda: store.get("round"), lambda: store.getsize_prefix("")):
        with pytest.raises(StoreError) as caught:
            call()
        assert caught.value.errno == errno.ELOOP
    assert store.leads_up("a/up/") and not store.leads_up("round/")
    store.delete("round")
    assert not os.path.lexists(f"{store.path}/round")


def test_directories_that_link_to_one_another_are_walked_once(store):
    """FS-LST-10: not once for each order of them."""
    names = [f"d{i}" for i in range(12)]
    for name in names:
        store.set(f"{name}/k", b"")
        for other in names:
            link(store, f"{name}/to-{other}", f"../{other}")
    keys = list(store.list())
    assert keys == sorted(keys)
    assert len(keys) <= 1 + 12 + 12
    assert {f"{name}/k" for name in names} < set(keys)


def test_temporary_files_behind_links_are_left(store, outside):
    (outside / ".__zc_tmp.1").write_bytes(b"")
    link(store, "d", outside)
    assert store.clean_temporary(older_than=-10) == 0
    assert os.path.exists(outside / ".__zc_tmp.1")
