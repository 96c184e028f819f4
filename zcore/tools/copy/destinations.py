"""Destinations of copies. A new node is not visible before it is whole.

====================  ================================================================================================
a directory           built under a hidden name beside its own, and continued after a kill; see `Building`
any other store       documents come last, and all objects are removed if something fails; a node that is replaced
                      stays until the new one is whole, which is staged elsewhere; see `tools.copy.document_last`
a file                written under a hidden name beside its own
====================  ================================================================================================

A sink makes groups and arrays. For an array it returns a target, which takes slabs of elements, or objects.
"""
from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
from typing import TYPE_CHECKING

from zcore import api, config
from zcore.descriptors import read_at
from zcore.engine.array_binding import ArrayBinding
from zcore.engine.node_binding import GroupBinding
from zcore.engine.options import Options
from zcore.errors import (
    ChunkError,
    InvalidKeyError,
    KeyConflictError,
    NodeExistsError,
    NodeNotFoundError,
    ReadOnlyError,
    StoreError,
    UnsupportedError,
    ZcoreError,
)
from zcore.formats import format_of
from zcore.formats.json_documents import taking_constants
from zcore.hierarchy import consolidated, creation, deletion, exchange, lookup
from zcore.hierarchy.attributes import read_attributes
from zcore.hierarchy.creation_lock import Place
from zcore.kernel.io.documents import Descriptor
from zcore.replacing import commit, keep, status_of
from zcore.stores import openers
from zcore.stores.directory import cleanup, staged
from zcore.stores.directory.store import DirectoryStore
from zcore.stores.keys import TEMPORARY, prefix_of
from zcore.text.arguments import as_bool
from zcore.tools.copy import document_last
from zcore.tools.copy.sources import address_of
from zcore.tools.copy.transfer import Sink, StoredTarget
from zcore.tools.copy.translate import CopyRequest, described, kept_attributes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from zcore.nodes.array import Array
    from zcore.nodes.group import Group
    from zcore.stores.base import Store, StoreLike
    from zcore.tools.copy.sources import SourceArray, SourceGroup
    from zcore.tools.copy.translate import Losses
    from zcore.typing import Format

_MAX_NAME = 200     # bytes; file systems take 255
_REQUEST, _BEGAN = "request", "began"


class Work:
    """What an earlier call has done of a copy, and the folder of its intermediate array. This one keeps nothing.

    Attributes
    ----------
    is_begun : bool
        Something may be done: objects that are there are whole.
    began : int
        When it was begun, in ns, by the file system's clock.
    between : str or None
        The folder, if the copy has one of its own.
    """

    is_begun: bool = False
    began: int = 0
    between: str | None = None

    def begin_anew(self) -> None:
        """Remove what is done."""

    def drop_between(self) -> None:
        """Remove the intermediate array."""

    def discard(self) -> None:
        """Remove all, as it is worthless; what is not kept is removed when the copy fails."""


def container_of(place: str) -> str:
    """Return the container in which a copy to the directory `place` is built."""
    return staged.container_of(place, _label_of(place))


def _label_of(place):
    name = os.path.basename(place)
    return name if len(os.fsencode(name)) <= _MAX_NAME else hashlib.sha256(os.fsencode(name)).hexdigest()


def _boot():
    """Return a text that changes when the machine is started again, if the system has one.

    Files that were written before may not have reached the disk: those of a copy are written out when all are there.
    """
    with contextlib.suppress(OSError):
        # Not by `open`, which is gone when the interpreter exits, and finalizers may copy.
        file = Descriptor("/proc/sys/kernel/random/boot_id", os.O_RDONLY | os.O_CLOEXEC)
        return read_at(file.fd, 1 << 12, 0).decode().strip()
    return ""


