"""Codecs: how a chunk is encoded. The classes have zarr-python's names, and so have the modules to import them from."""
import sys
from types import SimpleNamespace

from zcore.codecs import blosc, numcodecs
from zcore.codecs.array_array.reorder import TransposeCodec
from zcore.codecs.array_bytes.bytes_codec import BytesCodec
from zcore.codecs.base import Codec
from zcore.codecs.blosc import BloscCname, BloscShuffle
from zcore.codecs.bytes_bytes.checksums import Crc32cCodec
from zcore.codecs.bytes_bytes.compressors import BloscCodec, GzipCodec, ZstdCodec
from zcore.codecs.sharding import ShardingCodec, ShardingCodecIndexLocation
from zcore.text.tried_names import no_attribute

__all__ = ["BloscCname", "BloscCodec", "BloscShuffle", "BytesCodec", "Codec", "Crc32cCodec", "Endian", "GzipCodec",
           "ShardingCodec", "ShardingCodecIndexLocation", "TransposeCodec", "VLenBytesCodec", "VLenUTF8Codec",
           "ZstdCodec", "blosc", "numcodecs"]


def __dir__() -> list[str]:
    return list(__all__)     # for completion at a prompt


Endian: SimpleNamespace = SimpleNamespace(little="little", big="big")
# zarr-python's modules of one codec each: `zcore.codecs.zstd` is this module.
for _name in ("bytes", "crc32c_", "gzip", "transpose", "vlen_utf8", "zstd"):
    globals()[_name] = sys.modules[f"{__name__}.{_name}"] = sys.modules[__name__]


def __getattr__(name: str) -> type[Codec]:
    """Import the codecs of text and bytes when they are first asked for."""
    if name not in ("VLenBytesCodec", "VLenUTF8Codec"):
        raise no_attribute(__name__, name, __all__)
    from zcore.codecs.array_bytes import varying

    return varying.VlenBytesCodec if name == "VLenBytesCodec" else varying.VlenUtf8Codec
