"""Fields of structured elements: the fields that a selection names, and their bytes in an element."""
from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zcore.errors import SelectionError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class Part(NamedTuple):
    """The bytes of one field of an element. `dtype` is its type, which may be a subarray."""

    name: str
    offset: int
    nbytes: int
    dtype: np.dtype[Any]


def split_fields(selection: Any, dtype: np.dtype[Any]) -> tuple[str | list[str] | None, Any]:
    """Split the content of brackets into (fields, rest): None, one name, or a list of names; and everything else.

    As in NumPy, a name or a list of names may be the whole selection. As in zarr-python, names may be in a tuple with
    indices.

    >>> split_fields(("x", 0), np.dtype("i4,f8"))
    ('x', (0,))
    """
    if dtype.names is None:
        return None, selection
    if not isinstance(selection, tuple):
        names = _names(selection)
        return (None, selection) if names is None else (names, ())
    found = [_names(index) for index in selection]
    names = [names for names in found if names is not None]
    rest = tuple([index for index, names in zip(selection, found, strict=True) if names is None])
    if not names:
        return None, selection
    if len(names) == 1:
        return names[0], rest
    return [name for several in names for name in ([several] if isinstance(several, str) else several)], rest


def _names(index):
    """Return the field name or list of names that an index means in NumPy, else None."""
    if isinstance(index, str):
        return str(index)
    if isinstance(index, np.ndarray) and index.dtype.kind == "U" and index.ndim == 1:
        index = index.tolist()
    if isinstance(index, list) and index and all([isinstance(name, str) for name in index]):
        return list(index)
    return None


def fields_argument(fields: object, dtype: np.dtype[Any]) -> str | list[str] | None:
    """Return the keyword `fields` of zarr-python's methods in the form of `split_fields`; empty means all fields.

    Raises : SelectionError, if there are no such fields.
    """
    if fields is None or (isinstance(fields, (list, tuple)) and not fields):
        return None
    names = [fields] if isinstance(fields, str) else fields
    if not isinstance(names, (list, tuple)) or not all([isinstance(name, str) for name in names]):
        raise SelectionError(f"fields is {fields!r}, expected a str or a list of str")
    unknown = [name for name in names if name not in (dtype.names or ())]
    if unknown:
        raise SelectionError(f"the type {dtype} has no field {unknown[0]!r}")
    return fields if isinstance(fields, str) else list(names)


def type_of(fields: str | list[str], dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return NumPy's type of the selected fields: the type of one field, or a structure with gaps.

    Raises : ValueError, KeyError as NumPy, if there are no such fields.
    """
    if isinstance(fields, str):
        if fields not in dtype.names:
            raise ValueError(f"no field of name {fields}")
        return dtype[fields]
    return np.empty(0, dtype)[fields].dtype


def packed_type(fields: Iterable[str], dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of several fields without gaps, as in zarr-python."""
    return np.dtype([(name, dtype[name]) for name in fields])


def part_of(field: str, dtype: np.dtype[Any]) -> Part:
    """Return the `Part` of a field."""
    part, offset = dtype.fields[field][:2]
    return Part(field, offset, part.itemsize, part)
