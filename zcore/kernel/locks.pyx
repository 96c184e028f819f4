# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""The locks under which stored objects are replaced and metadata documents change.

Compiled because every object that is written is locked, without the GIL, in about two microseconds.

A writer opens the document once a call (never shared between threads or across a fork), locks one object at a time,
and looks after every lock whether the name still stands for the inode it has locked: a document that was replaced
carries its locks away. Who replaces the document takes the whole range first, so nobody holds an object then.

The turnstile, the byte before the range, keeps a stream of object writers from starving whoever wants the whole:
he holds it while he waits, and writers look at it at the start of each call and at every `TURNSTILE_EVERY`-th object.
Inside a process the counter `waiting` does the same, and a window keeps those who want the whole from starving the
others in turn: after each of them the writers that had to queue up go first.
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
from posix.fcntl cimport O_CLOEXEC, O_NOCTTY, O_RDWR, openat
from posix.unistd cimport close

from zcore.kernel.atomics cimport zc_add, zc_back_off, zc_load, zc_store, zc_swap_if
from zcore.kernel.fileio cimport (
    Identity, Staging, identify_fd, identify_name, object_commit, object_drop, object_stage, same_identity,
    staging_init,
)
from zcore.kernel.status cimport (
    INTERRUPTED, IO_OPEN, LOCK_FAILED, OK, STALE, Status, check, fail, fail_errno, status_clear,
)

cdef extern from "file_lock.h" nogil:
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

# Descriptors that are open for locking, plus 1: the child of a fork closes its copies, or a lock of the parent would
# live as long as the child does.
cdef int64_t _open_fds[N_SLOTS]
cdef int64_t _generation = 0     # forks between the first process that loaded this module and this one


cdef uint64_t key_hash(const char *key) noexcept nogil:
    """FNV-1a of the object's key: the same in every process and on every machine."""
    cdef uint64_t h = 14695981039346656037ULL
    while key[0]:
        h = (h ^ <unsigned char>key[0]) * 1099511628211ULL
        key += 1
    # The low bits select the stripe and the byte; mix the high ones into them.
    return h ^ (h >> 32)


cdef int _note(int fd) noexcept nogil:
    """Note an open descriptor; returns its slot or -1 when all are taken."""
    cdef int i
    for i in range(N_SLOTS):
        if zc_load(&_open_fds[i]) == 0 and zc_swap_if(&_open_fds[i], 0, fd + 1):
            return i
    return -1


cdef int _open_document(Holder *holder, Status *status) noexcept nogil:
    cdef int fd
    cdef int error
    while True:
        fd = openat(holder.dirfd, holder.document, O_RDWR | O_CLOEXEC | O_NOCTTY)
        if fd >= 0:
            break
        if errno == EINTR:
            continue
        if errno == ENOENT or errno == ENOTDIR or errno == ESTALE:
            # Deleted or being overwritten: the caller looks at the node anew.
            return fail_errno(status, STALE, errno)
        if errno == EACCES or errno == EPERM or errno == EROFS:
            return fail_errno(status, LOCK_FAILED, errno)
        return fail_errno(status, IO_OPEN, errno)
    error = identify_fd(fd, &holder.identity)
    if error:
        close(fd)
        return fail_errno(status, LOCK_FAILED, error)
    holder.fd = fd
    holder.slot = _note(fd)
    return OK


cdef void _close_document(Holder *holder) noexcept nogil:
    if holder.fd >= 0:
        if holder.slot >= 0:
            zc_store(&_open_fds[holder.slot], 0)
        close(holder.fd)
        holder.fd = -1


cdef int holder_open(Holder *holder, LockTable *table, int dirfd, const char *document, Status *status) noexcept nogil:
    memset(holder, 0, sizeof(Holder))
    holder.table = table
    holder.dirfd = dirfd
    holder.document = document
    holder.fd = -1
    if dirfd < 0:
        return OK
    return _open_document(holder, status)


cdef void holder_close(Holder *holder) noexcept nogil:
    _close_document(holder)


cdef int _wait(int64_t *n, Poll poll, void *context, Status *status) noexcept nogil:
    """The n-th wait for somebody; non-zero when the waiter has to give up. A poll may take the GIL: it is rare."""
    zc_back_off(n[0])
    n[0] += 1
    if poll != NULL and n[0] % 32 == 0 and poll(context):
        return fail(status, INTERRUPTED, 0, 0, 0)
    return OK


