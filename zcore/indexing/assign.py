"""Converts assigned values by NumPy's rules to an ndarray of the array's type and the selection's shape.

NumPy has several ways of assignment (to one element, from an array, from nested lists), which differ. This module uses
the way that NumPy would use. Two rules are stricter. Bytes that belong to no field of a structure are zero: NumPy
leaves old memory there, which must not leave the process. Times that do not fit the unit of the type are an error, as
integers of Python are: NumPy would make another century of them.
"""
from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy as np

from zcore.buffers import is_masked

if TYPE_CHECKING:
    from typing import Any, Literal, TypeAlias

    import numpy.typing as npt

    Way: TypeAlias = Literal["element", "view", "points", "mask"]


_TEXT = "TUS"
_PLAIN = frozenset((str, bytes, int, bool, complex))   # types that have no missing values


def assigned(values: Any, dtype: np.dtype[Any], shape: tuple[int, ...], way: Way) -> npt.NDArray[Any]:
    """Return values as an ndarray of `shape` and type `dtype`.

    Parameters
    ----------
    values : object
        Any value that NumPy accepts.
    dtype : numpy.dtype
    shape : tuple of int
        Shape of the selection.
    way : str
        The kind of selection: an "element"; a "view" that consists of slices; "points" in any order; or a "mask" of the
        whole array, which accepts only values of at most one dimension, even if others would broadcast.

    Raises
    ------
    ValueError, TypeError, OverflowError
        As in NumPy: the shapes do not fit, or the type does not hold a value.
    """
    if way == "element":
        check_complete(values, dtype.kind in _TEXT)
        if dtype.kind in "mM":
            check_times(values, dtype)
        # Here NumPy accepts some values that it refuses for a slice, and the other way round.
        cell = np.zeros(1, dtype)
        # The object in an array without dimensions, as zarr-python returns one element, and not that array.
        cell[0] = values[()] if dtype.kind == "O" and getattr(values, "shape", None) == () else values
        return cell.reshape(())
    if isinstance(values, np.ndarray):
        # A wrong shape is reported before a wrong type.
        _check_for_mask(values, way)
        broadcast = _broadcast(values, shape)
        if 0 in shape and (way != "points" or values.ndim):
            # Without elements, NumPy does not check whether the type holds the values.
            return cast_to(broadcast, dtype)
        return _broadcast(cast_to(values, dtype), shape)
    cast = cast_to(values, dtype)
    _check_for_mask(cast, way)
    if way == "view" and cast.ndim > len(shape) and isinstance(values, (list, tuple)):
        raise ValueError(f"setting an array element with a sequence: nested {cast.ndim} deep, the selection has "
                         f"{len(shape)} dimensions")
    return _broadcast(cast, shape)


def cast_to(values: Any, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return values as an ndarray of type `dtype` and of their own shape; for errors see `assigned`."""
    is_text = dtype.kind in _TEXT
    if hasattr(values, "__array__") and not isinstance(values, (np.ndarray, np.generic)):
        values = in_memory(values, None if is_text else dtype)      # missing text is still objects
    check_complete(values, is_text)
    if dtype.kind in "mM":
        check_times(values, dtype)
    if not isinstance(values, (np.ndarray, np.generic)):
        values = np.asarray(values, dtype)
    if values.dtype == dtype and not _has_padding(dtype):
        return np.asarray(values)
    # By assignment: np.asarray would wrap a number that does not fit, and copy bytes that belong to no field.
    cast = np.zeros(values.shape, dtype)
    cast[...] = values
    return cast


def in_memory(values: Any, dtype: np.dtype[Any] | None = None) -> npt.NDArray[Any]:
    """Return values as an ndarray; what says that some of them are none, a mask, stays or is an error."""
    check_complete(values, False)
    if hasattr(values, "__dask_graph__"):
        values = values.compute()      # dask itself would drop a mask
    if hasattr(values, "keys") and not isinstance(values, dict) and not hasattr(values, "__array__"):
        # NumPy would make an array of the names in a group of h5py or zarr-python.
        raise TypeError(f"a {type(values).__name__} is no values; zcore.copy copies groups")
    return np.asanyarray(values, dtype)


def check_complete(values: Any, is_text: bool) -> None:
    """Raise ValueError if some of the values are none: masked; or None, NaN or NA for elements that are text.

    NumPy would store what lies below the mask, and the words "None" and "nan".
    """
    if is_masked(values):
        raise ValueError("some of the values are masked, and an array in a store has no mask; filled() returns values "
                         "for them")
    if isinstance(values, (list, tuple)):
        for part in values:
            if type(part) not in _PLAIN:
                check_complete(part, is_text)
    elif is_text:
        if not isinstance(values, np.ndarray):
            values = (values,)
        elif values.dtype.kind == "O" or not isinstance(getattr(values.dtype, "na_object", ""), str):
            values = values.astype(object).reshape(-1)
        else:
            return
        if any([value is None or (isinstance(value, float) and value != value) or type(value).__name__ == "NAType"
                for value in values]):
            raise ValueError("some of the values are missing (None, NaN or NA), and text in an array cannot be; give "
                             "texts for them, such as ''")


def check_times(values: Any, dtype: np.dtype[Any]) -> None:
    """Raise OverflowError if times do not fit the unit of a type."""
    try:
        found = np.asarray(values)
        if found.dtype.kind in "OUS":
            found = found.astype(dtype.kind + "8[us]")      # Python's times have this unit
    except (TypeError, ValueError):
        return     # no times alone: the conversion tells
    # A unit that is not finer has room.
    if (found.size and found.dtype.kind == dtype.kind and np.datetime_data(found.dtype)[0] != "generic"
            and np.can_cast(found.dtype, dtype, "safe") and not np.can_cast(found.dtype, dtype, "equiv")):
        for end in (np.fmin.reduce(found, None), np.fmax.reduce(found, None)):
            is_there = False
            with contextlib.suppress(OverflowError):     # NumPy 2.5 looks itself, and does not name the value
                is_there = np.isnat(end) or end.astype(dtype).astype(found.dtype) == end
            if not is_there:
                raise OverflowError(f"{end} does not fit {dtype}, the type of the array")


def _check_for_mask(values, way):
    if way == "mask" and values.ndim > 1:
        raise TypeError(f"a mask selection accepts a single value or a vector, not {values.ndim} dimensions")


def _has_padding(dtype):
    """Return whether items have bytes that belong to no field."""
    if dtype.subdtype is not None:
        return _has_padding(dtype.subdtype[0])
    if dtype.names is None:
        return False
    fields = [dtype.fields[name][0] for name in dtype.names]
    return sum(field.itemsize for field in fields) != dtype.itemsize or any(map(_has_padding, fields))


def _broadcast(values, shape):
    """Return values broadcast as in NumPy's assignment, which drops extra leading dimensions of length 1."""
    if values.shape == shape:
        return values
    squeezed = values
    while squeezed.ndim > len(shape) and squeezed.shape[0] == 1:
        # The ellipsis keeps a 0-d array: a scalar would lose the byte order.
        squeezed = squeezed[0, ...]
    try:
        return np.broadcast_to(squeezed, shape)
    except ValueError:
        raise ValueError(f"could not broadcast input array from shape {values.shape} into shape {shape}") from None
