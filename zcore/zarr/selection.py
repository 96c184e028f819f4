"""One selection of an array, put together again from the pieces in which zarr-python asks for it.

zarr-python cuts a selection along the chunks before it calls a codec pipeline: for each chunk it names the elements of
the chunk and those of the result. zcore's kernel takes whole selections, with all chunks in one plan. So this module
puts the pieces together: to a product of one index per dimension, as slices and orthogonal selections are, or to a list
of points. It checks every piece: pieces that make no such selection are left to zarr-python.
"""
from collections import namedtuple
from math import prod

import numpy as np


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


def request_of(pieces, offset_of, drop_axes=()):
    """Return the `Request` that the pieces are together, or None if they are no such selection.

    Parameters
    ----------
    pieces : list of (coords, chunk_selection, out_selection)
        As zarr-python's indexers yield them; at least one.
    offset_of : callable
        Returns for (dimension, chunk coordinate) the first element of that chunk along the dimension.
    drop_axes : tuple of int
        Dimensions of the chunks that the result does not have.
    """
    return _product(pieces, offset_of, drop_axes) if isinstance(pieces[0][2], tuple) else _points(pieces, offset_of)


def _product(pieces, offset_of, drop_axes):
    """Return the request whose pieces are the product of one part per dimension and chunk coordinate, or None."""
    ndim = len(pieces[0][0])
    dims = range(ndim)
    # Basic selections drop the dimensions of integers without naming them; the others name them.
    kept = [d for d in dims if d not in drop_axes and not isinstance(pieces[0][1][d], (int, np.integer))]
    if any(len(chunk) != ndim or len(out) != len(kept) for _, chunk, out in pieces):
        return None
    out_dim = {d: i for i, d in enumerate(kept)}
    parts = [{} for _ in dims]
    for coords, chunk, out in pieces:
        for d in dims:
            part = chunk[d], out[out_dim[d]] if d in out_dim else None
            known = parts[d].setdefault(coords[d], part)
            if known is not part and not (_same(known[0], part[0]) and _same(known[1], part[1])):
                return None
    if len(pieces) != prod(map(len, parts)) or len({coords for coords, _, _ in pieces}) != len(pieces):
        return None
    ordered = [sorted(part.items()) for part in parts]
    selection = [_joined([(offset_of(d, coord), chunk) for coord, (chunk, _) in ordered[d]]) for d in dims]
    where = [_joined([(0, out) for _, (_, out) in ordered[d]]) for d in kept]
    if any(part is None for part in (*selection, *where)):
        return None
    if not any(isinstance(part, np.ndarray) for part in (*selection, *where)):
        return Request("basic", tuple(selection), tuple(where))
    return Request("orthogonal", tuple(map(_indices, selection)), tuple(map(_indices, where)))


def _joined(parts):
    """Return one index for parts along a dimension, each (offset, index): a number, a slice or an array; else None."""
    first = parts[0][1]
    if isinstance(first, (int, np.integer)):
        return parts[0][0] + int(first) if len(parts) == 1 else None
    if all(isinstance(index, slice) for _, index in parts):
        step = first.step or 1
        start = stop = None
        for offset, index in parts:
            if (index.step or 1) != step or step < 1 or index.start is None or index.stop is None:
                return None
            if start is None:
                start = offset + index.start
            elif offset + index.start != stop:
                break
            # Where the next element of this selection lies, if there is one.
            stop = offset + index.start + -(-(index.stop - index.start) // step) * step
        else:
            return slice(start, stop - step + 1, step)
    return np.concatenate([offset + _indices(index) for offset, index in parts])


def _indices(index):
    """Return the indices that a slice, an integer, or an array of one dimension but for its shape stands for."""
    if isinstance(index, slice):
        return np.arange(index.start, index.stop, index.step or 1)
    index = np.asarray(index)
    return np.flatnonzero(index) if index.dtype == bool else index.reshape(-1)


def _same(one, other):
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return one == other


def _points(pieces, offset_of):
    """Return the request for the points that the pieces name, or None."""
    ndim = len(pieces[0][0])
    columns, where = [[] for _ in range(ndim)], []
    for coords, chunk, out in pieces:
        chunk = chunk if isinstance(chunk, tuple) else (chunk,)
        if len(chunk) != ndim or not all(isinstance(index, np.ndarray) and index.ndim == 1 and index.dtype.kind in "iu"
                                         for index in chunk):
            return None
        for d, index in enumerate(chunk):
            columns[d].append(offset_of(d, coords[d]) + index)
        where.append(_indices(out))
    return Request("coordinate", tuple([np.concatenate(column) for column in columns]), np.concatenate(where))
