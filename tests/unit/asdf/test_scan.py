"""Where the parts of an ASDF file lie, and that index and walk agree on it."""
import builtins
import struct
import warnings
from hashlib import md5

import numpy as np
import pytest

import zcore
from zcore.asdf import file_layout
from zcore.errors import AsdfFormatError, NodeNotFoundError, StoreError, UnsupportedError


@pytest.fixture
def opened(tmp_path):
    """Return a function that writes bytes and opens them."""
    files = []

    def open(data, mode="r", **keywords):
        path = tmp_path / f"{len(files)}.asdf"
        path.write_bytes(data)
        files.append(zcore.asdf.open(path, mode, **keywords))
        return files[-1]

    yield open
    for file in files:
        file.close()


def contents(file):
    return [bytes(block.read()) for block in file.blocks]


def test_header_alone_is_a_file(opened):
    """AS-HDR-04: no tree, no blocks."""
    for data in (b"#ASDF 1.0.0\n", b"#ASDF 1.0.0\r\n", b"#ASDF 1.0.0\n#ASDF_STANDARD 1.5.0\n# x"):
        file = opened(data)
        assert file.header == "1.0.0" and file.tree_text == b"" and list(file.blocks) == []
        assert file.blocks.fault is None
    assert file.standard == "1.5.0" and file.comments == ["#ASDF_STANDARD 1.5.0", "# x"]


def test_tree_alone(opened, asdf_bytes):
    """AS-PAD-02: no magic behind the tree means no blocks, whatever is there."""
    for pad in (b"", b"  \n", b"\0" * 5000, b"#ASDF BLOCK INDEX\n--- [1]\n...\n", b"\xd3BL"):
        file = opened(asdf_bytes.file(pad=pad))
        assert file.tree_text == asdf_bytes.TREE and list(file.blocks) == []


def test_blocks_without_a_tree(opened, asdf_bytes):
    """AS-TREE-12, AS-COM-03: the first block follows header and comments at once; nothing else may."""
    for comments in (b"", b"#ASDF_STANDARD 1.6.0\n# y\n"):
        file = opened(asdf_bytes.file(asdf_bytes.block(b"ab"), asdf_bytes.block(b"c"), tree=b"", comments=comments))
        assert file.tree_text == b"" and contents(file) == [b"ab", b"c"]
    for between in (b" ", b"\n", b"a: 1\n", b"---\n", b"\xef\xbb\xbf%YAML 1.1\n---\n...\n"):
        with pytest.raises(AsdfFormatError) as caught:
            opened(asdf_bytes.file(asdf_bytes.block(b"ab"), tree=between))
        assert caught.value.offset == 33 and caught.value.path.endswith(".asdf")


def test_comments_end_with_a_line_that_is_none(opened, asdf_bytes):
    """AS-COM-01: a blank line or text between the comments and the tree is an error."""
    for comments in (b"#a\n\n", b"\n", b"#a\nb\n", b" #a\n"):
        with pytest.raises(AsdfFormatError, match="expected the line '%YAML 1.1'"):
            opened(asdf_bytes.file(comments=comments))


def test_long_comments_are_read_up_to_a_bound(opened, asdf_bytes):
    long = b"#" + b"x" * 100 + b"\n"
    assert len(opened(asdf_bytes.file(comments=long * 9000)).comments) == 9000
    for comments in (long * 12000, b"#" + b"x" * 1_200_000 + b"\n"):
        with pytest.raises(AsdfFormatError, match="comment"):
            opened(asdf_bytes.file(comments=comments))


def test_first_block_behind_any_bytes(opened, asdf_bytes):
    """AS-PAD-01, AS-PAD-02: the first magic counts, also one that lies across two reads."""
    for pad in (b"", b" " * 1000, bytes(range(256)), b"\xd3\xd3B\xd3BL", *[b" " * (2**20 + n) for n in range(-4, 5)]):
        file = opened(asdf_bytes.file(asdf_bytes.block(b"ab"), pad=pad))
        assert contents(file) == [b"ab"] and file.blocks[0].offset == 100 + len(pad)


