"""The plane of an array that a plot shows: elements as numbers, and the levels between which they are.

In a terminal it is drawn with letters: half blocks in colours, or signs from light to dark where there are none.
"""
from __future__ import annotations

import contextlib
import math
import re
from typing import TYPE_CHECKING

import numpy as np

import zcore
from zcore.cli import location
from zcore.errors import SelectionError
from zcore.kernel.select.box import basic
from zcore.tools.copy.translate import MISSING_ATTRIBUTE, missing_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    import numpy.typing as npt

    from zcore.nodes.array import Array
    from zcore.typing import Selection

PERCENTILES = (1, 99)          # of the values shown: a few outliers leave the others their colours
MAX_EXACT = 2**53              # up to here every integer is a floating point number
MAX_VALUE = 1e300              # up to here differences of values are finite


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

COLOURS_OF_AN_IMAGE = (3, 4)   # length of the last dimension
MAX_ASPECT = 5                 # of a picture that is not distorted
MAX_CHUNKS = 1 << 16           # that one picture reads


def plane_of(array: Array, selection: Selection, max_rows: int, max_columns: int,
             shape_of_a_dot: int | None = None) -> tuple[npt.NDArray[np.float64], list[int | range], str]:
    """Return two dimensions of an array as numbers, in steps where there is no room for all.

    Parameters
    ----------
    array : zcore.Array
    selection : object
        Integers and slices that leave one dimension or two; None for the last two, or those before a short last one
        of colours, in the middle of the others.
    max_rows, max_columns : int
        Where there are more the elements are taken in steps, and in larger ones where too many chunks would be read.
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
        shape = array.shape
        n_last = int(len(shape) > 2 and shape[-1] in COLOURS_OF_AN_IMAGE and min(shape[-3:-1]) > shape[-1])
        first = max(0, len(shape) - n_last - 2)
        selection = (*[n // 2 for n in shape[:first]], ..., *[n // 2 for n in shape[len(shape) - n_last:]])
    try:
        view = array.lazy[selection]
    except SelectionError:
        basic(selection, array.shape)     # which raises the array's own error
        raise ValueError("a plot takes integers, slices and ... as its selection") from None
    if not 1 <= view.ndim <= 2:
        raise ValueError("a plot has one dimension or two: give integers for the others, as in 0, :, 10:90")
    counts = view.shape
    if 0 in counts:
        raise ValueError("there is nothing to plot: the array has no elements")
    if array.dtype.kind not in "biufc":
        raise ValueError(f"there is nothing to plot: elements of type {array.dtype} are not numbers")
    rooms = (max_rows, max_columns) if view.ndim == 2 else (max_columns,)
    steps = [-(-n // room) for n, room in zip(counts, rooms, strict=True)]
    if shape_of_a_dot is not None and view.ndim == 2 and max(counts) < MAX_ASPECT * min(counts) and (
            counts[0] > max_rows or counts[1] * shape_of_a_dot > max_columns):
        step = max(-(-steps[0] // shape_of_a_dot), steps[1])
        steps = [step * shape_of_a_dot, step]
    while _n_chunks(view, steps) > MAX_CHUNKS:
        steps = [2 * step for step in steps]
    view = view[tuple([slice(None, None, step) for step in steps])]
    attributes = array.attrs.asdict()
    values, quantity = _unpacked(np.asarray(view), attributes, array.path.rpartition("/")[2] or "value")
    return (values if values.ndim == 2 else values[None]), list(view.parts), quantity


def selected(box: Sequence[int | range]) -> str:
    """Return the selection of a plane as text.

    >>> selected([3, range(9), range(8)])
    '[3, :, :]'
    """
    return f"[{', '.join([':' if isinstance(one, range) else str(one) for one in box])}]"


def _n_chunks(view, steps):
    """Return how many chunks a view of some steps reads, about."""
    kept = [(part, n) for part, n in zip(view.parts, view.array.metadata.chunk_shape, strict=True)
            if type(part) is range]
    return math.prod([min(-(-len(part) // step), -(-len(part) * abs(part.step) // n))
                      for (part, n), step in zip(kept, steps, strict=True)])


def _unpacked(found, attributes, name):
    """Return numbers and their label, with the attributes for packed and missing values of NetCDF's conventions."""
    if MISSING_ATTRIBUTE in attributes:
        attributes = {**attributes, MISSING_ATTRIBUTE: missing_number(attributes[MISSING_ATTRIBUTE], found.dtype)}
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
            if (dates := _dates(values, attributes)) is not None:
                return label_of({**attributes, "units": None}, name), dates
            return label_of(attributes, name), values
    except zcore.ZcoreError:
        pass     # the index will do
    return name, None


