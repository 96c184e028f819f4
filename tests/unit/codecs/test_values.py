"""`cast_value` and `scale_offset`: every way to round against exact fractions, ranges, maps, and what is refused."""
import functools
import itertools
import json
from fractions import Fraction

import numpy as np
import pytest

import zcore
from tests.each import each
from zcore.codecs.array_array.casting import (
    ROUNDINGS,
    cast,
    integer_range,
    is_integer,
    number_type,
    widened,
)
from zcore.codecs.array_array.scale_and_cast import CastValue, ScaleOffset
from zcore.codecs.chain import CodecChain
from zcore.errors import ChunkError, CodecError, MetadataError, UnsupportedError
from zcore.model.metadata import CodecSpec

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "int2", "int4", "uint2", "uint4"]
FLOATS = ["float16", "float32", "float64", "bfloat16", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4",
          "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"]


def type_of(name):
    if name not in INTEGERS[:8] + FLOATS[:3]:
        pytest.importorskip("ml_dtypes")
    return number_type(name)


def samples(dtype):
    """Numbers of a type: all of a small one, else its ends, powers of 2, halves, what lies beside them, and others."""
    rng = np.random.default_rng(5)
    if dtype.itemsize == 1:
        values = np.arange(256, dtype=np.uint8).view(dtype)
        return values if not is_integer(dtype) else np.unique(widened(values)).astype(np.int16).astype(dtype)
    if is_integer(dtype):
        low, high = integer_range(dtype)
        found = {low, low + 1, high, high - 1, 0, *rng.integers(low, high, 200, dtype).tolist()}
        for bits in range(8 * dtype.itemsize):
            for d in (-2, -1, 0, 1, 2, 3, 2**max(bits - 9, 0), 2**max(bits - 12, 0) + 1, 2**max(bits - 25, 0)):
                found |= {2**bits + d, -2**bits - d, 3 * 2**bits + d}
        return np.array(sorted([n for n in found if low <= n <= high]), dtype)
    raw = rng.integers(0, 256, 400 * dtype.itemsize, np.uint8).view(dtype)
    ends = [0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997, 126.5, 127.5, 128, -128.5, -129, 255.5, 256, 1e30, -1e38,
            3e38, 65504, 65519, 65520, 65535, 65536, 2.0**63, -2.0**63, 2.0**64, 1.8e19, 7, 448, 464, 480, 5.9e-8,
            1e-45, 6.5, 7]
    with np.errstate(all="ignore"):
        raw = np.concatenate([raw, np.array(ends).astype(dtype)])
        around = raw[np.isfinite(raw.astype(np.float64))]
        if dtype.kind == "f":
            around = np.concatenate([np.nextafter(around, dtype.type(np.inf)), np.nextafter(around, dtype.type(0))])
    return np.concatenate([raw, around])


@functools.lru_cache(maxsize=512)
def neighbours(number, dtype):
    """Return two numbers next to a fraction, one of them itself if the type has it; with the one behind the last."""
    if is_integer(dtype):
        low = number.__floor__()
        return low, low + (low != number), lambda n: n % 2 == 0
    if dtype.itemsize <= 2:
        if dtype not in TABLES:
            codes = np.arange(2**(8 * dtype.itemsize)).astype(f"u{dtype.itemsize}")
            with np.errstate(all="ignore"):
                values = codes.view(dtype).astype(float)
            sizes = {}
            for value, code in zip(values.tolist(), codes.tolist(), strict=True):
                if value - value == 0 and value >= 0:
                    sizes.setdefault(value, code)
            ordered = sorted(sizes)
            sizes[2 * ordered[-1] - ordered[-2]] = sizes[ordered[-1]] + 1
            TABLES[dtype] = sorted(sizes), sizes
        ordered, sizes = TABLES[dtype]
        i = np.searchsorted(ordered, float(abs(number)), side="right") - 1
        while Fraction(ordered[i]) > abs(number):
            i -= 1
        low = Fraction(ordered[i])
        high = low if low == abs(number) else Fraction(ordered[min(i + 1, len(ordered) - 1)])
        if number < 0:
            low, high = -high, -low
        return low, high, lambda n: sizes[float(abs(n))] % 2 == 0
    digits = {4: 24, 8: 53}[dtype.itemsize]
    exponent = abs(number.numerator).bit_length() - number.denominator.bit_length()
    exponent += 0 if abs(number) >= Fraction(2)**exponent else -1
    unit = Fraction(2)**max(exponent - digits + 1, {4: -149, 8: -1074}[dtype.itemsize])
    low = (number / unit).__floor__() * unit
    return low, low + (unit if low != number else 0), lambda n: (n / unit) % 2 == 0


