"""A `View` is a handle's knowledge of its node at one moment.

It is read from the metadata document once and never changes. Threads that share a handle take the view once per call,
so they never mix two. A view contains everything that depends only on the document: the codec chain and the pattern of
the chunk keys.
"""
from __future__ import annotations

from functools import lru_cache
from operator import attrgetter, is_
from time import time_ns
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zcore.codecs.chain import CodecChain
from zcore.engine import known_documents
from zcore.errors import ArrayMismatchError, ZcoreError, noted
from zcore.formats.json_documents import MAX_DEPTH, MAX_NBYTES, is_flat
from zcore.kernel.io.documents import cut
from zcore.model.metadata import ArrayMetadata, has_varying_items
from zcore.model.value import IdentityKey, text_of
from zcore.stores.base import AtMost
from zcore.stores.keys import prefix_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeGuard, TypeVar

    import numpy.typing as npt

    from zcore.engine.options import Options
    from zcore.formats.base import Format
    from zcore.model.metadata import GroupMetadata
    from zcore.stores.base import Identity, Store

# A document that was younger when it was read may be replaced by one with the same inode, size and times.
TRUSTED_AGE_NS = 2_000_000_000
MAX_KEPT_NBYTES = 1 << 16    # of a document whose metadata are kept when no handle has them any more
_SPACE = b" \t\n"            # behind documents at services (`zcore.engine.stamps`), each another one

# The ticket of a view that another process, or a copy, has read. This process has not read the document yet.
UNSEEN = -1

# Fields that do not depend on the array's shape.
_unshaped = attrgetter(*[name for name in ArrayMetadata._fields if name not in ("shape", "chunk_shape")])


class View(NamedTuple):
    """What a document says, and when it was read.

    `raw` is the document, `identity` that of its object; `trusted`: no other document can have the same identity;
    `ticket` orders the views in time. A group has neither chain nor template. `notes` are the warnings about the
    document, a tuple for `warn_of`. `attributes` come from consolidated metadata, if the format has a document for
    them.
    """

    metadata: ArrayMetadata | GroupMetadata
    chain: CodecChain | None
    template: tuple[str, str, str] | None
    notes: tuple[str, ...]
    raw: bytes
    identity: Identity | None
    trusted: bool
    ticket: int
    attributes: Mapping[str, Any] | None = None


if TYPE_CHECKING:
    class ArrayView(View):
        """The view of an array."""

        metadata: ArrayMetadata
        chain: CodecChain
        template: tuple[str, str, str]

    _View = TypeVar("_View", bound=View)


def view_of(format: Format, document: str, raw: bytes, identity: Identity | None, path: str, options: Options,
            ticket: int, now: int | None = None, attributes: Callable[[], Mapping[str, Any]] = dict) -> View:
    """Return the view of the document `raw` of the node at `path`, read from the object `identity`.

    `document` is the name of the document, `options` are those of the handle. `now`: `time_ns` when it was read, if
    that was not just now. `attributes` returns the node's attributes, where the document's meaning depends on them.
    With the ticket `UNSEEN`, another process has read the document. It may come from consolidated metadata; then its
    identity is None.

    Raises
    ------
    MetadataError, UnsupportedError
        The document is damaged, or needs what zcore does not have.
    ArrayMismatchError
        The document contradicts the options.
    """
    trusted = ticket != UNSEEN and (identity is None or is_trusted(identity, now))
    return View(*_resolved(format, document, raw, path, options, attributes), raw, identity, trusted, ticket)


