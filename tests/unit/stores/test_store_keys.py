"""Keys and paths as pure functions: both flavours on any system (FS-K2P-02)."""
import pytest

from tests.each import each
from zcore.errors import InvalidKeyError
from zcore.stores.keys import (
    POSIX,
    WINDOWS,
    check_key,
    check_path,
    check_prefix,
    is_temporary,
    key_to_path,
)
from zcore.trust.base_path import absolute_base

from .conformance import NOT_KEYS, UNUSUAL_KEYS

CWD = {POSIX: "/home/user", WINDOWS: "D:\\work"}


@each("flavour", [POSIX, WINDOWS])
@each("key", NOT_KEYS, ids=lambda key: ascii(key))
def test_what_is_no_key(key, flavour):
    """FS-K2P-03, FS-K2P-04, FS-K2P-05, FS-K2P-06, FS-K2P-07, FS-K2P-08."""
    with pytest.raises(InvalidKeyError, match="is not a key: ") as caught:
        check_key(key, flavour)
    assert caught.value.key == key
    with pytest.raises(InvalidKeyError):
        key_to_path(absolute_base("data", CWD[flavour], flavour), key, flavour)


@each("flavour", [POSIX, WINDOWS])
@each("part", ["a", "\u00e9"], ids=["ascii", "not-ascii"])
def test_a_key_of_more_parts_than_a_path_can_have(part, flavour):
    """To divide it takes many times its length."""
    longest = "/".join([part] * 65536)
    assert check_key(longest, flavour) == longest and check_prefix(longest + "/", flavour) == longest + "/"
    assert check_path("/" + longest, flavour) == longest
    for wrong, check in ((f"{longest}/{part}", check_key), (f"{longest}/{part}/", check_prefix),
                         (f"/{longest}/{part}", check_path)):
        with pytest.raises(InvalidKeyError, match="it has 65537 parts, at most 65536 are allowed"):
            check(wrong, flavour)


@each("key", UNUSUAL_KEYS, ids=lambda key: ascii(key)[:20])
def test_unusual_keys_are_taken_as_they_are(key):
    """FS-K2P-10, FS-K2P-12."""
    assert check_key(key) == key
    assert check_prefix(key + "/") == key + "/"
    assert key_to_path("/data", key, POSIX) == "/data/" + key


def test_the_reason_is_told():
    """FS-K2P-03, FS-K2P-06, FS-K2P-07, FS-K2P-08, FS-K2P-09, FS-LST-08."""
    for key, flavour, reason in [
        ("", POSIX, "empty"), ("a//b", POSIX, "an empty part"), ("a/..", POSIX, "'..'"), ("a\0", POSIX, "NUL"),
        ("a\udcff", POSIX, "character 1"), (".__zc_tmp.1", POSIX, "temporary"), ("a:b", WINDOWS, "':'"),
        ("a.", WINDOWS, "final '.'"), ("nul.txt", WINDOWS, "device"),
    ]:
        with pytest.raises(InvalidKeyError, match=reason):
            check_key(key, flavour)


@each("key", [
    "a\\b", "a:b", "c:", "*", "a?", 'a"b', "<", ">", "a|b", "a\x1f", "a\tb", "a.", "a ", "d./x", "d /x", "...",
    "CON", "con", "PRN", "AUX", "NUL", "nul.txt", "NUL.tar.gz", "COM1", "com9.x", "LPT1", "lpt9", "x/Aux/y", "COM\xb9",
    "NUL .txt", "AUX.",
])
def test_names_that_windows_cannot_have(key):
    """FS-K2P-02, FS-K2P-09: refused there, keys elsewhere."""
    with pytest.raises(InvalidKeyError):
        check_key(key, WINDOWS)
    with pytest.raises(InvalidKeyError):
        check_prefix(key + "/", WINDOWS)
    assert check_key(key, POSIX) == key


@each("key", [
    "zarr.json", ".zarray", "a.b", "..a", " a", "CONSOLE", "COM", "COM0", "COM10", "LPT", "a.con", "NULL", "xNUL",
    "é/日本",
    "a'b", "a;b=c&d", "[1]", "~",
])
def test_names_that_windows_can_have(key):
    """FS-K2P-09."""
    assert check_key(key, WINDOWS) == key


@each("prefix", ["a", "/", "//", "/a/", "a//", "../", "a/./", ".__zc_tmp.1/"])
def test_what_is_no_prefix(prefix):
    """FS-K2P-05, FS-DEL-05."""
    with pytest.raises(InvalidKeyError, match="is not a prefix: "):
        check_prefix(prefix)


def test_the_empty_prefix():
    """FS-K2P-03."""
    assert check_prefix("") == ""


def test_temporary_names():
    """FS-LST-08: exactly one form."""
    assert is_temporary(".__zc_tmp.0f") and is_temporary(".__zc_tmp.")
    assert not any(map(is_temporary, (".__zc_tmp", "__zc_tmp.1", "x.__zc_tmp.1", ".__ZC_TMP.1", "")))


@each("flavour, base, key, path", [
    (POSIX, "/data", "foo/bar", "/data/foo/bar"),
    (POSIX, "/", "foo/bar", "/foo/bar"),
    (POSIX, "/data", "a\\b", "/data/a\\b"),
    (WINDOWS, "C:\\data", "foo/bar", "C:\\data\\foo\\bar"),
    (WINDOWS, "C:\\", "foo/bar", "C:\\foo\\bar"),
    (WINDOWS, "\\\\server\\share\\", "foo", "\\\\server\\share\\foo"),
    (WINDOWS, "\\\\server\\share\\d", "foo", "\\\\server\\share\\d\\foo"),
])
def test_paths_of_keys(flavour, base, key, path):
    """FS-K2P-02, FS-K2P-01: the examples of the file system store v1.0 and the roots."""
    assert key_to_path(base, key, flavour) == path


@pytest.mark.parametrize("base, long", [
    ("C:\\data", "\\\\?\\C:\\data\\"), ("\\\\srv\\share\\x", "\\\\?\\UNC\\srv\\share\\x\\"),
])
def test_long_paths_on_windows(base, long):
    """FS-K2P-13."""
    fits = "a" * (259 - len(base) - 1)
    assert key_to_path(base, fits, WINDOWS) == f"{base}\\{fits}"
    assert key_to_path(base, fits + "a", WINDOWS) == long + fits + "a"
    assert absolute_base(long, CWD[WINDOWS], WINDOWS) == base
