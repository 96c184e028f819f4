"""Filters of numbers, judged by numcodecs."""
import json
import sys

import numcodecs
import numpy as np
import pytest

import zcore
from tests.each import each
from zcore.codecs.chain import CodecChain, codec_of
from zcore.errors import MetadataError, UnsupportedError
from zcore.model.metadata import CodecSpec

INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
RANDOM = np.random.default_rng(3)
ORDER = "<" if sys.byteorder == "little" else ">"     # of the machine


def numbers(dtype, n=1200):
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return (RANDOM.standard_normal(n) * 100).astype(dtype)
    return RANDOM.integers(0, 256, n * dtype.itemsize, "u1").view(dtype)


def chain_of(name, configuration, dtype, shape, endian="little"):
    specs = CodecSpec(f"numcodecs.{name}", configuration), CodecSpec("bytes", {"endian": endian})
    return CodecChain(specs, np.dtype(dtype), shape)


def all_ways(chain, chunk):
    """Return the bytes of a chunk, made in Python and, if it can be, in C, after decoding both."""
    encoded = bytes(chain.encode(chunk))
    decoded = chain.decode(encoded)
    assert (decoded.dtype, decoded.shape) == (chunk.dtype, chunk.shape)
    if chain.program.is_native:
        native = chunk.astype(chunk.dtype.newbyteorder("="))
        assert chain.swap == (0 if chunk.dtype.isnative else chunk.itemsize)
        assert chain.program.encode_bytes(native.tobytes()) == encoded
        out = bytearray(chunk.nbytes)
        chain.program.decode_bytes(encoded, out)
        assert out == decoded.astype(native.dtype).tobytes()
    return encoded, decoded


@each("order", ["C", "F"])
@each(("numbers", "dtype"), [("<f4", "<c8"), ("<f8", "<c16")])
def test_delta_of_the_parts_of_complex_numbers(numbers, dtype, order):
    """V2-COD-06: GDAL takes them as twice as many reals, and so does numcodecs."""
    chunk = (np.arange(24) + 1j * np.arange(24)[::-1] ** 2).astype(dtype).reshape(2, 3, 4)
    members = {"zarr_format": 2, "shape": [2, 3, 4], "chunks": [2, 3, 4], "dtype": dtype, "order": order,
               "compressor": None, "fill_value": None, "filters": [{"id": "delta", "dtype": numbers}]}
    stored = numcodecs.Delta(numbers).encode(chunk.ravel(order)).tobytes()
    store = zcore.MemoryStore({".zarray": json.dumps(members).encode(), "0.0.0": stored})
    array = zcore.open(store, "r+")
    np.testing.assert_array_equal(array[...], chunk)
    np.testing.assert_array_equal(array[1, :, 2], chunk[1, :, 2])
    array[...] = 0
    array[...] = chunk
    assert store.get("0.0.0") == stored and store.get(".zarray") == json.dumps(members).encode()


@each("astype", [*INTEGERS, "f4", "f8"])
@each("dtype", [*INTEGERS, "f4", "f8"])
def test_delta_is_that_of_numcodecs(dtype, astype):
    """V2-COD-06: differences wrap in the decoded type, then become numbers of the encoded one."""
    configuration = {"dtype": f"{ORDER}{dtype}", "astype": f"{ORDER}{astype}"}
    theirs = numcodecs.get_codec({"id": "delta", **configuration})
    chunk = np.arange(1200, dtype=dtype) // 7 * 3 if "f" in dtype + astype else numbers(dtype)
    chunk[0] = 100  # numcodecs refuses to wrap the first one, and it alone
    chain = chain_of("delta", configuration, dtype, (30, 40), sys.byteorder)
    assert chain.program.is_native == (dtype == astype)
    with np.errstate(all="ignore"):
        expected = theirs.encode(chunk).tobytes()
        encoded, decoded = all_ways(chain, chunk.reshape(30, 40))
        assert encoded == expected
        if dtype[0] == astype[0] or ("f" not in dtype + astype and "8" not in astype and dtype != "u8"):
            # numcodecs would add in double precision, and C does not say what a negative sum becomes in `u8`.
            assert decoded.tobytes() == theirs.decode(expected).tobytes()
    if np.dtype(astype).itemsize >= np.dtype(dtype).itemsize and "f" not in dtype + astype:
        assert decoded.tobytes() == chunk.tobytes()


