"""Many requests over plain ``http://`` by zcore's own sockets: each value is that of obstore."""
import contextlib
import itertools
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import zcore
from tests.unit.stores.conformance import run_threads
from tests.unit.stores.servers import raw_server
from tests.unit.test_descriptors import interrupted
from zcore.stores.remote import direct
from zcore.stores.remote.client import UNUSUAL as LEFT
from zcore.stores.remote.store import RemoteStore

obstore = pytest.importorskip("obstore", reason="obstore is not installed (extra remote)")

ONCE = {"client_options": {"timeout": "500ms"}, "retry_config": {"max_retries": 0}}
TIME = b"Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
RANGE = b"Content-Range: bytes 10-19/100\r\n"
LENGTH = b"Content-Length: 10\r\n"
BODY = b"0123456789"


@pytest.fixture
def direct_values(monkeypatch):
    """What direct requests have given, in order."""
    values = []
    stream = direct.Direct.stream

    def noting(self, *args):
        for pairs in stream(self, *args):
            values.extend(value if value is LEFT or value is None else bytes(value) for _, value in pairs)
            yield pairs

    monkeypatch.setattr(direct.Direct, "stream", noting)
    return values


def streamed(store, requests, n=32):
    """Return the values of many keys or parts, in their order."""
    requests = [(i, *request) for i, request in enumerate(requests)]
    values = {}
    with contextlib.closing(store.stream(iter(requests), n, lambda: False)) as came:
        for mark, value in itertools.chain.from_iterable(came):
            assert mark not in values
            values[mark] = None if value is None else bytes(value)
    return [values[i] for i in range(len(requests))]


def outcome(ask):
    """Return what a call returns, or the kind and the words of its error."""
    try:
        return ask()
    except Exception as exc:
        # The words of obstore name the time that it took. It may have sent a HEAD after the GET.
        words = str(exc).partition("\n\nDebug source")[0].replace("HEAD", "GET")
        return type(exc), re.sub(r"in [\d.]+.?s\b", "", words)


def part_of(*lines, status=b"206 Partial Content", body=BODY):
    return b"HTTP/1.1 " + status + b"\r\n" + b"".join(lines) + b"\r\n" + body


def whole_of(*lines, body=BODY):
    return part_of(*lines, status=b"200 OK", body=body)


