"""Reference sets made of what zcore stores: every format, directory and zip, and saved anywhere."""
import json
import pickle
import zipfile

import numpy as np
import pytest

import zcore
from zcore.__main__ import main
from zcore.errors import InvalidKeyError, ReferenceFormatError, ReferenceTargetError, UnsupportedError
from zcore.stores.reference.store import ReferenceStore
from zcore.tools.references.references import references

VALUES = np.random.default_rng(3).integers(0, 1000, (20, 30)).astype("<i4")


def fill(store, zarr_format):
    """Create a hierarchy of two arrays, one of which lacks chunks, in a store."""
    zcore.create_group(store, zarr_format=zarr_format, attributes={"title": "a title"})
    zcore.create_array(store, name="deep/x", shape=(20, 30), dtype="<i4", chunks=(7, 8), zarr_format=zarr_format,
                       attributes={"units": "m"})[...] = VALUES
    zcore.create_array(store, name="holes", shape=(20, 30), dtype="<i4", chunks=(7, 8), fill_value=5,
                       zarr_format=zarr_format)[:7, :8] = VALUES[:7, :8]
    zcore.create_array(store, name="scalar", shape=(), dtype="f8", zarr_format=zarr_format)[...] = 2.5
    zcore.create_array(store, name="texts", data=np.array(["a", "bc"], object), dtype=str, zarr_format=zarr_format)


def check(opened):
    """Check that a hierarchy is the one that `fill` made."""
    np.testing.assert_array_equal(opened["deep/x"][...], VALUES)
    np.testing.assert_array_equal(opened["deep/x"][3:17:2, ::-3], VALUES[3:17:2, ::-3])
    expected = np.full_like(VALUES, 5)
    expected[:7, :8] = VALUES[:7, :8]
    np.testing.assert_array_equal(opened["holes"][...], expected)
    assert opened["holes"].nchunks_initialized == 1 and opened["scalar"][()] == 2.5
    assert opened["texts"][...].tolist() == ["a", "bc"]
    assert opened.attrs["title"] == "a title" and opened["deep/x"].attrs["units"] == "m"


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_directory(tmp_path, zarr_format):
    """RF-STO-02, RF-STO-03, RF-GEN-11: opened as it is, saved beside, in, above and far from the source, pickled."""
    fill(tmp_path / "sub/made", zarr_format)
    (tmp_path / "sub/made/foreign.bin").write_bytes(bytes(100))
    made = zcore.references(tmp_path / "sub/made")
    check(zcore.open(made))
    check(zcore.open(pickle.loads(pickle.dumps(made))))
    chunk = "deep/x/c/1/2" if zarr_format == 3 else "deep/x/1.2"
    assert made.to_v0()[chunk] == [chunk] and not made.exists("foreign.bin") and made.read_only
    assert made.to_v0(absolute=True)[chunk] == [str(tmp_path / "sub/made" / chunk)]
    with pytest.raises(ValueError, match="name it .json"):
        made.save(tmp_path / "refs.parq")
    for place, url in ((tmp_path / "sub/made", chunk), (tmp_path / "sub", "made/" + chunk),
                       (tmp_path, "sub/made/" + chunk)):
        made.save(place / "refs.json")
        saved = ReferenceStore(place / "refs.json")
        assert saved.to_v0()[chunk] == [url]
        check(zcore.open(saved))
    (tmp_path / "other").mkdir()
    made.save(tmp_path / "other/refs.json")
    with pytest.raises(ReferenceTargetError, match="would permit"):
        zcore.open(tmp_path / "other/refs.json")["deep/x"][...]
    check(zcore.open(ReferenceStore(tmp_path / "other/refs.json", allowed=[tmp_path / "sub"])))
    again = zcore.references(made)
    assert again.to_v0() == made.to_v0()


def test_a_node_of_a_store(tmp_path):
    """RF-STO-03: keys begin at the node."""
    fill(tmp_path / "made", 3)
    for made in (zcore.references(tmp_path / "made", path="deep"),
                 zcore.references(zcore.open(tmp_path / "made")["deep"])):
        np.testing.assert_array_equal(zcore.open(made)["x"][...], VALUES)
        assert made.to_v0()["x/c/0/0"] == ["deep/x/c/0/0"]
    made = zcore.references(zcore.open(tmp_path / "made")["deep/x"])
    np.testing.assert_array_equal(zcore.open(made)[...], VALUES)
    with pytest.raises(zcore.NodeNotFoundError):
        zcore.references(tmp_path / "made", path="nothing")


