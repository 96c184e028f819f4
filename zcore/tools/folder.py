"""What the file system of a folder can do for zcore: each ability is tried, in a folder that is removed afterwards.

Locks are tried between two processes. `meet` tries them between two hosts: no program can tell on one host whether its
locks hold on another one.
"""
from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import time
from typing import TYPE_CHECKING, Literal, NamedTuple

from zcore.errors import LockError, StoreError
from zcore.kernel.io.files import exchange
from zcore.kernel.io.locks import ObjectLocks, Stopped
from zcore.replacing import replacing
from zcore.stores.directory.lock_file import NODE, LockFile
from zcore.stores.keys import TEMPORARY

if TYPE_CHECKING:
    from zcore.typing import StrPath


class Finding(NamedTuple):
    """`state` is "ok"; "slower" or "unsafe", if zcore works without, and how; "missing", if it does not."""

    name: str
    state: Literal["ok", "slower", "unsafe", "missing"]
    what: str


_DOCUMENT = "document"
# A lock that another process holds is asked for so long.
_WAIT_SECONDS = 0.5
_MEETING = TEMPORARY + "doctor"
_USE_FILES = "set ZCORE_LOCK=file"


def examine(folder: StrPath) -> list[Finding]:
    """Return what the file system of a folder can do, a list of `Finding`.

    Raises : OSError, if the folder is not there or takes no files.
    """
    place = os.path.join(os.path.abspath(folder), TEMPORARY + "doctor." + os.urandom(8).hex())
    os.mkdir(place)
    try:
        found = [*_mount_of(place), _replaces(place), _exchanges(place), _syncs(place), _names(place)]
        locks = _locks(place)
        return found + [_holds(locks[kind], *_LOCKS[kind]) for kind in _LOCKS]
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _mount_of(place):
    """Return findings about what is mounted at a place, where the system tells."""
    found = os.statvfs(place)
    free = Finding("room", "ok", f"{found.f_bavail * found.f_frsize / 1e9:.1f} GB free")
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            lines = [line.split() for line in file]
    except OSError:
        return [free]
    device = os.stat(place).st_dev
    name = f"{os.major(device)}:{os.minor(device)}"
    for line in reversed(lines):
        if line[2] == name and "-" in line:
            kind, source = line[line.index("-") + 1:line.index("-") + 3]
            options = ",".join((line[5], line[-1]))
            return [Finding("file system", "ok", f"{kind}, {source} at {line[4]} ({options})"), free]
    return [free]


def _replaces(place):
    """Return whether a file is replaced in one step: a reader of the old one goes on."""
    path = os.path.join(place, "file")
    _write(path, b"old")
    with open(path, "rb") as reader:
        _write(path, b"new")
        old = reader.read()
    with open(path, "rb") as file:
        new = file.read()
    if (old, new) == (b"old", b"new"):
        return Finding("replaces files at once", "ok", "a write that is cut off leaves the old chunk or the new one")
    return Finding("replaces files at once", "missing", f"a reader of the old file got {old!r}, of the new one {new!r}")


def _write(path, content):
    with replacing(path) as new:
        os.write(new.fd, content)


def _exchanges(place):
    one, two = os.path.join(place, "one"), os.path.join(place, "two")
    for path in (one, two):
        os.mkdir(path)
    try:
        exchange(os.fsencode(one), os.fsencode(two))
    except OSError as exc:
        return Finding("exchanges directories", "slower", f"{exc.strerror}: a copy takes the place of another node in "
                                                          "two steps, which its journal brings to an end")
    return Finding("exchanges directories", "ok", "a copy takes the place of another node in one step")


def _syncs(place):
    try:
        for name, flags in (("file", os.O_WRONLY | os.O_CREAT), (".", os.O_RDONLY)):
            fd = os.open(os.path.join(place, name), flags)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
    except OSError as exc:
        return Finding("fsync", "unsafe", f"{exc.strerror}: fsync=True is an error here")
    return Finding("fsync", "ok", "fsync=True has a write on the disk when it returns")


def _names(place):
    with open(os.path.join(place, "name"), "wb"):
        pass
    if os.path.exists(os.path.join(place, "NAME")):
        return Finding("names", "slower", "it ignores case: zcore lists directories to keep the names of nodes apart")
    return Finding("names", "ok", "upper and lower case are different names")


# Locks

class _Deadline:
    """For a wait that ends: `ObjectLocks.object` asks the plan that it is for."""

    def __init__(self):
        self._end = time.monotonic() + _WAIT_SECONDS

    @property
    def stopped(self):
        """Whether the time is over."""
        return time.monotonic() > self._end


