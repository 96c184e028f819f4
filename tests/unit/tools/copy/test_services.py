"""Copies to a service where another process creates a node at the same path: nothing of the two is mixed or lost."""
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import zcore
from tests.crash.failing.service import AFTER, BEFORE, Service
from zcore.hierarchy.unfinished import MARK
from zcore.stores.remote.store import RemoteStore

OLD, NEW = np.arange(40), np.full(40, 7)


class Apart(RemoteStore):
    """A store whose locks hold back no other one, as if it were of another process."""

    @property
    def _lock_name(self):
        return id(self)


@pytest.fixture(params=[3, 2, "zmeta"])
def zarr_format(request):
    return request.param


@pytest.fixture
def service():
    return Service()


def copied(service, zarr_format, moment=None, action=None, **keywords):
    """Copy an array to "x"; the action is done when so many of its objects were put."""
    store = Apart(service, n_requests=1)
    put, n = store.set, [0]

    def put_later(key, value):
        if key.startswith("x/") and n[0] == moment:
            n[0] += 1
            action()
        n[0] += key.startswith("x/")
        put(key, value)

    store.set = put_later
    source = zcore.array(NEW, chunks=10, zarr_format=zarr_format, attributes={"new": 1})
    try:
        return zcore.copy(source, store, destination_path="x", threads=1, **keywords)
    finally:
        assert action is None or n[0] > moment, "the moment did not come"


def created(service, zarr_format, outcomes, **keywords):
    try:
        zcore.create_array(Apart(service), name="x", data=OLD, chunks=10, zarr_format=zarr_format, **keywords)
        outcomes.append("created")
    except zcore.ZcoreError as error:
        outcomes.append(type(error).__name__)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("moment", [0, 1, 3])
def test_a_node_cannot_be_created_where_a_copy_is_made(service, zarr_format, moment, overwrite):
    """The place is taken from the beginning."""
    outcomes = []
    array = copied(service, zarr_format, moment, lambda: created(service, zarr_format, outcomes), overwrite=overwrite)
    assert outcomes == ["NodeExistsError"] and array[...].tolist() == NEW.tolist() and array.attrs["new"] == 1
    assert zcore.verify(Apart(service), path="x").ok


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_node_that_is_created_before_a_copy_takes_its_place(service, zarr_format, overwrite, monkeypatch):
    """It stays, or it is replaced as every other one."""
    outcomes, begun = [], []
    swap = Apart.set_if_same

    def swap_later(self, key, value, identity):
        if not begun and key.startswith("x/"):
            begun.append(key)
            created(service, zarr_format, outcomes)
        return swap(self, key, value, identity)

    monkeypatch.setattr(Apart, "set_if_same", swap_later)
    if overwrite:
        assert copied(service, zarr_format, overwrite=True)[...].tolist() == NEW.tolist()
    else:
        with pytest.raises(zcore.NodeExistsError):
            copied(service, zarr_format)
        assert zcore.open(Apart(service), path="x")[...].tolist() == OLD.tolist()
    assert outcomes == ["created"] and zcore.verify(Apart(service), path="x").ok
    assert not [key for key in service.values if key.startswith("__zc_copy")]


@pytest.mark.parametrize("moment", [1, 3])
def test_an_array_that_overwrites_a_copy_in_the_making_keeps_its_elements(service, zarr_format, moment, monkeypatch):
    """But for those of objects that were on their way. The document is looked at before each of them here."""
    monkeypatch.setattr("zcore.tools.copy.document_last.N_UNSEEN", 1)
    outcomes = []
    with pytest.raises(zcore.StoreError, match="another process has replaced"):
        copied(service, zarr_format, moment, lambda: created(service, zarr_format, outcomes, overwrite=True))
    array = zcore.open(Apart(service), path="x")
    assert outcomes == ["created"] and array.attrs.asdict() == {}
    assert np.count_nonzero(array[...] != OLD) <= 10


