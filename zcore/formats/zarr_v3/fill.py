"""Fill values of Zarr v3 documents: JSON to the bytes of one item and back, without a bit lost.

Zarr v3 core, "Data types", "Permitted fill values"; zarr-extensions, "data-types":

==========================  =====================================================================================
bool, integers              true and false; integers in range; (read only) 0 and 1 as bool, 1.0 and 1e3
floats                      a number, "NaN", "Infinity", "-Infinity", or the bits as "0x…", sign first; (read only)
                            the bare tokens NaN and Infinity
complex                     a list of two such
dates and durations         an integer; "NaT" is -2**63
fixed_length_utf32, string  text
null_terminated_bytes       the bytes in base64, without trailing zeros
raw_bytes, bytes            the bytes in base64, or (read only) as a list of integers
r8, r16, …                  the bytes as a list of integers, or (read only) in base64
struct                      an object of every field; in the older `structured` also the packed bytes in base64
==========================  =====================================================================================

"NaN" is one pattern of bits: sign 0, quiet, payload 0. Every other NaN is written as its bits, and never becomes a
Python float, which would make a signalling NaN quiet.
"""
from __future__ import annotations

import binascii
from typing import TYPE_CHECKING

import numpy as np

from zcore.formats.json_documents import shown, whole
from zcore.model.fill_value import fill_bytes, fill_scalar, in_order_of_bits, real_bytes, real_to_json
from zcore.model.foreign_dtypes import component, is_foreign

if TYPE_CHECKING:
    from typing import Any


def parse_fill(dtype: np.dtype[Any], value: object) -> tuple[Any, bytes]:
    """Return `(fill_value, raw)` for the fill value in a document: the scalar, and its bytes as an item.

    Items of varying length have no such bytes; `raw` is then ``b""``.

    Raises : ValueError, if the type has no such value.
    """
    if dtype.kind == "T":
        return _text(value), b""
    if dtype.kind == "O":
        return _binary(value), b""
    raw = _item(dtype, value)
    return fill_scalar(dtype, raw), raw


def render_fill(dtype: np.dtype[Any], fill_value: Any, raw: bytes, name: str | dict[str, Any]) -> Any:
    """Return the JSON value for a fill value.

    Parameters
    ----------
    dtype : numpy.dtype
    fill_value : object
        Used if items vary in length.
    raw : bytes
        The item; used otherwise.
    name : str or dict
        The name of the type in the document.
    """
    if dtype.kind == "T":
        return _text(fill_value)
    if dtype.kind == "O":
        return _base64(fill_value)
    if dtype.names is not None:
        fields = zip(dtype.names, name["configuration"]["fields"], strict=True)
        return {label: render_fill(dtype.fields[label][0], None, _part(dtype, label, raw), field["data_type"])
                for label, field in fields}
    kind = dtype.kind
    if (part := component(dtype)) is not None:
        half = len(raw) // 2
        return [_render_real(part, raw[:half]), _render_real(part, raw[half:])]
    if kind == "f" or is_foreign(dtype):
        return _render_real(dtype, raw)
    if kind == "V":
        return list(raw) if type(name) is str else _base64(raw)
    if kind == "S":
        return _base64(raw.rstrip(b"\0"))
    scalar = fill_scalar(dtype, raw)
    return int(scalar.view("i8")) if kind in "mM" else scalar.item()


def _item(dtype, value):
    """Return the bytes of a fill value as an item of a type of fixed size."""
    if dtype.names is not None:
        return _structure(dtype, value)
    kind = dtype.kind
    if (part := component(dtype)) is not None:
        if type(value) is not list or len(value) != 2:
            raise ValueError(f"expected a list of two numbers, found {shown(value)}")
        return real_bytes(part, value[0]) + real_bytes(part, value[1])
    if is_foreign(dtype):
        if dtype.name.startswith(("int", "uint")):
            return fill_bytes(dtype, _typed(whole(value), int, "an integer"))
        return real_bytes(dtype, value)
    if kind == "f":
        return real_bytes(dtype, value)
    if kind == "b":
        if type(value) is int and value in (0, 1):
            value = bool(value)
        return b"\1" if _typed(value, bool, "true or false") else b"\0"
    if kind in "iu":
        return fill_bytes(dtype, _typed(whole(value), int, "an integer"))
    if kind in "mM":
        return fill_bytes(dtype, -2**63 if value == "NaT" else _typed(value, int, "an integer or 'NaT'"))
    if kind == "U":
        return fill_bytes(dtype, _typed(value, str, "a string"))
    raw = _binary(value)
    if kind == "V" and len(raw) != dtype.itemsize:
        raise ValueError(f"expected {dtype.itemsize} bytes, found {len(raw)}")
    return fill_bytes(dtype, raw)


def _typed(value, expected, words):
    if type(value) is not expected:
        raise ValueError(f"expected {words}, found {shown(value)}")
    return value


def _text(value):
    """Return text, if UTF-8 can encode it: half of a surrogate pair cannot be encoded."""
    if isinstance(value, str) and not any(["\ud800" <= character <= "\udfff" for character in value]):
        return str(value)
    raise ValueError(f"expected a string of whole characters, found {shown(value)}")


def _binary(value):
    """Return the bytes from base64, or from a list of their numbers."""
    if type(value) is str:
        try:
            return binascii.a2b_base64(value, strict_mode=True)
        except ValueError as exc:
            raise ValueError(f"expected bytes in base64, found {shown(value)} ({exc})") from exc
    if type(value) is not list or not all([type(byte) is int and 0 <= byte <= 255 for byte in value]):
        raise ValueError(f"expected bytes in base64, or a list of integers from 0 to 255, found {shown(value)}")
    return bytes(value)


def _base64(raw):
    return binascii.b2a_base64(raw, newline=False).decode("ascii")


def _render_real(dtype, raw):
    scalar = fill_scalar(dtype, raw)
    if is_foreign(dtype) and dtype.name.startswith(("int", "uint")):
        return int(scalar)
    if scalar != scalar and raw != fill_bytes(dtype, float("nan")):
        return "0x" + in_order_of_bits(dtype, raw).hex()
    return real_to_json(scalar)


def _structure(dtype, value):
    if type(value) is str:
        raw = _binary(value)
        if len(raw) != dtype.itemsize:
            raise ValueError(f"expected the {dtype.itemsize} bytes of an item, found {len(raw)}")
        return raw
    if type(value) is not dict or value.keys() != set(dtype.names):
        raise ValueError(f"expected an object of the fields {', '.join(dtype.names):.60}, found {shown(value)}")
    parts = []
    for name in dtype.names:
        try:
            parts.append(_item(dtype.fields[name][0], value[name]))
        except ValueError as exc:
            raise ValueError(f"field {name!r:.60}: {exc}") from exc
    return b"".join(parts)


def _part(dtype, name, raw):
    base, offset = dtype.fields[name][:2]
    return raw[offset:offset + base.itemsize]
