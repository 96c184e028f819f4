"""Nodes as text for people: the result of `info`, with rows for programs, and a hierarchy as a tree."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from zcore.model.value import text_of
from zcore.text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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


def by_group(pairs: Iterable[tuple[str, Any]]) -> dict[str, list[tuple[str, str, Any]]]:
    """Return for the path of each group the members: their paths, their names, and the values.

    >>> by_group([("a", 1), ("a/b", 2)])
    {'': [('a', 'a', 1)], 'a': [('a/b', 'b', 2)]}
    """
    groups = {}
    for path, value in pairs:
        above, _, name = path.rpartition("/")
        groups.setdefault(above, []).append((path, name, value))
    return groups


def drawn(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Iterate over the lines of a tree, of pairs of a path and the text of its line.

    >>> print("\\n".join(drawn([("a", "A"), ("a/b", "B"), ("c", "C")])))
    ├── A
    │   └── B
    └── C
    """
    groups = by_group(pairs)
    way = [("", groups.get("", [])[::-1])]
    while way:
        indent, members = way[-1]
        if not members:
            way.pop()
            continue
        path, _, text = members.pop()
        yield f"{indent}{'├── ' if members else '└── '}{text}"
        way.append((indent + ("│   " if members else "    "), groups.get(path, [])[::-1]))
