"""What a directory of a store lists: names of keys and of directories, through links as far as they may be followed.

Temporary files, and names that are not text, are left out. What is unreachable is listed by itself: links that lead
nowhere, or out of the directory that confines them, and what is neither a file nor a directory.
"""
from __future__ import annotations

import os
import stat

from zcore.errors import warn
from zcore.stores.keys import is_temporary


def names_in(directory: str, confines: str | None = None) -> tuple[list[str], list[str], list[str]]:
    """Return the names of the files, of the directories and of what is unreachable in `directory`, each sorted.

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
                # Whatever keeps it from being looked at, it is there, unless it went meanwhile.
                if not os.path.lexists(entry.path):
                    continue
                names = unreachable
            if not is_temporary(entry.name) and _is_text(entry.name, directory):
                names.append(entry.name)
    files.sort()
    directories.sort()
    unreachable.sort()
    return files, directories, unreachable


def is_empty(directory: str) -> bool:
    """Whether `directory` holds nothing at all but temporary files; raises OSError, also when it is missing."""
    with os.scandir(directory) as entries:
        return all(is_temporary(entry.name) for entry in entries)


def lies_in(path: str, directory: str) -> bool:
    """Return whether `path` lies in `directory`, or is it, when all links of both are followed."""
    directory = os.path.realpath(directory)
    return os.path.commonpath((directory, os.path.realpath(path))) == directory


def may_enter(path: str, base: str, entered: set) -> bool:
    """Return whether a walk from `base` goes on into the directory `path`, and note linked ones in `entered`.

    A linked directory is entered once in a walk, and not from inside of itself, so that loops of links end. One that
    is unreachable is entered: its listing says why.
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
    """Return whether `path` is a link to one of the directories above it, the `base` of the store included.

    Every circle has such a link, sooner or later: one that leads above the base comes back to a directory on its way.
    One that is unreachable leads to none of them.
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


def _is_text(name, directory):
    """Return whether a name can be part of a key; warn when it cannot."""
    if not name.isascii():
        try:
            name.encode()
        except UnicodeEncodeError:
            warn(f"{directory!r} holds a name that is not UTF-8, {name!r}: it is left out")
            return False
    return True