def test_a_copy_that_fails_leaves_nothing(service, zarr_format):
    def fail():
        raise zcore.StoreError("no more")

    with pytest.raises(zcore.StoreError, match="no more"):
        copied(service, zarr_format, 2, fail)
    assert not service.values


def test_a_copy_that_is_cut_off_is_no_array(service, zarr_format, monkeypatch):
    monkeypatch.setattr("zcore.tools.copy.document_last.DocumentsLast.discard", lambda self: None)
    with pytest.raises(KeyboardInterrupt):
        copied(service, zarr_format, 2, lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    monkeypatch.undo()
    with pytest.raises(zcore.MetadataError, match=MARK[:13]):
        zcore.open(Apart(service), path="x")
    with pytest.raises(zcore.NodeExistsError):
        copied(service, zarr_format)
    assert copied(service, zarr_format, overwrite=True)[...].tolist() == NEW.tolist()
    assert zcore.verify(Apart(service), path="x").ok


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_a_group(service, zarr_format):
    source = zcore.create_group(zcore.MemoryStore(), zarr_format=zarr_format, attributes={"a": 1})
    source.create_array("b/c", data=OLD, chunks=10, attributes={"d": 1})
    zcore.consolidate_metadata(source.store)
    outcomes, store = [], Apart(service)
    put = store.set

    def put_later(key, value):
        if not outcomes:
            created(service, zarr_format, outcomes)
        put(key, value)

    store.set = put_later
    made = zcore.copy(source, store, destination_path="x", overwrite=True)
    assert set(outcomes) == {"NodeExistsError"} and made.attrs.asdict() == {"a": 1}
    assert made["b/c"][...].tolist() == OLD.tolist() and zcore.verify(Apart(service), path="x").ok


@pytest.mark.thinned(2, "zarr_format", "kind")
@pytest.mark.parametrize("kind", [BEFORE, AFTER])
def test_a_copy_whose_requests_fail_cannot_be_opened_in_part(service, zarr_format, kind):
    """Two requests in a row fail, wherever: then its document stays, or what is read is whole."""
    source = zcore.array(NEW, chunks=10, zarr_format=zarr_format)
    for n in range(200):
        service.values.clear()
        request, failed = service._request, []

        def two_fail(what, carry_out, n=n, request=request, failed=failed):
            failed.append(what)
            if n < len(failed) and len([what for what in failed[n:] if what in ("get", "delete")]) <= 2:
                if kind == AFTER:
                    carry_out()
                raise ConnectionResetError(104, "the connection was reset")
            return request(what, carry_out)

        service._request = two_fail
        try:
            zcore.copy(source, Apart(service, n_requests=1), destination_path="g/x", threads=1)
        except zcore.StoreError:
            pass
        del service._request
        try:
            assert zcore.open(Apart(service), path="g/x")[...].tolist() == NEW.tolist()
        except (zcore.NodeNotFoundError, zcore.MetadataError) as error:
            assert type(error) is zcore.NodeNotFoundError or MARK in str(error)
        if len(failed) <= n:
            break
    assert 10 < n < 199


def test_small_arrays_are_copied_together(service):
    """And nobody asks what is in a place that was found empty, and taken."""
    source = zcore.create_group(zcore.MemoryStore())
    for i in range(5):
        source.create_array(f"a{i}", data=NEW + i, chunks=40)
    store, meeting = RemoteStore(service), threading.Barrier(5)
    put, asked, request = store.set, [], service._request

    def put_together(key, value):
        if "/c/" in key:
            meeting.wait(20)
        put(key, value)

    def noted(what, carry_out):
        asked.append(what)
        return request(what, carry_out)

    store.set, service._request = put_together, noted
    made = zcore.copy(source, store, destination_path="x")
    n_before = len(asked)
    for i in range(5):
        source.create_array(f"b{i}", data=NEW - i, chunks=40)
    zcore.copy(source, store, destination_path="y")
    assert len(asked) - n_before <= n_before + 5 * len(["put an object", "put a document"])
    assert [made[f"a{i}"][0] for i in range(5)] == [7, 8, 9, 10, 11]


def test_a_source_is_replaced_while_a_small_array_beside_it_is_copied(service, tmp_path):
    """The directory of the copy was removed at once, and the other array came there again."""
    store, get, meeting, seen = RemoteStore(service), service.get, threading.Barrier(2), set()
    group = zcore.create_group(store)
    for name in "ab":
        group.create_array(name, data=NEW, chunks=40)

    def get_later(name, byte_range):
        found = get(name, byte_range)
        if "/c/" in name and name not in seen:
            seen.add(name)
            meeting.wait(20)
            if name[0] == "a":
                zcore.create_array(store, name="a", data=OLD, chunks=40, overwrite=True)
            else:
                time.sleep(0.2)
        return found

    service.get = get_later
    with pytest.raises(zcore.StoreError, match="replaced by another one while it was copied"):
        zcore.copy(store, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


class Named(RemoteStore):
    """A store with a URL, which is the same service in each process."""

    services = {}

    def __init__(self, url):
        super().__init__(self.services[url])
        self.uri = self._service = url

    def __reduce__(self):
        return Named, (self.uri,)


class Elsewhere(ThreadPoolExecutor):
    """A pool whose workers get copies of everything, as those of other processes."""

    def submit(self, *work):
        return super().submit(lambda work: work[0](*work[1:]), pickle.loads(pickle.dumps(work)))


@pytest.mark.parametrize("chunks", [None, (7,), [[5, 35]]], ids=str)
@pytest.mark.parametrize("swaps", [True, False])
def test_workers_of_a_client(service, tmp_path, chunks, monkeypatch, swaps):
    """What they have written is found by the process that has taken the place, and removed if the copy fails."""
    monkeypatch.setattr(service, "swaps", swaps)
    monkeypatch.setitem(Named.services, "s3://service", service)
    source = zcore.create_group(tmp_path / "source")
    for i in range(3):
        source.create_array(f"a{i}", data=NEW + i, chunks=10)
    with Elsewhere(2) as client:
        made = zcore.copy(tmp_path / "source", Named("s3://service"), destination_path="x", client=client,
                          chunks=chunks)
        assert [made[f"a{i}"][...].tolist() for i in range(3)] == [[7 + i] * 40 for i in range(3)]
        assert zcore.verify(Named("s3://service")).ok
        (tmp_path / "source/a2/c/3").write_bytes(b"damaged")
        before = dict(service.values)
        with pytest.raises(zcore.ChunkError):
            zcore.copy(tmp_path / "source", Named("s3://service"), destination_path="y", client=client, chunks=13)
    assert service.values == before


def test_what_workers_have_begun_is_waited_for_when_a_copy_fails(service, tmp_path, monkeypatch):
    """An object that came later was in the way of the next copy."""
    monkeypatch.setitem(Named.services, "s3://service", service)
    source, put = zcore.create_group(tmp_path / "source"), service.put
    source.create_array("a", data=NEW, chunks=10)
    (tmp_path / "source/a/c/3").write_bytes(b"damaged")

    def put_late(name, data, condition=None):
        if "/c/" in name:
            time.sleep(0.2)
        return put(name, data, condition)

    service.put = put_late
    with Elsewhere(4) as client, pytest.raises(zcore.ChunkError):
        zcore.copy(tmp_path / "source", Named("s3://service"), destination_path="y", client=client, memory=200,
                   chunks=5)
    assert service.values == {}


def test_empty_directories_are_no_rest_of_a_copy(tmp_path):
    """obstore's `LocalStore` keeps the directories of what it has deleted."""
    store = RemoteStore(pytest.importorskip("obstore").store.LocalStore(tmp_path))
    for values in OLD, NEW:
        zcore.copy(zcore.array(values, chunks=10), store, destination_path="x", overwrite=True)
    assert list(tmp_path.glob("__zc_copy/*/*")), "no directory was left"
    assert zcore.verify(zcore.open(store, path="x", mode="r")).ok and zcore.verify(store).ok
    np.testing.assert_array_equal(zcore.open(store, path="x"), NEW)
