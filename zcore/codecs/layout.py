"""How the elements of a chunk lie in its decoded bytes.

`bytes` (Zarr v3, codec "bytes"): C order, in a byte order. It is no pass over the data: the byte order is part of the
type that chunks are viewed as.
"""
from zcore.model.metadata import CodecSpec


class BytesCodec:
    """Elements one after the other in C order.

    Parameters
    ----------
    endian : {"little", "big", None}
        Byte order of items of several bytes.
    """

    name = "bytes"

    def __init__(self, *, endian="little"):
        if endian not in ("little", "big", None):
            raise ValueError(f"endian is {endian!r}, expected 'little' or 'big'")
        self.endian = endian

    @classmethod
    def from_configuration(cls, configuration):
        """Return the codec of a document's configuration; without `endian` items have one byte."""
        return cls(endian=configuration.get("endian"))

    def spec(self):
        """Return the `CodecSpec` that documents record."""
        return CodecSpec(self.name, {} if self.endian is None else {"endian": self.endian})

    def __repr__(self):
        return f"BytesCodec(endian={self.endian!r})"
