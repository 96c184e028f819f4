"""Codecs: how a chunk is encoded. The classes have zarr-python's names."""
from zcore.codecs.checksums import Crc32cCodec
from zcore.codecs.compressors import BloscCodec, GzipCodec, ZstdCodec
from zcore.codecs.layout import BytesCodec, TransposeCodec
from zcore.codecs.sharding import ShardingCodec

__all__ = ["BloscCodec", "BytesCodec", "Crc32cCodec", "GzipCodec", "ShardingCodec", "TransposeCodec", "ZstdCodec"]


def __dir__():
    """Return the public names, for completion at a prompt, without the submodules that imports leave here."""
    return __all__
