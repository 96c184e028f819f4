"""Blosc chunks whose blocks are compressed by snappy, which c-blosc is rarely built with today.

The container is read by the kernel's header checks, each stream by the cramjam package (the extra "snappy"), and the
shuffle is undone by the kernel.
"""
from zcore.errors import CodecError, UnsupportedError
from zcore.kernel.shuffle import unbitshuffle, unshuffle


def decompress_snappy(data, header):
    """Return the content of one snappy chunk, whose header `validate` has found good, as a `bytearray`.

    Raises
    ------
    UnsupportedError
        The cramjam package is not installed.
    CodecError
        The chunk is damaged.

    Notes
    -----
    c-blosc README_CHUNK_FORMAT: a block is `nsplits` streams, each an int32 size and its bytes; a stream of its
    decoded size is stored as is.
    """
    try:
        from cramjam import snappy
    except ImportError as exc:
        raise UnsupportedError("chunk is compressed by snappy, which the linked c-blosc lacks; to read it takes the "
                               "extra \"snappy\" (python -m pip install cramjam)", feature="snappy") from exc
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
            block += bytes(stream) if is_raw else _stream(snappy, stream, n_bytes // n_streams)
        if header.flags & 0x01 and header.typesize > 1:
            block = unshuffle(block, header.typesize)
        elif header.flags & 0x04 and n_bytes >= header.typesize:
            block = unbitshuffle(block, header.typesize)
        out[start:start + n_bytes] = block
    return out


def _stream(snappy, stream, n_bytes):
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