def view_of_new(format: Format, document: str, raw: bytes, metadata: ArrayMetadata | GroupMetadata, path: str,
                options: Options) -> View:
    """Return the view of the document `raw` that was rendered from the `metadata` of a new node; see `view_of`.

    The document is parsed, unless one was parsed before that differs in nothing but lengths, names of dimensions and
    plain attributes.
    """
    known = None
    if (type(metadata) is ArrayMetadata and not metadata.extra and metadata.edges is None and 0 not in metadata.shape
            and metadata.data_type is None and not has_varying_items(metadata.dtype)
            and (not metadata.attributes or is_flat(metadata.attributes))):
        known = _forms(format, metadata.dtype, len(metadata.shape), metadata.fill_value is None, metadata.fill_bytes,
                       IdentityKey(metadata.chunk_keys), IdentityKey(metadata.codecs), options.strict)
        try:
            if known and (chain := known[0].for_chunks(metadata.chunk_shape)) is not None:
                known[0] = chain     # the next array may have chunks of the same shape
                return View(metadata, chain, known[1], (), raw, None, True, 0)
        except ValueError:
            pass     # the parser says more
    view = view_of(format, document, raw, None, path, options, 0)
    if known is not None and not view.notes and view.metadata == metadata:
        known[:] = view.chain, view.template
    return view


@lru_cache(maxsize=64)
def _forms(*form):
    """Return a list for the chain and the template of arrays of one form, if one of their documents was read."""
    return []


def stored_attributes(format: Format, store: Store, path: str) -> dict[str, Any]:
    """Return the attributes of a node whose format has a document for them; see `view_of`."""
    raw = store.get(prefix_of(path) + format.attributes_document, AtMost(MAX_NBYTES + 1))
    return format.parse_attributes(raw, path)


def unseen(view: _View) -> _View:
    """Return a view marked as not read by this process: until it is, another document may be in its place."""
    return view._replace(trusted=False, ticket=UNSEEN)


def renewed(view: _View, raw: bytes, identity: Identity | None, ticket: int,
            metadata: ArrayMetadata | None = None) -> _View:
    """Return the view of another moment, with the chain and all else that `view` has resolved already.

    The document is the same, or has `metadata` that differ from the view's only in the shape; see `is_reshaped`.
    """
    return view._replace(metadata=view.metadata if metadata is None else metadata, raw=raw, identity=identity,
                         trusted=identity is None or is_trusted(identity), ticket=ticket, attributes=None)


def is_reshaped(metadata: object, known: object) -> TypeGuard[ArrayMetadata]:
    """Return whether metadata differ from the known metadata of an array only in the shape."""
    return (type(metadata) is ArrayMetadata and type(known) is ArrayMetadata and metadata.edges is None
            and metadata.chunk_shape == known.chunk_shape
            and all(map(is_, _unshaped(metadata), _unshaped(known))))


def is_trusted(identity: Identity, now: int | None = None) -> bool:
    """Return whether no other object can get this identity, which was taken `now`, a `time_ns`; by default just now."""
    return (time_ns() if now is None else now) - max(identity[3], identity[4]) > TRUSTED_AGE_NS


def metadata_of(format: Format, document: str, raw: bytes, path: str) -> ArrayMetadata | GroupMetadata:
    """Return the metadata of the document `raw`, without the warnings about it. They are shared: do not change them."""
    try:
        return _parsed(format, document, raw.rstrip(_SPACE))[0]
    except ZcoreError:
        # Parsed again, for a message that names the path.
        with noted():
            return format.parse_node(document, raw, path)


def _parsed(format, document, raw):
    return (_parse if len(raw) <= MAX_KEPT_NBYTES else _parse.__wrapped__)(format, document, raw)


def _resolved(format, document, raw, path, options, attributes):
    stripped = raw.rstrip(_SPACE)
    try:
        resolved = (_resolve if len(stripped) <= MAX_KEPT_NBYTES else _read)(
            format, document, stripped, options.strict)
        metadata = resolved[0]
        if type(metadata) is not ArrayMetadata:
            return resolved
        meant = format.with_attributes(metadata, attributes)
        if meant is not metadata:
            metadata, resolved = meant, _with_chain(format, meant, resolved[3], options.strict)
    except ZcoreError as error:
        metadata_of(format, document, raw, path)     # it raises the error of a parser
        # The codecs do not know where they are named.
        error.message = f"{document}: {error.message}"
        raise
    if options.dimension_separator is None:
        return resolved
    metadata = _separated(format, metadata, options.dimension_separator, path)
    return metadata, resolved[1], metadata.chunk_keys.template(len(metadata.shape)), resolved[3]


