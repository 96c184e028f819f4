"""An array that another program creates anew while zarr-python has it open: an error, and nothing is changed.

zarr-python cuts a selection by the document that it read when it opened the array. zcore reads the document again.
"""
import itertools
import json

import numpy as np
import pytest

import zcore

zarr = pytest.importorskip("zarr")

from zarr.storage import LocalStore, MemoryStore, WrapperStore  # noqa: E402

import zcore.zarr  # noqa: E402
from tests.strict_store import Strict  # noqa: E402


@pytest.fixture(autouse=True)
def pipeline():
    with zarr.config.set({"codec_pipeline.path": "zcore.zarr.ZcoreCodecPipeline"}):
        yield


@pytest.fixture(params=["memory", "local"])
def store(request, tmp_path):
    return MemoryStore() if request.param == "memory" else LocalStore(tmp_path / "a")


ARRAY = {"shape": (60, 4), "chunks": (10, 4), "dtype": "i4", "fill_value": 3}
SHARDED = {**ARRAY, "shards": (20, 4)}
NUMBERS = np.arange(240).reshape(60, 4)
OTHERS = {
    "smaller chunks": (ARRAY, {"chunks": (5, 4)}),
    "larger chunks": (ARRAY, {"chunks": (20, 4)}),
    "chunks of other columns": (ARRAY, {"chunks": (10, 2)}),
    "shards": (ARRAY, {"shards": (20, 4)}),
    "no shards": (SHARDED, {"shards": None}),
    "larger shards": (SHARDED, {"shards": (30, 4)}),
    "other chunks in shards": (SHARDED, {"chunks": (5, 4)}),
    "type of the same size": (ARRAY, {"dtype": "f4"}),
    "larger type": (ARRAY, {"dtype": "i8"}),
    "byte order": (ARRAY, {"serializer": zarr.codecs.BytesCodec(endian="big")}),
    "compressor": (ARRAY, {"compressors": zarr.codecs.GzipCodec()}),
    "codec inside shards": (SHARDED, {"compressors": zarr.codecs.GzipCodec()}),
    "transposed": (ARRAY, {"filters": zarr.codecs.TransposeCodec(order=(1, 0))}),
    "fill value": (ARRAY, {"fill_value": 4}),
    "names of chunks": (ARRAY, {"chunk_key_encoding": {"name": "v2", "separator": "."}}),
    "dimensions": (ARRAY, {"shape": (60, 4, 1), "chunks": (10, 4, 1)}),
    "Zarr v2": (ARRAY, {"zarr_format": 2}),
    "Zarr v3": ({**ARRAY, "zarr_format": 2}, {"zarr_format": 3}),
    "chunks of Zarr v2": ({**ARRAY, "zarr_format": 2}, {"zarr_format": 2, "chunks": (5, 4)}),
    "order of Zarr v2": ({**ARRAY, "zarr_format": 2}, {"zarr_format": 2, "order": "F"}),
    "type of Zarr v2": ({**ARRAY, "zarr_format": 2}, {"zarr_format": 2, "dtype": ">i4"}),
}
READS = {
    "part": lambda z: z[30:33], "all": lambda z: z[...], "rows": lambda z: z.oindex[[1, 31]],
    "points": lambda z: z.vindex[[1, 31], [0, 1]], "block": lambda z: z.blocks[1],
}
WRITES = {
    "part": lambda z: z.__setitem__(slice(30, 33), 7), "all": lambda z: z.__setitem__(..., 7),
    "rows": lambda z: z.oindex.__setitem__([1, 31], 7), "points": lambda z: z.vindex.__setitem__(([1, 31], [0, 1]), 7),
}


def create(store, keywords):
    array = zarr.create_array(store, overwrite=True, **keywords)
    array[...] = NUMBERS.reshape(array.shape)
    return array


def objects(store):
    """The content of a store."""
    if isinstance(store, LocalStore):
        return {path.relative_to(store.root): path.read_bytes() for path in store.root.rglob("*") if path.is_file()}
    return {key: value.to_bytes() for key, value in store._store_dict.items()}


def check(array, store):
    """Every read is an error, and every write is one that leaves the store as it is; also if they are tried again."""
    before = objects(store)
    for _ in range(2):
        for use in (*READS.values(), *WRITES.values()):
            with pytest.raises((zcore.StoreError, zcore.NodeNotFoundError)):
                use(array)
            assert objects(store) == before


@pytest.mark.thinned(3, "store", "change", "first")
@pytest.mark.parametrize("first", ["read", "written"])
@pytest.mark.parametrize("change", OTHERS)
def test_another_array_in_its_place_is_an_error(store, change, first):
    keywords, changed = OTHERS[change]
    array = create(store, keywords)
    assert array[3, 1] == 13
    if first == "written":
        array[3] = array[3]
    other = create(store, {**keywords, **changed})
    check(array, store)
    np.testing.assert_array_equal(other[...], NUMBERS.reshape(other.shape))