TABLES = {}


def expected(number, dtype, rounding, out_of_range):
    """Return what one number becomes, a fraction, NaN or infinity; None where it is refused."""
    if isinstance(number, float) and number - number != 0:
        if is_integer(dtype):
            return None
        with np.errstate(all="ignore"):
            there = float(np.array([number]).astype(dtype)[0])
        return number if there == number or (number != number and there != there) else None
    number = Fraction(number)
    low, high, is_even = neighbours(number, dtype)
    down = {"towards-negative": True, "towards-positive": False, "towards-zero": number > 0}.get(rounding)
    if down is None:
        if number - low != high - number:
            down = number - low < high - number
        elif rounding == "nearest-even":
            down = is_even(low)
        else:
            down = number < 0
    found = low if down else high
    if is_integer(dtype):
        first, last = integer_range(dtype)
        if first <= found <= last:
            return found
        if out_of_range == "wrap":
            return (found - first) % (last - first + 1) + first
        return {None: None, "clamp": first if found < first else last}[out_of_range]
    with np.errstate(all="ignore"):
        has_infinity = np.isinf(np.array([np.inf]).astype(dtype).astype(float)[0])
    if dtype.itemsize <= 2:
        largest = Fraction(TABLES[dtype][0][-2])
    else:
        largest = Fraction(float(np.finfo(dtype).max))
    if abs(found) <= largest:
        return found
    if out_of_range is None:
        return None
    return (float("inf") if has_infinity else largest) * (1 if found > 0 else -1)


def same(found, wanted):
    if isinstance(wanted, float):
        return found == wanted or (found != found and wanted != wanted)
    return found - found == 0 and Fraction(found) == wanted


@pytest.mark.parametrize("n", [10, pytest.param(160, marks=pytest.mark.slow)])
@pytest.mark.parametrize("target", INTEGERS + FLOATS)
@each("source", ["int8", "int64", "uint64", "uint16", "float16", "float32", "float64", "bfloat16", "float8_e5m2",
                 "int4"])
def test_every_number_is_rounded_as_fractions_are(source, target, n):
    """V3-XC-06"""
    target_name, source, target = target, type_of(source), type_of(target)
    numbers = widened(samples(source))
    # All of a byte where n is large.
    numbers = numbers[np.random.default_rng(3).permutation(len(numbers))[:n if source.itemsize > 1 else 3 * n]]
    ranges = [None, "clamp"] + ["wrap"] * is_integer(target)
    for rounding, out_of_range in itertools.product(ROUNDINGS, ranges):
        wanted = [expected(number, target, rounding, out_of_range) for number in numbers.tolist()]
        held = np.array([one is not None for one in wanted])
        found = widened(cast(numbers[held], target, rounding, out_of_range)).tolist()
        wrong = [(number, one, two) for number, one, two in zip(
            numbers[held].tolist(), found, [one for one in wanted if one is not None], strict=True)
            if not same(one, two)]
        assert not wrong, (rounding, out_of_range, wrong[:3])
        for number in numbers[~held][:20]:
            with pytest.raises(CodecError):
                cast(np.array([number]), target, rounding, out_of_range)
        codec = CastValue(data_type=target_name, rounding=rounding, out_of_range=out_of_range)
        if codec.step(source) is not None:
            in_c = widened(codec.encode(numbers[held].astype(source))).tolist()
            assert all(map(same, in_c, [one for one in wanted if one is not None])), (rounding, out_of_range)


def test_signs_of_zero_stay():
    """V3-XC-06"""
    for name in ("float16", "float32", "bfloat16"):
        found = cast(np.array([0.0, -0.0, -1e-60]), type_of(name)).astype(float)
        assert np.signbit(found).tolist() == [False, True, True] and (found == 0).all()


