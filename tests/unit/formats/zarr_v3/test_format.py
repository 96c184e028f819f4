"""Zarr v3 documents: their members, what is optional, what breaks a rule, and what is kept."""
import gzip
import json

import numpy as np
import pytest

import zcore
from tests.each import each
from zcore.errors import MetadataError, NodeNotFoundError, UnsupportedError
from zcore.formats import NODE_DOCUMENTS, format_of
from zcore.formats.json_documents import render_json_lines
from zcore.formats.zarr_v3.format import _members_of
from zcore.model.chunk_keys import ChunkKeyEncoding
from zcore.model.metadata import ArrayMetadata, CodecSpec, GroupMetadata

zarr_v3 = format_of(3)

ARRAY = {
    "zarr_format": 3, "node_type": "array", "shape": [10, 200, 3000], "data_type": "float64",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [5, 20, 400]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "fill_value": "NaN",
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}},
               {"name": "gzip", "configuration": {"level": 1}}],
    "attributes": {"foo": 42, "bar": [1.5, None, "é"]}, "dimension_names": ["rows", "columns", None],
}
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BLOSC = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 8, "blocksize": 0}
GROUP = {"zarr_format": 3, "node_type": "group", "attributes": {"spam": "ham"}}
MANDATORY = (
    "zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs",
)


def document(base=None, **changes):
    """Return a document with other members; ... removes one."""
    members = {**(ARRAY if base is None else base), **changes}
    return json.dumps({member: value for member, value in members.items() if value is not ...}).encode()


def parse(base=None, **changes):
    return zarr_v3.parse_node("zarr.json", document(base, **changes), "x")


def test_names_of_the_documents():
    """V3-DOC-01"""
    assert (zarr_v3.name, zarr_v3.array_document, zarr_v3.group_document) == (3, "zarr.json", "zarr.json")
    assert zarr_v3.attributes_document is None and NODE_DOCUMENTS[3] == ("zarr.json",)


def test_array_of_the_core_text():
    """V3-META-01, V3-META-02, V3-META-03, V3-META-20, V3-META-22, V3-GRID-01, V3-GRID-02, V3-DOC-02"""
    array = parse()
    assert array == ArrayMetadata(
        (10, 200, 3000), "<f8", (5, 20, 400), ChunkKeyEncoding.v3(),
        (CodecSpec("bytes", {"endian": "little"}), CodecSpec("gzip", {"level": 1})), float("nan"), None, 3,
        {"foo": 42, "bar": [1.5, None, "é"]}, ("rows", "columns", None),
    )
    assert array.grid_shape == (2, 10, 8) and array.chunk_keys.encode((1, 0)) == "c/1/0"
    assert json.loads(zarr_v3.render_array(array)) == {**ARRAY, "storage_transformers": []}
    assert zarr_v3.parse_array(document(), "x") == array


def test_an_array_that_grows_keeps_the_rest_of_its_document():
    for level in (1, 2):
        changes = {"codecs": [LITTLE, {"name": "gzip", "configuration": {"level": level}}]}
        metadata = parse(**changes)
        for length in (10, 11, 12):
            metadata = metadata.resized((length, 200, 3000))
            written = zarr_v3.render_array(metadata)
            assert written == zarr_v3.render_array(parse(**changes, shape=[length, 200, 3000]))
            assert json.loads(written) == {**ARRAY, **changes, "shape": [length, 200, 3000], "storage_transformers": []}
        assert json.loads(zarr_v3.render_array(metadata.replace(fill_value=7.0)))["fill_value"] == 7.0
        assert json.loads(zarr_v3.render_array(metadata.replace(chunk_shape=(5, 20, 100))))["chunk_grid"] == {
            "name": "regular", "configuration": {"chunk_shape": [5, 20, 100]}}


def test_group():
    """V3-GRP-01"""
    group = parse(GROUP)
    assert group == GroupMetadata(3, {"spam": "ham"}) == zarr_v3.parse_node("zarr.json", document(GROUP), "x")
    assert json.loads(zarr_v3.render_group(group)) == GROUP
    assert parse(GROUP, attributes=...).attributes == {}
    assert zarr_v3.new_group({"a": 1}) == GroupMetadata(3, {"a": 1})


