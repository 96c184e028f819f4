"""Data types of Zarr v3 documents, and their NumPy types. The byte order comes from the `bytes` codec.

Zarr v3 core, "Data types", and zarr-extensions, "data-types":

====================================  ======================================================================
bool int8 … uint64 float16 … float64  NumPy's; complex64 = complex_float32, complex128 = complex_float64
r8, r16, …; raw_bytes                 void of so many bits, of `length_bytes`
null_terminated_bytes                 ``S`` of `length_bytes`
fixed_length_utf32                    ``U``, four bytes a character
numpy.datetime64, numpy.timedelta64   `unit` and `scale_factor`
struct, and the older structured      fields one after the other, without padding, all in one byte order
string; bytes                         of varying length: `numpy.dtypes.StringDType`; objects
bfloat16, int4, float8_e5m2, …        by the package ml_dtypes
====================================  ======================================================================

Some types have two names, and other readers may know only one of them, so a rewritten document keeps its name. New
documents never have `structured`. The object form of a name without configuration is never written.
"""
from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from zcore.errors import UnsupportedError
from zcore.formats.json_documents import shown
from zcore.formats.zarr_v3.extensions import check_members, parse_extension
from zcore.model.dtypes import MAX_ITEM_NBYTES, is_text, numpy_dtype
from zcore.model.foreign_dtypes import foreign_dtype, foreign_name, is_foreign, is_foreign_name

if TYPE_CHECKING:
    from typing import Any

