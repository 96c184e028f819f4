"""`Writer`: takes frames one by one, gathers whole units of storage, and stores them while the caller computes.

A unit is what a store has as one object along the axis: a row of chunks, or of shards. Rows wait in a ring. A thread of
the background appends those that end a unit, several units in one step if they have come meanwhile. It asks for the
length of the array under the lock of the append, so several writers of one array do not get in each other's way. Boxes
that fill units in any order wait in a `_Tile` each, which is stored when all of it was given.

Nothing is stored in part before `flush`, unless the queue is full.
"""
from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from zcore.engine.array_binding import ArrayBinding
from zcore.errors import SelectionError
from zcore.hierarchy import resizing
from zcore.indexing.assign import assigned
from zcore.kernel.select.box import Box, basic
from zcore.nodes.array import allocated
from zcore.nodes.streams import Ring, StreamWriter, rows_in, safe
from zcore.text.characters import fault_of_text
from zcore.text.printable import plural

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeAlias

    import numpy.typing as npt

    from zcore.model.metadata import ArrayMetadata
    from zcore.nodes.array import Array
    from zcore.typing import BasicSelection, CacheSize, Elements

    Bounds: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]     # starts and stops of a box

_MAX_JOINED = 4 << 20      # bytes of small tiles that are stored as one


