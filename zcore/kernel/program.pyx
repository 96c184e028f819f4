# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Codec chains as programs of C steps.

Compiled because it runs once a chunk, without the GIL. The chains that can be lowered are an optional compressor with
checksums before or behind it: every stored size on the way is then known from the object's own, and nothing is kept
between the steps but the buffer that is written or read.
"""
cimport cython
from libc.string cimport memcpy, memset

from zcore.kernel.blosc_blocks cimport NOT_BLOCKWISE, Runs, gather_chunk, scatter_chunk
from zcore.kernel.compress cimport BLOSC_MAX_NBYTES, BLOSC_OVERHEAD, LZ4, blosc_decode, blosc_encode
from zcore.kernel.compress import compressor_code
from zcore.kernel.crc32c cimport crc32c
from zcore.kernel.fileio cimport FAILED, Buffer, buffer_free, buffer_reserve
from zcore.kernel.status cimport (
    CHECKSUM, CHECKSUM_SHORT, CHUNK_SIZE, OK, Status, check, fail, status_clear,
)
from libc.stdint cimport uint32_t


cdef inline uint32_t _load_u32(const uint8_t *p) noexcept nogil:
    return p[0] | (<uint32_t>p[1] << 8) | (<uint32_t>p[2] << 16) | (<uint32_t>p[3] << 24)


cdef inline void _store_u32(uint8_t *p, uint32_t v) noexcept nogil:
    p[0] = v & 0xff
    p[1] = (v >> 8) & 0xff
    p[2] = (v >> 16) & 0xff
    p[3] = v >> 24


@cython.final
cdef class Program:
    """A lowered codec chain.

    Parameters
    ----------
    steps : sequence of tuple
        In the order of encoding: ``("blosc", cname, clevel, shuffle, typesize, blocksize)`` with `shuffle` 0, 1 or 2,
        at most once, and ``("crc32c",)``.
    itemsize : int
        Item size that a blosc header may name beside 1; 0 accepts any.

    Raises
    ------
    ValueError
        The steps cannot be lowered: unknown, too many, or more than one compressor.
    """

    def __init__(self, steps, int64_t itemsize=0):
        cdef Step step
        cdef int n_compressors = 0
        if len(steps) > MAX_STEPS:
            raise ValueError(f"chain has {len(steps)} steps, a program at most {MAX_STEPS}")
        self.itemsize = itemsize
        self.n_steps = 0
        for spec in steps:
            memset(&step, 0, sizeof(Step))
            if spec[0] == "blosc":
                n_compressors += 1
                step.op = OP_BLOSC
                step.compressor = compressor_code(spec[1])
                step.level, step.shuffle, step.typesize, step.blocksize = spec[2:]
            elif spec[0] == "crc32c":
                step.op = OP_CRC32C
            else:
                raise ValueError(f"step {spec[0]!r} has no C form")
            self.steps[self.n_steps] = step
            self.n_steps += 1
        if n_compressors > 1 or (n_compressors == 1 and self.steps[0].op != OP_BLOSC):
            raise ValueError("only one compressor, before all checksums, has a C form")

    cdef int64_t max_encoded(self, int64_t n_bytes) noexcept nogil:
        cdef int i
        for i in range(self.n_steps):
            n_bytes += BLOSC_OVERHEAD if self.steps[i].op == OP_BLOSC else CRC32C_NBYTES
        return n_bytes

    cdef int decode(self, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t dst_nbytes, int n_threads,
                    Status *status) noexcept nogil:
        cdef int64_t n = self._verify(src, n_bytes, status)
        cdef int code
        if n < 0:
            return status.code
        if self.n_steps and self.steps[0].op == OP_BLOSC:
            code = blosc_decode(src, n, dst, dst_nbytes, self.itemsize, n_threads, status)
            if code != OK:
                status.step = 0
            return code
        if n != dst_nbytes:
            return fail(status, CHUNK_SIZE, 0, dst_nbytes, n)
        memcpy(dst, src, n)
        return OK

    cdef int scatter(self, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, const Runs *runs, uint8_t *dst,
                     uint8_t *scratch, Status *status) noexcept nogil:
        cdef int64_t n
        cdef int code
        if self.n_steps == 0 or self.steps[0].op != OP_BLOSC:
            return NOT_BLOCKWISE
        n = self._verify(src, n_bytes, status)
        if n < 0:
            return status.code
        code = scatter_chunk(src, n, dst_nbytes, self.itemsize, runs, dst, scratch, status)
        if code != OK:
            status.step = 0
        return code

    cdef int64_t _verify(self, const uint8_t *src, int64_t n_bytes, Status *status) noexcept nogil:
        """Verify the checksums of an object; the size without them, or -1 with `status` filled."""
        cdef int i = self.n_steps - 1
        cdef uint32_t stored
        cdef uint32_t computed
        while i >= 0 and self.steps[i].op == OP_CRC32C:
            if n_bytes < CRC32C_NBYTES:
                fail(status, CHECKSUM_SHORT, 0, CRC32C_NBYTES, n_bytes)
                status.step = i
                return -1
            n_bytes -= CRC32C_NBYTES
            stored = _load_u32(src + n_bytes)
            computed = crc32c(src, n_bytes, 0)
            if stored != computed:
                fail(status, CHECKSUM, n_bytes, stored, computed)
                status.step = i
                return -1
            i -= 1
        return n_bytes

    cdef int64_t encode(self, const uint8_t *src, int64_t n_bytes, Buffer *buffer, const uint8_t **encoded,
                        int n_threads, Status *status) noexcept nogil:
        cdef Step *first = &self.steps[0]
        cdef int64_t n = n_bytes
        encoded[0] = src
        if self.n_steps == 0:
            return n_bytes
        if buffer_reserve(buffer, self.max_encoded(n_bytes), status) != OK:
            return -1
        encoded[0] = buffer.data
        if first.op == OP_BLOSC:
            n = blosc_encode(src, n_bytes, buffer.data, n_bytes + BLOSC_OVERHEAD, first.compressor, first.level,
                             first.shuffle, first.typesize, first.blocksize, n_threads, status)
            if n < 0:
                status.step = 0
                return -1
        else:
            memcpy(buffer.data, src, n)
        return self._seal(buffer.data, n)

    cdef int64_t gather(self, const uint8_t *src, const Runs *runs, int64_t n_bytes, Buffer *buffer, uint8_t *scratch,
                        Status *status) noexcept nogil:
        cdef Step *first = &self.steps[0]
        cdef int64_t n
        if (self.n_steps == 0 or first.op != OP_BLOSC or first.compressor != LZ4 or first.shuffle != 1
                or first.typesize != runs.itemsize or first.blocksize != 0 or n_bytes > BLOSC_MAX_NBYTES):
            return NOT_BLOCKWISE
        if buffer_reserve(buffer, self.max_encoded(n_bytes), status) != OK:
            return FAILED
        n = gather_chunk(src, runs, n_bytes, buffer.data, first.level, scratch)
        return n if n == NOT_BLOCKWISE else self._seal(buffer.data, n)

    cdef int64_t _seal(self, uint8_t *data, int64_t n_bytes) noexcept nogil:
        """Append the checksums of the chain to an object; returns its size with them."""
        cdef int i
        for i in range(self.n_steps):
            if self.steps[i].op == OP_CRC32C:
                _store_u32(data + n_bytes, crc32c(data, n_bytes, 0))
                n_bytes += CRC32C_NBYTES
        return n_bytes

    def decode_bytes(self, const uint8_t[::1] encoded not None, uint8_t[::1] out not None):
        """Decode one object into `out`, which has the length of the decoded chunk.

        Raises
        ------
        ChunkError
            The object is damaged, or does not decode to the length of `out`.
        """
        cdef Status status
        cdef uint8_t empty = 0
        cdef const uint8_t *src = &encoded[0] if encoded.shape[0] else &empty
        cdef uint8_t *dst = &out[0] if out.shape[0] else &empty
        status_clear(&status)
        with nogil:
            self.decode(src, encoded.shape[0], dst, out.shape[0], 1, &status)
        check(&status)

    def encode_bytes(self, const uint8_t[::1] chunk not None):
        """Return the object of one chunk, a `bytes`."""
        cdef Status status
        cdef Buffer buffer
        cdef uint8_t empty = 0
        cdef const uint8_t *src = &chunk[0] if chunk.shape[0] else &empty
        cdef const uint8_t *encoded = NULL
        cdef int64_t n
        memset(&buffer, 0, sizeof(Buffer))
        status_clear(&status)
        with nogil:
            n = self.encode(src, chunk.shape[0], &buffer, &encoded, 1, &status)
        try:
            check(&status)
            return (<const char *>encoded)[:n]
        finally:
            buffer_free(&buffer)
