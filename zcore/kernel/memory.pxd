"""Memory: new, for `n` items of `size` bytes, NULL if that is more than any object can have; and that of an object."""
from libc.stdint cimport int64_t, uint8_t


cdef extern from "memory.h" nogil:
    const int64_t MAX_NBYTES "PTRDIFF_MAX"     # of one object, and the largest length of Python's
    void *zc_new(int64_t n, int64_t size)
    void *zc_new_zeros(int64_t n, int64_t size)
    void *zc_resized(void *data, int64_t n, int64_t size)


cdef class Bytes:
    cdef Py_buffer view
    cdef uint8_t *data         # never NULL
    cdef int64_t n
