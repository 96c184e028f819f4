"""Many boxes of one shape, which are selected together."""
from libc.stdint cimport int64_t

from zcore.kernel.strided.copy cimport MAX_NDIM


cdef struct Side:              # one dimension of the array in one box
    int64_t low                # lowest element
    int64_t step               # as it was given: below 0 where the box runs downwards
    int64_t count
    int64_t axis               # the dimension of the box that it becomes; -1 where an integer selects


cdef class Boxes:
    cdef readonly int64_t n
    cdef readonly tuple shape
    cdef int ndim              # of the array
    cdef Side *sides           # of each box those of all dimensions
    cdef tuple highest         # the last element of all boxes in each dimension

    # The lowest selected element from `low` on, or -1.
    cdef int64_t next_from(self, int64_t box, int d, int64_t low) noexcept nogil
    # How many elements a box selects between two of which it has some there, the lowest one, and where that is in the
    # box.
    cdef int64_t part_of(self, int64_t box, int d, int64_t low, int64_t high, int64_t *first,
                         int64_t *out) noexcept nogil
