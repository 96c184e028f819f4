"""Open a file so that Ctrl-C cannot lose its descriptor, and read and write all bytes of a part of it.

Python handles signals when a call written in C has returned. After `fd = os.open(...)` that is before `fd` is assigned:
the exception then leaves a descriptor that nobody closes, and the disk space of a file that is removed stays in use.
"""
from __future__ import annotations

import os
from functools import partial

TYPE_CHECKING = False      # of typing, without its import time
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    _Opened = TypeVar("_Opened", bound=int | None)


def open_descriptor(path: str | os.PathLike[str], flags: int, mode: int = 0o666, dir_fd: int | None = None) -> int:
    """Return `os.open` of the same arguments. The descriptor is closed if a signal ends this call.

    Assign the result at once: no signal is handled when a function written in Python returns.
    """
    return held(os.open if dir_fd is None else partial(os.open, dir_fd=dir_fd), path, flags, mode)


def duplicate(fd: int) -> int:
    """Return `os.dup` of a descriptor, as `open_descriptor` does that of a file."""
    return held(os.dup, fd)


def identity_of(status: os.stat_result) -> tuple[int, int, int, int, int]:
    """Return the identity of a file: it changes whenever the file is replaced or written to."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def read_at(fd: int, n_bytes: int, offset: int) -> bytes:
    """Return `n_bytes` of a file from `offset` on, fewer when it ends before."""
    parts, n_read = [], 0
    # More than the system reads at once, a network file system that was interrupted, or a file cut off meanwhile.
    while n_read < n_bytes and (part := os.pread(fd, n_bytes - n_read, offset + n_read)):
        parts.append(part)
        n_read += len(part)
    return b"".join(parts)


def write_at(fd: int, data: Any, offset: int) -> int:
    """Write all of a bytes-like; returns the offset behind it."""
    view = memoryview(data)
    while len(view):
        n = os.pwrite(fd, view, offset)
        offset, view = offset + n, view[n:]
    return offset


def held(function: Callable[..., _Opened], *arguments: Any) -> _Opened:
    """Return what a function written in C returns, a descriptor or None; see `open_descriptor`."""
    opened: list[Any] = []
    try:
        # One call in C opens the file and puts the descriptor into the list.
        opened.extend(map(function, *[(argument,) for argument in arguments]))
    except BaseException:
        for fd in opened:
            if fd is not None:
                os.close(fd)
        raise
    return opened[0]
