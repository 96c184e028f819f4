"""Zip archives: read and written as other programs do, and hostile ones refused."""
import contextlib
import json
import os
import pickle
import struct
import subprocess
import sys
import threading
import warnings
import zipfile
import zlib

import numpy as np
import pytest

import zcore
from tests.at_once import at_once
from tests.both_ways import brought
from zcore.engine import views
from zcore.errors import InvalidKeyError, ReadOnlyError, StoreError, UnsupportedError
from zcore.stores.zip import writer
from zcore.stores.zip.store import ZipStore

from .conformance import UNUSUAL_KEYS, StoreConformance, changes


class TestNewArchive(StoreConformance):
    """A store that is being written does what every store does."""

    unusual_keys = [key for key in UNUSUAL_KEYS if "\\" not in key]

    @pytest.fixture(autouse=True)
    def opened(self, tmp_path):
        self.stores = []
        yield
        for store in self.stores:
            store.close()

    def make(self, tmp_path, items=(), read_only=False):
        path = tmp_path / f"{len(self.stores)}.zip"
        store = ZipStore(path, mode="w")
        for key, value in dict(items).items():
            store.set(key, value)
        if read_only:
            store.close()
            store = ZipStore(path)
        self.stores.append(store)
        return store

    def test_pickle_reads_the_same(self, tmp_path):
        store = self.make(tmp_path, {"a/b": b"1", "c": b"2"}, read_only=True)
        other = pickle.loads(pickle.dumps(store))
        assert type(other) is ZipStore and other.read_only and list(other.list()) == ["a/b", "c"]


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "x.zip")


def written(path, items, method=zipfile.ZIP_STORED):
    """Write an archive by `zipfile`, from pairs of name and value."""
    with zipfile.ZipFile(path, "w", method) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")        # of names that come twice
        for name, value in items:
            archive.writestr(name, value)
    return path


def patched(path, signature, at, value):
    """Change bytes of the first header that begins with `signature`."""
    with open(path, "r+b") as file:
        raw = file.read()
        file.seek(raw.index(signature) + at)
        file.write(value)


LOCAL, CENTRAL, END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"


# What is read


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_archive_of_zipfile(path, method):
    values = {"zarr.json": b"{}", "c/0/1": bytes(range(256)) * 2000, "c/é": b"", "c/0/2": os.urandom(600_000)}
    store = ZipStore(written(path, [("c/", b""), *values.items(), (".__zc_tmp.1", b"left over")], method))
    assert list(store.list()) == sorted(values) and store.list_dir("c/")[:2] == (["c/é"], ["c/0/"])
    for key, value in values.items():
        assert store.get(key) == value and store.getsize(key) == len(value)
        for part in ((0, 10), (1, len(value)), (5, None), (None, 7), (len(value) + 1, 3), (300_000, 300_000)):
            stop = None if part[1] is None else sum(part) if part[0] is not None else None
            start = part[0] if part[0] is not None else max(0, len(value) - part[1])
            assert store.get(key, part) == value[start:stop]
    assert store.get("c") is None and store.get("c/0/3") is None and store.label == "x.zip"
    store.close()
    with pytest.raises(StoreError, match="is closed"):
        store.get("zarr.json")


def test_of_two_members_with_one_name_the_last_counts(path):
    assert ZipStore(written(path, [("a", b"1"), ("b", b"2"), ("a", b"33")])).get("a") == b"33"


def test_bytes_before_the_archive_and_a_comment(path):
    written(path, [("a", b"value")])
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"PK\x01\x02 comment" * 50
    with open(path, "rb") as file:
        raw = file.read()
    with open(path, "wb") as file:
        file.write(b"#!/bin/sh\nexit\n" + raw)
    assert ZipStore(path).get("a") == b"value"


def test_members_whose_sizes_follow_them(path):
    """What a program writes that cannot go back in its file."""
    class Pipe:
        def __init__(self, file):
            self.write, self.flush = file.write, file.flush

    with open(path, "wb") as file, zipfile.ZipFile(Pipe(file), "w") as archive:
        archive.writestr("a", b"value")
        archive.writestr(zipfile.ZipInfo("b"), b"deflated" * 100, zipfile.ZIP_DEFLATED)
    store = ZipStore(path)
    assert store.get("a") == b"value" and store.get("b") == b"deflated" * 100


