"""A plane of numbers for people: what of an array is shown, and between which levels."""
import numpy as np

from zcore.cli.selection import box_of, slice_of

PERCENTILES = (1, 99)          # of what is shown: a few wild values leave the others their colours
MAX_ASPECT = 5                 # of a picture that is not distorted
MAX_EXACT = 2**53              # up to here every integer is a floating point number
MAX_VALUE = 1e300              # up to here differences of values are finite


def obstacle(dtype, shape):
    """Return why nothing of a type and shape can be drawn, or None."""
    if not shape:
        return "the array has no dimensions"
    if 0 in shape:
        return "the array has no elements"
    if dtype.kind not in "biufc":
        return f"elements of type {dtype} are not numbers"
    return None


def plane_of(array, selection, max_rows, max_columns, shape_of_a_dot=None):
    """Return two dimensions of an array as numbers, no more of them than there is room for.

    Parameters
    ----------
    array : zcore.Array
    selection : object
        Integers and slices that leave one dimension or two; None for the last two, in the middle of the others.
    max_rows, max_columns : int
        Where there are more the elements are taken in steps.
    shape_of_a_dot : int, optional
        How many times as high as wide a dot is: steps are such that the picture is not distorted, unless one dimension
        is much longer than the other.

    Returns
    -------
    values : ndarray
        float64, of two dimensions; what is not finite is NaN.
    box : list of int or range
        What of each dimension was taken.
    quantity : str
        What the numbers are.

    Raises
    ------
    ValueError
        The selection leaves another number of dimensions, or the elements are not numbers.
    """
    box = _middle_of(array.shape) if selection is None else box_of(selection, array.shape)
    kept = [d for d, one in enumerate(box or ()) if isinstance(one, range)]
    if not 1 <= len(kept) <= 2:
        raise ValueError("a plot is of one dimension or two: integers say where in the others, as in 0, :, 10:90")
    reason = obstacle(array.dtype, [len(box[d]) for d in kept])
    if reason is not None:
        raise ValueError(f"there is nothing to plot: {reason}")
    rooms = (max_rows, max_columns) if len(kept) == 2 else (max_columns,)
    steps = [-(-len(box[d]) // room) for d, room in zip(kept, rooms, strict=True)]
    if shape_of_a_dot is not None and len(kept) == 2 and max(
            len(box[kept[0]]), len(box[kept[1]])) < MAX_ASPECT * min(len(box[kept[0]]), len(box[kept[1]])):
        step = max(-(-steps[0] // shape_of_a_dot), steps[1])
        steps = [step * shape_of_a_dot, step]
    for d, step in zip(kept, steps, strict=True):
        box[d] = box[d][::step]
    values = np.asarray(array[tuple(slice_of(one) if isinstance(one, range) else one for one in box)])
    values, quantity = numbers_of(values, "value")
    return (values if values.ndim == 2 else values[None]), box, quantity


def _middle_of(shape):
    n = max(0, len(shape) - 2)
    return [length // 2 for length in shape[:n]] + [range(length) for length in shape[n:]]


def numbers_of(values, quantity):
    """Return values as floating point numbers that can be told apart, and what they are called.

    What is not finite is NaN. Of complex numbers it is the magnitude, of integers that are too large the difference
    from the least one.
    """
    if values.dtype.kind == "c":
        with np.errstate(over="ignore", invalid="ignore"):
            values, quantity = np.abs(values.astype(np.complex128)), f"magnitude of {quantity}"
    elif values.dtype.kind in "iu":
        low = int(values.min())
        if max(abs(low), int(values.max())) > MAX_EXACT:
            # Modulo 2**64, where differences are right whatever the sign.
            values, quantity = values.astype(np.uint64) - np.uint64(low % 2**64), f"{quantity} above {low}"
    values = values.astype(np.float64)
    return np.where(np.isfinite(values), np.clip(values, -MAX_VALUE, MAX_VALUE), np.nan), quantity


def levels_of(values):
    """Return the lowest and the highest value that get a colour of their own: percentiles, or all there is.

    >>> levels_of(np.array([0.0, 1, 2, np.nan]))
    (0.02, 1.98)
    >>> levels_of(np.array([3.0, 3]))
    (3.0, 3.0)
    """
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.0, 0.0
    low, high = (float(level) for level in np.percentile(finite, PERCENTILES))
    # Nearly all values may be one, as in a mask: then the others count.
    return (low, high) if low < high else (float(finite.min()), float(finite.max()))
