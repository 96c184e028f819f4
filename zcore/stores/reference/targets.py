"""Targets of references: their bytes, read where the set may point to them (`zcore.trust`)."""
import os
import stat

from zcore.errors import OutOfMemoryError, ReferenceTargetError
from zcore.kernel.io.reopen import open_again
from zcore.stores.base import resolve_range
from zcore.trust.targets import AllowedTargets

MAX_PLACES = 1 << 14  # of targets that were found, which are kept

# Links anywhere in a path are refused where the system can do it (macOS); else the last part alone.
_NO_LINKS = getattr(os, "O_NOFOLLOW_ANY", os.O_NOFOLLOW)


class Targets(AllowedTargets):
    """The targets of one reference set, and their bytes.

    Parameters
    ----------
    base, allowed
        See `AllowedTargets`.
    services : mapping of str to object, optional
        See `RemoteTargets`.
    """

    def __init__(self, base, allowed=None, services=None):
        super().__init__(base, allowed)
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
            from zcore.stores.reference.remote_targets import RemoteTargets

            self._remote = RemoteTargets(self.allows_url, self.is_remote, self._services)
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

    def check_length(self, key, url, offset, length, data):
        """Return the bytes of a remote target, of which as many have come as there are; all have to."""
        if len(data) < length:
            raise self._error(key, url, f"expected bytes {offset} to {offset + length}, it ends at "
                                        f"{offset + len(data)}", part=(offset, length))
        return data

    def open(self, url, key=None):
        """Open a local target, which is allowed, for reading, and return the descriptor."""
        # What was allowed stays so. What a path leads to does not: `open_again` gives that, and no other file.
        place = self._places.get(url)
        fd = None if place is None else open_again(*place)
        if fd is not None:
            return fd
        named = self._named_path(key, url)
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


def _opened_path(fd, path):
    """Return where the file that was opened lies, as far as the system tells; `path` is where it was looked for.

    Somebody may have put a link in place of a directory of the path after its links were followed.
    """
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return path
