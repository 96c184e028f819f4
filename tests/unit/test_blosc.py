"""`zcore.blosc`: one chunk, judged by python-blosc and by hand-made ones."""

import inspect
import itertools
import struct

import blosc as judge
import numpy as np
import pytest

import zcore
from tests.each import each
from zcore import blosc

COMPRESSORS = ("blosclz", "lz4", "lz4hc", "zlib", "zstd")


def content(n):
    return (np.arange(n) // 9 % 256).astype("u1").tobytes()


@pytest.mark.thinned(3, "cname", "shuffle")
@pytest.mark.parametrize(("cname", "shuffle"), list(itertools.product(COMPRESSORS, (0, 1, 2))))
def test_both_ways_with_python_blosc(cname, shuffle):
    for n, typesize, clevel in itertools.product(
        (0, 1, 15, 127, 128, 1000, 100_001), (1, 2, 4, 7, 16, 17, 255), (0, 1, 9)
    ):
        data = content(n)
        chunk = blosc.compress(data, cname=cname, clevel=clevel, shuffle=shuffle, typesize=typesize)
        header = blosc.header(chunk)
        assert (header.nbytes, header.cbytes) == (n, len(chunk))
        assert len(chunk) <= n + 16
        assert judge.decompress(chunk) == data
        assert blosc.decompress(chunk) == data
        if n:
            theirs = judge.compress(data, typesize=typesize, clevel=clevel, shuffle=shuffle, cname=cname)
            assert blosc.decompress(theirs) == data
            assert blosc.header(theirs).nbytes == n


def test_header_in_words():
    chunk = blosc.compress(content(10_000), cname="zstd", clevel=3, shuffle=2, typesize=4)
    header = blosc.header(chunk)
    assert (header.compressor, header.shuffle, header.typesize, header.version) == ("zstd", "bitshuffle", 4, 2)
    assert blosc.header(memoryview(chunk)[:16]) == header
    assert "zstd" in repr(header)


def test_lz4hc_says_lz4():
    """BL-HDR-11"""
    assert blosc.header(blosc.compress(content(1000), cname="lz4hc")).compressor == "lz4"


@pytest.mark.parametrize("typesize", [256, 1000, 2**20])
def test_items_above_255_bytes_are_stored_as_bytes(typesize):
    """BL-ENC-02"""
    chunk = blosc.compress(content(4 * typesize), typesize=typesize)
    assert blosc.header(chunk).typesize == 1
    assert judge.decompress(chunk) == content(4 * typesize)


@each("buffer", [
    bytearray(100), memoryview(b"x" * 100), np.zeros(100, "u1"), b"", np.arange(10, dtype="i4"), np.arange(6.0),
    np.arange(6, dtype=">i2").reshape(2, 3), np.array(5), np.zeros(3, "i4,f8"), np.zeros((0, 3)), np.array(["text"]),
], ids=lambda buffer: f"{type(buffer).__name__}-{getattr(buffer, 'dtype', '')}")
def test_buffers(buffer):
    content = bytes(memoryview(buffer).tobytes())
    chunk = blosc.compress(buffer)
    for stored in (np.frombuffer(chunk, "u1"), bytearray(chunk), np.frombuffer(chunk, ("V", len(chunk)))):
        assert blosc.decompress(stored) == content
        assert blosc.header(stored) == blosc.header(chunk)


def test_functions_are_those_of_the_module():
    for name in ("compress", "decompress", "header"):
        function = getattr(blosc, name)
        assert (function.__name__, function.__module__) == (name, "zcore.blosc")
        assert inspect.getdoc(function).startswith("Return ")
    parameters = [(name, parameter.default) for name, parameter in inspect.signature(blosc.compress).parameters.items()]
    assert parameters[:3] == [("content", inspect.Parameter.empty), ("cname", "lz4"), ("clevel", 5)]


def test_out():
    data = content(5000)
    chunk = blosc.compress(data)
    out = bytearray(5000)
    assert blosc.decompress(chunk, out) is out and out == data
    array = np.zeros(5000, "u1")
    assert blosc.decompress(chunk, out=array) is array and array.tobytes() == data
    for array in (np.zeros((25, 100), "i2"), np.zeros(625), np.zeros((125, 10), ">i4"), np.zeros(500, "S4,u2,f4")):
        assert blosc.decompress(chunk, out=array) is array and array.tobytes() == data
    for wrong in (bytearray(4999), bytearray(5001), bytearray()):
        with pytest.raises(zcore.CodecError) as caught:
            blosc.decompress(chunk, wrong)
        assert (caught.value.codec, caught.value.expected, caught.value.found) == ("blosc", len(wrong), 5000)
    for wrong, words in (
        (bytes(5000), "out is writable, this bytes is not"),
        (np.zeros(10000, "u1")[::2], "out is C-contiguous, this ndarray is not"),
        ([0], "out is bytes-like, not list"),
        (np.empty(625, object), "out is bytes-like, this ndarray has objects of Python in it"),
    ):
        with pytest.raises(TypeError, match=words):
            blosc.decompress(chunk, wrong)


@pytest.mark.thinned(3, "typesize", "cname")
@pytest.mark.parametrize("typesize", (1, 4, 17, *(pytest.param(n, marks=pytest.mark.slow) for n in (3, 8, 300))))
@pytest.mark.parametrize(("cname", "clevel"), (("lz4", 1), ("lz4", 5), ("blosclz", 9), ("lz4hc", 2), ("zlib", 1),
                                               ("zstd", 1), ("zstd", 6)))
def test_several_threads_make_the_same_chunk(cname, clevel, typesize):
    for shuffle, blocksize, nbytes in ((0, 0, 1_200_000), (1, 0, 2 << 20), (2, 0, 3_000_001), (1, 40_000, 1 << 20),
                                       (2, 1000, 300_000)):
        data = content(nbytes)
        how = {"cname": cname, "clevel": clevel, "typesize": typesize, "shuffle": shuffle, "blocksize": blocksize}
        chunk = blosc.compress(data, **how)
        assert judge.decompress(chunk) == data
        for n_threads in (2, 5):
            assert blosc.compress(data, n_threads=n_threads, **how) == chunk
            assert blosc.decompress(chunk, n_threads=n_threads) == data


@pytest.mark.thinned(2, "n_threads", "clevel")
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize(("clevel", "blocksize"), [(1, 1 << 17), (2, 1 << 17), (3, 1 << 17), (4, 1 << 19), (5, 1 << 19),
                                                   (8, 1 << 19), (9, 1 << 20)])
def test_blocks_of_zstd(clevel, blocksize, n_threads):
    """Where nobody has asked for a size, they are longer than c-blosc's. Items stay whole, short chunks one block."""
    for nbytes, typesize in ((3 << 20, 4), (3 << 20, 7), (blocksize - 1, 1), (blocksize + 1, 2), (5, 4)):
        data = content(nbytes)
        chunk = blosc.compress(data, cname="zstd", clevel=clevel, typesize=typesize, n_threads=n_threads)
        expected = min(nbytes, blocksize)
        assert blosc.header(chunk).blocksize == (expected - expected % typesize if expected > typesize else expected)
        assert judge.decompress(chunk) == data == blosc.decompress(chunk)
    asked = blosc.compress(content(1 << 20), cname="zstd", clevel=clevel, blocksize=1 << 16, n_threads=n_threads)
    assert blosc.header(asked).blocksize == 1 << 16


@pytest.mark.thinned(2, "typesize", "cname")
@pytest.mark.parametrize("cname", ["lz4", "zstd"])
@pytest.mark.parametrize("typesize", [1, 4, 300])
def test_threads_and_blocks_of_a_few_bytes(cname, typesize):
    """c-blosc takes 128 bytes for a block of fewer. The threads took them as they are, and wrote outside the memory."""
    data = np.random.default_rng(0).bytes(1 << 19) + content(1 << 19)
    for blocksize in (1, 3, 127, 129):
        how = {"cname": cname, "clevel": 1, "shuffle": 0, "typesize": typesize, "blocksize": blocksize}
        chunk = blosc.compress(data, **how)
        assert judge.decompress(chunk) == data
        assert blosc.compress(data, n_threads=64, **how) == chunk


def test_threads_find_that_a_part_does_not_shrink():
    noise = np.random.default_rng(0).bytes(1 << 20)
    for data in (noise, bytes(1 << 20) + noise, noise + bytes(1 << 20), noise[:-300_000] + bytes(300_001)):
        chunk = blosc.compress(data, typesize=4)
        assert blosc.compress(data, typesize=4, n_threads=2) == chunk
        assert blosc.decompress(chunk, n_threads=2) == data


def test_threads_find_a_damaged_block():
    data = content(2 << 20)
    chunk = bytearray(blosc.compress(data, cname="zstd", typesize=4))
    start = int.from_bytes(chunk[16 + 4 * 5:20 + 4 * 5], "little") + 4
    chunk[start:start + 4] = b"none"
    for n_threads in (1, 2, 4):
        with pytest.raises(zcore.CodecError) as caught:
            blosc.decompress(chunk, n_threads=n_threads)
        assert caught.value.codec == "blosc"


def test_item_size():
    chunk = blosc.compress(content(1000), typesize=4)
    assert blosc.decompress(chunk, itemsize=4) == content(1000)
    with pytest.raises(zcore.CodecError) as caught:
        blosc.decompress(chunk, itemsize=8)
    assert (caught.value.expected, caught.value.found, caught.value.offset) == (8, 4, 3)
    assert blosc.decompress(blosc.compress(content(1000), typesize=1), itemsize=8) == content(1000)


@each(
    "keywords",
    [
        {"cname": "gzip"},
        {"cname": ""},
        {"clevel": -1},
        {"clevel": 10},
        {"shuffle": 3},
        {"shuffle": -1},
        {"typesize": 0},
        {"typesize": -1},
        {"blocksize": -1},
        {"blocksize": 2**31},
    ],
)
def test_parameters_out_of_range(keywords):
    with pytest.raises(ValueError, match=next(iter(keywords)) if keywords.get("cname") is None else "unknown"):
        blosc.compress(b"x", **keywords)


@pytest.mark.parametrize("keywords", [{"cname": None}, {"cname": 4}, {"clevel": "5"}, {"shuffle": "x"}, {"level": 5}])
def test_parameters_of_a_wrong_type(keywords):
    with pytest.raises(TypeError):
        blosc.compress(b"x", **keywords)


@each(("data", "words"), [
    ("text", "bytes-like, not str"), (5, "bytes-like, not int"), (None, "bytes-like, not NoneType"),
    ([1], "bytes-like, not list"), (np.zeros((4, 4))[:, ::2], "C-contiguous, this ndarray is not"),
    (np.zeros(4, "M8[s]"), "bytes-like, not ndarray"),
    (np.zeros(4, [("number", "i4"), ("item", "O")]), "bytes-like, this ndarray has objects of Python in it"),
])
def test_data_of_a_wrong_type(data, words):
    for function, name in ((blosc.compress, "content"), (blosc.decompress, "chunk"), (blosc.header, "chunk")):
        with pytest.raises(TypeError, match=f"^{name} is {words}$"):
            function(data)


def test_a_compressor_that_is_not_linked():
    if blosc.can_compress("snappy"):
        pytest.skip("this c-blosc has snappy")
    with pytest.raises(zcore.UnsupportedError, match="snappy") as caught:
        blosc.compress(b"x", cname="snappy")
    assert caught.value.feature == "snappy"


def test_can_compress():
    assert set(COMPRESSORS) <= set(blosc.COMPRESSORS)
    assert all(map(blosc.can_compress, COMPRESSORS))
    assert not blosc.can_compress("lz") and not blosc.can_compress("")


@each("n", range(17))
def test_too_short(n):
    chunk = blosc.compress(b"")[:n]
    if n == 16:
        assert blosc.decompress(chunk) == b""
    else:
        with pytest.raises(zcore.CodecError) as caught:
            blosc.decompress(chunk)
        assert (caught.value.expected, caught.value.found, caught.value.codec) == (16, n, "blosc")
        with pytest.raises(zcore.CodecError):
            blosc.header(chunk)


@pytest.mark.parametrize("fmt", range(5))
def test_what_is_stored_as_is_needs_no_compressor(fmt):
    """BL-MCP-01, BL-MCP-02: snappy chunks of this kind too, and whatever the shuffle bits say."""
    for shuffle in (0, 1, 4):
        chunk = struct.pack("<BBBBIII", 2, 1, fmt << 5 | 0x02 | shuffle, 4, 20, 20, 36) + content(20)
        assert blosc.decompress(chunk) == content(20)
        assert blosc.header(chunk).memcpyed


@pytest.mark.parametrize("version", [3, 4, 5])
def test_blosc_2(version):
    chunk = bytearray(blosc.compress(content(100)))
    chunk[0] = version
    with pytest.raises(zcore.UnsupportedError) as caught:
        blosc.decompress(chunk)
    assert caught.value.feature == "blosc2"


def test_a_damaged_payload():
    """BL-BLK-07"""
    chunk = bytearray(blosc.compress(content(2000), cname="zlib", typesize=1))
    chunk[30] ^= 0xFF
    with pytest.raises(zcore.CodecError, match="payload is damaged") as caught:
        blosc.decompress(chunk)
    assert (caught.value.codec, caught.value.direction, caught.value.expected) == ("blosc", "decode", 2000)


def test_a_chunk_that_has_grown_by_more_than_a_header():
    """GDAL gives c-blosc more room than that, which then stores streams that get no smaller, with their lengths."""
    values = np.random.default_rng(4).integers(0, 2**62, 80).astype("<i8")
    streams = [struct.pack("<I", 160) + values[i:i + 20].tobytes() for i in range(0, 80, 20)]
    chunk = struct.pack("<BBBBIII", 2, 1, 0, 4, 640, 640, 676) + struct.pack("<I", 20) + b"".join(streams)
    assert zcore.blosc.decompress(chunk) == values.tobytes()
    document = (b'{"zarr_format": 2, "shape": [80], "chunks": [80], "dtype": "<i8", "order": "C", "fill_value": null, '
                b'"filters": null, "compressor": {"id": "blosc", "cname": "blosclz", "shuffle": 0}}')
    array = zcore.open(zcore.MemoryStore({".zarray": document, "0": chunk}), strict=False)
    assert (array[:] == values).all()
