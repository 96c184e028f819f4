"""``file:`` URIs: file system store v1.0, "Canonical URI"; RFC 8089; RFC 3986."""
import pytest

from tests.each import each
from zcore.errors import UnsupportedError
from zcore.trust.file_uri import path_to_uri, uri_to_path


@each("base, uri", [
    # FS-URI-01: the examples of the text
    ("/my data", "file:///my%20data"),
    # FS-URI-02
    ("/Az09-._~", "file:///Az09-._~"),
    ("/[]?#%", "file:///%5B%5D%3F%23%25"),
    ("/!$&'()*+,;=:@", "file:///%21%24%26%27%28%29%2A%2B%2C%3B%3D%3A%40"),
    ("/a\\b", "file:///a%5Cb"),
    ("/\n\x7f😀", "file:///%0A%7F%F0%9F%98%80"),
    ("/c:/x", "file:///c%3A/x"),
    ("/x\udce9", "file:///x%E9"),
    # FS-URI-04
    ("/", "file:///"),
])
def test_canonical_form(base, uri):
    """FS-URI-01, FS-URI-02, FS-URI-04, FS-URI-12."""
    assert path_to_uri(base) == uri
    assert uri_to_path(uri) == base


@each("uri", [
    "file:/my%20data", "file://localhost/my%20data", "FILE:///my%20data", "File://LocalHost/my%20data",
    "file:///my data",
    "file:///%6dy%20data", "file:///%6Dy%20d%61ta", "file:///my%20data/", "file:////my%20data", "file:///x/../my%20data",
    "file:///x/%2e%2E/my%20data", "file:///./my%20data",
])
def test_other_forms(uri):
    """FS-URI-05, FS-URI-02: the same base, its case of hexadecimal digits or its trailing separator aside."""
    assert uri_to_path(uri) == "/my data"


@each("uri", ["file://server/share/p", "file://127.0.0.1/p", "file://user@localhost/p"])
def test_foreign_hosts(uri):
    """FS-URI-07."""
    with pytest.raises(ValueError):
        uri_to_path(uri)


@each("rest", [
    "/p?q", "/p?", "/p#f", "/p#", "/%zz", "/%", "/%2", "/a%2", "/%G0", "/%00", "/a%00b", "/a%2Fb", "/a%2fb", "/a\0b",
])
def test_broken_uris(rest):
    """FS-URI-08."""
    with pytest.raises(ValueError, match="file:"):
        uri_to_path(f"file://{rest}")


@each("uri", ["file:", "file://", "file:p", "file:./p", "file://localhost"])
def test_uris_without_an_absolute_path(uri):
    with pytest.raises(ValueError):
        uri_to_path(uri)


@each("text", [
    "/data/a%20b", "a%20b", "./x:y", "", "a?b#c", "1:2", "-x:y", "über:x", "C:\\x", "c:/x", "c:x", "//server/share",
    ":x",
])
def test_a_path_is_taken_literally(text):
    """FS-URI-09, FS-URI-10: no scheme, or one letter."""
    assert uri_to_path(text) == text


@pytest.mark.parametrize("text, scheme", [
    ("s3://bucket/x", "s3"), ("https://example.org/x", "https"), ("memory:", "memory"), ("gs:x", "gs"),
    ("a+b-c.d:x", "a"),
    ("FILES:///x", "FILES"),
])
def test_other_schemes(text, scheme):
    """FS-URI-11."""
    with pytest.raises(UnsupportedError, match=scheme) as caught:
        uri_to_path(text)
    assert scheme in caught.value.feature


def test_a_chained_url():
    with pytest.raises(UnsupportedError, match=r"FsspecStore\.from_url\('simplecache::s3://b/k'\) opens"):
        uri_to_path("simplecache::s3://b/k")


def test_a_uri_that_is_longer_than_any_path():
    """To decode it takes many times its length."""
    for text in ("file:///" + "%41" * 50_000, "s3:" + "a" * (1 << 17)):
        with pytest.raises(ValueError, match="expected a URI of at most 131072 characters, found 1"):
            uri_to_path(text)
    assert uri_to_path("a" * (1 << 18)) == "a" * (1 << 18)
