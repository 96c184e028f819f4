# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""The filters `delta` and `fixedscaleoffset` of numcodecs, and `scale_offset` of zarr-extensions for floats.

They process the items of a chunk in their stored order.

Compiled because they visit every item. Items go through a block that stays in the L1 cache: one loop loads them as
64-bit numbers, one computes, one stores. So ten types need ten loads instead of a hundred filters.

Integer arithmetic wraps, as NumPy's does. If `fixedscaleoffset` stores integers, a number that no 64-bit integer can
hold (also NaN) becomes 0; a narrower integer keeps the lowest bytes. `zcore.codecs.filters` does the same.
"""
from libc.math cimport rint
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from zcore.kernel.codec.table cimport CodecFunctions, Step, Workspace, add_codec, items_bound
from zcore.kernel.numbers cimport F4, F8, I1, I2, I4, I8, U1, U2, U4, U8, item_nbytes, item_t, real_t
from zcore.kernel.status cimport Status

# The typestr without its byte order, in the order of `Item`.
ITEM_TYPES = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")

cdef extern from *:
    """
    #define TWO_63 0x1p63
    """
    const double TWO_63

cdef enum:
    BLOCK_ITEMS = 512

cdef struct Filter:
    int item                   # item type of the decoded chunk, an Item
    int as_item                # item type of the encoded chunk
    double offset              # for fixedscaleoffset and scale_offset
    double scale

ctypedef fused number_t:
    int64_t
    double

ctypedef union Block:
    int8_t i1[BLOCK_ITEMS]
    int16_t i2[BLOCK_ITEMS]
    int32_t i4[BLOCK_ITEMS]
    int64_t i8[BLOCK_ITEMS]
    uint8_t u1[BLOCK_ITEMS]
    uint16_t u2[BLOCK_ITEMS]
    uint32_t u4[BLOCK_ITEMS]
    uint64_t u8[BLOCK_ITEMS]
    float f4[BLOCK_ITEMS]
    double f8[BLOCK_ITEMS]


cdef void _widen(const item_t *items, number_t *numbers, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        numbers[i] = <number_t>items[i]


cdef void _narrow(const number_t *numbers, item_t *items, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        items[i] = <item_t>numbers[i]


cdef void _load(int item, const uint8_t *src, int64_t first, number_t *numbers, int64_t n) noexcept nogil:
    """Widen `n` items from item `first` on."""
    cdef Block block
    memcpy(&block, src + first * item_nbytes(item), n * item_nbytes(item))
    if item == I1:
        _widen(block.i1, numbers, n)
    elif item == I2:
        _widen(block.i2, numbers, n)
    elif item == I4:
        _widen(block.i4, numbers, n)
    elif item == I8:
        _widen(block.i8, numbers, n)
    elif item == U1:
        _widen(block.u1, numbers, n)
    elif item == U2:
        _widen(block.u2, numbers, n)
    elif item == U4:
        _widen(block.u4, numbers, n)
    elif item == U8:
        _widen(block.u8, numbers, n)
    elif number_t is double:
        if item == F4:
            _widen(block.f4, numbers, n)
        else:
            _widen(block.f8, numbers, n)


cdef void _store_ints(int item, const int64_t *numbers, uint8_t *dst, int64_t first, int64_t n) noexcept nogil:
    """Store the lowest bytes of `n` numbers. The sign of an integer makes no difference there."""
    cdef Block block
    if item_nbytes(item) == 1:
        _narrow(numbers, block.u1, n)
    elif item_nbytes(item) == 2:
        _narrow(numbers, block.u2, n)
    elif item_nbytes(item) == 4:
        _narrow(numbers, block.u4, n)
    else:
        _narrow(numbers, block.u8, n)
    memcpy(dst + first * item_nbytes(item), &block, n * item_nbytes(item))


cdef void _store_reals(int item, const double *numbers, uint8_t *dst, int64_t first, int64_t n) noexcept nogil:
    cdef Block block
    cdef int64_t integers[BLOCK_ITEMS]
    cdef int64_t i
    if item < F4:
        for i in range(n):
            # The comparison is false for NaN.
            integers[i] = <int64_t>numbers[i] if -TWO_63 <= numbers[i] < TWO_63 else 0
        _store_ints(item, integers, dst, first, n)
        return
    if item == F4:
        _narrow(numbers, block.f4, n)
    else:
        _narrow(numbers, block.f8, n)
    memcpy(dst + first * item_nbytes(item), &block, n * item_nbytes(item))


cdef void _delta_ints(const Filter *spec, const uint8_t *src, uint8_t *dst, int64_t n, bint encode) noexcept nogil:
    cdef int64_t numbers[BLOCK_ITEMS]
    cdef int64_t rounded[BLOCK_ITEMS]
    cdef Block block
    cdef uint64_t last = 0
    cdef uint64_t current
    cdef int64_t first = 0
    cdef int64_t count
    cdef int64_t i
    cdef bint widens = encode and item_nbytes(spec.as_item) > item_nbytes(spec.item)
    while first < n:
        count = min(n - first, <int64_t>BLOCK_ITEMS)
        if encode:
            _load(spec.item, src, first, numbers, count)
            for i in range(count):
                current = <uint64_t>numbers[i]
                numbers[i] = <int64_t>(current - last)
                last = current
            if widens:
                # A difference has the decoded type and wraps in it, before it is widened.
                _store_ints(spec.item, numbers, <uint8_t *>&block, 0, count)
                _load(spec.item, <const uint8_t *>&block, 0, rounded, count)
                memcpy(numbers, rounded, count * sizeof(int64_t))
            _store_ints(spec.as_item, numbers, dst, first, count)
        else:
            _load(spec.as_item, src, first, numbers, count)
            for i in range(count):
                last += <uint64_t>numbers[i]
                numbers[i] = <int64_t>last
            _store_ints(spec.item, numbers, dst, first, count)
        first += count


cdef void _delta_reals(real_t *block, const uint8_t *src, uint8_t *dst, int64_t n, bint encode) noexcept nogil:
    """`block` is room for BLOCK_ITEMS numbers of the items' type."""
    cdef real_t last = 0
    cdef real_t current
    cdef int64_t first = 0
    cdef int64_t count
    cdef int64_t i
    while first < n:
        count = min(n - first, <int64_t>BLOCK_ITEMS)
        memcpy(block, src + first * sizeof(real_t), count * sizeof(real_t))
        if first == 0:
            # The first item is copied, not added to zero: minus zero survives.
            last = block[0]
        for i in range(1 if first == 0 else 0, count):
            if encode:
                current = block[i]
                block[i] = current - last
                last = current
            else:
                last = last + block[i]
                block[i] = last
        memcpy(dst + first * sizeof(real_t), block, count * sizeof(real_t))
        first += count


