"""A codec chain lowered to C: the steps that turn a chunk's elements into the bytes of its object, and back."""
from libc.stdint cimport int64_t, uint8_t

from zcore.kernel.blosc_blocks cimport Runs
from zcore.kernel.fileio cimport Buffer
from zcore.kernel.status cimport Status


cdef enum Op:
    OP_BLOSC = 1
    OP_CRC32C = 2

cdef enum:
    MAX_STEPS = 8
    CRC32C_NBYTES = 4

cdef struct Step:
    int op
    int compressor             # blosc: a Compressor
    int level
    int shuffle                # blosc: 0 none, 1 bytes, 2 bits
    int64_t typesize
    int64_t blocksize


cdef class Program:
    cdef Step steps[8]         # in the order of encoding
    cdef readonly int n_steps
    cdef readonly int64_t itemsize           # what a blosc header may say, 0: anything
    # The most bytes that a chunk of `n_bytes` decoded bytes can take stored.
    cdef int64_t max_encoded(self, int64_t n_bytes) noexcept nogil
    # Decodes an object into exactly `dst_nbytes` bytes. `src` is not changed.
    cdef int decode(self, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t dst_nbytes, int n_threads,
                    Status *status) noexcept nogil
    # The same, with the elements brought to their places (`runs` at `dst`) block by block; `scratch` holds a chunk.
    # NOT_BLOCKWISE when the chain or the chunk does not allow it: nothing has been decoded then.
    cdef int scatter(self, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, const Runs *runs, uint8_t *dst,
                     uint8_t *scratch, Status *status) noexcept nogil
    cdef int64_t _seal(self, uint8_t *data, int64_t n_bytes) noexcept nogil
    cdef int64_t _verify(self, const uint8_t *src, int64_t n_bytes, Status *status) noexcept nogil
    # Encodes a chunk whose items lie in `runs` at `src`, block by block, into `buffer`; `scratch` holds a chunk.
    # NOT_BLOCKWISE when the chain does not allow it, FAILED with `status` filled.
    cdef int64_t gather(self, const uint8_t *src, const Runs *runs, int64_t n_bytes, Buffer *buffer, uint8_t *scratch,
                        Status *status) noexcept nogil
    # Encodes a chunk; the object is at `encoded[0]`, in `buffer` or (no steps) the chunk itself. Its size, or -1.
    cdef int64_t encode(self, const uint8_t *src, int64_t n_bytes, Buffer *buffer, const uint8_t **encoded,
                        int n_threads, Status *status) noexcept nogil
