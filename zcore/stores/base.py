"""The interface of a store: keys and values, as the engine and the user see them.

The names are those of the Zarr v3 core specification, "Abstract store interface" (`get`, `get_partial_values`, `set`,
`set_partial_values`, `erase`, `erase_values`, `erase_prefix`, `list`, `list_prefix`, `list_dir`) with `delete` as the
file system store v1.0 has it. A missing key is None everywhere, never an exception; a fault is a `StoreError`, never
a missing key, since a missing chunk reads as fill value.

A new store defines `get` and `list_dir`, and is read-only. It may be written when it also defines `set`,
`set_if_not_exists` and `erase`. All other operations follow from these; a store overrides what it can do better.

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

from zcore.buffers import flat_view
from zcore.errors import ReadOnlyError
from zcore.kernel.holds import ObjectLocks, locks_of
from zcore.stores.keys import POSIX, check_key, check_prefix

ByteRange = tuple[int | None, int | None]
Parts = list[bytes | None]
Identity = tuple[int, int, int, int, int]

# Where the elements of an array lie as they are: a descriptor, which whoever has this closes, or bytes at hand; the
# offset of the first one in there, and the strides, in bytes.
FileLayout = namedtuple("FileLayout", ("source", "offset", "strides"))


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

    Attributes
    ----------
    read_only : bool
        Every change is refused with a `ReadOnlyError`.
    uri : str or None
        The address another process finds the store by.
    native_path : str or None
        The base directory when each key is the file of that name below it and the compiled code may open it.
    key_flavour : str
        Which rules keys have to obey (`zcore.stores.keys`).
    fsync : bool
        Changes reach the disk before the call that makes them returns.
    n_requests : int
        How many values may be asked for at a time where each answer takes long; 0 where it does not, and threads are
        for computing.
    lists : bool
        Whether there are listings; plain HTTP servers have none, and asking for one is a `StoreError` there.
    swaps : bool
        Locks hold back the threads of one process alone, and a value that others may change at the same time is
        replaced by `set_if_same`.
    """

    read_only: bool = True
    uri: str | None = None
    native_path: str | None = None
    key_flavour = POSIX
    fsync: bool = False
    n_requests: int = 0
    lists: bool = True
    swaps: bool = False

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

    # Reading

    @abstractmethod
    def get(self, key: str, byte_range: ByteRange | None = None) -> bytes | None:
        """Return the value of `key`, or None when there is none.

        Parameters
        ----------
        key : str
        byte_range : tuple, optional
            ``(start, length)`` in bytes, ``(start, None)`` up to the end, ``(None, n)`` the last `n` bytes. What lies
            behind the end is left out: the result may be shorter than asked for, or empty.

        Raises
        ------
        InvalidKeyError, ValueError
            `key` is not a key; a number of `byte_range` is negative.
        StoreError
            It is unreachable: the value is there, or may be, and could not be read.
        """

    def get_partial_values(self, requests: Iterable[tuple[str, ByteRange]]) -> Parts:
        """Return the parts of values that the pairs of key and byte range ask for, in their order.

        Keys may repeat. See `get`.
        """
        return [self.get(key, byte_range) for key, byte_range in requests]

    def get_with_identity(
        self, key: str, byte_range: ByteRange | None = None
    ) -> tuple[bytes, Identity | None] | None:
        """Return the value of `key`, or a part as in `get`, and the identity it was read under; None without a value.

        The identity differs whenever the value was replaced; it is None in stores that cannot tell.
        """
        value = self.get(key, byte_range)
        return None if value is None else (value, None)

    def get_parts_with_identity(
        self, key: str, parts: Iterable[ByteRange]
    ) -> list[tuple[bytes, Identity | None] | None]:
        """Return what `get_with_identity` returns for each of several parts of a value."""
        return [self.get_with_identity(key, part) for part in parts]

    def get_first(self, prefix: str, names: Sequence[str], limit: int) -> tuple[int, bytes, Identity | None] | None:
        """Return the first of several keys that has a value: its index, up to `limit` bytes of it, and the identity.

        The keys are `prefix` with each of `names` behind it. None when no key has a value. This finds the document of
        a node whose format is not known.
        """
        for i, name in enumerate(names):
            found = self.get_with_identity(prefix + check_key(name, self.key_flavour), (0, limit))
            if found is not None:
                return i, *found
        return None

    def identity(self, key: str) -> Identity | None:
        """Return the identity that `key` has now: (device, inode, size, mtime_ns, ctime_ns).

        Returns None when there is no value, and in stores that cannot tell.

        Raises : StoreError, if the key is unreachable.
        """
        check_key(key, self.key_flavour)
        return None

    @property
    def label(self) -> str:
        """What a person calls the store, on few characters: the name of a directory, else that of the class."""
        return type(self).__name__

    def layout(self, path: str, decoded: bool) -> FileLayout | None:
        """Return where the elements of the array at `path` lie as they are; None where chunks are decoded.

        Bytes that the store has to decode for it are given only with `decoded`.
        """
        return None

    def blocks(self, path: str) -> Iterator[tuple[str, str, int, Callable[[], object]]]:
        """Iterate over what the arrays at `path` and below it are parts of, where values are parts of something.

        Of each that is its name, the path of an array in it, its size when it is decoded, in bytes, and what reads it
        and raises what is wrong with it.
        """
        return iter(())

    def is_in_blocks(self, path: str) -> bool:
        """Return whether all elements of the array at `path` have been read when its `blocks` have.

        Raises : ZcoreError, if the array does not lie in them as it should.
        """
        return False

    def describe(self, path: str) -> str:
        """Return where the node at `path` is, for messages."""
        return f"{path} in {self!r}" if path else repr(self)

    def locks(self, path: str, document: str) -> ObjectLocks:
        """Return the locks under which the objects of the node at `path` are replaced.

        `document` is the name of its metadata document. All handles of this process get the same locks.
        """
        return locks_of((id(self), path))

    def exists(self, key: str) -> bool:
        """Return whether `key` has a value.

        Raises : StoreError, if it is unreachable; so do `existing`, `getsize` and `extent`.
        """
        return self.getsize(key) is not None

    def existing(self, prefix: str, names: Sequence[str]) -> list[str]:
        """Return those of `names` that are keys with a value when `prefix` stands before them; see `get_first`.

        Whether `prefix` itself is unreachable need not be looked at: `check_reachable` does that.
        """
        return [name for name in names if self.exists(prefix + check_key(name, self.key_flavour))]

    def getsize(self, key: str) -> int | None:
        """Return the size of the value in bytes, or None when there is none."""
        value = self.get(key)
        return None if value is None else len(value)

    def getsize_prefix(self, prefix: str) -> int:
        """Return the size of all values below `prefix`, in bytes.

        Raises : StoreError, if one of them is unreachable: the sum would be too small.
        """
        return sum(self.getsize(key) or 0 for key in self.list_prefix(prefix))

    def extent(self, key: str) -> tuple[str, int, int | None] | None:
        """Return where the bytes of a value lie: a path or URL, the offset and the size there.

        The size is None where they are all of a file. None for a missing key, and for bytes that lie nowhere as they
        are: in memory, or compressed by the store.
        """
        check_key(key, self.key_flavour)
        return None

    def references_of(self, prefix: str):
        """Return where the keys below a prefix lie in other files, for compiled code; None where they do not.

        Nobody changes it meanwhile.
        """
        return None

    def batches(self, keys: Sequence[str], limit: int | None) -> list | None:
        """Return how several values are best read where that is together: see `zcore.stores.reference_batches`.

        None where each is an object of its own. No value is looked at beyond `limit` bytes, if that is given.
        """
        return None

    # Listing

    @abstractmethod
    def list_dir(self, prefix: str) -> Listing:
        """Return the keys and the prefixes right below `prefix`, and what is unreachable there.

        An absent prefix has none of them. A store in which nothing can be unreachable may return a pair of lists.

        Raises : StoreError, if the prefix itself is unreachable.
        """

    def is_empty(self, prefix: str) -> bool:
        """Whether there is nothing below `prefix`, not even what is no key and could be in the way of one."""
        return not any(self.list_dir(prefix))

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
        check_prefix(prefix, self.key_flavour)
        return self._walk(prefix)

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

    def check_reachable(self, prefix: str) -> None:
        """Raise StoreError when `prefix` is unreachable, so that nobody can tell what lies below it."""
        check_prefix(prefix, self.key_flavour)

    # Writing

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

    def set_if_not_exists(self, key: str, value) -> bool:
        """Make `value` the value of `key` unless it has one; return whether that was done.

        Of several callers at once exactly one succeeds. See `set`.
        """
        self._refuse("set_if_not_exists", key)

    def set_if_same(self, key: str, value, identity: Identity | None) -> Identity | None:
        """Make `value` the value of `key` if that has the identity still.

        Returns the identity that it has then, or None if it was not done. As an argument None is the identity of a key
        without a value. Stores whose locks hold back all other writers need none of this: see `swaps`.
        """
        self._refuse("set_if_same", key)

    def set_partial_values(self, changes: Iterable[tuple[str, int, bytes]]) -> None:
        """Write each value into the value of its key, `start` bytes from the beginning.

        A value grows as needed: a gap before `start` is filled with zeros, a missing key starts as empty. All
        changes of one key are made at once, by reading, changing and replacing its value.

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

    def _set_parts(self, key, parts):
        self.set(key, self._with_parts(key, parts))

    def _with_parts(self, key, parts):
        value = bytearray(self.get(key) or b"")
        value += bytes(max(0, max(stop for _, stop, _ in parts) - len(value)))
        for start, stop, view in parts:
            value[start:stop] = view
        return value

    def check_no_special(self, prefix: str, names: Sequence[str]) -> None:
        """Raise StoreError when a key is the name of what is no value and no prefix, and is not to be replaced.

        Such as a FIFO, a socket or a device, for which `set` has no regard. The keys are `prefix` with each of `names`
        behind it.
        """
        for name in names:
            check_key(prefix + name, self.key_flavour)

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

    # Removing

    def erase(self, key: str) -> None:
        """Remove `key` and its value; a missing key is no error. A prefix is not a key and stays.

        Of a link the link is removed and never what it leads to, be it reachable or not.

        Raises : StoreError, if it has the name of what is neither a value nor a link, such as a FIFO: that stays.
        """
        self._refuse("erase", key)

    def erase_values(self, keys: Iterable[str]) -> None:
        """Remove several keys; when one is not a key, none is removed. See `erase`."""
        self._check_writable("erase_values")
        keys = [check_key(key, self.key_flavour) for key in keys]
        for key in keys:
            self.erase(key)

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

    def prune(self, prefix: str) -> None:
        """Remove what an erased prefix leaves where prefixes are things of their own: empty directories."""
        check_prefix(prefix, self.key_flavour)

    def is_link(self, prefix: str) -> bool:
        """Whether what lies below `prefix` lies somewhere else, so that erasing the prefix leaves it alone."""
        check_prefix(prefix, self.key_flavour)
        return False

    def leads_up(self, prefix: str) -> bool:
        """Whether what lies below `prefix` is what lies below one of its own prefixes: a walk would never end."""
        check_prefix(prefix, self.key_flavour)
        return False

    def erase_prefix(self, prefix: str) -> None:
        """Remove all keys below `prefix`; the prefix ``""`` empties the store."""
        self._check_writable("erase_prefix", prefix)
        for key in list(self.list_prefix(prefix)):
            self.erase(key)

    def delete(self, key: str) -> None:
        """Remove the value of `key` and all keys below ``key/``: what file systems call a file or directory.

        Notes : file system store v1.0, "Store API implementation".
        """
        self.erase(key)
        self.erase_prefix(key + "/")

    def _check_writable(self, action, key=None):
        if self.read_only:
            self._refuse(action, key)

    def _refuse(self, action, key):
        what = action if key is None else f"{action} of {key!r}"
        raise ReadOnlyError(f"{self!r} is read-only: {what} is refused", key=key)


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
