from collections.abc import Callable

import numpy as np

from zcore.kernel.references import ReferenceTable

class Records:
    targets: np.ndarray
    offsets: np.ndarray
    lengths: np.ndarray
    data: bytes
    def __init__(
        self, targets: np.ndarray, offsets: np.ndarray, lengths: np.ndarray, data: bytes, n_targets: int,
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def nbytes(self) -> int: ...

class RecordTable(ReferenceTable):
    prefix: bytes
    grid_shape: tuple[int, ...]
    separator: bytes
    record_size: int
    def __init__(
        self, documents: ReferenceTable, prefix: bytes, grid_shape: tuple[int, ...], separator: bytes,
        record_size: int, load: Callable[[int], Records | None] | None,
    ) -> None: ...
    def number_of(self, key: bytes) -> int: ...
