"""What is stored when a value is assigned, by NumPy's rules: an ndarray of the array's type and the selection's shape.

Where NumPy's ways of assignment differ from each other (to one element, from an array, from nested lists), the way that
would be taken is taken here. One thing is stricter: bytes that belong to no field of a structure are zero, since NumPy
leaves there what was in memory before, and that must not leave the process.
"""
import numpy as np


def assigned(values, dtype, shape, way):
    """Return values as an ndarray of `shape` and type `dtype`.

    Parameters
    ----------
    values : object
        What NumPy would take.
    dtype : numpy.dtype
    shape : tuple of int
        Of the selection.
    way : str
        What is assigned to: an "element", a "view" that consists of slices, "points" in any order, or those where a
        "mask" of the whole array is true, which takes values of at most one dimension, whatever would broadcast.

    Raises
    ------
    ValueError, TypeError, OverflowError
        What NumPy raises: the shapes do not fit, or the type does not hold a value.
    """
    if way == "element":
        # Here NumPy takes some values that it refuses for a slice, and the other way round.
        cell = np.zeros(1, dtype)
        cell[0] = values
        return cell.reshape(())
    if isinstance(values, np.ndarray):
        # A wrong shape is found before a wrong type.
        _check_for_mask(values, way)
        broadcast = _broadcast(values, shape)
        if 0 in shape and (way != "points" or values.ndim):
            # No element is looked at, whether the type holds it or not.
            return cast_to(broadcast, dtype)
        return _broadcast(cast_to(values, dtype), shape)
    cast = cast_to(values, dtype)
    _check_for_mask(cast, way)
    if way == "view" and cast.ndim > len(shape) and isinstance(values, (list, tuple)):
        raise ValueError(f"setting an array element with a sequence: nested {cast.ndim} deep, the selection has "
                         f"{len(shape)} dimensions")
    return _broadcast(cast, shape)


def cast_to(values, dtype):
    """Return values as an ndarray of type `dtype` and of their own shape; `assigned` has what may be raised."""
    if not isinstance(values, (np.ndarray, np.generic)):
        values = np.asarray(values, dtype)
    if values.dtype == dtype and not _has_padding(dtype):
        return np.asarray(values)
    # By assignment: np.asarray would wrap a number that does not fit, and copy the bytes of no field.
    cast = np.zeros(values.shape, dtype)
    cast[...] = values
    return cast


def _check_for_mask(values, way):
    if way == "mask" and values.ndim > 1:
        raise TypeError(f"elements where a mask is true are assigned a value or a vector, not {values.ndim} dimensions")


def _has_padding(dtype):
    """Whether items have bytes that belong to no field."""
    if dtype.subdtype is not None:
        return _has_padding(dtype.subdtype[0])
    if dtype.names is None:
        return False
    fields = [dtype.fields[name][0] for name in dtype.names]
    return sum(field.itemsize for field in fields) != dtype.itemsize or any(map(_has_padding, fields))


def _broadcast(values, shape):
    """Return values broadcast as NumPy's assignment does: leading dimensions of length 1 may be too many."""
    if values.shape == shape:
        return values
    squeezed = values
    while squeezed.ndim > len(shape) and squeezed.shape[0] == 1:
        # With the ellipsis a 0-d array stays one: a scalar would lose the byte order.
        squeezed = squeezed[0, ...]
    try:
        return np.broadcast_to(squeezed, shape)
    except ValueError:
        raise ValueError(f"could not broadcast input array from shape {values.shape} into shape {shape}") from None
