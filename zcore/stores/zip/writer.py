"""Write a zip archive: members one after the other in a temporary file, the directory at the end.

The file gets the archive's name when it is complete. A value that is replaced or erased is left out of the directory;
its bytes stay in the file, unused.

An archive whose name ends with ``.ozx`` follows NGFF RFC-9, "Zipped OME-Zarr", section "Specification", all of whose
recommendations on the archive are kept:

1. ZIP64 records whatever the size.
2. No compression by zip: the caller chooses the method, which is to store by default.
4. The root's ``zarr.json`` is the first entry, in the file and in the directory, and all others follow, breadth first.
5. A comment with the version of OME-Zarr, which the root's attributes name, and `jsonFirst`. Without a version there is
   no comment, because the archive does not hold OME-Zarr.

Recommendation 3, shards, is a matter of the arrays. The requirements are kept as well: one root, in a single part, and
not in the directory of another hierarchy. Other archives have the same sequence in their directory.
"""
from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import struct
import zipfile
import zlib
from hashlib import blake2b
from typing import TYPE_CHECKING

from zcore.descriptors import open_descriptor, write_at
from zcore.errors import StoreError, warn
from zcore.kernel.io.locks import ObjectLocks
from zcore.ranges import LocalFile
from zcore.replacing import NewFile
from zcore.stores.base import renew_in_children
from zcore.stores.directory.staged import faults
from zcore.stores.keys import TEMPORARY
from zcore.stores.zip.members import (
    END,
    END64,
    END64_SIGNATURE,
    END_SIGNATURE,
    ENTRY_SIGNATURE,
    HEADER,
    IN_ZIP64,
    LOCATOR,
    LOCATOR_SIGNATURE,
    SIGNATURE,
    UTF8,
    ZIP64,
    Member,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DOCUMENT = "zarr.json"
# APPNOTE 4.4.6: the first date there is. Equal values in the same sequence make equal archives.
_TIME, _DATE = 0, 1 << 5 | 1
_UNIX = 3
_MODE = 0o100644
# APPNOTE 4.4.3: the version of the format that a reader needs.
_VERSION, _VERSION_OF_ZIP64 = 20, 45
# APPNOTE 4.3.12: signature, versions made by and needed (two bytes each), flags, method, time, date, CRC, stored size,
# size, lengths of name, extra fields and comment, disk, attributes inside and outside, offset of the header.
_ENTRY = struct.Struct("<4s4B4HL2L5H2L")
_MAX_COUNT = 0xFFFF
# A file that is gone after each of so many tries cannot be made at all.
_MAX_TRIES = 100


def is_document(key: str) -> bool:
    """Return whether RFC-9 puts a member first."""
    return key.rpartition("/")[2] == DOCUMENT


def is_ozx(path: str) -> bool:
    """Return whether the name of an archive says that it follows RFC-9."""
    return path.lower().endswith(".ozx")


def in_order(keys: Iterable[str]) -> list[str]:
    """Return keys with all ``zarr.json`` first, breadth first; the others stay in their sequence.

    >>> in_order(["b/c/0", "b/zarr.json", "a/d/zarr.json", "zarr.json", "a/zarr.json"])
    ['zarr.json', 'a/zarr.json', 'b/zarr.json', 'a/d/zarr.json', 'b/c/0']
    """
    keys = list(keys)
    documents = sorted(filter(is_document, keys), key=lambda key: (key.count("/"), key.split("/")))
    return [*documents, *[key for key in keys if not is_document(key)]]


class ZipWriter:
    """The file of a new archive.

    Parameters
    ----------
    path : str
        Absolute.
    exclusive : bool
        Refuse to replace a file of this name.
    method : {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
    fsync : bool
        The archive is on the disk when `finish` returns.

    Raises
    ------
    StoreError
        A file has this name already, or none can be made.
    """

    def __init__(self, path: str, exclusive: bool, method: int, fsync: bool = False) -> None:
        self.locks: ObjectLocks = ObjectLocks()
        self._path = path
        self._exclusive = exclusive
        self._method = method
        self._fsync = fsync
        self._is_ozx = is_ozx(path)
        self._fault = self._errno = self._file = None
        self._end = 0
        if os.path.isdir(path) or (exclusive and os.path.lexists(path)):
            raise StoreError(f"{path} exists already", errno=errno.EEXIST)
        if self._is_ozx and os.path.lexists(os.path.join(os.path.dirname(path), DOCUMENT)):
            raise StoreError(f"{path} lies in a Zarr hierarchy, in which RFC-9 allows no .ozx", errno=errno.EINVAL)
        renew_in_children(self)
        try:
            _remove_left_over(os.path.dirname(os.path.realpath(path)), TEMPORARY + _label_of(path))
            self._file = _File(path, fsync)
            self._source = LocalFile(path, file=self._file)
        except OSError as exc:
            self.discard()
            raise StoreError(f"cannot make {path}: {exc.strerror or exc}", errno=exc.errno) from exc

    @property
    def is_open(self) -> bool:
        """Whether there is a file that is neither finished nor removed."""
        return self._file is not None

    @property
    def source(self) -> LocalFile:
        """The file, to read members from."""
        self.check()
        self._source.size = self._end
        return self._source

    def check(self) -> None:
        """Raise StoreError if the archive was given up or closed."""
        if self._fault is not None:
            raise StoreError(f"{self._path}: {self._fault}", errno=self._errno)

    def append(self, key: str, data: bytes | bytearray | memoryview) -> Member:
        """Write a member, and return it. The caller holds the lock."""
        self.check()
        header, crc = self._end, zlib.crc32(data)
        stored = data if self._method == zipfile.ZIP_STORED else zlib.compress(data, wbits=-zlib.MAX_WBITS)
        n_stored, n_bytes = len(stored), len(data)
        name = key.encode()
        sizes, extra = (n_stored, n_bytes), b""
        is_64 = self._is_ozx or max(sizes) >= IN_ZIP64
        if is_64:
            # APPNOTE 4.5.3: here both sizes are required.
            sizes, extra = (IN_ZIP64, IN_ZIP64), struct.pack("<HHQQ", ZIP64, 16, n_bytes, n_stored)
        try:
            self._write(HEADER.pack(SIGNATURE, _VERSION_OF_ZIP64 if is_64 else _VERSION, _flags(name), self._method,
                                    _TIME, _DATE, crc, *sizes, len(name), len(extra)) + name + extra)
            offset = self._end
            self._write(stored)
        except BaseException as exc:
            # It is unknown where the last whole member ends.
            self._fault = f"the archive was given up when a write failed: {exc!r:.200}"
            if not isinstance(exc, OSError):
                raise
            self._errno = exc.errno
            raise StoreError(f"{self._path}: cannot write {key!r}: {exc.strerror}", key=key, errno=exc.errno) from exc
        return Member(header, offset, n_stored, n_bytes, crc, self._method == zipfile.ZIP_DEFLATED, None)

    def finish(self, members: Mapping[str, Member], document: bytes | None) -> None:
        """Write the directory, and give the file its name; the caller holds the lock.

        Parameters
        ----------
        members : dict
            Keys and `Member` values, without those that were replaced or erased.
        document : bytes or None
            The ``zarr.json`` of the root, for the comment of an ``.ozx``.
        """
        try:
            self.check()
            with faults("finish", self._path):
                keys = in_order(members)
                if self._is_ozx:
                    members = self._in_order(members, keys)
                self._write_directory([(key, members[key]) for key in keys], self._comment(document))
                self._file.commit(self._exclusive)
        finally:
            self.discard()

    def discard(self) -> None:
        """Remove the temporary file."""
        if self._file is not None:
            self._fault = self._fault or "the archive is closed"
            self._file.discard()
            self._file = None

    def _write(self, data):
        self._end = write_at(self._file.fd, data, self._end)

    def _in_order(self, members, keys):
        """Return members in a file in which they have this sequence; it is written anew only if it has another one."""
        documents = [members[key].header for key in keys if is_document(key)]
        others = [members[key].header for key in keys if not is_document(key)]
        # Also nothing may lie between the documents, such as an old value.
        ends = [members[key].offset + members[key].n_stored for key in keys if is_document(key)]
        if documents == [0, *ends][:len(documents)] and (not others or min(others) >= max(ends, default=0)):
            return members
        source, old = self.source, self._file
        self._file = _File(self._path, self._fsync)
        self._end, moved = 0, {}
        try:
            for key in keys:
                member = members[key]
                shift = self._end - member.header
                for part in source.pieces(member.header, member.offset + member.n_stored - member.header):
                    self._write(part)
                moved[key] = member._replace(header=member.header + shift, offset=member.offset + shift)
        finally:
            old.discard()
        return moved

    def _write_directory(self, members, comment):
        start = self._end
        parts = []
        for key, member in members:
            name, extra = key.encode(), b""
            values = [member.n_bytes, member.n_stored, member.header]
            large = [self._is_ozx or value >= IN_ZIP64 for value in values]
            if any(large):
                # APPNOTE 4.5.3: only those fields, in this order.
                numbers = [value for value, is_large in zip(values, large, strict=True) if is_large]
                extra = struct.pack(f"<HH{len(numbers)}Q", ZIP64, 8 * len(numbers), *numbers)
                values = [IN_ZIP64 if is_large else value for value, is_large in zip(values, large, strict=True)]
            version = _VERSION_OF_ZIP64 if extra else _VERSION
            n_bytes, n_stored, header = values
            parts.append(_ENTRY.pack(
                ENTRY_SIGNATURE, version, _UNIX, version, 0, _flags(name), self._method, _TIME, _DATE, member.crc,
                n_stored, n_bytes, len(name), len(extra), 0, 0, 0, _MODE << 16, header) + name + extra)
        self._write(b"".join(parts))
        n_entries, n_bytes = len(members), self._end - start
        if self._is_ozx or n_entries >= _MAX_COUNT or max(start, n_bytes) >= IN_ZIP64:
            # APPNOTE 4.3.14.1: the size of the record does not count its first 12 bytes.
            end64 = END64.pack(END64_SIGNATURE, END64.size - 12, _VERSION_OF_ZIP64, _VERSION_OF_ZIP64, 0, 0, n_entries,
                               n_entries, n_bytes, start)
            self._write(end64 + LOCATOR.pack(LOCATOR_SIGNATURE, 0, start + n_bytes, 1))
            n_entries, n_bytes, start = _MAX_COUNT, IN_ZIP64, IN_ZIP64
        self._write(END.pack(END_SIGNATURE, 0, 0, n_entries, n_entries, n_bytes, start, len(comment)) + comment)

    def _comment(self, document):
        """Return the archive's comment (RFC-9, "Specification", 5), empty where it does not apply."""
        if not self._is_ozx:
            return b""
        if document is None:
            warn(f"{self._path} has no {DOCUMENT} at its root, so it is no OME-Zarr (RFC-9)")
            return b""
        version = _ome_version(document)
        if version is None:
            return b""
        said = {"ome": {"version": version, "zipFile": {"centralDirectory": {"jsonFirst": True}}}}
        return json.dumps(said, separators=(",", ":")).encode()

    def _renew_locks(self):
        # In a forked child: the file belongs to the parent and stays.
        if self._file is not None:
            self._file.discard()
            self._file = None
            self._fault = "the archive is written by the process that this one was forked from"


def _ome_version(document):
    """Return the version of OME-Zarr that the root's document names, or None."""
    try:
        version = json.loads(document)["attributes"]["ome"]["version"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return version if isinstance(version, str) and len(version) < 100 else None


def _flags(name):
    return 0 if name.isascii() else UTF8


def _label_of(path):
    """Return how the name of the temporary file of an archive begins, behind the prefix of all temporary files."""
    return f"zip.{blake2b(os.fsencode(os.path.basename(path)), digest_size=8).hexdigest()}."


class _File(NewFile):
    """The new file of an archive. It is locked as long as its writer lives."""

    def __init__(self, archive, fsync):
        for _ in range(_MAX_TRIES):
            super().__init__(archive, fsync=fsync, label=_label_of(archive))
            # Another writer of this archive may take it for a left-over before it is locked.
            if _is_locked(self.fd) is not False and os.path.exists(self.temporary):
                return
            self.discard()
        raise StoreError(f"cannot write {archive}: its temporary file is gone as soon as it is made", key=archive)


def _remove_left_over(folder, start):
    with contextlib.suppress(OSError):
        for name in [name for name in os.listdir(folder) if name.startswith(start)]:
            temporary = os.path.join(folder, name)
            with contextlib.suppress(OSError):
                fd = open_descriptor(temporary, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
                try:
                    if _is_locked(fd):
                        os.unlink(temporary)
                finally:
                    os.close(fd)


def _is_locked(fd):
    """Lock a file; return False if another writer holds it, and None where the file system has no locks."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
