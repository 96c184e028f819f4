"""`zcore.zarr.ZcoreCodecPipeline`: the elements are NumPy's, none is lost, and zarr-python does what zcore cannot."""
import asyncio
import contextlib
import itertools
import os
import pickle
import shutil
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zcore
import zcore.config
from tests.at_once import at_once
from tests.each import each
from zcore.kernel.select.batches import coords_of, joined

zarr = pytest.importorskip("zarr")

from zarr.abc.codec import BytesBytesCodec  # noqa: E402
from zarr.storage import LocalStore, MemoryStore, WrapperStore  # noqa: E402

import zcore.zarr as bridge  # noqa: E402

OURS = "zcore.zarr.ZcoreCodecPipeline"
THEIRS = "zarr.core.codec_pipeline.BatchedCodecPipeline"


@pytest.fixture(autouse=True)
def pipeline():
    with zarr.config.set({"codec_pipeline.path": OURS}):
        yield


@pytest.fixture
def by_zarr(monkeypatch):
    """The names of what zarr-python's own pipeline was asked to do."""
    asked = []
    for name in ("read", "write"):
        original = getattr(bridge.BatchedCodecPipeline, name)

        def spy(self, *args, _name=name, _original=original, **keywords):
            asked.append(_name)
            return _original(self, *args, **keywords)

        monkeypatch.setattr(bridge.BatchedCodecPipeline, name, spy)
    return asked


def values_of(dtype, shape):
    rng = np.random.default_rng(7)
    dtype = np.dtype(dtype)
    if dtype.kind in "iufcMmb":
        return rng.integers(0, 100, shape).astype(dtype)
    if dtype.names:
        found = np.zeros(shape, dtype)
        for name in dtype.names:
            found[name] = rng.integers(0, 100, shape)
        return found
    return rng.integers(0, 10**6, shape).astype("U").astype(dtype)


SELECTIONS = [
    ..., np.s_[3:17, 5], np.s_[::3, ::4], np.s_[2], np.s_[5:6, 7:30:5], np.s_[22, 30], np.s_[-3:, :0], np.s_[7:7],
]
ORTHOGONAL = [
    ([1, 5, 20], slice(2, 20)), ([3, 1, 3], [0, 30]), (5, [1, 2]), (np.arange(23) % 2 == 0, slice(None, None, 7)),
    (slice(4, 20, 6), 3), ([0], [0]),
]
SHAPE = (23, 31)


@pytest.mark.thinned(2, "make_store", "shards", "dtype")
@pytest.mark.filterwarnings("ignore:.*does not have a Zarr V3 specification", "ignore:.*byte order")
@pytest.mark.parametrize("make_store", [MemoryStore, LocalStore], ids=["memory", "local"])
@pytest.mark.parametrize("zarr_format, shards", [(2, None), (3, None), (3, (8, 12))])
@pytest.mark.parametrize("dtype", [
    "i4", "U5", [("a", "i4"), ("b", "f8")], str,
    *[pytest.param(dtype, marks=pytest.mark.slow) for dtype in (">f8", "M8[s]", "c16", "?")]], ids=str)
