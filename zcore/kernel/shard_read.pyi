from typing import Any, final

from zcore.kernel.read import ReadPlan
from zcore.kernel.shard import IndexCache, ShardProgram

@final
class ShardReadPlan(ReadPlan):
    def __init__(
        self, shape: tuple[int, ...], shard_shape: tuple[int, ...], *args: Any, program: ShardProgram | None,
        cache: IndexCache | None = None, n_threads: int = 1, **kwargs: Any,
    ) -> None: ...
