"""The `__zmeta__` format: the examples of its document byte for byte, its rules, and what arrays of 2016 hold."""
import json
import math
import struct

import numpy as np
import pytest

from tests.each import each
from zcore.errors import MetadataError, UnsupportedError
from zcore.formats import format_of
from zcore.model.chunk_keys import ChunkKeyEncoding
from zcore.model.metadata import ArrayMetadata, CodecSpec

zmeta = format_of("zmeta")

# storage of 2016, "Configuration metadata"
NATIVE = np.dtype("i4").str[0]     # "<" on most machines

EXAMPLE = b"""{
    "chunks": [
        10000,
        100
    ],
    "clevel": 3,
    "cname": "lz4",
    "dtype": "<i4",
    "fill_value": 42,
    "shape": [
        1000000,
        1000
    ],
    "shuffle": 1
}"""

# storage of 2016, "User metadata (attributes)"
EXAMPLE_ATTRIBUTES = b"""{
    "bar": 4.2,
    "baz": "quux",
    "foo": 42
}"""


def document(**changes):
    """Return the example's document with other members; ... removes one."""
    members = {**json.loads(EXAMPLE), **changes}
    return json.dumps({name: value for name, value in members.items() if value is not ...}).encode()


def parse(**changes):
    return zmeta.parse_array(document(**changes), "a")


def new(**changes):
    arguments = {"shape": (1000000, 1000), "dtype": "<i4", "chunks": (10000, 100), "fill_value": 42, "cname": "lz4",
                 "clevel": 3, "shuffle": 1}
    return zmeta.new_array(**{**arguments, **changes})


def test_example_is_written_byte_for_byte():
    """ZM-META-15"""
    assert zmeta.render_array(new()) == EXAMPLE


def test_example_is_read():
    """ZM-META-01"""
    array = zmeta.parse_array(EXAMPLE, "example.zarr")
    assert array == new()
    assert (array.shape, array.chunk_shape, array.dtype.str) == ((1000000, 1000), (10000, 100), "<i4")
    assert (array.fill_value, array.fill_bytes) == (42, b"*\0\0\0")
    assert array.codecs == (
        CodecSpec("bytes", {"endian": "little"}),
        CodecSpec("blosc", {"cname": "lz4", "clevel": 3, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}),
    )
    assert (array.zarr_format, array.attributes, array.dimension_names, array.extra) == ("zmeta", None, None, {})


def test_example_attributes_are_written_and_read():
    """ZM-ATTR-03"""
    attributes = {"foo": 42, "bar": 4.2, "baz": "quux"}
    assert zmeta.render_attributes(attributes) == EXAMPLE_ATTRIBUTES
    assert zmeta.parse_attributes(EXAMPLE_ATTRIBUTES, "a") == attributes
    assert zmeta.render_attributes({}) == b"{}"


def test_names_of_the_documents():
    """ZM-LAY-01, ZM-LAY-04, ZM-LAY-05: Zarr v3 reserves names that begin with two underscores."""
    for name in (zmeta.array_document, zmeta.attributes_document, zmeta.chunk_directory):
        assert name.startswith("__")
    assert (zmeta.name, zmeta.array_document, zmeta.attributes_document, zmeta.chunk_directory) == (
        "zmeta", "__zmeta__", "__zattr__", "__zdata__",
    )
    assert parse().chunk_keys.directory == zmeta.chunk_directory


def test_example_of_chunk_names():
    """ZM-CHK-01, ZM-CHK-02: 100 chunks; 4.2.blosc is the fifth row, third column."""
    array = parse(shape=[100, 100], chunks=[10, 10])
    assert array.n_chunks == 100
    assert array.chunk_keys.decode("__zdata__/4.2.blosc", 2) == (4, 2)
    assert parse(shape=[9], chunks=[3]).chunk_keys.encode((3,)) == "__zdata__/3.blosc"


