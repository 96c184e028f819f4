"""ASDF files written, updated, streamed, exploded; and what a kill leaves of them."""
import errno
import hashlib
import os
import re
import stat
import zlib
from pathlib import Path

import numpy as np
import pytest

import zcore
from zcore import replacing
from zcore.asdf import file_layout, writing
from zcore.asdf.writing import NewBlocks
from zcore.errors import (
    AsdfFormatError,
    ChecksumError,
    NodeExistsError,
    ReadOnlyError,
    StoreError,
    UnsupportedError,
)

pytest.importorskip("yaml")

A = np.arange(300, dtype="<f8").reshape(10, 30)
B = np.arange(50, dtype=">i2")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.asdf"


def check(path, n_blocks, **arrays):
    """Check the arrays of a file, and its checksums."""
    with zcore.asdf.open(path) as file:
        assert len(file.blocks) == n_blocks
        file.verify()
        assert {name for name in file.tree if name != "asdf_library"} == set(arrays)
        for name, value in arrays.items():
            found = file.tree[name]
            if isinstance(value, np.ndarray):
                found = found.read()
                assert found.dtype == value.dtype and np.array_equal(found, value)
            else:
                assert found == value


def test_a_written_file_byte_by_byte(path):
    """AS-HDR-01, AS-COM-02, AS-TREE-03, AS-BLK-01, AS-CHK-01, AS-IDX-01, AS-IDX-10: in the order of the file_layout."""
    zcore.asdf.write(path, {"a": A, "b": B})
    data = path.read_bytes()
    assert data.startswith(b"#ASDF 1.0.0\n#ASDF_STANDARD 1.6.0\n%YAML 1.1\n")
    first = data.index(b"\n...\n") + 5
    second = first + 54 + A.nbytes
    assert data[first:] == (
        file_layout.render_block_header(48, 0, b"", A.nbytes, A.nbytes, A.nbytes, hashlib.md5(A).digest()) + A.tobytes()
        + file_layout.render_block_header(48, 0, b"", 100, 100, 100, hashlib.md5(B).digest()) + B.tobytes()
        + b"#ASDF BLOCK INDEX\n%%YAML 1.1\n--- [%d, %d]\n...\n" % (first, second))
    check(path, 2, a=A, b=B)


def test_without_checksum_or_index(path):
    """AS-CHK-01, AS-IDX-10: both are left out on request."""
    zcore.asdf.write(path, {"a": A}, checksum=False, index=False)
    data = path.read_bytes()
    assert data.endswith(bytes(16) + A.tobytes()) and b"INDEX" not in data
    check(path, 1, a=A)


def test_nothing_to_index(path):
    """AS-IDX-08, AS-IDX-10, AS-HDR-04: without blocks there is no index; without a tree no comments either."""
    zcore.asdf.write(path, {"a": 1}, pad=100, block_align=512)
    assert path.read_bytes().endswith(b"\n...\n")
    check(path, 0, a=1)
    zcore.asdf.write(path, None)
    assert path.read_bytes() == b"#ASDF 1.0.0\n"


@pytest.mark.parametrize("name", ["zlib", "bzp2", "lz4"])
def test_compressed_blocks(path, name):
    """AS-CMP-01, AS-CMP-02, AS-CHK-02: the checksum is that of the stored bytes."""
    zcore.asdf.write(path, {"a": A, "b": B}, compression=name)
    with zcore.asdf.open(path) as file:
        block = file.blocks[0]
        stored = b"".join(block.stored_pieces())
        assert block.compression == name and block.checksum == hashlib.md5(stored).digest()
        assert block.used == len(stored) < block.data_size == A.nbytes
    check(path, 2, a=A, b=B)


@pytest.mark.parametrize("name", ["blsc", "zstd", "gzip", "ZLIB", 5])
def test_other_compressions_are_not_written(path, name):
    """AS-CMP-05: names that only some readers know."""
    path.write_bytes(b"as it was")
    with pytest.raises((ValueError, TypeError)):
        zcore.asdf.write(path, {"a": A}, compression=name)
    assert path.read_bytes() == b"as it was" and len(os.listdir(path.parent)) == 1


def test_room_and_alignment(path):
    """AS-PAD-01, AS-PAD-03, AS-UPD-05: blanks behind the tree, blocks at multiples, room in each block."""
    for pad, align in ((0, 1), (100, 1), (0, 512), (1000, 4096), (7, 3)):
        zcore.asdf.write(path, {"a": A, "b": B}, pad=pad, block_align=align)
        check(path, 2, a=A, b=B)
        with zcore.asdf.open(path) as file:
            assert file.blocks.found.is_indexed
            end = file.front.tree_end
            for block in file.blocks:
                assert block.offset % align == 0 and pad <= block.offset - end < pad + align
                end = block.data_offset + block.used
            begin, offset = file.front.tree_end, file.blocks[0].offset
        assert path.read_bytes()[begin:offset] == b" " * (offset - begin)
        zcore.asdf.write(path, {"b": B}, pad=pad, block_align=align, index=False)
        check(path, 1, b=B)
    for wrong in ({"pad": -1}, {"block_align": 0}, {"pad": 1.0}, {"block_align": 2**40}):
        with pytest.raises(ValueError, match="expected an integer"):
            zcore.asdf.write(path, {}, **wrong)


