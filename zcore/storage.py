"""The stores under the names that they have in zarr-python."""
from zcore.stores.directory import DirectoryStore as LocalStore
from zcore.stores.memory import MemoryStore
from zcore.stores.zip import ZipStore

__all__ = ["LocalStore", "MemoryStore", "ZipStore"]
