"""How elements get from chunks of one shape to chunks of another within a bound of memory: by which slabs and passes.

A slab is a box of elements that is held at once. In one pass each slab is a union of whole objects of the destination,
so these are written once; an object of the source is read once for each slab that it reaches into. Slabs grow along the
dimensions where that saves most reads for the memory that it takes, so that they cover objects of the source as well,
as wholly as there is room. Where objects would still be read more than twice on the average, an array between the two
takes over::

    source ──slabs of whole source objects──▶ between ──slabs of whole destination objects──▶ destination

It is not compressed, and its chunks divide the slabs that are written to it, so that in two passes everything is read
and written once. Nothing here reads or writes; lengths are elements.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from zcore.errors import OutOfMemoryError
from zcore.model.chunk_grid import coords_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

SLAB_NBYTES = 2**26         # of a slab, where nothing else asks for more or less
MAX_READS = 2.0           # of an object of the source in one pass, on the average
MAX_SLAB_NBYTES = 1 << 26   # as large as a slab gets for other reasons than to save reads
MAX_BETWEEN_NBYTES = 1 << 22  # of a chunk of the array between
MAX_TOUCHED = 1 << 22         # slabs that hold a part of one object


class Passes(NamedTuple):
    """Shapes of the slabs of the first pass, of the chunks between, and of the slabs of the last pass.

    In one pass `read` is `write`, and `between` None.
    """

    read: tuple[int, ...]
    between: tuple[int, ...] | None
    write: tuple[int, ...]


def passes(shape: tuple[int, ...], source: tuple[int, ...], target: tuple[int, ...], itemsize: int,
           room: int) -> Passes:
    """Return the `Passes` by which an array is rechunked.

    Parameters
    ----------
    shape : tuple of int
        Of the array.
    source, target : tuple of int
        Of the stored objects on both sides.
    itemsize : int
        Bytes that an element of a slab takes.
    room : int
        Bytes for a slab. One object of the destination, of the source in two passes, is the least in any case.

    Examples
    --------
    >>> passes((1000, 1000), (1, 1000), (1000, 1), itemsize=8, room=8_000_000)
    Passes(read=(1000, 1000), between=None, write=(1000, 1000))
    >>> passes((1000, 1000), (1, 1000), (1000, 1), itemsize=8, room=800_000)
    Passes(read=(96, 1000), between=(96, 96), write=(1000, 96))
    """
    elements = max(1, room // itemsize)
    most = MAX_SLAB_NBYTES // itemsize
    write = _filled(shape, _grown(shape, target, source, elements), min(elements, most))
    if n_reads(shape, source, write) <= MAX_READS:
        return Passes(write, None, write)
    read = _grown(shape, source, target, elements)
    write = _grown(shape, target, source, elements)
    return Passes(read, _between(shape, read, write, max(1, MAX_BETWEEN_NBYTES // itemsize)), write)


def n_reads(shape: tuple[int, ...], source: tuple[int, ...], slab: tuple[int, ...]) -> float:
    """Return how often an object is touched on the average when all slabs are read, 1.0 at the least.

    Dimensions are independent: each border of a slab within an object means that the object is touched once more.

    >>> n_reads((100,), (10,), (20,)), n_reads((100,), (10,), (25,)), n_reads((100,), (100,), (10,))
    (1.0, 1.2, 10.0)
    """
    return math.prod([_touches(n, chunk, length) for n, chunk, length in zip(shape, source, slab, strict=True)])


def _touches(n, chunk, length):
    if n == 0:
        return 1.0
    n_borders = -(-n // length) - 1
    n_between = -(-n // math.lcm(chunk, length)) - 1
    return 1 + (n_borders - n_between) / -(-n // chunk)


def _grown(shape, unit, other, elements):
    """Return the shape of slabs, whole units of at most `elements`, that touch other objects as seldom as can be."""
    slab = [min(n, length) or 1 for n, length in zip(shape, unit, strict=True)]
    while True:
        n_elements = math.prod(slab)
        best = None
        for d, length in enumerate(slab):
            before = _touches(shape[d], other[d], length)
            for longer in _lengths(shape[d], unit[d], other[d], elements // (n_elements // length)):
                if longer > length and (saved := math.log(before / _touches(shape[d], other[d], longer))) > 1e-9:
                    gain = saved / math.log(longer / length), longer
                    if best is None or gain > best[0]:
                        best = gain, d, longer
        if best is None:
            return tuple(slab)
        slab[best[1]] = best[2]


def _lengths(n, unit, other, most):
    """Yield lengths that a slab may have in a dimension: multiples of the unit, of both units, or all of it."""
    if n <= most:
        yield n
    for step in {unit, math.lcm(unit, other)}:
        length = step
        while length < min(n, most):
            yield length
            length *= 2
        if step <= most:
            yield _even(most // step) * step


def _even(count):
    """Return a number that is a little less and has many divisors: of its binary digits the first four."""
    cut = max(0, count.bit_length() - 4)
    return count >> cut << cut


def _filled(shape, slab, elements):
    """Return slabs made larger while they have fewer than `elements`, along the last dimension first."""
    slab = list(slab)
    for d in reversed(range(len(slab))):
        step = slab[d]
        n_times = elements // math.prod(slab)
        if n_times > 1 and step < shape[d]:
            slab[d] = shape[d] if step * n_times >= shape[d] else step * n_times
    return tuple(slab)


def _between(shape, read, write, elements):
    """Return the chunk shape of the array between, which divides the slabs that are written to it."""
    chunk = [_divisor(r, min(r, w)) if r < n else min(r, w) for n, r, w in zip(shape, read, write, strict=True)]
    while math.prod(chunk) > elements:
        halves = [(_divisor(length, length // 2) if read[d] < shape[d] else -(-length // 2)) if length > 1 else length
                  for d, length in enumerate(chunk)]
        # Where the other pass has long runs, chunks are cut last.
        d = max(range(len(chunk)), key=lambda d: (halves[d] < chunk[d], halves[d] * 4 >= chunk[d], chunk[d]))
        if halves[d] == chunk[d]:
            break
        chunk[d] = halves[d]
    return tuple(chunk)


def _divisor(length, most):
    """Return a divisor of `length` that is at most `most`: the largest one, unless that takes long to find."""
    first = -(-length // max(1, most))
    for count in range(first, first + 1024):
        if length % count == 0:
            return length // count
    return math.gcd(length, 1 << (most.bit_length() - 1))


def slab_at(shape: tuple[int, ...], slab: tuple[int, ...], number: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the first element of a slab, by its number in C order, and how many there are per dimension.

    >>> slab_at((3, 2), (2, 2), 1)
    ((2, 0), (1, 2))
    """
    coords = coords_at(number, [-(-n // length) for n, length in zip(shape, slab, strict=True)])
    starts = tuple([i * length for i, length in zip(coords, slab, strict=True)])
    return starts, tuple([min(length, n - start) for length, n, start in zip(slab, shape, starts, strict=True)])


def n_slabs(shape: tuple[int, ...], slab: tuple[int, ...]) -> int:
    """Return how many slabs an array has."""
    return math.prod([-(-n // length) for n, length in zip(shape, slab, strict=True)])


def slabs_of_parts(shape: tuple[int, ...], slab: tuple[int, ...],
                   parts: Iterable[tuple[tuple[int, ...], tuple[int, ...]]]) -> list[int]:
    """Return the numbers of the slabs that some parts of an array touch, a sorted list.

    Parameters
    ----------
    shape, slab : tuple of int
    parts : iterable of (tuple, tuple)
        The first element of each, and the one behind the last, per dimension.

    Raises
    ------
    OutOfMemoryError
        A part touches more than `MAX_TOUCHED`.

    Examples
    --------
    >>> slabs_of_parts((10**18, 4), (10, 2), [((5, 0), (15, 2)), ((0, 0), (1, 1))])
    [0, 2]
    """
    grid = [-(-n // length) for n, length in zip(shape, slab, strict=True)]
    numbers = set()
    for starts, stops in parts:
        touched = [range(first // length, -(-stop // length))
                   for first, stop, length in zip(starts, stops, slab, strict=True)]
        n_touched = math.prod([indices.stop - indices.start for indices in touched])
        if n_touched > MAX_TOUCHED:
            raise OutOfMemoryError(f"one object reaches into {n_touched} slabs of the shape {slab}, expected at most "
                                   f"{MAX_TOUCHED}; more memory makes them larger", nbytes=8 * n_touched)
        found = [0]
        for indices, n in zip(touched, grid, strict=True):
            found = [number * n + i for number in found for i in indices]
        numbers.update(found)
    return sorted(numbers)


def slab_of(shape: Sequence[int], chunk_shape: Sequence[int], itemsize: int,
            nbytes: int = SLAB_NBYTES) -> tuple[int, ...]:
    """Return the shape of the boxes that an array is cut into: of whole chunks, and of at most about `nbytes`.

    It grows along the last dimension first, as bytes in C order do. It is never less than a chunk.

    >>> slab_of((5, 4), (2, 2), 1, 8)
    (2, 4)
    """
    lengths = [max(1, min(length, chunk)) for length, chunk in zip(shape, chunk_shape, strict=True)]
    return _filled(shape, lengths, nbytes // max(1, itemsize))


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
