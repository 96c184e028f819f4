"""All of NumPy's indexing, read and written: the same value, type and shape, or an instance of NumPy's exception class.

Small cases exhaustively, larger ones by hypothesis; in every format, in shards, in chunks that differ in length, by the
kernel and in Python. The product of all cases is slow, a part of it is always run.
"""
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zcore
from tests.both_ways import WAYS, directory
from tests.each import each
from tests.examples import examples
from tests.judge import ask_the_oracle
from zcore.indexing.numpy import indexed
from zcore.kernel.select.box import basic

KINDS = ("zmeta", "v2", "columns", "v3", "shards", "nested", "edges")
PLACES = (*WAYS, "memory")


@pytest.fixture(params=PLACES)
def place(request, tmp_path):
    """Make stores for what the kernel, or Python, is to do; a function of the number of the store."""
    if request.param == "memory":
        return lambda name: zcore.MemoryStore()
    return lambda name: directory(tmp_path / name, request.param)


def make(store, kind, model, chunks, **options):
    """An array with the elements of `model`; objects of nothing but the fill value, 0, are absent."""
    formats = {"zmeta": "zmeta", "v2": 2, "columns": 2}
    if kind == "columns":
        options["order"] = "F"
    if kind == "nested":
        endian = "big" if model.dtype.byteorder == ">" else "little"
        inner = zcore.codecs.ShardingCodec(chunk_shape=chunks, codecs=[zcore.codecs.BytesCodec(endian=endian)])
        options["codecs"] = [zcore.codecs.ShardingCodec(chunk_shape=[2 * chunk for chunk in chunks], codecs=[inner])]
        chunks = tuple(4 * chunk for chunk in chunks)
    if kind == "shards":
        options["shards"] = tuple(2 * chunk for chunk in chunks)
    if kind == "edges":
        chunks = [unequal(length, chunk) for length, chunk in zip(model.shape, chunks, strict=True)]
    array = zcore.create_array(
        store, shape=model.shape, dtype=model.dtype, chunks=chunks, zarr_format=formats.get(kind, 3), fill_value=0,
        **options)
    array[...] = model
    return array


def unequal(length, chunk):
    """Lengths of chunks that differ, and sum up to `length`; one length where there is nothing to sum up."""
    lengths = []
    for n in itertools.cycle([chunk, 1, chunk + 1]):
        if sum(lengths) == length:
            return lengths or chunk
        lengths.append(min(n, length - sum(lengths)))


def outcome(function, *arguments):
    try:
        return function(*arguments)
    except Exception as exception:
        return exception


def assert_same(actual, expected, what=None):
    if expected is None or isinstance(expected, Exception):
        assert isinstance(actual, type(expected)), (what, repr(actual), repr(expected))
        return False
    if isinstance(actual, Exception):
        raise actual
    assert type(actual) is type(expected), what
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape), what
    assert actual.tobytes() == expected.tobytes(), what
    return True


def check(array, model, selection, *, write=True):
    """Read a selection, and write it with values that are all different."""
    before = outcome(model.__getitem__, selection)
    if not assert_same(outcome(array.__getitem__, selection), before, selection):
        assert_same(outcome(array.__setitem__, selection, 1), outcome(model.__setitem__, selection, 1), selection)
        return
    if write:
        values = np.arange(1, 1 + before.size, dtype=model.dtype).reshape(before.shape)
        model[selection] = values
        array[selection] = values
        assert array[...].tobytes() == model.tobytes(), selection


def model_of(shape, dtype="<i4"):
    model = np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    model[model % 5 == 0] = 0
    return model


def indices_of(length):
    """One index of every kind, for a dimension of that length."""
    return [
        0,
        np.int8(-1),
        length,
        slice(None),
        slice(None, None, -2),
        slice(1, 3),
        slice(0, 1, 0),
        None,
        ...,
        [0, length - 1],
        [length - 1, 0, 0],
        (length - 1, 1),
        [],
        np.array([[0, 1], [length - 1, 0]], np.uint8),
        [[0], [-1]],
        [99],
        np.zeros((0, 2), int),
        np.arange(length) % 2 == 0,
        np.zeros(length, bool),
        [True] * (length + 1),
        True,
        np.False_,
        np.array(1),
        range(2),
        1.0,
        [0.5],
        "x",
        [1, [2]],
    ]


