"""dask reads arrays of zcore, and writes to them from threads and processes without a loss."""
import pickle
import shutil

import numpy as np
import pytest

import zcore

pytest.importorskip("dask.array")

import dask  # noqa: E402
import dask.array as da  # noqa: E402
from dask.base import tokenize  # noqa: E402

from zcore.dask import from_zcore, store  # noqa: E402

VALUES = np.arange(600).reshape(20, 30)


@pytest.fixture
def array(tmp_path):
    return zcore.create_array(tmp_path / "a", data=VALUES, chunks=(3, 4), shards=(6, 8))


def test_chunks_are_those_of_stored_objects(array):
    assert from_zcore(array).chunks == ((6, 6, 6, 2), (8, 8, 8, 6))
    assert from_zcore(array, chunks=(10, 30)).chunks == ((10, 10), (30,))


@pytest.fixture
def processes(forks):
    """Options of dask: processes work."""
    return {"scheduler": "processes", "multiprocessing.context": "forkserver"}


@pytest.fixture(params=["threads", "processes", "sync"])
def workers(request):
    """Options of dask: who works."""
    return request.getfixturevalue("processes") if request.param == "processes" else {"scheduler": request.param}


def test_the_elements_are_those_of_the_array(array, workers):
    with dask.config.set(workers):
        np.testing.assert_array_equal(from_zcore(array).compute(), VALUES)
        np.testing.assert_array_equal((from_zcore(array.store)[3:, ::2] + 1).compute(), VALUES[3:, ::2] + 1)
        np.testing.assert_array_equal(da.from_array(array).compute(), VALUES)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (0, 0), ()])
def test_a_dimension_of_length_0(shape):
    array = zcore.create_array(zcore.MemoryStore(), shape=shape, dtype="i2")
    x = from_zcore(array)
    assert x.shape == shape and x.dtype == "i2"
    np.testing.assert_array_equal((x + 1).compute(), np.ones(shape))
    store(x, array)


def test_a_handle_that_shrinks_cuts_nothing_silently(array):
    x = from_zcore(array)
    array.resize(10, 30)
    with pytest.raises(zcore.SelectionError, match="shrunk"):
        x.compute(scheduler="sync")
    np.testing.assert_array_equal(x[:6].compute(), VALUES[:6])


def test_masked_values_are_refused(tmp_path):
    x = da.ma.masked_greater(da.from_array(VALUES, chunks=(10, 30)), 300)
    target = zcore.create_array(tmp_path / "a", shape=VALUES.shape, dtype="i8")
    for write in (lambda: store(x, target), lambda: target.__setitem__(..., x),
                  lambda: zcore.create_array(tmp_path / "b", data=x)):
        with pytest.raises(ValueError, match="masked"):
            write()
    assert not (tmp_path / "b").exists()
    store(da.ma.filled(x, -1), target)
    np.testing.assert_array_equal(target, np.where(VALUES > 300, -1, VALUES))


def test_a_rectilinear_grid(tmp_path):
    array = zcore.create_array(tmp_path, data=VALUES, chunks=[[2, 3, 15], 7])
    assert from_zcore(array).chunks == ((2, 3, 15), (7, 7, 7, 7, 2))
    np.testing.assert_array_equal(from_zcore(array).compute(), VALUES)
    np.testing.assert_array_equal(da.from_array(array).compute(), VALUES)
    with pytest.raises(NotImplementedError, match="differ in shape"):
        _ = array.chunks


@pytest.mark.parametrize("dtype", ["M8[s]", "U4", [("a", "i4"), ("b", "f8")], ">f8"], ids=str)
def test_types_stay(tmp_path, dtype):
    values = np.zeros(7, dtype)
    array = zcore.create_array(tmp_path, shape=(7,), chunks=(3,), dtype=dtype, zarr_format=2)
    x = from_zcore(array)
    assert x.dtype == values.dtype and x.compute().dtype == values.dtype


def test_equal_arrays_have_equal_tokens(array, tmp_path):
    again = zcore.open(tmp_path / "a", "r+")
    assert tokenize(array) == tokenize(again) == tokenize(pickle.loads(pickle.dumps(array)))
    assert from_zcore(array).name == from_zcore(again).name
    before = tokenize(array)
    again.resize((25, 30))
    assert tokenize(again) != before
    assert tokenize(zcore.create_array(tmp_path / "b", data=VALUES, chunks=(3, 4), shards=(6, 8))) != before


def of_dirfs(place):
    fsspec = pytest.importorskip("fsspec")
    return fsspec.filesystem("dir", path=str(place), fs=fsspec.filesystem("file"))


@pytest.mark.parametrize("kind", ["dict", "references", "client", "zarr"])
def test_stores_without_an_address_have_tokens_of_their_own(tmp_path, kind):
    """Stores that differ may have the same text, and their documents may be equal; equal tokens would mix them up."""
    arrays = []
    for n in (1, 2):
        place = tmp_path / str(n)
        array = zcore.create_array(place, shape=(4,), chunks=2, dtype="i4")
        array[...] = n
        if kind == "dict":
            found = {key: array.store.get(key) for key in array.store.list()}
        elif kind == "references":
            found = zcore.references(place)
        elif kind == "client":
            found = zcore.RemoteStore(of_dirfs(place))
        else:
            storage = pytest.importorskip("zarr.storage")
            wrapper = pytest.importorskip("fsspec.implementations.asyn_wrapper").AsyncFileSystemWrapper
            found = storage.FsspecStore(wrapper(of_dirfs(place), asynchronous=True), path="")
        arrays.append(zcore.open(found))
    assert tokenize(arrays[0]) == tokenize(arrays[0])
    for as_dask in (from_zcore, da.from_array):
        assert da.concatenate(list(map(as_dask, arrays))).compute().tolist() == [1] * 4 + [2] * 4


