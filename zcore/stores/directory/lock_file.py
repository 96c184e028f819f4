"""Lock files: locks for file systems that have no locks of ranges, or where these do not hold among hosts.

    .__zc_tmp.lock/<id>        the lease of the process that holds the lock of the directory that it lies in

`<id>` is a random name, which a process makes for one hold, followed by what tells whether the process has ended. The
content of the file is for people. Its time of change is renewed while the process lives. To get the lock, a process
makes a directory with its file in it, and renames that to the name of the lock. The rename fails while another file is
there, so one process holds the lock. To give it back, or to take over a stale one, is to unlink one such file. Its name
is never used again, so no process can remove the lock of another by mistake, however late it is.

A lock is stale if its process has ended, which is known of processes of this machine: each has bound a socket of a
random name, which the system keeps as long as the process lives. Of others it is stale if its file was not renewed for
`STALE_SECONDS`. No clocks are compared: a process that waits counts the time between its own looks at the file, and
long breaks between two looks do not count.
"""
from __future__ import annotations

import errno
import os
import socket
import weakref
from _thread import RLock, get_ident, start_new_thread
from contextlib import contextmanager, suppress
from math import inf
from time import monotonic, sleep, strftime

from zcore.errors import LockError, warn
from zcore.kernel.io.documents import Descriptor
from zcore.kernel.io.locks import Held
from zcore.stores.keys import TEMPORARY
from zcore.text.printable import printable

NODE = TEMPORARY + "lock"          # the lock of the node whose document lies in the directory
PLACE = TEMPORARY + "place"        # the lock under which a node comes or goes there
NAMES = (NODE, PLACE)              # begin the names of all directories that are made here

STALE_SECONDS, RENEWED_SECONDS, WARNED_SECONDS = 60.0, 5.0, 10.0
# A process that waits looks at the holder this often. A longer break counts as no more than `MAX_BREAK` seconds: the
# file system, or the process, may have paused, and the holder with it.
LOOK_SECONDS, MAX_BREAK = 0.25, 1.0
MIN_PAUSE, MAX_PAUSE = 0.0005, 0.01     # between two tries to get a lock
# The threads of a process share a lock, and it takes the lock again and again. After this time it leaves it to others.
MAX_TURN_SECONDS = 1.0
# A directory that is gone after each of so many tries cannot be made at all, as in /proc.
_MAX_TRIES = 100


