"""An ASDF tree as a hierarchy: its arrays, groups and attributes.

Arrays are nodes, and so are the mappings and lists that lead to one. All other members of a mapping or list are its
attributes. A tree may hold one value several times, and contain itself. The first occurrence of a mapping or list is a
group; all others are attributes with a reference to it.
"""
from __future__ import annotations

import re
from base64 import b64encode
from datetime import date
from typing import TYPE_CHECKING

from zcore.asdf.tree.ndarray import NDArrayNode
from zcore.asdf.tree.origin import Reference
from zcore.asdf.tree.scalars import MAX_DIGITS, complex_text
from zcore.asdf.tree.tagged import IntegerNode, TaggedMapping
from zcore.errors import AsdfFormatError, ZcoreError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeAlias

    Node: TypeAlias = "TreeGroup | ChunkedNode | NDArrayNode"

MAX_VALUES = 1 << 20  # of the attributes of a node: shared values may be many more than the text has
MAX_DEPTH = 100
_MAX_BITS = MAX_DIGITS * 3  # MAX_DIGITS decimal digits have more bits

_ZARR_TAG = "asdf://asdf-format.org/zarr/tags/zarr-"
_escaped = re.compile(r"[/\\%\x00-\x1f]").sub
_unescaped = re.compile(r"%([0-9A-F]{2})").sub


class TreeGroup:
    """A mapping or list that leads to arrays.

    Attributes
    ----------
    members : dict of str
        Its nodes by their names: `TreeGroup`, `NDArrayNode` or `ChunkedNode`.
    attributes : dict of str
        All other members, as they are in the tree.
    path : str
    """

    __slots__ = ("members", "attributes", "path")

    def __init__(self, path: str) -> None:
        self.members: dict[str, Node] = {}
        self.attributes: dict[str, Any] = {}
        self.path: str = path


class ChunkedNode:
    """An array in chunks: the document ``.zarray`` of Zarr v2, and a block with the block number of each chunk."""

    __slots__ = ("document", "map", "attributes")

    def __init__(self, members: Mapping[str, Any]) -> None:
        self.document: Any = members[".zarray"]
        self.map: Any = members["chunk_block_map"]
        self.attributes: dict[str, Any] = {
            name: value for name, value in members.items() if name not in (".zarray", "chunk_block_map")}


def root_of(tree: object) -> Node:
    """Return the root of a tree's hierarchy: a `TreeGroup`, or an array if the tree is one."""
    if (node := _node_of(tree)) is not None:
        return node
    leading = _leading(tree)
    root = TreeGroup("")
    groups = {id(tree): root}
    pending = [(tree, root)]
    while pending:
        container, group = pending.pop()
        for key, value in _items(container):
            label = str(key).lower() if isinstance(key, bool) else str(key)
            value = _followed(value)
            node = _node_of(value)
            # An attribute may have any name.
            name = _free(label if node is None and id(value) not in leading else name_of(label), group)
            if node is None and id(value) in leading:
                if id(value) in groups:
                    group.attributes[name] = {"$ref": f"#/{groups[id(value)].path}".rstrip("/")}
                    continue
                node = groups[id(value)] = TreeGroup(f"{group.path}/{name}".lstrip("/"))
                pending.append((value, node))
            if node is None:
                group.attributes[name] = value
            else:
                group.members[name] = node
                _add_mask(node, name, group)
    return root


def _node_of(value):
    """Return the array node for a value of the tree, or None if it is no array."""
    if type(value) is NDArrayNode:
        return value
    if type(value) is TaggedMapping and str(value.tag).startswith(_ZARR_TAG) and (
            ".zarray" in value and "chunk_block_map" in value):
        return ChunkedNode(value)
    return None


def _add_mask(node, name, group):
    """Add the mask of an array as an array beside it, unless its name is taken."""
    try:
        mask = node.mask if isinstance(node, NDArrayNode) else None
    except ZcoreError:
        return
    if isinstance(mask, NDArrayNode):
        group.members.setdefault(f"{name}.mask", mask)


def _leading(tree):
    """Return the ids of all mappings and lists that lead to an array."""
    above, to_arrays, seen = {}, [], {id(tree)}
    pending = [tree]
    while pending:
        container = pending.pop()
        for _, value in _items(container):
            value = _followed(value)
            if _node_of(value) is not None:
                to_arrays.append(id(container))
            elif _is_container(value):
                above.setdefault(id(value), []).append(id(container))
                if id(value) not in seen:
                    seen.add(id(value))
                    pending.append(value)
    leading = set()
    pending = to_arrays
    while pending:
        container = pending.pop()
        if container not in leading:
            leading.add(container)
            pending += above.get(container, ())
    return leading


def _followed(value):
    """Resolve a reference within the file. A reference to another file, or an invalid one, stays as it is."""
    if type(value) is Reference and value["$ref"].startswith("#"):
        try:
            return value.resolve()
        except ZcoreError:
            return value
    return value


def _is_container(value):
    return isinstance(value, (dict, list)) and not isinstance(value, (IntegerNode, Reference))


def _items(container):
    if not _is_container(container):
        return ()
    return container.items() if isinstance(container, dict) else enumerate(container)


def name_of(key: str) -> str:
    """Return the name of the node for a key, with characters escaped that no name of a node may have.

    >>> name_of("a/b"), name_of(".z"), key_of("a%2Fb"), key_of("%2Ez")
    ('a%2Fb', '%2Ez', 'a/b', '.z')
    """
    name = _escaped(lambda found: f"%{ord(found[0]):02X}", key) or "%"
    return "%2E" + name[1:] if name[0] == "." else name


def key_of(name: str) -> str:
    """Return the key for the name of a node; see `name_of`."""
    return "" if name == "%" else _unescaped(lambda found: chr(int(found[1], 16)), name)


def _free(name, group):
    """Return a name that is not used in a group."""
    while name in group.members or name in group.attributes:
        name += "%"
    return name


def attributes_of(node: Node) -> dict[str, Any]:
    """Return the attributes of a node as JSON values.

    Raises : AsdfFormatError, if they have more than `MAX_VALUES` values, or are deeper than `MAX_DEPTH`.
    """
    if isinstance(node, NDArrayNode):
        found = {str(name): value for name, value in node.members.items() if name not in _OWN}
        mask = node.members.get("mask")
        if mask is not None and not isinstance(mask, NDArrayNode | Reference):
            found["mask"] = mask
    else:
        found = node.attributes
    return plain_of(found)


def plain_of(value: object) -> Any:
    """Return a value of the tree as a JSON value; an array becomes a text.

    Raises : AsdfFormatError, if it has more than `MAX_VALUES` values, or is deeper than `MAX_DEPTH`.
    """
    return _plain(value, [MAX_VALUES], 0)


_OWN = frozenset(("source", "data", "datatype", "byteorder", "shape", "offset", "strides", "mask"))


def _plain(value, left, depth):
    left[0] -= 1
    if left[0] < 0 or depth > MAX_DEPTH:
        raise AsdfFormatError(f"attributes of more than {MAX_VALUES} values or {MAX_DEPTH} levels")
    if isinstance(value, IntegerNode):
        number = int(value)
        # JSON has decimal digits, and Python limits their number.
        return number if number.bit_length() <= _MAX_BITS else hex(number)
    if isinstance(value, dict):
        return {str(name): _plain(member, left, depth + 1) for name, member in value.items()}
    if isinstance(value, list):
        return [_plain(item, left, depth + 1) for item in value]
    if isinstance(value, str):
        return str(value)
    if isinstance(value, complex):
        return complex_text(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return "an array" if isinstance(value, NDArrayNode) else value
