"""Where everything meets: both paths say the same of every damage, and nothing is read or written without need."""

import collections
import itertools
import os
import struct
import sys

import numpy as np
import pytest

import zcore
from tests.both_ways import WAYS, directory
from zcore import blosc
from zcore.engine import array_binding as engine


def make(store, shape=(10, 10), chunks=(4, 4), dtype="<i4", **keywords):
    return zcore.open(store, mode="w", shape=shape, chunks=chunks, dtype=dtype, cname="lz4", **keywords)


@pytest.fixture(params=[*WAYS, "memory"])
def store(request, tmp_path):
    return zcore.MemoryStore() if request.param == "memory" else directory(tmp_path, request.param)


def error_of(function, *arguments):
    with pytest.raises(zcore.ZcoreError) as caught:
        function(*arguments)
    return caught.value


def facts(error):
    return {"type": type(error), "message": error.message, **{name: getattr(error, name) for name in error.fields}}


# What is wrong with a chunk is said with all its facts, the same by both paths


def put(offset, *values):
    """Damage that writes 32-bit numbers at an offset."""
    return lambda raw: raw[:offset] + struct.pack(f"<{len(values)}I", *values) + raw[offset + 4 * len(values) :]


def byte(offset, value):
    return lambda raw: raw[:offset] + bytes([value]) + raw[offset + 1 :]


