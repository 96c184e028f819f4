"""Documents that zarr-python has written: read, and written again with the same members."""
import json
from pathlib import Path

import numpy as np

from tests.each import each
from zcore.formats import format_of
from zcore.model.chunk_keys import ChunkKeyEncoding
from zcore.model.metadata import ArrayMetadata, GroupMetadata

zarr_v3 = format_of(3)

DOCUMENTS = Path(__file__).resolve().parents[3] / "fixtures" / "zarr_v3" / "documents"
ARRAYS = sorted(path.stem for path in DOCUMENTS.glob("*.json") if path.stem != "consolidated")


def raw_of(name):
    return (DOCUMENTS / f"{name}.json").read_bytes()


def array_of(name):
    return zarr_v3.parse_node("zarr.json", raw_of(name), name)


def without_empty_configurations(value):
    """Return a document in which an extension has no configuration instead of an empty one, which means the same."""
    if isinstance(value, dict):
        return {member: without_empty_configurations(part) for member, part in value.items()
                if not (member == "configuration" and part == {})}
    return [without_empty_configurations(part) for part in value] if isinstance(value, list) else value


def test_there_are_documents():
    assert len(ARRAYS) == 12


@each("name", ARRAYS)
def test_document_is_written_again_with_the_same_members(name):
    """V3-META-23, V3-EXT-06, V3-EXT-07, V3-PY-01, V3-PY-02, V3-PY-06, V3-XDT-07"""
    array = array_of(name)
    if name == "sharded":
        assert array.attributes["é"] == 1 and np.isnan(array.attributes["x"][1])
    written = json.loads(zarr_v3.render_array(array), parse_constant=str)
    theirs = json.loads(raw_of(name), parse_constant=str)
    assert without_empty_configurations(written) == without_empty_configurations(theirs)
    if name != "sharded":  # NaN does not equal itself
        assert zarr_v3.parse_array(json.dumps(written).encode(), name) == array


@each(("name", "dtype", "fill_value"), [
    ("plain", np.dtype("<f4"), 0.0), ("scalar", np.dtype("<u8"), 2**64 - 1), ("string", np.dtypes.StringDType(), "é"),
    ("bytes", np.dtype(object), b"abc"), ("text", np.dtype("<U5"), "abc"), ("null_terminated", np.dtype("S3"), b"ab"),
    ("raw", np.dtype("V4"), np.void(b"ab\0\0")), ("v2_keys", np.dtype("<i2"), 0),
])
def test_type_and_fill_value(name, dtype, fill_value):
    """V3-XDT-01, V3-XDT-02, V3-XDT-03, V3-XDT-07, V3-FV-02"""
    array = array_of(name)
    assert array.dtype == dtype and array.fill_value == fill_value


def test_date():
    """V3-XDT-04, V3-PY-06"""
    array = array_of("datetime")
    assert array.dtype == np.dtype("<M8[25s]") and np.isnat(array.fill_value)


def test_structure():
    """V3-XDT-05"""
    array = array_of("struct")
    assert array.dtype == np.dtype([
        ("a", "<i4"), ("b", "<f8"), ("c", "S2"), ("d", "<M8[s]"), ("e", [("f", "<U2"), ("g", "<c8")]),
    ])
    value = array.fill_value
    assert (value["a"], value["c"], value["e"]["f"]) == (1, b"x", "ab") and np.isnan(value["b"])
    assert value["d"] == np.datetime64(5, "s") and value["e"]["g"] == complex(0, float("-inf"))


def test_shards():
    """V3-PY-02, V3-META-22"""
    array = array_of("sharded")
    assert (array.chunk_shape, array.dimension_names) == ((10, 10), ("a", None))
    (codec,) = array.codecs
    assert codec.name == "sharding_indexed" and codec.configuration["chunk_shape"] == [5, 5]
    assert [inner["name"] for inner in codec.configuration["codecs"]] == ["bytes", "blosc", "crc32c"]
    assert codec.configuration["index_location"] == "end"


def test_keys_of_v2():
    """V3-KEY-02, V3-GRID-01"""
    array = array_of("v2_keys")
    assert array.chunk_keys == ChunkKeyEncoding.v2("/")
    assert [codec.name for codec in array.codecs] == ["transpose", "bytes"]
    assert (array.shape, array.chunk_shape) == ((0, 3), (1, 3))


def test_consolidated_group():
    """V3-GRP-01, V3-GRP-04"""
    group = zarr_v3.parse_node("zarr.json", raw_of("consolidated"), "")
    assert group.attributes == {"a": 1}
    assert list(group.consolidated) == ["Y", "sub", "sub/x"]
    assert type(group.consolidated["Y"]) is ArrayMetadata and group.consolidated["sub/x"].shape == (4,)
    sub = group.consolidated["sub"]
    assert type(sub) is GroupMetadata and list(sub.consolidated) == ["x"]
    assert sub.consolidated["x"] == group.consolidated["sub/x"]
    assert json.loads(zarr_v3.render_group(group)) == json.loads(raw_of("consolidated"))
    assert list(json.loads(zarr_v3.render_group(group))["consolidated_metadata"]["metadata"]) == ["sub", "Y", "sub/x"]
