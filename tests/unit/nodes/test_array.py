"""What the user holds: NumPy's manners, odd shapes and types, and values of every layout."""

import asyncio
import copy
import datetime
import json
import math
import operator
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

import zcore
from tests.both_ways import WAYS, directory


@pytest.fixture(params=[*WAYS, "memory"])
def store(request, tmp_path):
    return zcore.MemoryStore() if request.param == "memory" else directory(tmp_path, request.param)


def make(store, shape, chunks, dtype="<i4", model=None, **keywords):
    array = zcore.open(store, mode="w", shape=shape, chunks=chunks, dtype=dtype, cname="lz4", **keywords)
    if model is not None:
        array[...] = model
    return array


def without_dimensions(store, element=None, dtype="<i4"):
    """ZM-CHK-13: read, never made."""
    dtype = np.dtype(dtype)
    store.set(
        "__zmeta__",
        f'{{"shape": [], "chunks": [], "dtype": "{dtype.str}", "fill_value": 7, "cname": "lz4", '
        '"clevel": 5, "shuffle": 1}'.encode(),
    )
    if element is not None:
        store.set(
            "__zdata__/0.blosc", zcore.blosc.compress(np.array(element, dtype).tobytes(), typesize=dtype.itemsize)
        )
    return zcore.open(store, mode="r+")


# What it is


def test_properties(store):
    a = make(store, (10, 0, 7), (4, 2, 7), ">f8", fill_value=1.5, path="x/y")
    assert (a.shape, a.chunks, a.dtype, a.ndim, a.size, a.itemsize, a.nbytes) == (
        (10, 0, 7),
        (4, 2, 7),
        np.dtype(">f8"),
        3,
        0,
        8,
        0,
    )
    assert (a.cdata_shape, a.nchunks, a.nchunks_initialized, a.shards, a.order) == ((3, 0, 1), 0, 0, None, "C")
    assert a.fill_value == 1.5 and (a.name, a.path, a.basename) == ("/x/y", "x/y", "y")
    assert a.store is store and a.codecs[0].cname == "lz4" and not a.read_only
    for name in ("dtype", "chunks", "ndim", "store", "metadata", "fill_value", "attrs", "nchunks"):
        with pytest.raises(AttributeError):
            setattr(a, name, 1)


def test_counts(store):
    a = make(store, (10, 10), (4, 4))
    assert (a.nchunks, a.nchunks_initialized) == (9, 0)
    empty = a.nbytes_stored()
    a[0, 0] = 1
    a[9, 9] = 1
    assert a.nchunks_initialized == 2
    assert a.nbytes_stored() == empty + sum(store.getsize(f"__zdata__/{name}.blosc") for name in ("0.0", "2.2"))
    for other in (
        "__zdata__/0.0.blosc.lock",
        "__zdata__/00.1.blosc",
        "__zdata__/9.9.blosc",
        "__zdata__/1.blosc",
        "__zdata__/1.1.1.blosc",
        "__zdata__/x",
        "other",
        "__zdata__/1.1.blosc.partial",
        "__zdata__/-1.1.blosc",
    ):
        store.set(other, b"x")
    assert a.nchunks_initialized == 2, "ZM-CHK-03: other files, and chunks outside the grid, do not count"
    a[...] = 0
    assert a.nchunks_initialized == 0


@pytest.mark.parametrize("zarr_format", [2, "zmeta"])
def test_info_of_arrays_in_arrays_that_numpy_cannot_print(store, zarr_format):
    """Together they have 80 dimensions; no array may have more than 64, a type may."""
    dtype = np.dtype("u1")
    for _ in range(2):
        dtype = np.dtype([("x", (dtype, (1,) * 40))])
    a = zcore.create_array(store, shape=2, chunks=1, dtype=dtype, fill_value=0, zarr_format=zarr_format)
    with pytest.raises(ValueError):
        repr(a.fill_value)
    for text in (repr(a.info), str(a.info), repr(a.metadata)):
        assert "bytes 00" in text
    assert "(1, 1, 1, " in repr(a)
    with pytest.raises(zcore.ArrayMismatchError, match="fill_value bytes 01 was asked for, bytes 00 is there"):
        zcore.open(store, shape=2, dtype=dtype, fill_value=np.frombuffer(b"\1", dtype)[0])


def test_repr_and_info(store):
    root = repr(make(store, 3, 3))
    a = make(store, (10, 10), (4, 4), path="p")
    a[0] = 1
    name = type(store).__name__ if isinstance(store, zcore.MemoryStore) else os.path.basename(store.path)
    assert root == f"<zcore.Array '{name}' (3,) int32, chunks (3,), format zmeta>"
    assert repr(a) == f"<zcore.Array '{name}/p' (10, 10) int32, chunks (4, 4), format zmeta>"
    assert repr(zcore.open(store, path="p")) == repr(a)[:-1] + ", read-only>"
    for text in ("(10, 10) = 100 elements", "int32", "(3, 3), 3 stored", "BloscCodec", "400 decoded", "/p"):
        assert text in repr(a.info_complete()) and text in str(a.info_complete())
    assert a.info["chunks"] == "(4, 4), 9 in a grid of (3, 3)" and "objects" not in a.info
    assert a.info_complete()["chunks"] == f"{a.info['chunks']}, 3 stored" and len(a.info) == 9
    assert a.info_complete()["bytes"].startswith("400 decoded, ") and a.info["bytes"] == "400 decoded"
    assert list(a.info)[:3] == ["path", "store", "format"]
    structured = make(store, 2, 2, [("a", "<i4"), ("b", ">f8", (2,))], fill_value=None)
    assert "('b', '>f8', (2,))" in repr(structured) and "None" in repr(structured.info)


def test_info_of_shards_has_the_codecs_of_a_chunk():
    a = zcore.create_array(zcore.MemoryStore(), shape=(8, 8), chunks=(2, 2), shards=(4, 4), dtype="u1",
                           compressors=zcore.codecs.ZstdCodec(level=1))
    assert a.info["chunks"] == "(2, 2)" and a.info["objects"] == "shards of (4, 4), 4 in a grid of (2, 2)"
    assert a.info["codecs"] == "ZstdCodec(level=1, checksum=False), Crc32cCodec()"
    a[:4] = 1
    assert a.info_complete()["objects"] == f"{a.info['objects']}, 2 stored"
    assert a.info_complete()["chunks"] == a.info["chunks"]


