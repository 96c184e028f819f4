# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Compression and decompression by the C libraries, without the GIL.

Only this module links the libraries and calls them. c-blosc is used in its context-free functions, which share no state
between threads. They trust the header of a chunk, so `blosc_header` checks it first.

c-blosc starts its threads anew for each chunk, all of them beside the caller's, which waits. So it works in one thread
here, and several threads share the blocks of a chunk without it: each encodes some of them as a chunk of its own, which
are then put together, or decodes the blocks that it takes. The bytes are those of c-blosc in one thread.
"""
from cpython.buffer cimport PyBUF_READ
from cpython.bytearray cimport PyByteArray_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memmove, memset

from zcore import errors
from zcore.kernel.atomics cimport zc_add, zc_load
from zcore.kernel.codec cimport libs
from zcore.kernel.codec.blosc_header cimport (
    FLAG_BITSHUFFLE, FLAG_MEMCPY, FLAG_SHUFFLE, FORMAT_LZ4, FORMAT_SNAPPY, FORMAT_ZLIB, FORMAT_ZSTD,
    HEADER_NBYTES, MAX_BLOCK_NBYTES, MAX_SPLITS, BloscHeader, check_blocks, check_chunk, check_header, n_blocks,
    n_streams,
)
from zcore.kernel.codec.shuffle cimport bitshuffle_block, shuffle_block, unbitshuffle_block, unshuffle_block
from zcore.kernel.codec.table cimport (
    CodecFunctions, Contexts, Step, Workspace, add_codec, codec_row, copy_bytes, raised_in, stream_bound,
)
from zcore.kernel.memory cimport Bytes, zc_new
from zcore.kernel.numbers cimport load_u32, store_u32
from zcore.kernel.status cimport (
    BLOSC_DECODE, BLOSC_ENCODE, BLOSC_LACKS, BLOSC_SNAPPY, NO_MEMORY, OK, STREAM_DAMAGED, STREAM_ENCODE,
    STREAM_LONG, STREAM_SHORT, STREAM_TRAILING, Status, fail, make_error, status_clear,
)

cdef extern from "threads.h" nogil:
    const int ZC_MAX_THREADS
    void zc_run_together(int n, void (*work)(void *) noexcept nogil, void *context)

COMPRESSORS = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")

_LINKED = libs.blosc_list_compressors().decode().split(",")

# Version of the linked libdeflate, or "": then zlib does all gzip and zlib.
LIBDEFLATE = libs.ZC_LIBDEFLATE_VERSION.decode()

own_shuffles = ZC_OWN_SHUFFLES

cdef const char *_NAMES[6]
_NAMES[:] = ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"]

cdef enum:
    # A block up to this size is decoded without asking for memory.
    SMALL_BLOCK_NBYTES = 1 << 16
    # How c-blosc chooses the size of blocks: a unit that the level doubles, the smallest block of all, and limits of
    # blocks that are split.
    BLOCK_NBYTES = 1 << 15
    # Blocks of zstd up to level 3, up to level 8, and at level 9. c-blosc chooses a quarter or half of this at levels
    # 1, 2, 4 and 5. Longer blocks are faster in both directions, and most are smaller. At levels 1 and 2 of noise, zstd
    # looks much longer for matches in longer blocks than these.
    FAST_ZSTD_NBYTES = 1 << 17
    ZSTD_NBYTES = 1 << 19
    LAST_ZSTD_NBYTES = 1 << 20
    # Bytes of a block of LZ4 with byte shuffle for each byte of an item. c-blosc chooses the same at its middle levels.
    LZ4_NBYTES = 1 << 17
    LEAST_BLOCK_NBYTES = 128
    MIN_BLOCK_NBYTES = 1 << 16
    MAX_STREAM_NBYTES = 1 << 18
    NOT_DONE = -2              # of `_in_python`: the library here is to do it
    # zlib counts its input and output in 32 bits.
    ZLIB_PART_NBYTES = 1 << 30
    Z_FINISH = 4
    Z_OK = 0
    Z_STREAM_END = 1
    Z_BUF_ERROR = -5
    OTHER_FRAME = -100                 # no result of zlib; `make_error` knows it
    Z_DEFLATED = 8
    ZLIB_WINDOW_BITS = 15
    GZIP_WINDOW_BITS = 15 + 16
    ZLIB_MEMORY_LEVEL = 8              # the default
    ZSTD_RESET_ALL = 3
    ZSTD_LEVEL = 100
    ZSTD_CHECKSUM = 201
    ZSTD_TOO_SMALL = 70                # the code of "destination buffer is too small"
    LZ4_HEADER_NBYTES = 4
    LZ4_OVERHEAD = 20                  # 16 of the block, 4 of the size before it
    LZ4_MAX_NBYTES = 0x7e000000

# Formats that the linked c-blosc decodes: constant after import.
cdef bint _available[8]
_available[:] = [name in _LINKED for name in ("blosclz", "lz4", "snappy", "zlib", "zstd", "", "", "")]

if libs.zc_provide() != 0:
    raise ImportError("the system's malloc, calloc and pthread_create cannot be found")


cdef int _fail(Status *status, int code, int64_t offset, int64_t expected, int64_t found) noexcept nogil:
    """Record a library's failure. A library may report missing memory as damage, so failed requests are asked first."""
    if libs.zc_has_failed():
        return fail(status, NO_MEMORY, 0, expected, 0)
    return fail(status, code, offset, expected, found)


