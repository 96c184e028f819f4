"""Everything that zcore opens, as a store of zarr-python."""
from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from zarr.abc.store import Store as ZarrStore
from zarr.core.buffer import Buffer, default_buffer_prototype

import zcore
from zcore.stores.openers import store_of
from zcore.stores.zarr_python import part_of
from zcore.text.arguments import as_bool

if TYPE_CHECKING:
    import builtins
    from collections.abc import AsyncIterator, Iterable
    from typing import Any

    from zarr.abc.store import ByteRequest
    from zarr.core.buffer import BufferPrototype

    from zcore.stores.base import Store as ZcoreStore


class Store(ZarrStore):
    """A store of zarr-python over whatever `zcore.open` takes: ASDF files, reference sets, ``__zmeta__``, zip, URLs.

    ``zarr.open``, ``xarray.open_zarr`` and ``dask.array.from_zarr`` read it. An ASDF file shows its arrays as Zarr v2,
    and a ``__zmeta__`` directory as Zarr v3; both are read-only, as are reference sets and archives.

    Parameters
    ----------
    place : object
        A path, a URL, a mapping with references, or a store of zcore.
    read_only : bool
        Refuse every change; a directory, a `zcore.MemoryStore` or a service may be written otherwise.

    Attributes
    ----------
    zcore_store : zcore.stores.base.Store
        What is asked; the codec pipeline of zcore asks it without this class.

    Examples
    --------
    >>> import zarr, zcore
    >>> place = zcore.MemoryStore()
    >>> array = zcore.create_array(place, name="t", data=[1, 2, 3])
    >>> zarr.open_array(Store(place), path="t", mode="r")[1:]
    array([2, 3])
    """

    supports_deletes: bool = True
    supports_listing: bool = True

    def __init__(self, place: Any, *, read_only: bool = True) -> None:
        super().__init__(read_only=as_bool(read_only, "read_only"))
        self._place = place
        self.zcore_store: ZcoreStore = _shown(place, read_only)
        if self.zcore_store.read_only:
            self._read_only = True
        self.supports_listing: bool = self.zcore_store.lists

    @property
    def supports_writes(self) -> bool:
        return not self.read_only

    def with_read_only(self, read_only: bool = False) -> Store:
        return Store(self._place, read_only=read_only)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Store) and self.read_only == other.read_only and (
            self.zcore_store is other.zcore_store or self.zcore_store == other.zcore_store
            or (self.zcore_store.uri is not None and self.zcore_store.uri == other.zcore_store.uri))

    def __repr__(self) -> str:
        return f"zcore.zarr.Store({self.zcore_store!r})"

    def __str__(self) -> str:
        return self.zcore_store.uri or repr(self.zcore_store)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Store, read_only=self.read_only), (self._place,)

    def get_sync(self, key: str, *, prototype: BufferPrototype | None = None,
                 byte_range: ByteRequest | None = None) -> Buffer | None:
        """Return what `get` returns, without an event loop."""
        part = part_of(byte_range)
        found = self.zcore_store.get(key, part) if key else None
        return None if found is None else (prototype or default_buffer_prototype()).buffer.from_bytes(found)

    def set_sync(self, key: str, value: Buffer) -> None:
        """Do what `set` does, without an event loop."""
        self._check_writable()
        if not isinstance(value, Buffer):
            raise TypeError(f"{type(self).__name__}.set(): `value` must be a Buffer instance. Got an instance of "
                            f"{type(value)} instead.")
        self.zcore_store.set(key, value.as_buffer_like())

    def delete_sync(self, key: str) -> None:
        """Do what `delete` does, without an event loop."""
        self._check_writable()
        self.zcore_store.erase(key)

    async def get(self, key: str, prototype: BufferPrototype | None = None,
                  byte_range: ByteRequest | None = None) -> Buffer | None:
        return await asyncio.to_thread(self.get_sync, key, prototype=prototype, byte_range=byte_range)

    async def get_partial_values(self, prototype: BufferPrototype,
                                 key_ranges: Iterable[tuple[str, ByteRequest | None]]) -> builtins.list[Buffer | None]:
        return list(await asyncio.gather(*[self.get(key, prototype, byte_range) for key, byte_range in key_ranges]))

    async def exists(self, key: str) -> bool:
        return bool(key) and await asyncio.to_thread(self.zcore_store.exists, key)

    async def getsize(self, key: str) -> int:
        size = await asyncio.to_thread(self.zcore_store.getsize, key)
        if size is None:
            raise FileNotFoundError(key)
        return size

    async def set(self, key: str, value: Buffer) -> None:
        await asyncio.to_thread(self.set_sync, key, value)

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        self._check_writable()
        await asyncio.to_thread(self.zcore_store.set_if_not_exists, key, value.as_buffer_like())

    async def delete(self, key: str) -> None:
        await asyncio.to_thread(self.delete_sync, key)

    async def delete_dir(self, prefix: str) -> None:
        self._check_writable()
        await asyncio.to_thread(self.zcore_store.erase_prefix, _prefix(prefix))

    async def list(self) -> AsyncIterator[str]:
        for key in await asyncio.to_thread(lambda: list(self.zcore_store.list())):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        above, _, start = prefix.rpartition("/")
        keys = await asyncio.to_thread(lambda: list(self.zcore_store.list_prefix(_prefix(above))))
        for key in keys:
            if key.startswith(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        prefix = _prefix(prefix)
        found = await asyncio.to_thread(self.zcore_store.list_dir, prefix)
        for name in (*found.keys, *found.prefixes, *found.unreachable):
            yield name[len(prefix):].rstrip("/")


def _shown(place, read_only):
    """Return a store of zcore whose documents zarr-python understands."""
    store = store_of(place, read_only)
    if read_only and store.existing("", ("__zmeta__",)):
        return zcore.references(store)
    return store


def _prefix(prefix):
    prefix = prefix.strip("/")
    return prefix + "/" if prefix else ""
