"""Blosc chunks, codecs, and what an array's document says."""
from pathlib import Path
from typing import assert_type

import zcore
from zcore import blosc, codecs


def names(chain: tuple[codecs.Codec, ...]) -> list[str]:
    return [codec.name for codec in chain]


def main(folder: Path) -> None:
    chunk = blosc.compress(bytes(1000), cname="lz4", shuffle=1, typesize=4)
    assert_type(chunk, bytes)
    header = blosc.header(chunk)
    assert header.nbytes == 1000 and header.compressor == "lz4"
    assert_type(blosc.decompress(chunk), bytearray)
    out = bytearray(1000)
    assert_type(blosc.decompress(chunk, out), bytearray)
    assert blosc.can_compress("zstd") and "zstd" in blosc.COMPRESSORS

    z = zcore.create_array(folder / "a.zarr", shape=(8, 8), chunks=4, dtype="<u2", order="F",
                           compressors=codecs.BloscCodec(cname="zstd", clevel=3, shuffle="bitshuffle"))
    assert names(z.compressors) == ["blosc"]
    assert names(z.filters) == ["transpose"] and isinstance(z.serializer, codecs.BytesCodec)
    metadata = z.metadata
    assert metadata.chunk_keys.encode((1, 2)) == "c/1/2"
    assert [spec.name for spec in metadata.codecs][-1] == "crc32c"
    assert metadata.replace(shape=(16, 8)).grid_shape == (4, 2)
    named = zcore.create_array(folder / "b.zarr", shape=4, dtype="f4", zarr_format=2,
                               compressors={"id": "zlib", "level": 1})
    assert named.zarr_format == 2
    old = zcore.open(folder / "c.zarr", "w", shape=(4, 4), chunks=2, dtype="i4", cname="lz4", clevel=3, shuffle=2)
    assert old.zarr_format == "zmeta" and old.info["format"] == "zmeta"
