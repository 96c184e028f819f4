"""Remote stores: the interface of a store over each kind of client, and what services do that memory does not."""
import functools
import itertools
import json
import pickle
import queue
import subprocess
import sys
import threading

import numpy as np
import pytest

import zcore
from tests.crash.failing.service import Service
from tests.each import each
from tests.unit.stores.conformance import CORE_EXAMPLE, UNUSUAL_KEYS, StoreConformance, run_threads
from zcore.errors import LockError, MetadataError, NodeNotFoundError, StoreError
from zcore.formats import DOCUMENTS
from zcore.stores.keys import TEMPORARY
from zcore.stores.remote.client import Client
from zcore.stores.remote.store import RemoteStore

obstore = pytest.importorskip("obstore", reason="obstore is not installed (extra remote)")
fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed (test extra)")

numbers = itertools.count()
NO_RETRY = {"client_options": {"timeout": "5s"}, "retry_config": {"max_retries": 0}}


class RemoteConformance(StoreConformance):
    """What all stores do, but for directories, of which services have none."""

    test_key_below_a_prefix_conflicts = None
    test_key_with_a_key_as_parent_conflicts = None
    # All pages are read before the first key is given, sorted.
    test_list_goes_on_while_keys_vanish = None
    test_list_reads_one_prefix_at_a_time = None

    def source(self):
        raise NotImplementedError

    def make(self, tmp_path, items=(), read_only=False):
        source = self.source()
        store = RemoteStore(source, path="of tests/x")
        for key, value in dict(items).items():
            store.set(key, value)
        return RemoteStore(source, path="of tests/x", read_only=True) if read_only else store

    def test_a_key_may_be_a_prefix(self, example):
        example.set("a/d", b"v")
        assert example.get("a/d") == b"v" and example.get("a/d/e") == b"a/d/e"
        assert example.list_dir("a/")[:2] == (["a/b", "a/c", "a/d"], ["a/d/", "a/f/"])
        example.erase("a/d")
        assert list(example.list()) == list(CORE_EXAMPLE)


class TestObstore(RemoteConformance):
    # Names with control characters are refused by obstore.
    unusual_keys = [key for key in UNUSUAL_KEYS if key.isprintable()]
    # Its store in memory cannot be pickled.
    test_pickle_reads_the_same = None

    def source(self):
        return obstore.store.MemoryStore()

    def test_keys_that_the_service_does_not_take(self, store):
        with pytest.raises(StoreError, match="cannot write MemoryStore:/of tests/x/"):
            store.set("a\nb", b"v")


def test_chunks_are_read_from_the_memory_of_obstore(monkeypatch):
    obstore = pytest.importorskip("obstore")
    store = RemoteStore(obstore.store.MemoryStore())
    values = np.arange(600.0).reshape(20, 30)
    zcore.create_array(store, shape=values.shape, chunks=(7, 8), dtype="f8")[...] = values
    whole, part = store.get_buffer("c/0/1"), store.get_buffer("c/0/1", (3, 10))
    assert type(whole) is memoryview and type(store.get("c/0/1")) is bytes
    assert whole == store.get("c/0/1") and part == whole[3:13] == store.get("c/0/1", (3, 10))
    assert store.get_buffer("c/9/9") is None
    array = zcore.open(store)
    monkeypatch.setattr(RemoteStore, "get", None)
    np.testing.assert_array_equal(array[...], values)


class FsspecConformance(RemoteConformance):
    # Its directories are things of their own.
    test_a_key_may_be_a_prefix = None
    test_no_prefix_stays_without_keys = None
    test_writers_and_pruning_erasers_do_not_fail = None
    test_erase_of_the_empty_prefix_empties_the_store = None


class TestFsspec(FsspecConformance):

    def source(self):
        # All filesystems in memory are one.
        return fsspec.filesystem("dir", path=f"/{next(numbers)}", fs=fsspec.filesystem("memory"))


class TestMapper(FsspecConformance):
    # It writes in place.
    test_threads_write_and_read_whole_values = None

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path):
        self.path = tmp_path

    def source(self):
        return fsspec.filesystem("file").get_mapper(str(self.path / str(next(numbers))), create=True)


