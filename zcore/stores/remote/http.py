"""Objects of HTTP servers whose names a stranger has written down: each address and each redirect is judged.

obstore follows redirects by itself, and resolves names by itself. Here a server is asked only after the addresses of
its name were looked at, at one of these very addresses, and a redirect is another URL to be judged.

A server may also be slow, or never come to an end. One deadline holds for all that stands before the content: looking
for a connection, any number of answers "100 Continue", headers, redirects. Content has to come at a least rate, between
two parts of it only so much else may come, and how much is read of a whole object has a limit. The content of redirects
and errors is not read at all.
"""
from __future__ import annotations

import http.client
import io
import re
import socket
import time
from _thread import RLock  # of threading, without its import time
from collections import namedtuple
from functools import cache, partial
from urllib.parse import quote, urljoin, urlsplit
from weakref import finalize

from zcore.errors import StoreError
from zcore.stores.forks import renew_in_children
from zcore.stores.remote.client import MAX_WHOLE_NBYTES, Answer, Client, Standing
from zcore.trust.addresses import is_near
from zcore.trust.urls import has_controls

MAX_REDIRECTS = 5
TIMEOUT = 30.0             # seconds without a byte, and for all that comes before the content
SLACK = 60.0               # seconds after which
MIN_RATE = 1 << 13         # so many bytes a second have to have come, or a server might take as long as it likes
RETRIES = 3
PAUSE = 0.2                # seconds before the first of them; each one after waits twice as long
MAX_IDLE = 32              # connections that are kept, of all servers
PART = 1 << 20             # bytes that are read at a time
MAX_HEAD_NBYTES = 1 << 18  # that come before the content, or between two parts of it
MAX_ENDLESS_NBYTES = 1 << 28    # of an object that is read to its end, whose size the server does not tell
MAX_SKIPPED_NBYTES = 2**31 - 1  # before a part, where the server heeds no ranges

_PASSING = frozenset((429, 500, 502, 503, 504))
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_content_range = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)\s*$").match
_ABOVE = r"%!#$&'()*+,/:;=?@[]~"

# What a judge says of a URL: headers that are sent there, and whether its server may be this machine or its network.
Permit = namedtuple("Permit", ("headers", "anywhere"), defaults=({}, True))


class RefusedError(StoreError):
    """A URL, or an address that its name stands for, is not one that may be asked."""

    fields = ("key", "errno", "url")


