"""Formats: how an array is written down. A format is a module; a new one is one line here."""
from zcore.formats import zarr_v2, zarr_v3, zmeta

# Name, as `zarr_format=` gives it -> module. Where several stand in one place, the first one counts.
FORMATS = {format.name: format for format in (zarr_v3, zarr_v2, zmeta)}