class Building(staged.StagedDirectory, Work):
    """The directory of a copy to `place`; `leave` keeps what is done for a later call, `discard` removes it.

    ::

        .__zc_tmp.copy.<name>/
            request          what is copied and how, a line of JSON
            began            empty; its time is that of the beginning
            node.<n>/        the copy
            between.<n>/     an array between two passes

    If the process is killed, all of this stays. The next one that copies the same source in the same way to the same
    place goes on with it: an object appears whole, so one that is there is done. Any other one begins anew, and so does
    this one if the source was written to since.

    Parameters
    ----------
    place : str
        Absolute.
    request : dict
        What is copied and how, values of JSON. Only work that was begun with equal ones is continued.
    fsync : bool
        The new name has reached the disk when `commit` returns.

    Attributes
    ----------
    between : str
        A directory for temporary arrays.
    is_begun : bool
        A process that was killed has begun the work.

    Raises
    ------
    StoreError
        Another process builds the same, or the directory cannot be made.
    """

    def __init__(self, place: str, request: Mapping[str, Any], fsync: bool = False) -> None:
        super().__init__(place, fsync, _label_of(place))
        self._request = json.dumps({**request, "boot": _boot()}, sort_keys=True).encode() + b"\n"
        try:
            self.acquire()
            with staged.faults("build", place):
                self._resume_or_begin()
        except BaseException as exc:
            self.name_place(exc)
            self.leave()
            raise

    def _resume_or_begin(self):
        """Go on with the content if it was begun with the same request; else begin anew."""
        self.between: str | None = self.name_of("between")
        self._notes = DirectoryStore(self.container, fsync=False)
        if os.path.isdir(self.node) and self._notes.get(_REQUEST) == self._request:
            self.is_begun: bool = True
            self.began: int = self._time_of_begin()
            for directory in (self.node, self.between):
                cleanup.remove_temporary(directory, math.inf, cleanup.remove_directory)     # of the killed process
            return
        self.begin_anew()

    def _time_of_begin(self):
        with contextlib.suppress(OSError):
            return os.stat(os.path.join(self.container, _BEGAN)).st_mtime_ns
        return 0

    def begin_anew(self) -> None:
        self.is_begun = False
        # The request first: if this process is killed, the one that has made it may go on.
        for name in sorted(os.listdir(self.container), key=lambda name: name != _REQUEST):
            cleanup.remove(os.path.join(self.container, name))
        self._notes.set(_BEGAN, b"")
        self._notes.set(_REQUEST, self._request)

    def commit(self, replace: bool) -> None:
        """Give the copy its name; see `StagedDirectory.commit`.

        The request goes first: afterwards `node` is the directory that was replaced, and nobody may go on with that.
        """
        with staged.faults("make", self.place):
            copy = os.stat(self.node).st_ino
            self._notes.erase(_REQUEST)
        try:
            super().commit(replace)
        except BaseException:
            with contextlib.suppress(OSError):
                if os.stat(self.node).st_ino == copy:
                    self._notes.set(_REQUEST, self._request)
            raise

    def drop_between(self) -> None:
        """Remove the temporary arrays."""
        with staged.faults("clean up", self.between):
            cleanup.remove_directory(self.between)

# Refusals: of names that a file system cannot have, and to erase what belongs to no node.
_REFUSALS = NodeExistsError, InvalidKeyError, KeyConflictError, exchange.NoExchangeError
_REFUSING = frozenset((errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL, errno.EEXIST, errno.ESPIPE))

# The sinks of files that are written as a whole.
SINKS: dict[openers.Kind, str] = {
    openers.NPY: "zcore.tools.files.numpy:NpySink",
    openers.NPZ: "zcore.tools.files.numpy:NpzSink",
    openers.ASDF: "zcore.tools.files.asdf:AsdfSink",
    openers.HDF5: "zcore.tools.files.hdf5:Hdf5Sink",
}