class HttpClient(Client):
    """A client whose names are URLs.

    Parameters
    ----------
    judge : callable
        ``judge(url)`` returns the `Permit` of a URL, the first one or one of a redirect, or raises.
    timeout : float
        Seconds.
    retries : int
        After a fault of the connection or of the server.

    Notes
    -----
    Proxies of the environment are not used: who resolves names for us cannot be asked which address it took.
    """

    def __init__(self, judge, timeout=TIMEOUT, retries=RETRIES):
        self._judge = judge
        self._timeout = timeout
        self._retries = retries
        self._renew_locks()
        renew_in_children(self)

    def _renew_locks(self):
        # Connections of the parent are not the child's to speak on, either.
        # Reentrant: a signal handler may read.
        self._lock = RLock()
        self._idle = {}
        # Not by __del__: who judges knows the client, too, and of such a circle sockets might be the first to go.
        finalize(self, _close, self._idle)

    def get(self, name, byte_range):
        start, length = (0, None) if byte_range is None else byte_range
        if length == 0:
            standing = self.standing(name)
            return None if standing is None else Answer(b"", start or 0, standing.size, standing.tag)
        if start is None:
            asked = f"bytes=-{length}"
        elif byte_range is None:
            asked = None
        else:
            asked = f"bytes={start}-" + ("" if length is None else str(start + length - 1))
        return self._tried("GET", name, asked, lambda response: _answer(response, start, length))

    def standing(self, name):
        def read(response):
            size = response.getheader("Content-Length")
            if size is None or not size.isdecimal():
                raise StoreError("the server does not tell the size")
            return Standing(int(size), None)

        return self._tried("HEAD", name, None, read)

    def _tried(self, method, url, asked, read):
        """Return ``read(response)``, or None for what is not there; faults that pass are given time to."""
        for i in range(self._retries + 1):
            try:
                return self._request(method, url, asked, read)
            except _PassingError as exc:
                if i == self._retries:
                    raise StoreError(str(exc)) from exc
            except (OSError, http.client.HTTPException) as exc:
                if isinstance(exc, StoreError) or i == self._retries:
                    raise
            time.sleep(PAUSE * 2**i)
        raise AssertionError

    def _request(self, method, url, asked, read):
        latest = time.monotonic() + self._timeout
        for _ in range(MAX_REDIRECTS + 1):
            permit = self._judge(url)
            place, target = _split(url)
            connection, is_new = self._connection(place, permit, url)
            connection.expect_head(latest)
            response = None
            headers = {"Accept-Encoding": "identity", "User-Agent": "zcore", **permit.headers}
            if asked is not None:
                headers["Range"] = asked
            try:
                try:
                    connection.request(method, target, headers=headers)
                    response = connection.getresponse()
                except (http.client.RemoteDisconnected, ConnectionError):
                    if is_new:
                        raise
                    # The server has closed it meanwhile.
                    connection.close()
                    connection, _ = self._connection(place, permit, url, new=True)
                    connection.expect_head(latest)
                    connection.request(method, target, headers=headers)
                    response = connection.getresponse()
                if response.status in _REDIRECTS:
                    location = response.getheader("Location")
                    if location is None:
                        raise StoreError(f"HTTP status {response.status} without a place to go to")
                    url = urljoin(url, location)
                    continue
                connection.expect_body()
                return _checked(response, read)
            finally:
                self._give_back(place, permit, connection, response)
        raise StoreError(f"more than {MAX_REDIRECTS} redirects, the last one to {url!r:.200}")

    def _connection(self, place, permit, url, new=False):
        """Return a connection to a server, and whether it was made just now."""
        if not new:
            with self._lock:
                idle = self._idle.get((place, permit.anywhere))
                if idle:
                    connection = idle.pop()
                    if not idle:
                        del self._idle[place, permit.anywhere]
                    return connection, False
        scheme, host, port = place
        addresses = [item[4][0] for item in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        if not permit.anywhere:
            for address in addresses:
                if is_near(address):
                    raise RefusedError(f"the host {host!r} has the address {address}, of this machine, its link "
                                       "or its cloud",
                                       url=url)
        return _Connection(place, addresses, self._timeout), True

    def _give_back(self, place, permit, connection, response):
        # Only behind content that was read to its end may another answer begin.
        is_over = response is not None and not response.will_close and (response.isclosed() or response.length == 0)
        if response is not None:
            response.close()
        if not is_over:
            connection.close()
            return
        with self._lock:
            self._idle.setdefault((place, permit.anywhere), []).append(connection)
            if sum(map(len, self._idle.values())) <= MAX_IDLE:
                return
            # A document may name thousands of servers: those that were met last are met again.
            longest = next(iter(self._idle))
            connection = self._idle[longest].pop(0)
            if not self._idle[longest]:
                del self._idle[longest]
        connection.close()


class _Connection(http.client.HTTPConnection):
    """A connection to one of the addresses that were judged, whatever the name stands for by then."""

    def __init__(self, place, addresses, timeout):
        self._is_secret = place[0] == "https"
        self.default_port = 443 if self._is_secret else 80
        super().__init__(place[1], place[2], timeout=timeout)
        self.response_class = partial(_Response, self)
        self._addresses = addresses

    def connect(self):
        error = None
        for address in self._addresses:
            try:
                self.sock = socket.create_connection((address, self.port), self._seconds_left())
                break
            except OSError as exc:
                error = exc
        else:
            raise error or OSError("the name has no address")
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._is_secret:
            self.sock.settimeout(self._seconds_left())
            self.sock = _secrets().wrap_socket(self.sock, server_hostname=self.host)

    def expect_head(self, latest):
        """Note that a request begins whose answer has to have come up to its content at a time of `monotonic`."""
        self._latest, self._began = latest, None
        self._n_came, self._room = 0, MAX_HEAD_NBYTES

    def expect_body(self):
        """Note that content begins."""
        self._began, self._n_came = time.monotonic(), 0

    def expect_part(self, n_bytes):
        """Note that up to `n_bytes` of content are read now; what comes around them has a limit."""
        self._room = n_bytes + MAX_HEAD_NBYTES

    def read_into(self, sock, raw, buffer):
        """Return how many bytes came from a socket into a buffer; `raw` is the socket as a file."""
        sock.settimeout(self._seconds_left())
        try:
            n = raw.readinto(buffer)
        except TimeoutError:
            self._seconds_left()    # tells whose fault it is
            raise
        self._n_came += n
        self._room -= n
        if self._room < 0:
            raise StoreError(f"more than {MAX_HEAD_NBYTES} bytes came that are no content")
        return n

    def _seconds_left(self):
        """Return how long the next bytes are waited for."""
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
    """An answer whose bytes come within the limits of its connection."""

    def __init__(self, connection, sock, *args, **keywords):
        super().__init__(sock, *args, **keywords)
        self.connection = connection
        self.fp.close()
        self.fp = io.BufferedReader(_Wire(connection, sock))


class _Wire(io.RawIOBase):
    """The bytes of a socket, read as a connection allows."""

    def __init__(self, connection, sock):
        self._connection, self._sock = connection, sock
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self):
        return True

    def readinto(self, buffer):
        return self._connection.read_into(self._sock, self._raw, buffer)

    def close(self):
        self._raw.close()
        super().close()


@cache
def _secrets():
    """Return what checks certificates, which takes long to make."""
    import ssl

    return ssl.create_default_context()


