"""Creates, changes and moves nodes in an order that leaves no wrong data after a kill.

========  ==========================================================================================================
create    attributes, then the elements, then the metadata document: a node exists from its last write on
delete    see `zcore.hierarchy.deletion`; overwriting means deleting, then creating
shrink    the document first, then objects outside are erased and border objects reset beyond the new shape
grow      objects outside the old shape are erased, border objects reset beyond it, then the document
append    the data, then the document
in parts  objects outside the old shape are erased, border objects reset beyond it; the data; then the document
========  ==========================================================================================================

Where locks exclude only this process (`Store.swaps`), the document decides among processes. It is replaced only while
it is the one that was read. An append first writes the new shape there, which reserves its rows, and then writes the
rows: another append reserves the rows behind them. Before that, remains of a killed change in these rows are reset by
compare-and-swap: an object is read, then the document is compared, then the object is replaced if it has not changed
since. So no row of another append is reset, because it was written after its reservation.

Each step runs under the whole-range lock of the document. Without a document, the directory is locked. Objects to
erase are found by listing the existing ones, never by probing the chunks of the grid.
"""
from __future__ import annotations

import contextlib
import errno
import os
from functools import lru_cache
from typing import TYPE_CHECKING

from zcore.engine.binding import ArrayBinding, GroupBinding, end_of_objects, until_won
from zcore.engine.options import Options
from zcore.engine.requests import swap
from zcore.engine.stamps import put_new, put_stamped, stamped
from zcore.engine.views import renewed, same_chunks, unseen, view_of
from zcore.errors import (
    KeyConflictError,
    LockError,
    NodeExistsError,
    NodeNotFoundError,
    ReadOnlyError,
    StoreError,
    ZcoreError,
    noted,
    warn_of,
)
from zcore.formats import DOCUMENTS
from zcore.formats.json_documents import MAX_NBYTES, check_attributes, check_whole_characters
from zcore.hierarchy import consolidated, deletion, exchange, lookup
from zcore.hierarchy.creation_lock import MAX_TRIES, Place, hold_nodes, hold_tree
from zcore.hierarchy.deletion import clear as clear  # callers find creation and deletion in this module
from zcore.hierarchy.deletion import delete as delete
from zcore.hierarchy.unfinished import unfinished
from zcore.kernel.select.box import Box, whole
from zcore.model.metadata import ArrayMetadata
from zcore.model.value import IdentityKey
from zcore.stores.base import AtMost, Folders, directory_at
from zcore.stores.directory.staged import StagedDirectory
from zcore.stores.directory.store import DirectoryStore
from zcore.stores.keys import prefix_of
from zcore.stores.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    import numpy.typing as npt

    from zcore.engine.binding import NodeBinding
    from zcore.engine.views import View
    from zcore.formats.base import Format
    from zcore.model.metadata import GroupMetadata
    from zcore.stores.base import Identity, Store

# Objects that are erased between two checks of the document.
_MAX_UNCHECKED = 16


