"""The command `zcore demo`: what it prints, leaves behind, refuses, and finds."""
import json
import os
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest

import zcore
from zcore.__main__ import main
from zcore.cli import demo
from zcore.cli.output import LIST


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    """Run every test in a folder of its own."""
    monkeypatch.chdir(tmp_path)


def save(name, data):
    """Save data to a .npy file here and return its name."""
    np.save(name, data)
    return name


def rows_of(printed):
    """Return the lines of the table, each a list of words."""
    lines = printed.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("format "))
    stop = lines.index("", start)
    return [line.split() for line in lines[start + 1:stop]]


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


def test_a_row_for_every_format(tmp_path, capsys):
    data = np.arange(3000, dtype="<f4").reshape(50, 60)
    assert main(["demo", save("wave.npy", data), "--no-picture", "--chunks", "20,25"]) == 0
    printed = capsys.readouterr().out
    assert "50 x 60 float32, 12,000 bytes, in 9 chunks of 20 x 25" in printed
    rows = rows_of(printed)
    assert [row[0] for row in rows] == [name for name, _, _ in demo.FORMATS]
    for row, (_, ending, _) in zip(rows, demo.FORMATS, strict=True):
        path = tmp_path / "zcore-demo" / f"wave{ending}"
        n_bytes = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        n_files = sum(file.is_file() for file in path.rglob("*"))
        assert row[1:4] == [str(n_files), f"{n_bytes:,}", f"{12000 / n_bytes:.2f}"]
        assert row[-3:] == ["all,", "8", "windows"]
        assert f"zcore-demo/wave{ending}" in printed
        array = zcore.open(path)
        assert array.chunks == (20, 25)
        np.testing.assert_array_equal(array[...], data)
    assert not (tmp_path / "zcore-demo" / demo.PICTURE).exists()