def test_worked_examples():
    """V3-XC-06"""
    int8, int16 = number_type("int8"), number_type("int16")
    with pytest.raises(CodecError, match="128.0 is out of the range from -128 to 127"):
        cast(np.array([128.0]), int8)
    assert cast(np.array([128.0]), int8, out_of_range="clamp").tolist() == [127]
    assert cast(np.array([128.0]), int8, out_of_range="wrap").tolist() == [-128]
    assert cast(np.array([32768, 32769, -32769]), int16, out_of_range="wrap").tolist() == [-32768, -32767, 32767]
    assert [cast(np.array([2.5, -2.5, 3.5, 0.2]), int8, rounding).tolist() for rounding in ROUNDINGS] == [
        [2, -2, 4, 0], [2, -2, 3, 0], [3, -2, 4, 1], [2, -3, 3, 0], [3, -3, 4, 0]]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("out_of_range", [None, "clamp", "wrap"])
def test_what_is_no_number_is_no_integer_unless_it_is_mapped(value, out_of_range):
    """V3-XC-06"""
    chunk = np.array([1.0, value])
    with pytest.raises(CodecError) as caught:
        CastValue(data_type="uint8", out_of_range=out_of_range).encode(chunk)
    assert (caught.value.codec, caught.value.direction) == ("cast_value", "encode")
    pairs = [["NaN", 7], ["+Infinity", 8], ["-Infinity", 9]]
    codec = CastValue(data_type="uint8", out_of_range=out_of_range, scalar_map={"encode": pairs})
    assert codec.encode(chunk)[1] == {np.inf: 8, -np.inf: 9}.get(value, 7)


def test_the_map_goes_first_and_its_first_entry_counts():
    """V3-XC-06"""
    codec = CastValue(data_type="int16", scalar_map={"encode": [[1, 5], [1, 6], [70000, -1], [0, 3]],
                                                     "decode": [[5, 1], [-1, 70000], [3, 0]]})
    assert codec.encoded_type(np.dtype(">i4"), (2, 3)) == (np.dtype("i2"), (2, 3))
    chunk = np.array([[1, 2, 70000], [0, -3, 5]], ">i4")
    encoded = codec.encode(chunk)
    assert encoded.tolist() == [[5, 2, -1], [3, -3, 5]]
    assert codec.decode(encoded, chunk.dtype, chunk.shape).tolist() == [[1, 2, 70000], [0, -3, 1]]


@each("configuration", [
    {}, {"data_type": "bool"}, {"data_type": "complex64"}, {"data_type": "string"}, {"data_type": 5},
    {"data_type": {"name": "uint8", "configuration": {"a": 1}}}, {"data_type": "uint8", "rounding": "up"},
    {"data_type": "uint8", "rounding": None}, {"data_type": "uint8", "out_of_range": "error"},
    {"data_type": "float32", "out_of_range": "wrap"}, {"data_type": "uint8", "more": 1},
    {"data_type": "uint8", "scalar_map": []}, {"data_type": "uint8", "scalar_map": {"encode": [[1, 2, 3]]}},
    {"data_type": "uint8", "scalar_map": {"both": []}}, {"data_type": "uint8", "scalar_map": {"encode": 5}},
    {"data_type": "uint8", "scalar_map": {"encode": [["NaN", 256]]}}, {"data_type": "float8_e8m0fnu"},
    {"data_type": "uint8", "scalar_map": {"encode": [["NaN", 1.0]]}},
    {"data_type": "uint8", "scalar_map": {"decode": [["NaN", 1]]}},
    {"data_type": "uint8", "scalar_map": {"encode": [["nan", 1]]}},
])
def test_configurations_of_cast_value_that_are_none(configuration):
    """V3-XC-06"""
    with pytest.raises(MetadataError):
        CodecChain((CodecSpec("cast_value", configuration), CodecSpec("bytes", {"endian": "little"})),
                   np.dtype("f8"), (4,))


