"""A change of a document whose answer was lost is recognised by its stamp."""
import json

import numpy as np
import pytest

import zcore
from tests.crash.failing.service import AFTER, BEFORE, Service
from zcore.engine import stamps
from zcore.engine.stamps import OVERTAKEN, follows, put_stamped, stamped
from zcore.errors import StoreError
from zcore.stores.remote.store import RemoteStore

DOCUMENT = b'{"a": 1}'


@pytest.fixture
def store():
    store = RemoteStore(Service())
    store._honors_conditions = True
    return store


def losing(store, *, is_done, meanwhile=lambda: None, n=1):
    """Let the next puts be errors, done or not."""
    client, put, left = store._client, store._client.put, [n]

    def lost(name, data, condition=None):
        if not left[0]:
            return put(name, data, condition)
        left[0] -= 1
        if is_done:
            put(name, data, condition)
        meanwhile()
        raise ConnectionResetError(104, "the answer is lost")

    client.put = lost


def test_a_stamp_is_white_space():
    value = stamped(DOCUMENT)
    assert json.loads(value) == {"a": 1} and value.rstrip() == DOCUMENT and value != stamped(DOCUMENT)
    for _ in range(20):
        value = stamped(DOCUMENT, value)
    assert len(value) == len(DOCUMENT) + stamps.MAX_KEPT * 65


def test_elements_that_were_cut_off_may_not_be_read_by_the_document_before():
    old = stamped(DOCUMENT)
    kept = stamped(DOCUMENT, old)
    cut = stamped(DOCUMENT, kept, cuts=True)
    later = stamped(DOCUMENT, cut)
    assert follows(kept, old) and follows(later, cut)
    assert not follows(cut, old) and not follows(later, kept)


def test_a_document_without_stamps_is_followed_by_itself_alone():
    assert follows(DOCUMENT, DOCUMENT)
    assert not follows(stamped(DOCUMENT), DOCUMENT) and not follows(DOCUMENT, stamped(DOCUMENT))


def test_a_moved_document_follows_none():
    old = stamped(DOCUMENT)
    moved = stamps.moved(old)
    assert moved.startswith(old) and moved.rstrip() == DOCUMENT
    assert not follows(moved, old) and follows(stamped(DOCUMENT, moved), moved)


@pytest.mark.parametrize("is_done", [False, True])
def test_a_lost_answer(store, is_done):
    losing(store, is_done=is_done)
    value = stamped(DOCUMENT)
    assert put_stamped(store, "zarr.json", value, None) == store.identity("zarr.json")
    assert store.get("zarr.json") == value


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_lost_answer_about_a_group_above_or_attributes(store, is_done, zarr_format):
    losing(store, is_done=is_done)      # the group at the root comes first
    zcore.create_array(store, name="a", shape=(3,), dtype="i4", attributes={"b": 1}, zarr_format=zarr_format)
    losing(store, is_done=is_done)      # in Zarr v2 the attributes
    zcore.create_array(store, name="c", shape=(3,), dtype="i4", attributes={"b": 1}, zarr_format=zarr_format)
    assert [dict(zcore.open(store, path=name).attrs) for name in "ac"] == [{"b": 1}] * 2


def test_another_writer_was_faster_after_a_lost_answer(store):
    first, second = stamped(DOCUMENT), stamped(b"{}")
    losing(store, is_done=False, meanwhile=lambda: store._client.values.update({"zarr.json": (second, -1)}))
    assert put_stamped(store, "zarr.json", first, None) is None
    assert store.get("zarr.json") == second


def replace(store, times):
    for _ in range(times):
        name, (value, tag) = "zarr.json", store._client.values["zarr.json"]
        store._client.values[name] = stamped(b"{}", value), tag + 100


def test_a_change_that_another_writer_has_replaced_since(store):
    losing(store, is_done=True, meanwhile=lambda: replace(store, stamps.MAX_KEPT - 1))
    assert put_stamped(store, "zarr.json", stamped(DOCUMENT), None) == OVERTAKEN
    assert store.get("zarr.json").rstrip() == b"{}"


def test_more_changes_than_stamps_are_an_error(store):
    losing(store, is_done=True, meanwhile=lambda: replace(store, stamps.MAX_KEPT))
    with pytest.raises(StoreError, match="answer is lost"):
        put_stamped(store, "zarr.json", stamped(DOCUMENT), None)


def test_a_service_that_does_not_answer_is_an_error(store, monkeypatch):
    monkeypatch.setattr("zcore.engine.requests.pause", lambda i: None)
    losing(store, is_done=False, n=99)
    with pytest.raises(StoreError, match="answer is lost"):
        put_stamped(store, "zarr.json", stamped(DOCUMENT), None)


def test_a_request_that_is_made_twice(store):
    """By a library or a proxy: the second one is refused, although the change was made."""
    client, put = store._client, store._client.put

    def put_twice(name, data, condition=None):
        put(name, data, condition)
        return put(name, data, condition)

    client.put = put_twice
    store._honors_conditions = False     # this trial is made twice, too
    a = zcore.create_array(store, data=np.arange(4), chunks=2, attributes={"a": 1})
    assert a.append([4]) == (5,) and a.append([5, 6]) == (7,) and a[...].tolist() == list(range(7))
    a.attrs["a"] = 2
    a.resize((3,))
    assert zcore.open(store)[...].tolist() == [0, 1, 2] and dict(zcore.open(store).attrs) == {"a": 2}


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_an_append_whose_answers_are_lost(zarr_format):
    """Each request of it in turn: the rows are there, or they are not, but none has the fill value."""
    for kind in (BEFORE, AFTER):
        for n in range(100):
            service = Service()
            a = zcore.create_array(service, data=np.arange(1, 7), chunks=4, zarr_format=zarr_format)
            _, error, n_requests = service.run(lambda a=a: a.append([7, 8, 9]), kind, n, None)
            if n >= n_requests:
                break
            assert error is None or isinstance(error, StoreError)
            assert zcore.open(service)[...].tolist() in ([*range(1, 7)], [*range(1, 10)])
            assert error is not None or zcore.open(service).shape == (9,)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_other_readers_read_stamped_documents(zarr_format, tmp_path):
    zarr = pytest.importorskip("zarr")
    service = Service()
    group = zcore.create_group(service, zarr_format=zarr_format)
    a = group.create_array("a", data=np.arange(6), chunks=2, attributes={"b": 1})
    a.append(np.arange(3))
    a.attrs["c"] = [2]
    for name, (value, _) in service.values.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(value)
    opened = zarr.open_array(tmp_path / "a", mode="r")
    assert opened[...].tolist() == [*range(6), *range(3)] and dict(opened.attrs) == {"b": 1, "c": [2]}
    assert any(value.endswith((b" ", b"\t")) for value, _ in service.values.values())


def test_a_read_while_the_array_is_replaced_by_one_of_the_same_kind():
    """The chunk is asked for when the old one is erased, and the new one is not there yet."""
    service = Service()
    a = zcore.create_array(service, name="a", data=np.arange(1, 5), chunks=4)
    get, replaced = service.get, []

    def get_late(name, byte_range):
        if name != "a/c/0" or replaced:
            return get(name, byte_range)
        replaced.append(name)
        service.values.clear()
        zcore.create_array(service, name="a", data=np.arange(11, 15), chunks=4)

    service.get = get_late
    assert a[...].tolist() == [11, 12, 13, 14] and replaced
