"""The compressors as the kernel calls them; what a chunk is from Python is shown in `test_blosc`."""
import doctest

import numpy as np
import pytest

from zcore.kernel.codec import compress


def test_docstrings_hold():
    assert doctest.testmod(compress).failed == 0


def test_codes_are_those_of_the_header():
    """The positions are the enum `Compressor` of compress.pxd."""
    assert [compress.compressor_code(name) for name in compress.COMPRESSORS] == list(range(6))
    assert compress.COMPRESSORS == ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
    with pytest.raises(ValueError, match="'gzip' is unknown"):
        compress.compressor_code("gzip")
    with pytest.raises(TypeError):
        compress.compressor_code(None)


def test_versions():
    versions = compress.library_versions()
    assert versions["c-blosc"].startswith("1.")
    assert set(versions) == {"c-blosc", "compressors", "zstd", "lz4", "zlib", "deflate"}
    assert versions["deflate"] == (f"libdeflate {compress.LIBDEFLATE}" if compress.LIBDEFLATE else "zlib")
    assert {"blosclz", "lz4", "lz4hc", "zlib", "zstd"} <= set(versions["compressors"])


@pytest.mark.thinned(5, "typesize", "cname")
@pytest.mark.parametrize("cname", [name for name in compress.COMPRESSORS if compress.can_compress(name)])
@pytest.mark.parametrize("typesize", [1, 2, 3, 8, 16, 24, 255])
def test_blocks_of_every_size(cname, typesize):
    data = (np.arange(40_000) // 7).astype("<u2").tobytes()
    for blocksize in (0, 1, 128, 1000, 65536, 10**6, len(data)):
        for shuffle in (0, 1, 2):
            chunk = compress.blosc_compress(data, cname=cname, clevel=1, shuffle=shuffle, typesize=typesize,
                                            blocksize=blocksize)
            assert compress.blosc_decompress(chunk) == data


def test_incompressible_data_are_stored():
    """BL-MCP-03, BL-ENC-01: never more than 16 bytes longer."""
    data = np.random.default_rng(3).bytes(100_000)
    for cname in ("blosclz", "lz4", "zlib", "zstd"):
        chunk = compress.blosc_compress(data, cname=cname, clevel=9, typesize=4)
        assert len(chunk) == len(data) + 16
        assert compress.blosc_decompress(chunk) == data
