"""Formats: how an array is written down. A format is a module; a new one is one line here."""
from zcore.formats import zarr_v2, zarr_v3, zmeta

# Name, as `zarr_format=` gives it -> module. Where several stand in one place, the first one counts.
FORMATS = {format.name: format for format in (zarr_v3, zarr_v2, zmeta)}


def check_format(zarr_format):
    """Raise ValueError when a value of `zarr_format=` is no format's name; None leaves it open."""
    if zarr_format is not None and zarr_format not in tuple(FORMATS):
        raise ValueError(f"zarr_format is {zarr_format!r:.60}, expected one of {', '.join(map(repr, FORMATS))}")
