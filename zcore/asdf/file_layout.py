"""The parts of an ASDF file, each read or made by a function on bytes.

ASDF file layout (file format 1.0.0, asdf-standard 1.1.1 to 1.6.0); in order::

    file     = header comments [tree] {padding} {block} [index]
    header   = "#ASDF" white version newline        newline  = ["\\r"] "\\n"
    comments = {"#" {any} newline}
    tree     = "%YAML 1.1" newline … newline "..." newline
    padding  = bytes without the magic of a block
    block    = block-header content                 (table at `parse_block_header`)
    index    = "#ASDF BLOCK INDEX" newline YAML list of integers {zero}

Nothing here reads a file, and offsets count from its beginning unless said otherwise; `scan` walks along one. Errors
name the offset; callers that know path and block add these.
"""
from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, NamedTuple

from zcore.asdf.tree.tagged import STANDARD_VERSION as STANDARD_VERSION
from zcore.errors import AsdfFormatError, UnsupportedError, warn

if TYPE_CHECKING:
    from collections.abc import Iterable

FORMAT_VERSION = "1.0.0"
BLOCK_MAGIC = b"\xd3BLK"              # no UTF-8, so never in a tree
INDEX_MAGIC = b"#ASDF BLOCK INDEX"
BLOCK_HEADER_NBYTES = 54              # of the shortest header, magic and header_size included
STREAMED = 0x1
MAX_LINE_NBYTES = 1 << 10             # of the first line
MAX_COMMENTS_NBYTES = 1 << 20
_MIN_HEADER_SIZE = 48                 # "should be at least 48"
_LARGEST = 2**63 - 1                  # of any offset that a file can have

_HEADER = re.compile(rb"#ASDF[ \t]+(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:[-+][0-9A-Za-z.+-]{1,99})?[ \t]*\r?\n")
_STANDARD = re.compile(r"#ASDF_STANDARD[ \t]+(\d{1,9}\.\d{1,9}\.\d{1,9})[ \t]*$")
_YAML_LINE = re.compile(rb"%YAML[ \t]+\d{1,9}\.\d{1,9}[ \t]*\r?\n")
_TREE_END = re.compile(rb"\n\.\.\.\r?\n")
_BLOCK_HEADER = struct.Struct(">4sHI4sQQQ16s")
_INDEX = re.compile(rb"#ASDF BLOCK INDEX\r?\n(?:%YAML 1\.[12]\r?\n)?---(?P<items>[\s\d\[\],-]*)\r?\n"
                    rb"\.\.\.(?:\r?\n)?\0*")
# Possessive (++): without it, `re` keeps 400 bytes for each number, to go back to it.
_FLOW_ITEMS = re.compile(rb"\s*\[\s*(?P<items>\d++(?:\s*+,\s*+\d++)*+)\s*(?:,\s*)?\]\s*")
_BLOCK_ITEMS = re.compile(rb"(?:[ \t]*+\r?\n-[ \t]++\d++)++\s*")
_OFFSET = re.compile(rb"\d+")


class BlockHeader(NamedTuple):
    """A block header that was checked: `compression` is bytes without trailing zeros, all sizes are bytes.

    The sizes of a streamed block follow from the end of the file.
    """

    offset: int
    header_size: int
    flags: int
    compression: bytes
    allocated: int
    used: int
    data_size: int
    checksum: bytes

    @property
    def data_offset(self) -> int:
        """Where the content begins."""
        return self.offset + 6 + self.header_size

    @property
    def end(self) -> int:
        """The offset right behind the allocated space."""
        return self.data_offset + self.allocated

    @property
    def is_streamed(self) -> bool:
        """Whether the content reaches to the end of the file."""
        return bool(self.flags & STREAMED)


def parse_header(data: bytes) -> tuple[str, int]:
    """Return (version, offset behind the line) of the first line.

    Raises
    ------
    AsdfFormatError
        The line is not ``#ASDF``, white space and a version; there is a byte order mark before it.
    UnsupportedError
        Another major version.

    Notes
    -----
    ASDF file layout, "Header": ``header = asdf_token " " format_version ["\\r"] "\\n"``. More white space is read.

    >>> parse_header(b"#ASDF 1.0.0\\n%YAML 1.1")
    ('1.0.0', 12)
    """
    found = _HEADER.match(data[:MAX_LINE_NBYTES])
    if found is None:
        line = data[:MAX_LINE_NBYTES].partition(b"\n")[0][:40]
        raise AsdfFormatError(f"the first line is {line!r}, expected '#ASDF' and a version such as "
                              f"{FORMAT_VERSION}", offset=0, member="header")
    version = b".".join(found.groups()).decode()
    if int(found[1]) != 1:
        raise UnsupportedError(f"the file format is version {version}, zcore reads 1.x.y", feature="ASDF file format")
    if int(found[2]) > 0:
        warn(f"the file format is version {version}, zcore knows {FORMAT_VERSION}")
    return version, found.end()


