"""Where bytes live: stores map keys to values, or to the extents of files that hold them."""
from zcore.stores.base import Listing, Store
from zcore.stores.directory import DirectoryStore
from zcore.stores.memory import MemoryStore

__all__ = ["DirectoryStore", "Listing", "MemoryStore", "Store"]
