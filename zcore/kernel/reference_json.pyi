from collections.abc import Callable

from zcore.kernel.references import ReferenceTable

def members_of(
    raw: bytes, loads: Callable[[bytes], object], check: Callable[[bytes], object] | None = None,
) -> tuple[dict[str, tuple[int, int]], int]: ...
def read_references(
    table: ReferenceTable, raw: bytes, start: int, loads: Callable[[bytes], object],
    compact: Callable[[bytes], bytes], *, takes_null: bool = False,
) -> None: ...
