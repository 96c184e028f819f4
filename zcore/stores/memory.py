"""Keys and values in the memory of the process, as a tree of dictionaries that mirrors a directory tree.

The tree makes the listing of one prefix independent of the number of keys, and gives the same conflicts between keys
and prefixes as files and directories have, so what fits here fits into a directory.
"""
from __future__ import annotations

import os
from _thread import RLock  # of threading, without its import time
from collections.abc import Mapping
from itertools import count
from weakref import WeakSet

from zcore.buffers import flat_view
from zcore.errors import KeyConflictError
from zcore.options import as_bool
from zcore.stores.base import ByteRange, Identity, Listing, Store, resolve_range
from zcore.stores.keys import check_key, check_prefix


class MemoryStore(Store):
    """Keys and values in memory, for tests and intermediate results.

    Values are copied in and handed out as immutable bytes: no caller's memory is shared. Threads may use one store
    together. What `copy.copy` and `copy.deepcopy` make of it is a store of its own; a pickle is a read-only one, since
    who gets it elsewhere would wait in vain for his changes to reach the original. Two stores are equal only when they
    are one.

    Parameters
    ----------
    items : mapping of str to bytes-like, optional
        Keys and values to begin with.
    read_only : bool
        Refuse every change.

    Examples
    --------
    >>> store = MemoryStore({"a/b": b"value"})
    >>> store.get("a/b", (1, 2)), store.get("a"), store.list_dir("")
    (b'al', None, ([], ['a/']))
    """

    def __init__(self, items: Mapping[str, bytes] | None = None, read_only: bool = False):
        self._root = {}  # name -> (bytes, generation) of a key, or the dict of a prefix
        self._generation = 0
        self._number = next(_numbers)
        self._lock = RLock()
        _stores.add(self)
        for key, value in (items or {}).items():
            self._put(key, value, exclusive=False)
        self.read_only = as_bool(read_only, "read_only")

    def __repr__(self):
        return f"<MemoryStore at {id(self):#x}{', read-only' if self.read_only else ''}>"

    def __reduce__(self):
        return MemoryStore, (self._items(), True)

    def __copy__(self):
        return MemoryStore(self._items(), self.read_only)

    def __deepcopy__(self, memo):
        return memo.setdefault(id(self), self.__copy__())

    def _items(self):
        return {key: value for key in self.list() if (value := self.get(key)) is not None}

    # Reading goes without the lock: a value that is replaced or removed meanwhile is whole either way.

    def get(self, key: str, byte_range: ByteRange | None = None) -> bytes | None:
        found = self._find(key)
        return None if found is None else _part(found[0], byte_range)

    def get_with_identity(self, key: str, byte_range: ByteRange | None = None) -> tuple[bytes, Identity] | None:
        found = self._find(key)
        return None if found is None else (_part(found[0], byte_range), self._identity_of(found))

    def identity(self, key: str) -> Identity | None:
        """Return the identity that `key` has now; a count of the store's changes stands in the place of times."""
        found = self._find(key)
        return None if found is None else self._identity_of(found)

    def getsize(self, key: str) -> int | None:
        found = self._find(key)
        return None if found is None else len(found[0])

    def list_dir(self, prefix: str) -> Listing:
        check_prefix(prefix)
        with self._lock:
            node = self._root
            for part in prefix.split("/")[:-1]:
                node = node.get(part)
                if type(node) is not dict:
                    return [], []
            entries = sorted((name, type(entry) is dict) for name, entry in node.items())
        return ([prefix + name for name, is_prefix in entries if not is_prefix],
                [f"{prefix}{name}/" for name, is_prefix in entries if is_prefix])

    def _find(self, key):
        """Return the (bytes, generation) of `key`, or None."""
        node = self._root
        for part in check_key(key).split("/"):
            if type(node) is not dict:
                return None
            node = node.get(part)
        return node if type(node) is tuple else None

    def _identity_of(self, found):
        return 0, self._number, len(found[0]), found[1], found[1]

    # Writing

    def set(self, key: str, value) -> None:
        self._check_writable("set", key)
        self._put(key, value, exclusive=False)

    def set_if_not_exists(self, key: str, value) -> bool:
        self._check_writable("set_if_not_exists", key)
        return self._put(key, value, exclusive=True)

    def set_partial_values(self, changes) -> None:
        with self._lock:
            super().set_partial_values(changes)

    def _put(self, key, value, exclusive):
        *parents, name = check_key(key).split("/")
        data = bytes(flat_view(value))
        with self._lock:
            node = self._root
            for part in parents:
                node = node.setdefault(part, {})
                if type(node) is not dict:
                    raise KeyConflictError(f"{key!r} cannot be a key of {self!r}: its part {part!r} is one", key=key)
            if type(node.get(name)) is dict:
                raise KeyConflictError(f"{key!r} cannot be a key of {self!r}: there are keys below it", key=key)
            if exclusive and name in node:
                return False
            self._generation += 1
            node[name] = data, self._generation
            return True

    # Removing

    def erase(self, key: str) -> None:
        self._check_writable("erase", key)
        self._cut(check_key(key), tuple)

    def erase_prefix(self, prefix: str) -> None:
        self._check_writable("erase_prefix", prefix)
        if check_prefix(prefix):
            self._cut(prefix[:-1], dict)
        else:
            with self._lock:
                self._root = {}

    def _cut(self, key, kind):
        """Remove what has the name of `key`, if it is of this kind, and the prefixes that are left empty."""
        *parents, name = key.split("/")
        with self._lock:
            way = [self._root]
            for part in parents:
                way.append(way[-1].get(part))
                if type(way[-1]) is not dict:
                    return
            if type(way[-1].get(name)) is not kind:
                return
            del way[-1][name]
            while parents and not way.pop():
                del way[-1][parents.pop()]


def _part(value, byte_range):
    start, stop = resolve_range(byte_range, len(value))
    return value[start:stop]


# Of stores: what is kept by the identity of a value outlives its store, whose place in memory another one may take.
_numbers = count()
# A lock that another thread held at a fork would stay locked in the child.
_stores = WeakSet()


def _renew_locks():
    for store in _stores:
        store._lock = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
