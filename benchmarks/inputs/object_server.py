"""Object stores on loopback, for the length of a measurement: moto's S3 server, or one that only gives files.

moto is what most programs are tested with; it is written in Python, and each request takes it a millisecond of a core
or more, whoever asks. The other one answers GET and HEAD with ranges, from files, and nothing else: what is measured
against it is more the client and less the server. Both are processes of their own.
"""
import asyncio
import contextlib
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
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


class _Files(asyncio.Protocol):
    def __init__(self, directory):
        self.directory = directory
        self.received = b""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.received += data
        while b"\r\n\r\n" in self.received:
            head, _, self.received = self.received.partition(b"\r\n\r\n")
            self._answer(head + b"\r\n")

    def _answer(self, head):
        request = _REQUEST.match(head)
        path = None if request is None else os.path.join(self.directory, request[2].decode())
        if path is None or ".." in path or not os.path.isfile(path):
            self.transport.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            return
        with open(path, "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
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
            body = b"" if request[1] == b"HEAD" else os.pread(file.fileno(), stop - start, start)
        self.transport.writelines([b"\r\n".join(lines) + b"\r\n\r\n", body])


async def _serve(directory, port):
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Files(directory), "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], int(sys.argv[2])))