def test_tree_that_is_longer_than_a_read(opened, asdf_bytes):
    """AS-TREE-03, AS-TREE-04: the line that ends it may lie across two reads."""
    for n in range(2**16 - 60, 2**16 - 20):
        tree = b"%YAML 1.1\n---\na: '" + b"x" * n + b"\n\n ...\n '\n...\r\n"
        file = opened(asdf_bytes.file(asdf_bytes.block(b"\n...\n"), tree=tree))
        assert file.tree_text == tree and contents(file) == [b"\n...\n"]
    tree = b"%YAML 1.1\n---\na: '" + b"x" * (3 << 20) + b"'\n..."
    assert opened(asdf_bytes.file(tree=tree)).tree_text == tree


def test_tree_without_an_end(opened, asdf_bytes):
    """AS-TREE-03: an error, also when the line occurs in a block."""
    block = asdf_bytes.block(b"x\n...\ny")
    for parts, tree in [((), b"%YAML 1.1\n---\na: 1\n"), ((block,), b"%YAML 1.1\n---\na: 1\n"),
                        ((block,), b"%YAML 1.1\n---\na: " + b"x" * (1 << 17) + b"\n"), ((), b"%YAML 1.1\n")]:
        with pytest.raises(AsdfFormatError, match="the tree has no end") as caught:
            opened(asdf_bytes.file(*parts, tree=tree))
        assert caught.value.offset == 33 and caught.value.member == "tree"


def test_longer_header_and_room_behind_the_content(opened, asdf_bytes):
    """AS-BLK-01, AS-BLK-06, AS-BLK-07, AS-BLK-09: data begin behind the whole header; room is skipped unseen."""
    fake = asdf_bytes.block(b"fake")
    blocks = [asdf_bytes.block(b"ab" + fake, header_size=4000, used=2, allocated=2 + len(fake)), asdf_bytes.block(),
              asdf_bytes.block(b"cd" + b"?" * 10, header_size=65535, used=2, allocated=12), asdf_bytes.block()]
    for index in (None, True):
        file = opened(asdf_bytes.file(*blocks, index=index))
        assert contents(file) == [b"ab", b"", b"cd", b""] and file.blocks.found.is_indexed is bool(index)
        assert file.blocks[0].data_offset == file.blocks[0].offset + 4006
        assert file.blocks[2].allocated == 12 and file.blocks[2].used == file.blocks[2].data_size == 2


def test_magic_in_the_data_is_data(opened, asdf_bytes):
    inner = asdf_bytes.block(b"inner")
    file = opened(asdf_bytes.file(asdf_bytes.block(inner), asdf_bytes.block(b"#ASDF BLOCK INDEX\n--- [100]\n...\n")))
    assert contents(file)[0] == inner and len(file.blocks) == 2


def test_space_between_blocks(opened, asdf_bytes):
    """AS-BLK-07, AS-DIF-01: text 1.1.1 allows it; the next valid header counts, with a warning."""
    for gap in (b"  ", b"\0" * 100, b"\xd3BL?" + bytes(60), b"\0\xd3BLK" + bytes(60), b"#ASDF BLOCK"):
        with pytest.warns(UserWarning, match=f"{len(gap)} bytes that belong to neither"):
            file = opened(asdf_bytes.file(asdf_bytes.block(b"a"), gap, asdf_bytes.block(b"b")))
            assert contents(file) == [b"a", b"b"]


def test_what_may_follow_the_last_block(opened, asdf_bytes):
    """AS-BLK-07, AS-IDX-01: zeros, an index, or bytes that are no block."""
    for tail in (b"", bytes(100), b"?" * 10, b"#ASDF BLOCK INDEX\nnonsense", b"#ASDF BL", b"\xd3BL",
                 b" \xd3BLK" + bytes(99)):
        assert contents(opened(asdf_bytes.file(asdf_bytes.block(b"a"), tail=tail))) == [b"a"]