def test_arrays_that_share_memory_share_a_block(path):
    """AS-BLK-10, AS-ND-22: views are strides of one block; so are arrays read from one file, written to another."""
    other = path.with_name("b.asdf")
    zcore.asdf.write(path, {"a": A, "rows": A[2:5, ::2], "turned": A[::-1], "b": B}, compression="zlib")
    check(path, 2, a=A, rows=A[2:5, ::2], turned=A[::-1], b=B)
    with zcore.asdf.open(path) as file:
        stored = b"".join(file.blocks[0].stored_pieces())
        zcore.asdf.write(other, file.tree)
        with zcore.asdf.open(other) as copy:
            assert len(copy.blocks) == 2 and b"".join(copy.blocks[0].stored_pieces()) == stored
        zcore.asdf.write(other, file.tree, compression="lz4")
    check(other, 2, a=A, rows=A[2:5, ::2], turned=A[::-1], b=B)
    with zcore.asdf.open(other) as copy:
        assert [block.compression for block in copy.blocks] == ["lz4", "lz4"]


def test_numbers_of_new_blocks():
    blocks = NewBlocks("lz4")
    first, second = bytearray(10), bytearray(10)
    assert [blocks.add(x) for x in (first, second, first, memoryview(first)[:5])] == [0, 1, 0, 2]
    assert len(blocks.contents) == 3 and blocks.compression == "lz4"
    assert blocks.add(b"x", streamed=True) == -1
    with pytest.raises(ValueError, match="one streamed block"):
        blocks.add(b"y", streamed=True)


def damage(path, number):
    with zcore.asdf.open(path) as file:
        offset = file.blocks[number].data_offset
    with open(path, "r+b") as file:
        file.seek(offset + 5)
        file.write(b"?")


def test_damage_is_not_copied_with_a_new_checksum(path):
    """AS-CHK-01, AS-CHK-02: a block is proven before it is copied as it is stored."""
    zcore.asdf.write(path, {"a": A}, compression="zlib")
    damage(path, 0)
    with zcore.asdf.open(path) as file, pytest.raises((ChecksumError, AsdfFormatError)):
        zcore.asdf.write(path.with_name("b.asdf"), file.tree)
    assert os.listdir(path.parent) == ["a.asdf"]
    with zcore.asdf.open(path, verify=False) as file:
        zcore.asdf.write(path.with_name("b.asdf"), file.tree)
    with zcore.asdf.open(path.with_name("b.asdf")) as file, pytest.raises((ChecksumError, AsdfFormatError)):
        file.verify()


def test_checksum_of_decoded_bytes_becomes_that_of_stored_ones(path, asdf_bytes):
    """AS-CHK-02: in a copy."""
    content = zlib.compress(b"x" * 1000)
    for digest in (hashlib.md5(b"x" * 1000).digest(), bytes(16)):
        made = asdf_bytes.block(content, compression=b"zlib", data_size=1000, checksum=digest)
        path.write_bytes(asdf_bytes.file(made))
        zcore.asdf.defragment(path)
        with zcore.asdf.open(path) as file:
            assert file.blocks[0].checksum == hashlib.md5(content).digest() and file.verify() == 1


def test_blocks_of_unknown_compression_are_copied(path, asdf_bytes):
    """AS-CMP-01: as they are, with their checksum, which cannot be proven."""
    made = asdf_bytes.block(b"xyz", compression=b"????", data_size=1000, checksum=b"c" * 16)
    path.write_bytes(asdf_bytes.file(made, b"  ", asdf_bytes.block(b"ab")))
    with pytest.warns(UserWarning, match="belong to neither"):
        zcore.asdf.defragment(path)
    made = asdf_bytes.block(b"xyz", compression=b"????", data_size=1000, checksum=b"c" * 16)
    after = asdf_bytes.block(b"ab", checksum=hashlib.md5(b"ab").digest())
    assert path.read_bytes().startswith(asdf_bytes.file(made, after) + b"#ASDF BLOCK INDEX")


# New files in place of old ones


def test_mode_and_links_stay(path):
    zcore.asdf.write(path, {"a": 1})
    os.chmod(path, 0o640)
    link = path.with_name("link.asdf")
    link.symlink_to(path)
    zcore.asdf.write(link, {"a": 2})
    assert link.is_symlink() and stat.S_IMODE(path.stat().st_mode) == 0o640
    check(path, 0, a=2)


def test_what_cannot_be_written_leaves_the_file_as_it_was(path, tmp_path):
    zcore.asdf.write(path, {"a": A})
    before = path.read_bytes()
    with pytest.raises(TypeError):
        zcore.asdf.write(path, {"a": object()})
    with pytest.raises(StoreError):
        zcore.asdf.write(tmp_path / "no" / "a.asdf", {"a": A})
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["a.asdf"]


class Killed(BaseException):
    """The process ends here."""


