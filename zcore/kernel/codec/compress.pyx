# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Compression and decompression by the C libraries, without the GIL.

Only this module links the libraries and calls them. c-blosc is used in its context-free functions, which share no state
between threads. They trust the header of a chunk, so `blosc_header` checks it first.
"""
from cpython.bytearray cimport PyByteArray_FromStringAndSize
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset, strstr

from zcore import errors
from zcore.kernel.codec cimport libs
from zcore.kernel.codec.blosc_header cimport (
    FLAG_MEMCPY, FORMAT_BLOSCLZ, FORMAT_LZ4, FORMAT_SNAPPY, FORMAT_ZLIB, FORMAT_ZSTD, HEADER_NBYTES, BloscHeader,
    check_blocks, check_header, n_blocks,
)
from zcore.kernel.codec.table cimport CodecFunctions, Contexts, Step, Workspace, add_codec, stream_bound
from zcore.kernel.status cimport (
    BLOSC_DECODE, BLOSC_ENCODE, BLOSC_LACKS, BLOSC_NBYTES, BLOSC_SNAPPY, NO_MEMORY, OK, STREAM_DAMAGED, STREAM_ENCODE,
    STREAM_LONG, STREAM_SHORT, STREAM_TRAILING, Status, fail, make_error, status_clear,
)

COMPRESSORS = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")

# Version of the linked libdeflate, or "": then zlib does all gzip and zlib.
LIBDEFLATE = libs.ZC_LIBDEFLATE_VERSION.decode()

cdef const char *_NAMES[6]
_NAMES[0] = "blosclz"
_NAMES[1] = "lz4"
_NAMES[2] = "lz4hc"
_NAMES[3] = "snappy"
_NAMES[4] = "zlib"
_NAMES[5] = "zstd"

cdef enum:
    # A block up to this size is decoded without asking for memory.
    SMALL_BLOCK_NBYTES = 1 << 16
    # zlib counts its input and output in 32 bits.
    ZLIB_PART_NBYTES = 1 << 30
    Z_FINISH = 4
    Z_OK = 0
    Z_STREAM_END = 1
    Z_BUF_ERROR = -5
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

cdef CodecFunctions _zstd
cdef CodecFunctions _zlib
cdef CodecFunctions _gzip
cdef CodecFunctions _lz4

# Formats that the linked c-blosc decodes: constant after import.
cdef bint _available[8]


cdef void _probe() noexcept:
    cdef const char *names = libs.blosc_list_compressors()
    _available[FORMAT_BLOSCLZ] = strstr(names, b"blosclz") != NULL
    _available[FORMAT_LZ4] = strstr(names, b"lz4") != NULL
    _available[FORMAT_SNAPPY] = strstr(names, b"snappy") != NULL
    _available[FORMAT_ZLIB] = strstr(names, b"zlib") != NULL
    _available[FORMAT_ZSTD] = strstr(names, b"zstd") != NULL


_probe()
if libs.zc_provide() != 0:
    raise ImportError("the system's malloc, calloc and pthread_create cannot be found")


cdef int _fail(Status *status, int code, int64_t offset, int64_t expected, int64_t found) noexcept nogil:
    """Record a library's failure. A library may report missing memory as damage, so failed requests are asked first."""
    if libs.zc_has_failed():
        return fail(status, NO_MEMORY, 0, expected, 0)
    return fail(status, code, offset, expected, found)


cdef bint has_format(int fmt) noexcept nogil:
    return 0 <= fmt < 8 and _available[fmt]


