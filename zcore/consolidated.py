"""Consolidated metadata: the copy of all documents below a group that a reader may list instead of the store.

A copy says what was there when it was made. Who changes a node drops the copies of all groups above it first, the
ones above the store's own directory as well, so that none is ever silently wrong; a kill in between costs the copy.
"""
import os

from zcore import nodes
from zcore.binding import GroupBinding
from zcore.errors import MetadataError, NodeNotFoundError, UnsupportedError
from zcore.formats import NODE_DOCUMENTS
from zcore.options import Options
from zcore.stores.directory import DirectoryStore
from zcore.stores.keys import prefix_of


def consolidate(binding, attributes_of):
    """Put a copy of the metadata of all nodes below a group into the group's document, or beside it.

    Parameters
    ----------
    binding : GroupBinding
    attributes_of : callable
        Gives the attributes of a binding whose format keeps them in a document of their own.
    """
    store, path, format = binding.store, binding.path, binding.format
    drop(store, path)
    below = {}
    pending = list(nodes.members(store, path))
    while pending:
        child = pending.pop()
        node = nodes.find(store, child, format.name, binding.options)
        if node is None:
            continue     # of another format
        below[child[len(binding.prefix):]] = _complete(node, attributes_of)
        if isinstance(node, GroupBinding):
            pending += nodes.members(store, child)
    below = {name: below[name] for name in sorted(below, key=lambda name: (name.count("/"), name))}
    with binding.exclusive() as exclusive:
        if format.consolidated_document is None:
            exclusive.replace_metadata(exclusive.metadata.replace(consolidated=below))
        else:
            metadata = _complete(binding, attributes_of).replace(consolidated=below)
            store.set(binding.prefix + format.consolidated_document, format.render_consolidated(metadata))


def _complete(binding, attributes_of):
    """Return the metadata of a node with its attributes."""
    if binding.format.attributes_document is None:
        return binding.metadata
    return binding.metadata.replace(attributes=attributes_of(binding))


def copy_of(binding):
    """Return the copy that a group has, a mapping of paths relative to it to metadata, or None."""
    format = binding.format
    if format.consolidated_document is None:
        return binding.metadata.consolidated
    raw = binding.store.get(binding.prefix + format.consolidated_document)
    return None if raw is None else format.parse_consolidated(raw, binding.path).consolidated


def drop(store, path, *, itself=False):
    """Drop the copies that describe the node at `path`: those of the groups above it.

    Parameters
    ----------
    store : Store
    path : str
    itself : bool
        The node's own documents change: a copy beside them that repeats them is dropped, too.
    """
    for place, group, is_above in _nodes_at_and_above(store, path):
        for node in nodes.standing(place, group):
            if node.format.consolidated_document is not None:
                if is_above or itself:
                    place.erase(prefix_of(group) + node.format.consolidated_document)
            elif is_above and node.document == node.format.group_document:
                _drop_inline(node)


def _drop_inline(node):
    try:
        binding = GroupBinding(node.store, node.path, node.format, Options())
        if binding.metadata.consolidated is None:
            return
        with binding.exclusive() as exclusive:
            exclusive.replace_metadata(exclusive.metadata.replace(consolidated=None))
    except (NodeNotFoundError, MetadataError, UnsupportedError):
        # An array, or nothing that could have a copy which zcore would believe.
        pass


def _nodes_at_and_above(store, path):
    """Yield (store, path of a node, whether it is above) from the node at `path` up, beyond the store's root."""
    yield store, path, False
    while path:
        path = path.rpartition("/")[0]
        yield store, path, True
    base = store.native_path
    documents = [document for documents in NODE_DOCUMENTS.values() for document in documents]
    while base is not None and os.path.dirname(base) != base:
        base = os.path.dirname(base)
        if not any(os.path.lexists(os.path.join(base, name)) for name in documents):
            return
        yield DirectoryStore(base, fsync=store.fsync, check_base=False), "", True
