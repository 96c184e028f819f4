"""gzip and zlib in the kernel, by libdeflate or by zlib alone: contents and errors are those of Python's zlib."""
import gzip
import itertools
import re
import zlib

import numpy as np
import pytest

from zcore.errors import CodecError
from zcore.kernel.codec.compress import LIBDEFLATE
from zcore.kernel.codec.program import Program

RNG = np.random.default_rng(0)
CONTENT = bytes(range(200)) * 20 + RNG.bytes(1000)
WBITS = {"gzip": 31, "zlib": 15}
GUARD = b"x" * 64
KINDS = {"damaged": "is damaged", "short": "ends before it has given", "long": "content has at least",
         "trailing": "ends at byte", "size": "decodes to"}


def packed(name, content, level=6):
    return Program(((name, level),)).encode_bytes(content)


def kind_of(error):
    return next(kind for kind, words in KINDS.items() if re.search(words, str(error)))


def found(name, data, n, at_most):
    """Return the content, or the kind of the error."""
    program = Program(((name, 1),))
    try:
        content = bytes(program.decode_new(data, n, at_most, (name,)))
    except CodecError as error:
        content = kind_of(error)
    if not at_most:
        out = bytearray(n) + GUARD
        try:
            program.decode_bytes(data, memoryview(out)[:n], (name,))
            assert out[:n] == content
        except CodecError as error:
            assert kind_of(error) == content
        assert out[n:] == GUARD
    return content


def expected(name, data, n, at_most):
    """Return the same by Python's zlib: a tuple, since damage may be found with the byte that is too much."""
    content, rest = b"", data
    while True:
        member = zlib.decompressobj(WBITS[name])
        for room in filter(None, (n - len(content), 1)):
            try:
                part = member.decompress(rest, room)
            except zlib.error:
                return ("damaged", "long") if len(content) == n else ("damaged",)
            content, rest = content + part, member.unconsumed_tail
            if member.eof or len(part) < room:
                break
        if len(content) > n:
            return ("long",)
        if not member.eof:
            return ("short",)
        rest = member.unused_data
        if not rest:
            return (content if len(content) == n or at_most else "size",)
        if name != "gzip" or not rest.startswith(b"\x1f\x8b"):
            return ("trailing",)


def flipped(data, i, bit):
    return data[:i] + bytes([data[i] ^ 1 << bit]) + data[i + 1:]


def raw(content):
    stream = zlib.compressobj(9, zlib.DEFLATED, -15)
    return stream.compress(content) + stream.flush()


def member(content, flags, fields=b"", header_crc=None, crc=None, size=None):
    """Return a gzip member with these flags, and the fields that they announce."""
    head = b"\x1f\x8b\x08" + bytes([flags]) + b"\1\2\3\4\0\3" + fields
    if header_crc is not None:
        head += ((zlib.crc32(head) & 0xffff) ^ header_crc).to_bytes(2, "little")
    crc, size = zlib.crc32(content) if crc is None else crc, len(content) if size is None else size
    return head + raw(content) + crc.to_bytes(4, "little") + size.to_bytes(4, "little")


def streams(name):
    """Yield streams, whole and damaged."""
    for level in (-1, 0, 1, 6, 9):
        yield packed(name, CONTENT, level)
    good = zlib.compress(CONTENT) if name == "zlib" else gzip.compress(CONTENT, mtime=0)
    small = zlib.compress(b"", 0) if name == "zlib" else gzip.compress(b"", mtime=0)
    yield from (good[:n] for n in (*range(30), *range(len(good) - 20, len(good) + 1)))
    yield from (good + behind for behind in (b"\0", b"\x1f", b"\x1f\x8b", b"garbage", bytes(100)))
    for parts in itertools.product((good, small, good[:-1], good[:1], b"\0"), repeat=3):
        yield b"".join(parts)
    yield 500 * small + good
    yield 500 * small + good + small[:-1]
    for i in (*range(20), *range(len(good) - 9, len(good)), *RNG.integers(len(good), size=100)):
        yield flipped(good, int(i), int(RNG.integers(8)))
    for i in range(12):
        for bit in range(8):
            yield flipped(good, i, bit)
    yield from (RNG.bytes(n) for n in (1, 18, 1000))