class Calls:
    """Counts calls that change a file, and ends the process at one, after a part of its bytes."""

    def __init__(self, monkeypatch):
        self.n = 0
        self.last = None
        for name in ("pwrite", "ftruncate", "fsync", "replace"):
            monkeypatch.setattr(os, name, self.counted(name, getattr(os, name)))
        for name in ("write_out", "barrier"):
            monkeypatch.setattr(replacing, name, self.counted(name, getattr(replacing, name)))

    def counted(self, name, call):
        def counting(*arguments):
            self.n += 1
            if self.last is not None and self.n > self.last:
                if name == "pwrite" and self.n == self.last + 1:
                    fd, data, offset = arguments
                    call(fd, bytes(data)[:len(data) // 2], offset)
                raise Killed
            return call(*arguments)
        return counting


def every_kill(calls, act):
    """Run `act` with a kill at each call in turn, and at last without; yields after each."""
    last = 0
    while True:
        calls.n, calls.last = 0, last
        try:
            act()
        except Killed:
            calls.last = None
            yield True
        else:
            calls.last = None
            yield False
            return
        last += 1


def test_a_kill_leaves_the_old_file_or_the_new_one(path, monkeypatch):
    """AS-UPD-02: at every call that changes a file."""
    zcore.asdf.write(path, {"a": A})
    calls = Calls(monkeypatch)
    n = 0
    for is_killed in every_kill(calls, lambda: zcore.asdf.write(path, {"a": B, "b": A}, fsync=True)):
        n += is_killed
        with zcore.asdf.open(path) as file:
            is_old = "b" not in file.tree
        check(path, 1, a=A) if is_old else check(path, 2, a=B, b=A)
    assert n > 7 and not is_old


def test_update_replaces_the_file(path):
    """AS-UPD-02, AS-COM-04: the tree as it is now, comments kept; what was read before stays readable."""
    zcore.asdf.write(path, {"a": A, "b": B}, compression="zlib")
    data = path.read_bytes().replace(b"#ASDF_STANDARD 1.6.0\n", b"#ASDF_STANDARD 1.5.0\n# a comment\n")
    path.write_bytes(data)
    with zcore.asdf.open(path, "rw") as file:
        old = file.tree["b"]
        file.tree["a"] = A * 2
        file.tree["c"] = "text"
        assert file.update(compression=None) is False
        assert file.comments == ["#ASDF_STANDARD 1.5.0", "# a comment"] and file.standard == "1.5.0"
        assert b"core/ndarray-1.0.0" in file.tree_text and b"core/ndarray-1.1.0" not in file.tree_text
        assert np.array_equal(file.tree["a"], A * 2) and np.array_equal(old.read(), B)
        assert file.blocks[1].compression == "zlib" and file.blocks[0].compression is None
    check(path, 2, a=A * 2, b=B, c="text")
    with zcore.asdf.open(path) as file, pytest.raises(ReadOnlyError):
        file.update()


def test_update_drops_blocks_that_nothing_refers_to(path):
    zcore.asdf.write(path, {"a": A, "b": B})
    with zcore.asdf.open(path, "rw") as file:
        del file.tree["a"]
        file.update()
        assert len(file.blocks) == 1
    check(path, 1, b=B)


def test_update_keeps_all_blocks_where_other_nodes_may_refer_to_them(path):
    """AS-BLK-10, AS-ND-21: a block that no array refers to keeps its number, and so do all others."""
    zcore.asdf.write(path, {"a": A})
    with zcore.asdf.open(path, "rw") as file:
        assert file.append_block(b"by number") == 1
        file.tree["other"] = 1
        del file.tree["a"]
        file.tree["b"] = B
        file.update()
        assert [bytes(block.read()) for block in file.blocks] == [A.tobytes(), b"by number", B.tobytes()]
    check(path, 3, b=B, other=1)


def test_update_of_a_file_without_a_tree(path, asdf_bytes):
    path.write_bytes(asdf_bytes.file(asdf_bytes.block(b"ab"), tree=b"", comments=b""))
    with zcore.asdf.open(path, "rw") as file:
        assert file.tree == {} and file.update() is False
        assert path.read_bytes().startswith(b"#ASDF 1.0.0\n\xd3BLK") and bytes(file.blocks[0].read()) == b"ab"
        file.tree["b"] = B
        file.update()
    check(path, 2, b=B)


# In the space that there is


def test_in_place_the_tree_takes_the_space_before_the_first_block(path):
    """AS-UPD-01, AS-UPD-06, AS-PAD-03: blanks fill the rest, and offsets and index stay."""
    zcore.asdf.write(path, {"a": A, "long": "x" * 300}, pad=200)
    whole = path.read_bytes()
    with zcore.asdf.open(path, "rw") as file:
        offset = file.blocks[0].offset
        file.tree["long"] = "y"
        assert file.update(in_place=True) is True
        assert file.blocks.found.is_indexed and file.blocks[0].offset == offset
    data = path.read_bytes()
    assert data[offset:] == whole[offset:] and b"x" not in data[:offset].partition(b"long")[2]
    assert re.search(rb"\n\.\.\.\n *$", data[:offset])
    check(path, 1, a=A, long="y")


def test_a_tree_that_is_too_long_makes_a_new_file(path):
    """AS-UPD-02: never moved in place."""
    zcore.asdf.write(path, {"a": A})
    inode = path.stat().st_ino
    with zcore.asdf.open(path, "rw") as file:
        file.tree["long"] = "x" * 3000
        assert file.update(in_place=True) is False
    assert path.stat().st_ino != inode
    check(path, 1, a=A, long="x" * 3000)


def test_new_arrays_take_the_space_of_old_ones(path):
    """AS-UPD-03: content, then header, with its checksum and sizes; what does not fit follows the last block."""
    zcore.asdf.write(path, {"a": A, "b": B, "c": B + 1}, pad=300)
    with zcore.asdf.open(path, "rw") as file:
        before = [(block.offset, block.allocated) for block in file.blocks]
        file.tree["a"] = A[:4] * 3
        file.tree["b"] = np.arange(500)
        assert file.update(in_place=True) is True
        assert [(block.offset, block.allocated) for block in file.blocks][:3] == before and len(file.blocks) == 4
        assert file.blocks[0].used == 4 * 30 * 8 and file.blocks.found.is_indexed
    check(path, 4, a=A[:4] * 3, b=np.arange(500), c=B + 1)


@pytest.mark.parametrize("name", ["zlib", "lz4"])
def test_compressed_in_place(path, name):
    """AS-UPD-03: what counts is the stored size."""
    zcore.asdf.write(path, {"a": A, "b": B}, pad=300, compression=name)
    with zcore.asdf.open(path, "rw") as file:
        file.tree["a"] = np.zeros(10_000)
        assert file.update(in_place=True, compression=name) is True and len(file.blocks) == 2
        assert file.blocks[0].compression == name and file.blocks[0].data_size == 80_000
    check(path, 2, a=np.zeros(10_000), b=B)


def test_longer_headers_stay_in_place(path, asdf_bytes):
    """AS-BLK-01, AS-UPD-03: with what they have behind their fields."""
    text = (b"%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n--- !core/asdf-1.1.0\na: !core/ndarray-1.1.0\n  source: 0\n"
            b"  datatype: int8\n  byteorder: little\n  shape: [4]\n...\n")
    made = bytearray(asdf_bytes.block(b"abcd", header_size=100))
    made[54:106] = b"e" * 52
    path.write_bytes(asdf_bytes.file(bytes(made), tree=text, pad=b" " * 500))
    with zcore.asdf.open(path, "rw") as file:
        file.tree["a"] = np.arange(3, dtype="i1")
        assert file.update(in_place=True) is True
        offset = file.blocks[0].offset
    assert path.read_bytes()[offset + 54:offset + 109] == b"e" * 52 + bytes([0, 1, 2])
    check(path, 1, a=np.arange(3, dtype="i1"))


def test_order_of_writes_in_place(path, monkeypatch):
    """AS-UPD-03: content, block header, tree, and the disk brought up to date after each."""
    zcore.asdf.write(path, {"a": A, "b": B}, pad=100)
    with zcore.asdf.open(path, "rw") as file:
        file.tree["a"] = A + 1
        begin = file.blocks[0].offset
        seen = []
        pwrite, fsync = os.pwrite, os.fsync
        monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: seen.append(offset) or pwrite(fd, data, offset))
        monkeypatch.setattr(os, "fsync", lambda fd: seen.append("fsync") or fsync(fd))
        assert file.update(in_place=True) is True
    assert seen[:5] == [begin + 54, "fsync", begin, "fsync", 0] and seen[-1] == "fsync"


# Blocks that are appended


@pytest.mark.parametrize("name", [None, "zlib"])
@pytest.mark.parametrize("form", [{}, {"index": False}, {"pad": 50}, {"pad": 50, "index": False}])
def test_appended_block(path, name, form):
    """AS-UPD-07, AS-IDX-10: over the old index, with a new one behind it where there was one."""
    zcore.asdf.write(path, {"a": A}, **form)
    with zcore.asdf.open(path, "rw") as file:
        assert file.append_block(B, compression=name) == 1 and bytes(file.blocks[1].read()) == B.tobytes()
        assert file.append_block(b"", compression=name, checksum=False) == 2
        assert file.blocks.found.is_indexed is form.get("index", True)
        assert file.verify() == 2 and np.array_equal(file.tree["a"], A)
    check(path, 3, a=A)


def test_first_block_is_appended(path, asdf_bytes):
    """AS-UPD-07, AS-TREE-03: behind a tree that the file's end was the end of."""
    for tree in (asdf_bytes.TREE, asdf_bytes.TREE[:-1], b""):
        path.write_bytes(asdf_bytes.file(tree=tree))
        with zcore.asdf.open(path, "rw") as file:
            assert file.append_block(b"abc") == 0
        with zcore.asdf.open(path) as file:
            assert bytes(file.blocks[0].read()) == b"abc" and file.tree_text == (tree and asdf_bytes.TREE)


def test_nothing_follows_a_streamed_block(path, asdf_bytes):
    """AS-UPD-07, AS-STR-02."""
    path.write_bytes(asdf_bytes.file(asdf_bytes.block(b"rows", flags=1)))
    with zcore.asdf.open(path, "rw") as file, pytest.raises(ValueError, match="streamed"):
        file.append_block(b"x")
    with zcore.asdf.open(path) as file, pytest.raises(ReadOnlyError):
        file.append_block(b"x")


def test_a_kill_while_a_block_is_appended(path, monkeypatch, asdf_bytes):
    """AS-UPD-07: at every call, all old blocks and the tree are read; content that looks like blocks is none."""
    content = asdf_bytes.block(b"looks like one") * 3
    calls = Calls(monkeypatch)
    for form in ({}, {"index": False, "pad": 10}):
        n = 0
        zcore.asdf.write(path, {"a": A, "b": B}, **form)
        before = path.read_bytes()

        def append():
            with zcore.asdf.open(path, "rw") as file:
                file.append_block(content)

        for is_killed in every_kill(calls, append):
            n += 1
            with zcore.asdf.open(path) as file:
                assert np.array_equal(file.tree["a"].read(), A) and np.array_equal(file.tree["b"].read(), B)
                assert len(file.blocks) in (2, 3)
                if len(file.blocks) == 3:
                    assert file.blocks[2].data_size == len(content)
                    if not is_killed:
                        assert bytes(file.blocks[2].read()) == content
            if is_killed:
                path.write_bytes(before)
        assert n > 8


# Streams


def test_rows_are_appended(path):
    """AS-STR-01, AS-STR-02, AS-STR-04, AS-STR-05: bytes at the end, the header untouched, and no index."""
    with zcore.asdf.stream(path, {"a": A, "rows": zcore.asdf.Stream((2, 3), ">i4")}) as rows:
        empty = path.read_bytes()
        assert rows.shape == (2, 3) and rows.dtype == ">i4" and rows.n_rows == 0
        rows.append(np.arange(6).reshape(2, 3))
        rows.append(np.arange(24, dtype="i2").reshape(4, 2, 3))
        rows.append(np.empty((0, 2, 3), "i4"))
        assert rows.n_rows == 5
    assert path.read_bytes() == empty + np.r_[np.arange(6), np.arange(24)].astype(">i4").tobytes()
    assert empty[-54:] == file_layout.render_block_header(48, 1, b"", 0, 0, 0, bytes(16))
    with zcore.asdf.stream(path) as rows:
        assert repr(rows) == f"<RowWriter of {path}: {rows.n_rows} rows of shape (2, 3), dtype={np.dtype('>i4')}>"
        assert rows.n_rows == 5
        rows.append(np.ones((1, 2, 3), ">i4"))
        rows.flush()
    expected = np.r_[np.arange(6), np.arange(24), np.ones(6)].astype(">i4").reshape(6, 2, 3)
    check(path, 2, a=A, rows=expected)


def test_the_next_row_is_written_over_a_part_of_one(path):
    """AS-STR-04, AS-STR-05: what a kill has left. Nothing is cut off before: the shape in the file may be wrong."""
    with zcore.asdf.stream(path, {"rows": zcore.asdf.Stream((3,), "<i2")}) as rows:
        rows.append([1, 2, 3])
    with open(path, "ab") as file:
        file.write(b"12345")
    before = path.read_bytes()
    with zcore.asdf.stream(path) as rows:
        assert rows.n_rows == 1 and path.read_bytes() == before
        rows.append([4, 5, 6])
    check(path, 1, rows=np.array([[1, 2, 3], [4, 5, 6]], "<i2"))


def test_a_block_that_is_appended_while_the_file_is_open(path):
    """A reader that knows the size before finds the old blocks, or all."""
    zcore.asdf.write(path, {"a": A})
    with zcore.asdf.open(path) as reader, zcore.asdf.open(path, "rw") as writer:
        writer.append_block(bytes(5000))
        assert len(reader.blocks) == 2 and reader.blocks[1].read().nbytes == 5000
        assert np.array_equal(reader.tree["a"].read(), A)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()])
