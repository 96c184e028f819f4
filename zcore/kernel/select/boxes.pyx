# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Many boxes of one shape that are selected together; the result stacks them along a first dimension.

Compiled because each chunk needs its part of each box that touches it. `Points` finds these chunks: it handles a piece,
the part of a box in one chunk, as one point.
"""
cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free

from zcore.kernel.strided.copy cimport MAX_NDIM


@cython.final
cdef class Boxes:
    """The selection by a list of boxes; the result has one dimension for the boxes, followed by those of a box.

    Parameters
    ----------
    boxes : list of Box
        At least one, of one shape, none of them empty. The array must have at least one dimension.

    Attributes
    ----------
    n : int
        Number of boxes.
    shape : tuple of int
        Shape of a box in the result: without the dimensions that an integer indexes.
    starts, steps, counts, groups
        The interface of a selection for a plan, see `Plan`.

    >>> from zcore.kernel.select.box import basic
    >>> import numpy as np
    >>> Boxes([basic(np.s_[1:3, 5], (4, 9)), basic(np.s_[0, 8:4:-2], (4, 9))])
    Boxes(2, (2,))
    """

    def __cinit__(self):
        self.sides = NULL

    def __init__(self, list boxes not None):
        cdef Py_ssize_t b
        cdef int axis, d
        cdef Side *side
        self.n = len(boxes)
        self.shape = boxes[0].shape
        self.ndim = len(boxes[0].counts)
        assert 0 < self.ndim <= MAX_NDIM and self.sides == NULL
        self.sides = <Side *>calloc(self.n * self.ndim, sizeof(Side))
        if self.sides == NULL:
            raise MemoryError
        highest = [0] * self.ndim
        for b in range(len(boxes)):
            box = boxes[b]
            assert box.shape == self.shape and len(box.counts) == self.ndim
            expand = box.expand
            axis = 0
            for d in range(self.ndim):
                side = &self.sides[b * self.ndim + d]
                first, step, count = box.starts[d], box.steps[d], box.counts[d]
                last = first + (count - 1) * step
                assert count > 0
                side.low = min(first, last)
                side.step = step
                side.count = count
                side.axis = -1
                if expand is None or expand[d] is not None:
                    side.axis = axis
                    axis += 1
                highest[d] = max(highest[d], first, last)
        self.highest = tuple(highest)

    def __dealloc__(self):
        free(self.sides)

    def __repr__(self):
        return f"Boxes({self.n}, {self.shape})"

    @property
    def starts(self):
        return (0,) * self.ndim

    @property
    def steps(self):
        return (1,) * self.ndim

    @property
    def counts(self):
        return (self.n,) + (1,) * (self.ndim - 1)

    @property
    def groups(self):
        return ((tuple(range(self.ndim)), self),)

    def fits(self, shape):
        """Whether all elements lie in an array of `shape`."""
        return all([last < length for last, length in zip(self.highest, shape, strict=True)])

    cdef int64_t next_from(self, int64_t box, int d, int64_t low) noexcept nogil:
        cdef const Side *side = &self.sides[box * self.ndim + d]
        cdef int64_t number = _number_from(side, low)
        return side.low + number * _distance(side) if number < side.count else -1

    cdef int64_t part_of(self, int64_t box, int d, int64_t low, int64_t high, int64_t *first,
                         int64_t *out) noexcept nogil:
        cdef const Side *side = &self.sides[box * self.ndim + d]
        cdef int64_t number = _number_from(side, low)
        cdef int64_t last = min((high - 1 - side.low) // _distance(side), side.count - 1)
        first[0] = side.low + number * _distance(side)
        out[0] = number if side.step > 0 else side.count - 1 - number
        return last - number + 1


cdef inline int64_t _distance(const Side *side) noexcept nogil:
    return side.step if side.step > 0 else -side.step


cdef inline int64_t _number_from(const Side *side, int64_t low) noexcept nogil:
    """Return how many elements lie below `low`."""
    return 0 if low <= side.low else (low - side.low - 1) // _distance(side) + 1
