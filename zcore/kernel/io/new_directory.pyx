# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Make the directory of a new node with its documents, under the lock of the directory.

Compiled because programs create thousands of nodes, and because no signal handler can run between the steps. So the
lock needs no owner that Python finds again, and the temporary file of the document keeps the directory from being
pruned.
"""
from libc.stdint cimport int64_t, uint8_t
from posix.fcntl cimport O_CLOEXEC, O_DIRECTORY, O_RDONLY, open
from posix.stat cimport mkdir
from posix.unistd cimport close

from zcore.kernel.io.files cimport (
    Identity, Staging, identify_name, numbers_of, object_commit, object_stage, object_stands, staging_init,
)
from zcore.kernel.io.locks cimport forget_copy, note_copy
from zcore.kernel.status cimport OK, Status, status_clear

cdef extern from *:
    """
    #include <fcntl.h>
    #include <stdint.h>
    #include <string.h>
    #include <sys/file.h>
    #include <unistd.h>
    #ifdef __linux__
    #include <sys/syscall.h>
    #endif

    /* Whether a directory that was just opened has no names, if the system can tell at once. */
    static int zc_has_no_names(int fd)
    {
    #ifdef SYS_getdents64
        /* An entry: inode and offset of 8 bytes each, its length of 2, a type of 1, and the name. */
        _Alignas(8) char entries[1024];
        long n, i;
        while ((n = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0)
            for (i = 0; i < n;) {
                uint16_t length;
                memcpy(&length, entries + i + 16, sizeof length);
                if (strcmp(entries + i + 19, ".") && strcmp(entries + i + 19, ".."))
                    return 0;
                i += length;
            }
        return n == 0;
    #else
        (void)fd;
        return 0;
    #endif
    }
    """
    int zc_has_no_names(int fd) nogil
    enum:
        O_NOFOLLOW
        LOCK_EX
        LOCK_NB
        LOCK_UN
    int flock(int fd, int operation) nogil

cdef enum:
    MAX_FILES = 2

cdef struct Files:
    int n
    const char *names[MAX_FILES]
    const uint8_t *data[MAX_FILES]
    int64_t sizes[MAX_FILES]


def new_directory(bytes path not None, tuple names not None, tuple values not None, bint is_locked, bytes above):
    """Make a directory with files, where nothing is.

    Parameters
    ----------
    path : bytes
        Absolute.
    names, values : tuple of bytes
        At most two, which are written in this order.
    is_locked : bool
        Hold the lock of the directory (`flock`) meanwhile.
    above : bytes or None
        Name of a file that has to be in the directory above once the lock is held.

    Returns
    -------
    tuple of int or None
        Identity of the last file, as from `read_first`; empty if it cannot be told. None if the last file was not
        written: there is something, another process was faster, or a call of the system failed. What was made stays,
        as after a kill.
    """
    cdef Files files
    cdef Identity identity
    cdef const char *directory = path
    cdef bytes beside = b"" if above is None else b"../" + above
    cdef const char *document = NULL if above is None else <const char *>beside
    cdef int found
    cdef int i
    files.n = len(names)
    for i in range(min(files.n, MAX_FILES)):
        files.names[i], files.data[i] = names[i], <const uint8_t *><const char *>values[i]
        files.sizes[i] = len(values[i])
    with nogil:
        found = _make(directory, &files, is_locked, document, &identity) if 0 < files.n <= MAX_FILES else -1
    if found < 0:
        return None
    return () if found > 0 else numbers_of(&identity)


cdef int _make(const char *path, const Files *files, bint is_locked, const char *document,
               Identity *identity) noexcept nogil:
    """0, -1 if the last file was not written, or the errno if only its identity is missing.

    `document`: path of a file that has to be there, from the directory; or NULL.
    """
    cdef int fd
    cdef int slot
    cdef int found = -1
    cdef Status status
    status_clear(&status)
    if mkdir(path, 0o777) != 0:
        return -1
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    if fd < 0:
        return -1
    slot = note_copy(fd)
    # Another process may have been here between the first two calls.
    if ((not is_locked or flock(fd, LOCK_EX | LOCK_NB) == 0)
            and (document is NULL or object_stands(fd, document, &status) == 0) and zc_has_no_names(fd)):
        found = _write(fd, files, identity)
    if is_locked:
        # A fork may have copied the descriptor, and with it the lock.
        flock(fd, LOCK_UN)
    forget_copy(slot)
    close(fd)
    return found


cdef int _write(int dirfd, const Files *files, Identity *identity) noexcept nogil:
    cdef Status status
    cdef Staging staging
    cdef int i
    status_clear(&status)
    staging_init(&staging, 0, False)     # no other process uses the names of temporary files in a new directory
    for i in range(files.n):
        if object_stage(dirfd, files.names[i], files.data[i], files.sizes[i], &staging, &status) != OK:
            return -1
        if object_commit(dirfd, files.names[i], &staging, &status) != OK:
            return -1
    return identify_name(dirfd, files.names[files.n - 1], identity)
