"""The ways of selecting that zarr-python has beside brackets: named methods, and oindex, vindex, blocks."""
from zcore.elements import ElementArray
from zcore.errors import SelectionError
from zcore.fields import fields_argument, split_fields
from zcore.kernel.selection import basic


class SelectedArray(ElementArray):
    """An array with zarr-python's methods of selection.

    All of them take `fields`, a name or a list of names of a structured type: only these are read or changed. `out` is
    memory for the result, of its shape and type; values are broadcast and cast as in brackets. Errors are those of
    `Array.read`, and of ``array[selection] = values``. The rules are zarr-python's ("Advanced indexing").
    """

    __slots__ = ()

    def get_basic_selection(self, selection=..., *, out=None, fields=None):
        """Return what integers, slices and an ellipsis select.

        Parameters
        ----------
        selection : int, slice, Ellipsis or tuple of these
        out : buffer, optional
            Memory for the result, of its shape and type; see `zcore.Array.read`.
        fields : str or list of str, optional
            Of a structured type: only these are read.

        Raises
        ------
        SelectionError
            The selection does not fit, or is of another kind.
        ValueError, TypeError, OutOfMemoryError, ChunkError, StoreError
            See `zcore.Array.read`.
        """
        return self._get_named(_basic(selection, self.shape), out, fields)

    def set_basic_selection(self, selection, value, *, fields=None):
        """Write to what integers, slices and an ellipsis select.

        Parameters
        ----------
        selection : int, slice, Ellipsis or tuple of these
        value : object
            What NumPy would take, or an `Array`, which is read whole; broadcast and cast by NumPy's rules.
        fields : str or list of str, optional
            Of a structured type: only these are changed.

        Raises
        ------
        SelectionError
            The selection does not fit, or is of another kind.
        ValueError, TypeError, OverflowError, ReadOnlyError, ChunkError, StoreError, LockError
            As ``array[selection] = value`` does.
        """
        self._set_named(_basic(selection, self.shape), value, fields)

    def get_orthogonal_selection(self, selection, *, out=None, fields=None):
        """Return the product of what slices, lists and masks of one dimension select, each by itself.

        `selection` has one of these, or an integer, for each dimension; `out`, `fields` and errors are those of
        `get_basic_selection`.

        >>> import zcore
        >>> zcore.array([[1, 2, 3], [4, 5, 6]]).get_orthogonal_selection(([1, 0], [0, 2]))
        array([[4, 6],
               [1, 3]])
        """
        return self._get_named(self._product("orthogonal", selection), out, fields)

    def set_orthogonal_selection(self, selection, value, *, fields=None):
        """Write to the product of what slices, lists and masks of one dimension select, each by itself.

        `selection` as for `get_orthogonal_selection`; `value`, `fields` and errors as for `set_basic_selection`.
        """
        self._set_named(self._product("orthogonal", selection), value, fields)

    def get_coordinate_selection(self, selection, *, out=None, fields=None):
        """Return the elements at points, in the shape to which their indices are broadcast.

        `selection` has a list of indices, or an integer, for each dimension; `out`, `fields` and errors are those of
        `get_basic_selection`.

        >>> import zcore
        >>> zcore.array([[1, 2, 3], [4, 5, 6]]).get_coordinate_selection(([1, 0], [0, 2]))
        array([4, 3])
        """
        return self._get_named(self._product("coordinates", selection), out, fields)

    def set_coordinate_selection(self, selection, value, *, fields=None):
        """Write to the elements at points; of an element that is named twice, the last value stays.

        `selection` as for `get_coordinate_selection`; `value`, `fields` and errors as for `set_basic_selection`.
        """
        self._set_named(self._product("coordinates", selection), value, fields)

    def get_mask_selection(self, mask, *, out=None, fields=None):
        """Return the elements where a mask of the array's shape is true, in one dimension and C order.

        `out`, `fields` and errors are those of `get_basic_selection`.

        >>> import zcore
        >>> a = zcore.array([[1, 2, 3], [4, 5, 6]])
        >>> a.get_mask_selection(a[...] > 4)
        array([5, 6])
        """
        return self._get_named(self._product("masked", mask), out, fields)

    def set_mask_selection(self, mask, value, *, fields=None):
        """Write to the elements where a mask of the array's shape is true.

        `value`, `fields` and errors as for `set_basic_selection`.
        """
        self._set_named(self._product("masked", mask), value, fields)

    def get_block_selection(self, selection, *, out=None, fields=None):
        """Return blocks: integers and slices count stored objects, chunks or shards; no dimension is dropped.

        `selection` has one of them for each dimension, slices of step 1; `out`, `fields` and errors are those of
        `get_basic_selection`.

        >>> import zcore
        >>> zcore.array([[1, 2, 3], [4, 5, 6]], chunks=(1, 2)).get_block_selection((1, 0))
        array([[4, 5]])
        """
        return self._get_named(self._blocks(selection), out, fields)

    def set_block_selection(self, selection, value, *, fields=None):
        """Write blocks.

        `selection` as for `get_block_selection`; `value`, `fields` and errors as for `set_basic_selection`.
        """
        self._set_named(self._blocks(selection), value, fields)

    @property
    def oindex(self):
        """Orthogonal selection by brackets, to read and to write: ``a.oindex[[3, 1], :, [0, 2]]``."""
        return _Indexer(self, lambda selection: self._product("orthogonal", selection))

    @property
    def vindex(self):
        """Selection of points by brackets, to read and to write: ``a.vindex[[3, 1], [0, 2]]``, or of a mask."""
        return _Indexer(self, lambda selection: self._product("points", selection))

    @property
    def blocks(self):
        """Selection of stored objects by brackets, to read and to write: ``a.blocks[0, 1:]``."""
        return _Indexer(self, self._blocks)

    def _product(self, kind, selection):
        # Imported by those who select so.
        from zcore import selections

        return getattr(selections, kind)(selection, self.shape)

    def _blocks(self, selection):
        from zcore.selections import blocks

        return basic(blocks(selection, self._binding.metadata), self.shape)

    def _get_named(self, selected, out, fields):
        result = self._get(selected, fields_argument(fields, self.dtype), out, packed=True)
        return result[()] if selected.is_element and out is None else result

    def _set_named(self, selected, value, fields):
        self._binding.check_writable()
        self._set(selected, read_whole(value), fields_argument(fields, self.dtype))


class _Indexer:
    """Brackets with a meaning of their own."""

    __slots__ = ("_array", "_select")

    def __init__(self, array, select):
        self._array = array
        self._select = select

    def __getitem__(self, selection):
        fields, selection = split_fields(selection, self._array.dtype)
        return self._array._get_named(self._select(selection), None, fields)

    def __setitem__(self, selection, value):
        fields, selection = split_fields(selection, self._array.dtype)
        self._array._set_named(self._select(selection), value, fields)


def _basic(selection, shape):
    box = basic(selection, shape)
    if box is None:
        raise SelectionError("a basic selection consists of integers, slices and an ellipsis")
    return box


def read_whole(values):
    """Return what an array of zcore holds, anything else as it is."""
    return values[...] if isinstance(values, ElementArray) else values
