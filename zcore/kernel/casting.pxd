"""Numbers of one type as numbers of another: every way to round, and what becomes of those out of range."""
from libc.stdint cimport int64_t, uint8_t, uint64_t

from zcore.kernel.status cimport Status


cdef enum Rounding:            # their places in `ROUNDINGS`
    NEAREST_EVEN = 0
    TOWARDS_ZERO = 1
    TOWARDS_POSITIVE = 2
    TOWARDS_NEGATIVE = 3
    NEAREST_AWAY = 4

cdef enum OutOfRange:          # their places in `OUT_OF_RANGE`
    REFUSE = 0
    CLAMP = 1
    WRAP = 2                   # integers alone wrap

cdef enum:
    MAX_PAIRS = 8

cdef struct Cast:
    int item                   # an Item, of the numbers that there are
    int as_item                # of those that they become
    int rounding               # a Rounding
    int out_of_range           # an OutOfRange
    int n_pairs                # numbers that are mapped, and to what: the first bytes of each hold an item
    uint64_t keys[8]
    uint64_t values[8]

# Takes `n` items at `src` and writes as many to `dst`; neither needs to be aligned. 0, or a Code: the first item that
# nothing says what becomes of is the `found` of `status`, its byte the `offset`.
cdef int cast_run(const Cast *spec, const uint8_t *src, uint8_t *dst, int64_t n, Status *status) noexcept nogil
