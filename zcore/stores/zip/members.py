"""The members of a zip archive: found in its directory, checked one by one, and read.

`zipfile` reads the directory. Its content is not trusted: each member must lie inside the file, and the header before
its bytes must agree with the directory. At a service each header costs a request, so it is compared when the member is
first read (`located`). APPNOTE is the format's own text, "APPNOTE.TXT - .ZIP File Format Specification", version 6.3.
"""
from __future__ import annotations

import errno
import io
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING, NamedTuple

from zcore.errors import ChecksumError, InvalidKeyError, StoreError, UnsupportedError
from zcore.stores.base import ByteRange, resolve_range
from zcore.stores.keys import check_key, is_temporary
from zcore.text.object_memory import MAX_OBJECTS_NBYTES

if TYPE_CHECKING:
    from zcore.ranges import ByteSource


class Member(NamedTuple):
    """Offsets of a member's header and its bytes, the stored and the decoded size, the CRC or None, and what it needs.

    `feature` is needed to read the member and missing in zcore, or None. `entry` is that of the directory as long as
    the header was not compared with it; until then `offset` is -1.
    """

    header: int
    offset: int
    n_stored: int
    n_bytes: int
    crc: int | None
    is_deflated: bool
    feature: str | None
    entry: zipfile.ZipInfo | None = None


# APPNOTE 4.3.7: signature, version, flags, method, time, date, CRC, stored size, size, length of name, of extra fields.
HEADER = struct.Struct("<4sHHHHHIIIHH")
SIGNATURE = b"PK\x03\x04"
# APPNOTE 4.3.16: signature, disk, that of the directory, entries here, entries, size, offset, length of the comment.
END = struct.Struct("<4sHHHHIIH")
END_SIGNATURE = b"PK\x05\x06"
MAX_COMMENT = 0xFFFF
# APPNOTE 4.3.15 and 4.3.14: the same with 64 bits, and its locator.
LOCATOR = struct.Struct("<4sIQI")
LOCATOR_SIGNATURE = b"PK\x06\x07"
END64 = struct.Struct("<4sQHHIIQQQQ")
END64_SIGNATURE = b"PK\x06\x06"
# APPNOTE 4.4.4: bits of the flags.
_ENCRYPTED, _SIZES_FOLLOW, _PATCH, _STRONGLY_ENCRYPTED, UTF8, _MASKED = (1 << bit for bit in (0, 3, 5, 6, 11, 13))
# APPNOTE 4.5.3: instead of a size that is in an extra field of 64 bits, and the number of that field.
IN_ZIP64, ZIP64 = 0xFFFFFFFF, 1
# Two bits of deflate encode 258 bytes at most.
_MAX_RATIO = 1032
_MAX_NAME = 0xFFFF
# Of an archive at a service: what it claims to have costs memory. Room for some millions of members.
_MAX_DIRECTORY_NBYTES = 1 << 29
# APPNOTE 4.3.12: the signature of an entry in the directory. An upper bound of what an entry takes as objects of Python
# beside its bytes, until the archive is open.
ENTRY_SIGNATURE = b"PK\x01\x02"
ENTRY_NBYTES = 800


def read_members(source: ByteSource) -> dict[str, Member]:
    """Return the `Member` of each key; of two with one name the last one counts.

    Directories, and temporary files of a `DirectoryStore`, are left out.

    Raises
    ------
    StoreError
        The file is no zip archive; a member contradicts its entry; or the name of a member is no key, so it could not
        be found.
    """
    entries = _directory_of(source)
    _check_count(source, len(entries))
    entries = [info for info in entries if not (
        (info.orig_filename.endswith("/") and info.file_size == 0)
        or is_temporary(info.orig_filename.rpartition("/")[2]))]
    for info in entries:
        try:
            check_name(info.orig_filename)
        except InvalidKeyError as exc:
            raise InvalidKeyError(f"{source.path}: a member has a name that is no key: {exc.message}",
                                  key=info.orig_filename) from None
    last_of = {info.orig_filename: info for info in entries}
    members = {}
    for info in entries:
        # Also members that do not count: a wrong name in the directory may be that of another member.
        name = info.orig_filename
        member = Member(info.header_offset, -1, info.compress_size, info.file_size, info.CRC,
                        info.compress_type == zipfile.ZIP_DEFLATED, _feature_of(info), info)
        if not source.is_far:
            member = located(source, name, member)
        elif not 0 <= member.header <= source.size - HEADER.size - len(name.encode()) - member.n_stored:
            raise StoreError(f"{source.path}: member {name!r:.200} has {member.n_stored} bytes behind byte "
                             f"{member.header}, the file has {source.size}", key=name)
        if last_of[name] is info:
            members[name] = member
    return members


