"""The chunk grid of an array: regular, or rectilinear if chunks differ in length.

Zarr v3, "Regular grid"; zarr-extensions, "rectilinear". Dimensions are independent. `chunk_shape` has the chunk length
of each dimension, or the longest if they differ. `edges` has None for regular dimensions and an `Edges` for others. If
all chunks of the array have one shape, `edges` itself is None.
"""
from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from zcore.errors import OutOfMemoryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from zcore.kernel.select.grid import Edges

MAX_LISTED = 2**24  # per dimension, if all their sizes are listed
MAX_SHOWN_RUNS = 8


def dimensions_of(shape: Sequence[int], chunk_shape: Sequence[int],
                  edges: Sequence[Edges | None] | None) -> Iterator[tuple[int, int, Edges | None]]:
    """Return (length, chunk, edges or None) for each dimension."""
    return zip(shape, chunk_shape, edges or (None,) * len(shape), strict=True)


def coords_at(numbers: Any, grid_shape: Sequence[int]) -> list[Any]:
    """Return the coordinates of chunks by their numbers in C order, an integer or an array for each dimension.

    A grid may have more of them than an address has values, which `np.unravel_index` does not support.

    >>> coords_at(2**40 + 3, (2**39, 4))
    [274877906944, 3]
    """
    coords = []
    for length in reversed(grid_shape):
        numbers, i = divmod(numbers, length)
        coords.append(i)
    return coords[::-1]


def number_of(coords: Iterable[int], grid_shape: Iterable[int]) -> int | None:
    """Return the number of a chunk in C order of the grid, None if it lies outside; see `coords_at`."""
    number = 0
    for i, n in zip(coords, grid_shape, strict=True):
        if i >= n:
            return None
        number = number * n + i
    return number


def check_edges(edges: Iterable[Edges | None], chunk_shape: Sequence[int],
                shape: Sequence[int]) -> tuple[Edges | None, ...] | None:
    """Return `edges` as a tuple, or None if all of them are None.

    Raises : ValueError, if they do not cover the array, or their longest chunks do not match `chunk_shape`.
    """
    edges = tuple(edges)
    if len(edges) != len(shape):
        raise ValueError(f"edges: expected {len(shape)}, one for each dimension, found {len(edges)}")
    for length, chunk, unequal in dimensions_of(shape, chunk_shape, edges):
        if unequal is not None:
            if unequal.total < length:
                raise ValueError(f"expected chunks that cover the {length} elements of a dimension, found chunks of "
                                 f"{unequal.total} elements")
            if unequal.longest != chunk:
                raise ValueError(f"chunk shape: expected the longest edge, {unequal.longest}, found {chunk}")
    return None if all([unequal is None for unequal in edges]) else edges


def chunk_sizes(shape: Sequence[int], chunk_shape: Sequence[int],
                edges: Sequence[Edges | None] | None = None) -> tuple[tuple[int, ...], ...]:
    """Return the lengths of the chunks along each dimension, cut at the border: a tuple of tuples.

    Raises : OutOfMemoryError, if there are more than 2**24 of them along a dimension.

    >>> chunk_sizes((5, 4), (2, 4))
    ((2, 2, 1), (4,))
    """
    sizes = []
    for d, (length, chunk, unequal) in enumerate(dimensions_of(shape, chunk_shape, edges)):
        n_chunks = -(-length // chunk) if unequal is None else unequal.count(length)
        if n_chunks > MAX_LISTED:
            raise OutOfMemoryError(f"dimension {d} has {n_chunks} chunks, at most {MAX_LISTED} are listed",
                                   nbytes=8 * n_chunks)
        if unequal is None:
            sizes.append((chunk,) * (length // chunk) + ((length % chunk,) if length % chunk else ()))
        else:
            sizes.append(unequal.sizes(length))
    return tuple(sizes)


def chunk_regions(shape: Sequence[int], chunk_shape: Sequence[int],
                  edges: Sequence[Edges | None] | None = None) -> Iterator[tuple[slice, ...]]:
    """Iterate over the slices that select each chunk of a grid, in C order, cut at the border.

    >>> list(chunk_regions((3,), (2,)))
    [(slice(0, 2, 1),), (slice(2, 3, 1),)]
    """
    dimensions = list(dimensions_of(shape, chunk_shape, edges))

    def regions(d):
        if d == len(dimensions):
            yield ()
            return
        length, chunk, unequal = dimensions[d]
        for i in count():
            start, n = (i * chunk, chunk) if unequal is None else unequal.place(i)
            if start < length:
                for rest in regions(d + 1):
                    yield (slice(start, min(start + n, length), 1), *rest)
            if start + n >= length:
                break

    # Without this, an empty dimension would be visited for each chunk of the dimensions before it.
    return iter(()) if 0 in shape else regions(0)


def shown_chunks(chunk_shape: tuple[int, ...], edges: Sequence[Edges | None] | None = None) -> str:
    """Return a chunk shape as text for display; for chunks of different lengths, the runs of equal ones.

    >>> from zcore.kernel.select.grid import Edges
    >>> shown_chunks((5, 4), (Edges([(2, 3), (5, 1)]), None))
    '([3×2, 5], 4)'
    """
    if edges is None:
        return str(chunk_shape)
    lengths = []
    for _, chunk, unequal in dimensions_of(chunk_shape, chunk_shape, edges):
        if unequal is None:
            lengths.append(str(chunk))
        else:
            runs = [str(edge) if count == 1 else f"{count}×{edge}" for edge, count in unequal.runs[:MAX_SHOWN_RUNS]]
            lengths.append(f"[{', '.join(runs)}{', …' if unequal.n_runs > MAX_SHOWN_RUNS else ''}]")
    return f"({', '.join(lengths)}{',' if len(lengths) == 1 else ''})"
