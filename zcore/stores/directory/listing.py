"""Listings of the directories of a store: names of keys and of directories. Links are followed where that is allowed.

Temporary files, and names that are not text, are left out. Unreachable names are listed separately: links to nowhere,
links out of the directory that confines them, and everything that is neither a file nor a directory.

On a system that ignores case, ``FOO`` opens the file ``foo``. The names that directories list tell whether it does, and
whether a key is spelled like its file.
"""
from __future__ import annotations

import os
import stat
from collections.abc import Callable

from zcore.errors import warn
from zcore.stores.keys import is_temporary


def names_in(directory: str, confines: str | None = None) -> tuple[list[str], list[str], list[str]]:
    """Return the names of the files, of the directories, and of unreachable entries in `directory`, each sorted.

    Parameters
    ----------
    directory : str
        Absolute; read to its end and closed before the call returns.
    confines : str, optional
        Links that lead out of this directory are unreachable.

    Raises
    ------
    OSError
        Also when `directory` is missing.
    """
    files, directories, unreachable = [], [], []
    with os.scandir(directory) as entries:
        for entry in entries:
            try:
                if entry.is_file(follow_symlinks=False):
                    names = files
                elif entry.is_dir(follow_symlinks=False):
                    names = directories
                elif confines is not None and not lies_in(entry.path, confines):
                    names = unreachable
                else:
                    mode = os.stat(entry.path).st_mode
                    names = files if stat.S_ISREG(mode) else directories if stat.S_ISDIR(mode) else unreachable
            except OSError:
                # The entry cannot be examined, but it is there, unless it was removed meanwhile.
                if not os.path.lexists(entry.path):
                    continue
                names = unreachable
            if is_text(entry.name):
                if not is_temporary(entry.name):
                    names.append(entry.name)
            else:
                warn(f"{directory!r} holds a name that is not UTF-8, {entry.name!r}: it is left out")
    files.sort()
    directories.sort()
    unreachable.sort()
    return files, directories, unreachable


def is_empty(directory: str) -> bool:
    """Return whether `directory` holds nothing but temporary files; raises OSError, also when it is missing."""
    with os.scandir(directory) as entries:
        return all(is_temporary(entry.name) for entry in entries)


def lies_in(path: str, directory: str) -> bool:
    """Return whether `path` is `directory` or lies in it, with all links resolved."""
    directory = os.path.realpath(directory)
    return os.path.commonpath((directory, os.path.realpath(path))) == directory


def may_enter(path: str, base: str, entered: set[tuple[int, int]]) -> bool:
    """Return whether a walk from `base` enters the directory `path`; linked directories are added to `entered`.

    A walk enters a linked directory once, and never from inside of it, so that cycles of links end. It enters an
    unreachable one, because the listing raises the reason.
    """
    if not os.path.islink(path):
        return True
    if leads_up(path, base):
        return False
    try:
        status = os.stat(path)
    except OSError:
        return True
    if (status.st_dev, status.st_ino) in entered:
        return False
    entered.add((status.st_dev, status.st_ino))
    return True


def leads_up(path: str, base: str) -> bool:
    """Return whether `path` is a link to one of the directories above it, up to the `base` of the store.

    Every cycle has such a link: a link that leads above the base returns to a directory on the way. An unreachable
    link leads to none of them.
    """
    if not os.path.islink(path):
        return False
    try:
        status = os.stat(path)
        while len(path) > len(base):
            path = os.path.dirname(path)
            if os.path.samestat(status, os.stat(path)):
                return True
    except OSError:
        pass
    return False


def is_text(name: str) -> bool:
    """Return whether a name can be part of a key."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True

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
