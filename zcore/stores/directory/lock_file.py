"""Lock files: locks for file systems that have no locks of ranges, or where these do not hold among hosts.

    .__zc_tmp.lock/            the lock of the directory that it lies in; there while a process holds it or waits for it
        held/<id>              the process that holds it
        <id>/<id>              a process that waits

`<id>` is a random name, which one process makes for itself, followed by what tells whether that has ended. The content
of the file is for people. Its time of change is renewed while the process lives. A process that waits renames its
directory to ``held``. That fails while ``held`` is not empty, so one process holds the lock. To give it back, or to
remove a stale one, is to unlink one such file. Its name is never used again, so no process can remove the lock of
another by mistake, however late it is.

A lock is stale if its process has ended, which is known of processes of this machine. Of others it is stale if its file
was not renewed for `STALE_SECONDS`. No clocks are compared: a process that waits counts the time between its own looks
at the file, and long breaks between two looks do not count.
"""
from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import re
import stat
import sys
import weakref
from _thread import RLock, get_ident, start_new_thread
from time import localtime, monotonic, sleep, strftime
from typing import TYPE_CHECKING

from zcore.descriptors import open_descriptor
from zcore.errors import LockError, warn
from zcore.kernel.io.object_locks import Held
from zcore.stores.keys import TEMPORARY
from zcore.text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

NODE = TEMPORARY + "lock"          # the lock of the node whose document lies in the directory
PLACE = TEMPORARY + "place"        # the lock under which a node comes or goes there
NAMES = frozenset((NODE, PLACE))

STALE_SECONDS = 60.0
RENEWED_SECONDS = 5.0
# A process that waits looks at the holder this often. A longer break counts as no more than `MAX_BREAK` seconds: the
# file system, or the process, may have paused, and the holder with it.
LOOK_SECONDS = 0.25
MAX_BREAK = 1.0
# Between two tries to get a lock: at most so many times what a call of the file system takes, so that processes that
# wait leave the server to others.
PAUSE_CALLS = 20
MIN_PAUSE, MAX_PAUSE = 0.0005, 0.02
# A process holds a lock for all its threads. After this time it gives it back first, and lets others try.
MAX_SHARED_SECONDS = 1.0
WARNED_SECONDS = 10.0

# What others have removed so often never stands: some file systems, such as /proc, say so of all that is made.
_MAX_TRIES = 100