ORDINARY = {
    "a part": part_of(TIME, RANGE, LENGTH),
    "other lines": part_of(b"x-amz-meta-a: b\r\nVary: a\r\nVary: b\r\n", TIME, RANGE, LENGTH, b"ETag: \"a\"\r\n"),
    "lower case": part_of(TIME.replace(b"Last-M", b"last-m"), RANGE.lower(), b"content-length:10 \r\n"),
    "weak tag": part_of(TIME, RANGE, LENGTH, b"ETag: W/\"a\"\r\n"),
    "version": part_of(TIME, RANGE, LENGTH, b"x-amz-version-id: 7\r\n"),
    "the last one": part_of(TIME, RANGE, LENGTH, b"Connection: close\r\n"),
    "missing": part_of(b"Content-Length: 3\r\n", status=b"404 Not Found", body=b"no!"),
    "missing, with a page": part_of(b"Content-Length: 10000\r\n", status=b"404 Not Found", body=b"no" * 5000),
}
UNUSUAL = {
    "missing, with a book": part_of(b"Content-Length: 1000000\r\n", status=b"404 Not Found", body=b"no" * 500_000),
    "short": part_of(TIME, RANGE, LENGTH, b"Connection: close\r\n", body=BODY[:5]),
    "long": part_of(TIME, RANGE, LENGTH, body=BODY * 2),
    "2**60 bytes": part_of(TIME, RANGE, b"Content-Length: %d\r\n" % 2**60),
    "2**60 of 2**60 bytes": part_of(TIME, b"Content-Range: bytes 0-%d/%d\r\n" % (2**60 - 1, 2**60),
                                    b"Content-Length: %d\r\n" % 2**60),
    "two lengths": part_of(TIME, RANGE, LENGTH, b"Content-Length: 9\r\n"),
    "one length twice": part_of(TIME, RANGE, LENGTH, LENGTH),
    "no length": part_of(TIME, RANGE),
    "signed length": part_of(TIME, RANGE, b"Content-Length: +10\r\n"),
    "folded": part_of(TIME, RANGE, LENGTH, b"X: a\r\n b\r\n"),
    "a space before the colon": part_of(TIME, RANGE, b"Content-Length : 10\r\n"),
    "lines without a return": part_of(TIME, RANGE, LENGTH, b"X: a\n"),
    "letters beyond ASCII": part_of(TIME, RANGE, LENGTH, b"X: \xe4\r\n"),
    "continue": b"HTTP/1.1 100 Continue\r\n\r\n" + part_of(TIME, RANGE, LENGTH),
    "early hints": b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + part_of(TIME, RANGE, LENGTH),
    "chunked": part_of(TIME, RANGE, b"Transfer-Encoding: chunked\r\n", body=b"a\r\n0123456789\r\n0\r\n\r\n"),
    "chunked, with a length": part_of(TIME, RANGE, LENGTH, b"Transfer-Encoding: chunked\r\n",
                                      body=b"a\r\n0123456789\r\n0\r\n\r\n"),
    "encoded": part_of(TIME, RANGE, LENGTH, b"Content-Encoding: gzip\r\n"),
    "redirect": part_of(b"Location: /other\r\nContent-Length: 0\r\nConnection: close\r\n", status=b"302 Found",
                        body=b""),
    "forbidden": part_of(b"Content-Length: 0\r\n", status=b"403 Forbidden", body=b""),
    "gone": part_of(b"Content-Length: 0\r\n", status=b"410 Gone", body=b""),
    "no such part": part_of(b"Content-Length: 0\r\n", status=b"416 Range Not Satisfiable", body=b""),
    "broken": part_of(b"Content-Length: 0\r\n", status=b"500 Broken", body=b""),
    "busy": part_of(b"Content-Length: 0\r\n", status=b"503 Busy", body=b""),
    "another part": part_of(TIME, b"Content-Range: bytes 0-9/100\r\n", LENGTH),
    "a part of another length": part_of(TIME, b"Content-Range: bytes 10-18/100\r\n", b"Content-Length: 9\r\n"),
    "a part of what": part_of(TIME, b"Content-Range: bytes 10-19/*\r\n", LENGTH),
    "a part without a range": part_of(TIME, LENGTH),
    "all of it": whole_of(TIME, b"Content-Length: 100\r\n", body=BODY * 10),
    "HTTP/1.0": part_of(TIME, RANGE, LENGTH).replace(b"1.1", b"1.0"),
    "no HTTP": b"220 mail.example.org ESMTP\r\n\r\n",
    "nothing": b"",
}


@pytest.mark.parametrize(("answer", "is_ordinary"), [
    *[pytest.param(answer, True, id=name) for name, answer in ORDINARY.items()],
    *[pytest.param(answer, False, id=name) for name, answer in UNUSUAL.items()]])
def test_an_answer_means_what_it_means_to_obstore(answer, is_ordinary, direct_values):
    ends = not is_ordinary or b"close" in answer
    with raw_server([answer], ends=ends) as port:
        store = RemoteStore(f"http://127.0.0.1:{port}/", **ONCE)
        found = outcome(lambda: streamed(store, [("k", (10, 10))])[0])
        assert [value is not LEFT for value in direct_values] == [is_ordinary]
        # obstore may or may not find that the server has closed its connection, in each of the two.
        n_left = 20
        while found != outcome(lambda: store.get("k", (10, 10))):
            n_left -= 1
            assert n_left, "as obstore alone"
            found = outcome(lambda: streamed(store, [("k", (10, 10))])[0])


@pytest.mark.parametrize("answer", [
    lambda: itertools.chain([b"HTTP/1.1 206 Partial Content\r\n"], itertools.repeat(b"X: y\r\n" * 1000)),
    lambda: itertools.repeat(b"x" * 10_000),
    lambda: itertools.chain([part_of(TIME, RANGE, LENGTH, body=b"01")], itertools.repeat(True)),
    lambda: itertools.repeat(True),
], ids=["lines without end", "one line without end", "stalled in the middle", "stalled"])
def test_an_answer_that_does_not_end_ends(answer, direct_values):
    with raw_server(answer) as port:
        store = RemoteStore(f"http://127.0.0.1:{port}/", **ONCE)
        begin = time.monotonic()
        found = outcome(lambda: streamed(store, [("k", (10, 10))]))
        assert direct_values == [LEFT] and time.monotonic() - begin < 10
        assert found[0] == outcome(lambda: store.get("k", (10, 10)))[0]


