"""Plain HTTP servers, with and without ranges, and with the faults of real ones."""
import itertools
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import zcore
from tests.unit.stores.servers import raw_server
from zcore.errors import NodeNotFoundError, ReadOnlyError, StoreError
from zcore.stores.remote.store import RemoteStore

pytest.importorskip("obstore", reason="obstore is not installed (extra remote)")

ONCE = {"client_options": {"timeout": "1s"}, "retry_config": {"max_retries": 0}}


def publish(site, store):
    """Make the values of a store the files of a site."""
    for key in store.list():
        site.files[f"data/{key}"] = store.get(key)


@pytest.fixture
def example(site):
    """A hierarchy on a site, `values` of its array, and the URL of its root."""
    store = zcore.MemoryStore()
    root = zcore.create_group(store, attributes={"x": 1})
    site.values = np.arange(1200, dtype="i4").reshape(30, 40)
    root.create_array("a", shape=(30, 40), chunks=(10, 10), dtype="i4")[...] = site.values
    root.create_array("shards", shape=(30, 40), shards=(30, 20), chunks=(5, 5), dtype="i4")[...] = site.values
    zcore.consolidate_metadata(store)
    publish(site, store)
    return site


def test_arrays_and_groups_are_opened_by_name(example):
    root = zcore.open(example.url + "data")
    assert root.attrs["x"] == 1 and root.store.read_only
    np.testing.assert_array_equal(root["a"][...], example.values)
    np.testing.assert_array_equal(zcore.open(example.url + "data/a/")[3:, ::2], example.values[3:, ::2])
    np.testing.assert_array_equal(zcore.open(example.url, path="data/shards")[...], example.values)
    # Without a listing, consolidated metadata have it.
    members = zcore.open_consolidated(example.url + "data")
    assert sorted(members) == ["a", "shards"]
    np.testing.assert_array_equal(members["a"][5], example.values[5])
    with pytest.raises(StoreError, match="has no listing; arrays and groups are opened by their paths"):
        root.store.list_dir("")
    with pytest.raises(StoreError, match="has no listing"):
        root.store.list()
    with pytest.raises(NodeNotFoundError):
        zcore.open(example.url + "data/b")
    with pytest.raises(ReadOnlyError):
        zcore.open(example.url + "data/a", mode="r+")[0] = 1


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_members_of_a_consolidated_group_cost_no_request_until_they_are_read(site, zarr_format):
    store = zcore.MemoryStore()
    root = zcore.create_group(store, attributes={"x": 1}, zarr_format=zarr_format)
    for i in range(20):
        root.create_array(f"g/a{i}", data=np.arange(i, i + 4), attributes={"units": "K"})
    zcore.consolidate_metadata(store)
    publish(site, store)
    group = zcore.open(site.url + "data", zarr_format=zarr_format)
    assert len(site.data()) <= {3: 1, 2: 4}[zarr_format]
    # Of each object that is absent, the server is asked whether it is elsewhere.
    assert len(site.data("HEAD")) <= {3: 0, 2: 2}[zarr_format]
    site.requests.clear()
    members = dict(group["g"].members())
    assert len(members) == 20 and group["g/a7"] == members["a7"]
    assert [array.attrs.as_opened() for array in members.values()] == [{"units": "K"}] * 20
    assert not site.requests
    assert members["a7"][...].tolist() == [7, 8, 9, 10]
    document = {3: "data/g/a7/zarr.json", 2: "data/g/a7/.zarray"}[zarr_format]
    assert document in [path for path, _ in site.data()], "the read compares the copy with the document"
    # A handle for writing goes by the documents alone.
    site.requests.clear()
    zcore.open_group(site.url + "data", "r+", zarr_format=zarr_format)["g/a7"]
    assert document in [path for path, _ in site.data()]


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("tags", [True, False])
def test_parts_of_values(example, ranges, tags):
    example.ranges, example.tags = ranges, tags
    example.files["k"] = value = bytes(range(256)) * 4000
    example.files["empty"] = b""
    store = RemoteStore(example.url, **ONCE)
    for part, expected in {(0, 5): value[:5], (7, 9): value[7:16], (1000, None): value[1000:], (None, 5): value[-5:],
                           (None, 2**40): value, (len(value) - 3, 9): value[-3:], (len(value), 2): b"",
                           (2**70, None): b"", (4, 0): b"", None: value}.items():
        assert store.get("k", part) == expected, part
        assert store.get("none", part) is None
    assert store.get("empty", (0, 9)) == store.get("empty", (None, 9)) == store.get("empty") == b""
    assert (store.getsize("k"), store.getsize("none")) == (len(value), None)
    assert (store.identity("k") is None) != tags
    array = zcore.open(example.url + "data/shards")
    np.testing.assert_array_equal(array[7:11, 3], example.values[7:11, 3])
    np.testing.assert_array_equal(array[...], example.values)