@pytest.mark.thinned(2, "store", "change")
@pytest.mark.parametrize("change", OTHERS)
def test_before_the_first_use_as_well(store, change):
    keywords, changed = OTHERS[change]
    create(store, keywords)
    array = zarr.open_array(store, mode="r+")
    create(store, {**keywords, **changed})
    check(array, store)


def test_a_group_in_its_place_is_an_error(store):
    array = create(store, ARRAY)
    zarr.create_group(store, overwrite=True)
    check(array, store)


def test_a_deleted_array_is_an_error(store):
    array = create(store, ARRAY)
    for key in list(objects(store)):
        if isinstance(store, LocalStore):
            (store.root / key).unlink()
        else:
            del store._store_dict[key]
    check(array, store)


def test_the_same_array_again_is_used_as_before(store):
    array = create(store, ARRAY)
    other = create(store, {**ARRAY, "chunks": (5, 4)})
    with pytest.raises(zcore.StoreError):
        array[0] = 1
    assert other[0, 1] == 1
    create(store, ARRAY)
    array[31] = 1
    assert zarr.open_array(store)[31].tolist() == [1] * 4


@pytest.mark.parametrize("keywords", [ARRAY, SHARDED, {**ARRAY, "zarr_format": 2}],
                         ids=["chunks", "shards", "Zarr v2"])
def test_another_shape_and_other_attributes_are_no_other_array(store, keywords):
    array = create(store, keywords)
    other = zarr.open_array(store, mode="r+")
    other.resize((85, 4))
    other.update_attributes({"units": "m"})
    array[55:] = 1
    assert array[...].tolist() == [*NUMBERS[:55].tolist(), *[[1] * 4] * 5]
    other.resize((31, 4))
    array[30] = 2
    assert array[28:31].tolist() == [*NUMBERS[28:30].tolist(), [2] * 4]
    other.resize((60, 4))
    assert array[30:].tolist() == [[2] * 4] + [[3] * 4] * 29


def test_codecs_that_another_program_spells_out_are_the_same():
    """zarr-python writes down what tensorstore leaves out, with the first change of an attribute."""
    store = MemoryStore()
    for keywords in (ARRAY, SHARDED):
        create(store, keywords)
        document = store._store_dict["zarr.json"].to_bytes()
        parsed = json.loads(document)
        _without_checksum(parsed["codecs"])
        store._store_dict["zarr.json"] = type(store._store_dict["zarr.json"]).from_bytes(json.dumps(parsed).encode())
        array, own = zarr.open_array(store, mode="r+"), zcore.open(store, "r+")
        assert array[1, 1] == own[1, 1] == 5
        zarr.open_array(store, mode="r+").update_attributes({"units": "m"})
        assert array[1, 1] == own[1, 1] == 5
        array[1, 1] = own[1, 2] = 9
        assert array[1].tolist() == [4, 9, 9, 7]


def _without_checksum(codecs):
    for codec in codecs:
        codec.get("configuration", {}).pop("checksum", None)
        _without_checksum(codec.get("configuration", {}).get("codecs", ()))


class Swapping(WrapperStore):
    """A store in which another array takes the place of the first one before the n-th request for a value."""

    n = other = None

    async def get(self, key, prototype, byte_range=None):
        if self.n is not None:
            self.n -= 1
            if self.n < 0:
                self.n = None
                self._store._store_dict.clear()
                self._store._store_dict.update(self.other)
        return await super().get(key, prototype, byte_range)


@pytest.mark.parametrize("change", ["smaller chunks", "larger chunks", "shards", "larger shards", "compressor",
                                    "fill value", "type of the same size", "Zarr v2", "chunks of Zarr v2"])
def test_a_read_in_the_middle_of_which_another_array_takes_its_place(change):
    keywords, changed = OTHERS[change]
    inner, replaced = MemoryStore(), MemoryStore()
    create(replaced, {**keywords, **changed})
    for use in READS.values():
        create(inner, keywords)
        expected = use(zarr.open_array(inner))
        n_errors = 0
        for n in itertools.count():
            create(inner, keywords)
            store = Swapping(inner)
            array = zarr.open_array(store, mode="r+")
            assert array[3, 1] == 13
            store.n, store.other = n, replaced._store_dict
            try:
                np.testing.assert_array_equal(use(array), expected)
            except (zcore.StoreError, zcore.NodeNotFoundError):
                n_errors += 1
            if store.n is not None:
                break      # it asks for no more
        assert n_errors


