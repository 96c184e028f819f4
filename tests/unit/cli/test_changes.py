"""`zcore attrs`, `create` and `rm`: the verbs that change what is stored."""
import json
import os
from pathlib import Path

import numpy as np
import pytest

import zcore
from tests.each import each
from zcore.cli.option_values import compressor_of, grid_of, lengths_of

# attrs


def test_attributes_are_shown(run, weather):
    assert run("attrs", weather) == (0, 'title = "weather"\nyears = [2016, 2017]\n', "")
    assert run("attrs", weather, "title") == (0, "weather\n", "")
    assert run("attrs", weather, "years") == (0, "[2016, 2017]\n", "")
    assert json.loads(run("attrs", weather, "--json")[1]) == {"title": "weather", "years": [2016, 2017]}
    assert json.loads(run("attrs", weather, "title", "--json")[1]) == "weather"
    assert run("attrs", weather, "none") == (
        1, "", "zcore attrs: weather.zarr has no attribute 'none'; --set NAME VALUE sets one\n")


def test_attributes_are_set_and_deleted_in_one_write(run, weather):
    arguments = ["--set", "units", "m", "--set", "range", "[1, 2.5]", "--set", "ok", "true", "--delete", "title"]
    assert run("attrs", weather, *arguments) == (0, "", "")
    assert zcore.open(weather).attrs.asdict() == {"years": [2016, 2017], "units": "m", "range": [1, 2.5], "ok": True}


def test_nothing_is_changed_when_one_name_is_not_there(run, weather):
    code, _, err = run("attrs", weather, "--set", "a", "1", "--delete", "none")
    assert code == 1 and "'none'" in err
    assert "a" not in zcore.open(weather).attrs


def test_showing_and_changing_are_two_calls(run, weather):
    assert run("attrs", weather, "title", "--set", "a", "1")[0] == 1


def test_a_change_drops_the_copy_that_a_group_above_has(run, weather):
    zcore.consolidate_metadata(weather)
    assert run("attrs", "weather.zarr/2016/t2m", "--set", "a", "1")[0] == 0
    assert zcore.open_group(weather).metadata.consolidated is None


def test_a_value_that_is_no_json_there_is_an_error(run, weather):
    code, _, err = run("attrs", weather, "--set", "a", "NaN")
    assert code == 1 and len(err.splitlines()) == 1


# create


@each(("text", "expected"), [
    ("48,90", (48, 90)), ("1x2", (1, 2)), ("1X2", (1, 2)), ("1 × 2", (1, 2)), ("10 10", (10, 10)),
    ("7", (7,)), ("", ()), ("0,1", (0, 1))])
def test_lengths(text, expected):
    assert lengths_of(text) == expected


@pytest.mark.parametrize("text", ["a", "1;2", "1.5", "1y2"])
def test_what_are_no_lengths(text):
    with pytest.raises(ValueError, match="expected lengths"):
        lengths_of(text)


@pytest.mark.parametrize("text", ["a", "4 XB", "1,b"])
def test_what_is_no_grid(text):
    with pytest.raises(ValueError, match="--shards: expected lengths"):
        grid_of(text, "--shards")


@each("text", ["zstd", "zstd:3", "gzip:1", "blosc", "blosc:lz4", "blosc:zstd:3", "lz4", "zlib:1",
                                  '{"name": "zstd", "configuration": {"level": 2, "checksum": false}}'])
def test_compressors(text):
    array = zcore.create_array(zcore.MemoryStore(), shape=4, dtype="i4", compressors=compressor_of(text),
                               checksum=False)
    document = json.loads(array.store.get("zarr.json"))["codecs"][1]
    if not text.startswith("{"):
        name, *rest = text.split(":")
        assert document["name"].removeprefix("numcodecs.") == name
        levels = [str(value) for value in document["configuration"].values()]
        assert set(rest) <= set(levels)
    else:
        assert document == json.loads(text)


@pytest.mark.parametrize("text", ["zst", "zstd:a", "zstd:1:2", "blosc:none", "blosc:lz4:10", "{", "zstd:99999"])
def test_what_is_no_compressor(run, text):
    code, out, err = run("create", "a.zarr", "--shape", "4", "--dtype", "i4", "--compressor", text)
    assert (code, out) == (1, "") and len(err.splitlines()) == 1 and not os.path.exists("a.zarr/zarr.json")


