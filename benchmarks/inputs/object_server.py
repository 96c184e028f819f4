"""An S3 bucket on loopback over TLS, for the length of a measurement: it gives files, and lists them.

It answers GET and HEAD with ranges, and ListObjectsV2 in pages of 1000 names, and nothing else, so that what is
measured is more the client than the server. Its certificate is made by openssl, and the clients check it. Each core has
a process of the server, and each connection a thread there. `latency` is the time that each answer waits before it is
sent, as on a network; connections wait for nothing.
"""
import bisect
import contextlib
import functools
import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, unquote
from xml.sax.saxutils import escape

BUCKET = "bucket"
PAGE = 1000   # names in an answer, as of S3
_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Place:
    """The endpoint of a bucket, and the PEM file of the certificate to trust."""

    endpoint: str
    certificate: str

    @property
    def options(self):
        """The options of obstore's S3 stores."""
        return {"endpoint": self.endpoint, "region": "us-east-1", "access_key_id": "testing",
                "secret_access_key": "testing", "virtual_hosted_style_request": False,
                "client_options": {"root_certificate": Path(self.certificate).read_text("ascii")}}


@contextlib.contextmanager
def serving(directory, latency=0.0):
    """Serve what a directory holds as the objects of a bucket, and give its `Place`.

    Raises : ImportError, if there is no openssl.
    """
    certificate = os.path.join(_certificate().name, "certificate.pem")
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listening:
        command = [sys.executable, "-P", "-m", "benchmarks.inputs.object_server", str(listening.fileno()),
                   directory, certificate, str(latency)]
        servers = [subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, pass_fds=[listening.fileno()])
                   for _ in range(os.cpu_count())]
        try:
            if hasattr(os, "sched_setaffinity"):
                # The client alone is kept to some cores.
                for server in servers:
                    os.sched_setaffinity(server.pid, range(os.cpu_count()))
            yield Place(f"https://127.0.0.1:{listening.getsockname()[1]}", certificate)
        finally:
            for server in servers:
                server.terminate()
                server.wait()


@functools.cache
def _certificate():
    """Return a temporary directory with ``certificate.pem``, which holds the key, too: one for this process.

    Some clients read it at their first request alone.
    """
    made = tempfile.TemporaryDirectory(prefix="zcore-benchmarks-")
    path = os.path.join(made.name, "certificate.pem")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
               "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
               "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", path + ".key", "-out", path]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as exc:
        raise ImportError(f"openssl makes no certificate: {exc}") from exc
    return made


# The server

_REQUEST = re.compile(rb"(GET|HEAD) /" + BUCKET.encode() + rb"(?:/([^ ?]*))?(?:\?(\S*))? HTTP/1\.1\r\n")
_RANGE = re.compile(rb"\r\nrange: *bytes=(\d*)-(\d*)\r\n", re.IGNORECASE)
_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def _answer(directory, head):
    """Return the bytes of the answer to one request."""
    request = _REQUEST.match(head)
    if request is None:
        return _NOT_FOUND
    method, name, query = request.groups()
    if not name:
        return _listing(directory, parse_qs((query or b"").decode()))
    path = os.path.join(directory, unquote(name.decode()))
    try:
        if ".." in path:
            raise FileNotFoundError
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return _NOT_FOUND
    try:
        found = os.fstat(file)
        start, stop, status, extra = 0, found.st_size, b"200 OK", b""
        wanted = _RANGE.search(head)
        if wanted is not None:
            first, last = wanted.groups()
            start = int(first) if first else max(0, stop - int(last))
            stop = min(stop, int(last) + 1) if first and last else stop
            status = b"206 Partial Content"
            extra = b"Content-Range: bytes %d-%d/%d\r\n" % (start, stop - 1, found.st_size)
        said = (b'HTTP/1.1 %s\r\nETag: "%x-%x"\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n'
                b"Content-Length: %d\r\nAccept-Ranges: bytes\r\n%s\r\n" % (
                    status, found.st_ino, found.st_mtime_ns, stop - start, extra))
        return said if method == b"HEAD" else said + os.pread(file, stop - start, start)
    except OSError:
        return _NOT_FOUND     # a folder
    finally:
        os.close(file)


def _listing(directory, query):
    def asked(name):
        return query.get(name, [""])[0]

    prefix = asked("prefix")
    names = _names(directory, prefix, asked("delimiter"))
    start = bisect.bisect(names, asked("continuation-token") or asked("start-after"))
    page, is_truncated = names[start:start + PAGE], start + PAGE < len(names)
    parts = [f"<Name>{BUCKET}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(page)}</KeyCount>"
             f"<MaxKeys>{PAGE}</MaxKeys><IsTruncated>{str(is_truncated).lower()}</IsTruncated>"]
    if is_truncated:
        parts.append(f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>")
    for name in page:
        if name.endswith("/"):
            parts.append(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>")
        else:
            found = os.stat(os.path.join(directory, name))
            parts.append(f"<Contents><Key>{escape(name)}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified>"
                         f'<ETag>"{found.st_ino:x}-{found.st_mtime_ns:x}"</ETag><Size>{found.st_size}</Size>'
                         "<StorageClass>STANDARD</StorageClass></Contents>")
    body = ('<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            + "".join(parts) + "</ListBucketResult>").encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


@functools.cache    # nothing is added to a folder after its first listing
def _names(directory, prefix, delimiter):
    """Return the sorted names that begin with a prefix; with the delimiter ``/`` no deeper than one level."""
    folder = os.path.join(directory, os.path.dirname(prefix))
    found = []
    for path, folders, files in os.walk(folder):
        below = os.path.relpath(path, directory)
        below = "" if below == "." else below + "/"
        found += [below + name for name in files]
        if delimiter:
            found += [below + name + "/" for name in folders]
            break
    return sorted(name for name in found if name.startswith(prefix))


def _talk(context, sock, directory, latency):
    """Answer the requests of one connection until its client leaves."""
    received = b""
    with contextlib.suppress(OSError), sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with context.wrap_socket(sock, server_side=True) as talking:
            while data := talking.recv(1 << 14):
                received += data
                while b"\r\n\r\n" in received:
                    head, _, received = received.partition(b"\r\n\r\n")
                    answer = _answer(directory, head + b"\r\n")
                    time.sleep(latency)
                    talking.sendall(answer)


def _serve(listening, directory, certificate, latency):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate + ".key")
    while True:
        sock, _ = listening.accept()
        threading.Thread(target=_talk, args=(context, sock, directory, latency), daemon=True).start()


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2], sys.argv[3], float(sys.argv[4]))
