"""Arrays behave as NumPy's: the same value, type and shape, or an instance of NumPy's exception class.

Every example runs through the kernel, through the Python path over the same kind of files, and in memory; what lies
in the store afterwards is decoded by python-blosc, and read and written by the oracle (`tests/oracle.py`).
"""

import contextlib
import itertools
import tempfile
import warnings

import blosc
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zcore
from tests.both_ways import WAYS, directory
from tests.examples import examples
from tests.judge import ask_the_oracle
from zcore.engine import array_binding as engine
from zcore.kernel.select.box import basic

PLACES = (*WAYS, "memory")
PADDED = np.dtype([("a", "|i1"), ("b", ">f8"), ("c", [("x", "<u2"), ("y", "|S3")])], align=True)
TYPES = [
    np.dtype(text)
    for text in (
        "|b1",
        "|i1",
        "<i2",
        ">i4",
        "<i8",
        "|u1",
        ">u2",
        "<u4",
        ">u8",
        "<f2",
        ">f2",
        ">f4",
        "<f8",
        "<c8",
        ">c16",
        "|S1",
        "|S5",
        "<U3",
        ">U2",
        "|V1",
        "|V7",
        "<M8[D]",
        ">M8[25s]",
        "<m8[ns]",
        ">m8[h]",
    )
] + [PADDED, np.dtype([("p", "<f4", (2, 2)), ("q", ">i2"), ("r", "<M8[D]")])]
COMPRESSORS = ("blosclz", "lz4", "lz4hc", "zlib", "zstd")


@contextlib.contextmanager
def stores():
    """One empty store of each kind, by the name of its place."""
    with tempfile.TemporaryDirectory() as native, tempfile.TemporaryDirectory() as confined:
        yield {
            "native": directory(native, "native"),
            "confined": directory(confined, "confined"),
            "memory": zcore.MemoryStore(),
        }


