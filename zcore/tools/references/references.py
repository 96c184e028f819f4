"""Reference sets of hierarchies: the documents, and the extents of the chunks.

Kerchunk's references specification, version 1. Nothing is decoded: a reference to a chunk is the file that holds it and
the byte range there, for any compression; a shard is one such chunk. A chunk without an extent, such as one in memory
or one that a zip archive has deflated, is copied into the set, within bounds.
"""
from __future__ import annotations

import os
from typing import TYPE_CHECKING

from zcore.api import open
from zcore.errors import UnsupportedError, ZcoreError
from zcore.formats import format_of
from zcore.model.chunk_keys import ChunkKeyEncoding
from zcore.nodes.array import Array
from zcore.nodes.group import Group
from zcore.stores.openers import is_url
from zcore.stores.reference.store import ReferenceStore

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from zcore.stores.base import StoreLike

MAX_INLINED = 1 << 20
_ZARR_V2 = format_of(2)
_V2_KEYS = ChunkKeyEncoding.v2(".")


def references(source: StoreLike | Mapping[str, Any] | Array | Group, *, path: str = "", inline_threshold: int = 0,
               max_inlined: int = MAX_INLINED) -> ReferenceStore:
    """Return a reference set for an array, or for a group and all below it.

    Parameters
    ----------
    source : str, os.PathLike, Store, mapping, Array or Group
        Anything that `zcore.open` takes or returns. An array of the ``__zmeta__`` format becomes one of Zarr v2, and
        its chunks stay where they are; other nodes keep their format.
    path : str
        Of the node in the store; the keys of the set begin there.
    inline_threshold : int
        Bytes up to which a chunk is copied into the set instead.
    max_inlined : int
        Bytes of chunks that may be copied in all, for each array, because they have no extent: they are in memory, or
        deflated in a zip archive.

    Returns
    -------
    ReferenceStore
        For reading. `save` writes it as a document, with relative URLs where it lies in the directory of the source or
        above; `to_v0` has it as a dict.

    Raises
    ------
    NodeNotFoundError
        There is nothing at `source`.
    UnsupportedError
        A chunk has no extent, and is larger than may be copied.
    StoreError
        A chunk, or a member of the group, is unreachable: a set without it would mean that it does not exist.
    MetadataError, UnsupportedError
        A member of the group cannot be opened.

    Examples
    --------
    >>> import tempfile, zcore
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     a = zcore.create_array(folder, name="x", shape=4, chunks=2, dtype="u1", zarr_format=2)
    ...     a[:] = 1
    ...     refs = zcore.references(folder)
    ...     sorted(refs.list()), refs.to_v0()["x/1"], zcore.open(refs)["x"][:].tolist()
    (['.zgroup', 'x/.zarray', 'x/0', 'x/1'], ['x/1'], [1, 1, 1, 1])
    """
    node = source if isinstance(source, (Array, Group)) else open(source, path=path)
    store = node.store
    found = {}
    _add(found, "", node, inline_threshold, max_inlined)
    if isinstance(node, Group):
        for name, member in node.walk():
            if isinstance(member, ZcoreError):
                raise member     # a set without it would mean that it does not exist
            _add(found, name + "/", member, inline_threshold, max_inlined)
    base = _directory_of(store)
    return ReferenceStore.of({key: _relative(value, base) for key, value in found.items()}, base=base,
                             allowed=store.allowed if isinstance(store, ReferenceStore) else None)


def _add(found, prefix, node, inline_threshold, max_inlined):
    """Add one node: documents, then chunks, with `prefix` before their keys."""
    binding = node._binding
    store, format = node.store, binding.format
    attributes = None
    if format.attributes_document is not None:
        attributes = store.get(binding.prefix + format.attributes_document)
    if not format.is_standard:
        found[f"{prefix}{_ZARR_V2.array_document}"] = _as_zarr_v2(binding.metadata)
        if attributes is not None:
            found[f"{prefix}{_ZARR_V2.attributes_document}"] = _ZARR_V2.render_attributes(
                format.parse_attributes(attributes, binding.path))
    else:
        # The caller may have told the handle the separator that the document leaves out.
        told = binding.options.dimension_separator is not None and isinstance(node, Array)
        found[prefix + binding.document_name] = format.render_array(binding.metadata) if told else binding.view.raw
        if attributes is not None:
            found[prefix + format.attributes_document] = attributes
    if not isinstance(node, Array):
        return
    n_inlined = 0
    for key, coords in binding.stored_chunks():
        name = _V2_KEYS.encode(coords) if not format.is_standard else key[len(binding.prefix):]
        extent = store.extent(key)
        if extent is not None and (inline_threshold <= 0 or store.getsize(key) > inline_threshold):
            found[prefix + name] = extent
            continue
        if extent is None:
            n_inlined += store.getsize(key) or 0
            if n_inlined > max_inlined:
                raise UnsupportedError(
                    f"{store.describe(binding.path)}: its chunks, such as {key!r}, lie in no file as they are, and "
                    f"have more than {max_inlined} bytes; max_inlined= permits to copy more into the set",
                    feature="references to chunks that lie in no file")
        value = store.get(key)
        if value is not None:
            found[prefix + name] = bytes(value)


def _as_zarr_v2(metadata):
    return _ZARR_V2.render_array(metadata.replace(zarr_format=2, chunk_keys=_V2_KEYS, extra={}, attributes=None))


def _directory_of(store):
    """Return the directory that URLs of the set start from; None where there is none."""
    if isinstance(store, ReferenceStore):
        return store.base
    path = getattr(store, "path", None)
    if path is None or is_url(path):
        return None
    return path if os.path.isdir(path) else os.path.dirname(path)


def _relative(value, base):
    """Return a reference with its path relative to a directory that it lies below."""
    if isinstance(value, bytes) or base is None or not value[0].startswith(base.rstrip("/") + "/"):
        return value
    url = value[0][len(base.rstrip("/")) + 1:]
    # A path that looks like a URL stays absolute.
    return value if ":" in url else (url, *value[1:])