class Held:
    """An object with the methods that `ObjectClient` looks for."""

    def __init__(self):
        self.values = {}

    def get(self, name):
        return self.values[name]

    def get_range(self, name, *, start, length):
        return memoryview(self.values[name])[start:start + length]

    def put(self, name, data):
        self.values[name] = data

    def delete(self, name):
        del self.values[name]

    def list(self, prefix):
        return [name for name in list(self.values) if name.startswith(prefix)]


class TestObject(RemoteConformance):
    def source(self):
        return Held()


# S3

def s3_url(bucket, path=""):
    return f"s3://{bucket[0]}/{path}"


class TestS3(RemoteConformance):
    """The same against a server; what is checked of keys alone is left to the other clients."""

    test_unusual_keys = test_what_is_not_a_key_is_refused_everywhere = None
    # Hundreds of requests.
    test_writers_and_pruning_erasers_do_not_fail = None

    @pytest.fixture(autouse=True)
    def service(self, bucket):
        self.bucket = bucket

    def make(self, tmp_path, items=(), read_only=False):
        url, options = s3_url(self.bucket, f"a path/{next(numbers)}"), self.bucket[1]
        store = RemoteStore(url, **options)
        for key, value in dict(items).items():
            store.set(key, value)
        return RemoteStore(url, read_only=True, **options) if read_only else store


def new_array(store, **keywords):
    keywords = {"shape": (60, 80), "chunks": (10, 20), "dtype": "i4"} | keywords
    array = zcore.create_array(store, **keywords)
    values = np.arange(array.size, dtype="i4").reshape(array.shape)
    array[...] = values
    return values


def test_an_array_in_s3(bucket):
    store = RemoteStore(s3_url(bucket, "some/where"), **bucket[1])
    values = new_array(store, name="a/b")
    found = zcore.open(pickle.loads(pickle.dumps(store)), path="a/b")
    np.testing.assert_array_equal(found[...], values)
    np.testing.assert_array_equal(found[3:50:7, ::-3], values[3:50:7, ::-3])
    assert found.nchunks_initialized == 24
    assert store.uri == store.url == f"s3://{bucket[0]}/some/where/"
    group = zcore.open(store)
    assert list(group) == ["a"] and list(group["a"]) == ["b"]
    # The same by a store of obstore.
    other = obstore.store.S3Store(bucket[0], prefix="some", **bucket[1])
    np.testing.assert_array_equal(zcore.open(other, path="where/a/b")[...], values)
    assert zcore.open(other, path="where/a/b").store.url == f"s3://{bucket[0]}/some/"


def test_nodes_come_and_go_in_s3(bucket):
    store = RemoteStore(s3_url(bucket), **bucket[1])
    root = zcore.create_group(store, attributes={"x": 1})
    array = root.create_array("g/a", shape=(10,), chunks=(4,), dtype="f8", fill_value=np.nan)
    array[2:9] = 5
    array.resize((20,))
    array.append(np.ones(3))
    array.attrs["unit"] = "m"
    assert zcore.open(store, path="g/a").attrs["unit"] == "m"
    np.testing.assert_array_equal(zcore.open(store, path="g/a")[[1, 2, 8, 9, 19, 20, 22]],
                                  [np.nan, 5, 5, np.nan, np.nan, 1, 1])
    with pytest.raises(zcore.NodeExistsError):
        zcore.create_array(store, name="g/a", shape=(2,), chunks=(2,), dtype="i2")
    del root["g/a"]
    assert list(store.list()) == ["g/zarr.json", "zarr.json"]
    with pytest.raises(NodeNotFoundError):
        zcore.open(store, path="g/a")


# What each of several writers does: it changes its own elements of two chunks, one by one.
STRIPES = """
import json, sys
import zcore
url, options, me, n_writers = json.loads(sys.argv[1])
array = zcore.open(zcore.RemoteStore(url, **options), mode="r+")
for i in range(me, array.shape[0], n_writers):
    array[i] = i + 1
"""


def test_writers_in_processes_and_threads_lose_nothing(bucket):
    url = s3_url(bucket, "x")
    zcore.create_array(RemoteStore(url, **bucket[1]), shape=(48,), chunks=(24,), dtype="i4")
    processes = [subprocess.Popen([sys.executable, "-c", STRIPES, json.dumps([url, bucket[1], me, 5])])
                 for me in range(3)]

    def write(me):
        array = zcore.open(RemoteStore(url, **bucket[1]), mode="r+")
        for i in range(3 + me, 48, 5):
            array[i] = i + 1

    run_threads(2, write)
    assert [process.wait() for process in processes] == [0, 0, 0]
    np.testing.assert_array_equal(zcore.open(RemoteStore(url, **bucket[1]))[...], np.arange(1, 49))


