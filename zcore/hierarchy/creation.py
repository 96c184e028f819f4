"""Creates nodes in an order that leaves no wrong data after a kill: attributes, elements, then the metadata document.

A node exists from its last write on. Overwriting means deleting (`zcore.hierarchy.deletion`), then creating, or in a
directory one exchange (`zcore.hierarchy.exchange`). Each step runs under the lock of the node's directory.
"""
from __future__ import annotations

import contextlib
import errno
import os
from functools import partial
from operator import call
from typing import TYPE_CHECKING, NamedTuple

from zcore.engine.array_binding import ArrayBinding
from zcore.engine.node_binding import GroupBinding
from zcore.engine.options import Options
from zcore.engine.stamps import put_new, put_stamped, stamped
from zcore.engine.views import View, unseen, view_of_new
from zcore.errors import LockError, NodeExistsError, NodeNotFoundError, ReadOnlyError, StoreError, ZcoreError, warn_of
from zcore.formats.json_documents import check_attributes, check_whole_characters
from zcore.hierarchy import consolidated, deletion, exchange, lookup
from zcore.hierarchy.creation_lock import MAX_TRIES, Place, hold_tree
from zcore.hierarchy.unfinished import unfinished
from zcore.kernel.io.documents import Look
from zcore.kernel.select.box import whole
from zcore.model.metadata import ArrayMetadata
from zcore.stores.base import directory_at, n_at_once, together
from zcore.stores.directory.staged import StagedDirectory
from zcore.stores.directory.store import DirectoryStore
from zcore.stores.keys import above, prefix_of
from zcore.stores.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    import numpy.typing as npt

    from zcore.formats.base import Format
    from zcore.model.metadata import GroupMetadata
    from zcore.stores.base import Store


class NewNode(NamedTuple):
    """A node to be created. Everything that can be checked without a store has been checked.

    Attributes
    ----------
    format : Format
    metadata : ArrayMetadata or GroupMetadata
    attributes : dict or None
        If the format has a document for them; else None, as they are part of the metadata.
    data : ndarray or None
        The elements of an array, of its shape and type.
    """

    format: Format
    metadata: ArrayMetadata | GroupMetadata
    attributes: Mapping[str, Any] | None = None
    data: npt.NDArray[Any] | None = None

    def check(self, store: Store, path: str, options: Options, overwrite: bool, *, is_topmost: bool = True) -> None:
        """Raise the errors that `create` would raise before it changes anything; for nodes that are created together.

        `is_topmost`: none of the other nodes is above this one.
        """
        lookup.check_names(path, self.format)
        check_replaceable(store, path, overwrite)
        self.documents(path, options)
        if is_topmost:
            missing_above(store, path, self.format, options)
        if overwrite:
            deletion.check_way(store, path, self.format, self.metadata)
        else:
            check_free(store, path, self, options)

    def opened(self, store: Store, path: str, options: Options) -> Any:
        """Return the binding of the node after its creation."""
        return _kind(self.metadata)(store, path, self.format, options)

    def create(self, store: Store, path: str, options: Options, overwrite: bool, *, is_below: bool = False) -> Any:
        """Create the node, and return its binding; see `creation.create`."""
        lookup.check_new_names(path, self.format)
        try:
            with hold_tree(store, path, options, is_whole=overwrite):
                return create(store, path, self, options, overwrite=overwrite, is_below=is_below)
        except ZcoreError as error:
            error.locate(store.describe(path))
            raise

    def documents(self, path: str,
                  options: Options) -> tuple[type[ArrayBinding | GroupBinding], bytes, bytes | None, View]:
        """Return (class of the binding, document, document of the attributes or None, view) of the node.

        A node that could not be opened, for instance with contradicting codecs, is an error before anything is changed.
        """
        if options.dimension_separator is not None:
            raise TypeError("dimension_separator is for opening an array; a new array takes chunk_key_encoding")
        format, metadata, attributes, _ = self
        kind, new, of_attributes = _kind(metadata), metadata.attributes or attributes, None
        try:
            document = format.render(metadata)
            if attributes:
                of_attributes = format.render_attributes(attributes)
            for raw in document, of_attributes or b"":
                if b"\\" in raw:
                    check_whole_characters(raw.decode())
            is_clear = not new or not format.strict_attributes or not (b"NaN" in document or b"Infinity" in document)
        except (TypeError, ValueError):
            if new:
                check_attributes(new, {}, not format.strict_attributes)     # this error names the attribute
            raise
        if not is_clear:
            check_attributes(new, {})
        view = view_of_new(format, format.document_of(kind.kind), document, metadata, path, options)
        if view.chain is not None:
            view.chain.check_sizes()
        return kind, document, of_attributes, view


