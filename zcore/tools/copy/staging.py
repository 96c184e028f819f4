"""Builds a directory under a hidden name beside its own, so that it appears whole.

::

    .__zc_tmp.copy.<name>/      the container
        journal      what is copied and how, a line of JSON, then a line for each piece of work that is done
        node.<n>/    the directory that is to become <name>
        between.<n>/ an array between two passes
        old.<hex>/   the directory that had the name, where the system cannot exchange two names in one step

<n> is the inode of the journal. If a group above is moved, the container goes with it, and another copy may make one at
the old path. Then the first copy makes its own directories there. So it writes nothing into those of the other one, and
fails in the end.

The builder locks the journal. If its process is killed, all of this stays. The next one that copies the same source in
the same way to the same place goes on with it; any other begins anew. Such names are no keys: no listing of a store
shows them.

Before the name changes hands, the journal names the finished node by its inode. (Devices may get other numbers when the
machine starts again.) So `settle` can tell what a kill has left, and no cleaning removes the only one of two:

==============  =====================  ===============================================
<name> is       in the container       then
==============  =====================  ===============================================
missing         that very node         the copy was whole, and gets its name
missing         no such node, ``old``  ``old`` gets its name back
there           no such node           the copy had got its name: the rest is removed
anything else                          the copy was not finished
==============  =====================  ===============================================

An empty journal says that nothing here is needed: the container is new, or is being removed.
"""
from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import math
import os
from typing import TYPE_CHECKING

from zcore import config
from zcore.descriptors import open_descriptor
from zcore.errors import NodeExistsError, StoreError
from zcore.kernel.io.files import exchange
from zcore.replacing import keep, mode_for, sync_directory
from zcore.stores.directory import cleanup

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_MAX_NAME = 200     # bytes; file systems take 255
_MAX_TRIES = 100
_JOURNAL = "journal"
_WHOLE = b"whole "  # begins the line that names the finished node
_OLD = "old."
# Errors of a file system without locks.
_NO_LOCKS = frozenset((errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP))
# Errors of a system, or file system, that cannot exchange names.
_NO_EXCHANGE = frozenset((errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP))


def container_of(place: str) -> str:
    """Return the directory in which a copy to the directory `place` is built."""
    parent, name = os.path.split(place)
    if len(os.fsencode(name)) > _MAX_NAME:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    return os.path.join(parent, cleanup.FOLDER + name)


def is_alive(directory: str) -> bool:
    """Return whether a process is building in a container: then its journal is locked."""
    try:
        os.close(_locked(directory))
    except OSError as exc:
        return isinstance(exc, BlockingIOError)
    return False


def settle(container: str, place: str | None = None, *, removes: bool = False) -> str | None:
    """Finish or clean up after a copy that was killed, as the table above says.

    Parameters
    ----------
    container : str
        It may be missing.
    place : str, optional
        The destination of the copy, if it is known.
    removes : bool
        Also remove a copy that was not finished.

    Returns
    -------
    str or None
        The place, if a directory has got its name there.

    Raises
    ------
    StoreError
        Something could not be renamed or removed.
    """
    with _told("clean up after an earlier copy in", container):
        try:
            fd = _locked(container)
        except BlockingIOError:
            return None     # another process is at work
        except (FileNotFoundError, NotADirectoryError):
            fd = _locked_anew(container) if removes else None
            if fd is None:
                return None
        try:
            try:
                found = _Found(container, place, fd)
            except FileNotFoundError:
                return None     # another process has finished it between the two
            settled = found.settle()
            if removes and os.path.isdir(container) and not found.is_needed():
                _remove(container, fd)
            return settled
        finally:
            os.close(fd)


def _locked(container, flags=0):
    """Return a descriptor of the journal that holds its lock.

    Where the file system has no locks, and `zcore.config.lock` is not "on", the journal is not locked. Then the caller
    makes one copy to a place at a time.

    Raises : BlockingIOError, if a process is building; FileNotFoundError.
    """
    fd = open_descriptor(os.path.join(container, _JOURNAL), os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | flags)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException as exc:
        if config.lock == "on" or getattr(exc, "errno", None) not in _NO_LOCKS:
            os.close(fd)
            raise
    return fd


