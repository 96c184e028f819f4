"""Consolidated metadata: a copy of all documents below a group, which a reader may list instead of the store.

A copy describes the moment when it was made. Each change of a node first drops the copies of all groups above it in its
store. A kill in between costs the copy.

Changes continue while a copy is made. So a change may come after the documents were read and before the copy is
written. Therefore all documents are read again after the copy is written, and a change drops the copies again at its
end. One of the two notices the other: the second reading finds the change, or the second drop finds the copy. So a copy
can be out of date only if a process is killed right before the second drop.
"""
from __future__ import annotations

import contextlib
import errno
import os
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from zcore.engine.array_binding import ArrayBinding
from zcore.engine.node_binding import GroupBinding, until_won
from zcore.engine.options import Options
from zcore.engine.views import MAX_KEPT_NBYTES, UNSEEN, metadata_of, view_of
from zcore.errors import (
    MetadataError,
    NodeNotFoundError,
    StoreError,
    UnsupportedError,
    ZcoreError,
    noted,
    warn,
    warn_of,
)
from zcore.formats import DOCUMENTS, FORMAT_OF, FORMATS, format_of
from zcore.formats.consolidated_nodes import ConsolidatedNodes
from zcore.formats.json_documents import MAX_NBYTES
from zcore.hierarchy import lookup
from zcore.kernel.io.documents import Look
from zcore.model.metadata import ArrayMetadata, GroupMetadata
from zcore.stores.base import AtMost, directory_at, run_together
from zcore.stores.keys import above, prefix_of
from zcore.stores.openers import PARQUET, PARQUET_DOCUMENT, loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from zcore.engine.node_binding import NodeBinding
    from zcore.formats.base import Format
    from zcore.stores.base import Store

# Documents of groups; formats with the copy in a document of its own come first.
_GROUPS = [line for line in FORMATS.values() if line.group_document]
_WITH_COPY_BESIDE = tuple([line.group_document for line in _GROUPS if line.consolidated_document])
_GROUP_DOCUMENTS = (*_WITH_COPY_BESIDE, *[line.group_document for line in _GROUPS if not line.consolidated_document])
# Errors of a link to nowhere, of one in a circle, and of special files.
_NO_FILE = errno.ENOENT, errno.ELOOP, errno.ESPIPE, errno.ENXIO
# Attempts to copy a hierarchy that changes meanwhile.
_MAX_TRIES = 20
_MAX_SHOWN = 10
_REPAIRS = 'zcore.consolidate_metadata makes them anew, zcore.verify(…, repair="stale copy") drops them'


def consolidate(binding: GroupBinding, attributes_of: Callable[[NodeBinding], Mapping[str, Any]]) -> None:
    """Write a copy of the metadata of all nodes below a group to the group's document, or beside it.

    Parameters
    ----------
    binding : GroupBinding
    attributes_of : callable
        Returns the attributes of a binding whose format has a document for them.

    Raises
    ------
    UnsupportedError
        A member has another format: the copy cannot hold it and would hide it.
    StoreError
        A member is unreachable; the hierarchy changes faster than it can be copied, and there is no copy then; or there
        is a reference set in Parquet beside the group.
    """
    store, path, format = binding.store, binding.path, binding.format
    for _ in range(_MAX_TRIES):
        # First, because it may fail; then the old copy stays.
        below = _read_below(binding, attributes_of)
        drop(store, path)
        metadata = until_won(lambda below=below: _put_copy(binding, attributes_of, below))
        is_true = False
        try:
            # As text, since NaN in attributes does not equal itself.
            is_true = (_rendered(format, metadata, below)
                       == _rendered(format, metadata, _read_below(binding, attributes_of)))
        finally:
            if not is_true:
                drop_copies(store, path)
        if is_true:
            return
    raise StoreError(f"{binding.describe()}: the nodes below change faster than they can be copied",
                     key=binding.document)


def _put_copy(binding, attributes_of, below):
    """Write a copy, and return the metadata of the group, with its attributes."""
    format = binding.format
    with binding.exclusive() as exclusive:
        metadata = complete(binding, attributes_of)
        if format.consolidated_document is None:
            exclusive.replace_metadata(exclusive.metadata.replace(consolidated=below))
        elif is_of_set(binding.store, binding.prefix, format.consolidated_document):
            raise StoreError(f"{binding.describe()}: {format.consolidated_document} is that of a reference set in "
                             f"Parquet, which the group's {binding.document_name} hides: move one of the two away",
                             key=binding.prefix + format.consolidated_document)
        else:
            binding.store.set(binding.prefix + format.consolidated_document,
                              format.render_consolidated(metadata.replace(consolidated=below)))
    return metadata


