"""For type checkers: what `points.pyx` has for Python."""
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from zcore.kernel.select.box import Box

def checked(indices: npt.NDArray[Any], length: int, dimension: int) -> tuple[npt.NDArray[Any], int | None]: ...

class Points:
    def __init__(self, shape: Sequence[int], shapes: Sequence[tuple[int, ...]],
                 groups: Sequence[tuple[tuple[int, ...], Any]], edges: tuple[Any, ...] | None = None) -> None: ...

class Boxes:
    n: int
    shape: tuple[int, ...]
    def __init__(self, boxes: list[Box]) -> None: ...
    @classmethod
    def at(cls, starts: npt.NDArray[np.int64], counts: tuple[int, ...]) -> Self: ...
    @property
    def starts(self) -> tuple[int, ...]: ...
    @property
    def steps(self) -> tuple[int, ...]: ...
    @property
    def counts(self) -> tuple[int, ...]: ...
    @property
    def groups(self) -> tuple[tuple[tuple[int, ...], Boxes], ...]: ...
    def fits(self, shape: Sequence[int]) -> bool: ...
