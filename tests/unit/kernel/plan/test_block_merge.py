"""Blosc chunks that change in part: blocks and byte planes that do not change keep the bytes that they are stored as.

`tests.oracle` decodes what is stored, by a c-blosc of its own.
"""
import contextlib
import random
import struct

import numpy as np
import pytest

import zcore
from tests import oracle
from tests.both_ways import WAYS, directory
from zcore import blosc
from zcore.codecs import BloscCodec
from zcore.errors import ZcoreError

SHAPE = (64, 1000)
# c-blosc makes it 64 KB, so that each byte plane has 16 KB: four blocks.
BLOCKSIZE = 16_384


def smooth(dtype="<u4", shape=SHAPE, seed=0):
    """Elements of any type, which compress somewhat; none is zero."""
    dtype = np.dtype(dtype)
    n_bytes = int(np.prod(shape)) * dtype.itemsize
    noise = np.random.default_rng(seed).integers(0, 3, n_bytes)
    return (np.arange(n_bytes) // 50 % 200 + noise + 1).astype("u1").view(dtype).reshape(shape)


def make(path, data, chunks=None, cname="lz4", clevel=5, shuffle=1, blocksize=0, checksum=False, **options):
    codec = BloscCodec(cname=cname, clevel=clevel, shuffle=shuffle, typesize=data.dtype.itemsize, blocksize=blocksize)
    zcore.create_array(path, data=data, chunks=chunks or data.shape, compressors=codec, checksum=checksum,
                       **options)
    return path / "/".join("c" + "0" * data.ndim)


def reopened(path, way="native"):
    return zcore.open(directory(path, way), mode="r+", threads=1)


def streams(raw):
    """Return the stored bytes of the streams of each block."""
    header = blosc.header(raw)
    found = []
    for block, at in enumerate(struct.unpack_from(f"<{header.n_blocks}i", raw, 16)):
        is_split = header.is_split and (block + 1) * header.blocksize <= header.nbytes
        found.append([])
        for _ in range(header.typesize if is_split else 1):
            size, = struct.unpack_from("<i", raw, at)
            found[-1].append(raw[at + 4:at + 4 + size])
            at += 4 + size
    return found


def some_slice(rng, n):
    low = rng.randrange(n)
    high = min(n, low + rng.choice((1, 2, 5, 30, n)))
    step = rng.choice((1, 1, 1, 2, 9))
    return slice(low, high, step) if rng.random() < 0.7 else slice(high - 1, low - 1 if low else None, -step)


@pytest.mark.thinned(3, "order", "shuffle", "way")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shuffle", [0, 1, 2])
@pytest.mark.parametrize("order", ["C", "F"])
def test_merged_chunks_hold_what_was_there_and_what_was_written(tmp_path, way, shuffle, order):
    rng = random.Random(f"{way}{shuffle}{order}")
    for i, dtype in enumerate(rng.sample(("u1", "<i2", ">f4", "<f8", ">c16", "V3", "V24", "S5"), 4)):
        shape = rng.choice(((20_000,), (100, 250), (7, 30, 100)))
        data = smooth(dtype, shape, i).copy()
        blocksize = rng.choice((0, 1600, 4800)) * data.itemsize
        chunk = make(tmp_path / str(i), data, blocksize=blocksize, shuffle=shuffle, order=order,
                     checksum=rng.random() < 0.5)
        array = reopened(tmp_path / str(i), way)
        for turn in range(5):
            selection = tuple([some_slice(rng, n) for n in shape])
            new = smooth(dtype, shape, 100 * i + turn)[selection]
            if rng.random() < 0.3:
                new = np.zeros(new.shape, dtype)
            array[selection] = new
            data[selection] = new
            np.testing.assert_array_equal(oracle.read(tmp_path / str(i)), data)
        assert chunk.exists()


@pytest.mark.thinned(3, "cname", "blocksize")
@pytest.mark.parametrize("cname", ["lz4hc", "lz4", "blosclz", "zlib", "zstd"])
@pytest.mark.parametrize("blocksize", [0, 4096, 40_000])
def test_a_chunk_may_be_stored_in_another_way_than_its_array_says(tmp_path, cname, blocksize):
    data = smooth().copy()
    chunk = make(tmp_path, data)
    for shuffle in (0, 1, 2):
        for typesize, clevel in ((1, 9), (4, 1), (4, 9)):
            chunk.write_bytes(blosc.compress(data, cname=cname, clevel=clevel, shuffle=shuffle, typesize=typesize,
                                             blocksize=blocksize))
            data[shuffle::7, 5:900:3] += 1
            reopened(tmp_path)[shuffle::7, 5:900:3] = data[shuffle::7, 5:900:3]
            np.testing.assert_array_equal(oracle.read(tmp_path), data)


def test_blocks_that_do_not_change_keep_their_bytes(tmp_path):
    """As another compressor of the same format has stored them."""
    data = smooth().copy()
    chunk = make(tmp_path, data)
    old = blosc.compress(data, cname="lz4hc", clevel=9, shuffle=1, typesize=4, blocksize=BLOCKSIZE)
    chunk.write_bytes(old)
    data[20, 100:300] = smooth(seed=1)[20, 100:300]
    reopened(tmp_path)[20, 100:300] = data[20, 100:300]
    new = chunk.read_bytes()
    changed = [k for k, (one, other) in enumerate(zip(streams(old), streams(new), strict=True)) if one != other]
    assert changed == [20 * 4000 // 65_536]
    assert len(streams(new)) == 4
    np.testing.assert_array_equal(oracle.read(tmp_path), data)


def test_byte_planes_that_do_not_change_keep_their_bytes(tmp_path):
    data = smooth().copy()
    chunk = make(tmp_path, data)
    old = blosc.compress(data, cname="lz4hc", clevel=9, shuffle=1, typesize=4, blocksize=BLOCKSIZE)
    chunk.write_bytes(old)
    data[:, 3:5] ^= 1 << 31
    reopened(tmp_path)[:, 3:5] = data[:, 3:5]
    for one, other in zip(streams(old)[:-1], streams(chunk.read_bytes())[:-1], strict=True):
        assert len(one) == len(other) == 4
        assert one[:3] == other[:3] and one[3] != other[3]
    np.testing.assert_array_equal(oracle.read(tmp_path), data)


def test_elements_that_are_written_as_they_are_change_no_byte(tmp_path):
    data = smooth()
    chunk = make(tmp_path, data, checksum=True)
    old = chunk.read_bytes()
    reopened(tmp_path)[:, 3:500] = data[:, 3:500]
    assert chunk.read_bytes() == old


@pytest.mark.parametrize("way", WAYS)
def test_a_chunk_that_becomes_all_fill_value_is_erased(tmp_path, way):
    data = np.full(SHAPE, 2.5, "<f4")
    data[20, 100:300] = 7
    chunk = make(tmp_path, data, blocksize=BLOCKSIZE, fill_value=2.5)
    array = reopened(tmp_path, way)
    array[20, 100:299] = 2.5
    assert chunk.exists()
    # Its block is all fill value now, but not the others.
    array[50, 3] = 1
    array[20, 299] = 2.5
    np.testing.assert_array_equal(np.argwhere(oracle.read(tmp_path) != 2.5), [[50, 3]])
    array[50, 3] = 2.5
    assert not chunk.exists()


def test_a_chunk_that_is_all_fill_value_is_kept_on_request(tmp_path):
    data = np.zeros(SHAPE, "<f4")
    data[20, 100] = 7
    chunk = make(tmp_path, data, blocksize=BLOCKSIZE)
    zcore.open(tmp_path, mode="r+", write_empty_chunks=True)[20, 100] = 0
    assert chunk.exists()
    assert not oracle.read(tmp_path).any()


def test_a_chunk_that_does_not_compress_any_more_is_stored_as_it_is(tmp_path):
    data = smooth().copy()
    chunk = make(tmp_path, data, blocksize=4096, checksum=True)
    assert blosc.header(chunk.read_bytes()).memcpyed is False
    noise = np.random.default_rng(0).integers(0, 2**32, SHAPE, "<u4")
    array = reopened(tmp_path)
    for rows in (slice(0, 40), slice(40, 63), slice(63, 64)):
        array[rows] = noise[rows]
        data[rows] = noise[rows]
        assert oracle.read(tmp_path).tobytes() == data.tobytes()
    assert blosc.header(chunk.read_bytes()[:-4]).memcpyed
    array[3:5] = 1
    data[3:5] = 1
    assert oracle.read(tmp_path).tobytes() == data.tobytes()


def test_chunks_at_the_border_are_reset_outside(tmp_path):
    """Whatever another program has left there."""
    data = smooth(shape=(48, 700)).copy()
    chunk = make(tmp_path, data, chunks=SHAPE)
    whole = smooth(seed=3).copy()
    whole[:48, :700] = data
    chunk.write_bytes(blosc.compress(whole, cname="lz4", clevel=5, shuffle=1, typesize=4, blocksize=BLOCKSIZE))
    data[3, 5:9] = 7
    reopened(tmp_path)[3, 5:9] = 7
    found = np.frombuffer(blosc.decompress(chunk.read_bytes()), "<u4").reshape(SHAPE)
    np.testing.assert_array_equal(found[:48, :700], data)
    assert not found[48:].any() and not found[:, 700:].any()


def test_chunks_of_a_shard_are_merged_by_blocks(tmp_path):
    data = smooth(shape=(128, 2000)).copy()
    codec = BloscCodec(cname="lz4", clevel=5, shuffle=1, typesize=4, blocksize=BLOCKSIZE)
    zcore.create_array(tmp_path, data=data, chunks=(64, 1000), shards=(128, 2000), compressors=codec, checksum=True)
    array = reopened(tmp_path)
    for selection in (np.s_[60:70, 990:1010], np.s_[::9, ::-7], np.s_[5], np.s_[:, 3:5]):
        data[selection] *= 3
        array[selection] = data[selection]
        np.testing.assert_array_equal(oracle.read(tmp_path), data)


@pytest.mark.parametrize("checksum", [False, True])
def test_damage_that_is_met_stops_the_write_and_leaves_the_object(tmp_path, checksum):
    rng = random.Random(checksum)
    data = smooth()
    chunk = make(tmp_path, data, blocksize=BLOCKSIZE, checksum=checksum)
    raw = chunk.read_bytes()
    n_stopped = 0
    for _ in range(150):
        damaged = bytearray(raw)
        damaged[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        chunk.write_bytes(damaged)
        array = reopened(tmp_path)
        try:
            before = array[...].tobytes()
        except zcore.ChunkError:
            before = None
        try:
            array[20, 100:300] = 7
        except zcore.ChunkError:
            assert chunk.read_bytes() == damaged
            n_stopped += 1
            continue
        assert not checksum
        if before is None:
            # The damage lies in a block that stays as it is: it is still there, and seen by those who need that block.
            with pytest.raises(zcore.ChunkError):
                array[...]
        else:
            expected = np.frombuffer(before, "<u4").reshape(SHAPE).copy()
            expected[20, 100:300] = 7
            assert array[...].tobytes() == expected.tobytes()
    assert n_stopped == 150 if checksum else 0 < n_stopped < 150


def test_blocks_that_share_their_bytes_are_copied_apart(tmp_path):
    """Nothing forbids that the table of a chunk names one place twice."""
    data = np.tile(smooth(shape=(16, 1024)), (4, 1))
    chunk = make(tmp_path, data, blocksize=BLOCKSIZE)
    raw = bytearray(chunk.read_bytes())
    assert blosc.header(raw).n_blocks == 4
    starts = struct.unpack_from("<4i", raw, 16)
    struct.pack_into("<4i", raw, 16, *[starts[0]] * 4)
    chunk.write_bytes(raw)
    array = reopened(tmp_path)
    np.testing.assert_array_equal(array[...], data)
    array[9, 5] = 7
    data[9, 5] = 7
    np.testing.assert_array_equal(oracle.read(tmp_path), data)


@pytest.mark.parametrize("dtype", ["u1", "<i2", ">f8"])
@pytest.mark.parametrize("cname", ["lz4", "zstd", "zlib"])
def test_a_flipped_bit_is_an_error_or_changes_what_a_read_shows(tmp_path, cname, dtype):
    rng = np.random.default_rng(5)
    numbers = (np.arange(600) // 3 % 7 + 1).astype(dtype)
    codec = {"id": "blosc", "cname": cname, "clevel": 5, "shuffle": 1, "blocksize": 256}
    array = zcore.create_array(tmp_path / "a", shape=(600,), chunks=(600,), dtype=dtype, zarr_format=2,
                               compressors=codec)
    array[:] = numbers
    file = tmp_path / "a" / "0"
    good = file.read_bytes()
    n_refused = 0
    for _ in range(60):
        damaged = bytearray(good)
        # Every other one in the header or the table of blocks.
        place = rng.integers(min(len(good), 40) if rng.random() < 0.5 else len(good))
        damaged[place] ^= 1 << rng.integers(8)
        file.write_bytes(damaged)
        try:
            expected = array[:]
        except ZcoreError:
            expected = None
        start = rng.integers(590)
        part = slice(start, start + 10)
        if expected is None:
            n_refused += 1
            with contextlib.suppress(ZcoreError):
                array[part] = 9
                # A block that is not decoded is copied with its damage, and stays an error.
                with pytest.raises(ZcoreError):
                    array[:]
                continue
            assert file.read_bytes() == damaged
        else:
            array[part] = 9
            expected[part] = 9
            assert np.array_equal(array[:], expected, equal_nan=dtype == ">f8")
    assert n_refused > 10