def test_a_server_that_drips_has_a_time_limit(direct_values):
    """Each byte comes soon, the last one never."""
    with raw_server(lambda: itertools.chain(*[[bytes([letter]), True] for letter in part_of(TIME, RANGE, LENGTH)[:-1]],
                                            itertools.repeat(True))) as port:
        store = RemoteStore(f"http://127.0.0.1:{port}/", client_options={"timeout": "300ms"},
                            retry_config={"max_retries": 0})
        begin = time.monotonic()
        with pytest.raises(zcore.StoreError):
            streamed(store, [("k", (10, 10))])
        assert direct_values == [LEFT] and time.monotonic() - begin < 5


def test_no_memory_is_taken_by_a_server_s_word(monkeypatch):
    """Memory grows with the bytes that have come, whatever the server or the caller says."""
    taken = []
    empty = direct.np.empty
    monkeypatch.setattr(direct.np, "empty", lambda n, dtype: taken.append(n) or empty(n, dtype))
    monkeypatch.setattr(direct, "ROOM_NBYTES", 1000)
    monkeypatch.setattr(direct, "MAX_HEAD_NBYTES", 500)
    data = os.urandom(30_000)
    head = part_of(TIME, b"Content-Range: bytes 0-29999/30000\r\nContent-Length: 30000\r\n", body=b"")
    request = ("k", (0, 2**40))
    with raw_server([head, data[:999]], ends=True) as port:
        outcome(lambda: streamed(RemoteStore(f"http://127.0.0.1:{port}/", **ONCE), [request]))
    assert taken == [1500]
    taken.clear()
    with raw_server([head, data]) as port:
        assert streamed(RemoteStore(f"http://127.0.0.1:{port}/", **ONCE), [request]) == [data]
    assert taken == [1500, 6000, 24000, 30000 + len(head)]


def test_parts(site, direct_values):
    site.files["k"] = value = os.urandom(200_000)
    site.files["empty"] = b""
    store = RemoteStore(site.url)
    requests = [(key, part) for key in ("k", "empty", "none")
                for part in ((0, 5), (7, 9), (150_000, 2**25), (0, 2**40), (199_999, 1), (200_000, 1), (10**7, 10))]
    assert streamed(store, requests) == [store.get(*request) for request in requests]
    assert streamed(store, [("k", (10, 100_000))]) == [value[10:100_010]]
    assert direct_values.count(LEFT) < len(direct_values) / 2


def test_many_requests_are_in_flight(site, direct_values):
    """As many as the caller says, and as the store says, whose other requests wait for their turn."""
    values = {f"k{i}": os.urandom(1000 * (i % 37)) + b"1" for i in range(60)}
    site.files.update(values)
    site.delay = 0.02
    requests = [(key, (0, 10**6)) for key in values]
    for n, n_requests, expected in ((8, 32, 8), (32, 5, 5), (1, 32, 1)):
        site.n_most = 0
        store = RemoteStore(site.url, n_requests=n_requests)
        some = requests[:5] if n == 1 else requests
        assert streamed(store, some, n) == [values[key] for key, _ in some]
        assert site.n_most == expected
    assert LEFT not in direct_values
    site.n_most = 0
    store = RemoteStore(site.url, n_requests=3)
    run_threads(4, lambda i: streamed(store, requests[:5]) and store.get("k1"))
    assert site.n_most <= 3 and store._free.qsize() == 3


def n_helpers():
    return sum([thread.name == "zcore" for thread in threading.enumerate()])


def test_an_array_is_read_by_few_threads(site):
    """Missing chunks, ends of the array and objects that are too long included."""
    data = np.arange(103 * 97.).reshape(103, 97)
    memory = zcore.MemoryStore()
    array = zcore.create_array(memory, shape=data.shape, chunks=(10, 10), dtype="f8", fill_value=7)
    array[...] = data
    memory.erase("c/3/4")
    data[30:40, 40:50] = 7
    site.files.update({key: memory.get(key) for key in memory.list_prefix("")})
    site.delay = 0.005
    before = n_helpers()
    found = zcore.open(RemoteStore(site.url), threads=2)
    assert found.store.streams
    np.testing.assert_array_equal(found[...], data)
    np.testing.assert_array_equal(found[5:44, ::7], data[5:44, ::7])
    assert site.n_most > 8 and n_helpers() <= before + 3
    site.files["c/1/1"] += b"x" * 10_000
    with pytest.raises(zcore.ZcoreError, match="c/1/1"):
        found[...]
    site.files["c/1/1"] = b"short"
    with pytest.raises(zcore.ZcoreError, match="c/1/1"):
        found[...]
    assert found.store._free.qsize() == 32


