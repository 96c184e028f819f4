"""An ASDF file changed: written anew, or in the space that it has.

`rewrite` makes another file, which replaces the old one in one step. `update_in_place` writes over blocks that the tree
no longer needs, and brings the disk up to date between content, block header and tree. It is not safe from kills, as
old and new content share their bytes. `append_block` is: it changes nothing that the old tree refers to. The caller
holds the lock of the file, see `FileSource.changing`.
"""
from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from zcore.asdf import checksums, compression, file_layout
from zcore.asdf.blocks import Block
from zcore.asdf.writing import STANDARD, NewBlocks, directory_of, front_of, write_blanks, write_new
from zcore.buffers import flat_view
from zcore.descriptors import write_at
from zcore.errors import StoreError, ZcoreError

if TYPE_CHECKING:
    from zcore.asdf.file import AsdfFile
    from zcore.asdf.writing import Form
    from zcore.typing import Memory, StrPath

_PIECE_NBYTES = 1 << 20
_OF_INDEX = b"%YAML0123456789 \t\r\n,-[].\0"


def comments_of(file: AsdfFile) -> list[str]:
    """Return the comments that a file has when it is written again: its own, as its tags are of the standard there."""
    if file.tree_text or any([comment.startswith(STANDARD) for comment in file.comments]):
        return file.comments
    return [STANDARD + file_layout.STANDARD_VERSION, *file.comments]


def standard_of(file: AsdfFile) -> str:
    """Return the version of the standard that a file has when it is written again."""
    return file_layout.standard_of(comments_of(file))


def rewrite(file: AsdfFile, path: StrPath, compression: str | None, form: Form, embed: bool,
            fsync: bool | None = None, *, is_held: bool = False) -> None:
    """Write an `AsdfFile` to a new file at `path`; other parameters as for `write`.

    Other nodes may refer by number to blocks that no array of the tree refers to. If there is such a block, all blocks
    keep their numbers, and new ones follow.
    """
    blocks = NewBlocks(compression)
    if len(referenced(file)) < len(file.blocks):
        for block in file.blocks:
            blocks.add(block)
    text = _text_of(file, blocks.add, embed, path)
    write_new(path, comments_of(file), text, blocks, form, fsync, is_held=is_held)


def check_end(file: AsdfFile) -> None:
    """Raise StoreError if bytes that belong to no part of a file follow its last block, which would be lost.

    The block index may follow, zeros, and what a program left that was stopped while it appended a block.
    """
    source = file.source
    if not len(file.blocks) or file.blocks[-1].is_streamed:
        return
    begin = offset = file.blocks[-1].header.end
    start = source.read_at(offset, file_layout.BLOCK_HEADER_NBYTES)
    if start.startswith(file_layout.INDEX_MAGIC) or file_layout.INDEX_MAGIC.startswith(start):
        allowed, offset = _OF_INDEX, offset + len(file_layout.INDEX_MAGIC)
    else:
        allowed = b"\0"
        if start[:6] == b"\0\0\0\0\0\x30":
            # A header whose magic would have been written next.
            offset += len(start)
    while offset < source.size:
        offset = source.skip_hole(offset)
        piece = source.read_at(offset, _PIECE_NBYTES)
        if piece.translate(None, allowed):
            raise StoreError(f"{file.path}: bytes that belong to no part of the file follow its last block, at byte "
                             f"{begin}, and would be lost; `zcore.asdf.defragment` removes them", key=file.path)
        offset += len(piece)


def _text_of(file, add_block, embed, path):
    if not file.tree and not file.tree_text:
        return b""
    from zcore.asdf.tree.dump import dump

    return dump(file.tree, add_block, standard=standard_of(file), embed=embed, directory=directory_of(path))


def referenced(file: AsdfFile) -> set[int]:
    """Return the numbers of the blocks that the arrays of the tree referred to when it was read."""
    n_blocks = len(file.blocks)
    sources = [node.members.get("source") for node in file.arrays]
    return {source % n_blocks for source in sources if isinstance(source, int) and -n_blocks <= source < n_blocks}


def named_files(file: AsdfFile) -> list[str]:
    """Return the paths of the other files that arrays of the tree lie in, except those that may not be read."""
    sources = [node.members.get("source") for node in file.arrays]
    paths = []
    for source in {source for source in sources if isinstance(source, str)}:
        with contextlib.suppress(ZcoreError):
            paths.append(file.origin.path_of(source.partition("#")[0]))
    return paths


