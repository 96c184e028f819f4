"""The plane of an array that a plot shows."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zcore.cli.show.levels import numbers_of, obstacle

if TYPE_CHECKING:
    import numpy.typing as npt

    from zcore.nodes.array import Array
    from zcore.typing import Selection

MAX_ASPECT = 5                 # of a picture that is not distorted


def plane_of(array: Array, selection: Selection, max_rows: int, max_columns: int,
             shape_of_a_dot: int | None = None) -> tuple[npt.NDArray[np.float64], list[int | range], str]:
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
    SelectionError
        The selection has lists, or an index that lies outside.
    ValueError
        The selection leaves another number of dimensions, or the elements are not numbers.
    """
    if selection is None:
        selection = (*[length // 2 for length in array.shape[:-2]], ...)
    view = array.lazy[selection]
    if not 1 <= view.ndim <= 2:
        raise ValueError("a plot has one dimension or two: give integers for the others, as in 0, :, 10:90")
    counts = view.shape
    reason = obstacle(array.dtype, counts)
    if reason is not None:
        raise ValueError(f"there is nothing to plot: {reason}")
    rooms = (max_rows, max_columns) if view.ndim == 2 else (max_columns,)
    steps = [-(-n // room) for n, room in zip(counts, rooms, strict=True)]
    if shape_of_a_dot is not None and view.ndim == 2 and max(counts) < MAX_ASPECT * min(counts):
        step = max(-(-steps[0] // shape_of_a_dot), steps[1])
        steps = [step * shape_of_a_dot, step]
    view = view[tuple([slice(None, None, step) for step in steps])]
    values, quantity = numbers_of(np.asarray(view), "value")
    return (values if values.ndim == 2 else values[None]), list(view.parts), quantity