def test_all_selections_are_those_of_numpy(make_store, zarr_format, shards, dtype, tmp_path, by_zarr):
    if isinstance(dtype, list) and shards:
        pytest.skip("zarr-python has no shards of structures")
    store = make_store(*[tmp_path] if make_store is LocalStore else [])
    array = zarr.create_array(store, name="g/a", shape=SHAPE, chunks=(4, 6), shards=shards, dtype=dtype,
                              zarr_format=zarr_format)
    expected = values_of("U6" if dtype is str else dtype, SHAPE)
    array[...] = expected

    def check():
        for selection in SELECTIONS:
            np.testing.assert_array_equal(np.asarray(array[selection]), expected[selection])
        for selection in ORTHOGONAL:
            lists = [np.arange(n)[part] if isinstance(part, slice) else np.flatnonzero(part)
                     if isinstance(part, np.ndarray) else np.atleast_1d(part)
                     for part, n in zip(selection, SHAPE, strict=True)]
            dropped = tuple([d for d, part in enumerate(selection) if isinstance(part, int)])
            np.testing.assert_array_equal(array.oindex[selection], expected[np.ix_(*lists)].squeeze(dropped))
        points = tuple(np.random.default_rng(1).integers(0, SHAPE, (40, 2)).T)
        np.testing.assert_array_equal(array.vindex[points], expected[points])
        mask = np.zeros(SHAPE, bool)
        mask[::4, 1::5] = True
        np.testing.assert_array_equal(array.vindex[mask], expected[mask])
        np.testing.assert_array_equal(array.blocks[1, 2:4], expected[
            tuple([slice(start * step, stop * step) for (start, stop), step
                   in zip(((1, 2), (2, 4)), shards or (4, 6), strict=True)])])

    check()
    others = expected[::-1].copy()
    for selection in (np.s_[3:9, 4:20], np.s_[::5, 3], np.s_[0], np.s_[20:, 25:]):
        array[selection] = others[selection]
        expected[selection] = others[selection]
    for rows, columns in (([1, 7, 20], slice(2, 9)), (4, [2, 9])):
        array.oindex[rows, columns] = others[rows, columns]
        expected[rows, columns] = others[rows, columns]
    array.vindex[[1, 2, 22], [3, 4, 30]] = others[[1, 2, 22], [3, 4, 30]]
    expected[[1, 2, 22], [3, 4, 30]] = others[[1, 2, 22], [3, 4, 30]]
    array[8:12, :5] = others[0, 0]
    expected[8:12, :5] = others[0, 0]
    check()
    assert not by_zarr
    with zarr.config.set({"codec_pipeline.path": THEIRS}):
        np.testing.assert_array_equal(zarr.open_array(store, path="g/a")[...], expected)


def test_an_array_without_dimensions():
    array = zarr.create_array(MemoryStore(), shape=(), dtype="f4")
    array[...] = 3
    assert array[()] == 3


def test_an_array_that_was_resized(by_zarr):
    array = zarr.create_array(MemoryStore(), shape=(5,), chunks=(2,), dtype="i4", fill_value=9)
    array[...] = 1
    array.resize((11,))
    array[7:] = 2
    array.append(np.array([3, 3]))
    np.testing.assert_array_equal(array[...], [1] * 5 + [9, 9] + [2] * 4 + [3, 3])
    array.resize((3,))
    np.testing.assert_array_equal(array[...], [1] * 3)
    assert not by_zarr


def test_empty_chunks_are_written_where_the_configuration_asks():
    for asked in (True, False):
        store = MemoryStore()
        array = zarr.create_array(store, shape=(4,), chunks=(2,), dtype="i4", config={"write_empty_chunks": asked})
        array[...] = 0
        assert ("c/0" in store._store_dict) is asked
        array[:2] = 1
        array[:2] = 0
        assert ("c/0" in store._store_dict) is asked


def test_missing_chunks_are_reported_where_the_configuration_asks():
    array = zarr.create_array(MemoryStore(), shape=(6,), chunks=(2,), dtype="i4")
    array[2:4] = 1
    pieces = [(array.store_path / f"c/{i}", _spec(array, read_missing_chunks=False), (slice(0, 2),),
               (slice(2 * i, 2 * i + 2),), True) for i in range(3)]
    out = pieces[0][1].prototype.nd_buffer.create(shape=(6,), dtype=np.dtype("i4"))
    found = asyncio.run(_pipeline(array).read(pieces, out))
    assert [status["status"] for status in found] == ["missing", "present", "missing"]
    np.testing.assert_array_equal(out.as_numpy_array(), [0, 0, 1, 1, 0, 0])


def _pipeline(array):
    return array._async_array.codec_pipeline


