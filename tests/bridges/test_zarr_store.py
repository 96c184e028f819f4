"""`zcore.zarr.Store`: zarr-python's own conformance tests of a store, and what zarr-python makes of each family."""
import asyncio
import functools
import inspect

import numpy as np
import pytest

import zcore

zarr = pytest.importorskip("zarr")

from zarr.core.buffer.cpu import Buffer  # noqa: E402
from zarr.testing.store import StoreTests  # noqa: E402

from zcore.stores.zarr_python import ZarrPythonStore  # noqa: E402
from zcore.zarr import Store  # noqa: E402


def run_by_itself(test):
    """Return a test that runs a coroutine function to its end."""
    @functools.wraps(test)
    def run(*args, **keywords):
        asyncio.run(test(*args, **keywords))

    return run


class TestStore(StoreTests[Store, Buffer]):
    """Run zarr-python's tests over a directory."""

    store_cls = Store
    buffer_cls = Buffer

    for _name, _test in vars(StoreTests).items():
        if _name.startswith("test_") and inspect.iscoroutinefunction(_test):
            locals()[_name] = run_by_itself(_test)

    @pytest.fixture
    def store(self, open_kwargs):
        return asyncio.run(Store.open(**open_kwargs))

    @pytest.fixture
    def store_not_open(self, store_kwargs):
        return Store(**store_kwargs)

    @pytest.fixture
    def store_kwargs(self, tmp_path):
        return {"place": str(tmp_path), "read_only": False}

    async def set(self, store, key, value):
        await asyncio.to_thread(store.zcore_store.set, key, value.to_bytes())

    async def get(self, store, key):
        return Buffer.from_bytes(await asyncio.to_thread(store.zcore_store.get, key))

    def test_store_repr(self, store):
        assert repr(store) == f"zcore.zarr.Store({store.zcore_store!r})"

    def test_store_supports_writes(self, store):
        assert store.supports_writes

    def test_store_supports_listing(self, store):
        assert store.supports_listing


VALUES = np.arange(24, dtype="i4").reshape(4, 6)


def test_an_asdf_file_is_read(tmp_path):
    pytest.importorskip("yaml")
    zcore.asdf.write(tmp_path / "x.asdf", {"a": VALUES, "deep": {"b": VALUES[0]}})
    group = zarr.open_group(Store(tmp_path / "x.asdf"), mode="r")
    np.testing.assert_array_equal(group["a"][1:, ::2], VALUES[1:, ::2])
    np.testing.assert_array_equal(group["deep/b"][...], VALUES[0])


def test_a_zmeta_directory_is_read(tmp_path):
    zcore.open(tmp_path / "z", mode="w", shape=(4, 6), chunks=(2, 4), dtype="i4", zarr_format="zmeta")[...] = VALUES
    np.testing.assert_array_equal(zarr.open_array(Store(tmp_path / "z"), mode="r")[...], VALUES)


def test_a_reference_set_is_read(tmp_path):
    zcore.create_array(tmp_path / "z", data=VALUES, chunks=(2, 4))
    refs = zcore.references(tmp_path / "z")
    np.testing.assert_array_equal(zarr.open_array(Store(refs), mode="r")[...], VALUES)


def test_an_archive_is_read_and_refuses_writes(tmp_path):
    with zcore.ZipStore(tmp_path / "x.zip", mode="w") as archive:
        zcore.create_array(archive, data=VALUES)
    store = Store(tmp_path / "x.zip")
    np.testing.assert_array_equal(zarr.open_array(store, mode="r")[...], VALUES)
    with pytest.raises(ValueError, match="read-only"):
        zarr.create_array(store, name="b", shape=(2,), dtype="i4")


def test_what_zarr_writes_zcore_reads():
    place = zcore.MemoryStore()
    array = zarr.create_array(Store(place, read_only=False), shape=(4, 6), chunks=(2, 3), dtype="i4")
    array[...] = VALUES
    np.testing.assert_array_equal(zcore.open(place)[...], VALUES)


