"""Array metadata as a value: exact counts, what is refused, equality and pickling."""
import pickle

import numpy as np
import pytest

from tests.each import each
from zcore.errors import UnsupportedError
from zcore.model.chunk_keys import ChunkKeyEncoding
from zcore.model.metadata import ArrayMetadata, CodecSpec, GroupMetadata, has_varying_items

RAW = (CodecSpec("bytes", {"endian": "little"}),)


def metadata(shape=(10, 200, 3000), dtype="<f4", chunk_shape=(5, 20, 400), **fields):
    return ArrayMetadata(shape, dtype, chunk_shape, ChunkKeyEncoding.v3(), RAW, **fields)


def test_counts_of_the_drafts_example():
    """D3-CON-10, D3-GRID-05, D3-CON-06"""
    array = metadata()
    assert (array.ndim, array.itemsize, array.size, array.nbytes) == (3, 4, 6_000_000, 24_000_000)
    assert (array.grid_shape, array.n_chunks, array.chunk_nbytes) == ((2, 10, 8), 160, 160_000)


def test_counts_are_exact_integers():
    """D3-GRID-05: 2**53 + 1 must be right."""
    array = metadata((2**53 + 1,), "<f8", (2,))
    assert array.grid_shape == (2**52 + 1,)
    assert array.nbytes == 8 * (2**53 + 1)


@pytest.mark.parametrize(("shape", "chunk_shape", "grid_shape", "n_chunks", "size"), [
    ((), (), (), 1, 1), ((0,), (3,), (0,), 0, 0), ((5, 0), (9, 1), (1, 0), 0, 0), ((1,), (100,), (1,), 1, 1),
])
def test_counts_at_the_edges(shape, chunk_shape, grid_shape, n_chunks, size):
    """D3-GRID-08, D3-GRID-09"""
    array = metadata(shape, chunk_shape=chunk_shape)
    assert (array.grid_shape, array.n_chunks, array.size) == (grid_shape, n_chunks, size)


@each(("shape", "chunk_shape"), [
    ((-1,), (1,)), ((1,), (0,)), ((1,), (-1,)), ((1, 1), (1,)), ((), (1,)), ((2**63,), (1,)), ((2**32, 2**31), (1, 1)),
    ((0, 2**62, 2), (1, 1, 1)), ((2**63 - 1,), (2,)), ((1, 1), (2**32, 2**32)), ((1,), (2**63,)), ((1,), (2**62,)),
])
def test_lengths_out_of_range_are_refused(shape, chunk_shape):
    """D3-CON-05, D3-GRID-02, D3-GRID-08; no product and no end of a chunk passes 2**63 - 1."""
    with pytest.raises(ValueError, match=r"shape: expected"):
        metadata(shape, chunk_shape=chunk_shape)


@each("shape", [(1.0,), (True,), ("1",), (np.True_,), (None,), 5, None])
def test_lengths_of_other_types_are_type_errors(shape):
    with pytest.raises(TypeError):
        metadata(shape, chunk_shape=(1,))


def test_largest_lengths_are_accepted():
    assert metadata((2**63 - 1,), "|u1", (1,)).n_chunks == 2**63 - 1
    assert metadata((np.int16(3), 4), chunk_shape=(np.uint8(2), 2)).shape == (3, 4)


def test_more_than_64_dimensions_are_unsupported():
    assert metadata((1,) * 64, chunk_shape=(1,) * 64).ndim == 64
    with pytest.raises(UnsupportedError, match="an array of 65 dimensions, expected at most 64"):
        metadata((1,) * 65, chunk_shape=(1,) * 65)


@pytest.mark.parametrize("fields", [
    {"fill_value": 1, "fill_bytes": b"\0"}, {"dimension_names": ("x",)}, {"fill_value": "x"}, {"dtype": "S0"},
])
def test_parts_that_contradict_each_other_are_refused(fields):
    with pytest.raises(ValueError):
        metadata(**fields)


@pytest.mark.parametrize("names", ["xy", [1, 2], ["x", b"y"], 7])
def test_names_of_dimensions_are_strings(names):
    with pytest.raises(TypeError):
        metadata((4, 4), chunk_shape=(2, 2), dimension_names=names)


def test_fill_value_is_a_scalar_and_bytes_or_undefined():
    array = metadata(fill_value=1.5)
    assert (array.fill_value, type(array.fill_value), array.fill_bytes) == (1.5, np.float32, b"\0\0\xc0?")
    array = metadata()
    assert (array.fill_value, array.fill_bytes) == (None, bytes(4))
    assert array != metadata(fill_value=0)


