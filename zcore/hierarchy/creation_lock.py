"""Locks of a directory in which a node is created or deleted, and of several documents at once."""
from __future__ import annotations

import contextlib
import errno
import os
import weakref
from _thread import get_ident
from functools import partial
from time import sleep
from typing import TYPE_CHECKING

from zcore.descriptors import open_descriptor
from zcore.errors import LockError, NodeNotFoundError, StoreError
from zcore.kernel.io.documents import Descriptor
from zcore.kernel.io.files import TEMP_PREFIX
from zcore.kernel.io.object_locks import Held, locks_of
from zcore.stores.directory.store import DirectoryStore
from zcore.stores.keys import prefix_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from zcore.engine.options import Options
    from zcore.hierarchy.lookup import Standing
    from zcore.stores.base import Store

# If a new directory vanishes at once, another process pruned it, which cannot happen this often. Or the file system
# does not allow directories there, like /proc.
_MAX_TRIES = 100
# Seconds between two tries to take a lock that another call holds.
_FIRST_PAUSE, _LAST_PAUSE = 0.0002, 0.01
# A file in a directory that is locked as a whole by the calls that wait for the directory as a whole, one by one.
_TURNSTILE = TEMP_PREFIX + "turn"


def hold_place(store: Store, path: str, document: str, options: Options, *, is_kept: bool = False, makes: bool = True,
               below: str | None = None,
               beside: str = "") -> contextlib.AbstractContextManager[Callable[[], bool] | None]:
    """Return a context manager that prevents others from creating, deleting or moving a node at `path`.

    There is no document to lock yet, so the directory is locked by `flock`. The directories above are locked, too, but
    shared. So no group above is created, deleted or moved meanwhile, and nodes beside this one are. A file in the
    directory prevents pruning, like a lock file. In a store without files, only the threads of this process are
    excluded from `path` itself, and `hold_tree` does the rest.

    The value of the block is a function that tells whether the directory still has its name. It has not if a program
    without these locks, or one on another host that uses lock files, has moved it or a group above.

    Parameters
    ----------
    store : Store
    path : str
    document : str
    options : Options
    is_kept : bool
        A node that stays meanwhile prevents pruning.
    makes : bool
        Make the directory. Otherwise the value of the block is None if a directory is missing.
    below : str, optional
        A path above, if the caller holds the place there.
    beside : str, optional
        Another path, of which the directories above are locked in the same way.
    """
    if not options.lock:
        return contextlib.nullcontext(_always)
    return _Place(store, (path,), document, options, is_kept, makes, below, beside)


@contextlib.contextmanager
def hold_places(store: Store, paths: Sequence[str], options: Options) -> Iterator[None]:
    """Return a context manager that holds several places, each of which is below the one before."""
    with contextlib.ExitStack() as held:
        if options.lock and store.locks("", "").directory is not None:
            # At once, as one of them may be a link to another one.
            held.enter_context(_Place(store, paths, "", options))
        else:
            # `hold_place` knows nothing of the places above, so all callers lock the deepest one first.
            for path in reversed(paths):
                held.enter_context(hold_place(store, path, "", options))
        yield


