"""An array as its document describes it, and its listing: all that is known of it without an element being read.

Names and meanings are those of zarr-python, but that codecs are always told in the terms of Zarr v3.
"""
import math

from zcore.errors import UnsupportedError
from zcore.handles import Handle
from zcore.info import Info, type_name
from zcore.model.chunk_grid import chunk_regions, chunk_sizes, shown_chunks


class DescribedArray(Handle):
    """What `Array` says of itself."""

    __slots__ = ()

    @property
    def shape(self):
        """Elements per dimension, a tuple of int; assigning resizes the array."""
        return self._binding.metadata.shape

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
        return self._one_shape("chunks") if view.chain.shards is None else view.chain.inner_shape

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
        return chunk_sizes(view.metadata.shape, view.chain.inner_shape)

    @property
    def write_chunk_sizes(self):
        """The same of each stored object: of shards, where the array has these.

        Raises : OutOfMemoryError, if there are more than 2**24 objects along a dimension.
        """
        metadata = self._binding.metadata
        return chunk_sizes(metadata.shape, metadata.chunk_shape, metadata.edges)

    @property
    def fill_value(self):
        """Value of elements never written; None when the document leaves it undefined.

        Then they read as zero, as empty text or bytes, and, in Zarr v2, dates as not a time.
        """
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
        """The codecs of a stored object, but for `bytes`; those of a chunk are the three below."""
        return self._binding.chain.codecs

    @property
    def filters(self):
        """The codecs of a chunk from array to array, a tuple; order F is one, `TransposeCodec`."""
        return tuple([codec for codec in self._chunk_chain.codecs if codec.kind == "array_array"])

    @property
    def serializer(self):
        """The codec that makes bytes of a chunk."""
        chain = self._chunk_chain
        found = [codec for codec in chain.codecs if codec.kind == "array_bytes"]
        return found[0] if found else chain.serializer

    @property
    def compressors(self):
        """The codecs of a chunk from bytes to bytes, a tuple; checksums are among them."""
        return tuple([codec for codec in self._chunk_chain.codecs if codec.kind == "bytes_bytes"])

    @property
    def _chunk_chain(self):
        chain = self._binding.chain
        return chain if chain.shards is None else chain.shards.chain

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
    def cache(self):
        """Bytes of memory for decoded chunks; None for `zcore.config.cache`."""
        return self._binding.options.cache

    @property
    def cdata_shape(self):
        """Chunks per dimension; in an array of shards, of what they are cut into."""
        view = self._binding.view
        if view.chain.shards is None:
            return view.metadata.grid_shape
        return tuple([-(-length // chunk) for length, chunk
                      in zip(view.metadata.shape, view.chain.inner_shape, strict=True)])

    def iter_chunks(self):
        """Iterate over the chunks of the grid in C order: for each the slices that select it, cut at the border.

        >>> import zcore
        >>> a = zcore.create_array(zcore.MemoryStore(), shape=(3, 2), chunks=(2, 2), dtype="i4")
        >>> list(a.iter_chunks())
        [(slice(0, 2, 1), slice(0, 2, 1)), (slice(2, 3, 1), slice(0, 2, 1))]
        """
        view = self._binding.view
        metadata, inner_shape = view.metadata, view.chain.inner_shape
        if inner_shape is None:
            return chunk_regions(metadata.shape, metadata.chunk_shape, metadata.edges)
        return chunk_regions(metadata.shape, inner_shape, None)

    @property
    def nchunks(self):
        """Chunks of the grid, stored or not."""
        return math.prod(self.cdata_shape)

    @property
    def nchunks_initialized(self):
        """Chunks of the grid whose object exists, all chunks of a shard that does; costs a listing."""
        view = self._binding.view
        metadata, inner_shape = view.metadata, view.chain.inner_shape
        if inner_shape is None:
            return self._n_objects()
        n_items = math.prod(inner_shape)
        if metadata.edges is None:
            return self._n_objects() * (math.prod(metadata.chunk_shape) // n_items)
        return sum([math.prod(metadata.place_of(coords)[1]) // n_items for coords in self._stored()])

    def _n_objects(self):
        return sum([1 for _ in self._stored()])

    def _stored(self):
        """Iterate over the coordinates of the objects that exist and lie in the grid."""
        grid = self._binding.metadata.grid_shape
        return (coords for _, coords in self._binding.stored_chunks()
                if all([i < n for i, n in zip(coords, grid, strict=True)]))

    def nbytes_stored(self):
        """Return the bytes of all objects of the array, documents included; costs a listing."""
        return self._binding.store.getsize_prefix(self._binding.prefix)

    # described

    @property
    def info(self):
        """A description in several lines, an `Info`; reads nothing."""
        metadata = self.metadata
        return Info({
            "path": self.name,
            "store": repr(self.store),
            "format": metadata.zarr_format,
            "shape": f"{metadata.shape} = {metadata.size} elements",
            "type": type_name(metadata.dtype),
            "fill value": metadata.fill_value,
            **self._shown_grid(),
            "codecs": ", ".join(map(repr, self._chunk_chain.codecs)),
            "bytes": f"{metadata.nbytes} decoded",
        })

    def _shown_grid(self):
        """Return the rows of chunks, and of objects where these are not the chunks; the last one counts objects."""
        chunks, objects = self._shown_shapes()
        grid = f"{objects}, {self.metadata.n_chunks} in a grid of {self.metadata.grid_shape}"
        return {"chunks": grid} if self._binding.chain.shards is None else {
            "chunks": chunks, "objects": f"shards of {grid}"}

    def info_complete(self):
        """Return `info` with what is stored: objects are counted and measured, which costs a listing."""
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
        """Return the array for a notebook: a table, its attributes, and its chunks drawn; lists nothing."""
        from zcore.html import array_html

        return array_html(self)

    def _shown_shapes(self):
        """Return the shapes of chunks and of stored objects, for people."""
        view = self._binding.view
        objects = shown_chunks(view.metadata.chunk_shape, view.metadata.edges)
        return (objects if view.chain.shards is None else shown_chunks(view.chain.inner_shape)), objects
