# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Metadata documents: find and read them whole, see whether they change, and put reads of them in order, for Python.

Compiled because a scheduler opens a handle for every task, and Python would spend half of that time between the system
calls.
"""
import os

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.errno cimport ENAMETOOLONG, ENOMEM, errno
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, strlen
from posix.fcntl cimport AT_FDCWD
from posix.unistd cimport close

cimport cython

from zcore.kernel.atomics cimport zc_add
from zcore.kernel.io.files cimport (
    ABSENT, FAILED, Buffer, Identity, buffer_free, identify_fd, identify_name, object_close, object_read_start,
    object_stands, object_try_open, same_identity,
)
from zcore.kernel.status cimport Status, status_clear

cdef enum:
    MAX_PATH_NBYTES = 4096     # with the final zero; the system refuses longer paths, too


cdef int _join(char *path, bytes directory, bytes name) except -1:
    """Write the path of a file; OSError if it is too long for a system call."""
    if not _is_joined(path, directory, name):
        raise _fault(ENAMETOOLONG, directory, name)
    return 0


cdef bint _is_joined(char *path, const char *directory, const char *name) noexcept nogil:
    cdef size_t n = strlen(directory)
    cdef size_t n_name = strlen(name)
    if n + n_name + 2 > MAX_PATH_NBYTES:
        return False
    memcpy(path, directory, n)
    path[n] = c'/'
    memcpy(path + n + 1, name, n_name + 1)
    return True


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


cdef struct Found:
    Buffer buffer
    Identity identity
    int64_t n_bytes
    Py_ssize_t name      # index of the name that was read; -1: not known
    uint64_t beside      # a bit for each name beside that exists


@cython.final
cdef class FirstOfEach:
    """Does `read_first` and `existing` for several directories, in as many threads as enter `run`.

    Parameters
    ----------
    directories : list of bytes
    names : tuple of bytes
        The first that exists in a directory is read.
    beside : tuple of tuples of bytes
        For each of `names`, at most 64 others that are looked for if it is read.
    limit : int
        Maximum number of bytes of a file.
    """

    cdef list directories
    cdef tuple names
    cdef tuple beside
    cdef const char **texts    # of the directories, then of the names
    cdef const char ***others  # of the names beside, NULL behind the last
    cdef Found *found
    cdef int64_t limit
    cdef int64_t n_taken
    cdef Py_ssize_t n
    cdef Py_ssize_t n_names

    def __cinit__(self, list directories not None, tuple names not None, tuple beside not None, int64_t limit):
        cdef Py_ssize_t i, k
        cdef bytes text     # each stays in the list or a tuple
        if len(beside) != len(names):
            raise ValueError("names beside each of the names")
        self.directories, self.names, self.beside, self.limit = list(directories), names, beside, limit
        self.n, self.n_names = len(self.directories), len(names)
        self.texts = <const char **>calloc(self.n + self.n_names + 1, sizeof(char *))
        self.others = <const char ***>calloc(self.n_names + 1, sizeof(char **))
        self.found = <Found *>calloc(self.n + 1, sizeof(Found))
        if not (self.texts and self.others and self.found):
            raise MemoryError
        for i in range(self.n):
            text = self.directories[i]
            self.texts[i] = text
            self.found[i].name = -1
        for k in range(self.n_names):
            text = names[k]
            self.texts[self.n + k] = text
            if len(<tuple?>beside[k]) > 64:
                raise ValueError("at most 64 names beside one")
            self.others[k] = <const char **>calloc(len(beside[k]) + 1, sizeof(char *))
            if not self.others[k]:
                raise MemoryError
            for i in range(len(beside[k])):
                text = beside[k][i]
                self.others[k][i] = text

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.found:
            for i in range(self.n):
                buffer_free(&self.found[i].buffer)
        if self.others:
            for i in range(self.n_names):
                free(self.others[i])
        free(self.found)
        free(self.others)
        free(self.texts)

    def run(self, main=True):
        """Work until nothing is left to do that no other thread has begun."""
        cdef int64_t i
        with nogil:
            while True:
                i = zc_add(&self.n_taken, 1)
                if i >= self.n:
                    break
                self._read(i)

    def cancel(self):
        """Let the threads leave `run` soon."""
        zc_add(&self.n_taken, self.n)

    cdef void _read(self, int64_t i) noexcept nogil:
        cdef char path[MAX_PATH_NBYTES]
        cdef Status status
        cdef Found *found = &self.found[i]
        cdef int64_t n
        cdef Py_ssize_t k, other
        cdef int fd, code
        status_clear(&status)
        for k in range(self.n_names):
            if not _is_joined(path, self.texts[i], self.texts[self.n + k]):
                return
            fd = object_try_open(AT_FDCWD, path, &status)
            if fd == ABSENT:
                continue
            if fd < 0:
                return
            n = object_read_start(fd, self.limit, &found.buffer, &found.identity, &status)
            object_close(fd)
            if n == ABSENT:
                continue
            if n < 0 or found.identity.size > self.limit:
                buffer_free(&found.buffer)
                return
            other = 0
            while self.others[k][other]:
                if not _is_joined(path, self.texts[i], self.others[k][other]):
                    return
                code = object_stands(AT_FDCWD, path, &status)
                if code == FAILED:
                    return
                if code != ABSENT:
                    found.beside |= <uint64_t>1 << other
                other += 1
            found.n_bytes, found.name = n, k
            return

    def taken(self):
        """Return what was found in each directory, once all threads have left `run`.

        Returns
        -------
        list of (int, bytes, tuple of int, list of int) or None
            Index of the name, content and identity as from `read_first`, and the indices of the existing names beside
            it; None if there is no such file, it is longer than `limit`, or one of them is unreachable.
        """
        cdef Found *found
        cdef Py_ssize_t i, other
        if self.n_taken < self.n:
            raise ValueError("not all have been read")
        taken = []
        for i in range(self.n):
            found = &self.found[i]
            if found.name < 0:
                taken.append(None)
                continue
            taken.append((
                found.name, PyBytes_FromStringAndSize(<char *>found.buffer.data, found.n_bytes), (
                    found.identity.device, found.identity.inode, found.identity.size, found.identity.mtime_ns,
                    found.identity.ctime_ns),
                [other for other in range(len(self.beside[found.name])) if found.beside >> other & 1]))
            buffer_free(&found.buffer)
        return taken


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
            object_close(self.fd)

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
cdef class Held:
    """A file that is held open, if it can be opened: as long as this lives, no other file gets its inode.

    Compiled, because Python swallows the Ctrl-C that comes in a finalizer written in Python.
    """

    cdef int fd
    cdef bint is_open     # false until there is a descriptor, also if this is never made

    def __cinit__(self, str path not None):
        cdef bytes name = os.fsencode(path)
        cdef const char *text = name
        cdef Status status
        status_clear(&status)
        with nogil:
            self.fd = object_try_open(AT_FDCWD, text, &status)
            self.is_open = self.fd >= 0

    def __dealloc__(self):
        if self.is_open:
            object_close(self.fd)

    def close(self):
        """Close the file."""
        if self.is_open:
            self.is_open = False
            object_close(self.fd)

    def is_of(self, tuple identity not None):
        """Return whether the file is open and has the device and inode of an identity."""
        cdef Identity found
        return (self.is_open and identify_fd(self.fd, &found) == 0
                and (found.device, found.inode) == identity[:2])


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
            object_close(self.fd)

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

    cdef int64_t last
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