@each("key", [
    "__zdata__/04.2.blosc", "__zdata__/4.blosc", "__zdata__/4.2.3.blosc", "__zdata__/4.2", "__zdata__/4.2.blosc.lock",
    "__zdata__/4.2.blosc.partial", "__zdata__/4.2.partial", "4.2.blosc", "__zmeta__", "__zattr__.lock",
    "__zdata__/a.b.blosc",
])
def test_other_names_are_no_chunks(key):
    """ZM-CHK-03, ZM-LAY-03: left-over files and anything else are ignored."""
    assert parse().chunk_keys.decode(key, 2) is None


@pytest.mark.parametrize(("shape", "chunks", "grid_shape"), [
    ([0], [5], (0,)), ([3, 0, 2], [2, 1, 2], (2, 0, 1)), ([1], [100], (1,)), ([2**40, 2**20], [2, 2], (2**39, 2**19)),
])
def test_shapes_that_occur(shape, chunks, grid_shape):
    """ZM-META-02, ZM-META-03: zero-length dimensions, chunks beyond the array."""
    assert parse(shape=shape, chunks=chunks).grid_shape == grid_shape


def test_array_without_dimensions_is_read_but_not_made():
    """ZM-CHK-13"""
    array = parse(shape=[], chunks=[])
    assert (array.shape, array.n_chunks, array.chunk_keys.encode(())) == ((), 1, "__zdata__/0.blosc")
    with pytest.raises(ValueError, match="at least one dimension"):
        zmeta.render_array(array)
    with pytest.raises(ValueError, match="at least one dimension"):
        new(shape=(), chunks=())


@each(("given", "stored"), [
    ("i4", f"{NATIVE}i4"), (">i4", ">i4"), ("=u2", f"{NATIVE}u2"), (bool, "|b1"), ("S5", "|S5"), ("U5", f"{NATIVE}U5"),
    ("M8[ns]", f"{NATIVE}M8[ns]"),
])
def test_type_is_stored_in_canonical_form(given, stored):
    """ZM-META-04"""
    array = new(dtype=given, fill_value=None)
    assert json.loads(zmeta.render_array(array))["dtype"] == stored == array.dtype.str


@pytest.mark.parametrize(("text", "meant"), [
    ("i4", "<i4"), ("int32", "<i4"), ("=f8", "<f8"), ([["a", "i4"]], [("a", "<i4")]),
])
def test_type_without_byte_order_is_little_endian_with_a_warning(text, meant):
    """ZM-META-05"""
    with pytest.warns(UserWarning, match="byte order"):
        assert parse(dtype=text, fill_value=None).dtype == np.dtype(meant)


@each("dtype", [
    "|b1", "<i8", ">u2", "<f2", ">c16", "|S7", "<U3", "|V9", "<M8[us]", ">m8[D]",
    [["a", "<i4"]], [["a", ">f4", [2, 3]], ["b", [["c", "|S2"], [["t", "d"], "<M8[s]"]]]],
    [["a", "|u1"], ["", "|V3"], ["b", "<f4"]],
])
def test_every_type_of_2016_is_read_and_rewritten(dtype):
    """ZM-META-06, with structures as lists: arrays of the time have them, though the document says string."""
    array = parse(dtype=dtype, fill_value=None)
    assert json.loads(zmeta.render_array(array))["dtype"] == dtype


@each(("dtype", "fill_value", "expected"), [
    ("<i4", -1, -1), ("<i4", 5.0, 5), ("|b1", True, True), ("|b1", 0, False), ("<f8", 1, 1.0),
    ("<f4", 0.1, np.float32(0.1)),
    ("<u8", 2**64 - 1, 2**64 - 1), ("<i8", -2**63, -2**63), ("<i4", True, 1),
    ("<M8[D]", 0, np.datetime64("1970-01-01")),
    ("<M8[s]", 86400, np.datetime64("1970-01-02")), ("<m8[h]", -3, np.timedelta64(-3, "h")), ("|S10", 0, b"0"),
    ("<U5", 0, "0"), ("|S10", "", b""), ("<U5", "é", "é"), ("|S3", "abcdef", b"abc"), ("<U2", 1.5, "1."),
    ("|S5", False, b"False"),
    ("<c8", [1, -2.5], 1 - 2.5j), (">c16", 3, 3 + 0j), ("|V3", "ab", np.void(b"ab\0")), ("|V3", 0, np.void(b"\0\0\0")),
    ("<M8[D]", "2016-02-29", np.datetime64("2016-02-29")),
])
def test_fill_value_means_what_fill_stores(dtype, fill_value, expected):
    """ZM-META-07, ZM-META-10: 0 on text is the character, 0 on a date is the epoch."""
    array = parse(dtype=dtype, fill_value=fill_value)
    assert array.fill_value == expected
    assert array.fill_bytes == np.array(expected, dtype).tobytes()


