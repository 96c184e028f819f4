"""Many boxes of one shape that are selected together."""
from libc.stdint cimport int64_t

from zcore.kernel.strided.copy cimport MAX_NDIM


cdef struct Side:              # one dimension of the array in one box
    int64_t low                # lowest element
    int64_t step               # as given: negative if the box runs downwards
    int64_t count
    int64_t axis               # the box's dimension for it; -1 if an integer indexes it


cdef class Boxes:
    cdef readonly int64_t n
    cdef readonly tuple shape
    cdef int ndim              # of the array
    cdef Side *sides           # for each box, one per dimension
    cdef tuple highest         # largest selected index of all boxes in each dimension

    # Returns the lowest selected index from `low` on, or -1.
    cdef int64_t next_from(self, int64_t box, int d, int64_t low) noexcept nogil
    # Returns how many elements of a dimension a box selects from `low` to `high`, the lowest of them in `first`, and
    # its index in the box in `out`. There must be at least one.
    cdef int64_t part_of(self, int64_t box, int d, int64_t low, int64_t high, int64_t *first,
                         int64_t *out) noexcept nogil
