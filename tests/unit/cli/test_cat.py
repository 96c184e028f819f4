"""`zcore cat`: selections as text, and elements as text, JSON, .npy and bytes, in pieces of any size."""
import io
import json
import os

import numpy as np
import pytest

import zcore
from tests.each import each
from zcore.cli import selection as selections
from zcore.cli.selection import parse_selection, pieces_of, selected
from zcore.cli.show.elements import shortened, write_bytes, write_json, write_text


@each(("text", "expected"), [
    ("...", ...),
    ("-1", -1),
    ("::-2", slice(None, None, -2)),
    ("None, 3", (None, 3)),
    ("[True, False]", [True, False]),
    ("[[0, 1], [2, 3]], 'field'", ([[0, 1], [2, 3]], "field")),
    (" 1:2 , ...", (slice(1, 2), ...)),
    ("()", ()),
])
def test_selections(text, expected):
    assert parse_selection(text) == expected


@pytest.mark.parametrize("text", [
    "", "0][1", "0]; import os; x[0", "a", "f()", "1 + 1", "0.5", "{}", "[1:2]", "1j", "lambda: 0", "x[0]", "(yield)",
    "'a' 'b'.c", "__import__('os')", "1:'a'", "1:True", "~1", "-'a'", "*a", "(" * 5000, "[" * 500 + "]" * 500,
    "0," * 99999, "a:=1", "\0", "0 if 1 else 2", "f'{x}'", "b'a'",
])
def test_what_is_no_selection(run, text):
    with pytest.raises(ValueError, match="between NumPy's brackets"):
        parse_selection(text)


SELECTIONS = ["...", "0", "-1", "2:5", "::-1", "::-3, 1", "1, ::2", "3:3", "..., 0", "0, ..., ::-2", "5:1:-2, 2:4, -1",
              "[4, 0, 0]", "None, 0", "1, 2, 3", "()", "..., [0, 2]"]


@each("nbytes", [4, 64, 200, 10**6])
@each("text", SELECTIONS)
def test_pieces_make_up_the_selection(text, nbytes):
    data = np.arange(7 * 5 * 4, dtype="<i4").reshape(7, 5, 4)
    array = zcore.create_array(zcore.MemoryStore(), data=data, chunks=(2, 3, 4))
    selection = parse_selection(text)
    expected = np.asarray(data[selection])
    view = selected(array, selection)
    pieces = list(pieces_of(view, nbytes))
    assert view.shape == expected.shape
    np.testing.assert_array_equal(np.concatenate([piece.reshape(-1) for piece in pieces] or [expected.reshape(-1)]),
                                  expected.reshape(-1))
    if not {"[", "N"} & set(text):
        assert max((piece.nbytes for piece in pieces), default=0) <= max(4, nbytes)


def test_a_row_of_chunks_is_read_once(monkeypatch):
    array = zcore.create_array(zcore.MemoryStore(), data=np.arange(60, dtype="i8").reshape(20, 3), chunks=(6, 3))
    asked = []
    monkeypatch.setattr(type(array), "__getitem__", lambda self, at: asked.append(at) or np.zeros(1))
    list(pieces_of(selected(array, ...), 8 * 3 * 13))
    assert [at[0] for at in asked] == [slice(0, 12, 1), slice(12, 20, 1)]


@pytest.mark.parametrize("selection", ["9", "0, 0, 0, 0", "::0", "'field'"])
def test_selections_that_do_not_fit_are_errors_of_the_array(run, selection):
    zcore.save_array("a.zarr", np.zeros((3, 3)))
    code, out, err = run("cat", "a.zarr", selection)
    assert (code, out) == (1, "") and len(err.splitlines()) == 1


def written(write, data, n_pieces, **keywords):
    """Return the bytes that a function writes of data in several pieces."""
    file = io.BytesIO()
    write(file, data.shape, np.array_split(data.reshape(-1), n_pieces), **keywords)
    return file.getvalue()


SHAPES = [(), (1,), (4,), (2, 3), (2, 2, 2), (1, 1, 1, 1), (2, 1, 3, 2), (3, 1)]


@each("n_pieces", [1, 3, 7])
@each("shape", SHAPES)
def test_text_and_json_whatever_the_pieces(shape, n_pieces):
    data = np.arange(int(np.prod(shape)), dtype="<i4").reshape(shape)
    text = written(write_text, data, n_pieces).decode()
    rows = data.reshape(-1, shape[-1] if len(shape) > 1 else 1)
    assert [[int(word) for word in line.split()] for line in text.splitlines() if line] == rows.tolist()
    n_planes = int(np.prod(shape[:-2])) if len(shape) > 2 else 1
    assert text.count("\n\n") == n_planes - 1 and text.endswith("\n")
    assert json.loads(written(write_json, data, n_pieces)) == data.tolist()