GDAL = {**ARRAY, "shape": [2, 3], "data_type": "int16", "fill_value": 7, "dimension_names": None,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}}}
TURNED = {"name": "transpose", "configuration": {"order": "F"}}


@pytest.mark.parametrize("codecs, order, compress", [
    (..., "C", bytes), ([], "C", bytes), ([TURNED], "F", bytes), ([ARRAY["codecs"][1]], "C", gzip.compress),
    ([TURNED, ARRAY["codecs"][1]], "F", gzip.compress),
], ids=["no member", "none", "transpose", "gzip", "transpose and gzip"])
@pytest.mark.parametrize("data_type", ["int16", "uint8", "float64", "complex64"])
def test_no_codec_from_array_to_bytes_as_in_gdal(codecs, order, compress, data_type):
    """V3-META-20: GDAL before 3.11 wrote none. The numbers are little-endian."""
    numbers = np.arange(6).reshape(2, 3).astype(np.dtype(data_type).newbyteorder("<"))
    fill = [0, 0] if data_type == "complex64" else 7
    store = zcore.MemoryStore({"zarr.json": document(GDAL, codecs=codecs, data_type=data_type, fill_value=fill),
                               "c/0/0": compress(numbers.tobytes(order))})
    with pytest.raises(MetadataError, match="zarr.json: member 'codecs': .*strict=False .*GDAL before 3.11") as caught:
        zcore.open(store)
    assert caught.value.member == "codecs"
    with pytest.warns(UserWarning, match="little-endian is assumed"):
        array = zcore.open(store, "r+", strict=False)
    np.testing.assert_array_equal(array[...], numbers)
    array.resize((4, 3))
    np.testing.assert_array_equal(zcore.open(store)[:2], numbers)


@pytest.mark.parametrize("data_type, named", [("int16", "an integer"), ("bool", "true or false"), ("float64", "None"),
                                              ("complex64", "two numbers")])
def test_a_fill_value_of_null_as_in_gdal(data_type, named):
    """V3-FV-01: GDAL without a nodata value; elements that are not stored are zeros."""
    little = [{"name": "bytes", "configuration": {"endian": "little"}}]
    store = zcore.MemoryStore({"zarr.json": document(GDAL, codecs=little, data_type=data_type, fill_value=None)})
    with pytest.raises(MetadataError, match=f"'fill_value': expected .*{named}.*strict=False") as caught:
        zcore.open(store)
    assert caught.value.member == "fill_value"
    with pytest.warns(UserWarning, match="fill value is null"):
        array = zcore.open(store, strict=False)
    assert array.fill_value == 0 and not array[...].any()


@pytest.mark.parametrize("codecs", [["crc32c"], [TURNED, "crc32c"], [ARRAY["codecs"][1], TURNED]], ids=str)
def test_other_chains_without_one_are_refused(codecs):
    """V3-META-20"""
    for strict in (True, False):
        with pytest.raises(MetadataError, match="codecs"):
            zcore.open(zcore.MemoryStore({"zarr.json": document(GDAL, codecs=codecs)}), strict=strict)


def test_group_is_no_array():
    """V3-META-02"""
    with pytest.raises(NodeNotFoundError, match="holds a group, not an array"):
        zcore.open_array(zcore.MemoryStore({"zarr.json": document(GROUP)}))
    with pytest.raises(NodeNotFoundError, match="holds an array, not a group"):
        zcore.open_group(zcore.MemoryStore({"zarr.json": document()}))


def test_absent_members():
    """V3-META-20, V3-META-21, V3-META-22"""
    array = parse(attributes=..., dimension_names=..., storage_transformers=...)
    assert (array.attributes, array.dimension_names, array.extra) == ({}, None, {})
    written = json.loads(zarr_v3.render_array(array))
    assert written["attributes"] == {} and written["storage_transformers"] == [] and "dimension_names" not in written
    assert parse(dimension_names=None).dimension_names is None