def is_held(store: Store, path: str, *, by_files: bool = False) -> bool:
    """Return whether a node is being created or deleted at `path`: `hold_place` would wait, as far as files tell.

    `by_files`: the file system may have no other locks than lock files.

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
        if by_files:
            return False
        raise StoreError(f"cannot tell whether {directory} is locked: {exc.strerror}", key=path,
                         errno=exc.errno) from exc
    return False


def _always():
    return True


class _Place(Held):
    """A locked directory, with a file in it that prevents pruning, and those above it; see `hold_place`.

    `paths`: all that are locked as a whole, each below the one before. The last one has the file.
    """

    def __init__(self, store, paths, document, options, is_kept=False, makes=True, below=None, beside=""):
        import fcntl

        # Kept, because it could not be imported any more when the interpreter exits.
        self.fcntl = fcntl
        self.store = store
        self.path = path = paths[-1]
        self.directory = store.locks(path, document).directory
        self.is_kept = is_kept
        self.makes = makes
        self.has_lock_file = options.lock == "file"
        above = set(_above(path, below)).union(_above(beside))
        # All calls lock in this order, a directory before those below it.
        self.order = sorted([*[(one, fcntl.LOCK_EX) for one in paths],
                             *[(one, fcntl.LOCK_SH) for one in above.difference(paths)]])
        self.follows = False
        self.ends = (path, beside.rpartition("/")[0]) if beside else (path,)
        self.thread = get_ident()
        self.held = {}
        self.turnstile = None
        self.keeper = None
        self.holds = []
        _places[id(self)] = self

    def take(self):
        if self.directory is None:
            # Noted before it is held, as Ctrl-C may come between the two.
            self.holds.append(locks_of((id(self.store), self.path, "place")).whole())
            self.holds[-1].__enter__()
            return _always
        for _ in range(_MAX_TRIES):
            try:
                if (is_here := self._lock_all()) is not None:
                    return is_here
            except (FileNotFoundError, NotADirectoryError):
                # Pruned or moved since it was made.
                if not self.makes:
                    return None
            self.give_back(None)
            if self.follows:
                self._sort()
        raise StoreError(f"cannot create {self.directory}: it, or a file in it, is gone as soon as it is made",
                         key=self.directory, errno=errno.ENOENT)

    def _lock_all(self):
        """Make the directory if missing, and lock it and those above. Return None if it has lost its name meanwhile.

        Raises : FileNotFoundError, NotADirectoryError, if a directory is missing.
        """
        if self.makes:
            self.store.make_directory(prefix_of(self.path))
        for path, kind in self.order:
            if not self._open(path, kind) or path in self.held and not self._lock(path, kind):
                return None
        # Each directory was found in one that is locked, so no other one has lost its name if the last has not. A link
        # may lead elsewhere by now.
        if not all([self._has_name(path) for path in (self.held if self.follows else self.ends) if path in self.held]):
            return None
        if self.has_lock_file:
            # Processes cannot share it, so only directories that are locked as a whole are kept from
            # other hosts.
            wholes = [path for path, kind in self.order if kind == self.fcntl.LOCK_EX]
            for i, path in enumerate(wholes):
                if not any([_is_same(self.held[path], self.held[one]) for one in wholes[:i]]):
                    locks = self.store.file_locks(path, None)
                    self.holds.append(locks.whole())
                    self.holds[-1].__enter__()
            return partial(locks.file.is_at, self.directory)
        self._keep()
        return partial(self._has_name, self.path)

    def _directory_of(self, path):
        return os.path.join(self.directory.removesuffix(self.path), path)

    def _sort(self):
        """Sort by the places of the directories, as one of them is a link: another call may know them by other names.

        Else two calls that each go through a link to a group of the other one could wait for each other. A directory
        that has two names here is locked once, as a whole if it is to be locked so by one of them.
        """
        self.order.sort(key=lambda one: (os.path.realpath(self._directory_of(one[0])), -one[1]))

    def _open(self, path, kind):
        """Open a directory; return False, and note it, if it is the first one that is found to be a link."""
        above, _, name = path.rpartition("/")
        directory, dir_fd = self._directory_of(path), None
        if path and above in self.held and not self.follows:
            where, dir_fd = name, self.held[above].fd
        else:
            where = directory
        # The store's own directory may be a link.
        no_link = os.O_NOFOLLOW if path and not self.follows else 0
        try:
            self.held[path] = Descriptor(where, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | no_link, dir_fd=dir_fd)
        except OSError as exc:
            if no_link and os.path.islink(directory):
                self.follows = True
                return False
            if isinstance(exc, (FileNotFoundError, NotADirectoryError)):
                raise
            # A directory above may be one that only leads to this one.
            if kind == self.fcntl.LOCK_EX or exc.errno != errno.EACCES:
                raise StoreError(f"cannot open {directory}: {exc.strerror}", key=directory, errno=exc.errno) from exc
        return True

    def _lock(self, path, kind):
        """Lock a directory that is open; return False if one of them has lost its name while it was waited for."""
        if self.follows and self._is_open(path):
            return True     # a call that waits for the directory as a whole would wait for this one at its turnstile
        try:
            # One that a killed call has left is removed by the next call that locks the directory as a whole.
            if not self._pass_turnstile(path, kind):
                return False
            if kind == self.fcntl.LOCK_SH:
                self._leave_turnstile()
            if not self._is_locked(path, kind) and not self._is_open(path):
                if self._is_held_further_up(path):
                    directory = self._directory_of(path)
                    raise LockError(f"this thread holds the lock of the directory {directory} already, in a call that "
                                    "has not ended: a signal handler, or other code that runs inside that call, would "
                                    "wait for ever", key=directory, errno=errno.EDEADLK)
                if kind == self.fcntl.LOCK_EX and self.turnstile is None and not self._pass_turnstile(
                        path, kind, os.O_CREAT):
                    return False
                if not self._wait(self.held[path], kind):
                    return False
            self._leave_turnstile()
        except OSError as exc:
            if isinstance(exc, LockError):
                raise
            if self.has_lock_file:
                return True     # lock files are for file systems that have no other locks
            directory = self._directory_of(path)
            raise LockError(f"cannot lock directory {directory}: {exc.strerror}; lock='file' makes lock files, "
                            "lock=None writes without locks",
                            key=directory, errno=exc.errno) from exc
        return True

    def _wait(self, descriptor, kind):
        """Lock a file; return False if a directory that is held, or waited for, has lost its name meanwhile.

        Not in the system: another call may move the directory that is waited for. Then this one would hold directories
        that come after it in the order of all calls, and two calls could wait for each other.
        """
        pause = _FIRST_PAUSE
        while True:
            try:
                self.fcntl.flock(descriptor.fd, kind | self.fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                pass
            if not all([self._has_name(path) for path in self.held]):
                return False
            sleep(pause)
            pause = min(2 * pause, _LAST_PAUSE)

    def _is_locked(self, path, kind):
        """Lock a directory unless another descriptor is in the way; return whether this one holds it now."""
        try:
            self.fcntl.flock(self.held[path].fd, kind | self.fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _is_open(self, path):
        """Return whether a directory is one of those above: the path leads through a link to it."""
        return any([_is_same(descriptor, self.held[path]) for one, descriptor in self.held.items() if one != path])

    def _is_held_further_up(self, path):
        """Return whether this thread holds a directory in a call further up, for example in a signal handler."""
        return any([_is_same(place.held.get(one), self.held[path]) and place._is_locked(one, kind)
                    for place in self._further_up() for one, kind in place.order])

    def _further_up(self):
        return [place for place in _living() if place is not self and place.thread == self.thread]

    def _pass_turnstile(self, path, kind, make=0):
        """Wait for calls that want the directory as a whole and came earlier. The system would let others go first.

        Those calls make the file and hold it while they wait, so as a rule there is none.

        Returns : False, if a directory has lost its name meanwhile; see `_wait`.
        """
        for _ in range(_MAX_TRIES):
            try:
                # A FIFO would wait for a writer.
                self.turnstile = Descriptor(_TURNSTILE, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | make,
                                            dir_fd=self.held[path].fd)
            except OSError:
                return True
            # A call further up would wait for this one.
            if self._is_held_further_up(path) or any([_is_same(place.turnstile, self.turnstile)
                                                      for place in self._further_up()]):
                return True
            if not self._wait(self.turnstile, kind):
                return False
            # The call that had it has removed it, and no other call would find it.
            if kind == self.fcntl.LOCK_SH or self._is_turnstile(path):
                return True
            self._close(self.turnstile)
            self.turnstile = None
        return True

    def _is_turnstile(self, path):
        try:
            return os.path.samestat(os.fstat(self.turnstile.fd), os.stat(_TURNSTILE, dir_fd=self.held[path].fd))
        except OSError:
            return False

    def _leave_turnstile(self):
        # Called again if a signal handler raises in it.
        if self.turnstile is None:
            return
        try:
            for path, kind in self.order:
                if kind == self.fcntl.LOCK_EX and path in self.held and self._is_turnstile(path):
                    os.unlink(_TURNSTILE, dir_fd=self.held[path].fd)
        except OSError:
            pass
        self._close(self.turnstile)
        self.turnstile = None

    def _keep(self):
        if self.is_kept:
            return
        # Noted before it is made, as a signal may come between the two. `dir_fd` follows a move of the directory.
        self.keeper = TEMP_PREFIX + os.urandom(8).hex()
        try:
            os.close(open_descriptor(self.keeper, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC,
                                     dir_fd=self.held[self.path].fd))
        except FileNotFoundError:
            raise
        except OSError as exc:
            raise StoreError(f"cannot write in {self.directory}: {exc.strerror}", key=self.directory,
                             errno=exc.errno) from exc

    def _has_name(self, path):
        directory = self._directory_of(path)
        try:
            return os.path.samestat(os.fstat(self.held[path].fd), os.stat(directory))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as exc:
            raise StoreError(f"cannot look at {directory}: {exc.strerror}", key=directory, errno=exc.errno) from exc

    def give_back(self, exception):
        # Called again if a signal handler raises in it.
        self._leave_turnstile()
        if self.keeper is not None:
            try:
                os.unlink(self.keeper, dir_fd=self.held[self.path].fd)
            except OSError:
                # If the file stays, it is never listed, and is removed with other left-overs.
                pass
            self.keeper = None
        while self.held:
            path = next(reversed(self.held))
            self._close(self.held[path])
            del self.held[path]
        while self.holds:
            self.holds[-1].__exit__(None, None, None)
            self.holds.pop()

    def _close(self, descriptor):
        try:
            if descriptor.fd >= 0:
                # Unlocked before it is closed: a fork may have copied the descriptor, and with it the lock.
                self.fcntl.flock(descriptor.fd, self.fcntl.LOCK_UN)
        except OSError:
            pass
        try:
            descriptor.close()
        except OSError:
            # Nothing was written to it, so nothing is lost.
            pass


def _is_same(a, b):
    """Return whether two descriptors, or None, are open and of one file."""
    return None not in (a, b) and a.fd >= 0 and b.fd >= 0 and os.path.sameopenfile(a.fd, b.fd)


def _above(path, below=None):
    """Return the paths above a path; of these only those below the path `below`, if it is given."""
    found = [""] if path and below is None else []
    end = path.find("/", len(below) + 1 if below else 0)
    while end >= 0:
        found.append(path[:end])
        end = path.find("/", end + 1)
    return found


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
    above = [above for one in paths for above in _above(one) if above]
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
        copies = [*place.held.values(), place.turnstile]
        place.held, place.turnstile = {}, None
        for descriptor in copies:
            if descriptor is not None:
                descriptor.close()


def _living():
    # Copied in one step, since other threads and signal handlers add to them.
    return [place for ref in _places.valuerefs() if (place := ref()) is not None]


_places = weakref.WeakValueDictionary()
os.register_at_fork(after_in_child=_after_fork_in_child)
