# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""The locks for replacing stored objects and changing metadata documents.

Compiled because every written object is locked, without the GIL, in about two microseconds. `WritePlan` locks objects
that are files; in Python, `ObjectLocks` are the locks of a node, which all its handles in a process share.

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
import os
import weakref
from _thread import RLock

from zcore import errors

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.errno cimport EACCES, EAGAIN, EINTR, ENOENT, ENOTDIR, EPERM, EROFS, ESTALE, errno
from libc.stdint cimport uint8_t
from libc.string cimport memset
from posix.fcntl cimport O_CLOEXEC, O_NOCTTY, O_RDONLY, O_RDWR, openat
from posix.unistd cimport close

from zcore.kernel.atomics cimport zc_add, zc_back_off, zc_load, zc_pause, zc_store, zc_swap_if, zc_this_thread
from zcore.kernel.io.files cimport (
    TAKEN, Staging, count_fork, identify_fd, identify_name, n_forks, numbers_of, object_commit, object_drop, object_has,
    object_stage, pass_barrier, same_identity, staging_init, staging_write_out,
)
from zcore.kernel.memory cimport Bytes
from zcore.kernel.status cimport (
    INTERRUPTED, IO_OPEN, LOCK_FAILED, LOCK_OWN, OK, STALE, fail, fail_errno, make_error, status_clear,
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


cdef void holder_close(Holder *holder) noexcept nogil:
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


cdef enum:
    WAITS_PER_POLL = 32     # a poll may take the GIL


cdef int _wait(int64_t *n, int64_t *count, Poll poll, void *context, Status *status) noexcept nogil:
    """Wait for another holder, the n-th time (`zc_back_off`). Non-zero if the waiter has to stop, which `poll` tells.

    `count` is the counter that includes this waiter, or NULL. It excludes the waiter during a poll.
    """
    cdef int stops
    cdef int64_t forks = n_forks()
    zc_back_off(n[0])
    n[0] += 1
    if poll == NULL or n[0] % WAITS_PER_POLL != 0:
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


cdef int _lock_whole(Holder *holder, Poll poll, void *context, Status *status) noexcept nogil:
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


cdef void _unlock_whole(Holder *holder) noexcept nogil:
    if not holder.whole:
        return
    holder.whole = False
    if _is_parents(holder):
        return
    if holder.fd >= 0:
        _try_range(holder, ZC_UNLOCK, RANGE_START - 1, 0)
    zc_store(&holder.table.window, zc_load(&holder.table.queued))
    zc_store(&holder.table.gate, 0)


cdef int _holder_replace(Holder *holder, const uint8_t *data, int64_t n_bytes, Staging *staging,
                         Status *status) noexcept nogil:
    """Replace a document that is held whole by a new one, and hold that: no other holder gets in between."""
    cdef Holder new
    cdef int code = object_stage(holder.dirfd, holder.document, data, n_bytes, staging, status)
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
    holder_close(holder)
    holder.fd = new.fd
    holder.slot = new.slot
    # The rename has changed the ctime.
    identify_fd(new.fd, &holder.identity)
    return OK


cdef void section_enter(int64_t *guard) noexcept nogil:
    # The exchange acquires the changes made in the section; the store of 0 releases them.
    cdef int64_t own = n_forks() + 1
    cdef int64_t held = 0
    while not zc_swap_if(guard, held, own):
        zc_pause()
        held = zc_load(guard)
        if held == own:
            held = 0


cdef void _close_copies() noexcept nogil:
    """In the child of a fork: close the copies of the parent's open documents; a lock lives as long as any copy."""
    cdef int i
    cdef int64_t fd
    for i in range(N_SLOTS):
        fd = _open_fds[i]
        if fd:
            _open_fds[i] = 0
            close(<int>fd - 1)
    count_fork()


cdef enum:
    # Tries that find the same file: it was not replaced in between. They take a quarter of a second.
    MAX_SAME = 256


cdef int _poll_signals(void *context) noexcept with gil:
    """Poll signals for waits that only the caller stops. Keeps the exception of a signal handler for `_Hold`."""
    cdef _Hold hold = <_Hold>context
    try:
        try:
            PyErr_CheckSignals()
            if hold.plan is not None and hold.plan.stopped:
                raise Stopped("the plan was stopped")
            return 0
        except BaseException as exception:
            hold.exception = exception
    except:  # noqa: E722 (the only clause that cannot raise itself; no caller could see an exception)
        pass
    return 1


class Stopped(Exception):
    """The plan that needed an object's lock was stopped by another of its threads."""


@cython.no_gc_clear
cdef class _Hold:
    """Context manager: this thread holds the whole range, or one object.

    A signal handler may raise between two steps of the Python code around it, so that `__exit__` is never called. Then
    the lock is released with the last reference.
    """

    cdef ObjectLocks locks
    cdef Holder holder
    cdef bytes document
    cdef str key               # None for the whole range
    cdef object plan           # a waiting call stops soon after this plan; None: it waits on
    cdef object share          # share of the lock file; None for an object, whose write holds a share of its own
    cdef int dirfd
    cdef bint held
    cdef object exception

    def __cinit__(self):
        self.dirfd = -1
        self.holder.fd = -1

    def __dealloc__(self):
        self._release()

    def __enter__(self):
        if self.key is None and self.locks.file is not None:
            self.share = self.locks.file.hold()
            self.share.__enter__()
        try:
            self._lock()
        except BaseException:
            self.__exit__()
            raise
        return self

    cdef object _lock(self):
        cdef Status status
        cdef int code
        cdef const char *document
        cdef uint64_t hash = 0
        cdef bytes key
        cdef Identity before
        cdef int n_same = 0
        self.document = os.fsencode(self.locks.document) if self.locks.document is not None else b""
        document = self.document
        if self.key is not None:
            key = self.key.encode()
            hash = key_hash(key)
        status_clear(&status)
        memset(&before, 0, sizeof(Identity))
        while True:
            if self.locks.directory is not None:
                self.dirfd = _open_directory(self.locks.directory)
            with nogil:
                code = holder_open(&self.holder, &self.locks.table, self.dirfd, document, &status)
                if code == OK:
                    if self.key is None:
                        code = _lock_whole(&self.holder, _poll_signals, <void *>self, &status)
                    else:
                        code = lock_object(&self.holder, hash, _poll_signals, <void *>self, &status)
            if code == OK:
                self.held = True
                if self._is_at():
                    return None
            # Again, if the document was replaced while we waited, or another directory has got the name of its own.
            elif code != STALE or (status.sys_errno and (status.sys_errno != ENOENT or self._is_at())):
                self._close()
                if code == INTERRUPTED:
                    exception, self.exception = self.exception, None
                    raise exception
                if code == STALE:
                    raise FileNotFoundError(status.sys_errno, os.strerror(status.sys_errno), self.locks.document)
                raise make_error(&status, self._name(), None, None, None, ())
            n_same = n_same + 1 if same_identity(&self.holder.identity, &before) else 0
            before = self.holder.identity
            if n_same == MAX_SAME:
                self._refuse()
            self._release()
            status_clear(&status)
            PyErr_CheckSignals()
            with nogil:
                zc_back_off(n_same)

    cdef object _refuse(self):
        """Raise LockError: the name of the open document leads to another file for good, though no one replaces it."""
        looks = os.fstat(self.dirfd), os.stat(self.locks.directory)
        if self.holder.fd >= 0 and os.path.samestat(*looks):
            looks = os.fstat(self.holder.fd), os.stat(self._name())
        opened, named = [(look.st_dev, look.st_ino, look.st_size, look.st_mtime_ns, look.st_ctime_ns)
                         for look in looks]
        raise errors.LockError(
            f"{self._name()} cannot be locked: for the file system, the open file and its name have different "
            f"identities (device, inode, size, times of change): {opened} and {named}; lock=None writes without locks",
            key=self._name(), errno=ESTALE)

    cdef object _is_at(self):
        """Return whether the directory of the locked document still has its name."""
        return self.dirfd < 0 or has_name(self.dirfd, self.locks.directory)

    def _name(self):
        """Return the name of the lock for messages: a path or a key; None without a name."""
        if self.locks.directory is None:
            return self.key
        return os.path.join(self.locks.directory, self.locks.document)

    def __exit__(self, *exc_info):
        """Release the lock, if it is held."""
        self._release()
        if self.share is not None:
            self.share.__exit__(None, None, None)
            self.share = None

    cdef void _release(self) noexcept:
        # In a forked child, these do nothing to the locks of its parent.
        if self.held and self.holder.whole:
            _unlock_whole(&self.holder)
        elif self.held:
            unlock_object(&self.holder)
        self.held = False
        self._close()

    cdef void _close(self) noexcept:
        holder_close(&self.holder)
        if self.dirfd >= 0:
            close(self.dirfd)
            self.dirfd = -1

    def replace(self, content, *, token, bint fsync=False):
        """Replace the held document by a new one and hold that; no other holder gets in between.

        After a power cut, the old one or the new one is there.

        Parameters
        ----------
        content : bytes-like
            The new document.
        token : int
            Random; part of the temporary file's name.
        fsync : bool
            The document, and all that was written out before, are on the disk when the call returns.

        Returns
        -------
        tuple of int
            The identity of the new document.
        """
        _replace(self, None, content, token, fsync)
        return numbers_of(&self.holder.identity)

    def replace_beside(self, bytes name not None, content, *, token, bint fsync=False):
        """Replace another file in the directory of the held document, wherever a move has taken it; see `replace`."""
        _replace(self, name, content, token, fsync)

    def identity_if(self, bytes content not None):
        """Return the identity of the held document, if it has this content; else None.

        The name leads to the document that is held, so this is what a read of the name gives, without opening it again.
        """
        cdef Identity *identity = &self.holder.identity
        cdef int64_t n = len(content)
        cdef const char *expected = content
        cdef bint is_same
        if not self.held or self.holder.fd < 0 or identity.size != n:
            return None
        with nogil:
            is_same = object_has(self.holder.fd, expected, n)
        return numbers_of(identity) if is_same else None

    @property
    def dir_fd(self):
        """Descriptor of the document's directory while held; -1 for a store without files."""
        return self.dirfd


cdef int _replace(_Hold self, bytes beside, object content, uint64_t token, bint fsync) except -1:
    """Replace the held document, or the file `beside` it."""
    cdef Bytes source = Bytes(content)
    cdef Staging staging
    cdef Status status
    cdef const char *name = NULL if beside is None else <const char *>beside
    assert self.key is None and self.holder.whole and self.dirfd >= 0
    if _is_parents(&self.holder):
        raise errors.StoreError(errors.FORKED, key=self.locks.document)
    if self.locks.file is not None:
        self.locks.file.check()
    status_clear(&status)
    staging_init(&staging, token, fsync)
    staging.expected = TAKEN
    with nogil:
        if name == NULL:
            _holder_replace(&self.holder, source.data, source.n, &staging, &status)
        elif object_stage(self.dirfd, name, source.data, source.n, &staging, &status) == OK:
            object_commit(self.dirfd, name, &staging, &status)
        if status.code == OK and staging_write_out(&staging, &status) == OK and staging.writes_out:
            pass_barrier(self.dirfd, True, &status)
    if status.code != OK:
        raise make_error(&status, self._name() if beside is None else os.fsdecode(beside), None, None, None, ())
    return 0


# A handler that raises at each of so many calls is itself broken, so the loop ends.
cdef enum:
    MAX_INTERRUPTIONS = 1000


cdef class Held:
    """Context manager that releases its locks when the block ends, whatever a signal handler raises meanwhile.

    A handler such as that of Ctrl-C may raise at the first instruction of any Python function, for example of
    `__exit__`. A traceback that is kept would then keep the lock. No Python instruction lies between the end of a block
    and the compiled `__exit__` of this class, which calls `release` until it returns. An `ExitStack` may be
    interrupted before it calls `__exit__`: then the locks are released with the last reference.

    A subclass has ``acquire()``, whose result is the value of the ``with`` statement, and ``release(exception)``. That
    gets the exception that ended the block, or None. It raises nothing itself, and may be called several times.
    """

    cdef bint is_taken

    @property
    def dir_fd(self):
        """Descriptor of the directory that is held; -1 in a store without files, and without locks."""
        return -1

    def __enter__(self):
        self.is_taken = True
        try:
            return self.acquire()
        except BaseException as exception:
            self._end(exception)
            raise

    def __exit__(self, kind, exception, traceback):
        self._end(exception)

    def __del__(self):
        try:
            if self.is_taken:
                self._end(None)
        except:  # noqa: E722 (the only clause that cannot raise itself; a finalizer has no caller)
            pass

    cdef int _end(self, object exception) except -1:
        cdef object raised = None
        for _ in range(MAX_INTERRUPTIONS):
            try:
                self.release(exception)
                self.is_taken = False
                break
            except BaseException as error:
                raised = error
        if raised is not None:
            raise raised


def has_name(int fd, str directory not None):
    """Return whether an open directory still has its name. Raises : StoreError, if that cannot be looked at."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(directory))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as exc:
        raise errors.StoreError(f"cannot look at {directory}: {exc.strerror}", key=directory, errno=exc.errno) from exc


cdef int _open_directory(directory) except -1:
    try:
        return os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except NotADirectoryError as exc:
        raise FileNotFoundError(exc.errno, exc.strerror, directory) from exc
    except OSError as exc:
        if exc.errno == ENOENT:
            raise
        raise errors.StoreError(f"cannot open {directory}: {exc.strerror}", key=directory, errno=exc.errno) from exc


cdef class ObjectLocks:
    """The locks of one node's objects.

    Parameters
    ----------
    directory : str or None
        Directory of the metadata document. None for a store whose bytes are not in files; then the locks only exclude
        threads of this process.
    document : str or None
        File name of the metadata document.
    file : LockFile, optional
        Excludes other processes, instead of locks of the document.
    """

    def __cinit__(self, directory=None, document=None, file=None):
        self.directory = directory
        self.document = document
        self.file = file
        _reset(self)
        _all_locks.add(self)

    def whole(self):
        """Return a context manager that holds all objects and the document.

        Raises
        ------
        LockError
            The file system or the permissions do not allow locks.
        FileNotFoundError
            The document is gone.
        """
        cdef _Hold hold = _Hold()
        hold.locks = self
        return hold

    def object(self, str key not None, plan=None):
        """Return a context manager that holds the object `key`. Raises the errors of `whole`.

        A waiting call raises `Stopped` soon after `plan` is stopped.
        """
        cdef _Hold hold = _Hold()
        hold.locks = self
        hold.key = key
        hold.plan = plan
        return hold


cdef void _reset(ObjectLocks locks) noexcept:
    memset(&locks.table, 0, sizeof(LockTable))
    locks.table.has_file = locks.file is not None


_all_locks = weakref.WeakSet()
_shared = {}           # weak references
_shared_lock = RLock()


def locks_of(key, directory=None, document=None, file=None):
    """Return the `ObjectLocks` of `key`, shared by all handles of this process. For the parameters see `ObjectLocks`.

    `file` is a function that returns the lock file.
    """
    reference = _shared.get(key)
    found = None if reference is None else reference()
    if found is None:
        new = ObjectLocks(directory, document, None if file is None else file())
        reference = weakref.ref(new, lambda dead: _forget(key, dead))
        # Not by a weak dictionary, which is written in Python: a signal handler that comes there may wait for a thread
        # that waits for this lock.
        with _shared_lock:
            found = _shared.setdefault(key, reference)()
            if found is None:
                _shared[key], found = reference, new
    return found


def _forget(key, reference):
    with _shared_lock:
        if _shared.get(key) is reference:
            del _shared[key]


def _after_fork_in_child():
    """Only the forking thread lives on: locks of other threads are free, and their descriptors are only copies."""
    global _shared_lock
    cdef ObjectLocks locks
    _close_copies()
    for locks in list(_all_locks):
        _reset(locks)
    _shared_lock = RLock()


os.register_at_fork(after_in_child=_after_fork_in_child)
