"""Write a zip archive: members one after the other in a temporary file, the directory at the end.

The file gets the archive's name when it is complete. A value that is replaced or erased is left out of the directory;
its bytes stay in the file, unused.
"""
from __future__ import annotations

import contextlib
import errno
import os
import zipfile

from zcore.errors import StoreError
from zcore.kernel.io.holds import ObjectLocks
from zcore.stores.forks import renew_in_children
from zcore.stores.keys import TEMPORARY
from zcore.stores.zip.members import Member

_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
# Equal values in the same sequence make equal archives.
_NO_TIME = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100644


class ZipWriter:
    """The file of a new archive.

    Parameters
    ----------
    path : str
        Absolute.
    exclusive : bool
        Refuse to replace a file of this name.
    method : {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}

    Raises
    ------
    StoreError
        A file has this name already, or none can be made.
    """

    def __init__(self, path, exclusive, method):
        self.locks = ObjectLocks()
        self._path = path
        self._exclusive = exclusive
        self._method = method
        self._fault = self._errno = None
        self._temporary = os.path.join(os.path.dirname(path), TEMPORARY + os.urandom(8).hex())
        if os.path.isdir(path) or (exclusive and os.path.lexists(path)):
            raise StoreError(f"{path} exists already", errno=errno.EEXIST)
        try:
            fd = os.open(self._temporary, _CREATE, 0o666)
        except OSError as exc:
            raise StoreError(f"cannot make {path}: {exc.strerror}", errno=exc.errno) from exc
        self._file = os.fdopen(fd, "w+b")
        self._archive = zipfile.ZipFile(self._file, "w", method)
        renew_in_children(self)

    @property
    def is_open(self):
        """Whether there is a file that is neither finished nor removed."""
        return self._temporary is not None

    def fileno(self):
        """Return the descriptor of the file, to read members from."""
        self.check()
        return self._file.fileno()

    def check(self):
        """Raise StoreError if the archive was given up or closed."""
        if self._fault is not None:
            raise StoreError(f"{self._path}: {self._fault}", errno=self._errno)

    def append(self, key, data):
        """Write a member, and return it. The caller holds the lock."""
        self.check()
        info = zipfile.ZipInfo(key, _NO_TIME)
        info.compress_type = self._method
        info.external_attr = _MODE << 16
        # `zipfile` would warn of a second member of this name. The directory gets only the last one.
        self._archive.NameToInfo.pop(key, None)
        try:
            self._archive.writestr(info, data)
            self._file.flush()
        except BaseException as exc:
            # It is unknown where the last whole member ends.
            self._fault = f"the archive was given up when a write failed: {exc!r:.200}"
            if not isinstance(exc, OSError):
                raise
            self._errno = exc.errno
            raise StoreError(f"{self._path}: cannot write {key!r}: {exc.strerror}", key=key, errno=exc.errno) from exc
        offset = self._archive.start_dir - info.compress_size
        return Member(info.header_offset, offset, info.compress_size, info.file_size, info.CRC,
                      self._method == zipfile.ZIP_DEFLATED, None)

    def finish(self, members):
        """Write the directory of these members and give the file its name; the caller holds the lock."""
        try:
            self.check()
            headers = {member.header for member in members}
            self._archive.filelist = [info for info in self._archive.filelist if info.header_offset in headers]
            try:
                self._archive.close()
                self._file.close()
                if self._exclusive:
                    os.link(self._temporary, self._path)
                else:
                    os.replace(self._temporary, self._path)
            except OSError as exc:
                raise StoreError(f"cannot finish {self._path}: {exc.strerror}", errno=exc.errno) from exc
        finally:
            # Removes the temporary name after a link.
            self.discard()

    def discard(self):
        """Remove the temporary file."""
        if self._temporary is not None:
            self._leave()
            with contextlib.suppress(OSError):
                os.unlink(self._temporary)
            self._temporary = None
            self._fault = self._fault or "the archive is closed"

    def _leave(self):
        # `zipfile` would write the directory when its object is deleted.
        self._archive.fp = None
        with contextlib.suppress(OSError):
            self._file.close()

    def _renew_locks(self):
        # In a forked child: the file belongs to the parent and stays.
        if self._temporary is not None:
            self._leave()
            self._temporary = None
            self._fault = "the archive is written by the process that this one was forked from"
