"""`zcore.xarray.writer`: datasets that come one by one are what one `to_zarr` of all of them would have stored."""
import numpy as np
import pytest

xarray = pytest.importorskip("xarray")

import zcore  # noqa: E402
import zcore.xarray  # noqa: E402

HOURS = np.datetime64("2020-01-01", "ns") + np.arange(60) * np.timedelta64(3600, "s")


def dataset(first, n=1):
    values = np.arange(first * 6, (first + n) * 6, dtype="f4").reshape(n, 2, 3)
    return xarray.Dataset(
        {"t2m": (("time", "y", "x"), values, {"units": "K"}), "rain": (("x", "time"), values[:, 0].T * 2),
         "mask": (("y", "x"), np.ones((2, 3)))},
        {"time": HOURS[first:first + n], "x": [10, 20, 30], "month": ("time", np.full(n, 1))})


ENCODING = {"t2m": {"chunks": (8, 2, 3), "dtype": "i2", "scale_factor": 0.5, "_FillValue": -1},
            "rain": {"chunks": (3, 8)}, "time": {"chunks": (100,), "units": "hours since 2019-01-01"}}


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("consolidated", [True, False])
def test_what_one_call_would_have_stored(tmp_path, zarr_format, consolidated):
    keywords = {"encoding": ENCODING, "zarr_format": zarr_format, "consolidated": consolidated}
    zcore.xarray.to_zarr(dataset(0, 60), tmp_path / "whole", **keywords)
    zcore.xarray.to_zarr(dataset(0, 5), tmp_path / "parts", **keywords)
    with zcore.xarray.writer(tmp_path / "parts", "time") as w:
        for i in range(5, 55):
            w.append(dataset(i).transpose("x", "time", "y") if i % 2 else dataset(i))
            if i == 30:
                w.flush()
                assert xarray.open_dataset(tmp_path / "parts", engine="zcore").sizes["time"] == 31
        w.append(dataset(55, 5))
    whole, parts = [xarray.open_dataset(tmp_path / name, engine="zcore") for name in ("whole", "parts")]
    xarray.testing.assert_identical(whole.load(), parts.load())
    assert zcore.verify(tmp_path / "parts").ok
    assert (zcore.open(tmp_path / "parts").metadata.consolidated is not None) == consolidated


def test_in_a_group_and_for_zarr_python(tmp_path):
    zcore.xarray.to_zarr(dataset(0), tmp_path, group="a/b", encoding=ENCODING)
    with zcore.xarray.writer(tmp_path, "time", group="a/b") as w:
        for i in range(1, 20):
            w.append(dataset(i))
    expected = dataset(0, 20)
    found = xarray.open_zarr(tmp_path, group="a/b", consolidated=False)
    for name in ("time", "rain", "t2m"):
        np.testing.assert_array_equal(found[name].transpose(*expected[name].dims), expected[name])


def test_what_does_not_fit(tmp_path):
    zcore.xarray.to_zarr(dataset(0), tmp_path, encoding=ENCODING)
    with zcore.xarray.writer(tmp_path, "time") as w:
        with pytest.raises(ValueError, match="differ"):
            w.append(dataset(1).assign_coords(x=[1, 2, 3]))
        with pytest.raises(ValueError):
            w.append(dataset(1).drop_vars("rain"))
        with pytest.raises(ValueError):
            w.append(dataset(1).assign(new=("time", [1])))
        w.append(dataset(1))
    assert xarray.open_dataset(tmp_path, engine="zcore").sizes["time"] == 2
    with pytest.raises(zcore.NodeNotFoundError):
        zcore.xarray.writer(tmp_path / "none", "time")
    with pytest.raises(zcore.NodeNotFoundError):
        zcore.xarray.writer(tmp_path, "level")