class Writer(StreamWriter):
    """Appends frames to an array, and writes boxes, in the background; made by `Array.writer`.

    As a context manager it flushes at the end, also if an exception comes. The methods may be called by any thread. A
    forked child has nothing of what waits.

    Attributes
    ----------
    array : Array
    axis : int

    Examples
    --------
    >>> import numpy as np, zcore
    >>> stack = zcore.create_array(zcore.MemoryStore(), shape=(0, 4, 4), chunks=(10, 4, 4), dtype="u2")
    >>> with stack.writer() as w:
    ...     for i in range(25):
    ...         w.append(np.full((4, 4), i, "u1"))
    >>> stack.shape, stack[24, 0, 0]
    ((25, 4, 4), np.uint16(24))
    """

    def __init__(self, array: Array, axis: int, queue: CacheSize | None) -> None:
        binding = array._binding
        self.array: Array = array
        self.axis: int = axis
        # Of its own: what this one sees of the document is what its own thread has seen or written.
        self._binding = ArrayBinding(binding.store, binding.path, binding.format, binding.options)
        self._opened = metadata = self._binding.metadata
        shape = metadata.shape
        self._row_nbytes = math.prod(shape[:axis] + shape[axis + 1:]) * metadata.itemsize
        n_rows, self._room = rows_in(queue, self._row_nbytes, metadata.chunk_shape[axis])
        self._ring = Ring(self._binding, axis, n_rows)
        self._tiles = {}             # by the units, a box that they fill; no two overlap
        self._whole = []             # tiles to be stored
        super().__init__(binding.describe(), shape[axis], n_rows)

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else f"{plural(self.n_given, 'frame')} given, {self.n_stored} stored"
        return f"<zcore.Writer of {self.array._binding.describe()}, axis {self.axis}, {state}>"

    @property
    def n_waiting(self) -> int:
        """Bytes that wait to be stored."""
        tiles = [*self._tiles.values(), *self._whole]
        return (self._head - self._tail) * self._row_nbytes + sum([tile.values.nbytes for tile in tiles])

    def append(self, frames: Elements) -> None:
        """Take one frame, or several along the axis. They are copied, so the caller may use the memory again.

        Waits while the queue is full.

        Parameters
        ----------
        frames : array_like
            Of the array's dimensions, or without the axis: then it is one frame. Any type that casts safely (NumPy,
            ``casting="safe"``) to that of the array; other numbers and times if the type holds them, where floats may
            be rounded, and are never cast to integers; text that is not too long.

        Raises
        ------
        TypeError, ValueError
            The type does not cast safely, text is too long, or the shape is not that of frames.
        OverflowError
            The type does not hold a number or time.
        WriterError
            Frames or boxes that were given before could not be stored. One frame is not taken then, of several perhaps
            some (`n_given`); the next call tries again.
        """
        rows = self._ring.rows_of(frames)
        with self._entered():
            self._report()
            self._put_rows([(self._ring, rows)], len(rows))

    def write(self, selection: BasicSelection, values: Elements) -> None:
        """Take the elements of a box. A unit is stored when all of it was given; the rest at `flush`.

        Parameters
        ----------
        selection : int, slice, ... or tuple of them
            As in brackets, slices of step 1, inside the array with the frames that were appended so far.
        values : array_like
            Broadcast to the selection; types as for `append`.

        Raises
        ------
        SelectionError
            The selection is no box of step 1, or lies outside.
        TypeError, ValueError, OverflowError
            See `append`, or the shape does not fit.
        WriterError
            See `append`.
        """
        with self._entered():
            self._report()
            box = basic(selection, self._shape())
            if box is None or any([step != 1 and count > 1 for step, count in zip(box.steps, box.counts, strict=True)]):
                raise SelectionError("a writer takes boxes: integers, slices of step 1 and an ellipsis")
            values = assigned(safe(values, self._ring.dtype), self._ring.dtype, box.shape, box.way)
            self._put_box(box, (values if box.expand is None else values[box.expand]).reshape(box.counts))

    def write_box(self, box: Box, values: npt.NDArray[Any]) -> None:
        """Take the elements of a box of step 1, in an array of its counts; see `write`."""
        with self._entered():
            self._report()
            self._shape()
            self._put_box(box, safe(values, self._ring.dtype))

    def _shape(self):
        """Return the shape with the frames that wait; look at the document if the handle has been resized."""
        if any(map(int.__gt__, self.array.shape, self._binding.metadata.shape)):
            self._binding.reload()
        if self._binding.metadata.ndim != self._ring.ndim:
            raise self._binding.replaced()
        shape = list(self._binding.metadata.shape)
        shape[self.axis] = max(shape[self.axis], self._length + self._head - self._tail)
        return tuple(shape)

    def _flush(self):
        for units in list(self._tiles):
            self._whole.append(self._tiles.pop(units))
        super()._flush()
        self._wait(lambda: not self._whole)

    def _refresh(self):
        self.array.refresh()

    def _put_box(self, box, values):
        if fault := fault_of_text(values):
            raise ValueError(fault)
        if box.starts[self.axis] + box.counts[self.axis] > self._binding.metadata.shape[self.axis]:
            super()._flush()
        metadata = self._binding.metadata     # one for all: the background may find the array resized meanwhile
        if not box.fits(metadata.shape):
            raise SelectionError(f"start {box.starts}, count {box.counts} do not lie in an array of shape "
                                 f"{metadata.shape}")
        for units, starts, stops in _units(metadata, box, self._room // 2):
            self._put(metadata, units, starts, stops, values[_inside(starts, stops, box.starts)])

    def _put(self, metadata, units, starts, stops, values):
        tile = self._tiles.get(units)
        if tile is not None and not tile.has(stops):
            self._whole.append(self._tiles.pop(units))     # the array has grown since
            tile = None
        if tile is None:
            for other in [other for other in self._tiles if _without(units, other) != [units]]:
                self._whole.append(self._tiles.pop(other))     # before what is written to the same units from now on
            self._wait(lambda: self.n_waiting <= self._room or not self._whole)
            if self._tiles and self.n_waiting > self._room:
                self._whole.append(self._tiles.pop(next(iter(self._tiles))))     # the oldest, in part
            tile = self._tiles[units] = _Tile(metadata, units)
        tile.add(starts, stops, values)
        if not tile.n_left:
            self._whole.append(self._tiles.pop(units))
        self._start()

    def _unit_of(self):
        metadata = self._binding.metadata
        return metadata if metadata.ndim == self._ring.ndim else self._opened, self.axis

    def _is_ready(self):
        return bool(self._whole) or super()._is_ready()

    def _store_some(self):
        while self._whole:
            n, tile = self._next()
            if any(map(int.__gt__, tile.bounds[1], self._binding.metadata.shape)):
                self._binding.reload()     # it may have shrunk, and grown again
            tile.store(self._binding)
            del self._whole[:n]
            self._tell()
        if super()._is_ready():
            resizing.append(self._binding, self._rows, self.axis, self._appended)

    def _next(self):
        """Return how many of the tiles that wait are stored next, and these as one: small ones behind each other."""
        first, *others = self._whole
        tiles, box, nbytes = [first], first.bounds, first.values.nbytes
        for tile in others:
            nbytes += tile.values.nbytes
            both = _joined(box, tile.bounds)
            if both is None or nbytes > _MAX_JOINED or tiles[-1].n_left or tile.n_left:
                break
            tiles.append(tile)
            box = both
        return len(tiles), first if len(tiles) == 1 else _Tile.joined(tiles, box)

    def _left(self):
        return super()._left() + [f"the box {list(zip(*box, strict=True))}"
                                  for tile in [*self._whole, *self._tiles.values()] for box in tile.boxes]

    def _rows(self, length):
        """Return the rows to append to an array of this length; None if they are no unit yet."""
        self._length = length
        n = self._n_ready(length)
        return self._ring.get(self._tail, n) if n else None


class _Tile:
    """The elements of one unit, or of a box of units, that were given so far.

    Attributes
    ----------
    values : ndarray
        Of the part of the units that lies in the array.
    boxes : list of (starts, stops)
        What was given, boxes that do not overlap.
    n_left : int
        Elements that were not given.
    """

    def __init__(self, metadata: ArrayMetadata, units: Bounds) -> None:
        self._starts, ends = units
        counts = map(int.__sub__, map(min, ends, metadata.shape), self._starts)
        self.values: npt.NDArray[Any] = allocated(tuple(counts), metadata.dtype)
        self.boxes: list[Bounds] = []
        self.n_left: int = self.values.size

    @classmethod
    def joined(cls, tiles: list[_Tile], box: Bounds) -> _Tile:
        """Return one that has the elements of whole tiles, which lie behind each other and fill a box."""
        self = cls.__new__(cls)
        self._starts, self.boxes, self.n_left = box[0], [box], 0
        axis = next(d for d, start in enumerate(tiles[1]._starts) if start != box[0][d])
        self.values = np.zeros(tuple(map(int.__sub__, box[1], box[0])), tiles[0].values.dtype)     # its byte order
        np.concatenate([tile.values for tile in tiles], axis, out=self.values)
        return self

    @property
    def bounds(self) -> Bounds:
        """Starts and stops of the part of the units that lies in the array."""
        return self._starts, tuple(map(int.__add__, self._starts, self.values.shape))

    def has(self, stops: tuple[int, ...]) -> bool:
        """Return whether a box in the units that ends there lies in the part that is kept."""
        return all(map(int.__le__, stops, self.bounds[1]))

    def add(self, starts: tuple[int, ...], stops: tuple[int, ...], values: npt.NDArray[Any]) -> None:
        """Note the elements of a box, which lies in the units."""
        new = [(starts, stops)]
        for box in self.boxes:
            new = [part for one in new for part in _without(one, box)]
        self.values[_inside(starts, stops, self._starts)] = values
        self.n_left -= sum([math.prod(map(int.__sub__, stops, starts)) for starts, stops in new])
        for box in new:
            # Frames that come in order stay one box for each dimension.
            while self.boxes and (both := _joined(self.boxes[-1], box)):
                del self.boxes[-1]
                box = both
            self.boxes.append(box)

    def store(self, binding: ArrayBinding) -> None:
        """Write what was given."""
        for starts, stops in self.boxes if self.n_left else [self.bounds]:
            counts = tuple(map(int.__sub__, stops, starts))
            binding.write(Box(starts, (1,) * len(starts), counts), self.values[_inside(starts, stops, self._starts)])


def _inside(starts, stops, origin):
    """Return the index of a box in an array of elements that begin at `origin`."""
    return tuple([slice(start - first, stop - first) for start, stop, first in zip(starts, stops, origin, strict=True)])


def _without(box, other):
    """Return a list of boxes: what of a box does not lie in another one."""
    (starts, stops), (first, last) = box, other
    if any([start >= b or stop <= a for start, stop, a, b in zip(starts, stops, first, last, strict=True)]):
        return [box]
    parts, starts, stops = [], list(starts), list(stops)
    for d in range(len(starts)):
        if starts[d] < first[d]:
            parts.append((tuple(starts), (*stops[:d], first[d], *stops[d + 1:])))
            starts[d] = first[d]
        if stops[d] > last[d]:
            parts.append(((*starts[:d], last[d], *starts[d + 1:]), tuple(stops)))
            stops[d] = last[d]
    return parts


def _joined(box, other):
    """Return two boxes as one, if the other one lies behind the first along one dimension; else None."""
    (starts, stops), (first, last) = box, other
    differ = [d for d in range(len(starts)) if starts[d] != first[d] or stops[d] != last[d]]
    return (starts, last) if len(differ) == 1 and stops[differ[0]] == first[differ[0]] else None


def _units(metadata: ArrayMetadata, box: Box, room: int) -> Iterator[tuple[Bounds, tuple[int, ...], tuple[int, ...]]]:
    """Iterate over the units that a box of step 1 touches: (bounds, starts, stops of the part that is in the box).

    Units that the box covers along a dimension are one, as those of a frame, if they have no more bytes than `room`.
    """
    if not math.prod(box.counts):
        return
    nbytes, ranges = math.prod(metadata.chunk_shape) * metadata.itemsize, []
    for d in reversed(range(len(box.starts))):
        start, stop = box.starts[d], box.starts[d] + box.counts[d]
        edges = [metadata.span_of(d, start)[0]]
        while edges[-1] < stop:
            edges.append(sum(metadata.span_of(d, edges[-1])))
        n = len(edges) - 1
        if n > 1 and start == edges[0] and stop in (edges[-1], metadata.shape[d]) and nbytes * n <= room:
            nbytes *= n
            parts = [(edges[0], edges[-1], start, stop)]
        else:
            parts = [(first, last, max(start, first), min(stop, last)) for first, last in itertools.pairwise(edges)]
        ranges.insert(0, parts)
    for parts in itertools.product(*ranges):
        begins, behind, starts, stops = zip(*parts, strict=True)
        yield (begins, behind), starts, stops
