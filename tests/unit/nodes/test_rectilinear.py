"""Arrays whose chunks differ in length: what they say of themselves, and how they are created, resized and deleted."""
import json
import pickle

import numpy as np
import pytest

import zcore
from tests.both_ways import WAYS, directory
from zcore.errors import ArrayMismatchError, ChunkError, MetadataError, OutOfMemoryError, UnsupportedError
from zcore.kernel.select.grid import Edges

PLACES = (*WAYS, "memory")


@pytest.fixture(params=PLACES)
def store(request, tmp_path):
    return zcore.MemoryStore() if request.param == "memory" else directory(tmp_path / "a", request.param)


def create(store, shape=(10, 4), chunks=([2, 3, 5], 4), **options):
    return zcore.create_array(store, **{"shape": shape, "chunks": chunks, "dtype": "i4", **options})


def grid_of(store):
    return json.loads(store.get("zarr.json"))["chunk_grid"]


def keys_of(store):
    return sorted(key for key in store.list() if key != "zarr.json")


def test_what_is_created(store):
    """V3-RGRID-01, V3-RGRID-02, V3-RGRID-07"""
    a = create(store, (14, 9), [[2, 3, 3, 3, 3], (4, 5)])
    assert grid_of(store) == {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [
        [2, [3, 4]], [4, 5]]}}
    assert (a.nchunks, a.cdata_shape, a.nchunks_initialized) == (10, (5, 2), 0)
    assert a.read_chunk_sizes == a.write_chunk_sizes == ((2, 3, 3, 3, 3), (4, 5))
    assert "chunks ([2, 4×3], [4, 5])" in repr(a)
    a[3:5, 2:6] = 7
    assert keys_of(store) == ["c/1/0", "c/1/1"] and a.nchunks_initialized == 2
    assert a.info["chunks"] == "([2, 4×3], [4, 5]), 10 in a grid of (5, 2)"
    assert a.info_complete()["chunks"] == a.info["chunks"] + ", 2 stored"
    assert (a[...] == 7).sum() == 8 and list(a)[4].tolist() == [0, 0, 7, 7, 7, 7, 0, 0, 0]
    assert pickle.loads(pickle.dumps(a.metadata)) == a.metadata


def test_one_shape_is_not_to_be_had(store):
    """As in zarr-python, where `chunks` of such an array is a NotImplementedError."""
    a = create(store)
    with pytest.raises(UnsupportedError, match="read_chunk_sizes") as caught:
        _ = a.chunks
    assert isinstance(caught.value, NotImplementedError)
    assert a.shards is None


@pytest.mark.parametrize(("shape", "chunks", "regular"), [
    ((6,), [[3, 3]], (3,)), ((6,), [[6]], (6,)), ((4, 6), [2, [3, 3]], (2, 3)), ((0,), [[3, 3]], (3,)),
    ((6,), [np.array([2, 2, 2])], (2,)), ((4, 6), np.array([[2, 2], [3, 3]]), (2, 3)),
])
def test_equal_lengths_are_a_regular_grid(store, shape, chunks, regular):
    a = create(store, shape, chunks)
    assert a.chunks == regular and grid_of(store)["name"] == "regular"


@pytest.mark.parametrize(("chunks", "error"), [
    ([[2, 3, 4], 4], ValueError), ([[2, 3, 6], 4], ValueError), ([[2, 0, 8], 4], ValueError), ([[], 4], ValueError),
    ([[2, -2, 10], 4], ValueError), ([[2, 8], 4, [1, 2]], ValueError), ([[2, 8.0], 4], TypeError),
    ([[2, [8, 1]], 4], TypeError), ([["2", 8], 4], TypeError), ([[2, 2**70], 4], ValueError),
])
def test_lengths_that_cannot_be(store, chunks, error):
    with pytest.raises(error):
        create(store, chunks=chunks)
    assert keys_of(store) == [] and store.get("zarr.json") is None


@pytest.mark.parametrize("zarr_format", [2, "zmeta"])
def test_other_formats_have_none(zarr_format):
    with pytest.raises(UnsupportedError, match="differ in length"):
        create(zcore.MemoryStore(), zarr_format=zarr_format)


def test_an_array_of_no_elements_takes_any_lengths(store):
    a = create(store, (0, 4), ([2, 3], 4))
    assert a.nchunks == 0 and a.read_chunk_sizes == ((), (4,))
    a.append(np.ones((6, 4), "i4"))
    assert a.read_chunk_sizes == ((2, 3, 1), (4,)) and (a[...] == 1).all()
    assert grid_of(store)["configuration"]["chunk_shapes"] == [[2, [3, 2]], 4]