cdef int decode_stream(int fmt, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t dst_nbytes,
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


cdef int format_of(int compressor) noexcept nogil:
    return FORMAT_LZ4 if compressor == LZ4 else -1


cdef int64_t encode_stream(int compressor, int clevel, const uint8_t *src, int64_t n_bytes, uint8_t *dst,
                           int64_t capacity) noexcept nogil:
    return libs.LZ4_compress_fast(<const char *>src, <char *>dst, <int>n_bytes, <int>capacity, 10 - clevel)


cdef int blosc_decode(const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t dst_nbytes, int64_t itemsize,
                      int n_threads, Status *status) noexcept nogil:
    cdef BloscHeader header
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
    if not has_format(header.flags >> 5):
        return fail(status, BLOSC_SNAPPY, 2, 0, header.flags >> 5)
    if not _has_room(&header, n_threads):
        return fail(status, NO_MEMORY, 8, 2 * <int64_t>header.blocksize, 0)
    libs.zc_forget_failures()
    # c-blosc would start threads without a block to decode.
    result = libs.zc_blosc_decompress(src, dst, <size_t>dst_nbytes, <int>min(<int64_t>n_threads, n_blocks(&header)))
    if result == libs.ZC_NO_MEMORY:
        return fail(status, NO_MEMORY, 8, 2 * <int64_t>header.blocksize, 0)
    if result != dst_nbytes:
        return _fail(status, BLOSC_DECODE, 16, dst_nbytes, result)
    return OK


cdef bint _has_room(const BloscHeader *header, int n_threads) noexcept nogil:
    """Whether each thread can get memory for two blocks, whose size in the header of a damaged chunk may be huge.

    c-blosc gets the memory that is freed here again, with its pages already mapped: with several threads that is
    twice as fast. A c-blosc of the system does not check whether its requests for memory succeed.
    """
    cdef int64_t n = min(<int64_t>n_threads, n_blocks(header))
    cdef void *room
    if header.blocksize <= SMALL_BLOCK_NBYTES:
        return True
    room = malloc(<size_t>n * (2 * <size_t>header.blocksize + 4 * <size_t>header.typesize + 4096))
    free(room)
    return room != NULL


cdef int64_t blosc_encode(const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity, int compressor,
                          int clevel, int shuffle, int64_t typesize, int64_t blocksize, int n_threads,
                          Status *status) noexcept nogil:
    cdef int result
    if n_bytes > BLOSC_MAX_NBYTES:
        fail(status, BLOSC_ENCODE, 0, n_bytes, -1)
        return -1
    if compressor == SNAPPY and not has_format(FORMAT_SNAPPY):
        fail(status, BLOSC_LACKS, 0, 0, FORMAT_SNAPPY)
        return -1
    # c-blosc stores item sizes above 255 as 1. Setting 1 here keeps the byte from wrapping.
    if typesize > 255:
        typesize = 1
    libs.zc_forget_failures()
    result = libs.zc_blosc_compress(clevel, shuffle, <size_t>typesize, <size_t>n_bytes, src, dst, <size_t>capacity,
                                    _NAMES[compressor], <size_t>blocksize, n_threads)
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


cdef void _zstd_release(Contexts *contexts) noexcept nogil:
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


cdef int64_t _zstd_encode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity,
                          Workspace *work, Status *status) noexcept nogil:
    cdef const Zstd *zstd = <const Zstd *>step.parameters
    cdef Contexts *contexts = &work.contexts[step.codec.number]
    cdef size_t n
    cdef int error
    libs.zc_forget_failures()
    if contexts.encoder == NULL:
        contexts.encoder = libs.ZSTD_createCCtx()
        if contexts.encoder == NULL:
            fail(status, NO_MEMORY, 0, n_bytes, 0)
            return -1
    libs.ZSTD_CCtx_reset(contexts.encoder, ZSTD_RESET_ALL)
    libs.ZSTD_CCtx_setParameter(contexts.encoder, ZSTD_LEVEL, zstd.level)
    libs.ZSTD_CCtx_setParameter(contexts.encoder, ZSTD_CHECKSUM, zstd.checksum)
    n = libs.ZSTD_compress2(contexts.encoder, dst, <size_t>capacity, src, <size_t>n_bytes)
    if libs.ZSTD_isError(n):
        error = libs.ZSTD_getErrorCode(n)
        _fail(status, STREAM_ENCODE, 0, n_bytes, -error)
        return -1
    return <int64_t>n


