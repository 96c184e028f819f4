"""NumPy's indexing: converts every selection in brackets to a `Product`.

NumPy user guide, "Indexing on ndarrays". Lists, arrays and masks are *advanced* indices and are broadcast against each
other. If the advanced indices are adjacent, the dimensions of their broadcast shape take their place in the result;
otherwise they come first. With one advanced index, integers are advanced as well. A mask means the indices of its
nonzero elements; True or False alone means a dimension of length 1 or 0.

Lists that do not share a dimension of the broadcast shape are independent of each other: ``a[rows[:, None], columns]``
(or `numpy.ix_`) is the product of two lists, not one list of points.
"""
from __future__ import annotations

import math
from operator import index as as_integer
from typing import TYPE_CHECKING

import numpy as np

from zcore.errors import HugeIndexError, SelectionError
from zcore.indexing.product import Product, dense
from zcore.kernel.select.box import Box, basic, in_bounds, slice_in

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import EllipsisType
    from typing import Any, TypeAlias

    import numpy.typing as npt

    from zcore.indexing.product import Group, Lengths, Slice

    NormalIndex: TypeAlias = slice | int | EllipsisType | npt.NDArray[Any] | None

VALID = ("only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are "
         "valid indices")
_LOWEST, _HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def indexed(selection: Any, shape: tuple[int, ...]) -> Product | Box:
    """Return the `Product` of ``a[selection]`` for an array of `shape`; a `Box` if the arrays select one.

    Raises
    ------
    SelectionError
        Every case that is an IndexError in NumPy.
    ValueError, TypeError
        As in NumPy: a slice of step 0, or not of integers; a ragged list.

    >>> indexed(([4, 0], None, slice(None)), (5, 3)).shape
    (2, 1, 3)
    """
    indices = [normal_index(index) for index in (selection if isinstance(selection, tuple) else (selection,))]
    if (box := basic(tuple(indices), shape)) is not None:
        return box
    _complete(indices, shape)
    slices, arrays, result = [], [], []
    place = None
    are_neighbours, was_advanced = True, False
    has_lists = any([isinstance(index, np.ndarray) for index in indices])
    groups = []
    for index in indices:
        d = len(slices)
        is_advanced = isinstance(index, np.ndarray) or (has_lists and isinstance(index, int))
        if is_advanced:
            are_neighbours = are_neighbours and (place is None or was_advanced)
            place = len(result) if place is None else place
        was_advanced = is_advanced
        if index is None:
            result.append((None, (1,)))
        elif index is ...:
            for length in shape[d:len(shape) - _n_dims_behind(indices, index)]:
                result.append((len(slices), (length,)))
                slices.append((0, 1, length))
        elif isinstance(index, slice):
            slices.append(slice_in(index, shape[d]))
            result.append((d, slices[d][2:]))
        elif isinstance(index, int):
            slices.append((in_bounds(index, d, shape[d]), 1, 1))
        elif index.dtype == bool and index.ndim and _is_alone(index, indices) and (kept := dense(index)) is not None:
            mask, n = kept
            groups.append((tuple(range(d, d + index.ndim)), mask, (n,)))
            result.append((d, (n,)))
            slices += [None] * index.ndim
        elif index.dtype == bool:
            found = index.nonzero() if index.ndim else (np.zeros(int(index), np.int64),)
            arrays.append((tuple(range(d, d + index.ndim)), found))
            slices += [None] * index.ndim
        else:
            arrays.append(((d,), (index,)))
            slices.append(None)
    way = "points" if arrays or groups else "view"
    if way == "points" and len(indices) == 1 and indices[0].dtype == bool and indices[0].shape == shape:
        way = "mask"
    if arrays:
        groups, broadcast = joined(arrays, slices, shape)
        place = place if are_neighbours else 0
        result[place:place] = broadcast
    return Product(shape, slices, groups, result, way)


def normal_index(index: Any) -> NormalIndex:
    """Return an index as None, Ellipsis, slice, int, or ndarray of bool or int64.

    Raises : SelectionError, if it is invalid; ValueError, for a ragged list.
    """
    if index is None or index is ... or isinstance(index, slice) or type(index) is int:
        return index
    if not isinstance(index, (bool, np.bool_, np.ndarray)):
        try:
            return as_integer(index)
        except Exception:
            # As in NumPy, anything that is no integer may still become an array.
            pass
    array = np.asarray(index)
    kind = array.dtype.kind
    if array.size == 0 and array.ndim and not isinstance(index, np.ndarray) and kind == "f":
        # An empty list has no type of its own.
        return array.astype(np.int64)
    if kind == "b":
        return array
    if kind not in "iu":
        raise SelectionError("arrays used as indices must be of integer (or boolean) type"
                             if isinstance(index, np.ndarray) else f"{VALID}, found {type(index).__name__}")
    if not array.ndim:
        return int(array)
    if array.size and not np.can_cast(array.dtype, np.int64):
        # A cast would turn the largest numbers into negative ones, which count from the end.
        for number in (int(array.min()), int(array.max())):
            if not _LOWEST <= number <= _HIGHEST:
                raise HugeIndexError(f"index {number} is out of bounds for any array")
    return array.astype(np.int64, copy=False)


