"""The xarray engine and `zcore.xarray.to_zarr`, compared with xarray's own Zarr backend."""
import asyncio
import json
import pickle
import shutil
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import zcore
from tests.each import each

xr = pytest.importorskip("xarray")
dask = pytest.importorskip("dask")
pytest.importorskip("zarr")

from xarray.conventions import decode_cf_variables  # noqa: E402

from zcore.xarray import ZcoreBackend, to_zarr  # noqa: E402
from zcore.xarray.backend import _assembled  # noqa: E402

FORMATS = pytest.mark.parametrize("zarr_format", [2, 3])


def weather(n=10, start=0):
    """Return a dataset with what CF and Zarr make of types: scales, missing values, times, text, truth, a scalar."""
    rng = np.random.default_rng(start)
    temperature = rng.normal(280, 10, (n, 6, 8)).astype("f4")
    temperature[0, 0, :3] = np.nan
    ds = xr.Dataset(
        {
            "temperature": (("time", "y", "x"), temperature, {"units": "K", "valid": [200, 330]}),
            "packed": (("time",), np.linspace(0, 1, n), {}, {"scale_factor": 0.5, "add_offset": 3.0, "dtype": "i2",
                                                             "_FillValue": -9}),
            "station": (("time",), np.array([f"st\u00e4tion {i}" * (i % 3) for i in range(n)], dtype=object)),
            "code": (("time",), np.array([f"c{i}" for i in range(n)])),
            "raw": (("time",), np.array([b"ab", b"c"] * (n // 2))),
            "is_wet": (("time",), np.arange(n) % 3 == 0),
            "big": (("x",), np.arange(8, dtype=">i4")),
            "lag": (("time",), np.arange(n).astype("m8[s]").astype("m8[ns]")),
            "level": ((), 3.5),
            "empty": (("nothing",), np.zeros(0)),
        },
        coords={"time": np.datetime64("2020-01-01", "ns") + np.arange(start, start + n) * np.timedelta64(1, "h"),
                "y": np.arange(6.0), "x": np.arange(8), "place": ("y", np.arange(6) * 2)},
        attrs={"title": "weather", "numbers": [1, 2]},
    )
    ds["lag"].encoding = {"units": "seconds", "dtype": "i8"}
    ds["time"].encoding = {"units": "hours since 2020-01-01", "dtype": "i8"}
    return ds


def by_zarr(place, **keywords):
    """Return a dataset as xarray's own backend opens it."""
    keywords.setdefault("consolidated", False)
    return xr.open_dataset(place, engine="zarr", decode_timedelta=True, **keywords)


def by_zcore(place, **keywords):
    return xr.open_dataset(place, engine="zcore", decode_timedelta=True, **keywords)


def write(ds, place, zarr_format=3, consolidated=False, **keywords):
    """Write a dataset by zarr-python, which warns of types that the specification does not have."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ds.to_zarr(place, zarr_format=zarr_format, consolidated=consolidated, **keywords)


@pytest.fixture(autouse=True)
def _without_warnings_of_zarr(recwarn):
    warnings.filterwarnings("ignore", module="zarr")
    warnings.filterwarnings("ignore", message=".*Zarr V3 specification.*")


@pytest.fixture(scope="module", params=["threads", "processes"])
def workers(request, forks):
    """Options of dask: who works."""
    if request.param == "threads":
        yield {"scheduler": "threads", "num_workers": 4}
        return
    with ProcessPoolExecutor(2, forks) as pool:
        yield {"scheduler": "processes", "pool": pool}


def documents(codecs):
    """Return codecs of zarr-python, of numcodecs or dicts as documents have them."""
    found = []
    for codec in codecs if isinstance(codecs, tuple) else (codecs,):
        if isinstance(codec, dict):
            found.append(codec)
        else:
            found.append(codec.to_dict() if hasattr(codec, "to_dict") else codec.get_config())
    return [{**codec, "configuration": codec.get("configuration") or {}} for codec in found]


def same_encoding(a, b):
    """Return whether two variables are stored alike, as their encodings tell."""
    keys = {"chunks", "shards", "dtype", "scale_factor", "add_offset", "_FillValue", "units", "calendar", "fill_value"}
    return (set(a.encoding) == set(b.encoding)
            and [str(a.encoding.get(key)) for key in keys] == [str(b.encoding.get(key)) for key in keys]
            and all([documents(a.encoding[key]) == documents(b.encoding[key])
                     for key in ("compressors", "filters", "serializer") if key in a.encoding]))


def test_engine_is_found_by_its_name():
    assert type(xr.backends.list_engines()["zcore"]) is ZcoreBackend


def test_zarr_python_is_not_needed(tmp_path):
    code = """if True:
        import sys
        sys.modules.update(zarr=None, numcodecs=None)
        import numpy, xarray
        from zcore.xarray import to_zarr

        ds = xarray.Dataset({"a": ("x", numpy.arange(4.0)), "b": ("x", ["p", "q", "r", "s"])})
        for zarr_format in (2, 3):
            to_zarr(ds, str(zarr_format), zarr_format=zarr_format)
            to_zarr(ds, str(zarr_format), append_dim="x")
            found = xarray.open_dataset(str(zarr_format), engine="zcore")
            to_zarr(found, f"copy {zarr_format}", zarr_format=zarr_format)
            xarray.testing.assert_identical(found, xarray.open_dataset(f"copy {zarr_format}", engine="zcore"))
            print(found.a.values.sum())
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["12.0", "12.0"], done.stderr


class TestOpen:
    @FORMATS
    @pytest.mark.parametrize("consolidated", [True, False])
    def test_dataset_is_that_of_the_zarr_engine(self, tmp_path, zarr_format, consolidated):
        write(weather(), tmp_path / "a.zarr", zarr_format, consolidated)
        expected = by_zarr(tmp_path / "a.zarr", consolidated=consolidated)
        found = by_zcore(tmp_path / "a.zarr", consolidated=consolidated)
        xr.testing.assert_identical(found, expected)
        # Which xarray's backend forgets; zarr-python writes little-endian in Zarr v3.
        assert found["big"].encoding.pop("dtype") == (">i4" if zarr_format == 2 else "<i4")
        del expected["big"].encoding["dtype"]
        assert [name for name in expected.variables if not same_encoding(found[name], expected[name])] == []
        assert found.encoding["source"] == str(tmp_path / "a.zarr")

    @FORMATS
    @pytest.mark.parametrize("keywords", [
        {"decode_cf": False}, {"mask_and_scale": False}, {"decode_times": False}, {"drop_variables": ["packed", "x"]},
        {"use_zarr_fill_value_as_mask": True},
    ], ids=str)
    def test_keywords_mean_what_they_mean_there(self, tmp_path, zarr_format, keywords):
        write(weather(), tmp_path / "a.zarr", zarr_format)
        # xarray's backend does not hand on this one (2026.9).
        expected = {} if "use_zarr_fill_value_as_mask" in keywords else keywords
        if expected or zarr_format == 2:
            xr.testing.assert_identical(xr.open_dataset(tmp_path / "a.zarr", engine="zcore", **keywords),
                                        xr.open_dataset(tmp_path / "a.zarr", engine="zarr", consolidated=False,
                                                        **expected))

    def test_fill_value_is_a_mask_in_v3_only_for_those_who_ask(self, tmp_path):
        group = zcore.open_group(tmp_path, "w")
        group.create_array("a", shape=(4,), dtype="i4", fill_value=7, dimension_names=("x",))
        assert xr.open_dataset(tmp_path, engine="zcore")["a"].values.tolist() == [7] * 4
        masked = xr.open_dataset(tmp_path, engine="zcore", use_zarr_fill_value_as_mask=True)
        assert np.isnan(masked["a"].values).all()

    def test_fill_values_that_other_programs_wrote_as_numbers(self, tmp_path):
        group = zcore.open_group(tmp_path, "w")
        group.create_array("a", data=np.array([1.0, -9.0]), dimension_names=("x",), attributes={"_FillValue": -9.0})
        assert np.isnan(xr.open_dataset(tmp_path, engine="zcore")["a"].values).tolist() == [False, True]

    def test_shards_are_told(self, tmp_path):
        write(weather(), tmp_path / "a.zarr", encoding={"temperature": {"chunks": (1, 3, 4), "shards": (5, 6, 8)}})
        expected, found = by_zarr(tmp_path / "a.zarr")["temperature"], by_zcore(tmp_path / "a.zarr")["temperature"]
        xr.testing.assert_identical(found, expected)
        assert same_encoding(found, expected)
        assert found.encoding["chunks"] == (1, 3, 4) and found.encoding["shards"] == (5, 6, 8)

    def test_dask_gets_the_chunks_of_a_write(self, tmp_path):
        write(weather(), tmp_path / "a.zarr", encoding={"temperature": {"chunks": (1, 3, 4), "shards": (4, 6, 8)},
                                                        "big": {"chunks": (3,)}})
        ds = by_zcore(tmp_path / "a.zarr", chunks={})
        assert ds["temperature"].chunks == ((4, 4, 2), (6,), (8,))
        assert ds["big"].chunks == ((3, 3, 2),)
        xr.testing.assert_identical(ds.compute(), by_zarr(tmp_path / "a.zarr"))

    def test_unequal_chunks_are_those_of_dask(self, tmp_path):
        group = zcore.open_group(tmp_path, "w")
        group.create_array("a", data=np.arange(20).reshape(10, 2), chunks=[[2, 3, 5], 2], dimension_names=("t", "x"))
        ds = xr.open_dataset(tmp_path, engine="zcore", chunks={})
        assert ds["a"].chunks == ((2, 3, 5), (2,)) and ds["a"].encoding["chunks"] == ((2, 3, 5), 2)
        assert ds["a"].values.tolist() == np.arange(20).reshape(10, 2).tolist()

    def test_nothing_is_read_before_it_is_asked_for(self, tmp_path):
        write(weather(), tmp_path / "a.zarr")
        shutil.rmtree(tmp_path / "a.zarr" / "temperature" / "c")
        ds = by_zcore(tmp_path / "a.zarr", missing="raise")
        part = ds["temperature"][2:4].isel(x=[3, 1])
        with pytest.raises(zcore.ChunkError, match="temperature"):
            part.load()

    @pytest.mark.parametrize("select", [
        lambda a: a[2], lambda a: a[-1, ::2, ::-3], lambda a: a[[4, 0, 4]], lambda a: a[:, [1], [5, 2]],
        lambda a: a[2, 3, 4], lambda a: a.isel(time=slice(8, 2, -2)), lambda a: a[[], :2], lambda a: a.T[3][1:][::2],
        lambda a: a.isel(y=xr.DataArray([1, 2, 1], dims="p"), x=xr.DataArray([0, 7, 3], dims="p")),
        lambda a: a.isel(time=xr.DataArray([[1, 2], [3, 0]], dims=("p", "q"))),
        lambda a: a.isel(y=xr.DataArray([1, -2], dims="p"), time=xr.DataArray([0, 1], dims="q")),
        lambda a: a.sel(time="2020-01-01T03", y=[4, 2]), lambda a: a.where(a > 280, drop=True),
    ], ids=range(13))
    @pytest.mark.parametrize("name", ["temperature"])
    def test_selections(self, tmp_path, select, name):
        write(weather(), tmp_path / "a.zarr", encoding={name: {"chunks": (3, 4, 5)}})
        xr.testing.assert_identical(select(by_zcore(tmp_path / "a.zarr")[name]),
                                    select(by_zarr(tmp_path / "a.zarr")[name]))

    @pytest.mark.parametrize("name", ["station", "code", "raw", "is_wet", "lag"])
    def test_single_elements(self, tmp_path, name):
        write(weather(), tmp_path / "a.zarr")
        found, expected = by_zcore(tmp_path / "a.zarr")[name][4], by_zarr(tmp_path / "a.zarr")[name][4]
        xr.testing.assert_identical(found.load(), expected.load())
        assert found.dtype == expected.dtype

    def test_load_async(self, tmp_path):
        write(weather(), tmp_path / "a.zarr")
        ds = asyncio.run(by_zcore(tmp_path / "a.zarr").load_async())
        assert all([variable._in_memory for variable in ds.variables.values()])
        xr.testing.assert_identical(ds, by_zarr(tmp_path / "a.zarr"))
        part = by_zcore(tmp_path / "a.zarr")["temperature"].isel(
            y=xr.DataArray([1, 2], dims="p"), x=xr.DataArray([0, 7], dims="p"))
        xr.testing.assert_identical(asyncio.run(part.load_async()), by_zarr(tmp_path / "a.zarr")["temperature"].isel(
            y=xr.DataArray([1, 2], dims="p"), x=xr.DataArray([0, 7], dims="p")))

    @pytest.mark.parametrize("chunks", [None, {}])
    def test_pickles(self, tmp_path, chunks, monkeypatch):
        write(weather(), tmp_path / "a.zarr")
        monkeypatch.chdir(tmp_path)
        ds = by_zcore("a.zarr", chunks=chunks)
        pickled = pickle.dumps(ds)
        monkeypatch.chdir("/")
        xr.testing.assert_identical(pickle.loads(pickled).compute(), by_zarr(tmp_path / "a.zarr"))

    def test_attributes_of_the_dataset_are_its_own(self, tmp_path):
        write(weather(), tmp_path / "a.zarr")
        first = by_zcore(tmp_path / "a.zarr")
        first["temperature"].attrs["valid"].append(1)
        first.attrs["numbers"].append(1)
        xr.testing.assert_identical(by_zcore(tmp_path / "a.zarr"), by_zarr(tmp_path / "a.zarr"))

    def test_several_at_once(self, tmp_path):
        for i in range(3):
            write(weather(start=10 * i).drop_vars(["level", "empty"]), tmp_path / f"{i}.zarr", zarr_format=2 + i % 2)
        places = [str(tmp_path / f"{i}.zarr") for i in range(3)]
        settings = {"combine": "nested", "concat_dim": "time", "data_vars": "minimal", "coords": "minimal",
                    "compat": "override", "join": "override", "combine_attrs": "override"}
        found = xr.open_mfdataset(places, engine="zcore", decode_timedelta=True, **settings)
        opened = [by_zarr(place, chunks={}) for place in places]
        xr.testing.assert_identical(found.compute(), xr.combine_nested(
            opened, "time", data_vars="minimal", coords="minimal", compat="override", join="override",
            combine_attrs="override").compute())
        parallel = xr.open_mfdataset(places, engine="zcore", decode_timedelta=True, parallel=True, **settings)
        xr.testing.assert_identical(parallel.compute(), found.compute())

    def test_missing_place(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="nothing"):
            xr.open_dataset(tmp_path / "nothing.zarr", engine="zcore")
        write(weather(), tmp_path / "a.zarr")
        with pytest.raises(FileNotFoundError, match="below"):
            xr.open_dataset(tmp_path / "a.zarr", engine="zcore", group="below")
        with pytest.raises(ValueError, match="no consolidated metadata"):
            xr.open_dataset(tmp_path / "a.zarr", engine="zcore", consolidated=True)
        array = zcore.array(np.zeros(3, [("x", "i4"), ("y", "f8")]))
        for group in ("x", "below"):
            with pytest.raises(FileNotFoundError, match=f"holds no '{group}'"):
                xr.open_dataset(array, engine="zcore", group=group)

    def test_damaged_chunk_is_an_error_of_the_call_that_met_it(self, tmp_path):
        to_zarr(weather(), tmp_path / "a.zarr", encoding={"temperature": {"chunks": (5, 6, 8)}})
        chunk = tmp_path / "a.zarr/temperature/c/1/0/0"
        raw = chunk.read_bytes()
        chunk.write_bytes(raw[:-5] + b"?" + raw[-4:])
        ds = by_zcore(tmp_path / "a.zarr")
        assert ds["temperature"][:5].mean() > 200
        with pytest.raises(zcore.ChecksumError, match="temperature.*c/1/0/0"):
            ds["temperature"][5:].load()
        with pytest.raises(zcore.ChecksumError, match="temperature.*c/1/0/0"):
            by_zcore(tmp_path / "a.zarr", chunks={}).compute(scheduler="threads")

    def test_damaged_member_is_an_error_until_it_is_dropped(self, tmp_path):
        write(weather(), tmp_path / "a.zarr")
        (tmp_path / "a.zarr/big/zarr.json").write_bytes(b"{")
        with pytest.raises(zcore.MetadataError) as caught:
            by_zcore(tmp_path / "a.zarr")
        assert "drop_variables='big'" in caught.value.__notes__[0]
        assert "big" not in by_zcore(tmp_path / "a.zarr", drop_variables="big")

    @pytest.mark.parametrize("consolidated", [False, True])
    def test_a_pickled_dataset_whose_store_is_gone(self, tmp_path, consolidated):
        write(weather(), tmp_path / "a.zarr", consolidated=consolidated)
        pickled = pickle.dumps(by_zcore(tmp_path / "a.zarr"))
        shutil.rmtree(tmp_path / "a.zarr")
        ds = pickle.loads(pickled)
        with pytest.raises(zcore.NodeNotFoundError):
            ds["temperature"].load()
        with pytest.raises(zcore.NodeNotFoundError):
            ds["big"].isel({ds["big"].dims[0]: 0}).load()

    def test_replaced_array_is_an_error(self, tmp_path):
        write(weather(), tmp_path / "a.zarr")
        ds = by_zcore(tmp_path / "a.zarr")
        zcore.create_array(tmp_path / "a.zarr", name="temperature", data=np.zeros((2, 2)), overwrite=True)
        with pytest.raises(zcore.StoreError, match="replaced"):
            ds["temperature"].load()


class TestDimensions:
    def test_names_of_nczarr(self, tmp_path):
        """netcdf-c has kept them as a member of `.zarray`, and keeps them as an attribute."""
        group = zcore.open_group(tmp_path, "w", zarr_format=2, attributes={"_nczarr_group": {"dims": {}}})
        group.create_array("old", data=np.zeros((2, 3)))
        document = json.loads((tmp_path / "old/.zarray").read_bytes())
        document["_NCZARR_ARRAY"] = {"dimrefs": ["/lat", "/inner/lon"], "storage": "chunked"}
        (tmp_path / "old/.zarray").write_text(json.dumps(document))
        group.create_array("new", data=np.zeros((3, 4)), attributes={
            "_nczarr_array": {"dimension_references": ["/lon", "/time"]}, "_nczarr_attr": {"types": {}}, "units": "m"})
        group.create_array("scalar", data=np.zeros(1), attributes={
            "_nczarr_array": {"dimension_references": [], "storage": "scalar"}})
        ds = xr.open_dataset(tmp_path, engine="zcore")
        assert ds["old"].dims == ("lat", "lon") and ds["new"].dims == ("lon", "time")
        assert ds["scalar"].dims == ("dim_0",)
        assert ds["new"].attrs == {"units": "m"} and ds.attrs == {}
        del group["new"], group["scalar"]
        expected = xr.open_dataset(tmp_path, engine="zarr", consolidated=False)
        xr.testing.assert_identical(xr.open_dataset(tmp_path, engine="zcore"), expected)

    def test_dimensions_without_names_are_named_by_length(self, tmp_path):
        group = zcore.open_group(tmp_path, "w")
        group.create_array("a", data=np.zeros((10, 20)))
        group.create_array("b", data=np.zeros((20, 10)))
        group.create_array("square", data=np.zeros((10, 10)))
        group.create_array("half", data=np.zeros((5, 10)), dimension_names=(None, "dim_1"))
        group.create_array("dim_2", data=np.zeros(3))
        ds = xr.open_dataset(tmp_path, engine="zcore")
        assert {name: ds[name].dims for name in ds.variables} == {
            "a": ("dim_0", "dim_3"), "b": ("dim_3", "dim_0"), "dim_2": ("dim_4",), "half": ("dim_5", "dim_1"),
            "square": ("dim_0", "dim_6")}
        dropped = xr.open_dataset(tmp_path, engine="zcore", drop_variables=["a"])
        assert dropped["b"].dims == ("dim_0", "dim_3")

    def test_two_lengths_of_one_name(self, tmp_path):
        group = zcore.open_group(tmp_path, "w")
        group.create_array("a", data=np.zeros(2), dimension_names=("x",))
        group.create_array("b", data=np.zeros(3), dimension_names=("x",))
        with pytest.raises(ValueError, match="conflicting sizes for dimension 'x'"):
            xr.open_dataset(tmp_path, engine="zcore")

    def test_two_names_of_one_length(self, tmp_path):
        group = zcore.open_group(tmp_path, "w", zarr_format=2)
        group.create_array("a", data=np.zeros((3, 3)), attributes={"_ARRAY_DIMENSIONS": ["x", "y"]})
        group.create_array("b", data=np.zeros(3))
        ds = xr.open_dataset(tmp_path, engine="zcore")
        assert ds["a"].dims == ("x", "y") and ds["b"].dims == ("dim_0",)

    @pytest.mark.parametrize("names", [["x"], ["x", "y", "z"], "xy", {"x": 1, "y": 2}, [1, 2], 5])
    def test_wrong_names(self, tmp_path, names):
        group = zcore.open_group(tmp_path, "w", zarr_format=2)
        group.create_array("a", data=np.zeros((3, 4)), attributes={"_ARRAY_DIMENSIONS": names})
        with pytest.raises(zcore.MetadataError, match="_ARRAY_DIMENSIONS is .* each of 2 dimensions"):
            xr.open_dataset(tmp_path, engine="zcore")


class TestTree:
    @FORMATS
    @pytest.mark.parametrize("group", [None, "fine"])
    def test_tree_is_that_of_the_zarr_engine(self, tmp_path, zarr_format, group):
        ds = weather()[["temperature", "packed"]]
        tree = xr.DataTree.from_dict({"/": ds[["packed"]], "/fine": ds, "/fine/er": ds * 2, "/void": xr.Dataset()})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree.to_zarr(tmp_path / "a.zarr", zarr_format=zarr_format, consolidated=False)
        found = xr.open_datatree(tmp_path / "a.zarr", engine="zcore", group=group)
        xr.testing.assert_identical(
            found, xr.open_datatree(tmp_path / "a.zarr", engine="zarr", consolidated=False, group=group))
        groups = xr.open_groups(tmp_path / "a.zarr", engine="zcore", group=group)
        expected = xr.open_groups(tmp_path / "a.zarr", engine="zarr", consolidated=False, group=group)
        assert groups.keys() == expected.keys()
        for path in groups:
            xr.testing.assert_identical(groups[path], expected[path])
        part = xr.open_dataset(tmp_path / "a.zarr", engine="zcore", group="fine/er")
        xr.testing.assert_identical(part, by_zarr(tmp_path / "a.zarr", group="fine/er"))

    def test_names_that_are_made_agree_in_a_tree(self, tmp_path):
        group = zcore.open_group(tmp_path, "w")
        group.create_array("a", data=np.zeros(3))
        group.create_array("below/b", data=np.zeros((4, 3)))
        tree = xr.open_datatree(tmp_path, engine="zcore")
        assert tree["below/b"].dims == ("dim_1", "dim_0")

    def test_chunks(self, tmp_path):
        group = zcore.open_group(tmp_path, "w")
        group.create_array("below/b", data=np.zeros((4, 3)), chunks=(2, 3))
        assert xr.open_datatree(tmp_path, engine="zcore", chunks={})["below/b"].chunks == ((2, 2), (3,))


class TestWriteTree:
    @staticmethod
    def tree():
        ds = weather()[["temperature", "packed"]]
        return xr.DataTree.from_dict({"/": ds[["packed"]], "/fine": ds[["temperature"]], "/fine/er": ds * 2,
                                      "/void": xr.Dataset(attrs={"x": 1})})

    @FORMATS
    @pytest.mark.parametrize("inherited", [False, True])
    def test_a_tree_is_that_of_xarray(self, tmp_path, zarr_format, inherited):
        encoding = {"/fine/er": {"temperature": {"chunks": (2, 2, 2)}}}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.tree().to_zarr(tmp_path / "a.zarr", zarr_format=zarr_format, write_inherited_coords=inherited,
                                encoding=encoding)
        group = to_zarr(self.tree(), tmp_path / "b.zarr", zarr_format=zarr_format, write_inherited_coords=inherited,
                        encoding=encoding)
        assert group == zcore.open_group(tmp_path / "b.zarr") and zcore.verify(tmp_path / "b.zarr").ok
        names = [sorted(zcore.open_group(tmp_path / name).walk()) for name in ("a.zarr", "b.zarr")]
        assert [path for path, _ in names[0]] == [path for path, _ in names[1]]
        found = [xr.open_datatree(tmp_path / name, engine=engine) for name in ("a.zarr", "b.zarr")
                 for engine in ("zarr", "zcore")]
        for other in found[1:]:
            xr.testing.assert_identical(other, found[0])
        assert found[3]["fine/er/temperature"].encoding["chunks"] == (2, 2, 2)
        assert zcore.open_group(tmp_path / "b.zarr", use_consolidated=True)["void"].attrs["x"] == 1

    def test_a_part_of_a_tree_into_a_group(self, tmp_path):
        to_zarr(self.tree()["fine"], tmp_path, group="deep/er")
        found = xr.open_datatree(tmp_path, engine="zcore", group="deep/er")
        xr.testing.assert_equal(found, self.tree()["fine"].copy())

    @pytest.mark.parametrize("group", [5, b"x", 0, ["x"]])
    def test_a_group_of_another_type_is_no_path(self, tmp_path, group):
        store = zcore.MemoryStore()
        to_zarr(xr.Dataset(), store)
        for call in (lambda: to_zarr(xr.Dataset(), store, mode="a", group=group),
                     lambda: zcore.xarray.writer(store, "t", group=group),
                     lambda: xr.open_dataset(store, engine="zcore", group=group)):
            with pytest.raises(TypeError, match="the path of a node is a str, not"):
                call()

    @pytest.mark.parametrize("value", [np.arange(2), {"x"}], ids=["array", "set"])
    @pytest.mark.parametrize("name", ["encoding", "append_dim", "consolidated", "write_empty_chunks", "compute",
                                      "zarr_format", "storage_options", "mode"])
    def test_an_argument_of_another_type_is_named(self, name, value):
        store = {}
        with pytest.raises((TypeError, ValueError), match=f"^{name} is .*, expected"):
            to_zarr(xr.Dataset(), store, **{name: value})
        assert not store
        with pytest.raises(TypeError, match="^drop_variables is 5, expected"):
            xr.open_dataset(to_zarr(xr.Dataset(), store), engine="zcore", drop_variables=5)
        with pytest.raises(TypeError, match="^consolidated is .*, expected"):
            xr.open_dataset(store, engine="zcore", consolidated=value)

    def test_modes(self, tmp_path):
        to_zarr(self.tree(), tmp_path / "a.zarr")
        with pytest.raises(zcore.NodeExistsError):
            to_zarr(self.tree(), tmp_path / "a.zarr")
        to_zarr(xr.DataTree.from_dict({"/new/er": weather()[["packed"]]}), tmp_path / "a.zarr", "a")
        assert {"fine", "new", "void"} < set(zcore.open_group(tmp_path / "a.zarr"))
        to_zarr(xr.DataTree.from_dict({"/other": weather()[["packed"]]}), tmp_path / "a.zarr", "w")
        assert list(zcore.open_group(tmp_path / "a.zarr")) == ["other"]

    def test_dask_is_written_later(self, tmp_path):
        pytest.importorskip("dask")
        lazy = self.tree().chunk()
        later = to_zarr(lazy, tmp_path / "a.zarr", compute=False)
        group = later.compute()
        assert group == zcore.open_group(tmp_path / "a.zarr")
        to_zarr(self.tree(), tmp_path / "b.zarr")
        later, now = [xr.open_datatree(tmp_path / name, engine="zcore") for name in ("a.zarr", "b.zarr")]
        xr.testing.assert_identical(later, now)

    @pytest.mark.parametrize(("change", "keywords", "sentence"), [
        ({}, {"encoding": {"/none": {}}}, "groups that the tree does not have"),
        ({}, {"append_dim": "time"}, "are of datasets"),
        ({}, {"region": {"time": slice(0, 1)}}, "are of datasets"),
        ({}, {"encoding": {"/fine/er": {"temperature": {"chunks": (0, 1, 1)}}}}, "chunk"),
        ({"/fine/zarr.json": xr.Dataset()}, {}, "zarr.json"),
    ], ids=["a group in encoding", "append", "region", "encoding", "name"])
    def test_what_does_not_fit_changes_nothing(self, tmp_path, change, keywords, sentence):
        tree = xr.DataTree.from_dict(self.tree().to_dict() | change)
        with pytest.raises((ValueError, zcore.ZcoreError), match=sentence):
            to_zarr(tree, tmp_path / "a.zarr", **keywords)
        assert not (tmp_path / "a.zarr").exists()


class TestFamilies:
    def test_asdf(self, tmp_path):
        pytest.importorskip("yaml")
        image = np.arange(12.0).reshape(3, 4)
        zcore.asdf.write(tmp_path / "a.asdf", {"image": image, "deep": {"er": image[:, 0]}})
        ds = xr.open_dataset(tmp_path / "a.asdf")       # the engine is guessed
        assert ds["image"].dims == ("dim_0", "dim_1") and ds["image"].values.tolist() == image.tolist()
        tree = xr.open_datatree(tmp_path / "a.asdf", engine="zcore")
        assert tree["deep/er"].dims == ("dim_0",)
        assert to_zarr(ds, tmp_path / "b.zarr")["image"][...].tolist() == image.tolist()

    def test_zmeta(self, tmp_path):
        for i in range(2):
            array = zcore.open(tmp_path / f"t{i}", "w", shape=(4, 2), chunks=(3, 2), dtype="i4", cname="lz4")
            array[...] = i
        ds = xr.open_dataset(tmp_path / "t1", chunks={})
        assert ds["t1"].chunks == ((3, 1), (2,)) and ds["t1"].values.tolist() == [[1, 1]] * 4
        both = xr.open_mfdataset([tmp_path / "t0", tmp_path / "t1"], engine="zcore", combine="by_coords", join="outer",
                                 compat="no_conflicts")
        assert set(both) == {"t0", "t1"}

    def test_zip(self, tmp_path):
        write(weather(), tmp_path / "a.zarr")
        shutil.make_archive(tmp_path / "a", "zip", tmp_path / "a.zarr")
        xr.testing.assert_identical(xr.open_dataset(tmp_path / "a.zip", decode_timedelta=True),
                                    by_zarr(tmp_path / "a.zarr"))

    def test_no_mode_is_advised(self, tmp_path):
        with pytest.raises(zcore.NodeNotFoundError, match=r"none\.zarr does not exist$"):
            xr.open_dataset(tmp_path / "none.zarr", engine="zcore")

    @pytest.mark.parametrize("name", ["a.zip", "a.ozx"])
    @pytest.mark.parametrize("compute", [True, False])
    def test_a_new_archive_is_whole_when_all_is_written(self, tmp_path, name, compute):
        ds = xr.Dataset({"v": ("x", np.arange(6.0))})
        chunked = ds.chunk(x=2)
        tree = xr.DataTree.from_dict({"/": chunked, "/b/c": chunked + 1})
        for source, group, expected in ((chunked, "b/c", ds), (tree, None, ds + 1), (tree, None, ds + 1)):
            made = to_zarr(source, tmp_path / name, mode="w", group=group, compute=compute)
            made = made if compute else made.compute()
            assert made.read_only and made.path == (group or "")
            assert [path.name for path in tmp_path.iterdir()] == [name]
            xr.testing.assert_identical(xr.open_dataset(tmp_path / name, group="b/c", engine="zcore"), expected)

    @pytest.mark.parametrize("kind", ["json", "store"])
    def test_references(self, tmp_path, kind):
        write(weather(), tmp_path / "a.zarr", 2)
        place = zcore.references(tmp_path / "a.zarr")
        if kind == "json":
            place.save(tmp_path / "a.json")
            place = tmp_path / "a.json"
        xr.testing.assert_identical(by_zcore(place), by_zarr(tmp_path / "a.zarr"))

    def test_stores(self, tmp_path):
        import zarr

        memory = zarr.storage.MemoryStore()
        write(weather(), memory)
        expected = by_zarr(memory)
        xr.testing.assert_identical(by_zcore(memory), expected)
        store = zcore.MemoryStore()
        to_zarr(weather(), store)
        xr.testing.assert_identical(by_zcore(store).drop_encoding(), expected.drop_encoding())
        group = zcore.open_group(store)
        xr.testing.assert_identical(by_zcore(group), by_zcore(store))
        assert list(xr.open_dataset(group["temperature"], engine="zcore")) == ["temperature"]

    def test_arrays_of_a_service_are_opened_at_the_same_time(self, tmp_path):
        write(weather(), tmp_path / "a.zarr", consolidated=False)
        expected = by_zarr(tmp_path / "a.zarr")
        together = threading.Barrier(3, timeout=20)

        class Service:
            """Answers a question for one of three arrays only after those for all of them."""

            def __init__(self):
                self.waited = set()

            def get(self, name):
                if name in ("station/zarr.json", "temperature/zarr.json", "time/zarr.json") and name not in self.waited:
                    self.waited.add(name)
                    together.wait()
                path = tmp_path / "a.zarr" / name
                return path.read_bytes() if path.is_file() else None

            def get_range(self, name, *, start, length):
                return self.get(name)[start:start + length]

            def list(self, prefix=""):
                return [name for path in (tmp_path / "a.zarr").rglob("*") if path.is_file()
                        and (name := path.relative_to(tmp_path / "a.zarr").as_posix()).startswith(prefix)]

        xr.testing.assert_identical(by_zcore(Service()), expected)
        (tmp_path / "a.zarr/big/zarr.json").write_bytes(b"{")
        with pytest.raises(zcore.MetadataError, match="big"):
            by_zcore(Service())

    @each(("place", "expected"), [
        ("a.asdf", True), ("a.ASDF", True), ("s3://b/a.zarr/", True), ("a.json", True), ("a.parq", True),
        ("https://h/a.zip?x=1", True), ("a.nc", False), ("", False), (b"a.asdf", False), (None, False), (3, False),
        ("\0", False), ("\ud800.x", False), (open, False), ("x" * 9999, False),
    ], ids=lambda value: repr(value)[:20])
    def test_guess_never_raises(self, place, expected):
        assert ZcoreBackend().guess_can_open(place) is expected

    def test_guess_by_what_is_in_a_directory(self, tmp_path):
        assert not ZcoreBackend().guess_can_open(tmp_path)
        (tmp_path / "__zmeta__").write_bytes(b"{}")
        assert ZcoreBackend().guess_can_open(tmp_path)


class TestWrite:
    @FORMATS
    def test_a_new_dataset_is_that_of_xarray(self, tmp_path, zarr_format):
        write(weather(), tmp_path / "a.zarr", zarr_format)
        assert to_zarr(weather(), tmp_path / "b.zarr", zarr_format=zarr_format).zarr_format == zarr_format
        # Text of any length stays that in Zarr v2; xarray makes text of fixed length of it.
        xr.testing.assert_identical(by_zarr(tmp_path / "b.zarr", consolidated=True), by_zarr(tmp_path / "a.zarr"))

    @FORMATS
    @pytest.mark.parametrize("engine", ["zarr", "zcore"])
    def test_a_copy_is_stored_alike(self, tmp_path, zarr_format, engine):
        encoding = {"temperature": {"chunks": (3, 4, 5)}}
        if zarr_format == 3:
            encoding["temperature"]["shards"] = (6, 8, 10)
        write(weather(), tmp_path / "a.zarr", zarr_format, encoding=encoding)
        ds = (by_zarr if engine == "zarr" else by_zcore)(tmp_path / "a.zarr")
        to_zarr(ds, tmp_path / "b.zarr", zarr_format=zarr_format)
        xr.testing.assert_identical(by_zarr(tmp_path / "b.zarr"), ds)
        # xarray's backend forgets the byte order.
        for name in ds.drop_vars("big" if engine == "zarr" else []).variables:
            a, b = (zcore.open(tmp_path / f"{place}.zarr", path=name).metadata.replace(extra={}) for place in "ab")
            attributes = None if a.attributes is None else {**a.attributes, "units": (b.attributes or {}).get("units")}
            assert (a.codecs, a.chunk_shape, a.chunk_keys, a.dtype, a.dimension_names or None) == (
                b.codecs, b.chunk_shape, b.chunk_keys, b.dtype, b.dimension_names or None)
            assert a.fill_bytes == b.fill_bytes and (attributes is None or attributes.keys() >= b.attributes.keys())

    @pytest.mark.parametrize("formats", [(2, 3), (3, 2)])
    @pytest.mark.parametrize("engine", ["zarr", "zcore"])
    def test_a_copy_of_the_other_format(self, tmp_path, formats, engine):
        encoding = {"temperature": {"chunks": (3, 4, 5)}}
        if formats[0] == 3:
            encoding["temperature"]["shards"] = (6, 8, 10)
        write(weather(), tmp_path / "a.zarr", formats[0], encoding=encoding)
        ds = (by_zarr if engine == "zarr" else by_zcore)(tmp_path / "a.zarr")
        to_zarr(ds, tmp_path / "b.zarr", zarr_format=formats[1])
        xr.testing.assert_identical(by_zarr(tmp_path / "b.zarr"), ds)
        assert by_zcore(tmp_path / "b.zarr")["temperature"].encoding["chunks"] == (3, 4, 5)

    @FORMATS
    @pytest.mark.parametrize("lazy", [False, True])
    @pytest.mark.parametrize("null", [None, np.nan])
    def test_nulls_of_text_are_empty(self, tmp_path, zarr_format, lazy, null):
        """As xarray writes them; NumPy would write their names."""
        text = np.array([["ab", null], ["", "c"]], np.dtypes.StringDType(na_object=null))
        ds = xr.Dataset({"x": (("a", "b"), text)})
        to_zarr(ds.chunk(a=1) if lazy else ds, tmp_path, zarr_format=zarr_format)
        assert by_zcore(tmp_path)["x"].values.tolist() == [["ab", ""], ["", "c"]]

    @FORMATS
    def test_chunks_of_dask_along_a_dimension_of_no_length(self, tmp_path, zarr_format):
        ds = xr.Dataset({"x": (("a", "b"), np.empty((5, 0))), "y": ("a", np.arange(5))})
        to_zarr(ds.chunk(a=2), tmp_path, zarr_format=zarr_format)
        xr.testing.assert_identical(by_zcore(tmp_path), ds)

    def test_a_variable_without_a_name(self, tmp_path):
        ds = xr.Dataset({None: ("x", np.arange(3))})
        write(ds, tmp_path, 2)
        xr.testing.assert_identical(by_zcore(tmp_path), ds)

    @FORMATS
    def test_what_zcore_opens_xarray_writes(self, tmp_path, zarr_format):
        """Its own writer has no text of any length in Zarr v2, whoever opened it."""
        write(weather().drop_vars("station"), tmp_path / "a.zarr", zarr_format)
        ds = by_zcore(tmp_path / "a.zarr")
        write(ds, tmp_path / "b.zarr", zarr_format)
        expected = by_zarr(tmp_path / "a.zarr")
        found = by_zarr(tmp_path / "b.zarr")
        xr.testing.assert_identical(found, expected)
        assert [name for name in expected.variables
                if name not in ("big", "time", "lag") and not same_encoding(found[name], expected[name])] == []

    @pytest.mark.parametrize(("zarr_format", "name", "separator"), [
        (2, "v2", "/"), (2, "v2", "."), (3, "v2", "/"), (3, "v2", "."), (3, "default", "."), (3, "default", "/")])
    def test_names_of_chunks_are_kept(self, tmp_path, zarr_format, name, separator):
        group = zcore.open_group(tmp_path / "a", "w", zarr_format=zarr_format)
        made = group.create_array("a", data=np.ones((4, 6)), chunks=(2, 3),
                                  chunk_key_encoding={"name": name, "separator": separator})
        ds = xr.open_dataset(tmp_path / "a", engine="zcore")
        assert to_zarr(ds, tmp_path / "b", zarr_format=zarr_format)["a"].metadata.chunk_keys == made.metadata.chunk_keys
        write(ds, tmp_path / "c", zarr_format)
        assert zcore.open(tmp_path / "c", path="a").metadata.chunk_keys == made.metadata.chunk_keys
        assert to_zarr(ds, tmp_path / "d", zarr_format=5 - zarr_format)["a"][...].all()

    def test_encoding_is_heeded(self, tmp_path):
        from zarr.codecs import GzipCodec

        group = to_zarr(weather(), tmp_path, encoding={
            "temperature": {"chunks": (2, 3, 4), "shards": (4, 6, 8), "compressors": GzipCodec(level=2)},
            "big": {"chunks": (3,), "compressors": None}})
        assert group["temperature"].chunks == (2, 3, 4) and group["temperature"].shards == (4, 6, 8)
        assert [codec.name for codec in group["temperature"].compressors] == ["gzip"]
        assert group["big"].compressors == ()
        with pytest.raises(ValueError, match="unexpected encoding"):
            to_zarr(weather(), tmp_path, "w", encoding={"big": {"speed": 3}})

    @pytest.mark.parametrize("group", ["", "g/h"])
    def test_the_old_dataset_stays_until_the_new_one_is_written(self, tmp_path, group):
        def block(number):
            assert by_zcore(tmp_path, group=group).identical(old)
            if number[1, 0] > fails_at:
                raise ZeroDivisionError
            return number * 2

        values = np.arange(8.0).reshape(4, 2)
        to_zarr(xr.Dataset({"a": (("t", "x"), values), "b": 4}), tmp_path, group=group)
        old, fails_at = by_zcore(tmp_path, group=group).load(), 5
        new = xr.Dataset({"a": (("t", "x"), values)}).chunk({"t": 2})
        new["a"] = new["a"].copy(data=new["a"].data.map_blocks(block, dtype="f8", meta=np.zeros((0, 0))))
        with pytest.raises(ZeroDivisionError):
            to_zarr(new, tmp_path, "w", group=group)
        assert by_zcore(tmp_path, group=group).identical(old)
        fails_at = 9
        written = to_zarr(new, tmp_path, "w", group=group)
        assert written.path == group and np.array_equal(written["a"][...], 2 * values)
        assert "b" not in by_zcore(tmp_path, group=group) and zcore.verify(tmp_path).ok
        assert zcore.open_group(tmp_path).metadata.consolidated is not None
        assert sorted(path.name for path in tmp_path.glob(".*")) == []

    def test_unequal_chunks_are_written_again(self, tmp_path):
        group = zcore.open_group(tmp_path / "a", "w")
        group.create_array("a", data=np.arange(10), chunks=[[2, 3, 5]], dimension_names=("t",))
        ds = xr.open_dataset(tmp_path / "a", engine="zcore")
        assert to_zarr(ds, tmp_path / "b")["a"].write_chunk_sizes == ((2, 3, 5),)
        to_zarr(ds + 100, tmp_path / "b", region={"t": slice(0, 10)})
        to_zarr(ds, tmp_path / "b", append_dim="t")
        assert zcore.open(tmp_path / "b", path="a")[...].tolist() == [*range(100, 110), *range(10)]

    @pytest.mark.parametrize("change", [
        lambda ds: ds[["a"]],
        lambda ds: ds.drop_vars("t"),
        lambda ds: ds.assign(new=("t", np.arange(2.0))),
    ], ids=["a variable is missing", "a coordinate is missing", "a variable is new"])
    def test_an_append_after_which_nothing_could_be_opened_changes_nothing(self, tmp_path, change):
        ds = xr.Dataset({"a": ("t", np.arange(2.0)), "b": ("t", np.arange(2.0))}, coords={"t": np.arange(2)})
        to_zarr(ds, tmp_path / "a")
        with pytest.raises(ValueError, match="different lengths along 't'"):
            to_zarr(change(ds), tmp_path / "a", append_dim="t")
        xr.testing.assert_identical(xr.open_dataset(tmp_path / "a", engine="zcore"), ds)

    @FORMATS
    def test_append(self, tmp_path, zarr_format):
        first = weather().drop_vars("empty")
        second = weather(start=10).drop_vars("empty")
        for place, writer in (("a", write), ("b", lambda ds, *args, **keywords: to_zarr(ds, *args, **keywords))):
            writer(first, tmp_path / place, zarr_format=zarr_format, encoding={"temperature": {"chunks": (4, 6, 8)}})
            keywords = {} if place == "b" else {"zarr_format": zarr_format}
            writer(second, tmp_path / place, append_dim="time", **keywords)
        xr.testing.assert_identical(by_zarr(tmp_path / "b"), by_zarr(tmp_path / "a"))
        assert by_zarr(tmp_path / "b").sizes["time"] == 20

    def test_region(self, tmp_path):
        ds = weather()[["temperature"]]
        to_zarr(ds, tmp_path / "a", encoding={"temperature": {"chunks": (4, 6, 8)}})
        part = ds.drop_vars(["x", "y", "place"]).isel(time=slice(3, 8)) + 1
        to_zarr(part.drop_vars("time"), tmp_path / "a", region={"time": slice(3, 8)})
        expected = ds.temperature.copy(deep=True)
        expected[3:8] += 1
        xr.testing.assert_equal(by_zcore(tmp_path / "a")["temperature"], expected)
        to_zarr(part + 1, tmp_path / "a", region="auto")
        expected[3:8] += 1
        xr.testing.assert_equal(by_zcore(tmp_path / "a")["temperature"], expected)

    @pytest.mark.parametrize(("change", "keywords", "error"), [
        (lambda ds: ds.isel(time=slice(0, 3)).drop_vars("x"), {"region": {"time": slice(8, 11)}},
         "different dimension sizes"),
        (lambda ds: ds.isel(time=slice(0, 3)).drop_vars("x"), {"region": {"time": slice(0, 2)}},
         "different dimension sizes"),
        (lambda ds: ds, {"region": {"time": slice(0, 10, 2)}}, "step"),
        (lambda ds: ds, {"region": {"nowhere": slice(0, 10)}}, "not in Dataset dimensions"),
        (lambda ds: ds.assign_coords(x=ds.x + 1), {"region": "auto"}, "found in the original store"),
        (lambda ds: ds.rename(temperature="new").drop_vars("x"), {"region": {"time": slice(0, 10)}},
         "are not in the store"),
        (lambda ds: ds.rename(x="z"), {"mode": "a"}, "dimension names"),
        (lambda ds: ds.isel(x=slice(3)), {"append_dim": "time"}, "different dimension sizes"),
        (lambda ds: ds, {"append_dim": "nowhere"}, "no dimension of the store"),
        (lambda ds: ds, {"mode": "a", "encoding": {"temperature": {"chunks": (1, 1, 1)}}}, "already exists"),
        (lambda ds: ds, {"mode": "q"}, "only supported options for mode"),
        (lambda ds: ds, {"mode": "a", "zarr_format": 2}, "format"),
        (lambda ds: ds, {}, "there is a node"),
        (lambda ds: ds.chunk(time=3), {"mode": "a", "safe_chunks": True}, "overlap multiple Dask chunks"),
        (lambda ds: ds.assign(q=("time", [object()] * 10)), {"mode": "w"}, "infer dtype"),
        (lambda ds: ds.assign(q=ds.temperature), {"mode": "w", "encoding": {"q": {"compressors": {"name": "nix"}}}},
         "nix"),
        (lambda ds: ds.temperature, {"mode": "w"}, "expected an xarray.Dataset"),
    ])
    def test_what_does_not_fit_changes_nothing(self, tmp_path, change, keywords, error):
        ds = weather()[["temperature"]].drop_vars(["place", "y"])
        to_zarr(ds, tmp_path / "a", encoding={"temperature": {"chunks": (4, 6, 8)}})
        before = {path: path.read_bytes() for path in (tmp_path / "a").rglob("*") if path.is_file()}
        with pytest.raises((ValueError, TypeError, KeyError, zcore.ZcoreError), match=error):
            to_zarr(change(ds), tmp_path / "a", **keywords)
        assert {path: path.read_bytes() for path in (tmp_path / "a").rglob("*") if path.is_file()} == before

    def test_modes(self, tmp_path):
        ds = weather()[["temperature", "packed"]]
        ds["packed"].encoding = {}
        to_zarr(ds[["packed"]], tmp_path / "a", group="deep/er")
        assert set(by_zarr(tmp_path / "a", group="deep/er", consolidated=True).data_vars) == {"packed"}
        to_zarr(ds[["temperature"]].assign_attrs(new=1), tmp_path / "a", "a", group="deep/er")
        found = by_zarr(tmp_path / "a", group="deep/er", consolidated=True)
        assert set(found.data_vars) == {"packed", "temperature"} and found.attrs["new"] == 1
        to_zarr(ds[["packed"]] * 0, tmp_path / "a", "r+", group="deep/er")
        assert not by_zarr(tmp_path / "a", group="deep/er")["packed"].any()
        to_zarr(ds, tmp_path / "a", "w", group="deep/er", consolidated=False)
        assert zcore.open_group(tmp_path / "a").metadata.consolidated is None
        xr.testing.assert_identical(by_zarr(tmp_path / "a", group="deep/er"), ds)
        with pytest.raises(FileNotFoundError):
            to_zarr(ds, tmp_path / "b", "r+")
        assert not (tmp_path / "b").exists()

    def test_appended_dimension_alone(self, tmp_path):
        ds = weather()[["temperature", "big"]]
        to_zarr(ds, tmp_path)
        later = weather(start=10)[["temperature", "big"]]
        later["big"] = later["big"] * 0
        to_zarr(later, tmp_path, "a-", append_dim="time")
        found = by_zcore(tmp_path)
        assert found.sizes["time"] == 20 and found["big"].values.tolist() == list(range(8))

    def test_values_that_are_read_from_the_replaced_store(self, tmp_path):
        """What is lazy without dask is read first; what dask would read later is refused."""
        to_zarr(weather(), tmp_path / "a")
        expected = by_zcore(tmp_path / "a").load()
        with pytest.raises(ValueError, match="would delete"):
            to_zarr(by_zcore(tmp_path / "a", chunks={}), tmp_path / "a", "w")
        to_zarr(by_zcore(tmp_path / "a"), tmp_path / "a", "w")
        xr.testing.assert_identical(by_zcore(tmp_path / "a"), expected)

    def test_another_append_meanwhile_is_seen(self, tmp_path, monkeypatch):
        """Between the checks and the lock that excludes it."""
        from zcore.xarray.writing import _Draft

        to_zarr(weather()[["is_wet"]], tmp_path)
        carry_out = _Draft.carry_out

        def late(draft, *args):
            monkeypatch.undo()
            to_zarr(weather(start=10)[["is_wet"]], tmp_path, append_dim="time")
            return carry_out(draft, *args)

        monkeypatch.setattr(_Draft, "carry_out", late)
        with pytest.raises(zcore.StoreError, match="another writer"):
            to_zarr(weather(start=30)[["is_wet"]], tmp_path, append_dim="time")
        expected = np.concatenate([weather()["is_wet"]] * 2)
        assert by_zcore(tmp_path)["is_wet"].values.tolist() == expected.tolist()

    def test_write_empty_chunks(self, tmp_path):
        ds = xr.Dataset({"a": ("x", np.zeros(4))})
        ds["a"].encoding["fill_value"] = 0.0
        to_zarr(ds, tmp_path / "a", encoding={"a": {"chunks": (2,), "fill_value": 0.0}})
        assert not (tmp_path / "a/a/c/0").exists()
        to_zarr(ds, tmp_path / "b", write_empty_chunks=True, encoding={"a": {"chunks": (2,), "fill_value": 0.0}})
        assert (tmp_path / "b/a/c/0").exists()

    @pytest.mark.parametrize("shards", [None, (40, 40)])
    def test_misaligned_chunks_of_dask_lose_nothing(self, tmp_path, workers, shards):
        values = np.arange(100.0 * 100).reshape(100, 100)
        ds = xr.Dataset({"a": (("y", "x"), values)}).chunk(y=7, x=13)
        with dask.config.set(**workers):
            to_zarr(ds, tmp_path, encoding={"a": {"chunks": (20, 20), "shards": shards}})
            part = ds.isel(y=slice(10, 90), x=slice(5, 81)) * 2
            to_zarr(part, tmp_path, region={"y": slice(10, 90), "x": slice(5, 81)})
        values[10:90, 5:81] *= 2
        np.testing.assert_array_equal(by_zcore(tmp_path)["a"].values, values)

    def test_align_chunks(self, tmp_path):
        ds = xr.Dataset({"a": ("x", np.arange(100))}).chunk(x=7)
        to_zarr(ds, tmp_path, align_chunks=True, safe_chunks=True, encoding={"a": {"chunks": (20,)}})
        assert by_zcore(tmp_path)["a"].values.tolist() == list(range(100))

    def test_compute_later(self, tmp_path):
        ds = xr.Dataset({"a": ("x", np.arange(100)), "b": ("x", np.arange(100))})
        later = to_zarr(ds.chunk(x=30).assign(b=ds.b), tmp_path, compute=False, encoding={"a": {"chunks": (25,)}})
        assert by_zcore(tmp_path)["b"].values.tolist() == list(range(100))
        assert not by_zcore(tmp_path)["a"].values.any()
        assert later.compute()["a"][...].tolist() == list(range(100))

    @pytest.mark.slow
    def test_workers_of_distributed(self, tmp_path):
        distributed = pytest.importorskip("distributed")
        values = np.arange(100.0 * 100).reshape(100, 100)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with distributed.LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as cluster:
                with distributed.Client(cluster):
                    ds = xr.Dataset({"a": (("y", "x"), values)}).chunk(y=7, x=13)
                    to_zarr(ds, tmp_path / "a", encoding={"a": {"chunks": (20, 20)}})
                    found = xr.open_dataset(tmp_path / "a", engine="zcore", chunks={})
                    to_zarr(found * 2, tmp_path / "b")
        np.testing.assert_array_equal(by_zcore(tmp_path / "b")["a"].values, values * 2)


class _Ready(xr.backends.AbstractDataStore):
    def __init__(self, variables):
        self.variables = variables

    def load(self):
        return {name: variable.copy() for name, variable in self.variables.items()}, {"title": "t"}


def _variable(dims, shape, **attributes):
    return xr.Variable(dims, np.zeros(shape), attributes)


@each("variables", [
    {},
    {"v": _variable((), ())},
    {"v": _variable(("y", "x"), (2, 3)), "x": _variable("x", 3), "y": _variable("y", 2)},
    {"x": _variable("x", 3), "v": _variable(("y", "x"), (2, 3), coordinates="lat"), "lat": _variable("y", 2)},
    {"x": _variable(("y", "x"), (2, 3)), "v": _variable("x", 3)},
    {"v": _variable("x", 3), "w": _variable("x", 4)},
    {"x": _variable((), ()), "v": _variable("x", 3)}])
def test_a_dataset_is_made_as_xarray_makes_it(variables):
    def made(make):
        try:
            ds = make()
        except ValueError as error:
            return type(error), str(error)
        kinds = {name: type(variable) for name, variable in ds.variables.items()}
        return list(ds.variables), set(ds.coords), dict(ds.sizes), list(ds.sizes), kinds, ds.attrs, dict(ds.xindexes)

    ours = made(lambda: _assembled(*decode_cf_variables(*_Ready(variables).load())))
    assert ours == made(lambda: xr.backends.StoreBackendEntrypoint().open_dataset(_Ready(variables)))


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("consolidated", [None, False, True])
def test_an_array_or_nothing_is_named_alike_with_and_without_consolidated_metadata(tmp_path, zarr_format, consolidated):
    zcore.create_array(tmp_path / "a", data=np.arange(3), zarr_format=zarr_format, fill_value=7)
    assert xr.open_dataset(tmp_path / "a", engine="zcore", consolidated=consolidated)["a"].values.tolist() == [0, 1, 2]
    with pytest.raises(zcore.NodeNotFoundError, match="b"):
        xr.open_dataset(tmp_path / "b", engine="zcore", consolidated=consolidated)
    zcore.open_group(tmp_path / "g", "w", zarr_format=zarr_format).create_array("x", data=np.arange(3))
    if consolidated:
        with pytest.raises(ValueError, match="no consolidated metadata"):
            xr.open_dataset(tmp_path / "g", engine="zcore", consolidated=True)
    else:
        assert list(xr.open_dataset(tmp_path / "g", engine="zcore", consolidated=consolidated)) == ["x"]


@FORMATS
def test_xarray_opens_the_store_of_a_directory_without_an_engine_and_by_its_own(tmp_path, zarr_format):
    ds = weather()
    ds.to_zarr(tmp_path, zarr_format=zarr_format)
    given = zcore.DirectoryStore(tmp_path)
    for found in (xr.open_dataset(given), xr.open_dataset(given, engine="zarr"), xr.open_zarr(given, chunks=None)):
        xr.testing.assert_equal(found, xr.open_dataset(tmp_path, engine="zarr"))


def test_what_lies_elsewhere_is_handed_to_xarray_by_a_store(tmp_path):
    to_zarr(weather(), tmp_path)
    store = zcore.MemoryStore()
    zcore.copy(tmp_path, store)
    xr.testing.assert_equal(xr.open_zarr(zcore.zarr.Store(store)), xr.open_dataset(zcore.open_group(store)))
    xr.testing.assert_equal(xr.open_zarr(zcore.zarr.Store(zcore.DirectoryStore(tmp_path, read_only=True))),
                            xr.open_dataset(zcore.open_group(tmp_path)))


@pytest.mark.parametrize("options", [{"confined": True}, {"read_only": True}])
def test_a_store_is_no_path_where_a_library_could_do_more_with_that(tmp_path, options):
    to_zarr(weather(), tmp_path)
    before = xr.open_dataset(tmp_path, engine="zcore").load()
    store = zcore.DirectoryStore(tmp_path, **options)
    with pytest.raises(TypeError, match="zcore.zarr.Store hands it on"):
        xr.open_zarr(store)
    with pytest.raises(TypeError, match="zcore.zarr.Store hands it on"):
        before.to_zarr(store, mode="w")
    xr.testing.assert_equal(xr.open_dataset(tmp_path, engine="zcore"), before)


def test_numbers_that_are_no_json_are_written_as_by_xarray_with_one_warning(tmp_path):
    ds = xr.Dataset({"t": ("x", np.array([1.0, np.nan]), {"valid_range": [0, np.inf]}), "u": ("x", np.zeros(2))},
                    attrs={"limit": np.float32("inf"), "title": "NaN"})
    ds["u"].encoding = {"missing_value": np.nan}
    write(ds, tmp_path / "theirs")
    with pytest.warns(UserWarning, match="NaN or infinity in 'limit' of '/', 'valid_range' of 't', 'missing_value' "
                                         "of 'u': JSON has no such numbers") as told:
        to_zarr(ds, tmp_path / "ours")
    assert len(told) == 1
    for node in ("", "t", "u"):
        ours, theirs = (zcore.open(tmp_path / name, path=node).attrs.asdict() for name in ("ours", "theirs"))
        assert repr(sorted(ours.items())) == repr(sorted(theirs.items()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        to_zarr(by_zcore(tmp_path / "ours").load(), tmp_path / "ours", append_dim="x")     # they are known
        to_zarr(ds, tmp_path / "v2", zarr_format=2)
    with pytest.raises(ValueError, match="NaN and infinities are not JSON"):
        zcore.open(tmp_path / "ours/t", "r+").attrs["other"] = np.nan


def test_a_truth_value_is_no_text(tmp_path):
    ds = xr.Dataset({"t": ("x", np.zeros(3))})
    for name in ("compute", "safe_chunks", "align_chunks", "write_inherited_coords"):
        with pytest.raises(TypeError, match=f"^{name} is 'False', expected True or False"):
            to_zarr(ds, tmp_path / "a", **{name: "False"})
    to_zarr(ds, tmp_path / "a", consolidated=np.False_)
    assert zcore.open(tmp_path / "a").metadata.consolidated is None
    with pytest.raises(TypeError, match="use_zarr_fill_value_as_mask"):
        by_zcore(tmp_path / "a", use_zarr_fill_value_as_mask="False")
    with pytest.raises(TypeError, match="^use_consolidated is 'False', expected True, False or None"):
        zcore.open_group(tmp_path / "a", use_consolidated="False")
