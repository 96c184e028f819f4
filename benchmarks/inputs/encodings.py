"""How the arrays of the benchmarks are stored, as data; and the same codecs without any library under test.

An `Encoding` is what an array's document says of its chunks. `encode` and `decode` do the same by python-blosc,
numcodecs (zstd) and Python's zlib, one chunk at a time.
"""
import gzip
import json
import struct
from dataclasses import dataclass

import numpy as np

CNAME, CLEVEL, SHUFFLE = "lz4", 5, 1
ZMETA, V2, V3 = "zmeta", "v2", "v3"
REFERENCES = "references"  # Zarr v2 in a reference set: all chunks are parts of one file
DOCUMENTS = {ZMETA: "__zmeta__", V2: ".zarray", V3: "zarr.json"}
NO_CHUNK = 2**64 - 1  # sharding_indexed v1, "Binary shard format": offset and length of a chunk that is not there


@dataclass(frozen=True)
class Encoding:
    """How chunks become bytes.

    Attributes
    ----------
    views : tuple of {"zmeta", "v2", "v3", "references"}
        Formats in which the same chunk files are seen.
    codec : {"blosc", "zstd", "gzip", None}
    cname : str
        Of blosc, whose level is 5 and whose shuffle goes by bytes.
    level : int
        Of zstd and gzip.
    order : {"C", "F"}
        Of the elements in a chunk.
    """

    views: tuple
    codec: str | None = "blosc"
    cname: str = CNAME
    level: int = 0
    order: str = "C"


ENCODINGS = {
    "lz4": Encoding((ZMETA, V2)),
    "v2": Encoding((V2,)),
    "v2_order_f": Encoding((V2,), order="F"),
    "v3": Encoding((V3,)),
    "transpose": Encoding((V3,), order="F"),
    "blosc_zstd": Encoding((V3,), cname="zstd"),
    "zstd": Encoding((V3,), "zstd", level=3),
    "gzip": Encoding((V3,), "gzip", level=5),
    "raw": Encoding((V3,), None),
    "references": Encoding((REFERENCES,), None),
}


def encode(encoding, chunk):
    """Return the bytes of one chunk, an array."""
    raw = chunk.tobytes(encoding.order)
    if encoding.codec == "blosc":
        import blosc

        return blosc.compress(raw, chunk.itemsize, CLEVEL, SHUFFLE, encoding.cname)
    if encoding.codec == "zstd":
        from numcodecs import zstd

        return bytes(zstd.compress(raw, encoding.level))
    if encoding.codec == "gzip":
        return gzip.compress(raw, encoding.level, mtime=0)
    return raw


def decode(encoding, encoded, chunk_shape):
    """Return the float32 chunk that `encoded` holds, None where it is of another codec."""
    if encoding.codec == "blosc":
        import blosc

        if not _is_blosc(encoded, encoding.cname):
            return None
        raw = blosc.decompress(encoded)
    elif encoding.codec == "zstd":
        from numcodecs import zstd

        if encoded[:4] != b"\x28\xb5\x2f\xfd":
            return None
        raw = bytes(zstd.decompress(encoded))
    elif encoding.codec == "gzip":
        if encoded[:2] != b"\x1f\x8b":
            return None
        raw = gzip.decompress(encoded)
    else:
        raw = encoded
    if len(raw) != 4 * np.prod(chunk_shape, dtype=int):
        return None
    return np.frombuffer(raw, "<f4").reshape(chunk_shape, order=encoding.order)


def _is_blosc(encoded, cname):
    # Byte 2 of a blosc header: the compressor's format in the bits 5-7, bit 0 byte shuffle, bit 1 a plain copy, which
    # the library itself chooses for what does not compress.
    return len(encoded) >= 16 and encoded[2] >> 5 == {"lz4": 1, "zstd": 4}[cname] and bool(encoded[2] & 0b11)


def document(view, encoding, shape, chunks, shards=None):
    """Return the array's metadata document; `shards` is the shape of a stored object of many chunks, v3 only."""
    if view == V3:
        return json.dumps(_v3_members(encoding, shape, chunks, shards), indent=2)
    members = {"shape": list(shape), "chunks": list(chunks), "dtype": "<f4", "fill_value": 0.0}
    blosc = {"cname": encoding.cname, "clevel": CLEVEL, "shuffle": SHUFFLE}
    if view == ZMETA:
        members |= blosc
    else:
        members |= {"zarr_format": 2, "order": encoding.order, "filters": None, "dimension_separator": ".",
                    "compressor": None if encoding.codec is None else {"id": "blosc", "blocksize": 0, **blosc}}
    return json.dumps(members, indent=4, sort_keys=True)


def _v3_members(encoding, shape, chunks, shards):
    codecs = _v3_codecs(encoding, len(shape))
    if shards is not None:
        codecs = [{"name": "sharding_indexed", "configuration": {
            "chunk_shape": list(chunks), "codecs": codecs, "index_location": "end",
            "index_codecs": [_v3_bytes(), {"name": "crc32c"}],
        }}]
    return {
        "zarr_format": 3, "node_type": "array", "shape": list(shape), "data_type": "float32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(shards or chunks)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0.0, "codecs": codecs, "attributes": {},
    }


def _v3_bytes():
    return {"name": "bytes", "configuration": {"endian": "little"}}


def _v3_codecs(encoding, ndim):
    compressors = {
        "blosc": {"cname": encoding.cname, "clevel": CLEVEL, "shuffle": "shuffle", "typesize": 4, "blocksize": 0},
        "zstd": {"level": encoding.level, "checksum": False},
        "gzip": {"level": encoding.level},
    }
    codecs = [_v3_bytes()]
    if encoding.order == "F":
        codecs.insert(0, {"name": "transpose", "configuration": {"order": list(range(ndim))[::-1]}})
    if encoding.codec is not None:
        codecs.append({"name": encoding.codec, "configuration": compressors[encoding.codec]})
    return codecs


def pack_shard(encoded_chunks):
    """Return a shard of these chunks, in this order, and its index, which is at the end."""
    index, offset = [], 0
    for encoded in encoded_chunks:
        index += [offset, len(encoded)]
        offset += len(encoded)
    index = struct.pack(f"<{len(index)}Q", *index)
    return b"".join([*encoded_chunks, index, struct.pack("<I", crc32c(index))])


def unpack_shard(shard, n_chunks):
    """Return the bytes of each chunk, None of one that is not there.

    Raises : ValueError, if the index is not whole.
    """
    index, checksum = shard[-16 * n_chunks - 4:-4], shard[-4:]
    if len(index) != 16 * n_chunks or checksum != struct.pack("<I", crc32c(index)):
        raise ValueError("the index of the shard is damaged")
    numbers = struct.unpack(f"<{2 * n_chunks}Q", index)
    return [None if offset == n_bytes == NO_CHUNK else shard[offset:offset + n_bytes]
            for offset, n_bytes in zip(numbers[::2], numbers[1::2], strict=True)]


def crc32c(data):
    """Return the CRC-32C (RFC 3720, polynomial 0x1EDC6F41 reflected) of some bytes."""
    state = 0xffffffff
    for byte in data:
        state = _CRC32C[(state ^ byte) & 0xff] ^ state >> 8
    return state ^ 0xffffffff


def _crc32c_of_byte(state):
    for _ in range(8):
        state = state >> 1 ^ (0x82f63b78 if state & 1 else 0)
    return state


_CRC32C = [_crc32c_of_byte(byte) for byte in range(256)]
