# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""The filter `scale_offset` of zarr-extensions for floats, and `delta` of numcodecs for numbers that keep their type.

They process the items of a chunk in their stored order, in the machine's byte order. Compiled because they visit every
item. NumPy does all other filters: see `zcore.codecs.array_array`.
"""
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from zcore.kernel.codec.table cimport CodecFunctions, Step, Workspace, add_codec, codec_row
from zcore.kernel.status cimport Status

ctypedef fused real_t:
    float
    double

ctypedef fused number_t:
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    float
    double

# Of the numbers whose differences are stored; those of integers wrap, so they need no sign.
DELTA_TYPES = ("u1", "u2", "u4", "u8", "f4", "f8")

cdef struct Filter:
    double offset              # of `scale_offset`
    double scale
    bint is_delta
    bint is_float              # of `delta`


cdef inline void _scale(const Filter *spec, const uint8_t *src, uint8_t *dst, int64_t n_bytes, bint encode,
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


cdef int _configure(Step *step, tuple parameters) except -1:
    cdef Filter *spec = <Filter *>step.parameters
    dtype, spec.offset, spec.scale = parameters
    step.unit = {"f4": 4, "f8": 8}.get(dtype, 0)
    if step.unit == 0:
        raise ValueError(f"'scale_offset' of {dtype} has no C form")
    return 0


cdef inline void _delta(const uint8_t *src, uint8_t *dst, int64_t n_bytes, bint encode, number_t x) noexcept nogil:
    """Encode or decode numbers of the type of `x`; the first one stays what it is, minus zero too."""
    cdef int64_t size = sizeof(number_t)
    cdef number_t last
    cdef int64_t i
    memcpy(&last, src, size)
    memcpy(dst, src, size)
    for i in range(1, n_bytes // size):
        memcpy(&x, src + i * size, size)
        if encode:
            last = <number_t>(x - last)
            memcpy(dst + i * size, &last, size)
            last = x
        else:
            last = <number_t>(last + x)
            memcpy(dst + i * size, &last, size)


# Inline, so that each loop is compiled for one direction.

cdef inline int64_t _run(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst,
                         bint encode) noexcept nogil:
    cdef const Filter *spec = <const Filter *>step.parameters
    if n_bytes == 0:
        return 0
    if not spec.is_delta and step.unit == 4:
        _scale(spec, src, dst, n_bytes, encode, <float>0)
    elif not spec.is_delta:
        _scale(spec, src, dst, n_bytes, encode, <double>0)
    elif spec.is_float and step.unit == 4:
        _delta(src, dst, n_bytes, encode, <float>0)
    elif spec.is_float:
        _delta(src, dst, n_bytes, encode, <double>0)
    elif step.unit == 1:
        _delta(src, dst, n_bytes, encode, <uint8_t>0)
    elif step.unit == 2:
        _delta(src, dst, n_bytes, encode, <uint16_t>0)
    elif step.unit == 4:
        _delta(src, dst, n_bytes, encode, <uint32_t>0)
    else:
        _delta(src, dst, n_bytes, encode, <uint64_t>0)
    return n_bytes


cdef int64_t _encode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity,
                     Workspace *work, Status *status) noexcept nogil:
    return _run(step, src, n_bytes, dst, True)


cdef int64_t _decode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit, bint is_exact,
                     Workspace *work, Status *status) noexcept nogil:
    return _run(step, src, n_bytes, dst, False)


cdef int _configure_delta(Step *step, tuple parameters) except -1:
    dtype, = parameters
    if dtype not in DELTA_TYPES:
        raise ValueError(f"'delta' of {dtype} has no C form")
    (<Filter *>step.parameters).is_delta = True
    (<Filter *>step.parameters).is_float = dtype[0] == "f"
    step.unit = int(dtype[1:])
    return 0


cdef CodecFunctions _linear = codec_row(sizeof(Filter), _configure, NULL, _encode, _decode)
add_codec("scale_offset", &_linear)
cdef CodecFunctions _differences = codec_row(sizeof(Filter), _configure_delta, NULL, _encode, _decode)
add_codec("delta", &_differences)