class _PassingError(Exception):
    """What may be otherwise when it is tried again."""


def _close(idle):
    for connections in idle.values():
        for connection in connections:
            connection.close()


def _split(url):
    """Return (scheme, host, port) and what is asked for there."""
    if has_controls(url):
        # urlsplit leaves some of them out: it would be another URL than the one that was judged.
        raise RefusedError(f"{url!r:.200} has control characters")
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    if scheme not in ("http", "https") or not parts.hostname:
        raise RefusedError(f"{url!r:.200} is no URL of an HTTP server")
    port = parts.port or (443 if scheme == "https" else 80)
    target = quote(parts.path or "/", safe=_ABOVE) + (f"?{quote(parts.query, safe=_ABOVE)}" if parts.query else "")
    return (scheme, parts.hostname, port), target


def _checked(response, read):
    if response.status in (404, 410):
        return None
    if response.status in _PASSING:
        raise _PassingError(f"HTTP status {response.status} {response.reason}")
    if response.status not in (200, 206, 416):
        raise StoreError(f"HTTP status {response.status} {response.reason}")
    if (response.getheader("Content-Encoding") or "identity") != "identity":
        raise StoreError(f"it came encoded by {response.getheader('Content-Encoding')!r:.40}, for which nobody asked")
    if (response.getheader("Transfer-Encoding") or "chunked").lower() != "chunked":
        raise StoreError(f"it came transferred as {response.getheader('Transfer-Encoding')!r:.40}")
    return read(response)


def _answer(response, start, length):
    """Return the `Answer` in a response to the request for a part."""
    if response.status == 416:
        found = re.match(r"bytes \*/(\d{1,18})\s*$", response.getheader("Content-Range") or "")
        is_part = start != 0 or length is not None
        if found is None or not is_part or (int(found[1]) > start if start is not None else int(found[1])):
            raise StoreError("HTTP status 416 Range Not Satisfiable")
        return Answer(b"", int(found[1]) if start is None else start, int(found[1]), None)
    if response.status == 206:
        found = _content_range(response.getheader("Content-Range") or "")
        if found is None:
            raise StoreError(f"a part came of which {response.getheader('Content-Range')!r:.60} says where it lies")
        if found[3] == "*" and length is None:
            raise StoreError("a part came, of a whole of unknown size")
        first, stop = int(found[1]), int(found[2]) + 1
        size = stop if found[3] == "*" else int(found[3])
        expected = max(0, size - length) if start is None else start
        if first != expected or stop != (size if start is None or length is None else min(start + length, size)):
            raise StoreError(f"bytes {first} to {stop} of {size} came")
        return Answer(_body(response, 0, stop - first, length is not None), first, size, None)
    size = response.getheader("Content-Length")
    size = int(size) if size is not None and size.isdecimal() else None
    if start is None:
        if size is None:
            raise StoreError("the server heeds no ranges and does not tell the size")
        start = max(0, size - length)
    if start > MAX_SKIPPED_NBYTES:
        raise StoreError(f"the server heeds no ranges, and at most {MAX_SKIPPED_NBYTES} bytes before a part are read")
    if size is None:
        data = _rest(response, start, length, MAX_ENDLESS_NBYTES)
        return Answer(data, start, start + len(data), None)
    stop = size if length is None else min(start + length, size)
    return Answer(_body(response, start, max(start, stop) - start, length is not None), start, size, None)


def _body(response, n_skipped, n_bytes, is_asked):
    """Return bytes of the body, all of which have to come; what is behind them is left where it is."""
    if not is_asked and n_bytes > MAX_WHOLE_NBYTES:
        raise StoreError(f"it has {n_bytes} bytes, and at most {MAX_WHOLE_NBYTES} are read of an object that is read "
                         "as a whole")
    data = _rest(response, n_skipped, n_bytes)
    if len(data) != n_bytes:
        raise _PassingError(f"{len(data)} bytes came, {n_bytes} were promised")
    return data


def _rest(response, n_skipped, n_bytes, limit=MAX_WHOLE_NBYTES):
    """Return bytes of the body, fewer if it ends; `n_bytes` None: all, which are `limit` at the most."""
    n, parts = 0, []
    stop = n_skipped + (limit + 1 if n_bytes is None else n_bytes)
    # Not `read`, which returns when it has them all, however late each of them comes.
    while n < stop:
        n_asked = min(PART, stop - n)
        response.connection.expect_part(n_asked)
        part = response.read1(n_asked)
        if not part:
            break
        if n + len(part) > n_skipped:
            parts.append(part[max(0, n_skipped - n):])
        n += len(part)
    if n_bytes is None and n == stop:
        raise StoreError(f"more than {limit} bytes came, and no more are read of an object "
                         f"{'whose size is not told' if limit == MAX_ENDLESS_NBYTES else 'that is read as a whole'}")
    return parts[0] if len(parts) == 1 else b"".join(parts)
