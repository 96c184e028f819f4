"""The demo's picture: what is drawn of arrays of any kind and shape, what is written on it, and that nothing warns."""
import struct
import zlib

import numpy as np
import pytest
from matplotlib.figure import Figure

from zcore.__main__ import main
from zcore.cli.show import levels
from zcore.cli.verbs.demo import demo


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


def test_integers_beyond_floating_point_are_told_apart(drawn):
    values, quantity = levels.numbers_of(np.array([-2**63, -2**63 + 3]), "height")
    assert (values.tolist(), quantity) == ([0, 3], f"height above {-2**63}")
    figure = drawn(np.array([[2**63, 2**63 + 8]] * 30, "u8"))
    assert figure.axes[1].get_ylabel() == f"value above {2**63}"


def test_the_plane_of_more_dimensions_is_the_middle_one(drawn):
    axes = drawn(np.arange(5 * 7 * 20 * 30).reshape(5, 7, 20, 30), "--chunks", "2,2,10,30").axes[0]
    assert axes.get_title() == "data.npy [2, 3, :, :]" and len(axes.lines) == 1


@pytest.mark.parametrize("name", ["$a$.npy", r"$\frac$.npy", "日本.npy", "long" * 50 + ".npy", "a\nb.npy"])
def test_names_of_any_letters_are_shown_as_they_are(save, drawn, name):
    title = drawn(save(name, np.arange(400.0).reshape(20, 20))).axes[0].get_title()
    assert title == (name.replace("\n", "?") + " [:, :]" if len(name) < 80 else name[:79] + "…")


@pytest.mark.parametrize("shape", [(40, 30), (40, 30, 3)])
def test_of_an_image_the_first_colour_is_drawn(drawn, shape):
    from PIL import Image
    dots = np.random.default_rng(0).integers(0, 256, shape, dtype="u1")
    Image.fromarray(dots).save("photo.png")
    np.testing.assert_array_equal(drawn("photo.png").axes[0].images[0].get_array(), dots.reshape(40, 30, -1)[..., 0])


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
