"""Replaces and deletes nodes in one step, where the store is a directory: by a directory beside it (`StagedDirectory`).

Readers and writers that have begun go on in the old directory, which each of their calls has opened once. No later call
finds it by its name.

Files that belong to no node stay. They get second names (hard links) in the new directory before it has its name. What
the new nodes would take for their own is left by lost nodes, and goes.
"""
from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from typing import TYPE_CHECKING

from zcore.errors import NodeExistsError, NodeNotFoundError, StoreError
from zcore.formats import FORMAT_OF
from zcore.hierarchy import consolidated, lookup
from zcore.hierarchy.creation_lock import Place, hold_nodes, is_held
from zcore.hierarchy.ownership import role_of
from zcore.model.metadata import GroupMetadata
from zcore.stores.directory import cleanup
from zcore.stores.directory.staged import StagedDirectory, faults
from zcore.stores.directory.store import DirectoryStore
from zcore.stores.keys import is_temporary, prefix_of

if TYPE_CHECKING:
    from zcore.engine.options import Options
    from zcore.stores.base import Store

_MAX_TRIES = 100
_MAX_KEPT = 10_000      # files of others that get second names
# Errors of `os.link` on file systems without second names, or for files of others.
_NO_LINKS = frozenset((errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV,
                       errno.EACCES))
_GONE = FileNotFoundError, NotADirectoryError


class NoExchangeError(StoreError):
    """A directory cannot be replaced as a whole. Nothing was changed."""


def directory_of(store: Store, path: str) -> str | None:
    """Return the directory of the node at `path`, there or not, if another one can take its name; else None.

    It cannot be a link, a mount, or a directory above the current one, which others know.
    """
    directory = store.folders.directory_of(path)
    if directory is None:
        return None
    try:
        if (os.path.islink(directory) or os.path.ismount(directory)
                or not all([os.access(one, os.W_OK | os.X_OK) for one in (directory, os.path.dirname(directory))
                            if os.path.lexists(one)])):
            return None
        here = os.path.realpath(os.getcwd())
    except OSError:
        return directory
    return None if f"{here}/".startswith(f"{os.path.realpath(directory)}/") else directory


def delete(store: Store, path: str, directory: str, options: Options) -> bool:
    """Delete the node at `path`, with all below it; return whether this call has done that. See `deletion.delete`.

    Raises : NoExchangeError, if that is impossible, as files that belong to no node cannot have second names.
    """
    with (consolidated.dropped(store, path, itself=True),
          Place(store, path, "", options, is_kept=True, makes=False) as place):
        found = [] if place is None else lookup.documents_at(store, path)
        if not found:
            return False     # another call was faster
        with StagedDirectory(directory, store.fsync) as work:
            try:
                _replace(store, found, directory, work, options)
            except NodeNotFoundError as error:
                if lookup.documents_at(store, path):
                    raise NoExchangeError(f"{store.describe(path)} cannot be locked", key=path) from error
                return False     # another call has deleted it
            except StoreError:
                if work.is_here():
                    raise
                return False     # a group above was moved
    return True


def commit(store: Store, path: str, work: StagedDirectory, options: Options, overwrite: bool = True) -> None:
    """Give a directory that was built beside that of `path` its name. With `overwrite`, a node there goes.

    Raises
    ------
    NodeExistsError
        There is a node, and `overwrite` is false; or something that is no node.
    NoExchangeError
        See `delete`.
    """
    with contextlib.suppress(NodeExistsError):
        work.commit(False)     # no lock file lies in the place yet
        return
    for _ in range(_MAX_TRIES):
        with (contextlib.suppress(NodeNotFoundError),
              Place(store, path, "", options, is_kept=True, makes=False) as place):
            found = [] if place is None else lookup.documents_at(store, path, lookup.pass_over_damage)
            if found and not overwrite:
                raise NodeExistsError(f"a node was created at {store.describe(path)} meanwhile", path=path)
            if found:
                _replace(store, found, work.place, work, options)
            else:
                work.commit(False)
            return
    raise StoreError(f"{store.describe(path)} is replaced as soon as it is looked at", key=path)


def _replace(store, found, directory, work, options):
    """Replace a directory by that in `work`, or by nothing. `found`: the nodes of the directory itself."""
    kept = []
    if not os.path.islink(directory):     # else it goes, and all stays that it leads to
        old = _Belongings(directory, options)
        others = old.others()
        new = _Belongings(work.node) if others else None
        for name, is_special in others:
            if name in old.sets or not new.owns(name):
                kept.append(name)
            elif is_special:
                raise _not_erased(directory, name)
        if len(kept) > _MAX_KEPT:
            raise NoExchangeError(f"{len(kept)} files in {directory} belong to no node; move them away", key=directory)
    # Who changes the document may write other files by their paths, so it is locked.
    with hold_nodes(store, found, options):
        _link(directory, work.node, kept)
        work.commit(True)


def check_removable(directory: str) -> None:
    """Raise StoreError if a directory cannot be emptied, or one below."""
    try:
        cleanup.check_removable(directory)
    except OSError as exc:
        raise StoreError(f"cannot replace {directory}: {exc.filename} cannot be listed or emptied: {exc.strerror}",
                         key=directory, errno=exc.errno) from exc


def _not_erased(directory, name):
    return StoreError(f"{os.path.join(directory, name)} is neither a file nor a directory: it is not erased, and "
                      "nothing was changed", key=name, errno=errno.ESPIPE)


