"""For type checkers: what `write.pyx` has for Python."""
from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from zcore.kernel.plan.plan import Plan, PlanOptions, _Items, _Selection
from zcore.kernel.select.open_array import OpenArray

class WritePlan(Plan):
    def __init__(self, array: OpenArray, selection: _Selection, elements: npt.NDArray[Any] | _Items | None = None,
                 options: PlanOptions | None = None) -> None: ...
    def raise_failure(self, codecs: Sequence[str]) -> None: ...
    @property
    def is_fill(self) -> bool: ...
    @property
    def keep_filled(self) -> bool: ...
