"""Casts between types of numbers: all rounding modes and out-of-range rules.

zarr-extensions, codec "cast_value". A number that the type can hold stays the same. Any other number is rounded to one
of its two neighbours in the type, and the range is checked after that: a number that is rounded to the largest float is
in range; a number that is rounded to the value after it is not.

All is computed in float64, int64 or uint64, which hold every number of the supported types. Integers that float64 does
not hold are cut to 53 bits and rounded there.
"""
from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from zcore.errors import CodecError
from zcore.model.foreign_dtypes import foreign_dtype, foreign_name, is_complex, is_foreign, is_foreign_name

if TYPE_CHECKING:
    from typing import Any

    import numpy.typing as npt

# Names in the specification of the codec.
ROUNDINGS = ("nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away")
OUT_OF_RANGE = (None, "clamp", "wrap")

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_FLOATS = ("float16", "float32", "float64")


def number_type(name: str) -> np.dtype[Any] | None:
    """Return the type of numbers that documents call `name`, None for other types.

    Raises : UnsupportedError, if it needs a newer `ml_dtypes` than the installed one.
    """
    if name in _INTEGERS or name in _FLOATS:
        return np.dtype(name)
    # float8_e8m0fnu has no zero, and its range has no end to round to.
    if is_foreign_name(name) and not name.startswith("complex") and name != "float8_e8m0fnu":
        return foreign_dtype(name)
    return None


def is_number_type(dtype: np.dtype[Any]) -> bool:
    """Return whether numbers of this type can be cast."""
    if is_foreign(dtype):
        return not is_complex(dtype) and foreign_name(dtype) != "float8_e8m0fnu"
    return dtype.kind in "iu" or (dtype.kind == "f" and dtype.itemsize <= 8)


def is_integer(dtype: np.dtype[Any]) -> bool:
    """Return whether a type of numbers is an integer type."""
    return dtype.kind in "iu" or (is_foreign(dtype) and foreign_name(dtype).startswith(("int", "uint")))


