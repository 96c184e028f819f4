"""All blocks of a file read: which of them are damaged."""
from zcore.asdf import compression
from zcore.errors import ZcoreError


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