def test_an_array_is_created(run):
    assert run("create", "a.zarr") == (0, "<zcore.Group 'a.zarr', format 3>\n", "")
    code, out, _ = run("create", "a.zarr/b/t2m", "--shape", "48,90", "--dtype", ">f4", "--chunks", "4,30", "--shards",
                       "24,90", "--compressor", "zstd:3", "--fill-value", "NaN", "--dimension-names", "y,x",
                       "--attribute", "units", "K", "--attribute", "n", "3")
    array = zcore.open("a.zarr")["b/t2m"]
    assert code == 0 and out == f"{zcore.open('a.zarr', 'r+', path='b/t2m')!r}\n"
    assert (array.shape, array.chunks, array.shards, array.dimension_names) == ((48, 90), (4, 30), (24, 90), ("y", "x"))
    assert np.isnan(array.fill_value) and array.attrs.asdict() == {"units": "K", "n": 3}
    assert repr(array.compressors[0]) == repr(zcore.codecs.ZstdCodec(level=3))


def test_the_groups_above_are_created(run):
    assert run("create", "new/b.zarr/c/x", "--shape", "3", "--dtype", "u1")[0] == 0
    assert run("create", "plain/x", "--shape", "3", "--dtype", "u1")[0] == 0
    assert run("cp", "plain/x", "c.zarr/y") == (0, "", "")
    assert [path for path, _ in zcore.open_group("new/b.zarr").walk()] == ["c", "c/x"]
    assert list(zcore.open_group("c.zarr")) == ["y"] and sorted(os.listdir("plain")) == ["x"]
    assert run("info", "d.zarr/x")[2] == "zcore info: d.zarr/x does not exist\n"


def test_an_array_of_data(run, save):
    data = np.arange(12, dtype="<i2").reshape(3, 4)
    save("d.npy", data)
    rows = json.loads(run("create", "a.zarr", "--data", "d.npy", "--zarr-format", "2", "--json")[1])
    assert (rows["shape"], rows["format"], rows["objects_stored"]) == ([3, 4], 2, 1)
    np.testing.assert_array_equal(zcore.open("a.zarr")[...], data)


@pytest.mark.parametrize(("arguments", "words"), [
    (["--shape", "3"], "--shape needs --dtype"),
    (["--dtype", "i4"], "--dtype needs --shape or --data"),
    (["--shape", "3", "--dtype", "nonsense"], "nonsense"),
    (["--shape", "a", "--dtype", "i4"], "expected lengths"),
    (["--data", "none.npy"], "none.npy does not exist"),
    (["--zarr-format", "zmeta"], "no groups"),
])
def test_what_cannot_be_created(run, arguments, words):
    code, out, err = run("create", "a.zarr", *arguments)
    assert (code, out) == (1, "") and words in err and len(err.splitlines()) == 1


def test_what_stands_there_is_replaced_only_when_asked(run, weather):
    code, _, err = run("create", "weather.zarr/height", "--shape", "3", "--dtype", "i4")
    assert code == 1 and "already" in err
    assert run("create", "weather.zarr/height", "--shape", "3", "--dtype", "i4", "--overwrite")[0] == 0
    assert zcore.open("weather.zarr/height").shape == (3,)


# rm


def test_nodes_are_deleted(run, weather):
    assert run("rm", "weather.zarr/height") == (0, "", "")
    assert list(zcore.open(weather)) == ["2016"]
    assert json.loads(run("rm", "-r", "--json", weather)[1]) == {"deleted": [weather]}
    assert not os.path.exists(weather)


def test_a_group_with_members_needs_a_word_more(run, weather):
    code, _, err = run("rm", "weather.zarr/height", "weather.zarr/2016")
    assert code == 1 and err == ("zcore rm: weather.zarr/2016 is a group that is not empty; -r deletes it with all its "
                                 "members\n")
    assert list(zcore.open(weather)) == ["2016", "height"]


