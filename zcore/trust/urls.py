"""URLs of targets in documents, and of services: rules for the text, without a request."""
from __future__ import annotations

import posixpath
import re

_SIGNS = {"2e": ".", "2f": "/", "5c": "\\", "3b": ";", "3f": "?", "23": "#"}
_quoted_sign = re.compile(f"%(?:25)*+({'|'.join(_SIGNS)})", re.IGNORECASE).sub
_address = re.compile(r"\[[0-9A-Fa-f:.]*\]")
_controls = re.compile(r"[\x00-\x1f\x7f-\x9f]").search
_parts = re.compile(r"[/\\?#;]").split
_scheme = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://|(file):", re.IGNORECASE).match


# Services that zcore speaks to.
SCHEMES = frozenset(("s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss", "http", "https"))
# Those whose first part is a bucket; the rest is a name, and is not decoded.
_OF_BUCKETS = frozenset(("s3", "s3a", "gs", "az"))


def scheme_of(url: str) -> str | None:
    """Return the scheme of a URL in lower case; None for a path.

    >>> scheme_of("S3://bucket/a"), scheme_of("file:/data"), scheme_of("data/a:b")
    ('s3', 'file', None)
    """
    found = _scheme(url)
    return None if found is None else (found[1] or found[2]).lower()


def names_service(url: str) -> bool:
    """Return whether a text has the scheme of any service, also of one that zcore does not speak to."""
    return scheme_of(url) not in (None, "file")


def is_remote(url: str) -> bool:
    """Return whether a text is the URL of a service that zcore speaks to.

    >>> is_remote("s3://bucket/a.zarr"), is_remote("file:///data"), is_remote("data/x")
    (True, False, False)
    """
    return scheme_of(url) in SCHEMES


def split_url(url: str) -> tuple[str, str]:
    """Return the part of a URL that a client is made for, and the rest, a name there.

    >>> split_url("s3://bucket/a/b.zarr/"), split_url("https://host:80/a%20b")
    (('s3://bucket', 'a/b.zarr'), ('https://host:80/a%20b', ''))
    """
    scheme, _, rest = url.partition("://")
    if scheme.lower() not in _OF_BUCKETS:
        return url, ""
    bucket, _, name = rest.partition("/")
    return f"{scheme.lower()}://{bucket}", name.strip("/")


def is_chained(url: str) -> bool:
    """Return whether a text is a chained URL of fsspec (``a::b``). The colons of an IPv6 address do not count."""
    return "::" in url and "::" in _address.sub("", url)


def has_controls(url: str) -> bool:
    """Return whether a URL has control characters, which parsers of URLs treat differently."""
    return _controls(url) is not None


def may_lead_out(url: str) -> bool:
    """Return whether a server may resolve a URL to one that does not begin in the same way."""
    # A parser may drop "\t" and then find ".."; a parser that decodes twice finds it in "%252e".
    return has_controls(url) or ".." in _parts(_quoted_sign(lambda found: _SIGNS[found[1].lower()], url))


def is_below(path: str, root: str) -> bool:
    """Return whether a path or URL is `root` or lies below it: "/database" is not below "/data"."""
    return path == root or path.startswith(root.rstrip("/") + "/")


def joined(base: str, url: str) -> str:
    """Return the absolute URL of a relative one, with ``.`` and ``..`` resolved.

    >>> joined("https://host/a/b/", "../x.nc"), joined("s3://bucket/a", "x/y")
    ('https://host/a/x.nc', 's3://bucket/a/x/y')
    """
    scheme, _, rest = base.partition("://")
    host, _, above = rest.partition("/")
    return f"{scheme}://{host}{posixpath.normpath(posixpath.join('/', above, url))}"
