"""The command `zcore demo`: what it prints, leaves behind, refuses, and finds."""
import json
import os
import re
import sys
import types

import numpy as np
import pytest

import zcore
from zcore.__main__ import main
from zcore.cli.show.printed import table
from zcore.cli.verbs.demo import demo, round_trip
from zcore.cli.verbs.demo.output import LIST

ROWS = (*demo.FORMATS, *demo.COPIES)


def rows_of(printed):
    """Return the lines of the table, each a list of cells."""
    lines = printed.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("format "))
    stop = lines.index("", start)
    return [re.split(r"\s{2,}", line) for line in lines[start + 1:stop]]


def results_of(stem):
    """Return the names of what the demo writes of one file, in the order of the table."""
    return [stem + ending for _, ending, _ in ROWS]


def test_a_row_for_every_format(tmp_path, capsys, save):
    data = np.arange(3000, dtype="<f4").reshape(50, 60)
    assert main(["demo", save("wave.npy", data), "--no-picture", "--chunks", "20,25"]) == 0
    printed = capsys.readouterr().out
    assert "50 x 60 float32, 12,000 bytes, in 9 chunks of 20 x 25" in printed
    rows = rows_of(printed)
    assert [row[0] for row in rows] == [name for name, _, _ in ROWS]
    for row, (_, ending, inside) in zip(rows[len(demo.FORMATS):], demo.COPIES, strict=True):
        assert row[-1] == "equal, whole and 8 parts"
        array = zcore.open(tmp_path / "zcore-demo" / f"wave{ending}", path=inside)
        np.testing.assert_array_equal(array[...], data)
    for row, (_, ending, _) in zip(rows, demo.FORMATS, strict=False):
        path = tmp_path / "zcore-demo" / f"wave{ending}"
        n_bytes = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        n_files = sum(file.is_file() for file in path.rglob("*"))
        assert row[1:4] == [str(n_files), f"{n_bytes:,}", f"{12000 / n_bytes:.2f}"]
        assert row[-1] == "equal, whole and 8 parts"
        array = zcore.open(path)
        assert array.chunks == (20, 25)
        np.testing.assert_array_equal(array[...], data)
    first, *others = (os.path.join("zcore-demo", name) for name in results_of("wave"))
    assert "\n".join([f"arrays  : {first}", *(f"{'':10}{other}" for other in others)]) in printed
    assert max(map(len, printed.splitlines())) <= 120
    assert not (tmp_path / "zcore-demo" / demo.PICTURE).exists()


def test_a_program_gets_json(capsys, save):
    assert main(["demo", save("wave.npy", np.arange(600).reshape(20, 30)), "--no-picture", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["shape"] == [20, 30] and found["picture"] is None and found["refused"] == {}
    assert [row["format"] for row in found["formats"]] == [name for name, _, _ in ROWS]
    sizes = {row["format"]: demo.files_and_bytes(row["path"])[1] for row in found["formats"]}
    # With what it points to.
    sizes["reference set"] += sizes["Zarr v3"]
    for row in found["formats"]:
        assert row["differences"] == [] and row["bytes"] == sizes[row["format"]]


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
    assert "344 x 403 int16, 277,264 bytes, in 16 chunks of 86 x 101" in done.stdout
    assert f"picture : {os.path.join('here', demo.PICTURE)}" in done.stdout
    assert (tmp_path / "here" / demo.PICTURE).stat().st_size > 20_000


def test_an_image(capsys):
    from PIL import Image
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 30, 3), dtype="u1")).save("photo.jpg")
    assert main(["demo", "photo.jpg"]) == 0
    assert "40 x 30 x 3 uint8, 3,600 bytes" in capsys.readouterr().out


def test_arrays_of_an_archive(capsys):
    np.savez("two.npz", first=np.arange(5), second=np.arange(7.0))
    note = "(one of 2 arrays: first, second; --array takes another)"
    assert main(["demo", "two.npz", "--no-picture"]) == 0
    assert f"two.npz, first {note}\n5 int64" in capsys.readouterr().out
    assert main(["demo", "two.npz", "--array", "second", "--no-picture"]) == 0
    assert f"two.npz, second {note}\n7 float64" in capsys.readouterr().out