def create(store: Store, path: str, format: Format, metadata: ArrayMetadata | GroupMetadata,
           attributes: Mapping[str, Any] | None, options: Options, *, data: npt.NDArray[Any] | None = None,
           overwrite: bool = False, is_below: bool = False) -> ArrayBinding | GroupBinding:
    """Create an array or a group, and missing groups above it.

    Parameters
    ----------
    store : Store
    path : str
    format : Format
    metadata : ArrayMetadata or GroupMetadata
    attributes : dict or None
        If the format has a document for them; else they are part of the metadata.
    options : Options
    data : ndarray, optional
        The elements of an array, of its shape and type.
    overwrite : bool
        Replace the existing node, with all nodes below it and all remains of lost nodes.
    is_below : bool
        It is part of a change further up, which drops the consolidated metadata above.

    Returns
    -------
    ArrayBinding or GroupBinding

    Raises
    ------
    NodeExistsError
        The node exists and `overwrite` is false; or an array exists above it.
    StoreError
        There is no node, but attributes or chunks that the new one would treat as its own, and `overwrite` is false.

    Notes
    -----
    Elements are written before the document, so an interrupted creation leaves no half-filled array. Where locks
    exclude only this process (`Store.swaps`), a document that cannot be opened comes first. It excludes other
    processes, whose chunks would mix with these.
    """
    kind, document, attributes_document, view = documents_of(path, format, metadata, attributes, options)
    prefix, name = prefix_of(path), kind.name_of_document(format)
    if store.read_only:
        raise ReadOnlyError(f"{store!r} is read-only: no {kind.what} can be created", key=prefix + name)
    if data is None and not overwrite and options.lock != "file":
        binding = _create_at_once(store, path, format, kind, document, attributes_document, view, options)
        if binding is not None:
            return binding
    if not is_below:
        check_replaceable(store, path, overwrite)
    for _ in range(MAX_TRIES):
        if overwrite and missing_above(store, path, format, options):
            deletion.check_way(store, path, format, metadata)
        create_ancestors(store, path, format, options)
        # Overwriting also replaces unreachable documents.
        failed = lookup.pass_over_damage if overwrite else None
        if overwrite:
            deletion.unlink(store, path)
        # What is below is part of something that is being made beside its place already.
        directory = exchange.directory_of(store, path) if not is_below and (overwrite or data is not None) else None
        if directory is not None:
            is_replaced = os.path.lexists(directory)
            # Without elements, a new document is all.
            if (overwrite and lookup.documents_at(store, path, failed)) if is_replaced else data is not None:
                # If that is impossible, or something comes there meanwhile that is not replaced, the steps below tell.
                with contextlib.suppress(exchange.NoExchangeError, NodeExistsError):
                    with consolidated.dropped(store, path, itself=is_replaced, is_below=is_below, format=format):
                        is_made = _make_beside(store, path, directory, format, metadata, attributes, data, options,
                                               overwrite)
                    if is_made and not _has_lost_groups(store, path, format):
                        return kind(store, path, format, options)
                    continue     # a group above was moved or deleted
        with Place(store, path, name, options) as place:
            if _has_lost_groups(store, path, format):
                continue     # moved or deleted before the place was held
            is_free = store.is_empty(prefix)
            if not is_free and not overwrite:
                check_free(store, path, format, metadata, attributes, options, data)
            is_replaced = not is_free and bool(lookup.documents_at(store, path, failed))
            with consolidated.dropped(store, path, itself=is_replaced, is_below=is_below, format=format):
                try:
                    if not is_free:
                        lookup.check_no_special(store, path, format)
                        if overwrite:
                            deletion.make_way(store, path, format, metadata, options)
                    if not options.lock:
                        store.folders.make_directory(prefix)     # no lock has made it, or kept it
                    if kind is ArrayBinding and format.chunk_directory is not None:
                        store.folders.make_directory(f"{prefix}{format.chunk_directory}/")
                    if attributes_document is not None:
                        _set_attributes(store, path, place, format.attributes_document, attributes_document)
                    if data is not None and store.swaps:
                        return _create_in_service(store, path, format, document, view, data, options)
                    if data is not None and store.is_transaction:
                        store.set(prefix + name, document)     # without it Icechunk takes no chunk
                    if data is not None:
                        # The place is held, and there is no array that another writer could have opened.
                        ArrayBinding(store, path, format, options, view).write_once(view, whole(metadata.shape), data,
                                                                                   exclusive=place)
                    # If the directory is locked, no other process can have created a node meanwhile.
                    if (not store.swaps and (is_replaced or overwrite) or store.is_transaction
                            or directory_at(store) is not None):
                        place.set(name, document)
                    elif (raw := put_new(store, prefix + name, document)) is None:
                        raise _created_meanwhile(store, path)
                    else:
                        view = view._replace(raw=raw)
                except (NodeNotFoundError, StoreError) as error:
                    if getattr(error, "errno", errno.ENOENT) != errno.ENOENT or place.is_here():
                        raise
                    continue     # a group above was deleted, and the directory with it
            if store.swaps:
                return _bound(kind, store, path, format, options, view)
            if place.is_here() and not _has_lost_groups(store, path, format):
                # While it is held: later another node may be here, or a group above may have another path.
                return kind(store, path, format, options)
        # A group above was moved, with the node, or deleted. If it was deleted in its place, the node is still here.
        if lookup.documents_at(store, path):
            create_ancestors(store, path, format, options)
        return _bound(kind, store, path, format, options, view)
    raise _loses_groups(store, path)


def _loses_groups(store, path):
    return StoreError(f"cannot create {store.describe(path)}: a group above it is gone as soon as it is found or made",
                      key=prefix_of(path))


@contextlib.contextmanager
def replacing(store: Store, path: str, options: Options) -> Iterator[DirectoryStore | None]:
    """Return a context manager of a store whose root replaces the node at `path`, with all below it, in the end.

    It gives None if there is no node, or if the store cannot replace it in one step. After an error the old node stays.

    Raises : NoExchangeError, in the end, if files that belong to no node cannot stay; nothing was changed.
    """
    directory = exchange.directory_of(store, path)
    if directory is None or not lookup.documents_at(store, path, lookup.pass_over_damage):
        yield None
        return
    with StagedDirectory(directory, store.fsync) as work:
        yield DirectoryStore(work.node, fsync=False)
        with consolidated.dropped(store, path, itself=True):
            exchange.put(store, path, work, options)