def _locked_anew(container):
    """Remove a container without a journal; if it is not empty, return a descriptor of a new journal, which is locked.

    Returns None if the container is gone, or if another process has begun to build in it meanwhile.
    """
    try:
        if os.path.islink(container):
            cleanup.remove_directory(container)     # a link itself; no copy builds behind it
        else:
            os.rmdir(container)
        return None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        if exc.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    try:
        return _locked(container, os.O_CREAT)
    except (FileNotFoundError, BlockingIOError):
        return None


def _named_for(container, what, fd):
    """Return the path of what the builder with the journal `fd` has in a container."""
    return os.path.join(container, f"{what}.{os.fstat(fd).st_ino}")


def _remove(container, fd):
    """Remove a container, of which `fd` is the journal."""
    # The lines first: a kill in between leaves only a part of the container.
    os.ftruncate(fd, 0)
    # The name of the journal last: as long as it is there, its lock keeps other copies from building here.
    journal = os.path.join(container, _JOURNAL)
    with contextlib.suppress(FileNotFoundError):
        if not os.path.samestat(os.fstat(fd), os.stat(journal)):
            return     # removed before, and the next copy has begun
        for name in os.listdir(container):
            path = os.path.join(container, name)
            if os.path.isdir(path):
                cleanup.remove_directory(path)
            elif path != journal:
                os.unlink(path)
        os.unlink(journal)
        try:
            os.rmdir(container)
        except OSError as exc:
            if exc.errno not in (errno.ENOTEMPTY, errno.EEXIST):     # the next copy has begun
                raise


class _Found:
    """The content of a container. `fd` is its journal, which is locked."""

    def __init__(self, container, place, fd):
        self._container = container
        self._fd = fd
        self._node = _named_for(container, "node", fd)
        os.stat(os.path.join(container, _JOURNAL))      # raises if another process has removed it since it was opened
        self.lines = _content(fd).split(b"\n")
        self._inode = None
        self._replaces = False
        for line in self.lines[:-1]:
            if line.startswith(_WHOLE):
                with contextlib.suppress(ValueError, KeyError, TypeError):    # not written to its end
                    said = json.loads(line[len(_WHOLE):])
                    self._inode = int(said["inode"])
                    self._replaces = bool(said.get("replaces"))
                    place = os.path.join(os.path.dirname(container), os.fsdecode(bytes.fromhex(said["name"])))
        name = os.path.basename(container)[len(cleanup.FOLDER):]
        if place is None and len(name) != hashlib.sha256().digest_size * 2:
            place = os.path.join(os.path.dirname(container), name)
        self._place = place      # None: its name was too long to be that of the container as well

    @property
    def is_over(self):
        """Whether the copy has got its name, so that only left-overs are here."""
        return self._inode is not None and _inode_of(self._node) != self._inode

    def _old(self):
        names = [os.path.join(self._container, name) for name in os.listdir(self._container) if name.startswith(_OLD)]
        return max(names, key=lambda path: os.lstat(path).st_ctime_ns, default=None)

    def _successor(self):
        """Return the directory that is to get the name, which is free now; or None."""
        old = self._old()
        if self._inode is None:
            return old
        # The node that had the name, the new one or the old one, was removed since.
        if self.is_over or (self._replaces and old is None):
            return None
        return self._node

    def is_needed(self):
        """Return whether the old node is here and nowhere else."""
        return (len(self.lines) > 1 and self._old() is not None and not self.is_over
                and (self._place is None or _inode_of(self._place) is None))

    def settle(self):
        """Give the name to a directory here if it is free, and remove left-overs of a finished copy; see `settle`."""
        settled = None
        if len(self.lines) > 1 and self._place is not None and _inode_of(self._place) is None:
            source = self._successor()
            if source is not None:
                os.rename(source, self._place)
                sync_directory(os.path.dirname(self._place))
                settled = self._place
        if self.is_over and not self.is_needed():
            _remove(self._container, self._fd)
        return settled


def _inode_of(directory):
    """Return the inode of a directory, or None if there is none. Other errors are raised."""
    try:
        return os.lstat(directory).st_ino
    except FileNotFoundError:
        return None


def _status_of(directory):
    """Return the status of a directory, or None if there is none."""
    try:
        return os.stat(directory)
    except (FileNotFoundError, NotADirectoryError):
        return None