def test_shards(tmp_path):
    """RF-STO-03: a shard is one reference."""
    zcore.create_array(tmp_path, shape=(20, 30), dtype="<i4", chunks=(5, 5), shards=(10, 15))[...] = VALUES
    made = references(tmp_path)
    assert [key for key in made.list()] == ["c/0/0", "c/0/1", "c/1/0", "c/1/1", "zarr.json"]
    np.testing.assert_array_equal(zcore.open(made)[...], VALUES)
    np.testing.assert_array_equal(zcore.open(made)[3:12, 7:9], VALUES[3:12, 7:9])


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_zip(tmp_path, compression):
    """RF-STO-03: what is stored is a part of the archive, what is deflated is copied, as far as it may."""
    with zcore.ZipStore(tmp_path / "made.zip", mode="w", compression=compression) as store:
        fill(store, 3)
    if compression == zipfile.ZIP_DEFLATED:
        with pytest.raises(UnsupportedError, match="max_inlined"):
            references(tmp_path / "made.zip", max_inlined=1000)
    made = references(tmp_path / "made.zip")
    check(zcore.open(made))
    written = made.to_v0()["deep/x/c/0/0"]
    assert isinstance(written, str) if compression == zipfile.ZIP_DEFLATED else written[0] == "made.zip"
    made.save(tmp_path / "refs.json")
    check(zcore.open(tmp_path / "refs.json"))


def test_memory():
    """RF-STO-02: all of it is copied."""
    store = zcore.MemoryStore()
    fill(store, 2)
    check(zcore.open(references(store)))
    with pytest.raises(UnsupportedError, match="lie in no file"):
        references(store, max_inlined=10)


def test_small_chunks_are_copied(tmp_path):
    """RF-STO-02"""
    fill(tmp_path / "made", 2)
    size = (tmp_path / "made/deep/x/0.0").stat().st_size
    made = references(tmp_path / "made", inline_threshold=size - 1)
    assert isinstance(made.to_v0()["scalar/0"], str) and made.to_v0()["deep/x/0.0"] == ["deep/x/0.0"]
    check(zcore.open(made))


@pytest.mark.parametrize("options", [{}, {"cname": "zlib", "shuffle": 2}, {"clevel": 0}])
@pytest.mark.parametrize("dtype", ["<i4", ">f8", "|S3", "<M8[D]", [("a", "<i2"), ("b", "|S2")]])
def test_arrays_of_2016(tmp_path, options, dtype):
    """RF-STO-03: seen as Zarr v2."""
    dtype = np.dtype(dtype)
    values = np.random.default_rng(1).integers(1, 100, (7, 9, dtype.itemsize)).astype("u1").view(dtype)[..., 0]
    array = zcore.open(tmp_path / "old", "w", shape=(7, 9), chunks=(3, 4), dtype=dtype, zarr_format="zmeta",
                       attributes={"units": "m"}, **options)
    array[:6] = values[:6]
    made = references(tmp_path / "old")
    assert made.to_v0()["1.2"] == ["__zdata__/1.2.blosc"] and "2.0" not in made.to_v0()
    opened = zcore.open(made)
    assert opened.zarr_format == 2 and opened.attrs["units"] == "m" and opened.fill_value == array.fill_value
    assert opened[...].tobytes() == array[...].tobytes() and opened.dtype == dtype
    document = json.loads(made.get(".zarray"))
    assert document["compressor"]["id"] == "blosc" and document["filters"] is None and document["order"] == "C"


def test_an_array_of_2016_in_a_hierarchy(tmp_path):
    """RF-STO-03"""
    zcore.create_group(tmp_path, zarr_format=2)
    zcore.open(tmp_path, "w", path="old", shape=4, chunks=2, dtype="i4", zarr_format="zmeta")[:] = 3
    made = references(tmp_path)
    assert {".zgroup", "old/.zarray", "old/0", "old/1"} <= set(made.list())
    assert zcore.open(made)["old"][:].tolist() == [3] * 4


def test_a_separator_that_the_document_does_not_say(tmp_path):
    """RF-STO-03: old nested arrays, of which the handle was told."""
    zcore.create_array(tmp_path, shape=(4, 4), chunks=(2, 2), dtype="u1", zarr_format=2,
                       chunk_key_encoding="/")[...] = 1
    document = json.loads((tmp_path / ".zarray").read_text())
    del document["dimension_separator"]
    (tmp_path / ".zarray").write_text(json.dumps(document))
    made = references(zcore.open(tmp_path, dimension_separator="/"))
    assert zcore.open(made)[...].tolist() == [[1] * 4] * 4 and made.exists("1/1")


