"""`zcore ls`, `tree` and `info`: what people see of a hierarchy, and programs."""
import json
import os

import numpy as np
import pytest

import zcore
from zcore.__main__ import main
from zcore.cli.show.facts import ABSENT, chunk_map
from zcore.cli.show.printed import nbytes_text


def test_members_of_a_group(run, weather):
    assert run("ls", weather) == (0, "2016/\nheight\n", "")
    assert run("ls", "-r", weather) == (0, "2016/\n2016/t2m\nheight\n", "")
    assert run("ls", "weather.zarr/2016/") == (0, "t2m\n", "")


def test_an_array_is_listed_by_itself(run, weather):
    assert run("ls", "weather.zarr/height") == (0, "weather.zarr/height\n", "")


def test_the_current_directory_is_the_default(run, weather, monkeypatch):
    monkeypatch.chdir(weather)
    assert run("ls") == (0, "2016/\nheight\n", "")
    assert run("tree")[1].splitlines()[1:] == [
        "├── 2016", "│   └── t2m  6 x 4 x 5 float32", "└── height  30 x 20 int16"]


def test_a_folder_that_is_no_group_is_listed_by_the_nodes_in_it(run, weather, save):
    zcore.save_array("b.zarr", np.arange(3))
    save("c.npy", np.arange(3))
    os.mkdir("empty")
    assert run("ls") == (0, "b.zarr\nc.npy\nweather.zarr/\n", "")
    assert run("ls", "-r") == (0, "b.zarr\nc.npy\nweather.zarr/\nweather.zarr/2016/\nweather.zarr/2016/t2m\n"
                                  "weather.zarr/height\n", "")
    assert run("ls", "empty") == (0, "", "")


def test_long_lines_have_columns(run, weather):
    code, out, _ = run("ls", "-rla", weather)
    stored = [zcore.open(weather, path=path).nbytes_stored() for path in ("2016/t2m", "height")]
    assert (code, [line.split() for line in out.splitlines()]) == (0, [
        ["format", "type", "shape", "chunks", "stored", "name"],
        ["3", "group", "2016/"],
        f"3 float32 6 x 4 x 5 2 x 4 x 5 in shards of 4 x 4 x 5 {nbytes_text(stored[0])} 2016/t2m".split(),
        f"3 int16 30 x 20 10 x 10 {nbytes_text(stored[1])} height".split(),
    ])


def test_listing_as_json(run, weather):
    code, out, _ = run("ls", "--json", "-rl", weather)
    rows = json.loads(out)
    assert code == 0 and [row["path"] for row in rows] == ["2016", "2016/t2m", "height"]
    assert rows[0] == {"path": "2016", "kind": "group", "format": 3}
    assert rows[1] == {"path": "2016/t2m", "kind": "array", "format": 3, "shape": [6, 4, 5], "dtype": "float32",
                       "chunks": [2, 4, 5], "shards": [4, 4, 5],
                       "nbytes_stored": zcore.open("weather.zarr/2016/t2m").nbytes_stored()}


@pytest.fixture
def damaged(weather):
    """Damage the document of a member."""
    with open("weather.zarr/2016/zarr.json", "w") as file:
        file.write("{")
    return weather


def test_a_damaged_member_is_shown_with_its_error(run, damaged):
    code, out, err = run("ls", damaged)
    assert (code, err) == (1, "")
    assert out.splitlines()[0].startswith("2016  ") and "ends at byte 1" in out and out.endswith("\nheight\n")
    assert run("tree", damaged) == (1, "weather.zarr\n├── 2016  MetadataError\n└── height  30 x 20 int16\n", "")
    assert "MetadataError" in run("ls", "-l", damaged)[1]
    assert json.loads(run("tree", damaged, "--json")[1])["members"]["2016"]["error"] == "MetadataError"
    code, out, _ = run("info", damaged)
    assert code == 0 and "1 member that cannot be opened" in out


def test_a_damaged_member_of_a_plain_folder(run, damaged):
    os.rename("weather.zarr/2016", "2016")
    code, out, _ = run("ls")
    assert code == 1 and out.startswith("2016  ") and out.endswith("\nweather.zarr/\n")


@pytest.mark.parametrize("verb", ["ls", "tree", "info"])
def test_nothing_there(run, verb):
    assert run(verb, "none.zarr") == (1, "", f"zcore {verb}: none.zarr does not exist\n")


