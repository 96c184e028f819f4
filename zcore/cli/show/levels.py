"""Elements as numbers that can be drawn, and the levels between which they are."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy.typing as npt

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
