"""The array that the user holds: NumPy's manners over a `Binding`."""
import math
from itertools import chain

import numpy as np

from zcore import lifecycle
from zcore.assignment import assigned, cast_to
from zcore.engine import Binding
from zcore.errors import OutOfMemoryError, UnsupportedError, ZcoreError
from zcore.handles import Handle
from zcore.info import Info
from zcore.model.chunk_grid import chunk_sizes, shown_chunks
from zcore.options import Options
from zcore.selection import basic


class Array(Handle):
    """A chunked array in a store.

    Made by `zcore.open` and `zcore.create_array`. Indexing reads and writes as a NumPy array does; nothing is kept in
    memory between two calls. The shape is that of the moment the array was opened; `refresh` looks again.

    Ctrl-C takes effect between chunks: a read or write ends when each thread is done with the chunk it is at.

    Examples
    --------
    >>> import zcore
    >>> a = zcore.create_array(zcore.MemoryStore(), shape=(4, 6), chunks=(2, 3), dtype="i4", zarr_format="zmeta")
    >>> a[1:3, ::2] = 7
    >>> a[:, 2]
    array([0, 7, 7, 0], dtype=int32)
    >>> a.nchunks, a.nchunks_initialized
    (4, 4)
    """

    __slots__ = ()

    # what it is

    @property
    def shape(self):
        """Elements per dimension, a tuple of int; assigning resizes the array."""
        return self._binding.metadata.shape

    @shape.setter
    def shape(self, shape):
        self.resize(shape)

    @property
    def dtype(self):
        """Type of the elements, a numpy.dtype, byte order included."""
        return self._binding.metadata.dtype

    @property
    def ndim(self):
        """Number of dimensions."""
        return len(self._binding.metadata.shape)

    @property
    def size(self):
        """Number of elements."""
        return self._binding.metadata.size

    @property
    def itemsize(self):
        """Bytes of an element."""
        return self._binding.metadata.itemsize

    @property
    def nbytes(self):
        """Bytes of all elements, decoded."""
        return self._binding.metadata.nbytes

    @property
    def chunks(self):
        """Elements of a chunk per dimension; in an array of shards, of what they are cut into.

        Raises
        ------
        UnsupportedError
            The chunks differ in shape; `read_chunk_sizes` has them all. It is a NotImplementedError, as in zarr-python.
        """
        view = self._binding.view
        return self._one_shape("chunks") if view.chain.shards is None else view.chain.shards.chunk_shape

    @property
    def shards(self):
        """Elements of a shard per dimension; None for an array without shards.

        Raises
        ------
        UnsupportedError
            The shards differ in shape; `write_chunk_sizes` has them all. It is a NotImplementedError, as in
            zarr-python.
        """
        return None if self._binding.chain.shards is None else self._one_shape("shards")

    def _one_shape(self, what):
        metadata = self._binding.metadata
        if metadata.edges is not None:
            raise UnsupportedError(f"the {what} of this array differ in shape; read_chunk_sizes and write_chunk_sizes "
                                   "have them all", feature=f"{what} of a rectilinear grid")
        return metadata.chunk_shape

    @property
    def read_chunk_sizes(self):
        """Elements of each chunk, a tuple for each dimension, as dask has them; border chunks are cut at the border.

        In an array of shards, of what they are cut into.

        Raises : OutOfMemoryError, if there are more than 2**24 chunks along a dimension.
        """
        view = self._binding.view
        if view.chain.shards is None:
            return self.write_chunk_sizes
        return chunk_sizes(view.metadata.shape, view.chain.shards.chunk_shape)

    @property
    def write_chunk_sizes(self):
        """The same of each stored object: of shards, where the array has these.

        Raises : OutOfMemoryError, if there are more than 2**24 objects along a dimension.
        """
        metadata = self._binding.metadata
        return chunk_sizes(metadata.shape, metadata.chunk_shape, metadata.edges)

    @property
    def fill_value(self):
        """Value of elements never written; None when the document leaves it undefined (they read as zero)."""
        return self._binding.metadata.fill_value

    @property
    def order(self):
        """Order of the elements in a chunk: ``"C"``, ``"F"`` where the dimensions are reversed, None for any other."""
        order = self._binding.chain.order
        if order is None:
            return "C"
        return "F" if tuple(order) == tuple(range(self.ndim))[::-1] else None

    @property
    def dimension_names(self):
        """A str or None for each dimension; None for an array without names."""
        return self._binding.metadata.dimension_names

    @property
    def codecs(self):
        """The codecs of the chain, from array to bytes."""
        return self._binding.chain.codecs

    @property
    def lock(self):
        """Whether objects are locked while they are replaced."""
        return self._binding.options.lock

    @property
    def missing(self):
        """What an absent object is: ``"fill"`` or ``"raise"``."""
        return self._binding.options.missing

    @property
    def threads(self):
        """Threads of a read or write; None for `zcore.config.threads`."""
        return self._binding.options.threads

    @property
    def strict(self):
        """Whether what the formats forbid is refused where it could be read."""
        return self._binding.options.strict

    @property
    def cdata_shape(self):
        """Chunks per dimension; in an array of shards, of what they are cut into."""
        view = self._binding.view
        if view.chain.shards is None:
            return view.metadata.grid_shape
        return tuple([-(-length // chunk) for length, chunk
                      in zip(view.metadata.shape, view.chain.shards.chunk_shape, strict=True)])

    @property
    def nchunks(self):
        """Chunks of the grid, stored or not."""
        return math.prod(self.cdata_shape)

    @property
    def nchunks_initialized(self):
        """Chunks of the grid whose object exists, all chunks of a shard that does; costs a listing."""
        view = self._binding.view
        metadata, shards = view.metadata, view.chain.shards
        if shards is None:
            return self._n_objects()
        if metadata.edges is None:
            return self._n_objects() * shards.n_chunks
        chunk_nitems = math.prod(shards.chunk_shape)
        return sum([math.prod(metadata.place_of(coords)[1]) // chunk_nitems for coords in self._stored()])

    def _n_objects(self):
        return sum([1 for _ in self._stored()])

    def _stored(self):
        """Iterate over the coordinates of the objects that exist and lie in the grid."""
        grid = self._binding.metadata.grid_shape
        return (coords for _, coords in self._binding.stored_chunks()
                if all([i < n for i, n in zip(coords, grid, strict=True)]))

    @property
    def nbytes_stored(self):
        """Bytes of all objects of the array, documents included; costs a listing."""
        return self._binding.store.getsize_prefix(self._binding.prefix)

    # reading

    def __getitem__(self, selection):
        """Return the selected elements as a new ndarray; one that integers select alone as a scalar.

        Parameters
        ----------
        selection : int, slice with any step, ..., or a tuple of these

        Raises
        ------
        SelectionError
            The selection does not fit the array; it is an IndexError.
        UnsupportedError
            It is by lists, masks, new axes or field names.
        OutOfMemoryError, ChunkError, StoreError
            See `read`.
        """
        box = basic(selection, self.shape)
        out = _allocated(box.shape, self.dtype)
        self._read(box, out)
        return out[()] if box.is_element else out

    def read(self, selection=..., out=None):
        """Return the selected elements, in `out` if that is given.

        Parameters
        ----------
        selection : int, slice, ..., or a tuple of these
        out : ndarray, optional
            Writable, of the selection's shape and the array's type; any strides. Elements of a whole chunk are decoded
            straight into it where they lie in it as in the chunk.

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
        """
        box = basic(selection, self.shape)
        if out is None:
            out = _allocated(box.shape, self.dtype)
        else:
            if not isinstance(out, np.ndarray):
                raise TypeError(f"out is {type(out).__name__}, expected numpy.ndarray")
            if out.shape != box.shape:
                raise ValueError(f"out has shape {out.shape}, the selection {box.shape}")
            if out.dtype != self.dtype:
                raise TypeError(f"out has type {out.dtype}, the array {self.dtype}")
            if not out.flags.writeable:
                raise ValueError("out is not writable")
        self._read(box, out)
        return out

    def _read(self, box, out):
        out = np.asarray(out)
        try:
            self._binding.read(box, out if box.expand is None else out[box.expand])
        except ZcoreError as error:
            error.locate(self._binding.describe())
            raise

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
        shape, shards = view.metadata.shape, view.chain.shards
        n_rows = (view.metadata.chunk_shape if shards is None else shards.chunk_shape)[0]
        unequal = view.metadata.edges[0] if shards is None and view.metadata.edges is not None else None
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
        selection : int, slice with any step, ..., or a tuple of these
        values : object
            What NumPy would take, or an `Array`, which is read whole.

        Raises
        ------
        SelectionError, UnsupportedError
            As for reading.
        ValueError, TypeError, OverflowError
            What NumPy raises where the shapes do not fit, or the type does not hold a value.
        ReadOnlyError
            The array was opened for reading.
        ChunkError, StoreError, LockError
            An object could not be read, encoded, locked or stored.
        """
        self._binding.check_writable()
        box = basic(selection, self.shape)
        values = assigned(_read_whole(values), self.dtype, box.shape, box.is_element)
        if box.expand is not None:
            values = values[box.expand]
        try:
            self._binding.write(box, values)
        except ZcoreError as error:
            error.locate(self._binding.describe())
            raise

    def resize(self, *shape):
        """Change the shape; elements that stay keep their values, new ones have the fill value.

        Parameters
        ----------
        *shape : int, or one tuple of int

        Raises
        ------
        ValueError
            Another number of dimensions, or a negative length.
        """
        self._binding.check_writable()
        lifecycle.resize(self._binding, shape[0] if len(shape) == 1 and np.iterable(shape[0]) else shape)

    def append(self, data, axis=0):
        """Add elements behind the last ones along `axis`; returns the new shape.

        Appends of several threads and processes come one after the other, each whole: a reader, or a kill, sees the
        old length or the new one.

        Raises
        ------
        ValueError
            `data` does not have the array's shape in the other dimensions.
        """
        self._binding.check_writable()
        if not -self.ndim <= axis < self.ndim:
            raise ValueError(f"axis is {axis}, the array has {self.ndim} dimensions")
        return lifecycle.append(self._binding, cast_to(_read_whole(data), self.dtype), axis % self.ndim)

    # manners

    def __reduce__(self):
        binding = self._binding
        return _reopen, (binding.store, binding.path, binding.format.name, binding.options.as_keywords())

    def _described(self):
        chunks, objects = self._shown_shapes()
        shards = "" if self._binding.chain.shards is None else f", shards {objects}"
        return f" {self.shape} {_type_name(self.dtype)}, chunks {chunks}{shards}"

    def _shown_shapes(self):
        """Return the shapes of chunks and of stored objects, for people."""
        view = self._binding.view
        objects = shown_chunks(view.metadata.chunk_shape, view.metadata.edges)
        return (objects if view.chain.shards is None else shown_chunks(view.chain.shards.chunk_shape)), objects

    @property
    def info(self):
        """A description in several lines, an `Info`, objects counted; costs a listing."""
        metadata = self.metadata
        chunks, objects = self._shown_shapes()
        stored = self.nbytes_stored
        ratio = f" (ratio {metadata.nbytes / stored:.1f})" if stored else ""
        return Info({
            "path": self.name,
            "store": repr(self.store),
            "format": metadata.zarr_format,
            "shape": f"{metadata.shape} = {metadata.size} elements",
            "type": _type_name(metadata.dtype),
            "fill value": metadata.fill_value,
            "chunks": chunks,
            "objects": f"{'' if self._binding.chain.shards is None else 'shards of '}{objects}, {metadata.n_chunks} in "
                       f"a grid of {metadata.grid_shape}, {self._n_objects()} stored",
            "codecs": ", ".join(map(repr, self.codecs)),
            "bytes": f"{metadata.nbytes} decoded, {stored} stored{ratio}",
        })


def _type_name(dtype):
    return str(dtype) if dtype.names is None else str(dtype.descr)


def _allocated(shape, dtype):
    """Return an array for a result; its size may come from a document that nobody has to believe."""
    try:
        return np.empty(shape, dtype)
    except (MemoryError, ValueError) as exc:
        nbytes = math.prod(shape) * dtype.itemsize
        raise OutOfMemoryError(f"no memory for the {nbytes} bytes of a result of shape {shape} and type "
                               f"{_type_name(dtype)}", nbytes=nbytes) from exc


def _read_whole(values):
    """Return what an array of zcore holds, anything else as it is."""
    return values[...] if isinstance(values, Array) else values


def _reopen(store, path, format_name, keywords):
    from zcore.formats import format_of

    return Array(Binding(store, path, format_of(format_name), Options(**keywords)))
