from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from zcore.kernel.edges import Edges

def checked(
    indices: npt.NDArray[np.intp], length: int, dimension: int
) -> tuple[npt.NDArray[np.int64], int | None]: ...

class Points:
    def __init__(
        self, shape: tuple[int, ...], chunk_shape: tuple[int, ...],
        groups: Sequence[tuple[tuple[int, ...], tuple[npt.NDArray[np.int64], ...] | npt.NDArray[np.bool_]]],
        edges: tuple[Edges | None, ...] | None = None, shard_shape: tuple[int, ...] | None = None,
    ) -> None: ...
