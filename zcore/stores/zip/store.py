"""A zip file as a store: reading any archive, and writing a new one.

Members without compression are parts of a file, like those of a reference set, and the compiled code reads chunks
there. Deflated members are decoded in Python. Of an archive at a service the directory is read once, and then only the
members that are wanted, each with its header in one request.
"""
from __future__ import annotations

import os
import zipfile
from functools import partial
from typing import TYPE_CHECKING

from zcore import config
from zcore.buffers import flat_view
from zcore.errors import StoreError, UnsupportedError, warn
from zcore.kernel.refs.table import ReferenceTable
from zcore.ranges import FAR_NBYTES, Ahead, LocalFile
from zcore.stores.base import OBJECTS, FileParts, Listing, Objects, PutStore, resolve_range, sliced, with_parts
from zcore.stores.keys import check_key, check_prefix, prefix_of
from zcore.stores.memory import MemoryStore
from zcore.stores.one_file import HERE, IN_PYTHON, FileStore
from zcore.stores.zip.members import (
    END,
    HEADER,
    MAX_COMMENT,
    check_name,
    located,
    read_member,
    read_members,
    verify_member,
)
from zcore.stores.zip.writer import DOCUMENT, ZipWriter, in_order, is_document
from zcore.text.arguments import as_bool
from zcore.trust.base_path import file_path

if TYPE_CHECKING:
    import weakref
    from typing import Any, Literal

    from zcore.ranges import ByteSource
    from zcore.stores.base import Blocks, ByteRange, Identity
    from zcore.stores.remote.store import RemoteStore
    from zcore.typing import StrPath

# The directory of a small archive lies in this part of its end.
_END_NBYTES = END.size + MAX_COMMENT
# Bytes of extra fields that a header is expected to have at the most; more cost another request.
_EXTRA_NBYTES = 64


