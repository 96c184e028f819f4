"""Locks of the place of one node, of several documents, and of the groups of a store without files."""
from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import weakref
from _thread import get_ident
from time import sleep
from typing import TYPE_CHECKING

from zcore.descriptors import open_descriptor
from zcore.errors import LockError, NodeNotFoundError, StoreError
from zcore.kernel.io.documents import Descriptor
from zcore.kernel.io.files import TEMP_PREFIX
from zcore.kernel.io.locks import Held, has_name, locks_of
from zcore.stores.base import Folders
from zcore.stores.directory.staged import faults, unlock
from zcore.stores.keys import above, prefix_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zcore.engine.options import Options
    from zcore.hierarchy.lookup import FoundDocument
    from zcore.stores.base import Store

# If a new directory vanishes at once, another process pruned it, which cannot happen this often. Or the file system
# does not allow directories there, like /proc.
MAX_TRIES = 100
# Seconds between two tries to take a lock that another call holds.
_FIRST_PAUSE, _LAST_PAUSE = 0.0002, 0.01


class Place(Held):
    """Context manager that prevents others from creating, deleting or moving a node at `path`.

    There is no document to lock yet, so the directory is locked by `flock`. A file in it prevents pruning, like a lock
    file. Calls above and below do not wait for this one. A call that moves or deletes a group above takes the directory
    along; so everything is written relative to `dir_fd`, and `is_here` tells whether the directory still has its name.

    In a store without files, only the threads of this process are excluded from `path` itself, and `hold_tree` does the
    rest. Without locks nothing is held.

    Parameters
    ----------
    store : Store
    path : str
    document : str
    options : Options
    is_kept : bool
        A node that stays meanwhile prevents pruning.
    makes : bool
        Make the directory. Otherwise the value of the block is None if it is missing.
    """

    def __init__(self, store: Store, path: str, document: str, options: Options, *, is_kept: bool = False,
                 makes: bool = True) -> None:
        self._store = store
        self._path = path
        self._directory = store.locks(path, document).directory if options.lock else None
        self._is_locked = bool(options.lock)
        self._has_lock_file = options.lock == "file"
        self._is_kept = is_kept
        self._makes = makes
        self._thread = get_ident()
        self._held = self._keeper = self._hold = None
        _places[id(self)] = self

    def acquire(self) -> Place | None:
        if self._directory is None:
            if self._is_locked:
                # Noted before it is held, as Ctrl-C may come between the two.
                self._hold = locks_of((id(self._store), self._path, "place")).whole()
                self._hold.__enter__()
            return self
        for _ in range(MAX_TRIES):
            try:
                if self._makes:
                    self._store.folders.make_directory(prefix_of(self._path))
                if self._lock():
                    return self
            except (FileNotFoundError, NotADirectoryError):
                # Pruned or moved since it was made.
                if not self._makes:
                    return None
            self.release(None)
        raise StoreError(f"cannot create {self._directory}: it, or a file in it, is gone as soon as it is made; "
                         "others delete it, or this file system, such as that of /proc, takes no new names",
                         key=self._directory, errno=errno.ENOENT)

    def _lock(self):
        """Open and lock the directory; return False if it has lost its name meanwhile."""
        with faults("open", self._directory, FileNotFoundError, NotADirectoryError):
            self._held = Descriptor(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            is_locked = self._wait()
        except OSError as exc:
            if isinstance(exc, LockError):
                raise
            is_locked = self._has_lock_file     # lock files are for file systems that have no other locks
            if not is_locked:
                raise LockError(f"cannot lock directory {self._directory}: {exc.strerror}; lock='file' makes lock "
                                "files, lock=None writes without locks", key=self._directory, errno=exc.errno) from exc
        if not is_locked or not self.is_here():
            return False
        if self._has_lock_file:
            self._hold = self._store.locks(self._path, None, by_files=True).whole()
            self._hold.__enter__()
            return self.is_here()
        self._keep()
        return True

    def _wait(self):
        """Lock the directory; return False if it has lost its name meanwhile."""
        pause = _FIRST_PAUSE
        while True:
            try:
                fcntl.flock(self._held.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                pass
            if self._is_held_further_up():
                raise LockError(f"this thread holds the lock of the directory {self._directory} already, in a call "
                                "that has not ended: a signal handler, or other code that runs inside that call, "
                                "would wait for ever", key=self._directory, errno=errno.EDEADLK)
            if not self.is_here():
                return False
            sleep(pause)
            pause = min(2 * pause, _LAST_PAUSE)

    def _is_held_further_up(self):
        """Return whether this thread holds the directory in a call further up, for example in a signal handler."""
        return any([place is not self and place._thread == self._thread and place._held is not None
                    and place._held.fd >= 0 and os.path.sameopenfile(place._held.fd, self._held.fd)
                    for place in _living()])

    def _keep(self):
        if self._is_kept:
            return
        # Noted before it is made, as a signal may come between the two.
        self._keeper = TEMP_PREFIX + os.urandom(8).hex()
        with faults("write in", self._directory, FileNotFoundError):
            os.close(open_descriptor(self._keeper, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC,
                                     dir_fd=self._held.fd))

    @property
    def dir_fd(self) -> int:
        """Descriptor of the directory; -1 in a store without files, and without locks."""
        return -1 if self._held is None else self._held.fd

    def set(self, name: str, value: bytes) -> None:
        """Set a value beside the document of the node, wherever a move has taken the directory."""
        key = prefix_of(self._path) + name
        if self._held is None:
            self._store.set(key, value)
        else:
            self._store.folders.set_at(self._held.fd, key, value)

    def is_here(self) -> bool:
        """Return whether the directory still has its name."""
        return self._held is None or has_name(self._held.fd, self._directory)

    def release(self, exception: BaseException | None) -> None:
        # Called again if a signal handler raises in it.
        if self._keeper is not None:
            # If the file stays, it is never listed, and is removed with other left-overs.
            with contextlib.suppress(OSError):
                os.unlink(self._keeper, dir_fd=self._held.fd)
            self._keeper = None
        if self._held is not None:
            unlock(self._held)
            self._held = None
        if self._hold is not None:
            self._hold.__exit__(None, None, None)
            self._hold = None


def is_held(store: Store, path: str, *, by_files: bool = False) -> bool:
    """Return whether a node is being created or deleted at `path`: `Place` would wait, as far as files tell.

    `by_files`: the file system may have no other locks than lock files.

    Raises : StoreError, if the directory or its lock cannot be looked at.
    """
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
        if by_files:
            return False
        raise StoreError(f"cannot tell whether {directory} is locked: {exc.strerror}", key=path,
                         errno=exc.errno) from exc
    return False


def hold_nodes(store: Store, nodes: Iterable[FoundDocument],
               options: Options) -> contextlib.AbstractContextManager[object]:
    """Return a context manager that excludes all other writers from some nodes.

    Raises : NodeNotFoundError, at the beginning of the block, if one of them was deleted.
    """
    if not options.lock:
        return contextlib.nullcontext()
    return _Several(store, [(node.path, options.locks_of(store, node.path, node.document).whole()) for node in nodes])


class _Several(Held):
    """Context manager that holds several locks, a list of (path, hold)."""

    def __init__(self, store, holds):
        self._store = store
        self._holds = holds

    def acquire(self):
        for path, hold in self._holds:
            try:
                hold.__enter__()
            except FileNotFoundError as exc:
                raise NodeNotFoundError(f"the node at {self._store.describe(path)} is gone", path=path) from exc

    def release(self, exception):
        for _, hold in self._holds:
            hold.__exit__(None, None, None)     # does nothing if it is not held


def hold_tree(store: Store, path: str, options: Options, *others: str,
              is_whole: bool = True) -> contextlib.AbstractContextManager[object]:
    """Return a context manager that prevents other threads from moving the groups above `path` and `others`.

    `is_whole`: what is below the paths is deleted or moved, so nothing is created or deleted there meanwhile. In a
    store with files, `Place` finds out about a move, and no call waits for another one far below.
    """
    if not options.lock or isinstance(store, Folders):
        return _NOTHING
    paths = path, *others
    groups = {name for one in paths for name in above(one) if name}
    # All callers lock in this order. The names are those of no nodes.
    locks = [(one, store.locks(f"{one}/", "")) for one in sorted({*groups, *(paths if is_whole else ())})]
    return _Several(store, [(one, lock.whole() if is_whole and one in paths else lock.object(path))
                            for one, lock in locks])


def _after_fork_in_child():
    """Close the copies of descriptors; otherwise a lock of the parent would live as long as the child."""
    for place in _living():
        # The file belongs to the parent.
        place._keeper = None
        held, place._held = place._held, None
        if held is not None:
            held.close()


def _living():
    # Copied in one step, since other threads and signal handlers add to them.
    return [place for ref in _places.valuerefs() if (place := ref()) is not None]


_NOTHING = contextlib.nullcontext()
_places = weakref.WeakValueDictionary()
os.register_at_fork(after_in_child=_after_fork_in_child)