def test_array_without_dimensions():
    """V3-META-03, V3-META-22, V3-GRID-02"""
    array = parse(shape=[], chunk_grid={"name": "regular", "configuration": {"chunk_shape": []}}, dimension_names=[])
    assert (array.shape, array.n_chunks, array.dimension_names) == ((), 1, ())


def test_names_of_dimensions_may_repeat_and_be_empty():
    """V3-META-22"""
    assert parse(dimension_names=["", "a", "a"]).dimension_names == ("", "a", "a")


@each(("member", "value"), [
    # V3-META-02
    ("node_type", "Array"), ("node_type", None), ("node_type", "array "), ("node_type", ["array"]),
    # V3-META-03
    ("shape", [1, 1]),
    # V3-META-04 to V3-META-08
    ("chunk_grid", None), ("chunk_grid", []), ("chunk_grid", {"configuration": {}}), ("chunk_key_encoding", None),
    ("chunk_key_encoding", 1), ("codecs", None), ("codecs", {}), ("codecs", "bytes"), ("codecs", [None]),
    ("codecs", [[]]), ("codecs", [{"configuration": {}}]),
    # V3-META-20, V3-META-21, V3-META-22
    ("attributes", []), ("attributes", "null"), ("attributes", 1), ("storage_transformers", {}),
    ("storage_transformers", 0), ("storage_transformers", "x"),
    ("storage_transformers", [1]), ("storage_transformers", [{}]), ("storage_transformers", False),
    ("dimension_names", ["a"]), ("dimension_names", ["a", "b", 1]), ("dimension_names", "abc"), ("dimension_names", {}),
    ("dimension_names", ["a", "b", "c", "d"]), ("dimension_names", []),
    # V3-EXT-01
    ("codecs", [{"name": 1}]), ("codecs", [{"name": "bytes", "endian": "little"}]),
    ("codecs", [{"name": "bytes", "configuration": []}]), ("codecs", [{"name": "bytes", "configuration": None}]),
    ("codecs", [{"name": "bytes", "must_understand": 1}]), ("data_type", {"name": None}),
    ("data_type", {"name": "float64", "x": 1}), ("chunk_key_encoding", {"name": "default", "separator": "/"}),
    # V3-EXT-05
    ("data_type", {"name": "float64", "configuration": {"endian": "little"}}),
    ("chunk_grid", {"name": "regular", "configuration": {"chunk_shape": [1, 1, 1], "x": 1}}),
    ("chunk_key_encoding", {"name": "default", "configuration": {"prefix": "c"}}),
    # V3-BYTES-01
    ("codecs", ["bytes"]), ("codecs", [{"name": "bytes", "configuration": {"endian": "native"}}]),
    ("codecs", [{"name": "bytes", "configuration": {"endian": None}}]), ("codecs", ["vlen-utf8"]),
    ("codecs", [{"name": "bytes", "configuration": {"endian": ["little"]}}]),
    ("codecs", [{"name": "sharding_indexed"}]),
    ("codecs", [{"name": "sharding_indexed", "configuration": {"codecs": 1}}]),
    ("codecs", [{"name": "sharding_indexed", "configuration": {"codecs": []}}]),
    ("codecs", [{"name": "sharding_indexed", "configuration": {"codecs": ["bytes"]}}]),
    # V3-TRANS-01, V3-GZIP-01, V3-ZSTD-01, V3-BLOSC-01
    *[("codecs", [LITTLE, {"name": name, "configuration": configuration}]) for name, configuration in (
        ("gzip", {}), ("zstd", {"checksum": True}), ("blosc", {}), ("blosc", BLOSC | {"shuffle": 1}),
        ("blosc", BLOSC | {"shuffle": "bits"}), ("blosc", BLOSC | {"shuffle": None}),
        *[("blosc", {name: value for name, value in BLOSC.items() if name != missing})
          for missing in ("cname", "clevel", "shuffle")],
    )],
    ("codecs", ["transpose", LITTLE]),
    ("codecs", [{"name": "sharding_indexed", "configuration": {"codecs": [LITTLE, "zstd"]}}]),
])
def test_broken_rule_names_the_member(member, value):
    """D3-META-02, V3-META-01, V3-META-02, V3-META-03, V3-META-04, V3-META-05, V3-META-06, V3-META-08, V3-META-20,
    V3-META-21, V3-META-22, V3-DOC-06, V3-EXT-01, V3-EXT-05, V3-BYTES-01, V3-TRANS-01, V3-GZIP-01, V3-ZSTD-01,
    V3-BLOSC-01
    """
    with pytest.raises(MetadataError) as caught:
        parse(**{member: value})
    named = "chunk_grid" if member == "shape" and value == [1, 1] else member
    assert (caught.value.path, caught.value.document, caught.value.member) == ("x", "zarr.json", named)
    assert str(caught.value).startswith(f"x/zarr.json: member '{named}': ") and len(str(caught.value)) < 400