@pytest.mark.parametrize("index", [None, True])
@pytest.mark.parametrize("has_checksum", [False, True])
@pytest.mark.parametrize("kept, change", [
    (1, lambda data: data.replace(b"\r\n", b"\n")),
    (1, lambda data: data.replace(b"d\n", b"d\r\n").replace(b"b\r\n", b"b\r\r\n")),
    (2, lambda data: data.replace(b"tail\r\n", b"tail\n")), (2, lambda data: data.replace(b"tail\r\n", b"tail\r\r\n")),
    (0, lambda data: data.replace(b"\x0a\0", b"\x0d\x0a\0")),
])
def test_a_block_that_lost_or_got_bytes_is_a_fault(opened, asdf_bytes, kept, change, index, has_checksum):
    """AS-BLK-07, AS-IDX-07: where one byte is missing, all later blocks would be other ones."""
    made = [b"x\x0a" * 5, b"ab\r\ncd\nef", b"1.0" * 20, b"2.0tail\r\n"]
    if kept == 2:
        made = made[:1] + made[2:]
    blocks = [asdf_bytes.block(data, checksum=md5(data).digest() if has_checksum else bytes(16)) for data in made]
    whole = asdf_bytes.file(*blocks, index=index)
    damaged = change(whole[100:])
    assert len(damaged) != len(whole) - 100
    file = opened(whole[:100] + damaged)
    for number in range(len(made)):
        if number < kept:
            assert bytes(file.blocks[number].read()) == made[number]
        else:
            with pytest.raises(AsdfFormatError, match="bytes may be missing or added|used of|content of"):
                file.blocks[number]
    with pytest.raises(AsdfFormatError):
        file.blocks[-1]


def test_a_proven_block_may_be_followed_by_anything(opened, asdf_bytes):
    """AS-BLK-07, AS-CHK-01: its checksum says that no byte is missing or too many."""
    inner = asdf_bytes.block(b"a\r\nb")
    proven = asdf_bytes.block(inner, checksum=md5(inner).digest())
    for gap in (b"  ", b"\r\n", b"\0" * 100):
        for index in (None, True):
            with pytest.warns(UserWarning, match=f"{len(gap)} bytes that belong to neither"):
                assert contents(opened(asdf_bytes.file(proven, gap, proven, index=index))) == [inner, inner]
        assert contents(opened(asdf_bytes.file(proven, tail=gap))) == [inner]


def test_space_that_the_index_knows(opened, asdf_bytes):
    """AS-BLK-07, AS-IDX-05: its entries are right; without an index the space could be added bytes."""
    block, gap = asdf_bytes.block(b"a\r\nb"), b"b"
    plain = asdf_bytes.file(block, gap, block)
    with pytest.warns(UserWarning, match="1 bytes that belong to neither"):
        file = opened(plain + file_layout.render_block_index([100, 100 + len(block) + 1]))
        assert contents(file) == [b"a\r\nb"] * 2
    for index in (b"", file_layout.render_block_index([100, 100 + len(block)])):
        with pytest.raises(AsdfFormatError, match="bytes may be missing or added"):
            len(opened(plain + index).blocks)


def test_a_stream_whose_line_ends_were_converted(opened, asdf_bytes):
    """AS-STR-01: CR before each LF of the file, also of the rows. A single LF in the tree is not from a converter."""
    streamed = asdf_bytes.block(b"a\r\nb", flags=1, allocated=0, used=0)
    whole = asdf_bytes.file(streamed)
    assert contents(opened(whole)) == [b"a\r\nb"]
    converted = whole.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    with pytest.raises(AsdfFormatError, match="converted the ends of lines"):
        len(opened(converted).blocks)
    assert contents(opened(converted.replace(b"a\r\nb", b"ab"))) == [b"ab"]
    assert contents(opened(converted + b"\n")) == [b"a\r\nb\n"]


