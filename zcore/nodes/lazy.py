"""Views of an array that read nothing until their elements are needed."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zcore.errors import SelectionError
from zcore.kernel.select.box import basic

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    import numpy.typing as npt

    from zcore.nodes.array import Array
    from zcore.typing import BasicSelection, Elements


class LazyView:
    """A selected part of an array that is not read yet; made by ``array.lazy[selection]``.

    Indexing a view with integers, slices with any step and an ellipsis gives another view. ``np.asarray(view)`` reads
    it, and so do matplotlib, napari and dask. Assigning to a view writes to the array. A view keeps its shape: if the
    array was shrunk and the view lies outside, both are a SelectionError.

    Parameters
    ----------
    array : Array
    parts : sequence of range or int
        For each dimension of the array the selected indices, or one index.

    Attributes
    ----------
    array : Array
    parts : tuple of range or int

    Examples
    --------
    >>> import zcore
    >>> a = zcore.array(np.arange(120).reshape(12, 10), chunks=(4, 5))
    >>> view = a.lazy[2:10, ::3][..., 0]
    >>> view
    <zcore.LazyView (8,) int64 of (12, 10)>
    >>> np.asarray(view[::-4])
    array([90, 50])
    """

    __slots__ = ("array", "parts")

    def __init__(self, array: Array, parts: Iterable[range | int]) -> None:
        self.array: Array = array
        self.parts: tuple[range | int, ...] = tuple(parts)

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements per dimension, a tuple of int."""
        return tuple([len(part) for part in self.parts if type(part) is range])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self.array.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=object))

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.size * self.dtype.itemsize

    @property
    def chunks(self) -> tuple[int, ...]:
        """Approximate number of elements of the view per chunk, per dimension.

        Raises : UnsupportedError, if the chunks of the array differ in shape.
        """
        return tuple([max(1, min(len(part), chunk // abs(part.step)))
                      for part, chunk in zip(self.parts, self.array.chunks, strict=True) if type(part) is range])

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a view without dimensions")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<zcore.LazyView {self.shape} {self.dtype} of {self.array.shape}>"

    def __getitem__(self, selection: BasicSelection) -> LazyView:
        """Return the view of a part, without reading.

        Raises : SelectionError, if an index lies outside, or is no integer, slice or ellipsis.
        """
        return LazyView(self.array, self._selected(selection))

    def __setitem__(self, selection: BasicSelection, value: Elements) -> None:
        """Write values to a part of the view; see `Array.__setitem__`."""
        self.array[self._of_array(self._selected(selection))] = value

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("a view cannot become a NumPy array without a copy")
        elements = np.asarray(self.array[self._of_array(self.parts)])
        return elements if dtype is None else elements.astype(dtype, copy=False)

    def _of_array(self, parts):
        """Return the selection of all parts in the array.

        Raises : SelectionError, if the array has another shape by now, and parts of the view lie outside: slices would
        be cut.
        """
        shape = self.array.shape
        if len(shape) != len(parts) or any([max(part[0], part[-1]) >= length for part, length in
                                            zip(parts, shape, strict=True) if type(part) is range and part]):
            raise SelectionError(f"the array has shape {shape} by now, and the view lies outside")
        return _slices(parts)

    def _selected(self, selection):
        """Return the parts of the array that a selection of the view leaves."""
        box = basic(selection, self.shape)
        if box is None:
            raise SelectionError(f"a lazy view takes integers, slices and an ellipsis, found {selection!r:.60}; for "
                                 "other indices use np.asarray(view)")
        places = zip(box.starts, box.steps, box.counts, box.expand or box.counts, strict=True)
        parts = []
        for part in self.parts:
            if type(part) is range:
                start, step, count, kept = next(places)
                first, step = part.start + start * part.step, step * part.step
                part = first if kept is None else range(first, first + count * step, step)
            parts.append(part)
        return parts


def _slices(parts):
    """Return the selection of all parts in the array."""
    return tuple([part if type(part) is int else
                  slice(part.start, part.stop if part.stop >= 0 else None, part.step) if part else slice(0)
                  for part in parts])


class LazyIndexer:
    """Brackets that return views: ``array.lazy[selection]``."""

    __slots__ = ("_array",)

    def __init__(self, array: Array) -> None:
        self._array = array

    def __getitem__(self, selection: BasicSelection) -> LazyView:
        return LazyView(self._array, map(range, self._array.shape))[selection]
