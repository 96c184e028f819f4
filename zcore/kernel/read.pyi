from typing import Any, final

from zcore.kernel.plan import Plan

@final
class ReadPlan(Plan):
    def __init__(self, *args: Any, missing_raises: bool = False, **kwargs: Any) -> None: ...