class Racing(RemoteStore):
    """A store whose `changed(key)` is called after each value that is read."""

    changed = staticmethod(lambda key: None)

    def get_with_identity(self, key, byte_range=None):
        found = super().get_with_identity(key, byte_range)
        self.changed(key)
        return found


@pytest.mark.parametrize("codecs", [{}, {"shards": (8,)}])
def test_what_comes_between_reading_and_writing_a_part_stays(codecs):
    service = obstore.store.MemoryStore()
    keywords = {"shape": (8,), "chunks": (4,) if codecs else (8,), "dtype": "i2"} | codecs
    zcore.create_array(RemoteStore(service), **keywords)
    # Of another process, as it were: the locks of this one do not hold it back.
    other = zcore.open(service, mode="r+", lock=None)
    store = Racing(service)
    array = zcore.open(store, mode="r+")
    left = [5, 3, 0]

    def changed(key):
        if key == "c/0" and left:
            other[left.pop()] = 7

    store.changed = changed
    array[1] = 1
    array[3] = 0
    np.testing.assert_array_equal(zcore.open(service)[...], [7, 1, 0, 0, 0, 7, 0, 0])
    # Erased by the other one in between: as if that had come first.
    left[:] = [6]

    def erased(key):
        if key == "c/0" and left:
            left.clear()
            other[...] = 0

    store.changed = erased
    array[2] = 2
    np.testing.assert_array_equal(zcore.open(service)[...], [0, 0, 2, 0, 0, 0, 0, 0])
    # What is all fill value by a change in part stays as an object: it could not be erased on a condition.
    store.changed = lambda key: None
    array[2:5] = 0
    assert not zcore.open(service)[...].any() and store.exists("c/0")
    array[...] = 0
    assert not store.exists("c/0")


def test_one_who_is_always_late_gives_up(monkeypatch):
    service = obstore.store.MemoryStore()
    zcore.create_array(RemoteStore(service), shape=(8,), chunks=(8,), dtype="i2")
    # Of another process, as it were: the locks of this one do not hold it back.
    other = zcore.open(service, mode="r+", lock=None)
    store = Racing(service)
    array = zcore.open(store, mode="r+")
    monkeypatch.setattr("zcore.engine.requests.MAX_SWAPS", 3)
    count = itertools.count(1)
    store.changed = lambda key: other.__setitem__(0, next(count)) if key == "c/0" else None
    with pytest.raises(LockError, match="each of 3 attempts"):
        array[1] = 1
    assert zcore.open(service)[...].tolist() == [3] + [0] * 7


class Careless(Client):
    """A service that takes conditions and does not heed them, or has no tags."""

    url, lists, writes, swaps = "careless://", True, True, True

    def __init__(self, heeds=(), tagged=True):
        self.values, self.heeds, self.tagged, self.count = {}, heeds, tagged, itertools.count()

    def get(self, name, byte_range):
        from zcore.stores.base import resolve_range
        from zcore.stores.remote.client import Answer
        if name not in self.values:
            return None
        value, tag = self.values[name]
        start, stop = resolve_range(byte_range, len(value))
        return Answer(value[start:stop], len(value), tag if self.tagged else None)

    def put(self, name, data, condition=None):
        from zcore.stores.remote.client import ABSENT, ConditionError
        now = self.values.get(name, (None, ABSENT))[1]
        kind = "create" if condition is ABSENT else "swap"
        if condition is not None and kind in self.heeds and condition != now:
            raise ConditionError
        self.values[name] = bytes(data), next(self.count)
        return self.values[name][1] if self.tagged else None

    def delete(self, names):
        for name in names:
            self.values.pop(name, None)

    def list_dir(self, prefix):
        return [name for name in self.values if name.startswith(prefix) and "/" not in name[len(prefix):]], []

    def list_all(self, prefix):
        yield [(name, len(value)) for name, (value, _) in self.values.items()]


