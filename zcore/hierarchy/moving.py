"""Moves a node, with everything below it."""
from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from zcore.engine.options import Options
from zcore.engine.stamps import moved
from zcore.errors import KeyConflictError, NodeExistsError, NodeNotFoundError, StoreError
from zcore.formats import DOCUMENTS
from zcore.hierarchy import consolidated, creation, deletion, lookup
from zcore.hierarchy.creation_lock import MAX_TRIES, Place, hold_nodes, hold_tree
from zcore.stores.base import Folders
from zcore.stores.keys import prefix_of

if TYPE_CHECKING:
    from zcore.stores.base import Store


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
                raise creation.loses_groups(store, destination)
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
    creation.create_ancestors(store, destination, found[0].format, options)
    # No stack of exits, which Ctrl-C could end before it has released a lock.
    with consolidated.dropped(store, source, itself=True), consolidated.dropped(store, destination):
        # A lock of the destination would make its directory.
        if isinstance(store, Folders):
            with (Place(store, source, "", options, is_kept=True, makes=False) as place,
                  hold_nodes(store, found, options)):
                if place is None or creation.has_lost_groups(store, destination, found[0].format):
                    return False
                _rename(store, source, destination)
        else:
            # Nobody creates a node among the keys. In order, or two moves would wait for each other.
            first, last = sorted((source, destination))
            with (Place(store, first, "", options), Place(store, last, "", options),
                  hold_nodes(store, deletion.documents_from(store, source), options)):
                # Without a document that is locked, holding it does not say that it is there.
                if not lookup.documents_at(store, source):
                    raise _gone(store, source)
                if not store.is_empty(prefix_of(destination)):
                    raise _not_free(store, destination)
                _rename(store, source, destination)
    store.folders.prune(prefix_of(source))
    # The group above may have been deleted since it was looked at.
    if lookup.documents_at(store, destination):
        creation.create_ancestors(store, destination, found[0].format, options)
    return True


def _rename(store, source, destination):
    try:
        store.move(prefix_of(source), prefix_of(destination), DOCUMENTS, moved if store.swaps else None)
    except KeyConflictError as error:
        # Another call creates a node there.
        raise _not_free(store, destination) from error
    except StoreError as error:
        if error.errno != errno.ENOENT or lookup.documents_at(store, source):
            raise
        # A group above was moved before.
        store.folders.prune(prefix_of(destination.rpartition("/")[0]))
        raise _gone(store, source) from error


def _not_free(store, path):
    return NodeExistsError(f"{store.describe(path)} is not free", path=path)


def _gone(store, path):
    return NodeNotFoundError(f"the node at {store.describe(path)} is gone", path=path)