def test_space_that_the_end_of_the_file_cuts_off(opened, asdf_bytes):
    """AS-BLK-03: let pass behind the last block, whose content is there."""
    data = asdf_bytes.file(asdf_bytes.block(b"a"), asdf_bytes.block(b"bcd" + b"??", allocated=2**64 - 1, used=3))
    with pytest.warns(UserWarning, match="has space allocated up to byte"):
        assert contents(opened(data)) == [b"a", b"bcd"]


@pytest.mark.parametrize(("number", "at", "value"), [
    (0, 14, 2**40), (0, 14, 80), (0, 14, 2**64 - 1), (0, 14, 58), (1, 14, 2**64 - 1), (0, 4, 49 << 48), (1, 6, 1 << 32),
])
def test_a_size_that_hides_the_next_block_is_a_fault(opened, asdf_bytes, number, at, value):
    """AS-BLK-03, AS-BLK-07, AS-IDX-07: the list would be shorter, and all numbers behind it mean other blocks."""
    blocks = [asdf_bytes.block(bytes([65 + i]) * 57) for i in range(3)]
    n_bytes = {14: 8, 4: 2, 6: 4}[at]
    field = struct.pack(">Q", value)[:n_bytes] if at != 14 else struct.pack(">Q", value)
    blocks[number] = blocks[number][:at] + field + blocks[number][at + n_bytes:]
    for index in (None, True):
        file = opened(asdf_bytes.file(*blocks, index=index))
        with pytest.raises(AsdfFormatError) as caught:
            len(file.blocks)
        assert caught.value.block == number and caught.value.offset == 100 + number * 111
        with pytest.raises(AsdfFormatError):
            file.blocks[-1]
        with pytest.raises(AsdfFormatError):
            file.blocks[number]
        assert [bytes(file.blocks[i].read()) for i in range(number)] == [bytes([65 + i]) * 57 for i in range(number)]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_size_that_hides_a_block_of_the_index_is_a_fault(opened, asdf_bytes, number):
    """AS-BLK-07, AS-IDX-05: the space to spare reaches to a header, so only the index tells of the blocks in it."""
    blocks = [asdf_bytes.block(bytes([65 + i]) * 57) for i in range(4)]
    blocks[number] = blocks[number][:14] + struct.pack(">Q", 57 + 111) + blocks[number][22:]
    plain = asdf_bytes.file(*blocks, index=True)
    for data in (plain, plain.replace(b"#ASDF_STANDARD", b"# edited\n#ASDF_STANDARD", 1)):
        with pytest.raises(AsdfFormatError, match="by the index another block begins") as caught:
            len(opened(data).blocks)
        assert caught.value.block == number


def test_blocks_before_a_fault_are_read(opened, asdf_bytes):
    """AS-BLK-03: what is wrong with one block leaves those before it readable; who counts them is told."""
    file = opened(asdf_bytes.file(asdf_bytes.block(b"a"), asdf_bytes.block(b"b"), asdf_bytes.block(b"c", used=5)))
    assert bytes(file.blocks[1].read()) == b"b"
    for ask in (lambda: len(file.blocks), lambda: file.blocks[2], lambda: file.blocks[-1], lambda: list(file.blocks),
                lambda: file.blocks[3], file.verify):
        with pytest.raises(AsdfFormatError, match="block 2: the block at byte 210: 5 bytes used of 1") as caught:
            ask()
        assert caught.value.block == 2 and caught.value.offset == 210 and str(caught.value).startswith(file.path)
    assert "then a fault" in repr(file.blocks)


