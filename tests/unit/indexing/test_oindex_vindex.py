"""Fields, zarr-python's kinds of selection, and reads and writes of memory that the caller has."""
import array as memory
import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

import zcore
from tests.both_ways import WAYS, directory
from tests.each import each
from zcore.errors import SelectionError

PLACES = (*WAYS, "memory")
KINDS = ("zmeta", 2, 3, "shards")
NESTED = [("t", "|S3"), ("u", "?")]
# Zarr v3 has no fields that are arrays, and one byte order.
PLAIN = np.dtype([("x", "<i2"), ("y", "<f8"), ("m", "<f4"), ("s", NESTED)])
STRUCTURE = np.dtype([("x", "<i2"), ("y", ">f8"), ("m", "<f4", (2, 3)), ("s", NESTED)])


@pytest.fixture(params=PLACES)
def place(request, tmp_path):
    if request.param == "memory":
        return lambda name: zcore.MemoryStore()
    return lambda name: directory(tmp_path / str(name), request.param)


def make(store, model, chunks, kind=3):
    options = {"zarr_format": kind, "chunks": chunks}
    if kind == "shards":
        options = {"chunks": chunks, "shards": tuple(2 * chunk for chunk in chunks)}
    array = zcore.create_array(store, shape=model.shape, dtype=model.dtype, **options)
    array[...] = model
    return array


def structures(shape, dtype=STRUCTURE):
    model = np.zeros(shape, dtype)
    n = np.arange(model.size).reshape(shape)
    model["x"], model["y"] = n, n / 4
    model["m"] = n[..., None, None] * np.arange(6).reshape(2, 3) if dtype is STRUCTURE else n
    model["s"]["t"], model["s"]["u"] = n.astype("S3"), n % 3 == 0
    return model


def outcome(function, *arguments):
    try:
        return function(*arguments)
    except Exception as exception:
        return exception


# Fields

@pytest.mark.thinned(3, "place", "kind")
@pytest.mark.parametrize("kind", KINDS)
def test_fields(place, kind):
    dtype = STRUCTURE if kind in (2, "zmeta") else PLAIN
    model = structures((5, 4), dtype)
    a = make(place(kind), model, (2, 3), kind)
    for name in dtype.names:
        found = a[name]
        assert (found.dtype, found.shape) == (model[name].dtype, model[name].shape)
        assert found.tobytes() == model[name].tobytes()
        assert np.array_equal(a[name, [3, 0, 0], 1:], model[[3, 0, 0], 1:][name])
        assert np.array_equal(a[name, 1, 2], model[1, 2][name]) and type(a[name, 1, 2]) is type(model[1, 2][name])
    several = a[["x", "m"]]
    assert several.dtype == model[["x", "m"]].dtype and (several == model[["x", "m"]]).all()
    assert (a["y", "x"] == model[["y", "x"]]).all()
    assert (a[np.array(["y", "x"])] == model[["y", "x"]]).all()
    for selection in (..., (1, 2), (slice(None, None, -2), 3), [4, 0], np.arange(20).reshape(5, 4) % 7 == 0):
        part = model[selection]
        for name, value in (("x", 9), ("y", -part["y"]), ("m", 3), ("m", part["m"] + 1), ("s", (b"abcd", True))):
            index = (name, *selection) if isinstance(selection, tuple) else (name, selection)
            a[index] = value
            model[name][selection] = value
            assert a[...].tobytes() == model.tobytes(), (selection, name)
    a[["y", "x"]] = (1.5, 2)
    model[["y", "x"]] = (1.5, 2)
    assert a[...].tobytes() == model.tobytes()


def test_a_field_of_absent_chunks_is_that_of_the_fill_value(place):
    fill = np.array((7, 1.5, [[1, 2, 3], [4, 5, 6]], (b"ab", True)), STRUCTURE)
    a = zcore.create_array(place("a"), shape=5, chunks=2, dtype=STRUCTURE, fill_value=fill[()], zarr_format=2)
    assert a["x"].tolist() == [7] * 5 and (a["m"] == fill["m"]).all()
    a["x", 3] = 1
    assert a["x"].tolist() == [7, 7, 7, 1, 7] and a["y"].tolist() == [1.5] * 5
    assert a.nchunks_initialized == 1


@each("selection", ["q", ["x", "q"], ["x", "x"], ["x", 1], b"x", [["x"]]])
def test_fields_that_are_none(selection):
    model = structures(3)
    a = make(zcore.MemoryStore(), model, (2,), 2)
    for function in ("__getitem__",):
        expected = outcome(getattr(model, function), selection)
        assert isinstance(expected, Exception)
        assert isinstance(outcome(getattr(a, function), selection), type(expected))
    plain = make(zcore.MemoryStore(), np.zeros(3), (2,))
    with pytest.raises(IndexError):
        plain[selection]


