"""CRC-32C: published values, the bit-by-bit definition, and the same sum by every way of computing it."""
import doctest
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zcore.kernel.codec import checksums as module
from zcore.kernel.codec.checksums import crc32c, crc32c_table, implementation


def by_definition(data):
    """The remainder bit by bit, with the reflected polynomial."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_docstrings_hold():
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("function", [crc32c, crc32c_table])
@pytest.mark.parametrize(("data", "expected"), [
    (b"", 0),
    (b"123456789", 0xE3069283),
    # RFC 3720, appendix B.4
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C),
    (bytes.fromhex("01c00000 00000000 00000000 00000000 14000000 00000400 00000014 00000018 28000000 00000000"
                   "02000000 00000000"), 0xD9963A56),
])
def test_published_values(function, data, expected):
    """V3-CRC-01"""
    assert function(data) == expected


def test_every_length_and_alignment():
    """Around the lengths where the three interleaved stretches begin, at all addresses modulo 8."""
    data = random.Random(1).randbytes(13_000)
    lengths = {*range(40), *range(376, 400), *range(760, 776), *range(12280, 12300), 12672, 12900}
    for n in sorted(lengths):
        value = by_definition(data[:n]) if n < 800 else crc32c_table(data[:n])
        assert crc32c_table(data[:n]) == value
        for shift in range(8):
            moved = memoryview(bytes(shift) + data)[shift:shift + n]
            assert crc32c(moved) == value, (n, shift)


def test_long_data():
    data = random.Random(2).randbytes(1_000_003)
    assert crc32c(data) == crc32c_table(data)
    assert crc32c(data[1:]) == crc32c_table(data[1:])


@given(st.binary(max_size=1000), st.binary(max_size=1000), st.integers(1, 40))
def test_sums_chain(head, tail, repeat):
    tail = tail * repeat
    for function in (crc32c, crc32c_table):
        assert function(tail, function(head)) == crc32c_table(head + tail)
    assert crc32c(b"", 12345) == 12345


def test_every_flipped_bit_changes_the_sum():
    data = bytearray(random.Random(3).randbytes(500))
    whole = crc32c(data)
    for bit in range(8 * len(data)):
        data[bit // 8] ^= 1 << bit % 8
        assert crc32c(data) != whole
        data[bit // 8] ^= 1 << bit % 8


def test_any_contiguous_buffer_is_taken():
    assert crc32c(bytearray(b"123456789")) == crc32c(memoryview(b"123456789")) == 0xE3069283
    assert implementation() in ("sse4.2", "armv8", "table")
    with pytest.raises(TypeError):
        crc32c("text")
    with pytest.raises(BufferError):
        crc32c(memoryview(b"123456789")[::2])
    with pytest.raises(OverflowError):
        crc32c(b"", 2**32)