def test_sizes_of_64_bits(path):
    with zipfile.ZipFile(path, "w") as archive, archive.open("a", "w", force_zip64=True) as member:
        member.write(b"value")
    with open(path, "r+b") as file:
        file.seek(18)
        file.write(b"\xff" * 8)                # zipfile before Python 3.11.4 writes small sizes here, too
    assert ZipStore(path).get("a") == b"value"
    with open(path, "rb") as file:
        at = file.read().index(struct.pack("<HHQQ", 1, 16, 5, 5))
    for lie in ((6, 5), (5, 6), (2**63, 2**63), (2**64 - 1, 5)):
        with open(path, "r+b") as file:
            file.seek(at)
            file.write(struct.pack("<HHQQ", 1, 16, *lie))
        with pytest.raises(StoreError, match="'a' has .* in its header"):
            ZipStore(path)


@pytest.mark.slow
def test_many_members(path):
    """More than 65535, which the end of the archive counts in 64 bits."""
    with ZipStore(path, mode="w") as store:
        for i in range(66_000):
            store.set(f"c/{i}", b"%d" % i)
    with zipfile.ZipFile(path) as archive:
        assert len(archive.infolist()) == 66_000 and archive.read("c/65999") == b"65999"
    store = ZipStore(path)
    assert store.get("c/65999") == b"65999" and len(store.list_dir("c/")[0]) == 66_000


