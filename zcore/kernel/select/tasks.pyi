"""For type checkers: what `tasks.pyx` has for Python."""
from typing import Any

import numpy.typing as npt

class Tasks:
    ndim: int
    n_tasks: int
    task_nbytes: int
    def task(self, task: int) -> tuple[str, tuple[int, ...], tuple[slice | npt.NDArray[Any], ...],
                                       tuple[slice | npt.NDArray[Any], ...], bool]: ...
    def place(self, task: int) -> tuple[tuple[int, ...], tuple[int, ...]]: ...
