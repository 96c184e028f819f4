# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Codec chains as programs of C steps.

Compiled because it runs once a chunk, without the GIL. A step is a row of the codec table (`table.pxd`) with its
parameters: a filter, a compressor or a checksum, in any order. The size of the chunk alone determines the output size
of each step: an exact size, if the steps before it keep sizes or change them in a fixed way, or a maximum, behind a
compressor. So every buffer has its size before an object is looked at, and a stream that holds more is stopped at that
size, whatever its header says.

Checksums move nothing: they are verified and dropped, or written, in place. The other steps read from one buffer and
write to another. Only chains with several of them need memory in between, two halves that are used in turn.
"""
cimport cython
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize, PyByteArray_Resize
from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from zcore.kernel.codec.table cimport (
    MAX_ENCODED, NOT_BLOCKWISE, SUM_NBYTES, Step, Workspace, find_codec, workspace_exception, workspace_free,
)
from zcore.kernel.codec import blosc_blocks, checksums, compress, filters, shuffle
from zcore.kernel.io.files cimport FAILED, Buffer, buffer_free, buffer_reserve
from zcore.kernel.memory cimport MAX_NBYTES, Bytes
from zcore.kernel.numbers cimport load_u32, store_u32
from zcore.kernel.status cimport (
    BLOSC_SNAPPY, CHECKSUM, CHECKSUM_SHORT, CHUNK_SIZE, ITEMS, NO_MEMORY, OK, RAISED, STREAM_LONG, Status, fail,
    make_error, status_clear,
)
from zcore.kernel.strided.copy cimport Copy, Runs

# Each module has added its rows to the table. A new codec is one more module here.
CODEC_MODULES = (blosc_blocks, checksums, compress, filters, shuffle)


cdef inline bint _moves(const Step *step) noexcept nogil:
    return step.codec.sum == NULL


cdef int64_t _bound(const Step *step, int64_t n_bytes, bint *is_exact) noexcept nogil:
    """Return the output size of a step for `n_bytes` bytes, or its maximum."""
    if n_bytes >= MAX_ENCODED // 16:
        is_exact[0] = False
        return MAX_ENCODED
    if not _moves(step):
        return n_bytes + SUM_NBYTES
    return n_bytes if step.codec.bound == NULL else step.codec.bound(step, n_bytes, is_exact)


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
        In the order of encoding, at most 8, each the name of a row of the codec table and its parameters:

        - ``("blosc", cname, clevel, shuffle, typesize, blocksize)`` with `shuffle` 0, 1 or 2
        - ``("zstd", level, checksum)``, ``("lz4", acceleration)``
        - ``("zlib", level)``, ``("gzip", level)``, and maybe two functions of Python, or None: the first inflates as
          ``(data, n_bytes, at_most)``, the second deflates as ``(data)``; both return None for what zlib is to do
        - ``("crc32c", at_start)``, also ``crc32``, ``adler32``, ``fletcher32``; the default of `at_start` is False
        - ``("shuffle", itemsize)``
        - ``("scale_offset", dtype, offset, scale)``, of floats; ``("delta", dtype)``, of `DELTA_TYPES`
        - ``("python", segment, n_in, n_out, is_fixed)``: codecs without a C form, see `zcore.codecs.lowering`
    itemsize : int
        Item size that a blosc header may name beside 1; 0 accepts any.
    decoder : object, optional
        Decodes blosc chunks of a compressor that is not linked, called like a segment.

    Raises
    ------
    ValueError
        The steps cannot be lowered: unknown, or too many.
    """

    def __init__(self, steps, int64_t itemsize=0, decoder=None):
        cdef Step *step
        cdef tuple form
        cdef bint may_have_blocks = True
        if len(steps) > MAX_STEPS:
            raise ValueError(f"chain has {len(steps)} steps, a program at most {MAX_STEPS}")
        _free(self)
        self.itemsize = itemsize
        self.kept = []
        self.is_native = self.decodes_natively = True
        for spec in steps:
            step = &self.steps[self.n_steps]
            self.n_steps += 1
            form = tuple(spec)
            self._add(step, form)
            self.n_movers += _moves(step)
            may_have_blocks = may_have_blocks and not step.at_start
            if step.decodes_in_python:
                self.decodes_natively = False
            if step.decodes_in_python or step.encodes_in_python:
                self.is_native = False
        if decoder is not None:
            form = ("python", decoder, 0, None, False)
            self._add(&self.fallback, form)
        if self.n_steps > 0:
            self.ends_in_make = self.steps[self.n_steps - 1].codec.make != NULL
            if self.n_movers == 1 and may_have_blocks:
                self.blocks = self.steps[0].codec.blocks

    def __dealloc__(self):
        _free(self)

    cdef int _add(self, Step *step, tuple spec) except -1:
        step.codec = find_codec(spec[0])
        step.itemsize = self.itemsize
        if step.codec.parameters_nbytes > 0:
            step.parameters = calloc(1, step.codec.parameters_nbytes)
            if step.parameters == NULL:
                raise MemoryError
        self.kept.append(spec)
        parameters = spec[1:]
        return step.codec.configure(step, parameters)

    # sizes

    cdef int inner_threads(self, int64_t n_threads, int64_t n_bytes, bint encodes) noexcept nogil:
        cdef const Step *step
        cdef int i
        for i in range(self.n_steps):
            step = &self.steps[i]
            if step.codec.thread_nbytes != NULL:
                n_threads = min(n_threads, n_bytes // step.codec.thread_nbytes(step, encodes))
                return <int>max(<int64_t>1, n_threads)
        return 1

    cdef int64_t max_encoded(self, int64_t n_bytes) noexcept nogil:
        cdef bint is_exact = True
        return _bound_before(self, self.n_steps, n_bytes, &is_exact)

    # decoding

    cdef int decode(self, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t dst_nbytes, int n_threads,
                    Workspace *work, Status *status) noexcept nogil:
        if self.decode_within(src, n_bytes, dst, dst_nbytes, True, n_threads, work, status) < 0:
            return status.code
        return OK

    cdef int64_t decode_within(self, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit, bint is_exact,
                               int n_threads, Workspace *work, Status *status) noexcept nogil:
        cdef int i = self.n_steps
        # Steps that write to the memory in between: all but the first, if that moves.
        cdef int n_between = self.n_movers - (self.n_steps > 0 and _moves(&self.steps[0]))
        cdef uint8_t *room = NULL
        cdef int64_t half = 0
        cdef int64_t most
        cdef bint is_exact_here
        work.n_threads = n_threads
        while True:
            n_bytes = _verify(self, &src, n_bytes, &i, status)
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
                return _undo(self, 0, src, n_bytes, dst, limit, is_exact, work, status)
            if room == NULL:
                room = _room(self, limit, n_between, &half, work, status)
                if room == NULL:
                    return -1
            is_exact_here = is_exact
            most = _bound_before(self, i, limit, &is_exact_here)
            n_between -= 1
            n_bytes = _undo(self, i, src, n_bytes, room + half * (n_between % 2), most, is_exact_here, work, status)
            if n_bytes < 0:
                return -1
            src = room + half * (n_between % 2)

    cdef int scatter(self, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, const Runs *runs, uint8_t *dst,
                     uint8_t *scratch, Status *status) noexcept nogil:
        cdef int code = _verify_blocks(self, &src, &n_bytes, dst_nbytes, runs.itemsize, NULL, 0, False, status)
        if code == OK:
            code = self.blocks.scatter(&self.steps[0], src, n_bytes, dst_nbytes, runs, dst, scratch, status)
            if code > OK:
                status.step = 0
        return code

    cdef int select(self, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, const Copy *part, int64_t offset,
                    bint only_few, uint8_t *dst, Buffer *scratch, Status *status) noexcept nogil:
        cdef int code = _verify_blocks(self, &src, &n_bytes, dst_nbytes, part.itemsize, part, offset, only_few, status)
        if code == OK:
            code = self.blocks.select(&self.steps[0], src, n_bytes, dst_nbytes, part, offset, dst, scratch, status)
            if code > OK:
                status.step = 0
        return code

    # encoding

    cdef int64_t encode(self, const uint8_t *src, int64_t n_bytes, Buffer *buffer, const uint8_t **encoded,
                        int n_threads, Workspace *work, Status *status) noexcept nogil:
        cdef int64_t chunk_nbytes = n_bytes
        cdef bint is_exact = True
        # The output of a `make` step stays in the step's own memory.
        cdef int n_steps = self.n_steps - self.ends_in_make
        cdef int64_t capacity = _bound_before(self, n_steps, n_bytes, &is_exact)
        cdef int64_t half = 0
        # A chain that begins with a checksum first copies the chunk.
        cdef int n_moves = self.n_movers - self.ends_in_make + (n_steps > 0 and not _moves(&self.steps[0]))
        cdef int n_done = 0
        cdef int i = 0
        cdef int j
        cdef uint8_t *room = NULL
        cdef uint8_t *target
        cdef const Step *last
        work.n_threads = n_threads
        encoded[0] = src
        if n_steps > 0 and capacity >= MAX_ENCODED:
            fail(status, NO_MEMORY, 0, capacity, 0)
            return -1
        if n_steps > 0 and buffer_reserve(buffer, capacity, status) != OK:
            return -1
        if n_moves > 1:
            room = _room(self, chunk_nbytes, n_moves - 1, &half, work, status)
            if room == NULL:
                return -1
        while i < n_steps:
            n_done += 1
            target = buffer.data if n_done == n_moves else room + half * (n_done % 2)
            j = i + _moves(&self.steps[i])
            # Checksums that precede the bytes need their room there.
            while j < n_steps and not _moves(&self.steps[j]):
                target += SUM_NBYTES if self.steps[j].at_start else 0
                j += 1
            if _moves(&self.steps[i]):
                capacity = _bound_before(self, i + 1, chunk_nbytes, &is_exact)
                n_bytes = _do(self, i, encoded[0], n_bytes, target, capacity, work, status)
                if n_bytes < 0:
                    status.step = i
                    status.is_encode = True
                    return -1
                i += 1
            else:
                memcpy(target, encoded[0], n_bytes)
            n_bytes = _seal(self, &target, n_bytes, &i)
            encoded[0] = target
        if self.ends_in_make:
            last = &self.steps[n_steps]
            n_bytes = last.codec.make(last, encoded[0], n_bytes, encoded, work, status)
            if n_bytes < 0:
                status.step = n_steps
                status.is_encode = True
        return n_bytes

    cdef int64_t gather(self, const uint8_t *src, const Runs *runs, int64_t n_bytes, Buffer *buffer, uint8_t *scratch,
                        Workspace *work, Status *status) noexcept nogil:
        cdef const Step *first = &self.steps[0]
        cdef uint8_t *data
        cdef int i = 1
        cdef int64_t n
        if self.blocks == NULL or not self.blocks.can_gather(first, runs, n_bytes):
            return NOT_BLOCKWISE
        if buffer_reserve(buffer, self.max_encoded(n_bytes), status) != OK:
            return FAILED
        n = self.blocks.gather(first, src, runs, n_bytes, buffer.data, scratch, work)
        data = buffer.data
        return n if n == NOT_BLOCKWISE else _seal(self, &data, n, &i)

    cdef int64_t merge(self, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, const Copy *part, int64_t offset,
                       bint only_few, const uint8_t *elements, const uint8_t *fill, Buffer *buffer,
                       Status *status) noexcept nogil:
        cdef const Step *first = &self.steps[0]
        cdef int n_left = self.n_steps
        cdef int64_t most = self.max_encoded(dst_nbytes)
        cdef int64_t room = 0
        cdef uint8_t *data
        cdef int i = 1
        cdef int64_t n
        if self.blocks != NULL:
            room = self.blocks.merge_room(first, src, n_bytes - (n_left - 1) * SUM_NBYTES, dst_nbytes, part, offset,
                                          only_few)
        if room == 0:
            return NOT_BLOCKWISE
        n_bytes = _verify(self, &src, n_bytes, &n_left, status)
        if n_bytes < 0 or buffer_reserve(buffer, most + room, status) != OK:
            return FAILED
        n = self.blocks.merge(first, src, n_bytes, dst_nbytes, part, offset, elements, fill, buffer.data,
                              buffer.data + most, status)
        if n == FAILED:
            status.step = 0
        data = buffer.data
        return n if n < 0 else _seal(self, &data, n, &i)

    # for Python

    def encoded_bound(self, n_bytes):
        """Return the maximum size of the object of a chunk of `n_bytes` decoded bytes.

        `n_bytes` may exceed 64 bits: sizes of shards come from metadata documents.
        """
        return self.max_encoded(min(n_bytes, MAX_ENCODED))

    def decode_bytes(self, encoded, out, codecs=()):
        """Decode one object into `out`, which has the size of the decoded chunk; `codecs` names the steps.

        Raises
        ------
        ChunkError
            The object is damaged, or does not decode to the size of `out`.
        """
        cdef Bytes target = Bytes(out, writable=True)
        _decode(self, encoded, target.data, target.n, True, codecs)

    def decode_new(self, encoded, n_bytes, bint at_most=False, codecs=()):
        """Return the content of one object, a `bytearray` of `n_bytes` bytes, or of fewer with `at_most`.

        Raises
        ------
        ChunkError
            The object is damaged, or has another size.
        MemoryError
            There is no memory for `n_bytes` bytes.
        """
        if n_bytes >= min(MAX_ENCODED, MAX_NBYTES):
            raise MemoryError
        # Not bytearray(n), which writes zeros: untouched memory costs nothing if the object is damaged.
        cdef bytearray out = PyByteArray_FromStringAndSize(NULL, n_bytes)
        cdef int64_t limit = n_bytes
        cdef int64_t n = _decode(self, encoded, <uint8_t *>PyByteArray_AS_STRING(out), limit, not at_most, codecs)
        PyByteArray_Resize(out, n)
        return out

    def encode_bytes(self, chunk, codecs=()):
        """Return the object of one chunk, a `bytes`; `codecs` names the steps.

        Raises
        ------
        ChunkError
            A step cannot encode its input.
        """
        cdef Status status
        cdef Buffer buffer
        cdef Workspace work
        cdef Bytes source = Bytes(chunk)
        cdef const uint8_t *encoded = NULL
        cdef int64_t n
        memset(&buffer, 0, sizeof(Buffer))
        memset(&work, 0, sizeof(Workspace))
        status_clear(&status)
        with nogil:
            n = self.encode(source.data, source.n, &buffer, &encoded, 1, &work, &status)
        try:
            _check(&status, &work, codecs, "encode")
            return (<const char *>encoded)[:n]
        finally:
            workspace_free(&work)
            buffer_free(&buffer)


cdef void _free(Program self) noexcept:
    cdef int i
    for i in range(self.n_steps):
        free(self.steps[i].parameters)
    free(self.fallback.parameters)
    memset(self.steps, 0, sizeof(self.steps))
    memset(&self.fallback, 0, sizeof(Step))
    self.n_steps = self.n_movers = 0
    self.ends_in_make = False
    self.blocks = NULL


cdef int64_t _bound_before(Program self, int i, int64_t n_bytes, bint *is_exact) noexcept nogil:
    """Return the maximum input size of step `i` in encoding. `is_exact` becomes False if it may be less."""
    cdef int j
    for j in range(i):
        n_bytes = _bound(&self.steps[j], n_bytes, is_exact)
    return n_bytes


cdef uint8_t *_room(Program self, int64_t chunk_nbytes, int n_between, int64_t *half, Workspace *work,
                    Status *status) noexcept nogil:
    """Reserve the memory between the steps; `half[0]` is the distance of its two halves, if it has two."""
    cdef int64_t n = chunk_nbytes
    cdef int64_t most = chunk_nbytes
    cdef bint is_exact = True
    cdef int i
    for i in range(self.n_steps - 1):
        n = _bound(&self.steps[i], n, &is_exact)
        most = max(most, n)
    half[0] = most if n_between > 1 else 0
    if most >= MAX_ENCODED:
        fail(status, NO_MEMORY, 0, most, 0)
        return NULL
    return work.between.data if buffer_reserve(&work.between, most + half[0], status) == OK else NULL


cdef int64_t _verify(Program self, const uint8_t **src, int64_t n_bytes, int *n_left, Status *status) noexcept nogil:
    """Verify the checksums at the end of the `n_left` steps, and drop them from the content.

    Return the size of the rest at `src`, or -1 with `status` filled.
    """
    cdef const Step *step
    cdef int64_t at
    cdef uint32_t stored, computed
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
        computed = step.codec.sum(src[0], n_bytes)
        if stored != computed:
            fail(status, CHECKSUM, at, stored, computed)
            return -1
    status.step = -1
    return n_bytes


cdef int _verify_blocks(Program self, const uint8_t **src, int64_t *n_bytes, int64_t dst_nbytes, int64_t itemsize,
                        const Copy *part, int64_t offset, bint only_few, Status *status) noexcept nogil:
    """Verify and drop the checksums of a chunk whose blocks can be decoded one by one: OK, NOT_BLOCKWISE, or a code."""
    cdef int n_left = self.n_steps
    cdef int64_t n = n_bytes[0] - (n_left - 1) * SUM_NBYTES
    # Asked before anything is verified; otherwise chunks that go through `decode` would be verified twice.
    if self.blocks == NULL or not self.blocks.is_blockwise(&self.steps[0], src[0], n, dst_nbytes, itemsize, part,
                                                           offset, only_few):
        return NOT_BLOCKWISE
    n_bytes[0] = _verify(self, src, n_bytes[0], &n_left, status)
    return status.code if n_bytes[0] < 0 else OK


cdef int64_t _undo(Program self, int i, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit, bint is_exact,
                   Workspace *work, Status *status) noexcept nogil:
    """Undo step `i`. Return the size of the content (exactly or at most `limit`, by `is_exact`), or -1."""
    cdef const Step *step = &self.steps[i]
    cdef int64_t n = 0
    if step.unit > 0:
        if n_bytes % step.unit != 0:
            fail(status, ITEMS, 0, step.unit, n_bytes)
            n = -1
        elif n_bytes > limit:
            fail(status, STREAM_LONG, 0, limit, n_bytes)
            n = -1
    if n >= 0:
        n = step.codec.decode(step, src, n_bytes, dst, limit, is_exact, work, status)
    if n < 0 and status.code == BLOSC_SNAPPY and self.fallback.codec != NULL:
        status.code = OK
        n = self.fallback.codec.decode(&self.fallback, src, n_bytes, dst, limit, is_exact, work, status)
    if n >= 0 and is_exact and n != limit:
        fail(status, CHUNK_SIZE, 0, limit, n)
        n = -1
    if n < 0:
        status.step = i
    return n


cdef int64_t _do(Program self, int i, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity,
                 Workspace *work, Status *status) noexcept nogil:
    """Do step `i`, which moves, with at most `capacity` bytes of output. Return its size, or -1."""
    cdef const Step *step = &self.steps[i]
    if step.unit > 0 and n_bytes % step.unit != 0:
        fail(status, ITEMS, 0, step.unit, n_bytes)
        return -1
    return step.codec.encode(step, src, n_bytes, dst, capacity, work, status)


cdef int64_t _seal(Program self, uint8_t **data, int64_t n_bytes, int *i) noexcept nogil:
    """Write the checksums that come next in the chain. Return the size with them."""
    cdef uint32_t value
    while i[0] < self.n_steps and not _moves(&self.steps[i[0]]):
        value = self.steps[i[0]].codec.sum(data[0], n_bytes)
        if self.steps[i[0]].at_start:
            data[0] -= SUM_NBYTES
            store_u32(data[0], value)
        else:
            store_u32(data[0] + n_bytes, value)
        n_bytes += SUM_NBYTES
        i[0] += 1
    return n_bytes


cdef int64_t _decode(Program self, object encoded, uint8_t *dst, int64_t limit, bint is_exact,
                     object codecs) except -1:
    cdef Status status
    cdef Workspace work
    cdef Bytes source = Bytes(encoded)
    cdef int64_t n
    memset(&work, 0, sizeof(Workspace))
    status_clear(&status)
    with nogil:
        n = self.decode_within(source.data, source.n, dst, limit, is_exact, 1, &work, &status)
    try:
        _check(&status, &work, codecs, "decode")
    finally:
        workspace_free(&work)
    return n