_HELD = "held"
_MAX_NBYTES = 4096


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
        self._renew()
        _all_files.add(self)

    def _renew(self):
        """Forget all that is held: it is new, or in the child of a fork, which holds nothing of its parent."""
        self._guard = RLock()          # of what follows; reentrant, as a signal handler may come at any time
        self._shares = set()
        self._busy = None              # the share for which this lock is being got or given back
        self._since = 0.0
        self._fd = self._file = -1     # of the directory, and of the file that names this process
        self._id = None
        self._watch = SignsOfLife()

    def __repr__(self) -> str:
        return f"<LockFile {os.path.join(self.directory, self.name)}>"

    def hold(self) -> contextlib.AbstractContextManager[LockFile]:
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
        """Raise LockError unless the lock is still held: others take over the lock of a process that paused."""
        try:
            _again(os.stat, f"{self.name}/{_HELD}/{self._id}", dir_fd=self._fd)
        except FileNotFoundError as exc:
            raise LockError(
                f"the lock of {self.directory} was taken over by another process, since this one had paused for "
                f"{STALE_SECONDS:.0f} seconds: what both have written meanwhile may be lost", key=self.directory,
                errno=exc.errno) from exc
        except OSError as exc:
            raise self._failed("look at", exc) from exc

    def is_at(self, directory: str) -> bool:
        """Return whether the directory whose lock is held has this name.

        Raises : LockError, if it cannot be looked at.
        """
        try:
            return os.path.samestat(_again(os.fstat, self._fd), _again(os.stat, directory))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as exc:
            raise self._failed("find the directory of", exc) from exc

    # threads

    def _enter(self, share):
        while True:
            with self._guard:
                if self._busy is not None:
                    if self._busy.thread == share.thread:
                        raise self._own()
                elif not self._shares:
                    self._busy = share
                    break
                elif monotonic() - self._since < MAX_SHARED_SECONDS or self._is_held_by(share.thread):
                    self._shares.add(share)
                    return
            sleep(MIN_PAUSE)
        self._take()
        with self._guard:
            self._since = monotonic()
            self._shares.add(share)
            self._busy = None

    def _is_held_by(self, thread):
        return any(share.thread == thread for share in self._shares)

    def _leave(self, share):
        with self._guard:
            # Called again if a signal handler raises in here: then the share is still the busy one.
            if self._busy is share or (self._busy is None and self._shares <= {share} and self._id is not None):
                # Busy first: a signal handler that found no share would wait for the file, which is held.
                self._busy = share
                self._shares.discard(share)
                self._give_back()
                self._busy = None
            else:
                self._shares.discard(share)

    # processes

    def _take(self):
        for i in range(_MAX_TRIES):
            if self._try_to_take():
                return
            self._give_back()
            sleep(MIN_PAUSE * min(i, MAX_PAUSE / MIN_PAUSE))
        raise LockError(f"cannot make a lock file in {self.directory}: it is gone as soon as it is made",
                        key=self.directory, errno=errno.ENOENT)

    def _try_to_take(self):
        """Wait for the lock. Return False if it is no more the one to wait for."""
        try:
            self._fd = open_descriptor(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except NotADirectoryError as exc:
            raise FileNotFoundError(exc.errno, exc.strerror, self.directory) from exc
        except OSError as exc:
            if exc.errno == errno.ENOENT:
                raise
            raise self._failed("open the directory of", exc) from exc
        try:
            self._id = _new_id()
            self._queue()
            self._wait()
        except FileNotFoundError:
            # The last process that held it has removed what was free, or another one has taken this for a stale one.
            return self._retries()
        except LockError:
            raise
        except OSError as exc:
            raise self._failed("make", exc) from exc
        # A directory that was renamed meanwhile has kept its lock, and the one that is there now has another.
        return self.is_at(self.directory) or self._retries()

    def _retries(self):
        """Return False if the directory is there, for another try; else raise FileNotFoundError."""
        try:
            _again(os.stat, self.directory)
        except (FileNotFoundError, NotADirectoryError) as exc:
            raise FileNotFoundError(exc.errno, exc.strerror, self.directory) from exc
        except OSError as exc:
            raise self._failed("find the directory of", exc) from exc
        return False

    def _queue(self):
        own = f"{self.name}/{self._id}"
        try:
            _again(os.mkdir, self.name, dir_fd=self._fd)
        except FileExistsError as exc:
            # A link would lead to a lock of another directory.
            if not stat.S_ISDIR(_again(os.stat, self.name, dir_fd=self._fd, follow_symlinks=False).st_mode):
                raise LockError(f"{os.path.join(self.directory, self.name)} is not a directory, so it is no lock; "
                                "remove it", key=self.directory, errno=errno.ENOTDIR) from exc
        with contextlib.suppress(FileExistsError):
            # Its name is new: a call that a signal has ended had made it.
            _again(os.mkdir, own, dir_fd=self._fd)
        self._file = open_descriptor(f"{own}/{self._id}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC,
                                     dir_fd=self._fd)
        with contextlib.suppress(OSError):
            # On a full disk the file stays empty, and says nothing but that the lock is held.
            os.write(self._file, json.dumps(this_process()).encode())
        _RENEWER.add(self)

    def _wait(self):
        start = monotonic()
        if (watch := _waited.get((self.directory, self.name))) is not None:
            self._watch = watch
            sleep(1.5 * self._longest_pause())
            if start - watch.looked > LOOK_SECONDS:
                self._look()
        if self._try():
            return
        longest, pause = self._longest_pause(), MIN_PAUSE
        is_warned = False
        while not self._try():
            sleep(pause)
            pause = min(2 * pause, longest)
            now = monotonic()
            if now - self._watch.looked < LOOK_SECONDS:
                continue
            holder = self._look()
            if not is_warned and now - start > WARNED_SECONDS and holder is not None:
                warn(f"waiting for the lock of {self.directory} since {now - start:.0f} seconds; held by {holder}")
                is_warned = True

    def _longest_pause(self):
        begun = monotonic()
        with contextlib.suppress(OSError):
            os.stat(f"{self.name}/{self._id}", dir_fd=self._fd)
        return min(MAX_PAUSE, max(MIN_PAUSE, PAUSE_CALLS * (monotonic() - begun)))

    def _try(self):
        try:
            _again(os.rename, f"{self.name}/{self._id}", f"{self.name}/{_HELD}", src_dir_fd=self._fd,
                   dst_dir_fd=self._fd)
        except FileNotFoundError:
            # So a call ends that was done and made again, as after a lost answer of a network file system.
            _again(os.stat, f"{self.name}/{_HELD}/{self._id}", dir_fd=self._fd)
        except OSError as exc:
            if exc.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return False
        return True

    def _look(self):
        """Remove what is stale; return the text that names the holder, or None."""
        found = [owner for owner in owners(self._fd, self.name) if owner.id != self._id]
        for owner in self._watch.stale(found):
            owner.remove()
            found.remove(owner)
            if owner.is_held and owner.id not in _left:
                reason = ("has ended" if owner.is_running() is False
                          else f"gave no sign of life for {STALE_SECONDS:.0f} seconds")
                warn(f"the lock of {self.directory} is taken over: it was held by {owner}, which {reason}")
        _remove_empty(self._fd, self.name)
        return next((str(owner) for owner in found if owner.is_held), None)

    def _give_back(self):
        """Remove what this process has made, and close what it has opened. It may be called again at any point."""
        with self._guard:
            _RENEWER.discard(self)
            if self._id is not None:
                for directory in (f"{self.name}/{_HELD}", f"{self.name}/{self._id}"):
                    self._remove_own(directory)
                try:
                    _again(os.rmdir, self.name, dir_fd=self._fd)
                    _waited.pop((self.directory, self.name), None)
                except OSError as exc:
                    if exc.errno in (errno.ENOTEMPTY, errno.EEXIST):
                        _waited[self.directory, self.name] = self._watch
                self._id = None
            # Forgotten right before it is closed: no Python function is called in between.
            if self._file >= 0:
                fd, self._file = self._file, -1
                _close(fd)
            if self._fd >= 0:
                fd, self._fd = self._fd, -1
                _close(fd)

    def _remove_own(self, directory):
        """Remove the file of this process from a directory, and the directory if it is empty then."""
        try:
            _again(os.unlink, f"{directory}/{self._id}", dir_fd=self._fd)
        except FileNotFoundError:
            pass
        except OSError:
            # This process does not wait for itself. To others an empty file, which names no process, is stale when it
            # was not renewed for some time.
            _left.add(self._id)
            if self._file >= 0:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, 0)
        with contextlib.suppress(OSError):
            _again(os.rmdir, directory, dir_fd=self._fd)

    def _failed(self, what, exc):
        return LockError(f"cannot {what} a lock file in {self.directory}: {exc.strerror}; lock=None writes without "
                         "locks", key=self.directory, errno=exc.errno)

    def _own(self):
        return LockError(f"this thread is about to get or give back the lock of the directory {self.directory}, in a "
                         "call that has not ended: a signal handler, or other code that runs inside that call, would "
                         "wait for ever", key=self.directory, errno=errno.EDEADLK)