@pytest.mark.parametrize("at", [24, 32, 40, 48])
@pytest.mark.parametrize("value", [0, 1, 2**31, 2**63 - 1, 2**63, 2**64 - 1])
def test_an_end_of_64_bits_that_lies(path, at, value):
    """APPNOTE 4.3.14: numbers of entries on this disk and in all, size and place of the directory."""
    written(path, [("a", b"value")])
    with open(path, "rb") as file:
        raw = file.read()
    start, end = raw.index(CENTRAL), raw.index(END)
    large = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, end - start, start)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, end, 1)
    small = END + struct.pack("<HHHHIIH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    with open(path, "wb") as file:
        file.write(raw[:end] + large + locator + small)
    assert ZipStore(path).get("a") == b"value"
    patched(path, b"PK\6\6", at, struct.pack("<Q", value))
    try:
        store = ZipStore(path)
    except StoreError:
        return
    # `zipfile` counts for itself, and without a directory there is none of its members.
    assert store.get("a") == b"value" or (at == 40 and list(store.list()) == [])


# Arrays


def arrays(store, **keywords):
    group = zcore.create_group(store, **keywords)
    values = np.arange(23 * 31, dtype="<i4").reshape(23, 31)
    group.create_array("a", shape=values.shape, chunks=(5, 7), dtype=values.dtype)[:] = values
    if keywords.get("zarr_format") != 2:
        group.create_array("s", shape=values.shape, chunks=(5, 7), shards=(10, 14), dtype=values.dtype)[:] = values
    group.create_array("sparse", shape=100, chunks=10, dtype="f4", fill_value=3)[25:35] = 1
    group.attrs["title"] = "zip"
    return values


def check(group, values):
    for name in group:
        if name != "sparse":
            for selection in (..., (slice(3, 20, 4), slice(None, None, -1)), ([3, 22, 0], slice(5))):
                np.testing.assert_array_equal(group[name][selection], values[selection])
    assert group["sparse"][20:40].tolist() == [3] * 5 + [1] * 10 + [3] * 5
    assert group.attrs["title"] == "zip"


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_arrays(path, zarr_format, method):
    with ZipStore(path, mode="w", compression=method) as store:
        values = arrays(store, zarr_format=zarr_format)
        check(zcore.open(store), values)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None and len(set(archive.namelist())) == len(archive.namelist())
        assert {info.compress_type for info in archive.infolist()} == {method}
    check(zcore.open(path), values)
    check(zcore.open(ZipStore(path)), values)
    check(pickle.loads(pickle.dumps(zcore.open(path))), values)
    cached = zcore.open(path, cache="1 MB")
    for _ in range(2):
        check(cached, values)
    with pytest.raises(ReadOnlyError):
        zcore.open(ZipStore(path), mode="r+")["a"][0] = 1
    cached = zcore.open(brought(ZipStore)(path), cache="1 MB")
    for _ in range(2):
        check(cached, values)


def test_stored_chunks_are_read_by_the_kernel(path, monkeypatch):
    with ZipStore(path, mode="w") as store:
        values = arrays(store)
    store = ZipStore(path)
    array = zcore.open(store)["a"]
    calls = []
    get = store.get
    monkeypatch.setattr(store, "get", lambda key, part=None: calls.append(key) or get(key, part))
    np.testing.assert_array_equal(array[:], values)
    assert [key for key in calls if "/c/" in key] == []


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_of_a_shard_few_chunks_are_read(path, tmp_path, method, monkeypatch):
    """Its index is looked for by the size of the member."""
    monkeypatch.setattr(views, "TRUSTED_AGE_NS", -1)   # an archive of an age at which identities count
    values = np.arange(64 * 64).reshape(64, 64)
    folder = zcore.DirectoryStore(tmp_path / "folder")
    zcore.create_array(folder, shape=(64, 64), dtype="i4", chunks=(4, 4), shards=(32, 32))[...] = values
    with zipfile.ZipFile(path, "w", method) as archive:
        for key in folder.list():
            archive.writestr(key, folder.get(key))
    array = zcore.open(path, cache="1 MB")
    for _ in range(2):
        assert array[5, 5] == values[5, 5] and (array[[40, 3], [60, 61]] == values[[40, 3], [60, 61]]).all()
        assert (array[30:34, 30:34] == values[30:34, 30:34]).all() and (array[...] == values).all()


def test_an_archive_in_which_some_members_are_deflated(path, tmp_path):
    """No chunk that is there is taken for one that is missing."""
    values = arrays(zcore.DirectoryStore(str(tmp_path / "d")))
    with zipfile.ZipFile(path, "w") as archive:
        for i, key in enumerate(zcore.DirectoryStore(str(tmp_path / "d")).list()):
            archive.write(tmp_path / "d" / key, key, zipfile.ZIP_DEFLATED if i % 3 == 0 else zipfile.ZIP_STORED)
    check(zcore.open(path), values)
    group = zcore.open(path, missing="raise")
    np.testing.assert_array_equal(group["a"][:], values)
    with pytest.raises(zcore.ChunkError):
        group["sparse"][:]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_archives_of_zarr_python(path, tmp_path, zarr_format):
    zarr = pytest.importorskip("zarr", minversion="3")
    values = np.arange(23 * 31, dtype="<i4").reshape(23, 31)
    store = zarr.storage.ZipStore(path, mode="w")
    array = zarr.create_array(store, name="a/b", shape=values.shape, chunks=(5, 7), dtype="<i4",
                              zarr_format=zarr_format, **({"shards": (10, 14)} if zarr_format == 3 else {}))
    array[:] = values
    store.close()
    found = zcore.open(path, path="a/b")
    assert found.shards == ((10, 14) if zarr_format == 3 else None)
    np.testing.assert_array_equal(found[:], values)
    other = str(tmp_path / "other.zip")
    with ZipStore(other, mode="w") as store:
        values = arrays(store, zarr_format=zarr_format)
    store = zarr.storage.ZipStore(other, mode="r")
    group = zarr.open_group(store, mode="r")
    for name in group.array_keys():
        np.testing.assert_array_equal(group[name][:], zcore.open(other)[name][:])
    np.testing.assert_array_equal(group["a"][:], values)
    store.close()


def test_threads_read_one_archive(path):
    with ZipStore(path, mode="w", compression=zipfile.ZIP_DEFLATED) as store:
        values = arrays(store)
    group, faults = zcore.open(path, threads=2), []

    def work():
        try:
            for _ in range(5):
                check(group, values)
        except BaseException as exc:
            faults.append(exc)

    at_once(threading.Thread(target=work) for _ in range(4))
    assert faults == []


def test_names_of_archives(path, tmp_path):
    with ZipStore(path, mode="w") as store:
        values = arrays(store)
    check(zcore.open(tmp_path / "x.zip"), values)
    assert repr(zcore.open(path)["a"]).startswith("<zcore.Array 'x.zip/a'")
    with pytest.raises(StoreError):
        zcore.open(path, mode="r+")
    os.mkdir(tmp_path / "folder.zip")
    zcore.create_group(str(tmp_path / "folder.zip"))
    assert list(zcore.open(tmp_path / "folder.zip")) == []
    assert zcore.storage.ZipStore is zcore.ZipStore is ZipStore


def test_an_archive_that_is_replaced_is_read_on(path):
    written(path, [("a", b"old")])
    store = ZipStore(path)
    written(path + "2", [("a", b"new")])
    os.replace(path + "2", path)
    assert store.get("a") == b"old" and ZipStore(path).get("a") == b"new"
    assert pickle.loads(pickle.dumps(store)).get("a") == b"new"
    assert store.identity("a") != ZipStore(path).identity("a")


def test_identities_tell_members_apart(path):
    store = ZipStore(written(path, [("a", b"same"), ("b", b"same"), ("c", b""), ("d", b"")]))
    identities = [store.identity(key) for key in "abcd"]
    assert len(set(identities)) == 4 and store.identity("e") is None
    assert store.get_with_identity("a") == (b"same", identities[0])


def test_an_archive_that_is_read_refuses_changes(path):
    store = ZipStore(written(path, [("a", b"1")]))
    for change in changes(store).values():
        with pytest.raises(ReadOnlyError):
            change()


# What is written


def test_nothing_has_the_name_before_it_is_closed(path, tmp_path):
    store = ZipStore(path, mode="w")
    store.set("a", b"1")
    assert not os.path.exists(path) and store.get("a") == b"1"
    store.close()
    store.close()
    assert os.listdir(tmp_path) == ["x.zip"] and ZipStore(path).get("a") == b"1"
    with pytest.raises(StoreError, match="closed"):
        store.set("b", b"2")
    with ZipStore(path, mode="w") as store:
        assert ZipStore(path).get("a") == b"1"
    assert list(ZipStore(path).list()) == []


def test_values_that_are_replaced_or_erased_are_no_members(path):
    with ZipStore(path, mode="w") as store:
        for i in range(3):
            store.set("doc", b"%d" % i)
            store.set(f"c/{i}", b"chunk")
        store.erase("c/1")
        store.erase_prefix("none/")
        assert store.set_if_not_exists("doc", b"no") is False and store.set_if_not_exists("c/1", b"again")
        store.erase("c/2")
    with zipfile.ZipFile(path) as archive:
        assert sorted(archive.namelist()) == ["c/0", "c/1", "doc"] and archive.testzip() is None
    store = ZipStore(path)
    assert [store.get(key) for key in store.list()] == [b"chunk", b"again", b"2"]


def test_a_hierarchy_is_changed_while_it_is_written(path):
    with ZipStore(path, mode="w") as store:
        arrays(store)
        group = zcore.open(store, mode="r+")
        group["a"].resize((10, 40))
        group["a"].append(np.ones((5, 40), "i4"))
        group.move("sparse", "moved")
        del group["s"]
        group.create_group("below").attrs["n"] = 1
        zcore.create_array(store, name="a2", shape=3, dtype="i4")[:] = 1
        zcore.create_array(store, name="a2", shape=2, dtype="u1", overwrite=True)[1] = 2
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None and len(set(archive.namelist())) == len(archive.namelist())
    group = zcore.open(path)
    assert list(group) == ["a", "a2", "below", "moved"] and group["below"].attrs["n"] == 1
    assert group["a"].shape == (15, 40) and (group["a"][10:] == 1).all() and group["a"][9, :5].tolist() == [
        279, 280, 281, 282, 283] and group["a2"][:].tolist() == [0, 2]
    assert group["moved"][20:40].tolist() == [3] * 5 + [1] * 10 + [3] * 5


def test_equal_stores_are_equal_files(path):
    raw = []
    for _ in range(2):
        with ZipStore(path, mode="w") as store:
            store.set("a", b"1")
            store.set("b", b"2")
        with open(path, "rb") as file:
            raw.append(file.read())
    assert raw[0] == raw[1]
    with zipfile.ZipFile(path) as archive:
        assert archive.getinfo("a").external_attr >> 16 == 0o100644


def test_an_error_leaves_no_archive(path, tmp_path):
    with pytest.raises(ZeroDivisionError), ZipStore(path, mode="w") as store:
        store.set("a", b"1")
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == []
    store = ZipStore(path, mode="w")
    store.set("a", b"1")
    with pytest.warns(UserWarning, match="not closed"):
        del store
    assert os.listdir(tmp_path) == []


def test_a_failed_write_leaves_no_archive(path, tmp_path, monkeypatch):
    def fail(*args):
        raise OSError(28, "No space left on device")

    store = ZipStore(path, mode="w")
    store.set("a", b"1")
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", fail)
        with pytest.raises(StoreError, match="No space") as caught:
            store.set("b", b"2")
        assert caught.value.errno == 28 and caught.value.key == "b"
    with pytest.raises(StoreError, match="given up"):
        store.set("c", b"3")
    with pytest.raises(StoreError, match="given up"):
        store.close()
    assert os.listdir(tmp_path) == []


def test_modes(path, tmp_path):
    with ZipStore(path, mode="x") as store:
        store.set("a", b"1")
    for call in (lambda: ZipStore(path, mode="x"), lambda: ZipStore(tmp_path, mode="w"),
                 lambda: ZipStore(tmp_path / "none" / "x.zip", mode="w"), lambda: ZipStore(tmp_path / "none.zip"),
                 lambda: ZipStore(tmp_path)):
        with pytest.raises(StoreError):
            call()
    with pytest.raises(FileNotFoundError):
        ZipStore(tmp_path / "none.zip")
    late = ZipStore(tmp_path / "y.zip", mode="x")
    (tmp_path / "y.zip").write_bytes(b"somebody else's")
    with pytest.raises(StoreError, match="cannot finish"):
        late.close()
    assert sorted(os.listdir(tmp_path)) == ["x.zip", "y.zip"]
    assert (tmp_path / "y.zip").read_bytes() == b"somebody else's"
    with pytest.raises(ValueError, match="as a whole"):
        ZipStore(path, mode="a")
    with pytest.raises(ValueError, match="contradicts"):
        ZipStore(path, mode="w", read_only=True)
    with pytest.raises(UnsupportedError):
        ZipStore(path, mode="w", compression=zipfile.ZIP_LZMA)
    assert ZipStore(path, read_only=True).get("a") == b"1"


def test_names_that_no_member_can_have(path):
    with ZipStore(path, mode="w") as store:
        for key in ("a\\b", "../a", "é" * 40_000):
            with pytest.raises(InvalidKeyError):
                store.set(key, b"")
        store.set("é" * 32_000, b"1")
        with pytest.raises(TypeError, match="being written"):
            pickle.dumps(store)
    assert ZipStore(path).get("é" * 32_000) == b"1"


def test_a_forked_process_leaves_the_archive_alone(path, tmp_path):
    store = ZipStore(path, mode="w")
    store.set("a", b"1")
    child = os.fork()
    if not child:
        code = 1
        with contextlib.suppress(StoreError):
            store.set("b", b"2")
            code = 2
        with contextlib.suppress(StoreError):
            store.close()
            del store
            code -= 1
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    store.set("c", b"3")
    store.close()
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["a", "c"] and archive.testzip() is None


# Hostile archives


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../b", "a//b", "a\\b", "./a", ""])
def test_names_that_are_no_keys(path, name):
    written(path, [("good", b"1")])
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(zipfile.ZipInfo(name), b"2")
    with pytest.raises(InvalidKeyError, match="x.zip"):
        ZipStore(path)


def test_a_name_with_nul(path):
    written(path, [("aXb", b"1")])
    patched(path, LOCAL, 30, b"a\0b")
    patched(path, CENTRAL, 46, b"a\0b")
    with pytest.raises(InvalidKeyError, match="NUL"):
        ZipStore(path)


@pytest.mark.parametrize(("signature", "at", "value", "message"), [
    (LOCAL, 0, b"PK\3\5", "has no header"), (LOCAL, 30, b"b", "another name"), (LOCAL, 26, b"\2", "another name"),
    (LOCAL, 8, b"\x08", "another method"), (LOCAL, 6, b"\1", "another method"), (LOCAL, 14, b"xxxx", "in its header"),
    (LOCAL, 18, b"\6", "in its header"), (LOCAL, 22, b"\6", "in its header"), (LOCAL, 28, b"\xff\xff", "the file has"),
    (LOCAL, 18, b"\xff\xff\xff\xff", "in its header"),
    (CENTRAL, 10, b"\x08", "another method"), (CENTRAL, 20, b"\xff\xff\xff\x7f", "the file has"),
    (CENTRAL, 20, b"\6", "in its header"), (CENTRAL, 24, b"\4", "in its header"),
    (CENTRAL, 24, b"\xff\xff\xff\xff", None), (CENTRAL, 34, b"\1", "another disk"),
    (CENTRAL, 42, b"\xff\xff\xff\x7f", "begins at byte"), (CENTRAL, 42, b"\1", "has no header"),
    (CENTRAL, 0, b"XXXX", "no whole zip"), (CENTRAL, 28, b"\xff\xff", None), (END, 0, b"XXXX", "no whole zip"),
    (END, 12, b"\xff\xff\xff\x7f", None), (END, 16, b"\xff\xff\xff\x7f", None), (END, 8, b"\xff\xff\xff\xff", None),
])
def test_headers_that_lie(path, signature, at, value, message):
    """With these bytes in its first header; for None more than one thing may be found wrong."""
    written(path, [("a", b"value"), ("c", b"other")])
    patched(path, signature, at, value)
    try:
        store = ZipStore(path)
        found = store.get("a")
    except StoreError as exc:
        assert message is None or message in str(exc)
    else:
        assert message is None and found == b"value"


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_every_byte_changed(path, method):
    """An archive with a changed byte is refused, or its values are what they were; a name may be another one."""
    items = {"a": b"value" * 5, "b/c": b"other" * 9}
    written(path, items.items(), method)
    with open(path, "rb") as file:
        raw = bytearray(file.read())
    for i in range(len(raw)):
        for bits in (0x01, 0xFF):
            raw[i] ^= bits
            with open(path, "wb") as file:
                file.write(raw)
            try:
                with ZipStore(path) as store:
                    assert sorted(map(store.get, store.list())) == sorted(items.values())
            except (StoreError, UnsupportedError):
                pass
            raw[i] ^= bits


def test_every_length(path):
    written(path, [("a", b"value"), ("b", b"x" * 50)])
    with open(path, "rb") as file:
        raw = file.read()
    for n in range(len(raw)):
        with open(path, "wb") as file:
            file.write(raw[:n])
        with pytest.raises(StoreError, match="x.zip"):
            ZipStore(path)


def test_a_file_that_is_cut_off_while_it_is_open(path):
    with ZipStore(path, mode="w") as store:
        array = zcore.create_array(store, shape=1000, chunks=10, dtype="i4", compressors=None)
        array[:] = np.arange(1000)
    array = zcore.open(path)
    os.truncate(path, 2000)
    with pytest.raises(StoreError, match="cut off"):
        array[:]


@pytest.mark.parametrize("declared", [100, 99_999, 100_001, 110_000_000])
def test_more_or_less_than_declared(path, declared):
    written(path, [("a", bytes(100_000))], zipfile.ZIP_DEFLATED)
    for signature, at in ((LOCAL, 22), (CENTRAL, 24)):
        patched(path, signature, at, struct.pack("<I", declared))
    with pytest.raises(StoreError, match="cannot be|ends after|has more than"):
        ZipStore(path).get("a")


def test_a_bomb_is_decoded_as_far_as_asked(path, monkeypatch):
    written(path, [("zarr.json", bytes(50_000_000))], zipfile.ZIP_DEFLATED)
    store = ZipStore(path)
    asked = []

    class Decoder:
        def __init__(self, *args):
            self.decoder = decompressobj(*args)

        def __getattr__(self, name):
            return getattr(self.decoder, name)

        def decompress(self, raw, limit):
            asked.append(limit)
            return self.decoder.decompress(raw, limit)

    decompressobj = zlib.decompressobj
    monkeypatch.setattr(zlib, "decompressobj", Decoder)
    assert store.get("zarr.json", (0, 10)) == bytes(10)
    assert asked == [10]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_damaged_bytes(path, method):
    value = os.urandom(1000)
    written(path, [("a", value)], method)
    patched(path, value[500:508], 0, b"damaged!")
    store = ZipStore(path)
    with pytest.raises(StoreError, match="CRC|deflate") as caught:
        store.get("a")
    assert caught.value.key == "a"


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_methods(path, method):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", b"value", method)
        archive.writestr("b", b"value")
    store = ZipStore(path)
    assert store.get("b") == b"value" and store.exists("a")
    with pytest.raises(UnsupportedError, match="'a' needs method"):
        store.get("a")


def test_encrypted_members(path):
    with ZipStore(path, mode="w") as store:
        zcore.create_array(store, shape=20, chunks=20, dtype="i4", compressors=None)[:] = 7
    with open(path, "rb") as file:
        raw = bytearray(file.read())
    for signature, at in ((LOCAL, 6), (CENTRAL, 8)):
        raw[raw.index(b"c/0", raw.index(signature)) - (30 if signature == LOCAL else 46) + at] |= 1
    with open(path, "wb") as file:
        file.write(raw)
    array = zcore.open(path)
    with pytest.raises(UnsupportedError, match="encryption"):
        array[:]


def test_members_that_share_their_bytes(path):
    """Each name needs a header of its own, and no bytes are read that are not in the file."""
    written(path, [("a", b"x" * 100), ("b", b"x" * 100)])
    with open(path, "rb") as file:
        raw = file.read()
    second = raw.index(CENTRAL, raw.index(CENTRAL) + 4)
    with open(path, "r+b") as file:
        file.seek(second + 42)
        file.write(struct.pack("<I", 0))
    with pytest.raises(StoreError, match="'b' has another name"):
        ZipStore(path)


def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "x.zip")
    with pytest.raises(StoreError, match="not a regular file"):
        ZipStore(tmp_path / "x.zip")


