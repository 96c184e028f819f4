"""`Array.read_many`: what it costs, where it reads from, what it refuses, and how loaders use it."""
import multiprocessing
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import zcore
from tests.both_ways import WAYS, directory
from tests.each import each
from tests.unit.stores.servers import http_server
from zcore.codecs.from_numcodecs import FallbackBytes
from zcore.kernel.plan.cache import ChunkCache

pytest.importorskip("numcodecs", reason="numcodecs is not installed (extra numcodecs)")

VALUES = np.arange(1, 1 + 40 * 60, dtype="<i4").reshape(40, 60)
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
NOTED = {"name": "numcodecs.base64", "configuration": {}}


def boxes(n=50, box=(7, 9), shape=VALUES.shape, seed=0):
    rng = np.random.default_rng(seed)
    corners = [rng.integers(0, length - n, n_boxes) for length, n, n_boxes in zip(shape, box, (n, n), strict=True)]
    return [tuple([slice(i, i + n) for i, n in zip(corner, box, strict=True)])
            for corner in zip(*np.array(corners).tolist(), strict=True)]


def stacked(values, selections):
    return np.stack([values[selection] for selection in selections])


def touched(selections, chunks, shape=VALUES.shape):
    """Return how many chunks hold selected elements."""
    marked = np.zeros(shape, bool)
    for selection in selections:
        marked[selection] = True
    return len({tuple([i // n for i, n in zip(at, chunks, strict=True)]) for at in np.argwhere(marked).tolist()})


@pytest.fixture
def decoded(monkeypatch):
    """The lengths of what a codec was given to decode."""
    found = []
    decode = FallbackBytes.decode

    def noted(self, data, *args, **keywords):
        found.append(len(data))
        return decode(self, data, *args, **keywords)

    monkeypatch.setattr(FallbackBytes, "decode", noted)
    return found


class CountingStore(zcore.MemoryStore):
    def __init__(self):
        super().__init__()
        self.read = []

    def get(self, key, *args):
        self.read.append(key)
        return super().get(key, *args)

    def get_with_identity(self, key, *args):
        self.read.append(key)
        return super().get_with_identity(key, *args)


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("place", [*WAYS, "memory"])
@pytest.mark.parametrize("shards", [None, (16, 30)])
def test_each_chunk_is_decoded_once(tmp_path, decoded, place, shards, threads):
    store = zcore.MemoryStore() if place == "memory" else directory(tmp_path / "a", place)
    codecs = [LITTLE, NOTED]
    if shards:
        codecs = [zcore.codecs.ShardingCodec(chunk_shape=(8, 10), codecs=codecs)]
    array = zcore.create_array(store, shape=(40, 60), chunks=shards or (8, 10), dtype="<i4", codecs=codecs,
                               threads=threads)
    array[...] = VALUES
    selections = boxes()
    decoded.clear()
    np.testing.assert_array_equal(array.read_many(selections), stacked(VALUES, selections))
    assert len(decoded) == touched(selections, (8, 10)) <= 30
    decoded.clear()
    for selection in selections:
        array[selection]
    assert len(decoded) > 100, "a loop decodes them again and again"


def test_each_object_is_read_once():
    store = CountingStore()
    array = zcore.create_array(store, shape=(40, 60), chunks=(8, 10), shards=(16, 20), dtype="<i4")
    array[...] = VALUES
    store.read.clear()
    selections = boxes(200)
    np.testing.assert_array_equal(array.read_many(selections), stacked(VALUES, selections))
    objects = [key for key in store.read if "c/" in key]
    assert len(objects) == len(set(objects)) == touched(selections, (16, 20))


def test_of_a_shard_few_chunks_are_read():
    """Its index once, and of its chunks those that boxes touch, however many boxes these are."""
    store = CountingStore()
    array = zcore.create_array(store, shape=(40, 60), chunks=(5, 5), shards=(40, 60), dtype="<i4")
    array[...] = VALUES
    wanted = []
    parts = store.get_parts_with_identity

    def noted(key, ranges):
        wanted.extend(ranges)
        return parts(key, ranges)

    store.get_parts_with_identity = noted
    store.read.clear()
    selections = [np.s_[i:i + 3, 21:24] for i in (6, 7, 31, 6)]
    np.testing.assert_array_equal(array.read_many(selections), stacked(VALUES, selections))
    assert store.read.count("c/0/0") <= 3 and len(wanted) == 2


@pytest.mark.parametrize("cache", [None, "1 MB"])
@pytest.mark.parametrize("place", [*WAYS, "memory"])
def test_the_cache_of_decoded_chunks(tmp_path, decoded, monkeypatch, place, cache):
    """What is kept is not decoded by a later call."""
    monkeypatch.setattr("zcore.engine.views.TRUSTED_AGE_NS", -1)
    store = zcore.MemoryStore() if place == "memory" else directory(tmp_path / "a", place)
    zcore.create_array(store, shape=(40, 60), chunks=(8, 10), dtype="<i4", codecs=[LITTLE, NOTED])[...] = VALUES
    array = zcore.open(store, mode="r", cache=cache)
    if cache is not None:
        array._binding.options._chunks = ChunkCache(1 << 20, 0)
    selections = boxes(400)
    array.read_many(selections)
    first = len(decoded)
    np.testing.assert_array_equal(array.read_many(selections), stacked(VALUES, selections))
    assert first == 30 and (len(decoded) == 60) == (cache is None)


def test_missing_chunks(tmp_path):
    array = zcore.create_array(tmp_path, shape=(40, 60), chunks=(8, 10), dtype="<i4", fill_value=-3)
    array[:8] = VALUES[:8]
    expected = np.full_like(VALUES, -3)
    expected[:8] = VALUES[:8]
    selections = boxes()
    np.testing.assert_array_equal(array.read_many(selections), stacked(expected, selections))
    strict = zcore.open(tmp_path, missing="raise")
    with pytest.raises(zcore.ChunkError) as caught:
        strict.read_many(selections)
    assert caught.value.chunk_coords[0] > 0
    np.testing.assert_array_equal(strict.read_many([np.s_[:3, i:i + 4] for i in range(50)])[7], VALUES[:3, 7:11])


def test_a_damaged_chunk_is_named(tmp_path):
    array = zcore.create_array(tmp_path / "a", data=VALUES, chunks=(8, 10))
    path = tmp_path / "a" / "c" / "2" / "3"
    path.write_bytes(path.read_bytes()[:-9] + b"unrelated")
    selections = boxes(300)
    with pytest.raises(zcore.ChunkError) as caught:
        array.read_many(selections)
    assert caught.value.chunk_coords == (2, 3) and str(tmp_path) in str(caught.value)
    whole = [(rows, columns) for rows, columns in selections if rows.stop <= 16]
    np.testing.assert_array_equal(array.read_many(whole), stacked(VALUES, whole))


def test_chunks_that_are_cut_at_the_border(tmp_path):
    """Early 2016 code stored chunks of the border without what lies beyond."""
    array = zcore.create_array(tmp_path, shape=(10, 7), chunks=(4, 5), dtype="<i4", zarr_format=2, compressors=None)
    array[...] = values = VALUES[:10, :7]
    (tmp_path / "2.1").write_bytes(np.ascontiguousarray(values[8:, 5:]).tobytes())
    selections = [np.s_[i:i + 3, j:j + 2] for i in range(8) for j in range(6)]
    np.testing.assert_array_equal(zcore.open(tmp_path, strict=False).read_many(selections),
                                  stacked(values, selections))
    with pytest.raises(zcore.ChunkError):
        zcore.open(tmp_path, strict=True).read_many(selections)


def in_zip(tmp_path):
    with zcore.ZipStore(tmp_path / "a.zip", mode="w") as store:
        zcore.create_array(store, data=VALUES, chunks=(8, 10))
    return zcore.open(tmp_path / "a.zip")


def in_asdf(tmp_path):
    zcore.asdf.write(tmp_path / "a.asdf", {"a": VALUES})
    return zcore.open(tmp_path / "a.asdf")["a"]


def in_compressed_asdf(tmp_path):
    zcore.asdf.write(tmp_path / "a.asdf", {"a": VALUES}, compression="zlib")
    return zcore.open(tmp_path / "a.asdf")["a"]


def in_references(tmp_path):
    zcore.create_array(tmp_path / "a", data=VALUES, chunks=(8, 10), zarr_format=2, compressors=None)
    objects = sorted((tmp_path / "a").iterdir())
    data = b"".join([path.read_bytes() for path in objects if path.name[0].isdigit()])
    (tmp_path / "data").write_bytes(data)
    refs, offset = {".zarray": (tmp_path / "a" / ".zarray").read_text()}, 0
    for path in objects:
        if path.name[0].isdigit():
            refs[path.name] = [str(tmp_path / "data"), offset, path.stat().st_size]
            offset += path.stat().st_size
    return zcore.open(zcore.ReferenceStore(refs, allowed=[str(tmp_path)]))


@pytest.mark.parametrize("made", [in_zip, in_asdf, in_compressed_asdf, in_references])
def test_other_stores(tmp_path, made):
    array = made(tmp_path)
    for selections in (boxes(), boxes(1), [np.s_[3, ::-7], np.s_[0, 59::-7]], [np.s_[i, i] for i in range(40)]):
        np.testing.assert_array_equal(array.read_many(selections), stacked(VALUES, selections))


def test_a_service():
    pytest.importorskip("obstore", reason="obstore is not installed (extra remote)")
    store = zcore.MemoryStore()
    zcore.create_array(store, name="a", data=VALUES, chunks=(4, 5), shards=(8, 10))
    with http_server() as (url, site):
        site.files.update({key: store.get(key) for key in store.list()})
        array = zcore.open(url + "a")
        selections = boxes()
        np.testing.assert_array_equal(array.read_many(selections), stacked(VALUES, selections))


@pytest.mark.parametrize("kind", ["element", "row"])
def test_boxes_of_fewer_dimensions(kind):
    array = zcore.array(VALUES, chunks=(8, 10))
    selections = [np.s_[i % 40, i % 60] if kind == "element" else (-1 - i % 40,) for i in range(100)]
    result = array.read_many(selections)
    assert result.shape == ((100,) if kind == "element" else (100, 60))
    np.testing.assert_array_equal(result, stacked(VALUES, selections))
    # One that keeps the first dimension beside one that keeps the second.
    mixed = [np.s_[3, 4:8], np.s_[9:1:-2, 5]]
    np.testing.assert_array_equal(array.read_many(mixed), stacked(VALUES, mixed))


def test_an_array_without_dimensions():
    array = zcore.array(5)
    assert array.read_many([(), ..., ()]).tolist() == [5, 5, 5]


def test_selections_of_nothing():
    array = zcore.array(VALUES, chunks=(8, 10))
    assert array.read_many([np.s_[3:3], np.s_[0:0]]).shape == (2, 0, 60)
    with pytest.raises(ValueError, match="without selections the shape of the result is not known"):
        array.read_many([])
    out = np.empty((0, 3, 4), "<i4")
    assert array.read_many(iter([]), out=out) is out
    for wrong, error in ((np.empty((1, 3), "<i4"), ValueError), (np.empty((0, 3), "<i8"), TypeError), (3, TypeError)):
        with pytest.raises(error, match="out"):
            array.read_many([], out=wrong)


def test_a_buffer_takes_the_result():
    array = zcore.array(VALUES, chunks=(8, 10))
    buffer = memoryview(bytearray(2 * 3 * 4)).cast("i", (2, 3))
    assert array.read_many([np.s_[0, :3], np.s_[39, 5:8]], out=buffer) is buffer
    assert buffer.tolist() == [[1, 2, 3], VALUES[39, 5:8].tolist()]


@each(("selections", "error", "text"), [
    ([np.s_[:3], np.s_[1:4], np.s_[:2]], zcore.SelectionError, r"selection 2: its shape is \(2, 60\), .* \(3, 60\)"),
    ([np.s_[0], np.s_[40]], zcore.SelectionError, "selection 1: index 40 is out of bounds for axis 0 with size 40"),
    ([np.s_[0], 2**63], zcore.errors.HugeIndexError, "selection 1: index"),
    ([0, 0, np.s_[0, 0, 0]], zcore.SelectionError, "selection 2: too many indices"),
    ([0, [1]], zcore.SelectionError, "selection 1: a basic selection"),
    ([0, "a"], zcore.SelectionError, "selection 1: a basic selection"),
    ([np.s_[:5], np.s_[::0]], ValueError, "selection 1: slice step cannot be zero"),
    ([np.s_[1.5:]], TypeError, "selection 0: slice indices must be integers"),
    ([np.s_[..., 0, ...]], zcore.SelectionError, "selection 0: an index can only have a single ellipsis"),
    (3, TypeError, "not iterable"),
])
def test_selections_that_are_refused(selections, error, text):
    with pytest.raises(error, match=text):
        zcore.array(VALUES, chunks=(8, 10)).read_many(selections)


@pytest.mark.parametrize(("out", "error", "text"), [
    (np.empty((2, 3), "<i4"), ValueError, r"out has shape \(2, 3\), the selection \(2, 60\)"),
    (np.empty((2, 60), "<i8"), TypeError, "out has type int64, the array int32"),
    (np.broadcast_to(np.zeros(60, "<i4"), (2, 60)), ValueError, "out is not writable"),
    ([1], TypeError, "out is list"),
])
def test_places_that_are_refused(out, error, text):
    with pytest.raises(error, match=text):
        zcore.array(VALUES, chunks=(8, 10)).read_many([0, 1], out=out)


def test_more_than_memory():
    array = zcore.create_array(zcore.MemoryStore(), shape=(2**40,), chunks=(2**20,), dtype="i8")
    with pytest.raises(zcore.OutOfMemoryError) as caught:
        array.read_many([np.s_[:]] * 2**10)
    assert caught.value.nbytes == 2**53


def test_an_array_that_was_shrunk_or_replaced(tmp_path):
    array = zcore.create_array(tmp_path, data=VALUES, chunks=(8, 10))
    other = zcore.open(tmp_path, mode="r+")
    other.resize(20, 60)
    assert array.read_many([np.s_[:2], np.s_[18:20]])[1, 1, 0] == VALUES[19, 0]
    with pytest.raises(zcore.SelectionError, match="shrunk"):
        array.read_many([np.s_[:2], np.s_[30:32]])
    other.store.erase_prefix("")
    with pytest.raises(zcore.NodeNotFoundError):
        array.read_many([0, 1])


def test_ctrl_c_ends_it(tmp_path):
    script = """
        import os, signal, sys, threading, time
        import numpy as np, zcore

        class Slow(zcore.MemoryStore):
            def get(self, key, *args):
                time.sleep(0.02)
                return super().get(key, *args)

        signal.signal(signal.SIGINT, signal.default_int_handler)     # which a runner in the background ignores
        array = zcore.array(np.zeros((100, 10)), chunks=(1, 10), store=Slow())
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        started = time.monotonic()
        try:
            array.read_many([np.s_[i:i + 3] for i in range(97)])
        except KeyboardInterrupt:
            sys.exit(time.monotonic() - started > 1)
        sys.exit("it was not interrupted")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


# Loaders

class Patches:
    """The dataset of docs/bridges/pytorch.md, as loaders see it."""

    def __init__(self, array, corners):
        self.array, self.corners = array, corners

    def __len__(self):
        return len(self.corners)

    def __getitems__(self, indices):
        corners = [self.corners[i] for i in indices]
        return self.array.read_many([np.s_[y:y + 4, x:x + 4] for y, x in corners])


def load(dataset, batches):
    """Do what a worker of PyTorch's DataLoader does with a dataset that has `__getitems__`."""
    return [dataset.__getitems__(batch) for batch in batches]


@pytest.fixture(params=["directory", "memory", "sharded", "text"])
def dataset(request, tmp_path):
    corners = [(y, x) for y in range(0, 36, 5) for x in range(0, 56, 3)]
    values, options = VALUES, {}
    if request.param == "text":
        values = VALUES.astype(str).astype("T")
    if request.param == "sharded":
        options = {"shards": (16, 20)}
    store = zcore.MemoryStore() if request.param == "memory" else tmp_path
    array = zcore.create_array(store, shape=values.shape, chunks=(8, 10), dtype=values.dtype, threads=4, cache="1 MB",
                               **options)
    array[...] = values
    return Patches(array, corners), values


def work(dataset, batches, queue):
    queue.put(load(dataset, batches))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_workers_that_are_forked(dataset):
    """After the parent has read with threads; the pool, locks and caches are the children's own."""
    dataset, values = dataset
    batches = [list(range(i, len(dataset), 7)) for i in range(7)]
    expected = load(dataset, batches)
    for batch, result in zip(batches, expected, strict=True):
        corners = [dataset.corners[i] for i in batch]
        assert result.tolist() == [values[y:y + 4, x:x + 4].tolist() for y, x in corners]
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    for _ in range(3):
        workers = [context.Process(target=work, args=(dataset, batches, queue)) for _ in range(3)]
        for worker in workers:
            worker.start()
        for _ in workers:
            for result, known in zip(queue.get(timeout=60), expected, strict=True):
                assert result.tolist() == known.tolist()
        for worker in workers:
            worker.join(60)
            assert worker.exitcode == 0
        load(dataset, batches)


@pytest.mark.parametrize("dtype", ["i8", "u1", "<i4", ">u8"])
def test_first_elements_instead_of_selections(dtype):
    z = zcore.create_array(zcore.MemoryStore(), data=VALUES, chunks=(9, 11))
    chosen = boxes()
    starts = np.array([[side.start for side in box] for box in chosen]).astype(dtype)
    for given in (starts, starts[::-1][::-1], starts.tolist()):
        assert np.array_equal(z.read_many(given, shape=(7, 9)), stacked(VALUES, chosen))
    out = np.zeros((50, 7, 9), z.dtype)
    assert z.read_many(starts, out, shape=(7, 9)) is out and np.array_equal(out, stacked(VALUES, chosen))


def test_first_elements_at_the_edges():
    z = zcore.create_array(zcore.MemoryStore(), data=VALUES, chunks=(9, 11))
    assert np.array_equal(z.read_many([[39, 59], [0, 0]], shape=(1, 1)).ravel(), [VALUES[39, 59], VALUES[0, 0]])
    assert np.array_equal(z.read_many([[0, 0]], shape=VALUES.shape)[0], VALUES)
    assert z.read_many([], shape=(7, 9)).shape == (0, 7, 9)
    assert z.read_many([[40, 60]], shape=(0, 0)).shape == (1, 0, 0)
    scalar = zcore.array(np.int16(5))
    assert scalar.read_many(np.empty((3, 0), int), shape=()).tolist() == [5, 5, 5]
    line = zcore.array(np.arange(10))
    assert line.read_many([[3], [0]], shape=4).tolist() == [[3, 4, 5, 6], [0, 1, 2, 3]]


@each("starts, shape, match", [
    ([[0, 0], [34, 0]], (7, 9), "selection 1: 7 elements from 34 on do not lie in axis 0 with size 40"),
    ([[0, -1]], (7, 9), "selection 0.*from -1 on"), ([[2**63 - 1, 0]], (7, 9), "selection 0"),
    (np.array([[2**64 - 1, 0]], np.uint64), (7, 9), "selection 0"), ([[0, 0]], (41, 1), "41 elements"),
    ([[0.0, 0.0]], (7, 9), "integers"), ([[True, False]], (7, 9), "integers"), ([0, 0], (7, 9), r"\(n, 2\)"),
    ([[0]], (7, 9), r"\(n, 2\)"), ([[0, 0]], (7,), "2 lengths"), ([[0, 0]], 7, "2 lengths"), ("ab", (7, 9), "found"),
])
def test_first_elements_that_are_wrong(starts, shape, match):
    with pytest.raises(zcore.SelectionError, match=match):
        zcore.array(VALUES).read_many(starts, shape=shape)


@pytest.mark.parametrize("shape, error", [((-1, 2), ValueError), ((1.0, 2), TypeError), ("ab", TypeError)])
def test_shapes_that_are_none(shape, error):
    with pytest.raises(error):
        zcore.array(VALUES).read_many([[0, 0]], shape=shape)


def test_an_array_that_has_shrunk_since(tmp_path):
    z = zcore.create_array(tmp_path, data=VALUES, chunks=(9, 11))
    zcore.open(tmp_path, "r+").resize(20, 60)
    with pytest.raises(zcore.SelectionError):
        z.read_many([[33, 0]], shape=(7, 9))