def _make_beside(store, path, directory, format, metadata, attributes, data, options, overwrite):
    """Create a node beside `directory`, and put it in its place; return False if the groups above were moved meanwhile.

    Raises : NodeExistsError, if something is there that is not replaced.
    """
    with StagedDirectory(directory, store.fsync) as work:
        try:
            create(DirectoryStore(work.node, fsync=False), "", format, metadata, attributes,
                   options.changed({"lock": False}), data=data, is_below=True)
            exchange.put(store, path, work, options, overwrite)
        except (NodeNotFoundError, StoreError):
            if work.is_here():
                raise
            return False
    return True


def _has_lost_groups(store, path, format):
    """Whether the group above was moved or deleted since it was found or made."""
    if not path or not format.has_groups or store.swaps:
        return False
    above = path.rpartition("/")[0]
    return not store.existing(prefix_of(above), (format.group_document,)) and not lookup.documents_at(store, above)


def _create_at_once(store, path, format, kind, document, attributes_document, view, options):
    """Create a node without elements in a new directory, by one call of the store, and return its binding.

    None if that is not possible: then the caller takes the steps of `create`, which raise the reason. Here, what a
    new directory cannot hold is not looked for, and what is known of the groups above is not asked twice.
    """
    above = consolidated.look_above(store, path, format)
    if above is None:
        return None
    names, values = (kind.name_of_document(format),), (document,)
    if attributes_document is not None:
        names, values = (format.attributes_document, *names), (attributes_document, *values)
    is_same = False
    try:
        # The group is looked for again under the lock of the new directory. A later deletion of it finds this node.
        identity = store.folders.make_directory_with(prefix_of(path), names, values, options.lock is not None,
                                             format.group_document if options.lock and path else None)
        is_same = all([look.is_same() for look in above])
    finally:
        # As `consolidated.dropped` does after a change.
        if not is_same:
            consolidated.drop(store, path)
    if identity is None:
        return None
    if not is_same or not identity:
        # A group above may have been moved, and the node with it, or deleted.
        try:
            binding = kind(store, path, format, options)
        except NodeNotFoundError:
            return _bound(kind, store, path, format, options, view)
        create_ancestors(store, path, format, options)
        return binding
    if view.notes:
        warn_of(store.describe(path), view.notes)
    return kind(store, path, format, options, view._replace(identity=identity, trusted=False))


def _set_attributes(store, path, place, name, document):
    """Write the attributes of a node that is being created; of two processes, one succeeds."""
    key = prefix_of(path) + name
    if not store.swaps:
        place.set(name, document)
    elif put_new(store, key, document) is None and (store.get(key) or b"").rstrip(b" \t\n") != document.rstrip():
        raise _created_meanwhile(store, path)


def _created_meanwhile(store, path):
    return NodeExistsError(f"another process has created a node at {store.describe(path)} meanwhile", path=path)


def _create_in_service(store, path, format, document, view, data, options):
    """Create an array with its elements where locks exclude only this process, and return its binding.

    A document that cannot be opened holds the place meanwhile, see `zcore.hierarchy.unfinished`. If the service has no
    compare-and-swap, or the caller wants no locks, the real document holds it.
    """
    key, box = prefix_of(path) + format.array_document, whole(data.shape)
    place, identity = stamped(unfinished(document)), None
    try:
        if options.lock:
            identity = put_stamped(store, key, place, None)
            if identity is None:
                raise _created_meanwhile(store, path)
    except LockError:
        pass
    if identity is None:
        if (raw := put_new(store, key, document)) is None:
            raise _created_meanwhile(store, path)
        binding = _bound(ArrayBinding, store, path, format, options, view._replace(raw=raw))
        binding.write(box, data)
        return binding
    made = view._replace(raw=stamped(document, place))
    view = view._replace(raw=place, identity=identity, trusted=True)
    plan = ArrayBinding(store, path, format, options, view).write_once(view, box, data)
    if plan.stale or put_stamped(store, key, made.raw, identity) is None:
        raise StoreError(f"another process has replaced the array at {store.describe(path)} while its elements were "
                         "written", key=key)
    return _bound(ArrayBinding, store, path, format, options, made)