@pytest.mark.parametrize("n", [1, 2, 511, 512, 513, 1024, 1025, 5000])
@pytest.mark.parametrize("dtype", ["i2", "f8"])
def test_delta_of_any_length(n, dtype):
    chunk = numbers(dtype, n)
    all_ways(chain_of("delta", {"dtype": dtype}, dtype, (n,)), chunk)


def test_delta_keeps_minus_zero_at_the_start():
    chunk = np.array([-0.0, 0.0, -0.0])
    encoded, _ = all_ways(chain_of("delta", {"dtype": "f8"}, "f8", (3,)), chunk)
    assert encoded[7] == 0x80


@pytest.mark.parametrize("configuration", [
    {"dtype": "|b1"}, {"dtype": "bool", "astype": "|i1"}, {"dtype": "|b1", "astype": "<i4"},
])
def test_delta_of_truth_values(configuration):
    """V2-COD-06: what numcodecs stores, decoded to what was encoded, which numcodecs does not do."""
    chunk = RANDOM.random(1200) < 0.3
    encoded, decoded = all_ways(chain_of("delta", configuration, "?", (30, 40)), chunk.reshape(30, 40))
    assert encoded == numcodecs.get_codec({"id": "delta", **configuration}).encode(chunk).tobytes()
    assert (decoded.reshape(-1) == chunk).all()


@each(("offset", "scale"), [(0, 1), (100, 10), (-3.5, 0.25), (1000.0, 1e-2), (7, -3)])
@each("astype", ["i1", "u1", "i2", "i4", "u4", "f4", "f8"])
@each("dtype", ["f4", "f8", "i2", "u1", "i4", "f2"])
def test_fixedscaleoffset_is_that_of_numcodecs(dtype, astype, offset, scale):
    """V2-COD-07: where the numbers fit, which is all that numcodecs promises."""
    configuration = {"offset": float(offset), "scale": float(scale), "dtype": f"{ORDER}{dtype}",
                     "astype": f"{ORDER}{astype}"}
    theirs = numcodecs.get_codec({"id": "fixedscaleoffset", **configuration})
    held = np.iinfo(astype) if astype[0] in "iu" else None
    chunk = (np.arange(48) if held is None else np.linspace(max(held.min, -2**20), min(held.max, 2**20), 48))
    chunk = np.clip(chunk / scale + offset, 0 if dtype == "u1" else -2**13, 200 if dtype == "u1" else 2**13)
    chunk = chunk.astype(dtype)
    exact = (chunk.astype("f8") - offset) * scale
    if held is not None:
        limit = 60_000 if dtype == "f2" else 2**40
        chunk = chunk[(exact > max(held.min + 1, -limit)) & (exact < min(held.max - 1, limit))]
    chain = chain_of("fixedscaleoffset", configuration, dtype, chunk.shape, sys.byteorder)
    encoded, decoded = all_ways(chain, chunk)
    with np.errstate(all="ignore"):
        expected = theirs.encode(chunk)
        assert encoded == expected.tobytes()
        assert decoded.tobytes() == theirs.decode(expected).tobytes()


