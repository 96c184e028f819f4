"""`Writer`: what was given is stored once, in order, whatever comes between; nothing is dropped without a word."""
import copy
import errno
import gc
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
from datetime import datetime

import numpy as np
import pytest

import zcore
from tests.each import each
from zcore.engine.array_binding import ArrayBinding
from zcore.hierarchy import consolidated
from zcore.nodes import streams

LAYOUTS = {
    "a frame a chunk": {"chunks": (1, 5, 4)}, "chunks": {"chunks": (7, 3, 4)},
    "shards": {"chunks": (2, 5, 2), "shards": (8, 5, 4)}, "rectilinear": {"chunks": ([3, 4, 6], 5, 4)},
    "v2": {"chunks": (7, 3, 4), "zarr_format": 2}, "zmeta": {"chunks": (7, 3, 4), "zarr_format": "zmeta"},
    "long": {"chunks": (10**6, 5, 4)},
}


def frames(n, first=0):
    return np.arange(first * 20, (first + n) * 20, dtype="u4").reshape(n, 5, 4)


def stack(place=None, n=0, **keywords):
    keywords = {"chunks": (7, 3, 4), "dtype": "u4", **keywords}
    if isinstance(keywords["chunks"][0], list):
        n = max(n, sum(keywords["chunks"][0]))
    array = zcore.create_array(zcore.MemoryStore() if place is None else place, shape=(n, 5, 4), **keywords)
    array[...] = frames(n)
    return array


class Failing(zcore.MemoryStore):
    """Fails as long as `fails`."""

    fails = False

    def set(self, key, value):
        if self.fails and not key.endswith("json"):
            raise zcore.StoreError("no room", key=key, errno=errno.ENOSPC)
        super().set(key, value)


# order and layouts

@pytest.mark.thinned(3, "layout", "queue")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("queue", [None, 80, 1000])
def test_frames_of_random_sizes(layout, queue):
    rng = np.random.default_rng(7)
    array = stack(**LAYOUTS[layout])
    n = first = len(array)
    with array.writer(queue=queue) as w:
        while n < first + 150:
            k = int(rng.integers(1, 20))
            w.append(frames(k, n) if k > 1 or rng.random() < 0.5 else frames(k, n)[0])
            n += k
            if rng.random() < 0.1:
                w.flush()
                assert array.shape == (n, 5, 4) and w.n_stored == w.n_given == n - first and not w.n_waiting
                assert np.array_equal(zcore.open(array.store)[...], frames(n))
    assert np.array_equal(array[...], frames(n)) and zcore.verify(array.store).ok


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("fill", [0, 3])
def test_axes(axis, fill):
    shape = [4, 6, 5]
    shape[axis] = fill
    array = zcore.create_array(zcore.MemoryStore(), shape=shape, chunks=(4, 4, 4), dtype="i2")
    shape[axis] = 23
    values = np.arange(np.prod(shape), dtype="i2").reshape(shape)
    array[...] = np.take(values, range(fill), axis)
    with array.writer(axis) as w:
        for i in range(fill, 23):
            w.append(np.take(values, i, axis))
    assert np.array_equal(array[...], values)


def test_numbers_along_one_dimension():
    array = zcore.create_array(zcore.MemoryStore(), shape=(0,), chunks=(10,), dtype="f8")
    with array.writer() as w:
        for i in range(25):
            w.append(i)
            w.append([0.5])
    assert array[...].tolist() == [value for i in range(25) for value in (i, 0.5)]


def test_frames_without_elements():
    array = zcore.create_array(zcore.MemoryStore(), shape=(0, 0, 3), chunks=(4, 2, 3), dtype="f8")
    with array.writer() as w:
        for _ in range(9):
            w.append(np.zeros((0, 3)))
        w.append(np.zeros((5, 0, 3)))
    assert array.shape == (14, 0, 3)


@each("dtype", ["U5", "S3", np.dtypes.StringDType(), "M8[s]", ">f4", [("a", "i4"), ("b", "f8")],
                                   np.dtype({"names": ["a"], "formats": ["i2"], "offsets": [2], "itemsize": 8}), "?"])