def headers():
    """Yield gzip members of all headers, with wrong sums and sizes."""
    for flags in range(256):
        fields = ((b"\3\0abc" if flags & 4 else b"") + (b"name\0" if flags & 8 else b"")
                  + (b"comment\0" if flags & 16 else b""))
        crcs = (0, 1, 0x100) if flags & 2 else (None,)
        yield from (member(CONTENT, flags, fields, crc) for crc in crcs)
    yield member(CONTENT, 4, b"\xff\xffabc")
    yield member(CONTENT, 8, b"name without end")[:30]
    yield member(CONTENT, 0, crc=0)
    for size in (0, len(CONTENT) - 1, len(CONTENT) + 1, 2**32 - 1):
        yield member(CONTENT, 0, size=size)


@pytest.mark.parametrize("name", WBITS)
def test_contents_and_errors_are_those_of_zlib(name):
    """V3-GZIP-01: members, trailing bytes, checksums and sizes. Nothing is written behind the content."""
    n = len(CONTENT)
    for data in (*streams(name), *(headers() if name == "gzip" else ())):
        for n_bytes, at_most in itertools.product((n, n - 1, n + 1, 2 * n, 3 * n, 0, 1), (False, True)):
            assert found(name, data, n_bytes, at_most) in expected(name, data, n_bytes, at_most)


@pytest.mark.parametrize("name", WBITS)
def test_every_flipped_bit_is_damage_or_changes_nothing(name):
    """libdeflate reads a few codes that zlib refuses. What it reads has the right size and checksum."""
    for content in (b"a" * 3000, bytes(range(60)) * 9):
        good = gzip.compress(content, mtime=0) if name == "gzip" else zlib.compress(content)
        for i, bit in itertools.product(range(len(good)), range(8)):
            data = flipped(good, i, bit)
            content_or_kind = found(name, data, len(content), False)
            if content_or_kind != content or not LIBDEFLATE:
                assert content_or_kind in expected(name, data, len(content), False)


@pytest.mark.parametrize("name", WBITS)
@pytest.mark.parametrize("level", range(-1, 10))
def test_every_level_is_read_by_others(name, level):
    program = Program(((name, level),))
    for content in (b"", b"a", CONTENT, RNG.bytes(300_000), bytes(300_000)):
        encoded = program.encode_bytes(content)
        assert zlib.decompress(encoded, WBITS[name]) == content
        assert found(name, encoded, len(content), False) == content
        assert program.encode_bytes(content) == encoded
        assert len(encoded) <= program.encoded_bound(len(content))


def test_level_minus_one_is_six():
    content = np.sin(np.arange(20_000)).round(2).astype("<f4").tobytes()
    assert packed("zlib", content, -1) == packed("zlib", content, 6) != packed("zlib", content, 9)


@pytest.mark.parametrize("name", WBITS)
@pytest.mark.parametrize("level", [-2, 10, 12, 2**31 - 1, -2**31])
def test_other_levels_are_refused(name, level):
    with pytest.raises(CodecError, match="could not encode 3 bytes"):
        Program(((name, level),)).encode_bytes(b"abc", (name,))


def test_steps_of_one_codec_have_levels_of_their_own():
    """The compressors of a thread are kept by level."""
    content = np.sin(np.arange(50_000)).round(1).astype("<f4").tobytes()
    program = Program([("gzip", level) for level in (0, 1, 0, 9)])
    encoded = program.encode_bytes(content)
    assert encoded == packed("gzip", packed("gzip", packed("gzip", packed("gzip", content, 0), 1), 0), 9)
    out = bytearray(len(content))
    program.decode_bytes(encoded, out)
    assert out == content


def test_the_linked_library_encodes():
    """RFC 1952, 2.3.1: byte 9 is the operating system. libdeflate writes 255, unknown."""
    assert (packed("gzip", CONTENT)[9] == 255) == bool(LIBDEFLATE)
