"""The plane of an array that a plot shows."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zcore.cli.selection import box_of, index_of
from zcore.cli.show.levels import numbers_of, obstacle

if TYPE_CHECKING:
    import numpy.typing as npt

    from zcore.nodes.array import Array
    from zcore.typing import Selection

MAX_ASPECT = 5                 # of a picture that is not distorted


def plane_of(array: Array, selection: Selection, max_rows: int, max_columns: int,
             shape_of_a_dot: int | None = None,
             quantity: str = "value") -> tuple[npt.NDArray[np.float64], list[int | range], str]:
    """Return two dimensions of an array as numbers, in steps where there is no room for all.

    Parameters
    ----------
    array : zcore.Array
    selection : object
        Integers and slices that leave one dimension or two; None for the last two, in the middle of the others.
    max_rows, max_columns : int
        Where there are more the elements are taken in steps.
    shape_of_a_dot : int, optional
        Height of a dot divided by its width: with it, steps do not distort the picture, unless one dimension is much
        longer than the other.
    quantity : str
        The name of the values.

    Returns
    -------
    values : ndarray
        float64, of two dimensions; values that are not finite are NaN.
    box : list of int or range
        The index or the indices of each dimension.
    quantity : str
        The name of the numbers.

    Raises
    ------
    ValueError
        The selection leaves another number of dimensions, or the elements are not numbers.
    """
    box = _middle_of(array.shape) if selection is None else box_of(selection, array.shape)
    kept = {d: one for d, one in enumerate(box or ()) if isinstance(one, range)}
    if box is None or not 1 <= len(kept) <= 2:
        raise ValueError("a plot has one dimension or two: give integers for the others, as in 0, :, 10:90")
    counts = list(map(len, kept.values()))
    reason = obstacle(array.dtype, counts)
    if reason is not None:
        raise ValueError(f"there is nothing to plot: {reason}")
    rooms = (max_rows, max_columns) if len(kept) == 2 else (max_columns,)
    steps = [-(-n // room) for n, room in zip(counts, rooms, strict=True)]
    if shape_of_a_dot is not None and len(kept) == 2 and max(counts) < MAX_ASPECT * min(counts):
        step = max(-(-steps[0] // shape_of_a_dot), steps[1])
        steps = [step * shape_of_a_dot, step]
    for (d, one), step in zip(kept.items(), steps, strict=True):
        box[d] = one[::step]
    values = np.asarray(array[index_of(box)])
    values, quantity = numbers_of(values, quantity)
    return (values if values.ndim == 2 else values[None]), box, quantity


def _middle_of(shape):
    n = max(0, len(shape) - 2)
    return [length // 2 for length in shape[:n]] + [range(length) for length in shape[n:]]