@pytest.mark.parametrize("shape", [(0,), (0, 2), (2, 0), (2, 0, 3)])
def test_nothing(shape):
    data = np.zeros(shape)
    assert written(write_text, data, 1) == b""
    assert json.loads(written(write_json, data, 1)) == data.tolist()
    assert np.load(io.BytesIO(written(write_bytes, data, 1, dtype=data.dtype, with_header=True))).shape == shape


@each(("data", "words"), [
    (np.array([0.1, np.nan, -np.inf], "<f4"), ["0.1", "nan", "-inf"]),
    (np.array([2**63], "u8"), ["9223372036854775808"]),
    (np.array([True, False]), ["True", "False"]),
    (np.array([1 + 2j]), ["(1+2j)"]),
    (np.array(["2016-01-01", "NaT"], "M8[D]"), ["2016-01-01", "NaT"]),
    (np.array(["a\x1b[2J", "ä"]), ["a\\x1b[2J", "ä"]),
    (np.array([b"a\n"]), ["b'a\\n'"]),
    (np.array([(1, 0.5)], [("a", "i4"), ("b", "f8")]), ["(1,", "0.5)"]),
], ids=["floats", "integers", "booleans", "complex", "dates", "text", "bytes", "structured"])
def test_words(data, words):
    assert written(write_text, data, 1).decode().split() == words
    assert len(json.loads(written(write_json, data, 1))) == len(data)


def test_the_command(run, weather):
    assert run("cat", "weather.zarr/height", "19:21, :3") == (0, "-1 -1 -1\n0 1 2\n", "")
    assert run("cat", "weather.zarr/height", "--", "-1,-1")[0:2] == (0, "199\n")
    assert run("cat", "weather.zarr/2016/t2m", "0, 0, 1:3") == (0, "0.1\n0.2\n", "")
    assert json.loads(run("cat", "--json", "weather.zarr/height", "20:22, 1")[1]) == [1, 21]


def test_files(run, weather, monkeypatch):
    monkeypatch.setattr(selections, "SLAB_NBYTES", 64)
    data = zcore.open("weather.zarr/height")[...]
    assert run("cat", "weather.zarr/height", "--out", "h.npy") == (0, "", "")
    assert run("cat", "weather.zarr/height", "--out", "h.bin", "--format", "raw") == (0, "", "")
    assert run("cat", "weather.zarr/height", "--out", "h.txt") == (0, "", "")
    assert np.load("h.npy").dtype == data.dtype
    for found in (np.load("h.npy"), np.fromfile("h.bin", "<i2").reshape(30, 20), np.loadtxt("h.txt", dtype="i2")):
        np.testing.assert_array_equal(found, data)


def test_a_file_is_there_when_it_is_complete(run, weather, monkeypatch):
    with open("weather.zarr/height/c/2/1", "r+b") as file:
        file.truncate(20)
    with open("h.npy", "w") as file:
        file.write("old")
    monkeypatch.setattr(selections, "SLAB_NBYTES", 400)
    code, _, err = run("cat", "weather.zarr/height", "--out", "h.npy")
    with open("h.npy") as file:
        assert code == 1 and "c/2/1" in err and file.read() == "old"
    assert sorted(os.listdir()) == ["h.npy", "weather.zarr"]
    assert run("cat", "weather.zarr/height", "0", "--out", "/dev/null")[0] == 0


def test_bytes_to_a_program(shell, weather):
    done = shell("zcore cat weather.zarr/height --format npy | wc -c")
    assert (int(done.stdout), done.stderr) == (128 + 1200, "")


@pytest.mark.parametrize("arguments", [["--json", "--format", "npy"], ["--format", "csv"]])
def test_formats_that_do_not_go(run, weather, arguments):
    try:
        assert run("cat", "weather.zarr/height", *arguments)[0] == 1
    except SystemExit as ended:
        assert ended.code == 2


def test_text_of_any_length_has_no_npy_file(run):
    zcore.create_array("a.zarr", data=np.array(["a", "bc"], np.dtypes.StringDType()))
    assert run("cat", "a.zarr") == (0, "a\nbc\n", "")
    code, _, err = run("cat", "a.zarr", "--out", "a.npy")
    assert code == 1 and "no fixed length" in err


@pytest.mark.parametrize("data", [
    np.arange(5000.0), np.arange(60000, dtype="i4").reshape(30, 40, 50), np.arange(4000).reshape(4, 1000),
    np.arange(8 * 7 * 100, dtype="c8").reshape(8, 7, 100), np.zeros(2000, "M8[s]"),
])
def test_a_large_array_is_shortened_as_numpy_shows_it(data):
    array = zcore.create_array(zcore.MemoryStore(), data=data)
    assert shortened(selected(array, ...)) == np.array2string(data, threshold=1000)


def test_texts_of_a_shortened_array_cannot_control_a_terminal():
    array = zcore.array(np.array(["\x1b[31m", "b"] * 600, dtype="T"))
    assert shortened(selected(array, ...)) == r"[\x1b[31m b \x1b[31m ... b \x1b[31m b]"
