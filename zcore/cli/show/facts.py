"""Facts of a node that need no elements: rows for programs, words for people, and a map of the stored objects."""
from __future__ import annotations

import contextlib
import math
import shutil
from itertools import product
from typing import TYPE_CHECKING

import zcore
from zcore.cli.show.printed import lengths, nbytes_text
from zcore.model.metadata import CodecSpec
from zcore.nodes.info import type_name
from zcore.text.printable import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypeAlias

    from zcore.tools.copy.sources import SourceArray

    Lengths: TypeAlias = int | Sequence[int | Sequence[int]]
    Coords: TypeAlias = tuple[int, ...]
    Sizes: TypeAlias = Mapping[Coords, int]     # the bytes of objects that exist


def node_kind(node: zcore.Array | zcore.Group | zcore.ZcoreError) -> str:
    """Return "array" or "group"; for an error in place of a node its class."""
    return "array" if isinstance(node, zcore.Array) else "group" if isinstance(node, zcore.Group) else type(
        node).__name__


def short(path: str, node: zcore.Array | zcore.Group | zcore.ZcoreError) -> dict[str, Any]:
    """Return the rows for a listing: a dict."""
    if isinstance(node, zcore.ZcoreError):
        return {"path": path, "kind": "error", "error": node_kind(node), "message": str(node)}
    rows: dict[str, Any] = {"path": path, "kind": node_kind(node),
                            "format": getattr(node.store, "file_kind", node.zarr_format)}
    if isinstance(node, zcore.Array):
        source = source_of(node)
        rows |= {"shape": node.shape, "dtype": type_name(node.dtype),
                 "chunks": chunks_of(node) if source is None or source.chunks_of_objects != "auto" else None,
                 "shards": shards_of(node)}
    return rows


def source_of(array: zcore.Array) -> SourceArray | None:
    """Return an array of a file that is no store, as the file has it; None for any other array."""
    return array.store.arrays[array.path] if hasattr(array.store, "file_kind") else None


def chunks_of(array: zcore.Array) -> Sequence[Lengths]:
    """Return the shape of the chunks, as documents of Zarr v3 have it.

    For a dimension along which lengths differ, it has a list: lengths, and pairs of a length and how often it comes.
    """
    view = array._binding.view
    return view.chain.inner_shape if view.chain.shards is not None else _grid_of(view.metadata)


def shards_of(array: zcore.Array) -> Sequence[Lengths] | None:
    """Return the same of the shards; None without any."""
    view = array._binding.view
    return None if view.chain.shards is None else _grid_of(view.metadata)


def _grid_of(metadata):
    if metadata.edges is None:
        return metadata.chunk_shape
    return [chunk if unequal is None else [length if n == 1 else [length, n] for length, n in unequal.runs]
            for chunk, unequal in zip(metadata.chunk_shape, metadata.edges, strict=True)]


def stored_sizes(array: zcore.Array) -> dict[Coords, int]:
    """Return the bytes of each object of an array that exists, a dict by the coordinates of its chunk or shard.

    Objects outside of the grid are left out. Costs a listing.

    Raises : StoreError, if one is unreachable, or the store has no listing.
    """
    from zcore.stores.base import outcomes

    binding = array._binding
    store, found = binding.store, list(binding.stored_chunks())
    sizes = {}
    for (_, coords), size in zip(found, outcomes(store, lambda one: store.getsize(one[0]), found), strict=True):
        if isinstance(size, zcore.ZcoreError):
            raise size
        sizes[coords] = size or 0
    return sizes


