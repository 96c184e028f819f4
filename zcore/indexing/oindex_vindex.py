"""zarr-python's other kinds of selection: orthogonal, by coordinates, by a mask, and by blocks.

zarr-python 3, "Advanced indexing". Each becomes a `Product` or slices, like NumPy's indexing; `Tasks.select`
(`zcore/kernel/select/tasks.pyx`) makes the tasks of a plan from it. A negative step and an empty list, which
zarr-python refuses, are accepted.
"""
from __future__ import annotations

from operator import index as as_integer
from typing import TYPE_CHECKING

import numpy as np

from zcore.errors import SelectionError
from zcore.indexing.numpy import has_ellipsis, joined, normal_index
from zcore.indexing.product import Product, dense
from zcore.kernel.select.box import in_bounds, slice_in

if TYPE_CHECKING:
    from typing import Any

    from zcore.indexing.product import Slice
    from zcore.model.metadata import ArrayMetadata


def orthogonal(selection: Any, shape: tuple[int, ...]) -> Product:
    """Return the `Product` of ``a.oindex[selection]``: lists select independently of each other.

    Raises
    ------
    SelectionError
        An index is out of bounds; there are too many; or one is no integer, slice, list or mask of one dimension.
    ValueError
        A slice has step 0.

    >>> orthogonal(([1, 0], slice(None), [True, False, True]), (2, 5, 3)).shape
    (2, 5, 2)
    """
    slices, groups, result = [], [], []
    for d, index in enumerate(_completed(selection, shape)):
        length = shape[d]
        if isinstance(index, int):
            slices.append((in_bounds(index, d, length), 1, 1))
        elif isinstance(index, slice):
            slices.append(slice_in(index, length))
            result.append((d, slices[d][2:]))
        else:
            if index.ndim != 1:
                raise SelectionError(f"lists and masks of an orthogonal selection have one dimension, that of axis {d} "
                                     f"has {index.ndim}", dimension=d)
            if index.dtype == bool:
                if len(index) != length:
                    raise SelectionError(f"mask of axis {d} has {len(index)} elements, expected {length}", dimension=d)
                index = index.nonzero()[0]
            slices.append(None)
            groups.append(((d,), (index,), index.shape))
            result.append((d, index.shape))
    return Product(shape, slices, groups, result)


def coordinates(selection: Any, shape: tuple[int, ...]) -> Product:
    """Return the `Product` of points: an index, a list or an array for each dimension, broadcast to one shape.

    Raises
    ------
    SelectionError
        The number of indices is wrong, one is out of bounds, or the shapes cannot be broadcast.
    """
    given = selection if isinstance(selection, tuple) else (selection,)
    indices: list[Any] = [normal_index(index) for index in given]
    if len(indices) != len(shape) or not all([
            isinstance(index, int) or (isinstance(index, np.ndarray) and index.dtype != bool) for index in indices]):
        raise SelectionError(f"expected integers or lists of integers, one for each of the dimensions of {shape}")
    if not shape:
        return Product(shape, [], [], [])
    arrays = [((d,), (index if isinstance(index, np.ndarray) else np.array([in_bounds(index, d, shape[d])]),))
              for d, index in enumerate(indices)]
    slices: list[Slice | None] = [None] * len(shape)
    groups, result = joined(arrays, slices, shape)
    return Product(shape, slices, groups, result)


def masked(mask: Any, shape: tuple[int, ...]) -> Product:
    """Return the `Product` of the elements where a mask of the array's shape is true, in C order.

    Raises : SelectionError, if it is not such a mask.
    """
    if isinstance(mask, tuple) and len(mask) == 1:
        mask = mask[0]
    mask = np.asarray(mask)
    if mask.dtype != bool or mask.shape != shape:
        raise SelectionError(f"expected a mask of shape {shape}, found an array of shape {mask.shape} and type "
                             f"{mask.dtype}")
    if not shape:
        return Product(shape, [], [], [(None, (int(mask),))])
    kept = dense(mask)
    selected = mask.nonzero() if kept is None else kept[0]
    lengths = selected[0].shape if kept is None else kept[1:]
    return Product(shape, [None] * len(shape), [(tuple(range(len(shape))), selected, lengths)], [(0, lengths)])


def points(selection: Any, shape: tuple[int, ...]) -> Product:
    """Return the `Product` of ``a.vindex[selection]``: coordinates, or a mask."""
    alone = selection[0] if isinstance(selection, tuple) and len(selection) == 1 else selection
    if not isinstance(alone, (tuple, int, slice)) and np.asarray(alone).dtype == bool:
        return masked(alone, shape)
    return coordinates(selection, shape)


def blocks(selection: Any, metadata: ArrayMetadata) -> tuple[slice, ...]:
    """Return the slices of ``a.blocks[selection]``, whose indices count stored objects: chunks, or shards.

    Raises
    ------
    SelectionError
        An index is out of bounds; there are too many; or one is no integer or slice of step 1.
    """
    slices = []
    grid = metadata.grid_shape
    for d, index in enumerate(_completed(selection, metadata.shape)):
        if isinstance(index, int):
            first = in_bounds(index, d, grid[d])
            last = first + 1
        elif isinstance(index, slice) and index.step in (None, 1):
            first, last = [None if i is None else as_integer(i) for i in (index.start, index.stop)]
            first, last = [i + grid[d] if i is not None and i < 0 else i for i in (first, last)]
            if first is not None and not 0 <= first < max(grid[d], 1):
                raise SelectionError(f"block {index.start} is out of bounds for axis {d} with {grid[d]}", dimension=d)
        else:
            raise SelectionError(f"blocks are selected by integers and slices of step 1, not by {index!r}", dimension=d)
        first, last = (None if i is None or i >= grid[d] else _origin(metadata, d, max(i, 0)) for i in (first, last))
        slices.append(slice(first, last))
    return tuple(slices)


def _origin(metadata, d, chunk):
    edges = None if metadata.edges is None else metadata.edges[d]
    return chunk * metadata.chunk_shape[d] if edges is None else edges.place(chunk)[0]


def _completed(selection: Any, shape: tuple[int, ...]) -> list[Any]:
    """Return a selection as one index for each dimension, without ellipsis and new axes."""
    given = list(selection) if isinstance(selection, tuple) else [selection]
    indices = [normal_index(index) for index in given]
    if any([index is None for index in indices]):
        raise SelectionError("this kind of selection has no new axes")
    n_given = sum([index is not ... for index in indices])
    if not has_ellipsis(indices, n_given, shape):
        indices.append(...)
    i = [index is ... for index in indices].index(True)
    return indices[:i] + [slice(None)] * (len(shape) - n_given) + indices[i + 1:]
