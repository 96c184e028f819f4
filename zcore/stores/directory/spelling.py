"""Whether a file system takes two spellings of a key for one file, and whether a key is spelled as its file is.

On a system that ignores case, ``FOO`` opens the file ``foo``. Both questions are answered by the names that the
directories list. `path_of` maps a prefix to the path of its directory, so any rule of lookup can stand in for it.
"""
from __future__ import annotations

import os
from collections.abc import Callable

_SWAPPED_CASE = {ord(c): ord(c.swapcase()) for c in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def ignores_case(path_of: Callable[[str], str], key: str) -> bool | None:
    """Return whether lookups ignore case, as `key` shows; None when it is missing or has no letter to show it by."""
    swapped = key.translate(_SWAPPED_CASE)
    if swapped == key or not os.path.lexists(path_of(key + "/")):
        return None
    if not os.path.lexists(path_of(swapped + "/")):
        return False
    return not (is_spelled_so(path_of, key) and is_spelled_so(path_of, swapped))


def is_spelled_so(path_of: Callable[[str], str], key: str) -> bool:
    """Return whether every part of the existing `key` is written as its directory lists it.

    The decomposed form of a name counts too: HFS+ lists names in it, whatever it was given.
    """
    parent = ""
    for part in key.split("/"):
        # A name without letters has one spelling; directories full of chunks need no look.
        if part.lower() != part.upper() and not _lists(path_of(parent), part):
            return False
        parent = f"{parent}{part}/"
    return True


def _lists(directory, name):
    try:
        names = os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return False
    if name in names or name.isascii():
        return name in names
    from unicodedata import normalize
    return normalize("NFD", name) in names