@pytest.mark.parametrize("change", ["smaller chunks", "larger chunks", "shards", "larger shards", "compressor",
                                    "fill value", "type of the same size", "Zarr v2", "chunks of Zarr v2"])
def test_a_write_before_which_another_array_takes_its_place(change, monkeypatch):
    """Between the batch that was cut and the plan: then every object is left as it is."""
    keywords, changed = OTHERS[change]
    inner, replaced = MemoryStore(), MemoryStore()
    create(replaced, {**keywords, **changed})
    original = zcore.zarr.request_of

    def swapped(*arguments):
        found = original(*arguments)
        inner._store_dict.clear()
        inner._store_dict.update(replaced._store_dict)
        return found

    for use in WRITES.values():
        monkeypatch.undo()
        create(inner, keywords)
        array = zarr.open_array(inner, mode="r+")
        assert array[3, 1] == 13
        monkeypatch.setattr(zcore.zarr, "request_of", swapped)
        with pytest.raises((zcore.StoreError, zcore.NodeNotFoundError)):
            use(array)
        assert objects(inner) == objects(replaced)


@pytest.mark.parametrize("shape", [(30,), (0,)])
@pytest.mark.parametrize("grows", ["resize", "append"])
def test_an_array_whose_chunks_are_listed_grows_by_chunks_of_other_lengths(tmp_path, shape, grows):
    """A grid of equal chunks that are listed ends with the array: zarr-python adds one chunk of another length."""
    rectilinear = pytest.importorskip("zarr.core.metadata.v3")
    if not hasattr(rectilinear, "RectilinearChunkGridMetadata"):
        pytest.skip("this zarr-python has no such grids")
    with zarr.config.set({"array.rectilinear_chunks": True, "codec_pipeline.path": "zcore.zarr.ZcoreCodecPipeline"}):
        z = zarr.create_array(tmp_path / "a", shape=shape, chunks=[[10] * (shape[0] // 10) or [1]], dtype="i4",
                              fill_value=-1)
        z[...] = 1
        for _ in range(2):
            n = z.shape[0]
            if grows == "append":
                z.append(np.full(15, n, "i4"))
            else:
                z.resize((n + 15,))
                z[n:] = n
            assert (z[n:] == n).all() and (z[:shape[0]] == 1).all()
    assert zcore.open(tmp_path / "a")[...].tolist() == z[...].tolist()


def test_unequal_chunks_are_read_and_written_where_zarr_python_has_switched_them_off_since():
    if not hasattr(pytest.importorskip("zarr.core.metadata.v3"), "RectilinearChunkGridMetadata"):
        pytest.skip("this zarr-python has no such grids")
    store = MemoryStore()
    with zarr.config.set({"array.rectilinear_chunks": True}):
        zarr.create_array(store, shape=(10,), chunks=[[2, 3, 5]], dtype="i4", fill_value=-1)
        z = zarr.open_array(store)
    z[1:4] = 7
    z.oindex[[5, 9]] = 8
    assert z[...].tolist() == zcore.open(store)[...].tolist() == [-1, 7, 7, 7, -1, 8, -1, -1, -1, 8]


@pytest.mark.parametrize("change", ["append", "attribute"])
def test_a_document_that_changed_is_looked_at_twice_only_once(change):
    inner = MemoryStore()
    create(inner, ARRAY)
    store = Strict(inner)
    z = zarr.open_array(store)
    assert z[3, 1] == 13
    if change == "append":
        zarr.open_array(inner).append(np.ones((10, 4), "i4"))
    else:
        zarr.open_array(inner).attrs["a"] = 1
    assert z[3, 1] == 13
    store.asked.clear()
    assert z[3, 2] == 14 and z[...].tolist() == NUMBERS.tolist()
    assert [key for key, _, _ in store.asked].count("zarr.json") == 2
    assert [key for key, _, _ in store.asked].count("c/0/0") == 2


@pytest.mark.parametrize("changes", [{"fill_value": 1.0}, {"fill_value": float("nan")}, {"chunks": (2,)}])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_document_that_agreed_for_one_array_is_compared_for_another(tmp_path, zarr_format, changes):
    """Many arrays that are alike are compared once."""
    keywords = {"shape": (4,), "chunks": (4,), "dtype": "f8", "fill_value": 0.0}
    group = zarr.open_group(tmp_path, mode="w", zarr_format=zarr_format)
    for name in "abcd":
        group.create_array(name, **keywords)[...] = 1
    opened = group.create_array("opened", **keywords)
    group.create_array("other", **(keywords | changes))[...] = 1
    document = ".zarray" if zarr_format == 2 else "zarr.json"
    (tmp_path / "opened" / document).write_bytes((tmp_path / "other" / document).read_bytes())
    with pytest.raises(zcore.StoreError, match="replaced by another"):
        opened[...] = 2
