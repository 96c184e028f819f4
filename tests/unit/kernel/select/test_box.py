"""A basic selection becomes a box: judged by NumPy's own indexing of an array of positions."""

import collections
import enum
import itertools

import numpy as np
import pytest

from tests.each import each
from zcore.errors import SelectionError
from zcore.indexing.numpy import indexed
from zcore.kernel.select.box import Box, basic, whole


def elements(box):
    """The positions a box takes, in the order of the result, as one number per dimension."""
    return [
        [start + step * i for i in range(count)]
        for start, step, count in zip(box.starts, box.steps, box.counts, strict=True)
    ]


def test_every_slice_of_one_dimension():
    bounds = [None, *range(-7, 8), 2**63, -(2**63), 2**100]
    for length in range(6):
        positions = np.arange(length)
        for start, stop, step in itertools.product(bounds, bounds, [None, -(2**70), -3, -2, -1, 1, 2, 3, 2**63, 2**70]):
            box = basic(slice(start, stop, step), (length,))
            expected = positions[slice(start, stop, step)].tolist()
            assert elements(box) == [expected]
            assert box.shape == (len(expected),)
            assert all(-(2**63) <= number < 2**63 for number in (*box.starts, *box.steps)), (
                "the kernel counts in 64 bits"
            )
            assert box.fits((length,))


@each(
    ("selection", "shape", "expected"),
    [
        ((), (), ([], [], [])),
        (..., (), ([], [], [])),
        ((...,), (2, 3), ([0, 0], [1, 1], [2, 3])),
        (1, (2, 3), ([1, 0], [1, 1], [1, 3])),
        (-1, (2, 3), ([1, 0], [1, 1], [1, 3])),
        ((..., -1), (2, 3), ([0, 2], [1, 1], [2, 1])),
        ((1, ..., slice(None, None, -2)), (2, 3, 5), ([1, 0, 4], [1, 1, -2], [1, 3, 3])),
        ((0, ..., 1), (2, 3), ([0, 1], [1, 1], [1, 1])),
        (slice(2, 2), (5,), ([2], [1], [0])),
        (collections.namedtuple("Place", "row column")(1, 2), (2, 3), ([1, 2], [1, 1], [1, 1])),
    ],
)
def test_boxes(selection, shape, expected):
    box = basic(selection, shape)
    assert [list(box.starts), list(box.steps), list(box.counts)] == list(expected)


@each(
    "index",
    [2, True + 1, np.int8(2), np.uint64(2), np.array(2), np.array(2, ">u2"), enum.IntEnum("Two", {"TWO": 2}).TWO],
)
def test_whatever_is_an_integer_is_an_index(index):
    assert basic(index, (5,)).starts == (2,)
    assert basic(slice(index), (5,)).counts == (2,)


def test_an_element_is_a_scalar_only_without_an_ellipsis():
    assert basic((1, 2), (2, 3)).is_element
    assert basic((), ()).is_element
    assert not basic((1, 2, ...), (2, 3)).is_element
    assert not basic(..., ()).is_element
    assert not basic(1, (2, 3)).is_element


@pytest.mark.parametrize("shape", [(), (3,), (3, 4), (2, 3, 4)])
def test_expand_gives_back_the_dimensions_that_integers_drop(shape):
    positions = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    for picks in itertools.product([0, slice(None), slice(None, None, -1)], repeat=len(shape)):
        box = basic(picks, shape)
        result = positions[picks]
        expanded = result if box.expand is None else np.asarray(result)[box.expand]
        assert expanded.shape == box.counts


@each(
    ("selection", "shape", "dimension"),
    [
        (5, (5,), 0),
        (-6, (5,), 0),
        (0, (0,), 0),
        ((0, 4), (5, 4), 1),
        ((..., -5), (5, 4), 1),
        (2**70, (5,), 0),
        ((0, 0), (5,), 1),
        (0, (), 0),
        ((slice(None),) * 3, (5, 5), 2),
        ((..., 0, 0), (5,), 1),
    ],
)
def test_out_of_bounds_and_too_many(selection, shape, dimension):
    """D3-CON-07"""
    with pytest.raises(IndexError):
        np.empty(shape)[selection]
    with pytest.raises(SelectionError) as caught:
        basic(selection, shape)
    assert caught.value.dimension == dimension


@each("selection", [(..., ...), (0, ..., ...), 1.0, 1j, b"a", object(), (0, 1.5), {}])
def test_what_numpy_refuses_too(selection):
    """By itself, or by the parser of all of NumPy's indexing, to which it is left."""
    with pytest.raises(IndexError):
        np.empty((2, 3))[selection]
    with pytest.raises(SelectionError):
        assert basic(selection, (2, 3)) is None
        indexed(selection, (2, 3))


@pytest.mark.parametrize(
    ("index", "exception"),
    [
        (slice(None, None, 0), ValueError),
        (slice(1.0), TypeError),
        (slice("a", None), TypeError),
        (slice(None, [1]), TypeError),
    ],
)
def test_slices_of_something_else(index, exception):
    with pytest.raises(exception):
        np.empty(5)[index]
    with pytest.raises(exception):
        basic(index, (5,))


@each(
    "index",
    [
        None,
        (0, None),
        "a",
        True,
        np.False_,
        np.array(True),
        np.ones((2, 3), bool),
        (0, True),
        [0, 1],
        np.array([0, 1]),
        (0, [1]),
        (0, (1, 2)),
        [True, False],
        (0, 0, None),
        ["a"],
        (9, [1]),
    ],
)
def test_what_is_no_box(index):
    """A mask is never taken for the integers 0 and 1."""
    assert basic(index, (2, 3)) is None


def test_fits():
    box = basic((slice(1, 8, 3), slice(None, None, -1)), (9, 4))
    assert box.fits((9, 4)) and box.fits((8, 5)) and not box.fits((7, 4)) and not box.fits((9, 3))
    assert Box((5,), (1,), (0,)).fits((0,)), "no elements fit anywhere"
    assert whole((0, 3)).fits((0, 3)) and whole(()).fits(())


def test_whole():
    assert repr(whole((2, 3))) == repr(basic(..., (2, 3))) == "Box((0, 0), (1, 1), (2, 3))"


def test_sixty_four_dimensions():
    box = basic((..., 0), (1,) * 64)
    assert box.counts == (1,) * 64 and box.shape == (1,) * 63
