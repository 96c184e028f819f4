"""The interface of a store: keys and values, as the engine and the user see them.

The names are those of the Zarr v3 core specification, "Abstract store interface" (`get`, `get_partial_values`, `set`,
`set_partial_values`, `erase`, `erase_values`, `erase_prefix`, `list`, `list_prefix`, `list_dir`) with `delete` as the
file system store v1.0 has it. A missing key is None everywhere, never an exception; a fault is a `StoreError`, never
a missing key, since a missing chunk reads as fill value.

`Store` says which methods the author of a store writes. All others follow from these.

A name without a value is one of three things, which no caller takes for one another:

- absent: nothing has the name. The answer is None or False, and no listing shows it.
- foreign: something has the name and is part of no node. To a store it is a key like any other.
- unreachable: something has the name, and its bytes or its listing cannot be had, such as a link to a disk that is not
  mounted. The answer is a `StoreError`, and listings show it.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from operator import index

from zcore import workers
from zcore.buffers import flat_view
from zcore.errors import ReadOnlyError, StoreError
from zcore.kernel.io.holds import ObjectLocks, locks_of
from zcore.stores.keys import POSIX, check_key, check_prefix

ByteRange = tuple[int | None, int | None]
Parts = list[bytes | None]
Identity = tuple[int, int, int, int, int]

# The four answers of `Store.locate`: where the bytes of the values below a prefix lie.

# Each key below the prefix is the file of that name below `path`, and the compiled code may open it.
Directory = namedtuple("Directory", ("path",))

# Values are parts of other files: `table` says which, a `zcore.kernel.refs.table.ReferenceTable`, and does not change.
# ``open(target)`` returns a new descriptor of one of them, and is a StoreError for targets that are read by `get`.
# ``batches(keys, limit)``, if there is one, says which values are read together: `zcore.stores.reference.batches`.
Extents = namedtuple("Extents", ("table", "open", "batches"), defaults=(None,))

# The elements of an array lie somewhere as they are: ``open()`` returns a new descriptor of the file, or bytes;
# `offset` is that of the first element in there, and `strides` are in bytes. Where `is_decoded`, ``open()`` decodes.
Strided = namedtuple("Strided", ("open", "offset", "strides", "is_decoded"), defaults=(False,))

# Values are asked for by `get`, and replaced by `set`, or on a condition by `set_if_not_exists` and `set_if_same`.
Objects = namedtuple("Objects", ())
OBJECTS = Objects()

# Of the locks of keys, which are those of no node.
_NO_PATH = None


class Listing(namedtuple("Listing", ("keys", "prefixes", "unreachable"), defaults=((),))):
    """What lies right below a prefix: complete names, each list sorted.

    Attributes
    ----------
    keys : list of str
    prefixes : list of str
        With a final ``/``.
    unreachable : sequence of str
        Spelled like keys: nobody can tell which of them are prefixes.
    """

    __slots__ = ()


class Store(ABC):
    """Keys and values, where a value is a run of bytes.

    The author of a store writes the first methods of this table, and any of the others. Nothing else of his is called.

    =====================  ============================================================================================
    required               what it does
    =====================  ============================================================================================
    `get`                  returns a value, or a part of it
    `list_dir`             returns the keys and prefixes right below a prefix
    `set`                  replaces a value; without it the store is read-only
    `erase`                removes a key; needed where there is `set`
    =====================  ============================================================================================

    =====================  ============================================================================================
    optional               default
    =====================  ============================================================================================
    `identity`             None: the store cannot tell whether a value was replaced
    `get_with_identity`    `get`, between two calls of `identity`
    `getsize`              the length of what `get` returns
    `existing`             `getsize` of each key
    `get_first`            `get_with_identity` of each key in turn
    `list_sizes`           a walk by `list_dir`, with unknown sizes
    `set_if_not_exists`    `existing`, then `set`, under a lock of this process
    `set_if_same`          none; needed where `swaps` is true
    `erase_values`         `erase` of each key
    `locate`               `Objects()`: values are asked for by `get`
    `extent`               None: a value is no part of a file
    =====================  ============================================================================================

    `read_only` is false in a store that can be written. The other attributes may stay as they are.

    Attributes
    ----------
    read_only : bool
        Every change is refused with a `ReadOnlyError`.
    uri : str or None
        The address another process finds the store by. Stores of one URI share their locks.
    label : str
        What a person calls the store, in few characters: the name of a directory, else that of the class.
    key_flavour : str
        Which rules keys have to obey (`zcore.stores.keys`).
    fsync : bool
        Changes reach the disk before the call that makes them returns.
    n_requests : int
        How many values may be asked for at a time, by as many threads, where each answer takes long; 0 where it does
        not, and threads are for computing.
    lists : bool
        Whether there are listings; plain HTTP servers have none, and asking for one is a `StoreError` there.
    swaps : bool
        Locks hold back the threads of one process alone, and a value that others may change at the same time is
        replaced by `set_if_same`.
    """

    read_only: bool = True
    uri: str | None = None
    key_flavour = POSIX
    fsync: bool = False
    n_requests: int = 0
    lists: bool = True
    swaps: bool = False

    @property
    def label(self) -> str:
        """What a person calls the store, in few characters."""
        return type(self).__name__

    def __init_subclass__(cls, **keywords):
        """Let a `list_dir` that returns a pair of lists return a `Listing`, in which nothing is unreachable."""
        super().__init_subclass__(**keywords)
        listed = cls.__dict__.get("list_dir")
        if listed is not None:
            @wraps(listed)
            def list_dir(self, prefix):
                found = listed(self, prefix)
                return found if type(found) is Listing else Listing(*found)

            cls.list_dir = list_dir

    # ------------------------------------------------------------------------------------------------------------------
    # What the author of a store writes: required
    # ------------------------------------------------------------------------------------------------------------------

    @abstractmethod
    def get(self, key: str, byte_range: ByteRange | None = None) -> bytes | None:
        """Return the value of `key`, or None when there is none.

        Parameters
        ----------
        key : str
        byte_range : tuple, optional
            ``(start, length)`` in bytes, ``(start, None)`` up to the end, ``(None, n)`` the last `n` bytes. What lies
            behind the end is left out: the result may be shorter than asked for, or empty. See `resolve_range`.

        Raises
        ------
        InvalidKeyError, ValueError
            `key` is not a key; a number of `byte_range` is negative.
        StoreError
            It is unreachable: the value is there, or may be, and could not be read.
        """

    @abstractmethod
    def list_dir(self, prefix: str) -> Listing:
        """Return the keys and the prefixes right below `prefix`, and what is unreachable there.

        An absent prefix has none of them. A store in which nothing can be unreachable may return a pair of lists.

        Raises : StoreError, if the prefix itself is unreachable.
        """

    def set(self, key: str, value) -> None:
        """Make `value` the value of `key`: readers see the old one or the new one.

        Parameters
        ----------
        key : str
        value : bytes-like
            Any C-contiguous buffer; its bytes are taken over.

        Raises
        ------
        InvalidKeyError, TypeError
            `key` is not a key; `value` is not bytes-like.
        KeyConflictError
            `key` is a prefix of other keys, or one of its own prefixes is a key.
        StoreError
            The value could not be written; the old one is still there.
        """
        self._refuse("set", key)

    def erase(self, key: str) -> None:
        """Remove `key` and its value; a missing key is no error. A prefix is not a key and stays.

        Of a link the link is removed and never what it leads to, be it reachable or not.

        Raises : StoreError, if it has the name of what is neither a value nor a link, such as a FIFO: that stays.
        """
        self._refuse("erase", key)

    # ------------------------------------------------------------------------------------------------------------------
    # What the author of a store may write: optional
    # ------------------------------------------------------------------------------------------------------------------

    def identity(self, key: str) -> Identity | None:
        """Return the identity that `key` has now: (device, inode, size, mtime_ns, ctime_ns).

        Returns None when there is no value, and in stores that cannot tell.

        Raises : StoreError, if the key is unreachable.
        """
        check_key(key, self.key_flavour)
        return None

    def get_with_identity(
        self, key: str, byte_range: ByteRange | None = None
    ) -> tuple[bytes, Identity | None] | None:
        """Return the value of `key`, or a part as in `get`, and the identity it was read under; None without a value.

        The identity differs whenever the value was replaced; it is None in stores that cannot tell.
        """
        if type(self).identity is Store.identity:
            value = self.get(key, byte_range)
            return None if value is None else (value, None)
        identity = self.identity(key)
        value = self.get(key, byte_range)
        return None if value is None else (value, identity if self.identity(key) == identity else None)

    def getsize(self, key: str) -> int | None:
        """Return the size of the value in bytes, or None when there is none."""
        value = self.get(key)
        return None if value is None else len(value)

    def existing(self, prefix: str, names: Sequence[str]) -> list[str]:
        """Return those of `names` that are keys with a value when `prefix` stands before them; see `get_first`.

        Whether `prefix` itself is unreachable need not be looked at: `check_reachable` does that.
        """
        keys = [prefix + check_key(name, self.key_flavour) for name in names]
        return [name for name, size in zip(names, self._together(self.getsize, keys), strict=True) if size is not None]

    def get_first(self, prefix: str, names: Sequence[str], limit: int) -> tuple[int, bytes, Identity | None] | None:
        """Return the first of several keys that has a value: its index, up to `limit` bytes of it, and the identity.

        The keys are `prefix` with each of `names` behind it. None when no key has a value. This finds the document of
        a node whose format is not known.
        """
        def tried(name):
            try:
                return self.get_with_identity(prefix + check_key(name, self.key_flavour), (0, limit))
            except StoreError as error:
                # It counts if none before has a value.
                return error

        # One alone, which most nodes have; then the others, together where answers take long.
        for first, part in ((0, names[:1]), (1, names[1:])):
            for i, outcome in enumerate(self._together(tried, part) if self.n_requests else map(tried, part), first):
                if isinstance(outcome, StoreError):
                    raise outcome
                if outcome is not None:
                    return i, *outcome
        return None

    def list_sizes(self, prefix: str) -> Iterator[tuple[str, int | None]]:
        """Iterate over the keys below `prefix`, sorted, each with its size in bytes, or None where a listing is silent.

        See `list_prefix`. For stores that list all levels at once, or list sizes.

        Raises : InvalidKeyError, by the call, if `prefix` is not one.
        """
        check_prefix(prefix, self.key_flavour)
        return ((key, None) for key in self._walk(prefix))

    def set_if_not_exists(self, key: str, value) -> bool:
        """Make `value` the value of `key` unless it has one; return whether that was done.

        Of several callers at once exactly one succeeds; by default, of those in this process. See `set`.
        """
        self._check_writable("set_if_not_exists", key)
        flat_view(value)     # a value of another type is refused whatever there is
        with locks_of((self._lock_place, _NO_PATH)).object(check_key(key, self.key_flavour)):
            if self.exists(key):
                return False
            self.set(key, value)
            return True

    def set_if_same(self, key: str, value, identity: Identity | None) -> Identity | None:
        """Make `value` the value of `key` if that has the identity still.

        Returns the identity that it has then, or None if it was not done. As an argument None is the identity of a key
        without a value. Stores whose locks hold back all other writers need none of this: see `swaps`.
        """
        self._refuse("set_if_same", key)

    def erase_values(self, keys: Iterable[str]) -> None:
        """Remove several keys; when one is not a key, none is removed. See `erase`."""
        self._check_writable("erase_values")
        keys = [check_key(key, self.key_flavour) for key in keys]
        run_together(self.erase, keys, self.n_requests)

    def locate(self, prefix: str) -> Directory | Extents | Strided | Objects:
        """Return where the bytes of the values below `prefix` lie, that of a node.

        `Directory` and `Objects` hold as long as the store does. The other answers are for one call of the engine.
        """
        return OBJECTS

    def extent(self, key: str) -> tuple[str, int, int | None] | None:
        """Return where the bytes of one value lie, to be named in a reference set: a path or URL, an offset and a size.

        The size is None where they are all of a file. None for a missing key, and for bytes that lie nowhere as they
        are: in memory, or compressed by the store.
        """
        check_key(key, self.key_flavour)
        return None

    # ------------------------------------------------------------------------------------------------------------------
    # For callers. These follow from the methods above, and no author of a store overrides them.
    # ------------------------------------------------------------------------------------------------------------------

    def exists(self, key: str) -> bool:
        """Return whether `key` has a value.

        Raises : StoreError, if it is unreachable; so do `existing`, `getsize` and `extent`.
        """
        return bool(self.existing("", (key,)))

    def get_partial_values(self, requests: Iterable[tuple[str, ByteRange]]) -> Parts:
        """Return the parts of values that the pairs of key and byte range ask for, in their order.

        Keys may repeat. See `get`.
        """
        requests = [(check_key(key, self.key_flavour), byte_range) for key, byte_range in requests]
        for _, byte_range in requests:
            resolve_range(byte_range, 0)
        return self._together(lambda request: self.get(*request), requests)

    def get_parts_with_identity(
        self, key: str, parts: Iterable[ByteRange]
    ) -> list[tuple[bytes, Identity | None] | None]:
        """Return what `get_with_identity` returns for each of several parts of a value."""
        return self._together(lambda part: self.get_with_identity(key, part), list(parts))

    def list(self) -> Iterator[str]:
        """Return an iterator over all keys."""
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Return an iterator over the keys below `prefix`, sorted. Unreachable names are among them.

        Of an unreachable name nobody can tell whether keys lie below it. Asked for its value it is a `StoreError`, so
        whoever reads what is listed, to copy it for one, leaves out nothing.

        One directory is held at a time, with the siblings of those above it; nothing stays open in between. Keys
        that come or go meanwhile may or may not appear.
        """
        return (key for key, _ in self.list_sizes(prefix))

    def getsize_prefix(self, prefix: str) -> int:
        """Return the size of all values below `prefix`, in bytes.

        Raises : StoreError, if one of them is unreachable: the sum would be too small.
        """
        return sum(self.getsize(key) or 0 if size is None else size for key, size in self.list_sizes(prefix))

    def set_partial_values(self, changes: Iterable[tuple[str, int, bytes]]) -> None:
        """Write each value into the value of its key, `start` bytes from the beginning.

        A value grows as needed: a gap before `start` is filled with zeros, a missing key starts as empty. All
        changes of one key are made at once, by reading, changing and replacing its value. Where other processes may
        change it at the same time (`swaps`), that may undo what they do.

        Parameters
        ----------
        changes : iterable of (key, start, value)

        Raises
        ------
        ValueError
            A start is negative, or two changes of one key overlap. Nothing was written.
        """
        self._check_writable("set_partial_values")
        changes = [(check_key(key, self.key_flavour), index(start), flat_view(value))
                   for key, start, value in changes]
        of_key = {}
        for key, start, view in changes:
            if start < 0:
                raise ValueError(f"{key!r}: a change starts at {start}, expected 0 or more")
            of_key.setdefault(key, []).append((start, start + len(view), view))
        for key, parts in of_key.items():
            _check_disjoint(key, parts)
        for key, parts in of_key.items():
            self._set_parts(key, parts)

    def erase_prefix(self, prefix: str) -> None:
        """Remove all keys below `prefix`; the prefix ``""`` empties the store."""
        self._check_writable("erase_prefix", prefix)
        self.erase_values(list(self.list_prefix(prefix)))

    def delete(self, key: str) -> None:
        """Remove the value of `key` and all keys below ``key/``: what file systems call a file or directory.

        Notes : file system store v1.0, "Store API implementation".
        """
        self.erase(key)
        self.erase_prefix(key + "/")

    def move(self, source: str, destination: str, last: Sequence[str] = ()) -> None:
        """Give the keys below the prefix `source` the prefix `destination`, below which there is no key.

        Where that is not one step, keys appear at the destination before they go from the source. Keys whose last part
        is one of `last`, documents that make the others mean something, come last and go first.
        """
        self._check_writable("move", source)
        check_prefix(destination, self.key_flavour)
        keys = list(self.list_prefix(source))
        others = [key for key in keys if key.rpartition("/")[2] not in last]
        # What holds others comes after these, and goes before them.
        documents = sorted(set(keys).difference(others), key=lambda key: (-key.count("/"), key))
        for key in (*others, *documents):
            self.set(destination + key[len(source):], self.get(key))
        for key in (*reversed(documents), *others):
            self.erase(key)

    def describe(self, path: str) -> str:
        """Return where the node at `path` is, for messages."""
        return f"{path} in {self!r}" if path else repr(self)

    def locks(self, path: str, document: str) -> ObjectLocks:
        """Return the locks under which the objects of the node at `path` are replaced.

        `document` is the name of its metadata document. All handles of this process get the same locks.
        """
        return locks_of((self._lock_place, path))

    # Of file systems, whose prefixes are things of their own. `DirectoryStore` gives other answers than these.

    def is_empty(self, prefix: str) -> bool:
        """Whether there is nothing below `prefix`, not even what is no key and could be in the way of one."""
        return not any(self.list_dir(prefix))

    def check_reachable(self, prefix: str) -> None:
        """Raise StoreError when `prefix` is unreachable, so that nobody can tell what lies below it."""
        check_prefix(prefix, self.key_flavour)

    def check_no_special(self, prefix: str, names: Sequence[str]) -> None:
        """Raise StoreError when a key is the name of what is no value and no prefix, and is not to be replaced.

        Such as a FIFO, a socket or a device, for which `set` has no regard. The keys are `prefix` with each of `names`
        behind it.
        """
        for name in names:
            check_key(prefix + name, self.key_flavour)

    def list_special(self, prefix: str) -> Iterator[str]:
        """Iterate over the names below `prefix` that `check_no_special` refuses.

        Every directory below `prefix` is listed. So a directory that cannot be listed is an error here, too.
        """
        for _ in self.list_prefix(prefix):
            pass
        return iter(())

    def make_directory(self, prefix: str) -> None:
        """Make the directory of `prefix`, which holds no key yet; a store without directories does nothing.

        Raises
        ------
        InvalidKeyError
            `prefix` is not one.
        KeyConflictError
            The directory, or one above it, has the name of a key.
        """
        self._check_writable("make_directory", prefix)
        check_prefix(prefix, self.key_flavour)

    def prune(self, prefix: str, below: bool = False) -> None:
        """Remove the empty directories that an erased prefix leaves in some stores: it, those above, those `below`."""
        check_prefix(prefix, self.key_flavour)

    def is_link(self, prefix: str) -> bool:
        """Whether what lies below `prefix` lies somewhere else, so that erasing the prefix leaves it alone."""
        check_prefix(prefix, self.key_flavour)
        return False

    def leads_up(self, prefix: str) -> bool:
        """Whether what lies below `prefix` is what lies below one of its own prefixes: a walk would never end."""
        check_prefix(prefix, self.key_flavour)
        return False

    # What stores of zcore share

    @property
    def _lock_place(self):
        """What handles of one place have in common."""
        return self.uri or id(self)

    def _walk(self, prefix):
        pending = [prefix]
        entered = set()
        while pending:
            item = pending.pop()
            if item and item[-1] != "/":
                yield item
            elif self._may_enter(item, entered):
                found = self.list_dir(item)
                pending += sorted([*found.keys, *found.prefixes, *found.unreachable], reverse=True)

    def _may_enter(self, prefix, entered):
        """Return whether a walk goes into `prefix`; `entered` is a set that lives as long as the walk."""
        return True

    def _together(self, work, items):
        """Return ``work(item)`` of each item; several are asked for at a time where answers take long."""
        if self.n_requests > 1 and len(items) > 1:
            return workers.aside(run_together, work, items, self.n_requests)
        return [work(item) for item in items]

    def _set_parts(self, key, parts):
        self.set(key, self._with_parts(key, parts))

    def _with_parts(self, key, parts):
        value = bytearray(self.get(key) or b"")
        value += bytes(max(0, max(stop for _, stop, _ in parts) - len(value)))
        for start, stop, view in parts:
            value[start:stop] = view
        return value

    def _check_writable(self, action, key=None):
        if self.read_only:
            self._refuse(action, key)

    def _refuse(self, action, key):
        what = action if key is None else f"{action} of {key!r}"
        raise ReadOnlyError(f"{self!r} is read-only: {what} is refused", key=key)


