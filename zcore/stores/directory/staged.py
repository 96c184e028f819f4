"""Puts a directory in the place of another one, or of nothing, in one step.

::

    .__zc_tmp.copy.<label>/   the container, in the directory of the place
        node.<n>/             the directory that is to get the name of the place
        old/<name>/           the one that had it, where the system cannot exchange two names in one step

<n> is the inode of the container. If a group above is moved, the container goes with it, and another call may make one
at the old path. So no call writes into the directories of another one.

Who builds locks the container. What a kill leaves is never listed, and any later caller may remove it, but for one
case, in which nothing has the name: then `recover` gives it to the new directory, which is whole if there is an old
one, or else back to the old one.
"""
from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from typing import TYPE_CHECKING

from zcore import config
from zcore.errors import FORKED, NodeExistsError, StoreError, ZcoreError
from zcore.kernel.io.documents import Descriptor
from zcore.kernel.io.files import exchange, write_out_below
from zcore.kernel.io.locks import Held
from zcore.replacing import keep, mode_for, sync_directory
from zcore.stores.directory import cleanup

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_TRIES = 100
_OLD = "old"
# Errors of a file system without locks, or without those of directories.
_NO_LOCKS = frozenset((errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF))
# Errors of a system, or file system, that cannot exchange names.
_NO_EXCHANGE = frozenset((errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP))


