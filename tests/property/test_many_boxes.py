"""`Array.read_many` against a loop of NumPy's: any boxes of one shape, in all that an array may be stored as."""
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zcore
from tests.both_ways import WAYS, directory
from tests.examples import examples
from tests.property.test_indexing import KINDS, make

DTYPES = ("<i4", ">f8", "i1", "?", "M8[s]", "U3", "S2", [("a", "<i2"), ("b", ">f4")], str, bytes, object)


@st.composite
def sides(draw, length, count):
    """Return an integer, or a slice of that many elements, in a dimension; `count` is None for the integer."""
    if count is None:
        return draw(st.integers(-length, length - 1))
    if count == 0:
        return slice(draw(st.integers(0, length)), 0)
    step = draw(st.integers(1, max(1, (length - 1) // max(1, count - 1))))
    first = draw(st.integers(0, length - 1 - (count - 1) * step))
    last = first + (count - 1) * step
    if draw(st.booleans()):
        return slice(first, last + 1, step)
    return slice(last, first - 1 if first else None, -step)


@st.composite
def boxes(draw, shape):
    """Return selections whose results have one shape. Which dimensions integers select may differ."""
    counts = [draw(st.none() | st.integers(0 if length == 0 else 1, length)) if length else 0 for length in shape]
    if draw(st.integers(0, 9)) == 0:
        counts = [count and draw(st.sampled_from([0, count])) for count in counts]
    selections = []
    for _ in range(draw(st.integers(1, 9))):
        order = counts
        if len(set(shape)) == 1:
            order = draw(st.permutations(counts))
            if [n for n in order if n is not None] != [n for n in counts if n is not None]:
                order = counts
        selections.append(tuple([draw(sides(length, count)) for length, count in zip(shape, order, strict=True)]))
        if draw(st.booleans()) and len(shape) > 1 and order[-1] == shape[-1]:
            selections[-1] = (*selections[-1][:-1], ...)
    return selections


def shape_of(model, selections):
    return np.empty(model.shape, "V1")[selections[0]].shape


def check(array, model, selections, out=None):
    expected = np.empty((len(selections), *shape_of(model, selections)), model.dtype)
    for i, selection in enumerate(selections):
        expected[i] = model[selection]
    got = array.read_many(selections) if out is None else array.read_many(selections, out=out)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    assert got.tolist() == expected.tolist()


@examples(20)
@given(data=st.data())
@pytest.mark.parametrize("kind", KINDS)
def test_like_a_loop(kind, data):
    place = data.draw(st.sampled_from([*WAYS, "memory"]))
    shape = tuple(data.draw(st.lists(st.integers(0, 13), min_size=0, max_size=3)))
    if kind in ("zmeta", "edges") and not shape:
        shape = (5,)
    chunks = tuple(data.draw(st.integers(1, 5)) for _ in shape)
    model = np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape).astype("<i4")
    model[model % data.draw(st.sampled_from([1, 2, 3, 1000])) == 0] = 0
    if shape:
        # Whole slabs are absent.
        model[:data.draw(st.integers(0, 13))] = 0
    options = {"threads": data.draw(st.sampled_from([1, 3])), "cache": data.draw(st.sampled_from([None, "1 MB"]))}
    with tempfile.TemporaryDirectory() as folder:
        store = zcore.MemoryStore() if place == "memory" else directory(Path(folder) / "a", place)
        array = make(store, kind, model, chunks, **options)
        for _ in range(3):
            selections = data.draw(boxes(shape))
            check(array, model, selections)
            wanted = np.empty((len(selections), *shape_of(model, selections)), model.dtype)
            # Any strides, with elements between that stay as they are.
            wide = np.full(tuple(2 * n for n in wanted.shape), -7, model.dtype)
            every = tuple(data.draw(st.sampled_from([slice(None, None, 2), slice(None, None, -2)])) for _ in wide.shape)
            check(array, model, selections, wide[every])
            between = np.ones(wide.shape, bool)
            between[every] = False
            assert (wide[between] == -7).all()


@examples(15)
@given(data=st.data())
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_all_types(dtype, data):
    options = {"zarr_format": 2, "filters": [{"id": "json2"}], "fill_value": None} if dtype is object else {}
    if dtype in (str, bytes):
        options = {"shards": data.draw(st.sampled_from([None, (4, 6)]))}
    array = zcore.create_array(zcore.MemoryStore(), shape=(9, 7), chunks=(2, 3), dtype=dtype, **options)
    values = np.arange(35).reshape(5, 7)
    if dtype is object:
        boxed = np.empty((5, 7), object)
        boxed[...] = [[[int(n)] if n % 2 else str(n) for n in row] for row in values]
        values = boxed
    elif isinstance(dtype, list):
        values = np.rec.fromarrays([values, values / 2], dtype=dtype)
    elif dtype is bytes:
        values = values.astype("S2").astype(object)
    else:
        values = values.astype("T" if dtype is str else dtype)
    array[:5] = values
    check(array, array[...], data.draw(boxes((9, 7))))


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
@examples(20)
@given(data=st.data())
def test_blocks_of_blosc(codec, data):
    """Of a chunk of several blocks only those are decoded that boxes need; all of them where these are many."""
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    model = rng.integers(0, 50, (4, 40, 60)).astype("<u2")
    blosc = zcore.codecs.BloscCodec(typesize=2, cname=codec, clevel=5, shuffle="shuffle", blocksize=256)
    chunks, order = data.draw(st.sampled_from([(4, 32, 32), (2, 9, 60)])), data.draw(st.sampled_from("CF"))
    array = zcore.create_array(zcore.MemoryStore(), data=model, chunks=chunks, compressors=[blosc], order=order)
    for _ in range(4):
        check(array, model, data.draw(boxes(model.shape)))
