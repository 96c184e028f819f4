"""iohub opens OME-Zarr by zcore's pipeline, as its implementation "zcore"."""
import sys
import tomllib
import types
from pathlib import Path

import numpy as np
import pytest

zarr = pytest.importorskip("zarr", minversion="3.1")

ROOT = Path(__file__).resolve().parents[2]


def entry_point():
    points = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    return points["iohub.zarr_implementations"]["zcore"].split(":")


def test_entry_point_is_a_class_of_the_pipeline(monkeypatch):
    """Also without iohub, whose class sets the pipeline of the name that ours has."""
    module, name = entry_point()
    theirs = type("Theirs", (), {})
    for there in ("iohub", "iohub.core", "iohub.core.implementations", "iohub.core.implementations.zarr_python"):
        monkeypatch.setitem(sys.modules, there, types.ModuleType(there))
    sys.modules["iohub.core.implementations.zarr_python"].ZarrPythonImplementation = theirs
    monkeypatch.delitem(sys.modules, module, raising=False)
    implementation = getattr(__import__(module, fromlist=[name]), name)
    del sys.modules[module]     # made of no iohub
    from zcore.zarr import ZcoreCodecPipeline

    assert issubclass(implementation, theirs)
    assert implementation._DEFAULT_CODEC_PIPELINE == f"zcore.zarr.{ZcoreCodecPipeline.__name__}"


def test_plate_is_written_and_read(tmp_path, monkeypatch):
    iohub = pytest.importorskip("iohub", minversion="0.3")
    registry = pytest.importorskip("iohub.core.registry")
    from zcore.zarr.iohub import ZcoreImplementation

    registry.register_implementation("zcore", ZcoreImplementation)
    values = np.arange(2 * 3 * 4 * 8 * 8, dtype="u2").reshape(2, 3, 4, 8, 8)
    with zarr.config.set({"codec_pipeline.path": zarr.config.get("codec_pipeline.path")}):
        with iohub.open_ome_zarr(tmp_path / "p.zarr", layout="fov", mode="w", channel_names=["a", "b", "c"],
                                 implementation="zcore") as fov:
            fov.create_image("0", values)
        with iohub.open_ome_zarr(tmp_path / "p.zarr", implementation="zcore") as fov:
            assert np.array_equal(fov["0"][...], values)
            assert zarr.config.get("codec_pipeline.path") == "zcore.zarr.ZcoreCodecPipeline"
