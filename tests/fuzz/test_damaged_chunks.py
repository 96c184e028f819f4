"""Damaged chunks end in an error that names them, or, where the format has no means to tell, in other elements.

Never in a crash, a fill value, or an array of another shape; and the kernel and the Python path say the same.
"""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import zcore
from tests.both_ways import WAYS, directory, handles
from zcore import blosc

from .chunks import BITSHUFFLE, MEMCPY, NOT_SPLIT, SHUFFLE, contradiction, replace_content, snappy_chunk

HERE = Path(__file__).resolve().parent
# The sanitizers need several times the memory.
MAX_PEAK_MB = 2000 if zcore.show_config("dicts")["build"]["variant"] == "sanitize" else 300


def content(n_bytes):
    numbers = np.arange(n_bytes)
    return (numbers // 24 ^ (numbers % 48 == 5)).astype(np.uint8).tobytes()


def kinds():
    """(name, item size, chunk): all compressors and shuffles; item sizes that one flipped bit makes 1, and others."""
    for typesize, shuffle, cname in itertools.product((4, 5), (0, 1, 2), ("blosclz", "lz4", "lz4hc", "zlib", "zstd")):
        chunk = blosc.compress(content(64 * typesize), cname=cname, clevel=9, shuffle=shuffle, typesize=typesize)
        yield f"{cname}-{shuffle}-{typesize}", typesize, chunk
    for typesize, flags in itertools.product((4, 5), (0, SHUFFLE, BITSHUFFLE)):
        yield (
            f"snappy-{flags}-{typesize}",
            typesize,
            snappy_chunk(content(64 * typesize), typesize, 32 * typesize, flags | NOT_SPLIT),
        )
        yield (
            f"stored-{flags}-{typesize}",
            typesize,
            blosc.compress(content(64 * typesize), clevel=0, typesize=typesize),
        )
    # Blocks of several streams, the last block of one.
    yield "split", 4, snappy_chunk(content(64 * 4 * 9), 4, 512, SHUFFLE, order=(2, 0, 1, 4, 3))


KINDS = list(kinds())


def some_by_default():
    """The kinds as parameters: of each compressor and shuffle one item size is tried by default, in turn."""
    turns = {}
    for name, typesize, chunk in KINDS:
        n = turns.setdefault(name.rpartition("-")[0], len(turns))
        yield pytest.param(name, typesize, chunk, id=name,
                           marks=() if name == "split" or typesize == (4, 5)[n % 2] else pytest.mark.slow)


@pytest.fixture(params=WAYS)
def way(request):
    return request.param


def array_of(path, typesize, chunk, way="native"):
    """An array of one chunk, which is stored as given; its fill value is nowhere in the content."""
    n_items = blosc.header(chunk).nbytes // typesize
    array = zcore.open(
        directory(path, way),
        mode="w",
        shape=n_items,
        chunks=n_items,
        dtype=f"S{typesize}",
        cname="lz4",
        lock=None,
        fill_value=b"~" * typesize,
    )
    file = path / "__zdata__" / "0.blosc"
    file.write_bytes(chunk)
    return array, file


def read(array):
    """The bytes of all elements, or the error."""
    try:
        out = np.empty(array.shape, array.dtype)
        array.read(out=out)
    except zcore.ZcoreError as error:
        return error
    return out.tobytes()


@pytest.mark.thinned(2, "way", "name")
@pytest.mark.parametrize(("name", "typesize", "chunk"), list(some_by_default()))
def test_every_length(tmp_path, way, name, typesize, chunk):
    """ZM-CHK-05, ZM-CHK-11: a file of 0 ... cbytes + 8 bytes is an error unless it is the chunk."""
    array, file = array_of(tmp_path, typesize, chunk, way)
    longer = [chunk + bytes(8), chunk + chunk[16:24]]
    for n, tail in itertools.product(range(len(chunk) + 9), longer):
        if n <= len(chunk) and tail is longer[1]:
            continue
        replace_content(file, tail[:n])
        found = read(array)
        if n == len(chunk):
            assert found == content(array.nbytes)
        else:
            assert isinstance(found, zcore.CodecError), n
            assert (found.key, found.chunk_coords, found.direction) == ("__zdata__/0.blosc", (0,), "decode")


@pytest.fixture(scope="module")
def undetectable():
    """Flips that no reader can tell, counted; printed when all are known."""
    counts = {}
    yield counts
    total = sum(n for n, _ in counts.values())
    print(
        f"\n{total} of {sum(n for _, n in counts.values())} flipped bits in the first 64 bytes of {len(counts)} chunks "
        f"give "
        f"other elements without an error; by kind: { ({name: n for name, (n, _) in counts.items()}) }"
    )


@pytest.mark.thinned(3, "name")
@pytest.mark.parametrize(("name", "typesize", "chunk"), list(some_by_default()))
def test_every_flipped_bit(tmp_path, undetectable, name, typesize, chunk):
    """Each bit of the first 64 bytes: what header, block table or metadata contradict is an error, both ways."""
    array, file = array_of(tmp_path, typesize, chunk)
    both = handles(tmp_path, lock=None)
    right, fill = content(array.nbytes), b"~" * array.nbytes
    n_wrong = n_possible = 0
    n_bits = 8 * min(64, len(chunk))
    for bit in range(n_bits):
        flipped = bytearray(chunk)
        flipped[bit // 8] ^= 1 << bit % 8
        replace_content(file, flipped)
        found = [read(handle) for handle in both]
        reason = contradiction(flipped, array.nbytes, typesize)
        n_possible += reason is None
        if isinstance(found[0], bytes):
            assert found[0] == found[1]
            assert reason is None, (bit, reason)
            assert len(found[0]) == len(right) and found[0] != fill
            n_wrong += found[0] != right
        else:
            assert (type(found[0]), str(found[0])) == (type(found[1]), str(found[1]))
            # Blosc 2 marks its chunks by the version, or by both shuffles.
            assert isinstance(found[0], zcore.CodecError) or reason in ("version", "two shuffles")
    if chunk[2] & MEMCPY:
        # All of the content, and nothing in the header: what is stored as is has no use for shuffle and blocks.
        assert n_wrong == 8 * (min(64, len(chunk)) - 16)
    else:
        assert n_wrong <= n_possible
    undetectable[name] = n_wrong, n_bits


@pytest.mark.parametrize("step", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_flips_in_the_header_that_must_be_found(tmp_path, way, step):
    """Version, sizes, reserved bits, and an item size that is neither the array's nor 1, are never believed.

    By default one of the ways reads each kind.
    """
    for _, typesize, chunk in KINDS[WAYS.index(way) % step::step]:
        array, file = array_of(tmp_path, typesize, chunk, way)
        for byte in (0, 1, 3, 4, 5, 6, 7, 12, 13, 14, 15):
            for bit in range(8):
                flipped = bytearray(chunk)
                flipped[byte] ^= 1 << bit
                replace_content(file, flipped)
                if byte == 3 and flipped[3] == 1:
                    continue
                assert isinstance(read(array), zcore.ZcoreError), (byte, bit)


def mutate(tmp_path, seed, n):
    done = subprocess.run(
        [sys.executable, str(HERE / "mutate_chunks.py"), str(tmp_path), str(seed), str(n)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_random_damage(tmp_path):
    """Mutations of whole chunks, all compressors, shuffles and item sizes, in a process that may crash."""
    counts = mutate(tmp_path, 1, 2000)
    print(counts)
    assert counts.keys() == {"right", "undetectable", "contradicted", "CodecError", "UnsupportedError", "peak_mb"}
    assert counts["peak_mb"] < MAX_PEAK_MB
    assert counts["contradicted"] > 1000


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
def test_much_random_damage(tmp_path, seed):
    counts = mutate(tmp_path, seed, 50_000)
    print(counts)
    assert counts["peak_mb"] < MAX_PEAK_MB
