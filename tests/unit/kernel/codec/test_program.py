"""Codec chains in C: what cannot be lowered is refused; what they do is shown with the codecs."""

import pytest

from tests.each import each
from zcore.errors import ChecksumError, CodecError, UnsupportedError
from zcore.kernel.codec.program import Program

BLOSC = ("blosc", "lz4", 5, 1, 4, 0)


@each(
    ("steps", "match"),
    [
        ([("bz2", 5)], "no C form"),
        ([("scale_offset", "i4", 0.0, 1.0)], "i4 has no C form"),
        ([("scale_offset", "f2", 0.0, 1.0)], "f2 has no C form"),
        ([("crc32c",)] * 9, "at most 8"),
        ([("blosc", "lz5", 5, 1, 4, 0)], "unknown"),
    ],
)
def test_what_cannot_be_lowered(steps, match):
    with pytest.raises(ValueError, match=match):
        Program(steps)


@each("steps", [
    [], [BLOSC], [BLOSC, ("crc32c",)], [("crc32c",)] * 8, [BLOSC, BLOSC], [("crc32c",), BLOSC],
    [("crc32", True), ("zlib", 1), ("adler32", True), ("fletcher32", False)],
    [("zstd", 3, True), ("crc32c",), ("lz4", 1), ("crc32", True), ("gzip", 9), ("fletcher32",), BLOSC, ("crc32c",)],
    [("lz4", 1), ("lz4", 1), ("lz4", 1)], [("crc32c", True), ("crc32c",), ("crc32c", True)],
    [("gzip", 0), ("zstd", -5, False)],
])
@each("n", [0, 1, 127, 128, 10_000])
def test_round_trip(steps, n):
    program = Program(steps)
    assert program.n_steps == len(steps)
    data = (bytes(range(256)) * 40)[:n]
    out = bytearray(n)
    encoded = program.encode_bytes(data)
    assert len(encoded) <= program.encoded_bound(n)
    program.decode_bytes(encoded, out)
    assert out == data
    for limit in (n, n + 100):
        assert program.decode_new(encoded, limit, at_most=True) == data


def test_item_size_of_the_header():
    encoded = Program([("blosc", "lz4", 5, 1, 8, 0)]).encode_bytes(bytes(1000))
    for itemsize in (0, 8):
        Program([BLOSC], itemsize).decode_bytes(encoded, bytearray(1000))
    with pytest.raises(CodecError) as caught:
        Program([BLOSC], 4).decode_bytes(encoded, bytearray(1000))
    assert (caught.value.expected, caught.value.found) == (4, 8)


def test_checksums_come_before_everything_else():
    """Nothing of a chunk is used before all of it is verified."""
    program = Program([BLOSC, ("crc32c",)])
    encoded = bytearray(program.encode_bytes(bytes(1000)))
    encoded[0] = 9
    out = bytearray(b"x" * 1000)
    with pytest.raises(ChecksumError):
        program.decode_bytes(encoded, out)
    assert out == b"x" * 1000


@pytest.mark.parametrize("arguments", [(None, bytearray(1)), (b"", None), ("x", bytearray(1)), (b"", b"x" * 4)])
def test_wrong_buffers(arguments):
    with pytest.raises((TypeError, ValueError, BufferError)):
        Program([]).decode_bytes(*arguments)


def test_snappy_without_a_library():
    program = Program([("blosc", "snappy", 5, 1, 4, 0)])
    try:
        encoded = program.encode_bytes(bytes(1000))
    except UnsupportedError as error:
        assert error.feature == "snappy"
    else:
        out = bytearray(b"x" * 1000)
        program.decode_bytes(encoded, out)
        assert out == bytes(1000)
