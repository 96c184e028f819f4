"""Reference sets whose targets, or which themselves, a service keeps."""
import itertools
import json
import pickle
import socket
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc
from base64 import b64encode

import numpy as np
import pytest

import zcore
from tests.both_ways import brought
from tests.unit.stores.servers import raw_server
from zcore.errors import ReferenceFormatError, ReferenceTargetError, StoreError, UnsupportedError
from zcore.stores.reference.store import ReferenceStore

N, CHUNK = 600, 10


@pytest.fixture
def made(site):
    """A site with a file of chunks, between which other bytes lie, and the references to them."""
    site.values = np.arange(N, dtype="<i4")
    raw, refs = bytearray(b"header"), {}
    for i in range(N // CHUNK):
        refs[f"x/{i}"] = ["{u}", len(raw), 4 * CHUNK]
        raw += site.values[i * CHUNK:(i + 1) * CHUNK].tobytes() + b"-" * (i % 3)
    site.files["dir/data.bin"] = bytes(raw)
    refs[".zgroup"] = {"zarr_format": 2}
    refs["x/.zarray"] = {"zarr_format": 2, "shape": [N], "chunks": [CHUNK], "dtype": "<i4", "compressor": None,
                         "filters": None, "fill_value": 0, "order": "C"}
    site.refs = refs
    site.here = [site.url]
    return site


def refs_to(made, url):
    return {key: [url, *value[1:]] if isinstance(value, list) else value for key, value in made.refs.items()}


def publish(made, name="dir/refs.json", url="data.bin"):
    made.files[name] = json.dumps(refs_to(made, url)).encode()
    return made.url + name


@pytest.mark.parametrize("ranges", [True, False])
def test_remote_targets_of_a_mapping(made, ranges):
    made.ranges = ranges
    store = ReferenceStore(refs_to(made, made.url + "dir/data.bin"))
    np.testing.assert_array_equal(zcore.open(store)["x"][...], made.values)
    np.testing.assert_array_equal(zcore.open(store)["x"][55:5:-7], made.values[55:5:-7])
    assert store.get("x/3") == made.values[30:40].tobytes()
    assert store.get("x/3", (2, 7)) == made.values[30:40].tobytes()[2:9]
    assert store.get("x/3", (None, 3)) == made.values[30:40].tobytes()[-3:]
    assert store.getsize("x/3") == 40


def test_neighbours_are_asked_for_together(made):
    """RF-URL-09"""
    array = zcore.open(ReferenceStore(refs_to(made, made.url + "dir/data.bin")))["x"]
    made.requests.clear()
    np.testing.assert_array_equal(array[...], made.values)
    last = made.refs["x/59"]
    assert made.data() == [("dir/data.bin", f"bytes=6-{last[1] + last[2] - 1}")]


def test_of_shards_the_index_and_the_chunks_are_asked_for(site):
    store = zcore.MemoryStore()
    values = np.random.default_rng(0).integers(1, 1 << 30, (4, 4096), "i4")
    zcore.create_array(store, data=values, chunks=(1, 64), shards=(1, 4096), compressors=None)
    keys = sorted(key for key in store.list() if key != "zarr.json")
    site.files["data.bin"] = b"".join(store.get(key) for key in keys)
    refs, start = {"zarr.json": store.get("zarr.json").decode()}, 0
    for key in keys:
        refs[key] = [site.url + "data.bin", start, store.getsize(key)]
        start += store.getsize(key)
    array = zcore.open(ReferenceStore(refs))
    site.requests.clear()
    np.testing.assert_array_equal(array[1:3, 70:80], values[1:3, 70:80])
    ends = [part.removeprefix("bytes=").split("-") for _, part in site.data()]
    assert len(ends) == 4 and sum(int(last) - int(first) + 1 for first, last in ends) < 4000
    site.requests.clear()
    np.testing.assert_array_equal(array[:, 70:4000], values[:, 70:4000])
    assert len(site.data()) == 1


def test_what_is_asked_for_together_has_bounds(made, monkeypatch):
    """RF-URL-09"""
    monkeypatch.setattr("zcore.ranges.merged.__defaults__", (1, 200))
    array = zcore.open(ReferenceStore(refs_to(made, made.url + "dir/data.bin")))["x"]
    made.requests.clear()
    np.testing.assert_array_equal(array[...], made.values)
    parts = [tuple(map(int, part[6:].split("-"))) for _, part in made.data()]
    assert len(parts) > 12 and all(last - first < 200 for first, last in parts)
    assert sum(last + 1 - first for first, last in parts) < len(made.files["dir/data.bin"])


def test_inline_local_and_remote_values_in_one_array(made, tmp_path):
    refs = refs_to(made, made.url + "dir/data.bin")
    (tmp_path / "local.bin").write_bytes(made.values[50:60].tobytes())
    refs["x/5"] = ["local.bin"]
    refs["x/7"] = "base64:" + b64encode(made.values[70:80].tobytes()).decode()
    del refs["x/9"]
    (tmp_path / "refs.json").write_text(json.dumps(refs))
    made.values[90:100] = 0
    made.requests.clear()
    np.testing.assert_array_equal(zcore.open(str(tmp_path / "refs.json"))["x"][...], made.values)
    assert len(made.data()) == 1


@pytest.mark.parametrize("cls", [ReferenceStore, brought(ReferenceStore)], ids=["located", "brought"])
def test_each_reference_has_to_have_all_its_bytes(made, cls):
    """RF-URL-05, RF-URL-07: also where its neighbours have theirs."""
    url = made.url + "dir/data.bin"
    array = zcore.open(cls(refs_to(made, url), services={made.url: {"retries": 0}}))["x"]
    offset = made.refs["x/40"][1]
    made.files["dir/data.bin"] = made.files["dir/data.bin"][:offset + 10]
    np.testing.assert_array_equal(array[:400], made.values[:400])
    with pytest.raises(ReferenceTargetError) as caught:
        array[390:410]
    assert caught.value.key == "x/40" and caught.value.url == url and caught.value.range == (offset, 40)
    for fault in (403, 500, "short"):
        made.faults["dir/data.bin"] = [fault] * 3
        with pytest.raises(ReferenceTargetError, match="bytes ") as caught:
            array[:5]
        assert caught.value.url == url and url in str(caught.value)
    made.faults.clear()
    del made.files["dir/data.bin"]
    with pytest.raises(ReferenceTargetError, match="it is missing"):
        array[...]


def test_faults_that_pass_are_tried_again(made):
    made.faults["dir/data.bin"] = [500, "short"]
    array = zcore.open(ReferenceStore(refs_to(made, made.url + "dir/data.bin")))["x"]
    np.testing.assert_array_equal(array[...], made.values)


def test_a_target_that_does_not_answer_in_time(made):
    made.faults["dir/data.bin"] = ["hang"]
    store = ReferenceStore(refs_to(made, made.url + "dir/data.bin"),
                           services={"http://": {"timeout": 0.2, "retries": 0}})
    with pytest.raises(ReferenceTargetError, match="timed out"):
        store.get("x/1")


def test_a_server_that_takes_its_time(made, monkeypatch):
    monkeypatch.setattr("zcore.stores.remote.http.SLACK", 0.1)
    monkeypatch.setattr("zcore.stores.remote.http.MIN_RATE", 10_000)
    made.faults["dir/data.bin"] = ["drip"]
    with pytest.raises(ReferenceTargetError, match="slower than 10000 bytes"):
        ReferenceStore(refs_to(made, made.url + "dir/data.bin")).get("x/1")


def dripped(text):
    """A text, byte by byte."""
    return lambda: (part for i in range(len(text)) for part in (text[i:i + 1], True))


def again(text, start=b""):
    """A text without end."""
    return lambda: itertools.chain([start], itertools.repeat(text))


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
LONG = b"Content-Length: 1000000000\r\n\r\n"


@pytest.mark.parametrize(("answer", "message"), [
    (again(b"HTTP/1.1 100 Continue\r\n\r\n"), "bytes came that are no content|timed out|got more than 100"),
    (again(b"HTTP/1.1 100 Continue\r\nX: " + b"x" * 60_000 + b"\r\n\r\n"), "bytes came that are no content"),
    (again(b"x", OK + b"X: "), "line too long|more than|timed out"),
    (dripped(OK + b"X: y\r\n" * 99), "timed out"),
    (dripped(b"HTTP/1.1 100 Continue\r\n\r\n" * 99), "timed out"),
    (dripped(CHUNKED), "timed out"),
    (lambda: itertools.chain([CHUNKED], dripped(b"1\r\nx\r\n" * 1000)()), "slower than"),
    (lambda: itertools.chain([CHUNKED], dripped(b"1;" + b"x" * 9999)()), "slower than"),
    (lambda: itertools.chain([CHUNKED + b"1\r\nx\r\n0\r\n"], dripped(b"X: y\r\n" * 1000)()), "slower than"),
    (again(b"X: y\r\n", CHUNKED + b"1\r\nx\r\n0\r\n"), "that are no content|got more than 100"),
    (lambda: itertools.chain([OK + LONG], dripped(b"x" * 9999)()), "slower than"),
    (lambda: itertools.chain([OK + b"\r\n"], dripped(b"x" * 9999)()), "slower than"),
], ids=range(12))
def test_a_server_that_never_comes_to_an_end(monkeypatch, answer, message):
    monkeypatch.setattr("zcore.stores.remote.http.SLACK", 0.2)
    monkeypatch.setattr("zcore.stores.remote.http.MIN_RATE", 100_000)
    with raw_server(answer) as port:
        store = ReferenceStore({"x": [f"http://127.0.0.1:{port}/"]}, services={"http://": {"timeout": 0.4,
                                                                                          "retries": 0}})
        began = time.monotonic()
        with pytest.raises(ReferenceTargetError, match=message):
            store.get("x")
        assert time.monotonic() - began < 10


def test_content_in_tiny_parts_takes_little_memory():
    """The server chooses how it divides the content."""
    with raw_server(lambda: [CHUNKED + b"2\r\nxy\r\n" * 100_000 + b"0\r\n\r\n"]) as port:
        store = ReferenceStore({"x": [f"http://127.0.0.1:{port}/"]})
        tracemalloc.start()
        try:
            assert store.get("x") == b"xy" * 100_000
            assert tracemalloc.get_traced_memory()[1] < 3_000_000
        finally:
            tracemalloc.stop()


def test_the_content_of_redirects_and_errors_is_not_read(made):
    """However slow, or without an end, it is."""
    for status, message in ((b"302 Found\r\nLocation: " + made.url.encode() + b"dir/data.bin", None),
                            (b"404 Not Found", "missing"), (b"410 Gone", "missing"), (b"403 Forbidden", "403"),
                            (b"416 Range Not Satisfiable\r\nContent-Range: bytes */3", "416")):
        with raw_server(again(b"x", b"HTTP/1.1 " + status + b"\r\n" + LONG)) as port:
            store = ReferenceStore({"x": [f"http://127.0.0.1:{port}/", 0, 4]},
                                   services={"http://": {"timeout": 5, "retries": 0}})
            if message is None:
                assert store.get("x") == made.files["dir/data.bin"][:4]
            else:
                with pytest.raises(ReferenceTargetError, match=message):
                    store.get("x")


def test_one_deadline_holds_for_all_redirects():
    with raw_server(lambda: [*[True] * 20, b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"]) as port:
        store = ReferenceStore({"x": [f"http://127.0.0.1:{port}/"]}, services={"http://": {"timeout": 0.5,
                                                                                          "retries": 0}})
        with pytest.raises(ReferenceTargetError, match="timed out"):
            store.get("x")


def test_how_much_is_read_of_a_whole_object_has_a_limit(monkeypatch):
    monkeypatch.setattr("zcore.stores.remote.http.MAX_WHOLE_NBYTES", 4_000_000)
    monkeypatch.setattr("zcore.stores.remote.http.MAX_ENDLESS_NBYTES", 2_000_000)
    piece = b"%x\r\n" % 100_000 + b"x" * 100_000 + b"\r\n"
    for answer, message in ((again(b"x" * 100_000, OK + b"\r\n"), "more than 2000000 bytes came.*is not told"),
                            (again(piece, CHUNKED), "more than 2000000 bytes came"),
                            (again(b"x", OK + LONG), "it has 1000000000 bytes, and at most 4000000 are read"),
                            ([OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + piece], "transferred as 'gzip"),
                            ([OK + b"Content-Encoding: gzip\r\n\r\n" + piece], "encoded by 'gzip'")):
        with raw_server(answer) as port:
            store = ReferenceStore({"x": [f"http://127.0.0.1:{port}/"]})
            with pytest.raises(ReferenceTargetError, match=message):
                store.get("x")
    with raw_server([CHUNKED + piece * 15 + b"0\r\n\r\n"]) as port:
        assert ReferenceStore({"x": [f"http://127.0.0.1:{port}/"]}).get("x") == b"x" * 1_500_000
    monkeypatch.setattr("zcore.stores.remote.http.MAX_SKIPPED_NBYTES", 2_000_000)
    with raw_server(again(b"x", OK + LONG)) as port:
        store = ReferenceStore({"x": [f"http://127.0.0.1:{port}/", 3_000_000, 5]})
        with pytest.raises(ReferenceTargetError, match="ignores ranges, and at most 2000000 bytes"):
            store.get("x")


def test_an_interrupt_ends_the_wait_for_a_server():
    program = textwrap.dedent("""
        import signal, sys, zcore
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        store = zcore.ReferenceStore({"x": [sys.argv[1]]})
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            store.get("x")
        except KeyboardInterrupt:
            print("ended")
    """)
    with raw_server(dripped(OK + b"X: y\r\n" * 10_000)) as port:
        done = subprocess.run([sys.executable, "-c", program, f"http://127.0.0.1:{port}/"], capture_output=True,
                              text=True, timeout=20)
    assert done.stdout == "ended\n", done.stderr


def test_one_connection_serves_for_many_requests(made):
    store = ReferenceStore(refs_to(made, made.url + "dir/data.bin"))
    for _ in range(3):
        assert store.get("x/1") + store.get("x/2", (3, 5)) == made.values[10:20].tobytes() + made.values[
            20:30].tobytes()[3:8]
    assert len({headers["port"] for _, headers in made.headers}) == 1


# Documents that came from a service

def test_remote_document_with_relative_urls(made):
    url = publish(made)
    group = zcore.open(ReferenceStore(url, allowed=made.here))
    np.testing.assert_array_equal(group["x"][...], made.values)
    assert group.store.label == "refs.json" and url in repr(group.store)
    other = pickle.loads(pickle.dumps(group.store))
    assert other.get("x/2") == group.store.get("x/2")
    publish(made, "other/refs.json", "../dir/./data.bin")
    group = zcore.open(ReferenceStore(made.url + "other/refs.json?x=1", allowed=made.here))
    np.testing.assert_array_equal(group["x"][...], made.values)


def test_open_recognises_a_remote_document(made):
    url = publish(made, "refs.json", "data:,")
    assert zcore.open(url).store.path == url
    with pytest.raises(StoreError, match="it is missing"):
        zcore.open(made.url + "none.json")
    made.files["bad.json"] = b"<html>"
    with pytest.raises(ReferenceFormatError):
        zcore.open(made.url + "bad.json")


def test_remote_document_points_neither_here_nor_to_files(made, tmp_path):
    """RF-URL-08"""
    (tmp_path / "secret").write_bytes(b"s")
    port = made.url.rstrip("/").rpartition(":")[2]
    targets = {"file": str(tmp_path / "secret"), "uri": (tmp_path / "secret").as_uri(), "relative": "data.bin",
               "address": f"http://127.0.0.1:{port}/dir/data.bin", "name": f"http://localhost:{port}/dir/data.bin",
               "mapped": f"http://[::ffff:127.0.0.1]:{port}/dir/data.bin", "any": f"http://0.0.0.0:{port}/dir/data.bin",
               "short": f"http://127.1:{port}/dir/data.bin", "number": f"http://2130706433:{port}/dir/data.bin",
               "link": "http://169.254.169.254/latest/meta-data/", "six": f"http://[::1]:{port}/dir/data.bin"}
    made.files["refs.json"] = json.dumps({key: [url] for key, url in targets.items()}).encode()
    store = ReferenceStore(made.url + "refs.json")
    made.requests.clear()
    for key, url in targets.items():
        with pytest.raises(ReferenceTargetError, match="would permit it") as caught:
            store.get(key)
        assert caught.value.url.endswith(url.rpartition("/")[2]), key
    assert made.requests == []
    with pytest.raises(ReferenceTargetError, match=r"allowed=\['http://127.0.0.1:.*/dir/'\] would permit it"):
        store.get("address")
    # What is permitted by name is the caller's word.
    root = f"http://localhost:{port}/dir/"
    allowing = ReferenceStore(made.url + "refs.json", allowed=[root, str(tmp_path)])
    assert allowing.get("name") == made.files["dir/data.bin"] and allowing.get("file") == b"s"
    with pytest.raises(ReferenceTargetError):
        allowing.get("address")


def test_names_that_stand_for_this_machine_are_refused(made, monkeypatch):
    """RF-URL-08: the address counts, whatever the name, and it is asked for once."""
    url = made.url.replace("127.0.0.1", "public.example") + "dir/data.bin"
    made.files["refs.json"] = json.dumps({"x": [url]}).encode()
    found = []
    resolve = socket.getaddrinfo

    def resolved(host, port, *args, **keywords):
        if host != "public.example":
            return resolve(host, port, *args, **keywords)
        found.append(host)
        return resolve("127.0.0.1", port, *args, **keywords)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    store = ReferenceStore(made.url + "refs.json")
    with pytest.raises(ReferenceTargetError, match="has the address 127.0.0.1"):
        store.get("x")
    assert found == ["public.example"]
    # Of a document here, a name may stand for anything.
    local = ReferenceStore(json.loads(made.files["refs.json"]))
    assert local.get("x") == made.files["dir/data.bin"]


@pytest.mark.parametrize("to", ["inner", "file"])
def test_redirects_are_judged(made, monkeypatch, tmp_path, to):
    """RF-URL-08"""
    (tmp_path / "secret").write_bytes(b"s")
    away = {"inner": "http://127.0.0.1:1/dir/data.bin", "file": (tmp_path / "secret").as_uri()}[to]
    publish(made, url="moved")
    made.files["dir/moved"] = b""
    made.faults["dir/moved"] = [("redirect", away)] * 3
    store = ReferenceStore(made.url + "dir/refs.json", allowed=made.here)
    with pytest.raises(ReferenceTargetError, match="is not allowed|is no URL of an HTTP server"):
        store.get("x/1")
    # To what is allowed they are followed.
    made.faults["dir/moved"] = [("redirect", "/dir/data.bin")]
    assert store.get("x/1") == made.values[10:20].tobytes()
    made.faults["dir/moved"] = [("redirect", "/dir/moved")] * 10
    with pytest.raises(ReferenceTargetError, match="more than 5 redirects"):
        store.get("x/1")


def test_a_redirect_to_where_nothing_is_names_both_urls(made):
    publish(made, url="moved")
    made.faults["dir/moved"] = [("redirect", "/gone")]
    with pytest.raises(ReferenceTargetError, match="redirects '.*/dir/moved' to '.*/gone', and nothing is there"):
        ReferenceStore(made.url + "dir/refs.json", allowed=made.here).get("x/1")


def test_a_redirect_from_elsewhere_to_here_is_refused(made, monkeypatch):
    """RF-URL-08: without `allowed`, the address that a redirect leads to is judged."""
    monkeypatch.setattr("zcore.stores.remote.http.is_near", lambda address: judged.append(address) or len(judged) > 1)
    judged = []
    publish(made, url="moved")
    made.faults["dir/moved"] = [("redirect", made.url.replace("127.0.0.1", "localhost") + "dir/data.bin")]
    with pytest.raises(ReferenceTargetError, match="the host 'localhost' has the address"):
        ReferenceStore(made.url + "dir/refs.json").get("x/1")


def test_headers_go_where_they_were_given_for(made):
    publish(made)
    store = ReferenceStore(made.url + "dir/refs.json", allowed=made.here,
                           services={made.url + "dir/": {"headers": {"Authorization": "Bearer x"}}})
    assert store.get("x/1") == made.values[10:20].tobytes()
    sent = {path: headers.get("Authorization") for path, headers in made.headers}
    assert sent == {"dir/refs.json": "Bearer x", "dir/data.bin": "Bearer x"}
    made.headers.clear()
    made.files["elsewhere"] = made.files["dir/data.bin"]
    made.faults["dir/data.bin"] = [("redirect", "/elsewhere")]
    assert store.get("x/1") == made.values[10:20].tobytes()
    assert [(path, headers.get("Authorization")) for path, headers in made.headers] == [
        ("dir/data.bin", "Bearer x"), ("elsewhere", None)]


@pytest.mark.parametrize("sign", ["\t", "\n", "\r", "\0", "\x1f", "\x7f"])
def test_control_characters_in_a_url(made, sign):
    """RF-URL-08: readers of URLs leave some of them out, and have another URL than the one that was judged."""
    url = made.url + f"dir/{sign}data.bin"
    made.requests.clear()
    with pytest.raises(ReferenceTargetError, match="control characters"):
        ReferenceStore({"x": [url, 0, 4]}).get("x")
    assert made.requests == []


@pytest.mark.parametrize("answer", [
    b"206 Partial Content\r\nContent-Range: bytes 0-3/*\r\nContent-Length: 4\r\n\r\nabcd",
    b"416 Range Not Satisfiable\r\nContent-Range: bytes */0\r\nContent-Length: 0\r\n\r\n"])
def test_a_part_of_a_target_is_not_the_whole(answer):
    """RF-URL-05: answers to a question that nobody has asked, of which nobody knows how much is missing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        def serve():
            with server.accept()[0] as connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 " + answer)

        thread = threading.Thread(target=serve)
        thread.start()
        store = ReferenceStore({"x": [f"http://127.0.0.1:{server.getsockname()[1]}/"]})
        with pytest.raises(ReferenceTargetError, match="cannot read it: (a part came|HTTP status 416)"):
            store.get("x")
        thread.join()


def test_connections_to_many_servers(made, monkeypatch):
    """A document may name thousands of them: each would keep a descriptor."""
    resolve = socket.getaddrinfo
    monkeypatch.setattr("socket.getaddrinfo", lambda host, *args, **more: resolve("127.0.0.1", *args, **more))
    monkeypatch.setattr("zcore.stores.remote.http.MAX_IDLE", 3)
    urls = [made.url.replace("127.0.0.1", f"host{i}.example") for i in (0, 1, 2, 3, 4, 5, 5, 4, 0)]
    store = ReferenceStore({f"x{i}": [url + "dir/data.bin", 0, 4] for i, url in enumerate(urls)})
    for key in store.list():
        assert store.get(key) == b"head"
    (client,) = store.targets.remote._clients.values()
    kept = [place[1] for place, _, _ in client._idle]
    assert kept == ["host5.example", "host4.example", "host0.example"]


def test_services_are_checked():
    for services, error in (({"s3": {}}, ValueError), ({3: {}}, ValueError), ({"s3://": 5}, TypeError),
                            ({"http://": {"endpoint": "x"}}, TypeError)):
        with pytest.raises(error, match="services"):
            ReferenceStore({}, services=services)


@pytest.mark.parametrize("url", ["abfss://c@account.dfs.core.windows.net/x", "ftp://h/x", "memory://x"])
def test_other_schemes(url):
    """RF-URL-01"""
    with pytest.raises(UnsupportedError, match="services="):
        ReferenceStore({"x": [url]}).get("x")


def test_a_saved_set_means_the_same_targets(made, tmp_path):
    store = ReferenceStore(publish(made), allowed=made.here)
    store.save(tmp_path / "here.json")
    assert ReferenceStore(str(tmp_path / "here.json")).get("x/4") == store.get("x/4")


@pytest.mark.parametrize("compressor", ["gzip", "zstd"])
def test_compressed_documents(made, tmp_path, monkeypatch, compressor):
    """RF-DOC-01"""
    codec = {"gzip": zcore.codecs.GzipCodec(), "zstd": zcore.codecs.ZstdCodec()}[compressor]
    text = json.dumps({**refs_to(made, "data.bin"), "long": "x" * 3_000_000}).encode()
    made.files["dir/refs.json"] = bytes(codec.encode(text))
    store = ReferenceStore(made.url + "dir/refs.json", allowed=made.here)
    assert store.get("x/4") == made.values[40:50].tobytes() and store.getsize("long") == 3_000_000
    (tmp_path / "refs.json").write_bytes(made.files["dir/refs.json"])
    assert zcore.open(str(tmp_path / "refs.json")).attrs.asdict() == {}
    monkeypatch.setattr("zcore.stores.reference.document.MAX_DECOMPRESSED", 2_000_000)
    with pytest.raises(ReferenceFormatError, match="2000000 bytes at the most"):
        ReferenceStore(str(tmp_path / "refs.json"))
    (tmp_path / "refs.json").write_bytes(made.files["dir/refs.json"][:-9])
    with pytest.raises(ReferenceFormatError, match=compressor):
        ReferenceStore(str(tmp_path / "refs.json"))
