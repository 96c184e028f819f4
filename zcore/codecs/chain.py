"""A codec chain from a document: a `Program` for the kernel, `encode` and `decode` for Python.

Zarr v3 core, "Chunk encoding": codecs from array to array, one from array to bytes, codecs from bytes to bytes;
decoding goes the other way. A chain is resolved when it is made: type and shape of the chunk between its codecs, and
its exact or maximum number of bytes. So decoding an object that holds more stops at that size, whatever its header
says.
"""
from __future__ import annotations

from importlib import import_module
from itertools import product
from math import prod
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from zcore.codecs.array_array.reorder import ReshapeCodec, TransposeCodec
from zcore.codecs.array_bytes.bytes_codec import BytesCodec
from zcore.codecs.bytes_bytes import checksums, compressors
from zcore.codecs.bytes_bytes.compressors import BloscCodec
from zcore.codecs.lowering import in_array, leading_transposes, lowered
from zcore.codecs.sharding import ShardingCodec
from zcore.errors import CodecError, MetadataError, UnknownCodecError, UnsupportedError, ZcoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, TypeAlias

    import numpy.typing as npt

    from zcore.codecs.base import Codec
    from zcore.codecs.lowering import Lowered
    from zcore.codecs.sharding import Shards
    from zcore.kernel.codec.program import Program
    from zcore.kernel.plan.shard_index import ShardProgram
    from zcore.kernel.select.grid import Edges
    from zcore.model.metadata import CodecSpec
    from zcore.typing import Buffer

    Stage: TypeAlias = tuple[np.dtype[Any], tuple[int, ...]]
    Size: TypeAlias = tuple[int | None, bool]

CODECS: dict[str, type[Codec]] = {
    **{codec.name: codec for codec in (BytesCodec, TransposeCodec, ReshapeCodec, ShardingCodec)},
    **checksums.CODECS, **compressors.CODECS,
}
# Modules of codecs that are imported when one of their codecs is first used.
_LATER = {
    **dict.fromkeys(("bitround", "numcodecs.bitround", "numcodecs.delta", "numcodecs.fixedscaleoffset"),
                    "array_array.filters"),
    **dict.fromkeys(("cast_value", "scale_offset"), "array_array.scale_and_cast"),
    **dict.fromkeys(("vlen-utf8", "vlen-bytes", "numcodecs.vlen-utf8", "numcodecs.vlen-bytes", "numcodecs.vlen-array",
                     "numcodecs.json2"), "array_bytes.varying"),
    "packbits": "array_bytes.packbits",
    "zfp": "array_bytes.zfp",
    "numcodecs.shuffle": "bytes_bytes.shuffle",
    **dict.fromkeys(("n5_default", "conditional"), "wrapping"),
}
MAX_SHAPES = 4096  # limit for grids of different chunks, if each shape is tried
# Content of unknown size is decoded to this multiple of its encoded size, and again to more if that was not enough, ...
_GROWTH = 8
_SMALL_NBYTES = 1 << 16
# ... up to this many bytes per item of the chunk and per byte of its object, plus a fixed allowance, and never more
# than the last constant.
VARYING_NBYTES_EACH = 64
VARYING_NBYTES_FREE = 1 << 27
MAX_VARYING_NBYTES = 2**31 - 1
_KINDS = ("array_array", "array_bytes", "bytes_bytes")


def class_of(name: str) -> type[Codec]:
    """Return the class of the codec that has this name in documents; KeyError if zcore itself has none."""
    return (import_module(f"zcore.codecs.{_LATER[name]}").CODECS if name in _LATER else CODECS)[name]


def codec_of(name: Any, configuration: Mapping[str, Any]) -> Codec:
    """Return the codec that a document or a caller names.

    Raises
    ------
    UnknownCodecError
        No codec has this name.
    UnsupportedError
        It needs the package numcodecs, which is not installed, or zcore never runs it.
    ValueError, TypeError
        The codec does not accept the configuration.
    """
    if isinstance(name, str) and (name in CODECS or name in _LATER):
        return class_of(name).from_configuration(configuration)
    if isinstance(name, str) and name.startswith("numcodecs."):
        from zcore.codecs.from_numcodecs import fallback_codec

        return fallback_codec(name, configuration)
    known = sorted([known for known in [*CODECS, *_LATER] if not known.startswith("numcodecs.")])
    raise UnknownCodecError(f"no codec is named {name!r}; there are {', '.join(known)}, and those of numcodecs, "
                            f"such as 'numcodecs.{name if f'numcodecs.{name}' in {*CODECS, *_LATER} else 'zlib'}'",
                            feature="codec", codec=name)


