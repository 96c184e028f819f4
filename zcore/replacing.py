"""Replaces a file in one step: the new one is built beside it under a hidden name, made whole, and renamed.

A reader finds the old file or the new one. A kill leaves one of them, and at most the hidden name beside it; so does a
power cut, as the data of the new file are written out before its name is changed (`zcore.kernel.io.files`). The new one
gets the mode of the old one, and its owner and group where the system allows it, and never more than that mode
before. A link is followed, so the file that it leads to is replaced and the link stays; keys of stores are
not followed.

Files are replaced here and nowhere else, apart from chunks and documents of nodes that are held
(`zcore.kernel.io.files`). Directories are replaced by `zcore.stores.directory.staged`. Errors are those of the system;
the callers convert them.
"""
from __future__ import annotations

import contextlib
import errno
import os
from stat import S_IMODE, S_ISDIR, S_ISREG
from typing import TYPE_CHECKING

from zcore.descriptors import duplicate, open_descriptor
from zcore.kernel.io.documents import Descriptor
from zcore.kernel.io.files import TEMP_PREFIX, barrier, write_out

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zcore.typing import StrPath

NO_FILE = "it is neither a file nor a directory"
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class NewFile:
    """A file under a hidden name. `commit` gives it the name `path`; without that it is removed.

    Parameters
    ----------
    path : str
    follows : bool
        If `path` is a link, replace what it leads to.
    fsync : bool
        The file and its name are on the disk when `commit` returns.
    writes_out : bool
        If false, a file that replaces nothing may be there without its data after a power cut.
    label : str
        Part of the hidden name.

    Attributes
    ----------
    path : str
        The name that the file gets.
    temporary : str or None
        The hidden name; None if the file does not have it any more.
    fd : int
        A descriptor for reading and writing.

    Raises
    ------
    IsADirectoryError
        `path` is a directory.
    OSError
        ESPIPE: it is a device, a FIFO or a socket, which root could replace for the whole system.
    """

    temporary: str | None = None
    _file = None

    def __init__(self, path: StrPath, *, follows: bool = True, fsync: bool = False, writes_out: bool = True,
                 label: str = "") -> None:
        self.path: str = os.path.realpath(path) if follows else os.fspath(path)
        self._fsync = fsync
        self._writes_out = writes_out
        self._owner = os.getpid()
        self._old = status_of(self.path, refuses_devices=follows)
        # Noted before it is made, as Ctrl-C may come between the two.
        self.temporary = hidden_beside(self.path, label)
        try:
            self._file = Descriptor(self.temporary, _CREATE, mode_for(self._old, 0o666))
        except BaseException:
            self.discard()
            raise

    @property
    def fd(self) -> int:
        """The descriptor; -1 once it is closed."""
        return self._file.fd

    def commit(self, exclusive: bool = False) -> None:
        """Give the file its name. Raises : FileExistsError, if something has the name, and `exclusive`."""
        fd = self._file.fd
        if self._old is not None:
            keep(fd, os.fstat(fd), self._old)
        if self._writes_out or self._fsync or self._old is not None:
            write_out(fd)
        # A network file system reports a full disk when a descriptor is closed. The other one may hold a lock.
        os.close(duplicate(fd))
        _name(self.temporary, self.path, exclusive, self._fsync)
        self.temporary = None

    def discard(self) -> None:
        """Close the file, and remove it if it has its hidden name. A fork leaves it to the process that made it."""
        if self.temporary is not None and os.getpid() == self._owner:
            # Before it is closed: a lock on it may tell others that its writer lives.
            with contextlib.suppress(OSError):
                os.unlink(self.temporary)
        self.temporary = None
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()

    __del__ = discard


@contextlib.contextmanager
def replacing(path: StrPath, *, follows: bool = True, fsync: bool = False) -> Iterator[NewFile]:
    """Return a context manager of a `NewFile`, which is put in place at the end of a block without an error."""
    new = NewFile(path, follows=follows, fsync=fsync)
    try:
        yield new
        new.commit()
    finally:
        new.discard()


def hidden_beside(path: str, label: str = "") -> str:
    """Return a new hidden name in the directory of `path`."""
    return os.path.join(os.path.dirname(path), f"{TEMP_PREFIX}{label}{os.urandom(8).hex()}")


def status_of(path: str, refuses_devices: bool = True) -> os.stat_result | None:
    """Return the status of the file at `path`, or None if there is none.

    Raises : IsADirectoryError; with `refuses_devices`, OSError (ESPIPE), if it is neither a file nor a directory.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    if S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not S_ISREG(status.st_mode):
        if refuses_devices:
            raise OSError(errno.ESPIPE, NO_FILE, path)
        return None
    return status


def mode_for(old: os.stat_result | None, mode: int) -> int:
    """Return the mode to make a file or directory with that replaces an old one: its own user can write it."""
    return mode if old is None else S_IMODE(old.st_mode) | mode & 0o700


def keep(new: int | str, status: os.stat_result, old: os.stat_result) -> None:
    """Give a new file or directory of a certain status the mode, and if allowed the owner and group, of an old one."""
    mode = S_IMODE(old.st_mode)
    if (old.st_uid, old.st_gid) != (status.st_uid, status.st_gid):
        try:
            os.chown(new, old.st_uid, old.st_gid)
        except OSError:
            try:
                os.chown(new, -1, old.st_gid)
            except OSError:
                mode = mode & ~0o070 | (mode & 0o007) << 3     # another group gets no more than all others
    if mode != S_IMODE(status.st_mode):
        os.chmod(new, mode)


def commit(temporary: str, path: str, *, exclusive: bool = False, fsync: bool = False) -> None:
    """Give a file that others have written, in the directory of `path` or below it, the name `path`.

    Raises : FileExistsError, if something has the name, and `exclusive`.
    """
    fd = open_descriptor(temporary, os.O_RDONLY | os.O_CLOEXEC)
    try:
        write_out(fd)
    finally:
        os.close(fd)
    _name(temporary, path, exclusive, fsync)


def _name(temporary, path, exclusive, fsync):
    if exclusive:
        os.link(temporary, path)
        os.unlink(temporary)
    else:
        os.replace(temporary, path)
    if fsync:
        sync_directory(os.path.dirname(path))


def sync_directory(directory: str) -> None:
    """Write the names in `directory` to the disk; does nothing where directories cannot be opened (Windows).

    A directory that was pruned meanwhile has no names.
    """
    if os.name == "nt":
        return
    try:
        fd = open_descriptor(directory, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        barrier(fd)
    finally:
        os.close(fd)
