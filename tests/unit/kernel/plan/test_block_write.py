"""Blosc chunks that lie scattered in the array that is written: encoded block by block, without a copy of the chunk."""
import blosc as judge
import numpy as np
import pytest

import zcore
from zcore import blosc
from zcore.codecs import BloscCodec

# Columns of the array: their elements lie scattered.
N_COLUMNS = 130


def content(dtype):
    """A mixture of what compresses, noise, and runs of zeros: two chunks of some 1.2 MB."""
    dtype = np.dtype(dtype)
    n_rows = 1_200_000 // dtype.itemsize // N_COLUMNS
    raw = (np.arange(n_rows * 2 * N_COLUMNS * dtype.itemsize) // 50 % 200).astype("u1")
    raw[:raw.size // 3] = np.random.default_rng(0).integers(0, 256, raw.size // 3, "u1")
    raw[-raw.size // 5:] = 0
    return raw.view(dtype).reshape(n_rows, 2 * N_COLUMNS)


def stored(tmp_path, data, **codec):
    """Write two chunks beside each other; return what is stored of each, and its content."""
    codec = BloscCodec(typesize=data.dtype.itemsize, **codec)
    z = zcore.create_array(tmp_path / "a", shape=data.shape, chunks=(len(data), N_COLUMNS), dtype=data.dtype,
                           compressors=codec, checksum=False, overwrite=True, threads=1)
    z[...] = data
    assert zcore.open(tmp_path / "a")[...].tobytes() == data.tobytes()
    for i in range(2):
        chunk = np.split(data, 2, axis=1)[i].tobytes()
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
    data = np.random.default_rng(0).integers(0, 1 << 32, (1000, 2 * N_COLUMNS), "u4")
    for raw, chunk in stored(tmp_path, data, cname=cname, clevel=3, shuffle=1):
        assert len(raw) == len(chunk) + 16 and blosc.header(raw).memcpyed and raw[16:] == chunk