def _bound(kind, store, path, format, options, view):
    """Return the binding of a node that was created in a service, without a look at its document.

    Another process may have replaced or deleted the node already. The binding finds out when it is used.
    """
    warn_of(store.describe(path), view.notes)
    return kind(store, path, format, options, unseen(view))


def documents_of(path: str, format: Format, metadata: ArrayMetadata | GroupMetadata,
                 attributes: Mapping[str, Any] | None,
                 options: Options) -> tuple[type[ArrayBinding] | type[GroupBinding], bytes, bytes | None, View]:
    """Return (class of the binding, document, document of the attributes or None, view) of a new node; see `create`.

    A node that could not be opened, for instance with contradicting codecs, is an error before anything is changed.
    """
    if options.dimension_separator is not None:
        raise TypeError("dimension_separator is for opening an array; a new array takes chunk_key_encoding")
    kind = ArrayBinding if isinstance(metadata, ArrayMetadata) else GroupBinding
    new, of_attributes = metadata.attributes or attributes, None
    try:
        if kind is ArrayBinding and not metadata.attributes:
            document = _rendered(format, IdentityKey(metadata))
        else:
            document = kind.render(format, metadata)
            check_whole_characters(document.decode())
        if attributes:
            of_attributes = format.render_attributes(attributes)
            check_whole_characters(of_attributes.decode())
        is_clear = not new or not format.strict_attributes or not (b"NaN" in document or b"Infinity" in document)
    except (TypeError, ValueError):
        if new:
            check_attributes(new, {}, not format.strict_attributes)     # this error names the attribute
        raise
    if not is_clear:
        check_attributes(new, {})
    view = view_of(format, kind.name_of_document(format), document, None, path, options, 0)
    if view.chain is not None:
        view.chain.check_sizes()
    return kind, document, of_attributes, view


@lru_cache(maxsize=64)
def _rendered(format, metadata):
    """Return the document of an array without attributes, an `IdentityKey`. Many arrays of a group have the same."""
    document = format.render_array(metadata.value)
    check_whole_characters(document.decode())
    return document


def check_replaceable(store: Store, path: str, overwrite: bool) -> None:
    """Raise NodeExistsError if there is a node that this version does not replace, or only nodes below."""
    if not overwrite or not store.folders.is_link(prefix_of(path)):     # a link is replaced, wherever it leads
        lookup.check_replaceable(store, path)
        if overwrite:
            deletion.check_no_nodes_below(store, path)


def check_free(store: Store, path: str, format: Format, metadata: ArrayMetadata | GroupMetadata,
               attributes: Mapping[str, Any] | None = None, options: Options | None = None,
               data: npt.NDArray[Any] | None = None) -> None:
    """Raise unless a node can be made at `path` without replacing anything; see `create` for the parameters.

    Chunks and attributes from an earlier, interrupted run of the same creation are no error: they are written again.

    Raises
    ------
    NodeExistsError
        The node exists.
    StoreError
        There are attributes or chunks that the new node would treat as its own, or something is unreachable.
    """
    documents = lookup.documents_at(store, path)
    if documents:
        raise NodeExistsError(f"{store.describe(path)} holds {kind_text(documents[0])} already; overwrite=True "
                              "replaces it", path=path)
    lookup.check_free(store, path)
    lookup.check_no_set(store, path)
    prefix, made = prefix_of(path), None
    for key in deletion.left_over(store, prefix, format, metadata):
        if made is None:
            made = MemoryStore()
            create(made, "", format, metadata, attributes, options or Options(), data=data)
        value = made.get(key[len(prefix):])
        # If the key is gone now, another call has moved or deleted its node.
        if store.get(key) not in (None, value) if value is not None else not _is_gone(store, key):
            raise _left_over(store, path, key)
    for key in deletion.in_the_way(store, prefix, metadata):
        raise _left_over(store, path, key)


def _is_gone(store, key):
    try:
        return not store.exists(key)
    except StoreError:
        return False     # unreachable


def _left_over(store, path, key):
    return StoreError(
        f"{store.describe(path)} holds {key[len(prefix_of(path)):]!r}, and no document says of which node: a document "
        "was lost, or a creation or deletion was interrupted; if it was lost, put it back from a backup; "
        "overwrite=True (mode 'w') erases what is there",
        key=key, errno=errno.EEXIST)


