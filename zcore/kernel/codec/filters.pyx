# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""The filter `scale_offset` of zarr-extensions for floats, in the machine's byte order.

Compiled because it visits every item. NumPy does all other filters: see `zcore.codecs.array_array`.
"""
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from zcore.kernel.codec.table cimport CodecFunctions, Step, Workspace, add_codec
from zcore.kernel.status cimport Status

ctypedef fused real_t:
    float
    double

cdef struct Linear:
    double offset
    double scale


cdef void _scale(const Linear *spec, const uint8_t *src, uint8_t *dst, int64_t n_bytes, bint encode,
                 real_t x) noexcept nogil:
    """Encode or decode items of the type of `x`; neither `src` nor `dst` needs to be aligned."""
    cdef real_t offset = <real_t>spec.offset
    cdef real_t scale = <real_t>spec.scale
    cdef int64_t i
    # Each result is assigned: s390x may compute an expression of floats in double precision.
    for i in range(n_bytes // <int64_t>sizeof(real_t)):
        memcpy(&x, src + i * <int64_t>sizeof(real_t), sizeof(real_t))
        if encode:
            x = x - offset
            x = x * scale
        else:
            x = x / scale
            x = x + offset
        memcpy(dst + i * <int64_t>sizeof(real_t), &x, sizeof(real_t))


cdef int64_t _run(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, bint encode) noexcept nogil:
    if step.unit == sizeof(float):
        _scale(<const Linear *>step.parameters, src, dst, n_bytes, encode, <float>0)
    else:
        _scale(<const Linear *>step.parameters, src, dst, n_bytes, encode, <double>0)
    return n_bytes


cdef int64_t _encode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity,
                     Workspace *work, Status *status) noexcept nogil:
    return _run(step, src, n_bytes, dst, True)


cdef int64_t _decode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit, bint is_exact,
                     Workspace *work, Status *status) noexcept nogil:
    return _run(step, src, n_bytes, dst, False)


cdef int _configure(Step *step, tuple parameters) except -1:
    cdef Linear *spec = <Linear *>step.parameters
    dtype, spec.offset, spec.scale = parameters
    step.unit = {"f4": 4, "f8": 8}.get(dtype, 0)
    if step.unit == 0:
        raise ValueError(f"'scale_offset' of {dtype} has no C form")
    return 0


cdef CodecFunctions _row
_row.parameters_nbytes = sizeof(Linear)
_row.configure = _configure
_row.encode = _encode
_row.decode = _decode
add_codec("scale_offset", &_row)
