"""Codecs: how a chunk becomes bytes. The classes have zarr-python's names."""
from zcore.codecs.checksums import Crc32cCodec
from zcore.codecs.compressors import BloscCodec
from zcore.codecs.layout import BytesCodec

__all__ = ["BloscCodec", "BytesCodec", "Crc32cCodec"]
