from collections.abc import Callable
from typing import Any

from zcore.kernel.read import ReadPlan
from zcore.kernel.references import ReferenceTable

class ReferenceReadPlan(ReadPlan):
    def __init__(
        self, *args: Any, table: ReferenceTable, prefix: bytes, open_target: Callable[[str | None], int],
        **kwargs: Any,
    ) -> None: ...
