"""What the base class derives from `get`, `list_dir`, `set` and `erase`, and that no more of a store is ever called."""
import inspect

import numpy as np
import pytest

import zcore
from zcore.errors import ReadOnlyError, StoreError
from zcore.stores import OBJECTS, Listing, Store, openers
from zcore.stores.base import NO_FOLDERS, BlockStore
from zcore.stores.memory import MemoryStore
from zcore.tools.copy.document_last import DocumentsLast, Staged

from .conformance import StoreConformance

# What the author of a store may write; the tables of `Store` say it in the same order.
REQUIRED = ("get", "list_dir", "set", "erase")
OPTIONAL = ("identity", "get_with_identity", "getsize", "existing", "get_first", "list_sizes", "set_if_not_exists",
            "set_if_same", "erase_values", "locate", "extent")


class ReadableStore(Store):
    """The least a store can be."""

    def __init__(self, items=()):
        self.memory = MemoryStore(dict(items))

    def get(self, key, byte_range=None):
        return self.memory.get(key, byte_range)

    def list_dir(self, prefix):
        return self.memory.list_dir(prefix)


class WritableStore(ReadableStore):
    """The least a store that can be written can be."""

    def __init__(self, items=(), read_only=False):
        super().__init__(items)
        self.read_only = read_only

    def set(self, key, value):
        self._check_writable("set", key)
        self.memory.set(key, value)

    def erase(self, key):
        self._check_writable("erase", key)
        self.memory.erase(key)


class IdentifyingStore(WritableStore):
    """The same that can tell whether a value was replaced."""

    def identity(self, key):
        return self.memory.identity(key)


class WaitingStore(IdentifyingStore):
    """The same whose answers take long."""

    n_requests = 4


LEAST = (WritableStore, IdentifyingStore, WaitingStore)


class TestWritableStore(StoreConformance):
    def make(self, tmp_path, items=(), read_only=False):
        return WritableStore(items, read_only)


class TestIdentifyingStore(StoreConformance):
    def make(self, tmp_path, items=(), read_only=False):
        return IdentifyingStore(items, read_only)


class TestWaitingStore(StoreConformance):
    def make(self, tmp_path, items=(), read_only=False):
        return WaitingStore(items, read_only)


def test_the_author_of_a_store_knows_fifteen_methods_at_the_most():
    """And the docstring lists them all, the required ones first."""
    known = (*REQUIRED, *OPTIONAL)
    assert len(known) <= 15
    listed = [line.split("`")[1] for line in inspect.getdoc(Store).splitlines() if line.startswith("`")]
    assert listed[:len(known)] == list(known)


def test_no_store_overrides_what_follows_from_those():
    """Only `DirectoryStore` renames. `MemoryStore` moves in one step, as a rename does; `RemoteStore` spares a copy,
    tries whether a service honors conditions, may know its clock, and has objects copied by the service."""
    stores = [openers.loaded(kind.opener) for kind in openers.KINDS if kind.opener is not None]
    followed = {name for name, value in vars(Store).items() if inspect.isfunction(value) and name[0] != "_"}
    followed.difference_update(REQUIRED, OPTIONAL, ["close"])     # a store that holds a file closes it
    assert "exists" in followed and "list_prefix" in followed
    for kind in {*stores, MemoryStore, BlockStore} - {zcore.DirectoryStore}:
        allowed = {MemoryStore: {"move"},
                   zcore.RemoteStore: {"get_buffer", "can_swap", "settled", "duplicate"}}.get(kind, set())
        assert followed.intersection(vars(kind)) <= allowed, kind
    # What keeps the documents of another store back passes on where that is.
    for kind in (DocumentsLast, Staged):
        assert followed.intersection(vars(kind)) <= {"describe"}


def test_only_a_file_system_has_folders():
    assert Store.folders is NO_FOLDERS
    methods = {name for name, value in vars(type(NO_FOLDERS)).items() if inspect.isfunction(value)}
    assert "make_directory" in methods and not methods.intersection(dir(Store))
    assert methods <= set(vars(zcore.DirectoryStore))


