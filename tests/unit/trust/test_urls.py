"""URLs of targets, as text."""
import pytest

from tests.each import each
from zcore.trust.urls import is_below, is_chained, joined, may_lead_out, scheme_of


@pytest.mark.parametrize(("base", "url", "whole"), [
    ("https://h/", "x", "https://h/x"), ("https://h/a/", "../../../x", "https://h/x"), ("s3://b", "x", "s3://b/x"),
    ("s3://b/a/", "./y/../x", "s3://b/a/x")])
def test_relative_urls(base, url, whole):
    assert joined(base, url) == whole


@each(("url", "scheme"), [
    ("s3://b/a", "s3"), ("HTTPS://h", "https"), ("file:///a", "file"), ("FILE:a", "file"), ("a/b", None),
    ("a:b", None), ("C:\\a", None), ("1s://b", None),
])
def test_schemes(url, scheme):
    assert scheme_of(url) == scheme


@each(("url", "does"), [
    ("s3://b/a/x", False), ("s3://b/a/../x", True), ("s3://b/a/%2e%2e/x", True), ("s3://b/a/%252e%252E%2fx", True),
    ("s3://b/a/.\t./x", True), ("s3://b/a..b/x", False), ("s3://b/a\\..\\x", True), ("https://h/a/..;x", True),
])
def test_urls_that_may_lead_out(url, does):
    """RF-URL-08"""
    assert may_lead_out(url) is does


def test_below_and_chained():
    assert is_below("/data/x", "/data") and is_below("/data", "/data/"[:-1]) and not is_below("/database", "/data")
    assert is_chained("simplecache::s3://b/x") and not is_chained("http://[fe80::1]/x")
