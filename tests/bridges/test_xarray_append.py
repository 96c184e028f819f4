"""An append by `zcore.xarray.to_zarr` that is killed, or fails, leaves a dataset that takes the next append."""
import contextlib
import os
import shutil
import threading
import warnings

import numpy as np
import pytest

import zcore
from tests.at_once import at_once
from zcore.engine.array_binding import ArrayBinding
from zcore.engine.node_binding import Exclusive
from zcore.stores.directory.store import DirectoryStore

xr = pytest.importorskip("xarray")
pytest.importorskip("dask")
pytest.importorskip("zarr")

import dask  # noqa: E402

from zcore.nodes.appending import PendingAppend, appending  # noqa: E402
from zcore.xarray import to_zarr  # noqa: E402

LAZY = pytest.mark.parametrize("lazy", [False, True])


@pytest.fixture(autouse=True)
def _without_warnings(recwarn):
    warnings.simplefilter("ignore")


def rows(i, n=3):
    """Return a dataset of some rows: two variables and a coordinate that get longer, two that do not."""
    time = np.arange(n) + 3 * i
    return xr.Dataset({"a": (("time", "x"), time[:, None] + np.zeros(2)), "b": (("x", "time"), np.stack([time, time])),
                       "c": ("x", [5, 6])},
                      {"time": np.datetime64("2000-01-01", "ns") + time * np.timedelta64(1, "D"), "x": [1, 2]})


def stored(store, zarr_format=3, consolidated=None):
    # Chunks of several rows, and of whole appends.
    to_zarr(rows(0), store, zarr_format=zarr_format, consolidated=consolidated, encoding={
        "a": {"chunks": (2, 2)}, "b": {"chunks": (2, 3)}, "time": {"chunks": (10,)}})


def appended(store, ds, lazy=False, **keywords):
    return to_zarr(ds.chunk(time=1) if lazy else ds, store, append_dim="time", **keywords)


def several(*parts):
    return xr.concat(parts, "time", data_vars="minimal", coords="minimal")


def loaded(store, engine, **keywords):
    return xr.open_dataset(store, engine=engine, **keywords).load()


class Killed(BaseException):
    """Nothing catches it, and nothing can be stored after it."""


class DyingStore(zcore.MemoryStore):
    """Refuses every change from the n-th one on."""

    left = None

    def _dies(self):
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Killed

    def set(self, key, value):
        self._dies()
        super().set(key, value)

    def set_if_not_exists(self, key, value):
        self._dies()
        return super().set_if_not_exists(key, value)

    def erase(self, key):
        self._dies()
        super().erase(key)


