"""The element types of ``core/ndarray`` and those of NumPy.

A datatype is a name (``float64``), ``[ascii, n]`` or ``[ucs4, n]``, or a list of fields that lie one behind the other;
a field is a datatype, or a mapping with ``name``, ``datatype``, ``byteorder`` and ``shape``.
"""
from __future__ import annotations

import sys
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from zcore.asdf.tree.tagged import shown
from zcore.errors import AsdfFormatError, UnsupportedError

if TYPE_CHECKING:
    from typing import Any, TypeGuard

MAX_FIELDS = 10_000  # on all levels: a list that is shared may stand for more than the text has
MAX_DEPTH = 32
MAX_NBYTES = 2**31 - 1  # of an element: the most that NumPy can hold

NAMES = {
    "int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8", "uint8": "u1", "uint16": "u2", "uint32": "u4",
    "uint64": "u8", "float16": "f2", "float32": "f4", "float64": "f8", "complex64": "c8", "complex128": "c16",
    "bool8": "b1",
}
_TEXTS = {"ascii": ("S", 1), "ucs4": ("U", 4)}
_ORDERS = {"big": ">", "little": "<"}
_NAME_OF = {np.dtype(code): name for name, code in NAMES.items()}


def dtype_of(datatype: object, byteorder: object = sys.byteorder) -> np.dtype[Any]:
    """Return the NumPy type of elements.

    Parameters
    ----------
    datatype : str or list
        As the tree has it.
    byteorder : {"big", "little"}

    Raises
    ------
    AsdfFormatError
        It is not a datatype.
    UnsupportedError
        It names a type that is not known.

    Notes
    -----
    ASDF standard, core/datatype-1.0.0. A list of a name and an integer is text, all other lists are fields. Fields
    without a name are called ``f0``, ``f1`` and so on, as in NumPy.

    Examples
    --------
    >>> dtype_of("int16", "big").str, dtype_of(["ucs4", 3], "little").str
    ('>i2', '<U3')
    >>> dtype_of([{"name": "a", "datatype": "int8"}, {"datatype": "float32", "shape": [2]}], "big")
    dtype([('a', 'i1'), ('f1', '>f4', (2,))])
    """
    return _dtype_of(datatype, byteorder, 0, count(1))


def _dtype_of(datatype, byteorder, depth, counter):
    order = _order_of(byteorder)
    if isinstance(datatype, str):
        code = NAMES.get(datatype)
        if code is None:
            if datatype in _TEXTS:
                raise AsdfFormatError(f"datatype {datatype!r}: expected a list with its length", member="datatype")
            raise UnsupportedError(f"datatype {datatype!r:.100} is not known", feature=f"datatype {datatype:.100}")
        return np.dtype(order + code)
    if not isinstance(datatype, list) or not datatype:
        raise AsdfFormatError(f"expected a datatype, found {shown(datatype)}", member="datatype")
    if len(datatype) == 2 and isinstance(datatype[0], str) and is_integer(datatype[1]) and datatype[0] in _TEXTS:
        code, width = _TEXTS[datatype[0]]
        if not 0 <= datatype[1] <= MAX_NBYTES // width:
            raise AsdfFormatError(f"datatype {shown(datatype)}: a length out of bounds", member="datatype")
        return np.dtype(f"{order}{code}{datatype[1]}")
    if depth >= MAX_DEPTH:
        raise AsdfFormatError(f"a datatype of more than {MAX_DEPTH} levels", member="datatype")
    return _structure_of([_field_of(item, i, byteorder, depth + 1, counter) for i, item in enumerate(datatype)])


def _field_of(item, i, byteorder, depth, counter):
    if next(counter) > MAX_FIELDS:
        raise AsdfFormatError(f"a datatype of more than {MAX_FIELDS} fields", member="datatype")
    if not isinstance(item, dict):
        return f"f{i}", _dtype_of(item, byteorder, depth, counter), ()
    if "datatype" not in item:
        raise AsdfFormatError(f"field {i} has no datatype", member="datatype")
    name = item.get("name", f"f{i}")
    if not isinstance(name, str):
        raise AsdfFormatError(f"field {i}: expected a name, found {shown(name)}", member="datatype")
    shape = item.get("shape", ())
    if is_integer(shape):
        shape = [shape]
    if not isinstance(shape, list | tuple) or not all(is_integer(n) and 0 <= n <= MAX_NBYTES for n in shape):
        raise AsdfFormatError(f"field {name!r:.100}: expected a shape, found {shown(shape)}", member="datatype")
    return name or f"f{i}", _dtype_of(item["datatype"], item.get("byteorder", byteorder), depth, counter), tuple(shape)


def _structure_of(fields):
    names = [name for name, _, _ in fields]
    if len(set(names)) < len(names):
        raise AsdfFormatError(f"a datatype with two fields of one name: {shown(names)}", member="datatype")
    n_bytes = 0
    for name, dtype, shape in fields:
        n_items = 1
        for n in shape:
            n_items *= n
        n_bytes += dtype.itemsize * n_items
        if n_bytes > MAX_NBYTES or len(shape) > 32:
            raise AsdfFormatError(f"field {name!r:.100}: elements of more than {MAX_NBYTES} bytes or 32 dimensions",
                                  member="datatype")
    return np.dtype([(name, dtype, shape) if shape else (name, dtype) for name, dtype, shape in fields])


def _order_of(byteorder):
    order = _ORDERS.get(byteorder) if isinstance(byteorder, str) else None
    if order is None:
        raise AsdfFormatError(f"expected byteorder big or little, found {shown(byteorder)}", member="byteorder")
    return order


def datatype_of(dtype: np.dtype[Any]) -> tuple[str | list[Any], str]:
    """Return (datatype, byteorder) of a NumPy type, as the tree has them.

    Raises
    ------
    UnsupportedError
        ASDF has no such type, or the fields do not lie one behind the other.

    >>> datatype_of(np.dtype(">f8")), datatype_of(np.dtype("S5")), datatype_of(np.dtype("?"))
    (('float64', 'big'), (['ascii', 5], 'big'), ('bool8', 'big'))
    """
    order = {"<": "little", "=": sys.byteorder}.get(dtype.byteorder, "big")
    if dtype.names is not None:
        if packed(dtype) != dtype:
            raise UnsupportedError(f"{dtype}: fields of an ASDF array lie one behind the other",
                                   feature="padded structured types")
        fields = []
        for name in dtype.names:
            base, shape = dtype[name].base, dtype[name].shape
            datatype, byteorder = datatype_of(base)
            field = {"name": name, "datatype": datatype, "byteorder": byteorder}
            if shape:
                field["shape"] = list(shape)
            fields.append(field)
        return fields, sys.byteorder
    if dtype.kind in "SU":
        return ["ascii", dtype.itemsize] if dtype.kind == "S" else ["ucs4", dtype.itemsize // 4], order
    name = _NAME_OF.get(dtype.newbyteorder("="))
    if name is None:
        raise UnsupportedError(f"ASDF has no datatype for {dtype}", feature=f"datatype {dtype}")
    return name, order


def packed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of the same fields without gaps between them."""
    if dtype.subdtype is not None:
        return np.dtype((packed(dtype.base), dtype.shape))
    if dtype.names is None:
        return dtype
    return np.dtype([(name, packed(dtype[name])) for name in dtype.names])


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether a value of the tree is an integer and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool)