@pytest.mark.parametrize("shards", [None, 6])
@pytest.mark.parametrize("dtype", ["i8", "u8", "M8[ns]", "m8[s]"])
@pytest.mark.parametrize(("offset", "scale"), [(0, 1), (1577836800_000000000, 1), (7, 3)])
def test_fixedscaleoffset_of_long_integers_stores_what_numcodecs_stores(dtype, offset, scale, shards):
    """V2-COD-07: they are exact; in double precision a date of nanoseconds would lose its last 128."""
    number = "u8" if dtype == "u8" else "i8"
    values = 1577836800_000000000 + RANDOM.integers(0, 10**12, 6)
    configuration = {"offset": offset, "scale": scale, "dtype": f"{ORDER}{number}", "astype": f"{ORDER}i8"}
    store = zcore.MemoryStore()
    array = zcore.create_array(store, data=values.astype(number).view(dtype), chunks=6, shards=shards, compressors=None,
                               checksum=False, filters=[{"name": "numcodecs.fixedscaleoffset",
                                                         "configuration": configuration}])
    theirs = numcodecs.get_codec({"id": "fixedscaleoffset", **configuration})
    encoded = theirs.encode(values.astype(number))
    assert encoded.tolist() == [(value - offset) * scale for value in values.tolist()]
    assert store.get("c/0")[:48] == encoded.astype("<i8").tobytes()
    assert array[:].tobytes() == theirs.decode(encoded).tobytes()


def test_fixedscaleoffset_of_numbers_that_do_not_fit():
    """They wrap as in C; a number that no integer holds becomes 0, on every machine and in both ways."""
    chunk = np.array([np.nan, np.inf, -np.inf, 1e300, 300, -1, 2**40 + 5.0, 2.5, 3.5])
    chain = chain_of("fixedscaleoffset", {"offset": 0, "scale": 1, "dtype": "f8", "astype": "u1"}, "f8", (9,))
    encoded, _ = all_ways(chain, chunk)
    assert list(encoded) == [0, 0, 0, 0, 44, 255, 5, 2, 4]
    chain = chain_of("fixedscaleoffset", {"offset": 0, "scale": 1, "dtype": "f8", "astype": "u8"}, "f8", (3,))
    assert chain.decode(chain.encode(np.array([2.0**63 + 2048, -1, 7]))).tolist() == [2.0**63 + 2048, 0, 7]


@pytest.mark.parametrize("endian", ["little", "big"])
@pytest.mark.parametrize("dtype", ["<i4", ">i4"])
@pytest.mark.parametrize("configured", ["<i4", ">i4", "int32"])
def test_byte_order_is_that_of_the_array_and_of_bytes(dtype, configured, endian):
    """V2-COD-15, V3-BYTES-01: what a filter says of byte order does not matter."""
    chain = chain_of("delta", {"dtype": configured, "astype": configured.replace("4", "2").replace("int32", "int16")},
                     dtype, (5,), endian)
    encoded, decoded = all_ways(chain, np.array([5, 6, 8, 8, 700], dtype))
    assert encoded == np.array([5, 1, 2, 0, 692], "<i2" if endian == "little" else ">i2").tobytes()
    assert decoded.tolist() == [5, 6, 8, 8, 700]


@each("order", ["<", ">"])
@each("dtype", ["i2", "u4", "f4", "f8"])
def test_arrays_of_any_byte_order(dtype, order):
    """V2-COD-06: parts, single elements and those that nobody wrote are right; chunks are those of numcodecs."""
    configuration = {"id": "delta", "dtype": order + dtype}
    members = {"zarr_format": 2, "shape": [50, 30], "chunks": [20, 30], "dtype": order + dtype, "order": "C",
               "compressor": None, "fill_value": 7, "filters": [configuration]}
    store = zcore.MemoryStore({".zarray": json.dumps(members).encode()})
    array = zcore.open(store, "r+")
    expected = np.full((50, 30), 7, order + dtype)
    for rows, columns in (slice(0, 20), slice(None)), (slice(30, 35), slice(3, 29, 2)), (5, slice(4, None)):
        values = np.arange(expected[rows, columns].size).reshape(expected[rows, columns].shape) % 300
        array[rows, columns] = expected[rows, columns] = values
    np.testing.assert_array_equal(array[...], expected)
    assert array[5, 6] == expected[5, 6] and array[45, 2] == 7 and array[31, 5] == expected[31, 5]
    np.testing.assert_array_equal(array[31:33, ::-3], expected[31:33, ::-3])
    theirs = numcodecs.get_codec(configuration)
    for i in range(2):
        chunk = np.full((20, 30), 7, order + dtype)
        chunk[:] = expected[20 * i:20 * i + 20]
        assert store.get(f"{i}.0") == theirs.encode(chunk).tobytes()


