"""Where the tree and the blocks of an ASDF file lie.

The blocks are found by the block index when it passes every check, and by skipping along when it does not: from the
end of one block's allocated space to the next block. Both give the same list, because an index is trusted only where
each of its entries is the block that skipping along would have met (ASDF file layout, "Implementation recommendations",
asks for the first and the last entry alone; one in between may be wrong as well). The index saves the search for
blocks where there is space between them.

Programs that convert the ends of lines (git, FTP) take bytes from blocks or add some. Then a block does not end where
its sizes say, its elements are others, and each later block could be taken for another one. Such a block is a fault,
unless its checksum proves it.

If the source is far, each entry costs a request: the first and the last one are compared here, and each other one when
its block is first used.
"""
from __future__ import annotations

from array import array
from bisect import bisect_left
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from zcore.asdf import checksums, file_layout
from zcore.errors import AsdfFormatError, warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zcore.asdf.file_layout import BlockHeader
    from zcore.ranges import ByteSource

# Header and comments are looked for in this much of the file's beginning, and most trees end there.
_START_NBYTES = 1 << 16
_SMALL_NBYTES = 1 << 12
_PIECE_NBYTES = 1 << 20
# The index is looked for in this much of the file's end: room for a million blocks.
_MAX_INDEX_NBYTES = 1 << 24
_N_BEGIN = len(file_layout.INDEX_MAGIC)
_BEGINS = file_layout.BLOCK_MAGIC, file_layout.INDEX_MAGIC     # of what may follow a block


class Front(NamedTuple):
    """The part before the blocks.

    `tree_start` is the end of the comments, `tree_end` the same where there is no tree.
    """

    version: str
    comments: Sequence[str]
    tree_start: int
    tree_end: int


class Found(NamedTuple):
    """The blocks of a file.

    `fault` is the error that the walk ended with, None when it came to the end; `end` is where the last block ends, and
    `is_indexed` whether the index was trusted.
    """

    offsets: Sequence[int]
    fault: AsdfFormatError | None
    end: int | None
    is_indexed: bool


def read_front(source: ByteSource) -> Front:
    """Return the `Front` of a file.

    Raises
    ------
    AsdfFormatError
        Header, comments or tree break a rule.
    UnsupportedError
        The version of the file format is another one.
    """
    data = source.read_at(0, _START_NBYTES)
    version, start = file_layout.parse_header(data)
    comments, end = file_layout.parse_comments(data, start)
    if len(data) - end < file_layout.MAX_LINE_NBYTES and len(data) < source.size:
        data = source.read_at(0, _START_NBYTES + file_layout.MAX_COMMENTS_NBYTES)
        comments, end = file_layout.parse_comments(data, start)
    start = end
    if start == source.size or data.startswith(file_layout.BLOCK_MAGIC, start):
        return Front(version, comments, start, start)
    if len(data) - start < file_layout.MAX_LINE_NBYTES and len(data) < source.size:
        raise AsdfFormatError(f"{start} bytes of comments, expected at most {file_layout.MAX_COMMENTS_NBYTES}",
                              offset=start, member="comments")
    file_layout.check_tree_start(data, start)
    return Front(version, comments, start, _tree_end(source, data, start))


def _tree_end(source, data, start):
    """Return the offset behind the tree; `data` are the first bytes of the file."""
    offset, look_from = 0, start
    while True:
        end = file_layout.find_tree_end(data, look_from, offset + len(data) == source.size)
        # A tree that was cut off in front of the blocks: their bytes may hold the same line.
        block = data.find(file_layout.BLOCK_MAGIC, look_from, None if end is None else end)
        if block >= 0:
            raise AsdfFormatError(f"the tree has no end before the block at byte {offset + block}", offset=start,
                                  member="tree")
        if end is not None:
            return offset + end
        if offset + len(data) >= source.size:
            raise AsdfFormatError(f"the tree has no end, the file ends at byte {source.size}", offset=start,
                                  member="tree")
        # The line may begin at the end of these data.
        offset, look_from = offset + len(data) - 6, 0
        data = source.read_at(offset, _PIECE_NBYTES)


def find_blocks(source: ByteSource, front: Front) -> Found:
    """Return the blocks of a file, a `Found`."""
    try:
        first = _first_block(source, front)
    except AsdfFormatError as exc:
        exc.block = 0
        return Found(array("q"), exc, front.tree_end, False)
    if first is None:
        return Found(array("q"), None, front.tree_end, False)
    return by_index(source, first) or by_skipping(source, first)


def _first_block(source, front):
    """Return the offset of the first block, or None without one.

    Notes : ASDF file layout, "Blocks": behind a tree the first magic counts; without one it follows at once.
    """
    if front.tree_start == front.tree_end:
        return front.tree_end if front.tree_end < source.size else None
    space = source.read_at(front.tree_end, _SMALL_NBYTES)
    if space.startswith(file_layout.BLOCK_MAGIC):
        return front.tree_end
    first = find_magic(source, front.tree_end)
    begin = front.tree_end + len(space) - len(space.lstrip(b" \0\r\n"))
    if begin != first:
        _check_no_header(source, begin)
    return first