@pytest.mark.parametrize(("data", "dtype"), [(3, "i4"), ([3], "u1"), ([[3.75]], ">f8"), ([True], bool), (2**60, "u8")])
def test_array_of_one_element_is_a_number(data, dtype):
    values = np.array(data, dtype)
    a = zcore.array(values)
    assert (int(a), float(a), complex(a)) == (int(values.item()), float(values.item()), complex(values.item()))
    assert type(int(a)) is int and type(float(a)) is float


@pytest.mark.parametrize("shape", [(2,), (0,), (1, 3)])
@pytest.mark.parametrize("kind", [int, float, complex])
def test_array_of_more_or_no_elements_is_no_number(kind, shape):
    with pytest.raises(TypeError, match=f"{math.prod(shape)} elements"):
        kind(zcore.zeros(shape))


def test_array_of_one_complex_element_is_no_real_number():
    a = zcore.array([1 + 2j])
    assert complex(a) == 1 + 2j
    with pytest.raises(TypeError):
        float(a)


@pytest.mark.parametrize("data", [2, np.uint8(2), True, 2.0, [2], [], [[1, 2]]])
def test_array_is_an_index_and_is_formatted_as_in_numpy(data):
    values, a = np.array(data), zcore.array(data)
    for use in (operator.index, range, "abc".__getitem__, "{:.2f}".format):
        try:
            expected = use(values)
        except TypeError:
            with pytest.raises(TypeError):
                use(a)
        else:
            assert use(a) == expected
    assert f"{a}" == repr(a)


def test_dlpack_is_that_of_a_copy():
    a = zcore.array(np.arange(6, dtype="f4").reshape(2, 3), chunks=(1, 2))
    taken = np.from_dlpack(a)
    assert taken.dtype == "f4" and np.array_equal(taken, a[...])
    assert a.__dlpack_device__() == (1, 0)
    taken = np.from_dlpack(a)
    assert not np.may_share_memory(taken, np.from_dlpack(a))
    with pytest.raises(BufferError):
        a.__dlpack__(copy=False)
    with pytest.raises(BufferError):
        np.from_dlpack(zcore.array(np.arange(3, dtype=">i4")))


@pytest.mark.parametrize("other", [3, 3.0, 3j, True, [1, 2, 3], (1, 2, 3)])
def test_elements_are_not_compared_by_a_handle(other):
    """Python would say False, as for any two objects, and a mask of elements is what was meant."""
    a = zcore.array([1, 2, 3])
    for compare in (operator.eq, operator.ne):
        for one, two in ((a, other), (other, a)):
            with pytest.raises(TypeError, match=r"a\[\.\.\.\]"):
                compare(one, two)


def test_handle_is_compared_with_other_objects():
    a, b = zcore.array([1, 2, 3]), zcore.array([1, 2, 3])
    assert a == a and a != b and a != None and a != "a" and a not in (None, "auto", b)     # noqa: E711
    assert {a: 1, "a": 2, 3: 3}[a] == 1 and [b, a].index(a) == 1
    assert (a == np.array([1, 0, 3])).tolist() == [True, False, True], "NumPy reads the array"
    assert (np.int64(3) == a).tolist() == [False, False, True]
    assert zcore.group() != 3


def test_handles_of_one_array_are_equal(store):
    a = make(store, 5, 2)
    b = zcore.open(store, mode="r+", missing="raise")
    assert a == b and hash(a) == hash(b) and len({a, b}) == 1
    for other in (make(zcore.MemoryStore(), 5, 2), make(store, 5, 2, path="b"), "a", object(), None):
        assert a != other and len({a, other}) == 2
    before = hash(a)
    b.resize(6)
    assert a == b and hash(a) == before, "whatever a handle knows of the shape"
    b[...] = [0, 1, 2, 3, 4, 5]
    assert (a.refresh() == np.arange(6)).tolist() == [True] * 6, "an array of NumPy compares elements"


def test_the_root_of_the_file_system_has_a_name():
    class Root(zcore.MemoryStore):
        label = zcore.DirectoryStore("/").label

    assert repr(make(Root(), 5, 2)).startswith("<zcore.Array '/' ")
    assert repr(make(Root(), 5, 2, path="p")).startswith("<zcore.Array '/p' ")


def test_pickle(tmp_path):
    a = make(str(tmp_path), (5, 4), (2, 2), model=np.arange(20).reshape(5, 4), threads=2, strict=False, path="a")
    for array in (a, zcore.open(str(tmp_path), path="a", missing="raise")):
        for again in (pickle.loads(pickle.dumps(array)), copy.copy(array), copy.deepcopy(array)):
            assert again == array and again[...].tolist() == a[...].tolist()
            assert (again.read_only, again.missing, again.threads, again.strict) == (
                array.read_only,
                array.missing,
                array.threads,
                array.strict,
            )


def test_copies_of_an_array_in_memory():
    array = make(zcore.MemoryStore(), 5, 2, model=3)
    pickled, shallow, deep = pickle.loads(pickle.dumps(array)), copy.copy(array), copy.deepcopy(array)
    array[0] = 1
    assert (pickled[0], shallow[0], deep[0]) == (3, 1, 3)
    deep[1] = 2
    assert array[:2].tolist() == [1, 3] and deep[:2].tolist() == [3, 2]
    with pytest.raises(zcore.ReadOnlyError):
        pickled[0] = 1
    one, other = copy.deepcopy([array, array.store])
    assert one.store is other


def test_there_is_no_method_copy():
    """dask takes what has one for an array in memory, and would call it."""
    assert not hasattr(zcore.Array, "copy")


def test_a_context_manager(store):
    with make(store, 5, 2) as a:
        a[0] = 1
    assert a[0] == 1
    with pytest.raises(KeyError), zcore.open(store):
        raise KeyError


def test_array_protocol(store):
    a = make(store, (3, 4), (2, 2), ">i2", np.arange(12).reshape(3, 4))
    assert np.asarray(a).dtype == ">i2" and np.asarray(a).tolist() == np.arange(12).reshape(3, 4).tolist()
    assert np.asarray(a, "f4").dtype == "f4" and np.array(a, copy=True).sum() == 66
    assert np.add(a, 1).sum() == 78 and np.stack([a, a]).shape == (2, 3, 4)
    with pytest.raises(ValueError, match="copy"):
        np.asarray(a, copy=False)
    with pytest.raises(ValueError, match="copy"):
        np.array(a, copy=False)


