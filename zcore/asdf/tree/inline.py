"""Arrays whose elements are in the tree itself, as lists in lists."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from zcore.asdf.tree.tagged import TaggedScalar
from zcore.buffers import MAX_NDIM
from zcore.errors import AsdfFormatError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy.typing as npt

# Memory that one array takes while it is read, beside the tree: its elements and lists of them.
MAX_NBYTES = 3 << 26
# Each text takes as much as the longest one: so many bytes in all, or so many for each character that there is.
MAX_TEXT_NBYTES = 1 << 26
MAX_CHARACTER_NBYTES = 64

# An element takes at most this much besides itself: pointers in the lists of two levels, or of two copies.
_POINTERS_NBYTES = 24
_KINDS = (bool, int, float, complex)
_DTYPES = {bool: "?", int: "i8", float: "f8", complex: "c16"}


def array_of(data: object, dtype: np.dtype[Any] | None, shape: Sequence[int | str] | None,
             limit: int) -> npt.NDArray[Any]:
    """Return the array that lists in lists hold; masked where elements are null.

    Parameters
    ----------
    data : list
        As the tree has it; a single value is an array of no dimensions.
    dtype : numpy.dtype or None
        None: found from the values. Text makes it text as long as the longest; else any complex number, any floating
        point number, any integer decides, in this order; else it is bool.
    shape : tuple or None
        The expected shape; a first length of ``"*"`` fits any.
    limit : int
        Elements that there can be. Lists that are shared may stand for more than the text has.

    Raises
    ------
    AsdfFormatError
        Rows of different lengths, values of another type, another shape; or more than `MAX_NBYTES` of memory.

    Notes
    -----
    ASDF standard, core/ndarray, "data" and "datatype".

    Examples
    --------
    >>> array_of([[1, 2.5], [3, None]], None, None, 100)
    masked_array(
      data=[[1.0, 2.5],
            [3.0, --]],
      mask=[[False, False],
            [False,  True]],
      fill_value=1e+20)
    """
    is_record = dtype is not None and dtype.names is not None
    n_dims = None if shape is None else len(shape)
    found, items = _flat(data, dtype if is_record else None, n_dims, limit)
    if shape is not None:
        found = _fitted(found, tuple(shape))
    has_missing = any(item is None for item in items)
    if is_record and len(items) * _n_values(dtype) > limit:
        raise _too_many(limit)
    array = _converted(items, has_missing, dtype)
    if has_missing:
        missing = np.fromiter((item is None for item in items), "?", len(items))
        return np.ma.array(array.reshape(found), mask=missing.reshape(found))
    return array.reshape(found)


def _flat(data, record, n_dims, limit):
    """Return the shape of lists in lists, and their items in C order.

    With a structured type the innermost lists are its elements.
    """
    shape, items, n = [], [data], 1
    while isinstance(items[0], list) and not (n_dims == len(shape) if n_dims is not None and record is not None
                                              else record is not None and _is_record(items[0], record)):
        length = len(items[0])
        if len(shape) == MAX_NDIM:
            raise AsdfFormatError(f"inline data of more than {MAX_NDIM} dimensions", member="data")
        n *= max(1, length)
        if n > limit:
            raise _too_many(limit)
        _check_memory(n * _POINTERS_NBYTES)
        for item in items:
            if not isinstance(item, list) or len(item) != length:
                raise AsdfFormatError(f"inline data: expected rows of equal length, {length}", member="data")
        shape.append(length)
        items = [value for item in items for value in item]
        if not items:
            break
    return tuple(shape), items


def _too_many(limit):
    return AsdfFormatError(f"inline data of more elements than the tree has bytes, {limit}", member="data")


def _check_memory(n_bytes):
    if n_bytes > MAX_NBYTES:
        raise AsdfFormatError(f"inline data: expected elements that take at most {MAX_NBYTES} bytes of memory, found "
                              f"some {n_bytes}", member="data")


def _nbytes_of(n, dtype):
    """Return an upper bound of the memory that so many elements take while they are read."""
    n *= math.prod(dtype.shape)
    n_bytes = n * (_POINTERS_NBYTES + dtype.base.itemsize)
    # The fields of a record are read one after the other.
    return n_bytes + max([_nbytes_of(n, dtype.base[name]) for name in dtype.base.names or ()], default=0)


def _n_values(dtype):
    """Return how many values an element of a type has."""
    n = math.prod(dtype.shape)
    return n if dtype.base.names is None else n * sum([_n_values(dtype.base[name]) for name in dtype.base.names])


def _is_record(item, dtype):
    """Whether a list has the form of an element of a structured type."""
    return (isinstance(item, list) and len(item) == len(dtype.names)
            and all([_is_value(value, dtype[name]) for value, name in zip(item, dtype.names, strict=True)]))


def _is_value(value, dtype):
    if dtype.shape:
        return isinstance(value, list)
    if dtype.names is not None:
        return _is_record(value, dtype)
    return not isinstance(value, list)


def _fitted(found: tuple[int, ...], shape: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the shape that data have which were given one; of empty data only the first lengths are in the tree."""
    expected = (found[0] if found else 0, *shape[1:]) if shape[:1] == ("*",) else shape
    if found != expected and not (0 in found and 0 in expected and found == expected[:len(found)]):
        raise AsdfFormatError(f"inline data have the shape {list(found)}, the tree says {list(shape)}", member="shape")
    return expected


