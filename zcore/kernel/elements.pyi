from typing import Any, final

import numpy as np

from zcore.kernel.chunk_cache import ChunkCache
from zcore.kernel.tasks import Tasks

@final
class Elements:
    def __init__(
        self, tasks: Tasks, dtype: np.dtype[Any], directory: bytes, document: bytes,
        identity: tuple[int, int, int, int, int], chunks: ChunkCache, form: int,
    ) -> None: ...
    def get(self, selection: Any) -> Any: ...
