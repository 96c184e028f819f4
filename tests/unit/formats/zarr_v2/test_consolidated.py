"""Consolidated metadata of Zarr v2: the copies of all documents below a group."""
import itertools
import json

import numpy as np
import pytest

from tests.each import each
from zcore.errors import MetadataError, UnsupportedError
from zcore.formats import format_of
from zcore.model.metadata import ArrayMetadata, GroupMetadata

zarr_v2 = format_of(2)

GROUP = {"zarr_format": 2}
ARRAY = {
    "zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i4", "fill_value": 0, "order": "C", "filters": None,
    "compressor": None,
}
COPIES = {
    ".zgroup": GROUP, ".zattrs": {"title": "é"}, "a/.zarray": ARRAY, "a/.zattrs": {"_ARRAY_DIMENSIONS": ["x"]},
    "g/.zgroup": GROUP, "g/h/.zgroup": GROUP, "g/h/b/.zarray": ARRAY, "g-1/.zgroup": GROUP,
}


def document(copies=COPIES, **changes):
    members = {"zarr_consolidated_format": 1, "metadata": copies, **changes}
    return json.dumps({name: value for name, value in members.items() if value is not ...}).encode()


def parse(copies=COPIES, **changes):
    return zarr_v2.parse_consolidated(document(copies, **changes), "s")


def test_nodes_and_their_attributes():
    """V2-CON-01, V2-CON-03, V2-ATT-01"""
    group = parse()
    assert type(group) is GroupMetadata and group.attributes == {"title": "é"}
    assert sorted(group.consolidated) == ["a", "g", "g-1", "g/h", "g/h/b"] and len(group.consolidated) == 5
    array = group.consolidated["a"]
    assert type(array) is ArrayMetadata and array.attributes == {"_ARRAY_DIMENSIONS": ["x"]}
    assert array.replace(attributes=None) == zarr_v2.parse_array(json.dumps(ARRAY).encode(), "a")
    assert group.consolidated["g/h"].attributes == {}
    for absent in ("", "b", "g/h/b/c", 1):
        assert absent not in group.consolidated
        with pytest.raises(KeyError):
            group.consolidated[absent]


def test_group_within_knows_what_lies_below_it():
    nested = parse().consolidated["g"]
    assert list(nested.consolidated) == ["h", "h/b"]
    assert list(nested.consolidated["h"].consolidated) == ["b"]
    assert nested.consolidated["h"].consolidated["b"] == parse().consolidated["g/h/b"]
    assert list(parse().consolidated["g-1"].consolidated) == []


def test_document_is_written_of_any_mapping():
    """V2-CON-03"""
    group = parse()
    raw = zarr_v2.render_consolidated(group)
    assert json.loads(raw) == json.loads(document())
    made = GroupMetadata(2, {"title": "é"}, {path: group.consolidated[path] for path in group.consolidated})
    assert zarr_v2.render_consolidated(made) == raw
    assert zarr_v2.parse_consolidated(raw, "s") == made
    assert json.loads(zarr_v2.render_consolidated(GroupMetadata(2)))["metadata"] == {".zgroup": GROUP}


def test_attributes_that_are_handed_out_are_copies():
    group = parse()
    group.consolidated["a"].attributes["new"] = 1
    assert "new" not in group.consolidated["a"].attributes


def test_node_that_cannot_be_read_spoils_no_other():
    """V2-OBJ-02"""
    bad = {**ARRAY, "dtype": "|O", "filters": [{"id": "pickle"}]}
    group = parse({**COPIES, "bad/.zarray": bad, "worse/.zarray": {**ARRAY, "shape": [-1]}})
    assert group.consolidated["a"].shape == (4,) and "bad" in group.consolidated
    with pytest.raises(UnsupportedError, match=r"s/\.zmetadata: member 'metadata\.bad/\.zarray\.filters'"):
        group.consolidated["bad"]
    with pytest.raises(MetadataError, match=r"member 'metadata\.worse/\.zarray\.shape'") as caught:
        group.consolidated["worse"]
    assert (caught.value.path, caught.value.document) == ("s", ".zmetadata")
    assert json.loads(zarr_v2.render_consolidated(group))["metadata"]["bad/.zarray"] == bad


def test_bare_constants_are_read():
    """V2-FV-02, V2-ATT-01"""
    raw = document({".zgroup": GROUP, "a/.zarray": {**ARRAY, "dtype": "<f4", "fill_value": 1.5},
                    "a/.zattrs": {"missing": 2.5}}).replace(b"1.5", b"NaN").replace(b"2.5", b"-Infinity")
    array = zarr_v2.parse_consolidated(raw, "s").consolidated["a"]
    assert np.isnan(array.fill_value) and array.attributes == {"missing": -np.inf}


def test_copies_may_be_strings():
    """V2-CON-01"""
    assert parse({key: json.dumps(members) for key, members in COPIES.items()}) == parse()
    broken = parse({**COPIES, "a/.zarray": "{", "g/.zgroup": "[]"})
    for path in ("a", "g"):
        with pytest.raises(MetadataError):
            broken.consolidated[path]


def test_copy_of_zarr_python_3_has_a_member_more():
    """V2-GRP-01: it leaves an empty list of its own in each group, which is no reason for a warning."""
    inline = {"metadata": {}, "must_understand": False, "kind": "inline"}
    group = parse({".zgroup": GROUP, "g/.zgroup": {**GROUP, "consolidated_metadata": inline}})
    assert group.consolidated["g"].attributes == {}


def test_array_wins_over_a_group_of_the_same_path():
    """V2-KEY-05"""
    with pytest.warns(UserWarning, match="'a' is an array and a group"):
        assert type(parse({**COPIES, "a/.zgroup": GROUP}).consolidated["a"]) is ArrayMetadata


def test_documents_of_no_node_are_ignored():
    group = parse({**COPIES, "x/.zattrs": {"a": 1}, "a/0": {}, "readme": {}, "a/.zarray.lock": {}})
    assert group == parse()


def test_reference_sets_have_no_number_of_the_format():
    """V2-CON-04"""
    assert parse(zarr_consolidated_format=..., record_size=1000) == parse()


@each("value", [0, 2, "1", 1.0, True, None, ...])
def test_other_formats_are_refused(value):
    """V2-CON-01"""
    with pytest.raises(MetadataError, match="member 'zarr_consolidated_format'"):
        parse(zarr_consolidated_format=value)


@each("copies", [..., None, [], "x", {}, {"a/.zgroup": GROUP}, {".zarray": ARRAY},
                                    {".zgroup": GROUP, "../a/.zarray": ARRAY}, {".zgroup": GROUP, "/a/.zarray": ARRAY},
                                    {".zgroup": GROUP, "a//b/.zarray": ARRAY}, {".zgroup": GROUP, "./.zgroup": GROUP}])
def test_impossible_copies_are_refused(copies):
    """V2-CON-01, V2-KEY-03"""
    with pytest.raises(MetadataError, match="member 'metadata'") as caught:
        parse(copies)
    assert (caught.value.path, caught.value.document) == ("s", ".zmetadata")


@each("name, value", [(".zarray", None), *itertools.product((".zarray", ".zattrs"), (1, [], True))])
def test_copy_that_is_no_object_is_refused(name, value):
    """V2-CON-01"""
    group = parse({**COPIES, f"a/{name}": value})
    with pytest.raises(MetadataError, match="expected an object"):
        group.consolidated["a"]