class _Share(Held):
    """One thread's hold on a lock file."""

    def __init__(self, file):
        self._file = file
        self.thread = get_ident()

    def take(self):
        self._file._enter(self)
        return self._file

    def give_back(self, exception):
        self._file._leave(self)


def _again(function, *arguments, **keywords):
    """Return the result of a call, which is made again as long as signals end it."""
    while True:
        try:
            return function(*arguments, **keywords)
        except InterruptedError:
            continue


def _close(fd):
    # Nothing was written to it that could be lost.
    with contextlib.suppress(OSError):
        os.close(fd)


# Who holds a lock

class Owner:
    """A process that holds a lock file, or waits for it.

    Attributes
    ----------
    id : str
    is_held : bool
    said : dict
        What its file says; empty if that cannot be read.
    sign : tuple
        Of the file: it changes as long as the process lives.
    """

    def __init__(self, fd: int, name: str, directory: str, id: str) -> None:
        self.id: str = id
        self.is_held: bool = directory == _HELD
        self.said: dict[str, Any] = {}
        self.sign: tuple[int, ...] = ()
        self._fd, self._directory = fd, f"{name}/{directory}"
        with contextlib.suppress(OSError):
            # Opened each time: a network file system asks the server then.
            file = open_descriptor(f"{self._directory}/{id}",
                                   os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=fd)
            try:
                status = os.fstat(file)
                self.sign = status.st_ino, status.st_mtime_ns, status.st_size
                # Other programs may have put anything there, and nested as deeply as they like.
                with contextlib.suppress(ValueError, RecursionError):
                    said = json.loads(os.read(file, _MAX_NBYTES))
                    self.said = said if isinstance(said, dict) else {}
            finally:
                os.close(file)

    def __str__(self) -> str:
        if not self.said:
            found = _ID.fullmatch(self.id)
            return f"process {found['pid']}" if found else "an unknown process"
        said = {name: f"{printable(self.said.get(name)):.100}" for name in ("pid", "program", "host", "since")}
        return f"process {said['pid']} ({said['program']}) of the host {said['host']}, since {said['since']}"

    def is_running(self) -> bool | None:
        """Return whether the process has not ended; None if that is not known: of other machines it never is.

        A process that has given the lock back, and could not remove its file, counts as ended.
        """
        if self.id in _left:
            return False
        own, found = _identity()["machine"], _ID.fullmatch(self.id)
        if own is None or found is None or found["machine"] != own:
            return None
        # The file may be empty because the disk was full. Then it is renewed.
        return (True if self.said else None) if _is_running(int(found["pid"]), int(found["started"])) else False

    def remove(self) -> None:
        """Remove its file, by a name that no other process has."""
        try:
            _again(os.unlink, f"{self._directory}/{self.id}", dir_fd=self._fd)
        except FileNotFoundError:
            pass
        except OSError as exc:
            raise LockError(f"cannot remove the stale lock file {self._directory}/{self.id}: {exc.strerror}",
                            key=self._directory, errno=exc.errno) from exc
        with contextlib.suppress(OSError):
            _again(os.rmdir, self._directory, dir_fd=self._fd)


