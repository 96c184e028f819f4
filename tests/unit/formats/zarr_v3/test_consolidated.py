"""Consolidated metadata of Zarr v3: read, written, and never in the way."""
import json
import pickle

import pytest

from tests.each import each
from zcore.errors import MetadataError, UnsupportedError
from zcore.formats import format_of
from zcore.formats.zarr_v3.consolidated import render_consolidated
from zcore.model.metadata import ArrayMetadata, GroupMetadata

zarr_v3 = format_of(3)

X = json.loads(zarr_v3.render_array(zarr_v3.new_array((4,), "i1", (2,))))
GROUP = {"zarr_format": 3, "node_type": "group"}


def parse(metadata, path="g", **members):
    inline = {"kind": "inline", "must_understand": False, "metadata": metadata}
    raw = json.dumps({**GROUP, "consolidated_metadata": inline, **members}).encode()
    return zarr_v3.parse_node("zarr.json", raw, path)


def test_nodes_below_a_group():
    """V3-GRP-04, V3-GRP-05: in any order, with and without members of their own of that name."""
    own = {"kind": "inline", "must_understand": False, "metadata": {"gone": X}}
    group = parse({"b/c/d": X, "a": X, "b/c": GROUP, "b": {**GROUP, "consolidated_metadata": own}, "b-": X, "b0": X})
    nodes = group.consolidated
    assert list(nodes) == ["a", "b", "b-", "b/c", "b/c/d", "b0"] and len(nodes) == 6
    assert "b/c" in nodes and "c" not in nodes and 5 not in nodes
    assert list(nodes["b"].consolidated) == ["c", "c/d"] and list(nodes["b/c"].consolidated) == ["d"]
    assert nodes["b"].consolidated["c"].consolidated["d"] == nodes["b/c/d"] == nodes["a"]
    assert type(nodes["a"]) is ArrayMetadata and type(nodes["b"].consolidated["c"]) is GroupMetadata
    assert "d" in nodes["b/c"].consolidated and "d" not in nodes["b"].consolidated
    with pytest.raises(KeyError):
        nodes["x"]
    assert "b/c/d" in repr(nodes)
    assert pickle.loads(pickle.dumps(group)) == group and hash(group) == hash(group.replace(attributes={}))


def test_written_in_order_with_empty_members_in_groups():
    """V3-GRP-04"""
    array, group = zarr_v3.new_array((4,), "i1", (2,)), zarr_v3.new_group()
    nodes = {"sub/x": array, "Y": array, "ª": group, "b": array, "sub": group}
    written = json.loads(zarr_v3.render_group(zarr_v3.new_group().replace(consolidated=nodes)))
    member = written["consolidated_metadata"]
    assert list(member["metadata"]) == ["ª", "b", "sub", "Y", "sub/x"]
    empty = {"kind": "inline", "must_understand": False, "metadata": {}}
    assert member["metadata"]["sub"] == {**GROUP, "attributes": {}, "consolidated_metadata": empty}
    assert {**member, "metadata": {}} == empty and member["metadata"]["Y"] == X
    back = zarr_v3.parse_node("zarr.json", json.dumps(written).encode(), "g")
    assert back.consolidated["sub/x"] == array
    assert json.loads(zarr_v3.render_group(back)) == written


def test_absent():
    """V3-GRP-03"""
    assert zarr_v3.parse_node("zarr.json", json.dumps(GROUP).encode(), "g").consolidated is None
    assert parse({}, consolidated_metadata=None).consolidated is None
    assert list(parse({}).consolidated) == []


@each("value", [
    1, [], "inline", {}, {"kind": "inline", "metadata": {}},
    {"kind": "inline", "must_understand": True, "metadata": {}},
    {"kind": "external", "must_understand": False, "metadata": {}}, {"kind": "inline", "must_understand": False},
    {"kind": "inline", "must_understand": False, "metadata": []}, {"must_understand": False, "metadata": {}},
])
def test_other_kinds_are_refused(value):
    """V3-GRP-03: the copy is. The group itself can be read."""
    raw = json.dumps({**GROUP, "consolidated_metadata": value}).encode()
    with pytest.raises(MetadataError, match="g/zarr.json: member 'consolidated_metadata'") as caught:
        zarr_v3.check_copy(raw, "g")
    assert caught.value.member == "consolidated_metadata" and caught.value.path == "g"
    group = zarr_v3.parse_node("zarr.json", raw, "g")
    assert group.consolidated is None and "consolidated_metadata" not in json.loads(zarr_v3.render_group(group))


@each("metadata", [
    {"a/b": X}, {"a": X, "a/b": X}, {"": GROUP}, {"/a": X}, {"a/": X, "a": GROUP}, {"a//b": X},
    {"a": GROUP, "a/../b": X}, {"__a": X}, {"a": 1}, {"a": None}, {"..": X}, {"a": {}, "a/b": X}, {"a": [], "a/b": X},
])
def test_nodes_that_make_no_hierarchy_are_not_used(metadata):
    """V3-GRP-07: the group is opened without them."""
    with pytest.warns(UserWarning, match="g/zarr.json: member 'consolidated_metadata' is not used"):
        group = parse(metadata)
    assert group.consolidated is None


def test_node_that_cannot_be_read_spoils_no_other():
    """V3-GRP-05, V3-GRP-06"""
    nodes = parse({"a": X, "b": {**X, "data_type": "unheard-of"}, "c": {**X, "shape": [-1]}, "d": {**GROUP, "x": 1},
                   "e": {**X, "zarr_format": 2}}).consolidated
    assert nodes["a"].shape == (4,)
    with pytest.raises(UnsupportedError, match="g/zarr.json: member 'consolidated_metadata.metadata.b.data_type'"):
        nodes["b"]
    with pytest.raises(MetadataError) as caught:
        nodes["c"]
    assert caught.value.member == "consolidated_metadata.metadata.c.shape" and caught.value.path == "g"
    with pytest.raises(UnsupportedError, match="member 'x'"):
        nodes["d"]
    with pytest.raises(MetadataError, match="zarr_format"):
        nodes["e"]


def test_document_of_no_kind_of_node_is_written_back():
    nodes = {"a": {name: value for name, value in X.items() if name != "node_type"}}
    assert render_consolidated(parse(nodes).consolidated, None)["metadata"] == nodes


def test_bare_constants():
    """V3-DOC-05"""
    nodes = parse({"a": {**X, "attributes": {"x": float("nan")}}, "b": {**X, "data_type": float("nan")},
                   "c": {**X, "data_type": "float64", "fill_value": float("nan"),
                         "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}}).consolidated
    assert str(nodes["a"].attributes) == "{'x': nan}" and str(nodes["c"].fill_value) == "nan"
    with pytest.raises(MetadataError, match="consolidated_metadata.metadata.b.data_type.*not JSON"):
        nodes["b"]


def test_array_does_not_define_the_member():
    """V3-META-24: in an array's document it is one of those that need not be understood."""
    kept = {"kind": "inline", "must_understand": False, "metadata": {}}
    array = zarr_v3.parse_array(json.dumps({**X, "consolidated_metadata": kept}).encode(), "x")
    assert array.extra == {"consolidated_metadata": kept}
