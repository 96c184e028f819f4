"""The data of blocks: read, in parts, mapped, decoded, compared with their checksums."""
import builtins
import bz2
import hashlib
import os
import struct
import tracemalloc
import zlib

import numpy as np
import pytest

import zcore
from zcore import config, deflate
from zcore.asdf import checksums, compression
from zcore.errors import (
    AsdfFormatError,
    ChecksumError,
    OutOfMemoryError,
    StoreError,
    TruncatedError,
    UnsupportedError,
)
from zcore.kernel.codec.program import Program

DATA = np.random.default_rng(0).integers(0, 50, 120_000, "u1").tobytes()


def lz4(data, n_record=4 << 20):
    parts = [Program((("lz4", 1),)).encode_bytes(data[i:i + n_record]) for i in range(0, len(data), n_record)]
    return b"".join([struct.pack(">I", len(part)) + part for part in parts])


STORED = {
    "zlib": zlib.compress(DATA), "bzp2": bz2.compress(DATA), "lz4": lz4(DATA, 40_000),
    "zstd": Program((("zstd", 3, False),)).encode_bytes(DATA), "blsc": zcore.blosc.compress(DATA, typesize=4),
}


@pytest.fixture
def opened(tmp_path):
    """Return a function that writes bytes and opens them."""
    files = []

    def open(data, **keywords):
        path = tmp_path / f"{len(files)}.asdf"
        path.write_bytes(data)
        files.append(zcore.asdf.open(path, **keywords))
        return files[-1]

    yield open
    for file in files:
        file.close()


@pytest.fixture
def stored(opened, asdf_bytes):
    """Return a function that returns a block with the bytes that are given, `data` decoded."""
    def block(content, name="", data_size=120_000, checksum=bytes(16), **keywords):
        made = asdf_bytes.block(content, compression=name.encode(), data_size=data_size, checksum=checksum)
        data = asdf_bytes.file(asdf_bytes.block(b"before"), made, asdf_bytes.block(b"after"))
        return opened(data, **keywords).blocks[1]

    return block


def test_facts_of_a_block(stored):
    block = stored(STORED["zlib"], "zlib", checksum=bytes(range(16)))
    assert (block.number, block.offset, block.data_offset) == (1, 160, 214) and block.path.endswith("0.asdf")
    assert block.used == block.allocated == len(STORED["zlib"]) and block.data_size == len(DATA)
    assert block.compression == "zlib" and block.is_compressed and block.checksum == bytes(range(16))
    assert block.extent() is None and not block.is_streamed and "zlib" in repr(block)
    raw = stored(DATA)
    assert raw.compression is None and raw.checksum is None and not raw.is_compressed
    assert raw.extent() == (raw.path, 214, len(DATA))


