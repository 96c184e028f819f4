"""The result of `info`: a description of a node, as text for people and as rows for programs."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from zcore.model.value import text_of
from zcore.text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np


class Info(Mapping[str, Any]):
    """Rows of a description: names and values. `repr` and `str` give one line per row.

    Parameters
    ----------
    rows : dict

    Examples
    --------
    >>> Info({"shape": (3, 4), "format": "zmeta"})
    shape         : (3, 4)
    format        : zmeta
    """

    __slots__ = ("_rows",)

    def __init__(self, rows: Mapping[str, Any]) -> None:
        self._rows = rows

    def __getitem__(self, name: str) -> Any:
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return "\n".join(f"{name:14}: {printable(text_of(value, str))}" for name, value in self._rows.items())


def type_name(dtype: np.dtype[Any]) -> str:
    """Return the display name of a type: structures by their fields, texts of any length as in Zarr v3."""
    if dtype.kind == "T":
        return "string"
    return str(dtype) if dtype.names is None else str(dtype.descr)
