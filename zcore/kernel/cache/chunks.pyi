"""For type checkers: what `chunks.pyx` has for Python."""
from zcore.kernel.cache.lru import Cache

class ChunkCache(Cache):
    def resize(self, capacity: int) -> None: ...
    def info(self) -> dict[str, int]: ...

CHUNKS: ChunkCache
