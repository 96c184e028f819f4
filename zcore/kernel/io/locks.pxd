"""Locks of the stored objects of one node, among threads and among processes.

    a writer of objects        holds one object at a time:     shared gate, then the object's stripe and byte
    a writer of the document   holds the whole range:          exclusive gate, turnstile, then [2**62, infinity)

Inside a process a `LockTable` (atomic integers) decides, so that threads wait without a system call. Among processes
the lock is an advisory lock on the node's metadata document: one byte at 2**62 + (hash of the object's key mod 2**61).
That is past any content and independent of the shape."""
from libc.stdint cimport int64_t, uint64_t

from zcore.kernel.io.files cimport Identity
from zcore.kernel.status cimport Status


cdef enum:
    N_STRIPES = 256

cdef struct LockTable:
    # To take `gate` or a stripe acquires what its former holder has released. The other counters decide who goes first:
    # they need no order, as a wrong moment costs one more wait.
    int64_t gate               # number of holders of objects, or minus the thread that holds the whole range
    int64_t waiting            # threads that wait for the whole range; new holders of objects let them go first ...
    int64_t queued             # ... and wait in a queue
    int64_t window             # number of queued threads that go first after a thread had the whole range
    int64_t stripes[256]       # the holding thread, or 0; objects with the same stripe exclude each other
    bint has_file              # a lock file excludes other processes: no ranges of the document are locked

# Called while waiting. Non-zero stops the wait (a signal, or the plan was stopped). A poll may run any Python code.
# That code finds in the table what this thread holds, not what it waits for.
ctypedef int (*Poll)(void *context) noexcept nogil

cdef struct Holder:            # one writer's lock of a node's objects
    LockTable *table
    int dirfd                  # directory of the document, -1 for a store without files
    const char *document       # its name
    int fd                     # the document, open for writing; -1 while closed
    int slot                   # slot of `fd` in the list for the child of a fork
    int64_t n_forks            # when it was opened: in a child it is its parent's, and nothing is done with it
    Identity identity          # of the document when it was opened
    uint64_t hash              # hash of the held object's key
    int64_t n_locked
    bint whole                 # the whole range is held: objects need no lock of their own


cdef uint64_t key_hash(const char *key) noexcept nogil
cdef int holder_open(Holder *holder, LockTable *table, int dirfd, const char *document, Status *status) noexcept nogil
cdef void holder_close(Holder *holder) noexcept nogil
# 0 with the object held; STALE if the name leads to another document than the opened one; LOCK_OWN if this thread
# would wait for itself; or a failure.
cdef int lock_object(Holder *holder, uint64_t hash, Poll poll, void *context, Status *status) noexcept nogil
cdef void unlock_object(Holder *holder) noexcept nogil

# Notes a descriptor that holds a lock, for the child of a fork to close: its slot, or -1. Forget it before closing.
cdef int note_copy(int fd) noexcept nogil
cdef void forget_copy(int slot) noexcept nogil
# Enters a section of a few instructions; to leave it is to store 0. In the child of a fork it is free, as the threads
# of the parent are not there.
cdef void section_enter(int64_t *guard) noexcept nogil


cdef class ObjectLocks:
    cdef LockTable table
    cdef readonly object directory         # path of the document's directory, None for a store without files
    cdef readonly object document          # name of the document in it
    cdef readonly object file              # lock file that excludes other processes, or None
    cdef object __weakref__
