"""Documents of a group are often alike: they differ in shape, chunk shape and attributes. The rest is read once.

What a document says is kept by the text around the values of these members. Another text that has the same around
other values says the same, with these values: as JSON has no context, a parser would be in the same state before and
behind each of them.
"""
from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from zcore.codecs.chain import CodecChain
    from zcore.model.metadata import ArrayMetadata

    Cut = tuple[tuple[bytes, ...], dict[str, Any]]     # see `zcore.kernel.io.documents.cut`
    Resolved = tuple[ArrayMetadata, CodecChain, tuple[str, str, str], tuple[str, ...]]

_MAX_KEPT = 64
_MAX_NBYTES = 2**30     # of a chunk that no format refuses for its size
_CHUNKS = ("chunk_shape", "chunks")     # in Zarr v3; in v2
_MARK = "the value of this member"

# With the values of the document that was read, until they are judged; None instead of what is of no use.
_kept: dict[tuple[object, ...], tuple[Resolved | None, dict[str, Any] | None]] = {}


def recall(parts: Cut, *reading: object) -> Resolved | None:
    """Return what a kept document says, with the values of this one; None if no kept document has the same text around.

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
    if resolved is None:
        return None
    metadata, chain, *rest = resolved
    shape, chunk_shape = values["shape"], metadata.chunk_shape
    for name in _CHUNKS:
        chunk_shape = values.get(name, chunk_shape)
    if len(shape) != len(metadata.shape):
        return None
    try:
        metadata = metadata.resized(shape, values.get("attributes"), chunk_shape)
        chain = None if metadata.chunk_nbytes > _MAX_NBYTES else chain.for_chunks(chunk_shape, is_listed=True)
    except ValueError:
        return None     # the parser says more
    return None if chain is None else (metadata, chain, *rest)


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
    """Return whether values that were cut out of a document are members of it, and not of another object in it."""
    marked = json.loads(json.dumps(_MARK).encode().join(texts))
    own = {name for name, value in marked.items() if value == _MARK and name not in metadata.extra}
    with suppress(KeyError, TypeError):     # another spelling of the grid
        if marked["chunk_grid"]["configuration"]["chunk_shape"] == _MARK and "chunk_grid" not in metadata.extra:
            own.add("chunk_shape")
    return values.keys() == own and (
        "attributes" not in values or values["attributes"] == metadata.attributes) and all(
        [values[name] == metadata.chunk_shape for name in _CHUNKS if name in values])