def find_magic(source: ByteSource, offset: int, limit: int | None = None) -> int | None:
    """Return the offset of the first magic of a block from `offset` on that begins before `limit`, or None."""
    limit = source.size if limit is None else min(limit, source.size)
    n_bytes = _SMALL_NBYTES
    while offset < limit:
        offset = source.skip_hole(offset)
        data = source.read_at(offset, n_bytes)
        n_bytes = min(16 * n_bytes, _PIECE_NBYTES)
        found = data.find(file_layout.BLOCK_MAGIC)
        if found >= 0:
            return offset + found if offset + found < limit else None
        if len(data) < len(file_layout.BLOCK_MAGIC):
            return None
        offset += len(data) - len(file_layout.BLOCK_MAGIC) + 1
    return None


def read_block_header(source: ByteSource, offset: int) -> BlockHeader:
    """Return the `BlockHeader` at `offset`; raises AsdfFormatError."""
    return file_layout.parse_block_header(source.read_at(offset, file_layout.BLOCK_HEADER_NBYTES), offset, source.size)


def by_index(source: ByteSource, first: int) -> Found | None:
    """Return the blocks that the index lists, or None when there is none or it cannot be trusted.

    Parameters
    ----------
    source : ByteSource
    first : int
        Offset of the first block.
    """
    try:
        place, data = find_index(source)
        if place is None or place < first:
            return None
        offsets = file_layout.parse_block_index(data)
        if offsets is None or offsets[0] != first or offsets[-1] + file_layout.BLOCK_HEADER_NBYTES > place:
            return None
        last = len(offsets) - 1
        numbers = sorted({0, last}) if source.is_far else range(len(offsets))
        for i in numbers:
            header = read_block_header(source, offsets[i])
            if header.end != (place if i == last else offsets[i + 1]) or header.is_streamed:
                return None
    except AsdfFormatError:
        return None
    return Found(array("q", offsets), None, place, True)


def find_index(source: ByteSource) -> tuple[int | None, bytes]:
    """Return the offset of the last ``#ASDF BLOCK INDEX`` near the file's end, or None, and the bytes from it on."""
    n_bytes = _SMALL_NBYTES
    while True:
        start = max(0, source.size - n_bytes)
        data = source.read_at(start, n_bytes)
        found = data.rfind(file_layout.INDEX_MAGIC)
        if found >= 0:
            return start + found, data[found:]
        if start == 0 or n_bytes >= _MAX_INDEX_NBYTES or not _may_be_index(source, start):
            return None, b""
        n_bytes = min(16 * n_bytes, _MAX_INDEX_NBYTES)


def _may_be_index(source, start):
    """Return whether the bytes from `start` on may be the end of an index that begins before."""
    return not source.read_at(start, 64).strip(b"0123456789 \t\r\n,-[].\0")


def by_skipping(source: ByteSource, first: int) -> Found:
    """Return the blocks from the offset `first` on found by skipping from each to the next one.

    Notes
    -----
    ASDF file layout, "Block index". A fault ends the walk and is kept: blocks before it can be read. If a size of a
    block is wrong, or bytes of it are missing, other blocks would be missing from the list, and all that follow would
    have other numbers. So a block that contradicts its neighbour, or the index, is a fault. Space between blocks, which
    the text of 1.1.1 allows, is searched for the next header.
    """
    offsets, offset, end = array("q"), first, first
    listed = cache(partial(_listed, source))      # read where a block needs it
    try:
        while offset is not None:
            header = read_block_header(source, offset)
            following = _following(source, header, first, listed)
            offsets.append(offset)
            offset, end = following, min(header.end, source.size)
            if following != end:
                _check_no_header(source, end)
    except AsdfFormatError as exc:
        exc.block = len(offsets)
        # Its traceback would keep what the callers have.
        return Found(offsets, exc.with_traceback(None), offset, False)
    return Found(offsets, None, end, False)


def _listed(source):
    """Return the offset of the index, -1 without one, and the offsets of blocks in it."""
    place, data = find_index(source)
    return -1 if place is None else place, array("q", file_layout.parse_block_index(data) or ())


def _following(source, header, first, listed):
    """Return the offset of the block behind one, or None behind the last; raises AsdfFormatError."""
    if header.is_streamed:
        _check_streamed(source, header)
        return None
    end = header.end
    start = source.read_at(end, _N_BEGIN)
    if end == source.size or start.startswith(_BEGINS):
        _check_spare(source, header, first, listed)
        return end if start.startswith(file_layout.BLOCK_MAGIC) else None
    index, offsets = listed()
    place = find_magic(source, end) or (index if index >= end else source.size)
    content_end = header.data_offset + header.used
    has_checksum = header.checksum != checksums.NO_CHECKSUM
    is_proven = has_checksum and header.checksum == checksums.digest_of(source.pieces(header.data_offset, header.used))
    # If a block is proven, only the space to spare can have another size. Else its header may be of the common one.
    begin = content_end if is_proven else header.offset + file_layout.BLOCK_HEADER_NBYTES
    inside = find_magic(source, begin, end) or index
    if begin <= inside < end:
        raise _misfit(header, f"and another part begins at {inside}")
    number = bisect_left(offsets, header.offset)
    is_proven = is_proven or offsets[number:number + 2] == array("q", [header.offset, place])
    is_refuted = has_checksum and not header.compression or index > end
    # Some writers leave out the space to spare of the last block.
    if not is_proven and (is_refuted or any([_may_be_converted(source, header, place - other, place)
                                             for other in {end, content_end}])):
        raise _misfit(header, f"and the next part begins at {place}")
    following = _next_valid(source, place)
    if end > source.size:
        warn(f"the block at byte {header.offset} has space allocated up to byte {end}, the file ends at {source.size}")
    if following is not None:
        warn(f"between the blocks at bytes {header.offset} and {following} lie {following - end} bytes that belong to "
             "neither")
    return following


