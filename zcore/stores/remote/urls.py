"""URLs of services that keep objects."""
from __future__ import annotations

import re

SCHEMES = frozenset(("s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss", "http", "https"))
# Those whose first part is a bucket, and the rest a name that is taken as it is.
_OF_BUCKETS = frozenset(("s3", "s3a", "gs", "az"))

_scheme_of = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://").match


def is_remote(url: str) -> bool:
    """Return whether a text is the URL of a service that zcore speaks to.

    >>> is_remote("s3://bucket/a.zarr"), is_remote("file:///data"), is_remote("data/x")
    (True, False, False)
    """
    found = _scheme_of(url)
    return found is not None and found[1].lower() in SCHEMES


def split_url(url: str) -> tuple[str, str]:
    """Return the part of a URL that a client is made of, and the name of what it means there.

    >>> split_url("s3://bucket/a/b.zarr/"), split_url("https://host:80/a%20b")
    (('s3://bucket', 'a/b.zarr'), ('https://host:80/a%20b', ''))
    """
    scheme, _, rest = url.partition("://")
    if scheme.lower() not in _OF_BUCKETS:
        return url, ""
    bucket, _, name = rest.partition("/")
    return f"{scheme.lower()}://{bucket}", name.strip("/")
