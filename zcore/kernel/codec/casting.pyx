# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Numbers cast from one type to another by the rules of zarr-extensions, codec "cast_value".

Compiled because it visits every number. `zcore.codecs.casting` does the same in NumPy, for types that C does not have.

Mapped numbers are taken out first. Every other number is rounded to one of its two neighbours in the target type. Only
then it is compared with the range: a number that is rounded to the largest float is in range; a number that is rounded
to the value that would follow the largest float is not. NaN and infinity are not integers.

Numbers go through a block that stays in the first-level cache. The loops have no branches, so the compiler can
vectorize them: they write a result for every number and note whether one of them is an error. A second pass finds the
first error. In C, a float out of the range of an integer must not be converted, so each float is compared first.
"""
from libc.math cimport copysign, fabs, fmod, isfinite, ldexp
from libc.stdint cimport (
    INT64_MIN, UINT64_MAX, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t,
)
from libc.string cimport memcpy

from zcore.kernel.codec.table cimport CodecFunctions, Step, Workspace, add_codec, items_bound
from zcore.kernel.numbers cimport F4, F8, I1, I2, I4, I8, U1, U2, U4, U8, item_nbytes, item_t, real_t
from zcore.kernel.status cimport CAST_INTEGER, CAST_NATURAL, CAST_REAL, CAST_SPECIAL, OK, Status, fail

cdef enum OutOfRange:          # indices into `OUT_OF_RANGE`
    REFUSE = 0
    CLAMP = 1
    WRAP = 2                   # only for integer targets

cdef enum:
    MAX_PAIRS = 8

cdef struct Cast:
    int item                   # the Item to cast from
    int as_item                # the Item to cast to
    int rounding               # a Rounding
    int out_of_range           # an OutOfRange
    int n_pairs                # mapped numbers; the first bytes of a key and of a value hold an item
    uint64_t keys[8]
    uint64_t values[8]

# The typestr without its byte order, at the index that `Item` gives it.
ITEM_TYPES = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
# Names in the specification of the codec, at the indices of `Rounding` and `OutOfRange`.
ROUNDINGS = ("nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away")
OUT_OF_RANGE = (None, "clamp", "wrap")
MAX_MAPPED = MAX_PAIRS

cdef extern from *:
    """
    #define TWO_64 0x1p64
    #define TWO_128 0x1p128
    /* From here on every number of a type is whole. */
    #define WHOLE_F4 0x1p23f
    #define WHOLE_F8 0x1p52
    /* Of a float and of a double, in its own precision. */
    #define zc_magnitude(x) _Generic((x), float: fabsf, default: fabs)(x)
    #define zc_with_sign(size, x) _Generic((x), float: copysignf, default: copysign)(size, x)
    """
    const double TWO_64
    const double TWO_128
    const float WHOLE_F4
    const double WHOLE_F8
    double magnitude "zc_magnitude" (double x) nogil
    double with_sign "zc_with_sign" (double size, double x) nogil

# The ranges of the integers, at the indices of their Items.
cdef int64_t _LOW[8]
cdef uint64_t _HIGH[8]
_LOW[:] = [-2**7, -2**15, -2**31, INT64_MIN, 0, 0, 0, 0]
_HIGH[:] = [2**7 - 1, 2**15 - 1, 2**31 - 1, 2**63 - 1, 2**8 - 1, 2**16 - 1, 2**32 - 1, UINT64_MAX]

ctypedef fused int_s:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t

ctypedef fused int_t:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t

ctypedef fused as_t:
    int_t
    real_t

ctypedef union Block:
    int8_t i1[BLOCK_ITEMS]
    double f8[BLOCK_ITEMS]

# Casts a block of aligned numbers. Returns whether there is a number for which no rule gives a result.
ctypedef bint (*cast_function)(const Cast *spec, const void *src, void *dst, int64_t n) noexcept nogil
# Finds the mapped numbers of a block, by which pair (from 1 on), and sets them to zero. Returns whether any is mapped.
ctypedef bint (*take_function)(const Cast *spec, void *numbers, uint8_t *chosen, int64_t n) noexcept nogil
# Writes the values of the numbers that were found.
ctypedef void (*put_function)(const Cast *spec, void *numbers, const uint8_t *chosen, int64_t n) noexcept nogil

cdef cast_function _casts[10][10]
cdef take_function _takes[10]
cdef put_function _puts[10]


cdef bint _ints_to_ints(const Cast *spec, const int_s *src, int_t *dst, int64_t n) noexcept nogil:
    cdef int_s low = <int_s>max(_LOW[spec.item], _LOW[spec.as_item])
    cdef int_s high = <int_s>min(_HIGH[spec.item], _HIGH[spec.as_item])
    cdef int_s x
    cdef int_s is_bad = 0
    cdef int64_t i
    if spec.out_of_range == WRAP or (low == <int_s>_LOW[spec.item] and high == <int_s>_HIGH[spec.item]):
        for i in range(n):
            dst[i] = <int_t>src[i]
    elif spec.out_of_range == CLAMP:
        for i in range(n):
            x = src[i]
            x = low if x < low else x
            x = high if x > high else x
            dst[i] = <int_t>x
    else:
        for i in range(n):
            x = src[i]
            is_bad |= <int_s>((x < low) | (x > high))
            dst[i] = <int_t>x
    return is_bad != 0


cdef inline real_t _nearest(real_t x) noexcept nogil:
    """Return the nearest integer, the even one of two, as a float: the sum drops all fractional digits."""
    cdef real_t whole
    if real_t is float:
        whole = WHOLE_F4
    else:
        whole = WHOLE_F8
    cdef real_t size = magnitude(x)
    cdef real_t rounded = (size + whole) - whole
    # False for NaN.
    rounded = rounded if size < whole else size
    return <real_t>with_sign(rounded, x)


cdef void round_block(int rounding, const real_t *src, real_t *dst, int64_t n) noexcept nogil:
    cdef real_t x
    cdef real_t whole
    cdef real_t none = 0
    cdef real_t one = 1
    cdef real_t up = rounding == TOWARDS_POSITIVE
    cdef real_t down = rounding == TOWARDS_NEGATIVE
    # No remainder is as large as 1.
    cdef real_t up_from = 0.5 if rounding == NEAREST_AWAY else 1
    cdef int64_t i
    if rounding == NEAREST_EVEN:
        for i in range(n):
            dst[i] = _nearest(src[i])
    elif rounding == TOWARDS_POSITIVE or rounding == TOWARDS_NEGATIVE:
        for i in range(n):
            x = src[i]
            whole = _nearest(x)
            whole = whole + (up if whole < x else none)
            dst[i] = whole - (down if whole > x else none)
    else:
        for i in range(n):
            x = magnitude(src[i])
            whole = _nearest(x)
            whole = whole - (one if whole > x else none)
            whole = whole + (one if x - whole >= up_from else none)
            dst[i] = with_sign(whole, src[i])


cdef uint64_t _lowest_bits(double whole) noexcept nogil:
    """Return a finite whole number modulo 2**64."""
    cdef uint64_t found = <uint64_t>fmod(fabs(whole), TWO_64)
    return 0 - found if whole < 0 else found


cdef bint _reals_to_ints(const Cast *spec, const real_t *src, int_t *dst, int64_t n) noexcept nogil:
    cdef real_t rounded[BLOCK_ITEMS]
    cdef real_t low = <real_t>_LOW[spec.as_item]
    # One more than the last integer is a power of 2, which is a float; the last integer may not be one.
    cdef real_t end = <real_t>(_HIGH[spec.as_item] // 2 + 1) * 2
    cdef int_t last = <int_t>_HIGH[spec.as_item]
    cdef real_t top = <real_t>last
    cdef real_t x
    cdef real_t held
    cdef int_t number
    cdef int is_bad = 0
    cdef int64_t i
    round_block(spec.rounding, src, rounded, n)
    if spec.out_of_range == CLAMP:
        if sizeof(int_t) >= sizeof(real_t):
            # The last float below `end`.
            top = end - end / (WHOLE_F4 if real_t is float else WHOLE_F8) / 2
        for i in range(n):
            x = rounded[i]
            is_bad |= x - x != 0
            # NaN becomes `low`.
            held = x if x > low else low
            held = held if held < top else top
            number = <int_t>held
            if sizeof(int_t) >= sizeof(real_t):
                number = last if x >= end else number
            dst[i] = number
        return is_bad
    for i in range(n):
        x = rounded[i]
        is_bad |= not (x >= low) & (x < end)
        dst[i] = <int_t>(x if (x >= low) & (x < end) else 0)
    if not is_bad or spec.out_of_range == REFUSE:
        return is_bad
    is_bad = 0
    for i in range(n):
        x = rounded[i]
        if x - x == 0:
            dst[i] = <int_t>_lowest_bits(x)
        else:
            is_bad = 1
    return is_bad


cdef bint _goes_up(bint is_below_half, bint is_half, bint is_odd, bint is_negative, int rounding) noexcept nogil:
    """Return whether a magnitude between two numbers is rounded to the one that is farther from zero."""
    if rounding == TOWARDS_ZERO:
        return False
    if rounding == TOWARDS_POSITIVE:
        return not is_negative
    if rounding == TOWARDS_NEGATIVE:
        return is_negative
    if is_half:
        return is_odd or rounding == NEAREST_AWAY
    return not is_below_half


cdef double _to_digits(uint64_t size, bint is_negative, int n_digits, int rounding) noexcept nogil:
    """Return an integer rounded to `n_digits` binary digits."""
    cdef int excess = 0
    cdef uint64_t lower
    cdef uint64_t rest
    cdef uint64_t half
    while size >> excess >= <uint64_t>1 << n_digits:
        excess += 1
    lower = size >> excess
    rest = size - (lower << excess)
    if rest:
        half = <uint64_t>1 << (excess - 1)
        lower += _goes_up(rest < half, rest == half, lower & 1, is_negative, rounding)
    return copysign(ldexp(<double>lower, excess), -1.0 if is_negative else 1.0)


cdef bint _ints_to_reals(const Cast *spec, const int_s *src, real_t *dst, int64_t n) noexcept nogil:
    cdef int n_digits = 24 if real_t is float else 53
    cdef int_s x
    cdef int_s low
    cdef int_s high
    cdef int_s is_large = 0
    cdef bint is_negative
    cdef int64_t i
    # The processor rounds to the nearest float.
    for i in range(n):
        dst[i] = <real_t>src[i]
    if spec.rounding == NEAREST_EVEN or 8 * sizeof(int_s) <= <size_t>n_digits:
        return False
    high = <int_s>(<int64_t>1 << n_digits)
    low = <int_s>max(_LOW[spec.item], -(<int64_t>1 << n_digits))
    for i in range(n):
        is_large |= <int_s>((src[i] < low) | (src[i] > high))
    if is_large:
        for i in range(n):
            x = src[i]
            is_negative = x < 0
            dst[i] = <real_t>_to_digits(0 - <uint64_t>x if is_negative else <uint64_t>x, is_negative, n_digits,
                                        spec.rounding)
    return False


cdef float _next_float(float size, int step) noexcept nogil:
    """Return the next float above (1) or below (-1) a magnitude; infinity follows the largest float."""
    cdef uint32_t bits
    memcpy(&bits, &size, sizeof(uint32_t))
    bits += <uint32_t>step
    memcpy(&size, &bits, sizeof(uint32_t))
    return size


cdef float _to_float(double x, int rounding) noexcept nogil:
    """Return a finite float64 rounded to float32, infinity beyond its range."""
    cdef double size = fabs(x)
    cdef float lower = <float>size
    cdef float upper
    if size >= TWO_128 or <double>lower == size:
        return <float>x
    if <double>lower > size:
        lower = _next_float(lower, -1)
    upper = _next_float(lower, 1)
    # Infinity stands for the number that would follow the largest float.
    cdef double above = (TWO_128 if not isfinite(upper) else <double>upper) - size
    cdef double below = size - <double>lower
    cdef uint32_t bits
    memcpy(&bits, &lower, sizeof(uint32_t))
    if _goes_up(below < above, below == above, bits & 1, x < 0, rounding):
        lower = upper
    return <float>copysign(lower, x)


cdef bint _reals_to_reals(const Cast *spec, const real_t *src, as_t *dst, int64_t n) noexcept nogil:
    cdef int is_bad = 0
    cdef int64_t i
    # A float64 beyond the range of float32 becomes infinity (C, annex F), as `clamp` asks for.
    for i in range(n):
        dst[i] = <as_t>src[i]
    if sizeof(as_t) < sizeof(real_t):
        if spec.rounding != NEAREST_EVEN:
            for i in range(n):
                if isfinite(src[i]):
                    dst[i] = <as_t>_to_float(src[i], spec.rounding)
        if spec.out_of_range == REFUSE:
            for i in range(n):
                is_bad |= (src[i] - src[i] == 0) & (dst[i] - dst[i] != 0)
    return is_bad


cdef bint _cast(const Cast *spec, const item_t *src, as_t *dst, int64_t n) noexcept nogil:
    if item_t in real_t:
        if as_t in real_t:
            return _reals_to_reals(spec, src, dst, n)
        else:
            return _reals_to_ints(spec, src, dst, n)
    else:
        if as_t in real_t:
            return _ints_to_reals(spec, src, dst, n)
        else:
            return _ints_to_ints(spec, src, dst, n)


# scalar map

cdef bint _take(const Cast *spec, item_t *numbers, uint8_t *chosen, int64_t n) noexcept nogil:
    """Find the mapped numbers and their pairs (counted from 1), and set them to zero. Return whether there are any."""
    cdef item_t key
    cdef uint8_t any_chosen = 0
    cdef int64_t i
    cdef int k
    for i in range(n):
        chosen[i] = 0
    # If several pairs have the same key, the first pair counts.
    for k in range(spec.n_pairs - 1, -1, -1):
        memcpy(&key, &spec.keys[k], sizeof(item_t))
        for i in range(n):
            chosen[i] = <uint8_t>(k + 1) if numbers[i] == key else chosen[i]
        if item_t is float or item_t is double:
            if key != key:
                for i in range(n):
                    chosen[i] = <uint8_t>(k + 1) if numbers[i] != numbers[i] else chosen[i]
    for i in range(n):
        any_chosen |= chosen[i]
    if any_chosen:
        for i in range(n):
            numbers[i] = 0 if chosen[i] else numbers[i]
    return any_chosen != 0


cdef void _put(const Cast *spec, item_t *numbers, const uint8_t *chosen, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        if chosen[i]:
            memcpy(&numbers[i], &spec.values[chosen[i] - 1], sizeof(item_t))


cdef void _fill_row(int item, item_t *_) noexcept:
    """Fill the row of one type in the tables of functions."""
    _takes[item] = <take_function>_take[item_t]
    _puts[item] = <put_function>_put[item_t]
    _casts[item][<int>I1] = <cast_function>_cast[item_t, int8_t]
    _casts[item][<int>I2] = <cast_function>_cast[item_t, int16_t]
    _casts[item][<int>I4] = <cast_function>_cast[item_t, int32_t]
    _casts[item][<int>I8] = <cast_function>_cast[item_t, int64_t]
    _casts[item][<int>U1] = <cast_function>_cast[item_t, uint8_t]
    _casts[item][<int>U2] = <cast_function>_cast[item_t, uint16_t]
    _casts[item][<int>U4] = <cast_function>_cast[item_t, uint32_t]
    _casts[item][<int>U8] = <cast_function>_cast[item_t, uint64_t]
    _casts[item][<int>F4] = <cast_function>_cast[item_t, float]
    _casts[item][<int>F8] = <cast_function>_cast[item_t, double]


_fill_row(I1, <int8_t *>NULL)
_fill_row(I2, <int16_t *>NULL)
_fill_row(I4, <int32_t *>NULL)
_fill_row(I8, <int64_t *>NULL)
_fill_row(U1, <uint8_t *>NULL)
_fill_row(U2, <uint16_t *>NULL)
_fill_row(U4, <uint32_t *>NULL)
_fill_row(U8, <uint64_t *>NULL)
_fill_row(F4, <float *>NULL)
_fill_row(F8, <double *>NULL)

cdef Cast _AS_IN_C
_AS_IN_C.out_of_range = WRAP


cdef void convert(int item, int as_item, const void *src, void *dst, int64_t n) noexcept nogil:
    _casts[item][as_item](&_AS_IN_C, src, dst, n)


# runs of numbers

cdef int _blame(const Cast *spec, const uint8_t *block, int64_t first, int64_t n, Status *status) noexcept nogil:
    """Record the first number of a block that cannot be cast; `first` is the index of the block's first number."""
    cdef int64_t nbytes = item_nbytes(spec.item)
    cdef cast_function cast = _casts[spec.item][spec.as_item]
    cdef int64_t i = 0
    cdef Block one
    cdef double number
    cdef int64_t bits
    cdef int code
    while i < n - 1 and not cast(spec, block + i * nbytes, &one, 1):
        i += 1
    block += i * nbytes
    if spec.item < F4:
        # An int64 or uint64 of the same value has the same bits.
        convert(spec.item, I8, block, &bits, 1)
        code = CAST_INTEGER if spec.item < U1 else CAST_NATURAL
    else:
        convert(spec.item, F8, block, &number, 1)
        code = CAST_REAL if isfinite(number) else CAST_SPECIAL
        if code == CAST_REAL and spec.as_item < F4:
            round_block(spec.rounding, &number, &number, 1)
        memcpy(&bits, &number, sizeof(double))
    return fail(status, code, (first + i) * nbytes, spec.as_item, bits)


