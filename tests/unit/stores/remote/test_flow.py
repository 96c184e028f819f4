"""What is under way at a time: requests, bytes, and decoding beside them."""
import itertools
import threading
from datetime import UTC, datetime
from queue import SimpleQueue

import numpy as np
import pytest

import zcore
from zcore.kernel.plan.feed import Feed
from zcore.stores.base import resolve_range
from zcore.stores.reference.store import ReferenceStore
from zcore.stores.remote.client import Answer, Client, Head
from zcore.stores.remote.store import RemoteStore

WAIT = 20     # seconds, after which something will never happen


class Counting(Client):
    """A service in memory that counts; `before(name)` is called when a value is asked for.

    Attributes
    ----------
    n_bytes, n_most_bytes, n_most : int
        Bytes that were asked for and have not been decoded, the most at a time, and the most requests.
    """

    url, tagged = "counting://", True

    def __init__(self, store):
        self.store = store
        self.before = lambda name: None
        self.lock = threading.Lock()
        self.n_now = self.n_most = self.n_bytes = self.n_most_bytes = 0
        self.asked = []

    def get(self, name, byte_range):
        value = self.store.get(name)
        if value is None:
            return None
        start, stop = resolve_range(byte_range, len(value))
        with self.lock:
            self.asked.append((name, start, stop))
            self.n_now += 1
            self.n_bytes += stop - start
            self.n_most = max(self.n_most, self.n_now)
            self.n_most_bytes = max(self.n_most_bytes, self.n_bytes)
        try:
            self.before(name)
            return Answer(value[start:stop], len(value), 1)
        finally:
            with self.lock:
                self.n_now -= 1

    def decoded(self, n_bytes):
        with self.lock:
            self.n_bytes -= n_bytes

    def reset(self):
        self.n_most = self.n_bytes = self.n_most_bytes = 0
        self.asked = []


class Noting:
    """A `Feed` that tells a `Counting` client what it has decoded."""

    def __init__(self, feed, client):
        self._feed = feed
        self._client = client

    def __getattr__(self, name):
        return getattr(self._feed, name)

    def read(self, tasks, values):
        self._feed.read(tasks, values)
        self._client.decoded(sum(map(len, filter(None, values))))


@pytest.fixture
def counting(monkeypatch):
    """Make a `Counting` client of an array, which notes what is decoded."""
    def make(**keywords):
        store = zcore.MemoryStore()
        array = zcore.create_array(store, compressors=None, checksum=False, **keywords)
        values = np.arange(array.size, dtype=array.dtype).reshape(array.shape) + 1
        array[...] = values
        client = Counting(store)
        monkeypatch.setattr("zcore.engine.requests.Feed", lambda *args: Noting(Feed(*args), client))
        return client, values

    return make


def together(n):
    """Return a function that returns when it was called `n` times, and at once from then on."""
    barrier = threading.Barrier(n)
    numbers = itertools.count()

    def wait(name):
        if "c/" in name and next(numbers) < n:
            barrier.wait(WAIT)

    return wait


def test_as_many_requests_as_were_said_whatever_the_threads(counting):
    client, values = counting(shape=(64,), chunks=(1,), dtype="i4")
    client.before = together(12)
    array = zcore.open(RemoteStore(client, n_requests=12), threads=1)
    np.testing.assert_array_equal(array[...], values)
    assert client.n_most == 12


def test_bytes_under_way_are_bounded(counting, monkeypatch):
    """Large chunks are asked for by few requests at a time."""
    client, values = counting(shape=(40, 1000), chunks=(1, 1000), dtype="i4")
    monkeypatch.setattr("zcore.engine.array_binding.MAX_ASKED_NBYTES", 5 * 4000)
    client.before = together(5)
    array = zcore.open(RemoteStore(client), threads=1)
    client.reset()
    np.testing.assert_array_equal(array[...], values)
    documents = sum(stop - start for name, start, stop in client.asked if "c/" not in name)
    assert 4 * 4000 < client.n_most_bytes <= 5 * 4000 + documents


def test_a_chunk_is_decoded_while_others_come(counting, monkeypatch):
    """The last chunk comes only when the first one has been decoded."""
    client, values = counting(shape=(8,), chunks=(1,), dtype="i4")
    first = threading.Event()
    decoded = client.decoded
    client.decoded = lambda n_bytes: (first.set(), decoded(n_bytes))
    client.before = lambda name: name != "c/7" or first.wait(WAIT) or pytest.fail("nothing was decoded meanwhile")
    np.testing.assert_array_equal(zcore.open(RemoteStore(client, n_requests=8))[...], values)


