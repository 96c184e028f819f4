"""The Zarr v2 format: arrays and groups in a hierarchy, every chunk an object of its own.

::

    example.zarr/
        .zgroup             JSON: {"zarr_format": 2}
        .zattrs             JSON: the user's attributes                                    (may be absent: none)
        .zmetadata          JSON: copies of all documents below                            (may be absent; practice)
        a/.zarray           JSON: zarr_format shape chunks dtype compressor fill_value order filters
                            and, if it is not ".", dimension_separator
        a/.zattrs
        a/4.2  or  a/4/2    chunk (4, 2): full shape also at the border                    (may be absent: fill value)

Source: Zarr storage specification version 2, and the practice of zarr-python 2 and 3. `order`, `filters` and
`compressor` are read as a codec chain (`zarr_v2.chain`). Where the text is silent, existing files decide:

- Members that the text does not name are kept when the document is rewritten; the opposite of v3.
- A document without `filters` or `fill_value` is read with a warning, as if they were null.
- Objects of `vlen-utf8` are strings, others stay objects. Objects that need unpickling are refused.
- Old nested arrays do not say that ``/`` joins the indices in the names of chunks. The caller has to pass it when they
  are opened, and the document records it when it is rewritten. zcore does not guess it.
- Chunk lengths of 0, which old programs wrote if the array has length 0, are read as 1.

A document is rewritten as zarr-python 2 does (indent 4, sorted). Codecs keep their spelling if several mean the same:
a spelling that zcore would not write is kept in the metadata's `extra`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from zcore.errors import UnsupportedError
from zcore.formats.base import Format
from zcore.formats.json_documents import Document, around_shape, render_json, render_shape
from zcore.formats.zarr_v2 import consolidated
from zcore.formats.zarr_v2.chain import ChainBuilder, from_chain, to_chain
from zcore.formats.zarr_v2.codecs import unknown_parameters
from zcore.formats.zarr_v2.consolidated import GROUP_MEMBERS
from zcore.formats.zarr_v2.fill import parse_fill, parse_object_fill, render_fill, render_object_fill, text_bytes
from zcore.formats.zarr_v2.new import as_dtype, new_array, new_group
from zcore.model import node_names
from zcore.model.chunk_keys import ChunkKeyEncoding
from zcore.model.dtypes import from_descr, to_descr
from zcore.model.fill_value import fill_scalar
from zcore.model.metadata import ArrayMetadata, GroupMetadata, check_chunk_shape, check_shape, has_varying_items
from zcore.model.value import IdentityKey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_OBJECT = np.dtype(object)
_OF_CODECS = ("order", "filters", "compressor", "dimension_separator")
_SPELLINGS = (*_OF_CODECS, "fill_value")  # `extra` may keep their original form
_MEMBERS = frozenset(("zarr_format", "shape", "chunks", "dtype", *_SPELLINGS))
_CHUNK_KEYS = {separator: ChunkKeyEncoding.v2(separator) for separator in ("/", ".")}


class ZarrV2(Format):
    """Zarr v2; see `Format`."""

    title: str = "Zarr v2"
    names: node_names.Names = node_names.V2
    attributes_document: str | None = ".zattrs"
    spellings: tuple[str, ...] = _SPELLINGS
    masks_fill_value = True
    has_chunk_key_encoding = has_own_codec_names = has_dimension_separator = has_objects = True

    as_dtype: staticmethod[[Any], np.dtype[Any]] = staticmethod(as_dtype)
    new_array: staticmethod[..., ArrayMetadata] = staticmethod(new_array)
    new_group: staticmethod[..., GroupMetadata] = staticmethod(new_group)

    def parse_node(self, document: str, raw: bytes, path: str) -> ArrayMetadata | GroupMetadata:
        if document == self.array_document:
            return _parse_array(Document(raw, path, document, bare_constants=("fill_value",)))
        return _parse_group(Document(raw, path, document))

    def render_array(self, metadata: ArrayMetadata) -> bytes:
        """Return the `.zarray` document of an array, without its attributes.

        Raises
        ------
        ValueError
            If the format cannot express it: other chunk keys, dimension names, a chain that is not order, filters and
            compressor.
        UnsupportedError
            If the type has no fixed, portable bytes, and no codec encodes it.
        """
        if metadata.extra or not metadata.shape or has_varying_items(metadata.dtype):
            return render_json(_array_members(metadata))
        _check_expressible(metadata)
        around = _around_shape(IdentityKey(metadata.dtype), metadata.chunk_shape, metadata.chunk_keys.separator,
                               IdentityKey(metadata.codecs), metadata.fill_value is None, metadata.fill_bytes)
        return render_shape(around, metadata.shape)

    def parse_attributes(self, raw: bytes | None, path: str) -> dict[str, Any]:
        """Return the attributes in a `.zattrs`; none if it is absent or null."""
        return super().parse_attributes(None if raw is None or raw.strip() == b"null" else raw, path)

    def with_attributes(self, metadata: ArrayMetadata, attributes: Callable[[], Mapping[str, Any]]) -> ArrayMetadata:
        return _with_attributes(metadata, attributes)

    def render_group(self, metadata: GroupMetadata) -> bytes:
        return render_json(GROUP_MEMBERS)

    def parse_consolidated(self, raw: bytes, path: str) -> GroupMetadata:
        """Return the metadata of a group from its `.zmetadata` document, with all nodes below.

        A node is parsed at its lookup, so a node that zcore cannot read does not affect others.

        Raises : MetadataError, if it is no consolidated metadata of format 1, or has no copy of the group's document.
        """
        document = Document(raw, path, self.consolidated_document, bare_constants=True)
        return consolidated.parse(document, _parse_array, _parse_group)

    def render_consolidated(self, metadata: GroupMetadata) -> bytes:
        return render_json(consolidated.members_of(metadata, _array_members))

    def with_separator(self, metadata: ArrayMetadata, separator: str) -> ArrayMetadata:
        # Old programs (N5 with Zarr's names, OME-Zarr 0.2) used "/" without recording it.
        says_so = metadata.chunk_keys.separator != "." or "dimension_separator" in metadata.extra
        return metadata if says_so else metadata.replace(chunk_keys=_CHUNK_KEYS[separator])


def _parse_array(document, attributes=None):
    members = document.members
    document.integer("zarr_format", 2, 2)
    shape = document.checked("shape", check_shape, document.lengths("shape"))
    chunk_shape = document.checked("chunks", _chunk_shape, document.lengths("chunks"), shape)
    dtype = document.checked("dtype", _parse_dtype, document.required("dtype"))
    order = document.choice("order", ("C", "F"))
    codecs = _parse_chain(document, order, dtype, len(shape))
    separator = document.choice("dimension_separator", ("/", ".")) if "dimension_separator" in members else "."
    if "fill_value" not in members:
        document.warn("member 'fill_value' is missing; read as null")
    fill_value = members.get("fill_value")
    if has_varying_items(dtype):
        object_codec = _object_codec(codecs)
        fill_value = document.checked("fill_value", parse_object_fill, object_codec, fill_value)
        raw_fill = b""
        if object_codec == "vlen-utf8":
            dtype = np.dtypes.StringDType()
    else:
        raw_fill = document.checked("fill_value", parse_fill, dtype, fill_value)
        fill_value = None if fill_value is None else fill_scalar(dtype, raw_fill)
    extra = {member: value for member, value in members.items() if member not in _MEMBERS}
    ours = _spelled(codecs, dtype, len(shape), separator)
    if not has_varying_items(dtype) and text_bytes(dtype, members.get("fill_value")) is not None and (
            members["fill_value"] != render_fill(dtype, raw_fill)):
        extra["fill_value"] = members["fill_value"]
    for member in _OF_CODECS:
        original = members.get(member)
        original = None if original == [] else original
        if original != ours.get(member) and (original is not None or member in ours) and not _has_size_0(original):
            extra[member] = original
    metadata = document.checked("chunks", lambda: ArrayMetadata(
        shape, dtype, chunk_shape, _CHUNK_KEYS[separator], codecs, fill_value, raw_fill, 2, attributes, extra=extra,
    ))
    return metadata if attributes is None else _with_attributes(metadata, lambda: attributes)


def _with_attributes(metadata, attributes):
    """Return the metadata with the fill value that is meant, if it may be text as well as Base64."""
    if metadata.dtype.kind != "S" or metadata.fill_value is None:
        return metadata
    value = metadata.extra.get("fill_value", render_fill(metadata.dtype, metadata.fill_bytes))
    raw = text_bytes(metadata.dtype, value)
    if raw is None or raw == metadata.fill_bytes:
        return metadata
    sign = attributes().get("_FillValue")
    if type(sign) is not type(value) or sign != value:
        return metadata
    return metadata.replace(fill_value=fill_scalar(metadata.dtype, raw), fill_bytes=raw,
                            extra={**metadata.extra, "fill_value": value})


def _chunk_shape(lengths, shape):
    if 0 in lengths and len(lengths) == len(shape):
        lengths = [chunk or int(length == 0) for chunk, length in zip(lengths, shape, strict=True)]
    return check_chunk_shape(lengths, shape)


def _parse_dtype(descr):
    if descr == "|O":
        return _OBJECT
    dtype = from_descr(descr)
    if dtype.itemsize == 0:
        raise UnsupportedError(f"items of {descr!r:.60} have no bytes", feature="items of no bytes")
    return dtype


def _parse_chain(document, order, dtype, ndim):
    members = document.members
    if "filters" not in members:
        document.warn("member 'filters' is missing; read as null")
    filters = members.get("filters")
    if filters == []:
        document.warn("member 'filters' is an empty list; read as null")
    if not (filters is None or type(filters) is list):
        raise document.unexpected("filters", "null or a list of codecs")
    if "compressor" not in members:
        document.warn("member 'compressor' is missing; read as null")
    compressor = members.get("compressor")
    builder = ChainBuilder(order, dtype, ndim)
    for config in filters or ():
        document.checked("filters", builder.add, config)
    if compressor is not None:
        document.checked("compressor", builder.add, compressor)
    for config in [*(filters or ()), compressor or {"id": ""}]:
        if unknown := unknown_parameters(config):
            document.warn(f"codec {config['id']!r} has no parameter {', '.join(unknown)}; ignored")
    return document.checked("filters", builder.finished)


def _has_size_0(codecs):
    """Return whether there is a shuffle of items of 0 bytes, which numcodecs misreads: a new document has the size."""
    return any([codec["id"] == "shuffle" and codec.get("elementsize") in (0, "0")
                for codec in (codecs if type(codecs) is list else [codecs]) if type(codec) is dict])


def _object_codec(codecs):
    """Return the name of the codec that converts objects to bytes or numbers."""
    return codecs[1 if codecs[0].name == "transpose" else 0].name


def _parse_group(document, attributes=None):
    document.integer("zarr_format", 2, 2)
    others = document.members.keys() - {"zarr_format"}
    if document.inside:
        others.discard("consolidated_metadata")  # zarr-python 3 leaves it in the copies
    if others:
        document.warn(f"members {sorted(others)} are ignored; a group has only 'zarr_format'")
    return GroupMetadata(2, attributes)


def _check_expressible(metadata):
    if metadata.dimension_names is not None:
        raise ValueError("a Zarr v2 array has no dimension names (xarray reads the attribute '_ARRAY_DIMENSIONS')")
    if _CHUNK_KEYS.get(metadata.chunk_keys.separator) != metadata.chunk_keys:
        raise ValueError(f"the chunks of a Zarr v2 array are named by indices joined by '.' or '/', not by "
                         f"{metadata.chunk_keys!r}")


def _members(dtype, chunk_shape, separator, codecs, fill_value):
    """Return the members of the document of an array that the format names, but the shape."""
    return {
        "zarr_format": 2, "chunks": chunk_shape, "dtype": "|O" if has_varying_items(dtype) else to_descr(dtype),
        "fill_value": fill_value, **_spelled(codecs, dtype, len(chunk_shape), separator),
    }


@lru_cache(maxsize=64)
def _around_shape(dtype, chunk_shape, separator, codecs, is_undefined, raw_fill):
    """Return `around_shape` of the document of an array. Type and codecs are each an `IdentityKey`."""
    fill_value = None if is_undefined else render_fill(dtype(), raw_fill)
    return around_shape(_members(dtype(), chunk_shape, separator, codecs(), fill_value))


def _array_members(metadata):
    _check_expressible(metadata)
    members = _members(metadata.dtype, metadata.chunk_shape, metadata.chunk_keys.separator, metadata.codecs,
                       _fill_member(metadata)) | {"shape": metadata.shape}
    original = {member: metadata.extra[member] for member in _OF_CODECS if member in metadata.extra}
    if original and _means(members | original, metadata):
        members |= original
    own = _MEMBERS.difference(_SPELLINGS).intersection(metadata.extra)
    if own:
        raise ValueError(f"extra members {sorted(own)} are the format's own")
    return {member: value for member, value in metadata.extra.items() if member not in _MEMBERS} | members


def _spelled(codecs, dtype, ndim, separator):
    """Return the members with several equivalent spellings, as zarr-python 2 writes them."""
    order, filters, compressor = from_chain(codecs, dtype, ndim)
    members = {"order": order, "filters": filters, "compressor": compressor}
    if separator != ".":
        members["dimension_separator"] = separator
    return members


def _means(members, metadata):
    """Return whether the original members of a document still agree with the metadata."""
    try:
        chain = to_chain(members["order"], members["filters"], members["compressor"], metadata.dtype, metadata.ndim)
    except (ValueError, UnsupportedError):
        return False
    return chain == metadata.codecs and members.get("dimension_separator", ".") == metadata.chunk_keys.separator


def _fill_member(metadata):
    if metadata.fill_value is None:
        return None
    if has_varying_items(metadata.dtype):
        return render_object_fill(_object_codec(metadata.codecs), metadata.fill_value)
    original = metadata.extra.get("fill_value")
    if original is not None and text_bytes(metadata.dtype, original) == metadata.fill_bytes:
        return original
    return render_fill(metadata.dtype, metadata.fill_bytes)
