"""A zip archive at a service: its directory is read once, and then only the members that are wanted.

The header before the bytes of a member is compared with the directory when the member is first read, in the same
request as its bytes. Everything else is checked as in a local archive (`zcore.stores.zip.members`).
"""
from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from zcore.errors import StoreError
from zcore.kernel.refs.table import ReferenceTable
from zcore.stores.base import BlockStore, ByteRange, Identity, Listing, resolve_range
from zcore.stores.keys import check_key, check_prefix, prefix_of
from zcore.stores.remote.file import Ahead, RemoteFile
from zcore.stores.zip.members import END, HEADER, MAX_COMMENT, entries_of, member_of, read_member, verify_member

if TYPE_CHECKING:
    from typing import Any

    from zcore.stores.base import Blocks
    from zcore.stores.remote.store import RemoteStore

# The directory of a small archive lies in this part of its end.
_END_NBYTES = END.size + MAX_COMMENT
# Bytes of extra fields that a header is expected to have at the most; more cost another request.
_EXTRA_NBYTES = 64
# Most bytes that are read at once, before it is known how many are needed.
_AHEAD_NBYTES = 1 << 23


class RemoteZipStore(BlockStore):
    """The members of a zip archive at a service, for reading. `zcore.open` makes it.

    Parameters
    ----------
    store : RemoteStore
        Its URL is that of the archive.

    Raises
    ------
    FileNotFoundError
        There is no such object.
    StoreError
        It cannot be read, is no zip archive, or contradicts itself.
    """

    def __init__(self, store: RemoteStore) -> None:
        self._remote = store
        self._file = RemoteFile(store, (None, _END_NBYTES))
        self.n_requests: int = store.n_requests
        self.uri: str | None = self._file.url if store.uri else None
        self._entries = dict(entries_of(self._file, self._file.url))
        # Those whose header was read.
        self._members = {}
        self._table = ReferenceTable()
        for key in self._entries:
            self._table.put(key.encode(), "archive", 0, None)

    def __repr__(self) -> str:
        return f"RemoteZipStore({self._file.url!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteZipStore, (self._remote,)

    @property
    def label(self) -> str:
        """The last part of the URL."""
        return self._file.url.rpartition("/")[2]

    def get(self, key: str, byte_range: ByteRange | None = None) -> bytes | None:
        """See `Store.get`.

        Raises
        ------
        StoreError
            The member is damaged, or the archive was replaced since it was opened.
        UnsupportedError
            The member is encrypted, or compressed by another method than deflate.
        """
        entry = self._entries.get(check_key(key))
        if entry is None:
            return None
        start, stop = resolve_range(byte_range, entry.file_size)
        source, member = self._file, self._members.get(key)
        if member is None:
            # A part of a large member is read by itself, when it is known where it is.
            n_content = 0
            if entry.compress_type:
                n_content = entry.compress_size
            elif start == 0:
                n_content = min(stop, entry.compress_size)
            source = self._ahead(entry, n_content)
            member = self._take(key, entry, source)
        elif member.is_deflated and stop > start:
            source = Ahead(self._file, member.offset, min(member.n_stored, _AHEAD_NBYTES), _AHEAD_NBYTES)
        return read_member(source, self._file.url, key, member, byte_range)

    def _ahead(self, entry, n_content):
        """Return a source in which the header of a member was read, with as much of its content."""
        n_header = HEADER.size + len(entry.orig_filename.encode()) + _EXTRA_NBYTES
        if n_content <= _AHEAD_NBYTES:
            return Ahead(self._file, entry.header_offset, n_header + n_content)
        # The content of a stored member is one more range. A stream is read along.
        return Ahead(self._file, entry.header_offset, n_header, _AHEAD_NBYTES if entry.compress_type else 0)

    def _take(self, key, entry, source):
        member = self._members[key] = member_of(source, self._file.url, entry)
        return member

    def extent(self, key: str) -> tuple[str, int, int | None] | None:
        entry = self._entries.get(check_key(key))
        if entry is None or self.uri is None:
            return None
        member = self._members.get(key) or self._take(key, entry, self._ahead(entry, 0))
        if member.is_deflated or member.feature is not None:
            return None
        return self._file.url, member.offset, member.n_stored

    def get_with_identity(
        self, key: str, byte_range: ByteRange | None = None
    ) -> tuple[bytes, Identity | None] | None:
        value = self.get(key, byte_range)
        return None if value is None else (value, self.identity(key))

    def identity(self, key: str) -> Identity | None:
        """Return the identity of `key`: that of the version of the archive that was opened, and of the member."""
        entry = self._entries.get(check_key(key))
        return None if entry is None else self._file.identity(f"{entry.header_offset}", entry.file_size)

    def getsize(self, key: str) -> int | None:
        entry = self._entries.get(check_key(key))
        return None if entry is None else entry.file_size

    def list_dir(self, prefix: str) -> Listing:
        keys, prefixes = self._table.list_dir(check_prefix(prefix).encode())
        return Listing([key.decode() for key in keys], [prefix.decode() for prefix in prefixes])

    def blocks(self, path: str) -> Blocks:
        prefix = prefix_of(path)
        for key, entry in self._entries.items():
            if key.startswith(prefix):
                yield key, None, entry.file_size, partial(self._verify, key, entry)

    def _verify(self, key, entry):
        is_large = entry.compress_size > _AHEAD_NBYTES
        source = self._ahead(entry, 0 if is_large else entry.compress_size)
        member = member_of(source, self._file.url, entry)
        if is_large:
            source = Ahead(self._file, member.offset, 0, _AHEAD_NBYTES)
        if member.feature is None:
            verify_member(source, self._file.url, key, member)

    def is_in_blocks(self, path: str) -> bool:
        return False

    def close(self) -> None:
        """Close nothing: there is one request after the other."""


def opened(store: RemoteStore) -> RemoteZipStore | None:
    """Return the archive at the URL of a `RemoteStore`, or None if there is no object."""
    try:
        return RemoteZipStore(store)
    except FileNotFoundError as exc:
        if isinstance(exc, StoreError):
            raise
        return None
