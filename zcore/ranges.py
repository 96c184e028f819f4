"""Bytes that are read by ranges: of a local file, of an object at a service, or of any other source.

The formats that are one file, zip archives and ASDF files, read a `ByteSource`. So their code does not know where the
file is. All ranges are of one version of it. Small formats cost few requests because `Ahead` reads the parts that lie
together in advance, and `merged` puts the ranges together that lie close.
"""
from __future__ import annotations

import errno
import os
import stat
import sys
from _blake2 import blake2b  # of hashlib, without its import time
from typing import TYPE_CHECKING

from zcore import config, workers
from zcore.descriptors import identity_of, read_at
from zcore.errors import StoreError, cannot
from zcore.kernel.io.documents import Descriptor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, TypeAlias

    Identity: TypeAlias = tuple[int, int, int, int, int]

# Bytes that are read for nothing to save a request: about as many arrive during the latency of one.
MAX_GAP = 1 << 18
# Bytes of a merged range. A single range may be longer.
MAX_BLOCK = 1 << 23

FAR_NBYTES = 1 << 23                  # of one request for a part of many
_PIECE_NBYTES = 1 << 22               # that one thread reads at a time
_PARALLEL_NBYTES = 1 << 23            # from which on a second thread pays
_OPEN = os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0)


class ByteSource:
    """Bytes of one version of a file. A subclass defines `path`, `size` and `read_at`, and more where it can.

    Attributes
    ----------
    path : str
        Path or URL.
    size : int
    fd : int or None
        A descriptor for reading; None if there is no local file.
    is_far : bool
        Each read is a request. So a format checks no more than it needs before it is read.
    piece_nbytes : int
        Bytes that are read at a time of a large part.
    """

    path: str
    size: int
    is_far: bool = False
    piece_nbytes: int = 1 << 17

    @property
    def fd(self) -> int | None:
        return None

    def read_at(self, offset: int, n_bytes: int) -> bytes:
        """Return the bytes from `offset` on, fewer than `n_bytes` where the file ends.

        Raises : StoreError, if they cannot be read; `cut_off`, if the file has become so short that there is none.
        """
        raise NotImplementedError

    def identity(self, part: object, size: int) -> Identity | None:
        """Return an identity (see `zcore.stores.base.Store.identity`) of a part of this version, or None without one.

        `part` distinguishes the part from others, by its `repr`; `size` is that of the value.
        """
        return None

    def fault(self, operation: str, exc: OSError) -> StoreError:
        """Return the error for an OSError, which may be one already."""
        if isinstance(exc, StoreError):
            return exc
        return StoreError(f"cannot {operation} {self.path}: {exc.strerror or exc}", key=self.path, errno=exc.errno)

    def cut_off(self, offset: int) -> Exception:
        """Return the error for a byte that is not there, although `size` says so."""
        return StoreError(f"{self.path} was cut off at byte {offset} since it was opened", key=self.path,
                          errno=errno.EIO)

    def read_into(self, offset: int, view: memoryview) -> None:
        """Fill a flat view of bytes by those from `offset` on. Raises : `cut_off`, if the file ends before."""
        at = 0
        for piece in self.pieces(offset, len(view)):
            view[at:at + len(piece)] = piece
            at += len(piece)

    def pieces(self, offset: int, n_bytes: int) -> Iterator[bytes]:
        """Iterate over the bytes from `offset` on, `piece_nbytes` at a time.

        Raises : `cut_off`, if the file ends before.
        """
        end = offset + n_bytes
        while offset < end:
            piece = self.read_at(offset, min(self.piece_nbytes, end - offset))
            if not piece:
                raise self.cut_off(offset)
            yield piece
            offset += len(piece)

    def skip_hole(self, offset: int) -> int:
        """Return the offset of the next stored bytes from `offset` on: a sparse file may be larger than any disk.

        All bytes before it are zeros.
        """
        return offset

    def refresh(self, least: int = 0) -> None:
        """Ask for the size of the file again. A file of less than `least` bytes is an error when it is read."""

    def close(self) -> None:
        """Close the file; bytes that were read stay."""


