"""A codec chain made of what a document lists: for the kernel a `Program`, for Python `encode` and `decode`.

Zarr v3 core, "Chunk encoding": an array-to-bytes codec, then bytes-to-bytes codecs; decoding goes the other way.
"""
import math

import numpy as np

from zcore.codecs.checksums import Crc32cCodec
from zcore.codecs.compressors import BloscCodec
from zcore.codecs.layout import BytesCodec
from zcore.errors import CodecError, UnknownCodecError
from zcore.kernel.program import Program

CODECS = {codec.name: codec for codec in (BloscCodec, BytesCodec, Crc32cCodec)}


def codec_of(name, configuration):
    """Return the codec that a document or a caller names.

    Raises
    ------
    UnknownCodecError
        There is none of this name.
    ValueError, TypeError
        The configuration is not one of this codec.
    """
    cls = CODECS.get(name) if isinstance(name, str) else None
    if cls is None:
        raise UnknownCodecError(f"no codec is named {name!r}; there are {', '.join(sorted(CODECS))}", feature="codec",
                                codec=name)
    return cls.from_configuration(configuration)


class CodecChain:
    """The codecs of one array.

    Parameters
    ----------
    specs : sequence of CodecSpec
    dtype : numpy.dtype
        Of the decoded chunk, stored byte order included.
    chunk_shape : tuple of int
    strict : bool
        Refuse blosc chunks that name another item size than the array's or 1.

    Attributes
    ----------
    program : Program or None
        The chain in C, if it has such a form.
    step_names : tuple of str
        Names of the program's steps.
    max_encoded : int
        The most bytes that the object of a chunk has.

    Raises
    ------
    UnknownCodecError
        No codec has a name that is listed.
    """

    __slots__ = ("dtype", "chunk_shape", "codecs", "program", "step_names", "max_encoded")

    def __init__(self, specs, dtype, chunk_shape, strict=True):
        self.dtype = dtype
        self.chunk_shape = chunk_shape
        # The first is `bytes`, which is no step: the order of the bytes is part of the type.
        self.codecs = tuple([codec_of(spec.name, spec.configuration) for spec in specs])[1:]
        itemsize = 0
        for codec in self.codecs:
            if codec.name == "blosc":
                codec.strict = strict
                itemsize = codec.typesize if strict else 0
        self.step_names = tuple([codec.name for codec in self.codecs])
        n_bytes = math.prod(chunk_shape) * dtype.itemsize
        self.max_encoded = n_bytes + sum([codec.overhead for codec in self.codecs])
        self.program = Program([codec.step() for codec in self.codecs], itemsize)

    def decode(self, data, shape=None):
        """Return the chunk that an object holds, as an ndarray of `shape`, the chunk's by default.

        Raises
        ------
        ChunkError
            The object is damaged.
        """
        shape = self.chunk_shape if shape is None else shape
        n_bytes = math.prod(shape) * self.dtype.itemsize
        for codec in reversed(self.codecs):
            data = codec.decode(data, n_bytes)
        if len(data) != n_bytes:
            raise CodecError(f"chunk decodes to {len(data)} bytes, expected {n_bytes}", direction="decode", offset=0,
                             expected=n_bytes, found=len(data))
        return np.frombuffer(data, dtype=self.dtype).reshape(shape)

    def encode(self, chunk):
        """Return the object of a chunk, a bytes-like; `chunk` has the chain's type and shape."""
        data = np.ascontiguousarray(chunk).tobytes()
        for codec in self.codecs:
            data = codec.encode(data)
        return data
