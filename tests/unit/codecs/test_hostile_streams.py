"""Objects that are made to harm: content far beyond the chunk, streams that lie about themselves, frames of all kinds.

Each ends in an error, or in the right chunk, within the memory that the chunk alone needs.
"""
import functools
import gzip
import json
import struct
import subprocess
import sys
import textwrap
import zlib

import numcodecs
import numpy as np
import pytest

import zcore
from tests.each import each
from zcore import blosc
from zcore.codecs.chain import CodecChain, codec_of
from zcore.errors import ChunkError, CodecError
from zcore.kernel.codec.blosc_header import validate
from zcore.kernel.codec.program import Program
from zcore.model.metadata import CodecSpec

N = 1000
CONTENT = (np.arange(N) % 251).astype("u1").tobytes()
STREAMS = ("zstd", "gzip", "numcodecs.zlib", "numcodecs.lz4", "blosc", "numcodecs.bz2", "numcodecs.lzma")


def codec_named(name):
    codec = codec_of(name, {})
    return codec.resolve(1) if name == "blosc" else codec


@functools.cache
def bomb_of(name):
    return codec_named(name).encode(bytes(20_000_000))


@pytest.mark.parametrize("name", STREAMS)
def test_more_content_than_the_chunk_has_is_not_decoded(name):
    """V3-COD-07: nothing is written behind the chunk, and the error says what was expected."""
    codec = codec_named(name)
    for encoded in (codec.encode(bytes(N + 1)), codec.encode(bytes(100 * N)), bomb_of(name)):
        with pytest.raises(CodecError) as caught:
            codec.decode(encoded, N)
        assert caught.value.expected == N < caught.value.found
        if codec.step() is None:
            continue
        out = bytearray(b"x" * (N + 64))
        with pytest.raises(CodecError):
            Program([codec.step()]).decode_bytes(encoded, memoryview(out)[:N])
        assert out[N:] == b"x" * 64


N_LONG = 9_000_000


def blosc_chunk(stream, fmt, n=N_LONG):
    """A chunk of one stream."""
    return struct.pack("<4B4I", 2, 1, 0x10 | fmt << 5, 1, n, n, 24 + len(stream), 20) + struct.pack(
        "<I", len(stream)) + stream


# The length of a match, or of literals, is the sum of bytes of which each but the last is 255. In c-blosc's blosclz
# (c-blosc #405) this one is negative.
TOO_LONG = b"\xff" * 8_421_506
LONG_LENGTHS = {
    "blosclz match": blosc_chunk(b"\x1f" + bytes(range(32)) + b"\xe0" + TOO_LONG + b"\0\0\0\x42", 0),
    "blosclz first": blosc_chunk(b"\x00A\xff" + TOO_LONG + b"\0\0\0\x42", 0),
    "blosclz second": blosc_chunk(b"\x00A\xe0\x10\0\x00B\xe3" + TOO_LONG + b"\x07\x09\0\x42", 0),
    "lz4 literals": blosc_chunk(b"\xf0" + TOO_LONG + b"\0" + bytes(64), 1),
    "lz4 match": blosc_chunk(b"\x1fA\1\0" + TOO_LONG + b"\0" + bytes(64), 1),
    "snappy": blosc_chunk(b"\xff\xff\xff\xff\x0f\xfc\xff\xff\xff\xff" + bytes(8_500_000), 2),
    "zlib": blosc_chunk(zlib.compress(bytes(8))[:2] + b"\0\xff\xff" + TOO_LONG, 3),
    "zstd": blosc_chunk(b"\x28\xb5\x2f\xfd\xe0" + b"\xff" * 8 + TOO_LONG, 4),
}
READERS = """
import sys
import zcore
for folder in sys.argv[1:]:
    print(folder, end=": ", flush=True)
    for path in (folder + "/v2", folder + "/refs.json", folder + "/x.asdf"):
        reads = {"whole": lambda node: node[...], "part": lambda node: node[5:7], "two threads": lambda node: node[...]}
        for name, read in reads.items():
            try:
                node = zcore.open(path, threads=1 + (name == "two threads"))
                read(node["a"] if path.endswith("asdf") else node)
                print("read", end=" ")
            except zcore.ZcoreError:
                print("refused", end=" ")
        print(len(zcore.verify(path).problems), end=" ")
    try:
        zcore.blosc.decompress(open(folder + "/v2/0", "rb").read())
        print("read")
    except zcore.ZcoreError:
        print("refused")
"""