def test_types(dtype):
    dtype = np.dtype(dtype)
    values = np.zeros(12, dtype) if dtype.names else np.array([1, 0, 2] * 4).astype("i8").astype(dtype)
    if dtype.names:
        values["a"] = range(12)
    array = zcore.create_array(zcore.MemoryStore(), shape=(0,), chunks=(5,), dtype=dtype,
                               **({"zarr_format": 2} if dtype.names else {}))
    with array.writer() as w:
        for value in values:
            w.append(value)
        w.append(values)
    assert array[...].tolist() == [*values.tolist()] * 2


@pytest.mark.parametrize("dtype", [
    ">f8", ">M8[s]", ">U2", [("a", ">i4"), ("b", "?")],
    np.dtype({"names": ["a"], "formats": ["i2"], "offsets": [2], "itemsize": 8})])
@pytest.mark.parametrize("chunks", [{"chunks": (4, 3)}, {"chunks": (6, 1)}])
def test_parts_that_are_joined_keep_their_type(dtype, chunks):
    dtype = np.dtype(dtype)
    array = zcore.create_array(zcore.MemoryStore(), shape=(0, 3), dtype=dtype, zarr_format=2, **chunks)
    values = np.arange(180).reshape(60, 3).astype("u1").astype(dtype["a"] if dtype.names else dtype)
    if dtype.names:
        values, field = np.zeros(values.shape, dtype), values
        values["a"] = field
    with array.writer(queue=15 * 3 * dtype.itemsize) as w:
        for i in range(0, 60, 5):
            w.append(values[i:i + 5])
        w.flush()
        for i in range(0, 60, 12):
            w.write(slice(i, i + 12), values[i:i + 12][::-1])
    assert array[...].tolist() == values.reshape(5, 12, 3)[:, ::-1].reshape(60, 3).tolist()


def test_what_casts_safely():
    array = stack(dtype="i4")
    with array.writer() as w:
        for dtype in ("i4", "u2", "i1", "?", ">i4", "i8", "u4"):
            w.append(np.ones((5, 4), dtype))
        w.append(np.ones((5, 4), int).tolist())
        w.append(zcore.array(np.ones((2, 5, 4), "u1")))
        for wrong in (np.ones((5, 4)), np.ones((5, 4), "M8[s]"), np.ones((5, 4), "O"), np.full((5, 4), 1.5).tolist()):
            with pytest.raises(TypeError, match="safely"):
                w.append(wrong)
        for wrong in (np.full((5, 4), 2**40), np.full((5, 4), 2**40).tolist(), np.full((5, 4), 2**31, "u4")):
            with pytest.raises(OverflowError):
                w.append(wrong)
        for wrong in (np.ones((4, 5), "i4"), np.ones((1, 1, 5, 4), "i4"), np.ones((5, 5, 5), "i4")):
            with pytest.raises(ValueError, match="frame has shape"):
                w.append(wrong)
        with pytest.raises(ValueError, match="masked"):
            w.append(np.ma.masked_equal(np.ones((5, 4), "i4"), 1))
    assert array.shape == (10, 5, 4) and (array[...] == 1).all()


@pytest.mark.parametrize(("dtype", "fits", "fits_not"), [
    ("?", [True, False], [2]), ("i1", [True, 127], [1.0]), ("u8", [2**64 - 1], [1.5]), ("f4", [1, 2.5], [1j]),
    ("c8", [1, 2.5, 1j], ["1"]), ("m8[s]", [1, 2], np.array([2**64 - 1], "u8"))])
def test_numbers_of_python(dtype, fits, fits_not):
    array = zcore.create_array(zcore.MemoryStore(), shape=0, chunks=2, dtype=dtype)
    with array.writer() as w:
        w.append(fits)
        for call in (w.append, lambda values: w.write(0, values[0])):
            with pytest.raises((TypeError, ValueError)):
                call(fits_not)
    assert array[...].tolist() == np.array(fits, dtype).tolist()