cdef bint has_decoder(int fmt) noexcept nogil:
    return fmt == FORMAT_LZ4 or fmt == FORMAT_ZSTD or fmt == FORMAT_ZLIB


cdef int _decode_stream(int fmt, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t dst_nbytes,
                        Status *status) noexcept nogil:
    cdef unsigned long n = <unsigned long>dst_nbytes
    cdef bint is_decoded = False
    libs.zc_forget_failures()
    if fmt == FORMAT_LZ4:
        is_decoded = libs.LZ4_decompress_safe(<const char *>src, <char *>dst, <int>n_bytes,
                                              <int>dst_nbytes) == dst_nbytes
    elif fmt == FORMAT_ZSTD:
        # ZSTD_decompress returns an error as a number beyond any size.
        is_decoded = libs.ZSTD_decompress(dst, <size_t>dst_nbytes, src, <size_t>n_bytes) == <size_t>dst_nbytes
    elif fmt == FORMAT_ZLIB:
        is_decoded = libs.uncompress(dst, &n, src, <unsigned long>n_bytes) == 0 and n == <unsigned long>dst_nbytes
    return OK if is_decoded else _fail(status, BLOSC_DECODE, 0, dst_nbytes, -1)


cdef int decode_streams(const uint8_t *src, const BloscHeader *header, int64_t block, uint8_t *dst,
                        Status *status) noexcept nogil:
    cdef int64_t n = min(<int64_t>header.blocksize, <int64_t>header.nbytes - block * header.blocksize)
    cdef int streams = n_streams(header, block)
    cdef int64_t n_stream = n // streams
    cdef int64_t n_stored
    cdef int64_t offset = load_u32(src + HEADER_NBYTES + 4 * block)
    cdef int stream, code
    for stream in range(streams):
        n_stored = load_u32(src + offset)
        offset += 4
        if n_stored == n_stream:
            memcpy(dst + stream * n_stream, src + offset, n_stream)
        else:
            code = _decode_stream(header.flags >> 5, src + offset, n_stored, dst + stream * n_stream, n_stream, status)
            if code == BLOSC_DECODE:
                # The same message as for a chunk that c-blosc could not decode.
                return fail(status, BLOSC_DECODE, HEADER_NBYTES, header.nbytes, -1)
            if code != OK:
                return code
        offset += n_stored
    return OK


cdef int _decode_block(const uint8_t *src, const BloscHeader *header, int64_t block, uint8_t *dst, uint8_t *scratch,
                       Status *status) noexcept nogil:
    """Decode a block of a checked chunk to its place `dst`; `scratch` holds a block."""
    cdef int64_t n = min(<int64_t>header.blocksize, <int64_t>header.nbytes - block * header.blocksize)
    cdef bint is_shuffled = header.flags & FLAG_SHUFFLE and header.typesize > 1
    cdef bint is_in_place = not is_shuffled and not header.flags & FLAG_BITSHUFFLE
    cdef int code = decode_streams(src, header, block, dst if is_in_place else scratch, status)
    if code != OK or is_in_place:
        return code
    if is_shuffled:
        unshuffle_block(scratch, dst, n, header.typesize)
    else:
        unbitshuffle_block(scratch, dst, n, header.typesize)
    return OK


cdef int format_of(int compressor) noexcept nogil:
    return FORMAT_LZ4 if compressor == LZ4 else -1


cdef int64_t encode_stream(void *zstd, int clevel, const uint8_t *src, int64_t n_bytes, uint8_t *dst,
                           int64_t capacity) noexcept nogil:
    cdef size_t n
    if zstd == NULL:
        return libs.LZ4_compress_fast(<const char *>src, <char *>dst, <int>n_bytes, <int>capacity, 10 - clevel)
    n = libs.ZSTD_compress2(zstd, dst, <size_t>capacity, src, <size_t>n_bytes)
    if not libs.ZSTD_isError(n):
        return <int64_t>n
    return 0 if libs.ZSTD_getErrorCode(n) == ZSTD_TOO_SMALL else -1


cdef int zstd_level(int clevel) noexcept nogil:
    return 2 * clevel - 1 if clevel < 9 else libs.ZSTD_maxCLevel()


cdef int64_t own_blocksize(int compressor, int clevel, int shuffle, int64_t typesize) noexcept nogil:
    if compressor == ZSTD:
        return FAST_ZSTD_NBYTES if clevel <= 3 else ZSTD_NBYTES if clevel <= 8 else LAST_ZSTD_NBYTES
    return LZ4_NBYTES if compressor == LZ4 and shuffle == 1 and 1 < typesize <= MAX_SPLITS else 0


