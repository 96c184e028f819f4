"""Numbers cast: the ends of every type, halves, what is no number, and where the first one is that cannot be."""
import numpy as np
import pytest

from tests.each import each
from zcore.codecs.array_array.casting import OUT_OF_RANGE, ROUNDINGS
from zcore.codecs.array_array.scale_and_cast import CastValue
from zcore.errors import CodecError

INTEGERS, FLOATS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"), ("f4", "f8")


def written(number):
    """Return how documents have a number."""
    number = np.asarray(number)[()]
    if number.dtype.kind != "f":
        return int(number)
    return f"0x{int(number.view(f'u{number.itemsize}')):0{2 * number.itemsize}x}"


def cast(numbers, astype, rounding="nearest-even", out_of_range=None, pairs=()):
    """Return numbers cast by the codec; `pairs` are the mapped numbers and their values."""
    scalar_map = {"encode": [[written(key), written(value)] for key, value in pairs]} if pairs else None
    codec = CastValue(data_type=np.dtype(astype).name, rounding=rounding, out_of_range=out_of_range,
                      scalar_map=scalar_map)
    return codec.encode(np.asarray(numbers))


@each("astype", INTEGERS)
@each("dtype", INTEGERS + FLOATS)
def test_ends_of_integers(dtype, astype):
    """V3-XC-06"""
    low, high = int(np.iinfo(astype).min), int(np.iinfo(astype).max)
    for number in (low - 1, low, low + 1, high - 1, high, high + 1):
        with np.errstate(all="ignore"):
            given = np.array([number]).astype(dtype) if dtype in FLOATS else (
                np.array([number], dtype) if np.iinfo(dtype).min <= number <= np.iinfo(dtype).max else None)
        if given is None:
            continue
        number = int(given[0])
        assert cast(given, astype, out_of_range="clamp").tolist() == [min(max(number, low), high)]
        assert cast(given, astype, out_of_range="wrap").tolist() == [(number - low) % (high - low + 1) + low]
        if low <= number <= high:
            assert cast(given, astype).tolist() == [number]
        else:
            with pytest.raises(CodecError, match=f"is out of the range from {low} to {high}") as caught:
                cast(given, astype)
            assert (caught.value.found, caught.value.expected) == (number, low if number < low else high)
            assert (caught.value.codec, caught.value.direction) == ("cast_value", "encode")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("astype", INTEGERS)
def test_halves(dtype, astype):
    """V3-XC-06"""
    numbers = np.array([0.5, 1.5, 2.5, 0.25, 1.75, 3, 0.49999997], dtype)
    expected = {"nearest-even": [0, 2, 2, 0, 2, 3, 0], "towards-zero": [0, 1, 2, 0, 1, 3, 0],
                "towards-positive": [1, 2, 3, 1, 2, 3, 1], "towards-negative": [0, 1, 2, 0, 1, 3, 0],
                "nearest-away": [1, 2, 3, 0, 2, 3, 0]}
    mirrored = {**expected, "towards-positive": expected["towards-negative"],
                "towards-negative": expected["towards-positive"]}
    for rounding in ROUNDINGS:
        assert cast(numbers, astype, rounding).tolist() == expected[rounding]
        if astype[0] == "i":
            assert cast(-numbers, astype, rounding).tolist() == [-n for n in mirrored[rounding]]
        elif rounding in ("nearest-even", "towards-zero", "towards-positive"):
            assert cast(np.array([-0.5, -0.25, -0.0], dtype), astype, rounding).tolist() == [0, 0, 0]


def test_numbers_are_rounded_before_they_are_compared():
    """V3-XC-06"""
    assert cast([255.5, -0.5], "u1", "towards-zero").tolist() == [255, 0]
    for number, rounding in ((255.5, "nearest-even"), (255.1, "towards-positive"), (-0.5, "nearest-away")):
        with pytest.raises(CodecError):
            cast([number], "u1", rounding)
    largest = float(np.finfo("f4").max)
    beyond = np.nextafter(largest, np.inf)
    assert cast([beyond, -beyond], "f4").tolist() == [largest, -largest]
    assert cast([beyond], "f4", "towards-positive", "clamp").tolist() == [np.inf]
    with pytest.raises(CodecError) as caught:
        cast([1.0, -beyond], "f4", "towards-negative")
    assert (caught.value.found, caught.value.expected, caught.value.offset) == (-beyond, -largest, 8)
    # What lies behind the number that would follow the largest is out of range, wherever it is rounded to.
    with pytest.raises(CodecError):
        cast([2.0**128], "f4", "towards-zero")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("out_of_range", OUT_OF_RANGE)