def _check_spare(source, header, first, listed):
    """Raise AsdfFormatError when a block of the index lies in the space to spare of another one.

    One wrong size would take it from the list. Without an index such bytes are what an update has left behind. Edited
    text in front of the blocks moves all of them from where the index has them.
    """
    begin = header.data_offset + header.used
    if header.end - begin < file_layout.BLOCK_HEADER_NBYTES or not (offsets := listed()[1]):
        return
    number = bisect_left(offsets, begin - first + offsets[0])
    inside = offsets[number] - offsets[0] + first if number < len(offsets) else header.end
    if inside < header.end and source.read_at(inside, _N_BEGIN).startswith(file_layout.BLOCK_MAGIC):
        raise _misfit(header, f"and by the index another block begins at {inside}")


def _misfit(header, why):
    return AsdfFormatError(f"the block at byte {header.offset} ends at byte {header.end} by its sizes, {why}; bytes "
                           "may be missing or added, as by a program that converts the ends of lines",
                           offset=header.offset, member="allocated_size")


def _may_be_converted(source, header, n_more, end):
    """Return whether a block that ends at `end` may have `n_more` bytes, or lack as many, because of a converter.

    That takes each CR before an LF away, or puts one before each LF.
    """
    if n_more == 0 or n_more > header.end - header.offset:
        return False
    n_lf, n_crlf = _newlines(source, header.offset, end)
    return n_lf == n_crlf >= n_more if n_more > 0 else n_crlf == 0 and n_lf >= -n_more


def _newlines(source, start, stop):
    """Return how many LF there are, and before how many of them is a CR."""
    n_lf, n_crlf, last = 0, 0, b""
    for piece in source.pieces(start, stop - start):
        n_lf += piece.count(b"\n")
        n_crlf += (last + piece).count(b"\r\n")
        last = piece[-1:]
    return n_lf, n_crlf


def _check_no_header(source, offset):
    """Raise AsdfFormatError when only the magic is missing at `offset` for a block that ends where another part begins.

    One flipped bit would take the block from the list. But where zeros are, a block was going to be appended when that
    was stopped (see `updating`).
    """
    data = source.read_at(offset, file_layout.BLOCK_HEADER_NBYTES)
    n_magic = len(file_layout.BLOCK_MAGIC)
    if file_layout.BLOCK_MAGIC.startswith(data[:n_magic].rstrip(b"\0")):
        return
    data = file_layout.BLOCK_MAGIC + data[n_magic:]
    try:
        end = file_layout.parse_block_header(data, offset, source.size).end
    except AsdfFormatError:
        return
    if end == source.size or source.read_at(end, _N_BEGIN).startswith(_BEGINS):
        raise AsdfFormatError(f"at byte {offset} there is the header of a block without its magic", offset=offset,
                              member="magic")


def _next_valid(source, offset):
    """Return the offset of the next valid block header from `offset` on, or None."""
    while (offset := find_magic(source, offset)) is not None:
        try:
            read_block_header(source, offset)
        except AsdfFormatError:
            offset += 1
        else:
            return offset
    return None


def _check_streamed(source, header):
    """Raise AsdfFormatError when a streamed block has sizes after all, and another part begins where it would end.

    One flipped bit would make all following blocks its content. It is also raised when each LF of the file follows a
    CR, and the block has some: a program that converts the ends of lines has put them there.

    Notes : ASDF file layout, "Flags": the sizes are ignored, and writers have zeros there.
    """
    data = source.read_at(header.offset, file_layout.BLOCK_HEADER_NBYTES)
    end = header.data_offset + int.from_bytes(data[14:22], "big")
    if end > header.data_offset and source.read_at(end, _N_BEGIN).startswith(_BEGINS):
        raise AsdfFormatError(f"the block at byte {header.offset} is streamed, and by its sizes it ends at byte {end}, "
                              "where another part begins", offset=header.offset, member="flags")
    n_lf, n_crlf = _newlines(source, 0, min(_SMALL_NBYTES, source.size))
    if n_lf == n_crlf:
        n_lf, n_crlf = _newlines(source, 0, source.size)
        if n_lf == n_crlf and _newlines(source, header.data_offset, source.size)[0]:
            raise AsdfFormatError(f"the block at byte {header.offset} is streamed, and each LF of the file follows a "
                                  "CR: a program has converted the ends of lines", offset=header.offset,
                                  member="content")
