"""Chunk shapes from the user's request: a shape, a part of one, a size in bytes, or nothing.

The automatic shape halves the longest side until a chunk is at most the target size, then spreads the array evenly over
the resulting number of chunks. Chunks become nearly cubic, so that reading is fast in every direction. Their size is
between half the target and the target, and the last chunk of a dimension is hardly smaller than the others.
"""
from __future__ import annotations

import math
from collections.abc import Iterable
from operator import index as exact_index
from typing import TYPE_CHECKING

from zcore.buffers import MAX_NDIM
from zcore.errors import UnsupportedError
from zcore.kernel.select.grid import Edges
from zcore.model.value import TEXT, first_of
from zcore.text.arguments import parse_nbytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zcore.typing import Chunks

MAX_LISTED = 2**23         # lengths of chunks along a dimension; a document has room for no more
TARGET_NBYTES = 2**20  # fits an L2 cache with its encoded form, and large enough to hide the cost of a file


def auto_chunk_shape(shape: Sequence[int], itemsize: int, target_nbytes: int = TARGET_NBYTES) -> tuple[int, ...]:
    """Return a chunk shape of at most `target_nbytes`, or of single elements if an element is larger.

    >>> auto_chunk_shape((10000, 1000), itemsize=4)
    (313, 500)
    """
    lengths = [max(length, 1) for length in shape]
    pieces = [1] * len(lengths)
    chunk_shape = lengths.copy()
    while math.prod(chunk_shape) * itemsize > target_nbytes and max(chunk_shape, default=1) > 1:
        d = chunk_shape.index(max(chunk_shape))
        pieces[d] *= 2
        chunk_shape[d] = -(-lengths[d] // pieces[d])
    return tuple(chunk_shape)


def normalize_chunks(chunks: Chunks, shape: Sequence[int], itemsize: int, max_nbytes: int | None = None,
                     what: str = "chunks") -> tuple[int, ...]:
    """Return the full chunk shape for a request `chunks`.

    Parameters
    ----------
    chunks : None, "auto", str, int or sequence of (int or None)
        None or ``"auto"`` chooses automatically; a size in bytes is the target of that choice; an int is the length in
        every dimension. In a sequence with one length for each dimension, None and -1 stand for the whole dimension.
    shape : tuple of int
    itemsize : int
        Bytes of an element.
    max_nbytes : int, optional
        Maximum chunk size of a format; limits the automatic choice, not explicit lengths.
    what : str
        Name of the argument in errors.

    Raises
    ------
    ValueError, TypeError
        If there are not as many lengths as dimensions, or one is neither an integer >= 1 nor -1.
    UnsupportedError
        If a length is a list: few formats have chunks of different lengths, and `normalize_grid` is for these.

    Examples
    --------
    >>> normalize_chunks((10000, -1), (1000000, 1000), itemsize=4)
    (10000, 1000)
    """
    if chunks is None or isinstance(chunks, str):
        target = TARGET_NBYTES if chunks in (None, "auto") else parse_nbytes(chunks, what)
        return auto_chunk_shape(shape, itemsize, target if max_nbytes is None else min(target, max_nbytes))
    asked = _asked(chunks, len(shape), what)
    if isinstance(chunks, bool) or not all([_may_be_length(chunk) for chunk in asked]):
        raise TypeError(f"{what}: expected integers, found {chunks!r:.60}")
    if len(asked) != len(shape):
        raise ValueError(f"{what}: expected one length for each dimension of the shape {tuple(shape)}, found "
                         f"{len(asked) if len(asked) <= MAX_NDIM else 'more'}; -1 stands for the whole dimension")
    chunk_shape = []
    for length, chunk in zip(shape, asked, strict=True):
        if is_listed(chunk):
            raise UnsupportedError(f"{what} that differ in length, {chunk!r:.60}", feature="rectilinear chunk grid")
        chunk = -1 if chunk is None else exact_index(chunk)
        if chunk < 1 and chunk != -1:
            raise ValueError(f"{what}: expected integers >= 1, or -1 for the whole dimension, found "
                             f"{chunk if chunk > -1 << 63 else 'one below -2**63'}")
        if chunk >= 1 << 63:
            raise ValueError(f"{what}: expected lengths below 2**63")
        chunk_shape.append(max(length, 1) if chunk == -1 else chunk)
    return tuple(chunk_shape)


def whole_dimensions(chunks: Chunks, ndim: int) -> list[bool]:
    """Return for each dimension whether `chunks` (as for `normalize_chunks`) asks for the whole dimension.

    >>> whole_dimensions((4, -1), 2), whole_dimensions(4, 2)
    ([False, True], [False, False])
    """
    return [chunk is None or (not is_listed(chunk) and chunk == -1) for chunk in _asked(chunks, ndim, "chunks")]


def _asked(chunks, ndim, what):
    """Return the caller's lengths, unchecked; a single one is repeated for every dimension."""
    try:
        return (exact_index(chunks),) * ndim
    except TypeError:
        if isinstance(chunks, TEXT) or not isinstance(chunks, Iterable):
            raise TypeError(f"{what}: expected integers or a size such as '4 MB', found {chunks!r:.60}") from None
        return first_of(chunks, MAX_NDIM)


def _may_be_length(chunk):
    return chunk is None or is_listed(chunk) or (hasattr(chunk, "__index__") and not isinstance(chunk, bool))


def is_listed(lengths: object) -> bool:
    """Return whether the caller's chunks are a sequence; an array without dimensions is a number."""
    return isinstance(lengths, Edges) or (
        isinstance(lengths, Iterable) and not isinstance(lengths, TEXT) and getattr(lengths, "ndim", 1) > 0)


def _edges(lengths, d, length, what):
    """Return the chunk lengths of dimension `d`, checked against its length."""
    limit = MAX_LISTED
    if not hasattr(lengths, "__len__"):
        limit = min(length or limit, limit)     # each is 1 at least
        lengths = first_of(lengths, limit)
    if len(lengths) > limit:
        raise ValueError(f"{what}: expected at most {limit} lengths of dimension {d}, found more")
    try:
        edges = Edges([(exact_index(edge), 1) for edge in lengths])
    except (TypeError, ValueError) as error:
        error.args = (f"{what}: lengths of dimension {d}: {error}",)
        raise
    if length and edges.total != length:
        raise ValueError(f"{what}: expected lengths of dimension {d} that sum up to {length}, found {edges.total}")
    return edges


def normalize_grid(chunks: Chunks, shape: Sequence[int], itemsize: int, max_nbytes: int | None = None,
                   what: str = "chunks") -> tuple[tuple[int, ...], tuple[Edges | None, ...] | None]:
    """Return `(chunk_shape, edges)` for `ArrayMetadata` from a request `chunks`.

    Parameters
    ----------
    chunks, shape, itemsize, max_nbytes, what
        As for `normalize_chunks`. In addition, a dimension may have a list of the lengths of all its chunks, which must
        sum up to its length, or the `Edges` of another array, which are extended to cover it. A list of equal lengths
        becomes a regular grid.

    Raises
    ------
    ValueError, TypeError
        As for `normalize_chunks`; or the listed chunks do not end with their dimension. An empty dimension accepts any.

    Examples
    --------
    >>> normalize_grid([[2, 3, 5], -1], (10, 4), itemsize=4)
    ((5, 4), (Edges(((2, 1), (3, 1), (5, 1))), None))
    """
    if type(chunks) is tuple and len(chunks) == len(shape) and all([
            type(n) is int and 0 < n < 1 << 63 for n in chunks]):
        return chunks, None     # as most callers write it
    if is_listed(chunks):
        chunks = list(first_of(chunks, MAX_NDIM))
    if type(chunks) is not list or not any(map(is_listed, chunks)):
        return normalize_chunks(chunks, shape, itemsize, max_nbytes, what), None
    edges = [None] * len(shape)
    for d, (length, chunk) in enumerate(zip(shape, chunks, strict=False)):
        if is_listed(chunk):
            unequal = chunk.covering(length) if isinstance(chunk, Edges) else _edges(chunk, d, length, what)
            chunks[d] = unequal.longest
            edges[d] = unequal if unequal.n_runs > 1 else None
    return normalize_chunks(chunks, shape, itemsize, what=what), tuple(edges) if any(edges) else None