def test_replace_keeps_bytes_and_value_together():
    array = metadata(fill_value=1.5)
    assert array.replace(fill_value=2).fill_bytes == b"\0\0\0@"
    assert array.replace(dtype=">f4").fill_bytes == b"?\xc0\0\0"
    assert array.replace(shape=(7, 7, 7)).fill_bytes == array.fill_bytes
    assert array.replace(shape=[7, 7, 7]).grid_shape == (2, 1, 1)
    with pytest.raises(ValueError, match="chunk shape"):
        array.replace(shape=(7,))


def test_equal_metadata_are_equal_and_hash_alike():
    fields = {
        "fill_value": float("nan"), "attributes": {"a": [1]}, "extra": {"b": 2}, "dimension_names": ["x", None, "x"],
    }
    one, other = metadata(**fields), metadata(**fields)
    assert one == other and hash(one) == hash(other)
    assert pickle.loads(pickle.dumps(one)) == one
    assert one.dimension_names == ("x", None, "x")
    assert one != one.replace(dtype=">f4") != one.replace(extra={}) and one != "x"
    assert repr(one).startswith("ArrayMetadata(shape=(10, 200, 3000), dtype=dtype('float32'), ")
    with pytest.raises(AttributeError, match="frozen"):
        one.shape = ()


def test_codec_specs_compare_by_name_and_configuration():
    spec = CodecSpec("blosc", {"clevel": 5})
    assert spec == CodecSpec("blosc", {"clevel": 5}) == pickle.loads(pickle.dumps(spec)) == eval(repr(spec))
    assert hash(spec) == hash(CodecSpec("blosc", {"clevel": 5}))
    assert spec != CodecSpec("blosc") and spec != CodecSpec("zstd", {"clevel": 5})
    assert CodecSpec("bytes").configuration == {}


@pytest.mark.parametrize(("dtype", "fill_value"), [(np.dtypes.StringDType(), "é"), (np.dtype(object), b"x")])
def test_items_of_varying_length_have_no_bytes_of_a_fill_value(dtype, fill_value):
    """V3-XDT-01, V3-XDT-02"""
    array = metadata(dtype=dtype, fill_value=fill_value)
    assert has_varying_items(array.dtype) and (array.fill_value, array.fill_bytes) == (fill_value, b"")
    assert metadata(dtype=dtype, fill_value=fill_value, fill_bytes=b"given") == array
    assert array != array.replace(fill_value=fill_value * 2) and pickle.loads(pickle.dumps(array)) == array


def test_name_of_the_type_belongs_to_the_type():
    array = metadata(dtype="V2", fill_value=b"ab", data_type="r16")
    assert array != array.replace(data_type=None) and array.replace(shape=(1, 1, 1)).data_type == "r16"
    assert array.replace(dtype="<i2", fill_value=1).data_type is None


def test_group():
    """V3-GRP-01"""
    group = GroupMetadata(3, {"a": 1})
    assert group == GroupMetadata(3, {"a": 1}, None, {}) and hash(group) == hash(GroupMetadata(3))
    assert group != group.replace(attributes={}) and group != GroupMetadata(2, {"a": 1})
    assert pickle.loads(pickle.dumps(group)) == group and "consolidated=None" in repr(group)
    with pytest.raises(AttributeError, match="frozen"):
        group.attributes = {}


def test_resized_is_another_array_with_the_same_fields():
    array = ArrayMetadata((4, 5), "<i2", (2, 3), ChunkKeyEncoding.v3(), (CodecSpec("bytes"),), fill_value=-1,
                          attributes={"a": 1}, dimension_names=("y", None), extra={"b": 2})
    other = array.resized([7, np.int64(5)])
    assert other == array.replace(shape=(7, 5)) and other.grid_shape == (4, 2) and type(other.shape[1]) is int
    assert array.shape == (4, 5) and all(
        getattr(other, name) is getattr(array, name) for name in ArrayMetadata._fields if name not in ("shape",))
    with pytest.raises(AttributeError, match="frozen"):
        other.shape = (1, 1)
    for shape in ((7,), (7, 5, 1), (-1, 5), (2**63, 5), (2**62, 3), (2**63 - 1, 0)):
        with pytest.raises(ValueError):  # noqa: PT011 (each has a message of its own)
            array.resized(shape)
