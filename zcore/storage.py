"""The stores under the names that they have in zarr-python, and the base class of all stores.

`Store` is what a store of your own derives from: "How to extend zcore", "A store". `StoreLike` is what `zcore.open`
takes: a path, a URL, a store, or a reference set as a mapping.
"""
from typing import Never

from zcore.stores.base import ByteRange, Identity, Listing, Store, StoreLike, StorePath, resolve_range
from zcore.stores.directory.store import DirectoryStore as LocalStore
from zcore.stores.memory import MemoryStore
from zcore.stores.remote.store import RemoteStore as FsspecStore
from zcore.stores.remote.store import RemoteStore as ObjectStore
from zcore.stores.zip.store import ZipStore
from zcore.text.tried_names import no_attribute

__all__ = ["ByteRange", "FsspecStore", "Identity", "Listing", "LocalStore", "MemoryStore", "ObjectStore", "Store",
           "StoreLike", "StorePath", "ZipStore", "resolve_range"]


def __dir__() -> list[str]:
    return list(__all__)     # for completion at a prompt


def __getattr__(name: str) -> Never:
    raise no_attribute(__name__, name, __all__)
