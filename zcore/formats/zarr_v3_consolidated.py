"""Copies of the documents below a group, in the group's own document: one read instead of one for each node.

Zarr-python, "Consolidated metadata" (Zarr v3 core names the member as an example of a convention)::

    "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": {"a": {…}, "a/b": {…}}}

The keys are paths relative to the group. Groups in it carry an empty member of that name; what lies below them stands
in the list of the outermost group, whatever their own says. A node is parsed when it is asked for, so that one that
zcore cannot read spoils no other.
"""
import warnings
from bisect import bisect_left
from collections.abc import Mapping

from zcore.formats.json_documents import Document
from zcore.model.metadata import GroupMetadata

_MEMBER = "consolidated_metadata"
_EMPTY = {"kind": "inline", "must_understand": False, "metadata": {}}


class Consolidated(Mapping):
    """The nodes below a group: `ArrayMetadata` and `GroupMetadata` by their path relative to it.

    A group in it holds in turn, as its `consolidated`, what lies below that group. Asking for a node raises
    MetadataError or UnsupportedError as opening it would.
    """

    __slots__ = ("_outer", "_parse", "_paths", "_start", "_stop", "_prefix")

    def __init__(self, outer, parse, paths, prefix=""):
        self._outer = outer
        self._parse = parse
        self._paths = paths  # all of them, sorted: what lies below a group is a range
        self._prefix = prefix
        self._start = bisect_left(paths, prefix)
        self._stop = bisect_left(paths, prefix[:-1] + "0") if prefix else len(paths)  # "0" comes right after "/"

    def __len__(self):
        return self._stop - self._start

    def __iter__(self):
        skipped = len(self._prefix)
        return (path[skipped:] for path in self._paths[self._start:self._stop])

    def __contains__(self, path):
        return type(path) is str and self._prefix + path in self._documents()

    def __getitem__(self, path):
        full = self._prefix + path
        members = self._documents()[full]
        document = Document.within(self._outer, members, f"{_MEMBER}.metadata.{full}")
        if document.has_constants:
            document.refuse_constants(("attributes", _MEMBER))
        node = self._parse(document)
        if type(node) is GroupMetadata:
            node = node.replace(consolidated=Consolidated(self._outer, self._parse, self._paths, full + "/"))
        return node

    def _documents(self):
        return self._outer.members[_MEMBER]["metadata"]

    def document(self, path):
        """Return the members of a node's document, unparsed."""
        return self._documents()[self._prefix + path]

    def __repr__(self):
        return f"Consolidated({list(self)!r:.200})"


def parse_consolidated(document, parse):
    """Return the `Consolidated` of a group's document, None if it has none.

    Parameters
    ----------
    document : Document
    parse : callable
        Makes metadata of the Document of a node.

    Raises
    ------
    MetadataError
        If it is no object of the one kind that there is.

    Warns
    -----
    UserWarning
        If its nodes make no hierarchy; then it counts as absent.
    """
    value = document.members.get(_MEMBER)
    if value is None or document.inside:  # of a nested group: all that counts stands in the outermost one
        return None
    if type(value) is not dict or value.get("must_understand") is not False or value.get("kind") != "inline":
        raise document.unexpected(_MEMBER, "an object of the kind 'inline' that need not be understood")
    nodes = value.get("metadata")
    if type(nodes) is not dict:
        raise document.unexpected(_MEMBER, "an object with a member 'metadata' that is an object")
    for path, members in nodes.items():
        mistake = _mistake(path, members, nodes)
        if mistake is not None:
            warnings.warn(f"{document.where()}: member {_MEMBER!r} is not used: {mistake}", stacklevel=2)
            return None
    return Consolidated(document, parse, sorted(nodes))


def _mistake(path, members, nodes):
    """Return what makes a node of a list impossible, or None."""
    if any([not part.strip(".") or part.startswith("__") for part in path.split("/")]):
        return f"{path!r:.60} is not the path of a node"
    if type(members) is not dict:
        return f"{path!r:.60} is no document"
    parent = path.rpartition("/")[0]
    if parent:
        above = nodes.get(parent)
        if type(above) is not dict or above.get("node_type") != "group":
            return f"{path!r:.60} has no group above it"
    return None


def render_consolidated(nodes, members_of):
    """Return the member `consolidated_metadata` of a mapping of paths to metadata.

    Parameters
    ----------
    nodes : Mapping
    members_of : callable
        Returns the members of the document of one node.
    """
    known = isinstance(nodes, Consolidated)
    documents = {}
    for path in sorted(nodes, key=_depth_and_name):
        members = dict(nodes.document(path) if known else members_of(nodes[path]))
        if members.get("node_type") == "group":
            members[_MEMBER] = _EMPTY
        documents[path] = members
    return {**_EMPTY, "metadata": documents}


def _depth_and_name(path):
    """Return what zarr-python sorts nodes by; imported here, as few groups are consolidated."""
    import unicodedata

    return path.count("/"), unicodedata.normalize("NFKC", path).casefold(), path
