"""Formats: how an array is written down. A format is a module; a new one is one line here."""
from zcore.formats import zmeta

# Name, as `zarr_format=` gives it -> module.
FORMATS = {zmeta.name: zmeta}
