"""For type checkers: what `shard_index.pyx` has for Python."""
from collections.abc import Sequence
from typing import Any

from zcore.kernel.codec.program import Program
from zcore.kernel.plan.cache import Cache
from zcore.kernel.select.tasks import Tasks

MAX_LEVELS: int
INDICES: IndexCache

class ShardProgram:
    program: Program
    inner: ShardProgram | None
    n_levels: int
    shard_shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    n_chunks: int
    index_nbytes: int
    max_nbytes: int
    chunk_room: int
    at_start: bool
    def __init__(self, shard_shape: Sequence[int], chunk_shape: Sequence[int], program: Program | ShardProgram,
                 index_steps: Program | Sequence[tuple[Any, ...]] = (), *, turned: bool = False, at_start: bool = False,
                 max_nbytes: int = ..., chunk_room: int = 0, order: Sequence[int] | None = None) -> None: ...
    @property
    def is_native(self) -> bool: ...
    @property
    def decodes_natively(self) -> bool: ...

class IndexCache(Cache):
    def info(self) -> dict[str, int]: ...

class ShardLevels:
    def __init__(self, tasks: Tasks) -> None: ...