def test_a_file_that_is_no_array(run):
    with open("a.txt", "w") as file:
        file.write("words")
    code, out, err = run("ls", "a.txt")
    assert (code, out) == (1, "") and len(err.splitlines()) == 1


def test_levels_of_a_tree(run, weather):
    assert run("tree", "--depth", 1, weather) == (0, "weather.zarr\n├── 2016\n└── height  30 x 20 int16\n", "")
    assert run("tree", "weather.zarr/height")[1] == "weather.zarr/height  30 x 20 int16\n"
    assert run("tree", "--depth", 0, weather)[0] == 1


def test_a_tree_as_json(run, weather):
    top = json.loads(run("tree", "--json", weather)[1])
    assert top["members"]["2016"]["members"]["t2m"]["shape"] == [6, 4, 5]
    assert "members" not in top["members"]["height"]


def test_names_do_nothing_to_a_terminal(run):
    with pytest.warns(UserWarning, match="not portable"):
        zcore.create_array("s.zarr", name="a\x1b[2J\nb", shape=3, dtype="i4", attributes={"\x1b[1m": "\x07"})
    for arguments in (["ls"], ["ls", "-l"], ["tree"]):
        out = run(*arguments, "s.zarr")[1]
        assert "\x1b" not in out and "a\\x1b[2J\\nb" in out
    out = run("info", "s.zarr/a\x1b[2J\nb")[1]
    assert "\x1b" not in out and "\x07" not in out
    code, _, err = run("info", "\x1b[2J")
    assert code == 1 and "\x1b" not in err


# info


def test_an_array_is_described(run, weather):
    code, out, _ = run("info", "weather.zarr/2016/t2m")
    array = zcore.open("weather.zarr/2016/t2m")
    stored = sum(os.path.getsize(f"weather.zarr/2016/t2m/{key}") for key in ("zarr.json", "c/0/0/0"))
    rows = {line[:11].strip(): line[12:] for line in out.splitlines()}
    assert code == 0 and rows == {
        "path": f"file://{os.path.abspath('weather.zarr')}/2016/t2m",
        "format": "Zarr v3 array",
        "shape": "6 x 4 x 5",
        "dimensions": "time, lat, lon",
        "type": "float32",
        "fill value": "0.0",
        "chunks": "2 x 4 x 5",
        "shards": "4 x 4 x 5",
        "codecs": f"{array.compressors[0]!r}, Crc32cCodec()",
        "decoded": "480 bytes",
        "stored": f"{stored / 1000:.2f} kB (ratio {480 / stored:.2f})",
        "present": "1 of 2 shards, in a grid of 2 x 1 x 1",
        "attributes": 'units = "K"',
    }


def test_an_array_is_described_to_programs(run, weather):
    rows = json.loads(run("info", "--json", "--chunks", "weather.zarr/height")[1])
    sizes = {coords: os.path.getsize("weather.zarr/height/c/" + "/".join(map(str, coords)))
             for coords in ((2, 0), (2, 1))}
    assert rows["stored"] == [{"coords": list(coords), "nbytes": nbytes} for coords, nbytes in sizes.items()]
    stored = json.loads(run("ls", "--json", "-l", "weather.zarr/height")[1])[0]["nbytes_stored"]
    assert rows["nbytes_stored"] == stored > sum(sizes.values()) and rows["ratio"] == 1200 / stored
    assert (rows["objects"], rows["objects_stored"], rows["object_grid"]) == (6, 2, [3, 2])
    assert rows["fill_value"] == -1 and [codec["name"] for codec in rows["codecs"]] == ["bytes", "blosc", "crc32c"]


def test_a_group_is_described(run, weather):
    code, out, _ = run("info", weather)
    assert code == 0 and "below       2 arrays, 1 group\n" in out
    assert 'attributes  title = "weather"\n            years = [2016, 2017]\n' in out


