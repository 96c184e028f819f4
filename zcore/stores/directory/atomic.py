"""Atomic writes: readers see the old content of a file or the new one, also after a kill.

The bytes go to a temporary file in the directory of the target. It then takes the target's name in one step: by a
rename, or by a link where an existing file must not be replaced. A directory that another process prunes meanwhile is
made again. Errors are those of the system; the store converts them.
"""
from __future__ import annotations

import contextlib
import errno
import os
import stat

from zcore.descriptors import open_descriptor
from zcore.stores.keys import TEMPORARY

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# A try fails only when another process removes the directory or the temporary file between two system calls.
_MAX_TRIES = 100


def write_file(path: str, data: memoryview, *, exclusive: bool = False, fsync: bool = False) -> bool:
    """Make `data` the content of the file at `path`; missing directories are made.

    A new file has mode 0666 less the umask, a replaced one keeps its mode. A link is replaced, not followed.

    Parameters
    ----------
    path : str
        Absolute.
    data : memoryview
        Flat, of bytes.
    exclusive : bool
        Leave an existing file alone. Of several writers at once exactly one succeeds.
    fsync : bool
        The file and its directories are on the disk when the call returns.

    Returns
    -------
    bool
        Whether the file was written; False only when `exclusive`.

    Raises
    ------
    IsADirectoryError
        `path` is a directory.
    NotADirectoryError
        A parent of `path` is not a directory.
    OSError
        Any other error. The temporary file is removed and the target is unchanged.
    """
    for _ in range(_MAX_TRIES - 1):
        try:
            return _write_once(path, data, exclusive, fsync)
        except FileNotFoundError:
            make_directories(os.path.dirname(path), fsync)
    return _write_once(path, data, exclusive, fsync)


def _write_once(path, data, exclusive, fsync):
    directory = os.path.dirname(path)
    mode = _mode_of(path)
    if exclusive and mode is not None:
        return False
    temporary = f"{directory}{os.sep}{TEMPORARY}{os.urandom(8).hex()}"
    try:
        # Inside the `try`: Ctrl-C may come after the file was made and before `fd` is assigned.
        fd = open_descriptor(temporary, _CREATE)
        try:
            _write_all(fd, data)
            if mode is not None and mode != stat.S_IMODE(os.fstat(fd).st_mode):
                os.fchmod(fd, mode)
            if fsync:
                os.fsync(fd)
        finally:
            # A network file system may report a full disk only here.
            os.close(fd)
        if exclusive:
            is_written = _link(temporary, path)
            os.unlink(temporary)
        else:
            is_written = True
            os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    if fsync:
        sync_directory(directory)
    return is_written


def _mode_of(path):
    """Return the permission bits of the file at `path`, or None when there is none."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    return stat.S_IMODE(mode)


def _write_all(fd, data):
    n_written = os.write(fd, data)
    while n_written < len(data):
        n_written += os.write(fd, data[n_written:])


def _link(temporary, path):
    """Give the temporary file the name `path`; return False when a file has it."""
    try:
        os.link(temporary, path)
        return True
    except FileExistsError:
        if os.path.isdir(path) or (os.path.islink(path) and not os.path.exists(path)):
            # It is no key, but the name is taken.
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path) from None
        return False


def make_directories(directory: str, fsync: bool = False) -> None:
    """Create `directory` and its missing parents. Another process that prunes may remove them again.

    Raises : NotADirectoryError, if something else has one of the names.
    """
    below = []
    while not _make_directory(directory, fsync):
        below.append(directory)
        directory = os.path.dirname(directory)
        if directory == below[-1]:
            return
    while below and _make_directory(below.pop(), fsync):
        pass


def _make_directory(directory, fsync):
    """Create one directory; return False when its parent is missing."""
    try:
        os.mkdir(directory)
    except FileNotFoundError:
        return False
    except FileExistsError:
        mode = _mode_of_directory(directory)
        if mode is not None and not stat.S_ISDIR(mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory) from None
        return True
    if fsync:
        sync_directory(os.path.dirname(directory))
    return True


def _mode_of_directory(directory):
    """Return the mode of the target of a name, or of the link itself if the target is missing; None without either."""
    # Another process may remove and make it again between two calls.
    for look in (os.stat, os.lstat):
        try:
            return look(directory).st_mode
        except FileNotFoundError:
            pass
    return None


def sync_directory(directory: str) -> None:
    """Write the names in `directory` to the disk; does nothing where directories cannot be opened (Windows).

    A directory that was pruned meanwhile has no names.
    """
    if os.name == "nt":
        return
    try:
        fd = open_descriptor(directory, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
