from collections.abc import Callable

from zcore.kernel.references import ReferenceTable

def members_of(
    raw: bytes, check: Callable[[bytes], object] | None = None,
) -> tuple[dict[str, tuple[int, int]], int]: ...
def read_references(
    table: ReferenceTable, raw: bytes, start: int, compact: Callable[[bytes], bytes], *, takes_null: bool = False,
) -> None: ...