def directory_of(path):
    """Return where the entries of the directory begin."""
    places, at = [], 0
    with open(path, "rb") as file:
        raw = file.read()
    while (at := raw.find(b"PK\1\2", at)) >= 0:
        places.append(at)
        at += 4
    return places


def patched_at(path, at, more):
    """Add to one byte."""
    with open(path, "r+b") as file:
        file.seek(at)
        value = file.read(1)[0]
        file.seek(at)
        file.write(bytes([value + more]))


@pytest.mark.parametrize("at", [28, 30, 32])
def test_a_wrong_length_in_the_directory_hides_no_member(path, at):
    """Of a name, of extra fields, of a comment: what follows would be taken for a part of it, and be missing."""
    written(path, [(f"x/{i}", b"12345678") for i in range(4)])
    second, third = directory_of(path)[1:3]
    patched_at(path, second + at, third - second)
    with pytest.raises(StoreError):
        ZipStore(path)


def test_a_wrong_name_in_the_directory_hides_no_member(path):
    written(path, [(f"x/{i}", b"12345678") for i in range(4)])
    patched_at(path, directory_of(path)[1] + len("PK12") + 42 + len("x/"), 1)
    with pytest.raises(StoreError, match="another name"):
        ZipStore(path)


# OME-Zarr in a zip file: RFC-9 of NGFF

