"""URLs as a document names its targets by them: text, looked at before any client is asked."""
from __future__ import annotations

import posixpath
import re

_SIGNS = {"2e": ".", "2f": "/", "5c": "\\", "3b": ";", "3f": "?", "23": "#"}
_quoted_sign = re.compile(f"%(?:25)*+({'|'.join(_SIGNS)})", re.IGNORECASE).sub
_address = re.compile(r"\[[0-9A-Fa-f:.]*\]")
_controls = re.compile(r"[\x00-\x1f\x7f-\x9f]").search
_parts = re.compile(r"[/\\?#;]").split
_scheme = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://|(file):", re.IGNORECASE).match


def scheme_of(url: str) -> str | None:
    """Return the scheme of a URL in lower case; None for a path.

    >>> scheme_of("S3://bucket/a"), scheme_of("file:/data"), scheme_of("data/a:b")
    ('s3', 'file', None)
    """
    found = _scheme(url)
    return None if found is None else (found[1] or found[2]).lower()


def names_service(url: str) -> bool:
    """Return whether a text has the scheme of a service, one that zcore speaks to or any other."""
    return scheme_of(url) not in (None, "file")


def is_chained(url: str) -> bool:
    """Return whether a text is a URL in a URL, as fsspec writes them; the colons of an IPv6 address are none."""
    return "::" in url and "::" in _address.sub("", url)


def has_controls(url: str) -> bool:
    """Return whether there are control characters in a URL, with which each reader of URLs does something else."""
    return _controls(url) is not None


def may_lead_out(url: str) -> bool:
    """Return whether a server may take a URL for one above what it begins with."""
    # A reader of "\t" may leave that out, and find ".." then; one that decodes twice finds it in "%252e".
    return has_controls(url) or ".." in _parts(_quoted_sign(lambda found: _SIGNS[found[1].lower()], url))


def is_below(path: str, root: str) -> bool:
    """Return whether a path or URL is another one or lies below it: "/database" is not below "/data"."""
    return path == root or path.startswith(root.rstrip("/") + "/")


def joined(base: str, url: str) -> str:
    """Return the URL that a relative one means below a base, with ``.`` and ``..`` resolved.

    >>> joined("https://host/a/b/", "../x.nc"), joined("s3://bucket/a", "x/y")
    ('https://host/a/x.nc', 's3://bucket/a/x/y')
    """
    scheme, _, rest = base.partition("://")
    host, _, above = rest.partition("/")
    return f"{scheme}://{host}{posixpath.normpath(posixpath.join('/', above, url))}"