def _converted(items, has_missing, dtype):
    if dtype is None:
        dtype = _deduced(items)
    if dtype.kind in "SU":
        n_characters = sum(len(item) for item in items if isinstance(item, str))
        most = max(MAX_TEXT_NBYTES, MAX_CHARACTER_NBYTES * n_characters)
        if len(items) * dtype.itemsize > most:
            raise AsdfFormatError(f"inline data of {len(items) * dtype.itemsize} bytes, expected at most {most}",
                                  member="data")
    _check_memory(_nbytes_of(len(items), dtype))
    if dtype.names is not None:
        if has_missing:
            raise AsdfFormatError("inline data: records cannot be null", member="data")
        return _records(items, dtype)
    if has_missing:
        blank = "" if dtype.kind in "SU" else dtype.type(0).item()
        items = [blank if item is None else item for item in items]
    return _checked(items, dtype)


def _deduced(items):
    """Return the type of values that none is given for."""
    kinds = {type(item) for item in items if item is not None}
    if any(issubclass(kind, str) for kind in kinds):
        if not all(issubclass(kind, str) for kind in kinds):
            raise AsdfFormatError("inline data: text beside numbers", member="data")
        return np.dtype(f"U{max(1, max(len(item) for item in items if item is not None))}")
    for kind in reversed(_KINDS):
        if kind in kinds:
            _check_kinds(kinds, kind)
            if kind is int and any(not -2**63 <= item < 2**63 for item in items if item is not None):
                raise AsdfFormatError("inline data: an integer of more than 64 bits", member="data")
            return np.dtype(_DTYPES[kind])
    _check_kinds(kinds, bool)
    # The schema's default, which an empty list and one of nulls alone leave.
    return np.dtype("f8") if not kinds else np.dtype("?")


def _check_kinds(kinds, most):
    allowed = _KINDS[:_KINDS.index(most) + 1]
    if other := [kind for kind in kinds if kind not in allowed]:
        raise AsdfFormatError(f"inline data: expected numbers, found {other[0].__name__}", member="data")


def _checked(items, dtype):
    """Return values as elements of a type. Values that it cannot hold are refused, not rounded or cut."""
    kind, kinds = dtype.kind, {type(item) for item in items}
    if kind in "SU":
        if not all(issubclass(found, str) for found in kinds):
            raise AsdfFormatError("inline data: expected text", member="data")
        longest = max(map(len, items), default=0)
        if longest * (4 if kind == "U" else 1) > max(dtype.itemsize, 1):
            raise AsdfFormatError(f"inline data: text of {longest} characters, {dtype} holds fewer", member="data")
        if kind == "S" and not all(map(str.isascii, items)):
            raise AsdfFormatError("inline data: text that is not ASCII", member="data")
    else:
        most = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[kind]
        _check_kinds(kinds, most)
    try:
        array = np.array(items, dtype=dtype)
    except (OverflowError, TypeError, ValueError) as exc:
        raise AsdfFormatError(f"inline data do not fit {dtype}: {exc}", member="data") from exc
    return array


def _records(items, dtype):
    array = np.empty(len(items), dtype)
    for item in items:
        if not isinstance(item, list) or len(item) != len(dtype.names):
            raise AsdfFormatError(f"inline data: expected records of {len(dtype.names)} fields", member="data")
    for i, name in enumerate(dtype.names):
        base, shape = dtype[name].base, dtype[name].shape
        column = [item[i] for item in items]
        # The values of a field are as many as its type says, and have been counted.
        part = array_of(column, base, (len(items), *shape), max(1, len(items)) * max(1, _n_values(dtype[name])))
        if isinstance(part, np.ma.MaskedArray):
            raise AsdfFormatError("inline data: fields cannot be null", member="data")
        array[name] = part
    return array


def lists_of(array: npt.NDArray[Any]) -> Any:
    """Return the elements of an array as lists in lists, which a tree can hold; missing ones as None.

    >>> lists_of(np.array([(1, b"ab")], [("n", "i2"), ("name", "S2")]))
    [[1, 'ab']]
    """
    return _plain(array.tolist())


def _plain(value):
    if isinstance(value, np.ndarray):
        # `tolist` leaves the arrays in the fields of a record as they are.
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("ascii")
    return str(value) if isinstance(value, TaggedScalar) else value
