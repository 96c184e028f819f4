"""The bridge to xarray: ``xarray.open_dataset(place, engine="zcore")`` opens what `zcore.open` does; `to_zarr` writes.

xarray finds `ZcoreBackend` by its entry point; nothing needs to be imported.
"""
from zcore.errors import Needing

with Needing("zcore.xarray needs", "xarray", "xarray", "zcore.xarray"):
    from zcore.xarray.backend import ZcoreBackend
    from zcore.xarray.writing import DatasetWriter, to_zarr, writer

__all__ = ["DatasetWriter", "ZcoreBackend", "to_zarr", "writer"]


def __dir__() -> list[str]:
    return list(__all__)     # for completion at a prompt