class ZipStore(PutStore, FileStore):
    """A store in a zip file.

    Parameters
    ----------
    path : str, os.PathLike, RemoteStore or ByteSource
        A new archive has a path. A `RemoteStore` has the URL of the archive.
    mode : {"r", "w", "x"}
        Read an archive; write a new one, which replaces an existing file; or write one only if there is no file. The
        archive exists when the store has been closed. A name that ends with ``.ozx`` makes an OME-Zarr zip file by
        RFC-9 of NGFF: see `zcore.stores.zip.writer`.
    compression : {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
        How new values are written. Chunks have their own codecs, so values are not compressed by default.
    read_only : bool, optional
        Must agree with `mode`.
    fsync : bool, optional
        A new archive is on the disk when `close` returns; by default `zcore.config.fsync`.

    Raises
    ------
    StoreError
        The file cannot be opened or made; it is no zip archive, or contradicts itself.
    FileNotFoundError
        There is no such object at a service.

    Notes
    -----
    The store reads the file that it opened, even if another file gets its name. An error in the block of a `with`
    statement leaves no new archive, and neither does a store that was not closed, or a value that could not be written.
    The bytes of a value that is replaced stay in the file, unused.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with ZipStore(os.path.join(folder, "x.zip"), mode="w") as store:
    ...     store.set("a/b", b"value")
    >>> store = ZipStore(os.path.join(folder, "x.zip"))
    >>> store.get("a/b", (1, 2)), store.get("a"), store.list_dir("").prefixes
    (b'al', None, ['a/'])
    """

    # A weak reference to the handle that closes the store, as it was made for that.
    opened_for: weakref.ref[Any] | None = None
    _writer: Any = None

    def __init__(self, path: StrPath | RemoteStore | ByteSource, *, mode: Literal["r", "w", "x"] = "r",
                 compression: int = zipfile.ZIP_STORED, read_only: bool | None = None,
                 fsync: bool | None = None) -> None:
        if not isinstance(mode, str) or mode not in ("r", "w", "x"):
            raise ValueError(f"mode {mode!r:.60}: expected 'r', 'w' or 'x'; an archive is written once, as a whole")
        if read_only is not None and as_bool(read_only, "read_only") != (mode == "r"):
            raise ValueError(f"read_only={read_only!r} contradicts mode {mode!r}")
        if compression not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise UnsupportedError(f"compression {compression!r}: expected zipfile.ZIP_STORED or zipfile.ZIP_DEFLATED",
                                   feature="other methods in zip archives")
        self.read_only: bool = mode == "r"
        # Of a new archive: they are kept back until the first other value comes, as they are to be the first members.
        self._documents = {}
        if self.read_only:
            self._members = read_members(self._open(path, (None, _END_NBYTES), LocalFile))
            self._table = _table_of(self._members)
        else:
            self.path: str = os.path.abspath(file_path(path))
            self._members = {}
            self._names = MemoryStore()
            self.fsync: bool = config.fsync if fsync is None else as_bool(fsync, "fsync")
            self._writer = ZipWriter(self.path, mode == "x", compression, self.fsync)

    def __repr__(self) -> str:
        return f"ZipStore({self.path!r}{'' if self.read_only else ', new'})"

    def __reduce__(self) -> tuple[Any, ...]:
        if not self.read_only:
            raise TypeError(f"{self!r} is being written, which only this process can do; close it, and pickle a "
                            "store that reads it")
        return super().__reduce__()

    def __exit__(self, *exc_info: object) -> None:
        if exc_info[0] is not None:
            self.discard()
        self.close()

    def discard(self) -> None:
        """Give up a new archive: `close` will not make it."""
        if self._writer is not None:
            self._writer.discard()

    def __del__(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None and writer.is_open:
            writer.discard()
            warn(f"{self!r} was not closed: there is no archive; call close() or use it in a with block")

    def close(self) -> None:
        """Finish a new archive, or close the one that is read. No thread may be using the store."""
        writer, self._writer = self._writer, None
        if self._source is not None:
            self._source.close()
        if writer is not None and writer.is_open:
            with writer.locks.whole():
                try:
                    self._put_documents(writer)
                    document = self._members.get(DOCUMENT)
                    if document is not None:
                        document = read_member(writer.source, DOCUMENT, document, None)
                    writer.finish(self._members, document)
                finally:
                    writer.discard()

    def locate(self, prefix: str) -> FileParts | Objects:
        if not self.read_only or self._source.is_far:
            return OBJECTS
        return FileParts(self._table, self._open_target)

    def extent(self, key: str) -> tuple[str, int, int | None] | None:
        member = self._members.get(check_key(key))
        if member is None or not self.read_only or self._source.is_far and self.uri is None:
            return None
        if member.entry is not None:
            member, _ = self._located(key, 0)
        if member.is_deflated or member.feature is not None:
            return None
        return self.path, member.offset, member.n_stored

    def _file(self):
        """Return the source of the archive; raises StoreError if it is closed."""
        source = self._source if self._writer is None else self._writer.source
        if source is None:
            raise StoreError(f"{self!r} is closed")
        _ = source.fd     # raises StoreError if the file is closed
        return source

    def _located(self, key, n_bytes):
        """Return a member whose header was read, and a source for `n_bytes` of its content, which come with it."""
        member, source = self._members[key], self._file()
        if member.entry is not None:
            # A part of a large member is read by itself, when it is known where it is.
            n_bytes = n_bytes if n_bytes <= FAR_NBYTES else 0
            source = Ahead(source, member.header, HEADER.size + len(key.encode()) + _EXTRA_NBYTES + n_bytes)
            member = self._members[key] = located(source, key, member)
        return member, source

    # Reading

    def get(self, key: str, byte_range: ByteRange | None = None) -> bytes | None:
        """See `Store.get`.

        Raises
        ------
        StoreError
            The CRC of the value, when all of it is read, is not the archive's.
        UnsupportedError
            The member is encrypted, or compressed by another method than deflate.
        """
        source = self._file()
        # Before the members: a document goes there before it is removed here.
        document = self._documents.get(check_key(key))
        if document is not None:
            return sliced(document, byte_range)
        member = self._members.get(key)
        if member is None:
            return None
        start, stop = resolve_range(byte_range, member.n_bytes)
        member, source = self._located(key, member.n_stored if member.is_deflated else 0 if start else stop)
        return read_member(source, key, member, byte_range)

    def identity(self, key: str) -> Identity | None:
        """Return the identity of `key`: that of the file that was opened, and of the member.

        None while the archive is written.
        """
        member = self._members.get(check_key(key))
        return None if member is None or not self.read_only else self._source.identity(member.header, member.n_bytes)

    def getsize(self, key: str) -> int | None:
        document = self._documents.get(check_key(key))
        if document is not None:
            return len(document)
        member = self._members.get(key)
        return None if member is None else member.n_bytes

    def list_dir(self, prefix: str) -> Listing:
        check_prefix(prefix)
        if not self.read_only:
            return self._names.list_dir(prefix)
        keys, prefixes = self._table.list_dir(prefix.encode())
        return Listing([key.decode() for key in keys], [prefix.decode() for prefix in prefixes])

    # Verifying: the compiled code reads stored members without a look at their CRC.

    def blocks(self, path: str) -> Blocks:
        self._file()
        prefix = prefix_of(path)
        for key, member in self._members.items():
            if key.startswith(prefix) and member.feature is None:
                yield key, None, member.n_bytes, partial(self._verify, key)

    def _verify(self, key):
        member, source = self._located(key, self._members[key].n_stored)
        verify_member(source, key, member)

    def is_in_blocks(self, path: str) -> bool:
        return False     # the CRC does not show whether a chunk can be decoded

    # Writing

    def erase(self, key: str) -> None:
        self._check_writable("erase", key)
        check_key(key)
        with self._held():
            self._names.erase(key)
            self._members.pop(key, None)
            self._documents.pop(key, None)

    def _set_parts(self, key, parts):
        with self._held():
            self._put_held(key, with_parts(self.get(key), parts), exclusive=False)

    def _put(self, key, value, exclusive):
        view = flat_view(value)
        with self._held():
            return self._put_held(key, view, exclusive)

    def _put_held(self, key, data, exclusive):
        # This raises if the key conflicts with another one.
        is_new = self._names.set_if_not_exists(check_name(key), b"")
        if exclusive and not is_new:
            return False
        self._writer.check()
        if is_document(key) and not self._members:
            self._documents[key] = bytes(data)
            return True
        try:
            self._put_documents(self._writer)
            self._members[key] = self._writer.append(key, data)
        except BaseException:
            if is_new:
                self._names.erase(key)
            raise
        return True

    def _put_documents(self, writer):
        for key in in_order(self._documents):
            self._members[key] = writer.append(key, self._documents[key])
        self._documents.clear()

    def _held(self):
        self._file()
        return self._writer.locks.whole()


def _table_of(members):
    """Return the table of members for the compiled code. Rows for `IN_PYTHON` leave a member to Python."""
    table = ReferenceTable()
    for key, member in members.items():
        if member.is_deflated or member.feature is not None or member.entry is not None:
            table.put(key.encode(), IN_PYTHON, 0, None)
        else:
            table.put(key.encode(), HERE, member.offset, member.n_stored)
    return table
