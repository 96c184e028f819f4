"""A view of an array with another type: casts while it reads."""
from itertools import chain

import numpy as np

from zcore.indexing.fields import split_fields


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

    def __init__(self, array, dtype):
        self._array = array
        self.dtype = np.dtype(dtype)

    @property
    def shape(self):
        """Elements per dimension."""
        return self._array.shape

    @property
    def ndim(self):
        """Number of dimensions."""
        return self._array.ndim

    @property
    def size(self):
        """Number of elements."""
        return self._array.size

    def __getitem__(self, selection):
        fields, selection = split_fields(selection, self.dtype)
        selected, of_array = self._array._selected(selection)
        # Always an array: elements may have Python types, or be arrays themselves.
        found = self._array._get(selected, of_array).astype(self.dtype)
        if fields is not None:
            found = found[fields]
        return found[()] if selected.is_element else found

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("an array in a store cannot become a NumPy array without a copy")
        return np.asarray(self[...], dtype)

    def __len__(self):
        return len(self._array)

    def __iter__(self):
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return chain.from_iterable(slab.astype(self.dtype) for slab in self._array._slabs())

    def __repr__(self):
        return f"<{self._array!r} as {self.dtype}>"
