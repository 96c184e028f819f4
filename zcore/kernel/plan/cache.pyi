"""For type checkers: what `cache.pyx` has for Python."""


class Cache:
    capacity: int
    def __init__(self, capacity: int, trusted_age_ns: int = 2_000_000_000) -> None: ...
    def clear(self) -> None: ...


class ChunkCache(Cache):
    def resize(self, capacity: int) -> None: ...
    def info(self) -> dict[str, int]: ...

CHUNKS: ChunkCache
