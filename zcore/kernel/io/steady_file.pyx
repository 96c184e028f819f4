# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""A file for HDF5, whose library crashes if it closes a file after a failed write.

Here no write fails. After the first failure all writes stay in memory and are read from there, so the library finds its
structures as it wrote them. `check` raises the failure.

Compiled because Ctrl-C can raise an exception at the first line of any Python method; that would be a failing write,
too.
"""
import os

from libc.errno cimport EINTR, EIO, errno
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy, memset
from posix.unistd cimport close, ftruncate, pread, pwrite

cimport cython

from zcore.kernel.memory cimport Bytes

cdef enum:
    MAX_KEPT_NBYTES = 1 << 26     # longer writes are elements, which are not read again


@cython.final
cdef class SteadyFile:
    """A new file for reading and writing, with the methods of Python's binary files that h5py calls.

    Raises : OSError, if the file exists or cannot be made.
    """

    cdef readonly object path
    cdef int _fd
    cdef int _errno             # errno of the first failure
    cdef int64_t _at
    cdef int64_t _size
    cdef int64_t _n_kept
    cdef list _kept             # (offset, bytes) of writes since then

    def __cinit__(self, path):
        self.path = path
        self._fd = -1
        self._kept = []
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)

    def __dealloc__(self):
        if self._fd >= 0:
            close(self._fd)

    def close(self):
        """Close the file. The library has closed it before.

        Raises : OSError, the first failure.
        """
        fd, self._fd = self._fd, -1
        if fd >= 0 and close(fd) and not self._errno:
            self._errno = errno      # a network file system may report a full disk only here
        self.check()

    def check(self):
        """Raise the first failure, an OSError, if there was one."""
        if self._errno:
            raise OSError(self._errno, os.strerror(self._errno), self.path)

    def seek(self, int64_t offset, int whence=0):
        """Move to an offset, counted from the beginning or (2) the end, and return the new position."""
        self._at = offset + (self._size if whence == 2 else 0)
        return self._at

    def tell(self):
        """Return the position."""
        return self._at

    def flush(self):
        """Do nothing: writes are not buffered."""

    def truncate(self, int64_t n_bytes):
        """Set the length of the file."""
        self._size = n_bytes
        while not self._errno and ftruncate(self._fd, n_bytes):
            if errno != EINTR:
                self._errno = errno
        return n_bytes

    def write(self, data):
        """Write all bytes and return their number."""
        cdef Bytes source = Bytes(data)
        cdef int64_t n_bytes = source.n, n_written = 0, n
        if n_bytes and not self._errno:
            with nogil:
                while n_written < n_bytes:
                    n = pwrite(self._fd, source.data + n_written, n_bytes - n_written, self._at + n_written)
                    if n > 0:
                        n_written += n
                    elif n == 0 or errno != EINTR:
                        self._errno = EIO if n == 0 else errno
                        break
        if n_written < n_bytes and self._n_kept + n_bytes <= MAX_KEPT_NBYTES:
            self._n_kept += n_bytes
            self._kept.append((self._at, bytes(data)))
        self._at += n_bytes
        self._size = max(self._size, self._at)
        return n_bytes

    def readinto(self, out):
        """Fill `out` with bytes; bytes past the end of the file are zero."""
        cdef Bytes target = Bytes(out, writable=True)
        cdef int64_t n_bytes = target.n, n_read = 0, n, start, stop, offset
        cdef bytes kept
        if not n_bytes:
            return 0
        with nogil:
            while n_read < n_bytes:
                n = pread(self._fd, target.data + n_read, n_bytes - n_read, self._at + n_read)
                if n > 0:
                    n_read += n
                elif n == 0 or errno != EINTR:
                    if n < 0 and not self._errno:
                        self._errno = errno
                    break
            memset(target.data + n_read, 0, n_bytes - n_read)
        for offset, kept in self._kept:
            start, stop = max(offset, self._at), min(offset + <int64_t>len(kept), self._at + n_bytes)
            if start < stop:
                memcpy(target.data + (start - self._at), <const uint8_t *>kept + (start - offset), stop - start)
        self._at += n_bytes
        return n_bytes
