"""Zarr stores and files of netcdf-c, by the package netCDF4: the values are those that netcdf-c itself reads.

They are written by a process of its own. The HDF5 of netCDF4 and that of h5py in one process fail by chance.
"""
import base64
import importlib.util
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest

import zcore
import zcore.xarray

needs_netcdf4 = pytest.mark.skipif(importlib.util.find_spec("netCDF4") is None, reason="needs netCDF4")
FILTERS = [{}, {"zlib": True}, {"zlib": True, "shuffle": False}, {"zlib": True, "fletcher32": True},
           {"fletcher32": True}, {"compression": "zstd", "shuffle": True}]
VALUES = np.arange(100)
TEXTS = ["fill", "x y", "abcdefgh", "é", "TBD=", "0", "a\nb", ""]
CHARACTERS = "xA05-=\" \n["


def write(place, code):
    """Run code that writes to `file`, a Dataset of netCDF4."""
    head = "import netCDF4, numpy as np\nwith netCDF4.Dataset({!r}, 'w') as file:\n"
    subprocess.run([sys.executable, "-W", "ignore", "-c", head.format(str(place)) + code], check=True)


@pytest.fixture
def path(tmp_path):
    """A store with a variable for each type, byte order and choice of filters."""
    write(f"file://{tmp_path}/a.zarr#mode=zarr,file", f"""
    file.createDimension("x", {len(VALUES)})
    for kind in ("u1", "i2", "i4", "f4", "f8"):
        for endian in ("little", "big"):
            for i, options in enumerate({FILTERS}):
                name = f"{{kind}}_{{endian}}_{{i}}"
                file.createVariable(name, kind, ("x",), chunksizes=(30,), endian=endian, **options)[:] = \\
                    np.arange({len(VALUES)})
""")
    return tmp_path / "a.zarr"


@needs_netcdf4
def test_texts_are_shuffled_by_the_size_of_a_pointer(tmp_path):
    texts = [["abcdefghijklmnopqrstuvwxyz", "", "é"], ["a", "bc", "def"]]
    write(f"file://{tmp_path}/a.zarr#mode=zarr,file", f"""
    file.createDimension("y", 2)
    file.createDimension("x", 3)
    file.createVariable("s", str, ("y", "x"), zlib=True, chunksizes=(2, 2), fill_value="q")[:] = np.array(
        {texts}, object)
    file.createVariable("c", "S1", ("y", "x"), fill_value=b"q")[:] = np.array([[b"a", b"b", b"c"]] * 2)
""")
    group = zcore.open(tmp_path / "a.zarr")
    assert [text.decode() for text in group["s"][...].ravel().tolist()] == [*texts[0], *texts[1]]
    assert group["c"].fill_value == group["s"].fill_value == b"q" and group["c"][0].tolist() == [b"a", b"b", b"c"]


def write_documents(path):
    """Write the documents that netcdf-c 4.10 writes."""
    (path / "x").mkdir(parents=True)
    (path / ".zgroup").write_text('{"zarr_format": 2}')
    fills = {f"s{i}": ("|S128", text) for i, text in enumerate(TEXTS)}
    fills |= {f"c{i}": (">S1", int(char) if char.isdigit() else char) for i, char in enumerate(CHARACTERS)}
    for name, (dtype, fill) in fills.items():
        (path / name).mkdir()
        (path / name / ".zarray").write_text(json.dumps({
            "zarr_format": 2, "shape": [4], "dtype": dtype, "chunks": [2], "fill_value": fill, "order": "C",
            "compressor": None, "filters": None}))
        (path / name / ".zattrs").write_text(json.dumps({"_FillValue": fill, "_ARRAY_DIMENSIONS": ["x"]}))
        (path / name / "0").write_bytes(np.array(["a", "b"], dtype).tobytes())


@pytest.mark.parametrize("mode", ["by hand", pytest.param("zarr", marks=needs_netcdf4),
                                  pytest.param("nczarr", marks=needs_netcdf4)])
