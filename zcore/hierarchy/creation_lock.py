"""Locks of a directory in which a node is created or deleted, and of several documents at once."""
from __future__ import annotations

import contextlib
import errno
import os
import weakref
from _thread import get_ident
from functools import partial
from typing import TYPE_CHECKING

from zcore.descriptors import open_descriptor
from zcore.errors import LockError, NodeNotFoundError, StoreError
from zcore.kernel.io.files import TEMP_PREFIX
from zcore.kernel.io.object_locks import Held, locks_of
from zcore.stores.directory.store import DirectoryStore
from zcore.stores.keys import prefix_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from zcore.engine.options import Options
    from zcore.hierarchy.lookup import Standing
    from zcore.stores.base import Store

# If a new directory vanishes at once, another process pruned it, which cannot happen this often. Or the file system
# does not allow directories there, like /proc.
_MAX_TRIES = 100


def hold_place(store: Store, path: str, document: str, options: Options, *,
               is_kept: bool = False) -> contextlib.AbstractContextManager[Callable[[], bool]]:
    """Return a context manager that prevents others from creating or deleting a node at `path`.

    There is no document to lock yet, so the directory is locked by `flock`. A file in it prevents pruning meanwhile,
    like a lock file, unless a node that stays meanwhile does (`is_kept`). In a store without files, only the threads of
    this process are excluded.

    The value of the block is a function that tells whether the directory still has its name. A move of a group above
    does not wait for the locks below it.
    """
    return _Place(store, path, document, options, is_kept) if options.lock else contextlib.nullcontext(_always)


