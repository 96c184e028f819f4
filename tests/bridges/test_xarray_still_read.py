"""What dask still reads is neither deleted nor overwritten by `zcore.xarray.to_zarr`, however the store is spelled."""
import os
import pathlib
import threading
import warnings

import numpy as np
import pytest

import zcore

xr = pytest.importorskip("xarray")
pytest.importorskip("dask")
zarr = pytest.importorskip("zarr")

import dask.array  # noqa: E402

from zcore.xarray import to_zarr  # noqa: E402

ENGINES = pytest.mark.parametrize("engine", ["zcore", "zarr"])


@pytest.fixture(autouse=True)
def _without_warnings(recwarn):
    warnings.simplefilter("ignore")


def made():
    ds = xr.Dataset({"t": (("time", "x"), np.arange(1000.0).reshape(100, 10)), "u": ("time", np.arange(100.0)),
                     "p": ("time", np.arange(100.0))}, {"time": np.arange(100), "x": np.arange(10)})
    ds["p"].encoding = {"dtype": "i2", "scale_factor": 0.5, "_FillValue": -9}
    return ds


def stored(place, **keywords):
    return to_zarr(made(), place, encoding={"t": {"chunks": (10, 10)}}, **keywords)


def opened(place, engine="zcore", **keywords):
    return xr.open_dataset(place, engine=engine, chunks={"time": 10}, **keywords)


def _in_a_closure(ds):
    array = ds.t
    return ds.assign(t=(("time", "x"), dask.array.map_blocks(lambda block: array.values + block,
                                                           dask.array.zeros((100, 10)), dtype="f8")))


def _beside_a_lock(ds):
    lock = threading.Lock()

    def locked(block):
        with lock:
            return block
    return ds.assign(t=(("time", "x"), ds.t.data.map_blocks(locked)))


DERIVED = {
    "itself": lambda ds: ds,
    "plus": lambda ds: ds + 1,
    "a variable": lambda ds: ds.t.to_dataset(),
    "merge": lambda ds: xr.merge([ds]),
    "where": lambda ds: ds.where(ds.t > 5),
    "astype": lambda ds: ds.astype("f4"),
    "coarsen": lambda ds: ds.coarsen(time=2).mean(),
    "isel": lambda ds: ds.isel(time=slice(50)),
    "rename": lambda ds: ds.rename(t="q"),
    "concat": lambda ds: xr.concat([made().chunk(time=10), ds], "time"),
    "apply_ufunc": lambda ds: xr.apply_ufunc(np.sqrt, ds, dask="parallelized", output_dtypes=["f8"]),
    "map_blocks": lambda ds: ds.unify_chunks().map_blocks(lambda block: block + 1),
    "rolling": lambda ds: ds.rolling(time=3).mean(),
    "interp": lambda ds: ds[["u"]].chunk(time=-1).shift(time=1),
    "sortby": lambda ds: ds.sortby("time", ascending=False),
    "rechunk": lambda ds: ds.chunk(time=7),
    "groupby": lambda ds: ds.assign_coords(g=("time", np.arange(100) % 3)).groupby("g").mean(),
    "stack": lambda ds: ds[["t"]].stack(z=("time", "x")).reset_index("z"),
    "closure": _in_a_closure,
    "beside what cannot be pickled": _beside_a_lock,
    "tree": lambda ds: xr.DataTree.from_dict({"/": made(), "/deep/er": ds}),
}