def test_a_document_is_not_taken_for_its_node(run, weather):
    for options in ([], ["-r"]):
        code, _, err = run("rm", *options, "weather.zarr/height/zarr.json")
        assert code == 1 and err.endswith("zarr.json is the document of a node; weather.zarr/height is the node\n")
    assert "height" in zcore.open(weather)


def test_files_of_others_stay(run, weather):
    with open("weather.zarr/notes.txt", "w"):
        pass
    assert run("rm", "-rf", weather)[0] == 0
    assert os.listdir(weather) == ["notes.txt"]


def test_a_damaged_node_can_go(run, weather):
    with open("weather.zarr/height/zarr.json", "w") as file:
        file.write("{")
    assert run("rm", "weather.zarr/height")[0] == 0
    assert list(zcore.open(weather)) == ["2016"]


def test_the_copy_of_a_group_above_is_dropped(run, weather):
    zcore.consolidate_metadata(weather)
    assert run("rm", "weather.zarr/height")[0] == 0
    assert zcore.open_group(weather).metadata.consolidated is None


@pytest.mark.parametrize("spelling", ["{}", "{}/", "x/../{}", "{}/.", "file://{full}"])
@pytest.mark.parametrize("link", ["link", "weather.zarr/link", "weather.zarr/2016/link", "notes/link"])
def test_a_link_goes_and_not_what_it_leads_to(run, weather, link, spelling):
    os.mkdir("x")
    os.mkdir("notes")
    zcore.create_array("other.zarr", data=np.arange(4))
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    for target, options in (("weather.zarr/height", []), ("weather.zarr", []), ("other.zarr", ["-r"])):
        os.symlink(os.path.abspath(target), link)
        assert run("rm", *options, spelling.format(link, full=os.path.abspath(link))) == (0, "", "")
        assert not os.path.lexists(link)
        assert before == {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}


@pytest.mark.parametrize("link", ["link", "weather.zarr/link"])
def test_a_link_to_nowhere_goes(run, weather, link):
    os.symlink("nowhere", link)
    assert run("rm", link) == (0, "", "") and not os.path.lexists(link)
    assert run("rm", link)[0] == 1


def test_a_link_to_what_is_no_node_stays(run, weather):
    os.mkdir("raw")
    Path("raw/notes.txt").touch()
    os.symlink("raw", "link")
    assert run("rm", "-r", "link")[0] == 1 and os.path.islink("link")


def test_a_folder_that_is_no_node_stays_with_all_stores_below(run, weather):
    """`zcore rm -r .` deleted every store below, at any depth."""
    os.makedirs("far/below")
    zcore.create_array("far/below/a.zarr", data=np.arange(4))
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    for options in ([], ["-r"]):
        code, out, err = run("rm", *options, ".")
        assert (code, out) == (1, "") and "holds no node" in err
        assert "'weather.zarr', 'far/below/a.zarr'" in err and len(err.splitlines()) == 1
    assert run("rm", "-r", "weather.zarr/height", "far")[0] == 1
    assert before == {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    assert run("rm", "-r", "weather.zarr", "far/below/a.zarr")[0] == 0
    assert not os.path.exists(weather)


def test_members_below_a_group_whose_document_was_lost(run, weather):
    os.unlink("weather.zarr/2016/zarr.json")
    names = [path for path, _ in zcore.open_group(weather, path="").walk()]
    code, _, err = run("rm", "-r", "weather.zarr/2016")
    assert code == 1 and "holds no node" in err and "2016" not in names
    assert os.path.exists("weather.zarr/2016")


@pytest.mark.parametrize("verb", [["rm"], ["attrs", "--set", "a", "1"]])
def test_what_cannot_be_changed(run, verb):
    with zcore.ZipStore("a.zip", mode="w") as store:
        zcore.create_array(store, data=np.arange(4))
    before = os.path.getsize("a.zip")
    for path in ("a.zip", "none.zarr", "."):
        code, out, err = run(*verb, path)
        assert (code, out) == (1, "") and len(err.splitlines()) == 1
        assert err.endswith("none.zarr does not exist\n") == (path == "none.zarr")
    assert os.path.getsize("a.zip") == before
