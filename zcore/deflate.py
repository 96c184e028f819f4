"""Deflate by faster libraries than zlib, where they are installed (the extra "gzip"): isal reads, zlib-ng writes.

If libdeflate is linked, the kernel is as fast or faster, and only ASDF files use this module.

Both are used from Python, which costs some dozen microseconds a chunk and spares, from `MIN_NBYTES` on, several times
as much; neither holds the GIL. zlib-ng has zlib's levels, and packs a little closer; isal's few levels pack less. What
they cannot do is left to the kernel's zlib: a stream that isal does not find whole, of the size expected and with
nothing behind it is decoded there again, so that errors are the same with and without the extra. docs/codecs.md has
the measurement.
"""
from __future__ import annotations

import functools

TYPE_CHECKING = False      # of typing, without its import time
if TYPE_CHECKING:
    from types import ModuleType

    from typing_extensions import Buffer

MIN_NBYTES = 1 << 16
# Of a stream. Behind each member isal copies all that is left, so that the time of many would grow with their square.
MAX_MEMBERS = 16

# What `wbits` of zlib's interface stands for: the frame of RFC 1952, or of RFC 1950.
GZIP_WBITS, ZLIB_WBITS = 31, 15
_RESERVED_FLAG = 0x20  # RFC 1952, 2.3.1.2: a header with this flag or a higher one is refused; isal reads it


@functools.cache
def reader() -> ModuleType | None:
    """Return isal's module with the interface of `zlib`, or None."""
    try:
        from isal import isal_zlib
    except Exception:     # also an installation that is broken: `zcore doctor` names it
        return None
    return isal_zlib


@functools.cache
def writer() -> ModuleType | None:
    """Return zlib-ng's module with the interface of `zlib`, or None."""
    try:
        from zlib_ng import zlib_ng
    except Exception:
        return None
    return zlib_ng


def is_faster(n_bytes: int | None) -> bool:
    """Return whether content of `n_bytes` bytes is decoded, and encoded, faster here than by zlib in the kernel."""
    return n_bytes is not None and n_bytes >= MIN_NBYTES and reader() is not None and writer() is not None


def inflate(data: Buffer, n_bytes: int, at_most: bool, wbits: int) -> bytes | None:
    """Return the content of all members of a stream, or None where only zlib can tell what it is.

    No more than `n_bytes` bytes and one are ever decoded; fewer are only right with `at_most`.
    """
    isal = reader()
    parts, n_left, rest = [], n_bytes, memoryview(data)
    while rest:
        if len(parts) == MAX_MEMBERS or (wbits == GZIP_WBITS and len(rest) > 3 and rest[3] >= _RESERVED_FLAG):
            return None
        member = isal.decompressobj(wbits=wbits)
        try:
            parts.append(member.decompress(rest, n_left + 1))
        except isal.error:
            return None
        n_left -= len(parts[-1])
        rest = member.unused_data
        if n_left < 0 or not member.eof or (rest and wbits != GZIP_WBITS):
            return None
    if not parts or (n_left and not at_most):
        return None
    return parts[0] if len(parts) == 1 else b"".join(parts)


def deflate(data: Buffer, level: int, wbits: int) -> bytes:
    """Return `data` as one member."""
    return writer().compress(data, level, wbits)