def test_lengths_whose_sum_overflows_are_damage(tmp_path, asdf_bytes):
    """BL-BLK-11: in a process of its own, as it once crashed."""
    document = json.dumps({
        "zarr_format": 2, "shape": [N_LONG], "chunks": [N_LONG], "dtype": "|u1", "compressor": {"id": "blosc"},
        "filters": None, "fill_value": 0, "order": "C"})
    tree = asdf_bytes.TREE.replace(b"a: 1", b"a: !core/ndarray-1.1.0\n  source: 0\n  datatype: uint8\n"
                                            b"  byteorder: big\n  shape: [%d]" % N_LONG)
    for name, chunk in LONG_LENGTHS.items():
        (tmp_path / name / "v2").mkdir(parents=True)
        (tmp_path / name / "v2/.zarray").write_text(document)
        (tmp_path / name / "v2/0").write_bytes(chunk)
        (tmp_path / name / "refs.json").write_text(json.dumps(
            {"version": 1, "refs": {".zarray": document, "0": ["v2/0"]}}))
        (tmp_path / name / "x.asdf").write_bytes(asdf_bytes.file(
            asdf_bytes.block(chunk, compression=b"blsc", data_size=N_LONG), tree=tree))
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", READERS, *LONG_LENGTHS],
                          capture_output=True, text=True, cwd=tmp_path)
    refused = " ".join(["refused refused refused 1"] * 3 + ["refused"])
    assert done.stdout.splitlines() == [f"{name}: {refused}" for name in LONG_LENGTHS], done
    assert done.returncode == 0, done


@pytest.mark.parametrize("content", [
    np.random.default_rng(1).integers(0, 255, 8_900_000, "u1").tobytes() + b"\xff" * 34_000 + bytes(66_000),
    b"\xff" * N_LONG, b"\xff" * 36_000 + np.random.default_rng(2).integers(0, 256, 8_964_000, "u1").tobytes(),
], ids=["a run in literals", "one match", "stored"])
def test_long_streams_that_are_in_order_are_read(content):
    """BL-BLK-11"""
    chunk = numcodecs.Blosc("blosclz", 9, 0, N_LONG).encode(content)
    assert blosc.decompress(chunk) == content


