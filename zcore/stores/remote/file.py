"""One object of a service that is read by ranges, like a file.

All ranges are of one version of the object. Each answer has its size, its tag (ETag) and the time of its last change,
which are compared with those of the first answer. An object that is replaced between two ranges is an error.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from zcore.errors import StoreError
from zcore.ranges import FAR_NBYTES, ByteSource
from zcore.stores.remote.client import hashed

if TYPE_CHECKING:
    from zcore.stores.base import ByteRange, Identity
    from zcore.stores.remote.store import RemoteStore

# Small reads bring so many bytes, since small parts of a format lie together, and so many of these are kept.
_AHEAD_NBYTES = 1 << 12
_MAX_KEPT = 16


class RemoteFile(ByteSource):
    """One object of a `RemoteStore`, by ranges. `RemoteStore.file` makes it.

    Parameters
    ----------
    store : RemoteStore
        The URL that the object would have as a directory.
    first : (start, length) or (None, length)
        The range that is read at once. It is kept.

    Raises
    ------
    FileNotFoundError
        There is no such object.
    StoreError
        It cannot be read.
    """

    is_far: bool = True
    piece_nbytes: int = FAR_NBYTES

    def __init__(self, store: RemoteStore, first: ByteRange) -> None:
        self._store = store
        self.path: str = store.url.rstrip("/")
        answer = store.read_object(first)
        if answer is None:
            raise FileNotFoundError(self.path)
        self._version = answer[1:]
        self.size: int = answer.size
        start, _ = first
        self._first = (max(0, self.size - len(answer.data)) if start is None else start), answer.data
        # Replaced as a whole: threads read it.
        self._kept = ()

    def read_at(self, offset: int, n_bytes: int) -> bytes:
        """See `ByteSource.read_at`. An object that was replaced or removed since it was opened is a StoreError, too."""
        stop = min(offset + n_bytes, self.size)
        if offset >= stop:
            return b""
        for start, data in (self._first, *self._kept):
            if start <= offset and stop <= start + len(data):
                return data[offset - start:stop - start]
        ahead = min(max(n_bytes, _AHEAD_NBYTES), self.size - offset)
        data = self._read(offset, ahead)
        if ahead > n_bytes:
            self._kept = (*self._kept, (offset, data))[-_MAX_KEPT:]
        return data[:stop - offset]

    def _read(self, offset, n_bytes):
        answer = self._store.read_object((offset, n_bytes))
        if answer is None or answer[1:] != self._version:
            what = "removed" if answer is None else "replaced by another object"
            raise StoreError(f"{self.path} was {what} while it was read: open it again", key=self.path)
        if len(answer.data) != n_bytes:
            raise StoreError(f"{self.path}: {len(answer.data)} bytes came, {n_bytes} were requested from byte {offset} "
                             "on", key=self.path)
        return answer.data

    def identity(self, part: object, size: int) -> Identity | None:
        return None if self._version[1:] == (None, None) else hashed((self.path, self._version, part), size)
