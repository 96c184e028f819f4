"""Empty and remove directories of a store, and find left-over files.

Links are entries like files here: they are unlinked and never followed. An entry that vanishes meanwhile was removed
by another process, so it is no error.
"""
from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING

from zcore.stores.directory.reading import is_file, is_text, mode_of
from zcore.stores.keys import TEMPORARY, is_temporary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FOLDER = TEMPORARY + "copy."     # begins the names of directories in which something is made beside its place
_CAN_ASK = os.access in os.supports_effective_ids


def prune(directory: str, base: str) -> None:
    """Remove `directory` and its parents up to, not including, `base`, as far as they are empty."""
    while len(directory) > len(base):
        try:
            os.rmdir(directory)
        except FileNotFoundError:
            pass
        except OSError:
            # Not empty, a link, or no permission: an empty directory does no harm.
            return
        directory = os.path.dirname(directory)


def remove(path: str) -> None:
    """Remove the file, the link, or the directory with all its contents at `path`."""
    if stat.S_ISDIR(os.lstat(path).st_mode):
        remove_directory(path)
    else:
        os.unlink(path)


def remove_file(path: str) -> None:
    """Remove the file at `path`, or the link, if it leads to a file or its target is unreachable.

    Raises : IsADirectoryError, if it is a directory or a link to one; OSError (ESPIPE), if it is neither a directory
        nor a file. Both stay.
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
    """Remove the directory at `path` with all its contents; anything else stays.

    A link to a directory, or with an unreachable target, is removed itself. A missing directory is no error.
    """
    mode = mode_of(os.lstat, path) or 0
    if stat.S_ISLNK(mode):
        if os.path.isdir(path) or not os.path.exists(path):
            os.unlink(path)
    elif stat.S_ISDIR(mode):
        remove_below(path)
        _remove_empty(path)


def remove_below(directory: str) -> None:
    """Remove the contents of `directory`, not the directory itself.

    If a writer puts a file into a directory meanwhile, that directory stays. The file counts as written afterwards.
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
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(entry.path)
    for current in reversed(found):
        _remove_empty(current)


def check_removable(directory: str) -> None:
    """Raise PermissionError if a directory cannot be listed or emptied: `directory`, which is no link, or one below."""
    pending = [directory]
    while pending:
        current = pending.pop()
        entries = _entries(current)
        if entries:
            check_may_empty(current)
        pending += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]


def check_may_empty(directory: str) -> None:
    """Raise PermissionError if the entries of a directory cannot be removed."""
    # One that another call has removed or replaced cannot be emptied either, and need not be.
    if not _may_empty(directory) and os.path.isdir(directory) and not _may_empty(directory):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), directory)


def _may_empty(directory):
    return os.access(directory, os.W_OK | os.X_OK, effective_ids=_CAN_ASK)


def remove_empty_below(directory: str) -> None:
    """Remove the directories below `directory` that hold no file. A directory that cannot be removed stays."""
    for current, _, _ in os.walk(directory, topdown=False):
        if current != directory:
            with contextlib.suppress(OSError):
                os.rmdir(current)


def remove_temporary(directory: str, before: float, remove_container: Callable[[str], object]) -> int:
    """Remove the temporary files below `directory` with a last write before the time `before` (seconds).

    `remove_container` removes what a call has left that was making something beside its place. Returns : the number of
    files, and of such directories.
    """
    n_removed = 0
    for path, is_ours in unlisted(directory):
        with contextlib.suppress(FileNotFoundError):
            status = os.lstat(path)
            if is_ours and status.st_mtime < before:
                if not stat.S_ISDIR(status.st_mode):
                    os.unlink(path)
                elif os.path.basename(path).startswith(FOLDER):
                    remove_container(path)
                n_removed += not os.path.lexists(path)
    return n_removed


def unlisted(directory: str) -> Iterator[tuple[str, bool]]:
    """Iterate over the entries below `directory` that listings leave out: (path, whether it is temporary).

    They are temporary files and directories, and names that are not text. Directories that cannot be listed are
    skipped.
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
            elif not is_text(entry.name):
                yield entry.path, False
            elif entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)


def _entries(directory):
    """Return all entries of `directory`. Removals during a scan might hide entries, so it ends first."""
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _remove_empty(directory):
    """Remove a directory, unless another process has put something into it."""
    try:
        os.rmdir(directory)
    except OSError as exc:
        if exc.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
            raise