def test_resize_and_append(store):
    """V3-RGRID-03: growth is by chunks like the last; what is shortened keeps its chunks."""
    data = np.arange(1, 41, dtype="i4").reshape(10, 4)
    a = create(store)
    a[...] = data
    a.append(data[:1] + 100)
    assert a.shape == (11, 4) and a.write_chunk_sizes == ((2, 3, 5, 1), (4,))
    assert a.metadata.edges[0] == Edges([(2, 1), (3, 1), (5, 2)])
    a.append(data[:6] + 200)
    assert a.write_chunk_sizes == ((2, 3, 5, 5, 2), (4,)) and len(keys_of(store)) == 5
    assert (a[...] == np.concatenate([data, data[:1] + 100, data[:6] + 200])).all()
    a.resize((4, 3))
    assert keys_of(store) == ["c/0/0", "c/1/0"] and a.nchunks == 2
    assert a.metadata.edges[0] == Edges([(2, 1), (3, 1), (5, 3)])
    a.resize((8, 5))
    expected = np.zeros((8, 5), "i4")
    expected[:4, :3] = data[:4, :3]
    assert (a[...] == expected).all() and a.cdata_shape == (3, 2)
    assert (zcore.open(store)[...] == expected).all()
    assert zcore.open(store).metadata == a.metadata


def test_a_handle_writes_on_when_another_one_has_grown_the_array(store):
    a = create(store)
    other = zcore.open(store, mode="r+")
    a.resize((40, 4))
    other[1:9] = 5
    assert other.shape == (40, 4)
    other.resize((5, 4))
    assert a[:5, 0].tolist() == [0, 5, 5, 5, 5]
    with pytest.raises(IndexError):
        a[7] = 1


def test_overwrite_and_delete(store):
    group = zcore.open_group(store, mode="w")
    a = group.create_array("x", shape=(10,), chunks=[[2, 8]], dtype="i2")
    a[...] = 1
    b = group.create_array("x", shape=(10,), chunks=[[8, 2]], dtype="i2", overwrite=True)
    assert (b[...] == 0).all() and b.nchunks_initialized == 0
    b[...] = 2
    del group["x"]
    assert not [key for key in store.list() if key.startswith("x/")]


def test_an_array_that_is_there_has_the_chunks_that_are_asked_for(store):
    create(store)
    assert zcore.open(store, mode="a", shape=(10, 4), chunks=[[2, 3, 5], 4], dtype="i4").nchunks == 3
    for chunks in ([[2, 5, 3], 4], (5, 4), [[5, 5], 4]):
        with pytest.raises(ArrayMismatchError, match="chunks"):
            zcore.open(store, mode="a", shape=(10, 4), chunks=chunks, dtype="i4")


def test_a_damaged_chunk_is_named(store):
    """V3-RGRID-04: a chunk has the bytes of its own length, not of the longest."""
    a = create(store, (7,), [[2, 5]], compressors=None, checksum=False)
    a[...] = 1
    assert [len(store.get(key)) for key in keys_of(store)] == [8, 20]
    for length in (4, 12, 20):
        store.set("c/0", bytes(length))
        with pytest.raises(ChunkError) as caught:
            a[...]
        assert (caught.value.key, caught.value.chunk_coords, caught.value.expected) == ("c/0", (0,), 8)
        assert caught.value.found == length
    assert a[2:].tolist() == [1] * 5


def test_a_chunk_beyond_the_array_is_kept_in_full(store):
    """V3-RGRID-04, V3-RGRID-03"""
    a = create(store, (7,), [[2, 5]], compressors=None, checksum=False, fill_value=9)
    a[...] = 1
    a.resize((3,))
    assert np.frombuffer(store.get("c/1"), "<i4").tolist() == [1, 9, 9, 9, 9]
    a[2:] = 4
    assert np.frombuffer(store.get("c/1"), "<i4").tolist() == [4, 9, 9, 9, 9]


def test_shards_that_differ(store):
    """V3-RGRID-05"""
    a = create(store, (12, 4), (2, 2), shards=[[2, 4, 6], [4]], fill_value=-1)
    assert (a.chunks, a.nchunks, a.cdata_shape) == ((2, 2), 12, (6, 2))
    assert a.read_chunk_sizes == ((2,) * 6, (2, 2)) and a.write_chunk_sizes == ((2, 4, 6), (4,))
    assert "chunks (2, 2), shards ([2, 4, 6], 4)" in repr(a)
    with pytest.raises(UnsupportedError, match="write_chunk_sizes"):
        _ = a.shards
    data = np.arange(48, dtype="i4").reshape(12, 4)
    a[:6] = data[:6]
    assert keys_of(store) == ["c/0/0", "c/1/0"] and a.nchunks_initialized == 2 + 4
    a[5:9, 1] = data[5:9, 1]
    assert a.nchunks_initialized == 2 + 4 + 6
    a[...] = data
    a[3:11:3, ::-2] = 0
    data[3:11:3, ::-2] = 0
    assert (a[...] == data).all() and (zcore.open(store)[::-1, 2:] == data[::-1, 2:]).all()
    a.resize((7, 4))
    a.resize((25, 4))
    assert a.write_chunk_sizes == ((2, 4, 6, 6, 6, 1), (4,))
    assert (a[:7] == data[:7]).all() and (a[7:] == -1).all()