def _is_alone(mask, indices):
    """Return whether no other index is advanced."""
    return not any([isinstance(index, (int, np.ndarray)) and index is not mask for index in indices])


def _n_dims(index):
    """Return the number of the array's dimensions that an index uses; 0 for an ellipsis, which uses the rest."""
    if index is None or index is ...:
        return 0
    return index.ndim if isinstance(index, np.ndarray) and index.dtype == bool else 1


def _n_dims_behind(indices, ellipsis):
    return sum(map(_n_dims, indices[[index is ellipsis for index in indices].index(True):]))


def has_ellipsis(indices: Sequence[NormalIndex], n_given: int, shape: tuple[int, ...]) -> bool:
    """Return whether one of several indices, which use `n_given` dimensions, is an ellipsis.

    Raises : SelectionError, if several are, or there are too many indices.
    """
    n_ellipses = sum([index is ... for index in indices])
    if n_ellipses > 1:
        raise SelectionError("an index can only have a single ellipsis ('...')")
    if n_given > len(shape):
        raise SelectionError(f"too many indices for array: array is {len(shape)}-dimensional, but {n_given} were "
                             "indexed", dimension=len(shape))
    return n_ellipses == 1


def _complete(indices, shape):
    """Add a missing ellipsis, and make all checks that do not need the numbers in arrays."""
    n_given = sum(map(_n_dims, indices))
    if not has_ellipsis(indices, n_given, shape) and n_given < len(shape):
        indices.append(Ellipsis)
    d = 0
    for index in indices:
        if isinstance(index, np.ndarray) and index.dtype == bool:
            for i, length in enumerate(index.shape):
                # NumPy does not check a mask's dimension of length 0.
                if length and length != shape[d + i]:
                    raise SelectionError(
                        f"boolean index did not match indexed array along axis {d + i}; size of axis is "
                        f"{shape[d + i]} but size of corresponding boolean axis is {length}", dimension=d + i)
        d += len(shape) - n_given if index is ... else _n_dims(index)


def joined(arrays: Sequence[tuple[tuple[int, ...], Sequence[npt.NDArray[Any]]]], slices: list[Slice | None],
           shape: tuple[int, ...]) -> tuple[list[Group], list[Lengths]]:
    """Return (groups, result) for `Product` of index arrays that are broadcast against each other.

    Parameters
    ----------
    arrays : list of (dims, arrays)
    slices : list
        Slices for the `Product`; filled in for dimensions whose array is a single index.
    shape : tuple of int
    """
    given = [array for _, several in arrays for array in several]
    broadcast = _broadcast([array.shape for array in given])
    is_empty = 0 in broadcast
    ndim = len(broadcast)
    parts = []
    for dims, several in arrays:
        axes = [ndim - several[0].ndim + i for i, length in enumerate(several[0].shape) if length != 1]
        if is_empty:
            axes = [0, ndim - 1]
        if axes:
            parts.append([axes[0], axes[-1] + 1, [(d, several[i]) for i, d in enumerate(dims)]])
        else:
            for d, array in zip(dims, several, strict=False):  # True is one without a dimension
                slices[d] = (in_bounds(int(array.reshape(-1)[0]), d, shape[d]), 1, 1)
    # Arrays with common or overlapping axes form one group.
    merged = []
    for low, high, members in sorted(parts, key=lambda part: part[:2]):
        if merged and low < merged[-1][1]:
            merged[-1][1] = max(high, merged[-1][1])
            merged[-1][2].extend(members)
        else:
            merged.append([low, high, members])
    groups, result, axis = [], [], 0
    for low, high, members in merged:
        result += [(None, (1,))] * (low - axis)
        axis = high
        lengths = broadcast[low:high]
        members.sort(key=lambda member: member[0])
        dims = tuple([d for d, _ in members])
        result.append((dims[0] if dims else None, lengths))
        if dims:
            groups.append((dims, [_without_axes(array, ndim - high, high - low) for _, array in members], lengths))
    return groups, result + [(None, (1,))] * (ndim - axis)


def _broadcast(shapes):
    """Return the shape to which all are broadcast. NumPy's own function supports only 32 dimensions."""
    broadcast = [1] * max([len(shape) for shape in shapes])
    for shape in shapes:
        for i in range(-len(shape), 0):
            if shape[i] != 1:
                if broadcast[i] not in (1, shape[i]):
                    raise SelectionError("shape mismatch: indexing arrays could not be broadcast together with shapes "
                                         + " ".join(map(str, shapes)))
                broadcast[i] = shape[i]
    return tuple(broadcast)


def _without_axes(array, n_behind, n_kept):
    """Return an array without the axes of length 1 before and behind the `n_kept` axes, which other arrays use."""
    if math.prod(array.shape) == 0:
        return array
    stop = array.ndim - n_behind
    return array.reshape(array.shape[max(0, stop - n_kept):stop])