@pytest.mark.parametrize("n, damaged", [(N_LONG // 255 + 64, False), (N_LONG // 255 + 65, True)])
@pytest.mark.parametrize("at", [0, 1, 5_000_000, -1])
def test_a_run_that_is_longer_than_the_content_asks_for(n, damaged, at):
    """BL-BLK-11: of the bytes that make up a length, wherever the run lies in the stream."""
    stream = bytearray(8_400_000)
    at = at if at >= 0 else len(stream) - n
    stream[at:at + n] = b"\xff" * n
    chunk = blosc_chunk(bytes(stream), 0)
    if damaged:
        with pytest.raises(CodecError, match="damaged"):
            validate(chunk)
    else:
        validate(chunk)
    validate(blosc_chunk(bytes(stream[:7_000_000]), 0))     # no sum overflows there, so blosclz itself finds it


@pytest.mark.parametrize("codec, stored", [
    ("gzip", zlib.compress(CONTENT)), ("numcodecs.zlib", gzip.compress(CONTENT, mtime=0)),
], ids=["gzip", "zlib"])
def test_a_stream_of_the_other_frame_is_called_by_its_name(codec, stored):
    """V3-GZIP-01"""
    found, expected = ("zlib", "gzip") if codec == "gzip" else ("gzip", "zlib")
    with pytest.raises(CodecError, match=f"the stream is {found}, expected {expected}"):
        codec_of(codec, {"level": 1}).decode(stored, N)
    damaged = codec_of(codec, {"level": 1}).encode(CONTENT)
    with pytest.raises(CodecError, match="is damaged"):
        codec_of(codec, {"level": 1}).decode(b"\x55" + damaged[1:], N)
    store = zcore.MemoryStore()
    array = zcore.create_array(store, shape=N, dtype="u1", chunks=N, zarr_format=2,
                               compressors=codec_of(codec, {"level": 1}))
    store.set("0", stored)
    with pytest.raises(CodecError, match=f"the stream is {found}, expected {expected}"):
        array[...]


@pytest.mark.parametrize("clevel", [0, 5])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zeros_behind_a_blosc_chunk(zarr_format, clevel):
    """BL-HDR-04: z5 keeps 16 there. Any other number, or another byte, is damage."""
    store = zcore.MemoryStore()
    array = zcore.create_array(store, shape=N, chunks=N, dtype="u1", zarr_format=zarr_format,
                               compressors=numcodecs.Blosc("lz4", clevel, 0),
                               **({"checksum": False} if zarr_format == 3 else {}))
    array[...] = expected = np.random.default_rng(0).integers(0, 256, N, "u1")
    key = "0" if zarr_format == 2 else "c/0"
    chunk = store.get(key)
    store.set(key, chunk + bytes(16))
    np.testing.assert_array_equal(array[...], expected)
    np.testing.assert_array_equal(array[3:7], expected[3:7])
    assert blosc.decompress(chunk + bytes(16)) == expected.tobytes()
    array[3] = expected[3] + 1
    assert array[3] == expected[3] + 1 and array[4] == expected[4]
    for damage in (bytes(15), bytes(17), bytes(15) + b"\1", b"\1"):
        store.set(key, chunk + damage)
        with pytest.raises(CodecError):
            array[...]


@pytest.mark.thinned(2, "outer", "inner")
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
    if chain.program.is_native:
        with pytest.raises(CodecError) as kernel:
            chain.program.decode_bytes(bomb, bytearray(N), chain.step_names)
        assert (kernel.value.codec, kernel.value.expected) == (outer, caught.value.expected)


BOMB = textwrap.dedent("""
    import resource, sys, zlib
    import numpy as np
    from zcore.codecs.chain import CodecChain
    from zcore.errors import CodecError
    from zcore.model.metadata import CodecSpec

    def bomb(window_bits):
        compressor = zlib.compressobj(1, zlib.DEFLATED, window_bits)
        return b"".join([compressor.compress(bytes(1 << 20)) for _ in range(256)]) + compressor.flush()

    def chain(*names):
        return CodecChain(tuple([CodecSpec(name) for name in ("bytes", *names)]), np.dtype("u1"), (1 << 16,))

    in_gzip, in_zlib = bomb(31), bomb(15)
    chains = chain("gzip"), chain("numcodecs.zlib"), chain("numcodecs.shuffle", "gzip")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for chain, raw in zip(chains, (in_gzip, in_zlib, in_gzip)):
        for decode in (chain.decode, lambda raw: chain.program.decode_bytes(raw, bytearray(1 << 16))):
            try:
                decode(raw)
            except CodecError as error:
                print(error.expected)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(grown // (1 if sys.platform == "linux" else 1024) < 20_000)
""")


def test_a_quarter_of_a_gigabyte_of_zeros_takes_no_memory():
    """V3-COD-07"""
    done = subprocess.run([sys.executable, "-c", BOMB], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["65536"] * 6 + ["True"]


@each("name", STREAMS)
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
    """A frame that says 2**62 bytes of content, or a window of 1 GiB, allocates nothing of the kind."""
    codec = codec_of("zstd", {})
    block = (5 << 3 | 1).to_bytes(3, "little") + b"hello"
    magic = (0xFD2FB528).to_bytes(4, "little")
    for said in (2**62, 2**40, 6, 4):
        with pytest.raises(CodecError):
            codec.decode(magic + b"\xe0" + said.to_bytes(8, "little") + block, 5)
    assert codec.decode(magic + b"\xe0" + (5).to_bytes(8, "little") + block, 5) == b"hello"
    assert codec.decode(magic + b"\0\xa0" + block, 5) == b"hello"


def test_zstd_checksum_of_the_frame_is_verified():
    encoded = bytearray(codec_of("zstd", {"level": 1, "checksum": True}).encode(CONTENT))
    encoded[-1] ^= 1
    with pytest.raises(CodecError, match="damaged"):
        codec_of("zstd", {}).decode(encoded, N)


@each("said", [0, 1, N - 1, N + 1, 2**31, 2**32 - 1])
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
