# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Stable radix sort of 64-bit keys; most keys have only one digit.

The caller frees the returned memory.
"""
from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memset

from zcore.kernel.memory cimport zc_new, zc_new_zeros

cdef enum:
    # Bits of a digit for few, some, and many keys: more counters pay off for more keys.
    FEW_BITS = 8
    SOME_BITS = 11
    MANY_BITS = 16
    SOME_KEYS = 1 << 12
    MANY_KEYS = 1 << 18


cdef int64_t *bounds_of(const int64_t *keys, const int64_t *order, const int64_t *finer, int64_t n, int64_t unit,
                        int64_t *n_runs) noexcept nogil:
    """Return where runs of keys with the same quotient by `unit` begin, and where the last one ends; NULL: no memory.

    Uses the n sorted keys, or n runs of them with the bounds `finer`.
    """
    cdef int64_t *bounds = NULL
    cdef int64_t i, key, place
    cdef int64_t last = 0
    cdef int _step
    for _step in range(2):
        n_runs[0] = 0
        for i in range(n):
            place = i if finer == NULL else finer[i]
            key = _at(keys, order, place) // unit
            if i == 0 or key != last:
                if bounds != NULL:
                    bounds[n_runs[0]] = place
                n_runs[0] += 1
            last = key
        if bounds == NULL:
            bounds = <int64_t *>zc_new(n_runs[0] + 1, sizeof(int64_t))
            if bounds == NULL:
                return NULL
    bounds[n_runs[0]] = n if finer == NULL else finer[n]
    return bounds


cdef inline int64_t _at(const int64_t *keys, const int64_t *order, int64_t i) noexcept nogil:
    return keys[i] if order == NULL else keys[order[i]]


cdef int64_t *order_within(const int64_t *keys, int64_t n, int64_t n_keys, uint32_t *low, int64_t **bounds,
                           int64_t *n_runs) noexcept nogil:
    """Return the order that sorts the upper halves of keys, at most `MAX_UPPER` of them; NULL without memory.

    `low`: set to the lower halves in this order. `bounds`: set to those of the runs; the caller frees them.
    """
    cdef int64_t *starts = <int64_t *>zc_new_zeros(n_keys + 1, sizeof(int64_t))
    cdef int64_t *order = <int64_t *>zc_new(n, sizeof(int64_t))
    cdef int64_t i, at, end
    cdef int64_t total = 0
    bounds[0] = NULL
    if starts == NULL or order == NULL:
        free(starts)
        free(order)
        return NULL
    for i in range(n):
        starts[keys[i] >> 32] += 1
    for i in range(n_keys):
        end = total + starts[i]
        starts[i] = total
        total = end
    for i in range(n):
        at = starts[keys[i] >> 32]
        starts[keys[i] >> 32] = at + 1
        order[at] = i
        low[at] = <uint32_t>keys[i]
    # Where a run began, the one before has ended. Runs without keys are left out.
    total = n_runs[0] = 0
    for i in range(n_keys):
        end = starts[i]
        if end > total:
            starts[n_runs[0]] = total
            n_runs[0] += 1
            total = end
    starts[n_runs[0]] = n
    bounds[0] = starts
    return order


cdef int64_t *order_of(const int64_t *keys, int64_t n, int64_t n_keys) noexcept nogil:
    """Return the order that sorts keys below `n_keys`, stable for equal keys; NULL without memory."""
    cdef int bits = FEW_BITS if n < SOME_KEYS else SOME_BITS if n < MANY_KEYS else MANY_BITS
    cdef int shift = 0
    cdef int64_t size = <int64_t>1 << bits
    cdef int64_t *counts = <int64_t *>zc_new(size, sizeof(int64_t))
    cdef int64_t *before = <int64_t *>zc_new(n, sizeof(int64_t))
    cdef int64_t *after = <int64_t *>zc_new(n, sizeof(int64_t))
    cdef int64_t *other
    cdef int64_t i, digit, total
    if counts == NULL or before == NULL or after == NULL:
        free(counts)
        free(before)
        free(after)
        return NULL
    while shift == 0 or (shift < 63 and (n_keys - 1) >> shift):
        memset(counts, 0, size * sizeof(int64_t))
        for i in range(n):
            counts[(keys[i] >> shift) & (size - 1)] += 1
        total = 0
        for i in range(size):
            digit = counts[i]
            counts[i] = total
            total += digit
        for i in range(n):
            total = i if shift == 0 else before[i]
            digit = (keys[total] >> shift) & (size - 1)
            after[counts[digit]] = total
            counts[digit] += 1
        other = before
        before = after
        after = other
        shift += bits
    free(counts)
    free(after)
    return before
