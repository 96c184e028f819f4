# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Metadata documents, looked for and read whole for Python.

Compiled because a handle is opened for every task of a scheduler, and then half of the time is spent between the
system's calls, not in them.
"""
import os

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.errno cimport ENOMEM
from libc.stdint cimport int64_t
from posix.fcntl cimport AT_FDCWD

from zcore.kernel.fileio cimport (
    ABSENT, FAILED, Buffer, Identity, buffer_free, object_close, object_read_start, object_stands, object_try_open,
)
from zcore.kernel.status cimport Status, status_clear


def read_first(paths not None, int64_t limit):
    """Return the first of several files that exists.

    Parameters
    ----------
    paths : iterable of bytes
        Looked at as far as needed.
    limit : int
        Bytes that are read at most.

    Returns
    -------
    (int, bytes, tuple of int) or None
        Index of the path, content, and identity ``(device, inode, size, mtime_ns, ctime_ns)`` of what was read; None
        when no path leads to a regular file.

    Raises
    ------
    OSError
        Of the first file that may be there and cannot be read.
    """
    cdef Status status
    cdef Identity identity
    cdef Buffer buffer
    cdef int64_t n = ABSENT
    cdef const char *name
    cdef bytes path
    cdef int fd
    cdef Py_ssize_t i = -1
    status_clear(&status)
    buffer.data, buffer.capacity = NULL, 0
    for path in paths:
        i += 1
        name = path
        with nogil:
            fd = object_try_open(AT_FDCWD, name, &status)
            n = fd
            if fd >= 0:
                n = object_read_start(fd, limit, &buffer, &identity, &status)
                object_close(fd)
        if n == ABSENT:
            continue
        try:
            if n == FAILED:
                error = status.sys_errno or ENOMEM
                raise OSError(error, os.strerror(error), os.fsdecode(path))
            return i, PyBytes_FromStringAndSize(<char *>buffer.data, n), (
                identity.device, identity.inode, identity.size, identity.mtime_ns, identity.ctime_ns)
        finally:
            buffer_free(&buffer)
    return None


def existing(paths not None):
    """Return which of several files exist: a list of their indices.

    Parameters
    ----------
    paths : iterable of bytes

    Raises
    ------
    OSError
        Of the first path of which that cannot be told.
    """
    cdef const char *name
    cdef bytes path
    cdef int code
    cdef Status status
    cdef Py_ssize_t i = -1
    found = []
    status_clear(&status)
    for path in paths:
        i += 1
        name = path
        with nogil:
            code = object_stands(AT_FDCWD, name, &status)
        if code == FAILED:
            raise OSError(status.sys_errno, os.strerror(status.sys_errno), os.fsdecode(path))
        if code != ABSENT:
            found.append(i)
    return found
