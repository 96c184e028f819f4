"""The local file of an ASDF file, opened once: read by ranges, and locked while it is changed.

A file that is changed is the one that the handle knows: its name leads to it, and nobody has written to it. Else other
handles would write over each other's blocks, or into a file that has been replaced.
"""
from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING

from zcore import config
from zcore.descriptors import identity_of
from zcore.errors import AsdfFormatError, LockError, NodeNotFoundError, StoreError, ZcoreError
from zcore.kernel.io.locks import locks_of
from zcore.ranges import LocalFile

if TYPE_CHECKING:
    from collections.abc import Iterator

_NO_LOCKS = frozenset((errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP))


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


class FileSource(LocalFile):
    """A file that is read, and with `writable` written to, by position.

    Parameters
    ----------
    path : str
    writable : bool

    Raises
    ------
    NodeNotFoundError
        There is no file.
    StoreError
        It cannot be opened, or is a directory, a pipe or the like.
    """

    def __init__(self, path: str, writable: bool = False) -> None:
        try:
            super().__init__(path, os.O_RDWR if writable else os.O_RDONLY)
        except StoreError as exc:
            if exc.errno != errno.ENOENT:
                raise
            raise NodeNotFoundError(f"there is no file {path}", path=path, format="asdf") from exc

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
                self._known = identity_of(self.status())

    def is_changed(self) -> bool:
        """Return whether another program or handle has changed or replaced the file since it was opened."""
        try:
            return identity_of(os.stat(self.path)) != self._known
        except OSError:
            return True

    def note_change(self) -> None:
        """Give the file another time of change than the one that is known, which the clock may not have left yet."""
        status = self.status()
        if identity_of(status) == self._known:
            with contextlib.suppress(OSError):
                os.utime(self.fd, ns=(status.st_atime_ns, status.st_mtime_ns + 1))

    @contextlib.contextmanager
    def writing(self) -> Iterator[int]:
        """Return a context manager of the descriptor, in which an error of the system becomes a StoreError."""
        try:
            yield self.fd
        except ZcoreError:
            raise
        except OSError as exc:
            raise self.fault("write", exc) from exc

    def cut_off(self, offset: int) -> AsdfFormatError:
        return AsdfFormatError(f"the file has no byte {offset} any more: another program has made it shorter since it "
                               "was opened", place=self.path, path=self.path, offset=offset)
