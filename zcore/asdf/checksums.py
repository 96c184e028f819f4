"""The MD5 in a block header, and `check`, which reads all blocks of a file and tells which are damaged.

ASDF file layout, "Block header": "an optional MD5 checksum of the used data in the block", zeros for none. What that is
of for a compressed block was read in two ways: the stored bytes, as the text has it, are hashed here and by asdf from
5.3 on; the decoded ones by asdf before that, and in the standard's own reference files. Either is accepted.
"""
import hashlib

from zcore.asdf import compression
from zcore.errors import ZcoreError, warn

NO_CHECKSUM = bytes(16)
PIECE_NBYTES = 1 << 18


def new_md5():
    """Return a hash object, or None where the system forbids MD5."""
    try:
        return hashlib.md5(usedforsecurity=False)
    except ValueError as exc:
        warn(f"checksums of blocks are neither verified nor written: {exc}")
        return None


def digest_of(pieces):
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


def check(block):
    """Read a block to its end, decode it, and compare its checksum.

    Raises
    ------
    ChecksumError
        Neither the stored nor the decoded bytes have it.
    AsdfFormatError, StoreError
        The stored bytes are damaged, or are not all there.
    UnsupportedError
        They cannot be decoded, and no checksum says that they are what was stored.
    """
    if block.is_compressed and (block.checksum is None or block.compression in compression.KNOWN):
        block.read(verify=True)
    elif not block.verify():
        for _ in block.stored_pieces():
            pass


def faults_of(blocks):
    """Iterate over (number, error) of the blocks of a file that are damaged.

    The last one may be what ends the walk along the blocks: it has the number of the block that is not found.

    Parameters
    ----------
    blocks : BlockList
    """
    for number in range(len(blocks.found.offsets)):
        try:
            check(blocks[number])
        except ZcoreError as error:
            yield number, error
    if blocks.fault is not None:
        yield len(blocks.found.offsets), blocks.fault
