"""Uncompressed chunks: elements that go from a file straight to the caller's array, and no more of it is read."""
import os
import sys

import numpy as np
import pytest

import zcore
from zcore import codecs, errors

SHAPE = (70, 1000)                       # chunks at the border are cut off
CHUNKS = {"rows of 2 KB": (20, 512), "rows of 400 bytes": (16, 100), "one row": (1, 1000), "all": (70, 1000)}
SELECTIONS = [
    np.s_[...], np.s_[3], np.s_[:, 517], np.s_[5:41, 300:801], np.s_[::3, ::-7], np.s_[::-1], np.s_[18:23, 500:530],
    np.s_[7, 7], np.s_[40:, :400:2], np.s_[[3, 69, 3]], np.s_[[1, 40], [999, 0]],
]


def make(path, chunks, dtype="f4", **options):
    values = np.arange(np.prod(SHAPE)).reshape(SHAPE).astype(dtype)
    array = zcore.create_array(path, shape=SHAPE, chunks=chunks, dtype=dtype, compressors=None, checksum=False,
                               **options)
    array[...] = values
    return values


@pytest.mark.thinned(2, "options", "chunks", "threads")
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS)
@pytest.mark.parametrize("options", [
    {}, {"serializer": codecs.BytesCodec(endian="big")}, {"dtype": "c16"}, {"zarr_format": 2, "order": "F"},
    {"filters": [codecs.TransposeCodec(order=(1, 0))]}], ids=str)
def test_every_selection(tmp_path, chunks, options, threads):
    values = make(tmp_path / "x", chunks, **options)
    array = zcore.open(tmp_path / "x", threads=threads)
    for selection in SELECTIONS:
        np.testing.assert_array_equal(array[selection], values[selection])
    # A result whose rows lie apart, in reverse.
    out = np.zeros((SHAPE[0], 2 * SHAPE[1]), array.dtype)[::-1, ::2]
    array.read(out=out)
    np.testing.assert_array_equal(out, values)


def test_a_field(tmp_path):
    dtype = np.dtype([("a", "u1"), ("b", "<f8"), ("c", "<i2")])
    values = np.zeros(SHAPE, dtype)
    values["b"] = np.arange(values.size).reshape(SHAPE)
    values["c"] = values["b"] % 1000
    array = zcore.create_array(tmp_path / "x", shape=SHAPE, chunks=(20, 512), dtype=dtype, compressors=None,
                               checksum=False, zarr_format=2)
    array[...] = values
    np.testing.assert_array_equal(array[...], values)
    np.testing.assert_array_equal(array["b"], values["b"])
    np.testing.assert_array_equal(array["c", 15:50, 500:600], values["c"][15:50, 500:600])


def test_through_a_cache(tmp_path):
    values = make(tmp_path / "x", (20, 512))
    array = zcore.open(tmp_path / "x", cache="1 MB")
    for _ in range(2):
        np.testing.assert_array_equal(array[3:50], values[3:50])
    # More than the cache holds, of which it keeps nothing.
    array = zcore.open(tmp_path / "x", cache="100 kB")
    np.testing.assert_array_equal(array[...], values)
    np.testing.assert_array_equal(array[3], values[3])


def test_in_shards_and_in_memory(tmp_path):
    for place, options in ((tmp_path / "x", {"shards": (40, 1024)}), (zcore.MemoryStore(), {})):
        values = make(place, (20, 512), **options)
        array = zcore.open(place)
        for selection in SELECTIONS:
            np.testing.assert_array_equal(array[selection], values[selection])


@pytest.mark.parametrize("selection", [np.s_[...], np.s_[3]])
@pytest.mark.parametrize("change", [-1, 1, -(20 * 512 * 4), 100_000])
def test_a_chunk_of_another_size_is_damaged(tmp_path, change, selection):
    make(tmp_path / "x", (20, 512))
    chunk = tmp_path / "x" / "c" / "0" / "1"
    os.truncate(chunk, chunk.stat().st_size + change)
    with pytest.raises(errors.ChunkError, match="c/0/1"):
        zcore.open(tmp_path / "x")[selection]


def test_a_directory_in_place_of_a_chunk_is_an_absent_one(tmp_path):
    make(tmp_path / "x", (20, 512))
    chunk = tmp_path / "x" / "c" / "0" / "1"
    chunk.unlink()
    chunk.mkdir()
    # As long as a chunk may be, so that its size does not tell.
    size = chunk.stat().st_size
    assert not zcore.open(tmp_path / "x")[3, 512:].any()
    zcore.create_array(tmp_path / "y", shape=size, chunks=size, dtype="u1", compressors=None, checksum=False)
    (tmp_path / "y" / "c").mkdir()
    (tmp_path / "y" / "c" / "0").mkdir()
    assert not zcore.open(tmp_path / "y")[...].any()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts bytes by /proc")
def test_a_row_reads_a_row(tmp_path):
    def n_read(selection):
        before = counted()
        array[selection]
        return counted() - before

    def counted():
        with open("/proc/self/io") as file:
            return int(file.readline().split()[1])

    make(tmp_path / "x", SHAPE, "f8")
    array = zcore.open(tmp_path / "x", threads=1)
    array[0]
    assert n_read(np.s_[5]) < 20_000
    assert n_read(np.s_[5:9]) < 40_000
    # As many separate reads would cost more than the whole chunk.
    assert n_read(np.s_[:, 3]) > 70 * 1000 * 8


@pytest.mark.thinned(2, "address", "index")
@pytest.mark.parametrize(("chunks", "index"), [
    ((1, 2048, 1024), ...),                                            # each chunk in one run
    ((3, 1024, 512), (slice(None), slice(5, None), slice(None))),      # runs of 2 KB
    ((1, 2048, 1024), (slice(None), slice(3, 2000), slice(1, -20))),   # with gaps that are read along
])
@pytest.mark.parametrize("address", [0, 20])
def test_large_results_at_any_address(tmp_path, chunks, index, address):
    """To an address that suits the system badly, long runs are read by way of scratch memory."""
    data = np.arange(5 << 21, dtype="u4").reshape(5, 2048, 1024)
    array = zcore.create_array(tmp_path / "a", data=data, chunks=chunks, compressors=None, checksum=False)
    expected = data[index]
    memory = np.zeros(expected.nbytes + 128, "u1")
    start = -memory.ctypes.data % 64 + address
    out = memory[start:start + expected.nbytes].view("u4").reshape(expected.shape)
    array.read(index, out=out)
    assert np.array_equal(out, expected)
    assert not memory[:start].any() and not memory[start + expected.nbytes:].any()


def test_a_large_result_of_a_chunk_that_is_cut(tmp_path):
    array = zcore.create_array(tmp_path / "a", data=np.ones((10, 1 << 20), "u4"), chunks=(1, 1 << 20),
                               compressors=None, checksum=False)
    os.truncate(tmp_path / "a/c/7/0", (1 << 22) - 1)
    with pytest.raises(zcore.CodecError, match="4194303"):
        array.read(out=np.zeros((10 << 22) + 16, "u1")[16:].view("u4").reshape(array.shape))
