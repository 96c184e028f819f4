"""Fuzzing targets in Python. Each takes any bytes, and lets no exception out unless zcore has a mistake.

Where there is a second way to the answer, the target compares: Python's json, jinja2, zipfile, or a slower way of
zcore's own.
"""
import io
import json
import socket
import warnings
import zipfile
import zlib
from contextlib import suppress
from unittest import mock

import jinja2

import zcore
from tests.fuzz import test_hostile_asdf, test_hostile_documents, test_hostile_references, test_hostile_trees
from tests.fuzz.reference_model import depth, finite, members_once, model
from zcore.errors import MetadataError, ReferenceFormatError, UnsupportedError, ZcoreError
from zcore.formats.json_documents import MAX_DEPTH, Document
from zcore.kernel.refs.table import ReferenceTable
from zcore.stores.reference.gen import Generation
from zcore.stores.reference.parquet import read_records
from zcore.stores.reference.remote_targets import RemoteTargets
from zcore.stores.reference.templates import Templates
from zcore.stores.zip.members import read_member, read_members

DOCUMENTS = ("__zmeta__", "zarr.json", ".zarray", ".zgroup", ".zmetadata", ".zattrs", "__zattr__")
MAX_MEMBER = 1 << 20


def document(data):
    """Documents of arrays and groups. Byte 0: which one."""
    if not data:
        return
    key, raw = DOCUMENTS[data[0] % len(DOCUMENTS)], data[1:]
    store = zcore.MemoryStore({key: raw})
    if key in (".zmetadata", ".zattrs"):
        store.set(".zgroup", b'{"zarr_format": 2}')
    elif key == "__zattr__":
        store.set("__zmeta__", json.dumps(test_hostile_documents.VALID).encode())
    with suppress(ZcoreError):
        node = zcore.open(store, mode="r")
        node.attrs.asdict()
        if isinstance(node, zcore.Group):
            for _, member in node.members(max_depth=None):
                str(member.attrs.asdict())
            str(node.tree())
            return
        str((node, node.info_complete(), node.metadata, node.codecs, node.nbytes, node.cdata_shape, node.fill_value))
        assert node[(slice(5, 5),) * node.ndim].size == (0 if node.ndim else 1)
        if 0 < node.nbytes <= 1 << 16:
            assert node[...].shape == node.shape


def _no_constant(text):
    raise ValueError(text)


def strict_json(data):
    """JSON as documents have it, by Python's json."""
    try:
        found = Document(data, "x", "zarr.json").members
    except MetadataError:
        found = None
    try:
        expected = json.loads(data.decode(), object_pairs_hook=members_once,
                              parse_float=finite,
                              parse_constant=_no_constant)
        if type(expected) is not dict or depth(expected) > MAX_DEPTH:
            expected = None
    except (ValueError, AssertionError, RecursionError):
        expected = None
    assert repr(found) == repr(expected), (found, expected)


def reference_model(data):
    """Reference sets without templates, by Python's json."""
    with suppress(ValueError, RecursionError):
        members = json.loads(data)
        if type(members) is dict and members.keys() & {"templates", "gen"}:
            return
    if data[:2] == b"\x1f\x8b" or data[:4] == b"\x28\xb5\x2f\xfd":
        return
    assert test_hostile_references.found(data) == model(data)


def expression(data):
    """Texts of templates, by jinja2. It is asked only for what zcore renders, which is bounded, and for each eighth
    text, as it takes milliseconds."""
    with suppress(UnicodeDecodeError):
        text = data.decode()
        try:
            found = Templates({"u": "server/path", "f": "<{{c}}>"}).render(text, {"i": 3})
        except (ReferenceFormatError, UnsupportedError):
            return
        if zlib.crc32(data) % 8:
            return
        expected = jinja2.Template(text, undefined=jinja2.StrictUndefined).render(
            u="server/path", i=3, f=lambda c: f"<{c}>")
        assert found == expected, (text, found, expected)


