"""Any store of zarr-python as a store of zcore: memory, fsspec, obstore, zip archives, sessions of Icechunk."""
from __future__ import annotations

import os
from asyncio import run_coroutine_threadsafe
from inspect import CORO_CREATED, getcoroutinestate
from typing import TYPE_CHECKING
from weakref import finalize

from zcore.errors import Needing, PackageError, StoreError, ZcoreError
from zcore.stores.base import AtMost, Listing, Store, Within, resolve_range, sliced, together
from zcore.stores.keys import check_key, check_prefix, is_key
from zcore.stores.openers import store_of

with Needing("TIFF files and zcore.zarr need", "zarr", "zarr", "zcore.zarr"):
    from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest
    from zarr.abc.store import Store as ZarrStore
    from zarr.core.buffer import Buffer
    from zarr.core.buffer.cpu import buffer_prototype
    from zarr.core.sync import sync
    from zarr.storage import LocalStore, MemoryStore

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Iterator, Sequence
    from typing import Any

    from zarr.abc.store import ByteRequest

    from zcore.stores.base import ByteRange
    from zcore.typing import Buffer as BytesLike

# Enough to hide the latency of most services, and not too many for a server.
N_REQUESTS = 10


def store_of_zarr(store: ZarrStore, read_only: bool = False, loop: AbstractEventLoop | None = None) -> Store:
    """Return a store of zcore with the keys and values of a store of zarr-python.

    A `LocalStore` becomes a `DirectoryStore`, whose files the kernel opens itself. Every other store is asked.

    Parameters
    ----------
    store : zarr.abc.store.Store
    read_only : bool
        Refuse every change, also where the store takes them.
    loop : asyncio.AbstractEventLoop, optional
        Where the store's coroutines run; by default the loop of zarr-python. Never that of the calling thread.
    """
    read_only = read_only or store.read_only
    # The bridge's view of a store of zcore.
    inner = getattr(store, "zcore_store", None)
    if inner is not None and inner.read_only == read_only:
        return inner
    if type(store) is LocalStore:
        return store_of(str(store.root), read_only, check_base=False)     # the same one for all arrays of a store
    return ZarrPythonStore(store, read_only, loop)


def store_of_tiff(path: str) -> Store:
    """Return the images of a TIFF file as a store, by the package tifffile.

    Raises : PackageError, if tifffile is not installed; StoreError, if it cannot read the file.
    """
    try:
        import tifffile
    except ModuleNotFoundError as exc:
        raise PackageError(f"{path!r:.200}: TIFF files need tifffile, which is not installed: python -m pip "
                           "install tifffile", feature="TIFF files") from exc
    try:
        images = tifffile.imread(path, aszarr=True)
    except Exception as exc:     # of a damaged file, any
        raise StoreError(f"cannot read the TIFF file {path!r:.200}: {exc}", key=path) from exc
    store = store_of_zarr(images)
    store.uri = os.path.abspath(path)
    finalize(store, images.close)
    return store


