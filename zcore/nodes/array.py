"""`Array`, the user's handle on an open array, with NumPy's behaviour and the names of zarr-python and h5py.

Order of the methods: properties of the document; reading; writing; zarr-python's kinds of selection; display; and the
common end of all selections, one read or one write of the `ArrayBinding`. Names and meanings of properties are those of
zarr-python, except that codecs are always named as in Zarr v3.
"""
from __future__ import annotations

import math
import os
from contextlib import suppress
from functools import partial
from itertools import chain
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from zcore.buffers import may_overlap
from zcore.errors import OutOfMemoryError, SelectionError, UnsupportedError, ZcoreError
from zcore.hierarchy import resizing
from zcore.indexing.assign import assigned, cast_to
from zcore.indexing.fields import fields_argument, packed_type, part_of, split_fields, type_of
from zcore.kernel.select.box import Box, basic
from zcore.model.chunk_grid import chunk_regions, chunk_sizes, shown_chunks
from zcore.model.metadata import shape_of
from zcore.nodes.info import Info, type_name
from zcore.nodes.node import Node
from zcore.stores.directory.store import DirectoryStore
from zcore.text.arguments import integer_of
from zcore.text.tried_names import OF_ARRAY, add_tried, advising

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import EllipsisType
    from typing import Literal, Self, SupportsIndex, TypeVar

    import numpy.typing as npt

    from zcore.codecs.base import Codec
    from zcore.model.metadata import ArrayMetadata
    from zcore.nodes.astype import Casted
    from zcore.nodes.lazy import LazyIndexer
    from zcore.nodes.writer import Writer
    from zcore.typing import CacheSize, Elements, Fields, Memory, Missing, Selection, Shape

    _Out = TypeVar("_Out", bound=Memory)

# The C library takes memory of this size from the system, whose pages are zero, so zeros cost nothing.
_MIN_ZEROS = 1 << 25