@each(("token", "expected"), [
    ("NaN", math.nan), ('"NaN"', math.nan), ("Infinity", math.inf), ('"Infinity"', math.inf), ("-Infinity", -math.inf),
    ('"-Infinity"', -math.inf),
])
@each("dtype", ["<f2", ">f4", "<f8", "<c8"])
def test_fill_values_json_has_not_are_read_bare_and_quoted(token, expected, dtype):
    """ZM-META-08"""
    raw = document(dtype=dtype).replace(b'"fill_value": 42', b'"fill_value": ' + token.encode())
    array = zmeta.parse_array(raw, "a")
    assert array.fill_bytes == np.array(expected, dtype).tobytes()
    written = json.loads(zmeta.render_array(array), parse_constant=pytest.fail)["fill_value"]
    assert (written[0] if dtype == "<c8" else written) == token.strip('"')


def test_fill_values_are_written_as_valid_json():
    """ZM-META-08, ZM-META-10: W"""
    for dtype, fill_value, written in (
        ("f4", np.nan, "NaN"), ("f4", 0.1, 0.1), ("c8", complex(1, np.inf), [1.0, "Infinity"]), ("S3", b"ab", "ab"),
        ("U3", "é", "é"), ("M8[D]", np.datetime64("1970-01-03"), 2), ("m8[s]", "NaT", -2**63), ("V2", b"a", "a"),
        ("?", 1, True),
        ("u8", np.uint64(2**64 - 1), 2**64 - 1), ("S3", 0, "0"), ("f8", -0.0, -0.0), ("i2", None, None),
    ):
        text = zmeta.render_array(new(dtype=dtype, fill_value=fill_value))
        assert json.loads(text, parse_constant=pytest.fail)["fill_value"] == written, dtype


def test_payload_of_a_nan_becomes_the_usual_one():
    """ZM-META-08: the document cannot carry it, so the array that is made has what its reader will see."""
    payload = np.frombuffer(b"\x01\0\xc0\xff", "<f4")[0]
    assert new(dtype="<f4", fill_value=payload).fill_bytes == struct.pack("<f", math.nan)


def test_null_is_undefined_and_reads_as_zeros():
    """ZM-META-09"""
    for dtype in ("<f8", "|S3", "<M8[D]", [["a", "<i4"], ["b", "|S2"]]):
        array = parse(dtype=dtype, fill_value=None)
        assert array.fill_value is None and array.fill_bytes == bytes(array.itemsize)
        assert json.loads(zmeta.render_array(array))["fill_value"] is None


def test_not_a_time_in_words():
    """ZM-META-10"""
    assert np.isnat(parse(dtype="<m8[s]", fill_value="NaT").fill_value)
    assert np.isnat(parse(dtype=">M8[D]", fill_value=-2**63).fill_value)


FIELDS = [["i", "<i4"], ["s", "|S3"], ["n", [["f", ">f4"], ["v", "|V2"]], [2]]]


def test_zero_fills_every_field():
    """ZM-META-10: as ndarray.fill(0), so text gets the character "0"."""
    array = parse(dtype=FIELDS, fill_value=0)
    assert array.fill_bytes == b"\0\0\0\0" + b"0\0\0" + bytes(12)
    assert json.loads(zmeta.render_array(array))["fill_value"] == 0