def test_fields_of_named_methods():
    model = structures((4, 3))
    a = make(zcore.MemoryStore(), model, (2, 2), 2)
    found = a.get_basic_selection(slice(1, 3), fields=["y", "x"])
    assert found.dtype == np.dtype([("y", ">f8"), ("x", "<i2")]) and found["x"].tolist() == model["x"][1:3].tolist()
    assert a.get_basic_selection((0, 1), fields="x") == model[0, 1]["x"]
    assert a.oindex["x", [2, 0], 1].tolist() == model["x"][[2, 0], 1].tolist()
    assert a.vindex["y", [2, 0], [1, 1]].tolist() == model["y"][[2, 0], 1].tolist()
    assert a.blocks["x", 1].tolist() == model["x"][2:].tolist()
    out = np.zeros((4, 3), "<i2")
    assert a.get_mask_selection(np.ones((4, 3), bool), fields="x", out=out.reshape(-1)) is not None
    assert (out == model["x"]).all()
    a.set_orthogonal_selection(([0, 3], slice(None)), 5, fields="x")
    model["x"][[0, 3]] = 5
    a.set_coordinate_selection(([1, 1], [0, 2]), [8, 9], fields=["x"])
    model["x"][[1, 1], [0, 2]] = [8, 9]
    a.blocks["y", 0] = 2
    model["y"][:2] = 2
    assert a[...].tobytes() == model.tobytes()
    for fields in ("q", ["x", "q"], 3, [1]):
        with pytest.raises(SelectionError):
            a.get_basic_selection(fields=fields)


# zarr-python's kinds

@pytest.mark.parametrize("kind", KINDS)
def test_orthogonal(place, kind):
    model = np.arange(1, 61).reshape(3, 4, 5)
    a = make(place(kind), model, (2, 3, 2), kind)
    lists = [[0, -1], [1, 0, 0], slice(None, None, -1), slice(1, 3), 1, [], "mask"]
    for indices in itertools.islice(itertools.product(lists, repeat=3), 0, None, 1 if kind == 3 else 11):
        indices = [np.arange(n) % 2 == 0 if index == "mask" else index for n, index in zip(model.shape, indices,
                                                                                            strict=True)]
        mesh = [np.arange(n)[np.array(i, int) if isinstance(i, list) else i] for n, i in zip(model.shape, indices,
                                                                                           strict=True)]
        expected = model[np.ix_(*map(np.atleast_1d, mesh))]
        expected = expected.reshape([len(m) for m in mesh if np.ndim(m)])
        found = a.oindex[tuple(indices)]
        assert found.shape == expected.shape and (found == expected).all()
    a.oindex[[2, 0], ..., [4, 0]] = np.arange(16).reshape(2, 4, 2)
    model[np.ix_([2, 0], range(4), [4, 0])] = np.arange(16).reshape(2, 4, 2)
    assert (a[...] == model).all()


