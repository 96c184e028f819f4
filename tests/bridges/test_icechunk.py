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
    """`session.store` is a new object each time."""
    session = repository.writable_session("main")
    arrays = [opened(session.store) for _ in range(4)]

    def write(row):
        arrays[row % 4][row] = VALUES[row]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, np.random.default_rng(0).permutation(20).tolist()))
    np.testing.assert_array_equal(arrays[0][...], VALUES)
    assert (zcore.open(repository.readonly_session("main").store)["a"][...] == -1).all(), "nothing is committed yet"


def test_a_pickled_array_of_a_fork_is_for_reading(repository):
    """It has a fork of its own, which nothing would merge."""
    array = by_zcore(repository.writable_session("main").fork().store)
    again = pickle.loads(pickle.dumps(array))
    assert again[0, 0] == -1
    with pytest.raises(zcore.ReadOnlyError):
        again[...] = VALUES


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


def test_zcore_creates_and_deletes(repository):
    session = repository.writable_session("main")
    group = zcore.open_group(session.store, "a")
    group.create_group("g").create_array("b", data=VALUES, chunks=(5, 6))
    zcore.create_array(session.store, name="c", data=[1, 2])
    assert sorted(group) == ["a", "c", "g"] and "d" not in group
    del group["c"]
    session.commit("created by zcore")
    found = zarr.open_group(repository.readonly_session("main").store, mode="r")
    assert sorted(found) == ["a", "g"]
    np.testing.assert_array_equal(found["g/b"][...], VALUES)


def test_copies_and_moves_write_documents_before_chunks(repository, tmp_path_factory):
    """Icechunk takes no chunk without its document."""
    place = tmp_path_factory.mktemp("copy") / "c.zarr"
    source = zcore.open_group(place, mode="w", attributes={"n": 1})
    source.create_array("g/b", data=VALUES, chunks=(5, 6))
    session = repository.writable_session("main")
    zcore.copy(place, session.store, destination_path="new/c")
    zcore.copy(session.store, session.store, path="new/c/g", destination_path="again", chunks=(7, 12))
    with pytest.raises(zcore.UnsupportedError, match="delete the node first"):
        zcore.copy(place, session.store, destination_path="again", overwrite=True)
    zcore.open(session.store, "r+").move("new/c/g/b", "moved")
    session.commit("copied")
    found = zcore.open(repository.readonly_session("main").store)
    assert [path for path, _ in found.members(max_depth=None)] == ["a", "again", "again/b", "moved", "new", "new/c",
                                                                   "new/c/g"]
    for name in ("again/b", "moved"):
        np.testing.assert_array_equal(found[name][...], VALUES)


def test_the_text_of_a_session_is_not_asked_for(repository, monkeypatch):
    """It waits for requests of other threads while it holds the GIL, for which they wait."""
    def hang(store):
        raise AssertionError("would wait for ever")

    monkeypatch.setattr(icechunk.IcechunkStore, "__repr__", hang)
    monkeypatch.setattr(icechunk.IcechunkStore, "__str__", hang)
    array = by_zcore(repository.writable_session("main").store)
    array[...] = VALUES
    assert "icechunk" in repr(array.store) and array.info
    with pytest.raises(zcore.StoreError, match="icechunk"):
        array.store.set("no/c/0", b"")


@pytest.mark.parametrize("lazy", [False, True])
def test_datasets(repository, lazy):
    """`to_zarr` of zcore replaces, appends and writes regions in sessions; what it reads of a snapshot stays."""
    xarray = pytest.importorskip("xarray")
    from zcore.xarray import to_zarr

    def day(n, factor=1):
        ds = xarray.Dataset({"t": (("time", "x"), VALUES[:5] * factor)}, {"time": np.arange(n, n + 5)})
        return ds.chunk(time=2) if lazy else ds

    def stored():
        return xarray.open_zarr(repository.readonly_session("main").store, group="g", consolidated=False)

    for ds, keywords in ((day(0), {"mode": "w"}), (day(5, 2), {"append_dim": "time"}),
                         (day(10, 3), {"append_dim": "time"}),
                         (day(5, 7)[["t"]].drop_vars("time"), {"region": {"time": slice(5, 10)}})):
        session = repository.writable_session("main")
        to_zarr(ds, session.store, group="g", **keywords)
        session.commit("written by zcore")
    expected = xarray.concat([day(0), day(5, 7), day(10, 3)], "time").compute()
    xarray.testing.assert_equal(stored().compute(), expected)
    session = repository.writable_session("main")
    store = session.store
    # Another session reads the snapshot that it was opened on, whatever this one deletes.
    other = repository.writable_session("main").store
    to_zarr(xarray.open_zarr(other, group="g", consolidated=False) + 1, store, group="g", mode="w")
    with pytest.raises(ValueError, match="would delete"):
        to_zarr(xarray.open_zarr(store, group="g", consolidated=False), session.store, group="g", mode="w")
    session.commit("derived")
    xarray.testing.assert_equal(stored().compute(), expected + 1)


