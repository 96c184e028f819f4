"""Memory is bounded by what the metadata demand, not by what a file claims: in processes that may not have more."""

import os
import struct
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import zcore
from tests.both_ways import WAYS

PREAMBLE = """
import resource, sys
import numpy as np
import zcore
from tests.both_ways import directory
from zcore import blosc, config

config.threads = 1


def limit(n_mb):
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + n_mb * 2**20,) * 2)


def error(function, *arguments):
    try:
        return function(*arguments)
    except zcore.ZcoreError as exc:
        return type(exc).__name__


class Grown:
    "How many MB of memory were touched, at the highest, since it was made."
    def __init__(self):
        self.before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def __call__(self):
        return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - self.before) // 1024


a = zcore.open(directory(*sys.argv[1:]), mode="r+")
grown = Grown()
"""

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of address space and /proc"),
    pytest.mark.skipif(zcore.show_config("dicts")["build"]["variant"] == "sanitize",
                       reason="the sanitizers keep their notes all over the address space"),
]


def run(path, way, code):
    """Run code with the array at `path` as `a`; it may only end by itself."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PREAMBLE + textwrap.dedent(code), str(path), way],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, f"ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout.split()


def make(path, shape, chunks, dtype="<i4", fill_value=7):
    return zcore.open(str(path), mode="w", shape=shape, chunks=chunks, dtype=dtype, cname="lz4", fill_value=fill_value)


@pytest.mark.parametrize("way", WAYS)
def test_an_absent_chunk_of_two_gigabytes_costs_nothing(tmp_path, way):
    """ZM-CHK-12: the largest chunk there is, in a grid of 2**33 of them."""
    make(tmp_path, (2**62,), (2**29 - 8,))
    assert run(
        tmp_path,
        way,
        """
        limit(200)
        print(a[2**61], a[-1], *a[::2**60], a.nchunks, a.nchunks_initialized, repr(a) > "",
              len(a.info_complete()) > 0)
        print(grown() < 50)
    """,
    ) == ["7"] * 6 + [str(-(-(2**62) // (2**29 - 8))), "0", "True", "True", "True"]


@pytest.mark.parametrize("way", WAYS)
def test_a_result_that_does_not_fit_is_an_error_of_zcore(tmp_path, way):
    make(tmp_path, (2**20, 2**20, 2**20), (64, 64, 64))
    assert run(
        tmp_path,
        way,
        """
        limit(500)
        for call in (lambda: a[...], lambda: a[0], lambda: np.asarray(a), lambda: a.read((0, slice(None))),
                     lambda: next(iter(a))):
            print(error(call))
        print(a[0, 0, 0], grown() < 50)
    """,
    ) == ["OutOfMemoryError"] * 5 + ["7", "True"]


@pytest.mark.parametrize("way", WAYS)
def test_a_header_that_claims_two_gigabytes(tmp_path, way):
    """BL-HDR-05: compared with the metadata before anything is allocated."""
    make(tmp_path, (100,), (100,))
    body = bytes(100)
    for nbytes in (2**31 - 17, 2**31, 2**32 - 1):
        for flags in (0x02, 0x11, 0x31, 0x91):
            for blocksize in (nbytes, 1, 2**20):
                (tmp_path / "__zdata__" / "0.blosc").write_bytes(
                    struct.pack("<BBBBIII", 2, 1, flags, 4, nbytes, blocksize, 116) + body
                )
                break
    assert run(
        tmp_path,
        way,
        """
        limit(200)
        print(error(lambda: a[...]), error(a.__setitem__, 0, 1), grown() < 50)
    """,
    ) == ["CodecError", "CodecError", "True"]


def test_decompress_asks_for_what_a_header_claims_and_no_more(tmp_path):
    """Without metadata there is nothing to compare with: the memory that is not there is an error of zcore."""
    make(tmp_path, (4,), (4,))
    assert run(
        tmp_path,
        "native",
        """
        import struct
        limit(300)
        stream = struct.pack("<i", 8) + bytes(8)
        for flags in (0x10, 0x30, 0x70, 0x90):
            for nbytes, blocksize in ((2**31 - 17, 2**29), (10**9, 7 * 10**8), (10**8, 10**8)):
                n = -(-nbytes // blocksize)
                table = struct.pack(f"<{n}i", *[16 + 4 * n] * n)
                head = struct.pack("<BBBBIII", 2, 1, flags, 4, nbytes, blocksize, 16 + len(table) + 12)
                chunk = head + table + stream
                assert error(blosc.decompress, chunk) in ("ChunkMemoryError", "CodecError"), (flags, nbytes)
        print(grown() < 50)
    """,
    ) == ["True"]


@pytest.mark.thinned(2, "way", "n_mb")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n_mb", [100, 900, 1500, 1900])
def test_one_block_of_600_megabytes_under_a_limit(tmp_path, way, n_mb):
    """c-blosc takes two blocks of scratch and writes to them whether it got them or not."""
    n = 600_000_000
    make(tmp_path, (n // 4,), (n // 4,))
    # A run of one byte in LZ4, whose first literals are written at once.
    stream = b"\xf0" + bytes([49]) + b"\x01" * 64
    chunks = [
        struct.pack("<BBBBIIIii", 2, 1, flags, 4, n, n, 24 + len(stream), 20, len(stream)) + stream
        for flags in (0x31, 0x11, 0x91, 0x71)
    ]
    assert run(
        tmp_path,
        way,
        f"""
        limit({n_mb})
        for chunk in {chunks}:
            with open(sys.argv[1] + "/__zdata__/0.blosc", "wb") as file:
                file.write(chunk)
            found = error(lambda: a[5]), error(a.__setitem__, 5, 1)
            print(*[name in ("ChunkMemoryError", "CodecError") for name in found])
    """,
    ) == ["True"] * 8


@pytest.mark.parametrize("way", WAYS)
def test_files_of_any_size(tmp_path, way):
    """A sparse file of 100 GB in the place of a chunk, of the metadata, of the attributes."""
    make(tmp_path, (100,), (100,))
    files = [tmp_path / name for name in ("__zdata__/0.blosc", "__zattr__", "__zmeta__")]
    valid = files[2].read_bytes()
    for file in files:
        with open(file, "ab") as target:
            target.truncate(100 * 10**9)
    code = """
        import os
        document = sys.argv[1] + "/__zmeta__"
        limit(400)
        print(error(lambda: a[...]), error(a.__setitem__, 0, 1), error(a.attrs.asdict),
              error(a.attrs.__setitem__, "x", 1))
        os.truncate(document, 10**11)
        print(error(zcore.open, a.store), error(a.refresh), error(a.resize, 5), error(lambda: a[...]),
              grown() < 150)
    """
    os.truncate(files[2], len(valid))
    assert run(tmp_path, way, code) == ["CodecError"] * 2 + ["MetadataError"] * 6 + ["True"]


@pytest.mark.parametrize("way", WAYS)
def test_a_full_read_needs_the_result_and_a_few_chunks(tmp_path, way):
    """Of chunks that are not contiguous in the result."""
    a = make(tmp_path, (2048, 2048), (256, 256), "<f8")
    a[...] = np.random.default_rng(1).random((2048, 2048))
    assert run(
        tmp_path,
        way,
        """
        out = a[...]
        print(grown() < 32 + 16, error(lambda: a[...][5:7].sum() == out[5:7].sum()))
    """,
    ) == ["True", "True"]


@pytest.mark.parametrize("way", WAYS)
def test_writing_chunks_that_do_not_fit(tmp_path, way):
    make(tmp_path, (2**40,), (2**28,))
    assert run(
        tmp_path,
        way,
        """
        limit(300)
        print(error(a.__setitem__, 2**39, 1), error(a.__setitem__, slice(5, 2**30), 1), a[2**39], grown() < 150)
    """,
    ) == ["ChunkMemoryError", "ChunkMemoryError", "7", "True"]
