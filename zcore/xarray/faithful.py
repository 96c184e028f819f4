"""Checks that values read back as they were given, from an array that stores them by its own encoding.

What a reader would get is decoded by xarray from what would be stored, and compared with what was given. Values that
are packed may differ by half a step, and numbers with fewer digits by their last digit.
"""
from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas
from xarray import Variable, conventions

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Attributes and encodings that say how values are stored, for the error.
_SHOWN = ("units", "calendar", "scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned")


def checked(name: str, given: Variable, encoded: Variable, stored: Variable, encoding: dict[str, Any]) -> Variable:
    """Return an encoded variable of which every value reads back as it was given.

    Values of dask are checked when they are computed, block by block.

    Parameters
    ----------
    name : str
    given, encoded : xarray.Variable
        Before and after it was encoded, with the same dimensions.
    stored : xarray.Variable
        The array that is there, without any decoding.
    encoding : dict
        With which `given` is encoded.

    Raises
    ------
    ValueError
        A value does not fit. The error names it, with the encoding of the array.
    """
    check = _Check(name, stored.dtype, dict(stored.attrs), given.attrs.get("units"), dict(encoding))
    if not check.is_needed(given.dtype):
        return encoded
    if not hasattr(encoded._data, "__dask_graph__"):
        check(given.values, encoded.values)
        return encoded
    import dask.array

    if given.dtype.kind in "mMO" and "units" in stored.attrs:
        # Block by block as in memory, so that the error is the same.
        data = dask.array.map_blocks(check.encoded, given.data, dtype=stored.dtype,
                                     meta=np.empty((0,) * given.ndim, stored.dtype))
    else:
        data = dask.array.map_blocks(check, given.data, encoded.data, dtype=encoded.dtype)
    return encoded.copy(deep=False, data=data)


