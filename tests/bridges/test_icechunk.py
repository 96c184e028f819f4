"""Sessions of Icechunk have several writers: zarr-python with zcore's pipeline, and zcore itself."""
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import zcore

icechunk = pytest.importorskip("icechunk")
zarr = pytest.importorskip("zarr")

VALUES = np.arange(240, dtype="i4").reshape(20, 12)


@pytest.fixture
def repository(tmp_path):
    """A repository with an empty array in chunks of five rows."""
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path)))
    session = repository.writable_session("main")
    zarr.create_array(session.store, name="a", shape=VALUES.shape, chunks=(5, 6), dtype="i4", fill_value=-1)
    session.commit("an empty array")
    return repository


def by_zarr(store):
    with zarr.config.set({"codec_pipeline.path": "zcore.zarr.ZcoreCodecPipeline"}):
        return zarr.open_array(store, path="a", mode="r+")


def by_zcore(store):
    return zcore.open(store, "r+")["a"]


@pytest.mark.parametrize("opened", [by_zarr, by_zcore])
def test_forks_that_write_chunks_of_their_own_are_merged(repository, opened):
    session = repository.writable_session("main")

    def write(pickled, first):
        fork = pickle.loads(pickled)
        opened(fork.store)[first:first + 5] = VALUES[first:first + 5]
        return pickle.dumps(fork)

    with ThreadPoolExecutor(4) as pool:
        forks = list(pool.map(write, [pickle.dumps(session.fork()) for _ in range(4)], range(0, 20, 5)))
    session.merge(*[pickle.loads(fork) for fork in forks])
    session.commit("written by four")
    store = repository.readonly_session("main").store
    np.testing.assert_array_equal(zcore.open(store)["a"][...], VALUES)
    np.testing.assert_array_equal(zarr.open_array(store, path="a", mode="r")[...], VALUES)


@pytest.mark.parametrize("opened", [by_zarr, by_zcore])
def test_threads_of_one_session_that_share_chunks_lose_nothing(repository, opened):
    session = repository.writable_session("main")
    array = opened(session.store)

    def write(row):
        array[row] = VALUES[row]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, np.random.default_rng(0).permutation(20).tolist()))
    np.testing.assert_array_equal(array[...], VALUES)
    assert (zcore.open(repository.readonly_session("main").store)["a"][...] == -1).all(), "nothing is committed yet"


def test_dask_writes_by_forks(repository):
    """As Icechunk's function does it: each task writes to the fork that came with it, and all are merged."""
    dask_array = pytest.importorskip("dask.array")
    from icechunk.dask import store_dask

    session = repository.writable_session("main")
    fork = session.fork()
    source = dask_array.from_array(VALUES, chunks=(5, 6))
    session.merge(store_dask(sources=[source], targets=[by_zarr(fork.store)]))
    session.commit("written by dask")
    np.testing.assert_array_equal(zcore.open(repository.readonly_session("main").store)["a"][...], VALUES)


def test_a_session_for_reading_refuses_writes(repository):
    store = repository.readonly_session("main").store
    with pytest.raises(zcore.ReadOnlyError):
        by_zcore(store)[0] = 1
