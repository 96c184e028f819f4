# cython: language_level=3, freethreading_compatible=True
"""NumPy's basic indexing as a box: integers, slices with any step and ``...``.

Compiled because every read and write begins here, however small it is. Other selections go to `indexing.numpy`. A box
is three tuples of one number per dimension, `starts`, `steps` and `counts`, in the order of the result: a slice with a
negative step starts at its highest element.
"""
cimport cython
from operator import index as as_integer

from zcore.errors import HugeIndexError, SelectionError


@cython.final
cdef class Box:
    """The elements that a basic selection selects.

    Attributes
    ----------
    starts, steps, counts : tuple of int
        Per dimension of the array; an integer index has count 1.
    shape : tuple of int
        Shape of the result: without the dimensions that an integer indexes.
    expand : tuple or None
        Index that restores all dimensions of the array in a result of `shape`; None if it has them.
    is_element : bool
        Whether an integer indexes every dimension without an ellipsis, so that NumPy gives a scalar.
    groups : None
        Always None: a box has no lists.
    way : str
        "element" or "view": how values are assigned to it, see `zcore.indexing.assign`.
    """

    cdef readonly tuple starts
    cdef readonly tuple steps
    cdef readonly tuple counts
    cdef readonly tuple shape
    cdef readonly tuple expand
    cdef readonly bint is_element
    cdef readonly tuple groups

    def __init__(self, tuple starts not None, tuple steps not None, tuple counts not None, dropped=(),
                 bint is_element=False):
        self.starts = starts
        self.steps = steps
        self.counts = counts
        self.is_element = is_element
        if dropped:
            self.shape = tuple([n for d, n in enumerate(counts) if d not in dropped])
            self.expand = tuple([None if d in dropped else slice(None) for d in range(len(counts))])
        else:
            self.shape = counts
            self.expand = None

    def __repr__(self):
        return f"Box({self.starts}, {self.steps}, {self.counts})"

    @property
    def way(self):
        return "element" if self.is_element else "view"

    def fits(self, shape):
        """Whether all elements lie in an array of `shape`."""
        for start, step, count, length in zip(self.starts, self.steps, self.counts, shape, strict=True):
            if count and not (0 <= start < length and 0 <= start + step * (count - 1) < length):
                return False
        return True


def whole(tuple shape not None):
    """Return the box of all elements.

    >>> whole((2, 3))
    Box((0, 0), (1, 1), (2, 3))
    """
    n = len(shape)
    return Box((0,) * n, (1,) * n, shape)


def basic(selection, tuple shape not None):
    """Return the box of ``a[selection]`` for an array of `shape`; None if the selection is no box.

    None covers NumPy's other selections (lists, masks, new axes, field names) and types that NumPy refuses.

    Raises
    ------
    SelectionError
        An index is out of bounds, there are too many indices, or more than one ellipsis.
    ValueError
        A slice has step 0, as in NumPy.

    >>> basic((slice(None, None, -2), 1), (5, 4))
    Box((4, 1), (-2, 1), (3, 1))
    >>> basic(..., ())
    Box((), (), ())
    """
    cdef tuple indices = tuple(selection) if isinstance(selection, tuple) else (selection,)
    cdef Py_ssize_t ndim = len(shape)
    cdef Py_ssize_t n_given = len(indices)
    cdef Py_ssize_t d = 0
    cdef bint has_ellipsis = False
    cdef list starts = []
    cdef list steps = []
    cdef list counts = []
    cdef list dropped = []
    for index in indices:
        if index is Ellipsis:
            if has_ellipsis:
                raise SelectionError("an index can only have a single ellipsis ('...')")
            has_ellipsis = True
            n_given -= 1
        elif type(index) is not int and type(index) is not slice and not _is_integer(index):
            return None
    if n_given > ndim:
        raise SelectionError(
            f"too many indices for array: array is {ndim}-dimensional, but {n_given} were indexed", dimension=ndim)
    for index in indices:
        if type(index) is slice:
            start, step, count = _slice_in(index, shape[d])
            starts.append(start)
            steps.append(step)
            counts.append(count)
            d += 1
        elif index is Ellipsis:
            for length in shape[d:d + ndim - n_given]:
                starts.append(0)
                steps.append(1)
                counts.append(length)
                d += 1
        else:
            starts.append(_in_bounds(index, d, shape[d]))
            steps.append(1)
            counts.append(1)
            dropped.append(d)
            d += 1
    for length in shape[d:]:
        starts.append(0)
        steps.append(1)
        counts.append(length)
    return Box(tuple(starts), tuple(steps), tuple(counts), dropped, len(dropped) == ndim and not has_ellipsis)


def slice_in(index, length):
    """Return (start, step, count) of a slice of a dimension, also if that is longer than Python's `len` may return.

    >>> slice_in(slice(None, None, -2), 6), slice_in(slice(0, None, 3), 2**33), slice_in(slice(4, 0), 6)
    ((5, -2, 3), (0, 3, 2863311531), (4, 1, 0))
    """
    return _slice_in(index, length)


cdef tuple _slice_in(object index, object length):
    start, stop, step = index.indices(length)
    if sizeof(Py_ssize_t) == 8:
        count = len(range(start, stop, step))     # no dimension is longer
    else:
        count = max(0, (stop - start + step + (-1 if step > 0 else 1)) // step)
    # With one element the step does not matter, and it may exceed 64 bits.
    return start, step if count > 1 else 1, count


def in_bounds(index, Py_ssize_t dimension, length):
    """Return an integer index counted from 0, or raise SelectionError."""
    return _in_bounds(index, dimension, length)


cdef object _in_bounds(object index, Py_ssize_t dimension, object length):
    if type(index) is not int:
        index = as_integer(index)
    if not -length <= index < length:
        error = HugeIndexError if 2**63 <= index < 2**64 else SelectionError
        raise error(f"index {index} is out of bounds for axis {dimension} with size {length}", dimension=dimension)
    return index + length if index < 0 else index


cdef bint _is_integer(object index) except -1:
    """Whether NumPy accepts it as an integer: a bool is a mask, never 0 or 1."""
    if isinstance(index, bool) or getattr(getattr(index, "dtype", None), "kind", None) == "b":
        return False
    try:
        as_integer(index)
    except Exception:
        # Any other type: NumPy then tries to make an array of it.
        return False
    return True