def _rendered(format, metadata, below):
    metadata = metadata.replace(consolidated=below)
    return (format.render_group if format.consolidated_document is None else format.render_consolidated)(metadata)


def _read_below(binding, attributes_of):
    """Return the metadata of all nodes below a group by their path relative to it."""
    store, path, format = binding.store, binding.path, binding.format
    below, others = {}, []
    # A node that is being created is not found. When its creation ends, it drops this copy.
    for child, node in lookup.below(store, path, format, binding.options, only_finished=True):
        if node.format is not format:
            others.append(node)
            continue
        with contextlib.suppress(NodeNotFoundError):     # deleted since it was found
            below[child[len(binding.prefix):]] = complete(node, attributes_of)
    if others:
        shown = [f"{other.path!r} ({other.format.title})" for other in others[:_MAX_SHOWN]]
        shown += [f"{len(others) - _MAX_SHOWN} more"] * (len(others) > _MAX_SHOWN)
        raise UnsupportedError(f"{binding.describe()}: consolidated metadata of {format.title} would hide the members "
                               f"of other formats: {', '.join(shown)}; copy these to {format.title}, or go without "
                               "consolidated metadata", feature="consolidated metadata of several formats")
    return {name: below[name] for name in sorted(below, key=lambda name: (name.count("/"), name))}


def complete(binding: NodeBinding,
             attributes_of: Callable[[NodeBinding], Mapping[str, Any]]) -> ArrayMetadata | GroupMetadata:
    """Return the metadata of a node with its attributes, wherever its format stores them."""
    if binding.format.has_inline_attributes:
        return binding.metadata
    return binding.metadata.replace(attributes=attributes_of(binding))


def copy_of(binding: GroupBinding) -> Mapping[str, ArrayMetadata | GroupMetadata] | None:
    """Return the copy of a group, a mapping of paths relative to it to metadata, or None.

    Raises : MetadataError, UnsupportedError, if it cannot be used. The message says how to go on.
    """
    try:
        copy = copied(binding)
    except (MetadataError, UnsupportedError) as error:
        error.message += f"; use_consolidated=False opens the group without its consolidated metadata, {_REPAIRS}"
        raise
    return None if copy is None else copy.consolidated


def usable_copy(binding: GroupBinding) -> Mapping[str, ArrayMetadata | GroupMetadata] | None:
    """Return the copy of a group, or None without one; one that is damaged is named in a warning."""
    try:
        copy = copied(binding)
    except (MetadataError, UnsupportedError) as error:
        warn(f"{error}; the consolidated metadata are not used, {_REPAIRS}")
        return None
    return None if copy is None else copy.consolidated


def copied(binding: GroupBinding) -> GroupMetadata | None:
    """Return the metadata of a group with its copy, as the document of the copy contains both; None without a copy.

    Raises : MetadataError, UnsupportedError, if the copy cannot be used.
    """
    format = binding.format
    if format.consolidated_document is None:
        if binding.metadata.consolidated is not None:
            return binding.metadata
        format.check_copy(binding.view.raw, binding.path)
        return None
    raw = binding.store.get(binding.prefix + format.consolidated_document)
    if raw is None or b'"record_size"' in raw and hides_set(binding):     # a request only where there may be a set
        return None
    with noted() as notes:
        copy = format.parse_consolidated(raw, binding.path)
    warn_of(binding.describe(), notes)
    return copy


def member_of(binding: GroupBinding, copy: Mapping[str, ArrayMetadata | GroupMetadata],
              path: str) -> ArrayBinding | GroupBinding | None:
    """Return the binding of a member from the copy of its documents, without asking the store.

    Its first read checks the document in the store. If the array was deleted, shrunk or replaced since the copy was
    made, that read is an error.

    Parameters
    ----------
    binding : GroupBinding
        Binding of the group, open for reading.
    copy : Mapping
        Copy of the group's metadata.
    path : str
        Path of the member, relative to the group.

    Returns
    -------
    ArrayBinding or GroupBinding or None
        None if the copy does not have the member, or is damaged there: then the store decides.
    """
    if not isinstance(copy, ConsolidatedNodes) or path not in copy:
        return None
    format, options, path_in_store = binding.format, binding.options, binding.prefix + path
    try:
        document, raw, attributes = copy.document_of(path)
        view = view_of(format, document, raw, None, path_in_store, options, UNSEEN, attributes=lambda: attributes or {})
    except (MetadataError, UnsupportedError):
        return None
    if view.notes:
        warn_of(binding.store.describe(path_in_store), view.notes)
    bind = ArrayBinding if type(view.metadata) is ArrayMetadata else GroupBinding
    return bind(binding.store, path_in_store, format, options, view._replace(attributes=attributes))