class StoreSink(Sink):
    """Nodes made in a store, below a path without a node.

    Parameters
    ----------
    store : Store
    path : str
    zarr_format : {3, 2, "zmeta"} or None
        Of all nodes; by default each node has that of its source, or 3.
    work : Work
        The work that is done.
    losses : Losses
    threads : int or None
    overwrite : bool
        Erase what lost nodes have left there. Else it is a StoreError.
    documents_first : bool
        See `Sink`.
    """

    takes: tuple[str, ...] = CopyRequest._fields

    def __init__(self, store: Store, path: str, zarr_format: Format | None, work: Work, losses: Losses,
                 threads: int | None, overwrite: bool = True, documents_first: bool = False) -> None:
        self.documents_first = documents_first
        self.n_requests: int = store.n_requests
        self._store = store
        self._path = path
        self._zarr_format: Format | None = zarr_format
        self._work = work
        self._losses = losses
        self._overwrite = overwrite
        self._options = Options(lock=False, threads=threads, cache=0)
        self._consolidated = []
        self._is_empty = True

    def _format_of(self, source):
        return format_of(self._zarr_format or source.zarr_format or 3)

    def group(self, name: str, source: SourceGroup) -> None:
        """Make a group. If the format has none, note the loss."""
        format = self._format_of(source)
        lookup.check_new_names(name.rpartition("/")[2], format)     # the names above were checked before
        attributes, _ = kept_attributes(source, format, name, self._losses)
        if not format.has_groups:
            self._losses.note(f"groups and their attributes ({', '.join(attributes) or 'none'})", name)
            return
        made = self._made(name, format, format.new_group(attributes), GroupBinding)
        if source.is_consolidated:
            self._consolidated.append(made)

    def array(self, name: str, source: SourceArray, wanted: CopyRequest) -> StoredTarget:
        """Make an array, and return its target."""
        format = self._format_of(source)
        lookup.check_new_names(name.rpartition("/")[2], format)
        metadata = described(source, format, wanted, name, self._losses)
        return StoredTarget(self._made(name, format, metadata, ArrayBinding))

    def _made(self, name, format, metadata, kind) -> Any:
        """Return the binding of a node: a new one, or the one that was made before the copy was interrupted."""
        path = "/".join(part for part in (self._path, name) if part)
        attributes = None
        self._is_empty = False
        if not format.has_inline_attributes:
            attributes, metadata = metadata.attributes, metadata.replace(attributes=None)
        if self._work.is_begun and self._store.exists(prefix_of(path) + format.document_of(kind.kind)):
            found = kind(self._store, path, format, self._options)
            # A group may have got its copy of the metadata below by now.
            if found.view.raw == format.render(metadata) or (
                    kind is GroupBinding and consolidated.is_same(found.metadata, metadata)):
                return found
            # It is replaced. So nothing in it and below is done.
            self._work.is_begun = False
        # `kept_attributes` has decided about constants.
        return taking_constants(creation.create, self._store, path, creation.NewNode(format, metadata, attributes),
                                self._options, overwrite=self._overwrite, is_below=True)

    def close(self) -> None:
        """Finish all: groups that had consolidated metadata get them.

        Raises : UnsupportedError, if there is no node: the format has no groups, and no array was made.
        """
        if self._is_empty:
            raise UnsupportedError(f"{format_of(self._zarr_format).title} has no groups, and there is no array to copy",
                                   feature="groups in formats without them")
        while self._consolidated:
            binding = self._consolidated.pop()
            try:
                consolidated.consolidate(binding, read_attributes)
            except UnsupportedError:
                self._losses.note("consolidated metadata of groups with members of several formats", binding.path)