def test_block_numbers(opened, asdf_bytes):
    """AS-BLK-10, AS-ND-04: numbers count blocks in the order of the file, negative ones from its end."""
    file = opened(asdf_bytes.file(asdf_bytes.block(b"a"), asdf_bytes.block(b"b"), asdf_bytes.block(b"c")))
    assert file.blocks[-1] is file.blocks[2] and file.blocks[-3].number == 0
    assert [block.number for block in file.blocks[::-1]] == [2, 1, 0]
    for number in (3, -4, 2**70, -2**70):
        with pytest.raises(AsdfFormatError, match="there is no block"):
            file.blocks[number]
        with pytest.raises(IndexError):
            file.blocks[number]


def test_streamed_block(opened, asdf_bytes):
    """AS-STR-01, AS-STR-02, AS-IDX-08: the last block, up to the end of the file, and what looks like an index too."""
    streamed = asdf_bytes.block(b"rows", flags=1, allocated=0, used=0, checksum=b"x" * 16)
    for tail in (b"", b"#ASDF BLOCK INDEX\n--- [100]\n...\n", asdf_bytes.block(b"no block")):
        for n in (0, 1):
            file = opened(asdf_bytes.file(*[asdf_bytes.block(b"a")] * n, streamed, tail=tail))
            assert contents(file) == [b"a"] * n + [b"rows" + tail] and file.blocks[-1].is_streamed
            assert not file.blocks[-1].verify() and not file.blocks.found.is_indexed
    data = asdf_bytes.file(asdf_bytes.block(b"a"), streamed)
    offset = len(data) - len(streamed)
    for index in ([100, offset], [100], [offset]):
        # An index that could be believed, if the block were another one.
        text = file_layout.render_block_index(index)
        assert contents(opened(data + text)) == [b"a", b"rows" + text]


def test_streamed_and_compressed_exclude_each_other(opened, asdf_bytes):
    """AS-STR-03: the flag would say that the compressed size is not known."""
    file = opened(asdf_bytes.file(asdf_bytes.block(b"a"), asdf_bytes.block(b"x", flags=1, compression=b"zlib")))
    with pytest.raises(AsdfFormatError, match="streamed and compressed"):
        len(file.blocks)
    assert contents_of_first(file) == b"a"


def contents_of_first(file):
    return bytes(file.blocks[0].read())


def lies(offsets, size):
    """Return indices that are wrong about blocks at `offsets`, three of them with content of 60 bytes."""
    a, b, c = offsets
    return {"shifted": [a + 1, b + 1, c + 1], "of another tree": [a - 7, b - 7, c - 7], "first": [a + 60, b, c],
            "last": [a, b, c + 1], "short": [a, b], "only the last": [c], "middle": [a, b + 1, c],
            "without one": [a, c], "beyond": [a, b, size + 10], "far beyond": [a, b, 2**63 - 1],
            "one more": [a, b, c, size - 1], "in the data": [a, b + 57, c]}


@pytest.mark.parametrize("name", lies([0, 0, 0], 0))
def test_index_that_lies_is_not_used(opened, asdf_bytes, name):
    """AS-IDX-02, AS-IDX-04 to AS-IDX-07, AS-IDX-09: blocks are found by skipping along, without an error."""
    fake = asdf_bytes.block(b"fake", allocated=2)
    blocks = [asdf_bytes.block(bytes([65 + i]) + b"..." + fake[:56]) for i in range(3)]
    plain = asdf_bytes.file(*blocks)
    offsets = list(opened(plain).blocks.found.offsets)
    file = opened(asdf_bytes.file(*blocks, index=lies(offsets, len(plain))[name]))
    assert list(file.blocks.found.offsets) == offsets and not file.blocks.found.is_indexed
    assert file.blocks.found.end == len(plain)
    right = opened(asdf_bytes.file(*blocks, index=True))
    assert list(right.blocks.found.offsets) == offsets and right.blocks.found.is_indexed


