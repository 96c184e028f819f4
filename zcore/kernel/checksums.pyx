# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Four checksums of 32 bits under one name.

Compiled because they run over every byte of the chunks whose chains have one. CRC-32C has a module of its own, CRC-32
and Adler-32 are zlib's. Fletcher-32 is HDF5's variant (HDF5 file format specification, filter 3): two sums modulo
65535 over big-endian words of 16 bits, an odd last byte being the high half of a word.
"""
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer

from zcore.kernel.compress cimport adler32, crc32
from zcore.kernel.crc32c cimport crc32c

CHECKSUMS = ("crc32c", "crc32", "adler32", "fletcher32")

cdef enum:
    # After so many words the second sum of 32 bits may overflow, unless it is folded.
    FOLD_WORDS = 360


cdef inline uint32_t _fold(uint32_t v) noexcept nogil:
    return (v & 0xffff) + (v >> 16)


cdef uint32_t _fletcher32(const uint8_t *data, int64_t n_bytes) noexcept nogil:
    cdef uint32_t low = 0
    cdef uint32_t high = 0
    cdef int64_t n_words = n_bytes // 2
    cdef int64_t done = 0
    cdef int64_t stop
    while done < n_words:
        stop = min(done + FOLD_WORDS, n_words)
        while done < stop:
            low += (<uint32_t>data[2 * done] << 8) | data[2 * done + 1]
            high += low
            done += 1
        low = _fold(low)
        high = _fold(high)
    if n_bytes % 2:
        low = _fold(low + (<uint32_t>data[n_bytes - 1] << 8))
        high = _fold(high + low)
    return (_fold(high) << 16) | _fold(low)


cdef uint32_t checksum(int kind, const uint8_t *data, int64_t n_bytes) noexcept nogil:
    if kind == SUM_CRC32C:
        return crc32c(data, n_bytes, 0)
    if kind == SUM_CRC32:
        return crc32(data, n_bytes)
    if kind == SUM_ADLER32:
        return adler32(data, n_bytes)
    return _fletcher32(data, n_bytes)


cdef uint32_t load_u32(const uint8_t *p) noexcept nogil:
    return p[0] | (<uint32_t>p[1] << 8) | (<uint32_t>p[2] << 16) | (<uint32_t>p[3] << 24)


cdef void store_u32(uint8_t *p, uint32_t v) noexcept nogil:
    p[0] = v & 0xff
    p[1] = (v >> 8) & 0xff
    p[2] = (v >> 16) & 0xff
    p[3] = v >> 24


def fletcher32(data):
    """Return HDF5's Fletcher-32 of some bytes, 0 to 2**32 - 1; the GIL is released.

    >>> hex(fletcher32(b"abcde"))
    '0x4ff029c7'
    """
    cdef Py_buffer view
    cdef uint32_t result
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    with nogil:
        result = _fletcher32(<const uint8_t *>view.buf, view.len)
    PyBuffer_Release(&view)
    return result