@each(("dtype", "configuration"), [
    ("f4", {"scale": 0}), ("f4", {"scale": "0x00000000"}), ("i4", {"scale": 0.5}), ("i4", {"offset": "1"}),
    ("u1", {"offset": -1}), ("u1", {"scale": 256}), ("f4", {"offset": None}), ("f4", {"scale": [1]}),
    ("f4", {"scale": True}), ("f4", {"scale": 1, "more": 2}), ("c8", {}), ("?", {}), ("M8[s]", {}),
])
def test_configurations_of_scale_offset_that_are_none(dtype, configuration):
    """V3-XC-07"""
    with pytest.raises(MetadataError):
        CodecChain((CodecSpec("scale_offset", configuration), CodecSpec("bytes", {"endian": "little"})),
                   np.dtype(dtype), (4,))


@each("dtype", ["i1", "u1", "<i2", ">u4", "i8", "u8"])
def test_integers_are_scaled_exactly_or_not_at_all(dtype):
    """V3-XC-07"""
    dtype = np.dtype(dtype)
    low, high = integer_range(dtype)
    numbers = np.unique(np.clip(np.array([low, low + 1, low + 7, 0, 1, 2, 3, 5, 12, 100, high - 1, high], object), low,
                                high)).astype(dtype)
    for offset, scale in itertools.product((0, 1, 5, high, low), (1, 2, 3, -1, high)):
        if not low <= scale <= high:
            continue
        codec = ScaleOffset(offset=offset, scale=scale)
        for number in numbers:
            chunk = np.array([number])
            steps = [int(number) - offset, (int(number) - offset) * scale]
            if all([low <= step <= high for step in steps]):
                encoded = codec.encode(chunk)
                assert int(encoded[0]) == steps[1]
                assert codec.decode(encoded, dtype, (1,)).tolist() == [int(number)]
            else:
                with pytest.raises(CodecError) as caught:
                    codec.encode(chunk)
                assert (caught.value.codec, caught.value.direction) == ("scale_offset", "encode")
            exact, rest = divmod(int(number), scale)
            if rest == 0 and low <= exact <= high and low <= exact + offset <= high:
                assert codec.decode(chunk, dtype, (1,)).tolist() == [exact + offset]
            else:
                with pytest.raises(CodecError) as caught:
                    codec.decode(chunk, dtype, (1,))
                assert (caught.value.codec, caught.value.direction) == ("scale_offset", "decode")


def test_floats_are_scaled_in_their_own_arithmetic():
    """V3-XC-07"""
    numbers = np.array([0.1, -7.3, 1e30, np.nan, np.inf], ">f4")
    codec = ScaleOffset(offset=5, scale=0.1)
    encoded = codec.encode(numbers)
    with np.errstate(all="ignore"):
        native = numbers.astype("f4")
        assert encoded.dtype == np.float32
        assert encoded.tobytes() == ((native - np.float32(5)) * np.float32(.1)).tobytes()
        back = codec.decode(encoded, numbers.dtype, numbers.shape)
        assert back.tobytes() == (encoded / np.float32(.1) + np.float32(5)).tobytes()
    assert CodecSpec("scale_offset", {}) == ScaleOffset().spec() == ScaleOffset(offset=0, scale=1).spec()


def create(dtype, *filters, **options):
    return zcore.create_array(zcore.MemoryStore(), shape=(6, 7), chunks=(4, 3), dtype=dtype, filters=list(filters),
                              **options)


def spec(name, **configuration):
    return {"name": name, "configuration": configuration}


def test_arrays_of_the_worked_examples():
    """V3-XC-06, V3-XC-07, V3-XC-08"""
    pairs = {"encode": [["NaN", 0]], "decode": [[0, "NaN"]]}
    a = create("f8", spec("scale_offset", offset=-10, scale=0.1),
               spec("cast_value", data_type="uint8", scalar_map=pairs), fill_value=np.nan)
    data = np.arange(42.0).reshape(6, 7) * 10
    data[2, 2] = np.nan
    a[...] = data
    assert np.array_equal(zcore.open(a.store)[...], data, equal_nan=True)
    a.resize((7, 7))
    assert np.isnan(a[6]).all()
    b = create(">u2", spec("scale_offset", offset=1000), spec("cast_value", data_type="uint8"), fill_value=1000,
               compressors=None, checksum=False)
    b[:4, :3] = 1000 + np.arange(12).reshape(4, 3)
    assert b.store.get("c/0/0") == bytes(range(12))
    with pytest.raises(CodecError, match="256 is out of the range") as caught:
        b[0, 0] = 1256
    assert (caught.value.key, caught.value.codec, caught.value.direction) == ("c/0/0", "cast_value", "encode")
    assert b[0, 0] == 1000


