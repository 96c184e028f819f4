"""Chunk grid arithmetic: a box of one dimension, and its part in each chunk it touches.

All numbers are elements or chunks, exact in 64 bits. A box of n dimensions is n independent `Axis` values; the chunks
it touches are the product of the `n_chunks` of each, in C order.

Chunks of one dimension with different lengths are runs of equal chunks, found by bisection. A dimension with chunks of
2, 2, 2 and 5 elements has two runs, and an entry that ends them::

    edge  2  5  -              elements of a chunk
    origin  0  6  11           first element of the run
    first   0  3  4            first chunk of the run
"""
from libc.stdint cimport int64_t


cdef struct Run:               # consecutive chunks of one length
    int64_t edge               # elements of a chunk, >= 1
    int64_t origin             # first element
    int64_t first              # first chunk


# Returns the last of n numbers that is at most `limit`, by its position; the first one always is. They ascend, and each
# is so many words behind the one before.
cdef int64_t last_at_most(const int64_t *numbers, int64_t distance, int64_t n, int64_t limit) noexcept nogil
# Returns the run that holds an element, or with is_chunk a chunk. It must lie in the n runs.
cdef int64_t run_of(const Run *runs, int64_t n, int64_t i, bint is_chunk) noexcept nogil


cdef class Edges:
    cdef Run *table            # n_runs, and the entry that ends them
    cdef readonly int64_t n_runs
    cdef readonly int64_t longest


cdef struct Axis:
    int64_t length             # elements of the array along this dimension
    int64_t chunk              # elements of a chunk, >= 1; of the longest, if chunks differ
    int64_t start              # lowest selected element
    int64_t step               # >= 1
    int64_t count              # selected elements
    int64_t out_start          # index in the output of the element `start`
    int64_t out_step           # +1, or -1 if the selection runs downwards
    int64_t first_chunk        # chunk of `start`
    int64_t n_chunks           # chunks that hold at least one selected element
    const Run *runs            # NULL: all chunks have one length. Else the runs from that of `start` ...
    int64_t n_runs             # ... to that of the last selected element
    int64_t *before            # number of touched chunks before each run, and in all; axis_free frees it
    int cut                    # for a list of indices: the number of its cut, see `Points`


cdef struct Span:
    int64_t chunk              # chunk coordinate
    int64_t origin             # first element of the chunk
    int64_t length             # elements of the chunk
    int64_t start              # first selected element, counted from the chunk's origin
    int64_t count              # selected elements in this chunk, `step` of the axis apart
    int64_t out                # index in the output of the first of them; the next is at out + out_step
    int64_t valid              # elements of this chunk inside the array (`length`, less at the border)
    int64_t first              # for a list: its first point in this chunk (`select.points`)


cdef int64_t ceil_div(int64_t a, int64_t b) noexcept nogil
cdef int axis_init(Axis *axis, int64_t length, int64_t chunk, int64_t start, int64_t step, int64_t count) noexcept nogil
# The same for chunks in n runs, which cover `length` and outlive the axis; -1 without memory. `chunk` is the longest.
cdef int axis_init_runs(Axis *axis, const Run *runs, int64_t n, int64_t length, int64_t chunk, int64_t start,
                        int64_t step, int64_t count) noexcept nogil
cdef void axis_free(Axis *axis) noexcept nogil
cdef void axis_span(const Axis *axis, int64_t k, Span *span) noexcept nogil
