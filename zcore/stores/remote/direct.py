"""Many objects over plain ``http://`` by zcore's own sockets: the ordinary answer to an ordinary request, and no other.

A request of a general client costs more CPU than the transfer of 64 KB, and a thread for each request costs as much
again. Here one thread has many requests in flight, each on a connection that is kept, and takes the answers as they
come. An answer has status 206 or 404 and tells its length. Everything else is `UNUSUAL`: another status, a redirect, a
transfer or content encoding, a header that is malformed or given twice, fewer or more bytes than promised, a connection
that breaks or is too slow. The caller then asks again by another client, which decides and words errors. So this one
must be right where it answers, and need not answer.

Nothing is allocated by a server's word alone: a length must fit the range that was asked for, and memory that no byte
has come for stays untouched.

Connections are kept by the process, not by a store: a store that is opened for each task finds those of the last one.
"""
from __future__ import annotations

import atexit
import itertools
import os
import re
import select
import socket
import time
from errno import EINPROGRESS
from typing import TYPE_CHECKING
from weakref import WeakSet

import numpy as np

from zcore.stores.base import resolve_range
from zcore.stores.remote.client import CONTENT_RANGE, UNUSUAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from zcore.stores.base import ByteRange

MAX_NBYTES = 1 << 26       # of an answer; more is for a client that goes on after an interruption
MAX_HEAD_NBYTES = 1 << 14
ROOM_NBYTES = 1 << 22      # of an answer, allocated before any of it has come
MAX_IDLE = 32              # connections that are kept, of a server
MAX_SERVERS = 8            # whose connections are kept
MAX_IDLE_SECONDS = 60
MAX_UNUSUAL = 8            # answers in a row; then no request is made for a while
PAUSE = 60.0               # seconds
LOOK = 50                  # milliseconds, after which a caller can stop

_head = re.compile(rb"HTTP/1\.1 (206|404) [\t -~]*\r\n(?:[!#-'*+.^-z|~0-9A-Z-]+:[\t -~]*\r\n)+\r\n").fullmatch
# The header fields that say where an answer ends and how its bytes are encoded.
_fields = re.compile(rb"\r\n(content-(?:length|range|encoding)|transfer-encoding|connection|upgrade|trailer):"
                     rb"[\t ]*([\t -~]*?)[\t ]*(?=\r)", re.IGNORECASE).findall
# Connections that are kept, by server: pairs of a time, since when, and a socket. And all that are open.
_idle = {}
_open = WeakSet()
_n_forks = 0               # between the first process and this one
_KNOWN = frozenset((b"content-length", b"content-range", b"connection"))


class UnusualError(Exception):
    """The request cannot be made here, or its answer is not an ordinary one."""


class _StaleError(Exception):
    """The server has closed a connection that was kept, before it answered."""


