"""A selection as it is typed between brackets, parsed and never evaluated: ``0, 10:20, [1, 5], "field", ...``."""
from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import numpy as np

from zcore.errors import SelectionError
from zcore.tools.rechunk import SLAB_NBYTES, slab_of, slabs_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import numpy.typing as npt

    from zcore.nodes.array import Array
    from zcore.nodes.lazy import LazyView
    from zcore.typing import Selection

MAX_LETTERS = 100_000


def parse_selection(text: str) -> Selection:
    """Return the selection of a text, as `Array` takes it between brackets.

    It may have integers, slices, lists of integers or booleans, ..., None and names of fields in quotes.

    Raises : ValueError, if the text is anything else.

    >>> parse_selection("0, 10:20, ::-1, [1, 5], ...")
    (0, slice(10, 20, None), slice(None, None, -1), [1, 5], Ellipsis)
    """
    try:
        if len(text) > MAX_LETTERS:
            raise ValueError
        found = ast.parse(f"x[{text.strip()}]", mode="eval").body
        # The text may end the brackets: then the selection is not one of `x`.
        if not isinstance(found, ast.Subscript) or not isinstance(found.value, ast.Name):
            raise ValueError
        return _value_of(found.slice)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise ValueError("a selection is written as between NumPy's brackets, such as 0, 10:20, ::2 or [1, 5], "
                         f"found {text!r:.80}") from None


def _value_of(part: ast.expr) -> Any:
    match part:
        case ast.Tuple(elts=parts):
            return tuple(_value_of(one) for one in parts)
        case ast.List(elts=parts):
            return [_value_of(one) for one in parts]
        case ast.Slice(lower=lower, upper=upper, step=step):
            return slice(*(None if one is None else _integer(one) for one in (lower, upper, step)))
        case ast.Constant(value=None | bool() | str()):
            return part.value
        case ast.Constant(value=value) if value is ...:
            return value
    return _integer(part)


def _integer(part):
    match part:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)) if not isinstance(value, bool):
            return -value
        case ast.Constant(value=None):
            return None
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value
    raise ValueError


def selected(array: Array, selection: Selection) -> LazyView | npt.NDArray[Any]:
    """Return the selected elements: a view of a box, which is not read yet, or the elements of any other selection."""
    try:
        return array.lazy[selection]
    except SelectionError:
        # The array reads it at once, or raises the same error.
        return np.asarray(array[selection])


def pieces_of(view: LazyView | npt.NDArray[Any], nbytes: int | None = None) -> Iterator[npt.NDArray[Any]]:
    """Return an iterator over pieces of what `selected` returns, in C order.

    A box comes in pieces of about `nbytes` at the most, by default `SLAB_NBYTES`: of whole rows of chunks where these
    fit. Any other selection, such as one with lists, is one piece.
    """
    return iter([view]) if isinstance(view, np.ndarray) else _pieces(view, nbytes or SLAB_NBYTES)


def _pieces(view, nbytes):
    if 0 in view.shape:
        return
    # One index after the other in the first dimensions, all of the last ones: pieces follow one another in C order.
    slab = slab_of(view.shape, (1,) * view.ndim, view.dtype.itemsize, nbytes)
    if slab != view.shape and slab[1:] == view.shape[1:] and view.array.metadata.edges is None:
        chunk = view.chunks[0]
        slab = max(slab[0] // chunk * chunk, min(slab[0], chunk)), *slab[1:]
    for part in slabs_of(view.shape, slab):
        yield np.asarray(view[part])
