"""The types of numbers that the kernel computes with, in the machine's byte order, and the sizes in files."""
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef enum Item:                # indices into `ITEM_TYPES` of `codec.filters`
    I1 = 0
    I2 = 1
    I4 = 2
    I8 = 3
    U1 = 4
    U2 = 5
    U4 = 6
    U8 = 7
    F4 = 8
    F8 = 9


ctypedef fused item_t:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    float
    double

ctypedef fused real_t:
    float
    double


cdef inline int64_t item_nbytes(int item) noexcept nogil:
    return 4 << (item - F4) if item >= F4 else 1 << (item & 3)


# Sizes and checksums in files: 32 bits, little-endian, anywhere.
cdef inline uint32_t load_u32(const uint8_t *p) noexcept nogil:
    return p[0] | <uint32_t>p[1] << 8 | <uint32_t>p[2] << 16 | <uint32_t>p[3] << 24


cdef inline void store_u32(uint8_t *p, uint32_t v) noexcept nogil:
    p[0] = v & 0xff
    p[1] = v >> 8 & 0xff
    p[2] = v >> 16 & 0xff
    p[3] = v >> 24