@each(("dtype", "fits", "fits_not"), [
    ("u1", [np.int64(255), np.array(0)], [np.int64(300), np.int64(-1)]),
    ("u8", [np.int64(1), 2], [np.int64(-1), 0]),
    ("i4", memoryview(np.arange(2)), memoryview(np.array([0, 2**40]))),
    ("f4", [np.float64(0.1), np.inf], [1e300, np.float64(1)]), ("f4", np.array([0.1, np.nan]), np.array([1.0, 1e300])),
    ("u2", np.arange(2), np.array([1, -1])), ("M8[s]", np.array([0, 1000], "M8[ms]"), np.array([0, 1], "M8[ms]")),
    ("M8[s]", [datetime(2020, 1, 1), np.datetime64("NaT", "s")], [datetime(2020, 1, 1, 0, 0, 0, 500_000)] * 2),
    ("m8[h]", [np.timedelta64(2, "D")] * 2, [np.timedelta64(90, "m")] * 2),
    ("M8[ns]", np.array(["2001", "NaT"], "M8[D]"), np.array(["2001", "9999"], "M8[D]")),
    ("M8[ns]", ["2001-01-01", "NaT"], ["9999-01-01"] * 2),
    ("M8[ns]", [datetime(2020, 1, 1)] * 2, [datetime(9999, 1, 1)] * 2),
    ("U2", np.array(["ab", "c"], "U5"), ["abc", "d"]), ("S2", [b"ab", b"c"], np.array([b"ab", b"cde"])),
    ("U2", np.array(["ab", "c"], object), np.array(["abc", "c"], object))])
def test_nothing_is_wrapped_or_cut(dtype, fits, fits_not):
    array = zcore.create_array(zcore.MemoryStore(), shape=0, chunks=2, dtype=dtype)
    with array.writer() as w:
        w.append(fits)
        for call in (w.append, lambda values: w.write(slice(2), values)):
            with pytest.raises((OverflowError, ValueError), match="does not fit"):
                call(fits_not)
    assert np.array_equal(array[...], np.array(fits, dtype), equal_nan=np.dtype(dtype).kind in "fM")


def test_the_memory_of_the_caller_is_free_again():
    array, frame = stack(), np.empty((5, 4), "u4")
    with array.writer() as w:
        for i in range(50):
            frame[...] = frames(1, i)
            w.append(frame)
    assert np.array_equal(array[...], frames(50))


# what others see

def test_readers_see_whole_units(tmp_path):
    array = stack(tmp_path / "a")
    with array.writer() as w:
        for i in range(20):
            w.append(frames(1, i))
            seen = zcore.open(tmp_path / "a")
            assert len(seen) % 7 == 0 and np.array_equal(seen[...], frames(len(seen)))
        w.flush()
        assert len(zcore.open(tmp_path / "a")) == 20


def test_a_part_of_a_unit_is_completed():
    array = stack(chunks=(10, 5, 4))
    with array.writer() as w:
        for i in range(35):
            w.append(frames(1, i))
            w.flush()
            assert len(array) == i + 1
    assert np.array_equal(array[...], frames(35))
    assert len([key for key in array.store.list() if not key.endswith("json")]) == 4


def test_the_queue_is_bounded():
    store = zcore.MemoryStore()
    array, gate = stack(store), threading.Event()
    put = store.set
    store.set = lambda *args: (gate.wait(60), put(*args))
    w = array.writer(queue=14 * 80)
    for i in range(14):
        w.append(frames(1, i))
    assert w.n_waiting == 14 * 80
    more = threading.Thread(target=w.append, args=(frames(30, 14),))
    more.start()
    more.join(0.05)
    assert more.is_alive() and w.n_waiting <= 14 * 80
    gate.set()
    more.join(60)
    w.close()
    assert np.array_equal(array[...], frames(44))


# boxes

@pytest.mark.parametrize("layout", ["chunks", "shards", "rectilinear", "v2"])
@pytest.mark.parametrize("queue", [None, 100])
@pytest.mark.parametrize("n_boxes", [150, pytest.param(300, marks=pytest.mark.slow)])
def test_boxes_in_any_order(layout, queue, n_boxes):
    rng = np.random.default_rng(3)
    array = stack(n=13, **LAYOUTS[layout])
    array.append(frames(17, 13))
    expected = array[...]
    with array.writer(queue=queue) as w:
        for i in range(n_boxes):
            starts = [int(rng.integers(0, n)) for n in expected.shape]
            box = tuple([slice(start, int(rng.integers(start, n)) + 1) for start, n in
                         zip(starts, expected.shape, strict=True)])
            if rng.random() < 0.2:
                box = (starts[0], ..., box[2])
            expected[box] = 100_000 + i
            w.write(box, 100_000 + i)
            if rng.random() < 0.05:
                w.append(frames(2, len(expected)))
                expected = np.concatenate([expected, frames(2, len(expected))])
    assert np.array_equal(array[...], expected)


