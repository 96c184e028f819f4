# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Decoding of blosc chunks block by block.

Compiled because it is the inner loop of every read whose chunks are not contiguous in the result. c-blosc decodes a
chunk as a whole; its elements then travel through memory twice more on the way to their places. Here the streams of a
block are decompressed into a scratch that stays in the cache, and undoing the shuffle moves the elements from there to
where they belong.

Chunks that this module does not handle (bit shuffle, compressors without a decoder of their own, sizes that do not fall
on whole items) are NOT_BLOCKWISE and go through c-blosc.
"""
from libc.string cimport memcpy

from zcore.kernel.blosc_header cimport (
    FLAG_BITSHUFFLE, FLAG_MEMCPY, FLAG_SHUFFLE, FORMAT_LZ4, FORMAT_ZLIB, FORMAT_ZSTD, HEADER_NBYTES, BloscHeader,
    check_blocks, check_header, n_blocks, n_streams,
)
from zcore.kernel.compress cimport decode_stream
from zcore.kernel.shuffle cimport planes_to_items
from zcore.kernel.status cimport BLOSC_DECODE, OK, Status, fail


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
