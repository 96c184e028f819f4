"""The targets that an untrusted document may point to.

A reference set, or the tree of an ASDF file, is not trusted. A document in a directory may point to files below that
directory, and to remote URLs; a document from a service only to remote URLs. The caller may allow other targets
(`allowed`). So a document from elsewhere cannot expose the reader's own files.
"""
from __future__ import annotations

import os
from typing import TYPE_CHECKING

from zcore.errors import ReferenceTargetError, UnsupportedError
from zcore.trust.file_uri import uri_to_path
from zcore.trust.urls import is_below, is_chained, joined, may_lead_out, names_service, scheme_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zcore.typing import StrPath

MAX_PATH = 4096  # bytes, as in Linux; the time to resolve a path grows faster than its length


class AllowedTargets:
    """The targets that one document may point to.

    Parameters
    ----------
    base : str or None
        The directory for relative URLs, below which files may be read; or a URL, for a document from a service. None:
        the document has no location.
    allowed : sequence of str, or None
        Other URLs and directories, with everything below them: ``"/data/"``, ``"s3://bucket/"``, with or without the
        final ``/``. With None all remote URLs are allowed, else only those in the list. An empty list allows only data
        in the document itself.

    Raises
    ------
    ValueError
        `base` or one of `allowed` is empty, or a ``file:`` URI that names no path.

    Notes
    -----
    Relative URLs are relative to the document. The specification of references does not define this; in fsspec they are
    relative to the current directory.
    """

    def __init__(self, base: StrPath | None, allowed: Sequence[StrPath] | None = None) -> None:
        self.is_remote: bool = isinstance(base, str) and names_service(base)
        self.base: str | None = base if self.is_remote or base is None else _directory(base)
        # Made absolute here, so it is the same in another current directory and in another process.
        self.allowed: tuple[str, ...] | None = None if allowed is None else tuple([_allowed(root) for root in allowed])
        roots = [] if self.base is None or self.is_remote or self.allowed == () else [self.base]
        self._roots = (*roots, *[root for root in self.allowed or () if not names_service(root)])

    def is_url(self, url: str | None) -> bool:
        """Return whether a target is at a service, allowed or not."""
        return url is not None and not is_chained(url) and (
            names_service(url) or self.is_remote and scheme_of(url) is None and not os.path.isabs(url))

    def is_local(self, url: str | None) -> bool:
        """Return whether a URL has the form of a local file."""
        return url is not None and not is_chained(url) and not self.is_url(url)

    def url_of(self, key: str | None, url: str | None) -> str | None:
        """Return the absolute URL of an allowed target at a service; None for a local target."""
        if url is None:
            raise self._error(key, url, "the set names no URL; open it with target=")
        if is_chained(url):
            self._check_remote(key, url)
            raise UnsupportedError(f"key {key!r}: the target {url!r:.200} is a chained URL, which zcore does not read",
                                   feature="chained URLs of references")
        if not names_service(url):
            if not self.is_remote or scheme_of(url) is not None or os.path.isabs(url):
                return None
            url = joined(self.base, url)
        self._check_remote(key, url)
        return url

    def path_of(self, key: str, url: str | None) -> str:
        """Return the path of an allowed local target, with links resolved."""
        return self._followed(key, url, self._named_path(key, url))

    def _named_path(self, key, url):
        """Return the absolute path of a URL."""
        if self.url_of(key, url) is not None:
            raise self._error(key, url, "it is no file")
        try:
            path = _local(url) or url
            n_bytes = len(os.fsencode(path))
        except ValueError as exc:
            raise self._error(key, url, f"it names no path: {exc!s:.300}") from exc
        if "\0" in path:
            raise self._error(key, url, "its path holds a NUL character")
        if n_bytes > MAX_PATH:
            raise self._error(key, url, f"its path has {n_bytes} bytes, at most {MAX_PATH} are followed")
        if not os.path.isabs(path):
            if self.base is None:
                raise self._error(key, url, "it is relative, and the set has no location; open it with base=")
            path = os.path.join(self.base, path)
        return path

    def _followed(self, key, url, path):
        """Return an allowed path with its links resolved."""
        try:
            real = os.path.realpath(path)
        except OSError as exc:
            # Another process has removed a link meanwhile.
            raise self._error(key, url, f"cannot follow its path: {exc.strerror}", exc.errno) from exc
        if not self._is_allowed(real):
            where = ("a file here, and the set came from elsewhere" if self.is_remote else
                     "outside of the set's own directory")
            raise self._error(key, url, f"it leads to {real}, {where}; "
                                        f"allowed={[os.path.dirname(real) + '/']!r} would permit it")
        return real

    def _is_allowed(self, path):
        return any([is_below(path, root) for root in self._roots])

    def seen_from(self, directory: str | None, url: str | None) -> str | None:
        """Return the URL of the same target for a document in another directory, or anywhere (None)."""
        directory = directory and os.path.realpath(directory)
        if (url is None or self.base in (None, directory) or scheme_of(url) is not None or is_chained(url)
                or os.path.isabs(url)):
            return url
        if self.is_remote:
            return self.url_of(None, url)
        path = os.path.join(self.base, url)
        if directory is None:
            return path
        return path[len(directory.rstrip("/")) + 1:] if is_below(path, directory) else path

    def allows_url(self, url: str) -> bool | None:
        """Return whether `allowed` names a remote URL; None without `allowed`."""
        return None if self.allowed is None else self._names(url) and not may_lead_out(url)

    def _check_remote(self, key, url):
        if self.allowed is None:
            return
        if not self._names(url):
            root = url.rpartition("/")[0] + "/"
            raise self._error(key, url, f"it is not allowed; allowed={[root]!r} would permit it")
        if may_lead_out(url):
            raise self._error(key, url, "it has a part '..', or control characters, which may lead out of the "
                                        "allowed URLs")

    def _names(self, url):
        return any([is_below(url, root) for root in self.allowed if names_service(root)])

    def _error(self, key, url, what, errno=None, part=None):
        return ReferenceTargetError(f"the target of {key!r} is {url!r:.300}: {what}", key=key, url=url, errno=errno,
                                    range=part)


def _local(url):
    """Return the path of a ``file:`` URI, percent-decoded (RFC 8089); None for any other text."""
    return uri_to_path(url) if scheme_of(url) == "file" else None


def _directory(path):
    """Return the directory of a path or a ``file:`` URI, with links resolved."""
    path = os.fspath(path)
    if path == "":
        raise ValueError("expected a directory, found an empty text; '.' is the current directory")
    return os.path.realpath(_local(path) or path)


def _allowed(root):
    """Return an allowed directory or URL in the form for comparisons."""
    root = os.fspath(root)
    if root == "*":
        raise ValueError("allowed=['*']: name directories and URLs, with all below them; '/' stands for all files")
    return root if names_service(root) else _directory(root)
