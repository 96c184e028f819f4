"""Arrays made of a value, of data, or like another one."""
import inspect

import numpy as np
import pytest

import zcore
from tests.each import each

MAKERS = {"zeros": 0, "ones": 1, "empty": 0}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("zarr_format", [3, 2, "zmeta"])
def test_an_array_of_one_value(tmp_path, name, zarr_format):
    make = getattr(zcore, name)
    a = make((4, 6), chunks=(2, 3), dtype="i2", zarr_format=zarr_format)
    assert isinstance(a.store, zcore.MemoryStore) and a.chunks == (2, 3) and a.zarr_format == zarr_format
    assert a.dtype == np.dtype("i2") and a.nchunks_initialized == 0
    assert a[...].tolist() == np.full((4, 6), MAKERS[name]).tolist()
    assert make(5)[...].dtype == np.float64
    stored = make(3, store=tmp_path, path="x", zarr_format=zarr_format)
    assert stored.path == "x" and zcore.open(tmp_path, path="x")[0] == MAKERS[name]
    with pytest.raises(zcore.NodeExistsError):
        make(3, store=tmp_path, path="x", zarr_format=zarr_format)
    make(7, store=tmp_path, path="x", zarr_format=zarr_format, overwrite=True)
    assert zcore.open(tmp_path, path="x").shape == (7,)


@pytest.mark.parametrize("dtype", ["S3", "U4", "M8[s]", "m8[D]", "?", "c8", [("a", "i4"), ("b", "S2")], ">i2", str])
@pytest.mark.parametrize("zarr_format", [3, 2])
def test_zeros_of_every_type_are_those_of_numpy(dtype, zarr_format):
    """Zero of a date is its epoch, not NaT, and text is empty, not the character 0."""
    expected = np.zeros(2, dtype).tolist()
    assert zcore.zeros(2, dtype=dtype, zarr_format=zarr_format)[...].tolist() == expected
    group = zcore.group(zarr_format=zarr_format)
    assert group.zeros("a", 2, dtype=dtype)[...].tolist() == expected
    assert zcore.zeros_like(group["a"])[...].tolist() == expected


def test_zeros_of_a_type_that_numpy_has_not():
    assert zcore.zeros(2, dtype="string")[...].tolist() == ["", ""]


def test_an_array_of_data(tmp_path):
    data = np.arange(12, dtype=">i4").reshape(3, 4)
    a = zcore.array(data, store=tmp_path, path="a/b", chunks=(2, 2), attributes={"n": 1})
    assert a.dtype == data.dtype and a.chunks == (2, 2) and a.attrs["n"] == 1
    assert zcore.open(tmp_path)["a/b"][...].tolist() == data.tolist()
    assert zcore.array([1, 2], dtype="f4")[...].dtype == np.float32
    assert zcore.array(5)[()] == 5 and zcore.array(5).shape == ()
    assert zcore.array([["ab", "cde"]])[0, 1] == "cde"


@pytest.mark.parametrize("zarr_format", [3, 2, "zmeta"])
def test_data_that_the_type_does_not_hold_leave_no_array(tmp_path, zarr_format):
    for data, dtype in ((["x"], "i4"), ([300], "u1")):
        with pytest.raises((ValueError, OverflowError)):
            zcore.create_array(tmp_path / "a", data=data, dtype=dtype, zarr_format=zarr_format)
        with pytest.raises(zcore.NodeNotFoundError):
            zcore.open(tmp_path / "a")


@pytest.mark.parametrize("make", [
    lambda **keywords: zcore.zeros((2,), **keywords), lambda **keywords: zcore.ones((2,), **keywords),
    lambda **keywords: zcore.zeros_like(np.ones(2), **keywords), lambda **keywords: zcore.ones_like([1, 2], **keywords),
])
def test_a_fill_value_that_the_name_contradicts(make):
    with pytest.raises(TypeError, match="fill_value"):
        make(fill_value=3)


def test_data_say_the_shape():
    with pytest.raises(TypeError, match="exclude each other"):
        zcore.create_array(zcore.MemoryStore(), data=[1, 2], shape=2)
    with pytest.raises(TypeError, match="needs shape= and dtype=, or data="):
        zcore.create_array(zcore.MemoryStore(), shape=2)


def sample(zarr_format, **settings):
    a = zcore.create_array(zcore.MemoryStore(), shape=(4, 6), chunks=(2, 3), dtype=">i2", fill_value=7,
                           zarr_format=zarr_format, attributes={"units": "K"}, **settings)
    a[1] = 3
    return a


SAMPLES = [
    (3, {"order": "F", "compressors": zcore.codecs.GzipCodec(level=1), "dimension_names": ("y", "x"),
         "chunk_key_encoding": {"name": "v2", "separator": "/"}}),
    (3, {"shards": (4, 6), "compressors": None}),
    (2, {"order": "F", "compressors": {"id": "zlib", "level": 1}, "filters": [{"id": "delta", "dtype": ">i2"}],
         "chunk_key_encoding": {"name": "v2", "separator": "/"}}),
    (2, {"compressors": None}),
    ("zmeta", {}),
]


