"""Read a file, or a part of it: open, fstat, read, close. And list a directory: names of keys and of directories.

Links are followed where that is allowed. Temporary files, and names that are not text, are left out of a listing.
Unreachable names are listed separately: links to nowhere, links out of the directory that confines them, and everything
that is neither a file nor a directory.

On a system that ignores case, ``FOO`` opens the file ``foo``. The names that directories list tell whether it does, and
whether a key is spelled like its file.
"""
from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable

from zcore.descriptors import open_descriptor, read_at
from zcore.errors import warn
from zcore.replacing import NO_FILE
from zcore.stores.base import ByteRange, resolve_range
from zcore.stores.keys import is_temporary

NOWHERE = "a symbolic link leads nowhere; mount the disk it points to, fetch the content, or remove the link"

# O_NONBLOCK: a FIFO with the name of a value must not block a reader. Regular files ignore the flag.
_OPEN = os.O_RDONLY
for _flag in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"):
    _OPEN |= getattr(os, _flag, 0)


def read_file(path: str, byte_range: ByteRange | None) -> tuple[bytes, os.stat_result] | None:
    """Return bytes of the file at `path` and the status of the descriptor they came from.

    The buffer has the size in the status. Bytes that are appended meanwhile are not read.

    Returns
    -------
    tuple or None
        None when `path` is missing or a directory.

    Raises
    ------
    ValueError
        The byte range is invalid.
    OSError
        Any other error: ENOENT for a link to nowhere, ESPIPE for an entry that is neither a file nor a directory,
        ENOMEM when the content does not fit into memory.
    """
    try:
        fd = open_descriptor(path, _OPEN)
    except (FileNotFoundError, NotADirectoryError):
        check_absent(path)
        return None
    try:
        status = os.fstat(fd)
        if not is_file(status.st_mode, path):
            return None
        start, stop = resolve_range(byte_range, status.st_size)
        return read_at(fd, stop - start, start), status
    except (MemoryError, OverflowError) as exc:
        raise OSError(errno.ENOMEM, f"no memory for the {status.st_size} bytes of the file", path) from exc
    finally:
        os.close(fd)


def check_absent(path: str) -> None:
    """Raise OSError if `path`, which could not be found, is unreachable and not absent.

    It is unreachable if it, or a directory above it, is a link to nowhere (a disk that is not mounted, or content that
    was dropped), or if a name on the way is neither a file nor a directory.
    """
    while path != os.path.dirname(path):
        mode = mode_of(os.lstat, path)
        if mode is not None and stat.S_ISLNK(mode):
            mode = mode_of(os.stat, path)
            if mode is None:
                raise OSError(errno.ENOENT, NOWHERE, path)
        if mode is not None:
            # The rest of the path is absent, in a directory as below a file.
            is_file(mode, path)
            return
        path = os.path.dirname(path)


def mode_of(look: Callable[[str], os.stat_result], path: str) -> int | None:
    """Return the mode that `look`, `os.stat` or `os.lstat`, finds; None for a missing path."""
    try:
        return look(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def is_file(mode: int, path: str) -> bool:
    """Return whether a mode is that of a file, and not of a directory; OSError (ESPIPE) for any other mode."""
    if stat.S_ISREG(mode):
        return True
    if stat.S_ISDIR(mode):
        return False
    raise OSError(errno.ESPIPE, NO_FILE, path)


def stat_file(path: str) -> os.stat_result | None:
    """Return the status of the file at `path`, or None when it is missing or a directory.

    Raises : OSError, in the cases of `read_file`.
    """
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        check_absent(path)
        return None
    return status if is_file(status.st_mode, path) else None


def is_special_file(path: str) -> bool:
    """Return whether a FIFO, a socket, a device or a link to one is at `path`."""
    mode = mode_of(os.stat, path)
    return mode is not None and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


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
    # Most paths have no link below the directory: one look for each of those names is enough. Windows has junctions.
    if os.name == "posix" and path.startswith(f"{directory}/"):
        at = directory
        for name in path[len(directory) + 1:].split("/"):
            at = f"{at}/{name}"
            if name == ".." or os.path.islink(at):
                break
        else:
            return True
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
