"""`zcore plot`: which values are shown, between which levels, in the terminal and in files."""
import json
import struct
import sys

import numpy as np
import pytest

import zcore
from tests.each import each
from zcore.cli import location
from zcore.cli.show import figure, plane
from zcore.cli.show.plane import levels_of, plane_of

ARRAY = np.arange(7 * 30 * 40, dtype="<f4").reshape(7, 30, 40)


@pytest.fixture
def array():
    """Return an array of three dimensions."""
    return zcore.create_array("a.zarr", data=ARRAY, chunks=(1, 10, 20), dimension_names=("t", "y", None))


@pytest.mark.parametrize(("selection", "rooms", "expected"), [
    (None, (99, 99), ARRAY[3]),
    (None, (10, 99), ARRAY[3, ::3]),
    (None, (99, 7), ARRAY[3, :, ::6]),
    ((0,), (99, 99), ARRAY[0]),
    ((slice(None), -1, slice(5, 9)), (99, 99), ARRAY[:, -1, 5:9]),
    ((0, slice(None, None, -1), slice(1, 30, 3)), (10, 4), ARRAY[0, ::-1, 1:30:3][::3, ::3]),
    ((0, 1), (5, 10), ARRAY[0, 1:2, ::4]),
])
def test_what_is_shown(array, selection, rooms, expected):
    values, _, quantity = plane_of(array, selection, *rooms)
    np.testing.assert_array_equal(values, expected)
    assert quantity == "value" and values.dtype == "f8"


@pytest.mark.parametrize(("shape", "box"), [
    ((20, 30, 3), [range(20), range(30), 1]), ((5, 20, 30, 4), [2, range(20), range(30), 2]),
    ((5, 30, 20), [2, range(30), range(20)]), ((9, 2, 3), [4, range(2), range(3)]), ((9, 3), [range(9), range(3)]),
])
def test_a_short_last_dimension_is_that_of_colours(shape, box):
    assert plane_of(zcore.zeros(shape), None, 99, 99)[1] == box


@pytest.mark.parametrize(("shape_of_a_dot", "expected"), [(1, (8, 10)), (2, (4, 10)), (None, (30, 10))])
def test_pictures_are_not_distorted(array, shape_of_a_dot, expected):
    assert plane_of(array, None, 30, 10, shape_of_a_dot)[0].shape == expected


def test_only_what_is_shown_is_read(array, monkeypatch):
    sizes = []
    read = type(array).__getitem__
    monkeypatch.setattr(type(array), "__getitem__",
                        lambda self, at: sizes.append(read(self, at).size) or read(self, at))
    plane_of(array, None, 5, 5)
    assert sizes == [25]


def test_few_chunks_are_read(monkeypatch):
    """Larger steps would read all chunks as well, as long as one element of each is shown."""
    monkeypatch.setattr("zcore.cli.show.plane.MAX_CHUNKS", 100)
    array = zcore.full((80, 400), 7, chunks=(2, 5), dtype="i4")
    values, (rows, columns), _ = plane_of(array, None, 80, 100)
    assert values.shape == (5, 7) and (values == 7).all() and (rows.step, columns.step) == (16, 64)
    assert plane_of(array, (slice(0, 20), slice(0, 50)), 80, 100)[0].shape == (20, 50)


@pytest.mark.parametrize(("keywords", "selection", "words"), [
    ({"shape": (3, 3, 3)}, ":", "one dimension or two"),
    ({"shape": (3, 3, 3)}, "0, 0, 0", "one dimension or two"),
    ({"shape": (3, 3)}, "[0, 1]", "takes integers, slices"),
    ({"shape": (3, 3)}, "0, [True, False, True]", "a plot takes integers, slices and ... as its selection"),
    ({"shape": (3, 3)}, "None, 0, :", "a plot takes"),
    ({"shape": ()}, None, "one dimension or two"),
    ({"shape": (3, 0)}, None, "no elements"),
    ({"shape": (3, 3), "dtype": "U3"}, None, "are not numbers"),
    ({"shape": (3, 3)}, "5", "index 5 is out of bounds"),
])
def test_what_cannot_be_shown(run, keywords, selection, words):
    zcore.create_array("b.zarr", **{"dtype": "f4", **keywords})
    code, out, err = run("plot", "b.zarr", *([] if selection is None else [selection]))
    assert (code, out) == (1, "") and words in err


