# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""The filters `delta` and `fixedscaleoffset` of numcodecs, and `scale_offset` of zarr-extensions for floats.

They process the items of a chunk in their stored order.

Compiled because they visit every item. Items go through a block that stays in the first-level cache: they are converted
to the type of the arithmetic, changed in place, and converted to the type in which they are stored.

Integer arithmetic wraps, as NumPy's does. If `fixedscaleoffset` stores integers, a number that no 64-bit integer can
hold (such as NaN) becomes 0, and a narrower integer keeps its lowest bytes. `zcore.codecs.array_array.filters` does the
same.

They compute in the machine's byte order. The step `byte_order` behind them reverses the bytes of each number.
"""
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from zcore.kernel.codec.table cimport CodecFunctions, Step, Workspace, add_codec, items_bound
from zcore.kernel.numbers cimport F4, F8, I1, I2, I4, I8, U1, U2, U4, U8, item_nbytes, item_t, real_t
from zcore.kernel.status cimport Status
from zcore.kernel.strided.copy cimport Copy, copy_run

cdef extern from *:
    """
    #define TWO_63 0x1p63
    /* From here on every number of a type is whole. */
    #define WHOLE_F4 0x1p23f
    #define WHOLE_F8 0x1p52
    /* Of a float and of a double, in its own precision. */
    #define zc_magnitude(x) _Generic((x), float: fabsf, default: fabs)(x)
    #define zc_with_sign(size, x) _Generic((x), float: copysignf, default: copysign)(size, x)
    """
    const double TWO_63
    const float WHOLE_F4
    const double WHOLE_F8
    double magnitude "zc_magnitude" (double x) nogil
    double with_sign "zc_with_sign" (double size, double x) nogil

# The typestr without its byte order, at the index that `Item` gives it.
ITEM_TYPES = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")

cdef enum:
    BLOCK_ITEMS = 512          # of a block, which stays in the first-level cache

cdef struct Filter:
    int item                   # of the decoded chunk, an Item
    int as_item                # of the encoded chunk
    bint is_delta
    bint is_rounded            # fixedscaleoffset rounds when it encodes
    double offset
    double scale

ctypedef fused number_t:
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    float
    double

ctypedef fused wide_t:
    int64_t
    double

ctypedef union Block:
    uint8_t u1[BLOCK_ITEMS]
    uint16_t u2[BLOCK_ITEMS]
    uint32_t u4[BLOCK_ITEMS]
    uint64_t u8[BLOCK_ITEMS]
    int64_t i8[BLOCK_ITEMS]
    float f4[BLOCK_ITEMS]
    double f8[BLOCK_ITEMS]


cdef void _widen(const item_t *src, wide_t *dst, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        dst[i] = <wide_t>src[i]


cdef void _widen_item(int item, const void *src, wide_t *dst, int64_t n) noexcept nogil:
    if item == I1:
        _widen(<const int8_t *>src, dst, n)
    elif item == I2:
        _widen(<const int16_t *>src, dst, n)
    elif item == I4:
        _widen(<const int32_t *>src, dst, n)
    elif item == I8:
        _widen(<const int64_t *>src, dst, n)
    elif item == U1:
        _widen(<const uint8_t *>src, dst, n)
    elif item == U2:
        _widen(<const uint16_t *>src, dst, n)
    elif item == U4:
        _widen(<const uint32_t *>src, dst, n)
    elif item == U8:
        _widen(<const uint64_t *>src, dst, n)
    elif wide_t is double and item == F4:
        _widen(<const float *>src, dst, n)
    elif wide_t is double:
        _widen(<const double *>src, dst, n)


cdef void _narrow(const wide_t *src, number_t *dst, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        dst[i] = <number_t>src[i]


cdef void _convert(int item, int as_item, const Block *src, Block *dst, int64_t n) noexcept nogil:
    """Convert a block of numbers as C does; integers keep their lowest bytes. Not from floats to integers."""
    cdef Block wide
    if as_item >= F4:
        _widen_item(item, src, wide.f8, n)
        if as_item == F4:
            _narrow(wide.f8, dst.f4, n)
        else:
            memcpy(dst, &wide, n * sizeof(double))
        return
    _widen_item(item, src, wide.i8, n)
    if item_nbytes(as_item) == 1:
        _narrow(wide.i8, dst.u1, n)
    elif item_nbytes(as_item) == 2:
        _narrow(wide.i8, dst.u2, n)
    elif item_nbytes(as_item) == 4:
        _narrow(wide.i8, dst.u4, n)
    else:
        _narrow(wide.i8, dst.u8, n)


cdef void _delta(number_t *numbers, bint is_first, int64_t n, bint encode, number_t *last) noexcept nogil:
    """Change a block; `last` is the decoded number before it."""
    cdef number_t current = numbers[n - 1]
    cdef int64_t i
    # The first number of a chunk stays what it is, minus zero too.
    cdef int64_t start = 1 if is_first else 0
    if encode:
        for i in range(n - 1, 0, -1):
            numbers[i] = <number_t>(numbers[i] - numbers[i - 1])
        if not is_first:
            numbers[0] = <number_t>(numbers[0] - last[0])
        last[0] = current
    else:
        current = numbers[0] if is_first else last[0]
        for i in range(start, n):
            current = <number_t>(current + numbers[i])
            numbers[i] = current
        last[0] = current


cdef void _delta_block(int item, Block *numbers, bint is_first, int64_t n, bint encode, Block *last) noexcept nogil:
    if item == F4:
        _delta(numbers.f4, is_first, n, encode, last.f4)
    elif item == F8:
        _delta(numbers.f8, is_first, n, encode, last.f8)
    elif item_nbytes(item) == 1:
        _delta(numbers.u1, is_first, n, encode, last.u1)
    elif item_nbytes(item) == 2:
        _delta(numbers.u2, is_first, n, encode, last.u2)
    elif item_nbytes(item) == 4:
        _delta(numbers.u4, is_first, n, encode, last.u4)
    else:
        _delta(numbers.u8, is_first, n, encode, last.u8)


cdef inline real_t _nearest(real_t x) noexcept nogil:
    """Return the nearest integer, the even one of two, as a float: the sum drops all fractional digits."""
    cdef real_t whole = WHOLE_F4 if real_t is float else WHOLE_F8
    cdef real_t size = magnitude(x)
    # Each result is assigned: s390x may compute an expression of floats in double precision.
    cdef real_t rounded = size + whole
    rounded = rounded - whole
    # False for NaN.
    rounded = rounded if size < whole else size
    return <real_t>with_sign(rounded, x)


cdef void _scale(const Filter *spec, real_t *numbers, int64_t n, bint encode) noexcept nogil:
    cdef real_t offset = <real_t>spec.offset
    cdef real_t scale = <real_t>spec.scale
    cdef int64_t i
    if encode:
        for i in range(n):
            numbers[i] = numbers[i] - offset
            numbers[i] = numbers[i] * scale
    else:
        for i in range(n):
            numbers[i] = numbers[i] / scale
            numbers[i] = numbers[i] + offset
    if encode and spec.is_rounded:
        for i in range(n):
            numbers[i] = _nearest(numbers[i])


cdef void _to_int64(const real_t *numbers, int64_t *integers, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        # The comparison is false for NaN.
        integers[i] = <int64_t>numbers[i] if -TWO_63 <= numbers[i] < TWO_63 else 0


cdef void _filter_run(const Filter *spec, const uint8_t *src, uint8_t *dst, int64_t n, bint encode) noexcept nogil:
    """Encode or decode `n` items; neither `src` nor `dst` needs to be aligned."""
    cdef int item = spec.item if encode else spec.as_item
    cdef int as_item = spec.as_item if encode else spec.item
    cdef int64_t nbytes = item_nbytes(item)
    cdef int64_t as_nbytes = item_nbytes(as_item)
    # The type of the arithmetic. A difference has the decoded type, and wraps like it. The other filters compute in the
    # precision of the floats that they are given, as NumPy does.
    cdef int wide = spec.item if spec.is_delta else F4 if item == F4 else F8
    cdef Block numbers, block, last
    cdef Block *result
    cdef int64_t first = 0
    cdef int64_t count
    while first < n:
        count = min(n - first, <int64_t>BLOCK_ITEMS)
        memcpy(&numbers if item == wide else &block, src + first * nbytes, count * nbytes)
        if item != wide:
            _convert(item, wide, &block, &numbers, count)
        if spec.is_delta:
            _delta_block(wide, &numbers, first == 0, count, encode, &last)
        elif wide == F4:
            _scale(spec, numbers.f4, count, encode)
        else:
            _scale(spec, numbers.f8, count, encode)
        result = &numbers
        if as_item < F4 and wide == F4:
            _to_int64(numbers.f4, block.i8, count)
            _convert(I8, as_item, &block, &numbers, count)
        elif as_item < F4 and wide == F8:
            _to_int64(numbers.f8, block.i8, count)
            _convert(I8, as_item, &block, &numbers, count)
        elif as_item != wide:
            _convert(wide, as_item, &numbers, &block, count)
            result = &block
        memcpy(dst + first * as_nbytes, result, count * as_nbytes)
        first += count


cdef int64_t _encode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity,
                     Workspace *work, Status *status) noexcept nogil:
    cdef int64_t n = n_bytes // step.unit
    _filter_run(<const Filter *>step.parameters, src, dst, n, True)
    return n * step.as_unit


cdef int64_t _decode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit, bint is_exact,
                     Workspace *work, Status *status) noexcept nogil:
    cdef int64_t n = n_bytes // step.as_unit
    _filter_run(<const Filter *>step.parameters, src, dst, n, False)
    return n * step.unit


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
    (<Filter *>step.parameters).is_delta = True
    dtype, astype = parameters
    return _configure(step, dtype, astype, False)


cdef int _configure_scale(Step *step, tuple parameters) except -1:
    cdef Filter *spec = <Filter *>step.parameters
    spec.is_rounded = True
    dtype, astype, spec.offset, spec.scale = parameters
    return _configure(step, dtype, astype, True)


cdef int _configure_linear(Step *step, tuple parameters) except -1:
    cdef Filter *spec = <Filter *>step.parameters
    dtype, spec.offset, spec.scale = parameters
    _configure(step, dtype, dtype, False)
    if spec.item < F4:
        raise ValueError(f"'scale_offset' of {dtype} has no C form")
    return 0


cdef int _configure_order(Step *step, tuple parameters) except -1:
    step.unit, = parameters
    step.as_unit = step.unit
    if step.unit not in (2, 4, 8):
        raise ValueError(f"the bytes of numbers of {step.unit} have no other order")
    return 0


cdef int64_t _encode_order(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity,
                           Workspace *work, Status *status) noexcept nogil:
    cdef Copy spec
    spec.ndim = 1
    spec.itemsize = spec.swap = spec.src_strides[0] = spec.dst_strides[0] = step.unit
    spec.shape[0] = n_bytes // step.unit
    copy_run(&spec, <const char *>src, <char *>dst)
    return n_bytes


cdef int64_t _decode_order(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit,
                           bint is_exact, Workspace *work, Status *status) noexcept nogil:
    return _encode_order(step, src, n_bytes, dst, limit, work, status)


cdef CodecFunctions _order
_order.configure = _configure_order
_order.encode = _encode_order
_order.decode = _decode_order
add_codec("byte_order", &_order)

cdef CodecFunctions _rows[3]
# delta: the first item, then the differences of neighbours. Two integer types, or one floating point type for both.
_rows[0].configure = _configure_delta
# fixedscaleoffset: round((x - offset) * scale), and x / scale + offset. Integers of up to 4 bytes, or floating point.
_rows[1].configure = _configure_scale
# scale_offset: (x - offset) * scale, and x / scale + offset, in the arithmetic of the items, which are floats.
_rows[2].configure = _configure_linear


cdef int _add_rows() except -1:
    cdef int i
    for i, name in enumerate(("delta", "fixedscaleoffset", "scale_offset")):
        _rows[i].parameters_nbytes = sizeof(Filter)
        _rows[i].bound = items_bound
        _rows[i].encode = _encode
        _rows[i].decode = _decode
        add_codec(name, &_rows[i])
    return 0


_add_rows()