cdef int _cast_run(const Cast *spec, const uint8_t *src, uint8_t *dst, int64_t n, Status *status) noexcept nogil:
    """Cast `n` items from `src` to `dst`, neither of which needs to be aligned: 0, or a Code.

    For the first item that cannot be cast, `status` has the item as `found` and its byte as `offset`.
    """
    cdef cast_function cast = _casts[spec.item][spec.as_item]
    cdef int64_t nbytes = item_nbytes(spec.item)
    cdef int64_t as_nbytes = item_nbytes(spec.as_item)
    cdef bint is_copied = spec.n_pairs > 0 or <uintptr_t>src % <uintptr_t>nbytes != 0
    cdef bint is_moved = <uintptr_t>dst % <uintptr_t>as_nbytes != 0
    cdef Block taken
    cdef Block given
    cdef uint8_t chosen[BLOCK_ITEMS]
    cdef const uint8_t *source
    cdef uint8_t *target
    cdef int64_t first = 0
    cdef int64_t count
    cdef bint is_mapped = False
    while first < n:
        count = min(n - first, <int64_t>BLOCK_ITEMS)
        source = src + first * nbytes
        target = dst + first * as_nbytes
        if is_copied:
            memcpy(&taken, source, count * nbytes)
            source = <const uint8_t *>&taken
        if spec.n_pairs:
            is_mapped = _takes[spec.item](spec, &taken, chosen, count)
        if is_moved:
            target = <uint8_t *>&given
        if cast(spec, source, target, count):
            return _blame(spec, source, first, count, status)
        if is_mapped:
            _puts[spec.as_item](spec, target, chosen, count)
        if is_moved:
            memcpy(dst + first * as_nbytes, &given, count * as_nbytes)
        first += count
    return OK


