# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Byte shuffle, bit shuffle and their inverses, of one block.

A block of n items of `typesize` bytes, by c-blosc's shuffle.c (README_CHUNK_FORMAT.rst only names the flags)::

    byte shuffle    byte j of item i lies at  j * n + i
    bit shuffle     bit b of byte j of item i is bit i % 8 of the byte at  (8 * j + b) * n / 8 + i // 8

Bytes behind the last whole item stay in place. A block whose number of items is no multiple of 8 is copied, not bit
shuffled.

Compiled, because it runs over every byte of most chunks when their blocks are decoded one by one. `shuffle.h` has the
vector loops; the AVX2 loop is selected when the module is imported.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from zcore.kernel.codec.table cimport CodecFunctions, Step, Workspace, add_codec, codec_row
from zcore.kernel.memory cimport Bytes
from zcore.kernel.status cimport Status


cdef extern from "codec/shuffle.h" nogil:
    void zc_choose_vectors() noexcept
    void zc_planes_to_items(const char *src, int64_t plane, char *dst, int64_t n, int64_t typesize) noexcept
    void zc_items_to_planes(const char *src, char *dst, int64_t plane, int64_t n, int64_t typesize) noexcept
    void zc_rows_to_items(const char *src, char *dst, int64_t n, int64_t typesize) noexcept
    void zc_items_to_rows(const char *src, char *dst, int64_t n, int64_t typesize) noexcept


zc_choose_vectors()


cdef void shuffle_block(const uint8_t *src, uint8_t *dst, int64_t n_bytes, int64_t typesize) noexcept nogil:
    cdef int64_t n = n_bytes // typesize
    zc_items_to_planes(<const char *>src, <char *>dst, n, n, typesize)
    copy_rest(src, dst, n_bytes, n * typesize)


cdef void unshuffle_block(const uint8_t *src, uint8_t *dst, int64_t n_bytes, int64_t typesize) noexcept nogil:
    cdef int64_t n = n_bytes // typesize
    zc_planes_to_items(<const char *>src, n, <char *>dst, n, typesize)
    copy_rest(src, dst, n_bytes, n * typesize)


cdef void bitshuffle_block(const uint8_t *src, uint8_t *dst, int64_t n_bytes, int64_t typesize) noexcept nogil:
    cdef int64_t n = n_bit_items(n_bytes, typesize)
    zc_items_to_rows(<const char *>src, <char *>dst, n, typesize)
    copy_rest(src, dst, n_bytes, n * typesize)


cdef void unbitshuffle_block(const uint8_t *src, uint8_t *dst, int64_t n_bytes, int64_t typesize) noexcept nogil:
    cdef int64_t n = n_bit_items(n_bytes, typesize)
    zc_rows_to_items(<const char *>src, <char *>dst, n, typesize)
    copy_rest(src, dst, n_bytes, n * typesize)


cdef inline int64_t n_bit_items(int64_t n_bytes, int64_t typesize) noexcept nogil:
    cdef int64_t n = n_bytes // typesize
    return n if n % 8 == 0 else 0


cdef void planes_to_items(const uint8_t *planes, int64_t plane, uint8_t *items, int64_t n,
                          int64_t typesize) noexcept nogil:
    zc_planes_to_items(<const char *>planes, plane, <char *>items, n, typesize)


cdef void items_to_planes(const uint8_t *items, uint8_t *planes, int64_t plane, int64_t n,
                          int64_t typesize) noexcept nogil:
    zc_items_to_planes(<const char *>items, <char *>planes, plane, n, typesize)


cdef inline void copy_rest(const uint8_t *src, uint8_t *dst, int64_t n_bytes, int64_t done) noexcept nogil:
    if done < n_bytes:
        memcpy(dst + done, src + done, n_bytes - done)


ctypedef void (*block_function)(const uint8_t *, uint8_t *, int64_t, int64_t) noexcept nogil


def shuffle(data, int64_t typesize):
    """Return one block with the bytes of its items separated: all first bytes, all second bytes, and so on.

    Parameters
    ----------
    data : bytes-like
        The block.
    typesize : int
        Bytes of an item, 1 or more. Bytes behind the last whole item are kept in place.

    Returns
    -------
    bytes
        Of the length of `data`.

    Raises
    ------
    ValueError
        If `typesize` is less than 1.

    Examples
    --------
    >>> shuffle(b"aAbBcC.", 2)
    b'abcABC.'
    """
    return _run(shuffle_block, data, typesize)


def unshuffle(data, int64_t typesize):
    """Return one block with the bytes of its items together again; the inverse of `shuffle`.

    Raises : ValueError, if `typesize` is less than 1.
    Notes : as c-blosc's shuffle.c does to each block of a chunk.

    >>> unshuffle(b"abcABC.", 2)
    b'aAbBcC.'
    """
    return _run(unshuffle_block, data, typesize)


def bitshuffle(data, int64_t typesize):
    """Return one block with the bits of its items separated: the lowest bit of all first bytes, and so on.

    Raises : ValueError, if `typesize` is less than 1.
    Notes : as c-blosc's bitshuffle does to each block of a chunk; a copy unless the number of items is a multiple
    of 8.

    >>> bitshuffle(bytes([0x81, 1, 1, 1, 1, 1, 1, 1]), 1)
    b'\\xff\\x00\\x00\\x00\\x00\\x00\\x00\\x01'
    """
    return _run(bitshuffle_block, data, typesize)


def unbitshuffle(data, int64_t typesize):
    """Return one block with the bits of its items together again; the inverse of `bitshuffle`.

    Raises : ValueError, if `typesize` is less than 1.
    Notes : as c-blosc's bitshuffle does to each block of a chunk; a copy unless the number of items is a multiple
    of 8.

    >>> unbitshuffle(bytes([255, 0, 0, 0, 0, 0, 0, 1]), 1)
    b'\\x81\\x01\\x01\\x01\\x01\\x01\\x01\\x01'
    """
    return _run(unbitshuffle_block, data, typesize)


cdef bytes _run(block_function function, data, int64_t typesize):
    cdef Bytes block = Bytes(data)
    cdef bytes result
    cdef uint8_t *out
    if typesize < 1:
        raise ValueError(f"typesize is {typesize}, an item has at least 1 byte")
    result = PyBytes_FromStringAndSize(NULL, block.n)
    out = <uint8_t *>PyBytes_AS_STRING(result)
    with nogil:
        function(block.data, out, block.n, typesize)
    return result


# the codec

cdef int _configure(Step *step, tuple parameters) except -1:
    step.unit, = parameters
    if step.unit < 1:
        raise ValueError(f"itemsize is {step.unit}, an item has at least 1 byte")
    return 0


cdef int64_t _encode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity,
                     Workspace *work, Status *status) noexcept nogil:
    shuffle_block(src, dst, n_bytes, step.unit)
    return n_bytes


cdef int64_t _decode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit, bint is_exact,
                     Workspace *work, Status *status) noexcept nogil:
    unshuffle_block(src, dst, n_bytes, step.unit)
    return n_bytes


cdef CodecFunctions _row = codec_row(0, _configure, NULL, _encode, _decode)
add_codec("shuffle", &_row)
