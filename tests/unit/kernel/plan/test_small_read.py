"""Small reads: what a handle has read twice is read without the engine, and reads the same."""
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import zcore
from tests.at_once import at_once
from tests.descriptors import descriptors, needs_a_list
from zcore import config
from zcore.errors import ChunkError, NodeNotFoundError, SelectionError, StoreError

NUMBERS = np.arange(60, dtype="i4").reshape(10, 6) + 1


@pytest.fixture(autouse=True)
def _old_documents(monkeypatch):
    monkeypatch.setattr("zcore.engine.views.TRUSTED_AGE_NS", -1)


def warm(array):
    """Return the array after two reads, when it is ready for small ones."""
    for _ in range(2):
        array[(0,) * array.ndim]
    return array


def made(path, values=NUMBERS, chunks=(4, 4), **keywords):
    """Return a handle of a new array, ready for small reads."""
    zcore.create_array(str(path), shape=values.shape, chunks=chunks, dtype=values.dtype, fill_value=0,
                       **keywords)[...] = values
    return warm(zcore.open(str(path), mode="r+"))


def small(array, selection):
    """Return what the small read gives, None if it leaves the selection to the engine."""
    return array._binding.small.get(selection)


def test_an_array_is_longer_than_an_index_of_python_on_any_machine(tmp_path):
    zcore.create_array(tmp_path, shape=2**33 + 10, chunks=16, dtype="i4", fill_value=-1)
    array = warm(zcore.open(tmp_path, mode="r+"))
    for i in (5, 2**31, 2**32 + 5, 2**33 + 9):
        array[i] = i % 1000
    for i in (5, 2**31, 2**32 + 5, 2**33 + 9, -1):
        expected = i % (2**33 + 10) % 1000
        assert array[i] == array[i:i + 3 if i >= 0 else None][0] == array[[i]] == array.oindex[[i]] == expected
    assert array[5:2**32 + 6:2**32].tolist() == [5, (2**32 + 5) % 1000]
    assert array[-3:].tolist() == [-1, -1, (2**33 + 9) % 1000]


