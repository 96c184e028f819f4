"""Names that zarr-python has for data types, each as what `dtype=` takes: ``Float32()`` is ``numpy.dtype("float32")``.

`VariableLengthUTF8` and `VariableLengthBytes` are `str` and `bytes`. zarr-python's own objects are taken as well.

>>> from zcore.dtype import DateTime64, FixedLengthUTF32, Int16, VariableLengthUTF8
>>> Int16(), DateTime64(unit="s", scale_factor=10), FixedLengthUTF32(length=3), VariableLengthUTF8()
(dtype('int16'), dtype('<M8[10s]'), dtype('<U3'), <class 'str'>)
"""
from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from zcore.formats import format_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal

    import numpy.typing as npt

_NUMBERS = ("Bool", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float16", "Float32",
            "Float64", "Complex64", "Complex128")
_TIMES = {"DateTime64": "M8", "TimeDelta64": "m8"}
_LENGTHS = {"FixedLengthUTF32": "U", "NullTerminatedBytes": "S", "RawBytes": "V"}
_ORDERS = {"little": "<", "big": ">"}


def __getattr__(name: str) -> Callable[..., Any]:
    if name in _NUMBERS:
        return partial(_ordered, name.lower())
    if name in _TIMES:
        return partial(_time, _TIMES[name])
    if name in _LENGTHS:
        return partial(_long, _LENGTHS[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _ordered(name: str, /, *, endianness: Literal["little", "big"] = "little") -> np.dtype[Any]:
    return np.dtype(np.dtype(name).newbyteorder(_ORDERS[endianness]).str)     # a native order is none in NumPy


def _time(kind: str, /, *, unit: str = "generic", scale_factor: int = 1, **order: Any) -> np.dtype[Any]:
    return _ordered(kind if unit == "generic" else f"{kind}[{scale_factor}{unit}]", **order)


def _long(kind: str, /, *, length: int, **order: Any) -> np.dtype[Any]:
    return _ordered(f"{kind}{length}", **order)


def Struct(*, fields: Sequence[tuple[str, npt.DTypeLike]]) -> np.dtype[Any]:  # noqa: N802 (as zarr-python calls it)
    """Return the type of structures with these fields, each a name and a type."""
    return np.dtype(list(fields))


def VariableLengthUTF8() -> type[str]:  # noqa: N802
    """Return the type of text of any length."""
    return str


def VariableLengthBytes() -> type[bytes]:  # noqa: N802
    """Return the type of bytes of any length."""
    return bytes


def parse_dtype(dtype: Any, *, zarr_format: Literal[2, 3] = 3) -> np.dtype[Any]:
    """Return what a caller names as `dtype=`, as the type of an array of that format."""
    return format_of(zarr_format).as_dtype(dtype)