def test_names_that_look_like_urls(tmp_path):
    """RF-URL-01"""
    zcore.create_array(tmp_path / "file:made", name="a:b", shape=4, chunks=2, dtype="u1", zarr_format=2)[:] = 1
    made = references(zcore.DirectoryStore(tmp_path / "file:made"))
    assert zcore.open(made)["a:b"][:].tolist() == [1] * 4
    assert made.to_v0()["a:b/0"] == [str(tmp_path / "file:made/a:b/0")]


def test_references_that_are_none():
    """RF-V1-04, RF-V0-06"""
    for extent in (("a", -1, 2), ("a", 1, -2), ("a", 2**63 - 1, 1)):
        with pytest.raises(ReferenceFormatError, match="from 0 on"):
            ReferenceStore.of({"x": extent})
    with pytest.raises(InvalidKeyError):
        ReferenceStore.of({"../x": b""})


def test_where_values_lie(tmp_path):
    """RF-STO-01: `extent` of every store."""
    zcore.DirectoryStore(tmp_path).set("a/b", b"value")
    with zcore.ZipStore(tmp_path / "a.zip", mode="w") as store:
        store.set("a/b", b"value")
        assert store.extent("a/b") is None
    stores = [zcore.DirectoryStore(tmp_path), zcore.ZipStore(tmp_path / "a.zip"),
              ReferenceStore({"a/b": ["a/b"]}, base=str(tmp_path)),
              ReferenceStore({"a/b": ["a/b", 0, 5]}, base=str(tmp_path))]
    for store in stores:
        path, offset, n_bytes = store.extent("a/b")
        with open(path, "rb") as file:
            file.seek(offset)
            assert file.read(-1 if n_bytes is None else n_bytes) == b"value"
        assert store.extent("a/c") is None and store.extent("a") is None
    assert zcore.MemoryStore({"a": b"b"}).extent("a") is None and ReferenceStore({"a": "b"}).extent("a") is None


def daily(lengths, chunk=4):
    """Return groups in directories with a variable along time and its coordinate, and all values of the variable."""
    groups, values, start = [], [], 0
    for i, n in enumerate(lengths):
        group = zcore.create_group(f"{i}.zarr")
        group.create_array("time", data=np.arange(start, start + n), chunks=512, dimension_names=["time"])
        group.create_array("lat", data=np.arange(6.0), dimension_names=["lat"])
        values.append(np.arange(start * 6, (start + n) * 6).reshape(6, n))
        group.create_array("sub/t", data=values[-1], chunks=(3, chunk), dimension_names=["lat", "time"])
        groups.append(group)
        start += n
    return groups, np.concatenate(values, axis=1)


