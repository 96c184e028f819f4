"""Objects in files: read whole, replaced atomically, identified by their inode.

Names are relative to a directory descriptor. So a store that is moved meanwhile stays one store, and the kernel
resolves one path component per chunk instead of the whole path.
"""
from libc.stdint cimport int64_t, uint8_t, uint64_t

from zcore.kernel.status cimport Status

cdef extern from "<sys/uio.h>" nogil:
    ctypedef struct Piece "struct iovec":
        void *iov_base
        size_t iov_len


cdef struct Buffer:             # owned memory that grows; all zero means empty
    uint8_t *data
    int64_t capacity

cdef int buffer_reserve(Buffer *buffer, int64_t n_bytes, Status *status) noexcept nogil
# Makes room for `n_more` bytes behind the first `n_bytes`, which are kept.
cdef int buffer_extend(Buffer *buffer, int64_t n_bytes, int64_t n_more, Status *status) noexcept nogil
cdef void buffer_free(Buffer *buffer) noexcept nogil
# Frees the buffer if it is large. Called when its content is no longer needed.
cdef void buffer_relax(Buffer *buffer) noexcept nogil


cdef struct Identity:           # identity of an object's bytes: changes whenever the object is replaced
    uint64_t device
    uint64_t inode
    int64_t size
    int64_t mtime_ns
    int64_t ctime_ns

cdef bint same_identity(const Identity *a, const Identity *b) noexcept nogil
# The five numbers, as a store gives them.
cdef tuple numbers_of(const Identity *identity)
# Both return 0 or the errno.
cdef int identify_fd(int fd, Identity *identity) noexcept nogil
cdef int identify_name(int dirfd, const char *name, Identity *identity) noexcept nogil


# Whether no other bytes can have an identity that was taken from an open file: the file is of this age, or it was
# renamed since it was written, and its file system gives each change that follows a look another time. `dirfd`: where
# that is tried, with a file without a name; -1 if nowhere.
cdef bint is_final(const Identity *identity, int fd, int dirfd, int64_t age_ns) noexcept nogil


cdef enum:
    ABSENT = -1
    FAILED = -2

# Opens an object for reading: a descriptor, ABSENT, or FAILED with `status` filled. A link to a missing target is
# FAILED.
cdef int object_open(int dirfd, const char *name, Status *status) noexcept nogil
# The same, but a link to a missing target is ABSENT: for a caller that tries several names.
cdef int object_try_open(int dirfd, const char *name, Status *status) noexcept nogil
# Whether an object exists: 0, ABSENT, or FAILED if the object itself is unreachable. Does not check whether a
# directory on its path is unreachable.
cdef int object_stands(int dirfd, const char *name, Status *status) noexcept nogil
# Reads an object into `buffer`: returns its size, or FAILED. Reads and keeps at most limit + 1 bytes.
cdef int64_t object_read(int fd, int64_t limit, Buffer *buffer, Status *status) noexcept nogil
# Continues behind the first `n_bytes`; returns the new size or FAILED.
cdef int64_t object_read_rest(int fd, int64_t n_bytes, int64_t limit, Buffer *buffer, Status *status) noexcept nogil
# Whether an object has these bytes, no more and no others.
cdef bint object_has(int fd, const char *content, int64_t n_bytes) noexcept nogil
# Reads up to `limit` bytes of a regular file and takes its identity: returns their number, ABSENT or FAILED.
cdef int64_t object_read_start(int fd, int64_t limit, Buffer *buffer, Identity *identity,
                               Status *status) noexcept nogil
# Takes the identity of a regular file: OK, ABSENT or FAILED.
cdef int object_identify(int fd, Identity *identity, Status *status) noexcept nogil
# Reads exactly `n_bytes` bytes, fewer are an error: OK or a code.
cdef int object_read_at(int fd, int64_t offset, int64_t n_bytes, uint8_t *dst, Status *status) noexcept nogil
# The same for bytes that go to several places in memory, at most 1024.
cdef int object_read_pieces(int fd, int64_t offset, const Piece *pieces, int n, Status *status) noexcept nogil


