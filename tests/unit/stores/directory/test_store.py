import errno
import gc
import os
import pickle
import socket
import stat
import sys

import pytest

import zcore
from tests.descriptors import descriptors
from tests.each import each
from tests.unit.stores.conformance import CORE_EXAMPLE, StoreConformance, changes
from zcore import replacing
from zcore.errors import (
    InvalidKeyError,
    KeyConflictError,
    NotADirectoryStoreError,
    ReadOnlyError,
    StoreError,
    UnsupportedError,
)
from zcore.stores import Directory
from zcore.stores.directory import atomic, reading
from zcore.stores.directory import store as directory_store
from zcore.stores.directory.staged import StagedDirectory
from zcore.stores.directory.store import DirectoryStore
from zcore.stores.keys import TEMPORARY


class TestDirectoryStore(StoreConformance):
    options = {}

    def make(self, tmp_path, items=(), read_only=False):
        store = DirectoryStore(tmp_path / "base", **self.options)
        for key in items:
            store.set(key, items[key])
        return DirectoryStore(tmp_path / "base", read_only, **self.options) if read_only else store


class TestConfinedDirectoryStore(TestDirectoryStore):
    options = {"confined": True}


class TestDurableDirectoryStore(TestDirectoryStore):
    options = {"fsync": True}


@pytest.fixture
def store(tmp_path):
    return DirectoryStore(tmp_path / "base")


def tree_of(path):
    """Return {relative path: content, or None for a directory} of everything below `path`."""
    found = {}
    for directory, directories, files in os.walk(path):
        for name in directories:
            found[os.path.relpath(os.path.join(directory, name), path)] = None
        for name in files:
            full = os.path.join(directory, name)
            with open(full, "rb") as file:
                found[os.path.relpath(full, path)] = file.read()
    return found

# The base directory


def test_base_is_made_absolute_at_construction(tmp_path, monkeypatch):
    """FS-MOD-03."""
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    store = DirectoryStore("data")
    monkeypatch.chdir(tmp_path / "other")
    store.set("k", b"v")
    assert store.path == store.locate("").path == str(tmp_path / "data")
    assert store.locate("a/b/") == Directory(str(tmp_path / "data/a/b"))
    assert (tmp_path / "data" / "k").read_bytes() == b"v"


def test_base_is_created_by_the_first_set_only(tmp_path):
    """FS-MOD-03."""
    store = DirectoryStore(tmp_path / "x" / "y")
    assert (store.get("k"), list(store.list()), store.exists("k")) == (None, [], False)
    store.erase("k")
    store.erase_prefix("")
    assert store.clean_temporary() == 0
    assert os.listdir(tmp_path) == []
    store.set("k", b"v")
    assert tree_of(tmp_path) == {"x": None, "x/y": None, "x/y/k": b"v"}


@pytest.mark.parametrize("spelling", [
    "{}/data/", "{}/data//", "{}/./data", "{}/x/../data", "{}//data", "data", "./data/.",
])
def test_spellings_of_one_base_are_one_store(tmp_path, monkeypatch, spelling):
    """FS-P2K-01, FS-P2K-06."""
    (tmp_path / "x").mkdir()
    monkeypatch.chdir(tmp_path)
    store = DirectoryStore(spelling.format(tmp_path))
    assert store.path == str(tmp_path / "data")
    assert store == DirectoryStore(tmp_path / "data") and hash(store) == hash(DirectoryStore(tmp_path / "data"))
    store.set("a/b", b"v")
    assert list(store.list()) == ["a/b"]
    assert (tmp_path / "data" / "a" / "b").read_bytes() == b"v"


def test_parent_of_a_linked_directory_is_that_of_its_target(tmp_path):
    """FS-P2K-06: as the system itself takes ``link/..``."""
    (tmp_path / "far" / "target").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "target")
    assert DirectoryStore(f"{tmp_path}/link/../data").path == str(tmp_path / "far" / "data")


def test_base_may_be_the_root():
    """FS-P2K-06."""
    store = DirectoryStore("/", read_only=True)
    with pytest.raises(StoreError, match="neither a file nor a directory"):
        store.get("dev/null")
    name = os.path.abspath(__file__).lstrip("/")
    with open(__file__, "rb") as file:
        assert store.get(name) == file.read()
    assert name in store.list_dir(os.path.dirname(name) + "/")[0]


