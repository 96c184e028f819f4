"""Blosc headers: real chunks pass, and every check has a chunk that it alone refuses."""
import doctest
import itertools
import struct

import blosc
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zcore.blosc import decompress
from zcore.errors import CodecError, UnsupportedError
from zcore.kernel.codec import blosc_header

SHUFFLES = {"noshuffle": blosc.NOSHUFFLE, "shuffle": blosc.SHUFFLE, "bitshuffle": blosc.BITSHUFFLE}
COMPRESSORS = ("blosclz", "lz4", "lz4hc", "zlib", "zstd")


def smooth(n_bytes):
    """Bytes that every compressor shrinks, and that differ along the way."""
    return (np.arange(n_bytes // 4 + 1) // 7).astype("u4").tobytes()[:n_bytes]


def edited(chunk, offset, values):
    """The chunk with bytes replaced from `offset` on; an int stands for a little-endian int32."""
    values = struct.pack("<i", values) if isinstance(values, int) else values
    return chunk[:offset] + values + chunk[offset + len(values):]


def table(chunk):
    """The block table, after the header of `chunk`."""
    n_blocks = blosc_header.parse(chunk).n_blocks
    return struct.unpack_from(f"<{n_blocks}i", chunk, 16)


@pytest.fixture(scope="module")
def split():
    """A chunk of 8 full blocks of four streams each, and a last shorter one."""
    # Where it splits, c-blosc makes blocks of at least 65536 bytes.
    blosc.set_blocksize(16384)
    try:
        chunk = blosc.compress(smooth(8 * 65536 + 400), typesize=4, cname="lz4", clevel=5, shuffle=1)
    finally:
        blosc.set_blocksize(0)
    info = blosc_header.parse(chunk)
    assert (info.n_blocks, info.is_split, info.memcpyed) == (9, True, False)
    return chunk


@pytest.fixture(scope="module")
def stored():
    """A chunk that is stored as is."""
    return blosc.compress(b"0123456789" * 10, typesize=4, cname="lz4", clevel=0, shuffle=1)


def refused(chunk, match, found=None, expected=None, **demands):
    with pytest.raises(CodecError, match=match) as caught:
        blosc_header.validate(chunk, **demands)
    assert caught.value.codec == "blosc"
    assert caught.value.direction == "decode"
    if found is not None:
        assert (caught.value.expected, caught.value.found) == (expected, found)
    return caught.value


def test_docstrings_hold():
    assert doctest.testmod(blosc_header, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


@pytest.mark.parametrize("cname", COMPRESSORS)
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_real_chunks_pass_and_are_described(cname, shuffle):
    """BL-BLK-01, BL-HDR-11"""
    for typesize, n_items, clevel in itertools.product(
            (1, 2, 3, 4, 7, 8, 16, 17, 255), (0, 1, 7, 8, 100, 1000, 33_333), (0, 1, 9)):
        n_items = min(n_items, 70_000 // typesize)
        n_bytes = typesize * n_items
        data = smooth(n_bytes) if n_items % 2 else np.random.default_rng(n_items).bytes(n_bytes)
        chunk = blosc.compress(data, typesize=typesize, cname=cname, clevel=clevel, shuffle=SHUFFLES[shuffle])
        info = blosc_header.validate(chunk, expected_nbytes=n_bytes, itemsize=typesize)
        assert info == blosc_header.parse(chunk[:16])
        assert (info.version, info.versionlz, info.typesize) == (2, 1, typesize)
        assert (info.nbytes, info.cbytes, info.blocksize) == blosc.get_cbuffer_sizes(chunk)
        assert info.compressor == cname.removesuffix("hc")
        assert info.shuffle == (shuffle if typesize > 1 or shuffle != "shuffle" else info.shuffle)
        assert info.memcpyed == (info.cbytes == info.nbytes + 16)
        assert info.n_blocks == (-(-n_bytes // info.blocksize) if n_bytes else 0)
        # The other item size that a chunk may be stored with, and one that it may not.
        if typesize == 1:
            blosc_header.validate(chunk, n_bytes, 300)
        else:
            refused(chunk, f"item size {typesize}, expected {typesize + 1} or 1", typesize, typesize + 1,
                    itemsize=typesize + 1)


def test_item_sizes_above_255_are_stored_as_one():
    chunk = blosc.compress(smooth(3000), typesize=1)
    assert blosc_header.validate(chunk, 3000, itemsize=300).typesize == 1


def test_blocks_are_split_by_the_rule(split):
    """BL-BLK-03, BL-BLK-06, BL-ENC-03: One stream per byte of an item for full blocks, unless the flag, the item or
    the block size say otherwise.
    """
    info = blosc_header.parse(split)
    assert info.is_split
    assert not blosc_header.parse(edited(split, 2, bytes([info.flags | 0x10]))).is_split
    assert not blosc_header.parse(edited(split, 3, bytes([17]))).is_split
    assert blosc_header.parse(edited(split, 3, bytes([16]))).is_split
    assert blosc_header.parse(edited(split, 8, 4 * 128)).is_split
    assert not blosc_header.parse(edited(split, 8, 4 * 128 - 1)).is_split
    # A block shorter than the block size is never split; this chunk has no other.
    assert not blosc_header.parse(edited(split, 4, info.blocksize - 1)).is_split
    # The walk follows the rule: with one stream per block, or more, the sizes do not add up to other streams.
    # Blocks lie in the order in which c-blosc's threads were done with them.
    assert min(table(split)) == 16 + 4 * 9


def test_words_of_the_flags():
    def flags(value):
        return blosc_header.parse(bytes([2, 1, value, 4]) + bytes(12))

    names = [flags(code << 5).compressor for code in range(8)]
    assert names == ["blosclz", "lz4", "snappy", "zlib", "zstd", "undefined", "undefined", "undefined"]
    assert [flags(bits).shuffle for bits in (0, 1, 4, 5)] == ["noshuffle", "shuffle", "bitshuffle", "blosc2"]
    assert flags(2).memcpyed and not flags(1).memcpyed
    assert flags(0).n_blocks == 0


def test_info_compares_by_value(split):
    one, same, other = blosc_header.parse(split), blosc_header.parse(split), blosc_header.parse(edited(split, 0, b"\3"))
    assert one == same and hash(one) == hash(same) and one != other and one != "text"
    assert repr(one).startswith("BloscHeaderInfo(compressor='lz4', shuffle='shuffle', memcpyed=False, typesize=4")


# Each test below breaks one rule of a chunk that passes.

@pytest.mark.parametrize("length", range(16))
def test_fewer_bytes_than_a_header(split, length):
    """BL-HDR-01"""
    refused(split[:length], "its header alone needs 16", length, 16)
    with pytest.raises(CodecError, match="its header alone needs 16"):
        blosc_header.parse(split[:length])


@pytest.mark.parametrize("version", [0, 1, 6, 130, 255])
def test_version(split, version):
    """BL-HDR-01"""
    assert refused(edited(split, 0, bytes([version])), "format version", version, 2).offset == 0


@pytest.mark.parametrize("version", [3, 4, 5])
def test_blosc2_by_its_version(split, version):
    """BL-HDR-01"""
    with pytest.raises(UnsupportedError, match="Blosc 2") as caught:
        blosc_header.validate(edited(split, 0, bytes([version])))
    assert caught.value.feature == "blosc2"


def test_blosc2_by_both_shuffle_flags(split):
    """BL-HDR-03"""
    with pytest.raises(UnsupportedError, match="Blosc 2"):
        blosc_header.validate(edited(split, 2, bytes([split[2] | 5])))


def test_reserved_flag(split):
    """BL-HDR-02"""
    refused(edited(split, 2, bytes([split[2] | 8])), "reserved flag")


@pytest.mark.parametrize("change", [-1, 1, 8])
def test_stored_size_is_exactly_the_length(split, change):
    """BL-HDR-04"""
    n = len(split)
    refused(edited(split, 12, n + change), f"{n + change} bytes stored", n + change, n)
    refused(split[:change] if change < 0 else split + b"x" * change, f"{n} bytes stored", n, n + change)


def test_stored_size_of_more_than_31_bits(split):
    """BL-HDR-04"""
    refused(edited(split, 12, -1), "4294967295 bytes stored")


@pytest.mark.parametrize("nbytes", [2**31 - 16, 2**31 - 1, -1, -2**31])
def test_decoded_size_limit(split, nbytes):
    """BL-HDR-05"""
    refused(edited(split, 4, nbytes), "bytes decoded", nbytes % 2**32, 2**31 - 17)


@pytest.mark.parametrize("change", [-1, 1, 65536])
def test_decoded_size_is_the_one_demanded(split, change):
    """BL-HDR-05"""
    n = blosc_header.parse(split).nbytes
    refused(edited(split, 4, n + change), "bytes decoded, chunk needs", n + change, n, expected_nbytes=n)
    refused(split, "bytes decoded, chunk needs", n, 0, expected_nbytes=0)


def test_item_size_of_zero(split):
    """BL-HDR-07"""
    refused(edited(split, 3, b"\0"), "item size 0")


@pytest.mark.parametrize("typesize", [2, 3, 5, 8, 255])
def test_item_size_is_that_of_the_array_or_one(split, typesize):
    """BL-HDR-07"""
    refused(edited(split, 3, bytes([typesize])), "expected 4 or 1", typesize, 4, itemsize=4)


def test_block_size(stored):
    """BL-HDR-08"""
    for size in (0, 101, -1, 2**31 - 1):
        refused(edited(stored, 8, size), "block size", size % 2**32, 100)
    assert blosc_header.validate(edited(stored, 8, 100)).blocksize == 100


def test_block_size_limit_of_the_decoder():
    """BL-HDR-08: Blocks of 715827542 bytes are the largest that c-blosc takes; such chunks need no such memory to be
    judged.
    """
    header = struct.pack("<4B3I", 2, 1, 0x30, 4, 2**31 - 17, 715_827_543, 16 + 4 * 3)
    refused(header + bytes(12), "block size", 715_827_543, 715_827_542)
    refused(edited(header + bytes(12), 8, 715_827_542), "block table ends")


@pytest.mark.parametrize("code", [5, 6, 7])
def test_undefined_compressor(split, stored, code):
    """BL-HDR-09"""
    for chunk in (split, stored):
        refused(edited(chunk, 2, bytes([chunk[2] & 0x1f | code << 5])), "undefined compressor", code, 4)


def test_snappy_is_left_to_the_decoder(split):
    """BL-HDR-09"""
    assert blosc_header.validate(edited(split, 2, bytes([split[2] & 0x1f | 2 << 5]))).compressor == "snappy"


@pytest.mark.parametrize("versionlz", [0, 2, 255])
def test_version_of_the_inner_format(split, versionlz):
    """BL-HDR-10"""
    refused(edited(split, 1, bytes([versionlz])), "compressor format version", versionlz, 1)


def test_size_of_a_chunk_stored_as_is(stored, split):
    """BL-MCP-01"""
    assert blosc_header.validate(stored).memcpyed
    refused(edited(edited(stored, 8, 50), 4, 99), "stored as is", 116, 115)
    refused(edited(edited(stored, 12, 117), 4, 100) + b"x", "stored as is", 117, 116)
    refused(edited(split, 2, bytes([split[2] | 2])), "stored as is")


@pytest.mark.parametrize("flags", [0x22, 0x23, 0x26, 0x33])
def test_shuffle_flags_of_a_chunk_stored_as_is_mean_nothing(stored, flags):
    """BL-MCP-02"""
    assert blosc_header.validate(edited(stored, 2, bytes([flags]))).memcpyed


@pytest.mark.parametrize("blocksize", [0, 1, 4096, -1])
def test_chunk_of_nothing(blocksize):
    """BL-HDR-06"""
    chunk = edited(blosc.compress(b"", typesize=4), 8, blocksize)
    info = blosc_header.validate(chunk, expected_nbytes=0, itemsize=4)
    assert (info.nbytes, info.cbytes, info.n_blocks) == (0, 16, 0)
    assert blosc_header.validate(edited(chunk, 2, b"\x31")).n_blocks == 0


def test_block_table_that_does_not_fit(split):
    """BL-BLK-02"""
    refused(edited(split, 8, 1), "block table ends")
    header = struct.pack("<4B3I", 2, 1, 0x30, 4, 2**31 - 17, 1, 19)
    refused(header + bytes(3), "block table ends", 19, 16 + 4 * (2**31 - 17))


@pytest.mark.parametrize("block", [0, 5, 8])
def test_block_start(split, block):
    """BL-BLK-03, BL-BLK-04"""
    end, n = 16 + 4 * 9, len(split)
    for start in (-1, 0, 15, end - 1, n - 3, n, n + 1, 2**31 - 1, -2**31):
        error = refused(edited(split, 16 + 4 * block, start), "block starts", start, n - 4)
        assert error.offset == 16 + 4 * block


def test_blocks_that_share_their_bytes_do_no_harm(split):
    """BL-BLK-10"""
    starts, n = list(table(split)), blosc_header.parse(split).blocksize
    content = decompress(split)
    for shift in (0, 1, 4, 1000):
        starts[5] = starts[0] + shift
        chunk = edited(split, 16, struct.pack("<9i", *starts))
        try:
            found = decompress(chunk)
        except CodecError:
            assert shift
            continue
        assert found[:5 * n] == content[:5 * n] and found[6 * n:] == content[6 * n:]
        assert shift or found[5 * n:6 * n] == content[:n]


def test_blocks_in_any_order_pass(split):
    """BL-BLK-04"""
    starts = list(table(split))
    starts[0], starts[5] = starts[5], starts[0]
    assert blosc_header.validate(edited(split, 16, struct.pack("<9i", *starts)))


@pytest.mark.parametrize("block", [0, 5, 8])
def test_stream_size(split, block):
    """BL-BLK-05, BL-BLK-08"""
    start, n = table(split)[block], len(split)
    for size in (0, -1, -2**31, 2**31 - 1, n, n - start - 3):
        error = refused(edited(split, start, size), "blosc stream")
        assert (error.offset, error.found, error.expected) == (start, size, n - start - 4)


def test_size_of_a_later_stream(split):
    """BL-BLK-05, BL-BLK-08"""
    start = table(split)[3]
    for _ in range(3):
        start += 4 + struct.unpack_from("<i", split, start)[0]
        refused(edited(split, start, 0), "blosc stream", 0, len(split) - start - 4)


@pytest.mark.parametrize(("n", "longest"), [(8, 41), (60, 102), (6000, 7032)])
def test_a_stream_is_hardly_longer_than_what_it_encodes(n, longest):
    """BL-BLK-08, BL-BLK-10: else blocks that share one would be decoded in the square of the time. Snappy may make a
    stream longer by a sixth and 32 bytes."""
    for size in (1, longest, longest + 1, 3 * longest):
        chunk = struct.pack("<BBBBIIIii", 2, 1, 0x10, 1, n, n, 24 + size, 20, size) + bytes(size)
        if size <= longest:
            assert blosc_header.validate(chunk)
        else:
            refused(chunk, "blosc stream", size, longest)


def test_stream_whose_size_lies_past_the_end(split):
    """BL-BLK-08: The streams before fill the chunk to its last three bytes."""
    start, n = table(split)[0], len(split)
    for left in range(4):
        refused(edited(split, start, n - start - 4 - left), "blosc stream")


def test_split_blocks_hold_whole_items(split):
    """Four planes of a quarter of 65538 bytes would leave two bytes without a source."""
    refused(edited(edited(split, 8, 65538), 4, 9 * 65538), "block size", 65538, 65536)


def test_every_truncation_is_refused(split):
    """BL-TST-01"""
    for length in itertools.chain(range(65), range(65, len(split), 997)):
        with pytest.raises(CodecError):
            blosc_header.validate(split[:length])
        with pytest.raises(CodecError):
            # Even with the stored size made to match.
            chunk = edited(split[:length], 12, length) if length >= 16 else split[:length]
            blosc_header.validate(chunk, blosc_header.parse(split).nbytes)


def test_flips_that_contradict_the_header_are_refused(split):
    """BL-TST-01: Of the header's bits only those of the compressor, the shuffles and the splitting may go unseen."""
    info = blosc_header.parse(split)
    unseen = []
    for bit in range(16 * 8):
        chunk = bytearray(split)
        chunk[bit // 8] ^= 1 << bit % 8
        try:
            blosc_header.validate(bytes(chunk), info.nbytes, 4)
        except (CodecError, UnsupportedError):
            continue
        unseen.append(divmod(bit, 8))
    assert {byte for byte, _ in unseen} <= {2, 8, 9, 10, 11}
    assert (2, 3) not in unseen and (2, 1) not in unseen


@given(st.binary(max_size=200), st.integers(0, 2**31), st.integers(1, 400))
def test_any_bytes_pass_or_are_refused(data, expected_nbytes, itemsize):
    """BL-TST-01"""
    for chunk in (data, b"\2\1" + data, struct.pack("<4B3I", 2, 1, 0x21, 4, 64, 64, 16 + len(data)) + data):
        for demands in ({}, {"expected_nbytes": expected_nbytes, "itemsize": itemsize}):
            try:
                info = blosc_header.validate(chunk, **demands)
            except (CodecError, UnsupportedError):
                continue
            assert info.cbytes == len(chunk)


@given(st.data())
def test_edits_of_a_chunk_end_in_an_error_or_in_sizes_that_fit(split, data):
    """BL-TST-01"""
    chunk = bytearray(split)
    for _ in range(data.draw(st.integers(1, 4))):
        chunk[data.draw(st.integers(0, len(chunk) - 1))] = data.draw(st.integers(0, 255))
    try:
        info = blosc_header.validate(bytes(chunk), blosc_header.parse(split).nbytes, 4)
    except (CodecError, UnsupportedError):
        return
    assert info.nbytes == blosc_header.parse(split).nbytes
    assert all(16 + 4 * info.n_blocks <= start <= len(chunk) - 4 for start in table(bytes(chunk)))


def test_arguments_out_of_range(split):
    with pytest.raises(ValueError, match="expected_nbytes is -1"):
        blosc_header.validate(split, expected_nbytes=-1)
    with pytest.raises(ValueError, match="itemsize is 0"):
        blosc_header.validate(split, itemsize=0)
    with pytest.raises(TypeError):
        blosc_header.parse("text")
