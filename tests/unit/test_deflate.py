"""The faster libraries for gzip and zlib: contents and errors are those of the kernel, whatever they are given.

A kernel with libdeflate does not use them. Here it does, except where a test says otherwise.
"""
import gzip
import tracemalloc
import zlib

import numpy as np
import pytest

import zcore
from zcore import deflate
from zcore.codecs import GzipCodec
from zcore.codecs.bytes_bytes import compressors
from zcore.codecs.bytes_bytes.compressors import NumcodecsZlib
from zcore.codecs.chain import CodecChain
from zcore.engine import views
from zcore.errors import CodecError
from zcore.kernel.codec.program import Program
from zcore.model.metadata import CodecSpec

CONTENT = bytes(range(200)) * 20 + np.random.default_rng(0).bytes(1000)
MEMBER = gzip.compress(CONTENT, mtime=0)
STREAM = zlib.compress(CONTENT)

installed = pytest.mark.skipif(deflate.reader() is None or deflate.writer() is None,
                               reason="isal and zlib-ng are not installed")


@pytest.fixture(autouse=True)
def every_size(monkeypatch):
    monkeypatch.setattr(compressors, "LIBDEFLATE", "")
    monkeypatch.setattr(deflate, "MIN_NBYTES", 0)
    views._parse.cache_clear()
    views._resolve.cache_clear()
    yield
    views._parse.cache_clear()
    views._resolve.cache_clear()


def outcome(decode, *arguments):
    try:
        return bytes(decode(*arguments))
    except CodecError as error:
        return str(error), [getattr(error, name) for name in error.fields]


def flipped(data, i, bit=0):
    return data[:i] + bytes([data[i] ^ 1 << bit]) + data[i + 1:]


