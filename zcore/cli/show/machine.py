"""Output for programs: one JSON document, on the standard output."""
from __future__ import annotations

import json
import math
import sys

TYPE_CHECKING = False      # of typing, without its import time
if TYPE_CHECKING:
    from typing import Any


def show(value: object) -> None:
    """Print a value as JSON."""
    json.dump(plain(value), sys.stdout, indent=2, allow_nan=False)
    print()


def plain(value: Any) -> Any:
    """Return a value as JSON. Numbers that are not finite are text, as in Zarr v3's documents, and so are other types.

    >>> import numpy as np
    >>> plain({"shape": (2, np.int64(3)), "fill": np.float32("nan")})
    {'shape': [2, 3], 'fill': 'NaN'}
    """
    if hasattr(value, "dtype"):
        value = value.tolist() if value.dtype.kind in "biufcU" else str(value)
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
