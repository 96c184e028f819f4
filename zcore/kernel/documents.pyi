from collections.abc import Iterable

def read_first(
    paths: Iterable[bytes], limit: int
) -> tuple[int, bytes, tuple[int, int, int, int, int]] | None: ...
