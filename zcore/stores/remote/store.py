"""Objects of a service as a store: S3, Google Cloud Storage, Azure, HTTP servers, filesystems of fsspec.

One request takes as long as decoding thousands of chunks, so many requests are in flight at a time, whatever the number
of CPUs. The identity of a value is made of its tag (ETag). A value that other processes may change is replaced by
compare-and-swap: only while it still has the tag that it was read with.
"""
from __future__ import annotations

import os
from _queue import SimpleQueue
from _thread import _local, get_ident  # of threading, without its import time
from collections import deque
from collections.abc import Iterator
from functools import partial
from math import inf
from operator import index, itemgetter
from time import time
from typing import TYPE_CHECKING

from zcore import workers
from zcore.buffers import flat_view
from zcore.errors import LockError, StoreError, UnsupportedError, install_of
from zcore.kernel.io.documents import Tickets
from zcore.ranges import FAR_NBYTES, ByteSource
from zcore.stores.base import ByteRange, FoundStore, Identity, Listing, renew_in_children, resolve_range, run_together
from zcore.stores.keys import TEMPORARY, check_key, check_path, check_prefix, is_key
from zcore.stores.remote.client import ABSENT, ConditionError, client_of, hashed
from zcore.text.arguments import as_bool
from zcore.trust.base_path import file_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Self

    from zcore.typing import Buffer

N_REQUESTS = 64            # in flight at a time
MAX_TAGS = 4096            # in memory
MAX_DELETED = 1000         # objects that one call deletes
MAX_CLOCK_ERROR = 3600     # seconds that the clock here may be before that of a service
MAX_MESSAGE = 400          # characters of an error message of a library
# A client without credentials requests them here.
_METADATA_HOSTS = ("169.254.169.254", "169.254.170.2", "metadata.google.internal")