cdef int blosc_decode(const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t dst_nbytes, int64_t itemsize,
                      int n_threads, Status *status) noexcept nogil:
    cdef BloscHeader header
    cdef uint8_t *scratch
    cdef bint is_own
    cdef int result
    cdef int code = check_header(src, n_bytes, dst_nbytes, itemsize, &header, status)
    if code != OK:
        return code
    if header.nbytes == 0:
        return OK
    if header.flags & FLAG_MEMCPY:
        # Stored as is: the compressor in the header does not matter.
        memcpy(dst, src + HEADER_NBYTES, <size_t>dst_nbytes)
        return OK
    code = check_blocks(src, &header, status)
    if code != OK:
        return code
    if not _available[header.flags >> 5]:
        return fail(status, BLOSC_SNAPPY, 2, 0, header.flags >> 5)
    n_threads = min(n_threads, <int>min(n_blocks(&header), <int64_t>ZC_MAX_THREADS))
    is_own = own_shuffles and header.flags & (FLAG_SHUFFLE | FLAG_BITSHUFFLE)
    if (n_threads > 1 or is_own) and has_decoder(header.flags >> 5):
        scratch = <uint8_t *>zc_new(n_threads, header.blocksize)
        if scratch != NULL:
            code = _decode_together(src, &header, dst, scratch, n_threads, status)
            free(scratch)
            return code
    if not _has_room(&header):
        return fail(status, NO_MEMORY, 8, 2 * <int64_t>header.blocksize, 0)
    libs.zc_forget_failures()
    result = libs.zc_blosc_decompress(src, dst, <size_t>dst_nbytes)
    if result == libs.ZC_NO_MEMORY:
        return fail(status, NO_MEMORY, 8, 2 * <int64_t>header.blocksize, 0)
    if result != dst_nbytes:
        return _fail(status, BLOSC_DECODE, 16, dst_nbytes, result)
    return OK


cdef bint _has_room(const BloscHeader *header) noexcept nogil:
    """Whether there is memory for two blocks, whose size in the header of a damaged chunk may be huge.

    c-blosc gets the memory that is freed here again. A c-blosc of the system does not check whether its request for
    memory succeeds.
    """
    cdef void *room
    if header.blocksize <= SMALL_BLOCK_NBYTES:
        return True
    room = zc_new(2 * <int64_t>header.blocksize + 4 * <int64_t>header.typesize + 4096, 1)
    free(room)
    return room != NULL


cdef struct Decoding:          # a chunk of which threads decode the blocks
    const uint8_t *src
    const BloscHeader *header
    uint8_t *dst
    uint8_t *scratch           # a block for each thread
    int64_t n_threads          # threads, blocks and failures so far; no order, as the caller waits for the threads
    int64_t n_begun
    int64_t n_failed
    Status *status


cdef void _decode_some(void *of) noexcept nogil:
    cdef Decoding *all = <Decoding *>of
    cdef uint8_t *scratch = all.scratch + zc_add(&all.n_threads, 1) * <int64_t>all.header.blocksize
    cdef int64_t n_all = n_blocks(all.header)
    cdef int64_t block = zc_add(&all.n_begun, 1)
    cdef Status status
    status_clear(&status)
    while block < n_all and zc_load(&all.n_failed) == 0:
        if _decode_block(all.src, all.header, block, all.dst + block * <int64_t>all.header.blocksize, scratch,
                         &status) != OK and zc_add(&all.n_failed, 1) == 0:
            all.status[0] = status
        block = zc_add(&all.n_begun, 1)


cdef int _decode_together(const uint8_t *src, const BloscHeader *header, uint8_t *dst, uint8_t *scratch,
                          int n_threads, Status *status) noexcept nogil:
    cdef Decoding all
    memset(&all, 0, sizeof(all))
    all.src, all.header, all.dst, all.scratch, all.status = src, header, dst, scratch, status
    zc_run_together(n_threads, _decode_some, &all)
    return status.code


cdef struct Piece:             # blocks of a chunk that one thread encodes as a chunk of its own
    int64_t at                 # first byte in the content, and their number
    int64_t n_bytes
    uint8_t *dst
    int64_t capacity
    int64_t n_stored           # not positive if it fails, or would not fit

cdef struct Encoding:          # a chunk of which threads encode the pieces
    const uint8_t *src
    int compressor
    int clevel
    int shuffle
    int64_t typesize
    int64_t asked              # size of a block, or of a stream of it, that c-blosc gets; 0: it chooses
    int64_t blocksize          # what it makes of that
    int64_t n_begun            # no order, as above
    int n_pieces
    Piece pieces[64]


cdef int _call(const Encoding *all, int shuffle, const uint8_t *src, int64_t n_bytes, uint8_t *dst,
               int64_t capacity) noexcept nogil:
    return libs.zc_blosc_compress(all.clevel, shuffle, <size_t>all.typesize, <size_t>n_bytes, src, dst,
                                  <size_t>capacity, _NAMES[all.compressor], <size_t>all.asked)


