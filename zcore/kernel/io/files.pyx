# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Reading and replacing objects that lie in files, without the GIL.

Compiled because a chunk of some kilobytes costs a few microseconds here, and ten times that through Python's `os`.
All differences between operating systems in handling files are in this module.
"""
import os
import stat

from libc.errno cimport (
    EACCES, EEXIST, EINTR, EISDIR, EMFILE, ENAMETOOLONG, ENFILE, ENOENT, ENOTDIR, EPERM, ESPIPE, errno,
)
from libc.stdint cimport INT64_MAX
from libc.stdio cimport snprintf
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, strlen, strrchr
from posix.fcntl cimport AT_FDCWD, O_CLOEXEC, O_CREAT, O_EXCL, O_NOCTTY, O_NONBLOCK, O_RDONLY, O_WRONLY, openat
from posix.stat cimport S_ISDIR, S_ISLNK, S_ISREG
from posix.unistd cimport close, pread, pwrite

from zcore.kernel.atomics cimport zc_load, zc_store, zc_wall_ns
from zcore.kernel.memory cimport zc_resized
from zcore.kernel.status cimport (
    CHUNK_LONG, IO_MKDIR, IO_OPEN, IO_READ, IO_RENAME, IO_UNLINK, IO_WRITE, NO_MEMORY, OK, SHARD_CUT, WANTED, fail,
    fail_errno, status_clear,
)

cdef extern from *:
    """
    #include "memory.h"
    #include <stdio.h>
    #include <sys/mman.h>
    #include <sys/stat.h>
    #include <sys/uio.h>
    #include <errno.h>
    #include <fcntl.h>
    #include <unistd.h>
    #ifdef __linux__
    #include <sys/syscall.h>
    #include <sys/vfs.h>
    #define zc_sync_files(fd) syncfs(fd)
    #else
    #define zc_sync_files(fd) (sync(), 0)
    #endif
    #define ZC_TEMP_PREFIX ".__zc_tmp."
    #define ZC_TEMP_NAME ZC_TEMP_PREFIX "%016llx%08llx"
    #if defined(__APPLE__)
    #define ZC_MTIME_NS(s) ((int64_t)(s).st_mtimespec.tv_sec * 1000000000 + (s).st_mtimespec.tv_nsec)
    #define ZC_CTIME_NS(s) ((int64_t)(s).st_ctimespec.tv_sec * 1000000000 + (s).st_ctimespec.tv_nsec)
    #else
    #define ZC_MTIME_NS(s) ((int64_t)(s).st_mtim.tv_sec * 1000000000 + (s).st_mtim.tv_nsec)
    #define ZC_CTIME_NS(s) ((int64_t)(s).st_ctim.tv_sec * 1000000000 + (s).st_ctim.tv_nsec)
    #endif

    /* Without the call, nothing is read by it, and the caller reads each piece. */
    #if defined(__linux__) || defined(__FreeBSD__)
    #define zc_preadv preadv
    #else
    static ssize_t zc_preadv(int fd, const struct iovec *pieces, int n, off_t offset)
    {
        (void)fd; (void)pieces; (void)n; (void)offset;
        return 0;
    }
    #endif

    /* Memory with pages of 2 MB if the system grants them: such a buffer is touched whole for every chunk. Not for 2 MB
       or less, which `malloc` gives to the next call once more, with pages that need not be cleared again. */
    static void *zc_allocate(int64_t n_bytes)
    {
    #ifdef MADV_HUGEPAGE
        if (n_bytes > (int64_t)1 << 21) {
            void *data = 0;
            if (!zc_fits(n_bytes, 1) || posix_memalign(&data, (size_t)1 << 21, (size_t)n_bytes)) return 0;
            madvise(data, (size_t)n_bytes, MADV_HUGEPAGE);
            return data;
        }
    #endif
        return zc_new(n_bytes, 1);
    }

    /* System calls, repeated after a signal. On a network file system, any of them can be interrupted. */
    #define ZC_AGAIN(call) int failed; do failed = (call); while (failed && errno == EINTR); return failed
    static int zc_fstat(int fd, struct stat *s) { ZC_AGAIN(fstat(fd, s)); }
    static int zc_fstatat(int dirfd, const char *name, struct stat *s, int flags)
    {
        ZC_AGAIN(fstatat(dirfd, name, s, flags));
    }
    static int zc_fchmodat(int dirfd, const char *name, unsigned mode) { ZC_AGAIN(fchmodat(dirfd, name, mode, 0)); }
    static int zc_mkdirat(int dirfd, const char *name) { ZC_AGAIN(mkdirat(dirfd, name, 0777)); }
    static int zc_renameat(int dirfd, const char *name, const char *new_name)
    {
        ZC_AGAIN(renameat(dirfd, name, dirfd, new_name));
    }
    static int zc_unlinkat(int dirfd, const char *name) { ZC_AGAIN(unlinkat(dirfd, name, 0)); }
    static int zc_fsync(int fd) { ZC_AGAIN(fsync(fd)); }

    /* What survives a power cut. A file system writes down names in the order of the changes, but a name may be there
       before the data of its file are. Data that are *written out* before a name is changed are there if the name is. A
       *barrier* is passed when all that was written out, and all names, are on the disk. */
    enum { ZC_NO_DISK, ZC_EXT4, ZC_XFS, ZC_BTRFS, ZC_OTHER_DISK };
    static int zc_disk_of(int fd)
    {
    #ifdef __linux__
        struct statfs found;
        if (fstatfs(fd, &found) == 0)
            switch ((unsigned)found.f_type) {
            case 0x01021994: case 0x858458f6: return ZC_NO_DISK;     /* tmpfs, ramfs */
            case 0xef53: return ZC_EXT4;
            case 0x58465342: return ZC_XFS;
            case 0x9123683e: return ZC_BTRFS;
            }
    #else
        (void)fd;
    #endif
        return ZC_OTHER_DISK;
    }

    /* Starts to write the data of a file, and returns at once. */
    static void zc_start_write_out(int fd)
    {
    #ifdef __linux__
        (void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    #else
        (void)fd;
    #endif
    }

    static int zc_write_out(int fd, int disk)
    {
        if (disk == ZC_NO_DISK) return 0;
    #ifdef __linux__
        /* The journal comes behind the data, and with it the disk writes down what is in its own cache. */
        if (disk < ZC_BTRFS && sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE
                                                            | SYNC_FILE_RANGE_WAIT_AFTER) == 0) return 0;
        ZC_AGAIN(fdatasync(fd));
    #else
        return zc_fsync(fd);
    #endif
    }

    static int zc_write_out_all(int fd) { return zc_disk_of(fd) == ZC_NO_DISK ? 0 : zc_sync_files(fd); }

    static int zc_barrier(int fd, int is_alone)
    {
        int disk = zc_disk_of(fd);
        if (disk == ZC_NO_DISK) return 0;
    #ifdef F_FULLFSYNC
        if (fcntl(fd, F_FULLFSYNC) == 0) return 0;
    #endif
        /* The journal is one for all: it is written up to the last change of this directory, with all that came before.
           So if the changes were below, this one is changed once more. */
        if (!is_alone && (futimens(fd, 0) != 0 || disk >= ZC_BTRFS) && zc_sync_files(fd) != 0) return -1;
        return zc_fsync(fd);     /* of a FUSE file system, syncfs may not reach the server */
    }

    /* Since Linux 6.13 some file systems give a file that was looked at a new time with its next change. Eight
       changes of a file without a name show whether this one does: a step of the clock takes longer than a change.
       Returns 1 or 0, or -1 if such a file cannot be made here. */
    static int zc_try_times(int dirfd)
    {
        int n_tried = -1;
    #if defined(__linux__) && defined(O_TMPFILE)
        int fd = openat(dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), n_close = 0;
        int64_t last = 0;
        struct stat found;
        if (fd < 0) return -1;
        for (n_tried = 0; n_tried < 8; n_tried++) {
            if (pwrite(fd, "", 1, 0) != 1 || fstat(fd, &found) != 0) { n_tried = -1; break; }
            if (ZC_CTIME_NS(found) <= last) break;
            n_close += ZC_CTIME_NS(found) - last < 500000;
            last = ZC_CTIME_NS(found);
        }
        close(fd);
        if (n_close < 4 && n_tried > 0) n_tried = 0;
    #else
        (void)dirfd;
    #endif
        return n_tried < 0 ? -1 : n_tried == 8;
    }

    /* renameat that fails with EEXIST if the new name exists, or, with `exchanges`, exchanges the two names. Other
           errors may only mean that the system or the file system cannot do it. */
    static int zc_rename(int dirfd, const char *name, const char *new_name, int exchanges)
    {
    #if defined(SYS_renameat2)
        return (int)syscall(SYS_renameat2, dirfd, name, dirfd, new_name,
                            exchanges ? 2 : 1 /* RENAME_EXCHANGE, RENAME_NOREPLACE */);
    #elif defined(__APPLE__)
        return renameatx_np(dirfd, name, dirfd, new_name, exchanges ? RENAME_SWAP : RENAME_EXCL);
    #else
        (void)dirfd; (void)name; (void)new_name; (void)exchanges;
        errno = ENOSYS;
        return -1;
    #endif
    }
    """
    int zc_write_out_all(int fd) nogil
    ssize_t zc_preadv(int fd, const Piece *pieces, int n, int64_t offset) nogil
    const char *ZC_TEMP_PREFIX
    const char *ZC_TEMP_NAME
    ctypedef struct c_stat "struct stat":
        uint64_t st_dev
        uint64_t st_ino
        unsigned int st_mode
        int64_t st_size
    int64_t ZC_MTIME_NS(c_stat s) nogil
    int64_t ZC_CTIME_NS(c_stat s) nogil
    int fstat "zc_fstat"(int fd, c_stat *s) nogil
    int fstatat "zc_fstatat"(int dirfd, const char *name, c_stat *s, int flags) nogil
    enum:
        AT_SYMLINK_NOFOLLOW
    int fchmodat "zc_fchmodat"(int dirfd, const char *name, unsigned int mode) nogil
    int mkdirat "zc_mkdirat"(int dirfd, const char *name) nogil
    enum:
        ZC_NO_DISK
        ZC_OTHER_DISK
    int zc_try_times(int dirfd) nogil
    int zc_disk_of(int fd) nogil
    void zc_start_write_out(int fd) nogil
    int zc_write_out(int fd, int disk) nogil
    int zc_barrier(int fd, int is_alone) nogil
    int zc_rename(int dirfd, const char *name, const char *new_name, int exchanges) nogil
    int renameat "zc_renameat"(int dirfd, const char *name, const char *new_name) nogil
    int unlinkat "zc_unlinkat"(int dirfd, const char *name) nogil
    void *zc_allocate(int64_t n_bytes) nogil

TEMP_PREFIX = ZC_TEMP_PREFIX.decode()      # prefix of the names of files that are being written


def exchange(bytes first not None, bytes second not None):
    """Exchange the names of two files or directories in one step, so that neither name is ever missing.

    Raises : OSError; ENOSYS or EINVAL if the system, or the file system, cannot do it.
    """
    cdef const char *a = first
    cdef const char *b = second
    cdef int error = 0
    with nogil:
        if zc_rename(AT_FDCWD, a, b, 1) != 0:
            error = errno
    if error:
        raise OSError(error, os.strerror(error), os.fsdecode(first), None, os.fsdecode(second))


cdef int64_t _n_forks = 0

cdef enum:
    # Up to this size, a buffer for the largest valid object is cheaper than asking for the size of each object.
    SMALL_NBYTES = 1 << 20
    HUGE_PAGE = 1 << 21
    LARGE_NBYTES = 1 << 24     # a larger buffer is not kept from one object to the next
    MAX_KEY_NBYTES = 4300


cdef int buffer_reserve(Buffer *buffer, int64_t n_bytes, Status *status) noexcept nogil:
    """Make room for `n_bytes`. The content is lost if the buffer has to grow."""
    if n_bytes <= buffer.capacity:
        return OK
    buffer_free(buffer)
    if n_bytes > INT64_MAX // 2:
        # Sizes of shards in documents may be near 2**63, where the rounding below would overflow.
        return fail(status, NO_MEMORY, 0, n_bytes, 0)
    if n_bytes > SMALL_NBYTES:
        # Objects differ in size, and every growth costs page faults for the whole buffer. Untouched pages cost nothing.
        n_bytes = (n_bytes + n_bytes // 4 + HUGE_PAGE) & ~<int64_t>(HUGE_PAGE - 1)
    buffer.data = <uint8_t *>zc_allocate(n_bytes)
    if buffer.data == NULL:
        return fail(status, NO_MEMORY, 0, n_bytes, 0)
    buffer.capacity = n_bytes
    return OK


cdef int buffer_extend(Buffer *buffer, int64_t n_bytes, int64_t n_more, Status *status) noexcept nogil:
    cdef uint8_t *data
    if n_more <= buffer.capacity - n_bytes:
        return OK
    if n_bytes == 0:
        return buffer_reserve(buffer, n_more, status)
    if n_more > INT64_MAX // 2 - n_bytes:
        return fail(status, NO_MEMORY, 0, n_more, 0)
    # At least twice the content, so that many small additions do not move it each time. The system moves large
    # memory by its pages, without copying.
    n_more = max(n_bytes + n_more, 2 * n_bytes)
    data = <uint8_t *>zc_resized(buffer.data, n_more, 1)
    if data == NULL:
        return fail(status, NO_MEMORY, 0, n_more, 0)
    buffer.data = data
    buffer.capacity = n_more
    return OK


cdef void buffer_relax(Buffer *buffer) noexcept nogil:
    if buffer.capacity > LARGE_NBYTES:
        buffer_free(buffer)


cdef void buffer_free(Buffer *buffer) noexcept nogil:
    free(buffer.data)
    buffer.data = NULL
    buffer.capacity = 0


cdef bint same_identity(const Identity *a, const Identity *b) noexcept nogil:
    return (a.inode == b.inode and a.device == b.device and a.size == b.size
            and a.mtime_ns == b.mtime_ns and a.ctime_ns == b.ctime_ns)


cdef tuple numbers_of(const Identity *identity):
    return identity.device, identity.inode, identity.size, identity.mtime_ns, identity.ctime_ns


cdef void _identity_of(const c_stat *found, Identity *identity) noexcept nogil:
    identity.device = found.st_dev
    identity.inode = found.st_ino
    identity.size = found.st_size
    identity.mtime_ns = ZC_MTIME_NS(found[0])
    identity.ctime_ns = ZC_CTIME_NS(found[0])


cdef int identify_fd(int fd, Identity *identity) noexcept nogil:
    cdef c_stat found
    if fstat(fd, &found) != 0:
        return errno
    _identity_of(&found, identity)
    return 0


cdef int identify_name(int dirfd, const char *name, Identity *identity) noexcept nogil:
    cdef c_stat found
    if fstatat(dirfd, name, &found, 0) != 0:
        return errno
    _identity_of(&found, identity)
    return 0


# By kind of file system: 0 if it was not tried, 1 or -1. No order: whoever finds 0 tries, too.
cdef int64_t _tells_changes[ZC_OTHER_DISK]


cdef bint is_final(const Identity *identity, int fd, int dirfd, int64_t age_ns) noexcept nogil:
    cdef int disk, found
    if zc_wall_ns() - max(identity.mtime_ns, identity.ctime_ns) >= age_ns:
        return True
    # A call that writes sets both times before the bytes are there. A rename comes behind them.
    if fd < 0 or identity.ctime_ns <= identity.mtime_ns:
        return False
    disk = zc_disk_of(fd)
    if disk == ZC_OTHER_DISK:
        return False
    if zc_load(&_tells_changes[disk]) == 0 and dirfd >= 0 and zc_disk_of(dirfd) == disk:
        found = zc_try_times(dirfd)
        if found >= 0:
            zc_store(&_tells_changes[disk], 1 if found else -1)
    return zc_load(&_tells_changes[disk]) > 0


cdef int object_open(int dirfd, const char *name, Status *status) noexcept nogil:
    cdef int fd = object_try_open(dirfd, name, status)
    cdef int error = _unreachable(dirfd, name) if fd == ABSENT else 0
    if error:
        fail_errno(status, IO_OPEN, error)
        return FAILED
    return fd


cdef int object_try_open(int dirfd, const char *name, Status *status) noexcept nogil:
    cdef int fd
    while True:
        # O_NONBLOCK: a FIFO under a chunk's name must not hang the reader. Regular files ignore the flag.
        fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        if fd >= 0:
            return fd
        if errno == EINTR:
            continue
        if errno == ENOENT or errno == ENOTDIR:
            return ABSENT
        fail_errno(status, IO_OPEN, errno)
        return FAILED


cdef int object_stands(int dirfd, const char *name, Status *status) noexcept nogil:
    cdef c_stat found
    # The name itself first: if it is absent or no link, this one call tells that it is no broken link.
    cdef int flags = AT_SYMLINK_NOFOLLOW
    while True:
        if fstatat(dirfd, name, &found, flags) == 0:
            if S_ISREG(found.st_mode):
                return 0
            if S_ISDIR(found.st_mode):
                return ABSENT
            if not S_ISLNK(found.st_mode):
                fail_errno(status, IO_OPEN, ESPIPE)
                return FAILED
            flags = 0
        elif flags and (errno == ENOENT or errno == ENOTDIR):
            return ABSENT
        else:
            fail_errno(status, IO_OPEN, errno)
            return FAILED


cdef int _unreachable(int dirfd, const char *name) noexcept nogil:
    """Return an errno if `name`, which was not found, is unreachable; 0 if it is absent.

    Reading an absent object gives the fill value, so an unmounted disk or migrated content must not count as absent.
    If its directory is a special file (neither a directory nor a file), the object is unreachable as well.
    """
    cdef char path[MAX_KEY_NBYTES + 1]
    cdef c_stat found
    cdef int64_t n_name = <int64_t>strlen(name)
    cdef int64_t n = n_name
    if n > MAX_KEY_NBYTES:
        return 0
    memcpy(path, name, n + 1)
    # From the end: in a directory that exists the rest is absent, and below a file as well.
    while n > 0:
        if n < n_name and fstatat(dirfd, path, &found, 0) == 0:
            return 0 if S_ISDIR(found.st_mode) or S_ISREG(found.st_mode) else ESPIPE
        if fstatat(dirfd, path, &found, AT_SYMLINK_NOFOLLOW) == 0:
            # Anything else was created meanwhile.
            return ENOENT if S_ISLNK(found.st_mode) else 0
        if errno != ENOENT and errno != ENOTDIR:
            return errno
        n -= 1
        while n > 0 and path[n] != c'/':
            n -= 1
        path[n] = 0
    return 0


cdef int64_t object_read(int fd, int64_t limit, Buffer *buffer, Status *status) noexcept nogil:
    cdef c_stat found
    cdef int64_t wanted = limit + 1
    cdef int64_t n
    if wanted > SMALL_NBYTES:
        if fstat(fd, &found) != 0:
            fail_errno(status, IO_READ, errno)
            return FAILED
        if found.st_size < wanted:
            # One byte more than the file's size: a short read then proves the end.
            wanted = found.st_size + 1 if found.st_size >= 0 else 1
        elif found.st_size > limit:
            fail(status, CHUNK_LONG, limit, limit, found.st_size)
            return FAILED
    if buffer_reserve(buffer, wanted, status) != OK:
        return FAILED
    while True:
        n = pread(fd, buffer.data, <size_t>wanted, 0)
        if n >= 0:
            # A regular file that gives less than requested has ended, or (some network file systems) was interrupted.
            # A caller that finds the bytes incomplete calls object_read_rest before it reports an error.
            return n
        if errno == EISDIR:
            return ABSENT
        if errno != EINTR:
            fail_errno(status, IO_READ, errno)
            return FAILED


cdef bint object_has(int fd, const char *content, int64_t n_bytes) noexcept nogil:
    cdef Buffer buffer
    cdef Status status
    cdef bint has
    buffer.data, buffer.capacity = NULL, 0
    status_clear(&status)
    has = (object_read(fd, n_bytes, &buffer, &status) == n_bytes
           and memcmp(buffer.data, content, <size_t>n_bytes) == 0)
    buffer_free(&buffer)
    return has


cdef int object_identify(int fd, Identity *identity, Status *status) noexcept nogil:
    cdef c_stat found
    if fstat(fd, &found) != 0:
        fail_errno(status, IO_READ, errno)
        return FAILED
    if S_ISDIR(found.st_mode):
        return ABSENT
    if not S_ISREG(found.st_mode):
        fail_errno(status, IO_READ, ESPIPE)
        return FAILED
    _identity_of(&found, identity)
    return OK


cdef int64_t _read_up_to(int fd, int64_t offset, int64_t n_bytes, uint8_t *dst, Status *status) noexcept nogil:
    """Read until `n_bytes` bytes are there or the file ends; return their number, or FAILED."""
    cdef int64_t n_read = 0
    cdef int64_t n
    while n_read < n_bytes:
        n = pread(fd, dst + n_read, <size_t>(n_bytes - n_read), offset + n_read)
        if n == 0:
            break
        if n > 0:
            n_read += n
        elif errno != EINTR:
            fail_errno(status, IO_READ, errno)
            return FAILED
    return n_read


cdef int object_read_at(int fd, int64_t offset, int64_t n_bytes, uint8_t *dst, Status *status) noexcept nogil:
    cdef int64_t n_read = _read_up_to(fd, offset, n_bytes, dst, status)
    if n_read == FAILED:
        return status.code
    if n_read < n_bytes:
        return fail(status, SHARD_CUT, offset + n_read, offset + n_bytes, offset + n_read)
    return OK


cdef int object_read_pieces(int fd, int64_t offset, const Piece *pieces, int n, Status *status) noexcept nogil:
    cdef int64_t n_read, n_piece
    cdef int code
    cdef int i
    while True:
        n_read = zc_preadv(fd, pieces, n, offset)
        if n_read >= 0:
            break
        if errno != EINTR:
            return fail_errno(status, IO_READ, errno)
    # A signal, or a network file system, may have ended the call early: the rest is read piece by piece.
    for i in range(n):
        n_piece = <int64_t>pieces[i].iov_len
        if n_read < n_piece:
            code = object_read_at(fd, offset + n_read, n_piece - n_read, <uint8_t *>pieces[i].iov_base + n_read, status)
            if code != OK:
                return code
            n_read = n_piece
        n_read -= n_piece
        offset += n_piece
    return OK


cdef int64_t object_read_start(int fd, int64_t limit, Buffer *buffer, Identity *identity,
                               Status *status) noexcept nogil:
    cdef int code = object_identify(fd, identity, status)
    if code != OK:
        return code
    limit = min(limit, identity.size)
    if buffer_reserve(buffer, limit + 1, status) != OK:
        return FAILED
    return _read_up_to(fd, 0, limit, buffer.data, status)


cdef int64_t object_read_rest(int fd, int64_t n_bytes, int64_t limit, Buffer *buffer, Status *status) noexcept nogil:
    cdef int64_t n
    if n_bytes > limit:
        return n_bytes
    # The capacity ends the read if the object grew meanwhile, because another program is writing it in place.
    n = _read_up_to(fd, n_bytes, buffer.capacity - n_bytes, buffer.data + n_bytes, status)
    return n if n == FAILED else n_bytes + n


cdef const uint8_t *content_at(const Content *content, int64_t offset, int64_t n_bytes, Buffer *scratch,
                               Status *status) noexcept nogil:
    cdef int64_t i = content.n_blocks
    if content.data != NULL:
        return content.data + offset
    if i > 0:
        # From the last block on: blocks that begin later need less skipping to reach these bytes.
        while i > 0:
            i -= 1
            if content.blocks[i].start <= offset and offset + n_bytes <= content.blocks[i].stop:
                return content.blocks[i].data + (offset - content.blocks[i].start)
        fail(status, WANTED, offset, n_bytes, 0)
        return NULL
    # An empty result must not be NULL, which means a failure.
    if buffer_reserve(scratch, max(n_bytes, 1), status) != OK:
        return NULL
    if object_read_at(content.fd, content.start + offset, n_bytes, scratch.data, status) != OK:
        return NULL
    return scratch.data


cdef int64_t n_forks() noexcept nogil:
    return _n_forks


cdef void count_fork() noexcept nogil:
    global _n_forks
    _n_forks += 1


cdef void staging_init(Staging *staging, uint64_t token, bint writes_out) noexcept nogil:
    staging.writes_out = writes_out
    staging.token = token
    staging.n_staged = 0
    staging.default_mode = -1
    staging.expected = NEW
    staging.n_forks = _n_forks
    staging.name[0] = 0
    staging.fd = -1
    staging.disk = -1
    staging.is_written_out = False
    staging.room = MAX_WAITING
    staging.n_waiting = 0
    staging.has_many = False


cdef int _make_parents(int dirfd, const char *name, Status *status) noexcept nogil:
    """Create the parent directories of `name`."""
    cdef char path[4400]
    cdef int64_t i
    cdef int64_t n = <int64_t>strlen(name)
    memcpy(path, name, n + 1)
    for i in range(1, n):
        if path[i] != c'/':
            continue
        path[i] = 0
        if mkdirat(dirfd, path) != 0 and errno != EEXIST:
            return fail_errno(status, IO_MKDIR, errno)
        path[i] = c'/'
    return OK


cdef int _open_temporary(int dirfd, const char *name, Staging *staging, Status *status) noexcept nogil:
    """Open a new temporary file in the directory of `name`; its name goes to `staging`. A descriptor or FAILED."""
    cdef const char *slash = strrchr(name, c'/')
    cdef int64_t n_dir = slash - name + 1 if slash != NULL else 0
    cdef int attempt = 0
    cdef int fd
    memcpy(staging.name, name, n_dir)
    while True:
        snprintf(staging.name + n_dir, 64, ZC_TEMP_NAME,
                 <unsigned long long>staging.token, <unsigned long long>staging.n_staged)
        staging.n_staged += 1
        fd = openat(dirfd, staging.name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        if fd >= 0:
            return fd
        attempt += 1
        if errno == EINTR or (errno == EEXIST and attempt < 100):
            continue
        if (errno == EMFILE or errno == ENFILE) and staging.n_waiting:
            staging.has_many = True
            _let_go(staging)
            continue
        # A directory may be missing, or an erasure may prune it between our mkdir and our open.
        if errno == ENOENT and n_dir and attempt < 100:
            if _make_parents(dirfd, name, status) != OK and status.sys_errno != ENOENT:
                return FAILED
            continue
        fail_errno(status, IO_OPEN, errno)
        return FAILED


cdef int stage_open(int dirfd, const char *name, Staging *staging, Status *status) noexcept nogil:
    if strlen(name) > MAX_KEY_NBYTES:
        fail_errno(status, IO_OPEN, ENAMETOOLONG)
        return FAILED
    return _open_temporary(dirfd, name, staging, status)


cdef int stage_write(int fd, const uint8_t *data, int64_t n_bytes, int64_t offset, Status *status) noexcept nogil:
    cdef int64_t n
    while n_bytes > 0:
        n = pwrite(fd, data, <size_t>n_bytes, offset)
        if n >= 0:
            data += n
            offset += n
            n_bytes -= n
        elif errno != EINTR:
            return fail_errno(status, IO_WRITE, errno)
    return OK


cdef int stage_close(int dirfd, int fd, int code, Staging *staging, Status *status) noexcept nogil:
    cdef c_stat new
    staging.is_written_out = False
    # Where a look makes the next time differ, the rename gives the object a later one: see `is_final`.
    if code != OK or fstat(fd, &new) != 0:
        new.st_size = 0
    if code == OK and (staging.writes_out or staging.expected != NEW) and _disk_of(dirfd, staging) != ZC_NO_DISK:
        if staging.expected == NEW and staging.disk != ZC_OTHER_DISK:
            if new.st_size >= MIN_STARTED:
                zc_start_write_out(fd)     # that goes on while the next object is encoded
            staging.fd = fd
            return OK
        if zc_write_out(fd, staging.disk) != 0:
            code = fail_errno(status, IO_WRITE, errno)
        staging.is_written_out = True
    # A network file system may report a full disk only here, or when the file is written out.
    if close(fd) != 0 and code == OK and errno != EINTR:
        code = fail_errno(status, IO_WRITE, errno)
    if code != OK:
        object_drop(dirfd, staging)
    return code


cdef int _disk_of(int dirfd, Staging *staging) noexcept nogil:
    if staging.disk < 0:
        staging.disk = zc_disk_of(dirfd)
    return staging.disk


cdef int _write_out_before_it_replaces(int dirfd, Staging *staging) noexcept nogil:
    """Write the staged file out, which is to replace an object: 0 or an errno."""
    cdef int error
    if staging.is_written_out or _disk_of(dirfd, staging) == ZC_NO_DISK:
        return 0
    while staging.fd < 0:
        staging.fd = openat(dirfd, staging.name, O_WRONLY | O_CLOEXEC)
        if staging.fd < 0 and errno != EINTR:
            return errno
    error = errno if zc_write_out(staging.fd, staging.disk) != 0 else 0
    close(staging.fd)
    staging.fd = -1
    return error


cdef void _write_out_later(Staging *staging) noexcept nogil:
    """Keep the file of an object open until it is written out; none is kept if there are many."""
    if staging.fd < 0:
        return
    if staging.n_waiting == staging.room:
        staging.has_many = True
    if staging.has_many:
        close(staging.fd)
        _let_go(staging)
    else:
        staging.waiting[staging.n_waiting] = staging.fd
        staging.n_waiting += 1
    staging.fd = -1


cdef void _let_go(Staging *staging) noexcept nogil:
    cdef int i
    for i in range(staging.n_waiting):
        close(staging.waiting[i])
    staging.n_waiting = 0


cdef int staging_write_out(Staging *staging, Status *status) noexcept nogil:
    cdef int error = 0
    cdef int i
    for i in range(staging.n_waiting):
        zc_start_write_out(staging.waiting[i])
    for i in range(staging.n_waiting):
        if error == 0 and zc_write_out(staging.waiting[i], staging.disk) != 0:
            error = errno
    _let_go(staging)
    return fail_errno(status, IO_WRITE, error) if error else OK


cdef int object_stage(int dirfd, const char *name, const uint8_t *data, int64_t n_bytes, Staging *staging,
                      Status *status) noexcept nogil:
    cdef int fd = stage_open(dirfd, name, staging, status)
    if fd < 0:
        return status.code
    return stage_close(dirfd, fd, stage_write(fd, data, n_bytes, 0, status), staging, status)


cdef int _keep_mode(int dirfd, const char *name, Staging *staging) noexcept nogil:
    """Give the staged file the mode of the file that it will replace: 0 or an errno."""
    cdef c_stat old
    cdef c_stat new
    if fstatat(dirfd, name, &old, 0) != 0:
        if staging.expected == TAKEN:
            staging.expected = NEW
        return 0
    if staging.default_mode < 0:
        if fstatat(dirfd, staging.name, &new, 0) != 0:
            return errno
        staging.default_mode = new.st_mode & 0o7777
    if S_ISREG(old.st_mode) and (old.st_mode & 0o7777) != <unsigned int>staging.default_mode:
        if fchmodat(dirfd, staging.name, old.st_mode & 0o7777) != 0:
            return errno
    return 0


cdef int _rename(int dirfd, const char *name, Staging *staging) noexcept nogil:
    """0 or an errno."""
    cdef int error
    # A new name has no mode to keep. In a directory that another thread is changing, looking for an existing file first
    # costs as much as the rename.
    if staging.expected == NEW:
        if zc_rename(dirfd, staging.name, name, 0) == 0:
            return 0
        staging.expected = TAKEN if errno == EEXIST else UNKNOWN
    error = _write_out_before_it_replaces(dirfd, staging)
    if error == 0:
        error = _keep_mode(dirfd, name, staging)
    if error == 0 and renameat(dirfd, staging.name, name) != 0:
        error = errno
    return error


cdef int object_commit(int dirfd, const char *name, Staging *staging, Status *status) noexcept nogil:
    cdef int error = _rename(dirfd, name, staging)
    if error:
        object_drop(dirfd, staging)
        return fail_errno(status, IO_RENAME, error)
    staging.name[0] = 0
    _write_out_later(staging)
    return OK


cdef void object_drop(int dirfd, Staging *staging) noexcept nogil:
    """Remove the staged file, if there is one."""
    if staging.fd >= 0:
        close(staging.fd)
        staging.fd = -1
    if staging.name[0]:
        if staging.n_forks == _n_forks:
            unlinkat(dirfd, staging.name)
        staging.name[0] = 0


cdef bint object_is_absent(int dirfd, const char *name) noexcept nogil:
    cdef c_stat found
    return fstatat(dirfd, name, &found, AT_SYMLINK_NOFOLLOW) != 0 and (errno == ENOENT or errno == ENOTDIR)


cdef int object_erase(int dirfd, const char *name, Status *status) noexcept nogil:
    if unlinkat(dirfd, name) != 0 and errno != ENOENT and errno != ENOTDIR:
        return fail_errno(status, IO_UNLINK, errno)
    return OK


cdef int write_out_all(int dirfd, Status *status) noexcept nogil:
    return fail_errno(status, IO_WRITE, errno) if zc_write_out_all(dirfd) != 0 else OK


cdef int pass_barrier(int dirfd, bint is_alone, Status *status) noexcept nogil:
    return fail_errno(status, IO_WRITE, errno) if zc_barrier(dirfd, is_alone) != 0 else OK


def write_out(int fd):
    """Wait until no later change of a name can reach the disk before the data of an open file.

    Raises : OSError, also for an earlier write that has failed.
    """
    cdef int error
    with nogil:
        error = errno if zc_write_out(fd, zc_disk_of(fd)) != 0 else 0
    _check(error)


cdef _check(int error, str path=None):
    if error:
        raise OSError(error, os.strerror(error), path)


def write_out_below(str directory not None):
    """Do what `write_out` does for all files in a directory, and in those below it; for many, for the file system."""
    cdef list opened = []
    cdef int fd = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    cdef int disk = zc_disk_of(fd)
    cdef bint is_few
    close(fd)
    if disk == ZC_NO_DISK:
        return
    try:
        is_few = _open_below(directory, opened)
        for fd in opened if is_few else ():
            write_out(fd)
    finally:
        for fd in opened:
            close(fd)     # nothing was written to it
    if not is_few:
        sync_files(directory)


cdef bint _open_below(str directory, list opened) except -1:
    """Open the files in and below a directory; return False if they are many, or one cannot be opened."""
    for folder, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(folder, name)
            if not stat.S_ISREG(os.lstat(path).st_mode):
                continue
            if len(opened) == MAX_WRITTEN_OUT:
                return False
            try:
                opened.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            except OSError as exc:
                if exc.errno in (EACCES, EPERM, EMFILE, ENFILE):
                    return False
                raise
            zc_start_write_out(opened[len(opened) - 1])
    return True


def barrier(int fd):
    """Wait until names in an open directory, and data that were written out in it, are on disk. Raises : OSError."""
    cdef int error
    with nogil:
        error = errno if zc_barrier(fd, True) != 0 else 0
    _check(error)


def sync_files(str directory not None):
    """Sync the file system of a directory; return when all written data are on disk."""
    cdef int fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    cdef int error
    with nogil:
        error = errno if zc_write_out_all(fd) != 0 else 0
        close(fd)
    _check(error, directory)
