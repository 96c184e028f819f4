"""The array that the user holds: NumPy's manners over a `Binding`."""
from itertools import chain

import numpy as np

from zcore import lifecycle
from zcore.assignment import cast_to
from zcore.described import DescribedArray
from zcore.elements import allocated
from zcore.kernel.selection import basic
from zcore.model.metadata import shape_of
from zcore.selected import SelectedArray, read_whole


class Array(SelectedArray):
    """A chunked array in a store.

    Made by `zcore.open` and `zcore.create_array`. Indexing reads and writes as a NumPy array does, and gives ndarrays:
    arithmetic is theirs, ``a[...] + 1``. No element is kept in memory between two calls, unless a `cache` was granted.
    The shape is that of the moment the array was opened; `refresh` looks again.

    Ctrl-C takes effect between chunks: a read or write ends when each thread is done with the chunk it is at.

    Examples
    --------
    >>> import zcore
    >>> a = zcore.create_array(zcore.MemoryStore(), shape=(4, 6), chunks=(2, 3), dtype="i4")
    >>> a[1:3, ::2] = 7
    >>> a[:, 2]
    array([0, 7, 7, 0], dtype=int32)
    >>> a[[2, 0], 1:4]
    array([[0, 7, 0],
           [0, 0, 0]], dtype=int32)
    >>> a.nchunks, a.nchunks_initialized
    (4, 4)
    """

    __slots__ = ()

    @DescribedArray.shape.setter
    def shape(self, shape):
        self.resize(shape)

    # reading

    def __getitem__(self, selection):
        """Return the selected elements as NumPy does: a new ndarray; one that integers select alone as a scalar.

        Parameters
        ----------
        selection : object
            All that NumPy takes: integers, slices with any step, ..., newaxis, lists, arrays, masks; names of fields,
            also together with these. Each chunk is decoded once, whatever the order of the indices.

        Raises
        ------
        SelectionError
            The selection does not fit the array; it is an IndexError.
        ValueError, KeyError, TypeError
            As NumPy: a step of 0, a ragged list, an unknown field.
        OutOfMemoryError, ChunkError, StoreError
            See `read`.

        Notes
        -----
        NumPy, "Indexing on ndarrays": the shape of the result is that of the same selection of an ndarray.
        """
        elements = self._binding.elements
        if elements is not None and (element := elements.get(selection)) is not None:
            return element
        box = basic(selection, self.shape)
        if box is None:
            box, fields = self._selected(selection)
            out = self._get(box, fields)
            return out[()] if box.is_element else out
        out = allocated(box.shape, self.dtype)
        self._read(box, out)
        return out[()] if box.is_element else out

    def read(self, selection=..., out=None):
        """Return the selected elements, in `out` if that is given.

        Parameters
        ----------
        selection : object
            As in brackets.
        out : buffer, optional
            Writable, of the selection's shape and type; any strides. Elements of a whole chunk are decoded straight
            into it where they lie in it as in the chunk.

        Raises
        ------
        SelectionError
            The selection does not fit the array.
        ValueError, TypeError
            `out` has another shape or type, or is not writable.
        OutOfMemoryError
            The result does not fit into memory; it is a MemoryError.
        ChunkError
            An object is damaged, or absent with ``missing="raise"``.
        StoreError
            An object may be there and could not be read.

        Examples
        --------
        >>> import zcore
        >>> a = zcore.array([[1, 2, 3], [4, 5, 6]])
        >>> out = np.zeros(2, a.dtype)
        >>> a.read((slice(None), 1), out=out) is out, out
        (True, array([2, 5]))
        """
        return self._get(*self._selected(selection), out)

    def read_direct(self, dest, source_sel=None, dest_sel=None):
        """Read into a part of an ndarray, as h5py's datasets do: values are cast to its type.

        Parameters
        ----------
        dest : ndarray
            Of any strides. Where it has the array's type, and `dest_sel` names a view of it, elements are decoded
            straight into it.
        source_sel, dest_sel : object, optional
            What of the array is read, and where to; by default all. The first must broadcast to the second.

        Raises
        ------
        SelectionError, OutOfMemoryError, ChunkError, StoreError
            See `read`.
        ValueError, TypeError
            What NumPy raises where shapes do not fit, or `dest` is not writable.

        Examples
        --------
        >>> import zcore
        >>> a = zcore.array([[1, 2, 3], [4, 5, 6]])
        >>> frames = np.zeros((2, 3))
        >>> a.read_direct(frames, np.s_[1], np.s_[0])
        >>> frames
        array([[4., 5., 6.],
               [0., 0., 0.]])
        """
        source = ... if source_sel is None else source_sel
        place = dest[... if dest_sel is None else dest_sel]
        selected, fields = self._selected(source)
        if (fields is None and isinstance(place, np.ndarray) and np.may_share_memory(place, dest)
                and place.dtype == self.dtype and place.shape == selected.shape):
            self._get(selected, None, place)
        else:
            dest[... if dest_sel is None else dest_sel] = self._get(selected, fields)

    def write_direct(self, source, source_sel=None, dest_sel=None):
        """Write a part of an ndarray, as h5py's datasets do.

        Parameters
        ----------
        source : ndarray
        source_sel, dest_sel : object, optional
            What of it is written, and where to in the array; by default all.

        Raises
        ------
        SelectionError, ReadOnlyError, ChunkError, StoreError, LockError
            See `__setitem__`.
        """
        self[... if dest_sel is None else dest_sel] = source[... if source_sel is None else source_sel]

    def astype(self, dtype):
        """Return a view that reads the array as elements of another type: `zcore.casted.Casted`.

        Parameters
        ----------
        dtype : object
            What `numpy.dtype` takes.

        Examples
        --------
        >>> import zcore
        >>> zcore.array([1, 2, 3]).astype("f4")[1:]
        array([2., 3.], dtype=float32)
        """
        from zcore.casted import Casted

        return Casted(self, dtype)

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("an array in a store cannot become a NumPy array without a copy")
        out = self[...]
        return out if dtype is None else out.astype(dtype, copy=False)

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self):
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return chain.from_iterable(self._slabs())

    def _slabs(self):
        """Yield the array in rows of chunks: a chunk is decoded once, however many rows of elements it has."""
        view = self._binding.view
        shape, inner_shape = view.metadata.shape, view.chain.inner_shape
        n_rows = (inner_shape or view.metadata.chunk_shape)[0]
        unequal = view.metadata.edges[0] if inner_shape is None and view.metadata.edges is not None else None
        start = i = 0
        while start < shape[0]:
            stop = start + n_rows if unequal is None else sum(unequal.place(i))
            yield self[start:stop]
            start, i = stop, i + 1

    def __contains__(self, value):
        """Whether an element equals `value`, as in NumPy; reads a row of chunks at a time until one does."""
        if np.ndim(value) or not self.shape:
            return value in self[...]
        return any(value in slab for slab in self._slabs())

    def __bool__(self):
        if self.size > 1:
            raise ValueError("the truth value of an array of several elements is ambiguous: `a.size`, `a[...].any()` "
                             "or `a[...].all()` says what is meant")
        return bool(self[...])

    # writing

    def __setitem__(self, selection, values):
        """Write values to the selected elements, broadcast and cast by NumPy's rules.

        Every stored object is replaced atomically and, unless the array was opened with ``lock=None``, under its lock.
        An error leaves what was replaced before it.

        Parameters
        ----------
        selection : object
            As for reading. Of an element that is named several times the last value stays.
        values : object
            What NumPy would take, or an `Array`, which is read whole.

        Raises
        ------
        SelectionError
            The selection does not fit the array.
        ValueError, TypeError, OverflowError
            What NumPy raises where the shapes do not fit, or the type does not hold a value.
        ReadOnlyError
            The array was opened for reading.
        ChunkError, StoreError, LockError
            An object could not be read, encoded, locked or stored.
        """
        self._binding.check_writable()
        box, fields = self._selected(selection)
        self._set(box, read_whole(values), fields)

    def write(self, selection, values):
        """Write values, also from the memory of any object with a buffer; see `__setitem__`.

        Of an array of the stored type nothing is copied as a whole, whatever its strides.

        Parameters
        ----------
        selection : object
            As in brackets.
        values : object
            What NumPy would take, a buffer such as a memoryview, or an `Array`, which is read whole.
        """
        self[selection] = values if isinstance(values, (np.ndarray, DescribedArray)) else _of_buffer(values)

    def resize(self, *shape):
        """Change the shape; elements that stay keep their values, new ones have the fill value.

        Parameters
        ----------
        *shape : int, or one tuple of int

        Raises
        ------
        ValueError
            Another number of dimensions, or a negative length.
        TypeError
            A length is no integer.
        ReadOnlyError
            The array was opened for reading.

        Examples
        --------
        >>> import zcore
        >>> a = zcore.array([1, 2, 3])
        >>> a.resize(5)
        >>> a[...]
        array([1, 2, 3, 0, 0])
        """
        self._binding.check_writable()
        lifecycle.resize(self._binding, shape_of(shape[0] if len(shape) == 1 else shape))

    def append(self, data, axis=0):
        """Add elements behind the last ones along `axis`; returns the new shape.

        Appends of several threads and processes come one after the other, each whole: a reader, or a kill, sees the
        old length or the new one. A handle that was opened before sees the new one after `refresh`.

        Parameters
        ----------
        data : array_like
            Of the array's shape in all other dimensions; one frame for a stack is ``frame[None]``.
        axis : int
            Negative ones count from the last.

        Raises
        ------
        ValueError
            `data` does not have the array's shape in the other dimensions, or there is no such axis.
        ReadOnlyError
            The array was opened for reading.

        Examples
        --------
        >>> import zcore
        >>> stack = zcore.create_array(zcore.MemoryStore(), shape=(0, 2, 2), chunks=(1, 2, 2), dtype="u1")
        >>> stack.append(np.full((1, 2, 2), 7))
        (1, 2, 2)
        """
        self._binding.check_writable()
        if isinstance(axis, bool) or not hasattr(axis, "__index__"):
            raise TypeError(f"axis is {axis!r:.60}, expected an integer")
        if not -self.ndim <= axis < self.ndim:
            raise ValueError(f"axis is {axis}, the array has {self.ndim} dimensions")
        return lifecycle.append(self._binding, cast_to(read_whole(data), self.dtype), axis % self.ndim)


def _of_buffer(values):
    """Return what has a buffer as an ndarray that shares it, anything else as it is."""
    try:
        return np.asarray(memoryview(values))
    except TypeError:
        return values
