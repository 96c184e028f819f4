"""The interface of a store: keys and values.

The names are those of the Zarr v3 core specification, "Abstract store interface" (`get`, `get_partial_values`, `set`,
`set_partial_values`, `erase`, `erase_values`, `erase_prefix`, `list`, `list_prefix`, `list_dir`), and `delete` of the
file system store v1.0. A missing key is None everywhere, never an exception. An error is a `StoreError`, never a
missing key, because a missing chunk reads as fill value.

`Store` lists the methods that the author of a store writes. All others follow from these.

A name without a value is one of these:

- absent: the name does not exist. The answer is None or False, and no listing shows it.
- foreign: the name exists and belongs to no node. To a store it is a key like any other.
- unreachable: the name exists, but its bytes or its listing cannot be read, such as a link to a disk that is not
  mounted. The answer is a `StoreError`, and listings show it.
"""
from __future__ import annotations

import contextlib
import os
from _thread import _local  # of threading, without its import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from itertools import chain
from math import inf
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from weakref import WeakSet

from zcore import workers
from zcore.buffers import flat_view
from zcore.errors import ReadOnlyError, StoreError, ZcoreError, noted, warn
from zcore.kernel.io.locks import ObjectLocks, locks_of
from zcore.stores.keys import POSIX, check_key, check_prefix

if TYPE_CHECKING:
    import builtins
    from typing import Protocol, Self, TypeVar

    from zcore.kernel.refs.table import ReferenceTable
    from zcore.typing import Buffer

    _Bytes = TypeVar("_Bytes", bytes, memoryview)

    class Owner(Protocol):
        """An object with locks."""

        def _renew_locks(self) -> None: ...


class Folders:
    """What only a file system has: directories that exist without keys, links, and names that are no keys.

    A prefix is a directory there. The hierarchy asks `Store.folders` for all of this. A `DirectoryStore` is its own
    answer, and all other stores share this one, which does nothing.
    """

    def directory_of(self, path: str) -> str | None:
        """Return the absolute directory of the node at `path`, if another directory can take its name."""
        return None

    def check_reachable(self, prefix: str) -> None:
        """Raise StoreError if `prefix` is unreachable: then it is unknown which keys are below it."""

    def check_no_special(self, prefix: str, names: Sequence[str]) -> None:
        """Raise StoreError if one of the keys is a FIFO, a socket or a device, which must not be replaced.

        `set` does not check this. The keys are ``prefix + name`` for each of `names`.
        """

    def list_special(self, prefix: str) -> Iterable[str]:
        """Iterate over the names below `prefix` that `check_no_special` refuses.

        Every directory below `prefix` is listed, but none behind a link. So a directory that cannot be listed is an
        error here, too.
        """
        return ()

    def make_directory(self, prefix: str) -> None:
        """Make the directory of `prefix`, without any key.

        Raises
        ------
        InvalidKeyError
            `prefix` is not one.
        KeyConflictError
            The directory, or one above it, has the name of a key.
        """

    def make_directory_with(self, prefix: str, names: Sequence[str], values: Sequence[bytes],
                            is_locked: bool, above: str | None) -> Any:
        """Make the directory of `prefix`, where nothing is, and set ``prefix + name`` for each of `names` in turn.

        Returns the identity of the last one, which is empty if it is not known. None if the last one was not set. Then
        `make_directory` and `set` do it, or raise the reason.

        Parameters
        ----------
        prefix : str
            The directory above exists.
        names, values : sequence
            At most two.
        is_locked : bool
            Lock the directory (`flock`) meanwhile.
        above : str, optional
            A name that has to be in the directory above once this one is locked.
        """
        return None

    def set_at(self, directory: int, key: str, value: Buffer) -> None:
        """Set a key whose directory is open as the descriptor `directory`, wherever a move has taken that."""
        raise NotImplementedError

    def prune(self, prefix: str, below: bool = False) -> None:
        """Remove the empty directories that an erased prefix leaves: at, above and maybe `below` it."""

    def is_link(self, prefix: str) -> bool:
        """Return whether `prefix` is a link, so that erasing it does not erase the keys below it."""
        return False

    def leads_up(self, prefix: str) -> bool:
        """Return whether `prefix` is a link to one of its own prefixes, where a walk would never end."""
        return False

    def may_enter(self, prefix: str, entered: set[tuple[int, int]]) -> bool:
        """Return whether a walk enters `prefix`; `entered` is a set that lives as long as the walk."""
        return True