def test_part_of_a_shard_costs_the_part(example):
    array = zcore.open(example.url + "data/shards")
    example.requests.clear()
    np.testing.assert_array_equal(array[3, 4:6], example.values[3, 4:6])
    size = len(example.files["data/shards/c/0/0"])
    parts = [part for path, part in example.data() if path == "data/shards/c/0/0"]
    # The index, and its chunks that touch.
    assert parts == [f"bytes=-{16 * 24 + 4}", "bytes=0-239"], size
    np.testing.assert_array_equal(array[:, 3], example.values[:, 3])


@pytest.mark.parametrize("fault", [403, 500, 503, "short", "hang", 416])
def test_faults_are_errors_that_name_url_and_range(example, fault):
    store = RemoteStore(example.url, **ONCE)
    example.files["k"] = b"x" * 100_000
    example.faults["k"] = [fault] * 3
    with pytest.raises(StoreError) as caught:
        store.get("k", (10, 50_000))
    assert f"{example.url}k" in str(caught.value) and "bytes 10 to 50010" in str(caught.value)
    assert caught.value.key == "k"
    example.faults["data/a/c/1/1"] = [fault] * 3
    array = zcore.open(RemoteStore(example.url, **ONCE), path="data/a")
    with pytest.raises(StoreError, match="data/a/c/1/1"):
        array[...]


def test_no_other_fault_is_taken_for_a_range_beyond_the_end(example):
    """The name of a range, or the number 416, may be in the name of the object."""
    client = RemoteStore(example.url, **ONCE)._client
    for name in ("416", "range/Range", "status code: 416"):
        example.files[name] = b"xyz"
        assert client.get(name, (5, 3)).data == b"" and client.get(name, (1, None)).data == b"yz"
        example.requests.clear()
        example.faults[name] = [500] * 3
        with pytest.raises(Exception, match="500"):
            client.get(name, (1, 3))
        assert example.requests == [("GET", name, "bytes=1-3")]


def test_a_fault_that_passes_is_tried_again(example):
    example.faults["data/a/c/1/1"] = [500, 503, None]
    np.testing.assert_array_equal(zcore.open(example.url + "data/a")[...], example.values)


def test_a_value_that_is_missing_is_the_fill_value(example):
    del example.files["data/a/c/1/1"]
    example.values[10:20, 10:20] = 0
    np.testing.assert_array_equal(zcore.open(example.url + "data/a")[...], example.values)


def test_who_may_not_know_what_is_missing(example):
    """A service that answers 403 of what is missing: nodes are opened, and no chunk is taken for one of fill values."""
    example.missing = 403
    array = zcore.open(RemoteStore(example.url, **ONCE), path="data/a")
    np.testing.assert_array_equal(array[...], example.values)
    del example.files["data/a/c/1/1"]
    with pytest.raises(StoreError, match="data/a/c/1/1.*403"):
        array[...]
    with pytest.raises(StoreError, match="403"):
        zcore.open(RemoteStore(example.url, **ONCE), path="data/b")


def test_requests_are_under_way_together_whatever_the_threads(example):
    example.values = np.zeros((64, 64), "i1")
    store = zcore.MemoryStore()
    zcore.create_array(store, shape=(64, 64), chunks=(8, 8), dtype="i1", write_empty_chunks=True)[...] = example.values
    publish(example, store)
    example.delay = 0.01
    zcore.open(RemoteStore(example.url, n_requests=12), path="data", threads=1)[...]
    assert 4 < example.n_most <= 12


FORKED = """
    import contextlib, os, signal, sys, threading
    import numpy as np
    import obstore.store
    import zcore

    def in_child(work):
        pid = os.fork()
        if pid:
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        signal.alarm(40)
        try:
            work()
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            os._exit(1)

    url = sys.argv[1]
    PLAIN = dict(client_options={"allow_http": True})
"""


