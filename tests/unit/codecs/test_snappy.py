"""Snappy chunks, as zarr of 2016 wrote them and no c-blosc of today reads: through arrays, by both paths."""

import itertools
import runpy
import sys
from pathlib import Path

import cramjam
import numpy as np
import pytest

import zcore
from tests.both_ways import WAYS, directory
from tests.each import each
from zcore import blosc
from zcore.codecs import BloscCodec

MADE = runpy.run_path(str(Path(__file__).resolve().parents[2] / "fuzz" / "chunks.py"))
snappy_chunk, SHUFFLE, BITSHUFFLE, NOT_SPLIT, MEMCPY = (
    MADE[name] for name in ("snappy_chunk", "SHUFFLE", "BITSHUFFLE", "NOT_SPLIT", "MEMCPY")
)
MODES = list(itertools.product((0, SHUFFLE, BITSHUFFLE), (0, NOT_SPLIT)))


def content(n, dtype="u1"):
    return (np.arange(n * np.dtype(dtype).itemsize) // 50 % 251).astype("u1").view(dtype)


@pytest.fixture(params=[*WAYS, "memory"])
def store(request, tmp_path):
    return zcore.MemoryStore() if request.param == "memory" else directory(tmp_path, request.param)


@each("typesize", [1, 2, 3, 4, 7, 8, 16, 17, 40, 255])
def test_every_mode_and_item_size(typesize):
    """BL-BLK-06, BL-SHF-01 to BL-SHF-04: full blocks split or not, a shorter last one, blocks stored in any order."""
    for flags, split in MODES:
        for n_items, block_items in ((1000, 128), (1000, 200), (1024, 256), (13, 13), (131, 128), (1, 1)):
            data = content(n_items * typesize).tobytes()
            n_blocks = -(-n_items // block_items)
            order = list(range(n_blocks))[::-1]
            chunk = snappy_chunk(data, typesize, block_items * typesize, flags | split, order)
            codec = BloscCodec(cname="snappy", typesize=typesize)
            assert codec.decode(chunk, len(data)) == data, (flags, split, n_items)


def snappy_array(store, **keywords):
    """An array whose document says snappy, which cannot be created where c-blosc lacks it."""
    zcore.open(store, mode="w", cname="lz4", **keywords)
    store.set("__zmeta__", store.get("__zmeta__").replace(b'"lz4"', b'"snappy"'))
    return zcore.open(store, mode="r+")


def test_creation_needs_the_compressor(store):
    if blosc.can_compress("snappy"):
        pytest.skip("this c-blosc has snappy")
    old = zcore.open(store, mode="w", shape=3, dtype="i4", cname="lz4")
    old[:] = 7
    with pytest.raises(zcore.UnsupportedError, match="snappy; it has blosclz"):
        zcore.open(store, mode="w", shape=3, dtype="i4", cname="snappy")
    assert old[:].tolist() == [7, 7, 7]


def test_whole_arrays(store):
    for dtype, (flags, split) in itertools.product(("u1", ">i2", "<f8", "S3"), MODES):
        model = content(60 * 70, dtype).reshape(60, 70)
        array = snappy_array(store, shape=(60, 70), chunks=(32, 64), dtype=dtype)
        padded = np.zeros((64, 128), dtype)
        padded[:60, :70] = model
        for i, j in itertools.product(range(2), range(2)):
            raw = padded[32 * i : 32 * i + 32, 64 * j : 64 * j + 64].tobytes()
            size = np.dtype(dtype).itemsize
            store.set(f"__zdata__/{i}.{j}.blosc", snappy_chunk(raw, size, 256 * size, flags | split))
        assert array[...].tobytes() == model.tobytes()
        assert array[5:50:7, ::-3].tobytes() == model[5:50:7, ::-3].tobytes()
        out = np.zeros((70, 60), dtype).T
        assert array.read(out=out).tobytes() == model.tobytes()


def test_writes_into_them_need_a_compressor(store):
    """A merge reads the snappy chunk; what is written needs a c-blosc with snappy, or another document."""
    model = content(100, "<i4")
    array = snappy_array(store, shape=100, chunks=60, dtype="<i4")
    chunks = {}
    for i in range(2):
        raw = np.resize(model[60 * i : 60 * i + 60], 60).tobytes()
        chunks[f"__zdata__/{i}.blosc"] = snappy_chunk(raw, 4, 128, SHUFFLE)
    for key, raw in chunks.items():
        store.set(key, raw)
    if blosc.can_compress("snappy"):
        array[5] = -1
        model = model.copy()
        model[5] = -1
        assert array[...].tolist() == model.tolist()
        return
    for selection in (5, slice(60), ...):
        with pytest.raises(zcore.UnsupportedError, match="has no compressor snappy") as caught:
            array[selection] = -1
        assert caught.value.feature == "snappy"
    assert {key: store.get(key) for key in chunks} == chunks


def test_partial_writes_with_another_compressor(store):
    """ZM-CHK-08: the document says lz4, some chunks are snappy all the same."""
    model = content(100, "<i4").copy()
    array = zcore.open(store, mode="w", shape=100, chunks=60, dtype="<i4", cname="lz4")
    for i in range(2):
        raw = np.zeros(60, "<i4")
        raw[: len(model[60 * i : 60 * i + 60])] = model[60 * i : 60 * i + 60]
        store.set(f"__zdata__/{i}.blosc", snappy_chunk(raw.tobytes(), 4, 128, BITSHUFFLE))
    array[50:70:3] = -1
    model[50:70:3] = -1
    assert array[...].tolist() == model.tolist()
    assert [blosc.header(store.get(f"__zdata__/{i}.blosc")).compressor for i in range(2)] == ["lz4", "lz4"]
    array.resize(80)
    array.resize(100)
    model[80:] = 0
    assert array[...].tolist() == model.tolist()


def test_what_is_stored_as_is_needs_nothing(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "cramjam", None)
    data = content(20, "<i4")
    chunk = bytearray(blosc.compress(data.tobytes(), clevel=0, typesize=4))
    chunk[2] = chunk[2] & 0x1F | 2 << 5
    array = zcore.open(store, mode="w", shape=20, chunks=20, dtype="<i4", cname="lz4")
    store.set("__zdata__/0.blosc", chunk)
    assert array[...].tolist() == data.tolist()
    assert blosc.decompress(chunk) == data.tobytes()


def test_missing_library_names_the_extra(store, monkeypatch):
    if blosc.can_compress("snappy"):
        pytest.skip("this c-blosc has snappy")
    array = zcore.open(store, mode="w", shape=200, chunks=200, dtype="<i4", cname="lz4")
    store.set("__zdata__/0.blosc", snappy_chunk(content(200, "<i4").tobytes(), 4, 400, SHUFFLE))
    monkeypatch.setitem(sys.modules, "cramjam", None)
    for call in (lambda: array[...], lambda: array[3], lambda: array.__setitem__(3, 1), lambda: array.resize(150)):
        with pytest.raises(zcore.UnsupportedError,
                           match="__zdata__/0.blosc: .* needs cramjam, which is not installed: .* install "
                                 r'"zcore-array\[snappy\]"$') as caught:
            call()
        assert caught.value.feature == "snappy"
    assert array.shape == (150,), "a shrink is done with its document; the border is reset by the next change"
    monkeypatch.undo()


def test_without_strict(store):
    """Foreign item sizes and trimmed border chunks, in snappy too."""
    model = content(7 * 5, "<i4").reshape(7, 5)
    array = zcore.open(store, mode="w", shape=(7, 5), chunks=(4, 4), dtype="<i4", cname="lz4", strict=False)
    for i, j in itertools.product(range(2), range(2)):
        part = model[4 * i : 4 * i + 4, 4 * j : 4 * j + 4]
        store.set(
            f"__zdata__/{i}.{j}.blosc", snappy_chunk(part.tobytes(), 2, max(2, part.nbytes // 2), SHUFFLE | NOT_SPLIT)
        )
    assert array[...].tolist() == model.tolist()
    strict = zcore.open(store)
    with pytest.raises(zcore.CodecError):
        strict[...]


@pytest.mark.parametrize("damage", ["longer", "shorter", "empty", "endless", "junk"])
def test_damaged_streams(damage):
    """BL-BLK-07"""
    stream = bytes(cramjam.snappy.compress_raw(bytes(1000)))
    streams = {
        "longer": b"\xe9\x07" + stream[2:],
        "shorter": b"\xe7\x07" + stream[2:],
        "empty": b"\0",
        "endless": b"\xff" * 20,
        "junk": stream[:2] + b"\xff" * 20,
    }
    chunk = MADE["container"](bytes(1000), lambda _: streams[damage], 2, 1, 1000, NOT_SPLIT)
    # Where c-blosc has snappy, it is the one who looks at the stream.
    message = "damaged" if blosc.can_compress("snappy") else "snappy stream"
    with pytest.raises(zcore.CodecError, match=message) as caught:
        BloscCodec(cname="snappy", typesize=1).decode(chunk, 1000)
    assert (caught.value.codec, caught.value.direction) == ("blosc", "decode")


@pytest.mark.parametrize("flags", [0, SHUFFLE, BITSHUFFLE])
def test_single_chunks(flags):
    """`zcore.blosc.decompress` asks the same library as arrays do, after the same checks."""
    raw = content(100, "<i4").tobytes()
    chunk = snappy_chunk(raw, 4, 100, flags | NOT_SPLIT)
    out = np.empty(100, "<i4")
    assert blosc.decompress(chunk) == raw and blosc.decompress(chunk, out) is out and out.tobytes() == raw
    assert blosc.decompress(np.frombuffer(chunk, "u1"), itemsize=4) == raw
    for call in (lambda: blosc.decompress(chunk[:-1]), lambda: blosc.decompress(chunk, bytearray(396)),
                 lambda: blosc.decompress(chunk, itemsize=2)):
        with pytest.raises(zcore.CodecError):
            call()


def test_single_chunks_without_the_library(monkeypatch):
    if blosc.can_compress("snappy"):
        pytest.skip("this c-blosc has snappy")
    chunk = snappy_chunk(content(100).tobytes(), 1, 50, NOT_SPLIT)
    monkeypatch.setitem(sys.modules, "cramjam", None)
    with pytest.raises(zcore.UnsupportedError, match=r"zcore-array\[snappy\]"):
        blosc.decompress(chunk)
