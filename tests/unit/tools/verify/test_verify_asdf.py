"""`zcore.verify` of ASDF files: all blocks are read, each once, and a fault tells which arrays it reaches."""
import json
import os

import numpy as np
import pytest

import zcore
from zcore.asdf import checksums

pytest.importorskip("yaml")

A = np.arange(4000.0).reshape(50, 80)
N = np.arange(500, dtype="i8")


@pytest.fixture(params=[None, "zlib", "bzp2", "lz4"])
def path(request, tmp_path):
    """A file of three blocks, of which the last belongs to no array."""
    path = tmp_path / "a.asdf"
    zcore.asdf.write(path, {"x": {"whole": A, "part": A[3:, ::2]}, "n": N, "text": "t", "list": [[1, 2]]},
                     compression=request.param)
    with zcore.asdf.open(path, "rw") as file:
        file.append_block(b"belongs to nobody", compression=request.param)
    return path


def blocks_of(path):
    with zcore.asdf.open(path) as file:
        return [(block.offset, block.data_offset, block.used) for block in file.blocks]


def damage(path, offset, new=b"\xa5"):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(new)


def found_in(place, path=""):
    report = zcore.verify(place, path=path)
    json.dumps(report.as_dict(), allow_nan=False)
    return {(problem.kind, problem.key, problem.path) for problem in report.problems}


def test_nothing_is_wrong(path):
    told = []
    report = zcore.verify(path, progress=lambda done, total: told.append((done, total)))
    assert report.ok and repr(report).endswith("bytes decoded>")
    assert (report.n_groups, report.n_arrays, report.n_objects) == (2, 3, 3)
    assert report.n_bytes == A.nbytes + A[3:, ::2].nbytes + N.nbytes
    total = report.n_bytes + A.nbytes + N.nbytes + 17
    assert told[-1] == (total, total) and told == sorted(told)


@pytest.mark.parametrize("number, reaches", [(0, "x/whole"), (1, "n"), (2, "")])
def test_every_block_is_read(number, reaches, path):
    damage(path, blocks_of(path)[number][1] + 9)
    expected = {("damaged", f"block {number}", reaches)}
    assert found_in(path) == expected
    assert found_in(path, path="n") == (expected if number == 1 else set())
    assert found_in(path, path="x") == (expected if number == 0 else set())


def test_converted_line_ends_are_named(tmp_path):
    """CR LF became LF in the block of `b`; `a` lies before it."""
    path = tmp_path / "a.asdf"
    zcore.asdf.write(path, {"a": N, "b": np.frombuffer(b"ab\r\ncdefghijkl", "u1"), "c": N + 1}, checksum=False)
    path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n"))
    assert found_in(path) == {("damaged", "block 1", ""), ("damaged", "b/.zarray", "b"), ("damaged", "c/.zarray", "c")}


def test_a_shared_block_is_read_once(path, monkeypatch):
    checked, check = [], checksums.check
    monkeypatch.setattr("zcore.stores.asdf.store.check", lambda block: (checked.append(block.number), check(block)))
    assert zcore.verify(path).ok and sorted(checked) == [0, 1, 2]
    checked.clear()
    assert zcore.verify(path, path="x").ok and checked == [0]
    assert zcore.verify(zcore.open(path)["n"]).ok and checked == [0, 1]


