"""`bytes` (Zarr v3, codec "bytes"): the elements of a chunk in C order, in one byte order.

It is no pass over the data in the kernel, but a part of the copy that moves elements between the chunk and the caller's
array.
"""
from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from zcore.codecs.base import Codec
from zcore.errors import CodecError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal, Self

    import numpy.typing as npt

    from zcore.typing import Buffer


class BytesCodec(Codec):
    """Stores the elements in C order.

    Parameters
    ----------
    endian : {"little", "big", None}
        Byte order of items of several bytes. None for single bytes and for structures, whose fields have their own.
    """

    name = "bytes"
    kind = "array_bytes"
    _parameters = _left_out = ("endian",)

    def __init__(self, *, endian: Literal["little", "big"] | None = "little") -> None:
        if endian not in ("little", "big", None):
            raise ValueError(f"endian is {endian!r}, expected 'little' or 'big'")
        self.endian = endian

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        """Return the codec of a document's configuration; without `endian` items have one byte."""
        return cls(endian=configuration.get("endian"))

    def __repr__(self) -> str:
        return f"BytesCodec(endian={self.endian!r})"

    def stored_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the type in the stored byte order."""
        if self.endian is None or dtype.byteorder == "|" or dtype.names is not None:
            return dtype
        return dtype.newbyteorder("<" if self.endian == "little" else ">")

    def encoded_nbytes(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> int:
        """Return the size of a chunk's bytes."""
        if dtype.hasobject or dtype.kind == "T":
            raise ValueError(f"'bytes' stores items of one size, not {dtype}")
        return dtype.itemsize * prod(shape)

    def encode(self, chunk: npt.NDArray[Any]) -> bytes:
        """Return the bytes of a chunk."""
        stored = self.stored_dtype(chunk.dtype)
        if stored == chunk.dtype:
            # As bytes: copying a structure would drop the bytes between its fields.
            stored = np.dtype(f"V{chunk.dtype.itemsize}")
            chunk = chunk.view(stored)
        # Made contiguous first: for other arrays, `tobytes` of NumPy before 2.4 supports only 32 dimensions.
        return chunk.astype(stored, "C", copy=False).tobytes()

    def decode(self, data: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return `data` as a chunk.

        Raises
        ------
        CodecError
            `data` has another size.
        """
        n_bytes = self.encoded_nbytes(dtype, shape)
        if len(data) != n_bytes:
            raise CodecError(f"chunk decodes to {len(data)} bytes, expected {n_bytes}", direction="decode", offset=0,
                             expected=n_bytes, found=len(data))
        return np.frombuffer(data, dtype=self.stored_dtype(dtype)).reshape(shape)