def test_rows_that_did_not_fit_leave_nothing(path, monkeypatch, error):
    """AS-STR-05: what came of them on a full disk, or before Ctrl-C, does not follow the rows that come later."""
    def fill(fd, data, offset):
        os.pwrite(fd, data[:13], offset)
        raise error

    with zcore.asdf.stream(path, {"rows": zcore.asdf.Stream((3,), "<i2")}) as rows:
        with monkeypatch.context() as patch:
            patch.setattr("zcore.asdf.streaming.write_at", fill)
            with pytest.raises((StoreError, KeyboardInterrupt), match="No space left|^$"):
                rows.append([[1, 2, 3]] * 4)
        rows.append([4, 5, 6])
    check(path, 1, rows=np.array([[4, 5, 6]], "<i2"))


def test_a_kill_while_rows_are_appended(path, monkeypatch):
    """AS-STR-05: rows that came whole are there."""
    with zcore.asdf.stream(path, {"rows": zcore.asdf.Stream((3,), "<i2")}) as rows:
        rows.append([1, 2, 3])
    calls = Calls(monkeypatch)

    def append():
        with zcore.asdf.stream(path) as rows:
            rows.append([[4, 5, 6]] * 3)

    expected = np.array([[1, 2, 3], [4, 5, 6], [4, 5, 6], [4, 5, 6]], "<i2")
    before = path.read_bytes()
    for _ in every_kill(calls, append):
        with zcore.asdf.open(path) as file:
            found = file.tree["rows"].read()
        assert 1 <= len(found) <= 4 and np.array_equal(found, expected[:len(found)])
        path.write_bytes(before)