def _link(source, target, names):
    """Give files, links and empty directories below one directory second names below another."""
    made = []
    try:
        for name in names:
            old, new = os.path.join(source, name), os.path.join(target, name)
            parts = name.split("/")
            if is_directory := stat.S_ISDIR(os.lstat(old).st_mode):
                parts.append("")
            for above in ["/".join(parts[:n]) for n in range(len(parts))]:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(os.path.join(target, above))
                    made.append(above)
            if not is_directory:
                os.link(old, new, follow_symlinks=False)
        for above in reversed(made):
            old, new = os.path.join(source, above), os.path.join(target, above)
            status = os.stat(old)
            if (status.st_uid, status.st_gid) != (os.stat(new).st_uid, os.stat(new).st_gid):
                os.chown(new, status.st_uid, status.st_gid)
            shutil.copystat(old, new)
    except (FileExistsError, NotADirectoryError) as exc:
        raise StoreError(f"{name!r} in {source} belongs to no node, and is in the way of the new one: it is not "
                         "erased, and nothing was changed", key=source, errno=errno.EEXIST) from exc
    except OSError as exc:
        if exc.errno in _NO_LINKS:
            raise NoExchangeError(f"{name!r} in {source} belongs to no node, and cannot get a second name: "
                                  f"{exc.strerror}; move it away", key=source, errno=exc.errno) from exc
        raise StoreError(f"cannot keep {name!r} of {source}: {exc.strerror}", key=source, errno=exc.errno) from exc


class _Belongings:
    """The files in a directory, which may be missing, and which of them belong to nodes. Names are relative to it.

    `options` are given for a directory that is to be removed: it must be possible to empty it and those below; with
    locks, nodes that are being made below are waited for.
    """

    def __init__(self, directory, options=None):
        self._options = options
        self._store = DirectoryStore(directory, check_base=False)
        self.sets = set()       # documents of reference sets beside groups
        self._nodes = {}        # name of a directory to [(document, format, metadata)]
        self._entries = []      # (name, entry) of all but directories that are not empty
        pending = [""]
        while pending:
            pending += self._look(pending.pop())

    def _look(self, name):
        """Note the entries of a directory, and return the names of the directories in it."""
        below, prefix = [], prefix_of(name)
        directory = os.path.join(self._store.path, name)
        try:
            with faults("list or empty", directory, *_GONE), os.scandir(directory) as found:
                entries = [entry for entry in found if not is_temporary(entry.name)]
                if entries and self._options is not None:
                    cleanup.check_may_empty(directory)
        except _GONE:     # or an array with fewer dimensions has replaced its own
            return below
        documents = [entry.name for entry in entries if entry.name in FORMAT_OF]
        if name and not documents and self._is_being_made(name):
            with Place(self._store, name, "", self._options, is_kept=True, makes=False):
                pass
            return [name]
        self._note_nodes(name, documents)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                below.append(prefix + entry.name)
            else:
                self._entries.append((prefix + entry.name, entry))
        if name and not entries:
            self._entries.append((name, None))
        return below

    def _note_nodes(self, name, documents):
        for node in lookup.documents_among(self._store, name, documents):
            metadata = None
            try:
                metadata = node.parse()
            except StoreError as error:
                if name:
                    raise     # the chunks of the node are unknown
                lookup.pass_over_damage(error)
            self._nodes.setdefault(name, []).append((node.document, node.format, metadata))
            if consolidated.is_of_set(self._store, prefix_of(name), node.format.consolidated_document):
                self.sets.add(prefix_of(name) + node.format.consolidated_document)

    def _is_being_made(self, name):
        options = self._options
        return (options is not None and bool(options.lock) and self._roles(name).isdisjoint(("directory", "remains"))
                and is_held(self._store, name, by_files=options.lock == "file"))

    def _roles(self, name):
        """Return what a file, link or directory is to the nodes above it, see `role_of`."""
        ends = [0, *[i + 1 for i, letter in enumerate(name) if letter == "/"]]
        return {role_of(name[end:], *node) for end in ends for node in self._nodes.get(name[:max(end - 1, 0)], ())
                } - {None} if name not in self.sets else set()

    def owns(self, name):
        """Return whether a file or link of this name belongs to a node."""
        return not self._roles(name) <= {"directory"}

    def others(self):
        """Return (name, is special) for everything that belongs to no node. Pipes, sockets and devices are special.

        Raises : StoreError, if something special belongs to a node: it is not erased.
        """
        found = []
        for name, entry in self._entries:
            is_link = entry is not None and entry.is_symlink()
            is_file = entry is not None and entry.is_file(follow_symlinks=False)
            is_special = entry is not None and not is_link and not is_file
            if not (self.owns(name) if is_file else self._roles(name) or (is_link and self._may_be_member(name))):
                found.append((name, is_special))
            elif is_special:
                raise _not_erased(self._store.path, name)
        return found

    def _may_be_member(self, name):
        """Return whether a link leads to a node, or to nowhere where a group may have a member."""
        path = os.path.join(self._store.path, name)
        if not os.path.exists(path):
            return any([isinstance(metadata, GroupMetadata)
                        for *_, metadata in self._nodes.get(name.rpartition("/")[0], ())])
        return any([entry in FORMAT_OF for _, _, files in os.walk(path) for entry in files])
