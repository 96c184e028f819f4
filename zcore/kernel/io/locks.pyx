# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""The locks for replacing stored objects and changing metadata documents.

Compiled because every written object is locked, without the GIL, in about two microseconds. `WritePlan` calls it for
objects that are files, and `ObjectLocks` (`object_locks.pyx`) from Python.

A writer opens the document once a call (never shared between threads or across a fork) and locks one object at a time.
After every lock it checks whether the name still leads to the locked inode, because a replaced document takes its locks
along. A writer of the document takes the whole range first, so no object is held then.

The turnstile is the byte before the range. It keeps a stream of object writers from starving a thread that wants the
whole range. That thread holds the turnstile while it waits, and object writers check it at the start of each call and
at every `TURNSTILE_EVERY`-th object. Inside a process the counter `waiting` does the same. A window keeps threads that
want the whole range from starving the others in turn: after each of them, the queued writers go first.

A signal handler, or other Python code that runs inside a call that holds an object, may want locks of the same node.
The table names the threads that hold locks. A thread that would wait for itself gets LOCK_OWN. A thread that holds an
object passes gate and turnstile for another object, because the thread it would wait for there waits for it. While
Python code may run, the table shows only what a thread holds, so no thread waits for one that is only waiting.
"""
from libc.errno cimport EACCES, EAGAIN, EINTR, ENOENT, ENOTDIR, EPERM, EROFS, ESTALE, errno
from libc.string cimport memset
from posix.fcntl cimport O_CLOEXEC, O_NOCTTY, O_RDONLY, O_RDWR, openat
from posix.unistd cimport close

from zcore.kernel.atomics cimport (
    zc_add, zc_back_off, zc_load, zc_pause, zc_store, zc_swap_if, zc_this_thread,
)
from zcore.kernel.io.files cimport (
    TAKEN, Identity, count_fork, identify_fd, identify_name, n_forks, object_commit, object_drop, object_stage,
    same_identity,
)
from zcore.kernel.status cimport (
    INTERRUPTED, IO_OPEN, LOCK_FAILED, LOCK_OWN, OK, STALE, Status, fail, fail_errno,
)

cdef extern from "io/file_lock.h" nogil:
    enum:
        ZC_UNLOCK
        ZC_SHARED
        ZC_EXCLUSIVE
    int zc_lock_range(int fd, int kind, int64_t start, int64_t n_bytes)
    int zc_has_ranges()

cdef enum:
    TURNSTILE_EVERY = 32
    N_SLOTS = 1024

cdef int64_t RANGE_START = <int64_t>1 << 62
cdef int64_t RANGE_MASK = (<int64_t>1 << 61) - 1

# Descriptors that are open for locking, plus 1. The child of a fork closes its copies; otherwise a lock of the parent
# would live as long as the child. No order: a slot has its number and nothing else, and the child has no other thread.
cdef int64_t _open_fds[N_SLOTS]


cdef uint64_t key_hash(const char *key) noexcept nogil:
    """FNV-1a of the object's key: the same in every process and on every machine."""
    cdef uint64_t h = 14695981039346656037ULL
    while key[0]:
        h = (h ^ <unsigned char>key[0]) * 1099511628211ULL
        key += 1
    # The low bits select the stripe and the byte, so the high bits are mixed into them.
    return h ^ (h >> 32)


cdef int note_copy(int fd) noexcept nogil:
    """Note an open descriptor; return its slot, or -1 if all slots are taken."""
    cdef int i
    for i in range(N_SLOTS):
        if zc_load(&_open_fds[i]) == 0 and zc_swap_if(&_open_fds[i], 0, fd + 1):
            return i
    return -1


cdef void forget_copy(int slot) noexcept nogil:
    if slot >= 0:
        zc_store(&_open_fds[slot], 0)