def test_rows_that_do_not_fit(path):
    with zcore.asdf.stream(path, {"rows": zcore.asdf.Stream((3,), "<i2")}) as rows:
        for wrong, error in (([1, 2], ValueError), (5, ValueError), ([[1.5, 2, 3]], TypeError),
                             ([[[1, 2, 3]]], ValueError)):
            with pytest.raises(error):
                rows.append(wrong)
        assert rows.n_rows == 0
    with pytest.raises(ValueError, match="no Stream"):
        zcore.asdf.stream(path.with_name("b.asdf"), {"a": A})
    zcore.asdf.write(path, {"a": A})
    with pytest.raises(AsdfFormatError, match="no streamed array"):
        zcore.asdf.stream(path)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("new", [{"note": "new"}, {"b": B}, {"filler": "x" * 5000}])
def test_update_keeps_a_stream(path, new, in_place):
    """AS-STR-02, AS-ND-04: as the last block, with `*` rows, to which others are appended later."""
    expected = np.arange(10, dtype="<i2")
    with zcore.asdf.stream(path, {"filler": "x" * 500, "rows": zcore.asdf.Stream((), "<i2")}) as rows:
        rows.append(expected)
    with zcore.asdf.open(path, "rw") as file:
        file.tree["filler"] = ""
        file.tree.update(new)
        file.tree["part"] = file.tree["rows"]
        assert file.update(in_place=in_place) is (in_place and "note" in new)
        assert file.blocks[-1].is_streamed and file.tree["rows"].members["shape"] == ["*"]
        assert len(file.blocks) == 1 + ("b" in new)
    with zcore.asdf.stream(path) as rows:
        rows.append(expected)
    other = path.with_name("other.asdf")
    with zcore.asdf.open(path) as file:
        zcore.asdf.write(other, file.tree)
    with zcore.asdf.stream(other) as rows:
        rows.append(expected)
    with zcore.asdf.open(other) as file:
        assert np.array_equal(file.tree["rows"].read(), np.r_[[np.arange(10)] * 3].ravel())
        assert "b" not in new or np.array_equal(file.tree["b"].read(), B)