def located(source: ByteSource, key: str, member: Member) -> Member:
    """Return a member whose `offset` is known: the header before its bytes agrees with its entry.

    Raises : StoreError, if they contradict each other, or cannot be read.
    """
    try:
        return member if member.entry is None else _located(source, member, member.entry)
    except _Fault as fault:
        raise StoreError(f"{source.path}: member {key!r:.200} {fault}", key=key) from None


class _Fault(Exception):
    """The mistake in a member."""


def check_name(key: str) -> str:
    """Return `key` if it may be the name of a member.

    Notes : APPNOTE 4.4.17: names have forward slashes only, and 65535 bytes at most.
    """
    if "\\" in check_key(key):
        raise InvalidKeyError(f"{key!r:.200} is not a key: names in zip archives have no backslash", key=key)
    if len(key) > _MAX_NAME // 4 and len(key.encode()) > _MAX_NAME:
        raise InvalidKeyError(f"{key!r:.200} is not a key: names in zip archives have up to {_MAX_NAME} bytes", key=key)
    return key


def _directory_of(source):
    """Return the entries of the directory, a list of ZipInfo."""
    try:
        with _Seekable(source) as file, zipfile.ZipFile(file) as archive:
            return archive.infolist()
    except NotImplementedError as exc:
        raise UnsupportedError(f"{source.path}: cannot read the zip archive: {exc}", feature="zip archives") from exc
    except StoreError:
        raise
    except (zipfile.BadZipFile, struct.error, OSError, ValueError, ArithmeticError, LookupError, EOFError,
            MemoryError) as exc:
        raise StoreError(f"{source.path} is no whole zip archive: {exc}") from exc


class _Seekable(io.RawIOBase):
    """An archive for `zipfile`, which reads its end and its directory, each at once."""

    def __init__(self, source):
        self._source = source
        self._at = 0

    def seek(self, offset, whence=io.SEEK_SET):
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._source.size}[whence]
        if self._at < 0:
            raise OSError(errno.EINVAL, f"byte {self._at}")     # as files do: `zipfile` seeks before a short archive
        return self._at

    def read(self, n_bytes=-1):
        source = self._source
        left = max(0, source.size - self._at)
        n_bytes = left if n_bytes is None or n_bytes < 0 else min(n_bytes, left)
        if source.is_far and n_bytes > _MAX_DIRECTORY_NBYTES:
            raise ValueError(f"a directory of {n_bytes} bytes, and at most {_MAX_DIRECTORY_NBYTES} are read")
        data = source.read_at(self._at, n_bytes)
        self._at += len(data)
        _check_entries(data, source.path, source.size)
        return data


def _check_entries(data, path, size):
    """Raise StoreError if the entries of a directory take too much memory. Each of them is an object of `zipfile`."""
    n_entries = data.count(ENTRY_SIGNATURE)
    # A name takes up to four bytes a character.
    n_bytes, limit = n_entries * ENTRY_NBYTES + 4 * len(data), 3 * size + MAX_OBJECTS_NBYTES
    if n_bytes > limit:
        raise StoreError(f"{path}: expected a directory that takes at most {limit} bytes of memory, found {n_entries} "
                         f"members in a file of {size} bytes, which take some {n_bytes}")


