"""The open file of an ASDF file: opened once, read by position, never beyond its end.

A file that is changed is locked meanwhile, and is the one that the handle knows: its name leads to it, and nobody has
written to it. Else other handles would write over each other's blocks, or into a file that has been replaced.
"""
from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from typing import TYPE_CHECKING

from zcore import config, workers
from zcore.descriptors import identity_of
from zcore.errors import AsdfFormatError, LockError, NodeNotFoundError, StoreError
from zcore.kernel.io.documents import Descriptor, Tickets
from zcore.kernel.io.object_locks import locks_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    class Source(Protocol):
        """What the parts of a file are read from: a `FileSource`, or a file at a service."""

        @property
        def size(self) -> int: ...
        @property
        def is_far(self) -> bool: ...
        def read(self, offset: int, n_bytes: int) -> bytes: ...
        def skip_hole(self, offset: int) -> int: ...
        def pieces(self, offset: int, n_bytes: int, piece_nbytes: int) -> Iterator[bytes]: ...

_PIECE_NBYTES = 1 << 22               # that one thread reads at a time
_PARALLEL_NBYTES = 1 << 23            # from which on a second thread pays
_NO_LOCKS = frozenset((errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP))
_OPEN = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


@contextlib.contextmanager
def held(path: str, is_needed: bool = False) -> Iterator[None]:
    """Return a context manager that holds the lock of a file, if there is one, unless `zcore.config.lock` is "off".

    Parameters
    ----------
    path : str
    is_needed : bool
        Whether it is an error when the file cannot be locked: LockError, and StoreError without a file.
    """
    directory, name = os.path.split(os.path.realpath(path))
    with contextlib.ExitStack() as stack:
        if config.lock != "off":
            try:
                stack.enter_context(locks_of(("asdf", directory, name), directory, name).whole())
            except FileNotFoundError as exc:
                if is_needed:
                    raise changed(path) from exc
            except LockError as exc:
                # Locks of files that lie beside it, `lock="file"`, are those of stores.
                if exc.errno == errno.EDEADLK or is_needed and (config.lock == "on" or exc.errno not in _NO_LOCKS):
                    raise
        yield


def changed(path: str) -> StoreError:
    """Return the error for a file that is not the one that was opened."""
    return StoreError(f"{path} was changed by another program since it was opened, or through another handle; open it "
                      "again", key=path, errno=errno.ESTALE)


