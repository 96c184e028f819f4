"""Numbers of one type as those of another, in blocks: for the codec `cast_value` and for the filters."""
from libc.stdint cimport int64_t

from zcore.kernel.numbers cimport real_t


cdef enum:
    BLOCK_ITEMS = 512          # of a block, which stays in the first-level cache

cdef enum Rounding:            # indices into `ROUNDINGS`
    NEAREST_EVEN = 0
    TOWARDS_ZERO = 1
    TOWARDS_POSITIVE = 2
    TOWARDS_NEGATIVE = 3
    NEAREST_AWAY = 4


# Converts up to BLOCK_ITEMS aligned numbers as C does; integers keep their lowest bytes. Not from floats to integers:
# in C, a float out of the range of an integer must not be converted.
cdef void convert(int item, int as_item, const void *src, void *dst, int64_t n) noexcept nogil
# Rounds floats to integers, as floats; NaN and infinity stay. `dst` may be `src`. By NEAREST_EVEN zero keeps its sign.
cdef void round_block(int rounding, const real_t *src, real_t *dst, int64_t n) noexcept nogil
