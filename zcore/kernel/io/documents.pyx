# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Metadata documents: find and read them whole, see whether they change, and put reads of them in order, for Python.

Compiled because a scheduler opens a handle for every task, and Python would spend half of that time between the system
calls. Resolving links of a target of references in Python takes ten times as long as reading a small chunk.
"""
import os

from zcore.text.strict_json import STRICT

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.errno cimport ENAMETOOLONG, ENOMEM, errno
from libc.stdint cimport int64_t
from libc.string cimport memchr, memcmp, memcpy, strlen
from posix.fcntl cimport AT_FDCWD
from posix.unistd cimport close

from zcore.kernel.atomics cimport zc_add
from zcore.kernel.io.files cimport (
    ABSENT, FAILED, Buffer, Identity, buffer_free, identify_name, numbers_of, object_identify, object_read_start,
    object_stands, object_try_open, same_identity,
)
from zcore.kernel.status cimport OK, Status, status_clear

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
                close(fd)
        if n == ABSENT:
            continue
        try:
            if n == FAILED:
                raise _fault(status.sys_errno or ENOMEM, directory, names[i])
            return i, PyBytes_FromStringAndSize(<char *>buffer.data, n), numbers_of(&identity)
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


@cython.final
cdef class Look:
    """One document of a directory, at a moment when some others were missing; `is_same` tells if it still is so.

    The document stays open as long as the look lives. So no other file gets its inode, and another document is never
    taken for this one.

    Parameters
    ----------
    directory : bytes
    name : bytes
        Of the document, relative to `directory`.
    others : tuple of bytes
        Documents that must be missing, now and later.
    beside : tuple of bytes
        Documents that must be missing now.
    limit : int
        Maximum number of bytes to read.

    Attributes
    ----------
    raw : bytes or None
        Content of the document; None if it is missing.
    is_plain : bool
        Whether the others are missing. It is false, too, if something is unreachable.
    """

    cdef readonly bytes raw
    cdef readonly bint is_plain
    cdef bytes directory
    cdef bytes name
    cdef tuple others
    cdef Identity identity
    cdef int fd

    def __cinit__(self, bytes directory not None, bytes name not None, tuple others not None, tuple beside not None,
                  int64_t limit):
        cdef char path[MAX_PATH_NBYTES]
        cdef Status status
        cdef Buffer buffer
        cdef int64_t n = ABSENT
        self.fd = -1
        self.directory, self.name, self.others = directory, name, others
        status_clear(&status)
        buffer.data, buffer.capacity = NULL, 0
        _join(path, directory, name)
        with nogil:
            self.fd = object_try_open(AT_FDCWD, path, &status)
            if self.fd >= 0:
                n = object_read_start(self.fd, limit, &buffer, &self.identity, &status)
            elif self.fd == FAILED:
                n = FAILED
        try:
            if n >= 0:
                self.raw = PyBytes_FromStringAndSize(<char *>buffer.data, n)
        finally:
            buffer_free(&buffer)
        self.is_plain = n != FAILED and _are_missing(directory, others) and _are_missing(directory, beside)

    def __dealloc__(self):
        if self.fd >= 0:
            close(self.fd)

    def is_same(self):
        """Return whether a document of this name is still the same file, or still missing, and so are the others."""
        cdef char path[MAX_PATH_NBYTES]
        cdef Identity now
        cdef int error
        if self.raw is None:
            return _are_missing(self.directory, (self.name, *self.others))
        _join(path, self.directory, self.name)
        with nogil:
            error = identify_name(AT_FDCWD, path, &now)
        return error == 0 and same_identity(&now, &self.identity) and _are_missing(self.directory, self.others)


@cython.final
cdef class Descriptor:
    """An open file of one owner: it is closed when nothing refers to this object any more.

    Compiled, because a signal may end a function of Python at its first line, also `close` or a finalizer. No signal
    is handled between `os.open` here and the assignment, and none when this is freed.

    Parameters
    ----------
    path, flags, mode, dir_fd
        As for `os.open`, and with its errors.

    Attributes
    ----------
    fd : int
        -1 once it is closed.
    """

    cdef readonly int fd

    def __cinit__(self, path, int flags, int mode=0o666, dir_fd=None):
        self.fd = -1
        self.fd = os.open(path, flags, mode) if dir_fd is None else os.open(path, flags, mode, dir_fd=dir_fd)

    def __dealloc__(self):
        if self.fd >= 0:
            close(self.fd)

    def close(self):
        """Close the file; an OSError tells what the system finds only now. Later calls do nothing."""
        cdef int fd = self.fd
        self.fd = -1
        if fd >= 0 and close(fd):
            raise OSError(errno, os.strerror(errno))


@cython.final
cdef class Tickets:
    """Numbers in ascending order, each given once. They put in order what threads read with one handle.

    Compiled, because threads may run without a GIL, and no signal handler comes between the steps of a method.

    >>> tickets = Tickets()
    >>> tickets.next(), tickets.next()
    (1, 2)
    """

    cdef int64_t last          # no order: each number is given once
    cdef cython.pymutex adopting

    def next(self):
        """Return the next number, at first 1."""
        return zc_add(&self.last, 1) + 1

    def adopt(self, holder, view):
        """Make `view` the view of `holder`, unless that has one with a later ticket, from another thread."""
        # The last reference to the old view must not end here: what it frees may run any code, with the mutex taken.
        old = None
        with self.adopting:
            old = holder.view
            if old is None or old.ticket < view.ticket:
                holder.view = view


cdef bint _are_missing(bytes directory, tuple names) except -1:
    cdef char path[MAX_PATH_NBYTES]
    cdef Status status
    cdef int code = ABSENT
    cdef Py_ssize_t i
    status_clear(&status)
    for i in range(len(names)):
        _join(path, directory, names[i])
        with nogil:
            code = object_stands(AT_FDCWD, path, &status)
        if code != ABSENT:
            return False
    return True


# the texts around the members that differ between documents of a group

cdef enum:
    SAFE_DIGITS = 18     # a number of this many digits is below 2**63

cdef tuple _FREE = ("shape", "attributes", "chunk_shape", "chunks")
cdef const char *_QUOTED[4]
_QUOTED[:] = [b'shape"', b'attributes"', b'chunk_shape"', b'chunks"']
_decode = STRICT.scan_once


def cut(bytes raw not None, int max_depth):
    """Return the texts around the values of the members that may differ, and the values; None if that is not clear.

    Parameters
    ----------
    raw : bytes
        A document.
    max_depth : int
        Of lists and objects in the document.

    Returns
    -------
    (tuple of bytes, dict) or None
        A value is a tuple of integers >= 0, or the dict of the attributes.
    """
    cdef const char *data = PyBytes_AS_STRING(raw)
    cdef const char *end = data + len(raw)
    cdef const char *start = data
    cdef const char *at = data
    cdef const char *value
    cdef int k
    cdef Py_ssize_t n
    texts, values = [], {}
    while True:
        at = <const char *>memchr(at, c'"', end - at)
        if at == NULL:
            break
        at += 1
        for k in range(4):
            n = strlen(_QUOTED[k])
            if end - at > n and memcmp(at, _QUOTED[k], n) == 0:
                break
        else:
            continue
        value = _behind_blanks(at + n)
        if value[0] != c':':
            continue
        if _FREE[k] in values:
            if k < 2:
                return None
            continue     # of inner chunks: it is part of the text
        value = at = _behind_blanks(value + 1)
        if k != 1:
            found = _lengths(&at)
        else:
            at = _behind_object(value, end, max_depth)
            if at == NULL:
                return None
            try:
                found = _decode(value[:at - value].decode(), 0)[0]
            except (ValueError, StopIteration):
                return None
        if found is None:
            return None
        texts.append(start[:value - start])
        values[_FREE[k]] = found
        start = at
    texts.append(start[:end - start])
    return (tuple(texts), values) if "shape" in values else None


cdef const char *_behind_blanks(const char *at) noexcept:
    """Bytes end with a zero, so this ends there."""
    while at[0] == c' ' or at[0] == c'\n' or at[0] == c'\r' or at[0] == c'\t':
        at += 1
    return at


cdef tuple _lengths(const char **at):
    """Return the integers of a list, and set `at` behind it; None for all else."""
    cdef const char *text = at[0]
    cdef const char *first
    cdef int64_t value
    if text[0] != c'[':
        return None
    lengths = []
    first = _behind_blanks(text + 1)
    if first[0] == c']':
        at[0] = first + 1
        return ()
    while True:
        first = text = _behind_blanks(text + 1)
        value = 0
        while c'0' <= text[0] <= c'9' and text - first < SAFE_DIGITS:
            value = 10 * value + (text[0] - c'0')
            text += 1
        if text == first or (first[0] == c'0' and text - first > 1):
            return None
        lengths.append(value)
        text = _behind_blanks(text)
        if text[0] == c']':
            at[0] = text + 1
            return tuple(lengths)
        if text[0] != c',':
            return None


cdef const char *_behind_object(const char *at, const char *end, int max_depth) noexcept:
    """The end of an object; NULL if there is none, or if it is too deep."""
    cdef int depth = 1     # of the document
    if at[0] != c'{':
        return NULL
    while at < end:
        if at[0] == c'"':
            at += 1
            while at < end and at[0] != c'"':
                at += 1 + (at[0] == c'\\')
        elif at[0] == c'{' or at[0] == c'[':
            depth += 1
            if depth > max_depth:
                return NULL
        elif at[0] == c'}' or at[0] == c']':
            depth -= 1
            if depth == 1:
                return at + 1
        at += 1
    return NULL


# files at paths that Python has judged

cdef extern from *:
    """
    #include <fcntl.h>
    #include <stdint.h>
    #include <unistd.h>
    #ifdef __linux__
    #include <sys/syscall.h>
    #endif
    #define ZC_READING (O_RDONLY | O_CLOEXEC | O_NONBLOCK)   /* O_NONBLOCK: do not wait for a FIFO */

    /* Opens a file by a path of which no part may be a link: -1 if one is, or if the system cannot tell (before Linux
       5.6, and in sandboxes without openat2). */
    static int zc_open_at(const char *path)
    {
    #if defined(SYS_openat2)
        struct { uint64_t flags, mode, resolve; } how = {ZC_READING, 0, 0x04 /* RESOLVE_NO_SYMLINKS */};
        return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
    #elif defined(O_NOFOLLOW_ANY)
        return open(path, ZC_READING | O_NOFOLLOW_ANY);
    #else
        (void)path;
        return -1;
    #endif
    }
    """
    int zc_open_at(const char *path) nogil


def open_again(bytes path not None, bytes place not None):
    """Return a descriptor for reading the file at `place`, if `path` still leads to it; else None.

    Parameters
    ----------
    path : bytes
        Absolute path, as the caller named it; it may contain links.
    place : bytes
        The resolved path: absolute, without links.

    Notes
    -----
    None only means that the path must be resolved again: there may be a new link, another file, or no file, or the
    system cannot tell.
    """
    cdef const char *name = path
    cdef const char *real = place
    cdef bint is_direct = path == place
    cdef int fd
    with nogil:
        fd = zc_open_at(real)
        if fd >= 0 and not _is_reached(fd, name, is_direct):
            close(fd)
            fd = -1
    return None if fd < 0 else fd


cdef bint _is_reached(int fd, const char *path, bint is_direct) noexcept nogil:
    """Whether a descriptor is a regular file that the path leads to."""
    cdef Identity found
    cdef Identity named
    cdef Status status
    return object_identify(fd, &found, &status) == OK and (is_direct or (
        identify_name(AT_FDCWD, path, &named) == 0 and named.device == found.device and named.inode == found.inode))