class LocalFile(ByteSource):
    """A local file, opened once.

    Parameters
    ----------
    path : str
    mode : int
        ``os.O_RDONLY`` or ``os.O_RDWR``.
    file : object, optional
        The file, if it is open already: it has a descriptor `fd`, and `close`.

    Raises
    ------
    StoreError
        It cannot be opened, or is a directory, a pipe or the like.
    """

    def __init__(self, path: str, mode: int = os.O_RDONLY, file: Any = None) -> None:
        self.path: str = path
        try:
            self._file: Any = Descriptor(path, _OPEN | mode) if file is None else file
        except OSError as exc:
            raise cannot("open", path, exc) from exc
        try:
            status = self.status()
            if not stat.S_ISREG(status.st_mode):
                raise StoreError(f"{path} is not a regular file", key=path, errno=errno.ESPIPE)
        except StoreError:
            if file is None:
                self.close()
            raise
        self.size: int = status.st_size
        self._known = identity_of(status)     # when it was opened

    @property
    def fd(self) -> int:
        """The descriptor; StoreError once it is closed."""
        fd = self._file.fd
        if fd < 0:
            raise StoreError(f"{self.path} is closed", key=self.path, errno=errno.EBADF)
        return fd

    def status(self) -> os.stat_result:
        """Return the status of the file."""
        fd = self.fd
        try:
            return os.fstat(fd)
        except OSError as exc:
            raise self.fault("look at", exc) from exc

    def read_at(self, offset: int, n_bytes: int) -> bytes:
        n_bytes = min(n_bytes, self.size - offset)
        if n_bytes <= 0:
            return b""
        fd = self.fd
        try:
            data = read_at(fd, n_bytes, offset)
        except OSError as exc:
            raise self.fault("read", exc) from exc
        if not data:
            raise self.cut_off(offset)
        return data

    def identity(self, part: object, size: int) -> Identity | None:
        status = self.status()
        digest = blake2b(f"{status.st_dev}:{part!r}".encode(), digest_size=8).digest()
        return int.from_bytes(digest), status.st_ino, size, status.st_mtime_ns, status.st_ctime_ns

    def read_into(self, offset: int, view: memoryview) -> None:
        """See `ByteSource.read_into`. Several threads read a large part."""
        # A piece has its first touch of new memory and its copy in one thread, so that both are shared.
        workers.each(lambda start: self._fill(offset + start, view[start:start + _PIECE_NBYTES]),
                     range(0, len(view), _PIECE_NBYTES), config.threads if len(view) >= _PARALLEL_NBYTES else 1)

    def _fill(self, offset, view):
        fd = self.fd
        while len(view):
            try:
                n = os.preadv(fd, [view], offset)
            except OSError as exc:
                raise self.fault("read", exc) from exc
            if n == 0:
                raise self.cut_off(offset)
            offset, view = offset + n, view[n:]

    def skip_hole(self, offset: int) -> int:
        if not sys.platform.startswith("linux"):
            # Other systems tell less, or only about bytes that have reached the disk.
            return offset
        try:
            return os.lseek(self.fd, offset, os.SEEK_DATA)
        except OSError as exc:
            # Nothing more is stored; or the file system does not tell.
            return self.size if exc.errno == errno.ENXIO else offset

    def refresh(self, least: int = 0) -> None:
        self.size = max(least, self.status().st_size)

    def close(self) -> None:
        """Close the file. Raises : StoreError, if the system finds only now that something could not be written."""
        try:
            self._file.close()
        except OSError as exc:
            raise self.fault("close", exc) from exc


class Ahead(ByteSource):
    """A source from which one range was read in advance: reads inside of it cost no request."""

    is_far = True
    piece_nbytes = FAR_NBYTES

    def __init__(self, source: ByteSource, start: int, n_bytes: int) -> None:
        self._source = source
        self.path: str = source.path
        self.size: int = source.size
        self._start, self._data = start, source.read_at(start, n_bytes)

    def read_at(self, offset: int, n_bytes: int) -> bytes:
        at = offset - self._start
        if 0 <= at and at + n_bytes <= len(self._data):
            return self._data[at:at + n_bytes]
        return self._source.read_at(offset, n_bytes)


def merged(ranges: Iterable[tuple[int, int]], max_gap: int = MAX_GAP,
           max_block: int = MAX_BLOCK) -> list[tuple[int, int, list[int]]]:
    """Return a list of (start, stop, numbers), sorted, such that each range lies in one of them, which has its number.

    Parameters
    ----------
    ranges : iterable of (start, stop)
        In any order; they may overlap.
    max_gap : int
        Most bytes between two ranges of one block.
    max_block : int
        Most bytes of a block that is merged.

    Notes
    -----
    References checklist, RF-URL-09.

    Examples
    --------
    >>> merged([(90, 100), (0, 10), (12, 20), (15, 16)], max_gap=5)
    [(0, 20, [1, 2, 3]), (90, 100, [0])]
    """
    blocks = []
    for start, stop, number in sorted((start, stop, number) for number, (start, stop) in enumerate(ranges)):
        if blocks:
            first, last, numbers = blocks[-1]
            # A range inside the block does not make it longer.
            if stop <= last or start <= last + max_gap and stop - first <= max_block:
                blocks[-1] = first, max(last, stop), numbers
                numbers.append(number)
                continue
        blocks.append((start, stop, [number]))
    return blocks