def forked(script, *args):
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(FORKED) + textwrap.dedent(script), *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_store_of_the_parent_is_not_freed_in_a_child(example):
    """Freeing it would wait for a lock that a thread of the parent may have held."""
    forked("""
        import gc

        freed = []

        class Seen(obstore.store.HTTPStore):
            def __del__(self):
                freed.append(os.getpid())

        def opened():
            return zcore.open(Seen(url, **PLAIN), path="data/a")

        first, second = opened(), opened()

        def below():
            global first
            del first
            gc.collect()
            assert not freed

        def work():
            global second
            del second
            gc.collect()
            assert not freed
            assert in_child(below) == 0

        assert in_child(work) == 0
        del first, second
        gc.collect()
        assert freed == 2 * [os.getpid()]
    """, example.url)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("opened", ["zcore.open(url, path='data/a', threads=4)",
                                    "zcore.open(obstore.store.HTTPStore(url, **PLAIN), path='data/a')"],
                         ids=["url", "store"])
def test_a_child_of_a_parent_that_has_made_a_request(example, opened):
    """Each request is an error that says what to do, also by a new store; the parent goes on."""
    forked(f"""
        array = {opened}
        values = array[...]

        def work():
            for read in (lambda: array[...], lambda: zcore.open(url, path="data/shards")):
                try:
                    read()
                except zcore.StoreError as error:
                    assert "forked" in str(error) and "'spawn' or 'forkserver'" in str(error), error
                else:
                    raise AssertionError("it was read")

        assert [in_child(lambda: (work(), in_child(work))) for _ in range(2)] == [0, 0]
        assert (array[...] == values).all()
    """, example.url)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_of_a_parent_that_has_only_imported_obstore(example):
    forked("""
        store = zcore.RemoteStore(url)
        assert in_child(lambda: zcore.open(store, path="data/a")[...]) == 0
        zcore.open(store, path="data/a")[...]
    """, example.url)


def test_without_obstore_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    for url in ("https://h/x", "s3://bucket/x"):
        with pytest.raises(zcore.UnsupportedError, match='"zcore-array.remote."'):
            zcore.open(url)


@pytest.mark.parametrize(("url", "error"), [("https://h/x?token=1", ValueError), ("https://h/x#y", ValueError),
                                            ("ftp://h/x", zcore.UnsupportedError)])
def test_urls_that_are_refused(url, error):
    with pytest.raises(error):
        zcore.open(url)


def test_what_is_known_of_an_array_without_a_listing(example, capsys):
    from zcore.__main__ import main

    array = zcore.open(example.url + "data/a")
    assert not array.store.lists and zcore.MemoryStore().lists
    assert main(["info", example.url + "data/a"]) == 0
    shown = capsys.readouterr().out
    assert "not known: the store has no listing" in shown and "12 chunks, in a grid of 3 x 4" in shown
    assert main(["info", "--chunks", example.url + "data/a"]) == 1
    assert "has no listing" in capsys.readouterr().err


def test_names_of_zarr_python(example):
    from obstore.store import HTTPStore

    made = zcore.storage.ObjectStore(HTTPStore(example.url + "data", client_options={"allow_http": True}))
    np.testing.assert_array_equal(zcore.open(made)["a"][...], example.values)
    assert zcore.storage.FsspecStore is zcore.RemoteStore


HEAD = b"HTTP/1.1 %s\r\nLast-Modified: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
PART = HEAD % b"206 Partial Content" + b"Content-Range: bytes 10-19/100\r\n"


@pytest.mark.parametrize(("head", "part", "message"), [
    (PART + b"Content-Length: 1000000000000\r\n\r\n", (10, 10), "bytes came or more, for bytes 10 to 20 of 100"),
    (HEAD % b"200 OK" + b"Content-Length: 1000000000000\r\n\r\n", None, "at most 2147483647 are read"),
    (HEAD % b"200 OK" + b"Content-Length: 1000000000000\r\n\r\n", (5, None), "at most 2147483647 are read"),
])
def test_a_server_that_says_more_than_it_should(head, part, message):
    """No memory is taken by its word, and no more is read than was asked for."""
    with raw_server(lambda: itertools.chain([head], itertools.repeat(b"x" * 100_000))) as port:
        with pytest.raises(StoreError, match=message):
            RemoteStore(f"http://127.0.0.1:{port}/", **ONCE).get("k", part)