cdef void _delta(const Filter *spec, const uint8_t *src, uint8_t *dst, int64_t n, bint encode) noexcept nogil:
    cdef Block block
    if spec.item == F4:
        _delta_reals(block.f4, src, dst, n, encode)
    elif spec.item == F8:
        _delta_reals(block.f8, src, dst, n, encode)
    else:
        _delta_ints(spec, src, dst, n, encode)


cdef int64_t _delta_encode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity,
                           Workspace *work, Status *status) noexcept nogil:
    cdef int64_t n = n_bytes // step.unit
    _delta(<const Filter *>step.parameters, src, dst, n, True)
    return n * step.as_unit


cdef int64_t _delta_decode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit,
                           bint is_exact, Workspace *work, Status *status) noexcept nogil:
    cdef int64_t n = n_bytes // step.as_unit
    _delta(<const Filter *>step.parameters, src, dst, n, False)
    return n * step.unit


cdef int64_t _scale_encode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity,
                           Workspace *work, Status *status) noexcept nogil:
    cdef const Filter *spec = <const Filter *>step.parameters
    cdef int64_t n = n_bytes // step.unit
    cdef double numbers[BLOCK_ITEMS]
    cdef float offset = <float>spec.offset
    cdef float scale = <float>spec.scale
    cdef int64_t first = 0
    cdef int64_t count
    cdef int64_t i
    while first < n:
        count = min(n - first, <int64_t>BLOCK_ITEMS)
        _load(spec.item, src, first, numbers, count)
        if spec.item == F4:
            # NumPy computes in the precision of the items.
            for i in range(count):
                numbers[i] = rint(<float>(<float>(<float>numbers[i] - offset) * scale))
        else:
            for i in range(count):
                numbers[i] = rint((numbers[i] - spec.offset) * spec.scale)
        _store_reals(spec.as_item, numbers, dst, first, count)
        first += count
    return n * step.as_unit


cdef int64_t _scale_decode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit,
                           bint is_exact, Workspace *work, Status *status) noexcept nogil:
    cdef const Filter *spec = <const Filter *>step.parameters
    cdef int64_t n = n_bytes // step.as_unit
    cdef double numbers[BLOCK_ITEMS]
    cdef float offset = <float>spec.offset
    cdef float scale = <float>spec.scale
    cdef int64_t first = 0
    cdef int64_t count
    cdef int64_t i
    while first < n:
        count = min(n - first, <int64_t>BLOCK_ITEMS)
        _load(spec.as_item, src, first, numbers, count)
        if spec.as_item == F4:
            for i in range(count):
                numbers[i] = <float>(<float>(<float>numbers[i] / scale) + offset)
        else:
            for i in range(count):
                numbers[i] = numbers[i] / spec.scale + spec.offset
        _store_reals(spec.item, numbers, dst, first, count)
        first += count
    return n * step.unit