OME = {"ome": {"version": "0.5", "multiscales": []}}
COMMENT = {"ome": {"version": "0.5", "zipFile": {"centralDirectory": {"jsonFirst": True}}}}


def image(store, attributes=OME):
    """Make a hierarchy whose nodes are not in the sequence of their depth."""
    root = zcore.create_group(store, attributes=attributes)
    root.create_group("b/deep")
    for name in ("b/deep/x", "a", "b/c"):
        root.create_array(name, data=np.arange(24, dtype="<i4").reshape(4, 6), chunks=(2, 3))
    return root


def order_in_file(path):
    """Return the names of members as the directory has them, and as the file has them."""
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        entries = archive.infolist()
        return [info.filename for info in entries], [info.filename for info in sorted(
            entries, key=lambda info: info.header_offset)]


EXPECTED = ["zarr.json", "a/zarr.json", "b/zarr.json", "b/c/zarr.json", "b/deep/zarr.json", "b/deep/x/zarr.json"]


@pytest.mark.parametrize("name", ["x.ozx", "X.OZX"])
def test_an_ozx_follows_rfc_9(tmp_path, name):
    path = tmp_path / name
    with ZipStore(path, mode="w") as store:
        image(store)
    directory, file = order_in_file(path)
    assert directory[:6] == file[:6] == EXPECTED and directory == file
    with zipfile.ZipFile(path) as archive:
        assert json.loads(archive.comment) == COMMENT
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
        assert {info.extract_version for info in archive.infolist()} == {45}
    raw = path.read_bytes()
    assert raw.count(b"PK\x06\x06") == raw.count(b"PK\x06\x07") == 1 and raw[18:26] == b"\xff" * 8
    opened = zcore.open(path)
    assert opened["b/deep/x"][:].tolist() == np.arange(24).reshape(4, 6).tolist() and zcore.verify(path).ok


