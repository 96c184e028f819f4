"""An array in slabs: boxes of whole chunks that fit into a given memory."""
from __future__ import annotations

from typing import TYPE_CHECKING

from zcore.tools.rechunk import n_slabs, slab_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

SLAB_NBYTES = 2**26


def slab_of(shape: Sequence[int], chunk_shape: Sequence[int], itemsize: int,
            nbytes: int = SLAB_NBYTES) -> tuple[int, ...]:
    """Return the shape of the boxes that an array is cut into: of whole chunks, and of at most about `nbytes`.

    It grows along the last dimension first, as bytes in C order do. It is never less than a chunk.

    >>> slab_of((5, 4), (2, 2), 1, 8)
    (2, 4)
    """
    lengths = [max(1, min(length, chunk)) for length, chunk in zip(shape, chunk_shape, strict=True)]
    room = itemsize
    for length in lengths:
        room *= length
    for d in reversed(range(len(shape))):
        n = max(1, min(-(-shape[d] // lengths[d]), nbytes // max(1, room)))
        room *= n
        lengths[d] *= n
        if lengths[d] < shape[d]:
            break
    return tuple(lengths)


def slabs_of(shape: tuple[int, ...], slab: tuple[int, ...],
             numbers: Iterable[int] | None = None) -> Iterator[tuple[slice, ...]]:
    """Yield the selections of the slabs of an array, of all or of those with some numbers, in C order.

    >>> list(slabs_of((3, 4), (2, 4)))
    [(slice(0, 2, None), slice(0, 4, None)), (slice(2, 3, None), slice(0, 4, None))]
    """
    numbers = range(n_slabs(shape, slab)) if numbers is None else numbers
    for number in numbers:
        starts, counts = slab_at(shape, slab, number)
        yield tuple([slice(start, start + n) for start, n in zip(starts, counts, strict=True)])
