"""The Zarr v2 format: the example of its text, its rules for documents, and what files hold beyond them."""
import json

import numpy as np
import pytest

import zcore
from tests.each import each
from zcore.errors import MetadataError, UnsupportedError
from zcore.formats import NODE_DOCUMENTS, format_of
from zcore.model.chunk_keys import ChunkKeyEncoding
from zcore.model.metadata import CodecSpec, GroupMetadata

zmeta = format_of("zmeta")
zarr_v2 = format_of(2)

# v2.0, "Metadata"
EXAMPLE = {
    "chunks": [1000, 1000],
    "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
    "dtype": "<f8",
    "fill_value": "NaN",
    "filters": [{"id": "delta", "dtype": "<f8", "astype": "<f4"}],
    "order": "C",
    "shape": [10000, 10000],
    "zarr_format": 2,
}
PLAIN = {**EXAMPLE, "compressor": None, "filters": None}


def document(**changes):
    """Return a plain document with other members; ... removes one."""
    members = {**PLAIN, **changes}
    return json.dumps({name: value for name, value in members.items() if value is not ...}).encode()


def parse(**changes):
    return zarr_v2.parse_array(document(**changes), "a")


def rewritten(array):
    return json.loads(zarr_v2.render_array(array))


def test_example_is_read():
    """V2-ARR-01"""
    array = zarr_v2.parse_array(json.dumps(EXAMPLE).encode(), "example.zarr")
    assert (array.shape, array.chunk_shape, array.dtype.str, array.zarr_format) == (
        (10000, 10000), (1000, 1000), "<f8", 2,
    )
    assert np.isnan(array.fill_value) and array.chunk_keys == ChunkKeyEncoding.v2(".")
    assert array.codecs == (
        CodecSpec("numcodecs.delta", {"dtype": "<f8", "astype": "<f4"}),
        CodecSpec("bytes", {"endian": "little"}),
        CodecSpec("blosc", {"typesize": 4, "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "blocksize": 0}),
    )
    assert (array.attributes, array.dimension_names) == (None, None)


def test_example_is_rewritten_as_it_stood():
    """V2-ARR-10: numcodecs would write a blocksize, too."""
    raw = json.dumps(EXAMPLE, indent=4, sort_keys=True).encode()
    array = zarr_v2.parse_array(raw, "a")
    assert zarr_v2.render_array(array) == raw
    resized = {**EXAMPLE, "shape": [5, 5]}
    assert rewritten(array.replace(shape=(5, 5))) == resized


def test_names_of_the_documents():
    """V2-KEY-01"""
    assert NODE_DOCUMENTS[2] == (zarr_v2.array_document, zarr_v2.group_document) == (".zarray", ".zgroup")
    assert (zarr_v2.name, zarr_v2.attributes_document, zarr_v2.consolidated_document) == (2, ".zattrs", ".zmetadata")
    assert zarr_v2.parse_node(".zarray", document(), "a") == parse()
    assert zarr_v2.parse_node(".zgroup", b'{"zarr_format": 2}', "a") == GroupMetadata(2)


def test_compressor_that_is_missing_is_none():
    """V2-ARR-06"""
    with pytest.warns(UserWarning, match="member 'compressor' is missing; read as null"):
        array = parse(compressor=...)
    assert array.codecs == parse(compressor=None).codecs
    assert rewritten(array)["compressor"] is None


@pytest.mark.parametrize("changes", [{"shape": 6}, {"chunks": 3}, {"shape": 6, "chunks": 3}], ids=str)
def test_length_of_one_dimension_need_not_be_a_list(changes):
    """V2-ARR-03, V2-ARR-04"""
    with pytest.warns(UserWarning, match="is a number; read as a list of one"):
        array = parse(**{"shape": [6], "chunks": [3], **changes})
    assert (array.shape, array.chunk_shape) == ((6,), (3,))
    assert (rewritten(array)["shape"], rewritten(array)["chunks"]) == ([6], [3])


@pytest.mark.parametrize("key", [".zattrs", "a/.zattrs"])
@pytest.mark.parametrize("is_consolidated", [False, True])
def test_attributes_that_are_null_are_none(key, is_consolidated):
    """V2-ATT-01: zarr-python reads them so."""
    objects = {".zgroup": b'{"zarr_format": 2}', "a/.zarray": document(), key: b"null"}
    if is_consolidated:
        objects[".zmetadata"] = json.dumps({"zarr_consolidated_format": 1, "metadata": {
            name: json.loads(raw) for name, raw in objects.items()}}).encode()
    group = zcore.open(zcore.MemoryStore(objects), "r+")
    assert (dict(group.attrs), dict(group["a"].attrs)) == ({}, {})
    group["a"].attrs["b"] = 1
    assert json.loads(group.store.get("a/.zattrs")) == {"b": 1}


@pytest.mark.parametrize("member", ["filters", "fill_value"])
def test_member_that_reference_sets_leave_out_is_null(member):
    """V2-ARR-01"""
    with pytest.warns(UserWarning, match=f"'{member}' is missing"):
        array = parse(**{member: ...})
    assert array == parse(**{member: None})
    assert rewritten(array)[member] is None


@pytest.mark.parametrize(("shape", "chunks", "grid_shape"), [
    ([], [], ()), ([0], [5], (0,)), ([3, 0, 2], [2, 1, 2], (2, 0, 1)), ([1], [100], (1,)),
])
def test_shapes_that_occur(shape, chunks, grid_shape):
    """V2-ARR-03, V2-CHK-01"""
    assert parse(shape=shape, chunks=chunks).grid_shape == grid_shape


def test_chunk_length_of_nothing_is_read_as_one():
    """V2-ARR-04"""
    array = parse(shape=[0, 4], chunks=[0, 2])
    assert array.chunk_shape == (1, 2) and rewritten(array)["chunks"] == [1, 2]
    for shape, chunks in (([3], [0]), ([0], [0, 0]), ([0], [-1])):
        with pytest.raises(MetadataError, match="member 'chunks'"):
            parse(shape=shape, chunks=chunks)


@pytest.mark.parametrize(("separator", "key"), [(".", "2.4"), ("/", "2/4"), (..., "2.4")])
def test_separator_of_chunk_keys(separator, key):
    """V2-ARR-07, V2-CHK-02"""
    array = parse(dimension_separator=separator)
    assert array.chunk_keys.encode((2, 4)) == key
    assert parse(shape=[], chunks=[], dimension_separator=separator).chunk_keys.encode(()) == "0"
    assert rewritten(array).get("dimension_separator", ...) == separator


def test_separator_that_a_caller_knows_better_is_written():
    """V2-ARR-08: old nested stores do not say theirs."""
    for array in (parse(), parse(dimension_separator=".")):
        nested = array.replace(chunk_keys=ChunkKeyEncoding.v2("/"))
        assert rewritten(nested)["dimension_separator"] == "/"
    plain = parse(dimension_separator="/").replace(chunk_keys=ChunkKeyEncoding.v2("."))
    assert "dimension_separator" not in rewritten(plain)


def test_unknown_members_are_kept():
    """V2-ARR-09"""
    array = parse(comment="é", nested={"b": [1, None]})
    assert array.extra == {"comment": "é", "nested": {"b": [1, None]}}
    assert rewritten(array.replace(shape=(5, 5))) == {**PLAIN, **array.extra, "shape": [5, 5]}
    with pytest.raises(ValueError, match="'shape'"):
        zarr_v2.render_array(array.replace(extra={"shape": 1}))


def test_written_form_is_zarr_pythons():
    """V2-ARR-10"""
    raw = zarr_v2.render_array(zarr_v2.new_array((3,), "<i2", (2,), compressors=None))
    assert raw == (
        b'{\n    "chunks": [\n        2\n    ],\n    "compressor": null,\n    "dtype": "<i2",\n    "fill_value": 0,\n'
        b'    "filters": null,\n    "order": "C",\n    "shape": [\n        3\n    ],\n    "zarr_format": 2\n}'
    )


def test_spelling_that_no_longer_holds_is_dropped():
    """V2-ARR-10: what a member said before the chain was changed does not come back."""
    array = parse(compressor={"id": "zstd", "level": 3, "checksum": False}, order="F", shape=[5], chunks=[5])
    assert set(array.extra) == {"compressor", "order"}
    changed = array.replace(codecs=(CodecSpec("bytes", {"endian": "little"}), CodecSpec("gzip", {"level": 2})))
    assert rewritten(changed)["compressor"] == {"id": "gzip", "level": 2}


def test_metadata_of_another_format_are_not_written():
    array = parse()
    for changes in ({"chunk_keys": ChunkKeyEncoding.v3()}, {"chunk_keys": ChunkKeyEncoding.zmeta()},
                    {"dimension_names": ("x", "y")}, {"codecs": ()}, {"codecs": (CodecSpec("sharding_indexed"),)}):
        with pytest.raises(ValueError):
            zarr_v2.render_array(array.replace(**changes))


def test_metadata_of_the_same_terms_are_written_whatever_made_them():
    array = zmeta.new_array((10,), "i4", (5,), cname="lz4", clevel=3, shuffle=1)
    members = rewritten(array.replace(chunk_keys=ChunkKeyEncoding.v2(), zarr_format=2))
    assert members["compressor"] == {"id": "blosc", "cname": "lz4", "clevel": 3, "shuffle": 1, "blocksize": 0}


def test_group_is_written_and_read():
    """V2-GRP-01"""
    raw = b'{\n    "zarr_format": 2\n}'
    assert zarr_v2.render_group(zarr_v2.new_group({"a": 1})) == raw
    assert zarr_v2.parse_node(".zgroup", raw, "g") == GroupMetadata(2)


def test_other_members_of_a_group_are_ignored_with_a_warning():
    """V2-GRP-01"""
    with pytest.warns(UserWarning, match=r"g/\.zgroup: members \['consolidated_metadata'\] are ignored"):
        group = zarr_v2.parse_node(".zgroup", b'{"zarr_format": 2, "consolidated_metadata": {}}', "g")
    assert group == GroupMetadata(2)


def test_attributes():
    """V2-ATT-01: optional, and bare NaN is read."""
    assert zarr_v2.parse_attributes(None, "a") == {}
    raw = b'{\n    "a": [\n        NaN,\n        -Infinity\n    ],\n    "b": "\\u00e9"\n}'
    assert zarr_v2.render_attributes(zarr_v2.parse_attributes(raw, "a")) == raw


def test_bare_constants_belong_to_fill_values_alone():
    """V2-FV-02"""
    assert np.isnan(zarr_v2.parse_array(document().replace(b'"NaN"', b"NaN"), "a").fill_value)
    with pytest.raises(MetadataError, match="member 'comment'"):
        zarr_v2.parse_array(document(comment=1.5).replace(b"1.5", b"NaN"), "a")


# zarr-python 3.4, create_array(zarr_format=2)
@each("changes", [
    {"dtype": "<f4", "fill_value": 0.10000000149011612}, {"dtype": "<c8", "fill_value": ["NaN", 1.0]},
    {"dtype": "|S3", "fill_value": "YWI="}, {"dtype": "|S3", "fill_value": ""}, {"dtype": "<U3", "fill_value": "hé"},
    {"dtype": "|V2", "fill_value": "YQA="}, {"dtype": "<M8[s]", "fill_value": -2**63},
    {"dtype": "|O", "fill_value": "ü", "filters": [{"id": "vlen-utf8"}]},
    {"dtype": "|O", "fill_value": None, "filters": [{"id": "vlen-utf8"}]},
    {"dtype": "|O", "fill_value": "YWI=", "filters": [{"id": "vlen-bytes"}]},
    {"dtype": [["x", "<f4"], ["y", ">i2"]], "fill_value": "AADAPwAC"}, {"order": "F"}, {"fill_value": None},
    {"filters": [{"id": "delta", "dtype": "<i4", "astype": "<i2"}], "compressor": {"id": "zlib", "level": 3}},
    {"dimension_separator": "/"}, {"compressor": None},
])
def test_document_of_zarr_python_3_is_read_and_rewritten(changes):
    """V2-ARR-10"""
    members = {
        "shape": [4, 4], "chunks": [2, 2], "dtype": "<i4", "fill_value": 0, "order": "C", "filters": None,
        "dimension_separator": ".", "compressor": {"id": "zstd", "level": 0}, "zarr_format": 2, **changes,
    }
    array = zarr_v2.parse_array(json.dumps(members, indent=2).encode(), "a")
    assert rewritten(array) == members


def test_metadata_without_a_codec_for_objects_are_not_written():
    """V2-OBJ-01"""
    strings = parse(dtype="|O", filters=[{"id": "vlen-utf8"}], fill_value="")
    with pytest.raises((ValueError, UnsupportedError), match="objects need a codec"):
        zarr_v2.render_array(strings.replace(codecs=(CodecSpec("bytes"),)))