_zstd.parameters_nbytes = sizeof(Zstd)
_zstd.configure = _configure_zstd
_zstd.bound = stream_bound
_zstd.encode = _zstd_encode
_zstd.decode = _zstd_decode
_zstd.release = _zstd_release
add_codec("zstd", &_zstd)


# RFC 1950, or RFC 1952 with any number of members.

cdef struct Deflate:
    int level
    bint is_gzip


cdef int _configure_zlib(Step *step, tuple parameters) except -1:
    cdef Deflate *deflate = <Deflate *>step.parameters
    deflate.level, = parameters
    deflate.is_gzip = step.codec == &_gzip
    return 0


cdef int64_t _zlib_decode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit,
                          bint is_exact, Workspace *work, Status *status) noexcept nogil:
    cdef bint gzip = (<const Deflate *>step.parameters).is_gzip
    cdef libs.z_stream stream
    cdef uint8_t beyond = 0
    cdef int64_t n_read = 0
    cdef int64_t n_written = 0
    cdef int64_t n_in
    cdef int64_t n_out
    cdef const char *version = libs.zlibVersion()
    cdef int result
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
            _fail(status, STREAM_DAMAGED, n_read, limit, result)
            break
    libs.inflateEnd(&stream)
    return n_written if status.code == OK else -1


cdef int64_t _zlib_encode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity,
                          Workspace *work, Status *status) noexcept nogil:
    cdef const Deflate *deflate = <const Deflate *>step.parameters
    cdef libs.z_stream stream
    cdef int64_t n_read = 0
    cdef int64_t n_written = 0
    cdef int64_t n_in
    cdef int64_t n_out
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


cdef int64_t _libdeflate_encode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity,
                                Workspace *work, Status *status) noexcept nogil:
    # The same chunk always makes the same object: the header of a gzip member has no name and time 0.
    cdef const Deflate *deflate = <const Deflate *>step.parameters
    cdef int64_t n = libs.zc_deflate(&work.contexts[step.codec.number].encoder, deflate.level, deflate.is_gzip, src,
                                     n_bytes, dst, capacity)
    if n <= 0:
        fail(status, STREAM_ENCODE if n == 0 else NO_MEMORY, 0, n_bytes, n)
        return -1
    return n


cdef void _libdeflate_release(Contexts *contexts) noexcept nogil:
    libs.zc_deflate_free(contexts.decoder, contexts.encoder)
    contexts.decoder = contexts.encoder = NULL


_gzip.parameters_nbytes = sizeof(Deflate)
_gzip.configure = _configure_zlib
_gzip.bound = stream_bound
_gzip.encode = _libdeflate_encode if LIBDEFLATE else _zlib_encode
_gzip.decode = _zlib_decode
_gzip.release = _libdeflate_release
_zlib = _gzip
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
    said = src[0] | (<int64_t>src[1] << 8) | (<int64_t>src[2] << 16) | (<int64_t>src[3] << 24)
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
    dst[0] = n_bytes & 0xff
    dst[1] = (n_bytes >> 8) & 0xff
    dst[2] = (n_bytes >> 16) & 0xff
    dst[3] = (n_bytes >> 24) & 0xff
    return n + LZ4_HEADER_NBYTES


_lz4.parameters_nbytes = sizeof(Lz4)
_lz4.configure = _configure_lz4
_lz4.bound = _lz4_bound
_lz4.encode = _lz4_encode
_lz4.decode = _lz4_decode
add_codec("lz4", &_lz4)


cdef int64_t blosc_decode_within(const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit, int64_t itemsize,
                                 int n_threads, Status *status) noexcept nogil:
    cdef BloscHeader header
    if check_header(src, n_bytes, -1, itemsize, &header, status) != OK:
        return -1
    if header.nbytes > limit:
        fail(status, BLOSC_NBYTES, 4, limit, header.nbytes)
        return -1
    if blosc_decode(src, n_bytes, dst, header.nbytes, itemsize, n_threads, status) != OK:
        return -1
    return header.nbytes