def test_parts_of_a_shard_are_asked_for_at_a_time(counting, monkeypatch):
    client, values = counting(shape=(64,), chunks=(1,), shards=(64,), dtype="i4")
    monkeypatch.setattr("zcore.engine.requests.MAX_GAP", 0)
    monkeypatch.setattr("zcore.engine.requests._blocks.__defaults__", (8,))
    array = zcore.open(RemoteStore(client))
    client.reset()
    np.testing.assert_array_equal(array[[1, 2, 10, 11, 12, 30]], values[[1, 2, 10, 11, 12, 30]])
    places = [(start, stop) for name, start, stop in client.asked if "c/" in name]
    assert places[0] == (256, 256 + 16 * 64 + 4)
    assert sorted(places[1:]) == [(4, 12), (40, 48), (48, 52), (120, 124)]
    client.reset()
    np.testing.assert_array_equal(array[3:50], values[3:50])
    assert [(start, stop) for name, start, stop in client.asked if "c/" in name] == [(0, 256 + 16 * 64 + 4)]


def test_a_shard_that_is_replaced_while_its_parts_are_read(counting):
    client, values = counting(shape=(64,), chunks=(1,), shards=(64,), dtype="i4")
    other = zcore.open(client.store, mode="r+")
    get, tags = client.get, [1]

    def replaced(name, byte_range):
        answer = get(name, byte_range)
        if name == "c/0" and tags == [1]:
            # Behind the index of the old one come chunks of the new one.
            tags.append(2)
            other[...] = 7
            return answer
        return answer._replace(tag=tags[-1]) if name == "c/0" else answer

    client.get = replaced
    assert zcore.open(RemoteStore(client))[5:9].tolist() == [7] * 4


@pytest.fixture
def looked(counting):
    """Make (client, values, array) of two shards.

    `client.answered` has the names of the indices that have come, and `client.looks` how many there were at each look
    at the document. ``client.part_before()`` is called before a part comes.
    """
    client, values = counting(shape=(128,), chunks=(1,), shards=(64,), dtype="i4")
    array = zcore.open(RemoteStore(client), zarr_format=3)
    get, client.tag, client.part_before, client.looked = client.get, 1, lambda: None, threading.Event()
    client.answered, client.looks = [], []

    def get_tagged(name, byte_range):
        is_index = byte_range is not None and byte_range[0] is None
        if "c/" in name and not is_index:
            client.part_before()
        answer = get(name, byte_range)
        if is_index:
            client.answered.append(name)
        return answer._replace(tag=client.tag)

    def head(name):
        client.looks.append(len(client.answered))
        client.looked.set()
        return Head(len(client.store.get(name)), 1)

    client.get, client.head = get_tagged, head
    return client, values, array


def test_the_last_look_is_made_while_parts_are_on_their_way(looked):
    client, values, array = looked
    client.part_before = lambda: client.looked.wait(WAIT) or pytest.fail("there was no look meanwhile")
    np.testing.assert_array_equal(array[60:70], values[60:70])
    assert client.looks == [2], "one look, when both indices had come"


def test_a_shard_that_is_replaced_after_the_last_look(looked):
    client, values, array = looked
    other = zcore.open(client.store, mode="r+")

    def replace():
        if client.tag == 1 and client.looked.wait(WAIT):
            client.tag = 2
            other[...] = 7

    client.part_before = replace
    assert array[60:62].tolist() == [7] * 2
    assert len(client.looks) == 2, "the early look tells nothing of the new shard"


OLD = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def dated(counting):
    """Make (client, array) of four chunks at a service that tells when objects were put: long ago.

    `client.put` has the times of objects that were put since. `client.looked` is set by a look at the document.
    ``client.chunk_before()`` is called before a chunk is read.
    """
    client, _ = counting(shape=(4,), chunks=(1,), dtype="i4")
    client.dates, client.put, client.looked, client.chunk_before = True, {}, threading.Event(), lambda: None
    get = client.get

    def get_dated(name, byte_range):
        if "c/" in name:
            client.chunk_before()
        answer = get(name, byte_range)
        return answer and answer._replace(tag=client.store.get(name), modified=client.put.get(name, OLD))

    def head(name):
        client.looked.set()
        value = client.store.get(name)
        return None if value is None else Head(len(value), value, client.put.get(name, OLD))

    client.get, client.head = get_dated, head
    return client, zcore.open(RemoteStore(client), zarr_format=3)