def test_a_stream_that_cannot_stay_one(path):
    """AS-STR-02, AS-STR-03: there is another one, or a compression."""
    other, expected = path.with_name("b.asdf"), np.arange(10, dtype="<i2")
    with zcore.asdf.stream(path, {"rows": zcore.asdf.Stream((), "<i2")}) as rows:
        rows.append(expected)
    with zcore.asdf.open(path) as file:
        zcore.asdf.write(other, file.tree, compression="zlib")
        check(other, 1, rows=expected)
        with zcore.asdf.stream(other, {**file.tree, "more": zcore.asdf.Stream((), "<i2")}) as rows:
            rows.append(expected + 1)
        check(other, 2, rows=expected, more=(expected + 1).astype("<i2"))
    with zcore.asdf.open(path, "rw") as file:
        file.update(compression="lz4")
        assert not file.blocks[0].is_streamed
    check(path, 1, rows=expected)


# What a tree says of other files and of the standard


@pytest.mark.parametrize("act", ["write", "explode"])
def test_relative_uris_of_another_directory(tmp_path, act):
    """AS-ND-05: they would lead nowhere, or to other arrays; `embed` brings these along."""
    (tmp_path / "sub").mkdir()
    zcore.asdf.write(tmp_path / "a.asdf", {"a": A})
    main = zcore.asdf.explode(tmp_path / "a.asdf")[0]
    beside, elsewhere = tmp_path / "b.asdf", tmp_path / "sub" / "b.asdf"
    with zcore.asdf.open(main) as file:
        zcore.asdf.write(beside, file.tree)
        check(beside, 0, a=A)
        for tree in (file.tree, {"list": [{"a": file.tree["a"]}]}):
            with pytest.raises(ValueError, match="embed=True"):
                zcore.asdf.write(elsewhere, tree)
        with pytest.raises(ValueError, match="embed=True"), zcore.asdf.stream(
                elsewhere, {**file.tree, "rows": zcore.asdf.Stream((), "<i2")}):
            pass
        assert not elsewhere.exists()
        zcore.asdf.write(elsewhere, file.tree, embed=True)
        check(elsewhere, 1, a=A)
        (tmp_path / "link").symlink_to(tmp_path)
        zcore.asdf.write(tmp_path / "link" / "c.asdf", file.tree)
    check(tmp_path / "c.asdf", 0, a=A)
    with zcore.asdf.open(elsewhere, "rw") as file, zcore.asdf.open(main) as other:
        file.tree["b"] = other.tree["a"]
        for in_place in (False, True):
            with pytest.raises(ValueError, match="/b: the tree names"):
                file.update(in_place=in_place)
        file.update(embed=True)
    check(elsewhere, 2, a=A, b=A)


def test_relative_references_of_another_directory(tmp_path, asdf_bytes):
    """AS-TREE-09: `$ref`, except within the file."""
    (tmp_path / "sub").mkdir()
    text = b"%YAML 1.1\n---\nx: 1\nown: {$ref: '#/x'}\nother: {$ref: 'b.asdf#/y'}\n...\n"
    (tmp_path / "a.asdf").write_bytes(asdf_bytes.file(tree=text))
    with zcore.asdf.open(tmp_path / "a.asdf") as file:
        zcore.asdf.write(tmp_path / "c.asdf", file.tree)
        with pytest.raises(ValueError, match="`resolve` returns"):
            zcore.asdf.write(tmp_path / "sub" / "c.asdf", file.tree)
        del file.tree["other"]
        zcore.asdf.write(tmp_path / "sub" / "c.asdf", file.tree)


@pytest.mark.parametrize("standard, tag", [("1.5.0", b"1.0.0"), ("1.6.0", b"1.1.0"), ("1.0.0", b"1.0.0"),
                                           (None, b"1.0.0")])
