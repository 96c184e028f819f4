"""For type checkers: what `transfers.pyx` has for Python."""
from collections.abc import Callable

from zcore.kernel.io.locks import ObjectLocks
from zcore.kernel.plan.cache import ChunkCache
from zcore.kernel.plan.read import ReadPlan
from zcore.kernel.select.open_array import OpenArray
from zcore.typing import Buffer

class Transfers:
    def __init__(self, array: OpenArray, n_threads: int, n_callers: int, bools: tuple[int, ...], *,
                 writes: bool = False, locks: ObjectLocks | None = None, chunks: ChunkCache | None = None,
                 form: int = 0, make_reader: Callable[..., ReadPlan] = ...,
                 open_file: Callable[[], int | Buffer] | None = None) -> None: ...
    def is_of(self, identity: tuple[int, int, int, int, int]) -> bool: ...