class TestReplaced:
    @pytest.mark.thinned(2, "derive", "engine")
    @ENGINES
    @pytest.mark.parametrize("derive", DERIVED.values(), ids=DERIVED)
    def test_whatever_was_made_of_it(self, tmp_path, derive, engine):
        stored(tmp_path / "a")
        before = {path: path.read_bytes() for path in (tmp_path / "a").rglob("*") if path.is_file()}
        with pytest.raises(ValueError, match="would delete"):
            to_zarr(derive(opened(tmp_path / "a", engine)), tmp_path / "a", "w")
        assert {path: path.read_bytes() for path in (tmp_path / "a").rglob("*") if path.is_file()} == before

    SPELLINGS = {
        "text": str, "path": pathlib.Path, "uri": lambda path: f"file://{path}", "store": zcore.DirectoryStore,
        "link": lambda path: f"{path}.link", "slash": lambda path: f"{path}/", "relative": os.path.relpath,
        "dots": lambda path: f"{path}/../{path.name}",
    }
    SOURCES = SPELLINGS | {"group": zcore.open_group, "array": lambda path: zcore.open(path)["t"]}

    @pytest.mark.thinned(4, "source", "target")
    @pytest.mark.parametrize("target", SPELLINGS.values(), ids=SPELLINGS)
    @pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
    def test_however_it_is_spelled(self, tmp_path, monkeypatch, source, target):
        monkeypatch.chdir(tmp_path)
        path = tmp_path / "a.zarr"
        stored(path)
        os.symlink(path, f"{path}.link")
        with pytest.raises(ValueError, match="would delete"):
            to_zarr(xr.open_dataset(source(path), engine="zcore", chunks={}), target(path), "w")

    @ENGINES
    @pytest.mark.parametrize(("source", "target", "is_refused"), [
        ("deep/er", "", True), ("deep/er", "deep", True), ("deep/er", "deep/er", True), ("deep/er", "deep/e", False),
        ("deep/er", "deep/other", False), ("", "deep/er", False)])
    def test_groups(self, tmp_path, source, target, is_refused, engine):
        stored(tmp_path / "a", group=source)
        ds = opened(tmp_path / "a", engine, group=source)
        if is_refused:
            with pytest.raises(ValueError, match="would delete"):
                to_zarr(ds, tmp_path / "a", "w", group=target)
            with pytest.raises(ValueError, match="would delete"):
                to_zarr(ds, tmp_path / "a" / target, "w")
        else:
            to_zarr(ds, tmp_path / "a", "w", group=target)
            found = xr.open_dataset(tmp_path / "a", engine="zcore", group=target)
            xr.testing.assert_equal(found, made())

    @pytest.mark.thinned(2, "make", "engine")
    @pytest.mark.parametrize("make", [
        lambda path: zcore.MemoryStore(), lambda path: zarr.storage.MemoryStore(),
        lambda path: zarr.storage.LocalStore(path), lambda path: zcore.zarr.Store(path, read_only=False),
        lambda path: zarr.storage.LoggingStore(zarr.storage.LocalStore(path)),
    ], ids=["memory", "memory of zarr-python", "directory of zarr-python", "bridge", "wrapper"])
    @ENGINES
    def test_stores(self, tmp_path, make, engine):
        store, other = make(tmp_path / "a"), make(tmp_path / "b")
        if engine == "zarr" and isinstance(store, zcore.MemoryStore):
            engine = "zcore"
        stored(store)
        ds = opened(store, engine)
        with pytest.raises(ValueError, match="would delete"):
            to_zarr(ds, store, "w")
        to_zarr(ds, other, "w")
        xr.testing.assert_equal(opened(other, engine).compute(), made())

    def test_files_by_other_libraries(self, tmp_path):
        fsspec = pytest.importorskip("fsspec.implementations.local")
        obstore = pytest.importorskip("obstore.store")
        stored(tmp_path)
        path = str(tmp_path)
        for place in (fsspec.LocalFileSystem().get_mapper(path),
                      obstore.LocalStore(path), zarr.storage.ObjectStore(obstore.LocalStore(path)),
                      zarr.storage.FsspecStore.from_url(f"file://{path}")):
            with pytest.raises(ValueError, match="would delete"):
                to_zarr(opened(place), path, "w")
            with pytest.raises(ValueError, match="would delete"):
                to_zarr(opened(path), place, "w")
        memory = obstore.MemoryStore()
        stored(memory)
        to_zarr(opened(memory), obstore.MemoryStore(), "w")
        with pytest.raises(ValueError, match="would delete"):
            to_zarr(opened(memory), memory, "w")

    def test_relative_paths_and_filesystems_in_others(self, tmp_path, monkeypatch):
        """The text of such a store does not say where its files are."""
        local = pytest.importorskip("fsspec.implementations.local").LocalFileSystem()
        from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
        from fsspec.implementations.dirfs import DirFileSystem

        monkeypatch.chdir(tmp_path)
        stored("a.zarr")
        above = DirFileSystem(str(tmp_path), local)

        def of_zarr(fs, path):
            return zarr.storage.FsspecStore(AsyncFileSystemWrapper(fs, asynchronous=True), path=path)

        for place in (zarr.storage.LocalStore("a.zarr"), zarr.storage.LoggingStore(zarr.storage.LocalStore("a.zarr")),
                      of_zarr(local, "a.zarr"), of_zarr(above, "a.zarr"),
                      of_zarr(DirFileSystem("a.zarr", above), ""),
                      zcore.RemoteStore(local, path="a.zarr"), zcore.RemoteStore(above, path="a.zarr"),
                      zarr.storage.FsspecStore.from_url(f"simplecache::file://{tmp_path}/a.zarr")):
            with pytest.raises(ValueError, match="would delete"):
                to_zarr(opened(place), tmp_path / "a.zarr", "w")
            if "cache" not in str(place):
                with pytest.raises(ValueError, match="would delete"):
                    to_zarr(opened("a.zarr"), place, "w")
            # A cache of fsspec gives one thread the half of a file that another one still fetches.
            with dask.config.set(scheduler="sync"):
                to_zarr(opened(place), tmp_path / "b.zarr", "w")
        xr.testing.assert_equal(opened("b.zarr").compute(), made())

    def test_an_archive(self, tmp_path):
        stored(tmp_path / "a.zip", mode="w").store.close()
        with pytest.raises(ValueError, match="would delete"):
            to_zarr(opened(tmp_path / "a.zip"), tmp_path / "a.zip", "w")

    def test_references_to_its_chunks(self, tmp_path):
        stored(tmp_path / "a", zarr_format=2)
        zcore.references(tmp_path / "a").save(tmp_path / "a.json")
        ds = opened(tmp_path / "a.json")
        with pytest.raises(ValueError, match="would delete"):
            to_zarr(ds, tmp_path / "a", "w")
        to_zarr(ds, tmp_path / "b", "w")

    def test_arrays_of_dask_that_xarray_did_not_make(self, tmp_path):
        stored(tmp_path)
        for array in (dask.array.from_zarr(str(tmp_path / "t")), dask.array.from_array(zcore.open(tmp_path)["t"]),
                      dask.array.from_array(zcore.open(tmp_path)["t"], inline_array=True)):
            with pytest.raises(ValueError, match="would delete"):
                to_zarr(xr.Dataset({"t": (("time", "x"), array)}), tmp_path, "w")

    def test_what_is_in_memory(self, tmp_path):
        for load in (lambda ds: ds.load(), lambda ds: ds.compute(), lambda ds: ds.persist(),
                     lambda ds: xr.open_dataset(tmp_path / "a", engine="zcore")):
            stored(tmp_path / "a", mode="w")
            to_zarr(load(opened(tmp_path / "a")), tmp_path / "a", "w")
            xr.testing.assert_equal(xr.open_dataset(tmp_path / "a", engine="zcore"), made())