NO_FOLDERS = Folders()

ByteRange: TypeAlias = tuple[int | None, int | None]
Parts: TypeAlias = list[bytes | None]
Identity: TypeAlias = tuple[int, int, int, int, int]
Blocks: TypeAlias = Iterator[tuple[str, str | None, int, Callable[[], object]]]

# The four answers of `Store.locate`: where the bytes of the values below a prefix are.

class Directory(NamedTuple):
    """Each key below the prefix is the file of that name below `path`, and the compiled code may open it."""

    path: str


class FileParts(NamedTuple):
    """Values are parts of other files.

    `table`, a `zcore.kernel.refs.table.ReferenceTable`, lists them and does not change. ``open(target)`` returns a new
    descriptor of one of the files. It raises StoreError for a target that `get` reads. ``batches(keys, limit)``, if
    given, returns the values that are read together: `zcore.stores.reference.store.Batch`.
    """

    table: ReferenceTable
    open: Callable[[str], int]
    batches: Callable[[Sequence[str], int | None], Any] | None = None


class Strided(NamedTuple):
    """The elements of an array are in a file or a buffer without any encoding.

    ``open()`` returns a new descriptor of the file, or bytes; `offset` is that of the first element, and `strides` are
    in bytes. With `is_decoded`, ``open()`` decodes.
    """

    open: Callable[[], int | Buffer]
    offset: int
    strides: tuple[int, ...]
    is_decoded: bool = False


class Objects(NamedTuple):
    """`get` reads values. `set` replaces them, and `set_if_not_exists` and `set_if_same` do so on a condition."""

OBJECTS = Objects()

# Items that are worked on at once, for each request at the same time: `outcomes` waits for the last of them.
_N_ROUNDS = 8
SMALL_NBYTES = 1 << 22     # of an array that is read or written at the same time as others, where answers take long
_MAX_DUPLICATED = 8     # whole values in memory at a time
_changes = [0]
_thread = _local()


class AtMost(tuple):
    """The byte range ``(0, n)`` of a caller that wants a whole value, and refuses one of `n` bytes or more.

    A store that reads by ranges reads no more than that. A store that knows no sizes may fetch the whole value, and
    return the first `n` bytes: there a range may not end behind the value.
    """

    __slots__ = ()

    def __new__(cls, n: int) -> AtMost:
        return super().__new__(cls, (0, n))


class Within(tuple):
    """The byte range of a caller that expects it to lie in the value, as the index of a shard says.

    If it does not, a store that knows no sizes may return fewer bytes than there are.
    """

    __slots__ = ()


class Listing(NamedTuple):
    """The complete names right below a prefix, each list sorted.

    Attributes
    ----------
    keys : list of str
    prefixes : list of str
        With a final ``/``.
    unreachable : sequence of str
        Spelled like keys, because it is unknown which of them are prefixes.
    """

    keys: list[str]
    prefixes: list[str]
    unreachable: Sequence[str] = ()


