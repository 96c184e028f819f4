"""``file:`` URIs: file system store v1.0, "Canonical URI"; RFC 8089; RFC 3986."""
import pytest

from tests.each import each
from zcore.errors import UnsupportedError
from zcore.trust.base_path import POSIX, WINDOWS
from zcore.trust.file_uri import path_to_uri, uri_to_path


@each("flavour, base, uri", [
    # FS-URI-01: the examples of the text
    (POSIX, "/my data", "file:///my%20data"),
    (WINDOWS, "c:\\my data", "file:///c:/my%20data"),
    # FS-URI-02
    (WINDOWS, "C:\\Data\\é#?%", "file:///C:/Data/%C3%A9%23%3F%25"),
    (POSIX, "/Az09-._~", "file:///Az09-._~"),
    (POSIX, "/[]?#%", "file:///%5B%5D%3F%23%25"),
    (POSIX, "/!$&'()*+,;=:@", "file:///%21%24%26%27%28%29%2A%2B%2C%3B%3D%3A%40"),
    (POSIX, "/a\\b", "file:///a%5Cb"),
    (POSIX, "/\n\x7f😀", "file:///%0A%7F%F0%9F%98%80"),
    (POSIX, "/c:/x", "file:///c%3A/x"),
    (POSIX, "/x\udce9", "file:///x%E9"),
    # FS-URI-04
    (POSIX, "/", "file:///"),
    (WINDOWS, "C:\\", "file:///C:/"),
    # FS-URI-06
    (WINDOWS, "\\\\server\\share\\p", "file://server/share/p"),
    (WINDOWS, "\\\\server\\share\\", "file://server/share/"),
    (WINDOWS, "\\\\localhost\\share\\p", "file:////localhost/share/p"),
])
def test_canonical_form(flavour, base, uri):
    """FS-URI-01 to FS-URI-04, FS-URI-06, FS-URI-12."""
    assert path_to_uri(base, flavour) == uri
    assert uri_to_path(uri, flavour) == base


@each("uri", [
    "file:/my%20data", "file://localhost/my%20data", "FILE:///my%20data", "File://LocalHost/my%20data",
    "file:///my data",
    "file:///%6dy%20data", "file:///%6Dy%20d%61ta", "file:///my%20data/", "file:////my%20data", "file:///x/../my%20data",
    "file:///x/%2e%2E/my%20data", "file:///./my%20data",
])
def test_other_forms(uri):
    """FS-URI-05, FS-URI-02: the same base, its case of hexadecimal digits or its trailing separator aside."""
    assert uri_to_path(uri, POSIX) == "/my data"


@each("uri, base", [
    ("file:c:/p", "c:\\p"), ("file:/c:/p", "c:\\p"), ("file:///c|/p", "c:\\p"), ("file:c|/p", "c:\\p"),
    ("file:///C:", "C:\\"),
    ("file:///c%3A/p", "c:\\p"), ("file://localhost/c:/p", "c:\\p"), ("file:///c:/p/", "c:\\p"),
    ("file://server/share/p", "\\\\server\\share\\p"), ("file:////server/share/p", "\\\\server\\share\\p"),
    ("file://///server/share/p", "\\\\server\\share\\p"), ("file://server/share", "\\\\server\\share\\"),
])
def test_windows_forms(uri, base):
    """FS-URI-06, FS-URI-03."""
    assert uri_to_path(uri, WINDOWS) == base


@each("flavour, uri", [
    (POSIX, "file://server/share/p"), (POSIX, "file://127.0.0.1/p"), (POSIX, "file://user@localhost/p"),
    (WINDOWS, "file://c:/p"), (WINDOWS, "file://user@server/share"), (WINDOWS, "file://server"),
    (WINDOWS, "file:////server"),
])
def test_foreign_hosts(flavour, uri):
    """FS-URI-07."""
    with pytest.raises(ValueError):
        uri_to_path(uri, flavour)


@each("flavour", [POSIX, WINDOWS])
@each("rest", [
    "/p?q", "/p?", "/p#f", "/p#", "/%zz", "/%", "/%2", "/a%2", "/%G0", "/%00", "/a%00b", "/a%2Fb", "/a%2fb", "/a\0b",
])
def test_broken_uris(flavour, rest):
    """FS-URI-08."""
    with pytest.raises(ValueError, match="file:"):
        uri_to_path(f"file:///c:{rest}", flavour)


@each("flavour, uri", [
    (POSIX, "file:"), (POSIX, "file://"), (POSIX, "file:p"), (POSIX, "file:./p"), (POSIX, "file://localhost"),
    (WINDOWS, "file:"), (WINDOWS, "file:///p"), (WINDOWS, "file:c:p"), (WINDOWS, "file:p"), (WINDOWS, "file:///c:/a%5Cb"),
    (WINDOWS, "file:///c:/%E9"), (WINDOWS, "file:////./pipe/x"),
])
def test_uris_without_an_absolute_path(flavour, uri):
    with pytest.raises(ValueError):
        uri_to_path(uri, flavour)


@each("text", [
    "/data/a%20b", "a%20b", "./x:y", "", "a?b#c", "1:2", "-x:y", "über:x", "C:\\x", "c:/x", "c:x", "//server/share",
    ":x",
])
@each("flavour", [POSIX, WINDOWS])
def test_a_path_is_taken_literally(text, flavour):
    """FS-URI-09, FS-URI-10: no scheme, or a drive."""
    assert uri_to_path(text, flavour) == text


@pytest.mark.parametrize("text, scheme", [
    ("s3://bucket/x", "s3"), ("https://example.org/x", "https"), ("memory:", "memory"), ("gs:x", "gs"),
    ("a+b-c.d:x", "a"),
    ("FILES:///x", "FILES"),
])
@pytest.mark.parametrize("flavour", [POSIX, WINDOWS])
def test_other_schemes(text, scheme, flavour):
    """FS-URI-11."""
    with pytest.raises(UnsupportedError, match=scheme) as caught:
        uri_to_path(text, flavour)
    assert scheme in caught.value.feature


def test_a_chained_url():
    with pytest.raises(UnsupportedError, match=r"FsspecStore\.from_url\('simplecache::s3://b/k'\) opens"):
        uri_to_path("simplecache::s3://b/k", POSIX)


@pytest.mark.parametrize("flavour", [POSIX, WINDOWS])
def test_a_uri_that_is_longer_than_any_path(flavour):
    """To decode it takes many times its length."""
    for text in ("file:///" + "%41" * 50_000, "s3:" + "a" * (1 << 17)):
        with pytest.raises(ValueError, match="expected a URI of at most 131072 characters, found 1"):
            uri_to_path(text, flavour)
    assert uri_to_path("a" * (1 << 18), flavour) == "a" * (1 << 18)