def move(store: Store, source: str, destination: str, options: Options) -> None:
    """Move the node at `source`, with everything below it, to the path `destination`.

    Raises
    ------
    NodeNotFoundError
        There is no node at `source`.
    NodeExistsError
        Something exists at `destination`, or `destination` lies below `source`.
    """
    try:
        with hold_tree(store, source, options, destination):
            if not any(_move(store, source, destination, options) for _ in range(MAX_TRIES)):
                raise _loses_groups(store, destination)
    except NodeNotFoundError:
        store.folders.prune(prefix_of(source))     # a call that waited had kept it
        raise


def _move(store, source, destination, options):
    """Do what `move` does; return False if a group above the destination was moved or deleted before it was held."""
    found = lookup.documents_at(store, source)
    if not found:
        raise NodeNotFoundError(deletion.no_node(store, source), path=source)
    if destination == source or destination.startswith(prefix_of(source)):
        raise NodeExistsError(f"{store.describe(destination)} lies below {store.describe(source)}", path=destination)
    if not store.is_empty(prefix_of(destination)):
        if not lookup.documents_at(store, source):
            # Another call has moved it there.
            raise _gone(store, source)
        raise _not_free(store, destination)
    create_ancestors(store, destination, found[0].format, options)
    with (consolidated.dropped(store, source, itself=True), consolidated.dropped(store, destination),
          contextlib.ExitStack() as held):
        # A lock of the destination would make its directory.
        if isinstance(store, Folders):
            place = held.enter_context(Place(store, source, "", options, is_kept=True, makes=False))
            held.enter_context(hold_nodes(store, found, options))
            if place is None or _has_lost_groups(store, destination, found[0].format):
                return False
        else:
            # Nobody creates a node among the keys. In order, or two moves would wait for each other.
            for path in sorted((source, destination)):
                held.enter_context(Place(store, path, "", options))
            held.enter_context(deletion.hold_all_nodes(store, source, options))
            # Without a document that is locked, holding it does not say that it is there.
            if not lookup.documents_at(store, source):
                raise _gone(store, source)
            if not store.is_empty(prefix_of(destination)):
                raise _not_free(store, destination)
        try:
            store.move(prefix_of(source), prefix_of(destination), DOCUMENTS)
        except KeyConflictError as error:
            # Another call creates a node there.
            raise _not_free(store, destination) from error
        except StoreError as error:
            if error.errno != errno.ENOENT or lookup.documents_at(store, source):
                raise
            # A group above was moved before.
            store.folders.prune(prefix_of(destination.rpartition("/")[0]))
            raise _gone(store, source) from error
    store.folders.prune(prefix_of(source))
    # The group above may have been deleted since it was looked at.
    if lookup.documents_at(store, destination):
        create_ancestors(store, destination, found[0].format, options)
    return True


def _not_free(store, path):
    return NodeExistsError(f"{store.describe(path)} is not free", path=path)


def _gone(store, path):
    return NodeNotFoundError(f"the node at {store.describe(path)} is gone", path=path)


def kind_text(node: lookup.FoundDocument) -> str:
    """Return the kind of a node, as text."""
    metadata = node.parse()
    return "a damaged node" if metadata is None else "an array" if isinstance(metadata, ArrayMetadata) else "a group"


def create_ancestors(store: Store, path: str, format: Format, options: Options, n_left: int = MAX_TRIES) -> None:
    """Create missing groups above `path`, from the root down, and again, `n_left` times, if they are missing then.

    Raises
    ------
    NodeExistsError
        An array exists above.
    StoreError
        There are attributes that a new group would treat as its own.
    """
    missing = missing_above(store, path, format, options)
    if missing:
        document = format.render_group(format.new_group({}))
        # All copies above any of them are above the deepest one.
        with consolidated.dropped(store, missing[0]):
            for one in reversed(missing):
                # Locked, because an array may be being created here. Its document comes after its elements.
                with Place(store, one, format.group_document, options):
                    if not _stands_as_group(store, one):
                        put_new(store, prefix_of(one) + format.group_document, document)
        # They, and the group above them, may have been moved or deleted since.
        for one in (*missing, path):
            if not lookup.documents_at(store, one.rpartition("/")[0]):
                if n_left == 0:
                    raise _loses_groups(store, one)
                create_ancestors(store, one, format, options, n_left - 1)


def _stands_as_group(store, path):
    """Return whether a group is at `path`. Raises : NodeExistsError, if it is an array."""
    documents = lookup.documents_at(store, path)
    if any([isinstance(node.parse(), ArrayMetadata) for node in documents]):
        raise NodeExistsError(f"there is an array at {store.describe(path)}, so nothing can be below it", path=path)
    return bool(documents)