def test_a_copy_to_an_ozx_writes_each_byte_once(tmp_path, monkeypatch):
    source = image(zcore.MemoryStore())
    zcore.consolidate_metadata(source.store)
    files, new_file = [], writer._File
    monkeypatch.setattr(writer, "_File", lambda archive, fsync: files.append(archive) or new_file(archive, fsync))
    zcore.copy(source, tmp_path / "x.ozx")
    assert len(files) == 1
    directory, file = order_in_file(tmp_path / "x.ozx")
    assert directory == file and file[:6] == EXPECTED and len(set(file)) == len(file)
    assert zcore.open_consolidated(tmp_path / "x.ozx")["b/c"][3, 5] == 23


def test_documents_that_come_late_are_first_in_the_directory_alone_of_a_zip(path):
    with ZipStore(path, mode="w") as store:
        image(store).attrs["late"] = 1
    directory, file = order_in_file(path)
    assert directory[:6] == EXPECTED and file[:6] != EXPECTED
    with zipfile.ZipFile(path) as archive:
        assert archive.comment == b""


def test_an_ozx_without_a_version_of_ome_zarr_does_not_name_one(tmp_path):
    for i, attributes in enumerate([{}, {"ome": 1}, {"ome": {"version": 5}}]):
        with ZipStore(tmp_path / f"{i}.ozx", mode="w") as store:
            image(store, attributes)
        with zipfile.ZipFile(tmp_path / f"{i}.ozx") as archive:
            assert archive.comment == b"" and archive.namelist()[0] == "zarr.json"
    with pytest.warns(UserWarning, match=r"no zarr\.json at its root"), \
            ZipStore(tmp_path / "y.ozx", mode="w") as store:
        store.set("a", b"1")


