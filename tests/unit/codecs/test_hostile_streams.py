"""Objects that are made to harm: content far beyond the chunk, streams that lie about themselves, frames of all kinds.

Each ends in an error, or in the right chunk, within the memory that the chunk alone needs.
"""
import functools
import gzip
import subprocess
import sys
import textwrap
import zlib

import numcodecs
import numpy as np
import pytest

from zcore.codecs.chain import CodecChain, codec_of
from zcore.errors import ChunkError, CodecError
from zcore.kernel.codec.program import Program
from zcore.model.metadata import CodecSpec

N = 1000
CONTENT = (np.arange(N) % 251).astype("u1").tobytes()
STREAMS = ("zstd", "gzip", "numcodecs.zlib", "numcodecs.lz4", "blosc", "numcodecs.bz2", "numcodecs.lzma")


def codec_named(name):
    codec = codec_of(name, {})
    return codec.resolve(1) if name == "blosc" else codec


@pytest.mark.parametrize("name", STREAMS)
def test_more_content_than_the_chunk_has_is_not_decoded(name):
    """V3-COD-07: nothing is written behind the chunk, and the error says what was expected."""
    codec = codec_named(name)
    for n in (N + 1, 100 * N, 50_000_000):
        encoded = codec.encode(bytes(n))
        with pytest.raises(CodecError) as caught:
            codec.decode(encoded, N)
        assert caught.value.expected == N < caught.value.found
        if codec.step() is None:
            continue
        out = bytearray(b"x" * (N + 64))
        with pytest.raises(CodecError):
            Program([codec.step()]).decode_bytes(encoded, memoryview(out)[:N])
        assert out[N:] == b"x" * 64


@functools.cache
def bomb_of(name):
    return codec_named(name).encode(bytes(20_000_000))


@pytest.mark.parametrize("inner", STREAMS)
@pytest.mark.parametrize("outer", STREAMS)
def test_a_stream_in_a_stream_is_bounded_by_the_inner_one(inner, outer):
    """What the outer stream may hold is the most that the inner codec makes of the chunk."""
    specs = CodecSpec("bytes"), CodecSpec(inner), CodecSpec(outer)
    chain = CodecChain(specs, np.dtype("u1"), (N,))
    assert chain.decode(chain.encode(np.frombuffer(CONTENT, "u1"))).tobytes() == CONTENT
    bomb = bomb_of(outer)
    with pytest.raises(CodecError) as caught:
        chain.decode(bomb)
    assert caught.value.codec == outer
    if chain.is_native:
        with pytest.raises(CodecError) as kernel:
            chain.program.decode_bytes(bomb, bytearray(N), chain.step_names)
        assert (kernel.value.codec, kernel.value.expected) == (outer, caught.value.expected)


BOMB = textwrap.dedent("""
    import resource, sys, zlib
    import numpy as np
    from zcore.codecs.chain import CodecChain
    from zcore.errors import CodecError
    from zcore.model.metadata import CodecSpec

    compressor = zlib.compressobj(1, zlib.DEFLATED, {window_bits})
    bomb = b"".join([compressor.compress(bytes(1 << 20)) for _ in range(256)]) + compressor.flush()
    chain = CodecChain((CodecSpec("bytes"), CodecSpec({name!r}), *{others}), np.dtype("u1"), (1 << 16,))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for decode in (chain.decode, lambda raw: chain.program.decode_bytes(raw, bytearray(1 << 16))):
        try:
            decode(bomb)
        except CodecError as error:
            print(error.expected)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(grown // (1 if sys.platform == "linux" else 1024) < 20_000)
""")


@pytest.mark.parametrize(("name", "window_bits", "others"), [
    ("gzip", 31, "()"), ("numcodecs.zlib", 15, "()"), ("numcodecs.shuffle", 31, "(CodecSpec('gzip'),)"),
])
def test_a_quarter_of_a_gigabyte_of_zeros_takes_no_memory(name, window_bits, others):
    """V3-COD-07"""
    code = BOMB.format(name=name, window_bits=window_bits, others=others)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["65536", "65536", "True"]


@pytest.mark.parametrize("name", STREAMS)
def test_every_shorter_stream_and_any_trailing_byte_is_damage(name):
    """V3-GZIP-01, V3-ZSTD-01, V3-COD-04"""
    codec = codec_named(name)
    encoded = bytes(codec.encode(CONTENT))
    for damaged in [encoded[:n] for n in range(len(encoded))] + [encoded + b"\0", encoded + b"\0" * 100, b"\0" * 50]:
        for at_most in (False, True):
            # What is cut off at its very beginning may hold nothing: that is not the chunk.
            if at_most and not damaged:
                continue
            with pytest.raises(ChunkError):
                codec.decode(damaged, N, at_most)


