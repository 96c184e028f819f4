"""An ASDF file written: header, comments, tree, blocks, index.

A new file is written under a temporary name in its directory, and takes the place of the old one in one step: a kill at
any moment leaves the old file or the new one.
"""
from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import numpy as np

from zcore import config, workers
from zcore.asdf import checksums, compression, file_layout
from zcore.asdf.blocks import Block
from zcore.asdf.source import held
from zcore.buffers import flat_view
from zcore.descriptors import write_at
from zcore.errors import StoreError, ZcoreError
from zcore.replacing import NewFile
from zcore.text.arguments import as_bool, integer_of
from zcore.trust.base_path import file_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, Literal

    from zcore.typing import Memory, StrPath

STANDARD = "#ASDF_STANDARD "
_COPY_NBYTES = 1 << 20
_PARALLEL_NBYTES = 1 << 22            # from which on memory is hashed while it is written


class NewBlocks:
    """The contents of new blocks: collected while a tree is rendered, and numbered in the order in which they come.

    Parameters
    ----------
    name : {"zlib", "bzp2", "lz4"}, optional
        The compression of all blocks.
    """

    def __init__(self, name: str | None = None) -> None:
        self.compression: str | None = compression.check_written(name)
        self._numbers = {}
        self.contents: list[Block | memoryview] = []      # blocks of files, or flat views of bytes
        self.streamed: Block | memoryview | None = None   # the first bytes of a streamed block

    def add(self, content: Memory | Block, *, streamed: bool = False) -> int:
        """Return the number of the block that holds `content`; the same content has one block.

        Parameters
        ----------
        content : bytes-like or Block
            C-contiguous. Without a compression a block of a file is copied as it is stored.
        streamed : bool
            The block is the last one and has no end: its number is -1, and a file has one at the most. A block of a
            file becomes a common one if there is another, or a compression.
        """
        if isinstance(content, Block):
            key = content.path, content.offset
        else:
            content = flat_view(content, "a block")
            key = np.frombuffer(content, "u1").__array_interface__["data"][0] if len(content) else None, len(content)
        if streamed and content is self.streamed:
            return -1
        if streamed and not (isinstance(content, Block) and (
                self.streamed is not None or self.compression is not None or key in self._numbers)):
            if self.streamed is not None:
                raise ValueError("a file has one streamed block, its last")
            self.streamed = content
            return -1
        if key[0] is None or key not in self._numbers:
            self._numbers[key] = len(self.contents)
            self.contents.append(content)
        return self._numbers[key]


@contextlib.contextmanager
def replacing(path: StrPath, fsync: bool | None = None, *, is_held: bool = False) -> Iterator[int]:
    """Return a context manager of the descriptor of a new file, which replaces `path` at the end.

    The new file gets the mode of the old one; a link is followed. When the block raises, `path` stays as it was. An old
    file is locked when it is replaced, unless the caller holds it: a program may be changing it.

    Raises : StoreError, if the file cannot be made or written.
    """
    new = None
    try:
        new = NewFile(path, fsync=config.fsync if fsync is None else as_bool(fsync, "fsync"))
        yield new.fd
        with contextlib.nullcontext() if is_held else held(new.path):
            new.commit()
    except ZcoreError:
        raise
    except OSError as exc:
        raise StoreError(f"cannot write {os.fspath(path)}: {exc.strerror or exc}", key=os.fspath(path),
                         errno=exc.errno) from exc
    finally:
        if new is not None:
            new.discard()


def directory_of(path: StrPath) -> str:
    """Return the directory that a file lies in, also by way of a link."""
    return os.path.dirname(os.path.realpath(file_path(path)))


def write_blanks(fd: int, offset: int, end: int) -> int:
    """Fill the space up to `end` as the text recommends; returns `end`."""
    while offset < end:
        offset = write_at(fd, b" " * min(end - offset, _COPY_NBYTES), offset)
    return end


def front_of(comments: Iterable[str], text: bytes) -> bytes:
    """Return the header, the comments and the tree, which come before the blocks.

    Notes : ASDF file layout, "Blocks": without a tree the first block follows the header at once.
    """
    header = b"#ASDF %s\n" % file_layout.FORMAT_VERSION.encode()
    if not text:
        return header
    # The end of the file may have stood for the last newline.
    end = b"" if text.endswith(b"\n") else b"\n"
    return header + b"".join([comment.encode() + b"\n" for comment in comments]) + text + end