def _separated(format, metadata, separator, path):
    """Return the metadata of an array with the caller's separator of chunk keys."""
    if not format.has_dimension_separator:
        raise ArrayMismatchError("the array is not of Zarr v2, and only Zarr v2 takes a dimension_separator",
                                 path=path, asked={"zarr_format": 2}, found={"zarr_format": format.name})
    separated = format.with_separator(metadata, separator)
    found = separated.chunk_keys.separator
    if found != separator:
        raise ArrayMismatchError(f"dimension_separator {separator!r} was asked for, the document says {found!r}",
                                 path=path, asked={"dimension_separator": separator},
                                 found={"dimension_separator": found})
    return separated


@lru_cache(maxsize=64)
def _parse(format, document, raw):
    """Return the metadata in a document, and the warnings about it."""
    with noted() as notes:
        return format.parse_node(document, raw, ""), tuple(notes)


@lru_cache(maxsize=64)
def _resolve(format, document, raw, strict):
    """Return (metadata, codec chain, key template, notes) of a document, which depend on nothing else.

    All are immutable and shared by the handles of equal documents. So a task scheduler can open an array for every
    task, and listing a group of equal arrays is fast.
    """
    parts = cut(raw, MAX_DEPTH)
    resolved = None if parts is None else known_documents.recall(parts, format, document, strict)
    if resolved is None:
        resolved = _read(format, document, raw, strict)
        if parts is not None and type(resolved[0]) is ArrayMetadata:
            known_documents.keep(resolved, parts, format, document, strict)
    return resolved


def _read(format, document, raw, strict):
    metadata, notes = _parsed(format, document, raw)
    if type(metadata) is not ArrayMetadata:
        return metadata, None, None, notes
    return _with_chain(format, metadata, notes, strict)


def _with_chain(format, metadata, notes, strict):
    with noted() as of_codecs:
        metadata = format.completed(metadata, strict)
        # If the document names the item size of blosc chunks, other sizes are allowed. Otherwise they are an error.
        chain = CodecChain(metadata.codecs, metadata.dtype, metadata.chunk_shape,
                           strict and format.implies_typesize, fill_of(metadata))
    if metadata.edges is not None:
        chain.check_edges(metadata.edges)
    return metadata, chain, metadata.chunk_keys.template(len(metadata.shape)), (*notes, *of_codecs)


def fill_of(metadata: ArrayMetadata) -> npt.NDArray[Any]:
    """Return the fill value as an array of one element."""
    if metadata.fill_bytes:
        return np.frombuffer(metadata.fill_bytes, metadata.dtype)
    fill = np.empty(1, metadata.dtype)
    fill[0] = metadata.item_of_fill
    return fill


def form_of(view: ArrayView, strict: bool) -> int:
    """Return a number for the encoding of chunks. Arrays with the same number decode an object to the same elements."""
    return _form(view.metadata.codecs, view.metadata.dtype, strict)


@lru_cache(maxsize=64)
def _form(codecs, dtype, strict):
    # The hash of a string has a random key, so a hostile document cannot cause collisions.
    return hash(text_of((codecs, dtype, strict)))


def same_chunks(a: ArrayMetadata, b: ArrayMetadata) -> bool:
    """Return whether two metadata describe the same stored objects, within both shapes."""
    return a.codecs == b.codecs and _same_cut(a, b)


def same_objects(a: ArrayView, b: ArrayView) -> bool:
    """Return whether two views describe the same stored objects, within both shapes.

    A program that changes an attribute may write down what the document of another program left to the codecs.
    """
    return _same_cut(a.metadata, b.metadata) and (
        a.metadata.codecs == b.metadata.codecs or _resolved_codecs(a.chain) == _resolved_codecs(b.chain))


def _same_cut(a, b):
    return (a.same_grid(b) and a.dtype == b.dtype and a.chunk_keys == b.chunk_keys and a.fill_bytes == b.fill_bytes)


def _resolved_codecs(chain):
    shards = chain.shards
    codecs = chain.swap, [repr(codec) for codec in chain.codecs if shards is None or codec.kind != "array_bytes"]
    return codecs if shards is None else (codecs, shards.chunk_shape, shards.at_start, _resolved_codecs(shards.chain),
                                          _resolved_codecs(shards.index_chain))