def missing_above(store: Store, path: str, format: Format, options: Options) -> list[str]:
    """Return the paths of missing groups above `path`, upwards; see `create_ancestors`."""
    missing = []
    if not path or not format.has_groups:
        return missing
    path = path.rpartition("/")[0]
    deepest = lookup.nearest(store, path)
    while len(path) > len(deepest):
        missing.append(path)     # not even a directory
        path = path.rpartition("/")[0]
    while True:
        if _stands_as_group(store, path):
            # The groups above it were created with it.
            break
        lookup.check_no_special(store, path, format)
        lookup.check_no_set(store, path)
        group = format.new_group({})
        if any(deletion.left_over(store, prefix_of(path), format, group)):
            # A group may be being created or deleted here.
            with Place(store, path, format.group_document, options), contextlib.suppress(NodeExistsError):
                check_free(store, path, format, group)
        missing.append(path)
        if not path:
            break
        path = path.rpartition("/")[0]
    return missing


def resize(binding: ArrayBinding, shape: tuple[int, ...],
           check: Callable[[tuple[int, ...]], None] | None = None) -> None:
    """Change the shape of an array. Remaining elements keep their values, new ones have the fill value.

    Costs the objects at the border and outside, and a listing of existing objects.

    Parameters
    ----------
    binding : ArrayBinding
    shape : tuple of int
    check : callable, optional
        Called with the shape that the array has, under its lock. If it raises, nothing is changed.

    Raises
    ------
    ValueError
        The number of dimensions differs, or a length is negative.
    """
    until_won(lambda: _resize(binding, shape, check))


def _resize(binding, shape, check):
    with binding.exclusive() as exclusive:
        metadata = exclusive.metadata
        old = metadata.shape
        if check is not None:
            check(old)
        if len(shape) != len(old):
            raise ValueError(f"array has {len(old)} dimensions, the new shape {shape} has {len(shape)}")
        metadata = metadata.resized(shape)
        new = metadata.shape
        if new == old:
            return
        # First: if they cannot be listed, or lie behind a link, nothing changes.
        objects = list(binding.stored_chunks())
        added = _outside(binding, exclusive.metadata, old, objects) if any(map(int.__gt__, new, old)) else None
        removed = _outside(binding, metadata, new, objects) if any(map(int.__lt__, new, old)) else None
        with consolidated.dropped(binding.store, binding.path, itself=True, format=binding.format):
            if added is not None and _compares(binding):
                _reset_in_service(binding, exclusive, old, metadata, objects)
            elif added is not None:
                _reset(binding, exclusive, old, *added)
            exclusive.replace_metadata(metadata)
            if removed is not None:
                _reset(binding, exclusive, new, *removed)


class GrowingBinding(ArrayBinding):
    """An array with the shape that it is about to have, for writes of the new elements; see `make_room`.

    Parameters
    ----------
    binding : ArrayBinding
    old, new : tuple of int
        The shapes in the document and in its place.
    """

    __slots__ = ("_old", "_new")

    settles = True

    def __init__(self, binding: ArrayBinding, old: tuple[int, ...], new: tuple[int, ...]) -> None:
        self._old, self._new = old, new
        super().__init__(binding.store, binding.path, binding.format, binding.options)

    def view_of(self, raw: bytes, identity: Identity | None, ticket: int | None = None) -> View:
        view = super().view_of(raw, identity, ticket)
        if self.view is not None and view.metadata is self.view.metadata:
            return view     # the document that was read last
        if view.metadata.shape != self._old:
            raise another_writer(self, view.metadata.shape, self._old)
        return renewed(view, raw, identity, view.ticket, view.metadata.resized(self._new))


def another_writer(binding: ArrayBinding, found: tuple[int, ...], expected: tuple[int, ...]) -> StoreError:
    """Return the error for an array that another writer has resized."""
    return StoreError(f"{binding.describe()}: the array has the shape {found} by now, before it had {expected}: "
                      "another writer is at work", key=binding.document)


def make_room(binding: ArrayBinding, old: tuple[int, ...]) -> None:
    """Prepare an array of shape `old` for elements outside of it, which a `GrowingBinding` writes.

    No reader sees them before `lengthen`. Meanwhile the caller keeps out others that do the same. A writer that resizes
    the array is not kept out: then writes are errors.
    """
    with binding.exclusive() as exclusive:
        if exclusive.metadata.shape != old:
            raise another_writer(binding, exclusive.metadata.shape, old)
        _reset(binding, exclusive, old, *_outside(binding, exclusive.metadata, old, list(binding.stored_chunks())))