def test_what_is_no_number(dtype, out_of_range):
    """V3-XC-06"""
    for number in (np.nan, np.inf, -np.inf):
        for astype in INTEGERS:
            with pytest.raises(CodecError, match="NaN and infinity are no integers") as caught:
                cast(np.array([1, number], dtype), astype, out_of_range=out_of_range)
            assert caught.value.expected is None and repr(caught.value.found) == repr(float(number))
        for astype in FLOATS if out_of_range != "wrap" else ():
            found = cast(np.array([number], dtype), astype, out_of_range=out_of_range)
            assert repr(found[0].item()) == repr(float(number))


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_zeros_and_numbers_below_the_normal_ones(rounding):
    """V3-XC-06"""
    assert np.signbit(cast([-0.0, 0.0], "f4", rounding)).tolist() == [True, False]
    assert np.signbit(cast(np.array([-0.0, 0.0], "f4"), "f8", rounding)).tolist() == [True, False]
    least = 2.0**-149
    found = cast([least, 1.5 * least, -1.5 * least, 0.5 * least, 5e-324, -5e-324], "f4", rounding) / np.float32(least)
    assert found.tolist() == {
        "nearest-even": [1, 2, -2, 0, 0, 0], "towards-zero": [1, 1, -1, 0, 0, 0],
        "towards-positive": [1, 2, -1, 1, 1, 0], "towards-negative": [1, 1, -2, 0, 0, -1],
        "nearest-away": [1, 2, -2, 1, 0, 0]}[rounding]
    assert cast(np.array([1e-45], "f4"), "f8", rounding).tolist() == [least]


@each(("dtype", "astype", "n_digits"), [
    ("i4", "f4", 24), ("u4", "f4", 24), ("i8", "f4", 24), ("u8", "f4", 24), ("i8", "f8", 53), ("u8", "f8", 53)])
def test_integers_that_floats_do_not_hold(dtype, astype, n_digits):
    """V3-XC-06"""
    base = 2**n_digits
    numbers = np.array([base + 1, base + 3, base - 1, 2 * base + 2, 2 * base + 3], dtype)
    expected = {"nearest-even": [0, 4, -1, base, base + 4], "towards-zero": [0, 2, -1, base, base],
                "towards-positive": [2, 4, -1, base + 4, base + 4], "nearest-away": [2, 4, -1, base + 4, base + 4]}
    expected["towards-negative"] = expected["towards-zero"]
    for rounding in ROUNDINGS:
        assert [int(n) - base for n in cast(numbers, astype, rounding)] == expected[rounding]
    last = np.array([np.iinfo(dtype).max], dtype)
    assert [float(cast(last, astype, rounding)[0]) for rounding in ("nearest-even", "towards-zero")] == [
        float(int(last[0]) + 1), float((2**n_digits - 1) * 2**(int(last[0]).bit_length() - n_digits))]


@pytest.mark.parametrize("at", [0, 1, 8191, 8192, 9500])
def test_the_first_of_several_is_named(at):
    """V3-XC-06: in any piece, and beside mapped ones."""
    numbers = np.arange(9501.0)
    pairs = [(np.float64(number), np.int16(-number)) for number in (-7.0, 3.0, 3.0, 700.0)]
    expected = np.arange(9501)
    expected[[3, 700]] *= -1
    assert cast(numbers, "i2", pairs=pairs).tolist() == expected.tolist()
    numbers[at:] = 40000
    numbers[at + 1:] = np.nan
    with pytest.raises(CodecError, match="40000.0 is out of the range") as caught:
        cast(numbers, "i2", pairs=pairs)
    assert (caught.value.offset, caught.value.found) == (8 * at, 40000)
    if at < 9500:
        with pytest.raises(CodecError, match="NaN and infinity") as caught:
            cast(numbers, "i2", out_of_range="clamp", pairs=pairs)
        assert caught.value.offset == 8 * (at + 1)


def test_the_first_of_equal_pairs_counts():
    """V3-XC-06"""
    numbers = np.array([0.0, -0.0, np.nan, -np.nan, 5, np.inf])
    pairs = [(np.float64(key), np.uint8(value)) for key, value in (
        (-0.0, 1), (0.0, 2), (np.nan, 3), (np.nan, 4), (np.inf, 255))]
    assert cast(numbers, "u1", pairs=pairs).tolist() == [1, 1, 3, 3, 5, 255]