@pytest.mark.parametrize("step", [len(PLACES), pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_pairs_of_indices(request, place, kind, step):
    """Of two dimensions; each read is a write as well. By default each pair has one of the places."""
    model = model_of((5, 4))
    array = make(place("a"), kind, model, (2, 3))
    first = PLACES.index(request.node.callspec.params["place"]) % step
    for pair in itertools.islice(itertools.product(indices_of(5), indices_of(4)), first, None, step):
        check(array, model, pair)
    for index in indices_of(5):
        check(array, model, index)
        check(array, model, (index,))
    check(array, model, model % 2 == 0)
    check(array, model, np.ones((5, 4), bool))
    check(array, model, np.ones((4, 5), bool))
    check(array, model, (model % 3 == 0, None, ...))


def triples(step, first=0):
    return itertools.islice(itertools.product(indices_of(3), indices_of(4), indices_of(5)), first, None, step)


def test_triples_of_indices():
    model = model_of((3, 4, 5))
    array = make(zcore.MemoryStore(), "v3", model, (2, 3, 2))
    for triple in triples(5):
        check(array, model, triple, write=False)
    for triple in triples(23):
        check(array, model, triple)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_all_triples_of_indices(place, kind):
    model = model_of((3, 4, 5))
    array = make(place("a"), kind, model, (2, 3, 2))
    for triple in triples(1):
        check(array, model, triple)
    for axis in range(2):
        mask = np.arange(np.prod(model.shape[axis:axis + 2])).reshape(model.shape[axis:axis + 2]) % 3 == 0
        for index in indices_of((5, 3)[axis]):
            check(array, model, (mask, index) if axis == 0 else (index, mask))


def all_slices():
    ends = [None, *range(-6, 7)]
    return [slice(*ends_) for ends_ in itertools.product(ends, ends, [None, *range(-6, 0), *range(1, 7)])]


@each("length", range(6))
def test_slices(length):
    """Chunks of every length in turn; with ``-m slow``, each slice with each."""
    model = model_of((length,))
    arrays = [make(zcore.MemoryStore(), "v3", model, (chunk,)) for chunk in range(1, 5)]
    for i, selection in enumerate(all_slices()):
        check(arrays[i % 4], model.copy(), selection, write=False)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunk", range(1, 5))
def test_all_slices(place, kind, chunk):
    for length in range(6):
        model = model_of((length,))
        array = make(place(f"{length}"), kind, model, (chunk,))
        for selection in all_slices():
            check(array, model, selection)


# Of more than a few elements

rngs = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@st.composite
def indices(draw, length):
    kind = draw(st.integers(0, 9))
    rng = draw(rngs)
    if kind == 0:
        return draw(st.integers(-length, length))
    if kind < 3:
        ends = st.none() | st.integers(-length - 2, length + 2)
        return slice(draw(ends), draw(ends), draw(st.sampled_from([None, 1, 2, 3, 7, -1, -2, -5])))
    if kind == 3:
        return rng.random(length) < draw(st.sampled_from([0, 0.1, 0.5, 0.9, 1]))
    if kind == 4:
        return None
    if kind == 5:
        return rng.permutation(length)
    if kind == 6:
        return np.arange(length - 1, -1, -draw(st.integers(1, 3)))
    shape = draw(st.sampled_from([(5,), (1,), (3, 5), (3, 1), (2, 1, 1), (0,), (40,), ()]))
    return rng.integers(-length, max(length, 1), shape)


@st.composite
def selections(draw, shape):
    parts = [draw(indices(length)) for length in shape[:draw(st.integers(0, len(shape)))]]
    if len(shape) > 1 and draw(st.integers(0, 4)) == 0:
        first = draw(st.integers(0, len(shape) - 2))
        mask = draw(rngs).random(shape[first:first + 2]) < draw(st.sampled_from([0.02, 0.5, 1]))
        parts[first:first + 2] = [mask]
        parts = parts if len(parts) > first else [*[slice(None)] * first, mask]
    if draw(st.integers(0, 3)) == 0:
        parts.insert(draw(st.integers(0, len(parts))), ...)
    return tuple(parts)


@given(data=st.data(), kind=st.sampled_from(KINDS), way=st.sampled_from(WAYS), swapped=st.booleans())
@examples(120)
def test_like_numpy(tmp_path_factory, data, kind, way, swapped):
    ndim = data.draw(st.integers(1, 4))
    shape = tuple(data.draw(st.lists(st.integers(1, (300, 40, 14, 8)[ndim - 1]), min_size=ndim, max_size=ndim)))
    chunks = tuple(data.draw(st.integers(1, length + 3)) for length in shape)
    dtype = data.draw(st.sampled_from(["|u1", "<i2", "<i4", "<f8", "<c16", "|S3", "|V7", "<M8[s]"]))
    if swapped:
        dtype = dtype.replace("<", ">")
    model = model_of(shape, "<i4").astype("<i8").astype("S8").view("V8").astype(dtype) if dtype == "|V7" else (
        model_of(shape, "<i4").astype(dtype))
    codecs = data.draw(st.sampled_from([{}, {"compressors": None}]))
    if kind in ("zmeta", "nested"):
        codecs = {}
    array = make(directory(tmp_path_factory.mktemp("a"), way), kind, model, chunks, **codecs)
    for _ in range(3):
        selection = data.draw(selections(shape))
        expected = outcome(model.__getitem__, selection)
        if not assert_same(outcome(array.__getitem__, selection), expected, selection):
            continue
        layout = data.draw(st.integers(0, 2))
        if isinstance(expected, np.ndarray) and layout:
            out = np.zeros((*expected.shape, 2), model.dtype)[..., 1] if layout == 1 else (
                np.zeros(expected.shape[::-1], model.dtype).T)
            assert array.read(selection, out=out) is out and out.tobytes() == expected.tobytes()
        values = model.reshape(-1)[data.draw(rngs).integers(0, model.size, expected.shape)]
        if data.draw(st.booleans()) and expected.ndim:
            values = np.asarray(values)[:1]
        model[selection] = values
        array[selection] = values
        assert array[...].tobytes() == model.tobytes()
    ask_the_oracle(array.store, model)


def test_last_of_several_values_stays(place):
    """Also of two lists that repeat themselves, and where chunks are written whole."""
    for kind in KINDS:
        model = np.zeros((6, 6), "<i4")
        array = make(place(kind), kind, model, (2, 3))
        rows, columns = [0, 3, 0, 1, 3, 0, 2, 4, 5], [5, 5, 0, 1, 2, 2, 3, 4, 0]
        values = np.arange(1, 82).reshape(9, 9)
        for target in (model, array):
            target[np.ix_(rows, columns)] = values
        assert (array[...] == model).all()
        for target in (model, array):
            target[rows, columns] = values[0]
        assert (array[...] == model).all()


@pytest.mark.parametrize(("kind", "dtype"), [
    *itertools.product(["v2"], ["|u1", "<f4", ">c16", "|S3"]), ("v3", "<i2"), ("shards", "<f8"),
    *[pytest.param("v2", dtype, marks=pytest.mark.slow) for dtype in (">i2", ">f8", "<c16", ">U2")],
])
def test_many_points(tmp_path, dtype, kind):
    """More than one table of offsets has, in all three loops: points, points around them, and slices."""
    rng, numbers = np.random.default_rng(1), np.arange(100).astype(dtype)    # NumPy makes text of numbers slowly
    for shape, chunks in (((5000,), (2000,)), ((1500, 20), (700, 9)), ((10, 3, 1200), (6, 2, 900))):
        model = numbers[rng.integers(0, 100, shape)]
        array = make(zcore.DirectoryStore(str(tmp_path / f"{len(shape)}")), kind, model, chunks)
        vectors = [rng.integers(-length, length, 1500) for length in shape]
        for selection in (tuple(vectors), np.ix_(*[vector[:700 if n > 100 else 9] for n, vector in
                                                   zip(shape, vectors, strict=True)]),
                          (..., vectors[-1]), (vectors[0],), rng.random(shape) < 0.7):
            expected = model[selection]
            assert array[selection].tobytes() == expected.tobytes()
            values = numbers[rng.integers(0, 100, expected.shape)]
            model[selection] = values
            array[selection] = values
            assert array[...].tobytes() == model.tobytes()


@pytest.mark.thinned(3, "place", "kind")
@pytest.mark.parametrize("kind", KINDS)
def test_dense_masks(place, kind):
    """Masks that stay masks, of all dimensions or of some, beside slices; and chunks in which they are never true."""
    rng = np.random.default_rng(3)
    model = rng.integers(1, 100, (23, 18, 40)).astype("<i2")
    array = make(place(kind), kind, model, (9, 7, 16))

    def mask(*shape, share=0.6):
        made = rng.random(shape) < share
        made[1::5] = made[..., 4:9] = made[:9, :10] = False
        return made

    anything = np.array([0, 1, 2, 255] * 10, "u1").view(bool)
    for selection in (mask(23, 18, 40), mask(23, 18, 40, share=0.1), np.asfortranarray(mask(23, 18, 40)),
                      np.ones((23, 18, 40), bool), np.ones(23, bool), (mask(23, 18), slice(None, None, -2)),
                      (slice(20, 3, -3), None, mask(18, 40)), (..., anything), (slice(4), anything[:18], slice(5, 9))):
        expected = model[selection]
        assert array[selection].tobytes() == expected.tobytes()
        values = rng.integers(0, 100, expected.shape).astype("<i2")
        model[selection] = values
        array[selection] = values
        assert array[...].tobytes() == model.tobytes()
        model[selection] = array[selection] = 0
        assert array[...].tobytes() == model.tobytes()


# Text of 16 bytes and more is not stored in the element itself. The models are of objects: NumPy itself moves such text
# wrongly when it is selected by several lists.
TEXTS = ["", "a", "bc" * 40, "é", "d" * 16, "ef" * 200]


def test_dense_masks_of_text(place):
    model = np.array([TEXTS[i % 6] for i in range(800)], object).reshape(40, 20)
    array = zcore.create_array(place("a"), shape=(40, 20), chunks=(15, 12), dtype=np.dtypes.StringDType())
    array[...] = model
    mask = np.arange(800).reshape(40, 20) % 7 > 1
    assert array[mask].tolist() == model[mask].tolist()
    model[mask] = array[mask] = [str(i) * 5 for i in range(np.count_nonzero(mask))]
    assert array[...].tolist() == model.tolist()


@pytest.mark.parametrize("value", ["new", "of thirty bytes, all in letters"])
@pytest.mark.parametrize("fill_value", ["", "a fill value of 29 characters"])
def test_text_and_objects(place, fill_value, value):
    model = np.array([TEXTS[i % 6] for i in range(20)], object).reshape(4, 5)
    written = zcore.create_array(place("a"), shape=(4, 5), chunks=(2, 2), dtype=str, fill_value=fill_value)
    written[...] = model
    empty = zcore.create_array(place("b"), shape=(4, 5), chunks=(2, 2), dtype=str, fill_value=fill_value)
    for array, expected in ((written, model), (empty, np.full((4, 5), fill_value, object))):
        for selection in [([3, 0, 0],), ([3, 0], [4, 1]), (model == "a",), (slice(None), None, [4, 4]),
                          (..., [2, 0, 1]), ([[3], [0]], [4, 1, 4]), (slice(3, None, -2), [4, 0])]:
            assert array[selection].tolist() == expected[selection].tolist()
            for target in (expected, array):
                target[selection] = value
            assert array[...].tolist() == expected.tolist()
            moved = np.array([f"{i} {value}" for i in range(expected[selection].size)], object)
            for target in (expected, array):
                target[selection] = moved.reshape(expected[selection].shape)
            assert array[...].tolist() == expected.tolist()


@pytest.mark.parametrize("ndim", [33, 64])
def test_text_in_many_dimensions(ndim):
    ones = (1,) * (ndim - 1)
    array = zcore.create_array(zcore.MemoryStore(), shape=(*ones, 3), chunks=(*ones, 2), dtype=str,
                               fill_value="a fill value of 29 characters")
    array[..., 1:2] = TEXTS[2]
    assert array[..., [2, 1, 1]].reshape(-1).tolist() == [array.fill_value, TEXTS[2], TEXTS[2]]
    array[..., [2, 0]] = np.array([TEXTS[4], TEXTS[5]], np.dtypes.StringDType())
    assert array[...].reshape(-1).tolist() == [TEXTS[5], TEXTS[2], TEXTS[4]]


@pytest.mark.parametrize("kind", ["v3", "shards", "v2"])
@pytest.mark.parametrize("shape", [(), (4,), (4, 3), (0, 3)])
def test_values_of_more_dimensions_than_a_mask_gives(kind, shape):
    """To one mask of the array's own shape NumPy assigns vectors only, whatever would broadcast; to others anything."""
    model = model_of(shape)
    array = make(zcore.MemoryStore(), kind if shape else "v3", model, (2,) * len(shape))
    for mask in (np.ones(shape, bool), model % 2 == 0, np.zeros(shape, bool),
                 np.ones(shape, bool).tolist() if model.size else np.ones(shape, bool)):
        for selection in (mask, (mask,), (mask, ...), (mask, None), np.nonzero(mask) if shape else ...):
            n = int(np.sum(mask))
            for value in (5, [6], [[7]], np.full((1, n), 8), np.full((1, 1, 1), 9), np.zeros((0,)), [[1], [2]],
                          np.array("w"), np.array(["w"])):
                assert_same(outcome(array.__setitem__, selection, value),
                            outcome(model.__setitem__, selection, value), (selection, value))
                assert array[...].tobytes() == model.tobytes()


# What is hostile

class Convertible:
    """What NumPy makes an array of."""

    def __init__(self, value):
        self.value = value

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.value, dtype)


class NoIndex:
    def __index__(self):
        raise RuntimeError


@each("selection", [
    2**63,
    np.uint64(2**64 - 1),
    (0, np.array(2**63, np.uint64)),
    ([0], 2**64 - 1),
    2**64,
    -2**63 - 1,
    NoIndex(),
    ([0], NoIndex()),
    Convertible(1),
    (Convertible(2), Convertible(-1)),
    (Convertible(2), Convertible(-1), ...),
    (Convertible([2, 2]), Convertible([[0], [1]])),
    Convertible([True, False, True]),
    [2**62],
    np.array([2**64 - 1, 2**63], np.uint64),
    [-2**63],
    ([0], [2**62]),
    [2**70],
    np.ones(2**16, bool),
    np.ones((3, 3, 3, 3), bool),
    [[[[[[0.0]]]]]],
    [True],
    np.array([0, 1], object),
    ([0, 1], [0, 1, 2]),
    (None,) * 65,
    np.zeros((1,) * 64, int),
])
def test_what_no_array_has(selection):
    model = model_of((3, 4))
    check(make(zcore.MemoryStore(), "v3", model, (2, 2)), model, selection)


def test_few_points_of_a_large_array(place):
    """Neither memory nor time grows with the chunks between them."""
    array = zcore.create_array(place("a"), shape=(2**40, 2**20), chunks=(8, 8), dtype="<i2", zarr_format=3)
    rows, columns = [2**40 - 1, 0, 2**39, 5, 2**39], [7, 2**20 - 1, 3, 3, 3]
    array[rows, columns] = [1, 2, 3, 4, 5]
    assert array[rows, columns].tolist() == [1, 2, 5, 4, 5]
    assert array[np.ix_(rows, columns)].diagonal().tolist() == [1, 2, 5, 4, 5]
    assert array.nchunks_initialized == 4


def test_indices_that_change_meanwhile():
    """Indices are copied when they are checked, so that nobody can change them behind the check."""
    indices = np.array([0, 3, 1])
    product = indexed(indices, (4,))
    (_, (vector,)), = product.groups
    assert not np.may_share_memory(vector, indices)
    mask = np.arange(12).reshape(3, 4) > 5
    product = indexed(mask, (3, 4))
    (_, copy), = product.groups
    assert copy.dtype == bool and (copy == mask).all() and not np.may_share_memory(copy, mask)


@pytest.mark.parametrize(("selection", "is_box"), [
    (([1, 2, 3],), True),
    (([5, 3, 1], None), True),
    ((np.arange(6) < 3, [2]), True),
    (([1, 1],), False),
    (([0, 1, 3],), False),
])
def test_lists_that_are_slices(selection, is_box):
    """A list in even steps is planned as the slice that it is."""
    assert basic(selection, (6, 4)) is None
    assert (indexed(selection, (6, 4)).groups == ()) == is_box
