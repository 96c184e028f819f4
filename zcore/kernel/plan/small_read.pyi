"""For type checkers: what `small_read.pyx` has for Python."""
from collections.abc import Callable
from typing import Any

import numpy as np

from zcore.kernel.plan.cache import ChunkCache
from zcore.kernel.select.open_array import OpenArray

SMALL_NBYTES: int

class SmallReads:
    def __init__(self, array: OpenArray, dtype: np.dtype[Any], chunks: ChunkCache | None, form: int,
                 threads: Callable[[], int]) -> None: ...
    def get(self, selection: object) -> Any: ...