SELECTIONS = [
    (0, 0), (9, 5), (-1, -6), (np.int64(3), np.uint8(2)), 4, (4,), (slice(None), 3), (slice(2, 9, 3), slice(None)),
    slice(None, None, -1), (slice(8, 0, -3), slice(-1, -4, -1)), (3, slice(1, 5)), (slice(1, 2, 2**70), 0), (),
    slice(3), (slice(np.int64(1), np.int32(7)), slice(None, -1)), slice(-100, 100),
]
LAYOUTS = [
    {}, {"shards": (8, 8)}, {"shards": (12, 8), "compressors": None}, {"order": "F", "zarr_format": 2},
    {"compressors": None},
    {"zarr_format": "zmeta"}, {"chunk_key_encoding": {"name": "v2", "separator": "."}},
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_elements_and_types_are_those_of_numpy(tmp_path, layout):
    array = made(tmp_path / "a", **layout)
    for selection in SELECTIONS:
        found, expected = small(array, selection), NUMBERS[selection]
        assert type(found) is type(expected), selection
        assert found.dtype == expected.dtype and found.shape == expected.shape
        assert np.array_equal(found, expected), selection
        assert np.array_equal(array[selection], expected)


@pytest.mark.parametrize("dtype", [">f8", "?", "c16", "S3", "<U2", "V5", "M8[s]", "u1"])
def test_types(tmp_path, dtype):
    values = np.arange(24).astype("S3" if dtype[0] in "SV" else dtype).reshape(6, 4)
    values = values.astype(dtype)
    array = made(tmp_path / "a", values, chunks=(4, 3), zarr_format=2)
    for selection in ((5, 3), (slice(1, 6, 2), slice(None)), (0, slice(1, 2))):
        found = small(array, selection)
        assert found.dtype == values[selection].dtype and type(found) is type(values[selection])
        assert np.array_equal(found, values[selection])


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("cache", [0, 10**6])
def test_text_that_is_none_is_left_to_the_engine(tmp_path, order, cache):
    """Which raises the error."""
    codes = np.array([[97, 0x10FFFF], [0x110000, 98], [99, 0x1000061]], f"{order}u4")
    array = zcore.create_array(tmp_path, shape=(3, 2), dtype=f"{order}U1", zarr_format=2, chunks=(1, 2), cache=cache,
                               compressors=None)
    array[...] = "x"
    for i, row in enumerate(codes):
        array.store.set(f"{i}.0", row.tobytes())
    warm(array)
    for _ in range(2):
        for selection, is_text in (
                ((0, 1), True), ((0, 0), True), (0, True), ((1, 0), False), ((1, 1), True), (1, False),
                (slice(0, 2), False), ((2, slice(1, 2)), False), ((2, 0), True)):
            assert (small(array, selection) is not None) == is_text
            if is_text:
                assert np.all(array[selection] == codes.view(array.dtype)[selection])
            else:
                with pytest.raises(zcore.ChunkError, match="text has the code point"):
                    array[selection]


@pytest.mark.parametrize("selection", [
    ..., (..., 0), None, True, [1, 2], (0, [1]), np.array(1), (0, 0, 0), (10, 0), (-11, 0), slice(5, 5), (2**70, 0),
    (0, True), 1.0, "x", slice(True, 4), slice(1.0, 2), np.True_])
def test_everything_else_is_left_to_the_engine(tmp_path, selection):
    array = made(tmp_path / "a")
    assert small(array, selection) is None
    try:
        expected = NUMBERS[selection]
    except Exception as exc:
        with pytest.raises(type(exc)):
            array[selection]
    else:
        assert np.array_equal(array[selection], expected)


def test_a_step_of_zero_is_an_error(tmp_path):
    array = made(tmp_path / "a")
    with pytest.raises(ValueError, match="step cannot be zero"):
        array[::0]
    array = made(tmp_path / "b", np.zeros((3, 4), "i2"), chunks=(2, 2))
    with pytest.raises(IndexError, match="boolean index"):     # of two mistakes, NumPy finds this one first
        array[::0, [True] * 5]


def test_large_results_are_left_to_the_engine(tmp_path):
    values = np.arange(600_000, dtype="i2")
    array = made(tmp_path / "a", values, chunks=(100,))
    assert small(array, slice(None)) is None
    assert np.array_equal(array[...], values)


def test_many_chunks_are_left_to_the_threads_of_the_engine(tmp_path):
    values = np.arange(3 * 2**14, dtype="i4")
    array = made(tmp_path / "a", values, chunks=(2**14,))
    assert np.array_equal(small(array, slice(5, 2**14)), values[5:2**14])
    assert small(array, slice(5, 2**14 + 1)) is None


def test_absent_chunks_have_the_fill_value(tmp_path):
    zcore.create_array(str(tmp_path / "a"), shape=(9,), chunks=(2,), dtype="i2", fill_value=7)
    assert np.array_equal(small(warm(zcore.open(str(tmp_path / "a"))), slice(1, 5)), [7] * 4)


def test_an_absent_chunk_may_be_an_error(tmp_path):
    zcore.create_array(str(tmp_path / "a"), shape=(4,), chunks=(2,), dtype="i2")[:2] = 1
    array = warm(zcore.open(str(tmp_path / "a"), missing="raise"))
    assert array[1] == 1
    with pytest.raises(ChunkError, match="c/1"):
        array[2]


def test_a_damaged_chunk_is_an_error_with_its_key(tmp_path):
    array = made(tmp_path / "a")
    path = tmp_path / "a" / "c" / "2" / "1"
    path.write_bytes(path.read_bytes()[:-1])
    assert array[0, 0] == 1
    with pytest.raises(ChunkError, match="a: c/2/1: ") as error:
        array[9, 5:]
    assert error.value.chunk_coords == (2, 1)


@pytest.mark.parametrize("value", [2, 255])
def test_any_byte_but_zero_is_true(tmp_path, value):
    array = zcore.create_array(str(tmp_path / "a"), shape=(3,), chunks=(3,), dtype="?", compressors=None, zarr_format=2)
    array[...] = [1, 0, 1]
    (tmp_path / "a" / "0").write_bytes(bytes([value, 0, 1]))
    array = warm(zcore.open(str(tmp_path / "a")))
    assert small(array, slice(None)).view("u1").tolist() == [1, 0, 1]
    assert np.array([small(array, 0)]).view("u1") == 1


def test_chunks_that_others_write_are_seen(tmp_path):
    array = made(tmp_path / "a")
    zcore.open(str(tmp_path / "a"), mode="r+")[3, 1:3] = -5
    assert small(array, (3, slice(0, 4))).tolist() == [19, -5, -5, 22]
    (tmp_path / "a" / "c" / "0" / "0").unlink()
    assert small(array, (3, slice(0, 4))).tolist() == [0] * 4


def test_a_chunk_of_a_shard_that_another_process_writes_is_seen(tmp_path):
    array = made(tmp_path / "a", shards=(8, 8))
    assert small(array, (1, 1)) == 8
    code = f"import zcore; zcore.open({str(tmp_path / 'a')!r}, mode='r+')[1, 1] = -8"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert small(array, (1, 1)) == -8


def test_a_replaced_document_is_left_to_the_engine(tmp_path):
    array = made(tmp_path / "a")
    other = zcore.open(str(tmp_path / "a"), mode="r+")
    other.attrs["x"] = 1
    assert small(array, (1, 1)) is None
    assert array[1, 1] == 8
    other.resize(10, 7)
    assert array.shape == (10, 6) and array[1, 1] == 8
    other.resize(2, 6)
    with pytest.raises(SelectionError):
        array[4, 1:3]


@pytest.mark.parametrize("dtype", ["i4", "i2"])
def test_an_array_that_was_replaced_is_no_other_array(tmp_path, dtype):
    array = made(tmp_path / "a")
    zcore.create_array(str(tmp_path / "a"), shape=(10, 6), chunks=(4, 4), dtype=dtype, overwrite=True)[...] = 3
    assert small(array, (1, 1)) is None
    if dtype == "i4":
        assert array[1, 1] == 3
    else:
        with pytest.raises(StoreError, match="replaced"):
            array[1, 1]


def test_a_deleted_array_is_not_found(tmp_path):
    array = made(tmp_path / "a")
    os.unlink(tmp_path / "a" / "zarr.json")
    with pytest.raises(NodeNotFoundError):
        array[1, 1]


def test_another_array_in_its_place_is_not_read(tmp_path):
    array = made(tmp_path / "a")
    made(tmp_path / "b", NUMBERS * 2)
    os.rename(tmp_path / "a", tmp_path / "c")
    os.rename(tmp_path / "b", tmp_path / "a")
    assert small(array, (1, slice(0, 3))) is None
    assert array[1, 1] == 16


def test_a_handle_with_a_new_shape_reads_by_it(tmp_path):
    array = made(tmp_path / "a")
    array.append(NUMBERS[:2])
    for _ in range(4):
        assert array[11, 5] == 12 and array[-1, 0] == 7


def test_a_young_document_is_left_to_the_engine(tmp_path, monkeypatch):
    monkeypatch.setattr("zcore.engine.views.TRUSTED_AGE_NS", 1 << 62)
    array = made(tmp_path / "a")
    assert array._binding.small is None and array[1, 1] == 8


def test_a_cache_that_is_granted_later_is_used(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "cache", 0)
    array = made(tmp_path / "a")
    assert small(array, (1, slice(0, 2))).tolist() == [7, 8]
    from zcore.kernel.plan.cache import CHUNKS

    config.cache = "1 MB"
    CHUNKS.clear()
    # Whether a young chunk is kept depends on the file system; what counts is that the cache was asked.
    misses = CHUNKS.info()["misses"]
    assert small(array, (1, slice(0, 2))).tolist() == [7, 8]
    assert CHUNKS.info()["misses"] == misses + 1
    config.cache = 0
    assert small(array, (1, slice(0, 2))).tolist() == [7, 8]
    assert CHUNKS.info()["misses"] == misses + 1


def test_the_number_of_threads_is_asked_for_at_each_read_of_a_large_chunk(tmp_path):
    from zcore.kernel.plan.small_read import SmallReads

    asked = []
    values = np.arange(2**21, dtype="i4")
    binding = made(tmp_path / "a", values, chunks=(2**21,), compressors=zcore.codecs.BloscCodec(cname="lz4"))._binding

    def threads():
        asked.append(None)
        return 2

    reads = SmallReads(binding.opened(binding.view), binding.metadata.dtype, None, 0, threads)
    assert reads.get(slice(7, 9)).tolist() == [7, 8] and asked == [None]


def test_more_threads_than_plans(tmp_path):
    array = made(tmp_path / "a")
    wrong = []

    def read():
        for i in range(300):
            row = i % 10
            if not np.array_equal(array[row, 1:5], NUMBERS[row, 1:5]):
                wrong.append(row)

    at_once(threading.Thread(target=read) for _ in range(12))
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_forked_child_reads(tmp_path):
    array = made(tmp_path / "a")
    child = os.fork()
    if child == 0:
        os._exit(0 if small(array, (1, slice(0, 2))).tolist() == [7, 8] else 1)
    assert os.waitpid(child, 0)[1] == 0


@needs_a_list
def test_no_descriptor_is_kept(tmp_path):
    before = descriptors()
    arrays = [made(tmp_path / str(i), shards=(8, 8)) for i in range(3)]
    assert [small(array, (1, 1)) for array in arrays] == [8] * 3
    assert descriptors() <= before


def test_paths_that_may_become_too_long_are_left_to_the_engine(tmp_path):
    path = f"{tmp_path}/{'d' * 249}" + f"/{'d' * 99}" * 36
    path = path[:3800].rstrip("/")
    array = warm(zcore.create_array(path, shape=(1,) * 32, chunks=(1,) * 32, dtype="i1", fill_value=5))
    assert array._binding.small is None and array[(0,) * 32] == 5


@pytest.mark.parametrize("index", [np.zeros(1, "m8")[0], np.timedelta64(1, "s"), np.datetime64(1, "s")])
def test_times_are_no_indices_before_and_after_small_reads(tmp_path, index):
    array = made(tmp_path / "a")
    for selection in (index, (0, index), (index, slice(None))):
        assert small(array, selection) is None
        with pytest.raises(SelectionError, match="only integers"):
            array[selection]
    with pytest.raises(TypeError, match="slice indices"):
        array[index:]
