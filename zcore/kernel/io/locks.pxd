"""Locks of the stored objects of one node, among threads and among processes.

    a writer of objects        holds one object at a time:     shared gate, then the object's stripe and byte
    a writer of the document   holds the whole range:          exclusive gate, turnstile, then [2**62, infinity)

Inside a process a `LockTable` (atomic integers) decides, so that threads wait without asking the kernel. Among
processes it is an advisory lock on the node's metadata document, one byte at 2**62 + (hash of the object's key mod
2**61): past any content and independent of the shape.
"""
from libc.stdint cimport int64_t, uint8_t, uint64_t

from zcore.kernel.io.files cimport Identity, Staging
from zcore.kernel.status cimport Status


cdef enum:
    N_STRIPES = 256

cdef struct LockTable:
    int64_t gate               # holders of objects, or minus the thread that holds the whole
    int64_t waiting            # threads that want the whole; new holders of objects let them pass ...
    int64_t queued             # ... and queue up
    int64_t window             # so many of these go first, once a thread had the whole
    int64_t stripes[256]       # the thread that holds it, or 0; objects whose hashes collide here exclude each other
    bint has_file              # a lock file keeps out other processes: no ranges of the document are locked

# Asked while waiting; non-zero gives up (a signal, or the plan was stopped). May run any Python code, which finds this
# thread in the table by what it holds, and only by that.
ctypedef int (*Poll)(void *context) noexcept nogil

cdef struct Holder:            # one writer's hold on a node's objects
    LockTable *table
    int dirfd                  # directory of the document, -1 for a store without files
    const char *document       # its name
    int fd                     # the document, open for writing; -1 while closed
    int slot                   # where `fd` is noted for the child of a fork
    Identity identity          # of the document when it was opened
    uint64_t hash              # of the object that is held
    int64_t n_locked
    bint whole                 # the holder has the whole range: objects need no lock of their own


cdef uint64_t key_hash(const char *key) noexcept nogil
cdef int holder_open(Holder *holder, LockTable *table, int dirfd, const char *document, Status *status) noexcept nogil
cdef void holder_close(Holder *holder) noexcept nogil
# 0 with the object held; STALE when the name no longer stands for the document that was opened; LOCK_OWN when this
# thread would wait for itself; or a failure.
cdef int lock_object(Holder *holder, uint64_t hash, Poll poll, void *context, Status *status) noexcept nogil
cdef void unlock_object(Holder *holder) noexcept nogil
cdef int lock_whole(Holder *holder, Poll poll, void *context, Status *status) noexcept nogil
cdef void unlock_whole(Holder *holder) noexcept nogil

# Puts a new document in the place of one that is held whole, and holds that: no other holder gets in between.
cdef int holder_replace(Holder *holder, const uint8_t *data, int64_t n_bytes, Staging *staging,
                        Status *status) noexcept nogil

# The child of a fork: closes the copies of all documents that the parent holds, since a lock lives as long as any copy.
cdef void close_copies() noexcept nogil
# How often that was done: what was held under another number is a parent's.
cdef int64_t n_forks() noexcept nogil