@each(("changes", "feature"), [
    ({"data_type": "<f8"}, "data type <f8"),                                                    # V3-DT-06
    ({"data_type": "Float64"}, "data type Float64"), ({"data_type": "float64 "}, "data type float64 "),  # V3-EXT-08
    ({"data_type": {"name": "https://example.org/f9", "must_understand": False}}, "data type https://example.org/f9"),
    ({"chunk_grid": {"name": "hexagonal", "must_understand": False}}, "chunk grid hexagonal"),   # V3-EXT-03
    ({"chunk_key_encoding": {"name": "hashed", "must_understand": False}}, "chunk key encoding hashed"),
    ({"chunk_key_encoding": "Default"}, "chunk key encoding Default"),
    ({"storage_transformers": ["a", {"name": "b"}]}, "storage transformer a"),                   # V3-META-21
    ({"storage_transformers": [{"name": "b", "must_understand": True}]}, "storage transformer b"),
    ({"more": 1}, "member more"), ({"more": {}}, "member more"), ({"more": None}, "member more"),  # V3-META-24
    ({"more": {"must_understand": True}}, "member more"), ({"more": {"must_understand": 0}}, "member more"),
    ({"more": [{"must_understand": False}]}, "member more"),
    # V3-VER-03, D3-META-03, D3-DT-03: drafts
    ({"zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0"}, "drafts of Zarr v3"),
    ({"metadata_key_suffix": ".json", "zarr_format": ...}, "drafts of Zarr v3"),
    ({"data_type": {"extension": "https://x", "type": "<M8[ns]", "fallback": None}}, "drafts of Zarr v3"),
])
def test_what_zcore_lacks_is_named(changes, feature):
    """D3-DT-02, D3-META-02, V3-META-21, V3-META-24, V3-GRP-02, V3-EXT-02, V3-EXT-03, V3-EXT-08, V3-DT-06, V3-VER-03,
    D3-META-03, D3-DT-03
    """
    with pytest.raises(UnsupportedError) as caught:
        parse(**changes)
    assert caught.value.feature == feature and str(caught.value).startswith("x/zarr.json: ")


def test_unknown_member_of_a_group():
    """V3-GRP-02"""
    with pytest.raises(UnsupportedError, match="member 'shape'"):
        parse(GROUP, shape=[1])
    kept = {"must_understand": False, "x": [1]}
    group = parse(GROUP, more=kept)
    assert group.extra == {"more": kept} and json.loads(zarr_v3.render_group(group))["more"] == kept


def test_what_need_not_be_understood_is_kept():
    """V3-META-24, V3-META-21"""
    kept = {"more": {"must_understand": False, "x": {"y": [None]}},
            "storage_transformers": [{"name": "a", "must_understand": False}]}
    array = parse(**kept)
    written = json.loads(zarr_v3.render_array(array.replace(shape=(1, 2, 3))))
    assert written == {**ARRAY, **kept, "shape": [1, 2, 3]}
    with pytest.raises(ValueError, match="format's own"):
        zarr_v3.render_array(array.replace(extra={"shape": [1]}))


def test_codec_is_never_skipped():
    """V3-EXT-04: the chain keeps a codec that need not be understood; whoever makes codecs of it refuses it."""
    unknown = {"name": "https://example.org/codec", "configuration": {"x": 1}, "must_understand": False}
    array = parse(codecs=[*ARRAY["codecs"], unknown])
    assert array.codecs[2] == CodecSpec("https://example.org/codec", {"x": 1})


