"""Objects in files: read whole, replaced atomically, identified by their inode.

A name is relative to a directory descriptor, so a store that is moved meanwhile stays one store, and the kernel walks
one path component a chunk, not the whole path.
"""
from libc.stdint cimport int64_t, uint8_t, uint64_t

from zcore.kernel.status cimport Status


cdef struct Buffer:             # owned memory that grows; all zero is the empty one
    uint8_t *data
    int64_t capacity

cdef int buffer_reserve(Buffer *buffer, int64_t n_bytes, Status *status) noexcept nogil
# Makes room for `n_more` bytes behind the first `n_bytes`, which stay.
cdef int buffer_extend(Buffer *buffer, int64_t n_bytes, int64_t n_more, Status *status) noexcept nogil
cdef void buffer_free(Buffer *buffer) noexcept nogil
# Frees it if it is large; to be called where its content is not needed.
cdef void buffer_relax(Buffer *buffer) noexcept nogil


cdef struct Identity:           # which bytes a name stood for: changes whenever the object is replaced
    uint64_t device
    uint64_t inode
    int64_t size
    int64_t mtime_ns
    int64_t ctime_ns

cdef bint same_identity(const Identity *a, const Identity *b) noexcept nogil
# Both: 0, or the errno.
cdef int identify_fd(int fd, Identity *identity) noexcept nogil
cdef int identify_name(int dirfd, const char *name, Identity *identity) noexcept nogil


cdef enum:
    ABSENT = -1
    FAILED = -2

# Opens an object for reading: a descriptor, ABSENT, or FAILED with `status` filled. An unreachable one, of which a link
# leads nowhere, is FAILED.
cdef int object_open(int dirfd, const char *name, Status *status) noexcept nogil
# The same, but ABSENT also when a link leads nowhere: for a caller that asks for several names first.
cdef int object_try_open(int dirfd, const char *name, Status *status) noexcept nogil
# Whether there is one: 0, ABSENT, or FAILED when it is unreachable itself. A directory on its way that is unreachable
# is not looked for.
cdef int object_stands(int dirfd, const char *name, Status *status) noexcept nogil
# Reads it into `buffer`: its size, or FAILED. At most limit + 1 bytes are read and kept.
cdef int64_t object_read(int fd, int64_t limit, Buffer *buffer, Status *status) noexcept nogil
# Goes on reading behind the first `n_bytes`; returns the new size or FAILED.
cdef int64_t object_read_rest(int fd, int64_t n_bytes, int64_t limit, Buffer *buffer, Status *status) noexcept nogil
# Reads up to `limit` bytes of a regular file and takes its identity: how many it read, ABSENT or FAILED.
cdef int64_t object_read_start(int fd, int64_t limit, Buffer *buffer, Identity *identity,
                               Status *status) noexcept nogil
# Takes the identity of a regular file: OK, ABSENT or FAILED.
cdef int object_identify(int fd, Identity *identity, Status *status) noexcept nogil
# Reads exactly `n_bytes` bytes that must be there: OK or a code.
cdef int object_read_at(int fd, int64_t offset, int64_t n_bytes, uint8_t *dst, Status *status) noexcept nogil
cdef void object_close(int fd) noexcept nogil


cdef struct Block:              # some of these bytes, in memory
    const uint8_t *data
    int64_t start
    int64_t stop

cdef struct Content:            # bytes that are read in parts
    int fd
    const uint8_t *data         # where they are in memory; NULL: in the file, or in blocks
    int64_t start               # where they begin there
    int64_t size
    const Block *blocks         # sorted by their starts
    int64_t n_blocks

# Bytes that must be there, read into `scratch` where they are in a file: NULL with `status` filled; WANTED when they
# are in no block.
cdef const uint8_t *content_at(const Content *content, int64_t offset, int64_t n_bytes, Buffer *scratch,
                               Status *status) noexcept nogil


cdef struct Staging:            # one writer's way of replacing objects
    int fsync                   # 1: file and directory reach the disk before the call returns
    uint64_t token              # of the names of temporary files: random for each writer
    uint64_t n_staged
    int default_mode            # what 0666 became under the umask, -1 until it is needed
    int expected                # whether the next name is likely to be taken
    char name[4400]             # of the temporary file that is staged, relative to the directory

# Writes a temporary file beside `name`, then puts it in its place. In between it can be dropped.
cdef void staging_init(Staging *staging, uint64_t token, int with_fsync) noexcept nogil
cdef int object_stage(int dirfd, const char *name, const uint8_t *data, int64_t n_bytes, Staging *staging,
                      Status *status) noexcept nogil
# The same in parts: a descriptor or FAILED; then any number of writes; then the end, which drops what has failed with
# `code` or fails now.
cdef int stage_open(int dirfd, const char *name, Staging *staging, Status *status) noexcept nogil
cdef int stage_write(int fd, const uint8_t *data, int64_t n_bytes, int64_t offset, Status *status) noexcept nogil
cdef int stage_close(int dirfd, int fd, int code, Staging *staging, Status *status) noexcept nogil
cdef int object_commit(int dirfd, const char *name, Staging *staging, Status *status) noexcept nogil
cdef void object_drop(int dirfd, Staging *staging) noexcept nogil
# Removes an object; an absent one is no error.
cdef int object_erase(int dirfd, const char *name, Staging *staging, Status *status) noexcept nogil