@each(("dtype", "fill_value"), [
    (FIELDS, 0), ([["i", "<i4"], ["s", "|S4"]], 12345), ([["i", "<i4"], ["s", "|S4"]], True), ([["f", "<f4"]], "NaN"),
    ([["f", "<f4"], ["g", ">f8", [2]]], "-Infinity"), ([["f", "<f4"], ["s", "|S20"]], 0.123456789012),
    ([["f", "<f8"], ["u", "<U4"]], 5), ([["s", "|S2"], ["u", "<U4"]], "abcd"), ([["t", "<M8[D]"], ["s", "|S3"]], "NaT"),
    ([["n", [["c", "<c8"]]], ["d", "<c8"]], 2.5), ([["b", "|b1"], ["i", "|i1"]], 1), ([["m", "<m8[s]"]], -2**63),
    ([["f", "<f4"], ["u", "<U3"]], math.nan), ([["u", "<u8"], ["s", "|S30"]], 2**64 - 1),
])
def test_scalar_that_filled_the_fields_is_found_again(dtype, fill_value):
    """ZM-META-14: what was read can be rewritten."""
    array = parse(dtype=dtype, fill_value=fill_value)
    assert zmeta.parse_array(zmeta.render_array(array), "a") == array


@each("dtype, fill_value", [("<f8", "1.5"), ("|S3", "é"), ("|S3", [])])
def test_fill_value_that_other_formats_read_is_refused(dtype, fill_value):
    """ZM-META-07"""
    with pytest.raises(MetadataError, match="^a/__zmeta__: member 'fill_value': "):
        parse(dtype=dtype, fill_value=fill_value)


def test_fill_value_that_no_scalar_stands_for_is_not_written():
    pair = [("a", "i4"), ("b", "i4")]
    for dtype, fill_value in (("S2", b"\xff"), ("V2", b"\xff"), (pair, (1, 2)), ([("a", "S1")], (b"\xe9",))):
        with pytest.raises(ValueError, match="cannot record"):
            new(dtype=dtype, fill_value=fill_value)