class StagedDirectory(Held):
    """A container. As a context manager it makes one, and removes it at the end with all that is left in it.

    Parameters
    ----------
    place : str
        The directory that is to be replaced or made, absolute.
    fsync : bool
        The new directory, with all in it, and its name are on the disk when `commit` returns.
    label : str, optional
        Of the container; by default a random one.

    Attributes
    ----------
    node : str
        The directory that gets the name. It is made by whoever fills it.
    """

    def __init__(self, place: str, fsync: bool = False, label: str | None = None) -> None:
        self.place: str = place
        self.container: str = container_of(place, label or os.urandom(8).hex())
        self._is_shared = label is not None
        self.node: str = ""
        self._fsync = fsync
        self._lock: Descriptor | None = None
        self._is_discarded = False
        self._owner = os.getpid()      # a child that is forked meanwhile leaves all to its parent

    def acquire(self) -> StagedDirectory:
        """Make and lock the container.

        Raises : StoreError, if that is impossible, or another process builds in it.
        """
        with faults("build", self.place):
            for _ in range(_MAX_TRIES):
                if self._make():
                    self.node = self.name_of("node")
                    return self
        raise StoreError(f"cannot build {self.place}: its container goes as soon as it is made; others delete it, or "
                         "this file system, such as that of /proc, takes no new names", key=self.place)

    def _make(self):
        try:
            # Nobody else sees more of the new directory than of the old one.
            os.makedirs(self.container, mode_for(_status_of(self.place), 0o777), exist_ok=True)
            self._lock = _locked(self.container, self._is_shared)
            _recover(self.container)
            if self.is_here():
                return True
        except BlockingIOError as exc:
            raise StoreError(f"{self.place} is being copied to by another process or thread", key=self.place,
                             errno=errno.EWOULDBLOCK) from exc
        except FileNotFoundError:
            pass     # another process has removed it meanwhile
        except FileExistsError:
            # It was there and is gone, or it is no directory.
            if os.path.lexists(self.container) and not os.path.isdir(self.container):
                raise
        self.leave()
        return False

    def name_of(self, what: str) -> str:
        """Return the path of a directory in the container that no other call uses."""
        return os.path.join(self.container, f"{what}.{os.fstat(self._lock.fd).st_ino}")

    def commit(self, replace: bool) -> None:
        """Give the directory `node` its name; if it was never made, take the name from the one that has it.

        Parameters
        ----------
        replace : bool
            Replace another directory, which is in the container then. They exchange their names in one step. If the
            system has no such step, there is a moment in which nothing has the name.

        Raises
        ------
        NodeExistsError
            Something has the name that is no empty directory, and `replace` is false.
        """
        if os.getpid() != self._owner:
            raise StoreError(FORKED, key=self.place)
        with faults("make", self.place):
            old = _status_of(self.place) if replace else None
            if old is not None and os.path.isdir(self.node):
                keep(self.node, os.stat(self.node), old)
                _keep_attributes(self.node, self.place)
            if (old is not None or self._fsync) and os.path.isdir(self.node):
                # After a power cut, the old directory is there until the new one is whole.
                write_out_below(self.node)
            try:
                if old is None or not self._replace():
                    self._rename()
            except OSError as exc:
                if exc.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                    raise NodeExistsError(f"there is something at {self.place} already", path=self.place) from exc
                raise
            if self._fsync:
                sync_directory(os.path.dirname(self.place))

    def _rename(self):
        """Give the directory the name, if that is free.

        No lock keeps others from moving a group above. So the name is relative to the container, whose path leads to
        it still: a move takes both along.
        """
        self._check_here()
        os.rename(os.path.basename(self.node), os.path.join(os.pardir, os.path.basename(self.place)),
                  src_dir_fd=self._lock.fd, dst_dir_fd=self._lock.fd)

    def _replace(self):
        """Replace what has the name; return False if nothing has it, or it is deleted meanwhile."""
        old = os.path.join(self.container, _OLD, os.path.basename(self.place))
        try:
            self._check_here()
            if os.path.isdir(self.node):
                try:
                    exchange(os.fsencode(self.node), os.fsencode(self.place))
                    return True
                except OSError as exc:
                    if exc.errno not in _NO_EXCHANGE:
                        raise
            os.mkdir(os.path.dirname(old))
            os.rename(self.place, old)
        except FileNotFoundError:
            return False
        if not os.path.isdir(self.node):
            return True
        try:
            os.rename(self.node, self.place)
        except BaseException:
            # If that fails as well, the next caller gives one of the two the name.
            with contextlib.suppress(OSError):
                os.rename(old, self.place)
            raise
        # Whoever deletes the new directory before this one is removed shall not get it back.
        os.rename(os.path.dirname(old), self.name_of("gone"))
        return True

    def is_here(self) -> bool:
        """Return whether the path of the container still leads to it.

        It does not if a directory above was moved or replaced. Files written since are in a new directory then.
        """
        try:
            if not self._is_discarded:
                self._check_here()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            pass     # it cannot be told
        return True

    def _check_here(self):
        """Raise FileNotFoundError if the container at the path is another one."""
        if not os.path.samestat(os.fstat(self._lock.fd), os.stat(self.container)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.container)

    def discard(self, state: str = "abandoned") -> None:
        """Remove the container, also if it was moved, where the system tells its path. Errors name the `state`."""
        is_here, self._is_discarded = self.is_here(), True
        with faults(f"remove the temporary files of the {state} change in", self.container):
            if is_here:
                cleanup.remove_directory(self.container)
            with contextlib.suppress(OSError):
                self._remove_moved()
            if not is_here:
                recover(self.container, removes=True)

    def _remove_moved(self):
        """Remove the container wherever a move of a group above has taken it, or takes it meanwhile."""
        for _ in range(_MAX_TRIES):
            if os.fstat(self._lock.fd).st_nlink == 0:
                return
            found = os.readlink(f"/proc/self/fd/{self._lock.fd}")
            cleanup.remove_directory(found)
            outer, is_inside, _ = os.path.dirname(found).rpartition(f"/{cleanup.FOLDER}")
            if is_inside:     # the group was deleted, and this container has kept its directory
                cleanup.prune(os.path.dirname(found), outer)

    def name_place(self, exception: BaseException | None) -> None:
        """Have an error of the work name the place, which its caller knows."""
        if isinstance(exception, ZcoreError):
            exception.place = (exception.place or self.node).replace(self.node, self.place)

    def leave(self) -> None:
        """Unlock the container, which stays."""
        if self._lock is not None:
            if os.getpid() == self._owner:
                unlock(self._lock)
            self._lock = None

    def release(self, exception: BaseException | None) -> None:
        self.name_place(exception)
        if self._lock is not None and not self._is_discarded and os.getpid() == self._owner:
            with contextlib.nullcontext() if exception is None else contextlib.suppress(StoreError):
                self.discard("abandoned" if exception else "completed")
        self.leave()