def generated(data):
    """Generated references, in columns and one by one. Key, URL, offset and length are separated by NUL."""
    with suppress(UnicodeDecodeError):
        texts = data.decode().split("\0")
        if not 2 <= len(texts) <= 4:
            return
        item = {**dict(zip(("key", "url", "offset", "length"), texts, strict=False)),
                "dimensions": {"i": {"start": -2, "stop": 4}, "j": [0, 7, 2**40]}}
        templates = Templates({"u": "server/path", "f": "<{{c}}>"})
        try:
            found = [tuple(map(str, row)) for row in Generation([item], templates).references()]
        except (ReferenceFormatError, UnsupportedError):
            return
        variables = [{"i": i, "j": j} for i in range(-2, 4) for j in (0, 7, 2**40)]
        n_texts = len(texts) if len(texts) != 3 else 2
        for n in range(n_texts):
            rendered = [templates.render(texts[n], each) for each in variables]
            if n >= 2:
                rendered = [str(int(each)) for each in rendered]
            assert [row[n] for row in found] == rendered, (texts[n], found, rendered)


def asdf_layout(data):
    """ASDF files: the front, the index, blocks and what they decode to."""
    test_hostile_asdf.look_at(data)


def asdf_tree(data):
    """Trees of ASDF files."""
    test_hostile_trees.use(data)


def zip_archive(data):
    """Directories and members of zip archives, by zipfile."""
    archive = test_hostile_asdf.Memory(data)
    with suppress(ZcoreError):
        for key, member in read_members(archive).items():
            if member.n_bytes > MAX_MEMBER or member.feature is not None:
                continue
            with suppress(ZcoreError):
                found = read_member(archive, key, member, None)
                assert zlib.crc32(found) == member.crc and len(found) == member.n_bytes
                with zipfile.ZipFile(io.BytesIO(data)) as judge:
                    assert judge.read(key) == found


def parquet(data):
    """Files of references in Parquet."""
    store = zcore.MemoryStore({"x/refs.0.parq": data})
    with suppress(ZcoreError):
        assert len(read_records(store, "x/refs.0.parq", 100, 60, ReferenceTable().numbers_of)) <= 60


class Wire(io.RawIOBase):
    """The bytes that a connection brings; like a file of a socket, its end is not that of the socket."""

    def __init__(self, data):
        self.data = data

    def readable(self):
        return True

    def readinto(self, buffer):
        return self.data.readinto(buffer)


class Connection:
    """A socket that brings these bytes, whatever it is asked."""

    def __init__(self, data):
        self.data = io.BytesIO(data)

    def makefile(self, mode, buffering=None):
        return Wire(self.data)

    def sendall(self, data):
        pass

    def setsockopt(self, *_):
        pass

    def settimeout(self, seconds):
        assert seconds > 0

    def close(self):
        pass


class Network:
    """Connections that bring parts of the input, one each."""

    def __init__(self, data):
        self.parts = data.split(b"\n--next--\n")

    def connect(self, address, timeout):
        if not self.parts:
            raise ConnectionRefusedError
        return Connection(self.parts.pop(0))

    def resolve(self, host, port, **_):
        # What the real one does with a name first.
        host.encode("idna")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", port))]


def http_answer(data):
    """Answers of HTTP servers, also redirected. Byte 0: the range that is asked for."""
    if not data:
        return
    start, length = ((0, None), (0, 10), (5, 20), (5, None))[data[0] % 4]
    network = Network(data[1:])
    targets = RemoteTargets(lambda url: None, True, {"http://": {"retries": 0}, "https://": {"retries": 0}})
    with mock.patch("socket.create_connection", network.connect), mock.patch("socket.getaddrinfo", network.resolve):
        with suppress(ZcoreError):
            found = targets.get("http://server.example/path", start, length, "k")
            assert isinstance(found, bytes) and (length is None or len(found) <= length)


TARGETS = {function.__name__: function for function in (
    document, strict_json, reference_model, expression, generated, asdf_layout, asdf_tree, zip_archive, parquet,
    http_answer)}


def run(name, data):
    """Call a target with these bytes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        TARGETS[name](data)