def _spec(array, **config):
    class Config:
        order = "C"
        write_empty_chunks = False

    for name, value in config.items():
        setattr(Config, name, value)
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import default_buffer_prototype

    spec = ArraySpec(array.chunks, array.metadata.data_type, array.fill_value, Config, default_buffer_prototype())
    return spec


N, CHUNK, PIECE = 100_000, 701, 100


def _write_pieces(array, first, step):
    for start in range(first * PIECE, N, step * PIECE):
        array[start:start + PIECE] = np.arange(start, start + PIECE) + 1


def _write_in_a_process(path, first, step, lock):
    os.environ["ZCORE_LOCK"] = lock
    zarr.config.set({"codec_pipeline.path": OURS})
    _write_pieces(zarr.open_array(path, mode="r+") if first % 2 else zcore.open(path, "r+"), first, step)


def test_threads_that_share_chunks_lose_nothing():
    array = zarr.create_array(MemoryStore(), shape=(N,), chunks=(CHUNK,), dtype="i8")
    at_once(threading.Thread(target=_write_pieces, args=(array, i, 6)) for i in range(6))
    np.testing.assert_array_equal(array[...], np.arange(N) + 1)


@pytest.mark.parametrize("lock", ["on", "file"])
def test_processes_of_zarr_and_of_zcore_that_share_chunks_lose_nothing(tmp_path, forks, lock):
    array = zarr.create_array(tmp_path, shape=(N,), chunks=(CHUNK,), dtype="i8")
    children = [forks.Process(target=_write_in_a_process, args=(str(tmp_path), i, 4, lock)) for i in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0] * 4
    np.testing.assert_array_equal(array[...], np.arange(N) + 1)


class Inverted(BytesBytesCodec):
    """A codec that zcore has never heard of."""

    is_fixed_size = True

    @classmethod
    def from_dict(cls, data):
        return cls()

    def to_dict(self):
        return {"name": "test_inverted"}

    def compute_encoded_size(self, input_byte_length, chunk_spec):
        return input_byte_length

    async def _decode_single(self, chunk_bytes, chunk_spec):
        return chunk_spec.prototype.buffer.from_bytes(bytes(~np.frombuffer(chunk_bytes.to_bytes(), "u1")))

    _encode_single = _decode_single


@pytest.mark.parametrize("lock", ["on", "file"])
def test_a_codec_that_zcore_does_not_have_is_left_to_zarr_under_the_lock(tmp_path, by_zarr, monkeypatch, lock):
    from zarr.registry import register_codec

    monkeypatch.setattr(zcore.config, "_lock", lock)
    register_codec("test_inverted", Inverted)
    array = zarr.create_array(tmp_path, shape=(2000,), chunks=(701,), dtype="i4", compressors=[Inverted()])

    def write(first):
        for start in range(first * 20, 2000, 80):
            array[start:start + 20] = np.arange(start, start + 20) + 1

    at_once(threading.Thread(target=write, args=(i,)) for i in range(4))
    np.testing.assert_array_equal(array[...], np.arange(2000) + 1)
    assert {"read", "write"} <= set(by_zarr)


def test_a_buffer_that_is_no_ndarray_is_left_to_zarr(by_zarr, monkeypatch):
    array = zarr.create_array(MemoryStore(), shape=(4,), chunks=(2,), dtype="i4")
    array[...] = [1, 2, 3, 4]

    class Other(np.ndarray):
        """Stands for the memory of another device."""

    monkeypatch.setattr(bridge.np, "ndarray", Other)
    np.testing.assert_array_equal(array[1:], [2, 3, 4])
    monkeypatch.undo()


def test_a_store_for_reading_refuses_as_zarr_does():
    store = MemoryStore()
    zarr.create_array(store, shape=(4,), dtype="i4")
    array = zarr.open_array(store.with_read_only(True), mode="r")
    with pytest.raises(ValueError, match="read-only"):
        array[...] = 1


