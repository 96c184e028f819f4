from collections.abc import Callable
from typing import final

from zcore.kernel.references import ReferenceTable

@final
class Extents:
    def __init__(self, table: ReferenceTable, prefix: bytes, open_target: Callable[[str | None], int]) -> None: ...
