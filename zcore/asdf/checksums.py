"""The MD5 in a block header, and `check`, which proves a block by it.

ASDF file layout, "Block header": "an optional MD5 checksum of the used data in the block", zeros for none. For
compressed blocks the text was read in two ways: zcore, and asdf from 5.3 on, hash the stored bytes, as the text says.
Older versions of asdf, and the standard's own reference files, hash the decoded bytes. Either is accepted.
"""
from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from zcore.asdf import compression
from zcore.errors import warn

if TYPE_CHECKING:
    from _hashlib import HASH
    from collections.abc import Iterable

    from zcore.asdf.blocks import Block
    from zcore.typing import Buffer

NO_CHECKSUM = bytes(16)


def new_md5() -> HASH | None:
    """Return a hash object, or None where the system forbids MD5."""
    try:
        return hashlib.md5(usedforsecurity=False)
    except ValueError as exc:
        warn(f"checksums of blocks are neither verified nor written: {exc}")
        return None


def digest_of(pieces: Iterable[Buffer]) -> bytes | None:
    """Return the MD5 of the bytes of an iterable, 16 bytes, or None where the system forbids it.

    >>> digest_of([b"ab", b"c"]).hex()
    '900150983cd24fb0d6963f7d28e17f72'
    """
    md5 = new_md5()
    if md5 is None:
        return None
    for piece in pieces:
        md5.update(piece)
    return md5.digest()


def check(block: Block) -> None:
    """Read a block to its end, decode it, and compare its checksum.

    Raises
    ------
    ChecksumError
        Neither the stored nor the decoded bytes have it.
    AsdfFormatError, StoreError
        The stored bytes are damaged, or are not all there.
    UnsupportedError
        They cannot be decoded, and there is no checksum to prove them.
    """
    if block.is_compressed and (block.checksum is None or block.compression in compression.KNOWN):
        block.read(verify=True)
    elif not block.verify():
        for _ in block.stored_pieces():
            pass
