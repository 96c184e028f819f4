from collections.abc import Sequence

def read_first(
    paths: Sequence[bytes], limit: int
) -> tuple[int, bytes, tuple[int, int, int, int, int]] | None: ...
