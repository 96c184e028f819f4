"""Read a file, or a part of it: open, fstat, read, close."""
from __future__ import annotations

import errno
import os
import stat

from zcore.descriptors import open_descriptor
from zcore.replacing import NO_FILE
from zcore.stores.base import ByteRange, resolve_range

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
        return _read_bytes(fd, start, stop - start), status
    except (MemoryError, OverflowError) as exc:
        raise OSError(errno.ENOMEM, f"no memory for the {status.st_size} bytes of the file", path) from exc
    finally:
        os.close(fd)


def _read_bytes(fd, start, n_bytes):
    """Return `n_bytes` from `start` on, fewer when the file ends before."""
    if n_bytes == 0:
        return b""
    if start:
        os.lseek(fd, start, os.SEEK_SET)
    data = os.read(fd, n_bytes)
    if len(data) == n_bytes:
        return data
    # More than the system reads at once, a network file system that was interrupted, or a file cut off meanwhile.
    parts = [data]
    while parts[-1] and n_bytes > len(parts[-1]):
        n_bytes -= len(parts[-1])
        parts.append(os.read(fd, n_bytes))
    return b"".join(parts)


def check_absent(path: str) -> None:
    """Raise OSError if `path`, which could not be found, is unreachable and not absent.

    It is unreachable if it, or a directory above it, is a link to nowhere (a disk that is not mounted, or content that
    was dropped), or if a name on the way is neither a file nor a directory.
    """
    while path != os.path.dirname(path):
        mode = _mode_of(os.lstat, path)
        if mode is not None and stat.S_ISLNK(mode):
            mode = _mode_of(os.stat, path)
            if mode is None:
                raise OSError(errno.ENOENT, NOWHERE, path)
        if mode is not None:
            # The rest of the path is absent, in a directory as below a file.
            is_file(mode, path)
            return
        path = os.path.dirname(path)


def _mode_of(look, path):
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
    mode = _mode_of(os.stat, path)
    return mode is not None and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
