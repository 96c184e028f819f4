"""Deletes nodes, with all nodes below them. Overwriting means deleting, then creating.

Only a node is deleted: a path with a document, or a link to one or to nowhere. A path without a document may be a
folder of anything, and nodes below it were never named by the caller. `no_node` names them, so each can be deleted.

A group is deleted after its members. So an interrupted deletion leaves a group with the members that are not deleted
yet, and the same call continues. The document of an array is deleted before its chunks, so no kill leaves an array with
holes. Nodes are found at any depth, also below directories that are no nodes. All are noted before anything changes,
with one look at each directory. Every directory, also of chunks, is listed before the first node is deleted. If one
cannot be listed, that is an error and nothing changes.

A link is removed, never followed. It may lead to a node of another hierarchy, or to one above. Only the store's own
directory may be a link, as for every reader. Files that belong to no node stay.
"""
from __future__ import annotations

import contextlib
import errno
import os
import re
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from zcore.errors import NodeExistsError, NodeNotFoundError, StoreError, ZcoreError
from zcore.formats import FORMAT_OF
from zcore.hierarchy import consolidated, exchange, lookup
from zcore.hierarchy.creation_lock import Place, hold_nodes, hold_tree, is_held
from zcore.hierarchy.ownership import chunk_role, documents_beside
from zcore.model.metadata import ArrayMetadata, GroupMetadata
from zcore.stores.base import Folders, directory_at, n_at_once, outcomes, run_together, together
from zcore.stores.keys import above, between, prefix_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zcore.engine.options import Options
    from zcore.formats.base import Format
    from zcore.stores.base import Store

# Directories that are listed to find nodes below a path without one, and nodes that a message names.
_MAX_LOOKS, _MAX_LOOKS_AT_SERVICE = 1000, 50
_MAX_NAMED = 5
# A chunk of an array with any number of dimensions, as Zarr v3 and v2 name it; or a directory of such chunks.
_is_chunk_of_any = re.compile(r"(?:c|(?:c[./])?[0-9]+(?:[./][0-9]+)*)", re.ASCII).fullmatch


def documents_from(store: Store, path: str) -> list[lookup.FoundDocument]:
    """Return those of all nodes at a path and below, for `hold_nodes`; the caller holds the tree.

    Those below come first, as a change of an array takes the locks of groups above it.
    """
    return [node for _, nodes in nodes_at(store, path, is_replaced=True) for node, _ in nodes][::-1]


def delete(store: Store, path: str, options: Options) -> bool:
    """Delete the node at `path` and all nodes below it; return whether this call has deleted any.

    If the directory is a link, the link is removed, and never what it leads to. Where no node is, nothing is deleted,
    whatever is below: see `no_node`.
    """
    if not lookup.node_exists(store, path):
        return False
    if unlink(store, path):
        return True
    if path and (directory := exchange.directory_of(store, path)) is not None:
        with contextlib.suppress(exchange.NoExchangeError):     # then step by step
            return exchange.delete(store, path, directory, options)
    with (hold_tree(store, path, options), Place(store, path, "", options, makes=False) as place,
          consolidated.dropped(store, path, itself=True)):
        # Another call may have deleted it before the place was held.
        is_ours = place is not None and delete_held(store, path, options, place)
    store.folders.prune(prefix_of(path))     # the lock had kept it
    return is_ours


def delete_held(store: Store, path: str, options: Options, place: Place | None = None) -> bool:
    """Do as `delete`, for a caller who holds the `place` and the tree, and drops the copies above."""
    return unlink(store, path) or (bool(lookup.documents_at(store, path)) and _erase(store, path, options, place))


def no_node(store: Store, path: str) -> str:
    """Return a sentence that says that there is no node at `path`. It has the paths of nodes below, but not in others.

    The search is bounded. It stays near `path`, and enters no links.
    """
    directory = directory_at(store, prefix_of(path))
    if directory is not None and not os.path.lexists(directory):
        return f"{store.describe(path)} does not exist"
    said = f"{store.describe(path)} holds no node"
    found, n_looks = _below(store, path)
    named = ", ".join(map(repr, found[:_MAX_NAMED]))
    if len(found) > _MAX_NAMED:
        named += f" and {len(found) - _MAX_NAMED} more"
    if found:
        said += f"; nodes lie below, each with a name of its own: {named}"
        if n_looks is not None:
            said += f" (found in the {n_looks} nearest directories)"
    return said


def check_no_nodes_below(store: Store, path: str) -> None:
    """Raise NodeExistsError if nodes are below `path` and none is there: overwriting would take what nobody named."""
    if not _is_node(store, path) and _below(store, path)[0]:
        raise NodeExistsError(f"{no_node(store, path)}; what is there is not replaced", path=path)


