"""Values of odd types and sizes for every keyword of the functions that create, open and copy, in every format.

Each call ends in a result that holds together, or in a TypeError, a ValueError or a ZcoreError. Nothing else may come
out: no AttributeError from the inside, no OverflowError, no warning as an error.
"""
import contextlib
import datetime
import decimal
import fractions
import inspect
import itertools
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import zcore
from tests.campaign import counted, round_number
from zcore import formats
from zcore.nodes import keywords

FORMATS = [3, 2, "zmeta"]
EXPECTED = (TypeError, ValueError, zcore.ZcoreError)
SMALL_NBYTES = 1 << 20


class Odd:
    """An object without any method, and a class."""


class Named(str):
    """Text that is not quite `str`."""


ODD = [
    None, ..., True, False, 0, 1, -1, 7, 2**31, 2**63, 2**70, -2**70, 1.5, float("nan"), float("inf"), 1j, "", "auto",
    "C", "é", "\ud800", "\0", "x/y", "..", "4 MB", "1e400 B", "i4", "bfloat16", "v2", "zmeta", "blosc", "file",
    Named("i4"), b"", b"blosc", bytearray(b"x"), memoryview(b"xy"), (), [], (1,), [1], [1, 2], [[1]], [[1, 3], 3],
    [None], [None, None], [""], ["a", "b"], ["a", "a"], [()], [[]], (2**70, 1), (-1, -1), (0, 0), [1.5, 2],
    [True, True], [(1, 2), (3, 4)], range(2), {1, 2}, frozenset(), {}, {"a": 1}, {1: 2}, {None: None}, {"a": {1: 2}},
    {"a": Odd()}, {"a": float("nan")}, {"a": {1, 2}}, {"a": b"x"}, {"name": None}, {"name": 5}, {"name": "none"},
    {"name": ["x"]}, {"name": "v2"}, {"name": "default", "separator": 5}, {"shape": 5},
    {"shape": (2, 3), "index_location": 5}, {"shape": "auto", "index_location": "start"}, {"id": 5}, {"id": "zlib"},
    {"id": "zlib", "level": "x"}, {"id": ["zlib"]}, {"name": "gzip"}, {"name": "gzip", "configuration": 5},
    {"name": "gzip", "configuration": {"level": None}}, {"name": "gzip", "configuration": {1: 2}}, {"name": "bytes"},
    {"name": "blosc"}, {"name": "blosc", "configuration": {"cname": 5}},
    {"name": "blosc", "configuration": {"cname": "lz4"}}, {"name": "transpose", "configuration": {"order": 5}},
    {"name": "sharding_indexed", "configuration": {"chunk_shape": 5}}, [{}], [{"name": "bytes"}], [{"name": "blosc"}],
    [{"name": "bytes"}, {"name": "blosc"}], [{"name": "bytes"}, {"name": 5}],
    [{"name": "bytes"}, {"name": "gzip", "configuration": {"level": 2**70}}], ["gzip"], [{"id": "delta", "dtype": 5}],
    [[{"name": "bytes"}]], object(), Odd, Odd(), int, float, str, bytes, object, len, lambda: 0, np, np.int64(3),
    np.float64(1.5), np.bool_(True), np.float32, np.dtype("f4"), np.dtype([("a", "i4"), ("b", "S2")]), np.dtype("O"),
    np.dtype("M8[s]"), np.array(5), np.array([1, 2]), np.array([[1.5, 2], [3, 4]]), np.array([1, None]),
    np.array(["a"]), np.datetime64("NaT", "s"), np.ma.masked, decimal.Decimal("1.5"), fractions.Fraction(1, 3),
    datetime.date(2020, 1, 1), zcore.codecs.BloscCodec(), zcore.codecs.BytesCodec(),
    [zcore.codecs.BytesCodec(), zcore.codecs.GzipCodec()], zcore.codecs.BloscCodec, range(10**9), [range(10**9), 1],
    10**5000, (10**5000, 2), {"shape": 10**5000}, {"shape": range(10**9)},
]


# Arguments that are stored. A range of 10⁹ numbers is valid there, and NumPy would make an array of it.
ELEMENTS = ("data", "arrays", "named")


def is_long(value):
    return any([isinstance(part, range) and len(part) > 100 for part in (value if type(value) is list else [value])])


DATA = np.arange(12, dtype="i4").reshape(4, 3)


def existing():
    """Return a store with a group, an array below it and a group below that."""
    store = zcore.MemoryStore()
    group = zcore.create_group(store, attributes={"a": 1})
    group.create_array("x/y", data=DATA, chunks=(2, 2))
    return store


def an_array():
    store = zcore.MemoryStore()
    zcore.create_array(store, data=DATA, chunks=(2, 2))
    return store


