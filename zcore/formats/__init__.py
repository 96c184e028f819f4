"""Formats: how an array is written down. A format is a module; a new one is one line here."""
from zcore.formats import zmeta

# Name, as `zarr_format=` gives it -> module.
FORMATS = {zmeta.name: zmeta}
# What `zarr_format=` may name, in this version or a later one.
NAMES = tuple(dict.fromkeys((3, 2, *FORMATS)))


def check_format(zarr_format):
    """Raise ValueError when a value of `zarr_format=` is no format's name; None leaves it open."""
    if zarr_format is not None and zarr_format not in NAMES:
        raise ValueError(f"zarr_format is {zarr_format!r:.60}, expected one of {', '.join(map(repr, NAMES))}")