def test_a_store_without_set_is_read_only():
    store = ReadableStore({"a": b"1"})
    assert store.read_only is True
    for change in (lambda: store.set("a", b""), lambda: store.set_if_not_exists("b", b""), lambda: store.erase("a"),
                   lambda: store.delete("a"), lambda: store.erase_prefix("")):
        with pytest.raises(ReadOnlyError):
            change()
    assert store.get_with_identity("a") == (b"1", None)
    assert store.identity("a") is None and store.locate("") == OBJECTS and store.extent("a") is None


def test_a_value_that_is_replaced_while_it_is_read_has_no_identity():
    store = IdentifyingStore({"a": b"1"})
    assert store.get_with_identity("a") == (b"1", store.identity("a")) != (b"1", None)
    assert store.get_with_identity("b") is None
    get = store.get

    def replaced(key, byte_range=None):
        value = get(key, byte_range)
        store.set("a", b"2")
        return value

    store.get = replaced
    assert store.get_with_identity("a") == (b"1", None)


def test_the_first_key_that_has_a_value_hides_the_faults_of_later_ones():
    class Failing(WaitingStore):
        def get(self, key, byte_range=None):
            if key.startswith("broken"):
                raise zcore.StoreError(f"no {key}", key=key)
            return super().get(key, byte_range)

    store = Failing({"a": b"12", "b": b"34"})
    assert store.get_first("", ("x", "b", "broken"), 1) == (1, b"3", store.identity("b"))
    with pytest.raises(zcore.StoreError, match="no broken"):
        store.get_first("", ("x", "broken", "b"), 1)
    assert store.get_first("", (), 1) is store.get_first("", ("x", "y"), 1) is None


@pytest.mark.parametrize("kind", LEAST)
def test_a_least_store_works_everywhere(kind, tmp_path):
    """Only what its author has written is called, and what follows from that."""
    store = kind()
    root = zcore.open_group(store, mode="a", zarr_format=2, attributes={"title": "x"})
    a = root.create_array("g/a", shape=(10, 6), chunks=(4, 4), dtype="i4", fill_value=7)
    values = np.arange(60).reshape(10, 6)
    a[...] = values
    a[1:3, ::2] += 1
    values[1:3, ::2] += 1
    sharded = zcore.create_array(store, name="s", shape=(16,), chunks=(2,), shards=(8,), dtype="u1")
    sharded[3:11] = 5
    assert np.array_equal(zcore.open(store)["g/a"][...], values) and sharded[2:12].tolist() == [0, *[5] * 8, 0]
    a.resize((5, 6))
    a.append(values[5:])
    assert np.array_equal(a[...], values) and root.attrs["title"] == "x"
    assert a.nbytes_stored() == sum(len(store.get(key)) for key in store.list_prefix("g/a/"))
    with pytest.raises(zcore.NodeExistsError):
        zcore.create_group(store, path="g")

    assert zcore.verify(store).ok
    store.set("g/a/1.1", b"damaged")
    assert [problem.key for problem in zcore.verify(store, repair=True).problems] == ["g/a/1.1"]
    a[...] = values
    assert zcore.references(store).get("g/a/.zarray") == store.get("g/a/.zarray")

    # Copies to it, from it and within it.
    zcore.copy(a, kind(), chunks=(3, 3))
    copied = zcore.copy(store, tmp_path / "copy.zarr", path="g")
    assert np.array_equal(copied["a"][...], values)
    assert np.array_equal(zcore.copy(copied, store, destination_path="h")["a"][...], values)
    assert np.array_equal(zcore.copy(root["g/a"], store, destination_path="h", overwrite=True)[...], values)
    assert zcore.verify(store).ok

    root.move("g/a", "g/b")
    assert np.array_equal(root["g/b"][...], values) and sorted(root["g"]) == ["b"]
    del root["s"]
    consolidated = zcore.consolidate_metadata(store)
    assert sorted(consolidated) == ["g", "h"]
    assert np.array_equal(zcore.open_consolidated(store)["g/b"][...], values)
    del root["g"]
    assert sorted(root) == ["h"] and list(store.list_prefix("g/")) == []
    with zcore.ZipStore(tmp_path / "x.zip", mode="w") as made:
        zcore.copy(store, made)
    assert np.array_equal(zcore.open(tmp_path / "x.zip")["h"][...], values)