def dies_at(n, store, lazy, consolidated):
    """Append in a child that ends at the n-th change in a directory; return whether it came to its end before."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    count = [0]

    def counted(kind, name):
        call = getattr(kind, name)

        def dies(*args, **keywords):
            if count[0] == n:
                os._exit(9)
            count[0] += 1
            return call(*args, **keywords)
        setattr(kind, name, dies)

    for kind, name in ((DirectoryStore, "set"), (DirectoryStore, "set_if_not_exists"), (DirectoryStore, "erase"),
                       (ArrayBinding, "write_once"), (Exclusive, "replace_metadata")):
        counted(kind, name)
    with contextlib.suppress(BaseException), dask.config.set(scheduler="synchronous"):
        appended(store, rows(1), lazy, consolidated=consolidated)
        os._exit(0)
    os._exit(8)


def check_after_a_kill(store, consolidated, place=None):
    """Compare what both engines find with the dataset before and after; append the same rows again."""
    before, after = rows(0), several(rows(0), rows(1))
    found = loaded(store, "zcore")
    assert found.equals(before) or found.equals(after)
    if place is not None:
        if consolidated is None:
            xr.testing.assert_equal(loaded(place, "zarr"), found)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            other = loaded(place, "zcore", consolidated=False)
        assert other.equals(before) or other.equals(after)
        lengths = {zcore.open(place, path=name).refresh().shape[dim] for name, dim in (("a", 0), ("b", 1), ("time", 0))}
        assert (len(lengths) == 2) == any(["was cut off" in str(one.message) for one in caught])
        if len(lengths) == 1:
            xr.testing.assert_equal(loaded(place, "zarr", consolidated=False), other)
    appended(store, rows(1), consolidated=consolidated)
    xr.testing.assert_equal(loaded(store, "zcore"), several(found, rows(1)))
    appended(store, rows(2, 1), consolidated=consolidated)
    xr.testing.assert_equal(loaded(store, "zcore", consolidated=False), several(found, rows(1), rows(2, 1)))
    if place is not None:
        xr.testing.assert_equal(loaded(place, "zarr", consolidated=False), several(found, rows(1), rows(2, 1)))
        assert zcore.verify(place).ok


@pytest.mark.thinned(6, "zarr_format", "consolidated", "lazy")
@LAZY
@pytest.mark.parametrize("consolidated", [None, False])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_killed_at_each_change_of_a_directory(tmp_path, zarr_format, consolidated, lazy):
    stored(tmp_path / "first", zarr_format, consolidated)
    n, done = 0, False
    while not done:
        place = tmp_path / str(n)
        shutil.copytree(tmp_path / "first", place)
        done = dies_at(n, place, lazy, consolidated)
        if done:
            xr.testing.assert_equal(loaded(place, "zcore"), several(rows(0), rows(1)))
            break
        check_after_a_kill(str(place), consolidated, place)
        n += 1
    assert n > 10


@pytest.mark.thinned(3, "zarr_format", "lazy")
@LAZY
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_killed_at_each_change_of_another_store(zarr_format, lazy):
    n = 0
    while True:
        store = DyingStore()
        stored(store, zarr_format)
        store.left = n
        try:
            with dask.config.set(scheduler="synchronous"):
                appended(store, rows(1), lazy)
            break
        except Killed:
            store.left = None
        check_after_a_kill(store, None)
        n += 1
    assert n > 10
    assert not [key for key in store.list() if "append" in key]


class FullStore(DyingStore):
    """Fails as a full disk does, at some changes in the middle."""

    def _dies(self):
        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                raise zcore.StoreError("no space left on device")


@LAZY
def test_a_failure_leaves_the_dataset_as_it_was(lazy):
    n = failed = 0
    while failed == n:
        n += 1
        store = FullStore()
        stored(store)
        store.left = n
        try:
            appended(store, rows(1), lazy)
            assert store.left <= 0 or failed
        except zcore.StoreError:
            failed += 1
            store.left = None
            for consolidated in (None, False):
                found = loaded(store, "zcore", consolidated=consolidated)
                assert found.equals(rows(0)) or found.equals(several(rows(0), rows(1)))
    assert failed > 8


def test_a_block_that_raises(tmp_path):
    stored(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("zarr.json")}

    def fails(block):
        if block.size and block.flat[0] == 5:
            raise ZeroDivisionError
        return block

    ds = rows(1).chunk(time=1)
    ds["a"] = ds["a"].copy(data=ds["a"].data.map_blocks(fails, dtype="f8"))
    with pytest.raises(ZeroDivisionError):
        to_zarr(ds, tmp_path, append_dim="time")
    assert {path: path.read_bytes() for path in tmp_path.rglob("zarr.json")} == before
    appended(tmp_path, rows(1, 1))
    xr.testing.assert_equal(loaded(tmp_path, "zcore"), several(rows(0), rows(1, 1)))
    # What the failed append has left behind does not appear.
    zcore.open(tmp_path, "r+")["a"].resize(6, 2)
    assert np.isnan(zcore.open(tmp_path)["a"][4:]).all()


@LAZY
def test_two_at_once(tmp_path, lazy):
    """One waits for the other one, and then is an error; no rows are mixed."""
    stored(tmp_path)
    start, errors = threading.Barrier(2), []

    def run(i):
        start.wait()
        for _ in range(20):
            try:
                return appended(tmp_path, rows(i), lazy)
            except zcore.StoreError as error:
                errors.append(str(error))
        raise AssertionError

    at_once(threading.Thread(target=run, args=(i,)) for i in (1, 2))
    assert all(["another writer" in error for error in errors])
    found = loaded(tmp_path, "zcore", consolidated=False)
    assert found.equals(several(rows(0), rows(1), rows(2))) or found.equals(several(rows(0), rows(2), rows(1)))


@pytest.mark.parametrize("step", ["make_room", "lengthen"])
def test_rows_of_another_program_meanwhile(tmp_path, monkeypatch, step):
    """Which does not know of appends to several arrays."""
    ds = xr.Dataset({"a": ("t", np.arange(3))})
    to_zarr(ds, tmp_path)
    call = getattr(PendingAppend, step)

    def late(growing):
        monkeypatch.undo()
        zcore.open(tmp_path, "r+")["a"].append([7, 8])
        return call(growing)

    monkeypatch.setattr(PendingAppend, step, late)
    with pytest.raises(zcore.StoreError, match="another writer"):
        to_zarr(ds + 30, tmp_path, append_dim="t")
    assert zcore.open(tmp_path)["a"][...].tolist() == [0, 1, 2, 7, 8]
    to_zarr(ds, tmp_path, append_dim="t")
    assert zcore.open(tmp_path)["a"][...].tolist() == [0, 1, 2, 7, 8, 0, 1, 2]


def test_an_append_in_an_append(tmp_path, monkeypatch):
    """A signal handler, or a block of dask, cannot wait for the call that it interrupts."""
    stored(tmp_path)
    lengthen = PendingAppend.lengthen

    def inside(growing):
        monkeypatch.undo()
        with pytest.raises(zcore.LockError):
            appended(tmp_path, rows(2))
        return lengthen(growing)

    monkeypatch.setattr(PendingAppend, "lengthen", inside)
    appended(tmp_path, rows(1))
    xr.testing.assert_equal(loaded(tmp_path, "zcore"), several(rows(0), rows(1)))


def test_computed_later(tmp_path):
    """Then arrays have the new lengths at once, as in xarray."""
    stored(tmp_path)
    later = appended(tmp_path, rows(1), lazy=True, compute=False)
    assert loaded(tmp_path, "zcore").sizes["time"] == 6 and np.isnan(loaded(tmp_path, "zcore").a[3:]).all()
    later.compute()
    xr.testing.assert_equal(loaded(tmp_path, "zcore"), several(rows(0), rows(1)))


def test_at_a_service():
    obstore = pytest.importorskip("obstore.store").MemoryStore()
    stored(obstore)
    appended(obstore, rows(1), lazy=True)
    xr.testing.assert_equal(loaded(obstore, "zcore"), several(rows(0), rows(1)))
    group = zcore.open_group(obstore, "r+")
    # As a kill between two documents leaves it.
    with contextlib.suppress(Killed), appending(group["time"], "time", 6):
        group["a"].resize(8, 2)
        raise Killed
    group.store.set("time/.zcore_append/record", b'{"dimension": "time", "length": 6}')
    xr.testing.assert_equal(loaded(obstore, "zcore"), several(rows(0), rows(1)))
    appended(obstore, rows(2))
    xr.testing.assert_equal(loaded(obstore, "zcore"), several(rows(0), rows(1), rows(2)))


def test_the_record_is_a_file_that_has_replaced_another_one(tmp_path, monkeypatch):
    """So it is written out before documents are changed, and after a power cut says which length counts."""
    array = zcore.create_array(tmp_path, shape=6, dtype="i4", name="t")
    record, seen = tmp_path / "t/.zcore_append/record", []
    make = DirectoryStore.set_if_not_exists
    monkeypatch.setattr(DirectoryStore, "set_if_not_exists", lambda *args: make(*args) and seen.append(os.stat(record)))
    with appending(array, "t", 6):
        assert seen and not os.path.samestat(seen[0], os.stat(record)) and record.read_bytes().endswith(b"6}")
    assert not record.exists()


def test_two_lengths_without_a_record(tmp_path):
    """Other programs leave no record of what they do: the error says what to do."""
    stored(tmp_path, consolidated=False)
    group = zcore.open_group(tmp_path, "r+")
    group["a"].resize(5, 2)
    with pytest.raises(ValueError, match="conflicting sizes") as caught:
        loaded(tmp_path, "zcore")
    assert "resize(shape)" in caught.value.__notes__[0] and "'a': {'time': 5" in caught.value.__notes__[0]
    with pytest.raises(ValueError, match="different lengths along 'time'"):
        appended(tmp_path, rows(1))
    group["a"].resize(3, 2)
    appended(tmp_path, rows(1))
    xr.testing.assert_equal(loaded(tmp_path, "zcore"), several(rows(0), rows(1)))


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"{}", b'{"dimension": "x", "length": 1}',
                                 b'{"dimension": "time", "length": 2}', b'{"dimension": "time", "length": "3"}'])
def test_odd_records(tmp_path, raw):
    stored(tmp_path, consolidated=False)
    zcore.open_group(tmp_path).store  # noqa: B018
    DirectoryStore(tmp_path).set("time/.zcore_append/record", raw)
    appended(tmp_path, rows(1))
    xr.testing.assert_equal(loaded(tmp_path, "zcore"), several(rows(0), rows(1)))
    DirectoryStore(tmp_path).set("time/.zcore_append/record", raw)
    zcore.open_group(tmp_path, "r+")["a"].resize(5, 2)
    with pytest.raises(ValueError, match="conflicting sizes"):
        loaded(tmp_path, "zcore", consolidated=False)


@pytest.mark.slow
def test_workers_of_distributed(tmp_path):
    distributed = pytest.importorskip("distributed")
    stored(tmp_path)
    with (distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
          distributed.Client(cluster)):
        appended(tmp_path, rows(1), lazy=True)
    xr.testing.assert_equal(loaded(tmp_path, "zcore"), several(rows(0), rows(1)))
