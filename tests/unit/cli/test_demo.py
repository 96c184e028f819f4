"""The command `zcore demo`: what it prints, leaves behind, refuses, and finds."""
import json
import os
import re
import sys

import numpy as np
import pytest

import zcore
from zcore.__main__ import main
from zcore.cli.show.printed import table
from zcore.cli.verbs import demo

ROWS = (*demo.FORMATS, *demo.COPIES)


def rows_of(printed):
    """Return the lines of the table, each a list of cells."""
    lines = printed.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("format "))
    stop = lines.index("", start)
    return [re.split(r"\s{2,}", line) for line in lines[start + 1:stop]]


def test_a_row_for_every_format(tmp_path, capsys, save):
    data = np.arange(3000, dtype="<f4").reshape(50, 60)
    assert main(["demo", save("wave.npy", data), "--no-picture", "--chunks", "20,25"]) == 0
    printed = capsys.readouterr().out
    assert "50 x 60 float32, 12,000 bytes" in printed
    rows = rows_of(printed)
    assert [row[0] for row in rows] == [name for name, _, _ in ROWS]
    for row, (_, ending, inside) in zip(rows, [*((*one[:2], "") for one in demo.FORMATS), *demo.COPIES], strict=True):
        path = tmp_path / "zcore-demo" / f"wave{ending}"
        files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
        n_bytes = sum(file.stat().st_size for file in files)
        assert row[1:4] == [str(len(files)), f"{n_bytes:,}", f"{12000 / n_bytes:.2f}"] and row[-1] == "equal"
        np.testing.assert_array_equal(zcore.open(path, path=inside)[...], data)
    assert {zcore.open(f"zcore-demo/wave{ending}").chunks for _, ending, _ in demo.FORMATS} == {(20, 25)}
    assert max(map(len, printed.splitlines())) <= 120
    assert not (tmp_path / "zcore-demo" / demo.PICTURE).exists()


