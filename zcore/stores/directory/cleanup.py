"""Directories of a store emptied, removed and searched for left-overs.

Links are entries like files here: they are unlinked and never followed, whatever they lead to. Entries that vanish
meanwhile were removed by somebody else, which is what was wanted.
"""
from __future__ import annotations

import contextlib
import errno
import os
import stat

from zcore.stores.directory.reading import is_file
from zcore.stores.keys import is_temporary


def prune(directory: str, base: str) -> None:
    """Remove `directory` and its parents up to, not including, `base`, as far as they are empty."""
    while len(directory) > len(base):
        try:
            os.rmdir(directory)
        except FileNotFoundError:
            pass
        except OSError:
            # Not empty, a link, or not ours to remove: an empty directory does no harm.
            return
        directory = os.path.dirname(directory)


def remove(path: str) -> None:
    """Remove what is at `path`: a file, a link, or a directory with everything in it."""
    if stat.S_ISDIR(os.lstat(path).st_mode):
        remove_directory(path)
    else:
        os.unlink(path)


def remove_file(path: str) -> None:
    """Remove the file at `path`; of a link to one, or of one that is unreachable, the link.

    Raises : IsADirectoryError, if it is a directory or a link to one; OSError (ESPIPE), if it is neither that nor a
        file. Both stay.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:
        if not stat.S_ISLNK(os.lstat(path).st_mode):
            raise
    else:
        if not is_file(mode, path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    os.unlink(path)


def remove_directory(path: str) -> None:
    """Remove the directory at `path` with everything in it; anything else stays.

    Of a link to one, or of one that is unreachable, the link is removed. To be missing is no error.
    """
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISLNK(mode):
        try:
            is_directory = stat.S_ISDIR(os.stat(path).st_mode)
        except OSError:
            is_directory = True
        if is_directory:
            os.unlink(path)
    elif stat.S_ISDIR(mode):
        remove_below(path)
        _remove_empty(path)


def remove_below(directory: str) -> None:
    """Remove everything in `directory`, not itself.

    A directory into which a writer puts a file meanwhile stays: that file counts as written after the removal.
    """
    pending = [directory]
    found = []
    while pending:
        current = pending.pop()
        for entry in _entries(current):
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
                found.append(entry.path)
            else:
                _ignore_missing(os.unlink, entry.path)
    for current in reversed(found):
        _remove_empty(current)


def remove_empty_below(directory: str) -> None:
    """Remove the directories below `directory` that hold no file, not itself. What cannot be removed stays."""
    for current, _, _ in os.walk(directory, topdown=False):
        if current != directory:
            with contextlib.suppress(OSError):
                os.rmdir(current)


def remove_temporary(directory: str, before: float) -> int:
    """Remove the temporary files below `directory` that were last written before the time `before` (seconds).

    Returns : their number.
    """
    pending = [directory]
    n_removed = 0
    while pending:
        for entry in _entries(pending.pop()):
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
            elif is_temporary(entry.name) and _is_older(entry, before):
                _ignore_missing(os.unlink, entry.path)
                n_removed += 1
    return n_removed


def unlisted(directory: str):
    """Iterate over what lies below `directory` and is never listed: (path, whether it is temporary).

    These are temporary files and directories, and names that are not text. Directories that cannot be listed are left
    out.
    """
    pending = [directory]
    while pending:
        try:
            entries = sorted(_entries(pending.pop()), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            if is_temporary(entry.name):
                yield entry.path, True
            elif not _is_text(entry.name):
                yield entry.path, False
            elif entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)


def _is_text(name):
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_older(entry, before):
    try:
        return entry.stat(follow_symlinks=False).st_mtime < before
    except FileNotFoundError:
        return False


def _entries(directory):
    """Return what is in `directory`, read to the end first: a removal while it is read may hide other entries."""
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except FileNotFoundError:
        return []


def _remove_empty(directory):
    """Remove a directory that was emptied, unless somebody has put something into it."""
    try:
        _ignore_missing(os.rmdir, directory)
    except OSError as exc:
        if exc.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def _ignore_missing(remove, path):
    try:
        remove(path)
    except FileNotFoundError:
        pass