def test_a_connection_is_used_again(site):
    site.files["k"] = b"1"
    store = RemoteStore(site.url)
    for _ in range(3):
        assert streamed(store, [("k", (0, 9)), ("none", (0, 9))], 1) == [b"1", None]
    assert len({headers["port"] for _, headers in site.headers}) == 1
    assert {headers["User-Agent"] for _, headers in site.headers} == {"zcore"}


def test_a_connection_that_the_server_has_closed(direct_values):
    with raw_server([part_of(TIME, RANGE, LENGTH)], ends=True) as port:
        store = RemoteStore(f"http://127.0.0.1:{port}/", **ONCE)
        for _ in range(3):
            assert streamed(store, [("k", (10, 10))] * 3, 1) == [BODY] * 3
    assert LEFT not in direct_values


def test_a_second_answer_is_not_that_to_the_next_request():
    """A server that answers twice, the second time late."""
    late = threading.Event()

    def answers():
        yield part_of(TIME, RANGE, LENGTH)
        late.wait(5)
        yield part_of(TIME, RANGE, LENGTH, body=b"9876543210")

    with raw_server(answers) as port:
        store = RemoteStore(f"http://127.0.0.1:{port}/", **ONCE)
        assert streamed(store, [("k", (10, 10))]) == [BODY]
        late.set()
        _, sock = idle_of(store)[0]
        while not readable(sock):
            time.sleep(0.01)
        assert streamed(store, [("k", (10, 10))]) == [BODY]


