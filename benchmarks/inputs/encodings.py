"""How the arrays of the benchmarks are stored, as data; and the same codecs without any library under test.

An `Encoding` is what an array's document says of its chunks. `encode` and `decode` do the same by python-blosc,
numcodecs (zstd), google-crc32c and Python's zlib, one chunk at a time.
"""
import gzip
import json
import struct
import zlib
from dataclasses import dataclass

import numpy as np

CNAME, CLEVEL, SHUFFLE = "lz4", 5, 1
V2, V3 = "v2", "v3"
REFERENCES = "references"  # Zarr v2 in a reference set: all chunks are parts of one file
DOCUMENTS = {V2: ".zarray", V3: "zarr.json"}
NO_CHUNK = 2**64 - 1  # sharding_indexed v1, "Binary shard format": offset and length of a chunk that is not there


@dataclass(frozen=True)
class Encoding:
    """How chunks become bytes.

    Attributes
    ----------
    view : {"v2", "v3", "references"}
        The format.
    codec : {"blosc", "zstd", "gzip", "zlib", None}
        ``zlib`` is that of HDF5 files, which reference sets lead to.
    cname : str
        Of blosc, whose level is 5 and whose shuffle goes by bytes.
    level : int
        Of zstd, gzip and zlib.
    order : {"C", "F"}
        Of the elements in a chunk.
    dtype : str
    checksum : bool
        Whether each chunk ends with its CRC-32C.
    """

    view: str = V3
    codec: str | None = "blosc"
    cname: str = CNAME
    level: int = 0
    order: str = "C"
    dtype: str = "float32"
    checksum: bool = False


ENCODINGS = {
    "v3": Encoding(),
    "v2": Encoding(V2),
    "int16": Encoding(dtype="int16"),
    "crc32c": Encoding(checksum=True),
    "transpose": Encoding(order="F"),
    "blosc_zstd": Encoding(cname="zstd"),
    "zstd": Encoding(codec="zstd", level=3),
    "gzip": Encoding(codec="gzip", level=5),
    "raw": Encoding(codec=None),
    "references": Encoding(REFERENCES, "zlib", level=4),
}


def encode(encoding, chunk):
    """Return the bytes of one chunk, an array."""
    encoded = _compressed(encoding, chunk, chunk.tobytes(encoding.order))
    return encoded + _checksum(encoded) if encoding.checksum else encoded


def _compressed(encoding, chunk, raw):
    if encoding.codec == "blosc":
        import blosc

        return blosc.compress(raw, chunk.itemsize, CLEVEL, SHUFFLE, encoding.cname)
    if encoding.codec == "zstd":
        from numcodecs import zstd

        return bytes(zstd.compress(raw, encoding.level))
    if encoding.codec == "gzip":
        return gzip.compress(raw, encoding.level, mtime=0)
    return zlib.compress(raw, encoding.level) if encoding.codec == "zlib" else raw


def decode(encoding, encoded, chunk_shape):
    """Return the chunk that `encoded` holds, None where it is of another codec."""
    if encoding.checksum:
        encoded, checksum = encoded[:-4], encoded[-4:]
        if checksum != _checksum(encoded):
            return None
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
        raw = encoded     # nothing writes zlib here
    dtype = np.dtype(encoding.dtype)
    if len(raw) != dtype.itemsize * np.prod(chunk_shape, dtype=int):
        return None
    return np.frombuffer(raw, dtype).reshape(chunk_shape, order=encoding.order)


def _is_blosc(encoded, cname):
    # Byte 2 of a blosc header: the compressor's format in the bits 5-7, bit 0 byte shuffle, bit 1 a plain copy, which
    # the library itself chooses for what does not compress.
    return len(encoded) >= 16 and encoded[2] >> 5 == {"lz4": 1, "zstd": 4}[cname] and bool(encoded[2] & 0b11)


def document(encoding, shape, chunks, shards=None, attributes=None):
    """Return the array's metadata document; `shards` is the shape of a stored object of many chunks, v3 only."""
    if encoding.view == V3:
        return json.dumps(v3_members(encoding, shape, chunks, shards, attributes), indent=2)
    compressor = {"id": "zlib", "level": encoding.level} if encoding.codec == "zlib" else {
        "id": "blosc", "blocksize": 0, "cname": encoding.cname, "clevel": CLEVEL, "shuffle": SHUFFLE}
    return json.dumps({
        "zarr_format": 2, "shape": list(shape), "chunks": list(chunks), "dtype": np.dtype(encoding.dtype).str,
        "fill_value": _zero(encoding), "order": encoding.order, "filters": None, "dimension_separator": ".",
        "compressor": compressor}, indent=4, sort_keys=True)


def _zero(encoding):
    return np.zeros((), encoding.dtype).item()


def v3_members(encoding, shape, chunks, shards=None, attributes=None):
    """Return the members of a Zarr v3 document."""
    codecs = _v3_codecs(encoding, len(shape))
    if shards is not None:
        codecs = [{"name": "sharding_indexed", "configuration": {
            "chunk_shape": list(chunks), "codecs": codecs, "index_location": "end",
            "index_codecs": [_v3_bytes(), {"name": "crc32c"}],
        }}]
    return {
        "zarr_format": 3, "node_type": "array", "shape": list(shape), "data_type": encoding.dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(shards or chunks)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": _zero(encoding), "codecs": codecs, "attributes": attributes or {},
    }


def _v3_bytes():
    return {"name": "bytes", "configuration": {"endian": "little"}}


def _v3_codecs(encoding, ndim):
    compressors = {
        "blosc": {"cname": encoding.cname, "clevel": CLEVEL, "shuffle": "shuffle",
                  "typesize": np.dtype(encoding.dtype).itemsize, "blocksize": 0},
        "zstd": {"level": encoding.level, "checksum": False},
        "gzip": {"level": encoding.level},
    }
    codecs = [_v3_bytes()]
    if encoding.order == "F":
        codecs.insert(0, {"name": "transpose", "configuration": {"order": list(range(ndim))[::-1]}})
    if encoding.codec is not None:
        codecs.append({"name": encoding.codec, "configuration": compressors[encoding.codec]})
    if encoding.checksum:
        codecs.append({"name": "crc32c"})
    return codecs


def pack_shard(encoded_chunks):
    """Return a shard of these chunks, in this order, and its index, which is at the end."""
    index, offset = [], 0
    for encoded in encoded_chunks:
        index += [offset, len(encoded)]
        offset += len(encoded)
    index = struct.pack(f"<{len(index)}Q", *index)
    return b"".join([*encoded_chunks, index, _checksum(index)])


def unpack_shard(shard, n_chunks):
    """Return the bytes of each chunk, None of one that is not there.

    Raises : ValueError, if the index is not whole.
    """
    index, checksum = shard[-16 * n_chunks - 4:-4], shard[-4:]
    if len(index) != 16 * n_chunks or checksum != _checksum(index):
        raise ValueError("the index of the shard is damaged")
    numbers = struct.unpack(f"<{2 * n_chunks}Q", index)
    return [None if offset == n_bytes == NO_CHUNK else shard[offset:offset + n_bytes]
            for offset, n_bytes in zip(numbers[::2], numbers[1::2], strict=True)]


def _checksum(data):
    return struct.pack("<I", crc32c(data))


def crc32c(data):
    """Return the CRC-32C (RFC 3720) of some bytes."""
    import google_crc32c

    return google_crc32c.value(bytes(data))
