# cython: cdivision=True
"""Strided copy and fill between two layouts of the same elements.

A `Copy` is filled in by the caller (shape, byte strides of both sides, item size, swap), then simplified once
(`copy_simplify`) and run with any pair of base pointers. Strides may be zero (source, broadcast) or negative.
"""
from libc.stdint cimport int64_t, uint8_t


cdef enum:
    MAX_NDIM = 64


cdef struct Copy:
    int ndim
    int64_t itemsize
    int64_t swap               # 0, or the unit in bytes (2, 4, 8) whose byte order is reversed
    int64_t shape[64]
    int64_t src_strides[64]
    int64_t dst_strides[64]


cdef struct Runs:              # layout of the items of a chunk, in their order, in the caller's memory
    int64_t itemsize
    int64_t n_items            # of a run, which is contiguous
    int ndim                   # dimensions of the runs
    int64_t shape[64]
    int64_t strides[64]


# Drops dimensions of length 1 and sorts the others: the largest stride of the target first; of equal ones, the largest
# of the source first. With `by_source`, source and target change roles.
cdef void copy_sort(Copy *spec, bint by_source) noexcept nogil
# Merges each dimension into the one outside it if it continues that on both sides.
cdef void copy_merge(Copy *spec) noexcept nogil
# Both, and then the order that `copy_run` needs.
cdef void copy_simplify(Copy *spec) noexcept nogil
# Both by the source, for a copy that goes through the source from beginning to end. Keeps at least one dimension.
cdef void copy_by_source(Copy *spec) noexcept nogil
cdef void copy_run(const Copy *spec, const char *src, char *dst) noexcept nogil
cdef void fill_run(const Copy *spec, const char *value, char *dst) noexcept nogil
cdef void fill_bytes(char *dst, int64_t n_items, const char *value, int64_t itemsize) noexcept nogil
cdef bint is_filled(const char *data, int64_t n_items, const char *value, int64_t itemsize) noexcept nogil

# Describes a whole chunk in C order; shape and byte strides have `ndim` numbers.
cdef void runs_init(Runs *runs, int ndim, const int64_t *shape, const int64_t *strides, int64_t itemsize) noexcept nogil
# Whether all items have the value `value`.
cdef bint runs_are_filled(const uint8_t *src, const Runs *runs, int64_t n_items, const char *value) noexcept nogil


cdef inline int64_t run_offset(const Runs *runs, int64_t run) noexcept nogil:
    """Return the byte offset of a run, numbered in the order of the chunk."""
    cdef int64_t offset = 0
    cdef int64_t rest
    cdef int d = runs.ndim - 1
    while d > 0:
        rest = run // runs.shape[d]
        offset += (run - rest * runs.shape[d]) * runs.strides[d]
        run = rest
        d -= 1
    return offset if d < 0 else offset + run * runs.strides[0]
