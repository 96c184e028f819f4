"""An array seen as one of another type: cast while it is read."""
import numpy as np


class Casted:
    """A view of an array whose elements are cast to `dtype` as NumPy's `astype` does; it reads, and never writes.

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
        return self._array[selection].astype(self.dtype)

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("an array in a store cannot become a NumPy array without a copy")
        return np.asarray(self[...], dtype)

    def __len__(self):
        return len(self._array)

    def __iter__(self):
        return (row.astype(self.dtype) for row in self._array)

    def __repr__(self):
        return f"<{self._array!r} as {self.dtype}>"
