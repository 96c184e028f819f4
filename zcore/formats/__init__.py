"""Formats: how a node is written down. The contract is `zcore.formats.base.Format`; a new format is one line here.

The class of a format is imported with the first node of its format: most processes use only one.
"""
from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from zcore.formats.base import Format
    from zcore.typing import Format as FormatName


class Line(NamedTuple):
    """The documents to look for in a store, before any class is imported. The class's instance has these attributes."""

    module: str
    class_name: str
    array_document: str
    group_document: str | None = None
    consolidated_document: str | None = None


# Name, as in `zarr_format=` -> its line. If a node has documents of several formats, the first format counts.
FORMATS: dict[FormatName, Line] = {
    3: Line("zcore.formats.zarr_v3.format", "ZarrV3", "zarr.json", "zarr.json"),
    2: Line("zcore.formats.zarr_v2.format", "ZarrV2", ".zarray", ".zgroup", ".zmetadata"),
    "zmeta": Line("zcore.formats.zmeta", "Zmeta", "__zmeta__"),
}
NAMES: tuple[FormatName, ...] = tuple(FORMATS)
# Name -> the documents that make a directory a node of the format; the first one counts.
NODE_DOCUMENTS: dict[FormatName, tuple[str, ...]] = {
    name: tuple(dict.fromkeys(filter(None, (line.array_document, line.group_document))))
    for name, line in FORMATS.items()}
FORMAT_OF: dict[str, FormatName] = {
    document: name for name, documents in NODE_DOCUMENTS.items() for document in documents}
DOCUMENTS: tuple[str, ...] = tuple(FORMAT_OF)


def format_of(name: FormatName) -> Format:
    """Return the one `zcore.formats.base.Format` of a name.

    Raises : ValueError, if no format has this name.
    """
    if type(name).__hash__ is None or name not in NAMES:
        check_format(name)
        raise ValueError(f"zarr_format is None, expected one of {', '.join(map(repr, NAMES))}")
    return _instance(NAMES[NAMES.index(name)])     # 3, also for 3.0 or NumPy's 3


@cache
def _instance(name):
    module, class_name, *documents = FORMATS[name]
    return getattr(import_module(module), class_name)(name, *documents)


def check_format(zarr_format: object) -> None:
    """Raise ValueError if a value of `zarr_format=` is neither the name of a format nor None."""
    if zarr_format is not None and (type(zarr_format).__hash__ is None or zarr_format not in NAMES):
        raise ValueError(f"zarr_format is {zarr_format!r:.60}, expected one of {', '.join(map(repr, NAMES))}")


def name_from(text: str) -> FormatName:
    """Return the one of `NAMES` that has this text, such as an argument of the command line."""
    return next(name for name in NAMES if str(name) == text)