def owners(fd: int, name: str) -> list[Owner]:
    """Return the `Owner` of a lock in the directory `fd`, and those that wait for it: a list."""
    return [Owner(fd, name, directory, id) for directory in _names(fd, name)
            for id in _names(fd, f"{name}/{directory}")]


def _remove_empty(fd, name):
    """Remove the empty directories of a lock, which are in the way of no process that lives.

    One that has just made its directory finds it missing, and makes it again. Not all file systems rename a directory
    over an empty one.
    """
    for directory in _names(fd, name):
        with contextlib.suppress(OSError):
            os.rmdir(f"{name}/{directory}", dir_fd=fd)


def _names(fd, path):
    try:
        directory = open_descriptor(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=fd)
    except OSError:
        return []
    try:
        return os.listdir(directory)
    except OSError:
        return []
    finally:
        os.close(directory)


class SignsOfLife:
    """For how long the files of others were not renewed, as one process sees it."""

    def __init__(self) -> None:
        self._seen = {}     # id to (sign, time of the last look, seconds without a change)
        self.looked: float = monotonic()

    def stale(self, owners: Iterable[Owner]) -> list[Owner]:
        """Return those of all present owners that have ended, or have not renewed their files for `STALE_SECONDS`."""
        now, before, self._seen = monotonic(), self._seen, {}
        self.looked = now
        found = []
        for owner in owners:
            sign, looked, unchanged = before.get(owner.id, (None, now, 0.0))
            unchanged = unchanged + min(now - looked, MAX_BREAK) if sign == owner.sign else 0.0
            self._seen[owner.id] = owner.sign, now, unchanged
            is_running = owner.is_running()
            if is_running is False or (is_running is None and unchanged >= STALE_SECONDS):
                found.append(owner)
        return found


def left_over(directory: str) -> str | None:
    """Return what a lock's directory, one of `NAMES`, is if no process of it lives: a text. None if one may live."""
    if os.path.islink(directory) or os.path.isfile(directory):
        return "no directory, in the place of a lock file's: nothing can be locked by files there"
    with _opened(os.path.dirname(directory)) as fd:
        found = owners(fd, os.path.basename(directory))
        if not all([owner.is_running() is False for owner in found]):
            return None
        return "a lock file of " + " and ".join(map(str, found)) if found else "the empty directory of a lock file"


