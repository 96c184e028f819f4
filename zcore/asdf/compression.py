"""Compressed blocks, and the four characters in a header that name the compression.

========  ======================================================  ================
name      content                                                 source
========  ======================================================  ================
``zlib``  one stream of RFC 1950                                  ASDF file layout
``bzp2``  one or more bzip2 streams                               ASDF file layout
``lz4``   records: the length n of what follows, 4 bytes,         asdf
          big-endian; n bytes: the decoded length, 4 bytes,
          little-endian, and an LZ4 block
``zstd``  Zstandard frames                                        asdf-compression
``blsc``  records: the length n of what follows, 4 bytes,         abacusutils
          big-endian; n bytes: a Blosc 1 chunk
``blsc``  one Blosc 1 chunk                                       asdf-compression
========  ======================================================  ================

The first three are written. Names are case-sensitive, padded by zeros. A stream is decoded piece by piece straight into
memory of the size that the header says, and no further; that size is compared first with the most that the stored bytes
can decode to. zlib is read by isal and written by zlib-ng where these are installed (the extra `gzip`).
"""
from __future__ import annotations

import bz2
import zlib
from typing import TYPE_CHECKING

from zcore import config, deflate, workers
from zcore.errors import AsdfFormatError, ChunkError, UnsupportedError, warn
from zcore.kernel.codec.program import Program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zcore.ranges import ByteSource

WRITTEN = ("zlib", "bzp2", "lz4")
_OUT_NBYTES = 1 << 18
_RECORD_NBYTES = 1 << 22              # of an lz4 record, decoded, as asdf writes it
# The most that a stored byte decodes to: deflate's two bits for 258 bytes; a run of bzip2, before that its run lengths;
# the length bytes of LZ4; a run of a zstd block. Short streams that are written may have a little more.
_MAX_RATIO = {
    "zlib": 1032, "bzp2": 1 << 21, "lz4": 256, "zstd": 1 << 16, "blsc": 1 << 16,
}
KNOWN = tuple(_MAX_RATIO)


def check(name: str, used: int, data_size: int) -> None:
    """Raise UnsupportedError for a compression that is unknown, AsdfFormatError if `used` bytes are too few for it."""
    if name not in _MAX_RATIO:
        raise UnsupportedError(f"compression {name!r} is unknown, zcore reads {', '.join(_MAX_RATIO)}",
                               feature=f"compression {name}")
    if data_size > used * _MAX_RATIO[name]:
        raise AsdfFormatError(f"{used} bytes of {name} cannot decode to {data_size}", member="data_size")


def decode(name: str, source: ByteSource, offset: int, used: int, out: memoryview) -> None:
    """Decode the `used` bytes at `offset` of a source into `out`, a flat view of as many bytes as there must be.

    Raises : AsdfFormatError, if they are damaged or decode to another size.
    """
    if used or len(out):
        _DECODERS[name](source, offset, used, out)


def _fault(name, why, offset):
    return AsdfFormatError(f"{name}: {why}", offset=offset, member="content")


class _Filled:
    """Memory that is filled from its beginning, and never beyond its end."""

    def __init__(self, name, out):
        self.name = name
        self.out = out
        self.n_bytes = 0

    @property
    def limit(self):
        """The most bytes of the next part: one byte more than there is room for reveals a longer stream."""
        return min(_OUT_NBYTES, len(self.out) - self.n_bytes + 1)

    def add(self, part, offset):
        n = self.n_bytes + len(part)
        if n > len(self.out):
            raise _fault(self.name, f"decodes to more than {len(self.out)} bytes", offset)
        self.out[self.n_bytes:n] = part
        self.n_bytes = n

    def check_full(self, offset):
        if self.n_bytes < len(self.out):
            raise _fault(self.name, f"decodes to {self.n_bytes} bytes, expected {len(self.out)}", offset)


def _decode_zlib(source, offset, used, out):
    library = deflate.reader() or zlib
    stream, filled, end = library.decompressobj(), _Filled("zlib", out), offset + used
    for piece in source.pieces(offset, used):
        if stream.eof:
            warn(f"{end - offset} bytes from byte {offset} on lie behind the end of a zlib stream")
            break
        offset += len(piece)
        while True:
            limit = filled.limit
            try:
                part = stream.decompress(piece, limit)
            except library.error as exc:
                raise _fault("zlib", f"the stream is damaged: {exc}", offset) from exc
            filled.add(part, offset)
            piece = stream.unconsumed_tail
            if stream.eof or len(part) < limit:
                break
        if stream.eof and stream.unused_data:
            warn(f"{len(stream.unused_data) + end - offset} bytes lie behind the end of a zlib stream")
            break
    if not stream.eof:
        raise _fault("zlib", f"the stream has no end, {filled.n_bytes} of {len(out)} bytes are decoded", end)
    filled.check_full(end)


