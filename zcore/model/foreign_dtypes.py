"""Types of numbers from `ml_dtypes`: bfloat16, small floats, integers of 2 and 4 bits, and complex types of these.

The package adds these types to NumPy; it is imported when one of them is first used. An item has one byte, of which
fewer than 8 bits may be used, or the bytes of its components.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zcore.errors import Needing, UnsupportedError

if TYPE_CHECKING:
    from typing import Any

# Name in documents (zarr-extensions, "data-types") -> name in ml_dtypes.
_NAMES = {
    name: name for name in (
        "bfloat16", "int2", "int4", "uint2", "uint4", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4",
        "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
        "float8_e8m0fnu",
    )
} | {"complex_bfloat16": "bcomplex32", "complex_float16": "complex32"}
_DOCUMENT_NAMES = {theirs: name for name, theirs in _NAMES.items()}


def is_foreign_name(name: str) -> bool:
    """Return whether `name` is the name of one of these types in documents."""
    return name in _NAMES


def is_foreign(dtype: np.dtype[Any]) -> bool:
    """Return whether `dtype` is one of these types. (NumPy reports most of them as void.)"""
    return dtype.isbuiltin == 2


def foreign_name(dtype: np.dtype[Any]) -> str:
    """Return the name of one of these types in documents.

    Raises : UnsupportedError, if documents have no name for it.
    """
    name = _DOCUMENT_NAMES.get(dtype.type.__name__)
    if name is None:
        raise UnsupportedError(f"zcore does not know the data type {dtype.name}", feature=f"data type {dtype.name}")
    return name


def foreign_dtype(name: str, order: str = "<") -> np.dtype[Any]:
    """Return the type of a name in byte order `order`; `is_foreign_name` must be true for the name.

    Raises
    ------
    UnsupportedError
        If `ml_dtypes` is not installed or does not have the type, or for complex items in big-endian order: it would
        swap the components along with the bytes.
    """
    with Needing(f"the data type {name!r} needs", "ml_dtypes", "ml", "ml_dtypes"):
        import ml_dtypes
    scalar = getattr(ml_dtypes, _NAMES[name], None)
    if scalar is None:
        raise UnsupportedError(
            f"the data type {name!r} needs a newer ml_dtypes than {ml_dtypes.__version__}", feature="ml_dtypes"
        )
    dtype = np.dtype(scalar)
    if order == ">" and dtype.itemsize > 1:
        if name.startswith("complex"):
            raise UnsupportedError(f"{name!r} in big-endian order", feature=f"big-endian {name}")
        return dtype.newbyteorder(">")
    return dtype


def is_complex(dtype: np.dtype[Any]) -> bool:
    """Return whether any type is complex. The kind of one of these is "W", "c" or "V", by the package's version."""
    return dtype.kind == "c" or _DOCUMENT_NAMES.get(dtype.type.__name__, "").startswith("complex")


def component(dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """Return the type of the real part of any complex type, None if `dtype` is not complex."""
    if not is_complex(dtype):
        return None
    if not is_foreign(dtype):
        return np.dtype(f"{dtype.str[0]}f{dtype.itemsize // 2}")
    return np.dtype("<f2") if foreign_name(dtype) == "complex_float16" else foreign_dtype("bfloat16")


def foreign_bytes(dtype: np.dtype[Any], number: float) -> bytes:
    """Return the bytes of an int or float as an item of `dtype`, which is not complex.

    Raises : ValueError, if the type does not hold it: out of range, a fraction for an integer, NaN without a NaN.
    """
    name = foreign_name(dtype)
    with np.errstate(all="ignore"):
        item = np.array(float(number)).astype(dtype)
    held = float(item)
    if name.startswith(("int", "uint")):
        fits = held == number
    elif number - number == 0:
        import ml_dtypes

        fits = held - held == 0 and abs(number) <= float(ml_dtypes.finfo(dtype.newbyteorder("=")).max)
    else:
        fits = held == number or (held != held and number != number)
    if not fits:
        raise ValueError(f"data type {name} cannot hold {number}")
    return item.tobytes()
