# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Holders of a node's locks for Python, and the table of locks that all handles of a process share.

Compiled because the tables belong to the kernel: threads that write without the GIL use the same numbers.
"""
import os
import weakref
from _thread import RLock

from zcore import errors

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.errno cimport ENOENT, ESTALE
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memset
from posix.unistd cimport close

from zcore.kernel.atomics cimport zc_back_off
from zcore.kernel.io.files cimport (
    TAKEN, Buffer, Identity, Staging, buffer_free, n_forks, object_commit, object_read, object_stage, pass_barrier,
    same_identity, staging_init, staging_settle,
)
from zcore.kernel.io.locks cimport (
    Holder, LockTable, close_copies, holder_close, holder_open, holder_replace, key_hash, lock_object, lock_whole,
    unlock_object, unlock_whole,
)
from zcore.kernel.memory cimport Bytes
from zcore.kernel.status cimport INTERRUPTED, OK, STALE, Status, make_error, status_clear


cdef enum:
    # Tries that find the same file: it was not replaced in between. They take a quarter of a second.
    MAX_SAME = 256


cdef int _poll_signals(void *context) noexcept with gil:
    """Poll signals for waits that only the caller stops. Keeps the exception of a signal handler for `_Hold`."""
    cdef _Hold hold = <_Hold>context
    cdef object exception
    try:
        exception = _pending_signal()
        if exception is None and hold.plan is not None and hold.plan.stopped:
            exception = Stopped("the plan was stopped")
        if exception is None:
            return 0
        hold.exception = exception
    except:  # noqa: E722 (the only clause that cannot raise itself; no caller could see an exception)
        pass
    return 1


cdef object _pending_signal():
    """Run signal handlers; return the exception that one raised, or None."""
    try:
        PyErr_CheckSignals()
    except BaseException as exception:
        return exception
    return None


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
    cdef int64_t generation    # `n_forks` when the lock was taken
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
            self._take()
        except BaseException:
            self.__exit__()
            raise
        return self

    cdef object _take(self):
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
            self.generation = n_forks()
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
        if self.dirfd < 0:
            return True
        try:
            return os.path.samestat(os.fstat(self.dirfd), os.stat(self.locks.directory))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as exc:
            directory = self.locks.directory
            raise errors.StoreError(f"cannot look at {directory}: {exc.strerror}", key=directory,
                                    errno=exc.errno) from exc

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
        # A child process must not release its parent's lock.
        if self.held and self.generation == n_forks():
            if self.holder.whole:
                unlock_whole(&self.holder)
            else:
                unlock_object(&self.holder)
        self.held = False
        self._close()

    cdef void _close(self) noexcept:
        if self.generation == n_forks():
            holder_close(&self.holder)
        # In a child of a fork, the copy was closed when the child began.
        self.holder.fd = -1
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
            The document, and all that was settled before, are on the disk when the call returns.

        Returns
        -------
        tuple of int
            The identity of the new document.
        """
        cdef Bytes source = Bytes(content)
        cdef Staging staging
        cdef Status status
        cdef uint64_t number = token
        cdef Identity *identity = &self.holder.identity
        self._check_whole()
        status_clear(&status)
        staging_init(&staging, number, fsync)
        with nogil:
            if holder_replace(&self.holder, source.data, source.n, &staging, &status) == OK:
                _finish(self.dirfd, &staging, &status)
        if status.code != OK:
            raise make_error(&status, self._name(), None, None, None, ())
        return _identity_of(identity)

    def replace_beside(self, bytes name not None, content, *, token, bint fsync=False):
        """Replace another file in the directory of the held document, wherever a move has taken it; see `replace`."""
        cdef Bytes source = Bytes(content)
        cdef Staging staging
        cdef Status status
        cdef const char *file = name
        self._check_whole()
        status_clear(&status)
        staging_init(&staging, token, fsync)
        staging.expected = TAKEN
        with nogil:
            if (object_stage(self.dirfd, file, source.data, source.n, &staging, &status) == OK
                    and object_commit(self.dirfd, file, &staging, &status) == OK):
                _finish(self.dirfd, &staging, &status)
        if status.code != OK:
            raise make_error(&status, os.fsdecode(name), None, None, None, ())

    def _check_whole(self):
        assert self.key is None and self.holder.whole and self.dirfd >= 0
        if self.generation != n_forks():
            raise errors.StoreError(errors.FORKED, key=self.locks.document)
        if self.locks.file is not None:
            self.locks.file.check()

    def identity_if(self, bytes content not None):
        """Return the identity of the held document, if it has this content; else None.

        The name leads to the document that is held, so this is what a read of the name gives, without opening it again.
        """
        cdef Buffer buffer
        cdef Status status
        cdef Identity *identity = &self.holder.identity
        cdef int64_t n = len(content)
        cdef const char *expected = content
        cdef bint is_same
        if not self.held or self.holder.fd < 0 or identity.size != n:
            return None
        buffer.data, buffer.capacity = NULL, 0
        status_clear(&status)
        with nogil:
            is_same = (object_read(self.holder.fd, n, &buffer, &status) == n
                       and memcmp(buffer.data, expected, <size_t>n) == 0)
            buffer_free(&buffer)
        return _identity_of(identity) if is_same else None

    @property
    def dir_fd(self):
        """Descriptor of the document's directory while held; -1 for a store without files."""
        return self.dirfd


cdef int _finish(int dirfd, Staging *staging, Status *status) noexcept nogil:
    if staging_settle(staging, status) == OK and staging.settles:
        pass_barrier(dirfd, True, status)
    return status.code


cdef tuple _identity_of(const Identity *identity):
    return identity.device, identity.inode, identity.size, identity.mtime_ns, identity.ctime_ns


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
        self._reset()
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

    cdef void _reset(self) noexcept:
        memset(&self.table, 0, sizeof(LockTable))
        self.table.has_file = self.file is not None


_all_locks = weakref.WeakSet()
_shared = weakref.WeakValueDictionary()
_shared_lock = RLock()


def locks_of(key, directory=None, document=None, file=None):
    """Return the `ObjectLocks` of `key`, shared by all handles of this process. For the parameters see `ObjectLocks`.

    `file` is a function that returns the lock file.
    """
    found = _shared.get(key)
    if found is None:
        new = ObjectLocks(directory, document, None if file is None else file())
        # Even setdefault of the weak dictionary is not atomic, and two `ObjectLocks` for one key would exclude nothing.
        with _shared_lock:
            found = _shared.setdefault(key, new)
    return found


def _after_fork_in_child():
    """Only the forking thread lives on: locks of other threads are free, and their descriptors are only copies."""
    global _shared_lock
    cdef ObjectLocks locks
    close_copies()
    for locks in list(_all_locks):
        locks._reset()
    _shared_lock = RLock()


os.register_at_fork(after_in_child=_after_fork_in_child)
