"""A node comes into being, changes its shape, and goes; always in an order that no kill can turn into wrong data.

========  ==========================================================================================================
create    attributes, then the metadata document: a node exists from its last write on
delete    see `zcore.deletion`; to overwrite is to delete and to create
shrink    the document first, then objects outside are erased and border objects reset beyond the new shape
grow      objects outside the old shape erased and border objects reset beyond it, whoever wrote them, then the document
append    the data, then the document
========  ==========================================================================================================

Each step runs under the whole-range lock of the document, or, while there is none, under a lock of the directory.
What is in the way is found by listing the objects that exist, never by probing the chunks of the grid.
"""
import contextlib
import errno

from zcore import consolidated, deletion, nodes
from zcore.binding import GroupBinding
from zcore.deletion import clear as clear  # what makes a node and what takes it away is found in one place
from zcore.deletion import delete as delete
from zcore.engine import Binding
from zcore.errors import NodeExistsError, NodeNotFoundError, ReadOnlyError, StoreError, ZcoreError, noted
from zcore.formats import MAX_NBYTES, NODE_DOCUMENTS
from zcore.formats.json_documents import check_attributes
from zcore.kernel.selection import Box, whole
from zcore.model.metadata import ArrayMetadata
from zcore.options import Options
from zcore.place import hold_place
from zcore.requests import swap
from zcore.stores.keys import prefix_of
from zcore.views import view_of

# What makes a node of a place.
_DOCUMENTS = tuple([document for documents in NODE_DOCUMENTS.values() for document in documents])


def create(store, path, format, metadata, attributes, options, *, overwrite=False, is_below=False):
    """Create an array or a group, and the groups above it that are missing.

    Parameters
    ----------
    store : Store
    path : str
    format : module
    metadata : ArrayMetadata or GroupMetadata
    attributes : dict or None
        Where the format keeps them in a document of their own; else they are part of the metadata.
    options : Options
    overwrite : bool
        Replace the node that stands there, with all nodes below it and what lost nodes have left there.
    is_below : bool
        It is part of a change further up, which drops the copies of consolidated metadata above.

    Returns
    -------
    Binding or GroupBinding

    Raises
    ------
    NodeExistsError
        A node stands there, and `overwrite` is false; or an array stands above.
    StoreError
        There is no node, but attributes or chunks that the new one would take for its own, and `overwrite` is false.
    """
    kind, document, attributes_document = documents_of(path, format, metadata, attributes, options)
    prefix, name = prefix_of(path), kind.name_of_document(format)
    if store.read_only:
        raise ReadOnlyError(f"{store!r} is read-only: no {kind.what} can be created", key=prefix + name)
    while True:
        create_ancestors(store, path, format)
        if overwrite:
            deletion.unlink(store, path)
        with hold_place(store, path, name, options) as is_here:
            is_free = store.is_empty(prefix)
            if not is_free and not overwrite:
                check_free(store, path, format, metadata)
            # To overwrite is to replace what is unreachable as well.
            failed = nodes.pass_over_damage if overwrite else None
            is_replaced = not is_free and bool(nodes.standing(store, path, failed))
            with consolidated.dropped(store, path, itself=is_replaced, is_below=is_below):
                if not is_free:
                    nodes.check_no_special(store, path, format)
                    if overwrite:
                        deletion.make_way(store, path, format, metadata, options)
                if kind is Binding:
                    store.make_directory(prefix + metadata.chunk_keys.folder(metadata.ndim))
                if attributes_document is not None:
                    store.set(prefix + format.attributes_document, attributes_document)
                if not store.swaps or is_replaced:
                    store.set(prefix + name, document)
                elif not store.set_if_not_exists(prefix + name, document):
                    raise NodeExistsError(f"another process has created a node at {store.describe(path)} meanwhile",
                                          path=path)
            if store.swaps or is_here() or store.get(prefix + name) != document:
                # While it is held: later it might be somebody else's, or with a group above have another path.
                return kind(store, path, format, options)
        # A group above was moved before the document was written. It came to a directory that nobody held, without
        # groups above it, and without what was written before. As if the move had come first, all is made again.
        overwrite = True


def documents_of(path, format, metadata, attributes, options):
    """Return (class of the binding, document, document of the attributes or None) of a new node; see `create`.

    Raises what nobody could open, such as codecs that do not go together: it is refused before anything is changed.
    """
    if options.dimension_separator is not None:
        raise TypeError("dimension_separator is what an array is opened with; a new one has chunk_key_encoding")
    kind = Binding if isinstance(metadata, ArrayMetadata) else GroupBinding
    if format.strict_attributes:
        check_attributes(metadata.attributes or {}, {})
    document = kind.render(format, metadata)
    view_of(format, kind.name_of_document(format), document, None, path, options, 0)
    return kind, document, format.render_attributes(attributes) if attributes else None


