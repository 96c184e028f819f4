# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Batches of zarr-python: the chunks of a selection, each with the part of it that is selected.

Compiled because a batch has an item for each chunk, and the rest of the work for a small chunk takes a few
microseconds. Every item is looked at: nothing is concluded from the first and the last one.
"""
import numpy as np

from libc.stdint cimport INT64_MAX, int64_t

from zcore.kernel.memory cimport Bytes

cdef enum:
    ZERO = 48                  # the code point of the digit 0

cdef int64_t LIMIT = (<int64_t>1) << 61        # of positions and steps: sums of two fit into 64 bits

cdef type _NDARRAY = np.ndarray
cdef tuple _INTEGERS = (int, np.integer)


def coords_of(list batch not None, str prefix not None, str separator not None, int ndim):
    """Return the coordinates of the chunks of a batch, taken from the keys.

    Parameters
    ----------
    batch : list of tuple
        The `path` of the first entry of each is the key of the chunk.
    prefix : str
        How each key begins.
    separator : str
        Stands between two coordinates.
    ndim : int
        How many coordinates a key has.

    Returns
    -------
    ndarray or None
        int64, one row for each chunk. None if a key is not `prefix` and `ndim` decimal numbers.

    >>> from types import SimpleNamespace as Key
    >>> coords_of([(Key(path="a/c/0/12"),), (Key(path="a/c/3/4"),)], "a/c/", "/", 2).tolist()
    [[0, 12], [3, 4]]
    """
    cdef Py_ssize_t i, at, first, end
    cdef Py_ssize_t begin = len(prefix)
    cdef int d
    cdef int64_t number
    cdef Py_UCS4 letter, mark
    cdef str key
    found = np.empty((len(batch), ndim), np.int64)
    cdef Bytes held = Bytes(found, writable=True)
    cdef int64_t *coords = <int64_t *>held.data
    if len(separator) != 1:
        return None
    mark = separator[0]
    for i in range(len(batch)):
        key = batch[i][0].path
        if not key.startswith(prefix):
            return None
        end = len(key)
        at = begin
        for d in range(ndim):
            if d > 0:
                if at == end or key[at] != mark:
                    return None
                at += 1
            number = 0
            first = at
            while at < end:
                letter = key[at]
                if not ZERO <= <int64_t>letter < ZERO + 10:
                    break
                if number > (INT64_MAX - 9) // 10 or (number == 0 and at > first):
                    # Too large, or a zero in front: no format writes such a key.
                    return None
                number = 10 * number + (<int64_t>letter - ZERO)
                at += 1
            if at == first:
                return None
            coords[i * ndim + d] = number
        if at != end:
            return None
    return found


def product_of(list batch not None, coords, tuple out_dims not None):
    """Return the parts of which a batch is the product, one for each dimension and chunk coordinate.

    Parameters
    ----------
    batch : list of tuple
        The third entry of each is the index into the chunk, the fourth one that into the result; both are tuples.
    coords : ndarray
        int64 and contiguous, the coordinates of each chunk.
    out_dims : tuple of int
        For each dimension of the chunks that of the result, or -1 if the result does not have it.

    Returns
    -------
    list or None
        For each dimension a list of (coordinate, index into the chunk, index into the result or None), in ascending
        order. None if the batch does not have every combination of these exactly once, each with the same parts.
    """
    cdef Py_ssize_t n = len(batch)
    cdef Py_ssize_t ndim = len(out_dims)
    cdef Bytes held = Bytes(coords)
    cdef const int64_t *coord = <const int64_t *>held.data
    cdef Py_ssize_t n_out = 0
    cdef Py_ssize_t n_product = 1
    cdef Py_ssize_t i, d, at, out_dim
    cdef tuple chunk, out, part
    # Of each dimension the parts in the order in which they appear first, and the position of each coordinate there.
    cdef list parts = [[] for _ in range(ndim)]
    cdef list places = [{} for _ in range(ndim)]
    cdef list parts_of_dim
    cdef dict places_of_dim
    cdef list place = []       # of each item and dimension: which part
    cdef bytearray seen
    if coords.shape != (n, ndim) or coords.dtype != np.int64:
        raise ValueError("coordinates and dimensions are those of the batch")
    for out_dim in out_dims:
        n_out += out_dim >= 0
    for i in range(n):
        item = batch[i]
        if type(item[2]) is not tuple or type(item[3]) is not tuple:
            return None
        chunk, out = item[2], item[3]
        if len(chunk) != ndim or len(out) != n_out:
            return None
        for d in range(ndim):
            out_dim = out_dims[d]
            parts_of_dim = parts[d]
            if i > 0 and coord[d] == coord[d - ndim]:
                known = place[(i - 1) * ndim + d]
            else:
                places_of_dim = places[d]
                known = places_of_dim.get(coord[d])
                if known is None:
                    place.append(len(parts_of_dim))
                    places_of_dim[coord[d]] = len(parts_of_dim)
                    parts_of_dim.append((coord[d], chunk[d], None if out_dim < 0 else out[out_dim]))
                    continue
            place.append(known)
            part = parts_of_dim[known]
            if not _same(part[1], chunk[d]) or (out_dim >= 0 and not _same(part[2], out[out_dim])):
                return None
        coord += ndim
    for d in range(ndim):
        if len(parts[d]) > n // n_product:
            return None
        n_product *= len(parts[d])
    if n_product != n:
        return None
    # As many items as combinations, and none of them twice: each of them once.
    seen = bytearray(n)
    for i in range(n):
        at = 0
        for d in range(ndim):
            at = at * len(<list>parts[d]) + <Py_ssize_t>place[i * ndim + d]
        if seen[at]:
            return None
        seen[at] = 1
    return [sorted(parts_of_dim) for parts_of_dim in parts]


cdef bint _same(object one, object other) except -1:
    """Whether two indices select the same; zarr-python mostly has one object for all chunks of a row."""
    if one is other:
        return True
    if isinstance(one, _NDARRAY) or isinstance(other, _NDARRAY):
        return np.array_equal(one, other)
    return one == other


def joined(list parts not None, int which, grid):
    """Return one index of a dimension for the parts of it that lie in its chunks.

    Parameters
    ----------
    parts : list of tuple
        Of `product_of`, at least one: (coordinate, index into the chunk, index into the result).
    which : int
        1 joins the indices into the chunks, 2 those into the result.
    grid : int, callable or None
        The length of the chunks, or a function that returns for a coordinate the first element of the chunk and its
        length. None for indices into the result, which are positions there.

    Returns
    -------
    int, slice, ndarray or None
        None if there is no such index, or if a part reaches out of its chunk, where other elements would be meant.

    >>> joined([(1, slice(2, 5, 3), None), (2, slice(0, 4, 3), None)], 1, 5)
    slice(7, 14, 3)
    >>> joined([(0, slice(2, 6), None)], 1, 5) is None
    True
    """
    cdef bint is_regular = True
    for part in parts:
        index = part[which]
        if type(index) is slice:
            if index.start is None or index.stop is None:
                return None
        elif isinstance(index, _NDARRAY):
            is_regular = False
        elif isinstance(index, _INTEGERS) and len(parts) == 1:
            offset, length = _place_in(grid, part[0])
            return offset + int(index) if 0 <= index < length else None
        else:
            return None
    try:
        return _slice_of(parts, which, grid) if is_regular else _indices_of_all(parts, which, grid)
    except OverflowError:
        return None


cdef object _slice_of(list parts, int which, object grid):
    """The slice that slices are together, their indices if there are gaps, or None."""
    cdef int64_t first = 0
    cdef int64_t step = 1
    cdef int64_t behind = 0    # where the next element lies, if there is one
    cdef int64_t offset, length, start, stop
    cdef bint is_first = True
    cdef bint has_gaps = False
    for part in parts:
        index = part[which]
        offset, length = _place_in(grid, part[0])
        start, stop = index.start, index.stop
        if is_first:
            step = index.step or 1
            first = behind = offset + start
            is_first = False
        if step != (index.step or 1) or not (
                0 < step < LIMIT and 0 <= offset < LIMIT and 0 <= start <= stop <= length < LIMIT):
            return None
        has_gaps |= behind != offset + start
        behind = offset + start + (stop - start + step - 1) // step * step
    return _indices_of_all(parts, which, grid) if has_gaps else slice(first, behind - step + 1, step)


cdef object _indices_of_all(list parts, int which, object grid):
    """The indices that all parts are together, or None if one of them reaches out of its chunk."""
    found = []
    for part in parts:
        offset, length = _place_in(grid, part[0])
        indices = indices_of(part[which])
        if indices.size and (indices.min() < 0 or indices.max() >= length):
            return None
        found.append(np.add(offset, indices, dtype=np.int64))
    return np.concatenate(found)


def indices_of(index):
    """Return the indices that a slice, an integer, or an array of one dimension but for its shape stands for."""
    if type(index) is slice:
        return np.arange(index.start, index.stop, index.step or 1)
    index = np.asarray(index)
    return np.flatnonzero(index) if index.dtype == bool else index.reshape(-1)


cdef tuple _place_in(object grid, object coord):
    """The first element of a chunk along a dimension, and its length; see `joined`."""
    if grid is None:
        return 0, LIMIT - 1
    return (coord * grid, grid) if type(grid) is int else grid(coord)
