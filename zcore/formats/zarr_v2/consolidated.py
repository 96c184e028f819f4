"""Copies of all documents below a Zarr v2 group in one: ``.zmetadata`` (zarr-python's practice, not in the text).

::

    {"zarr_consolidated_format": 1, "metadata": {".zgroup": {…}, ".zattrs": {…}, "a/.zarray": {…}, "a/.zattrs": {…}}}

The copies may be older than the documents. Reference sets in Parquet have the same member without the format's number,
but with `record_size`. Some old writers store each document as a string.
"""
from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from zcore.formats.consolidated_nodes import ConsolidatedNodes
from zcore.formats.json_documents import Document
from zcore.model.metadata import ArrayMetadata, GroupMetadata

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

FORMAT = 1
GROUP_MEMBERS = {"zarr_format": 2}  # all members of a `.zgroup` document
_ARRAY, _GROUP, _ATTRIBUTES = ".zarray", ".zgroup", ".zattrs"


def parse(document: Document, parse_array: Callable[[Document, dict[str, Any]], ArrayMetadata],
          parse_group: Callable[[Document, dict[str, Any]], GroupMetadata]) -> GroupMetadata:
    """Return the `GroupMetadata` of a `.zmetadata` document.

    Parameters
    ----------
    document : Document
    parse_array, parse_group : callable
        Return the metadata for a Document and a dict of attributes.

    Raises
    ------
    MetadataError
        If it has another format, an invalid key, or no copy of the group's document.
    """
    if "record_size" not in document.members or "zarr_consolidated_format" in document.members:
        document.integer("zarr_consolidated_format", FORMAT, FORMAT)
    copies = document.required("metadata")
    if type(copies) is not dict:
        raise document.unexpected("metadata", "an object")
    documents = {}
    for key, members in copies.items():
        path, _, name = key.rpartition("/")
        if name not in (_ARRAY, _GROUP, _ATTRIBUTES):
            continue
        if path and any([not part.strip(".") for part in path.split("/")]):
            raise document.error("metadata", f"{key!r:.60} is not the key of a document")
        documents.setdefault(path, {})[name] = members
    documents = {path: found for path, found in documents.items() if _ARRAY in found or _GROUP in found}

    if _GROUP not in documents.get("", {}):
        raise document.error("metadata", "expected the document '.zgroup' of the group itself, found none")
    if _ARRAY in documents[""]:
        raise document.error("metadata", "expected a group, found the document '.zarray' of the group itself as well")
    node = partial(_node, document, documents, parse_array, parse_group)
    return node("").replace(consolidated=ConsolidatedNodes(documents, node, partial(_document, document, documents)))


def _node(document, documents, parse_array, parse_group, path):
    """Return the metadata of the node at `path`."""
    found = documents[path]
    attributes = _attributes(document, path, found)
    if _ARRAY not in found:
        return parse_group(_inner(document, path, found, _GROUP), attributes)
    if _GROUP in found:
        document.warn(f"{path!r:.60} is an array and a group; the array counts")
    return parse_array(_inner(document, path, found, _ARRAY), attributes)


def _document(document, documents, path):
    """Return the name and the bytes of the document of the node at `path`, and its attributes."""
    found = documents[path]
    name = _ARRAY if _ARRAY in found else _GROUP
    members = found[name]
    if name == _GROUP and type(members) is dict:
        # zarr-python 3 gives groups in the copy a member of its own.
        members = {key: value for key, value in members.items() if key != "consolidated_metadata"}
    raw = members if type(members) is str else json.dumps(members)
    return name, raw.encode("utf-8", "replace"), _attributes(document, path, found)


def _attributes(document, path, found):
    return {} if found.get(_ATTRIBUTES) is None else dict(_inner(document, path, found, _ATTRIBUTES).members)


def _inner(outer, path, found, name):
    """Return a document within the consolidated one."""
    members = found[name]
    inside = f"metadata.{path}/{name}" if path else f"metadata.{name}"
    if type(members) is str:
        members = Document(members.encode("utf-8", "replace"), outer.path, f"{outer.name} {inside}", True).members
    elif type(members) is not dict:
        raise outer.error(inside, "expected an object, found another value")
    return Document.within(outer, members, inside)


def members_of(metadata: GroupMetadata, array_members: Callable[[ArrayMetadata], dict[str, Any]]) -> dict[str, Any]:
    """Return the members of the `.zmetadata` document of a group.

    Parameters
    ----------
    metadata : GroupMetadata
    array_members : callable
        Returns the members of an array's own document.
    """
    copies = {}
    nodes = metadata.consolidated or {}
    _put(copies, "", metadata, array_members)
    for path in nodes:
        if isinstance(nodes, ConsolidatedNodes):
            copies |= {f"{path}/{name}": members for name, members in nodes.documents(path).items()}
        else:
            _put(copies, path + "/", nodes[path], array_members)
    return {"zarr_consolidated_format": FORMAT, "metadata": copies}


def _put(copies, prefix, node, array_members):
    if type(node) is ArrayMetadata:
        copies[prefix + _ARRAY] = array_members(node)
    else:
        copies[prefix + _GROUP] = GROUP_MEMBERS
    if node.attributes:
        copies[prefix + _ATTRIBUTES] = node.attributes