class Store(ABC):
    """Keys and values; a value is a sequence of bytes.

    The author of a store writes the required methods, and any of the optional ones. No other methods are called.

    =====================  ============================================================================================
    required               effect
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
    `getsize`              the length of the value from `get`
    `existing`             `getsize` of each key
    `get_first`            `get_with_identity` of each key in turn
    `list_sizes`           a walk by `list_dir`, with unknown sizes
    `set_if_not_exists`    `existing`, then `set`, under a lock of this process
    `set_if_same`          none; needed where `swaps` is true
    `erase_values`         `erase` of each key
    `locate`               `Objects()`: `get` reads values
    `extent`               None: a value is no part of a file
    =====================  ============================================================================================

    `read_only` is false in a store that can be written. The other attributes may stay as they are.

    Attributes
    ----------
    read_only : bool
        Every change is refused with a `ReadOnlyError`.
    uri : str or None
        The address by which another process finds the store. Stores of one URI share their locks.
    label : str
        A short name for people: that of a directory, else that of the class.
    key_flavour : str
        The rules for keys (`zcore.stores.keys`).
    fsync : bool
        A change is on the disk when its call returns.
    n_requests : int
        Most requests at a time, each in a thread, where an answer takes long; 0 where it does not, and threads only
        compute.
    lists : bool
        Whether the store has listings. A plain HTTP server has none, and a listing is a `StoreError`.
    decodes : bool
        Values are elements of a file of another program, such as TIFF, so documents do not say how they are stored.
    swaps : bool
        Locks exclude only the threads of this process. A value that other processes may change is replaced by a
        compare-and-swap, `set_if_same`.
    is_transaction : bool
        Nobody else sees a change before all are committed, as in a session of Icechunk, which takes no chunk without
        its document.
    folders : Folders
        What only a file system has: directories and links (`zcore.stores.base`).
    """

    read_only: bool = True
    uri: str | None = None
    key_flavour: str = POSIX
    fsync: bool = False
    n_requests: int = 0
    lists: bool = True
    decodes: bool = False
    swaps: bool = False
    is_transaction: bool = False
    folders: Folders = NO_FOLDERS

    @property
    def label(self) -> str:
        """A short name for people."""
        return type(self).__name__

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Check what the methods of another author return. A pair of lists from `list_dir` becomes a `Listing`."""
        super().__init_subclass__(**keywords)
        if not cls.__module__.startswith("zcore."):
            for name in _RETURNS.keys() & cls.__dict__:
                setattr(cls, name, _checked(cls.__dict__[name], name, *_RETURNS[name]))

    # ------------------------------------------------------------------------------------------------------------------
    # The author of a store writes: required
    # ------------------------------------------------------------------------------------------------------------------

    @abstractmethod
    def get(self, key: str, byte_range: ByteRange | None = None) -> bytes | None:
        """Return the value of `key`, or None for a missing key.

        Parameters
        ----------
        key : str
        byte_range : tuple, optional
            ``(start, length)`` in bytes, ``(start, None)`` up to the end, ``(None, n)`` the last `n` bytes. A range is
            cut at the end of the value, so the result may be shorter, or empty. See `resolve_range`.

        Raises
        ------
        InvalidKeyError, ValueError
            `key` is not a key; a number of `byte_range` is negative.
        StoreError
            The key is unreachable: it has a value, or may have one, that could not be read.
        """

    @abstractmethod
    def list_dir(self, prefix: str) -> Listing:
        """Return the keys, the prefixes and the unreachable names right below `prefix`.

        An absent prefix has none of them. A store without unreachable names may return a pair of lists.

        Raises : StoreError, if the prefix itself is unreachable.
        """

    def set(self, key: str, value: Buffer) -> None:
        """Make `value` the value of `key`: readers see the old one or the new one.

        Parameters
        ----------
        key : str
        value : bytes-like
            Any C-contiguous buffer; its bytes are copied.

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

        A link is removed itself, never its target, even if that is unreachable.

        Raises : StoreError, if the name is that of neither a value nor a link, such as a FIFO, which stays.
        """
        self._refuse("erase", key)

    # ------------------------------------------------------------------------------------------------------------------
    # The author of a store may write: optional
    # ------------------------------------------------------------------------------------------------------------------

    def identity(self, key: str) -> Identity | None:
        """Return the identity that `key` has now: (device, inode, size, mtime_ns, ctime_ns).

        Returns None for a missing key, and in stores that have no identities.

        Raises : StoreError, if the key is unreachable.
        """
        check_key(key, self.key_flavour)
        return None

    def get_with_identity(
        self, key: str, byte_range: ByteRange | None = None
    ) -> tuple[bytes, Identity | None] | None:
        """Return the value of `key`, or a part as in `get`, with the identity at that time; None for a missing key.

        The identity differs whenever the value was replaced. It is None in stores that have no identities.
        """
        identity = self.identity(key)
        value = self.get(key, byte_range)
        return None if value is None else (value, identity if self.identity(key) == identity else None)

    def getsize(self, key: str) -> int | None:
        """Return the size of the value in bytes, or None for a missing key."""
        value = self.get(key)
        return None if value is None else len(value)

    def settled(self) -> Callable[[], bool] | None:
        """Return a function that tells whether all values that were read until then were last changed before this call.

        None, if the store cannot tell, or if a value that was read lately was changed lately.
        """
        return None

    def existing(self, prefix: str, names: Sequence[str]) -> builtins.list[str]:
        """Return those of `names` for which ``prefix + name`` is a key with a value.

        This need not check whether `prefix` itself is unreachable: `Folders.check_reachable` does that.
        """
        keys = [prefix + check_key(name, self.key_flavour) for name in names]
        return [name for name, size in zip(names, together(self, self.getsize, keys), strict=True) if size is not None]

    def get_first(self, prefix: str, names: Sequence[str], limit: int) -> tuple[int, bytes, Identity | None] | None:
        """Return the first of several keys that has a value: its index, up to `limit` bytes, and the identity.

        The keys are ``prefix + name`` for each of `names`. None if no key has a value. This finds the document of a
        node of unknown format.
        """
        def get(name):
            return self.get_with_identity(prefix + check_key(name, self.key_flavour), AtMost(limit))

        # First one key, which most nodes have; then the others, at the same time where answers take long.
        for first, part in ((0, names[:1]), (1, names[1:])):
            # Closed here, as a finalizer would swallow a Ctrl-C.
            with contextlib.closing(outcomes(self, get, part)) as looks:
                for i, outcome in enumerate(looks, first):
                    if isinstance(outcome, ZcoreError):
                        raise outcome     # no key before this one has a value
                    if outcome is not None:
                        return i, *outcome
        return None

    def list_sizes(self, prefix: str) -> Iterator[tuple[str, int | None]]:
        """Iterate over the keys below `prefix`, sorted, each with its size in bytes, or None if a listing has no sizes.

        See `list_prefix`. Overridden by stores that list all levels at once, or list sizes.

        Raises : InvalidKeyError, by the call, if `prefix` is not one.
        """
        check_prefix(prefix, self.key_flavour)
        return ((key, None) for key in _walk(self, prefix))

    def set_if_not_exists(self, key: str, value: Buffer) -> bool:
        """Make `value` the value of a missing key; return whether that was done.

        Of several callers at once exactly one succeeds; by default, only of those in this process. See `set`.
        """
        self._check_writable("set_if_not_exists", key)
        flat_view(value)     # a wrong type is refused, also if the key has a value
        with self._alone(check_key(key, self.key_flavour)):
            if self.exists(key):
                return False
            self.set(key, value)
            return True

    def set_if_same(self, key: str, value: Buffer, identity: Identity | None) -> Identity | None:
        """Make `value` the value of `key` if its identity is still `identity`: a compare-and-swap.

        Returns the new identity, or None if it was not done. As an argument, None is the identity of a missing key.
        Only stores with `swaps` need this.
        """
        self._refuse("set_if_same", key)

    def can_swap(self) -> bool:
        """Return whether `set_if_same` works, which a service may have to show."""
        return self.swaps

    def erase_values(self, keys: Iterable[str]) -> None:
        """Remove several keys; if one is invalid, none is removed. See `erase`."""
        self._check_writable("erase_values")
        keys = [check_key(key, self.key_flavour) for key in keys]
        run_together(self.erase, keys, self.n_requests)

    def locate(self, prefix: str) -> Directory | FileParts | Strided | Objects:
        """Return where the bytes of the values below the `prefix` of a node are.

        `Directory` and `Objects` stay valid as long as the store. The other answers are for one call of the engine.
        """
        return OBJECTS

    def extent(self, key: str) -> tuple[str, int, int | None] | None:
        """Return a reference to the bytes of one value: a path or URL, an offset and a size.

        The size is None for a whole file. None for a missing key, and for a value in memory or compressed by the store.
        """
        check_key(key, self.key_flavour)
        return None

    # ------------------------------------------------------------------------------------------------------------------
    # For callers. These follow from the methods above, and need not be overridden.
    # ------------------------------------------------------------------------------------------------------------------

    def get_buffer(self, key: str, byte_range: ByteRange | None = None) -> bytes | memoryview | None:
        """Return the same as `get`. A memoryview of bytes that nobody changes saves a copy, where the store has one."""
        return self.get(key, byte_range)

    def exists(self, key: str) -> bool:
        """Return whether `key` has a value.

        Raises : StoreError, if it is unreachable; so do `existing`, `getsize` and `extent`.
        """
        return bool(self.existing("", (key,)))

    def get_partial_values(self, requests: Iterable[tuple[str, ByteRange]]) -> Parts:
        """Return a part of a value for each pair of key and byte range, in their order.

        Keys may repeat. See `get`.
        """
        requests = [(check_key(key, self.key_flavour), byte_range) for key, byte_range in requests]
        for _, byte_range in requests:
            resolve_range(byte_range, 0)
        return together(self, lambda request: self.get(*request), requests)

    def get_parts_with_identity(
        self, key: str, parts: Iterable[ByteRange]
    ) -> builtins.list[tuple[bytes, Identity | None] | None]:
        """Return what `get_with_identity` returns for each of several parts of a value."""
        return together(self, lambda part: self.get_with_identity(key, part), list(parts))

    def list(self) -> Iterator[str]:
        """Return an iterator over all keys."""
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Return an iterator over the keys below `prefix`, sorted. Unreachable names are among them.

        It is unknown whether keys lie below an unreachable name. Reading its value raises `StoreError`, so a caller
        that copies all listed keys misses nothing.

        Only the names in one directory, and those in the directories above it, are in memory. No directory stays open.
        Keys that are set or erased meanwhile may or may not appear.
        """
        return (key for key, _ in self.list_sizes(prefix))

    def getsize_prefix(self, prefix: str) -> int:
        """Return the size of all values below `prefix`, in bytes.

        Raises : StoreError, if one of them is unreachable: the sum would be too small.
        """
        return sum(self.getsize(key) or 0 if size is None else size for key, size in self.list_sizes(prefix))

    def set_partial_values(self, changes: Iterable[tuple[str, int, Buffer]]) -> None:
        """Write each value into the value of its key, `start` bytes from the beginning.

        A value grows as needed: a gap before `start` is filled with zeros, and a missing key starts empty. All
        changes of one key are one read-modify-write. Where other processes may change the value at the same time
        (`swaps`), their changes may be lost.

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
        """Remove the value of `key` and all keys below ``key/``, like a file or a directory.

        Notes : file system store v1.0, "Store API implementation".
        """
        self.erase(key)
        self.erase_prefix(key + "/")

    def move(self, source: str, destination: str, last: Sequence[str] = (),
             renewed: Callable[[bytes], bytes] | None = None) -> None:
        """Move the keys below the prefix `source` to the prefix `destination`, below which there is no key.

        If that takes several steps, keys appear at the destination before they vanish at the source. Keys whose last
        part is in `last`, documents without which the other keys mean nothing, appear last and vanish first, and what
        `renewed` returns for their values takes their place. After an error before that, none stays at the destination.
        """
        self._check_writable("move", source)
        check_prefix(destination, self.key_flavour)
        turns = {}     # the document of a group comes after those below it
        for key in self.list_prefix(source):
            turns.setdefault(-key.count("/") if key.rpartition("/")[2] in last else -inf, []).append(key)
        upwards = [turns[turn] for turn in sorted(turns)]
        begun: list[list[str]] = []
        try:
            for keys in upwards[::-1] if self.is_transaction else upwards:
                begun.append([destination + key[len(source):] for key in keys])
                self.duplicate(zip(keys, begun[-1], strict=True),
                               renewed if keys[0].rpartition("/")[2] in last else None)
        except BaseException:
            with contextlib.suppress(ZcoreError):     # the first error is the one to tell
                for keys in reversed(begun):
                    self.erase_values(keys)
            raise
        for keys in reversed(upwards):
            self.erase_values(keys)

    def duplicate(self, keys: Iterable[tuple[str, str]], renewed: Callable[[bytes], bytes] | None = None) -> None:
        """Make the value of the first of each pair of keys, or what `renewed` returns for it, that of the second, too.

        A missing one is passed over.
        """
        def copy(pair):
            # Another process may have erased it meanwhile, as a chunk that holds only the fill value.
            if (value := self.get(pair[0])) is not None:
                self.set(pair[1], value if renewed is None else renewed(value))

        workers.each_next(copy, iter(keys), max(1, min(self.n_requests, _MAX_DUPLICATED)))

    def describe(self, path: str) -> str:
        """Return the location of the node at `path`, for messages."""
        return f"{path} in {self!r}" if path else repr(self)

    def locks(self, path: str, document: str | None, by_files: bool = False) -> ObjectLocks:
        """Return the locks under which the objects of the node at `path` are replaced.

        `document` is the name of its metadata document. All handles of this process get the same locks. If the store
        has files and `by_files`, they hold among processes by lock files. Then None as the document is the lock under
        which a node comes or goes at `path`.
        """
        return locks_of((self._lock_name, path))

    def is_empty(self, prefix: str) -> bool:
        """Return whether no name is below `prefix`, not even one that is no key but would conflict with one."""
        return not any(self.list_dir(prefix))

    def close(self) -> None:  # noqa: B027 (what most stores do)
        """Give back what the store holds, such as an open file. Most stores hold nothing, and can be used further."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    # Shared by the stores of zcore

    @property
    def _lock_name(self):
        """The name that all handles of one store have in common."""
        return self.uri or id(self)

    @property
    def _token(self):
        """For dask, what another store does not have, unless the identities of its documents differ."""
        return self.__dict__.setdefault("_unlike_others", self.uri or os.urandom(16))

    def _set_parts(self, key, parts):
        with self._alone(key):
            self.set(key, with_parts(self.get(key), parts))

    def _alone(self, key):
        """Return a context manager that excludes other threads whose change of a key depends on its value."""
        return locks_of((self._lock_name, None)).object(key)     # None is the path of no node

    def _check_writable(self, action, key=None):
        _changes[0] += 1
        if self.read_only:
            self._refuse(action, key)

    def _refuse(self, action, key):
        what = action if key is None else f"{action} of {key!r}"
        raise ReadOnlyError(f"{self!r} is read-only: {what} is refused", key=key)

