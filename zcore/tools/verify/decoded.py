"""Read and decode all objects of an array, to find the damaged ones.

Objects are read in slabs of the grid, by the engine and in parallel, into scratch memory. If a slab cannot be read,
its objects are read one by one; so are those of slabs that hold few of them, as in a huge grid that is nearly empty.
The array is taken to be as long as its chunks reach, so that border chunks are decoded as a whole.
"""
from __future__ import annotations

import math
import operator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from zcore import workers
from zcore.engine.array_binding import ArrayBinding
from zcore.errors import AsdfFormatError, ChunkError, ChunkMemoryError, OutOfMemoryError, StoreError, UnsupportedError
from zcore.kernel.select.box import Box
from zcore.model.chunk_grid import coords_at
from zcore.nodes.array import Array
from zcore.tools.copy.transfer import ElementMemory
from zcore.tools.rechunk import n_slabs, slab_at, slab_of
from zcore.tools.spread import spread

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import numpy.typing as npt

    from zcore.errors import ZcoreError
    from zcore.indexing.fields import Part

_SLABS_OF_SHARE = 4     # that a worker reads at once
SLAB_NBYTES = 1 << 26   # of elements, in the scratch; one object may have more
_FEW = 8                # a slab with fewer than one object for so many chunks is not read as a whole
# Errors of an object; others concern the whole array.
_FAILURES = (ChunkError, StoreError, UnsupportedError, OutOfMemoryError, AsdfFormatError)


class Changed(Exception):
    """The array's document has changed since reading began."""


class Decoded(ArrayBinding):
    """An array whose objects are read as a whole, with the elements beyond its shape."""

    __slots__ = ()

    def __init__(self, binding: ArrayBinding) -> None:
        metadata = binding.metadata
        # Elements beyond 2**63 have no index: then the border is read as it is.
        reach = tuple([sum(ends) for ends in zip(*metadata.place_of([n - 1 for n in metadata.grid_shape]),
                                                 strict=True)]) if metadata.n_chunks else metadata.shape
        view = binding.view
        if math.prod(reach) < 2**63:
            view = view._replace(metadata=metadata.replace(shape=reach))
        super().__init__(binding.store, binding.path, binding.format, binding.options, view)

    def read(self, box: Box, out: npt.NDArray[Any], field: Part | None = None) -> None:
        self.read_once(self.view, box, out, field, self._is_unchanged)

    def _is_unchanged(self, plan):
        if self.store.get(self.document) != self.view.raw:
            raise Changed
        return True


def read_objects(binding: ArrayBinding, tasks: npt.NDArray[np.int64],
                 failed: Callable[[tuple[int, ...], ZcoreError], object], advance: Callable[[int], object],
                 client: Any = None) -> None:
    """Read objects of an array.

    Parameters
    ----------
    binding : ArrayBinding
    tasks : ndarray of int64
        The numbers of the chunks whose objects are there, in C order of the grid.
    failed : callable
        ``failed(chunk_coords, error)`` is called for each object that cannot be read.
    advance : callable
        ``advance(n_bytes)`` is called for each part of the array that is done.
    client : object, optional
        On whose workers they are read, see `zcore.tools.spread`.

    Raises
    ------
    Changed
        The array's document has changed.
    NodeNotFoundError
        The array was deleted.
    """
    metadata = binding.metadata
    grid = metadata.grid_shape
    if not len(tasks):
        return
    # As many rows of the grid as there is room for.
    counts = slab_of(grid, (1,) * len(grid), metadata.chunk_nbytes, SLAB_NBYTES)
    if client is not None:
        # Shares of whole slabs of the grid, as far as that goes; numbers that are near each other lie in one slab.
        size = max(1, math.prod(counts) * _SLABS_OF_SHARE)
        tasks = np.sort(tasks)
        shares = (tasks[i:i + size] for i in range(0, len(tasks), size))
        for _, (failures, n_bytes) in spread(client, partial(_read_share, Array(binding)), shares):
            for failure in failures:
                failed(*failure)
            advance(n_bytes)
        return
    decoded, scratch = Decoded(binding), ElementMemory(metadata.dtype)
    for first, coords in _slabs(tasks, grid, counts):
        last = [min(i + n, length) - 1 for i, n, length in zip(first, counts, grid, strict=True)]
        box = _box(metadata, first, last)
        n_chunks = math.prod([b - a + 1 for a, b in zip(first, last, strict=True)])
        if len(coords) * _FEW < n_chunks or not _is_readable(decoded, box, scratch):
            _read_each(decoded, coords, failed)
        advance(math.prod(box.counts) * metadata.itemsize)


def _read_share(array, share):
    """Read one share of the objects of an array, which this worker has opened; return the failures, and bytes read."""
    failures, n_bytes = [], []
    read_objects(array._binding, share, lambda *failure: failures.append(failure), n_bytes.append)
    return failures, sum(n_bytes)


def _slabs(tasks, grid, counts):
    """Yield (coordinates of the first chunk, those of the objects) of each slab that holds any object."""
    if not grid:
        yield (), [()]
        return
    coords = np.stack(coords_at(tasks, grid), axis=-1)
    slab_grid = [-(-n // count) for n, count in zip(grid, counts, strict=True)]
    # Not np.ravel_multi_index, which supports only 63 dimensions.
    slabs = coords // counts @ np.cumprod([1, *slab_grid[:0:-1]], dtype=np.int64)[::-1]
    by_slab = np.argsort(slabs, kind="stable")
    for inside in np.split(coords[by_slab], np.flatnonzero(np.diff(slabs[by_slab])) + 1):
        yield tuple((inside[0] // counts * counts).tolist()), [tuple(one) for one in inside.tolist()]


def _box(metadata, first, last):
    starts, _ = metadata.place_of(first)
    ends = [a + n for a, n in zip(*metadata.place_of(last), strict=True)]
    return Box(starts, (1,) * len(starts), tuple([b - a for a, b in zip(starts, ends, strict=True)]))


def _is_readable(decoded, box, scratch):
    try:
        _read(decoded, box, scratch)
    except _FAILURES:
        return False
    return True


def _read(decoded, box, scratch):
    """Read a box, a part at a time where it is a shard that is larger than a slab."""
    # The array may end before its chunks do, see `Decoded`.
    box = Box(box.starts, box.steps, tuple([min(n, length - start) for n, length, start
                                            in zip(box.counts, decoded.metadata.shape, box.starts, strict=True)]))
    inner_shape = decoded.chain.inner_shape
    if inner_shape is None or math.prod(box.counts) * decoded.metadata.itemsize <= SLAB_NBYTES:
        decoded.read(box, scratch.of(box.counts))
        return
    slab = slab_of(box.counts, inner_shape, decoded.metadata.itemsize, SLAB_NBYTES)
    for number in range(n_slabs(box.counts, slab)):
        starts, counts = slab_at(box.counts, slab, number)
        decoded.read(Box(tuple(map(operator.add, box.starts, starts)), box.steps, counts), scratch.of(counts))


def _read_each(decoded, coords, failed):
    """Read objects one by one, several at a time as long as their chunks fit into a slab."""
    metadata = decoded.metadata

    def read(one):
        try:
            _read(decoded, _box(metadata, one, one), ElementMemory(metadata.dtype))
        except ChunkMemoryError:
            raise
        except _FAILURES as error:
            failed(one, error)

    workers.each(read, coords, min(decoded.options.n_threads(), max(1, SLAB_NBYTES // max(1, metadata.chunk_nbytes))))
