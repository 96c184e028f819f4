"""A block device that writes a log: a loop device whose file is on a small FUSE file system, served by this module.

As a program, `python block_log.py IMAGE LOG FOLDER`: the file FOLDER/disk has the bytes of IMAGE. Each write to it goes
to LOG when it is done, and so does each flush. Writes take different times, as those of a disk do that is slow and does
not keep their order. The kernel's FUSE protocol is spoken as /usr/include/linux/fuse.h describes it, version 7.31.
"""
from __future__ import annotations

import ctypes
import functools
import os
import random
import struct
import sys
import threading
import time
from typing import NamedTuple

WRITE, FLUSH = 0, 1
_RECORD = struct.Struct("<BxxxIqd")     # what, number of bytes, offset, seconds

_HEADER = struct.Struct("<IIQQIIII")     # length, operation, unique, node, user, group, process, padding
_ANSWER = struct.Struct("<IiQ")          # length, error, unique
_ATTRIBUTES = struct.Struct("<QQQQQQIIIIIIIIII")
_ENTRY = struct.Struct("<QQQQII")
(_LOOKUP, _FORGET, _GETATTR, _SETATTR, _OPEN, _READ, _WRITE, _STATFS, _RELEASE, _FSYNC, _FLUSH, _INIT, _OPENDIR,
 _RELEASEDIR, _FALLOCATE) = 1, 2, 3, 4, 14, 15, 16, 17, 18, 20, 25, 26, 27, 29, 43
_ENOENT, _ENOSYS = 2, 38
_BIG_WRITES = 1 << 5
_ROOT, _DISK = 1, 2
_MAX_WRITE = 1 << 20
_DELAYS = 0, 0, 0.002, 0.05     # seconds that a write takes


class Event(NamedTuple):
    """A write, or a flush, whose `data` are empty."""

    what: int
    offset: int
    data: bytes
    seconds: float


def events_of(path: str) -> list[Event]:
    """Return what a log tells, as far as it is whole."""
    events = []
    with open(path, "rb") as log:
        while len(head := log.read(_RECORD.size)) == _RECORD.size:
            what, n_bytes, offset, seconds = _RECORD.unpack(head)
            data = log.read(n_bytes)
            if len(data) == n_bytes:
                events.append(Event(what, offset, data, seconds))
    return events


class Server:
    """Answers the kernel's requests about one file."""

    def __init__(self, image: str, log: str, folder: str) -> None:
        self._image = os.open(image, os.O_RDWR)
        self._log = open(log, "wb", buffering=0)
        self._size = os.fstat(self._image).st_size
        self._device = os.open("/dev/fuse", os.O_RDWR)
        self._chance = random.Random(1)
        self._lock = threading.Lock()
        libc = ctypes.CDLL(None, use_errno=True)
        options = f"fd={self._device},rootmode=40000,user_id=0,group_id=0".encode()
        if libc.mount(b"zcore_log", os.fsencode(folder), b"fuse", 0, options):
            raise OSError(ctypes.get_errno(), "cannot mount a FUSE file system", folder)

    def serve(self) -> None:
        """Answer until the file system is unmounted."""
        while True:
            try:
                request = os.read(self._device, _MAX_WRITE + 4096)
            except OSError:
                return
            _, operation, unique, node, *_ = _HEADER.unpack_from(request)
            work = functools.partial(self._do, operation, node, unique, request[_HEADER.size:])
            if operation == _WRITE:
                threading.Timer(self._chance.choice(_DELAYS), work).start()
            else:
                work()

    def _do(self, operation, node, unique, body):
        answer = self._answer(operation, node, body)
        if answer is not None:
            error, body = (answer, b"") if isinstance(answer, int) else (0, answer)
            os.write(self._device, _ANSWER.pack(_ANSWER.size + len(body), -error, unique) + body)

    def _answer(self, operation, node, body):
        """Return the body of an answer, an errno, or None, if there is no answer."""
        if operation == _INIT:
            major, minor, ahead, _ = struct.unpack_from("<IIII", body)
            return struct.pack("<IIIIHHIIHHII24x", 7, min(minor, 31), ahead, _BIG_WRITES, 12, 8, _MAX_WRITE, 1,
                               _MAX_WRITE >> 12, 0, 0, 0)
        if operation == _LOOKUP:
            return _ENTRY.pack(_DISK, 0, 0, 0, 0, 0) + self._attributes(_DISK) if body == b"disk\0" else _ENOENT
        if operation in (_GETATTR, _SETATTR):
            return struct.pack("<QII", 0, 0, 0) + self._attributes(node)
        if operation in (_OPEN, _OPENDIR):
            return struct.pack("<QII", 0, 0, 0)
        if operation == _READ:
            _, offset, n_bytes = struct.unpack_from("<QQI", body)
            return os.pread(self._image, n_bytes, offset)
        if operation == _WRITE:
            _, offset, n_bytes = struct.unpack_from("<QQI", body)
            data = body[len(body) - n_bytes:]
            with self._lock:
                os.pwrite(self._image, data, offset)
                self._note(WRITE, data, offset)
            return struct.pack("<II", n_bytes, 0)
        if operation == _FSYNC:
            with self._lock:
                self._note(FLUSH)
            return b""
        if operation == _STATFS:
            return struct.pack("<QQQQQIIII24x", self._size >> 12, 0, 0, 1, 0, 4096, 255, 4096, 0)
        if operation in (_FLUSH, _RELEASE, _RELEASEDIR):
            return b""
        return None if operation == _FORGET else _ENOSYS

    def _attributes(self, node):
        size, mode = (0, 0o40755) if node == _ROOT else (self._size, 0o100644)
        return _ATTRIBUTES.pack(node, size, size >> 9, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def _note(self, what, data=b"", offset=0):
        self._log.write(_RECORD.pack(what, len(data), offset, time.time()) + data)


if __name__ == "__main__":
    server = Server(*sys.argv[1:])
    print("mounted", flush=True)
    server.serve()
