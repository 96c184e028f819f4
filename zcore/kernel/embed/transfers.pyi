"""For type checkers: what `transfers.pyx` has for Python."""
from collections.abc import Callable

from zcore.kernel.cache.chunks import ChunkCache
from zcore.kernel.io.object_locks import ObjectLocks
from zcore.kernel.plan.read import ReadPlan
from zcore.kernel.select.open_array import OpenArray
from zcore.typing import Buffer

class Transfers:
    def __init__(self, array: OpenArray, locks: ObjectLocks | None, chunks: ChunkCache | None, form: int,
                 n_threads: int, n_callers: int, bools: tuple[int, ...], writes: bool) -> None: ...

class LayoutTransfers(Transfers):
    def __init__(self, array: OpenArray, make_reader: Callable[..., ReadPlan],
                 open_file: Callable[[], int | Buffer], n_threads: int, n_callers: int,
                 bools: tuple[int, ...]) -> None: ...
    def is_of(self, identity: tuple[int, int, int, int, int]) -> bool: ...