def test_the_look_is_made_beside_objects_that_were_not_changed_lately(dated):
    client, array = dated
    client.chunk_before = lambda: client.looked.wait(WAIT) or pytest.fail("there was no look meanwhile")
    assert array[2] == 3


def test_an_array_that_is_replaced_after_that_look(dated):
    client, array = dated

    def replace():
        if client.looked.wait(WAIT) and not client.put:
            zcore.create_array(client.store, data=np.ones(4, "f4"), chunks=1, compressors=None, overwrite=True)
            client.put = dict.fromkeys(client.store.list(), datetime.now(UTC))

    client.chunk_before = replace
    with pytest.raises(zcore.errors.StoreError, match="replaced by another"):
        array[2]
    client.looked.clear()
    client.chunk_before = lambda: client.looked.is_set() and pytest.fail("a chunk was put lately")
    assert zcore.open(RemoteStore(client), zarr_format=3)[2] == 1


def test_an_array_that_is_deleted_after_that_look(dated):
    client, array = dated

    def delete():
        if client.looked.wait(WAIT):
            client.store.erase_values(list(client.store.list()))

    client.chunk_before = delete
    with pytest.raises(zcore.errors.NodeNotFoundError):
        array[2]     # not the fill value


def test_a_service_that_does_not_tell_times(dated):
    """obstore says 1970 then."""
    client, array = dated
    client.put = dict.fromkeys(client.store.list(), datetime.fromtimestamp(0, UTC))
    assert array[2] == 3
    client.looked.clear()
    client.chunk_before = lambda: client.looked.is_set() and pytest.fail("a chunk may have been put lately")
    assert array[2] == 3


def test_a_read_in_the_middle_of_the_only_request(dated):
    """As in a signal handler. No other thread makes a request for it, which would wait for that one."""
    client, _ = dated
    client.store.set("x", b"")
    store, values = RemoteStore(client, n_requests=1), SimpleQueue()
    array = zcore.open(store, zarr_format=3)
    client.before = lambda name: name == "x" and values.put(array[2])
    threading.Thread(target=store.get, args=("x",), daemon=True).start()
    assert values.get(timeout=WAIT) == 3


def test_a_service_whose_tags_differ_without_a_change(counting):
    client, values = counting(shape=(64,), chunks=(1,), shards=(64,), dtype="i4")
    get, tags = client.get, itertools.count()
    client.get = lambda *args: get(*args)._replace(tag=next(tags)) if get(*args) is not None else None
    np.testing.assert_array_equal(zcore.open(RemoteStore(client), zarr_format=3)[5:9], values[5:9])


@pytest.mark.parametrize("n_cpus", [1, 3])
def test_targets_of_references_are_asked_for_at_a_time(counting, monkeypatch, n_cpus):
    """RF-URL-09: blocks of neighbours, as many at a time as fit."""
    client, values = counting(shape=(96,), chunks=(1,), shards=(96,), dtype="i4")
    monkeypatch.setattr("zcore.ranges.merged.__defaults__", (0, 16))
    refs = {f"x/{i}": ["held://c/0", 4 * i, 4] for i in range(96)}
    refs["x/.zarray"] = {"zarr_format": 2, "shape": [96], "chunks": [1], "dtype": "<i4", "compressor": None,
                         "filters": None, "fill_value": 0, "order": "C"}
    array = zcore.open(ReferenceStore(refs, services={"held://": client}), path="x", threads=n_cpus)
    client.reset()
    client.before = together(6)
    monkeypatch.setattr("zcore.engine.array_binding.MAX_ASKED_NBYTES", 6 * 16)
    np.testing.assert_array_equal(array[...], values)
    assert sorted(client.asked) == [("c/0", i, i + 16) for i in range(0, 384, 16)]
    assert client.n_most == 6
    client.reset()
    np.testing.assert_array_equal(array[90:10:-4], values[90:10:-4])
    assert len(client.asked) == 20
