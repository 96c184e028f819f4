"""What a handle knows of its node, all of one moment.

A `View` is read from the metadata document once and never changes; threads that share a handle take it once a call and
never mix two. What depends on the document alone is resolved here: the codec chain and the pattern of the chunk keys.
"""
from collections import namedtuple
from functools import lru_cache
from time import time_ns

import numpy as np

from zcore.codecs.chain import CodecChain
from zcore.errors import ArrayMismatchError, ZcoreError, noted
from zcore.model.metadata import ArrayMetadata
from zcore.model.value import text_of

# A document younger than this when it was read may be replaced by one of the same inode, size and times.
TRUSTED_AGE_NS = 2_000_000_000

# The ticket of a view that was made somewhere else, of which nobody here has seen the document.
UNSEEN = -1

# What has nothing to do with an array's shape.
_UNSHAPED = tuple([name for name in ArrayMetadata._fields if name not in ("shape", "chunk_shape")])

# `raw` is the document, `identity` that of its object; `trusted`: no other document can have the same identity;
# `ticket` orders the moments. A group has neither chain nor template. `notes` are what is worth a warning in the
# document, for `warn_of`: a tuple.
View = namedtuple("View", ("metadata", "chain", "template", "notes", "raw", "identity", "trusted", "ticket"))


def view_of(format, document, raw, identity, path, options, ticket):
    """Return the view of the document `raw` of the node at `path`, the content of the object `identity`, just read.

    `document` is the name of the document, `options` are those of the handle.

    Raises
    ------
    MetadataError, UnsupportedError
        The document is damaged, or needs what zcore does not have.
    ArrayMismatchError
        It contradicts what the options say of it.
    """
    trusted = identity is None or is_trusted(identity)
    return View(*_resolved(format, document, raw, path, options), raw, identity, trusted, ticket)


def view_from_elsewhere(format, document, raw, identity, path, options):
    """Return the view of a document that another process has read, without asking a store; see `view_of`.

    It is not trusted: until it is read here, too, another document may stand there.
    """
    return view_of(format, document, raw, identity, path, options, UNSEEN)._replace(trusted=False)


def renewed(view, raw, identity, ticket, metadata=None):
    """Return a view for another moment, with what `view` has resolved already.

    Of the same document, or of one that says `metadata`: those of the view but for the shape, see `is_reshaped`.
    """
    return view._replace(metadata=view.metadata if metadata is None else metadata, raw=raw, identity=identity,
                         trusted=identity is None or is_trusted(identity), ticket=ticket)


def is_reshaped(metadata, known):
    """Return whether metadata were made of the known ones of an array by a change of the shape, and of nothing else."""
    return (type(metadata) is ArrayMetadata and type(known) is ArrayMetadata and metadata.edges is None
            and metadata.chunk_shape == known.chunk_shape
            and all([getattr(metadata, name) is getattr(known, name) for name in _UNSHAPED]))


def is_trusted(identity):
    """Whether nothing else can have the identity of an object that was asked for just now."""
    return time_ns() - max(identity[3], identity[4]) > TRUSTED_AGE_NS


def metadata_of(format, document, raw, path):
    """Return what the document `raw` of the node at `path` says; see `view_of`. It is not the caller's to change."""
    return _parsed(format, document, raw, path)[0]


def _parsed(format, document, raw, path):
    try:
        return _parse(format, document, raw)
    except ZcoreError:
        # Again, for a message that names the path.
        with noted() as notes:
            return format.parse_node(document, raw, path), tuple(notes)


def _resolved(format, document, raw, path, options):
    metadata, notes = _parsed(format, document, raw, path)
    if type(metadata) is not ArrayMetadata:
        return metadata, None, None, notes
    resolved = _resolve(format, document, raw, options.strict)
    if options.dimension_separator is None:
        return resolved
    metadata = _separated(format, metadata, options.dimension_separator, path)
    return metadata, resolved[1], metadata.chunk_keys.template(len(metadata.shape)), resolved[3]


def _separated(format, metadata, separator, path):
    """Return the metadata of an array whose caller says the separator of its chunk keys."""
    if not format.has_dimension_separator:
        raise ArrayMismatchError("the array is not of Zarr v2: its document names its chunks, and takes no "
                                 "dimension_separator", path=path, asked={"zarr_format": 2},
                                 found={"zarr_format": format.name})
    separated = format.with_separator(metadata, separator)
    found = separated.chunk_keys.separator
    if found != separator:
        raise ArrayMismatchError(f"dimension_separator {separator!r} was asked for, the document says {found!r}",
                                 path=path, asked={"dimension_separator": separator},
                                 found={"dimension_separator": found})
    return separated


@lru_cache(maxsize=64)
def _parse(format, document, raw):
    """Return the metadata that a document says, and what is worth a warning in it."""
    with noted() as notes:
        return format.parse_node(document, raw, ""), tuple(notes)


@lru_cache(maxsize=64)
def _resolve(format, document, raw, strict):
    """Return (metadata, codec chain, key template, notes) of an array's document: what depends on nothing else.

    All are immutable and shared by the handles of equal documents. A task scheduler that opens an array for
    every task finds it here, and so does who lists a group of arrays of one kind.
    """
    metadata, notes = _parse(format, document, raw)
    with noted() as of_codecs:
        # Only where the format cannot say the item size of blosc chunks, another one in them is a contradiction.
        chain = CodecChain(metadata.codecs, metadata.dtype, metadata.chunk_shape,
                           strict and format.implies_typesize, fill_of(metadata))
    if metadata.edges is not None:
        chain.check_edges(metadata.edges)
    return metadata, chain, metadata.chunk_keys.template(len(metadata.shape)), (*notes, *of_codecs)


def fill_of(metadata):
    """Return the fill value as an array of one element."""
    if metadata.fill_bytes:
        return np.frombuffer(metadata.fill_bytes, metadata.dtype)
    fill = np.empty(1, metadata.dtype)
    fill[0] = metadata.item_of_fill
    return fill


def form_of(view, strict):
    """Return a number for how chunks become bytes: arrays of one number make the same of the same object."""
    return _form(view.metadata.codecs, view.metadata.dtype, strict)


@lru_cache(maxsize=64)
def _form(codecs, dtype, strict):
    # A string's hash is keyed at random: nobody can make two of them equal.
    return hash(text_of((codecs, dtype, strict)))


def same_chunks(a, b):
    """Whether two metadata describe the same stored objects, as far as both arrays reach."""
    return (a.same_grid(b) and a.dtype == b.dtype and a.codecs == b.codecs
            and a.chunk_keys == b.chunk_keys and a.fill_bytes == b.fill_bytes)
