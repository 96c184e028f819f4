"""Points out of many chunks: sorted by chunk and place as one key, or by chunk alone where such a key has no room."""
import numpy as np
import pytest

import zcore

SHAPE = (40, 30, 50)
LAYOUTS = {
    "chunks": {"chunks": (7, 30, 11)}, "one chunk": {"chunks": SHAPE}, "small chunks": {"chunks": (4, 3, 5)},
    "shards": {"chunks": (2, 5, 5), "shards": (10, 15, 25)}, "rectilinear": {"chunks": ([5, 20, 15], 30, [1, 49])},
    "transposed": {"chunks": (7, 8, 9), "filters": zcore.codecs.TransposeCodec(order=(2, 0, 1))},
    "order F": {"chunks": (7, 8, 9), "zarr_format": 2, "order": "F"},
    # A chunk has more elements than 32 bits count.
    "huge": {"chunks": (1 << 20, 1 << 12, 50), "shape": (1 << 21, 1 << 13, 50), "dtype": "u1", "compressors": "zstd"},
}


def array(layout):
    keywords = {"shape": SHAPE, "dtype": "i4", "fill_value": 0, **LAYOUTS[layout]}
    made = zcore.create_array(zcore.MemoryStore(), **keywords)
    values = np.arange(np.prod(SHAPE)).reshape(SHAPE).astype(made.dtype)
    if layout != "huge":
        made[...] = values
    return made, values


SELECTIONS = {
    "all lists": lambda i, j, k: (i, j, k), "two lists": lambda i, j, k: (i, slice(3, 25, 2), k),
    "the first ones": lambda i, j, k: (i, j), "one list": lambda i, j, k: (slice(None), j),
    "backwards": lambda i, j, k: (-1 - i, slice(None), k[::-1]), "sorted": lambda i, j, k: (np.sort(i),),
}


@pytest.mark.thinned(3, "layout", "name", "n")
@pytest.mark.parametrize("n", [3, 5000])
@pytest.mark.parametrize("name", SELECTIONS)
@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "huge"])
def test_points_are_those_of_numpy(layout, name, n):
    z, expected = array(layout)
    rng = np.random.default_rng(n)
    selection = SELECTIONS[name](*[rng.integers(0, length, n) for length in SHAPE])
    assert np.array_equal(z[selection], expected[selection])
    new = rng.integers(0, 1 << 20, expected[selection].shape).astype("i4")
    # Many points go to one element: the last one stays.
    z[selection] = expected[selection] = new
    assert np.array_equal(z[...], expected)
    assert np.array_equal(z[selection], expected[selection])


def test_chunks_with_more_elements_than_32_bits_count():
    z, _ = array("huge")
    i, j, k = [np.array([0, length - 1, length // 2, 1, length // 2, 0]) for length in z.shape]
    assert np.array_equal(z.vindex[i, j, k], np.zeros(6))


def test_more_chunks_than_one_digit_counts():
    z = zcore.create_array(zcore.MemoryStore(), shape=(300, 300), chunks=(1, 1), dtype="i4", fill_value=-1)
    rng = np.random.default_rng(1)
    i, j = rng.integers(0, 300, (2, 500))
    i[:2], j[:2] = (299, 0), (299, 0)
    expected = np.full((300, 300), -1)
    z.vindex[i, j] = expected[i, j] = np.arange(500)
    assert np.array_equal(z[...], expected) and np.array_equal(z.vindex[i, j], expected[i, j])
