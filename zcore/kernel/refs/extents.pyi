"""For type checkers: what `extents.pyx` has for Python."""
from collections.abc import Callable

from zcore.kernel.refs.table import ReferenceTable

class Extents:
    def __init__(self, table: ReferenceTable, prefix: bytes, open_target: Callable[[str | None], int]) -> None: ...