class Form:
    """How blocks are laid out.

    Parameters
    ----------
    checksum : bool
        Whether blocks have an MD5, of the bytes that are stored.
    index : bool
        Whether there is a block index at the end.
    pad : int
        Bytes of room behind the tree and in each block.
    block_align : int
        Each block begins at a multiple of it.

    Raises
    ------
    ValueError
        A number is out of its range.
    """

    def __init__(self, checksum: bool = True, index: bool = True, pad: int = 0, block_align: int = 1) -> None:
        for name, value, least in (("pad", pad, 0), ("block_align", block_align, 1)):
            number = integer_of(value)
            if number is None or not least <= number < 2**31:
                raise ValueError(f"{name} is {value!r:.60}, expected an integer from {least} to 2**31 - 1")
        self.checksum: bool = as_bool(checksum, "checksum")
        self.index: bool = as_bool(index, "index")
        self.pad: int = int(pad)
        self.block_align: int = int(block_align)

    def aligned(self, offset: int) -> int:
        """Return the next offset at which a block may begin."""
        return -(-(offset + self.pad) // self.block_align) * self.block_align


def write_new(path: StrPath, comments: Iterable[str], text: bytes, blocks: NewBlocks, form: Form,
              fsync: bool | None = None, *, is_held: bool = False) -> None:
    """Write a new file in place of `path` in one step; see `replacing` and `front_of`."""
    with replacing(path, fsync, is_held=is_held) as fd:
        offset = write_at(fd, front_of(comments, text), 0)
        if text and (blocks.contents or blocks.streamed is not None):
            # Behind a header without a tree no reader expects space.
            offset = write_blanks(fd, offset, form.aligned(offset))
        offsets = []
        for content in blocks.contents:
            offsets.append(offset)
            offset = _write_block(fd, offset, content, blocks.compression, form)
        if blocks.streamed is not None:
            header = file_layout.render_block_header(48, file_layout.STREAMED, b"", 0, 0, 0, None)
            offset = write_at(fd, header, offset)
            content = blocks.streamed
            for piece in content.stored_pieces() if isinstance(content, Block) else [content]:
                offset = write_at(fd, piece, offset)
        elif offsets and form.index:
            write_at(fd, file_layout.render_block_index(offsets), offset)
        elif offsets:
            # The last block may end with room that nothing was written to.
            os.ftruncate(fd, offset)


def _write_block(fd, offset, content, name, form):
    """Write one block; returns the offset of the next one.

    Parameters
    ----------
    fd : int
    offset : int
    content : Block or memoryview
    name : str or None
        Compression. A block of a file that has it already, or any for None, is copied as it is stored.
    form : Form
    """
    begin = offset + file_layout.BLOCK_HEADER_NBYTES
    if isinstance(content, Block) and name in (None, content.compression):
        if content.verifies:
            # Damage is found here: it must not get a new checksum.
            content.verify()
        used, digest = _write_pieces(fd, begin, content.stored_pieces(), form)
        if form.checksum and content.checksum is not None and not content.verifies:
            digest = content.checksum
        name, data_size = content.compression, content.data_size
    else:
        content = content.read() if isinstance(content, Block) else content
        used = data_size = len(content)
        if name is None:
            digest = _write_raw(fd, begin, content, form)
        else:
            used, digest = _write_pieces(fd, begin, compression.encode(name, content), form)
    following = form.aligned(begin + used)
    write_at(fd, file_layout.render_block_header(48, 0, (name or "").encode("latin-1"), following - begin, used,
                                                 data_size, digest), offset)
    return following


def _write_raw(fd, offset, content, form):
    """Write memory; returns its digest, or None."""
    if not form.checksum:
        write_at(fd, content, offset)
        return None
    digests = []
    tasks = [lambda: write_at(fd, content, offset), lambda: digests.append(checksums.digest_of([content]))]
    workers.each(lambda task: task(), tasks, 2 if len(content) >= _PARALLEL_NBYTES else 1)
    return digests[0]


def _write_pieces(fd, offset, pieces, form):
    """Write bytes that come in pieces; returns how many there were, and their digest or None."""
    md5, end = checksums.new_md5() if form.checksum else None, offset
    for piece in pieces:
        if md5 is not None:
            md5.update(piece)
        end = write_at(fd, piece, end)
    return end - offset, md5 and md5.digest()


def write(path: StrPath, tree: dict[str, Any] | None, *, compression: Literal["zlib", "bzp2", "lz4"] | None = None,
          checksum: bool = True, index: bool = True, pad: int = 0, block_align: int = 1, embed: bool = False,
          fsync: bool | None = None) -> None:
    """Write a tree and its arrays to a new file, in place of one that is there.

    Parameters
    ----------
    path : str or path-like
    tree : dict or None
        Of dicts, lists, scalars and arrays, or the tree of a file: see `zcore.asdf.tree.dump`. Arrays that share memory
        share a block. None: a file without a tree.
    compression : {"zlib", "bzp2", "lz4"}, optional
        Of all blocks. Without it arrays are stored as they are, and blocks of files stay as they are stored there.
    checksum, index, pad, block_align
        See `Form`.
    embed : bool
        Arrays that lie in other files come into this one; else they stay there, and a tree that names them by relative
        URIs is written to their directory alone.
    fsync : bool, optional
        The file is on the disk when the call returns; by default `zcore.config.fsync`. An old file stays until the
        new one is whole, also after a power cut.

    Raises
    ------
    TypeError, ValueError, UnsupportedError
        The tree holds something that a file cannot.
    StoreError
        The file cannot be written; the old one stays as it was.

    Notes
    -----
    ASDF file layout; a kill leaves the old file or the new one. A tree that comes from a file, or a part of it does, is
    written by the version of the standard that the file has, as its tags are of that; else by the newest one. A stream
    stays one, unless there is another one or a compression.
    """
    form, blocks = Form(checksum, index, pad, block_align), NewBlocks(compression)
    text, standard = b"", file_layout.STANDARD_VERSION
    if tree is not None:
        from zcore.asdf.tree.dump import dump_with_standard

        text, standard = dump_with_standard(tree, blocks.add, None, embed, directory_of(path))
    write_new(path, [STANDARD + standard], text, blocks, form, fsync)
