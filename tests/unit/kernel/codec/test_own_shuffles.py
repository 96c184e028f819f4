"""Contiguous blosc chunks as machines make them that c-blosc has no vectors for: its bytes, from zcore's shuffles."""
import blosc as judge
import numpy as np
import pytest

from zcore.kernel.codec import compress
from zcore.kernel.codec.program import Program

TYPE_SIZES = (*range(1, 17), 17, 32, 255, 256)
# Items: below the 128 of a stream, multiples of 8 and others, and around the ends of blocks and of c-blosc's 32 KB.
ITEMS = (0, 1, 7, 8, 9, 127, 128, 129, 136, 1000, 1024, 2047, 2048, 4095, 4096, 4104, 8192, 10_001)


@pytest.fixture(autouse=True)
def _own():
    compress.use_own_shuffles(True)
    yield
    compress.use_own_shuffles()


def content(n_bytes, typesize):
    """Numbers that grow, then noise, then zeros."""
    n = n_bytes // typesize + 1
    items = np.zeros((n, typesize), "u1")
    items[:, :2] = (np.arange(n) // 3).astype("<u2").view("u1").reshape(n, 2)[:, :min(typesize, 2)]
    items[n // 2:n // 2 + n // 8] = np.random.default_rng(0).integers(0, 256, (n // 8, typesize), "u1")
    items[-n // 4:] = 0
    return items.tobytes()[:n_bytes]


def check(data, cname, clevel, shuffle, typesize, blocksize=0):
    how = {"cname": cname, "clevel": clevel, "shuffle": shuffle, "typesize": typesize, "blocksize": blocksize}
    compress.use_own_shuffles(False)
    expected = compress.blosc_compress(data, **how)
    compress.use_own_shuffles(True)
    assert Program([("blosc", cname, clevel, shuffle, typesize, blocksize)]).encode_bytes(data) == expected, how
    for n_threads in (1, 3):
        assert compress.blosc_compress(data, n_threads=n_threads, **how) == expected, (n_threads, len(data), how)
    assert judge.decompress(expected) == data
    assert compress.blosc_decompress(expected) == data


@pytest.mark.thinned(4, "shuffle", "typesize")
@pytest.mark.parametrize("typesize", TYPE_SIZES)
@pytest.mark.parametrize("shuffle", [0, 1, 2])
def test_the_bytes_are_those_of_c_blosc(shuffle, typesize):
    for n in ITEMS:
        for rest in {0, 1, typesize - 1}:
            data = content(n * typesize + rest, typesize)
            for cname, clevel in (("lz4", 1), ("lz4", 5), ("zstd", 1), ("zstd", 2)):
                check(data, cname, clevel, shuffle, typesize)


@pytest.mark.thinned(5, "clevel", "cname")
@pytest.mark.parametrize("clevel", range(10))
@pytest.mark.parametrize("cname", ["lz4", "zstd"])
def test_levels_of_long_chunks(cname, clevel):
    for typesize in (1, 2, 3, 4, 7, 8, 16, 32) if cname == "lz4" or clevel < 6 else (4,):
        for n_bytes in (2_200_000, 2_200_000 // typesize * typesize, 600_000 // 7 // typesize * 8 * typesize):
            check(content(n_bytes, typesize), cname, clevel, 2, typesize)


@pytest.mark.parametrize("cname", ["blosclz", "lz4hc", "zlib", "zstd"])
def test_other_compressors_and_sizes_of_blocks_that_are_asked_for(cname):
    """c-blosc gets what zcore has shuffled, in its own blocks, of short chunks as well."""
    for typesize in (1, 4, 17, 255, 300):
        for n_bytes in (100, 129, 20_000, 32_767, 300_001):
            for clevel, blocksize in ((1, 0), (5, 0), (5, 1000), (0, 0)):
                for shuffle in (1, 2):
                    check(content(n_bytes, typesize), cname, clevel, shuffle, typesize, blocksize)


@pytest.mark.thinned(2, "typesize")
@pytest.mark.parametrize("typesize", [1, 2, 4, 8, 7, 16])
def test_noise_is_stored_as_it_is(typesize):
    """Also if the gain of other blocks is less than the offsets take: the header has 16 bytes, no more."""
    noise = np.random.default_rng(1).bytes(400_000 * typesize)
    for n_zeros in (0, 40, 60, 80, 100, 120, 140, 160, 400, 4000):
        for cname in ("lz4", "zstd"):
            check(noise + bytes(n_zeros // typesize * typesize), cname, 1, 2, typesize)
