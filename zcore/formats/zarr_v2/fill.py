"""The fill value of Zarr v2 documents (v2.0, "Fill value encoding", and practice).

=====================  =======================================================================================
type                   JSON
=====================  =======================================================================================
any                    null: undefined, reads as zero, empty or, of ``m M``, as not a time
``b i u``              true or false, an integer
``f``                  a number, or "NaN", "Infinity", "-Infinity"
``c``                  ``[real, imaginary]``
``m M``                an integer, the count of units; not a time is -2**63
``S``                  Base64 of the bytes without the zeros at their end
``V``, structured      Base64 of all bytes of the item, every field in its own byte order
``U``                  a string
``O``, vlen-utf8       a string
``O``, vlen-bytes      Base64
``O``, other codecs    any JSON value
=====================  =======================================================================================

Values of other programs are read: 0 for empty text and bytes, 0 and 1 for truth values, whole floats for integers,
numbers as text ("0", by n5-zarr), "NaT", a single number for a complex one, the bare tokens NaN and Infinity.

netcdf-c writes the text itself for `S`, and the characters 0 to 9 as numbers. A value that is not Base64 of an item is
read as such text. Some values can be read both ways, such as "fill" and 0. They are Base64, as the format says, unless
the attribute ``_FillValue`` has the same value: netcdf-c writes both members alike. Other marks of netcdf-c prove
nothing, since a copy made by another program keeps them. Base64 of a whole item is longer than the item, so it cannot
be mistaken for text; see `text_bytes`.
"""
from __future__ import annotations

import re
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from typing import TYPE_CHECKING

from zcore.formats.json_documents import render_json, scalar_from_json, scalar_to_json
from zcore.model.fill_value import fill_bytes, real_to_json

if TYPE_CHECKING:
    from typing import Any

    import numpy as np

_NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,4})?", re.ASCII)


def parse_fill(dtype: np.dtype[Any], value: object) -> bytes:
    """Return the bytes of the fill value in a document.

    Raises : ValueError, if the type cannot have it.
    """
    kind = dtype.kind
    if value is None:
        # zarr-python 3 leaves out chunks that are all NaT, for dates, or all zero or empty, for other types.
        return fill_bytes(dtype, "NaT") if kind in "mM" else bytes(dtype.itemsize)
    if kind in "SV":
        try:
            raw = _from_base64(value)
            if len(raw) > dtype.itemsize:
                raise ValueError(f"expected at most {dtype.itemsize} bytes in Base64, found {len(raw)}")
        except ValueError:
            raw = text_bytes(dtype, value)
            if raw is None:
                raise
        return raw.ljust(dtype.itemsize, b"\0")
    if kind == "U":
        return fill_bytes(dtype, _text(value))
    if type(value) is str and kind in "iufc" and _NUMBER.fullmatch(value):
        value = float(value) if kind in "fc" or not value.lstrip("-").isdecimal() else int(value)
    return fill_bytes(dtype, scalar_from_json(dtype, value))


def text_bytes(dtype: np.dtype[Any], value: object) -> bytes | None:
    """Return the bytes of the fill value in a document if it is the text itself; None if it cannot be."""
    if dtype.kind != "S":
        return None
    if type(value) is int and 0 <= value <= 9 and dtype.itemsize == 1:
        value = str(value)
    raw = value.encode() if type(value) is str else None
    return None if raw is None or len(raw) > dtype.itemsize else raw.ljust(dtype.itemsize, b"\0")


def render_fill(dtype: np.dtype[Any], raw: bytes) -> Any:
    """Return the JSON value for the fill value of bytes `raw`, as zarr-python 2 writes it."""
    if dtype.kind == "S":
        return _to_base64(raw.rstrip(b"\0"))
    return _to_base64(raw) if dtype.kind == "V" else scalar_to_json(dtype, raw, _real)


def parse_object_fill(codec: str, value: Any) -> Any:
    """Return the element for the fill value of an array of objects; None is undefined.

    Parameters
    ----------
    codec : str
        The name of the codec that encodes objects.
    value : object
        From a document.

    Raises
    ------
    ValueError
        If the codec cannot encode it.
    """
    if value is None:
        return None
    if codec == "vlen-utf8":
        return _text(value)
    if codec == "vlen-bytes":
        return _from_base64(value)
    return value


def render_object_fill(codec: str, value: Any) -> Any:
    """Return the JSON value for an element of an array of objects.

    Raises : ValueError or TypeError, if the codec, or JSON, cannot encode it.
    """
    expected = {"vlen-utf8": str, "vlen-bytes": bytes}.get(codec)
    if value is None or expected is None:
        render_json({"fill_value": value})
        return value
    if not isinstance(value, expected):
        raise ValueError(f"expected a fill value of type {expected.__name__}, found {value!r:.60}")
    return _to_base64(value) if expected is bytes else str(value)


def _text(value):
    if type(value) is int and value == 0:
        return ""
    if type(value) is not str:
        raise ValueError(f"expected a string, found {value!r:.60}")
    return value


def _from_base64(value):
    try:
        return a2b_base64(_text(value), strict_mode=True)
    except (Base64Error, ValueError) as exc:
        raise ValueError(f"expected bytes in Base64, found {value!r:.60} ({exc})") from exc


def _to_base64(raw):
    return b2a_base64(raw, newline=False).decode("ascii")


def _real(scalar):
    """Return the number in full, 0.10000000149011612 for float32(0.1), as zarr-python writes it."""
    value = real_to_json(scalar)
    return value if type(value) is str else float(scalar)
