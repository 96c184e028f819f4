"""What the base class derives from `get` and `list_dir`, and from `set`, `set_if_not_exists` and `erase`."""
import pytest

from zcore.errors import ReadOnlyError
from zcore.stores import Listing, MemoryStore, Store

from .conformance import StoreConformance


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

    def set_if_not_exists(self, key, value):
        self._check_writable("set_if_not_exists", key)
        return self.memory.set_if_not_exists(key, value)

    def erase(self, key):
        self._check_writable("erase", key)
        self.memory.erase(key)


class TestWritableStore(StoreConformance):
    def make(self, tmp_path, items=(), read_only=False):
        return WritableStore(items, read_only)


def test_a_store_without_set_is_read_only():
    store = ReadableStore({"a": b"1"})
    assert store.read_only is True
    for change in (lambda: store.set("a", b""), lambda: store.set_if_not_exists("b", b""), lambda: store.erase("a"),
                   lambda: store.delete("a"), lambda: store.erase_prefix("")):
        with pytest.raises(ReadOnlyError):
            change()
    assert store.get_with_identity("a") == (b"1", None)
    assert store.identity("a") is None


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