def _below(store, path):
    return lookup.nodes_below(store, path, _MAX_LOOKS_AT_SERVICE if n_at_once(store) else _MAX_LOOKS)


def _is_node(store, path):
    """Return whether a node is at `path`; its document may be unreachable."""
    try:
        return bool(lookup.documents_at(store, path))
    except StoreError as error:
        lookup.pass_over_damage(error)
        return True


def unlink(store: Store, path: str) -> bool:
    """Remove a link at `path` to a directory or to nowhere; return whether there was one.

    The root of a store is followed, as `zcore.open` does.
    """
    if not store.folders.is_link(prefix_of(path)):
        return False
    with consolidated.dropped(store, path):
        store.delete(path)
    return True


def make_way(store: Store, path: str, format: Format, metadata: ArrayMetadata | GroupMetadata,
             options: Options, place: Place) -> None:
    """Delete everything that a new node at `path` replaces: the node, all nodes below it, and remains of lost nodes.

    The caller holds the `place`, and drops the copies above. If it `is_here` no more in the end, something may be left.
    See `check_no_nodes_below` for a path without a node.
    """
    prefix = prefix_of(path)
    _check_new(store, prefix, format, metadata)
    if _is_node(store, path):
        _erase(store, path, options, place, is_replaced=True)
    clear_left_over(store, prefix, format, metadata, place)
    if isinstance(metadata, ArrayMetadata):
        # An empty directory may have the name of a future chunk.
        store.folders.prune(prefix + metadata.chunk_keys.folder(metadata.ndim), below=True)


def check_way(store: Store, path: str, format: Format, metadata: ArrayMetadata | GroupMetadata) -> None:
    """Raise StoreError if `make_way` would, because something cannot be listed or erased, before it erases anything."""
    prefix = prefix_of(path)
    if not store.is_empty(prefix) and not store.folders.is_link(prefix):
        _check_new(store, prefix, format, metadata)
        if _is_node(store, path):
            _erasable(store, path, is_replaced=True)


def clear_left_over(store: Store, prefix: str, format: Format, metadata: ArrayMetadata | GroupMetadata,
                    place: Place | None = None) -> None:
    """Erase the remains of lost nodes that a new node of this format and metadata would treat as its own."""
    names = [*_names_of_chunks(store, prefix, metadata),
             *[key for key in in_the_way(store, prefix, metadata) if _is_chunk_of_any(key[len(prefix):])]]
    if names or any(left_over(store, prefix, format, metadata)):
        _clear(store, prefix, format, metadata, names, place)


def in_the_way(store: Store, prefix: str, metadata: ArrayMetadata | GroupMetadata) -> Iterator[str]:
    """Iterate over the keys that cannot exist beside the chunks of a new array.

    Such a key has the name of a directory of chunks, or lies below the name of a chunk. An interrupted deletion may
    have left chunks of an array with another number of dimensions.
    """
    if not isinstance(metadata, ArrayMetadata):
        return
    n, listing = len(prefix), store.list_dir(prefix)
    pending = listing.keys
    for below in listing.prefixes:
        if chunk_role(below[n:-1], metadata):
            pending += store.list_prefix(below)
    for key in pending:
        if chunk_role(key[n:], metadata) == "directory" or any([
                chunk_role(one[n:], metadata) == "chunk" for one in between(prefix, key)]):
            yield key


def _check_new(store, prefix, format, metadata):
    """Raise StoreError if something that cannot be erased has a name of a new node, or is in the way of its chunks.

    A file that belongs to no node, such as 2016/1.jpg, may be in their way.
    """
    _check_erasable(store, prefix, format, metadata)
    nodes = {}
    for key in in_the_way(store, prefix, metadata):
        if _is_chunk_of_any(key[len(prefix):]):
            continue
        above = between(prefix, key)
        nodes.update([(place, _is_node(store, place)) for place in above if place not in nodes])
        if not any([nodes[place] for place in above]):     # nodes below are deleted first
            raise StoreError(f"{key!r} of {store!r} is in the way of chunks, and no chunk has such a name: it is not "
                             "erased, and nothing was changed", key=key, errno=errno.EEXIST)


def _check_erasable(store, prefix, format, metadata):
    """Raise StoreError if something that cannot be erased, such as a FIFO, has a name of a node at `prefix`.

    `metadata` are None if they are damaged. Unless they are a group's, every directory below `prefix` is listed. So
    a directory that cannot be listed is an error, too.
    """
    store.folders.check_no_special(prefix, documents_beside(format))
    if isinstance(metadata, GroupMetadata):
        return
    if not isinstance(store, Folders):
        list(store.list_prefix(prefix))
    for key in store.folders.list_special(prefix):
        if chunk_role(key[len(prefix):], metadata):
            raise StoreError(f"{key!r} of {store!r} is neither a file nor a directory: it is not erased, and nothing "
                             "was changed", key=key, errno=errno.ESPIPE)