@pytest.mark.parametrize("error", [zcore.StoreError("full"), KeyboardInterrupt()], ids=["full", "Ctrl-C"])
def test_a_move_that_fails_leaves_the_destination_free(error):
    class FullStore(WritableStore):
        n_left = 5

        def set(self, key, value):
            super().set(key, value)     # its answer is lost
            self.n_left -= 1
            if self.n_left == 0:
                raise error

    store = FullStore()
    zcore.create_group(store.memory).create_array("a/x", data=np.arange(8), chunks=(2,))
    group = zcore.open_group(store, "r+")
    with pytest.raises(type(error)):
        group.move("a", "b")
    assert list(group) == ["a"] and not any(store.list_dir("b/"))
    group.move("a", "b")
    assert group["b/x"][...].tolist() == list(range(8))


def test_a_move_goes_on_without_a_key_that_another_process_erases():
    class ErasedStore(WritableStore):
        def get(self, key, byte_range=None):
            return None if key == "a/0" else super().get(key, byte_range)

    store = ErasedStore({"a/0": b"0", "a/1": b"1"})
    store.move("a/", "b/")
    assert list(store.list()) == ["b/1"]


def test_values_are_asked_for_together_where_answers_take_long():
    from threading import Barrier

    class Patient(WaitingStore):
        def get(self, key, byte_range=None):
            # Is let through when as many ask as may.
            barrier.wait(timeout=20)
            return super().get(key, byte_range)

    store = Patient({name: name.encode() for name in "abcd"})
    barrier = Barrier(4)
    assert store.get_partial_values([(name, (0, 1)) for name in "abcd"]) == [b"a", b"b", b"c", b"d"]
    assert store.existing("", "abcd") == ["a", "b", "c", "d"]
    assert [part[0] for part in store.get_parts_with_identity("b", [(0, 1)] * 4)] == [b"b"] * 4


def test_a_pair_of_lists_is_a_listing():
    """In stores whose authors know of nothing that could be unreachable, and of those who call `super`."""
    class Pairs(ReadableStore):
        def list_dir(self, prefix):
            return tuple(self.memory.list_dir(prefix)[:2])

    class Below(Pairs):
        def list_dir(self, prefix):
            keys, prefixes, unreachable = super().list_dir(prefix)
            return Listing([*keys, prefix + "k"], prefixes, [prefix + "away"])

    assert Pairs({"a": b""}).list_dir("") == (["a"], [], ()) and list(Pairs({"a/b": b""}).list()) == ["a/b"]
    assert Below({"a/b": b""}).list_dir("") == (["k"], ["a/"], ["away"])
    assert list(Below({"a/b": b""}).list()) == ["a/away", "a/b", "a/k", "away", "k"]
    assert not Below().is_empty("x/")


def test_a_store_needs_get_and_list_dir():
    with pytest.raises(TypeError, match="abstract"):
        Store()


class StrangeStore(WritableStore):
    """A store of an author who has not read what `get` returns."""

    found = None     # instead of a value

    def get(self, key, byte_range=None):
        value = super().get(key, byte_range)
        return value if self.found is None or value is None else self.found(value)


@pytest.mark.parametrize("found", [5, "x", [1], (b"1", None), object()])
def test_values_that_are_no_bytes_are_named(found):
    store = StrangeStore()
    array = zcore.create_array(store, data=np.arange(1, 5))
    store.found = lambda value: found
    for key, read in (("zarr.json", lambda: zcore.open(store)), ("c/0", lambda: array[:])):
        with pytest.raises(StoreError, match=rf"get\('{key}'\) of <.*Strange.*> returned .*, expected bytes") as caught:
            read()
        assert caught.value.key == key


