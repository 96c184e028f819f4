# cython: language_level=3
"""The heat solver as a Cython module: the loop and its checkpoints hold no GIL, so other threads of Python go on."""
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from zcore.capi cimport (
    zcore_array, zcore_close, zcore_error, zcore_expect, zcore_from_object, zcore_import, zcore_read, zcore_write,
)

zcore_import()


def solve(array, int steps, int every):
    """Go `steps` on from what a square array of float64 holds, and write it there after each `every` of them."""
    cdef int64_t n = array.shape[0]
    cdef int64_t[2] origin = [0, 0]
    cdef int64_t[2] shape = [n, n]
    cdef zcore_error error
    cdef int code = 0
    cdef int k
    cdef double *field = <double *>malloc(2 * n * n * sizeof(double))
    cdef zcore_array *handle
    if field == NULL:
        raise MemoryError
    handle = zcore_from_object(<void *>array, &error)
    if handle == NULL:
        free(field)
        raise RuntimeError(error.message.decode())
    with nogil:
        code = zcore_expect(handle, "f8", 2, &error)
        if code == 0:
            code = zcore_read(handle, origin, shape, NULL, field, NULL, 0, &error)
        for k in range(1, steps + 1):
            if code != 0:
                break
            _step(field, field + n * n, n)
            memcpy(field, field + n * n, n * n * sizeof(double))
            if k % every == 0 or k == steps:
                code = zcore_write(handle, origin, shape, NULL, field, NULL, 0, &error)
        zcore_close(handle)
        free(field)
    if code != 0:
        raise RuntimeError(error.message.decode())


cdef void _step(const double *old, double *new, int64_t n) noexcept nogil:
    cdef int64_t i, j, up, down, left, right
    for i in range(n):
        for j in range(n):
            up, down, left, right = (i + n - 1) % n, (i + 1) % n, (j + n - 1) % n, (j + 1) % n
            new[i * n + j] = old[i * n + j] + 0.1 * (
                old[up * n + j] + old[down * n + j] + old[i * n + left] + old[i * n + right] - 4 * old[i * n + j])