def test_a_box_that_fills_a_unit_with_others_is_stored_once():
    array = stack(n=14, chunks=(7, 5, 4))
    sets, put = [], array.store.set
    array.store.set = lambda key, value: (sets.append(key), put(key, value))
    with array.writer() as w:
        for i in range(14):
            for j in range(4):
                w.write((i, slice(None), j), np.full(5, i * j, "u4"))
    assert sorted(sets) == ["c/0/0/0", "c/1/0/0"]
    assert np.array_equal(array[...], np.arange(14)[:, None, None] * np.arange(4) * np.ones((5, 1)))


def test_units_that_a_box_covers_are_one_until_another_box_comes():
    array = stack(n=14, chunks=(7, 5, 2))
    expected = array[...]
    with array.writer() as w:
        for box in (np.s_[:4], np.s_[2:6, :, 2:], np.s_[5:9, 1:, 1:3], np.s_[6:], np.s_[:3, :2]):
            expected[box] += 100
            w.write(box, expected[box])
    assert np.array_equal(array[...], expected)


def test_whole_boxes_that_wait_are_stored_together(monkeypatch):
    array, gate, sizes = stack(n=14, chunks=(1, 5, 4)), threading.Event(), []
    write = ArrayBinding.write

    def waits(self, box, values):
        gate.wait(60)
        sizes.append(len(values))
        write(self, box, values)

    monkeypatch.setattr(ArrayBinding, "write", waits)
    with array.writer() as w:
        for i in (0, 1, 2, 3, 5, 6, 13, 12):
            w.write(i, i)
        w.write((7, slice(2)), 7)
        w.write(8, 8)
        gate.set()
    assert sum(sizes) == 10 and len(sizes) <= 7
    expected = frames(14)
    for i in (0, 1, 2, 3, 5, 6, 8, 12, 13):
        expected[i] = i
    expected[7, :2] = 7
    assert np.array_equal(array[...], expected)


def test_frames_in_order_are_one_box():
    array = stack(n=14, chunks=(14, 5, 4))
    with array.writer() as w:
        for i in range(10):
            for j in range(5):
                w.write((i, j), np.full(4, i, "u4"))
        (tile,) = w._tiles.values()
        assert tile.boxes == [((0, 0, 0), (10, 5, 4))]
    assert np.array_equal(array[:10], np.arange(10)[:, None, None] * np.ones((5, 4)))


def test_a_box_in_rows_that_were_added_meanwhile():
    array = stack(n=1)
    with array.writer() as w:
        for i in range(1, 20):
            array.resize(i + 1, 5, 4)
            w.write(i, frames(1, i)[0])
    assert np.array_equal(array[...], frames(20))


def test_what_is_no_box():
    array = stack(n=14)
    with array.writer() as w:
        for selection in (slice(None, None, 2), slice(None, None, -1), [1, 2], np.ones((14, 5, 4), bool), 14):
            with pytest.raises((zcore.SelectionError, IndexError)):
                w.write(selection, 1)
        with pytest.raises(TypeError, match="safely"):
            w.write(0, np.ones((5, 4)))
        with pytest.raises(ValueError):
            w.write(0, np.ones((3, 3), "u4"))
        w.write((slice(3, 3),), np.ones((0, 5, 4), "u4"))
    assert np.array_equal(array[...], frames(14))


# faults

