"""`zcore verify`, `cp`, `convert`, `rechunk` and `refs`: the verbs about whole stores."""
import json
import os

import numpy as np
import pytest

import zcore


@pytest.fixture
def equal(run):
    """Return a function that asks `zcore diff` whether two places hold the same."""
    return lambda *places: run("diff", *places) == (0, "", "")


# cp, convert, rechunk


@pytest.mark.parametrize("destination", ["b.zarr", "b.zip", "weather.zarr/b.zip"])
def test_a_hierarchy_is_copied(run, weather, equal, destination):
    assert run("cp", weather, destination) == (0, "", "")
    assert equal(weather, destination) and os.path.isfile(destination) == destination.endswith(".zip")


def test_into_a_group_and_out_of_an_archive(run, weather, equal):
    assert run("cp", weather, "b.zip")[0] == 0
    assert run("cp", "b.zip/2016", "weather.zarr/more/2016") == (0, "", "")
    assert equal("weather.zarr/2016", "weather.zarr/more/2016")
    assert sorted(zcore.open(weather)) == ["2016", "height", "more"]


def test_a_copy_does_not_replace_unless_asked(run, weather):
    zcore.save_array("b.zarr", np.arange(3))
    code, out, err = run("cp", weather, "b.zarr")
    assert (code, out) == (1, "") and "there is a node at" in err and zcore.open("b.zarr").shape == (3,)
    assert run("cp", weather, "b.zarr", "--overwrite")[0] == 0
    assert "height" in zcore.open("b.zarr")


def test_a_selection(run, weather):
    assert run("cp", "weather.zarr/height", "b.zarr", "--selection", "18:22, ::4") == (0, "", "")
    np.testing.assert_array_equal(zcore.open("b.zarr")[...], zcore.open("weather.zarr/height")[18:22, ::4])
    assert run("cp", "weather.zarr/height", "c.zarr", "--selection", "os")[0] == 1