class RemoteStore(FoundStore):
    """Keys and values at a service.

    Parameters
    ----------
    store : str or object
        A URL (``s3://bucket/path``, ``gs://``, ``az://``, ``https://``), a store of obstore, a filesystem or mapper of
        fsspec, or an object with `get` and `get_range` (`zcore.stores.remote.object`).
    path : str, optional
        Prefix of the names of all objects, below `store`.
    read_only : bool
        Refuse every change. A plain HTTP server is always read-only.
    n_requests : int
        Requests in flight at a time.
    **options
        Of `obstore.store.from_url`, for a URL: ``endpoint``, ``region``, ``access_key_id``, ``skip_signature``,
        ``client_options``, ``retry_config`` and more.

    Raises
    ------
    UnsupportedError
        The package that speaks to the service is not installed.
    StoreError
        By the methods, for any error except a missing object: no permission, an error of the server, no answer in time,
        or fewer bytes than promised.

    Notes
    -----
    Keys may be prefixes of other keys, as services have no directories.

    Examples
    --------
    >>> store = RemoteStore("s3://bucket/weather.zarr", region="eu-central-1", skip_signature=True)  # doctest: +SKIP
    >>> zcore.open(store)                                                                            # doctest: +SKIP
    """

    swaps = True
    _can_swap: bool | None = None     # not asked yet

    def __init__(self, store: Any, *, path: str = "", read_only: bool = False, n_requests: int = N_REQUESTS,
                 **options: Any) -> None:
        self._made_of = store, {"path": path, "read_only": read_only, "n_requests": n_requests, **options}
        self._client, name = client_of(store, options)
        path = file_path(path)
        # To a filesystem on this machine, a path without the sign lies in the working directory.
        root = self._client.root if path.startswith("/") and not name else ""
        path = check_path(path.strip("/"))
        self._prefix = root + "/".join([part for part in (name, path) if part])
        self._prefix += "/" if self._prefix else ""
        self.read_only: bool = as_bool(read_only, "read_only") or not self._client.writes
        self.lists: bool = self._client.lists
        self.n_requests: int = index(n_requests)
        if self.n_requests < 1:
            raise ValueError(f"n_requests must be at least 1, not {n_requests}")
        url = self._client.url
        self.url: str = (url if url.endswith("://") else url.rstrip("/") + "/") + self._prefix
        self.uri: str | None = self.url if isinstance(store, str) else None
        # Two services may have the same names and tags.
        self._service = repr((store, options)) if isinstance(store, str) else _numbers.next()
        self._tags = {}
        # By threads, as none of them must wait for another one in a signal handler: the latest change of an object that
        # was read.
        self._newest = {0: 0.0 if self._client.dates else inf}
        self._honors_conditions = False
        self._thread = _local()     # kept in a child: its thread is in the middle of what it was
        self._renew_locks()
        renew_in_children(self)

    @classmethod
    def from_url(cls, url: str, *, storage_options: Mapping[str, Any] | None = None, read_only: bool = False) -> Self:
        """Return the store at a URL that fsspec opens, such as ``simplecache::s3://bucket/path``.

        `storage_options` are those of fsspec, as zarr-python passes them. obstore, which opens the URL of
        `RemoteStore`, is faster, and can compare and swap.

        Raises : UnsupportedError, if fsspec or its package for the service is not installed.
        """
        if not isinstance(url, str):
            raise TypeError(f"expected a URL, found {url!r:.60}")
        try:
            from fsspec.core import url_to_fs

            filesystem, path = url_to_fs(url, **(storage_options or {}))
        except ImportError as exc:
            raise UnsupportedError(f"{url!r:.200} by fsspec: {exc}; without options of fsspec, obstore opens the URLs "
                                   f"of services: {install_of('remote')}", feature="fsspec") from exc
        return cls(filesystem, path=path, read_only=read_only)

    def _renew_locks(self):
        self._free = SimpleQueue()      # a token for each further request that may be in flight
        for _ in range(self.n_requests):
            self._free.put(True)

    def __repr__(self) -> str:
        return f"RemoteStore({self.url!r}{', read-only' if self.read_only else ''})"

    def __reduce__(self) -> tuple[Any, ...]:
        source, options = self._made_of
        return partial(RemoteStore, **options), (source,)

    @property
    def label(self) -> str:
        """The last part of the URL."""
        return self.url.rstrip("/").rpartition("/")[2]

    @property
    def _lock_name(self):
        # The same for all stores of this URL, also if they were made with a client.
        return self.url

    # Requests

    def _ask(self, what, key, function, *args, byte_range=None):
        """Return the result of a client's method; any error becomes a `StoreError` with URL and range."""
        return workers.aside(partial(self._change, what, key, function, *args, byte_range=byte_range,
                                     is_inner=self._is_asking()))

    def _is_asking(self):
        """Return whether this thread is in the middle of a request. Another one would wait for the token of that."""
        return getattr(self._thread, "is_asking", False)

    def _change(self, what, key, function, *args, byte_range=None, is_inner=False):
        """Do the same for a method that changes an object. It always waits for the result."""
        was_asking = self._is_asking()
        held, free = [], self._free
        given_back = map(free.put, held)     # made before: Ctrl-C may come behind each call, so none precedes the last
        try:
            self._thread.is_asking = True
            if not (was_asking or is_inner):
                held.extend(map(free.get, (True,)))
            return function(*args)
        except ConditionError:
            raise
        except Exception as exc:
            part = "" if byte_range is None else f", {_shown(byte_range)}"
            raise StoreError(f"cannot {what} {self.url}{key}{part}: {message_of(exc)}", key=key) from exc
        finally:
            self._thread.is_asking = was_asking
            deque(given_back, 0)      # last: Ctrl-C may come behind it

    def _read(self, key, byte_range):
        """Return the `Answer` for a valid key and a byte range as in `Store.get`, or None."""
        if byte_range is not None:
            resolve_range(byte_range, 0)
            byte_range = tuple([None if n is None else index(n) for n in byte_range])
        return self._dated(self._ask("read", key, self._client.get, self._prefix + key, byte_range,
                                     byte_range=byte_range))

    def read_object(self, byte_range: ByteRange | None) -> Any:
        """Return the `Answer` for a range of the object that has this store's URL itself, or None without one."""
        answer = self._ask("read", "", self._client.get, self._prefix.rstrip("/"), byte_range, byte_range=byte_range)
        return None if answer is None else answer._replace(data=bytes(answer.data))

    def file(self, first: ByteRange) -> RemoteFile:
        """Return the object that has this store's URL itself, to be read by ranges; `first` is read at once."""
        return RemoteFile(self, first)

    # Reading

    def get_buffer(self, key: str, byte_range: ByteRange | None = None) -> bytes | memoryview | None:
        answer = self._read(check_key(key), byte_range)
        return None if answer is None else answer.data

    def _found(self, key, byte_range):
        answer = self._read(check_key(key), byte_range)
        return None if answer is None else (bytes(answer.data), self._identity_of(key, answer.size, answer.tag))

    def identity(self, key: str) -> Identity | None:
        """Return the identity that `key` has now; None also if the service has no tags."""
        head = self._head(check_key(key))
        return None if head is None else self._identity_of(key, head.size, head.tag)

    def getsize(self, key: str) -> int | None:
        head = self._head(check_key(key))
        return None if head is None else head.size

    def _head(self, key):
        return self._dated(self._ask("ask for", key, self._client.head, self._prefix + key))

    def _dated(self, found):
        """Note when an object was changed."""
        if found is not None and self._client.dates:
            thread, moment = get_ident(), found.modified.timestamp()
            # S3Store of obstore has 1970 where the service does not tell the time.
            self._newest[thread] = max(self._newest.get(thread, 0.0), moment if moment > 0 else inf)
        return found

    def settled(self) -> Callable[[], bool] | None:
        """See `Store.settled`."""
        now = time() - MAX_CLOCK_ERROR
        return (lambda: self._is_older(now)) if self._is_older(now) else None

    def _is_older(self, moment):
        return max(list(self._newest.values())) < moment

    def _identity_of(self, key, size, tag):
        """Return an identity made of the tag. Its numbers are no times, so it is trusted at once."""
        if tag is None:
            return None
        identity = hashed((self._service, self._prefix, key, tag), size)
        if len(self._tags) >= MAX_TAGS:
            self._tags = {}     # without its tag, an object is asked for it
        self._tags[identity] = tag
        return identity

    # Listing

    def list_dir(self, prefix: str) -> Listing:
        """See `Store.list_dir`.

        Raises
        ------
        StoreError
            A plain HTTP server has no listing.
        """
        self._check_listing(check_prefix(prefix))
        names, prefixes = self._ask("list", prefix, self._client.list_dir, self._prefix + prefix)
        n = len(self._prefix)
        return Listing(sorted([name[n:] for name in names if is_key(name[n:])]),
                       sorted([name[n:] for name in prefixes if is_key(name[n:-1])]))

    def list_sizes(self, prefix: str) -> Iterator[tuple[str, int | None]]:
        self._check_listing(check_prefix(prefix))
        return iter(sorted(self._pages(prefix), key=itemgetter(0)))

    def _pages(self, prefix):
        pages = self._client.list_all(self._prefix + prefix)
        n = len(self._prefix)
        while (page := self._ask("list", prefix, next, pages, None)) is not None:
            yield from [(name[n:], size) for name, size in page if is_key(name[n:])]

    def _check_listing(self, prefix):
        if not self.lists:
            raise StoreError(f"cannot list {self.url}{prefix}: a plain HTTP server has no listing; arrays and groups "
                             "are opened by their paths, and open_consolidated shows what is below a group",
                             key=prefix)

    # Writing

    def set(self, key: str, value: Buffer) -> None:
        self._check_writable("set", key)
        self._put(key, value)

    def set_if_not_exists(self, key: str, value: Buffer) -> bool:
        """See `Store.set_if_not_exists`; among processes, where the service has conditional puts."""
        self._check_writable("set_if_not_exists", key)
        if self._client.swaps:
            try:
                self._put(key, value, ABSENT)
            except ConditionError:
                return False
            return True
        return super().set_if_not_exists(key, value)

    def set_if_same(self, key: str, value: Buffer, identity: Identity | None) -> Identity | None:
        """See `Store.set_if_same`.

        Raises
        ------
        LockError
            The service has no conditional puts, or ignores their conditions.
        """
        self._check_writable("set_if_same", key)
        self._check_conditions()
        tag = ABSENT
        if identity is not None:
            tag = self._tags.get(identity)
        if tag is None:
            head = self._head(check_key(key))
            if head is None or self._identity_of(key, head.size, head.tag) != identity:
                return None
            tag = head.tag
        try:
            return self._identity_of(key, len(flat_view(value)), self._put(key, value, tag))
        except ConditionError:
            return None

    def can_swap(self) -> bool:
        if self._can_swap is None:
            try:
                self._check_conditions()
                self._can_swap = True
            except LockError:
                self._can_swap = False
        return self._can_swap

    def _put(self, key, value, condition=None):
        """Return the tag of the object that was written; raises ConditionError."""
        view = flat_view(value)
        return self._change("write", key, self._client.put, self._prefix + check_key(key), view, condition)

    def _check_conditions(self):
        """Raise LockError unless a trial has shown that the service honors conditions. Some take and ignore them."""
        if self._honors_conditions:
            return
        if not self._client.swaps:
            raise LockError(f"{self.url} has no conditional writes. Without them a writer of a part of an object may "
                            "undo the changes of another one; lock=None writes nonetheless")
        # The same name each time, as the object stays if its deletion fails; of no other thread or child.
        label = self._thread.__dict__.setdefault("label", os.urandom(8).hex())
        name = f"{self._prefix}{TEMPORARY}{label}.{os.getpid()}"
        put = self._client.put
        try:
            try:
                tag = self._change("write", name, put, name, b"1", ABSENT)
            except ConditionError:      # it has stayed, or a library or a proxy has made the request twice
                tag = self._change("write", name, put, name, b"1")
            self._change("write", name, put, name, b"22")
            # With the old tag, the second value must not be replaced either.
            is_honored = tag is not None and all(run_together(partial(self._refuses, name), (ABSENT, tag),
                                                             self.n_requests))
        finally:
            self._change("delete", name, self._client.delete, [name])
        if not is_honored:
            raise LockError(f"{self.url} ignores the conditions of writes. Without them a writer of a part of an "
                            "object may undo the changes of another one; lock=None writes nonetheless")
        self._honors_conditions = True

    def _refuses(self, name, condition):
        """Return whether the service does not write an object that does not meet a condition."""
        try:
            self._change("write", name, self._client.put, name, b"333", condition)
        except ConditionError:
            return True
        except StoreError as error:
            if not isinstance(error.__cause__, NotImplementedError):     # a directory in obstore has no tags
                raise
        return False

    def duplicate(self, keys: Iterable[tuple[str, str]], renewed: Callable[[bytes], bytes] | None = None) -> None:
        if renewed is not None or not self._client.copies:
            super().duplicate(keys, renewed)
            return

        def copy(pair):
            self._change("copy", pair[0], self._client.copy, *[self._prefix + check_key(key) for key in pair])

        self._check_writable("duplicate")
        workers.each_next(copy, iter(keys), self.n_requests)

    # Removing

    def erase(self, key: str) -> None:
        self._check_writable("erase", key)
        self._change("delete", key, self._client.delete, [self._prefix + check_key(key)])

    def erase_values(self, keys: Iterable[str]) -> None:
        self._check_writable("erase_values")
        self._delete([self._prefix + check_key(key) for key in keys])

    def _delete(self, names):
        parts = [names[i:i + MAX_DELETED] for i in range(0, len(names), MAX_DELETED)]
        run_together(lambda part: self._change("delete", part[0], self._client.delete, part), parts, self.n_requests)