def _erase(store, path, options, place, *, is_replaced=False):
    """Delete the node at `path` and all nodes below it; return whether this call has deleted any.

    The caller holds the `place` at `path`, and drops the copies above. `is_replaced`: a new node comes there.
    """
    is_ours, are_groups, is_first = False, True, True
    # A member may be created until the document of its group is erased. Later, `create` makes the group again.
    while are_groups:
        # Fails before the first node is deleted.
        found = _erasable(store, path, is_replaced=is_replaced, waits=None if is_first else options)
        # For a while the groups have fewer members than their copies.
        run_together(partial(consolidated.drop_copies, store), [one for one, is_group in found if is_group],
                     store.n_requests)
        is_any_ours = _erase_all(store, path, [one for one, _ in found], options, place, is_replaced, is_first)
        is_ours |= is_any_ours
        are_groups, is_first = is_any_ours and any([is_group for _, is_group in found]), False
    return is_ours


def _erasable(store, path, **how):
    """Return pairs of a path that `nodes_at` gives and whether a group is there.

    Raises : StoreError, if something of a node cannot be listed or erased.
    """
    def checked(found):
        place, nodes = found
        for node, metadata in nodes:
            _check_erasable(store, prefix_of(place), node.format, metadata)
        return place, any([isinstance(metadata, GroupMetadata) for _, metadata in nodes])

    return together(store, checked, list(nodes_at(store, path, **how)))


def _erase_all(store, path, pending, options, held, is_replaced, is_first):
    """Delete the nodes at some places, the last ones first; return whether this call has deleted any. See `_erase`.

    Unless it `is_first`, the node at `path` is gone, and another one may have been created there.
    """
    ours = []     # places where this call has deleted a node

    def erase(place):
        """Delete what is at a place; return the places of nodes among its chunks."""
        if place != path and store.folders.is_link(prefix_of(place)):
            store.delete(place)
            ours.append(place)
            return []
        # A damaged document is replaced where a new node is made. Anywhere else its node would silently stay.
        failed = lookup.pass_over_damage if is_replaced and place == path else None
        documents, below = lookup.documents_at(store, place, failed), []
        if documents:
            with (contextlib.nullcontext(held) if place == path
                  else Place(store, place, documents[0].document, options, makes=False)) as holder:
                if not (is_first or is_replaced) and lookup.documents_at(store, path):
                    raise _ReplacedError
                if place != path:
                    # Another call may have replaced the node before the place was held.
                    documents = lookup.documents_at(store, place, failed)
                erased = [_erase_node(node, options, holder) for node in documents]
                if any([was_there for was_there, _ in erased]):
                    ours.append(place)
                if any([is_array for _, is_array in erased]):
                    # Nodes may exist among the chunks. They are looked for after the chunks are erased, and before
                    # another call may create a node here.
                    below = [one for one, _ in nodes_at(store, place, takes_links=False)]
        if place != path:
            store.folders.prune(prefix_of(place))
        return below

    with contextlib.suppress(_ReplacedError):
        while pending:
            level = [pending.pop()]
            while pending and len(above(pending[-1])) == len(above(level[0])):
                level.append(pending.pop())
            pending += chain(*run_together(erase, level, store.n_requests))
    return bool(ours)


class _ReplacedError(Exception):
    """Another node was created where one was deleted: what is below belongs to it."""


def has_members(store: Store, path: str) -> bool:
    """Return whether there are nodes below `path`, at any depth."""
    return any(place != path for place, _ in nodes_at(store, path))


def nodes_at(store: Store, path: str, *, is_replaced: bool = False, takes_links: bool = True,
             waits: Options | None = None) -> Iterator[
        tuple[str, list[tuple[lookup.FoundDocument, ArrayMetadata | GroupMetadata | None]]]]:
    """Iterate over (path, nodes) of the node at `path` and of all below it, groups before their members.

    `nodes` are pairs of `lookup.FoundDocument` and metadata, one for each document. For a link, the path is given
    without nodes. Everything below an array is left out.

    `is_replaced`: a document at `path` may be a broken link. Anywhere else that is a StoreError.
    `takes_links`: broken links right below `path` may be members, even if there is no group.
    `waits`: locks of a caller who holds the place at `path`. Directories below may be those of new nodes, whose
    documents are waited for.
    """
    def look(place):
        """Return the pairs for a place, and the places right below where others may be."""
        prefix = prefix_of(place)
        if place != path and store.folders.is_link(prefix):
            return [(place, [])] if lookup.has_nodes(store, place) else [], []
        listing = store.list_dir(prefix)
        if waits is not None and waits.lock and place != path and not _among(store, place, listing.keys, path):
            # Most are directories of other programs, in which nobody may be allowed to make a lock file.
            if is_held(store, place, by_files=waits.lock == "file"):
                with Place(store, place, "", waits, is_kept=True, makes=False):
                    pass
            listing = store.list_dir(prefix)
        if not (is_replaced and place == path) and any([name[len(prefix):] in FORMAT_OF
                                                        for name in listing.unreachable]):
            lookup.documents_at(store, place)     # raises, because the chunks of the node are unknown
        nodes = [(node, node.parse()) for node in _among(store, place, listing.keys, path)]
        found = [(place, nodes)] if nodes else []
        if nodes and all([isinstance(metadata, ArrayMetadata) for _, metadata in nodes]):
            return found, []
        if nodes or (takes_links and place == path):
            # Members on an unmounted disk would reappear when it is mounted.
            found += [(name, []) for name in listing.unreachable if store.folders.is_link(name + "/")]
        return found, [below[:-1] for below in listing.prefixes]

    level = [path]
    while level:
        looks, level = outcomes(store, look, level), []
        for outcome in looks:
            if isinstance(outcome, ZcoreError):
                raise outcome
            found, below = outcome
            yield from found
            level += below