def test_elements_never_written_are_the_fill_value_of_texts(mode, tmp_path):
    """In every way to read them, and in copies, which have it as the specification says."""
    path = tmp_path / "a.zarr"
    if mode == "by hand":
        write_documents(path)
    else:
        write(f"file://{path}#mode={mode},file", f"""
    file.createDimension("x", 4)
    for i, text in enumerate({TEXTS}):
        file.createVariable(f"s{{i}}", str, ("x",), chunksizes=(2,), fill_value=text)[:2] = np.array(["a", "b"], object)
    for i, char in enumerate({CHARACTERS!r}):
        file.createVariable(f"c{{i}}", "S1", ("x",), chunksizes=(2,), fill_value=char.encode())[:2] = \\
            np.array([b"a", b"b"])
""")
    fills = {f"s{i}": text.encode() for i, text in enumerate(TEXTS)}
    fills |= {f"c{i}": char.encode() for i, char in enumerate(CHARACTERS)}
    zcore.copy(path, tmp_path / "v2.zarr")
    zcore.copy(path, tmp_path / "v3.zarr", zarr_format=3)
    zcore.copy(tmp_path / "v3.zarr", tmp_path / "back.zarr", zarr_format=2)
    ways = {place: zcore.open(tmp_path / place) for place in ("a.zarr", "v2.zarr", "v3.zarr", "back.zarr")}
    ways["references"] = zcore.open(zcore.references(path))
    assert zcore.verify(path).ok
    for name, fill in fills.items():
        for way, group in ways.items():
            assert group[name][1:].tolist() == [b"b", fill, fill], (way, name)
        assert pickle.loads(pickle.dumps(ways["a.zarr"][name]))[3] == fill
        array = zcore.open(path, path=name, mode="r+")
        array.resize(5)
        assert zcore.open(path, path=name)[4] == fill
        for place in ("v2.zarr", "back.zarr"):
            document = json.loads((tmp_path / place / name / ".zarray").read_text())
            assert document["fill_value"] == base64.b64encode(fill).decode()
    zcore.consolidate_metadata(path)
    assert zcore.verify(path).ok
    for name, fill in fills.items():
        assert zcore.open_consolidated(path)[name][3] == fill


def test_fill_value_of_texts_by_xarray(tmp_path):
    xarray = pytest.importorskip("xarray")
    write_documents(tmp_path / "a.zarr")
    zcore.copy(tmp_path / "a.zarr", tmp_path / "v2.zarr")
    zcore.copy(tmp_path / "a.zarr", tmp_path / "v3.zarr", zarr_format=3)
    for place in ("a.zarr", "v2.zarr", "v3.zarr"):
        dataset = xarray.open_dataset(tmp_path / place, engine="zcore", decode_cf=False)
        for i, text in enumerate(TEXTS):
            assert dataset[f"s{i}"].attrs["_FillValue"] == dataset[f"s{i}"].values[3] == text.encode(), (place, text)


@needs_netcdf4
@pytest.mark.filterwarnings("ignore:codec")
def test_each_filter_of_a_zarr_store(path, tmp_path):
    zcore.copy(path, tmp_path / "v2.zarr")
    zcore.copy(path, tmp_path / "v3.zarr", zarr_format=3)
    for store in (path, tmp_path / "v2.zarr", tmp_path / "v3.zarr"):
        group = zcore.open(store)
        assert len(group) == 10 * len(FILTERS)
        for name, array in group.members():
            assert (array[:] == VALUES).all(), name


@needs_netcdf4
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
@pytest.mark.parametrize("format", [2, 3])
def test_copies_of_checksums_before_a_shuffle_are_read_by_zarr_python(format, tmp_path):
    """NetCDF-4's order. numcodecs does not shuffle items of 8 bytes and a checksum of 4."""
    zarr, h5py = pytest.importorskip("zarr", minversion="3"), pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.nc", "w") as file:
        for kind in ("i1", "i4", "i8", "c16"):
            properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            properties.set_fletcher32()
            file.create_dataset(kind, data=VALUES.astype(kind), chunks=(30,), shuffle=True, dcpl=properties)
    zcore.copy(tmp_path / "a.nc", tmp_path / "new.zarr", zarr_format=format)
    with zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}):
        for name, array in zarr.open_group(tmp_path / "new.zarr", mode="r").members():
            assert (array[:] == VALUES.astype(name)).all(), name


@needs_netcdf4
@pytest.mark.filterwarnings("ignore")
def test_by_xarray(path):
    xarray = pytest.importorskip("xarray")
    for name, array in xarray.open_dataset(path, engine="zcore", mask_and_scale=False).data_vars.items():
        assert (array.values == VALUES).all(), name