@pytest.mark.parametrize(("values", "expected"), [
    (np.arange(101.0), (1, 99)),
    (np.r_[np.zeros(500), 7], (0, 7)),
    (np.r_[np.linspace(0, 1, 1000), 1e30, -1e30], (np.percentile(np.r_[np.linspace(0, 1, 1000), 1e30, -1e30], 1),
                                                   np.percentile(np.r_[np.linspace(0, 1, 1000), 1e30, -1e30], 99))),
    (np.array([np.nan, 5.0]), (5, 5)),
    (np.array([np.nan]), (0, 0)),
])
def test_levels(values, expected):
    assert levels_of(values) == pytest.approx(expected)

# in the terminal


def test_signs():
    values = np.array([[0, 0.5, 1, np.nan], [-9, 9, 0.05, 0.95]])
    assert plane.drawn(values, 0, 1, in_colours=False) == [" +@?", " @ @"]
    assert plane.drawn(np.full((1, 3), 4.0), 4, 4, in_colours=False) == ["+++"]
    assert plane.scale(-1, 2.5, in_colours=False) == f"-1 {plane.SIGNS} 2.5"


@each(("shape", "shape_of_a_dot", "expected"), [
    ((2, 3), 2, (20, 60)), ((2, 3), 1, (20, 30)), ((3, 4), 2, (18, 48)), ((2, 2000), 2, (4, 59)),
    ((2000, 2), 2, (20, 8)), ((1, 300), 1, (12, 60)), ((30, 40), 2, (15, 40)), ((20, 30), 2, (20, 60)),
])
def test_small_and_narrow_arrays_can_be_seen(shape, shape_of_a_dot, expected):
    array = zcore.array(np.arange(np.prod(shape)).reshape(shape))
    values, _, _ = plane_of(array, None, 20, 60, shape_of_a_dot)
    shown = plane.enlarged(values, 20, 60, shape_of_a_dot)
    assert shown.shape == expected and np.unique(shown).size == values.size
    assert values.shape[0] == shape[0] or shape[0] > 20


def test_two_rows_are_a_line_of_coloured_half_blocks():
    line, = plane.drawn(np.array([[0, 0, 1.0], [1, 1, np.nan]]), 0, 1, in_colours=True)
    assert line == "\x1b[38;2;68;1;84;48;2;253;231;37m▀▀\x1b[38;2;253;231;37;48;2;128;128;128m▀\x1b[0m"
    assert len(plane.drawn(np.zeros((5, 3)), 0, 1, in_colours=True)) == 3
    assert len(plane.drawn(np.zeros((1, 3)), 0, 1, in_colours=True)) == 1


