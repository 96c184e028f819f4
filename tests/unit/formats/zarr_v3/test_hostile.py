"""Hostile Zarr v3 documents: each ends in an error of zcore that names the place, or in right metadata."""
import json
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.each import each
from tests.unit.formats.conformance import JSON
from zcore.errors import MetadataError, UnsupportedError, ZcoreError
from zcore.formats import format_of

zarr_v3 = format_of(3)

ARRAY = {
    "zarr_format": 3, "node_type": "array", "shape": [10, 10],
    "data_type": {"name": "struct", "configuration": {"fields": [
        {"name": "a", "data_type": "float32"},
        {"name": "b", "data_type": {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}},
    ]}},
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [5, 5]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": {"a": "0x7fc00001", "b": -1},
    "codecs": [{"name": "sharding_indexed", "configuration": {
        "chunk_shape": [1, 5], "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
    }}],
    "attributes": {"a": "é"}, "dimension_names": ["x", None], "storage_transformers": [],
}
GROUP = {"zarr_format": 3, "node_type": "group", "attributes": {}, "consolidated_metadata": {
    "kind": "inline", "must_understand": False, "metadata": {"a": ARRAY, "g": {"zarr_format": 3, "node_type": "group"}},
}}


def document(base=None, **texts):
    members = {name: json.dumps(value) for name, value in (ARRAY if base is None else base).items()}
    return ("{" + ", ".join(f'"{name}": {text}' for name, text in {**members, **texts}.items()) + "}").encode()


@each(("member", "text"), [
    ("shape", "[9223372036854775808, 1]"), ("shape", "[4294967296, 4294967296]"), ("shape", f"[{'9' * 4000}, 1]"),
    ("shape", "[1e400, 1]"), ("shape", "[" * 60 + "]" * 60), ("shape", "[1E1, 10]"), ("shape", "[10.0, 10]"),
    ("chunk_grid", '{"name": "regular", "configuration": {"chunk_shape": [0, 5]}}'),
    ("chunk_grid", '{"name": "regular", "configuration": {"chunk_shape": [-5, 5]}}'),
    ("chunk_grid", '{"name": "regular", "configuration": {"chunk_shape": [9223372036854775807, 5]}}'),
    ("chunk_grid", '{"name": "regular", "configuration": {"chunk_shape": [3037000500, 3037000500]}}'),
    ("chunk_grid", '{"name": "regular", "configuration": {"chunk_shape": [2147483648, 536870912]}}'),
    ("chunk_grid", f'{{"name": "regular", "configuration": {{"chunk_shape": [{"9" * 4000}, 5]}}}}'),
    ("chunk_grid", '{"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[[0, 9]], 5]}}'),
    ("data_type", "[" * 60 + "]" * 60), ("data_type", '{"name": "struct", "configuration": {"fields": "ab"}}'),
    ("codecs", '[{"name": "sharding_indexed", "configuration": {"codecs": [[]], "index_codecs": []}}]'),
    ("codecs", '["\\ud800", {"name": ["bytes"]}]'), ("codecs", "[" * 60 + "]" * 60),
    ("fill_value", '{"a": "' + "0" * 10**6 + '", "b": 1}'), ("fill_value", '{"a": 1, "b": ' + "9" * 4000 + "}"),
    ("dimension_names", "[" + '"x",' * 100000 + '"x"]'), ("attributes", "[" * 60 + "]" * 60),
])
def test_wrong_member_is_named(member, text):
    """V3-DOC-06, V3-META-03, V3-GRID-01, V3-RGRID-03"""
    with pytest.raises(MetadataError) as caught:
        zarr_v3.parse_array(document(**{member: text}), "x")
    assert caught.value.member in (member, None) and len(str(caught.value)) < 400


def test_too_many_dimensions_are_unsupported():
    with pytest.raises(UnsupportedError, match="65 dimensions"):
        zarr_v3.parse_array(document(shape=json.dumps([1] * 65)), "x")


def test_deep_structures_and_shards_are_bounded_by_the_document():
    """V3-DOC-07"""
    data_type, fill_value, codec = '"int8"', "1", '"bytes"'
    for _ in range(10):
        data_type = '{"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": ' + data_type + "}]}}"
        fill_value = '{"a": ' + fill_value + "}"
        codec = '{"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 1], "codecs": [' + codec + "]}}"
    array = zarr_v3.parse_array(document(data_type=data_type, fill_value=fill_value, codecs=f"[{codec}]"), "x")
    assert zarr_v3.parse_array(zarr_v3.render_array(array), "x") == array


def outcome(raw):
    """Return the metadata of a document, or None if an error of zcore was all that came."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            node = zarr_v3.parse_node("zarr.json", raw, "x")
            if getattr(node, "consolidated", None):
                dict(node.consolidated)
        except ZcoreError as exc:
            assert len(str(exc)) < 600
            return None
        if hasattr(node, "shape"):
            assert zarr_v3.parse_array(zarr_v3.render_array(node), "x") == node
        else:
            zarr_v3.render_group(node)
        return node


steps_down = st.lists(
    st.sampled_from(["name", "configuration", "fields", "codecs", 0, "chunk_shape", "data_type", "unit"]), min_size=1,
    max_size=7,
)


@given(steps_down, st.sampled_from(["data_type", "codecs", "chunk_grid", "fill_value"]), JSON)
def test_any_json_in_a_nested_place(steps, member, value):
    base = json.loads(json.dumps(ARRAY))
    part = base[member]
    for step in steps:
        found = (type(part) is list and part and step == 0) or (type(part) is dict and step in part)
        if not found or type(part[step]) not in (list, dict):
            break
        part = part[step]
    if type(part) is dict:
        part[steps[-1] if type(steps[-1]) is str else "name"] = value
    else:
        part.append(value)
    outcome(json.dumps(base).encode())