def full(node: zcore.Array | zcore.Group, sizes: Sizes | None = None) -> dict[str, Any]:
    """Return all rows of a node: a dict.

    `sizes` are those of `stored_sizes`, which is called if they are missing. If it fails, all rows that need them are
    None. As for `zcore.Array.nbytes_stored`, the document counts as stored.
    """
    rows = short(node.path, node) | {"store": str(node.store.uri or node.store.label)}
    if isinstance(node, zcore.Group):
        members = [node_kind(member) for _, member in node.walk()]
        return rows | {"arrays": members.count("array"), "groups": members.count("group"),
                       "errors": len(members) - members.count("array") - members.count("group"),
                       "attributes": node.attrs.asdict()}
    metadata = node.metadata
    stored = None
    with contextlib.suppress(zcore.StoreError):
        sizes = stored_sizes(node) if sizes is None else sizes
        stored = node.nbytes_stored()
    has_chunks = rows["chunks"] is not None
    source = source_of(node)
    codecs = metadata.codecs if source is None else source.codecs or (
        (CodecSpec("deflate", {}),) if source.nbytes_stored is not None else ())
    return rows | {
        "dimension_names": metadata.dimension_names,
        "fill_value": metadata.fill_value,
        "order": node.order,
        "codecs": [{"name": spec.name, "configuration": spec.configuration} for spec in codecs],
        "nbytes": metadata.nbytes,
        "nbytes_stored": stored,
        "ratio": metadata.nbytes / stored if sizes and stored else None,
        "object_grid": metadata.grid_shape if has_chunks else None,
        "objects": metadata.n_chunks if has_chunks else None,
        "objects_stored": None if sizes is None or not has_chunks else len(sizes),
        "attributes": node.attrs.asdict(),
    }


BARS = "▁▂▃▄▅▆▇█"
ABSENT = "·"
MAX_PLANES = 8


def chunk_map(grid: tuple[int, ...], sizes: Sizes, width: int | None = None) -> list[str]:
    """Return the lines of a map: one sign for each object; planes of the last two dimensions are one below the other.

    `grid` has the number of objects per dimension, `sizes` is a dict of the bytes of those that exist, by their
    coordinates. Lines have at most `width` signs, by default as many as the terminal.

    >>> print("\\n".join(chunk_map((2, 3), {(0, 0): 10, (0, 1): 5, (1, 2): 1}, width=80)))
    █▄·
    ··▁
    · absent, ▁ from 1 byte, █ up to 10 bytes
    """
    if math.prod(grid) == 0:
        return ["no chunks"]
    width = width or shutil.get_terminal_size().columns
    *lead, n_rows, n_columns = (1, 1, *grid)[-max(2, len(grid)):]
    step = max(1, -(-n_columns // width), -(-n_rows // width))
    largest, smallest = max(sizes.values(), default=0), min(sizes.values(), default=0)
    planes = {}
    for coords, nbytes in sizes.items():
        *plane, row, column = (0, 0, *coords)[-max(2, len(coords)):]
        cell = planes.setdefault(tuple(plane), {})
        square = row // step, column // step
        n, total = cell.get(square, (0, 0))
        cell[square] = n + 1, total + nbytes
    lines = []
    for i, plane in enumerate(product(*map(range, lead))):
        if i == MAX_PLANES:
            lines.append(f"… and {plural(math.prod(lead) - MAX_PLANES, 'plane')} more")
            break
        if lead:
            lines.append(f"[{', '.join(map(str, plane))}]")
        cell = planes.get(plane, {})
        for row in range(-(-n_rows // step)):
            lines.append("".join(_sign(cell.get((row, column)), largest) for column in range(-(-n_columns // step))))
    lines.append(f"{ABSENT} absent" + (f", {_sign((1, smallest), largest)} from {nbytes_text(smallest)}, "
                                       f"{BARS[-1]} up to {nbytes_text(largest)}" if largest else ""))
    if step > 1:
        lines[-1] += f"; each sign stands for {lengths((step, step))} objects, and shows the mean of those present"
    return lines


def _sign(cell, largest):
    if cell is None:
        return ABSENT
    n, total = cell
    return BARS[max(0, math.ceil(total / n / max(1, largest) * len(BARS)) - 1)]
