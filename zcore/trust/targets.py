"""Targets that a document names: which of them it may point to.

A reference set, or the tree of an ASDF file, is a stranger's document. One that lies in a directory may point to files
below that, and to remote URLs; one that came from a service to remote URLs alone. The caller says what else it may
point to (`allowed`). So a document that was copied from somewhere cannot show the reader's own files, neither to the
reader nor to those whom the reader serves.
"""
import os

from zcore.errors import ReferenceTargetError, UnsupportedError
from zcore.trust.file_uri import uri_to_path
from zcore.trust.urls import is_below, is_chained, joined, may_lead_out, names_service, scheme_of

MAX_PATH = 4096  # bytes, as in Linux; to follow a long one takes time that grows faster than it


class AllowedTargets:
    """The targets that one document may point to.

    Parameters
    ----------
    base : str or None
        The directory that relative URLs start from, and below which files may be read; or the URL of one, of a document
        that came from there; None: there is none.
    allowed : sequence of str, or None
        URLs and directories besides, and what lies below them: ``"/data/"``, ``"s3://bucket/"``, with or without the
        final ``/``. Of remote URLs all are allowed where this is None, and only these where it is not; an empty list
        leaves nothing but data in the document itself.

    Raises
    ------
    ValueError
        `base` or one of `allowed` is empty, or a ``file:`` URI that names no path.

    Notes
    -----
    Relative URLs are relative to the document. The specification of references leaves that open; fsspec takes the
    process's directory.
    """

    def __init__(self, base, allowed=None):
        self.is_remote = isinstance(base, str) and names_service(base)
        self.base = base if self.is_remote or base is None else _directory(base)
        # Made absolute once: what was allowed is the same in another directory and in another process.
        self.allowed = None if allowed is None else tuple([_allowed(root) for root in allowed])
        roots = [] if self.base is None or self.is_remote or self.allowed == () else [self.base]
        self._roots = (*roots, *[root for root in self.allowed or () if not names_service(root)])

    def is_url(self, url):
        """Return whether a target is one that a service keeps, whether it is allowed or not."""
        return url is not None and not is_chained(url) and (
            names_service(url) or self.is_remote and scheme_of(url) is None and not os.path.isabs(url))

    def is_local(self, url):
        """Return whether a URL names a file, by its form."""
        return url is not None and not is_chained(url) and not self.is_url(url)

    def url_of(self, key, url):
        """Return the absolute URL of a target that a service keeps, which is allowed; None of a local one."""
        if url is None:
            raise self._error(key, url, "the set names no URL; open it with target=")
        if is_chained(url):
            self._check_remote(key, url)
            raise UnsupportedError(f"key {key!r}: the target {url!r:.200} is a URL in a URL, which nothing here reads",
                                   feature="chained URLs of references")
        if not names_service(url):
            if not self.is_remote or scheme_of(url) is not None or os.path.isabs(url):
                return None
            url = joined(self.base, url)
        self._check_remote(key, url)
        return url

    def path_of(self, key, url):
        """Return the path of a local target, which is allowed; with links resolved."""
        return self._followed(key, url, self._named_path(key, url))

    def _named_path(self, key, url):
        """Return the path that a URL names, absolute."""
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
                raise self._error(key, url, "it is relative, and the set lies nowhere; open it with base=")
            path = os.path.join(self.base, path)
        return path

    def _followed(self, key, url, path):
        """Return a path with its links resolved, which is allowed."""
        try:
            real = os.path.realpath(path)
        except OSError as exc:
            # What was a link when it was looked at is none any more.
            raise self._error(key, url, f"cannot follow its path: {exc.strerror}", exc.errno) from exc
        if not self._is_allowed(real):
            where = ("a file here, and the set came from elsewhere" if self.is_remote else
                     "outside of the set's own directory")
            raise self._error(key, url, f"it leads to {real}, {where}; "
                                        f"allowed={[os.path.dirname(real) + '/']!r} would permit it")
        return real

    def _is_allowed(self, path):
        return any([is_below(path, root) for root in self._roots])

    def seen_from(self, directory, url):
        """Return the URL by which a document in another directory, or anywhere (None), means the same target."""
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

    def allows_url(self, url):
        """Return whether `allowed` names a remote URL; None where it is not given."""
        return None if self.allowed is None else self._names(url) and not may_lead_out(url)

    def _check_remote(self, key, url):
        if self.allowed is None:
            return
        if not self._names(url):
            root = url.rpartition("/")[0] + "/"
            raise self._error(key, url, f"it is not allowed; allowed={[root]!r} would permit it")
        if may_lead_out(url):
            raise self._error(key, url, "it has a part '..', or control characters, which may lead out of what is "
                                        "allowed")

    def _names(self, url):
        return any([is_below(url, root) for root in self.allowed if names_service(root)])

    def _error(self, key, url, what, errno=None, part=None):
        return ReferenceTargetError(f"the target of {key!r} is {url!r:.300}: {what}", key=key, url=url, errno=errno,
                                    range=part)


def _local(url):
    """Return the path of a ``file:`` URI, percent-decoded (RFC 8089); None for what is none."""
    return uri_to_path(url) if scheme_of(url) == "file" else None


def _directory(path):
    """Return the directory that a path or a ``file:`` URI names, with links resolved."""
    path = os.fspath(path)
    if path == "":
        raise ValueError("expected a directory, found an empty text; '.' is the current directory")
    return os.path.realpath(_local(path) or path)


def _allowed(root):
    """Return what is allowed in the form that targets are compared with."""
    root = os.fspath(root)
    if root == "*":
        raise ValueError("allowed=['*']: directories and URLs are named, with all below them; '/' stands for all files")
    return root if names_service(root) else _directory(root)
