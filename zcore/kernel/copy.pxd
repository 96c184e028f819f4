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
    int64_t swap               # 0, or the unit in bytes (2, 4, 8, 16) whose byte order is reversed on the way
    int64_t shape[64]
    int64_t src_strides[64]
    int64_t dst_strides[64]


cdef void copy_simplify(Copy *spec) noexcept nogil
cdef void copy_run(const Copy *spec, const char *src, char *dst) noexcept nogil
cdef void fill_run(const Copy *spec, const char *value, char *dst) noexcept nogil
cdef void fill_bytes(char *dst, int64_t n_items, const char *value, int64_t itemsize) noexcept nogil
cdef bint is_filled(const char *data, int64_t n_items, const char *value, int64_t itemsize) noexcept nogil
