"""Builds a copy in a directory beside its own (`zcore.stores.directory.beside`); a later call can go on with it.

::

    .__zc_tmp.copy.<name>/
        request          what is copied and how, a line of JSON
        node.<n>/        the copy
        between.<n>/     an array between two passes

If the process is killed, all of this stays. The next one that copies the same source in the same way to the same place
goes on with it: an object appears whole, so one that is there is done. Any other one begins anew.
"""
from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from typing import TYPE_CHECKING

from zcore.descriptors import open_descriptor
from zcore.stores.directory import beside, cleanup

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_MAX_NAME = 200     # bytes; file systems take 255


class Work:
    """What an earlier call has done of a copy, and the folder of its intermediate array. This one keeps nothing.

    Attributes
    ----------
    is_begun : bool
        Something may be done: objects that are there are whole.
    between : str or None
        The folder, if the copy has one of its own.
    """

    is_begun: bool = False
    between: str | None = None

    def drop_between(self) -> None:
        """Remove the intermediate array."""

    def discard(self) -> None:
        """Remove all, as it is worthless; what is not kept is removed when the copy fails."""


def container_of(place: str) -> str:
    """Return the container in which a copy to the directory `place` is built."""
    return beside.container_of(place, _label_of(place))


def _label_of(place):
    name = os.path.basename(place)
    return name if len(os.fsencode(name)) <= _MAX_NAME else hashlib.sha256(os.fsencode(name)).hexdigest()


def _boot():
    """Return a text that changes when the machine is started again, if the system has one.

    Files that were written before may not have reached the disk: those of a copy are settled when all are there.
    """
    with contextlib.suppress(OSError):
        return _content("/proc/sys/kernel/random/boot_id").decode().strip()
    return ""


def _content(path):
    """Return the bytes of a file. When the interpreter exits, the built-in `open` is gone, and finalizers may copy."""
    fd = open_descriptor(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(fd, 1 << 16):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(fd)


class Building(beside.Beside, Work):
    """The directory of a copy to `place`; `leave` keeps what is done for a later call, `discard` removes it.

    Parameters
    ----------
    place : str
        Absolute.
    request : dict
        What is copied and how, values of JSON. Only work that was begun with equal ones is continued.
    fsync : bool
        The new name has reached the disk when `put` returns.

    Attributes
    ----------
    between : str
        A directory for temporary arrays.
    is_begun : bool
        A process that was killed has begun the work.

    Raises
    ------
    StoreError
        Another process builds the same, or the directory cannot be made.
    """

    def __init__(self, place: str, request: Mapping[str, Any], fsync: bool = False) -> None:
        super().__init__(place, fsync, _label_of(place))
        self._request = json.dumps({**request, "boot": _boot()}, sort_keys=True).encode() + b"\n"
        try:
            self.acquire()
            with beside.faults("build", place):
                self._take_over()
        except BaseException:
            self.leave()
            raise

    def _take_over(self):
        """Go on with the content if it was begun with the same request; else begin anew."""
        self.between = self.name_of("between")
        path = self._request_path
        if os.path.isdir(self.node) and os.path.exists(path) and _content(path) == self._request:
            self.is_begun = True
            for directory in (self.node, self.between):
                cleanup.remove_temporary(directory, math.inf, cleanup.remove_directory)     # of the killed process
            return
        # The request first: if this process is killed, the one that has made it may go on.
        for name in sorted(os.listdir(self.container), key=lambda name: name != "request"):
            cleanup.remove(os.path.join(self.container, name))
        self._write(path, self._request)

    @property
    def _request_path(self):
        return os.path.join(self.container, "request")

    def put(self, replace: bool) -> None:
        """Give the copy its name; see `Beside.put`.

        The request goes first: afterwards `node` is the directory that was replaced, and nobody may go on with that.
        """
        with beside.faults("make", self.place):
            copy = os.stat(self.node).st_ino
            os.unlink(self._request_path)
        try:
            super().put(replace)
        except BaseException:
            with contextlib.suppress(OSError):
                if os.stat(self.node).st_ino == copy:
                    self._write(self._request_path, self._request)
            raise

    def _write(self, path, content):
        fd = open_descriptor(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC)
        try:
            while content:
                content = content[os.write(fd, content):]
        finally:
            os.close(fd)

    def drop_between(self) -> None:
        """Remove the temporary arrays."""
        with beside.faults("clean up", self.between):
            cleanup.remove_directory(self.between)
