"""Targets of references: which of them a reference set may point to, and their bytes.

A reference set is a stranger's document. One that lies in a directory may point to files below that, and to remote
URLs; one that came from a service to remote URLs alone. What else it may point to is the caller's word (`allowed`). So
a set that was copied from somewhere cannot show its reader's own files, nor whoever is served what he reads.
"""
import os
import re
import stat

from zcore.errors import OutOfMemoryError, ReferenceTargetError, UnsupportedError
from zcore.kernel.reopen import open_again
from zcore.stores.base import resolve_range
from zcore.stores.remote_urls import has_controls

MAX_PLACES = 1 << 14  # of targets that were found, which are kept
MAX_PATH = 4096  # bytes, as in Linux; to follow a long one takes time that grows faster than it

_scheme_of = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://|(file):", re.IGNORECASE).match
_SIGNS = {"2e": ".", "2f": "/", "5c": "\\", "3b": ";", "3f": "?", "23": "#"}
_quoted_sign = re.compile(f"%(?:25)*+({'|'.join(_SIGNS)})", re.IGNORECASE).sub
_address = re.compile(r"\[[0-9A-Fa-f:.]*\]")
_parts = re.compile(r"[/\\?#;]").split
# Links anywhere in a path are refused where the system can do it (macOS); else the last part alone.
_NO_LINKS = getattr(os, "O_NOFOLLOW_ANY", os.O_NOFOLLOW)


