"""Characters of NumPy's text: four bytes each, of which any value can be stored and only some are characters."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from typing import Any

    import numpy.typing as npt

MAX_CODE_POINT = 0x10FFFF


def has_text(dtype: np.dtype[Any]) -> bool:
    """Return whether a type, or a field of it, is text of fixed length."""
    if dtype.subdtype is not None:
        return has_text(dtype.subdtype[0])
    return dtype.kind == "U" or (dtype.names is not None and any([has_text(dtype[name]) for name in dtype.names]))


def fault_of_text(array: npt.NDArray[Any]) -> str | None:
    """Return why text of fixed length in an array, or in its fields, is no text; None if it is, or there is none.

    NumPy copies any four bytes, and fails when the text is used.

    >>> fault_of_text(np.array([97, 0x110000], "u4").view("U1"))
    'text has the code point 0x110000, the largest is 0x10ffff'
    """
    dtype = array.dtype
    if dtype.names is not None:
        return next(filter(None, [fault_of_text(array[name]) for name in dtype.names if has_text(dtype[name])]), None)
    if dtype.kind != "U" or not array.size or not dtype.itemsize:
        return None
    largest = array.view(np.dtype((f"{dtype.str[0]}u4", dtype.itemsize // 4))).max()
    if largest <= MAX_CODE_POINT:
        return None
    return f"text has the code point {largest:#x}, the largest is {MAX_CODE_POINT:#x}"