cdef void _linear(real_t *block, const Filter *spec, const uint8_t *src, uint8_t *dst, int64_t n,
                  bint encode) noexcept nogil:
    """`block` is room for BLOCK_ITEMS numbers of the items' type."""
    cdef real_t offset = <real_t>spec.offset
    cdef real_t scale = <real_t>spec.scale
    cdef int64_t first = 0
    cdef int64_t count
    cdef int64_t i
    while first < n:
        count = min(n - first, <int64_t>BLOCK_ITEMS)
        memcpy(block, src + first * sizeof(real_t), count * sizeof(real_t))
        if encode:
            for i in range(count):
                block[i] = (block[i] - offset) * scale
        else:
            for i in range(count):
                block[i] = block[i] / scale + offset
        memcpy(dst + first * sizeof(real_t), block, count * sizeof(real_t))
        first += count


cdef int64_t _linear_items(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst,
                           bint encode) noexcept nogil:
    cdef const Filter *spec = <const Filter *>step.parameters
    cdef Block block
    if spec.item == F4:
        _linear(block.f4, spec, src, dst, n_bytes // step.unit, encode)
    else:
        _linear(block.f8, spec, src, dst, n_bytes // step.unit, encode)
    return n_bytes


cdef int64_t _linear_encode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity,
                            Workspace *work, Status *status) noexcept nogil:
    return _linear_items(step, src, n_bytes, dst, True)


cdef int64_t _linear_decode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit,
                            bint is_exact, Workspace *work, Status *status) noexcept nogil:
    return _linear_items(step, src, n_bytes, dst, False)


def filter_items(str dtype not None, str astype not None, bint real):
    """Return the indices of two typestrs in `ITEM_TYPES`.

    Parameters
    ----------
    dtype, astype : str
        Types of the decoded and the encoded items, without byte order.
    real : bool
        Whether the filter computes in floating point; then 8-byte integers have no C form. Otherwise it computes with
        integers, or with one floating point type.

    Raises
    ------
    ValueError
        The types have no C form.
    """
    if dtype in ITEM_TYPES and astype in ITEM_TYPES:
        item, as_item = ITEM_TYPES.index(dtype), ITEM_TYPES.index(astype)
        if (not {I8, U8} & {item, as_item}) if real else (item == as_item or (item < F4 and as_item < F4)):
            return item, as_item
    raise ValueError(f"a filter from {dtype} to {astype} has no C form")


cdef int _configure(Step *step, str dtype, str astype, bint real) except -1:
    cdef Filter *spec = <Filter *>step.parameters
    spec.item, spec.as_item = filter_items(dtype, astype, real)
    step.unit, step.as_unit = item_nbytes(spec.item), item_nbytes(spec.as_item)
    return 0


cdef int _configure_delta(Step *step, tuple parameters) except -1:
    dtype, astype = parameters
    return _configure(step, dtype, astype, False)


cdef int _configure_scale(Step *step, tuple parameters) except -1:
    cdef Filter *spec = <Filter *>step.parameters
    dtype, astype, spec.offset, spec.scale = parameters
    return _configure(step, dtype, astype, True)


cdef int _configure_linear(Step *step, tuple parameters) except -1:
    cdef Filter *spec = <Filter *>step.parameters
    dtype, spec.offset, spec.scale = parameters
    _configure(step, dtype, dtype, False)
    if spec.item < F4:
        raise ValueError(f"'scale_offset' of {dtype} has no C form")
    return 0


cdef int _add(str name, CodecFunctions *row) except -1:
    row.parameters_nbytes = sizeof(Filter)
    row.bound = items_bound
    return add_codec(name, row)


# delta: the first item, then the differences of neighbours. Two integer types, or one floating point type for both.
cdef CodecFunctions _delta_row
_delta_row.configure = _configure_delta
_delta_row.encode = _delta_encode
_delta_row.decode = _delta_decode
_add("delta", &_delta_row)

# fixedscaleoffset: round((x - offset) * scale), and x / scale + offset. Integers of up to 4 bytes, or floating point.
cdef CodecFunctions _scale_row
_scale_row.configure = _configure_scale
_scale_row.encode = _scale_encode
_scale_row.decode = _scale_decode
_add("fixedscaleoffset", &_scale_row)

# scale_offset: (x - offset) * scale, and x / scale + offset, in the precision of the items, which are floats.
cdef CodecFunctions _linear_row
_linear_row.configure = _configure_linear
_linear_row.encode = _linear_encode
_linear_row.decode = _linear_decode
_add("scale_offset", &_linear_row)