cdef int _open_document(Holder *holder, Status *status) noexcept nogil:
    cdef int fd
    cdef int error
    cdef int mode = O_RDONLY if holder.table.has_file else O_RDWR
    while True:
        fd = openat(holder.dirfd, holder.document, mode | O_CLOEXEC | O_NOCTTY)
        if fd >= 0:
            break
        if errno == EINTR:
            continue
        if errno == ENOENT or errno == ENOTDIR or errno == ESTALE:
            # Deleted or being overwritten: the caller opens the node again.
            return fail_errno(status, STALE, errno)
        if errno == EACCES or errno == EPERM or errno == EROFS:
            return fail_errno(status, LOCK_FAILED, errno)
        return fail_errno(status, IO_OPEN, errno)
    error = identify_fd(fd, &holder.identity)
    if error:
        close(fd)
        return fail_errno(status, LOCK_FAILED, error)
    holder.fd = fd
    holder.slot = note_copy(fd)
    return OK


cdef void _close_document(Holder *holder) noexcept nogil:
    # In a child the copy was closed when the child began, and its number may be that of another file.
    if holder.fd >= 0 and not _is_parents(holder):
        forget_copy(holder.slot)
        close(holder.fd)
    holder.fd = -1


cdef bint _is_parents(const Holder *holder) noexcept nogil:
    return holder.n_forks != n_forks()


cdef int holder_open(Holder *holder, LockTable *table, int dirfd, const char *document, Status *status) noexcept nogil:
    memset(holder, 0, sizeof(Holder))
    holder.table = table
    holder.dirfd = dirfd
    holder.document = document
    holder.fd = -1
    holder.n_forks = n_forks()
    if dirfd < 0:
        return OK
    return _open_document(holder, status)


cdef void holder_close(Holder *holder) noexcept nogil:
    _close_document(holder)


cdef int _try_range(const Holder *holder, int kind, int64_t start, int64_t n_bytes) noexcept nogil:
    """Lock or unlock a range of the document: 0, EAGAIN if another holder has it, or an errno."""
    return 0 if holder.table.has_file or _is_parents(holder) else zc_lock_range(holder.fd, kind, start, n_bytes)


cdef int _n_held(const LockTable *table) noexcept nogil:
    """Return how many objects of the node this thread holds, in calls further up its stack."""
    cdef int64_t me = zc_this_thread()
    cdef int n = 0
    cdef int i
    for i in range(N_STRIPES):
        n += zc_load(&table.stripes[i]) == me
    return n


cdef int _wait(int64_t *n, int64_t *count, Poll poll, void *context, Status *status) noexcept nogil:
    """Wait for another holder, the n-th time. Non-zero if the waiter has to stop. Polls rarely: they may take the GIL.

    `count` is the counter that includes this waiter, or NULL. It excludes the waiter during a poll.
    """
    cdef int stops
    cdef int64_t forks = n_forks()
    zc_back_off(n[0])
    n[0] += 1
    if poll == NULL or n[0] % 32 != 0:
        return OK
    if count != NULL:
        zc_add(count, -1)
    stops = poll(context)
    if count != NULL:
        zc_add(count, 1)
    if stops:
        return fail(status, INTERRUPTED, 0, 0, 0)
    # In a child that was forked meanwhile, the document is to be opened again.
    return OK if forks == n_forks() else fail(status, STALE, 0, 0, 0)


cdef int _wait_range(Holder *holder, int kind, int64_t start, int64_t n_bytes, Poll poll, void *context,
                     Status *status) noexcept nogil:
    """Lock a range of the document, waiting in a loop: a pool thread in F_SETLKW would not react to Ctrl-C."""
    cdef int64_t n = 0
    cdef int error
    while True:
        error = _try_range(holder, kind, start, n_bytes)
        if error == 0:
            return OK
        if error != EAGAIN:
            return fail_errno(status, LOCK_FAILED, error)
        if not zc_has_ranges() and _n_held(holder.table) > 1:
            # One lock stands for all objects, and another descriptor of this thread holds it.
            return fail(status, LOCK_OWN, 0, 0, 0)
        error = _wait(&n, NULL, poll, context, status)
        if error != OK:
            return error


