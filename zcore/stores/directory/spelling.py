"""Aliases: whether a file system ignores case, and whether a key is spelled like its file.

On a system that ignores case, ``FOO`` opens the file ``foo``. The names that the directories list answer both
questions. `path_of` maps a prefix to the path of its directory. It is a parameter so that tests can replace it.
"""
from __future__ import annotations

import os
from collections.abc import Callable

_OTHER_CASE = {ord(c): ord(c.swapcase()) for c in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def ignores_case(path_of: Callable[[str], str], key: str) -> bool | None:
    """Return whether lookups ignore case, judged by `key`; None when the key is missing or has no letter."""
    other = key.translate(_OTHER_CASE)
    if other == key or not os.path.lexists(path_of(key + "/")):
        return None
    if not os.path.lexists(path_of(other + "/")):
        return False
    return not (is_spelled_so(path_of, key) and is_spelled_so(path_of, other))


def is_spelled_so(path_of: Callable[[str], str], key: str) -> bool:
    """Return whether every part of the existing `key` is written as its directory lists it.

    The decomposed form of a name counts too: HFS+ always lists names in it.
    """
    parent = ""
    for part in key.split("/"):
        # Names without letters, such as chunk indices, have one spelling. Their directories are not listed.
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