class Direct:
    """Requests to one server.

    Parameters
    ----------
    host : str
    port : int
    authority : str
        Both as in the URL.
    target_of : callable
        ``target_of(name)`` returns the target of the request for an object, or raises UnusualError.
    connect_timeout, timeout : float
        Seconds, for a connection and for a whole answer.
    """

    def __init__(self, host: str, port: int, authority: str, target_of: Callable[[str], str],
                 connect_timeout: float, timeout: float) -> None:
        self.timeout: float = timeout
        self._address = host, port
        self._end = f" HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: zcore\r\nAccept: */*\r\nRange: bytes="
        self._target_of = target_of
        self._connect_timeout = connect_timeout
        self._numbers = itertools.count(os.getpid())
        self._addresses = 0.0, ()      # until when they count, and those of the host
        self._n_unusual = 0
        self._not_before = 0.0

    def stream(self, requests: Iterator[tuple[Any, str, ByteRange] | None], n: int, stopped: Callable[[], bool],
               ended: Callable[[int], object]) -> Iterator[list[tuple[Any, Any]]]:
        """Return an iterator over lists of pairs of a mark and a value, in the order in which answers come.

        A value is a memoryview with the bytes of the range that lie in the object, valid until the next list is asked
        for; or None if there is no such object; or UNUSUAL if another client must say.

        Parameters
        ----------
        requests : iterator
            Triples of a mark, a name, and a range with a start and a length above 0. None says that there is no request
            at the moment; it may come only while others are in flight.
        n : int
            Requests in flight at a time, at most.
        stopped : callable
            ``stopped()`` returns whether no answer is wanted any more. Then the iterator ends.
        ended : callable
            ``ended(n)`` is called when `n` requests have been answered, before others are made and before the answers
            are returned. It is not called for those that are UNUSUAL.
        """
        window = _Window(self, requests, n)
        try:
            window.fill()
            while window.came or window.flying and not stopped():
                if came := window.came:
                    window.came = []
                    yield [(exchange.mark, value) for exchange, value in came]
                    window.rooms += [exchange.room for exchange, _ in came if exchange.room is not None]
                for number in window.ready() if window.flying else ():
                    window.receive(number)
                ended(sum([value is not UNUSUAL for _, value in window.came]))
                # Other requests before these values are used, so that the server works while the caller does.
                window.fill()
        finally:
            # What is left of an answer must not be taken for the next one.
            for exchange in window.flying.values():
                exchange.sock.close()

    def send(self, exchange: _Exchange) -> None:
        """Send the request of an exchange on a connection that is kept, or begin a new connection for it."""
        if time.monotonic() < self._not_before:
            raise UnusualError
        start, length = exchange.part
        target = self._target_of(exchange.name)
        exchange.request = f"GET {target}{self._end}{start}-{start + length - 1}\r\n\r\n".encode("ascii")
        exchange.is_kept = True
        while (sock := self._kept()) is not None:
            exchange.sock = sock
            try:
                exchange.send(self.timeout)
                return
            except ConnectionError:
                sock.close()
        exchange.is_kept = False
        exchange.sock = self._connecting()
        exchange.latest = time.monotonic() + self._connect_timeout

    def note(self, value: object) -> None:
        """Count answers that are not ordinary: after `MAX_UNUSUAL` of them no request is made for a while."""
        self._n_unusual = self._n_unusual + 1 if value is UNUSUAL else 0
        if self._n_unusual >= MAX_UNUSUAL:
            self._n_unusual = 0
            self._not_before = time.monotonic() + PAUSE

    def keep(self, sock: socket.socket) -> None:
        """Keep a connection for another request."""
        idle = _idle.get(self._address)
        if idle is None:
            while len(_idle) >= MAX_SERVERS:
                _close(_idle.pop(next(iter(_idle), None), []))
            idle = _idle.setdefault(self._address, [])
        idle.append((time.monotonic(), sock))
        if len(idle) > MAX_IDLE:
            _close(idle, 1)

    def _kept(self):
        """Return a connection that is still open, and has nothing to read; or None."""
        idle = _idle.get(self._address, [])
        while True:
            try:
                since, sock = idle.pop()
            except IndexError:
                return None
            try:
                if time.monotonic() - since < MAX_IDLE_SECONDS:
                    # Its end, or a second answer.
                    sock.recv(1, socket.MSG_PEEK)
            except BlockingIOError:
                return sock
            except OSError:
                pass
            sock.close()

    def _connecting(self):
        """Begin a connection: to each address of the host in turn, as they may be several servers."""
        now = time.monotonic()
        if now > self._addresses[0]:
            self._addresses = now + MAX_IDLE_SECONDS, socket.getaddrinfo(*self._address, type=socket.SOCK_STREAM)
        found = self._addresses[1]
        family, kind, protocol, _, address = found[next(self._numbers) % len(found)]
        sock = socket.socket(family, kind, protocol)
        _open.add(sock)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # Not waited for, so that all connections of a window come at the same time.
            error = sock.connect_ex(address)
            if error not in (0, EINPROGRESS):
                raise OSError(error, os.strerror(error))
        except BaseException:
            sock.close()
            raise
        return sock


