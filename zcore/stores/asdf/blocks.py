"""The blocks of the arrays in an ASDF file, to be verified: each is read once, also if several arrays share it."""
from __future__ import annotations

from typing import TYPE_CHECKING

from zcore.asdf.checksums import check
from zcore.asdf.tree.ndarray import NDArrayNode
from zcore.errors import ZcoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from zcore.asdf.file import AsdfFile
    from zcore.stores.asdf.chunks import ChunkMap
    from zcore.stores.asdf.nodes import ChunkedNode
    from zcore.stores.base import Blocks


def blocks_below(path: str, arrays: Iterable[tuple[str, NDArrayNode | ChunkedNode]], file: AsdfFile,
                 map_of: Callable[[ChunkedNode], ChunkMap]) -> Blocks:
    """Iterate over the blocks of arrays; see `BlockStore.blocks`.

    Parameters
    ----------
    path : str
        Only blocks of arrays at this node and below it; all blocks of the file for the root.
    arrays : iterable of (str, NDArrayNode or ChunkedNode)
        All arrays, with their paths.
    file : AsdfFile
    map_of : callable
        Returns the result of `zcore.stores.asdf.chunks.read_map`.
    """
    users = {}     # the first array of each block, a block of another file being its URI
    for name, node in arrays:
        if not path or f"{name}/".startswith(f"{path}/"):
            for source in _sources(node, file, map_of):
                users.setdefault(source, name)
    n_blocks = len(file.blocks.found.offsets)
    if not path:
        users = {**{number: users.get(number, "") for number in range(n_blocks)}, **users}
    for source, user in users.items():
        if isinstance(source, str):
            yield source, user, _nbytes(file, source), lambda source=source: check(file.origin.block_of(source))
        elif source < n_blocks:
            # A missing block is a mistake in the arrays that name it.
            yield f"block {source}", user, _nbytes(file, source), lambda source=source: check(file.blocks[source])
    if not path and file.blocks.fault is not None:
        yield f"block {n_blocks}", "", 0, lambda: len(file.blocks)     # which raises it


def _sources(node, file, map_of):
    """Return the numbers of the blocks of an array, or the URI of its file; nothing for an invalid array."""
    try:
        if isinstance(node, NDArrayNode):
            source = node.source
            return () if source is None else (source if isinstance(source, str) else file.origin.number_of(source),)
        return (file.origin.number_of(node.map), *[int(number) for number in map_of(node)[1] if number >= 0])
    except ZcoreError:
        return ()


def _nbytes(file, source):
    try:
        return file.origin.block_of(source).data_size
    except ZcoreError:
        return 0