cdef int _current(Holder *holder, Status *status) noexcept nogil:
    """Whether the document's name still leads to the locked file."""
    cdef Identity now
    if identify_name(holder.dirfd, holder.document, &now) != 0 or not same_identity(&now, &holder.identity):
        return fail(status, STALE, 0, 0, 0)
    return OK


cdef int _pass_turnstile(Holder *holder, Poll poll, void *context, Status *status) noexcept nogil:
    cdef int code
    if not zc_has_ranges():
        return OK
    code = _try_range(holder, ZC_SHARED, RANGE_START - 1, 1)
    if code == EAGAIN and zc_load(&holder.table.gate) == -zc_this_thread():
        return fail(status, LOCK_OWN, 0, 0, 0)
    if code == EAGAIN and _n_held(holder.table) > 0:
        return OK
    if code != OK:
        code = _wait_range(holder, ZC_SHARED, RANGE_START - 1, 1, poll, context, status)
    if code == OK:
        _try_range(holder, ZC_UNLOCK, RANGE_START - 1, 1)
    return code


cdef int _enter_gate(LockTable *table, Poll poll, void *context, Status *status) noexcept nogil:
    cdef int64_t n = 0
    cdef int64_t holders
    cdef bint is_free
    cdef bint queued = False
    cdef int code = OK
    while True:
        is_free = zc_load(&table.waiting) == 0
        holders = zc_load(&table.gate)
        if holders >= 0 and (is_free or zc_load(&table.window) > 0 or (not queued and _n_held(table) > 0)):
            if zc_swap_if(&table.gate, holders, holders + 1):
                break
            continue
        if not queued:
            if holders == -zc_this_thread():
                return fail(status, LOCK_OWN, 0, 0, 0)
            zc_add(&table.queued, 1)
            queued = True
        code = _wait(&n, &table.queued, poll, context, status)
        if code != OK:
            break
    if code == OK and not is_free:
        _close_window(table)
    if queued:
        zc_add(&table.queued, -1)
    return code


cdef void _close_window(LockTable *table) noexcept nogil:
    """Count down the window: one of its threads has passed."""
    cdef int64_t n = zc_load(&table.window)
    while n > 0 and not zc_swap_if(&table.window, n, n - 1):
        n = zc_load(&table.window)


cdef int lock_object(Holder *holder, uint64_t hash, Poll poll, void *context, Status *status) noexcept nogil:
    cdef int64_t *stripe = &holder.table.stripes[hash % N_STRIPES]
    cdef int64_t me = zc_this_thread()
    cdef int64_t n = 0
    cdef int code
    if holder.whole:
        return OK
    # Before anything is held: a thread of this process may be waiting in the turnstile.
    if holder.fd >= 0 and holder.n_locked % TURNSTILE_EVERY == 0:
        code = _pass_turnstile(holder, poll, context, status)
        if code != OK:
            return code
    while True:
        code = _enter_gate(holder.table, poll, context, status)
        if code != OK:
            return code
        if zc_swap_if(stripe, 0, me):
            break
        zc_add(&holder.table.gate, -1)
        if zc_load(stripe) == me:
            return fail(status, LOCK_OWN, 0, 0, 0)
        code = _wait(&n, NULL, poll, context, status)
        if code != OK:
            return code
    holder.hash = hash
    holder.n_locked += 1
    if holder.fd < 0:
        return OK
    code = _wait_range(holder, ZC_EXCLUSIVE, RANGE_START + <int64_t>(hash & RANGE_MASK), 1, poll, context, status)
    if code != OK:
        _leave_table(holder, hash)
        return code
    code = _current(holder, status)
    if code != OK:
        unlock_object(holder)
    return code


cdef void unlock_object(Holder *holder) noexcept nogil:
    if holder.whole:
        return
    if holder.fd >= 0:
        # Unlocked explicitly, not by close: a fork may have copied the descriptor.
        _try_range(holder, ZC_UNLOCK, RANGE_START + <int64_t>(holder.hash & RANGE_MASK), 1)
    _leave_table(holder, holder.hash)


