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

_kept: dict[tuple[object, ...], Resolved] = {}


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
    known = _kept.get((texts, *reading))
    if known is not None:
        shape, attributes = values["shape"], values.get("attributes")
        if type(shape) is list and all([type(length) is int for length in shape]) and (
                type(attributes) is dict or "attributes" not in values):
            with suppress(ValueError):     # the parser says more
                return known[0].resized(shape, attributes), *known[1:]
    return None


def keep(resolved: Resolved, parts: Cut, *reading: object) -> None:
    """Keep what a document says for `recall`, if it has warned of nothing and no member depends on the shape."""
    metadata, _, _, notes = resolved
    # A dimension of no length may change the meaning of other members.
    if notes or metadata.edges is not None or 0 in metadata.shape:
        return
    texts, values = parts
    marked = json.loads(json.dumps(_MARK).join(texts))
    # That is, they are members of the document, and not of an object in it.
    if values.keys() == {name for name, value in marked.items() if value == _MARK} and (
            "attributes" not in values or values["attributes"] == metadata.attributes):
        if len(_kept) >= _MAX_KEPT:
            _kept.clear()
        _kept[texts, *reading] = resolved