@each(("service", "is_good"), [
    (Careless(), False), (Careless(("create",)), False), (Careless(("swap",)), False),
    (Careless(("create", "swap"), tagged=False), False), (Careless(("create", "swap")), True), (Held(), False),
])
def test_conditions_are_tried_before_they_are_relied_on(service, is_good):
    store = RemoteStore(service)
    zcore.create_array(store, shape=(4,), chunks=(4,), dtype="i2")[...] = 5
    names = set(service.values)
    array = zcore.open(service, mode="r+")
    if is_good:
        array[1] = 1
    else:
        with pytest.raises(LockError, match="lock=None"):
            array[1] = 1
        zcore.open(service, mode="r+", lock=None)[1] = 1
    assert set(service.values) == names
    assert zcore.open(service)[...].tolist() == [5, 1, 5, 5]


def test_trials_whose_objects_cannot_be_deleted_leave_one_object():
    service = Careless(("create", "swap"))
    zcore.create_array(service, shape=(4,), chunks=(4,), dtype="i2")[...] = 5
    names, array = set(service.values), zcore.open(service, mode="r+")
    service.delete = lambda names: (_ for _ in ()).throw(PermissionError(13, "not allowed"))
    for _ in range(3):
        with pytest.raises(StoreError, match="cannot delete .*not allowed"):
            array[1] = 1
    assert len(service.values) == len(names) + 1
    del service.delete
    array[1] = 1
    assert set(service.values) == names and array[...].tolist() == [5, 1, 5, 5]


def test_two_who_change_a_document_are_told(monkeypatch):
    monkeypatch.setattr("zcore.engine.requests.MAX_PAUSE", 0.001)
    service = obstore.store.MemoryStore()
    zcore.create_array(RemoteStore(service), shape=(8,), chunks=(8,), dtype="i2")
    store = RemoteStore(service, path="")
    array = zcore.open(store, mode="r+")
    document = store.get("zarr.json")
    read = store.get_first

    def get_first(*args):
        found = read(*args)
        store.set("zarr.json", document + b" ")
        return found

    store.get_first = get_first
    with pytest.raises(LockError, match="another process has replaced the document"):
        array.resize((9,))
    assert store.get("zarr.json") == document + b" "


def test_of_two_who_create_one_succeeds():
    service = obstore.store.MemoryStore()
    store = RemoteStore(service)
    other = RemoteStore(service)
    put = store.set_if_not_exists

    def late(key, value):
        zcore.create_array(other, shape=(3,), chunks=(3,), dtype="i1")
        return put(key, value)

    store.set_if_not_exists = late
    with pytest.raises(zcore.NodeExistsError, match="another process has created a node"):
        zcore.create_array(store, shape=(5,), chunks=(5,), dtype="i2")
    assert zcore.open(service).shape == (3,)


def test_a_directory_in_obstore_takes_whole_objects(tmp_path):
    """It has no condition by tag, which is a NotImplementedError."""
    array = zcore.create_array(RemoteStore(obstore.store.LocalStore(tmp_path)), data=np.arange(6), chunks=3)
    array[:3] = 7
    with pytest.raises(LockError, match="lock=None"):
        array[4] = 7
    assert zcore.open(tmp_path)[...].tolist() == [7, 7, 7, 3, 4, 5]


@pytest.mark.parametrize("zarr_format", [3, 2, "zmeta"])
def test_a_creation_that_is_cut_off_leaves_no_array_that_reads_as_fill_values(zarr_format):
    """All requests that change something fail from the k-th one on."""
    values = np.arange(1, 7)
    for k in itertools.count(1):
        service = obstore.store.MemoryStore()
        store, left = RemoteStore(service), [k]

        def change(put, *arguments, left=left):
            left[0] -= 1
            if left[0] <= 0:
                raise OSError("the service is gone")
            return put(*arguments)

        for name in ("put", "delete"):
            setattr(store._client, name, functools.partial(change, getattr(store._client, name)))
        try:
            zcore.create_array(store, data=values, chunks=2, zarr_format=zarr_format, attributes={"x": 1})
            assert k > 8
            break
        except StoreError:
            pass
        try:
            found = zcore.open(service)
        except (zcore.NodeNotFoundError, MetadataError):
            pass
        else:
            assert found[...].tolist() == values.tolist()
        create = functools.partial(zcore.create_array, service, data=-values, chunks=2, zarr_format=zarr_format)
        if any(name in ("zarr.json", ".zarray", "__zmeta__") for name in RemoteStore(service).list()):
            with pytest.raises(zcore.NodeExistsError):
                create()
        assert create(overwrite=True)[...].tolist() == (-values).tolist()
        assert zcore.verify(service).ok and dict(zcore.open(service).attrs) == {}


