"""NumPy data types in Zarr documents: a typestr such as ``"<i4"``, or a list of fields.

This is the `descr` of NumPy's array interface as JSON: ``[["t", "<M8[ns]"], ["v", ">f4", [2, 2]]]``. A field has a name
or ``[title, name]``, a type (a typestr or again a list) and a shape. A field without a name, as in ``["", "|V3"]``, is
padding. `__zmeta__` and Zarr v2 share this form.

The text is checked before it is passed to `numpy.dtype`, which would accept ``"i4,f8"``, platform-dependent names and
items whose size overflows. Types without fixed, portable bytes (objects, variable strings, long double) are refused.
"""
from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from zcore.errors import MetadataError, UnsupportedError, warn
from zcore.model.foreign_dtypes import foreign_dtype, is_foreign, is_foreign_name

if TYPE_CHECKING:
    from typing import Any, Literal

_OLDEST_NUMPY = 2     # pip sees to it, unless it is told not to look at what a package needs
if int(np.__version__.partition(".")[0]) < _OLDEST_NUMPY:
    raise ImportError(f"zcore needs NumPy {_OLDEST_NUMPY}.0 or newer, and {np.__version__} is installed in "
                      f"{np.__path__[0]}: python -m pip install --upgrade numpy")

MAX_ITEM_NBYTES = 2**24  # numpy lets structures overflow at 2**31 silently; no useful element is larger