class Array(Node):
    """A chunked array in a store.

    Made by `zcore.open` and `zcore.create_array`. Indexing reads and writes like indexing a NumPy array. Reading
    returns ndarrays; use these for arithmetic: ``a[...] + 1``. Without a `cache`, no element is kept in memory between
    two calls. The shape is that of the moment when the array was opened; `refresh` reads it again.

    Ctrl-C takes effect between chunks: a read or write ends when each thread has finished its chunk.

    ``a == b`` compares two handles: whether they lead to the same array. Elements are compared in memory, as in
    ``a[...] == 3``; ``a == 3`` is a TypeError. An array of one element is a number to `int`, `float` and `complex`; one
    of an integer without dimensions is an index, as in ``range(a)``.

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

    if TYPE_CHECKING:
        @property
        def metadata(self) -> ArrayMetadata: ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements per dimension, a tuple of int; assigning resizes the array."""
        return self._binding.metadata.shape

    @shape.setter
    def shape(self, shape: Shape) -> None:
        self.resize(shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements, a numpy.dtype with byte order."""
        return self._binding.metadata.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._binding.metadata.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._binding.metadata.size

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self._binding.metadata.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, decoded."""
        return self._binding.metadata.nbytes

    @property
    def chunks(self) -> tuple[int, ...]:
        """Elements of a chunk per dimension; with shards, of an inner chunk.

        Raises
        ------
        UnsupportedError
            The chunks differ in shape; `read_chunk_sizes` lists them. It is a NotImplementedError, as in zarr-python.
        """
        view = self._binding.view
        return self._one_shape("chunks") if view.chain.shards is None else view.chain.inner_shape

    @property
    def shards(self) -> tuple[int, ...] | None:
        """Elements of a shard per dimension; None for an array without shards.

        Raises
        ------
        UnsupportedError
            The shards differ in shape; `write_chunk_sizes` lists them. It is a NotImplementedError, as in zarr-python.
        """
        return None if self._binding.chain.shards is None else self._one_shape("shards")

    def _one_shape(self, what):
        metadata = self._binding.metadata
        if metadata.edges is not None:
            raise _NoOneShape(f"the {what} of this array differ in shape; read_chunk_sizes and write_chunk_sizes "
                                   "list them all", feature=f"{what} of a rectilinear grid")
        return metadata.chunk_shape

    @property
    def read_chunk_sizes(self) -> tuple[tuple[int, ...], ...]:
        """Elements of each chunk, a tuple for each dimension, as in dask; border chunks are cut at the border.

        With shards, of the inner chunks.

        Raises : OutOfMemoryError, if there are more than 2**24 chunks along a dimension.
        """
        return chunk_sizes(*self._grid())

    def _grid(self):
        """Return the shape, the chunk shape and the edges of chunks that are read alone: of those in shards, if any."""
        view = self._binding.view
        metadata, inner_shape = view.metadata, view.chain.inner_shape
        return metadata.shape, inner_shape or metadata.chunk_shape, None if inner_shape else metadata.edges

    @property
    def write_chunk_sizes(self) -> tuple[tuple[int, ...], ...]:
        """Elements of each stored object, in the form of `read_chunk_sizes`: of the shards, if there are any.

        Raises : OutOfMemoryError, if there are more than 2**24 objects along a dimension.
        """
        metadata = self._binding.metadata
        return chunk_sizes(metadata.shape, metadata.chunk_shape, metadata.edges)

    @property
    def fill_value(self) -> Any:
        """Value of elements never written; None if the document leaves it undefined.

        If it is undefined, they read as zero, as empty text or bytes, and, in Zarr v2, dates as not a time.
        """
        return self._binding.metadata.fill_value

    @property
    def order(self) -> Literal["C", "F"] | None:
        """Order of the elements in a chunk: ``"C"``, ``"F"`` if the dimensions are reversed, None for any other."""
        order = self._binding.chain.order
        if order is None:
            return "C"
        return "F" if tuple(order) == tuple(range(self.ndim))[::-1] else None

    @property
    def dimension_names(self) -> tuple[str | None, ...] | None:
        """A str or None for each dimension; None for an array without names."""
        return self._binding.metadata.dimension_names

    @property
    def codecs(self) -> tuple[Codec, ...]:
        """The codecs of a stored object, except `bytes`; the codecs of a chunk are the three below."""
        return self._binding.chain.codecs

    @property
    def filters(self) -> tuple[Codec, ...]:
        """The codecs of a chunk from array to array, a tuple; order F is one of them, `TransposeCodec`."""
        return tuple([codec for codec in self._chunk_chain.codecs if codec.kind == "array_array"])

    @property
    def serializer(self) -> Codec:
        """The codec of a chunk from array to bytes."""
        chain = self._chunk_chain
        found = [codec for codec in chain.codecs if codec.kind == "array_bytes"]
        return found[0] if found else chain.serializer

    @property
    def compressors(self) -> tuple[Codec, ...]:
        """The codecs of a chunk from bytes to bytes, a tuple.

        Without a CRC-32C at the end, which new arrays have by ``checksum=True``; `codecs` has it.
        """
        codecs = [codec for codec in self._chunk_chain.codecs if codec.kind == "bytes_bytes"]
        return tuple(codecs[:-1] if codecs and codecs[-1].name == "crc32c" else codecs)

    @property
    def compressor(self) -> Codec | None:
        """The first of `compressors`, or None: the name of zarr-python 2, whose arrays have one."""
        return next(iter(self.compressors), None)

    @property
    def _chunk_chain(self):
        chain = self._binding.chain
        return chain if chain.shards is None else chain.shards.chain

    @property
    def lock(self) -> bool:
        """Whether objects are locked while they are replaced."""
        return self._binding.options.lock is not None

    @property
    def missing(self) -> Missing:
        """Whether an absent object reads as the fill value or is an error: ``"fill"`` or ``"raise"``."""
        return self._binding.options.missing

    @property
    def threads(self) -> int | None:
        """Threads of a read or write; None for `zcore.config.threads`."""
        return self._binding.options.threads

    @property
    def strict(self) -> bool:
        """Whether to refuse files that can be read although the formats forbid them."""
        return self._binding.options.strict

    @property
    def cache(self) -> int | None:
        """Bytes of memory for decoded chunks; None for `zcore.config.cache`."""
        return self._binding.options.cache

    @property
    def config(self) -> ArrayConfig:
        """The options of the handle that zarr-python has, under its names."""
        options = self._binding.options
        return ArrayConfig("C", options.write_empty_chunks, options.missing == "fill")

    def with_config(self, config: Mapping[str, Any]) -> Self:
        """Return a handle on the same array with other `config`, as zarr-python calls it; see `zcore.open`."""
        binding = self._binding
        return type(self)(type(binding)(binding.store, binding.path, binding.format,
                                        binding.options.changed({"config": config}), binding.view))

    @property
    def cdata_shape(self) -> tuple[int, ...]:
        """Chunks per dimension; with shards, inner chunks."""
        view = self._binding.view
        if view.chain.shards is None:
            return view.metadata.grid_shape
        return tuple([-(-length // chunk) for length, chunk
                      in zip(view.metadata.shape, view.chain.inner_shape, strict=True)])

    def iter_chunks(self) -> Iterator[tuple[slice, ...]]:
        """Iterate over the chunks of the grid in C order: for each the slices that select it, cut at the border.

        >>> import zcore
        >>> a = zcore.create_array(zcore.MemoryStore(), shape=(3, 2), chunks=(2, 2), dtype="i4")
        >>> list(a.iter_chunks())
        [(slice(0, 2, 1), slice(0, 2, 1)), (slice(2, 3, 1), slice(0, 2, 1))]
        """
        return chunk_regions(*self._grid())

    @property
    def nchunks(self) -> int:
        """Number of chunks of the grid, stored or not."""
        return math.prod(self.cdata_shape)

    @property
    def nchunks_initialized(self) -> int:
        """Number of chunks of the grid whose object exists; counts all chunks of existing shards. Costs a listing."""
        view = self._binding.view
        metadata, inner_shape = view.metadata, view.chain.inner_shape
        if inner_shape is None:
            return self._n_objects()
        n_items = math.prod(inner_shape)
        return sum([math.prod(metadata.place_of(coords)[1]) // n_items for _, coords in self._binding.stored_chunks()])

    def _n_objects(self):
        return sum([1 for _ in self._binding.stored_chunks()])

    def nbytes_stored(self) -> int:
        """Return the bytes of all objects of the array, documents included; costs a listing."""
        return self._binding.store.getsize_prefix(self._binding.prefix)

    # reading

    # In the order of NumPy's own types: an ndarray has `__index__`, too.

    @overload
    def __getitem__(
        self, selection: slice | EllipsisType | npt.NDArray[Any] | list[Any] | None
    ) -> npt.NDArray[Any]: ...

    @overload
    def __getitem__(self, selection: SupportsIndex | tuple[SupportsIndex, ...]) -> Any: ...

    @overload
    def __getitem__(self, selection: Selection) -> npt.NDArray[Any]: ...

    def __getitem__(self, selection):
        """Return the selected elements as NumPy does: a new ndarray, or a scalar if only integers select it.

        Parameters
        ----------
        selection : object
            Everything that NumPy accepts: integers, slices with any step, ..., newaxis, lists, arrays, masks; names of
            fields, also together with these. Each chunk is decoded once, in any order of the indices.

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
        small = self._binding.small
        if small is not None and (result := small.get(selection)) is not None:
            return result
        box = basic(selection, self.shape)
        if box is None:
            box, fields = self._selected(selection)
            out = self._get(box, fields)
            return out[()] if box.is_element else out
        out = allocated(box.shape, self.dtype)
        self._read(box, out, is_new=True)
        return out[()] if box.is_element else out

    @overload
    def read(self, selection: Selection = ..., out: None = None) -> npt.NDArray[Any]: ...

    @overload
    def read(self, selection: Selection, out: _Out) -> _Out: ...

    @overload
    def read(self, selection: Selection = ..., *, out: _Out) -> _Out: ...

    def read(self, selection=..., out=None):
        """Return the selected elements, in `out` if given.

        Parameters
        ----------
        selection : object
            As in brackets.
        out : buffer, optional
            Writable, of the selection's shape and type; any strides that keep elements apart. Whole chunks are decoded
            directly into it if the layout of their elements is the same.

        Raises
        ------
        SelectionError
            The selection does not fit the array.
        ValueError, TypeError
            `out` has another shape or type, is not writable, or its elements overlap in memory.
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

    @overload
    async def async_read(self, selection: Selection = ..., out: None = None) -> npt.NDArray[Any]: ...

    @overload
    async def async_read(self, selection: Selection, out: _Out) -> _Out: ...

    @overload
    async def async_read(self, selection: Selection = ..., *, out: _Out) -> _Out: ...

    async def async_read(self, selection=..., out=None):
        """Return the selected elements, in `out` if given, like `read`; other coroutines run meanwhile.

        The elements are read by threads: ``await asyncio.gather(a.async_read(0), b.async_read(0))`` reads from both.
        If the task is cancelled, the read stops as by Ctrl-C, when each thread has finished its chunk. Requests to a
        service are abandoned. The task ends only after that, so `out` is no longer written to.

        Parameters
        ----------
        selection : object
            As in brackets.
        out : buffer, optional
            As for `read`. After a cancelled or failed read it may have some of the elements.

        Raises
        ------
        SelectionError, ValueError, TypeError, OutOfMemoryError, ChunkError, StoreError
            See `read`.

        Examples
        --------
        >>> import asyncio
        >>> import zcore
        >>> a = zcore.array([[1, 2, 3], [4, 5, 6]])
        >>> asyncio.run(a.async_read(np.s_[:, 1]))
        array([2, 5])
        """
        from zcore.nodes.awaited import awaited

        return await awaited(partial(self.read, selection, out))

    @overload
    def read_many(self, selections: Iterable[Selection] | npt.ArrayLike, out: None = None, *,
                  shape: Shape | None = None) -> npt.NDArray[Any]: ...

    @overload
    def read_many(self, selections: Iterable[Selection] | npt.ArrayLike, out: _Out, *,
                  shape: Shape | None = None) -> _Out: ...

    def read_many(self, selections, out=None, *, shape=None):
        """Return many parts of one shape, stacked; a chunk that several of them need is decoded once.

        For minibatches: returns ``numpy.stack([a[selection] for selection in selections])``, with one read.

        Parameters
        ----------
        selections : iterable
            Of integers, slices and ``...``, each as in brackets. The results must have one shape.
        out : buffer, optional
            Writable, of shape ``(number of selections, *shape of each)`` and the array's type; see `read`.
        shape : tuple of int, optional
            Then `selections` are the first elements of boxes of this shape: integers of shape (n, ndim), none of them
            negative. With 100 000 boxes this is several times as fast.

        Raises
        ------
        SelectionError
            A selection does not fit the array, is of another kind, or has another shape than the first one. The message
            begins with its number.
        ValueError, TypeError
            `out` does not fit, as in `read`; or there are neither selections nor `out`, so the shape is unknown.
        OutOfMemoryError, ChunkError, StoreError
            See `read`.

        Examples
        --------
        >>> import zcore
        >>> a = zcore.array(np.arange(12).reshape(3, 4))
        >>> a.read_many([np.s_[0, :2], np.s_[2, 1:3], np.s_[2, ::-3]])
        array([[ 0,  1],
               [ 9, 10],
               [11,  8]])
        >>> a.read_many([[0, 0], [2, 1]], shape=(1, 3))
        array([[[ 0,  1,  2]],
        <BLANKLINE>
               [[ 9, 10, 11]]])
        """
        if shape is None:
            boxes = _boxes(list(selections), self.shape)
            if not boxes and out is None:
                raise ValueError("without selections the shape of the result is not known, unless out is given")
            shape = (len(boxes), *(boxes[0].shape if boxes else np.shape(out)[1:]))
        else:
            boxes, counts = _starts(selections, shape, self.shape)
            shape = (len(boxes), *counts)
        place = allocated(shape, self.dtype) if out is None else _checked_out(out, shape, self.dtype)
        if not self.shape:
            place[...] = self.read()
        elif place.size:
            from zcore.kernel.select.points import Boxes

            try:
                self._binding.read(Boxes(boxes) if isinstance(boxes, list) else Boxes.at(boxes, counts), place)
            except ZcoreError as error:
                error.locate(self._binding.describe())
                raise
        return place if out is None else out

    def read_direct(self, dest: npt.NDArray[Any], source_sel: Selection = None, dest_sel: Selection = None) -> None:
        """Read into a part of an ndarray, as h5py's datasets do: values are cast to its type.

        Parameters
        ----------
        dest : ndarray
            Of any strides. If it has the array's type, and `dest_sel` selects a view of it, elements are decoded
            directly into it.
        source_sel, dest_sel : object, optional
            The part of the array to read, and its destination; by default all. The first must broadcast to the second.

        Raises
        ------
        SelectionError, OutOfMemoryError, ChunkError, StoreError
            See `read`.
        ValueError, TypeError
            As in NumPy, if shapes do not fit or `dest` is not writable; also if its elements overlap in memory.

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
            _check_apart(dest)
            dest[... if dest_sel is None else dest_sel] = self._get(selected, fields)

    def write_direct(self, source: npt.NDArray[Any], source_sel: Selection = None, dest_sel: Selection = None) -> None:
        """Write a part of an ndarray, as h5py's datasets do.

        Parameters
        ----------
        source : ndarray
        source_sel, dest_sel : object, optional
            The part of it to write, and its destination in the array; by default all.

        Raises
        ------
        SelectionError, ReadOnlyError, ChunkError, StoreError, LockError
            See `__setitem__`.
        """
        self[... if dest_sel is None else dest_sel] = source[... if source_sel is None else source_sel]

    def astype(self, dtype: npt.DTypeLike) -> Casted:
        """Return a view that reads the array as elements of another type: `zcore.nodes.astype.Casted`.

        Parameters
        ----------
        dtype : object
            Any argument of `numpy.dtype`.

        Examples
        --------
        >>> import zcore
        >>> zcore.array([1, 2, 3]).astype("f4")[1:]
        array([2., 3.], dtype=float32)
        """
        from zcore.nodes.astype import Casted

        return Casted(self, dtype)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("an array in a store cannot become a NumPy array without a copy")
        out = self[...]
        return out if dtype is None else out.astype(dtype, copy=False)

    def __fspath__(self) -> str:
        """Return the array's directory, for libraries that open it by zarr-python: ``dask.array.from_zarr(a)``.

        Raises : TypeError, if it is in no directory, or in a format that they do not read.
        """
        if type(self.store) is not DirectoryStore or not self._binding.format.is_standard:
            raise TypeError(f"{self!r} has no directory that zarr-python reads; zcore.zarr.array hands it on")
        return os.path.join(self.store.path, self.path) if self.path else self.store.path

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return chain.from_iterable(self._slabs())

    def _slabs(self):
        """Yield the array in rows of chunks, so that a chunk is decoded once for all of its rows of elements."""
        shape, chunk_shape, edges = self._grid()
        for rows, in chunk_regions(shape[:1], chunk_shape[:1], edges and edges[:1]):
            yield self[rows]

    def __contains__(self, value: object) -> bool:
        """Whether an element equals `value`, as in NumPy. Reads one row of chunks at a time, until one contains it."""
        if np.ndim(value) or not self.shape:
            return value in self[...]
        return any(value in slab for slab in self._slabs())

    def __bool__(self) -> bool:
        if self.size > 1:
            raise ValueError("the truth value of an array of several elements is ambiguous; use `a.size`, "
                             "`a[...].any()` or `a[...].all()`")
        return bool(self[...])

    def __int__(self) -> int:
        return int(self._item())

    def __float__(self) -> float:
        return float(self._item())

    def __complex__(self) -> complex:
        return complex(self._item())

    def __index__(self) -> int:
        """Return the integer of an array without dimensions, so that it can be an index, as in NumPy."""
        if self.shape:
            raise TypeError(f"an array of shape {self.shape} is no index; select one of its elements")
        return index(self[...])     # of an array, as NumPy's scalars of booleans were indices once

    def __format__(self, spec: str) -> str:
        """Return the element of an array without dimensions as the format says, as in NumPy; without one the `repr`."""
        return super().__format__(spec) if self.shape or not spec else format(self[()], spec)

    def _item(self):
        """Return the only element as an object of Python."""
        if self.size != 1:
            raise TypeError(f"an array of {self.size} elements is no number; select one of them")
        return self[...].item()

    def __dlpack__(self, **keywords: Any) -> Any:
        """Return a DLPack capsule of a copy in memory, for `numpy.from_dlpack`, `torch.from_dlpack` and others.

        Raises : BufferError, if DLPack does not have the type, or with ``copy=False``.
        """
        if keywords.get("copy") is False:
            raise BufferError("an array in a store has no memory to share; without copy=False it is read")
        return self.read().__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0     # kDLCPU

    def __eq__(self, other: object) -> bool:
        """Return whether two handles lead to the same array; see `Node`.

        Raises : TypeError, for numbers, lists and tuples of Python, as elements were meant: ``array[...] == 3``.
        """
        if isinstance(other, (int, float, complex, list, tuple)):
            raise TypeError(f"an array in a store is no {type(other).__name__}; to compare its elements, read them: "
                            f"a[...] == {other!r:.60}")
        return super().__eq__(other)

    def __hash__(self) -> int:
        return super().__hash__()

    # writing

    def __setitem__(self, selection: Selection, values: Elements) -> None:
        """Write values to the selected elements, broadcast and cast by NumPy's rules.

        Every stored object is replaced atomically and, unless the array was opened with ``lock=None``, under its lock.
        After an error, objects that were replaced before it stay replaced.

        Parameters
        ----------
        selection : object
            As for reading. If an element is selected several times, the last value stays.
        values : object
            Any value that NumPy takes, or an `Array`, which is read whole.

        Raises
        ------
        SelectionError
            The selection does not fit the array.
        ValueError, TypeError, OverflowError
            As in NumPy, if the shapes do not fit or the type does not hold a value.
        ReadOnlyError
            The array was opened for reading.
        ChunkError, StoreError, LockError
            An object could not be read, encoded, locked or stored.
        """
        self._binding.check_writable()
        box, fields = self._selected(selection)
        self._set(box, read_whole(values), fields)

    def write(self, selection: Selection, values: Elements) -> None:
        """Write values, also from the memory of any object with a buffer; see `__setitem__`.

        An array of the stored type is not copied as a whole, whatever its strides.

        Parameters
        ----------
        selection : object
            As in brackets.
        values : object
            Any value that NumPy takes, a buffer such as a memoryview, or an `Array`, which is read whole.
        """
        if not isinstance(values, (np.ndarray, Array)):
            with suppress(TypeError):     # it has no buffer
                values = np.asarray(memoryview(values))
        self[selection] = values

    @overload
    def resize(self, shape: Shape, /) -> None: ...

    @overload
    def resize(self, *shape: SupportsIndex, axis: SupportsIndex | None = None) -> None: ...

    @advising
    def resize(self, *shape, axis=None):
        """Change the shape. Remaining elements keep their values, new ones have the fill value.

        Parameters
        ----------
        *shape : int, or one tuple of int
        axis : int, optional
            Change this dimension alone, to the one int: ``resize(5, axis=0)``.

        Raises
        ------
        ValueError
            Another number of dimensions, a negative length, or there is no such axis.
        TypeError
            A length or `axis` is no integer. Or ``resize(n, 0)`` or ``resize(n, 1)`` of two dimensions would remove
            elements: h5py takes the second number for an axis.
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
        if axis is not None:
            if len(shape) != 1:
                raise TypeError(f"resize: expected one length with axis=, found {len(shape)}")
            (length,), shape = shape, list(self.shape)
            shape[self._axis(axis)] = length
        elif len(shape) == self.ndim == 2 and type(shape[1]) is int and shape[1] in (0, 1) and shape[1] < self.shape[1]:
            raise TypeError(f"resize{shape} would remove nearly all elements, and means an axis in h5py: write "
                            f"resize({shape[0]!r:.20}, axis={shape[1]}), or the shape as a tuple")
        resizing.resize(self._binding, shape_of(shape[0] if len(shape) == 1 else shape))

    def append(self, data: Elements, axis: SupportsIndex = 0) -> tuple[int, ...]:
        """Add elements at the end along `axis`; return the new shape.

        Appends of several threads and processes happen one after the other, each as a whole: a reader, or a kill, sees
        the old length or the new one. A handle that was opened before sees the new one after `refresh`. In a service,
        the document reserves the rows before they are written; until then, and after a kill, they have the fill value.

        Parameters
        ----------
        data : array_like
            Of the array's shape in all other dimensions. For one frame of a stack, pass ``frame[None]``.
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
        return resizing.append(self._binding, cast_to(read_whole(data), self.dtype), self._axis(axis))

    def writer(self, axis: SupportsIndex = 0, *, queue: CacheSize | None = None) -> Writer:
        """Return a `Writer`, which takes frames one by one and stores whole chunks or shards in the background.

        Parameters
        ----------
        axis : int
            The frames follow each other along this one; negative ones count from the last.
        queue : int or str, optional
            Bytes of frames that wait to be stored, such as ``"1 GiB"``; a call that gives more waits. By default
            64 MiB, or two rows of chunks or shards if that is more, up to 1 GiB. If a row is larger than the queue,
            its chunks are stored in parts.

        Raises
        ------
        ValueError, TypeError
            There is no such axis; the queue is no size.
        ReadOnlyError
            The array was opened for reading.

        Examples
        --------
        >>> import zcore
        >>> stack = zcore.create_array(zcore.MemoryStore(), shape=(0, 2, 2), chunks=(8, 2, 2), dtype="u2")
        >>> with stack.writer() as w:
        ...     for i in range(20):
        ...         w.append(np.full((2, 2), i, "u1"))
        >>> stack.shape
        (20, 2, 2)
        """
        from zcore.nodes.writer import Writer

        self._binding.check_writable()
        return Writer(self, self._axis(axis), queue)

    def _axis(self, axis):
        """Return a caller's axis as a number from 0 on."""
        number = axis if type(axis) is int else integer_of(axis)
        if number is None:
            raise TypeError(f"axis is {axis!r:.60}, expected an integer")
        axis, ndim = number, self.ndim
        if not -ndim <= axis < ndim:
            raise np.exceptions.AxisError(f"axis is {axis}, the array has the shape {self.shape}")
        return axis % ndim

    # zarr-python's kinds of selection
    #
    # All have `fields`, a name or a list of names of a structured type: only these fields are read or changed. `out` is
    # memory for the result, of its shape and type; values are broadcast and cast as in brackets. The rules are
    # zarr-python's ("Advanced indexing").

    def get_basic_selection(self, selection: Selection = ..., *, out: Memory | None = None,
                            fields: Fields | None = None) -> Any:
        """Return the elements selected by integers, slices and an ellipsis.

        Parameters
        ----------
        selection : int, slice, Ellipsis or tuple of these
        out : buffer, optional
            Memory for the result, of its shape and type; see `zcore.Array.read`.
        fields : str or list of str, optional
            Fields of a structured type: only these are read.

        Raises
        ------
        SelectionError
            The selection does not fit, or is of another kind.
        ValueError, TypeError, OutOfMemoryError, ChunkError, StoreError
            See `zcore.Array.read`.
        """
        return self._get_named(_basic(selection, self.shape), out, fields)

    def set_basic_selection(self, selection: Selection, value: Elements, *, fields: Fields | None = None) -> None:
        """Write to the elements selected by integers, slices and an ellipsis.

        Parameters
        ----------
        selection : int, slice, Ellipsis or tuple of these
        value : object
            Any value that NumPy takes, or an `Array`, which is read whole; broadcast and cast by NumPy's rules.
        fields : str or list of str, optional
            Fields of a structured type: only these are changed.

        Raises
        ------
        SelectionError
            The selection does not fit, or is of another kind.
        ValueError, TypeError, OverflowError, ReadOnlyError, ChunkError, StoreError, LockError
            As ``array[selection] = value`` does.
        """
        self._set_named(_basic(selection, self.shape), value, fields)

    def get_orthogonal_selection(self, selection: Selection, *, out: Memory | None = None,
                                 fields: Fields | None = None) -> Any:
        """Return the outer product of slices, lists and masks of one dimension.

        `selection` has one of these, or an integer, for each dimension; `out`, `fields` and errors are those of
        `get_basic_selection`.

        >>> import zcore
        >>> zcore.array([[1, 2, 3], [4, 5, 6]]).get_orthogonal_selection(([1, 0], [0, 2]))
        array([[4, 6],
               [1, 3]])
        """
        return self._get_named(self._product("orthogonal", selection), out, fields)

    def set_orthogonal_selection(self, selection: Selection, value: Elements, *, fields: Fields | None = None) -> None:
        """Write to the outer product of slices, lists and masks of one dimension.

        `selection` as for `get_orthogonal_selection`; `value`, `fields` and errors as for `set_basic_selection`.
        """
        self._set_named(self._product("orthogonal", selection), value, fields)

    def get_coordinate_selection(self, selection: Selection, *, out: Memory | None = None,
                                 fields: Fields | None = None) -> Any:
        """Return the elements at points, in the shape to which their indices broadcast.

        `selection` has a list of indices, or an integer, for each dimension; `out`, `fields` and errors are those of
        `get_basic_selection`.

        >>> import zcore
        >>> zcore.array([[1, 2, 3], [4, 5, 6]]).get_coordinate_selection(([1, 0], [0, 2]))
        array([4, 3])
        """
        return self._get_named(self._product("coordinates", selection), out, fields)

    def set_coordinate_selection(self, selection: Selection, value: Elements, *, fields: Fields | None = None) -> None:
        """Write to the elements at points; if an element is selected several times, the last value stays.

        `selection` as for `get_coordinate_selection`; `value`, `fields` and errors as for `set_basic_selection`.
        """
        self._set_named(self._product("coordinates", selection), value, fields)

    def get_mask_selection(self, mask: npt.ArrayLike, *, out: Memory | None = None,
                           fields: Fields | None = None) -> Any:
        """Return the elements where a mask of the array's shape is true, in one dimension and C order.

        `out`, `fields` and errors are those of `get_basic_selection`.

        >>> import zcore
        >>> a = zcore.array([[1, 2, 3], [4, 5, 6]])
        >>> a.get_mask_selection(a[...] > 4)
        array([5, 6])
        """
        return self._get_named(self._product("masked", mask), out, fields)

    def set_mask_selection(self, mask: npt.ArrayLike, value: Elements, *, fields: Fields | None = None) -> None:
        """Write to the elements where a mask of the array's shape is true.

        `value`, `fields` and errors as for `set_basic_selection`.
        """
        self._set_named(self._product("masked", mask), value, fields)

    def get_block_selection(self, selection: Selection, *, out: Memory | None = None,
                            fields: Fields | None = None) -> Any:
        """Return blocks: integers and slices count stored objects, chunks or shards; no dimension is dropped.

        `selection` has one of them for each dimension; slices have step 1; `out`, `fields` and errors are those of
        `get_basic_selection`.

        >>> import zcore
        >>> zcore.array([[1, 2, 3], [4, 5, 6]], chunks=(1, 2)).get_block_selection((1, 0))
        array([[4, 5]])
        """
        return self._get_named(self._blocks(selection), out, fields)

    def set_block_selection(self, selection: Selection, value: Elements, *, fields: Fields | None = None) -> None:
        """Write blocks.

        `selection` as for `get_block_selection`; `value`, `fields` and errors as for `set_basic_selection`.
        """
        self._set_named(self._blocks(selection), value, fields)

    @property
    def oindex(self) -> _Indexer:
        """Orthogonal selection with brackets, for reading and writing: ``a.oindex[[3, 1], :, [0, 2]]``."""
        return _Indexer(self, partial(self._product, "orthogonal"))

    @property
    def vindex(self) -> _Indexer:
        """Selection of points with brackets, for reading and writing: ``a.vindex[[3, 1], [0, 2]]``, or a mask."""
        return _Indexer(self, partial(self._product, "points"))

    @property
    def blocks(self) -> _Indexer:
        """Selection of stored objects with brackets, for reading and writing: ``a.blocks[0, 1:]``."""
        return _Indexer(self, self._blocks)

    @property
    def lazy(self) -> LazyIndexer:
        """Views that read nothing until used: ``a.lazy[2:10, ::3][..., 0]``; see `zcore.nodes.lazy.LazyView`."""
        from zcore.nodes.lazy import LazyIndexer

        return LazyIndexer(self)

    def _product(self, kind, selection):
        # Imported here, because few callers need it.
        from zcore.indexing import oindex_vindex

        return getattr(oindex_vindex, kind)(selection, self.shape)

    def _blocks(self, selection):
        from zcore.indexing.oindex_vindex import blocks

        return basic(blocks(selection, self._binding.metadata), self.shape)

    def _get_named(self, selected, out, fields):
        result = self._get(selected, fields_argument(fields, self.dtype), out, packed=True)
        return result[()] if selected.is_element and out is None else result

    def _set_named(self, selected, value, fields):
        self._binding.check_writable()
        self._set(selected, read_whole(value), fields_argument(fields, self.dtype))

    # display

    @property
    def info(self) -> Info:
        """A description in several lines, an `Info`; reads nothing."""
        metadata = self._binding.metadata
        chunks, objects = self._shown_shapes()
        grid = f"{objects}, {metadata.n_chunks} in a grid of {metadata.grid_shape}"
        return Info({
            "path": self.name,
            "store": repr(self.store),
            "format": metadata.zarr_format,
            "shape": f"{metadata.shape} = {metadata.size} elements",
            "type": type_name(metadata.dtype),
            "fill value": metadata.fill_value,
            **({"chunks": grid} if self._binding.chain.shards is None else
               {"chunks": chunks, "objects": f"shards of {grid}"}),
            "codecs": ", ".join(map(repr, self._chunk_chain.codecs)),
            "bytes": f"{metadata.nbytes} decoded",
        })

    def info_complete(self) -> Info:
        """Return `info` with the number and size of stored objects, which costs a listing."""
        rows = dict(self.info)
        stored = self.nbytes_stored()
        rows["objects" if "objects" in rows else "chunks"] += f", {self._n_objects()} stored"
        rows["bytes"] += f", {stored} stored" + (f" (ratio {self.nbytes / stored:.1f})" if stored else "")
        return Info(rows)

    def _described(self):
        chunks, objects = self._shown_shapes()
        shards = "" if self._binding.chain.shards is None else f", shards {objects}"
        return f" {self.shape} {type_name(self.dtype)}, chunks {chunks}{shards}"

    def _repr_html_(self):
        """Return the array for a notebook: a table, its attributes, and a drawing of its chunks. Lists no objects."""
        from zcore.nodes.html import array_html

        return array_html(self)

    def _shown_shapes(self):
        """Return the shapes of chunks and of stored objects as text for display."""
        view = self._binding.view
        objects = shown_chunks(view.metadata.chunk_shape, view.metadata.edges)
        return (objects if view.chain.shards is None else shown_chunks(view.chain.inner_shape)), objects

    # the common end of all selections

    def _selected(self, selection):
        """Return (box or product, fields) of a selection in brackets; see `split_fields`."""
        metadata = self._binding.view.metadata
        box = basic(selection, metadata.shape)
        if box is not None:
            return box, None
        from zcore.indexing.numpy import indexed

        fields, selection = split_fields(selection, metadata.dtype)
        box = basic(selection, metadata.shape)
        return box if box is not None else indexed(selection, metadata.shape), fields

    def _get(self, selected, fields=None, out=None, *, packed=False):
        """Return the selected elements, in `out` if given.

        Parameters
        ----------
        selected : Box or Product
        fields : str or list of str, optional
        out : buffer, optional
        packed : bool
            For several fields, return a type without gaps.
        """
        dtype, is_list = self.dtype, isinstance(fields, list)
        wanted = dtype if fields is None else (packed_type if packed and is_list else type_of)(fields, dtype)
        part = None if fields is None or is_list else part_of(fields, dtype)
        if out is not None:
            place = _checked_out(out, selected.shape + wanted.shape, wanted.base)
            if is_list or part is not None and wanted.shape:
                place[...] = self._get(selected, fields, packed=packed)
            else:
                self._read(selected, place, part)
            return out
        if is_list:
            chosen = self._get(selected)[fields]
            if not packed:
                return chosen
            result = allocated(selected.shape, wanted)
            for name in fields:     # faster than all at once
                result[name] = chosen[name]
            return result
        # In NumPy an item cannot be an array, but a field can.
        is_array = part is not None and wanted.shape
        result = allocated(selected.shape, np.dtype([(fields, wanted)]) if is_array else wanted)
        self._read(selected, result, part, is_new=True)
        return result[fields] if is_array else result

    def _read(self, selected, out, part=None, *, is_new=False):
        """Read into an ndarray of the selection's shape; with `part`, only that part of the elements.

        `is_new`: the ndarray is as `allocated` has made it.
        """
        out = np.asarray(out)
        zeros = is_new and _holds_zeros(out)
        try:
            if type(selected) is Box:
                self._binding.read(selected, out if selected.expand is None else out[selected.expand], part,
                                   holds_zeros=zeros)
            elif not selected.is_empty:
                elements, is_view = selected.worked(out)
                if is_view:
                    self._binding.read(selected, elements, part, holds_zeros=zeros)
                else:
                    whole = allocated(out.shape, out.dtype)
                    self._binding.read(selected, selected.worked(whole)[0], part)
                    out[...] = whole
        except ZcoreError as error:
            error.locate(self._binding.describe())
            raise

    def _set(self, selected, values, fields=None):
        """Write values, broadcast and cast by NumPy's rules, to the selected elements."""
        dtype, shape = self._binding.view.metadata.dtype, selected.shape
        if fields is None:
            self._write(selected, assigned(values, dtype, shape, selected.way))
        elif isinstance(fields, list):
            values = assigned(values, type_of(fields, dtype), shape, selected.way)
            for name in fields:
                self._set(selected, values[name], name)
        else:
            part_type = type_of(fields, dtype)
            part = part_of(fields, dtype)
            way = selected.way
            if part_type.shape:
                # The field has more dimensions than an element, or a mask of all of them.
                way = {"element": "view", "mask": "points"}.get(way, way)
            values = assigned(values, part_type.base, shape + part_type.shape, way)
            if part_type.shape:
                holder = allocated(shape, np.dtype([(fields, part_type)]))
                holder[fields] = values
                values = holder
            self._write(selected, values, part)

    def _write(self, selected, values, part=None):
        """Write an ndarray of the selection's shape and type; with `part`, only that part of the elements."""
        if not values.size:
            return      # without looking at the store, so the result is the same for all stores and all ways of writing
        try:
            if type(selected) is Box:
                self._binding.write(selected, values if selected.expand is None else values[selected.expand], part)
            else:
                self._binding.write(selected, selected.worked(values)[0], part)
        except ZcoreError as error:
            error.locate(self._binding.describe())
            raise


add_tried(Array, OF_ARRAY)


class ArrayConfig(NamedTuple):
    """Options of a handle as zarr-python names them; see `Array.config`."""

    order: Literal["C"]
    write_empty_chunks: bool
    read_missing_chunks: bool


class _NoOneShape(UnsupportedError, AttributeError):
    """Chunks differ in shape. For `getattr` with a default, which dask uses, the attribute is missing."""


def allocated(shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return an array for a result. Its size may come from a hostile document, so failure is a zcore error.

    A large array holds zeros; see `_holds_zeros`.
    """
    try:
        result = np.empty(shape, dtype)
        if result.nbytes >= _MIN_ZEROS:
            result = None      # before as much memory is asked for again
            result = np.zeros(shape, dtype)
        return result
    except (MemoryError, ValueError) as exc:
        nbytes = math.prod(shape) * dtype.itemsize
        raise OutOfMemoryError(f"no memory for the {nbytes} bytes of a result of shape {shape} and type "
                               f"{type_name(dtype)}", nbytes=nbytes) from exc


def _holds_zeros(result):
    """Whether an array that `allocated` has just made holds zeros."""
    return result.nbytes >= _MIN_ZEROS and not result.dtype.hasobject


def _checked_out(out, shape, dtype):
    """Return the caller's memory as an ndarray, after checking that it fits a result of that shape and type."""
    if not isinstance(out, np.ndarray):
        try:
            out = np.asarray(memoryview(out))
        except TypeError:
            raise TypeError(f"out is {type(out).__name__}, expected numpy.ndarray or another buffer") from None
    if out.dtype != dtype:
        raise TypeError(f"out has type {out.dtype}, the array {dtype}")
    if out.shape != shape:
        raise ValueError(f"out has shape {out.shape}, the selection {shape}")
    if not out.flags.writeable:
        raise ValueError("out is not writable")
    _check_apart(out)
    return out


def _check_apart(out):
    if not out.flags.forc and may_overlap(out.itemsize, out.shape, out.strides):
        raise ValueError(f"the strides {out.strides} of out let elements overlap in memory")


class _Indexer:
    """Brackets for a kind of selection."""

    __slots__ = ("_array", "_select")

    def __init__(self, array: Array, select: Callable[[Any], Any]) -> None:
        self._array = array
        self._select = select

    def __getitem__(self, selection: Selection) -> Any:
        fields, selection = split_fields(selection, self._array.dtype)
        return self._array._get_named(self._select(selection), None, fields)

    def __setitem__(self, selection: Selection, value: Elements) -> None:
        fields, selection = split_fields(selection, self._array.dtype)
        self._array._set_named(self._select(selection), value, fields)


def _basic(selection, shape):
    box = basic(selection, shape)
    if box is None:
        raise SelectionError("a basic selection consists of integers, slices and an ellipsis")
    return box


def _boxes(selections, shape):
    """Return the boxes of basic selections, which must have one shape."""
    boxes = []
    for i, selection in enumerate(selections):
        try:
            box = _basic(selection, shape)
            if boxes and box.shape != boxes[0].shape:
                raise SelectionError(f"its shape is {box.shape}, that of selection 0 {boxes[0].shape}")
        except SelectionError as error:
            raise type(error)(f"selection {i}: {error.message}", dimension=error.dimension) from None
        except (ValueError, TypeError) as error:
            raise type(error)(f"selection {i}: {error}") from None
        boxes.append(box)
    return boxes


def _starts(starts, counts, shape):
    """Return the first elements of boxes as an ndarray of int64, and the shape of each; all must lie in `shape`."""
    counts, given = shape_of(counts), np.asarray(starts)
    if given.shape == (0,):
        given = np.empty((0, len(shape)), np.int64)     # an empty list has neither type nor dimensions
    if len(counts) != len(shape) or given.ndim != 2 or given.shape[1] != len(shape):
        raise SelectionError(f"boxes in an array of {len(shape)} dimensions: expected first elements of shape "
                             f"(n, {len(shape)}) and a shape of {len(shape)} lengths, found {given.shape} and {counts}")
    if given.dtype.kind not in "iu":
        raise SelectionError(f"first elements of boxes are integers, found {given.dtype}")
    last = np.array([length - count for length, count in zip(shape, counts, strict=True)], np.int64)
    wrong = (given < 0) | (given > last)
    if wrong.any():
        i, d = map(int, np.argwhere(wrong)[0])
        raise SelectionError(f"selection {i}: {counts[d]} elements from {given[i, d]} on do not lie in axis {d} with "
                             f"size {shape[d]}", dimension=d)
    return np.ascontiguousarray(given, np.int64), counts


def read_whole(values: Any) -> Any:
    """Return the elements of a zcore array; return anything else unchanged."""
    return values[...] if isinstance(values, Array) else values
