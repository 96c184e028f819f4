"""For type checkers: what `program.pyx` has for Python."""
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from zcore.typing import Memory

CODEC_MODULES: tuple[ModuleType, ...]

class Program:
    n_steps: int
    is_native: bool
    decodes_natively: bool
    itemsize: int
    def __init__(self, steps: Sequence[tuple[Any, ...]], itemsize: int = 0, decoder: object = None) -> None: ...
    def encoded_bound(self, n_bytes: int) -> int: ...
    def decode_bytes(self, encoded: Memory, out: Memory, codecs: Sequence[str] = ()) -> None: ...
    def decode_new(self, encoded: Memory, n_bytes: int, at_most: bool = False,
                   codecs: Sequence[str] = ()) -> bytearray: ...
    def encode_bytes(self, chunk: Memory, codecs: Sequence[str] = ()) -> bytes: ...
