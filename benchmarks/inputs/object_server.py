"""Object stores on loopback, for the length of a measurement: moto's S3 server, or one that only gives files.

moto is what most programs are tested with; it is written in Python, and each request takes it a millisecond of a core
or more, whoever asks. The other one answers GET and HEAD with ranges, from files, and nothing else: what is measured
against it is more the client and less the server. Both are processes of their own.
"""
import contextlib
import os
import re
import select
import socket
import subprocess
import sys
import time
import urllib.request
from collections import deque
from dataclasses import dataclass
from pathlib import Path

BUCKET = "bucket"
KINDS = ("moto", "files")
_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Place:
    """Where an array lies: a path in the bucket of an endpoint, and what obstore is told to get there."""

    endpoint: str
    path: str

    @property
    def options(self):
        """The options of obstore's S3 stores."""
        return {"endpoint": self.endpoint, "region": "us-east-1", "access_key_id": "testing",
                "secret_access_key": "testing", "virtual_hosted_style_request": False,
                "client_options": {"allow_http": True}}


@contextlib.contextmanager
def serving(kind, directory):
    """Serve what a directory holds as the objects of a bucket, and give its `Place`.

    Raises : ImportError, if moto or obstore is not installed; RuntimeError, if no server comes up.
    """
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    endpoint = f"http://127.0.0.1:{port}"
    if kind == "moto":
        import moto.server  # noqa: F401 (the child would only say that it has ended)

        command = [sys.executable, "-P", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    else:
        command = [sys.executable, "-P", "-m", "benchmarks.inputs.object_server", os.path.dirname(directory), str(port)]
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    server = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    if hasattr(os, "sched_setaffinity"):
        # The client alone is kept to some cores.
        os.sched_setaffinity(server.pid, range(os.cpu_count()))
    try:
        _wait_for(server, port)
        place = Place(endpoint, os.path.basename(directory))
        if kind == "moto":
            _upload(place, directory)
        yield place
    finally:
        server.terminate()
        server.wait()


def _wait_for(server, port):
    end = time.monotonic() + 60
    while time.monotonic() < end and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"no server came up at port {port}, exit status {server.poll()}")


def _upload(place, directory):
    from obstore import put
    from obstore.store import S3Store

    urllib.request.urlopen(urllib.request.Request(f"{place.endpoint}/{BUCKET}", method="PUT")).close()
    store = S3Store(BUCKET, prefix=place.path, **place.options)
    for path in Path(directory).rglob("*"):
        if path.is_file():
            put(store, path.relative_to(directory).as_posix(), path.read_bytes())


# The server of files

_REQUEST = re.compile(rb"(GET|HEAD) /" + BUCKET.encode() + rb"/([^ ?]+)(?:\?\S*)? HTTP/1\.1\r\n")
_RANGE = re.compile(rb"\r\nrange: *bytes=(\d*)-(\d*)\r\n", re.IGNORECASE)


class _Files:
    """One connection: the answers to its requests, and what could not be sent of them yet."""

    def __init__(self, sock, directory):
        self.sock = sock
        self.directory = directory
        self.received = b""
        self.pending = deque()     # of memoryviews, and of lists of a file and a range of it

    def receive(self):
        """Answer the requests that have come; returns whether the connection goes on."""
        data = self.sock.recv(1 << 16)
        self.received += data
        while b"\r\n\r\n" in self.received:
            head, _, self.received = self.received.partition(b"\r\n\r\n")
            self._answer(head + b"\r\n")
        return bool(data)

    def send(self):
        """Send more of what is pending; returns whether that is all."""
        try:
            while self.pending:
                part = self.pending[0]
                if isinstance(part, memoryview):
                    n_sent = self.sock.send(part, socket.MSG_MORE if len(self.pending) > 1 else 0)
                    self.pending[0] = part[n_sent:]
                    is_all = n_sent == len(part)
                else:
                    file, start, stop = part
                    part[1] += os.sendfile(self.sock.fileno(), file, start, stop - start)
                    is_all = part[1] == stop
                if is_all:
                    self._drop()
        except BlockingIOError:
            pass
        return not self.pending

    def close(self):
        while self.pending:
            self._drop()
        self.sock.close()

    def _drop(self):
        part = self.pending.popleft()
        if isinstance(part, list):
            os.close(part[0])

    def _answer(self, head):
        request = _REQUEST.match(head)
        path = None if request is None else os.path.join(self.directory, request[2].decode())
        try:
            if path is None or ".." in path:
                raise FileNotFoundError
            file = os.open(path, os.O_RDONLY)
        except OSError:
            self.pending.append(memoryview(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"))
            return
        size = os.fstat(file).st_size
        start, stop, status = 0, size, b"200 OK"
        wanted = _RANGE.search(head)
        if wanted is not None:
            status = b"206 Partial Content"
            if wanted[1]:
                start = int(wanted[1])
                stop = min(size, int(wanted[2]) + 1 if wanted[2] else size)
            else:
                start = max(0, size - int(wanted[2]))
        lines = [b"HTTP/1.1 " + status, b'ETag: "1"', b"Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT",
                 b"Content-Length: %d" % (stop - start), b"Accept-Ranges: bytes"]
        if wanted is not None:
            lines.append(b"Content-Range: bytes %d-%d/%d" % (start, stop - 1, size))
        self.pending.append(memoryview(b"\r\n".join(lines) + b"\r\n\r\n"))
        if request[1] == b"HEAD" or start >= stop:
            os.close(file)
        else:
            self.pending.append([file, start, stop])


def _serve(directory, port):
    """Serve for ever, by a loop over `epoll`: the loop of asyncio takes as long for a request as its client does."""
    connections = {}
    with socket.create_server(("127.0.0.1", port), backlog=1024) as listening, select.epoll() as poll:
        poll.register(listening, select.EPOLLIN)
        while True:
            for number, event in poll.poll():
                if number == listening.fileno():
                    sock, _ = listening.accept()
                    sock.setblocking(False)
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    connections[sock.fileno()] = _Files(sock, directory)
                    poll.register(sock, select.EPOLLIN)
                    continue
                connection = connections[number]
                try:
                    goes_on = event == select.EPOLLOUT or connection.receive()
                    if goes_on and connection.pending:
                        is_all = connection.send()
                        if not is_all or event == select.EPOLLOUT:
                            poll.modify(number, select.EPOLLIN if is_all else select.EPOLLOUT)
                except OSError:
                    goes_on = False
                if not goes_on:
                    poll.unregister(number)
                    del connections[number]
                    connection.close()


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