# A name, the function, and a function that returns its keywords and positional arguments by name.
CALLS = {
    "create_array": (zcore.create_array, lambda: {"store": zcore.MemoryStore(), "shape": (4, 3), "dtype": "i4"}),
    "create_array of data": (zcore.create_array, lambda: {
        "store": zcore.MemoryStore(), "data": DATA, "chunks": (2, 2)}),
    "create_array of text": (zcore.create_array, lambda: {
        "store": zcore.MemoryStore(), "data": np.array(["a", "bc"], object), "dtype": str}),
    "create_group": (zcore.create_group, lambda: {"store": zcore.MemoryStore()}),
    "create_hierarchy": (zcore.create_hierarchy, lambda: {"store": zcore.MemoryStore(), "nodes": {}}),
    "array": (zcore.array, lambda: {"data": DATA, "store": zcore.MemoryStore()}),
    "zeros": (zcore.zeros, lambda: {"shape": (4, 3), "store": zcore.MemoryStore()}),
    "full": (zcore.full, lambda: {"shape": (4, 3), "fill_value": 7, "store": zcore.MemoryStore()}),
    "empty": (zcore.empty, lambda: {"shape": (4, 3), "store": zcore.MemoryStore()}),
    "create": (zcore.create, lambda: {"shape": (4, 3), "store": zcore.MemoryStore()}),
    "group": (zcore.group, lambda: {"store": zcore.MemoryStore()}),
    "open": (zcore.open, lambda: {"store": an_array()}),
    "open w": (zcore.open, lambda: {"store": existing(), "mode": "w", "shape": (4, 3), "dtype": "i4"}),
    "open_array": (zcore.open_array, lambda: {"store": an_array()}),
    "open_array a": (zcore.open_array, lambda: {
        "store": zcore.MemoryStore(), "mode": "a", "shape": (4, 3), "dtype": "i4"}),
    "open_array r+": (zcore.open_array, lambda: {"store": an_array(), "mode": "r+"}),
    "open_group": (zcore.open_group, lambda: {"store": existing()}),
    "open_group w": (zcore.open_group, lambda: {"store": existing(), "mode": "w"}),
    "copy": (zcore.copy, lambda: {"source": existing(), "destination": zcore.MemoryStore()}),
    "copy an array": (zcore.copy, lambda: {"source": an_array(), "destination": zcore.MemoryStore()}),
    "save": (zcore.save, lambda: {"store": zcore.MemoryStore(), "arrays": DATA}),
    "save_array": (zcore.save_array, lambda: {"store": zcore.MemoryStore(), "data": DATA}),
    "save_group": (zcore.save_group, lambda: {"store": zcore.MemoryStore(), "arrays": DATA}),
    "load": (zcore.load, lambda: {"store": existing()}),
    "verify": (zcore.verify, lambda: {"store": existing()}),
    "consolidate_metadata": (zcore.consolidate_metadata, lambda: {"store": existing()}),
}


def keywords_of(function):
    """Return the names of all arguments of a function, also those that it passes on."""
    names = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is not parameter.VAR_KEYWORD:
            names.append(name)
        elif "Unpack" in parameter.annotation:
            names += getattr(keywords, parameter.annotation[7:-1]).__annotations__
        else:
            names.append("named")
    return names


def call(name, odd, zarr_format=None):
    """Call a function with odd values, and look at what comes out."""
    function, usual = CALLS[name]
    given = usual()
    given |= {keyword: value for keyword, value in odd.items() if keyword not in ELEMENTS or not is_long(value)}
    if zarr_format is not None and "zarr_format" not in odd and "zarr_format" in keywords_of(function):
        given["zarr_format"] = zarr_format
    arguments = [given.pop(parameter.name) for parameter in inspect.signature(function).parameters.values()
                 if parameter.kind <= parameter.VAR_POSITIONAL and parameter.name in given]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)      # of names that are not portable, and the like
        try:
            made = function(*arguments, **given)
        except EXPECTED:
            return
        except BaseException as error:
            raise AssertionError(f"{name} in format {zarr_format} with {odd} ended in {error!r}") from error
        check(made)


def check(made):
    """What a call returned can be shown, read and opened again."""
    repr(made)
    if isinstance(made, zcore.Array):
        again = zcore.open_array(made.store, path=made.path)
        assert again.metadata == made.metadata
        if made.nbytes <= SMALL_NBYTES:
            with contextlib.suppress(zcore.ZcoreError):     # missing="error"
                assert made[...].shape == again[...].shape == made.shape and made[...].dtype == made.dtype
    elif isinstance(made, zcore.Group):
        assert sorted(zcore.open_group(made.store, path=made.path)) == sorted(made)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Text may be the name of a store."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_each_odd_value_of_each_keyword(name):
    given = list(itertools.product(keywords_of(CALLS[name][0]), ODD, FORMATS))
    for keyword, value, zarr_format in given:
        call(name, {keyword: value}, zarr_format)
    counted(len(given))


NAMES = st.sampled_from(list(CALLS))
ODD_KEYWORDS = NAMES.flatmap(lambda name: st.tuples(st.just(name), st.dictionaries(
    st.sampled_from(keywords_of(CALLS[name][0])), st.sampled_from(ODD), min_size=1, max_size=4)))


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ODD_KEYWORDS, st.sampled_from(FORMATS))
def test_some_odd_values(odd, zarr_format):
    call(*odd, zarr_format)


