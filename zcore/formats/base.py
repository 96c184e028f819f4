"""The contract of a format: what a format says of itself, and what it does.

No caller asks which format a node has. A caller asks for a capability, an attribute below, or calls a method. A new
format therefore changes three files:

1. its own, with one subclass of `Format` (where it is long, a folder);
2. `zcore/formats/__init__.py`, one line of the table `FORMATS`, with the names of its documents;
3. its tests, with a subclass of `FormatConformance` from `tests/unit/formats/conformance.py`.

A format reads and writes documents, as bytes. It knows no store: callers find the documents by their names.
"""
from abc import ABC, abstractmethod

from zcore.errors import NodeNotFoundError
from zcore.formats.json_documents import Document, render_json
from zcore.model import node_names
from zcore.model.metadata import ArrayMetadata, GroupMetadata


class Format(ABC):
    """One format. The table makes its one instance, see `zcore.formats.format_of`.

    Parameters
    ----------
    name : int or str
        What ``zarr_format=`` says, and what metadata say in their `zarr_format`.
    array_document, group_document : str
        Names of the documents of a node, which may be the same. `group_document` is None where there are no groups.
    consolidated_document : str or None
        Name of the document of consolidated metadata, beside the group's. None where the group's document has them as a
        member, or where there are none.
    """

    title = None  # what people call the format
    names = node_names.ANY  # rules for the names of nodes
    attributes_document = None  # the name of the document of attributes; None: they are members of the node's document
    chunk_directory = None  # the name of the directory that holds all chunks, and nothing else; None: there is no such
    strict_attributes = False  # no new attribute may be NaN or an infinity, which are not JSON
    implies_typesize = False  # the item size in blosc chunks is the array's; False: a filter may have made another one
    only_compressor = None  # the name of the codec that compresses every chunk; None: any number of any codecs does
    spellings = ()  # members that `extra` of metadata may hold though the format defines them, as they were spelled

    # What `new_array` takes. It refuses a keyword that the format does not have, by a ValueError.
    has_shards = False  # `shards`
    has_checksum = False  # `checksum`, and by default every chunk ends in one
    has_dimension_names = False  # `dimension_names`
    has_chunk_key_encoding = False  # `chunk_key_encoding`, that of another array of the format
    has_own_codec_names = False  # `compressors` as the format's documents and libraries name them; else `CodecSpec`

    # A document may leave open how the indices in chunk keys are joined, then the caller of `zcore.open` says it by
    # `dimension_separator`; see `with_separator`.
    has_dimension_separator = False
    # Other libraries read the format by its specification. Reference sets describe arrays of any other as Zarr v2.
    is_standard = True

    def __init__(self, name, array_document, group_document, consolidated_document):
        self.name = name
        self.array_document = array_document
        self.group_document = group_document
        self.consolidated_document = consolidated_document

    @property
    def has_groups(self):
        """Whether a node can be a group; else each array stands alone."""
        return self.group_document is not None

    @property
    def has_inline_attributes(self):
        """Whether attributes are part of a node's document, and of its metadata."""
        return self.attributes_document is None

    # Required

    @abstractmethod
    def parse_node(self, document, raw, path):
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
            If the document breaks a rule; it names the member.
        UnsupportedError
            If it needs something that zcore, or this installation of it, does not have.
        """

    @abstractmethod
    def render_array(self, metadata):
        """Return the document of an array.

        Raises
        ------
        ValueError, TypeError, UnsupportedError
            If the format cannot express the metadata.
        """

    @abstractmethod
    def new_array(self, shape, dtype, chunks=None, fill_value=..., codecs=None, **settings):
        """Return the metadata of an array to be created: what a caller leaves open is the format's choice.

        `settings` are other keywords of `zcore.create_array`, without those that leave the choice to the format.

        Raises : ValueError, TypeError, UnsupportedError, if the format cannot express what is asked for.
        """

    @abstractmethod
    def as_dtype(self, dtype):
        """Return the type that a caller names, as arrays of the format have it.

        Raises : ValueError, TypeError, UnsupportedError, if there is none, or the format cannot store it.
        """

    # Required if there are groups

    def render_group(self, metadata):
        """Return the document of a group. Raises : ValueError, TypeError."""
        raise NotImplementedError

    def new_group(self, attributes=None):
        """Return the metadata of a group to be created; `attributes` are part of them."""
        raise NotImplementedError

    # Required if there is a `consolidated_document`

    def parse_consolidated(self, raw, path):
        """Return the metadata of a group as the document of consolidated metadata repeats it, with attributes.

        Its `consolidated` maps the paths of all nodes below to their metadata, also with attributes.

        Raises : MetadataError, if it is no such document.
        """
        raise NotImplementedError

    def render_consolidated(self, metadata):
        """Return the document of consolidated metadata of a group; see `parse_consolidated`."""
        raise NotImplementedError

    # Required if there is none, and the group's document may have them as a member

    def may_have_copy(self, raw):
        """Whether a group's document may hold consolidated metadata; told without parsing, which is slow."""
        return False

    # Required with `has_dimension_separator`

    def with_separator(self, metadata, separator):
        """Return the metadata of an array whose chunk keys are joined by `separator`, if its document names none."""
        raise NotImplementedError

    # What all formats have in common

    def parse_attributes(self, raw, path):
        """Return the attributes that an `attributes_document` holds; none when it is absent (None).

        Raises : MetadataError, if it is not a JSON object.
        """
        return {} if raw is None else Document(raw, path, self.attributes_document, bare_constants=True).members

    def render_attributes(self, attributes):
        """Return the `attributes_document` of a dict of attributes.

        Raises : TypeError, if a name is not a string or a value is not JSON's.
        """
        return render_json(attributes)

    def parse_array(self, raw, path):
        """Return the `ArrayMetadata` of an array's document.

        Raises : as `parse_node`; NodeNotFoundError, if it is a group's.
        """
        return self._parsed(self.array_document, raw, path, ArrayMetadata, "an array")

    def parse_group(self, raw, path):
        """Return the `GroupMetadata` of a group's document.

        Raises : as `parse_node`; NodeNotFoundError, if it is an array's.
        """
        return self._parsed(self.group_document, raw, path, GroupMetadata, "a group")

    def _parsed(self, document, raw, path, cls, what):
        node = self.parse_node(document, raw, path)
        if type(node) is cls:
            return node
        found = "a group" if type(node) is GroupMetadata else "an array"
        raise NodeNotFoundError(f"{path or 'the root'} is {found}, not {what}", path=path, format=self.name)

    def describes(self, metadata):
        """Whether metadata are those of a node of this format."""
        return metadata.zarr_format == self.name

    def __repr__(self):
        return f"<format {self.title}>"
