"""Arrays change their shape and go: what was cut off never comes back, and only what exists is touched."""
import collections
import errno
import fcntl
import functools
import itertools
import os
import shutil
import sys
import threading
from unittest import mock

import numpy as np
import pytest

import zcore
from tests.both_ways import WAYS, directory
from tests.each import each
from zcore import blosc
from zcore.engine.array_binding import ArrayBinding
from zcore.engine.node_binding import Exclusive
from zcore.engine.options import Options
from zcore.hierarchy import attributes, deletion
from zcore.kernel.io.files import TEMP_PREFIX


@pytest.fixture(params=[*WAYS, "memory"])
def store(request, tmp_path):
    return zcore.MemoryStore() if request.param == "memory" else directory(tmp_path, request.param)


def make(store, shape=(10, 10), chunks=(4, 4), dtype="<i4", **keywords):
    return zcore.open(store, mode="w", shape=shape, chunks=chunks, dtype=dtype, cname="lz4", **keywords)


def chunks_of(array):
    return sorted(key.rpartition("/")[2].removesuffix(".blosc") for key in array.store.list_prefix("__zdata__/"))


# Resize


def test_shrink_erases_and_resets(store):
    """V3-OP-05, ZM-CHK-15"""
    a = make(store, fill_value=7)
    a[...] = 1
    a.resize(6, 4)
    assert a.shape == (6, 4) and chunks_of(a) == ["0.0", "1.0"]
    raw = np.frombuffer(blosc.decompress(store.get("__zdata__/1.0.blosc")), "<i4").reshape(4, 4)
    assert raw.tolist() == [[1] * 4] * 2 + [[7] * 4] * 2
    a.resize((10, 10))
    assert (a[:6, :4] == 1).all() and (a[6:] == 7).all() and (a[:, 4:] == 7).all()
    assert zcore.open(store)[...].tolist() == a[...].tolist()


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_every_pair_of_shapes(request, store, step):
    """V3-OP-05: All of 0 ... 5 by 0 ... 5 to another, chunks of 2 by 3: nothing comes back by growing again.

    By default each pair has one of the three stores.
    """
    first = [*WAYS, "memory"].index(request.node.callspec.params["store"]) % step
    shapes = list(itertools.product((0, 1, 3, 5), repeat=2))
    for old, new in itertools.islice(itertools.product(shapes, shapes), first, None, step):
        a = make(store, old, (2, 3))
        a[...] = model = np.arange(1, 1 + np.prod(old)).reshape(old)
        a.resize(new)
        a.resize(5, 5)
        expected = np.zeros((5, 5), int)
        kept = tuple(slice(min(lengths)) for lengths in zip(old, new, strict=True))
        expected[kept] = model[kept]
        assert (a[...] == expected).all(), (old, new)


def test_growing_resets_what_others_left(store):
    """V3-OP-05, V3-GRID-05, ZM-CHK-15: chunks outside the grid, as resize of 2016 left them, and overhang that is
    not fill value.
    """
    a = make(store, 6, 4)
    chunk = blosc.compress(np.full(4, 99, "<i4").tobytes(), typesize=4)
    for i in range(5):
        store.set(f"__zdata__/{i}.blosc", chunk)
    assert a[...].tolist() == [99] * 6 and a.nchunks_initialized == 2
    a.resize(17)
    assert a[...].tolist() == [99] * 6 + [0] * 11 and chunks_of(a) == ["0", "1"]


def test_damaged_chunks_outside_are_erased_unread(store):
    a = make(store, 6, 4)
    store.set("__zdata__/3.blosc", b"damaged")
    a.resize(16)
    assert a[...].tolist() == [0] * 16 and chunks_of(a) == []


def test_a_damaged_border_chunk_stops_growth_before_the_document(store):
    """Else its overhang would show."""
    a = make(store, 6, 4)
    store.set("__zdata__/1.blosc", b"damaged")
    for _ in range(2):
        with pytest.raises(zcore.CodecError) as caught:
            a.resize(16)
        assert caught.value.key == "__zdata__/1.blosc"
        assert a.shape == zcore.open(store).shape == (6,)
    a[4:] = 5
    a.resize(16)
    assert a[...].tolist() == [0] * 4 + [5, 5] + [0] * 10


