# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Open a file again by a path that Python has resolved and checked before.

Compiled because resolving links in Python takes ten times as long as reading a small chunk.
"""
from posix.stat cimport S_ISREG
from posix.unistd cimport close

cdef extern from *:
    """
    #include <fcntl.h>
    #include <limits.h>
    #include <stdio.h>
    #include <string.h>
    #include <sys/stat.h>
    #include <unistd.h>
    #ifdef __linux__
    #include <errno.h>
    #include <stdint.h>
    #include <sys/syscall.h>
    #endif
    #define ZC_READING (O_RDONLY | O_CLOEXEC | O_NONBLOCK)   /* O_NONBLOCK: do not wait for a FIFO */

    /* Whether an open file lies at a path without links, if the system can tell. */
    static int zc_lies_at(int fd, const char *path)
    {
    #if defined(__linux__)
        char link[40], found[PATH_MAX + 1];
        ssize_t n;
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        n = readlink(link, found, sizeof found);
        return n > 0 && (size_t)n == strlen(path) && memcmp(found, path, (size_t)n) == 0;
    #elif defined(F_GETPATH)
        char found[PATH_MAX + 1];
        return fcntl(fd, F_GETPATH, found) == 0 && strcmp(found, path) == 0;
    #else
        (void)fd; (void)path;
        return 0;
    #endif
    }

    /* Opens a file by a path of which no part may be a link: -1 if one is, or if the system cannot tell. */
    static int zc_open_at(const char *path)
    {
        int fd;
    #if defined(__linux__) && defined(SYS_openat2)
        struct { uint64_t flags, mode, resolve; } how = {ZC_READING, 0, 0x04 /* RESOLVE_NO_SYMLINKS */};
        fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
        /* Before Linux 5.6, and in sandboxes without openat2, use the other way. */
        if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
            return fd;
    #endif
        fd = open(path, ZC_READING | O_NOFOLLOW);
        if (fd >= 0 && !zc_lies_at(fd, path)) {
            close(fd);
            return -1;
        }
        return fd;
    }
    """
    int zc_open_at(const char *path) nogil
    ctypedef struct c_stat "struct stat":
        unsigned int st_mode
        long st_dev
        long st_ino
    int fstat(int fd, c_stat *status) nogil
    int c_stat_of "stat"(const char *path, c_stat *status) nogil


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
    cdef c_stat found
    cdef c_stat named
    if fstat(fd, &found) != 0 or not S_ISREG(found.st_mode):
        return False
    if is_direct:
        return True
    return c_stat_of(path, &named) == 0 and named.st_dev == found.st_dev and named.st_ino == found.st_ino
