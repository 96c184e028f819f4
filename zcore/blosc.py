"""One Blosc 1 chunk, seen from Python.

>>> from zcore import blosc
>>> chunk = blosc.compress(bytes(1000), cname="lz4", clevel=5, shuffle=1, typesize=4)
>>> header = blosc.header(chunk)
>>> header.nbytes, header.typesize, header.cbytes == len(chunk)
(1000, 4, True)
>>> blosc.decompress(chunk) == bytes(1000)
True
"""
from __future__ import annotations

from typing import TYPE_CHECKING, overload

from zcore.buffers import flat_view
from zcore.errors import CodecError, Needing, UnsupportedError
from zcore.kernel.codec.blosc_header import parse
from zcore.kernel.codec.compress import COMPRESSORS, blosc_compress, blosc_decompress, can_compress
from zcore.kernel.codec.shuffle import unbitshuffle, unshuffle

if TYPE_CHECKING:
    from typing import TypeVar

    from zcore.kernel.codec.blosc_header import BloscHeaderInfo
    from zcore.typing import Cname, Memory, Shuffle

    _Out = TypeVar("_Out", bound=Memory)

__all__ = ["COMPRESSORS", "can_compress", "compress", "decompress", "header"]


def __dir__() -> list[str]:
    return list(__all__)     # for completion at a prompt


def compress(content: Memory, *, cname: Cname = "lz4", clevel: int = 5, shuffle: Shuffle = 1, typesize: int = 1,
             blocksize: int = 0, n_threads: int = 1) -> bytes:
    """Return the bytes of `content` as one chunk, a `bytes`.

    Parameters
    ----------
    content : bytes-like
        Any C-contiguous buffer, a NumPy array among them; at most 2**31 - 17 bytes.
    cname : str
        One of `COMPRESSORS`.
    clevel : int
        0 (stored as is) to 9.
    shuffle : int
        0, 1 or 2 for no, byte or bit shuffle.
    typesize : int
        Bytes of an item, for the shuffle; above 255 it is stored as 1.
    blocksize : int
        Bytes of a block. 0: for zstd 128 KB up to level 3, 512 KB up to level 8 and 1 MB at level 9; for LZ4 with
        byte shuffle 128 KB for each byte of an item, at most 1 MB; for others what Blosc chooses.
    n_threads : int
        Threads that may share the blocks of the chunk. The bytes are the same with any number.

    Raises
    ------
    TypeError
        `content` is not bytes-like, or not C-contiguous.
    ValueError
        A parameter is out of range, or `content` is too long.
    UnsupportedError
        The linked c-blosc lacks the compressor.

    >>> import numpy as np
    >>> header(compress(np.arange(10, dtype="i4"), typesize=4)).nbytes
    40
    """
    return blosc_compress(flat_view(content, "content"), cname=cname, clevel=clevel, shuffle=shuffle,
                          typesize=typesize, blocksize=blocksize, n_threads=n_threads)


@overload
def decompress(chunk: Memory, out: None = None, *, itemsize: int = 0, n_threads: int = 1) -> bytearray: ...


@overload
def decompress(chunk: Memory, out: _Out, *, itemsize: int = 0, n_threads: int = 1) -> _Out: ...


def decompress(chunk, out=None, *, itemsize=0, n_threads=1):
    """Return the content of one chunk.

    Parameters
    ----------
    chunk : bytes-like
        Exactly one chunk.
    out : writable bytes-like, optional
        Gets the content: any C-contiguous buffer of as many bytes. A new `bytearray` otherwise.
    itemsize : int
        If positive, the header's item size must be this or 1.
    n_threads : int
        Threads that may share the blocks of the chunk. Only blocks of LZ4, zlib and zstd are shared.

    Raises
    ------
    TypeError
        `chunk` or `out` is not bytes-like, or not C-contiguous, or `out` cannot be written to.
    CodecError
        The header, the block table or the payload is damaged, or the content is not as long as `out`.
    UnsupportedError
        A chunk of Blosc 2; or of snappy, which c-blosc is rarely built with today, and the cramjam package (the extra
        "snappy") is not installed, or is broken.
    """
    chunk = flat_view(chunk, "chunk")
    place = None if out is None else flat_view(out, "out", writable=True)
    try:
        content = blosc_decompress(chunk, place, itemsize=itemsize, n_threads=n_threads)
    except UnsupportedError as error:
        if error.feature != "snappy":
            raise
        content = _decompress_snappy(chunk, parse(chunk))
        if place is not None:
            place[:] = content
    return content if out is None else out


def header(chunk: Memory) -> BloscHeaderInfo:
    """Return the header of a chunk, a `BloscHeaderInfo`, as it is, without judging it.

    Parameters
    ----------
    chunk : bytes-like
        At least the 16 bytes of the header.

    Raises
    ------
    TypeError
        `chunk` is not bytes-like, or not C-contiguous.
    CodecError
        It is shorter than a header.
    """
    return parse(flat_view(chunk, "chunk"))


def _decompress_snappy(data, header):
    """Return the content of one snappy chunk, which has been checked but for its streams, as a `bytearray`.

    Raises
    ------
    UnsupportedError
        The cramjam package is not installed, or is broken.
    CodecError
        The chunk is damaged.

    Notes
    -----
    c-blosc README_CHUNK_FORMAT: a block is `nsplits` streams, each an int32 size and its bytes; a stream of its
    decoded size is stored as is.
    """
    with Needing("chunk is compressed by snappy, which the linked c-blosc lacks; to read it needs", "cramjam", "snappy",
                 "snappy"):
        from cramjam import snappy
    out = bytearray(header.nbytes)
    view = memoryview(data)
    for i, start in enumerate(range(0, header.nbytes, header.blocksize)):
        n_bytes = min(header.blocksize, header.nbytes - start)
        offset = int.from_bytes(view[16 + 4 * i:20 + 4 * i], "little")
        is_split = (not header.flags & 0x10 and header.typesize <= 16 and header.blocksize // header.typesize >= 128
                    and n_bytes == header.blocksize)
        n_streams = header.typesize if is_split else 1
        block = b""
        for _ in range(n_streams):
            n_stored = int.from_bytes(view[offset:offset + 4], "little")
            stream = view[offset + 4:offset + 4 + n_stored]
            offset += 4 + n_stored
            is_raw = n_stored == n_bytes // n_streams
            block += bytes(stream) if is_raw else _snappy_stream(snappy, stream, n_bytes // n_streams)
        if header.flags & 0x01 and header.typesize > 1:
            block = unshuffle(block, header.typesize)
        elif header.flags & 0x04 and n_bytes >= header.typesize:
            block = unbitshuffle(block, header.typesize)
        out[start:start + n_bytes] = block
    return out


def _snappy_stream(snappy, stream, n_bytes):
    """Decode one stream; what it says of its size is compared before anything is allocated."""
    said = shift = 0
    for byte in bytes(stream[:5]):
        said |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if said == n_bytes:
        try:
            return bytes(snappy.decompress_raw(bytes(stream)))
        except Exception as exc:
            raise CodecError(f"snappy stream is damaged: {exc}", codec="blosc", direction="decode") from exc
    raise CodecError(f"snappy stream says {said} bytes decoded, expected {n_bytes}", codec="blosc",
                     direction="decode", expected=n_bytes, found=said)
