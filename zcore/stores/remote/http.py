"""Objects of HTTP servers that an untrusted document names: each address and each redirect is judged.

obstore follows redirects and resolves names without asking. This client first checks the addresses of a name, then
connects to one of these addresses. A redirect is another URL to be judged.

A server may also be slow, or never finish. One deadline holds for everything before the content: connecting, any number
of "100 Continue" answers, headers, redirects. Content must arrive at a minimum rate. The other bytes between two parts
of it, and the size of a whole object, are limited. The content of redirects and errors is not read.
"""
from __future__ import annotations

import http.client
import io
import operator
import re
import socket
import time
from _thread import RLock  # of threading, without its import time
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urljoin, urlsplit
from weakref import finalize

from zcore.errors import StoreError
from zcore.stores.base import renew_in_children, resolve_range
from zcore.stores.remote.client import (
    CONTENT_RANGE,
    MAX_WHOLE_NBYTES,
    Answer,
    Client,
    ElsewhereError,
    Head,
    check_absence,
)
from zcore.trust.addresses import is_near
from zcore.trust.urls import has_controls

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from zcore.stores.base import ByteRange

MAX_REDIRECTS = 5
TIMEOUT = 30.0             # seconds without a byte, and for everything before the content
SLACK = 60.0               # seconds after which content must have come at
MIN_RATE = 1 << 13         # so many bytes a second
RETRIES = 3
PAUSE = 0.2                # seconds before the first retry; each later one waits twice as long
MAX_IDLE = 64              # connections that are kept, of all servers
PART = 1 << 20             # bytes that are read at a time
MAX_HEAD_NBYTES = 1 << 18  # before the content, or between two parts of it
MAX_ENDLESS_NBYTES = 1 << 28    # of an object that is read to its end, if the server does not tell its size
MAX_SKIPPED_NBYTES = 2**31 - 1  # before a part, if the server ignores ranges

_PASSING = frozenset((429, 500, 502, 503, 504))
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_NOT_QUOTED = r"%!#$&'()*+,/:;=?@[]~"


class Permit(NamedTuple):
    """Permission to request a URL: the headers to send, and whether the server may be this machine or its network."""

    headers: Mapping[str, str] = {}
    anywhere: bool = True


class RefusedError(StoreError):
    """A URL, or an address of its host, may not be requested."""

    url: str | None


class _PassingError(StoreError):
    """An error that may be gone at the next try."""