def container_of(place: str, label: str) -> str:
    """Return the path of a container for a place."""
    return os.path.join(os.path.dirname(place), cleanup.FOLDER + label)


def is_alive(container: str) -> bool:
    """Return whether somebody builds in a container, which is locked then."""
    try:
        unlock(_locked(container))
    except OSError as exc:
        return isinstance(exc, BlockingIOError)
    return False


def recover(container: str, *, removes: bool = False) -> str | None:
    """Give a name back that a kill has left without a directory; with `removes`, remove what else a kill has left.

    Returns : the path of the directory that has got its name; None as a rule.

    Raises : StoreError, if something could not be renamed or removed.
    """
    with faults("clean up after an earlier change in", container):
        try:
            lock = _locked(container)
        except (BlockingIOError, FileNotFoundError, NotADirectoryError):
            # Another process is at work, or there is nothing. Nobody builds behind a link.
            if removes and os.path.islink(container):
                os.unlink(container)
            return None
        try:
            recovered = _recover(container)
            if removes and os.path.samestat(os.fstat(lock.fd), os.stat(container)):
                cleanup.remove_directory(container)
            return recovered
        except FileNotFoundError:
            return None     # removed meanwhile
        finally:
            unlock(lock)


def _recover(container):
    """Do what `recover` does for a container that is locked; return the place, or None."""
    recovered, old = None, os.path.join(container, _OLD)
    for name in _entries(old):
        place = os.path.join(os.path.dirname(container), name)
        if not os.path.lexists(place):
            whole = [entry for entry in _entries(container) if entry.startswith("node.")]
            os.rename(os.path.join(container, *(whole or (_OLD, name))), place)
            sync_directory(os.path.dirname(place))
            recovered = place
    if os.path.lexists(old):
        cleanup.remove_directory(old)     # old directories that new ones have replaced
    return recovered


def _entries(directory):
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []


def _locked(container, is_shared=True):
    """Return a descriptor of a container that holds its lock.

    Where the file system has no locks, it is not locked. If other calls use the same container, that is an error with
    `zcore.config.lock` "on"; else the caller makes one copy to a place at a time.

    Raises : BlockingIOError, if somebody builds in it; FileNotFoundError.
    """
    lock = Descriptor(container, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        if isinstance(exc, BlockingIOError) or (is_shared and (config.lock == "on" or exc.errno not in _NO_LOCKS)):
            raise
    return lock


def unlock(lock: Descriptor) -> None:
    """Unlock and close a directory. A fork may have copied the descriptor, and with it the lock."""
    with contextlib.suppress(OSError):
        if lock.fd >= 0:
            fcntl.flock(lock.fd, fcntl.LOCK_UN)
    with contextlib.suppress(OSError):
        lock.close()     # nothing was written to it


def _keep_attributes(new, old):
    """Give a directory the extended attributes of another one, such as lists of rights, as far as that is allowed."""
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for name in os.listxattr(old):
                with contextlib.suppress(OSError):
                    os.setxattr(new, name, os.getxattr(old, name))


def _status_of(directory):
    """Return the status of a directory, or None if there is none."""
    try:
        return os.stat(directory)
    except (FileNotFoundError, NotADirectoryError):
        return None


@contextlib.contextmanager
def faults(action: str, place: str, *passed: type[OSError]) -> Iterator[None]:
    """Return a context manager in which an error of the system becomes a `StoreError`, unless it is one of `passed`."""
    try:
        yield
    except OSError as exc:
        if isinstance(exc, (StoreError, NodeExistsError, *passed)):
            raise
        raise StoreError(f"cannot {action} {place}: {exc.strerror or exc}", key=place, errno=exc.errno) from exc
