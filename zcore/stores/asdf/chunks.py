"""Arrays of the asdf-zarr package: each chunk is a block of an ASDF file.

The node has the document ``.zarray`` of Zarr v2, and the number of a block with an int32 for each chunk in C order: the
number of the chunk's block, or -1 for an absent chunk.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from zcore.asdf.tree.inline import MAX_NDIM
from zcore.asdf.tree.ndarray import MAX_NBYTES
from zcore.errors import AsdfFormatError

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy.typing as npt

    from zcore.asdf.file import AsdfFile
    from zcore.stores.asdf.nodes import ChunkedNode

    ChunkMap: TypeAlias = tuple[dict[str, int], npt.NDArray[np.int32]]


def read_map(node: ChunkedNode, file: AsdfFile) -> ChunkMap:
    """Return the positions of the stored chunks by their names, and the block numbers of all chunks.

    Raises
    ------
    AsdfFormatError
        The document is invalid, or the map has not one int32 for each chunk, or names a missing block.
    """
    document = node.document
    shape = document.get("shape") if isinstance(document, dict) else None
    chunks = document.get("chunks") if isinstance(document, dict) else None
    if not (isinstance(shape, list) and isinstance(chunks, list) and len(shape) == len(chunks)
            and len(shape) <= MAX_NDIM and all(type(n) is int and 0 <= n <= MAX_NBYTES for n in shape)
            and all(type(n) is int and 0 < n <= MAX_NBYTES for n in chunks)):
        raise AsdfFormatError("expected shape and chunks in .zarray", member=".zarray")
    grid = [-(-n // chunk) for n, chunk in zip(shape, chunks, strict=True)]
    block = file.origin.block_of(node.map) if type(node.map) is int else None
    if block is None or block.data_size != 4 * math.prod(grid):
        raise AsdfFormatError(f"chunk_block_map: expected the number of a block with {math.prod(grid)} int32",
                              member="chunk_block_map")
    numbers = np.frombuffer(block.read(), "<i4")
    if numbers.size and (numbers.min() < -1 or numbers.max() >= len(file.blocks)):
        raise AsdfFormatError("chunk_block_map: a missing block", member="chunk_block_map")
    separator = document.get("dimension_separator", ".")
    separator = separator if separator in (".", "/") else "."
    names = {}
    for position in np.flatnonzero(numbers >= 0).tolist():
        coords = np.unravel_index(position, grid) if grid else ()
        names[separator.join([str(int(i)) for i in coords]) or "0"] = position
    return names, numbers