@pytest.mark.parametrize(("zarr_format", "settings"), SAMPLES)
def test_like_an_array_of_zcore(zarr_format, settings):
    a = sample(zarr_format, **settings)
    b = zcore.empty_like(a)
    assert b.metadata.replace(attributes=None) == a.metadata.replace(attributes=None)
    assert dict(b.attrs) == {} and (b[...] == 7).all() and b.nchunks_initialized == 0
    assert (zcore.zeros_like(a)[...] == 0).all() and (zcore.ones_like(a)[...] == 1).all()
    full = zcore.full_like(a, 9, shape=(8, 6))
    assert (full[...] == 9).all() and full.shape == (8, 6) and full.chunks == a.chunks and full.shards == a.shards
    assert full.metadata.codecs == a.metadata.codecs
    copy = zcore.array(a)
    assert copy.metadata == a.metadata and dict(copy.attrs) == {"units": "K"}
    assert copy[...].tolist() == a[...].tolist() and copy.store is not a.store


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_like_bytes_of_any_length(zarr_format):
    a = zcore.create_array(None, shape=3, chunks=2, dtype=bytes, fill_value=b"f\xff", zarr_format=zarr_format)
    a[1] = b"x"
    for keywords in ({}, {"chunks": 3}, {"compressors": None}, {"zarr_format": 5 - zarr_format, "chunks": 3}):
        assert zcore.array(a, **keywords)[...].tolist() == [b"f\xff", b"x", b"f\xff"]
        assert zcore.empty_like(a, **keywords)[...].tolist() == [b"f\xff"] * 3
        assert zcore.zeros_like(a, **keywords)[...].tolist() == [b""] * 3


def test_like_with_another_type_has_codecs_of_its_own():
    a = sample(3, compressors=zcore.codecs.BloscCodec(cname="zstd", typesize=2))
    b = zcore.zeros_like(a, dtype="f8")
    assert b.dtype == np.float64 and b.chunks == a.chunks and b.compressors[0].typesize == 8
    assert zcore.zeros_like(a, zarr_format=2).chunks == (2, 3)
    assert zcore.zeros_like(a, chunks=(4, 4)).chunks == (4, 4)
    sharded = zcore.empty_like(sample(3, shards=(4, 6)), dtype="f4")
    assert (sharded.chunks, sharded.shards) == ((2, 3), (4, 6))


@each(("dtype", "asked"), [
    (str, "f4"), ("S3", "i2"), ("f4", str), ("f8", "M8[s]"), ("i2", "string"), ("M8[s]", "m8[s]"),
    ([("a", "i4")], "c8"), ("f4", [("a", "i4")]), (bytes, "?"),
])
def test_like_with_another_type_has_the_fill_value_of_that(dtype, asked):
    a = zcore.create_array(zcore.MemoryStore(), shape=2, dtype=dtype)
    new = zcore.create_array(zcore.MemoryStore(), shape=2, chunks=a.chunks, dtype=asked)
    assert zcore.empty_like(a, dtype=asked).metadata == new.metadata
    assert zcore.zeros_like(a, dtype=asked)[...].tolist() == zcore.zeros(2, dtype=asked)[...].tolist()
    assert zcore.full_like(a, new[0], dtype=asked)[...].tolist() == new[...].tolist()


def test_like_with_another_byte_order_has_the_same_fill_value():
    a = sample(3)
    assert zcore.empty_like(a, dtype="<i2").fill_value == 7 and zcore.array(a, dtype="<i2").fill_value == 7
    assert zcore.array(a, dtype="f4").fill_value == 0
    assert zcore.empty_like(a, dtype="f4", fill_value=5).fill_value == 5


def test_like_anything_else():
    assert zcore.zeros_like(np.ones((2, 3), "i1")).dtype == np.int8
    assert zcore.ones_like([[1.5, 2]])[...].tolist() == [[1, 1]]
    assert zcore.full_like(np.zeros(3, "i4"), 5, chunks=2)[...].tolist() == [5] * 3


def test_a_group_makes_the_same(tmp_path):
    group = zcore.group(tmp_path)
    group.zeros("z", (2, 3), chunks=(1, 3), dtype="i4")
    group.ones(name="o", shape=4)
    group.full("a/f", 3, 7.5)
    group.empty("e", 2, dtype=str)
    group["d"] = [[1, 2]]
    found = zcore.open_group(tmp_path)
    assert {path: node[...].tolist() for path, node in found.members(None) if isinstance(node, zcore.Array)} == {
        "z": [[0] * 3] * 2, "o": [1.0] * 4, "a/f": [7.5] * 3, "e": ["", ""], "d": [[1, 2]]}
    group["d"] = 5
    assert group["d"][()] == 5
    with pytest.raises(zcore.NodeExistsError, match="there is a group at"):
        group["a"] = 5
    assert "a/f" in group


def test_there_is_no_copy():
    """A scheduler that finds a method `copy` calls it, and would have the array in memory."""
    assert not hasattr(zcore.Array, "copy")


def test_signatures_are_those_of_numpy():
    for name in ("zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like", "full_like", "array"):
        mine = list(inspect.signature(getattr(zcore, name)).parameters)
        assert mine[:1] == [{"array": "data"}.get(name, "a" if name.endswith("_like") else "shape")], name
