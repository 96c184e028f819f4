"""Which memory becomes which block: arrays that overlap in memory share one, and are views of it.

The block of several arrays is the memory from the first byte that one of them reaches to the last. An array that
overlaps with no other gets its own block. If its elements have gaps or overlap, a contiguous copy is stored.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zcore.asdf.tree.datatypes import packed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy.typing as npt


class Piece(NamedTuple):
    """An array as part of the memory that becomes a block.

    Attributes
    ----------
    memory : ndarray of uint8
        The same object for all arrays of a block.
    offset : int
        Of the array's first element, in bytes.
    strides : tuple of int or None
        None: the elements lie in C order.
    """

    memory: npt.NDArray[np.uint8]
    offset: int = 0
    strides: tuple[int, ...] | None = None


def pieces_of(arrays: Sequence[npt.NDArray[Any]]) -> list[Piece]:
    """Return for each array its `Piece`.

    >>> base = np.arange(12, dtype="i2").reshape(3, 4)
    >>> [(len(piece.memory), piece.offset, piece.strides) for piece in pieces_of([base, base[1:, 2:], base[0]])]
    [(24, 0, None), (24, 12, (8, 2)), (24, 0, None)]
    """
    pieces: list[Any] = [None] * len(arrays)
    placed = []
    for i, array in enumerate(arrays):
        if array.nbytes == 0 or packed(array.dtype) != array.dtype or _repeats(array):
            pieces[i] = Piece(_copy(array))
        else:
            placed.append((*np.lib.array_utils.byte_bounds(array), i))
    placed.sort()
    first = 0
    while first < len(placed):
        start, stop, _ = placed[first]
        last = first + 1
        while last < len(placed) and placed[last][0] < stop:
            stop = max(stop, placed[last][1])
            last += 1
        members = [i for _, _, i in placed[first:last]]
        array = arrays[members[0]]
        if len(members) == 1 and stop - start != array.nbytes:
            pieces[members[0]] = Piece(_copy(array))
        else:
            memory = _memory_from(array, stop - start)
            for i in members:
                address = arrays[i].__array_interface__["data"][0]
                pieces[i] = Piece(memory, address - start, _strides_of(arrays[i]))
        first = last
    return pieces


def _repeats(array):
    """Whether elements lie over one another, as after broadcasting: a tree has no strides of 0."""
    return any(stride == 0 and n > 1 for n, stride in zip(array.shape, array.strides, strict=True))


def _copy(array):
    return np.ascontiguousarray(array.astype(packed(array.dtype), copy=False)).reshape(-1).view(np.uint8) \
        if array.nbytes else np.empty(0, np.uint8)


def _memory_from(array, n_bytes):
    """Return `n_bytes` of memory from an array's first byte on; the arrays that overlap with it cover so much."""
    # With an ellipsis the result is an array, even one of no dimensions.
    lowest = array[(..., *[slice(None, None, -1 if stride < 0 else 1) for stride in array.strides])]
    one = lowest[(..., *[slice(0, 1)] * array.ndim)].reshape(1).view(np.uint8)
    return np.lib.stride_tricks.as_strided(one, (n_bytes,), (1,), writeable=False)


def _strides_of(array):
    if array.flags.c_contiguous:
        return None
    # NumPy's stride is arbitrary in a dimension of length 1.
    return tuple([stride if n > 1 else array.itemsize for n, stride in zip(array.shape, array.strides, strict=True)])
