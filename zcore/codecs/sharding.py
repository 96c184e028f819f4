"""Shards: objects of many chunks, each encoded on its own, with an index of their byte ranges.

Zarr v3, codec "sharding_indexed", "Binary shard format": the encoded chunks in any order, and the index, (offset,
nbytes) of each chunk in C order. Both words are 2**64 - 1 for a chunk that holds only the fill value. The kernel reads
and writes this format; `ShardingCodec` is the configuration, `Shards` has the chains of the chunks and of the index.
"""
from __future__ import annotations

import math
from types import SimpleNamespace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from zcore.buffers import MAX_NDIM
from zcore.codecs.base import Codec
from zcore.codecs.items import Items
from zcore.errors import MetadataError, UnsupportedError, warn
from zcore.kernel.plan.feed import Feed
from zcore.kernel.plan.read import ReadPlan
from zcore.kernel.plan.write import WritePlan
from zcore.kernel.select.box import whole
from zcore.kernel.select.open_array import OpenArray
from zcore.model.metadata import CodecSpec, has_varying_items, integers
from zcore.model.named_codecs import named_codec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Self, SupportsIndex

    import numpy.typing as npt

    from zcore.codecs.chain import CodecChain
    from zcore.typing import Buffer

LOCATIONS = ("start", "end")
ShardingCodecIndexLocation: SimpleNamespace = SimpleNamespace(start="start", end="end")
SubchunkWriteOrder = Literal["morton", "unordered", "lexicographic", "colexicographic"]     # as in zarr-python
DEFAULT_CODECS = (CodecSpec("bytes", {"endian": "little"}),)
DEFAULT_INDEX_CODECS = (CodecSpec("bytes", {"endian": "little"}), CodecSpec("crc32c"))
# Codecs allowed for an index: its encoded size must depend only on the number of chunks.
FIXED_SIZE = frozenset(("bytes", "transpose", "crc32c", "numcodecs.crc32c", "numcodecs.crc32", "numcodecs.adler32",
                        "numcodecs.fletcher32", "numcodecs.jenkins_lookup3", "numcodecs.shuffle"))


class ShardingCodec(Codec):
    """A shard cut into chunks.

    Parameters
    ----------
    chunk_shape : tuple of int
        Elements of a chunk per dimension; it divides the shard's shape.
    codecs : sequence of codec, dict or CodecSpec
        Codec chain of a chunk.
    index_codecs : sequence of codec, dict or CodecSpec
        Codec chain of the index; its output must have a fixed size.
    index_location : {"end", "start"}
        Position of the index.
    subchunk_write_order : str, optional
        zarr-python's wish for the order of the chunks in a new shard. No document has it, and zcore follows its own.

    Raises
    ------
    ValueError
        A parameter is out of its range, or the output of an index codec has no fixed size.

    >>> ShardingCodec(chunk_shape=(32, 32)).spec().configuration["index_location"]
    'end'
    """

    name = "sharding_indexed"
    kind = "array_bytes"

    def __init__(self, *, chunk_shape: Sequence[SupportsIndex],
                 codecs: Sequence[Codec | CodecSpec | Mapping[str, Any]] = DEFAULT_CODECS,
                 index_codecs: Sequence[Codec | CodecSpec | Mapping[str, Any]] = DEFAULT_INDEX_CODECS,
                 index_location: Literal["start", "end"] = "end",
                 subchunk_write_order: SubchunkWriteOrder | None = None) -> None:
        self.chunk_shape: tuple[int, ...] = integers(chunk_shape, "chunk_shape", 1)
        self.codecs: tuple[CodecSpec, ...] = specs_of("codecs", codecs)
        self.index_codecs: tuple[CodecSpec, ...] = specs_of("index_codecs", index_codecs)
        for spec in self.index_codecs:
            if spec.name not in FIXED_SIZE:
                raise ValueError(f"index_codecs has {spec.name!r}, expected codecs whose output has a fixed size")
        if index_location not in LOCATIONS:
            raise ValueError(f"index_location is {index_location!r}, expected 'start' or 'end'")
        self.index_location = index_location
        if subchunk_write_order not in (None, *get_args(SubchunkWriteOrder)):
            raise ValueError(f"subchunk_write_order is {subchunk_write_order!r:.60}, expected one of "
                             f"{', '.join(get_args(SubchunkWriteOrder))}")
        if subchunk_write_order not in (None, "unordered"):
            warn(f"subchunk_write_order={subchunk_write_order!r} of zarr-python changes nothing in zcore")

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        """Return the codec of a document's configuration.

        Raises
        ------
        MetadataError
            A member is missing, unknown or invalid.
        """
        for member in ("chunk_shape", "codecs", "index_codecs"):
            if member not in configuration:
                raise MetadataError(f"sharding_indexed needs {member!r}", member=member)
        for member, value in configuration.items():
            if member not in ("chunk_shape", "codecs", "index_codecs", "index_location"):
                raise MetadataError(f"sharding_indexed has no member {member!r}", member=member)
            if member != "index_location" and not isinstance(value, (list, tuple)):
                raise MetadataError(f"{member} of sharding_indexed: expected a list, found {value!r}", member=member)
        if any(type(length) is not int for length in configuration["chunk_shape"]):
            raise MetadataError(f"chunk_shape of sharding_indexed: expected integers, found "
                                f"{configuration['chunk_shape']!r}", member="chunk_shape")
        try:
            return cls(**configuration)
        except (TypeError, ValueError) as exc:
            raise MetadataError(f"sharding_indexed: {exc}", member="codecs") from exc

    def configuration(self) -> dict[str, Any]:
        """Return the configuration for documents, a dict."""
        return {"chunk_shape": list(self.chunk_shape), "codecs": documents_of(self.codecs),
                "index_codecs": documents_of(self.index_codecs), "index_location": self.index_location}


