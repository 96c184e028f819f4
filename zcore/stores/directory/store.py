"""Keys and values as the files of a directory: one key, one file, nothing else, so that any tool can copy the tree.

File system store v1.0, and the abstract store interface of the Zarr v3 core specification. Beyond the text: values
are replaced atomically, keys cannot leave the base directory or share a file, and an error is never a missing key.

Reading a small value is open, fstat, read and close. Limits are those of the system: a path has at most about 4096
bytes on Linux, 1024 on macOS and 32767 characters on Windows, a name 255; Windows and macOS ignore case unless told
otherwise (see `allow_aliases`); tools that copy to object stores take keys of up to 1024 bytes.
"""
from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from zcore import config
from zcore.buffers import flat_view
from zcore.descriptors import identity_of
from zcore.errors import KeyConflictError, NotADirectoryStoreError, StoreError
from zcore.kernel.io.documents import existing, read_first
from zcore.kernel.io.locks import ObjectLocks, locks_of
from zcore.kernel.io.new_directory import new_directory
from zcore.replacing import NO_FILE
from zcore.stores.base import OBJECTS, Directory, Folders, FoundStore, Listing, Objects, PutStore, directory_at
from zcore.stores.directory import atomic, cleanup, reading, staged
from zcore.stores.directory.reading import check_absent, is_special_file, read_file, stat_file
from zcore.stores.keys import NATIVE, POSIX, check_key, check_prefix, key_to_path, prefix_of
from zcore.stores.openers import kind_of
from zcore.text.arguments import as_bool
from zcore.trust.base_path import absolute_base, file_path

if TYPE_CHECKING:
    from typing import Any

    from zcore.stores.base import Identity
    from zcore.typing import Buffer, StrPath

# Devices whose file systems distinguish upper from lower case, as this process has found. (ext4 can switch a single
# empty directory to ignore case. If that happens after this process has examined the device, aliases go unnoticed.)
_CASE_SENSITIVE = set()
# If a path leads to one of these files, the caller means its directory.
_DOCUMENTS = frozenset(("zarr.json", ".zarray", ".zgroup", ".zattrs", "__zmeta__"))


