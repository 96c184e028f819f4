from typing import Final

ROUNDINGS: Final[tuple[str, ...]]
OUT_OF_RANGE: Final[tuple[str | None, ...]]
MAX_MAPPED: Final[int]
