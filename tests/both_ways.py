"""The two ways in which the bytes of a directory reach the kernel: it opens the files, or Python brings their bytes.

The kernel opens no file of a store that is confined, as it opens none of a service. What it does with the bytes is the
same, and so must elements and errors be.
"""
import zcore
from zcore.stores.base import OBJECTS

WAYS = ("native", "confined")


def directory(path, way):
    """Return the store of a directory, for one of the `WAYS`."""
    return zcore.DirectoryStore(path, confined=way == "confined")


def handles(path, **options):
    """Return two handles of one array in a directory, for writing: one for each of the `WAYS`."""
    return [zcore.open(directory(path, way), mode="r+", **options) for way in WAYS]


def brought(cls):
    """Return a class of stores that do not say where their values lie, as those that others write need not."""
    class Brought(cls):
        def locate(self, prefix):
            return OBJECTS

    return Brought