def test_files_and_memory_have_the_same_bytes_and_errors(tmp_path):
    """V3-XC-06, V3-XC-07: files are read and written by the kernel."""
    filters = [spec("transpose", order=[1, 0]), spec("scale_offset", offset=5, scale=0.1), spec(
        "cast_value", data_type="uint8", rounding="nearest-away", scalar_map={"encode": [["NaN", 0]],
                                                                              "decode": [[0, "NaN"]]})]
    arrays = [zcore.create_array(store, shape=(6, 7), chunks=(4, 3), dtype="f4", filters=filters, fill_value="NaN",
                                 compressors=None, checksum=False) for store in (zcore.MemoryStore(), tmp_path / "a")]
    data = np.arange(42, dtype="f4").reshape(6, 7) * 11 + 15
    data[1, 1] = np.nan
    for a in arrays:
        a[...] = data
    assert (tmp_path / "a/c/1/2").read_bytes() == arrays[0].store.get("c/1/2")
    assert np.array_equal(arrays[0][...], arrays[1][...], equal_nan=True)
    assert np.array_equal(arrays[1][...], np.trunc((data - 5) / 10 + np.float32(0.5)) * 10 + 5, equal_nan=True)
    caught = []
    for a in arrays:
        with pytest.raises(CodecError) as error:
            a[4:, 3:6] = [[2000, 1000, -2000], [3000, np.inf, 0]]
        caught.append(error.value)
    for name in CodecError.fields:
        assert getattr(caught[0], name) == getattr(caught[1], name), name
    # The transposed chunk begins with 2000, 3000, of which the second becomes 300, the first number out of range.
    assert (caught[1].message, caught[1].offset) == (caught[0].message, 4)
    assert (caught[1].codec, caught[1].direction) == ("cast_value", "encode")
    assert (caught[1].expected, caught[1].found) == (255, 300)


CAST = {"name": "cast_value", "configuration": {"data_type": "int8"}}
BYTES = {"name": "bytes", "configuration": {"endian": "little"}}


def sharding(chunk_shape, *codecs):
    return {"name": "sharding_indexed", "configuration": {
        "chunk_shape": chunk_shape, "codecs": codecs, "index_codecs": [BYTES]}}


@pytest.mark.parametrize(("codecs", "places", "item"), [
    ([CAST, BYTES], (), 42),
    ([CAST, sharding([4, 4], BYTES)], (), 42),
    ([sharding([4, 4], CAST, BYTES)], ("inner chunk (1, 0)",), 6),
    ([sharding([4, 8], CAST, sharding([4, 4], BYTES))], ("inner chunk (1, 0)",), 10),
    ([sharding([4, 8], sharding([4, 4], CAST, BYTES))], ("inner chunk (1, 0)", "inner chunk (0, 0)"), 6),
])
def test_what_does_not_encode_is_named_by_its_place_in_the_chunk(tmp_path, codecs, places, item):
    """V3-XC-06: in memory and in files, covered or merged, wherever the chunk lies in an object that is there."""
    document = {"zarr_format": 3, "node_type": "array", "shape": [8, 8], "data_type": "float64", "fill_value": 0,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [8, 8]}},
                "chunk_key_encoding": {"name": "default"}, "codecs": codecs}
    for store in (zcore.MemoryStore(), zcore.DirectoryStore(tmp_path)):
        store.set("zarr.json", json.dumps(document).encode())
        a = zcore.open_array(store, mode="r+")
        data = np.ones((8, 8))
        data[5, 2] = 400
        for _ in range(2):
            for selection in (np.s_[...], np.s_[5:6, 1:3]):
                with pytest.raises(CodecError) as caught:
                    a[selection] = data[selection]
                message = ": ".join(["c/0/0", *places, "400.0 is out of the range from -128 to 127"])
                assert (caught.value.message, caught.value.direction) == (message, "encode")
                assert caught.value.inner_coords == ((1, 0) if places else None)
                assert caught.value.offset == 8 * item
            a[...] = 1


