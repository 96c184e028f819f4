"""The Zarr v3 format: one document `zarr.json` for each node, attributes included.

::

    example.zarr/
        zarr.json              {"zarr_format": 3, "node_type": "group", "attributes": {…}}
        temperature/
            zarr.json          {"zarr_format": 3, "node_type": "array", "shape": […], …}
            c/4/2              chunk (4, 2) of the key encoding `default`    (may be absent: fill value)

Source: Zarr v3 core 3.1, "Metadata". Where it is silent, or real documents differ from it:

- A member that the text does not define is an error, unless it has ``"must_understand": false``; then it is kept.
- The tokens NaN and Infinity, which are not JSON, are accepted in attributes, where zarr-python writes them. An
  unchanged attribute with such a number is written again, also into consolidated metadata and copies, so other changes
  are possible and nothing is lost. A new node or a new attribute with such a number is refused; it can be stored as
  text. xarray's datasets have such numbers: they are written, with a warning.
- ``null`` instead of attributes or storage transformers is read as none.
- Documents without a codec from array to bytes are of GDAL before 3.11, and a fill value of null is of GDAL; see
  `ZarrV3.completed`.
- A storage transformer that must be understood is refused: none is registered.
- `consolidated_metadata` is a copy of other documents and never prevents opening a group: if its nodes contradict each
  other, it is ignored with a warning. If it is no such copy at all, only a reader that asks for the copy is told.

Other modules parse and render the parts of a document: `dtypes`, `fill`, `grids`, `chain` and `consolidated`; `new` and
`new_chain` make the metadata of a new array.
"""
from __future__ import annotations

import json
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np

from zcore.errors import MetadataError, UnsupportedError, warn
from zcore.formats.base import Format
from zcore.formats.codec_specs import bytes_spec
from zcore.formats.json_documents import Document, join_lines, render_json_lines, render_lines
from zcore.formats.zarr_v3.chain import byte_order_of, check_chain, parse_chain, render_chain
from zcore.formats.zarr_v3.consolidated import check_kind, parse_consolidated, render_consolidated
from zcore.formats.zarr_v3.dtypes import as_dtype, parse_data_type, render_data_type, stored_byte_order
from zcore.formats.zarr_v3.extensions import is_optional
from zcore.formats.zarr_v3.fill import parse_fill, render_fill
from zcore.formats.zarr_v3.grids import parse_grid, parse_key_encoding, render_grid, render_key_encoding
from zcore.formats.zarr_v3.new import new_array, new_group
from zcore.model import node_names
from zcore.model.metadata import ArrayMetadata, GroupMetadata, check_chunk_shape, check_shape, has_varying_items
from zcore.model.value import IdentityKey

if TYPE_CHECKING:
    from typing import Any

_COMMON_MEMBERS = frozenset(("zarr_format", "node_type", "attributes"))
_ARRAY_MEMBERS = _COMMON_MEMBERS | {
    "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs", "dimension_names",
    "storage_transformers",
}
_GROUP_MEMBERS = _COMMON_MEMBERS | {"consolidated_metadata"}
_COMPRESSORS_OF_GDAL = frozenset(("gzip", "blosc"))     # of its versions that wrote no codec from array to bytes
_WITH_ATTRIBUTES = ("attributes", "consolidated_metadata")
_SPELLINGS = ("data_type", "fill_value", "codecs")  # of an old structure, which `extra` keeps in their original form


