# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""The rows of the table of native codecs, and the memory that codecs share.

Compiled because rows are C functions, called without the GIL. Rows are added when modules are imported and never
change, so a caller may keep the pointer to a row.
"""
from cpython.bytearray cimport PyByteArray_FromStringAndSize
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy, memset

from zcore.kernel.io.files cimport buffer_free
from zcore.kernel.memory cimport Bytes
from zcore.kernel.status cimport RAISED, STREAM_LONG, Status, fail

cdef enum:
    # Bound of the growth of a stream, beside a factor of 2: room for headers of any length and blocks of other writers.
    STREAM_OVERHEAD = 1 << 16

cdef CodecFunctions *_rows[MAX_CODECS]
cdef int _n_rows = 0
cdef dict _number_of = {}


cdef CodecFunctions codec_row(size_t parameters_nbytes, configure_function configure, bound_function bound,
                              encode_function encode, decode_function decode) noexcept:
    cdef CodecFunctions row
    memset(&row, 0, sizeof(row))
    row.parameters_nbytes = parameters_nbytes
    row.configure, row.bound, row.encode, row.decode = configure, bound, encode, decode
    return row


cdef int add_codec(str name, CodecFunctions *row) except -1:
    global _n_rows
    if name in _number_of:
        raise ValueError(f"there is a codec {name!r} already")
    if _n_rows == MAX_CODECS:
        raise ValueError(f"codec {name!r} is one too many: the table has {MAX_CODECS} rows")
    row.number = _number_of[name] = _n_rows
    _rows[_n_rows] = row
    _n_rows += 1
    return 0


cdef const CodecFunctions *find_codec(str name) except NULL:
    cdef int number = _number_of.get(name, -1)
    if number < 0:
        raise ValueError(f"step {name!r} has no C form")
    return _rows[number]


cdef int64_t stream_bound(const Step *step, int64_t n_bytes, bint *is_exact) noexcept nogil:
    is_exact[0] = False
    return 2 * n_bytes + STREAM_OVERHEAD


cdef void workspace_free(Workspace *work) noexcept nogil:
    cdef int i
    buffer_free(&work.between)
    for i in range(_n_rows):
        if _rows[i].release != NULL:
            _rows[i].release(&work.contexts[i])
    if work.held != NULL or work.exception != NULL:
        let_go(work)


cdef void let_go(Workspace *work) noexcept with gil:
    Py_XDECREF(<PyObject *>work.held)
    Py_XDECREF(<PyObject *>work.exception)
    work.held = work.exception = NULL


cdef int64_t copy_bytes(object made, uint8_t *dst, int64_t limit) except -1:
    cdef Bytes view = Bytes(made)
    if view.n <= limit:
        memcpy(dst, view.data, view.n)
    return view.n


cdef int64_t hold_bytes(Workspace *work, object made, const uint8_t **data) except -1:
    cdef Bytes view = Bytes(made)
    data[0] = view.data
    let_go(work)
    Py_INCREF(view)
    work.held = <void *>view
    return view.n


cdef int raised_in(Workspace *work, object exception, Status *status) noexcept:
    fail(status, RAISED, 0, 0, 0)
    let_go(work)
    Py_INCREF(exception)
    work.exception = <void *>exception
    return RAISED


cdef object workspace_exception(Workspace *work):
    if work.exception == NULL:
        return None
    exception = <object>work.exception
    Py_XDECREF(<PyObject *>work.exception)
    work.exception = NULL
    return exception


# codecs in Python

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


cdef int64_t _run_to(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit, bint is_exact,
                     bint encode, const uint8_t **held, Workspace *work, Status *status) noexcept with gil:
    """Copy the output of the codecs to `dst`, or hold it, with its bytes at `held[0]`; return its size, or -1."""
    cdef int64_t n
    try:
        try:
            made = _run(step, src, n_bytes, limit, is_exact, encode, work)
            if held != NULL:
                return hold_bytes(work, made, held)
            n = copy_bytes(made, dst, limit)
            if n > limit:
                fail(status, STREAM_LONG, 0, limit, n)
                return -1
            return n
        except BaseException as exception:
            raised_in(work, exception, status)
            return -1
    except:  # noqa: E722 (the only clause that cannot raise itself)
        return -1


cdef int64_t _make(const Step *step, const uint8_t *src, int64_t n_bytes, const uint8_t **made, Workspace *work,
                   Status *status) noexcept nogil:
    return _run_to(step, src, n_bytes, NULL, MAX_ENCODED, False, True, made, work, status)


cdef int64_t _encode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity,
                     Workspace *work, Status *status) noexcept nogil:
    return _run_to(step, src, n_bytes, dst, capacity, False, True, NULL, work, status)


cdef int64_t _decode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit, bint is_exact,
                     Workspace *work, Status *status) noexcept nogil:
    return _run_to(step, src, n_bytes, dst, limit, is_exact, False, NULL, work, status)


cdef CodecFunctions _row = codec_row(sizeof(Segment), _configure, _bound, _encode, _decode)
_row.make = _make
add_codec("python", &_row)
