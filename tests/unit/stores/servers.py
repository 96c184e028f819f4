"""Servers on loopback that tests start and stop: S3 by moto, and plain HTTP with the faults that real ones have."""
import contextlib
import http.server
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from email.utils import formatdate

import pytest

# moto looks at the condition of a put, and then puts, without a lock: both of two writers may win. So it gets one
# request at a time.
S3_SERVER = """
import sys, threading
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.server import MotoRequestHandler
from werkzeug.serving import run_simple

answer = DomainDispatcherApplication(create_backend_app)
lock = threading.Lock()

def answer_one(environ, start_response):
    with lock:
        return answer(environ, start_response)

run_simple("127.0.0.1", int(sys.argv[1]), answer_one, threaded=True, request_handler=MotoRequestHandler)
"""


@contextlib.contextmanager
def s3_server():
    """Give the endpoint of an S3 server in a process of its own."""
    pytest.importorskip("moto.server", reason="moto's server is not installed (test extra)")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-c", S3_SERVER, str(port)], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=5).close()
                break
            except OSError:
                assert process.poll() is None, "moto's server has ended"
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def make_bucket(endpoint, name):
    """Make a bucket, and return the options by which obstore finds it."""
    with urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{name}", method="PUT")):
        pass
    return s3_options(endpoint)


def s3_options(endpoint):
    return {"endpoint": endpoint, "region": "us-east-1", "access_key_id": "key", "secret_access_key": "secret",
            "client_options": {"allow_http": True}}


class Site:
    """What an HTTP server has and how it behaves.

    Attributes
    ----------
    files : dict of str to bytes
        By their paths, without the first ``/``.
    ranges : bool
        Whether it heeds ranges.
    faults : dict of str to list
        What the next requests of a path meet: a status, ``"short"``, ``"hang"``, ``"drip"``,
        ``("redirect", url)`` with or without a status, or None.
    missing : int
        The status of what is not there.
    tags : bool
        Whether it sends ETags.
    requests : list of (method, path, range)
    headers : list of (path, dict)
        With the port that the client has.
    targets : list of (target, dict)
        Of each request, with its query, and the headers.
    n_most : int
        Requests that were under way at a time; each of them for `delay` seconds at least.
    """

    def __init__(self):
        self.files = {}
        self.ranges = self.tags = True
        self.faults = {}
        self.requests = []
        self.headers = []
        self.targets = []
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.n_now = self.n_most = 0
        self.delay = 0
        self.missing = 404

    def data(self, method="GET"):
        """Return the (path, range) of all requests so far."""
        return [(path, part) for verb, path, part in self.requests if verb == method]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        site = self.server.site
        with site.lock:
            site.n_now += 1
            site.n_most = max(site.n_most, site.n_now)
        try:
            if site.delay:
                time.sleep(site.delay)
            self._answer(site)
        finally:
            with site.lock:
                site.n_now -= 1

    def _answer(self, site):
        path = urllib.parse.unquote(self.path.lstrip("/").partition("?")[0])
        part = self.headers.get("Range")
        with site.lock:
            site.requests.append((self.command, path, part))
            site.targets.append((self.path, dict(self.headers)))
            site.headers.append((path, {**self.headers, "port": self.client_address[1]}))
            faults = site.faults.get(path)
            fault = faults.pop(0) if faults else None
        if fault == "hang":
            site.over.wait(20)
            self.close_connection = True
            return
        if isinstance(fault, int):
            return self._send(fault)
        if isinstance(fault, tuple):
            return self._send(*fault[2:] or (302,), headers={"Location": fault[1]})
        data = site.files.get(path)
        if data is None:
            return self._send(site.missing)
        status, headers = 200, {"Last-Modified": formatdate(0, usegmt=True)}
        if site.tags:
            headers["ETag"] = f'"{hash(data) & 0xffffffff:x}"'
        if part and site.ranges:
            first, last = part.removeprefix("bytes=").split("-")
            start = int(first) if first else max(0, len(data) - int(last))
            stop = min(len(data), int(last) + 1) if first and last else len(data)
            if start >= len(data):
                return self._send(416, headers={"Content-Range": f"bytes */{len(data)}"})
            status, headers["Content-Range"] = 206, f"bytes {start}-{stop - 1}/{len(data)}"
            data = data[start:stop]
        self._send(status, data, headers, short=fault == "short", drip=fault == "drip")

    def _send(self, status, data=b"", headers=None, short=False, drip=False):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            if not drip:
                self.wfile.write(data[:len(data) // 2] if short else data)
            for i in range(len(data) if drip else 0):
                self.wfile.write(data[i:i + 1])
                self.wfile.flush()
                time.sleep(0.01)
        if short:
            self.close_connection = True


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128       # clients connect many times at once

    def handle_error(self, request, client_address):
        """Say nothing of clients that have gone."""


@contextlib.contextmanager
def raw_server(answer, ends=False):
    """Give the port of a server that answers each request by the bytes that an iterable gives, or that a call makes.

    It may be endless: then it ends with the connection, which stays open behind the last bytes, unless `ends` says
    otherwise. An item that is True stands for a moment without any.
    """
    over = threading.Event()

    def serve():
        while True:
            connection = server.accept()[0]
            if over.is_set():
                return connection.close()
            threading.Thread(target=speak, args=(connection,), daemon=True).start()

    def speak(connection):
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            for part in answer() if callable(answer) else answer:
                if over.is_set():
                    return
                if part is True:
                    time.sleep(0.01)
                else:
                    connection.sendall(part)
            if not ends:
                over.wait(20)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            over.set()
            socket.create_connection(server.getsockname(), timeout=5).close()
            thread.join()


@contextlib.contextmanager
def http_server():
    """Give the URL of an HTTP server of this process, with a final ``/``, and its `Site`."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.site = Site()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/", server.site
    finally:
        server.site.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
