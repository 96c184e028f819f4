"""The demo's picture: what is drawn of arrays of any kind and shape, what is written on it, and that nothing warns."""
import struct
import zlib

import numpy as np
import pytest
from matplotlib.figure import Figure

from zcore.__main__ import main
from zcore.cli.show import levels
from zcore.cli.verbs.demo import demo, picture
from zcore.cli.verbs.demo.source import DemoData


@pytest.fixture
def drawn(monkeypatch, save):
    """Return a function that runs the demo on data and returns the figure that was saved.

    It is saved small, which takes a third of the time. A warning is an error in these tests, so none of these pictures
    has caused one.
    """
    figures = []
    savefig = Figure.savefig

    def save_small(figure, file, **kwargs):
        figures.append(figure)
        savefig(figure, file, format="png", dpi=40)

    monkeypatch.setattr(Figure, "savefig", save_small)

    def drawn(data, *options):
        assert main(["demo", data if isinstance(data, str) else save("data.npy", data), *options]) == 0
        return figures[-1]

    return drawn


def size_of_png(path):
    """Return (width, height) of a PNG file whose parts have the right checksums, up to its end mark."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    offset, kinds, size = 8, [], None
    while offset < len(data):
        length, kind = struct.unpack_from(">I4s", data, offset)
        body = data[offset + 8:offset + 8 + length]
        assert struct.unpack_from(">I", data, offset + 8 + length) == (zlib.crc32(kind + body),)
        kinds.append(kind)
        if kind == b"IHDR":
            size = struct.unpack_from(">II", body)
        offset += 12 + length
    assert kinds[0] == b"IHDR" and kinds[-1] == b"IEND" and b"IDAT" in kinds
    return size


def ticks(axis):
    """Return the texts of the ticks that lie within the limits of an axis."""
    low, high = sorted(axis.get_view_interval())
    return [label.get_text() for label, place in zip(axis.get_ticklabels(), axis.get_ticklocs(), strict=True)
            if low <= place <= high]


def names_in(axes):
    """Return the texts written into the plane."""
    return [text.get_text() for text in axes.texts if text.get_transform() is axes.transData]


NUMBERS = {
    "1d": np.linspace(-1, 1, 5000),
    "3d complex": np.arange(24.0).reshape(2, 3, 4) * 1j,
    "5d": np.arange(720.0).reshape(2, 3, 4, 5, 6),
    "bool": np.zeros((1, 6), bool),
    "big-endian": np.arange(12, dtype=">i2").reshape(4, 3),
    "fortran": np.asfortranarray(np.arange(20, dtype="u1").reshape(4, 5)),
    "infinite": np.array([[-0.0, np.inf], [1e308, -1e308]]),
    "largest": np.tile([[np.finfo("f8").max, -np.finfo("f8").max]], (20, 10)),
    "largest complex": np.full((20, 20), 1.7e308 * (1 + 1j)),
    "smallest": np.array([[0, 5e-324]] * 30),
    "neighbours": np.array([[1e17, np.nextafter(1e17, np.inf)]] * 30),
    "largest integers": np.array([[-2**63, 2**63 - 1]] * 30),
    "half": np.arange(400, dtype="f2").reshape(20, 20),
}
SLOW = ("3d complex", "big-endian", "fortran", "largest", "neighbours", "half")


@pytest.mark.parametrize("data", [pytest.param(data, id=name, marks=[pytest.mark.slow] if name in SLOW else [])
                                  for name, data in NUMBERS.items()])
def test_numbers_of_any_kind_are_drawn(drawn, tmp_path, data):
    drawn(data)
    assert size_of_png(tmp_path / "zcore-demo" / demo.PICTURE) > (300, 200)


@pytest.mark.parametrize(("value", "dtype"), [
    (2**64 - 1, "u8"), (True, bool), (3 + 4j, "c16"), (np.inf, "f4"),
    *[pytest.param(*one, marks=pytest.mark.slow) for one in ((0, "i4"), (-1e300, "f8"), (-2**63, "i8"))],
])
def test_a_constant_is_drawn(drawn, value, dtype):
    drawn(np.full((20, 30), value, dtype))


@pytest.mark.parametrize("data", [np.full(40, 2**64 - 1, "u8"), np.full(40, np.nan), np.full(40, -1e300)])
def test_a_constant_line_is_drawn(drawn, data):
    drawn(data)


def test_a_constant_has_the_colour_in_the_middle_and_its_value_beside_it(drawn):
    figure = drawn(np.full((20, 30), 7.5))
    plane, bar = figure.axes
    colours = plane.images[0].get_array()
    np.testing.assert_allclose(colours, np.broadcast_to(picture.colormaps["viridis"](0.5)[:3], colours.shape))
    assert ticks(bar.yaxis) == ["7.5"]


def test_integers_beyond_floating_point_are_told_apart(drawn):
    least = 2**64 - 20
    figure = drawn(np.array([[least, least + 1], [least + 2, least + 19]], "u8"))
    plane, bar = figure.axes
    assert len(np.unique(plane.images[0].get_array().reshape(4, 3), axis=0)) == 4
    assert bar.get_ylabel() == f"value above {least}" and bar.get_ylim() == (0, 19)
    values, quantity = levels.numbers_of(np.array([-2**63, -2**63 + 3]), "height")
    assert (values.tolist(), quantity) == ([0, 3], f"height above {-2**63}")


def test_what_is_not_finite_is_black_and_this_is_said(drawn):
    data = np.arange(400.0).reshape(20, 20)
    data[3, 4], data[5, 6] = np.nan, -np.inf
    figure = drawn(data)
    black = np.argwhere(figure.axes[0].images[0].get_array().sum(axis=2) == 0)
    assert black.tolist() == [[3, 4], [5, 6]]
    assert figure.axes[0].get_xlabel() == "column (white lines: chunk borders; black: not finite)"
    figure = drawn(np.full((20, 20), np.nan))
    assert figure.axes[0].images[0].get_array().max() == 0 and len(figure.axes) == 1


def test_complex_numbers_show_their_magnitude(drawn):
    figure = drawn(np.array([[3 + 4j, 0], [0, 0]]))
    assert figure.axes[1].get_ylabel() == "magnitude of value" and figure.axes[1].get_ylim() == (0, 5)


@pytest.mark.parametrize("shape", [(2, 8), (40, 4), (1, 300), (12,)])
def test_the_picture_is_as_large_as_what_is_drawn(save, tmp_path, shape):
    assert main(["demo", save(f"{'long' * 50}.npy", np.arange(np.prod(shape)).reshape(shape))]) == 0
    width, height = size_of_png(tmp_path / "zcore-demo" / demo.PICTURE)
    assert 300 < width < 1600 and 300 < height < 1100


# Ticks, names and lines


@pytest.mark.parametrize(("shape", "columns", "rows"), [
    ((1, 300), None, ["0"]), ((300, 1), ["0"], None), ((1, 1), ["0"], ["0"]), ((2, 3), ["0", "1", "2"], ["0", "1"]),
    ((3000, 2), ["0", "1"], None), ((40, 50), None, None),
])
def test_ticks_are_elements(drawn, shape, columns, rows):
    axes = drawn(np.arange(np.prod(shape)).reshape(shape)).axes[0]
    for axis, expected in ((axes.xaxis, columns), (axes.yaxis, rows)):
        found = ticks(axis)
        assert expected in (None, found) and all(text.isdecimal() for text in found)
        assert len(found) >= 3 or expected is not None


def test_ticks_of_a_line_are_elements_and_integers_if_its_values_are(drawn):
    axes = drawn(np.array([5])).axes[0]
    assert (ticks(axes.xaxis), ticks(axes.yaxis)) == (["0"], ["5"])
    assert axes.lines[0].get_marker() == "o"


def test_the_bar_is_as_high_as_the_plane(drawn):
    for shape in ((2, 8), (8, 2)):
        figure = drawn(np.arange(16).reshape(shape))
        plane, bar = (axes.get_window_extent() for axes in figure.axes)
        assert plane.height == pytest.approx(bar.height, rel=0.01), shape


def test_chunks_have_borders_and_names(drawn):
    axes = drawn(np.arange(1200).reshape(30, 40), "--chunks", "10,25").axes[0]
    assert names_in(axes) == ["0.0", "0.1", "1.0", "1.1", "2.0", "2.1"]
    assert [line.get_ydata()[0] for line in axes.lines[:2]] == [9.5, 19.5]
    assert [line.get_xdata()[0] for line in axes.lines[2:]] == [24.5]


def test_one_chunk_has_no_borders_to_explain(drawn):
    axes = drawn(np.arange(1200).reshape(30, 40), "--chunks", "30,40").axes[0]
    assert (axes.get_xlabel(), list(axes.lines), names_in(axes)) == ("column", [], ["0.0"])
    assert drawn(np.arange(12), "--chunks", "12").axes[0].get_xlabel() == "element"


@pytest.mark.parametrize(("shape", "chunks", "n_names", "n_lines"), [
    ((1, 300), "1,5", 0, 59), ((1, 300), "1,20", 15, 14), ((300, 300), "5,300", 0, 59), ((300, 300), "2,300", 0, 0),
], ids=["crowded row", "row", "crowded column", "hair lines"])
def test_chunks_that_are_too_small_have_no_names(drawn, shape, chunks, n_names, n_lines):
    axes = drawn(np.arange(np.prod(shape)).reshape(shape), "--chunks", chunks).axes[0]
    assert (len(names_in(axes)), len(axes.lines)) == (n_names, n_lines)


def test_names_of_chunks_do_not_overlap(drawn):
    figure = drawn(np.arange(300).reshape(1, 300), "--chunks", "1,19")
    boxes = [text.get_window_extent() for text in figure.axes[0].texts if "." in text.get_text()[:2]]
    assert len(boxes) == 16 and all(a.x1 < b.x0 for a, b in zip(boxes, boxes[1:], strict=False))


def test_the_plane_of_more_dimensions_is_the_middle_one(drawn):
    data = np.arange(5 * 7 * 20 * 30).reshape(5, 7, 20, 30)
    axes = drawn(data, "--chunks", "2,2,10,30").axes[0]
    assert names_in(axes) == ["1.1.0.0", "1.1.1.0"]
    assert any(", plane 2, 3 in " in text.get_text() for text in axes.texts)


@pytest.mark.parametrize("name", ["$a$.npy", r"$\frac$.npy", "日本.npy", "long" * 50 + ".npy", "a\nb.npy"])
def test_names_of_any_letters_are_shown_as_they_are(save, drawn, name):
    title = drawn(save(name, np.arange(400.0).reshape(20, 20))).axes[0].get_title()
    assert title == (name.replace("\n", "?") if len(name) < 80 else name[:79] + "…") + "\n"


# Images


def test_colours_are_drawn_as_they_are(drawn):
    from PIL import Image
    dots = np.random.default_rng(0).integers(0, 256, (40, 30, 3), dtype="u1")
    Image.fromarray(dots).save("photo.png")
    figure = drawn("photo.png")
    np.testing.assert_array_equal(figure.axes[0].images[0].get_array(), dots)
    assert len(figure.axes) == 1 and names_in(figure.axes[0])[0] == "0.0.0"


@pytest.mark.parametrize("shape", [(40, 30), (40, 30, 2)])
def test_grey_images_are_grey(drawn, shape):
    from PIL import Image
    Image.fromarray(np.random.default_rng(0).integers(0, 256, shape, dtype="u1")).save("photo.png")
    colours = drawn("photo.png").axes[0].images[0].get_array()
    assert colours.shape == (40, 30, 3) and np.ptp(colours, axis=2).max() == 0 and np.ptp(colours) == 1


# No picture


@pytest.mark.parametrize(("data", "reason"), [
    (np.array([b"ab", b"c"]), "elements of type |S2 are not numbers"),
    (np.array(["2020-01-01", "NaT"], "M8[D]"), "elements of type datetime64[D] are not numbers"),
    (np.zeros(3, [("a", "<i2"), ("b", ">f8", (2,))]), "are not numbers"),
    (np.zeros(3, np.dtype({"names": ["a"], "formats": ["f8"], "itemsize": 16})), "are not numbers"),
    (np.zeros((0, 4)), "the array has no elements"),
    (np.zeros(0), "the array has no elements"),
    (np.array(3.0), "the array has no dimensions"),
], ids=["text", "dates", "structured", "padded", "empty", "empty line", "0d"])
def test_what_cannot_be_drawn_is_checked_all_the_same(save, tmp_path, capsys, data, reason):
    assert levels.obstacle(data.dtype, data.shape).endswith(reason)
    assert main(["demo", save("data.npy", data)]) == 0
    printed = capsys.readouterr().out
    assert f"no picture: {levels.obstacle(data.dtype, data.shape)}\n" in printed and "equal, whole" in printed
    assert not (tmp_path / "zcore-demo" / demo.PICTURE).exists()


def test_only_what_is_shown_is_read():
    class Wide:
        """An array that says how much of it is read."""

        shape, chunks, ndim, nchunks, dtype = (4000, 100_000), (4000, 1000), 2, 100, np.dtype("f4")

        def __getitem__(self, selection):
            found = np.broadcast_to(np.float32(1), self.shape)[selection]
            assert max(found.shape) <= picture.MAX_DOTS
            return found

    assert picture.draw(Wide(), DemoData("wide.npy", None)).startswith(b"\x89PNG")
