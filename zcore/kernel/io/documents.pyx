# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Metadata documents: find and read them whole, for Python.

Compiled because a scheduler opens a handle for every task, and Python would spend half of that time between the system
calls.
"""
import os

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.errno cimport ENAMETOOLONG, ENOMEM
from libc.stdint cimport int64_t
from libc.string cimport memcpy
from posix.fcntl cimport AT_FDCWD

from zcore.kernel.io.files cimport (
    ABSENT, FAILED, Buffer, Identity, buffer_free, object_close, object_read_start, object_stands, object_try_open,
)
from zcore.kernel.status cimport Status, status_clear

cdef enum:
    MAX_PATH_NBYTES = 4096     # with the final zero; the system refuses longer paths, too


cdef int _join(char *path, bytes directory, bytes name) except -1:
    """Write the path of a file; OSError if it is too long for a system call."""
    cdef Py_ssize_t n = len(directory)
    cdef Py_ssize_t n_name = len(name)
    if n + n_name + 2 > MAX_PATH_NBYTES:
        raise _fault(ENAMETOOLONG, directory, name)
    memcpy(path, <const char *>directory, n)
    path[n] = c'/'
    memcpy(path + n + 1, <const char *>name, n_name + 1)
    return 0


cdef object _fault(int error, bytes directory, bytes name):
    return OSError(error, os.strerror(error), os.path.join(os.fsdecode(directory), os.fsdecode(name)))


def read_first(bytes directory not None, tuple names not None, int64_t limit):
    """Return the first of several files that exists.

    Parameters
    ----------
    directory : bytes
    names : tuple of bytes
        Relative to `directory`.
    limit : int
        Maximum number of bytes to read.

    Returns
    -------
    (int, bytes, tuple of int) or None
        Index of the name, content, and identity ``(device, inode, size, mtime_ns, ctime_ns)`` of the file; None if no
        name leads to a regular file.

    Raises
    ------
    OSError
        For the first file that may exist but cannot be read.
    """
    cdef Status status
    cdef Identity identity
    cdef Buffer buffer
    cdef int64_t n = ABSENT
    cdef char path[MAX_PATH_NBYTES]
    cdef int fd
    cdef Py_ssize_t i
    status_clear(&status)
    buffer.data, buffer.capacity = NULL, 0
    for i in range(len(names)):
        _join(path, directory, names[i])
        with nogil:
            fd = object_try_open(AT_FDCWD, path, &status)
            n = fd
            if fd >= 0:
                n = object_read_start(fd, limit, &buffer, &identity, &status)
                object_close(fd)
        if n == ABSENT:
            continue
        try:
            if n == FAILED:
                raise _fault(status.sys_errno or ENOMEM, directory, names[i])
            return i, PyBytes_FromStringAndSize(<char *>buffer.data, n), (
                identity.device, identity.inode, identity.size, identity.mtime_ns, identity.ctime_ns)
        finally:
            buffer_free(&buffer)
    return None


def existing(bytes directory not None, tuple names not None):
    """Return which of several files exist: a list of their indices; directory and names as for `read_first`.

    Raises : OSError, for the first unreachable file. In an unreachable directory no file exists.
    """
    cdef char path[MAX_PATH_NBYTES]
    cdef int code
    cdef Status status
    cdef Py_ssize_t i
    found = []
    status_clear(&status)
    for i in range(len(names)):
        _join(path, directory, names[i])
        with nogil:
            code = object_stands(AT_FDCWD, path, &status)
        if code == FAILED:
            raise _fault(status.sys_errno, directory, names[i])
        if code != ABSENT:
            found.append(i)
    return found
