"""Codecs of Zarr's registry that wrap others: `n5_default`, the blocks of N5, and `conditional`.

An N5 block is a chunk in Fortran order and big-endian, behind a header with its shape: at the border it may be cut off,
or be whole. A conditional chunk begins with a bit for each codec inside, which says whether it was applied.
"""
from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

import numpy as np

from zcore.codecs.base import Codec, check_size
from zcore.codecs.bytes_bytes.compressors import BloscCodec
from zcore.codecs.chain import VARYING_NBYTES_EACH, VARYING_NBYTES_FREE, CodecChain, codec_of
from zcore.codecs.sharding import documents_of, specs_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Self

    import numpy.typing as npt

    from zcore.codecs.chain import Size
    from zcore.model.metadata import CodecSpec
    from zcore.typing import Buffer

_N5_TYPES = frozenset("iuf")
_MAX_KEPT_SHAPES = 64      # chains of blocks that are cut off


class _Wrapping(Codec):
    """A codec with codecs inside."""

    def __init__(self, *, codecs: Iterable[Codec | CodecSpec | Mapping[str, Any]]) -> None:
        if not isinstance(codecs, (list, tuple)):
            raise ValueError(f"codecs of {self.name!r}: expected a list, found {codecs!r:.60}")
        self.codecs: tuple[CodecSpec, ...] = specs_of("codecs", codecs)

    def configuration(self) -> dict[str, Any]:
        """Return the configuration for documents, a dict."""
        return {"codecs": documents_of(self.codecs)}


