"""Data types under the names that they have in zarr-python, with the methods that they have there.

`dtype=` takes them, and those of zarr-python itself, as it takes NumPy's.

>>> from zcore.dtype import DateTime64, Int16, VariableLengthUTF8
>>> Int16(endianness="big"), DateTime64(unit="s", scale_factor=10).to_json(zarr_format=2)["name"]
(ZDType(dtype('>i2')), '<M8[10s]')
>>> VariableLengthUTF8().to_json(zarr_format=3), Int16().default_scalar()
('string', np.int16(0))
"""
from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from zcore.formats import format_of
from zcore.model.dtypes import plain_dtype
from zcore.text.tried_names import no_attribute

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    import numpy.typing as npt

    from zcore.model.metadata import ArrayMetadata


class ZDType:
    """A data type and how documents write it, and values of it: `dtype` is what NumPy has for it."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self.dtype: np.dtype[Any] = np.dtype(dtype)

    def __eq__(self, other: object) -> bool:
        return self.dtype == other.dtype if isinstance(other, ZDType) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"ZDType({self.dtype!r})"

    def to_native_dtype(self) -> np.dtype[Any]:
        """Return what NumPy has for it; objects are bytes of any length."""
        return self.dtype

    def default_scalar(self) -> Any:
        """Return the value of elements that were never written, if none was chosen."""
        return self._array().fill_value

    def to_json(self, zarr_format: Literal[2, 3]) -> Any:
        """Return the type as in documents; in Zarr v2 with the codec for objects, as zarr-python does."""
        document = self._array(zarr_format).to_dict()
        if "data_type" in document:
            return document["data_type"]
        codec = document["filters"][0]["id"] if document["dtype"] == "|O" else None
        return {"name": document["dtype"], "object_codec_id": codec}

    def to_json_scalar(self, data: object, *, zarr_format: Literal[2, 3]) -> Any:
        """Return a value of the type as documents write a fill value."""
        return self._array(zarr_format, data).to_dict()["fill_value"]

    def from_json_scalar(self, data: Any, *, zarr_format: Literal[2, 3]) -> Any:
        """Return the value that documents write like this. Raises : MetadataError, if the type does not have it."""
        document = self._array(zarr_format).to_dict() | {"fill_value": data}
        return format_of(zarr_format).parse_array(json.dumps(document).encode(), "").fill_value

    def _array(self, zarr_format: Literal[2, 3] = 3, fill_value: object = ...) -> ArrayMetadata:
        return format_of(zarr_format).new_array((), plain_dtype(self), fill_value=fill_value)


def parse_dtype(dtype: Any, *, zarr_format: Literal[2, 3] = 3) -> ZDType:
    """Return what a caller names as `dtype=`, as the type of an array of that format."""
    return ZDType(format_of(zarr_format).as_dtype(plain_dtype(dtype)))


def _ordered(name: str, /, *, endianness: Literal["little", "big"] = "little") -> ZDType:
    # A native order is none in NumPy.
    return ZDType(np.dtype(name).newbyteorder("<" if endianness == "little" else ">").str)


def _time(kind: str, /, *, unit: str = "generic", scale_factor: int = 1, **order: Any) -> ZDType:
    return _ordered(kind if unit == "generic" else f"{kind}[{scale_factor}{unit}]", **order)


def _long(kind: str, /, *, length: int, **order: Any) -> ZDType:
    return _ordered(f"{kind}{length}", **order)


_KINDS = {
    **{name: partial(_ordered, name.lower()) for name in (
        "Bool", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float16", "Float32",
        "Float64", "Complex64", "Complex128")},
    "DateTime64": partial(_time, "M8"), "TimeDelta64": partial(_time, "m8"), "FixedLengthUTF32": partial(_long, "U"),
    "NullTerminatedBytes": partial(_long, "S"), "RawBytes": partial(_long, "V"),
    "Struct": lambda *, fields: ZDType(list(fields)),
    "VariableLengthUTF8": partial(ZDType, np.dtypes.StringDType()), "VariableLengthBytes": partial(ZDType, object),
}
for _kind in _KINDS.values():
    _kind.from_native_dtype = ZDType


def __dir__() -> list[str]:
    return [*_KINDS, "ZDType", "parse_dtype"]     # for completion at a prompt


def __getattr__(name: str) -> Callable[..., ZDType]:
    if name not in _KINDS:
        raise no_attribute(__name__, name, _KINDS)
    return _KINDS[name]