def parse_comments(data: bytes, start: int) -> tuple[list[str], int]:
    """Return (list of str, offset behind them) of the lines from `start` on that begin with ``#``.

    Raises : AsdfFormatError, if one has no end.
    Notes : ASDF file layout, "Comments": each line begins with ``#``, so there are no blank ones.

    >>> parse_comments(b"#ASDF 1.0.0\\n#ASDF_STANDARD 1.6.0\\n%YAML 1.1", 12)
    (['#ASDF_STANDARD 1.6.0'], 33)
    """
    comments = []
    while data.startswith(b"#", start):
        end = data.find(b"\n", start)
        if end < 0:
            if len(data) < MAX_COMMENTS_NBYTES:
                # The file ends with it.
                end = len(data)
            else:
                raise AsdfFormatError(f"a comment at byte {start} has no end", offset=start, member="comments")
        comments.append(data[start:end].rstrip(b"\r").decode("utf-8", "replace"))
        start = min(end + 1, len(data))
    return comments, start


def standard_of(comments: Iterable[str]) -> str:
    """Return the version of the standard that the comments name, 1.0.0 when they do not.

    >>> standard_of(["# mine", "#ASDF_STANDARD 1.5.0"]), standard_of([])
    ('1.5.0', '1.0.0')
    """
    for comment in comments:
        found = _STANDARD.match(comment)
        if found:
            return found[1]
    return "1.0.0"


def check_tree_start(data: bytes, start: int) -> None:
    """Check the line with which a tree begins at `start`.

    Raises : AsdfFormatError, if it is not ``%YAML`` and a version. The reader of the tree checks which version.
    Notes : ASDF file layout, "Tree": it "must begin with" ``%YAML 1.1``.
    """
    if not _YAML_LINE.match(data[start:start + MAX_LINE_NBYTES]):
        raise AsdfFormatError(f"expected the line '%YAML 1.1' or a block at byte {start}, found "
                              f"{data[start:start + 20]!r}", offset=start, member="tree")


def find_tree_end(data: bytes, start: int, is_whole: bool) -> int | None:
    """Return the offset behind the line ``...`` that ends a tree, or None.

    Parameters
    ----------
    data : bytes
    start : int
        Where to look from; the newline before the line is looked for, too.
    is_whole : bool
        Whether `data` reach to the end of the file, which may take the place of the last newline.

    Notes
    -----
    ASDF file layout, "Tree". The regular expression printed there forgets to escape its dots, and the file's end.

    >>> find_tree_end(b"%YAML 1.1\\n---\\na: ' ...'\\n...\\n", 0, True)
    28
    """
    found = _TREE_END.search(data, start)
    if found:
        return found.end()
    if is_whole and data.endswith((b"\n...", b"\n...\r")) and data.rfind(b"\n...") >= start:
        return len(data)
    return None