def remove_left_over(directory: str) -> bool:
    """Remove what processes that have ended have left in a lock's directory; return whether that is gone as well."""
    name = os.path.basename(directory)
    with _opened(os.path.dirname(directory)) as fd:
        for owner in owners(fd, name):
            if owner.is_running() is False:
                # What cannot be removed stays, and is reported as there.
                with contextlib.suppress(LockError):
                    owner.remove()
        _remove_empty(fd, name)
        with contextlib.suppress(OSError):
            os.rmdir(name, dir_fd=fd)
    return not os.path.lexists(directory)


@contextlib.contextmanager
def _opened(directory):
    fd = open_descriptor(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def this_process() -> dict[str, object]:
    """Return what the file of this process says, a dict."""
    return {**_identity(), "since": strftime("%Y-%m-%d %H:%M:%S %z", localtime())}


# `started` is in ticks since the machine has started (proc(5)).
_ID = re.compile(r"[0-9a-f]{32}\.(?P<pid>[1-9][0-9]{0,8})\.(?P<started>[0-9]{1,20})\.(?P<machine>[0-9a-f]{32})",
                 re.ASCII)


def _new_id():
    own, id = _identity(), os.urandom(16).hex()
    return id if own["machine"] is None else f"{id}.{own['pid']}.{own['started']}.{own['machine']}"


def _identity():
    """Return a dict that describes this process. `machine` is None if others cannot find out whether it has ended."""
    global _known
    pid = os.getpid()
    if _known.get("pid") != pid:
        import hashlib  # which loads OpenSSL

        started = machine = None
        with contextlib.suppress(OSError, IndexError, ValueError):
            # It may be that of another container, with numbers of processes of its own.
            if os.readlink("/proc/self") == str(pid):
                with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
                    machine = f"{file.read().strip()} {os.stat('/proc/self/ns/pid').st_ino}"
                machine = hashlib.sha256(machine.encode()).hexdigest()[:32]
                started = _start_of(pid)
        _known = {"pid": pid, "started": started, "machine": machine if started is not None else None,
                  "host": platform.node(),
                  "program": os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""}
    return _known


def _is_running(pid, started):
    """Return whether the process `pid` of this machine, which began at `started`, has not ended."""
    try:
        return _start_of(pid) == started
    except (OSError, IndexError, ValueError):
        # Some systems hide the processes of other users there.
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            pass
        return True


def _start_of(pid):
    """Return when a process has begun, in ticks since the machine has (proc(5)); None if it has ended."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    # A zombie holds nothing any more, unless only its first thread has ended.
    if fields[0] in (b"Z", b"X") and len(os.listdir(f"/proc/{pid}/task")) <= 1:
        return None
    return int(fields[19])


_known = {}


class _Renewer:
    """Renews the files of this process. Its thread runs as long as there are any."""

    def __init__(self):
        self.restart()

    def restart(self):
        """Begin anew: in the child of a fork, which has neither the thread nor the locks."""
        self._guard = RLock()
        self._files = set()
        self._runs = False

    def add(self, file):
        """Have the file of `file` renewed."""
        with self._guard:
            self._files.add(file)
            if not self._runs:
                start_new_thread(self._run, ())
                self._runs = True

    def discard(self, file):
        """Renew it no more."""
        self._files.discard(file)

    def _run(self):
        while True:
            sleep(RENEWED_SECONDS)
            with self._guard:
                files = list(self._files)
                if not files:
                    self._runs = False
                    return
            for file in files:
                with file._guard, contextlib.suppress(OSError):
                    if file._file >= 0:
                        os.utime(file._file)


_RENEWER = _Renewer()
# The locks for which others waited when this process gave them back last, and what it had seen of these. It lets them
# go first.
_waited = {}
_left = set()      # names of files of this process that it could not remove
_all_files = weakref.WeakSet()


def _after_fork_in_child():
    _RENEWER.restart()
    for file in list(_all_files):
        for fd in (file._file, file._fd):
            if fd >= 0:
                _close(fd)
        file._renew()


os.register_at_fork(after_in_child=_after_fork_in_child)