@pytest.mark.parametrize("found", [5, b"12", b"123", (b"1",), (), (b"1", 5), (b"1", (1, 2)), False])
def test_what_is_no_value_with_its_identity_is_named(found):
    class Strange(WaitingStore):
        def get_with_identity(self, key, byte_range=None):
            return found

    with pytest.raises(StoreError, match=r"\('a'\) of .* returned .*, expected None, or a value") as caught:
        Strange({"a": b"1"}).get_with_identity("a")
    assert caught.value.key == "a"


@pytest.mark.parametrize("kind", [bytearray, memoryview, lambda value: np.frombuffer(value, "u1")])
def test_values_may_be_any_buffer(kind):
    store = StrangeStore()
    zcore.create_array(store, data=np.arange(1, 5), chunks=2, attributes={"a": 1})
    store.found = kind
    array = zcore.open(store, mode="r+")
    array[1:3] = 7
    assert array[:].tolist() == [1, 7, 7, 4] and array.attrs == {"a": 1}


@pytest.mark.parametrize("listing", [None, ["a"], (["zarr.json"], []), ([], [5]), ([], ["g/a"]), (["g/a/0"], []), 5])
def test_names_that_are_not_complete_are_named(listing):
    """The members of a group would be missing without a word, and a copy would be empty."""
    class RelativeStore(WritableStore):
        def list_dir(self, prefix):
            return listing

    with pytest.raises(StoreError, match=r"list_dir\('g/'\) of .* returned .*, expected the complete keys"):
        list(zcore.open(RelativeStore({"g/zarr.json": zcore.group().store.get("zarr.json")}), path="g"))


def test_a_name_that_a_store_lists_twice_is_one():
    class Twice(WritableStore):
        def list_dir(self, prefix):
            return [prefix + "a", prefix + "a"], (f"{prefix}b/" for _ in range(2))

    assert Twice({}).list_dir("g/") == Listing(["g/a"], ["g/b/"])


@pytest.mark.parametrize(("name", "found"), [
    *[("identity", found) for found in (5, "abcde", (1, 2))], *[("getsize", found) for found in ("1", 2.5)],
    *[("existing", found) for found in (None, 5, [1], ["g/b"], "bc", [[]])],
    *[("get_first", found) for found in (5, (0, b""), (0, "x", None), ("b", b"", None), (9, b"", None))],
    *[("list_sizes", found) for found in (None, ["a"], [("b", 1)], [(5, 1)], [("g/b", "1")], [("g/b", 1, 2)])],
    ("set_if_not_exists", None), ("set_if_not_exists", "x"), ("set_if_same", 5),
    *[("extent", found) for found in (5, ("a",), ("a", "b", 1), (5, 0, 1))]])
def test_what_a_method_should_not_return_is_named(name, found):
    arguments = {"existing": ("g/", ["b"]), "get_first": ("g/", ["b"], 9), "list_sizes": ("g/",),
                 "set_if_same": ("g/", b"", None), "set_if_not_exists": ("g/", b"")}.get(name, ("g/",))
    strange = type("Strange", (WritableStore,), {name: lambda *_: found})()
    with pytest.raises(StoreError, match=rf"^{name}\('g/'\) of <.*Strange.*> returned .*, expected ") as caught:
        list(getattr(strange, name)(*arguments))
    assert caught.value.key == "g/"


def test_what_a_method_returns_gets_the_form_that_is_expected():
    class Other(WritableStore):
        def identity(self, key):
            return [1, 2, 3, 4, 5]

        def list_dir(self, prefix):
            return iter("cab"), {"y/", "x/"}

        def existing(self, prefix, names):
            return {name: True for name in names}.keys()

    assert Other().identity("a") == (1, 2, 3, 4, 5) and Other().list_dir("") == (["a", "b", "c"], ["x/", "y/"], ())
    assert Other().existing("", ["b", "a"]) == ["b", "a"]
