from collections.abc import Sequence
from typing import Any, final

from zcore.kernel.kept import Cache
from zcore.kernel.program import Program

INDICES: IndexCache
MAX_LEVELS: int

@final
class ShardProgram:
    def __init__(
        self, shard_shape: Sequence[int], chunk_shape: Sequence[int], program: Program | ShardProgram,
        index_steps: Sequence[tuple[Any, ...]] = (), *, turned: bool = False, at_start: bool = False,
        max_nbytes: int = ...,
    ) -> None: ...
    @property
    def program(self) -> Program: ...
    @property
    def inner(self) -> ShardProgram | None: ...
    @property
    def n_levels(self) -> int: ...
    @property
    def max_nbytes(self) -> int: ...
    @property
    def shard_shape(self) -> tuple[int, ...]: ...
    @property
    def chunk_shape(self) -> tuple[int, ...]: ...
    @property
    def n_chunks(self) -> int: ...
    @property
    def index_nbytes(self) -> int: ...
    @property
    def at_start(self) -> bool: ...
    @property
    def form(self) -> int: ...

@final
class IndexCache(Cache):
    def info(self) -> dict[str, int]: ...
