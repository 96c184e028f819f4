"""The verb `asdf`: what it prints, writes, and finds wrong."""
import json
import os

import numpy as np
import pytest

import zcore
from zcore import __main__ as command

pytest.importorskip("yaml")

A = np.arange(12.0).reshape(3, 4)


@pytest.fixture
def path(tmp_path):
    zcore.asdf.write(tmp_path / "a.asdf", {"x": {"a/b": A}, "list": [A[1:], "text"], "n": np.arange(5, dtype="i8")},
                     compression="zlib")
    return str(tmp_path / "a.asdf")


def test_info(path, capsys):
    assert command.main(["asdf", "info", path]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "header   : ASDF 1.0.0, standard 1.6.0" and "blocks   : 2, found by the index" in lines
    assert [line.split()[2] for line in lines if line.startswith("array")] == ["/x/a~1b", "/list/0", "/n"]


def test_blocks(path, capsys):
    assert command.main(["asdf", "blocks", path]) == 0
    header, first, second = capsys.readouterr().out.splitlines()
    assert header.split() == ["block", "offset", "allocated", "used", "decoded", "md5", "compression"]
    assert first.split()[0] == "0" and first.split()[4:] == ["96", "yes", "zlib"]


def test_a_file_that_ends_in_a_block(path, capsys):
    os.truncate(path, os.path.getsize(path) - 60)
    for action in ("info", "blocks"):
        assert command.main(["asdf", action, path]) == 1
        printed = capsys.readouterr()
        assert "block 1: the block at byte" in printed.out + printed.err


def test_extract(path, capsys, tmp_path):
    target = tmp_path / "out"
    for name, expected in (("/x/a~1b", A), ("list/0", A[1:]), ("/n", np.arange(5, dtype="i8"))):
        assert command.main(["asdf", "extract", path, name, str(target)]) == 0
        assert np.array_equal(np.load(target), expected)
    assert command.main(["asdf", "extract", path, "0", str(target)]) == 0
    assert target.read_bytes() == A.tobytes()
    assert command.main(["asdf", "extract", path, "/none", str(target)]) == 1
    assert "its arrays are /x/a~1b, /list/0, /n" in capsys.readouterr().err
    assert command.main(["asdf", "extract", path, "7", str(target)]) == 1


def test_extract_replaces_a_file_in_one_step(path, tmp_path):
    target = tmp_path / "out"
    target.write_bytes(b"old")
    with open(target, "rb") as reader:
        assert command.main(["asdf", "extract", path, "/n", str(target)]) == 0
        assert reader.read() == b"old"
    with zcore.asdf.open(path) as file:
        block = file.blocks[0].read()
    assert command.main(["asdf", "extract", path, "/n", path]) == 1     # by its ending no .npy file
    assert command.main(["asdf", "extract", path, "0", path]) == 0
    with open(path, "rb") as file:
        assert file.read() == bytes(block)


def test_explode_and_implode(path, capsys, tmp_path):
    assert command.main(["asdf", "explode", path]) == 0
    written = capsys.readouterr().out.splitlines()
    assert [os.path.basename(name) for name in written] == [
        "a_exploded.asdf", "a_exploded0000.asdf", "a_exploded0001.asdf"]
    assert command.main(["asdf", "implode", written[0], str(tmp_path / "one.asdf")]) == 0
    with zcore.asdf.open(tmp_path / "one.asdf") as file:
        assert np.array_equal(file.tree["x"]["a/b"], A) and len(file.blocks) == 2


def test_a_mask_is_left_aside(tmp_path, run):
    zcore.asdf.write("m.asdf", {"m": np.ma.array([1, 2, 3], mask=[0, 1, 0])})
    assert run("asdf", "extract", "m.asdf", "m", "m.npy") == (0, "", "")
    assert np.load("m.npy").tolist() == [1, 2, 3]


# JSON

def shown(run, *arguments, code=0):
    found, out, err = run("asdf", *arguments, "--json")
    assert found == code
    return json.loads(out)


def test_info_for_programs(path, run):
    found = shown(run, "info", path)
    assert found["header"] == "1.0.0" and found["standard"] == "1.6.0" and found["comments"] == ["#ASDF_STANDARD 1.6.0"]
    assert found["n_blocks"] == 2 and found["is_indexed"] is True and found["tree_nbytes"] > 100
    assert found["arrays"] == [
        {"path": "/x/a~1b", "shape": [3, 4], "dtype": "float64", "source": 0},
        {"path": "/list/0", "shape": [2, 4], "dtype": "float64", "source": 0},
        {"path": "/n", "shape": [5], "dtype": "int64", "source": 1}]


def test_an_array_that_is_damaged_has_its_fault(run):
    zcore.asdf.write("bad.asdf", {"a": A})
    with open("bad.asdf", "rb") as file:
        text = file.read()
    with open("bad.asdf", "wb") as file:
        file.write(text.replace(b"datatype: float64", b"datatype: floaty4"))
    assert "floaty4" in shown(run, "info", "bad.asdf")["arrays"][0]["fault"]
    code, out, _ = run("asdf", "info", "bad.asdf")
    assert code == 0 and "array    : /a <NDArrayNode datatype 'floaty4' is not known>" in out


def test_blocks_for_programs(path, run):
    first, second = shown(run, "blocks", path)
    with zcore.asdf.open(path) as file:
        block = file.blocks[0]
        assert first == {"block": 0, "offset": block.offset, "allocated": block.allocated, "used": block.used,
                         "decoded": 96, "md5": block.checksum.hex(), "compression": "zlib", "is_streamed": False}
    assert second["block"] == 1 and second["decoded"] == 40
    zcore.asdf.write("plain.asdf", {"n": A}, checksum=False)
    (plain,) = shown(run, "blocks", "plain.asdf")
    assert plain["md5"] is None and plain["compression"] is None
    zcore.asdf.write("none.asdf", {})
    assert shown(run, "blocks", "none.asdf") == [] and run("asdf", "blocks", "none.asdf") == (0, "", "")


def test_what_was_written_for_programs(path, run, tmp_path):
    assert shown(run, "extract", path, "0", "block.bin") == {"written": ["block.bin"]}
    exploded = shown(run, "explode", path)["written"]
    assert [os.path.basename(name) for name in exploded] == [
        "a_exploded.asdf", "a_exploded0000.asdf", "a_exploded0001.asdf"]
    (one,) = shown(run, "implode", exploded[0], "one.asdf")["written"]
    assert os.path.basename(one) == "one.asdf" and os.path.isfile(one)


# what is wrong

@pytest.mark.parametrize("arguments, sentence", [
    (["info", "none.asdf"], "there is no file {folder}/none.asdf"),
    (["info", "http://e.org/a.asdf"], "'http://e.org/a.asdf' is remote, and only local ASDF files are read"),
    (["blocks", "text"], "{folder}/text: the first line is b'no ASDF', expected '#ASDF' and a version such as 1.0.0"),
    (["extract", "a.asdf", "-3", "o"], "{folder}/a.asdf: there is no block -1, the file has 2"),
    (["extract", "a.asdf", "0", "no/o"], "cannot write no/o: No such file or directory"),
    (["extract", "a.asdf", "/list", "o"],
     "{folder}/a.asdf has no array '/list'; its arrays are /x/a~1b, /list/0, /n"),
    (["implode", "none.asdf", "o"], "there is no file {folder}/none.asdf"),
    (["explode", "text", "o"], "{folder}/text: the first line is b'no ASDF', expected '#ASDF' and a version such as "
                               "1.0.0"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")
@pytest.mark.parametrize("json", [[], ["--json"]], ids=["text", "json"])
def test_what_fails_is_one_sentence(arguments, sentence, json, path, run, tmp_path):
    (tmp_path / "text").write_text("no ASDF\n")
    assert run("asdf", *arguments, *json) == (1, "", f"zcore asdf: {sentence.format(folder=tmp_path)}\n")
    assert not (tmp_path / "o").exists()


def test_names_do_nothing_to_a_terminal(run):
    zcore.asdf.write("e\x1b.asdf", {"\x1b[2J": A, **{f"a{i}": A for i in range(9)}}, compression="zlib")
    with zcore.asdf.open("e\x1b.asdf") as file:
        offset = file.blocks[0].offset
    for arguments in (["info", "e\x1b.asdf"], ["extract", "e\x1b.asdf", "none", "o"],
                      ["explode", "e\x1b.asdf"]):
        _, out, err = run("asdf", *arguments)
        assert "\\x1b" in out + err and "\x1b" not in out + err
    assert "a1, /a2, /a3 and 5 more" in run("asdf", "extract", "e\x1b.asdf", "none", "o")[2]
    with open("e\x1b.asdf", "r+b") as file:
        file.seek(offset + 10)
        file.write(b"\x1b[2J")
    code, out, err = run("asdf", "blocks", "e\x1b.asdf")
    assert "\x1b" not in out + err


def test_debug_stands_before_the_action_or_behind_its_arguments(path):
    for arguments in (["asdf", "--debug", "info", "none.asdf"], ["asdf", "info", "none.asdf", "--debug"]):
        with pytest.raises(OSError):
            command.main(arguments)