class Destination:
    """Where a copy goes: a path in a store, or a file that is written as a whole.

    An earlier copy to it that was cut off is finished or removed.

    Parameters
    ----------
    place : str, os.PathLike or Store
    path : str
        Of the node in it.
    overwrite : bool
    fsync : bool or None
        By default as the store is made, or `zcore.config.fsync`.
    """

    def __init__(self, place: StoreLike, path: str, overwrite: bool, fsync: bool | None) -> None:
        self.place: StoreLike = place
        self.path: str = path
        self.overwrite: bool = overwrite
        self.fsync: bool | None = fsync if fsync is None else as_bool(fsync, "fsync")
        self.kind: openers.Kind | None = file_kind(place)     # of a file
        self.store: Store | None = None
        if self.kind is None:
            if (text := openers.as_path(place)) is not None:
                openers.check_directory(text)
            self.store = openers.store_of(place, False, fsync)
            self.path = lookup.path_of(path)
            if not self.store.read_only:
                recover(self.store, self.path)

    def __str__(self) -> str:
        return openers.as_path(self.place) or repr(self.place)

    @property
    def address(self) -> str | None:
        """By `address_of`; None of a file."""
        return None if self.store is None else address_of(self.store, self.path)

    def opened(self, threads: int | None) -> Array | Group | None:
        """Return the new node, or None if there is none to open: in a file that is no store, or in 2016's format."""
        with contextlib.suppress(NodeNotFoundError):
            return None if self.kind in SINKS else api.open(self.place, path=self.path, threads=threads)
        return None

    @contextlib.contextmanager
    def sink(self, job: Mapping[str, Any], root_format: Format, is_array: bool, zarr_format: Format | None,
             losses: Losses, threads: int | None) -> Iterator[tuple[Sink, Work]]:
        """Return a context manager that gives a sink and its work. The node appears when it ends without an error.

        The caller closes the sink.

        Parameters
        ----------
        job : dict
            The request of the copy, as values of JSON.
        root_format : {3, 2, "zmeta"}
            Of the node at `path`, and of the groups above it that are missing.
        is_array : bool
            The node at `path` is an array.
        zarr_format, losses, threads
            See `StoreSink`.

        Raises
        ------
        NodeExistsError
            There is something, and `overwrite` is false.
        """
        if (store := self.store) is None:
            with self._file(root_format, zarr_format, losses, threads) as sink:
                yield sink, Work()
            return
        path, overwrite = self.path, self.overwrite
        if store.read_only:
            raise ReadOnlyError(f"{store!r} is read-only: nothing can be copied to it")
        format = format_of(root_format)
        lookup.check_new_names(path, format)
        is_node = _check_free(store, path, overwrite)
        creation.missing_above(store, path, format, Options())     # an array above is an error, before any work
        with contextlib.ExitStack() as stack:
            place = store.folders.directory_of(path)
            if place is None:
                work, inner = Work(), stack.enter_context(document_last.made_in(
                    store, path, is_node, overwrite, format.array_document if is_array else format.group_document))
            else:
                work = stack.enter_context(_directory(store, path, place, job, is_node, overwrite, format))
                inner = DirectoryStore(work.node, fsync=False)
            # A node that is built elsewhere meets only its own objects.
            sink = StoreSink(inner, "", zarr_format, work, losses, threads, place is not None or overwrite)
            yield sink, work
            if not isinstance(work, Building) or work.is_here():     # else `finish` raises
                creation.create_ancestors(store, path, format, Options())

    @contextlib.contextmanager
    def _file(self, root_format, zarr_format, losses, threads):
        """Make a file in a hidden directory beside its place, and give it its name in the end."""
        place, path, overwrite = os.path.abspath(openers.as_path(self.place)), lookup.path_of(self.path), self.overwrite
        fsync = config.fsync if self.fsync is None else self.fsync
        if os.path.lexists(place) and not overwrite:
            raise NodeExistsError(f"{place} is there already; overwrite=True replaces it", path=path)
        if path and os.path.lexists(place):
            raise UnsupportedError(f"{place} is there, and a file is written as a whole: all in it beside "
                                   f"{path!r:.200} would be lost; copy to another file",
                                   feature="nodes replaced in a file")
        try:
            if self.kind is openers.ZIP:
                from zcore.stores.zip.store import ZipStore
                from zcore.stores.zip.writer import is_ozx

                if is_ozx(place) and root_format != 3:
                    raise ValueError(f"{os.path.basename(place)} holds Zarr v3 alone (RFC-9 of NGFF), the source is of "
                                     f"format {root_format!r}: pass zarr_format=3, or name it .zip")
                lookup.check_new_names(path, format_of(root_format))
                with ZipStore(place, mode="w" if overwrite else "x", fsync=fsync) as store:
                    yield StoreSink(store, path, zarr_format, Work(), losses, threads, documents_first=True)
                return
            if zarr_format is not None:
                raise ValueError(f"zarr_format={zarr_format!r} was asked for, {os.path.basename(place)} has no format "
                                 "of Zarr")
            target = place if not overwrite else os.path.realpath(place)     # a link stays
            with _Folder(target) as folder:
                temporary = os.path.join(folder.container, f"{TEMPORARY}new{os.path.splitext(place)[1]}")
                sink = openers.loaded(SINKS[self.kind])(temporary, path, losses)
                try:
                    yield sink
                except BaseException:
                    with contextlib.suppress(Exception):     # the first one counts
                        sink.discard()
                    raise
                if (old := status_of(target)) is not None:
                    keep(temporary, os.stat(temporary), old)
                commit(temporary, target, exclusive=not overwrite, fsync=fsync)
        except OSError as exc:
            if exc.errno == errno.EEXIST and not overwrite and os.path.lexists(place):
                raise NodeExistsError(f"{place} is there already", path=path) from exc
            if isinstance(exc, ZcoreError):
                raise
            raise StoreError(f"cannot write {place}: {exc.strerror or exc}", key=place, errno=exc.errno) from exc