def is_same(a: ArrayMetadata | GroupMetadata, b: ArrayMetadata | GroupMetadata) -> bool:
    """Return whether two metadata of a node, with attributes, are equal, apart from copies in them."""
    if isinstance(a, GroupMetadata) and isinstance(b, GroupMetadata):
        a, b = a.replace(consolidated=None), b.replace(consolidated=None)
    # As text, since NaN in attributes does not equal itself.
    return a == b or repr(a) == repr(b)


def drop_if_same(binding: GroupBinding, raw: bytes | None) -> bool:
    """Drop the copy of a group if `raw`, up to `MAX_NBYTES`, is still the document that has it; return whether it is
    gone. None is any document of the group.

    The group is locked meanwhile, as it is when a copy is written.
    """
    return until_won(lambda: _drop_if_same(binding, raw))


def _drop_if_same(binding, raw):
    store, document = binding.store, binding.format.consolidated_document
    with binding.exclusive() as exclusive:
        if document is None:
            if raw in (None, exclusive.view.raw) and binding.format.has_copy(exclusive.view.raw):
                exclusive.replace_metadata(exclusive.metadata.replace(consolidated=None))
            return not binding.format.has_copy(exclusive.view.raw)
        if store.get(binding.prefix + document, AtMost(MAX_NBYTES)) == raw:
            _erase_copy(store, binding.prefix, document)
        return not store.exists(binding.prefix + document)


def _erase_copy(store, prefix, document):
    try:
        if not store.exists(prefix + document):
            return
    except StoreError:
        pass     # a link to nowhere, which is removed
    if not is_of_set(store, prefix, document):
        store.erase(prefix + document)


def is_of_set(store: Store, prefix: str, document: str | None) -> bool:
    """Return whether a document has the name of a copy and is that of a reference set in Parquet, beside a group.

    A copy that another program has given a member of that name is none.
    """
    try:
        return document == PARQUET_DOCUMENT and lookup.holds_set(store, prefix.rstrip("/"), beside_group=True)
    except StoreError as error:
        if error.errno not in _NO_FILE:
            raise
        return False


def hides_set(binding: GroupBinding) -> bool:
    """Return whether a group lies in front of a reference set in Parquet. It is no copy of the group's metadata then.

    The store of a set shows the set's own document, which is one.
    """
    return (is_of_set(binding.store, binding.prefix, binding.format.consolidated_document)
            and not isinstance(binding.store, loaded(PARQUET.opener)))


@contextlib.contextmanager
def dropped(store: Store, path: str, *, itself: bool = False, format: Format | None = None) -> Iterator[None]:
    """Return a context manager for a change of the node at `path`, which drops copies before and after it.

    `format` is that of the node: with it, a directory store is looked at once. See `drop` for the other parameters.
    """
    looks = None if format is None else _looks_around(store, path, format, itself)
    if looks is None:
        drop(store, path, itself=itself)
    try:
        yield
    finally:
        if looks is None or not all([look.is_same() for look in looks]):
            drop(store, path, itself=itself)


def drop(store: Store, path: str, *, itself: bool = False) -> None:
    """Drop the copies that describe the node at `path`: those of the groups above it.

    Parameters
    ----------
    store : Store
    path : str
    itself : bool
        The node's own documents change, so a copy beside them is dropped, too, because it repeats them.
    """
    group = lookup.nearest(store, path)     # there is no copy where no directory is
    if group != path:
        drop_copies(store, group, *above(group))
    else:
        drop_copies(store, *above(group), itself=path if itself else None)


def drop_copies(store: Store, *paths: str, itself: str | None = None) -> None:
    """Drop only the copies of the groups at `paths`, at the same time where answers take long.

    Of a group `itself`, only a copy in a document of its own is dropped: the group's document is about to change.
    """
    def drop(place):
        path, document = place
        found = store.get_with_identity(prefix_of(path) + document, AtMost(MAX_NBYTES + 1))
        format = format_of(FORMAT_OF[document])
        if found is None:
            return
        if format.consolidated_document is not None:
            _erase_copy(store, prefix_of(path), format.consolidated_document)
        elif format.may_have_copy(found[0]):
            _drop_inline(store, path, format, found[0])

    run_together(drop, [*[(path, document) for path in paths for document in _GROUP_DOCUMENTS],
                        *[(itself, document) for document in _WITH_COPY_BESIDE if itself is not None]],
                 store.n_requests)