def readable(sock):
    try:
        return bool(sock.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False


def idle_of(store):
    return direct._idle[store._client.direct._address]


def test_idle_connections_are_few_and_young(site, monkeypatch):
    monkeypatch.setattr(direct, "MAX_IDLE", 3)
    monkeypatch.setattr(direct, "MAX_SERVERS", 2)
    site.files["k"] = b"1"
    site.delay = 0.05
    store = RemoteStore(site.url)
    streamed(store, [("k", (0, 9))] * 8)
    socks = [sock for _, sock in idle_of(store)]
    assert 1 <= len(socks) <= 3
    del store
    store = RemoteStore(site.url)
    streamed(store, [("k", (0, 9))])
    assert {sock for _, sock in idle_of(store)} == set(socks), "those of a former store"
    monkeypatch.setattr(direct, "MAX_IDLE_SECONDS", -1)
    streamed(store, [("k", (0, 9))])
    assert [sock.fileno() for sock in socks] == [-1] * len(socks) and len(idle_of(store)) == 1
    last = idle_of(store)[0][1]
    for _ in range(2):
        with raw_server([part_of(TIME, RANGE, LENGTH)]) as port:
            streamed(RemoteStore(f"http://127.0.0.1:{port}/", **ONCE), [("k", (10, 10))])
    assert last.fileno() == -1 and len(direct._idle) == 2


def test_no_connection_is_left(site):
    site.files["k"] = b"1"
    site.delay = 0.05
    store = RemoteStore(site.url)
    pairs = store.stream(iter([(i, "k", (0, 9)) for i in range(100)]), 8, lambda: False)
    next(pairs)
    pairs.close()
    del pairs
    kept = {sock for idle in direct._idle.values() for _, sock in idle}
    assert {sock for sock in direct._open if sock.fileno() != -1} <= kept and store._free.qsize() == 32


def test_a_server_that_is_never_ordinary_is_left_alone(site, direct_values, monkeypatch):
    """After some answers obstore alone asks, and later it is tried again."""
    site.files["k"] = b"0123456789"
    site.faults["k"] = [403] * 2 * direct.MAX_UNUSUAL
    store = RemoteStore(site.url, **ONCE)
    request = [("k", (0, 10))]
    for _ in range(direct.MAX_UNUSUAL):
        outcome(lambda: streamed(store, request))
    assert len(site.requests) == 2 * direct.MAX_UNUSUAL
    site.requests.clear()
    assert streamed(store, request) == [b"0123456789"] and direct_values[-1] is LEFT
    assert len(site.requests) == 1
    now = time.monotonic()
    monkeypatch.setattr(direct.time, "monotonic", lambda: now + direct.PAUSE + 1)
    assert streamed(store, request) == [b"0123456789"] and direct_values[-1] is not LEFT


def test_a_server_that_is_not_there():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    store = RemoteStore(f"http://127.0.0.1:{port}/", **ONCE)
    with pytest.raises(zcore.StoreError, match="cannot read"):
        streamed(store, [("k", (0, 10))] * 100)
    assert store._free.qsize() == 32


def test_stores_that_are_asked_directly(site, monkeypatch):
    """Only those of which every option is known."""
    for url in (site.url, site.url + "a.b/c-d/", site.url + "a.b/c-d"):
        assert RemoteStore(url).streams, url
        assert RemoteStore(obstore.store.HTTPStore(url, client_options={"allow_http": True})).streams, url
    assert not RemoteStore(site.url.replace("http:", "https:")).streams
    assert not RemoteStore(site.url + "a%2eb").streams
    assert not RemoteStore(site.url, client_options={"user_agent": "x"}).streams
    assert not RemoteStore(site.url, client_options={"proxy_url": site.url}).streams
    assert not RemoteStore(site.url, client_options={"timeout": "1 hour"}).streams

    class Other(obstore.store.HTTPStore):
        pass

    assert not RemoteStore(Other(site.url, client_options={"allow_http": True})).streams
    monkeypatch.setenv("HTTP_PROXY", site.url)
    assert not RemoteStore(site.url).streams


@pytest.mark.parametrize("name", ["a b", "a%20b", "ä", "a?b", "a#b"])
def test_names_that_are_spelled_in_another_way_in_a_url(site, direct_values, name):
    site.files["k"] = b"1"
    store = RemoteStore(site.url)
    assert (outcome(lambda: streamed(store, [(name, (0, 10))])[0]) == outcome(lambda: store.get(name, (0, 10))))
    assert direct_values == [LEFT]


KEYS = {"access_key_id": "key", "secret_access_key": "secret"}


@pytest.mark.parametrize("options", [KEYS, {**KEYS, "session_token": "t"}, {"skip_signature": True}],
                         ids=["keys", "token", "public"])
@pytest.mark.parametrize("path", ["a/b", "a b"])
@pytest.mark.parametrize("bucket_of", ["host", "path"])
def test_a_bucket(site, options, path, bucket_of, direct_values):
    name = f"name/{path}/c/0" if bucket_of == "path" else f"{path}/c/0"
    value = site.files[name] = os.urandom(100_000)
    options = {"endpoint": site.url, "client_options": {"allow_http": True},
               "virtual_hosted_style_request": bucket_of == "host"} | options
    for store in (RemoteStore(f"s3://name/{path}", **options),
                  RemoteStore(obstore.store.S3Store("name", prefix=path, **options))):
        requests = [("c/0", (10, 1000)), ("c/0", (0, 10**6)), ("c/1", (0, 5))]
        assert streamed(store, requests) == [value[10:1010], value, None]
        # Names with a space are left to obstore, but not a prefix that it puts before them.
        is_plain = not store._prefix.startswith("a b")
        assert [found is not LEFT for found in direct_values] == [is_plain] * 3
        direct_values.clear()
    signed = {"signed" if "AWS4" in str(headers) or "X-Amz-Signature" in target else "not"
              for target, headers in site.targets}
    assert signed == {"not" if "skip_signature" in options else "signed"}


@pytest.mark.parametrize(("options", "variables"), [
    ({"request_payer": True}, {}), ({"unsigned_payload": True}, {}),
    ({}, {"AWS_PROXY_URL": "http://127.0.0.1:1"}), ({}, {"AWS_SKIP_SIGNATURE": "false"})])
def test_options_of_buckets_that_are_not_known(options, variables, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    known = {"endpoint": "http://127.0.0.1:1", "region": "us-east-1", "client_options": {"allow_http": True}, **KEYS}
    assert not RemoteStore("s3://bucket", **known, **options).streams
    for name in variables:
        monkeypatch.delenv(name)
    assert RemoteStore("s3://bucket", **known).streams


SCRIPT = """
    import os, signal, sys, threading, time
    import zcore
    store = zcore.RemoteStore(sys.argv[1])

    def read(*keys):
        requests = iter([(key, key, (0, 1000)) for key in keys])
        return {key: bytes(value) for pairs in store.stream(requests, 32, lambda: False) for key, value in pairs}
"""


def run(script, url):
    command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c",
               textwrap.dedent(SCRIPT) + textwrap.dedent(script), url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_has_connections_of_its_own(site):
    site.files["k"] = b"1"
    run("""
        assert read("k") == {"k": b"1"}
        pid = os.fork()
        if not pid:
            signal.alarm(30)
            os._exit(read("k") != {"k": b"1"} or read("k") != {"k": b"1"})
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert read("k") == {"k": b"1"}
    """, site.url)
    ports = [headers["port"] for _, headers in site.headers]
    assert ports[0] == ports[3] != ports[1] == ports[2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("n", [20, 80])     # fewer and more than requests may be in flight
def test_a_child_that_is_forked_while_answers_come(site, n):
    """Its requests in flight are lost, so it asks obstore again; the parent's are not."""
    site.files.update({f"k{i}": b"%d" % i for i in range(n)})
    run(f"""
        names = [f"k{{i}}" for i in range({n})]
        values, pid = {{}}, 0
        for pairs in store.stream(iter([(name, name, (0, 1000)) for name in names]), 8, lambda: False):
            if not values and not pid:
                pid = os.fork()
                signal.alarm(30)
            values.update((key, bytes(value)) for key, value in pairs)
        is_right = values == {{name: name[1:].encode() for name in names}}
        if not pid:
            os._exit(not is_right)
        assert is_right
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    """, site.url)


def test_what_was_interrupted_is_not_taken_for_the_next_answer(site):
    """Ctrl-C while an answer comes; the next one is right."""
    site.files["k"], site.files["other"] = b"x" * 400, b"other"
    site.faults["k"] = ["drip"]
    run("""
        def interrupt():
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt).start()
        try:
            read("other", "k")
        except KeyboardInterrupt:
            pass
        else:
            raise AssertionError
        for _ in range(5):
            assert read("other") == {"other": b"other"}
        assert read("k") == {"k": b"x" * 400}
    """, site.url)


def test_a_handler_that_reads_and_raises_while_bytes_come(site):
    site.files["k"], site.files["other"] = b"x" * 400, b"other"
    store = RemoteStore(site.url, n_requests=1)
    other = [("other", (0, 1000))]
    streamed(store, other)
    site.faults["k"] = ["drip"]

    def interrupted(signum, frame):
        assert streamed(store, other) == [b"other"]
        assert store.get("other") == b"other"
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupted)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            streamed(store, [("k", (0, 1000))])
    finally:
        signal.signal(signal.SIGALRM, before)
    assert streamed(store, other * 3) == [b"other"] * 3
    assert streamed(store, [("k", (0, 1000))]) == [b"x" * 400] and store._free.qsize() == 1


def test_a_read_that_is_stopped_ends_soon(site):
    site.files["k"] = b"x" * 400
    site.faults["k"] = ["drip"] * 10
    store = RemoteStore(site.url)
    over = threading.Event()
    threading.Timer(0.2, over.set).start()
    begin = time.monotonic()
    requests = iter([(i, "k", (0, 1000)) for i in range(8)])
    assert list(store.stream(requests, 8, over.is_set)) == []
    assert time.monotonic() - begin < 2 and store._free.qsize() == 32


def test_an_array_without_elements(site):
    """It was a division by 0."""
    memory = zcore.MemoryStore()
    zcore.create_array(memory, name="a", shape=(0, 3), chunks=(1, 3), dtype="i4")
    site.files.update({key: memory.get(key) for key in memory.list()})
    array = zcore.open(RemoteStore(site.url), path="a")
    assert array._binding.store.streams and array[...].shape == (0, 3)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")    # of sockets that are just freed
@pytest.mark.parametrize("call", ["set", "erase", "stream"])
def test_ctrl_c_at_any_call_takes_no_turn_away(site, call):
    site.files.update({f"k{i}": b"1" for i in range(3)})
    store = RemoteStore(site.url if call == "stream" else obstore.store.MemoryStore(), n_requests=2)
    work = {"set": lambda: store.set("k", b"1"), "erase": lambda: store.erase("k"),
            "stream": lambda: streamed(store, [(f"k{i}", (0, 1000)) for i in range(3)])}[call]
    work()
    n = 0
    while interrupted(work, n, ("c_return", "call")):
        assert store._free.qsize() == 2 and not store._is_asking()
        n += 1
    assert n > 5


def test_ctrl_c_at_any_moment_takes_no_turn_away():
    """Of signals that come by themselves, one of twenty did."""
    store = RemoteStore(obstore.store.MemoryStore(), n_requests=4)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for i in range(300):
            with pytest.raises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 1e-5 + i * 1e-6)
                while True:
                    store.set("k", b"1")
            assert store._free.qsize() == 4 and not store._is_asking()
    finally:
        signal.signal(signal.SIGALRM, before)