# Functions that open or create take a path or a URL, a store, or a mapping, which is a reference set.
StoreLike: TypeAlias = str | os.PathLike[str] | Store | Mapping[str, Any]


class StorePath(NamedTuple):
    """The place of a node, as zarr-python has it; its text is a URL, if the store has one."""

    store: Store
    path: str

    def __str__(self) -> str:
        return f"{self.store.uri or repr(self.store)}/{self.path}".rstrip("/")


class FoundStore(Store):
    """A store whose `_found` returns a value, or a part, with its identity, as `get_with_identity` does."""

    @abstractmethod
    def _found(self, key, byte_range): ...

    def get(self, key: str, byte_range: ByteRange | None = None) -> bytes | None:
        found = self._found(key, byte_range)
        return None if found is None else found[0]

    def get_with_identity(
        self, key: str, byte_range: ByteRange | None = None
    ) -> tuple[bytes, Identity | None] | None:
        return self._found(key, byte_range)


class PutStore(Store):
    """A store whose `_put` makes a value that of a key, unless `exclusive` and it has one. Returns whether it did."""

    @abstractmethod
    def _put(self, key, value, exclusive): ...

    def set(self, key: str, value: Buffer) -> None:
        self._check_writable("set", key)
        self._put(key, value, exclusive=False)

    def set_if_not_exists(self, key: str, value: Buffer) -> bool:
        self._check_writable("set_if_not_exists", key)
        return self._put(key, value, exclusive=True)