cdef int _compress(const Encoding *all, const uint8_t *src, int64_t n_bytes, uint8_t *dst,
                   int64_t capacity) noexcept nogil:
    """Encode by c-blosc, which gets what zcore has shuffled where it has no vectors. Return its result."""
    cdef int64_t blocksize = min(all.blocksize, n_bytes)
    cdef bint is_own = own_shuffles and all.shuffle > 0 and blocksize > 0 and (all.shuffle == 2 or all.typesize > 1)
    cdef uint8_t *shuffled = <uint8_t *>zc_new(n_bytes, 1) if is_own else NULL
    cdef int64_t at = 0
    cdef int64_t n
    cdef int result
    if shuffled == NULL:
        return _call(all, all.shuffle, src, n_bytes, dst, capacity)
    while at < n_bytes:
        n = min(blocksize, n_bytes - at)
        if all.shuffle == 2:
            bitshuffle_block(src + at, shuffled + at, n, all.typesize)
        else:
            shuffle_block(src + at, shuffled + at, n, all.typesize)
        at += n
    result = _call(all, 0, shuffled, n_bytes, dst, capacity)
    free(shuffled)
    if result > 0 and load_u32(dst + 8) != blocksize:
        # c-blosc makes other blocks than were shuffled.
        return _call(all, all.shuffle, src, n_bytes, dst, capacity)
    if result > 0:
        dst[2] |= FLAG_BITSHUFFLE if all.shuffle == 2 else FLAG_SHUFFLE
        if dst[2] & FLAG_MEMCPY:
            memcpy(dst + HEADER_NBYTES, src, n_bytes)
    return result


cdef void _encode_some(void *of) noexcept nogil:
    cdef Encoding *all = <Encoding *>of
    cdef Piece *piece
    cdef int64_t i = zc_add(&all.n_begun, 1)
    while i < all.n_pieces:
        piece = &all.pieces[i]
        piece.n_stored = _compress(all, all.src + piece.at, piece.n_bytes, piece.dst, piece.capacity)
        i = zc_add(&all.n_begun, 1)


cdef int64_t _encode_together(Encoding *all, int64_t n_bytes, uint8_t *dst, int n_threads) noexcept nogil:
    """Return the stored size, or 0 if the pieces do not make a chunk: then it does not gain by compression."""
    # The last block, if it is shorter than the others, is not split as they are. A piece of its own would split it.
    cdef int64_t n_whole = n_bytes // all.blocksize
    cdef int64_t n_all = (n_bytes + all.blocksize - 1) // all.blocksize
    cdef int64_t offset = HEADER_NBYTES + 4 * n_all
    cdef int64_t n_done = 0
    cdef int64_t n, first, i, k
    cdef uint8_t *at
    cdef Piece *piece
    cdef uint8_t header[16]
    all.n_pieces = n_threads
    all.n_begun = 0
    for k in range(n_threads):
        piece = &all.pieces[k]
        piece.at = k * n_whole // n_threads * all.blocksize
        piece.n_bytes = (k + 1) * n_whole // n_threads * all.blocksize - piece.at
        if k == n_threads - 1:
            piece.n_bytes = n_bytes - piece.at
        n = (piece.n_bytes + all.blocksize - 1) // all.blocksize
        piece.capacity = piece.n_bytes - 4 * n
        # The content of the first one is where it stays.
        piece.dst = dst + 4 * (n_all - n) if k == 0 else at
        at = piece.dst + piece.capacity
    zc_run_together(n_threads, _encode_some, all)
    for k in range(n_threads):
        piece = &all.pieces[k]
        if piece.n_stored <= 0:
            return 0
        if k == 0:
            memcpy(header, piece.dst, HEADER_NBYTES)
        # Version, flags and item size, and the size of a block.
        if memcmp(header, piece.dst, 4) != 0 or load_u32(piece.dst + 8) != all.blocksize:
            return 0
        n = (piece.n_bytes + all.blocksize - 1) // all.blocksize
        first = HEADER_NBYTES + 4 * n
        for i in range(n):
            at = piece.dst + HEADER_NBYTES + 4 * i
            store_u32(dst + HEADER_NBYTES + 4 * (n_done + i), <uint32_t>(load_u32(at) + offset - first))
        memmove(dst + offset, piece.dst + first, piece.n_stored - first)
        n_done += n
        offset += piece.n_stored - first
    memcpy(dst, header, HEADER_NBYTES)
    store_u32(dst + 4, n_bytes)
    store_u32(dst + 12, offset)
    return offset


cdef int64_t _chosen_blocksize(int compressor, int clevel) noexcept nogil:
    """Return the size that c-blosc takes for a long chunk if it is asked for none."""
    return <int64_t>BLOCK_NBYTES << min(clevel - 1, 3) + (clevel >= 6) >> (compressor not in (LZ4HC, ZLIB))


cdef int64_t made_blocksize(int compressor, int clevel, int64_t typesize, int64_t asked) noexcept nogil:
    cdef int64_t blocksize = asked if asked else _chosen_blocksize(compressor, clevel)
    if compressor != ZSTD and typesize <= MAX_SPLITS:
        # Each byte of the items makes a stream of its own.
        blocksize = min(max(min(blocksize, <int64_t>MAX_STREAM_NBYTES) * typesize, <int64_t>MIN_BLOCK_NBYTES),
                        <int64_t>MAX_BLOCK_NBYTES)
    return blocksize - blocksize % typesize