class Targets:
    """The targets of one reference set.

    Parameters
    ----------
    base : str or None
        The directory that relative URLs start from, and below which files may be read; or the URL of one, of a set that
        came from there; None: there is none.
    allowed : sequence of str, or None
        URLs and directories besides, and what lies below them: ``"/data/"``, ``"s3://bucket/"``, with or without the
        final ``/``. Of remote URLs all are allowed where this is None, and only these where it is not; an empty list
        leaves nothing but data in the set itself.
    services : mapping of str to object, optional
        See `RemoteTargets`.

    Raises
    ------
    ValueError
        `base` or one of `allowed` is empty, or a ``file:`` URI that names no path.

    Notes
    -----
    Relative URLs are relative to the document, which the specification leaves open; fsspec takes the process's
    directory.
    """

    def __init__(self, base, allowed=None, services=None):
        self.is_remote = isinstance(base, str) and _is_remote(base)
        self.base = base if self.is_remote or base is None else _directory(base)
        # Made absolute once: what was allowed is the same in another directory and in another process.
        self.allowed = None if allowed is None else tuple([_allowed(root) for root in allowed])
        roots = [] if self.base is None or self.is_remote or self.allowed == () else [self.base]
        self._roots = (*roots, *[root for root in self.allowed or () if not _is_remote(root)])
        # URL to (path, place): where that has led to, which is allowed. To follow it again costs more than to read.
        self._places = {}
        self._services = services
        self._remote = None
        if services is not None:
            # Checks them.
            self.remote  # noqa: B018

    @property
    def remote(self):
        """The `RemoteTargets`, made when the first is needed."""
        if self._remote is None:
            from zcore.stores.reference_remote import RemoteTargets

            self._remote = RemoteTargets(self._allows_url, self.is_remote, self._services)
        return self._remote

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
        return b"" if length == 0 else self.get_part(key, url, offset, length, None)[0]

    def get_part(self, key, url, offset, length, byte_range):
        """Return of the bytes that `get` gives those of a range, and the status of the file that they come from.

        The status is None of a remote target. Raises : as `get`.
        """
        remote = self.url_of(key, url)
        if remote is not None:
            data = self.remote.get(remote, offset, length, key)
            data = data if length is None else self.check_length(key, url, offset, length, data)
            start, stop = resolve_range(byte_range, len(data))
            return data[start:stop], None
        fd = self.open(url, key)
        try:
            status = os.fstat(fd)
            if length is None:
                length = max(0, status.st_size - offset)
            start, stop = resolve_range(byte_range, length)
            return self._read(fd, key, url, offset + start, stop - start), status
        except OSError as exc:
            if isinstance(exc, ReferenceTargetError):
                raise
            raise self._error(key, url, f"cannot read it: {exc.strerror}", exc.errno) from exc
        finally:
            os.close(fd)

    def get_some(self, key, url, offset, length):
        """Return bytes of a remote target, fewer where it ends before; see `get`."""
        return self.remote.get(self.url_of(key, url), offset, length, key)

    def is_url(self, url):
        """Return whether a target is one that a service keeps, whether it is allowed or not."""
        return url is not None and not _is_chained(url) and (
            _is_remote(url) or self.is_remote and _scheme_of(url) is None and not os.path.isabs(url))

    def getsize(self, key, url):
        """Return the size of a target in bytes."""
        remote = self.url_of(key, url)
        return self.status_of(key, url).st_size if remote is None else self.remote.getsize(remote, key)

    def status_of(self, key, url):
        """Return the status of a local target, which is allowed: an os.stat_result."""
        fd = self.open(url, key)
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def is_local(self, url):
        """Return whether a URL names a file, by its form."""
        return url is not None and not _is_chained(url) and not self.is_url(url)

    def check_length(self, key, url, offset, length, data):
        """Return the bytes of a remote target, of which as many have come as there are; all have to."""
        if len(data) < length:
            raise self._error(key, url, f"expected bytes {offset} to {offset + length}, it ends at "
                                        f"{offset + len(data)}", part=(offset, length))
        return data

    def url_of(self, key, url):
        """Return the absolute URL of a target that a service keeps, which is allowed; None of a local one."""
        if url is None:
            raise self._error(key, url, "the set names no URL; open it with target=")
        if _is_chained(url):
            self._check_remote(key, url)
            raise UnsupportedError(f"key {key!r}: the target {url!r:.200} is a URL in a URL, which nothing here reads",
                                   feature="chained URLs of references")
        if not _is_remote(url):
            if not self.is_remote or _scheme_of(url) is not None or os.path.isabs(url):
                return None
            from zcore.stores.reference_remote import joined

            url = joined(self.base, url)
        self._check_remote(key, url)
        return url

    def path_of(self, key, url):
        """Return the path of a local target, which is allowed; with links resolved."""
        return self._followed(key, url, self._path_of(key, url))

    def _path_of(self, key, url):
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

    def seen_from(self, directory, url):
        """Return the URL by which a document in another directory, or anywhere (None), means the same target."""
        directory = directory and os.path.realpath(directory)
        if (url is None or self.base in (None, directory) or _scheme_of(url) is not None or _is_chained(url)
                or os.path.isabs(url)):
            return url
        if self.is_remote:
            return self.url_of(None, url)
        path = os.path.join(self.base, url)
        if directory is None:
            return path
        return path[len(directory.rstrip("/")) + 1:] if _is_below(path, directory) else path

    def open(self, url, key=None):
        """Open a local target, which is allowed, for reading, and return the descriptor."""
        # What was allowed stays so. What a path leads to does not: `open_again` gives that, and no other file.
        place = self._places.get(url)
        fd = None if place is None else open_again(*place)
        if fd is not None:
            return fd
        named = self._path_of(key, url)
        path = self._followed(key, url, named)
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
        if len(self._places) >= MAX_PLACES:
            self._places.clear()
        self._places[url] = os.fsencode(named), os.fsencode(path)
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

    def _allows_url(self, url):
        """Whether `allowed` names a remote URL; None where it is not given."""
        if self.allowed is None:
            return None
        return any([_is_below(url, root) for root in self.allowed if _is_remote(root)]) and not _may_lead_out(url)

    def _check_remote(self, key, url):
        if self.allowed is None:
            return
        if not any([_is_below(url, root) for root in self.allowed if _is_remote(root)]):
            root = url.rpartition("/")[0] + "/"
            raise self._error(key, url, f"it is not allowed; allowed={[root]!r} would permit it")
        if _may_lead_out(url):
            raise self._error(key, url, "it has a part '..', or control characters, which may lead out of what is "
                                        "allowed")

    def _error(self, key, url, what, errno=None, part=None):
        return ReferenceTargetError(f"the target of {key!r} is {url!r:.300}: {what}", key=key, url=url, errno=errno,
                                    range=part)


def _is_remote(url):
    found = _scheme_of(url)
    return found is not None and (found[1] or found[2]).lower() != "file"


def _is_chained(url):
    """Return whether a text is a URL in a URL, as fsspec writes them; the colons of an IPv6 address are none."""
    return "::" in url and "::" in _address.sub("", url)


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
    if root == "*":
        raise ValueError("allowed=['*']: directories and URLs are named, with all below them; '/' stands for all files")
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


def _may_lead_out(url):
    """Return whether a server may take a URL for one above what it begins with."""
    # Who reads "\t" in it may leave that out, and find ".." then; who decodes it twice finds it in "%252e".
    return has_controls(url) or ".." in _parts(_quoted_sign(lambda found: _SIGNS[found[1].lower()], url))
