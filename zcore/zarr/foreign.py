"""The stores of zarr-python, as stores of zcore."""
from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import LocalStore

import zcore
from zcore.stores.base import Listing, Store, resolve_range
from zcore.stores.keys import check_key, check_prefix

# Enough to hide the latency of most services, and few enough for a server.
N_REQUESTS = 10


def zcore_store(store, loop=None):
    """Return a store of zcore with the keys and values of a store of zarr-python.

    A `LocalStore` becomes a `zcore.DirectoryStore`, whose files the kernel opens itself. Every other store is asked.

    Parameters
    ----------
    store : zarr.abc.store.Store
    loop : asyncio.AbstractEventLoop, optional
        Where the store's coroutines run; by default the loop of zarr-python. Never that of the calling thread.
    """
    if type(store) is LocalStore:
        return zcore.DirectoryStore(str(store.root), read_only=store.read_only)
    return ForeignStore(store, loop)


class ForeignStore(Store):
    """Keys and values of any store of zarr-python; see `zcore_store`."""

    n_requests = N_REQUESTS

    def __init__(self, store, loop=None):
        self.store = store
        self.loop = loop
        self.read_only = store.read_only
        self.lists = store.supports_listing
        # Stores of zarr-python that stand for one place are written alike, and share their locks.
        self.uri = str(store)

    def __repr__(self):
        return f"<{self.store!r} of zarr-python>"

    def __reduce__(self):
        return ForeignStore, (self.store,)

    def get(self, key, byte_range=None):
        check_key(key)
        request = None
        if byte_range is not None:
            resolve_range(byte_range, 0)
            start, length = byte_range
            if start is None:
                request = SuffixByteRequest(length) if length else None
            elif length is None:
                request = OffsetByteRequest(start)
            else:
                request = RangeByteRequest(start, start + length)
        found = self._ask(self.store.get(key, default_buffer_prototype(), request), key)
        if found is None:
            return None
        # There are stores that take a suffix of no bytes for all of them.
        return b"" if byte_range == (None, 0) else found.to_bytes()

    def getsize(self, key):
        check_key(key)
        try:
            return self._ask(self.store.getsize(key), key)
        except FileNotFoundError:
            return None

    def existing(self, prefix, names):
        keys = [check_key(prefix + name) for name in names]
        found = self._together(lambda key: self._ask(self.store.exists(key), key), keys)
        return [name for name, exists in zip(names, found, strict=True) if exists]

    def set(self, key, value):
        self._check_writable("set", key)
        check_key(key)
        buffer = default_buffer_prototype().buffer.from_bytes(bytes(value))
        self._ask(self.store.set(key, buffer), key)

    def erase(self, key):
        self._check_writable("erase", key)
        check_key(key)
        self._ask(self.store.delete(key), key)

    def list_dir(self, prefix):
        check_prefix(prefix)

        async def listed():
            return [name async for name in self.store.list_dir(prefix.rstrip("/"))]

        names = sorted({name.rstrip("/") for name in self._ask(listed(), prefix)})
        return self._sorted_out(prefix, [name for name in names if name])

    def _sorted_out(self, prefix, names):
        """Return the `Listing` of names below a prefix: zarr-python does not say which are keys."""
        keys = set(self.existing(prefix, names))
        return Listing([prefix + name for name in names if name in keys],
                       [f"{prefix}{name}/" for name in names if name not in keys])

    def _ask(self, coroutine, key):
        """Return what a coroutine of the store returns; what it raises is a `StoreError`."""
        try:
            return sync(coroutine, loop=self.loop)
        except (FileNotFoundError, zcore.ZcoreError):
            raise
        except Exception as exc:
            raise zcore.StoreError(f"{key!r} in {self.store!r}: {type(exc).__name__}: {exc}", key=key) from exc