def test_index_whose_every_entry_is_a_header_is_not_used_if_one_is_no_block(opened, asdf_bytes):
    """AS-IDX-05, AS-IDX-06, AS-IDX-09: first and last entry are right, and those between are headers in the data."""
    inner = [asdf_bytes.block(b"inner 0"), asdf_bytes.block(b"inner 1")]
    first = asdf_bytes.block(b"a" + inner[0] + inner[1])
    plain = asdf_bytes.file(first, asdf_bytes.block(b"b"))
    begin, end = 100, 100 + len(first)
    for index in ([begin, begin + 55, begin + 116, end], [begin, begin + 116, end], [begin, begin + 55]):
        file = opened(plain + file_layout.render_block_index(index))
        assert list(file.blocks.found.offsets) == [begin, end] and not file.blocks.found.is_indexed


def test_index_is_looked_for_from_the_end(opened, asdf_bytes):
    """AS-IDX-03: behind it are zeros only; what looks like one in the data is none."""
    block = asdf_bytes.block(b"#ASDF BLOCK INDEX\n--- [100]\n...\n" + b"x" * 100)
    for tail in (b"", bytes(5), bytes(20_000)):
        file = opened(asdf_bytes.file(block, block, index=True, tail=tail))
        assert file.blocks.found.is_indexed and len(file.blocks) == 2
    for tail in (b"x", bytes(10) + b"x", b"\n\n"):
        assert not opened(asdf_bytes.file(block, index=True, tail=tail)).blocks.found.is_indexed


def test_long_index(opened, asdf_bytes):
    """AS-IDX-03: it may be longer than what is read at first."""
    blocks = [asdf_bytes.block(b"%d" % i) for i in range(3000)]
    file = opened(asdf_bytes.file(*blocks, index=True))
    assert file.blocks.found.is_indexed and len(file.blocks) == 3000
    assert bytes(file.blocks[2999].read()) == b"2999"


def test_magic_is_looked_at_again_when_a_block_is_used(tmp_path, asdf_bytes):
    """AS-IDX-06: the file may have been written to since."""
    path = tmp_path / "a.asdf"
    path.write_bytes(asdf_bytes.file(asdf_bytes.block(b"a"), asdf_bytes.block(b"b"), index=True))
    with zcore.asdf.open(path) as file:
        assert len(file.blocks) == 2
        with builtins.open(path, "r+b") as other:
            other.seek(file.blocks.found.offsets[1])
            other.write(b"\xd3BLX")
        with pytest.raises(AsdfFormatError, match="expected a block") as caught:
            file.blocks[1]
        assert caught.value.block == 1 and str(caught.value).startswith(str(path))


def test_truncation_at_every_byte(tmp_path, asdf_bytes):
    """AS-BLK-03: an error that names its place, or what is there is right."""
    blocks = [asdf_bytes.block(b"first" * 3), asdf_bytes.block(b"second")]
    whole = asdf_bytes.file(*blocks, index=True)
    path = tmp_path / "cut.asdf"
    for n in range(len(whole)):
        path.write_bytes(whole[:n])
        found = []
        try:
            with zcore.asdf.open(path) as file:
                for block in file.blocks:
                    found.append(bytes(block.read()))
        except AsdfFormatError as exc:
            assert exc.offset is not None and exc.path == str(path) and str(path) in str(exc)
            assert n < 229
        assert found == [b"first" * 3, b"second"][:len(found)]
        assert (len(found) == 2) is (n >= 229)