def look_above(store: Store, path: str, format: Format) -> list[Look] | None:
    """Return a `Look` at each group above a new node, the lowest first, if none of them can have a copy; else None.

    The store is a directory, and there is nothing but a group of this format right above the node. Above a node at the
    root there is nothing. As long as the looks stay the same, no copy needs to be dropped. This is much faster than
    `drop`.
    """
    base = directory_at(store)
    if base is None or not format.has_groups:
        return None
    if not path:
        return []
    document, copies, others, arrays = _names_in_groups(format)
    directory, *above = _directories_at(base, path.rpartition("/")[0])
    look = Look(directory, document, copies, others + arrays, MAX_NBYTES + 1)
    if not look.is_plain or look.raw is None or not _is_bare(format, look.raw):
        return None
    return _with_looks_above([look], above, format) if above else [look]


def looks_above(store: Store, path: str) -> list[Callable[[], tuple[str, str, bytes | None]]]:
    """Return functions that read the documents above a new node: all kinds right above it, then those of groups.

    Each returns (path of the group, name of the document, its bytes or None).
    """
    groups = above(path)

    def read(group, document):
        return group, document, store.get(prefix_of(group) + document, AtMost(MAX_NBYTES + 1))

    return [partial(read, group, document) for group in groups
            for document in (DOCUMENTS if group == groups[0] else _GROUP_DOCUMENTS)]


def are_bare(format: Format, path: str, found: Iterable[tuple[str, str, bytes | None]]) -> bool:
    """Return whether `looks_above` has found nothing but groups without copies, one of this format right above."""
    if not path:
        return True
    there = {(group, format_of(FORMAT_OF[document])): raw for group, document, raw in found if raw is not None}
    nearest = path.rpartition("/")[0]
    return ([line for group, line in there if group == nearest] == [format] and _is_bare(format, there[nearest, format])
            and not any([line.consolidated_document or line.may_have_copy(raw) for (_, line), raw in there.items()]))


def _looks_around(store, path, format, itself):
    """Return a `Look` at each group above a node, and at the copy beside it, if there is no copy; else None."""
    base = directory_at(store)
    if base is None:
        return None
    if not format.has_groups:
        # Its nodes may lie in groups of another format.
        format = format_of(FORMAT_OF[_GROUP_DOCUMENTS[-1]])
    directory, *above = _directories_at(base, path)
    looks = []
    if itself:
        for document in _WITH_COPY_BESIDE:
            looks.append(Look(directory, os.fsencode(document), (), (), 0))
            if looks[-1].raw is not None or not looks[-1].is_plain:
                return None
    return _with_looks_above(looks, above, format)


def _with_looks_above(looks, directories, format):
    """Return the looks with those at the groups above, or None if one of these can have a copy."""
    document, copies, others, _ = _names_in_groups(format)
    for directory in directories:
        look = Look(directory, document, copies, others, MAX_NBYTES + 1)
        if not look.is_plain or (look.raw is not None and format.may_have_copy(look.raw)):
            return None
        looks.append(look)
    return looks


@lru_cache(maxsize=8)
def _names_in_groups(format):
    """Return the document of a group; that of its copy; those of groups in other formats; those of arrays.

    The copy of another format would hide a new node of this one. It is dropped if it is there before a change, not if
    it comes in the middle of one.
    """
    copies = {format.consolidated_document} - {None}
    others = set(_GROUP_DOCUMENTS) - {format.group_document}
    arrays = set(DOCUMENTS).difference(_GROUP_DOCUMENTS)
    return os.fsencode(format.group_document), *[tuple(map(os.fsencode, names)) for names in (copies, others, arrays)]


@lru_cache(maxsize=64)
def _directories_at(base, path):
    """Return the directories of the groups at and above `path` in a store, upwards."""
    found = [base]
    for name in path.split("/") if path else ():
        found.append(f"{found[-1]}{os.sep}{name}")
    return tuple(map(os.fsencode, reversed(found)))


def _is_bare(format, raw):
    """Return whether a document is that of a group that cannot have a copy in it."""
    return (_is_short_bare if len(raw) <= MAX_KEPT_NBYTES else _is_short_bare.__wrapped__)(format, raw)


@lru_cache(maxsize=64)
def _is_short_bare(format, raw):
    try:
        return not format.may_have_copy(raw) and isinstance(metadata_of(format, format.group_document, raw, ""),
                                                            GroupMetadata)
    except ZcoreError:
        return False


def _drop_inline(store, path, format, raw):
    try:
        metadata = metadata_of(format, format.group_document, raw, path)
        # A copy that is of no use to zcore may be of use to others.
        if not isinstance(metadata, GroupMetadata) or not format.has_copy(raw):
            return
        with noted():     # what is wrong with a copy that is dropped concerns nobody
            drop_if_same(GroupBinding(store, path, format, Options()), None)
    except (NodeNotFoundError, MetadataError, UnsupportedError):
        # It is an array, or zcore does not read copies from it.
        pass
