"""The fill value: placed for chunks that are absent, and found in chunks that are written."""
import numpy as np

import zcore
from tests.each import each


def filled(shape, itemsize, value, chunks):
    return zcore.create_array(zcore.MemoryStore(), shape=shape, dtype=f"V{itemsize}", chunks=chunks, zarr_format=2,
                              fill_value=np.void(value), compressors=None)


def values(itemsize):
    yield np.random.default_rng(itemsize).integers(0, 256, itemsize, dtype="u1").tobytes()
    yield b"\xff" * itemsize


@each("n_items", [1, 2, 3, 100, 8191, 8192, 8193, 50_000])
@each("itemsize", [1, 3, 4, 16, 300, 9000])
def test_a_chunk_of_fill_values_is_read_and_not_stored(itemsize, n_items):
    n_items = max(1, min(n_items, 1_000_000 // itemsize))
    for value in values(itemsize):
        array = filled((n_items,), itemsize, value, (n_items,))
        content = bytearray(array[...].tobytes())
        assert content == value * n_items
        for place in {None, 0, len(content) // 2, len(content) - 1}:
            other = bytearray(content)
            if place is not None:
                other[place] ^= 1
            array[...] = np.frombuffer(other, f"V{itemsize}")
            assert (array.nchunks_initialized == 0) == (place is None)


@each("itemsize", [1, 2, 3, 4, 8, 12, 16, 24, 40])
def test_the_fill_value_goes_to_the_selection_and_nothing_else(itemsize):
    """Chunks beside each other, in rows and in columns, each of which is stored or not."""
    value = next(values(itemsize))
    array = filled((12, 11), itemsize, value, (5, 4))
    expected = np.full((12, 11), np.void(value), f"V{itemsize}")
    expected[5:10, :4] = array[5:10, :4] = np.zeros((5, 4), f"V{itemsize}")
    for index in (np.s_[...], np.s_[::-1], np.s_[::2], np.s_[:, ::-2], np.s_[3:9, 5:7], np.s_[:, 4], np.s_[2:9, 3:4]):
        assert array[index].tobytes() == expected[index].tobytes()


def test_bytes_are_compared_and_not_values():
    array = zcore.create_array(zcore.MemoryStore(), shape=(10,), dtype="f8", chunks=(5,), fill_value=0.0)
    array[...] = np.where(np.arange(10) < 5, 0.0, -0.0)
    assert array.nchunks_initialized == 1 and np.signbit(array[5:]).all()