def test_tasks_are_small(array):
    assert all(len(pickle.dumps(task)) < 5000 for task in dict(from_zcore(array).dask).values())


def test_writes_that_share_chunks_lose_nothing(tmp_path, workers):
    target = zcore.create_array(tmp_path, shape=(40, 1000), chunks=(7, 300), dtype="i8")
    values = np.arange(20 * 990).reshape(20, 990) + 1
    with dask.config.set(workers):
        assert store(da.from_array(values, chunks=(3, 55)), target, np.s_[10:30, 5:995]) is None
    expected = np.zeros((40, 1000), "i8")
    expected[10:30, 5:995] = values
    np.testing.assert_array_equal(target[...], expected)


def test_a_delayed_write(tmp_path):
    target = zcore.create_array(tmp_path, shape=(4,), chunks=(3,), dtype="i4")
    with pytest.raises(TypeError, match="^compute is 'False', expected True or False"):
        store(da.ones(4, chunks=2, dtype="i4"), target, compute="False")
    delayed = store(da.ones(4, chunks=2, dtype="i4"), target, compute=False)
    assert not target[...].any()
    dask.compute(delayed)
    assert target[...].all()


@pytest.mark.parametrize("region, sentence", [
    (None, r"shape \(3,\), the region \(4,\)"), (np.s_[:2], "the region"), (np.s_[::2], "slices of step 1"),
    (np.s_[0:3, 0:1], "at most 1 slices"), (2, "slices of step 1"),
])
def test_a_region_that_does_not_fit_is_refused_before_anything_is_written(tmp_path, region, sentence):
    target = zcore.create_array(tmp_path, shape=(4,), chunks=(3,), dtype="i4")
    with pytest.raises(ValueError, match=sentence):
        store(da.ones(3, chunks=1, dtype="i4"), target, region)
    assert not target[...].any()


def test_a_source_of_unknown_length_is_refused(tmp_path):
    target = zcore.create_array(tmp_path, shape=(4,), chunks=(3,), dtype="i4")
    x = da.ones(8, chunks=4, dtype="i4")
    with pytest.raises(ValueError, match="the source has shape"):
        store(x[x > 0], target)


def test_a_target_for_reading_is_refused(array, tmp_path):
    with pytest.raises(zcore.ReadOnlyError):
        store(da.from_array(VALUES), zcore.open(tmp_path / "a"))
    with pytest.raises(TypeError, match="target is 'b.zarr', expected an array of zcore, which zcore.create"):
        store(da.from_array(VALUES), "b.zarr")


@pytest.mark.parametrize("module", ["zcore", "zarr"])
def test_memory_of_this_process_cannot_be_written_by_others(processes, module):
    storage = pytest.importorskip(f"{module}.storage")
    target = zcore.zeros((4,), chunks=(2,), dtype="i4", store=storage.MemoryStore())
    with dask.config.set(processes), pytest.raises(zcore.ReadOnlyError):
        store(da.ones(4, chunks=2, dtype="i4"), target)


def test_a_damaged_chunk_is_the_error_of_the_task_that_met_it(array, tmp_path):
    x = from_zcore(array)
    (tmp_path / "a" / "c" / "1" / "1").write_bytes(b"damage")
    with pytest.raises(zcore.ChunkError, match="c/1/1"):
        x.compute()
    np.testing.assert_array_equal(x[:6].compute(), VALUES[:6])


@pytest.mark.parametrize("again", [lambda x: x, lambda x: pickle.loads(pickle.dumps(x))], ids=["handle", "pickle"])
def test_an_array_that_is_gone_is_an_error_of_the_task(array, tmp_path, again):
    x = again(zcore.dask.from_zcore(array))
    shutil.rmtree(array.store.path)
    with pytest.raises(zcore.NodeNotFoundError):
        x.compute()
    with pytest.raises(FileNotFoundError):
        pickle.loads(pickle.dumps(array))[0]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_from_zarr_takes_an_array_in_a_directory(tmp_path, zarr_format):
    pytest.importorskip("zarr", minversion="3")
    found = da.from_zarr(zcore.create_array(tmp_path, name="g/a", data=VALUES, chunks=(3, 4), zarr_format=zarr_format))
    assert found.chunksize == (3, 4) and np.array_equal(found.compute(), VALUES)


def test_from_zarr_is_told_what_to_do_with_another_array(tmp_path):
    pytest.importorskip("zarr", minversion="3")
    for other in (zcore.zeros(3), zcore.create_array(tmp_path, data=VALUES, zarr_format="zmeta")):
        with pytest.raises(TypeError, match="zcore.zarr.array hands it on"):
            da.from_zarr(other)
