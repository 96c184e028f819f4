"""Handles that were opened before another writer changed the array: planned anew, or an error that says so.

Never a fill value for what is not known to be one, and no element lost.
"""
import os
import shutil

import numpy as np
import pytest

import zcore
from tests.both_ways import WAYS, directory
from zcore.engine import array_binding, node_binding, views
from zcore.errors import NodeNotFoundError, SelectionError, StoreError
from zcore.hierarchy import deletion

FILL = -1


# The store and the code that goes through it, whether documents are so old that their identity is trusted, the locks.
VARIANTS = ("native young locked", "native old locked", "native old unlocked", "native young unlocked",
            "confined young locked", "confined old unlocked", "memory old locked")


@pytest.fixture(params=VARIANTS)
def variant(request, monkeypatch):
    kind, age, lock = request.param.split()
    monkeypatch.setattr(views, "TRUSTED_AGE_NS", -(1 << 62) if age == "old" else 1 << 62)
    return kind, lock


@pytest.fixture
def store(variant, place):
    return zcore.MemoryStore() if variant[0] == "memory" else directory(place, variant[0])


@pytest.fixture
def lock(variant):
    return True if variant[1] == "locked" else None


def create(store, shape=(10, 6), chunks=(4, 4), dtype="i4", **options):
    return zcore.open(store, mode="w", shape=shape, chunks=chunks, dtype=dtype, fill_value=FILL, cname="lz4",
                      **options)


def filled(store, **options):
    """Return a handle of a new array with the numbers 0 to 59."""
    array = create(store, **options)
    array[...] = np.arange(60).reshape(10, 6)
    return array


def other(store, **options):
    return zcore.open(store, mode="r+", **options)


def test_write_after_a_shrink_is_refused_outside(store, lock):
    array = filled(store, lock=lock)
    other(store).resize(5, 6)
    with pytest.raises(SelectionError, match=r"shrunk to \(5, 6\)"):
        array[3:7] = 7
    array[4] = 9
    assert array.shape == (5, 6)
    found = zcore.open(store)[...]
    assert (found[3] == np.arange(18, 24)).all() and (found[4] == 9).all()
    # What was refused has not been written into the border chunk either.
    other(store).resize(10, 6)
    assert (zcore.open(store)[5:] == FILL).all()


def test_write_after_growth_keeps_what_others_wrote(store, lock):
    """The last chunks were covered by this write when the handle was opened; now they are not."""
    array = filled(store, lock=lock)
    bigger = other(store)
    bigger.resize(12, 8)
    bigger[10:] = 100
    bigger[:, 6:] = 200
    array[...] = 5
    found = zcore.open(store)[...]
    assert (found[:10, :6] == 5).all() and (found[:, 6:] == 200).all() and (found[10:, :6] == 100).all()


def test_write_after_a_shrink_and_growth(store, lock):
    array = filled(store, lock=lock)
    changer = other(store)
    changer.resize(2, 2)
    changer.resize(10, 6)
    array[1:3, 1:3] = 5
    expected = np.full((10, 6), FILL)
    expected[:2, :2] = [[0, 1], [6, 7]]
    expected[1:3, 1:3] = 5
    assert (zcore.open(store)[...] == expected).all()


def test_append_after_an_append(store):
    one, two = filled(store), other(store)
    assert one.append(np.full((3, 6), 70)) == (13, 6)
    assert two.append(np.full((1, 6), 80)) == (14, 6)
    assert one.append(np.full((2, 6), 90)) == (16, 6)
    assert (zcore.open(store)[10:, 0] == [70] * 3 + [80] + [90] * 2).all()


def test_resize_after_an_append_takes_the_shape_it_is_given(store):
    one, two = filled(store), other(store)
    two.append(np.full((3, 6), 70))
    one.resize(12, 6)
    assert zcore.open(store).shape == (12, 6)
    assert (zcore.open(store)[10:] == 70).all()