def lengthen(binding: ArrayBinding, shape: tuple[int, ...], check: Callable[[tuple[int, ...]], None]) -> None:
    """Give an array a shape of which all elements were written; see `resize`. Copies of its metadata stay."""
    with binding.exclusive() as exclusive:
        check(exclusive.metadata.shape)
        exclusive.replace_metadata(exclusive.metadata.resized(shape))


def append(binding: ArrayBinding, values: npt.NDArray[Any] | Callable[[int], npt.NDArray[Any] | None], axis: int,
           appended: Callable[[int], object] = int) -> tuple[int, ...]:
    """Append `values`, an ndarray of the stored type, along `axis`; return the new shape.

    `values` may be a function, which is called under the lock with the length that the array has; None appends nothing.
    ``appended(n)`` is called as soon as the array has the rows, whatever fails later.

    Appends of several threads and processes happen one after the other, each as a whole. A kill leaves the old length.
    In a service the rows are reserved first: a kill may leave rows with the fill value, and so may an error if another
    process has changed the document meanwhile, or if the service does not answer at all (`zcore.engine.stamps`).
    """
    return until_won(lambda: _append(binding, values, axis, appended))


def _append(binding, values, axis, appended):
    with binding.exclusive() as exclusive:
        metadata = exclusive.metadata
        has_axis = axis < metadata.ndim
        if has_axis and callable(values) and (values := values(metadata.shape[axis])) is None:
            return metadata.shape
        if not has_axis or values.dtype != metadata.dtype:
            raise StoreError(f"{binding.document}: the array was replaced by another one since it was opened; open it "
                             "again", key=binding.document)
        old = metadata.shape
        if values.ndim != len(old) or values.shape != old[:axis] + values.shape[axis:axis + 1] + old[axis + 1:]:
            raise ValueError(f"array has shape {old}, cannot append values of shape {values.shape} along axis {axis}")
        metadata = metadata.resized(old[:axis] + (old[axis] + values.shape[axis],) + old[axis + 1:])
        starts = tuple([old[d] if d == axis else 0 for d in range(len(old))])
        box = Box(starts, (1,) * len(old), values.shape)
        with consolidated.dropped(binding.store, binding.path, itself=True, format=binding.format):
            if _compares(binding):
                _append_in_service(binding, exclusive, box, values, axis, metadata)
                appended(values.shape[axis])
                return metadata.shape
            # Every object that the new elements touch is replaced or erased, so no old values appear in them.
            binding.write_once(exclusive.view, box, values, exclusive=exclusive, metadata=metadata, old_shape=old)
            try:
                exclusive.replace_metadata(metadata)
            finally:
                if exclusive.metadata.shape == metadata.shape:
                    appended(values.shape[axis])
        return metadata.shape


def _compares(binding):
    """Return whether only compare-and-swap prevents other processes from changing an array."""
    return binding.store.swaps and bool(binding.options.lock)


def _append_in_service(binding, exclusive, box, values, axis, metadata):
    """Reserve rows by the document, whose `metadata` has them, and write them; see the beginning of this module.

    Raises : LostRaceError, if another process has replaced the document. Nothing was reserved then.
    """
    old = exclusive.metadata
    if not values.size:
        exclusive.replace_metadata(metadata)
        return
    # Includes rows up to the end of the last object: these values do not cover it, and others may write the rest.
    end = end_of_objects(metadata, axis)
    padded = metadata.resized(tuple([end if d == axis else n for d, n in enumerate(metadata.shape)]))
    # A shrink that was cut off, or a write meanwhile, may have left objects there.
    binding.write_once(exclusive.view, box, None, exclusive=True, metadata=padded, old_shape=old.shape,
                       check=exclusive.check)
    exclusive.replace_metadata(metadata)
    try:
        binding.write_once(exclusive.view, box, values, exclusive=True, metadata=padded)
    except BaseException:
        # The reservation is undone, unless another process has appended behind it.
        with contextlib.suppress(ZcoreError):
            exclusive.replace_metadata(old)
        raise
    if not same_chunks(binding.look().metadata, metadata):
        raise StoreError(f"{binding.document}: another process has replaced the array while rows were appended",
                         key=binding.document)


def _reset_in_service(binding, exclusive, shape, metadata, objects):
    """Reset the elements beyond `shape` in objects of an array that grows to `metadata`.

    Objects outside the new shape stay: the next growth resets them.
    """
    grid, tasks = metadata.grid_shape, []
    for _, coords in objects:
        if all([i < n for i, n in zip(coords, grid, strict=True)]) and any(
                [first + length > n for first, length, n in zip(*metadata.place_of(coords), shape, strict=True)]):
            task = 0
            for i, n in zip(coords, grid, strict=True):
                task = task * n + i
            tasks.append(task)
    if tasks:
        binding.write_once(exclusive.view, whole(metadata.shape), None, exclusive=True, metadata=metadata,
                           old_shape=shape, tasks=tasks, check=exclusive.check)


