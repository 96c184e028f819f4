"""Verbs that read also read files that are no stores: HDF5, .npy, .npz."""
import json
import zipfile

import numpy as np
import pytest

import zcore
from zcore.cli.location import opened
from zcore.tools.copy.sources import open_source
from zcore.tools.files.store import SourceStore

VALUES = np.arange(60, dtype="<f4").reshape(6, 10)


@pytest.fixture
def hdf5():
    """Make the file `x.h5`: a group with a compressed dataset, of which a chunk is missing, and some others."""
    h5py = pytest.importorskip("h5py")
    with h5py.File("x.h5", "w") as file:
        file.attrs["title"] = "weather"
        made = file.create_dataset("g/t2m", shape=(6, 10), dtype="<f4", chunks=(4, 5), compression="gzip", fillvalue=-1)
        made[:4] = VALUES[:4]
        made[4:, :5] = VALUES[4:, :5]
        made.attrs["units"] = "K"
        file["names"] = np.array(["a", "bc"], object)
        file["one"] = 3.5
        file["links"] = np.array([made.ref], h5py.ref_dtype)
    return "x.h5"


def test_an_hdf5_file_is_listed_with_a_warning_for_what_is_no_array(run, hdf5):
    code, out, complaint = run("tree", hdf5)
    assert (code, out.splitlines()) == (0, [
        "x.h5", "├── g", "│   └── t2m  6 x 10 float32", "├── names  2 string", "└── one  () float64"])
    assert "is not complete without datasets with references" in complaint and "links" in complaint
    assert run("ls", hdf5)[1] == "g/\nnames\none\n"
    assert run("ls", "-l", "x.h5/g") == (
        0, "format        type   shape  chunks     stored  name\n"
           f"HDF5 file  float32  6 x 10   4 x 5  {sum(stored_sizes()):3} bytes  t2m\n", "")


def test_attributes_that_are_no_json_are_shown_and_compared(run):
    h5py = pytest.importorskip("h5py")
    for name, value in (("f.h5", np.nan), ("g.h5", 7.0)):
        with h5py.File(name, "w") as file:
            made = file.create_dataset("v", data=VALUES)
            made.attrs["_FillValue"] = np.float32("nan")
            made.attrs["missing_value"] = value
            file.attrs["range"] = [0, value]
    assert run("attrs", "f.h5/v") == (0, "_FillValue = NaN\nmissing_value = NaN\n", "")
    assert run("diff", "f.h5", "f.h5") == (0, "", "")
    assert run("diff", "f.h5", "g.h5")[1].splitlines() == [
        "/: attribute range: [0.0, NaN] and [0.0, 7.0]", "v: attribute missing_value: NaN and 7.0"]
    assert run("cp", "g.h5", "g.zarr")[0] == 0 and run("diff", "g.h5", "g.zarr") == (0, "", "")
    assert zcore.open("g.zarr/v").attrs["_FillValue"] == "AAAAAAAA+H8="     # xarray's NaN in Zarr v3


def stored_sizes():
    """Return the sizes of the chunks of the dataset, as HDF5 says them."""
    import h5py

    with h5py.File("x.h5") as file:
        dataset = file["g/t2m"]
        return [dataset.id.get_chunk_info(i).size for i in range(dataset.id.get_num_chunks())]


def test_a_dataset_is_described_as_the_file_has_it(run, hdf5):
    rows = json.loads(run("info", "--json", "--chunks", "x.h5/g/t2m")[1])
    assert (rows["format"], rows["path"], rows["chunks"], rows["objects"], rows["objects_stored"]) == (
        "HDF5 file", "g/t2m", [4, 5], 4, 3)
    assert rows["nbytes_stored"] == sum(stored_sizes()) and rows["fill_value"] == -1
    assert rows["codecs"][-1] == {"name": "numcodecs.zlib", "configuration": {"level": 4}}
    code, out, complaint = run("info", "x.h5/g/t2m")
    assert (code, complaint) == (0, "") and "format      HDF5 file, array" in out and "numcodecs.zlib(level=4)" in out
    assert "chunks" not in run("info", "x.h5/one")[1]
    assert run("info", "--chunks", "x.h5/one")[0] == 1


def test_elements_and_attributes_of_a_dataset(run, hdf5):
    expected = VALUES.copy()
    expected[4:, 5:] = -1
    assert json.loads(run("cat", "--json", "x.h5/g/t2m")[1]) == expected.tolist()
    assert run("cat", "x.h5/g/t2m", "5, 3:7") == (0, "53.0\n54.0\n-1.0\n-1.0\n", "")
    assert run("cat", "x.h5/names")[1] == "a\nbc\n" and run("cat", "x.h5/one")[1] == "3.5\n"
    assert run("attrs", "x.h5/g/t2m")[1] == 'units = "K"\n'
    assert run("plot", "x.h5/g/t2m")[0] == 0
    assert run("diff", "x.h5/g/t2m", "x.h5/g/t2m")[0] == 0


