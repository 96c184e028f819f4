"""NumPy arrays stored and loaded by one call."""
import numpy as np
import pytest

import zcore


@pytest.fixture(params=["directory", "memory"])
def place(request, tmp_path):
    return tmp_path / "a" if request.param == "directory" else zcore.MemoryStore()


@pytest.mark.parametrize("zarr_format", [3, 2, "zmeta"])
def test_one_array(place, zarr_format):
    data = np.arange(12).reshape(3, 4)
    zcore.save(place, data, zarr_format=zarr_format)
    assert np.array_equal(zcore.load(place), data) and zcore.open(place).zarr_format == zarr_format
    with pytest.raises(zcore.NodeExistsError):
        zcore.save(place, data + 1, zarr_format=zarr_format)
    assert np.array_equal(zcore.load(place), data)
    zcore.save(place, data + 1, zarr_format=zarr_format, overwrite=True)
    assert np.array_equal(zcore.load(place, zarr_format=zarr_format), data + 1)


def test_one_array_at_a_path(place):
    zcore.save_array(place, [1.5, 2], path="x/y", chunks=1, attributes={"units": "K"})
    assert zcore.load(place, "x/y").tolist() == [1.5, 2]
    assert zcore.open(place, path="x/y").attrs["units"] == "K"
    assert list(zcore.load(place)) == ["x/y"]


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_several_arrays_are_a_group(place, zarr_format):
    zcore.save(place, [1, 2], np.float32(3), zarr_format=zarr_format, name=["a", "bc"])
    loaded = zcore.load(place)
    assert {name: data.tolist() for name, data in loaded.items()} == {"arr_0": [1, 2], "arr_1": 3, "name": ["a", "bc"]}
    assert zcore.open(place).zarr_format == zarr_format
    with pytest.raises(zcore.NodeExistsError):
        zcore.save_group(place, [5])
    zcore.save_group(place, [5], overwrite=True, path=None)
    assert list(zcore.load(place)) == ["arr_0"]


def test_names_that_are_taken(place):
    for arrays, named in (((), {}), (([1],), {"arr_0": [2]})):
        with pytest.raises(ValueError):
            zcore.save(place, *arrays, **named)
    with pytest.raises(zcore.NodeNotFoundError):
        zcore.load(place)


def test_a_group_that_is_replaced_stays_until_all_members_are_written(tmp_path, monkeypatch):
    from zcore.hierarchy import creation

    def create(store, path, *args, **options):
        if path == "b":
            raise zcore.StoreError("the disk is full")
        return whole(store, path, *args, **options)

    zcore.save(tmp_path / "a", a=[1], b=[2])
    whole = creation.create
    monkeypatch.setattr(creation, "create", create)
    with pytest.raises(zcore.StoreError):
        zcore.save(tmp_path / "a", a=[3], b=[4], overwrite=True)
    assert {name: data.tolist() for name, data in zcore.load(tmp_path / "a").items()} == {"a": [1], "b": [2]}
    monkeypatch.undo()
    zcore.save(tmp_path / "a", a=[3], b=[4], overwrite=True)
    assert {name: data.tolist() for name, data in zcore.load(tmp_path / "a").items()} == {"a": [3], "b": [4]}