@pytest.mark.thinned(2, "change", "engine")
@ENGINES
@pytest.mark.parametrize(("change", "keywords", "is_refused"), [
    (lambda ds: ds, {"mode": "a"}, False),
    (lambda ds: ds + 1, {"mode": "r+"}, False),
    (lambda ds: ds.assign(v=ds.t * 2, w=ds.p + 1), {"mode": "a"}, False),
    (lambda ds: ds.chunk(time=30) + 1, {"mode": "r+"}, False),
    (lambda ds: ds.drop_vars("x").isel(time=slice(23, 57)) + 1, {"region": {"time": slice(23, 57)}}, False),
    (lambda ds: ds.drop_vars("x").isel(time=slice(0, 50)), {"region": {"time": slice(50, 100)}}, False),
    (lambda ds: ds.isel(time=slice(None, None, -1)), {"append_dim": "time"}, False),
    (lambda ds: ds.isel(time=slice(None, None, -1)).persist(), {"mode": "a"}, False),
    (lambda ds: (ds + 1).assign(v=ds.t * 2), {"mode": "a"}, True),
    (lambda ds: ds.assign(v=ds.u * 2, u=ds.u.compute() + 1), {"mode": "a"}, True),
    (lambda ds: ds.assign(p=ds.u * 1, u=ds.p * 1), {"mode": "r+"}, True),
    (lambda ds: ds.isel(time=slice(None, None, -1)), {"mode": "a"}, True),
    (lambda ds: ds.isel(time=np.arange(100)[::-1]), {"mode": "r+"}, True),
    (lambda ds: ds.shift(time=1, fill_value=0), {"mode": "r+"}, True),
    (lambda ds: ds - ds.mean(), {"mode": "r+"}, True),
    (lambda ds: ds.drop_vars("x").isel(time=slice(20, 50)), {"region": {"time": slice(30, 60)}}, True),
    (lambda ds: ds.drop_vars("x").isel(time=slice(69, 19, -1)), {"region": {"time": slice(20, 70)}}, True),
    (lambda ds: _in_a_closure(ds), {"mode": "r+"}, True),
], ids=range(18))
def test_blocks_do_not_read_what_others_write(tmp_path, change, keywords, is_refused, engine):
    """Each case is refused, or stores what NumPy would."""
    stored(tmp_path / "a")
    ds = change(opened(tmp_path / "a", engine))
    if "append_dim" not in keywords:
        ds = ds.drop_vars("time")
    expected = ds.compute()
    if is_refused:
        with pytest.raises(ValueError, match="overwritten before"):
            to_zarr(ds, tmp_path / "a", **keywords)
        xr.testing.assert_equal(xr.open_dataset(tmp_path / "a", engine="zcore"), made())
        return
    to_zarr(ds, tmp_path / "a", **keywords)
    found = xr.open_dataset(tmp_path / "a", engine="zcore")
    rows = slice(100, None) if "append_dim" in keywords else keywords.get("region", {}).get("time", slice(None))
    for name in expected.data_vars:
        np.testing.assert_array_equal(found[name].isel(time=rows), expected[name])


