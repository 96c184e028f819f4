"""Keys and values in the memory of the process, with a table of the names right below each prefix.

So the cost of listing a prefix does not depend on the number of keys. Keys and prefixes conflict as files and
directories do, so every `MemoryStore` can be copied into a directory. No call walks down from the root, so depth costs
no more than the length of a key.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from zcore.buffers import flat_view
from zcore.errors import KeyConflictError
from zcore.kernel.io.documents import Tickets
from zcore.kernel.io.locks import ObjectLocks
from zcore.model.value import check_kind
from zcore.stores.base import FoundStore, Identity, Listing, PutStore, sliced, with_parts
from zcore.stores.keys import check_key, check_prefix
from zcore.text.arguments import as_bool

if TYPE_CHECKING:
    from typing import Any

    from zcore.typing import Buffer


class MemoryStore(FoundStore, PutStore):
    """Keys and values in memory, for tests and intermediate results.

    Values are copied when they are set, and returned as immutable bytes: no memory of a caller is shared. Threads may
    use one store together. `copy.copy` and `copy.deepcopy` make an independent store. A pickle is read-only, because
    changes in another process would not reach the original. A store is equal only to itself.

    Parameters
    ----------
    items : mapping of str to bytes-like, optional
        Keys and values to begin with.
    read_only : bool
        Refuse every change.

    Examples
    --------
    >>> store = MemoryStore({"a/b": b"value"})
    >>> store.get("a/b", (1, 2)), store.get("a"), store.list_dir("").prefixes
    (b'al', None, ['a/'])
    """

    _reading = "read-only"

    def __init__(self, items: Mapping[str, Buffer] | None = None, read_only: bool = False) -> None:
        self._values = {}  # key -> (bytes, generation)
        self._below = {"": {}}  # prefix -> {name: whether it is that of a prefix}; but for the root none is empty
        self._generation = 0
        self._number = _numbers.next()
        self._locks = ObjectLocks()
        check_kind(items, "items", (Mapping,), "a mapping of keys to bytes")
        for key, value in (items or {}).items():
            self._put(key, value, exclusive=False)
        self.read_only: bool = as_bool(read_only, "read_only")

    @classmethod
    def named(cls, url: str) -> MemoryStore:
        """Return the store of this process that has a name, as in ``memory://name``; without a name a new one."""
        name = url.partition("://")[2].strip("/")
        return _named.setdefault(name, cls()) if name else cls()

    def __repr__(self) -> str:
        return f"<MemoryStore at {id(self):#x}{f', {self._reading}' if self.read_only else ''}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return MemoryStore, (self._items(), True), {"_reading": "read-only as it was pickled"}

    def __copy__(self) -> MemoryStore:
        return MemoryStore(self._items(), self.read_only)

    def __deepcopy__(self, memo: dict[int, Any]) -> MemoryStore:
        return memo.setdefault(id(self), self.__copy__())

    def _items(self):
        return {key: value for key in self.list() if (value := self.get(key)) is not None}

    # Reading takes no lock: a value that is replaced or removed meanwhile is whole either way, and a signal handler may
    # read in the middle of a change.

    def _found(self, key, byte_range):
        found = self._find(key)
        return None if found is None else (sliced(found[0], byte_range), self._identity_of(found))

    def identity(self, key: str) -> Identity | None:
        """Return the identity that `key` has now; a count of the store's changes takes the place of times."""
        found = self._find(key)
        return None if found is None else self._identity_of(found)

    # A prefix is checked where nothing is found: no key lies below an invalid one.

    def get_first(self, prefix: str, names: Sequence[str], limit: int) -> tuple[int, bytes, Identity] | None:
        values = self._values
        for i, name in enumerate(names):
            found = values.get(prefix + check_key(name))
            if found is not None:
                return i, found[0][:limit], self._identity_of(found)
        check_prefix(prefix)
        return None

    def getsize(self, key: str) -> int | None:
        found = self._find(key)
        return None if found is None else len(found[0])

    def list_dir(self, prefix: str) -> Listing:
        check_prefix(prefix)
        entries = sorted(self._below.get(prefix, {}).copy().items())
        return Listing([prefix + name for name, is_prefix in entries if not is_prefix],
                       [f"{prefix}{name}/" for name, is_prefix in entries if is_prefix])

    def _find(self, key):
        """Return the (bytes, generation) of `key`, or None."""
        found = self._values.get(key) if isinstance(key, str) else None
        if found is None:
            check_key(key)     # not needed above: only valid keys have values
        return found

    def _identity_of(self, found):
        return 0, self._number, len(found[0]), found[1], found[1]

    # Writing

    def _set_parts(self, key, parts):
        with self._locks.whole():
            self._put_held(key, bytes(with_parts(self.get(key), parts)), exclusive=False)

    def _put(self, key, value, exclusive):
        check_key(key)
        data = value if type(value) is bytes else bytes(flat_view(value))
        with self._locks.whole():
            return self._put_held(key, data, exclusive)

    def _put_held(self, key, data, exclusive):
        if key not in self._values:
            self._make_way(key, *_split(key))
        elif exclusive:
            return False
        self._generation += 1
        self._values[key] = data, self._generation
        return True

    def _make_way(self, key, parent, name):
        """Note a new key, and the prefixes above it that are missing."""
        missing = []
        while (entries := self._below.get(parent)) is None:
            missing.append((parent, name))
            parent, name = _split(parent[:-1])
        if name in entries:
            raise KeyConflictError(
                f"{key!r} cannot be a key of {self!r}: its part {name!r} is one" if missing else
                f"{key!r} cannot be a key of {self!r}: there are keys below it", key=key)
        entries[name] = bool(missing)
        for i, (prefix, name) in enumerate(missing):
            self._below[prefix] = {name: i > 0}

    # Removing

    def erase(self, key: str) -> None:
        self._check_writable("erase", key)
        check_key(key)
        with self._locks.whole():
            if self._values.pop(key, None) is not None:
                self._cut(key)

    def _cut(self, key):
        """Remove the name of an erased key, and the prefixes above that become empty."""
        while key:
            parent, name = _split(key)
            entries = self._below[parent]
            del entries[name]
            if entries or not parent:
                return
            del self._below[parent]
            key = parent[:-1]


def _split(key):
    """Return the prefix of a key, ``""`` or with its final ``/``, and the name behind it."""
    above, separator, name = key.rpartition("/")
    return above + separator, name


_named: dict[str, MemoryStore] = {}
# Numbers of stores, never reused: caches by identity outlive a store, and another one may get its address.
_numbers = Tickets()