@each("cname", ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"])
def test_compressors(cname):
    """ZM-META-11"""
    assert parse(cname=cname) == new(cname=cname)


@pytest.mark.parametrize(("shuffle", "named"), [(0, "noshuffle"), (1, "shuffle"), (2, "bitshuffle")])
def test_shuffles(shuffle, named):
    """ZM-META-13, ZM-CNV-02"""
    assert parse(shuffle=shuffle).codecs[1].configuration["shuffle"] == named
    assert new(shuffle=shuffle) == new(shuffle=named) == parse(shuffle=shuffle)


@each("clevel", range(10))
def test_levels(clevel):
    """ZM-META-12"""
    assert parse(clevel=clevel).codecs[1].configuration["clevel"] == clevel


@each(("dtype", "bytes_configuration", "typesize"), [
    (">i4", {"endian": "big"}, 4), ("|u1", {}, 1), ("|S255", {}, 255), ("|S256", {}, 1),
    ("<U64", {"endian": "little"}, 1),
    ([["a", ">i4"], ["b", "<i4"]], {}, 8),
])
def test_chain_of_each_type(dtype, bytes_configuration, typesize):
    """ZM-CNV-02, ZM-CHK-10: the type's own byte order; items beyond 255 bytes are single bytes to blosc."""
    codecs = parse(dtype=dtype, fill_value=None).codecs
    assert codecs[0] == CodecSpec("bytes", bytes_configuration)
    assert codecs[1].configuration["typesize"] == typesize


def test_unknown_members_are_kept():
    """ZM-META-14"""
    array = parse(comment="é", order="C", nested={"b": [1, None]})
    assert array.extra == {"comment": "é", "order": "C", "nested": {"b": [1, None]}}
    written = zmeta.render_array(array.replace(shape=(5, 5)))
    assert {**json.loads(EXAMPLE), **array.extra, "shape": [5, 5]} == json.loads(written)
    with pytest.raises(ValueError, match="'shape'"):
        zmeta.render_array(array.replace(extra={"shape": 1}))


def test_order_f_is_refused():
    """ZM-META-16"""
    with pytest.raises(ValueError, match="cannot record order"):
        new(order="F")


def test_python_2_left_blanks_at_the_ends_of_lines():
    assert zmeta.parse_array(EXAMPLE.replace(b",\n", b", \n") + b"\n", "a") == new()


@each("protocol", range(6))
def test_pickled_metadata_are_recognised_and_never_loaded(protocol):
    """zarr 0.3 wrote its metadata so."""
    import pickle

    class Bomb:
        def __reduce__(self):
            return pytest.fail, ("the pickle was loaded",)

    for content in ({"shape": (10,), "dtype": "i4"}, {"shape": Bomb()}):
        with pytest.raises(UnsupportedError, match="pickle") as caught:
            zmeta.parse_array(pickle.dumps(content, protocol), "a")
        assert "pickle" in caught.value.feature


def test_absent_attributes_are_none():
    """ZM-ATTR-01, ZM-ATTR-02"""
    assert zmeta.parse_attributes(None, "a") == {}
    with pytest.raises(MetadataError):
        zmeta.parse_attributes(b"null", "a")


def test_bare_constants_in_attributes_survive():
    raw = zmeta.render_attributes(zmeta.parse_attributes(b'{"a": [NaN, -Infinity]}', "a"))
    assert raw == b'{\n    "a": [\n        NaN,\n        -Infinity\n    ]\n}'


def test_attributes_take_json_alone():
    for attributes in ({1: 2}, {"a": {1: 2}}, {"a": np.zeros(2, "c8")}, {"a": np.complex64(1)}, {"a": b"x"}):
        with pytest.raises(TypeError):
            zmeta.render_attributes(attributes)


@pytest.mark.parametrize("dtype", ["|u1", "<f8"])
def test_chunk_is_limited_by_blosc(dtype):
    """ZM-CHK-12"""
    limit = (2**31 - 1 - 16) // np.dtype(dtype).itemsize
    assert new(shape=2**40, chunks=limit, dtype=dtype).chunk_nbytes <= 2**31 - 17
    with pytest.raises(ValueError, match="limit of blosc"):
        new(shape=2**40, chunks=limit + 1, dtype=dtype)
    with pytest.raises(MetadataError, match="member 'chunks': .*limit of blosc"):
        parse(shape=[2**40], chunks=[limit + 1], dtype=dtype)


def test_chunks_are_written_in_full():
    assert json.loads(zmeta.render_array(new(chunks=(10000, -1))))["chunks"] == [10000, 1000]
    assert new(shape=50, chunks=7).chunk_shape == (7,)
    assert new(chunks=None).chunk_nbytes <= 2**20
    assert 2_000_000 < new(chunks="4 MB").chunk_nbytes <= 4_000_000
    assert new(shape=(0, 3), chunks=None).chunk_shape == (1, 3)


def test_chain_of_codecs_may_be_given():
    blosc = CodecSpec("blosc", {"cname": "lz4", "clevel": 3, "shuffle": "shuffle"})
    no = {"cname": None, "clevel": None, "shuffle": None}
    complete = new().codecs
    open_typesize = CodecSpec("blosc", {**blosc.configuration, "typesize": None})
    numbered = CodecSpec("blosc", {**blosc.configuration, "shuffle": 1, "blocksize": 0})
    for codecs in ((blosc,), complete, [complete[0], blosc], (open_typesize,), (numbered,)):
        assert new(codecs=codecs, **no) == new()
    assert new(codecs=(CodecSpec("blosc"),), **no) == new(**no)


@each("codecs", [
    (), (CodecSpec("bytes", {"endian": "little"}),), (CodecSpec("zstd"),), (CodecSpec("blosc"), CodecSpec("crc32c")),
    (CodecSpec("bytes", {"endian": "big"}), CodecSpec("blosc")), (CodecSpec("bytes"), CodecSpec("blosc")),
    (CodecSpec("transpose", {"order": [1, 0]}), CodecSpec("bytes", {"endian": "little"}), CodecSpec("blosc")),
    (CodecSpec("blosc", {"typesize": 8}),), (CodecSpec("blosc", {"blocksize": 4096}),), (CodecSpec("blosc", {"x": 1}),),
    (CodecSpec("blosc", {"cname": "gzip"}),), (CodecSpec("blosc", {"clevel": 10}),),
    (CodecSpec("blosc", {"clevel": True}),),
    (CodecSpec("blosc", {"shuffle": 3}),), (CodecSpec("blosc", {"shuffle": True}),),
    (CodecSpec("blosc", {"shuffle": -1}),),
])
def test_chain_that_the_document_cannot_express_is_refused(codecs):
    """ZM-META-16 among others: a transpose is not C order."""
    with pytest.raises(ValueError, match=r"blosc|cname|clevel|shuffle|bytes|typesize"):
        new(codecs=codecs, cname=None, clevel=None, shuffle=None)


@each("changes", [
    {"cname": "gzip"}, {"cname": 1}, {"clevel": -1}, {"clevel": 10}, {"clevel": 3.0}, {"clevel": "3"}, {"shuffle": 3},
    {"shuffle": -1},
    {"shuffle": "yes"}, {"shuffle": True}, {"shuffle": 1.0}, {"codecs": ()}, {"dimension_names": ("x", "y")},
    {"shape": -1},
    {"shape": (2**63,)}, {"chunks": (0,)}, {"chunks": (1, 1, 1)}, {"dtype": "M8"}, {"dtype": "S"}, {"fill_value": "x"},
    {"fill_value": 2**31}, {"fill_value": [1]}, {"order": "A"}, {"dtype": ("f4", (2,))},
])
def test_what_the_format_cannot_hold_is_refused_at_create(changes):
    """ZM-META-07, ZM-META-11, ZM-META-12, ZM-META-13: W"""
    with pytest.raises(ValueError):
        new(**changes)


@pytest.mark.parametrize("dtype", [object, np.longdouble, np.dtypes.StringDType(), [("a", object)]])
def test_type_without_portable_bytes_is_unsupported_at_create(dtype):
    """ZM-META-06"""
    with pytest.raises(UnsupportedError):
        new(dtype=dtype)


def test_metadata_of_another_format_are_not_written():
    array = new()
    for changes in ({"chunk_keys": ChunkKeyEncoding.v3()}, {"dimension_names": ("x", "y")}, {"codecs": ()},
                    {"codecs": (array.codecs[0], CodecSpec("blosc", {"cname": "lz4"}))}):
        with pytest.raises(ValueError):
            zmeta.render_array(array.replace(**changes))
    with pytest.raises(ValueError, match="limit of blosc"):
        zmeta.render_array(array.replace(chunk_shape=(2**20, 2**20)))


def test_metadata_made_elsewhere_are_written():
    array = new()
    other = ArrayMetadata(
        (1000000, 1000), "<i4", (10000, 100), ChunkKeyEncoding.zmeta(), array.codecs, 42, zarr_format="zmeta"
    )
    assert other == array and zmeta.render_array(other) == EXAMPLE


@pytest.mark.parametrize("shape", [(7,), (0, 5), (2**40, 1, 3)])
@pytest.mark.parametrize("dtype", ["<f4", "S3", [('shape": [', "<i2"), ("b", "u1", (2,))]])
def test_document_of_another_shape_is_that_of_a_new_array(shape, dtype):
    """The lines around the shape are kept; a type may have a name that looks like them."""
    settings = {"dtype": dtype, "chunks": (1,) * len(shape), "fill_value": 0}
    zmeta = format_of("zmeta")
    array = zmeta.new_array((3,) * len(shape), **settings)
    raw = zmeta.render_array(array.resized(shape))
    assert raw == zmeta.render_array(zmeta.new_array(shape, **settings))
    members = json.loads(raw)
    assert raw == json.dumps(members, indent=4, sort_keys=True).encode() and members["shape"] == list(shape)
    assert zmeta.parse_node("__zmeta__", raw, "") == array.resized(shape)
