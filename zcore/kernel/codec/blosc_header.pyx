# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""The header and the block table of a Blosc 1 chunk, and every check that needs no decoding.

Source: c-blosc README_CHUNK_FORMAT.rst, and c-blosc's source and real chunks where that text is silent or wrong::

    byte 0         version      of the chunk format, 2
         1         versionlz    of the inner compressor's format, 1
         2         flags        bit 0 byte shuffle, 1 stored as is, 2 bit shuffle, 3 reserved, 4 blocks are not split,
                                5-7 compressor format
         3         typesize
         4 -  7    nbytes       decoded size
         8 - 11    blocksize
        12 - 15    cbytes       stored size, header included
        16 - ...   block table  one little-endian int32 per block: where it starts, counted from byte 0 of the chunk
                                (README_CHUNK_FORMAT.rst counts from the table's end; no real chunk does)

A block is one stream, or one stream per byte of an item if the block is split. A stream is an int32 with its size, and
its bytes. A chunk that is stored as is has no table: its data follow the header and are never shuffled.

Compiled, because c-blosc's decoder trusts these numbers: the reader checks every chunk before decoding, in the loop
without the GIL. Integers are loaded byte by byte, so neither alignment nor the byte order of the machine matters.
"""
from collections import namedtuple

from libc.stdint cimport int32_t, int64_t, uint8_t

from zcore.kernel.memory cimport Bytes
from zcore.kernel.numbers cimport load_u32
from zcore.kernel.status cimport (
    BLOSC2, BLOSC_BLOCKSIZE, BLOSC_BSTART, BLOSC_CBYTES, BLOSC_COMPRESSOR, BLOSC_DECODE, BLOSC_FLAGS, BLOSC_MEMCPY,
    BLOSC_NBYTES, BLOSC_SHORT, BLOSC_STREAM, BLOSC_TABLE, BLOSC_TYPESIZE, BLOSC_VERSION, BLOSC_VERSIONLZ, Status, fail,
    make_error, status_clear)


cdef enum:
    LAST_BLOSC2_VERSION = 5
    FLAG_RESERVED = 0x08
    LAST_FORMAT = FORMAT_ZSTD
    # Of a stream over what it encodes, beside a sixth of that: snappy's bound, which is the largest. c-blosc stores
    # what the other compressors would make longer.
    MAX_GROWTH = 32
    # blosclz adds the bytes 255 of a match's length to an int without a look at the room that is left, so in a stream
    # that is longer than this the sum may overflow (c-blosc #405). In an undamaged one, no more of them lie together
    # than make up the content, beside those of a literal, an offset and an instruction.
    LONG_STREAM_NBYTES = 8000000
    MAX_BESIDE = 64
    MAX_NBYTES = 0x7fffffff - HEADER_NBYTES          # blosc.h, BLOSC_MAX_BUFFERSIZE
    MAX_BLOCKSIZE = (0x7fffffff - 255 * 4) // 3      # blosc.c, blosc_run_decompression_with_context


cdef inline void load_header(const uint8_t *data, BloscHeader *header) noexcept nogil:
    header.version = data[0]
    header.versionlz = data[1]
    header.flags = data[2]
    header.typesize = data[3]
    header.nbytes = load_u32(data + 4)
    header.blocksize = load_u32(data + 8)
    header.cbytes = load_u32(data + 12)


cdef bint _is_padded(const uint8_t *data, int64_t cbytes, int64_t n_bytes) noexcept nogil:
    """Whether as many zeros as a header has, and nothing else, lie behind the chunk: z5 keeps them there."""
    if cbytes < HEADER_NBYTES or n_bytes != cbytes + HEADER_NBYTES:
        return False
    while cbytes < n_bytes and data[cbytes] == 0:
        cbytes += 1
    return cbytes == n_bytes


cdef int check_header(const uint8_t *data, int64_t n_bytes, int64_t expected_nbytes, int64_t itemsize,
                      BloscHeader *header, Status *status) noexcept nogil:
    cdef int64_t nbytes, limit
    cdef int inner_format
    if n_bytes < HEADER_NBYTES:
        return fail(status, BLOSC_SHORT, 0, HEADER_NBYTES, n_bytes)
    load_header(data, header)
    nbytes = header.nbytes
    if header.version != FORMAT_VERSION:
        if FORMAT_VERSION < header.version <= LAST_BLOSC2_VERSION:
            return fail(status, BLOSC2, 0, FORMAT_VERSION, header.version)
        return fail(status, BLOSC_VERSION, 0, FORMAT_VERSION, header.version)
    if header.flags & FLAG_RESERVED:
        return fail(status, BLOSC_FLAGS, 2, 0, header.flags)
    if header.flags & FLAG_SHUFFLE and header.flags & FLAG_BITSHUFFLE:
        # Blosc 2 marks its longer header this way. Its versions are refused above; nothing else may decode it.
        return fail(status, BLOSC2, 2, FORMAT_VERSION, header.version)
    if header.cbytes != n_bytes and not _is_padded(data, header.cbytes, n_bytes):
        return fail(status, BLOSC_CBYTES, 12, n_bytes, header.cbytes)
    limit = expected_nbytes if expected_nbytes >= 0 else MAX_NBYTES
    if nbytes > MAX_NBYTES or (expected_nbytes >= 0 and nbytes != expected_nbytes):
        return fail(status, BLOSC_NBYTES, 4, limit, nbytes)
    limit = itemsize if itemsize > 0 else 1
    if header.typesize == 0 or (itemsize > 0 and header.typesize != 1 and header.typesize != itemsize):
        # A writer stores 1 for items of more than 255 bytes, or if it does not know the item size.
        return fail(status, BLOSC_TYPESIZE, 3, limit, header.typesize)
    if nbytes > 0:
        # An empty chunk has no blocks. c-blosc writes block size 1 there, which the limit would refuse.
        limit = min(nbytes, <int64_t>MAX_BLOCKSIZE)
        if header.blocksize < 1 or header.blocksize > limit:
            return fail(status, BLOSC_BLOCKSIZE, 8, limit, header.blocksize)
    inner_format = header.flags >> 5
    if inner_format > LAST_FORMAT:
        return fail(status, BLOSC_COMPRESSOR, 2, LAST_FORMAT, inner_format)
    if header.versionlz != INNER_VERSION:
        return fail(status, BLOSC_VERSIONLZ, 1, INNER_VERSION, header.versionlz)
    if header.flags & FLAG_MEMCPY and header.cbytes != nbytes + HEADER_NBYTES:
        return fail(status, BLOSC_MEMCPY, 12, nbytes + HEADER_NBYTES, header.cbytes)
    return 0


cdef int check_blocks(const uint8_t *data, const BloscHeader *header, Status *status) noexcept nogil:
    cdef int64_t blocks = n_blocks(header), table_end = HEADER_NBYTES + 4 * blocks, end = header.cbytes
    cdef int64_t block, position, size, n_stream, limit
    cdef int streams
    if header.flags & FLAG_MEMCPY:
        return 0
    if table_end > end:
        return fail(status, BLOSC_TABLE, HEADER_NBYTES, table_end, end)
    for block in range(blocks):
        # Threads write blocks in any order. Hostile blocks may overlap, which is harmless, as no stream is longer than
        # its share: otherwise thousands of blocks could share one stream, and decoding would take the square of the
        # chunk's size.
        position = <int32_t>load_u32(data + HEADER_NBYTES + 4 * block)
        if position < table_end or position > end - 4:
            return fail(status, BLOSC_BSTART, HEADER_NBYTES + 4 * block, end - 4, position)
        streams = n_streams(header, block)
        if streams > 1 and header.blocksize % header.typesize:
            # The byte planes would leave the last bytes of the block undefined.
            return fail(status, BLOSC_BLOCKSIZE, 8, header.blocksize // header.typesize * header.typesize,
                        header.blocksize)
        n_stream = min(<int64_t>header.blocksize, <int64_t>header.nbytes - block * header.blocksize) // streams
        limit = n_stream + n_stream // 6 + MAX_GROWTH
        for _ in range(streams):
            if position > end - 4:
                return fail(status, BLOSC_STREAM, position, 0, end - position)
            size = <int32_t>load_u32(data + position)
            if size < 1 or size > end - position - 4:
                return fail(status, BLOSC_STREAM, position, end - position - 4, size)
            if size > limit:
                return fail(status, BLOSC_STREAM, position, limit, size)
            if size > LONG_STREAM_NBYTES and header.flags >> 5 == FORMAT_BLOSCLZ and size != n_stream and (
                    _has_run(data + position + 4, size, n_stream // 255 + MAX_BESIDE)):
                return fail(status, BLOSC_DECODE, HEADER_NBYTES, header.nbytes, -1)
            position += 4 + size
    return 0


cdef int check_chunk(const uint8_t *data, int64_t n_bytes, int64_t expected_nbytes, int64_t itemsize,
                     BloscHeader *header, Status *status) noexcept nogil:
    cdef int code = check_header(data, n_bytes, expected_nbytes, itemsize, header, status)
    return code if code != 0 else check_blocks(data, header, status)


cdef bint _has_run(const uint8_t *stream, int64_t size, int64_t n) noexcept nogil:
    """Whether more than `n` bytes of a stream that lie together are 255."""
    cdef int64_t first = 0         # of a run that may be long
    cdef int64_t i = n
    while i < size:
        # From the last byte of a run of n + 1 back to the first one, so that most bytes are not looked at.
        while i >= first and stream[i] == 255:
            i -= 1
        if i < first:
            return True
        first = i + 1
        i = first + n
    return False


cdef int64_t n_blocks(const BloscHeader *header) noexcept nogil:
    if header.nbytes == 0 or header.blocksize == 0:
        return 0
    return <int64_t>header.nbytes // header.blocksize + (header.nbytes % header.blocksize != 0)


cdef int n_streams(const BloscHeader *header, int64_t block) noexcept nogil:
    if (header.flags & FLAG_NO_SPLIT or header.typesize == 0 or header.typesize > MAX_SPLITS
            or header.blocksize // header.typesize < MIN_SPLIT_ITEMS
            or (block + 1) * header.blocksize > header.nbytes):
        return 1
    return header.typesize


_NAME_OF_FORMAT = {
    FORMAT_BLOSCLZ: "blosclz", FORMAT_LZ4: "lz4", FORMAT_SNAPPY: "snappy", FORMAT_ZLIB: "zlib", FORMAT_ZSTD: "zstd",
}


BloscHeaderInfo = namedtuple("BloscHeaderInfo", (
    "compressor", "shuffle", "memcpyed", "typesize", "nbytes", "blocksize", "cbytes", "n_blocks", "is_split", "version",
    "versionlz", "flags"), module=__name__)
BloscHeaderInfo.__doc__ = """The header of one chunk, as fields and in words.

Attributes
----------
compressor : str
    ``"blosclz"``, ``"lz4"`` (also what lz4hc writes), ``"snappy"``, ``"zlib"``, ``"zstd"`` or ``"undefined"``.
shuffle : str
    ``"noshuffle"``, ``"shuffle"`` or ``"bitshuffle"`` by the flags; ``"blosc2"`` if both bits are set. Data that are
    stored as is were never shuffled, whatever the flags say.
memcpyed : bool
    Whether the data are stored as they are.
typesize, nbytes, blocksize, cbytes, version, versionlz, flags : int
    The fields as they are stored.
n_blocks : int
    Number of blocks; 0 when there are no data or the block size is 0.
is_split : bool
    Whether full blocks hold one stream for each byte of an item.
"""


cdef object _info(const BloscHeader *header):
    cdef bint by_bit = header.flags & FLAG_BITSHUFFLE
    cdef bint is_stored = header.flags & FLAG_MEMCPY
    if header.flags & FLAG_SHUFFLE:
        shuffle = "blosc2" if by_bit else "shuffle"
    else:
        shuffle = "bitshuffle" if by_bit else "noshuffle"
    return BloscHeaderInfo(
        _NAME_OF_FORMAT.get(header.flags >> 5, "undefined"), shuffle, is_stored, header.typesize, header.nbytes,
        header.blocksize, header.cbytes, n_blocks(header),
        not is_stored and header.typesize > 1 and n_streams(header, 0) > 1, header.version, header.versionlz,
        header.flags)


def parse(data):
    """Return the header of a chunk, unchecked.

    Parameters
    ----------
    data : bytes-like
        At least the 16 bytes of the header.

    Returns
    -------
    BloscHeaderInfo

    Raises
    ------
    CodecError
        If `data` is shorter than a header.

    Notes
    -----
    c-blosc README_CHUNK_FORMAT.rst, "Header". `validate` checks whether the numbers are possible.

    Examples
    --------
    >>> parse(bytes.fromhex("02 01 21 04 00100000 00100000 36000000"))
    BloscHeaderInfo(compressor='lz4', shuffle='shuffle', memcpyed=False, typesize=4, nbytes=4096, blocksize=4096,
    cbytes=54, n_blocks=1, is_split=True, version=2, versionlz=1, flags=33)
    """
    cdef BloscHeader header
    cdef Bytes chunk = Bytes(data)
    cdef Status status
    status_clear(&status)
    if chunk.n < HEADER_NBYTES:
        fail(&status, BLOSC_SHORT, 0, HEADER_NBYTES, chunk.n)
        raise make_error(&status, None, None, "blosc", "decode", ())
    load_header(chunk.data, &header)
    return _info(&header)


def validate(data, expected_nbytes=None, itemsize=None):
    """Return the header of a whole chunk after every check that needs no decoding.

    Parameters
    ----------
    data : bytes-like
        The whole chunk.
    expected_nbytes : int, optional
        The decoded size by the metadata.
    itemsize : int, optional
        The item size of the array. The item size of the chunk must be the same, or 1.

    Returns
    -------
    BloscHeaderInfo

    Raises
    ------
    CodecError
        If the header, the block table and the sizes of streams contradict each other, `data` or the metadata.
    UnsupportedError
        If the chunk is a Blosc 2 chunk.

    Notes
    -----
    c-blosc README_CHUNK_FORMAT.rst. Two checks are stricter than c-blosc's decoder: the stored size must be that of
    `data`, or 16 less if zeros follow (z5), and a chunk that is stored as is must also name a defined
    compressor, as all writers do.

    Examples
    --------
    >>> chunk = bytes.fromhex("02 01 02 01 03000000 03000000 13000000") + b"abc"
    >>> validate(chunk, expected_nbytes=3, itemsize=1).memcpyed
    True
    >>> validate(chunk[:-1])
    Traceback (most recent call last):
    zcore.errors.CodecError: blosc header says 19 bytes stored, the object has 18
    """
    cdef BloscHeader header
    cdef int64_t expected = -1 if expected_nbytes is None else expected_nbytes
    cdef int64_t item = -1 if itemsize is None else itemsize
    cdef Bytes chunk = Bytes(data)
    cdef Status status
    cdef int code
    if expected_nbytes is not None and expected < 0:
        raise ValueError(f"expected_nbytes is {expected}, a size is 0 or more")
    if itemsize is not None and item < 1:
        raise ValueError(f"itemsize is {item}, an item has at least 1 byte")
    status_clear(&status)
    with nogil:
        code = check_chunk(chunk.data, chunk.n, expected, item, &header, &status)
    if code:
        raise make_error(&status, None, None, "blosc", "decode", ())
    return _info(&header)
