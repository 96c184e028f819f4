"""For type checkers: what `read.pyx` has for Python."""
from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from zcore.kernel.plan.cache import ChunkCache
from zcore.kernel.plan.plan import Plan, PlanOptions, _Items, _Selection
from zcore.kernel.select.open_array import OpenArray
from zcore.typing import Buffer

class ReadPlan(Plan):
    def __init__(self, array: OpenArray, selection: _Selection, elements: npt.NDArray[Any] | _Items | None = None,
                 options: PlanOptions | None = None) -> None: ...
    def keep(self, chunks: ChunkCache, form: int) -> None: ...
    def is_few(self, task: int) -> bool: ...

class LayoutReadPlan(ReadPlan):
    def __init__(self, array: OpenArray, selection: _Selection, elements: npt.NDArray[Any] | None = None,
                 options: PlanOptions | None = None, *, source: Callable[[], int | Buffer], offset: int,
                 strides: tuple[int, ...], name: str) -> None: ...
    def task(self, task: int) -> tuple[str, tuple[int, ...], tuple[slice | npt.NDArray[Any], ...],
                                       tuple[slice | npt.NDArray[Any], ...], bool]: ...

def parts_of(shape: tuple[int, ...], strides: tuple[int, ...], n_bytes: int) -> tuple[int, ...]: ...
