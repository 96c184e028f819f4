"""The stores under the names that they have in zarr-python."""
from zcore.stores.directory import DirectoryStore as LocalStore
from zcore.stores.memory import MemoryStore
from zcore.stores.remote import RemoteStore as FsspecStore
from zcore.stores.remote import RemoteStore as ObjectStore
from zcore.stores.zip import ZipStore

__all__ = ["FsspecStore", "LocalStore", "MemoryStore", "ObjectStore", "ZipStore"]