def _locks(place):
    """Return functions that return context managers, each of which holds a kind of lock, or raises `Stopped`."""
    with open(os.path.join(place, _DOCUMENT), "ab"):
        pass
    return {"ranges": lambda: ObjectLocks(place, _DOCUMENT).object("key", _Deadline()),
            "directories": lambda: _flocked(place), "files": lambda: _lock_file(place)}


# Of each kind of lock its name, and what is to be done where it does not hold.
_LOCKS = {"ranges": ("locks of ranges", f"writers need others: {_USE_FILES}"),
          "directories": ("locks of directories", f"creation and deletion need others: {_USE_FILES}"),
          "files": ("lock files", "let one process at a time write: ZCORE_LOCK=off")}


@contextlib.contextmanager
def _flocked(directory):
    import fcntl

    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as exc:
        raise Stopped from exc
    finally:
        os.close(fd)


@contextlib.contextmanager
def _lock_file(directory):
    """Hold the lock file of a directory.

    Raises : Stopped, if it is held; whether this process would get it is seen without waiting.
    """
    file = LockFile(directory, NODE)
    if os.path.isdir(os.path.join(directory, NODE)):
        raise Stopped
    with file.hold():
        yield


def _result_of(make):
    """Return what becomes of a lock that another process may hold: "free", "held", or what the system said."""
    try:
        with contextlib.ExitStack() as stack:
            found = _entered(stack, make)
            return "free" if found == "held" else found
    except Stopped:
        return "held"


def _entered(stack, make):
    """Hold a lock until a stack ends; return "held", or what the system said."""
    try:
        stack.enter_context(make())
    except (LockError, OSError) as exc:
        return os.strerror(exc.errno or errno.EIO)
    return "held"


def _holds(make, name, advice):
    """Return whether a lock keeps out another process of this host."""
    with contextlib.ExitStack() as stack:
        found = _entered(stack, make)
        result = _in_child(lambda: _result_of(make)) if found == "held" else found
    return _judged(name, result, "the processes of this host", advice)


def _judged(name, result, whom, advice):
    if result == "held":
        return Finding(name, "ok", f"hold among {whom}")
    if result == "free":
        return Finding(name, "missing", f"do NOT hold among {whom}; {advice}")
    return Finding(name, "missing", f"{result}; {advice}")


def _in_child(function):
    """Return the text that a function returns in a forked child."""
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writable, function().encode())
        finally:
            os._exit(0)
    os.close(writable)
    with open(readable, "rb") as file:
        text = file.read().decode()
    os.waitpid(pid, 0)
    return text


# Two hosts

def meet(folder: StrPath, seconds: float = 60.0) -> tuple[str, list[Finding]]:
    """Meet another process that calls this for the same folder, on another host, and try what holds between the two.

    The first one holds the locks, and the second one asks for them.

    Parameters
    ----------
    folder : str
        On a file system that both hosts see.
    seconds : float
        How long to wait for the other one, and for each of its answers.

    Returns
    -------
    tuple
        The text that names the other process, and a list of `Finding`, the same on both sides.

    Raises
    ------
    StoreError
        The other one did not come, or did not answer.
    """
    place = os.path.join(os.path.abspath(folder), _MEETING)
    os.makedirs(place, exist_ok=True)
    for side in ("first", "second"):
        with contextlib.suppress(FileExistsError):
            os.mkdir(os.path.join(place, side))
            break
    else:
        raise StoreError(f"two processes have met in {place} already; remove it if they have ended", key=place)
    locks, who = _locks(place), f"process {os.getpid()} of {os.uname().nodename}"
    try:
        if side == "first":
            with contextlib.ExitStack() as stack:
                _say(place, "first/results", [who, {kind: _entered(stack, lock) for kind, lock in locks.items()}])
                other, results = _hear(place, "second/results", seconds)
                _say(place, "first/end", None)
        else:
            other, held = _hear(place, "first/results", seconds)
            results = {kind: _result_of(locks[kind]) if found == "held" else found for kind, found in held.items()}
            _say(place, "second/results", [who, results])
            # Locks of a process that has ended meanwhile would seem not to hold.
            _hear(place, "first/end", seconds)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    if side == "second":
        shutil.rmtree(place, ignore_errors=True)
    return other, [_judged(name, results[kind], "these hosts", advice) for kind, (name, advice) in _LOCKS.items()]


def _say(place, name, value):
    """Leave a value for the other process."""
    _write(os.path.join(place, name), json.dumps(value).encode())


def _hear(place, name, seconds):
    """Return the value that the other process has left, or will leave."""
    path = os.path.join(place, name)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            # A network file system may know the directory from before; a listing asks for it again.
            os.listdir(os.path.dirname(path))
            with open(path, encoding="utf-8") as file:
                return json.load(file)
        time.sleep(0.05)
    raise StoreError(f"no answer from the other host in {seconds:.0f} seconds: {path} did not come", key=place)