def _outside(binding, metadata, shape, objects):
    """Return the keys of the objects outside of `shape`, and the numbers of those that extend beyond it.

    `objects`: pairs of key and coordinates, see `ArrayBinding.stored_chunks`.

    Raises : StoreError, if one of them lies behind a link to a directory: it may belong to another array.
    """
    metadata = metadata.replace(shape=shape)
    grid = metadata.grid_shape
    outside, border, links = [], [], {}
    for key, coords in objects:
        if any(i >= n for i, n in zip(coords, grid, strict=True)):
            outside.append(key)
        elif any([first + length > n for first, length, n in zip(*metadata.place_of(coords), shape, strict=True)]):
            task = 0
            for i, n in zip(coords, grid, strict=True):
                task = task * n + i
            border.append(task)
        else:
            continue
        # Otherwise the error would come when it is erased or reset, after the document has changed.
        binding.store.folders.check_no_special("", (key,))
        link = deletion.link_on_the_way(binding.store, binding.prefix, key, links)
        if link is not None:
            raise StoreError(f"{link!r} of {binding.store!r} is a link to a directory: the chunks there may belong "
                             "to another array, and are not erased; replace the link by the directory",
                             key=link)
    return outside, border


def _reset(binding, exclusive, shape, outside, border):
    """Erase the objects `outside`, and reset objects at the border to the fill value beyond `shape`."""
    check = exclusive.check if _compares(binding) else None
    for i, key in enumerate(outside):
        if check is None:
            exclusive.check_place(", and objects outside its shape may have stayed")     # a store erases by path
        elif i % _MAX_UNCHECKED == 0:
            check()     # another process may have appended, and its rows may be there
        binding.store.erase(key)
    if border:
        binding.write_once(exclusive.view, whole(shape), None, exclusive=exclusive,
                           metadata=exclusive.metadata.replace(shape=shape), old_shape=shape, tasks=border, check=check)


def change_attributes(binding: NodeBinding, change: Callable[[dict[str, Any]], Any]) -> Any:
    """Call ``change(attributes)`` with a dict, store the changed dict in one write, and return the result of `change`.

    Two writers that change attributes at the same time both succeed.
    """
    format, store = binding.format, binding.store
    result = None

    def changed(attributes):
        nonlocal result
        old = dict(attributes)
        result = change(attributes)
        check_attributes(attributes, old, not format.strict_attributes)
        return attributes

    def once():
        with (consolidated.dropped(store, binding.path, itself=True, format=binding.format),
              binding.exclusive() as exclusive):
            store_changed(exclusive)

    def store_changed(exclusive):
        if format.has_inline_attributes:
            attributes = changed(read_attributes(binding))
            exclusive.replace_metadata(exclusive.metadata.replace(attributes=attributes))
            return
        key = binding.prefix + format.attributes_document
        if store.swaps and binding.options.lock:
            swap(store, key, (0, MAX_NBYTES + 1), lambda raw, identity: format.render_attributes(
                changed(format.parse_attributes(raw, binding.path))), is_document=True)
        else:
            attributes = changed(read_attributes(binding))
            exclusive.check_place()     # they were read by the path
            exclusive.set_beside(format.attributes_document, format.render_attributes(attributes))

    until_won(once)
    return result


def read_attributes(binding: NodeBinding, view: View | None = None) -> dict[str, Any]:
    """Return the stored attributes, a new dict; those of a `view`, if the document has them and it is given.

    Raises : NodeNotFoundError, if the node was deleted.
    """
    format = binding.format
    if format.has_inline_attributes:
        # Parsed anew, since handles share the metadata and the caller may change the dict. The handle has warned once.
        raw = (view or binding.look()).raw
        with noted():
            return format.parse_node(binding.document_name, raw, binding.path).attributes
    try:
        raw = binding.store.get(binding.prefix + format.attributes_document, AtMost(MAX_NBYTES + 1))
        # In this order: when a node is deleted, the document is erased first.
        if not binding.store.exists(binding.document):
            raise binding.not_found(f"{binding.document} does not exist")
        return format.parse_attributes(raw, binding.path)
    except ZcoreError as error:
        error.locate(binding.describe())
        raise