cdef int64_t blosc_encode(const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity, int compressor,
                          int clevel, int shuffle, int64_t typesize, int64_t blocksize, int n_threads,
                          Status *status) noexcept nogil:
    cdef Encoding all
    cdef int64_t n
    cdef int result
    if n_bytes > BLOSC_MAX_NBYTES:
        fail(status, BLOSC_ENCODE, 0, n_bytes, -1)
        return -1
    if compressor == SNAPPY and not _available[FORMAT_SNAPPY]:
        fail(status, BLOSC_LACKS, 0, 0, FORMAT_SNAPPY)
        return -1
    # c-blosc stores item sizes above 255 as 1. Setting 1 here keeps the byte from wrapping.
    if typesize > 255:
        typesize = 1
    if blocksize == 0:
        blocksize = own_blocksize(compressor, clevel, shuffle, typesize)
    all.src, all.compressor, all.clevel, all.shuffle, all.typesize = src, compressor, clevel, shuffle, typesize
    all.asked = blocksize
    all.blocksize = 0
    if clevel > 0 and typesize > 0:
        # c-blosc makes one block of short chunks.
        all.blocksize = made_blocksize(compressor, clevel, typesize,
                                       blocksize if blocksize or n_bytes >= BLOCK_NBYTES else n_bytes)
    # c-blosc makes longer blocks of those that are asked for with less, and then the pieces have no room.
    if n_threads > 1 and all.blocksize >= LEAST_BLOCK_NBYTES:
        # Else c-blosc would choose another size for a short piece.
        all.asked = blocksize if blocksize else _chosen_blocksize(compressor, clevel)
        n_threads = <int>min(<int64_t>min(n_threads, <int>ZC_MAX_THREADS), n_bytes // all.blocksize)
        n = _encode_together(&all, n_bytes, dst, n_threads) if n_threads > 1 else 0
        if n > 0:
            return n
        all.asked = blocksize
    libs.zc_forget_failures()
    result = _compress(&all, src, n_bytes, dst, capacity)
    if result == libs.ZC_NO_MEMORY:
        fail(status, NO_MEMORY, 0, n_bytes, 0)
        return -1
    if result <= 0:
        _fail(status, BLOSC_ENCODE, 0, n_bytes, result)
        return -1
    return result


cdef struct Zstd:
    int level
    bint checksum              # adds zstd's own checksum


cdef int _configure_zstd(Step *step, tuple parameters) except -1:
    cdef Zstd *zstd = <Zstd *>step.parameters
    zstd.level, zstd.checksum = parameters
    return 0


cdef void zstd_release(Contexts *contexts) noexcept nogil:
    libs.ZSTD_freeDCtx(contexts.decoder)
    libs.ZSTD_freeCCtx(contexts.encoder)
    contexts.decoder = contexts.encoder = NULL


cdef int64_t _zstd_decode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit,
                          bint is_exact, Workspace *work, Status *status) noexcept nogil:
    # Accepts several frames, skippable frames, and frames without a content size. The memory that the decoder takes
    # does not depend on a frame's header: `dst` is the window.
    cdef Contexts *contexts = &work.contexts[step.codec.number]
    cdef size_t n
    cdef int error
    libs.zc_forget_failures()
    if contexts.decoder == NULL:
        contexts.decoder = libs.ZSTD_createDCtx()
        if contexts.decoder == NULL:
            fail(status, NO_MEMORY, 0, limit, 0)
            return -1
    n = libs.ZSTD_decompressDCtx(contexts.decoder, dst, <size_t>limit, src, <size_t>n_bytes)
    if libs.ZSTD_isError(n):
        error = libs.ZSTD_getErrorCode(n)
        if error == ZSTD_TOO_SMALL:
            fail(status, STREAM_LONG, 0, limit, limit + 1)
        else:
            _fail(status, STREAM_DAMAGED, 0, limit, -error)
        return -1
    return <int64_t>n


cdef void *zstd_encoder(Contexts *contexts, int level, bint checksum) noexcept nogil:
    if contexts.encoder == NULL:
        contexts.encoder = libs.ZSTD_createCCtx()
        if contexts.encoder == NULL:
            return NULL
    libs.ZSTD_CCtx_reset(contexts.encoder, ZSTD_RESET_ALL)
    libs.ZSTD_CCtx_setParameter(contexts.encoder, ZSTD_LEVEL, level)
    libs.ZSTD_CCtx_setParameter(contexts.encoder, ZSTD_CHECKSUM, checksum)
    return contexts.encoder


cdef int64_t _zstd_encode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity,
                          Workspace *work, Status *status) noexcept nogil:
    cdef const Zstd *zstd = <const Zstd *>step.parameters
    cdef void *encoder
    cdef size_t n
    cdef int error
    libs.zc_forget_failures()
    encoder = zstd_encoder(&work.contexts[step.codec.number], zstd.level, zstd.checksum)
    if encoder == NULL:
        fail(status, NO_MEMORY, 0, n_bytes, 0)
        return -1
    n = libs.ZSTD_compress2(encoder, dst, <size_t>capacity, src, <size_t>n_bytes)
    if libs.ZSTD_isError(n):
        error = libs.ZSTD_getErrorCode(n)
        _fail(status, STREAM_ENCODE, 0, n_bytes, -error)
        return -1
    return <int64_t>n


cdef CodecFunctions _zstd = codec_row(sizeof(Zstd), _configure_zstd, stream_bound, _zstd_encode, _zstd_decode)
_zstd.release = zstd_release
add_codec("zstd", &_zstd)


# RFC 1950, or RFC 1952 with any number of members.

cdef struct Deflate:
    int level
    bint is_gzip
    # Of faster libraries, called with the GIL; NULL without any. The program keeps them alive.
    void *inflate
    void *deflate


