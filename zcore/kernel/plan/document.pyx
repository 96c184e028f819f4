# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Checks whether the metadata document of an open array has changed, while its objects are read.

Compiled because every read checks it, including small reads and reads without the GIL.
"""
from libc.string cimport memcmp, memcpy, strlen
from posix.fcntl cimport AT_FDCWD, O_CLOEXEC, O_NOCTTY, O_NONBLOCK, O_RDONLY, openat
from posix.unistd cimport close

from zcore.kernel.atomics cimport zc_wall_ns
from zcore.kernel.io.files cimport (
    Buffer, Identity, buffer_free, identify_fd, identify_name, object_read, same_identity,
)
from zcore.kernel.select.open_array cimport Opened
from zcore.kernel.status cimport Status, status_clear

cdef enum:
    MAX_PATH = 4096            # with the final zero; the system refuses longer paths, too
    TRUSTED_AGE_NS = 2_000_000_000         # reason: see `views.TRUSTED_AGE_NS`


cdef bint _path_of(const Opened *opened, char *path) noexcept nogil:
    cdef size_t n, n_name
    if opened.directory == NULL or opened.document == NULL or not opened.has_identity:
        return False
    n = strlen(opened.directory)
    n_name = strlen(opened.document) + 1
    if n + 1 + n_name > MAX_PATH:
        return False
    memcpy(path, opened.directory, n)
    path[n] = c"/"
    memcpy(path + n + 1, opened.document, n_name)
    return True


cdef int document_hold(const Opened *opened) noexcept nogil:
    cdef char path[MAX_PATH]
    cdef Identity identity
    cdef int fd
    if not _path_of(opened, path):
        return -1
    fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
    if fd >= 0 and not (identify_fd(fd, &identity) == 0 and same_identity(&identity, &opened.identity)
                        and _has_content(opened, fd)):
        close(fd)
        fd = -1
    return fd


cdef bint _has_content(const Opened *opened, int fd) noexcept nogil:
    cdef Buffer content
    cdef Status status
    cdef bint same
    if opened.n_content < 0:
        return True
    content.data = NULL
    content.capacity = 0
    status_clear(&status)
    same = (object_read(fd, opened.n_content, &content, &status) == opened.n_content
            and memcmp(content.data, opened.content, <size_t>opened.n_content) == 0)
    buffer_free(&content)
    return same


cdef bint document_stands(const Opened *opened) noexcept nogil:
    cdef char path[MAX_PATH]
    cdef Identity now
    return (_path_of(opened, path) and identify_name(AT_FDCWD, path, &now) == 0
            and same_identity(&now, &opened.identity))


cdef bint document_is_old(const Opened *opened) noexcept nogil:
    return zc_wall_ns() - max(opened.identity.mtime_ns, opened.identity.ctime_ns) > TRUSTED_AGE_NS