def file_kind(destination: StoreLike) -> openers.Kind | None:
    """Return the kind of file that a destination is, by its name; None if it is no file."""
    place = openers.as_path(destination)
    if place is None or "://" in place:
        return None
    kind = openers.named_kind(place)
    return kind if (kind is openers.ZIP or kind in SINKS) and not os.path.isdir(place) else None


def recover(store: Store, path: str) -> None:
    """Finish or remove a copy to a path that was cut off. Then the old node or the new one is there."""
    place = store.folders.directory_of(path)
    if place is None:
        document_last.recover(store, path)
    elif staged.recover(container_of(place)) is not None:
        consolidated.drop(store, path)


def _check_free(store, path, overwrite, is_held=False):
    """Return whether there is a node at a path, to be overwritten. `is_held`: the caller holds the place.

    Raises : NodeExistsError, if `overwrite` is false, or if something else is in the way.
    """
    if lookup.documents_at(store, path):
        if not overwrite:
            raise NodeExistsError(f"there is a node at {store.describe(path)} already; overwrite=True replaces it",
                                  path=path)
        lookup.check_replaceable(store, path)
        return True
    lookup.check_free(store, path)
    place = store.folders.directory_of(path)
    if place is None:
        is_free = not any(document_last.is_document(key) for key in store.list_prefix(prefix_of(path)))
    else:
        is_free = store.is_empty(prefix_of(path)) if os.path.isdir(place) else not os.path.lexists(place)
    if is_free:
        return False
    if not is_held:
        # A node may be being created or deleted here.
        with Place(store, path, "", Options(), makes=False):
            return _check_free(store, path, overwrite, is_held=True)
    raise NodeExistsError(f"{deletion.no_node(store, path)}; what is there is not replaced: copy to a new "
                          "name in it", path=path)


@contextlib.contextmanager
def _directory(store, path, place, job, is_node, overwrite, format):
    if is_node and not os.path.islink(place):
        exchange.check_removable(place)     # now, and not when the copy is whole
    work = Building(place, job, store.fsync)
    try:
        yield work
        with consolidated.dropped(store, path):
            exchange.commit(store, path, work, Options(), overwrite)
        work.discard("completed")
    except Exception as exc:
        if not work.is_here():
            work.discard()
            store.folders.prune(prefix_of(path))
            raise StoreError(f"a group above {place} was moved, replaced or deleted while it was copied to; copy again",
                             key=place, errno=errno.ESTALE) from exc
        work.name_place(exc)
        if not _may_go_on(exc):
            work.discard()     # the same copy would fail again
            store.folders.prune(prefix_of(path.rpartition("/")[0]))
        raise
    except KeyboardInterrupt as exc:
        exc.add_note("the same copy, begun again, goes on where this one stopped")
        raise
    finally:
        work.leave()
    # A group above may have been deleted before the node had its name. If it was moved, the node went with it.
    if path and lookup.documents_at(store, path):
        creation.create_ancestors(store, path, format, Options())


def _may_go_on(error):
    """Return whether a failed copy keeps its state. Then the next one may come further."""
    is_refusal = isinstance(error, _REFUSALS) or getattr(error, "errno", None) in _REFUSING
    return not is_refusal and isinstance(error, (OSError, ChunkError, MemoryError))


class _Folder(staged.StagedDirectory):
    """A hidden directory beside a file. Those that killed copies to the same file have left are removed first."""

    def __init__(self, place):
        self._label = hashlib.sha256(os.fsencode(os.path.basename(place))).hexdigest()[:16] + "."
        super().__init__(place, label=self._label + os.urandom(8).hex())
        self._is_shared = False

    def acquire(self):
        left_over, folder = os.path.basename(staged.container_of(self.place, self._label)), os.path.dirname(self.place)
        for name in os.listdir(folder):
            if name.startswith(left_over):
                staged.recover(os.path.join(folder, name), removes=True)
        return super().acquire()

    def release(self, exception):
        # Also one that was just made, as Ctrl-C may come before it is locked.
        if os.getpid() == self._owner:
            with contextlib.suppress(OSError):
                cleanup.remove_directory(self.container)
        self.leave()
