"""Values that an array cannot store by its encoding are errors of `zcore.xarray.to_zarr`; nothing is changed."""
import warnings

import numpy as np
import pytest

import zcore

xr = pytest.importorskip("xarray")
pytest.importorskip("dask")
cftime = pytest.importorskip("cftime")

from zcore.xarray import to_zarr  # noqa: E402


@pytest.fixture(autouse=True)
def _without_warnings(recwarn):
    warnings.simplefilter("ignore")


def dates(*texts):
    return np.array(texts, "M8[ns]")


def no_leap(*args):
    return np.array([cftime.DatetimeNoLeap(*args)])


DAYS = {"units": "days since 2000-01-01", "dtype": "i8"}
PACKED = {"dtype": "i2", "scale_factor": 0.5, "_FillValue": -9}
DAILY = dates("2000-01-01", "2000-01-02", "2000-01-03")

# What is stored, its encoding, what is written, and a part of the error.
WRONG = {
    "half a day in days": (DAILY, {}, dates("2000-01-04", "2000-01-04T12"), "2000-01-04T12.*days since"),
    "6 hours after one day": (dates("2000-01-01"), {}, dates("2000-01-01T06", "2000-01-01T12"), "2000-01-01T06"),
    "half a second": (dates("2000-01-01"), {"units": "seconds since 2000-01-01"}, dates("2000-01-01T00:00:02.5"), ""),
    "a day too late": (dates("2000-01-01"), {**DAYS, "dtype": "i2"}, dates("2200-01-01"), "2200.*int16"),
    "numbers for dates": (DAILY, {}, np.array([3, 4]), "3 at .*days since"),
    "half a day of another calendar": (no_leap(2000, 1, 1), {}, no_leap(2000, 1, 2, 12), "noleap"),
    "a date that the calendar lacks": (no_leap(2000, 1, 1), {}, np.array([cftime.Datetime360Day(2000, 2, 30)]), "30"),
    "half a day of time": (np.array([1], "m8[D]"), {"units": "days", "dtype": "i8"}, np.array([36], "m8[h]"), "days"),
    "70000 in i2": (np.array([1], "i2"), {}, np.array([7, 70000]), "70000 at .1,. .*int16.*4464"),
    "2**40 in i4": (np.array([1], "i4"), {}, np.array([2**40 + 7]), "1099511627783 .*int32"),
    "negative in u2": (np.array([1], "u2"), {}, np.array([-1], "i2"), "-1 .*uint16.*65535"),
    "2**63 in i8": (np.array([1], "i8"), {}, np.array([2**63], "u8"), "9223372036854775808"),
    "NaN in integers": (np.array([1], "i4"), {}, np.array([1.0, np.nan]), "nan at .1,. .*int32"),
    "a fraction in integers": (np.array([1], "i4"), {}, np.array([2.5]), "2.5 .*int32"),
    "too large when packed": (np.array([1.0]), PACKED, np.array([np.nan, 99999.0]), "99999.*scale_factor 0.5"),
    "packed as the fill value": (np.array([1.0]), PACKED, np.array([-4.5]), "-4.5 .*_FillValue -9.* nan"),
    "NaN without a fill value": (np.array([1.0]), {"dtype": "i2", "scale_factor": 0.5}, np.array([np.nan]), "nan"),
    "too large for f4": (np.array([1], "f4"), {}, np.array([1e300]), "1e.300 .*float32.* inf"),
    "an integer with more digits than f4": (np.array([1], "f4"), {}, np.array([2**24 + 1]), "16777217"),
    "an integer with more digits than f8": (np.array([1.0]), {}, np.array([2**53 + 1]), "9007199254740993"),
    "the fill value": (np.array([1.0]), {"_FillValue": -999.0}, np.array([-999.0]), "-999.0 .* nan"),
    "the fill value of integers": (np.array([1]), {"_FillValue": -999}, np.array([-999]), "-999 .* nan"),
    "the missing value": (np.array([1.0]), {"missing_value": -999.0}, np.array([-999.0]), "missing_value"),
    "2 in bool": (np.array([True]), {}, np.array([1, 2]), "2 at .*bool"),
    "longer text": (np.array(["ab"]), {}, np.array(["ab", "abc"], object), "abc .*U2.* ab"),
    "longer bytes": (np.array([b"ab"]), {}, np.array([b"ab", b"abc"], object), "abc"),
    "numbers in text": (np.array(["ab"], object), {}, np.array([1]), "1 at"),
    "complex": (np.array([1j], "c8"), {}, np.array([1e300j]), "complex64"),
}

