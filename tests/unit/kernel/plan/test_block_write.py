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


@pytest.mark.thinned(3, "cname", "clevel", "shuffle")
@pytest.mark.parametrize("shuffle", [0, 1, 2])
@pytest.mark.parametrize("clevel", [level if level in (0, 1, 5, 9) else pytest.param(level, marks=pytest.mark.slow)
                                    for level in range(10)])
@pytest.mark.parametrize("cname", ["lz4", "zstd"])
def test_the_bytes_are_those_of_c_blosc(tmp_path, cname, clevel, shuffle):
    """Blocks, flags and level are the same."""
    for dtype in ("<u2", "<f4", "V3", "<c16") if cname == "lz4" or clevel < 7 else ("<u2",):
        data = content(dtype)
        codec = {"cname": cname, "clevel": clevel, "shuffle": shuffle}
        for raw, chunk in stored(tmp_path, data, **codec):
            assert raw == blosc.compress(chunk, typesize=data.dtype.itemsize, **codec)


@pytest.mark.parametrize("dtype", ["u1", "V17", "V200", "V256"])
@pytest.mark.parametrize("shuffle", [0, 1])
@pytest.mark.parametrize("cname", ["lz4", "zstd"])
def test_items_of_any_size(tmp_path, cname, dtype, shuffle):
    data = content(dtype)
    codec = {"cname": cname, "clevel": 1, "shuffle": shuffle}
    for raw, chunk in stored(tmp_path, data, **codec):
        assert raw == blosc.compress(chunk, typesize=data.dtype.itemsize, **codec)


@pytest.mark.parametrize("cname", ["lz4", "zstd"])
def test_noise_is_stored_as_it_is(tmp_path, cname):
    data = np.random.default_rng(0).integers(0, 1 << 32, (1000, 2 * N_COLUMNS), "u4")
    for raw, chunk in stored(tmp_path, data, cname=cname, clevel=3, shuffle=1):
        assert len(raw) == len(chunk) + 16 and blosc.header(raw).memcpyed and raw[16:] == chunk


@pytest.mark.parametrize("cname", ["lz4", "zstd", "blosclz"])
def test_the_bytes_do_not_depend_on_the_number_of_threads(tmp_path, cname):
    """Nor on the place of a chunk: threads without a chunk help with the last ones, and edges are filled up."""
    data = np.repeat(content("<f4"), 2, axis=1)[:, :-30]
    chunks = []
    for n in (1, 2, 3, 8):
        z = zcore.create_array(tmp_path / str(n), shape=data.shape, chunks=(len(data), 150), dtype=data.dtype,
                               compressors=BloscCodec(cname=cname, clevel=2, shuffle=1), threads=n)
        z[...] = data
        chunks.append({key: bytes(z.store.get(key)) for key in z.store.list() if key.startswith("c/")})
        assert zcore.open(tmp_path / str(n))[...].tobytes() == data.tobytes()
    assert len(chunks[0]) == 4 and chunks[1:] == chunks[:1] * 3