@each("endian", ["little", "big"])
def test_shards_of_scaled_floats_of_any_byte_order(endian):
    inner = [{"name": "scale_offset", "configuration": {"offset": 1, "scale": 4}},
             {"name": "bytes", "configuration": {"endian": endian}}, {"name": "crc32c"}]
    sharding = {"chunk_shape": [5, 4], "codecs": inner, "index_codecs": [{"name": "bytes", "configuration": {
        "endian": "little"}}]}
    members = {"zarr_format": 3, "node_type": "array", "shape": [20, 8], "data_type": "float32", "fill_value": 3,
               "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [10, 8]}},
               "chunk_key_encoding": {"name": "default"},
               "codecs": [{"name": "sharding_indexed", "configuration": sharding}]}
    store = zcore.MemoryStore({"zarr.json": json.dumps(members).encode()})
    array = zcore.open(store, "r+")
    assert array._binding.view.chain.program.is_native == (endian == sys.byteorder)
    expected = np.full((20, 8), 3, "f4")
    array[2:7, 1:] = expected[2:7, 1:] = np.arange(35).reshape(5, 7)
    np.testing.assert_array_equal(array[...], expected)
    assert array[3, 4] == expected[3, 4] and array[0, 0] == 3
    raw = np.frombuffer(store.get("c/0/0"), "f4", 20).view("<f4" if endian == "little" else ">f4")
    np.testing.assert_array_equal(raw, ((expected[:5, :4] - 1) * 4).ravel())


@pytest.mark.parametrize("dtype", ["<M8[ns]", "<m8[s]", ">M8[D]"])
def test_dates_are_seen_as_the_integers_they_are(dtype):
    chunk = np.arange(0, 5000, 7).astype(dtype)
    chain = chain_of("delta", {"dtype": "<i8", "astype": "<i8"}, dtype, chunk.shape)
    encoded, decoded = all_ways(chain, chunk)
    assert np.frombuffer(encoded, "<i8")[1:].tolist() == [7] * (chunk.size - 1)
    assert np.array_equal(decoded, chunk)


def test_filters_follow_each_other():
    """Each one sees what the one before it gives; the sizes between them are known."""
    specs = (CodecSpec("transpose", {"order": [1, 0]}),
             CodecSpec("numcodecs.fixedscaleoffset", {"offset": 10, "scale": 100, "dtype": "f8", "astype": "i4"}),
             CodecSpec("numcodecs.delta", {"dtype": "i4", "astype": "i2"}), CodecSpec("bytes"),
             CodecSpec("numcodecs.shuffle", {"elementsize": 2}), CodecSpec("zstd", {"level": 1}), CodecSpec("crc32c"))
    chain = CodecChain(specs, np.dtype("f8"), (20, 30))
    assert chain.order == (1, 0)
    assert chain.step_names == ("bytes", "numcodecs.shuffle", "zstd", "crc32c")
    chunk = np.round(np.linspace(10, 30, 600), 2).reshape(20, 30)
    assert np.allclose(chain.decode(chain.encode(chunk)), chunk, atol=1e-9)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("keepbits", [1, 3, 10])
def test_bitround_is_that_of_numcodecs(dtype, keepbits):
    """V3-XC-03: decoding is the identity."""
    chunk = numbers(dtype).reshape(30, 40)
    for name in ("bitround", "numcodecs.bitround"):
        specs = CodecSpec(name, {"keepbits": keepbits}), CodecSpec("bytes", {"endian": sys.byteorder})
        chain = CodecChain(specs, np.dtype(dtype), chunk.shape)
        encoded = chain.encode(chunk)
        assert encoded == numcodecs.BitRound(keepbits).encode(chunk).tobytes()
        assert chain.decode(encoded).tobytes() == encoded