_TYPESTR = re.compile(
    r"([<>|=]?)(?:([biufc])([1-9][0-9]?)|([SUV])(0|[1-9][0-9]{0,9})|([mM])8(?:\[([1-9][0-9]{0,9})?([a-zA-Z]{1,7})\])?)",
    re.ASCII,
)
_SIZES = {"b": (1,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8), "c": (8, 16)}
_UNITS = frozenset(("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "generic"))
_NAMES = {
    "bool": "|b1", "int8": "|i1", "uint8": "|u1", "int16": "i2", "int32": "i4", "int64": "i8", "uint16": "u2",
    "uint32": "u4", "uint64": "u8", "float16": "f2", "float32": "f4", "float64": "f8", "complex64": "c8",
    "complex128": "c16",
}


@lru_cache(maxsize=256)
def _canonical(text):
    """Return the type of a typestr, or None if it has several bytes and no byte order."""
    match = _TYPESTR.fullmatch(text)
    if match is None:
        raise _unsupported(text)
    order, number, size, flexible, length, time, factor, unit = match.groups()
    multibyte = True
    if number:
        if int(size) not in _SIZES[number]:
            raise _unsupported(text)
        multibyte = int(size) > 1
    elif flexible:
        if int(length) * (4 if flexible == "U" else 1) > MAX_ITEM_NBYTES:
            raise _oversized(text)
        multibyte = flexible == "U" and int(length) > 0
    else:
        if time == "M" and unit in (None, "generic"):
            raise ValueError(f"{text!r} has no unit")
        if unit is not None and (unit not in _UNITS or int(factor or 1) > 2**31 - 1 or (factor and unit == "generic")):
            raise ValueError(f"{text!r} has a unit that numpy does not know")
    if multibyte and order not in ("<", ">"):
        return None
    return np.dtype(text)


def _unsupported(text):
    return UnsupportedError(f"zcore does not know the data type {_shortened(text)}", feature=f"data type {text[:60]}")


def _oversized(what):
    return UnsupportedError(f"an item of {what} is larger than 16 MiB", feature="items larger than 16 MiB")


def _shortened(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def from_typestr(text: str, default_order: Literal["<", ">"] | None = None) -> np.dtype[Any]:
    """Return the type of a typestr, with byte order.

    Parameters
    ----------
    text : str
        Such as ``"<i4"``, ``"|S10"``, ``"<U5"`` (characters), ``"<M8[25s]"``.
    default_order : {"<", ">"}, optional
        Byte order of types of several bytes without one (``"i4"``, ``"=i4"``, ``"int32"``), with a warning. Without it,
        these types are a ValueError.

    Raises
    ------
    ValueError
        If the byte order, or the unit of a date, is missing.
    UnsupportedError
        If it is no type of fixed, portable size, or larger than 16 MiB.
    """
    dtype = _canonical(_NAMES.get(text, text))
    if dtype is not None:
        return dtype
    if default_order is None:
        raise ValueError(f"data type {text!r} does not say its byte order")
    warn(f"data type {text!r} does not say its byte order; {default_order!r} is assumed")
    return _canonical(default_order + _NAMES.get(text, text).lstrip("=|"))


def from_descr(descr: object, default_order: Literal["<", ">"] | None = None) -> np.dtype[Any]:
    """Return the type of a typestr or a list of fields; see `from_typestr`.

    Raises : ValueError, UnsupportedError as `from_typestr`; ValueError too if a field is malformed or named twice, or
    if there is no field.
    """
    if type(descr) is str:
        return from_typestr(descr, default_order)
    if type(descr) is not list:
        raise ValueError(f"a data type is a string or a list of fields, not {_shortened(descr)}")
    names, formats, offsets, titles = [], [], [], []
    offset = 0
    for field in descr:
        if type(field) is not list or len(field) not in (2, 3):
            raise ValueError(f"a field is [name, type] or [name, type, shape], not {_shortened(field)}")
        title, name = field[0] if type(field[0]) is list and len(field[0]) == 2 else (None, field[0])
        if type(name) is not str or not (title is None or type(title) is str):
            raise ValueError(f"the name of a field is a string or [title, name], not {_shortened(field[0])}")
        base = from_descr(field[1], default_order)
        shape = _subarray_shape(field[2]) if len(field) == 3 else ()
        nbytes = base.itemsize
        for length in shape:
            nbytes *= length
            if nbytes > MAX_ITEM_NBYTES:
                # Computing the whole product of a hostile shape could take hours.
                break
        if offset + nbytes > MAX_ITEM_NBYTES:
            raise _oversized(_shortened(name))
        if name:
            names.append(name)
            formats.append((base, shape) if shape else base)
            offsets.append(offset)
            titles.append(title)
        elif title is not None or shape or base.kind != "V" or base.names is not None:
            raise ValueError(f"a field without a name is padding of type '|V...', not {_shortened(field[1])}")
        offset += nbytes
    if not names:
        raise ValueError("a structured data type has at least one named field")
    try:
        return np.dtype(
            {"names": names, "formats": formats, "offsets": offsets, "titles": titles, "itemsize": offset}
        )
    except (ValueError, TypeError, RuntimeError) as exc:
        raise ValueError(f"the fields do not form a data type: {exc}") from exc


def _subarray_shape(shape):
    lengths = [shape] if type(shape) is int else shape
    if type(lengths) is not list or not all(type(length) is int and length >= 1 for length in lengths):
        raise ValueError(f"the shape of a field is a list of integers >= 1, not {_shortened(shape)}")
    return tuple(lengths)


def to_descr(dtype: np.dtype[Any]) -> str | list[list[Any]]:
    """Return the typestr of a type, or the list of its fields; the inverse of `from_descr`.

    Raises
    ------
    UnsupportedError
        If the type has no fixed, portable bytes: objects, variable strings, long double.
    ValueError
        If its fields overlap or do not follow each other in memory. Assignment between structures follows the order of
        fields, so the order must be kept.
    """
    if dtype.names is None:
        return _to_typestr(dtype)
    descr = []
    end = 0
    for name in dtype.names:
        base, offset, *title = dtype.fields[name]
        if offset < end:
            raise ValueError(f"field {name!r} of {dtype!r} overlaps the field before it or lies ahead of it")
        if offset > end:
            descr.append(["", f"|V{offset - end}"])
        end = offset + base.itemsize
        base, shape = base.subdtype or (base, ())
        label = [title[0], name] if title else name
        descr.append([label, to_descr(base), list(shape)] if shape else [label, to_descr(base)])
    if not descr:
        raise ValueError("a structured data type has at least one named field")
    if dtype.itemsize > end:
        descr.append(["", f"|V{dtype.itemsize - end}"])
    return descr


def _to_typestr(dtype):
    if dtype.subdtype is not None:
        raise ValueError(f"{dtype!r} is a subarray type: append its shape to the array's")
    if is_foreign(dtype):
        raise UnsupportedError(f"only Zarr v3 has the data type {dtype}", feature=f"data type {dtype}")
    text = dtype.str
    if dtype.kind not in "biufcSUVmM" or (dtype.kind in "fc" and dtype.itemsize not in _SIZES[dtype.kind]):
        raise _unsupported(str(dtype))
    if dtype.kind == "M" and "[" not in text:
        raise MetadataError(f"{dtype!r} has no unit, which only Zarr v3 can store: name one, such as "
                            f"dtype={text + '[s]'!r}", member="dtype")
    return text


def byte_order(dtype: np.dtype[Any]) -> str | None:
    """Return ``"little"``, ``"big"``, or None for single bytes and for structures, whose fields have their own."""
    return {"<": "little", ">": "big"}.get(dtype.str[0])


def numpy_dtype(dtype: Any) -> np.dtype[Any]:
    """Return `numpy.dtype` of what a caller names as a type; its error names it, too."""
    if type(dtype) is str and is_foreign_name(dtype):
        return foreign_dtype(dtype)     # NumPy knows it only once ml_dtypes is imported
    try:
        return np.dtype(dtype)
    except (TypeError, ValueError) as error:
        error.args = (f"dtype is {dtype!r:.60}: {error}",)
        raise


def plain_dtype(dtype: Any) -> Any:
    """Return what a caller names as a type; for a data type of zarr-python, what NumPy has for it.

    Its objects are `bytes` of any length.
    """
    if isinstance(dtype, type) or not hasattr(dtype, "to_native_dtype"):
        return dtype
    native = dtype.to_native_dtype()
    return bytes if native.kind == "O" else native


def is_text(dtype: object) -> bool:
    """Whether the caller's type is text of any length: a type of Python or NumPy without a length.

    For NumPy, ``str`` is text of no characters, which no user wants to store; zarr-python handles it like this.

    >>> is_text(str), is_text("str"), is_text(np.dtype(str)), is_text("U5"), is_text("<U0")
    (True, True, True, False, False)
    """
    return dtype is str or (isinstance(dtype, str) and dtype in ("str", "string")) or (
        isinstance(dtype, np.dtype) and dtype.kind == "U" and dtype.itemsize == 0)


def is_bytes(dtype: object) -> bool:
    """Whether the caller's type is bytes of any length; see `is_text`.

    >>> is_bytes(bytes), is_bytes("bytes"), is_bytes("S5"), is_bytes("S")
    (True, True, False, False)
    """
    return dtype is bytes or (isinstance(dtype, str) and dtype in ("bytes", "variable_length_bytes"))
