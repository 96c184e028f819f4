"""Positions and keys of chunks: `chunk_grid` and `chunk_key_encoding` of Zarr v3 documents.

Zarr v3, "Regular grid", "Default chunk key encoding", "V2 chunk key encoding"; zarr-extensions, "rectilinear". A
rectilinear grid whose chunks have one shape is read as a regular grid, and written as such from then on.
"""
from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from zcore.errors import UnsupportedError
from zcore.formats.json_documents import shown
from zcore.formats.zarr_v3.extensions import check_members, parse_extension
from zcore.kernel.select.grid import Edges, equal_run, is_entry
from zcore.model.chunk_keys import ChunkKeyEncoding

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_SEPARATORS = {"default": "/", "v2": "."}


def parse_grid(value: object, shape: Sequence[int]) -> tuple[tuple[int, ...], tuple[Edges | None, ...] | None]:
    """Return `(chunk_shape, edges)` of `ArrayMetadata` for the `chunk_grid` of an array of `shape`.

    Some writers store a chunk length of 0 for a dimension of length 0. It is read as 1.

    Raises : ValueError, if a rule is broken; UnsupportedError, if the grid is not known.
    """
    name, configuration = parse_extension(value)
    if name == "rectilinear":
        check_members(name, configuration, ("kind", "chunk_shapes"))
        if configuration["kind"] != "inline":
            raise UnsupportedError(f"a rectilinear chunk grid of the kind {shown(configuration['kind'])}",
                                   feature="chunk grid rectilinear")
        return _parse_rectilinear(configuration["chunk_shapes"], shape)
    if name == "rectangular":
        raise UnsupportedError("a chunk grid 'rectangular', as a draft had it; its later name is 'rectilinear'",
                               feature="chunk grid rectangular")
    if name != "regular":
        raise UnsupportedError(f"zcore does not know the chunk grid {name!r:.60}", feature=f"chunk grid {name[:60]}")
    check_members(name, configuration, ("chunk_shape",))
    lengths = configuration["chunk_shape"]
    if type(lengths) is not list or not all([type(chunk) is int for chunk in lengths]):
        raise ValueError(f"expected a list of integers as 'chunk_shape', found {shown(lengths)}")
    if len(lengths) != len(shape):
        raise ValueError(f"expected one length in 'chunk_shape' for each dimension of {shape}, found {len(lengths)}")
    return tuple([1 if chunk == length == 0 else chunk for chunk, length in zip(lengths, shape, strict=True)]), None


def render_grid(chunk_shape: Sequence[int], edges: Sequence[Edges | None] | None = None) -> dict[str, Any]:
    """Return the `chunk_grid` of `ArrayMetadata`."""
    if edges is None:
        return {"name": "regular", "configuration": {"chunk_shape": list(chunk_shape)}}
    return {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [
        chunk if unequal is None else [edge if count == 1 else [edge, count] for edge, count in unequal.runs]
        for chunk, unequal in zip(chunk_shape, edges, strict=True)]}}


def _parse_rectilinear(dimensions, shape):
    if type(dimensions) is not list or len(dimensions) != len(shape):
        raise ValueError(f"expected {len(shape)} lists in 'chunk_shapes', one for each dimension, found "
                         f"{shown(dimensions)}")
    chunk_shape, unequal = [], []
    for entries, length in zip(dimensions, shape, strict=True):
        chunk, edges = _parse_dimension(entries, length)
        chunk_shape.append(chunk)
        unequal.append(edges)
    return tuple(chunk_shape), tuple(unequal) if any(unequal) else None


def _parse_dimension(entries, length):
    """Return the length of the chunks of a dimension, the longest if they differ, and None or their `Edges`."""
    if type(entries) is int and is_entry(entries):
        return entries, None
    if type(entries) is not list or not entries:
        raise ValueError(f"expected an integer >= 1, or a list of lengths and [length, count] pairs, found "
                         f"{shown(entries)}")
    try:
        # There may be millions, so there is no loop in Python, and counts are not expanded.
        run = equal_run(entries)
        edges = None if run else Edges(entries)
    except (ValueError, TypeError):
        for entry in entries:
            if not is_entry(entry):
                raise ValueError(f"expected a length or a [length, count] pair of integers >= 1, found "
                                 f"{shown(entry)}") from None
        raise
    if (run[0] * run[1] if run else edges.total) < length:
        raise ValueError(f"expected chunks that cover the {length} elements of a dimension, found {shown(entries)}")
    return (run[0], None) if run else (edges.longest, edges)


def parse_key_encoding(value: object) -> ChunkKeyEncoding:
    """Return the `ChunkKeyEncoding` for a `chunk_key_encoding`.

    Raises : ValueError, if a rule is broken; UnsupportedError, if it is not known.
    """
    name, configuration = parse_extension(value)
    if name not in _SEPARATORS:
        raise UnsupportedError(f"zcore does not know the chunk key encoding {name!r:.60}",
                               feature=f"chunk key encoding {name[:60]}")
    check_members(name, configuration, (), ("separator",))
    separator = configuration.get("separator", _SEPARATORS[name])
    if separator not in ("/", "."):
        raise ValueError(f"{name!r}: expected '/' or '.' as 'separator', found {shown(separator)}")
    return _encoding(name, separator)


@lru_cache
def _encoding(name, separator):
    return ChunkKeyEncoding.v3(separator) if name == "default" else ChunkKeyEncoding.v2(separator)


def render_key_encoding(chunk_keys: ChunkKeyEncoding) -> dict[str, Any]:
    """Return the `chunk_key_encoding` of a `ChunkKeyEncoding`.

    Raises : ValueError, if Zarr v3 cannot express it: its only prefix is ``c``, and it has no suffix.
    """
    name, separator = _name(chunk_keys)
    return {"name": name, "configuration": {"separator": separator}}


_name = lru_cache(ChunkKeyEncoding.v3_name)
