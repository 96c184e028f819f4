"""Codecs without a C form, as steps of a chain's program.

A segment is a run of such codecs. Where the program comes to it, it takes the GIL and hands over the bytes it has; what
the segment makes of them goes on in C. So one chain may mix both.
"""
from math import prod

import numpy as np

from zcore.buffers import flat_view


class Segment:
    """A run of the codecs of a `CodecChain`.

    Parameters
    ----------
    chain : CodecChain
    start, stop : int
        Which of its codecs from bytes to bytes they are.
    n_moves : int or None
        The chain's codecs from array to array behind the first `n_moves`, which the kernel has undone, and the one
        from array to bytes belong to it; None: they do not.
    """

    def __init__(self, chain, start, stop, n_moves=None):
        self._chain = chain
        self._compressors = chain.compressors[start:stop]
        self._sizes = slice(start, stop)
        self._n_moves = n_moves

    def encode(self, data, shape):
        """Return what the codecs make of `data`, a bytearray; bytes-like.

        Parameters
        ----------
        data : bytearray
            The bytes of the elements of a chunk, or what the codecs before this one have made of them.
        shape : tuple of int or None
            Of the chunk, where it is not the chain's.
        """
        if self._n_moves is not None:
            chunk = self._elements(data, shape)
            for codec in self._chain.array_codecs[self._n_moves:]:
                chunk = codec.encode(chunk)
            data = self._chain.serializer.encode(chunk)
        for codec in self._compressors:
            data = codec.encode(data)
        return flat_view(data)

    def decode(self, data, n_bytes, at_most, shape):
        """Return what the codecs have made such `data` of: `n_bytes` bytes, or with `at_most` as many or fewer.

        Raises
        ------
        ChunkError
            They are damaged.
        """
        shape = self._chain.chunk_shape if shape is None else shape
        types, sizes = self._chain.stages_of(shape)
        data = self._chain.unwrap(data, self._compressors, sizes[self._sizes], prod(shape))
        if self._n_moves is None:
            return flat_view(data)
        chunk = self._chain.serializer.decode(data, *types[-1])
        for codec, (dtype, inner) in zip(reversed(self._chain.array_codecs[self._n_moves:]),
                                         reversed(types[self._n_moves:-1]), strict=True):
            chunk = codec.decode(chunk, dtype, inner)
        # As bytes: a copy of a structure would leave out those that belong to no field.
        chunk = np.asarray(chunk, types[self._n_moves][0])
        return np.ascontiguousarray(chunk.view(f"V{chunk.dtype.itemsize}")).reshape(-1).view(np.uint8)

    def _elements(self, data, shape):
        types, _ = self._chain.stages_of(self._chain.chunk_shape if shape is None else shape)
        dtype, shape = types[self._n_moves]
        return np.frombuffer(data, dtype).reshape(shape)


class Opaque:
    """In the place of a segment: items of varying length, which have no bytes for the kernel to move."""