_NUMBERS = {
    "bool": "b1", "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8", "uint8": "u1", "uint16": "u2",
    "uint32": "u4", "uint64": "u8", "float16": "f2", "float32": "f4", "float64": "f8", "complex64": "c8",
    "complex128": "c16", "complex_float32": "c8", "complex_float64": "c16",
}
_NUMBER_NAMES = {
    code: name for name, code in _NUMBERS.items() if not name.startswith("complex_")
}
_BYTES_NAMES = ("bytes", "variable_length_bytes", "binary")
_FIXED = {"raw_bytes": "V", "null_terminated_bytes": "S", "fixed_length_utf32": "U"}
_TIMES = {"numpy.datetime64": "M8", "numpy.timedelta64": "m8"}
_UNITS = frozenset(("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "μs", "ns", "ps", "fs", "as", "generic"))
_RAW_BITS = re.compile(r"r([1-9][0-9]{0,11})", re.ASCII)


def parse_data_type(value: object, byte_order: str) -> tuple[np.dtype[Any], str | dict[str, Any]]:
    """Return `(dtype, name)` of the data type `value` of a document.

    Parameters
    ----------
    value : str or dict
        A name or an extension object.
    byte_order : {"<", ">"}
        Of items of several bytes.

    Returns
    -------
    dtype : numpy.dtype
    name : str or dict
        `value` for rewriting the document.

    Raises
    ------
    ValueError
        If a rule is broken.
    UnsupportedError
        If the type is not known, or needs a package that is missing.
    """
    if type(value) is str and (found := _plain(value, byte_order)) is not None:
        return found, value
    name, configuration = parse_extension(value)
    if name in _FIXED:
        check_members(name, configuration, ("length_bytes",))
        return _fixed(name, configuration["length_bytes"], byte_order), {"name": name, "configuration": configuration}
    if name in _TIMES:
        check_members(name, configuration, ("unit", "scale_factor"))
        return _time(name, **configuration, byte_order=byte_order), {"name": name, "configuration": configuration}
    if name in ("struct", "structured"):
        check_members(name, configuration, ("fields",))
        return _struct(configuration["fields"], byte_order, pairs=name == "structured")
    dtype = _plain(name, byte_order)
    if dtype is None:
        raise UnsupportedError(f"zcore does not know the data type {name!r:.60}", feature=f"data type {name[:60]}")
    check_members(name, configuration, ())
    return dtype, name


@lru_cache(maxsize=256)
def _plain(name, byte_order):
    """Return the type for a name without configuration, or None if there is no such type."""
    if name in _NUMBERS:
        return np.dtype(byte_order + _NUMBERS[name])
    if name == "string":
        return np.dtypes.StringDType()
    if name in _BYTES_NAMES:
        return np.dtype(object)
    if is_foreign_name(name):
        return foreign_dtype(name, byte_order)
    if (bits := _RAW_BITS.fullmatch(name)) is not None:
        if int(bits[1]) % 8:
            raise ValueError(f"expected a multiple of 8 bits, found {name!r}")
        return _sized("V", int(bits[1]) // 8)
    if re.fullmatch("r[0-9]*", name, re.ASCII):
        raise ValueError(f"expected 'r' and a number of bits without leading zeros, found {name!r:.60}")
    return None


def _sized(code, nbytes, byte_order="|"):
    if nbytes > MAX_ITEM_NBYTES:
        raise UnsupportedError(f"items of {nbytes} bytes", feature="items larger than 16 MiB")
    return np.dtype(f"{byte_order}{code}{nbytes // 4 if code == 'U' else nbytes}")


def _fixed(name, length_bytes, byte_order):
    step = 4 if name == "fixed_length_utf32" else 1
    if type(length_bytes) is not int or length_bytes < 1 or length_bytes % step or length_bytes > 2**63:
        multiple = "a multiple of 4" if step == 4 else "an integer >= 1"
        raise ValueError(f"{name!r}: expected {multiple} as 'length_bytes', found {shown(length_bytes)}")
    return _sized(_FIXED[name], length_bytes, byte_order if step == 4 else "|")


def _time(name, unit, scale_factor, byte_order):
    if type(unit) is not str or unit not in _UNITS:
        raise ValueError(f"{name!r}: expected one of {', '.join(sorted(_UNITS))} as 'unit', found {shown(unit)}")
    if type(scale_factor) is not int or not 1 <= scale_factor < 2**31:
        raise ValueError(f"{name!r}: expected an integer from 1 to 2**31 - 1 as 'scale_factor', found "
                         f"{shown(scale_factor)}")
    if unit == "generic":
        if scale_factor != 1:
            raise ValueError(f"{name!r}: expected 1 as 'scale_factor' of the unit 'generic', found {scale_factor}")
        return np.dtype(byte_order + _TIMES[name])
    return np.dtype(f"{byte_order}{_TIMES[name]}[{scale_factor}{unit.replace('μ', 'u')}]")


def _struct(fields, byte_order, pairs):
    """Return `(dtype, name)` of a structure; with `pairs`, its fields may be ``[name, type]`` as in older documents."""
    if type(fields) is not list or not fields:
        raise ValueError(f"expected a list of at least one field, found {shown(fields)}")
    parts, names = [], []
    for field in fields:
        if pairs and type(field) is list and len(field) == 2:
            field = {"name": field[0], "data_type": field[1]}
        if type(field) is not dict or field.keys() != {"name", "data_type"}:
            raise ValueError(f"expected a field of 'name' and 'data_type', found {shown(field)}")
        label = field["name"]
        if type(label) is not str or not label:
            raise ValueError(f"expected a string that is not empty as the name of a field, found {shown(label)}")
        dtype, name = parse_data_type(field["data_type"], byte_order)
        if dtype.kind in "TO":
            raise ValueError(f"field {label!r:.60}: expected a type of fixed size, found {shown(name)}")
        parts.append((label, dtype))
        names.append({"name": label, "data_type": name})
    if len({label for label, _ in parts}) != len(parts):
        raise ValueError("expected fields of different names, found one twice")
    if sum([dtype.itemsize for _, dtype in parts]) > MAX_ITEM_NBYTES:
        raise UnsupportedError("a structure of more than 16 MiB", feature="items larger than 16 MiB")
    return np.dtype(parts), {"name": "struct", "configuration": {"fields": names}}


def render_data_type(dtype: np.dtype[Any]) -> str | dict[str, Any]:
    """Return the default name of a type in documents.

    Raises
    ------
    UnsupportedError
        If Zarr v3 has no name for it: long double, a field that is an array.
    ValueError
        If a structure has padding or titles, which are not stored, or its fields differ in byte order.
    """
    kind = dtype.kind
    if dtype.names is not None:
        stored_byte_order(dtype)
        return {"name": "struct", "configuration": {"fields": _fields(dtype)}}
    if dtype.subdtype is not None:
        raise UnsupportedError("Zarr v3 has no fields that are arrays; Zarr v2 has (zarr_format=2)",
                               feature="fields that are arrays in Zarr v3")
    if is_foreign(dtype):
        return foreign_name(dtype)
    if kind == "T":
        return "string"
    if kind == "O":
        return "bytes"
    if kind in "SUV" and dtype.itemsize:
        name = next(name for name, code in _FIXED.items() if code == kind)
        return {"name": name, "configuration": {"length_bytes": dtype.itemsize}}
    if kind in "mM":
        unit, scale_factor = np.datetime_data(dtype)
        name = "numpy.datetime64" if kind == "M" else "numpy.timedelta64"
        return {"name": name, "configuration": {"unit": unit, "scale_factor": scale_factor}}
    name = _NUMBER_NAMES.get(dtype.str[1:])
    if name is None:
        raise UnsupportedError(f"Zarr v3 has no data type {dtype.str}", feature=f"data type {dtype.str}")
    return name


def _fields(dtype):
    end, fields = 0, []
    for name in dtype.names:
        base, offset, *title = dtype.fields[name]
        if offset != end or title:
            raise ValueError(f"field {name!r} of {dtype!r}: Zarr v3 stores fields without padding and without titles")
        end += base.itemsize
        fields.append({"name": name, "data_type": render_data_type(base)})
    if end != dtype.itemsize:
        raise ValueError(f"{dtype!r} ends in padding, which Zarr v3 does not store")
    return fields


def stored_byte_order(dtype: np.dtype[Any]) -> str | None:
    """Return ``"<"`` or ``">"``, the byte order of all items of several bytes; None, if there are none.

    Raises : ValueError, if fields differ: a chunk has one byte order.
    """
    if dtype.names is not None:
        byte_orders = {stored_byte_order(dtype.fields[name][0]) for name in dtype.names} - {None}
        if len(byte_orders) > 1:
            raise ValueError(f"the fields of {dtype!r} differ in byte order, which Zarr v3 does not store")
        return byte_orders.pop() if byte_orders else None
    if dtype.subdtype is not None:
        return stored_byte_order(dtype.subdtype[0])
    if dtype.kind in "TOS" or dtype.itemsize == 1 or (dtype.kind == "V" and not is_foreign(dtype)):
        return None
    return dtype.str[0]


def packed(dtype: np.dtype[Any], byte_order: str | None = None) -> np.dtype[Any]:
    """Return a structure without padding and in one byte order, by default little-endian if its fields differ.

    Any other type only gets the byte order, if there is one.
    """
    if byte_order is None:
        try:
            byte_order = stored_byte_order(dtype) or "<"
        except ValueError:
            byte_order = "<"
    if dtype.names is None:
        return dtype if stored_byte_order(dtype) in (None, byte_order) else dtype.newbyteorder(byte_order)
    for name in dtype.names:
        if len(dtype.fields[name]) > 2:
            raise ValueError(f"field {name!r} has a title, which Zarr v3 does not store")
    return np.dtype([(name, packed(dtype.fields[name][0], byte_order)) for name in dtype.names])


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the data type of arrays for the type that a caller names; see `named_dtype`."""
    return named_dtype(dtype)[0]


def named_dtype(dtype: Any) -> tuple[np.dtype[Any], str | dict[str, Any] | None]:
    """Return the result of `_named_dtype`, which programs ask for again and again by the same name."""
    return _dtype_of_name(dtype) if type(dtype) is str else _named_dtype(dtype)


def _named_dtype(dtype):
    """Return `(dtype, name)` for a name or an object of Zarr v3, or for an argument of `numpy.dtype`.

    `name` is the name or object of Zarr v3, else None. `str` is text and `bytes` are bytes, both of varying length; see
    `is_text`.

    Raises
    ------
    UnsupportedError, ValueError, TypeError
        If there is no such type, or Zarr v3 cannot store it.
    """
    if dtype is bytes:
        return np.dtype(object), None
    native = np.dtype("=i2").str[0]
    if type(dtype) is dict or (type(dtype) is str and _plain(dtype, native) is not None):
        return parse_data_type(dtype, native)
    if is_text(dtype):
        return np.dtypes.StringDType(), None
    dtype = numpy_dtype(dtype)
    if dtype.kind == "T":
        return np.dtypes.StringDType(), None  # without the missing value that the given type may have
    if dtype.hasobject:
        raise ValueError("objects are no data type of Zarr v3; expected 'string', 'bytes' or a type of fixed size")
    if dtype.itemsize == 0:
        raise ValueError(f"data type {dtype.str!r} has items of no bytes; text needs a length, such as 'U10'")
    return packed(dtype), None


_dtype_of_name = lru_cache(maxsize=256)(_named_dtype)
