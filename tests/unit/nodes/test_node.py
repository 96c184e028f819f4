"""Handles travel: what is pickled knows what the handle knew, and looks at the store when it is used."""
import copy
import pickle
import shutil

import numpy as np
import pytest

import zcore


@pytest.fixture(params=[3, 2, "zmeta"])
def array(request, tmp_path):
    data = np.arange(12, dtype="<i4").reshape(3, 4)
    return zcore.create_array(tmp_path / "s", data=data, chunks=(2, 2), zarr_format=request.param,
                              attributes={"x": 1})


class Silent(zcore.DirectoryStore):
    """A store that must not be asked for anything while `is_silent`."""

    is_silent = False

    def __getattribute__(self, name):
        found = super().__getattribute__(name)
        if callable(found) and name[0] != "_" and name != "describe" and Silent.is_silent:
            raise AssertionError(f"{name} was called")
        return found


def test_unpickling_asks_the_store_for_nothing(tmp_path, monkeypatch):
    group = zcore.create_group(Silent(tmp_path / "s"))
    array = group.create_array("a", data=np.arange(4, dtype="i8"), chunks=2)
    raw = pickle.dumps((array, group))
    monkeypatch.setattr(Silent, "is_silent", True)
    a, g = pickle.loads(raw)
    assert (a.shape, a.dtype, a.chunks, a.path) == ((4,), "i8", (2,), "a") and repr(a) == repr(array)
    assert g == group and a.metadata == array.metadata and copy.copy(a) == a
    monkeypatch.undo()
    assert a[...].tolist() == [0, 1, 2, 3] and list(g) == ["a"]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda part: pickle.loads(pickle.dumps(part))])
def test_parts_of_a_handle_travel_too(tmp_path, again):
    array = zcore.create_array(tmp_path, data=np.arange(6).reshape(2, 3), attributes={"n": 1})
    attributes = again(array.attrs)
    array.attrs["n"] = 2
    assert attributes["n"] == 2
    assert again(array.oindex)[[1], [0, 2]].tolist() == [[3, 5]] and again(array.vindex)[[1], [2]].tolist() == [5]


@pytest.mark.parametrize("what", ["nothing", "a file"])
def test_a_place_that_cannot_be_seen_is_an_error_of_the_first_use(array, tmp_path, what):
    group = pickle.dumps(zcore.create_group(tmp_path / "g"))
    raw = pickle.dumps(array)
    for name in ("s", "g"):
        shutil.rmtree(tmp_path / name)
        if what == "a file":
            (tmp_path / name).touch()
    again = pickle.loads(raw)
    assert again.shape == (3, 4)
    for use in (lambda: again[...], lambda: again.__setitem__(0, 1), again.refresh, lambda: again.attrs["x"],
                lambda: list(pickle.loads(group)), lambda: pickle.loads(group)["a"],
                lambda: pickle.loads(group).nmembers()):
        with pytest.raises(zcore.ZcoreError):
            use()


def test_what_changed_meanwhile_is_seen_at_the_first_use(array):
    raw = pickle.dumps(array)
    array[0, 0] = 50
    array.attrs["x"] = 2
    again = pickle.loads(raw)
    assert again[0, 0] == 50 and again.attrs["x"] == 2
    array.append(np.full((2, 4), 7))
    again = pickle.loads(raw)
    again[2] = 9
    assert array[2].tolist() == [9] * 4 and again.refresh().shape == (5, 4)
    array.resize(1, 4)
    again = pickle.loads(raw)
    with pytest.raises(zcore.SelectionError):
        again[2] = 1
    again = pickle.loads(raw)
    again.append(np.full((1, 4), 8))
    assert again[...].tolist() == [[50, 1, 2, 3], [8] * 4]


def test_another_array_in_its_place_is_never_taken_for_it(array):
    raw = pickle.dumps(array)
    store, zarr_format = array.store, array.zarr_format
    zcore.create_array(store, data=np.zeros((3, 4), "<f8"), chunks=(3, 4), zarr_format=zarr_format, overwrite=True)
    for use in (lambda again: again[...], lambda again: again.__setitem__(..., 1)):
        with pytest.raises(zcore.StoreError, match="replaced"):
            use(pickle.loads(raw))
    assert (zcore.open(store)[...] == 0).all()


def test_a_store_in_memory_travels_with_its_content():
    array = zcore.array(np.arange(4), chunks=2)
    again, other = pickle.loads(pickle.dumps((array, array)))
    array[0] = 9
    assert again[...].tolist() == [0, 1, 2, 3] and again.store is other.store and again.store.read_only
    deep = copy.deepcopy(array)
    deep[1] = 7
    assert array[...].tolist() == [9, 1, 2, 3] and deep[...].tolist() == [9, 7, 2, 3]


def test_metadata_that_a_caller_changes_are_no_other_nodes(tmp_path):
    # Handles share what they know of equal documents.
    arrays = [zcore.create_array(tmp_path / name, shape=(6,), dtype="f8") for name in "ab"]
    groups = [zcore.create_group(tmp_path / name) for name in "cd"]
    for node in (arrays[0], groups[0]):
        before = node.metadata
        metadata = node.metadata
        metadata.attributes["x"] = 1
        metadata.extra["y"] = {"must_understand": False}
        for codec in getattr(metadata, "codecs", ()):
            codec.configuration["endian"] = "big"
        assert metadata != before and node.metadata == before
    arrays[1].append(np.ones(2))
    made = zcore.create_array(tmp_path / "e", shape=(6,), dtype="f8")
    made.resize(7)
    for node in (*arrays, *groups, made):
        metadata = zcore.open(node.store, path=node.path).refresh().metadata
        assert (metadata.attributes, metadata.extra) == ({}, {}) and dict(node.attrs) == {}
    assert arrays[1][...].tolist() == [0] * 6 + [1] * 2
