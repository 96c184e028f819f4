"""zcore for iohub, which opens OME-Zarr by one of the implementations that packages name: here "zcore".

    iohub.set_default_implementation("zcore")      # or open_ome_zarr(…, implementation="zcore")
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from zcore.zarr.handed import PIPELINE

if TYPE_CHECKING:
    ZarrPythonImplementation = object     # type checkers need no iohub
else:
    from iohub.core.implementations.zarr_python import ZarrPythonImplementation


class ZcoreImplementation(ZarrPythonImplementation):
    """zarr-python with zcore's codec pipeline."""

    # iohub sets a pipeline for the process, whatever was set before.
    _DEFAULT_CODEC_PIPELINE: str = PIPELINE["codec_pipeline.path"]