def test_shards_are_cut_exactly(store):
    """V3-RGRID-05"""
    with pytest.raises(ValueError, match="multiples"):
        create(store, (12, 4), (2, 2), shards=[[2, 3, 7], 4])
    with pytest.raises(UnsupportedError):
        create(store, (12, 4), [[2, 10], 2], shards=(12, 4))
    with pytest.raises(ValueError, match="given shape"):
        create(store, (12, 4), shards=[[2, 10], 4], chunks="auto")
    a = create(store, (12, 4), (2, 2), shards=[[2, 10], 4])
    document = json.loads(store.get("zarr.json"))
    for edges in ([3, 10], [2, 9, 2], [2, [5, 2], 10]):
        document["chunk_grid"]["configuration"]["chunk_shapes"][0] = edges
        store.set("zarr.json", json.dumps(document).encode())
        with pytest.raises(MetadataError) as caught:
            zcore.open(store)
        assert caught.value.member == "chunk_shape"
    assert a.nchunks == 12


def test_transposed_shards_are_cut_in_the_order_of_their_dimensions():
    """V3-RGRID-05, V3-SHARD-02"""
    inner = [{"name": "bytes", "configuration": {"endian": "little"}}]
    sharding = {"name": "sharding_indexed", "configuration": {"chunk_shape": [3, 2], "codecs": inner,
                                                              "index_codecs": inner}}
    turned = {"name": "transpose", "configuration": {"order": [1, 0]}}
    a = create(zcore.MemoryStore(), (6, 9), [[2, 4], [3, 6]], codecs=[turned, sharding])
    data = np.arange(54, dtype="i4").reshape(6, 9)
    a[...] = data
    assert (a[...] == data).all() and (a[1:, 2:7] == data[1:, 2:7]).all()
    with pytest.raises(MetadataError, match="dimension 1 is no multiple of 3"):
        create(zcore.MemoryStore(), (6, 9), [[2, 4], [6, 2, 1]], codecs=[turned, sharding])


@pytest.mark.thinned(3, "store", "edges")
@pytest.mark.parametrize("edges", [
    [0, 10], [-3, 13], [[0, 5], 10], [[5, 0], 10], [[2, 2**62], 3], [[2**62, 2], 1], [1, [2, 2**62]], [2**63, 1],
    [2, [1, 2**63 - 1]], [2**70, 3], [1, 2], [], [[]], [[1, 2, 3]], [1.0, 9], [None, 10], ["5", 5], [[True, 2], 9],
])
def test_hostile_documents(store, edges):
    """V3-RGRID-01, V3-RGRID-02, V3-RGRID-03"""
    create(store)
    document = json.loads(store.get("zarr.json"))
    document["chunk_grid"]["configuration"]["chunk_shapes"][0] = edges
    store.set("zarr.json", json.dumps(document).encode())
    with pytest.raises(MetadataError) as caught:
        zcore.open(store)
    assert caught.value.member == "chunk_grid"


def test_a_huge_number_of_chunks_takes_no_memory(store):
    """V3-RGRID-03"""
    create(store, (10,), [[2, 8]])
    document = json.loads(store.get("zarr.json"))
    document["shape"] = [2**62]
    document["chunk_grid"]["configuration"]["chunk_shapes"] = [[2, [1, 2**62]]]
    store.set("zarr.json", json.dumps(document).encode())
    a = zcore.open(store, mode="r+")
    assert a.nchunks == 2**62 - 1 and a.cdata_shape == (2**62 - 1,)
    with pytest.raises(OutOfMemoryError):
        _ = a.read_chunk_sizes
    a[2**61:2**61 + 3] = [1, 2, 3]
    assert keys_of(store) == [f"c/{2**61 + i}" for i in (-1, 0, 1)]
    assert a[2**61 - 1:2**61 + 4:2].tolist() == [0, 2, 0] and "2" in repr(a)
    a.resize((2**61 + 1,))
    assert keys_of(store) == [f"c/{2**61 - 1}"]


def test_items_of_varying_length(store):
    a = create(store, (7,), [[2, 5]], dtype="string", fill_value="-")
    a[1:4] = ["a", "bcd", ""]
    assert a[...].tolist() == ["-", "a", "bcd", "", "-", "-", "-"]


def test_iteration_reads_row_by_row_of_chunks(store):
    data = np.arange(40, dtype="i4").reshape(10, 4)
    a = create(store)
    a[...] = data
    assert np.array_equal(list(a), data) and 17 in a and 77 not in a


def test_an_array_like_another_has_its_chunks(store):
    a = create(store)
    for like, sizes in [(zcore.zeros_like(a), (2, 3, 5)), (zcore.empty_like(a, shape=(7, 4)), (2, 3, 2)),
                        (zcore.ones_like(a, shape=(17, 4)), (2, 3, 5, 5, 2)),
                        (zcore.zeros_like(a, compressors=None), (2, 3, 5))]:
        assert like.read_chunk_sizes == (sizes, (4,))
    b = create(zcore.MemoryStore(), (12, 4), (2, 2), shards=[[2, 4, 6], 4])
    for like in (zcore.zeros_like(b), zcore.zeros_like(b, compressors=None)):
        assert like.write_chunk_sizes == b.write_chunk_sizes and like.chunks == (2, 2)