def test_large_data_go_in_slabs_of_whole_chunk_rows_with_progress(monkeypatch, capsys, save):
    data = np.arange(1000 * 10, dtype="<i4").reshape(1000, 10)
    monkeypatch.setattr(round_trip, "SLAB_NBYTES", 8000)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert main(["demo", save("data.npy", data), "--no-picture", "--chunks", "70,10"]) == 0
    shown = capsys.readouterr().err
    # Slabs of 140 rows: two rows of chunks have 5600 bytes, three more than a slab may have.
    for name, ending, _ in demo.FORMATS:
        # Shards are read in such slabs too, but written whole: here in one go, of which nothing is shown.
        assert (f"\r{name}: writing 12 %" in shown) == (name != "Zarr v3 in shards")
        assert f"\r{name}: reading 87 %" in shown
        np.testing.assert_array_equal(zcore.open(f"zcore-demo/data{ending}")[...], data)
    assert shown.endswith("\r")


@pytest.mark.parametrize(("name", "n_before"), [(name, i) for i, (name, _, _) in enumerate(demo.FORMATS)])
def test_progress_makes_way_for_an_error_of_a_format(monkeypatch, capsys, save, name, n_before):
    real_is_equal, names = round_trip.is_equal, []
    real_round_trip = demo.RoundTrip

    def noted(path, data, label, *more):
        names.append(label)
        return real_round_trip(path, data, label, *more)

    def failing(found, expected):
        if len(names) > n_before and found[0] == 30:
            raise OSError(5, "Input/output error", "disk")
        return real_is_equal(found, expected)

    monkeypatch.setattr(round_trip, "SLAB_NBYTES", 8)
    monkeypatch.setattr(round_trip, "is_equal", failing)
    monkeypatch.setattr(demo, "RoundTrip", noted)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["demo", save("data.npy", np.arange(100)), "--no-picture", "--chunks", "10"]) == 1
    shown = capsys.readouterr().err
    progress = f"{name}: reading 30 % {'█' * 7}{'░' * 17}"
    assert shown.endswith(f"{progress}\r{' ' * len(progress)}\rzcore demo: {name}: input/output error: 'disk'\n")


def test_no_progress_into_a_file(monkeypatch, capsys, save):
    monkeypatch.setattr(round_trip, "SLAB_NBYTES", 8)
    assert main(["demo", save("data.npy", np.arange(100)), "--no-picture", "--chunks", "10"]) == 0
    assert capsys.readouterr().err == ""


def test_every_window_of_small_arrays_lies_in_the_array():
    for length in range(1, 9):
        for chunk in range(1, 10):
            data = np.arange(length)
            for window in round_trip.windows_of((length,), (chunk,)):
                assert data[window].size >= 1, (length, chunk, window)


# What it finds


@pytest.mark.parametrize("where", ["whole", "window"])
def test_a_difference_is_found_named_and_ends_in_1(monkeypatch, capsys, save, where):
    real_open = zcore.open

    class Wrong:
        """An array that returns one element changed."""

        def __init__(self, array):
            self.array = array

        def __getattr__(self, name):
            return getattr(self.array, name)

        def __getitem__(self, selection):
            found = np.array(self.array[selection])
            if (selection == (slice(0, 100),)) is (where == "whole") and found.size > 1:
                found.reshape(-1)[-1] += 1
            return found

    def wrong(path, **keywords):
        found = real_open(path, **keywords)
        if path.endswith(".asdf"):
            return {"data": Wrong(found["data"])}
        return Wrong(found)

    monkeypatch.setattr(round_trip, "zcore", types.SimpleNamespace(open=wrong, create_array=zcore.create_array))
    assert main(["demo", save("data.npy", np.arange(100)), "--no-picture"]) == 1
    printed = capsys.readouterr()
    count, places = {"whole": ("1 place", "[0:100]"), "window": ("5 places", "[40:61] and 4 other places")}[where]
    # In ASDF all is one chunk, and so its windows are others.
    *rows, of_asdf = rows_of(printed.out)
    assert [row[-1] for row in rows] == [f"DIFFERENT in {count}"] * (len(ROWS) - 1)
    assert of_asdf[-1].startswith("DIFFERENT in ")
    *lines, of_asdf = printed.err.splitlines()
    assert lines == [f"zcore demo: {name}: zcore-demo/data{ending} differs from data.npy at {places}"
                     for name, ending, _ in ROWS[:-1]]
    assert of_asdf.startswith("zcore demo: ASDF: zcore-demo/data.asdf differs from data.npy at ")


