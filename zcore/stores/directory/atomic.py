"""Values in files: each is replaced in one step, as `zcore.replacing` does it.

A directory that another process prunes meanwhile is made again. Errors are those of the system; the store converts
them.
"""
from __future__ import annotations

import contextlib
import errno
import os
import stat

from zcore.descriptors import open_descriptor, write_at
from zcore.kernel.io.files import barrier, write_out
from zcore.replacing import NewFile, hidden_beside, status_of
from zcore.replacing import sync_directory as sync_directory
from zcore.stores.directory.reading import mode_of

# A try fails only when another process removes the directory or the temporary file between two system calls.
_MAX_TRIES = 100


def write_file(path: str, data: memoryview, *, exclusive: bool = False, fsync: bool = False,
               writes_out: bool = False) -> bool:
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
    writes_out : bool
        After a power cut, a new file is there whole or not at all, as is one that is replaced.

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
            return _write_once(path, data, exclusive, fsync, writes_out)
        except FileNotFoundError:
            make_directories(os.path.dirname(path), fsync)
    return _write_once(path, data, exclusive, fsync, writes_out)


def write_file_at(directory: int, name: str, data: memoryview, *, fsync: bool = False) -> None:
    """Do what `write_file` does in a directory that is open as a descriptor, and write its data out."""
    temporary = os.path.basename(hidden_beside(name))
    fd = open_descriptor(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, dir_fd=directory)
    try:
        try:
            write_at(fd, data, 0)
            write_out(fd)
        finally:
            os.close(fd)
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=directory)
        raise
    if fsync:
        barrier(directory)


def _write_once(path, data, exclusive, fsync, writes_out):
    if exclusive and status_of(path) is not None:
        return False
    new = NewFile(path, follows=False, fsync=fsync, writes_out=writes_out)
    try:
        write_at(new.fd, data, 0)
        new.commit(exclusive)
    except FileExistsError:
        if os.path.isdir(path) or (os.path.islink(path) and not os.path.exists(path)):
            # It is no key, but the name is taken.
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path) from None
        return False
    finally:
        new.discard()
    return True


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
        # That of a link itself, if its target is missing. Another process may remove and make it again meanwhile.
        mode = mode_of(os.stat, directory) or mode_of(os.lstat, directory)
        if mode is not None and not stat.S_ISDIR(mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory) from None
        return True
    if fsync:
        sync_directory(os.path.dirname(directory))
    return True