CHUNK = blosc.compress((np.arange(16) // 4).astype("<i4").tobytes() * 8, cname="zlib", clevel=9, typesize=4)
DAMAGES = [  # (name, what, offset, expected, found), of a chunk of 512 bytes
    ("empty", lambda raw: b"", 0, 16, 0),
    ("short", lambda raw: raw[:15], 0, 16, 15),
    ("version", byte(0, 1), 0, 2, 1),
    ("reserved", byte(2, CHUNK[2] | 8), 2, 0, CHUNK[2] | 8),
    ("cut", lambda raw: raw[:-1], 12, len(CHUNK) - 1, len(CHUNK)),
    ("trailing", lambda raw: raw + b"\0", 12, len(CHUNK) + 1, len(CHUNK)),
    ("long", lambda raw: raw + bytes(600), 608, 608, len(CHUNK) + 600),
    ("nbytes", put(4, 508), 4, 512, 508),
    ("nbytes 2 GB", put(4, 2**31 - 17), 4, 512, 2**31 - 17),
    ("typesize", byte(3, 8), 3, 4, 8),
    ("typesize 0", byte(3, 0), 3, 4, 0),
    ("blocksize 0", put(8, 0), 8, 512, 0),
    ("blocksize", put(8, 513), 8, 512, 513),
    ("format", byte(2, CHUNK[2] & 0x1F | 7 << 5), 2, 4, 7),
    ("inner version", byte(1, 2), 1, 1, 2),
    ("memcpy", byte(2, CHUNK[2] | 2), 12, 528, len(CHUNK)),
    ("table", put(8, 1), 16, 16 + 4 * 512, len(CHUNK)),
    ("block start", put(16, 8), 16, len(CHUNK) - 4, 8),
    ("block start beyond", put(16, len(CHUNK) - 3), 16, len(CHUNK) - 4, len(CHUNK) - 3),
    ("stream", put(20, 2**31), 20, len(CHUNK) - 24, -(2**31)),
    ("payload", byte(40, 0xFF), 16, 512, None),
]


@pytest.mark.parametrize(
    ("damage", "offset", "expected", "found"), [case[1:] for case in DAMAGES], ids=[case[0] for case in DAMAGES]
)
def test_every_damage_with_its_facts(tmp_path, damage, offset, expected, found):
    """ZM-CHK-05, ZM-CHK-06, ZM-CHK-07, ZM-CHK-11"""
    model = np.arange(16 * 10).reshape(16, 10)
    by_path = []
    for path in WAYS:
        a = make(directory(tmp_path / path, path), (16, 10), (16, 8))
        a[...] = model
        file = tmp_path / path / "__zdata__" / "0.1.blosc"
        file.write_bytes(damage(CHUNK))
        stored = file.read_bytes()
        errors = [
            error_of(call)
            for call in (
                lambda: a[...],
                lambda: a[3, 9],
                lambda: a[::-5, ::3],
                lambda: a.read(out=np.zeros((10, 16), "<i4").T),
                lambda: a.__setitem__((0, 9), 5),
                lambda: a.append([[0]] * 16, axis=1),
                lambda: a.resize(3, 9),
            )
        ]
        for error in errors:
            assert isinstance(error, zcore.CodecError)
            assert (error.key, error.chunk_coords, error.direction) == ("__zdata__/0.1.blosc", (0, 1), "decode")
            assert (error.offset, error.expected) == (offset, expected)
            assert error.found == found or found is None
            assert error.codec == (None if "stored object" in error.message else "blosc")
            assert error.place == str(tmp_path / path)
            assert str(error) == f"{error.place}: {error.message}"
            assert error.message.startswith("__zdata__/0.1.blosc: ")
        assert file.read_bytes() == stored, "what cannot be read is not replaced"
        by_path.append([facts(error) for error in errors])
        a[:, 8:] = 1
        assert (zcore.open(str(tmp_path / path))[:, 8:] == 1).all(), "what is written whole needs no reading"
    assert by_path[0] == by_path[1]


def test_blosc_2_is_unsupported(tmp_path):
    """ZM-CHK-09"""
    by_path = []
    for path in WAYS:
        a = make(directory(tmp_path / path, path), 128, 128)
        (tmp_path / path / "__zdata__" / "0.blosc").write_bytes(byte(0, 5)(CHUNK))
        by_path.append([facts(error_of(call)) for call in (lambda: a[...], lambda: a.__setitem__(0, 1))])
    assert by_path[0] == by_path[1] and by_path[0][0]["feature"] == "blosc2"
    assert by_path[0][0]["message"].startswith("__zdata__/0.blosc: ")


@pytest.mark.parametrize("path", WAYS)
def test_the_damaged_chunk_is_named_whichever_thread_finds_it(tmp_path, monkeypatch, path):
    monkeypatch.setattr(engine, "MIN_SHARED_NBYTES", 0)
    a = make(directory(tmp_path, path), (40, 40), (4, 4), threads=4)
    a[...] = 1
    (tmp_path / "__zdata__" / "7.3.blosc").write_bytes(b"")
    for _ in range(20):
        error = error_of(lambda: a[...])
        assert (error.key, error.chunk_coords) == ("__zdata__/7.3.blosc", (7, 3))
    assert (a[:28] == 1).all()


# Absent objects


def test_missing_raise_on_reading(store):
    """ZM-CHK-04"""
    a = make(store)
    a[4:8, :4] = 1
    b = zcore.open(store, mode="r+", missing="raise")
    assert (b[4:8, :4] == 1).all() and b[5, 3] == 1 and b[0:0].shape == (0, 10)
    for selection in (..., 0, (4, 4), slice(None, None, -1)):
        error = error_of(b.__getitem__, selection)
        assert type(error) is zcore.ChunkNotFoundError and error.direction == "decode"
        assert error.key == "__zdata__/" + ".".join(map(str, error.chunk_coords)) + ".blosc"
        assert (error.expected, error.found, error.offset, error.codec) == (None, None, None, None)
    assert a[0, 0] == 0


def test_missing_raise_says_the_same_on_both_paths(tmp_path):
    by_path = []
    for path in WAYS:
        a = make(directory(tmp_path / path, path), missing="raise")
        by_path.append([facts(error_of(call)) for call in (lambda: a[9, 9], lambda: a.__setitem__((0, 9), 5))])
    assert by_path[0] == by_path[1]


def test_missing_raise_on_writing(store):
    """Such a handle stores what holds only the fill value, or nobody could read it."""
    a = make(store, missing="raise")
    error = error_of(a.__setitem__, (0, 0), 1)
    assert error.chunk_coords == (0, 0) and a.nchunks_initialized == 0
    a[...] = 0
    assert a.nchunks_initialized == 9 and not a[...].any()
    a[0, 0] = 5
    a[0, 0] = 0
    assert a.nchunks_initialized == 9 and not a[...].any()
    plain = zcore.open(store, mode="r+")
    plain[4:8, 4:8] = 0
    assert plain.nchunks_initialized == 8
    assert error_of(lambda: a[...]).chunk_coords == (1, 1)


def test_write_empty_chunks(store):
    """V3-OP-07, ZM-CHK-14"""
    a = make(store, write_empty_chunks=True, fill_value=7)
    a[:3] = 7
    assert a.nchunks_initialized == 3
    b = zcore.open(store, mode="r+")
    b[0, 0] = 7
    assert b.nchunks_initialized == 2, "the handle that does not keep them erases what it replaces"
    assert (a[...] == 7).all()


@pytest.mark.parametrize("zarr_format", [2, "zmeta"])
@pytest.mark.parametrize("dtype", ["<i4", "|b1", "<M8[s]", "|S3", ">U2", [("a", "<i4"), ("b", "|S2")]])
def test_no_elements_are_equal_to_an_undefined_fill_value(store, zarr_format, dtype):
    """V2-FV-01, ZM-META-09: other readers find anything in chunks that are absent, so zeros are stored."""
    zeros = np.zeros(10, dtype)
    a = zcore.create_array(store, shape=10, chunks=4, dtype=dtype, zarr_format=zarr_format, fill_value=None)
    a[0] = zeros[0]
    assert a.nchunks_initialized == 1, "a part of a chunk"
    a[...] = zeros
    assert a.nchunks_initialized == 3, "whole chunks"
    a[4] = np.ones((), dtype)
    a[4] = zeros[4]
    assert a.nchunks_initialized == 3, "a chunk that is changed"
    a[8] = zeros[8]
    a[9] = np.ones((), dtype)
    a.resize(9)
    assert a.nchunks_initialized == 3 and a[8] == zeros[8], "what a shrunk array keeps of a chunk"
    a.append(zeros[:3])
    assert a.nchunks_initialized == 3 and (a[...] == zeros[0]).all()
    a.append(zeros[:1])
    assert a.nchunks_initialized == 4
    a.resize(20)
    assert a.nchunks_initialized == 4, "nobody has written the new ones"


def test_no_text_is_equal_to_an_undefined_fill_value(store):
    a = zcore.create_array(store, shape=4, chunks=2, dtype=str, zarr_format=2, fill_value=None)
    a[:2] = ""
    assert a.nchunks_initialized == 1 and a.fill_value is None
    objects = zcore.create_array(zcore.MemoryStore(), shape=4, chunks=2, dtype=object, zarr_format=2,
                                 serializer={"id": "vlen-bytes"}, fill_value=None)
    assert objects[:].tolist() == [b""] * 4
    objects[:] = b""
    assert objects.nchunks_initialized == 2


# What real files hold although it is forbidden


def test_trimmed_border_chunks(store):
    """ZM-CHK-06: read and merged without `strict`, refused with it; written in full."""
    model = np.arange(100, dtype="<i4").reshape(10, 10)
    a = make(store)
    for i, j in itertools.product(range(3), range(3)):
        part = model[4 * i : 4 * i + 4, 4 * j : 4 * j + 4]
        store.set(f"__zdata__/{i}.{j}.blosc", blosc.compress(part.tobytes(), typesize=4))
    error = error_of(lambda: a[...])
    assert isinstance(error, zcore.CodecError) and (error.expected, error.found) in ((64, 32), (64, 16))
    assert (a[:8, :8] == model[:8, :8]).all()
    b = zcore.open(store, mode="r+", strict=False)
    assert (b[...] == model).all() and (b[::-3, 9] == model[::-3, 9]).all()
    b[9, 9] = -1
    b[8, 0:2] = -2
    model[9, 9], model[8, 0:2] = -1, -2
    assert (b[...] == model).all()
    assert blosc.header(store.get("__zdata__/2.2.blosc")).nbytes == 64
    b.resize(12, 12)
    grown = np.zeros((12, 12), "<i4")
    grown[:10, :10] = model
    assert (b[...] == grown).all()
    for other in (60, 8, 0, 128):
        store.set("__zdata__/2.2.blosc", blosc.compress(bytes(other), typesize=4))
        assert error_of(lambda: b[...]).found == other


def test_foreign_item_sizes(store):
    """ZM-CHK-07"""
    model = (np.arange(100) // 3).astype("<i4").reshape(10, 10)
    a = make(store, chunks=(10, 10))
    b = zcore.open(store, strict=False)
    for typesize in range(1, 20):
        store.set("__zdata__/0.0.blosc", blosc.compress(model.tobytes(), typesize=typesize))
        assert (b[...] == model).all()
        if typesize in (1, 4):
            assert (a[...] == model).all()
        else:
            error = error_of(lambda: a[...])
            assert (error.expected, error.found, error.offset) == (4, typesize, 3)


def test_other_compressors_and_shuffles_in_one_array(store):
    """ZM-CHK-08"""
    model = (np.arange(100) // 3).astype("<i4").reshape(10, 10)
    a = make(store)
    kinds = itertools.cycle(itertools.product(("zstd", "blosclz", "zlib", "lz4hc"), (0, 1, 2)))
    for (i, j), (cname, shuffle) in zip(itertools.product(range(3), range(3)), kinds, strict=False):
        part = np.zeros((4, 4), "<i4")
        inside = model[4 * i : 4 * i + 4, 4 * j : 4 * j + 4]
        part[: inside.shape[0], : inside.shape[1]] = inside
        store.set(f"__zdata__/{i}.{j}.blosc", blosc.compress(part.tobytes(), cname=cname, shuffle=shuffle, typesize=4))
    assert (a[...] == model).all()


def test_what_lies_beyond_the_array_is_not_believed(store):
    """V3-GRID-04: Whoever left it there: a merge resets it, so that no growth shows it."""
    a = make(store, 5, 4)
    store.set("__zdata__/1.blosc", blosc.compress(np.array([1, 99, 99, 99], "<i4").tobytes(), typesize=4))
    assert a[4] == 1
    a[4] = 2
    assert np.frombuffer(blosc.decompress(store.get("__zdata__/1.blosc")), "<i4").tolist() == [2, 0, 0, 0]
    a[4] = 0
    assert a.nchunks_initialized == 0


# What costs how much


class CountingStore(zcore.MemoryStore):
    """Counts what is asked of it, by operation and by the last part of the key."""

    def __init__(self):
        super().__init__()
        self.calls = collections.Counter()

    def _count(self, operation, key):
        self.calls[operation, key.rpartition("/")[2]] += 1

    def get(self, key, byte_range=None):
        self._count("get", key)
        return super().get(key, byte_range)

    def get_with_identity(self, key, byte_range=None):
        self._count("get", key)
        return super().get_with_identity(key, byte_range)

    def get_first(self, prefix, names, limit):
        for name in names:
            self._count("get", name)
        return super().get_first(prefix, names, limit)

    def set(self, key, value):
        self._count("set", key)
        super().set(key, value)

    def erase(self, key):
        self._count("erase", key)
        super().erase(key)

    def list_dir(self, prefix):
        self._count("list", prefix)
        return super().list_dir(prefix)

    def cost(self, function):
        """How often which objects were touched, the document left out."""
        self.calls.clear()
        function()
        return {call: n for call, n in self.calls.items() if call[1] != "__zmeta__"}


def test_reads_touch_what_they_need():
    store = CountingStore()
    a = make(store)
    a[...] = 1
    assert store.cost(lambda: a[5, 5]) == {("get", "1.1.blosc"): 1}
    assert store.cost(lambda: a[5:8, ::9]) == {("get", "1.0.blosc"): 1, ("get", "1.2.blosc"): 1}
    assert store.cost(lambda: a[...]) == {("get", f"{i}.{j}.blosc"): 1 for i in range(3) for j in range(3)}
    assert store.cost(lambda: a[3:3]) == {}
    assert store.cost(lambda: a[0:0, 5]) == {}
    assert store.cost(lambda: list(a)) == {("get", f"{i}.{j}.blosc"): 1 for i in range(3) for j in range(3)}


def test_edge_chunk_fully_covered_is_not_read():
    store = CountingStore()
    a = make(store)
    assert store.cost(lambda: a.__setitem__(..., 1)) == {
        ("set", f"{i}.{j}.blosc"): 1 for i in range(3) for j in range(3)
    }
    assert store.cost(lambda: a.__setitem__((slice(8, 10), slice(8, 10)), 2)) == {("set", "2.2.blosc"): 1}
    assert store.cost(lambda: a.__setitem__((slice(None, 7, -1), slice(0, 4)), 2)) == {("set", "2.0.blosc"): 1}


def test_partly_covered_chunks_are_read_once():
    store = CountingStore()
    a = make(store)
    a[...] = 1
    assert store.cost(lambda: a.__setitem__((slice(2, 6), 0), 5)) == {
        (operation, f"{i}.0.blosc"): 1 for operation in ("get", "set") for i in (0, 1)
    }
    assert store.cost(lambda: a.__setitem__((9, 9), 0)) == {("get", "2.2.blosc"): 1, ("set", "2.2.blosc"): 1}


def test_what_becomes_fill_value_is_erased():
    """V3-OP-07, V3-PY-07, ZM-CHK-14"""
    store = CountingStore()
    a = make(store, 4, 4)
    a[...] = [0, 0, 0, 1]
    assert store.cost(lambda: a.__setitem__(3, 0)) == {("get", "0.blosc"): 1, ("erase", "0.blosc"): 1}
    assert store.cost(lambda: a.__setitem__(..., 0)) == {("erase", "0.blosc"): 1}


# Arrays that are replaced, moved, deleted meanwhile


def test_an_array_replaced_by_another_kind_is_not_mistaken(store):
    """Elements of the old type are never written to, nor read as, those of the new one."""
    for shape, chunks, dtype in ((10, 5, "<f4"), ((10, 10), (5, 5), "<i4"), (10, 4, "<i4"), (10, 5, ">i4")):
        a = make(store, 10, 5, "<i4")
        a[...] = 1
        b = make(store, shape, chunks, dtype)
        b[...] = 3
        for call in (lambda: a[...], lambda: a.read(0)):
            assert isinstance(error_of(call), zcore.StoreError)
        if chunks != 4:
            assert isinstance(error_of(lambda: a.__setitem__(..., 2)), zcore.StoreError)
            with pytest.raises((zcore.StoreError, ValueError)):
                a.append([1])
        else:
            a[2:4] = 2
            b[2:4] = 2
        assert (zcore.open(store)[...] == b[...]).all()
        assert a.refresh().dtype == dtype and (a[...] == b[...]).all()


def test_a_handle_follows_another_ones_shape(store):
    a = make(store, 10, 4)
    a[...] = 1
    b = zcore.open(store, mode="r+")
    b.resize(20)
    b[...] = 2
    assert a.shape == (10,) and a[...].tolist() == [2] * 10, "a read goes by the shape of the open"
    a[9] = 3
    assert b[9] == 3 and b[10] == 2
    assert a.refresh().shape == (20,)
    b.resize(4)
    error = error_of(a.__setitem__, 15, 1)
    assert isinstance(error, zcore.SelectionError)
    assert b[...].tolist() == [2] * 4 and zcore.open(store).nchunks_initialized == 1


def test_a_change_of_attributes_alone_is_looked_at_once():
    store = CountingStore()
    a = zcore.create_array(store, shape=10, dtype="i4", chunks=4)
    a[...] = 1
    zcore.open(store, mode="r+").attrs["unit"] = "m"

    def documents(function):
        store.cost(function)
        return store.calls["get", "zarr.json"]

    assert documents(lambda: a[3]) == 1
    assert documents(lambda: a[3]) == 0, "the document of before is taken for the one to compare with"
    assert dict(a.attrs) == {"unit": "m"}


def test_a_deleted_array_is_gone(tmp_path):
    for path in WAYS:
        a = make(directory(tmp_path / path, path), 10, 4)
        a[...] = 1
        (tmp_path / path / "__zmeta__").unlink()
        (tmp_path / path / "__zdata__" / "0.blosc").unlink()
        for call in (
            lambda: a[...],
            a.refresh,
            lambda: a.resize(3),
            lambda: a.append([1]),
            lambda: a.__setitem__(0, 1),
            lambda: a.attrs.update(x=1),
        ):
            assert isinstance(error_of(call), zcore.NodeNotFoundError)
        assert sorted(os.listdir(tmp_path / path / "__zdata__")) == ["1.blosc", "2.blosc"]


def test_what_is_no_file_is_no_absent_object(tmp_path):
    """V3-COD-05: A FIFO, a link to nowhere, a chunk directory that is not mounted: errors, for both paths, without
    hanging.
    """
    for kind, path in itertools.product(("directory", "fifo", "device", "broken link", "not mounted"), WAYS):
        a = make(directory(tmp_path / f"{kind}-{path}", path), 4, 4, fill_value=7)
        place = tmp_path / f"{kind}-{path}" / "__zdata__" / "0.blosc"
        if kind == "directory":
            place.mkdir()
            assert a[...].tolist() == [7] * 4
            assert error_of(lambda: zcore.open(a.store, missing="raise")[...]).key == "__zdata__/0.blosc"
            continue
        if kind == "fifo":
            os.mkfifo(place)
        elif kind == "device":
            place.symlink_to("/dev/zero")
        elif kind == "broken link":
            place.symlink_to("nowhere")
        else:
            place.parent.rmdir()
            place.parent.symlink_to("nowhere")
        for use in (lambda: a[...], lambda: a.__setitem__(1, 5)):
            with pytest.raises(zcore.StoreError) as caught:
                use()
            assert caught.value.key == "__zdata__/0.blosc"


def test_a_read_during_a_replacement_of_the_directory_is_of_one_array(tmp_path, monkeypatch):
    """Another directory gets the name, and the objects of the one that the read has open are deleted."""
    def put(value):
        return zcore.copy(zcore.array(np.full((4, 4), value), chunks=(2, 2)), tmp_path / "a", overwrite=True)

    put(1)
    array, values = zcore.open(tmp_path / "a"), [2, 2]
    run = engine.ArrayBinding._run

    def replaced_first(binding, *arguments):
        if binding is array._binding and values:
            put(values.pop())
        run(binding, *arguments)

    monkeypatch.setattr(engine.ArrayBinding, "_run", replaced_first)
    assert array[...].tolist() == [[2] * 4] * 4
    values[:] = [1] * 20
    with pytest.raises(zcore.StoreError, match="was replaced"):
        array[...]


# The fill value, written over much


NAN = np.uint64(0x7FF8_0000_0000_0001).view("f8")      # with a payload
FILLS = {
    "int": ("i4", 7, 8), "big-endian": (">f4", 1.5, 2), "-0.0": ("f8", -0.0, 0.0), "0.0": ("f8", 0.0, -0.0),
    "nan": ("f8", np.nan, NAN), "payload": ("f8", NAN, np.nan), "complex": ("c8", complex(0, -0.0), 0j),
    "text": ("U3", "ab", "abc"), "varying": (str, "ab", "abc"),
    "struct": ([("a", "i2"), ("b", ">f8")], (1, -0.0), (1, 0.0)),
}


def bits(elements):
    elements = np.asarray(elements)
    return elements.tolist() if elements.dtype.kind in "TO" else elements.tobytes()


@pytest.mark.thinned(2, "form", "fill", "in_memory")
@pytest.mark.parametrize("form", [{}, {"shards": (4, 4)}, {"order": "F"}, {"zarr_format": 2}], ids=str)
@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("in_memory", [False, True])
def test_the_fill_value_written_over_everything(tmp_path, fill, form, in_memory):
    """Nothing is encoded: objects are erased, whatever they hold, but only by the very bits of the fill value."""
    dtype, value, other = FILLS[fill]
    if "zarr_format" in form and fill in ("payload", "struct") or "order" in form and dtype is str:
        pytest.skip("the format has none")
    for keeps in (False, True):
        store = zcore.MemoryStore() if in_memory else tmp_path / str(keeps)
        a = zcore.create_array(store, shape=(9, 10), chunks=(2, 2), dtype=dtype, fill_value=value,
                               write_empty_chunks=keeps, **form)
        expected = np.full((9, 10), np.array(value, a.dtype), a.dtype)
        for selection in (np.s_[:], np.s_[:5], np.s_[1:, 3:9], np.s_[::2, ::-1], np.s_[4:6, 4:6], np.s_[[0, 1, 5]]):
            for where, one in ((np.s_[3:7, 2:5], other), (selection, value), (selection, other), (selection, value)):
                a[where] = one
                expected[where] = one
                assert bits(a[...]) == bits(expected)
        assert a.nchunks_initialized
        a[:] = value
        assert bool(a.nchunks_initialized) == keeps


def test_an_undefined_fill_value_is_stored(store):
    a = zcore.create_array(store, shape=9, chunks=2, dtype="i4", fill_value=None, zarr_format=2)
    a[:] = 0
    assert a.nchunks_initialized == 5


@pytest.mark.skipif(sys.maxsize < 2**32, reason="NumPy has no shape of so many elements there")
def test_absent_chunks_stay_absent_at_no_cost(tmp_path):
    """A terabyte in chunks of 100 megabytes."""
    for store in (tmp_path, zcore.MemoryStore()):
        for form in ({"chunks": 10**8}, {"chunks": 10**6, "shards": 10**8}):
            a = zcore.create_array(store, shape=10**12, dtype="u1", fill_value=7, overwrite=True, **form)
            a[10**9:10**9 + 5] = 8
            a[:] = 7
            a[10**9 + 5:-5] = 7
            assert a.nchunks_initialized == 0 and a[10**9] == 7


def test_an_absent_object_is_an_error_where_it_has_to_be_there(tmp_path):
    a = zcore.create_array(tmp_path, shape=8, chunks=4, dtype="i4", missing="raise")
    with pytest.raises(zcore.ChunkError):
        a[1:3] = 0
    a[:4] = 0
    assert a.nchunks_initialized == 1


class CountingService(CountingStore):
    n_requests = 4

    def list_prefix(self, prefix):
        self._count("list", "")
        return super().list_prefix(prefix)


def test_a_service_is_asked_what_is_there_before_much_is_erased():
    """A request for each object that is absent would cost as much as one for each that exists."""
    store = CountingService()
    a = zcore.create_array(store, shape=1000, chunks=5, dtype="i4", fill_value=3)
    a[:20] = 1
    a[500] = 1
    store.calls.clear()
    a[:] = 3
    assert sum(store.calls.values()) < 20
    assert sum([n for (what, _), n in store.calls.items() if what == "erase"]) == 5
    assert a.nchunks_initialized == 0 and (a[...] == 3).all()
    a[:] = np.where(np.arange(1000) < 900, 1, 3)
    store.calls.clear()
    a[905:990] = 3      # the array has too many objects to be listed
    assert sum([n for (what, _), n in store.calls.items() if what == "erase"]) == 17
    assert a.nchunks_initialized == 180
