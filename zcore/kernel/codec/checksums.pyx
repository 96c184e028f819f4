# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Codecs of four 32-bit checksums, which follow or precede the bytes of an object.

Compiled because they run over every byte of the chunks. CRC-32C has a module of its own; CRC-32 and Adler-32 are
zlib's. Fletcher-32 is HDF5's variant (HDF5 file format specification, filter 3): two sums modulo 65535 over big-endian
words of 16 bits. An odd last byte is the high half of a word.
"""
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uint32_t

from zcore.kernel.codec.compress cimport adler32, crc32
from zcore.kernel.codec.crc32c cimport crc32c_of
from zcore.kernel.codec.table cimport CodecFunctions, Step, add_codec

cdef enum:
    # After this many words the second 32-bit sum may overflow, unless it is folded.
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


cdef uint32_t _crc32c(const uint8_t *data, int64_t n_bytes) noexcept nogil:
    return crc32c_of(data, n_bytes, 0)


cdef int _configure(Step *step, tuple parameters) except -1:
    step.at_start = len(parameters) > 0 and parameters[0]
    return 0


cdef CodecFunctions _rows[4]
_rows[0].sum = _crc32c
_rows[1].sum = crc32
_rows[2].sum = adler32
_rows[3].sum = _fletcher32


cdef int _add_rows() except -1:
    cdef int i
    for i, name in enumerate(("crc32c", "crc32", "adler32", "fletcher32")):
        _rows[i].configure = _configure
        add_codec(name, &_rows[i])
    return 0


_add_rows()


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