def test_attributes_of_an_older_handle(store):
    one, two = filled(store), other(store)
    two.attrs["a"] = 1
    two.resize(3, 6)
    one.attrs["b"] = 2
    assert two.attrs.asdict() == {"a": 1, "b": 2}


@pytest.mark.parametrize("selection", [np.s_[3:3], np.s_[2, 6:], np.s_[[], 1:]], ids=str)
def test_a_write_of_no_elements_does_nothing(store, lock, selection):
    """It neither takes over what another handle changed, nor notices that the array is gone."""
    array = filled(store, lock=lock)
    other(store).append(np.full((2, 6), 70))
    array[selection] = 7
    assert array.shape == (10, 6)
    deletion.delete(array.store, "", array._binding.options)
    array[selection] = 7


@pytest.mark.parametrize("change", ["write", "read", "append", "resize", "attributes"])
def test_a_deleted_array_is_not_found(store, lock, change):
    array = filled(store, lock=lock)
    deletion.delete(array.store, "", array._binding.options)
    with pytest.raises(NodeNotFoundError):
        use(array, change)
    assert list(array.store.list()) == []


@pytest.mark.parametrize("change", ["write", "read"])
def test_a_removed_directory_is_not_found(place, lock, change):
    import shutil

    array = filled(place, lock=lock)
    shutil.rmtree(place)
    with pytest.raises(NodeNotFoundError):
        use(array, change)


def test_a_half_deleted_array_is_not_found(store):
    """A kill after the document is gone leaves the chunks."""
    array = filled(store)
    array.store.erase("__zmeta__")
    with pytest.raises(NodeNotFoundError):
        array[2, 2]
    with pytest.raises(NodeNotFoundError):
        array[2, 2] = 5


def use(array, change):
    if change == "write":
        array[1:9, 1:3] = 5
    elif change == "read":
        array[...]
    elif change == "append":
        array.append(np.zeros((1, 6), "i4"))
    elif change == "resize":
        array.resize(3, 3)
    else:
        array.attrs["a"] = 1


REPLACEMENTS = {
    "type": {"dtype": "f4"},
    "byte order": {"dtype": ">i4"},
    "chunks of another size": {"chunks": (4, 3)},
    "chunks of the same size": {"chunks": (2, 8)},
    "dimensions": {"shape": (10,), "chunks": (16,)},
    "more dimensions": {"shape": (10, 6, 2), "chunks": (4, 2, 2)},
    "fill value": {"fill_value": 7},
}


@pytest.mark.thinned(3, "variant", "replacement", "change")
@pytest.mark.parametrize("change", ["write", "read", "append"])
@pytest.mark.parametrize("replacement", REPLACEMENTS)
def test_an_array_that_was_replaced(store, lock, replacement, change):
    """Right data or a clear error; the bytes of one array are never taken for elements of another."""
    array = filled(store, lock=lock)
    options = {"shape": (10, 6), "chunks": (4, 4), "dtype": "i4", "fill_value": FILL, **REPLACEMENTS[replacement]}
    new = zcore.open(store, mode="w", cname="lz4", **options)
    new[...] = 3
    before = new[...]
    try:
        use(array, change)
    except (StoreError, ValueError) as exc:
        assert "replaced" in str(exc) or (change == "append" and isinstance(exc, ValueError)), exc
        found = zcore.open(store)[...]
        assert found.dtype == before.dtype and found.shape == before.shape and (found == before).all()
        if change != "append":
            with pytest.raises(StoreError, match="replaced"):
                use(array, change)
    else:
        # The element type and the dimensions are the same, so the write means the same; a read does not.
        assert change in ("write", "append") and replacement in (
            "chunks of another size", "chunks of the same size", "fill value")
        expected = before.copy()
        if change == "append":
            expected = np.concatenate([before, np.zeros((1, 6), "i4")])
        else:
            expected[1:9, 1:3] = 5
        assert (zcore.open(store)[...] == expected).all()