def test_an_ozx_is_of_zarr_v3_and_lies_in_no_hierarchy(tmp_path):
    source = zcore.create_array(zcore.MemoryStore(), data=np.arange(3), zarr_format=2)
    with pytest.raises(ValueError, match="zarr_format=3"):
        zcore.copy(source, tmp_path / "x.ozx")
    assert zcore.copy(source, tmp_path / "x.ozx", zarr_format=3)[:].tolist() == [0, 1, 2]
    zcore.create_group(tmp_path / "g.zarr")
    with pytest.raises(StoreError, match="RFC-9"):
        zcore.copy(source, tmp_path / "g.zarr" / "y.ozx", zarr_format=3)
    assert os.listdir(tmp_path / "g.zarr") == ["zarr.json"]


def test_the_file_of_a_killed_writer_is_removed_by_the_next_one(path, tmp_path):
    script = ("import os, sys, zcore\nstore = zcore.ZipStore(sys.argv[1], mode='w')\nstore.set('a', b'1')\n"
              "os.kill(os.getpid(), 9)")
    subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    left = os.listdir(tmp_path)
    assert len(left) == 1
    with ZipStore(path, mode="w") as first:
        assert len(os.listdir(tmp_path)) == 1 and os.listdir(tmp_path) != left
        with ZipStore(path, mode="w") as second:     # a living writer's file stays
            assert len(os.listdir(tmp_path)) == 2
            second.set("a", b"2")
        first.set("a", b"3")
    assert os.listdir(tmp_path) == [os.path.basename(path)] and ZipStore(path).get("a") == b"3"


