"""The fill value: the value of elements never written, as a NumPy scalar, as bytes, and as a JSON number.

`fill_bytes` stores a value as `numpy.ndarray.fill` does, with two differences: a number that the type cannot hold is
refused instead of wrapped or truncated, and in a structure every field gets the value. Chunks are filled from these
bytes and compared with them; they distinguish -0.0 and the payloads of NaN, and equal values compare equal.

`real_to_json` and `real_from_json` convert numbers for all formats: ``"NaN"``, ``"Infinity"`` and ``"-Infinity"`` are
strings, because JSON has no such numbers.
"""
from __future__ import annotations

import math
import re
import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from zcore.buffers import is_masked
from zcore.model.foreign_dtypes import component, foreign_bytes, is_complex, is_foreign

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_SPECIAL = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_REAL = {2: "e", 4: "f", 8: "d"}
_ISO_DATE = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d(:\d\d(:\d\d(\.\d{1,18})?)?)?)?)?)?", re.ASCII)


def fill_scalar(dtype: np.dtype[Any], raw: bytes) -> Any:
    """Return the NumPy scalar of the `dtype.itemsize` bytes `raw`, which are in the type's own byte order."""
    return np.ndarray((), dtype, raw)[()]


def fill_bytes(dtype: np.dtype[Any], value: Any, cut_text: bool = False) -> bytes:
    """Return the bytes of `value` as an item of `dtype`, in its byte order.

    Parameters
    ----------
    dtype : numpy.dtype
        Any type of fixed size.
    value : object
        None (zeros), a Python or NumPy number, bool, str, bytes or date. For a structure also a tuple or `numpy.void`
        of its fields; a single value is used for every field.
    cut_text : bool
        Cut text that is longer than the item, as NumPy does, instead of refusing it.

    Raises
    ------
    ValueError
        If the type does not hold the value: out of range, a fraction for an integer, text that is too long.

    Notes
    -----
    A number stored as text becomes its digits: 0 in an ``S10`` is ``b"0"``, not the empty string.

    Examples
    --------
    >>> fill_bytes(np.dtype(">i2"), 258), fill_bytes(np.dtype("S3"), 0)
    (b'\\x01\\x02', b'0\\x00\\x00')
    """
    if value is None:
        return bytes(dtype.itemsize)
    if is_masked(value):
        raise _unfit(dtype, value, ": it is masked")
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.generic):
        if value.dtype == dtype or value.dtype.newbyteorder() == dtype:  # keeps the payload of a NaN
            return _assigned(dtype, (), value)
        if value.dtype.kind in "biufcSU" and not is_foreign(value.dtype):
            value = value.item()
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        if isinstance(value, (list, tuple, np.ndarray)):
            return _assigned(base, shape, value)
        return fill_bytes(base, value, cut_text) * math.prod(shape)
    if dtype.names is not None:
        return _fields_bytes(dtype, value, cut_text)
    try:
        return (_pack_foreign if is_foreign(dtype) else _PACK[dtype.kind])(dtype, value, cut_text)
    except (OverflowError, UnicodeError, struct.error) as exc:
        raise _unfit(dtype, value) from exc


