"""The 16-byte header of a Blosc 1 chunk, and every check that needs no decoding."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from zcore.kernel.status cimport Status


cdef packed struct BloscHeader:
    uint8_t version            # of the chunk format; c-blosc 1.x writes 2
    uint8_t versionlz          # of the inner compressor's format
    uint8_t flags
    uint8_t typesize
    uint32_t nbytes            # decoded size
    uint32_t blocksize
    uint32_t cbytes            # stored size, header included


cdef enum:
    HEADER_NBYTES = 16
    FORMAT_VERSION = 2
    INNER_VERSION = 1          # of the streams of every compressor
    FLAG_SHUFFLE = 0x01
    FLAG_MEMCPY = 0x02
    FLAG_BITSHUFFLE = 0x04
    FLAG_NO_SPLIT = 0x10
    FORMAT_BLOSCLZ = 0
    FORMAT_LZ4 = 1
    FORMAT_SNAPPY = 2
    FORMAT_ZLIB = 3
    FORMAT_ZSTD = 4
    MAX_SPLITS = 16            # blosc.h: blocks of longer items are not split
    MIN_SPLIT_ITEMS = 128      # blosc.h, MIN_BUFFERSIZE
    MAX_BLOCK_NBYTES = 1 << 20     # of those that c-blosc and zcore make


# Reads the header into `header` in host byte order and makes the checks of sections B and C of the chunk format.
# `expected_nbytes` < 0 and `itemsize` < 1 skip the comparison with the metadata.
cdef int check_header(const uint8_t *data, int64_t n_bytes, int64_t expected_nbytes, int64_t itemsize,
                      BloscHeader *header, Status *status) noexcept nogil
# Walks the block table and the sizes of all streams; `header` has passed check_header.
cdef int check_blocks(const uint8_t *data, const BloscHeader *header, Status *status) noexcept nogil
# Both.
cdef int check_chunk(const uint8_t *data, int64_t n_bytes, int64_t expected_nbytes, int64_t itemsize,
                     BloscHeader *header, Status *status) noexcept nogil
cdef int64_t n_blocks(const BloscHeader *header) noexcept nogil
# Streams of block `block`: 1, or typesize when the block is split into byte planes.
cdef int n_streams(const BloscHeader *header, int64_t block) noexcept nogil