def test_what_was_not_stored_is_told_and_kept():
    array = stack(store := Failing())
    w = array.writer(queue=14 * 80)
    w.append(frames(7))
    w.flush()
    store.fails = True
    w.append(frames(10, 7))
    with pytest.raises(zcore.WriterError, match="frames 7 to 16 are not stored.*no room") as found:
        w.flush()
    assert found.value.frames == range(7, 17) and found.value.errno == errno.ENOSPC
    assert isinstance(found.value.__cause__, zcore.StoreError)
    with pytest.raises(zcore.WriterError):
        w.close()
    store.fails = False
    w.append(frames(3, 17))
    w.close()
    assert np.array_equal(array[...], frames(20))


def test_an_error_of_the_background_comes_with_the_next_call():
    array = stack(store := Failing())
    store.fails = True
    w = array.writer()
    w.append(frames(7))
    while w._failure is None:
        pass
    with pytest.raises(zcore.WriterError):
        w.append(frames(1, 7))
    assert w.n_given == 7
    store.fails = False
    w.append(frames(1, 7))
    w.close()
    assert np.array_equal(array[...], frames(8))


def test_a_box_that_cannot_be_stored_is_kept():
    array = stack(store := Failing(), n=14)
    w = array.writer()
    store.fails = True
    w.write(slice(0, 7), np.uint32(5))
    with pytest.raises(zcore.WriterError, match=r"the box \[\(0, 7\)"):
        w.flush()
    store.fails = False
    w.close()
    assert (array[:7] == 5).all() and np.array_equal(array[7:], frames(7, 7))


def test_rows_that_are_there_are_not_appended_again(monkeypatch):
    """An error after the document has its new shape."""
    zcore.create_group(store := zcore.MemoryStore())
    array = zcore.create_array(store, name="a", shape=(0, 5, 4), chunks=(7, 5, 4), dtype="u4")
    dropped, left = consolidated.dropped, [1]

    class Late:
        def __init__(self, *args, **keywords):
            self._inner = dropped(*args, **keywords)

        def __enter__(self):
            return self._inner.__enter__()

        def __exit__(self, *args):
            self._inner.__exit__(*args)
            if left:
                left.pop()
                raise zcore.StoreError("late")

    monkeypatch.setattr(consolidated, "dropped", Late)
    w = array.writer()
    w.append(frames(3))
    with pytest.raises(zcore.WriterError, match="all was stored.*late"):
        w.flush()
    w.close()
    assert np.array_equal(array.refresh()[...], frames(3))


def test_a_handle_that_cannot_be_refreshed(monkeypatch):
    """All is stored, and the error is that of a writer all the same."""
    array = stack()

    def refresh(self):
        monkeypatch.undo()
        raise zcore.StoreError("gone")

    monkeypatch.setattr(zcore.Array, "refresh", refresh)
    w = array.writer()
    w.append(frames(3))
    with pytest.raises(zcore.WriterError, match="all was stored.*gone"):
        w.flush()
    w.close()
    assert np.array_equal(array[...], frames(3))


def test_an_array_that_shrinks_between_a_box_and_its_units(monkeypatch):
    """The background learns of it in the middle of a call."""
    array = stack(n=14)
    w = array.writer()
    wait = w._wait

    def shrunk(is_over):
        zcore.open(array.store, "r+").resize(3, 5, 4)
        w._binding.reload()
        return wait(is_over)

    monkeypatch.setattr(w, "_wait", shrunk)
    w.write(slice(0, 14), frames(14) + 1)
    monkeypatch.undo()
    with pytest.raises(zcore.WriterError, match="shrunk"):
        w.flush()
    w.abort()
    assert array.refresh().shape == (3, 5, 4)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_exception_in_the_block(error):
    array = stack()
    with pytest.raises(error), array.writer() as w:
        w.append(frames(10))
        raise error
    assert np.array_equal(array[...], frames(10))


def test_an_exception_in_the_block_and_one_of_the_store():
    array = stack(store := Failing())
    with pytest.raises(KeyError) as found, array.writer() as w:
        store.fails = True
        w.append(frames(10))
        raise KeyError
    assert "frames 0 to 9 are not stored" in found.value.__notes__[0]
    store.fails = False
    w.close()
    assert np.array_equal(array.refresh()[...], frames(10))