def test_an_object_that_does_not_decode_is_an_error():
    """V3-XC-06, V3-XC-07"""
    a = create("i1", spec("cast_value", data_type="int32"), compressors=None, checksum=False)
    a[...] = 5
    assert json.loads(a.store.get("zarr.json"))["codecs"][1] == spec("bytes", endian="little")
    a.store.set("c/0/0", np.full(12, 128, "<i4").tobytes())
    with pytest.raises(ChunkError) as caught:
        a[...]
    assert (caught.value.key, caught.value.codec, caught.value.direction) == ("c/0/0", "cast_value", "decode")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("dtype", "name", "out_of_range", "value"), [
    ("i2", "uint64", "wrap", -3), ("f8", "uint8", "wrap", -3), ("i8", "float32", None, -2**62),
    ("u8", "float64", None, 2**63), ("f8", "int8", "clamp", -1e9), ("f4", "float16", "clamp", 1e30),
])
def test_an_element_alone_is_as_any_other(dtype, name, out_of_range, value):
    """V3-XC-06"""
    found = []
    for shape in ((), (1,)):
        codec = CastValue(data_type=name, out_of_range=out_of_range)
        encoded = codec.encode(np.full(shape, value, dtype))
        assert (encoded.shape, encoded.dtype) == (shape, np.dtype(name))
        found.append(codec.decode(encoded, np.dtype(dtype), shape).reshape(1))
    assert found[0] == found[1]


@each(("dtype", "filters", "fill_value"), [
    ("f8", [spec("cast_value", data_type="float32")], 0.1), ("f8", [spec("cast_value", data_type="uint8")], 0.5),
    ("f8", [spec("cast_value", data_type="uint8")], np.nan), ("i4", [spec("cast_value", data_type="uint8")], -1),
    ("i4", [spec("cast_value", data_type="uint8", out_of_range="clamp")], -1),
    ("f8", [spec("scale_offset", scale=0.5), spec("cast_value", data_type="uint8")], 3),
    ("u1", [spec("scale_offset", offset=100), spec("cast_value", data_type="int16")], 0),
    ("i2", [spec("cast_value", data_type="uint8"), spec("scale_offset", scale=2)], 200),
])
def test_a_fill_value_that_does_not_come_back_is_refused(dtype, filters, fill_value):
    """V3-XC-06, V3-XC-08"""
    store = zcore.MemoryStore()
    with pytest.raises(MetadataError, match="fill value") as caught:
        zcore.create_array(store, shape=(4,), dtype=dtype, filters=filters, fill_value=fill_value)
    assert caught.value.member == "codecs"
    assert list(store.list()) == []


def test_shards_behind_it_see_the_fill_value_it_makes():
    """V3-XC-08"""
    inner = [spec("bytes")]
    sharding = spec("sharding_indexed", chunk_shape=[2], codecs=inner, index_codecs=[spec("bytes", endian="little")])
    a = zcore.create_array(zcore.MemoryStore(), shape=(8,), chunks=(8,), dtype="<i4", fill_value=100,
                           codecs=[spec("scale_offset", offset=90), spec("cast_value", data_type="int8"), sharding])
    a[2:5] = [100, 100, 7]
    raw = a.store.get("c/0")
    assert np.frombuffer(raw[-64:], "<u8").tolist() == [2**64 - 1] * 4 + [0, 2] + [2**64 - 1] * 2
    assert raw[:2] == bytes([7 - 90 + 256, 10])
    assert a[...].tolist() == [100, 100, 100, 100, 7, 100, 100, 100]


def test_types_of_ml_dtypes():
    """V3-XC-06, V3-XC-07, V3-XDT-09"""
    pytest.importorskip("ml_dtypes")
    a = create("bfloat16", spec("scale_offset", scale=2), spec("cast_value", data_type="float8_e5m2"))
    a[...] = np.array([0.5, 1, -2, 3, 1.25, 0, 4])
    assert a[3].astype(float).tolist() == [0.5, 1, -2, 3, 1.25, 0, 4]
    b = create("int4", spec("scale_offset", offset=-1, scale=2))
    b[...] = 2
    assert (b[...].astype(int) == 2).all()
    with pytest.raises(CodecError):
        b[0, 0] = 3
    with pytest.raises((UnsupportedError, ValueError)):
        create("complex_bfloat16", spec("cast_value", data_type="float32"))
