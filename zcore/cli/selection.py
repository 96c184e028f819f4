"""A selection as it is typed between brackets, parsed and never evaluated: ``0, 10:20, [1, 5], "field", ...``."""
from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import numpy as np

from zcore.cli.slabs import SLAB_NBYTES, slab_of, slabs_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    import numpy.typing as npt

    from zcore.nodes.array import Array
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


def pieces_of(array: Array, selection: Selection,
              nbytes: int | None = None) -> tuple[tuple[int, ...], Iterator[npt.NDArray[Any]]]:
    """Return the shape of the selected elements, and an iterator over pieces of them in C order.

    A box comes in pieces of about `nbytes` at the most, by default `SLAB_NBYTES`: of whole rows of chunks where these
    fit. Any other selection, such as one with lists, is one piece.
    """
    box = box_of(selection, array.shape)
    if box is None:
        whole = np.asarray(array[selection])
        return whole.shape, iter([whole])
    shape = tuple(len(one) for one in box if isinstance(one, range))
    return shape, _pieces(array, box, shape, nbytes or SLAB_NBYTES)


def _pieces(array, box, shape, nbytes):
    if 0 in shape:
        return
    dimensions = [d for d, one in enumerate(box) if isinstance(one, range)]
    # One index after the other in the first dimensions, all of the last ones: pieces follow one another in C order.
    slab = slab_of(shape, (1,) * len(shape), array.dtype.itemsize, nbytes)
    if slab != shape and slab[1:] == shape[1:] and array.metadata.edges is None:
        chunk = max(1, array.chunks[dimensions[0]] // abs(box[dimensions[0]].step))
        slab = max(slab[0] // chunk * chunk, min(slab[0], chunk)), *slab[1:]
    for selection in slabs_of(shape, slab):
        at = list(box)
        for d, part in zip(dimensions, selection, strict=True):
            at[d] = box[d][part]
        yield np.asarray(array[index_of(at)])


def index_of(box: Sequence[int | range]) -> tuple[int | slice, ...]:
    """Return the index that selects a box: a list of ranges and integers."""
    return tuple([_slice_of(one) if isinstance(one, range) else one for one in box])


def _slice_of(one):
    stop = one[-1] + one.step if len(one) else one.start
    return slice(one.start, None if stop < 0 else stop, one.step)


def box_of(selection: Selection, shape: tuple[int, ...]) -> list[int | range] | None:
    """Return a range or an integer for each dimension; None for a selection that is not made of slices and integers."""
    parts: list[Any] = list(selection) if isinstance(selection, tuple) else [selection]
    if any(not (one is ... or isinstance(one, slice) or type(one) is int) for one in parts):
        return None
    n_given = sum(one is not ... for one in parts)
    if parts.count(...) > 1 or n_given > len(shape):
        return None
    if ... not in parts:
        parts.append(...)
    i = parts.index(...)
    parts[i:i + 1] = [slice(None)] * (len(shape) - n_given)
    if any(isinstance(one, slice) and one.step == 0 for one in parts):
        return None
    return [range(*one.indices(length)) if isinstance(one, slice) else one
            for one, length in zip(parts, shape, strict=True)]