@pytest.mark.parametrize("shape", [(3, 4), (5, 4), (4, 3), (2, 4, 4)])
def test_a_value_of_another_shape_is_refused(shape):
    array = zarr.create_array(MemoryStore(), shape=(4, 4), chunks=(2, 2), dtype="i4")
    with pytest.raises(ValueError):
        array[...] = np.ones(shape, "i4")
    assert not array[...].any()


def test_a_value_is_broadcast_as_numpy_does():
    array = zarr.create_array(MemoryStore(), shape=(4, 4), chunks=(2, 2), dtype="i4")
    array[...] = np.arange(4, dtype="i4")[None]
    np.testing.assert_array_equal(array[...], np.tile(np.arange(4), (4, 1)))


def test_a_damaged_chunk_is_an_error_that_names_it(tmp_path):
    array = zarr.create_array(tmp_path, shape=(4000,), chunks=(1000,), dtype="i4")
    array[...] = np.arange(4000)
    (tmp_path / "c" / "2").write_bytes(b"damage")
    with pytest.raises(zcore.ChunkError, match="c/2"):
        array[...]
    assert array[0] == 0


class Failing(WrapperStore):
    async def get(self, key, prototype, byte_range=None):
        if key.endswith("c/1"):
            raise ConnectionError("the line is cut")
        return await super().get(key, prototype, byte_range)


def test_a_store_that_raises_in_the_middle_loses_nothing():
    inner = MemoryStore()
    zarr.create_array(inner, shape=(6,), chunks=(2,), dtype="i4")[...] = [1, 2, 3, 4, 5, 6]
    array = zarr.open_array(Failing(inner), mode="r+")
    with pytest.raises(zcore.StoreError, match="the line is cut"):
        array[3] = 9
    np.testing.assert_array_equal(zarr.open_array(inner)[...], [1, 2, 3, 4, 5, 6])


@pytest.mark.parametrize("again", [lambda array: array, lambda array: pickle.loads(pickle.dumps(array))],
                         ids=["handle", "pickle"])
def test_an_array_that_is_gone_is_not_invented(tmp_path, again):
    array = zarr.create_array(tmp_path / "a", shape=(6,), chunks=(2,), dtype="i4", fill_value=5)
    array[...] = 1
    array = again(array)
    shutil.rmtree(tmp_path / "a")
    with pytest.raises(FileNotFoundError):
        array[...]
    with pytest.raises(FileNotFoundError):
        array[1] = 3
    assert not (tmp_path / "a").exists()


def test_an_array_whose_document_is_known_from_a_copy_alone_is_read(by_zarr):
    store = MemoryStore()
    array = zarr.create_array(store, shape=(6,), chunks=(2,), dtype="i4", fill_value=5)
    array[:4] = 1
    array = pickle.loads(pickle.dumps(array))
    del store._store_dict["zarr.json"]
    array = type(array)(type(array._async_array)(metadata=array.metadata, store_path=zarr.storage.StorePath(store)))
    np.testing.assert_array_equal(array[...], [1, 1, 1, 1, 5, 5])
    assert by_zarr == ["read"]


def test_a_pickle_reads_and_writes(tmp_path):
    array = zarr.create_array(tmp_path, shape=(6,), chunks=(2,), dtype="i4")
    array[...] = 1
    again = pickle.loads(pickle.dumps(array))
    again[2] = 7
    assert array[2] == 7 and _pipeline(again) == _pipeline(array)


def test_the_loop_of_the_caller(tmp_path):
    """Coroutines of zarr-python may run on any loop, and its store then answers there."""
    array = zarr.create_array(MemoryStore(), shape=(6,), chunks=(2,), dtype="i4")

    async def use():
        await array._async_array.setitem(slice(1, 5), np.array([1, 2, 3, 4], "i4"))
        return await array._async_array.getitem(slice(None))

    for _ in range(2):
        np.testing.assert_array_equal(asyncio.run(use()), [0, 1, 2, 3, 4, 0])
    np.testing.assert_array_equal(array[...], [0, 1, 2, 3, 4, 0])


# Pieces that are put together