class LockFile:
    """The lock file of a directory. A process holds it as long as any of its threads does.

    Parameters
    ----------
    directory : str
    name : {NODE, PLACE}
    """

    def __init__(self, directory: str, name: str) -> None:
        self.directory: str = directory
        self.name: str = name
        self._reset()
        _all_files.add(self)

    def _reset(self):
        """Forget all that is held: it is new, or in the child of a fork, which holds nothing of its parent."""
        self._guard = RLock()          # of what follows; reentrant, as a signal handler may come at any time
        self._shares = set()
        self._busy = None              # the share for which this lock is being got or given back
        self._turn = self._freed = 0.0
        self._open = None              # the directory
        self._id = ""
        self._seen, self._quiet, self._looked = [], 0.0, 0.0     # by the last look, and for how long it was the same

    def hold(self) -> Held:
        """Return a context manager that holds the lock for this thread.

        Raises
        ------
        LockError
            The file cannot be made, or this thread is about to get or give back the same lock in a call further up.
        FileNotFoundError
            The directory is gone.
        """
        return _Share(self)

    def check(self) -> None:
        """Raise LockError unless the lock is still held: others take over the lock of a process that paused.

        The lock of a directory that another thread has replaced, or deleted, is gone with it.
        """
        if not self._is_held() and self.is_at(self.directory):
            raise LockError(f"the lock of {self.directory} was taken over by another process, since this one had "
                            f"paused for {STALE_SECONDS:.0f} seconds: what both have written meanwhile may be lost",
                            key=self.directory, errno=errno.ENOENT)

    def _is_held(self):
        with self._failing(), suppress(FileNotFoundError):
            _again(os.stat, f"{self.name}/{self._id}", dir_fd=self._open.fd)
            return True
        return False

    def is_at(self, directory: str) -> bool:
        """Return whether the directory whose lock is held has this name.

        Raises : LockError, if it cannot be looked at.
        """
        with self._failing(), suppress(FileNotFoundError, NotADirectoryError):
            return os.path.samestat(_again(os.fstat, self._open.fd), _again(os.stat, directory))
        return False

    def _enter(self, share):
        while True:
            with self._guard:
                if self._busy is None:
                    if not self._shares:
                        self._busy = share
                        break
                    if (monotonic() - self._turn < MAX_TURN_SECONDS
                            or share.thread in [one.thread for one in self._shares]):
                        self._shares.add(share)
                        return
                elif self._busy.thread == share.thread:
                    raise LockError(f"this thread is about to get or give back the lock of {self.directory}, in a call "
                                    "that has not ended: a signal handler, or other code that runs inside that call, "
                                    "would wait for ever", key=self.directory, errno=errno.EDEADLK)
            sleep(MIN_PAUSE)
        self._get()
        with self._guard:
            self._shares.add(share)
            self._busy = None

    def _leave(self, share):
        """Give the file back if no other share is left. It may be called again at any point."""
        with self._guard:
            if self._busy is None and self._shares == {share}:
                # Busy first: a signal handler that found no share would wait for the file, which is held.
                self._busy = share
            self._shares.discard(share)
            if self._busy is share:
                self._give_back()
                self._freed = monotonic()
                self._busy = None

    def _get(self):
        if monotonic() - self._freed < MAX_PAUSE and monotonic() - self._turn > MAX_TURN_SECONDS:
            sleep(1.5 * MAX_PAUSE)
        if monotonic() - self._freed > MAX_PAUSE:
            self._turn = monotonic()
        for i in range(_MAX_TRIES):
            with self._failing():
                self._open = Descriptor(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                with suppress(FileNotFoundError):     # the directory is gone, and maybe another one is there
                    self._wait()
                    # A directory that was renamed meanwhile has kept its lock.
                    if self.is_at(self.directory):
                        return
            self._give_back()
            sleep(min(i * MIN_PAUSE, MAX_PAUSE))
        raise LockError(f"cannot make a lock file in {self.directory}: it is gone as soon as it is made",
                        key=self.directory, errno=errno.ENOENT)

    def _wait(self):
        warned, pause = monotonic() + WARNED_SECONDS, MIN_PAUSE
        self._id = os.urandom(16).hex() + _end_of_ids()
        while not self._try():
            if (now := monotonic()) - self._looked >= LOOK_SECONDS:
                holder = self._look(now)
                if holder and now > warned:
                    warn(f"waiting for the lock of {self.directory}; it is held by {holder}")
                    warned = inf
            sleep(pause)
            pause = min(2 * pause, MAX_PAUSE)
        _held.add(self)
        if not _renewers:
            _renewers.append(start_new_thread(_renew, ()))

    def _try(self):
        own, fd = f"{self.name}.{self._id}", self._open.fd
        try:
            with suppress(FileNotFoundError):
                _again(os.rmdir, self.name, dir_fd=fd)     # empty, so it is free; not all systems rename over it
            with suppress(FileExistsError):                # made by a call that a signal has ended: its name is new
                _again(os.mkdir, own, dir_fd=fd)
            file = Descriptor(f"{own}/{self._id}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, dir_fd=fd)
            with suppress(OSError):                        # the disk is full: an empty file is a lock as well
                os.write(file.fd, f"process {os.getpid()} of the host {os.uname().nodename}, since "
                                  f"{strftime('%Y-%m-%d %H:%M:%S %z')}".encode(errors="replace"))
            _again(os.rename, own, self.name, src_dir_fd=fd, dst_dir_fd=fd)
        except FileNotFoundError:
            # So a renaming ends that was done and made again, as after a lost answer of a network file system.
            if not self._is_held():
                raise
        except OSError as exc:
            if exc.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            _remove(own, self._id, fd)
            return False
        return True

    def _look(self, now):
        """Remove what is stale; return the text that names the holder."""
        found, holder = _files(self.name, self._open.fd), ""
        self._quiet = self._quiet + min(now - self._looked, MAX_BREAK) if found == self._seen else 0.0
        self._seen, self._looked = found, now
        for id, _, said in found:
            is_running = _is_running(id, said)
            holder = said or "an unknown process"
            if is_running is False or (is_running is None and self._quiet >= STALE_SECONDS):
                _remove(self.name, id, self._open.fd)
                reason = "has ended" if is_running is False else f"gave no sign of life for {STALE_SECONDS:.0f} seconds"
                if id not in _left:
                    warn(f"the lock of {self.directory} is taken over: it was held by {holder}, which {reason}")
        return holder

    def _give_back(self):
        """Remove what this process has made. It may be called again at any point."""
        _held.discard(self)
        if self._id:
            for name in (self.name, f"{self.name}.{self._id}"):
                try:
                    _remove(name, self._id, self._open.fd)
                except OSError:
                    _left.add(self._id)
                    with suppress(OSError):     # without its text it is stale once it was not renewed for long
                        Descriptor(f"{name}/{self._id}", os.O_WRONLY | os.O_TRUNC, dir_fd=self._open.fd)
        self._id, self._open = "", None

    @contextmanager
    def _failing(self):
        try:
            yield
        except (LockError, FileNotFoundError):
            raise
        except OSError as exc:
            raise LockError(f"{self.directory} cannot be locked by a file: {exc}; lock=None writes without locks",
                            key=self.directory, errno=exc.errno) from exc


class _Share(Held):
    """One thread's hold on a lock file."""

    def __init__(self, file):
        self._file = file
        self.thread = get_ident()

    def acquire(self):
        self._file._enter(self)
        return self._file

    def release(self, exception):
        self._file._leave(self)


def _again(function, *arguments, **keywords):
    """Return the result of a call, which is made again as long as signals end it."""
    while True:
        try:
            return function(*arguments, **keywords)
        except InterruptedError:
            continue


# The files of a lock. Its name is a whole path, or one below the directory `fd`.

def _files(name, fd=None):
    """Return a list of the files of a lock: of each its id, its sign of life, and the text that names the process."""
    found, flags = [], os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(OSError):
        directory = Descriptor(name, flags | os.O_DIRECTORY, dir_fd=fd)
        for id in os.listdir(directory.fd):
            sign, said = None, ""
            with suppress(OSError):
                file = Descriptor(id, flags, dir_fd=directory.fd)     # a network file system asks the server then
                status = os.fstat(file.fd)
                sign = status.st_ino, status.st_mtime_ns, status.st_size
                said = printable(os.read(file.fd, 300).decode(errors="replace"))
            found.append((id, sign, said))
    return found


def _remove(name, id, fd=None):
    """Remove a file, by a name that no other process has, and its directory."""
    with suppress(FileNotFoundError):
        _again(os.unlink, f"{name}/{id}", dir_fd=fd)
    with suppress(OSError):
        _again(os.rmdir, name, dir_fd=fd)


def left_over(directory: str) -> str | None:
    """Return what a directory whose name begins with one of `NAMES` is, a text; None if a process of it may live."""
    found = _files(directory)
    if not all([_is_running(id, said) is False for id, _, said in found]):
        return None
    return f"a lock file of {' and '.join([said for *_, said in found])}" if found else "a lock that no process holds"


def remove_left_over(directory: str) -> bool:
    """Remove what processes that have ended have left there, if it can be removed; return whether it is gone."""
    for id, _, _ in [*_files(directory), ("", None, "")] if left_over(directory) is not None else ():
        with suppress(OSError):
            _remove(directory, id)
    return not os.path.lexists(directory)


# Processes

_PREFIX = "\0zcore."     # of the names of sockets, which have no files
_own = (-1, None)        # the descriptor of the socket of this process, and the end of its ids


def _end_of_ids():
    """Return the end of the ids of this process: the name of its socket, and its machine. Empty if it has none."""
    global _own
    if _own[1] is None:
        _own = (-1, "")
        with suppress(OSError):
            with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
                # A container may have names of sockets of its own.
                machine = f"{file.read().strip()}-{os.stat('/proc/self/ns/net').st_ino}"
            name = os.urandom(16).hex()
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bound:
                bound.bind(_PREFIX + name)
                _own = bound.detach(), f".{name}.{machine}"
    return _own[1]


def _is_running(id, said):
    """Return whether the process of a file has not ended; None if that is not known: of other machines it never is."""
    _, name, machine = [*id.split("."), "", ""][:3]
    if id in _left:
        return False
    if not machine or not _end_of_ids().endswith("." + machine):
        return None
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
            probe.connect(_PREFIX + name)
    except OSError as exc:
        return False if isinstance(exc, ConnectionRefusedError) else None
    # Without a text, the disk was full, or the lock is given back and the file could not be removed.
    return True if said else None


_all_files, _held, _renewers = weakref.WeakSet(), set(), []
_left = set()     # ids of files that this process could not remove


def _renew():
    """Renew the files of this process until it holds none."""
    while True:
        sleep(RENEWED_SECONDS)
        if not _held:
            _renewers.clear()
            if not _held:     # who came in between has found no thread, or is found here
                return
        for lock in list(_held):
            with suppress(OSError, AttributeError):     # given back meanwhile
                os.utime(f"{lock.name}/{lock._id}", dir_fd=lock._open.fd)


def _after_fork_in_child():
    global _own
    if _own[0] >= 0:
        os.close(_own[0])
    _own = (-1, None)
    _held.clear()
    _renewers.clear()
    for lock in list(_all_files):
        lock._reset()


os.register_at_fork(after_in_child=_after_fork_in_child)
