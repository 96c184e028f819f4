"""Laws of keys, paths and URIs in both flavours, and of any history of a store against a dictionary."""
import ntpath
import posixpath
import tempfile

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.examples import examples
from zcore.errors import InvalidKeyError, KeyConflictError
from zcore.stores.directory.store import DirectoryStore
from zcore.stores.keys import POSIX, WINDOWS, check_key, key_to_path
from zcore.stores.memory import MemoryStore
from zcore.trust.base_path import absolute_base
from zcore.trust.file_uri import path_to_uri, uri_to_path

# Characters that mean something to one of the systems or to a URI stand in for all others half of the time.
SPECIAL = st.sampled_from("/\\.:%#? ~a|é\u0301\0*C")
TEXT = st.text(st.one_of(SPECIAL, st.characters()), max_size=12)
PARTS = {
    POSIX: st.text(st.one_of(st.sampled_from("\\.:%#? ~a"), st.characters(codec="utf-8", exclude_characters="/\0")),
                   min_size=1, max_size=8).filter(lambda part: part not in (".", "..")),
    WINDOWS: st.text(
        st.one_of(st.sampled_from("a%#~ ."), st.characters(codec="utf-8", exclude_characters='\\/:*?"<>|')),
        min_size=1, max_size=8).filter(lambda part: min(part) > "\x1f" and part[-1] not in ". "),
}
ROOTS = {
    POSIX: st.just("/"),
    WINDOWS: st.one_of(
        st.sampled_from(["C:\\", "z:\\"]),
        st.builds("\\\\{}\\{}\\".format, st.sampled_from(["server", "localhost", "10.0.0.1"]),
                  st.sampled_from(["share", "a b", "c$"]))),
}


def bases(flavour):
    """Return a strategy for absolute bases in their one spelling."""
    separator = "/" if flavour == POSIX else "\\"
    return st.builds(lambda root, parts: absolute_base(root + separator.join(parts), root, flavour),
                     ROOTS[flavour], st.lists(PARTS[flavour], max_size=4))


def is_key(text, flavour):
    try:
        check_key(text, flavour)
    except InvalidKeyError:
        return False
    return True


@given(text=TEXT, base=bases(POSIX))
@example(text="a/../../x", base="/data")
@example(text="/etc", base="/data")
def test_no_text_leaves_a_posix_base(text, base):
    """FS-K2P-11: it is refused, or its path lies below the base and is in its one spelling."""
    if is_key(text, POSIX):
        path = key_to_path(base, text, POSIX)
        assert posixpath.normpath(path) == path
        assert posixpath.commonpath([base, path]) == base != path


@given(text=TEXT, base=bases(WINDOWS))
@example(text="a\\..\\..\\x", base="C:\\data")
@example(text="D:x", base="C:\\data")
def test_no_text_leaves_a_windows_base(text, base):
    """FS-K2P-11."""
    if is_key(text, WINDOWS):
        path = key_to_path(base, text, WINDOWS)
        assert ntpath.normpath(path) == path
        assert ntpath.join(base, text.replace("/", "\\")) == path or path.startswith("\\\\?\\")
        assert not ntpath.splitdrive(text.replace("/", "\\"))[0]


@given(first=TEXT, second=TEXT)
@example(first="a//b", second="a/b")
def test_two_keys_are_two_paths(first, second):
    """FS-K2P-06."""
    if first != second and is_key(first, POSIX) and is_key(second, POSIX):
        assert key_to_path("/d", first, POSIX) != key_to_path("/d", second, POSIX)


@given(text=TEXT)
def test_every_windows_key_is_a_posix_key(text):
    """FS-K2P-09."""
    assert not is_key(text, WINDOWS) or is_key(text, POSIX)


@pytest.mark.parametrize("flavour", [POSIX, WINDOWS])
@given(data=st.data())
def test_uri_round_trip(flavour, data):
    """FS-URI-12, FS-URI-02."""
    base = data.draw(bases(flavour))
    uri = path_to_uri(base, flavour)
    assert uri_to_path(uri, flavour) == base
    assert uri.isascii() and uri.startswith("file:") and not set(uri) & set(' \\?#[]"<>')


@given(text=st.one_of(TEXT, TEXT.map("file:".__add__), TEXT.map("file:///c:/".__add__)))
@pytest.mark.parametrize("flavour", [POSIX, WINDOWS])
def test_any_text_is_a_path_or_an_error(flavour, text):
    """FS-URI-08."""
    try:
        path = uri_to_path(text, flavour)
    except (ValueError, NotImplementedError):
        return
    if text.lower().startswith("file:"):
        assert absolute_base(path, path, flavour) == path
    else:
        assert path == text


KEYS = st.lists(st.sampled_from(["a", "b", "c.d"]), min_size=1, max_size=3).map("/".join)
STEPS = st.one_of(
    st.tuples(st.just("set"), KEYS, st.binary(max_size=5)),
    st.tuples(st.just("set_if_not_exists"), KEYS, st.binary(max_size=5)),
    st.tuples(st.just("set_partial_values"), KEYS, st.integers(0, 6), st.binary(max_size=5)),
    st.tuples(st.just("erase"), KEYS),
    st.tuples(st.just("erase_prefix"), st.one_of(KEYS.map(lambda key: key + "/"), st.just(""))),
    st.tuples(st.just("delete"), KEYS),
)


class Model:
    """A dictionary with the rules of a store."""

    def __init__(self):
        self.items = {}

    def _check(self, key):
        if any(other != key and f"{other}/".startswith(f"{key}/") for other in self.items):
            raise KeyConflictError("a prefix", key=key)
        if any(other != key and f"{key}/".startswith(f"{other}/") for other in self.items):
            raise KeyConflictError("below a key", key=key)

    def set(self, key, value):
        self._check(key)
        self.items[key] = value

    def set_if_not_exists(self, key, value):
        self._check(key)
        is_new = key not in self.items
        self.items.setdefault(key, value)
        return is_new

    def set_partial_values(self, key, start, value):
        old = self.items.get(key, b"")
        new = old[:start].ljust(start, b"\0") + value + old[start + len(value):]
        self.set(key, new)

    def erase(self, key):
        self.items.pop(key, None)

    def erase_prefix(self, prefix):
        self.items = {key: value for key, value in self.items.items() if not key.startswith(prefix)}

    def delete(self, key):
        self.erase(key)
        self.erase_prefix(key + "/")


def outcome(target, name, *arguments):
    try:
        return getattr(target, name)(*arguments)
    except KeyConflictError as exc:
        return KeyConflictError, exc.key


@pytest.mark.parametrize("kind", ["memory", "directory"])
@given(steps=st.lists(STEPS, max_size=12))
@examples(60)
def test_any_history_leaves_what_a_dictionary_would_hold(kind, steps):
    with tempfile.TemporaryDirectory() as base:
        store = MemoryStore() if kind == "memory" else DirectoryStore(base)
        model = Model()
        for name, *arguments in steps:
            expected = outcome(model, name, *arguments)
            found = outcome(store, name, *([[tuple(arguments)]] if name == "set_partial_values" else arguments))
            assert found == expected
        assert {key: store.get(key) for key in store.list()} == model.items
        assert list(store.list()) == sorted(model.items)
        assert store.getsize_prefix("") == sum(map(len, model.items.values()))
        tops = {key.partition("/")[0] for key in model.items}
        keys, prefixes, _ = store.list_dir("")
        assert keys == sorted(top for top in tops if top in model.items)
        assert prefixes == sorted(f"{top}/" for top in tops if top not in model.items)