class DirectoryStore(Folders, FoundStore, PutStore):
    """The files below a directory as keys and values.

    Parameters
    ----------
    path : str or os.PathLike
        The base directory, made absolute now. It need not exist; the first value that is set creates it.
    read_only : bool
        Refuse every change.
    fsync : bool, optional
        Return from a change only when it is on the disk; by default `zcore.config.fsync`.
    confined : bool
        Refuse keys that a symbolic link leads out of the base directory. Links are checked before the file is opened,
        so this does not protect against a process that changes them at that moment. The compiled code does not check
        links, so chunks are read and written through the store.
    allow_aliases : bool
        Where the file system ignores case, let ``FOO`` stand for the key ``foo``. Otherwise it is a missing key that
        cannot be set. On such systems only, this costs a listing of each directory on the way.
    check_base : bool
        Check now that the base is a directory. Otherwise a `get_first` that finds nothing checks it.

    Raises
    ------
    ValueError
        `path` is empty, or not a path: it holds NUL or a lone surrogate.
    NotADirectoryStoreError
        The base is a file, or lies below one.
    StoreError
        The base cannot be examined: its path is too long, or its links are a cycle.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as base:
    ...     store = DirectoryStore(base)
    ...     store.set("a/b", b"value")
    ...     print(store.get("a/b"), store.get("a/c"), list(store.list()))
    b'value' None ['a/b']
    """

    key_flavour = NATIVE

    def __init__(self, path: StrPath, read_only: bool = False, *, fsync: bool | None = None,
                 confined: bool = False, allow_aliases: bool = False, check_base: bool = True) -> None:
        path = file_path(path)
        cwd = _current_directory(path)
        self.path: str = absolute_base(path, cwd)
        if ".." in path.replace("\\", "/").split("/"):
            # Only the file system knows the parent of a linked directory.
            self.path = absolute_base(os.path.realpath(path), cwd)
        self._last_directory = "", os.fsencode(self.path)
        self.read_only: bool = as_bool(read_only, "read_only")
        self.fsync: bool = config.fsync if fsync is None else as_bool(fsync, "fsync")
        self.confined: bool = as_bool(confined, "confined")
        self.allow_aliases: bool = as_bool(allow_aliases, "allow_aliases")
        # Whether the file system ignores case: None until a key shows it.
        self._ignores_case = False if allow_aliases else None
        if as_bool(check_base, "check_base"):
            self._check_base()

    def __fspath__(self) -> str:
        """Return the base directory, for libraries that open it by its path, without options: ``xr.open_zarr(store)``.

        Raises : TypeError, if the store is `confined` or `read_only`: they would not keep to it.
        """
        if self.confined or self.read_only:
            what = "confined to its directory" if self.confined else "read-only"
            raise TypeError(f"{self!r} is {what}, as no path tells; zcore.zarr.Store hands it on to zarr-python")
        return self.path

    @classmethod
    def from_uri(cls, uri: str, **options: Any) -> DirectoryStore:
        """Return the store of a ``file:`` URI, or of a path when `uri` has no scheme.

        Raises : UnsupportedError, if the scheme is another one; ValueError, if the URI is not a valid local one.
        >>> DirectoryStore.from_uri("file:///my%20data").path
        '/my data'
        """
        from zcore.trust.file_uri import uri_to_path
        return cls(uri_to_path(uri), **options)

    @property
    def uri(self) -> str:
        """The canonical ``file:`` URI of the base directory."""
        from zcore.trust.file_uri import path_to_uri
        return path_to_uri(self.path)

    def __repr__(self) -> str:
        return f"DirectoryStore({self.path!r}{', read_only=True' if self.read_only else ''})"

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same base directory; options do not count."""
        return self.path == other.path if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), self.path))

    def __reduce__(self) -> tuple[Any, ...]:
        options = {name: getattr(self, name) for name in ("read_only", "fsync", "confined", "allow_aliases")}
        return _rebuild, (type(self), self.path, options)

    @property
    def folders(self) -> Folders:
        return self

    # Reading

    @property
    def label(self) -> str:
        return os.path.basename(self.path)

    def describe(self, path: str) -> str:
        return os.path.join(self.path, path) if path else self.path

    def directory_of(self, path: str) -> str | None:
        """Return the absolute directory of the node at `path`. It may be a link; the store's own directory is resolved.

        None in a store that is derived from this one, and does not say where its files are (`locate`).

        Raises : StoreError, if a link on its way leads out of a store that is confined.
        """
        if type(self) is not DirectoryStore and directory_at(self) is None:
            return None
        directory = self._directory_of(prefix_of(path))
        if not path:
            return os.path.realpath(directory) if os.path.islink(directory) else directory
        self._check_confined(os.path.dirname(directory), path)
        return directory

    def get_first(self, prefix: str, names: Sequence[str], limit: int) -> tuple[int, bytes, Identity] | None:
        if self.confined or self._ignores_case is True:
            return super().get_first(prefix, names, limit)
        directory, file_names = self._encoded_directory_of(prefix), _file_names(tuple(names), self.key_flavour)
        try:
            found = read_first(directory, file_names, limit)
            if found is None and len(names) > 1:
                # A node may have been replaced by one of another format, whose document was looked for before.
                found = read_first(directory, file_names, limit)
        except OSError as exc:
            raise self._fault(exc, "read", prefix + os.path.relpath(exc.filename, os.fsdecode(directory))) from exc
        if found is None:
            # The node is absent, so there is time to find out why.
            self._check_base()
            for name in names:
                self._check_absent(self._file_of(prefix + name), "read", prefix + name)
        elif not self.allow_aliases:
            self._look_up_case(prefix + names[found[0]], found[2][0])
            if self._ignores_case:
                return super().get_first(prefix, names, limit)
        return found

    def _check_absent(self, path, action, name):
        """Raise StoreError if `path`, which could not be found, is unreachable and not absent."""
        with self._faults(action, name):
            check_absent(path)

    def locks(self, path: str, document: str | None, by_files: bool = False) -> ObjectLocks:
        directory = os.path.join(self.path, path) if path else self.path
        if not by_files:
            return locks_of((directory, document), directory, document)
        from zcore.stores.directory.lock_file import NODE, PLACE, LockFile  # few programs need it

        if document is None:
            return locks_of((directory, PLACE), file=partial(LockFile, directory, PLACE))
        return locks_of((directory, document, NODE), directory, document, partial(LockFile, directory, NODE))

    def identity(self, key: str) -> Identity | None:
        status = self._stat(key)
        return None if status is None else identity_of(status)

    def extent(self, key: str) -> tuple[str, int, int | None] | None:
        return (key_to_path(self.path, key), 0, None) if self.exists(key) else None

    def locate(self, prefix: str) -> Directory | Objects:
        if self.confined:
            return OBJECTS
        return Directory(os.path.join(self.path, prefix[:-1]) if prefix else self.path)

    def exists(self, key: str) -> bool:
        return self._stat(key) is not None

    def existing(self, prefix: str, names: Sequence[str]) -> list[str]:
        if self.confined or self._ignores_case is not False:
            return super().existing(prefix, names)
        directory, file_names = self._encoded_directory_of(prefix), _file_names(tuple(names), self.key_flavour)
        try:
            return [names[i] for i in existing(directory, file_names)]
        except OSError as exc:
            key = prefix + os.path.relpath(exc.filename, os.fsdecode(directory))
            # Its message about a link says more than the system's.
            self._check_absent(exc.filename, "read", key)
            raise self._fault(exc, "read", key) from exc

    def getsize(self, key: str) -> int | None:
        status = self._stat(key)
        return None if status is None else status.st_size

    def list_dir(self, prefix: str) -> Listing:
        directory = self._directory_of(prefix)
        found = None if self._is_alias(prefix[:-1]) else self._listed(
            directory, prefix, reading.names_in, self.path if self.confined else None)
        files, directories, unreachable = found or ((), (), ())
        return Listing([prefix + name for name in files], [f"{prefix}{name}/" for name in directories],
                       [prefix + name for name in unreachable])

    def is_empty(self, prefix: str) -> bool:
        return self._listed(self._directory_of(prefix), prefix, reading.is_empty) is not False

    def _listed(self, directory, prefix, function, *arguments):
        """Return ``function(directory, *arguments)``, or None if the directory is absent."""
        self._check_confined(directory, prefix)
        try:
            return function(directory, *arguments)
        except (FileNotFoundError, NotADirectoryError):
            self._check_absent(directory, "list", prefix)
            return None
        except OSError as exc:
            raise self._fault(exc, "list", prefix) from exc

    def may_enter(self, prefix: str, entered: set[tuple[int, int]]) -> bool:
        return not prefix or reading.may_enter(self._directory_of(prefix), self.path, entered)

    def check_reachable(self, prefix: str) -> None:
        directory = self._directory_of(prefix)
        self._check_confined(directory, prefix)
        self._check_absent(directory, "look at", prefix)

    def _found(self, key, byte_range):
        """Return the bytes of the file of `key` and the identity of the descriptor they came from, or None."""
        path = self._readable_path(key)
        try:
            found = read_file(path, byte_range)
        except OSError as exc:
            raise self._fault(exc, "read", key) from exc
        if found is None:
            return None
        value, status = found
        if self._ignores_case is None:
            self._look_up_case(key, status.st_dev)
        return None if self._ignores_case is not False and self._is_alias(key) else (value, identity_of(status))

    def _stat(self, key):
        """Return the status of the file of `key`, or None when it has none."""
        path = self._readable_path(key)
        try:
            status = stat_file(path)
        except OSError as exc:
            raise self._fault(exc, "read", key) from exc
        return None if status is None or self._is_alias(key) else status

    def _readable_path(self, key):
        path = self._file_of(key)
        self._check_confined(path, key)
        return path

    # Writing

    def _put(self, key, value, exclusive):
        data = flat_view(value)
        # Of a confined store, these are also the chunks that an append writes before the new shape.
        return self._write(key, lambda path: atomic.write_file(path, data, exclusive=exclusive, fsync=self.fsync,
                                                               writes_out=self.confined))

    def _write(self, key, write):
        """Return ``write(path)``, which makes the file of a key."""
        path = self._writable_path(key)
        try:
            return write(path)
        except IsADirectoryError as exc:
            raise KeyConflictError(f"{key!r} cannot be a key of {self!r}: a directory or a broken link has its name",
                                   key=key, errno=exc.errno) from exc
        except NotADirectoryError as exc:
            raise KeyConflictError(f"{key!r} cannot be a key of {self!r}: one of its parents is not a directory",
                                   key=key, errno=exc.errno) from exc
        except OSError as exc:
            raise self._fault(exc, "write", key) from exc

    def set_at(self, directory: int, key: str, value: Buffer) -> None:
        self._check_writable("set", key)
        self._write(key, lambda path: atomic.write_file_at(directory, os.path.basename(path), flat_view(value),
                                                           fsync=self.fsync))

    def check_no_special(self, prefix: str, names: Sequence[str]) -> None:
        for name in names:
            key = prefix + name
            path = self._file_of(key)
            # A link that leads out is replaced, so only its directory counts.
            self._check_confined(os.path.dirname(path), key)
            with self._faults("look at", key):
                if is_special_file(path):
                    raise StoreError(f"{key!r} of {self!r} is neither a file nor a directory: it is not replaced",
                                     key=key, errno=errno.ESPIPE)

    def list_special(self, prefix: str) -> Iterator[str]:
        pending = [prefix]
        while pending:
            found = self.list_dir(pending.pop())
            pending += [below for below in reversed(found.prefixes) if not self.is_link(below)]
            yield from [key for key in found.unreachable if self._is_special(key)]

    def _is_special(self, key):
        """Return whether `erase` refuses what has the name of an unreachable key."""
        path = self._file_of(key)
        if self.confined and not reading.lies_in(path, self.path):
            # A link, which is removed and not followed.
            return False
        try:
            return is_special_file(path)
        except OSError:
            return not os.path.islink(path)

    def make_directory(self, prefix: str) -> None:
        self._check_writable("make_directory", prefix)
        check_prefix(prefix, self.key_flavour)
        directory = self._writable_path(prefix[:-1]) if prefix else self.path
        # Unlike a file, a directory that is a link is not replaced.
        self._check_confined(directory, prefix)
        with self._faults("make", prefix):
            try:
                atomic.make_directories(directory, self.fsync)
            except NotADirectoryError as exc:
                raise KeyConflictError(f"{directory} cannot be a directory: it, or a part of its path, is a file or a "
                                       "broken link", key=prefix, errno=exc.errno) from exc

    def make_directory_with(self, prefix: str, names: Sequence[str], values: Sequence[bytes],
                            is_locked: bool, above: str | None) -> Identity | tuple[()] | None:
        self._check_writable("make_directory_with", prefix)
        directory = self._directory_of(prefix)
        if self._ignores_case is None:
            with contextlib.suppress(OSError):
                if os.stat(os.path.dirname(directory)).st_dev in _CASE_SENSITIVE:
                    self._ignores_case = False
        if self.fsync or self.confined or self._ignores_case is not False:
            return None
        return new_directory(os.fsencode(directory), _file_names(tuple(names), self.key_flavour), tuple(values),
                             is_locked, None if above is None else _file_names((above,), self.key_flavour)[0])

    def _writable_path(self, key):
        path = self._file_of(key)
        self._check_confined(os.path.dirname(path), key)
        if self._ignores_case is not False:
            self._check_spelling(key)
        return path

    # Removing

    def erase(self, key: str) -> None:
        self._check_writable("erase", key)
        self._remove(key, cleanup.remove_file)

    def move(self, source: str, destination: str, last: Sequence[str] = (),
             renewed: Callable[[bytes], bytes] | None = None) -> None:
        self._check_writable("move", source)
        old, new = self._directory_of(source), self._directory_of(destination)
        self._check_confined(old, source)
        self._check_confined(os.path.dirname(new), destination)
        self.make_directory(prefix_of(destination.rstrip("/").rpartition("/")[0]))
        try:
            os.rename(old, new)
            if self.fsync:
                atomic.sync_directory(os.path.dirname(new))
        except OSError as exc:
            if exc.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                raise KeyConflictError(f"{destination!r} of {self!r} is not free", key=destination,
                                       errno=exc.errno) from exc
            raise self._fault(exc, "move", source) from exc

    def prune(self, prefix: str, below: bool = False) -> None:
        self._check_writable("prune", prefix)
        directory = self._directory_of(prefix)
        if prefix and not (self.confined and not reading.lies_in(directory, self.path)):
            if below and not os.path.islink(directory):
                cleanup.remove_empty_below(directory)
            cleanup.prune(directory, self.path)

    def is_link(self, prefix: str) -> bool:
        return bool(prefix) and os.path.islink(self._directory_of(prefix))

    def leads_up(self, prefix: str) -> bool:
        return bool(prefix) and reading.leads_up(self._directory_of(prefix), self.path)

    def erase_prefix(self, prefix: str) -> None:
        self._check_writable("erase_prefix", prefix)
        check_prefix(prefix, self.key_flavour)
        if prefix:
            self._remove(prefix[:-1], cleanup.remove_directory)
            return
        with self._faults("erase", prefix):
            cleanup.remove_below(self.path)

    def delete(self, key: str) -> None:
        self._check_writable("delete", key)
        self._remove(key, cleanup.remove)

    def _remove(self, key: str, remove: Callable[[str], None]):
        """Call ``remove(path)`` for the path of `key`, then remove the parents that are empty."""
        path = self._file_of(key)
        directory = os.path.dirname(path)
        self._check_confined(directory, key)
        if self.confined and not reading.lies_in(path, self.path):
            # A link that leads out is unreachable, so the link itself is removed.
            remove = os.unlink
        if self._is_alias(key):
            return
        with self._faults("erase", key):
            try:
                remove(path)
                if self.fsync:
                    atomic.sync_directory(directory)
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return
        cleanup.prune(directory, self.path)

    def clean_temporary(self, older_than: float = 3600.0) -> int:
        """Remove the temporary files that killed writers left behind, and return their number.

        Parameters
        ----------
        older_than : float
            Seconds since the last write to a file. A running writer that loses its file fails, or starts again.
        """
        self._check_writable("clean_temporary")
        from time import time
        with self._faults("clean", ""):
            return cleanup.remove_temporary(self.path, time() - older_than, partial(staged.recover, removes=True))

    # One key, one file

    def _file_of(self, key):
        return key_to_path(self.path, key, self.key_flavour)

    def _directory_of(self, prefix):
        check_prefix(prefix, self.key_flavour)
        return self._file_of(prefix[:-1]) if prefix else self.path

    def _encoded_directory_of(self, prefix):
        """Return the directory of a prefix as bytes. A node that is opened needs that of the same prefix twice."""
        last = self._last_directory
        if last[0] != prefix:
            last = self._last_directory = prefix, os.fsencode(self._directory_of(prefix))
        return last[1]

    def _check_base(self):
        try:
            mode = os.stat(self.path).st_mode
        except FileNotFoundError:
            return
        except NotADirectoryError:
            mode = 0
        except OSError as exc:
            raise self._fault(exc, "open", "") from exc
        if not stat.S_ISDIR(mode):
            advice = _advice_for(self.path)
            raise NotADirectoryStoreError(f"{self.path!r}: expected a directory, found a file{advice}",
                                          errno=errno.ENOTDIR)

    def _check_confined(self, path, key):
        if self.confined and not reading.lies_in(path, self.path):
            raise StoreError(f"{key!r}: a symbolic link leads out of {self!r}, which is confined",
                             key=key, errno=errno.ELOOP)

    def _look_up_case(self, key, device):
        """Find out whether the file system ignores case. Only that a device does not is kept."""
        if device in _CASE_SENSITIVE:
            self._ignores_case = False
        else:
            # The device may have been mounted since the store was made.
            self._ignores_case = None
            self._is_alias(key)
            if self._ignores_case is False:
                _CASE_SENSITIVE.add(device)

    def _is_alias(self, key):
        """Return whether the file of `key` has another spelling."""
        if self._ignores_case is False or not key:
            return False
        with self._faults("list the directories of", key):
            if self._ignores_case is None:
                self._ignores_case = reading.ignores_case(self._directory_of, key)
            return bool(self._ignores_case) and not reading.is_spelled_so(self._directory_of, key)

    def _check_spelling(self, key):
        """Raise KeyConflictError when setting `key` would reach files of another spelling."""
        existing = key
        while existing and not os.path.lexists(self._directory_of(existing + "/")):
            existing = existing.rpartition("/")[0]
        if existing and self._is_alias(existing):
            raise KeyConflictError(
                f"{key!r} cannot be a key of {self!r}: {existing!r} is there in another spelling, and the file system "
                "ignores case", key=key, errno=errno.EEXIST)

    @contextlib.contextmanager
    def _faults(self, action, key):
        """Raise the errors of the system as a StoreError."""
        try:
            yield
        except StoreError:
            raise
        except OSError as exc:
            raise self._fault(exc, action, key) from exc

    def _fault(self, exc, action, key):
        what = f"{key!r} of {self!r}" if key else self.path
        # The system's messages are "illegal seek" and "no such device".
        reason = NO_FILE if exc.errno in (errno.ESPIPE, errno.ENXIO) else exc.strerror or exc
        return StoreError(f"cannot {action} {what}: {reason}", key=key, errno=exc.errno)


def _current_directory(path):
    """Return the directory that `path` is relative to, ``""`` when it is absolute."""
    if path[:1] == "/" and NATIVE == POSIX:
        return ""
    try:
        return os.getcwd()
    except FileNotFoundError as exc:
        raise StoreError(f"{path!r} is relative to the current directory, which is gone", errno=exc.errno) from exc


@lru_cache(maxsize=64)
def _file_names(names, flavour):
    """Return the file names of keys; documents have the same names in every directory."""
    return tuple([os.fsencode(check_key(name, flavour)) for name in names])


def _advice_for(path):
    """Return what helps a caller who has given the path of a file, or one below a file, in the place of a directory."""
    above, inside = path, []
    while not os.path.lexists(above):
        above, _, name = above.rpartition(os.sep)
        inside.append(name)
    if above.rpartition(os.sep)[2] in _DOCUMENTS:
        return "; it is the document of a node: open the directory that it is in"
    kind = kind_of(above)
    if kind is None or not kind.advice:
        return ""
    if not inside:
        return f"; {kind.advice}"
    if kind.opener:
        return f"; {above!r} is one: its members are opened by path={'/'.join(inside[::-1])!r}"
    return f"; {above!r} is one: {kind.advice}"


def _rebuild(cls, path, options):
    # The first access checks that the base is a directory.
    return cls(path, check_base=False, **options)