@pytest.mark.parametrize("fails", [False, True])
def test_what_is_given_up(fails):
    array = stack(store := Failing())
    w = array.writer()
    w.append(frames(5))
    w.flush()
    store.fails = fails
    w.append(frames(1 if not fails else 5, 5))
    if fails:
        with pytest.raises(zcore.WriterError):
            w.flush()
    w.abort()
    w.abort()
    w.close()
    store.fails = False
    del w
    gc.collect()
    assert np.array_equal(array.refresh()[...], frames(5))


def test_closed():
    array = stack()
    w = array.writer()
    w.append(frames(1))
    w.close()
    w.close()
    for call in (lambda: w.append(frames(1)), w.flush, lambda: w.write(0, 1)):
        with pytest.raises(ValueError, match="closed"):
            call()
    assert "closed" in repr(w) and len(array) == 1


@pytest.mark.parametrize("call", [copy.copy, copy.deepcopy, pickle.dumps])
def test_no_copies(call):
    with stack().writer() as w, pytest.raises(TypeError, match="neither copied nor pickled"):
        call(w)


def test_a_writer_that_is_forgotten():
    array = stack()
    w = array.writer()
    w.append(frames(3))
    with pytest.warns(ResourceWarning, match="3 frames given"):
        del w
        gc.collect()
    assert np.array_equal(array.refresh()[...], frames(3))


def test_a_writer_at_the_end_of_the_interpreter(tmp_path):
    stack(tmp_path / "a")
    subprocess.run([sys.executable, "-c", textwrap.dedent("""
        import sys, zcore, numpy as np
        w = zcore.open(sys.argv[1], "r+").writer()
        w.append(np.arange(200, dtype="u4").reshape(10, 5, 4))
    """), tmp_path / "a"], check=True)
    assert np.array_equal(zcore.open(tmp_path / "a")[...], frames(10))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_program_ends_with_frames_that_cannot_be_stored(tmp_path):
    program = textwrap.dedent("""
        import shutil, sys, numpy as np, zcore
        w = zcore.create_array(sys.argv[1], shape=(0, 4), chunks=(10, 4), dtype="u2").writer()
        w.append(np.zeros((5, 4), "u2"))
        shutil.rmtree(sys.argv[1])
    """)
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "a")], capture_output=True, text=True,
                          timeout=60, check=True)
    assert done.stderr.count("frames 0 to 4 are not stored") == 1


def test_a_child_has_nothing_of_it(tmp_path):
    array = stack(tmp_path / "a")
    w = array.writer()
    w.append(frames(10))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            w.append(frames(1))
        except zcore.StoreError as error:
            code = 0 if "forked" in str(error) else 2
        w.close()
        del w
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    w.close()
    assert np.array_equal(array[...], frames(10))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_a_signal_handler_in_the_middle_of_a_call():
    array = stack()
    seen = []

    def handler(*_):
        try:
            w.append(frames(1))
        except zcore.LockError as error:
            seen.append(error)

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        w = array.writer()
        rows_of = w._ring.put
        w._ring.put = lambda *args: (os.kill(os.getpid(), signal.SIGUSR1), rows_of(*args))[1]
        w.append(frames(5))
        del w._ring.put
        w.close()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(seen) == 1 and np.array_equal(array[...], frames(5))


@pytest.mark.parametrize("is_queued", [False, True])
def test_ctrl_c_while_the_background_is_called(monkeypatch, is_queued):
    later, left = streams.workers.later, [1]

    def interrupted(*args):
        if left:
            left.pop()
            if is_queued:
                later(*args)
            raise KeyboardInterrupt
        return later(*args)

    monkeypatch.setattr(streams.workers, "later", interrupted)
    array = stack()
    w = array.writer()
    with pytest.raises(KeyboardInterrupt):
        w.append(frames(7))
    for i in range(7, 20):
        w.append(frames(1, i))
    w.close()
    assert np.array_equal(array[...], frames(20))


