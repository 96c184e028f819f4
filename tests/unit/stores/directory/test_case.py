"""FS-SET-09: two spellings of one file, on a file system that ignores case (made up where there is none)."""
import os

import pytest

from zcore.errors import KeyConflictError
from zcore.stores.directory import reading
from zcore.stores.directory import store as directory
from zcore.stores.directory.store import DirectoryStore
from zcore.stores.keys import check_key


class FoldingStore(DirectoryStore):
    """A directory store whose lookups find an entry of any case, as those of Windows and macOS do."""

    def _file_of(self, key):
        path = self.path
        for part in check_key(key).split("/"):
            try:
                names = os.listdir(path)
            except (FileNotFoundError, NotADirectoryError):
                names = []
            same = [name for name in names if name.lower() == part.lower()]
            path = os.path.join(path, same[0] if same else part)
        return path


@pytest.fixture(autouse=True)
def no_device_known(monkeypatch):
    """The made-up file system is on a device of the real one, which other tests have looked at."""
    monkeypatch.setattr(directory, "_CASE_SENSITIVE", set())


@pytest.fixture
def store(tmp_path):
    store = FoldingStore(tmp_path)
    store.set("a/foo", b"foo")
    return store


def test_the_file_system_here_is_asked_once(tmp_path, monkeypatch):
    store = DirectoryStore(tmp_path)
    store.set("1", b"")
    store.get("1")
    assert store._ignores_case is None
    assert store.get("a/foo") is None
    store.set("a/foo", b"")
    store.get("a/foo")
    assert store._ignores_case is os.path.exists(tmp_path / "A" / "FOO")
    if store._ignores_case is False:
        monkeypatch.setattr(reading, "ignores_case", None)
        store.get("a/foo")
        store.set("b", b"")


def test_a_device_that_tells_case_is_not_asked_again(tmp_path, monkeypatch):
    DirectoryStore(tmp_path).set("foo", b"")
    monkeypatch.setattr(directory, "_CASE_SENSITIVE", {os.stat(tmp_path).st_dev})
    monkeypatch.setattr(reading, "ignores_case", None)
    store = DirectoryStore(tmp_path)
    assert store.get("foo") == b"" and store._ignores_case is False


def test_both_spellings_present_tell_that_case_matters(tmp_path):
    store = DirectoryStore(tmp_path)
    store.set("foo", b"")
    if store.get("FOO") is not None or os.path.exists(tmp_path / "FOO"):
        pytest.skip("this file system ignores case")
    store.set("FOO", b"")
    assert reading.ignores_case(store._directory_of, "foo") is False


def test_missing_keys_and_keys_without_letters_tell_nothing(store):
    fresh = FoldingStore(store.path)
    assert fresh.get("missing") is None and fresh.list_dir("missing/")[:2] == ([], [])
    assert fresh._ignores_case is None
    assert reading.ignores_case(fresh._directory_of, "1/2") is None
    assert reading.ignores_case(fresh._directory_of, "a/foo") is True


@pytest.mark.parametrize("key", ["a/FOO", "A/foo", "A/FOO", "a/Foo"])
def test_another_spelling_is_a_missing_key(store, key):
    assert store.get("a/foo") == b"foo"
    assert store.get(key) is None
    assert store.get_with_identity(key) is None
    assert store.get_first("", [key], 9) is None
    assert store.get_first("", [key, "a/foo"], 9)[:2] == (1, b"foo")
    assert store.exists(key) is False
    assert store.getsize(key) is None
    assert store.identity(key) is None
    assert list(store.list_prefix("A/")) == []
    assert store.list_dir("A/")[:2] == ([], [])
    store.erase(key)
    store.delete(key)
    store.erase_prefix("A/")
    assert store.get("a/foo") == b"foo"


@pytest.mark.parametrize("key", ["a/FOO", "A/foo", "A/new", "A/b/c"])
def test_another_spelling_cannot_be_set(store, key):
    for write in (store.set, store.set_if_not_exists):
        with pytest.raises(KeyConflictError, match="another spelling") as caught:
            write(key, b"new")
        assert caught.value.key == key
    with pytest.raises(KeyConflictError, match="another spelling"):
        store.make_directory(key + "/")
    assert {key: store.get(key) for key in store.list()} == {"a/foo": b"foo"}


@pytest.mark.parametrize("key", ["a/FOO", "A/new"])
def test_a_fresh_store_finds_out_before_it_writes(store, key):
    with pytest.raises(KeyConflictError):
        FoldingStore(store.path).set(key, b"new")


def test_the_same_spelling_goes_on_working(store):
    store.set("a/foo", b"2")
    store.set("a/bar/1.2", b"3")
    store.set("B", b"4")
    assert {key: store.get(key) for key in store.list()} == {"a/foo": b"2", "a/bar/1.2": b"3", "B": b"4"}
    store.erase("a/foo")
    store.delete("a/bar")
    assert list(store.list()) == ["B"]


def test_aliases_can_be_allowed(store):
    store = FoldingStore(store.path, allow_aliases=True)
    assert store.get("A/FOO") == b"foo"
    store.set("A/FOO", b"new")
    assert {key: store.get(key) for key in store.list()} == {"a/foo": b"new"}


def test_decomposed_names_are_the_names_they_were_given_as(tmp_path):
    """FS-K2P-12: HFS+ lists names in another normal form than they were given."""
    (tmp_path / "e\u0301").write_bytes(b"")
    assert reading.is_spelled_so(lambda prefix: str(tmp_path / prefix), "\xe9")
    assert reading.is_spelled_so(lambda prefix: str(tmp_path / prefix), "e\u0301")
    (tmp_path / "\xf6").write_bytes(b"")
    assert not reading.is_spelled_so(lambda prefix: str(tmp_path / prefix), "o\u0308")
