"""One file and its blocks, as one or as many files.

ASDF file layout, "Exploded form": a file of header and tree alone, which is YAML by itself, and a file with one
block for each block; arrays name the file of their block by a relative URI.
"""
from __future__ import annotations

import os
from typing import TYPE_CHECKING

from zcore.asdf import updating
from zcore.asdf.file import open
from zcore.asdf.source import held
from zcore.asdf.writing import Form, NewBlocks, directory_of, write_new
from zcore.errors import NodeExistsError, UnsupportedError
from zcore.text.arguments import as_bool
from zcore.trust.base_path import file_path

if TYPE_CHECKING:
    from typing import Literal

    from zcore.typing import StrPath


def explode(path: StrPath, target: StrPath | None = None, *, overwrite: bool = False,
            compression: Literal["zlib", "bzp2", "lz4"] | None = None, checksum: bool = True) -> list[str]:
    """Write a file in exploded form beside it; returns the paths that were written, that of the tree first.

    Parameters
    ----------
    path : str or path-like
    target : str or path-like, optional
        Of the file with the tree; `path` with ``_exploded`` behind its stem by default. Those of the blocks have four
        digits behind the stem of that one, and lie in its directory.
    overwrite : bool
        Whether files that have these names are replaced.
    compression, checksum
        As for `write`.

    Raises
    ------
    UnsupportedError
        The file has a block that no array refers to. It would be lost.
    NodeExistsError
        A file has one of the names, and `overwrite` is False; or the file of a block would replace one that the
        arrays lie in. Nothing was written.
    """
    from urllib.parse import quote

    from zcore.asdf.tree.dump import dump

    target = _target(path, target, "_exploded")
    stem, ending = os.path.splitext(target)
    names, contents = [], []
    with open(path) as file:
        if len(updating.referenced(file)) < len(file.blocks):
            raise UnsupportedError(f"{file.path} has blocks that no array refers to; an exploded file cannot keep them",
                                   feature="exploded blocks without arrays")

        def add_block(content, *, streamed=False):
            names.append(f"{stem}{len(names):04}{ending}")
            contents.append(content)
            return quote(os.path.basename(names[-1]))

        text = dump(file.tree, add_block, standard=updating.standard_of(file), directory=directory_of(target))
        if not as_bool(overwrite, "overwrite"):
            _check_free([target, *names])
        read_from = {os.path.realpath(file.path), *map(os.path.realpath, updating.named_files(file))}
        for name in names:
            if os.path.realpath(name) in read_from:
                raise NodeExistsError(f"{name} would be the file of a block, but the arrays lie in it", path=name)
        for name, content in zip(names, contents, strict=True):
            blocks = NewBlocks(compression)
            blocks.add(content)
            write_new(name, [], b"", blocks, Form(checksum))
        # Last, so that the files it names exist.
        write_new(target, updating.comments_of(file), text, NewBlocks(), Form())
    return [target, *names]


def implode(path: StrPath, target: StrPath | None = None, *, overwrite: bool = False,
            compression: Literal["zlib", "bzp2", "lz4"] | None = None, checksum: bool = True, index: bool = True,
            pad: int = 0, block_align: int = 1) -> str:
    """Write a file in exploded form as one file; returns its path.

    Parameters
    ----------
    path : str or path-like
        Of the file with the tree.
    target : str or path-like, optional
        `path` with ``_all`` behind its stem by default.
    overwrite : bool
        Whether a file that has this name is replaced.
    compression, checksum, index, pad, block_align
        As for `write`.

    Raises
    ------
    NodeExistsError
        A file has the name, and `overwrite` is False. Nothing was written.
    """
    target = _target(path, target, "_all")
    if not as_bool(overwrite, "overwrite"):
        _check_free([target])
    with open(path) as file:
        updating.rewrite(file, target, compression, Form(checksum, index, pad, block_align), embed=True)
    return target


def defragment(path: StrPath, *, compression: Literal["zlib", "bzp2", "lz4"] | None = None, checksum: bool = True,
               index: bool = True, pad: int = 0, block_align: int = 1, fsync: bool | None = None) -> None:
    """Write a file again without unused space. The bytes of its tree and the numbers of its blocks stay.

    Parameters
    ----------
    path : str or path-like
    compression, checksum, index, pad, block_align, fsync
        As for `write`.
    """
    blocks = NewBlocks(compression)
    # No other program changes the file between the first read and its replacement.
    with held(file_path(path)), open(path) as file:
        for block in file.blocks:
            blocks.add(block, streamed=block.is_streamed)
        write_new(file.path, file.comments, file.tree_text, blocks, Form(checksum, index, pad, block_align), fsync,
                  is_held=True)


def _target(path, target, ending):
    if target is not None:
        return os.path.abspath(file_path(target, "target"))
    stem, suffix = os.path.splitext(os.path.abspath(file_path(path)))
    return f"{stem}{ending}{suffix or '.asdf'}"


def _check_free(paths):
    for path in paths:
        if os.path.lexists(path):
            raise NodeExistsError(f"{path} exists; overwrite=True replaces it", path=path)