@pytest.mark.parametrize("change", ["write", "read"])
def test_an_array_that_was_replaced_by_its_like(store, lock, change):
    array = filled(store, lock=lock)
    create(store)[...] = 3
    if change == "write":
        array[0] = 5
        assert (array[0] == 5).all() and (array[1:] == 3).all()
    else:
        assert (array[...] == 3).all()


def test_refresh_takes_a_replaced_array_over(store):
    array = filled(store)
    create(store, shape=(3,), chunks=(2,), dtype="f8")[...] = 1.5
    with pytest.raises(StoreError, match="replaced"):
        array[...]
    assert array.refresh().dtype == "f8"
    assert array[...].tolist() == [1.5] * 3
    array[1] = 2.5
    assert array[1] == 2.5


def test_read_of_what_was_cut_off(store):
    """The elements are gone, which is not the same as never written."""
    array = filled(store)
    other(store).resize(5, 6)
    assert (array[:5] == np.arange(30).reshape(5, 6)).all()
    for selection in (slice(5, 10), slice(0, 10), 9):
        with pytest.raises(SelectionError, match="shrunk"):
            array[selection]
    assert array.refresh().shape == (5, 6)
    other(store).resize(10, 6)
    assert (array[...] == np.arange(30).reshape(5, 6)).all()


def test_damage_is_told_from_replacement(store):
    """A bad chunk under the right document is a ChunkError still."""
    array = filled(store)
    array.store.set("__zdata__/1.1.blosc", b"damaged")
    with pytest.raises(zcore.errors.ChunkError, match="1.1.blosc"):
        array[...]


def test_a_write_whose_document_changes_at_every_look(place, monkeypatch):
    """A stream of resizes does not starve a write: after some rounds it keeps the others out."""
    array, changer = filled(place), other(place)
    looks = []
    look = array_binding.ArrayBinding.look

    def look_and_lose(binding):
        view = look(binding)
        if binding is array._binding and not held:
            looks.append(view)
            changer.resize(11 + len(looks), 6)
        return view

    held = []
    enter = node_binding.Exclusive.__enter__

    def enter_and_note(exclusive):
        if exclusive._binding is array._binding:
            held.append(True)
        return enter(exclusive)

    monkeypatch.setattr(node_binding.Exclusive, "__enter__", enter_and_note)
    monkeypatch.setattr(array_binding.ArrayBinding, "look", look_and_lose)
    changer.resize(11, 6)
    array[:10] = 5
    assert len(looks) == array_binding.MAX_STALE and held
    assert (array[:10] == 5).all() and array.shape == (11 + len(looks), 6)


@pytest.mark.parametrize("way", WAYS)
def test_a_document_that_looks_the_same(place, way):
    """Inode, size and times of a new document can be those of the old one; its content tells."""
    array = filled(directory(place, way))
    other(place).resize(11, 6)
    other(place)[10] = 77
    status = os.stat(f"{place}/__zmeta__")
    same = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    array._binding.view = array._binding.view._replace(identity=same, trusted=False)
    array[...] = 5
    found = zcore.open(place)[...]
    assert (found[:10] == 5).all() and (found[10] == 77).all()


def test_an_array_that_is_deleted_while_a_chunk_is_encoded(place, monkeypatch):
    """The new object has no place then, and that is no fault of the file system. No lock is held yet."""
    numcodecs = pytest.importorskip("numcodecs")

    class Deleting(numcodecs.abc.Codec):
        codec_id = "zcore_test_deleting"

        def encode(self, buf):
            shutil.rmtree(place, ignore_errors=True)
            return bytes(buf)

        def decode(self, buf, out=None):
            return buf

    monkeypatch.setitem(numcodecs.registry.codec_registry, "zcore_test_deleting", Deleting)
    array = zcore.create_array(place, shape=(4,), chunks=(2,), dtype="u1",
                               compressors=[{"name": "numcodecs.zcore_test_deleting", "configuration": {}}])
    with pytest.raises(NodeNotFoundError):
        array[...] = 7
    assert not os.path.exists(place)