def check_free(store, path, format, metadata):
    """Raise unless a node of this format and metadata can be made at `path` without anything being replaced.

    Raises
    ------
    NodeExistsError
        A node stands there.
    StoreError
        There are attributes or chunks that the new node would take for its own, or what cannot be told.
    """
    standing = nodes.standing(store, path)
    if standing:
        raise NodeExistsError(f"{kind_of(standing[0])} stands at {store.describe(path)} already", path=path)
    nodes.check_free(store, path)
    found = deletion.left_over(store, prefix_of(path), format, metadata)
    if found is not None:
        raise StoreError(
            f"{store.describe(path)} holds {found[len(prefix_of(path)):]!r}, and no document says of which node: a "
            "document was lost, or a creation or deletion was interrupted; overwrite=True (mode 'w') erases it",
            key=found, errno=errno.EEXIST)


def move(store, source, destination, options):
    """Give the node at `source` the path `destination`, with all that lies below it.

    Raises
    ------
    NodeNotFoundError
        No node stands at `source`.
    NodeExistsError
        Something stands at `destination`, or it lies below `source`.
    """
    found = nodes.standing(store, source)
    if not found:
        raise NodeNotFoundError(f"no node stands at {store.describe(source)}", path=source)
    if destination == source or destination.startswith(prefix_of(source)):
        raise NodeExistsError(f"{store.describe(destination)} lies below {store.describe(source)}", path=destination)
    if not store.is_empty(prefix_of(destination)):
        raise NodeExistsError(f"{store.describe(destination)} is not free", path=destination)
    create_ancestors(store, destination, found[0].format)
    with contextlib.ExitStack() as held:
        held.enter_context(consolidated.dropped(store, source, itself=True))
        held.enter_context(consolidated.dropped(store, destination))
        if options.lock:
            try:
                for node in found:
                    held.enter_context(store.locks(source, node.document).whole())
            except FileNotFoundError as exc:
                raise NodeNotFoundError(f"the node at {store.describe(source)} is gone", path=source) from exc
        # Whoever creates a node at the destination meanwhile has made its directory, and the move fails.
        store.move(prefix_of(source), prefix_of(destination), _DOCUMENTS)
    store.prune(prefix_of(source))


def kind_of(node):
    """Return what stands somewhere, in words."""
    metadata = node.parse()
    return "a damaged node" if metadata is None else "an array" if isinstance(metadata, ArrayMetadata) else "a group"


def create_ancestors(store, path, format):
    """Create the groups on the way to `path` that are missing, from the root down.

    Raises
    ------
    NodeExistsError
        An array stands above.
    StoreError
        There are attributes that a new group would take for its own.
    """
    missing = missing_above(store, path, format)
    if missing:
        document = format.render_group(format.new_group({}))
        # The copies above the deepest one are those above each of them.
        with consolidated.dropped(store, missing[0]):
            for path in reversed(missing):
                store.set_if_not_exists(prefix_of(path) + format.group_document, document)


def missing_above(store, path, format):
    """Return the paths of the groups above `path` that are missing, from below; see `create_ancestors`."""
    missing = []
    while path and format.group_document is not None:
        path = path.rpartition("/")[0]
        standing = nodes.standing(store, path)
        if any([isinstance(node.parse(), ArrayMetadata) for node in standing]):
            raise NodeExistsError(f"an array stands at {store.describe(path)}, nothing can be below it", path=path)
        if standing:
            # Whoever made this one has made those above it.
            break
        nodes.check_no_special(store, path, format)
        group = format.new_group({})
        if deletion.left_over(store, prefix_of(path), format, group) is not None:
            # Perhaps of somebody who is just making it, or deleting it.
            with hold_place(store, path, format.group_document, Options()), contextlib.suppress(NodeExistsError):
                check_free(store, path, format, group)
        missing.append(path)
    return missing