def test_an_append_that_fails_in_a_session_is_undone(repository):
    xarray, dask_array = pytest.importorskip("xarray"), pytest.importorskip("dask.array")
    from zcore.xarray import to_zarr

    def fail(block):
        raise RuntimeError("no values")

    store = repository.writable_session("main").store
    to_zarr(xarray.Dataset({"t": ("time", np.arange(4))}), store, group="g")
    bad = dask_array.arange(4, chunks=2).map_blocks(fail, dtype="i8", meta=np.array((), "i8"))
    with pytest.raises(RuntimeError, match="no values"):
        to_zarr(xarray.Dataset({"t": ("time", bad)}), store, group="g", append_dim="time")
    assert zcore.open(store)["g/t"][...].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("keywords", [{"chunks": (5, 6)}, {"chunks": (5, 6), "shards": (10, 12)}])
def test_resizes_and_appends_are_those_of_a_directory(repository, tmp_path, keywords):
    """Icechunk takes no chunk beyond a shape, and keeps those that it does not show."""
    session = repository.writable_session("main")
    places = session.store, tmp_path
    for place in places:
        zcore.create_array(place, name="b", data=VALUES, fill_value=-1, **keywords)
    # Another program may leave chunks beyond a shape.
    document = zcore.open(session.store, "r+").store.get("b/zarr.json")
    zcore.open(session.store, "r+").store.set("b/zarr.json", document.replace(b"[20, 12]", b"[4, 12]"))
    zcore.open(tmp_path, "r+")["b"].resize((4, 12))
    for change in (lambda a: a.resize((13, 12)), lambda a: a.append(VALUES[:9]), lambda a: a.resize((3, 20)),
                   lambda a: a.append(np.full((3, 4), 7, "i4"), axis=1), lambda a: a.resize((21, 24)),
                   lambda a: a.append(VALUES[:0, :1].repeat(24, 1)), lambda a: a.resize((2, 2)),
                   lambda a: a.append(VALUES[:, :2]), lambda a: a.resize((30, 30))):
        for place in places:
            change(zcore.open(place, "r+")["b"])
        np.testing.assert_array_equal(*[zcore.open(place)["b"][...] for place in places])
    assert zcore.verify(session.store).ok


def test_a_session_for_reading_refuses_writes(repository):
    store = repository.readonly_session("main").store
    with pytest.raises(zcore.ReadOnlyError):
        by_zcore(store)[0] = 1


@pytest.mark.parametrize("opened", [by_zarr, by_zcore])
def test_inline_native_and_virtual_chunks_are_read_and_written_in_parts(tmp_path, opened):
    (tmp_path / "virtual").mkdir()
    (tmp_path / "virtual" / "x.bin").write_bytes(b"before" + VALUES[:5, :6].tobytes() + b"behind")
    url = f"file://{tmp_path}/virtual/"
    access = getattr(icechunk.credentials, "LocalFileSystemAccess", None)     # since Icechunk 2
    config = icechunk.RepositoryConfig.default()
    config.inline_chunk_threshold_bytes = 50
    config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(
        url, icechunk.local_filesystem_store(str(tmp_path / "virtual"))))
    repository = icechunk.Repository.create(
        icechunk.local_filesystem_storage(str(tmp_path / "repository")), config=config,
        authorize_virtual_chunk_access=icechunk.containers_credentials({url: access}))
    store = repository.writable_session("main").store
    array = zarr.create_array(store, name="a", shape=VALUES.shape, chunks=(5, 6), dtype="i4", fill_value=0)
    array[5:] = VALUES[5:]      # compressed, so inline
    zarr.create_array(store, name="b", shape=VALUES.shape, chunks=(5, 6), dtype="i4", compressors=None)[...] = VALUES
    zarr.create_array(store, name="c", shape=VALUES.shape, chunks=(5, 6), dtype="i4", compressors=None)
    store.set_virtual_ref("c/c/0/0", f"{url}x.bin", offset=6, length=120)
    for name, expected in (("a", np.where(VALUES < 60, 0, VALUES)), ("b", VALUES.copy())):
        with zarr.config.set({"codec_pipeline.path": "zcore.zarr.ZcoreCodecPipeline"}):
            array = zarr.open_array(store, path=name) if opened is by_zarr else zcore.open(store, "r+")[name]
        np.testing.assert_array_equal(array[...], expected)
        np.testing.assert_array_equal(array[3:13:2, 5], expected[3:13:2, 5])
        array[4:7, 3:8] = -5
        expected[4:7, 3:8] = -5
        np.testing.assert_array_equal(array[...], expected)
    array = zcore.open(store, "r+")["c"]
    np.testing.assert_array_equal(array[:5, :6], VALUES[:5, :6])
    array[1:3, 2:4] = 7
    assert array[1:3, 2:4].tolist() == [[7, 7]] * 2 and array[4, 5] == VALUES[4, 5] and array[5, 5] == 0


def test_the_directory_of_a_repository_is_named_in_the_error(repository, tmp_path):
    with pytest.raises(zcore.NodeNotFoundError, match="it is a repository of Icechunk: zcore.open takes the store of"):
        zcore.open(tmp_path)
