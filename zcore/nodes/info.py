"""The result of `info`: a description of a node, as text for people and as rows for programs."""
from collections.abc import Mapping

from zcore.model.value import text_of
from zcore.text.printable import printable


class Info(Mapping):
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

    def __init__(self, rows):
        self._rows = rows

    def __getitem__(self, name):
        return self._rows[name]

    def __iter__(self):
        return iter(self._rows)

    def __len__(self):
        return len(self._rows)

    def __repr__(self):
        return "\n".join(f"{name:14}: {printable(text_of(value, str))}" for name, value in self._rows.items())


def type_name(dtype):
    """Return the display name of a type: structures by their fields."""
    return str(dtype) if dtype.names is None else str(dtype.descr)