class _Window:
    """The exchanges of one thread.

    Attributes
    ----------
    flying : dict of int to _Exchange
        By the descriptors of their connections.
    came : list of (_Exchange, value)
        Those that have ended.
    rooms : list of memoryview
        Memory for other answers.
    """

    def __init__(self, direct: Direct, requests: Iterator[tuple[Any, str, ByteRange] | None], n: int) -> None:
        self.flying: dict[int, _Exchange] = {}
        self.came: list[tuple[_Exchange, Any]] = []
        self.rooms: list[memoryview] = []
        self._direct = direct
        self._requests = requests
        self._n = n
        self._poll = select.poll()
        self._n_forks = _n_forks

    def fill(self) -> None:
        """Send requests, until as many as may be are in flight."""
        self._leave_parent()
        while len(self.flying) < self._n and (request := next(self._requests, None)) is not None:
            self._send(_Exchange(*request))

    def _leave_parent(self):
        """In a child that was forked meanwhile: leave what was in flight, whose connections are closed, to `get`."""
        if self._n_forks != _n_forks:
            self.came += [(exchange, UNUSUAL) for exchange in self.flying.values()]
            self.flying.clear()

    def ready(self) -> list[int]:
        """Return the descriptors of exchanges for which something has come, or whose time is over."""
        found = [number for number, _ in self._poll.poll(LOOK)]
        if not found:
            now = time.monotonic()
            found = [number for number, exchange in self.flying.items() if now > exchange.latest]
        return found

    def receive(self, number: int) -> None:
        """Take what has come for an exchange. If that is its end, it goes to `came`."""
        self._leave_parent()
        exchange = self.flying.get(number)
        if exchange is None:
            return
        is_stale, value = False, UNUSUAL
        try:
            if exchange.request is not None:
                exchange.connected(self._direct.timeout)
                self._poll.modify(number, select.POLLIN)
                return
            if exchange.receive():
                value = exchange.value()
            elif time.monotonic() < exchange.latest:
                return
        except _StaleError:
            is_stale = True
        except (OSError, UnusualError):
            pass
        if self.flying.pop(number, None) is None:
            return      # forked meanwhile
        self._poll.unregister(number)
        if value is UNUSUAL or exchange.is_last:
            exchange.sock.close()
        else:
            self._direct.keep(exchange.sock)
        if is_stale:
            self._send(exchange)
        else:
            self._end(exchange, value)

    def _send(self, exchange):
        try:
            if self._n_forks != _n_forks:
                # The client that signs does not work in a child.
                raise UnusualError
            self._direct.send(exchange)
        except (OSError, UnusualError, UnicodeError):
            if exchange.sock is not None:
                exchange.sock.close()
            self._end(exchange, UNUSUAL)
            return
        exchange.take_room(self.rooms)
        number = exchange.sock.fileno()
        if number < 0:      # closed in a child that was forked meanwhile
            self._end(exchange, UNUSUAL)
            return
        self.flying[number] = exchange
        self._poll.register(number, select.POLLIN if exchange.request is None else select.POLLOUT)

    def _end(self, exchange, value):
        self._direct.note(value)
        self.came.append((exchange, value))