def parse_block_header(data: bytes, offset: int, file_size: int) -> BlockHeader:
    """Return the `BlockHeader` at `offset` of a file.

    ========== ==== ===================================================
    from magic size field
    ========== ==== ===================================================
    0          4    magic, d3 42 4c 4b
    4          2    header_size: of all that follows in the header, ≥ 48
    6          4    flags, bit 0: streamed
    10         4    compression, padded by zeros; zeros: none
    14         8    allocated_size
    22         8    used_size, ≤ allocated_size
    30         8    data_size, decoded
    38         16   MD5, or zeros
    ========== ==== ===================================================

    Parameters
    ----------
    data : bytes
        The bytes at `offset`: 54, or fewer where the file ends.
    offset : int
    file_size : int

    Raises
    ------
    AsdfFormatError
        There is no header, its sizes contradict each other, or the content does not lie in the file.

    Notes
    -----
    ASDF file layout, "Block header"; numbers are big-endian. Unknown flags have no meaning and cause a warning.
    Allocated space may end behind the file: only the last block may, which `scan` sees to.
    """
    if data[:4] != BLOCK_MAGIC:
        raise AsdfFormatError(f"expected a block at byte {offset}, found {data[:4]!r}", offset=offset, member="magic")
    if len(data) < BLOCK_HEADER_NBYTES:
        raise AsdfFormatError(f"the file ends at byte {file_size}, in the block header at byte {offset}",
                              offset=offset, member="header_size")
    _, header_size, flags, compression, allocated, used, data_size, checksum = _BLOCK_HEADER.unpack_from(data)
    begin = offset + 6 + header_size
    if header_size < _MIN_HEADER_SIZE:
        member, why = "header_size", f"a header of {header_size} bytes, expected at least {_MIN_HEADER_SIZE}"
    elif begin > file_size:
        member, why = "header_size", f"a header up to byte {begin}, the file ends at {file_size}"
    elif flags & STREAMED:
        if compression != b"\0\0\0\0":
            member, why = "compression", f"is streamed and compressed by {compression!r}, which exclude each other"
        else:
            rest = file_size - begin
            return BlockHeader(offset, header_size, flags, b"", rest, rest, rest, bytes(16))
    elif used > allocated:
        member, why = "used_size", f"{used} bytes used of {allocated} allocated"
    elif used > file_size - begin:
        member, why = "used_size", f"content of {used} bytes from byte {begin} on, the file ends at {file_size}"
    elif compression == b"\0\0\0\0" and data_size != used:
        member, why = "data_size", f"is not compressed, and has {used} bytes used for {data_size} bytes of data"
    elif data_size > _LARGEST:
        member, why = "data_size", f"{data_size} bytes of data"
    else:
        if flags:
            warn(f"the block at byte {offset} has flags {flags:#x}, which have no meaning")
        return BlockHeader(offset, header_size, flags, compression.rstrip(b"\0"), allocated, used, data_size, checksum)
    raise AsdfFormatError(f"the block at byte {offset}: {why}", offset=offset, member=member)


def render_block_header(header_size: int, flags: int, compression: bytes, allocated: int, used: int, data_size: int,
                        checksum: bytes | None) -> bytes:
    """Return the bytes of a block header, zeros where it is longer than its fields; `checksum` is an MD5 or None.

    >>> len(render_block_header(48, 0, b"zlib", 10, 10, 100, bytes(16)))
    54
    """
    return _BLOCK_HEADER.pack(BLOCK_MAGIC, header_size, flags, compression, allocated, used, data_size,
                              checksum or bytes(16)) + bytes(header_size - _MIN_HEADER_SIZE)


def parse_block_index(data: bytes) -> list[int] | None:
    """Return the offsets that a block index lists, or None when `data` are no index to be trusted.

    Parameters
    ----------
    data : bytes
        From ``#ASDF BLOCK INDEX`` to the end of the file.

    Notes
    -----
    ASDF file layout, "Block index": a YAML list of integers in flow or block style that increase by at least the size
    of a header; only zeros may follow. Any other form that YAML allows is not taken for an index.

    >>> parse_block_index(b"#ASDF BLOCK INDEX\\n%YAML 1.1\\n--- [2043, 16340]\\n...\\n")
    [2043, 16340]
    """
    found = _INDEX.fullmatch(data)
    if found is None:
        return None
    items = found["items"]
    flow = _FLOW_ITEMS.fullmatch(items)
    if flow is None and not _BLOCK_ITEMS.fullmatch(items):
        return None
    offsets = []
    for match in _OFFSET.finditer(items):      # one by one: all numbers as text would take more memory than the file
        number = match[0]
        if len(number) > 19 or (number.startswith(b"0") and number != b"0"):
            # Octal for YAML 1.1, decimal for others; or beyond any file.
            return None
        offset = int(number)
        if offsets and offset - offsets[-1] < BLOCK_HEADER_NBYTES:
            return None
        offsets.append(offset)
    return offsets


def render_block_index(offsets: Iterable[int]) -> bytes:
    """Return the block index of blocks at `offsets`.

    >>> render_block_index([2043, 16340])
    b'#ASDF BLOCK INDEX\\n%YAML 1.1\\n--- [2043, 16340]\\n...\\n'
    """
    return b"%s\n%%YAML 1.1\n--- [%s]\n...\n" % (INDEX_MAGIC, b", ".join([b"%d" % offset for offset in offsets]))
