"""The command `zcore demo`: what it prints, leaves behind, refuses, and finds."""
import os
import re
import sys

import numpy as np
import pytest

import zcore
from zcore.__main__ import main
from zcore.cli.show.printed import table
from zcore.cli.verbs import demo

ROWS = (*[(*one[:2], "") for one in demo.FORMATS], *demo.COPIES)


def rows_of(printed):
    """Return the lines of the table, each a list of cells."""
    lines = printed.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("format "))
    stop = lines.index("", start)
    return [re.split(r"\s{2,}", line) for line in lines[start + 1:stop]]


def test_a_row_for_every_format(tmp_path, capsys):
    assert main(["demo", "--no-picture"]) == 0
    printed, data = capsys.readouterr().out, demo.load()
    assert "344 x 403 int16, 277,264 bytes" in printed
    rows = rows_of(printed)
    assert [row[0] for row in rows] == [name for name, _, _ in ROWS]
    for row, (_, ending, inside) in zip(rows, ROWS, strict=True):
        path = tmp_path / "zcore-demo" / f"{demo.ELEVATION}{ending}"
        files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
        n_bytes = sum(file.stat().st_size for file in files)
        assert row[1:4] == [str(len(files)), f"{n_bytes:,}", f"{data.nbytes / n_bytes:.2f}"] and row[-1] == "equal"
        np.testing.assert_array_equal(zcore.open(path, path=inside)[...], data)
    assert max(map(len, printed.splitlines())) <= 120
    assert not (tmp_path / "zcore-demo" / demo.PICTURE).exists()
    arrays = {name: zcore.open(f"zcore-demo/{demo.ELEVATION}{ending}") for name, ending, _ in demo.FORMATS}
    documents = {"Zarr v3": "zarr.json", "Zarr v3 in shards": "zarr.json", "Zarr v2": ".zarray",
                 "__zmeta__": "__zmeta__"}
    for name, ending, _ in demo.FORMATS:
        found = os.listdir(f"zcore-demo/{demo.ELEVATION}{ending}")
        assert {*documents.values()}.intersection(found) == {documents[name]}
    assert [name for name, array in arrays.items() if array.shards] == ["Zarr v3 in shards"]


def test_the_command_draws_the_elevation_model(tmp_path, shell):
    done = shell("zcore demo --out here")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"picture : {os.path.join('here', demo.PICTURE)}" in done.stdout
    assert (tmp_path / "here" / demo.PICTURE).stat().st_size > 20_000


def test_a_difference_in_one_format_ends_in_1_and_names_it(monkeypatch, capsys):
    real_open = zcore.open

    def wrong(place, **keywords):
        array = real_open(place, **keywords)
        if isinstance(place, str) and place.endswith(".v2.zarr"):
            real_open(place, mode="r+")[343, 402] = -99
        return array

    monkeypatch.setattr(zcore, "open", wrong)
    assert main(["demo", "--no-picture"]) == 1
    printed = capsys.readouterr()
    assert [row[0] for row in rows_of(printed.out) if "DIFFERENT in 3 parts" in row[-1]] == ["Zarr v2"]
    assert printed.err == f"zcore demo: zcore-demo/{demo.ELEVATION}.v2.zarr differs from the data\n"


def test_a_long_reason_goes_on_below_itself():
    first, *others = table(("format", "files", "bytes"), [("a", "1", "2"), ("bcd", "word " * 60)]).splitlines()[2:]
    assert first.startswith("bcd     word word") and len(others) > 1
    assert all(len(line) <= 120 and line.startswith("        word") for line in others)
    assert " ".join([first, *others]).split() == ["bcd", *["word"] * 60]


@pytest.mark.parametrize(("out", "words"), [("a.npy", "a.npy is there already; --out names"), ("thesis", "already"),
                                            ("x" * 300, "file name too long")])
def test_only_a_new_folder_is_written_to(tmp_path, save, refused, out, words):
    save("a.npy", np.arange(6))
    (tmp_path / "thesis").mkdir()
    assert words in refused("--no-picture", "--out", out)
    assert sorted(os.listdir()) == ["a.npy", "thesis"] and os.listdir("thesis") == []


def test_without_matplotlib_it_is_named(monkeypatch, refused):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "matplotlib" in refused()
