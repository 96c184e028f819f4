"""Targets of references: which of them a reference set may point to, and their bytes.

A reference set is a stranger's document. One that lies in a directory may point to files below that, and to remote
URLs; what else it may point to is the caller's word (`allowed`). So a set that was copied from somewhere cannot show
its reader's own files, nor whoever is served what he reads.
"""
import os
import re
import stat

from zcore.errors import OutOfMemoryError, ReferenceTargetError, UnsupportedError

MAX_PATH = 4096  # bytes, as in Linux; to follow a long one takes time that grows faster than it

_scheme_of = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://|(file):", re.IGNORECASE).match
_parts = re.compile(r"[/\\]").split
# Links anywhere in a path are refused where the system can do it (macOS); else the last part alone.
_NO_LINKS = getattr(os, "O_NOFOLLOW_ANY", os.O_NOFOLLOW)


class Targets:
    """The targets of one reference set.

    Parameters
    ----------
    base : str or None
        The directory that relative URLs start from, and below which files may be read; None: there is none.
    allowed : sequence of str, or None
        URLs and directories besides, and what lies below them: ``"/data/"``, ``"s3://bucket/"``, with or without the
        final ``/``. Of remote URLs all are allowed where this is None, and only these where it is not; an empty list
        leaves nothing but data in the set itself.

    Raises
    ------
    ValueError
        `base` or one of `allowed` is empty, or a ``file:`` URI that names no path.

    Notes
    -----
    Relative URLs are relative to the document, which the specification leaves open; fsspec takes the process's
    directory.
    """

    def __init__(self, base, allowed=None):
        self.base = None if base is None else _directory(base)
        # Made absolute once: what was allowed is the same in another directory and in another process.
        self.allowed = None if allowed is None else tuple([_allowed(root) for root in allowed])
        roots = [] if self.base is None or self.allowed == () else [self.base]
        self._roots = (*roots, *[root for root in self.allowed or () if not _is_remote(root)])

    def get(self, key, url, offset, length):
        """Return bytes of a target; with a `length` of None all from `offset` on.

        Raises
        ------
        ReferenceTargetError
            It is missing, too short, or not allowed.
        UnsupportedError
            Nothing here reads such URLs.
        OutOfMemoryError
            There is not enough memory for them.
        """
        if length == 0:
            return b""
        fd = self.open(url, key)
        try:
            if length is None:
                length = max(0, os.fstat(fd).st_size - offset)
            return self._read(fd, key, url, offset, length)
        except OSError as exc:
            if isinstance(exc, ReferenceTargetError):
                raise
            raise self._error(key, url, f"cannot read it: {exc.strerror}", exc.errno) from exc
        finally:
            os.close(fd)

    def getsize(self, key, url):
        """Return the size of a target in bytes."""
        fd = self.open(url, key)
        try:
            return os.fstat(fd).st_size
        finally:
            os.close(fd)

    def path_of(self, key, url):
        """Return the path of a local target, which is allowed; with links resolved."""
        if url is None:
            raise self._error(key, url, "the set names no URL; open it with target=")
        if _is_remote(url) or "::" in url:
            self._check_remote(key, url)
            raise UnsupportedError(f"key {key!r}: the target {url!r:.200} is remote, and only local files are read",
                                   feature="remote targets of references")
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
        real = os.path.realpath(path)
        if not self._is_allowed(real):
            raise self._error(key, url, f"it leads to {real}, outside of the set's own directory; "
                                        f"allowed={[os.path.dirname(real) + '/']!r} would permit it")
        return real

    def seen_from(self, directory, url):
        """Return the URL by which a document in another directory, or anywhere (None), means the same target."""
        directory = directory and os.path.realpath(directory)
        if (url is None or self.base in (None, directory) or _scheme_of(url) is not None or "::" in url
                or os.path.isabs(url)):
            return url
        path = os.path.join(self.base, url)
        if directory is None:
            return path
        return path[len(directory.rstrip("/")) + 1:] if _is_below(path, directory) else path

    def open(self, url, key=None):
        """Open a local target, which is allowed, for reading, and return the descriptor."""
        path = self.path_of(key, url)
        try:
            # Links were followed and judged above. One that has come since is refused, and a FIFO does not wait.
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | _NO_LINKS)
        except OSError as exc:
            raise self._error(key, url, f"cannot open it: {exc.strerror}", exc.errno) from exc
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise self._error(key, url, "it is no file")
            real = _opened_path(fd, path)
            if not self._is_allowed(real):
                raise self._error(key, url, f"while it was opened its path came to lead to {real}")
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _is_allowed(self, path):
        return any([_is_below(path, root) for root in self._roots])

    def _read(self, fd, key, url, offset, length):
        size = os.fstat(fd).st_size
        if offset + length > size:
            # Before anything is allocated on the set's word.
            raise self._error(key, url, f"expected bytes {offset} to {offset + length}, it has {size}",
                              part=(offset, length))
        parts = []
        while length:
            try:
                part = os.pread(fd, length, offset)
            except MemoryError as exc:
                # A file may be as long as the set says, and hold next to nothing.
                raise OutOfMemoryError(f"the target of {key!r} is {url!r:.300}: its {length} bytes do not fit into "
                                       "memory", nbytes=length) from exc
            if not part:
                raise self._error(key, url, f"it ends at byte {offset}, {length} more were expected",
                                  part=(offset, length))
            parts.append(part)
            offset += len(part)
            length -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _check_remote(self, key, url):
        if self.allowed is None:
            return
        if not any([_is_below(url, root) for root in self.allowed if _is_remote(root)]):
            root = url.rpartition("/")[0] + "/"
            raise self._error(key, url, f"it is not allowed; allowed={[root]!r} would permit it")
        if ".." in _parts(_unquoted(url)):
            raise self._error(key, url, "it has a part '..', which may lead out of what is allowed")

    def _error(self, key, url, what, errno=None, part=None):
        return ReferenceTargetError(f"the target of {key!r} is {url!r:.300}: {what}", key=key, url=url, errno=errno,
                                    range=part)


def _is_remote(url):
    found = _scheme_of(url)
    return found is not None and (found[1] or found[2]).lower() != "file"


def _local(url):
    """Return the path of a ``file:`` URI, percent-decoded (RFC 8089); None for what is none."""
    found = _scheme_of(url)
    if found is None or (found[1] or found[2]).lower() != "file":
        return None
    from zcore.stores.file_uri import uri_to_path

    return uri_to_path(url)


def _directory(path):
    """Return the directory that a path or a ``file:`` URI names, with links resolved."""
    path = os.fspath(path)
    if path == "":
        raise ValueError("expected a directory, found an empty text; '.' is the current directory")
    return os.path.realpath(_local(path) or path)


def _allowed(root):
    """Return what is allowed in the form that targets are compared with."""
    root = os.fspath(root)
    return root if _is_remote(root) else _directory(root)


def _is_below(path, root):
    """Return whether a path or URL is another one or lies below it: "/database" is not below "/data"."""
    return path == root or path.startswith(root.rstrip("/") + "/")


def _opened_path(fd, path):
    """Return where the file that was opened lies, as far as the system tells; `path` is where it was looked for.

    Somebody may have put a link in place of a directory of the path after its links were followed.
    """
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return path


def _unquoted(text):
    """Return a part of a URL with the percent-encoding of what paths are made of undone."""
    for quoted, sign in (("%2e", "."), ("%2f", "/"), ("%5c", "\\")):
        text = re.sub(quoted, lambda _, sign=sign: sign, text, flags=re.IGNORECASE)
    return text
