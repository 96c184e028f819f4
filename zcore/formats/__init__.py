"""Formats: how a node is written down. A format is a module; a new one is a line in each of the tables here.

The module is imported with the first node of its format: most processes meet only one.
"""
from functools import cache

# Name, as `zarr_format=` gives it -> the documents that make a directory a node of the format. Where documents of
# several stand in one place, the first one counts.
NODE_DOCUMENTS = {3: ("zarr.json",), 2: (".zarray", ".zgroup"), "zmeta": ("__zmeta__",)}
NAMES = tuple(NODE_DOCUMENTS)
TITLES = {3: "Zarr v3", 2: "Zarr v2", "zmeta": "__zmeta__"}  # what people call them

MAX_NBYTES = 2**24  # of a document; JSON takes some twenty times as much when parsed


def format_of(name):
    """Return the module of a format.

    Raises : ValueError, if `name` is no format's.
    """
    check_format(name)
    return _module(name)


@cache
def _module(name):
    if name == 3:
        from zcore.formats import zarr_v3 as format
    elif name == 2:
        from zcore.formats import zarr_v2 as format
    else:
        from zcore.formats import zmeta as format
    return format


def check_format(zarr_format):
    """Raise ValueError when a value of `zarr_format=` is no format's name; None leaves it open."""
    if zarr_format is not None and zarr_format not in NAMES:
        raise ValueError(f"zarr_format is {zarr_format!r:.60}, expected one of {', '.join(map(repr, NAMES))}")