def test_length_iteration_and_truth(store):
    a = make(store, (5, 2), (2, 2), model=np.arange(10).reshape(5, 2))
    assert len(a) == 5 and [row.tolist() for row in a] == np.arange(10).reshape(5, 2).tolist()
    assert [row.tolist() for row in reversed(a)] == np.arange(10).reshape(5, 2)[::-1].tolist()
    with pytest.raises(ValueError, match="ambiguous"):
        bool(a)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(make(store, 2**50, 2**20))
    assert list(make(store, 0, 2)) == []
    assert bool(make(store, 1, 1, model=1)) and not bool(make(store, 1, 1))
    scalar = without_dimensions(store)
    for function in (len, iter):
        with pytest.raises(TypeError, match="0-d|unsized"):
            function(scalar)
    assert bool(scalar)


def test_membership(store):
    model = np.arange(12).reshape(6, 2)
    a = make(store, (6, 2), (2, 2), model=model)
    for value in (0, 11, 12, 5.0, 5.5, None, "x", [4, 5], [5, 4], [[4], [5], [0], [0], [0], [0]], np.int8(3), a):
        assert (value in a) == (value in model), value
    text = make(store, 3, 2, "S2", [b"a", b"bc", b""])
    assert b"bc" in text and b"b" not in text and b"" in text
    assert 0 not in make(store, 0, 2) and 0 in make(store, (2**40,), (2**10,)), "the first chunks decide"
    assert 7 in without_dimensions(store) and 8 not in without_dimensions(store)


# Values that are none

TEXT_OR_NONE, TEXT_OR_NAN = [np.dtypes.StringDType(na_object=missing) for missing in (None, np.nan)]
INCOMPLETE = {
    "masked": ("i4", np.ma.array([1, 2, 3], mask=[0, 1, 0])),
    "masked floats": ("f8", np.ma.masked_invalid([1, np.nan, 3])),
    "masked text": ("U3", np.ma.array(["a", "b", "c"], mask=[0, 0, 1])),
    "all masked": ("i4", np.ma.masked_all(3, "i4")),
    "masked fields": ([("a", "i4"), ("b", "f8")], np.ma.array([(1, 2), (3, 4), (5, 6)], mask=[(0, 0), (0, 1), (0, 0)],
                                                             dtype=[("a", "i4"), ("b", "f8")])),
    "list with a masked value": ("f8", [1.0, np.ma.masked, 3.0]),
    "list of masked arrays": ("i4", [np.ma.array(1, mask=True), np.ma.array(2), 3]),
    "text or None": (str, np.array(["a", None, "c"], TEXT_OR_NONE)),
    "text or NaN": (str, np.array(["a", np.nan, "c"], TEXT_OR_NAN)),
    "text or None of a length": ("U4", np.array(["a", None, "c"], TEXT_OR_NONE)),
    "objects": (str, np.array(["a", None, "c"], object)),
    "objects of a length": ("S4", np.array(["a", np.nan, "c"], object)),
    "list": (str, ["a", None, "c"]), "list of a length": ("U4", ["a", float("nan"), "c"]),
}