def test_short_hand_names_are_read_and_objects_written():
    """V3-EXT-01, V3-EXT-06, V3-EXT-07, V3-META-06, V3-DT-07, V3-PY-03"""
    short = parse(data_type={"name": "int8"}, fill_value=0, chunk_key_encoding="default", codecs=["bytes", "crc32c"])
    long = parse(data_type={"name": "int8", "configuration": {}, "must_understand": False}, fill_value=0, codecs=[
        {"name": "bytes", "configuration": {}}, {"name": "crc32c", "must_understand": True},
    ])
    assert short == long
    written = json.loads(zarr_v3.render_array(short))
    assert written["codecs"] == [{"name": "bytes"}, {"name": "crc32c"}] and written["data_type"] == "int8"
    assert written["chunk_key_encoding"] == {"name": "default", "configuration": {"separator": "/"}}


def test_codecs_of_numcodecs_have_their_own_parameters():
    """V3-XC-12: `numcodecs.blosc` names its shuffle by a number, and nothing has to be there."""
    for name, configuration in (("blosc", {"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}), ("zstd", {}),
                                ("gzip", {})):
        with pytest.raises(MetadataError):
            parse(codecs=[LITTLE, {"name": name, "configuration": configuration}])
        array = parse(codecs=[LITTLE, {"name": f"numcodecs.{name}", "configuration": configuration}])
        assert array.codecs[1] == CodecSpec(f"numcodecs.{name}", configuration)
        written = json.loads(zarr_v3.render_array(array))["codecs"][1]
        assert written["name"] == f"numcodecs.{name}" and written.get("configuration", {}) == configuration


@each("changes", [{"attributes": None}, {"storage_transformers": None}], ids=str)
def test_null_instead_of_nothing_is_read(changes):
    """V3-META-20, V3-META-21"""
    array = parse(**{"attributes": {}, **changes})
    assert json.loads(zarr_v3.render_array(array)) == json.loads(zarr_v3.render_array(parse(attributes={})))
    assert array == parse(attributes={})


@each("missing", [("typesize",), ("blocksize",), ("typesize", "blocksize")], ids=str)
def test_sizes_that_blosc_leaves_to_its_chunks_may_be_missing(missing):
    """V3-BLOSC-01"""
    blosc = {name: value for name, value in BLOSC.items() if name not in missing}
    assert parse(codecs=[LITTLE, {"name": "blosc", "configuration": blosc}]).codecs[1].configuration == blosc


def test_threads_of_blosc_are_ignored():
    with pytest.warns(UserWarning, match="'blosc' has no parameter 'nthreads'; ignored"):
        array = parse(codecs=[LITTLE, {"name": "blosc", "configuration": {**BLOSC, "nthreads": 4}}])
    assert array.codecs[1].configuration == BLOSC


def test_names_in_a_shard_are_brought_to_one_form():
    """V3-SHARD-03, V3-SHARD-04, V3-EXT-01"""
    codecs = [{"name": "sharding_indexed", "configuration": {
        "chunk_shape": [5, 20, 400], "codecs": ["bitround", {"name": "endian", "configuration": {"endian": "big"}}],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, "crc32c"],
    }}]
    array = parse(codecs=codecs)
    assert array.dtype == np.dtype(">f8") and array.fill_bytes == b"\x7f\xf8" + b"\0" * 6
    assert array.codecs[0].configuration == {
        "chunk_shape": [5, 20, 400],
        "codecs": [{"name": "bitround"}, {"name": "bytes", "configuration": {"endian": "big"}}],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
    }


@pytest.mark.parametrize("endian", ["little", "big"])
def test_byte_order_is_that_of_the_bytes_codec(endian):
    """V3-DT-06, V3-BYTES-01"""
    array = parse(codecs=[{"name": "bytes", "configuration": {"endian": endian}}])
    assert array.dtype == np.dtype("<f8" if endian == "little" else ">f8")
    assert json.loads(zarr_v3.render_array(array))["codecs"][0]["configuration"] == {"endian": endian}
    with pytest.raises(ValueError, match="-endian"):
        zarr_v3.render_array(array.replace(dtype=array.dtype.newbyteorder()))


def test_byte_order_of_single_bytes_is_ignored():
    """V3-BYTES-01, V3-BYTES-03"""
    for codec in ("bytes", "endian", {"name": "endian", "configuration": {"endian": "big"}}):
        array = parse(data_type="uint8", fill_value=1, codecs=[codec])
        assert array.dtype == np.dtype("u1") and array.codecs[0].name == "bytes"


def test_codecs_that_change_the_type_are_left_to_the_chain():
    """V3-XC-11"""
    codecs = [{"name": "numcodecs.astype", "configuration": {"encode_dtype": "|i1", "decode_dtype": "<f8"}}, "bytes"]
    assert [codec.name for codec in parse(codecs=codecs).codecs] == ["numcodecs.astype", "bytes"]


@pytest.mark.parametrize(("order", "axes"), [("C", [0, 1, 2]), ("F", [2, 1, 0])])
def test_transpose_of_drafts_is_read(order, axes):
    """V3-TRANS-01, V3-TRANS-03, D3-META-04"""
    array = parse(codecs=[{"name": "transpose", "configuration": {"order": order}}, *ARRAY["codecs"]])
    assert array.codecs[0] == CodecSpec("transpose", {"order": axes})


def test_members_are_written_as_json_alone():
    """V3-VER-02, V3-DOC-03, V3-DOC-05, V3-META-23"""
    raw = zarr_v3.render_array(parse())
    assert raw.isascii()
    assert raw.startswith(b'{\n  "zarr_format": 3,\n  "node_type": "array",\n  "shape": [10, 200, 3000],\n')
    for attributes in ({1: 2}, {"a": {1, 2}}, {"a": b""}):
        with pytest.raises(TypeError):
            zarr_v3.render_array(parse().replace(attributes=attributes))
        with pytest.raises(TypeError):
            zarr_v3.render_group(GroupMetadata(3, attributes))
    with pytest.raises(ValueError, match="not JSON"):
        zarr_v3.render_group(GroupMetadata(3, {}, extra={"a": {"must_understand": False, "x": float("nan")}}))


def test_bare_constants_are_tolerated_in_attributes_and_fill_values_alone():
    """V3-DOC-05"""
    array = parse(attributes={"a": [float("nan")], "Infinity": 1})
    assert np.isnan(array.attributes["a"][0])
    assert b'\n  "attributes": {"a": [NaN], "Infinity": 1},\n' in zarr_v3.render_array(array)
    array = parse(fill_value=float("nan"))
    assert array.fill_bytes == parse(fill_value="NaN").fill_bytes and b'"NaN"' in zarr_v3.render_array(array)
    assert parse(fill_value=float("-inf")).fill_value == float("-inf")
    for changes in ({"more": {"must_understand": False, "x": float("inf")}},
                    {"codecs": [{"name": "x", "configuration": {"a": [float("nan")]}}]}):
        with pytest.raises(MetadataError, match="not JSON") as caught:
            parse(**changes)
        assert caught.value.member in changes


def test_type_keeps_its_name():
    """V3-XDT-02, V3-DT-05, V3-XDT-07, V3-XDT-09: a resize must not make an array unreadable for its writer."""
    big = [{"name": "bytes", "configuration": {"endian": "big"}}]
    for data_type, fill_value, codecs in [
        ("r16", [1, 2], ["bytes"]), ({"name": "raw_bytes", "configuration": {"length_bytes": 2}}, "AQI=", ["bytes"]),
        ("bytes", "AQI=", ["vlen-bytes"]), ("variable_length_bytes", "", ["vlen-bytes"]),
        ("binary", "", ["vlen-bytes"]), ("complex_float32", [0.0, "NaN"], big), ("complex64", [0.0, "NaN"], big),
        ({"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "r8"}]}}, {"a": [7]}, ["bytes"]),
    ]:
        array = parse(data_type=data_type, fill_value=fill_value, codecs=codecs)
        written = json.loads(zarr_v3.render_array(array.replace(shape=(1, 1, 1))))
        assert (written["data_type"], written["fill_value"]) == (data_type, fill_value)
    assert parse(data_type="r8", fill_value=[0], codecs=["bytes"]).replace(dtype="V2").data_type is None


def test_old_structure():
    """V3-XDT-06"""
    old = {"name": "structured", "configuration": {"fields": [["a", "int16"], ["b", {"name": "float32"}]]}}
    with pytest.warns(UserWarning, match="byte order"):
        array = parse(data_type=old, fill_value="AQIAAMB/", codecs=["bytes"])
    assert array.dtype == np.dtype([("a", "<i2"), ("b", "<f4")]) and array.fill_value["a"] == 513
    written = json.loads(zarr_v3.render_array(array.resized((1, 1, 1), attributes={"u": 1})))
    assert (written["data_type"], written["fill_value"], written["codecs"]) == (old, "AQIAAMB/", ["bytes"])
    assert (written["shape"], written["attributes"]) == ([1, 1, 1], {"u": 1})
    for changed in (array.replace(codecs=array.codecs), array.replace(fill_value=array.fill_value)):
        written = json.loads(zarr_v3.render_array(changed))
        assert written["data_type"] == {"name": "struct", "configuration": {"fields": [
            {"name": "a", "data_type": "int16"}, {"name": "b", "data_type": "float32"},
        ]}}
        assert written["fill_value"] == {"a": 513, "b": "NaN"}
        assert written["codecs"] == [{"name": "bytes", "configuration": {"endian": "little"}}]
    with pytest.warns(UserWarning, match="byte order"):
        array = parse(data_type=old, fill_value={"a": 513, "b": float("nan")}, codecs=["bytes"])
    written = json.loads(zarr_v3.render_array(array))
    assert (written["data_type"], written["fill_value"]) == (old, {"a": 513, "b": "NaN"})
    new = {"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "int16"}]}}
    with pytest.raises(MetadataError, match="member 'codecs': 'bytes' needs the member 'endian'"):
        parse(data_type=new, fill_value={"a": 1}, codecs=["bytes"])


def test_type_and_codec_that_do_not_fit():
    """V3-XDT-01, V3-XDT-02, V3-COD-02"""
    for data_type, fill_value, codec in [
        ("string", "", "bytes"), ("string", "", "vlen-bytes"), ("bytes", "", "vlen-utf8"), ("bytes", "", "packbits"),
        ("uint8", 0, "vlen-utf8"),
    ]:
        with pytest.raises(MetadataError, match=f"member 'codecs': '{codec}' cannot store the data type"):
            parse(data_type=data_type, fill_value=fill_value, codecs=[codec])


@each("change", [
    {"shape": (7, 3)}, {"chunk_shape": (2, 2)}, {"attributes": {"a": float("inf")}}, {"fill_value": -0.0},
    {"fill_value": 0.0}, {"dtype": np.dtype(">f4")}, {"chunk_keys": ChunkKeyEncoding.v2(".")},
    {"dimension_names": ("x", None)}, {"extra": {"storage_transformers": [], "mine": {"must_understand": False}}},
    {"codecs": (CodecSpec("bytes", {"endian": "big"}), CodecSpec("some", {"level": 1}))},
    {"codecs": (CodecSpec("bytes", {"endian": "big"}), CodecSpec("some", {"level": True}))},
    {"codecs": (CodecSpec("bytes", {"endian": "big"}), CodecSpec("some", {"level": 1.0}))},
])
def test_lines_that_arrays_share_are_those_of_each(change):
    """They are rendered once for all arrays. Codecs that are equal, but differ in text, are not the same."""
    plain = ArrayMetadata((4, 3), ">f4", (2, 3), ChunkKeyEncoding.v3(), (CodecSpec("bytes", {"endian": "big"}),),
                          fill_value=1, attributes={})
    if change.get("dtype", plain.dtype) != plain.dtype:
        change = {**change, "codecs": (CodecSpec("bytes", {"endian": "little"}),)}
    changed = plain.replace(**change)
    for array in (plain, changed, plain, changed):
        assert zarr_v3.render_array(array) == render_json_lines(_members_of(array), ("attributes",))