class ZarrPythonStore(Store):
    """Keys and values of a store of zarr-python that is no directory; see `store_of_zarr`.

    Locks hold back the threads of this process: these stores have no conditional writes.
    """

    n_requests: int = N_REQUESTS

    def __init__(self, store: ZarrStore, read_only: bool = False, loop: AbstractEventLoop | None = None) -> None:
        self.store: ZarrStore = store
        self.read_only: bool = read_only
        self.decodes: bool = type(store).__module__.partition(".")[0] == "tifffile"
        # tifffile lists the documents alone: by its listing, all elements would be absent.
        self.lists: bool = store.supports_listing and not self.decodes
        # Stores of zarr-python with the same text share their locks, but may differ: that of fsspec names no machine.
        self._unlike_others = os.urandom(16)
        # Of Icechunk. Its own text waits for requests of other threads, and holds the GIL, which they need.
        snapshot = getattr(getattr(store, "session", None), "snapshot_id", None)
        self.is_transaction: bool = snapshot is not None
        self.uri: str = f"icechunk:{snapshot}" if self.is_transaction else str(store)
        self._loop = loop
        # By default, the size of a value is that of the fetched value.
        self._has_ranges = type(store).getsize is not ZarrStore.getsize
        while isinstance(inner := getattr(store, "_store", None), ZarrStore):
            store = inner     # of a wrapper
        if not getattr(store, "_is_open", True):
            self._ask(store._ensure_open(), "")     # an archive has no other way to begin
        # Where there are directories, `list_prefix` leaves out those behind links, and those that cannot be listed.
        self._lists_all = not isinstance(store, LocalStore) and not hasattr(store, "fs")

    def __repr__(self) -> str:
        return f"ZarrPythonStore({self._shown}{', read-only' if self.read_only else ''})"

    @property
    def _shown(self):
        # tifffile does not name its file.
        return self.uri if self.decodes or self.is_transaction else repr(self.store)

    def __reduce__(self) -> tuple[Any, ...]:
        # What is written to a copy would be lost: nothing merges it.
        is_copied = self.is_transaction or isinstance(self.store, MemoryStore)
        return ZarrPythonStore, (self.store, self.read_only or is_copied)

    @property
    def _lock_name(self):
        # Stores of one session are equal, but have no name in common.
        return type(self.store) if self.is_transaction else self.uri

    def get(self, key: str, byte_range: ByteRange | None = None) -> bytes | None:
        check_key(key)
        if byte_range is not None:
            resolve_range(byte_range, 0)
            if byte_range[1] == 0:
                return b"" if self.exists(key) else None
            if type(byte_range) is Within:
                return self._expected(key, byte_range)
            if self._has_ranges and type(byte_range) is not AtMost:
                try:
                    return self._part(key, byte_range)
                except StoreError as error:
                    self._has_ranges = not _is_lack(error)
                    if self._has_ranges:
                        raise
        found = self._value(key, None)
        return None if found is None else sliced(found, byte_range)

    def _part(self, key, byte_range):
        """Return a part of a value. Many stores refuse a range that ends behind the value, or is empty."""
        size = self.getsize(key)
        if size is None:
            return None
        start, stop = resolve_range(byte_range, size)
        if start == stop:
            return b""
        return self._value(key, None if stop - start == size else RangeByteRequest(start, stop))

    def _expected(self, key, part):
        """Return a part of a value that should have it; no bytes if the store refuses it."""
        start, length = part
        try:
            try:
                return self._value(key, request_of(part))
            except StoreError:
                if start is not None or not self._has_ranges:
                    raise
                # Some services have no suffixes.
                return self._part(key, (None, length))
        except StoreError:
            return b""

    def _value(self, key, request):
        try:
            found = self._ask(self.store.get(key, buffer_prototype, request), key)
        except StoreError as error:
            # In a pyramid, tifffile has a KeyError for documents, and also for chunks that it cannot decode.
            if not _is_no_key(error) and not (self.decodes and isinstance(error.__cause__, KeyError)
                                              and not key.rpartition("/")[2][:1].isdigit()):
                raise
            found = None
        if found is None:
            return None
        if not isinstance(found, Buffer):
            # Others have a `to_bytes` too: that of an integer makes up a value.
            raise StoreError(f"{key!r} in {self._shown}: expected a Buffer of zarr-python, found "
                             f"{type(found).__name__}", key=key)
        return found.to_bytes()

    def getsize(self, key: str) -> int | None:
        check_key(key)
        try:
            size = self._ask(self.store.getsize(key), key)
        except FileNotFoundError:
            return None
        except StoreError as error:
            if not _is_no_key(error):
                raise
            return None
        # For a missing chunk, Icechunk says 0.
        return size if size or self.exists(key) else None

    def existing(self, prefix: str, names: Sequence[str]) -> list[str]:
        keys = [check_key(prefix + name) for name in names]
        found = together(self, self._exists, keys)
        return [name for name, exists in zip(names, found, strict=True) if exists]

    def _exists(self, key):
        try:
            return self._ask(self.store.exists(key), key)
        except StoreError as error:
            if not _is_lack(error) and not _is_no_key(error):
                raise
        try:
            return self._value(key, None) is not None
        except StoreError as error:
            # The name of a group is no key to VirtualiZarr's store.
            if not isinstance(error.__cause__, ValueError):
                raise
            return False

    def set(self, key: str, value: BytesLike) -> None:
        self._check_writable("set", key)
        check_key(key)
        self._ask(self.store.set(key, buffer_prototype.buffer.from_bytes(bytes(value))), key)

    def erase(self, key: str) -> None:
        self._check_writable("erase", key)
        check_key(key)
        try:
            self._ask(self.store.delete(key), key)
        except StoreError as error:
            # Icechunk 1 has a KeyError for a chunk whose node is gone.
            if not _is_no_key(error) and not isinstance(error.__cause__, KeyError):
                raise

    def list_dir(self, prefix: str) -> Listing:
        check_prefix(prefix)
        fs = getattr(self.store, "fs", None)

        async def listed():
            if fs is None:
                return [name.rstrip("/") async for name in self.store.list_dir(prefix.rstrip("/"))]
            # A directory exists, too, if a filesystem of fsspec is asked for a key.
            place = f"{self.store.path}/{prefix}".rstrip("/")
            try:
                found = await fs._ls(place, detail=True)
            except self.store.allowed_exceptions:
                return {}
            # Some filesystems also list the file itself, or the marker of a directory.
            return {item["name"].rstrip("/").rpartition("/")[2]: item["type"] for item in found
                    if item["name"].strip("/") != fs._strip_protocol(place).strip("/")}

        found = self._ask(listed(), prefix)
        names = sorted({name for name in found if is_key(prefix + name)})
        # zarr-python does not say which of the names are keys.
        keys = set(self.existing(prefix, names) if fs is None else
                   [name for name in names if found[name] != "directory"])
        return Listing([prefix + name for name in names if name in keys],
                       [f"{prefix}{name}/" for name in names if name not in keys])

    def list_sizes(self, prefix: str) -> Iterator[tuple[str, int | None]]:
        check_prefix(prefix)
        # Icechunk refuses the prefix of an array's chunks, but lists those of a node.
        head, chunks, _ = f"/{prefix}".rpartition("/c/") if self.is_transaction else ("", "", "")
        place = f"{head}/"[1:] if chunks else prefix

        async def listed():
            return {key async for key in self.store.list_prefix(place) if key.startswith(prefix) and is_key(key)}

        if self._lists_all:
            try:
                return ((key, None) for key in sorted(self._ask(listed(), prefix)))
            except StoreError as error:
                self._lists_all = not _is_lack(error)
                if self._lists_all and not _is_no_key(error):
                    raise
        return super().list_sizes(prefix)

    def _ask(self, coroutine, key):
        """Return the result of a coroutine of the store. Its errors, except for a missing file, become `StoreError`."""
        try:
            if self._loop is None or self._loop.is_closed():
                return sync(coroutine, loop=self._loop)
            # The same, in half of the time.
            return run_coroutine_threadsafe(coroutine, self._loop).result()
        except (FileNotFoundError, ZcoreError):
            raise
        except Exception as exc:
            if getcoroutinestate(coroutine) == CORO_CREATED:
                coroutine.close()     # its loop is closed, and will never run it
            raise StoreError(f"{key!r} in {self._shown}: {type(exc).__name__}: {exc}", key=key) from exc


def request_of(part: Within | None) -> ByteRequest | None:
    """Return zarr-python's request for a part of a value, or for the whole."""
    if part is None:
        return None
    start, length = part
    return SuffixByteRequest(length) if start is None else RangeByteRequest(start, start + length)


def part_of(request: ByteRequest | None) -> ByteRange | None:
    """Return the range of zcore for a request of zarr-python, or None for the whole value."""
    match request:
        case None:
            return None
        case RangeByteRequest(start, end):
            return start, end - start
        case OffsetByteRequest(offset):
            return offset, None
        case SuffixByteRequest(suffix):
            return None, suffix
    raise TypeError(f"Unexpected byte_range, got {request!r}")


def _is_lack(error):
    """Return whether a store does not have a method, or does not take a range."""
    return isinstance(error.__cause__, NotImplementedError)


def _is_no_key(error):
    """Return whether Icechunk says that it has no such key, or never has: only those of nodes and chunks of Zarr v3."""
    text = str(error.__cause__)
    return any([part in text for part in ("invalid zarr key", "v2 key not found", "node not found",
                                          "there is not an array at", "bad key prefix")])
