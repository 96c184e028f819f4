from typing import Any

class Box:
    starts: tuple[int, ...]
    steps: tuple[int, ...]
    counts: tuple[int, ...]
    shape: tuple[int, ...]
    expand: tuple[Any, ...] | None
    is_element: bool
    groups: None
    def __init__(
        self,
        starts: tuple[int, ...],
        steps: tuple[int, ...],
        counts: tuple[int, ...],
        dropped: list[int] | tuple[int, ...] = (),
        is_element: bool = False,
    ) -> None: ...
    @property
    def way(self) -> str: ...
    def fits(self, shape: tuple[int, ...]) -> bool: ...

def whole(shape: tuple[int, ...]) -> Box: ...
def in_bounds(index: Any, dimension: int, length: int) -> int: ...
def basic(selection: Any, shape: tuple[int, ...]) -> Box | None: ...
