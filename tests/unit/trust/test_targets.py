"""Which targets a document may point to, judged without reading them."""
import os

import pytest

from zcore.errors import ReferenceTargetError, UnsupportedError
from zcore.trust.targets import AllowedTargets


@pytest.fixture
def folder(tmp_path):
    """Return a directory with a document's file, one outside of it, and links to both."""
    (tmp_path / "set" / "sub").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "set" / "in").write_bytes(b"in")
    (tmp_path / "other" / "out").write_bytes(b"out")
    os.symlink("in", tmp_path / "set" / "link_in")
    os.symlink(tmp_path / "other" / "out", tmp_path / "set" / "link_out")
    return tmp_path


def test_files_below_the_base(folder):
    allowed = AllowedTargets(folder / "set")
    inside = os.path.realpath(folder / "set" / "in")
    for url in ("in", "sub/../in", "link_in", inside, f"file://{inside}", "not_there"):
        assert allowed.path_of("x", url) == (inside if url != "not_there" else inside[:-2] + url)
    for url in ("../other/out", "link_out", str(folder / "other" / "out"), "/etc/passwd", ".." + "/" * 5000, "a\0b"):
        with pytest.raises(ReferenceTargetError) as caught:
            allowed.path_of("x", url)
        assert (caught.value.key, caught.value.url) == ("x", url)


def test_what_the_caller_allows(folder):
    allowed = AllowedTargets(folder / "set", [folder / "other", "s3://bucket/a"])
    assert allowed.path_of("x", "link_out") == os.path.realpath(folder / "other" / "out")
    assert allowed.url_of("x", "s3://bucket/a/b") == "s3://bucket/a/b"
    assert [allowed.allows_url(f"s3://bucket/{name}") for name in ("a", "a/b", "ab", "a/../b")] == [
        True, True, False, False]
    for url in ("s3://bucket/ab", "s3://bucket/a/../b", "https://h/a"):
        with pytest.raises(ReferenceTargetError):
            allowed.url_of("x", url)
    assert AllowedTargets(None).allows_url("s3://bucket/a") is None
    with pytest.raises(ReferenceTargetError):
        AllowedTargets(folder / "set", []).path_of("x", "in")


def test_a_document_of_a_service_names_no_files(folder):
    allowed = AllowedTargets("https://h/sets")
    assert allowed.is_remote and allowed.url_of("x", "../a.nc") == "https://h/a.nc"
    for url in ("/etc/passwd", "file:///etc/passwd"):
        assert allowed.url_of("x", url) is None
        with pytest.raises(ReferenceTargetError, match="the set came from elsewhere"):
            allowed.path_of("x", url)
    with pytest.raises(UnsupportedError):
        allowed.url_of("x", "simplecache::s3://b/x")


@pytest.mark.parametrize(("base", "allowed"), [("", None), (None, [""]), (None, ["*"]), ("file:a", None)])
def test_bases_that_are_none(base, allowed):
    with pytest.raises(ValueError):
        AllowedTargets(base, allowed)