RIGHT = {
    "days": (DAILY, {}, dates("2000-01-04", "NaT")),
    "hours in days of f8": (DAILY, {**DAYS, "dtype": "f8"}, dates("2000-01-01T06", "2000-01-01T12:20", "NaT")),
    "other calendar": (no_leap(2000, 1, 1), {}, no_leap(2000, 3, 1)),
    "dates of NumPy in another calendar": (no_leap(2000, 1, 1), {}, dates("2000-03-02")),
    "time": (np.array([1], "m8[D]"), {"units": "days", "dtype": "i8"}, np.array([48], "m8[h]")),
    "small numbers": (np.array([1], "i2"), {}, np.array([-30000])),
    "integers as floating point": (np.array([1], "i4"), {}, np.array([1.0, 3.0])),
    "packed": (np.array([1.0]), {**PACKED, "add_offset": 10.0}, np.array([5.2, np.nan, 333.26])),
    "packed in u1": (np.array([1.0]), {"dtype": "u1", "scale_factor": 0.1, "_FillValue": 255}, np.array([0.1, 25.4])),
    "fewer digits": (np.array([1], "f4"), {}, np.array([0.1, 1e30, np.nan, np.inf, 1e-50])),
    "large integers beside a fill value": (np.array([1]), {"_FillValue": -999}, np.array([2**60 + 1])),
    "unsigned": (np.array([200], "u1"), {"_Unsigned": "true", "dtype": "i1", "_FillValue": np.int8(-100)},
                 np.array([255], "u1")),
    "bool": (np.array([True]), {}, np.array([1, 0])),
    "bool in integers": (np.array([1]), {}, np.array([True])),
    "text": (np.array(["ab"], object), {}, np.array(["abc", None, np.nan, ""], object)),
    "text of fixed width": (np.array(["ab"]), {}, np.array(["b", "ab"], object)),
    "nothing": (np.array([1], "i2"), {}, np.array([], "i8")),
}


def written(tmp_path, old, encoding, new, lazy, zarr_format=3, mode="append"):
    first = xr.Dataset({"v": ("t", old), "w": ("t", np.zeros(len(old)))}).drop_encoding()
    first["v"].encoding = dict(encoding)
    to_zarr(first, tmp_path, zarr_format=zarr_format)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    ds = xr.Dataset({"v": ("t", new), "w": ("t", np.ones(len(new)))})
    if mode != "append":
        if not len(new):
            pytest.skip("a region has elements")
        new = np.resize(new, len(old)) if len(new) < len(old) else new[-len(old):]
        ds = xr.Dataset({"v": ("t", new), "w": ("t", np.ones(len(new)))})
    ds = ds.chunk(t=-1) if lazy else ds
    return before, lambda: to_zarr(ds, tmp_path, **({"append_dim": "t"} if mode == "append" else {"mode": mode}))


@pytest.mark.thinned(2, "old", "lazy", "zarr_format")
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(("old", "encoding", "new", "error"), WRONG.values(), ids=WRONG)
def test_what_does_not_fit(tmp_path, old, encoding, new, error, lazy, zarr_format):
    before, write = written(tmp_path, old, encoding, new, lazy, zarr_format)
    with pytest.raises((ValueError, TypeError), match="(?s)'?v'?.*") as caught:
        write()
    assert any(["variable 'v'" in text or "variable v " in text
                for text in [str(caught.value), *getattr(caught.value, "__notes__", [])]])
    if "Mismatched" not in str(caught.value) and "invalid day" not in str(caught.value):
        caught.match(error)
    found = xr.open_dataset(tmp_path, engine="zcore", decode_timedelta=old.dtype.kind == "m")
    assert found.v.values.tolist() == xr.Dataset({"v": ("t", old)}).v.values.tolist()
    if not lazy:
        assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.thinned(2, "old", "lazy", "mode")
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("mode", ["r+", "a"])
@pytest.mark.parametrize(("old", "encoding", "new", "error"), WRONG.values(), ids=WRONG)
def test_what_does_not_fit_over_stored_values(tmp_path, old, encoding, new, error, lazy, mode):
    _, write = written(tmp_path, old, encoding, new, lazy, mode=mode)
    with pytest.raises((ValueError, TypeError)):
        write()


@pytest.mark.thinned(2, "old", "lazy", "zarr_format")
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(("old", "encoding", "new"), RIGHT.values(), ids=RIGHT)
def test_what_fits(tmp_path, old, encoding, new, lazy, zarr_format):
    _, write = written(tmp_path, old, encoding, new, lazy, zarr_format)
    write()
    found = xr.open_dataset(tmp_path, engine="zcore", decode_timedelta=old.dtype.kind == "m").v.values[len(old):]
    if new.dtype.kind == "M" and found.dtype.kind == "O":
        assert [value.isoformat() for value in found] == [str(value)[:19] for value in new]
    elif new.dtype.kind in "mM":
        same = np.abs(found - new) < np.timedelta64(1, "us")
        assert (same | (np.isnat(found) & np.isnat(new))).all()
    elif new.dtype.kind == "f":
        np.testing.assert_allclose(found, new, atol=encoding.get("scale_factor", 1e-44), rtol=1e-6)
    elif new.dtype.kind == "O":
        assert list(found) == [value if value == value and value is not None else "" for value in new]
    else:
        assert found.tolist() == new.astype(found.dtype).tolist()


