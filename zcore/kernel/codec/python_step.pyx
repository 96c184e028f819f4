# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Codecs in Python as a codec of the table, named "python": takes the GIL and hands the bytes over.

Compiled because a program calls it between two steps in C. Its parameters are ``(segment, n_in, n_out, is_fixed)``; see
`zcore.codecs.lowering.Segment`. `n_in` is the maximum input size of a chunk that is not cut, `n_out` the maximum output
size (None: unknown), and `is_fixed` tells whether the output always has that size.
"""
from cpython.bytearray cimport PyByteArray_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t

from zcore.kernel.codec.table cimport (
    MAX_ENCODED, CodecFunctions, Step, Workspace, add_codec, copy_bytes, hold_bytes, let_go, raised_in,
)
from zcore.kernel.status cimport STREAM_LONG, Status, fail

cdef struct Segment:
    void *codecs               # an object that the program keeps alive
    int64_t n_in
    int64_t n_out
    bint is_fixed


cdef int _configure(Step *step, tuple parameters) except -1:
    cdef Segment *segment = <Segment *>step.parameters
    codecs, segment.n_in, n_out, segment.is_fixed = parameters
    segment.n_out = MAX_ENCODED if n_out is None or n_out >= MAX_ENCODED else n_out
    segment.codecs = <void *>codecs
    step.encodes_in_python = step.decodes_in_python = True
    return 0


cdef int64_t _bound(const Step *step, int64_t n_bytes, bint *is_exact) noexcept nogil:
    cdef const Segment *segment = <const Segment *>step.parameters
    if not segment.is_fixed or n_bytes != segment.n_in:
        is_exact[0] = False
    # A smaller chunk gives no more bytes than the largest.
    return segment.n_out if n_bytes <= segment.n_in else MAX_ENCODED


cdef object _run(const Step *step, const uint8_t *src, int64_t n_bytes, int64_t limit, bint is_exact, bint encode,
                 Workspace *work):
    """Return the output of the codecs for the bytes; bytes-like."""
    cdef int d
    codecs = <object>(<const Segment *>step.parameters).codecs
    let_go(work)
    # A copy, since Python code may keep it.
    data = PyByteArray_FromStringAndSize(<const char *>src, n_bytes)
    shape = None if work.lengths == NULL else tuple([work.lengths[d] for d in range(work.ndim)])
    return codecs.encode(data, shape) if encode else codecs.decode(data, limit, not is_exact, shape)


cdef int64_t _make(const Step *step, const uint8_t *src, int64_t n_bytes, const uint8_t **made, Workspace *work,
                   Status *status) noexcept with gil:
    try:
        try:
            return hold_bytes(work, _run(step, src, n_bytes, MAX_ENCODED, False, True, work), made)
        except BaseException as exception:
            raised_in(work, exception, status)
            return -1
    except:  # noqa: E722 (the only clause that cannot raise itself)
        return -1


cdef int64_t _run_to(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit, bint is_exact,
                     bint encode, Workspace *work, Status *status) noexcept with gil:
    """Copy the output of the codecs to `dst`; return its size, or -1."""
    cdef int64_t n
    try:
        try:
            n = copy_bytes(_run(step, src, n_bytes, limit, is_exact, encode, work), dst, limit)
            if n > limit:
                fail(status, STREAM_LONG, 0, limit, n)
                return -1
            return n
        except BaseException as exception:
            raised_in(work, exception, status)
            return -1
    except:  # noqa: E722 (the only clause that cannot raise itself)
        return -1


cdef int64_t _encode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity,
                     Workspace *work, Status *status) noexcept nogil:
    return _run_to(step, src, n_bytes, dst, capacity, False, True, work, status)


cdef int64_t _decode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit, bint is_exact,
                     Workspace *work, Status *status) noexcept nogil:
    return _run_to(step, src, n_bytes, dst, limit, is_exact, False, work, status)


cdef CodecFunctions _row
_row.parameters_nbytes = sizeof(Segment)
_row.configure = _configure
_row.bound = _bound
_row.encode = _encode
_row.decode = _decode
_row.make = _make
add_codec("python", &_row)
