"""Laws of the shuffles for any block."""
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zcore.kernel.codec.shuffle import bitshuffle, shuffle, unbitshuffle, unshuffle


@given(st.integers(1, 300), st.integers(0, 700), st.integers(0, 299), st.integers(0, 2**32))
def test_shuffle_is_a_transposition_and_unshuffle_its_inverse(typesize, n, rest, seed):
    data = np.random.default_rng(seed).bytes(n * typesize + rest % typesize)
    shuffled = shuffle(data, typesize)
    whole = n * typesize
    assert shuffled[:whole] == np.frombuffer(data[:whole], "u1").reshape(n, typesize).T.tobytes()
    assert shuffled[whole:] == data[whole:]
    assert unshuffle(shuffled, typesize) == data


@given(st.integers(1, 300), st.integers(0, 90), st.integers(0, 299), st.integers(0, 2**32))
def test_bitshuffle_moves_every_bit_to_its_row_and_unbitshuffle_back(typesize, groups, rest, seed):
    n, random = 8 * groups, np.random.default_rng(seed)
    data = random.bytes(n * typesize + rest % typesize)
    whole = n * typesize
    rows = np.unpackbits(np.frombuffer(data[:whole], "u1"), bitorder="little").reshape(8 * typesize, n)
    items = np.packbits(rows.T, axis=1, bitorder="little").tobytes()
    assert unbitshuffle(data, typesize) == items + data[whole:]
    assert bitshuffle(items + data[whole:], typesize) == data