def _among(store, place, keys, path):
    """Return the documents among the keys of a place, which is `path` or lies below it."""
    return lookup.documents_among(store, place, [key[len(prefix_of(place)):] for key in keys], path)


def _erase_node(node, options, place):
    """Erase a node while no object of it is being written; return (whether this call did that, whether it is an array).

    The node no longer exists as soon as the document is erased, and no kill brings it back.
    """
    store, path = node.store, node.path
    prefix = prefix_of(path)
    metadata = node.parse()

    def erase():
        # If they cannot be listed, nothing changes.
        names = list(_names_of_chunks(store, prefix, metadata))
        # Of two calls one erases it. A service does not tell.
        was_there = store.swaps or store.exists(prefix + node.document)
        store.erase(prefix + node.document)
        return was_there, names

    try:
        with hold_nodes(store, [node], options):
            was_there, names = erase()
    except NodeNotFoundError:
        # It is gone, or a network file system has lost it. A document must not survive its chunks.
        was_there, names = erase()
    _clear(store, prefix, node.format, metadata, names, place)
    return was_there, isinstance(metadata, ArrayMetadata)


def _names_of_chunks(store, prefix, metadata):
    """Iterate over the keys to erase with all chunks of a node below `prefix`.

    These are the keys of chunks, and broken links instead of directories of chunks.
    """
    if not isinstance(metadata, ArrayMetadata):
        return
    folder = prefix + metadata.chunk_keys.folder(metadata.ndim)
    if folder != prefix and lookup.fault_of(store.folders.check_reachable, folder):
        yield folder[:-1]
        return
    for key in store.list_prefix(folder):
        role = chunk_role(key[len(prefix):], metadata)
        if role == "chunk" or role and lookup.fault_of(store.exists, key):
            yield key


def _clear(store, prefix, format, metadata, names, place):
    """Erase everything that a node has beside its document: attributes, a copy of metadata, chunks of these names.

    If a move or replacement of a group above has taken the held `place` along, another node may be here, and all stays.
    """
    if place is not None and not place.is_here():
        return
    for document in documents_beside(format):
        if not consolidated.is_of_set(store, prefix, document):
            store.erase(prefix + document)
    if format.chunk_directory is not None:
        # The directory belongs to the format, with everything in it.
        store.erase_prefix(f"{prefix}{format.chunk_directory}/")
    elif isinstance(metadata, ArrayMetadata):
        links, keys = {}, []
        for key in names:
            link = link_on_the_way(store, prefix, key, links)
            if link is None:
                keys.append(key)
            else:
                store.delete(link)
        store.erase_values(keys)
        store.folders.prune(prefix + metadata.chunk_keys.folder(metadata.ndim))


def left_over(store: Store, prefix: str, format: Format, metadata: ArrayMetadata | GroupMetadata) -> Iterator[str]:
    """Iterate over the keys that a new node of this format and metadata would treat as its own."""
    for name in store.existing(prefix, documents_beside(format)):
        if not consolidated.is_of_set(store, prefix, name):
            yield prefix + name
    if isinstance(metadata, ArrayMetadata):
        yield from (_names_of_chunks(store, prefix, metadata) if format.chunk_directory is None
                    else store.list_prefix(f"{prefix}{format.chunk_directory}/"))


def link_on_the_way(store: Store, prefix: str, key: str, links: dict[str, bool]) -> str | None:
    """Return the topmost directory between a prefix and a key below it that is a link, or None.

    `links` is a dict that caches the answers, because many keys share a directory.
    """
    for directory in between(prefix, key):
        if directory not in links:
            links[directory] = store.folders.is_link(f"{directory}/")
        if links[directory]:
            return directory
    return None
