"""A directory that is built under a hidden name beside its own, so that it is whole from the moment it is there.

::

    .__zc_tmp.copy.<name>/
        journal      what is copied and how, a line of JSON, then a line for each piece of work that is done
        node/        what is to become <name>
        between/     an array between two passes

The journal is locked by whoever builds. When the process is killed, all of this stays. The next one that copies the
same thing in the same way to the same place takes it over; anybody else begins anew. Names that begin so are no keys:
no listing of a store shows them.
"""
import contextlib
import errno
import fcntl
import hashlib
import json
import math
import os

from zcore.errors import NodeExistsError, StoreError
from zcore.stores import tree
from zcore.stores.atomic import sync_directory
from zcore.stores.keys import TEMPORARY

_MAX_NAME = 200     # bytes; file systems take 255
_MAX_TRIES = 100


_JOURNAL = "journal"


def is_alive(directory):
    """Whether a process is building in a directory of such a name: the journal in it is locked."""
    try:
        fd = os.open(os.path.join(directory, _JOURNAL), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _boot():
    """Return what differs after the machine was started anew, where the system tells it.

    What was written before may not have reached the disk, whatever the journal says.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


class Building:
    """What is built to become the directory `place`.

    Parameters
    ----------
    place : str
        Absolute.
    order : dict
        What is copied and how, as JSON has it: only what was begun by an equal one is gone on with.
    fsync : bool
        The new name has reached the disk when `finish` returns.

    Attributes
    ----------
    node : str
        The directory in which the node is built.
    between : str
        A directory for what is needed meanwhile.
    is_begun : bool
        A process that was killed has begun it.
    done : set of str
        What `mark` was told, also by a process that was killed.

    Raises
    ------
    StoreError
        Another process builds the same, or the directory cannot be made.
    """

    def __init__(self, place, order, fsync=False):
        parent, name = os.path.split(place)
        if len(os.fsencode(name)) > _MAX_NAME:
            name = hashlib.sha256(os.fsencode(name)).hexdigest()
        self.place = place
        self._fsync = fsync
        self._container = os.path.join(parent, f"{TEMPORARY}copy.{name}")
        self._journal = os.path.join(self._container, _JOURNAL)
        self.node = os.path.join(self._container, "node")
        self.between = os.path.join(self._container, "between")
        self.done = set()
        self.is_begun = False
        self._fd = -1
        self._start = 0     # of the marks in the journal
        try:
            self._take()
            self._take_over(json.dumps(order if fsync else {**order, "boot": _boot()}, sort_keys=True))
        except BaseException as exc:
            self.leave()
            if isinstance(exc, StoreError) or not isinstance(exc, OSError):
                raise
            raise StoreError(f"cannot build {place}: {exc.strerror}", key=place, errno=exc.errno) from exc

    def _take(self):
        """Open the journal and lock it."""
        for _ in range(_MAX_TRIES):
            os.makedirs(self._container, exist_ok=True)
            try:
                self._fd = os.open(self._journal, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(self._fd), os.stat(self._journal)):
                    return
            except BlockingIOError as exc:
                raise StoreError(f"{self.place} is being copied to by another process or thread", key=self.place,
                                 errno=errno.EWOULDBLOCK) from exc
            except FileNotFoundError:
                pass     # somebody else was done with it in between
            self.leave()
        raise StoreError(f"cannot build {self.place}: its journal goes as soon as it is made", key=self.place)

    def _take_over(self, order):
        """Go on with what is there, if it is for this very order; else begin anew."""
        self._start = len(order.encode()) + 1
        with open(self._journal, "rb") as file:
            lines = file.read().split(b"\n")
        # What follows the last line feed was not written to its end. Without a node the process was killed when it was
        # done, and what the marks tell of has got its name.
        if len(lines) > 1 and lines[0] == order.encode() and os.path.isdir(self.node):
            self.is_begun = True
            self.done = {line.decode() for line in lines[1:-1]}
            if lines[-1]:
                os.write(self._fd, b"\n")
            for directory in (self.node, self.between):
                tree.remove_temporary(directory, math.inf)     # of the process that was killed
            return
        # The marks first, as whoever made them may go on when this one was killed.
        os.ftruncate(self._fd, 0)
        for directory in (self.node, self.between):
            tree.remove_directory(directory)
        os.write(self._fd, order.encode() + b"\n")

    def mark(self, work):
        """Note that a piece of work, text without line feeds, is done: what it has made is on its place."""
        self.done.add(work)
        with self._faults("write", self._journal):
            os.write(self._fd, work.encode() + b"\n")

    def make_node(self):
        """Make the directory of the node, unless it is there."""
        with self._faults("make", self.node):
            os.makedirs(self.node, exist_ok=True)

    @contextlib.contextmanager
    def _faults(self, action, path):
        """Return a context manager that makes a StoreError of an OSError."""
        try:
            yield
        except OSError as exc:
            raise StoreError(f"cannot {action} {path}: {exc.strerror}", key=self.place, errno=exc.errno) from exc

    def forget(self):
        """Take back all marks."""
        self.is_begun = False
        self.done = set()
        with self._faults("write", self._journal):
            os.ftruncate(self._fd, self._start)

    def drop_between(self):
        """Remove what was needed meanwhile."""
        with self._faults("remove", self.between):
            tree.remove_directory(self.between)

    def finish(self, replace):
        """Give what was built its name.

        Parameters
        ----------
        replace : bool
            Put what has the name aside first, and remove it. There is no moment at which a part is there, but one in
            which nothing is.

        Raises
        ------
        NodeExistsError
            Something else than an empty directory has the name, and `replace` is false.
        """
        try:
            if replace and os.path.lexists(self.place):
                os.rename(self.place, os.path.join(self._container, f"old.{os.urandom(8).hex()}"))
            os.rename(self.node, self.place)
            if self._fsync:
                sync_directory(os.path.dirname(self.place))
        except OSError as exc:
            if exc.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                raise NodeExistsError(f"something stands at {self.place} already", path=self.place) from exc
            raise StoreError(f"cannot make {self.place}: {exc.strerror}", key=self.place, errno=exc.errno) from exc
        self.discard()

    def discard(self):
        """Remove what was built, or what is left of it."""
        # First of all the marks: a kill in between leaves a part of what they tell of.
        with self._faults("remove", self._container):
            os.ftruncate(self._fd, 0)
            tree.remove_directory(self._container)

    def leave(self):
        """Give the journal back; what was built stays."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            with self._faults("close", self._journal):
                os.close(fd)
