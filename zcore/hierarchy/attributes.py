"""Reads and changes the attributes of a node, wherever its format has them."""
from __future__ import annotations

from typing import TYPE_CHECKING

from zcore.engine.node_binding import until_won
from zcore.engine.requests import swap
from zcore.errors import ZcoreError, noted
from zcore.formats.json_documents import MAX_NBYTES, check_attributes
from zcore.hierarchy import consolidated
from zcore.stores.base import AtMost

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from zcore.engine.node_binding import NodeBinding
    from zcore.engine.views import View


def change_attributes(binding: NodeBinding, change: Callable[[dict[str, Any]], Any]) -> Any:
    """Call ``change(attributes)`` with a dict, store the changed dict in one write, and return the result of `change`.

    Two writers that change attributes at the same time both succeed.
    """
    format, store = binding.format, binding.store
    result = None

    def changed(attributes):
        nonlocal result
        old = dict(attributes)
        result = change(attributes)
        check_attributes(attributes, old, not format.strict_attributes)
        return attributes

    def once():
        with (consolidated.dropped(store, binding.path, itself=True, format=binding.format),
              binding.exclusive() as exclusive):
            if store.swaps and binding.options.lock and not format.has_inline_attributes:
                swap(store, binding.prefix + format.attributes_document, (0, MAX_NBYTES + 1),
                     lambda raw, identity: format.render_attributes(
                         changed(format.parse_attributes(raw, binding.path))), is_document=True)
                return
            attributes = changed(read_attributes(binding))
            if format.has_inline_attributes:
                exclusive.replace_metadata(exclusive.metadata.replace(attributes=attributes))
            else:
                exclusive.check_place()     # they were read by the path
                exclusive.set_beside(format.attributes_document, format.render_attributes(attributes))

    until_won(once)
    return result


def read_attributes(binding: NodeBinding, view: View | None = None) -> dict[str, Any]:
    """Return the stored attributes, a new dict; those of a `view`, if the document has them and it is given.

    Raises : NodeNotFoundError, if the node was deleted.
    """
    format = binding.format
    if format.has_inline_attributes:
        # Parsed anew, since handles share the metadata and the caller may change the dict. The handle has warned once.
        raw = (view or binding.look()).raw
        with noted():
            return format.parse_node(binding.document_name, raw, binding.path).attributes
    try:
        raw = binding.store.get(binding.prefix + format.attributes_document, AtMost(MAX_NBYTES + 1))
        # In this order: when a node is deleted, the document is erased first.
        if not binding.store.exists(binding.document):
            raise binding.not_found(f"{binding.document} does not exist")
        return format.parse_attributes(raw, binding.path)
    except ZcoreError as error:
        error.locate(binding.describe())
        raise