def test_a_list_is_joined_along_a_dimension(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    groups, values = daily([8, 4, 7])
    made = zcore.references(groups, along="time")
    found = zcore.open(made)
    np.testing.assert_array_equal(found["sub/t"][:], values)
    assert found["time"][:].tolist() == list(range(19)) and found["lat"].shape == (6,)
    # What fits together is referred to, and a small array that does not is copied.
    references = made.to_v0()
    assert len([key for key in references if key.startswith("sub/t/c/")]) == 2 * 5
    assert all(isinstance(references[key], list) for key in references if key.startswith("sub/t/c/"))
    assert isinstance(references["time/c/0"], str) and references["lat/c/0"][0] == "0.zarr/lat/c/0"
    paths = ["0.zarr", "1.zarr", "2.zarr"]
    assert zcore.references(paths, along="time", path="sub/t").to_v0().keys() == {
        key.removeprefix("sub/t/") for key in references if key.startswith("sub/t/")}
    made.save("set.json")
    np.testing.assert_array_equal(zcore.open("set.json", path="sub/t")[:], values)


def test_objects_outside_an_array_are_not_those_of_the_next(tmp_path):
    """A resize that was killed leaves them behind."""
    arrays = [zcore.create_array(tmp_path / str(i), shape=n, chunks=2, dtype="u1", dimension_names=["t"])
              for i, n in enumerate((8, 4))]
    arrays[0][:] = 1
    arrays[1][2:] = 2
    document = tmp_path / "0/zarr.json"
    document.write_text(document.read_text().replace("8", "4", 1))
    found = zcore.references([tmp_path / "0", tmp_path / "1"], along="t")
    assert zcore.open(found)[:].tolist() == [1, 1, 1, 1, 0, 0, 2, 2]


def test_a_list_that_does_not_fit_together(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    groups, values = daily([8, 7, 4])
    with pytest.raises(zcore.UnsupportedError, match="1.zarr.*ends within a chunk of 4"):
        zcore.references(groups, along="time", max_inlined=200)
    np.testing.assert_array_equal(zcore.open(zcore.references(groups, along="time"))["sub/t"][:], values)
    zcore.copy("1.zarr/sub/t", "2.zarr/sub/t", chunks=(2, 4), overwrite=True)
    with pytest.raises(zcore.UnsupportedError, match="2.zarr.*other chunks"):
        zcore.references(["0.zarr", "2.zarr"], along="time", max_inlined=200)
    groups[1]["lat"][0] = 9
    with pytest.raises(ValueError, match="1.zarr.*'lat' differ"):
        zcore.references(groups[:2], along="time")
    for arguments in ({"source": groups}, {"source": groups[0], "along": "time"}):
        with pytest.raises(ValueError, match="list of sources"):
            zcore.references(**arguments)


def test_hdf5_files_are_joined_by_the_command(tmp_path, monkeypatch, capsys):
    h5py = pytest.importorskip("h5py")
    monkeypatch.chdir(tmp_path)
    for i, units in enumerate(("K", "K", "C")):
        with h5py.File(f"{i}.nc", "w") as file:
            time = file.create_dataset("time", data=np.arange(i * 4, i * 4 + 4), chunks=(4,), maxshape=(None,))
            time.make_scale("time")
            made = file.create_dataset("t", data=np.arange(i * 4.0, i * 4 + 4), chunks=(2,), compression="gzip")
            made.dims[0].attach_scale(time)
            made.attrs["units"] = units
    assert main(["refs", "make", "0.nc", "1.nc", "--along", "time", "--out", "set.json"]) == 0
    assert zcore.open("set.json")["t"][:].tolist() == list(range(8)) == zcore.open("set.json")["time"][:].tolist()
    assert main(["refs", "make", "0.nc", "2.nc", "--along", "time", "--out", "x.json"]) == 1
    assert "2.nc" in (err := capsys.readouterr().err) and "t has the units C, expected K" in err
    assert main(["refs", "make", "0.nc", "1.nc", "--out", "x.json"]) == 1 and "--along" in capsys.readouterr().err


@pytest.mark.parametrize("allowed", [None, [], ["https://host/"]])
def test_targets_that_a_set_permits_are_those_of_the_sets_made_of_it(tmp_path, allowed):
    """An empty list permits no remote target, None all of them."""
    zcore.create_array(tmp_path / "a.zarr", data=np.arange(4))
    zcore.references(tmp_path / "a.zarr").save(tmp_path / "refs.json")
    opened = ReferenceStore(tmp_path / "refs.json", allowed=allowed)
    assert zcore.references(zcore.open(opened)).allowed == opened.allowed
    assert opened.allowed == (None if allowed is None else tuple(allowed))


def test_a_set_that_is_joined_leads_nowhere_else(tmp_path):
    """Files below a common directory are not those that a set may point to."""
    (tmp_path / "secret").write_bytes(bytes(16))
    for name in ("theirs", "mine"):
        zcore.create_array(tmp_path / name / "a.zarr", data=np.arange(4, dtype="i4"), compressors=None, checksum=False,
                           dimension_names=["t"])
    refs = zcore.references(tmp_path / "theirs/a.zarr").to_v0()
    (tmp_path / "theirs/refs.json").write_text(json.dumps(refs | {"c/0": [str(tmp_path / "secret"), 0, 16]}))
    with pytest.raises(zcore.UnsupportedError, match="its own directory"):
        zcore.references([tmp_path / "theirs/refs.json", tmp_path / "mine/a.zarr"], along="t")


@pytest.mark.parametrize("fills", [(-1.0, -2.0), (-1.0, None), (None, -1.0)])
def test_arrays_are_not_joined_if_other_elements_are_missing(fills, tmp_path):
    """Readers take elements that are the fill value of Zarr v2 for missing, and a set has one for all."""
    for i, fill in enumerate(fills):
        g = zcore.create_group(tmp_path / f"{i}.zarr", zarr_format=2)
        g.create_array("t", data=np.array([5.0, -1.0]), chunks=2, fill_value=fill,
                       attributes={"_ARRAY_DIMENSIONS": ["time"]})
    paths = [tmp_path / "0.zarr", tmp_path / "1.zarr"]
    with pytest.raises(ValueError, match=f"fill value {fills[1]}, expected {fills[0]}"):
        zcore.references([zcore.open_group(path) for path in paths], along="time")
    assert zcore.references([zcore.open_group(paths[0])] * 2, along="time")
