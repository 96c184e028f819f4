"""One object of a service that is read by ranges, like a file.

All ranges are of one version of the object. Each answer has its size, its tag (ETag) and the time of its last change,
which are compared with those of the first answer. An object that is replaced between two ranges is an error.
"""
from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from zcore.errors import StoreError
from zcore.stores.base import Identity

if TYPE_CHECKING:
    from zcore.stores.base import ByteRange
    from zcore.stores.remote.store import RemoteStore

# Small reads bring so many bytes, since small parts of a format lie together, and so many of these are kept.
_AHEAD_NBYTES = 1 << 12
_MAX_KEPT = 16
_WORD = 2**60 - 1


class RemoteFile:
    """One object of a `RemoteStore`, by ranges. `RemoteStore.file` makes it.

    Parameters
    ----------
    store : RemoteStore
        The URL that the object would have as a directory.
    first : (start, length) or (None, length)
        The range that is read at once. It is kept.

    Attributes
    ----------
    url : str
    size : int
    n_requests : int
        Most requests at a time.

    Raises
    ------
    FileNotFoundError
        There is no such object.
    StoreError
        It cannot be read.
    """

    is_far = True

    def __init__(self, store: RemoteStore, first: ByteRange) -> None:
        self.store: RemoteStore = store
        self.url: str = store.url.rstrip("/")
        self.n_requests: int = store.n_requests
        answer = store.read_object(first)
        if answer is None:
            raise FileNotFoundError(self.url)
        self._version = answer[1:]
        self.size: int = answer.size
        start, _ = first
        self._first = (max(0, self.size - len(answer.data)) if start is None else start), answer.data
        # Replaced as a whole: threads read it.
        self._kept = ()

    def read(self, offset: int, n_bytes: int) -> bytes:
        """Return the bytes from `offset` on, fewer than `n_bytes` only where the object ends.

        Raises
        ------
        StoreError
            They cannot be read, or the object was replaced or removed since it was opened.
        """
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
        answer = self.store.read_object((offset, n_bytes))
        if answer is None or answer[1:] != self._version:
            what = "removed" if answer is None else "replaced by another object"
            raise StoreError(f"{self.url} was {what} while it was read: open it again", key=self.url)
        if len(answer.data) != n_bytes:
            raise StoreError(f"{self.url}: {len(answer.data)} bytes came, {n_bytes} were requested from byte {offset} "
                             "on", key=self.url)
        return answer.data

    def identity(self, key: str, size: int) -> Identity | None:
        """Return an identity for a part of this version, or None if the service does not tell versions apart."""
        if self._version[1:] == (None, None):
            return None
        digest = int.from_bytes(blake2b(repr((self.url, self._version, key)).encode(), digest_size=24).digest())
        return 0, digest & _WORD, size, digest >> 64 & _WORD, digest >> 128 & _WORD


class Ahead:
    """A file from which one range was read in advance: reads inside of it cost no request.

    Parameters
    ----------
    file : RemoteFile
    start, n_bytes : int
        The range that is read now.
    ahead : int
        Other reads bring as many bytes, which replace the range: for a reader that goes along the file.
    """

    is_far = True

    def __init__(self, file: RemoteFile, start: int, n_bytes: int, ahead: int = 0) -> None:
        self._file = file
        self.size: int = file.size
        self._start, self._data = start, file.read(start, n_bytes)
        self._ahead = ahead

    def read(self, offset: int, n_bytes: int) -> bytes:
        """See `RemoteFile.read`."""
        at = offset - self._start
        if 0 <= at and at + n_bytes <= len(self._data):
            return self._data[at:at + n_bytes]
        data = self._file.read(offset, max(n_bytes, self._ahead))
        if self._ahead:
            self._start, self._data = offset, data
        return data[:n_bytes]