def test_a_missing_dataset_and_one_that_is_no_array(run, hdf5):
    assert run("cat", "x.h5/no") == (1, "", "zcore cat: x.h5 holds no 'no'\n")
    assert "such as x.h5/g/t2m\n" in run("cat", "x.h5/g")[2]
    assert "such as x.h5/g/t2m, x.h5/names, x.h5/one\n" in run("cat", "x.h5")[2]
    assert "no array has" in run("info", "x.h5/links")[2]


def test_chunks_that_the_file_lacks_are_not_read(run, monkeypatch):
    h5py = pytest.importorskip("h5py")
    with h5py.File("x.h5", "w") as file:
        file.create_dataset("x", (99, 99), "i4", chunks=(10, 10), fillvalue=5)[42, 57] = 1
        file.create_dataset("t", (9, 9), h5py.string_dtype(), chunks=(5, 5), fillvalue="f")[0, 0] = "a"
        file.create_dataset("m", (9,), h5py.opaque_dtype("M8[s]"), chunks=(5,))
    read, shapes = h5py.Dataset.__getitem__, []
    monkeypatch.setattr(h5py.Dataset, "__getitem__", lambda self, at: shapes.append(at) or read(self, at))
    x = opened("x.h5/x")[...]
    assert shapes == [(slice(40, 50, 1), slice(50, 60, 1))] and x[42, 57] == 1 and x.sum() == 5 * 99 * 99 - 4
    t = opened("x.h5/t")[...]
    assert t[0, 0] == "a" and (t.ravel()[1:] == "f").all()
    assert (opened("x.h5/m")[...] == np.datetime64(0, "s")).all(), "a new array has NaT there"


def test_numpy_files(run, save):
    save("a.npy", VALUES[:, ::-1])
    np.savez_compressed("z.npz", t2m=VALUES.T, n=np.arange(3, dtype="i8"))
    assert json.loads(run("cat", "--json", "a.npy")[1]) == VALUES[:, ::-1].tolist()
    assert json.loads(run("cat", "--json", "z.npz/t2m")[1]) == VALUES.T.tolist()
    assert run("tree", "z.npz") == (0, "z.npz\n├── n  3 int64\n└── t2m  10 x 6 float32\n", "")
    assert json.loads(run("info", "--json", "a.npy")[1])["nbytes_stored"] == VALUES.nbytes


def test_a_source_is_read_in_any_parts(save):
    """Chunks of the view are no parts of the file; edges, absent ones and other names are right, too."""
    values = np.arange(3 * 700 * 900, dtype="i4").reshape(3, 700, 900)
    save("a.npy", values)
    store = SourceStore(open_source("a.npy", "", None, None), "a.npy", "", "")
    array = zcore.open(store)
    np.testing.assert_array_equal(array[1:, ::-3, 5:800], values[1:, ::-3, 5:800])
    assert sum(size for _, size in store.list_sizes("")) == values.nbytes
    assert store.get("c/9/9/9") is store.get("d") is store.getsize("c/9/9/9") is None
    key = next(key for key, size in store.list_sizes("c/") if size)
    assert store.get(key, (4, 8)) == store.get(key)[4:12]
    with pytest.raises(zcore.ReadOnlyError):
        array[0] = 0


def test_a_compressed_member_has_the_size_that_it_has_in_the_file(run):
    np.savez_compressed("x.npz", a=np.zeros((1000, 2000)), b=VALUES)
    with zipfile.ZipFile("x.npz") as archive:
        sizes = {name[0]: archive.getinfo(name).compress_size for name in archive.namelist()}
    rows = json.loads(run("ls", "-l", "--json", "x.npz")[1])
    assert {row["path"]: row["nbytes_stored"] for row in rows} == sizes and sizes["a"] < 100_000
    found = json.loads(run("info", "--json", "x.npz/a")[1])
    assert (found["nbytes_stored"], [codec["name"] for codec in found["codecs"]]) == (sizes["a"], ["deflate"])
    np.savez("y.npz", a=VALUES)
    found = json.loads(run("info", "--json", "y.npz/a")[1])
    assert (found["nbytes_stored"], found["codecs"]) == (VALUES.nbytes, [])


def test_a_folder_shows_its_files(run, hdf5, save):
    save("a.npy", VALUES)
    zcore.save("b.zarr", VALUES)
    for name in ("notes.txt", "c.json"):
        open(name, "w").close()
    with zipfile.ZipFile("d.zip", "w") as archive:
        archive.writestr("readme", "")
    assert run("ls")[:2] == (0, "a.npy\nb.zarr\nx.h5/\n")
    assert run("ls", "-r")[1].splitlines()[2:4] == ["x.h5/", "x.h5/g/"]
    with open("damaged.h5", "w") as file:
        file.write("no")
    code, out, _ = run("ls")
    assert code == 1 and "damaged.h5  cannot read the HDF5 file" in out


def test_a_new_array_of_the_elements_of_a_file(run, hdf5):
    np.savez("z.npz", t2m=VALUES)
    assert run("create", "b.zarr", "--data", "z.npz/t2m", "--chunks", "(3, 5)")[0] == 0
    np.testing.assert_array_equal(zcore.open("b.zarr")[:], VALUES)
    assert zcore.open("b.zarr").chunks == (3, 5)
    code, _, err = run("create", "c.zarr", "--data", "z.npz")
    assert code == 1 and "expected an array, such as z.npz/t2m" in err
