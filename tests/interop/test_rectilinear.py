"""Arrays of unequal chunks by zcore and by zarr-python: what it wrote as fixtures, and the one that is installed.

zarr-python has such grids from 3.2 on, behind a switch; it runs in a process of its own.
"""
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import zcore
from tests.each import each

from .zarr_peers import documents

FIXTURES = Path(__file__).parents[1] / "fixtures" / "zarr_v3_rectilinear"
ARRAYS = {  # name: (shape, shape as it was created, sizes of the objects)
    "line": ((10,), None, ((2, 3, 5),)),
    "runs": ((14, 6), None, ((3, 3, 3, 1, 4), (2, 2, 2))),
    "mixed": ((9, 7, 4), None, ((4, 4, 1), (1, 6), (4,))),
    "grown": ((12,), (5,), ((2, 3, 7),)),
    "cut": ((4, 4), (10, 4), ((2, 2), (4,))),
    "shards": ((12, 4), None, ((2, 4, 6), (4,))),
    "turned": ((7, 5), None, ((2, 5), (4, 1))),
}
PEER = """
import sys
import numpy, zarr
if tuple(map(int, zarr.__version__.split(".")[:2])) < (3, 2):
    print("too old")
    raise SystemExit
zarr.config.set({"array.rectilinear_chunks": True})
verb, path = sys.argv[1:]
array = zarr.open_array(path, mode="r+")
if verb == "change":
    array[1:4] = -array[1:4]
    array.append(numpy.ones((3, *array.shape[1:]), array.dtype))
print(repr((array.shape, array.write_chunk_sizes, array.read_chunk_sizes, array.nchunks, array.nchunks_initialized)))
numpy.save(path + ".npy", array[...])
"""


def expected(name):
    shape, created, _ = ARRAYS[name]
    full = np.arange(1, np.prod(created or shape) + 1).reshape(created or shape)
    model = np.zeros(shape, full.dtype)
    part = tuple([slice(min(a, b)) for a, b in zip(shape, full.shape, strict=True)])
    model[part] = full[part]
    return model


def facts(array):
    return (array.shape, array.write_chunk_sizes, array.read_chunk_sizes, array.nchunks, array.nchunks_initialized)


@each("name", ARRAYS)
def test_what_zarr_wrote_is_read(name):
    """V3-RGRID-02, V3-RGRID-03, V3-RGRID-04, V3-RGRID-05"""
    array = zcore.open(FIXTURES / name)
    assert array.shape == ARRAYS[name][0] and array.write_chunk_sizes == ARRAYS[name][2]
    assert (array[...] == expected(name)).all() and array.nchunks_initialized >= 1


@pytest.mark.parametrize("name", ARRAYS)
def test_what_zarr_wrote_is_changed_and_written_anew(name, tmp_path):
    """V3-RGRID-07"""
    shutil.copytree(FIXTURES / name, tmp_path / name)
    array = zcore.open(tmp_path / name, mode="r+")
    model = expected(name).astype(array.dtype)
    array[1:3] = model[1:3] = 5
    array.append(model[:3])
    assert (zcore.open(tmp_path / name)[...] == np.concatenate([model, model[:3]])).all()
    before, after = (json.loads((place / "zarr.json").read_text())["chunk_grid"]["configuration"]["chunk_shapes"]
                     for place in (FIXTURES / name, tmp_path / name))
    if name == "cut":
        assert after == before
    elif name != "mixed":
        # Longer in the first dimension; a list of equal lengths is one.
        assert after[0] != before[0]


def ask_zarr(verb, path):
    if not documents.is_installed("zarr"):
        pytest.skip("zarr is not installed")
    done = subprocess.run([sys.executable, "-c", PEER, verb, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    if done.stdout.strip() == "too old":
        pytest.skip("zarr is older than 3.2")
    return eval(done.stdout), np.load(f"{path}.npy")


@pytest.mark.slow
@pytest.mark.parametrize("keywords", [
    {"shape": (10,), "chunks": [[2, 3, 5]]}, {"shape": (14, 6), "chunks": [[3, 3, 3, 1, 4], 4]},
    {"shape": (12, 4), "chunks": (2, 2), "shards": [[2, 4, 6], 4]}, {"shape": (7, 5), "chunks": [[2, 5], [4, 1]],
                                                                     "order": "F"},
], ids=str)
def test_zarr_works_on_what_zcore_wrote(keywords, tmp_path):
    """V3-RGRID-01, V3-RGRID-03, V3-RGRID-05, V3-RGRID-07"""
    array = zcore.create_array(tmp_path / "a", dtype="int32", **keywords)
    model = np.arange(1, array.size + 1, dtype="int32").reshape(array.shape)
    array[...] = model
    found, elements = ask_zarr("read", tmp_path / "a")
    assert found == facts(array) and (elements == model).all()
    array.append(model[:5])
    model = np.concatenate([model, model[:5]])
    # zarr-python adds a shard that is as long as what is missing, which may be no multiple of the chunks.
    if "shards" not in keywords:
        found, elements = ask_zarr("change", tmp_path / "a")
        model[1:4] *= -1
        model = np.concatenate([model, np.ones((3, *model.shape[1:]), "int32")])
        array.refresh()
        assert found == facts(array) and (elements == model).all()
    assert (array[...] == model).all()