@pytest.mark.parametrize("area", [slice(10, 60), slice(11, 61)])
def test_an_area_that_xarray_selects_before_dask(tmp_path, area):
    stored(tmp_path)
    ds = xr.open_dataset(tmp_path, engine="zcore").isel(time=slice(10, 60)).chunk(time=10).drop_vars(["time", "x"]) + 1
    if area.start == 10:
        to_zarr(ds, tmp_path, region={"time": area})
        assert xr.open_dataset(tmp_path, engine="zcore").u[9:12].values.tolist() == [9, 11, 12]
    else:
        with pytest.raises(ValueError, match="overwritten before"):
            to_zarr(ds, tmp_path, region={"time": area})


def test_groups_of_a_tree_read_each_other(tmp_path):
    tree = xr.DataTree.from_dict({"/a": made(), "/b": made()})
    to_zarr(tree, tmp_path)
    a, b = (opened(tmp_path, group=name).drop_vars(["time", "x"]) for name in "ab")
    with pytest.raises(ValueError, match="overwritten before"):
        to_zarr(xr.DataTree.from_dict({"/a": b * 1, "/b": a * 1}), tmp_path, "a")
    to_zarr(xr.DataTree.from_dict({"/a": a + 1, "/b": b + 1}), tmp_path, "a")
    assert opened(tmp_path, group="b").u[1] == 2
