"""The rules of regular grids: worked examples, laws, and every small selection against NumPy."""
import doctest
import itertools
import math

import numpy as np
import pytest

from zcore.errors import SelectionError
from zcore.kernel.select import grid

LARGE = 2**63 - 1


def test_docstrings_hold():
    assert doctest.testmod(grid).failed == 0


@pytest.mark.parametrize(("shape", "chunk_shape", "expected"), [
    ((10, 200, 3000), (5, 20, 400), (2, 10, 8)),        # the draft's example; 3000 / 400 leaves an overhang
    ((), (), ()),
    ((0,), (1,), (0,)),
    ((4, 0, 3), (4, 7, 2), (1, 0, 2)),
    ((1,), (100,), (1,)),
    ((2**53 + 1,), (2**53,), (2,)),                     # a double cannot tell 2**53 + 1 from 2**53
    ((2**53 + 1,), (1,), (2**53 + 1,)),
    ((2**62,), (2**61 + 1,), (2,)),
    ((LARGE,), (LARGE,), (1,)),
    ((LARGE,), (LARGE - 1,), (2,)),
    ((LARGE,), (1,), (LARGE,)),
])
def test_grid_shape(shape, chunk_shape, expected):
    """V3-GRID-02, D3-GRID-05, D3-GRID-06"""
    assert grid.grid_shape(shape, chunk_shape) == expected
    assert grid.n_chunks(shape, chunk_shape) == math.prod(expected)


def test_the_number_of_chunks_may_exceed_64_bits():
    assert grid.n_chunks((LARGE, LARGE), (1, 1)) == LARGE**2


def test_origin_and_location_of_the_worked_example():
    """V3-GRID-03, D3-GRID-04, D3-GRID-07"""
    assert grid.locate((7, 150, 900), (5, 20, 400)) == ((1, 7, 2), (2, 10, 100))
    assert grid.chunk_origin((1, 7, 2), (5, 20, 400)) == (5, 140, 800)
    assert grid.chunk_origin((0, 0, 0), (5, 20, 400)) == (0, 0, 0)
    assert grid.locate((), ()) == ((), ())
    assert grid.chunk_origin((), ()) == ()


def test_every_element_lies_in_exactly_one_chunk():
    """V3-GRID-03, D3-GRID-01"""
    shape, chunk_shape = (5, 7), (2, 3)
    seen = set()
    for index in np.ndindex(*shape):
        coords, offset = grid.locate(index, chunk_shape)
        assert all(0 <= o < c for o, c in zip(offset, chunk_shape, strict=True))
        assert all(0 <= c < n for c, n in zip(coords, grid.grid_shape(shape, chunk_shape), strict=True))
        origin = grid.chunk_origin(coords, chunk_shape)
        assert tuple(o + p for o, p in zip(origin, offset, strict=True)) == index
        seen.add((coords, offset))
    assert len(seen) == math.prod(shape)


@pytest.mark.parametrize("call", [
    lambda: grid.grid_shape((1, 2), (1,)),
    lambda: grid.grid_shape((3,), (0,)),
    lambda: grid.grid_shape((3,), (-1,)),
    lambda: grid.grid_shape((-1,), (1,)),
    lambda: grid.locate((1,), (0,)),
    lambda: grid.locate((1,), (1, 1)),
    lambda: grid.chunk_origin((1,), (0,)),
    lambda: grid.chunk_origin((1, 1), (1,)),
    lambda: grid.project((3,), (0,), (0,), (1,), (1,)),
    lambda: grid.project((3,), (1,), (0,), (0,), (1,)),
    lambda: grid.project((3,), (1,), (0,), (1,), (-1,)),
    lambda: grid.project((-3,), (1,), (0,), (1,), (0,)),
    lambda: grid.project((3,), (1,), (0, 0), (1,), (1,)),
])
def test_wrong_shapes_are_refused(call):
    """D3-GRID-02, D3-GRID-08"""
    with pytest.raises(ValueError):
        call()


@pytest.mark.parametrize("call", [
    lambda: grid.locate((0, -1), (1, 1)),
    lambda: grid.chunk_origin((0, -1), (1, 1)),
])
def test_negative_coordinates_are_refused(call):
    """D3-GRID-03"""
    with pytest.raises(SelectionError, match="dimension 1 is negative") as caught:
        call()
    assert caught.value.dimension == 1


def test_an_origin_past_64_bits_is_refused():
    assert grid.chunk_origin((2**31,), (2**31,)) == (2**62,)
    with pytest.raises(OverflowError):
        grid.chunk_origin((2**32,), (2**31,))


