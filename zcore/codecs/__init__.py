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
from zcore.codecs.sharding import ShardingCodec, ShardingCodecIndexLocation, SubchunkWriteOrder
from zcore.text.tried_names import no_attribute

# Codecs that are imported when they are first asked for, and their names in documents.
_LATER = {"CastValue": "cast_value", "ScaleOffset": "scale_offset", "VLenBytesCodec": "vlen-bytes",
          "VLenUTF8Codec": "vlen-utf8"}

__all__ = ["BloscCname", "BloscCodec", "BloscShuffle", "BytesCodec", "CastValue", "Codec", "Crc32cCodec", "Endian",
           "GzipCodec", "ScaleOffset", "ShardingCodec", "ShardingCodecIndexLocation", "SubchunkWriteOrder",
           "TransposeCodec", "VLenBytesCodec", "VLenUTF8Codec", "ZstdCodec", "blosc", "numcodecs"]


def __dir__() -> list[str]:
    return list(__all__)     # for completion at a prompt


Endian: SimpleNamespace = SimpleNamespace(little="little", big="big")
# zarr-python's modules of one codec each: `zcore.codecs.zstd` is this module.
for _name in ("bytes", "cast_value", "crc32c_", "gzip", "scale_offset", "transpose", "vlen_utf8", "zstd"):
    globals()[_name] = sys.modules[f"{__name__}.{_name}"] = sys.modules[__name__]


def __getattr__(name: str) -> type[Codec]:
    if name not in _LATER:
        raise no_attribute(__name__, name, __all__)
    from zcore.codecs.chain import class_of

    return class_of(_LATER[name])