class HttpClient(Client):
    """A client whose names are URLs.

    Parameters
    ----------
    judge : callable
        ``judge(url)`` returns the `Permit` of a URL, which may come from a redirect, or raises.
    timeout : float
        Seconds.
    retries : int
        After an error of the connection or of the server.

    Notes
    -----
    Proxies of the environment are not used, because a proxy resolves names and does not tell the address that it used.
    """

    def __init__(self, judge: Callable[[str], Permit], timeout: float = TIMEOUT, retries: int = RETRIES) -> None:
        self._judge = judge
        self._timeout = timeout
        self._retries = retries
        self._renew_locks()
        renew_in_children(self)

    def _renew_locks(self):
        # A child does not use the connections of its parent.
        # Reentrant: a signal handler may read.
        self._lock = RLock()
        self._idle = []     # the last one was used last
        # Not by __del__: the client and its judge are a cycle, which may be collected after the sockets.
        finalize(self, _close, self._idle)

    def get(self, name: str, byte_range: ByteRange | None) -> Answer | None:
        start, length = (0, None) if byte_range is None else byte_range
        if length == 0:
            head = self.head(name)
            return None if head is None else Answer(b"", *head)
        if start is None:
            asked = f"bytes=-{length}"
        elif byte_range is None:
            asked = None
        else:
            asked = f"bytes={start}-" + ("" if length is None else str(start + length - 1))
        return self._tried("GET", name, asked, lambda response: _answer(response, byte_range))

    def head(self, name: str) -> Head | None:
        def read(response):
            size = response.getheader("Content-Length")
            if size is None or not size.isdecimal():
                raise StoreError("the server does not tell the size")
            return Head(int(size), None)

        return self._tried("HEAD", name, None, read)

    def check_absence(self, url: str) -> None:
        """Raise an ElsewhereError if another library has not found an object because a redirect led it nowhere.

        Such libraries follow redirects, and do not tell. Other answers of the server are no matter here.
        """
        for method in ("HEAD", "GET"):
            try:
                self._tried(method, url, None, lambda response: True)
                return
            except (ElsewhereError, _PassingError):
                raise
            except StoreError:
                pass           # a server may refuse HEAD

    def _tried(self, method, url, asked, read):
        """Return ``read(response)``, or None for a missing object. Passing errors are retried."""
        for i in range(self._retries):
            try:
                return self._request(method, url, asked, read)
            except (OSError, http.client.HTTPException) as exc:
                if isinstance(exc, StoreError) and not isinstance(exc, _PassingError):
                    raise
            time.sleep(PAUSE * 2**i)
        return self._request(method, url, asked, read)

    def _request(self, method, url, asked, read):
        latest = time.monotonic() + self._timeout
        asked_url = url
        for _ in range(MAX_REDIRECTS + 1):
            permit = self._judge(url)
            server, target = _split(url)
            headers = {"Accept-Encoding": "identity", "User-Agent": "zcore", **permit.headers}
            if asked is not None:
                headers["Range"] = asked
            connection, response = self._response(url, server, permit, latest, method, target, headers=headers)
            try:
                if response.status in _REDIRECTS:
                    location = response.getheader("Location")
                    if location is None:
                        raise StoreError(f"HTTP status {response.status} without a location")
                    url = urljoin(url, location)
                    continue
                connection.expect_body()
                found = _checked(response, read)
                if found is None:
                    check_absence(asked_url, url)
                return found
            finally:
                self._give_back(server, permit, connection, response)
        raise ElsewhereError(f"more than {MAX_REDIRECTS} redirects, the last one to {url!r:.200}")

    def _response(self, url, server, permit, latest, *request, **keywords):
        """Return a connection and the head of the response to a request that is sent on it."""
        while True:
            connection, is_new = self._connection(url, server, permit)
            connection.expect_head(latest)
            try:
                connection.request(*request, **keywords)
                return connection, connection.getresponse()
            except BaseException as exc:
                connection.close()
                # The server may have closed a connection that was kept.
                if is_new or not isinstance(exc, ConnectionError):
                    raise

    def _connection(self, url, server, permit):
        """Return a connection to a server, and whether it is a new one."""
        with self._lock:
            for i in reversed(range(len(self._idle))):
                if self._idle[i][:2] == (server, permit.anywhere):
                    return self._idle.pop(i)[2], False
        _, host, port = server
        addresses = [item[4][0] for item in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        if not permit.anywhere:
            for address in addresses:
                if is_near(address):
                    raise RefusedError(f"the host {host!r} has the address {address}, of this machine, its link "
                                       "or its cloud", url=url)
        return _Connection(server, addresses, self._timeout), True

    def _give_back(self, server, permit, connection, response):
        # The next response begins after content that was read to its end, and only there.
        is_over = not response.will_close and (response.isclosed() or response.length == 0)
        response.close()
        if not is_over:
            connection.close()
            return
        with self._lock:
            self._idle.append((server, permit.anywhere, connection))
            # A document may name thousands of servers.
            given_up, self._idle[:-MAX_IDLE] = self._idle[:-MAX_IDLE], []
        _close(given_up)


class _Connection(http.client.HTTPConnection):
    """A connection to one of the addresses that were judged, whatever the name resolves to by then."""

    def __init__(self, server, addresses, timeout):
        self._is_encrypted = server[0] == "https"
        self.default_port = 443 if self._is_encrypted else 80
        super().__init__(server[1], server[2], timeout=timeout)
        self.response_class = partial(_Response, self)
        self._addresses = addresses

    def connect(self):
        error = None
        for address in self._addresses:
            try:
                self.sock = socket.create_connection((address, self.port), self.seconds_left())
                break
            except OSError as exc:
                error = exc
        else:
            raise error or OSError("the name has no address")
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._is_encrypted:
            self.sock.settimeout(self.seconds_left())
            self.sock = _tls_context().wrap_socket(self.sock, server_hostname=self.host)

    def expect_head(self, latest):
        """Begin a request. The head of its response must have arrived at the time `latest` of `monotonic`."""
        self._latest, self._began = latest, None
        self._n_came, self._room = 0, MAX_HEAD_NBYTES

    def expect_body(self):
        """Begin the content."""
        self._began, self._n_came = time.monotonic(), 0

    def expect_part(self, n_bytes):
        """Begin a part of up to `n_bytes` of content; the other bytes around it are limited."""
        self._room = n_bytes + MAX_HEAD_NBYTES

    def count(self, n_bytes):
        """Note that bytes have arrived."""
        self._n_came += n_bytes
        self._room -= n_bytes
        if self._room < 0:
            raise StoreError(f"more than {MAX_HEAD_NBYTES} bytes came that are no content")

    def seconds_left(self):
        """Return how long to wait for the next bytes."""
        now = time.monotonic()
        if self._began is None:
            left = self._latest - now
            if left <= 0:
                raise TimeoutError("timed out: the head of the answer took too long")
        else:
            left = self._began + SLACK + self._n_came / MIN_RATE - now
            if left <= 0:
                raise StoreError(f"{self._n_came} bytes came in more than {SLACK:.0f} seconds, slower than {MIN_RATE} "
                                 "bytes a second")
        return min(self.timeout, left)


class _Response(http.client.HTTPResponse):
    """A response whose bytes arrive within the limits of its connection."""

    def __init__(self, connection, sock, *args, **keywords):
        super().__init__(sock, *args, **keywords)
        self.connection = connection
        self.fp.close()
        self.fp = io.BufferedReader(_Wire(connection, sock))


class _Wire(io.RawIOBase):
    """The bytes of a socket, within the limits of a connection."""

    def __init__(self, connection, sock):
        self._connection, self._sock = connection, sock
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self):
        return True

    def readinto(self, buffer):
        self._sock.settimeout(self._connection.seconds_left())
        try:
            n_bytes = self._raw.readinto(buffer)
        except TimeoutError:
            self._connection.seconds_left()    # raises the reason if the deadline has passed
            raise
        self._connection.count(n_bytes)
        return n_bytes

    def close(self):
        self._raw.close()
        super().close()