def elements(rng, dtype, shape):
    """Any elements of a type, as bytes made at random where all bytes are elements; bytes of no field are zero."""
    if dtype.names is not None:
        out = np.zeros(shape, dtype)
        for name in dtype.names:
            out[name] = elements(rng, dtype[name].base, shape + dtype[name].shape)
        return out
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind == "U":
        characters = rng.choice([0, 48, 97, 0xE9, 0x20AC, 0x1F600], (*shape, dtype.itemsize // 4))
        return characters.astype(dtype.str[0] + "u4").view(dtype).reshape(shape)
    raw = rng.integers(0, 256, (*shape, dtype.itemsize), dtype=np.uint8)
    if dtype.kind == "S":
        raw[rng.random(raw.shape) < 0.3] = 0
    return raw.view(dtype).reshape(shape)


def model_of(shape, dtype, fill_value):
    """The NumPy array that a new array equals; bytes of no field are zero."""
    model = np.zeros(shape, dtype)
    if fill_value is not None and dtype.kind != "V":
        model[...] = fill_value
    elif fill_value is not None and dtype.names is not None:
        for name in dtype.names:
            model[name] = model_of(shape + dtype[name].shape, dtype[name].base, fill_value)
    return model


def canonical(array):
    """The bytes of an array, those of no field as zero."""
    array = np.asarray(array)
    if array.dtype.names is None:
        return array.tobytes()
    return b"".join(canonical(array[name]) for name in array.dtype.names)


def outcome(function, *arguments):
    """What a call returns, or the exception it raises; nobody's opinion of a cast is asked."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return function(*arguments)
    except Exception as exception:
        return exception


def assert_same(actual, expected, several=()):
    """Of several mistakes at once, any of the exceptions `several` may tell another one than NumPy does."""
    if isinstance(expected, Exception):
        assert isinstance(actual, (type(expected), *several)), (repr(actual), repr(expected))
        return
    if isinstance(actual, Exception):
        raise actual
    assert type(actual) is type(expected)
    if expected is not None:
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        assert canonical(actual) == canonical(expected)


def judge(array, model, *, touched=None):
    """Decode all objects by python-blosc: chunks tile the array, overhang is fill value, all fill is absent."""
    padded = np.zeros([n * c for n, c in zip(array.cdata_shape, array.chunks, strict=True)], array.dtype)
    fill = np.frombuffer(array.metadata.fill_bytes, array.dtype)[0]
    n_seen = np.zeros(padded.shape, int)
    padded[...] = fill
    padded[tuple(slice(n) for n in array.shape)] = model
    for coords in itertools.product(*map(range, array.cdata_shape)):
        part = tuple(slice(i * c, (i + 1) * c) for i, c in zip(coords, array.chunks, strict=True))
        n_seen[part] += 1
        key = f"{array.path}/__zdata__/{'.'.join(map(str, coords))}.blosc".lstrip("/")
        raw = array.store.get(key)
        is_fill = canonical(padded[part]) == canonical(np.full(array.chunks, fill, array.dtype))
        if touched is None and array.metadata.fill_value is None:
            # Nothing equals an undefined fill value: chunks that were written are stored.
            assert raw is not None or is_fill, coords
        elif touched is None:
            assert (raw is None) == is_fill, (coords, is_fill)
        else:
            assert (raw is not None) == touched(part), coords
        if raw is not None:
            chunk = np.frombuffer(blosc.decompress(raw), array.dtype)
            clean = np.zeros(chunk.shape, array.dtype)
            clean[...] = chunk
            assert canonical(chunk.reshape(array.chunks)) == canonical(padded[part])
            assert clean.tobytes() == chunk.tobytes(), "bytes of no field are not zero"
    assert (n_seen == 1).all()


# Strategies

lengths = st.integers(0, 7)
chunk_lengths = st.integers(1, 9)
rngs = st.integers(0, 2**32 - 1).map(np.random.default_rng)
types = st.sampled_from(TYPES)


@st.composite
def grids(draw, min_ndim=1, max_ndim=4):
    n = draw(st.integers(min_ndim, max_ndim))
    length = lengths if n < 4 else st.integers(0, 4)
    return (
        tuple(draw(st.lists(length, min_size=n, max_size=n))),
        tuple(draw(st.lists(chunk_lengths, min_size=n, max_size=n))),
    )


slices = st.builds(
    slice,
    *[st.none() | st.integers(-9, 9)] * 2,
    st.none() | st.integers(-9, 9).filter(bool) | st.sampled_from([2**31, -(2**31), 2**63, -(2**80)]),
)
indices = st.integers(-9, 9) | st.integers(-9, 9).map(np.int64) | slices | slices


@st.composite
def selections(draw, ndim):
    """Mostly fitting ones: too many indices and integers out of bounds are among them."""
    parts = draw(
        st.lists(indices, max_size=ndim) | st.lists(slices, max_size=ndim) | st.lists(indices, max_size=ndim + 1)
    )
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), ...)
    if len(parts) == 1 and draw(st.booleans()):
        return parts[0]
    return tuple(parts)


SCALARS = [
    0,
    1,
    -1,
    255,
    256,
    2**40,
    -(2**63),
    2**64,
    1.5,
    -0.0,
    float("nan"),
    float("inf"),
    1j,
    True,
    None,
    "",
    "7",
    "abc",
    "nan",
    "2020-01-02",
    "é",
    b"xy",
    b"",
    (1, 2),
    (1, 2.5, (3, "x")),
    np.int64(300),
    np.float32(2.5),
    np.datetime64("2020-01-02"),
    np.timedelta64(5, "s"),
    np.bytes_(b"q"),
    np.str_("12"),
    object(),
    [],
    {},
    [[]],
]


@st.composite
def values(draw, dtype, shape):
    """Something to assign to a selection of `shape`: a scalar, or an array of a shape that may fit, in any layout."""
    if draw(st.integers(0, 3)) == 0:
        # zcore refuses missing values for text, of which NumPy makes words.
        return draw(st.sampled_from([
            one for one in SCALARS if dtype.kind not in "SU" or one is not None and one == one]))
    lengths = [1 if draw(st.integers(0, 3)) == 0 else n for n in shape]
    kind = draw(st.integers(0, 9))
    if kind == 0:
        lengths = lengths[draw(st.integers(0, len(lengths))) :]
    elif kind == 1:
        lengths = [1] * draw(st.integers(1, 2)) + lengths
    elif kind == 2 and lengths:
        lengths[draw(st.integers(0, len(lengths) - 1))] += 1
    rng = draw(rngs)
    if draw(st.booleans()):
        array = elements(rng, dtype, tuple(lengths))
    else:
        # Small numbers, which casts to every type agree about.
        array = rng.integers(0, 100, lengths).astype(draw(types.filter(lambda t: t.kind in "iufcSU")))
    array = np.asarray(array)
    layout = draw(st.integers(0, 6))
    if layout == 0:
        array = np.asfortranarray(array)
    elif layout == 1 and array.ndim:
        array = np.flip(np.flip(array).copy())
    elif layout == 2 and array.ndim:
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., ::2] = array
        array = wide[..., ::2]
    elif layout == 3 and array.ndim and array.shape[0]:
        array = np.broadcast_to(array[:1], array.shape)
    elif layout == 4:
        array.flags.writeable = False
    elif layout == 5:
        array = array.tolist()
    elif layout == 6 and array.ndim:
        array = zcore_array(array)
    return array


def zcore_array(array):
    copy = zcore.create_array(
        zcore.MemoryStore(), shape=array.shape, dtype=array.dtype, zarr_format="zmeta", chunks=(2,) * array.ndim
    )
    copy[...] = array
    return copy


def as_numpy(value):
    return value[...] if isinstance(value, zcore.Array) else value


# Properties


@given(
    data=st.data(),
    grid=grids(),
    dtype=types,
    fill_value=st.sampled_from([0, None]),
    keep=st.booleans(),
    settings_=st.tuples(st.sampled_from(COMPRESSORS), st.integers(0, 9), st.integers(0, 2)),
    rng=rngs,
)
@examples(150)
def test_reads_and_writes(data, grid, dtype, fill_value, keep, settings_, rng):
    """A few writes, each judged by what reads of everything and of a selection give."""
    shape, chunks = grid
    cname, clevel, shuffle = settings_
    model = model_of(shape, dtype, fill_value)
    steps = []
    for _ in range(data.draw(st.integers(1, 3))):
        selection = data.draw(selections(len(shape)))
        target = outcome(model.__getitem__, selection)
        steps.append((selection, data.draw(values(dtype, getattr(target, "shape", ())))))
    with stores() as by_place:
        for place in PLACES:
            expected = model.copy()
            written = np.zeros(shape, bool)
            array = zcore.open(
                by_place[place],
                mode="w",
                shape=shape,
                chunks=chunks,
                dtype=dtype,
                cname=cname,
                clevel=clevel,
                shuffle=shuffle,
                fill_value=fill_value,
                write_empty_chunks=keep,
            )
            assert_same(array[...], expected)
            for selection, value in steps:
                before = expected.copy()
                theirs = outcome(expected.__setitem__, selection, as_numpy(value))
                if isinstance(theirs, Exception):
                    # NumPy may have come some way; what is stored changes wholly or not at all.
                    expected = before
                else:
                    written[selection] = True
                several = (TypeError, ValueError, OverflowError) if isinstance(value, list) else ()
                assert_same(outcome(array.__setitem__, selection, value), theirs, several)
                assert_same(array[...], expected)
                assert_same(outcome(array.__getitem__, selection), outcome(expected.__getitem__, selection))
            judge(
                array, expected, touched=(
                    lambda part, written=written: bool(written[part].any())) if keep or fill_value is None else None
            )
            assert_same(zcore.open(by_place[place])[...], expected)
            ask_the_oracle(by_place[place], expected, canonical)


@given(data=st.data(), grid=grids(), dtype=types, rng=rngs)
@examples(150)
def test_out_takes_any_layout(data, grid, dtype, rng):
    """The elements around those of `out` stay as they are."""
    shape, chunks = grid
    model = elements(rng, dtype, shape)
    selection = data.draw(
        selections(len(shape)).filter(lambda s: not isinstance(outcome(model.__getitem__, s), Exception))
    )
    expected = np.asarray(model[selection])
    steps = [data.draw(st.sampled_from([1, 2, -1, -3])) for _ in expected.shape]
    order = data.draw(st.permutations(range(expected.ndim)))
    around = np.asarray(elements(rng, dtype, tuple([abs(steps[d]) * expected.shape[d] + 1 for d in order])))

    def window(wide):
        """A strided, transposed part of `wide` of the expected shape."""
        part = tuple([slice(1, None, step) if step > 0 else slice(None, 0, step) for step in steps])
        cut = tuple([slice(n) for n in expected.shape])
        return wide.transpose(np.argsort(order))[(*part, ...)][(*cut, ...)]

    with stores() as by_place:
        for place in PLACES:
            array = zcore.open(by_place[place], mode="w", shape=shape, chunks=chunks, dtype=dtype, cname="lz4")
            array[...] = model
            wide = around.copy()
            out = window(wide)
            assert array.read(selection, out=out) is out
            assert_same(np.array(out), np.array(expected, dtype))
            out[...] = window(around)
            assert canonical(wide) == canonical(around)


@given(grid=grids(), dtype=types, rng=rngs, data=st.data())
@examples(100)
def test_both_paths_store_the_same(grid, dtype, rng, data):
    """native = Python path: the same objects with the same content, bytes of no field included."""
    shape, chunks = grid
    whole = elements(rng, dtype, shape)
    dirty = np.frombuffer(rng.bytes(whole.nbytes), np.uint8).copy()
    if dtype == PADDED:
        # Where NumPy leaves what was in memory before.
        dirty = dirty.view(dtype).reshape(shape)
        dirty[...] = whole
        whole = dirty
    selection = data.draw(
        selections(len(shape)).filter(lambda s: not isinstance(outcome(whole.__getitem__, s), Exception))
    )
    contents = []
    with stores() as by_place:
        for place in PLACES:
            array = zcore.open(by_place[place], mode="w", shape=shape, chunks=chunks, dtype=dtype, cname="zstd")
            array[selection] = whole[selection]
            array[selection] = whole[selection]
            objects = {key: array.store.get(key) for key in array.store.list_prefix("__zdata__/")}
            contents.append({key: (blosc.decompress(raw), raw[:16]) for key, raw in objects.items()})
            expected = np.zeros(shape, dtype)
            expected[selection] = whole[selection]
            ask_the_oracle(by_place[place], expected, canonical)
    assert contents[0] == contents[1] == contents[2]


@pytest.mark.parametrize("place", PLACES)
def test_every_slice_of_every_small_array(place):
    """All slices -6 ... 6 on lengths 0 ... 5 and chunks 1 ... 4."""
    bounds = [None, *range(-6, 7)]
    steps = [None, *range(-6, 0), *range(1, 7)]
    with stores() as by_place:
        for length, chunk in itertools.product(range(6), range(1, 5)):
            model = np.arange(1, length + 1, dtype="<i2")
            array = zcore.open(
                by_place[place], mode="w", shape=length, chunks=chunk, dtype="<i2", cname="lz4", lock=None
            )
            array[...] = model
            seen = set()
            for start, stop, step in itertools.product(bounds, bounds, steps):
                selection = slice(start, stop, step)
                expected = model[selection]
                # The box is what the engine sees: slices that mean the same elements are read once.
                box = basic(selection, (length,))
                assert box.shape == expected.shape
                if repr(box) not in seen:
                    seen.add(repr(box))
                    assert array[selection].tolist() == expected.tolist(), selection


@pytest.mark.parametrize("place", PLACES)
def test_every_slice_written(place):
    """All slices of step -3 ... 3 on lengths 0 ... 5, chunks 1 ... 4, each written once and judged."""
    with stores() as by_place:
        for length, chunk in itertools.product(range(6), range(1, 5)):
            seen = set()
            array = zcore.open(
                by_place[place], mode="w", shape=length, chunks=chunk, dtype="<i2", cname="lz4", lock=None
            )
            for start, stop, step in itertools.product(range(-6, 7), range(-6, 7), (-3, -2, -1, 1, 2, 3)):
                selection = slice(start, stop, step)
                model = np.full(length, 9, "<i2")
                values = np.arange(1, len(model[selection]) + 1)
                model[selection] = values
                if model.tobytes() not in seen:
                    seen.add(model.tobytes())
                    array[...] = 9
                    array[selection] = values
                    assert array[...].tolist() == model.tolist(), selection


@given(data=st.data(), grid=grids(1, 3), dtype=types, rng=rngs, n_threads=st.integers(2, 4))
@examples(30)
def test_several_threads(data, grid, dtype, rng, n_threads):
    """What one thread gives, several give: as many chunks as there are, however small."""
    shape, chunks = grid
    model = elements(rng, dtype, shape)
    selection = data.draw(
        selections(len(shape)).filter(lambda s: not isinstance(outcome(model.__getitem__, s), Exception))
    )
    with stores() as by_place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "MIN_SHARED_NBYTES", 0)
        for place in PLACES:
            array = zcore.open(
                by_place[place], mode="w", shape=shape, chunks=chunks, dtype=dtype, cname="lz4", threads=n_threads
            )
            array[...] = model
            assert_same(array[...], model)
            array[selection] = model[selection]
            assert_same(array[selection], model[selection])
            judge(array, model)
            ask_the_oracle(by_place[place], model, canonical)


@pytest.mark.parametrize(("place", "cname"), [
    ("native", "lz4"), ("native", "blosclz"), ("native", "zstd"), ("confined", "lz4"),
    *[pytest.param(place, cname, marks=pytest.mark.slow) for place, cname in itertools.product(
        ("native", "confined"), COMPRESSORS) if cname != "lz4" and (place, cname) not in
      (("native", "blosclz"), ("native", "zstd"))],
])
def test_chunks_of_several_blocks(place, cname):
    """Chunks beyond the cache: split and whole blocks, all shuffles, results contiguous, strided, transposed."""
    rng = np.random.default_rng(7)
    with stores() as by_place:
        for i, (dtype, shuffle) in enumerate(itertools.product(
            ("|u1", ">i2", "|S3", "<f4", "|V7", ">c16", "|S17", "|S256"), (0, 1, 2)
        )):
            dtype, clevel = np.dtype(dtype), (1, 6)[i % 2]
            n = 300_000 // dtype.itemsize // 12 * 12
            numbers = (np.arange(n * dtype.itemsize) // 64 + rng.integers(0, 2, n * dtype.itemsize)).astype("u1")
            model = numbers.view(dtype).reshape(-1, 12)
            array = zcore.open(
                by_place[place],
                mode="w",
                shape=model.shape,
                chunks=(len(model) - 5, 8),
                dtype=dtype,
                cname=cname,
                clevel=clevel,
                shuffle=shuffle,
                lock=None,
            )
            array[...] = model
            judge(array, model)
            assert array[...].tobytes() == model.tobytes()
            out = np.zeros(model.shape[::-1], dtype).T
            assert array.read(out=out).tobytes() == model.tobytes()
            wide = np.zeros((len(model), 24), dtype)
            assert array.read(out=wide[:, ::2]).tobytes() == model.tobytes()
            assert array.read(out=wide[:, :12]).tobytes() == model.tobytes()
            assert array[::-1, 3:].tobytes() == model[::-1, 3:].tobytes()
            assert array[5:-5:3, 1].tobytes() == model[5:-5:3, 1].tobytes()


@given(grid=grids(1, 3), dtype=types, rng=rngs, data=st.data())
@examples(60)
def test_resize_and_append_never_resurrect(grid, dtype, rng, data):
    """Shrink, grow and append against NumPy: what was cut off never comes back, whatever path cut it."""
    shape, chunks = grid
    model = elements(rng, dtype, shape)
    steps = data.draw(
        st.lists(st.tuples(st.sampled_from(["resize", "append"]), st.integers(0, 10**6)), min_size=1, max_size=4)
    )
    with stores() as by_place:
        for place in PLACES:
            array = zcore.open(
                by_place[place], mode="w", shape=shape, chunks=chunks, dtype=dtype, cname="lz4", fill_value=None
            )
            array[...] = expected = model
            for kind, number in steps:
                step_rng = np.random.default_rng(number)
                if kind == "resize":
                    new = tuple(step_rng.integers(0, 8, len(shape)).tolist())
                    array.resize(new)
                    grown = np.zeros(new, dtype)
                    common = tuple(slice(min(a, b)) for a, b in zip(new, expected.shape, strict=True))
                    grown[common] = expected[common]
                    expected = grown
                else:
                    axis = number % len(shape)
                    rows = list(expected.shape)
                    rows[axis] = number % 5
                    rows = elements(step_rng, dtype, tuple(rows))
                    assert array.append(rows, axis) == array.shape
                    expected = np.concatenate([expected, rows], axis, dtype=dtype)
                assert array.shape == expected.shape
                assert_same(array[...], expected)
                judge(array, expected)
                assert_same(zcore.open(by_place[place])[...], expected)
            ask_the_oracle(by_place[place], expected, canonical)


@pytest.mark.slow
@given(
    data=st.data(),
    grid=grids(),
    dtype=types,
    fill_value=st.sampled_from([0, None]),
    keep=st.booleans(),
    settings_=st.tuples(st.sampled_from(COMPRESSORS), st.integers(0, 9), st.integers(0, 2)),
    rng=rngs,
)
@settings(max_examples=4000)
def test_reads_and_writes_at_length(data, grid, dtype, fill_value, keep, settings_, rng):
    test_reads_and_writes.hypothesis.inner_test(data, grid, dtype, fill_value, keep, settings_, rng)