cdef int _configure_zlib(Step *step, tuple parameters) except -1:
    cdef Deflate *own = <Deflate *>step.parameters
    own.level, *functions = parameters
    own.is_gzip = step.codec == &_gzip
    if functions:
        inflate, deflate = functions
        step.decodes_in_python, step.encodes_in_python = inflate is not None, deflate is not None
        own.inflate = <void *>inflate if step.decodes_in_python else NULL
        own.deflate = <void *>deflate if step.encodes_in_python else NULL
    return 0


cdef int64_t _in_python(void *function, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit,
                        bint is_exact, bint encode, Workspace *work, Status *status) noexcept with gil:
    """Copy what a function makes of the bytes to `dst`; return its size, -1 for an exception, else `NOT_DONE`."""
    cdef int64_t n
    try:
        try:
            data = PyMemoryView_FromMemory(<char *>src, n_bytes, PyBUF_READ)
            try:
                made = (<object>function)(data) if encode else (<object>function)(data, limit, not is_exact)
            finally:
                # A traceback may keep `data` longer than the bytes live.
                data.release()
            if made is None:
                return NOT_DONE
            n = copy_bytes(made, dst, limit)
            return n if n == limit or (n < limit and not is_exact) else NOT_DONE
        except BaseException as exception:
            raised_in(work, exception, status)
            return -1
    except:  # noqa: E722 (the only clause that cannot raise itself)
        return -1


cdef int64_t _zlib_decode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit,
                          bint is_exact, Workspace *work, Status *status) noexcept nogil:
    cdef const Deflate *own = <const Deflate *>step.parameters
    cdef bint gzip = own.is_gzip
    cdef libs.z_stream stream
    cdef uint8_t beyond = 0
    cdef int64_t n_read = 0
    cdef int64_t n_written = 0
    cdef int64_t n_in, n_out
    cdef const char *version = libs.zlibVersion()
    cdef int result
    if own.inflate != NULL:
        n_out = _in_python(own.inflate, src, n_bytes, dst, limit, is_exact, False, work, status)
        if n_out != NOT_DONE:
            return n_out
    libs.zc_forget_failures()
    n_out = libs.zc_inflate(&work.contexts[step.codec.number].decoder, gzip, src, n_bytes, dst, limit)
    if n_out == limit or (n_out >= 0 and not is_exact):
        return n_out
    memset(&stream, 0, sizeof(stream))
    result = libs.inflateInit2_(&stream, GZIP_WINDOW_BITS if gzip else ZLIB_WINDOW_BITS, version, sizeof(stream))
    if result != Z_OK:
        fail(status, NO_MEMORY, 0, limit, 0)
        return -1
    while True:
        n_in = min(n_bytes - n_read, <int64_t>ZLIB_PART_NBYTES)
        # One byte of room beyond the limit distinguishes a stream that ends at the limit from a longer one.
        n_out = min(limit - n_written, <int64_t>ZLIB_PART_NBYTES) if n_written < limit else 1
        stream.next_in, stream.avail_in = src + n_read, <unsigned>n_in
        stream.next_out, stream.avail_out = dst + n_written if n_written < limit else &beyond, <unsigned>n_out
        result = libs.inflate(&stream, Z_FINISH)
        n_in -= stream.avail_in
        n_out -= stream.avail_out
        n_read += n_in
        n_written += n_out
        if n_written > limit:
            fail(status, STREAM_LONG, n_read, limit, n_written)
            break
        if result == Z_STREAM_END:
            if n_read == n_bytes:
                break
            if not (gzip and n_bytes - n_read >= 2 and src[n_read] == 0x1f and src[n_read + 1] == 0x8b):
                fail(status, STREAM_TRAILING, n_read, n_read, n_bytes)
                break
            libs.inflateReset(&stream)
        elif result == Z_BUF_ERROR and n_in == 0 and n_out == 0:
            fail(status, STREAM_SHORT, n_read, limit, n_bytes)
            break
        elif result != Z_OK and result != Z_BUF_ERROR:
            if _has_frame(src, n_bytes, not gzip):
                result = OTHER_FRAME
            _fail(status, STREAM_DAMAGED, n_read, limit, result)
            break
    libs.inflateEnd(&stream)
    return n_written if status.code == OK else -1


cdef bint _has_frame(const uint8_t *src, int64_t n_bytes, bint gzip) noexcept nogil:
    """Whether a stream begins as those of gzip do, or those of zlib."""
    if n_bytes < 2:
        return False
    if gzip:
        return src[0] == 0x1f and src[1] == 0x8b
    return src[0] & 15 == Z_DEFLATED and src[0] >> 4 < 8 and (src[0] << 8 | src[1]) % 31 == 0


