"""Filters: the items of a chunk changed one by one, of one type before and maybe another behind."""
from libc.stdint cimport int64_t, uint8_t


cdef enum Item:                # types of items, in the machine's byte order; their place in `ITEM_TYPES`
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

cdef struct Filter:
    int item                   # of the decoded chunk, an Item
    int as_item                # of the encoded one
    double offset              # of fixedscaleoffset and scale_offset
    double scale

# Each takes `n` items at `src` and writes as many to `dst`; neither needs to be aligned.
# delta: the first item, then the differences of neighbours. Two integer types, or one floating point type for both.
cdef void delta_encode(const Filter *spec, const uint8_t *src, uint8_t *dst, int64_t n) noexcept nogil
cdef void delta_decode(const Filter *spec, const uint8_t *src, uint8_t *dst, int64_t n) noexcept nogil
# fixedscaleoffset: round((x - offset) * scale), and x / scale + offset. Integers of up to 4 bytes, or floating point.
cdef void scale_encode(const Filter *spec, const uint8_t *src, uint8_t *dst, int64_t n) noexcept nogil
cdef void scale_decode(const Filter *spec, const uint8_t *src, uint8_t *dst, int64_t n) noexcept nogil
# scale_offset: (x - offset) * scale, and x / scale + offset, in the arithmetic of the items, which are floats.
cdef void linear_encode(const Filter *spec, const uint8_t *src, uint8_t *dst, int64_t n) noexcept nogil
cdef void linear_decode(const Filter *spec, const uint8_t *src, uint8_t *dst, int64_t n) noexcept nogil
cdef int64_t item_nbytes(int item) noexcept nogil