def test_the_command_as_a_process_draws_the_elevation_model(tmp_path):
    done = subprocess.run([sys.executable, "-m", "zcore", "demo", "--out", "here"], capture_output=True, text=True,
                          env={**os.environ, "MPLBACKEND": "Agg"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "344 x 403 int16, 277,264 bytes, in 16 chunks of 86 x 101" in done.stdout
    assert f"picture : {os.path.join('here', demo.PICTURE)}" in done.stdout
    width, height = size_of_png(tmp_path / "here" / demo.PICTURE)
    assert 900 < width < 2000 and 700 < height < 1600
    assert (tmp_path / "here" / demo.PICTURE).stat().st_size > 200_000


@pytest.mark.parametrize("data", [
    np.linspace(-1, 1, 5000),
    np.arange(24.0).reshape(2, 3, 4) * 1j,
    np.full((7, 9), np.nan),
    np.zeros((1, 6), bool),
    np.arange(12, dtype=">i2").reshape(4, 3),
    np.asfortranarray(np.arange(20, dtype="u1").reshape(4, 5)),
    np.array([[-0.0, np.inf], [1e308, -1e308]]),
], ids=["1d", "3d complex", "nan", "bool", "big-endian", "fortran", "extreme"])
def test_numbers_of_any_kind_are_drawn(tmp_path, data):
    assert main(["demo", save("data.npy", data)]) == 0
    width, height = size_of_png(tmp_path / "zcore-demo" / demo.PICTURE)
    assert width > 700 and height > 500


@pytest.mark.parametrize(("data", "reason"), [
    (np.array([b"ab", b"c"]), "not numbers"),
    (np.array(["2020-01-01", "NaT"], "M8[D]"), "not numbers"),
    (np.zeros(3, [("a", "<i2"), ("b", ">f8", (2,))]), "not numbers"),
    (np.zeros(3, np.dtype("u1,f8", align=True)), "not numbers"),
    (np.zeros((0, 4)), "no elements"),
], ids=["text", "dates", "structured", "padded", "empty"])
def test_what_cannot_be_drawn_is_checked_all_the_same(tmp_path, capsys, data, reason):
    assert main(["demo", save("data.npy", data)]) == 0
    printed = capsys.readouterr().out
    assert "no picture: " in printed and reason in printed
    assert rows_of(printed)[0][-1] == "windows" and not (tmp_path / "zcore-demo" / demo.PICTURE).exists()


def test_arrays_of_an_archive(capsys):
    np.savez("two.npz", first=np.arange(5), second=np.arange(7.0))
    assert main(["demo", "two.npz", "--no-picture"]) == 0
    assert "two.npz, first\n5 int64" in capsys.readouterr().out
    assert main(["demo", "two.npz", "--array", "second", "--no-picture"]) == 0
    assert "two.npz, second\n7 float64" in capsys.readouterr().out
    assert main(["demo", "two.npz", "--array", "third", "--no-picture"]) == 1
    assert "two.npz has no array 'third'; it has first, second" in capsys.readouterr().err


def test_an_image(tmp_path, capsys):
    from matplotlib import image
    image.imsave("photo.png", np.random.default_rng(0).integers(0, 255, (40, 30, 3), dtype="u1"))
    assert main(["demo", "photo.png"]) == 0
    assert "40 x 30 x 4 float32" in capsys.readouterr().out
    size_of_png(tmp_path / "zcore-demo" / demo.PICTURE)


def test_large_data_go_in_slabs_of_whole_chunk_rows_with_progress(monkeypatch, capsys):
    data = np.arange(1000 * 10, dtype="<i4").reshape(1000, 10)
    monkeypatch.setattr(demo, "SLAB_NBYTES", 8000)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert main(["demo", save("data.npy", data), "--no-picture", "--chunks", "70,10"]) == 0
    shown = capsys.readouterr().err
    # Slabs of 140 rows: two rows of chunks have 5600 bytes, three more than a slab may have.
    assert "\r__zmeta__: writing 14 %" in shown and "\r__zmeta__: reading 98 %" in shown
    assert shown.endswith("\r")
    np.testing.assert_array_equal(zcore.open("zcore-demo/data.zmeta")[...], data)


def test_no_progress_into_a_file(monkeypatch, capsys):
    monkeypatch.setattr(demo, "SLAB_NBYTES", 8)
    assert main(["demo", save("data.npy", np.arange(100)), "--no-picture", "--chunks", "10"]) == 0
    assert capsys.readouterr().err == ""


def test_every_window_of_small_arrays_lies_in_the_array():
    for length in range(1, 9):
        for chunk in range(1, 10):
            data = np.arange(length)
            for window in demo.windows_of((length,), (chunk,)):
                assert data[window].size >= 1, (length, chunk, window)


# What it finds


@pytest.mark.parametrize("where", ["whole", "window"])
def test_a_difference_is_found_named_and_ends_in_1(monkeypatch, capsys, where):
    real_open = zcore.open

    class Wrong:
        """An array that returns one element changed."""

        def __init__(self, array):
            self.array, self.shape, self.chunks = array, array.shape, array.chunks

        def __getitem__(self, selection):
            found = np.array(self.array[selection])
            if isinstance(selection, slice) is (where == "whole") and found.size > 1:
                found.reshape(-1)[-1] += 1
            return found

    monkeypatch.setattr(zcore, "open", lambda path: Wrong(real_open(path)))
    assert main(["demo", save("data.npy", np.arange(100)), "--no-picture"]) == 1
    printed = capsys.readouterr()
    assert "NOT" in rows_of(printed.out)[0]
    assert printed.err.startswith("zcore demo: zcore-demo/data.zmeta differs from data.npy at [")


def test_bits_are_compared_not_values():
    assert demo._is_equal(np.array([np.nan]), np.array([np.nan]))
    assert not demo._is_equal(np.array([0.0]), np.array([-0.0]))
    assert not demo._is_equal(np.array([1], ">i2"), np.array([1], "<i2"))
    assert not demo._is_equal(np.zeros((2, 1)), np.zeros((1, 2)))


# What it refuses: one sentence, exit code 1


def refused(capsys, *arguments):
    """Run the demo, which has to fail; return its one line of complaint."""
    assert main(["demo", *arguments]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("zcore demo: ")
    return lines[0].removeprefix("zcore demo: ")


def write(name, content):
    with open(name, "wb") as file:
        file.write(content)
    return name


def bad_inputs():
    """Return a dict of file names and contents that are not arrays."""
    return {
        "empty.npy": b"",
        "cut.npy": b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order'",
        "short.npy": b"\x93NUMPY\x01\x00\x46\x00"
                     + b"{'descr': '<f8', 'fortran_order': False, 'shape': (9999,), }".ljust(69) + b"\n1234",
        "zip.npy": b"PK\x05\x06" + bytes(18),
        "empty.npz": b"PK\x05\x06" + bytes(18),
        "damaged.npz": b"PK\x03\x04" + b"nonsense" * 10,
        "text.csv": b"1,2,3\n",
        "cut.png": b"\x89PNG\r\n\x1a\n\x00\x00",
    }


@pytest.mark.parametrize("name", bad_inputs())
def test_files_that_hold_no_array(capsys, name):
    assert name in refused(capsys, write(name, bad_inputs()[name]))
    assert not os.path.exists("zcore-demo")


def test_python_objects_are_not_unpickled(capsys):
    class Trap:
        def __reduce__(self):
            return os.mkdir, ("sprung",)

    np.save("object.npy", np.array([Trap()], object), allow_pickle=True)
    np.savez("object.npz", a=np.array([Trap()], object))
    assert "object.npy" in refused(capsys, "object.npy")
    assert "object.npz" in refused(capsys, "object.npz")
    assert not os.path.exists("sprung")


def test_missing_files_and_misplaced_options(capsys):
    assert refused(capsys, "none.npy") == "none.npy is not a file"
    assert refused(capsys, ".") == ". is not a file"
    assert "is not" in refused(capsys, save("a.npy", np.arange(3)), "--array", "b")
    assert "--array" in refused(capsys, "--array", "b")


def test_chunks_and_types_that_no_format_has(capsys):
    save("a.npy", np.arange(6).reshape(2, 3))
    assert "lengths" in refused(capsys, "a.npy", "--no-picture", "--chunks", "1,1,1")
    assert "'many'" in refused(capsys, "a.npy", "--no-picture", "--chunks", "many")
    assert "dimension" in refused(capsys, save("scalar.npy", np.array(3.0)), "--no-picture")


def test_other_peoples_files_are_left_alone(tmp_path, capsys):
    save("a.npy", np.arange(6))
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter").write_text("one")
    assert "not empty" in refused(capsys, "a.npy", "--no-picture", "--out", "thesis")
    assert os.listdir("thesis") == ["chapter"]
    assert main(["demo", "a.npy", "--no-picture", "--out", "mine"]) == 0
    (tmp_path / "mine" / "b.zmeta").mkdir()
    save("b.npy", np.arange(3))
    assert "b.zmeta exists and was not made by zcore demo" in refused(capsys, "b.npy", "--no-picture", "--out", "mine")
    assert os.listdir("mine/b.zmeta") == []
    assert "File exists" in refused(capsys, "b.npy", "--no-picture", "--out", "a.npy")
    (tmp_path / "mine" / LIST).write_text("[]")
    assert LIST in refused(capsys, "a.npy", "--no-picture", "--out", "mine")


def test_its_own_results_are_replaced_and_nothing_else(tmp_path):
    assert main(["demo", save("a.npy", np.arange(6)), "--no-picture"]) == 0
    (tmp_path / "zcore-demo" / "note").write_text("kept")
    (tmp_path / "zcore-demo" / "a.zmeta" / "note").write_text("kept")
    assert main(["demo", save("a.npy", np.arange(9.0)), "--no-picture"]) == 0
    assert main(["demo", save("b.npy", np.arange(2)), "--no-picture"]) == 0
    assert zcore.open("zcore-demo/a.zmeta").shape == (9,)
    assert (tmp_path / "zcore-demo" / "note").read_text() == "kept"
    assert (tmp_path / "zcore-demo" / "a.zmeta" / "note").read_text() == "kept"
    assert json.loads((tmp_path / "zcore-demo" / LIST).read_text())["made"] == ["a.zmeta", "b.zmeta"]


def test_a_picture_that_is_not_its_own_is_kept(tmp_path, capsys):
    assert main(["demo", save("a.npy", np.arange(6)), "--no-picture"]) == 0
    (tmp_path / "zcore-demo" / demo.PICTURE).write_bytes(b"mine")
    assert main(["demo", save("a.npy", np.arange(6))]) == 1
    assert (tmp_path / "zcore-demo" / demo.PICTURE).read_bytes() == b"mine"


@pytest.mark.parametrize(("arguments", "what"), [
    ([], "the elevation model"), (["a.png"], "an image"), (["a.npy"], "the picture"),
])
def test_without_matplotlib_the_extra_is_named(monkeypatch, capsys, arguments, what):
    save("a.npy", np.arange(6))
    write("a.png", b"")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "zcore.cli.picture", raising=False)
    complaint = refused(capsys, *arguments)
    assert complaint.startswith(what) and "zcore[demo]" in complaint
    assert not os.path.exists("zcore-demo")


def test_without_matplotlib_the_rest_works(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["demo", save("a.npy", np.arange(6)), "--no-picture"]) == 0


def test_debug_shows_the_traceback():
    with pytest.raises(FileNotFoundError, match="is not a file"):
        main(["demo", "none.npy", "--debug"])


def test_interruption(monkeypatch, capsys):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "load", interrupted)
    assert main(["demo"]) == 130
    assert capsys.readouterr().err == "zcore demo: interrupted\n"


def test_a_reader_that_leaves_is_no_error():
    save("a.npy", np.arange(6))
    code = f"exec {sys.executable} -m zcore demo a.npy --no-picture 2>complaint"
    subprocess.run(["sh", "-c", f"({code}; echo $? >code) | true"], check=True)
    with open("complaint") as file:
        assert file.read() == ""


@pytest.mark.parametrize(("arguments", "code"), [([], 2), (["nonsense"], 2), (["--help"], 0), (["demo", "--help"], 0)])
def test_usage(capsys, arguments, code):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == code
    assert "usage: zcore" in "".join(capsys.readouterr())


def test_version(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"zcore {zcore.__version__}\n"
