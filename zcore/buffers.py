"""The bytes of whatever holds them: `bytes`, `memoryview`, NumPy arrays and all else that lends its memory."""
import math
from collections.abc import Iterator, Sequence
from typing import Any

MAX_NDIM = 64  # of numpy.ndarray


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
        `value` is not bytes-like (`str` is not, nor are objects of Python: their bytes are addresses), not
        C-contiguous, or cannot be written to and should be.

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
    if "O" in "".join(view.format.split(":")[::2]):     # between colons are names of fields
        raise TypeError(f"{name} is bytes-like, this {type(value).__name__} has objects of Python in it")
    # A shape with a zero in it cannot be cast; to bytes every format can.
    return view.cast("B") if view.nbytes else memoryview(bytearray())


def is_masked(values: Any) -> bool:
    """Return whether values say by a mask that some of them are none, as masked arrays of NumPy and astropy do."""
    mask = getattr(values, "mask", None)
    # Methods of that name, as those of pandas, are no mask. The mask of a structure has fields.
    return hasattr(mask, "tobytes") and b"\1" in mask.tobytes()


def strides_of(shape: Sequence[int], itemsize: int, order: str = "C") -> tuple[int, ...]:
    """Return the strides, in bytes, of elements that lie one behind the other, in C or F order.

    >>> strides_of((2, 3, 4), 8), strides_of((2, 3, 4), 8, "F")
    ((96, 32, 8), (8, 16, 48))
    """
    if order == "F":
        return strides_of(shape[::-1], itemsize)[::-1]
    return tuple([itemsize * math.prod([max(1, n) for n in shape[d + 1:]]) for d in range(len(shape))])


def bools_of(array: Any) -> Iterator[Any]:
    """Iterate over the booleans of an array, or of its fields, as views of their bytes."""
    if array.dtype.kind == "b":
        yield array.view("u1")
    for name in array.dtype.names or ():
        yield from bools_of(array[name])


def make_true_one(array: Any) -> None:
    """Replace every byte except 0 by 1 in the booleans of an array.

    Zarr v3 data types, "bool": a byte of 0 or 1. Some programs store other bytes for true. NumPy treats one such
    element as true, but computes wrong results from an array of them.
    """
    for raw in bools_of(array):
        import numpy as np  # `zcore.blosc` needs none

        np.not_equal(raw, 0, out=raw.view("?"))


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
