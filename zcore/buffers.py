"""The bytes of whatever holds them: `bytes`, `memoryview`, NumPy arrays and all else that lends its memory."""
from collections.abc import Sequence
from typing import Any


def flat_view(value: Any, name: str = "a value", writable: bool = False) -> memoryview:
    """Return a view of the bytes of a C-contiguous buffer.

    Parameters
    ----------
    value : bytes-like
    name : str
        What messages call it.
    writable : bool
        The view is to be written to.

    Raises
    ------
    TypeError
        `value` is not bytes-like (`str` is not), not C-contiguous, or cannot be written to and should be.

    >>> bytes(flat_view(memoryview(b"abcd").cast("H")))
    b'abcd'
    """
    try:
        view = memoryview(value)
    except (TypeError, ValueError) as exc:
        # NumPy answers ValueError for types that have no buffer format, such as datetime64.
        raise TypeError(f"{name} is bytes-like, not {type(value).__name__}") from exc
    if not view.c_contiguous:
        raise TypeError(f"{name} is C-contiguous, this {type(value).__name__} is not")
    if writable and view.readonly:
        raise TypeError(f"{name} is writable, this {type(value).__name__} is not")
    if view.ndim == 1 and view.format == "B":
        return view
    # A shape with a zero in it cannot be cast; to bytes every format can.
    return view.cast("B") if view.nbytes else memoryview(bytearray())


def is_masked(values: Any) -> bool:
    """Return whether values say by a mask that some of them are none, as masked arrays of NumPy and astropy do."""
    mask = getattr(values, "mask", None)
    # Methods of that name, as those of pandas, are no mask. The mask of a structure has fields.
    return hasattr(mask, "tobytes") and b"\1" in mask.tobytes()


def may_overlap(itemsize: int, shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether two elements may share a byte: it is enough to find that they cannot.

    Each stride must exceed the reach of all smaller ones. Elements that share none although they interleave, which only
    strides made by hand do, count as well.
    """
    if 0 in shape:
        return False
    reach = itemsize
    for stride, n in sorted([(abs(stride), n) for n, stride in zip(shape, strides, strict=True) if n != 1]):
        if stride < reach:
            return True
        reach += (n - 1) * stride
    return False