class ZarrV3(Format):
    """Zarr v3; see `Format`."""

    title: str = "Zarr v3"
    names: node_names.Names = node_names.V3
    strict_attributes = True
    spellings: tuple[str, ...] = _SPELLINGS
    has_shards = has_checksum = has_dimension_names = has_chunk_key_encoding = True

    as_dtype: staticmethod[[Any], np.dtype[Any]] = staticmethod(as_dtype)
    new_array: staticmethod[..., ArrayMetadata] = staticmethod(new_array)
    new_group: staticmethod[..., GroupMetadata] = staticmethod(new_group)

    def parse_node(self, document: str, raw: bytes, path: str) -> ArrayMetadata | GroupMetadata:
        return _parse(Document(raw, path, document, bare_constants=(*_WITH_ATTRIBUTES, "fill_value")))

    def completed(self, metadata: ArrayMetadata, strict: bool) -> ArrayMetadata:
        codecs, dtype = metadata.codecs, metadata.dtype
        n_before = len(list(takewhile(lambda codec: codec.name == "transpose", codecs)))
        if all([codec.name in _COMPRESSORS_OF_GDAL for codec in codecs[n_before:]]):
            if strict:
                raise MetadataError("member 'codecs': expected a codec from array to bytes, such as 'bytes', found "
                                    "none; strict=False reads such arrays of GDAL before 3.11, which are little-endian",
                                    member="codecs")
            warn("no codec from array to bytes; little-endian is assumed, as GDAL before 3.11 means it")
            metadata = metadata.replace(codecs=(*codecs[:n_before], bytes_spec(dtype), *codecs[n_before:]))
        if metadata.fill_value is None:
            if strict:
                try:
                    parse_fill(dtype, None)
                except ValueError as exc:
                    raise MetadataError(f"member 'fill_value': {exc}; strict=False reads it as zeros",
                                        member="fill_value") from exc
            warn("the fill value is null; zeros are assumed, as GDAL means it")
            metadata = metadata.replace(fill_value=np.zeros((), dtype)[()])
        return metadata

    def render_array(self, metadata: ArrayMetadata | GroupMetadata) -> bytes:
        """Return the `zarr.json` of an array.

        Raises
        ------
        ValueError
            If Zarr v3 cannot express it: other chunk keys, fields that differ in byte order, a chain that cannot store
            the type.
        TypeError
            If a name of an attribute is not a string, or a value is not JSON's.
        UnsupportedError
            If Zarr v3 has no such type.
        """
        if (type(metadata) is not ArrayMetadata or metadata.extra or metadata.edges is not None
                or metadata.data_type is not None or has_varying_items(metadata.dtype)):
            return render_json_lines(_members_of(metadata), _WITH_ATTRIBUTES)
        before, after = _shared_lines(metadata.dtype, len(metadata.shape), IdentityKey(metadata.chunk_keys),
                                      metadata.fill_bytes, IdentityKey(metadata.codecs))
        last = _NO_ATTRIBUTES
        if metadata.attributes:
            last = render_lines({"attributes": metadata.attributes}, _WITH_ATTRIBUTES)
        names = [] if metadata.dimension_names is None else [render_lines(_named_dimensions(metadata))]
        # Python writes a list of integers as JSON does.
        return join_lines(f'{_BEGIN},\n  "shape": {list(metadata.shape)!r}',
                          f"{before}{list(metadata.chunk_shape)!r}{after}", last, _NO_TRANSFORMERS, *names)

    def render_group(self, metadata: GroupMetadata) -> bytes:
        return self.render_array(metadata)  # the type of the metadata decides

    def may_have_copy(self, raw: bytes) -> bool:
        # The name is in the text, except in escaped form.
        return b"consolidated_metadata" in raw or b"\\u" in raw

    def has_copy(self, raw: bytes) -> bool:
        return self.may_have_copy(raw) and json.loads(raw).get("consolidated_metadata") is not None

    def check_copy(self, raw: bytes, path: str) -> None:
        if self.may_have_copy(raw):
            check_kind(Document(raw, path, "zarr.json", bare_constants=_WITH_ATTRIBUTES))


def _parse(document):
    """Return the metadata for a document."""
    members = document.members
    if "metadata_key_suffix" in members or str(members.get("zarr_format")).startswith("http"):
        raise UnsupportedError(f"{document.where()}: a document of a draft of Zarr v3 from before 2023, whose "
                               "hierarchies lay below meta/ and data/", feature="drafts of Zarr v3")
    document.integer("zarr_format", 3, 3)
    kind = document.choice("node_type", ("array", "group"))
    attributes = members.get("attributes")
    if attributes is None:
        attributes = {}
    elif type(attributes) is not dict:
        raise document.unexpected("attributes", "an object")
    extra = _extra(document, _ARRAY_MEMBERS if kind == "array" else _GROUP_MEMBERS)
    if kind == "group":
        return GroupMetadata(3, attributes, parse_consolidated(document, _parse), extra)
    return _parse_array(document, attributes, extra)


def _extra(document, known):
    """Return the unknown members that readers may ignore, which are kept when the document is rewritten."""
    extra = {}
    for member, value in document.members.items():
        if member not in known:
            if not is_optional(value):
                raise UnsupportedError(f"{document.where()}: member {member!r:.60} is not known to zcore, and must "
                                       "be understood", feature=f"member {member[:60]}")
            extra[member] = value
    return extra


