"""Byte and bit shuffle of one block, as Blosc and the shuffle filters define them."""
from libc.stdint cimport int64_t, uint8_t


cdef void shuffle_block(const uint8_t *src, uint8_t *dst, int64_t n_bytes, int64_t typesize) noexcept nogil
cdef void unshuffle_block(const uint8_t *src, uint8_t *dst, int64_t n_bytes, int64_t typesize) noexcept nogil
cdef void bitshuffle_block(const uint8_t *src, uint8_t *dst, int64_t n_bytes, int64_t typesize) noexcept nogil
cdef void unbitshuffle_block(const uint8_t *src, uint8_t *dst, int64_t n_bytes, int64_t typesize) noexcept nogil

# Parts of a byte-shuffled block: `n` items, byte j of item i at planes + j * plane + i.
cdef void planes_to_items(const uint8_t *planes, int64_t plane, uint8_t *items, int64_t n,
                          int64_t typesize) noexcept nogil
cdef void items_to_planes(const uint8_t *items, uint8_t *planes, int64_t plane, int64_t n,
                          int64_t typesize) noexcept nogil
