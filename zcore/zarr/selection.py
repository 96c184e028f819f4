"""Rebuilds a whole selection from the pieces, one for each chunk, that zarr-python passes to a codec pipeline.

zarr-python cuts a selection along the chunks before it calls a codec pipeline: for each chunk it names the elements of
the chunk and those of the result. zcore's kernel takes whole selections, with all chunks in one plan. So this module
puts the pieces together: to a product of one index per dimension, as slices and orthogonal selections are, or to a list
of points. It checks every piece: pieces that make no such selection are left to zarr-python.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from zcore.kernel.select.batches import indices_of, joined, product_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import numpy.typing as npt

_LIMIT = 2**62      # of positions: sums of two fit into 64 bits


# ``result[where] = array.get_<way>_selection(selection)``, where `way` is "basic", "orthogonal" or "coordinate".
class Request(NamedTuple):
    """A selection of an array, and an index into its result, both with an entry for each dimension.

    For points, `where` is one array: positions in a result of one dimension.
    """

    way: Literal["basic", "orthogonal", "coordinate"]
    selection: tuple[int | slice | npt.NDArray[Any], ...]
    where: tuple[slice | npt.NDArray[Any], ...] | npt.NDArray[Any]

    @property
    def stops(self) -> list[int]:
        """The first index behind the selected ones, for each dimension."""
        return [part.stop if isinstance(part, slice) else int(part.max()) + 1 if isinstance(part, np.ndarray)
                else part + 1 for part in self.selection]

    @property
    def result_shape(self) -> tuple[int, ...]:
        """The shape of the result; `where` has all its positions."""
        where = self.where if isinstance(self.where, tuple) else (self.where,)
        return tuple([part.stop if isinstance(part, slice) else int(part.max()) + 1 for part in where])


def request_of(batch: list[tuple[Any, ...]], coords: npt.NDArray[np.int64],
               grid: tuple[int | Callable[[int], tuple[int, int]], ...],
               drop_axes: tuple[int, ...] = ()) -> Request | None:
    """Return the `Request` that the pieces of a batch are together, or None if they are no such selection.

    Parameters
    ----------
    batch : list of (getter, spec, chunk_selection, out_selection, ...)
        As zarr-python's indexers yield them; at least one.
    coords : ndarray
        The coordinates of the chunks, see `coords_of`.
    grid : tuple
        For each dimension the length of the chunks, or a function that returns for a coordinate the first element of
        the chunk and its length.
    drop_axes : tuple of int
        Dimensions of the chunks that the result does not have.
    """
    if isinstance(batch[0][3], tuple):
        return _product(batch, coords, grid, drop_axes)
    return _points(batch, coords, grid)


def _product(batch, coords, grid, drop_axes):
    """Return the request whose pieces are the product of one part per dimension and chunk coordinate, or None."""
    first = batch[0][2]
    ndim = coords.shape[1]
    if not isinstance(first, tuple) or len(first) != ndim:
        return None
    # Basic selections drop the dimensions of integers without naming them; the others name them.
    kept = [d for d in range(ndim) if d not in drop_axes and not isinstance(first[d], (int, np.integer))]
    parts = product_of(batch, coords, tuple([kept.index(d) if d in kept else -1 for d in range(ndim)]))
    if parts is None:
        return None
    selection = tuple([joined(parts[d], 1, grid[d]) for d in range(ndim)])
    where = tuple([joined(parts[d], 2, None) for d in kept])
    kinds = set(map(type, selection + where))
    if type(None) in kinds:
        return None
    if np.ndarray not in kinds:
        return Request("basic", selection, where)
    return Request("orthogonal", tuple(map(indices_of, selection)), tuple(map(indices_of, where)))


def _points(batch, coords, grid):
    """Return the request for the points that the pieces name, or None."""
    n, ndim = coords.shape
    columns, where = [[] for _ in range(ndim)], []
    for item in batch:
        chunk = item[2]
        chunk = chunk if isinstance(chunk, tuple) else (chunk,)
        if len(chunk) != ndim or not all([
                isinstance(index, np.ndarray) and index.ndim == 1 and index.dtype.kind in "iu"
                and index.shape == chunk[0].shape for index in chunk]):
            return None
        for column, index in zip(columns, chunk, strict=True):
            column.append(index)
        where.append(indices_of(item[3]))
    n_points = [len(index) for index in columns[0]]
    selection = []
    for d, column in enumerate(columns):
        if isinstance(grid[d], int):
            if int(coords[:, d].max()) >= _LIMIT // grid[d]:
                return None
            places = np.stack((coords[:, d] * grid[d], np.full(n, grid[d])), axis=1)
        else:
            places = np.array([grid[d](coord) for coord in coords[:, d].tolist()])
        origins, lengths = np.repeat(places, n_points, axis=0).T
        indices = np.concatenate(column)
        if not np.all((indices >= 0) & (indices < lengths)):
            return None
        selection.append(origins + indices.astype(np.int64))
    return Request("coordinate", tuple(selection), np.concatenate(where))
