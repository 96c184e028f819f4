"""The lock under which a node comes and goes: without a document to lock, it is the directory that is locked."""
import contextlib
import errno
import os
import weakref
from _thread import get_ident
from functools import partial

from zcore.errors import LockError, StoreError
from zcore.kernel.io.files import TEMP_PREFIX
from zcore.kernel.io.holds import locks_of
from zcore.stores.keys import prefix_of

# A directory that is missing when it has been made was pruned by another process; one after the other, or the file
# system takes none there, as /proc does.
_MAX_TRIES = 100


@contextlib.contextmanager
def hold_place(store, path, document, options):
    """Keep others from creating or deleting a node at `path`.

    There is no document to lock yet, so it is the directory that is locked (`flock`). A file of ours keeps it from
    being pruned meanwhile. Where there are no files, nobody but the threads of this process has to be kept out.

    Gives a function that tells whether the directory is still the one of this name: a group above may be moved, since
    whoever does that would have to ask for all places below.
    """
    if not options.lock:
        yield _always
        return
    directory = store.locks(path, document).directory
    if directory is None:
        with locks_of((id(store), path, "place")).whole():
            yield _always
        return
    for _ in range(_MAX_TRIES):
        place = _Place()
        try:
            if place.take(store, path, directory):
                yield partial(place.is_at, directory)
                return
        finally:
            place.give_back()
    raise StoreError(f"cannot create {directory}: no directory, or no file in it, is there when it has been made",
                     key=directory, errno=errno.ENOENT)


def _always():
    return True


class _Place:
    """A directory that is locked, and a file in it that keeps it from being pruned.

    A signal handler may raise before `give_back` is reached, or in it: what is held goes with the last reference at the
    latest, or the process would wait for itself when it creates the next array here.
    """

    __slots__ = ("fcntl", "fd", "keeper", "thread", "__weakref__")

    def __init__(self):
        import fcntl

        # At the exit of the interpreter it could not be imported any more.
        self.fcntl = fcntl
        self.fd = -1
        self.keeper = None
        self.thread = get_ident()
        _places[id(self)] = self

    def take(self, store, path, directory):
        """Lock the directory of a node, which is made if it is missing; False when the name leads elsewhere by then."""
        store.make_directory(prefix_of(path))
        try:
            self.fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            # Pruned between the two.
            return False
        except OSError as exc:
            raise StoreError(f"cannot open {directory}: {exc.strerror}", key=directory, errno=exc.errno) from exc
        self._lock(directory)
        return self._keep(directory)

    def _lock(self, directory):
        try:
            if not self._is_locked():
                self._check_others(directory)
                self.fcntl.flock(self.fd, self.fcntl.LOCK_EX)
        except OSError as exc:
            if isinstance(exc, LockError):
                raise
            raise LockError(f"cannot lock directory {directory}: {exc.strerror}; lock=None writes without locks",
                            key=directory, errno=exc.errno) from exc

    def _is_locked(self):
        """Lock the directory, unless another descriptor holds it; return whether this one does now."""
        try:
            self.fcntl.flock(self.fd, self.fcntl.LOCK_EX | self.fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _check_others(self, directory):
        """Raise LockError when a call further up in this thread holds the directory, as one in a signal handler has."""
        for place in _living():
            if (place is not self and place.thread == self.thread and place.fd >= 0
                    and os.path.sameopenfile(place.fd, self.fd) and place._is_locked()):
                raise LockError(f"this thread holds the lock of the directory {directory} already, in a call that has "
                                "not ended: a signal handler, or other code that runs inside that call, would wait "
                                "for ever", key=directory, errno=errno.EDEADLK)

    def _keep(self, directory):
        try:
            if not self._has_name(directory):
                return False
            # Noted before it is made, as a signal may come between the two; in the directory wherever it is moved.
            self.keeper = TEMP_PREFIX + os.urandom(8).hex()
            os.close(os.open(self.keeper, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=self.fd))
            return True
        except FileNotFoundError:
            return False
        except OSError as exc:
            raise StoreError(f"cannot write in {directory}: {exc.strerror}", key=directory, errno=exc.errno) from exc

    def is_at(self, directory):
        """Whether the directory that is held has this name."""
        try:
            return self._has_name(directory)
        except OSError as exc:
            raise StoreError(f"cannot look at {directory}: {exc.strerror}", key=directory, errno=exc.errno) from exc

    def _has_name(self, directory):
        try:
            return os.path.samestat(os.fstat(self.fd), os.stat(directory))
        except (FileNotFoundError, NotADirectoryError):
            return False

    def give_back(self):
        """Give back what is held, if anything."""
        if self.keeper is not None:
            # One that stays is never listed, and removed with other left-overs.
            with contextlib.suppress(OSError):
                os.unlink(self.keeper, dir_fd=self.fd)
            self.keeper = None
        if self.fd >= 0:
            # Unlocked before it is closed: a fork may have copied the descriptor, and with it the lock.
            with contextlib.suppress(OSError):
                self.fcntl.flock(self.fd, self.fcntl.LOCK_UN)
            fd, self.fd = self.fd, -1
            # Nothing was written to it that could be lost.
            with contextlib.suppress(OSError):
                os.close(fd)

    __del__ = give_back


def _after_fork_in_child():
    """Close the copies of descriptors, or a lock of the parent would live as long as the child does."""
    for place in _living():
        # The file is the parent's.
        place.keeper = None
        fd, place.fd = place.fd, -1
        if fd >= 0:
            os.close(fd)


def _living():
    # Taken together in one step: other threads, and signal handlers, add to them.
    return [place for ref in _places.valuerefs() if (place := ref()) is not None]


_places = weakref.WeakValueDictionary()
os.register_at_fork(after_in_child=_after_fork_in_child)
