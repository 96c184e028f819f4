from zcore.kernel.chunk_cache import ChunkCache
from zcore.kernel.plan import Plan

class ReadPlan(Plan):
    def keep(self, chunks: ChunkCache, form: int) -> None: ...
