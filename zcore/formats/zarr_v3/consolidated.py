"""Copies of the documents below a group, in the group's own document: one read instead of one for each node.

Zarr-python, "Consolidated metadata" (Zarr v3 core names the member as an example of a convention)::

    "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": {"a": {…}, "a/b": {…}}}

The keys are paths relative to the group. Groups in it have an empty member of that name; the nodes below them are in
the list of the outermost group, and their own lists are ignored. A node is parsed at its lookup, so a node that zcore
cannot read does not affect others.
"""
from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from zcore.errors import MetadataError
from zcore.formats.consolidated_nodes import ConsolidatedNodes
from zcore.formats.json_documents import Document
from zcore.model.node_names import V3 as names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from zcore.model.metadata import ArrayMetadata, GroupMetadata

_MEMBER = "consolidated_metadata"
_EMPTY = {"kind": "inline", "must_understand": False, "metadata": {}}


def check_kind(document: Document) -> None:
    """Raise MetadataError unless the member of a group's document is an object of the kind 'inline', null or absent."""
    value = document.members.get(_MEMBER)
    if value is None:
        return
    if type(value) is not dict or value.get("must_understand") is not False or value.get("kind") != "inline":
        raise document.unexpected(_MEMBER, "an object of the kind 'inline' that need not be understood")
    if type(value.get("metadata")) is not dict:
        raise document.unexpected(_MEMBER, "an object with a member 'metadata' that is an object")


def parse_consolidated(document: Document,
                       parse: Callable[[Document], ArrayMetadata | GroupMetadata]) -> ConsolidatedNodes | None:
    """Return the `ConsolidatedNodes` of a group's document, or None without them, or if they are of a wrong kind.

    Parameters
    ----------
    document : Document
    parse : callable
        Returns the metadata for the Document of a node.

    Warns
    -----
    UserWarning
        If its nodes are no hierarchy; then the member is ignored.
    """
    value = document.members.get(_MEMBER)
    if value is None or document.inside:  # a nested group: only the outermost one counts
        return None
    try:
        check_kind(document)
    except MetadataError:
        return None
    nodes = value["metadata"]
    for path, members in nodes.items():
        mistake = _mistake(path, members, nodes)
        if mistake is not None:
            document.warn(f"member {_MEMBER!r} is not used: {mistake}")
            return None
    return ConsolidatedNodes(nodes, partial(_node, document, nodes, parse), partial(_document, document, nodes))


def _node(document, nodes, parse, path):
    inner = Document.within(document, nodes[path], f"{_MEMBER}.metadata.{path}")
    if inner.has_constants:
        inner.refuse_constants(("attributes", "fill_value", _MEMBER))
    return parse(inner)


def _document(document, nodes, path):
    """Return the name and the bytes of the document of the node at `path`; its attributes are in there."""
    members = nodes[path]
    if _MEMBER in members:
        members = {name: value for name, value in members.items() if name != _MEMBER}
    return document.name, json.dumps(members).encode("utf-8", "replace"), None


def _mistake(path, members, nodes):
    """Return the mistake in a node of the list, or None."""
    if any([names.fault(part) for part in path.split("/")]):
        return f"{path!r:.60} is not the path of a node"
    if type(members) is not dict:
        return f"{path!r:.60} is no document"
    parent = path.rpartition("/")[0]
    if parent:
        above = nodes.get(parent)
        if type(above) is not dict or above.get("node_type") != "group":
            return f"{path!r:.60} has no group above it"
    return None


def render_consolidated(nodes: Mapping[str, ArrayMetadata | GroupMetadata],
                        members_of: Callable[[ArrayMetadata | GroupMetadata], dict[str, Any]]) -> dict[str, Any]:
    """Return the member `consolidated_metadata` of a mapping of paths to metadata.

    Parameters
    ----------
    nodes : Mapping
    members_of : callable
        Returns the members of a node's document.
    """
    known = isinstance(nodes, ConsolidatedNodes)
    documents = {}
    for path in sorted(nodes, key=_depth_and_name):
        members = dict(nodes.documents(path) if known else members_of(nodes[path]))
        if members.get("node_type") == "group":
            members[_MEMBER] = _EMPTY
        documents[path] = members
    return {**_EMPTY, "metadata": documents}


def _depth_and_name(path):
    """Return the sort key of zarr-python for nodes; the import is here, because few groups are consolidated."""
    import unicodedata

    return path.count("/"), unicodedata.normalize("NFKC", path).casefold(), path
