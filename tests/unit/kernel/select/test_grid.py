"""The rules of regular grids: worked examples, laws, and every small selection against NumPy."""
import itertools

import numpy as np
import pytest

from tests.each import each
from tests.tasks import chunks_of, parts_of
from zcore.errors import SelectionError

LARGE = 2**63 - 1


@each(("length", "chunk", "n_chunks"), [
    (3000, 400, 8), (2**53 + 1, 2**53, 2), (2**53 + 1, 1, 2**53 + 1), (2**62, 2**61 + 1, 2), (LARGE, LARGE, 1),
    (LARGE, LARGE - 1, 2), (LARGE, 1, LARGE),
])
def test_the_last_chunk_holds_the_last_element(length, chunk, n_chunks):
    """D3-GRID-05, D3-GRID-06: also where a double cannot tell 2**53 + 1 from 2**53."""
    assert parts_of((length,), (chunk,), (length - 1,), (1,), (1,)) == [
        ((n_chunks - 1,), (slice((length - 1) % chunk, (length - 1) % chunk + 1, 1),), (slice(0, 1, 1),))]


def test_the_element_of_the_worked_example():
    """V3-GRID-03, D3-GRID-04, D3-GRID-07"""
    shape, chunk_shape = (10, 200, 3000), (5, 20, 400)
    (coords, inside, _), = parts_of(shape, chunk_shape, (7, 150, 900), (1, 1, 1), (1, 1, 1))
    assert coords == (1, 7, 2) and inside == (slice(2, 3, 1), slice(10, 11, 1), slice(100, 101, 1))
    assert chunks_of(shape, chunk_shape, (7, 150, 900), (1, 1, 1), (1, 1, 1)).place(0) == ((5, 140, 800), (5, 20, 400))


def test_every_element_lies_in_exactly_one_chunk():
    """V3-GRID-03, D3-GRID-01"""
    seen = set()
    for index in np.ndindex(5, 7):
        (coords, inside, _), = parts_of((5, 7), (2, 3), index, (1, 1), (1, 1))
        offset = tuple(s.start for s in inside)
        assert index == (2 * coords[0] + offset[0], 3 * coords[1] + offset[1])
        assert offset < (2, 3) and offset[1] < 3
        seen.add((coords, offset))
    assert len(seen) == 35


def test_a_selection_has_the_dimensions_of_the_grid():
    """D3-GRID-02"""
    with pytest.raises(ValueError, match="2 dimensions, the array 1"):
        parts_of((3,), (1,), (0, 0), (1, 1), (1, 1))


@each(("start", "step", "count"), [
    (10, 1, 1), (-1, 1, 1), (9, 1, 2), (0, 5, 3), (9, -5, 3), (0, -1, 2), (LARGE, 1, 1), (0, 0, 1), (0, 1, -1),
    (0, LARGE, 2), (0, 1, LARGE), (1, LARGE, LARGE), (9, -2**63, 2), (9, -LARGE, LARGE), (0, 2**32, 2**32),
])
def test_boxes_that_leave_the_array_are_refused(start, step, count):
    """D3-GRID-03"""
    with pytest.raises(SelectionError, match="does not fit dimension 0"):
        parts_of((10,), (4,), (start,), (step,), (count,))


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
    parts = parts_of((length,), (chunk,), (start,), (step,), (count,))
    assert parts == [((c,), (selected,), (out,)) for c, selected, out in expected]


def test_no_dimensions_are_one_chunk():
    """D3-GRID-09"""
    assert parts_of((), (), (), (), ()) == [((), (), ())]


def test_nothing_selected_touches_nothing():
    assert parts_of((4, 4), (2, 2), (0, 9), (1, 1), (2, 0)) == []
    assert parts_of((0,), (2,), (0,), (1,), (0,)) == []


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
            for (coord,), (selected,), (out_part,) in parts_of(*arguments):
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
    for chunk, selected, out_part in parts_of(data.shape, (2, 4, 3), (4, 1, 0), (-2, 3, 2), expected.shape):
        here = data[tuple([slice(c * n, (c + 1) * n) for c, n in zip(chunk, (2, 4, 3), strict=True)])]
        out[out_part] = here[selected]
        coords.append(chunk)
    assert out.tolist() == expected.tolist()
    assert coords == sorted(set(coords))
