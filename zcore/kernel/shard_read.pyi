from collections.abc import Sequence
from typing import Any, final

from zcore.kernel.read import ReadPlan
from zcore.kernel.shard import IndexCache, ShardProgram

@final
class ShardReadPlan(ReadPlan):
    def __init__(
        self, shape: tuple[int, ...], shard_shape: tuple[int, ...], starts: Sequence[int], steps: Sequence[int],
        counts: Sequence[int], *, program: ShardProgram, cache: IndexCache | None = None,
        n_threads: int = 1, **kwargs: Any,
    ) -> None: ...
