"""Rows appended to a streamed block, the last block of a file, which has no fixed size.

ASDF file layout, "Flags": a streamed block reaches to the end of the file, so that appending rows is appending bytes. A
kill leaves the old rows, new rows that are complete, and perhaps a part of a row. Readers leave the part out, and the
next row is written over it.
"""
from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import numpy as np

from zcore.asdf.file import open
from zcore.asdf.writing import STANDARD, Form, NewBlocks, directory_of, write_new
from zcore.buffers import is_masked, strides_of
from zcore.descriptors import write_at
from zcore.errors import AsdfFormatError
from zcore.text.printable import plural

if TYPE_CHECKING:
    from typing import Any, Self

    import numpy.typing as npt

    from zcore.asdf.file import AsdfFile
    from zcore.typing import StrPath


def stream(path: StrPath, tree: dict[str, Any] | None = None) -> RowWriter:
    """Return a `RowWriter` for the streamed array of a file.

    Parameters
    ----------
    path : str or path-like
    tree : dict, optional
        Of a new file, with a `Stream` in it; one that is there is replaced. Without a tree, rows are appended to the
        file at `path`.

    Raises
    ------
    AsdfFormatError
        The file has no streamed array.
    ValueError
        The tree has none.

    Examples
    --------
    >>> import tempfile, zcore
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with zcore.asdf.stream(f"{folder}/a.asdf", {"rows": zcore.asdf.Stream((3,), "<i2")}) as rows:
    ...         rows.append([[1, 2, 3], [4, 5, 6]])
    ...     with zcore.asdf.stream(f"{folder}/a.asdf") as rows:
    ...         rows.append([7, 8, 9])
    ...     with zcore.asdf.open(f"{folder}/a.asdf") as file:
    ...         file.tree["rows"].read().tolist()
    [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    """
    if tree is not None:
        from zcore.asdf.tree.dump import dump_with_standard

        blocks = NewBlocks()
        text, standard = dump_with_standard(tree, blocks.add, None, False, directory_of(path))
        if blocks.streamed is None:
            raise ValueError("the tree has no Stream to append rows to")
        write_new(path, [STANDARD + standard], text, blocks, Form())
    file = open(path, "rw")
    try:
        return RowWriter(file)
    except BaseException:
        file.close()
        raise


class RowWriter:
    """Appends rows to the streamed array of an open `AsdfFile`; one at a time may do so.

    Attributes
    ----------
    shape : tuple of int
        Of a row.
    dtype : dtype
    n_rows : int
        That the file has.
    """

    def __init__(self, file: AsdfFile) -> None:
        self._file = file
        nodes = [node for node in file.arrays if node.is_streamed]
        if not nodes or not len(file.blocks) or not file.blocks[-1].is_streamed:
            raise AsdfFormatError(f"{file.path} has no streamed array", path=file.path, place=file.path)
        node, block = nodes[-1], file.blocks[-1]
        self.dtype: np.dtype[Any] = node.dtype
        self.shape: tuple[int, ...] = tuple(node.shape[1:])
        self._row_nbytes = self.dtype.itemsize * int(np.prod(self.shape, dtype=object))
        strides = strides_of(node.shape, self.dtype.itemsize)
        if node.block is not block or not self._row_nbytes or node.offset or tuple(node.strides) != strides:
            raise AsdfFormatError(f"{file.path}: its streamed array is not the rows of its last block, in C order",
                                  path=file.path, block=block.number)
        self.n_rows: int = block.used // self._row_nbytes
        # A kill may have left a part of a row behind it. The next row, which is longer, is written over it.
        self._end = block.data_offset + self.n_rows * self._row_nbytes

    def __repr__(self) -> str:
        rows = plural(self.n_rows, "row")
        return f"<RowWriter of {self._file.path}: {rows} of shape {self.shape}, dtype={self.dtype}>"

    def append(self, rows: npt.ArrayLike) -> None:
        """Append one row or several, cast to the type of the array as NumPy's `same_kind` allows.

        Raises
        ------
        ValueError
            They have another shape.
        TypeError
            They cannot be cast.
        StoreError
            Another program or handle has changed or replaced the file since it was opened.
        LockError
            The file system or the permissions do not allow locks.
        """
        if is_masked(rows):
            raise ValueError("some of the rows are masked, and a streamed array has no mask")
        rows = np.asarray(rows)
        if rows.shape == self.shape:
            rows = rows[np.newaxis]
        if rows.shape[1:] != self.shape or rows.ndim == 0:
            raise ValueError(f"rows have the shape {self.shape}, found {rows.shape}")
        rows = np.ascontiguousarray(rows.astype(self.dtype, casting="same_kind", copy=False))
        if not len(rows):
            return
        with self._file.source.changing(), self._file.source.writing() as fd:
            try:
                self._end = write_at(fd, rows.reshape(-1).view("u1"), self._end)
            except BaseException:
                with contextlib.suppress(OSError):
                    # A part of these rows would lie behind the next ones.
                    os.ftruncate(fd, self._end)
                raise
        self.n_rows += len(rows)

    def flush(self) -> None:
        """Bring the appended rows to the disk."""
        with self._file.source.writing() as fd:
            os.fsync(fd)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
