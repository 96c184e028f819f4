"""``file:`` URIs of base directories, written in one canonical form and read in all common forms.

File system store v1.0, "Canonical URI"; RFC 8089 section 2 and appendices D and E; RFC 3986 section 2.
"""
import re

from zcore.errors import UnsupportedError
from zcore.trust.base_path import absolute_base
from zcore.trust.urls import is_chained

MAX_LENGTH = 1 << 17  # of a URI; a path of Linux has at most 4096 bytes


def path_to_uri(base: str) -> str:
    """Return the canonical URI of a base directory from `absolute_base`.

    Everything but ``A-Z a-z 0-9 - . _ ~ /`` is percent-encoded as UTF-8; a name of any bytes has its bytes.

    >>> path_to_uri("/my data")
    'file:///my%20data'
    """
    data = base.encode("utf-8", "surrogateescape")
    return "file://" + re.sub(rb"[^A-Za-z0-9._~/-]", lambda found: b"%%%02X" % found[0][0], data).decode("ascii")


def uri_to_path(text: str) -> str:
    """Return the base directory of a URI, or `text` itself if it has no scheme.

    A text without a scheme is a literal path: ``/data/a%20b`` is a directory named ``a%20b``. One letter before a
    colon is part of a relative path.

    Raises
    ------
    UnsupportedError
        The scheme is not ``file``.
    ValueError
        The URI is too long, or has a query, a fragment, a relative path or a remote host, or its percent-encoding is
        invalid or hides a separator or NUL.

    Notes
    -----
    Also read: ``file:/p``, ``file://localhost/p`` (RFC 8089, section 2 and appendix B).

    Examples
    --------
    >>> uri_to_path("file:/my%20data"), uri_to_path("my%20data")
    ('/my data', 'my%20data')
    """
    scheme, colon, rest = text.partition(":")
    if not colon or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]+", scheme):
        return text
    if len(text) > MAX_LENGTH:
        raise ValueError(f"expected a URI of at most {MAX_LENGTH} characters, found {len(text)}: '{text[:40]}...'")
    if scheme.lower() != "file":
        other = (f"zcore.storage.FsspecStore.from_url({text!r}) opens a chained URL" if is_chained(text)
                 else "for a store in memory use MemoryStore()")
        raise UnsupportedError(
            f"{text!r}: zcore has no store for the scheme {scheme!r}; a directory has 'file' or none; {other} "
            f"(write './{text}' for a directory of that name)",
            feature=f"URI scheme {scheme}")
    if "?" in rest or "#" in rest:
        raise ValueError(f"{text!r} has a query or a fragment; '?' and '#' of a name are written %3F and %23")
    host, path = "", rest
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        path = slash + path
    host, path = _unquote(host, text), _unquote(path, text)
    if host.lower() not in ("", "localhost"):
        raise ValueError(f"{text!r} names a directory of the host {host!r}, expected none or 'localhost'")
    if not path.startswith("/"):
        raise ValueError(f"{text!r} does not hold an absolute path")
    return absolute_base(path, "/")


def _unquote(part, text):
    """Return a percent-encoded part of the URI `text` decoded."""
    bad = re.search(r"%(?![0-9A-Fa-f]{2})", part)
    if bad:
        raise ValueError(f"{text!r} has a '%' that two hexadecimal digits do not follow")
    hidden = re.search(r"%(00|2F)", part, re.IGNORECASE)
    if hidden or "\0" in part:
        raise ValueError(f"{text!r} holds {hidden[0] if hidden else 'NUL'!r}, which cannot be part of a name")
    data = re.sub(rb"%(..)", lambda found: bytes.fromhex(found[1].decode()), part.encode("utf-8", "surrogateescape"))
    return data.decode("utf-8", "surrogateescape")