@pytest.mark.slow
def test_many_odd_values():
    tried = []

    @seed(round_number())
    @settings(max_examples=3000)
    @given(ODD_KEYWORDS, st.sampled_from(FORMATS))
    def check_one(odd, zarr_format):
        tried.append(odd)
        call(*odd, zarr_format)

    check_one()
    counted(len(tried))


# What was found

def test_codecs_of_zmeta_in_any_form():
    """Dicts ended in an AttributeError."""
    blosc = {"name": "blosc", "configuration": {"cname": "zstd"}}
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    for codecs in ([blosc], blosc, {"id": "blosc", "cname": "zstd"}, [zcore.codecs.BloscCodec(cname="zstd")],
                   [little, blosc]):
        made = zcore.create_array(zcore.MemoryStore(), data=DATA, zarr_format="zmeta", codecs=codecs)
        assert made.metadata.codecs[1].configuration["cname"] == "zstd" and np.array_equal(made[...], DATA)
        check(made)
    for codecs, error in (("gzip", ValueError), (5, TypeError), ([{"name": 5}], TypeError),
                          ({"id": "gzip"}, ValueError), ([{"name": "blosc", "configuration": 5}], TypeError),
                          ([], ValueError), ([{"name": "gzip"}], ValueError), ([{"name": "bytes"}], ValueError)):
        with pytest.raises(error, match="expected|encoded by|compresses by"):
            zcore.create_array(zcore.MemoryStore(), data=DATA, zarr_format="zmeta", codecs=codecs)


def test_chunk_key_encodings_of_v2_that_are_none():
    for wrong in (5, True, b"/", ["."], object()):
        with pytest.raises(TypeError, match="chunk_key_encoding: expected 'v2', '.', '/' or a dict"):
            zcore.create_array(zcore.MemoryStore(), data=DATA, zarr_format=2, chunk_key_encoding=wrong)


def test_formats_that_are_none(tmp_path):
    """Some of these were a KeyError."""
    zcore.create_group(tmp_path / "g")
    for wrong in (None, 1, "3", np.dtype("f8"), [3]):
        with pytest.raises(ValueError, match="zarr_format is .*expected one of 3, 2, 'zmeta'"):
            zcore.create_group(zcore.MemoryStore(), zarr_format=wrong)
        if wrong is not None:
            with pytest.raises(ValueError, match="zarr_format is .*expected one of 3, 2, 'zmeta'"):
                zcore.open_group(tmp_path / "g", path=None, zarr_format=wrong)


def test_a_format_has_one_name(monkeypatch):
    """NumPy's 3 equals 3. If it was the first one, it became the name of the format, and was no JSON."""
    asked = []
    monkeypatch.setattr(formats, "_instance", asked.append)
    for same in (3, 3.0, np.int64(3), np.uint8(3)):
        formats.format_of(same)
    assert [type(name) for name in asked] == [int] * 4


def test_threads_of_a_copy_as_numpy_counts_them():
    zcore.copy(existing(), zcore.MemoryStore(), zarr_format=2, chunks=(3, 3), threads=np.int64(2))
    for wrong in (0, True, 1.5, "2"):
        with pytest.raises(ValueError, match="threads is"):
            zcore.copy(existing(), zcore.MemoryStore(), threads=wrong)


HUGE = {"shape": (), "chunks": ("{}", "[{}, 1]"), "shards": ("{}", "{{'shape': {}}}"), "dimension_names": ()}


@pytest.mark.parametrize(("keyword", "form"), [(key, one) for key, forms in HUGE.items() for one in forms or ("{}",)])
@pytest.mark.parametrize("values", ["range(10**9)", "(2 for _ in range(10**9))"])
def test_iterables_that_do_not_fit_into_memory(keyword, form, values):
    """They were made into tuples before they were counted."""
    def call():
        value = eval(form.format(values))
        zcore.create_array(zcore.MemoryStore(), **{"shape": (4, 3), "dtype": "i4", "chunks": (1, 1), keyword: value})

    check_refused(call, 1 << 20)


def test_huge_lists_of_repairs_and_shapes():
    array = an_array_of_no_elements()
    check_refused(lambda: array.resize(range(10**9)), 1 << 20)
    check_refused(lambda: zcore.verify(array.store, repair=range(10**9)), 1 << 20)


@pytest.mark.parametrize("value", ["10**5000", "(10**5000, 2)", "-10**5000", "[[10**5000], 3]"])
@pytest.mark.parametrize("keyword", ["chunks", "shards", "shape"])
def test_integers_of_many_digits(keyword, value):
    """Shards took seconds: they were divided by every length of chunks."""
    check_refused(lambda: zcore.create_array(zcore.MemoryStore(), **{
        "shape": (4, 3), "dtype": "i4", keyword: eval(value)}), 1 << 20)


def an_array_of_no_elements():
    return zcore.create_array(zcore.MemoryStore(), shape=0, dtype="i4")


def check_refused(call, max_nbytes):
    """A call is an error without much memory; without the check it would take 8 GB and a minute."""
    tracemalloc.start()
    try:
        with pytest.raises(EXPECTED) as caught:
            call()
        assert tracemalloc.get_traced_memory()[1] < max_nbytes and str(caught.value)
    finally:
        tracemalloc.stop()
