"""Blosc chunks of which few blocks are decoded: the same elements as of whole chunks, the same errors, or none.

The whole chunk, brought to the kernel, is the reference. Damage in a block that no selection needs may go unseen where
there is no checksum; what is handed out then is right all the same.
"""
import random
import struct

import numpy as np
import pytest

import zcore
from tests.both_ways import handles
from zcore import blosc
from zcore.codecs import BloscCodec

DTYPES = ("u1", "<i2", ">f4", "<f8", ">c16", "V3", "V24", "S5")
CODECS = [(cname, shuffle) for cname in ("lz4", "zstd", "zlib", "blosclz") for shuffle in (0, 1, 2)]


def content(rng, shape, dtype):
    """Elements that compress somewhat."""
    dtype = np.dtype(dtype)
    n_bytes = int(np.prod(shape)) * dtype.itemsize
    raw = (np.arange(n_bytes) // 50 % 200 + (np.frombuffer(rng.randbytes(n_bytes), "u1") < 8)).astype("u1") + 1
    return raw.view(dtype).reshape(shape)


def make(path, rng, cname="lz4", shuffle=1, dtype="<i2", shape=(600, 700), chunks=(600, 700), checksum=False,
         order="C"):
    """Return an array of chunks of several blocks, and what it holds."""
    data = content(rng, shape, dtype)
    codec = BloscCodec(cname=cname, clevel=5, shuffle=shuffle, typesize=np.dtype(dtype).itemsize,
                       blocksize=max(128, int(np.prod(chunks)) // 10) // 8 * 8 * np.dtype(dtype).itemsize)
    zcore.create_array(path, data=data, chunks=chunks, compressors=codec, checksum=checksum, order=order)
    return zcore.open(path, threads=1), data


def some_slice(rng, n):
    kind = rng.random()
    if kind < 0.3:
        return rng.randrange(n)
    low = rng.randrange(n)
    high = min(n, low + rng.choice((1, 2, 5, n)))
    step = rng.choice((1, 1, 1, 2, 3, 9))
    return slice(low, high, step) if rng.random() < 0.7 else slice(high - 1, low - 1 if low else None, -step)


def outcome(read):
    try:
        return read().tobytes()
    except zcore.ZcoreError as error:
        return type(error), error.message, tuple([repr(getattr(error, name)) for name in error.fields])


@pytest.mark.thinned(2, "order", "cname", "shuffle")
@pytest.mark.parametrize(("cname", "shuffle"), CODECS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_parts_are_those_of_whole_chunks(tmp_path, cname, shuffle, order):
    """V3-BLOSC-04, BL-PAR-01."""
    rng = random.Random(f"{cname}{shuffle}{order}")
    for i, dtype in enumerate(rng.sample(DTYPES, 3)):
        n = 640_000 // np.dtype(dtype).itemsize // 1000
        shape, chunks = rng.choice((((n * 1001,), (n * 1000,)), ((n + 9, 1000), (n, 1000)),
                                    ((n, 30, 45), (n, 20, 40)), ((5, n, 21, 11), (5, n, 20, 10))))
        array, data = make(tmp_path / str(i), rng, cname, shuffle, dtype, shape, chunks, order=order)
        header = blosc.parse((tmp_path / str(i) / "/".join("c" + "0" * len(shape))).read_bytes())
        assert header.n_blocks > 1 or header.typesize == 16
        for _ in range(20):
            selection = tuple([some_slice(rng, n) for n in shape])
            np.testing.assert_array_equal(array[selection], data[selection])
            wide = np.zeros((*data[selection].shape, 3), dtype)
            array.read(selection, out=wide[..., 1])
            np.testing.assert_array_equal(wide[..., 1], data[selection])
            assert not wide[..., ::2].tobytes().strip(b"\0")


@pytest.mark.parametrize(("cname", "shuffle"), [("lz4", 0), ("lz4", 1), ("lz4", 2), ("zstd", 1), ("zlib", 1)])
def test_points_are_those_of_whole_chunks(tmp_path, cname, shuffle):
    """Few points and many; in chunks of one block and of several."""
    rng = random.Random(f"{cname}{shuffle}")
    for i, dtype in enumerate(DTYPES):
        n = 320_000 // np.dtype(dtype).itemsize // 1000
        shape, chunks = rng.choice((((n, 1000), (n, 1000)), ((n + 9, 1000), (n, 700)), ((n, 25, 40), (n, 20, 40))))
        array, data = make(tmp_path / str(i), rng, cname, shuffle, dtype, shape, chunks, order=rng.choice("CF"))
        if rng.random() < 0.3:
            codec = BloscCodec(cname=cname, clevel=5, shuffle=shuffle, typesize=np.dtype(dtype).itemsize)
            zcore.create_array(tmp_path / f"{i}.whole", data=data, chunks=shape, compressors=codec)
            array = zcore.open(tmp_path / f"{i}.whole", threads=1)
        for n_points in (1, 2, 30, 300, 3000):
            points = tuple([np.array(rng.choices(range(length), k=n_points)) for length in shape])
            np.testing.assert_array_equal(array[points], data[points])
            np.testing.assert_array_equal(array[points[0], 5:9], data[points[0], 5:9])
            # All of them in the first rows.
            low = (points[0] % 2, *points[1:])
            np.testing.assert_array_equal(array[low], data[low])


def bounds_of_blocks(raw):
    """Return where each block of a chunk lies: pairs of offsets of first and last byte."""
    header = blosc.parse(raw)
    starts = struct.unpack_from(f"<{header.n_blocks}i", raw, 16)
    ends = [min([other for other in (*starts, len(raw)) if other > start]) for start in starts]
    return list(zip(starts, ends, strict=True)), header.blocksize


@pytest.mark.thinned(2, "shuffle", "cname")
@pytest.mark.parametrize("cname", ["lz4", "zstd", "zlib", "blosclz"])
@pytest.mark.parametrize("shuffle", [0, 1, 2])
def test_damage_is_found_in_blocks_that_are_needed(tmp_path, cname, shuffle):
    """BL-PAR-01."""
    rng = random.Random(f"{cname}{shuffle}")
    array, data = make(tmp_path, rng, cname, shuffle)
    path = tmp_path / "c/0/0"
    raw = path.read_bytes()
    blocks, blocksize = bounds_of_blocks(raw)
    _, confined = handles(tmp_path)
    flat = np.arange(data.size).reshape(data.shape) * data.itemsize // blocksize
    n_unseen = 0
    for _ in range(100):
        damaged = bytearray(raw)
        at = rng.randrange(len(raw))
        damaged[at] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        selection = rng.choice(((rng.randrange(600),), (rng.randrange(600), rng.randrange(700)),
                                (slice(3, 600, 400), slice(2, 600, 7)), (slice(None), 5)))
        part = outcome(lambda selection=selection: array[selection])
        whole = outcome(lambda: confined[...])
        if isinstance(whole, bytes):
            assert part == np.frombuffer(whole, data.dtype).reshape(data.shape)[selection].tobytes()
        elif isinstance(part, bytes):
            # The damage lies in the stream of one block, or in the size before it, and the selection needs another.
            hit = [k for k, (start, end) in enumerate(blocks) if start <= at < end]
            assert len(hit) == 1 and not np.any(flat[selection] == hit[0])
            assert part == data[selection].tobytes()
            n_unseen += 1
        else:
            assert part == whole
    assert n_unseen or cname == "blosclz"


def test_a_checksum_finds_damage_in_any_block(tmp_path):
    rng = random.Random(1)
    array, _ = make(tmp_path, rng, checksum=True)
    path = tmp_path / "c/0/0"
    raw = path.read_bytes()
    for at in range(0, len(raw), 4001):
        damaged = bytearray(raw)
        damaged[at] ^= 4
        path.write_bytes(damaged)
        for selection in ((0, 0), (59,), (slice(10, 12),)):
            with pytest.raises(zcore.ChecksumError):
                array[selection]
