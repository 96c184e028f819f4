"""The oracle against files that zarr-python wrote, and zcore against the oracle over the formats that others leave out.

The other property tests ask the oracle, too, for all that they write.
"""
import ast
import base64
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zcore
from tests import oracle
from tests.each import each
from tests.examples import examples
from tests.judge import ask_the_oracle

FIXTURES = Path(__file__).parents[1] / "fixtures"
EXPECTED = json.loads((FIXTURES / "zarr_v2_218" / "expected.json").read_text(encoding="utf-8"))
OF_OBJECTS = sorted([name for name, expected in EXPECTED.items() if isinstance(expected, list)])
OF_V2 = sorted(EXPECTED.keys() - set(OF_OBJECTS))
RECTILINEAR = {"line": (10,), "runs": (14, 6), "mixed": (9, 7, 4), "grown": (5,), "cut": (10, 4), "shards": (12, 4),
               "turned": (7, 5)}
TYPES = ["|b1", "|i1", "<i2", ">i4", "<u8", "<f2", ">f4", "<f8", "<c8", ">c16", "|S3", "<U2", "<M8[ms]", ">m8[D]"]


def test_the_oracle_knows_nothing_of_zcore():
    tree = ast.parse(Path(oracle.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in imports if isinstance(node, ast.ImportFrom)}
    assert names <= {"base64", "collections", "collections.abc", "fractions", "gzip", "itertools", "json", "math",
                     "ml_dtypes", "numcodecs", "numpy", "pathlib", "zlib"}


def test_its_checksum():
    """RFC 3720, B.4: 32 bytes of zeros, of ones, and 0 to 31."""
    assert [oracle.crc32c(data).hex() for data in (bytes(32), b"\xff" * 32, bytes(range(32)))] == [
        "aa36918a", "43aba862", "4e79dd46"]


@each("name", OF_V2)
def test_it_reads_what_zarr_2_wrote(name):
    found = oracle.read(FIXTURES / "zarr_v2_218", name)
    assert found.tobytes() == base64.b64decode(EXPECTED[name])
    store, _, path = name.partition("/")
    theirs = oracle.rewritten(FIXTURES / "zarr_v2_218" / store, path)
    assert oracle.read(theirs).tobytes() == found.tobytes()


@each("name", OF_OBJECTS)
def test_it_reads_objects_that_zarr_2_wrote(name):
    """Fixtures have 0 for all that is empty or was never written."""
    def shown(item):
        return item.tolist() if isinstance(item, np.ndarray) else (
            item.decode("latin-1") if isinstance(item, bytes) else item)

    found = oracle.read(FIXTURES / "zarr_v2_218", name)
    assert [shown(item) or 0 for item in found.tolist()] == [item or 0 for item in EXPECTED[name]]
    store, _, path = name.partition("/")
    theirs = oracle.rewritten(FIXTURES / "zarr_v2_218" / store, path, leave_out=True)
    assert repr(oracle.read(theirs).tolist()) == repr(found.tolist())


@each("name", RECTILINEAR)
def test_it_reads_what_zarr_3_wrote(name):
    """V3-RGRID-01: elements count from 1; those that a resize brought are the fill value."""
    created = np.arange(1, np.prod(RECTILINEAR[name]) + 1).reshape(RECTILINEAR[name])
    found = oracle.read(FIXTURES / "zarr_v3_rectilinear" / name)
    if name == "grown":
        assert found.shape == (12,) and found[5:].tolist() == [0] * 7
        found = found[:5]
    np.testing.assert_array_equal(found, created[:len(found)])


@st.composite
def arrays(draw):
    """Return (elements, chunks, fill value): a few values of any type, so that the fill value is met often."""
    dtype = np.dtype(draw(st.sampled_from(TYPES)))
    shape = tuple(draw(st.lists(st.integers(0, 7), max_size=3)))
    chunks = tuple(draw(st.lists(st.integers(1, 4), min_size=len(shape), max_size=len(shape))))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = np.zeros(3, dtype)
    if dtype.kind in "SU":
        values[1:] = "ab", "z"
    elif dtype.kind == "b":
        values[1] = True
    elif dtype.kind in "fc":
        values[1:] = draw(st.sampled_from([(1.5, np.nan), (-0.0, np.inf), (-1, 1e-3)]))
    else:
        values.view(f"{dtype.str[0]}{'u' if dtype.kind == 'u' else 'i'}{dtype.itemsize}")[1:] = 7, 2**7 - 1
    return np.asarray(values[rng.integers(0, 3, shape)], dtype).reshape(shape), chunks, values[draw(st.integers(0, 2))]


def stored_by_zcore(array, selection=..., **keywords):
    """Return a store with an array of which a selection was written, and what it equals."""
    store = zcore.MemoryStore()
    made = zcore.create_array(store, shape=array.shape, dtype=array.dtype, **keywords)
    model = np.zeros(array.shape, array.dtype)
    if made.fill_value is not None or made.zarr_format == 2 and array.dtype.kind in "mM":
        model[...] = "NaT" if made.fill_value is None else made.fill_value
    made[selection] = model[selection] = array[selection]
    return store, model


COMPRESSORS_V2 = st.sampled_from([
    None, {"id": "zlib", "level": 1}, {"id": "gzip", "level": 1}, {"id": "zstd", "level": 1}, {"id": "bz2", "level": 1},
    {"id": "lz4", "acceleration": 1}, {"id": "blosc", "cname": "lz4", "clevel": 3, "shuffle": 1, "blocksize": 0},
    {"id": "blosc", "cname": "zstd", "clevel": 1, "shuffle": 2, "blocksize": 0},
])


@given(made=arrays(), order=st.sampled_from("CF"), compressor=COMPRESSORS_V2, separator=st.sampled_from("./"),
       filters=st.sampled_from([(), ("shuffle",), ("delta",), ("delta", "shuffle")]), data=st.data())
@examples(150)
def test_zarr_v2(made, order, compressor, separator, filters, data):
    """V2-CHK-01, V2-COD-01"""
    array, chunks, fill = made
    dtype = array.dtype
    chain = []
    if "delta" in filters and dtype.kind in "iu":
        chain.append({"id": "delta", "dtype": dtype.str, "astype": dtype.str})
    if "shuffle" in filters:
        chain.append({"id": "shuffle", "elementsize": dtype.itemsize})
    part = tuple([slice(data.draw(st.integers(0, length)), None) for length in array.shape])
    store, model = stored_by_zcore(
        array, part, zarr_format=2, chunks=chunks, order=order, filters=chain or None, compressors=compressor,
        fill_value=data.draw(st.sampled_from([fill, None])), chunk_key_encoding={"name": "v2", "separator": separator},
        write_empty_chunks=data.draw(st.booleans()))
    ask_the_oracle(store, model)


@given(array=st.lists(st.integers(-300, 300), min_size=1, max_size=20), chunk=st.integers(1, 8))
def test_scaled_numbers_of_zarr_v2(array, chunk):
    """Numbers that come through the filter unchanged, so that both directions can be compared."""
    store, model = stored_by_zcore(
        np.array(array, "<f8") / 4 + 1000, zarr_format=2, chunks=(chunk,), compressors=None, fill_value=1000,
        filters=[{"id": "fixedscaleoffset", "scale": 4, "offset": 1000, "dtype": "<f8", "astype": "<i2"}])
    ask_the_oracle(store, model)


@given(made=arrays(), order=st.sampled_from("CF"), data=st.data(),
       compressor=st.sampled_from([None, "gzip", "zstd", "blosc"]), encoding=st.sampled_from(["default", "v2"]),
       separator=st.sampled_from("./"), per_shard=st.none() | st.integers(1, 3))
@examples(150)
def test_zarr_v3(made, order, data, compressor, encoding, separator, per_shard):
    """V3-COD-01"""
    array, chunks, fill = made
    part = tuple([slice(data.draw(st.integers(0, length)), None) for length in array.shape])
    compressors = {None: None, "gzip": zcore.codecs.GzipCodec(level=1), "zstd": zcore.codecs.ZstdCodec(level=1),
                   "blosc": zcore.codecs.BloscCodec(cname="lz4", clevel=1)}[compressor]
    store, model = stored_by_zcore(
        array, part, chunks=chunks, order=order, compressors=compressors, fill_value=fill,
        shards=None if per_shard is None else tuple([per_shard * chunk for chunk in chunks]),
        chunk_key_encoding={"name": encoding, "separator": separator}, write_empty_chunks=data.draw(st.booleans()))
    ask_the_oracle(store, model)


TEXTS = st.sampled_from(["", "", "a", "\u00e9t\u00e9", "\U0001f600", "longer than others" * 3, "\0"])


@given(data=st.data(), kind=st.sampled_from(["string", "bytes", "vlen-array", "json2"]), order=st.sampled_from("CF"),
       zarr_format=st.sampled_from([2, 3]), sharded=st.booleans(), keeps=st.booleans())
def test_items_of_varying_length(data, kind, order, zarr_format, sharded, keeps):
    """V2-OBJ-01, V3-COD-01: text and bytes in both formats and in shards, arrays and JSON in Zarr v2."""
    items = {"string": TEXTS, "bytes": TEXTS.map(str.encode), "json2": TEXTS | st.integers(-5, 5) | st.none(),
             "vlen-array": st.lists(st.integers(-9, 9), max_size=3).map(lambda numbers: np.array(numbers, "<i4"))}[kind]
    shape = tuple(data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=2)))
    chunks = tuple(data.draw(st.integers(1, 3)) for _ in shape)
    model = np.full(shape, None, object)
    for coords in np.ndindex(shape):
        model[coords] = data.draw(items)
    keywords = {"chunks": chunks, "compressors": data.draw(st.sampled_from([None, "auto"]))}
    if kind in ("vlen-array", "json2") or zarr_format == 2:
        filters = {"string": "vlen-utf8", "bytes": "vlen-bytes"}.get(kind, kind)
        # JSON stores the shape, so it has one order.
        keywords |= {"zarr_format": 2, "dtype": object, "order": "C" if kind == "json2" else order,
                     "filters": [{"id": filters, **({"dtype": "<i4"} if kind == "vlen-array" else {})}]}
    else:
        keywords |= {"dtype": kind, "shards": tuple([2 * chunk for chunk in chunks]) if sharded else None}
    if kind in ("string", "bytes"):
        keywords["fill_value"] = data.draw(items)
    store = zcore.MemoryStore()
    array = zcore.create_array(store, shape=shape, write_empty_chunks=keeps, **keywords)
    array[...] = model
    ask_the_oracle(store, model)