class _Check(NamedTuple):
    name: str
    dtype: np.dtype[Any]
    attributes: dict[str, Any]
    units: str | None
    encoding: dict[str, Any]

    def is_needed(self, dtype):
        """Return whether values of a type might not fit."""
        attributes, stored = self.attributes, self.dtype
        if dtype.kind == "V":
            return False
        if stored.kind in "TO":
            return dtype.kind not in "TUS"
        if dtype.kind in "fciub" and self._is_of_other_date():
            return True
        fills = [attributes[key] for key in ("_FillValue", "missing_value") if key in attributes]
        return (dtype != stored or dtype.kind in "mMO" or self._is_packed()
                or any([np.any(fill == fill) for fill in fills]))     # not NaN

    def __call__(self, given: NDArray[Any], encoded: NDArray[Any], block_info: Any = None) -> NDArray[Any]:
        """Return what was encoded, if all of it reads back as it was given."""
        given = np.asarray(given)
        found, wrong = self._compared(given, encoded)
        if not wrong.any():
            return encoded
        i = int(np.argmax(wrong))
        if given.dtype.kind in "mMO" and "units" in self.attributes:
            # xarray encodes all of them in other units if one does not fit.
            i = bisect_left(range(1, given.size), True, lo=i, key=lambda n: self._is_wrong(given.ravel()[:n]))
            found = None
        index = np.unravel_index(i, given.shape)
        origin = [0] * given.ndim if block_info is None else [start for start, _ in block_info[0]["array-location"]]
        encoding = ", ".join([str(self.dtype), *[f"{key} {self.attributes[key]}" for key in _SHOWN
                                               if key in self.attributes]])
        instead = "" if found is None else f", and would read back as {found[index]!s:.60}"
        raise ValueError(f"variable {self.name!r}: {given[index]!s:.60} at "
                         f"{tuple([int(a + b) for a, b in zip(origin, index, strict=True)])} does not fit the stored "
                         f"array ({encoding}){instead}")

    def encoded(self, given: NDArray[Any], block_info: Any = None) -> NDArray[Any]:
        """Encode values as the array stores them, and return them if all read back as they were given."""
        try:
            encoded = self._encoded(given)
        except (ValueError, TypeError, OverflowError):
            encoded = None     # which fits nothing
        return self(given, encoded, block_info).astype(self.dtype)

    def _encoded(self, given):
        variable = Variable([f"d{i}" for i in range(given.ndim)], given, {}, dict(self.encoding))
        return conventions.encode_cf_variable(variable, name=self.name).values

    def _is_wrong(self, given):
        try:
            return self._compared(given, self._encoded(given))[1].any()
        except (ValueError, TypeError, OverflowError):
            return True

    def _compared(self, given, encoded):
        """Return what a reader would get, None if that is an error, and where it differs from what was given."""
        if not given.size:
            return None, np.zeros(given.shape, bool)
        with np.errstate(all="ignore"):
            try:
                stored = np.asarray(encoded).astype(self.dtype)
                found = self._decoded(stored, given)
                return found, ~self._same(given, stored, found)
            except (ValueError, TypeError, OverflowError):
                return None, np.ones(given.shape, bool)

    def _decoded(self, stored, given):
        """Return what a reader gets of stored values."""
        kind = given.dtype.kind
        is_time = kind == "M" or kind == "O" and _is_cftime(given)
        if kind not in "mMO" and self._is_of_other_date():
            raise ValueError
        variable = Variable([f"d{i}" for i in range(stored.ndim)], stored, dict(self.attributes))
        return conventions.decode_cf_variable(self.name, variable, decode_times=is_time, decode_timedelta=kind == "m",
                                              stack_char_dim=False).values

    def _same(self, given, stored, found):
        """Return where values that are found are those that were given."""
        kind = given.dtype.kind
        if kind == "O" and not _is_cftime(given) or kind in "TUS":
            return (given == found) | (pandas.isnull(given) & (found == type(found.flat[0])()))
        if kind in "mM" or kind == "O":
            return self._same_time(given, stored, found)
        if stored.dtype.kind in "iub" and kind in "iub" and not self._is_packed():
            # With a fill value they are decoded to floating point, which may have fewer digits.
            exact = stored if found.dtype.kind == "f" and "_Unsigned" not in self.attributes else found
            return (exact == given) & ~np.isnan(found)
        if kind in "iu" and stored.dtype.kind == "f" and not self._is_packed():
            return (found.astype(given.dtype) == given) & (found == given)
        same = (given == found) | (np.isnan(given) & np.isnan(found))
        if not same.all():
            same |= np.abs(given - found) <= self._step(stored)
        if not same.all():
            same |= np.abs(given - found) <= self._step(stored) + self._last_digit(given, stored)
        return same

    def _is_of_other_date(self):
        """Return whether dates are stored as numbers, and numbers are not given in the same units."""
        units = self.attributes.get("units")
        return isinstance(units, str) and " since " in units and units != self.units

    def _is_packed(self):
        return "scale_factor" in self.attributes or "add_offset" in self.attributes

    def _step(self, stored):
        """Return the largest error of values that are packed, half a step of their scale; 0 if they are not."""
        is_rounded = self._is_packed() and stored.dtype.kind not in "fc"
        return 0.5 * np.abs(np.float64(self.attributes.get("scale_factor", 1))) if is_rounded else 0

    def _last_digit(self, given, stored):
        """Return by how much numbers differ that have fewer digits."""
        if not self._is_packed() and (stored.dtype.kind not in "fc" or given.dtype.kind in "iub"):
            return 0
        # Numbers of 16 bits are decoded to 32.
        digits = np.finfo(stored.dtype if stored.dtype.kind in "fc" else "f4" if stored.dtype.itemsize <= 2 else "f8")
        eps = max(digits.eps, np.finfo(given.dtype).eps if given.dtype.kind in "fc" else 0)
        return 4 * eps * (np.abs(given) + np.abs(np.float64(self.attributes.get("add_offset", 0)))) + digits.tiny

    def _same_time(self, given, stored, found):
        if given.dtype.kind == "M" and found.dtype.kind == "O" or given.dtype.kind == "O" and found.dtype.kind == "M":
            given, found = _as_dates(given), _as_dates(found)
        if given.dtype.kind != found.dtype.kind:
            return np.zeros(given.shape, bool)
        same = given == found
        if given.dtype.kind == "O":
            return same
        same |= np.isnat(given) & np.isnat(found)
        if stored.dtype.kind == "f" and not same.all():
            # Microseconds, or the last digit of what is stored.
            next_ = self._decoded(np.nextafter(stored, np.inf, dtype=stored.dtype), given)
            same |= np.abs(found - given) <= np.abs(next_ - found) + np.timedelta64(1, "us")
        return same


def _is_cftime(values):
    """Return whether the first object that is there is a date of cftime."""
    return next((hasattr(value, "calendar") for value in values.ravel().tolist() if value is not None), False)


def _as_dates(values):
    """Return dates of any calendar as those of NumPy that have the same year, month and day."""
    if values.dtype.kind == "M":
        return values
    return np.array([value.isoformat() for value in values.ravel().tolist()], "M8[us]").reshape(values.shape)
