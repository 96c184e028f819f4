"""For type checkers: what `read.pyx` has for Python."""
from typing import Any

import numpy.typing as npt

from zcore.kernel.plan.cache import ChunkCache
from zcore.kernel.plan.plan import Plan, PlanOptions, _Items, _Selection
from zcore.kernel.select.open_array import OpenArray

class ReadPlan(Plan):
    def __init__(self, array: OpenArray, selection: _Selection, elements: npt.NDArray[Any] | _Items | None = None,
                 options: PlanOptions | None = None) -> None: ...
    def keep(self, chunks: ChunkCache, form: int) -> None: ...
    def is_few(self, task: int) -> bool: ...