def _check_count(source, n_found):
    """Raise StoreError unless the directory has as many entries as the end of the archive says.

    `zipfile` does not check this: an entry with a wrong length hides those behind it. Without the record of 64 bits
    the number may be cut to 16 bits.
    """
    path, start = source.path, max(0, source.size - END.size - MAX_COMMENT)
    tail = source.read_at(start, END.size + MAX_COMMENT)
    at = len(tail) - END.size
    # As `zipfile` finds it: a record without a comment, else the last one in the file.
    if at < 0 or tail[at:at + 4] != END_SIGNATURE or tail[-2:] != b"\0\0":
        at = tail.rfind(END_SIGNATURE)
    if at < 0 or at + END.size > len(tail):
        raise StoreError(f"{path} is no whole zip archive: its end was not found")
    n_entries = END.unpack_from(tail, at)[4]
    n_expected, n_counted = n_entries, n_found & 0xFFFF
    locator = source.read_at(start + at - LOCATOR.size, LOCATOR.size) if start + at >= LOCATOR.size else b""
    if locator[:4] == LOCATOR_SIGNATURE:
        raw = source.read_at(max(0, start + at - LOCATOR.size - END64.size), END64.size)
        if len(raw) == END64.size and raw[:4] == END64_SIGNATURE:
            n_expected, n_counted = END64.unpack(raw)[7], n_found
    if n_counted != n_expected:
        raise StoreError(f"{path} is no whole zip archive: its end counts {n_expected} members, its directory has "
                         f"{n_found}")


def _located(source, member, info):
    """Return a member whose header agrees with its entry; raises _Fault."""
    size, header, n_stored, n_bytes = source.size, member.header, member.n_stored, member.n_bytes
    is_utf8 = info.flag_bits & UTF8
    name = info.orig_filename.encode("utf-8" if is_utf8 else "cp437")
    if info.volume:
        raise _Fault("is on another disk")
    if not 0 <= header <= size - HEADER.size - len(name):
        raise _Fault(f"begins at byte {header} of {size}")
    raw = source.read_at(header, HEADER.size + len(name))
    if len(raw) < HEADER.size + len(name) or raw[:4] != SIGNATURE:
        raise _Fault(f"has no header at byte {header}")
    _, _, flags, method, _, _, crc, local_stored, local_nbytes, n_name, n_extra = HEADER.unpack_from(raw)
    if raw[HEADER.size:] != name or n_name != len(name):
        raise _Fault(f"has another name in its header at byte {header}")
    if method != info.compress_type or (flags ^ info.flag_bits) & _ENCRYPTED:
        raise _Fault(f"has another method in its header at byte {header}")
    offset = header + HEADER.size + n_name + n_extra
    if offset + n_stored > size:
        raise _Fault(f"has {n_stored} bytes from byte {offset} on, the file has {size}")
    if member.feature is None:
        if not flags & _SIZES_FOLLOW:
            if IN_ZIP64 in (local_stored, local_nbytes):
                extra = source.read_at(header + HEADER.size + n_name, n_extra)
                local_stored, local_nbytes = _sizes_of(extra, local_stored, local_nbytes)
            if (crc, local_stored, local_nbytes) != (info.CRC, n_stored, n_bytes):
                raise _Fault(f"has {local_stored} bytes for {local_nbytes} with CRC {crc:#x} in its header, {n_stored} "
                             f"for {n_bytes} with {info.CRC:#x} in the directory")
        if n_bytes > (_MAX_RATIO * (n_stored + 1) if method else n_stored) or (not method and n_bytes < n_stored):
            raise _Fault(f"has {n_stored} bytes, which cannot be {n_bytes}")
    return member._replace(offset=offset, entry=None)


def _feature_of(info):
    if info.flag_bits & (_ENCRYPTED | _STRONGLY_ENCRYPTED | _MASKED):
        return "encryption in zip archives"
    if info.flag_bits & _PATCH:
        return "patches in zip archives"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        name = zipfile.compressor_names.get(info.compress_type, "unknown")
        return f"method {info.compress_type} ({name}) in zip archives"
    return None


def _sizes_of(extra, n_stored, n_bytes):
    """Return the sizes, those of 64 bits from the extra field, where the decoded size comes first."""
    at = 0
    while at + 4 <= len(extra):
        number, n = struct.unpack_from("<HH", extra, at)
        if number == ZIP64:
            field = extra[at + 4:at + 4 + n]
            if n_bytes == IN_ZIP64:
                n_bytes, field = int.from_bytes(field[:8], "little"), field[8:]
            if n_stored == IN_ZIP64:
                n_stored = int.from_bytes(field[:8], "little")
            break
        at += 4 + n
    return n_stored, n_bytes