class Duck:
    """An array of another library that makes itself an array of NumPy, as those of dask do."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values


@pytest.mark.parametrize("case", INCOMPLETE)
@pytest.mark.parametrize("zarr_format", [3, 2])
@pytest.mark.filterwarnings("ignore:.*masked element")
def test_values_that_are_none_are_refused(tmp_path, case, zarr_format):
    """An array in a store has no mask, and text cannot be missing: NumPy writes the words "None" and "nan"."""
    dtype, values = INCOMPLETE[case]
    settings = {"zarr_format": zarr_format}
    a = zcore.create_array(tmp_path / "a", shape=3, chunks=2, dtype=dtype, **settings)
    group = zcore.create_group(tmp_path / "g", **settings)
    given = [values] if isinstance(values, list) else [values, Duck(values)]
    for each in given:
        writes = [
            lambda: a.__setitem__(..., each), lambda: a.write(slice(None), each), lambda: a.append(each),
            lambda: a.set_basic_selection(slice(None), each), lambda: a.set_mask_selection([True] * 3, each),
            lambda: a.set_orthogonal_selection(([0, 1, 2],), each), lambda: a.vindex.__setitem__([2, 1, 0], each),
            lambda: a.blocks.__setitem__(slice(None), each), lambda: a.lazy[:].__setitem__(..., each),
            lambda: zcore.create_array(tmp_path / "b", data=each, dtype=dtype, **settings),
            lambda: zcore.array(each, store=tmp_path / "b", dtype=dtype, **settings),
            lambda: zcore.save_array(tmp_path / "b", each, dtype=dtype, **settings),
            lambda: group.create_array("b", data=each, dtype=dtype),
            lambda: zcore.create_array(tmp_path / "a", data=each, dtype=dtype, overwrite=True, **settings)]
        if not isinstance(each, list):
            writes += [lambda: a.__setitem__(slice(1, 3), values[1:]), lambda: a.write_direct(values)]
        if isinstance(values, np.ma.MaskedArray) or "or N" in case and "length" not in case:
            writes += [lambda: zcore.save(tmp_path / "b", each, zarr_format=zarr_format),
                       lambda: zcore.save(tmp_path / "b", each, [1, 2], zarr_format=zarr_format),
                       lambda: group.__setitem__("b", each)]
        for write in writes:
            with pytest.raises(ValueError, match="masked|missing"):
                write()
    assert a.refresh().shape == (3,) and a.nchunks_initialized == 0
    assert not (tmp_path / "b").exists() and list(group) == []


@pytest.mark.parametrize("value", [np.ma.masked, np.ma.array(7, mask=True)])
def test_a_masked_value_is_none(tmp_path, value):
    a = zcore.create_array(tmp_path, shape=3, dtype="f8")
    for write in (lambda: a.__setitem__(1, value), lambda: a.__setitem__(..., value),
                  lambda: zcore.full(3, value, dtype="f8"), lambda: zcore.create_array(
                      tmp_path / "b", shape=3, dtype="f8", fill_value=value), lambda: zcore.full_like(a, value)):
        with pytest.raises(ValueError, match="masked"):
            write()
    with pytest.raises(TypeError):
        a.attrs["missing"] = value
    assert not a[...].any() and a.nchunks_initialized == 0


@pytest.mark.parametrize("missing", [None, np.nan, float("nan")])
def test_a_missing_text_is_none(missing):
    for dtype in (str, "U4", "S4"):
        for zarr_format in (3, 2) if missing is not None else ():
            with pytest.raises(ValueError):
                zcore.full(3, missing, dtype=dtype, zarr_format=zarr_format)
        a = zcore.create_array(zcore.MemoryStore(), shape=3, dtype=dtype)
        for where in (1, ..., slice(1)):
            with pytest.raises(ValueError, match="missing"):
                a[where] = missing
        assert a.nchunks_initialized == 0


def test_values_of_which_none_is_missing():
    for values in (np.ma.array([1, 2, 3]), np.ma.array([1, 2, 3], mask=[0, 0, 0]), Duck(np.ma.array([1, 2, 3]))):
        a = zcore.create_array(zcore.MemoryStore(), shape=3, dtype="i4")
        a[...] = values
        assert a[...].tolist() == zcore.array(values)[...].tolist() == [1, 2, 3]
    for values in (np.array(["a", "b"], TEXT_OR_NONE), np.array(["a", "b"], TEXT_OR_NAN), np.array(["a", "b"], object)):
        a = zcore.create_array(zcore.MemoryStore(), shape=2, dtype=str)
        a[...] = values
        a[1] = values[1]
        assert a[...].tolist() == ["a", "b"]
    a[...] = [1, 2.5]
    assert a[...].tolist() == ["1", "2.5"]


def test_values_of_pandas_of_which_one_is_missing():
    pandas = pytest.importorskip("pandas")
    a = zcore.create_array(zcore.MemoryStore(), shape=2, dtype=str)
    for values in (pandas.Series(["a", None], dtype="string"), pandas.array(["a", None], dtype="string")):
        with pytest.raises(ValueError, match="missing"):
            a[...] = values
    a[...] = pandas.Series(["a", "b"], dtype="string")
    numbers = zcore.create_array(zcore.MemoryStore(), shape=2, dtype="i4")
    with pytest.raises((ValueError, TypeError)):
        numbers[...] = pandas.array([1, None], dtype="Int64")
    numbers[...] = pandas.array([1, 2], dtype="Int64")
    assert a[...].tolist() == ["a", "b"] and numbers[...].tolist() == [1, 2]


# Text that is none

NO_TEXT = ["<U2", ">U2", [("n", "i1"), ("t", "<U2", (3,))], [("s", [("t", ">U1")])]]


def no_text(dtype):
    """Return an array whose last element has a code point behind Unicode's last one."""
    elements = np.zeros(7, dtype)
    part = elements
    while part.dtype.names is not None:
        part = part[part.dtype.names[-1]]
    order = part.dtype.str[0]
    part.view(np.dtype((f"{order}u4", part.itemsize // 4)))[-1] = 0x110000 if order == "<" else 0xFFFFFFFF
    return elements


@pytest.mark.parametrize("dtype", NO_TEXT, ids=str)
@pytest.mark.parametrize("zarr_format", [3, 2, "zmeta"])
def test_text_that_is_none_is_not_written(tmp_path, dtype, zarr_format):
    """NumPy copies it, and fails when it is used."""
    if zarr_format == 3 and "(3,)" in str(dtype):
        pytest.skip("Zarr v3 has no fields that are arrays")
    elements, settings = no_text(dtype), {"zarr_format": zarr_format}
    dtype = elements.dtype
    a = zcore.create_array(tmp_path / "a", shape=7, chunks=3, dtype=dtype, **settings)
    writes = [
        lambda: a.__setitem__(..., elements), lambda: a.__setitem__(6, elements[6]), lambda: a.write(..., elements),
        lambda: a.append(elements), lambda: a.set_orthogonal_selection(([1, 3],), elements[5:]),
        lambda: a.write_direct(elements), lambda: zcore.create_array(tmp_path / "b", data=elements, **settings),
        lambda: zcore.create_array(tmp_path / "a", data=elements, overwrite=True, **settings)]
    if dtype.names is not None:
        writes.append(lambda: a.__setitem__(dtype.names[-1], elements[dtype.names[-1]]))
    for write in writes:
        with pytest.raises(ValueError, match=r"text has the code point 0x.*, the largest is 0x10ffff"):
            write()
    assert a.refresh().shape == (7,) and a.nchunks_initialized == 0 and not (tmp_path / "b").exists()
    if dtype.names is not None:
        with pytest.raises(ValueError, match="text has the code point"):
            zcore.create_array(tmp_path / "b", shape=2, dtype=dtype, fill_value=elements[6], **settings)
        assert not (tmp_path / "b").exists()
    fine = np.full(7, "\U0010ffff", "U1")
    a = zcore.create_array(tmp_path / "c", data=fine, **settings)
    assert (a[...] == fine).all() and a[3] == fine[3]


@pytest.mark.parametrize("dtype", NO_TEXT, ids=str)
@pytest.mark.parametrize("zarr_format", [3, 2, "zmeta"])
def test_text_that_is_none_is_damage(tmp_path, dtype, zarr_format):
    if zarr_format == 3 and "(3,)" in str(dtype):
        pytest.skip("Zarr v3 has no fields that are arrays")
    elements = no_text(dtype)
    dtype = elements.dtype
    # Bytes of the same size, of which the last object is put into the array of text.
    plain = {"zmeta": {}, 2: {"compressors": None}, 3: {"compressors": None, "checksum": False}}[zarr_format]
    a, raw = [zcore.create_array(tmp_path / name, shape=7, chunks=3, dtype=type, zarr_format=zarr_format,
                                 write_empty_chunks=True, **plain)
              for name, type in (("a", dtype), ("raw", f"V{dtype.itemsize}"))]
    a[...] = np.zeros(7, dtype)
    raw[...] = elements.view(raw.dtype)
    key = a.metadata.chunk_keys.encode((2,))
    a.store.set(key, raw.store.get(key))
    reads = [
        lambda: a[...], lambda: a[6], lambda: a[5:], lambda: a[[0, 6]], lambda: a.read(out=np.empty(7, dtype)),
        lambda: a.oindex[[6]], lambda: a.read_many([6, 0]), lambda: list(a), lambda: np.asarray(a.lazy[6:]),
        lambda: zcore.copy(a, tmp_path / "copy", chunks=2), lambda: asyncio.run(a.async_read(6))]
    for _ in range(3):
        for read in reads:
            with pytest.raises(zcore.ChunkError, match="text has the code point"):
                read()
    assert (a[:6] == np.zeros(6, dtype)).all() and a[0] == np.zeros((), dtype)
    assert not zcore.verify(tmp_path / "a").ok


# Reading into the caller's memory


def test_out(store):
    model = np.arange(60, dtype="<i4").reshape(6, 10)
    a = make(store, (6, 10), (4, 4), model=model)
    out = np.zeros((6, 10), "<i4")
    assert a.read(out=out) is out and (out == model).all()
    assert a.read(...).tolist() == model.tolist() and a.read(2).tolist() == model[2].tolist()
    cell = np.zeros((), "<i4")
    a.read((2, 3), cell)
    assert cell == 23 and a.read((2, 3)).shape == ()
    half = np.zeros((3, 5), "<i4")
    a.read((slice(None, None, -2), slice(1, None, 2)), out=half)
    assert (half == model[::-2, 1::2]).all()
    structured = np.zeros((6, 10), [("a", "i1"), ("b", "<i4")])
    a.read(out=structured["b"])
    assert (structured["b"] == model).all() and not structured["a"].any()


@pytest.mark.parametrize(
    ("out", "exception"),
    [
        ([0] * 6, TypeError),
        (bytearray(24), TypeError),
        (np.zeros(6, "<i8"), TypeError),
        (np.zeros(6, ">i4"), TypeError),
        (np.zeros(6, "<u4"), TypeError),
        (np.zeros(5, "<i4"), ValueError),
        (np.zeros((6, 1), "<i4"), ValueError),
        (np.zeros((), "<i4"), ValueError),
        (np.broadcast_to(np.int32(0), 6), ValueError),
    ],
)
def test_an_out_that_does_not_fit(store, out, exception):
    a = make(store, 6, 4, model=5)
    with pytest.raises(exception, match="out"):
        a.read(out=out)


@pytest.mark.parametrize("strides", [(0, 4), (4, 0), (4, 4), (40, 2), (-4, 4), (0, 0), (8, -4)])
def test_an_out_whose_elements_overlap_is_refused(store, strides):
    """Its elements would be those that were written last."""
    a = make(store, (6, 10), (4, 4), model=np.arange(60).reshape(6, 10))
    out = np.ndarray((2, 3), "<i4", np.zeros(200, "u1"), 100, strides)
    s = np.s_[:2, :3]
    reads = [
        lambda: a.read(s, out=out), lambda: a.get_basic_selection(s, out=out),
        lambda: a.get_orthogonal_selection(([0, 1], [0, 2, 1]), out=out), lambda: a.read_many([s], out=out[None]),
        lambda: a.get_coordinate_selection(([[0], [1]], [[0, 2, 1]]), out=out), lambda: a.read_direct(out, s),
        lambda: a.read(s, out=memoryview(out)),
        lambda: asyncio.run(a.async_read(s, out=out)),
        lambda: a.read_direct(out.view("<u4"), s), lambda: a.read_direct(out, s, np.s_[::-1])]
    for read in reads:
        with pytest.raises(ValueError, match="overlap"):
            read()
        assert not out.any()


def test_an_out_of_any_strides_without_overlap(store):
    model = np.arange(60, dtype="<i4").reshape(6, 10)
    a = make(store, (6, 10), (4, 4), model=model)
    part = model[:2, :3]
    for strides, offset in (((12, 4), 0), ((4, 8), 0), ((-12, 4), 12), ((-40, -5), 60), ((8, 16), 0), ((4, 8), 3)):
        out = np.ndarray((2, 3), "<i4", np.zeros(200, "u1"), offset, strides)
        assert (a.read(np.s_[:2, :3], out=out) == part).all()
    one = np.ndarray((1, 3, 1), "<i4", np.zeros(200, "u1"), 0, (0, 4, 1))
    a.get_orthogonal_selection(([0], slice(3)), out=one[:, :, 0])
    nothing = np.ndarray((0, 3), "<i4", np.zeros(4, "u1"), 0, (0, 0))
    assert a.read(np.s_[:0, :3], out=nothing) is nothing


def test_out_of_a_subclass(store, tmp_path):
    a = make(store, (4, 3), (2, 2), model=np.arange(12).reshape(4, 3))
    masked = np.ma.zeros((4, 3), "<i4")
    a.read(out=masked)
    mapped = np.memmap(tmp_path / "map", "<i4", "w+", shape=(4, 3))
    a.read(out=mapped)
    row = np.ma.zeros(3, "<i4")
    a.read(1, out=row)
    assert masked.tolist() == mapped.tolist() == np.arange(12).reshape(4, 3).tolist() and row.tolist() == [3, 4, 5]


@pytest.mark.parametrize("shape", [2**45, 2**61, (2**31, 2**31)])
def test_a_result_larger_than_memory(store, shape):
    """Larger than is to be had, and larger than NumPy can say."""
    a = make(store, shape, 2**10, "<i8")
    n_bytes = a.size * 8
    for call in (lambda: a[...], lambda: a.read(), lambda: np.asarray(a), lambda: a[::2, ...]):
        with pytest.raises(MemoryError, match="no memory for the [0-9]+ bytes") as caught:
            call()
        assert isinstance(caught.value, zcore.OutOfMemoryError) and caught.value.nbytes in (n_bytes, n_bytes // 2)
        assert str(caught.value.nbytes) in str(caught.value)
    assert a[(-1,) * a.ndim] == 0


# Odd things


def test_no_dimensions(store):
    a = without_dimensions(store)
    assert a[()] == 7 and type(a[()]) is np.int32 and type(a[...]) is np.ndarray and a[...].shape == () == a.shape
    assert (a.size, a.nchunks, a.nchunks_initialized, a.cdata_shape, a.nbytes) == (1, 1, 0, (), 4)
    a = without_dimensions(store, 5)
    assert a[()] == 5 and a[...] == 5 and a.nchunks_initialized == 1 and np.asarray(a) == 5
    for index in (0, slice(None), (..., 0)):
        with pytest.raises(IndexError):
            a[index]
    a[...] = 9
    assert a[()] == 9
    a[()] = 7
    assert a[()] == 7 and a.nchunks_initialized == 0
    with pytest.raises(ValueError, match="dimension"):
        zcore.open(store, mode="w", shape=(), dtype="i4", cname="lz4")
    with pytest.raises(ValueError):
        a.append([1])
    with pytest.raises(ValueError):
        a.resize(3)


@pytest.mark.parametrize("shards", [None, ()])
@pytest.mark.parametrize(("dtype", "value"), [("string", "äö"), ("bytes", b"\0ab")])
def test_one_item_of_varying_length_without_dimensions(store, dtype, value, shards):
    a = zcore.create_array(store, shape=(), chunks=(), shards=shards, dtype=dtype)
    assert a[()] == type(value)()
    a[...] = value
    assert a[()] == value and type(a[()]) is type(value) and a.nchunks_initialized == 1
    a[()] = type(value)()
    assert a[()] == type(value)() and a.nchunks_initialized == 0


@pytest.mark.parametrize("shape", [(), (2, 2), (3, 5)])
def test_a_fill_value_that_is_a_list_is_one_item(store, shape):
    zcore.create_array(store, shape=shape, chunks=(2,) * len(shape), dtype=object, filters=[{"id": "json2"}],
                       fill_value=0, zarr_format=2)
    document = json.loads(store.get(".zarray"))
    store.set(".zarray", json.dumps({**document, "fill_value": [1, 2]}).encode())
    a = zcore.open(store, mode="r+")
    assert all(item == [1, 2] for item in a[...].reshape(-1).tolist())
    if shape:
        a[0, 0] = "x"
        assert a[0, 0] == "x" and a[0, 1] == [1, 2]


def test_sixty_four_dimensions(store):
    for shape, chunks in (((1,) * 62 + (3, 2), (1,) * 63 + (2,)), ((2,) * 8 + (1,) * 56, (1,) * 64)):
        model = np.arange(np.prod(shape)).astype("<i4").reshape(shape)
        a = make(store, shape, chunks, model=model)
        assert np.array_equal(a[...], model)
        assert np.array_equal(a[(..., slice(None, None, -1))], model[..., ::-1])
        assert a[(0,) * 64] == 0 and a[(-1,) * 64] == model.size - 1
        a[(0,) * 63] = 5
        model[(0,) * 63] = 5
        assert np.array_equal(a[...], model)
    with pytest.raises(zcore.UnsupportedError, match="dimensions"):
        make(store, (1,) * 65, (1,) * 65)


@pytest.mark.parametrize("options", [
    {"zarr_format": 2}, {"zarr_format": 2, "order": "F", "dtype": ">i4"}, {"zarr_format": 2, "dtype": "S5"},
    {"zarr_format": 3}, {"zarr_format": 3, "shards": (2, *[1] * 62, 4)}, {"zarr_format": 3, "dtype": "T"},
], ids=repr)
def test_lists_in_sixty_four_dimensions(store, options):
    """NumPy's own loops stop at 32 dimensions here and there, and lists at 63."""
    shape = (2, *[1] * 62, 3)
    model = np.arange(6).reshape(shape).astype(options.get("dtype", "i4"))
    a = zcore.create(store=store, shape=shape, chunks=(1,) * 63 + (2,), **{"dtype": "i4", **options})
    a[...] = model
    assert np.array_equal(a[...], model) and np.array_equal(a[..., ::-1], model[..., ::-1])
    rows, points = ([1, 0],), ([1, 0], *[0] * 62, [2, 1])
    assert np.array_equal(a[rows], model[rows])
    assert np.array_equal(a.oindex[rows], model[rows])
    assert np.array_equal(a.vindex[points], model.reshape(2, 3)[[1, 0], [2, 1]])
    assert np.array_equal(a[model == model[rows]], model[model == model[rows]])
    a[rows] = model
    a.vindex[points] = model[(0,) * 64]
    expected = model[rows].reshape(2, 3)
    expected[[1, 0], [2, 1]] = model[(0,) * 64]
    assert np.array_equal(a[...].reshape(2, 3), expected)


@pytest.mark.parametrize(
    ("shape", "chunks"), [((0,), (1,)), ((0, 5), (3, 2)), ((5, 0), (1, 1)), ((0, 0, 0), (1, 2, 3))]
)
def test_no_elements(store, shape, chunks):
    a = make(store, shape, chunks, model=1)
    assert a[...].shape == shape and a.nchunks_initialized == 0 and a[:0].shape == (0, *shape[1:])
    a[...] = np.ones(shape)
    a[...] = 5
    with pytest.raises(IndexError):
        a[(0,) * len(shape)]
    with pytest.raises(ValueError):
        a[...] = np.ones(3)


def test_empty_selections_touch_nothing(store):
    a = make(store, (5, 5), (2, 2))
    before = sorted(store.list())
    for selection in (slice(3, 3), (slice(None), slice(5, 0)), slice(4, 1), (slice(0), slice(0))):
        a[selection] = 9
        assert a[selection].size == 0
    assert sorted(store.list()) == before
    with pytest.raises(ValueError):
        a[3:3] = [1, 2, 3, 4]


def test_a_chunk_for_each_element(store):
    model = np.arange(24).reshape(2, 3, 4)
    a = make(store, (2, 3, 4), (1, 1, 1), "<i8", model)
    assert a.nchunks_initialized == 23, "0 is the fill value"
    assert (a[::-1, ::2, 1:3] == model[::-1, ::2, 1:3]).all()


def test_a_chunk_larger_than_the_array(store):
    a = make(store, (3, 2), (100, 1000), model=np.arange(6).reshape(3, 2))
    assert a[...].tolist() == [[0, 1], [2, 3], [4, 5]]
    raw = np.frombuffer(zcore.blosc.decompress(store.get("__zdata__/0.0.blosc")), "<i4").reshape(100, 1000)
    assert raw.sum() == 15, "ZM-CHK-06: stored in full, fill value beyond the array"
    a.resize(100, 1000)
    assert a[...].sum() == 15


@pytest.mark.parametrize("dtype", ["S1000", "V300", "U100", "S256", "S255", [("a", "<f8", (10, 10)), ("b", "i1")]])
def test_large_items(store, dtype):
    dtype = np.dtype(dtype)
    model = np.frombuffer(
        (np.arange(7 * 4 * dtype.itemsize) // 40 % 100 + 30).astype("u1").tobytes(), f"V{dtype.itemsize}"
    ).reshape(7, 4)
    if dtype.kind == "U":
        model = np.array([[f"{i}é{j}" * 20 for j in range(4)] for i in range(7)], dtype)
    model = model.view(dtype)
    a = make(store, (7, 4), (3, 3), dtype, model)
    assert a[...].tobytes() == model.tobytes() and a[1:6:2, ::-1].tobytes() == model[1:6:2, ::-1].tobytes()
    typesize = zcore.blosc.header(store.get("__zdata__/0.0.blosc")).typesize
    assert typesize == (dtype.itemsize if dtype.itemsize < 256 else 1), "BL-ENC-02"
    assert zcore.open(store)[6, 3].tobytes() == model[6, 3].tobytes()


def test_byte_order_of_what_comes_back(store):
    a = make(store, 5, 2, ">i4", [1, 2, 3, 4, 5])
    assert a[1:3].dtype == ">i4" and type(a[1]) is np.int32 and a[1] == 2
    assert zcore.blosc.decompress(store.get("__zdata__/0.blosc")) == b"\0\0\0\1\0\0\0\2", "ZM-CHK-10"
    a[2:4] = np.array([7, 8], "<i4")
    a[4, ...] = np.array([9], ">i4")
    assert a[...].tolist() == [1, 2, 7, 8, 9]


def test_one_element_keeps_its_byte_order(store):
    """A dimension too many used to be dropped by an index that made a native scalar of the last one."""
    a = make(store, (2, 2), (1, 1), ">i4")
    a[..., 0, 0] = np.array([[258]], ">i4")
    assert a[0, 0] == 258


# Values


def test_values_of_every_layout(store):
    model = np.arange(48, dtype="<i4").reshape(6, 8)
    frozen = model.copy()
    frozen.flags.writeable = False
    wide = np.zeros((6, 16), "<i4")
    wide[:, ::2] = model
    unaligned = np.frombuffer(b"x" + model.tobytes(), "<i4", offset=1).reshape(6, 8)
    for value in (
        model,
        np.asfortranarray(model),
        np.flip(np.flip(model).copy()),
        frozen,
        wide[:, ::2],
        unaligned,
        model.astype(">i4"),
        model.astype("<i8"),
        model.astype("f4"),
        model.tolist(),
        model.T.copy().T,
        memoryview(model),
        np.ma.array(model),
        make(zcore.MemoryStore(), (6, 8), (4, 3), model=model),
    ):
        a = make(store, (6, 8), (4, 4))
        a[...] = value
        assert (a[...] == model).all()
        a[::-1, 1:3] = np.asarray(value)[:, 1:3] if not isinstance(value, list) else model[:, 1:3]
        assert (a[:, 1:3] == model[::-1, 1:3]).all() and (a[:, 3:] == model[:, 3:]).all()


def test_broadcasting(store):
    a = make(store, (3, 4), (2, 2))
    for value, expected in (
        (5, np.full((3, 4), 5)),
        (np.arange(4), np.tile(np.arange(4), (3, 1))),
        (np.arange(3)[:, None], np.repeat(np.arange(3)[:, None], 4, 1)),
        (np.ones((1, 1, 1, 4)), np.ones((3, 4))),
        (np.broadcast_to(np.arange(4), (3, 4)), np.tile(np.arange(4), (3, 1))),
        (np.float64(2), np.full((3, 4), 2)),
        (np.array(7), np.full((3, 4), 7)),
        (make(zcore.MemoryStore(), 4, 2, model=[1, 2, 3, 4]), np.tile([1, 2, 3, 4], (3, 1))),
    ):
        a[...] = value
        assert (a[...] == expected).all()
    for wrong in (np.ones(3), np.ones((4, 3)), np.ones((2, 3, 4)), [1, 2, 3], np.ones((3, 4, 1)), [[[1] * 4] * 3], []):
        with pytest.raises(ValueError):
            a[...] = wrong
    assert (a[...] == np.tile([1, 2, 3, 4], (3, 1))).all()


def test_a_value_that_is_an_array_of_the_same_store(store):
    a = make(store, 6, 4, model=np.arange(6))
    a[1:] = zcore.open(store)[:-1]
    assert a[...].tolist() == [0, 0, 1, 2, 3, 4]
    a[...] = a
    assert a[...].tolist() == [0, 0, 1, 2, 3, 4]
    b = make(store, 1, 1, path="b", model=9)
    a[2] = b[0]
    a[3:4] = b
    assert a[...].tolist() == [0, 0, 9, 9, 3, 4]


@pytest.mark.parametrize(
    ("dtype", "value", "exception"),
    [
        ("<i4", "x", ValueError),
        ("<i4", 2**31, OverflowError),
        ("|u1", -1, OverflowError),
        ("<i4", None, TypeError),
        ("<i4", 1j, TypeError),
        ("<i4", object(), TypeError),
        ("<M8[D]", "x", ValueError),
        ("|V4", 3, TypeError),
        ("<i4", np.zeros(1, "i4,i4"), TypeError),
        ("<i4", np.array([1, "x"], object), ValueError),
        ("<i4", np.int64(2**40), OverflowError),
        ("|i1", np.float64("nan"), ValueError),
        ("<i4", {}, TypeError),
        ([("a", "<i4"), ("b", "<i4")], (1, 2, 3), ValueError),
    ],
)
def test_casts_that_fail_change_nothing(store, dtype, value, exception):
    a = make(store, 2, 1, dtype)
    model = np.zeros(2, dtype)
    before = sorted(store.list())
    for selection in (..., slice(None), (0, ...)):
        with pytest.raises(exception):
            model[selection] = value
        with pytest.raises(exception):
            a[selection] = value
    assert sorted(store.list()) == before


@pytest.mark.parametrize("value", [np.datetime64("9999-01-01"), "1500-01-01", datetime.datetime(9999, 1, 1)], ids=str)
def test_times_that_do_not_fit_the_unit_are_an_error(store, value):
    """NumPy makes the year 1815 of 9999."""
    a = make(store, 2, 1, "<M8[ns]")
    for assign in (lambda: a.__setitem__(..., value), lambda: a.__setitem__(0, value), lambda: a.append([value]),
                   lambda: a.__setitem__([0, 1], ["NaT", value]),
                   lambda: a.__setitem__(..., np.array(["2000-01-01", value], "M8[D]"))):
        with pytest.raises(OverflowError, match=r"(9999|1500)-01-01.* does not fit datetime64\[ns\], the type of the"):
            assign()
    a[...] = np.array(["2262-04-11", "NaT"], "M8[D]")
    assert a[0] == np.datetime64("2262-04-11") and np.isnat(a[1])


def test_casts_warn_as_numpy_does(store):
    a = make(store, 2, 1, "<f4")
    with pytest.warns(np.exceptions.ComplexWarning):
        a[...] = np.array([1 + 1j, 2])
    with pytest.warns(RuntimeWarning, match="overflow"):
        a[...] = np.array([1e300, 2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        a[...] = 1


def test_text_is_cut_as_numpy_does(store):
    a = make(store, 3, 2, "<U3")
    a[...] = ["abcdef", "é", ""]
    assert a[...].tolist() == ["abc", "é", ""]
    a[1] = 12345
    a[2] = np.str_("xyz0")
    assert a[...].tolist() == ["abc", "123", "xyz"]


def test_structures(store):
    dtype = np.dtype([("x", "<i2"), ("name", "|S3"), ("m", ">f4", (2,))])
    model = np.zeros(4, dtype)
    a = make(store, 4, 3, dtype, fill_value=None)
    for target in (model, a):
        target[0] = (1, b"abcd", [1.5, 2])
        target[1:3] = [(5, b"", [0, 0]), (6, b"z", [9, 9])]
        target[3] = np.array((7, b"q", [1, 2]), [("a", "i8"), ("b", "S5"), ("c", "f8", (2,))])[()]
    assert a[...].tobytes() == model.tobytes()
    element = a[0]
    assert type(element) is np.void and element["name"] == b"abc" and element["m"].tolist() == [1.5, 2]
    assert a["m"].tolist() == model["m"].tolist() and a["x", 1:].tolist() == model["x"][1:].tolist()


def test_bytes_of_no_field_are_zero_on_disk(store):
    """What lay in memory before does not leave the process."""
    dtype = np.dtype({"names": ["a", "b"], "formats": ["i1", "<f8"], "offsets": [0, 8]})
    dirty = np.full(5 * dtype.itemsize, 0xEE, "u1").view(dtype)
    a = make(store, 5, 3, dtype)
    for value in (dirty, [(1, 2.0)] * 5, (3, 4.0), dirty[0], dirty.tolist(), dirty[::-1]):
        a[...] = value
        a[1:4] = value[1:4] if isinstance(value, (list, np.ndarray)) and np.ndim(value) else value
        for i in range(2):
            raw = np.frombuffer(zcore.blosc.decompress(store.get(f"__zdata__/{i}.blosc")), dtype)
            assert not raw.view("u1").reshape(-1, 16)[:, 1:8].any()
    a.append(dirty)
    assert not np.frombuffer(zcore.blosc.decompress(store.get("__zdata__/3.blosc")), "u1").reshape(-1, 16)[:, 1:8].any()


@pytest.mark.parametrize("value", [float("nan"), -0.0, 0.0])
def test_zeros_and_nans_are_told_apart(store, value):
    """V3-FV-06: By bytes, not by value: -0.0 is not the fill value 0.0, a NaN with a payload is not NaN."""
    payload = np.array([0x7FF8000000000001], "<u8").view("<f8")
    for fill in (0.0, -0.0, float("nan")):
        a = make(store, 4, 2, "<f8", fill_value=fill)
        a[...] = value
        same = np.float64(value).tobytes() == np.float64(fill).tobytes()
        assert a.nchunks_initialized == (0 if same else 2)
        assert a[...].tobytes() == np.full(4, value).tobytes()
        a[...] = payload
        assert a.nchunks_initialized == 2 and a[...].tobytes() == payload.tobytes() * 4


def test_results_are_the_callers_own(store):
    a = make(store, 6, 4, model=np.arange(6))
    for selection in (..., slice(None), slice(0, 4), slice(1, 2)):
        out = a[selection]
        assert out.flags.writeable and out.flags.owndata and out.flags.c_contiguous
        out[...] = 99
    assert a[...].tolist() == list(range(6))


def test_the_callers_values_are_left_alone(store):
    values = np.arange(8)
    a = make(store, 8, 3, "<i8")
    a[...] = values
    a[2:6] = values[2:6]
    assert values.tolist() == list(range(8))
    values[...] = 0
    assert a[...].tolist() == list(range(8))


@pytest.mark.parametrize("threads", [1, 3, np.int64(2), 2**40])
def test_any_number_of_threads(store, threads):
    a = make(store, (40, 40), (4, 4), model=np.arange(1600).reshape(40, 40), threads=threads)
    assert type(a.threads) is int and a.threads == threads
    assert (a[...] == np.arange(1600).reshape(40, 40)).all()


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_order_and_names_of_dimensions(zarr_format):
    make_array = zcore.open_group(zcore.MemoryStore(), mode="w", zarr_format=zarr_format).create_array
    values = np.arange(60).reshape(3, 4, 5)
    for order in "CF":
        a = make_array(order, shape=values.shape, chunks=(2, 3, 4), dtype="i2", order=order)
        a[...] = values
        assert a.order == order and (a[...] == values).all() and a.dimension_names is None
    if zarr_format == 3:
        assert make_array("n", shape=(3, 4), dtype="i2", dimension_names=("y", None)).dimension_names == ("y", None)
        chain = [{"name": "transpose", "configuration": {"order": [1, 0, 2]}}, {"name": "bytes"}]
        assert make_array("t", shape=values.shape, dtype="i1", codecs=chain).order is None


def test_counts_of_chunks_in_shards():
    """As zarr-python counts them: a shard that is stored counts with all its chunks."""
    a = zcore.create_array(zcore.MemoryStore(), shape=(100, 95), chunks=(10, 10), shards=(50, 50), dtype="f4")
    a[:30] = 1
    assert (a.chunks, a.shards, a.cdata_shape, a.nchunks, a.nchunks_initialized) == (
        (10, 10), (50, 50), (10, 10), 100, 50)
    assert "chunks (10, 10), shards (50, 50), format 3" in repr(a)
    assert "shards of (50, 50), 4 in a grid of (2, 2), 2 stored" in str(a.info_complete())


@pytest.mark.parametrize("kind", [zcore.Array, zcore.Group])
def test_a_handle_is_not_made_of_a_path(kind):
    with pytest.raises(TypeError, match="zcore.open and zcore.create_array make a .*not made of a str"):
        kind("a.zarr")


def test_modules_are_there_by_name():
    script = "import zcore; zcore.errors.StoreError, zcore.typing.Mode, zcore.mpi.create; print('zarr' in dir(zcore))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.parametrize("keywords", [
    {"dtype": bytes}, {"dtype": bytes, "zarr_format": 2},
    {"dtype": object, "zarr_format": 2, "filters": {"id": "json2"}, "fill_value": ""},
])
def test_an_object_in_an_array_without_dimensions_is_stored_as_that_object(keywords):
    value = np.empty((), object)
    value[()] = b"x" if keywords["dtype"] is bytes else {"a": 1}
    a = zcore.create_array(None, shape=3, chunks=3, **keywords)
    a[1] = value
    a[2:] = value
    assert a[...].tolist() == [a.fill_value, value[()], value[()]]