def _parse_array(document, attributes, extra):
    members = document.members
    shape = document.checked("shape", check_shape, document.integers("shape", 0))
    chunk_shape, edges = document.checked("chunk_grid", _grid, document.required("chunk_grid"), shape)
    chunk_keys = document.checked("chunk_key_encoding", parse_key_encoding, document.required("chunk_key_encoding"))
    codecs = members.get("codecs", [])
    if codecs != []:
        codecs = document.checked("codecs", parse_chain, codecs, len(shape))
    byte_order = document.checked("codecs", byte_order_of, codecs)
    dtype, data_type = document.checked("data_type", parse_data_type, document.required("data_type"), byte_order or "<")
    if type(members["data_type"]) is dict and members["data_type"]["name"] == "structured":
        # An object is written alike, but NaN in it in quotes.
        extra.update({member: members[member] for member in _SPELLINGS
                      if member in members and (member != "fill_value" or type(members[member]) is str)})
    if byte_order is None and stored_byte_order(dtype) and "data_type" in extra:
        # zarr-extensions, "struct": older documents lack the byte order.
        document.warn("the fields do not say their byte order; little-endian is assumed")
        codecs = tuple([codec.replace(configuration={**codec.configuration, "endian": "little"})
                        if codec.name == "bytes" else codec for codec in codecs])
    document.checked("codecs", check_chain, codecs, dtype, data_type)
    fill_value, raw_fill = document.required("fill_value"), bytes(dtype.itemsize)
    if fill_value is not None or has_varying_items(dtype):
        fill_value, raw_fill = document.checked("fill_value", parse_fill, dtype, fill_value)
    dimension_names = _dimension_names(document, len(shape))
    if transformers := _storage_transformers(document):
        extra["storage_transformers"] = transformers
    return document.checked("chunk_grid", lambda: ArrayMetadata(
        shape, dtype, chunk_shape, chunk_keys, codecs, fill_value, raw_fill, 3, attributes, dimension_names, extra,
        None if data_type == render_data_type(dtype) else data_type, edges,
    ))


def _grid(value, shape):
    chunk_shape, edges = parse_grid(value, shape)
    return check_chunk_shape(chunk_shape, shape), edges


def _dimension_names(document, ndim):
    names = document.members.get("dimension_names")
    if names is None:
        return None
    if type(names) is not list or not all([label is None or type(label) is str for label in names]):
        raise document.unexpected("dimension_names", "a list of strings and nulls")
    if len(names) != ndim:
        raise document.error("dimension_names", f"expected one name for each dimension ({ndim}), found {len(names)}")
    return tuple(names)


def _storage_transformers(document):
    transformers = document.members.get("storage_transformers")
    if transformers is None:
        return []
    if type(transformers) is not list:
        raise document.unexpected("storage_transformers", "a list")
    for transformer in transformers:
        if not is_optional(transformer):
            label = transformer.get("name") if type(transformer) is dict else transformer
            if type(label) is not str:
                raise document.unexpected("storage_transformers", "a list of extensions")
            raise UnsupportedError(f"{document.where()}: member 'storage_transformers': zcore does not know the "
                                   f"storage transformer {label!r:.60}", feature=f"storage transformer {label[:60]}")
    return transformers


def _members_of(metadata):
    """Return the members of the document of a node."""
    known = (_ARRAY_MEMBERS.difference(_SPELLINGS, ("storage_transformers",)) if type(metadata) is ArrayMetadata
             else _GROUP_MEMBERS)
    if not known.isdisjoint(metadata.extra):
        raise ValueError(f"extra members {sorted(known.intersection(metadata.extra))} are the format's own")
    if type(metadata) is ArrayMetadata:
        return {**_array_members(metadata), **metadata.extra}
    members = {"zarr_format": 3, "node_type": "group", "attributes": metadata.attributes or {}}
    if metadata.consolidated is not None:
        members["consolidated_metadata"] = render_consolidated(metadata.consolidated, _members_of)
    return {**members, **metadata.extra}


def _array_members(metadata):
    return {**_FIRST, "shape": list(metadata.shape), **_middle_members(
        metadata.dtype, metadata.data_type, metadata.chunk_shape, metadata.edges, metadata.chunk_keys,
        metadata.fill_value, metadata.fill_bytes, metadata.codecs), "attributes": metadata.attributes or {},
        "storage_transformers": [], **_named_dimensions(metadata)}


def _middle_members(dtype, data_type, chunk_shape, edges, chunk_keys, fill_value, raw, codecs):
    if data_type is None:
        data_type = render_data_type(dtype)
    check_chain(codecs, dtype, data_type)
    return {
        "data_type": data_type,
        "chunk_grid": render_grid(chunk_shape, edges),
        "chunk_key_encoding": render_key_encoding(chunk_keys),
        "fill_value": render_fill(dtype, fill_value, raw, data_type),
        "codecs": render_chain(codecs),
    }


def _named_dimensions(metadata):
    return {} if metadata.dimension_names is None else {"dimension_names": list(metadata.dimension_names)}


_FIRST = {"zarr_format": 3, "node_type": "array"}
_BEGIN = render_lines(_FIRST)
_CHUNK_SHAPE = '"chunk_shape": '     # the type before it has no such member
_NO_ATTRIBUTES, _NO_TRANSFORMERS = render_lines({"attributes": {}}), render_lines({"storage_transformers": []})


@lru_cache(maxsize=64)
def _shared_lines(dtype, ndim, chunk_keys, raw, codecs):
    """Return the lines between `shape` and `attributes`, which many arrays of a program share; see `IdentityKey`.

    They are two texts, before and after the chunk shape.
    """
    grid = (1,) * ndim
    lines = render_lines(_middle_members(dtype, None, grid, None, chunk_keys(), None, raw, codecs()))
    before, member, after = lines.partition(_CHUNK_SHAPE)
    return before + member, after.removeprefix(str(list(grid)))
