"""Chunk shapes from a size, a part of a shape, or nothing."""
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zcore
from tests.each import each
from zcore.model.auto_chunks import TARGET_NBYTES, auto_chunk_shape, normalize_chunks, parse_nbytes


@each(("text", "nbytes"), [
    ("65536", 65536), ("4 MB", 4_000_000), ("4MB", 4_000_000), ("512 KiB", 524288), ("1.5 MiB", 1572864), ("2k", 2000),
    ("2 KB", 2000), ("1 GiB", 2**30), ("1 TB", 10**12), ("100 B", 100), (" 1 M ", 10**6), ("0.5 KiB", 512),
])
def test_size_in_words(text, nbytes):
    assert parse_nbytes(text) == nbytes


@each("text", [
    "", "MB", "-1", "1 XB", "1 iB", "1e6", "0", "0.1 B", "1 MB MB", "٤ MB", "1,5 MB", "1" * 16,
])
def test_text_that_is_no_size(text):
    with pytest.raises(ValueError, match="^expected a size"):
        parse_nbytes(text)
    for name in ("chunks", "shards"):
        with pytest.raises(ValueError, match=f"^{name}: expected a size"):
            zcore.create_array(zcore.MemoryStore(), shape=5, dtype="i4", **{name: text})


@given(st.lists(st.integers(0, 2**40), max_size=5), st.integers(1, 300), st.integers(1, 2**22))
def test_automatic_chunks_are_near_their_target(shape, itemsize, target):
    chunk_shape = auto_chunk_shape(shape, itemsize, target)
    nbytes = math.prod(chunk_shape) * itemsize
    assert all(1 <= chunk <= max(length, 1) for chunk, length in zip(chunk_shape, shape, strict=True))
    assert nbytes <= target or nbytes == itemsize
    whole = math.prod(max(length, 1) for length in shape) * itemsize
    assert nbytes == whole or nbytes * 3 > target or nbytes == itemsize


@given(st.integers(1, 10**6), st.integers(1, 2**16))
def test_automatic_chunks_spread_the_array_evenly(length, target):
    (chunk,) = auto_chunk_shape((length,), 1, target)
    grid = -(-length // chunk)
    assert chunk == -(-length // grid)


@pytest.mark.parametrize("chunks", [None, "auto"])
def test_nothing_asked_for_is_about_a_megabyte(chunks):
    nbytes = math.prod(normalize_chunks(chunks, (100000, 1000), 8)) * 8
    assert TARGET_NBYTES // 2 < nbytes <= TARGET_NBYTES
    assert normalize_chunks(chunks, (10, 10), 8) == (10, 10)
    assert normalize_chunks(chunks, (0, 5), 8) == (1, 5)


@each(("chunks", "expected"), [
    ((10, -1, -1), (10, 30, 7)), ((10, None, 2), (10, 30, 2)), ((-1, 5, None), (20, 5, 7)),
    (4, (4, 4, 4)), (-1, (20, 30, 7)), ((50, 50, 50), (50, 50, 50)), ([np.int64(3), -1, 2], (3, 30, 2)),
    (np.array([3, 4, 7]), (3, 4, 7)),
])
def test_lengths_and_whole_dimensions(chunks, expected):
    assert normalize_chunks(chunks, (20, 30, 7), 4) == expected


@each("chunks", [(), (10,), (10, 5), [np.int64(3)], np.array([3, 4]), (-1, 5), (2, 2, 2, 2)])
def test_as_many_lengths_as_dimensions(chunks):
    """h5py and zarr-python refuse them, too: chunks of another shape than the caller meant would be stored for good."""
    with pytest.raises(ValueError, match=r"^chunks: expected one length for each dimension of the shape"):
        normalize_chunks(chunks, (20, 30, 7), 4)


def test_size_is_the_target_and_the_limit_of_a_format_holds():
    assert math.prod(normalize_chunks("4 MB", (10**9,), 1)) > 2_000_000
    assert math.prod(normalize_chunks("4 GB", (10**12,), 1, max_nbytes=2**31)) <= 2**31


@each(("chunks", "error"), [
    ((0,), ValueError), ((-2,), ValueError), ((1, 1, 1, 1), ValueError), (0, ValueError), ("many", ValueError),
    (True, TypeError), ((True,), TypeError), ((1.5,), TypeError), (2.0, TypeError), (("a",), TypeError),
])
def test_chunks_that_are_none(chunks, error):
    with pytest.raises(error):
        normalize_chunks(chunks, (20, 30, 7), 4)