def _kind(metadata):
    return ArrayBinding if isinstance(metadata, ArrayMetadata) else GroupBinding


def create(store: Store, path: str, new: NewNode, options: Options, *, overwrite: bool = False,
           is_below: bool = False) -> Any:
    """Create an array or a group, and missing groups above it; return its binding.

    Parameters
    ----------
    store : Store
    path : str
    new : NewNode
    options : Options
    overwrite : bool
        Replace the existing node, with all nodes below it and all remains of lost nodes.
    is_below : bool
        It is part of a change further up, which drops the consolidated metadata above.

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
    steps = _Creation(store, path, new, options, overwrite, is_below)
    if store.read_only:
        raise ReadOnlyError(f"{store!r} is read-only: no {steps.kind.what} can be created", key=steps.key)
    if not overwrite and options.lock != "file" and (
            binding := steps.made_by_requests() if n_at_once(store) else steps.made_at_once()) is not None:
        return binding
    if not is_below:
        check_replaceable(store, path, overwrite)
    for _ in range(MAX_TRIES):
        missing = missing_above(store, path, new.format, options)
        if missing and overwrite:
            deletion.check_way(store, path, new.format, new.metadata)
        create_ancestors(store, path, new.format, options, missing=missing)
        if overwrite:
            deletion.unlink(store, path)
        with contextlib.suppress(_AgainError):
            return steps.made_beside() or steps.made_in_place()
    raise loses_groups(store, path)


class _AgainError(StoreError):
    """Another call has changed something before the node was there: all may begin again."""


def _lost_groups(store, path):
    return _AgainError(f"a group above {store.describe(path)} was moved or deleted meanwhile", key=path)


class _Creation:
    """The steps of one call of `create`, in their order."""

    def __init__(self, store, path, new, options, overwrite, is_below):
        self.store, self.path, self.new, self.options = store, path, new, options
        self.format, self.overwrite, self.is_below = new.format, overwrite, is_below
        self.kind, self.document, self.attributes_document, self.view = new.documents(path, options)
        self.prefix, self.name = prefix_of(path), new.format.document_of(self.kind.kind)
        self.key = self.prefix + self.name
        self.can_exchange = False       # a node that comes there meanwhile can be replaced in one step

    def made_at_once(self):
        """Create a node without elements in a new directory, by one call of the store, and return its binding.

        None if that is not possible: then the other steps raise the reason. Here, what a new directory cannot hold is
        not looked for, and what is known of the groups above is not asked twice.
        """
        store, path, format, options, view = self.store, self.path, self.format, self.options, self.view
        above = consolidated.look_above(store, path, format) if self.new.data is None else None
        if above is None:
            return None
        names, values = (self.name,), (self.document,)
        if self.attributes_document is not None:
            names, values = (format.attributes_document, *names), (self.attributes_document, *values)
        is_same = False
        try:
            # The group is looked for again under the lock of the new directory. A later deletion of it finds this node.
            identity = store.folders.make_directory_with(self.prefix, names, values, options.lock is not None,
                                                         format.group_document if options.lock and path else None)
            is_same = all(map(Look.is_same, above))
        finally:
            # As `consolidated.dropped` does after a change.
            if not is_same:
                consolidated.drop(store, path)
        if identity is None:
            return None
        if not is_same or not identity:
            return self.opened_unseen(view)     # a group above may have been moved or deleted
        if view.notes:
            warn_of(store.describe(path), view.notes)
        return self.opened(View(*view[:5], identity, False, view.ticket))

    def made_by_requests(self):
        """Create a node at a service, where all that is looked at is asked for at the same time, before and after.

        None if something is there, or if copies are above: then the other steps follow.
        """
        store, path, is_same = self.store, self.path, False
        if not store.swaps or store.is_transaction:
            return None
        looks = consolidated.looks_above(store, path)
        with Place(store, path, self.name, self.options) as place:
            is_empty, *above = together(store, call, [partial(store.is_empty, self.prefix), *looks])
            if not is_empty or not consolidated.are_bare(self.format, path, above):
                return None
            try:
                view = self.written(place, False)
                is_same = together(store, call, looks) == above
            finally:
                if not is_same:
                    consolidated.drop(store, path)
        return self.opened_unseen(view)

    def made_beside(self):
        """Create the node in a directory beside its place, which then gets the name, and return its binding.

        None if that is impossible or needless, or if something comes there that is not replaced: the next step tells.
        """
        if self.is_below:
            return None     # it belongs to a directory that is being made beside its place already
        self.can_exchange = False
        with contextlib.suppress(exchange.NoExchangeError, NodeExistsError):
            # Without elements, a new document is all.
            with replacing(self.store, self.path, self.options, self.overwrite,
                           makes=self.new.data is not None) as inner:
                if inner is None:
                    self.can_exchange = exchange.directory_of(self.store, self.path) is not None
                    return None
                create(inner, "", self.new, self.options.changed({"lock": False}), is_below=True)
            self.check_groups()
            try:
                return self.opened()
            except NodeNotFoundError:     # another call has replaced or deleted it meanwhile
                return self.opened_unseen(self.view)
        return None

    def made_in_place(self):
        """Create the node step by step where it will be, and return its binding."""
        store, path, format, options = self.store, self.path, self.format, self.options
        with Place(store, path, self.name, options) as place:
            self.check_groups()     # now that it is held
            is_free = store.is_empty(self.prefix)
            if not is_free and not self.overwrite:
                check_free(store, path, self.new, options)
            # Overwriting also replaces unreachable documents.
            failed = lookup.pass_over_damage if self.overwrite else None
            is_replaced = not is_free and bool(lookup.documents_at(store, path, failed))
            if is_replaced and self.overwrite and self.can_exchange:
                raise _AgainError(f"another call has created {store.describe(path)} meanwhile", key=path)
            with (contextlib.nullcontext() if self.is_below
                  else consolidated.dropped(store, path, itself=is_replaced, format=format)):
                try:
                    if not is_free:
                        lookup.check_no_special(store, path, format)
                        if self.overwrite:
                            deletion.make_way(store, path, format, self.new.metadata, options, place)
                            if not place.is_here():
                                raise _lost_groups(store, path)     # what was to go may be in the held directory
                    view = self.written(place, is_replaced)
                except (NodeNotFoundError, StoreError) as error:
                    if getattr(error, "errno", errno.ENOENT) != errno.ENOENT or place.is_here():
                        raise
                    raise _lost_groups(store, path) from error     # and the directory with them
            # Asked while it is held: later another node may be here, or a group above may have another path.
            if not store.swaps and place.is_here() and not has_lost_groups(store, path, format):
                return self.opened()
        return self.opened_unseen(view)

    def written(self, place, is_replaced):
        """Write attributes, elements and the document, which makes the node; return the view of the document."""
        store, format, data, document = self.store, self.format, self.new.data, self.attributes_document
        if not self.options.lock:
            store.folders.make_directory(self.prefix)     # no lock has made it, or kept it
        if self.kind is ArrayBinding and format.chunk_directory is not None:
            store.folders.make_directory(f"{self.prefix}{format.chunk_directory}/")
        if document is not None:
            key = self.prefix + format.attributes_document
            if not store.swaps:
                place.set(format.attributes_document, document)
            elif put_new(store, key, document) is None and (
                    store.get(key) or b"").rstrip(b" \t\n") != document.rstrip():
                raise self.created_meanwhile()     # of two processes, one succeeds
        if data is not None and store.swaps:
            return self.written_in_service(whole(data.shape), data)
        if data is not None:
            if store.is_transaction:
                store.set(self.key, self.document)     # without it Icechunk takes no chunk
            # The place is held, and there is no array that another writer could have opened.
            self.opened(self.view).write_once(self.view, whole(data.shape), data, holder=place)
        # If the directory is locked, no other process can have created a node meanwhile.
        if (not store.swaps and (is_replaced or self.overwrite) or store.is_transaction
                or directory_at(store) is not None):
            place.set(self.name, self.document)
            return self.view
        return self.put()

    def written_in_service(self, box, data):
        """Write elements and document where locks exclude only this process; return the view of the document.

        A document that cannot be opened holds the place meanwhile, see `zcore.hierarchy.unfinished`. If the service has
        no compare-and-swap, or the caller wants no locks, looks at it must do.
        """
        store, placeholder, identity = self.store, stamped(unfinished(self.document)), None
        if self.options.lock:
            with contextlib.suppress(LockError):
                if (identity := put_stamped(store, self.key, placeholder, None)) is None:
                    raise self.created_meanwhile()
        if identity is None and not store.set_if_not_exists(self.key, placeholder):
            raise self.created_meanwhile()
        view = self.view._replace(raw=placeholder, identity=identity, trusted=identity is not None)
        made = self.view._replace(raw=stamped(self.document, placeholder))
        binding = self.opened(view)
        is_whole = not binding.write_once(view, box, data).stale
        if identity is not None:
            is_whole = is_whole and put_stamped(store, self.key, made.raw, identity) is not None
        elif is_whole := is_whole and binding.is_current(view):
            store.set(self.key, made.raw)
        if not is_whole:
            raise StoreError(f"another process has replaced the array at {store.describe(self.path)} while its "
                             "elements were written", key=self.key)
        return made

    def put(self):
        """Put the document if there is none, and return its view."""
        if (raw := put_new(self.store, self.key, self.document)) is None:
            raise self.created_meanwhile()
        return self.view._replace(raw=raw)

    def check_groups(self):
        """Raise unless the group above is there, which may have been moved or deleted since it was found or made."""
        if has_lost_groups(self.store, self.path, self.format):
            raise _lost_groups(self.store, self.path)

    def created_meanwhile(self):
        return NodeExistsError(f"another process has created a node at {self.store.describe(self.path)} meanwhile",
                               path=self.path)

    def opened(self, view=None):
        """Return the binding of the node; without a view it reads the document."""
        return self.kind(self.store, self.path, self.format, self.options, view)

    def opened_unseen(self, view):
        """Return the binding of the node, which finds out when it is used whether the node was replaced or deleted.

        A group above may have been moved, with the node, or deleted. If it was deleted in its place, the node is here.
        """
        if not self.store.swaps and lookup.documents_at(self.store, self.path):
            create_ancestors(self.store, self.path, self.format, self.options)
        warn_of(self.store.describe(self.path), view.notes)
        return self.opened(unseen(view))


def loses_groups(store: Store, path: str) -> StoreError:
    """Return the error for groups above a path that are gone each time."""
    return StoreError(f"cannot create {store.describe(path)}: a group above it is gone as soon as it is found or made",
                      key=prefix_of(path))


@contextlib.contextmanager
def replacing(store: Store, path: str, options: Options, overwrite: bool = True, *,
              makes: bool = False) -> Iterator[DirectoryStore | None]:
    """Return a context manager of a store whose root gets the place of `path`, with all below it, in the end.

    It gives None if the store cannot do that in one step, or if there is no node that may be overwritten, unless it
    `makes` one where nothing is. After an error the old node stays.

    Raises : NoExchangeError, in the end, if files that belong to no node cannot stay; nothing was changed.
    """
    directory = exchange.directory_of(store, path)
    is_there = directory is not None and os.path.lexists(directory)
    if directory is None or not (overwrite and lookup.documents_at(store, path, lookup.pass_over_damage)
                                 if is_there else makes):
        yield None
        return
    with StagedDirectory(directory, store.fsync) as work:
        try:
            yield DirectoryStore(work.node, fsync=False)
            with consolidated.dropped(store, path, itself=is_there):
                exchange.commit(store, path, work, options, overwrite)
        except (NodeNotFoundError, StoreError) as error:
            if work.is_here():
                raise
            raise _lost_groups(store, path) from error


def has_lost_groups(store: Store, path: str, format: Format) -> bool:
    """Whether the group above was moved or deleted since it was found or made."""
    if not path or not format.has_groups or store.swaps:
        return False
    above = path.rpartition("/")[0]
    return not store.existing(prefix_of(above), (format.group_document,)) and not lookup.documents_at(store, above)


def check_replaceable(store: Store, path: str, overwrite: bool) -> None:
    """Raise NodeExistsError if there is a node that this version does not replace, or only nodes below."""
    if not overwrite or not store.folders.is_link(prefix_of(path)):     # a link is replaced, wherever it leads
        lookup.check_replaceable(store, path)
        if overwrite:
            deletion.check_no_nodes_below(store, path)


def check_free(store: Store, path: str, new: NewNode, options: Options) -> None:
    """Raise unless a node can be made at `path` without replacing anything; see `create` for the parameters.

    Chunks and attributes from an earlier, interrupted run of the same creation are no error: they are written again.

    Raises
    ------
    NodeExistsError
        The node exists.
    StoreError
        There are attributes or chunks that the new node would treat as its own, or something is unreachable.
    """
    if store.is_empty(prefix_of(path)):
        return
    documents = lookup.documents_at(store, path)
    if documents:
        raise NodeExistsError(f"{store.describe(path)} holds {kind_text(documents[0])} already; overwrite=True "
                              "(mode 'w') replaces it", path=path)
    lookup.check_free(store, path)
    lookup.check_no_set(store, path)
    prefix, made = prefix_of(path), None
    for key in deletion.left_over(store, prefix, new.format, new.metadata):
        if made is None:
            made = MemoryStore()
            create(made, "", new, options)
        value = made.get(key[len(prefix):])
        # If the key is gone now, another call has moved or deleted its node.
        if store.get(key) not in (None, value) if value is not None else not _is_gone(store, key):
            raise _left_over(store, path, key)
    for key in deletion.in_the_way(store, prefix, new.metadata):
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


def kind_text(node: lookup.FoundDocument) -> str:
    """Return the kind of a node, as text."""
    metadata = node.parse()
    return "a damaged node" if metadata is None else "an array" if isinstance(metadata, ArrayMetadata) else "a group"


def create_ancestors(store: Store, path: str, format: Format, options: Options, n_left: int = MAX_TRIES,
                     missing: list[str] | None = None) -> None:
    """Create missing groups above `path`, from the root down, and again, `n_left` times, if they are missing then.

    `missing`: what `missing_above` has just returned.

    Raises
    ------
    NodeExistsError
        An array exists above.
    StoreError
        There are attributes that a new group would treat as its own.
    """
    missing = missing_above(store, path, format, options) if missing is None else missing
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
                    raise loses_groups(store, one)
                create_ancestors(store, one, format, options, n_left - 1)


def _stands_as_group(store, path):
    """Return whether a group is at `path`. Raises : NodeExistsError, if it is an array."""
    documents = lookup.documents_at(store, path)
    if any([isinstance(node.parse(), ArrayMetadata) for node in documents]):
        raise NodeExistsError(f"there is an array at {store.describe(path)}, so nothing can be below it", path=path)
    return bool(documents)


def missing_above(store: Store, path: str, format: Format, options: Options) -> list[str]:
    """Return the paths of missing groups above `path`, upwards; see `create_ancestors`."""
    missing, paths = [], above(path) if format.has_groups else ()
    deepest = lookup.nearest(store, paths[0]) if paths else ""
    for path in paths:
        if len(path) <= len(deepest):     # else there is not even a directory
            if _stands_as_group(store, path):
                # The groups above it were created with it.
                break
            lookup.check_no_special(store, path, format)
            lookup.check_no_set(store, path)
            group = format.new_group({})
            if any(deletion.left_over(store, prefix_of(path), format, group)):
                # A group may be being created or deleted here.
                with Place(store, path, format.group_document, options), contextlib.suppress(NodeExistsError):
                    check_free(store, path, NewNode(format, group), Options())
        missing.append(path)
    return missing
