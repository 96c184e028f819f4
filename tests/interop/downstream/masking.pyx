# cython: language_level=3
"""A codec of somebody else: importing this module adds it to zcore's table of codecs, under the name "mask"."""
from libc.stdint cimport int64_t, uint8_t

from zcore.kernel.codec.table cimport CodecFunctions, Step, Workspace, add_codec
from zcore.kernel.status cimport Status

cdef struct Mask:
    uint8_t bits


cdef int configure(Step *step, tuple parameters) except -1:
    cdef Mask *mask = <Mask *>step.parameters
    mask.bits, = parameters
    return 0


cdef int64_t encode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity,
                    Workspace *work, Status *status) noexcept nogil:
    cdef int64_t i
    for i in range(n_bytes):
        dst[i] = src[i] ^ (<const Mask *>step.parameters).bits
    return n_bytes


cdef int64_t decode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit, bint is_exact,
                    Workspace *work, Status *status) noexcept nogil:
    return encode(step, src, n_bytes if n_bytes <= limit else limit, dst, limit, work, status)


cdef CodecFunctions row
row.parameters_nbytes = sizeof(Mask)
row.configure = configure
row.encode = encode
row.decode = decode
add_codec("mask", &row)