@pytest.mark.parametrize("name", ["x.zip", "x.ozx"])
def test_a_copy_that_is_killed_leaves_the_old_archive_and_begins_anew(tmp_path, name):
    source = zcore.create_group(tmp_path / "g.zarr", attributes=OME)
    source.create_array("a", data=np.arange(4096, dtype="<i4"), chunks=(4,), compressors=None)
    place = tmp_path / "made"
    place.mkdir()
    zcore.copy(zcore.array(np.arange(3)), place / name)
    old = (place / name).read_bytes()
    script = ("import os, sys, zcore\nfrom zcore.stores.zip.writer import ZipWriter\n"
              "append, count = ZipWriter.append, [0]\n"
              "def counted(*args):\n    count[0] += 1\n    if count[0] == 300:\n        os.kill(os.getpid(), 9)\n"
              "    return append(*args)\nZipWriter.append = counted\n"
              "zcore.copy(sys.argv[1], sys.argv[2], overwrite=True)\n")
    for _ in range(2):
        killed = subprocess.run([sys.executable, "-c", script, str(tmp_path / "g.zarr"), str(place / name)],
                                check=False)
        assert killed.returncode == -9 and (place / name).read_bytes() == old
        assert len(os.listdir(place)) == 2     # that of the first one was removed by the second one
    zcore.copy(tmp_path / "g.zarr", place / name, overwrite=True)
    assert os.listdir(place) == [name]
    assert zcore.open(place / name)["a"][:].tolist() == list(range(4096)) and zcore.verify(place / name).ok