cdef int _wait_range(Holder *holder, int kind, int64_t start, int64_t n_bytes, Poll poll, void *context,
                     Status *status) noexcept nogil:
    """Lock a range of the document, however long it takes: SETLKW would not let a pool thread go on Ctrl-C."""
    cdef int64_t n = 0
    cdef int error
    while True:
        error = zc_lock_range(holder.fd, kind, start, n_bytes)
        if error == 0:
            return OK
        if error != EAGAIN:
            return fail_errno(status, LOCK_FAILED, error)
        error = _wait(&n, poll, context, status)
        if error != OK:
            return error


cdef int _current(Holder *holder, Status *status) noexcept nogil:
    """Whether the document's name still stands for what is locked."""
    cdef Identity now
    if identify_name(holder.dirfd, holder.document, &now) != 0 or not same_identity(&now, &holder.identity):
        return fail(status, STALE, 0, 0, 0)
    return OK


cdef int _pass_turnstile(Holder *holder, Poll poll, void *context, Status *status) noexcept nogil:
    cdef int code
    if not zc_has_ranges():
        return OK
    code = _wait_range(holder, ZC_SHARED, RANGE_START - 1, 1, poll, context, status)
    if code == OK:
        zc_lock_range(holder.fd, ZC_UNLOCK, RANGE_START - 1, 1)
    return code


cdef int _enter_gate(LockTable *table, Poll poll, void *context, Status *status) noexcept nogil:
    cdef int64_t n = 0
    cdef int64_t holders
    cdef bint is_free
    cdef bint queued = False
    cdef int code = OK
    while True:
        is_free = zc_load(&table.waiting) == 0
        if is_free or zc_load(&table.window) > 0:
            holders = zc_load(&table.gate)
            if holders >= 0:
                if zc_swap_if(&table.gate, holders, holders + 1):
                    break
                continue
        if not queued:
            zc_add(&table.queued, 1)
            queued = True
        code = _wait(&n, poll, context, status)
        if code != OK:
            break
    if code == OK and not is_free:
        _close_window(table)
    if queued:
        zc_add(&table.queued, -1)
    return code


cdef void _close_window(LockTable *table) noexcept nogil:
    """One of those whom the window is for has passed."""
    cdef int64_t n = zc_load(&table.window)
    while n > 0 and not zc_swap_if(&table.window, n, n - 1):
        n = zc_load(&table.window)


cdef int lock_object(Holder *holder, uint64_t hash, Poll poll, void *context, Status *status) noexcept nogil:
    cdef int64_t *stripe = &holder.table.stripes[hash % N_STRIPES]
    cdef int64_t n = 0
    cdef int code
    if holder.whole:
        return OK
    # Looked at before anything is held: who waits in the turnstile may be a thread of this process.
    if holder.fd >= 0 and holder.n_locked % TURNSTILE_EVERY == 0:
        code = _pass_turnstile(holder, poll, context, status)
        if code != OK:
            return code
    code = _enter_gate(holder.table, poll, context, status)
    if code != OK:
        return code
    while not zc_swap_if(stripe, 0, 1):
        code = _wait(&n, poll, context, status)
        if code != OK:
            zc_add(&holder.table.gate, -1)
            return code
    holder.hash = hash
    holder.n_locked += 1
    if holder.fd < 0:
        return OK
    code = _wait_range(holder, ZC_EXCLUSIVE, RANGE_START + <int64_t>(hash & RANGE_MASK), 1, poll, context, status)
    if code != OK:
        zc_store(stripe, 0)
        zc_add(&holder.table.gate, -1)
        return code
    code = _current(holder, status)
    if code != OK:
        unlock_object(holder)
    return code


cdef void unlock_object(Holder *holder) noexcept nogil:
    if holder.whole:
        return
    if holder.fd >= 0:
        # Explicitly, not by close: a fork may have copied the descriptor.
        zc_lock_range(holder.fd, ZC_UNLOCK, RANGE_START + <int64_t>(holder.hash & RANGE_MASK), 1)
    zc_store(&holder.table.stripes[holder.hash % N_STRIPES], 0)
    zc_add(&holder.table.gate, -1)