def is_held(store: Store, path: str) -> bool:
    """Return whether a node is being created or deleted at `path`: `hold_place` would wait, as far as files tell.

    Raises : StoreError, if the directory or its lock cannot be looked at.
    """
    import fcntl

    from zcore.stores.directory import lock_file

    directory = store.locks(path, "").directory
    if directory is None:
        return False
    place = os.path.join(directory, lock_file.PLACE)
    try:
        if os.path.isdir(place) and lock_file.left_over(place) is None:
            return True
        fd = open_descriptor(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(fd, fcntl.LOCK_UN)      # a fork may have copied the descriptor
        finally:
            os.close(fd)
    except BlockingIOError:
        return True
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as exc:
        raise StoreError(f"cannot tell whether {directory} is locked: {exc.strerror}", key=path,
                         errno=exc.errno) from exc
    return False


def _always():
    return True


class _Place(Held):
    """A locked directory, with a file in it that prevents pruning; see `hold_place`."""

    def __init__(self, store, path, document, options, is_kept):
        import fcntl

        # Kept, because it could not be imported any more when the interpreter exits.
        self.fcntl = fcntl
        self.store = store
        self.path = path
        self.directory = store.locks(path, document).directory
        self.is_kept = is_kept
        self.has_lock_file = options.lock == "file"
        self.thread = get_ident()
        self.fd = -1
        self.keeper = None
        self.hold = None
        _places[id(self)] = self

    def take(self):
        if self.directory is None:
            # Noted before it is held, as Ctrl-C may come between the two.
            self.hold = locks_of((id(self.store), self.path, "place")).whole()
            self.hold.__enter__()
            return _always
        hold = self._hold_lock_file if self.has_lock_file else self._lock_directory
        for _ in range(_MAX_TRIES):
            if (is_at := hold(self.directory)) is not None:
                return partial(is_at, self.directory)
            self.give_back(None)
        raise StoreError(f"cannot create {self.directory}: it, or a file in it, is gone as soon as it is made",
                         key=self.directory, errno=errno.ENOENT)

    def _hold_lock_file(self, directory):
        """Do the same as `_lock_directory`, with the lock file of the place."""
        self.store.make_directory(prefix_of(self.path))
        locks = self.store.file_locks(self.path, None)
        self.hold = locks.whole()
        try:
            self.hold.__enter__()
        except FileNotFoundError:
            return None
        return locks.file.is_at

    def _lock_directory(self, directory):
        """Make the directory if missing, and lock it. Return `is_at`, or None if it has lost its name meanwhile."""
        self.store.make_directory(prefix_of(self.path))
        try:
            self.fd = open_descriptor(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            # Pruned between the two.
            return None
        except OSError as exc:
            raise StoreError(f"cannot open {directory}: {exc.strerror}", key=directory, errno=exc.errno) from exc
        self._lock(directory)
        return self.is_at if self._keep(directory) else None

    def _lock(self, directory):
        try:
            if not self._is_locked():
                self._check_others(directory)
                self.fcntl.flock(self.fd, self.fcntl.LOCK_EX)
        except OSError as exc:
            if isinstance(exc, LockError):
                raise
            raise LockError(f"cannot lock directory {directory}: {exc.strerror}; lock='file' makes lock files, "
                            "lock=None writes without locks",
                            key=directory, errno=exc.errno) from exc

    def _is_locked(self):
        """Lock the directory unless another descriptor holds it; return whether this one holds it now."""
        try:
            self.fcntl.flock(self.fd, self.fcntl.LOCK_EX | self.fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _check_others(self, directory):
        """Raise LockError if this thread holds the directory in a call further up, for example in a signal handler."""
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
            if self.is_kept:
                return True
            # Noted before it is made, as a signal may come between the two. `dir_fd` follows a move of the directory.
            self.keeper = TEMP_PREFIX + os.urandom(8).hex()
            os.close(open_descriptor(self.keeper, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, dir_fd=self.fd))
            return True
        except FileNotFoundError:
            return False
        except OSError as exc:
            raise StoreError(f"cannot write in {directory}: {exc.strerror}", key=directory, errno=exc.errno) from exc

    def is_at(self, directory):
        """Return whether the held directory has this name."""
        try:
            return self._has_name(directory)
        except OSError as exc:
            raise StoreError(f"cannot look at {directory}: {exc.strerror}", key=directory, errno=exc.errno) from exc

    def _has_name(self, directory):
        try:
            return os.path.samestat(os.fstat(self.fd), os.stat(directory))
        except (FileNotFoundError, NotADirectoryError):
            return False

    def give_back(self, exception):
        # Called again if a signal handler raises in it. So a descriptor is forgotten right before its `close`, and no
        # Python function is called in between.
        if self.keeper is not None:
            try:
                os.unlink(self.keeper, dir_fd=self.fd)
            except OSError:
                # If the file stays, it is never listed, and is removed with other left-overs.
                pass
            self.keeper = None
        if self.fd >= 0:
            try:
                # Unlocked before it is closed: a fork may have copied the descriptor, and with it the lock.
                self.fcntl.flock(self.fd, self.fcntl.LOCK_UN)
            except OSError:
                pass
            try:
                fd, self.fd = self.fd, -1
                os.close(fd)
            except OSError:
                # Nothing was written to it, so nothing is lost.
                pass
        if self.hold is not None:
            self.hold.__exit__(None, None, None)
            self.hold = None


def hold_nodes(store: Store, nodes: Iterable[Standing], options: Options) -> contextlib.AbstractContextManager[object]:
    """Return a context manager that excludes all other writers from some nodes, a list of `lookup.Standing`.

    Raises : NodeNotFoundError, at the beginning of the block, if one of them was deleted.
    """
    return _Nodes(store, nodes, options) if options.lock else contextlib.nullcontext()


class _Nodes(Held):

    def __init__(self, store, nodes, options):
        self._store = store
        self._nodes = nodes
        self._options = options
        self._holds = []

    def take(self):
        for node in self._nodes:
            # Noted before it is held, as Ctrl-C may come between the two.
            hold = self._options.locks_of(self._store, node.path, node.document).whole()
            self._holds.append(hold)
            try:
                hold.__enter__()
            except FileNotFoundError as exc:
                raise NodeNotFoundError(f"the node at {self._store.describe(node.path)} is gone",
                                        path=node.path) from exc

    def give_back(self, exception):
        for hold in self._holds:
            hold.__exit__(None, None, None)


def hold_tree(store: Store, path: str, options: Options, *others: str,
              is_whole: bool = True) -> contextlib.AbstractContextManager[object]:
    """Return a context manager that prevents other threads from moving the groups above `path` and `others`.

    `is_whole`: what is below the paths is deleted or moved, so nothing is created or deleted there meanwhile. In a
    store with files, `hold_place` finds out about a move, and no call waits for another one far below.
    """
    if not options.lock or isinstance(store, DirectoryStore) or store.locks(path, "").directory is not None:
        return contextlib.nullcontext()
    paths = path, *others
    above = [one[:i] for one in paths for i, sign in enumerate(one) if sign == "/"]
    # All callers lock in this order. The names are those of no nodes.
    return _Trees([(store.locks(f"{one}/", ""), None if is_whole and one in paths else path)
                   for one in sorted({*above, *(paths if is_whole else ())})])


class _Trees(Held):

    def __init__(self, locks):
        self._locks = locks
        self._holds = []

    def take(self):
        for locks, key in self._locks:
            # Noted before it is held, as Ctrl-C may come between the two.
            self._holds.append(locks.whole() if key is None else locks.object(key))
            self._holds[-1].__enter__()

    def give_back(self, exception):
        for hold in self._holds:
            hold.__exit__(None, None, None)


def _after_fork_in_child():
    """Close the copies of descriptors; otherwise a lock of the parent would live as long as the child."""
    for place in _living():
        # The file belongs to the parent.
        place.keeper = None
        fd, place.fd = place.fd, -1
        if fd >= 0:
            os.close(fd)


def _living():
    # Copied in one step, since other threads and signal handlers add to them.
    return [place for ref in _places.valuerefs() if (place := ref()) is not None]


_places = weakref.WeakValueDictionary()
os.register_at_fork(after_in_child=_after_fork_in_child)
