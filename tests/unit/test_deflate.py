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
from zcore.codecs import GzipCodec, compressors
from zcore.codecs.base import StepCodec
from zcore.codecs.chain import CodecChain
from zcore.codecs.compressors import NumcodecsZlib
from zcore.engine import views
from zcore.errors import CodecError
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
                assert found == outcome(lambda *a: StepCodec.decode(codec, *a), data, n_bytes, at_most)
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
            lambda data, n: StepCodec.decode(GzipCodec(), data, n), data[:-1], len(CONTENT))


@installed
@pytest.mark.parametrize("codec", [GzipCodec, NumcodecsZlib])
@pytest.mark.parametrize("level", range(-1, 10))
def test_what_is_encoded_the_kernel_decodes_and_has_room_for(codec, level):
    codec = codec(level=level)
    for content in (b"", b"a", CONTENT, np.random.default_rng(2).bytes(300_000), bytes(300_000)):
        encoded = codec.encode(content)
        assert StepCodec.decode(codec, encoded, len(content)) == content
        assert len(encoded) <= codec.max_encoded(len(content))
        assert codec.encode(content) == encoded


def chain_of(n_items, *specs):
    return CodecChain([CodecSpec("bytes", {"endian": "little"}), *specs], np.dtype("<u2"), (n_items,))


@installed
def test_a_chain_runs_in_python_from_a_size_on(monkeypatch):
    monkeypatch.setattr(deflate, "MIN_NBYTES", 1000)
    checksum = CodecSpec("crc32c")
    for spec in (CodecSpec("gzip", {"level": 5}), CodecSpec("numcodecs.zlib", {"level": 1})):
        assert chain_of(499, spec, checksum).is_native and not chain_of(500, spec, checksum).is_native
    assert chain_of(500, CodecSpec("zstd", {"level": 0, "checksum": False})).is_native


def test_with_libdeflate_everything_runs_in_the_kernel(monkeypatch):
    monkeypatch.setattr(compressors, "LIBDEFLATE", "1.14")
    monkeypatch.setattr(deflate, "is_faster", None)
    assert chain_of(500, CodecSpec("gzip", {"level": 5})).is_native
    encoded = GzipCodec(level=1).encode(CONTENT)
    assert encoded == StepCodec.encode(GzipCodec(level=1), CONTENT)
    assert GzipCodec().decode(encoded, len(CONTENT)) == CONTENT


def test_without_the_libraries_everything_runs_in_the_kernel(monkeypatch):
    for name in ("reader", "writer"):
        with monkeypatch.context() as patch:
            patch.setattr(deflate, name, lambda: None)
            assert chain_of(500, CodecSpec("gzip", {"level": 5})).is_native
            encoded = GzipCodec(level=1).encode(CONTENT)
            assert encoded == StepCodec.encode(GzipCodec(level=1), CONTENT)
            assert GzipCodec().decode(encoded, len(CONTENT)) == CONTENT


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
