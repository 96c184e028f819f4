"""For type checkers: what `open_array.pyx` has for Python."""
from collections.abc import Sequence

from zcore.kernel.codec.program import Program
from zcore.kernel.plan.shard_index import ShardProgram
from zcore.kernel.select.grid import Edges

class OpenArray:
    shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    shard_shapes: tuple[tuple[int, ...], ...]
    edges: tuple[Edges | None, ...] | None
    directory: bytes | None
    def __init__(self, shape: tuple[int, ...], chunk_shape: tuple[int, ...], *, program: Program | ShardProgram | None,
                 fill: bytes, template: tuple[bytes, bytes, bytes], directory: bytes | None = None,
                 document: bytes | None = None, identity: tuple[int, ...] | None = None, content: bytes | None = None,
                 swap: int = 0, order: Sequence[int] | None = None, edges: tuple[Edges | None, ...] | None = None,
                 lenient: bool = False, missing_raises: bool = False, keep_filled: bool = False,
                 fsync: bool = False) -> None: ...
