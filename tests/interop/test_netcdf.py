"""Zarr stores of netcdf-c, by the package netCDF4: the values are those that netcdf-c itself reads."""
import warnings

import numpy as np
import pytest

import zcore
import zcore.xarray

netCDF4 = pytest.importorskip("netCDF4")
FILTERS = [{}, {"zlib": True}, {"zlib": True, "shuffle": False}, {"zlib": True, "fletcher32": True},
           {"fletcher32": True}, {"compression": "zstd", "shuffle": True}]
VALUES = np.arange(100)


@pytest.fixture
def path(tmp_path):
    """A store with a variable for each type, byte order and choice of filters."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with netCDF4.Dataset(f"file://{tmp_path}/a.zarr#mode=zarr,file", "w") as file:
            file.createDimension("x", len(VALUES))
            for kind in ("u1", "i2", "i4", "f4", "f8"):
                for endian in ("little", "big"):
                    for i, options in enumerate(FILTERS):
                        name = f"{kind}_{endian}_{i}"
                        file.createVariable(name, kind, ("x",), chunksizes=(30,), endian=endian, **options)[:] = VALUES
    return tmp_path / "a.zarr"


def test_texts_are_shuffled_by_the_size_of_a_pointer(tmp_path):
    texts = np.array([["abcdefghijklmnopqrstuvwxyz", "", "é"], ["a", "bc", "def"]], object)
    with netCDF4.Dataset(f"file://{tmp_path}/a.zarr#mode=zarr,file", "w") as file:
        file.createDimension("y", 2)
        file.createDimension("x", 3)
        file.createVariable("s", str, ("y", "x"), zlib=True, chunksizes=(2, 2), fill_value="q")[:] = texts
        file.createVariable("c", "S1", ("y", "x"), fill_value=b"q")[:] = np.array([[b"a", b"b", b"c"]] * 2)
    group = zcore.open(tmp_path / "a.zarr")
    assert [text.decode() for text in group["s"][...].ravel().tolist()] == texts.ravel().tolist()
    assert group["c"].fill_value == group["s"].fill_value == b"q" and group["c"][0].tolist() == [b"a", b"b", b"c"]


@pytest.mark.filterwarnings("ignore:codec")
def test_each_filter_of_a_zarr_store(path, tmp_path):
    zcore.copy(path, tmp_path / "v2.zarr")
    zcore.copy(path, tmp_path / "v3.zarr", zarr_format=3)
    for store in (path, tmp_path / "v2.zarr", tmp_path / "v3.zarr"):
        group = zcore.open(store)
        assert len(group) == 10 * len(FILTERS)
        for name, array in group.members():
            assert (array[:] == VALUES).all(), name


@pytest.mark.filterwarnings("ignore")
def test_copies_are_read_by_zarr_python(path, tmp_path):
    """netcdf-c's own documents are misread there: they say that items have 0 bytes."""
    zarr = pytest.importorskip("zarr", minversion="3")
    for format in (2, 3):
        zcore.copy(path, tmp_path / "new.zarr", zarr_format=format, overwrite=True)
        for name, array in zarr.open_group(tmp_path / "new.zarr", mode="r").members():
            # zarrs, which another test may have configured, lacks fletcher32.
            with zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}):
                assert (zarr.open_array(array.store_path, mode="r")[:] == VALUES).all(), name


@pytest.mark.filterwarnings("ignore")
def test_by_xarray(path):
    xarray = pytest.importorskip("xarray")
    for name, array in xarray.open_dataset(path, engine="zcore", mask_and_scale=False).data_vars.items():
        assert (array.values == VALUES).all(), name