class N5DefaultCodec(_Wrapping):
    """A block of N5 in default mode.

    Parameters
    ----------
    codecs : sequence of codec, dict or CodecSpec
        `transpose` of all dimensions, `bytes` in big-endian order, and perhaps a compressor.

    Notes
    -----
    zarr-extensions, "n5_default". A block of another shape than the chunk's is padded with zeros, or cut off.
    """

    name = "n5_default"
    kind = "array_bytes"
    is_bound_to_order: bool = True

    def __init__(self, *, codecs: Iterable[Codec | CodecSpec | Mapping[str, Any]]) -> None:
        super().__init__(codecs=codecs)
        names = [spec.name for spec in self.codecs]
        if names[:2] != ["transpose", "bytes"] or len(names) > 3:
            raise ValueError("codecs of 'n5_default': expected 'transpose', 'bytes' and at most one compressor, found "
                             f"{', '.join(names)}")
        self._chains = {}

    def _chain(self, dtype, shape):
        """Return the chain of a block of big-endian numbers."""
        found = self._chains.get((dtype, shape))
        if found is None:
            if len(self._chains) >= _MAX_KEPT_SHAPES:
                self._chains = {}
            found = self._chains[dtype, shape] = CodecChain(self.codecs, dtype.newbyteorder(">"), shape, False)
        return found

    def encoded_nbytes(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        """Return None: a block may be longer than the chunk.

        Raises : ValueError, if N5 has no such type, or the codecs inside are not those of N5.
        """
        if dtype.kind not in _N5_TYPES or dtype.str[1:] == "f2":
            raise ValueError(f"'n5_default' takes integers, float32 and float64, not {dtype}")
        transpose, layout = self.codecs[:2]
        if list(transpose.configuration.get("order", ())) != list(range(len(shape)))[::-1]:
            raise ValueError(f"'n5_default' needs a 'transpose' of all {len(shape)} dimensions, found the order "
                             f"{transpose.configuration.get('order')!r:.60}")
        if layout.configuration.get("endian", "big" if dtype.itemsize == 1 else None) != "big":
            raise ValueError(f"'n5_default' needs 'bytes' that are 'big', found {layout.configuration!r:.60}")
        self._chain(dtype, shape)

    def encode(self, chunk: npt.NDArray[Any]) -> bytes:
        """Return the block of a chunk, of the shape of the chunk."""
        chain = self._chain(chunk.dtype, chunk.shape)
        return struct.pack(f">HH{chunk.ndim}I", 0, chunk.ndim, *chunk.shape) + bytes(
            chain.encode(np.asarray(chunk, chain.dtype)))

    def decode(self, data: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return the chunk of a block.

        Raises : ChunkError, if the block is damaged, of another mode, or of another number of dimensions.
        """
        data, ndim = bytes(data), len(shape)
        n_header = 4 + 4 * ndim
        if len(data) < n_header:
            raise self.damage(f"block of N5 has {len(data)} bytes, its header alone needs {n_header}", 0, n_header,
                              len(data))
        mode, n, *stored = struct.unpack_from(f">HH{ndim}I", data)
        if mode != 0 or n != ndim:
            raise self.damage(f"block of N5 has mode {mode} and {n} dimensions, expected mode 0 and {ndim}", 0, ndim, n)
        stored = tuple(stored)
        most = VARYING_NBYTES_FREE + VARYING_NBYTES_EACH * (len(data) + math.prod(shape))
        if math.prod(stored) * dtype.itemsize > most or 0 in stored:
            raise self.damage(f"block of N5 says the shape {stored}, the chunk has {shape}")
        block = self._chain(dtype, stored).decode(memoryview(data)[n_header:])
        if stored == shape:
            return np.asarray(block, dtype)
        chunk = np.zeros(shape, dtype)
        inside = tuple([slice(min(a, b)) for a, b in zip(stored, shape, strict=True)])
        chunk[inside] = block[inside]
        return chunk


class ConditionalCodec(_Wrapping):
    """Codecs from bytes to bytes of which each is applied to a chunk or not, as the chunk says.

    Parameters
    ----------
    codecs : sequence of codec, dict or CodecSpec
    header_bits : int, optional
        Bits before the chunk, a multiple of 8; by default as few as the codecs need.

    Notes
    -----
    zarr-extensions, "conditional". A chunk is written with all codecs if that makes it shorter, else with none.
    """

    name = "conditional"
    kind = "bytes_bytes"
    is_fixed: bool = False

    def __init__(self, *, codecs: Iterable[Codec | CodecSpec | Mapping[str, Any]],
                 header_bits: int | None = None) -> None:
        super().__init__(codecs=codecs)
        n = len(self.codecs)
        if header_bits is not None and (type(header_bits) is not int or header_bits % 8
                                        or not n <= header_bits <= 2**16):
            raise ValueError(f"header_bits of 'conditional' is {header_bits!r:.60}, expected a multiple of 8 of at "
                             f"least {n}")
        self.header_bits = header_bits
        self._n_header = -(-n // 8) if header_bits is None else header_bits // 8
        self._inner = tuple([codec_of(spec.name, spec.configuration) for spec in self.codecs])
        for codec in self._inner:
            if codec.kind != "bytes_bytes":
                raise ValueError(f"'conditional' takes codecs from bytes to bytes, not {codec.name!r}")
            if isinstance(codec, BloscCodec):
                codec.strict = False     # chunks may name another item size, as everywhere in Zarr v3

    def configuration(self) -> dict[str, Any]:
        """Return the configuration for documents, a dict."""
        return {**super().configuration(), **({} if self.header_bits is None else {"header_bits": self.header_bits})}

    def resolve(self, itemsize: int) -> Self:
        """Return the codec for items of `itemsize` bytes, with all parameters set."""
        new = type(self)(codecs=self.codecs, header_bits=self.header_bits)
        new._inner = tuple([codec.resolve(itemsize) for codec in self._inner])
        return new

    def max_encoded(self, n_bytes: int) -> int | None:
        """Return the maximum encoded size of `n_bytes` bytes, which another writer may have chosen."""
        n_most = n_bytes
        for codec in self._inner:
            n_bytes = codec.max_encoded(max(n_bytes, n_most))
            if n_bytes is None:
                return None
            n_most = max(n_most, n_bytes)
        return self._n_header + n_most

    def encode(self, data: Buffer) -> bytes:
        """Return `data` encoded by all codecs, or `data` itself if that is not longer."""
        plain = encoded = bytes(data)
        for codec in self._inner:
            encoded = bytes(codec.encode(encoded))
        applied = len(encoded) < len(plain)
        mask = 2**len(self._inner) - 1 if applied else 0
        return mask.to_bytes(self._n_header, "little") + (encoded if applied else plain)

    def decode(self, data: Buffer, n_bytes: int, at_most: bool = False) -> Buffer:
        """Return the content: exactly `n_bytes` bytes, or at most that with `at_most`.

        Raises : ChunkError, if it is damaged, or names codecs that are not there.
        """
        data = bytes(data)
        if len(data) < self._n_header:
            raise self.damage(f"chunk has {len(data)} bytes, its header alone needs {self._n_header}", 0,
                              self._n_header, len(data))
        mask, n = int.from_bytes(data[:self._n_header], "little"), len(self._inner)
        if mask >> n:
            raise self.damage(f"the header names codec {mask.bit_length() - 1}, there are {n}", 0, n, mask.bit_length())
        applied = [codec for i, codec in enumerate(self._inner) if mask >> i & 1]
        sizes: list[Size] = [(n_bytes, not at_most)]
        for codec in applied:
            most, is_exact = sizes[-1]
            sizes.append((None if most is None else codec.max_encoded(most), is_exact and codec.is_fixed))
        content = CodecChain.unwrap(memoryview(data)[self._n_header:], applied, sizes, n_bytes)
        check_size(self.name, memoryview(content).nbytes, n_bytes, at_most)
        return content


CODECS: dict[str, type[Codec]] = {codec.name: codec for codec in (N5DefaultCodec, ConditionalCodec)}