def test_a_tree_keeps_its_version_of_the_standard(path, standard, tag):
    """AS-COM-02, AS-ND-01: the comment, and the tags of new arrays with it."""
    zcore.asdf.write(path, {"a": A, "long": "x" * 500})
    comment = b"" if standard is None else b"#ASDF_STANDARD " + standard.encode() + b"\n"
    path.write_bytes(path.read_bytes().replace(b"#ASDF_STANDARD 1.6.0\n", comment).replace(b"ndarray-1.1.0",
                                                                                          b"ndarray-" + tag))
    with zcore.asdf.open(path, "rw") as file:
        for i, in_place in enumerate([False, True]):
            file.tree["long"] = ""
            file.tree[f"b{i}"] = B + i
            file.update(in_place=in_place)
            assert file.standard == (standard or "1.0.0") and file.comments == [line.decode() for line in
                                                                                comment.splitlines()]
            assert file.tree_text.count(b"core/ndarray-" + tag) == 2 + i == file.tree_text.count(b"core/ndarray")
        for n, tree in ((3, file.tree), (4, {**file.tree, "c": B}), (1, {"only": file.tree["a"]}),
                        (2, {"b": B, "deep": [{"a": file.tree["a"]}]})):
            other = path.with_name("other.asdf")
            zcore.asdf.write(other, tree)
            with zcore.asdf.open(other) as copy:
                assert copy.standard == file.standard
                assert copy.tree_text.count(b"core/ndarray-" + tag) == n == copy.tree_text.count(b"core/ndarray")


def test_trees_of_two_versions_of_the_standard(path):
    """The newest one is written, and the tags of all arrays are of it."""
    other = path.with_name("b.asdf")
    zcore.asdf.write(path, {"a": A})
    path.write_bytes(path.read_bytes().replace(b"STANDARD 1.6", b"STANDARD 1.4").replace(b"y-1.1.0", b"y-1.0.0"))
    zcore.asdf.write(other, {"b": B})
    with zcore.asdf.open(path) as file, zcore.asdf.open(other) as newer:
        zcore.asdf.write(path.with_name("c.asdf"), {"a": file.tree["a"], "b": newer.tree["b"]})
    with zcore.asdf.open(path.with_name("c.asdf")) as file:
        assert file.standard == "1.6.0" and file.tree_text.count(b"core/ndarray-1.1.0") == 2


# Other forms of one file


def test_exploded_and_imploded(path):
    """AS-EXP-01, AS-EXP-02: YAML and one file a block; and back, with views of one block in one block."""
    tree = {"a": A, "part": A[3:, 2:5], "b": B, "text": "x"}
    zcore.asdf.write(path, tree)
    written = zcore.asdf.explode(path)
    assert [os.path.basename(name) for name in written] == [
        "a_exploded.asdf", "a_exploded0000.asdf", "a_exploded0001.asdf"]
    text = Path(written[0]).read_bytes()
    assert text.endswith(b"...\n") and b"source: a_exploded0000.asdf" in text
    assert Path(written[1]).read_bytes().startswith(b"#ASDF 1.0.0\n\xd3BLK")
    check(written[0], 0, **tree)
    whole = zcore.asdf.implode(written[0])
    assert os.path.basename(whole) == "a_exploded_all.asdf"
    check(whole, 2, **tree)


def test_exploding_replaces_no_file_unless_it_is_asked_to(path):
    """AS-EXP-01: nothing is written, where one of the names is taken."""
    zcore.asdf.write(path, {"a": A, "b": B})
    for name in ("a_exploded.asdf", "a_exploded0001.asdf"):
        other = path.with_name(name)
        other.write_bytes(b"mine")
        with pytest.raises(NodeExistsError, match=name):
            zcore.asdf.explode(path)
        assert sorted(os.listdir(path.parent)) == sorted(["a.asdf", name]) and other.read_bytes() == b"mine"
        other.unlink()
    written = zcore.asdf.explode(path)
    with pytest.raises(NodeExistsError, match="a_exploded.asdf exists"):
        zcore.asdf.explode(path)
    check(zcore.asdf.explode(path, overwrite=True)[0], 0, a=A, b=B)
    path.with_name("all.asdf").write_bytes(b"mine")
    with pytest.raises(NodeExistsError, match="all.asdf exists"):
        zcore.asdf.implode(written[0], path.with_name("all.asdf"))
    assert path.with_name("all.asdf").read_bytes() == b"mine"
    check(zcore.asdf.implode(written[0], path.with_name("all.asdf"), overwrite=True), 2, a=A, b=B)


def test_exploding_never_replaces_what_it_reads(tmp_path):
    """AS-EXP-01: neither the file, nor one that the tree names."""
    path = tmp_path / "a0000.asdf"
    zcore.asdf.write(path, {"a": A})
    before = path.read_bytes()
    with pytest.raises(NodeExistsError, match="the arrays lie in it"):
        zcore.asdf.explode(path, tmp_path / "a.asdf", overwrite=True)
    assert os.listdir(tmp_path) == ["a0000.asdf"] and path.read_bytes() == before
    main = zcore.asdf.explode(path, tmp_path / "b.asdf")[0]
    with zcore.asdf.open(main, "rw") as file:
        file.tree["b"] = B
        file.update()
    with pytest.raises(NodeExistsError, match="b0000.asdf would be"):
        zcore.asdf.explode(main, tmp_path / "b.asdf", overwrite=True)
    check(main, 1, a=A, b=B)


def test_names_of_exploded_files_are_uris(tmp_path):
    """AS-EXP-01, AS-ND-05: percent-encoded where a URI needs it."""
    path = tmp_path / "50% ü.asdf"
    zcore.asdf.write(path, {"a": A})
    written = zcore.asdf.explode(path, tmp_path / "sub#1.asdf")
    assert os.path.basename(written[1]) == "sub#10000.asdf"
    assert b"source: sub%2310000.asdf" in Path(written[0]).read_bytes()
    check(written[0], 0, a=A)
    check(zcore.asdf.implode(written[0], tmp_path / "all.asdf", compression="lz4"), 1, a=A)