class _Exchange:
    """A request and its answer.

    Attributes
    ----------
    sock : socket
    request : bytes or None
        What is to be sent when there is a connection.
    is_kept : bool
        Whether the connection had been kept, so that the server may have closed it before the request came.
    is_last, is_absent : bool
        Whether the server closes the connection after this answer, and whether there is no such object.
    latest : float
        When its time is over.
    room : memoryview
        Memory for the answer, head and content.
    """

    __slots__ = ("mark", "name", "part", "sock", "request", "is_kept", "is_last", "is_absent", "latest", "room", "_n",
                 "_begin", "_stop")

    def __init__(self, mark: Any, name: str, part: ByteRange) -> None:
        self.mark: Any = mark
        self.name: str = name
        self.part: Any = part
        self.sock: Any = None
        self.request: bytes | None = None
        self.is_kept: bool = False
        self.is_last: bool = False
        self.is_absent: bool = False
        self.latest: float = 0.0
        self.room: Any = None
        self._n = self._begin = self._stop = 0

    def take_room(self, rooms: list[memoryview]) -> None:
        """Take memory from a list, or new one. What no byte comes for stays untouched."""
        if self.room is None:
            n = MAX_HEAD_NBYTES + min(self.part[1], ROOM_NBYTES)
            self.room = rooms.pop() if rooms and len(rooms[-1]) >= n else memoryview(np.empty(n, "u1"))

    def send(self, timeout: float) -> None:
        """Send the request."""
        self.sock.sendall(self.request)
        self.request = None
        self.latest = time.monotonic() + timeout

    def connected(self, timeout: float) -> None:
        """Send the request, when the connection has come or has failed."""
        error = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise OSError(error, os.strerror(error))
        self.send(timeout)

    def receive(self) -> bool:
        """Take what has come; returns whether that is all."""
        if self._n == len(self.room):
            # Of a large object. As much again and more has come already.
            room = memoryview(np.empty(min(self._stop, 4 * self._n), "u1"))
            room[:self._n] = self.room
            self.room = room
        try:
            came = self.sock.recv_into(self.room[self._n:self._stop or None])
        except BlockingIOError:
            return False
        except ConnectionError:
            came = 0
        if not came:
            if self.is_kept and not self._n:
                raise _StaleError
            raise UnusualError
        self._n += came
        if not self._stop:
            head = bytes(self.room[:min(self._n, MAX_HEAD_NBYTES)])
            begin = head.find(b"\r\n\r\n") + 4
            if begin < 4:
                if len(head) == MAX_HEAD_NBYTES:
                    raise UnusualError
                return False
            self._begin, self._stop = begin, begin + self._length_of(head[:begin])
        if self._n > self._stop:
            raise UnusualError
        return self._n == self._stop

    def _length_of(self, head):
        """Return the length of the content that follows a head."""
        found = _head(head)
        if found is None:
            raise UnusualError
        lines = _fields(head)
        fields = {name.lower(): value.decode("ascii") for name, value in lines}
        length = fields.get(b"content-length", "")
        if len(fields) != len(lines) or not _KNOWN.issuperset(fields) or not length.isdigit() or len(length) > 18:
            raise UnusualError
        length = int(length)
        self.is_last = fields.get(b"connection", "keep-alive").lower() != "keep-alive"
        self.is_absent = found[1] == b"404"
        if self.is_absent:
            if length > MAX_HEAD_NBYTES:
                raise UnusualError
            return length
        part = CONTENT_RANGE(fields.get(b"content-range", ""))
        if part is None or part[3] == "*":
            raise UnusualError
        first, stop = int(part[1]), int(part[2]) + 1
        if (first, stop) != resolve_range(self.part, int(part[3])) or length != stop - first:
            raise UnusualError
        return length

    def value(self) -> memoryview | None:
        """Return the content, or None if there is no such object."""
        return None if self.is_absent else self.room[self._begin:self._stop]


def _close(idle, n=MAX_IDLE + 1):
    """Close the oldest connections of a list."""
    try:
        for _ in range(n):
            idle.pop(0)[1].close()
    except IndexError:
        pass    # another thread may take them meanwhile


def _close_all():
    for sock in list(_open):
        sock.close()
    _idle.clear()


def _after_fork_in_child():
    """What this process waits for on its parent's connections is asked for again."""
    global _n_forks
    _n_forks += 1
    _close_all()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_after_fork_in_child)