def test_a_difference_in_one_format_ends_in_1_and_names_it(monkeypatch, capsys, save):
    real_open = zcore.open

    def wrong(path, **keywords):
        array = real_open(path, **keywords)
        if isinstance(path, str) and path.endswith(".v2.zarr"):
            real_open(path, mode="r+")[5] = 99
        return array

    monkeypatch.setattr(zcore, "open", wrong)
    assert main(["demo", save("data.npy", np.arange(10)), "--no-picture"]) == 1
    printed = capsys.readouterr()
    assert [row[0] for row in rows_of(printed.out) if "DIFFERENT" in row[-1]] == ["Zarr v2"]
    (line,) = printed.err.splitlines()
    assert line.startswith("zcore demo: Zarr v2: zcore-demo/data.v2.zarr differs from data.npy at [0:10]")


def test_bits_are_compared_not_values():
    assert round_trip.is_equal(np.array([np.nan]), np.array([np.nan]))
    assert not round_trip.is_equal(np.array([0.0]), np.array([-0.0]))
    assert not round_trip.is_equal(np.array([1], ">i2"), np.array([1], "<i2"))
    assert not round_trip.is_equal(np.zeros((2, 1)), np.zeros((1, 2)))


# What it refuses: one sentence, exit code 1


@pytest.mark.parametrize("chunks", ["-2", "0", "5,0", "-2,2", "many", "1.5", "1e3", "0 B", "5 elements", "nan B",
                                    "9" * 5000])
def test_chunks_that_are_none(save, refused, chunks):
    sentence = ("--chunks: expected lengths of at least 1 such as 100,100, a size such as '4 MB', or auto, "
                f"found {chunks!r}")
    assert refused(save("a.npy", np.arange(6).reshape(2, 3)), f"--chunks={chunks}") == sentence
    assert os.listdir() == ["a.npy"]


def test_a_negative_length_after_a_blank(save, refused, capsys):
    save("a.npy", np.arange(6))
    assert refused("a.npy", "--chunks", "-2").startswith("--chunks: expected lengths of at least 1")
    with pytest.raises(SystemExit) as ended:
        main(["demo", "a.npy", "--chunks", "-1,-1"])
    assert ended.value.code == 2 and "argument --chunks" in capsys.readouterr().err


@pytest.mark.parametrize(("data", "chunks", "words"), [
    (np.arange(6), "1,1", "chunks: expected 1 lengths, one for each dimension of the shape (6,), found 2"),
    (np.arange(6).reshape(2, 3), "1,1,1", "expected 2 lengths, one for each dimension of the shape (2, 3), found 3"),
    (np.arange(6).reshape(2, 3), "1", "expected 2 lengths, one for each dimension of the shape (2, 3), found 1"),
    (np.arange(6), str(2**63), "2**63"),
    (np.arange(6), str(2**40), "at most 2147483631 bytes"),
    (np.zeros(3, "g"), "auto", "does not know the data type"),
    (np.zeros(3, "V0"), "auto", "items of no bytes"),
], ids=["too many for a line", "too many", "too few", "too long", "too large", "long double", "no bytes"])
def test_what_no_format_has_is_refused_before_there_is_a_folder(save, refused, data, chunks, words):
    if data.dtype.kind == "f" and data.dtype.itemsize == 8 and "data type" in words:
        pytest.skip("long double is double here")
    assert words in refused(save("a.npy", data), "--chunks", chunks)
    assert os.listdir() == ["a.npy"]


