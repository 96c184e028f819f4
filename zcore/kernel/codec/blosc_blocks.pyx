# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""The codec blosc: whole chunks by c-blosc, and block by block between the streams and strided memory.

Compiled because it is the inner loop of every read and write whose chunks are not contiguous in the caller's array.
c-blosc decodes a chunk as a whole; its elements are then copied twice more. Here the streams of a block are
decompressed into scratch memory that stays in the CPU cache, and undoing the shuffle moves the elements from there to
their final places. Encoding goes the same way back.

Some chunks cannot be handled this way: compressors without a decoder of their own, sizes that are no multiple of the
item size, and with bit shuffle those that lie scattered. They are NOT_BLOCKWISE and go through c-blosc.
"""
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy

from zcore.kernel.codec.blosc_header cimport (
    FLAG_BITSHUFFLE, FLAG_MEMCPY, FLAG_NO_SPLIT, FLAG_SHUFFLE, FORMAT_LZ4, FORMAT_VERSION, FORMAT_ZSTD, HEADER_NBYTES,
    INNER_VERSION, MAX_BLOCK_NBYTES, MAX_SPLITS, MIN_SPLIT_ITEMS, BloscHeader, check_chunk, check_header, n_blocks,
    n_streams,
)
from zcore.kernel.codec.compress cimport (
    BLOSC_MAX_NBYTES, BLOSC_OVERHEAD, LZ4, LZ4HC, ZLIB, ZSTD, blosc_decode, blosc_encode, decode_streams,
    encode_stream, format_of, has_decoder, made_blocksize, own_blocksize, own_shuffles, zstd_encoder, zstd_level,
    zstd_release,
)
from zcore.kernel.codec.compress import compressor_code
from zcore.kernel.codec.table cimport (
    NOT_BLOCKWISE, BlockFunctions, CodecFunctions, Step, Workspace, add_codec, codec_row,
)
from zcore.kernel.strided.copy cimport MAX_NDIM, Copy, Runs, copy_run, is_filled, run_offset
from zcore.kernel.io.files cimport FAILED, Buffer, buffer_reserve
from zcore.kernel.codec.shuffle cimport (
    bitshuffle_block, items_to_planes, planes_to_items, unbitshuffle_block,
)
from zcore.kernel.memory cimport zc_new
from zcore.kernel.numbers cimport load_u32, store_u32
from zcore.kernel.status cimport BLOSC_NBYTES, OK, Status, fail, status_clear

cdef enum:
    # A row of a part costs some 30 ns, so a part has at most one row for this many bytes of the chunk.
    ROW_NBYTES = 512
    # From this step on, items are unshuffled one by one; below it, together with the items between them.
    SPARSE_STEP = 8
    # Fewer items are shuffled one by one.
    MIN_SHUFFLED = 16
    # Bytes of a chunk for each thread inside it: with fewer, to start a thread costs more than it saves. The first two
    # are for LZ4. Slower compressors need fewer, and zstd encodes a block for each thread.
    DECODE_NBYTES = 1 << 20
    ENCODE_NBYTES = 1 << 19
    SLOW_DECODE_NBYTES = 1 << 19
    SLOW_ENCODE_NBYTES = 1 << 17

cdef struct Blosc:
    int compressor             # a Compressor
    int level
    int shuffle                # 0 none, 1 bytes, 2 bits
    int64_t typesize           # bytes of an item
    int64_t blocksize          # 0: nobody has asked for a size


cdef inline void _move_items(const Runs *runs, int64_t first, int64_t n, uint8_t *block, bint is_shuffled,
                             uint8_t *memory, bint gathers) noexcept nogil:
    """Move the `n` items of a block, which begins with item `first` of the chunk, to their places in `memory`.

    With `gathers`, collect them from there into the block.
    """
    cdef int64_t done = 0
    cdef int64_t run = first // runs.n_items
    cdef int64_t inside = first - run * runs.n_items
    cdef int64_t count
    cdef uint8_t *place
    while done < n:
        count = min(runs.n_items - inside, n - done)
        place = memory + run_offset(runs, run) + inside * runs.itemsize
        if is_shuffled:
            if gathers:
                items_to_planes(place, block + done, n, count, runs.itemsize)
            else:
                planes_to_items(block + done, n, place, count, runs.itemsize)
        elif gathers:
            memcpy(block + done * runs.itemsize, place, count * runs.itemsize)
        else:
            memcpy(place, block + done * runs.itemsize, count * runs.itemsize)
        done += count
        run += 1
        inside = 0


cdef bint _has_decoder(const BloscHeader *header, int64_t itemsize) noexcept nogil:
    """Whether blocks hold whole items, and can be decoded one by one."""
    cdef bint is_shuffled = header.flags & FLAG_SHUFFLE and header.typesize > 1
    return (header.blocksize % itemsize == 0 and not (is_shuffled and header.typesize != itemsize)
            and has_decoder(header.flags >> 5))


cdef bint _is_blockwise(const Step *step, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, int64_t n_item,
                        const Copy *part, int64_t offset, bint only_few) noexcept nogil:
    cdef BloscHeader header
    cdef Status ignored
    cdef int64_t n_rows = 1
    cdef int d
    status_clear(&ignored)
    if check_header(src, n_bytes, dst_nbytes, step.itemsize, &header, &ignored) != OK:
        return True
    if part != NULL:
        for d in range(part.ndim - 1):
            n_rows *= part.shape[d]
        if n_rows > dst_nbytes // ROW_NBYTES + 1:
            return False
    if header.flags & FLAG_MEMCPY:
        return True
    # c-blosc is faster if most of a bit-shuffled chunk is needed.
    only_few = only_few or header.flags & FLAG_BITSHUFFLE
    return _has_decoder(&header, n_item) and not (
        only_few and (part == NULL or 2 * _n_needed(part, offset, header.blocksize) > n_blocks(&header)))


cdef int _scatter_chunk(const Step *step, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, const Runs *runs,
                        uint8_t *dst, uint8_t *scratch, Status *status) noexcept nogil:
    """Decode a chunk of `dst_nbytes` decoded bytes to `dst`, with all checks. `scratch` holds a chunk."""
    cdef BloscHeader header
    cdef int64_t block, n
    cdef bint is_shuffled
    cdef int code = check_chunk(src, n_bytes, dst_nbytes, step.itemsize, &header, status)
    if code != OK:
        return code
    if header.flags & FLAG_MEMCPY:
        _move_items(runs, 0, dst_nbytes // runs.itemsize, <uint8_t *>src + HEADER_NBYTES, False, dst, False)
        return OK
    if header.flags & FLAG_BITSHUFFLE or not _has_decoder(&header, runs.itemsize):
        return NOT_BLOCKWISE
    is_shuffled = header.flags & FLAG_SHUFFLE and header.typesize > 1
    for block in range(n_blocks(&header)):
        n = min(<int64_t>header.blocksize, dst_nbytes - block * header.blocksize)
        code = decode_streams(src, &header, block, scratch, status)
        if code != OK:
            return code
        _move_items(runs, block * header.blocksize // runs.itemsize, n // runs.itemsize, scratch, is_shuffled, dst,
                    False)
    return OK


cdef struct Rows:              # position of the walk through the rows of a part
    int64_t index[MAX_NDIM]
    int64_t at                 # offset of the row in the chunk
    int64_t to                 # offset of the row in the caller's memory
    int64_t n                  # items of a row
    int64_t itemsize
    int64_t swap
    int64_t stride             # bytes between the items in the chunk
    int64_t out                # the same in the caller's memory


cdef void _first_row(const Copy *part, int64_t offset, Rows *rows) noexcept nogil:
    cdef int d
    for d in range(part.ndim):
        rows.index[d] = 0
    rows.at = offset
    rows.to = 0
    rows.n = part.shape[part.ndim - 1]
    rows.itemsize, rows.swap = part.itemsize, part.swap
    rows.stride, rows.out = part.src_strides[part.ndim - 1], part.dst_strides[part.ndim - 1]


cdef bint _next_row(const Copy *part, Rows *rows) noexcept nogil:
    """Go to the next row, which lies behind this one in the chunk; return whether there is one."""
    cdef int d = part.ndim - 2
    while d >= 0:
        rows.index[d] += 1
        if rows.index[d] < part.shape[d]:
            rows.at += part.src_strides[d]
            rows.to += part.dst_strides[d]
            return True
        rows.at -= (part.shape[d] - 1) * part.src_strides[d]
        rows.to -= (part.shape[d] - 1) * part.dst_strides[d]
        rows.index[d] = 0
        d -= 1
    return False


cdef int64_t _n_needed(const Copy *part, int64_t offset, int64_t blocksize) noexcept nogil:
    """Return an upper bound of the number of blocks that the part needs."""
    cdef Rows rows
    cdef int64_t last = -1
    cdef int64_t low, high
    cdef int64_t n = 0
    _first_row(part, offset, &rows)
    while True:
        low = max(rows.at // blocksize, last + 1)
        high = (rows.at + (rows.n - 1) * rows.stride) // blocksize
        if high >= low:
            n += min(high - low + 1, rows.n)
            last = high
        if not _next_row(part, &rows):
            return n


cdef void _copy(const Rows *rows, int64_t count, const uint8_t *src, int64_t src_stride, uint8_t *dst,
                int64_t dst_stride) noexcept nogil:
    """Copy `count` items of a row, and swap their bytes where the two sides differ in that."""
    cdef Copy spec
    spec.ndim = 1
    spec.itemsize, spec.swap = rows.itemsize, rows.swap
    spec.shape[0], spec.src_strides[0], spec.dst_strides[0] = count, src_stride, dst_stride
    copy_run(&spec, <const char *>src, <char *>dst)


cdef void _move_row(const Rows *rows, const uint8_t *block, int64_t n_block, int64_t at, int64_t count,
                    bint is_shuffled, uint8_t *room, uint8_t *dst) noexcept nogil:
    """Move `count` items of a row to `dst`. The first is `at` bytes behind the begin of a block of `n_block` items.

    `room` holds a block.
    """
    cdef const uint8_t *source = block + at
    cdef int64_t itemsize = rows.itemsize
    cdef int64_t stride = rows.stride
    cdef int64_t step, i, j
    if is_shuffled:
        block += at // itemsize
        step = stride // itemsize
        if step == 1 and rows.out == itemsize and rows.swap <= 1:
            planes_to_items(block, n_block, dst, count, itemsize)
            return
        if step < SPARSE_STEP:
            planes_to_items(block, n_block, room, (count - 1) * step + 1, itemsize)
        else:
            for j in range(itemsize):
                source = block + j * n_block
                for i in range(count):
                    room[i * itemsize + j] = source[i * step]
            stride = itemsize
        source = room
    _copy(rows, count, source, stride, dst, rows.out)


cdef int _select_chunk(const Step *step, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, const Copy *part,
                       int64_t offset, uint8_t *dst, Buffer *scratch, Status *status) noexcept nogil:
    """Move a part of a chunk to `dst`; decode only the blocks that hold it."""
    cdef BloscHeader header
    cdef Rows rows
    cdef const uint8_t *items
    cdef int64_t blocksize, done, at, block, count
    cdef int64_t current = -1
    cdef int64_t n_block = 0
    cdef bint is_shuffled, is_stored
    cdef int code = check_chunk(src, n_bytes, dst_nbytes, step.itemsize, &header, status)
    if code != OK:
        return code
    is_stored = header.flags & FLAG_MEMCPY
    if not is_stored and not _has_decoder(&header, part.itemsize):
        return NOT_BLOCKWISE
    # A chunk that is stored as it is counts as one block, which needs no decoding.
    blocksize = dst_nbytes if is_stored else header.blocksize
    if not is_stored:
        code = buffer_reserve(scratch, 2 * blocksize, status)
        if code != OK:
            return code
    is_shuffled = not is_stored and header.flags & FLAG_SHUFFLE and header.typesize > 1
    items = src + HEADER_NBYTES
    _first_row(part, offset, &rows)
    while True:
        done = 0
        while done < rows.n:
            at = rows.at + done * rows.stride
            block = at // blocksize
            if block != current and not is_stored:
                code = decode_streams(src, &header, block, scratch.data, status)
                if code != OK:
                    return code
                n_block = min(blocksize, dst_nbytes - block * blocksize)
                items = scratch.data
                if header.flags & FLAG_BITSHUFFLE:
                    unbitshuffle_block(scratch.data, scratch.data + blocksize, n_block, header.typesize)
                    items = scratch.data + blocksize
                n_block = n_block // part.itemsize
                current = block
            # The items that begin in this block.
            count = min(rows.n - done, ((block + 1) * blocksize - at + rows.stride - 1) // rows.stride)
            _move_row(&rows, items, n_block, at - block * blocksize, count, is_shuffled, scratch.data + blocksize,
                      dst + rows.to + done * rows.out)
            done += count
        if not _next_row(part, &rows):
            return OK


cdef int64_t _add_stream(void *zstd, int level, const uint8_t *stream, int64_t n, uint8_t *dst, int64_t offset,
                         int64_t limit) noexcept nogil:
    """Add a stream of `n` bytes to a chunk of `offset` bytes.

    Return its new size, -1 if it would exceed `limit`, or -2 if memory is lacking. `zstd` is an encoder of zstd; NULL
    stands for LZ4.
    """
    cdef int64_t size = min(n - 1, limit - offset - 4)
    if size > 0:
        size = encode_stream(zstd, level, stream, n, dst + offset + 4, size)
        if size < 0:
            return -2
    if size <= 0:
        size = n
        if offset + 4 + size > limit:
            return -1
        memcpy(dst + offset + 4, stream, n)
    store_u32(dst + offset, size)
    return offset + 4 + size


cdef int64_t _gather_chunk(const Step *step, const uint8_t *src, const Runs *runs, int64_t n_bytes, uint8_t *dst,
                           uint8_t *scratch, Workspace *work) noexcept nogil:
    """Encode the items of a chunk; return the stored size, or NOT_BLOCKWISE."""
    cdef const Blosc *blosc = <const Blosc *>step.parameters
    cdef bint is_lz4 = blosc.compressor == LZ4
    cdef bint is_shuffled = blosc.shuffle == 1
    cdef int64_t blocksize
    cdef int64_t limit = n_bytes + HEADER_NBYTES
    cdef void *zstd = NULL
    cdef int64_t n_all, block, n, n_stream, offset
    cdef int streams, stream
    if not 0 < blosc.level <= 9:
        return NOT_BLOCKWISE
    blocksize = made_blocksize(blosc.compressor, blosc.level, runs.itemsize, own_blocksize(
        blosc.compressor, blosc.level, blosc.shuffle, runs.itemsize))
    blocksize = min(blocksize, n_bytes)
    if (is_shuffled and runs.itemsize == 1 or is_lz4 and runs.itemsize > MAX_SPLITS
            or blocksize // runs.itemsize < MIN_SPLIT_ITEMS):
        return NOT_BLOCKWISE
    if not is_lz4:
        zstd = zstd_encoder(&work.contexts[step.codec.number], zstd_level(blosc.level), False)
        if zstd == NULL:
            return NOT_BLOCKWISE
    n_all = (n_bytes + blocksize - 1) // blocksize
    dst[0] = FORMAT_VERSION
    dst[1] = INNER_VERSION
    dst[2] = FORMAT_LZ4 << 5 if is_lz4 else FORMAT_ZSTD << 5 | FLAG_NO_SPLIT
    dst[2] |= FLAG_SHUFFLE if is_shuffled else FLAG_BITSHUFFLE if blosc.shuffle == 2 else 0
    dst[3] = <uint8_t>runs.itemsize
    store_u32(dst + 4, n_bytes)
    store_u32(dst + 8, blocksize)
    offset = HEADER_NBYTES + 4 * n_all
    for block in range(n_all):
        n = min(blocksize, n_bytes - block * blocksize)
        # The last block is not split when it is shorter than the others, and those of zstd are never split.
        streams = <int>runs.itemsize if is_lz4 and n == blocksize else 1
        n_stream = n // streams
        if blosc.shuffle == 2:
            bitshuffle_block(src + block * blocksize, scratch, n, runs.itemsize)
        else:
            _move_items(runs, block * blocksize // runs.itemsize, n // runs.itemsize, scratch, is_shuffled,
                        <uint8_t *>src, True)
        if offset < limit:
            store_u32(dst + HEADER_NBYTES + 4 * block, offset)
        for stream in range(streams):
            # The chunk must not become longer than its content plus the header.
            offset = _add_stream(zstd, blosc.level, scratch + stream * n_stream, n_stream, dst, offset, limit)
            if offset == -2:
                return NOT_BLOCKWISE
            if offset < 0:
                break
        else:
            continue
        break
    else:
        store_u32(dst + 12, offset)
        return offset
    # Compression gained nothing, so the chunk is stored as it is.
    dst[2] |= FLAG_MEMCPY
    _move_items(runs, 0, n_bytes // runs.itemsize, dst + HEADER_NBYTES, False, <uint8_t *>src, True)
    store_u32(dst + 12, limit)
    return limit


cdef bint _can_gather(const Step *step, const Runs *runs, int64_t n_bytes) noexcept nogil:
    cdef const Blosc *blosc = <const Blosc *>step.parameters
    # Above level 2, zstd's encoder is slower if it stays than if each block gets a new one, which c-blosc does.
    return ((blosc.compressor == LZ4 and blosc.shuffle > 0 or blosc.compressor == ZSTD and blosc.level <= 2)
            and (blosc.shuffle != 2 or own_shuffles and runs.ndim == 0)
            and blosc.typesize == runs.itemsize <= 255 and blosc.blocksize == 0 and n_bytes <= BLOSC_MAX_NBYTES)


# chunks that change in part

cdef int64_t _merge_room(const Step *step, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, const Copy *part,
                         int64_t offset, bint only_few) noexcept nogil:
    cdef const Blosc *blosc = <const Blosc *>step.parameters
    cdef BloscHeader header
    cdef Status ignored
    cdef int shuffle
    status_clear(&ignored)
    if check_header(src, n_bytes, dst_nbytes, step.itemsize, &header, &ignored) != OK or header.flags & FLAG_MEMCPY:
        return 0
    # Without a shuffle that is known here, an element is no part of byte planes. Items of one byte are their plane.
    shuffle = FLAG_SHUFFLE if blosc.shuffle == 1 else 0
    if (blosc.shuffle == 2 or header.flags & FLAG_BITSHUFFLE or blosc.typesize != part.itemsize
            or header.typesize != part.itemsize or (part.itemsize > 1 and not header.flags & shuffle)):
        return 0
    # The changed streams must be of the same format as those that stay. Level and block size stay what they are.
    if not 0 < blosc.level <= 9 or format_of(blosc.compressor) != header.flags >> 5:
        return 0
    if not _is_blockwise(step, src, n_bytes, dst_nbytes, part.itemsize, part, offset, only_few):
        return 0
    return 3 * <int64_t>header.blocksize


cdef int _put(const Rows *rows, const uint8_t *elements, uint8_t *planes, int64_t n_block, int64_t count,
              uint8_t *room) noexcept nogil:
    """Put `count` items of a row into the byte planes of a block of `n_block` items; `planes` is at the first of them.

    Return the planes that have changed, a bit for each of the first 16. `rows` is described as for a read; `room` holds
    two blocks.
    """
    cdef int64_t itemsize = rows.itemsize
    cdef int64_t step = rows.stride // itemsize
    cdef int64_t stride = rows.out
    cdef int64_t i, j
    cdef bint is_run = step == 1 and count >= MIN_SHUFFLED
    cdef uint8_t *plane
    cdef uint8_t differs
    cdef int changed = 0
    if rows.swap > 1 or (is_run and stride != itemsize):
        _copy(rows, count, elements, stride, room, itemsize)
        elements = room
        stride = itemsize
    if is_run:
        room += count * itemsize
        items_to_planes(elements, room, count, count, itemsize)
    for j in range(itemsize):
        plane = planes + j * n_block
        differs = 0
        if is_run:
            if memcmp(plane, room + j * count, count) != 0:
                memcpy(plane, room + j * count, count)
                differs = 1
        else:
            for i in range(count):
                differs |= plane[i * step] ^ elements[i * stride + j]
                plane[i * step] = elements[i * stride + j]
        if differs:
            changed |= 1 << min(j, <int64_t>MAX_SPLITS - 1)
    return changed


cdef bint _planes_are_filled(const uint8_t *planes, int64_t n_items, const uint8_t *value,
                             int64_t itemsize) noexcept nogil:
    cdef int64_t j
    for j in range(itemsize):
        if not is_filled(<const char *>planes + j * n_items, n_items, <const char *>value + j, 1):
            return False
    return True


cdef int64_t _add_block(const Blosc *blosc, const uint8_t *src, const BloscHeader *header, int64_t block, int changed,
                        const uint8_t *planes, uint8_t *dst, int64_t offset, int64_t limit) noexcept nogil:
    """Add a block to a chunk of `offset` bytes; return its new size, or -1 if it would exceed `limit`.

    Only the streams with a bit in `changed` are encoded, from `planes`. The others are copied as they are stored.
    """
    cdef int streams = n_streams(header, block)
    cdef int64_t n_stream = min(<int64_t>header.blocksize, <int64_t>header.nbytes - block * header.blocksize) // streams
    cdef int64_t at = load_u32(src + HEADER_NBYTES + 4 * block)
    cdef int64_t n_stored
    cdef int stream
    for stream in range(streams):
        n_stored = 4 + load_u32(src + at)
        if changed >> stream & 1 or (streams == 1 and changed):
            offset = _add_stream(NULL, blosc.level, planes + stream * n_stream, n_stream, dst, offset, limit)
            if offset < 0:
                return -1
        else:
            if n_stored > limit - offset:
                return -1
            memcpy(dst + offset, src + at, n_stored)
            offset += n_stored
        at += n_stored
    return offset


cdef int64_t _merge_chunk(const Step *step, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, const Copy *part,
                          int64_t offset, const uint8_t *elements, const uint8_t *fill, uint8_t *dst,
                          uint8_t *scratch, Status *status) noexcept nogil:
    """Put elements into a part of a chunk, and encode only the streams that change."""
    cdef const Blosc *blosc = <const Blosc *>step.parameters
    cdef BloscHeader header
    cdef Rows rows
    cdef int64_t limit = dst_nbytes + HEADER_NBYTES
    cdef int64_t itemsize = part.itemsize
    cdef int64_t blocksize, n_all, size, block, n_block, begin, at, count
    cdef int64_t done = 0
    cdef bint is_left = True
    cdef bint is_decoded
    cdef bint may_be_filled = fill != NULL
    cdef int changed
    cdef int code = check_chunk(src, n_bytes, dst_nbytes, step.itemsize, &header, status)
    if code != OK:
        return FAILED
    blocksize = header.blocksize
    n_all = n_blocks(&header)
    size = HEADER_NBYTES + 4 * n_all
    if size > limit:
        return NOT_BLOCKWISE
    memcpy(dst, src, HEADER_NBYTES)
    _first_row(part, offset, &rows)
    for block in range(n_all):
        begin = block * blocksize
        n_block = min(blocksize, dst_nbytes - begin) // itemsize
        is_decoded = False
        changed = 0
        while is_left:
            at = rows.at + done * rows.stride
            if at >= begin + blocksize:
                break
            if not is_decoded:
                if decode_streams(src, &header, block, scratch, status) != OK:
                    return FAILED
                is_decoded = True
            # The items that begin in this block.
            count = min(rows.n - done, (begin + blocksize - at + rows.stride - 1) // rows.stride)
            changed |= _put(&rows, elements + rows.to + done * rows.out, scratch + (at - begin) // itemsize, n_block,
                            count, scratch + blocksize)
            done += count
            if done == rows.n:
                done = 0
                is_left = _next_row(part, &rows)
        if is_decoded and may_be_filled:
            may_be_filled = _planes_are_filled(scratch, n_block, fill, itemsize)
        store_u32(dst + HEADER_NBYTES + 4 * block, size)
        size = _add_block(blosc, src, &header, block, changed, scratch, dst, size, limit)
        if size < 0:
            # It does not gain by compression any more: c-blosc stores it as it is.
            return NOT_BLOCKWISE
    if may_be_filled:
        # Whether the other blocks are, only a chunk that is decoded as a whole can tell.
        return NOT_BLOCKWISE
    store_u32(dst + 12, size)
    return size


# whole chunks

cdef int _configure(Step *step, tuple parameters) except -1:
    cdef Blosc *blosc = <Blosc *>step.parameters
    cname, blosc.level, blosc.shuffle, blosc.typesize, blosc.blocksize = parameters
    blosc.compressor = compressor_code(cname)
    return 0


cdef int64_t _bound(const Step *step, int64_t n_bytes, bint *is_exact) noexcept nogil:
    is_exact[0] = False
    # The zeros that z5 keeps behind a chunk are as many as its header has. GDAL gives c-blosc more room: a block that
    # gets no smaller has an offset of 4 bytes, and so has each of its streams of 128 bytes or more.
    return n_bytes + n_bytes // 8 + 2 * BLOSC_OVERHEAD


cdef int64_t _encode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity,
                     Workspace *work, Status *status) noexcept nogil:
    cdef const Blosc *blosc = <const Blosc *>step.parameters
    cdef int64_t n = NOT_BLOCKWISE
    cdef uint8_t *scratch
    cdef Runs run
    if own_shuffles and work.n_threads == 1 and blosc.typesize > 0 and n_bytes % blosc.typesize == 0:
        run.itemsize, run.n_items, run.ndim = blosc.typesize, n_bytes // blosc.typesize, 0
        scratch = <uint8_t *>zc_new(MAX_BLOCK_NBYTES, 1) if _can_gather(step, &run, n_bytes) else NULL
        if scratch != NULL:
            n = _gather_chunk(step, src, &run, n_bytes, dst, scratch, work)
            free(scratch)
        if n != NOT_BLOCKWISE:
            return n
    # Not `capacity`: with more room, c-blosc makes chunks that are longer than stored ones.
    return blosc_encode(src, n_bytes, dst, n_bytes + BLOSC_OVERHEAD, blosc.compressor, blosc.level, blosc.shuffle,
                        blosc.typesize, blosc.blocksize, work.n_threads, status)


cdef int64_t _decode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit, bint is_exact,
                     Workspace *work, Status *status) noexcept nogil:
    cdef BloscHeader header
    if not is_exact:
        if check_header(src, n_bytes, -1, step.itemsize, &header, status) != OK:
            return -1
        if header.nbytes > limit:
            fail(status, BLOSC_NBYTES, 4, limit, header.nbytes)
            return -1
        limit = header.nbytes
    return limit if blosc_decode(src, n_bytes, dst, limit, step.itemsize, work.n_threads, status) == OK else -1


cdef int64_t _thread_nbytes(const Step *step, bint encodes) noexcept nogil:
    cdef const Blosc *blosc = <const Blosc *>step.parameters
    if not encodes:
        return SLOW_DECODE_NBYTES if blosc.compressor in (ZLIB, ZSTD) else DECODE_NBYTES
    if blosc.compressor == ZSTD:
        return own_blocksize(ZSTD, blosc.level, blosc.shuffle, blosc.typesize)
    return SLOW_ENCODE_NBYTES if blosc.compressor in (LZ4HC, ZLIB) else ENCODE_NBYTES


cdef BlockFunctions _blocks = BlockFunctions(_is_blockwise, _scatter_chunk, _select_chunk, _can_gather, _gather_chunk,
                                             _merge_room, _merge_chunk)
cdef CodecFunctions _row = codec_row(sizeof(Blosc), _configure, _bound, _encode, _decode)
_row.blocks = &_blocks
_row.release = zstd_release
_row.thread_nbytes = _thread_nbytes
add_codec("blosc", &_row)
