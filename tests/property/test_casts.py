"""The kernel casts numbers as NumPy does in `zcore.codecs.casting`: the same bytes, or the same error."""
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zcore.codecs.chain import CodecChain
from zcore.codecs.values import CastValue
from zcore.errors import CodecError
from zcore.kernel.codec.casting import MAX_MAPPED, ROUNDINGS
from zcore.kernel.codec.filters import ITEM_TYPES
from zcore.model.metadata import CodecSpec

TYPES = [np.dtype(name) for name in ITEM_TYPES]


class CastByNumpy(CastValue):
    """The codec where no type has a form in C."""

    def step(self, dtype):
        return None


@st.composite
def numbers(draw, dtype, target):
    """Return numbers of a type, many of them near the ends of another type, halves, powers of 2, or no numbers."""
    found = draw(st.lists(st.integers(0, 2**64 - 1), max_size=12))
    found = list(np.array(found, "u8").view("u1").reshape(-1, 8)[:, : dtype.itemsize].reshape(-1).view(dtype))
    ends = [0, 1] if target.kind == "f" else [np.iinfo(target).min, np.iinfo(target).max]
    near = st.one_of(
        st.builds(lambda end, d: end + d / 2, st.sampled_from(ends), st.integers(-5, 5)),
        st.builds(lambda bits, d, sign: sign * (2**bits + d), st.integers(0, 64), st.integers(-3, 3),
                  st.sampled_from([1, -1])),
        st.builds(lambda digits, bits: digits * 2.0**bits, st.integers(2**24 - 9, 2**26), st.integers(-175, 104)),
        st.sampled_from([-0.0, np.inf, -np.inf, np.nan, 5e-324, 1e308, 2.0**128, -(2 - 2**-24) * 2.0**127, 0.5, -2.5]))
    for number in draw(st.lists(near, max_size=40)):
        if dtype.kind == "f":
            with np.errstate(all="ignore"):
                found.append(np.float64(number).astype(dtype))
        elif number - number == 0 and np.iinfo(dtype).min <= int(number) <= np.iinfo(dtype).max:
            found.append(dtype.type(int(number)))
    return np.array(found, dtype)


def written(number):
    """Return how documents have a number."""
    if number.dtype.kind != "f":
        return int(number)
    return f"0x{int(number.view(f'u{number.itemsize}')):0{2 * number.itemsize}x}"


def outcome(cast):
    """Return what was made, or all that the error says."""
    try:
        return cast()
    except CodecError as exc:
        return exc.message, exc.codec, exc.direction, exc.offset, exc.expected, repr(exc.found)


def same(by_kernel, by_numpy, exactly):
    if isinstance(by_numpy, tuple) or isinstance(by_kernel, tuple):
        return by_kernel == by_numpy
    assert (by_kernel.dtype, by_kernel.shape) == (by_numpy.dtype, by_numpy.shape)
    # NumPy takes float32 to itself by way of float64, which makes quiet NaN of the signalling ones.
    return by_kernel.tobytes() == by_numpy.tobytes() if exactly else np.array_equal(by_kernel, by_numpy, equal_nan=True)


@st.composite
def casts(draw):
    """Return (dtype, configuration, numbers, encoded numbers)."""
    dtype, target = draw(st.sampled_from(TYPES)), draw(st.sampled_from(TYPES))
    chunk, encoded = draw(numbers(dtype, target)), draw(numbers(target, dtype))
    configuration = {"data_type": target.name, "rounding": draw(st.sampled_from(ROUNDINGS)),
                     "out_of_range": draw(st.sampled_from([None, "clamp"] + ["wrap"] * (target.kind != "f")))}
    scalar_map = {}
    for direction, keys, values in (("encode", chunk, encoded), ("decode", encoded, chunk)):
        if keys.size and values.size and draw(st.booleans()):
            pairs = st.tuples(st.sampled_from(list(keys)), st.sampled_from(list(values)))
            scalar_map[direction] = [[written(key), written(value)] for key, value in draw(
                st.lists(pairs, max_size=MAX_MAPPED + 1))]
    if scalar_map:
        configuration["scalar_map"] = scalar_map
    return dtype, configuration, chunk, encoded


@given(casts(), st.sampled_from([1, 1, 700]))
def test_the_kernel_casts_as_numpy_does(made, repeats):
    """V3-XC-06"""
    dtype, configuration, chunk, encoded = made
    chunk, encoded = np.repeat(chunk, repeats), np.repeat(encoded, repeats)
    by_kernel, by_numpy = CastValue(**configuration), CastByNumpy(**configuration)
    has_c_form = all(len(pairs) <= MAX_MAPPED for pairs in configuration.get("scalar_map", {}).values())
    assert (by_kernel.step(dtype) is not None) == has_c_form
    exactly = dtype.name != configuration["data_type"]
    assert same(outcome(lambda: by_kernel.encode(chunk)), outcome(lambda: by_numpy.encode(chunk)), exactly)
    assert same(outcome(lambda: by_kernel.decode(encoded, dtype, encoded.shape)),
                outcome(lambda: by_numpy.decode(encoded, dtype, encoded.shape)), exactly)


@given(casts(), st.sampled_from(["crc32c", "gzip", "numcodecs.bz2"]))
def test_chains_in_c_and_in_python_cast_alike(made, last):
    """V3-XC-06: behind checksums at the start the bytes lie anywhere."""
    dtype, configuration, chunk, encoded = made
    specs = (CodecSpec("cast_value", {name: value for name, value in configuration.items() if value is not None}),
             CodecSpec("bytes", {"endian": "little"}), CodecSpec("numcodecs.crc32", {"location": "start"}),
             CodecSpec(last, {"level": 1} if last != "crc32c" else {}))
    for numbers_, shape, direction in ((chunk, chunk.shape, "encode"), (encoded, encoded.shape, "decode")):
        chain = CodecChain(specs, dtype, shape)
        stored = CodecChain(specs[1:], numbers_.dtype, shape)
        if not chain.is_native:
            assert last == "numcodecs.bz2" or chain.array_codecs[0].step(dtype) is None
        elif direction == "encode":
            one = outcome(lambda: np.frombuffer(chain.program.encode_bytes(chunk.view("u1"), chain.step_names), "u1"))
            assert same(one, outcome(lambda: np.frombuffer(bytes(chain.encode(chunk)), "u1")), True)
        else:
            raw, out = bytes(stored.encode(encoded)), np.empty(shape, dtype)
            one = outcome(lambda: chain.program.decode_bytes(raw, out.view("u1"), chain.step_names) or out)
            assert same(one, outcome(lambda: chain.decode(raw)), True)