class TestCoordinates:
    @pytest.mark.thinned(2, "change", "mode", "lazy")
    @pytest.mark.parametrize("lazy", [False, True])
    @pytest.mark.parametrize("mode", ["a", "a-"])
    @pytest.mark.parametrize("change", [
        lambda ds: ds.isel(level=slice(None, None, -1)), lambda ds: ds.assign_coords(level=ds.level + 1),
        lambda ds: ds.assign_coords(name=("level", ["a", "b", "d"])), lambda ds: ds.assign_coords(place=5.0)],
        ids=["order", "labels", "text", "scalar"])
    def test_other_labels(self, tmp_path, change, mode, lazy):
        ds = xr.Dataset({"v": (("time", "level"), np.arange(6.0).reshape(2, 3))}, {
            "time": [0, 1], "level": [1000, 850, 500], "name": ("level", ["a", "b", "c"]), "place": 4.0})
        to_zarr(ds, tmp_path)
        later = change(ds).assign_coords(time=[2, 3])
        with pytest.raises(ValueError, match="coordinate .* differs from the stored one"):
            to_zarr(later.chunk() if lazy else later, tmp_path, mode, append_dim="time")
        xr.testing.assert_equal(xr.open_dataset(tmp_path, engine="zcore").load(), ds)
        to_zarr(ds.assign_coords(time=[2, 3]), tmp_path, mode, append_dim="time")
        to_zarr(ds.assign_coords(time=[4, 5]).drop_vars(["level", "name", "place"]), tmp_path, mode, append_dim="time")
        found = xr.open_dataset(tmp_path, engine="zcore")
        xr.testing.assert_equal(found.load(), xr.concat([ds.assign_coords(time=[i, i + 1]) for i in (0, 2, 4)], "time",
                                                        data_vars="minimal", coords="minimal"))

    def test_labels_that_differ_in_the_last_digit(self, tmp_path):
        """Which of two roundings is meant only the user knows; the error says how far they are apart."""
        ds = xr.Dataset({"v": (("time", "x"), np.zeros((1, 4)))}, {"x": np.linspace(0, 0.3, 4)})
        to_zarr(ds, tmp_path)
        later = ds.assign_coords(x=np.arange(4) * 0.1)
        with pytest.raises(ValueError, match=r"by up to 5.55e-17.* leave them out: ds.drop_vars\('x'\)"):
            to_zarr(later, tmp_path, append_dim="time")
        to_zarr(later.drop_vars("x"), tmp_path, append_dim="time")
        found = xr.open_dataset(tmp_path, engine="zcore")
        assert found.sizes["time"] == 2 and (found.x.values == ds.x.values).all()

    def test_labels_that_are_stored_with_fewer_digits(self, tmp_path):
        ds = xr.Dataset({"v": (("time", "x"), np.zeros((1, 2)))}, {"x": [0.1, 0.2]})
        to_zarr(ds, tmp_path, encoding={"x": {"dtype": "f4"}})
        to_zarr(ds, tmp_path, append_dim="time")
        assert xr.open_dataset(tmp_path, engine="zcore").sizes["time"] == 2

    def test_bounds_have_the_units_of_their_coordinate(self, tmp_path):
        time = np.arange("2000-01-01", "2000-01-03", dtype="M8[D]").astype("M8[ns]")
        ds = xr.Dataset({"time_bounds": (("time", "two"), np.stack([time, time + np.timedelta64(1, "D")], 1))},
                        {"time": ("time", time, {"bounds": "time_bounds"})})
        to_zarr(ds, tmp_path)
        later = ds.assign(time_bounds=ds.time_bounds + np.timedelta64(1, "D")).drop_vars("time")
        to_zarr(later, tmp_path, region={"time": slice(0, 2)})
        assert (xr.open_dataset(tmp_path, engine="zcore").time_bounds.values == later.time_bounds.values).all()


def test_blocks_before_the_one_that_does_not_fit(tmp_path):
    """They may be written over stored values; an append has not happened then."""
    ds = xr.Dataset({"v": ("t", np.zeros(4, "i2"))})
    to_zarr(ds, tmp_path, encoding={"v": {"chunks": (2,)}})
    later = xr.Dataset({"v": ("t", np.array([1, 2, 3, 70000]))}).chunk(t=2)
    with pytest.raises(ValueError, match="70000 at .3,."):
        to_zarr(later, tmp_path, append_dim="t")
    assert zcore.open(tmp_path)["v"][...].tolist() == [0] * 4