class BlockStore(Store):
    """A store whose values are parts of blocks with checksums. `zcore.verify` reads the blocks."""

    @abstractmethod
    def blocks(self, path: str) -> Blocks:
        """Iterate over the blocks of the arrays at `path` and below it.

        Yields its name, the path of an array in it, its decoded size in bytes, and a function that reads it and raises
        an error if it is damaged. The path is None if the name is a key: then the key tells.
        """

    @abstractmethod
    def is_in_blocks(self, path: str) -> bool:
        """Return whether reading its `blocks` reads all elements of the array at `path`.

        Raises : ZcoreError, if the array does not fit into its blocks.
        """


def directory_at(store: Store, prefix: str = "") -> str | None:
    """Return the directory that `Store.locate` names, or None."""
    found = store.locate(prefix)
    return found.path if type(found) is Directory else None


def outcomes(store: Store, work: Callable[[Any], Any], items: Sequence[Any], *, ahead: bool = False) -> Iterator[Any]:
    """Iterate over ``work(item)`` for each item, or the ZcoreError that it raises.

    Where answers take long, many items are worked on at the same time. With `ahead`, there is a request for each at
    first, as the caller may stop, and then they become more and more. When this process changes a store, results from
    before the change are dropped. From then on each item is worked on when the caller comes to it.
    """
    def tried(item):
        try:
            return work(item)
        except ZcoreError as error:
            return error

    most = n_at_once(store)
    first, n, n_before = 0, store.n_requests if ahead else most, n_changes()
    while most and first < len(items):
        for i, outcome in enumerate(together(store, tried, items[first:first + n]), first):
            if ahead and n_changes() != n_before:
                most, first = 0, i
                break
            yield outcome
        else:
            first, n = first + n, min(4 * n, most)
    yield from map(tried, items[first:])