@pytest.mark.parametrize("name", ["gzip", "numcodecs.gzip"])
def test_gzip_members_follow_each_other(name):
    """V3-GZIP-01: members of any level, with names, comments and times; an empty one is one, too."""
    codec = codec_of(name, {})
    named = b"\x1f\x8b\x08\x1e\1\2\3\4\0\3" + b"\3\0abc" + b"a name\0" + b"a comment\0"
    named += (zlib.crc32(named) & 0xFFFF).to_bytes(2, "little")
    body = zlib.compressobj(9, zlib.DEFLATED, -15)
    named += body.compress(CONTENT[300:]) + body.flush()
    named += zlib.crc32(CONTENT[300:]).to_bytes(4, "little") + (N - 300).to_bytes(4, "little")
    assert gzip.decompress(named) == CONTENT[300:]
    members = gzip.compress(CONTENT[:100], 0) + gzip.compress(b"") + gzip.compress(CONTENT[100:300], 9) + named
    assert codec.decode(members, N) == CONTENT
    for damaged in (members[:-1], members + b"\0", members + b"\x1f", members + b"\x1f\x8b", members + members):
        with pytest.raises(CodecError):
            codec.decode(damaged, N)
    for at in (len(members) - 1, len(members) - 5):
        with pytest.raises(CodecError):
            codec.decode(members[:at] + bytes([members[at] ^ 1]) + members[at + 1:], N)


def test_gzip_objects_of_a_chunk_are_the_same_at_any_time():
    """The header holds no time and no name."""
    encoded = codec_of("gzip", {"level": 3}).encode(CONTENT)
    assert encoded[:9] == b"\x1f\x8b\x08\0\0\0\0\0\0" and gzip.decompress(encoded) == CONTENT


def zstd_frame(content, n_parts=1):
    """Return a frame that does not say its content's size, as a streaming writer makes it; by hand, of raw blocks."""
    frame = (0xFD2FB528).to_bytes(4, "little") + bytes([0x00, 0x58])  # window of 2 MiB, no content size, no checksum
    size = -(-len(content) // n_parts) if content else 1
    blocks = [content[i:i + size] for i in range(0, len(content), size)] or [b""]
    for i, block in enumerate(blocks):
        frame += (len(block) << 3 | (i == len(blocks) - 1)).to_bytes(3, "little") + block
    return frame


def test_zstd_frames_of_all_kinds():
    """V3-ZSTD-01: without content size, several, skippable ones between them."""
    codec = codec_of("zstd", {})
    skippable = (0x184D2A53).to_bytes(4, "little") + (5).to_bytes(4, "little") + b"hello"
    assert codec.decode(zstd_frame(CONTENT, n_parts=7), N) == CONTENT
    several = skippable + zstd_frame(CONTENT[:10]) + numcodecs.Zstd(level=19, checksum=True).encode(CONTENT[10:500])
    several += zstd_frame(b"") + skippable + numcodecs.Zstd().encode(CONTENT[500:]) + skippable
    assert codec.decode(several, N) == CONTENT
    with pytest.raises(CodecError) as caught:
        codec.decode(several, N - 1)
    assert caught.value.expected == N - 1
    with pytest.raises(CodecError):
        codec.decode(several, N + 1)
    for damaged in (several + b"\0", several[:-1], skippable[:-1], several + b"\x50\x2a\x4d\x18\xff\xff\xff\xff"):
        with pytest.raises(CodecError):
            codec.decode(damaged, N)


def test_zstd_frame_that_lies_about_its_size():
    """A frame that says 2**62 bytes of content, or a window of 2 GiB, allocates nothing of the kind."""
    codec = codec_of("zstd", {})
    block = (5 << 3 | 1).to_bytes(3, "little") + b"hello"
    magic = (0xFD2FB528).to_bytes(4, "little")
    for said in (2**62, 2**40, 6, 4):
        with pytest.raises(CodecError):
            codec.decode(magic + b"\xe0" + said.to_bytes(8, "little") + block, 5)
    assert codec.decode(magic + b"\xe0" + (5).to_bytes(8, "little") + block, 5) == b"hello"
    assert codec.decode(magic + b"\0\xa8" + block, 5) == b"hello"


def test_zstd_checksum_of_the_frame_is_verified():
    encoded = bytearray(codec_of("zstd", {"level": 1, "checksum": True}).encode(CONTENT))
    encoded[-1] ^= 1
    with pytest.raises(CodecError, match="damaged"):
        codec_of("zstd", {}).decode(encoded, N)


@pytest.mark.parametrize("said", [0, 1, N - 1, N + 1, 2**31, 2**32 - 1])
def test_lz4_header_that_lies(said):
    """V2-COD-03: 4 bytes, little-endian, decide how many bytes are decoded; never more than the chunk has."""
    codec = codec_of("numcodecs.lz4", {})
    encoded = codec.encode(CONTENT)
    assert encoded[:4] == N.to_bytes(4, "little")
    for at_most in (False, True):
        with pytest.raises(CodecError):
            codec.decode(said.to_bytes(4, "little") + encoded[4:], N, at_most)


def test_a_dictionary_of_lzma_is_bounded():
    """The header of a stream asks for 1.5 GiB; no chunk is worth that."""
    import lzma

    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1536 << 20, "mode": lzma.MODE_FAST, "mf": lzma.MF_HC3,
                "nice_len": 3, "depth": 1}]
    stream = bytearray(lzma.compress(CONTENT, filters=[{**filters[0], "dict_size": 4096}]))
    at = stream.index(bytes([lzma.FILTER_LZMA2, 1])) + 2
    stream[at] = 40  # the largest dictionary: 4 GiB - 1
    header = 4 * (stream[12] + 1)
    stream[12 + header - 4:12 + header] = zlib.crc32(stream[12:12 + header - 4]).to_bytes(4, "little")
    with pytest.raises(CodecError, match="[Mm]emory"):
        codec_of("numcodecs.lzma", {}).decode(stream, N)