@contextlib.contextmanager
def _told(action, place):
    """Return a context manager in which an error of the system becomes a `StoreError`."""
    try:
        yield
    except OSError as exc:
        if isinstance(exc, (StoreError, NodeExistsError)):
            raise
        raise StoreError(f"cannot {action} {place}: {exc.strerror or exc}", key=place, errno=exc.errno) from exc


def _content(fd):
    """Return all bytes of a file. When the interpreter exits, the built-in `open` is gone, and finalizers may copy."""
    parts = []
    while part := os.pread(fd, 1 << 16, sum(map(len, parts))):
        parts.append(part)
    return b"".join(parts)


def _boot():
    """Return a text that changes when the machine is started again, if the system has one.

    Files that were written before may not have reached the disk, whatever the journal says.
    """
    try:
        fd = open_descriptor("/proc/sys/kernel/random/boot_id", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _content(fd).decode().strip()
        finally:
            os.close(fd)
    except OSError:
        return ""


class Building:
    """Builds what is to become the directory `place`.

    Parameters
    ----------
    place : str
        Absolute.
    order : dict
        What is copied and how, values of JSON. Only work that was begun with equal ones is continued.
    fsync : bool
        The new name has reached the disk when `finish` returns.

    Attributes
    ----------
    node : str
        The directory in which the node is built.
    between : str
        A directory for temporary arrays.
    is_begun : bool
        A process that was killed has begun the work.
    done : set of str
        The arguments of `mark`, also in a process that was killed.

    Raises
    ------
    StoreError
        Another process builds the same, or the directory cannot be made.
    """

    def __init__(self, place: str, order: Mapping[str, Any], fsync: bool = False) -> None:
        self.place = place
        self._fsync = fsync
        self._container = container_of(place)
        self._journal = os.path.join(self._container, _JOURNAL)
        self.node: str = ""
        self.between: str = ""
        self.done: set[str] = set()
        self.is_begun: bool = False
        self._fd = -1
        self._is_discarded = False
        self._start = 0     # of the marks in the journal
        text = json.dumps(order if fsync else {**order, "boot": _boot()}, sort_keys=True)
        try:
            with _told("build", place):
                self._take_over(self._take(), text)
        except BaseException:
            self.leave()
            raise

    def _take(self):
        """Open the journal, lock it, and return the content of the container."""
        for _ in range(_MAX_TRIES):
            try:
                # Nobody else sees more of the new directory than of the old one.
                os.makedirs(self._container, mode_for(_status_of(self.place), 0o777), exist_ok=True)
                self._fd = _locked(self._container, os.O_CREAT)
                found = _Found(self._container, self.place, self._fd)
                found.settle()
                if os.path.samestat(os.fstat(self._fd), os.stat(self._journal)):
                    return found
            except BlockingIOError as exc:
                raise StoreError(f"{self.place} is being copied to by another process or thread", key=self.place,
                                 errno=errno.EWOULDBLOCK) from exc
            except FileNotFoundError:
                pass     # another process has finished meanwhile, or it was settled
            except FileExistsError:
                # It was there and is gone, or it is no directory.
                if os.path.lexists(self._container) and not os.path.isdir(self._container):
                    raise
            self.leave()
        raise StoreError(f"cannot build {self.place}: its journal goes as soon as it is made", key=self.place)

    def _take_over(self, found, order):
        """Go on with the content if its order is equal; else begin anew."""
        self._start = len(order.encode()) + 1
        self.node = _named_for(self._container, "node", self._fd)
        self.between = _named_for(self._container, "between", self._fd)
        lines = found.lines
        # A line without a line feed was not written to its end. Without a node the process was killed when it was done,
        # and the work of the marks has got its name.
        if len(lines) > 1 and lines[0] == order.encode() and os.path.isdir(self.node):
            self.is_begun = True
            self.done = {line.decode() for line in lines[1:-1]}
            if lines[-1]:
                self._write(b"")
            for directory in (self.node, self.between):
                cleanup.remove_temporary(directory, math.inf)     # of the process that was killed
            return
        # The marks first: if this process is killed, the one that made them may go on.
        os.ftruncate(self._fd, 0)
        for name in os.listdir(self._container):
            if name != _JOURNAL:
                cleanup.remove_directory(os.path.join(self._container, name))
        self._write(order.encode())

    def _write(self, line):
        """Add a line to the journal."""
        line = memoryview(line + b"\n")
        while line:
            line = line[os.write(self._fd, line):]

    def mark(self, work: str) -> None:
        """Note that a piece of work, a text without line feeds, is done and its result in place."""
        self.done.add(work)
        with _told("write the journal of", self.place):
            self._check_here()
            self._write(work.encode())

    def forget(self) -> None:
        """Take back all marks."""
        self.is_begun = False
        self.done = set()
        with _told("write the journal of", self.place):
            os.ftruncate(self._fd, self._start)

    def drop_between(self) -> None:
        """Remove the temporary arrays."""
        with _told("clean up", self.between):
            cleanup.remove_directory(self.between)

    def finish(self, replace: bool) -> None:
        """Give the finished directory its name.

        Parameters
        ----------
        replace : bool
            Replace another directory, which is removed then. They exchange their names in one step. If the system has
            no such step, there is a moment in which nothing has the name.

        Raises
        ------
        NodeExistsError
            Something has the name that is no empty directory, and `replace` is false.
        """
        with _told("make", self.place):
            os.makedirs(self.node, exist_ok=True)     # a group in a format without groups makes nothing
            if replace and (old := _status_of(self.place)) is not None:
                keep(self.node, os.stat(self.node), old)
            name = os.fsencode(os.path.basename(self.place)).hex()
            self._write(_WHOLE + json.dumps(
                {"inode": os.stat(self.node).st_ino, "name": name, "replaces": bool(replace)}).encode())
            if replace or self._fsync:
                os.fsync(self._fd)
            try:
                if not (replace and self._replace()):
                    self._rename()
            except OSError as exc:
                if exc.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                    raise NodeExistsError(f"there is something at {self.place} already", path=self.place) from exc
                raise
            if self._fsync:
                sync_directory(os.path.dirname(self.place))
        self.discard("completed")

    def _rename(self):
        """Give the directory the name, if that is free.

        No lock keeps others from moving a group above. So the name is relative to the container, whose path leads to
        it still: a move takes both along.
        """
        fd = open_descriptor(self._container, getattr(os, "O_PATH", 0) | os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._check_here(_JOURNAL, fd)
            os.rename(os.path.basename(self.node), os.path.join(os.pardir, os.path.basename(self.place)),
                      src_dir_fd=fd, dst_dir_fd=fd)
        finally:
            os.close(fd)

    def _replace(self):
        """Replace what has the name; return False if nothing has it, or it is deleted meanwhile."""
        if _inode_of(self.place) is None:
            return False
        old = os.path.join(self._container, _OLD + os.urandom(8).hex())
        try:
            try:
                self._check_here()
                exchange(os.fsencode(self.node), os.fsencode(self.place))
                return True
            except OSError as exc:
                if exc.errno not in _NO_EXCHANGE:
                    raise
                os.rename(self.place, old)
        except FileNotFoundError:
            return False
        try:
            os.rename(self.node, self.place)
        except BaseException:
            # If that fails as well, the next caller gives one of the two the name.
            with contextlib.suppress(OSError):
                os.rename(old, self.place)
            raise
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

    def _check_here(self, journal=None, dir_fd=None):
        """Raise FileNotFoundError if the container at the path, or in a directory that is open, is another one."""
        if not os.path.samestat(os.fstat(self._fd), os.stat(journal or self._journal, dir_fd=dir_fd)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._journal)

    def discard(self, state: str = "abandoned") -> None:
        """Remove the container, also if it was moved, where the system tells its path. Errors name the `state`."""
        is_here, self._is_discarded = self.is_here(), True
        with _told(f"remove the temporary files of the {state} copy in", self._container):
            if is_here:
                _remove(self._container, self._fd)
            else:
                with contextlib.suppress(OSError):
                    _remove(os.path.dirname(os.readlink(f"/proc/self/fd/{self._fd}")), self._fd)
                settle(self._container, removes=True)

    def leave(self) -> None:
        """Unlock the journal; the container stays."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            with _told("close the journal of", self.place):
                os.close(fd)