@pytest.mark.parametrize("n_bytes", [5, 15])
def test_a_server_that_gives_another_part_than_it_says(n_bytes):
    with raw_server([PART + b"Content-Length: %d\r\n\r\n" % n_bytes + b"x" * n_bytes]) as port:
        with pytest.raises(StoreError, match=f"{n_bytes} bytes came"):
            RemoteStore(f"http://127.0.0.1:{port}/", **ONCE).get("k", (10, 10))


def store_of(library, url):
    """The store of a hierarchy on a site, by a library."""
    if library == "obstore":
        return RemoteStore(url + "data")
    pytest.importorskip("aiohttp", reason="fsspec needs aiohttp for HTTP")
    import fsspec
    from fsspec.implementations.dirfs import DirFileSystem

    filesystem = fsspec.filesystem("http", skip_instance_cache=True)
    if library == "fsspec in a directory":
        return RemoteStore(DirFileSystem(url + "data", filesystem))
    return RemoteStore(filesystem.get_mapper(url + "data"))


LIBRARIES = pytest.mark.parametrize("library", ["obstore", "fsspec", "fsspec in a directory"])


@pytest.mark.thinned(3, "status", "library")
@LIBRARIES
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_where_nothing_is_does_not_read_as_the_fill_value(example, library, status):
    """A chunk, a part of a shard and a document: the server says that they are elsewhere."""
    store = store_of(library, example.url)
    root = zcore.open_group(store, "r")
    arrays = root["a"], root["shards"]
    for name, gone in (("a/c/1/0", "/gone"), ("shards/c/0/1", "there/gone"), ("b/zarr.json", "/x"),
                       ("a/c/2/0", "/data/a/c/1/0")):
        example.faults[f"data/{name}"] = [("redirect", gone, status)] * 100
    for array in arrays:
        with pytest.raises(StoreError, match="redirects '.*/c/./.' to '.*gone', and nothing is there"):
            array[...]
        np.testing.assert_array_equal(array[:10, :10], example.values[:10, :10])
    with pytest.raises(StoreError, match="/gone', and nothing is there"):
        arrays[0][25, 0]        # by way of another redirect
    with pytest.raises(StoreError, match="redirects '.*/b/zarr.json' to '.*/x', and nothing is there"):
        root["b"]
    # What is absent without a redirect is the fill value.
    del example.files["data/a/c/0/3"], example.faults["data/a/c/1/0"]
    assert not arrays[0][:10, 30:].any() and arrays[0][10:20, :30].all()
    # To where it is, a redirect is followed.
    example.faults["data/a/c/0/0"] = [("redirect", "/data/a/c/1/0", status)] * 100
    np.testing.assert_array_equal(arrays[0][:10, :10], example.values[10:20, :10])


@LIBRARIES
def test_a_redirect_to_another_server_that_has_nothing(example, library):
    with raw_server(lambda: [b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"], ends=True) as port:
        example.faults["data/a/c/1/0"] = [("redirect", f"http://127.0.0.1:{port}/data/a/c/1/0")] * 100
        with pytest.raises(StoreError, match=f"to 'http://127.0.0.1:{port}/data/a/c/1/0', and nothing is there"):
            zcore.open(store_of(library, example.url), path="a")[...]


def test_headers_of_the_caller_do_not_go_to_where_a_redirect_leads(example):
    example.faults["data/a/c/1/0"] = [("redirect", "/gone")] * 100
    store = RemoteStore(example.url + "data", client_options={"default_headers": {"x-secret": "s"}})
    with pytest.raises(StoreError, match="nothing is there"):
        zcore.open(store, path="a")[10:20, :10]
    sent = [(path, headers.get("x-secret")) for path, headers in example.headers if path.startswith("data/a/c")]
    assert sent and all(value == "s" for _, value in sent)
    # obstore sends them wherever it is led.
    assert [headers.get("x-secret") for path, headers in example.headers if path == "gone"][-1] is None


@pytest.mark.parametrize("status", [500, 403])
def test_fsspec_takes_no_error_of_a_server_for_absence(example, status):
    """fsspec's `info` raises FileNotFoundError for every error."""
    root = zcore.open_group(store_of("fsspec", example.url), "r")
    shards = root["shards"]
    example.faults["data/shards/c/0/1"] = [status] * 100
    with pytest.raises(StoreError, match=str(status)):
        shards[0, 20:]
