"""``file:`` URIs of base directories, written in one canonical form and read in all common forms.

Pure functions with the flavour as an argument, like the translations of keys.
File system store v1.0, "Canonical URI"; RFC 8089 section 2 and appendices D and E; RFC 3986 section 2.
"""
import re

from zcore.errors import UnsupportedError
from zcore.trust.base_path import NATIVE, POSIX, absolute_base
from zcore.trust.urls import is_chained

MAX_LENGTH = 1 << 17  # of a URI; a path of Windows has at most 2**15 characters, one of Linux 4096 bytes
# How to encode a path that is not text: a POSIX name of any bytes, a Windows name with half a surrogate pair.
_BYTES_RULE = {POSIX: "surrogateescape", "windows": "surrogatepass"}


def path_to_uri(base: str, flavour: str = NATIVE) -> str:
    """Return the canonical URI of a base directory from `absolute_base`.

    Everything but ``A-Z a-z 0-9 - . _ ~ /`` and the colon of a drive is percent-encoded as UTF-8.

    >>> path_to_uri("/my data", "posix"), path_to_uri("c:\\\\my data", "windows")
    ('file:///my%20data', 'file:///c:/my%20data')
    """
    if flavour == POSIX:
        return "file://" + _quote(base, flavour)
    path = base.replace("\\", "/")
    if not path.startswith("//"):
        return f"file:///{path[:2]}{_quote(path[2:], flavour)}"
    # With an authority, a share of the server "localhost" would be a local path.
    local = path[2:].split("/", 1)[0].lower() == "localhost"
    return ("file://" if local else "file:") + _quote(path, flavour)


def uri_to_path(text: str, flavour: str = NATIVE) -> str:
    """Return the base directory of a URI, or `text` itself if it has no scheme.

    A text without a scheme is a literal path: ``/data/a%20b`` is a directory named ``a%20b``. A scheme of one letter is
    a drive on Windows and part of a relative path elsewhere.

    Raises
    ------
    UnsupportedError
        The scheme is not ``file``.
    ValueError
        The URI is too long, or has a query, a fragment, a relative path or a remote host, or its percent-encoding is
        invalid or hides a separator or NUL.

    Notes
    -----
    Also read: ``file:/p``, ``file://localhost/p`` (RFC 8089, section 2 and appendix B); on
    Windows ``file:c:/p``, ``file:///c|/p``, ``file://server/share/p``, ``file:////server/share/p`` (appendix E).

    Examples
    --------
    >>> uri_to_path("file:/my%20data", "posix"), uri_to_path("my%20data", "posix")
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
    host, path = _unquote(host, text, flavour), _unquote(path, text, flavour)
    if host.lower() == "localhost":
        host = ""
    if flavour == POSIX:
        if host:
            raise ValueError(f"{text!r} names a directory of the host {host!r}, expected none or 'localhost'")
        if not path.startswith("/"):
            raise ValueError(f"{text!r} does not hold an absolute path")
        return absolute_base(path, "/", flavour)
    return _windows_path(host, path, text, flavour)


def _windows_path(host, path, text, flavour):
    drive = re.fullmatch(r"/?([A-Za-z])[:|](/.*)?", path, re.DOTALL)
    if host and not re.search(r"[:@\\]", host):
        native = f"//{host}{path}"
    elif not host and drive:
        native = f"{drive[1]}:{drive[2] or '/'}"
    elif not host and path.startswith("//"):
        native = "//" + path.lstrip("/")
    else:
        raise ValueError(f"{text!r} does not hold an absolute path with a drive or a server and share")
    native = native.replace("/", "\\")
    return absolute_base(native, native, flavour)


def _quote(path, flavour):
    data = path.encode("utf-8", _BYTES_RULE[flavour])
    return re.sub(rb"[^A-Za-z0-9._~/-]", lambda found: b"%%%02X" % found[0][0], data).decode("ascii")


def _unquote(part, text, flavour):
    """Return a percent-encoded part of the URI `text` decoded."""
    bad = re.search(r"%(?![0-9A-Fa-f]{2})", part)
    if bad:
        raise ValueError(f"{text!r} has a '%' that two hexadecimal digits do not follow")
    hidden = re.search(r"%(00|2F)" if flavour == POSIX else r"%(00|2F|5C)", part, re.IGNORECASE)
    if hidden or "\0" in part:
        raise ValueError(f"{text!r} holds {hidden[0] if hidden else 'NUL'!r}, which cannot be part of a name")
    rule = _BYTES_RULE[flavour]
    data = re.sub(rb"%(..)", lambda found: bytes.fromhex(found[1].decode()), part.encode("utf-8", rule))
    try:
        return data.decode("utf-8", rule)
    except UnicodeDecodeError as exc:
        raise ValueError(f"{text!r} is not UTF-8 behind its percent-encoding") from exc
