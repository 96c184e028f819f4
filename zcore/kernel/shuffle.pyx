# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Byte and bit shuffle of one block.

c-blosc shuffles what it compresses itself; this is for blocks whose inner compressor it lacks, and for shuffle filters
outside of Blosc. Bytes behind the last whole element are copied as they are, and a block whose number of elements is
not a multiple of 8 is not bit-shuffled at all.
"""

cdef extern from "shuffle.h" nogil:
    void zc_shuffle(const uint8_t *src, uint8_t *dst, int64_t n_bytes, int64_t typesize)
    void zc_unshuffle(const uint8_t *src, uint8_t *dst, int64_t n_bytes, int64_t typesize)
    void zc_unbitshuffle(const uint8_t *src, uint8_t *dst, int64_t n_bytes, int64_t typesize)


cdef void shuffle(const uint8_t *src, uint8_t *dst, int64_t n_bytes, int64_t typesize) noexcept nogil:
    zc_shuffle(src, dst, n_bytes, typesize)


cdef void unshuffle(const uint8_t *src, uint8_t *dst, int64_t n_bytes, int64_t typesize) noexcept nogil:
    zc_unshuffle(src, dst, n_bytes, typesize)


cdef void unbitshuffle(const uint8_t *src, uint8_t *dst, int64_t n_bytes, int64_t typesize) noexcept nogil:
    zc_unbitshuffle(src, dst, n_bytes, typesize)


ctypedef void (*Move)(const uint8_t *src, uint8_t *dst, int64_t n_bytes, int64_t typesize) noexcept nogil


cdef bytearray _moved(Move move, const uint8_t[::1] block, int64_t typesize):
    if typesize < 1:
        raise ValueError(f"typesize is {typesize}, expected at least 1")
    cdef bytearray out = bytearray(block.shape[0])
    cdef uint8_t[::1] view = out
    if block.shape[0]:
        move(&block[0], &view[0], block.shape[0], typesize)
    return out


def shuffle_block(const uint8_t[::1] block not None, int64_t typesize):
    """Return a block with byte j of element i at j * n + i.

    >>> bytes(shuffle_block(b"abcdef", 2))
    b'acebdf'
    """
    return _moved(shuffle, block, typesize)


def unshuffle_block(const uint8_t[::1] block not None, int64_t typesize):
    """Return the elements of a byte-shuffled block.

    >>> bytes(unshuffle_block(b"acebdf", 2))
    b'abcdef'
    """
    return _moved(unshuffle, block, typesize)


def unbitshuffle_block(const uint8_t[::1] block not None, int64_t typesize):
    """Return the elements of a bit-shuffled block.

    >>> bytes(unbitshuffle_block(bytes([0xFF, 0, 0, 0, 0, 0, 0, 0]), 1)) == bytes([1] * 8)
    True
    """
    return _moved(unbitshuffle, block, typesize)
