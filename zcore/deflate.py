"""Deflate by faster libraries, where they are installed (the extra "gzip"): isal reads, and writes level 1, zlib-ng the
other levels.

At level 1 isal is several times as fast as all others, and packs as much as zlib does; zlib-ng makes numbers larger
than they were. Else libdeflate, if it is linked, is as fast or faster, and is used instead.

Both are used from Python, which costs some dozen microseconds a chunk and spares, from `MIN_NBYTES` on, several times
as much; neither holds the GIL. What they cannot do is left to the kernel: a stream that isal does not find whole, of
the size expected and with nothing behind it is decoded there again, so that errors are the same with and without the
extra. docs/codecs.md has the measurement.
"""
from __future__ import annotations

import functools

TYPE_CHECKING = False      # of typing, without its import time
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from typing_extensions import Buffer

MIN_NBYTES = 1 << 16
# Of a stream. Behind each member isal copies all that is left, so that the time of many would grow with their square.
MAX_MEMBERS = 16

# What `wbits` of zlib's interface stands for: the frame of RFC 1952, or of RFC 1950.
GZIP_WBITS, ZLIB_WBITS = 31, 15
FASTEST = 1            # a level
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


def functions(n_bytes: int | None, level: int, wbits: int, linked: bool) -> tuple[
        Callable[[Buffer, int, bool], bytes | None] | None, Callable[[Buffer], bytes] | None]:
    """Return two functions that are faster than the kernel: one inflates, one deflates. None in place of a slower one.

    They are for content of at most `n_bytes` bytes. The first is called like `inflate`, but without `wbits`, the second
    with the content. `linked`: the kernel has libdeflate.
    """
    if n_bytes is None or n_bytes < MIN_NBYTES:
        return None, None
    library = reader() if level == FASTEST else None if linked else writer()
    return (None if linked or reader() is None else functools.partial(inflate, wbits=wbits),
            None if library is None else functools.partial(library.compress, level=level, wbits=wbits))


def inflate(data: Buffer, n_bytes: int, at_most: bool, wbits: int) -> bytes | None:
    """Return the content of all members of a stream, or None where only zlib can tell what it is.

    No more than `n_bytes` bytes and one are ever decoded; fewer are only right with `at_most`.
    """
    isal = reader()
    parts, n_left = [], n_bytes
    # Released at the end: a traceback may keep it longer than its bytes live.
    with memoryview(data) as rest:
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