class BlockStore(Store):
    """A store whose values are parts of blocks, which have checksums of their own; `zcore.verify` reads the blocks."""

    @abstractmethod
    def blocks(self, path: str) -> Iterator[tuple[str, str, int, Callable[[], object]]]:
        """Iterate over the blocks that the arrays at `path` and below it are parts of.

        Of each that is its name, the path of an array in it, its size when it is decoded, in bytes, and what reads it
        and raises what is wrong with it.
        """

    @abstractmethod
    def is_in_blocks(self, path: str) -> bool:
        """Return whether all elements of the array at `path` have been read when its `blocks` have.

        Raises : ZcoreError, if the array does not lie in them as it should.
        """


def directory_at(store: Store, prefix: str = "") -> str | None:
    """Return the directory that `Store.locate` names, or None."""
    found = store.locate(prefix)
    return found.path if type(found) is Directory else None


def run_together(work: Callable, items: Sequence, n_threads: int) -> list:
    """Return ``work(item)`` of each item, by up to `n_threads` threads."""
    if min(len(items), n_threads) <= 1:
        return [work(item) for item in items]
    done = [None] * len(items)
    left = iter(range(len(items)))

    def run(main):
        while (i := next(left, None)) is not None:
            done[i] = work(items[i])

    def cancel():
        nonlocal left
        left = iter(())

    workers.run(run, min(len(items), n_threads), cancel)
    return done


