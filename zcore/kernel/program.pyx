# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Codec chains as programs of C steps.

Compiled because it runs once a chunk, without the GIL. A step is a filter (shuffle, delta, fixedscaleoffset,
cast_value, scale_offset), a compressor or a checksum, in any order. From the size of the chunk alone follows what each
step can give: a size, where the steps before it keep sizes or change them in a fixed way; the most bytes, behind a
compressor. So every buffer has its size before an object is looked at, and a stream that holds more is stopped there,
whatever it says of itself.

Checksums move nothing: they are taken off, or written, where the bytes lie. The other steps read from one buffer and
write to another; only chains with several of them need room in between, two halves that take turns.
"""
cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize, PyByteArray_Resize
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport uint32_t
from libc.string cimport memcpy, memset

from zcore.kernel.blosc_blocks cimport (
    NOT_BLOCKWISE, Runs, block_nbytes, decode_blocks, gather_chunk, is_blockwise, scatter_chunk, select_chunk,
)
from zcore.kernel.casting cimport MAX_PAIRS, WRAP, Cast, cast_run
from zcore.kernel.casting import OUT_OF_RANGE, ROUNDINGS
from zcore.kernel.checksums cimport SUM_NBYTES, checksum, load_u32, store_u32
from zcore.kernel.checksums import CHECKSUMS
from zcore.kernel.compress cimport (
    BLOSC_MAX_NBYTES, BLOSC_OVERHEAD, LZ4, blosc_decode, blosc_decode_within, blosc_encode, contexts_free, lz4_decode,
    lz4_encode, zlib_decode, zlib_encode, zstd_decode, zstd_encode,
)
from zcore.kernel.compress import compressor_code
from zcore.kernel.copy cimport Copy
from zcore.kernel.fileio cimport FAILED, Buffer, buffer_free, buffer_reserve
from zcore.kernel.filters cimport (
    F4, delta_decode, delta_encode, item_nbytes, linear_decode, linear_encode, scale_decode, scale_encode,
)
from zcore.kernel.filters import ITEM_TYPES, filter_items
from zcore.kernel.shuffle cimport shuffle, unshuffle
from zcore.kernel.status cimport (
    BLOSC_SNAPPY, CHECKSUM, CHECKSUM_SHORT, CHUNK_SIZE, ITEMS, NO_MEMORY, OK, RAISED, STREAM_LONG, Status, fail,
    make_error, status_clear,
)

cdef enum:
    # A stream may be as much longer than its content, and twice that: headers of any length, blocks that others made.
    STREAM_OVERHEAD = 1 << 16
    LZ4_OVERHEAD = 20          # 16 of the block, 4 of the size before it


cdef uint8_t _nothing = 0


cdef void workspace_free(Workspace *work) noexcept nogil:
    buffer_free(&work.between)
    contexts_free(&work.contexts)
    if work.held != NULL or work.exception != NULL:
        _let_go(work)


cdef void _let_go(Workspace *work) noexcept with gil:
    Py_XDECREF(<PyObject *>work.held)
    Py_XDECREF(<PyObject *>work.exception)
    work.held = work.exception = NULL


cdef int64_t hold_bytes(Workspace *work, object made, const uint8_t **data) except -1:
    cdef Py_buffer view
    cdef int64_t n
    PyObject_GetBuffer(made, &view, PyBUF_SIMPLE)
    n = view.len
    # An empty object has bytes somewhere, too. The object is kept instead of the view: nobody else changes it.
    data[0] = <const uint8_t *>view.buf if n else &_nothing
    PyBuffer_Release(&view)
    _let_go(work)
    Py_INCREF(made)
    work.held = <void *>made
    return n


cdef int raised_in(Workspace *work, object exception, Status *status) noexcept:
    fail(status, RAISED, 0, 0, 0)
    _let_go(work)
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


cdef inline bint _moves(const Step *step) noexcept nogil:
    return step.op != OP_CHECKSUM


cdef int64_t _bound(const Step *step, int64_t n_bytes) noexcept nogil:
    """The size of what a step makes of `n_bytes` bytes, or the most that it can be."""
    if n_bytes >= MAX_ENCODED // 16:
        return MAX_ENCODED
    if step.op == OP_CHECKSUM:
        return n_bytes + SUM_NBYTES
    if step.op == OP_BLOSC:
        return n_bytes + BLOSC_OVERHEAD
    if step.op == OP_LZ4:
        return n_bytes + n_bytes // 255 + LZ4_OVERHEAD
    if step.op == OP_SHUFFLE:
        return n_bytes
    if step.op == OP_PYTHON:
        # Of a smaller chunk it makes no more than of the largest.
        return step.n_out if n_bytes <= step.n_in else MAX_ENCODED
    if OP_DELTA <= step.op <= OP_LINEAR:
        n_bytes = n_bytes // item_nbytes(step.filter.item)
        return n_bytes * item_nbytes(step.filter.as_item)
    return 2 * n_bytes + STREAM_OVERHEAD


_LEVELLED = {"zlib": OP_ZLIB, "gzip": OP_GZIP, "lz4": OP_LZ4}


cdef int _set_cast(Cast *cast, str dtype, str astype, str rounding, object out_of_range, pairs) except -1:
    """Fill a `Cast`; `pairs` has the bytes of numbers and of those that they are mapped to."""
    cdef const uint8_t[::1] raw
    cdef int k
    if dtype not in ITEM_TYPES or astype not in ITEM_TYPES:
        raise ValueError(f"a cast from {dtype} to {astype} has no C form")
    cast.item, cast.as_item = ITEM_TYPES.index(dtype), ITEM_TYPES.index(astype)
    cast.rounding, cast.out_of_range = ROUNDINGS.index(rounding), OUT_OF_RANGE.index(out_of_range)
    if cast.out_of_range == WRAP and cast.as_item >= F4:
        raise ValueError(f"floats do not wrap: a cast from {dtype} to {astype}")
    if len(pairs) > MAX_PAIRS:
        raise ValueError(f"{len(pairs)} numbers are mapped, in C at most {MAX_PAIRS}")
    cast.n_pairs = len(pairs)
    for k, (key, value) in enumerate(pairs):
        for raw, item in ((key, cast.item), (value, cast.as_item)):
            if raw.shape[0] != item_nbytes(item):
                raise ValueError(f"a number of {raw.shape[0]} bytes is mapped, expected {item_nbytes(item)}")
        raw = key
        memcpy(&cast.keys[k], &raw[0], raw.shape[0])
        raw = value
        memcpy(&cast.values[k], &raw[0], raw.shape[0])
    return 0


cdef int _check(const Status *status, Workspace *work, object codecs, str direction) except -1:
    if status.code == RAISED:
        raise workspace_exception(work)
    if status.code != OK:
        raise make_error(status, None, None, codecs[status.step] if 0 <= status.step < len(codecs) else None,
                         direction, ())
    return 0


@cython.final
cdef class Program:
    """A lowered codec chain.

    Parameters
    ----------
    steps : sequence of tuple
        In the order of encoding, at most 8:

        - ``("blosc", cname, clevel, shuffle, typesize, blocksize)`` with `shuffle` 0, 1 or 2
        - ``("zstd", level, checksum)``, ``("zlib", level)``, ``("gzip", level)``, ``("lz4", acceleration)``
        - ``("crc32c", at_start)`` and the same of the other `CHECKSUMS`; `at_start` is False when left out
        - ``("shuffle", itemsize)``
        - ``("delta", dtype, astype)``, ``("fixedscaleoffset", dtype, astype, offset, scale)``, types as `ITEM_TYPES`
        - ``("scale_offset", dtype, offset, scale)``, of floats
        - ``("cast_value", dtype, astype, rounding, (out_of_range, pairs), (out_of_range, pairs))``, when encoding and
          when decoding; `pairs` are bytes of numbers, and of those that they are mapped to
        - ``("python", segment, n_in, n_out, is_fixed)``: codecs without a C form, see `zcore.codecs.segments`
    itemsize : int
        Item size that a blosc header may name beside 1; 0 accepts any.
    decoder : callable, optional
        ``decoder(data, n_bytes)`` decodes blosc chunks of a compressor that is not linked.

    Raises
    ------
    ValueError
        The steps cannot be lowered: unknown, or too many.
    """

    def __init__(self, steps, int64_t itemsize=0, decoder=None):
        cdef Step step
        cdef int i
        if len(steps) > MAX_STEPS:
            raise ValueError(f"chain has {len(steps)} steps, a program at most {MAX_STEPS}")
        self.itemsize = itemsize
        self.decoder = decoder
        self.segments = []
        self.n_steps = 0
        self.n_movers = 0
        for spec in steps:
            memset(&step, 0, sizeof(Step))
            name = spec[0]
            if name == "blosc":
                step.op = OP_BLOSC
                step.compressor = compressor_code(spec[1])
                step.level, step.shuffle, step.typesize, step.blocksize = spec[2:]
            elif name in CHECKSUMS:
                step.op = OP_CHECKSUM
                step.sum = CHECKSUMS.index(name)
                step.at_start = len(spec) > 1 and spec[1]
            elif name == "zstd":
                step.op = OP_ZSTD
                step.level, step.checksum = spec[1:]
            elif name in _LEVELLED:
                step.op = _LEVELLED[name]
                step.level, = spec[1:]
            elif name == "shuffle":
                step.op = OP_SHUFFLE
                step.typesize, = spec[1:]
            elif name == "delta":
                step.op = OP_DELTA
                step.filter.item, step.filter.as_item = filter_items(spec[1], spec[2], False)
            elif name == "fixedscaleoffset":
                step.op = OP_SCALE
                step.filter.item, step.filter.as_item = filter_items(spec[1], spec[2], True)
                step.filter.offset, step.filter.scale = spec[3:]
            elif name == "scale_offset":
                step.op = OP_LINEAR
                step.filter.item, step.filter.as_item = filter_items(spec[1], spec[1], False)
                step.filter.offset, step.filter.scale = spec[2:]
                if step.filter.item < F4:
                    raise ValueError(f"{name!r} of {spec[1]} has no C form")
            elif name == "cast_value":
                step.op = OP_CAST
                dtype, astype, rounding, (encode, encode_pairs), (decode, decode_pairs) = spec[1:]
                _set_cast(&step.casts[0], dtype, astype, rounding, encode, encode_pairs)
                _set_cast(&step.casts[1], astype, dtype, rounding, decode, decode_pairs)
                step.filter.item, step.filter.as_item = step.casts[0].item, step.casts[0].as_item
            elif name == "python":
                step.op = OP_PYTHON
                segment, step.n_in, n_out, step.is_fixed = spec[1:]
                step.n_out = MAX_ENCODED if n_out is None or n_out >= MAX_ENCODED else n_out
                self.segments.append(segment)
                step.segment = <void *>segment
            else:
                raise ValueError(f"step {name!r} has no C form")
            self.steps[self.n_steps] = step
            self.n_steps += 1
            self.n_movers += _moves(&step)
        self.ends_in_python = self.n_steps > 0 and self.steps[self.n_steps - 1].op == OP_PYTHON
        self.is_blockwise = self.n_movers == 1 and self.steps[0].op == OP_BLOSC
        for i in range(self.n_steps):
            self.is_blockwise = self.is_blockwise and not self.steps[i].at_start

    # sizes

    cdef int64_t max_encoded(self, int64_t n_bytes) noexcept nogil:
        cdef bint is_exact = True
        return self._bound_before(self.n_steps, n_bytes, &is_exact)

    cdef int64_t _bound_before(self, int i, int64_t n_bytes, bint *is_exact) noexcept nogil:
        """The most bytes that step `i` is given when a chunk is encoded; whether they are always as many."""
        cdef int j
        for j in range(i):
            if OP_ZSTD <= self.steps[j].op <= OP_LZ4 or self.steps[j].op == OP_BLOSC or (
                    self.steps[j].op == OP_PYTHON and not (self.steps[j].is_fixed and n_bytes == self.steps[j].n_in)):
                is_exact[0] = False
            n_bytes = _bound(&self.steps[j], n_bytes)
        return n_bytes

    cdef uint8_t *_room(self, int64_t chunk_nbytes, int n_between, int64_t *half, Workspace *work,
                        Status *status) noexcept nogil:
        """Reserve the room between the steps; `half[0]` is how far its two halves lie apart, if it has two."""
        cdef int64_t n = chunk_nbytes
        cdef int64_t most = chunk_nbytes
        cdef int i
        for i in range(self.n_steps - 1):
            n = _bound(&self.steps[i], n)
            most = max(most, n)
        half[0] = most if n_between > 1 else 0
        if most >= MAX_ENCODED:
            fail(status, NO_MEMORY, 0, most, 0)
            return NULL
        return work.between.data if buffer_reserve(&work.between, most + half[0], status) == OK else NULL

    # decoding

    cdef int decode(self, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t dst_nbytes, int n_threads,
                    Workspace *work, Status *status) noexcept nogil:
        if self.decode_within(src, n_bytes, dst, dst_nbytes, True, n_threads, work, status) < 0:
            return status.code
        return OK

    cdef int64_t decode_within(self, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit, bint is_exact,
                               int n_threads, Workspace *work, Status *status) noexcept nogil:
        cdef int i = self.n_steps
        # Steps whose content goes in between: all but the first, if that moves.
        cdef int n_between = self.n_movers - (self.n_steps > 0 and _moves(&self.steps[0]))
        cdef uint8_t *room = NULL
        cdef int64_t half = 0
        cdef int64_t most
        cdef bint is_exact_here
        while True:
            n_bytes = self._verify(&src, n_bytes, &i, status)
            if n_bytes < 0:
                return -1
            if i == 0:
                if n_bytes > limit or (is_exact and n_bytes != limit):
                    fail(status, CHUNK_SIZE, 0, limit, n_bytes)
                    return -1
                memcpy(dst, src, n_bytes)
                return n_bytes
            i -= 1
            if i == 0:
                return self._undo(0, src, n_bytes, dst, limit, is_exact, n_threads, work, status)
            if room == NULL:
                room = self._room(limit, n_between, &half, work, status)
                if room == NULL:
                    return -1
            is_exact_here = is_exact
            most = self._bound_before(i, limit, &is_exact_here)
            n_between -= 1
            n_bytes = self._undo(i, src, n_bytes, room + half * (n_between % 2), most, is_exact_here, n_threads, work,
                                 status)
            if n_bytes < 0:
                return -1
            src = room + half * (n_between % 2)

    cdef int64_t _verify(self, const uint8_t **src, int64_t n_bytes, int *n_left, Status *status) noexcept nogil:
        """Verify the checksums that are the last of the `n_left` steps and take them off.

        The size of what is left at `src`, or -1 with `status` filled.
        """
        cdef const Step *step
        cdef int64_t at
        cdef uint32_t stored
        cdef uint32_t computed
        while n_left[0] > 0 and not _moves(&self.steps[n_left[0] - 1]):
            n_left[0] -= 1
            step = &self.steps[n_left[0]]
            status.step = n_left[0]
            if n_bytes < SUM_NBYTES:
                fail(status, CHECKSUM_SHORT, 0, SUM_NBYTES, n_bytes)
                return -1
            n_bytes -= SUM_NBYTES
            at = 0 if step.at_start else n_bytes
            stored = load_u32(src[0] + at)
            if step.at_start:
                src[0] += SUM_NBYTES
            computed = checksum(step.sum, src[0], n_bytes)
            if stored != computed:
                fail(status, CHECKSUM, at, stored, computed)
                return -1
        status.step = -1
        return n_bytes

    cdef int64_t _undo(self, int i, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit, bint is_exact,
                       int n_threads, Workspace *work, Status *status) noexcept nogil:
        """Undo step `i`; the size of the content, `limit` if `is_exact` and at most that else, or -1."""
        cdef const Step *step = &self.steps[i]
        cdef int64_t n = -1
        cdef int64_t unit
        cdef int64_t as_unit
        if step.op == OP_BLOSC:
            if not is_exact:
                n = blosc_decode_within(src, n_bytes, dst, limit, self.itemsize, n_threads, status)
            elif blosc_decode(src, n_bytes, dst, limit, self.itemsize, n_threads, status) == OK:
                return limit
            if status.code == BLOSC_SNAPPY and self.decoder is not None:
                status.code = OK
                n = self._call(i, False, src, n_bytes, dst, limit, is_exact, NULL, work, status)
        elif step.op == OP_PYTHON:
            n = self._call(i, False, src, n_bytes, dst, limit, is_exact, NULL, work, status)
        elif step.op == OP_ZSTD:
            n = zstd_decode(src, n_bytes, dst, limit, &work.contexts, status)
        elif step.op == OP_ZLIB or step.op == OP_GZIP:
            n = zlib_decode(src, n_bytes, dst, limit, step.op == OP_GZIP, status)
        elif step.op == OP_LZ4:
            n = lz4_decode(src, n_bytes, dst, limit, status)
        else:
            unit = as_unit = step.typesize
            if step.op != OP_SHUFFLE:
                unit = item_nbytes(step.filter.item)
                as_unit = item_nbytes(step.filter.as_item)
            n = n_bytes // as_unit
            if n * as_unit != n_bytes:
                fail(status, ITEMS, 0, as_unit, n_bytes)
                n = -1
            elif n > limit // unit:
                fail(status, STREAM_LONG, 0, limit, n * unit)
                n = -1
            else:
                if step.op == OP_SHUFFLE:
                    unshuffle(src, dst, n_bytes, unit)
                elif step.op == OP_DELTA:
                    delta_decode(&step.filter, src, dst, n)
                elif step.op == OP_SCALE:
                    scale_decode(&step.filter, src, dst, n)
                elif step.op == OP_LINEAR:
                    linear_decode(&step.filter, src, dst, n)
                elif cast_run(&step.casts[1], src, dst, n, status) != OK:
                    status.step = i
                    return -1
                n *= unit
        if n >= 0 and is_exact and n != limit:
            fail(status, CHUNK_SIZE, 0, limit, n)
            n = -1
        if n < 0:
            status.step = i
        return n

    cdef int64_t _call(self, int i, bint is_encode, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit,
                       bint is_exact, const uint8_t **made, Workspace *work, Status *status) noexcept with gil:
        """Let Python do step `i`: the size of what it makes, at `dst` or where `made` says, or -1."""
        cdef Py_buffer view
        cdef int64_t n
        cdef int d
        cdef const Step *step = &self.steps[i]
        try:
            try:
                _let_go(work)
                # A copy, as nobody knows how long Python keeps it.
                data = PyByteArray_FromStringAndSize(<const char *>src, n_bytes)
                shape = None if work.lengths == NULL else tuple([work.lengths[d] for d in range(work.ndim)])
                if step.op == OP_BLOSC:
                    result = self.decoder(data, limit, not is_exact)
                elif is_encode:
                    result = (<object>step.segment).encode(data, shape)
                else:
                    result = (<object>step.segment).decode(data, limit, not is_exact, shape)
                if made != NULL:
                    return hold_bytes(work, result, made)
                PyObject_GetBuffer(result, &view, PyBUF_SIMPLE)
                n = view.len
                if n > limit:
                    fail(status, STREAM_LONG, 0, limit, n)
                    n = -1
                else:
                    memcpy(dst, view.buf, n)
                PyBuffer_Release(&view)
                return n
            except BaseException as exception:
                raised_in(work, exception, status)
                return -1
        except:  # noqa: E722 (the only clause that cannot raise itself)
            return -1

    cdef int scatter(self, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, const Runs *runs, uint8_t *dst,
                     uint8_t *scratch, Status *status) noexcept nogil:
        cdef int n_left = self.n_steps
        cdef int code
        # Asked before anything is verified, or those that are no better for it would be verified twice.
        if not self.is_blockwise or not is_blockwise(src, n_bytes - (n_left - 1) * SUM_NBYTES, dst_nbytes,
                                                     self.itemsize, runs.itemsize, NULL, 0, False):
            return NOT_BLOCKWISE
        n_bytes = self._verify(&src, n_bytes, &n_left, status)
        if n_bytes < 0:
            return status.code
        code = scatter_chunk(src, n_bytes, dst_nbytes, self.itemsize, runs, dst, scratch, status)
        if code != OK:
            status.step = 0
        return code

    cdef int select(self, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, const Copy *part, int64_t offset,
                    bint only_few, uint8_t *dst, Buffer *scratch, Status *status) noexcept nogil:
        cdef int n_left = self.n_steps
        cdef int code
        if not self.is_blockwise or not is_blockwise(src, n_bytes - (n_left - 1) * SUM_NBYTES, dst_nbytes,
                                                     self.itemsize, part.itemsize, part, offset, only_few):
            return NOT_BLOCKWISE
        n_bytes = self._verify(&src, n_bytes, &n_left, status)
        if n_bytes < 0:
            return status.code
        code = select_chunk(src, n_bytes, dst_nbytes, self.itemsize, part, offset, dst, scratch, status)
        if code > OK:
            status.step = 0
        return code

    cdef int64_t blocksize_of(self, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes,
                              int64_t n_item) noexcept nogil:
        if not self.is_blockwise:
            return 0
        return block_nbytes(src, n_bytes - (self.n_steps - 1) * SUM_NBYTES, dst_nbytes, self.itemsize, n_item)

    cdef int decode_some(self, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, const uint8_t *needed,
                         uint8_t *dst, uint8_t *scratch, Status *status) noexcept nogil:
        cdef int n_left = self.n_steps
        cdef int code
        n_bytes = self._verify(&src, n_bytes, &n_left, status)
        if n_bytes < 0:
            return status.code
        code = decode_blocks(src, n_bytes, dst_nbytes, self.itemsize, needed, dst, scratch, status)
        if code > OK:
            status.step = 0
        return code

    # encoding

    cdef int64_t encode(self, const uint8_t *src, int64_t n_bytes, Buffer *buffer, const uint8_t **encoded,
                        int n_threads, Workspace *work, Status *status) noexcept nogil:
        cdef int64_t chunk_nbytes = n_bytes
        cdef bint is_exact = True
        # What Python makes at last stays where it is.
        cdef int n_steps = self.n_steps - self.ends_in_python
        cdef int64_t capacity = self._bound_before(n_steps, n_bytes, &is_exact)
        cdef int64_t half = 0
        # A chain that begins with a checksum begins with a copy of the chunk.
        cdef int n_moves = self.n_movers - self.ends_in_python + (n_steps > 0 and not _moves(&self.steps[0]))
        cdef int n_done = 0
        cdef int i = 0
        cdef int j
        cdef uint8_t *room = NULL
        cdef uint8_t *target
        encoded[0] = src
        if n_steps > 0 and capacity >= MAX_ENCODED:
            fail(status, NO_MEMORY, 0, capacity, 0)
            return -1
        if n_steps > 0 and buffer_reserve(buffer, capacity, status) != OK:
            return -1
        if n_moves > 1:
            room = self._room(chunk_nbytes, n_moves - 1, &half, work, status)
            if room == NULL:
                return -1
        while i < n_steps:
            n_done += 1
            target = buffer.data if n_done == n_moves else room + half * (n_done % 2)
            j = i + _moves(&self.steps[i])
            # Checksums that come to stand before the bytes find their room there.
            while j < n_steps and not _moves(&self.steps[j]):
                target += SUM_NBYTES if self.steps[j].at_start else 0
                j += 1
            if _moves(&self.steps[i]):
                capacity = _bound(&self.steps[i], self._bound_before(i, chunk_nbytes, &is_exact))
                n_bytes = self._do(i, encoded[0], n_bytes, target, capacity, n_threads, work, status)
                if n_bytes < 0:
                    status.step = i
                    status.is_encode = True
                    return -1
                i += 1
            else:
                memcpy(target, encoded[0], n_bytes)
            n_bytes = self._seal(&target, n_bytes, &i)
            encoded[0] = target
        if self.ends_in_python:
            n_bytes = self._call(n_steps, True, encoded[0], n_bytes, NULL, MAX_ENCODED, False, encoded, work, status)
            if n_bytes < 0:
                status.step = n_steps
                status.is_encode = True
        return n_bytes

    cdef int64_t _do(self, int i, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity, int n_threads,
                     Workspace *work, Status *status) noexcept nogil:
        """Do step `i`, which moves; what it gives has `capacity` bytes at most. Its size, or -1."""
        cdef const Step *step = &self.steps[i]
        cdef int64_t unit
        if step.op == OP_BLOSC:
            # Not all the room that there may be: given more, c-blosc makes chunks that are longer than stored ones.
            return blosc_encode(src, n_bytes, dst, n_bytes + BLOSC_OVERHEAD, step.compressor, step.level, step.shuffle,
                                step.typesize, step.blocksize, n_threads, status)
        if step.op == OP_ZSTD:
            return zstd_encode(src, n_bytes, dst, capacity, step.level, step.checksum, &work.contexts, status)
        if step.op == OP_ZLIB or step.op == OP_GZIP:
            return zlib_encode(src, n_bytes, dst, capacity, step.op == OP_GZIP, step.level, status)
        if step.op == OP_LZ4:
            return lz4_encode(src, n_bytes, dst, capacity, step.level, status)
        if step.op == OP_PYTHON:
            return self._call(i, True, src, n_bytes, dst, capacity, False, NULL, work, status)
        unit = step.typesize if step.op == OP_SHUFFLE else item_nbytes(step.filter.item)
        if n_bytes % unit != 0:
            fail(status, ITEMS, 0, unit, n_bytes)
            return -1
        if step.op == OP_SHUFFLE:
            shuffle(src, dst, n_bytes, unit)
            return n_bytes
        if step.op == OP_DELTA:
            delta_encode(&step.filter, src, dst, n_bytes // unit)
        elif step.op == OP_SCALE:
            scale_encode(&step.filter, src, dst, n_bytes // unit)
        elif step.op == OP_LINEAR:
            linear_encode(&step.filter, src, dst, n_bytes // unit)
        elif cast_run(&step.casts[0], src, dst, n_bytes // unit, status) != OK:
            return -1
        n_bytes = n_bytes // unit
        return n_bytes * item_nbytes(step.filter.as_item)

    cdef int64_t _seal(self, uint8_t **data, int64_t n_bytes, int *i) noexcept nogil:
        """Write the checksums that are the next steps; the size with them."""
        cdef uint32_t value
        while i[0] < self.n_steps and not _moves(&self.steps[i[0]]):
            value = checksum(self.steps[i[0]].sum, data[0], n_bytes)
            if self.steps[i[0]].at_start:
                data[0] -= SUM_NBYTES
                store_u32(data[0], value)
            else:
                store_u32(data[0] + n_bytes, value)
            n_bytes += SUM_NBYTES
            i[0] += 1
        return n_bytes

    cdef int64_t gather(self, const uint8_t *src, const Runs *runs, int64_t n_bytes, Buffer *buffer, uint8_t *scratch,
                        Status *status) noexcept nogil:
        cdef Step *first = &self.steps[0]
        cdef uint8_t *data
        cdef int i = 1
        cdef int64_t n
        if (not self.is_blockwise or first.compressor != LZ4 or first.shuffle != 1
                or first.typesize != runs.itemsize or first.blocksize != 0 or n_bytes > BLOSC_MAX_NBYTES):
            return NOT_BLOCKWISE
        if buffer_reserve(buffer, self.max_encoded(n_bytes), status) != OK:
            return FAILED
        n = gather_chunk(src, runs, n_bytes, buffer.data, first.level, scratch)
        data = buffer.data
        return n if n == NOT_BLOCKWISE else self._seal(&data, n, &i)

    # for Python

    @property
    def is_native(self):
        """Whether no step of it runs in Python."""
        return not self.segments

    def encoded_bound(self, n_bytes):
        """Return the most bytes that the object of a chunk of `n_bytes` decoded bytes can have.

        What documents say of shards may be no 64-bit number.
        """
        return self.max_encoded(min(n_bytes, MAX_ENCODED))

    def decode_bytes(self, const uint8_t[::1] encoded not None, uint8_t[::1] out not None, codecs=()):
        """Decode one object into `out`, which has the length of the decoded chunk; `codecs` names the steps.

        Raises
        ------
        ChunkError
            The object is damaged, or does not decode to the length of `out`.
        """
        cdef uint8_t empty = 0
        cdef uint8_t *dst = &out[0] if out.shape[0] else &empty
        self._decode(encoded, dst, out.shape[0], True, codecs)

    def decode_new(self, const uint8_t[::1] encoded not None, n_bytes, bint at_most=False, codecs=()):
        """Return the content of one object, a `bytearray` of `n_bytes` bytes, or fewer with `at_most`.

        Raises
        ------
        ChunkError
            The object is damaged, or has another size.
        MemoryError
            There is no memory for `n_bytes` bytes.
        """
        if n_bytes >= MAX_ENCODED:
            raise MemoryError
        # Not bytearray(n), which writes zeros: memory that is not touched costs nothing, if the object is damaged.
        cdef bytearray out = PyByteArray_FromStringAndSize(NULL, n_bytes)
        cdef int64_t limit = n_bytes
        cdef int64_t n = self._decode(encoded, <uint8_t *>PyByteArray_AS_STRING(out), limit, not at_most, codecs)
        PyByteArray_Resize(out, n)
        return out

    cdef int64_t _decode(self, const uint8_t[::1] encoded, uint8_t *dst, int64_t limit, bint is_exact,
                         object codecs) except -1:
        cdef Status status
        cdef Workspace work
        cdef uint8_t empty = 0
        cdef const uint8_t *src = &encoded[0] if encoded.shape[0] else &empty
        cdef int64_t n
        memset(&work, 0, sizeof(Workspace))
        status_clear(&status)
        with nogil:
            n = self.decode_within(src, encoded.shape[0], dst, limit, is_exact, 1, &work, &status)
        try:
            _check(&status, &work, codecs, "decode")
        finally:
            workspace_free(&work)
        return n

    def encode_bytes(self, const uint8_t[::1] chunk not None, codecs=()):
        """Return the object of one chunk, a `bytes`; `codecs` names the steps.

        Raises
        ------
        ChunkError
            A step cannot encode what it is given.
        """
        cdef Status status
        cdef Buffer buffer
        cdef Workspace work
        cdef uint8_t empty = 0
        cdef const uint8_t *src = &chunk[0] if chunk.shape[0] else &empty
        cdef const uint8_t *encoded = NULL
        cdef int64_t n
        memset(&buffer, 0, sizeof(Buffer))
        memset(&work, 0, sizeof(Workspace))
        status_clear(&status)
        with nogil:
            n = self.encode(src, chunk.shape[0], &buffer, &encoded, 1, &work, &status)
        try:
            _check(&status, &work, codecs, "encode")
            return (<const char *>encoded)[:n]
        finally:
            workspace_free(&work)
            buffer_free(&buffer)