cdef struct Block:              # a range of the bytes, in memory
    const uint8_t *data
    int64_t start
    int64_t stop

cdef struct Content:            # bytes that are read in parts
    int fd
    const uint8_t *data         # address of the bytes in memory; NULL: in the file, or in blocks
    int64_t start               # offset of the bytes in the file or memory
    int64_t size
    const Block *blocks         # sorted by start
    int64_t n_blocks

# Returns bytes that must exist, read into `scratch` if they are in a file. NULL with `status` filled; WANTED if they
# are in no block.
cdef const uint8_t *content_at(const Content *content, int64_t offset, int64_t n_bytes, Buffer *scratch,
                               Status *status) noexcept nogil


cdef enum:                      # whether the name of a writer's next object probably exists
    NEW = 0
    TAKEN = 1
    UNKNOWN = 2                 # the file system cannot tell when it renames
    MAX_WAITING = 16            # files of one writer that are kept open and written out one by one
    MAX_WRITTEN_OUT = 64        # files of one directory that are; of more, the whole file system is written out
    MIN_STARTED = 1 << 18       # bytes of a file that is written to the disk while others are encoded

# Forks between the first process that loaded this module and this one. Locks of another number are a parent's.
cdef int64_t n_forks() noexcept nogil
cdef void count_fork() noexcept nogil

cdef struct Staging:            # how one writer replaces objects
    bint writes_out
    int disk                    # -1: not known yet
    int fd                      # of the staged object, if it is to be written out later; else -1
    bint is_written_out
    int room                    # for descriptors in `waiting`
    int n_waiting
    int waiting[16]             # descriptors of objects that have their names
    bint has_many               # there were more than that
    uint64_t token              # part of the names of temporary files: random for each writer
    uint64_t n_staged
    int default_mode            # 0666 under the umask, -1 until it is needed
    int expected                # NEW, TAKEN or UNKNOWN
    int64_t n_forks             # when it began; the file of a parent is left to it
    char name[4400]             # name of the staged temporary file, relative to the directory

# Writes a temporary file beside `name`; the commit renames it to `name`. Between the two it can be dropped.
# After a power cut, an object that is replaced is there until the new one is whole. With `writes_out`, new objects are
# whole, too, before any later change is there, once `staging_write_out` was called.
cdef void staging_init(Staging *staging, uint64_t token, bint writes_out) noexcept nogil
cdef int object_stage(int dirfd, const char *name, const uint8_t *data, int64_t n_bytes, Staging *staging,
                      Status *status) noexcept nogil
# The same in parts: stage_open returns a descriptor or FAILED; then any number of writes; then stage_close, which
# drops the file if `code` is a failure or closing fails.
cdef int stage_open(int dirfd, const char *name, Staging *staging, Status *status) noexcept nogil
cdef int stage_write(int fd, const uint8_t *data, int64_t n_bytes, int64_t offset, Status *status) noexcept nogil
cdef int stage_close(int dirfd, int fd, int code, Staging *staging, Status *status) noexcept nogil
cdef int object_commit(int dirfd, const char *name, Staging *staging, Status *status) noexcept nogil
cdef void object_drop(int dirfd, Staging *staging) noexcept nogil
# Whether an object surely does not exist.
cdef bint object_is_absent(int dirfd, const char *name) noexcept nogil
# Removes an object; an absent one is no error.
cdef int object_erase(int dirfd, const char *name, Status *status) noexcept nogil

# Waits until no later change of a name can reach the disk before the objects that were committed: OK or a code. If
# there are many, that is left to `write_out_all`, which waits for all changes in the file system of a directory.
cdef int staging_write_out(Staging *staging, Status *status) noexcept nogil
cdef int write_out_all(int dirfd, Status *status) noexcept nogil
# Waits until all that was written out, and the names in a directory, are on the disk: OK or a code. Also the names
# below it, unless it is alone.
cdef int pass_barrier(int dirfd, bint is_alone, Status *status) noexcept nogil