def test_json_of_two_dimensions():
    """V2-OBJ-01"""
    model = np.empty((3, 2), object)
    model[...] = [[None, 1], ["a", [2, 3]], [{"b": []}, ""]]
    store = zcore.MemoryStore()
    zcore.create_array(store, data=model, chunks=(2, 1), zarr_format=2, filters=[{"id": "json2"}], fill_value=None)
    ask_the_oracle(store, model)


@each("name", oracle.OF_ML_DTYPES)
def test_numbers_of_ml_dtypes(name):
    """V3-XDT-09, V3-XDT-10: every byte of the small types; both byte orders of the wider ones that have them."""
    dtype = oracle.data_type(name)
    codes = np.arange(256, dtype="u1") if dtype.itemsize == 1 else np.arange(0, 2**16, 97, dtype="u2")
    if name in ("int2", "uint2", "int4", "uint4"):
        numbers = range(-2, 2) if name == "int2" else range(4) if name == "uint2" else range(-8, 8) if (
            name == "int4") else range(16)
        elements = np.array(numbers, "i1").astype(dtype)
    else:
        elements = codes[:codes.size // 4 * 4].view(dtype)
    for endian in ("little", "big") if dtype.itemsize == 2 else ("little",):
        for compressors in (None, "auto"):
            store = zcore.MemoryStore()
            array = zcore.create_array(
                store, shape=elements.shape, chunks=50, dtype=name, fill_value=1, compressors=compressors,
                serializer=zcore.codecs.BytesCodec(endian=endian))
            array[3:] = elements[3:]
            model = elements.copy()
            model[:3] = np.array([1.0]).astype(dtype)
            ask_the_oracle(store, model)


# A chunk of the fill value first, which a shard leaves out.
NUMBERS = [3, 3, 3, 3, 0, 0.5, 1.5, -2.5, -0.75, 3, 100.25, -129, 127.5, 255.5, 12000]


@pytest.mark.thinned(3, "stored", "rounding")
@pytest.mark.parametrize("rounding", oracle.ROUNDED)
@pytest.mark.parametrize("stored", ["int8", "uint16", "int32"])
def test_floats_cast_to_integers(stored, rounding):
    """V3-XC-06, V3-XC-07, V3-XC-08: the same bytes as the oracle's, and the same numbers from them."""
    for dtype, out_of_range, scaled, shards in itertools.product(
            ("float64", "float32"), ("clamp", "wrap"), (False, True), (None, "around", "behind")):
        cast_and_ask(np.array([*NUMBERS, np.nan, np.inf], dtype), scaled, shards, {
            "data_type": stored, "rounding": rounding, "out_of_range": out_of_range,
            "scalar_map": {"encode": [["NaN", 7], ["Infinity", 6]], "decode": [[7, "NaN"]]}})


@pytest.mark.parametrize("stored", ["float32", "float16", "int8", "uint16", "int64"])
def test_numbers_cast_to_others(stored):
    """V3-XC-06, V3-XC-07, V3-XC-08: integers to floats and integers, floats to shorter ones."""
    integers = np.arange(-200, 201, 7, "int16")
    for shards, scaled in itertools.product((None, "around", "behind"), (False, True)):
        out_of_range = "wrap" if "int" in stored else "clamp"
        cast_and_ask(integers, scaled, shards, {"data_type": stored, "out_of_range": out_of_range})
        if "float" in stored:
            floats = np.array([*NUMBERS, 1e30, -1e-9, -0.0, np.nan, -np.inf])
            cast_and_ask(floats, scaled, shards, {"data_type": stored, "out_of_range": "clamp"})


def cast_and_ask(values, scaled, shards, configuration):
    """Compare both with chunks, with shards whose chunks are cast, and with shards of what was cast."""
    codecs = [{"name": "scale_offset", "configuration": {"offset": 1, "scale": 2}}] if scaled else []
    codecs.append({"name": "cast_value", "configuration": configuration})
    if shards == "behind":
        shard = zcore.codecs.ShardingCodec(chunk_shape=[4], codecs=[zcore.codecs.BytesCodec(endian="little")])
        keywords = {"chunks": 8, "codecs": [*codecs, shard]}
    else:
        keywords = {"chunks": 4, "shards": 8 if shards else None, "compressors": None, "checksum": False,
                    "filters": codecs}
    store = zcore.MemoryStore()
    array = zcore.create_array(store, shape=values.shape, dtype=values.dtype, fill_value=3, **keywords)
    array[...] = values
    theirs = {}
    oracle.write(theirs, "zarr.json", bytes(store.get("zarr.json")), values, leave_out=True)
    assert theirs == {key: bytes(store.get(key)) for key in store.list()}
    ask_the_oracle(store, array[...], same_bits)


def same_bits(numbers):
    """Return bytes in which all NaN are alike: arithmetic chooses their payload."""
    return np.where(numbers == numbers, numbers, np.zeros((), numbers.dtype)).tobytes() + (numbers != numbers).tobytes()
