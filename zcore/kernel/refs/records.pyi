"""For type checkers: what `records.pyx` has for Python."""
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from zcore.kernel.refs.table import ReferenceTable

class Records:
    targets: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    data: bytes
    def __init__(self, targets: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64],
                 data: bytes, n_targets: int) -> None: ...
    def __len__(self) -> int: ...
    @property
    def nbytes(self) -> int: ...

class RecordTable(ReferenceTable):
    prefix: bytes
    grid_shape: tuple[int, ...]
    record_size: int
    separator: bytes
    def __init__(self, documents: ReferenceTable, prefix: bytes, grid_shape: tuple[int, ...], separator: bytes,
                 record_size: int, load: Callable[[int], Records | None] | None) -> None: ...
    def number_of(self, key: bytes) -> int: ...
