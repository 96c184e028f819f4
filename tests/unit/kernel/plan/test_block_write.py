"""Blosc chunks that lie scattered in the array that is written: encoded block by block, without a copy of the chunk."""
import numpy as np
import pytest

import blosc as judge
import zcore
from zcore import blosc
from zcore.codecs import BloscCodec

# A chunk that is a column of the array lies scattered, one that is all of it does not.
CHUNK = (1000, 130)


def content(dtype, seed=0):
    """A mixture of what compresses, noise, and runs of zeros."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(seed)
    raw = (np.arange(CHUNK[0] * 2 * CHUNK[1] * dtype.itemsize) // 50 % 200 + rng.integers(0, 3)).astype("u1")
    noise = rng.integers(0, 256, raw.size // 3).astype("u1")
    raw[:noise.size] = noise
    raw[-raw.size // 5:] = 0
    return raw.view(dtype).reshape(CHUNK[0], 2 * CHUNK[1])


def stored(tmp_path, data, **codec):
    """Write two chunks beside each other; return what is stored of each, and its content."""
    z = zcore.create_array(tmp_path / "a", shape=data.shape, chunks=CHUNK, dtype=data.dtype, checksum=False,
                           compressors=BloscCodec(typesize=data.dtype.itemsize, **codec), overwrite=True, threads=1)
    z[...] = data
    assert zcore.open(tmp_path / "a")[...].tobytes() == data.tobytes()
    for i in range(2):
        chunk = data[:, i * CHUNK[1]:][:, :CHUNK[1]].tobytes()
        raw = (tmp_path / "a" / "c" / "0" / str(i)).read_bytes()
        assert judge.decompress(raw) == chunk
        yield raw, chunk


@pytest.mark.parametrize("shuffle", [0, 1, 2])
@pytest.mark.parametrize("clevel", range(10))
def test_zstd_is_what_c_blosc_makes(tmp_path, clevel, shuffle):
    """Byte by byte: blocks, flags and level are the same."""
    for dtype in ("<u2", "<f4", "V3") if clevel < 7 else ("<u2",):
        data = content(dtype)
        codec = {"cname": "zstd", "clevel": clevel, "shuffle": shuffle}
        for raw, chunk in stored(tmp_path, data, **codec):
            assert raw == blosc.compress(chunk, typesize=data.dtype.itemsize, **codec)


@pytest.mark.parametrize("dtype", ["u1", "<u2", "<c16", "V17", "V200", "V256"])
@pytest.mark.parametrize("shuffle", [0, 1])
def test_zstd_and_items_of_any_size(tmp_path, dtype, shuffle):
    data = content(dtype)
    codec = {"cname": "zstd", "clevel": 1, "shuffle": shuffle}
    for raw, chunk in stored(tmp_path, data, **codec):
        assert raw == blosc.compress(chunk, typesize=data.dtype.itemsize, **codec)


@pytest.mark.parametrize("cname", ["lz4", "zstd"])
def test_noise_is_stored_as_it_is(tmp_path, cname):
    data = np.random.default_rng(0).integers(0, 1 << 32, (CHUNK[0], 2 * CHUNK[1]), "u4")
    for raw, chunk in stored(tmp_path, data, cname=cname, clevel=3, shuffle=1):
        assert len(raw) == len(chunk) + 16 and blosc.header(raw).memcpyed and raw[16:] == chunk