@pytest.mark.parametrize(("data", "refusing", "words"), [
    (np.array(3.0), [".zmeta"], "at least one dimension"),
    (np.array(3, ">i4"), [".zmeta"], "at least one dimension"),
    (np.zeros(3, [("a", "<i2"), ("b", "<f8", (2,))]), [".zarr", ".shard.zarr"], "no fields that are arrays"),
    (np.ones(3, [("a", "<i2"), ("b", ">f8")]), [".zarr", ".shard.zarr"],
     "its elements would be [('a', '<i2'), ('b', '<f8')]"),
    (np.zeros(3, np.dtype({"names": ["a"], "formats": ["<f8"], "itemsize": 16})), [".zarr", ".shard.zarr"],
     "its elements would be [('a', '<f8')]"),
], ids=["0d", "0d big-endian", "fields of arrays", "fields of another byte order", "gaps"])
def test_what_one_format_refuses_is_shown_in_the_others(tmp_path, capsys, save, data, refusing, words):
    assert main(["demo", save("a.npy", data)]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    rows = rows_of(printed.out)
    assert [row[0] for row in rows] == [name for name, _, _ in ROWS]
    for row, (_, ending, _) in zip(rows, demo.FORMATS, strict=False):
        path = tmp_path / "zcore-demo" / f"a{ending}"
        if ending in refusing:
            assert len(row) == 2 and row[1].startswith("not written: ") and words in row[1]
            assert f"{os.sep}a{ending}" not in printed.out and not path.exists()
        else:
            assert row[-1] == f"equal, whole and {'8 parts' if data.ndim else '1 part'}"
            assert zcore.open(path)[...].tobytes() == data.tobytes()
    made = json.loads((tmp_path / "zcore-demo" / LIST).read_text())["made"]
    assert not {f"a{ending}" for ending in refusing}.intersection(made)


def test_no_format_has_one_sentence_with_each_reason_once(monkeypatch, save, refused):
    def refusing(store, *, zarr_format, **keywords):
        raise zcore.UnsupportedError("no time" if zarr_format == "zmeta" else "no space")

    monkeypatch.setattr(zcore, "create_array", refusing)
    assert refused(save("a.npy", np.arange(3.0))) == (
        "a.npy: the data are 1-d float64, which no format can write: "
        "no space (Zarr v3, Zarr v3 in shards, Zarr v2); no time (__zmeta__)")
    assert os.listdir() == ["a.npy"]


def test_a_long_reason_goes_on_below_itself():
    first, *others = table(("format", "files", "bytes"), [("a", "1", "2"), ("bcd", "word " * 60)]).splitlines()[2:]
    assert first.startswith("bcd     word word") and len(others) > 1
    assert all(len(line) <= 120 and line.startswith("        word") for line in others)
    assert " ".join([first, *others]).split() == ["bcd", *["word"] * 60]


def test_a_result_of_someone_else_is_not_in_the_way_of_a_format_that_writes_none(tmp_path, save):
    assert main(["demo", save("a.npy", np.arange(6)), "--no-picture"]) == 0
    (tmp_path / "zcore-demo" / "b.zmeta").write_text("mine")
    assert main(["demo", save("b.npy", np.array(6)), "--no-picture"]) == 0
    assert (tmp_path / "zcore-demo" / "b.zmeta").read_text() == "mine"


@pytest.mark.parametrize(("chunks", "expected"), [
    ("2,3", (2, 3)), (" 2 , 3 ", (2, 3)), ("5,-1", (5, 60)), ("100,100", (100, 100)), ("1 KiB", (10, 8)),
])
def test_chunks_by_lengths_and_size(save, chunks, expected):
    save("a.npy", np.zeros((40, 60)))
    assert main(["demo", "a.npy", "--no-picture", "--chunks", chunks]) == 0
    assert {zcore.open(f"zcore-demo/a{ending}").chunks for _, ending, _ in demo.FORMATS} == {expected}


@pytest.mark.parametrize(("out", "words"), [
    ("", "--out names a folder of this machine, found ''"),
    ("https://example.org/a", "--out names a folder of this machine, found 'https://example.org/a'"),
    ("file:///a", "--out names a folder of this machine, found 'file:///a'"),
    ("a.npy", "expected a directory, found a file"),
    ("a.npy/b", "expected a directory, found a file"),
    ("x" * 300, "File name too long"),
])
def test_odd_folders(save, refused, out, words):
    assert words in refused(save("a.npy", np.arange(6)), "--no-picture", "--out", out)
    assert os.listdir() == ["a.npy"]


def test_a_folder_that_may_not_be_written(save, refused):
    os.mkdir("closed", 0o555)
    if os.access("closed", os.W_OK):
        pytest.skip("this user may write anywhere")
    for out in ("closed", "closed/in"):
        assert "Permission denied" in refused(save("a.npy", np.arange(6)), "--no-picture", "--out", out)


def test_a_folder_with_a_colon_is_no_scheme(save, capsys):
    assert main(["demo", save("a.npy", np.arange(6)), "--no-picture", "--out", "run:1"]) == 0
    printed = capsys.readouterr().out
    for name in results_of("a"):
        assert f" {os.path.join('.', 'run:1', name)}\n" in printed
    for _, ending, _ in demo.FORMATS:
        assert zcore.open(f"./run:1/a{ending}").shape == (6,)


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
    assert "b.zmeta exists and was not made by zcore demo" in refused("b.npy", "--no-picture", "--out", "mine")
    assert os.listdir("mine/b.zmeta") == []
    (tmp_path / "mine" / LIST).write_text("[]")
    assert LIST in refused("a.npy", "--no-picture", "--out", "mine")


def test_its_own_results_are_replaced_and_nothing_else(tmp_path, save):
    assert main(["demo", save("a.npy", np.arange(6)), "--no-picture"]) == 0
    (tmp_path / "zcore-demo" / "note").write_text("kept")
    directories = [f"a{ending}" for _, ending, _ in demo.FORMATS]
    for name in directories:
        (tmp_path / "zcore-demo" / name / "note").write_text("kept")
    assert main(["demo", save("a.npy", np.arange(9.0)), "--no-picture"]) == 0
    assert main(["demo", save("b.npy", np.arange(2)), "--no-picture"]) == 0
    assert (tmp_path / "zcore-demo" / "note").read_text() == "kept"
    for name in directories:
        assert zcore.open(f"zcore-demo/{name}").shape == (9,)
        assert (tmp_path / "zcore-demo" / name / "note").read_text() == "kept"
    made = json.loads((tmp_path / "zcore-demo" / LIST).read_text())["made"]
    assert made == sorted([*results_of("a"), *results_of("b")])


def test_what_took_the_place_of_a_result_is_not_its_own(tmp_path, save, refused, capsys):
    assert main(["demo", save("a.npy", np.arange(6)), "--no-picture"]) == 0
    assert main(["demo", save("b.npy", np.arange(6)), "--no-picture"]) == 0
    zcore.DirectoryStore("zcore-demo").delete("a.zmeta")
    assert main(["demo", "b.npy", "--no-picture"]) == 0
    capsys.readouterr()
    (tmp_path / "zcore-demo" / "a.zmeta").write_text("mine")
    assert "a.zmeta exists and was not made by zcore demo" in refused("a.npy", "--no-picture")
    assert (tmp_path / "zcore-demo" / "a.zmeta").read_text() == "mine"


def test_a_picture_that_is_not_its_own_is_kept(tmp_path, save):
    assert main(["demo", save("a.npy", np.arange(6)), "--no-picture"]) == 0
    (tmp_path / "zcore-demo" / demo.PICTURE).write_bytes(b"mine")
    assert main(["demo", "a.npy"]) == 1
    assert main(["demo", "a.npy", "--no-picture"]) == 0
    assert (tmp_path / "zcore-demo" / demo.PICTURE).read_bytes() == b"mine"


@pytest.mark.parametrize("why", ["not numbers", "no picture", "failure to draw", "failure to write"])
def test_a_picture_of_an_earlier_run_does_not_pass_for_this_runs(monkeypatch, tmp_path, save, why):
    old = tmp_path / "zcore-demo" / demo.PICTURE
    monkeypatch.setattr(demo, "picture_of", lambda array, source: b"drawn")
    assert main(["demo", save("a.npy", np.arange(6))]) == 0
    assert old.read_bytes() == b"drawn"

    def failing(*args, **kwargs):
        raise MemoryError

    options = ["--no-picture"] if why == "no picture" else []
    if why == "failure to draw":
        monkeypatch.setattr(demo, "picture_of", failing)
    elif why == "failure to write":
        monkeypatch.setattr(demo, "RoundTrip", failing)
    data = np.array([b"ab"]) if why == "not numbers" else np.arange(7)
    assert main(["demo", save("b.npy", data), *options]) == why.startswith("failure")
    assert not old.exists()
    assert (demo.PICTURE in json.loads((tmp_path / "zcore-demo" / LIST).read_text())["made"]) == (why != "no picture")


def test_a_run_that_is_refused_leaves_the_picture(tmp_path, save, refused, capsys):
    assert main(["demo", save("a.npy", np.arange(6))]) == 0
    capsys.readouterr()
    refused("a.npy", "--chunks", "0")
    refused("none.npy")
    assert (tmp_path / "zcore-demo" / demo.PICTURE).exists()


def test_without_matplotlib_the_rest_works(monkeypatch, save):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["demo", save("a.npy", np.arange(6)), "--no-picture"]) == 0
