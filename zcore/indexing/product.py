"""The normal form of every selection that is no box: a product of groups, and how its result is arranged.

Each dimension of an array is selected by a slice, by a list of indices of its own, or by lists that several dimensions
share, index by index: a group, with a point for each index. What is selected is the product of slices and groups, so

    a[:, [3, 1], ::2]         slice × 2 points of dimension 1 × slice
    a[[3, 1], :, [0, 9]]      2 points of dimensions 0 and 2 × slice
    a.oindex[[3, 1], [0, 9]]  2 points of dimension 0 × 2 points of dimension 1

In memory the elements are met in the *worked* shape, that of `counts`: a dimension for each of the array. A group has
its points in its first dimension, in the others it has the length 1. The result that the caller sees has the same
elements, with other dimensions: `worked` gives a view of it in that shape.
"""
import math

import numpy as np

from zcore.errors import SelectionError
from zcore.kernel.select.points import checked

MAX_NDIM = 64  # of numpy.ndarray
DENSE = 16     # A mask that is true for one of so many elements stays one.


class Product:
    """A selection of an array.

    Parameters
    ----------
    shape : tuple of int
        Of the array.
    slices : list of (start, step, count) or None
        For each dimension of the array, steps may be negative; None for a dimension of a group.
    groups : list of (dims, arrays, lengths)
        Ascending dimensions, and for each an ndarray of integers that broadcasts to `lengths`. Or a mask in place of
        the arrays, made by `dense`; then it is the only group.
    result : list of (d, lengths)
        The dimensions of the result, as they follow each other: lengths of all that belong to the slice or group of
        dimension d, the first one of a group. None in place of d: all lengths are 1.
    way : str
        How values are assigned to it: see `zcore.indexing.assign`.

    Attributes
    ----------
    starts, steps, counts : tuple of int
        The slices; of a group, which is none, what `Plan` wants there.
    groups : tuple of (dims, vectors or mask)
        As `Points` takes them; what turned out to be slices, and single points, are none any more.
    shape : tuple of int
        Of the result.
    is_empty : bool
        Nothing is selected.
    is_element : bool
        Always False: one element alone is selected by a box.

    Raises
    ------
    SelectionError
        An index out of bounds, or a result of too many dimensions.
    """

    __slots__ = ("starts", "steps", "counts", "groups", "shape", "is_empty", "is_element", "way", "_merged",
                 "_axes", "_expand")

    def __init__(self, shape, slices, groups, result, way="points"):
        self.way = way
        self.shape = tuple([length for _, lengths in result for length in lengths])
        if len(self.shape) > MAX_NDIM:
            raise SelectionError(f"number of dimensions must be at most {MAX_NDIM}, indexing result would have "
                                 f"{len(self.shape)}")
        slices = list(slices)
        kept = []
        self.is_empty = 0 in self.shape
        for dims, arrays, lengths in groups:
            n = math.prod(lengths)
            if isinstance(arrays, np.ndarray):
                for d in dims:
                    slices[d] = (0, 1, n if d == dims[0] else 1)
                kept.append((tuple(dims), arrays))
                continue
            vectors = []
            for d, array in zip(dims, arrays, strict=True):
                if n == 0:
                    # As in NumPy, indices that are broadcast away are not looked at.
                    slices[d] = (0, 1, 0)
                    continue
                vector, step = checked(array, shape[d], d)
                if n == 1 or (len(dims) == 1 and step is not None and len(vector) == n):
                    slices[d] = (int(vector[0]), step or 1, n if d == dims[0] else 1)
                else:
                    vectors.append(_broadcast(vector, array.shape, lengths))
                    slices[d] = (0, 1, n if d == dims[0] else 1)
            if vectors:
                kept.append((tuple(dims), tuple(vectors)))
        self.groups = tuple(kept)
        self.starts, self.steps, self.counts = (tuple([part[i] for part in slices]) for i in range(3))
        if self.is_empty:
            self.counts = (0,) * len(shape)
        self.is_element = False
        self._arrange(result)

    def _arrange(self, result):
        """Note how a result becomes the worked shape."""
        owners = {d: axis for axis, (d, _) in enumerate(result) if d is not None}
        free = [axis for axis, (d, _) in enumerate(result) if d is None]
        self._merged = tuple([math.prod(lengths) for _, lengths in result])
        self._axes = tuple([owners[d] for d in sorted(owners)] + free)
        self._expand = tuple([slice(None) if d in owners else None for d in range(len(self.counts))] + [0] * len(free))

    def __repr__(self):
        return f"Product({self.starts}, {self.steps}, {self.counts}, {self.groups})"

    def fits(self, shape):
        """Whether all elements lie in an array of `shape`."""
        grouped = {d for dims, _ in self.groups for d in dims}
        for d, length in enumerate(shape):
            start, step, count = self.starts[d], self.steps[d], self.counts[d]
            if d not in grouped and count and not (0 <= start < length and 0 <= start + step * (count - 1) < length):
                return False
        for dims, selected in self.groups:
            vectors = selected.nonzero() if isinstance(selected, np.ndarray) else selected
            if any([int(vector.max()) >= shape[d] for d, vector in zip(dims, vectors, strict=True)]):
                return False
        return True

    def worked(self, array):
        """Return (view, is_view) of an array of the result's shape: the same elements in the worked shape.

        A copy where several dimensions cannot be one: strides that no view of that shape has.
        """
        merged = array
        if array.shape != self._merged:
            merged = array.reshape(self._merged)
        view = merged.transpose(self._axes)[(*self._expand, ...)]
        return view, merged is array or np.may_share_memory(merged, array) or not array.size


def dense(mask):
    """Return a copy of a mask that is better kept as one than as indices, and how many elements it selects, else None.

    Indices take 8 bytes and more for each dimension and element that is selected, the mask a byte for any element.
    """
    n = np.count_nonzero(mask)
    if n * DENSE < mask.size or n < 2 or (mask.ndim == 1 and n == mask.size):
        return None
    # Of booleans only that are 0 or 1, whatever they are in the caller's memory.
    return np.not_equal(mask.view(np.uint8), 0, order="C"), n


def _broadcast(vector, shape, lengths):
    """Return `vector`, the elements of an array of `shape`, as one of all `lengths`."""
    if math.prod(lengths) == len(vector):
        return vector
    # Not np.broadcast_to, which stops at 32 dimensions.
    points = np.empty(lengths, np.int64)
    points[...] = vector.reshape(shape)
    return points.reshape(-1)
