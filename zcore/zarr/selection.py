"""One selection of an array, put together again from the pieces in which zarr-python asks for it.

zarr-python cuts a selection along the chunks before it calls a codec pipeline: for each chunk it names the elements of
the chunk and those of the result. zcore's kernel takes whole selections, with all chunks in one plan. So this module
puts the pieces together: to a product of one index per dimension, as slices and orthogonal selections are, or to a list
of points. It checks every piece: pieces that make no such selection are left to zarr-python.
"""
from collections import namedtuple
from sys import maxsize

import numpy as np

from zcore.kernel.select.batches import product_of

_UNLIMITED = maxsize     # no length of an array is greater


# ``result[where] = array.get_<way>_selection(selection)``, where `way` is "basic", "orthogonal" or "coordinate".
class Request(namedtuple("Request", ("way", "selection", "where"))):
    """A selection of an array, and an index into its result, both with an entry for each dimension.

    Of points `where` is one array, of the positions in a result of one dimension.
    """

    __slots__ = ()

    @property
    def stops(self):
        """The first index behind the selected ones, for each dimension."""
        return [part.stop if isinstance(part, slice) else int(part.max()) + 1 if isinstance(part, np.ndarray)
                else part + 1 for part in self.selection]

    @property
    def result_shape(self):
        """The shape of the result, of which all positions are in `where`."""
        where = self.where if isinstance(self.where, tuple) else (self.where,)
        return tuple([part.stop if isinstance(part, slice) else int(part.max()) + 1 for part in where])


def request_of(batch, coords, place_of, drop_axes=()):
    """Return the `Request` that the pieces of a batch are together, or None if they are no such selection.

    Parameters
    ----------
    batch : list of (getter, spec, chunk_selection, out_selection, ...)
        As zarr-python's indexers yield them; at least one.
    coords : ndarray
        The coordinates of the chunks, see `coords_of`.
    place_of : callable
        Returns for (dimension, chunk coordinate) the first element of that chunk along the dimension, and its length.
    drop_axes : tuple of int
        Dimensions of the chunks that the result does not have.
    """
    if isinstance(batch[0][3], tuple):
        return _product(batch, coords, place_of, drop_axes)
    return _points(batch, coords, place_of)


def _product(batch, coords, place_of, drop_axes):
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
    selection = [_joined([(*place_of(d, coord), chunk) for coord, chunk, _ in parts[d]]) for d in range(ndim)]
    where = [_joined([(0, _UNLIMITED, out) for _, _, out in parts[d]]) for d in kept]
    if any(part is None for part in (*selection, *where)):
        return None
    if not any(isinstance(part, np.ndarray) for part in (*selection, *where)):
        return Request("basic", tuple(selection), tuple(where))
    return Request("orthogonal", tuple(map(_indices, selection)), tuple(map(_indices, where)))


def _joined(parts):
    """Return one index for parts along a dimension, each (offset, length, index): a number, a slice or an array.

    None if they are no such index, or if one of them reaches beyond its length.
    """
    offset, length, first = parts[0]
    if isinstance(first, (int, np.integer)):
        return offset + int(first) if len(parts) == 1 and 0 <= first < length else None
    if all([isinstance(index, slice) for _, _, index in parts]):
        step = first.step or 1
        start = stop = None
        is_one = True
        for offset, length, index in parts:
            if (index.step or 1) != step or step < 1 or index.start is None or index.stop is None or (
                    not 0 <= index.start <= index.stop <= length):
                return None
            if start is None:
                start = offset + index.start
            elif offset + index.start != stop:
                is_one = False
            # Where the next element of this selection lies, if there is one.
            stop = offset + index.start + -(-(index.stop - index.start) // step) * step
        if is_one:
            return slice(start, stop - step + 1, step)
    found = []
    for offset, length, index in parts:
        indices = _indices(index)
        if not _lies_within(indices, length):
            return None
        found.append(offset + indices)
    return np.concatenate(found)


def _indices(index):
    """Return the indices that a slice, an integer, or an array of one dimension but for its shape stands for."""
    if isinstance(index, slice):
        return np.arange(index.start, index.stop, index.step or 1)
    index = np.asarray(index)
    return np.flatnonzero(index) if index.dtype == bool else index.reshape(-1)


def _lies_within(indices, length):
    return not indices.size or (indices.min() >= 0 and indices.max() < length)


def _points(batch, coords, place_of):
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
        where.append(_indices(item[3]))
    n_points = [len(index) for index in columns[0]]
    selection = []
    for d, column in enumerate(columns):
        chunks, chunk_of = np.unique(coords[:, d], return_inverse=True)
        places = np.array([place_of(d, coord) for coord in chunks.tolist()], np.int64)[chunk_of]
        origins, lengths = np.repeat(places, n_points, axis=0).T
        indices = np.concatenate(column)
        if not np.all((indices >= 0) & (indices < lengths)):
            return None
        selection.append(origins + indices.astype(np.int64))
    return Request("coordinate", tuple(selection), np.concatenate(where))
