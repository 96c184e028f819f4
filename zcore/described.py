"""An array as its document describes it, and its listing: all that is known of it without an element being read.

Names and meanings are those of zarr-python, but that codecs are always told in the terms of Zarr v3.
"""
import math

from zcore.handles import Handle
from zcore.info import Info, type_name


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
        """Elements of a chunk per dimension; in an array of shards, of what they are cut into."""
        view = self._binding.view
        return view.metadata.chunk_shape if view.chain.shards is None else view.chain.shards.chunk_shape

    @property
    def shards(self):
        """Elements of a shard per dimension; None for an array without shards."""
        view = self._binding.view
        return None if view.chain.shards is None else view.metadata.chunk_shape

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
    def cdata_shape(self):
        """Chunks per dimension."""
        return tuple([-(-length // chunk) for length, chunk in zip(self.shape, self.chunks, strict=True)])

    @property
    def nchunks(self):
        """Chunks of the grid, stored or not."""
        return math.prod(self.cdata_shape)

    @property
    def nchunks_initialized(self):
        """Chunks of the grid whose object exists, all chunks of a shard that does; costs a listing."""
        n_objects = self._n_objects()
        return n_objects * math.prod(self.shards) // math.prod(self.chunks) if self.shards else n_objects

    def _n_objects(self):
        grid = self._binding.metadata.grid_shape
        return sum(all(i < n for i, n in zip(coords, grid, strict=True))
                   for _, coords in self._binding.stored_chunks())

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
            "chunks": str(self.chunks),
            "objects": f"{'shards of ' if self.shards else ''}{metadata.chunk_shape}, {metadata.n_chunks} in a grid of "
                       f"{metadata.grid_shape}",
            "codecs": ", ".join(map(repr, self.codecs)),
            "bytes": f"{metadata.nbytes} decoded",
        })

    def info_complete(self):
        """Return `info` with what is stored: objects are counted and measured, which costs a listing."""
        rows = dict(self.info)
        stored = self.nbytes_stored()
        rows["objects"] += f", {self._n_objects()} stored"
        rows["bytes"] += f", {stored} stored" + (f" (ratio {self.nbytes / stored:.1f})" if stored else "")
        return Info(rows)

    def _described(self):
        shards = "" if self.shards is None else f", shards {self.shards}"
        return f" {self.shape} {type_name(self.dtype)}, chunks {self.chunks}{shards}"