cdef void _leave_table(Holder *holder, uint64_t hash) noexcept nogil:
    # The table of a child began anew.
    if not _is_parents(holder):
        zc_store(&holder.table.stripes[hash % N_STRIPES], 0)
        zc_add(&holder.table.gate, -1)


cdef int lock_whole(Holder *holder, Poll poll, void *context, Status *status) noexcept nogil:
    cdef LockTable *table = holder.table
    cdef int64_t me = zc_this_thread()
    cdef int64_t n = 0
    cdef int code = OK
    zc_add(&table.waiting, 1)
    # A window without queued threads is no reason to wait.
    while ((zc_load(&table.window) > 0 and zc_load(&table.queued) > 0)
           or not zc_swap_if(&table.gate, 0, -me)):
        if zc_load(&table.gate) == -me or _n_held(table) > 0:
            code = fail(status, LOCK_OWN, 0, 0, 0)
        else:
            code = _wait(&n, &table.waiting, poll, context, status)
        if code != OK:
            zc_add(&table.waiting, -1)
            return code
    zc_add(&table.waiting, -1)
    if holder.fd >= 0:
        if zc_has_ranges():
            code = _wait_range(holder, ZC_EXCLUSIVE, RANGE_START - 1, 1, poll, context, status)
        if code == OK:
            code = _wait_range(holder, ZC_EXCLUSIVE, RANGE_START, 0, poll, context, status)
        if code == OK:
            code = _current(holder, status)
        if code != OK:
            _try_range(holder, ZC_UNLOCK, RANGE_START - 1, 0)
            zc_store(&table.gate, 0)
            return code
    holder.whole = True
    return OK


cdef void unlock_whole(Holder *holder) noexcept nogil:
    if not holder.whole:
        return
    holder.whole = False
    if _is_parents(holder):
        return
    if holder.fd >= 0:
        _try_range(holder, ZC_UNLOCK, RANGE_START - 1, 0)
    zc_store(&holder.table.window, zc_load(&holder.table.queued))
    zc_store(&holder.table.gate, 0)


cdef int holder_replace(Holder *holder, const uint8_t *data, int64_t n_bytes, Staging *staging,
                        Status *status) noexcept nogil:
    cdef Holder new
    cdef int code
    staging.expected = TAKEN
    code = object_stage(holder.dirfd, holder.document, data, n_bytes, staging, status)
    if code == OK:
        # No other process knows this file yet, so its locks are free. After the rename they are ours.
        code = holder_open(&new, holder.table, holder.dirfd, staging.name, status)
        if code == STALE:
            # The file is gone: another program took it for a leftover of a killed writer and removed it.
            code = fail_errno(status, IO_OPEN, status.sys_errno)
        if code == OK:
            code = _try_range(&new, ZC_EXCLUSIVE, RANGE_START - 1, 0)
            if code != 0:
                fail_errno(status, LOCK_FAILED, code)
                holder_close(&new)
    if code == OK:
        code = object_commit(holder.dirfd, holder.document, staging, status)
        if code != OK:
            holder_close(&new)
    if code != OK:
        object_drop(holder.dirfd, staging)
        return code
    # Waiters on the old inode get their locks now, and find that the name leads elsewhere.
    _try_range(holder, ZC_UNLOCK, RANGE_START - 1, 0)
    _close_document(holder)
    holder.fd = new.fd
    holder.slot = new.slot
    # The rename has changed the ctime.
    identify_fd(new.fd, &holder.identity)
    return OK


cdef void section_enter(int64_t *guard) noexcept nogil:
    # The exchange acquires what was done in the section, and the store of 0 releases it.
    cdef int64_t own = n_forks() + 1
    cdef int64_t held = 0
    while not zc_swap_if(guard, held, own):
        zc_pause()
        held = zc_load(guard)
        if held == own:
            held = 0


cdef void close_copies() noexcept nogil:
    cdef int i
    cdef int64_t fd
    for i in range(N_SLOTS):
        fd = _open_fds[i]
        if fd:
            _open_fds[i] = 0
            close(<int>fd - 1)
    count_fork()