def test_a_file_that_ends_early(path):
    offset, begin, used = blocks_of(path)[1]
    os.truncate(path, begin + used // 2)
    assert found_in(path) == {("damaged", "block 1", ""), ("damaged", "n/.zarray", "n")}
    os.truncate(path, blocks_of_truncated(path) + 20)
    assert ("damaged", "block 0", "") in found_in(path)


def blocks_of_truncated(path):
    with zcore.asdf.open(path) as file:
        return file.blocks.found.offsets[0]


def test_a_header_that_is_gone(path):
    damage(path, blocks_of(path)[1][0], b"????")
    kinds = found_in(path)
    assert {kind for kind, _, _ in kinds} == {"damaged"} and ("damaged", "n/.zarray", "n") in kinds


@pytest.mark.parametrize("old, new", [(b"shape: [500]", b"shape: [900]"), (b"datatype: int64", b"datatype: int99"),
                                      (b"source: 1", b"source: 7")])
def test_an_array_that_contradicts_its_block(old, new, path):
    raw = path.read_bytes()
    assert old in raw
    path.write_bytes(raw.replace(old, new))
    (problem,) = zcore.verify(path).problems
    assert problem.path == "n" and problem.kind in ("damaged", "wrong document", "unreadable")
    assert zcore.verify(path, path="x").ok


def test_elements_in_the_tree(tmp_path):
    path = tmp_path / "inline.asdf"
    zcore.asdf.write(path, {"a": zcore.asdf.Inline(N)})
    assert zcore.verify(path).n_objects == 1 and zcore.verify(path).ok
    path.write_bytes(path.read_bytes().replace(b"499", b"4x9"))
    (problem,) = zcore.verify(path).problems
    assert problem.path == "a"


def test_arrays_without_elements(tmp_path):
    """They have no chunks, so nothing lies outside their grid."""
    path, rows = tmp_path / "a.asdf", tmp_path / "rows.asdf"
    zcore.asdf.write(path, {"a": np.zeros((0, 3)), "b": zcore.asdf.Inline(np.zeros((2, 0)))})
    with zcore.asdf.stream(rows, {"a": zcore.asdf.Stream((3,), "<f4")}):
        pass
    for file in (path, rows):
        assert zcore.verify(file).problems == []
        assert [key for key in zcore.references(file).list() if ".z" not in key] == []
        assert zcore.open(file)["a"][...].shape == (0, 3)


def test_blocks_of_other_files(tmp_path):
    path = tmp_path / "a.asdf"
    zcore.asdf.write(path, {"x": {"whole": A, "part": A[3:, ::2]}, "n": N})
    other = zcore.asdf.explode(path, str(tmp_path / "e.asdf"))
    assert zcore.verify(other[0]).ok
    damage(other[2], blocks_of(other[2])[0][1] + 9)
    assert found_in(other[0]) == {("damaged", os.path.basename(other[2]), "n")}
    os.remove(other[1])
    problems = zcore.verify(other[0]).problems
    assert {problem.path for problem in problems} == {"n", "x/whole", "x/part"}


def test_a_mapping_of_chunks(tmp_path):
    """A chunk of a codec is decoded as well: a block that is whole may hold none."""
    document = {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i4", "compressor": {"id": "zlib", "level": 1},
                "fill_value": 0, "order": "C", "filters": None}
    import zlib

    from zcore.asdf import TaggedMapping
    path = tmp_path / "chunks.asdf"
    for second, expected in ((zlib.compress(np.array([3, 4], "<i4").tobytes()), set()),
                             (b"no zlib stream", {("damaged", "c/1", "c")})):
        node = TaggedMapping("asdf://asdf-format.org/zarr/tags/zarr-1.0.0",
                             {".zarray": document, "chunk_block_map": 0})
        zcore.asdf.write(path, {"c": node})
        with zcore.asdf.open(path, "rw") as file:
            for content in (np.array([1, 2], "<i4"), zlib.compress(np.array([1, 2], "<i4").tobytes()), second):
                file.append_block(content)
        assert found_in(path) == expected
    damage(path, blocks_of(path)[0][1], b"\x09")
    kinds = found_in(path)
    assert ("damaged", "block 0", "c") in kinds or ("damaged", "block 0", "") in kinds
    assert ("damaged", "c/.zarray", "c") in kinds


def test_nothing_is_repaired(path):
    with pytest.raises(zcore.ReadOnlyError):
        zcore.verify(path, repair=True)
