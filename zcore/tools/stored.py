"""The parts of an array that lie in stored objects, and the slabs that hold some of them.

A document may announce 2**62 elements where almost nothing is stored. A walk along an array by slabs visits only those
that hold something; the others have the fill value.
"""
from __future__ import annotations

import contextlib
import errno
import math
import os
from time import sleep, time_ns
from typing import TYPE_CHECKING

from zcore.engine.views import fill_of
from zcore.errors import StoreError
from zcore.kernel.select.box import whole
from zcore.model.metadata import has_varying_items
from zcore.stores.base import directory_at
from zcore.stores.keys import prefix_of
from zcore.tools.rechunk import n_slabs, slabs_of_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    import numpy.typing as npt

    from zcore.engine.array_binding import ArrayBinding
    from zcore.kernel.select.box import Box
    from zcore.stores.base import Store

MAX_LOOKS = 10             # at nodes below groups that other calls move meanwhile
# File systems keep times this coarsely: a directory that was changed a moment ago may be changed again unnoticed.
_COARSE_NS = 20_000_000
MAX_UNLISTED = 1 << 10     # objects and slabs up to which a store is not listed


class DirectoriesAbove:
    """The directories down to a node: whether one of them was moved since this was made, perhaps away and back.

    An object that was looked up by its path in the meantime may have seemed absent. In a store without files nothing
    is known.
    """

    def __init__(self, store: Store, path: str) -> None:
        directory, self._top = directory_at(store, prefix_of(path)), directory_at(store) or ""
        self._directories = []
        self._is_moved = False
        while directory is not None and directory not in self._directories:
            self._directories.append(directory)
            directory = os.path.dirname(directory)
        self._seen = self._look()

    def _look(self):
        seen = []
        for directory in self._directories:
            try:
                status = os.stat(directory)
            except OSError:
                self._is_moved = True
                return None
            renamed = status.st_ctime_ns
            # A new name in a directory changes both times, its own new name this one. In a store it counts in any case:
            # a new name may hide that the directory was moved before.
            if renamed == status.st_mtime_ns and not directory.startswith(self._top):
                renamed = 0
            if abs(time_ns() - renamed) < _COARSE_NS:
                self._is_moved |= renamed != status.st_mtime_ns
                return None
            seen.append((status.st_dev, status.st_ino, renamed, renamed != status.st_mtime_ns))
        return seen

    def are_same(self) -> bool:
        """Return whether none was moved, as far as their times tell."""
        if self._seen is not None and self._look() == self._seen:
            return True
        sleep(_COARSE_NS / 1e9)     # else all looks may fall into the time of one move
        return False

    def check(self) -> None:
        """Raise StoreError if one was moved. New names in a group look alike at times, and are no error."""
        now = self._look()
        if self._is_moved or (None not in (self._seen, now) and any([
                one[:2] != other[:2] or (one != other and other[3])
                for one, other in zip(self._seen, now, strict=True)])):
            node = self._directories[0]
            raise StoreError(f"a group above {node} was moved again and again while it was copied; copy again",
                             key=node, errno=errno.ESTALE)


def until_unmoved(store: Store, path: str, work: Callable[[], object]) -> None:
    """Call ``work()`` again as long as a group above the node at `path` is moved meanwhile.

    Raises : StoreError, if that is so each time.
    """
    for _ in range(MAX_LOOKS):
        above = DirectoriesAbove(store, path)
        work()
        if above.are_same():
            return
    above.check()


def has_changed_since(directory: str, moment: int) -> bool:
    """Return whether anything in a directory, at any depth and behind links, was written, made or removed since.

    Or may have been: something cannot be looked at. The moment is a time of the file system, in ns.
    """
    pending, seen = [directory], set()
    try:
        while pending:
            status = os.stat(above := pending.pop())
            if status.st_ctime_ns >= moment:
                return True
            if (place := (status.st_dev, status.st_ino)) in seen:
                continue
            seen.add(place)
            with os.scandir(above) as entries:
                for entry in entries:
                    if entry.is_dir():
                        pending.append(entry.path)
                    elif entry.stat().st_ctime_ns >= moment:
                        return True
    except OSError:
        return True
    return False


class AsManyExist(Exception):
    """There are so many objects that looking for them one by one costs no more than a listing."""


class Stored:
    """Where in an array, or in a selection of it, there is more than the fill value.

    Parameters
    ----------
    binding : ArrayBinding
    box : Box, optional
        The selection.
    dimensions : list of int, optional
        The dimensions that the selection keeps.
    """

    def __init__(self, binding: ArrayBinding, box: Box | None = None, dimensions: Sequence[int] | None = None) -> None:
        self._binding = binding
        self._select(whole(binding.metadata.shape) if box is None else box, binding.metadata.grid_shape, dimensions)

    def _select(self, box, grid_shape, dimensions):
        self._box = box
        self._dimensions = range(len(box.starts)) if dimensions is None else dimensions
        # The most objects that the selection may touch.
        self.n_objects: int = math.prod(map(min, grid_shape, box.counts))

    def _boxes(self):
        """Iterate over the objects that exist: the first index and the length, per dimension."""
        return (self._binding.metadata.place_of(coords) for _, coords in self._binding.stored_chunks())

    def parts(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Iterate over the parts in objects that exist: the first index, and the one behind the last, per dimension.

        Raises : AsManyExist, when more objects were listed than the selection can touch.
        """
        box = self._box
        for n_listed, place in enumerate(self._boxes()):
            if n_listed >= self.n_objects:
                raise AsManyExist
            found = [_indices(*one) for one in zip(*place, box.starts, box.steps, box.counts, strict=True)]
            if all([first < stop for first, stop in found]):
                yield tuple([found[d][0] for d in self._dimensions]), tuple([found[d][1] for d in self._dimensions])

    def is_known(self) -> bool:
        """Whether absent objects read as the fill value, and the store can list the others."""
        return self._binding.options.missing == "fill" and self._binding.store.lists

    def fill(self) -> npt.NDArray[Any]:
        """Return the value of elements that are not stored, an ndarray of one element."""
        return fill_of(self._binding.metadata)


def is_same_fill(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    """Return whether two arrays of one element hold the same, bit by bit; those of varying length the same value."""
    if has_varying_items(one.dtype) or has_varying_items(other.dtype):
        return one.dtype == other.dtype and type(one[0]) is type(other[0]) and one[0] == other[0]
    return one.tobytes() == other.tobytes()


def _indices(origin, length, start, step, count):
    """Return which of the elements `start`, `start + step`, … lie in a chunk: the first and the one behind the last."""
    if step < 0:
        first, stop = -((origin + length - 1 - start) // -step), (start - origin) // -step + 1
    else:
        first, stop = -(-(origin - start) // step), -(-(origin + length - start) // step)
    return max(first, 0), min(stop, count)


def slabs_with_more(shape: tuple[int, ...], slab: tuple[int, ...], arrays: Sequence[Stored]) -> Sequence[int]:
    """Return the numbers of the slabs in which any of the arrays may have more than its fill value.

    Parameters
    ----------
    shape, slab : tuple of int
    arrays : list of Stored

    Returns
    -------
    sequence of int
        In C order; a range may be too long for `len`.
    """
    n_all = n_slabs(shape, slab)
    is_small = max(n_all, *[array.n_objects for array in arrays]) <= MAX_UNLISTED
    if n_all > 1 and not is_small and all([array.is_known() for array in arrays]):
        with contextlib.suppress(AsManyExist):
            return slabs_of_parts(shape, slab, (part for array in arrays for part in array.parts()))
    return range(n_all)