@cache
def _tls_context():
    """Return the context that checks certificates, which takes long to make."""
    import ssl

    return ssl.create_default_context()


def _close(idle):
    for _, _, connection in idle:
        connection.close()


def _split(url):
    """Return (scheme, host, port), and the target of a request there."""
    if has_controls(url):
        # urlsplit drops some of them, and the result would be another URL than the one that was judged.
        raise RefusedError(f"{url!r:.200} has control characters")
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    if scheme not in ("http", "https") or not parts.hostname:
        raise RefusedError(f"{url!r:.200} is no URL of an HTTP server")
    port = parts.port or (443 if scheme == "https" else 80)
    target = quote(parts.path or "/", safe=_NOT_QUOTED)
    if parts.query:
        target += f"?{quote(parts.query, safe=_NOT_QUOTED)}"
    return (scheme, parts.hostname, port), target


def _checked(response, read):
    if response.status in (404, 410):
        return None
    if response.status in _PASSING:
        raise _PassingError(f"HTTP status {response.status} {response.reason}")
    if response.status not in (200, 206, 416):
        raise StoreError(f"HTTP status {response.status} {response.reason}")
    encoding = response.getheader("Content-Encoding") or "identity"
    if encoding != "identity":
        raise StoreError(f"it came encoded by {encoding!r:.40}, which was not requested")
    transfer = response.getheader("Transfer-Encoding") or "chunked"
    if transfer.lower() != "chunked":
        raise StoreError(f"it came transferred as {transfer!r:.40}")
    return read(response)


def _answer(response, byte_range):
    """Return the `Answer` in a response to the request for a byte range, or for all."""
    content_range = response.getheader("Content-Range") or ""
    is_to_the_end = byte_range is None or byte_range[1] is None
    if response.status == 416:
        found = re.match(r"bytes \*/(\d{1,18})\s*$", content_range)
        size = None if found is None else int(found[1])
        if size is None or byte_range is None or operator.ne(*resolve_range(byte_range, size)):
            raise StoreError("HTTP status 416 Range Not Satisfiable")
        return Answer(b"", size, None)
    if response.status == 206:
        found = CONTENT_RANGE(content_range)
        if found is None:
            raise StoreError(f"a part came with the invalid Content-Range {content_range!r:.60}")
        if found[3] == "*" and is_to_the_end:
            raise StoreError("a part came, of a whole of unknown size")
        first, stop = int(found[1]), int(found[2]) + 1
        size = stop if found[3] == "*" else int(found[3])
        if (first, stop) != resolve_range(byte_range, size):
            raise StoreError(f"bytes {first} to {stop} of {size} came")
        return Answer(_body(response, 0, stop - first, is_to_the_end), size, None)
    size = response.getheader("Content-Length")
    size = int(size) if size is not None and size.isdecimal() else None
    start, length = (0, None) if byte_range is None else byte_range
    stop = None
    if size is not None:
        start, stop = resolve_range(byte_range, size)
    elif start is None:
        raise StoreError("the server ignores ranges and does not tell the size")
    if start > MAX_SKIPPED_NBYTES:
        raise StoreError(f"the server ignores ranges, and at most {MAX_SKIPPED_NBYTES} bytes before a part are read")
    if size is None:
        data = _rest(response, start, length)
        return Answer(data, start + len(data), None)
    return Answer(_body(response, start, stop - start, is_to_the_end), size, None)


def _body(response, n_skipped, n_bytes, is_to_the_end):
    """Return bytes of the body, all of which must arrive. The bytes after them are not read."""
    if is_to_the_end and n_bytes > MAX_WHOLE_NBYTES:
        raise StoreError(f"it has {n_bytes} bytes, and at most {MAX_WHOLE_NBYTES} are read of an object that is read "
                         "as a whole")
    data = _rest(response, n_skipped, n_bytes)
    if len(data) != n_bytes:
        raise _PassingError(f"{len(data)} bytes came, {n_bytes} were promised")
    return data


def _rest(response, n_skipped, n_bytes):
    """Return bytes of the body, fewer if it ends; with `n_bytes` None all of them, which are limited."""
    # Not a list of parts: a server may send two bytes at a time, and an object for each takes thirty times as much.
    n, data = 0, bytearray()
    stop = n_skipped + (MAX_ENDLESS_NBYTES + 1 if n_bytes is None else n_bytes)
    # Not `read`: it returns only when all bytes have arrived, however slowly.
    while n < stop:
        n_asked = min(PART, stop - n)
        response.connection.expect_part(n_asked)
        part = response.read1(n_asked)
        if not part:
            break
        if n + len(part) > n_skipped:
            data += part[max(0, n_skipped - n):]
        n += len(part)
    if n_bytes is None and n == stop:
        raise StoreError(f"more than {MAX_ENDLESS_NBYTES} bytes came, and no more are read of an object whose size "
                         "is not told")
    return bytes(data)
