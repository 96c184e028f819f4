"""The stores under the names that they have in zarr-python."""
from zcore.stores.directory.store import DirectoryStore as LocalStore
from zcore.stores.memory import MemoryStore
from zcore.stores.remote.store import RemoteStore as FsspecStore
from zcore.stores.remote.store import RemoteStore as ObjectStore
from zcore.stores.zip.store import ZipStore

__all__ = ["FsspecStore", "LocalStore", "MemoryStore", "ObjectStore", "ZipStore"]