@pytest.mark.parametrize("below", ["", "/x", "/x/y"])
def test_base_that_is_a_file(tmp_path, below):
    """FS-LST-02."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError, match="expected a directory, found a file") as caught:
        DirectoryStore(f"{tmp_path}/file{below}")
    assert isinstance(caught.value, NotADirectoryStoreError) and isinstance(caught.value, StoreError)
    assert caught.value.errno == errno.ENOTDIR
    assert pickle.loads(pickle.dumps(caught.value)).errno == errno.ENOTDIR


@pytest.mark.parametrize("name, hint", [
    ("a.zip", "zcore.ZipStore"), ("a.json", "zcore.ReferenceStore"), ("a.asdf", "zcore.asdf.open"),
    ("a.npy", "zcore.copy"), ("a.NC", "zcore.references_from_hdf5"),
])
def test_base_that_is_a_file_of_another_kind(tmp_path, name, hint):
    """Whoever opens it for writing, or at all, is told what does."""
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(NotADirectoryStoreError, match=f"expected a directory, found a file; .*{hint}"):
        zcore.open(tmp_path / name, mode="r+")
    way = "by path='below/x'$" if name in ("a.zip", "a.json", "a.asdf") else hint
    with pytest.raises(NotADirectoryStoreError, match=rf"found a file; .*{name}' is one: .*{way}"):
        DirectoryStore(tmp_path / name / "below" / "x")


@pytest.mark.parametrize("zarr_format, name", [(3, "zarr.json"), (2, ".zarray"), ("zmeta", "__zmeta__")])
def test_the_document_of_a_node_in_the_place_of_its_directory(tmp_path, zarr_format, name):
    zcore.open(tmp_path / "a", mode="w", shape=3, dtype="i4", zarr_format=zarr_format)
    with pytest.raises(NotADirectoryStoreError, match="found a file; .*: open the directory that it is in$"):
        zcore.open(tmp_path / "a" / name)
    (tmp_path / "b").write_bytes(b"")
    with pytest.raises(NotADirectoryStoreError, match="found a file$"):
        zcore.open(tmp_path / "b" / "below")


def test_base_that_is_a_file_and_was_not_looked_at(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    store = DirectoryStore(tmp_path / "file", check_base=False)
    with pytest.raises(NotADirectoryStoreError, match="expected a directory, found a file"):
        store.get_first("", ["a", "b"], 10)
    with pytest.raises(NotADirectoryStoreError, match="expected a directory, found a file"):
        zcore.open(tmp_path / "file")


def test_a_first_value_that_cannot_be_read(store):
    """It may be there: the keys behind it are not taken in its place."""
    store.set("b", b"v")
    os.symlink("a", f"{store.path}/a")
    with pytest.raises(StoreError, match="'a'") as caught:
        store.get_first("", ["x", "a", "b"], 10)
    assert (caught.value.key, caught.value.errno) == ("a", errno.ELOOP)


@each("path, error", [
    ("", ValueError), ("a\0b", ValueError), ("../a\0b", ValueError), ("\ud800", ValueError), ("../\ud800", ValueError),
    (b"bytes", TypeError), (5, TypeError),
])
def test_base_that_is_no_path(path, error):
    with pytest.raises(error):
        DirectoryStore(path)


def test_a_base_whose_name_is_no_text(tmp_path):
    """Names are any bytes on POSIX; Python spells them with surrogates."""
    store = DirectoryStore(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    try:
        store.set("k", b"v")
    except StoreError:
        pytest.skip("names are text on this file system")
    assert os.listdir(os.fsencode(tmp_path)) == [b"\xff"] and store.get("k") == b"v"


def test_directories_are_made(store):
    """FS-LST-07."""
    store.make_directory("a/b/")
    assert tree_of(store.path) == {"a": None, "a/b": None}
    assert list(store.list()) == [] and store.list_dir("a/")[:2] == ([], ["a/b/"])
    store.set("f", b"v")
    os.symlink("nowhere", f"{store.path}/broken")
    for prefix in ("f/", "f/x/", "broken/", "broken/x/"):
        with pytest.raises(KeyConflictError, match="is a file or a broken link") as caught:
            store.make_directory(prefix)
        assert caught.value.key == prefix
    with pytest.raises(StoreError, match="File name too long"):
        store.make_directory("n" * 300 + "/")


def test_equality_repr_and_pickle(tmp_path):
    store = DirectoryStore(tmp_path, read_only=True, fsync=True, confined=True, allow_aliases=True)
    assert repr(store) == f"DirectoryStore({str(tmp_path)!r}, read_only=True)"
    assert repr(DirectoryStore(tmp_path)) == f"DirectoryStore({str(tmp_path)!r})"
    copy = pickle.loads(pickle.dumps(store))
    assert copy == store == DirectoryStore(tmp_path) != DirectoryStore(tmp_path / "x")
    assert (copy.read_only, copy.fsync, copy.confined, copy.allow_aliases) == (True, True, True, True)


def test_uri(tmp_path, monkeypatch):
    """FS-URI-01, FS-URI-09, FS-URI-11."""
    store = DirectoryStore(tmp_path / "my data#1")
    assert store.uri == f"file://{tmp_path}/my%20data%231"
    assert DirectoryStore.from_uri(store.uri) == store
    assert DirectoryStore.from_uri(store.uri, read_only=True).read_only is True
    monkeypatch.chdir(tmp_path)
    assert DirectoryStore.from_uri("a%20b").path == str(tmp_path / "a%20b")
    with pytest.raises(UnsupportedError, match="s3"):
        DirectoryStore.from_uri("s3://bucket/x")

# Files and keys


def test_one_key_is_one_plain_file(tmp_path, store):
    """FS-MOD-01, FS-MOD-04, FS-K2P-01, FS-K2P-10, FS-K2P-12."""
    store.set("foo/bar", b"1")
    store.set("foo/a\\b", b"2")
    store.set("%41 é", b"3")
    assert tree_of(store.path) == {"foo": None, "foo/bar": b"1", "foo/a\\b": b"2", "%41 é": b"3"}
    (tmp_path / "copy").mkdir()
    os.rename(store.path, tmp_path / "copy" / "moved")
    moved = DirectoryStore(tmp_path / "copy" / "moved")
    assert {key: moved.get(key) for key in moved.list()} == {"foo/bar": b"1", "foo/a\\b": b"2", "%41 é": b"3"}


def test_absolute_and_climbing_keys_do_not_leave_the_base(tmp_path, store):
    """FS-K2P-04, FS-K2P-07, FS-K2P-11."""
    store.set("k", b"v")
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    for key in (str(secret), "../secret", "k/../../secret", "./../secret"):
        with pytest.raises(InvalidKeyError):
            store.get(key)
        with pytest.raises(InvalidKeyError):
            store.delete(key)
    assert secret.read_bytes() == b"secret"


def test_a_name_that_is_too_long_is_an_error_of_the_system(store):
    """FS-K2P-13, FS-LIM-01: limits are documented, not enforced."""
    store.set("k", b"v")
    for call in (store.get, store.exists, lambda key: store.set(key, b""), store.erase):
        with pytest.raises(StoreError) as caught:
            call("a" * 300)
        assert (caught.value.errno, caught.value.key) == (errno.ENAMETOOLONG, "a" * 300)
        assert isinstance(caught.value.__cause__, OSError)


@pytest.mark.parametrize("key", [".zgroup", "a", "a/b"])
def test_read_only_store_touches_nothing(tmp_path, key):
    """FS-SET-11."""
    for change in changes(DirectoryStore(tmp_path / "none", read_only=True)).values():
        with pytest.raises(ReadOnlyError):
            change()
    with pytest.raises(ReadOnlyError):
        DirectoryStore(tmp_path / "none", read_only=True).clean_temporary()
    assert os.listdir(tmp_path) == []

# Reading


def test_a_small_value_costs_four_calls(store, monkeypatch):
    """FS-MOD-02: open, fstat, read, close, once the file system is known to tell case apart."""
    store.set("__zdata__/4.2.blosc", b"x" * 100)
    store.get("__zdata__/4.2.blosc")
    calls = []
    for name in ("open", "fstat", "read", "pread", "lseek", "close", "stat", "lstat", "listdir", "scandir"):
        monkeypatch.setattr(os, name, counted(getattr(os, name), calls))
    value = store.get("__zdata__/4.2.blosc")
    monkeypatch.undo()
    assert value == b"x" * 100
    if reading.ignores_case(store._directory_of, "__zdata__") is False:
        assert calls == ["open", "fstat", "pread", "close"]


def counted(function, calls):
    def call(*args, **keywords):
        calls.append(function.__name__)
        return function(*args, **keywords)
    return call


def test_what_is_no_regular_file_has_no_value(store):
    """FS-GET-02, FS-GET-03, FS-GET-08, FS-LST-10, FS-DEL-03: it is no missing chunk, and nobody waits for it."""
    store.set("k", b"v")
    os.mkfifo(f"{store.path}/fifo")
    os.symlink("nowhere", f"{store.path}/dangling")
    os.mkdir(f"{store.path}/directory")
    with socket.socket(socket.AF_UNIX) as sock:
        cwd = os.getcwd()
        os.chdir(store.path)  # the path of a socket is limited to about 100 bytes
        sock.bind("socket")
        os.chdir(cwd)
        for key in ("fifo", "dangling", "directory", "socket", "k/below"):
            if key in ("directory", "k/below"):
                assert store.get(key) is None and store.get_first("", [key], 9) is None
            else:
                for call in (store.get, store.get_with_identity, lambda key: store.get_first("", [key], 9)):
                    with pytest.raises(StoreError, match=key):
                        call(key)
                for call in look_ups(store):
                    with pytest.raises(StoreError, match=key):
                        call(key)
                if key != "dangling":
                    with pytest.raises(StoreError, match="neither a file nor a directory"):
                        store.erase(key)
                continue
            for call in look_ups(store):
                assert not call(key)
            store.erase(key)
        assert store.list_dir("") == (["k"], ["directory/"], ["dangling", "fifo", "socket"])
        assert list(store.list()) == ["dangling", "fifo", "k", "socket"]
    assert sorted(os.listdir(store.path)) == ["dangling", "directory", "fifo", "k", "socket"]
    store.erase("dangling")
    assert sorted(os.listdir(store.path)) == ["directory", "fifo", "k", "socket"]


def look_ups(store):
    """Return the calls that tell what stands at a key."""
    return (store.exists, store.getsize, store.identity, store.extent, lambda key: store.existing("", [key]))


@pytest.mark.parametrize("kind", ["nowhere", "fifo"])
def test_what_is_unreachable_on_the_way(store, kind):
    """FS-GET-03: content that is not mounted is no missing key; what is absent in a linked directory is."""
    os.makedirs(f"{store.path}/real")
    store.set("file", b"v")
    if kind == "fifo":
        os.mkfifo(f"{store.path}/d")
    else:
        os.symlink("nowhere", f"{store.path}/d")
    os.symlink("real", f"{store.path}/linked")
    for place in (store, DirectoryStore(store.path, confined=True)):
        def first(key, place=place):
            return place.get_first("", [key], 9)

        for key in ("d/k", "d/e/k"):
            for call in (place.get, first, *look_ups(place)[:-1]):
                with pytest.raises(StoreError):
                    call(key)
            for call in (place.list_dir, place.is_empty, place.check_reachable, place.getsize_prefix):
                with pytest.raises(StoreError):
                    call(key[:-1])
        for key in ("linked/k", "linked/e/k", "real/k", "none/k", "file/k"):
            assert place.get(key) is None and first(key) is None
            assert not any(call(key) for call in look_ups(place))
            place.check_reachable(key + "/")
            assert place.is_empty(key + "/") and place.list_dir(key + "/") == ([], [], [])


def test_forbidden_files_are_not_missing(store):
    """FS-GET-03."""
    store.set("d/k", b"v")
    os.chmod(f"{store.path}/d/k", 0)
    if os.access(f"{store.path}/d/k", os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(StoreError) as caught:
        store.get("d/k")
    assert caught.value.errno == errno.EACCES
    os.chmod(f"{store.path}/d", 0)
    try:
        for call in (store.exists, store.getsize, store.erase, store.identity, lambda key: store.list_dir("d/")):
            with pytest.raises(StoreError) as caught:
                call("d/k")
            assert caught.value.errno == errno.EACCES
    finally:
        os.chmod(f"{store.path}/d", 0o700)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ESTALE, errno.EMFILE, errno.ENAMETOOLONG])
def test_faults_are_not_missing_keys(store, monkeypatch, number):
    """FS-GET-03: a missing chunk would read as fill value."""
    store.set("d/k", b"v")

    def fail(*args, **keywords):
        raise OSError(number, os.strerror(number), "somewhere")

    for function, call in (("open", store.get), ("fstat", store.get), ("pread", store.get), ("stat", store.exists),
                           ("stat", store.getsize), ("stat", store.identity), ("stat", store.erase),
                           ("scandir", lambda key: store.list_dir("d/")), ("unlink", store.erase),
                           ("open", lambda key: store.set(key, b"w")),
                           ("replace", lambda key: store.set(key, b"w")), ("pwrite", lambda key: store.set(key, b"w")),
                           ("link", lambda key: store.set_if_not_exists("d/new", b"w"))):
        with monkeypatch.context() as patch:
            patch.setattr(os, function, fail)
            with pytest.raises(StoreError) as caught:
                call("d/k")
        assert caught.value.errno == number
        assert caught.value.key in ("d/k", "d/", "d/new") and repr(caught.value.key) in str(caught.value)
        assert isinstance(caught.value.__cause__, OSError)
    assert tree_of(store.path) == {"d": None, "d/k": b"v"}


def test_short_reads_are_continued(store, monkeypatch):
    """FS-GET-07."""
    store.set("k", bytes(range(200)))
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, n, offset: pread(fd, min(n, 7), offset))
    assert store.get("k") == bytes(range(200))
    assert store.get("k", (50, 100)) == bytes(range(50, 150))


def test_a_file_cut_off_under_the_reader_is_a_short_value(store, monkeypatch):
    """FS-GET-07."""
    store.set("k", b"0123456789")
    fstat = os.fstat

    def fstat_then_truncate(fd):
        status = fstat(fd)
        os.truncate(f"{store.path}/k", 4)
        return status

    monkeypatch.setattr(reading.os, "fstat", fstat_then_truncate)
    assert store.get("k") == b"0123"
    assert store.get("k", (2, 8)) == b"23"


def test_a_value_beyond_the_memory_is_a_store_error(store, monkeypatch):
    store.set("k", b"v")

    def no_memory(fd, n, offset):
        raise MemoryError

    monkeypatch.setattr(os, "pread", no_memory)
    with pytest.raises(StoreError, match="no memory for the 1 bytes") as caught:
        store.get("k")
    assert caught.value.errno == errno.ENOMEM


def test_descriptors_are_closed(store):
    store.set("k", b"v")
    store.set("d/e", b"v")
    n_open = descriptors()
    for _ in range(3):
        store.get("k")
        store.get("d")
        store.get("k", (0, 1))
        with pytest.raises(ValueError):
            store.get("k", (-1, 1))
        store.set("k", b"w")
        store.set_if_not_exists("k", b"w")
        with pytest.raises(KeyConflictError):
            store.set("d", b"w")
        store.get_with_identity("k")
        store.get_first("", ["x", "d", "k"], 10)
        next(store.list())
    assert descriptors() <= n_open


def test_identity_is_that_of_the_descriptor(store):
    store.set("k", b"abc")
    status = os.stat(f"{store.path}/k")
    expected = (status.st_dev, status.st_ino, 3, status.st_mtime_ns, status.st_ctime_ns)
    assert store.get_with_identity("k") == (b"abc", expected)
    assert store.identity("k") == expected

# Writing


def test_new_files_obey_the_umask(store):
    """FS-SET-01."""
    old = os.umask(0o027)
    try:
        store.set("d/k", b"v")
        store.set_if_not_exists("d/l", b"v")
    finally:
        os.umask(old)
    assert stat.S_IMODE(os.stat(f"{store.path}/d/k").st_mode) == 0o640
    assert stat.S_IMODE(os.stat(f"{store.path}/d/l").st_mode) == 0o640
    assert stat.S_IMODE(os.stat(f"{store.path}/d").st_mode) == 0o750


@pytest.mark.parametrize("mode", [0o600, 0o444, 0o666, 0o755])
def test_replaced_files_keep_their_mode(store, mode):
    """FS-SET-01."""
    store.set("k", b"v")
    os.chmod(f"{store.path}/k", mode)
    store.set("k", b"w")
    assert stat.S_IMODE(os.stat(f"{store.path}/k").st_mode) == mode
    assert store.get("k") == b"w"


@pytest.mark.parametrize("function", ["pwrite", "fstat", "close", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()], ids=["full", "interrupt"])
def test_failed_set_leaves_the_old_value_and_no_other_file(tmp_path, monkeypatch, function, error):
    """FS-SET-03."""
    store = DirectoryStore(tmp_path, fsync=True)
    store.set("k", b"old")
    real = getattr(os, function)

    def fail(*args):
        if function == "close":
            real(*args)
        raise error

    monkeypatch.setattr(atomic.os, function, fail)
    with pytest.raises((StoreError, KeyboardInterrupt)) as caught:
        store.set("k", b"new")
    monkeypatch.undo()
    assert tree_of(tmp_path) == {"k": b"old"}
    if isinstance(error, OSError):
        assert (caught.value.errno, caught.value.key, caught.value.__cause__) == (errno.ENOSPC, "k", error)


def test_set_goes_through_a_temporary_file_beside_the_target(store, monkeypatch):
    """FS-SET-03, FS-LST-08."""
    store.set("d/k", b"old")
    seen = []
    replace = os.replace

    def look_and_replace(source, target):
        seen.append(source)
        assert store.get("d/k") == b"old"
        assert list(store.list()) == ["d/k"]
        assert store.list_dir("d/")[:2] == (["d/k"], [])
        assert store.getsize_prefix("") == 3
        with open(source, "rb") as file:
            assert file.read() == b"new value"
        replace(source, target)

    monkeypatch.setattr(atomic.os, "replace", look_and_replace)
    store.set("d/k", b"new value")
    assert [os.path.dirname(path) for path in seen] == [f"{store.path}/d"]
    assert os.path.basename(seen[0]).startswith(TEMPORARY)
    assert os.listdir(f"{store.path}/d") == ["k"]


def test_short_writes_are_continued(store, monkeypatch):
    """FS-SET-01."""
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: pwrite(fd, data[:7], offset))
    store.set("k", bytes(range(200)))
    assert store.get("k") == bytes(range(200))


@pytest.mark.parametrize("empty", [True, False])
def test_a_directory_in_the_place_of_a_key_stays(store, empty):
    """FS-SET-04."""
    os.makedirs(f"{store.path}/a/b" if not empty else f"{store.path}/a")
    before = tree_of(store.path)
    for write in (store.set, store.set_if_not_exists):
        with pytest.raises(KeyConflictError, match="'a'") as caught:
            write("a", b"v")
        assert caught.value.errno == errno.EISDIR
    assert tree_of(store.path) == before


def test_a_directory_that_appears_during_a_write_is_a_conflict(store, monkeypatch):
    """FS-SET-04."""
    pwrite = os.pwrite

    def make_directory_and_write(fd, data, offset):
        os.makedirs(f"{store.path}/a", exist_ok=True)
        return pwrite(fd, data, offset)

    monkeypatch.setattr(os, "pwrite", make_directory_and_write)
    for call in (store.set, store.set_if_not_exists):
        with pytest.raises(KeyConflictError):
            call("a", b"v")
        assert tree_of(store.path) == {"a": None}
        os.rmdir(f"{store.path}/a")


def test_conflict_with_a_file_leaves_the_tree(store):
    """FS-SET-05."""
    store.set("a", b"v")
    for key in ("a/b", "a/b/c"):
        with pytest.raises(KeyConflictError, match="not a directory") as caught:
            store.set(key, b"w")
        assert caught.value.errno == errno.ENOTDIR
    assert tree_of(store.path) == {"a": b"v"}


def test_broken_links_in_the_way_do_not_hang(store):
    """FS-SET-05, FS-SET-07."""
    store.set("k", b"v")
    os.symlink("nowhere", f"{store.path}/d")
    with pytest.raises(KeyConflictError, match="not a directory"):
        store.set("d/k", b"v")
    with pytest.raises(KeyConflictError, match="broken link"):
        store.set_if_not_exists("d", b"v")
    store.set("d", b"v")
    assert store.get("d") == b"v"


def test_directory_pruned_between_creation_and_use_is_made_again(store, monkeypatch):
    """FS-SET-08: each of many prunes costs one more try, not a failure."""
    real = os.open
    n_pruned = 0

    def prune_then_open(path, flags, *args):
        nonlocal n_pruned
        if flags & os.O_CREAT and n_pruned < 10 and os.path.isdir(f"{store.path}/a/b"):
            os.removedirs(f"{store.path}/a/b")
            n_pruned += 1
        return real(path, flags, *args)

    monkeypatch.setattr(atomic.os, "open", prune_then_open)
    store.set("a/b/k", b"v")
    assert n_pruned == 10
    assert store.get("a/b/k") == b"v"


def test_parent_pruned_while_directories_are_made(store, monkeypatch):
    """FS-SET-08."""
    real = os.mkdir
    made = []

    def mkdir_and_prune(path):
        real(path)
        made.append(path)
        if len(made) in (1, 3):
            os.rmdir(path)

    monkeypatch.setattr(atomic.os, "mkdir", mkdir_and_prune)
    store.set("a/b/k", b"v")
    assert store.get("a/b/k") == b"v"


@pytest.mark.parametrize("exclusive", [False, True])
def test_temporary_file_taken_away_is_written_again(store, monkeypatch, exclusive):
    """FS-SET-08: an `erase_prefix` of the whole may take it with everything else."""
    store.set("other", b"")
    name = "link" if exclusive else "replace"
    real = getattr(os, name)
    n_lost = 0

    def lose_it_first(source, target):
        nonlocal n_lost
        if n_lost < 2:
            n_lost += 1
            os.unlink(source)
        real(source, target)

    monkeypatch.setattr(atomic.os, name, lose_it_first)
    (store.set_if_not_exists if exclusive else store.set)("k", b"v")
    assert n_lost == 2
    assert tree_of(store.path) == {"k": b"v", "other": b""}


def test_tries_end(store, monkeypatch):
    """FS-SET-08: a directory that never stays is an error, not a hang."""
    real = os.open

    def always_missing(path, flags, *args):
        if flags & os.O_CREAT:
            raise FileNotFoundError(errno.ENOENT, "gone", path)
        return real(path, flags, *args)

    monkeypatch.setattr(atomic.os, "open", always_missing)
    with pytest.raises(StoreError) as caught:
        store.set("a/k", b"v")
    assert caught.value.errno == errno.ENOENT


def test_loser_of_set_if_not_exists_leaves_the_winner(store, monkeypatch):
    """FS-SET-07: also when the winner comes between look and link."""
    real = os.link

    def other_wins(source, target):
        with open(target, "xb") as file:
            file.write(b"winner")
        real(source, target)

    monkeypatch.setattr(atomic.os, "link", other_wins)
    assert store.set_if_not_exists("k", b"loser") is False
    assert tree_of(store.path) == {"k": b"winner"}


def test_fsync_is_an_option(tmp_path, monkeypatch):
    """FS-SET-10."""
    synced = []     # whether it is a directory
    monkeypatch.setattr(replacing, "write_out", lambda fd, real=replacing.write_out: synced.append(False) or real(fd))
    monkeypatch.setattr(replacing, "barrier", lambda fd, real=replacing.barrier: synced.append(True) or real(fd))
    store = DirectoryStore(tmp_path / "plain")
    store.set("d/k", b"v")
    assert synced == []
    store.set("d/k", b"w")
    assert synced == [False]     # not the new one before it replaces the old one
    store.erase("d/k")
    del synced[:]
    store = DirectoryStore(tmp_path / "durable", fsync=True)
    store.set("d/k", b"v")
    assert synced == [True, True, False, True]  # parents of base and d; file; d
    store.make_directory("e/f/")
    assert synced[4:] == [True, True]  # parents of e and f
    del synced[:]
    store.set("d/k", b"v")
    assert synced == [False, True]
    store.set_if_not_exists("d/l", b"v")
    assert synced == [False, True] * 2
    del synced[:]
    store.erase("d/k")
    store.delete("d/l")
    assert synced == [True, True]

# Removing


def test_pruning_stops_at_the_base(store):
    """FS-DEL-07, FS-DEL-04."""
    store.set("a/b/k", b"v")
    store.erase("a/b/k")
    assert tree_of(store.path) == {} and os.path.isdir(store.path)
    store.set("a/b/k", b"v")
    store.set("k", b"v")
    store.erase_prefix("")
    assert tree_of(store.path) == {} and os.path.isdir(store.path)


def test_pruning_leaves_what_is_not_empty(store):
    """FS-DEL-07."""
    store.set("a/b/k", b"v")
    os.mkdir(f"{store.path}/a/other")
    store.delete("a/b")
    assert tree_of(store.path) == {"a": None, "a/other": None}


def test_delete_removes_any_kind_of_file(store):
    """FS-DEL-01."""
    os.makedirs(f"{store.path}/empty")
    os.mkfifo(f"{store.path}/fifo")
    os.symlink("nowhere", f"{store.path}/dangling")
    for key in ("empty", "fifo", "dangling"):
        store.delete(key)
    assert os.listdir(store.path) == []


def test_erase_prefix_of_a_tree_deeper_than_the_recursion_limit(store, monkeypatch):
    """FS-DEL-02."""
    depth = sys.getrecursionlimit() // 2
    key = "/".join(["a"] * depth + ["k"])
    if len(store.path) + len(key) > 4000:
        pytest.skip("paths are too short here")
    store.set(key, b"v")
    assert list(store.list()) == [key]
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(200)
    try:
        store.erase_prefix("a/")
    finally:
        sys.setrecursionlimit(limit)
    assert os.listdir(store.path) == []


def test_erase_prefix_leaves_what_is_written_meanwhile(store, monkeypatch):
    """FS-SET-08."""
    store.set("a/b/k", b"v")
    real = os.rmdir
    wrote = []

    def write_then_rmdir(path):
        if not wrote:
            wrote.append(path)
            store.set("a/b/new", b"w")
        real(path)

    monkeypatch.setattr(os, "rmdir", write_then_rmdir)
    store.erase_prefix("a/")
    assert {key: store.get(key) for key in store.list()} == {"a/b/new": b"w"}


def test_temporary_files_go_with_their_directory(store):
    """FS-LST-08."""
    store.set("a/k", b"v")
    open(f"{store.path}/a/{TEMPORARY}1", "wb").close()
    store.erase_prefix("a/")
    assert os.listdir(store.path) == []


def test_stale_temporary_files_are_cleaned_by_age(store):
    """FS-LST-08."""
    store.set("a/b/k", b"v")
    store.set(".__zc_tmp", b"v")
    for path, age in ((f"a/{TEMPORARY}old", 7200), (f"a/b/{TEMPORARY}older", 10**6), (f"{TEMPORARY}young", 60)):
        full = f"{store.path}/{path}"
        open(full, "wb").close()
        now = os.stat(full).st_mtime
        os.utime(full, (now - age, now - age))
    os.mkdir(f"{store.path}/{TEMPORARY}directory")
    for name in ("copy.1", "copy.2/3"):       # of killed copies
        os.makedirs(f"{store.path}/a/{TEMPORARY}{name}")
        os.utime(f"{store.path}/a/{TEMPORARY}{name}", (now - 7200, now - 7200))
    open(f"{store.path}/a/{TEMPORARY}copy.1/{TEMPORARY}new.npy", "wb").close()
    os.utime(f"{store.path}/a/{TEMPORARY}copy.1", (now - 7200, now - 7200))
    os.utime(f"{store.path}/a/{TEMPORARY}copy.1/{TEMPORARY}new.npy", (now - 7200, now - 7200))
    assert list(store.list()) == [".__zc_tmp", "a/b/k"]
    assert store.clean_temporary() == 3
    assert store.clean_temporary(older_than=30) == 1
    with StagedDirectory(f"{store.path}/a/x") as work:     # one that goes on
        os.mkdir(work.node)
        assert store.clean_temporary(older_than=0) == 1 and os.path.isdir(work.node)
    assert tree_of(store.path) == {
        ".__zc_tmp": b"v", "a": None, "a/b": None, "a/b/k": b"v", f"{TEMPORARY}directory": None,
    }

# Listing


def test_directories_without_files_are_listed_but_hold_no_key(store):
    """FS-LST-01, FS-LST-07."""
    store.set("k", b"v")
    os.makedirs(f"{store.path}/empty/below")
    assert list(store.list()) == ["k"]
    assert store.list_dir("")[:2] == (["k"], ["empty/"])
    assert store.list_dir("empty/")[:2] == ([], ["empty/below/"])


def test_no_handle_is_open_between_items(store):
    """FS-LST-12."""
    for key in CORE_EXAMPLE:
        store.set(key, b"")
    gc.collect()   # what tests before this one have left
    n_open = descriptors()
    iterator = store.list()
    for _ in range(3):
        next(iterator)
        assert descriptors() <= n_open
    del iterator
    gc.collect()
    assert descriptors() <= n_open


@pytest.mark.skipif(sys.platform == "darwin", reason="the file system takes UTF-8 names only")
def test_names_that_are_not_text_are_skipped_with_a_warning(store):
    """FS-LST-11."""
    store.set("a/é", b"v")
    with open(os.path.join(os.fsencode(store.path), b"a", b"x\xe9"), "wb"):
        pass
    with pytest.warns(UserWarning, match=r"not UTF-8, 'x\\udce9'"):
        assert list(store.list()) == ["a/é"]
    with pytest.warns(UserWarning, match="left out"):
        assert store.list_dir("a/")[:2] == (["a/é"], [])


def test_a_directory_that_vanishes_during_a_walk_is_skipped(store, monkeypatch):
    """FS-LST-11."""
    for key in ("a/k", "b/k", "c/k"):
        store.set(key, b"")
    iterator = store.list()
    assert next(iterator) == "a/k"
    store.erase_prefix("b/")
    os.makedirs(f"{store.path}/b", exist_ok=True)
    os.rmdir(f"{store.path}/b")
    with open(f"{store.path}/b", "wb"):
        pass
    assert list(iterator) == ["c/k"]


def test_a_node_that_is_replaced_by_one_of_another_format_is_never_absent(tmp_path, monkeypatch):
    """Its own document was there no more, and that of the new one had been looked for before."""
    zcore.create_array(tmp_path, data=[1, 2], zarr_format=2)
    read_first, pending = directory_store.read_first, ["zarr.json"]

    def read_late(directory, names, limit):
        if pending:
            assert os.fsencode(pending.pop()) == names[0]
            zcore.create_array(tmp_path, data=[3, 4, 5], zarr_format=3, overwrite=True)
            return read_first(directory, names[1:], limit)
        return read_first(directory, names, limit)

    monkeypatch.setattr(directory_store, "read_first", read_late)
    assert zcore.open(tmp_path)[...].tolist() == [3, 4, 5]