# Units of NetCDF's conventions, such as "hours since 2000-01-01 06:00:00". The last calendar is NumPy's, and so are the
# others since they have leap years as it has.
_SINCE = re.compile(r"(second|minute|hour|day)s? since (\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d)?))?(?:\.0*)?"
                    r"(?: ?UTC|Z)?")
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_SAME_SINCE = dict.fromkeys(("standard", "gregorian"), "1582-10-15") | {"proleptic_gregorian": "0001-01-01"}


def _dates(values, attributes):
    """Return coordinates as dates, if their units say that they count from one; else None."""
    found = _SINCE.fullmatch(str(attributes.get("units")))
    least = _SAME_SINCE.get(str(attributes.get("calendar", "standard")))
    if found is None or least is None or found[2] < least or values.dtype.kind not in "iuf":
        return None
    seconds = values.astype(float) * _SECONDS[found[1]]
    seconds[~(np.abs(seconds) < 1e11)] = np.nan     # some 3000 years
    with contextlib.suppress(ValueError):     # it is no date
        dates = np.datetime64(f"{found[2]}T{found[3] or '00:00'}", "ms") + np.round(seconds * 1000).astype("m8[ms]")
        return None if (dates < np.datetime64(least)).any() else dates

# Nine colours of viridis; the colours between them are mixed.
COLOURS = np.array([(68, 1, 84), (71, 44, 122), (59, 81, 139), (44, 113, 142), (33, 144, 141), (39, 173, 129),
                    (92, 200, 99), (170, 220, 50), (253, 231, 37)], float)
GREY = 128                     # of a value that is not finite
SIGNS = " .:-=+*#%@"
NOTHING = "?"                  # for a value that is not finite
UPPER_HALF = "▀"


def drawn(values: npt.NDArray[np.float64], low: float, high: float, *, in_colours: bool) -> list[str]:
    """Return the lines of a drawing, each of two rows of values where they are coloured, and else of one.

    `values` has two dimensions, NaN where a value is not finite; `low` and `high` get the first and the last colour.
    """
    if in_colours:
        return _coloured(values, low, high)
    fractions = _fractions(values, low, high)
    signs = np.minimum(len(SIGNS) - 1, np.nan_to_num(fractions) * len(SIGNS))
    signs = np.where(np.isnan(fractions), -1, signs).astype(int)
    return ["".join(NOTHING if i < 0 else SIGNS[i] for i in row) for row in signs.tolist()]


def enlarged(values: npt.NDArray[np.float64], max_rows: int, max_columns: int,
             shape_of_a_dot: int) -> npt.NDArray[np.float64]:
    """Return values several times each, so that a small or narrow array can be seen; see `plane_of`.

    >>> enlarged(np.array([[1.0], [2]]), 5, 9, 2).tolist()
    [[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0], [2.0, 2.0, 2.0, 2.0]]
    """
    n_rows, n_columns = values.shape
    zoom = min(max_rows // n_rows, max_columns // (shape_of_a_dot * n_columns))
    columns = max(1, shape_of_a_dot * zoom, min(max_columns, n_rows * shape_of_a_dot // MAX_ASPECT) // n_columns)
    rows = max(1, zoom, min(max_rows, columns * n_columns // (MAX_ASPECT * shape_of_a_dot)) // n_rows)
    return values.repeat(rows, axis=0).repeat(columns, axis=1)


def scale(low: float, high: float, *, in_colours: bool, length: int = 24) -> str:
    """Return a line with the values of the colours or signs."""
    ramp = np.linspace(low, high, length)[None] if low < high else np.full((1, length), low)
    bar = _coloured(ramp, low, high)[0] if in_colours else SIGNS
    return f"{low:g} {bar} {high:g}"


def _fractions(values, low, high):
    """Return values as fractions between two levels, 0 to 1; a constant is 0.5."""
    if not low < high:
        return np.where(np.isnan(values), np.nan, 0.5)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.clip((values - low) / (high - low), 0, 1)


def _coloured(values, low, high):
    if len(values) % 2:
        values = np.concatenate([values, np.full((1, values.shape[1]), np.nan)]) if len(values) > 1 else np.concatenate(
            [values, values])
    fractions = _fractions(values, low, high)
    scaled = np.nan_to_num(fractions) * (len(COLOURS) - 1)
    below = np.minimum(scaled.astype(int), len(COLOURS) - 2)
    part = (scaled - below)[..., None]
    colours = np.where(np.isnan(fractions)[..., None], GREY, COLOURS[below] * (1 - part) + COLOURS[below + 1] * part)
    colours = colours.round().astype(int).tolist()
    lines = []
    for upper, lower in zip(colours[::2], colours[1::2], strict=True):
        line, before = [], None
        for one, other in zip(upper, lower, strict=True):
            if (one, other) != before:
                line.append("\x1b[38;2;{};{};{};48;2;{};{};{}m".format(*one, *other))
                before = one, other
            line.append(UPPER_HALF)
        lines.append("".join(line) + "\x1b[0m")
    return lines
