"""Stable radix sort of 64-bit keys, and the bounds of runs of equal keys."""
from libc.stdint cimport int64_t, uint32_t

cdef enum:
    MAX_UPPER = 1 << 16

cdef int64_t *order_within(const int64_t *keys, int64_t n, int64_t n_keys, uint32_t *low, int64_t **bounds,
                           int64_t *n_runs) noexcept nogil
cdef int64_t *order_of(const int64_t *keys, int64_t n, int64_t n_keys) noexcept nogil
cdef int64_t *bounds_of(const int64_t *keys, const int64_t *order, const int64_t *finer, int64_t n, int64_t unit,
                        int64_t *n_runs) noexcept nogil