@pytest.mark.parametrize(("start", "step", "count"), [
    (10, 1, 1), (-1, 1, 1), (9, 1, 2), (0, 5, 3), (9, -5, 3), (0, -1, 2), (LARGE, 1, 1),
    (0, LARGE, 2), (0, 1, LARGE), (1, LARGE, LARGE), (9, -2**63, 2), (9, -LARGE, LARGE), (0, 2**32, 2**32),
])
def test_boxes_that_leave_the_array_are_refused(start, step, count):
    with pytest.raises(SelectionError, match="leave dimension 0 of length 10"):
        grid.project((10,), (4,), (start,), (step,), (count,))


@pytest.mark.parametrize(("length", "chunk", "start", "step", "count", "expected"), [
    # (chunk, in-chunk slice, out slice)
    (2**53 + 1, 2**53, 2**53 - 1, 1, 2, [(0, slice(2**53 - 1, 2**53, 1), slice(0, 1, 1)),
                                         (1, slice(0, 1, 1), slice(1, 2, 1))]),
    (2**62, 2**61, 0, 2**61 - 1, 3, [(0, slice(0, 2**61, 2**61 - 1), slice(0, 2, 1)),
                                     (1, slice(2**61 - 2, 2**61 - 1, 2**61 - 1), slice(2, 3, 1))]),
    (2**62, 2**61, 2**62 - 1, -(2**62 - 1), 2, [(0, slice(0, 1, 2**62 - 1), slice(1, 0, -1)),
                                                (1, slice(2**61 - 1, 2**61, 2**62 - 1), slice(0, None, -1))]),
    (LARGE, LARGE - 1, LARGE - 2, 1, 2, [(0, slice(LARGE - 2, LARGE - 1, 1), slice(0, 1, 1)),
                                         (1, slice(0, 1, 1), slice(1, 2, 1))]),
    (LARGE, 1, LARGE - 1, -2**63, 1, [(LARGE - 1, slice(0, 1, 1), slice(0, 1, 1))]),
])
def test_boxes_of_huge_dimensions_are_exact(length, chunk, start, step, count, expected):
    parts = list(grid.project((length,), (chunk,), (start,), (step,), (count,)))
    assert parts == [((c,), (selected,), (out,)) for c, selected, out in expected]


def test_a_huge_selection_is_not_expanded():
    parts = grid.project((LARGE, LARGE), (1, 1), (0, 0), (1, 1), (LARGE, LARGE))
    assert next(parts) == ((0, 0), (slice(0, 1, 1),) * 2, (slice(0, 1, 1),) * 2)


def test_no_dimensions_are_one_chunk():
    """D3-GRID-09"""
    assert list(grid.project((), (), (), (), ())) == [((), (), ())]


def test_nothing_selected_touches_nothing():
    assert list(grid.project((4, 4), (2, 2), (0, 9), (1, 1), (2, 0))) == []
    assert list(grid.project((0,), (2,), (0,), (1,), (0,))) == []


def test_all_small_selections_agree_with_numpy():
    """D3-GRID-10"""
    for length, chunk in itertools.product(range(1, 7), range(1, 8)):
        data = np.arange(length)
        for start, stop, step in itertools.product(range(length), range(-1, length + 1), (1, 2, 3, 4, 7)):
            down = stop < start
            expected = data[start:None if stop < 0 else stop:-step if down else step]
            out = np.full(len(expected), -1)
            touched = []
            arguments = (length,), (chunk,), (start,), (-step if down else step,), (len(expected),)
            for (coord,), (selected,), (out_part,) in grid.project(*arguments):
                part = data[coord * chunk:(coord + 1) * chunk][selected]
                assert part.size > 0
                assert out[out_part].size == part.size
                assert (out[out_part] == -1).all(), "an element of the output was given twice"
                out[out_part] = part
                touched.append(coord)
            assert out.tolist() == expected.tolist()
            # The minimal set of chunks, ascending.
            assert touched == sorted({value // chunk for value in expected.tolist()})


def test_dimensions_combine_as_a_product():
    """D3-GRID-10"""
    data = np.arange(5 * 6 * 7).reshape(5, 6, 7)
    expected = data[4:0:-2, 1:6:3, ::2]
    out = np.full(expected.shape, -1)
    coords = []
    for chunk, selected, out_part in grid.project(data.shape, (2, 4, 3), (4, 1, 0), (-2, 3, 2), expected.shape):
        origin = grid.chunk_origin(chunk, (2, 4, 3))
        here = data[tuple(slice(o, o + c) for o, c in zip(origin, (2, 4, 3), strict=True))]
        out[out_part] = here[selected]
        coords.append(chunk)
    assert out.tolist() == expected.tolist()
    assert coords == sorted(set(coords))
