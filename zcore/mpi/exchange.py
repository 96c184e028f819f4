"""Writes in two phases: ranks exchange elements first, so that each stored object is written by one rank.

Where no lock holds between the hosts of a program, this is how ranks write parts of the same chunks; parallel HDF5
calls it collective buffering. Where locks hold they are faster.
"""
from __future__ import annotations

import bisect
import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zcore.model.chunk_grid import number_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypeAlias

    import numpy.typing as npt

    Box: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
    Bounds: TypeAlias = Box | tuple[None, None]

# Bytes of objects, for each rank, that are exchanged and written in one round.
ROUND_NBYTES = 1 << 26


class Share(NamedTuple):
    """A part of one object: where it begins, its elements, and the rank that has given them."""

    start: tuple[int, ...]
    values: npt.NDArray[Any]
    rank: int


def bounds_of(box: slice | tuple[slice, ...] | None, shape: tuple[int, ...]) -> Bounds:
    """Return the starts and stops of a box, tuples; None, a rank that has nothing to write, is (None, None).

    Raises : ValueError, TypeError.
    """
    if box is None:
        return None, None
    box = box if isinstance(box, tuple) else (box,)
    if len(box) > len(shape) or not all(isinstance(part, slice) for part in box):
        raise ValueError(f"box is {box!r:.200}, expected at most {len(shape)} slices")
    starts, stops = [], []
    for part, length in zip((*box, *[slice(None)] * (len(shape) - len(box))), shape, strict=True):
        start, stop, step = part.indices(length)
        if step != 1:
            raise ValueError(f"box has the step {step}, expected 1")
        starts.append(start)
        stops.append(max(start, stop))
    return tuple(starts), tuple(stops)


class Exchange:
    """Who writes which object: the rank that has most elements of it, the lowest one of several.

    Parameters
    ----------
    boxes : list of (tuple of int, tuple of int)
        Of all ranks, see `bounds_of`.
    sizes : tuple of tuple of int
        Lengths of the stored objects along each dimension.
    """

    def __init__(self, boxes: Sequence[Bounds], sizes: Sequence[Sequence[int]]) -> None:
        # None for a rank without elements.
        self.boxes: list[Box | None] = [
            (starts, stops) if starts is not None and stops is not None and all(
                a < b for a, b in zip(starts, stops, strict=True)) else None for starts, stops in boxes]
        self.borders: list[list[int]] = [[0, *itertools.accumulate(lengths)] for lengths in sizes]
        self.grid: tuple[int, ...] = tuple(map(len, sizes))

    def objects_of(self, rank: int) -> Iterator[tuple[int, ...]]:
        """Iterate over the coordinates of the objects that the box of a rank reaches into, in the grid's order."""
        if (box := self.boxes[rank]) is None:
            return iter(())
        return itertools.product(*[
            range(bisect.bisect_right(borders, start) - 1, bisect.bisect_left(borders, stop))
            for borders, start, stop in zip(self.borders, *box, strict=True)])

    def common(self, rank: int, coords: tuple[int, ...]) -> Box | None:
        """Return starts and stops of what a rank has of an object; None if it has nothing."""
        if (box := self.boxes[rank]) is None:
            return None
        starts, stops = [], []
        for borders, k, a, b in zip(self.borders, coords, *box, strict=True):
            starts.append(max(borders[k], a))
            stops.append(min(borders[k + 1], b))
            if starts[-1] >= stops[-1]:
                return None
        return tuple(starts), tuple(stops)

    def near(self, rank: int) -> list[int]:
        """Return the ranks that have elements of any object which the box of a rank reaches into, itself among them."""
        if (own := self.boxes[rank]) is None:
            return []
        reach = [(borders[bisect.bisect_right(borders, start) - 1], borders[bisect.bisect_left(borders, stop)])
                 for borders, start, stop in zip(self.borders, *own, strict=True)]
        return [other for other, box in enumerate(self.boxes) if box is not None and all(
            a < high and b > low for a, b, (low, high) in zip(*box, reach, strict=True))]

    def owner(self, coords: tuple[int, ...], ranks: list[int]) -> int:
        """Return the rank that writes an object: one of `ranks`, in order, which are all that have elements of it."""
        shares = [0 if (found := self.common(rank, coords)) is None
                  else math.prod(b - a for a, b in zip(*found, strict=True)) for rank in ranks]
        return ranks[shares.index(max(shares))]


def write_in_turns(comm: Any, plan: Exchange, values: npt.NDArray[Any] | None,
                   write: Callable[[tuple[slice, ...], npt.NDArray[Any]], object],
                   read: Callable[[tuple[slice, ...]], npt.NDArray[Any]], object_nbytes: int) -> Exception | None:
    """Exchange the elements of all ranks, and write the objects of this one.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        With `alltoall`.
    plan : Exchange
        The same on all ranks.
    values : ndarray or None
        Of the box of this rank.
    write, read : callable
        ``write(selection, values)``, ``read(selection)``: of the array, without locks. What they raise is kept until
        all rounds are done, so that no rank waits for ever.
    object_nbytes : int
        Of the largest object, decoded.

    Returns
    -------
    Exception or None
        The first one.
    """
    rank, size = comm.Get_rank(), comm.Get_size()
    per_round = max(1, ROUND_NBYTES * size // max(1, object_nbytes))
    waiting = [(number_of(coords, plan.grid), coords) for coords in plan.objects_of(rank)]
    # Rounds in which no rank has objects are left out by all.
    rounds = sorted(set(itertools.chain(*comm.allgather(sorted({number // per_round for number, _ in waiting})))))
    near, box = plan.near(rank), plan.boxes[rank]
    error, next_one = None, 0
    for turn in rounds:
        sent = [[] for _ in range(size)]
        while next_one < len(waiting) and waiting[next_one][0] // per_round == turn:
            number, coords = waiting[next_one]
            part = plan.common(rank, coords)
            assert box is not None and part is not None and values is not None
            starts, stops = part
            inside = tuple([slice(a - o, b - o) for a, b, o in zip(starts, stops, box[0], strict=True)])
            sent[plan.owner(coords, near)].append((number, Share(starts, values[inside], rank)))
            next_one += 1
        own, sent[rank] = sent[rank], []
        found = {}
        for number, piece in itertools.chain(own, *comm.alltoall(sent)):
            found.setdefault(number, []).append(piece)
        for number in sorted(found):
            try:
                _write_object(sorted(found[number], key=lambda piece: piece.rank), write, read)
            except Exception as exc:
                error = error or exc
    return error


def _write_object(pieces, write, read):
    """Write the pieces of one object at once. Of elements that several ranks have, those of the highest rank stay."""
    if len(pieces) == 1:
        [piece] = pieces
        write(_selection(piece.start, piece.values.shape), piece.values)
        return
    starts = tuple(map(min, zip(*[piece.start for piece in pieces], strict=True)))
    stops = tuple([max(piece.start[d] + piece.values.shape[d] for piece in pieces) for d in range(len(starts))])
    shape = tuple([b - a for a, b in zip(starts, stops, strict=True)])
    selection = _selection(starts, shape)
    covered, values = np.zeros(shape, bool), np.empty(shape, pieces[0].values.dtype)
    for piece in pieces:
        inside = _selection([a - o for a, o in zip(piece.start, starts, strict=True)], piece.values.shape)
        covered[inside] = True
        values[inside] = piece.values
    if not covered.all():
        values = np.where(covered, values, read(selection))
    write(selection, values)


def _selection(starts, shape):
    return tuple([slice(a, a + n) for a, n in zip(starts, shape, strict=True)])
