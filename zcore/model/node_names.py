"""Rules for the names of nodes: forbidden names, portable names, and the v2 spelling of a path.

A name is one part of a node's path. Keys have rules of their own (`zcore.stores.keys`), which also apply to paths. The
attribute `names` of a format selects its rules from this module.

Zarr v3 core, "Node names"; Zarr v2, "Logical storage paths".
"""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# Recommended by the core text; the draft of 2019 allowed only these, and 255 characters, as most file systems do.
_is_portable = re.compile(r"[A-Za-z0-9_.-]{1,255}").fullmatch


class Names:
    """Rules of a format without restrictions.

    Attributes
    ----------
    is_suspect : callable
        Tells whether a path may have a name with a fault. One search of the whole path: most paths need no other.
    """

    __slots__ = ()
    is_suspect: Callable[[str], object] = staticmethod(re.compile("(?!)").search)

    def fault(self, name: str) -> str | None:
        """Return why a name is not allowed for a node, or None."""
        return None

    def advice(self, name: str) -> str | None:
        """Return a warning about the name of a new node, or None."""
        return None

    def spelled(self, path: str) -> str:
        """Return a path in the format's normal spelling."""
        return path


class _ZarrV3(Names):
    """Zarr v3 core, "Node names".

    >>> V3.fault("temperature"), V3.fault("..."), V3.advice("Höhe") is None
    (None, 'a name of periods alone is reserved', False)
    """

    __slots__ = ()
    is_suspect: Callable[[str], object] = staticmethod(re.compile(r"__|\.").search)

    def fault(self, name: str) -> str | None:
        if name.startswith("__"):
            return "names that begin with '__' are reserved"
        if name == "zarr.json":
            return "'zarr.json' is the name of a node's document"
        return None if name.strip(".") else "a name of periods alone is reserved"

    def advice(self, name: str) -> str | None:
        if _is_portable(name):
            return None
        return ("some systems and programs cannot have it; letters and digits of ASCII, '-', '_' and '.' are safe, "
                "and no more than 255 of them")


class _ZarrV2(Names):
    r"""Zarr v2, "Logical storage paths".

    >>> V2.fault(".zgroup"), V2.spelled(r"foo\bar")
    ("names that begin with '.z' are reserved", 'foo/bar')
    """

    __slots__ = ()
    is_suspect: Callable[[str], object] = staticmethod(re.compile(r"\.z").search)

    def fault(self, name: str) -> str | None:
        return "names that begin with '.z' are reserved" if name.startswith(".z") else None

    def spelled(self, path: str) -> str:
        return path.replace("\\", "/")


ANY = Names()
V2 = _ZarrV2()
V3 = _ZarrV3()
