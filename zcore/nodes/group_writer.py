"""`GroupWriter`: appends to all arrays of a group that have one dimension, in the background, all of them together.

The rows of all arrays wait in rings. What fills a unit of the array with the longest ones is appended to each array,
under the record of `zcore.nodes.appending`: after a kill, the next writer goes back to what readers found. The
coordinate of the dimension gets its new length last, so it never has a row that another array lacks.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

from zcore.errors import LockError, NodeNotFoundError
from zcore.model.metadata import NAMES_ATTRIBUTE
from zcore.model.value import check_kind
from zcore.nodes.appending import PendingAppend, appending, home_of, length_before, undo_append
from zcore.nodes.streams import Ring, StreamWriter, rows_in
from zcore.text.printable import plural

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from zcore.nodes.array import Array
    from zcore.nodes.group import Group
    from zcore.typing import CacheSize, Elements

_MAX_TRIES = 64      # others may append at the same time


class GroupWriter(StreamWriter):
    """Appends rows to all arrays of a group that have a dimension; made by `Group.writer`.

    Calls and errors are those of `Writer`. At a service, one process at a time may append.

    Attributes
    ----------
    group : Group
    dimension : str
    arrays : dict of str to Array
        Those that have it.
    """

    _noun = "rows"

    def __init__(self, group: Group, dimension: str, queue: CacheSize | None) -> None:
        check_kind(dimension, "dimension", (str,), "the name of a dimension")
        self.group: Group = group
        self.dimension: str = dimension
        found = {name: array for name, array in group.arrays() if dimension in _dims_of(array)}
        if not found:
            raise NodeNotFoundError(f"{group._binding.describe()} has no array with a dimension {dimension!r}",
                                    path=group.path)
        dims = {name: _dims_of(array) for name, array in found.items()}
        # The coordinate comes last, before it what else has this dimension alone.
        order = sorted(found, key=lambda name: (name == dimension, len(dims[name]) == 1, name))
        self.arrays: dict[str, Array] = {name: found[name] for name in order}
        self._axes = {name: dims[name].index(dimension) for name in order}
        self._home_name = home_of(dims, dimension)
        self._home = self.arrays[self._home_name]
        length = self._common_length(dims)
        self._widest = max(order, key=lambda name: self._metadata(name).chunk_shape[self._axes[name]])
        self._unit = metadata, axis = self._metadata(self._widest), self._axes[self._widest]
        nbytes = sum([math.prod(array.shape[:axis] + array.shape[axis + 1:]) * array.itemsize for array, axis
                      in zip(self.arrays.values(), self._axes.values(), strict=True)])
        n_rows, _ = rows_in(queue, nbytes, metadata.chunk_shape[axis])
        self._rings = {name: Ring(array._binding, self._axes[name], n_rows) for name, array in self.arrays.items()}
        super().__init__(group._binding.describe(), length, n_rows)

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else f"{plural(self.n_given, 'row')} given, {self.n_stored} stored"
        arrays = plural(len(self.arrays), "array")
        return f"<zcore.GroupWriter of {self._place}, {arrays} along {self.dimension!r}, {state}>"

    def _common_length(self, dims):
        """Return the length that all arrays have. While another writer appends, some are longer than others."""
        place, before = self.group._binding.describe(), None
        for _ in range(_MAX_TRIES):
            undo_append(self.group, lambda: self.group, self.dimension, dims)
            lengths = {name: array.refresh().shape[self._axes[name]] for name, array in self.arrays.items()}
            if len(set(lengths.values())) == 1:
                return lengths[self._home_name]
            if lengths == before and length_before(self._home, self.dimension) is None:
                raise ValueError(f"{place}: the arrays have different lengths along {self.dimension!r}, so nothing can "
                                 f"be appended to them together: {lengths}")
            before = lengths
        raise LockError(f"{place}: others have appended during each of {_MAX_TRIES} looks at the arrays", key=place)

    def append(self, values: Mapping[str, Elements]) -> None:
        """Take one row, or several, for each of the arrays. They are copied. Waits while the queue is full.

        Parameters
        ----------
        values : mapping of str to array_like
            By the name of the array, as `Writer.append` takes them; for all arrays the same number of rows.

        Raises
        ------
        TypeError, ValueError
            An array is missing or unknown, or a type or shape does not fit.
        OverflowError
            As for `Writer.append`.
        WriterError
            Rows that were given before could not be stored. The next call tries again.
        """
        if set(values) != set(self.arrays):
            raise ValueError(f"values are for {sorted(values)}, expected some for each of {sorted(self.arrays)}")
        rows = {}
        for name, ring in self._rings.items():
            try:
                rows[name] = ring.rows_of(values[name])
            except (TypeError, ValueError) as error:
                if type(error) in (TypeError, ValueError):
                    error.args = (f"{name}: {error}",)
                raise
        numbers = {name: len(found) for name, found in rows.items()}
        n_rows = numbers[self._widest]
        if set(numbers.values()) != {n_rows}:
            raise ValueError(f"the arrays get different numbers of rows: {numbers}")
        with self._entered():
            self._report()
            self._put_rows([(ring, rows[name]) for name, ring in self._rings.items()], n_rows)

    def _refresh(self):
        for array in self.arrays.values():
            array.refresh()

    def _unit_of(self):
        return self._unit

    def _shape_now(self, name):
        array = self.arrays[name].refresh()
        if array.ndim != self._rings[name].ndim:
            raise array._binding.replaced()
        return array.shape

    def _metadata(self, name):
        return self.arrays[name]._binding.metadata

    def _store_some(self):
        axis = self._axes[self._home_name]
        for _ in range(_MAX_TRIES):
            self._length = length = self._shape_now(self._home_name)[axis]
            n, grown = self._n_ready(length), []
            if not n:
                return
            with appending(self._home, self.dimension, length, grown):
                if self._shape_now(self._home_name)[axis] != length:
                    continue     # another one has appended before this one had the record
                for name, array in self.arrays.items():
                    old, axis = self._shape_now(name), self._axes[name]
                    new = old[:axis] + (old[axis] + n,) + old[axis + 1:]
                    grown.append(PendingAppend(array, old[:axis] + (length,) + old[axis + 1:], new))
                    grown[-1].append(self._rings[name].get(self._tail, n), axis)
            self._appended(n)
            return
        raise LockError(f"{self._place}: others were faster in each of {_MAX_TRIES} attempts to append",
                        key=self._place)


def _dims_of(array: Array) -> tuple[Any, ...]:
    """Return the names of the dimensions of an array; in Zarr v2 an attribute has them, as xarray writes it."""
    names = array.dimension_names or array.attrs.get(NAMES_ATTRIBUTE) or ()
    return tuple(names) if isinstance(names, (list, tuple)) and len(names) == array.ndim else ()