def test_the_command_without_colours(run, array, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("LINES", "10")
    code, out, err = run("plot", "a.zarr")
    lines = out.splitlines()
    assert (code, err) == (0, "") and {len(line) for line in lines[:-1]} == {14} and len(lines) == 6
    assert lines[-1].startswith("3602.07 ") and lines[0][0] == " " and lines[-2][-1] == "@"
    assert lines[-1].endswith("  [3, :, :]")


def test_the_command_in_colours(run, array, monkeypatch):
    from zcore.cli.verbs.elements import plot

    monkeypatch.setattr(plot, "has_colours", lambda stream: stream is sys.stdout)
    code, out, _ = run("plot", "a.zarr", "--levels", "0,9000")
    assert code == 0 and out.count(plane.UPPER_HALF) > 100 and out.splitlines()[-1].startswith("0 ")

# files


def size_of(name):
    """Return width and height of a PNG file."""
    with open(name, "rb") as file:
        return struct.unpack(">II", file.read(24)[16:])


def test_files(run, array):
    code, out, err = run("plot", "a.zarr", "0, ::2, 5:35", "--out", "p.png", "--json")
    assert (code, err) == (0, "") and size_of("p.png")[0] > 500
    assert json.loads(out)["selection"] == [0, [0, 30, 2], [5, 35, 1]] and len(json.loads(out)["levels"]) == 2
    assert run("plot", "a.zarr", "0, 0", "--out", "l.svg") == (0, "", "")
    with open("l.svg") as file:
        assert "<svg" in file.read()
    zcore.create_array("b.zarr", data=ARRAY[0], chunks=(5, 5), shards=[[10, 20], 40])
    assert run("plot", "b.zarr", "--out", "p.png") == (0, "", "")
    assert run("plot", "a.zarr", "--out", "p.nonsense")[0] == 1
    assert run("plot", "a.zarr", "--out", "none/p.png")[0] == 1


def test_a_figure_has_levels_borders_and_names(array):
    values, box, quantity = plane_of(array, (0, slice(2, 25), slice(None)), 99, 99)
    drawn = figure.plane(array, values, box, 100, 900, quantity, "a\x1b$x$")
    (plane,) = drawn.axes
    (bar,) = plane.child_axes
    (image,) = plane.images
    assert image.get_clim() == (100, 900) and image.get_extent() == [-0.5, 39.5, 24.5, 1.5]
    assert (plane.get_xlabel(), plane.get_ylabel()) == ("dimension 2", "y")
    borders = sorted({float(line.get_xdata()[0]) for line in plane.lines if line.get_xdata()[0] == line.get_xdata()[1]})
    assert borders == [19.5] and [line.get_ydata()[0] for line in plane.lines if line.get_ydata()[0] > 1] == [9.5, 19.5]
    assert plane.get_title() == "a?$x$ [0, :, :]" and bar.get_ylabel() == "value"


def test_points_between_missing_ones_are_seen():
    array = zcore.array(np.array([1, np.inf, 2, np.nan, 3, 4]))
    values, box, quantity = plane_of(array, None, 99, 99)
    assert figure.plane(array, values, box, 1, 4, quantity, "a").axes[0].lines[1].get_xdata().tolist() == [0, 2]


@pytest.fixture
def map_of_the_earth():
    """Make a group of packed values with missing ones, beside the coordinates of their dimensions."""
    group = zcore.create_group("g.zarr")
    group.create_array("lat", data=np.linspace(-60, 60, 13, dtype="f4"), attributes={"units": "degrees_north"})
    group.create_array("day", data=np.arange("2020-01-01", "2020-01-25", dtype="M8[D]"))
    return group.create_array("t", data=np.arange(13 * 24, dtype="i2").reshape(13, 24), dimension_names=["lat", "day"],
                              attributes={"units": "K", "long_name": "temperature", "scale_factor": 0.5,
                                          "add_offset": 200, "_FillValue": 3, "missing_value": "none"})


def test_missing_elements_of_floats_are_those_of_xarray_in_zarr_v3():
    zcore.create_array("a.zarr", data=np.array([[1, -999, 2]], "f4"), attributes={"_FillValue": "AAAAAAA4j8A="})
    assert np.isnan(plane_of(zcore.open("a.zarr"), None, 99, 99)[0]).tolist() == [[False, True, False]]


def test_labels_are_those_of_the_attributes_and_the_coordinates(map_of_the_earth):
    values, box, quantity = plane_of(map_of_the_earth, None, 99, 99)
    assert quantity == "temperature [K]" and np.flatnonzero(np.isnan(values)).tolist() == [3]
    assert values[0, 2] == 201 and values[-1, -1] == 200 + (13 * 24 - 1) / 2
    drawn = figure.plane(map_of_the_earth, values, box, 200, 400, quantity, "t")
    (plane,), (low, high) = drawn.axes, drawn.axes[0].get_ylim()
    assert (plane.get_xlabel(), plane.get_ylabel()) == ("day", "lat [degrees_north]") and low < high
    assert [tick.get_text() for tick in plane.get_yticklabels()][:2] == ["-60", "-30"]
    assert plane.get_yticks()[1] == pytest.approx(3) and plane.get_xticklabels()[1].get_text() == "2020-01-07"
    drawn.draw_without_rendering()
    picture, bar = plane.get_window_extent(), plane.child_axes[0].get_window_extent()
    assert (picture.y0, picture.y1) == pytest.approx((bar.y0, bar.y1)) and picture.x1 < bar.x0
    assert drawn.axes[0].images[0].get_cmap().get_bad()[:3] == pytest.approx([0.75] * 3)


@pytest.mark.parametrize("coordinates", [
    np.logspace(0, 6, 40), np.r_[np.arange(20.0), 20 + 100.0 * np.arange(20)], 1e7 + 12345.25 * np.arange(40),
    np.datetime64("2020-01-01", "ns") + np.timedelta64(6, "h") * np.arange(40), np.arange(40)[::-1] ** 3, np.zeros(40),
    np.r_[np.nan, np.arange(39.0)],
], ids=["logarithmic", "in two parts", "long", "nanoseconds", "falling", "equal", "NaN"])
def test_labels_of_ticks_do_not_overlap(coordinates):
    group = zcore.create_group({})
    group.create_array("x", data=coordinates)
    array = group.create_array("t", data=ARRAY[0, :40].repeat(2, 0)[:40, :40], dimension_names=("x", "x"))
    values, box, quantity = plane_of(array, None, 99, 99)
    drawn = figure.plane(array, values, box, 0, 9, quantity, "t")
    drawn.draw_without_rendering()
    for labels, d in ((drawn.axes[0].get_xticklabels(), 0), (drawn.axes[0].get_yticklabels(), 1)):
        ends = sorted(tuple(label.get_window_extent().get_points()[:, d]) for label in labels)
        assert len(ends) > 1 and all(one[1] < other[0] for one, other in zip(ends, ends[1:], strict=False))


@each(("units", "calendar", "first"), [
    ("hours since 2000-01-01 06:00:00", "standard", "2000-01-01T07:00:00"),
    ("days since 1850-01-01", None, "1850-01-02T00:00:00"),
    ("seconds since 1970-01-01T00:00:00Z", "proleptic_gregorian", "1970-01-01T00:00:01"),
    ("seconds since 0001-01-01", "proleptic_gregorian", "0001-01-01T00:00:01"),
    ("days since 0001-01-01", "standard", None),
    ("days since 2000-13-01", None, None),
    ("days since 2000-01-01", "360_day", None),
    ("months since 2000-01-01", None, None),
    ("K", None, None),
])
def test_coordinates_of_time_are_dates(units, calendar, first):
    group = zcore.create_group({})
    group.create_array("time", data=[1, 2, np.nan, 1e300], attributes={
        "units": units, "long_name": "when", **({} if calendar is None else {"calendar": calendar})})
    array = group.create_array("t", data=np.arange(4.0), dimension_names=("time",))
    label, found = plane.coordinate_of(array, 0, range(4))
    assert (label, found[0]) == (("when", np.datetime64(first)) if first else (f"when [{units}]", 1))
    assert first is None or np.isnat(found).tolist() == [False, False, True, True]


def test_dates_before_the_calendar_changed_stay_numbers():
    group = zcore.create_group({})
    group.create_array("time", data=[-1e6, 0.25], attributes={"units": "days since 1850-01-01"})
    array = group.create_array("t", data=np.arange(2), dimension_names=("time",))
    assert plane.coordinate_of(array, 0, range(2))[1].tolist() == [-1e6, 0.25]
    assert plane.coordinate_of(array, 0, range(1, 2))[1] == np.datetime64("1850-01-01T06")


def test_packed_values_and_coordinates_of_a_netcdf_file(run):
    h5py = pytest.importorskip("h5py")
    with h5py.File("x.nc", "w") as file:
        made = file.create_dataset("g/t", data=np.array([[0, 1], [-1, -2]], "i2"))
        made.attrs.update({"_Unsigned": "true", "_FillValue": np.int16(-1), "scale_factor": 2.0, "units": "m"})
        x = file.create_dataset("g/x", data=np.array([0, 10], "i2"))
        x.attrs.update({"scale_factor": 0.5, "add_offset": 100.0, "units": "km"})
        x.make_scale("x")
        made.dims[1].attach_scale(x)
    array = location.opened_array("x.nc/g/t")
    values, box, quantity = plane_of(array, None, 9, 9)
    np.testing.assert_array_equal(values, [[0, 2], [np.nan, 2 * 65534]])
    drawn = figure.plane(array, values, box, 0, 3, quantity, "t")
    assert drawn.axes[0].get_xlabel() == "x [km]" and drawn.axes[0].get_xticklabels()[0].get_text() == "100"


def test_a_page_has_the_picture_and_the_description(run, map_of_the_earth):
    assert run("plot", "g.zarr/t", "--html", "p.html", "--out", "p.png") == (0, "", "")
    with open("p.html") as file:
        text = file.read()
    assert text.startswith("<!doctype html>") and "data:image/png;base64,iVBOR" in text and "temperature" in text
    assert size_of("p.png")[0] > 500


@pytest.mark.parametrize("arguments", [["--levels", "0,inf"], ["--levels", "3,1"], ["--levels", "a"]])
def test_levels_that_are_none(run, array, arguments):
    code, out, err = run("plot", "a.zarr", *arguments)
    assert (code, out) == (1, "") and len(err.splitlines()) == 1


def test_without_matplotlib_the_terminal_is_left(shell, array):
    with open("matplotlib.py", "w") as file:
        file.write("raise ModuleNotFoundError('No module named matplotlib', name='matplotlib')")
    done = shell("export PYTHONPATH=.:$PYTHONPATH; zcore plot a.zarr >terminal; zcore plot a.zarr --out p.png")
    assert done.returncode == 1 and done.stderr == (
        "zcore plot: a picture in a file (without --out it is drawn in the terminal) needs matplotlib, which is not "
        'installed: python -m pip install "zcore-array[plot]"\n')
    with open("terminal") as file:
        assert "@" in file.read()