def damaged(good):
    rng = np.random.default_rng(1)
    yield from (b"", good[:1], good[:9], good[:11], good[:len(good) // 2], good[:-1], good[:-8], good[:-9])
    yield from (good + b"\0", good + b"garbage", good + good[:5], good + good, good + good[:-3], b"\0" + good)
    for i in (*range(12), *range(len(good) - 9, len(good))):
        for bit in range(8):
            yield flipped(good, i, bit)
    for _ in range(300):
        yield flipped(good, int(rng.integers(len(good))), int(rng.integers(8)))


@installed
@pytest.mark.parametrize(("codec", "good"), [(GzipCodec(), MEMBER), (NumcodecsZlib(), STREAM)])
def test_decoding_is_that_of_the_kernel(codec, good):
    n = len(CONTENT)
    for data in (good, *damaged(good)):
        for n_bytes in (n, n - 1, n + 1, 2 * n, 1):
            for at_most in (False, True):
                found = outcome(codec.decode, data, n_bytes, at_most)
                alone = codec._program().decode_new
                assert found == outcome(alone, data, n_bytes, at_most, (codec.name,))
    assert outcome(codec.decode, good, n) == CONTENT


@installed
def test_a_gzip_header_may_have_everything():
    """RFC 1952, 2.3: extra field, name, comment and the header's own checksum."""
    head = b"\x1f\x8b\x08\x1e\0\0\0\0\0\xff" + b"\x03\0abc" + b"name\0" + b"comment\0"
    data = head + (zlib.crc32(head) & 0xffff).to_bytes(2, "little") + MEMBER[10:]
    assert GzipCodec().decode(data, len(CONTENT)) == CONTENT
    assert GzipCodec().decode(memoryview(data + MEMBER), 2 * len(CONTENT)) == 2 * CONTENT


@installed
@pytest.mark.parametrize("codec", [GzipCodec, NumcodecsZlib])
def test_a_stream_is_stopped_at_the_expected_size(codec):
    bomb = codec(level=9).encode(bytes(50_000_000))
    tracemalloc.start()
    try:
        for at_most in (False, True):
            with pytest.raises(CodecError):
                codec().decode(bomb, 1000, at_most)
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()


@installed
def test_of_many_members_the_kernel_makes_the_content():
    """Of millions of empty ones, which fit into an object of some megabytes, isal would copy what follows each."""
    empty = gzip.compress(b"", mtime=0)
    for n in (deflate.MAX_MEMBERS - 1, deflate.MAX_MEMBERS, 1000):
        data = MEMBER + n * empty
        assert (deflate.inflate(data, len(CONTENT), False, deflate.GZIP_WBITS) is None) is (n >= deflate.MAX_MEMBERS)
        assert GzipCodec().decode(data, len(CONTENT)) == CONTENT
        assert outcome(GzipCodec().decode, data[:-1], len(CONTENT)) == outcome(
            lambda data, n: GzipCodec()._program().decode_new(data, n, False, ("gzip",)), data[:-1], len(CONTENT))


@installed
@pytest.mark.parametrize("codec", [GzipCodec, NumcodecsZlib])
@pytest.mark.parametrize("level", range(-1, 10))
def test_what_is_encoded_the_kernel_decodes_and_has_room_for(codec, level):
    codec = codec(level=level)
    for content in (b"", b"a", CONTENT, np.random.default_rng(2).bytes(300_000), bytes(300_000)):
        encoded = codec.encode(content)
        assert codec._program().decode_new(encoded, len(content)) == content
        assert len(encoded) <= codec.max_encoded(len(content))
        assert codec.encode(content) == encoded


def chain_of(n_items, *specs):
    return CodecChain([CodecSpec("bytes", {"endian": "little"}), *specs], np.dtype("<u2"), (n_items,))


@installed
def test_a_chain_runs_in_python_from_a_size_on(monkeypatch):
    monkeypatch.setattr(deflate, "MIN_NBYTES", 1000)
    checksum = CodecSpec("crc32c")
    for spec in (CodecSpec("gzip", {"level": 5}), CodecSpec("numcodecs.zlib", {"level": 1})):
        for n, is_native in ((499, True), (500, False)):
            chain = chain_of(n, spec, checksum)
            assert (chain.program.is_native, chain.program.decodes_natively) == (is_native, is_native)
    assert chain_of(500, CodecSpec("zstd", {"level": 0, "checksum": False})).program.is_native


@installed
@pytest.mark.parametrize(("level", "used"), [(1, "isal"), (5, None)])
def test_with_libdeflate_only_the_first_level_is_written_by_another_library(monkeypatch, level, used):
    monkeypatch.setattr(compressors, "LIBDEFLATE", "1.14")
    monkeypatch.setattr(deflate, "inflate", None)
    codec = GzipCodec(level=level)
    chain = chain_of(500, CodecSpec("gzip", {"level": level}))
    assert chain.program.decodes_natively and chain.program.is_native == (used is None)
    encoded = codec.encode(CONTENT)
    expected = codec._program().encode_bytes(CONTENT) if used is None else deflate.reader().compress(
        CONTENT, level, deflate.GZIP_WBITS)
    assert encoded == expected and codec.decode(encoded, len(CONTENT)) == CONTENT


@installed
@pytest.mark.parametrize("codec", [GzipCodec, NumcodecsZlib])
def test_level_1_packs_numbers(codec):
    """zlib-ng makes them larger than they were."""
    numbers = np.sin(np.arange(200_000) / 40).astype("f4").tobytes()
    assert len(codec(level=1).encode(numbers)) < len(numbers)


def test_without_the_libraries_everything_runs_in_the_kernel(monkeypatch):
    for name in ("reader", "writer"):
        monkeypatch.setattr(deflate, name, lambda: None)
    for level in (1, 5):
        assert chain_of(500, CodecSpec("gzip", {"level": level})).program.is_native
        codec = GzipCodec(level=level)
        encoded = codec.encode(CONTENT)
        assert encoded == codec._program().encode_bytes(CONTENT)
        assert codec.decode(encoded, len(CONTENT)) == CONTENT


@pytest.mark.parametrize(("made", "expected"), [
    (lambda data: None, None), (lambda data: bytes(10**6), None), (lambda data: b"short", b"short"),
    (lambda data: bytearray(data)[:7], CONTENT[:7]),
])
def test_what_a_function_does_not_encode_the_kernel_does(made, expected):
    """It returns None, or more than there is room for."""
    program = Program((("gzip", 5, None, made),))
    encoded = program.encode_bytes(CONTENT)
    assert encoded == (Program((("gzip", 5),)).encode_bytes(CONTENT) if expected is None else expected)


@pytest.mark.parametrize(("made", "expected"), [
    (lambda *_: None, CONTENT), (lambda data, n, at_most: bytes(n + 1), CONTENT),
    (lambda data, n, at_most: bytes(n - 1), CONTENT), (lambda data, n, at_most: bytes(n), bytes(len(CONTENT))),
])
def test_what_a_function_does_not_decode_the_kernel_does(made, expected):
    """It returns None, or content of another size."""
    program = Program((("gzip", 5, made, None),))
    assert program.decode_new(MEMBER, len(CONTENT)) == expected


def test_nothing_points_to_the_bytes_of_a_chunk_afterwards(monkeypatch):
    """Not the frames of a traceback, nor what a function has kept."""
    kept = []

    class Failing:
        class error(Exception):
            pass

        @staticmethod
        def decompressobj(wbits):
            raise KeyboardInterrupt

    def encode(data):
        kept.append(data)
        return b"encoded"

    assert Program((("gzip", 5, None, encode),)).encode_bytes(CONTENT) == b"encoded"
    monkeypatch.setattr(deflate, "reader", lambda: Failing)
    inflate = deflate.functions(1, 5, deflate.GZIP_WBITS, False)[0]
    with pytest.raises(KeyboardInterrupt) as caught:
        Program((("gzip", 5, inflate, None),)).decode_new(MEMBER, len(CONTENT))
    frame = next(entry for entry in caught.traceback if entry.name == "inflate").frame
    kept += [value for value in frame.f_locals.values() if isinstance(value, memoryview)]
    assert len(kept) == 3
    for view in kept:
        with pytest.raises(ValueError, match="released"):
            view[0]


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, ValueError])
def test_an_exception_of_a_function_reaches_the_caller(error):
    def failing(*_):
        raise error("of the library")

    program = Program((("gzip", 5, failing, failing),))
    for call in (lambda: program.encode_bytes(CONTENT), lambda: program.decode_new(MEMBER, len(CONTENT))):
        with pytest.raises(error, match="of the library"):
            call()


@pytest.mark.parametrize("shards", [None, (40, 40)])
@pytest.mark.parametrize("min_nbytes", [0, 10**9])
def test_arrays_are_the_same_either_way(tmp_path, monkeypatch, shards, min_nbytes):
    monkeypatch.setattr(deflate, "MIN_NBYTES", min_nbytes)
    values = np.arange(45 * 50, dtype="i4").reshape(45, 50)
    a = zcore.create_array(tmp_path, shape=(45, 50), chunks=(20, 20), shards=shards, dtype="i4",
                           compressors=GzipCodec())
    a[...] = values
    a[3:30, ::3] = 7
    values[3:30, ::3] = 7
    monkeypatch.setattr(deflate, "MIN_NBYTES", 10**9 - min_nbytes)
    views._parse.cache_clear()
    views._resolve.cache_clear()
    assert (zcore.open(tmp_path)[...] == values).all()
