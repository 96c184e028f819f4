"""Targets of references: reads the bytes of those that `zcore.trust` allows."""
from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from zcore.descriptors import held, open_descriptor, read_at
from zcore.errors import OutOfMemoryError, ReferenceTargetError
from zcore.kernel.io.documents import open_again
from zcore.stores.base import resolve_range
from zcore.trust.targets import AllowedTargets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypeVar

    from zcore.stores.base import ByteRange
    from zcore.typing import StrPath

    _Data = TypeVar("_Data", bytes, memoryview)

MAX_PATHS = 1 << 14  # of targets in memory

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

    def __init__(self, base: StrPath | None, allowed: Sequence[StrPath] | None = None,
                 services: Mapping[str, object] | None = None) -> None:
        super().__init__(base, allowed)
        # URL to (path, resolved path) of an allowed target. Resolving the path again costs more than reading.
        self._paths = {}
        self._services = services
        self._remote = None
        if services is not None:
            # This checks the services.
            self.remote  # noqa: B018

    @property
    def remote(self) -> Any:
        """The `RemoteTargets`, made at the first use."""
        if self._remote is None:
            from zcore.stores.reference.remote_targets import RemoteTargets

            self._remote = RemoteTargets(self.allows_url, self.is_remote, self._services)
        return self._remote

    def get_part(self, key: str, url: str | None, offset: int, length: int | None,
                 byte_range: ByteRange | None) -> tuple[bytes, os.stat_result | None]:
        """Return bytes of a target from `offset` on, all with a `length` of None, or a range of these bytes.

        Also returns the status of the file, None for a remote target.

        Raises
        ------
        ReferenceTargetError
            It is missing, too short, or not allowed.
        UnsupportedError
            There is no client for such URLs.
        OutOfMemoryError
            There is not enough memory.
        """
        remote = self.url_of(key, url)
        if remote is not None:
            if byte_range is not None:
                if length is None:
                    length = max(0, self.remote.getsize(remote, key) - offset)
                start, stop = resolve_range(byte_range, length)
                offset, length = offset + start, stop - start
            data = b"" if length == 0 else self.remote.get(remote, offset, length, key)
            return data if length is None else self.check_length(key, url, offset, length, data), None
        fd = self.open(url, key)
        try:
            status = os.fstat(fd)
            if length is None:
                length = max(0, status.st_size - offset)
            start, stop = resolve_range(byte_range, length)
            offset, length = offset + start, stop - start
            if offset + length > status.st_size:
                # Checked before a size from the set is allocated.
                raise self._error(key, url, f"expected bytes {offset} to {offset + length}, it has {status.st_size}",
                                  part=(offset, length))
            # It may be cut off meanwhile.
            return self.check_length(key, url, offset, length, read_at(fd, length, offset)), status
        except ReferenceTargetError:
            raise
        except OSError as exc:
            raise self._error(key, url, f"cannot read it: {exc.strerror}", exc.errno) from exc
        except MemoryError as exc:
            # A sparse file may be as long as the set says.
            raise OutOfMemoryError(f"the target of {key!r} is {url!r:.300}: its {length} bytes do not fit into "
                                   "memory", nbytes=length) from exc
        finally:
            os.close(fd)

    def get_some(self, key: str, url: str | None, offset: int, length: int | None) -> bytes:
        """Return bytes of a remote target, fewer where it ends before; see `get_part`."""
        return self.remote.get(self.url_of(key, url), offset, length, key)

    def getsize(self, key: str, url: str | None) -> int:
        """Return the size of a target in bytes."""
        remote = self.url_of(key, url)
        return self.status_of(key, url).st_size if remote is None else self.remote.getsize(remote, key)

    def status_of(self, key: str, url: str | None) -> os.stat_result:
        """Return the status of an allowed local target: an os.stat_result."""
        fd = self.open(url, key)
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def check_length(self, key: str, url: str | None, offset: int, length: int | None, data: _Data) -> _Data:
        """Return the bytes of a target if all of them have come."""
        if len(data) < length:
            raise self._error(key, url, f"expected bytes {offset} to {offset + length}, it ends at "
                                        f"{offset + len(data)}", part=(offset, length))
        return data

    def open(self, url: str | None, key: str | None = None) -> int:
        """Open an allowed local target for reading, and return the descriptor."""
        # The resolved path stays allowed. `open_again` opens it only if the path still leads to it.
        paths = self._paths.get(url)
        fd = None if paths is None else held(open_again, *paths)
        if fd is not None:
            return fd
        named = self._named_path(key, url)
        path = self._followed(key, url, named)
        try:
            # Links were resolved and judged above. A link that appears later is refused, and a FIFO does not block.
            fd = open_descriptor(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | _NO_LINKS)
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
        if len(self._paths) >= MAX_PATHS:
            self._paths.clear()
        self._paths[url] = os.fsencode(named), os.fsencode(path)
        return fd


def _opened_path(fd, path):
    """Return the path of the opened file as the system tells it, else `path`.

    Another process may replace a directory of the path by a link after the links were resolved.
    """
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return path
