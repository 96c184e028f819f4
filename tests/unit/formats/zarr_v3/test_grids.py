"""Chunk grids and chunk key encodings of Zarr v3."""
import json
import re

import pytest

from tests.each import each
from zcore.errors import UnsupportedError
from zcore.formats.zarr_v3.grids import parse_grid, parse_key_encoding, render_grid, render_key_encoding
from zcore.model.chunk_keys import ChunkKeyEncoding


def regular(chunk_shape):
    return {"name": "regular", "configuration": {"chunk_shape": chunk_shape}}


def rectilinear(*chunk_shapes, **configuration):
    return {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": list(chunk_shapes),
                                                     **configuration}}


def test_regular_grid():
    """V3-GRID-01, V3-GRID-02"""
    assert parse_grid(regular([5, 20]), (10, 200)) == ((5, 20), None)
    assert parse_grid(regular([]), ()) == ((), None)
    assert render_grid((5, 20)) == regular([5, 20])


def test_length_of_zero_counts_as_one_where_there_are_no_elements():
    """V3-GRID-01"""
    assert parse_grid(regular([0, 3]), (0, 5)) == ((1, 3), None)
    assert parse_grid(regular([0]), (5,)) == ((0,), None)  # refused by the model


@each("grid", [
    "regular", regular([5]), regular([5, 5, 5]), regular([5, 5.0]), regular([5, True]), regular(5), regular(None),
    regular([5, "5"]), {"name": "regular", "configuration": {}}, regular([[5], [5]]),
])
def test_regular_grid_that_is_none(grid):
    """V3-GRID-01, V3-META-05"""
    with pytest.raises(ValueError, match="chunk_shape"):
        parse_grid(grid, (10, 10))


@each(("edges", "length"), [
    (4, 10), ([4, 4, 4], 10), ([[4, 3]], 10), ([4, [4, 2]], 10), ([4, [4, 2]], 3), ([[4, 2**62]], 10), (4, 0), ([4], 0),
    ([4], 4),
])
def test_rectilinear_grid_of_equal_chunks_is_regular(edges, length):
    """V3-RGRID-01, V3-RGRID-02, V3-RGRID-03: a run is never spelled out."""
    assert parse_grid(rectilinear(edges), (length,)) == ((4,), None)


@each(("edges", "length", "runs", "rendered"), [
    ([[1, 3], 3], 6, ((1, 3), (3, 1)), [[1, 3], 3]), ([4, 4, 2], 10, ((4, 2), (2, 1)), [[4, 2], 2]),
    ([1, [2, 1], 3], 6, ((1, 1), (2, 1), (3, 1)), [1, 2, 3]), ([1, [1, 2], 2], 0, ((1, 3), (2, 1)), [[1, 3], 2]),
    ([1, [2, 2**61]], 2**62, ((1, 1), (2, 2**61)), [1, [2, 2**61]]), ([5, 4, 9, 9], 6, ((5, 1), (4, 1), (9, 2)),
                                                                       [5, 4, [9, 2]]),
])
def test_rectilinear_grid(edges, length, runs, rendered):
    """V3-RGRID-01, V3-RGRID-02, V3-RGRID-03: chunks beyond the end are kept, and a run is never spelled out."""
    chunk_shape, (first, second) = parse_grid(rectilinear(edges, 7), (length, 10))
    assert chunk_shape == (max(edge for edge, _ in runs), 7) and first.runs == runs and second is None
    assert render_grid(chunk_shape, (first, second)) == rectilinear(rendered, 7)
    assert parse_grid(rectilinear(rendered, 7), (length, 10)) == (chunk_shape, (first, second))


@pytest.mark.parametrize(("grid", "feature"), [
    (rectilinear(4, kind="external"), "chunk grid rectilinear"),
    ({"name": "rectangular", "configuration": {"chunk_shape": [[4, 2]]}}, "chunk grid rectangular"),
    (rectilinear([1, 2], 5, kind="file"), "chunk grid rectilinear"), ("Regular", "chunk grid Regular"),
])
def test_grid_that_is_not_known_is_named(grid, feature):
    """V3-RGRID-01, V3-RGRID-06, V3-EXT-08"""
    with pytest.raises(UnsupportedError) as caught:
        parse_grid(grid, (6,))
    assert caught.value.feature == feature


