"""Types for annotations: what the functions of zcore take and return, by name.

For type checkers such as mypy and pyright. zcore does not import this module itself.

>>> from zcore.typing import Selection
>>> def mean(array: "zcore.Array", selection: Selection = ...) -> float:
...     return float(array.read(selection).mean())
"""
import os
import sys
from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeAlias

import numpy.typing as npt

__all__ = ["Attributes", "BasicIndex", "BasicSelection", "Buffer", "CacheSize", "Chunks", "Cname", "DTypeLike",
           "DimensionNames", "Elements", "Fields", "Format", "Index", "Lock", "Memory", "Missing", "Mode",
           "Order", "Selection", "Shape", "Shards", "Shuffle", "StrPath"]


def __dir__() -> list[str]:
    return list(__all__)     # for completion at a prompt


if sys.version_info >= (3, 12):
    from collections.abc import Buffer
elif TYPE_CHECKING:
    from typing_extensions import Buffer
else:
    Buffer: TypeAlias = Any

# Memory that is written to, or encoded. Before Python 3.12, type checkers know no buffer of an ndarray.
Memory: TypeAlias = Buffer | npt.NDArray[Any]

StrPath: TypeAlias = str | os.PathLike[str]

# What `zcore.open` and its kin take, by the keyword.
Mode: TypeAlias = Literal["r", "r+", "a", "w", "w-", "x"]
Format: TypeAlias = Literal[3, 2, "zmeta"]
Lock: TypeAlias = bool | Literal["on", "off", "file"] | None
Missing: TypeAlias = Literal["fill", "raise"]
CacheSize: TypeAlias = int | str
Cname: TypeAlias = Literal["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"]
Shuffle: TypeAlias = Literal[0, 1, 2]

# What describes a new array. A type is one of `numpy.dtype`, or the name of a type of Zarr v3.
Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
DTypeLike: TypeAlias = npt.DTypeLike
Chunks: TypeAlias = int | str | Sequence[int | Sequence[int | Sequence[int]] | None] | None
Shards: TypeAlias = Chunks | Mapping[str, Any]
Order: TypeAlias = Literal["C", "F"]
DimensionNames: TypeAlias = Sequence[str | None]
Attributes: TypeAlias = Mapping[str, Any]

# What stands in brackets, and what is assigned: anything that NumPy takes. An `Array` of zcore is among these elements.
Elements: TypeAlias = npt.ArrayLike
Fields: TypeAlias = str | list[str]
BasicIndex: TypeAlias = SupportsIndex | slice | EllipsisType
BasicSelection: TypeAlias = BasicIndex | tuple[BasicIndex, ...]
Index: TypeAlias = BasicIndex | None | Sequence[Any] | npt.NDArray[Any]
Selection: TypeAlias = Index | tuple[Index, ...]
