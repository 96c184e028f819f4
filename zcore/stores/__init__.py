"""Where bytes live: stores map keys to values, or to the extents of files that hold them."""
from zcore.stores.base import OBJECTS, Directory, FileParts, Listing, Objects, Store, Strided

__all__ = ["OBJECTS", "Directory", "FileParts", "Listing", "Objects", "Store", "Strided"]
