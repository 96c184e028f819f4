"""A selection as it is typed between brackets, parsed and never run: ``0, 10:20, ::-2, [1, 5], "field", ...``."""
import ast

import numpy as np

from zcore.cli.slabs import SLAB_NBYTES

MAX_LETTERS = 100_000


def parse_selection(text):
    """Return the selection that a text means, as `Array` takes it between brackets.

    Integers, slices, lists of integers or booleans, ..., None and the names of fields in quotes are all there is.

    Raises : ValueError, if the text is anything else.

    >>> parse_selection("0, 10:20, ::-1, [1, 5], ...")
    (0, slice(10, 20, None), slice(None, None, -1), [1, 5], Ellipsis)
    """
    try:
        if len(text) > MAX_LETTERS:
            raise ValueError
        found = ast.parse(f"x[{text.strip()}]", mode="eval").body
        # The brackets may end within the text: it is not `x` that is selected from then.
        if not isinstance(found, ast.Subscript) or not isinstance(found.value, ast.Name):
            raise ValueError
        return _value_of(found.slice)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise ValueError("a selection is what stands between NumPy's brackets, such as 0, 10:20, ::2 or [1, 5], "
                         f"found {text!r:.80}") from None


def _value_of(part):
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


def pieces_of(array, selection, nbytes=None):
    """Return the shape of what a selection selects, and an iterator over it, a piece after the other in C order.

    A box comes in pieces of about `nbytes` at the most, by default `SLAB_NBYTES`: of whole rows of chunks where these
    fit. Whatever is no box, lists above all, is one piece.
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
    # What lies behind dimension k comes as a whole; before it there is an index after the other.
    room, k = array.dtype.itemsize, len(shape) - 1
    while k > 0 and room * shape[k] <= nbytes:
        room *= shape[k]
        k -= 1
    if k < 0:
        yield np.asarray(array[tuple(box)])
        return
    n = max(1, nbytes // max(1, room))
    if k == 0 and array.metadata.edges is None:
        chunk = max(1, array.chunks[dimensions[0]] // abs(box[dimensions[0]].step))
        n = max(n // chunk * chunk, min(n, chunk))
    for before in _places([box[d] for d in dimensions[:k]]):
        for start in range(0, shape[k], n):
            at = list(box)
            for d, i in zip(dimensions[:k], before, strict=True):
                at[d] = i
            at[dimensions[k]] = box[dimensions[k]][start:start + n]
            yield np.asarray(array[tuple(slice_of(one) if isinstance(one, range) else one for one in at)])


def _places(ranges):
    """Yield the product of ranges; `itertools.product` would make a tuple of each."""
    if not ranges:
        yield ()
        return
    for i in ranges[0]:
        for rest in _places(ranges[1:]):
            yield (i, *rest)


def slice_of(one):
    """Return the slice that selects what a range of indices does."""
    stop = one[-1] + one.step if len(one) else one.start
    return slice(one.start, None if stop < 0 else stop, one.step)


def box_of(selection, shape):
    """Return a range or an integer for each dimension; None for a selection that is not made of slices and integers."""
    parts = list(selection) if isinstance(selection, tuple) else [selection]
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
