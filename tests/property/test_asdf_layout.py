"""Laws of the ASDF layout: index and walk find the same blocks, and what is written is what is read."""
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zcore
from tests.examples import examples
from tests.fuzz.test_hostile_asdf import Memory
from zcore.asdf import file_layout, scan
from zcore.asdf.blocks import BlockList
from zcore.asdf.writing import Form, NewBlocks, write_new
from zcore.errors import AsdfFormatError

contents = st.lists(st.binary(max_size=40), min_size=1, max_size=5)
entries = st.lists(st.integers(0, 600), max_size=6)


def found_in(source, find):
    found = find(source)
    return found and (list(found.offsets), found.end, found.fault and found.fault.offset)


@given(contents, entries, st.data())
@examples(150)
def test_index_and_walk_find_the_same_blocks(asdf_bytes, parts, noise, data):
    """AS-IDX-09, AS-IDX-02 to AS-IDX-07: whatever the index says, and however the file was damaged."""
    # Content that holds whole blocks, so that an index may name what looks like them.
    blocks = [asdf_bytes.block(part + asdf_bytes.block(part, allocated=data.draw(st.integers(len(part), 200))),
                               header_size=data.draw(st.integers(48, 60))) for part in parts]
    whole = asdf_bytes.file(*blocks, tree=b"", comments=b"", index=data.draw(st.sampled_from([True, None])))
    magics = [i for i in range(len(whole)) if whole.startswith(file_layout.BLOCK_MAGIC, i)]
    listed = sorted(set(data.draw(st.lists(st.sampled_from(magics), min_size=1)) + noise))
    for changed in (whole, asdf_bytes.file(*blocks, tree=b"", comments=b"", index=listed)):
        if data.draw(st.booleans()):
            at = data.draw(st.integers(12, len(changed) - 1))
            changed = changed[:at] + bytes([data.draw(st.integers(0, 255))]) + changed[at + 1:]
        source = Memory(changed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            by_index = found_in(source, lambda source: scan.by_index(source, 12))
            by_skipping = found_in(source, lambda source: scan.by_skipping(source, 12))
        assert by_index is None or by_index == by_skipping


@given(contents, st.sampled_from([None, "zlib", "bzp2", "lz4"]), st.booleans(), st.booleans(), st.integers(0, 100),
       st.integers(1, 64), st.booleans())
def test_blocks_that_are_written_are_read(tmp_path_factory, parts, name, checksum, index, pad, align, has_tree):
    """AS-BLK-01, AS-PAD-03, AS-CMP-01, AS-IDX-09: in every form of a file."""
    path = tmp_path_factory.mktemp("asdf") / "a.asdf"
    blocks = NewBlocks(name)
    for part in parts:
        blocks.add(np.frombuffer(part, "u1").copy())
    text = b"%YAML 1.1\n---\na: 1\n...\n" if has_tree else b""
    write_new(path, ["# x"], text, blocks, Form(checksum, index, pad, align))
    with zcore.asdf.open(path) as file:
        assert [bytes(block.read()) for block in file.blocks] == parts
        assert file.tree_text == text and file.blocks.found.is_indexed is index
        assert file.verify() == (len(parts) if checksum else 0)
        first = file.blocks.found.offsets[0]
        skipped = scan.by_skipping(file.source, first)
        assert skipped.offsets == file.blocks.found.offsets and skipped.end == file.blocks.found.end
    path.unlink()


@given(st.binary(max_size=200))
@examples(300)
def test_any_bytes_behind_the_header_are_blocks_or_an_error(data):
    """AS-BLK-02, AS-BLK-08: nothing else comes of them."""
    for start in (b"", file_layout.BLOCK_MAGIC, file_layout.BLOCK_MAGIC + b"\0\x30\0\0\0\0\0\0\0\0"):
        source = Memory(b"#ASDF 1.0.0\n" + start + data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                front = scan.read_front(source)
            except AsdfFormatError:
                continue
            blocks = BlockList(source, front)
            if blocks.fault is not None:
                with pytest.raises(AsdfFormatError):
                    len(blocks)
            for number in range(len(blocks.found.offsets)):
                block = blocks[number]
                assert block.data_offset + block.used <= source.size