cdef int64_t _zlib_encode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity,
                          Workspace *work, Status *status) noexcept nogil:
    cdef const Deflate *deflate = <const Deflate *>step.parameters
    cdef libs.z_stream stream
    cdef int64_t n_read = 0
    cdef int64_t n_written = 0
    cdef int64_t n_in, n_out
    cdef const char *version = libs.zlibVersion()
    cdef int window_bits = GZIP_WINDOW_BITS if deflate.is_gzip else ZLIB_WINDOW_BITS
    cdef int result
    libs.zc_forget_failures()
    memset(&stream, 0, sizeof(stream))
    # The header of a gzip member has no name and time 0, so the same chunk always makes the same object.
    result = libs.deflateInit2_(&stream, deflate.level, Z_DEFLATED, window_bits, ZLIB_MEMORY_LEVEL, 0, version,
                                sizeof(stream))
    if result != Z_OK:
        _fail(status, STREAM_ENCODE, 0, n_bytes, result)
        return -1
    while result == Z_OK:
        n_in = min(n_bytes - n_read, <int64_t>ZLIB_PART_NBYTES)
        n_out = min(capacity - n_written, <int64_t>ZLIB_PART_NBYTES)
        stream.next_in, stream.avail_in = src + n_read, <unsigned>n_in
        stream.next_out, stream.avail_out = dst + n_written, <unsigned>n_out
        result = libs.deflate(&stream, Z_FINISH if n_in == n_bytes - n_read else 0)
        n_read += n_in - stream.avail_in
        n_written += n_out - stream.avail_out
    libs.deflateEnd(&stream)
    if result != Z_STREAM_END:
        fail(status, STREAM_ENCODE, 0, n_bytes, result)
        return -1
    return n_written


cdef int64_t _deflate_encode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity,
                             Workspace *work, Status *status) noexcept nogil:
    cdef const Deflate *own = <const Deflate *>step.parameters
    cdef int64_t n = NOT_DONE
    if own.deflate != NULL:
        n = _in_python(own.deflate, src, n_bytes, dst, capacity, False, True, work, status)
    if n != NOT_DONE:
        return n
    if libs.ZC_LIBDEFLATE_VERSION[0] == 0:
        return _zlib_encode(step, src, n_bytes, dst, capacity, work, status)
    # The same chunk always makes the same object: the header of a gzip member has no name and time 0.
    n = libs.zc_deflate(&work.contexts[step.codec.number].encoder, own.level, own.is_gzip, src, n_bytes, dst, capacity)
    if n <= 0:
        fail(status, STREAM_ENCODE if n == 0 else NO_MEMORY, 0, n_bytes, n)
        return -1
    return n


cdef void _libdeflate_release(Contexts *contexts) noexcept nogil:
    libs.zc_deflate_free(contexts.decoder, contexts.encoder)
    contexts.decoder = contexts.encoder = NULL


cdef CodecFunctions _gzip = codec_row(sizeof(Deflate), _configure_zlib, stream_bound, _deflate_encode, _zlib_decode)
_gzip.release = _libdeflate_release
cdef CodecFunctions _zlib = _gzip
add_codec("gzip", &_gzip)
add_codec("zlib", &_zlib)


# numcodecs' framing: the decoded size in 4 bytes, little-endian, then one LZ4 block.

cdef struct Lz4:
    int acceleration


cdef int _configure_lz4(Step *step, tuple parameters) except -1:
    cdef Lz4 *lz4 = <Lz4 *>step.parameters
    lz4.acceleration, = parameters
    return 0


cdef int64_t _lz4_bound(const Step *step, int64_t n_bytes, bint *is_exact) noexcept nogil:
    is_exact[0] = False
    return n_bytes + n_bytes // 255 + LZ4_OVERHEAD


cdef int64_t _lz4_decode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit,
                         bint is_exact, Workspace *work, Status *status) noexcept nogil:
    cdef int64_t said
    cdef int n
    if n_bytes < LZ4_HEADER_NBYTES:
        fail(status, STREAM_SHORT, 0, limit, n_bytes)
        return -1
    said = load_u32(src)
    if said > limit:
        fail(status, STREAM_LONG, 0, limit, said)
        return -1
    n = -1
    if said <= LZ4_MAX_NBYTES and n_bytes - LZ4_HEADER_NBYTES <= LZ4_MAX_NBYTES + (LZ4_MAX_NBYTES >> 7):
        n = libs.LZ4_decompress_safe(<const char *>src + LZ4_HEADER_NBYTES, <char *>dst,
                                     <int>(n_bytes - LZ4_HEADER_NBYTES), <int>said)
    if n != said:
        fail(status, STREAM_DAMAGED, LZ4_HEADER_NBYTES, said, n)
        return -1
    return said


cdef int64_t _lz4_encode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity,
                         Workspace *work, Status *status) noexcept nogil:
    cdef int n = 0
    libs.zc_forget_failures()
    if n_bytes <= LZ4_MAX_NBYTES:
        # LZ4's size parameter is an int, and so is its bound.
        n = libs.LZ4_compress_fast(<const char *>src, <char *>dst + LZ4_HEADER_NBYTES, <int>n_bytes,
                                   <int>min(capacity - LZ4_HEADER_NBYTES, <int64_t>0x7fffffff),
                                   (<const Lz4 *>step.parameters).acceleration)
    if n <= 0:
        _fail(status, STREAM_ENCODE, 0, n_bytes, n)
        return -1
    store_u32(dst, <uint32_t>n_bytes)
    return n + LZ4_HEADER_NBYTES


cdef CodecFunctions _lz4 = codec_row(sizeof(Lz4), _configure_lz4, _lz4_bound, _lz4_encode, _lz4_decode)
add_codec("lz4", &_lz4)


ctypedef unsigned long (*Sum)(unsigned long sum, const unsigned char *data, unsigned n_bytes) noexcept nogil


cdef uint32_t crc32(const uint8_t *data, int64_t n_bytes) noexcept nogil:
    return _sum_of(libs.crc32, 0, data, n_bytes)


