"""A mapping of the caller is a store, and one for all handles."""
import gc
import pickle
import threading
import types

import numpy as np
import pytest

import zcore
from tests.at_once import at_once
from tests.each import each
from tests.unit.stores.conformance import StoreConformance
from zcore.stores.mapping import MappingStore


class TestMappingStore(StoreConformance):
    def make(self, tmp_path, items=(), read_only=False):
        return MappingStore.of(types.MappingProxyType(dict(items)) if read_only else dict(items))

    # A mapping holds both, and to look at all its keys for each new one would cost too much.
    test_key_below_a_prefix_conflicts = test_key_with_a_key_as_parent_conflicts = None


def test_what_is_written_is_in_the_mapping():
    mapping = {}
    array = zcore.create_array(mapping, name="a", data=np.arange(4), chunks=2)
    assert sorted(mapping) == ["a/c/0", "a/c/1", "a/zarr.json", "zarr.json"]
    assert zcore.open(mapping, path="a").store is array.store
    again = dict(mapping)
    del array
    gc.collect()
    assert zcore.open(again, path="a")[...].tolist() == [0, 1, 2, 3]
    del zcore.open_group(mapping, "r+")["a"]
    assert list(mapping) == ["zarr.json"]


def test_threads_that_write_parts_of_one_chunk():
    mapping = {}
    zcore.create_array(mapping, shape=400, chunks=400, dtype="i4")

    def write(n):
        array = zcore.open(mapping, mode="r+")
        for i in range(n, 400, 4):
            array[i] = i

    at_once(threading.Thread(target=write, args=(n,)) for n in range(4))
    assert (zcore.open(mapping)[...] == np.arange(400)).all()


def test_a_reference_set_stays_one():
    refs = {"zarr.json": '{"zarr_format": 3, "node_type": "group"}'}
    assert type(zcore.open(refs).store) is zcore.ReferenceStore
    with pytest.raises(TypeError, match="reference set"):
        zcore.create_array(refs, name="a", shape=3, dtype="i4")


def test_what_is_no_value():
    with pytest.raises(zcore.StoreError, match="expected bytes"):
        zcore.open({"zarr.json": 1.5})
    assert pickle.loads(pickle.dumps(MappingStore.of({"a": b"1"}))).read_only
    with pytest.raises(ValueError, match="fsync"):
        zcore.create_array({}, shape=3, dtype="i4", fsync=True)


def test_stores_in_memory_by_their_name():
    zcore.create_array("memory://here", name="a", data=[1, 2])
    assert zcore.load("memory://here", "a").tolist() == [1, 2]
    for place in ("memory://there", "memory://"):
        with pytest.raises(zcore.NodeNotFoundError):
            zcore.open(place)
    assert zcore.create_array(None, data=[1]).store is not zcore.create_array("memory://", data=[1]).store
    with pytest.raises(TypeError, match="NoneType"):
        zcore.open(None)


@pytest.mark.parametrize("mode", ["r", "a", "w"])
def test_an_open_hdf5_file_is_not_written_to(mode, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = [1, 2]
        for call in (lambda: zcore.open_group(file, mode=mode), lambda: zcore.copy(file, tmp_path / "b.zarr"),
                     lambda: zcore.create_array(file, shape=2, dtype="i4", overwrite=True)):
            with pytest.raises(TypeError, match="open HDF5 file"):
                call()
        assert list(file) == ["x"]


def test_a_dataset_of_xarray_is_no_store():
    dataset = pytest.importorskip("xarray").Dataset({"v": ("x", [1, 2])})
    with pytest.raises(TypeError, match=r"zcore\.xarray\.to_zarr\(dataset, store\)"):
        zcore.copy(dataset, {})


@each("key", ["x/", "", "/", "/x", "//", "t/", "t//", "t//x"])
def test_keys_that_no_store_has_are_passed_over(key):
    mapping = {}
    zcore.create_group(mapping).create_array("t", data=[1, 2])
    mapping[key] = b"not ours"
    g = zcore.open_group(mapping, mode="a")
    assert list(g) == ["t"] and g["t"][:].tolist() == [1, 2]
    zcore.verify(mapping)
    del g["t"]
    assert list(g) == [] and mapping[key] == b"not ours"