def resolve_range(byte_range: ByteRange | None, size: int) -> tuple[int, int]:
    """Return the start and the stop of a byte range in a value of `size` bytes, both between 0 and `size`.

    Raises : ValueError, if a number is negative or both are None.
    >>> resolve_range((2, 3), 10), resolve_range((8, 5), 10), resolve_range((None, 4), 10)
    ((2, 5), (8, 10), (6, 10))
    """
    if byte_range is None:
        return 0, size
    start, length = byte_range
    start = None if start is None else index(start)
    length = None if length is None else index(length)
    if (start or 0) < 0 or (length or 0) < 0 or start is length is None:
        raise ValueError(f"byte range {byte_range!r}: expected (start, length), (start, None) or (None, length) "
                         "with numbers of 0 or more")
    if start is None:
        return max(0, size - length), size
    start = min(start, size)
    return start, size if length is None else min(start + length, size)


def _check_disjoint(key, parts):
    """Raise ValueError when two of the parts (start, stop, ...) overlap."""
    last_stop = 0
    for start, stop, _ in sorted(parts, key=lambda part: part[:2]):
        if start < last_stop and start < stop:
            raise ValueError(f"{key!r}: two changes overlap, one ends at {last_stop} and one starts at {start}")
        last_stop = max(last_stop, stop)
