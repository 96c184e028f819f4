# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Blosc chunks decoded and encoded block by block.

Compiled because it is the inner loop of every read and write whose chunks are not contiguous in the caller's array.
c-blosc takes a chunk as a whole; its elements then travel through memory twice more on the way to their places. Here
the streams of a block are decompressed into a scratch that stays in the cache, and undoing the shuffle moves the
elements from there to where they belong; encoding goes the same way back.

Chunks that this module does not handle (bit shuffle, compressors without a decoder of their own, sizes that do not fall
on whole items) are NOT_BLOCKWISE and go through c-blosc.
"""
from libc.string cimport memcpy

from zcore.kernel.blosc_header cimport (
    FLAG_BITSHUFFLE, FLAG_MEMCPY, FLAG_SHUFFLE, FORMAT_LZ4, FORMAT_ZLIB, FORMAT_ZSTD, HEADER_NBYTES, BloscHeader,
    check_blocks, check_header, n_blocks, n_streams,
)
from zcore.kernel.compress cimport decode_stream, encode_stream_lz4
from zcore.kernel.copy cimport is_filled
from zcore.kernel.shuffle cimport items_to_planes, planes_to_items
from zcore.kernel.status cimport BLOSC_DECODE, OK, Status, fail

cdef enum:
    # Bytes of a stream: one byte plane of a block. c-blosc chooses the same for LZ4 at its middle levels.
    STREAM_NBYTES = 1 << 17
    MAX_BLOCK_NBYTES = 1 << 20
    # Blosc splits blocks of items of up to 16 bytes, when a plane has 128 bytes.
    MAX_SPLITS = 16
    MIN_SPLIT_ITEMS = 128
    FORMAT_VERSION = 2
    FORMAT_VERSION_LZ4 = 1


cdef void runs_init(Runs *runs, int ndim, const int64_t *shape, const int64_t *strides,
                    int64_t itemsize) noexcept nogil:
    cdef int d = ndim - 1
    cdef int k
    runs.itemsize = itemsize
    runs.n_items = 1
    while d >= 0 and (shape[d] == 1 or strides[d] == itemsize * runs.n_items):
        runs.n_items *= shape[d]
        d -= 1
    runs.ndim = d + 1
    for k in range(runs.ndim):
        runs.shape[k] = shape[k]
        runs.strides[k] = strides[k]


cdef inline int64_t _run_offset(const Runs *runs, int64_t run) noexcept nogil:
    """Byte offset of a run, counted in the order of the chunk."""
    cdef int64_t offset = 0
    cdef int64_t rest
    cdef int d = runs.ndim - 1
    while d > 0:
        rest = run // runs.shape[d]
        offset += (run - rest * runs.shape[d]) * runs.strides[d]
        run = rest
        d -= 1
    if d == 0:
        offset += run * runs.strides[0]
    return offset


cdef void _scatter(const Runs *runs, int64_t first, int64_t n, const uint8_t *block, bint is_shuffled,
                   uint8_t *dst) noexcept nogil:
    """Bring the `n` items of a block, which begins with item `first` of the chunk, to their places."""
    cdef int64_t done = 0
    cdef int64_t run = first // runs.n_items
    cdef int64_t inside = first - run * runs.n_items
    cdef int64_t count
    cdef uint8_t *to
    while done < n:
        count = min(runs.n_items - inside, n - done)
        to = dst + _run_offset(runs, run) + inside * runs.itemsize
        if is_shuffled:
            planes_to_items(block + done, n, to, count, runs.itemsize)
        else:
            memcpy(to, block + done * runs.itemsize, count * runs.itemsize)
        done += count
        run += 1
        inside = 0


cdef inline int64_t _load_i32(const uint8_t *p) noexcept nogil:
    return p[0] | (<int64_t>p[1] << 8) | (<int64_t>p[2] << 16) | (<int64_t>p[3] << 24)


cdef int scatter_chunk(const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, int64_t itemsize, const Runs *runs,
                       uint8_t *dst, uint8_t *scratch, Status *status) noexcept nogil:
    cdef BloscHeader header
    cdef int64_t block
    cdef int64_t n
    cdef int64_t n_stream
    cdef int64_t n_stored
    cdef int64_t offset
    cdef int fmt
    cdef int stream
    cdef int streams
    cdef bint is_shuffled
    cdef int code = check_header(src, n_bytes, dst_nbytes, itemsize, &header, status)
    if code != OK:
        return code
    code = check_blocks(src, &header, status)
    if code != OK:
        return code
    if header.flags & FLAG_MEMCPY:
        _scatter(runs, 0, dst_nbytes // runs.itemsize, src + HEADER_NBYTES, False, dst)
        return OK
    fmt = header.flags >> 5
    is_shuffled = header.flags & FLAG_SHUFFLE and header.typesize > 1
    if (header.flags & FLAG_BITSHUFFLE or header.blocksize % runs.itemsize != 0
            or (is_shuffled and header.typesize != runs.itemsize)
            or (fmt != FORMAT_LZ4 and fmt != FORMAT_ZSTD and fmt != FORMAT_ZLIB)):
        return NOT_BLOCKWISE
    for block in range(n_blocks(&header)):
        n = min(<int64_t>header.blocksize, dst_nbytes - block * header.blocksize)
        streams = n_streams(&header, block)
        n_stream = n // streams
        # check_blocks has walked the same table and the same sizes.
        offset = _load_i32(src + HEADER_NBYTES + 4 * block)
        for stream in range(streams):
            n_stored = _load_i32(src + offset)
            offset += 4
            if n_stored == n_stream:
                memcpy(scratch + stream * n_stream, src + offset, n_stream)
            elif not decode_stream(fmt, src + offset, n_stored, scratch + stream * n_stream, n_stream):
                return fail(status, BLOSC_DECODE, offset, n_stream, -1)
            offset += n_stored
        _scatter(runs, block * header.blocksize // runs.itemsize, n // runs.itemsize, scratch, is_shuffled, dst)
    return OK


cdef void _gather(const Runs *runs, int64_t first, int64_t n, const uint8_t *src, bint shuffled,
                  uint8_t *block) noexcept nogil:
    """Collect `n` items of the chunk from item `first` on into a block; the inverse of `_scatter`."""
    cdef int64_t done = 0
    cdef int64_t run = first // runs.n_items
    cdef int64_t inside = first - run * runs.n_items
    cdef int64_t count
    cdef const uint8_t *source
    while done < n:
        count = min(runs.n_items - inside, n - done)
        source = src + _run_offset(runs, run) + inside * runs.itemsize
        if shuffled:
            items_to_planes(source, block + done, n, count, runs.itemsize)
        else:
            memcpy(block + done * runs.itemsize, source, count * runs.itemsize)
        done += count
        run += 1
        inside = 0


cdef inline void _store_i32(uint8_t *p, int64_t v) noexcept nogil:
    p[0] = v & 0xff
    p[1] = (v >> 8) & 0xff
    p[2] = (v >> 16) & 0xff
    p[3] = (v >> 24) & 0xff


cdef bint runs_are_filled(const uint8_t *src, const Runs *runs, int64_t n_items, const char *value) noexcept nogil:
    cdef int64_t run
    for run in range(n_items // runs.n_items):
        if not is_filled(<const char *>src + _run_offset(runs, run), runs.n_items, value, runs.itemsize):
            return False
    return True


cdef int64_t gather_chunk(const uint8_t *src, const Runs *runs, int64_t n_bytes, uint8_t *dst, int clevel,
                          uint8_t *scratch) noexcept nogil:
    cdef int64_t blocksize = min(STREAM_NBYTES * runs.itemsize, <int64_t>MAX_BLOCK_NBYTES)
    cdef int64_t limit = n_bytes + HEADER_NBYTES
    cdef int64_t n_all
    cdef int64_t block
    cdef int64_t n
    cdef int64_t n_stream
    cdef int64_t size
    cdef int64_t offset
    cdef int streams
    cdef int stream
    blocksize = min(blocksize - blocksize % runs.itemsize, n_bytes)
    if not 1 < runs.itemsize <= MAX_SPLITS or blocksize // runs.itemsize < MIN_SPLIT_ITEMS or not 0 < clevel <= 9:
        return NOT_BLOCKWISE
    n_all = (n_bytes + blocksize - 1) // blocksize
    dst[0] = FORMAT_VERSION
    dst[1] = FORMAT_VERSION_LZ4
    dst[2] = FLAG_SHUFFLE | FORMAT_LZ4 << 5
    dst[3] = <uint8_t>runs.itemsize
    _store_i32(dst + 4, n_bytes)
    _store_i32(dst + 8, blocksize)
    offset = HEADER_NBYTES + 4 * n_all
    for block in range(n_all):
        n = min(blocksize, n_bytes - block * blocksize)
        # The last block is not split when it is shorter than the others.
        streams = <int>runs.itemsize if n == blocksize else 1
        n_stream = n // streams
        _gather(runs, block * blocksize // runs.itemsize, n // runs.itemsize, src, True, scratch)
        if offset < limit:
            _store_i32(dst + HEADER_NBYTES + 4 * block, offset)
        for stream in range(streams):
            # The chunk may not become longer than its content with a header.
            size = min(n_stream - 1, limit - offset - 4)
            if size > 0:
                size = encode_stream_lz4(scratch + stream * n_stream, n_stream, dst + offset + 4, size, 10 - clevel)
            if size <= 0:
                size = n_stream
                if offset + 4 + size > limit:
                    break
                memcpy(dst + offset + 4, scratch + stream * n_stream, n_stream)
            _store_i32(dst + offset, size)
            offset += 4 + size
        else:
            continue
        break
    else:
        _store_i32(dst + 12, offset)
        return offset
    # Nothing gained: stored as it is.
    dst[2] |= FLAG_MEMCPY
    _gather(runs, 0, n_bytes // runs.itemsize, src, False, dst + HEADER_NBYTES)
    _store_i32(dst + 12, limit)
    return limit
