"""What `sharding_indexed` makes of a shard: the chains of its chunks and of its index, and how long it can be.

Zarr v3, codec "sharding_indexed", "Binary shard format": the encoded chunks in any order, and the index, (offset,
nbytes) of each chunk in C order, whose words are both 2**64 - 1 for a chunk of nothing but the fill value. The kernel
reads and writes that.
"""
import math

import numpy as np

from zcore.codecs.items import Items
from zcore.errors import MetadataError, UnsupportedError
from zcore.kernel.feed import Feed
from zcore.model.metadata import MAX_NDIM, has_varying_items

NO_CHUNK = 2**64 - 1  # both words of an empty chunk's entry
MAX_CHUNKS = 2**26    # of a shard; the index has 16 bytes for each
MIN_GAPS_NBYTES = 1 << 16
MAX_KEPT_SHAPES = 64  # of shards that differ from the largest


class Shards:
    """The shards of one array.

    Parameters
    ----------
    codec : ShardingCodec
    make_chain : type
        `CodecChain`, of which this is a part.
    dtype : numpy.dtype
        Of the decoded chunks, stored byte order included.
    shard_shape : tuple of int
    fill : ndarray or None
        Of one element, what empty chunks are made of; zero when None.
    strict : bool
        Of the chains.

    Attributes
    ----------
    name : str
        Of the codec.
    chain : CodecChain
        Of a chunk.
    index_chain : CodecChain
        Of the index.
    max_encoded : int or None
        The most bytes of a shard that are read at once: other programs leave gaps where a chunk was replaced by
        another one, and as much room is given to these as to the chunks. In a shard of shards, the most that one of
        these may have. None where chunks have no bound.
    chunk_room : int or None
        What of that each chunk adds, beside its entry in the index.

    Raises
    ------
    MetadataError
        The shard is not cut into chunks of that shape exactly.
    """

    name = "sharding_indexed"

    def __init__(self, codec, make_chain, dtype, shard_shape, fill=None, strict=True):
        self._made_of = codec, make_chain, dtype, fill, strict
        self._others = {}
        self._whole = None
        chunk_shape = codec.chunk_shape
        if len(chunk_shape) != len(shard_shape) or any(
                [length % chunk for length, chunk in zip(shard_shape, chunk_shape, strict=True)]):
            raise MetadataError(f"chunk_shape of sharding_indexed is {chunk_shape}, which does not divide the shard's "
                                f"shape {shard_shape}", member="chunk_shape")
        self.dtype = dtype
        self.shard_shape = shard_shape
        self.chunk_shape = chunk_shape
        grid_shape = [length // chunk for length, chunk in zip(shard_shape, chunk_shape, strict=True)]
        self.n_chunks = math.prod(grid_shape)
        if self.n_chunks > MAX_CHUNKS:
            raise UnsupportedError(f"shards of {self.n_chunks} chunks, at most {MAX_CHUNKS} are supported",
                                   feature="shards of more than 2**26 chunks")
        fill = np.zeros(1, dtype) if fill is None else np.ascontiguousarray(fill, dtype).reshape(1)
        self._fill = fill
        self.chain = make_chain(codec.codecs, dtype, chunk_shape, strict, fill)
        # An array of 65 dimensions NumPy does not have.
        index_shape = (*grid_shape, 2) if len(grid_shape) < MAX_NDIM else (self.n_chunks, 2)
        self.index_chain = make_chain(codec.index_codecs, np.dtype(np.uint64), index_shape, strict)
        self.at_start = codec.index_location == "start"
        self.max_encoded = self.chunk_room = None
        if self.chain.max_encoded is not None:
            self.chunk_room = 2 * self.chain.max_encoded
            self.max_encoded = self.n_chunks * self.chunk_room + self.index_chain.max_encoded + MIN_GAPS_NBYTES

    def of_shape(self, shard_shape):
        """Return the same of shards of another shape, where they differ.

        Raises : ValueError, if these are not cut into chunks exactly.
        """
        if shard_shape == self.shard_shape:
            return self
        other = self._others.get(shard_shape)
        if other is None:
            if len(self._others) >= MAX_KEPT_SHAPES:
                self._others = {}
            codec, make_chain, dtype, fill, strict = self._made_of
            other = self._others[shard_shape] = Shards(codec, make_chain, dtype, shard_shape, fill, strict)
        return other

    # whole shards: what a chain asks of the codec that makes bytes of elements

    def encoded_nbytes(self, dtype, shape):
        """Return the most bytes that a shard may have; None where that has no bound."""
        return self.of_shape(shape).max_encoded

    def decode(self, raw, dtype, shape):
        """Return all elements of a shard."""
        from zcore.kernel.shard_read import ShardReadPlan

        out = np.empty(shape, dtype)
        plan, feed = self._plan(ShardReadPlan, out)
        feed.read([0], [raw])
        plan.raise_failure(self._chain_of(shape).step_names)
        return out

    def encode(self, shard):
        """Return the object of a shard; one of nothing but the fill value is an index alone."""
        from zcore.kernel.shard_write import ShardWritePlan

        _, feed = self._plan(ShardWritePlan, shard, token=0)
        encoded = feed.encode(0, False)
        if encoded is None:
            shards = self.of_shape(shard.shape)
            return shards.index_chain.encode(np.full(shards.index_chain.chunk_shape, NO_CHUNK, np.uint64))
        return encoded

    def _plan(self, make_plan, elements, **keywords):
        """Return a plan of an array that is one shard, and what feeds it."""
        shape = elements.shape
        chain = self._chain_of(shape)
        is_varying = has_varying_items(self.dtype)
        items = None
        if is_varying:
            items = Items(chain, self._fill.reshape(()), elements)
        plan = make_plan(
            shape, shape, (0,) * len(shape), (1,) * len(shape), shape, program=chain.program,
            fill=b"" if is_varying else self._fill.tobytes(), array=None if is_varying else elements,
            items=items, template=(b"", b"", b""), swap=chain.swap, order=chain.order, **keywords)
        return plan, Feed(plan, chain.step_names)

    def _chain_of(self, shape):
        """Return the chain of arrays whose objects are such shards and no more."""
        shards = self.of_shape(shape)
        if shards._whole is None:
            codec, make_chain, dtype, fill, strict = shards._made_of
            shards._whole = make_chain((codec.spec(),), dtype, shape, strict, fill)
        return shards._whole