@pytest.mark.parametrize("keywords", [
    {"shape": (), "dtype": "f8"},
    {"shape": (0, 3), "dtype": "i4"},
    {"shape": (5, 4), "dtype": "i4", "chunks": [[2, 3], 4]},
    {"shape": 3, "dtype": [("a", "i4"), ("b", "f8")]},
    {"shape": 3, "dtype": "f4", "fill_value": float("nan")},
    {"shape": 3, "dtype": str},
    {"shape": 3, "dtype": "f4", "zarr_format": "zmeta"},
    {"shape": 3, "dtype": "M8[s]", "zarr_format": 2},
], ids=["0d", "empty", "rectilinear", "structured", "nan", "text", "zmeta", "dates"])
def test_arrays_of_all_kinds_are_described(run, keywords):
    zcore.create_array("a.zarr", **keywords)
    for arguments in (["info", "--chunks"], ["ls", "-l"], ["tree"]):
        code, out, err = run(*arguments, "a.zarr")
        assert (code, err) == (0, "") and out
    rows = json.loads(run("info", "--json", "a.zarr")[1])
    assert rows["kind"] == "array" and rows["objects_stored"] == 0 and rows["ratio"] is None


def test_chunks_that_differ_in_length_are_described(run):
    zcore.create_array("a.zarr", shape=(11, 4), dtype="i4", chunks=[[2, 2, 2, 5], 4])
    shown = [run(*arguments, "a.zarr")[1] for arguments in (["info"], ["ls", "-l"])]
    assert all("[3×2, 5] x 4" in text for text in shown)
    for arguments in (["info"], ["ls"], ["tree"]):
        rows = json.loads(run(*arguments, "--json", "a.zarr")[1])
        assert (rows[0] if isinstance(rows, list) else rows)["chunks"] == [[[2, 3], 5], 4]


def test_a_map_is_of_an_array(run, weather):
    code, out, err = run("info", "--chunks", weather)
    assert (code, out) == (1, "")
    assert err.endswith("'weather.zarr' is a group; expected an array, such as weather.zarr/2016/t2m, "
                        "weather.zarr/height\n")


def test_a_map_of_chunks(run, weather):
    out = run("info", "--chunks", "weather.zarr/height")[1].splitlines()
    assert out[-4:-2] == ["··", "··"] and ABSENT not in out[-2] and len(out[-2]) == 2


def test_a_map_has_a_plane_below_the_other():
    assert chunk_map((2, 2, 3), {(1, 1, 2): 80}, 40)[:-1] == ["[0]", "···", "···", "[1]", "···", "··█"]
    many = chunk_map((100, 1, 1), {}, 40)
    assert many[-2:] == ["… and 92 planes more", "· absent"]


def test_a_large_grid_is_drawn_by_squares_of_chunks():
    lines = chunk_map((1000, 1000), {(i, 999): 8 if i < 500 else 1 for i in range(1000)}, 50)
    assert {len(line) for line in lines[:-1]} == {50} and len(lines) == 51
    assert lines[0][-1] == "█" and lines[49][-1] == "▁" and lines[0][0] == ABSENT
    assert "each sign stands for 20 x 20 objects" in lines[-1]


def test_a_store_in_a_zip_archive(run):
    with zcore.ZipStore("a.zip", mode="w") as store:
        zcore.create_array(store, name="g/x", data=np.arange(4))
    assert run("ls", "-r", "a.zip") == (0, "g/\ng/x\n", "")
    assert run("ls", "a.zip/g") == (0, "x\n", "")
    assert "present     1 of 1 chunk" in run("info", "a.zip/g/x")[1]
    assert run("info", "a.zip/h")[0] == 1


def test_colours_are_for_terminals_alone(run, weather, monkeypatch):
    import sys

    from zcore.cli.show import colours

    monkeypatch.setattr(colours, "is_terminal", lambda stream: stream is sys.stdout)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert run("ls", weather)[1] == "\x1b[34m2016/\x1b[0m\nheight\n"
    monkeypatch.setenv("NO_COLOR", "1")
    assert run("ls", weather)[1] == "2016/\nheight\n"


def test_a_warning_is_one_sentence(run, weather):
    with open("weather.zarr/height/.zarray", "w"):
        pass
    code, out, err = run("info", "weather.zarr/height")
    assert code == 0 and err.startswith("zcore info: warning: ") and len(err.splitlines()) == 1


def test_the_document_of_a_node_stands_for_it(run, weather):
    assert run("ls", "weather.zarr/zarr.json")[1] == "2016/\nheight\n"
    assert main(["info", "weather.zarr/height/zarr.json"]) == 0
