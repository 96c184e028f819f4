"""Where bytes live: stores map keys to values, or to the extents of files that hold them."""
from zcore.stores.base import OBJECTS, Directory, Extents, Listing, Objects, Store, Strided

__all__ = ["OBJECTS", "Directory", "Extents", "Listing", "Objects", "Store", "Strided"]