def of_another_process(service):
    """A store that shares no locks with others of this process."""
    store = RemoteStore(service)
    store.url = f"elsewhere/{next(numbers)}/"
    return store


def during_the_second_chunk(store, action):
    """Call a function while an array with its elements is being created."""
    put, left = store.set, [2]

    def late(key, value):
        if key[-1].isdigit():
            left[0] -= 1
            if left[0] == 0:
                action()
        put(key, value)

    store.set = late


def test_an_array_that_is_being_created_is_seen_by_others():
    service = obstore.store.MemoryStore()
    store, seen = RemoteStore(service), []

    def look():
        other = of_another_process(service)
        for call in (lambda: zcore.open(other), lambda: zcore.create_array(other, shape=3, dtype="i4"),
                     lambda: zcore.create_group(other)):
            with pytest.raises((MetadataError, zcore.NodeExistsError)) as caught:
                call()
            seen.append(str(caught.value))

    during_the_second_chunk(store, look)
    zcore.create_array(store, data=np.arange(1, 7), chunks=2)
    assert "being created, or cut off: overwrite=True replaces it" in seen[0]
    assert all("holds an array already" in message for message in seen[1:3])
    assert zcore.open(service)[...].tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_copy_of_metadata_that_meets_a_creation(zarr_format):
    """The copy lacks the array that is being created. When the creation ends, it drops the copy."""
    service = obstore.store.MemoryStore()
    store, copies = RemoteStore(service), []
    zcore.create_group(store, zarr_format=zarr_format).create_array("b", shape=1, dtype="i4")

    def consolidate():
        other = of_another_process(service)
        copies.append(sorted(zcore.consolidate_metadata(other).metadata.consolidated))
        assert zcore.open_group(other).metadata.consolidated is not None
        assert "stale copy" not in {problem.kind for problem in zcore.verify(other).problems}

    during_the_second_chunk(store, consolidate)
    zcore.create_array(store, name="a", data=np.arange(1, 7), chunks=2, zarr_format=zarr_format)
    assert copies == [["b"]]
    group = zcore.open_group(service)
    assert group.metadata.consolidated is None and sorted(group) == ["a", "b"]
    assert sorted(zcore.consolidate_metadata(service).metadata.consolidated) == ["a", "b"]


@pytest.mark.parametrize("other", ["the same", "another"])
def test_an_array_that_is_replaced_while_it_is_created_does_not_come_back(other):
    service = obstore.store.MemoryStore()
    store = RemoteStore(service)
    attributes = {} if other == "the same" else {"x": 1}
    during_the_second_chunk(store, lambda: zcore.create_array(
        of_another_process(service), data=-np.arange(1, 7), chunks=2, overwrite=True, attributes=attributes))
    with pytest.raises(StoreError, match="another process has replaced the array"):
        zcore.create_array(store, data=np.arange(1, 7), chunks=2)
    assert dict(zcore.open(service).attrs) == attributes


def test_an_array_is_created_with_its_elements_where_the_service_does_not_compare(monkeypatch):
    service = obstore.store.MemoryStore()
    for lock in (True, None):
        store = RemoteStore(service)
        store._client.swaps = False
        array = zcore.create_array(store, data=np.arange(6), chunks=2, lock=lock, overwrite=True)
        assert array[...].tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_attributes_that_two_change_at_once(zarr_format):
    """What comes in between is kept."""
    service = obstore.store.MemoryStore()
    store = RemoteStore(service)
    array = zcore.create_array(store, shape=(5,), chunks=(5,), dtype="i2", zarr_format=zarr_format, attributes={"a": 1})
    other = zcore.open(service, mode="r+", lock=None)
    left = [2]
    read = store.get_with_identity

    def late(key, byte_range=None):
        found = read(key, byte_range)
        if key in (".zattrs", "zarr.json") and left:
            other.attrs["b"] = left.pop()
        return found

    store.get_with_identity = late
    array.attrs["c"] = 3
    assert not left
    assert zcore.open(service).attrs.asdict() == {"a": 1, "b": 2, "c": 3}


