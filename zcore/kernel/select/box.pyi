"""For type checkers: what `box.pyx` has for Python."""
from collections.abc import Container, Sequence
from typing import Literal, SupportsIndex

class Box:
    starts: tuple[int, ...]
    steps: tuple[int, ...]
    counts: tuple[int, ...]
    shape: tuple[int, ...]
    expand: tuple[slice | None, ...] | None
    is_element: bool
    groups: None
    def __init__(self, starts: tuple[int, ...], steps: tuple[int, ...], counts: tuple[int, ...],
                 dropped: Container[int] = (), is_element: bool = False) -> None: ...
    @property
    def way(self) -> Literal["element", "view"]: ...
    def fits(self, shape: Sequence[int]) -> bool: ...

def whole(shape: tuple[int, ...]) -> Box: ...
def basic(selection: object, shape: tuple[int, ...]) -> Box | None: ...
def in_bounds(index: SupportsIndex, dimension: int, length: int) -> int: ...