def integer_range(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the smallest and the largest integer of a type."""
    if not is_foreign(dtype):
        info = np.iinfo(dtype)
        return int(info.min), int(info.max)
    name = foreign_name(dtype)
    bits = int(name.rpartition("int")[2])
    return (0, 2**bits - 1) if name.startswith("u") else (-2**(bits - 1), 2**(bits - 1) - 1)


def widened(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return numbers as float64, int64 or uint64, all exact."""
    if not is_integer(array.dtype):
        return array.astype(np.float64)
    if is_foreign(array.dtype):
        return array.astype(np.int8).astype(np.int64)
    return array.astype(np.uint64 if array.dtype.kind == "u" else np.int64)


def cast(numbers: npt.NDArray[Any], dtype: np.dtype[Any], rounding: str = "nearest-even",
         out_of_range: str | None = None) -> npt.NDArray[Any]:
    """Return numbers cast to another type.

    Parameters
    ----------
    numbers : ndarray
        As `widened` returns them.
    dtype : numpy.dtype
        In the machine's byte order.
    rounding : str
        One of `ROUNDINGS`.
    out_of_range : {None, "clamp", "wrap"}
        `wrap` is for integers only.

    Raises
    ------
    CodecError
        A number is out of range, NaN or infinite, the type does not have it, and there is no rule for it. The offset is
        the index of the first such number, and `expected` the end of the range, None for NaN and infinity.
    """
    if not numbers.ndim:
        # NumPy turns 0-d results into scalars, and warns if integer scalars wrap.
        return cast(numbers.reshape(1), dtype, rounding, out_of_range).reshape(())
    if is_integer(dtype):
        found = _integers(numbers, *integer_range(dtype), rounding, out_of_range)
        return found.astype(np.int8).astype(dtype) if is_foreign(dtype) else found.astype(dtype)
    if dtype == np.float64:
        return _as_float64(numbers, rounding)
    numbers = _sticky(numbers)
    if rounding == "nearest-even" and dtype.kind == "f" and not is_foreign(dtype):
        # Rounds like the processor, which is not guaranteed for all types of ml_dtypes.
        with np.errstate(all="ignore"):
            found = numbers.astype(dtype)
        outside = np.isinf(found) & np.isfinite(numbers)
        if out_of_range is None and outside.any():
            raise _out_of_range(numbers, outside, -float(np.finfo(dtype).max), float(np.finfo(dtype).max))
        return found
    return _floats(numbers, dtype, rounding, out_of_range)


def _out_of_range(numbers, outside, low, high):
    """Return the error of the first number `outside`."""
    i = np.argmax(outside)
    found = numbers[i].item()
    return CodecError(f"{found} is out of the range from {low} to {high}", offset=int(i),
                      expected=low if found < low else high, found=found)


def _round(numbers, rounding):
    """Return floats rounded to integers, as floats."""
    if rounding == "nearest-even":
        return np.rint(numbers)
    if rounding == "towards-positive":
        return np.ceil(numbers)
    if rounding == "towards-negative":
        return np.floor(numbers)
    whole = np.trunc(numbers)
    if rounding == "nearest-away":
        whole = whole + np.copysign(np.abs(numbers - whole) >= 0.5, numbers)
    return whole


def _integers(numbers, low, high, rounding, out_of_range):
    """Return integers from `low` to `high`, as int64 or uint64."""
    wide = np.uint64 if low == 0 else np.int64
    is_float = numbers.dtype.kind == "f"
    if is_float:
        with np.errstate(invalid="ignore"):
            numbers = _round(numbers, rounding)
    if not numbers.size:
        return numbers.astype(wide)
    # NaN, if there is one. The number after the last integer is a power of 2, which float64 holds; it may not hold the
    # last one.
    least, largest = numbers.min(), numbers.max()
    if least >= low and largest < high + 1:
        return numbers.astype(wide)
    if is_float and out_of_range == "clamp" and high < 2**53 and np.isfinite(least) and np.isfinite(largest):
        return np.clip(numbers, low, high).astype(wide)
    below, above = numbers < low, numbers >= float(high + 1) if is_float else numbers > high
    outside = below | above
    wrong = ~np.isfinite(numbers)
    if out_of_range is None:
        wrong |= outside
    if wrong.any():
        i = np.argmax(wrong)
        if not np.isfinite(numbers[i]):
            raise CodecError("NaN and infinity are no integers", offset=int(i), found=numbers[i].item())
        raise _out_of_range(numbers, wrong, low, high)
    if out_of_range == "wrap":
        return _wrapped(numbers, low, high).astype(wide)
    inside = np.where(outside, 0, numbers).astype(wide)
    inside[below], inside[above] = low, high
    return inside


def _wrapped(numbers, low, high):
    """Return integers modulo the size of their range, as uint64. Negative ones get all higher bits set."""
    if numbers.dtype.kind != "f":
        found = numbers.astype(np.uint64)
    else:
        found = np.fmod(np.abs(numbers), 2.0**64).astype(np.uint64)
        found = np.where(numbers < 0, np.uint64(0) - found, found)
    sign = np.uint64(-low)
    return ((found & np.uint64(high - low)) ^ sign) - sign


def _magnitudes(integers):
    """Return absolute values as uint64, which holds all of them."""
    return np.where(integers < 0, np.uint64(0) - integers.astype(np.uint64), integers.astype(np.uint64))


def _exact(numbers):
    """Return numbers as float64 if that holds all of them, else None."""
    if numbers.dtype.kind == "f":
        return numbers
    if not numbers.size or (numbers.max() <= 2**53 and numbers.min() >= -2**53):
        return numbers.astype(np.float64)
    return None


def _as_float64(numbers, rounding):
    exact = _exact(numbers)
    if exact is not None:
        return exact
    size = _magnitudes(numbers)
    large = size > np.uint64(2**53)
    # The number of bits to drop, and the two neighbours of the integer, in units of the last kept bit.
    _, n_bits = np.frexp((size >> np.uint64(11)).astype(np.float64))
    excess = np.where(large, n_bits + 11 - 53, 0).astype(np.uint64)
    lower = size >> excess
    rest = size - (lower << excess)
    up = _goes_up(rest, (np.uint64(1) << excess) - rest, lower % np.uint64(2) == 0, numbers < 0, rounding)
    lower = lower + (up & (rest > 0)).astype(np.uint64)
    found = np.ldexp(lower.astype(np.float64), excess.astype(np.int64))
    return np.where(numbers < 0, -found, found)


def _goes_up(below, above, lower_is_even, is_negative, rounding):
    """Return which magnitudes are rounded up, away from zero.

    Parameters
    ----------
    below, above : ndarray
        Distance of the magnitude from its lower and its upper neighbour.
    lower_is_even : ndarray of bool
        Whether the last digit of the lower neighbour is even.
    is_negative : ndarray of bool
    rounding : str
        As in `cast_value`.
    """
    if rounding == "towards-zero":
        return np.zeros(np.shape(below), bool)
    if rounding == "towards-positive":
        return ~is_negative
    if rounding == "towards-negative":
        return is_negative
    return (below > above) | ((below == above) & (~lower_is_even if rounding == "nearest-even" else True))


def _sticky(numbers):
    """Return integers as floats that round to 24 bits or fewer like the integers.

    For integers that float64 does not hold, the last kept bit stands for all dropped bits.
    """
    exact = _exact(numbers)
    if exact is not None:
        return exact
    size = _magnitudes(numbers)
    large = size > np.uint64(2**53)
    cut = (size >> np.uint64(11)) | (size & np.uint64(2**11 - 1) != 0)
    found = np.where(large, cut.astype(np.float64) * 2.0**11, np.where(large, 0, size).astype(np.float64))
    return np.where(numbers < 0, -found, found)


def _floats(numbers, dtype, rounding, out_of_range):
    """Return floats of a type of 32 bits or fewer."""
    has_nan, has_infinity, largest, behind = _ends(dtype)
    special = ~np.isfinite(numbers)
    wrong = (np.isnan(numbers) & (not has_nan)) | (np.isinf(numbers) & (not has_infinity))
    if wrong.any():
        i = np.argmax(wrong)
        raise CodecError(f"{numbers[i]} is no number of the type {dtype.name}", offset=int(i), found=numbers[i].item())
    size = np.abs(np.where(special, 0.0, numbers))
    # The bits of magnitudes ascend with them. Beyond the largest one both neighbours are the value that would follow.
    bits = np.minimum(size, largest).astype(dtype).view(f"u{dtype.itemsize}")
    bits -= bits.view(dtype).astype(np.float64) > size
    lower = np.where(size >= behind, behind, bits.view(dtype).astype(np.float64))
    upper = np.where(lower >= largest, behind, (bits + bits.dtype.type(1)).view(dtype).astype(np.float64))
    up = _goes_up(size - lower, upper - size, bits % 2 == 0, np.signbit(numbers), rounding)
    size = np.where(up & (size != lower), upper, lower)
    outside = size > largest
    if outside.any():
        if out_of_range is None:
            raise _out_of_range(numbers, outside, -largest, largest)
        size = np.where(outside, np.inf if has_infinity else largest, size)
    with np.errstate(all="ignore"):
        return np.where(special, numbers, np.copysign(size, numbers)).astype(dtype)


@lru_cache(maxsize=32)
def _ends(dtype):
    """Return whether a type of floats has NaN and infinity, its largest number, and the value that would follow it."""
    with np.errstate(all="ignore"):
        nan, infinity = np.array([np.nan, np.inf]).astype(dtype).astype(np.float64)
    if is_foreign(dtype):
        from ml_dtypes import finfo
    else:
        finfo = np.finfo
    largest = np.array([finfo(dtype).max]).astype(dtype)
    before = (largest.view(f"u{dtype.itemsize}") - 1).view(dtype)
    largest, before = float(largest[0]), float(before[0])
    return bool(np.isnan(nan)), bool(np.isinf(infinity)), largest, 2 * largest - before
