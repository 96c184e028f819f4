"""Arrays of 2016, made byte by byte from the format's document: zcore reads them bit-exact, and works on them."""
import shutil
from pathlib import Path

import numpy as np
import pytest

import zcore
from tests.both_ways import WAYS, directory
from tests.each import each

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "zmeta"
ARRAYS = sorted(path.stem for path in FIXTURES.glob("*.zarr"))


@pytest.fixture(params=WAYS)
def way(request):
    return request.param


def clean(array):
    """Elements with zeros in the bytes of no field."""
    out = np.zeros(array.shape, array.dtype)
    out[...] = array
    return out


def needs(name):
    if name.startswith("snappy"):
        pytest.importorskip("cramjam")


@each("name", ARRAYS)
def test_they_read_bit_exact(way, name):
    needs(name)
    expected = np.load(FIXTURES / f"{name}.npy", allow_pickle=False)
    a = zcore.open(directory(FIXTURES / f"{name}.zarr", way))
    assert (a.shape, a.dtype) == (expected.shape, expected.dtype)
    assert clean(a[...]).tobytes() == clean(expected).tobytes()
    for selection in (slice(None, None, -1), slice(1, None, 2), (..., slice(0, 1)), slice(-1, None)):
        assert clean(a[selection]).tobytes() == clean(expected[selection]).tobytes()
    if a.size:
        assert a[(-1,) * a.ndim].tobytes() == expected[(-1,) * a.ndim].tobytes()
    out = np.zeros(expected.shape[::-1], expected.dtype).T
    assert clean(a.read(out=out)).tobytes() == clean(expected).tobytes()


@each("name", ARRAYS)
def test_from_memory_they_are_the_same(name):
    needs(name)
    base = FIXTURES / f"{name}.zarr"
    files = [file for file in base.rglob("*") if file.is_file()]
    store = zcore.MemoryStore({f"sub/{file.relative_to(base)}": file.read_bytes() for file in files})
    expected = np.load(FIXTURES / f"{name}.npy", allow_pickle=False)
    assert clean(zcore.open(store, path="sub")[...]).tobytes() == clean(expected).tobytes()


@pytest.mark.parametrize("name", ARRAYS)
def test_partial_writes_shrinks_and_growths(way, tmp_path, name):
    """On a copy: every element not written stays, what others left outside the grid never shows."""
    needs(name)
    shutil.copytree(FIXTURES / f"{name}.zarr", tmp_path / "a")
    model = np.load(FIXTURES / f"{name}.npy", allow_pickle=False).copy()
    a = zcore.open(directory(tmp_path / "a", way), mode="r+")
    if name.startswith("snappy") and not zcore.blosc.can_compress("snappy"):
        with pytest.raises(zcore.UnsupportedError, match="snappy"):
            a[1:2] = model[:1]
        assert clean(a[...]).tobytes() == clean(model).tobytes()
        return
    a[1:2] = model[:1]
    model[1:2] = model[:1]
    assert clean(zcore.open(directory(tmp_path / "a", way))[...]).tobytes() == clean(model).tobytes()
    grown = tuple(2 * n + 5 for n in a.shape)
    a.resize(grown)
    expected = np.zeros(grown, model.dtype)
    expected.view(f"V{model.itemsize}")[...] = np.void(a.metadata.fill_bytes)
    expected[tuple(slice(n) for n in model.shape)] = model
    assert clean(a[...]).tobytes() == clean(expected).tobytes()
    a.resize(model.shape)
    assert clean(a[...]).tobytes() == clean(model).tobytes()


def test_attributes_and_left_over_files(tmp_path):
    """ZM-ATTR-01, ZM-CHK-03, ZM-CHK-15: a bare NaN; what is not the array's does not count, and stays."""
    shutil.copytree(FIXTURES / "integers.zarr", tmp_path / "a")
    a = zcore.open(str(tmp_path / "a"), mode="r+")
    attributes = a.attrs.asdict()
    assert attributes.pop("gap") != attributes.get("gap") and attributes == {"bar": 4.2, "baz": "quux", "foo": 42}
    assert (a.nchunks, a.nchunks_initialized) == (9, 8)
    a.attrs["new"] = 1
    a[...] = 1
    assert (tmp_path / "a" / "__zdata__" / "0.0.blosc.lock").exists()
    assert (tmp_path / "a" / "__zattr__.lock").exists()
    assert a.nchunks_initialized == 9


def test_a_directory_without_chunks_reads_as_fill_value(tmp_path, way):
    """ZM-CHK-04: `__zdata__` may be missing."""
    (tmp_path / "__zmeta__").write_bytes((FIXTURES / "integers.zarr" / "__zmeta__").read_bytes())
    a = zcore.open(directory(tmp_path, way), mode="r+")
    assert (a[...] == 42).all() and a.nchunks_initialized == 0
    a[0, 0] = 1
    assert a[0, 0] == 1 and a.nchunks_initialized == 1


def test_modes_of_files(tmp_path, way):
    """Chunks of 2016 have mode 0600 and keep it; new ones have what the umask leaves."""
    shutil.copytree(FIXTURES / "integers.zarr", tmp_path / "a")
    old = tmp_path / "a" / "__zdata__" / "0.0.blosc"
    old.chmod(0o600)
    a = zcore.open(directory(tmp_path / "a", way), mode="r+")
    a[0, 0] = 5
    a[3, 2] = 5
    (tmp_path / "new").touch()
    assert old.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "a" / "__zdata__" / "1.1.blosc").stat().st_mode == (tmp_path / "new").stat().st_mode