def test_raw_data(stored):
    """AS-CMP-01: no compression; memory of its own for each read, or the caller's."""
    block = stored(DATA)
    first, second = block.read(), block.read()
    first[:5] = b"other"
    assert bytes(second) == DATA
    out = np.empty(len(DATA) // 4, "<i4")
    assert block.read(out) is out and out.tobytes() == DATA
    for wrong in (bytearray(len(DATA) - 1), bytearray(len(DATA) + 1)):
        with pytest.raises(ValueError, match="out has"):
            block.read(wrong)
    with pytest.raises(TypeError):
        block.read(bytes(len(DATA)))


def test_parts_of_raw_data(stored):
    """AS-ND-11, AS-ND-13: of an uncompressed block only the bytes that are asked for, which must lie in it."""
    block = stored(DATA)
    for offset, length in [(0, 0), (0, 1), (5, 1000), (len(DATA) - 1, 1), (len(DATA), 0), (0, len(DATA))]:
        assert bytes(block.read_range(offset, length)) == DATA[offset:offset + length]
    for offset, length in [(0, len(DATA) + 1), (len(DATA), 1), (-1, 1), (0, -1), (2**64, 1), (1, 2**64)]:
        with pytest.raises(AsdfFormatError, match="block 1 at byte 160") as caught:
            block.read_range(offset, length)
        assert caught.value.block == 1 and caught.value.offset == 160


def test_parts_of_raw_data_read_nothing_else(stored, monkeypatch):
    block, lengths = stored(DATA), []
    preadv = os.preadv
    monkeypatch.setattr(os, "preadv", lambda fd, views, offset: lengths.append(len(views[0])) or preadv(
        fd, views, offset))
    block.read_range(1000, 123)
    assert lengths == [123]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_large_blocks_are_read_by_several_threads(opened, asdf_bytes, threads, monkeypatch):
    monkeypatch.setattr(config, "_threads", threads)
    data = np.random.default_rng(1).bytes((9 << 20) + 3)
    for name, content in (("", data), ("lz4", lz4(data, 1 << 20))):
        made = asdf_bytes.block(content, compression=name.encode(), data_size=len(data))
        assert bytes(opened(asdf_bytes.file(made)).blocks[0].read()) == data


def test_mapped_data(stored):
    """AS-CHK-04, AS-CMP-07: no checksum is compared before `verify` is asked; compressed blocks are not mapped."""
    block = stored(DATA, checksum=b"wrong" + bytes(11))
    mapped = block.memmap()
    assert mapped.tobytes() == DATA and mapped.dtype == "u1" and not mapped.flags.writeable
    with pytest.raises(ChecksumError):
        block.verify()
    assert len(stored(b"", data_size=0).memmap()) == 0
    with pytest.raises(ValueError, match="compressed by zlib"):
        stored(STORED["zlib"], "zlib").memmap()


def blosc_records(data, n_record, **keywords):
    parts = [zcore.blosc.compress(data[i:i + n_record], **keywords) for i in range(0, len(data), n_record)]
    return b"".join([struct.pack(">I", len(part)) + part for part in parts])


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n_record", [1000, 50_000, 1 << 22])
@pytest.mark.parametrize("keywords", [{"typesize": 4, "cname": "zstd"}, {"typesize": 1, "clevel": 0}, {"typesize": 8}])
def test_blosc_in_records(stored, keywords, n_record, threads, monkeypatch):
    """AS-CMP-05: as abacusutils writes it; asdf-compression has one chunk alone."""
    monkeypatch.setattr(config, "_threads", threads)
    monkeypatch.setattr(compression, "_RECORD_NBYTES", 10_000)
    block = stored(blosc_records(DATA, n_record, **keywords), "blsc")
    assert bytes(block.read()) == DATA and bytes(block.read_range(7, 100)) == DATA[7:107]


def test_blosc_records_that_lie(stored):
    """AS-CMP-03, AS-CMP-04, AS-CMP-05: lengths of records and of chunks that lead out of the block or the array."""
    content = blosc_records(DATA, 50_000, typesize=4)
    n_first = struct.unpack_from(">I", content)[0]
    for at, value in ((0, n_first - 1), (0, n_first + 1), (0, 0), (0, 15), (0, 2**32 - 1), (4 + n_first, 2**31),
                      (4 + n_first, 4)):
        wrong = bytearray(content)
        struct.pack_into(">I", wrong, at, value)
        with pytest.raises(AsdfFormatError, match="blsc"):
            stored(bytes(wrong), "blsc").read()
    for value in (0, 49_999, 50_001, 2**31 - 1, 2**32 - 1):
        for at in (4 + 4, 4 + n_first + 4 + 4):
            wrong = bytearray(content)
            struct.pack_into("<I", wrong, at, value)
            with pytest.raises(AsdfFormatError, match="blsc"):
                stored(bytes(wrong), "blsc").read()
    for cut in range(1, 60):
        for wrong in (content[:-cut], content[:cut], content + bytes(cut)):
            with pytest.raises(AsdfFormatError, match="blsc"):
                stored(wrong, "blsc").read()
    for size in (len(DATA) - 1, len(DATA) + 1, 1):
        with pytest.raises(AsdfFormatError, match="blsc"):
            stored(content, "blsc", data_size=size).read()


@pytest.mark.parametrize("name", STORED)
def test_compressed_data(stored, name):
    """AS-CMP-01, AS-CMP-02, AS-CMP-05: zlib, bzp2, lz4 in records, a zstd frame, a Blosc chunk."""
    block = stored(STORED[name], name)
    assert bytes(block.read()) == DATA and bytes(block.read_range(7, 100)) == DATA[7:107]
    out = bytearray(len(DATA))
    assert block.read(out) is out and out == DATA


@pytest.mark.parametrize("name", STORED)
def test_nothing_is_stored_for_nothing(stored, name):
    """AS-BLK-09, AS-CMP-04: a compressed block of no data, as some writers leave it."""
    assert bytes(stored(b"", name, 0).read()) == b""
    with pytest.raises(AsdfFormatError):
        stored(b"", name, 1).read()


def test_records_of_lz4_byte_by_byte(stored):
    """AS-CMP-02: a big-endian length, then a little-endian one and an LZ4 block."""
    literal = b"\x30abc"                               # a token of three literals
    content = b"\0\0\0\x08" + b"\x03\0\0\0" + literal + b"\0\0\0\x08" + b"\x03\0\0\0" + literal
    assert bytes(stored(content, "lz4", 6).read()) == b"abcabc"
    written = b"".join(compression.encode("lz4", memoryview(bytes(24_000_000))))
    sizes, offset = [], 0
    while offset < len(written):
        sizes.append(struct.unpack("<I", written[offset + 4:offset + 8])[0])
        offset += 4 + struct.unpack(">I", written[offset:offset + 4])[0]
    assert sizes == [4_194_304] * 5 + [3_028_480]


@pytest.mark.parametrize("content", [
    b"\0\0\0", b"\0\0\0\x08", b"\0\0\0\x08\x03\0\0", b"\0\0\0\x03\x03\0\0", b"\0\0\0\x09\x03\0\0\0\x30abc",
    b"\xff\xff\xff\xff\x03\0\0\0\x30abc", b"\0\0\0\x08\x04\0\0\0\x30abc", b"\0\0\0\x08\x02\0\0\0\x30abc",
    b"\0\0\0\x08\x03\0\0\0\x30abc" * 3, b"\0\0\0\x08\xff\xff\xff\xff\x30abc", b"\0\0\0\x08\x03\0\0\0\x30abc", b"",
    b"\0\0\0\x08\x03\0\0\0\x30abc\0",
])
def test_damaged_records_of_lz4(stored, content):
    """AS-CMP-03, AS-CMP-04: lengths that do not fit, of the records, of what they decode to, or of the whole."""
    with pytest.raises(AsdfFormatError, match="block 1 at byte 160") as caught:
        stored(content, "lz4", 6).read()
    assert caught.value.block == 1 and caught.value.offset >= 160


@pytest.mark.parametrize("name", STORED)
def test_decoded_size_is_compared(stored, name):
    """AS-CMP-04: more or less than the header says is an error, and no more is decoded."""
    for data_size in (0, 1, len(DATA) - 1, len(DATA) + 1):
        with pytest.raises(AsdfFormatError) as caught:
            stored(STORED[name], name, data_size).read()
        assert caught.value.block == 1 and caught.value.offset is not None


@pytest.mark.parametrize("name", STORED)
def test_truncated_and_damaged_streams(stored, name):
    """AS-CMP-04: an error, or the right data."""
    content = STORED[name]
    for n in sorted({0, 1, 3, 4, 10, len(content) // 2, len(content) - 5, len(content) - 1}):
        with pytest.raises(AsdfFormatError):
            stored(content[:n], name).read()
    for i in range(0, len(content), len(content) // 50):
        damaged = bytearray(content)
        damaged[i] ^= 0x40
        block = stored(bytes(damaged), name, checksum=hashlib.md5(content).digest())
        with pytest.raises((AsdfFormatError, ChecksumError, UnsupportedError)):
            block.read()


@pytest.mark.parametrize("library", ["the extra", "zlib"])
def test_zlib_by_either_library(stored, library, monkeypatch):
    """AS-CMP-01, AS-CMP-04: streams that want much room for little input, and that end just where a piece does."""
    if library == "zlib":
        monkeypatch.setattr(deflate, "reader", lambda: None)
        monkeypatch.setattr(deflate, "writer", lambda: None)
    elif deflate.reader() is None:
        pytest.skip("isal is not installed")
    noise = np.random.default_rng(2).bytes(1 << 20)
    for data in (b"", b"x", bytes(5_000_000), bytes(1 << 18), bytes((1 << 18) - 1), DATA, noise):
        content = b"".join(compression.encode("zlib", memoryview(data)))
        assert zlib.decompress(content) == data
        assert bytes(stored(content, "zlib", len(data)).read()) == data
        with pytest.raises(AsdfFormatError, match="decodes to"):
            stored(content, "zlib", len(data) + 1).read()


def test_bytes_behind_a_stream(stored):
    """AS-CMP-04: let pass with a warning; bzip2 may have several streams."""
    for name, more in (("zlib", b"x" * 10), ("zlib", bytes(1 << 19)), ("bzp2", b"x"), ("bzp2", b"BZ"),
                       ("bzp2", bytes(1 << 19))):
        with pytest.warns(UserWarning, match="behind the end of a"):
            assert bytes(stored(STORED[name] + more, name).read()) == DATA
    two = bz2.compress(DATA[:1000]) + bz2.compress(b"") + bz2.compress(DATA[1000:])
    assert bytes(stored(two, "bzp2").read()) == DATA


@pytest.mark.parametrize("name", ["ZLIB", "bls2", "lz4f", "zl", "\xff\xfe", "zlib"[::-1]])
def test_unknown_compression_is_refused_when_its_block_is_read(opened, asdf_bytes, name):
    """AS-CMP-01, AS-CMP-05, AS-CMP-06: other blocks stay readable; case matters."""
    made = asdf_bytes.block(b"xyz", compression=name.encode("latin-1"), data_size=100)
    file = opened(asdf_bytes.file(asdf_bytes.block(b"before"), made, asdf_bytes.block(b"after")))
    assert bytes(file.blocks[0].read()) == b"before" and bytes(file.blocks[2].read()) == b"after"
    assert file.blocks[1].compression == name
    for ask in (file.blocks[1].read, lambda: file.blocks[1].read_range(0, 1)):
        with pytest.raises(UnsupportedError, match="is unknown"):
            ask()


def test_bombs_are_refused_before_memory_is_taken(stored):
    """AS-BLK-08: a size that the stored bytes cannot decode to; one that memory cannot hold."""
    tracemalloc.start()
    try:
        for name in STORED:
            for data_size in (2**62, 2**63 - 1, 2**36):
                with pytest.raises((AsdfFormatError, OutOfMemoryError)):
                    stored(STORED[name][:1000], name, data_size).read()
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["zlib", "bzp2", "lz4", "zstd"])
def test_a_stream_is_decoded_no_further_than_its_size(stored, name):
    """AS-BLK-08, AS-CMP-04: what the header says bounds the memory."""
    data = bytes(50 << 20)
    content = {"zlib": zlib.compress, "bzp2": bz2.compress, "lz4": lz4,
               "zstd": Program((("zstd", 3, False),)).encode_bytes}[name](data)
    block = stored(content, name, 1000)
    tracemalloc.start()
    try:
        with pytest.raises(AsdfFormatError):
            block.read()
        assert tracemalloc.get_traced_memory()[1] < 3 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["", "zlib", "bzp2", "lz4"])
def test_memory_is_that_of_the_result(stored, name):
    data = np.random.default_rng(3).integers(0, 4, 3 << 20, "u1").tobytes()
    content = b"".join(compression.encode(name, memoryview(data))) if name else data
    block = stored(content, name, len(data), checksum=hashlib.md5(content).digest())
    bound = (1 << 20) if name != "lz4" else (1 << 20) + config.threads * (4 << 20)
    block.read()
    tracemalloc.start()
    try:
        assert bytes(block.read()[:100]) == data[:100]
        assert tracemalloc.get_traced_memory()[1] < len(data) + bound
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["", *STORED])
def test_checksum_of_stored_or_decoded_bytes(stored, name):
    """AS-CHK-01 to AS-CHK-03: either for a compressed block; zeros for none; of the used bytes alone."""
    content = STORED.get(name, DATA)
    for digest in (hashlib.md5(content).digest(), hashlib.md5(DATA).digest()):
        block = stored(content, name, checksum=digest)
        assert bytes(block.read()) == DATA and block.verify() is True
    assert stored(content, name).verify() is False
    block = stored(content, name, checksum=hashlib.md5(b"other").digest())
    for ask in (block.read, block.verify, lambda: block.read(bytearray(len(DATA)))):
        with pytest.raises(ChecksumError, match="block 1 at byte 160") as caught:
            ask()
        assert caught.value.offset == 160 and caught.value.expected == hashlib.md5(b"other").hexdigest()
    assert bytes(block.read(verify=False)) == DATA
    if not name:
        # Not compared, as the rest is not read.
        assert bytes(block.read_range(5, 10)) == DATA[5:15]
        with pytest.raises(ChecksumError):
            block.read_range(0, len(DATA))


def test_checksums_are_compared_as_the_file_was_opened(stored):
    """AS-CHK-04: on by default."""
    wrong = hashlib.md5(b"other").digest()
    assert bytes(stored(DATA, checksum=wrong, verify=False).read()) == DATA
    with pytest.raises(ChecksumError):
        stored(DATA, checksum=wrong, verify=False).read(verify=True)


def test_room_is_no_part_of_the_checksum(opened, asdf_bytes):
    """AS-CHK-03: padding behind the used bytes."""
    made = asdf_bytes.block(b"abc" + b"?" * 10, used=3, allocated=13, checksum=hashlib.md5(b"abc").digest())
    assert opened(asdf_bytes.file(made)).verify() == 1


def test_system_without_md5(stored, monkeypatch):
    """AS-CHK-04: a warning, and data as without a checksum."""
    def forbidden(*_, **__):
        raise ValueError("disabled for FIPS")

    block = stored(DATA, checksum=hashlib.md5(b"other").digest())
    monkeypatch.setattr(checksums.hashlib, "md5", forbidden)
    with pytest.warns(UserWarning, match="neither verified nor written"):
        assert bytes(block.read()) == DATA
    with pytest.warns(UserWarning, match="neither verified nor written"):
        assert block.verify() is False


def test_file_that_is_cut_off_while_it_is_open(stored):
    for name in ("", *STORED):
        block = stored(STORED.get(name, DATA), name)
        with builtins.open(block.path, "r+b") as other:
            other.truncate(1000)
        with pytest.raises((TruncatedError, AsdfFormatError)):
            block.read()
        if not name:
            with pytest.raises(TruncatedError):
                block.memmap()


def test_fault_of_the_system_is_a_store_error(stored, monkeypatch):
    def fail(*_):
        raise OSError(5, "Input/output error")

    block = stored(DATA)
    monkeypatch.setattr(os, "preadv", fail)
    with pytest.raises(StoreError, match="Input/output error") as caught:
        block.read()
    assert caught.value.errno == 5
