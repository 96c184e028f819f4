"""The plane of an array that a plot shows: elements as numbers, and the levels between which they are."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import zcore
from zcore.cli import location

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    import numpy.typing as npt

    from zcore.nodes.array import Array
    from zcore.typing import Selection

PERCENTILES = (1, 99)          # of the values shown: a few outliers leave the others their colours
MAX_EXACT = 2**53              # up to here every integer is a floating point number
MAX_VALUE = 1e300              # up to here differences of values are finite


def obstacle(dtype: np.dtype[Any], shape: Sequence[int]) -> str | None:
    """Return the reason why an array of a type and shape cannot be drawn, or None."""
    if not shape:
        return "the array has no dimensions"
    if 0 in shape:
        return "the array has no elements"
    if dtype.kind not in "biufc":
        return f"elements of type {dtype} are not numbers"
    return None


def numbers_of(values: npt.NDArray[Any], quantity: str) -> tuple[npt.NDArray[np.float64], str]:
    """Return values as floating point numbers that can be told apart, and their name.

    Values that are not finite are NaN. Complex numbers become their magnitude, integers that are too large the
    difference from the least one.
    """
    if values.dtype.kind == "c":
        with np.errstate(over="ignore", invalid="ignore"):
            values, quantity = np.abs(values.astype(np.complex128)), f"magnitude of {quantity}"
    elif values.dtype.kind in "iu":
        low = int(values.min())
        if max(abs(low), int(values.max())) > MAX_EXACT:
            # Modulo 2**64, where differences are right for any sign.
            values, quantity = values.astype(np.uint64) - np.uint64(low % 2**64), f"{quantity} above {low}"
    values = values.astype(np.float64)
    return np.where(np.isfinite(values), np.clip(values, -MAX_VALUE, MAX_VALUE), np.nan), quantity


def levels_of(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return the lowest and the highest value with a colour of their own: percentiles, or the extremes.

    >>> levels_of(np.array([0.0, 1, 2, np.nan]))
    (0.02, 1.98)
    >>> levels_of(np.array([3.0, 3]))
    (3.0, 3.0)
    """
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.0, 0.0
    low, high = (float(level) for level in np.percentile(finite, PERCENTILES))
    # Nearly all values may be equal, as in a mask: then the others count.
    return (low, high) if low < high else (float(finite.min()), float(finite.max()))

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
        The name of the numbers, with their unit.

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
    attributes = array.attrs.asdict()
    values, quantity = _unpacked(np.asarray(view), attributes, array.path.rpartition("/")[2] or "value")
    return (values if values.ndim == 2 else values[None]), list(view.parts), quantity


def _unpacked(found, attributes, name):
    """Return numbers and their label, with the attributes for packed and missing values of NetCDF's conventions."""
    numbers = {key: value for key, value in attributes.items() if type(value) in (int, float)}
    missing = [numbers[key] for key in ("_FillValue", "missing_value") if key in numbers]
    is_missing = np.isin(found, missing)
    if attributes.get("_Unsigned") == "true" and found.dtype.kind == "i":
        found = found.view(found.dtype.str.replace("i", "u"))
    values, label = numbers_of(found, label_of(attributes, name))
    values[is_missing] = np.nan
    return values * numbers.get("scale_factor", 1) + numbers.get("add_offset", 0), label


def label_of(attributes: Mapping[str, Any], name: str) -> str:
    """Return the label of an array by its attributes, as NetCDF's conventions have them.

    >>> label_of({"long_name": "height", "units": "m"}, "h"), label_of({}, "h")
    ('height [m]', 'h')
    """
    long_name, units = (attributes.get(key) for key in ("long_name", "units"))
    return (long_name if isinstance(long_name, str) else name) + (f" [{units}]" if isinstance(units, str) else "")


def coordinate_of(array: Array, d: int, indices: range) -> tuple[str, npt.NDArray[Any] | None]:
    """Return the label of a dimension, and its coordinates at some indices.

    The coordinates are an array beside that array which has the name of the dimension; None without one.
    """
    name = (array.dimension_names or (None,) * array.ndim)[d]
    if name is None:
        return f"dimension {d}", None
    above, slash, _ = array.path.rpartition("/")
    try:
        # The store of a file that is no store holds one node alone.
        path = f"{above}{slash}{name}"
        found = (location.opened_array(f"{array.store.uri}/{path}") if hasattr(array.store, "file_kind")
                 else zcore.open_array(array.store, path=path))
        if found.shape == (array.shape[d],) and found.dtype.kind in "iufmM":
            values, attributes = found[np.asarray(indices)], found.attrs.asdict()
            if values.dtype.kind not in "mM" and "scale_factor" in attributes:
                values, _ = _unpacked(values, attributes, name)
            return label_of(attributes, name), values
    except zcore.ZcoreError:
        pass     # the index will do
    return name, None
