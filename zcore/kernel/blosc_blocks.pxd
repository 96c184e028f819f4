"""Blosc chunks block by block, straight between their streams and strided memory.

A block is some hundred kilobytes and stays in the CPU's cache while it is decoded and its elements go to their places;
a whole chunk does not.
"""
from libc.stdint cimport int64_t, uint8_t

from zcore.kernel.copy cimport MAX_NDIM, Copy
from zcore.kernel.fileio cimport Buffer
from zcore.kernel.status cimport Status


cdef enum:
    NOT_BLOCKWISE = -1         # the chunk has to be decoded, or encoded, as a whole

cdef struct Runs:              # where the items of a chunk, in their order, lie in the caller's memory
    int64_t itemsize
    int64_t n_items            # of a run, which is contiguous
    int ndim                   # the dimensions in which runs follow each other
    int64_t shape[MAX_NDIM]
    int64_t strides[MAX_NDIM]


# Describes a whole chunk in C order; shape and byte strides have `ndim` numbers.
cdef void runs_init(Runs *runs, int ndim, const int64_t *shape, const int64_t *strides, int64_t itemsize) noexcept nogil
# Decodes a chunk of `dst_nbytes` decoded bytes to `dst`. `scratch` holds a chunk. Makes all checks of blosc_decode.
cdef int scatter_chunk(const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, int64_t itemsize, const Runs *runs,
                       uint8_t *dst, uint8_t *scratch, Status *status) noexcept nogil
# Whether it is worth while to decode a chunk, or that part of it, block by block. Only its header is looked at, before
# anybody has verified it; a damaged one is for those who decode.
cdef bint is_blockwise(const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, int64_t itemsize, int64_t item_nbytes,
                       const Copy *part, int64_t offset, bint only_few) noexcept nogil
# Brings a part of a chunk to `dst`, and decodes only the blocks in which it lies. `part` is in the order of the chunk,
# as `part_init` makes it, and begins `offset` bytes behind its beginning.
cdef void part_init(Copy *part) noexcept nogil
cdef int select_chunk(const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, int64_t itemsize, const Copy *part,
                      int64_t offset, uint8_t *dst, Buffer *scratch, Status *status) noexcept nogil
# Bytes of a block of a chunk that can be decoded by blocks; 0 of others. Only its header is looked at, as above.
cdef int64_t block_nbytes(const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, int64_t itemsize,
                          int64_t item_nbytes) noexcept nogil
# Decodes those blocks that are `needed`, a flag for each, to where they lie in the chunk at `dst`; `scratch` holds two.
cdef int decode_blocks(const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, int64_t itemsize,
                       const uint8_t *needed, uint8_t *dst, uint8_t *scratch, Status *status) noexcept nogil
# Encodes the items of a chunk of `n_bytes` bytes at `src` by LZ4 with byte shuffle into `dst`, which holds n_bytes +
# BLOSC_OVERHEAD bytes; `scratch` holds a chunk. The stored size, or NOT_BLOCKWISE.
cdef int64_t gather_chunk(const uint8_t *src, const Runs *runs, int64_t n_bytes, uint8_t *dst, int clevel,
                          uint8_t *scratch) noexcept nogil
# Whether all items have the value `value`.
cdef bint runs_are_filled(const uint8_t *src, const Runs *runs, int64_t n_items, const char *value) noexcept nogil