cdef uint32_t crc32(const uint8_t *data, int64_t n_bytes) noexcept nogil:
    cdef unsigned long value = 0
    cdef int64_t done = 0
    cdef int64_t n
    while done < n_bytes:
        n = min(n_bytes - done, <int64_t>ZLIB_PART_NBYTES)
        value = libs.crc32(value, data + done, <unsigned>n)
        done += n
    return <uint32_t>value


cdef uint32_t adler32(const uint8_t *data, int64_t n_bytes) noexcept nogil:
    cdef unsigned long value = 1
    cdef int64_t done = 0
    cdef int64_t n
    while done < n_bytes:
        n = min(n_bytes - done, <int64_t>ZLIB_PART_NBYTES)
        value = libs.adler32(value, data + done, <unsigned>n)
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


def can_compress(str cname not None):
    """Return whether the linked c-blosc has the compressor `cname`.

    >>> can_compress("lz4")
    True
    """
    return cname in libs.blosc_list_compressors().decode().split(",")


def blosc_decompress(const uint8_t[::1] chunk not None, out=None, *, int64_t itemsize=0, int n_threads=1):
    """Return the content of one Blosc 1 chunk: `zcore.blosc.decompress` for contiguous bytes."""
    cdef Status status
    cdef BloscHeader header
    cdef uint8_t[::1] view
    cdef const uint8_t *src = NULL
    cdef uint8_t empty = 0
    cdef uint8_t *dst = &empty
    cdef int64_t n_bytes = chunk.shape[0]
    status_clear(&status)
    if n_bytes:
        src = &chunk[0]
    if out is None:
        if check_header(src, n_bytes, -1, itemsize, &header, &status) == OK:
            check_blocks(src, &header, &status)
        _check(&status, "decode")
        try:
            # Not bytearray(n), which writes zeros: untouched memory costs nothing if the chunk is damaged.
            out = PyByteArray_FromStringAndSize(NULL, header.nbytes)
        except MemoryError:
            fail(&status, NO_MEMORY, 0, header.nbytes, 0)
        _check(&status, "decode")
    view = out
    if view.shape[0]:
        dst = &view[0]
    with nogil:
        blosc_decode(src, n_bytes, dst, view.shape[0], itemsize, n_threads, &status)
    _check(&status, "decode")
    return out


cdef int _check(const Status *status, str direction) except -1:
    if status.code != OK:
        raise make_error(status, None, None, "blosc", direction, ())
    return 0


def blosc_compress(const uint8_t[::1] content not None, *, str cname not None="lz4", int clevel=5, int shuffle=1,
                   int64_t typesize=1, int64_t blocksize=0, int n_threads=1):
    """Return `content` as one Blosc 1 chunk, a `bytes`: `zcore.blosc.compress` for contiguous bytes."""
    cdef int64_t n_bytes = content.shape[0]
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
    cdef uint8_t[::1] view = out
    cdef uint8_t empty = 0
    cdef const uint8_t *src = &empty
    cdef int64_t n_stored
    cdef Status status
    status_clear(&status)
    if n_bytes:
        src = &content[0]
    with nogil:
        n_stored = blosc_encode(src, n_bytes, &view[0], n_bytes + BLOSC_OVERHEAD, code, clevel, shuffle, typesize,
                                blocksize, n_threads, &status)
    _check(&status, "encode")
    return bytes(view[:n_stored])


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
        "compressors": libs.blosc_list_compressors().decode().split(","),
        "zstd": f"{zstd // 10000}.{zstd // 100 % 100}.{zstd % 100}",
        "lz4": libs.LZ4_versionString().decode(),
        "zlib": libs.zlibVersion().decode(),
        "deflate": f"libdeflate {LIBDEFLATE}" if LIBDEFLATE else "zlib",
    }