def test_a_program_gets_json(capsys, save):
    assert main(["demo", save("wave.npy", np.arange(600).reshape(20, 30)), "--no-picture", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["shape"] == [20, 30] and found["picture"] is None and found["refused"] == {}
    assert [row["format"] for row in found["formats"]] == [name for name, _, _ in ROWS]
    assert not any(row["differences"] for row in found["formats"])


def test_the_formats_are_what_they_are_called(save):
    assert main(["demo", save("a.npy", np.arange(100)), "--no-picture", "--chunks", "10"]) == 0
    arrays = {name: zcore.open(f"zcore-demo/a{ending}") for name, ending, _ in demo.FORMATS}
    documents = {"Zarr v3": "zarr.json", "Zarr v3 in shards": "zarr.json", "Zarr v2": ".zarray",
                 "__zmeta__": "__zmeta__"}
    for name, ending, _ in demo.FORMATS:
        assert {*documents.values()}.intersection(os.listdir(f"zcore-demo/a{ending}")) == {documents[name]}
    assert [name for name, array in arrays.items() if array.shards] == ["Zarr v3 in shards"]


def test_the_command_draws_the_elevation_model(tmp_path, shell):
    done = shell("zcore demo --out here")
    assert (done.returncode, done.stderr) == (0, "")
    assert "344 x 403 int16, 277,264 bytes" in done.stdout
    assert f"picture : {os.path.join('here', demo.PICTURE)}" in done.stdout
    assert (tmp_path / "here" / demo.PICTURE).stat().st_size > 20_000


@pytest.mark.parametrize(("path", "words"), [
    ("two.npz", "5 int64"), ("two.npz/second", "7 float64"), ("weather.zarr/2016", "6 x 4 x 5 float32"),
    ("weather.zarr/height", "30 x 20 int16"),
])
def test_what_a_path_names(weather, capsys, path, words):
    np.savez("two.npz", first=np.arange(5), second=np.arange(7.0))
    assert main(["demo", path, "--no-picture"]) == 0
    assert f"\n{words}, " in capsys.readouterr().out


@pytest.mark.parametrize("data", [
    np.arange(24.0).reshape(2, 3, 4) * 1j, np.zeros((1, 6), bool), np.arange(12, dtype=">i2").reshape(4, 3),
    np.asfortranarray(np.arange(20, dtype="u1").reshape(4, 5)), np.array([[-2**63, 2**63 - 1]] * 30),
    np.array([[-0.0, np.inf], [np.nan, -1e308]]),
])
def test_data_of_any_kind(save, data):
    assert main(["demo", save("a.npy", data)]) == 0


@pytest.mark.parametrize(("data", "reason"), [
    (np.array([b"ab", b"c"]), "elements of type |S2 are not numbers"), (np.zeros((0, 4)), "the array has no elements"),
    (np.array(3.0), "the array has no dimensions"),
], ids=["text", "empty", "0d"])
def test_what_cannot_be_drawn_is_checked_all_the_same(save, tmp_path, capsys, data, reason):
    assert main(["demo", save("data.npy", data)]) == 0
    printed = capsys.readouterr().out
    assert f"no picture: {reason}\n" in printed and rows_of(printed)[0][-1] == "equal"
    assert not (tmp_path / "zcore-demo" / demo.PICTURE).exists()


# What it finds


def test_a_difference_in_one_format_ends_in_1_and_names_it(monkeypatch, capsys, save):
    real_open = zcore.open

    def wrong(path, **keywords):
        array = real_open(path, **keywords)
        if isinstance(path, str) and path.endswith(".v2.zarr"):
            real_open(path, mode="r+")[6] = 99
        return array

    monkeypatch.setattr(zcore, "open", wrong)
    assert main(["demo", save("data.npy", np.arange(10)), "--no-picture"]) == 1
    printed = capsys.readouterr()
    assert [row[0] for row in rows_of(printed.out) if "DIFFERENT in 3 parts" in row[-1]] == ["Zarr v2"]
    assert printed.err.splitlines() == ["zcore demo: Zarr v2: zcore-demo/data.v2.zarr differs from the data at "
                                        f"[{part}]" for part in ("...", "5:", "::-3")]


def test_bits_are_compared_not_values():
    assert demo.is_equal(np.array([np.nan]), np.array([np.nan]))
    assert not demo.is_equal(np.array([0.0]), np.array([-0.0]))
    assert not demo.is_equal(np.array([1], ">i2"), np.array([1], "<i2"))
    assert not demo.is_equal(np.zeros((2, 1)), np.zeros((1, 2)))


# What it refuses: one sentence, exit code 1


@pytest.mark.parametrize("chunks", ["-2", "0", "5,0", "-2,2", "many", "1.5", "1e3", "0 B", "5 elements", "nan B",
                                    "9" * 5000])
def test_chunks_that_are_none(save, refused, chunks):
    sentence = ("--chunks: expected lengths of at least 1 such as 100,100, a size such as '4 MB', or auto, "
                f"found {chunks!r}")
    assert refused(save("a.npy", np.arange(6).reshape(2, 3)), f"--chunks={chunks}") == sentence
    assert os.listdir() == ["a.npy"]


@pytest.mark.parametrize(("data", "chunks", "words"), [
    (np.arange(6), "1,1", "chunks: expected 1 lengths, one for each dimension of the shape (6,), found 2"),
    (np.zeros(3, "g"), "auto", "does not know the data type"),
    (np.zeros(3, "V0"), "auto", "items of no bytes"),
], ids=["too many lengths", "long double", "no bytes"])
def test_what_no_format_has_is_refused_before_there_is_a_folder(save, refused, data, chunks, words):
    if data.dtype.kind == "f" and data.dtype.itemsize == 8:
        pytest.skip("long double is double here")
    assert words in refused(save("a.npy", data), "--chunks", chunks)
    assert os.listdir() == ["a.npy"]


@pytest.mark.parametrize(("data", "refusing", "words"), [
    (np.array(3.0), [".zmeta"], "at least one dimension"),
    (np.ones(3, [("a", "<i2"), ("b", ">f8")]), [".zarr", ".shard.zarr"],
     "its elements would be [('a', '<i2'), ('b', '<f8')]"),
], ids=["0d", "fields of another byte order"])
def test_what_one_format_refuses_is_shown_beside_the_others(tmp_path, capsys, save, data, refusing, words):
    assert main(["demo", save("a.npy", data)]) == 0
    rows = {row[0]: row for row in rows_of(capsys.readouterr().out)}
    for name, ending, _ in demo.FORMATS:
        path = tmp_path / "zcore-demo" / f"a{ending}"
        if ending in refusing:
            assert rows[name][1].startswith("not written: ") and words in rows[name][1] and not path.exists()
        else:
            assert rows[name][-1] == "equal" and zcore.open(path)[...].tobytes() == data.tobytes()


def test_a_long_reason_goes_on_below_itself():
    first, *others = table(("format", "files", "bytes"), [("a", "1", "2"), ("bcd", "word " * 60)]).splitlines()[2:]
    assert first.startswith("bcd     word word") and len(others) > 1
    assert all(len(line) <= 120 and line.startswith("        word") for line in others)
    assert " ".join([first, *others]).split() == ["bcd", *["word"] * 60]


@pytest.mark.parametrize(("out", "words"), [("a.npy", "expected a directory, found a file"),
                                            ("x" * 300, "File name too long")])
def test_odd_folders(save, refused, out, words):
    assert words in refused(save("a.npy", np.arange(6)), "--no-picture", "--out", out)
    assert os.listdir() == ["a.npy"]


def test_other_peoples_files_are_left_alone(tmp_path, save, refused, capsys):
    save("a.npy", np.arange(6))
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter").write_text("one")
    assert "not empty" in refused("a.npy", "--no-picture", "--out", "thesis")
    assert os.listdir("thesis") == ["chapter"]
    assert main(["demo", "a.npy", "--no-picture", "--out", "mine"]) == 0
    capsys.readouterr()
    (tmp_path / "mine" / "b.zmeta").mkdir()
    save("b.npy", np.arange(3))
    assert "b.zmeta was not made by zcore demo" in refused("b.npy", "--no-picture", "--out", "mine")
    assert os.listdir("mine/b.zmeta") == []


def test_its_own_results_are_replaced_and_nothing_else(tmp_path, save):
    assert main(["demo", save("a.npy", np.arange(6))]) == 0
    (tmp_path / "zcore-demo" / "note").write_text("kept")
    assert main(["demo", save("a.npy", np.arange(9.0)), "--no-picture"]) == 0
    assert (tmp_path / "zcore-demo" / "note").read_text() == "kept"
    assert {zcore.open(f"zcore-demo/a{ending}").shape for _, ending, _ in demo.FORMATS} == {(9,)}
    # It would pass for a picture of this run.
    assert not (tmp_path / "zcore-demo" / demo.PICTURE).exists()


def test_without_matplotlib_the_rest_works(monkeypatch, save):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["demo", save("a.npy", np.arange(6)), "--no-picture"]) == 0