def test_bitround_of_what_is_no_finite_number():
    bits = np.array([0x7F800000, 0xFF800000, 0x7F800001, 0x7FFFFFFF, 0xFFC12345, 0x80000000, 0x7F7FFFFF], "u4")
    chain = CodecChain((CodecSpec("bitround", {"keepbits": 3}), CodecSpec("bytes")), np.dtype("f4"), (7,))
    encoded = np.frombuffer(chain.encode(bits.view("f4")), "u4")
    assert encoded[:6].tolist() == bits[:6].tolist() and encoded[6] == 0x7F800000


def test_bitround_of_complex_numbers_and_integers():
    chain = CodecChain((CodecSpec("bitround", {"keepbits": 2}), CodecSpec("bytes")), np.dtype("c16"), (2,))
    assert chain.decode(chain.encode(np.array([1.3 + 2.7j, -1.1j]))).tolist() == [1.25 + 2.5j, -1j]
    chain = CodecChain((CodecSpec("bitround", {"keepbits": 2}), CodecSpec("bytes")), np.dtype("<i4"), (2,))
    assert chain.decode(np.array([5, 6], "<i4").tobytes()).tolist() == [5, 6]
    with pytest.raises(UnsupportedError, match="integers"):
        chain.encode(np.array([5, 6], "<i4"))


@each(("name", "configuration", "dtype", "match"), [
    ("delta", {"dtype": "i4"}, "i2", "takes numbers of type [<>]i4"),
    ("delta", {"dtype": "O"}, "i4", "data type 'O'"),
    ("delta", {"dtype": "i4,i4"}, "i8", "data type"),
    ("delta", {"dtype": "i3"}, "i8", "data type"),
    ("fixedscaleoffset", {"offset": 1, "scale": 1, "dtype": "b1"}, "b1", "does not take numbers"),
    ("delta", {}, "S4", "takes numbers|does not take"),
    ("delta", {"dtype": 5}, "i4", "data type 5"),
    ("fixedscaleoffset", {"offset": 1}, "f8", "scale"),
    ("fixedscaleoffset", {"offset": 1, "scale": 0}, "f8", "other than 0"),
    ("fixedscaleoffset", {"offset": float("nan"), "scale": 1}, "f8", "finite"),
    ("fixedscaleoffset", {"offset": "1", "scale": 1}, "f8", "finite"),
    ("fixedscaleoffset", {"offset": 1, "scale": True}, "f8", "finite"),
    ("fixedscaleoffset", {"offset": 1, "scale": 1, "dtype": "c8"}, "c8", "does not take"),
    ("bitround", {"keepbits": -1}, "f4", "keepbits"),
    ("bitround", {"keepbits": 24}, "f4", "keepbits is 24, float32 has 23"),
    ("bitround", {"keepbits": 2.0}, "f4", "keepbits"),
    ("bitround", {"keepbits": 2}, "S4", "takes numbers"),
])
def test_what_a_filter_does_not_take(name, configuration, dtype, match):
    """V3-COD-02: when the chain is made, not at the first read."""
    with pytest.raises(MetadataError, match=match) as caught:
        chain_of(name, configuration, dtype, (4,))
    assert caught.value.member == "codecs"


def test_what_documents_record():
    codec = codec_of("numcodecs.delta", {"dtype": "<i4", "astype": "<i2"})
    assert codec.spec() == CodecSpec("numcodecs.delta", {"dtype": "<i4", "astype": "<i2"})
    codec = codec_of("numcodecs.fixedscaleoffset", {"offset": 1, "scale": 2.5, "astype": "|u1"})
    assert codec.spec().configuration == {"offset": 1, "scale": 2.5, "astype": "|u1"}
    assert codec_of("numcodecs.fixedscaleoffset", codec.spec().configuration).spec() == codec.spec()
