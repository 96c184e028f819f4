from typing import Final

TEMP_PREFIX: Final[str]
def exchange(first: bytes, second: bytes) -> None: ...
