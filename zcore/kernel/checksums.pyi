from typing import Final

from _typeshed import ReadableBuffer

CHECKSUMS: Final[tuple[str, ...]]

def fletcher32(data: ReadableBuffer) -> int: ...
