"""Chunks between zcore and python-blosc, both ways: whole arrays that the other side takes apart or puts together."""
import itertools
from pathlib import Path

import numpy as np
import pytest

import zcore
from tests.both_ways import WAYS, directory

blosc = pytest.importorskip("blosc")

COMPRESSORS = ("blosclz", "lz4", "lz4hc", "zlib", "zstd")
TYPES = ("|b1", "|i1", "<u2", ">i4", "<f4", ">f8", "<c8", ">c16", "|S3", "<U7", "|V11", "|S16", "|S17", "|S255",
         "|S256", "<M8[s]")


# By default each way takes every other one, and the other ones for the next type.
SHARES = pytest.mark.parametrize("n_shares", [len(WAYS), pytest.param(1, marks=pytest.mark.slow)])


def settings(request, dtype, n_shares):
    """Return the share of a test in all (compressor, shuffle, level)."""
    first = (WAYS.index(request.node.callspec.params["store"]) + TYPES.index(dtype)) % n_shares
    return list(itertools.product(COMPRESSORS, (0, 1, 2), (0, 5)))[first::n_shares]


@pytest.fixture(params=WAYS)
def store(request, tmp_path):
    return directory(tmp_path, request.param)


def model_of(dtype, shape, rng):
    """Runs of equal elements, and some noise."""
    itemsize = np.dtype(dtype).itemsize
    n = int(np.prod(shape))
    raw = np.repeat(rng.integers(0, 2 if dtype == "|b1" else 100, (-(-n // 7), itemsize), dtype="u1"), 7, axis=0)[:n]
    if dtype.startswith("<U"):
        raw.reshape(n, -1, 4)[..., 1:] = 0
    return np.ascontiguousarray(raw).view(f"V{itemsize}").reshape(shape).view(dtype)


def blocks(shape, chunks):
    for coords in itertools.product(*[range(-(-n // c)) for n, c in zip(shape, chunks, strict=True)]):
        yield ".".join(map(str, coords)), tuple(slice(i * c, (i + 1) * c) for i, c in zip(coords, chunks, strict=True))


@pytest.mark.thinned(2, "store", "dtype")
@SHARES
@pytest.mark.parametrize("dtype", TYPES)
def test_what_zcore_writes_python_blosc_decodes(request, store, dtype, n_shares):
    model = model_of(dtype, (37, 29), np.random.default_rng(5))
    for cname, shuffle, clevel in settings(request, dtype, n_shares):
        a = zcore.open(store, mode="w", shape=model.shape, chunks=(20, 16), dtype=dtype, cname=cname,
                       clevel=clevel, shuffle=shuffle,
                       fill_value=None, lock=None)
        a[...] = model
        a[3:5, 20:] = model[3:5, 20:]
        for name, part in blocks(model.shape, (20, 16)):
            chunk = np.frombuffer(blosc.decompress(store.get(f"__zdata__/{name}.blosc")),
                                  dtype).reshape(20, 16)
            inside = model[part]
            assert chunk[:inside.shape[0], :inside.shape[1]].tobytes() == inside.tobytes()
            outside = chunk.copy()
            outside[:inside.shape[0], :inside.shape[1]] = np.zeros((), dtype)
            assert outside.tobytes() == bytes(outside.nbytes)


@pytest.mark.thinned(2, "store", "dtype")
@SHARES
@pytest.mark.parametrize("dtype", TYPES)
def test_what_python_blosc_writes_zcore_reads(request, store, dtype, n_shares):
    """BL-BLK-08, BL-BLK-09: In arrays whose document names another compressor: ZM-CHK-08."""
    model = model_of(dtype, (37, 29), np.random.default_rng(6))
    itemsize = np.dtype(dtype).itemsize
    a = zcore.open(store, mode="w", shape=model.shape, chunks=(20, 16), dtype=dtype, cname="lz4", fill_value=None)
    for cname, shuffle, clevel in settings(request, dtype, n_shares):
        for name, part in blocks(model.shape, (20, 16)):
            chunk = np.zeros((20, 16), dtype)
            inside = model[part]
            chunk[:inside.shape[0], :inside.shape[1]] = inside
            file = Path(store.path, "__zdata__", f"{name}.blosc")
            # A file that is cut to nothing is written to the disk at once by ext4; a new one is not.
            file.unlink(missing_ok=True)
            file.write_bytes(blosc.compress(chunk.tobytes(), itemsize if itemsize < 256 else 1, clevel, shuffle, cname))
        assert a[...].tobytes() == model.tobytes()
        assert a[::-3, 1::2].tobytes() == model[::-3, 1::2].tobytes()
        out = np.zeros(model.shape[::-1], dtype).T
        assert a.read(out=out).tobytes() == model.tobytes()


@pytest.mark.parametrize("n_threads", [1, 4])
def test_chunks_of_several_threads(store, n_threads):
    """BL-BLK-04: blocks in any order."""
    model = np.cumsum(np.random.default_rng(7).integers(0, 3, 3_000_000)).astype("<i4")
    a = zcore.open(store, mode="w", shape=model.shape, chunks=model.shape, dtype="<i4", cname="lz4")
    before = blosc.set_nthreads(n_threads)
    try:
        chunk = blosc.compress(model.tobytes(), 4, 5, 1, "lz4")
    finally:
        blosc.set_nthreads(before)
    store.set("__zdata__/0.blosc", chunk)
    for threads in (1, 3):
        b = zcore.open(a.store, threads=threads)
        assert (b[...] == model).all() and (b[5:-5:1000] == model[5:-5:1000]).all()
        wide = np.zeros((len(model), 2), "<i4")
        assert (b.read(out=wide[:, 1]) == model).all() and not wide[:, 0].any()
    wide[:, 1] = 0
    a[...] = model[::-1]
    assert blosc.decompress(store.get("__zdata__/0.blosc")) == model[::-1].tobytes()
