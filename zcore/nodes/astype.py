"""A view of an array with another type: casts while it reads."""
from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from zcore.indexing.fields import split_fields
from zcore.model.dtypes import numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import numpy.typing as npt

    from zcore.nodes.array import Array
    from zcore.typing import Selection


class Casted:
    """A view of an array whose elements are cast to `dtype` like NumPy's `astype`. It can only read.

    Examples
    --------
    >>> import zcore
    >>> a = zcore.create_array(zcore.MemoryStore(), shape=3, chunks=2, dtype="i4", fill_value=7)
    >>> a.astype("f8")[1:]
    array([7., 7.])
    """

    __slots__ = ("_array", "dtype")

    def __init__(self, array: Array, dtype: npt.DTypeLike) -> None:
        self._array = array
        self.dtype: np.dtype[Any] = numpy_dtype(dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements per dimension."""
        return self._array.shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self._array.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._array.size

    def __getitem__(self, selection: Selection) -> Any:
        fields, selection = split_fields(selection, self.dtype)
        selected, of_array = self._array._selected(selection)
        # Always an array: elements may have Python types, or be arrays themselves.
        found = self._array._get(selected, of_array).astype(self.dtype)
        if fields is not None:
            found = found[fields]
        return found[()] if selected.is_element else found

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("an array in a store cannot become a NumPy array without a copy")
        return np.asarray(self[...], dtype)

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return chain.from_iterable(slab.astype(self.dtype) for slab in self._array._slabs())

    def __repr__(self) -> str:
        return f"<{self._array!r} as {self.dtype}>"
