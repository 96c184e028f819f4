"""The stores under the names that they have in zarr-python, and the base class of all stores.

`Store` is what a store of your own derives from: "How to extend zcore", "A store". `StoreLike` is what `zcore.open`
takes: a path, a URL, a store, or a reference set as a mapping.
"""
from zcore.stores.base import ByteRange, Identity, Listing, Store, StoreLike, StorePath, resolve_range
from zcore.stores.directory.store import DirectoryStore as LocalStore
from zcore.stores.memory import MemoryStore
from zcore.stores.remote.store import RemoteStore as FsspecStore
from zcore.stores.remote.store import RemoteStore as ObjectStore
from zcore.stores.zip.store import ZipStore

__all__ = ["ByteRange", "FsspecStore", "Identity", "Listing", "LocalStore", "MemoryStore", "ObjectStore", "Store",
           "StoreLike", "StorePath", "ZipStore", "resolve_range"]
