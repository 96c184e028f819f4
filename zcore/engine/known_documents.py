"""Arrays of a group are often alike: their documents differ in shape and attributes alone. The rest is read once.

What a document says is kept by the text around the values of these two members. Another text that has the same around
other values says the same, with these values: as JSON has no context, a parser would be in the same state before and
behind each of them.
"""
from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from zcore.formats.json_documents import MAX_DEPTH
from zcore.text.strict_json import STRICT

if TYPE_CHECKING:
    from typing import Any

    from zcore.codecs.chain import CodecChain
    from zcore.model.metadata import ArrayMetadata

    Cut = tuple[tuple[str, ...], dict[str, Any]]
    Resolved = tuple[ArrayMetadata, CodecChain, tuple[str, str, str], tuple[str, ...]]

_MAX_KEPT = 64
_FREE = re.compile(r'"(shape|attributes)"\s*:\s*')
_MARK = "the value of this member"

# With the values of the document that was read, until they are judged; None instead of what is of no use.
_kept: dict[tuple[object, ...], tuple[Resolved | None, dict[str, Any] | None]] = {}


def cut(raw: bytes) -> Cut | None:
    """Return the texts around the values of the members that may differ, and the values; None if that is not clear."""
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH:
        return None     # too deep for a parser, perhaps
    texts, values, at = [], {}, 0
    try:
        text = raw.decode()
        while (found := _FREE.search(text, at)) is not None:
            start = found.end()
            texts.append(text[at:start])
            values[found[1]], at = STRICT.raw_decode(text, start)
    except ValueError:
        return None
    if "shape" not in values or len(texts) > len(values):
        return None
    return (*texts, text[at:]), values


def recall(parts: Cut, *reading: object) -> Resolved | None:
    """Return what was kept of a document that is alike, with the shape and the attributes of this one; else None.

    `reading` is how the document is read: whatever else its meaning depends on.
    """
    texts, values = parts
    known = _kept.get(key := (texts, *reading))
    if known is None:
        return None
    resolved, of_first = known
    if of_first is not None:
        # Most documents are not met again, so what was kept is judged only now.
        resolved = resolved if _are_its_own(texts, of_first, resolved[0]) else None
        _kept[key] = resolved, None
    shape, attributes = values["shape"], values.get("attributes")
    if resolved is not None and type(shape) is list and all([type(length) is int for length in shape]) and (
            type(attributes) is dict or "attributes" not in values):
        with suppress(ValueError):     # the parser says more
            return resolved[0].resized(shape, attributes), *resolved[1:]
    return None


def keep(resolved: Resolved, parts: Cut, *reading: object) -> None:
    """Keep what a document says for `recall`, if it has warned of nothing and no member depends on the shape."""
    metadata, _, _, notes = resolved
    # A dimension of no length may change the meaning of other members.
    if not notes and metadata.edges is None and 0 not in metadata.shape:
        if len(_kept) >= _MAX_KEPT:
            _kept.clear()
        texts, values = parts
        _kept[texts, *reading] = resolved, values


def _are_its_own(texts, values, metadata):
    """Return whether values that were cut out of a document are members of it, and not of an object in it."""
    marked = json.loads(json.dumps(_MARK).join(texts))
    return values.keys() == {name for name, value in marked.items() if value == _MARK} and (
        "attributes" not in values or values["attributes"] == metadata.attributes)