@pytest.mark.parametrize("shape", [((3, 4),), (3, 4), ([3, 4],), (np.array([3, 4]),), (np.int64(3), 4)])
def test_spellings_of_a_shape(store, shape):
    a = make(store)
    a.resize(*shape)
    assert a.shape == (3, 4) and all(type(length) is int for length in a.shape)
    a.shape = (5, 6)
    assert zcore.open(store).shape == (5, 6)


@pytest.mark.parametrize(("shape", "exception"), [
    ((3,), ValueError), ((3, 4, 5), ValueError), ((), ValueError), ((-1, 4), ValueError), ((2**63, 9), ValueError),
    ((2**40, 2**40), ValueError), ((2.0, 3), TypeError), (("a", 3), TypeError), ((True, 3), TypeError),
    ((None, 3), TypeError),
])
def test_shapes_that_are_none(store, shape, exception):
    a = make(store)
    a[...] = 1
    with pytest.raises(exception):
        a.resize(*shape)
    assert a.shape == (10, 10) and (zcore.open(store)[...] == 1).all()


def test_one_dimension(store):
    a = make(store, 10, 4)
    a.resize(3)
    a.resize((5,))
    with pytest.raises(ValueError):
        a.resize(-1)
    assert a.shape == (5,)


def test_huge_growth_costs_nothing(store):
    """Found by listing what exists, never by probing the grid."""
    a = make(store, 10, 4)
    a[...] = 1
    a.resize(2**62)
    assert a[2**61] == 0 and a[9] == 1 and a[10] == 0 and a.nchunks == 2**60
    a.resize(6)
    a.resize(2**62)
    assert a[:8].tolist() == [1] * 6 + [0] * 2 and chunks_of(a) == ["0", "1"]


def test_extra_members_and_attributes_survive(store):
    """ZM-META-14"""
    a = make(store)
    raw = store.get("__zmeta__").replace(b'"shuffle"', b'"mine": {"x": [1]},\n    "shuffle"')
    store.set("__zmeta__", raw)
    a.attrs["k"] = 1
    a = zcore.open(store, mode="r+")
    a.resize(3, 3)
    assert b'"mine": {' in store.get("__zmeta__") and a.attrs == {"k": 1}


@pytest.mark.parametrize("zarr_format", [2, 3, "zmeta"])
def test_a_handle_knows_what_the_new_document_says(store, zarr_format):
    """Appends and resizes do not parse the document that they have written; what they know is what is there."""
    array = zcore.create_array(store, shape=(4, 3), chunks=(2, 3), dtype="<f8", zarr_format=zarr_format,
                               fill_value=2.5, attributes={"b": 1})
    for change in (lambda: array.append(np.ones((3, 3))), lambda: array.resize(9, 2),
                   lambda: array.attrs.update(a=[1]), lambda: array.resize(3, 8)):
        change()
        known, fresh = array._binding.view, zcore.open(store)._binding.view
        assert known.metadata == fresh.metadata
        assert (known.raw, known.identity, known.notes) == (fresh.raw, fresh.identity, fresh.notes)
        assert known.template == fresh.template


def test_attributes_of_the_caller_are_his_own_after_an_append(store):
    """What he changes in a list that he gave is not written with the next document."""
    array = make(store, (4, 3), (2, 3), "<f8")
    mine = [1]
    array.attrs["a"] = mine
    mine.append(2)
    array.append(np.ones((1, 3)))
    array.resize(2, 3)
    assert zcore.open(store).attrs["a"] == [1]