cdef int64_t _encode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t capacity,
                     Workspace *work, Status *status) noexcept nogil:
    cdef int64_t n = n_bytes // step.unit
    return n * step.as_unit if _cast_run(<const Cast *>step.parameters, src, dst, n, status) == OK else -1


cdef int64_t _decode(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit, bint is_exact,
                     Workspace *work, Status *status) noexcept nogil:
    cdef int64_t n = n_bytes // step.as_unit
    return n * step.unit if _cast_run(<const Cast *>step.parameters + 1, src, dst, n, status) == OK else -1


cdef int _set_cast(Cast *cast, str dtype, str astype, str rounding, object out_of_range, pairs) except -1:
    """Fill a `Cast`; `pairs` has the bytes of the numbers that are mapped and of their values."""
    cdef const uint8_t[::1] raw
    cdef int k
    if dtype not in ITEM_TYPES or astype not in ITEM_TYPES:
        raise ValueError(f"a cast from {dtype} to {astype} has no C form")
    cast.item, cast.as_item = ITEM_TYPES.index(dtype), ITEM_TYPES.index(astype)
    cast.rounding, cast.out_of_range = ROUNDINGS.index(rounding), OUT_OF_RANGE.index(out_of_range)
    if cast.out_of_range == WRAP and cast.as_item >= F4:
        raise ValueError(f"floats do not wrap: a cast from {dtype} to {astype}")
    if len(pairs) > MAX_PAIRS:
        raise ValueError(f"{len(pairs)} numbers are mapped, in C at most {MAX_PAIRS}")
    cast.n_pairs = len(pairs)
    for k, (key, value) in enumerate(pairs):
        for raw, item in ((key, cast.item), (value, cast.as_item)):
            if raw.shape[0] != item_nbytes(item):
                raise ValueError(f"a number of {raw.shape[0]} bytes is mapped, expected {item_nbytes(item)}")
        raw = key
        memcpy(&cast.keys[k], &raw[0], raw.shape[0])
        raw = value
        memcpy(&cast.values[k], &raw[0], raw.shape[0])
    return 0


cdef int _configure(Step *step, tuple parameters) except -1:
    # The first is for encoding, the second for decoding.
    cdef Cast *casts = <Cast *>step.parameters
    dtype, astype, rounding, (encode, encode_pairs), (decode, decode_pairs) = parameters
    _set_cast(&casts[0], dtype, astype, rounding, encode, encode_pairs)
    _set_cast(&casts[1], astype, dtype, rounding, decode, decode_pairs)
    step.unit, step.as_unit = item_nbytes(casts[0].item), item_nbytes(casts[0].as_item)
    return 0


cdef CodecFunctions _row
_row.parameters_nbytes = 2 * sizeof(Cast)
_row.configure = _configure
_row.bound = items_bound
_row.encode = _encode
_row.decode = _decode
add_codec("cast_value", &_row)