def resize(binding, shape):
    """Give an array another shape; elements that stay keep their values, new ones have the fill value.

    Costs what the objects at the border and outside cost, and a listing of those that exist.

    Raises
    ------
    ValueError
        The number of dimensions differs, or a length is negative.
    """
    with binding.exclusive() as exclusive:
        metadata = exclusive.metadata
        old = metadata.shape
        if len(shape) != len(old):
            raise ValueError(f"array has {len(old)} dimensions, the new shape {shape} has {len(shape)}")
        metadata = metadata.resized(shape)
        new = metadata.shape
        if new == old:
            return
        with consolidated.dropped(binding.store, binding.path, itself=True):
            # First of all: where they cannot be listed nothing changes.
            objects = list(binding.stored_chunks())
            if any(a > b for a, b in zip(new, old, strict=True)):
                _reset_outside(binding, exclusive, old, objects)
            exclusive.replace_metadata(metadata)
            if any(a < b for a, b in zip(new, old, strict=True)):
                _reset_outside(binding, exclusive, new, objects)


def append(binding, values, axis):
    """Add `values`, an ndarray of the stored type, behind the last elements along `axis`; return the new shape.

    Appends of several threads and processes come one after the other, each whole. A kill leaves the old length.
    """
    with binding.exclusive() as exclusive:
        metadata = exclusive.metadata
        if values.dtype != metadata.dtype or not axis < metadata.ndim:
            raise StoreError(f"{binding.document}: the array was replaced by another one since it was opened; open it "
                             "again", key=binding.document)
        old = metadata.shape
        if values.ndim != len(old) or values.shape != old[:axis] + values.shape[axis:axis + 1] + old[axis + 1:]:
            raise ValueError(f"array has shape {old}, cannot append values of shape {values.shape} along axis {axis}")
        metadata = metadata.resized(old[:axis] + (old[axis] + values.shape[axis],) + old[axis + 1:])
        starts = tuple([old[d] if d == axis else 0 for d in range(len(old))])
        box = Box(starts, (1,) * len(old), values.shape)
        with consolidated.dropped(binding.store, binding.path, itself=True):
            # Every object that the new elements touch is replaced or erased, so nothing old shows in them.
            binding.write_once(exclusive.view, box, values, exclusive=True, metadata=metadata, old_shape=old)
            exclusive.replace_metadata(metadata)
        return metadata.shape


def _reset_outside(binding, exclusive, shape, objects):
    """Erase the objects outside of `shape` and give the fill value to what border objects hold beyond it.

    `objects`: pairs of key and coordinates, see `Binding.stored_chunks`.
    """
    metadata = exclusive.metadata.replace(shape=shape)
    grid = metadata.grid_shape
    border = []
    for key, coords in objects:
        if any(i >= n for i, n in zip(coords, grid, strict=True)):
            binding.store.erase(key)
            continue
        if any([first + length > n for first, length, n in zip(*metadata.place_of(coords), shape, strict=True)]):
            task = 0
            for i, n in zip(coords, grid, strict=True):
                task = task * n + i
            border.append(task)
    if border:
        binding.write_once(exclusive.view, whole(shape), None, exclusive=True, metadata=metadata, old_shape=shape,
                           tasks=border)


def change_attributes(binding, change):
    """Change the attributes by ``change(attributes)``, a dict, in one write that loses no other; return its result."""
    format, store = binding.format, binding.store
    result = None

    def changed(attributes):
        nonlocal result
        old = dict(attributes)
        result = change(attributes)
        if format.strict_attributes:
            check_attributes(attributes, old)
        return attributes

    with consolidated.dropped(store, binding.path, itself=True), binding.exclusive() as exclusive:
        if format.attributes_document is None:
            exclusive.replace_metadata(exclusive.metadata.replace(attributes=changed(read_attributes(binding))))
            return result
        key = binding.prefix + format.attributes_document
        if store.swaps and binding.options.lock:
            swap(store, key, (0, MAX_NBYTES + 1), lambda raw, identity: format.render_attributes(
                changed(format.parse_attributes(raw, binding.path))))
        else:
            store.set(key, format.render_attributes(changed(read_attributes(binding))))
    return result


def read_attributes(binding):
    """Return the attributes as they are stored now, a new dict.

    Raises : NodeNotFoundError, if the node is gone.
    """
    format = binding.format
    if format.attributes_document is None:
        # Parsed anew: what handles share is not the caller's to change. The handle has warned of the document.
        raw = binding.look().raw
        with noted():
            return format.parse_node(binding.document_name, raw, binding.path).attributes
    try:
        raw = binding.store.get(binding.prefix + format.attributes_document, (0, MAX_NBYTES + 1))
        # In this order: of a node the document goes first.
        if not binding.store.exists(binding.document):
            raise binding.not_found(f"{binding.document} does not exist")
        return format.parse_attributes(raw, binding.path)
    except ZcoreError as error:
        error.locate(binding.describe())
        raise