def test_threads_that_cannot_be_had(monkeypatch):
    def later(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(streams.workers, "later", later)
    array = stack()
    with array.writer() as w:
        for i in range(20):
            w.append(frames(1, i))
    assert np.array_equal(array[...], frames(20))


# others at the same array

def test_two_writers_of_one_array():
    array = stack()
    many = [array.writer(queue=1000) for _ in range(3)]

    def work(me):
        for i in range(60):
            many[me].append(np.full((5, 4), me * 1000 + i, "u4"))
            if i % 11 == me:
                many[me].flush()
        many[me].close()

    threads = [threading.Thread(target=work, args=(me,)) for me in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    found = array.refresh()[:, 0, 0].tolist()
    assert (array[...] == array[:, :1, :1]).all()
    for me in range(3):
        assert [value % 1000 for value in found if value // 1000 == me] == list(range(60))


def test_one_writer_of_several_threads():
    array = stack()
    with array.writer(queue=1000) as w:
        threads = [threading.Thread(target=lambda me=me: [w.append(np.full((5, 4), me, "u4")) for _ in range(60)])
                   for me in range(3)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert sorted(array[:, 2, 2].tolist()) == [0] * 60 + [1] * 60 + [2] * 60


def test_the_array_changes_meanwhile():
    array = stack()
    with array.writer() as w:
        w.append(frames(10))
        w.flush()
        zcore.open(array.store, "r+").append(frames(5, 10))
        w.append(frames(10, 15))
        w.flush()
        assert np.array_equal(array[...], frames(25))
        zcore.open(array.store, "r+").resize(3, 5, 4)
        w.append(frames(10, 3))
        w.flush()
        assert np.array_equal(array[...], frames(13))
        zcore.open(array.store, "r+").resize(13, 4, 4)
        w.append(frames(2))
        with pytest.raises(zcore.WriterError, match="frames 30 to 31.*cannot append"):
            w.flush()
        zcore.open(array.store, "r+").resize(13, 5, 4)
        w.flush()
        zcore.create_array(array.store, shape=(0, 5, 4), dtype="f4", overwrite=True)
        w.append(frames(1))
        with pytest.raises(zcore.WriterError, match="replaced"):
            w.flush()
        zcore.create_array(array.store, shape=(1, 5, 4), chunks=(3, 3, 3), dtype="u4", overwrite=True)
        w.append(frames(1))
    assert np.array_equal(array[1:], [*frames(1), *frames(1)])


def test_an_array_of_other_dimensions_takes_the_place():
    array = stack(chunks=(5, 5, 4))
    with array.writer() as w:
        w.append(frames(7))
        w.flush()
        zcore.create_array(array.store, shape=(), dtype="u4", overwrite=True)
        w.append(frames(3, 7))
        for n in (10, 15):
            with pytest.raises(zcore.WriterError, match=f"frames 7 to {n - 1} .* replaced"):
                w.flush()
            assert w.n_given == n
            w.append(frames(5, n))
        with pytest.raises((zcore.WriterError, zcore.StoreError), match="replaced"):
            w.write(0, 1)
        with pytest.raises(zcore.WriterError, match="replaced"):
            w.flush()
        with pytest.raises(zcore.StoreError, match="replaced"):
            w.write(0, 1)
        stack(array.store, overwrite=True)
    assert np.array_equal(array.refresh()[...], frames(13, 7))


def test_a_box_is_stored_when_a_shrunk_array_has_grown_again():
    array = stack(n=12)
    with array.writer() as w:
        w.write((slice(8, 12), 0), 7)
        zcore.open(array.store, "r+").resize(3, 5, 4)
        with pytest.raises(zcore.WriterError, match="the box .* shrunk"):
            w.flush()
        zcore.open(array.store, "r+").resize(12, 5, 4)
    assert (array[8:, 0] == 7).all() and not array[3:8].any() and not array[8:, 1:].any()


def test_read_only(tmp_path):
    stack(tmp_path / "a")
    with pytest.raises(zcore.ReadOnlyError):
        zcore.open(tmp_path / "a").writer()


@each(("axis", "queue", "error"), [
    (3, None, ValueError), (True, None, TypeError), ("x", None, TypeError), (0, "much", ValueError),
    (0, -1, ValueError), (0, 1.5, TypeError)])
def test_wrong_arguments(axis, queue, error):
    with pytest.raises(error):
        stack().writer(axis, queue=queue)


def test_no_dimensions():
    with pytest.raises(ValueError, match=r"the shape \(\)"):
        zcore.create_array(zcore.MemoryStore(), shape=(), dtype="u1").writer()