class LoggingStore(zcore.MemoryStore):
    """Notes what is asked of it, in order: the operation, and the last part of a key or the whole of a prefix."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def changes(self):
        """Return the calls that changed something since this was asked last."""
        changes = [call for call in self.calls if call[0] not in ("get", "list")]
        self.calls.clear()
        return changes

    def get(self, key, byte_range=None):
        self.calls.append(("get", key.rpartition("/")[2]))
        return super().get(key, byte_range)

    def set(self, key, value):
        self.calls.append(("set", key.rpartition("/")[2]))
        super().set(key, value)

    def erase(self, key):
        self.calls.append(("erase", key.rpartition("/")[2]))
        super().erase(key)

    def erase_prefix(self, prefix):
        self.calls.append(("erase", prefix))
        for key in list(self.list_prefix(prefix)):
            super().erase(key)

    def list_dir(self, prefix):
        self.calls.append(("list", prefix))
        return super().list_dir(prefix)


def test_what_a_resize_costs():
    store = LoggingStore()
    a = make(store, (1000, 1000), (4, 4))
    a[0:10, 0:10] = 1
    for shape, expected in (
        ((2000, 1000), {("list", "__zdata__/"): 1, ("set", "__zmeta__"): 1}),
        ((10, 10), {("list", "__zdata__/"): 1, ("set", "__zmeta__"): 1, **{
            (operation, f"{i}.{j}.blosc"): 1 for operation in ("get",
                                                               "set") for i in range(3) for j in range(3) if 2 in (i,
                                                                       j)}}),
        ((8, 4), {("list", "__zdata__/"): 1, ("set", "__zmeta__"): 1, **{
            ("erase", f"{i}.{j}.blosc"): 1 for i in range(3) for j in range(3) if i == 2 or j > 0}}),
    ):
        store.calls.clear()
        a.resize(shape)
        counts = collections.Counter(call for call in store.calls if call != ("get", "__zmeta__"))
        assert counts == expected


def test_the_order_of_a_resize():
    """V3-OP-05, ZM-CHK-15: the document first when it shrinks, and last when it grows."""
    store = LoggingStore()
    a = make(store, 10, 4)
    a[...] = 1
    store.changes()
    a.resize(5)
    assert store.changes() == [("set", "__zmeta__"), ("erase", "2.blosc"), ("set", "1.blosc")]
    a.resize(9)
    assert store.changes() == [("set", "1.blosc"), ("set", "__zmeta__")]


# Append


def test_append(store):
    a = make(store, (3, 5), (4, 4))
    model = np.arange(15).reshape(3, 5)
    a[...] = model
    for axis, n in ((0, 2), (1, 1), (0, 0), (-1, 6), (-2, 9), (1, 0)):
        shape = list(model.shape)
        shape[axis] = n
        rows = 100 + np.arange(np.prod(shape)).reshape(shape)
        model = np.concatenate([model, rows], axis)
        assert a.append(rows, axis=axis) == model.shape == a.shape
        assert (a[...] == model).all() and (zcore.open(store)[...] == model).all()


def test_append_to_nothing(store):
    a = make(store, (0, 3), (2, 2))
    a.append([[1, 2, 3]])
    a.append(np.zeros((0, 3)))
    a.append(make(zcore.MemoryStore(), (2, 3), (1, 1), fill_value=4))
    assert a[...].tolist() == [[1, 2, 3], [4, 4, 4], [4, 4, 4]]


def test_append_casts_as_assignment_does(store):
    a = make(store, 2, 2, "|i1")
    a.append([1.0, 2.9, True])
    assert a[...].tolist() == [0, 0, 1, 2, 1]
    for wrong, exception in (([300], OverflowError), (["x"], ValueError), ([None], TypeError), ([[1]], ValueError),
                             (5, ValueError),
                             (np.zeros((1, 1)), ValueError), (np.int64(300), OverflowError), ([1, [2]], ValueError)):
        with pytest.raises(exception):
            a.append(wrong)
        assert a.shape == (5,) and zcore.open(store).shape == (5,)


@pytest.mark.parametrize(("axis", "exception"), [(2, ValueError), (-3, ValueError), (0.5, TypeError),
                                                 (None, TypeError), ("0", TypeError)])
def test_axes_that_are_none(store, axis, exception):
    a = make(store)
    with pytest.raises(exception):
        a.append(np.zeros((10, 10)), axis=axis)
    assert a.shape == (10, 10)


def test_an_axis_is_any_object_with_an_index(store):
    class Axis:
        def __index__(self):
            return -1

    assert make(store).append(np.zeros((10, 2)), axis=Axis()) == (10, 12)


def test_append_shows_nothing_old(store):
    """Left-over objects in the new region, and overhang of the border chunk, whoever wrote them."""
    a = make(store, 6, 4)
    for i in range(6):
        store.set(f"__zdata__/{i}.blosc", blosc.compress(np.full(4, 99, "<i4").tobytes(), typesize=4))
    a.append([0] * 5)
    assert a[...].tolist() == [99] * 6 + [0] * 5 and "2" not in chunks_of(a)
    a.append([1])
    a.resize(24)
    assert a[...].tolist() == [99] * 6 + [0] * 5 + [1] + [0] * 12


def test_append_of_two_handles(store):
    a = make(store, 0, 4)
    b = zcore.open(store, mode="r+")
    for i in range(5):
        a.append([i])
        b.append([10 + i])
    assert a.refresh()[...].tolist() == b[...].tolist() == [0, 10, 1, 11, 2, 12, 3, 13, 4, 14]


def test_append_keeps_what_was_changed_in_place(tmp_path):
    """A program that locks nothing rewrites the document between two appends, in the same file, of the same length."""
    a = zcore.create_array(str(tmp_path / "a"), shape=(0, 2), chunks=(1, 2), dtype="i4", attributes={"x": 1})
    a.append(np.ones((1, 2), "i4"))
    path = tmp_path / "a" / "zarr.json"
    times = path.stat()
    content = path.read_bytes()
    with path.open("r+b") as file:
        file.write(content.replace(b'"x": 1', b'"x": 2'))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert a.append(np.ones((1, 2), "i4")) == (2, 2)
    assert dict(zcore.open(str(tmp_path / "a")).attrs) == {"x": 2}


def test_append_with_missing_raise(store):
    a = make(store, 3, 4, missing="raise")
    with pytest.raises(zcore.ChunkError):
        a.append([1])
    assert a.shape == (3,)
    a[...] = 0
    a.append([0, 0, 0])
    assert a[...].tolist() == [0] * 6 and a.nchunks_initialized == 2


# Create and delete


def test_create_clears_what_an_older_array_left(store):
    """ZM-LAY-03, ZM-LAY-06"""
    store.set("__zdata__/0.0.blosc", b"old")
    store.set("__zattr__", b"old")
    store.set("other", b"kept")
    store.set("__zdata__2/x", b"kept")
    a = make(store)
    assert a.attrs == {} and a.nchunks_initialized == 0 and store.get("other") == b"kept" == store.get("__zdata__2/x")


def test_the_document_is_written_last_and_erased_first():
    """ZM-LAY-06"""
    store = LoggingStore()
    left_over = [("erase", "__zattr__"), ("erase", "__zdata__/")]
    a = make(store, attributes={"k": 1})
    assert store.changes() == [("set", "__zattr__"), ("set", "__zmeta__")]
    a[...] = 1
    store.changes()
    make(store)
    assert store.changes() == [("erase", "__zmeta__"), *left_over, ("set", "__zmeta__")]
    deletion.delete(store, "", Options())
    store.set("other", b"kept")
    store.changes()
    make(store)
    assert store.changes() == [("set", "__zmeta__")]
    deletion.delete(store, "", Options())
    assert store.changes() == [("erase", "__zmeta__"), *left_over]


def test_delete(store):
    a = make(store, path="a/b")
    a[...] = 1
    a.attrs["x"] = 1
    store.set("a/b/other", b"kept")
    make(store, path="a/b2")[...] = 2
    for _ in range(2):
        deletion.delete(store, "a/b", Options())
        assert [key for key in store.list() if not key.startswith("a/b2/")] == ["a/b/other"]
    with pytest.raises(zcore.NodeNotFoundError):
        zcore.open(store, path="a/b")
    assert (zcore.open(store, path="a/b2")[...] == 2).all()


def test_nothing_but_the_arrays_own_files_is_left(tmp_path):
    """ZM-CHK-14: no lock files, no temporary files."""
    for lock in (True, None):
        a = make(str(tmp_path / "x"), lock=lock)
        a[...] = 1
        a[0, 0] = 2
        a.attrs["k"] = 1
        a.resize(5, 5)
        a.append(np.ones((1, 5)))
        found = sorted(str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*"))
        chunks = [f"x/__zdata__/{i}.{j}.blosc" for i in range(2) for j in range(2)]
        assert found == ["x", "x/__zattr__", "x/__zdata__", *chunks, "x/__zmeta__"]


@pytest.mark.parametrize(("module", "name"), [(fcntl, "flock"), (os, "unlink")])
def test_a_place_is_given_back_when_a_signal_handler_raises_in_it(tmp_path, monkeypatch, module, name):
    """A lock that nobody remembers would stop the next creation in this directory, by this process too."""
    original = getattr(module, name)

    def interrupted(*arguments, **keywords):
        if arguments[-1] == fcntl.LOCK_EX:
            return original(*arguments, **keywords)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(module, name, interrupted)
    try:
        make(str(tmp_path))
        pytest.fail("it was not interrupted")
    except KeyboardInterrupt:
        # The exception ends here, and with its traceback what that leads to.
        pass
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(fd)
    assert not [name for name in os.listdir(tmp_path) if name.startswith(TEMP_PREFIX)]
    assert make(str(tmp_path)).shape == (10, 10)


@pytest.mark.parametrize("change, expected", [
    (lambda array: array.append(np.array([7, 7, 7])), [1, 2, 3, 4, 7, 7, 7]),
    (lambda array: array.resize(7), [1, 2, 3, 4, 0, 0, 0]),
    (lambda array: array.resize(2), [1, 2])])
def test_a_group_above_is_moved_while_the_array_is_held(change, expected, tmp_path, monkeypatch):
    """Another array at the old path gets nothing of the change."""
    group = zcore.create_group(tmp_path)
    group.create_array("g/x", data=np.array([1, 2, 3, 4]), chunks=3)
    array, write_once = group["g/x"], ArrayBinding.write_once

    def late(binding, *args, **keywords):
        if "h" not in group:
            group.move("g", "h")
            group.create_array("g/x", data=-np.arange(8), chunks=3)
        return write_once(binding, *args, **keywords)

    monkeypatch.setattr(ArrayBinding, "write_once", late)
    change(array)
    monkeypatch.undo()
    assert group["h/x"][...].tolist() == expected
    assert np.array_equal(group["g/x"][...], -np.arange(8))


def test_an_array_is_removed_with_its_directory_while_it_is_held(tmp_path, monkeypatch):
    array = zcore.create_array(tmp_path / "x", data=np.arange(4), chunks=2)
    write_once = ArrayBinding.write_once

    def late(*args, **keywords):
        shutil.rmtree(tmp_path / "x")
        return write_once(*args, **keywords)

    monkeypatch.setattr(ArrayBinding, "write_once", late)
    with pytest.raises(zcore.NodeNotFoundError, match="removed meanwhile"):
        array.append(np.arange(2))


def test_a_group_above_is_moved_before_objects_outside_are_erased(tmp_path, monkeypatch):
    group = zcore.create_group(tmp_path)
    group.create_array("g/x", data=np.arange(1, 9), chunks=3)
    array, replace_metadata = group["g/x"], Exclusive.replace_metadata

    def late(exclusive, metadata):
        replace_metadata(exclusive, metadata)
        group.move("g", "h")
        group.create_array("g/x", data=-np.arange(8), chunks=3)

    monkeypatch.setattr(Exclusive, "replace_metadata", late)
    with pytest.raises(zcore.StoreError, match="moved or replaced"):
        array.resize(2)
    monkeypatch.undo()
    assert np.array_equal(group["g/x"][...], -np.arange(8))
    group["h/x"].resize(8)
    assert group["h/x"][...].tolist() == [1, 2, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("lock", ["on", "file"])
@pytest.mark.parametrize("links, path", [
    ({"a/l": "../a"}, "a/l/l/x"), ({"a/b/up": ".."}, "a/b/up/c/x"), ({"a/l": "../b", "b/l": "../a"}, "a/l/l/x")])
def test_groups_that_are_missing_above_are_links_to_each_other(links, path, lock, tmp_path):
    """They have one directory, which is locked once."""
    root = zcore.create_group(tmp_path)
    for link, target in links.items():
        (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / link).symlink_to(target)
    zcore.create_array(tmp_path, name=path, data=np.arange(4), lock=lock)
    assert root[path][...].tolist() == [0, 1, 2, 3]
    assert not list(tmp_path.glob("**/.__zc_tmp*"))


def test_two_calls_meet_through_links_to_each_other(tmp_path):
    """They lock both directories in the same order, so neither waits for the other one for ever."""
    outcomes = []

    def create(path):
        meet.wait(60)
        zcore.create_array(tmp_path, name=path, data=np.arange(4))
        outcomes.append(path)

    for _ in range(10):
        meet = threading.Barrier(2)
        zcore.create_group(tmp_path, overwrite=True)
        for name, other in ("ab", "ba"):
            (tmp_path / name).mkdir(exist_ok=True)
            if not (tmp_path / name / "l").is_symlink():
                (tmp_path / name / "l").symlink_to(f"../{other}")
        threads = [threading.Thread(target=create, args=(f"{name}/l/x",), daemon=True) for name in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
    assert len(outcomes) == 20


def interrupted(call, n):
    """Raise KeyboardInterrupt at the n-th time that a Python function is entered or left during a call.

    There the interpreter runs signal handlers. Return the exception, or True if it was raised in a finalizer, where it
    is lost; None if the call has ended before.
    """
    left = n

    def trace(frame, event, argument):
        nonlocal left
        if not any([name in frame.f_code.co_filename for name in ("zcore", "contextlib")]):
            return None
        if event in ("call", "return"):
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt as exc:
        return exc
    finally:
        sys.settrace(before)
    return True if left <= 0 else None


HOLDING = {
    "create": lambda base: zcore.create_array(base / "a", shape=4, chunks=2, dtype="i4"),
    "create below": lambda base: zcore.create_array(base, name="a", shape=4, chunks=2, dtype="i4"),
    "overwrite": lambda base: zcore.create_array(base / "old", data=np.arange(4), chunks=2, overwrite=True),
    "delete": lambda base: zcore.open_group(base, "r+").__delitem__("old"),
    "resize": lambda base: zcore.open(base / "old", "r+").resize(3),
    "attributes": lambda base: zcore.open(base / "old", "r+").attrs.__setitem__("a", 1),
    "move": lambda base: zcore.open_group(base, "r+").move("old", "new"),
    "consolidate": lambda base: zcore.consolidate_metadata(base),
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("call", [call if call == "create" else pytest.param(call, marks=pytest.mark.slow)
                                  for call in HOLDING])
def test_a_traceback_that_is_kept_keeps_no_lock(tmp_path, call):
    """As in an interactive session, where the last exception is kept: after Ctrl-C the same call works."""
    for n in range(1, 10_000):
        base = tmp_path / str(n)
        zcore.create_group(base)
        zcore.create_array(base / "old", data=np.arange(4), chunks=2)
        exception = interrupted(lambda base=base: HOLDING[call](base), n)
        if exception is None:
            break
        try:
            HOLDING[call](base)
        except zcore.LockError as error:
            raise AssertionError(n) from error
        except zcore.ZcoreError:
            # What was interrupted may have been done, or half done: then an error says so.
            pass
        for path in (base, base / "a", base / "old", base / "new"):
            if path.exists():
                fd = os.open(path, os.O_RDONLY)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                finally:
                    os.close(fd)
    assert n > 100


@pytest.mark.parametrize("zarr_format", [3, 2, "zmeta"])
def test_chunks_beside_a_document_out_of_reach_are_no_left_overs(tmp_path, zarr_format):
    """As in a dataset of which the content of some files was dropped."""
    node, content = tmp_path / "node", tmp_path / "content"
    create = functools.partial(zcore.create_array, node, shape=4, chunks=2, dtype="i4", fill_value=0)
    create(zarr_format=zarr_format)[...] = 7
    document, = {"zarr.json", ".zarray", "__zmeta__"}.intersection(os.listdir(node))
    kept = (node / document).read_bytes()
    (node / document).unlink()
    (node / document).symlink_to(content)
    for again in (3, 2, "zmeta"):
        with pytest.raises(zcore.StoreError, match="leads nowhere"):
            create(zarr_format=again)
    content.write_bytes(kept)
    assert zcore.open(node)[...].tolist() == [7] * 4
    content.unlink()
    assert create(zarr_format=zarr_format, overwrite=True)[...].tolist() == [0] * 4


def test_a_document_that_cannot_be_locked_any_more_does_not_survive(tmp_path):
    """A network file system may say of a document that is there that it has lost hold of it."""
    class LosingStore(zcore.DirectoryStore):
        def locks(self, path, document, by_files=False):
            locks = super().locks(path, document, by_files)
            if path != "child":
                return locks
            lost = mock.MagicMock(directory=locks.directory)
            stale = FileNotFoundError(errno.ESTALE, "Stale file handle", document)
            lost.whole.return_value.__enter__.side_effect = stale
            return lost

    for change in (lambda group: group.__delitem__("child"),
                   lambda group: zcore.create_group(group.store, overwrite=True)):
        group = zcore.create_group(LosingStore(tmp_path), overwrite=True)
        zcore.create_array(tmp_path, name="child", data=[1, 2])
        assert list(group) == ["child"]
        change(group)
        assert os.listdir(tmp_path) == ["zarr.json"]


@each("text", [b"x", b"12", bytearray(b"x"), "5", "", b""])
def test_text_is_no_shape(text):
    """As in NumPy; of bytes Python would make integers."""
    a = make(zcore.MemoryStore())
    before = a.shape
    for call in (a.resize, lambda shape: setattr(a, "shape", shape), lambda shape: zcore.open(a.store, shape=shape),
                 lambda shape: a.resize(shape, 2), lambda shape: a.resize((shape, 2))):
        with pytest.raises(TypeError, match="shape: expected"):
            call(text)
    for zarr_format in (3, 2, "zmeta"):
        store = zcore.MemoryStore()
        new = functools.partial(zcore.create_array, store, dtype="i4", zarr_format=zarr_format)
        with pytest.raises(TypeError, match="shape: expected"):
            new(shape=text)
        wrong = [{"chunks": [text, 4]}] + ([] if isinstance(text, str) else [{"chunks": text}])
        wrong += [{"shards": keywords["chunks"]} for keywords in wrong if zarr_format == 3]
        for keywords in wrong:
            with pytest.raises(TypeError, match=f"{min(keywords)}: expected"):
                new(shape=(9, 4), **keywords)
        assert list(store.list()) == []
    for axis in (text, 1.0, True, None):
        with pytest.raises(TypeError, match="axis is .*, expected an integer"):
            a.append(a[...], axis=axis)
    assert zcore.open(a.store).shape == a.shape == before


@pytest.mark.parametrize("when", ["before they are read", "after that"])
def test_a_group_above_is_moved_before_attributes_are_written(tmp_path, monkeypatch, when):
    """Attributes have a document of their own in Zarr v2. It stays beside that of the array that is held."""
    group = zcore.create_group(tmp_path, zarr_format=2)
    group.create_array("g/x", shape=1, dtype="i4", attributes={"of": "x"})
    array, read = group["g/x"], attributes.read_attributes

    def move():
        monkeypatch.undo()
        group.move("g", "h")
        group.create_array("g/x", shape=1, dtype="i4", attributes={"of": "another"})

    def late(binding):
        if when == "after that":
            attributes = read(binding)
            monkeypatch.setattr(Exclusive, "check_place", lambda exclusive: move())
            return attributes
        move()
        return read(binding)

    monkeypatch.setattr(attributes, "read_attributes", late)
    if when == "after that":
        array.attrs["new"] = 1
    else:
        with pytest.raises(zcore.StoreError, match="moved or replaced"):
            array.attrs["new"] = 1
    assert group["g/x"].attrs == {"of": "another"}
    assert group["h/x"].attrs == ({"of": "x", "new": 1} if when == "after that" else {"of": "x"})
