"""Reference sets of hierarchies: the documents, and the extents of the chunks.

Kerchunk's references specification, version 1. Nothing is decoded: a reference to a chunk is the file that holds it and
the byte range there, for any compression; a shard is one such chunk. A chunk without an extent, such as one in memory
or one that a zip archive has deflated, is copied into the set, within bounds.
"""
from __future__ import annotations

import operator
import os
from typing import TYPE_CHECKING

import numpy as np

from zcore.api import create_array, open
from zcore.engine.views import same_chunks
from zcore.errors import UnsupportedError, ZcoreError
from zcore.formats import format_of
from zcore.model.chunk_keys import ChunkKeyEncoding
from zcore.nodes.array import Array
from zcore.nodes.group import Group
from zcore.stores.memory import MemoryStore
from zcore.stores.openers import is_url
from zcore.stores.reference.store import ReferenceStore
from zcore.tools.copy.sources import SourceArray
from zcore.tools.copy.stacked import StackedSource

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from zcore.stores.base import StoreLike

MAX_INLINED = 1 << 20
_ZARR_V2 = format_of(2)
_V2_KEYS = ChunkKeyEncoding.v2(".")


def references(source: StoreLike | Mapping[str, Any] | Array | Group | list[StoreLike | Array | Group], *,
               path: str = "", inline_threshold: int = 0, max_inlined: int = MAX_INLINED,
               along: str | None = None) -> ReferenceStore:
    """Return a reference set for an array, or for a group and all below it.

    Parameters
    ----------
    source : str, os.PathLike, Store, mapping, Array or Group
        Anything that `zcore.open` takes or returns. An array of the ``__zmeta__`` format becomes one of Zarr v2, and
        its chunks stay where they are; other nodes keep their format. A list of these is joined, as by `zcore.copy`.
    path : str
        Of the node in the store; the keys of the set begin there.
    inline_threshold : int
        Bytes up to which a chunk is copied into the set instead.
    max_inlined : int
        Bytes of chunks that may be copied in all, for each array, because they have no extent: they are in memory, or
        deflated in a zip archive; or because the chunks of a list do not fit together.
    along : str, optional
        The name of the dimension along which the arrays of a list are joined.

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
        A chunk has no extent, and is larger than may be copied. Or arrays of a list have other chunks than the first,
        or end within a chunk.
    ValueError
        The sources of a list do not agree.
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
    if isinstance(source, list) != (along is not None):
        raise ValueError("along= names the dimension along which a list of sources is joined")
    sources = source if isinstance(source, list) else [source]
    nodes = [one if isinstance(one, (Array, Group)) else open(one, path=path) for one in sources]
    for node in nodes:
        if node.store.decodes:
            raise UnsupportedError(f"{node.store.describe(node.path)}: tifffile decodes its elements, so no chunks "
                                   "can be referred to; python -m tifffile.tiff2fsspec makes a reference set of a "
                                   "TIFF file, and zcore.copy copies it", feature="references to TIFF files")
    found = {}
    for name, node in _walk(nodes[0]):
        _add_documents(found, name, node, has_copy=along is None)
        if along is None:
            _add_chunks(found, name, node, inline_threshold, max_inlined)
    if along is not None:
        with StackedSource(nodes, "", None, None, along) as stacked:
            for name, array in stacked.nodes:
                if isinstance(array, SourceArray):
                    members = [node[name] if name else node for node in nodes]
                    _add_joined(found, name + "/" if name else "", array, members, inline_threshold, max_inlined)
    bases = {_directory_of(node.store) for node in nodes}
    if len(bases) > 1 and any([isinstance(node.store, ReferenceStore) for node in nodes]):
        raise UnsupportedError("a reference set is joined with sources in its own directory alone, as it may point to "
                               "no other files", feature="joined reference sets of several directories")
    base = None if None in bases else os.path.commonpath(bases)
    # An empty list permits less than None.
    limits = [node.store.allowed for node in nodes if isinstance(node.store, ReferenceStore)]
    allowed = None if not limits or None in limits else [place for limit in limits for place in limit]
    return ReferenceStore.of({key: _relative(value, base) for key, value in found.items()}, base=base,
                             allowed=allowed)


def _walk(node):
    """Yield a node and all below it, with the prefixes of their keys."""
    yield "", node
    for name, member in node.walk() if isinstance(node, Group) else ():
        if isinstance(member, ZcoreError):
            raise member     # a set without it would mean that it does not exist
        yield name + "/", member


def _add_documents(found, prefix, node, has_copy=True):
    """Add the documents of one node, with `prefix` before their keys; without `has_copy`, no consolidated metadata."""
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
        found[prefix + binding.document_name] = (
            format.render_array(binding.metadata) if told else binding.view.raw if has_copy or isinstance(node, Array)
            else format.render_group(binding.metadata.replace(consolidated=None)))
        if attributes is not None:
            found[prefix + format.attributes_document] = attributes


def _add_chunks(found, prefix, node, inline_threshold, max_inlined, shift=None):
    """Add the chunks of an array; `shift` is added to their coordinates."""
    if not isinstance(node, Array):
        return
    binding, store, n_inlined = node._binding, node.store, 0
    keys = binding.metadata.chunk_keys if binding.format.is_standard else _V2_KEYS
    for key, coords in binding.stored_chunks():
        name = prefix + (key[len(binding.prefix):] if shift is None and binding.format.is_standard else
                         keys.encode(coords if shift is None else tuple(map(operator.add, coords, shift))))
        extent = store.extent(key)
        if extent is not None and (inline_threshold <= 0 or store.getsize(key) > inline_threshold):
            found[name] = extent
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
            found[name] = bytes(value)


def _add_joined(found, prefix, array, members, inline_threshold, max_inlined):
    """Add the chunks of arrays that are joined, and the new document; small arrays are copied if chunks do not fit."""
    binding = members[0]._binding
    _check_masks(members)
    if array.joined is None:
        _add_chunks(found, prefix, members[0], inline_threshold, max_inlined)
        return
    (axis, ends), metadata = array.joined, binding.metadata
    chunk, misfit = metadata.chunk_shape[axis], None
    for member, end in zip(members, ends, strict=True):
        if member._binding.format is not binding.format or not same_chunks(
                member._binding.metadata.replace(shape=metadata.shape), metadata):
            misfit = member, "has other chunks or codecs than the first array"
        elif metadata.edges is not None or end % chunk and end != ends[-1]:
            misfit = misfit or (member, f"ends within a chunk of {chunk}")
    if misfit is None:
        joined = metadata.replace(shape=array.shape)
        found[prefix + (binding.document_name if binding.format.is_standard else _ZARR_V2.array_document)] = (
            binding.format.render_array(joined) if binding.format.is_standard else _as_zarr_v2(joined))
        for member, start in zip(members, (0, *ends), strict=False):
            shift = tuple([start // chunk if d == axis else 0 for d in range(len(array.shape))])
            _add_chunks(found, prefix, member, inline_threshold, max_inlined, shift)
        return
    values = np.empty(array.shape, array.dtype)
    if values.nbytes > max_inlined:
        member, reason = misfit
        raise UnsupportedError(f"{member.store.describe(member.path)} {reason}; zcore.copy(sources, destination, "
                               "along=…) copies the elements", feature="references to chunks that do not fit together")
    array.read((0,) * values.ndim, values)
    made = create_array(MemoryStore(), data=values, chunks=values.shape, compressors=None, checksum=False,
                        fill_value=metadata.fill_value, zarr_format=binding.format.name if binding.format.is_standard
                        else 2, dimension_names=metadata.dimension_names, attributes=members[0].attrs.asdict())
    _add_documents(found, prefix, made)
    _add_chunks(found, prefix, made, 0, max_inlined)


def _check_masks(members):
    """Raise ValueError if readers would take other elements of one array for missing than of the first."""
    first = members[0]._binding
    for binding in [member._binding for member in members[1:]]:
        found, expected = [None if one.metadata.fill_value is None else one.metadata.fill_bytes
                           for one in (binding, first)]
        if first.format.masks_fill_value and found != expected:
            raise ValueError(f"{binding.describe()} has the fill value {binding.metadata.fill_value}, expected "
                             f"{first.metadata.fill_value} as in {first.describe()}: readers take elements that are "
                             "the fill value for missing data")


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