class FileSource:
    """A file that is read, and with `writable` written to, by position.

    Parameters
    ----------
    path : str
    writable : bool

    Attributes
    ----------
    is_far : bool
        False: a read costs little. Where it is a request, an index is trusted as far as the text of the format asks.

    Raises
    ------
    NodeNotFoundError
        There is no file.
    StoreError
        It cannot be opened, or is a directory, a pipe or the like.
    """

    is_far: bool = False

    def __init__(self, path: str, writable: bool = False) -> None:
        self.path: str = path
        self.is_writable: bool = writable
        try:
            self._file = Descriptor(path, _OPEN | (os.O_RDWR if writable else os.O_RDONLY))
        except FileNotFoundError as exc:
            raise NodeNotFoundError(f"there is no file {path}", path=path, format="asdf") from exc
        except OSError as exc:
            raise self.fault("open", exc) from exc
        try:
            status = self._status()
            if not stat.S_ISREG(status.st_mode):
                raise StoreError(f"{path} is not a regular file", key=path, errno=errno.ESPIPE)
        except BaseException:
            self.close()
            raise
        self.size: int = status.st_size
        self._known = identity_of(status)

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Return a context manager that holds the lock of the file, in which this handle may change it.

        Raises : StoreError, if another program or handle has changed or replaced it; LockError.
        """
        with held(self.path, is_needed=True):
            if self.is_changed():
                raise changed(self.path)
            try:
                yield
            finally:
                self._known = identity_of(self._status())

    def is_changed(self) -> bool:
        """Return whether another program or handle has changed or replaced the file since it was opened."""
        try:
            return identity_of(os.stat(self.path)) != self._known
        except OSError:
            return True

    def note_change(self) -> None:
        """Give the file another time of change than the one that is known, which the clock may not have left yet."""
        status = self._status()
        if identity_of(status) == self._known:
            with contextlib.suppress(OSError):
                os.utime(self.fd, ns=(status.st_atime_ns, status.st_mtime_ns + 1))

    @property
    def fd(self) -> int:
        """The descriptor; StoreError once it is closed."""
        fd = self._file.fd
        if fd < 0:
            raise StoreError(f"{self.path} is closed", key=self.path, errno=errno.EBADF)
        return fd

    def fault(self, operation: str, exc: OSError) -> StoreError:
        """Return the error for an OSError."""
        return StoreError(f"cannot {operation} {self.path}: {exc.strerror or exc}", key=self.path, errno=exc.errno)

    def refresh(self, least: int = 0) -> None:
        """Ask for the size of the file again. A file of less than `least` bytes is an error when it is read."""
        self.size = max(least, self._status().st_size)

    def _status(self):
        try:
            return os.fstat(self.fd)
        except OSError as exc:
            if isinstance(exc, StoreError):
                raise
            raise self.fault("look at", exc) from exc

    def close(self) -> None:
        """Close the file; bytes that were read stay.

        Raises : StoreError, if the system finds only now that something could not be written.
        """
        try:
            self._file.close()
        except OSError as exc:
            raise self.fault("close", exc) from exc

    def read(self, offset: int, n_bytes: int) -> bytes:
        """Return the bytes from `offset` on, fewer than `n_bytes` where the file ends.

        Raises : AsdfFormatError, if it has become so short that there is none.
        """
        end = min(offset + n_bytes, self.size)
        if offset >= end:
            return b""
        part = self._read_once(offset, end - offset)
        if not part:
            raise self._cut_off(offset)
        if len(part) == end - offset:
            return part
        parts = [part]
        offset += len(part)
        # The system may read less at once, and the file may have been cut off.
        while part and offset < end:
            part = self._read_once(offset, end - offset)
            parts.append(part)
            offset += len(part)
        return b"".join(parts)

    def _read_once(self, offset, n_bytes):
        fd = self.fd
        try:
            return os.pread(fd, n_bytes, offset)
        except OSError as exc:
            raise self.fault("read", exc) from exc

    def _cut_off(self, offset):
        return AsdfFormatError(f"the file has no byte {offset} any more: another program has made it shorter since it "
                               "was opened", place=self.path, path=self.path, offset=offset)

    def skip_hole(self, offset: int) -> int:
        """Return the offset of the next stored bytes from `offset` on: a sparse file may be larger than any disk.

        All bytes before it are zeros.
        """
        if not sys.platform.startswith("linux"):
            # Other systems tell less, or only about bytes that have reached the disk.
            return offset
        try:
            return os.lseek(self.fd, offset, os.SEEK_DATA)
        except OSError as exc:
            # Nothing more is stored; or the file system does not tell.
            return self.size if exc.errno == errno.ENXIO else offset

    def read_into(self, offset: int, view: memoryview) -> None:
        """Fill a flat view of bytes by those from `offset` on; large ones by several threads.

        Raises : AsdfFormatError, if the file ends before.
        """
        n_bytes = len(view)
        if n_bytes < _PARALLEL_NBYTES or config.threads == 1:
            self._fill(offset, view)
            return
        # A piece has its first touch of new memory and its copy in one thread, so that both are shared.
        numbers, stopped = Tickets(), []

        def work(_):
            while not stopped:
                start = (numbers.next() - 1) * _PIECE_NBYTES
                if start >= n_bytes:
                    return
                self._fill(offset + start, view[start:start + _PIECE_NBYTES])

        workers.run(work, min(config.threads, -(-n_bytes // _PIECE_NBYTES)), lambda: stopped.append(True))

    def _fill(self, offset, view):
        fd = self.fd
        while len(view):
            try:
                n = os.preadv(fd, [view], offset)
            except OSError as exc:
                raise self.fault("read", exc) from exc
            if n == 0:
                raise self._cut_off(offset)
            offset, view = offset + n, view[n:]

    def pieces(self, offset: int, n_bytes: int, piece_nbytes: int) -> Iterator[bytes]:
        """Iterate over the bytes from `offset` on, `piece_nbytes` at a time.

        Raises : AsdfFormatError, if the file ends before.
        """
        end = offset + n_bytes
        while offset < end:
            piece = self.read(offset, min(piece_nbytes, end - offset))
            if not piece:
                raise self._cut_off(offset)
            yield piece
            offset += len(piece)