@pytest.mark.parametrize("n_chunks", [3, 40])
def test_a_write_looks_at_the_document_when_it_is_done(n_chunks):
    service = obstore.store.MemoryStore()
    store = RemoteStore(service)
    array = zcore.create_array(store, shape=(40,), chunks=(1,), dtype="i2")
    other = zcore.open(service, mode="r+", lock=None)
    write, shapes = store.set, [(50,), (20,)]

    def set(key, value):
        write(key, value)
        if key == "c/2" and shapes:
            other.resize(shapes.pop(0))

    store.set = set
    array[:n_chunks] = 1
    assert array.shape == (50,) and zcore.open(service)[:n_chunks].tolist() == [1] * n_chunks
    if n_chunks > 20:
        with pytest.raises(zcore.SelectionError):
            array[:n_chunks] = 2


def test_reference_sets_in_s3(bucket):
    """A set and its targets in a bucket; the endpoint is the caller's word."""
    store = RemoteStore(s3_url(bucket), **bucket[1])
    values = np.arange(40, dtype="<i4")
    store.set("dir/a b.bin", values.tobytes())
    array = {"zarr_format": 2, "shape": [40], "chunks": [10], "dtype": "<i4", "compressor": None, "filters": None,
             "fill_value": 0, "order": "C"}
    refs = {".zarray": array, **{f"{i}": [url, 40 * i, 40] for i, url in enumerate(
        ["a b.bin", "./a b.bin", s3_url(bucket, "dir/a b.bin"), "../dir/a b.bin"])}}
    store.set("dir/refs.json", json.dumps(refs).encode())
    services = {"s3://": bucket[1]}
    found = zcore.open(zcore.ReferenceStore(s3_url(bucket, "dir/refs.json"), services=services))
    np.testing.assert_array_equal(found[...], values)
    store.erase("dir/a b.bin")
    with pytest.raises(zcore.ReferenceTargetError, match="it is missing"):
        found[0]


def test_a_filesystem_of_fsspec_for_s3(bucket):
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    options = bucket[1]
    filesystem = fsspec.filesystem("s3", key="key", secret="secret", endpoint_url=options["endpoint"],
                                   client_kwargs={"region_name": "us-east-1"}, skip_instance_cache=True)
    store = RemoteStore(filesystem, path=f"{bucket[0]}/x")
    values = new_array(store)
    np.testing.assert_array_equal(zcore.open(filesystem.get_mapper(f"{bucket[0]}/x"))[...], values)
    np.testing.assert_array_equal(zcore.open(RemoteStore(s3_url(bucket, "x"), **options))[5:9], values[5:9])
    with pytest.raises(LockError, match=rf"RemoteStore\(.s3://{bucket[0]}/x/.\): .* lock=None"):
        zcore.open(store, mode="r+")[3, 3] = 1
    store.erase_prefix("")
    assert list(store.list()) == []


def test_options_that_obstore_does_not_know():
    with pytest.raises(ValueError, match=r"^'s3://bucket': .*endpoin.* \(options are those of obstore"):
        RemoteStore("s3://bucket/x", endpoin="https://example.org")


def test_who_has_no_credentials_is_told_how_to_do_without():
    class Asking(Client):
        def get(self, name, byte_range):
            raise OSError("Error performing PUT http://169.254.169.254/latest/api/token")

    with pytest.raises(StoreError, match="api/token .*skip_signature=True reads what is public"):
        RemoteStore(Asking()).get("a")


def test_an_absolute_path_of_a_filesystem_is_no_relative_one(tmp_path, monkeypatch):
    """It was taken for one in the working directory, and written there."""
    filesystem = pytest.importorskip("fsspec").filesystem("file")
    place = tmp_path / "place"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    zcore.create_array(zcore.storage.FsspecStore(filesystem, path=str(place)), name="a", data=[1, 2, 3])
    assert zcore.open(place)["a"][...].tolist() == [1, 2, 3]
    assert [name for name, _ in zcore.open(zcore.RemoteStore(filesystem, path=f"{place}/")).members()] == ["a"]
    zcore.create_array(zcore.RemoteStore(filesystem, path="below"), data=[4])
    assert zcore.open(tmp_path / "elsewhere/below")[...].tolist() == [4]


def test_chunks_of_a_deleted_array_go_by_one_request(monkeypatch):
    store = RemoteStore(obstore.store.MemoryStore())
    group = zcore.create_group(store)
    group.create_array("x", data=np.ones((30, 2)), chunks=(1, 2))
    erased, delete = [], store._client.delete
    monkeypatch.setattr(store._client, "delete", lambda names: (erased.append(names), delete(names)))
    del group["x"]
    document, chunks = [names for names in erased if TEMPORARY not in names[0]]
    assert document == ["x/zarr.json"]
    assert sorted(chunks) == sorted([f"x/c/{i}/0" for i in range(30)])
    assert [*store.list()] == ["zarr.json"]


