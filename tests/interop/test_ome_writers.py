"""The backend of ome-writers in `examples/microscopy`: each frame lies where ome-writers says."""
import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest

import zcore

ome_writers = pytest.importorskip("ome_writers")
yaozarrs = pytest.importorskip("yaozarrs")
BACKEND = Path(__file__).resolve().parents[2] / "examples/microscopy/zcore_backend.py"
YX = ["y:6:4", "x:8:4"]


@pytest.fixture(scope="module")
def backend():
    spec = importlib.util.spec_from_file_location("zcore_backend", BACKEND)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def dimension(text):
    name, count, chunk, shard, *_ = [*text.split(":"), "", ""]
    if name == "p":
        return ome_writers.Dimension(name=name, type="position", coords=[f"p{i}" for i in range(int(count))])
    return ome_writers.Dimension(
        name=name, count=int(count) if count else None, chunk_size=int(chunk or 1),
        shard_size_chunks=int(shard) if shard else None, type={"t": "time", "c": "channel"}.get(name, "space"))


@pytest.mark.parametrize(("compression", "dimensions"), [
    ("none", ["t:10:4", *YX]), ("zstd", ["t:4", "z:5:2", "c:3:2", *YX]),
    ("blosc-zstd", ["p:2", "t:8:2:2", "y:6:2:3", "x:8:4:2"]), ("blosc-lz4", ["t::4", *YX]),
    ("none", ["t::4", "p:2", "c:2", *YX]), ("zstd", ["t::2:3", "z:5:2:1", "y:6:2:3", "x:8:4:2"]), ("none", YX)])
def test_frames(backend, tmp_path, compression, dimensions):
    n = {"t": 10, "p": 1} | {text[0]: int(text.split(":")[1]) for text in dimensions if text.split(":")[1]}
    settings = ome_writers.AcquisitionSettings(
        root_path=tmp_path / "a.ome.zarr", dimensions=[dimension(text) for text in dimensions], dtype="uint16",
        compression=compression, format="ome-zarr")
    names = [text[0] for text in dimensions[:-2]]
    indices = list(itertools.product(*[range(n[name]) for name in names]))
    stored = "".join(sorted(set(names) - {"p"}, key="tcz".index))
    expected = np.zeros((n["p"], *[n[name] for name in stored], 6, 8), "u2")
    with backend.create_stream(settings) as stream:
        for i, index in enumerate(indices):
            if i % 7 == 3 and i < len(indices) - 1:
                stream.skip()
                continue
            frame = np.full((6, 8), i + 1, "u2")
            stream.append(frame, frame_metadata={"i": i})
            where = dict(zip(names, index, strict=True))
            expected[(where.get("p", 0), *[where[name] for name in stored])] = frame
            if i in (len(indices) // 2, len(indices) - 1) and n["p"] == 1:
                assert np.array_equal(stream.view(dynamic_shape=False)[index], frame)
    yaozarrs.validate_zarr_store(tmp_path / "a.ome.zarr")
    for i in range(n["p"]):
        array = zcore.open_array(tmp_path / "a.ome.zarr" / (f"p{i}" if n["p"] > 1 else "") / "0")
        assert np.array_equal(array[...], expected[i]) and array.dimension_names[-2:] == ("y", "x")
