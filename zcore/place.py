"""The lock under which a node comes and goes: without a document to lock, it is the directory that is locked."""
import contextlib
import errno
import os
import weakref
from functools import partial

from zcore.errors import LockError, StoreError
from zcore.kernel.fileio import TEMP_PREFIX
from zcore.kernel.holds import locks_of
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

    __slots__ = ("fcntl", "fd", "keeper", "__weakref__")

    def __init__(self):
        import fcntl

        # At the exit of the interpreter it could not be imported any more.
        self.fcntl = fcntl
        self.fd = -1
        self.keeper = None
        _places.add(self)

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
            self.fcntl.flock(self.fd, self.fcntl.LOCK_EX)
        except OSError as exc:
            raise LockError(f"cannot lock directory {directory}: {exc.strerror}; lock=None writes without locks",
                            key=directory, errno=exc.errno) from exc

    def _keep(self, directory):
        try:
            if not self.is_at(directory):
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
            os.close(fd)

    __del__ = give_back


def _after_fork_in_child():
    """Close the copies of descriptors, or a lock of the parent would live as long as the child does."""
    for place in list(_places):
        # The file is the parent's.
        place.keeper = None
        fd, place.fd = place.fd, -1
        if fd >= 0:
            os.close(fd)


_places = weakref.WeakSet()
os.register_at_fork(after_in_child=_after_fork_in_child)