@contextmanager
def naming_fill(dtype: np.dtype[Any], value: object) -> Iterator[None]:
    """Return a context manager in which an error is about the argument `fill_value` of a caller, and names it."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"fill_value is {_shown(value)} for the dtype {str(dtype):.100}: {error}") from error


def _unfit(dtype, value, reason=""):
    return ValueError(f"data type {dtype.str} cannot hold {_shown(value)}{reason}")


def _shown(value):
    shown = repr(value) if not isinstance(value, int) or abs(value) < 2**128 else "an integer beyond 2**128"
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _assigned(dtype, shape, value):
    item = np.zeros(shape, dtype)
    try:
        item[...] = value
    except (TypeError, ValueError, OverflowError) as exc:
        raise _unfit(dtype, value) from exc
    return item.tobytes()


def _fields_bytes(dtype, value, cut_text):
    if isinstance(value, np.void) and value.dtype.names is not None:
        value = tuple(value[name] for name in value.dtype.names)
    if not isinstance(value, tuple):
        value = (value,) * len(dtype.names)
    if len(value) != len(dtype.names):
        raise _unfit(dtype, value, f": it has {len(dtype.names)} fields")
    item = bytearray(dtype.itemsize)
    for name, part in zip(dtype.names, value, strict=True):
        base, offset = dtype.fields[name][:2]
        item[offset:offset + base.itemsize] = fill_bytes(base, part, cut_text)
    return bytes(item)


def _order(dtype):
    return "big" if dtype.str[0] == ">" else "little"


def _pack_bool(dtype, value, cut_text):
    if value not in (0, 1) or not isinstance(value, (int, float)):
        raise _unfit(dtype, value)
    return b"\1" if value else b"\0"


def _pack_integer(dtype, value, cut_text):
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int):
        raise _unfit(dtype, value)
    return value.to_bytes(dtype.itemsize, _order(dtype), signed=dtype.kind == "i")


def _pack_real(dtype, value, cut_text):
    if isinstance(value, str):
        value = real_from_json(value)
    if not isinstance(value, (int, float)):
        raise _unfit(dtype, value)
    return struct.pack(dtype.str[0] + _REAL[dtype.itemsize], value)


def _pack_complex(dtype, value, cut_text):
    if isinstance(value, str):
        value = real_from_json(value)
    if not isinstance(value, (int, float, complex)):
        raise _unfit(dtype, value)
    parts = (value.real, value.imag)
    return struct.pack(dtype.str[0] + 2 * _REAL[dtype.itemsize // 2], *parts)


def _pack_foreign(dtype, value, cut_text):
    if isinstance(value, str):
        value = real_from_json(value)
    elif isinstance(value, np.generic) and value.dtype.isbuiltin == 2:
        value = complex(value) if is_complex(value.dtype) else float(value)
    part = component(dtype)
    if not isinstance(value, (int, float) if part is None else (int, float, complex)):
        raise _unfit(dtype, value)
    if part is None:
        return foreign_bytes(dtype, value)
    return fill_bytes(part, value.real) + fill_bytes(part, value.imag)


def _pack_time(dtype, value, cut_text):
    """Store a count of units since the epoch; ``"NaT"`` is -2**63, as in NumPy."""
    if type(value) is int:
        return value.to_bytes(8, _order(dtype), signed=True)
    if type(value) is str:
        if value == "NaT":
            return (-2**63).to_bytes(8, _order(dtype), signed=True)
        if dtype.kind == "m" or not _ISO_DATE.fullmatch(value):
            raise _unfit(dtype, value)
        text, value = value, np.datetime64(value)
        if not str(value).startswith(text):
            # NumPy wraps a date whose seconds leave no room for its units.
            raise _unfit(dtype, text)
    if not isinstance(value, np.generic) or value.dtype.kind != dtype.kind:
        raise _unfit(dtype, value)
    converted = value.astype(dtype)
    if not np.isnat(value) and converted.astype(value.dtype) != value:
        raise _unfit(dtype, value, ": not a whole number of its units, or too many")
    return np.array(converted, dtype).tobytes()


def _pack_bytes(dtype, value, cut_text):
    raw = value if isinstance(value, bytes) else _text_of(dtype, value).encode("ascii")
    return _fitted(dtype, value, raw, cut_text)


def _pack_text(dtype, value, cut_text):
    codec = "utf-32-be" if dtype.str[0] == ">" else "utf-32-le"
    return _fitted(dtype, value, _text_of(dtype, value).encode(codec, "surrogatepass"), cut_text)


def _pack_void(dtype, value, cut_text):
    """Store raw bytes or ASCII text. The only allowed number is 0, all zeros (NumPy itself refuses any number)."""
    if type(value) is int and value == 0:
        return bytes(dtype.itemsize)
    if isinstance(value, np.void):
        value = value.tobytes()
    if not isinstance(value, (bytes, str)):
        raise _unfit(dtype, value)
    return _pack_bytes(dtype, value, cut_text)


def _text_of(dtype, value):
    if isinstance(value, (bool, int, float, complex)):
        return str(value)
    if not isinstance(value, str):
        raise _unfit(dtype, value)
    return value


def _fitted(dtype, value, raw, cut_text):
    if len(raw) > dtype.itemsize and not cut_text:
        raise _unfit(dtype, value, ": too long")
    return raw[:dtype.itemsize].ljust(dtype.itemsize, b"\0")


_PACK = {
    "b": _pack_bool, "i": _pack_integer, "u": _pack_integer, "f": _pack_real, "c": _pack_complex, "m": _pack_time,
    "M": _pack_time, "S": _pack_bytes, "U": _pack_text, "V": _pack_void,
}


def real_from_json(value: Any) -> float:
    """Return the number of a JSON number, or of one of the strings NaN, Infinity and -Infinity.

    Raises : ValueError, on anything else; `true` is not a number here.
    """
    if type(value) in (int, float):
        return value
    if type(value) is str and value in _SPECIAL:
        return _SPECIAL[value]
    raise ValueError(f"expected a number, 'NaN', 'Infinity' or '-Infinity', found {value!r:.60}")


def real_bytes(dtype: np.dtype[Any], value: object) -> bytes:
    """Return the bytes of a float from its JSON form: a number, or its bits, which are the same in both byte orders.

    Raises : ValueError, on anything else, or bits of another number of bytes.

    >>> real_bytes(np.dtype("<f4"), "0x7fc00001"), real_bytes(np.dtype(">f2"), 1)
    (b'\\x01\\x00\\xc0\\x7f', b'<\\x00')
    """
    if type(value) is str and value.startswith("0x"):
        digits = value[2:]
        if len(digits) == 2 * dtype.itemsize and set(digits) <= set("0123456789abcdefABCDEF"):
            return in_order_of_bits(dtype, bytes.fromhex(digits))
        raise ValueError(f"expected '0x' and {2 * dtype.itemsize} hexadecimal digits, found {value!r:.60}")
    return fill_bytes(dtype, real_from_json(value))


def in_order_of_bits(dtype: np.dtype[Any], raw: bytes) -> bytes:
    """Convert bytes between big-endian order and the type's own order."""
    return raw if dtype.str[0] == ">" else raw[::-1]


def real_to_json(scalar: Any) -> float | str:
    """Return the JSON form of a NumPy real: the shortest number that reads back as the same, or a string.

    NaN is "NaN" whatever its payload.
    """
    value = float(scalar)
    if value != value:
        return "NaN"
    if value in (_SPECIAL["Infinity"], _SPECIAL["-Infinity"]):
        return "Infinity" if value > 0 else "-Infinity"
    shortest = float(str(scalar))  # 0.1, where float(float32(0.1)) is 0.10000000149011612
    return shortest if type(scalar)(shortest) == scalar else value
