"""Byte and bit shuffle of one block, as Blosc and the shuffle filters define them."""
from libc.stdint cimport int64_t, uint8_t


cdef void shuffle(const uint8_t *src, uint8_t *dst, int64_t n_bytes, int64_t typesize) noexcept nogil
cdef void unshuffle(const uint8_t *src, uint8_t *dst, int64_t n_bytes, int64_t typesize) noexcept nogil
cdef void unbitshuffle(const uint8_t *src, uint8_t *dst, int64_t n_bytes, int64_t typesize) noexcept nogil
