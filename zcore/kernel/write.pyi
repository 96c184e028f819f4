from typing import Any

from zcore.kernel.locks import ObjectLocks
from zcore.kernel.plan import Plan

class WritePlan(Plan):
    def __init__(
        self, shape: tuple[int, ...], *args: Any, token: int, locks: ObjectLocks | None = None,
        identity: tuple[int, int, int, int, int] | None = None, content: bytes | None = None,
        old_shape: tuple[int, ...] | None = None, keep_filled: bool = False, fsync: bool = False, **kwargs: Any,
    ) -> None: ...
    @property
    def keep_filled(self) -> bool: ...