def n_at_once(store: Store) -> int:
    """Return how many items `outcomes` works on before it comes to the first; 0 if one after the other."""
    return _N_ROUNDS * store.n_requests if store.n_requests > 1 else 0


def n_changes() -> int:
    """Return a number that grows with each change that this process begins by a method of any store."""
    return _changes[0]


def together(store: Store, work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Return ``work(item)`` for each item, which changes nothing; at the same time where answers take long.

    After Ctrl-C the calls go on in the background. For changes of a store use `run_together`, which waits for them.
    """
    if store.n_requests > 1 and len(items) > 1:
        return workers.aside(run_together, work, items, store.n_requests)
    return [work(item) for item in items]


def run_together(work: Callable[[Any], Any], items: Sequence[Any], n_threads: int) -> list[Any]:
    """Return ``work(item)`` for each item, by up to `n_threads` threads.

    Work that calls this again is one of many already, so it goes on alone: else requests would multiply. After a
    failure no further call begins, and the others come to their end. The failure of the first such item is raised.
    """
    if min(len(items), n_threads) <= 1 or getattr(_thread, "is_one_of_many", False):
        return [work(item) for item in items]
    done, failed, notes = [None] * len(items), {}, [()] * len(items)

    def run(i):
        _thread.is_one_of_many = True
        try:
            if i < min([*failed, len(items)]):
                with workers.to_the_end(), noted() as notes[i]:
                    done[i] = work(items[i])
        except Exception as error:
            failed[i] = error
        finally:
            _thread.is_one_of_many = False

    # Some of them wait for others of these calls, as where the parts of several shards are read at the same time.
    workers.start(n_threads)
    workers.each(run, range(len(items)), n_threads)
    for message in chain(*notes):     # in this thread, as a warning names the caller's line
        warn(message)
    if failed:
        try:
            raise failed[min(failed)]
        finally:
            failed.clear()     # its traceback leads here
    return done


def resolve_range(byte_range: ByteRange | None, size: int) -> tuple[int, int]:
    """Return the start and the stop of a byte range in a value of `size` bytes, both between 0 and `size`.

    Raises : ValueError, if a number is negative or both are None; TypeError, if it is none.
    >>> resolve_range((2, 3), 10), resolve_range((8, 5), 10), resolve_range((None, 4), 10)
    ((2, 5), (8, 10), (6, 10))
    """
    if byte_range is None:
        return 0, size
    try:
        start, length = byte_range
        start = None if start is None else index(start)
        length = None if length is None else index(length)
        error = ValueError if (start or 0) < 0 or (length or 0) < 0 or start is length is None else None
    except (TypeError, ValueError) as exc:
        error = type(exc)
    if error is not None:
        raise error(f"byte range {byte_range!r:.60}: expected (start, length), (start, None) or (None, length) with "
                    "numbers of 0 or more")
    if start is None:
        return max(0, size - length), size
    start = min(start, size)
    return start, size if length is None else min(start + length, size)


def right_below(prefix: str, keys: Iterable[str]) -> Listing:
    """Return the listing of a prefix, made of all keys below it. Names that no store has are left out."""
    found, prefixes = [], set()
    for key in keys:
        name, slash, _ = key[len(prefix):].partition("/")
        if name and slash:
            prefixes.add(f"{prefix}{name}/")
        elif name:
            found.append(key)
    return Listing(sorted(found), sorted(prefixes))


def as_bytes(store: Store, key: str, value: Any) -> bytes:
    """Return the value that a store or mapping of another author gave for a key: any buffer is taken as bytes.

    Raises : StoreError, if it is none.
    """
    if type(value) is bytes:
        return value
    try:
        return bytes(memoryview(value))
    except TypeError as exc:
        raise StoreError(f"{key!r} of {store!r} is a {type(value).__name__}, expected bytes", key=key) from exc


def _checked(method, name, expected, check):
    """Return a method whose result is what `check` makes of it; see `_RETURNS`."""
    def right(self, found, *arguments, check=check, **named):
        try:
            return check(found, *arguments, **named)
        except (AttributeError, LookupError, TypeError, ValueError) as exc:
            key = (*arguments, *named.values())[0]
            raise StoreError(f"{name}({key!r}) of {self!r} returned {found!r:.60}, expected {expected}",
                             key=key) from exc

    @wraps(method)
    def checked(self, *arguments, **named):
        found = method(self, *arguments, **named)
        if check is not _sized:
            return right(self, found, *arguments, **named)
        items = right(self, found, *arguments, check=lambda found, prefix: iter(found), **named)
        return (right(self, item, *arguments, **named) for item in items)

    return checked


def _or_none(check):
    return lambda found, *arguments, **named: None if found is None else check(found, *arguments, **named)


def _value(found, *_, **__):
    return found if type(found) is bytes else bytes(memoryview(found))


@_or_none
def _identity(found, *_, **__):
    device, inode, size, changed, noted = found
    return device, inode, size, changed + 0, noted + 0     # numbers are subtracted from them


@_or_none
def _with_identity(found, *_, **__):
    value, identity = found
    return _value(value), _identity(identity)


@_or_none
def _first(found, prefix, names, limit):
    return range(len(names))[found[0]], *_with_identity(found[1:])


def _listed(found, prefix):
    listing = Listing(*[sorted({*names}) for names in found])
    for names, end in zip(listing[:2], ("", "/"), strict=True):
        if any(not name.startswith(prefix) or name[len(prefix):].partition("/")[1:] != (end, "") for name in names):
            raise ValueError("a name is not complete, or not right below the prefix")
    return listing


def _sized(found, prefix):
    key, size = found
    if not key.startswith(prefix):
        raise ValueError("a key is not complete")
    return key, _size(size)


_size = _or_none(lambda found, *_, **__: index(found))
# The results of methods by other authors: in words for errors, and the function that checks and converts a result.
_IDENTITY = "an identity, which is five numbers or None"
_RETURNS = {
    "get": ("bytes or None", _or_none(_value)),
    "list_dir": ("the complete keys right below, and the complete prefixes, which end with a slash", _listed),
    "identity": (_IDENTITY, _identity),
    "get_with_identity": (f"None, or a value and {_IDENTITY}", _with_identity),
    "getsize": ("a number of bytes or None", _size),
    "existing": ("a list of those of the names that have a value", lambda found, prefix, names: sorted(
        found, key={name: i for i, name in enumerate(names)}.__getitem__)),
    "get_first": (f"None, or the index of a name, its value and {_IDENTITY}", _first),
    "list_sizes": ("an iterator of pairs: a complete key, and a number of bytes or None", _sized),
    "set_if_not_exists": ("True or False", lambda found, *_, **__: found | False),
    "set_if_same": (_IDENTITY, _identity),
    "extent": ("None, or a path or URL, an offset and a size or None", _or_none(
        lambda found, *_, **__: (found[0] + "", index(found[1]), _size(found[2])))),
}


def sliced(value: _Bytes, byte_range: ByteRange | None) -> _Bytes:
    """Return a byte range of a value; see `resolve_range`."""
    return value[slice(*resolve_range(byte_range, len(value)))]


def with_parts(value: bytes | None, parts: Sequence[tuple[int, int, Buffer]]) -> bytearray:
    """Return a value with each part (start, stop, bytes) in its place: see `Store.set_partial_values`."""
    changed = bytearray(value or b"")
    changed += bytes(max(0, max(stop for _, stop, _ in parts) - len(changed)))
    for start, stop, view in parts:
        changed[start:stop] = view
    return changed


def _walk(store, prefix):
    pending = [prefix]
    entered = set()
    while pending:
        item = pending.pop()
        if item and item[-1] != "/":
            yield item
        elif store.folders.may_enter(item, entered):
            found = store.list_dir(item)
            pending += sorted([*found.keys, *found.prefixes, *found.unreachable], reverse=True)


def _check_disjoint(key, parts):
    """Raise ValueError when two of the parts (start, stop, ...) overlap."""
    last_stop = 0
    for start, stop, _ in sorted(parts, key=lambda part: part[:2]):
        if start < last_stop and start < stop:
            raise ValueError(f"{key!r}: two changes overlap, one ends at {last_stop} and one starts at {start}")
        last_stop = max(last_stop, stop)


# New locks in forked children: no thread of a child would release a lock that another thread of its parent held.

_owners: WeakSet[Owner] = WeakSet()


def renew_in_children(owner: Owner) -> None:
    """Have `owner._renew_locks()` called in each child that is forked while the owner lives."""
    _owners.add(owner)


def _renew():
    for owner in list(_owners):
        owner._renew_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