cdef uint32_t adler32(const uint8_t *data, int64_t n_bytes) noexcept nogil:
    return _sum_of(libs.adler32, 1, data, n_bytes)


cdef uint32_t _sum_of(Sum add, unsigned long value, const uint8_t *data, int64_t n_bytes) noexcept nogil:
    cdef int64_t done = 0
    cdef int64_t n
    while done < n_bytes:
        n = min(n_bytes - done, <int64_t>ZLIB_PART_NBYTES)
        value = add(value, data + done, <unsigned>n)
        done += n
    return <uint32_t>value


def compressor_code(str cname not None):
    """Return the code of a Blosc compressor name, for `Program`.

    Raises
    ------
    ValueError
        `cname` is none of `COMPRESSORS`.
    """
    try:
        return COMPRESSORS.index(cname)
    except ValueError:
        raise ValueError(f"blosc compressor {cname!r} is unknown, expected one of {', '.join(COMPRESSORS)}") from None


def use_own_shuffles(bint on=ZC_OWN_SHUFFLES):
    """Choose for tests whether contiguous chunks are shuffled as on machines that c-blosc has no vectors for."""
    global own_shuffles
    own_shuffles = on


def can_compress(str cname not None):
    """Return whether the linked c-blosc has the compressor `cname`.

    >>> can_compress("lz4")
    True
    """
    return cname in _LINKED


def blosc_decompress(chunk, out=None, *, int64_t itemsize=0, int n_threads=1):
    """Return the content of one Blosc 1 chunk: `zcore.blosc.decompress` for contiguous bytes."""
    cdef Status status
    cdef BloscHeader header
    cdef Bytes source = Bytes(chunk)
    cdef Bytes target
    status_clear(&status)
    if out is None:
        check_chunk(source.data, source.n, -1, itemsize, &header, &status)
        _check(&status, "decode")
        try:
            # Not bytearray(n), which writes zeros: untouched memory costs nothing if the chunk is damaged.
            out = PyByteArray_FromStringAndSize(NULL, header.nbytes)
        except MemoryError:
            fail(&status, NO_MEMORY, 0, header.nbytes, 0)
        _check(&status, "decode")
    target = Bytes(out, writable=True)
    with nogil:
        blosc_decode(source.data, source.n, target.data, target.n, itemsize, n_threads, &status)
    _check(&status, "decode")
    return out


cdef int _check(const Status *status, str direction) except -1:
    if status.code != OK:
        raise make_error(status, None, None, "blosc", direction, ())
    return 0


def blosc_compress(content, *, str cname not None="lz4", int clevel=5, int shuffle=1,
                   int64_t typesize=1, int64_t blocksize=0, int n_threads=1):
    """Return `content` as one Blosc 1 chunk, a `bytes`: `zcore.blosc.compress` for contiguous bytes."""
    cdef Bytes source = Bytes(content)
    cdef int64_t n_bytes = source.n
    cdef int code = compressor_code(cname)
    if not 0 <= clevel <= 9:
        raise ValueError(f"clevel is {clevel}, expected 0 to 9")
    if not 0 <= shuffle <= 2:
        raise ValueError(f"shuffle is {shuffle}, expected 0, 1 or 2")
    if typesize < 1:
        raise ValueError(f"typesize is {typesize}, expected at least 1")
    if blocksize < 0 or blocksize > BLOSC_MAX_NBYTES:
        raise ValueError(f"blocksize is {blocksize}, expected 0 to {BLOSC_MAX_NBYTES}")
    if n_bytes > BLOSC_MAX_NBYTES:
        raise ValueError(f"content has {n_bytes} bytes, a blosc chunk holds at most {BLOSC_MAX_NBYTES}")
    if not can_compress(cname):
        raise errors.UnsupportedError(f"the linked c-blosc has no compressor {cname}", feature=cname)
    cdef bytearray out = bytearray(n_bytes + BLOSC_OVERHEAD)
    cdef Bytes target = Bytes(out, writable=True)
    cdef int64_t n_stored
    cdef Status status
    status_clear(&status)
    with nogil:
        n_stored = blosc_encode(source.data, n_bytes, target.data, n_bytes + BLOSC_OVERHEAD, code, clevel, shuffle,
                                typesize, blocksize, n_threads, &status)
    _check(&status, "encode")
    return (<const char *>target.data)[:n_stored]


def zstd_levels():
    """Return the lowest and the highest level of zstd.

    >>> zstd_levels()
    (-131072, 22)
    """
    return libs.ZSTD_minCLevel(), libs.ZSTD_maxCLevel()


def library_versions():
    """Return a dict of the linked C libraries and their versions.

    The versions are asked at run time: a shared library may be newer than the headers.
    """
    cdef unsigned zstd = libs.ZSTD_versionNumber()
    return {
        "c-blosc": libs.blosc_get_version_string().decode(),
        "compressors": [*_LINKED],
        "zstd": f"{zstd // 10000}.{zstd // 100 % 100}.{zstd % 100}",
        "lz4": libs.LZ4_versionString().decode(),
        "zlib": libs.zlibVersion().decode(),
        "deflate": f"libdeflate {LIBDEFLATE}" if LIBDEFLATE else "zlib",
    }
