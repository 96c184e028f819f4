"""A codec chain lowered to C: the steps that encode a chunk's elements to the bytes of its object, and decode them."""
from libc.stdint cimport int64_t, uint8_t

from zcore.kernel.codec.table cimport BlockFunctions, Step, Workspace
from zcore.kernel.io.files cimport Buffer
from zcore.kernel.status cimport Status
from zcore.kernel.strided.copy cimport Copy, Runs


cdef enum:
    MAX_STEPS = 8


cdef class Program:
    cdef Step steps[8]         # in the order of encoding
    cdef readonly int n_steps
    cdef int n_movers          # steps that move the content: all but checksums
    cdef bint ends_in_make     # the last step returns its own memory, which is not copied
    cdef Step fallback         # for chunks that the linked library cannot decode; its `codec` is NULL if there is none
    cdef list kept             # parameters: a step may point to their objects
    cdef readonly bint is_native             # no step runs in Python
    cdef readonly bint decodes_natively      # the same of decoding alone
    cdef readonly int64_t itemsize           # itemsize that a blosc header may name; 0: any
    # If one codec with blocks is followed by checksums only: its functions for scatter and gather. Otherwise NULL.
    cdef const BlockFunctions *blocks
    # Maximum size of the object of a chunk of `n_bytes` decoded bytes.
    cdef int64_t max_encoded(self, int64_t n_bytes) noexcept nogil
    # Decodes an object into exactly `dst_nbytes` bytes. `src` is not changed.
    cdef int decode(self, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t dst_nbytes, int n_threads,
                    Workspace *work, Status *status) noexcept nogil
    # The same for an object whose content has at most `limit` bytes; returns their number, or -1 with `status` filled.
    cdef int64_t decode_within(self, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit, bint is_exact,
                               int n_threads, Workspace *work, Status *status) noexcept nogil
    # Decodes and moves the elements to their places (`runs` at `dst`) block by block; `scratch` holds a chunk.
    # NOT_BLOCKWISE if the chain or the chunk does not allow it; then nothing has been decoded.
    cdef int scatter(self, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, const Runs *runs, uint8_t *dst,
                     uint8_t *scratch, Status *status) noexcept nogil
    # The same for a part of a chunk, in the order of `copy_by_source`, from byte `offset` of the chunk on. With
    # `only_few`: NOT_BLOCKWISE unless the part lies in fewer than half of the blocks.
    cdef int select(self, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, const Copy *part, int64_t offset,
                    bint only_few, uint8_t *dst, Buffer *scratch, Status *status) noexcept nogil
    # Encodes a chunk whose items lie in `runs` at `src`, block by block, into `buffer`; `scratch` holds a chunk.
    # NOT_BLOCKWISE if the chain does not allow it, FAILED with `status` filled.
    cdef int64_t gather(self, const uint8_t *src, const Runs *runs, int64_t n_bytes, Buffer *buffer, uint8_t *scratch,
                        Workspace *work, Status *status) noexcept nogil
    # Puts `elements`, described by `part` as for `select`, into a stored chunk, and encodes only what changes. The
    # object is at `buffer`; returns its size, FAILED with `status` filled, or NOT_BLOCKWISE: the chunk must be decoded
    # as a whole. So it is if all decoded blocks hold only the item `fill` (NULL: no matter).
    cdef int64_t merge(self, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, const Copy *part, int64_t offset,
                       bint only_few, const uint8_t *elements, const uint8_t *fill, Buffer *buffer,
                       Status *status) noexcept nogil
    # Encodes a chunk; the object is at `encoded[0]`, in `buffer` or (no steps) the chunk itself. Its size, or -1.
    cdef int64_t encode(self, const uint8_t *src, int64_t n_bytes, Buffer *buffer, const uint8_t **encoded,
                        int n_threads, Workspace *work, Status *status) noexcept nogil

    # How many of some threads are worth their start inside a chunk of so many decoded bytes; at least 1.
    cdef int inner_threads(self, int64_t n_threads, int64_t n_bytes, bint encodes) noexcept nogil

    cdef int _add(self, Step *step, tuple spec) except -1