def test_external_files_with_several_blocks_or_none(path, asdf_bytes):
    """AS-EXP-03, AS-ND-05: the first block counts."""
    zcore.asdf.write(path, {"a": B})
    main = zcore.asdf.explode(path)[0]
    other = path.with_name("a_exploded0000.asdf")
    with zcore.asdf.open(other, "rw") as file:
        file.append_block(b"x" * 100)
    check(main, 0, a=B)
    other.write_bytes(asdf_bytes.file())
    with zcore.asdf.open(main) as file, pytest.raises(AsdfFormatError, match="no block"):
        file.tree["a"].read()


def test_blocks_that_are_no_arrays_are_not_exploded(path):
    """AS-ND-21, AS-EXP-01: they would be lost."""
    zcore.asdf.write(path, {"a": A})
    with zcore.asdf.open(path, "rw") as file:
        file.append_block(b"x")
    with pytest.raises(UnsupportedError, match="no array refers to"):
        zcore.asdf.explode(path)
    assert os.listdir(path.parent) == ["a.asdf"]


def test_defragmented(path):
    """AS-UPD-04, AS-COM-04: no space that is not used; tree and comments byte by byte, blocks with their numbers."""
    zcore.asdf.write(path, {"a": A, "b": B}, pad=5000, block_align=4096)
    with open(path, "ab") as file:
        file.write(bytes(10_000))
    with zcore.asdf.open(path) as file:
        text, comments = file.tree_text, file.comments
    zcore.asdf.defragment(path)
    check(path, 2, a=A, b=B)
    with zcore.asdf.open(path) as file:
        assert (file.tree_text, file.comments) == (text, comments)
        assert all(block.allocated == block.used for block in file.blocks)
    with zcore.asdf.stream(path, {"rows": zcore.asdf.Stream((), "<i2")}) as rows:
        rows.append(np.arange(10, dtype="<i2"))
    before = path.read_bytes()
    zcore.asdf.defragment(path)
    assert path.read_bytes() == before


def test_blocks_behind_one_another_are_hashed_while_they_are_written(path):
    large = np.random.default_rng(0).integers(0, 255, 5 << 20, "u1")
    zcore.asdf.write(path, {"a": large, "b": large[::-1]})
    assert writing._PARALLEL_NBYTES < large.nbytes
    check(path, 1, a=large, b=large[::-1])


def test_masked_rows_are_refused(tmp_path):
    with zcore.asdf.stream(tmp_path / "a.asdf", {"rows": zcore.asdf.Stream((2,), "i4")}) as rows:
        with pytest.raises(ValueError, match="masked"):
            rows.append(np.ma.array([1, 2], mask=[0, 1]))
        rows.append(np.ma.array([1, 2]))
        assert rows.n_rows == 1


def test_text_with_code_points_that_unicode_does_not_have(tmp_path):
    """It is not written, and damage where it is read."""
    path = tmp_path / "a.asdf"
    none = np.full(3, 0x110000, "<u4")
    with pytest.raises(ValueError, match="text has the code point 0x110000"):
        zcore.asdf.write(path, {"a": {"b": none.view("<U1")}})
    zcore.asdf.write(path, {"a": np.full(3, 97, "<u4").view("<U1")})
    old, new = np.full(3, 97, "<u4").tobytes(), none.tobytes()
    path.write_bytes(path.read_bytes().replace(old, new).replace(hashlib.md5(old).digest(), hashlib.md5(new).digest()))
    with zcore.asdf.open(path) as file, pytest.raises(zcore.AsdfFormatError, match="text has the code point 0x110000"):
        np.asarray(file.tree["a"])
    with pytest.raises(zcore.ChunkError, match="text has the code point 0x110000"):
        zcore.open(path)["a"][...]


@pytest.mark.parametrize("name", ["checksum", "index", "pad", "block_align", "compression", "embed", "fsync"])
def test_an_option_of_another_type_is_named(tmp_path, name):
    for value in (np.arange(2), "no", 2.5):
        with pytest.raises((TypeError, ValueError), match=f"^{name} is .*, expected"):
            zcore.asdf.write(tmp_path / "a.asdf", {"a": A}, **{name: value})
    zcore.asdf.write(tmp_path / "a.asdf", {"a": A}, pad=np.int64(3), block_align=np.int64(8), index=np.True_)


def test_what_is_neither_true_nor_false(path):
    zcore.asdf.write(path, {"a": A})
    with zcore.asdf.open(path, "rw") as file:
        for name, call in {
            "overwrite": lambda: zcore.asdf.implode(path, overwrite="no"),
            "verify": lambda: zcore.asdf.open(path, verify="no"), "in_place": lambda: file.update(in_place=1),
            "checksum": lambda: file.append_block(b"", checksum="no"),
        }.items():
            with pytest.raises(TypeError, match=f"^{name} is .*, expected True or False$"):
                call()
        with pytest.raises(TypeError, match="verify"):
            file.blocks[0].read(verify="no")
    with pytest.raises(TypeError, match="verify"):
        zcore.AsdfStore(path, verify="no")
    check(path, 1, a=A)
