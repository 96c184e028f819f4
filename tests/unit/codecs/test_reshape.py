"""`reshape`: what shapes it may have, that it is no work in C, and what it does not take."""
import numpy as np
import pytest

import zcore
from tests.both_ways import WAYS, directory
from tests.each import each
from zcore.codecs.array_array.reorder import ReshapeCodec
from zcore.codecs.chain import CodecChain
from zcore.errors import MetadataError, UnsupportedError
from zcore.model.metadata import CodecSpec


def spec(name, **configuration):
    return {"name": name, "configuration": configuration}


@pytest.mark.parametrize(("shape", "chunk", "expected"), [
    ([[0, 1], [2], 3], (100, 50, 64, 3), (5000, 64, 3)), ([-1], (4, 6), (24,)), ([4, -1], (2, 6), (4, 3)),
    ([2, [1], -1], (2, 6, 4), (2, 6, 4)), ([[], [0], []], (5,), (1, 5, 1)), ([1, [0, 1], 1], (2, 3), (1, 6, 1)),
    ([], (), ()), ([1], (), (1,)), ([6], (2, 3), (6,)), ([[0], 2, 3], (4, 6), (4, 2, 3)), ([-1, [1]], (4, 6), (4, 6)),
])
def test_shapes(shape, chunk, expected):
    """V3-XC-05"""
    codec = ReshapeCodec(shape=shape)
    elements = np.arange(np.prod(chunk, dtype=int), dtype="i4").reshape(chunk)
    assert codec.encoded_type(elements.dtype, chunk) == (elements.dtype, expected)
    encoded = codec.encode(np.asfortranarray(elements))
    assert encoded.shape == expected and np.array_equal(encoded.reshape(-1), elements.reshape(-1))
    assert np.array_equal(codec.decode(encoded, elements.dtype, chunk), elements)
    assert codec.configuration() == {"shape": shape}


@each("shape", [
    [[1], [0]], [[1, 0], 6], [[0, 0], -1], [[2], 24], [-1, -1], [0, 24], [-2, 12], [5, -1], [23], [48, -1], [4.0, 6],
    [True, 24], "24", None, [[0], [1, 2]], [[-1], 24], [6, [0]], [[1], 4], [2, [1], 2], [1] * 65, [["0"], 6], [None],
    [[0, 1], 2], [2**70],
])
def test_shapes_that_are_none(shape):
    """V3-XC-05"""
    with pytest.raises(MetadataError):
        CodecChain((CodecSpec("reshape", {"shape": shape}), CodecSpec("bytes", {"endian": "little"})), np.dtype("<i4"),
                   (4, 6))


@pytest.mark.parametrize("filters", [
    [spec("reshape", shape=[[0, 1]])], [spec("reshape", shape=[2, -1]), spec("reshape", shape=[-1, 4])],
    [spec("transpose", order=[1, 0]), spec("reshape", shape=[-1])],
    [spec("reshape", shape=[-1]), spec("numcodecs.delta", dtype="<i4")],
    [spec("reshape", shape=[3, -1]), spec("transpose", order=[1, 0])],
])
def test_arrays(filters, tmp_path):
    """V3-XC-05: with codecs that run in C it runs there, unless the dimensions are turned afterwards."""
    data = np.arange(63, dtype="<i4").reshape(7, 9)
    contents = []
    for way in WAYS:
        store = directory(tmp_path / way, way)
        a = zcore.create_array(store, shape=(7, 9), chunks=(4, 6), dtype="<i4", filters=filters)
        a[...] = data
        a[2:6, 3:8] = data[2:6, 3:8] = -data[2:6, 3:8]
        assert (zcore.open(store)[...] == data).all() and (a[::-2, 1::3] == data[::-2, 1::3]).all()
        contents.append({key: store.get(key) for key in store.list()})
        data = np.arange(63, dtype="<i4").reshape(7, 9)
        assert a._binding.chain.program.is_native == (filters[-1]["name"] in ("reshape", "numcodecs.delta"))
    assert contents[0] == contents[1]


def test_chunks_that_differ(tmp_path):
    """V3-XC-05, V3-RGRID-04: a shape by dimensions fits all of them, one by numbers only some."""
    data = np.arange(40, dtype="i4").reshape(10, 4)
    a = zcore.create_array(zcore.MemoryStore(), shape=(10, 4), chunks=[[2, 3, 5], 4], dtype="i4",
                           filters=[spec("reshape", shape=[[0], [1], 1]), spec("transpose", order=[2, 1, 0])])
    a[...] = data
    assert (a[...] == data).all()
    many = [*range(1, 98)]
    for i, (chunks, shape, error) in enumerate([
            ([[5, 3, 2], 4], [5, 4], MetadataError), ([[2, 3, 5], [1, 3]], [[0, 1], 1], None),
            ([[2, 8], 4], [2, -1], None), ([[2, 3, 5], 3], [2, -1], MetadataError),
            ([many, many], [-1], UnsupportedError)]):
        store = zcore.DirectoryStore(str(tmp_path / str(i)))
        keywords = {"shape": [sum(n) if isinstance(n, list) else n for n in chunks], "chunks": chunks, "dtype": "i4",
                    "filters": [spec("reshape", shape=shape)]}
        if error is not None:
            with pytest.raises(error, match="reshape"):
                zcore.create_array(store, **keywords)
            assert list(store.list()) == []
        else:
            a = zcore.create_array(store, **keywords)
            a[...] = data
            assert (a[...] == data).all()


def test_a_shard_may_be_in_another_shape():
    """V3-XC-05, V3-SHARD-02"""
    inner = [spec("bytes", endian="little")]
    sharding = spec("sharding_indexed", chunk_shape=[3], codecs=inner, index_codecs=inner)
    a = zcore.create_array(zcore.MemoryStore(), shape=(4, 6), chunks=(2, 6), dtype="<i4", fill_value=7,
                           codecs=[spec("reshape", shape=[-1]), sharding])
    a[0, 2] = 1
    assert len(a.store.get("c/0/0")) == 12 + 4 * 16 and a[0].tolist() == [7, 7, 1, 7, 7, 7]
