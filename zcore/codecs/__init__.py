"""Codecs: how a chunk becomes bytes. The classes have zarr-python's names."""
from zcore.codecs.checksums import Crc32cCodec
from zcore.codecs.compressors import BloscCodec, GzipCodec, ZstdCodec
from zcore.codecs.layout import BytesCodec, TransposeCodec
from zcore.codecs.sharding import ShardingCodec

__all__ = ["BloscCodec", "BytesCodec", "Crc32cCodec", "GzipCodec", "ShardingCodec", "TransposeCodec", "ZstdCodec"]


def __dir__():
    """Return the public names, for completion at a prompt: submodules that imports leave here are not."""
    return __all__
