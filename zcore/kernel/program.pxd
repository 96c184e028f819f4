"""A codec chain lowered to C: the steps that turn a chunk's elements into the bytes of its object, and back."""
from libc.stdint cimport int64_t, uint8_t

from zcore.kernel.blosc_blocks cimport Runs
from zcore.kernel.casting cimport Cast
from zcore.kernel.compress cimport Contexts
from zcore.kernel.copy cimport Copy
from zcore.kernel.fileio cimport Buffer
from zcore.kernel.filters cimport Filter
from zcore.kernel.status cimport Status


cdef enum Op:
    OP_BLOSC = 1
    OP_CHECKSUM = 2
    OP_ZSTD = 3
    OP_ZLIB = 4
    OP_GZIP = 5
    OP_LZ4 = 6
    OP_SHUFFLE = 7
    OP_DELTA = 8
    OP_SCALE = 9
    OP_CAST = 10
    OP_LINEAR = 11
    OP_PYTHON = 12

cdef enum:
    MAX_STEPS = 8

cdef extern from * nogil:
    """
    #define ZC_MAX_ENCODED ((int64_t)1 << 62)
    """
    # Longer than any object: sums of sizes stop here instead of overflowing.
    const int64_t MAX_ENCODED "ZC_MAX_ENCODED"

cdef struct Step:
    int op
    int compressor             # blosc: a Compressor
    int level                  # of a compressor; the acceleration of LZ4
    int shuffle                # blosc: 0 none, 1 bytes, 2 bits
    int64_t typesize           # blosc, shuffle: bytes of an item
    int64_t blocksize          # blosc
    bint checksum              # zstd: with a checksum of its own
    int sum                    # a Sum
    bint at_start              # the checksum stands before the bytes
    Filter filter
    Cast casts[2]              # when encoding, when decoding
    void *segment              # codecs in Python; the program keeps it
    int64_t n_in               # bytes of a chunk that is not cut, when they come here,
    int64_t n_out              # and the most that is made of them
    bint is_fixed              # always as many


cdef struct Workspace:         # what a thread keeps between chunks; all zero at first
    Buffer between             # content between two steps
    Contexts contexts
    const int64_t *lengths     # of the chunk, where chunks differ in shape; else NULL
    int ndim
    void *held                 # what a codec in Python has made, as long as its bytes are used
    void *exception            # what one has raised

cdef void workspace_free(Workspace *work) noexcept nogil
# Keeps a bytes-like object, and gives the place of its bytes, until the workspace is used again: their number.
cdef int64_t hold_bytes(Workspace *work, object made, const uint8_t **data) except -1
# Notes an exception: a code.
cdef int raised_in(Workspace *work, object exception, Status *status) noexcept
# The exception of a codec in Python, which is the caller's from now on, or None.
cdef object workspace_exception(Workspace *work)


cdef class Program:
    cdef Step steps[8]         # in the order of encoding
    cdef readonly int n_steps
    cdef int n_movers          # steps that move the content, which is all but checksums
    cdef bint ends_in_python   # what the last step makes stays where Python has made it
    cdef list segments
    cdef object decoder        # of blosc chunks that this build cannot decode, or None
    cdef readonly int64_t itemsize           # what a blosc header may say, 0: anything
    cdef bint is_blockwise     # blosc, then checksums behind the chunk: what scatter and gather can do
    # The most bytes that the object of a chunk of `n_bytes` decoded bytes can have.
    cdef int64_t max_encoded(self, int64_t n_bytes) noexcept nogil
    # Decodes an object into exactly `dst_nbytes` bytes. `src` is not changed.
    cdef int decode(self, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t dst_nbytes, int n_threads,
                    Workspace *work, Status *status) noexcept nogil
    # The same of an object whose content has `limit` bytes at most; how many it has, or -1 with `status` filled.
    cdef int64_t decode_within(self, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit, bint is_exact,
                               int n_threads, Workspace *work, Status *status) noexcept nogil
    # The same, with the elements brought to their places (`runs` at `dst`) block by block; `scratch` holds a chunk.
    # NOT_BLOCKWISE when the chain or the chunk does not allow it: nothing has been decoded then.
    cdef int scatter(self, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, const Runs *runs, uint8_t *dst,
                     uint8_t *scratch, Status *status) noexcept nogil
    # The same of a part of a chunk, which begins `offset` bytes behind its beginning; `only_few`: when
    # it lies in fewer than half of the blocks, else NOT_BLOCKWISE.
    cdef int select(self, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, const Copy *part, int64_t offset,
                    bint only_few, uint8_t *dst, Buffer *scratch, Status *status) noexcept nogil
    # Bytes of a block, where a chunk of items of `n_item` bytes can be decoded by blocks, else 0; and decodes some of
    # them, see `decode_blocks`.
    cdef int64_t blocksize_of(self, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes,
                              int64_t n_item) noexcept nogil
    cdef int decode_some(self, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, const uint8_t *needed,
                         uint8_t *dst, uint8_t *scratch, Status *status) noexcept nogil
    # Encodes a chunk whose items lie in `runs` at `src`, block by block, into `buffer`; `scratch` holds a chunk.
    # NOT_BLOCKWISE when the chain does not allow it, FAILED with `status` filled.
    cdef int64_t gather(self, const uint8_t *src, const Runs *runs, int64_t n_bytes, Buffer *buffer, uint8_t *scratch,
                        Status *status) noexcept nogil
    # Encodes a chunk; the object is at `encoded[0]`, in `buffer` or (no steps) the chunk itself. Its size, or -1.
    cdef int64_t encode(self, const uint8_t *src, int64_t n_bytes, Buffer *buffer, const uint8_t **encoded,
                        int n_threads, Workspace *work, Status *status) noexcept nogil

    cdef int64_t _bound_before(self, int i, int64_t n_bytes, bint *is_exact) noexcept nogil
    cdef int64_t _call(self, int i, bint is_encode, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit,
                       bint is_exact, const uint8_t **made, Workspace *work, Status *status) noexcept with gil
    cdef int64_t _verify(self, const uint8_t **src, int64_t n_bytes, int *n_left, Status *status) noexcept nogil
    cdef int64_t _undo(self, int i, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit, bint is_exact,
                       int n_threads, Workspace *work, Status *status) noexcept nogil
    cdef int64_t _do(self, int i, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity, int n_threads,
                     Workspace *work, Status *status) noexcept nogil
    cdef int64_t _seal(self, uint8_t **data, int64_t n_bytes, int *i) noexcept nogil
    cdef uint8_t *_room(self, int64_t chunk_nbytes, int n_between, int64_t *half, Workspace *work,
                        Status *status) noexcept nogil
    cdef int64_t _decode(self, const uint8_t[::1] encoded, uint8_t *dst, int64_t limit, bint is_exact,
                         object codecs) except -1