def test_what_a_new_array_must_not_replace_is_asked_for_at_the_same_time(monkeypatch):
    store = RemoteStore(obstore.store.MemoryStore())
    group = zcore.create_group(store)
    meeting, asked, client = threading.Barrier(5), [], store._client

    def meets(ask):
        def met(name, *args):
            asked.append(name)
            if len(asked) <= 5:
                meeting.wait(20)
            return ask(name, *args)
        return met

    monkeypatch.setattr(client, "get", meets(client.get))
    monkeypatch.setattr(client, "list_dir", meets(client.list_dir))
    group.create_array("x", shape=4, dtype="i4")
    assert sorted(asked[:5]) == sorted(["x/", *DOCUMENTS])


def test_documents_above_a_change_are_asked_for_at_the_same_time(monkeypatch):
    store = RemoteStore(obstore.store.MemoryStore())
    group = zcore.create_group(store, path="a/b")
    meeting, get = threading.Barrier(5), store._client.get

    def met(name, byte_range):
        if name != "a/b/zarr.json":
            meeting.wait(20)     # .zgroup and zarr.json of two groups, and .zgroup of the third
        return get(name, byte_range)

    monkeypatch.setattr(store._client, "get", met)
    group.attrs["x"] = 1
    assert meeting.n_waiting == 0


def test_the_trial_of_conditions_in_the_middle_of_the_only_request():
    """As in a signal handler: no other thread makes a request for it, which would wait for that one."""
    service, found = Service(), queue.SimpleQueue()
    store = RemoteStore(service, n_requests=1)
    service.get = lambda name, byte_range: found.put(store.can_swap())
    threading.Thread(target=store.get, args=("x",), daemon=True).start()
    assert found.get(timeout=20)


def test_members_of_a_deleted_group_go_at_the_same_time_and_the_group_after_them(monkeypatch):
    store = RemoteStore(obstore.store.MemoryStore())
    group = zcore.create_group(store, path="g")
    for i in range(5):
        group.create_array(f"h/a{i}", data=[i])
    erased, meeting, delete = [], threading.Barrier(5), store._client.delete

    def met(names):
        if names[0].startswith("g/h/a") and names[0].endswith(".json"):
            meeting.wait(20)
        erased.extend(names)
        delete(names)

    monkeypatch.setattr(store._client, "delete", met)
    del zcore.open_group(store, mode="r+")["g"]
    documents = [name for name in erased if name.endswith("zarr.json")]
    assert documents[-2:] == ["g/h/zarr.json", "g/zarr.json"] and len(documents) == 7
    assert [*store.list()] == ["zarr.json"]


def test_members_of_several_groups_are_looked_for_at_the_same_time(monkeypatch):
    store = RemoteStore(obstore.store.MemoryStore())
    for name in "abcdef":
        zcore.create_array(store, name=f"g{name > 'c':d}/{name}", data=[1])
    meeting, get, met = threading.Barrier(6), store._client.get, []

    def meet(name, byte_range):
        if name.count("/") == 2:
            met.append(meeting.wait(20))
        return get(name, byte_range)

    monkeypatch.setattr(store._client, "get", meet)
    zcore.consolidate_metadata(store)
    assert len(met) >= 12 and len(met) % 6 == 0


@pytest.mark.parametrize("read", [zcore.load, zcore.verify])
def test_small_arrays_are_read_at_the_same_time(monkeypatch, read):
    store = RemoteStore(obstore.store.MemoryStore())
    for name in "abcd":
        zcore.create_array(store, name=name, data=[ord(name)])
    meeting, get, met = threading.Barrier(4), store._client.get, []

    def meet(name, byte_range):
        if name.endswith("/c/0"):
            met.append(meeting.wait(20))
        return get(name, byte_range)

    monkeypatch.setattr(store._client, "get", meet)
    found = read(store)
    assert len(met) == 4
    if read is zcore.load:
        assert {name: [*values] for name, values in found.items()} == {name: [ord(name)] for name in "abcd"}
    else:
        assert found.ok and (found.n_arrays, found.n_objects) == (4, 4)