@each("selection", [
    9, [9], [[0, 1]], np.ones(2, bool), np.ones((3, 4, 5), bool), (0, 0, 0, 0), None, "x", [0.5], (..., ...), ([], [9]),
])
def test_what_is_not_orthogonal(selection):
    a = make(zcore.MemoryStore(), np.zeros((3, 4, 5)), (2, 3, 2))
    with pytest.raises(IndexError):
        a.oindex[selection]
    with pytest.raises(IndexError):
        a.set_orthogonal_selection(selection, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_points_and_masks(place, kind):
    model = np.arange(1, 61).reshape(3, 4, 5)
    a = make(place(kind), model, (2, 3, 2), kind)
    assert a.vindex[1, 2, 3].tolist() == [model[1, 2, 3]]
    assert a.vindex[[1, -1], [0, 2], 4].tolist() == model[[1, -1], [0, 2], 4].tolist()
    assert (a.vindex[0, [[1], [2]], [3, 0]] == model[0, [[1], [2]], [3, 0]]).all()
    mask = model % 7 < 3
    assert (a.vindex[mask] == model[mask]).all() and (a.get_mask_selection(mask) == model[mask]).all()
    a.vindex[mask] = -model[mask]
    model[mask] = -model[mask]
    a.set_coordinate_selection(([0, 0], [1, 1], [2, 2]), [5, 6])
    model[0, 1, 2] = 6
    assert (a[...] == model).all()


@each("selection", [
    slice(None), ([0], [1]), (0, 0, [9]), np.ones((3, 4), bool), (0, slice(None), 0), (np.ones(3, bool), 0, 0), ...,
    ([0, 1], [0, 1, 2], 0), None,
])
def test_what_are_no_points(selection):
    a = make(zcore.MemoryStore(), np.zeros((3, 4, 5)), (2, 3, 2))
    with pytest.raises(IndexError):
        a.vindex[selection]
    with pytest.raises(IndexError):
        a.vindex[selection] = 1


def test_blocks(place):
    model = np.arange(1, 91).reshape(9, 10)
    for kind, rows, columns in ((3, 2, 3), ("shards", 4, 6)):
        a = make(place(kind), model, (2, 3), kind)
        assert (a.blocks[1] == model[rows:2 * rows]).all()
        assert (a.blocks[-1, 0] == model[8:, :columns]).all()
        assert (a.blocks[:, 1:] == model[:, columns:]).all() and a.blocks[1:1].shape == (0, 10)
        assert (a.blocks[..., :99] == model).all()
        a.blocks[0, 1] = -1
        assert (a[:rows, columns:2 * columns] == -1).all() and (a[:rows, :columns] == model[:rows, :columns]).all()
        for selection in (9, -9, slice(0, 2, 2), [0], None, (0, 0, 0), slice(9, None), "x"):
            with pytest.raises(IndexError):
                a.blocks[selection]
    unequal = zcore.create_array(place("edges"), shape=(9,), chunks=[[2, 2, 1, 4]], dtype="i4")
    unequal[...] = np.arange(9)
    assert unequal.blocks[2:].tolist() == [4, 5, 6, 7, 8] and unequal.blocks[1].tolist() == [2, 3]


def test_basic_alone():
    model = np.arange(12).reshape(3, 4)
    a = make(zcore.MemoryStore(), model, (2, 3))
    assert (a.get_basic_selection() == model).all() and a.get_basic_selection((1, 2)) == 6
    a.set_basic_selection((slice(None), 0), 7)
    assert a[:, 0].tolist() == [7, 7, 7]
    for selection in ([0], None, True):
        with pytest.raises(IndexError):
            a.get_basic_selection(selection)


def test_read_only():
    store = zcore.MemoryStore()
    make(store, np.zeros(4), (2,))
    a = zcore.open_array(store, mode="r")
    for write in (lambda: a.oindex.__setitem__(0, 1), lambda: a.vindex.__setitem__(0, 1),
                  lambda: a.blocks.__setitem__(0, 1), lambda: a.__setitem__([0, 1], 1)):
        with pytest.raises(zcore.ReadOnlyError):
            write()


# The caller's memory

def test_out_of_other_buffers(place):
    model = np.arange(6, dtype="i4")
    a = make(place("a"), model, (4,))
    out = memory.array("i", [0] * 6)
    assert a.read(out=out) is out and out.tolist() == list(range(6))
    out = memoryview(bytearray(24)).cast("i", (6,))[::2]
    a.read([5, 0, 5], out=out)
    assert out.tolist() == [5, 0, 5]
    with pytest.raises(ValueError, match="writable"):
        a.read(out=memoryview(b"\0" * 24).cast("i"))


def test_out_whose_dimensions_cannot_be_one(place):
    model = np.arange(6, dtype="<i4")
    a = make(place("a"), model, (4,))
    out = np.zeros((2, 3, 2), "<i4")[::, ::, 1].T
    a.read(np.array([[5, 0], [1, 1], [2, 4]]), out=out)
    assert out.tolist() == [[5, 0], [1, 1], [2, 4]]


def test_write_of_buffers(place):
    a = make(place("a"), np.zeros(6, "<i4"), (4,))
    a.write([5, 1, 0], memory.array("i", [7, 8, 9]))
    a.write(slice(2, 5), memoryview(np.arange(6, dtype="<i4"))[::2])
    a.write(slice(0, 1), [3])
    assert a[...].tolist() == [3, 8, 0, 2, 4, 7]


def test_direct(place):
    model = np.arange(12, dtype="<i4").reshape(3, 4)
    a = make(place("a"), model, (2, 3))
    dest = np.full((4, 6), -1, "<i4")
    a.read_direct(dest, np.s_[1:, ::2], np.s_[0:2, 3:5])
    assert dest[0:2, 3:5].tolist() == [[4, 6], [8, 10]] and (dest == -1).sum() == 20
    a.read_direct(dest[:3, :4])
    assert (dest[:3, :4] == model).all()
    cast = np.zeros((3, 4))
    a.read_direct(cast)
    assert (cast == model).all()
    a.read_direct(cast, 0, ([2, 0, 1, 1], [0, 1, 2, 3]))
    assert cast[[2, 0, 1, 1], [0, 1, 2, 3]].tolist() == [0, 1, 2, 3]
    a.write_direct(dest, np.s_[3, :4], np.s_[1])
    assert a[1].tolist() == [-1] * 4


def test_astype():
    model = np.arange(6).reshape(2, 3)
    view = make(zcore.MemoryStore(), model, (1, 2)).astype("f4")
    assert view.dtype == "f4" and view.shape == (2, 3) and view.ndim == 2 and view.size == 6 and len(view) == 2
    assert view[1, ::2].dtype == "f4" and view[1, ::2].tolist() == [3, 5] and view[0, 0].dtype == "f4"
    assert np.asarray(view).dtype == "f4" and [row.tolist() for row in view] == model.tolist()


@pytest.mark.parametrize("dtype", ["U3", "S3", "i4", "f8", object])
def test_astype_of_items_of_varying_length(dtype):
    """Their elements are Python's, with no method of NumPy's; what is asked for is an element all the same."""
    model = np.array([["1", "22", "3"], ["4", "5", "600"]], np.dtypes.StringDType())
    a = zcore.create_array(zcore.MemoryStore(), shape=(2, 3), chunks=(2, 2), dtype="string")
    a[...] = model
    for selection in ((0, 1), 1, (1, 2, ...), ([1, 0], [2, 2]), (None, 0, 0)):
        found, expected = a.astype(dtype)[selection], model.astype(dtype)[selection]
        assert type(found) is type(expected) and repr(found) == repr(expected)
    items = zcore.create_array(zcore.MemoryStore(), shape=2, dtype=object, zarr_format=2, filters=[{"id": "json2"}])
    items[...] = [1, 2.5]
    assert items.astype("f8")[1] == 2.5 and list(items.astype("i8")) == [1, 2]


def test_astype_of_structures():
    """Fields are those of the view's type, which takes the values of the array's fields as they follow each other."""
    model = np.array([(1, 2.5), (3, 4)], "i4,f4")
    a = make(zcore.MemoryStore(), model, (1,), 2)
    dtype = np.dtype([("x", "f8"), ("f0", "i8")])
    for selection in ("x", "f0", ["x"], ["f0", "x"], 0, (1,), ...):
        assert repr(a.astype(dtype)[selection]) == repr(model.astype(dtype)[selection])
    assert a.astype(dtype)["f0", 1] == 4
    assert a["f0"].tolist() == [1, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_results_are_given_to_others(place, kind):
    """By DLPack, without a copy; the results of an array are nobody else's."""
    model = np.arange(20.0).reshape(4, 5)
    a = make(place(kind), model, (3, 2), kind)
    for selection in (..., (slice(None, None, -2), [4, 0]), model > 3, (2, ...), ([1, 1], None)):
        result = a[selection]
        shared = np.from_dlpack(result)
        assert np.shares_memory(shared, result) and np.array_equal(shared, model[selection])
        assert result.flags.writeable
    out = np.zeros((5, 4)).T
    assert np.array_equal(np.from_dlpack(a.read(..., out=out)), model)


def test_regions_of_chunks():
    model = np.arange(35).reshape(5, 7)
    for kind, chunks in ((3, (2, 3)), ("shards", (2, 3))):
        a = make(zcore.MemoryStore(), model, chunks, kind)
        copy = np.zeros_like(model)
        regions = list(a.iter_chunks())
        for region in regions:
            copy[region] = a[region]
        assert len(regions) == a.nchunks == 9 and (copy == model).all()
    turned = [{"name": "transpose", "configuration": {"order": [1, 0]}},
              zcore.codecs.ShardingCodec(chunk_shape=(5, 4))]
    a = zcore.create_array(zcore.MemoryStore(), shape=(8, 20), chunks=(8, 20), dtype="i4", codecs=turned)
    assert a.chunks == (4, 5) and next(a.iter_chunks()) == (slice(0, 4, 1), slice(0, 5, 1))
    assert len(list(a.iter_chunks())) == a.nchunks == 8
    a = zcore.create_array(zcore.MemoryStore(), shape=(9,), chunks=[[2, 2, 1, 4]], dtype="i4")
    assert [region[0].stop for region in a.iter_chunks()] == [2, 4, 5, 9]
    assert list(zcore.create_array(zcore.MemoryStore(), shape=(0, 3), chunks=(2, 2), dtype="i4").iter_chunks()) == []
    assert list(zcore.create_array(zcore.MemoryStore(), shape=(), chunks=(), dtype="i4").iter_chunks()) == [()]


# What a selection costs

class CountingStore(zcore.MemoryStore):
    """Counts the objects that are read, and the bytes of each read."""

    def __init__(self):
        super().__init__()
        self.read = []

    def get(self, key, *arguments):
        value = super().get(key, *arguments)
        self.read.append((key, len(value or b"")))
        return value

    def get_with_identity(self, key, *arguments):
        found = super().get_with_identity(key, *arguments)
        self.read.append((key, len(found[0]) if found else 0))
        return found

    def reads(self):
        """Return (object, bytes) of each read since the last call."""
        found, self.read = [(key, n) for key, n in self.read if "c/" in key], []
        return found


@pytest.mark.parametrize("kind", [3, "shards"])
def test_each_object_is_read_once(kind):
    store = CountingStore()
    model = np.arange(1, 401).reshape(20, 20)
    a = make(store, model, (2, 5), kind)
    rows, columns = (2, 5) if kind == 3 else (4, 10)
    rng = np.random.default_rng(0)
    r, c = rng.integers(0, 20, 300), rng.integers(0, 8, 300)
    store.reads()
    for selection in ((r, c), np.ix_(r, c), (r,), (slice(None), c), np.arange(400).reshape(20, 20) % 37 == 0):
        assert (a[selection] == model[selection]).all()
        touched = np.zeros((20, 20), bool)
        touched[selection] = True
        expected = {f"c/{i // rows}/{j // columns}" for i, j in np.argwhere(touched)}
        found = [key for key, _ in store.reads()]
        assert set(found) == expected and (kind == "shards" or len(found) == len(expected))
    a[rng.permutation(20)] = 1
    assert store.reads() == [], "a covered object is not read"
    a[[0, 1, 2, 3, 0, 4]] = 2
    assert {key.split("/")[1] for key, _ in store.reads()} == ({"2"} if kind == 3 else {"1"})


@pytest.mark.parametrize("at", ["start", "end"])
def test_of_a_shard_the_index_is_read_and_what_is_touched(at):
    """V3-SHARD-03: one chunk costs a read of the index and one of the chunk, no matter how many others there are."""
    model = np.arange(1, 1 + 64 * 64, dtype="<i4").reshape(64, 64)
    store = CountingStore()
    shards = zcore.codecs.ShardingCodec(chunk_shape=(8, 8), index_location=at)
    a = zcore.create_array(store, shape=(64, 64), dtype="<i4", chunks=(64, 64), codecs=[shards])
    a[...] = model
    store.reads()
    index, chunk = 64 * 16 + 4, 8 * 8 * 4
    for selection, chunks in (((5, 5), [1]), ((slice(8, 16), slice(8, 16)), [1]), (([9, 15, 9], [9, 8, 8]), [1]),
                              (([0, 63], [63, 0]), [1, 1]), ((slice(7, 9), 60), [1, 1]), ((20,), [8]),
                              (model == 5, [1])):
        assert (a[selection] == model[selection]).all()
        # Chunks that touch each other are read together.
        assert store.reads() == [("c/0/0", index)] + [("c/0/0", n * chunk) for n in chunks], selection
    assert (a[::8] == model[::8]).all()
    assert len(store.reads()) == 1, "what takes most of a shard reads it as a whole"
    a[8:16, 8:16] = 1
    a[[3, 60]] = 2
    store.reads()
    a[...] = 3
    assert store.reads() == [], "what is covered is not read"


def test_of_shards_in_a_shard_too():
    """One chunk costs a read of each index on the way there and one of the chunk."""
    model = np.arange(1, 1 + 64 * 64, dtype="<i4").reshape(64, 64)
    store = CountingStore()
    inner = zcore.codecs.ShardingCodec(chunk_shape=(4, 4), codecs=[zcore.codecs.BytesCodec()])
    a = zcore.create_array(store, shape=(64, 64), dtype="<i4", chunks=(64, 64),
                           codecs=[zcore.codecs.ShardingCodec(chunk_shape=(16, 16), codecs=[inner])])
    a[...] = model
    store.reads()
    for selection, n_shards, n_chunks in (((5, 5), 1, 1), (([9, 11, 9], [9, 8, 8]), 1, 1), (([0, 63], [63, 0]), 2, 2),
                                          ((slice(3, 5), 60), 1, 2)):
        assert (a[selection] == model[selection]).all()
        reads = [n for _, n in store.reads()]
        assert sorted(reads) == [64] * n_chunks + [16 * 16 + 4] * (n_shards + 1), selection


COUNTED = """
import os, sys
import numpy as np
import zcore
from tests.both_ways import WAYS, directory
from zcore.engine import views
from zcore.kernel.plan.shard_index import INDICES
views.TRUSTED_AGE_NS = -1    # else the bytes of a young document are compared
file = os.open("/proc/self/io", os.O_RDONLY)

def counted():
    raw = os.pread(file, 4096, 0)
    numbers = dict(line.split(": ") for line in raw.decode().splitlines())
    return len(raw), int(numbers["syscr"]), int(numbers["rchar"])

def cost(function):
    function()    # what is imported with the first use is read, too
    INDICES.clear()
    n, calls, n_bytes = counted()
    function()
    after = counted()
    return after[1] - calls - 1, after[2] - n_bytes - n

model = np.arange(1, 1 + 64 * 64, dtype="<i4").reshape(64, 64)
for codecs, chunks in ([zcore.codecs.ShardingCodec(chunk_shape=(8, 8))], 64), ([zcore.codecs.BytesCodec()], 8):
    path = os.path.join(sys.argv[1], str(chunks))
    zcore.create_array(path, shape=(64, 64), dtype="<i4", chunks=(chunks, chunks), codecs=codecs)
    a = zcore.open(path, mode="r+", threads=1)
    a[...] = model
    if chunks == 64:
        # In place: the index of one that was renamed may be kept at once.
        with open(os.path.join(path, "c/0/0"), "r+b") as shard:
            raw = shard.read()
            shard.seek(0)
            shard.write(raw)
    # Of an uncompressed file a single element is read alone.
    for selection, n_bytes in (((5, 5), 4), ((slice(8, 16), slice(8, 16)), 256), (([9, 15, 9], [9, 8, 8]), 256),
                               (model == 5, 4)):
        assert cost(lambda: a[selection]) == ((2, 64 * 16 + 4 + 8 * 8 * 4) if chunks == 64 else (1, n_bytes))
    for selection in (..., slice(None, None, -1), np.random.default_rng(0).permutation(64), model > 0):
        assert cost(lambda: a.__setitem__(selection, 7)) == (0, 0)
    assert cost(lambda: a.__setitem__((slice(8, 16), slice(8, 16)), 8))[1] < (20_000 if chunks == 64 else 1)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="needs a system that counts what a process reads")
def test_what_the_kernel_reads(tmp_path):
    """One chunk of a shard is a read of the index and one of the chunk; what is covered is not read."""
    subprocess.run([sys.executable, "-c", COUNTED, str(tmp_path)], check=True, timeout=60)


@pytest.mark.parametrize("kind", [3, "shards"])
def test_only_touched_chunks_are_decoded(tmp_path, kind):
    """All others are damaged; and one that is covered may be, too."""
    model = np.arange(1, 401).reshape(20, 20)
    a = make(zcore.DirectoryStore(str(tmp_path)), model, (2, 5), kind)
    for path in tmp_path.rglob("c/*/*"):
        if path.is_file() and path.parent.name not in ("1", "3"):
            path.write_bytes(b"damage")
    rows = 2 if kind == 3 else 4
    few = [3 * rows, rows + 1, rows, 3 * rows]
    assert (a[few] == model[few]).all() and (a[few, [19, 0, 4, 4]] == model[few, [19, 0, 4, 4]]).all()
    assert (a.oindex[few, [9, 0]] == model[np.ix_(few, [9, 0])]).all()
    with pytest.raises(zcore.ChunkError):
        a[[0, rows]]
    every = np.zeros((20, 20), bool)
    every[:rows] = every[rows, 3] = True
    a[every] = 7
    model[every] = 7
    assert (a[:2 * rows] == model[:2 * rows]).all()
    with pytest.raises(zcore.ChunkError):
        a[[2 * rows, 2 * rows + 1, 0], [0, 0, 0]] = 1


@pytest.mark.parametrize("shuffle", ["noshuffle", "shuffle", "bitshuffle"])
@pytest.mark.parametrize("cname", ["lz4", "zstd", "zlib"])
def test_only_needed_blocks_of_a_chunk_are_decoded(tmp_path, cname, shuffle):
    """The last one is damaged; one point, row or box does without it."""
    model = (np.arange(2**18, dtype="<i4") // 3).reshape(256, 1024)
    codec = zcore.codecs.BloscCodec(cname=cname, clevel=5, shuffle=shuffle, typesize=4, blocksize=4096)
    a = zcore.create_array(str(tmp_path), shape=(256, 1024), chunks=(256, 1024), dtype="<i4", zarr_format=3,
                           compressors=codec, checksum=False)
    a[...] = model
    path = tmp_path / "c" / "0" / "0"
    raw = bytearray(path.read_bytes())
    n_blocks = 2**20 // int.from_bytes(raw[8:12], "little")
    assert n_blocks >= 16
    # Behind the size of its first stream.
    last = int.from_bytes(raw[16 + 4 * (n_blocks - 1):][:4], "little") + 4
    raw[last:last + 8] = b"\xff" * 8
    path.write_bytes(raw)
    for selection in (([3], [7]), ([5],), np.ix_([5], [9]), ([4], slice(None, None, -3)), ([2], [5], ...)):
        assert (a[selection] == model[selection]).all()
    assert (a.read_many([np.s_[9:2:-2, 5:80]]) == model[9:2:-2, 5:80]).all()
    for selection in (([255], [0]), ([255],), np.ix_([255], [9]), ([3, 255], [0, 0])):
        with pytest.raises(zcore.ChunkError):
            a[selection]
    with pytest.raises(zcore.ChunkError):
        a.read_many([np.s_[200:256, 5:80]])


@pytest.mark.parametrize("kind", [2, 3, "shards"])
def test_lists_in_chunks_of_many_blocks(tmp_path, kind):
    rng = np.random.default_rng(5)
    model = rng.integers(0, 50, (500, 900)).astype("<i4")
    a = make(zcore.DirectoryStore(str(tmp_path)), model, (300, 450), kind)
    for n in (2, 40, 4000):
        rows, columns = rng.integers(-500, 500, n), rng.integers(-900, 900, n)
        for selection in ((rows, columns), (rows // 90, columns), (rows // 90,), np.ix_(rows[:40] // 9, columns)):
            assert (a[selection] == model[selection]).all()


def test_a_list_of_whole_inner_chunks_reads_none(tmp_path):
    """Of a shard the chunks that a list covers are not decoded, the others are carried over."""
    model = np.arange(1, 65).reshape(8, 8)
    a = make(zcore.DirectoryStore(str(tmp_path)), model, (2, 4), "shards")
    (shard,) = [path for path in tmp_path.rglob("c/0/0")]
    raw = bytearray(shard.read_bytes())
    raw[20] ^= 0xFF
    shard.write_bytes(raw)
    with pytest.raises(zcore.ChunkError):
        a[0]
    a[[1, 0]] = 3
    model[:2] = 3
    assert (a[...] == model).all()


LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


def test_lists_in_shards_in_shards(place, sharded):
    """Of these the kernel finds boxes; Python does the rest, and fields go the same ways."""
    inner = {"name": "sharding_indexed", "configuration": {
        "chunk_shape": [2, 2], "codecs": [LITTLE], "index_codecs": [LITTLE], "index_location": "end"}}
    model = np.arange(1, 145).reshape(12, 12).astype("<i4")
    a = sharded.create(place("a"), (12, 12), "<i4", (8, 8), (4, 4), codecs=(inner,))
    a[...] = model
    for selection in (([11, 0, 0, 5],), np.ix_([3, 9, 3], [0, 11]), ([1, 10], [10, 1]), model % 5 == 0):
        assert (a[selection] == model[selection]).all()
        a[selection] = model[selection] = -model[selection]
        assert (a[...] == model).all()


def test_masks_in_shards_in_shards(place, sharded):
    """Dense ones, which stay masks, with shards and inner shards in which they are never true."""
    inner = {"name": "sharding_indexed", "configuration": {
        "chunk_shape": [6, 10], "codecs": [LITTLE], "index_codecs": [LITTLE], "index_location": "end"}}
    rng = np.random.default_rng(2)
    model = rng.integers(1, 1000, (46, 57)).astype("<i4")
    a = sharded.create(place("a"), (46, 57), "<i4", (24, 30), (12, 10), codecs=(inner,))
    a[:40] = model[:40]
    model[40:] = 0
    for share in (0.6, 0.9, 1):
        mask = rng.random((46, 57)) < share
        mask[:24, 30:] = mask[30:35, 3:12] = False
        assert (a[mask] == model[mask]).all()
        a[mask] = model[mask] = rng.integers(1, 1000, np.count_nonzero(mask))
        assert (a[...] == model).all()


@pytest.mark.parametrize("dense", [True, False])
def test_errors_about_masks_name_shapes_by_plain_numbers(dense):
    a = make(zcore.MemoryStore(), np.zeros((20, 20)), (5, 5))
    mask = np.zeros((20, 20), bool)
    mask[:10 if dense else 1, :8] = True
    n = 80 if dense else 8
    for write in (lambda: a.__setitem__(mask, [1, 2]), lambda: a.set_mask_selection(mask, [1, 2])):
        with pytest.raises(ValueError, match=rf"from shape \(2,\) into shape \({n},\)"):
            write()


def test_array_that_another_handle_has_shrunk(place):
    store = place("a")
    model = np.arange(40).reshape(10, 4)
    a = make(store, model, (3, 2))
    other = zcore.open_array(store, mode="r+")
    other.resize((6, 4))
    assert a[[5, 0]].tolist() == model[[5, 0]].tolist()
    a[[5, 0], [1, 2]] = -1
    assert other[[5, 0], [1, 2]].tolist() == [-1, -1]
    for selection in ([9, 0], ([0, 7], [0, 1]), np.arange(40).reshape(10, 4) > 35):
        with pytest.raises(SelectionError):
            a[selection]
        b = zcore.open_array(store, mode="r+")
        b.resize((10, 4))
        stale = zcore.open_array(store, mode="r+")
        b.resize((6, 4))
        with pytest.raises(SelectionError):
            stale[selection] = 1


def test_mask_of_an_array_that_another_handle_has_resized(place):
    """As long as all that it is true for is there."""
    store = place("a")
    model = np.arange(1000).reshape(50, 20)
    a = make(store, model, (15, 12))
    mask = np.arange(1000).reshape(50, 20) % 3 > 0
    mask[40:] = False
    for shape in ((45, 20), (40, 20), (60, 30)):
        reader, writer = (zcore.open_array(store, mode="r+") for _ in range(2))
        a.resize(shape)
        assert (reader[mask] == model[mask]).all()
        writer[mask] = model[mask] = -model[mask]
        assert (a[:40, :20] == model[:40]).all()
        a.resize((50, 20))
    reader, writer = (zcore.open_array(store, mode="r+") for _ in range(2))
    a.resize((39, 20))
    with pytest.raises(SelectionError):
        reader[mask]
    with pytest.raises(SelectionError):
        writer[mask] = 1


def test_an_index_may_be_an_array_of_zcore():
    model = np.arange(12).reshape(3, 4)
    a = make(zcore.MemoryStore(), model, (2, 3))
    mask = make(zcore.MemoryStore(), model % 2 == 0, (2, 3))
    rows = make(zcore.MemoryStore(), np.array([2, 0, 0]), (2,))
    assert (a[mask] == model[mask[...]]).all() and (a.vindex[mask] == model[mask[...]]).all()
    assert (a[rows] == model[rows[...]]).all() and (a.oindex[rows, 1:] == model[rows[...], 1:]).all()
    a[rows, 0] = make(zcore.MemoryStore(), np.array([7, 8, 9]), (2,))
    assert a[:, 0].tolist() == [9, 4, 7]


class Integer:
    """What is no int and can be used as one."""

    def __init__(self, value):
        self._value = value

    def __index__(self):
        return self._value


HUGE = [2**63, 2**64 - 4, 2**64 - 1]


@each("huge", [*HUGE, 2**64, -(2**63) - 1, -(2**64)])
@each("ways", ["oindex", "vindex", "blocks", None])
def test_an_index_beyond_64_bits_is_out_of_bounds_and_never_counts_from_the_end(huge, ways):
    array = zcore.array(np.arange(20).reshape(2, 10), chunks=(1, 4))
    accessor = array if ways is None else getattr(array, ways)
    indices = [huge, Integer(huge)]
    if huge in HUGE:
        indices += [np.uint64(huge), np.array(huge, "u8")]
        if ways != "blocks":
            indices += [[0, huge], np.array([0, huge], "u8"), np.array([huge], "u8")]
    for index in indices:
        for selection in ((0, index), ([0, 1], index), (index, 0)):
            if ways == "blocks" and isinstance(selection[0], list):
                continue
            with pytest.raises(SelectionError):
                accessor[selection]
            with pytest.raises(SelectionError):
                accessor[selection] = 99
    assert array[...].tolist() == np.arange(20).reshape(2, 10).tolist()


@pytest.mark.parametrize("huge", [*HUGE, 2**70, -(2**70)])
def test_bounds_of_slices_beyond_64_bits_are_clipped(huge):
    data = np.arange(10)
    array = zcore.array(data, chunks=4)
    for bound in [huge, Integer(huge)] + ([np.uint64(huge)] if huge in HUGE else []):
        for part in (slice(bound), slice(bound, None), slice(bound, None, -1), slice(None, bound, -1)):
            assert array[part].tolist() == array.oindex[part].tolist() == data[part].tolist()
    if huge > 0:
        assert array.blocks[1:huge].tolist() == data[4:].tolist()


def test_bounds_of_blocks_may_be_small_integers_of_numpy():
    array = zcore.array(np.arange(3000), chunks=1000)
    assert array.blocks[np.uint8(1):np.int8(2)][0] == 1000