def specs_of(member: str, codecs: Iterable[Any]) -> tuple[CodecSpec, ...]:
    """Return the `CodecSpec` of each codec of a chain, the `member` of a configuration.

    Raises : TypeError, if one is no codec; ValueError, if there are none.
    """
    specs = tuple(map(named_codec, codecs))
    if not specs:
        raise ValueError(f"{member}: expected at least the codec that makes bytes")
    return specs


def documents_of(specs: Iterable[CodecSpec]) -> list[dict[str, Any]]:
    """Return a codec chain in the form of documents."""
    return [{"name": spec.name, "configuration": spec.configuration} if spec.configuration else {"name": spec.name}
            for spec in specs]


NO_CHUNK = 2**64 - 1  # both words of an empty chunk's entry
MAX_CHUNKS = 2**26    # per shard; the index has 16 bytes for each
MIN_GAPS_NBYTES = 1 << 16
MAX_KEPT_SHAPES = 64  # number of cached shard shapes, besides the largest


class Shards:
    """The shards of one array.

    Parameters
    ----------
    codec : ShardingCodec
    make_chain : type
        `CodecChain`, passed in because this class is a part of it.
    dtype : numpy.dtype
        Type of the decoded chunks, with the stored byte order.
    shard_shape : tuple of int
    fill : ndarray or None
        One element, the value of empty chunks; zero if None.
    strict : bool
        Passed to the chains.

    Attributes
    ----------
    name : str
        Name of the codec.
    chain : CodecChain
        Chain of a chunk.
    index_chain : CodecChain
        Chain of the index.
    max_encoded : int or None
        Maximum bytes of a shard that is read at once. Other programs leave gaps where they replaced a chunk, so gaps
        may take as much room as the chunks. Also the maximum size of a shard inside another shard. None if chunks are
        unbounded.
    chunk_room : int or None
        Share of each chunk in it, without its entry in the index.

    Raises
    ------
    MetadataError
        The chunk shape does not divide the shard's shape.
    """

    name = "sharding_indexed"

    def __init__(self, codec: ShardingCodec, make_chain: type[CodecChain], dtype: np.dtype[Any],
                 shard_shape: tuple[int, ...], fill: npt.NDArray[Any] | None = None, strict: bool = True) -> None:
        self._made_of = codec, make_chain, dtype, fill, strict
        self._others = {}
        self._whole = None
        chunk_shape = codec.chunk_shape
        if len(chunk_shape) != len(shard_shape) or any(
                [length % chunk for length, chunk in zip(shard_shape, chunk_shape, strict=True)]):
            raise MetadataError(f"chunk_shape of sharding_indexed is {chunk_shape}, which does not divide the shard's "
                                f"shape {shard_shape}", member="chunk_shape")
        self.dtype: np.dtype[Any] = dtype
        self.shard_shape = shard_shape
        self.chunk_shape = chunk_shape
        grid_shape = [length // chunk for length, chunk in zip(shard_shape, chunk_shape, strict=True)]
        self.n_chunks: int = math.prod(grid_shape)
        if self.n_chunks > MAX_CHUNKS:
            raise UnsupportedError(f"shards of {self.n_chunks} chunks, at most {MAX_CHUNKS} are supported",
                                   feature="shards of more than 2**26 chunks")
        fill = np.zeros(1, dtype) if fill is None else np.ascontiguousarray(fill, dtype).reshape(1)
        self._fill = fill
        self.chain: CodecChain = make_chain(codec.codecs, dtype, chunk_shape, strict, fill)
        # NumPy has no arrays of 65 dimensions.
        index_shape = (*grid_shape, 2) if len(grid_shape) < MAX_NDIM else (self.n_chunks, 2)
        self.index_chain: CodecChain = make_chain(codec.index_codecs, np.dtype(np.uint64), index_shape, strict)
        self.at_start: bool = codec.index_location == "start"
        self.max_encoded: int | None = None
        self.chunk_room: int | None = None
        if self.chain.max_encoded is not None:
            self.chunk_room = 2 * self.chain.max_encoded
            self.max_encoded = self.n_chunks * self.chunk_room + self.index_chain.max_encoded + MIN_GAPS_NBYTES

    def of_shape(self, shard_shape: tuple[int, ...]) -> Shards:
        """Return these shards with another shape, for grids of different shards.

        Raises : ValueError, if the chunk shape does not divide `shard_shape`.
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

    # whole shards: the interface of a codec from array to bytes

    def encoded_nbytes(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> int | None:
        """Return the maximum size of a shard; None if it is unbounded."""
        return self.of_shape(shape).max_encoded

    def decode(self, raw: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return all elements of a shard."""
        out = np.empty(shape, dtype)
        plan, feed = self._plan(ReadPlan, out)
        feed.read([0], [raw])
        plan.raise_failure(self._opened_of(shape)[0].step_names)
        return out

    def encode(self, shard: npt.NDArray[Any]) -> Buffer:
        """Return the object of a shard; a shard that holds only the fill value is just an index."""
        _, feed = self._plan(WritePlan, shard)
        encoded = feed.encode(0, False)
        if encoded is None:
            shards = self.of_shape(shard.shape)
            return shards.index_chain.encode(np.full(shards.index_chain.chunk_shape, NO_CHUNK, np.uint64))
        return encoded

    def _plan(self, make_plan, elements):
        """Return a plan of an array that is one shard, and its `Feed`."""
        chain, opened = self._opened_of(elements.shape)
        if has_varying_items(self.dtype):
            elements = Items(chain, self._fill.reshape(()), elements)
        plan = make_plan(opened, whole(opened.shape), elements)
        return plan, Feed(plan, chain.step_names)

    def _opened_of(self, shape):
        """Return the chain of an array that is one shard of this shape, and the open array."""
        shards = self.of_shape(shape)
        if shards._whole is None:
            codec, make_chain, dtype, fill, strict = shards._made_of
            chain = make_chain((codec.spec(),), dtype, shape, strict, fill)
            shards._whole = chain, OpenArray(
                shape, shape, program=chain.program, fill=b"" if has_varying_items(dtype) else shards._fill.tobytes(),
                template=(b"", b"", b""), swap=chain.swap, order=chain.order)
        return shards._whole
