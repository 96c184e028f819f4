"""Hostile Zarr v3 documents: each ends in an error of zcore that names the place, or in right metadata."""
import json
import warnings

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.formats.conformance import DEEP, DIGITS, JSON, LONE
from zcore.errors import ZcoreError
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


WRONG = [  # (member, JSON text), and what the class of all formats has
    ("shape", "10"), ("chunk_grid", '{"name": "regular", "configuration": {"chunk_shape": 5}}'),
    ("chunk_grid", '{"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[[0, 9]], 5]}}'),
    ("data_type", '{"name": "struct", "configuration": {"fields": "ab"}}'),
    ("codecs", '[{"name": "sharding_indexed", "configuration": {"codecs": [[]], "index_codecs": []}}]'),
    ("codecs", f'[{LONE}, {{"name": ["bytes"]}}]'), ("codecs", DEEP),
    ("fill_value", '{"a": "' + "0" * 10**6 + '", "b": 1}'), ("fill_value", f'{{"a": 1, "b": {DIGITS}}}'),
    ("dimension_names", "[" + '"x",' * 100000 + '"x"]'), ("attributes", DEEP),
]


def test_deep_structures_and_shards_are_bounded_by_the_document():
    """V3-DOC-07"""
    data_type, fill_value, codec = '"int8"', "1", '"bytes"'
    for _ in range(10):
        data_type = '{"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": ' + data_type + "}]}}"
        fill_value = '{"a": ' + fill_value + "}"
        codec = '{"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 1], "codecs": [' + codec + "]}}"
    changes = {"data_type": data_type, "fill_value": fill_value, "codecs": f"[{codec}]"}
    array = zarr_v3.parse_array(json.dumps(
        ARRAY | {member: json.loads(text) for member, text in changes.items()}).encode(), "x")
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