def pieces_of(selection, shape, chunks):
    """Return the pieces of slices as zarr-python cuts them."""
    per_dim = []
    for part, length, chunk in zip(selection, shape, chunks, strict=True):
        indices, found = range(*part.indices(length)), {}
        for position, index in enumerate(indices):
            found.setdefault(index // chunk, []).append((position, index % chunk))
        per_dim.append([(coord, slice(items[0][1], items[-1][1] + 1, part.step),
                         slice(items[0][0], items[-1][0] + 1)) for coord, items in found.items()])
    return [tuple(zip(*pieces, strict=True)) for pieces in itertools.product(*per_dim)]


def request_of(pieces, chunks):
    """Return the request for pieces of a grid of equal chunks."""
    batch = [(None, None, chunk, out) for _, chunk, out in pieces]
    return bridge.request_of(batch, np.array([coords for coords, _, _ in pieces]), chunks)


slices = st.tuples(st.integers(0, 19), st.integers(1, 20), st.integers(1, 5)).map(
    lambda found: slice(found[0], max(found[0] + 1, found[1]), found[2]))


@given(st.lists(st.tuples(slices, st.integers(1, 7)), min_size=1, max_size=3), st.randoms())
def test_pieces_are_put_together_to_the_selection_they_were_cut_from(dimensions, random):
    shape, chunks = (20,) * len(dimensions), [chunk for _, chunk in dimensions]
    selection = tuple([part for part, _ in dimensions])
    pieces = pieces_of(selection, shape, chunks)
    random.shuffle(pieces)
    request = request_of(pieces, chunks)
    whole = np.arange(np.prod(shape)).reshape(shape)
    result = np.full(whole[selection].shape, -1)
    way = np.ix_ if request.way == "orthogonal" else lambda *parts: parts
    result[way(*request.where)] = whole[way(*request.selection)]
    np.testing.assert_array_equal(result, whole[selection])


def with_last(chunk=None, out=None):
    """Return a function that gives the last of some pieces another index."""
    return lambda pieces: [*pieces[:-1], (pieces[-1][0], chunk or pieces[-1][1], out or pieces[-1][2])]


@each("spoil", [
    lambda pieces: pieces[:-1], lambda pieces: [*pieces, pieces[0]], lambda pieces: [*pieces[:-1], pieces[0]],
    with_last(chunk=(slice(0, 1), slice(0, 1))), with_last(out=(slice(4, 6), slice(2, 5))),
    with_last(chunk=(slice(0, 2),)), with_last(out=(slice(4, 6), slice(3, 6), 0)), with_last(chunk=(slice(0, 2), 1)),
], ids=["one is missing", "one stands twice", "one instead of another", "one is smaller", "one goes elsewhere",
        "one has fewer dimensions", "one has more in the result", "one has an integer"])
def test_pieces_that_make_no_selection_are_refused(spoil):
    pieces = pieces_of((slice(0, 6, 1), slice(0, 6, 1)), (6, 6), (2, 3))
    assert request_of(pieces, (2, 3)) is not None
    assert request_of(spoil(pieces), (2, 3)) is None


@each("index", [
    slice(0, 3), slice(-1, 1), slice(None, 2), slice(2, 0, -1), slice(0, 2, -1), 2, -1, np.array([0, 2]),
    np.array([-1, 0])], ids=str)
def test_a_piece_that_reaches_out_of_its_chunk_is_refused(index):
    """It would be an element of another chunk in the whole selection."""
    out = () if isinstance(index, int) else (slice(0, 2),)
    assert request_of([((1,), (1,) if isinstance(index, int) else (slice(0, 2),), out)], (2,)) is not None
    assert request_of([((1,), (index,), out)], (2,)) is None


@pytest.mark.parametrize("index", [([0, 2],), ([-1, 0],), ([0, 1, 1],), (0,)], ids=str)
def test_points_that_do_not_lie_in_their_chunk_are_refused(index):
    where = np.arange(2)
    pieces = [((2, 1), (np.array([0, 1]), np.array([1, 2])), where)]
    found = request_of(pieces, (2, 3))
    assert [part.tolist() for part in found.selection] == [[4, 5], [4, 5]]
    assert request_of([((2, 1), (np.array(*index), np.array([1, 2])), where)], (2, 3)) is None


@pytest.mark.parametrize("separator", "/.")
def test_coordinates_are_those_of_the_keys(separator):
    coords = np.random.default_rng(0).integers(0, 2**50, (20, 3))
    keys = [f"ä/c{separator}{separator.join(map(str, row))}" for row in coords.tolist()]
    np.testing.assert_array_equal(found_coords(keys, f"ä/c{separator}", separator, 3), coords)
    assert found_coords(["a/c"], "a/c", separator, 0).shape == (1, 0)


@each("key", ["b/1/2", "a/1", "a/1/2/3", "a/1/2/", "a/1/", "a//2", "a/1.2", "a/01/2", "a/-1/2",
                                 "a/+1/2", "a/1/2 ", "a/1/1_0", "a/1/\u0663", "a/1/99999999999999999999", "a/",
                                 "", "a"])
def test_a_key_that_is_none_of_the_array_is_refused(key):
    assert found_coords(["a/1/2", key], "a/", "/", 2) is None


def found_coords(keys, prefix, separator, ndim):
    return coords_of([(SimpleNamespace(path=key),) for key in keys], prefix, separator, ndim)


@each("parts, grid, expected", [
    ([(0, slice(0, 4)), (1, slice(0, 4)), (2, slice(0, 1))], 4, slice(0, 9)),
    ([(5, slice(3, 4, 7))], 4, slice(23, 24, 7)),
    ([(0, slice(1, 4, 3)), (1, slice(0, 4, 3))], 4, slice(1, 8, 3)),
    ([(0, slice(1, 4, 2)), (1, slice(0, 4, 2))], 4, [1, 3, 4, 6]),
    ([(0, slice(0, 4)), (2, slice(0, 4))], 4, [0, 1, 2, 3, 8, 9, 10, 11]),
    ([(0, slice(0, 2)), (1, slice(0, 2, 2))], 2, None),
    ([(3, 1)], 4, 13), ([(3, np.int64(1))], 4, 13), ([(0, 1), (1, 1)], 4, None), ([(0, 4)], 4, None),
    ([(0, np.array([[3], [1]])), (2, np.array([[0]]))], 4, [3, 1, 8]),
    ([(1, np.array([False, True, True, False]))], 4, [5, 6]),
    ([(1, slice(0, 3)), (2, slice(0, 2))], [(0, 1), (1, 3), (4, 2)].__getitem__, slice(1, 6)),
    ([(1, slice(0, 4)), (2, slice(0, 2))], [(0, 1), (1, 3), (4, 2)].__getitem__, None),
    ([(2**40, slice(0, 1))], 2**40, None), ([(2**61, slice(0, 1))], 4, None), ([(0, slice(0, 1, 2**62))], 4, None),
    ([(2**30, slice(1, 2))], 2**30, slice(2**60 + 1, 2**60 + 2)), ([(0, "a")], 4, None),
    ([(0, slice(0, 2**70))], 4, None),
])
def test_parts_of_a_dimension_are_one_index_or_none(parts, grid, expected):
    parts = [(coord, index, index) for coord, index in parts]
    found = joined(parts, 1, grid)
    if isinstance(expected, list):
        assert found.tolist() == expected
    else:
        assert type(found) is type(expected)
        if isinstance(expected, slice):
            assert range(2**62)[found] == range(2**62)[expected]
        else:
            assert found == expected


def test_a_write_that_is_cancelled_ends_before_its_value_is_free(tmp_path):
    """The caller may use the memory of the value again when the task is over."""
    array = zarr.create_array(tmp_path, shape=(64, 4096), chunks=(1, 64), dtype="i4")
    value = np.full(array.shape, 5, "i4")

    async def use():
        task = asyncio.create_task(array._async_array.setitem(..., value))
        await asyncio.sleep(0.005)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        value[...] = 6

    asyncio.run(use())
    assert set(np.unique(array[...])) <= {0, 5}


class OnTheLoop:
    """Lets an array be read on zarr-python's loop alone."""

    def __init__(self, monkeypatch):
        self._monkeypatch = monkeypatch

    def __enter__(self):
        def awaited(read):
            raise AssertionError("read in a thread")

        self._monkeypatch.setattr(zcore.zarr, "awaited", awaited)

    def __exit__(self, *exc_info):
        self._monkeypatch.undo()


@pytest.mark.parametrize("keywords", [{}, {"shards": (16, 16)}, {"zarr_format": 2}, {"shards": (16, 16), "filters": [
    zarr.codecs.TransposeCodec(order=(1, 0))]}], ids=["chunks", "shards", "v2", "transposed shards"])
def test_a_few_small_chunks_are_read_on_the_loop(keywords, monkeypatch):
    store = zarr.storage.MemoryStore()
    numbers = np.arange(40 * 50, dtype="i4").reshape(40, 50)
    z = zarr.create_array(store, shape=(40, 50), chunks=(4, 4), dtype="i4", fill_value=-1, **keywords)
    z[:20] = numbers[:20]
    numbers[20:] = -1
    selections = [np.s_[3, 7], np.s_[4:8, 4:8], np.s_[2:7, 2:7], np.s_[18:22, 1:9:3], np.s_[30:33, 30]]
    for selection in selections:
        with OnTheLoop(monkeypatch):
            np.testing.assert_array_equal(z[selection], numbers[selection])
    with OnTheLoop(monkeypatch):
        np.testing.assert_array_equal(z.oindex[[1, 3, 22], 5:7], numbers[[1, 3, 22], 5:7])
        np.testing.assert_array_equal(z.vindex[[1, 3, 22], [0, 9, 4]], numbers[[1, 3, 22], [0, 9, 4]])
    np.testing.assert_array_equal(z[...], numbers)


def test_what_goes_wrong_on_the_loop_is_the_error_of_a_thread(monkeypatch):
    store = zarr.storage.MemoryStore()
    z = zarr.create_array(store, shape=(8,), chunks=(4,), dtype="i4", compressors=zarr.codecs.GzipCodec())
    z[...] = 1
    assert z[0] == 1
    store._store_dict["c/0"] = zarr.core.buffer.cpu.Buffer.from_bytes(b"no gzip")
    with pytest.raises(Exception, match="c/0"):
        z[0]
    assert z[5] == 1

    async def get(self, key, prototype, byte_range=None):
        raise OSError("no answer")

    monkeypatch.setattr(zarr.storage.MemoryStore, "get", get)
    with pytest.raises(Exception, match="no answer"):
        z[5]


def test_an_array_that_grew_elsewhere_is_read_by_its_new_shape():
    store = zarr.storage.MemoryStore()
    z = zarr.create_array(store, shape=(8,), chunks=(4,), dtype="i4")
    z[...] = 1
    assert z[1] == 1
    zarr.open_array(store).append(np.full(4, 2, "i4"))
    assert z[7] == 1
    assert zarr.open_array(store)[8:].tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize("answer", [5, True, b"\5"])
def test_a_store_whose_answer_is_no_buffer(answer, monkeypatch):
    store = zarr.storage.MemoryStore()
    z = zarr.create_array(store, shape=(4,), chunks=(1,), dtype="u1", compressors=None)
    z[...] = 1
    assert z[0] == 1
    get = zarr.storage.MemoryStore.get

    async def other(self, key, prototype=None, byte_range=None):
        return answer if key.startswith("c/") else await get(self, key, prototype, byte_range)

    monkeypatch.setattr(zarr.storage.MemoryStore, "get", other)
    with pytest.raises(zcore.StoreError, match="expected a Buffer"):
        z[1]