def message_of(exc: BaseException) -> str:
    """Return the message of a library's error, on one short line."""
    # obstore repeats the structure of the error behind that.
    text = " ".join(str(exc).partition("\n\nDebug source")[0].split()) or type(exc).__name__
    text = text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + "…"
    if any([host in text for host in _METADATA_HOSTS]):
        text += " (no credentials were given or found, so this machine's cloud was asked for some; "
        text += "skip_signature=True reads what is public)"
    return text


def _shown(byte_range):
    start, length = byte_range
    if start is None:
        return f"the last {length} bytes"
    return f"bytes from {start} on" if length is None else f"bytes {start} to {start + length}"

_numbers = Tickets()

# Small reads bring so many bytes, since small parts of a format lie together, and so many of these are kept.
_AHEAD_NBYTES = 1 << 12
_MAX_KEPT = 16


class RemoteFile(ByteSource):
    """One object of a `RemoteStore`, by ranges. `RemoteStore.file` makes it.

    Parameters
    ----------
    store : RemoteStore
        The URL that the object would have as a directory.
    first : (start, length) or (None, length)
        The range that is read at once. It is kept.

    Raises
    ------
    FileNotFoundError
        There is no such object.
    StoreError
        It cannot be read.
    """

    is_far: bool = True
    piece_nbytes: int = FAR_NBYTES

    def __init__(self, store: RemoteStore, first: ByteRange) -> None:
        self._store = store
        self.path: str = store.url.rstrip("/")
        answer = store.read_object(first)
        if answer is None:
            raise FileNotFoundError(self.path)
        self._version = answer[1:]
        self.size: int = answer.size
        start, _ = first
        self._first = (max(0, self.size - len(answer.data)) if start is None else start), answer.data
        # Replaced as a whole: threads read it.
        self._kept = ()

    def read_at(self, offset: int, n_bytes: int) -> bytes:
        """See `ByteSource.read_at`. An object that was replaced or removed since it was opened is a StoreError, too."""
        stop = min(offset + n_bytes, self.size)
        if offset >= stop:
            return b""
        for start, data in (self._first, *self._kept):
            if start <= offset and stop <= start + len(data):
                return data[offset - start:stop - start]
        ahead = min(max(n_bytes, _AHEAD_NBYTES), self.size - offset)
        data = self._read(offset, ahead)
        if ahead > n_bytes:
            self._kept = (*self._kept, (offset, data))[-_MAX_KEPT:]
        return data[:stop - offset]

    def _read(self, offset, n_bytes):
        answer = self._store.read_object((offset, n_bytes))
        if answer is None or answer[1:] != self._version:
            what = "removed" if answer is None else "replaced by another object"
            raise StoreError(f"{self.path} was {what} while it was read: open it again", key=self.path)
        if len(answer.data) != n_bytes:
            raise StoreError(f"{self.path}: {len(answer.data)} bytes came, {n_bytes} were requested from byte {offset} "
                             "on", key=self.path)
        return answer.data

    def identity(self, part: object, size: int) -> Identity | None:
        return None if self._version[1:] == (None, None) else hashed((self.path, self._version, part), size)
