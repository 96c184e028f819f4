"""Sizes and checksums in files: 32 bits, little-endian, anywhere."""
from libc.stdint cimport uint8_t, uint32_t


cdef inline uint32_t load_u32(const uint8_t *p) noexcept nogil:
    return p[0] | <uint32_t>p[1] << 8 | <uint32_t>p[2] << 16 | <uint32_t>p[3] << 24


cdef inline void store_u32(uint8_t *p, uint32_t v) noexcept nogil:
    p[0] = v & 0xff
    p[1] = v >> 8 & 0xff
    p[2] = v >> 16 & 0xff
    p[3] = v >> 24
