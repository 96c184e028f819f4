from typing import Any, final

from zcore.kernel.shard import ShardProgram
from zcore.kernel.shard_crew import CrewPlan

@final
class ShardWritePlan(CrewPlan):
    def __init__(
        self, shape: tuple[int, ...], shard_shape: tuple[int, ...], *args: Any, program: ShardProgram | None,
        **kwargs: Any,
    ) -> None: ...