class CodecChain:
    """The codecs of one array.

    Parameters
    ----------
    specs : sequence of CodecSpec
    dtype : numpy.dtype
        Type of the decoded chunk, with the stored byte order.
    chunk_shape : tuple of int
    strict : bool
        Refuse blosc chunks that name another item size than the array's or 1.
    fill : ndarray, optional
        One element of `dtype`, the value of elements that were never written; zero by default. Only shards need it.

    Attributes
    ----------
    codecs : tuple of Codec
        All except `bytes`.
    array_codecs, serializer, compressors : tuple of Codec, Codec, tuple of Codec
        Codecs from array to array; the codec from array to bytes (also `bytes`; for `sharding_indexed` it is `shards`);
        codecs from bytes to bytes.
    array_types : list of (numpy.dtype, tuple of int)
        Type and shape of the chunk before each codec from array to array, and after the last.
    header_itemsize : int
        Item size that blosc headers must name, 0 for any.
    shards : Shards or None
        The codec from array to bytes, if it is `sharding_indexed`.
    inner_shape : tuple of int or None
        Elements of the inner chunks of shards, per dimension of the array; None without shards.
    is_partial : bool
        Codecs before the shards only move elements, and none are behind them, so parts of a shard can be read and
        changed.
    program, order, swap, step_names
        See `Lowered`.
    sizes : list of (int or None, bool)
        Maximum number of bytes before each codec from bytes to bytes and after the last (None: unbounded), and whether
        it is the exact number.
    max_encoded : int or None
        Maximum size of the object of a chunk; None if it is unbounded.

    Raises
    ------
    MetadataError
        A configuration is wrong, the kinds are in the wrong order, or a codec does not accept its input.
    UnknownCodecError
        No codec has a listed name.
    UnsupportedError
        zcore cannot run a codec, but knows its name.

    Examples
    --------
    >>> from zcore.model.metadata import CodecSpec
    >>> specs = CodecSpec("transpose", {"order": [1, 0]}), CodecSpec("bytes"), CodecSpec("gzip", {"level": 5})
    >>> chain = CodecChain(specs, np.dtype("<i2"), (2, 3))
    >>> chain.order, chain.swap, chain.step_names
    ((1, 0), 0, ('gzip',))
    """

    __slots__ = ("dtype", "chunk_shape", "codecs", "array_codecs", "serializer", "compressors", "array_types",
                 "header_itemsize", "shards", "inner_shape", "is_partial", "program", "order", "swap", "step_names",
                 "max_encoded", "lowered", "sizes", "_axes", "_like", "__weakref__")
    dtype: np.dtype[Any]
    chunk_shape: tuple[int, ...]
    codecs: tuple[Codec, ...]
    array_codecs: tuple[Any, ...]
    serializer: Any
    compressors: tuple[Any, ...]
    array_types: list[Stage]
    header_itemsize: int
    shards: Shards | None
    inner_shape: tuple[int, ...] | None
    is_partial: bool
    program: Program | ShardProgram
    order: tuple[int, ...] | None
    swap: int
    step_names: tuple[str, ...]
    max_encoded: int | None
    lowered: Lowered
    sizes: list[Size]

    def __init__(self, specs: Iterable[CodecSpec], dtype: np.dtype[Any], chunk_shape: Iterable[int],
                 strict: bool = True, fill: npt.NDArray[Any] | None = None) -> None:
        self._like = None     # the chain that this one differs from in nothing but the shape of chunks
        self.dtype = dtype
        self.chunk_shape = tuple(chunk_shape)
        codecs = []
        try:
            for spec in specs:
                codecs.append(codec_of(spec.name, spec.configuration))
            self._sort(codecs)
            self.array_types = types = self._types_of(self.chunk_shape)
            fill = self._encoded_fill(fill)
            codecs = tuple([codec for codec in codecs if not isinstance(codec, BytesCodec)])
            self._cut_shards(types[-1], strict, fill)
            self.header_itemsize = self._choose(types[-1][0], strict)
            self.sizes = self._sizes_of(types)
        except (ValueError, TypeError) as exc:
            if isinstance(exc, ZcoreError):
                raise
            raise MetadataError(f"codecs: {exc}", member="codecs") from exc
        self.codecs = (*codecs[:len(codecs) - len(self.compressors)], *self.compressors)
        self._lower()

    def for_chunks(self, chunk_shape: tuple[int, ...], *, is_listed: bool = False) -> CodecChain | None:
        """Return the chain for chunks of a shape with the same number of dimensions; None for other shards.

        `is_listed`: most probably nothing of it will be asked for.

        Raises : ValueError, if a codec does not accept such chunks.
        """
        if chunk_shape == self.chunk_shape:
            return self
        like = self._like or self
        if like.shards is not None:
            return None
        new = object.__new__(CodecChain)
        new.chunk_shape = chunk_shape
        is_same = like.program.is_native and not any(map(_is_sized, like.compressors))
        # A codec from array to array may refuse such chunks.
        new._like = like if is_listed and is_same and not like.array_codecs else None
        if new._like is None:
            new._follow(like, like.lowered if is_same else None)
        return new

    def __getattr__(self, name: str) -> Any:
        """Complete the chain of an array that was listed."""
        if name not in _WHEN_ASKED or self._like is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        self._follow(self._like, self._like.lowered)
        return getattr(self, name)

    def _follow(self, like, lowered):
        # Without shards, these do not depend on the shape of chunks.
        self.dtype, self.codecs, self.array_codecs, self.serializer = (
            like.dtype, like.codecs, like.array_codecs, like.serializer)
        self.compressors, self.header_itemsize, self.shards = like.compressors, like.header_itemsize, None
        self.inner_shape, self.is_partial, self._axes = like.inner_shape, like.is_partial, like._axes
        self.array_types = self._types_of(self.chunk_shape)
        self.sizes = self._sizes_of(self.array_types)
        self._lower(lowered)

    def _sort(self, codecs):
        """Sort the codecs by kind."""
        kinds = [_KINDS.index(codec.kind) for codec in codecs]
        if kinds.count(1) != 1 or kinds != sorted(kinds):
            raise ValueError("expected codecs from array to array, one from array to bytes, and codecs from bytes to "
                             f"bytes, found {', '.join([codec.name for codec in codecs]) or 'none'}")
        at = kinds.index(1)
        self.array_codecs, self.serializer, self.compressors = tuple(codecs[:at]), codecs[at], tuple(codecs[at + 1:])

    def _cut_shards(self, stage, strict, fill):
        """Replace a sharding codec by the array's shards."""
        self.shards = self.inner_shape = None
        self.is_partial = False
        rest, self._axes = leading_transposes(self.array_codecs, tuple(range(len(self.chunk_shape))))
        if self._axes != tuple(range(len(self._axes))) and getattr(self.serializer, "is_bound_to_order", False):
            raise UnsupportedError(f"{self.serializer.name!r} behind 'transpose'",
                                   feature=f"{self.serializer.name} of transposed chunks")
        if isinstance(self.serializer, ShardingCodec):
            from zcore.codecs.sharding import Shards

            self.serializer = self.shards = Shards(self.serializer, CodecChain, *stage, fill, strict)
            self.is_partial = not rest and not self.compressors
            self.inner_shape = self._inner_shape()

    def _inner_shape(self):
        axes = range(len(self.chunk_shape))
        for codec in self.array_codecs:
            if codec.name == "reshape":
                # The inner chunks are no boxes of the array.
                return self.chunk_shape
            if codec.name == "transpose":
                axes = [axes[d] for d in codec.order]
        return in_array(self.shards.chunk_shape, axes)

    def _encoded_fill(self, fill):
        """Return the fill value before the codec from array to bytes; None if nothing needs it."""
        # Other codecs may not be able to encode it: some only decode.
        if fill is None or not (isinstance(self.serializer, ShardingCodec)
                                or any([codec.checks_fill for codec in self.array_codecs])):
            return None
        fill = fill.reshape((1,) * len(self.chunk_shape))
        for codec in self.array_codecs:
            if not codec.is_move:
                fill = codec.encode_fill(fill)
        return fill

    def _types_of(self, shape):
        """Return (dtype, shape) before each codec from array to array and after the last, for a chunk of `shape`."""
        types = [(self.dtype, tuple(shape))]
        for codec in self.array_codecs:
            types.append(codec.encoded_type(*types[-1]))
        return types

    def _choose(self, dtype, strict):
        """Set the parameters that codecs leave to the chain, for items of type `dtype`.

        Return the item size that headers must name, 0 for any.
        """
        itemsize = dtype.itemsize if isinstance(self.serializer, BytesCodec) else 1
        chosen = set()
        compressors = list(self.compressors)
        for i, codec in enumerate(compressors):
            compressors[i] = codec = codec.resolve(itemsize)
            if codec.name == "numcodecs.shuffle" and "numcodecs.fletcher32" in [one.name for one in compressors[:i]]:
                codec.copies_rest = checksums.NBYTES % codec.elementsize != 0
            if isinstance(codec, BloscCodec):
                codec.strict = strict
                chosen.add(codec.typesize)
        self.compressors = tuple(compressors)
        return chosen.pop() if strict and len(chosen) == 1 else 0

    def _sizes_of(self, types):
        """Return (bytes, is exact) before each codec from bytes to bytes and after the last.

        The number of bytes is the maximum, None if it is unbounded.
        """
        n_bytes = self.serializer.encoded_nbytes(*types[-1])
        sizes = [(n_bytes, n_bytes is not None and self.shards is None)]
        for codec in self.compressors:
            n_bytes = None if n_bytes is None else codec.max_encoded(n_bytes)
            sizes.append((n_bytes, sizes[-1][1] and codec.is_fixed))
        return sizes

    def check_sizes(self) -> None:
        """Raise ValueError if no chunk could be encoded, because a codec from bytes to bytes takes fewer bytes.

        An array that exists can be read, and its fill value erases objects. So only a new array is checked.
        """
        for codec, (n_bytes, is_exact) in zip(self.compressors, self.sizes, strict=False):
            if codec.max_content is not None and is_exact and n_bytes > codec.max_content:
                raise ValueError(f"expected chunks of at most {codec.max_content} bytes, the limit of {codec.name}, "
                                 f"found {n_bytes}")
        if self.shards is not None:
            self.shards.chain.check_sizes()

    def _lower(self, known=None):
        """Compute the maximum size of an object, and the chain's form in the kernel unless it is known."""
        self.max_encoded = self.sizes[-1][0]
        self.lowered = lowered(self) if known is None else known
        self.program, self.order, self.swap, self.step_names = self.lowered

    def check_edges(self, edges: Sequence[Edges | None]) -> None:
        """Raise MetadataError unless the chain accepts chunks of each of these lengths.

        Parameters
        ----------
        edges : tuple of (Edges or None)
            Chunk lengths of the array, for the dimensions in which its chunks differ.

        Raises
        ------
        UnsupportedError
            A codec depends on the shape, and there are too many shapes to try each.

        Notes
        -----
        zarr-extensions, "rectilinear", has no extra rule for shards: the inner chunk shape must divide each of them.
        """
        if any([codec.name == "reshape" for codec in self.array_codecs]):
            self._check_each_shape(edges)
        elif self.shards is not None:
            for d, length in enumerate(self.inner_shape):
                if edges[d] is not None and not edges[d].are_multiples_of(length):
                    raise MetadataError(f"chunk_shape of sharding_indexed is {self.shards.chunk_shape}, and the length "
                                        f"of some shards in dimension {d} is no multiple of {length}",
                                        member="chunk_shape")

    def _check_each_shape(self, edges):
        """Raise MetadataError unless the chain accepts chunks of each possible shape."""
        lengths = [(chunk,) if unequal is None else sorted({edge for edge, _ in unequal.runs})
                   for chunk, unequal in zip(self.chunk_shape, edges, strict=True)]
        if prod(map(len, lengths)) > MAX_SHAPES:
            raise UnsupportedError(f"'reshape' of chunks of more than {MAX_SHAPES} shapes",
                                   feature="reshape of a rectilinear grid")
        for shape in product(*lengths):
            try:
                self._sizes_of(self._types_of(shape))
            except ValueError as exc:
                raise MetadataError(f"codecs: {exc}", member="codecs") from exc

    def stages_of(self, shape: tuple[int, ...]) -> tuple[list[Stage], list[Size]]:
        """Return types and sizes of a chunk of `shape` before each codec; see `_types_of` and `_sizes_of`.

        Raises : CodecError, if a codec does not accept such a chunk.
        """
        if shape == self.chunk_shape:
            return self.array_types, self.sizes
        try:
            types = self._types_of(shape)
            return types, self._sizes_of(types)
        except (ValueError, TypeError) as exc:
            if isinstance(exc, ZcoreError):
                raise
            raise CodecError(f"a chunk of shape {shape}: {exc}") from exc

    def decode(self, data: Buffer, shape: tuple[int, ...] | None = None) -> npt.NDArray[Any]:
        """Return the chunk of an object, as an ndarray of `shape`, by default the chunk shape.

        Raises
        ------
        ChunkError
            The object is damaged.
        """
        shape = self.chunk_shape if shape is None else shape
        types, sizes = self.stages_of(shape)
        data = self.unwrap(data, self.compressors, sizes, prod(shape))
        return np.asarray(self.elements_of(data, types), self.dtype)

    def elements_of(self, data: Buffer, types: Sequence[Stage], n_moves: int = 0) -> Any:
        """Undo the codec to bytes, and those from array to array behind the first `n_moves`; see `stages_of`."""
        chunk = self.serializer.decode(data, *types[-1])
        for codec, (dtype, inner) in zip(reversed(self.array_codecs[n_moves:]), reversed(types[n_moves:-1]),
                                         strict=True):
            chunk = codec.decode(chunk, dtype, inner)
        return chunk

    @staticmethod
    def unwrap(data: Buffer, compressors: Sequence[Any], sizes: Sequence[Size], n_items: int) -> Buffer:
        """Undo codecs from bytes to bytes; `sizes` are the sizes of each one's content, see `stages_of`."""
        # One limit for all codecs together: each could expand the output of the one before.
        most = VARYING_NBYTES_FREE + VARYING_NBYTES_EACH * (len(data) + n_items)
        for codec, (n_bytes, is_exact) in zip(reversed(compressors), reversed(sizes[:len(compressors)]), strict=True):
            data = (codec.decode(data, n_bytes, not is_exact) if n_bytes is not None
                    else _decode_varying(codec, data, min(most, MAX_VARYING_NBYTES)))
        return data

    def encode(self, chunk: npt.NDArray[Any]) -> Buffer:
        """Return the object of a chunk, a bytes-like; `chunk` has the chain's type."""
        data = self.bytes_of(chunk)
        for codec in self.compressors:
            data = codec.encode(data)
        return data

    def bytes_of(self, chunk: npt.NDArray[Any], n_moves: int = 0) -> Buffer:
        """Return the bytes of a chunk that the first `n_moves` codecs have encoded, before compressors."""
        for codec in self.array_codecs[n_moves:]:
            chunk = codec.encode(chunk)
        return self.serializer.encode(chunk)


_is_sized = attrgetter("is_sized")
_WHEN_ASKED = frozenset(CodecChain.__slots__) - {"_like", "chunk_shape", "__weakref__"}


def _decode_varying(codec, data, most):
    """Decode content of unknown size, at most `most` bytes, in growing buffers, so that small content costs little."""
    limit = max(_GROWTH * len(data), _SMALL_NBYTES)
    while True:
        limit = min(limit, most)
        try:
            return codec.decode(data, limit, True)
        except CodecError as error:
            is_too_long = error.expected == limit and error.found is not None and error.found > limit
            if not is_too_long or limit >= most:
                raise
        limit *= _GROWTH
