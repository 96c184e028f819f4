"""The normal form of every selection that is no box: a product of groups, and the arrangement of its result.

Each dimension of an array is selected by a slice, by its own list of indices, or by lists that several dimensions
share, index by index. Such dimensions form a group, with a point for each index. The selection is the product of slices
and groups. `zcore.indexing.numpy` and `zcore.indexing.oindex_vindex` make it; `Tasks.select` of the kernel makes tasks
of it:

    a[:, [3, 1], ::2]         slice × 2 points of dimension 1 × slice
    a[[3, 1], :, [0, 9]]      2 points of dimensions 0 and 2 × slice
    a.oindex[[3, 1], [0, 9]]  2 points of dimension 0 × 2 points of dimension 1

The kernel uses the *worked* shape, that of `counts`, with one dimension for each dimension of the array. A group has
its points in its first dimension; its other dimensions have length 1. The result for the caller has the same elements
in other dimensions: `worked` returns a view of it in the worked shape.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from zcore.buffers import MAX_NDIM
from zcore.errors import SelectionError
from zcore.kernel.select.points import checked

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeAlias

    import numpy.typing as npt

    from zcore.indexing.assign import Way

    Slice: TypeAlias = tuple[int, int, int]
    Lengths: TypeAlias = tuple[int | None, tuple[int, ...]]
    Group: TypeAlias = tuple[tuple[int, ...], Sequence[npt.NDArray[Any]] | npt.NDArray[np.bool_], tuple[int, ...]]

DENSE = 16     # A mask stays a mask if at least one in so many elements is true.


class Product:
    """A selection of an array.

    Parameters
    ----------
    shape : tuple of int
        Shape of the array.
    slices : list of (start, step, count) or None
        For each dimension of the array; steps may be negative. None for a dimension of a group.
    groups : list of (dims, arrays, lengths)
        Ascending dimensions, and for each an ndarray of integers that broadcasts to `lengths`. Instead of the arrays,
        there may be a mask from `dense`; then it must be the only group.
    result : list of (d, lengths)
        The dimensions of the result in order: all lengths of the slice or group of dimension d, the first dimension of
        a group. If d is None, all lengths are 1.
    way : str
        How values are assigned to it: see `zcore.indexing.assign`.

    Attributes
    ----------
    starts, steps, counts : tuple of int
        The slices; for dimensions of a group, the values that `Plan` expects.
    groups : tuple of (dims, vectors or mask)
        As for `Points`, without groups that became slices or single points.
    shape : tuple of int
        Shape of the result.
    is_empty : bool
        Whether nothing is selected.
    is_element : bool
        Always False: a single element is selected by a box.

    Raises
    ------
    SelectionError
        An index is out of bounds, or the result has too many dimensions.
    """

    __slots__ = ("starts", "steps", "counts", "groups", "shape", "is_empty", "way", "_merged", "_axes",
                 "_expand")
    starts: tuple[int, ...]
    steps: tuple[int, ...]
    counts: tuple[int, ...]
    groups: tuple[tuple[tuple[int, ...], tuple[npt.NDArray[Any], ...] | npt.NDArray[np.bool_]], ...]
    shape: tuple[int, ...]
    is_empty: bool
    is_element = False
    way: Way

    def __init__(self, shape: tuple[int, ...], slices: Sequence[Slice | None], groups: Sequence[Group],
                 result: Sequence[Lengths], way: Way = "points") -> None:
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
                    # As in NumPy, indices are not checked if the broadcast shape is empty.
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
        self._arrange(result)

    def _arrange(self, result):
        """Prepare the conversion of a result to the worked shape."""
        owners = {d: axis for axis, (d, _) in enumerate(result) if d is not None}
        free = [axis for axis, (d, _) in enumerate(result) if d is None]
        self._merged = tuple([math.prod(lengths) for _, lengths in result])
        self._axes = tuple([owners[d] for d in sorted(owners)] + free)
        self._expand = tuple([slice(None) if d in owners else None for d in range(len(self.counts))] + [0] * len(free))

    def __repr__(self) -> str:
        return f"Product({self.starts}, {self.steps}, {self.counts}, {self.groups})"

    def fits(self, shape: Sequence[int]) -> bool:
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

    def worked(self, array: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], bool]:
        """Return (view, is_view) of an array of the result's shape: the same elements in the worked shape.

        It is a copy if the strides do not allow a view, because several dimensions must become one.
        """
        merged = array
        if array.shape != self._merged:
            merged = array.reshape(self._merged)
        view = merged.transpose(self._axes)[(*self._expand, ...)]
        return view, merged is array or np.may_share_memory(merged, array) or not array.size


def dense(mask: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.bool_], int] | None:
    """Return (copy of a mask, number of selected elements) if a mask takes less memory than indices, else None.

    Indices take at least 8 bytes for each dimension and selected element; the mask takes one byte for every element.
    """
    n = int(np.count_nonzero(mask))  # some versions of NumPy return a number of their own
    if n * DENSE < mask.size or n < 2 or (mask.ndim == 1 and n == mask.size):
        return None
    # Copies all nonzero bytes as 1, because the caller's memory may hold other values for True.
    return np.not_equal(mask.view(np.uint8), 0, order="C"), n


def _broadcast(vector, shape, lengths):
    """Return `vector`, the elements of an array of `shape`, broadcast to `lengths` and flattened."""
    if math.prod(lengths) == len(vector):
        return vector
    # Not np.broadcast_to, which supports only 32 dimensions.
    points = np.empty(lengths, np.int64)
    points[...] = vector.reshape(shape)
    return points.reshape(-1)
