"""The C libraries: no GIL, no state, every header checked before a byte is decoded.

zstd, zlib, gzip and lz4 are rows of the codec table. The declarations here are for blosc and the checksums.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t

from zcore.kernel.codec.blosc_header cimport BloscHeader
from zcore.kernel.codec.table cimport Contexts
from zcore.kernel.status cimport Status


cdef extern from *:
    """
    /* c-blosc shuffles by vectors on x86 alone. */
    #if defined(__x86_64__) || defined(__i386__)
    #define ZC_OWN_SHUFFLES 0
    #else
    #define ZC_OWN_SHUFFLES 1
    #endif
    """
    const bint ZC_OWN_SHUFFLES

# Whether zcore shuffles, where it can, even if a chunk is contiguous: ZC_OWN_SHUFFLES, unless a test has set it.
cdef bint own_shuffles


cdef enum Compressor:
    BLOSCLZ = 0
    LZ4 = 1
    LZ4HC = 2
    SNAPPY = 3
    ZLIB = 4
    ZSTD = 5


cdef enum:
    BLOSC_OVERHEAD = 16                 # maximum growth of a blosc chunk over its content
    BLOSC_MAX_NBYTES = 2147483631       # INT_MAX - 16, the maximum content of one chunk


# zlib's checksums.
cdef uint32_t crc32(const uint8_t *data, int64_t n_bytes) noexcept nogil
cdef uint32_t adler32(const uint8_t *data, int64_t n_bytes) noexcept nogil


# Decodes one chunk of exactly `dst_nbytes` decoded bytes. `itemsize` < 1: any typesize passes.
cdef int blosc_decode(const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t dst_nbytes, int64_t itemsize,
                      int n_threads, Status *status) noexcept nogil
# Encodes into `dst` of at least n_bytes + BLOSC_OVERHEAD bytes; returns the stored size, or -1 with `status` filled.
cdef int64_t blosc_encode(const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity, int compressor,
                          int clevel, int shuffle, int64_t typesize, int64_t blocksize, int n_threads,
                          Status *status) noexcept nogil
# Whether blosc's format number `fmt` (bits 5-7 of a chunk's flags) has a decoder for the function below.
cdef bint has_decoder(int fmt) noexcept nogil
# Decodes block `block` of a chunk that `check_blocks` has checked, without unshuffling: its streams, one behind the
# other. OK, or a code.
cdef int decode_streams(const uint8_t *src, const BloscHeader *header, int64_t block, uint8_t *dst,
                        Status *status) noexcept nogil
# Encodes one stream of a block by an encoder of zstd, or with NULL by LZ4, as c-blosc does at that level (1 to 9):
# returns its size, 0 when it does not fit into `capacity`, or -1 if zstd fails, which it does without memory.
cdef int64_t encode_stream(void *zstd, int clevel, const uint8_t *src, int64_t n_bytes, uint8_t *dst,
                           int64_t capacity) noexcept nogil
# The size that c-blosc is asked for, of a block or of a stream of it, if nobody has asked for one; 0: it chooses.
cdef int64_t own_blocksize(int compressor, int clevel, int shuffle, int64_t typesize) noexcept nogil
# The size of the blocks of a long chunk that c-blosc makes of such a size, at levels above 0.
cdef int64_t made_blocksize(int compressor, int clevel, int64_t typesize, int64_t asked) noexcept nogil
# Returns the encoder of a thread, with a level of zstd and with or without zstd's checksum; NULL without memory.
cdef void *zstd_encoder(Contexts *contexts, int level, bint checksum) noexcept nogil
cdef void zstd_release(Contexts *contexts) noexcept nogil
# The level of zstd that c-blosc takes for one of its own.
cdef int zstd_level(int clevel) noexcept nogil
# blosc's number of the format that such a compressor writes; -1: its chunks are not merged block by block.
cdef int format_of(int compressor) noexcept nogil
