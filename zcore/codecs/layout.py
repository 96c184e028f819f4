"""How the elements of a chunk lie in its decoded bytes.

`transpose` (Zarr v3, codec "transpose") is the order of dimensions, `bytes` (codec "bytes") C order of what is left, in
a byte order. Neither is a pass over the data in the kernel: they are byte strides of the copy that moves elements
between the chunk and the caller's array.
"""
import numpy as np

from zcore.codecs.base import Codec
from zcore.errors import CodecError


class BytesCodec(Codec):
    """Elements one after the other in C order.

    Parameters
    ----------
    endian : {"little", "big", None}
        Byte order of items of several bytes; None for items of one, and for structures, whose fields have their own.
    """

    name = "bytes"
    kind = "array_bytes"

    def __init__(self, *, endian="little"):
        if endian not in ("little", "big", None):
            raise ValueError(f"endian is {endian!r}, expected 'little' or 'big'")
        self.endian = endian

    @classmethod
    def from_configuration(cls, configuration):
        """Return the codec of a document's configuration; without `endian` items have one byte."""
        return cls(endian=configuration.get("endian"))

    def configuration(self):
        """Return what documents record, a dict."""
        return {} if self.endian is None else {"endian": self.endian}

    def __repr__(self):
        return f"BytesCodec(endian={self.endian!r})"

    def stored_dtype(self, dtype):
        """Return the type in the byte order that items are stored in."""
        if self.endian is None or dtype.byteorder == "|" or dtype.names is not None:
            return dtype
        return dtype.newbyteorder("<" if self.endian == "little" else ">")

    def encoded_nbytes(self, dtype, shape):
        """Return the size of a chunk's bytes."""
        if dtype.hasobject or dtype.kind == "T":
            raise ValueError(f"'bytes' stores items of one size, not {dtype}")
        n_bytes = dtype.itemsize
        for length in shape:
            n_bytes *= length
        return n_bytes

    def encode(self, chunk):
        """Return the bytes of a chunk."""
        stored = self.stored_dtype(chunk.dtype)
        if stored == chunk.dtype:
            # As bytes: a copy of a structure would leave out those that belong to no field.
            stored = np.dtype(f"V{chunk.dtype.itemsize}")
            chunk = chunk.view(stored)
        # In order first: of an array that is not, NumPy before 2.4 takes the bytes only up to 32 dimensions.
        return chunk.astype(stored, "C", copy=False).tobytes()

    def decode(self, data, dtype, shape):
        """Return the chunk that `data` are.

        Raises
        ------
        CodecError
            They have another size.
        """
        n_bytes = self.encoded_nbytes(dtype, shape)
        if len(data) != n_bytes:
            raise CodecError(f"chunk decodes to {len(data)} bytes, expected {n_bytes}", direction="decode", offset=0,
                             expected=n_bytes, found=len(data))
        return np.frombuffer(data, dtype=self.stored_dtype(dtype)).reshape(shape)


class TransposeCodec(Codec):
    """The dimensions of a chunk in another order.

    Parameters
    ----------
    order : sequence of int
        A permutation: dimension ``i`` of what is encoded is dimension ``order[i]`` of the chunk. All dimensions
        reversed is Fortran order.

    Raises
    ------
    ValueError
        `order` is no permutation; ``"C"`` and ``"F"`` of early drafts are none.

    Examples
    --------
    >>> TransposeCodec(order=(2, 0, 1)).encoded_type(np.dtype("i4"), (2, 3, 4))
    (dtype('int32'), (4, 2, 3))
    """

    name = "transpose"
    kind = "array_array"
    is_move = True

    def __init__(self, *, order):
        if (not isinstance(order, (list, tuple)) or not all(type(d) is int for d in order)
                or sorted(order) != [*range(len(order))]):
            raise ValueError(f"order is {order!r}, expected a permutation of the dimensions")
        self.order = tuple(order)

    def configuration(self):
        """Return what documents record, a dict."""
        return {"order": list(self.order)}

    def encoded_type(self, dtype, shape):
        """Return type and shape of what is encoded.

        Raises
        ------
        ValueError
            The chunk has another number of dimensions.
        """
        if len(self.order) != len(shape):
            raise ValueError(f"'transpose' is of {len(self.order)} dimensions, expected {len(shape)}")
        return dtype, tuple([shape[d] for d in self.order])

    def step(self, dtype):
        """Return None: see `CodecChain.order`."""
        return None

    def encode(self, chunk):
        """Return a view of the chunk."""
        return chunk.transpose(self.order)

    def decode(self, chunk, dtype, shape):
        """Return a view of the encoded chunk."""
        return chunk.transpose(np.argsort(self.order))
