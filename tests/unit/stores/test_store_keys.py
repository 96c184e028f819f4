"""Keys and paths as pure functions."""
import pytest

from tests.each import each
from zcore.errors import InvalidKeyError
from zcore.stores.keys import check_key, check_path, check_prefix, is_temporary, key_to_path

from .conformance import NOT_KEYS, UNUSUAL_KEYS


@each("key", NOT_KEYS, ids=lambda key: ascii(key))
def test_what_is_no_key(key):
    """FS-K2P-03, FS-K2P-04, FS-K2P-05, FS-K2P-06, FS-K2P-07, FS-K2P-08."""
    with pytest.raises(InvalidKeyError, match="is not a key: ") as caught:
        check_key(key)
    assert caught.value.key == key
    with pytest.raises(InvalidKeyError):
        key_to_path("/data", key)


@each("part", ["a", "\u00e9"], ids=["ascii", "not-ascii"])
def test_a_key_of_more_parts_than_a_path_can_have(part):
    """To divide it takes many times its length."""
    longest = "/".join([part] * 65536)
    assert check_key(longest) == longest and check_prefix(longest + "/") == longest + "/"
    assert check_path("/" + longest) == longest
    for wrong, check in ((f"{longest}/{part}", check_key), (f"{longest}/{part}/", check_prefix),
                         (f"/{longest}/{part}", check_path)):
        with pytest.raises(InvalidKeyError, match="it has 65537 parts, at most 65536 are allowed"):
            check(wrong)


@each("key", UNUSUAL_KEYS, ids=lambda key: ascii(key)[:20])
def test_unusual_keys_are_taken_as_they_are(key):
    """FS-K2P-10, FS-K2P-12."""
    assert check_key(key) == key
    assert check_prefix(key + "/") == key + "/"
    assert key_to_path("/data", key) == "/data/" + key


def test_the_reason_is_told():
    """FS-K2P-03, FS-K2P-06, FS-K2P-07, FS-K2P-08, FS-LST-08."""
    for key, reason in [
        ("", "empty"), ("a//b", "an empty part"), ("a/..", "'..'"), ("a\0", "NUL"), ("a\udcff", "character 1"),
        (".__zc_tmp.1", "temporary"),
    ]:
        with pytest.raises(InvalidKeyError, match=reason):
            check_key(key)


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


@each("base, key, path", [
    ("/data", "foo/bar", "/data/foo/bar"), ("/", "foo/bar", "/foo/bar"), ("/data", "a\\b", "/data/a\\b"),
])
def test_paths_of_keys(base, key, path):
    """FS-K2P-01: the examples of the file system store v1.0 and the roots."""
    assert key_to_path(base, key) == path
