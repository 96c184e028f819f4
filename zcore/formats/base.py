"""The contract of a format: its capabilities and its methods.

No caller depends on the name of a format. It reads a capability, which is an attribute below, or calls a method. So a
new format changes three files:

1. its own, with one subclass of `Format` (a folder if it is long);
2. `zcore/formats/__init__.py`, one line of the table `FORMATS`, with the names of its documents;
3. its tests, with a subclass of `FormatConformance` from `tests/unit/formats/conformance.py`.

A format parses and renders documents, as bytes. It knows no store: callers find the documents by their names.
"""
from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, cast

from zcore.formats import format_of
from zcore.formats.json_documents import Document, render_json
from zcore.model import metadata as model
from zcore.model import node_names
from zcore.model.metadata import ArrayMetadata, GroupMetadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    import numpy as np

    from zcore.typing import Attributes, Chunks, DTypeLike, Shape
    from zcore.typing import Format as FormatName


class Format(ABC):
    """One format. The table makes its one instance, see `zcore.formats.format_of`.

    Parameters
    ----------
    name : int or str
        As in ``zarr_format=`` and in the `zarr_format` of metadata.
    array_document, group_document : str
        Names of the documents of a node, which may be the same. `group_document` is None where there are no groups.
    consolidated_document : str or None
        Name of the document of consolidated metadata, beside the group's. None if the group's document has them as a
        member, or if there are none.
    """

    title: str | None = None  # the name of the format in texts
    names: node_names.Names = node_names.ANY  # rules for the names of nodes
    # The name of the document of attributes; None: they are members of the node's document.
    attributes_document: str | None = None
    chunk_directory: str | None = None  # the name of the directory that has all chunks, and nothing else; None: no such
    strict_attributes: bool = False  # a new attribute may not be NaN or an infinity, which are not JSON
    masks_fill_value: bool = False  # readers take elements that are the fill value for missing data, as xarray does
    implies_typesize: bool = False  # the item size in blosc chunks is the array's; False: a filter may change it
    has_objects: bool = False  # arrays of objects, if the caller names a codec that encodes them
    # The name of the codec that compresses every chunk; None: any number of any codecs does.
    only_compressor: str | None = None
    spellings: tuple[str, ...] = ()  # members of the format that `extra` of metadata may keep in their own spelling

    # Keywords of `new_array`. It raises ValueError for a keyword that the format does not have.
    has_shards: bool = False  # `shards`
    has_checksum: bool = False  # `checksum`, and by default every chunk ends in one
    has_dimension_names: bool = False  # `dimension_names`
    has_chunk_key_encoding: bool = False  # `chunk_key_encoding`, that of another array of the format
    has_own_codec_names: bool = False  # `compressors` with the names in the format's documents; else `CodecSpec`

    # A document need not say how the indices in chunk keys are joined. Then the caller of `zcore.open` passes
    # `dimension_separator`; see `with_separator`.
    has_dimension_separator: bool = False
    # Other libraries read the format. Reference sets describe arrays of any other format as Zarr v2.
    is_standard: bool = True

    def __init__(self, name: FormatName, array_document: str, group_document: str | None,
                 consolidated_document: str | None) -> None:
        self.name: FormatName = name
        self.array_document: str = array_document
        self.group_document: str | None = group_document
        self.consolidated_document: str | None = consolidated_document
        # Whether a node can be a group; else there is no hierarchy.
        self.has_groups: bool = group_document is not None
        # Whether attributes are part of a node's document, and of its metadata.
        self.has_inline_attributes: bool = self.attributes_document is None

    # Required

    @abstractmethod
    def parse_node(self, document: str, raw: bytes, path: str) -> ArrayMetadata | GroupMetadata:
        """Return the `ArrayMetadata` or `GroupMetadata` that a document describes.

        Parameters
        ----------
        document : str
            Its name, `array_document` or `group_document`.
        raw : bytes
        path : str
            Of the node, for messages.

        Raises
        ------
        MetadataError
            If the document breaks a rule; the error names the member.
        UnsupportedError
            If it needs a feature that zcore, or this installation of it, does not have.
        """

    @abstractmethod
    def render_array(self, metadata: ArrayMetadata) -> bytes:
        """Return the document of an array.

        Raises
        ------
        ValueError, TypeError, UnsupportedError
            If the format cannot express the metadata.
        """

    @abstractmethod
    def new_array(self, shape: Shape, dtype: DTypeLike, chunks: Chunks = None, fill_value: Any = ...,
                  codecs: Iterable[Any] | None = None, **settings: Any) -> ArrayMetadata:
        """Return the metadata of an array to be created. The format has defaults for all that a caller leaves out.

        `settings` are other keywords of `zcore.create_array`, without those that the caller leaves out.

        Raises : ValueError, TypeError, UnsupportedError, if the format cannot express the settings.
        """

    @abstractmethod
    def as_dtype(self, dtype: Any) -> np.dtype[Any]:
        """Return the data type of arrays of the format for the type that a caller names.

        Raises : ValueError, TypeError, UnsupportedError, if it is no type, or the format cannot store it.
        """

    # Required if there are groups

    def render_group(self, metadata: GroupMetadata) -> bytes:
        """Return the document of a group. Raises : ValueError, TypeError."""
        raise NotImplementedError

    def new_group(self, attributes: Attributes | None = None) -> GroupMetadata:
        """Return the metadata of a group to be created; `attributes` are part of them."""
        raise NotImplementedError

    # Required if there is a `consolidated_document`

    def parse_consolidated(self, raw: bytes, path: str) -> GroupMetadata:
        """Return the metadata of a group from the document of consolidated metadata, with attributes.

        Its `consolidated` maps the paths of all nodes below to their metadata, also with attributes.

        Raises : MetadataError, if it is no such document.
        """
        raise NotImplementedError

    def render_consolidated(self, metadata: GroupMetadata) -> bytes:
        """Return the document of consolidated metadata of a group; see `parse_consolidated`."""
        raise NotImplementedError

    # Required if the group's document may have consolidated metadata as a member

    def may_have_copy(self, raw: bytes) -> bool:
        """Return whether a group's document may have consolidated metadata, without parsing, which is slow."""
        return False

    def has_copy(self, raw: bytes) -> bool:
        """Return whether the group's document, a valid one, has consolidated metadata, usable or not."""
        return False

    def check_copy(self, raw: bytes, path: str) -> None:
        """Raise MetadataError if the consolidated metadata in a group's document, which can be read, are none."""
        return

    # Required with `has_dimension_separator`

    def with_separator(self, metadata: ArrayMetadata, separator: str) -> ArrayMetadata:
        """Return the metadata with `separator` in the chunk keys, if the document names no separator."""
        raise NotImplementedError

    # Required if attributes may change the meaning of an array's document

    def with_attributes(self, metadata: ArrayMetadata, attributes: Callable[[], Mapping[str, Any]]) -> ArrayMetadata:
        """Return the metadata of an array's document as the array's attributes say they are meant.

        `attributes` is called only if they can matter.
        """
        return metadata

    # Required if documents may leave out what `strict=False` assumes

    def completed(self, metadata: ArrayMetadata, strict: bool) -> ArrayMetadata:
        """Return the metadata of an array, completed by what its document leaves out.

        Raises : MetadataError, if it leaves something out and `strict` is True.
        """
        return metadata

    # The same for all formats

    def document_of(self, kind: type[ArrayMetadata | GroupMetadata]) -> str | None:
        """Return the name of the document of a node whose metadata are of a class."""
        return self.array_document if kind is ArrayMetadata else self.group_document

    def render(self, metadata: ArrayMetadata | GroupMetadata) -> bytes:
        """Return the document of a node; see `render_array` and `render_group`."""
        return self.render_array(metadata) if isinstance(metadata, ArrayMetadata) else self.render_group(metadata)

    def parse_attributes(self, raw: bytes | None, path: str) -> dict[str, Any]:
        """Return the attributes in an `attributes_document`; none if it is absent (None).

        Raises : MetadataError, if it is not a JSON object.
        """
        return {} if raw is None else Document(raw, path, self.attributes_document, bare_constants=True).members

    def render_attributes(self, attributes: Attributes) -> bytes:
        """Return the `attributes_document` of a dict of attributes.

        Raises : TypeError, if a name is not a string or a value is not JSON's.
        """
        return render_json(attributes)

    def parse_array(self, raw: bytes, path: str) -> ArrayMetadata:
        """Return the `ArrayMetadata` of a document that is an array's. Raises : as `parse_node`."""
        return cast("ArrayMetadata", self.parse_node(self.array_document, raw, path))

    def describes(self, metadata: Any) -> bool:
        """Return whether metadata are of a node of this format. Any object with a `zarr_format` will do."""
        return metadata.zarr_format == self.name

    def __repr__(self) -> str:
        return f"<format {self.title}>"


def _document_of(metadata: ArrayMetadata | GroupMetadata) -> dict[str, Any]:
    """Return the document of metadata as a dict."""
    return json.loads(format_of(metadata.zarr_format).render(metadata))


model.document_of = _document_of