@pytest.mark.parametrize("make", [zarr.storage.MemoryStore, None], ids=["memory", "local"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zcore_opens_a_store_of_zarr(tmp_path, make, zarr_format):
    store = make() if make else zarr.storage.LocalStore(tmp_path)
    array = zarr.create_array(store, name="g/a", shape=(4, 6), chunks=(2, 4), dtype="i4", zarr_format=zarr_format)
    array[...] = VALUES
    opened = zcore.open(store, "r+")["g/a"]
    np.testing.assert_array_equal(opened[...], VALUES)
    opened[1:3, 2:5] = -1
    np.testing.assert_array_equal(array[...], opened[...])
    zcore.create_array(store, name="g/new", data=VALUES, zarr_format=zarr_format)
    np.testing.assert_array_equal(zarr.open_group(store)["g/new"][...], VALUES)
    assert sorted(name for name, _ in zcore.open(store)["g"].members()) == ["a", "new"]


def test_a_store_of_zarr_for_reading_refuses_writes():
    store = zarr.storage.MemoryStore()
    zarr.create_array(store, shape=(4,), dtype="i4")
    with pytest.raises(zcore.ReadOnlyError):
        zcore.open(store.with_read_only(True), "r+")[0] = 1
    with pytest.raises(zcore.ReadOnlyError):
        zcore.open(store)[0] = 1


class Failing(zarr.storage.WrapperStore):
    """A store whose chunks cannot be read."""

    async def get(self, key, prototype, byte_range=None):
        if "c/" in key:
            raise ConnectionError("the line is cut")
        return await super().get(key, prototype, byte_range)


def test_a_store_that_raises_is_a_store_error_with_its_cause():
    inner = zarr.storage.MemoryStore()
    zarr.create_array(inner, shape=(4,), dtype="i4")[...] = 1
    with pytest.raises(zcore.StoreError, match="ConnectionError: the line is cut") as caught:
        zcore.open(Failing(inner))[...]
    assert isinstance(caught.value.__cause__, ConnectionError)


class Lying(zarr.storage.WrapperStore):
    """A store that returns less than it was asked for, and says that there is more."""

    async def get(self, key, prototype, byte_range=None):
        found = await super().get(key, prototype, byte_range)
        return found[:-3] if "c/" in key and found is not None else found


def test_a_store_that_returns_too_little_is_found_out():
    inner = zarr.storage.MemoryStore()
    zarr.create_array(inner, shape=(64,), dtype="i4", compressors=None)[...] = 1
    with pytest.raises(zcore.ChunkError):
        zcore.open(Lying(inner))[...]


GRIDS = pytest.mark.parametrize("grid", [{}, {"shards": (64, 64)}], ids=["chunks", "shards"])


@pytest.mark.parametrize("value", [7, b"\x07", bytearray(1), "x"])
def test_values_that_are_no_buffers_are_refused(value):
    """An integer has a `to_bytes` as well, and would become a chunk that was never written."""
    class Other(zarr.storage.WrapperStore):
        async def get(self, key, prototype, byte_range=None):
            return value if key == "c/0" else await super().get(key, prototype, byte_range)

    memory = zarr.storage.MemoryStore()
    zarr.create_array(memory, data=np.zeros(1, "u1"), compressors=None)
    array = zcore.open(Other(memory), mode="r")
    with pytest.raises(zcore.StoreError, match=f"expected a Buffer of zarr-python, found {type(value).__name__}"):
        array[:]


def made(**keywords):
    """Return a store of zarr-python with an array of 64 x 64 ones."""
    store = zarr.storage.MemoryStore()
    zarr.create_array(store, shape=(64, 64), chunks=(8, 8), dtype="i4", **keywords)[...] = 1
    return store


@GRIDS
@pytest.mark.parametrize("size", [-5, 0, 3, 2**62, 2**70])
def test_sizes_that_are_a_lie_are_found_out_or_not_needed(grid, size):
    class Liar(zarr.storage.WrapperStore):
        async def getsize(self, key):
            return size

    array = zcore.open(Liar(made(**grid)))
    try:
        found = array[...], array[3:5, 60]
    except zcore.ZcoreError as error:
        assert isinstance(error, (zcore.ChunkError, zcore.StoreError))
    else:
        assert (found[0] == 1).all() and found[1].tolist() == [1, 1]


@GRIDS
@pytest.mark.parametrize("change", [lambda value: value + b"x" * 70000, lambda value: value[:-1], lambda value: b""],
                         ids=["longer", "shorter", "empty"])
def test_values_of_another_length_than_asked_for_are_an_error_of_the_read(grid, change):
    class Liar(zarr.storage.WrapperStore):
        async def get(self, key, prototype, byte_range=None):
            found = await super().get(key, prototype, byte_range)
            return found if found is None or "c/" not in key else prototype.buffer.from_bytes(change(found.to_bytes()))

    array = zcore.open(Liar(made(compressors=None, **grid)))
    for selection in (..., (3, 3)):
        with pytest.raises((zcore.ChunkError, zcore.StoreError), match=r"c/\d/\d"):
            array[selection]


def test_a_store_that_raises_in_the_middle_of_a_write_keeps_the_other_chunks():
    class Cut(zarr.storage.WrapperStore):
        async def set(self, key, value):
            if key == "c/1":
                raise ConnectionError("the line is cut")
            await super().set(key, value)

    inner = zarr.storage.MemoryStore()
    zarr.create_array(inner, shape=(6,), chunks=(2,), dtype="i4")[...] = 1
    array = zcore.open(Cut(inner), "r+")
    with pytest.raises(zcore.StoreError, match="the line is cut"):
        array[1:5] = 2
    found = zcore.open(inner)[...]
    assert found[[0, 5]].tolist() == [1, 1] and found[2:4].tolist() == [1, 1]
    assert found[1] in (1, 2) and found[4] in (1, 2)


def test_a_closed_event_loop_is_an_error_of_the_call():
    loop = asyncio.new_event_loop()
    loop.close()
    with pytest.raises(zcore.StoreError, match="RuntimeError: Loop is not running"):
        zcore.open(ZarrPythonStore(made(), loop=loop))


def test_a_loop_that_was_closed_is_not_needed_by_the_next_one():
    array = zarr.open_array(made(), mode="r+")

    async def element():
        return await array._async_array.getitem((3, 3))

    with zarr.config.set({"codec_pipeline.path": "zcore.zarr.ZcoreCodecPipeline"}):
        array = zarr.open_array(array.store, mode="r+")
        assert asyncio.run(element()) == 1 and asyncio.run(element()) == 1 and array[3, 3] == 1