def test_what_is_wrong_is_told_in_the_order_of_the_arrays():
    store = RemoteStore(obstore.store.MemoryStore())
    for name in "abcdef":
        zcore.create_array(store, name=f"g/{name}", data=[1])
        store.set(f"g/{name}/c/0", b"short")
        store.set(f"g/{name}/x", b"foreign")
    found = zcore.verify(store, repair="foreign")
    assert [(one.kind, one.path) for one in found.problems] == [
        (kind, f"g/{name}") for name in "abcdef" for kind in ("foreign", "truncated")]
    assert (found.n_arrays, found.n_objects, found.n_removed) == (6, 6, 6)
    assert len([*store.list_prefix("g/")]) == 13


@pytest.mark.parametrize("copies", [True, False])
def test_a_move_at_a_service_that_copies_objects_itself(monkeypatch, copies):
    store = RemoteStore(obstore.store.MemoryStore(), path="deep")
    values = np.arange(60)
    zcore.create_array(store, name="g/h/a", data=values, chunks=(10,))
    store._client.copies = copies
    put, copy, names, read = store._client.put, store._client.copy, [], []
    get = store._client.get
    monkeypatch.setattr(store._client, "copy", lambda *pair: (names.append(pair[1]), copy(*pair)))
    monkeypatch.setattr(store._client, "put", lambda name, *args: (names.append(name), put(name, *args))[1])
    monkeypatch.setattr(store._client, "get", lambda name, part: (read.append(name), get(name, part))[1])
    group = zcore.open_group(store, mode="r+")
    group.move("g", "x/y")
    assert names[-3:] == ["deep/x/y/h/a/zarr.json", "deep/x/y/h/zarr.json", "deep/x/y/zarr.json"]
    assert ("deep/g/h/a/c/0" in read) is not copies
    assert np.array_equal(group["x/y/h/a"], values) and not any(store.list_prefix("g/"))
    assert zcore.verify(store).ok


def test_a_move_that_the_service_ends_leaves_the_destination_free(monkeypatch):
    store = RemoteStore(obstore.store.MemoryStore())
    zcore.create_array(store, name="a", data=np.arange(60), chunks=(10,))
    before, copy = {key: store.get(key) for key in store.list()}, store._client.copy

    def failing(name, new):
        if new.endswith("c/4"):
            raise OSError("full")
        copy(name, new)

    with monkeypatch.context() as patch:
        patch.setattr(store._client, "copy", failing)
        with pytest.raises(zcore.StoreError, match="cannot copy MemoryStore:/a/c/4: full"):
            zcore.open_group(store, mode="r+").move("a", "b")
    assert {key: store.get(key) for key in store.list()} == before
    store.duplicate([("a/c/0", "new"), ("absent", "none")])
    assert store.get("new") == before["a/c/0"] and not store.exists("none")
    with pytest.raises(zcore.ReadOnlyError):
        RemoteStore(obstore.store.MemoryStore(), read_only=True).duplicate([("a", "b")])


@pytest.mark.parametrize("how", ["copy", "move"])
def test_a_read_of_an_array_that_an_equal_one_replaces(monkeypatch, how):
    """Their documents have the same text, and a service may compute tags from bytes."""
    store = RemoteStore(obstore.store.MemoryStore())
    group = zcore.create_group(store)
    for name, value in (("one", 1), ("two", 2), ("three", 3)):
        group.create_array(name, data=np.full(40, value), chunks=10)
    for _ in range(2):
        z = zcore.copy(group["one"], store, destination_path="x", overwrite=True)
    get, started = store._client.get, []

    def replace():
        if how == "copy":
            zcore.copy(group["two"], store, destination_path="x", overwrite=True)
        else:
            # Away, and back after another one was there.
            group.move("x", "y")
            group.move("two", "x")
            read(lambda: get("x/c/2", None))
            group.move("x", "z")
            group.move("y", "x")

    def read(deed):
        seen.append(deed())

    def meet(name, part):
        if name == "x/c/2" and not started:
            started.append(threading.Thread(target=replace))
            started[0].start()
            started[0].join()
            if how == "move":
                return seen[0]
        return get(name, part)

    seen, before = [], store.get("x/zarr.json")
    monkeypatch.setattr(store._client, "get", meet)
    assert len(set(z[...].tolist())) == 1 and started
    after = store.get("x/zarr.json")
    assert after != before and after.split() == before.split()