def read_member(source: ByteSource, key: str, member: Member, byte_range: ByteRange | None) -> bytes:
    """Return the bytes of a member, or a part of them; the CRC of the whole is checked. Raises : see `MemberReader`."""
    start, stop = resolve_range(byte_range, member.n_bytes)
    begin = 0 if member.is_deflated else start
    member = member if stop - start == member.n_bytes else member._replace(crc=None)
    return MemberReader(source, key, member, begin).read(stop - begin)[start - begin:]


class MemberReader:
    """Reads the bytes of a member one after the other. Behind the last one it checks the CRC.

    Parameters
    ----------
    source, key, member
        Without a `crc` (None) nothing is compared.
    position : int
        Where to begin: 0 in a deflated member, and where there is a `crc`.

    Raises
    ------
    StoreError
        The bytes are damaged, or the file was cut off since it was opened.
    UnsupportedError
        The member is encrypted, or compressed by another method than deflate.
    """

    def __init__(self, source: ByteSource, key: str, member: Member, position: int = 0) -> None:
        self._source, self._key, self._member = source, key, member
        self._decoder = zlib.decompressobj(-zlib.MAX_WBITS) if member.is_deflated else None
        self._pieces = source.pieces(member.offset, member.n_stored)     # of a stream
        self._crc = 0
        self.position: int = position

    def read(self, n_bytes: int) -> bytes:
        """Return the next bytes, fewer than `n_bytes` where the member ends."""
        member = self._member
        n_bytes = min(n_bytes, member.n_bytes - self.position)
        if member.feature is not None:
            raise UnsupportedError(f"{self._source.path}: key {self._key!r} needs {member.feature}",
                                   feature=member.feature)
        try:
            data = self._stored(n_bytes) if self._decoder is None else self._inflated(n_bytes, self._decoder)
            self.position += len(data)
            if len(data) < n_bytes:
                raise _Fault(f"ends after {self.position} of {member.n_bytes} bytes")
            is_end = self.position == member.n_bytes
            if is_end and self._decoder is not None and self._inflated(1, self._decoder):
                raise _Fault(f"has more than the {member.n_bytes} bytes that the archive says")
            if member.crc is not None:
                self._crc = zlib.crc32(data, self._crc)
                if is_end and self._crc != member.crc:
                    raise _Fault(f"has CRC {self._crc:#x}, the archive says {member.crc:#x}")
        except _Fault as fault:
            raise StoreError(f"{self._source.path}: key {self._key!r} {fault}", key=self._key) from fault.__cause__
        except MemoryError as exc:
            raise StoreError(f"{self._source.path}: no memory for the {n_bytes} bytes of key {self._key!r}",
                             key=self._key, errno=errno.ENOMEM) from exc
        return data

    def _stored(self, n_bytes):
        start = self._member.offset + self.position
        data = self._source.read_at(start, n_bytes)
        if len(data) < n_bytes:
            raise _Fault(f"was cut off at byte {start + len(data)} of the file")
        return data

    def _inflated(self, n_bytes, decoder):
        """Return the next decoded bytes, fewer than `n_bytes` where the stream ends."""
        data = bytearray()
        while len(data) < n_bytes and not decoder.eof:
            raw = decoder.unconsumed_tail or next(self._pieces, b"")
            try:
                part = decoder.decompress(raw, n_bytes - len(data))
            except zlib.error as exc:
                raise _Fault(f"is no deflate stream: {exc}") from exc
            if not raw and not part:
                break
            data += part
        return bytes(data)


def verify_member(source: ByteSource, key: str, member: Member) -> None:
    """Read a member, and compare its CRC.

    Raises
    ------
    ChecksumError
        The CRC is not the archive's.
    StoreError
        See `MemberReader`.
    """
    reader = MemberReader(source, key, member._replace(crc=None))
    crc = 0
    while part := reader.read(source.piece_nbytes):
        crc = zlib.crc32(part, crc)
    if crc != member.crc:
        raise ChecksumError(f"{source.path}: member {key!r} has CRC {crc:#010x}, the archive says {member.crc:#010x}",
                            key=key, expected=member.crc, found=crc)
