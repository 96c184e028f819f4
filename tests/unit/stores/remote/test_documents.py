"""Several processes that change the documents of one hierarchy at a service: none loses anything."""
import functools
import threading

import numpy as np
import pytest

import zcore
from tests.unit.stores.conformance import run_threads
from tests.unit.stores.remote.test_store import Careless
from zcore.errors import LockError, NodeExistsError, StoreError
from zcore.hierarchy import resizing
from zcore.stores.remote.store import RemoteStore

obstore = pytest.importorskip("obstore")


class Apart(RemoteStore):
    """A store whose locks hold back no other one, as if it were of another process."""

    @property
    def _lock_name(self):
        return id(self)


@pytest.fixture(params=["memory", "s3"])
def places(request):
    """A function that returns another process's store of one place."""
    if request.param == "memory":
        service = obstore.store.MemoryStore()
        return lambda: Apart(service)
    name, options = request.getfixturevalue("bucket")
    return lambda: Apart(f"s3://{name}/x", **options)


def block(i):
    return np.full((3, 5), i + 1, "i4") * 10 + np.arange(3, dtype="i4")[:, None]


@pytest.mark.thinned(2, "places", "settings")
@pytest.mark.parametrize("settings", [
    {"chunks": (4, 5)}, {"chunks": (2, 5), "shards": (8, 5)}, {"chunks": (3, 5)}, {"chunks": ([2, 5], 5)},
], ids=["misaligned", "shards", "aligned", "rectilinear"])
def test_appends_of_several_processes(places, settings):
    shape = (7 if settings["chunks"] == ([2, 5], 5) else 0, 5)
    zcore.create_array(places(), shape=shape, dtype="i4", fill_value=-1, **settings)
    n, stores = 4, [places() for _ in range(4)]

    def work(me):
        array = zcore.open(stores[me], mode="r+")
        for i in range(n):
            array.append(block(me * n + i))

    run_threads(4, work)
    found = zcore.open(places())[shape[0]:]
    assert found.shape == (4 * n * 3, 5)
    blocks = found.reshape(4 * n, 3, 5)
    assert sorted(blocks[:, 0, 0].tolist()) == [int(block(i)[0, 0]) for i in range(4 * n)]
    for one in blocks:
        assert np.array_equal(one, block(one[0, 0] // 10 - 1))
    # Those of one process are in its order.
    for me in range(4):
        mine = [one[0, 0] // 10 - 1 for one in blocks if (one[0, 0] // 10 - 1) // n == me]
        assert mine == sorted(mine)
    assert zcore.verify(places()).ok


@pytest.mark.parametrize("zarr_format", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_attributes_of_several_processes(places, zarr_format):
    zcore.create_array(places(), shape=(4,), dtype="i4", zarr_format=zarr_format)

    def work(me):
        array = zcore.open(places(), mode="r+")
        for i in range(6):
            array.attrs[f"{me}.{i}"] = i

    run_threads(4, work)
    assert zcore.open(places()).attrs.asdict() == {f"{me}.{i}": i for me in range(4) for i in range(6)}


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_of_several_who_create_one_succeeds(places, overwrite, zarr_format):
    if overwrite:
        zcore.create_array(places(), shape=(9,), dtype="f8", zarr_format=zarr_format)
    together, outcomes = threading.Barrier(4), []

    def work(me):
        store = places()
        together.wait()
        try:
            outcomes.append((me, zcore.create_array(store, shape=(me + 1,), dtype="i4", attributes={"of": me},
                                                    zarr_format=zarr_format, overwrite=overwrite)))
        except (NodeExistsError, StoreError) as error:
            outcomes.append((me, error))

    run_threads(4, work)
    made = [me for me, outcome in outcomes if isinstance(outcome, zcore.Array)]
    array = zcore.open(places())
    assert made and array.shape[0] - 1 in made
    if not overwrite:
        assert len(made) == 1 and array.attrs.asdict() == {"of": made[0]}


@pytest.mark.parametrize("data", [None, np.arange(4)])
@pytest.mark.parametrize("kind", ["deleted", "replaced"])
def test_a_node_that_another_process_takes_away_at_once_was_created(monkeypatch, kind, data):
    """Creation is over when the document stands. What becomes of it then is found out by the handle when it is used."""
    service = obstore.store.MemoryStore()
    store = Apart(service)

    def then_another(put):
        def and_then(key, *args):
            found = put(key, *args)
            if key == "zarr.json" and found and b"being created" not in bytes(args[0]):
                monkeypatch.undo()
                if kind == "deleted":
                    Apart(service).erase("zarr.json")
                else:
                    zcore.create_array(Apart(service), data=np.full((3, 2), 9, "i2"), overwrite=True)
            return found
        return and_then

    for name in ("set_if_not_exists", "set_if_same"):
        monkeypatch.setattr(store, name, then_another(getattr(store, name)))
    array = zcore.create_array(store, data=data, **({} if data is not None else {"shape": (4,), "dtype": "i8"}))
    error, message = {"deleted": (zcore.errors.NodeNotFoundError, "zarr.json"),
                      "replaced": (StoreError, "replaced by another")}[kind]
    with pytest.raises(error, match=message):
        array[...]


def test_appends_while_others_grow_and_change_attributes(places):
    zcore.create_array(places(), shape=(0, 5), chunks=(4, 5), dtype="i4", fill_value=-1)

    def work(me):
        array = zcore.open(places(), mode="r+")
        for i in range(5):
            if me < 2:
                array.append(block(me * 5 + i))
            elif me == 2:
                array.attrs["i"] = i
            else:
                with_more = zcore.open(places(), mode="r+")
                with_more.append(np.full((1, 5), -1, "i4"))

    run_threads(4, work)
    array = zcore.open(places())
    found = array[:]
    assert array.shape == (35, 5) and array.attrs["i"] == 4
    assert sorted(found[:, 0][found[:, 0] > 0].tolist()) == sorted(
        int(value) for i in range(10) for value in block(i)[:, 0])


@pytest.mark.parametrize("chunks", [(4, 5), (1, 5)])
def test_an_append_that_was_overtaken_resets_no_rows_of_the_other(chunks):
    """The other one appends between the look at the document and the reset of what may be left over."""
    service = obstore.store.MemoryStore()
    zcore.create_array(Apart(service), data=np.zeros((6, 5), "i4"), chunks=chunks, fill_value=-1)
    mine, other = Apart(service), zcore.open(Apart(service), mode="r+")
    array, read, left = zcore.open(mine, mode="r+"), mine.get_with_identity, [1]

    def late(key, byte_range=None):
        found = read(key, byte_range)
        if left and key.startswith("c/"):
            left.pop()
            other.append(block(1))
        return found

    mine.get_with_identity = late
    array.append(block(2))
    if left:      # no object is shared, so none was read
        other.append(block(1))
    assert zcore.open(service)[6:].tolist() in (
        [*block(1).tolist(), *block(2).tolist()], [*block(2).tolist(), *block(1).tolist()])


def test_a_growth_that_was_overtaken_resets_no_rows_of_the_other(monkeypatch):
    service = obstore.store.MemoryStore()
    zcore.create_array(Apart(service), data=np.zeros((6, 5), "i4"), chunks=(4, 5), fill_value=-1)
    array, other = zcore.open(Apart(service), mode="r+"), zcore.open(Apart(service), mode="r+")
    reset, left = resizing._reset_in_service, [1]

    def late(*args):
        if left:
            left.pop()
            other.append(block(1))
        reset(*args)

    monkeypatch.setattr(resizing, "_reset_in_service", late)
    array.resize(20, 5)
    assert zcore.open(service)[:].tolist() == [*[[0] * 5] * 6, *block(1).tolist(), *[[-1] * 5] * 11]


@pytest.mark.parametrize("n", [1, 2, 3, 6, 9])
def test_what_a_killed_change_left_is_no_element(n):
    service = obstore.store.MemoryStore()
    store = RemoteStore(service)
    array = zcore.create_array(store, data=np.full((20, 2), 7, "i4"), chunks=(4, 2), fill_value=-1)
    document = store.get("zarr.json")
    # As a shrink leaves it that was killed after the document.
    store.set("zarr.json", document.replace(b"20", b"6"))
    array.refresh()
    assert array.append(np.full((n, 2), 5, "i4")) == (6 + n, 2)
    array.resize(20, 2)
    assert zcore.open(service)[:, 0].tolist() == [7] * 6 + [5] * n + [-1] * (14 - n)


@pytest.mark.parametrize("n", [2, 6, 9])
def test_nor_is_it_while_rows_are_reserved(n, monkeypatch):
    service = obstore.store.MemoryStore()
    store = RemoteStore(service, n_requests=1)
    array = zcore.create_array(store, data=np.full((20, 2), 7, "i4"), chunks=(4, 1), fill_value=-1)
    store.set("zarr.json", store.get("zarr.json").replace(b"20", b"8"))
    seen = []
    for name in ("set_if_not_exists", "set_if_same"):
        def look_first(*args, put):
            seen.append(zcore.open(service)[8:, 1].tolist())
            return put(*args)

        monkeypatch.setattr(store, name, functools.partial(look_first, put=getattr(store, name)))
    array.refresh().append(np.full((n, 2), 5, "i4"))
    assert {value for values in seen for value in values} in ({-1}, {-1, 5})
    assert zcore.open(service)[:, 1].tolist() == [7] * 8 + [5] * n


@pytest.mark.parametrize("settings", [{"chunks": (4, 5)}, {"chunks": (2, 5), "shards": (8, 5)}])
def test_a_write_of_the_last_rows_keeps_those_of_an_append(settings, monkeypatch):
    """Another process appends to the object right before it is put."""
    service = obstore.store.MemoryStore()
    zcore.create_array(RemoteStore(service), data=np.zeros((6, 5), "i4"), **settings)
    store, appended = Apart(service, n_requests=1), []
    array, other = zcore.open(store, mode="r+", threads=1), zcore.open(Apart(service), mode="r+")
    for name in ("set", "set_if_same"):
        def put_later(*args, put):
            if not appended:
                appended.append(other.append(np.full((2, 5), 2, "i4")))
            return put(*args)

        monkeypatch.setattr(store, name, functools.partial(put_later, put=getattr(store, name)))
    array[...] = 1
    assert zcore.open(service)[...].tolist() == [[1] * 5] * 6 + [[2] * 5] * 2 and appended


def test_rows_that_cannot_be_written_are_given_back(monkeypatch):
    service = obstore.store.MemoryStore()
    store = RemoteStore(service)
    array = zcore.create_array(store, data=np.zeros((6, 5), "i4"), chunks=(4, 5), fill_value=-1)

    def fail(key, *args):
        raise StoreError("no room", key=key)

    with monkeypatch.context() as patch:
        patch.setattr(store, "set_if_not_exists", fail)
        with pytest.raises(StoreError, match="no room"):
            array.append(np.ones((10, 5), "i4"))
    assert zcore.open(service).shape == (6, 5)
    array.append(block(1))
    assert zcore.open(service)[6:].tolist() == block(1).tolist()


def test_a_service_without_conditions_refuses_before_anything_is_written():
    for service in (Careless(), Careless(("swap",))):
        store = RemoteStore(service)
        zcore.create_array(store, shape=(4,), chunks=(4,), dtype="i2")[...] = 5
        before = dict(service.values)
        array = zcore.open(service, mode="r+")
        for change in (lambda array=array: array.append([1, 2]), lambda array=array: array.resize(9),
                       lambda array=array: array.attrs.update(a=1)):
            with pytest.raises(LockError, match="lock=None"):
                change()
        assert service.values == before
        free = zcore.open(service, mode="r+", lock=None)
        free.append([1, 2])
        free.attrs["a"] = 1
        assert zcore.open(service)[:].tolist() == [5, 5, 5, 5, 1, 2] and zcore.open(service).attrs["a"] == 1


@pytest.mark.parametrize("zarr_format", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_nodes_that_are_made_at_once_below_consolidated_metadata(places, zarr_format):
    zcore.create_group(places(), zarr_format=zarr_format).create_array("first", shape=(2,), dtype="i4")
    zcore.consolidate_metadata(places())

    def work(me):
        group = zcore.open_group(places(), mode="r+")
        for i in range(3):
            group.create_array(f"{me}.{i}", shape=(2,), dtype="i4", attributes={"me": me})

    run_threads(4, work)
    zcore.consolidate_metadata(places())
    assert set(zcore.open_consolidated(places()).array_keys()) == {"first", *[f"{me}.{i}" for me in range(4)
                                                                             for i in range(3)]}


@pytest.mark.thinned(2, "seed", "settings")
@pytest.mark.parametrize("settings", [{"chunks": (3, 4)}, {"chunks": (1, 2), "shards": (4, 4)},
                                      {"chunks": ([2, 5, 3], 4)}], ids=["chunks", "shards", "rectilinear"])
@pytest.mark.parametrize("seed", range(4))
def test_changes_of_the_shape_are_those_of_numpy(settings, seed):
    rng = np.random.default_rng(seed)
    shape = (10, 6)
    array = zcore.create_array(RemoteStore(obstore.store.MemoryStore()), shape=shape, dtype="i4", fill_value=-1,
                               **settings)
    model = np.full(shape, -1, "i4")
    for step in range(25):
        what = rng.integers(4)
        if what == 0:
            new = tuple(int(n) for n in rng.integers(0, 16, 2))
            kept = tuple(slice(0, min(pair)) for pair in zip(new, model.shape, strict=True))
            model, old = np.full(new, -1, "i4"), model
            model[kept] = old[kept]
            array.resize(new)
        elif what == 1:
            axis = int(rng.integers(2))
            shape = [int(rng.integers(0, 7)) if d == axis else n for d, n in enumerate(model.shape)]
            values = np.full(shape, step, "i4")
            model = np.concatenate([model, values], axis)
            array.append(values, axis=axis)
        else:
            box = tuple(slice(*sorted(rng.integers(0, n + 1, 2))) for n in model.shape)
            model[box] = array[box] = step
        assert array.shape == model.shape and np.array_equal(array[...], model)
        assert np.array_equal(zcore.open(array.store)[...], model)


@pytest.mark.parametrize("settings", [pytest.param({"chunks": (4, 5)}, marks=pytest.mark.slow),
                                      {"chunks": (2, 5), "shards": (8, 5)}])
def test_writers_of_several_processes(places, settings):
    zcore.create_array(places(), shape=(0, 5), dtype="i4", fill_value=-1, **settings)
    stores = [places() for _ in range(3)]

    def work(me):
        with zcore.open(stores[me], mode="r+").writer(queue=400) as w:
            for i in range(24):
                w.append(np.full(5, me * 100 + i, "i4"))
                if i % 10 == me:
                    w.flush()

    run_threads(3, work)
    found = zcore.open(places())[...]
    assert (found == found[:, :1]).all()
    for me in range(3):
        assert [value % 100 for value in found[:, 0].tolist() if value // 100 == me] == list(range(24))


def test_a_writer_whose_requests_fail(monkeypatch):
    store = RemoteStore(obstore.store.MemoryStore())
    w = zcore.create_array(store, shape=(0, 5), dtype="i4", chunks=(4, 5), fill_value=-1).writer()

    def fail(key, *args):
        raise StoreError("no room", key=key)

    for i in range(6):
        w.append(np.full(5, i, "i4"))
    w.flush()
    with monkeypatch.context() as patch:
        for name in ("set", "set_if_same", "set_if_not_exists"):
            patch.setattr(store, name, fail)
        for i in range(6, 14):
            w.append(np.full(5, i, "i4"))
        with pytest.raises(zcore.WriterError, match="frames 6 to 13 are not stored"):
            w.flush()
    w.close()
    assert w.array[:, 0].tolist() == list(range(14))