def update_in_place(file: AsdfFile, compression: str | None, checksum: bool, embed: bool) -> bool:
    """Write the tree of an `AsdfFile`, and the arrays that are new in it, into the space that there is.

    A new array takes the block of an array that is no longer in the tree, if it fits there, and else a new block
    behind the last one. No block that stays is touched, and no offset changes.

    Returns
    -------
    bool
        False, and nothing was written, when the tree does not fit before the first block, or no block can follow the
        last one.
    """
    def text_of(add):
        def add_block(content, *, streamed=False):
            # The last block stays as it is.
            is_kept = streamed and isinstance(content, Block) and content.is_of(file.source)
            return -1 if is_kept else add(content, streamed=streamed)

        return _text_of(file, add_block, embed, file.path)

    found = NewBlocks(compression)
    text_of(found.add)
    if found.streamed is not None or not len(file.blocks):
        return False
    replaced, appended, numbers = _places(file, found)
    if appended and file.blocks[-1].is_streamed:
        return False
    # The same tree once more, now that each block has its number.
    again = NewBlocks(compression)
    text = text_of(lambda content, streamed: numbers[again.add(content)])
    front, room = front_of(comments_of(file), text), file.blocks[0].offset
    if len(front) > room or not text:
        return False
    if appended:
        check_end(file)
    with _writing(file) as fd:
        for block, name, stored, data_size in replaced:
            write_at(fd, stored, block.data_offset)
            os.fsync(fd)
            header = _header(block.header.header_size, name, block.allocated, stored, data_size, checksum)
            # A longer header keeps the bytes behind its fields.
            write_at(fd, header[:file_layout.BLOCK_HEADER_NBYTES], block.offset)
            os.fsync(fd)
        for name, stored, data_size in appended:
            _append(file, name, stored, data_size, checksum)
        write_blanks(fd, write_at(fd, front, 0), room)
        os.fsync(fd)
    file.reread()
    return True


@contextlib.contextmanager
def _writing(file):
    """Return a context manager of the descriptor; an error of the system becomes a StoreError."""
    try:
        with file.source.writing() as fd:
            yield fd
    finally:
        file.source.note_change()
        file.source.refresh()
        file.blocks.forget(file.front)


def _header(header_size, name, allocated, stored, data_size, checksum):
    digest = checksums.digest_of([stored]) if checksum else None
    return file_layout.render_block_header(header_size, 0, name, allocated, len(stored), data_size, digest)


def _places(file, blocks):
    """Return where contents of blocks go.

    Returns
    -------
    tuple
        (Block, compression, stored bytes, size of the data) of those that take the place of another one; the last three
        of these for blocks that follow the last one; and the number of each content's block.
    """
    kept = [content.number if isinstance(content, Block) and content.is_of(file.source) else None
            for content in blocks.contents]
    free = sorted(referenced(file).difference(kept))
    replaced, appended, numbers = [], [], []
    for content, number in zip(blocks.contents, kept, strict=True):
        if number is None:
            stored = _stored(content, blocks.compression)
            number = next((i for i in free if len(stored[1]) <= file.blocks[i].allocated
                           and not file.blocks[i].is_streamed), None)
            if number is None:
                number = len(file.blocks) + len(appended)
                appended.append(stored)
            else:
                free.remove(number)
                replaced.append((file.blocks[number], *stored))
        numbers.append(number)
    return replaced, appended, numbers


def _stored(content, name):
    """Return (compression as bytes, bytes to be stored, size of the data)."""
    if isinstance(content, Block):
        if name in (None, content.compression) and content.is_compressed:
            return content.header.compression, b"".join(content.stored_pieces()), content.data_size
        content = content.read()
    stored = content if name is None else b"".join(compression.encode(name, content))
    return (name or "").encode(), stored, len(content)


def append_block(file: AsdfFile, content: Memory, name: str | None, checksum: bool) -> int:
    """Add a block behind the last one of an `AsdfFile`; returns its number. See `AsdfFile.append_block`."""
    compression.check_written(name)
    number, content = len(file.blocks), flat_view(content, "a block")
    if number and file.blocks[-1].is_streamed:
        raise ValueError(f"the last block of {file.path} is streamed, no other can follow")
    check_end(file)
    _append(file, *_stored(content, name), checksum)
    file.reread()
    return number


def _append(file, name, stored, data_size, checksum):
    """Write a block and the index behind the last block.

    Notes
    -----
    ASDF file layout, "Block index": without one blocks are found by skipping along, so it can go first. At every step
    the old blocks are followed by nothing, zeros, or a block that nothing refers to. The header is written before the
    content, which could otherwise be taken for blocks, and the magic of the header is written last.
    """
    found, n_magic = file.blocks.found, len(file_layout.BLOCK_MAGIC)
    header = _header(48, name, len(stored), stored, data_size, checksum)
    with _writing(file) as fd:
        if len(found.offsets):
            offset = file.blocks[-1].header.end
            os.ftruncate(fd, min(offset, file.source.size))
        else:
            offset = file.source.size
            if file.tree_text and not file.tree_text.endswith(b"\n"):
                # The end of the file stood for it.
                offset = write_at(fd, b"\n", offset)
        end = offset + len(header) + len(stored)
        try:
            os.ftruncate(fd, end)
            os.fsync(fd)
            write_at(fd, header[n_magic:], offset + n_magic)
            os.fsync(fd)
            write_at(fd, header[:n_magic], offset)
            write_at(fd, stored, offset + len(header))
            os.fsync(fd)
            if found.is_indexed or not len(found.offsets):
                write_at(fd, file_layout.render_block_index([*found.offsets, offset]), end)
                os.fsync(fd)
        except BaseException:
            # A block whose content is not whole would stay. Without one, and without an index, the file is valid.
            with contextlib.suppress(OSError):
                os.ftruncate(fd, offset)
            raise