cdef int lock_whole(Holder *holder, Poll poll, void *context, Status *status) noexcept nogil:
    cdef LockTable *table = holder.table
    cdef int64_t n = 0
    cdef int code = OK
    zc_add(&table.waiting, 1)
    # A window that nobody queues for any more is no reason to wait.
    while ((zc_load(&table.window) > 0 and zc_load(&table.queued) > 0)
           or not zc_swap_if(&table.gate, 0, -1)):
        code = _wait(&n, poll, context, status)
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
            zc_lock_range(holder.fd, ZC_UNLOCK, RANGE_START - 1, 0)
            zc_store(&table.gate, 0)
            return code
    holder.whole = True
    return OK


cdef void unlock_whole(Holder *holder) noexcept nogil:
    if not holder.whole:
        return
    holder.whole = False
    if holder.fd >= 0:
        zc_lock_range(holder.fd, ZC_UNLOCK, RANGE_START - 1, 0)
    zc_store(&holder.table.window, zc_load(&holder.table.queued))
    zc_store(&holder.table.gate, 0)


cdef int _poll_signals(void *context) noexcept with gil:
    """For waits with nothing to stop but the caller: keeps the exception of a signal handler for `_Hold`."""
    cdef _Hold hold = <_Hold>context
    cdef object exception
    try:
        exception = _pending_signal()
        if exception is None and hold.plan is not None and hold.plan.stopped:
            exception = Stopped("the plan was stopped")
        if exception is None:
            return 0
        hold.exception = exception
    except:  # noqa: E722 (the only clause that cannot raise itself, as nobody above could see it)
        pass
    return 1


cdef object _pending_signal():
    """Run signal handlers; the exception that one raised, or None."""
    try:
        PyErr_CheckSignals()
    except BaseException as exception:
        return exception
    return None


class Stopped(Exception):
    """The plan for which an object was to be held has been stopped by another of its threads."""


