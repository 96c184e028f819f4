"""Codecs: how a chunk is encoded. The classes have zarr-python's names."""
from zcore.codecs import blosc, numcodecs
from zcore.codecs.array_array.reorder import TransposeCodec
from zcore.codecs.array_bytes.bytes_codec import BytesCodec
from zcore.codecs.base import Codec
from zcore.codecs.blosc import BloscCname, BloscShuffle
from zcore.codecs.bytes_bytes.checksums import Crc32cCodec
from zcore.codecs.bytes_bytes.compressors import BloscCodec, GzipCodec, ZstdCodec
from zcore.codecs.sharding import ShardingCodec

__all__ = ["BloscCname", "BloscCodec", "BloscShuffle", "BytesCodec", "Codec", "Crc32cCodec", "GzipCodec",
           "ShardingCodec", "TransposeCodec", "ZstdCodec", "blosc", "numcodecs"]


def __dir__() -> list[str]:
    """Return the public names, for completion at a prompt, without the submodules that imports leave here."""
    return __all__