def _decode_bzip2(source, offset, used, out):
    stream, filled, end = bz2.BZ2Decompressor(), _Filled("bzp2", out), offset + used
    data = b""
    pieces = source.pieces(offset, used)
    while True:
        if stream.eof:
            data = stream.unused_data or next(pieces, b"")
            if len(data) < 3:
                data += next(pieces, b"")
            if not data.startswith(b"BZh"):
                break
            stream = bz2.BZ2Decompressor()
        elif stream.needs_input and not data:
            data = next(pieces, b"")
            if not data:
                raise _fault("bzp2", f"the stream has no end, {filled.n_bytes} of {len(out)} bytes are decoded", end)
        try:
            part = stream.decompress(data, filled.limit)
        except (OSError, ValueError) as exc:
            raise _fault("bzp2", f"the stream is damaged: {exc}", offset) from exc
        data = b""
        filled.add(part, offset)
    if data:
        warn(f"{len(data)} bytes or more lie behind the end of a bzip2 stream")
    filled.check_full(end)


def _by_kernel(name, step, size_at=None):
    """Return a function that decodes the content of a block in the kernel.

    With `size_at`, the content is records, and each has its decoded length at that byte. Several are decoded at a time.
    """
    program = Program((step,))

    def decode(source, offset, used, out):
        def decode_record(record):
            place, n_bytes, start, stop = record
            try:
                program.decode_bytes(source.read_at(place, n_bytes), out[start:stop], (name,))
            except ChunkError as exc:
                raise _fault(name, exc.message, place) from exc

        if size_at is None:
            decode_record((offset, used, 0, len(out)))
        else:
            workers.each_next(decode_record, _records(name, size_at, source, offset, used, len(out)),
                              config.threads if len(out) > _RECORD_NBYTES else 1)

    return decode


def _records(name, size_at, source, offset, used, data_size):
    """Iterate over (offset, length, start and end of the decoded bytes) of the records."""
    end, start = offset + used, 0
    while offset < end:
        header = source.read_at(offset, min(size_at + 4, end - offset))
        n_bytes = int.from_bytes(header[:4], "big")
        if len(header) < size_at + 4 or n_bytes < size_at or n_bytes > end - offset - 4:
            raise _fault(name, f"a record of {n_bytes} bytes at byte {offset}, the content ends at {end}", offset)
        stop = start + int.from_bytes(header[size_at:], "little")
        if stop > data_size:
            raise _fault(name, f"decodes to more than {data_size} bytes", offset)
        yield offset + 4, n_bytes, start, stop
        offset, start = offset + 4 + n_bytes, stop
    if start != data_size:
        raise _fault(name, f"decodes to {start} bytes, expected {data_size}", end)


def _decode_blosc(source, offset, used, out):
    """Decode records, or one chunk: only behind the length of a record lies a chunk that has the same length."""
    start = source.read_at(offset, min(20, used))
    is_record = len(start) == 20 and int.from_bytes(start[:4], "big") == int.from_bytes(start[16:], "little")
    (_decode_blosc_records if is_record else _decode_blosc_chunk)(source, offset, used, out)


_BLOSC = "blosc", "lz4", 5, 1, 1, 0
_decode_blosc_chunk = _by_kernel("blsc", _BLOSC)
_decode_blosc_records = _by_kernel("blsc", _BLOSC, 8)
_DECODERS = {
    "zlib": _decode_zlib, "bzp2": _decode_bzip2, "lz4": _by_kernel("lz4", ("lz4", 1), 4),
    "zstd": _by_kernel("zstd", ("zstd", 0, False)), "blsc": _decode_blosc,
}


def check_written(name: str | None) -> str | None:
    """Return the name of a compression that can be written, or None; else raise ValueError."""
    if name is not None and (not isinstance(name, str) or name not in WRITTEN):
        raise ValueError(f"compression is {name!r:.60}, expected one of {', '.join(WRITTEN)}, or None")
    return name


def encode(name: str, content: memoryview) -> Iterator[bytes]:
    """Iterate over the compressed bytes of `content`, a flat view of bytes."""
    if name == "lz4":
        return _encode_lz4(content)
    return _encode_stream((deflate.writer() or zlib).compressobj() if name == "zlib" else bz2.BZ2Compressor(), content)


def _encode_stream(stream, content):
    for start in range(0, len(content), _OUT_NBYTES):
        yield stream.compress(content[start:start + _OUT_NBYTES])
    yield stream.flush()


def _encode_lz4(content):
    """Iterate over records; as many are made at a time as there are threads."""
    program, n_threads = Program((("lz4", 1),)), config.threads
    for first in range(0, len(content), n_threads * _RECORD_NBYTES):
        starts = range(first, min(len(content), first + n_threads * _RECORD_NBYTES), _RECORD_NBYTES)
        encoded = dict.fromkeys(starts)

        def encode_at(start, encoded=encoded):
            encoded[start] = program.encode_bytes(content[start:start + _RECORD_NBYTES], ("lz4",))

        workers.each(encode_at, starts, n_threads)
        for record in encoded.values():
            yield len(record).to_bytes(4)
            yield record
