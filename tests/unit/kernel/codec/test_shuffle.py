"""Shuffles of one block against their definition, and against the blocks of real chunks."""
import doctest
import itertools
import struct
import zlib

import blosc
import numpy as np
import pytest

from tests.each import each
from zcore.kernel.codec import blosc_header
from zcore.kernel.codec import shuffle as module
from zcore.kernel.codec.shuffle import bitshuffle, shuffle, unbitshuffle, unshuffle

TYPE_SIZES = (*range(1, 34), 47, 48, 64, 65, 100, 128, 254, 255, 256, 257, 300)
# Around the steps of 16 and 32 items, of 128 and 512 items of a strip, and what is left behind them.
ITEMS = (0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 40, 63, 64, 95, 120, 128, 136, 300, 512, 520, 1024, 1288)


def planes(data, typesize):
    """The definition: a transposition of bytes, and the rest in place."""
    n = len(data) // typesize
    items = np.frombuffer(data[:n * typesize], "u1").reshape(n, typesize)
    return items.T.tobytes() + data[n * typesize:]


def bit_rows(data, typesize):
    """The definition: a transposition of bits, of a multiple of 8 items, and the rest in place."""
    n = len(data) // typesize
    if n % 8:
        return data
    items = np.frombuffer(data[:n * typesize], "u1").reshape(n, typesize)
    bits = np.unpackbits(items, axis=1, bitorder="little")
    return np.packbits(bits.T, axis=1, bitorder="little").tobytes() + data[n * typesize:]


def test_docstrings_hold():
    assert doctest.testmod(module).failed == 0


@each("typesize", TYPE_SIZES)
def test_blocks_of_every_size(typesize):
    """BL-SHF-01, BL-SHF-02, BL-SHF-03"""
    random = np.random.default_rng(typesize)
    for n, rest in itertools.product(ITEMS, {0, 1, typesize - 1}):
        data = random.bytes(n * typesize + rest)
        shuffled = planes(data, typesize)
        assert shuffle(data, typesize) == shuffled, n
        assert unshuffle(shuffled, typesize) == data, n
        assert bitshuffle(data, typesize) == bit_rows(data, typesize), n
        assert unbitshuffle(bit_rows(data, typesize), typesize) == data, n


@each("typesize", [2, 3, 4, 8, 16, 24])
def test_unaligned_blocks(typesize):
    data = np.random.default_rng(1).bytes(typesize * 200 + 1)
    for shift in range(1, 17):
        moved = memoryview(bytes(shift) + planes(data, typesize))[shift:]
        assert unshuffle(moved, typesize) == data
        assert shuffle(memoryview(bytes(shift) + data)[shift:], typesize) == planes(data, typesize)
        assert bitshuffle(memoryview(bytes(shift) + data)[shift:], typesize) == bit_rows(data, typesize)
        assert unbitshuffle(memoryview(bytes(shift) + bit_rows(data, typesize))[shift:], typesize) == data


def blocks_of(chunk):
    """The blocks of a zlib chunk, decoded but still shuffled."""
    info = blosc_header.validate(chunk)
    assert info.compressor == "zlib" and not info.memcpyed
    for block, start in enumerate(struct.unpack_from(f"<{info.n_blocks}i", chunk, 16)):
        n_bytes = min(info.blocksize, info.nbytes - block * info.blocksize)
        n_streams = info.typesize if info.is_split and n_bytes == info.blocksize else 1
        decoded = b""
        for _ in range(n_streams):
            size, = struct.unpack_from("<i", chunk, start)
            stream = chunk[start + 4:start + 4 + size]
            decoded += stream if size == n_bytes // n_streams else zlib.decompress(stream)
            start += 4 + size
        assert len(decoded) == n_bytes
        yield decoded


@pytest.mark.parametrize(("flag", "forward", "inverse"), [(blosc.SHUFFLE, shuffle, unshuffle),
                                                          (blosc.BITSHUFFLE, bitshuffle, unbitshuffle)])
@pytest.mark.parametrize("typesize", [1, 2, 3, 4, 7, 8, 12, 16, 20])
def test_blocks_of_real_chunks(flag, forward, inverse, typesize):
    """BL-SHF-02, BL-SHF-03, BL-SHF-04"""
    for n_bytes in (typesize * 4096, typesize * 50_003, typesize * 50_001 + typesize - 1, 999, 200_000):
        data = (np.arange(n_bytes // 4 + 1) // 5).astype("u4").tobytes()[:n_bytes]
        chunk = blosc.compress(data, typesize=typesize, cname="zlib", clevel=1, shuffle=flag)
        blocks = [*blocks_of(chunk)]
        plain = [inverse(block, typesize) for block in blocks]
        assert b"".join(plain) == data
        assert [forward(block, typesize) for block in plain] == blocks


@pytest.mark.parametrize("function", [shuffle, unshuffle, bitshuffle, unbitshuffle])
def test_item_sizes_below_one_are_refused(function):
    for typesize in (0, -1):
        with pytest.raises(ValueError, match="at least 1 byte"):
            function(b"abc", typesize)
    assert function(b"", 4) == b""
