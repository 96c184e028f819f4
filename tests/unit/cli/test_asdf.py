"""The verb `asdf`: what it prints, writes, and finds wrong."""
import os

import numpy as np
import pytest

import zcore
from zcore import __main__ as command

pytest.importorskip("yaml")

A = np.arange(12.0).reshape(3, 4)


@pytest.fixture
def path(tmp_path):
    zcore.asdf.write(tmp_path / "a.asdf", {"x": {"a/b": A}, "list": [A[1:], "text"], "n": np.arange(5)},
                     compression="zlib")
    return str(tmp_path / "a.asdf")


def damage(path, number):
    with zcore.asdf.open(path) as file:
        offset = file.blocks[number].data_offset
    with open(path, "r+b") as file:
        file.seek(offset + 8)
        file.write(b"?")


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


def test_verify(path, capsys):
    assert command.main(["asdf", "verify", path]) == 0
    assert capsys.readouterr().out == f"{path}: ok; 2 blocks, 2 with a checksum\n"
    damage(path, 1)
    assert command.main(["asdf", "verify", path]) == 1
    out = capsys.readouterr().out
    assert "block 1 at byte" in out and out.endswith(f"{path}: 1 fault; 2 blocks, 1 with a checksum\n")
    os.truncate(path, os.path.getsize(path) - 60)
    for action in ("info", "blocks", "verify"):
        assert command.main(["asdf", action, path]) == 1
        printed = capsys.readouterr()
        assert "block 1: the block at byte" in printed.out + printed.err


def test_extract(path, capsys, tmp_path):
    target = tmp_path / "out"
    for name, expected in (("/x/a~1b", A), ("list/0", A[1:]), ("/n", np.arange(5))):
        assert command.main(["asdf", "extract", path, name, str(target)]) == 0
        assert np.array_equal(np.load(target), expected)
    assert command.main(["asdf", "extract", path, "0", str(target)]) == 0
    assert target.read_bytes() == A.tobytes()
    assert command.main(["asdf", "extract", path, "/none", str(target)]) == 1
    assert "its arrays are /x/a~1b, /list/0, /n" in capsys.readouterr().err
    assert command.main(["asdf", "extract", path, "7", str(target)]) == 1


def test_explode_and_implode(path, capsys, tmp_path):
    assert command.main(["asdf", "explode", path]) == 0
    written = capsys.readouterr().out.splitlines()
    assert [os.path.basename(name) for name in written] == [
        "a_exploded.asdf", "a_exploded0000.asdf", "a_exploded0001.asdf"]
    assert command.main(["asdf", "implode", written[0], str(tmp_path / "one.asdf")]) == 0
    with zcore.asdf.open(tmp_path / "one.asdf") as file:
        assert np.array_equal(file.tree["x"]["a/b"], A) and len(file.blocks) == 2
