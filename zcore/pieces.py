"""Selections of shards by lists of indices, in pieces that lie in one chunk each.

The kernel has the runs of `Points` for this. In Python a task of a plan is an object as a whole, and what is selected
of it are arrays of indices that broadcast together: for each dimension one, along the dimension that leads its group.
"""
from itertools import product

import numpy as np


def pieces(selection, levels):
    """Yield the parts of a selection that lie in one chunk, in the order in which the kernel takes them.

    Parameters
    ----------
    selection : tuple of ndarray
        See `Tasks.task`.
    levels : sequence of tuple of int
        Shape of the chunks of the shard, and of the chunks of these if they are shards, and so on.

    Yields
    ------
    (box, points, places, is_whole)
        Slices around the points in the shard, where these lie in the box, where they lie in the selection, and whether
        they are all elements of the box.

    >>> rows, columns = np.array([[5], [1], [0]]), np.array([[2, 3]])
    >>> for box, _, (i, j), is_whole in pieces((rows, columns), [(4, 4)]):
    ...     print(box, i.tolist(), j.tolist(), is_whole)
    (slice(0, 2, 1), slice(2, 4, 1)) [[1], [2]] [[0, 1]] True
    (slice(5, 6, 1), slice(2, 4, 1)) [[0]] [[0, 1]] True
    """
    ndim = len(selection)
    for runs in product(*[_runs(selection, levels, axis) for axis in range(ndim)]):
        box, points, is_whole = [None] * ndim, [None] * ndim, True
        for axis, (_, indices, run_is_whole) in enumerate(runs):
            is_whole = is_whole and run_is_whole
            for d, vector in indices.items():
                low = int(vector.min())
                box[d] = slice(low, int(vector.max()) + 1, 1)
                points[d] = _along(vector - low, axis, ndim)
        places = tuple([_along(places, axis, ndim) for axis, (places, _, _) in enumerate(runs)])
        yield tuple(box), tuple(points), places, is_whole


def _runs(selection, levels, axis):
    """Return the runs of one axis: (places, indices of each dimension that varies along it, is_whole)."""
    dims = [d for d, indices in enumerate(selection) if _axis_of(indices, d) == axis]
    n = max([selection[d].size for d in dims], default=1)
    vectors = {d: np.broadcast_to(selection[d].reshape(-1), n) for d in dims}
    keys = [vectors[d] // shape[d] for shape in levels for d in dims]
    # The last key counts most; equal ones stay in their order, so that of two values for an element the later one wins.
    order = np.lexsort(keys[::-1]) if keys else np.zeros(1, np.intp)
    is_next = np.zeros(n - 1, bool)
    for key in keys:
        is_next |= np.diff(key[order]) != 0
    return [(places, {d: vector[places] for d, vector in vectors.items()}, _are_all(places, vectors))
            for places in np.split(order, np.flatnonzero(is_next) + 1)]


def _axis_of(indices, d):
    """Along which axis the indices of dimension d vary; its own, if they do not."""
    return next((axis for axis, n in enumerate(indices.shape) if n > 1), d)


def _are_all(places, vectors):
    """Whether points are all elements of the box around them."""
    points = np.array([vector[places] for vector in vectors.values()])
    if not len(points):
        return True
    lengths = [int(n) for n in points.max(axis=1) - points.min(axis=1) + 1]
    volume = 1
    for length in lengths:
        volume *= length
    return volume <= len(places) and len(np.unique(points, axis=1).T) == volume


def _along(vector, axis, ndim):
    return vector.reshape([-1 if d == axis else 1 for d in range(ndim)])