@cython.no_gc_clear
cdef class _Hold:
    """Context manager: the whole range, or one object, held by this thread.

    A signal handler may raise between two steps of the Python code around it, so that `__exit__` is never called:
    what is held is given back with the last reference at the latest.
    """

    cdef ObjectLocks locks
    cdef Holder holder
    cdef bytes document
    cdef str key               # None for the whole range
    cdef object plan           # asked whether waiting has a point still; None when it has
    cdef int dirfd
    cdef bint held
    cdef int64_t generation    # number of forks when it was entered
    cdef object exception

    def __cinit__(self):
        self.dirfd = -1
        self.holder.fd = -1

    def __dealloc__(self):
        self._release()

    def __enter__(self):
        cdef Status status
        cdef int code
        cdef const char *document
        cdef uint64_t hash = 0
        cdef bytes key
        self.document = os.fsencode(self.locks.document) if self.locks.document is not None else b""
        document = self.document
        if self.key is not None:
            key = self.key.encode()
            hash = key_hash(key)
        status_clear(&status)
        self.generation = _generation
        while True:
            if self.locks.directory is not None:
                self.dirfd = _open_directory(self.locks.directory)
            with nogil:
                code = holder_open(&self.holder, &self.locks.table, self.dirfd, document, &status)
                if code == OK:
                    if self.key is None:
                        code = lock_whole(&self.holder, _poll_signals, <void *>self, &status)
                    else:
                        code = lock_object(&self.holder, hash, _poll_signals, <void *>self, &status)
            if code == OK:
                self.held = True
                return self
            self._close()
            if code == INTERRUPTED:
                exception, self.exception = self.exception, None
                raise exception
            if code == STALE and status.sys_errno == 0:
                # Replaced while we waited: lock the document that stands there now.
                status_clear(&status)
                continue
            if code == STALE:
                raise FileNotFoundError(status.sys_errno, os.strerror(status.sys_errno), self.locks.document)
            check(&status)

    def __exit__(self, *exc_info):
        """Give back what is held, if anything."""
        self._release()

    cdef void _release(self) noexcept:
        # What a parent holds is not its child's to give back.
        if self.held and self.generation == _generation:
            if self.holder.whole:
                unlock_whole(&self.holder)
            else:
                unlock_object(&self.holder)
        self.held = False
        self._close()

    cdef void _close(self) noexcept:
        if self.generation == _generation:
            holder_close(&self.holder)
        # Else the child has closed its copy when it began.
        self.holder.fd = -1
        if self.dirfd >= 0:
            close(self.dirfd)
            self.dirfd = -1

    def replace(self, const uint8_t[::1] content not None, *, token, bint fsync=False):
        """Put a new document in the place of the held one, and hold that: nobody gets in between.

        Parameters
        ----------
        content : bytes-like
            The new document.
        token : int
            Random; part of the temporary file's name.
        fsync : bool
            The document reaches the disk before the call returns.

        Returns
        -------
        tuple of int
            The identity of the new document.
        """
        cdef Staging staging
        cdef Holder new
        cdef Status status
        cdef const char *document = self.document
        cdef uint64_t number = token
        cdef int64_t n_bytes = content.shape[0]
        cdef int code
        assert self.key is None and self.holder.whole and self.dirfd >= 0
        status_clear(&status)
        with nogil:
            staging_init(&staging, number, fsync)
            code = object_stage(self.dirfd, document, &content[0], n_bytes, &staging, &status)
            if code == OK:
                # Nobody else knows this file yet, so its locks are free; once it has the name they are ours.
                code = holder_open(&new, self.holder.table, self.dirfd, staging.name, &status)
                if code == STALE:
                    # Gone: somebody took it for the file of a writer that was killed.
                    code = fail_errno(&status, IO_OPEN, status.sys_errno)
                if code == OK:
                    code = zc_lock_range(new.fd, ZC_EXCLUSIVE, RANGE_START - 1, 0)
                    if code != 0:
                        fail_errno(&status, LOCK_FAILED, code)
                        holder_close(&new)
            if code == OK:
                code = object_commit(self.dirfd, document, &staging, &status)
                if code != OK:
                    holder_close(&new)
            if code == OK:
                # Waiters on the old inode win now, and find that the name has left it.
                zc_lock_range(self.holder.fd, ZC_UNLOCK, RANGE_START - 1, 0)
                _close_document(&self.holder)
                self.holder.fd = new.fd
                self.holder.slot = new.slot
                # The rename has changed the ctime.
                identify_fd(new.fd, &self.holder.identity)
            else:
                object_drop(self.dirfd, &staging)
        check(&status)
        cdef Identity *identity = &self.holder.identity
        return identity.device, identity.inode, identity.size, identity.mtime_ns, identity.ctime_ns

    @property
    def dir_fd(self):
        """Descriptor of the document's directory while held; -1 for a store without files."""
        return self.dirfd


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
        Directory of the metadata document; None for a store whose bytes are not in files (then only threads of this
        process are excluded).
    document : str or None
        File name of the metadata document.
    """

    def __cinit__(self, directory=None, document=None):
        memset(&self.table, 0, sizeof(LockTable))
        self.directory = directory
        self.document = document
        _all_locks.add(self)

    def whole(self):
        """Return a context manager that holds every object and the document.

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
        """Return a context manager that holds the object `key`; same errors as `whole`.

        Who waits raises `Stopped` soon after `plan` was stopped.
        """
        cdef _Hold hold = _Hold()
        hold.locks = self
        hold.key = key
        hold.plan = plan
        return hold

    cdef void _reset(self) noexcept:
        memset(&self.table, 0, sizeof(LockTable))


_all_locks = weakref.WeakSet()
_shared = weakref.WeakValueDictionary()
_shared_lock = RLock()


def locks_of(key, directory=None, document=None):
    """Return the `ObjectLocks` known by `key`, one for all handles of this process; see there for the rest."""
    found = _shared.get(key)
    if found is None:
        new = ObjectLocks(directory, document)
        # Of the weak dictionary even setdefault is not atomic, and two locks for one key are none.
        with _shared_lock:
            found = _shared.setdefault(key, new)
    return found


def _after_fork_in_child():
    """Only the forking thread lives on: what others held is free, and their descriptors are only copies."""
    global _shared_lock, _generation
    cdef int i
    cdef int64_t fd
    cdef ObjectLocks locks
    for i in range(N_SLOTS):
        fd = _open_fds[i]
        if fd:
            _open_fds[i] = 0
            close(<int>fd - 1)
    for locks in list(_all_locks):
        locks._reset()
    _shared_lock = RLock()
    _generation += 1


os.register_at_fork(after_in_child=_after_fork_in_child)
