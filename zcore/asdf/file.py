"""An ASDF file that is open."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING

from zcore.asdf import file_layout, scan, updating
from zcore.asdf.blocks import BlockList
from zcore.asdf.source import FileSource, changed
from zcore.asdf.writing import Form
from zcore.errors import AsdfFormatError, ReadOnlyError, UnsupportedError, noted, warn_of
from zcore.text.arguments import as_bool
from zcore.trust.base_path import file_path

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal, Self

    from zcore.asdf.scan import Front
    from zcore.asdf.tree.ndarray import NDArrayNode
    from zcore.asdf.tree.origin import Origin
    from zcore.ranges import ByteSource
    from zcore.typing import Memory, StrPath


def open(path: StrPath, mode: Literal["r", "rw"] = "r", *, verify: bool = True,
         allowed: Sequence[StrPath] | None = None) -> AsdfFile:
    """Return the `AsdfFile` at `path`.

    Parameters
    ----------
    path : str or path-like
    mode : {"r", "rw"}
        Whether the file is changed.
    verify : bool
        Compare the checksum of a block whenever all of it is read. MD5 takes several times as long as reading does.
    allowed : sequence of str, optional
        Directories besides that of the file where files may lie that the tree names, see `ReferenceStore`; an empty
        list allows none.

    Raises
    ------
    NodeNotFoundError
        There is no file.
    AsdfFormatError
        Its header, comments, or the bounds of its tree break a rule.
    UnsupportedError
        Its version is another one; or it is remote.
    """
    if not isinstance(mode, str) or mode not in ("r", "rw"):
        raise ValueError(f"mode is {mode!r:.60}, expected 'r' or 'rw'")
    path = file_path(path)
    if "://" in path and not os.path.lexists(path):
        raise UnsupportedError(f"{path!r:.200} is remote, and only local ASDF files are read",
                               feature="remote ASDF files")
    return AsdfFile(os.path.abspath(path), is_writable=mode == "rw", verify=verify, allowed=allowed)


class AsdfFile:
    """An open file; `open` makes it. Tree and blocks are read at their first use.

    Attributes
    ----------
    path : str
    header : str
        Version of the file format.
    comments : list of str
        The lines between header and tree.
    blocks : BlockList
    source : ByteSource
        The open file, a `FileSource` if it is local.
    is_writable : bool
        Whether the file was opened for changes.
    front : Front
        Where tree and blocks begin.

    Examples
    --------
    >>> import tempfile, numpy as np, zcore
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     zcore.asdf.write(f"{folder}/a.asdf", {"title": "letters", "x": np.array([b"a", b"b"])})
    ...     with zcore.asdf.open(f"{folder}/a.asdf") as file:
    ...         file.header, file.tree["title"], file.blocks[0].data_size, bytes(file.blocks[0].read())
    ('1.0.0', 'letters', 2, b'ab')
    """

    def __init__(self, path: str, *, is_writable: bool = False, verify: bool = True,
                 allowed: Sequence[StrPath] | None = None, source: ByteSource | None = None) -> None:
        self.path: str = path
        self._verifies = as_bool(verify, "verify")
        self._allowed = allowed
        self.is_writable: bool = is_writable
        self.source: Any = FileSource(path, is_writable) if source is None else source
        try:
            self.front: Front = self._read_front()
        except BaseException:
            self.source.close()
            raise
        self.blocks: BlockList = BlockList(self.source, self.front, self._verifies)
        self._tree = self._origin = self._root = self._arrays = None

    def _read_front(self):
        try:
            with noted() as notes:
                front = scan.read_front(self.source)
        except (AsdfFormatError, UnsupportedError) as exc:
            exc.path = exc.place = self.path
            raise
        warn_of(self.path, notes)
        return front

    def reread(self, reopen: bool = False) -> None:
        """Read header and blocks again: the file was changed, or replaced by another one.

        Blocks of the old file can still be read.
        """
        if reopen:
            self.source = FileSource(self.path, self.is_writable)
            self.blocks = BlockList(self.source, self.front, self._verifies)
        self.source.refresh()
        self.front = self._read_front()
        self.blocks.forget(self.front)
        self._tree = self._origin = self._root = self._arrays = None

    @property
    def header(self) -> str:
        """The version of the file format."""
        return self.front.version

    @property
    def comments(self) -> list[str]:
        """The lines between header and tree, a list of str."""
        return list(self.front.comments)

    @property
    def standard(self) -> str:
        """The version of the standard that the comments name; without one it is 1.0.0."""
        return file_layout.standard_of(self.front.comments)

    @property
    def tree_text(self) -> bytes:
        """The text of the tree, bytes from ``%YAML`` to the end of the line ``...``; none without a tree."""
        start = self.front.tree_start
        return b"".join(self.source.pieces(start, self.front.tree_end - start))

    @property
    def origin(self) -> Origin:
        """The `Origin` of the values of the tree: this file, and other files that they name."""
        if self._origin is None:
            # Brings PyYAML, if there is a tree.
            from zcore.asdf.tree.load import load
            from zcore.asdf.tree.origin import Origin

            text = self.tree_text
            # A tree that came from a service may not name files here.
            path, allowed = (None, []) if self.source.is_far else (self.path, self._allowed)
            origin = Origin(self.blocks, len(text), path, allowed, AsdfFile, self.standard)
            try:
                with noted() as notes:
                    self._root = load(text, origin=origin)
            except (AsdfFormatError, UnsupportedError) as exc:
                if self.is_writable and self.source.is_changed():
                    # The text is a mixture of two.
                    raise changed(self.path) from exc
                exc.locate(self.path)
                raise
            warn_of(self.path, notes)
            self._origin, self._arrays = origin, origin.nodes()
        return self._origin

    @property
    def root(self) -> dict[str, Any]:
        """The tree as it was read."""
        return self.origin and self._root

    @property
    def arrays(self) -> list[NDArrayNode]:
        """All nodes of arrays in the tree as it was read, a list."""
        return self.origin and self._arrays

    @property
    def tree(self) -> dict[str, Any]:
        """The tree: dicts, lists, scalars and arrays; an empty dict without one. See `zcore.asdf.tree.load`."""
        if self._tree is None:
            self._tree = self.root
        return self._tree

    @tree.setter
    def tree(self, value: dict[str, Any]) -> None:
        self._tree = value

    def check_writable(self) -> None:
        """Raise ReadOnlyError unless the file was opened for changes."""
        if not self.is_writable:
            raise ReadOnlyError(f"{self.path} was opened for reading; open it with mode='rw'", key=self.path)

    def update(self, *, in_place: bool = False, compression: Literal["zlib", "bzp2", "lz4"] | None = None,
               checksum: bool = True, index: bool = True, pad: int = 0, block_align: int = 1, embed: bool = False,
               fsync: bool | None = None) -> bool:
        """Write the tree, as it is now, and its arrays to the file.

        Parameters
        ----------
        in_place : bool
            Write into the space that the file has allocated, where tree and new arrays fit there; see
            `zcore.asdf.updating.update_in_place`. A kill may leave a file that is neither the old nor the new one.
        compression, checksum, index, pad, block_align, embed, fsync
            As for `write`; in place there is no choice of index, room and alignment.

        Returns
        -------
        bool
            Whether the file was written in place. Else a new file has replaced the old one in one step.

        Raises
        ------
        ReadOnlyError
            The file was not opened with mode ``"rw"``.
        StoreError
            Another program or handle has changed or replaced the file since it was opened, or bytes that belong to no
            part of it follow its last block. Nothing was written.
        LockError
            The file system or the permissions do not allow locks.
        """
        form, in_place = Form(checksum, index, pad, block_align), as_bool(in_place, "in_place")
        self.check_writable()
        with self.source.changing():
            if in_place and updating.update_in_place(self, compression, form.checksum, embed):
                return True
            updating.check_end(self)
            updating.rewrite(self, self.path, compression, form, embed, fsync, is_held=True)
        self.reread(reopen=True)
        return False

    def append_block(self, content: Memory, *, compression: Literal["zlib", "bzp2", "lz4"] | None = None,
                     checksum: bool = True) -> int:
        """Add a block behind the last one; returns its number.

        Nothing in the tree refers to it yet. A kill at any moment leaves a file whose old blocks and tree are read.

        Parameters
        ----------
        content : bytes-like
        compression : {"zlib", "bzp2", "lz4"}, optional
        checksum : bool
            Whether the block has an MD5.

        Raises
        ------
        ReadOnlyError
            The file was not opened with mode ``"rw"``.
        ValueError
            Its last block is streamed, which none can follow.
        StoreError, LockError
            As for `update`.
        """
        self.check_writable()
        with self.source.changing():
            return updating.append_block(self, content, compression, as_bool(checksum, "checksum"))

    def verify(self) -> int:
        """Compare the checksums of all blocks.

        Returns
        -------
        int
            How many have one.

        Raises
        ------
        ChecksumError
            Of the first block whose bytes have another one.
        AsdfFormatError
            The walk along the blocks ends with a fault.
        """
        return sum([block.verify() for block in self.blocks])

    def close(self) -> None:
        """Close the file; arrays that were read or mapped stay."""
        self.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<AsdfFile {self.path!r}, mode {'rw' if self.is_writable else 'r'}>"