@each("grid", [
    rectilinear(), rectilinear(4, 4), rectilinear([]), rectilinear([4]), rectilinear([4, 4]), rectilinear([[4, 2]]),
    rectilinear(0), rectilinear([0, 10]), rectilinear([[4, 0], 10]), rectilinear([[4], 10]), rectilinear([[4, 2, 3]]),
    rectilinear([[[4, 2], 3]]), rectilinear("4"), rectilinear([4.0, 10]), rectilinear([True, 10]), rectilinear(None),
    rectilinear([1, 2, 3]), rectilinear([[1, 2], [3, 2]]), rectilinear([3, [4, 2**62]]), rectilinear([20, 2**63 - 10]),
    rectilinear([3, [1, 2**63 - 1]]), rectilinear([-1, 12]), rectilinear([12, [1, -1]]), rectilinear([2**70, 1]),
    rectilinear(["44"]), rectilinear([{"a": 1, "b": 2}]), rectilinear(2**63), rectilinear(4, more=1),
    {"name": "rectilinear", "configuration": {"kind": "inline"}}, {"name": "rectilinear"},
    {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": 4}},
])
def test_rectilinear_grid_that_is_none(grid):
    """V3-RGRID-01, V3-RGRID-02, V3-RGRID-03"""
    with pytest.raises(ValueError):
        parse_grid(grid, (10,))


@each(("value", "expected", "key", "scalar"), [
    ("default", ChunkKeyEncoding.v3("/"), "c/1/23/45", "c"), ("v2", ChunkKeyEncoding.v2("."), "1.23.45", "0"),
    ({"name": "default", "configuration": {"separator": "."}}, ChunkKeyEncoding.v3("."), "c.1.23.45", "c"),
    ({"name": "v2", "configuration": {"separator": "/"}}, ChunkKeyEncoding.v2("/"), "1/23/45", "0"),
    ({"name": "default"}, ChunkKeyEncoding.v3("/"), "c/1/23/45", "c"),
    ({"name": "v2", "configuration": {}}, ChunkKeyEncoding.v2("."), "1.23.45", "0"),
])
def test_key_encoding(value, expected, key, scalar):
    """V3-KEY-01, V3-KEY-02, V3-KEY-05, V3-META-06"""
    encoding = parse_key_encoding(value)
    assert encoding == expected and (encoding.encode((1, 23, 45)), encoding.encode(())) == (key, scalar)
    assert parse_key_encoding(render_key_encoding(encoding)) == encoding


@each("separator", ["", "-", None, "//", 1, ["/"], "\\"])
def test_separator_is_one_of_two(separator):
    """V3-KEY-03"""
    with pytest.raises(ValueError, match="separator"):
        parse_key_encoding({"name": "v2", "configuration": {"separator": separator}})


def test_other_keys_cannot_be_written():
    """D3-KEY-11"""
    for encoding in (ChunkKeyEncoding.zmeta(), ChunkKeyEncoding(prefix="p"), ChunkKeyEncoding(separator="-")):
        with pytest.raises(ValueError, match="cannot record the chunk keys"):
            render_key_encoding(encoding)


@pytest.mark.parametrize("entries", [[1 + i % 2 for i in range(999)], [[1 + i % 2, 3] for i in range(999)], [2] * 999])
def test_no_run_is_looked_at_in_python(entries, monkeypatch):
    """V3-RGRID-02: a document may have millions."""
    asked = []
    monkeypatch.setattr("zcore.formats.zarr_v3.grids.is_entry", asked.append)
    chunk_shape, edges = parse_grid(rectilinear(entries), (5,))
    assert chunk_shape == (2,) and (edges is None) == (entries[0] == entries[1]) and not asked


@pytest.mark.parametrize("wrong", [0, 2**63, True, "7", [7], [7, 0], [7, 1, 1], [7, 2**63]])
@pytest.mark.parametrize("others", [[2], [2, 3]])
def test_the_entry_that_is_none_is_shown(wrong, others):
    """V3-RGRID-02"""
    with pytest.raises(ValueError, match=re.escape(f"pair of integers >= 1, found {json.dumps(wrong)}")):
        parse_grid(rectilinear([*others * 3, wrong, 1.5]), (5,))


def test_equal_chunks_may_end_behind_every_number():
    assert parse_grid(rectilinear([[2**62, 2**62], 2**62]), (2**62,)) == ((2**62,), None)
    with pytest.raises(ValueError, match=re.escape("end before 2**63")):
        parse_grid(rectilinear([[2**62, 2**62], 2**61]), (2**62,))