@pytest.mark.thinned(2, "index", "offset")
@pytest.mark.parametrize("index", [None, True])
@pytest.mark.parametrize("offset", [100, 169, 229])
def test_every_bit_of_every_header_flipped(tmp_path, asdf_bytes, offset, index):
    """AS-BLK-02 to AS-BLK-08, AS-CHK-01: an error, or right data; never one block for another."""
    data = [b"first" * 3, b"second", b"3"]
    whole = asdf_bytes.file(*[asdf_bytes.block(content, checksum=md5(content).digest()) for content in data],
                            index=index)
    path = tmp_path / "flipped.asdf"
    for bit in range(8 * 54):
        flipped = bytearray(whole)
        flipped[offset + bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number in range(-3, 3):
                try:
                    with zcore.asdf.open(path) as file:
                        found = bytes(file.blocks[number].read())
                except (AsdfFormatError, zcore.ChecksumError, UnsupportedError):
                    continue
                assert found == data[number], (bit, number)


def test_holes_are_not_read(tmp_path, asdf_bytes):
    """AS-BLK-07: zeros behind the last block may be many more than the disk has."""
    path = tmp_path / "sparse.asdf"
    path.write_bytes(asdf_bytes.file(asdf_bytes.block(b"a")))
    with builtins.open(path, "r+b") as file:
        file.truncate(1 << 42)
    with zcore.asdf.open(path) as file:
        assert contents(file) == [b"a"] and file.blocks.fault is None
    path.write_bytes(asdf_bytes.file())
    with builtins.open(path, "r+b") as file:
        file.seek(1 << 41)
        file.write(asdf_bytes.block(b"far away"))
    with zcore.asdf.open(path) as file:
        assert contents(file) == [b"far away"]


def test_no_file_and_no_regular_file(tmp_path):
    with pytest.raises(NodeNotFoundError):
        zcore.asdf.open(tmp_path / "none.asdf")
    with pytest.raises(StoreError):
        zcore.asdf.open(tmp_path)
    with pytest.raises(ValueError, match="mode"):
        zcore.asdf.open(tmp_path, "w")


def test_closed_file_is_not_read(opened, asdf_bytes):
    file = opened(asdf_bytes.file(asdf_bytes.block(b"abc")))
    data = file.blocks[0].read()
    file.close()
    file.close()
    with pytest.raises(StoreError, match="closed"):
        file.blocks[0].read()
    assert bytes(data) == b"abc"


def test_how_often_a_small_file_is_read(tmp_path, asdf_bytes, monkeypatch):
    """Once for front, first block, index, and each header; once more for the header of a block that is used."""
    import os

    path = tmp_path / "small.asdf"
    path.write_bytes(asdf_bytes.file(*[asdf_bytes.block(b"abc")] * 3, index=True))
    calls = []
    for name in ("open", "fstat", "pread", "lseek"):
        call = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *given, name=name, call=call: calls.append(name) or call(*given))
    with zcore.asdf.open(path) as file:
        assert calls == ["open", "fstat", "pread"]
        assert file.blocks[1].data_size == 3 and file.blocks.found.is_indexed
    assert calls[3:] == ["pread"] * (1 + 1 + 3 + 1)


def test_a_file_that_is_let_go_is_closed_at_once(tmp_path):
    """Nothing of it holds itself, so no collection of garbage is awaited."""
    import gc
    import weakref

    path = tmp_path / "a.asdf"
    zcore.asdf.write(path, {"x": np.arange(3), "meta": {"a": [1, {"y": np.arange(4)}]}})
    gc.disable()
    try:
        file = zcore.asdf.open(path)
        array, source = file.tree["x"], weakref.ref(file.source)
        assert array.read().tolist() == [0, 1, 2] and len(file.arrays) == 2
        del file
        assert array.read().tolist() == [0, 1, 2] and source() is not None
        del array
        assert source() is None
    finally:
        gc.enable()


def test_opening_reads_only_the_beginning(tmp_path, asdf_bytes, monkeypatch):
    """Blocks are looked for when they are asked for, by some reads of headers."""
    import os

    path = tmp_path / "large.asdf"
    path.write_bytes(asdf_bytes.file(*[asdf_bytes.block(bytes(100_000))] * 10, index=True))
    reads = []
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, n, offset: reads.append(n) or pread(fd, n, offset))
    with zcore.asdf.open(path) as file:
        assert len(reads) == 1 and sum(reads) <= 1 << 16
        assert len(file.blocks) == 10 and file.blocks.found.is_indexed
    assert sum(reads) < (1 << 16) + 15_000