@pytest.mark.parametrize(("arguments", "check"), [
    (["--zarr-format", "2"], lambda a: a.zarr_format == 2),
    (["--zarr-format", "zmeta"], lambda a: a.zarr_format == "zmeta"),
    (["--compressor", "zstd:3"], lambda a: "ZstdCodec(level=3" in repr(a.compressors)),
    (["--compressor", "none"], lambda a: "Blosc" not in repr(a.compressors)),
    (["--order", "F"], lambda a: a.order == "F"),
    (["--chunks", "30,5"], lambda a: a.chunks == (30, 5)),
    (["--shards", "30,20", "--chunks", "10,10"], lambda a: (a.shards, a.chunks) == ((30, 20), (10, 10))),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_conversions(run, weather, arguments, check):
    code, out, err = run("convert", "weather.zarr/height", "b.zarr", *arguments)
    assert (code, out, err) == (0, "", "")
    array = zcore.open("b.zarr")
    assert check(array), array.info
    np.testing.assert_array_equal(array[...], zcore.open("weather.zarr/height")[...])


def test_files_of_numpy(run, weather):
    assert run("convert", "weather.zarr/height", "h.npy", "--dtype", "f8") == (0, "", "")
    assert np.load("h.npy").dtype == "f8"
    assert run("convert", "h.npy", "b.zarr")[0] == 0
    np.testing.assert_array_equal(zcore.open("b.zarr")[...], zcore.open("weather.zarr/height")[...])


def test_what_is_lost_is_told(run, weather):
    code, _, err = run("convert", "weather.zarr/2016/t2m", "t2m.npy")
    assert code == 0 and all(line.startswith("zcore convert: warning: ") for line in err.splitlines())
    assert "names of dimensions" in err and "attributes" in err


def test_other_chunks(run, weather, equal):
    rows = json.loads(run("rechunk", "weather.zarr/2016/t2m", "b.zarr", "--chunks", "6,1,1", "--shards", "none",
                          "--memory", "1 MB", "--json")[1])
    assert (rows["chunks"], rows["shards"]) == ([6, 1, 1], None) and equal("weather.zarr/2016/t2m", "b.zarr")
    assert run("rechunk", "weather.zarr/height", "c.zarr") == (
        1, "", "zcore rechunk: expected --chunks or --shards\n")


@pytest.mark.parametrize("arguments", [
    ["cp", "none.zarr", "b.zarr"], ["cp", "weather.zarr", "b.zarr", "--memory", "much"],
    ["convert", "weather.zarr/height", "b.zarr", "--dtype", "nonsense"],
    ["rechunk", "weather.zarr/height", "b.zarr", "--chunks", "a"], ["convert", "weather.zarr/height", "none/b.npy"],
])
def test_what_cannot_be_copied(run, weather, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (1, "") and len(err.splitlines()) == 1 and not os.path.exists("b.zarr")


def test_what_ctrl_c_leaves_is_gone_on_with(run, equal, monkeypatch):
    from zcore.cli.show.printed import ProgressLine

    zcore.save_array("a.zarr", np.arange(200 * 300.0).reshape(200, 300), chunks=(10, 300))
    calls = []

    def interrupted(self, done, total):
        calls.append(done)
        if len(calls) == 3:
            raise KeyboardInterrupt

    line = ["rechunk", "a.zarr", "b.zarr", "--chunks", "200,10", "--memory", "200 kB"]
    with monkeypatch.context() as patch:
        patch.setattr(ProgressLine, "to", interrupted)
        assert run(*line) == (130, "", "zcore rechunk: interrupted; the same copy, begun again, goes on where this one "
                                       "stopped\n")
    assert not os.path.exists("b.zarr") and len(calls) == 3 and 0 < calls[2] < 480000
    assert run(*line) == (0, "", "") and equal("a.zarr", "b.zarr")
    assert sorted(os.listdir(".")) == ["a.zarr", "b.zarr"]
    calls.clear()
    with monkeypatch.context() as patch:
        patch.setattr(ProgressLine, "to", interrupted)
        assert run("convert", "a.zarr", "a.npy", "--memory", "20 kB") == (130, "", "zcore convert: interrupted\n"), (
            "a file begins anew")


# verify


def test_a_sound_store(run, weather):
    code, out, err = run("verify", weather)
    assert (code, err) == (0, "") and out.startswith("weather.zarr: ok; 2 groups, 2 arrays, 3 objects, ")


def test_problems_are_lines_and_the_exit_code(run, weather):
    with open("weather.zarr/height/c/2/0", "r+b") as file:
        file.truncate(20)
    with open("weather.zarr/height/c/9", "w"):
        pass
    code, out, _ = run("verify", weather)
    *problems, verdict = out.splitlines()
    assert code == 1 and len(problems) == 2 and "2 problems (" in verdict
    assert any("height/c/2/0" in line for line in problems)
    report = json.loads(run("verify", "--json", weather)[1])
    assert report["ok"] is False and len(report["problems"]) == 2


def test_left_overs_are_removed_when_asked(run, weather):
    left = "weather.zarr/height/c/2/.__zc_tmp.abcdefgh"
    with open(left, "w"):
        pass
    code, out, _ = run("verify", "--repair", weather)
    assert code == 1 and " s ago; a repair removes it 60 s after the last write\n" in out and os.path.exists(left)
    os.utime(left, (0, 0))
    code, out, _ = run("verify", weather)
    assert code == 1 and " s ago\n" in out and os.path.exists(left)
    code, out, _ = run("verify", "--repair", weather)
    assert code == 0 and "1 removed" in out and not os.path.exists(left)
    assert run("verify", weather)[0] == 0


def test_of_an_archive(run, weather):
    assert run("cp", weather, "b.zip")[0] == 0
    assert run("verify", "b.zip")[0] == 0
    assert json.loads(run("verify", "b.zip", "--json")[1])["place"] == os.path.abspath("b.zip")
    code, _, err = run("verify", "none.zip")
    assert code == 1 and len(err.splitlines()) == 1


def test_of_several_places(run, weather):
    assert run("cp", weather, "b.zip")[0] == 0
    with open("weather.zarr/height/c/2/0", "r+b") as file:
        file.truncate(20)
    code, out, _ = run("verify", weather, "b.zip")
    assert code == 1 and "weather.zarr: 1 problem (" in out and "\nb.zip: ok; " in out
    assert [one["ok"] for one in json.loads(run("verify", weather, "b.zip", "--json")[1])] == [False, True]
    code, out, _ = run("verify", "typo", "b.zip")
    assert code == 1 and "typo: not verified: " in out and " does not exist\nb.zip: ok; " in out
    found = json.loads(run("verify", "typo", "b.zip", "--json")[1])
    assert [(one["ok"], one.get("error")) for one in found] == [(False, "NodeNotFoundError"), (True, None)]


# refs


@pytest.fixture
def references():
    """Make a reference set of an array whose chunks lie in a file, and return the name of the set."""
    store = zcore.MemoryStore()
    zcore.create_array(store, data=np.arange(12, dtype="<i4"), chunks=4, zarr_format=2, compressors=None)
    with open("data.bin", "wb") as file:
        file.write(b"head" + np.arange(12, dtype="<i4").tobytes())
    with open("refs.json", "w") as file:
        json.dump({"version": 1, "templates": {"u": "data.bin"}, "refs": {
            ".zarray": store.get(".zarray").decode(), **{str(i): ["{{u}}", 4 + 16 * i, 16] for i in range(3)}}}, file)
    return "refs.json"


def test_a_set_that_is_sound(run, references):
    assert run("refs", "check", references) == (0, "refs.json: 4 references to 1 file, ok\n", "")
    assert run("cat", references, "3:5") == (0, "3\n4\n", "")


def test_a_set_that_points_beyond_its_file(run, references):
    os.truncate("data.bin", 40)
    code, out, _ = run("refs", "check", references)
    lines = out.splitlines()
    assert code == 1 and lines[0].startswith("2: ") and lines[1:] == ["refs.json: 4 references to 1 file, 1 problem"]
    os.remove("data.bin")
    found = json.loads(run("refs", "check", "--json", references)[1])
    assert [problem["key"] for problem in found["problems"]] == ["0", "1", "2"] and found["targets"] == ["data.bin"]


def test_a_set_is_expanded(run, references):
    expanded = json.loads(run("refs", "expand", references)[1])
    assert expanded["version"] == 1 and expanded["refs"]["1"] == ["data.bin", 20, 16]
    assert run("refs", "expand", references, "--out", "plain.json") == (0, "", "")
    assert zcore.ReferenceStore("plain.json").to_v0() == expanded["refs"]


def test_what_a_set_may_point_to(run, references, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    os.rename("data.bin", elsewhere / "data.bin")
    with open(references) as file:
        text = file.read().replace('"data.bin"', json.dumps(str(elsewhere / "data.bin")))
    with open(references, "w") as file:
        file.write(text)
    assert run("refs", "check", references)[0] == 1
    assert run("refs", "check", references, "--allow", str(elsewhere))[0] == 0


def test_a_set_is_made(run, weather, equal):
    for source, name in ((weather, "a.json"), ("weather.zarr/2016", "b.json")):
        assert run("refs", "make", source, "--out", name) == (0, "", "")
        assert run("refs", "check", name)[0] == 0 and equal(source, name)
    assert run("refs", "make", weather)[0] == 1


def test_a_set_is_made_of_an_hdf5_file(run):
    h5py = pytest.importorskip("h5py")
    with h5py.File("a.h5", "w") as file:
        file.create_dataset("x", data=np.arange(12).reshape(3, 4), chunks=(2, 2), compression="gzip")
    found = json.loads(run("refs", "make", "a.h5", "--out", "a.json", "--json")[1])
    assert found["set"] == "a.json" and found["references"] >= 6
    np.testing.assert_array_equal(zcore.open("a.json")["x"][...], np.arange(12).reshape(3, 4))


def test_members_that_no_set_holds_are_left_out_when_asked(run):
    h5py = pytest.importorskip("h5py")
    with h5py.File("a.h5", "w") as file:
        file["g/x"] = np.arange(3)
        file["reference"] = np.array([file.ref], h5py.ref_dtype)
    code, _, err = run("refs", "make", "a.h5", "--out", "a.json")
    assert code == 1 and err.endswith("; --skip leaves such members out\n") and not os.path.exists("a.json")
    assert run("refs", "make", "a.h5", "--skip", "--out", "a.json")[0] == 0
    assert zcore.open("a.json")["g/x"][:].tolist() == [0, 1, 2]
    assert "the whole file, a.h5\n" in run("refs", "make", "a.h5/g", "--out", "b.json")[2]


def test_what_is_no_set(run, save):
    for name in (save("a.npy", np.arange(3)), "none.json"):
        code, out, err = run("refs", "check", name)
        assert (code, out) == (1, "") and len(err.splitlines()) == 1


def test_a_path_goes_into_a_reference_set_in_parquet(run):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    zcore.create_group("v2.zarr", zarr_format=2).create_array("in/t", data=np.arange(12).reshape(3, 4), chunks=(2, 2))
    os.mkdir("set.parq")
    os.mkdir("set.parq/in")
    os.mkdir("set.parq/in/t")
    documents = zcore.DirectoryStore("v2.zarr")
    metadata = {name: json.loads(documents.get(name)) for name in (".zgroup", "in/.zgroup", "in/t/.zarray")}
    with open("set.parq/.zmetadata", "w", encoding="utf-8") as file:
        json.dump({"metadata": metadata, "record_size": 10}, file)
    paths = [os.path.abspath(f"v2.zarr/in/t/{key}") for key in ("0.0", "0.1", "1.0", "1.1")]
    pq.write_table(pa.table({"path": paths, "offset": pa.array([0] * 4, pa.int64()), "size": pa.array(
        [0] * 4, pa.int64()), "raw": pa.array([None] * 4, pa.binary())}), "set.parq/in/t/refs.0.parq")
    assert run("tree", "set.parq") == (0, "set.parq\n└── in\n    └── t  3 x 4 int64\n", "")
    assert run("ls", "set.parq/in") == (0, "t\n", "")
    code, out, err = run("cat", "set.parq/in/t", "1", "--json")
    assert (code, json.loads(out)) == (0, [4, 5, 6, 7]), err
    assert run("cp", "set.parq/in", "copy.zarr")[0] == 0
    assert np.array_equal(zcore.open("copy.zarr")["t"][...], np.arange(12).reshape(3, 4))
    assert "none" in run("cat", "set.parq/none")[2]


def test_a_set_of_a_name_of_parquet_is_not_written_as_json(run, weather):
    code, out, err = run("refs", "make", weather, "--out", "set.parq")
    assert code == 1 and "name it .json" in err and not os.path.exists("set.parq")


def test_a_reference_set_of_an_asdf_file(run):
    pytest.importorskip("yaml")
    a = np.arange(12.0).reshape(3, 4)
    for compression in (None, "zlib"):
        zcore.asdf.write("a.asdf", {"x": {"y": a, "z": a[::2, 1], "n": 1}}, compression=compression)
        assert run("refs", "make", "a.asdf", "--out", "a.json") == (0, "", "")
        assert run("diff", "a.asdf", "a.json") == (0, "", "")
        assert run("refs", "check", "a.json")[0] == 0 and run("verify", "a.json")[0] == 0
        refs = zcore.ReferenceStore("a.json").to_v0()
        # What lies in the file as it is, and in order, is pointed to.
        assert isinstance(refs["x/y/0.0"], list) == (compression is None) and isinstance(refs["x/z/0"], str)
