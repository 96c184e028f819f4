# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Chunk grid arithmetic: which chunks an array has, and which part of each a selection touches.

Rules of the early Zarr v3 core protocol draft (2019), "Regular grids", unchanged in Zarr v3 core, "Regular grids".
Dimensions are independent, so every rule is for a single dimension of `length` elements, cut into chunks of `chunk`::

    chunk c covers elements   c * chunk  ...  c * chunk + chunk - 1        (the last chunk may reach past `length`)
    element i lies in chunk   i // chunk  at position  i % chunk
    there are                 ceil(length / chunk)  chunks

A selection is a box: `start`, `step` and `count` in every dimension. The part in the k-th touched chunk is computed
from k by a closed formula (`axis_span`), so a plan over millions of chunks keeps one `Axis` per dimension and no lists.

If chunks differ in length (zarr-extensions, "rectilinear"), a dimension is a sequence of regular ones, the runs of
equal chunks (`select.rectilinear`). Then k is first looked up among the runs that the selection touches, by bisection.

Compiled, because it runs once per dimension for every chunk of every read and write. All numbers are exact 64-bit
integers; no floating point, and no intermediate result is larger than `length`.
"""
from zcore.errors import SelectionError

from libc.stdint cimport INT64_MAX, int64_t, uint64_t
from libc.stdlib cimport free, malloc

from zcore.kernel.select.rectilinear cimport Run, run_of


cdef int64_t ceil_div(int64_t a, int64_t b) noexcept nogil:
    # Not (a + b - 1) // b, which overflows for large a.
    return a // b + (a % b != 0)


cdef int axis_init(Axis *axis, int64_t length, int64_t chunk, int64_t start, int64_t step,
                   int64_t count) noexcept nogil:
    if chunk < 1 or _select(axis, length, start, step, count) != 0:
        return 1
    axis.chunk = chunk
    if count:
        axis.first_chunk = axis.start // chunk
        axis.n_chunks = _n_touched(axis)
    return 0


cdef int axis_init_runs(Axis *axis, const Run *runs, int64_t n, int64_t length, int64_t chunk, int64_t start,
                        int64_t step, int64_t count) noexcept nogil:
    cdef int64_t first, r
    cdef Axis part
    if _select(axis, length, start, step, count) != 0:
        return 1
    axis.chunk = chunk
    if count == 0:
        return 0
    first = run_of(runs, n, axis.start, False)
    axis.first_chunk = runs[first].first + (axis.start - runs[first].origin) // runs[first].edge
    axis.n_runs = run_of(runs, n, axis.start + (count - 1) * axis.step, False) - first + 1
    axis.before = <int64_t *>malloc((axis.n_runs + 1) * sizeof(int64_t))
    if axis.before == NULL:
        return -1
    axis.runs = runs + first
    axis.before[0] = 0
    for r in range(axis.n_runs):
        _part_of(axis, r, &part)
        axis.before[r + 1] = axis.before[r] + part.n_chunks
    axis.n_chunks = axis.before[axis.n_runs]
    return 0


cdef void axis_free(Axis *axis) noexcept nogil:
    free(axis.before)
    axis.before = NULL


cdef int _select(Axis *axis, int64_t length, int64_t start, int64_t step, int64_t count) noexcept nogil:
    """Set the selection of a dimension; return whether it does not fit."""
    cdef uint64_t stride, room
    if length < 0 or step == 0 or count < 0:
        return 1
    axis.length = length
    axis.start = 0
    axis.step = 1
    axis.count = count
    axis.out_start = 0
    axis.out_step = 1
    axis.first_chunk = 0
    axis.n_chunks = 0
    axis.runs = NULL
    axis.n_runs = 0
    axis.before = NULL
    if count == 0:
        return 0
    if start < 0 or start >= length:
        return 1
    axis.start = start
    if count > 1:
        # By division, as step * (count - 1) may exceed 64 bits. So does -step for the lowest int64_t.
        stride = <uint64_t>step if step > 0 else 0 - <uint64_t>step
        room = <uint64_t>(length - 1 - start if step > 0 else start)
        if stride > room // <uint64_t>(count - 1):
            return 1
        axis.step = <int64_t>stride
        if step < 0:
            axis.start = start - (count - 1) * axis.step
            axis.out_start = count - 1
            axis.out_step = -1
    return 0


cdef int64_t _n_touched(const Axis *axis) noexcept nogil:
    """Return how many chunks of one length hold the selected elements. There must be at least one element."""
    if axis.step >= axis.chunk:
        return axis.count
    return (axis.start + (axis.count - 1) * axis.step) // axis.chunk - axis.start // axis.chunk + 1


cdef void _part_of(const Axis *axis, int64_t r, Axis *part) noexcept nogil:
    """Return the selection in the r-th run as an axis of its own, which begins at the origin of the run."""
    cdef const Run *run = &axis.runs[r]
    cdef int64_t end = min(run[1].origin, axis.length)
    cdef int64_t first = 0 if run.origin <= axis.start else ceil_div(run.origin - axis.start, axis.step)
    part.length = end - run.origin
    part.chunk = run.edge
    part.count = min(ceil_div(end - axis.start, axis.step), axis.count) - first
    part.start = axis.start + first * axis.step - run.origin
    part.step = axis.step
    part.out_start = axis.out_start + first * axis.out_step
    part.out_step = axis.out_step
    part.first_chunk = part.start // part.chunk
    part.n_chunks = _n_touched(part) if part.count > 0 else 0
    part.runs = NULL


cdef void axis_span(const Axis *axis, int64_t k, Span *span) noexcept nogil:
    cdef int64_t first, position, in_chunk
    if axis.runs != NULL:
        _span_in_runs(axis, k, span)
        return
    span.length = axis.chunk
    if axis.step >= axis.chunk:
        # Every selected element is in a different chunk, and chunks between may be skipped.
        first = k
        position = axis.start + k * axis.step
        span.chunk = position // axis.chunk
        span.origin = span.chunk * axis.chunk
        span.valid = min(axis.chunk, axis.length - span.origin)
        in_chunk = 1
    else:
        span.chunk = axis.first_chunk + k
        span.origin = span.chunk * axis.chunk
        span.valid = min(axis.chunk, axis.length - span.origin)
        first = 0 if k == 0 else ceil_div(span.origin - axis.start, axis.step)
        position = axis.start + first * axis.step
        in_chunk = min((span.valid - 1 - (position - span.origin)) // axis.step + 1, axis.count - first)
    span.start = position - span.origin
    span.count = in_chunk
    span.out = axis.out_start + first * axis.out_step


cdef void _span_in_runs(const Axis *axis, int64_t k, Span *span) noexcept nogil:
    cdef int64_t low = 0
    cdef int64_t high = axis.n_runs
    cdef int64_t middle
    cdef Axis part
    # The last run with at most k touched chunks before it. Runs that a step skips have none and are passed over.
    while high - low > 1:
        middle = (low + high) // 2
        if axis.before[middle] <= k:
            low = middle
        else:
            high = middle
    _part_of(axis, low, &part)
    axis_span(&part, k - axis.before[low], span)
    span.chunk += axis.runs[low].first
    span.origin += axis.runs[low].origin


def grid_shape(shape, chunk_shape):
    """Return the number of chunks along each dimension.

    Parameters
    ----------
    shape : sequence of int
        Elements of the array along each dimension, 0 or more.
    chunk_shape : sequence of int
        Elements of a chunk along each dimension, 1 or more.

    Returns
    -------
    tuple of int

    Raises
    ------
    ValueError
        If the two differ in length, a length is negative, or a chunk has no elements.

    Notes
    -----
    Early Zarr v3 core protocol draft (2019), "Regular grids". A dimension without elements has no chunks; an array
    without dimensions has one chunk, whose coordinates are ``()``.

    Examples
    --------
    >>> grid_shape((10, 200, 3000), (5, 20, 400))
    (2, 10, 8)
    >>> grid_shape((2**53 + 1,), (2,))
    (4503599627370497,)
    >>> grid_shape((), ())
    ()
    """
    _check_ndim(shape, chunk_shape)
    cdef int64_t length, chunk
    counts = []
    for d in range(len(shape)):
        length, chunk = shape[d], _chunk_length(chunk_shape, d)
        if length < 0:
            raise ValueError(f"dimension {d} has a negative length, {length}")
        counts.append(ceil_div(length, chunk))
    return tuple(counts)


def n_chunks(shape, chunk_shape):
    """Return the number of chunks of the whole grid, as an exact integer of any size.

    Raises : ValueError, as `grid_shape`.
    Notes : the product of `grid_shape`; early Zarr v3 core protocol draft (2019), "Regular grids".

    >>> n_chunks((10, 200, 3000), (5, 20, 400))
    160
    >>> n_chunks((), ()), n_chunks((4, 0), (2, 2))
    (1, 0)
    """
    product = 1
    for count in grid_shape(shape, chunk_shape):
        product = product * count
    return product


def chunk_origin(chunk_coords, chunk_shape):
    """Return the coordinates of the first element of a chunk.

    Raises : ValueError, if the two differ in length or a chunk has no elements; SelectionError, if a coordinate is
    negative (a regular grid starts at zero); OverflowError, if the origin exceeds 64 bits.
    Notes : early Zarr v3 core protocol draft (2019), "Regular grids".

    >>> chunk_origin((1, 7, 2), (5, 20, 400))
    (5, 140, 800)
    """
    _check_ndim(chunk_coords, chunk_shape)
    cdef int64_t coord, chunk
    origin = []
    for d in range(len(chunk_coords)):
        coord, chunk = _coordinate(chunk_coords, d), _chunk_length(chunk_shape, d)
        if coord > INT64_MAX // chunk:
            raise OverflowError(f"the origin of chunk {coord} of dimension {d} is no 64-bit number")
        origin.append(coord * chunk)
    return tuple(origin)


def locate(index, chunk_shape):
    """Return the chunk that holds an element, and the element's position in it.

    Parameters
    ----------
    index : sequence of int
        Coordinates of the element, 0 or more. They are not checked against an array's shape.
    chunk_shape : sequence of int
        Elements of a chunk along each dimension, 1 or more.

    Returns
    -------
    chunk_coords, offset : tuple of int
        Coordinates of the chunk in the grid, and of the element counted from the chunk's origin.

    Raises
    ------
    ValueError
        If the two differ in length, or a chunk has no elements.
    SelectionError
        If a coordinate is negative.

    Notes
    -----
    Early Zarr v3 core protocol draft (2019), "Regular grids". Zarr v3 core completed its example.

    Examples
    --------
    >>> locate((7, 150, 900), (5, 20, 400))
    ((1, 7, 2), (2, 10, 100))
    """
    _check_ndim(index, chunk_shape)
    cdef int64_t coord, chunk
    chunk_coords, offset = [], []
    for d in range(len(index)):
        coord, chunk = _coordinate(index, d), _chunk_length(chunk_shape, d)
        chunk_coords.append(coord // chunk)
        offset.append(coord % chunk)
    return tuple(chunk_coords), tuple(offset)


def project(shape, chunk_shape, starts, steps, counts):
    """Return an iterator over the chunks that a box touches, in C order of the selection's lowest elements.

    Parameters
    ----------
    shape, chunk_shape : sequence of int
        The array and its chunks.
    starts, steps, counts : sequence of int
        Along each dimension the first selected element, the distance to the next (negative: downwards, never 0) and
        the number of selected elements.

    Returns
    -------
    iterator of (chunk_coords, chunk_selection, out_selection)
        The chunk, the selected slices of the chunk, and the corresponding slices of the output (of shape `counts`).
        Both selections run upwards in the chunk; if `steps` is negative, the slice of the output has step -1.

    Raises
    ------
    ValueError
        If the arguments differ in length, a chunk has no elements, a step is 0, or a length or count is negative.
    SelectionError
        If a selected element lies outside the array.

    Notes
    -----
    Every chunk with a selected element appears exactly once, and no other chunk.

    Examples
    --------
    >>> for part in project((10,), (4,), (1,), (3,), (3,)):
    ...     print(part)
    ((0,), (slice(1, 2, 3),), (slice(0, 1, 1),))
    ((1,), (slice(0, 4, 3),), (slice(1, 3, 1),))
    """
    _check_ndim(shape, chunk_shape)
    for box in (starts, steps, counts):
        _check_ndim(shape, box)
    dimensions = []
    for d in range(len(shape)):
        _chunk_length(chunk_shape, d)
        if steps[d] == 0 or counts[d] < 0 or shape[d] < 0:
            raise ValueError(
                f"dimension {d}: length {shape[d]}, step {steps[d]} and count {counts[d]} are no selection")
        dimensions.append(_Projection(d, shape[d], chunk_shape[d], starts[d], steps[d], counts[d]))
    return _product(dimensions, 0)


cdef class _Projection:
    """The parts of one dimension of a box, made on demand."""

    cdef Axis axis

    def __cinit__(self, d, int64_t length, int64_t chunk, int64_t start, int64_t step, int64_t count):
        if axis_init(&self.axis, length, chunk, start, step, count):
            raise SelectionError(
                f"{count} elements from {start} in steps of {step} leave dimension {d} of length {length}", dimension=d)

    def __iter__(self):
        cdef Span span
        cdef int64_t k, last_out
        for k in range(self.axis.n_chunks):
            axis_span(&self.axis, k, &span)
            selected = slice(span.start, span.start + (span.count - 1) * self.axis.step + 1, self.axis.step)
            last_out = span.out + (span.count - 1) * self.axis.out_step
            stop = last_out + self.axis.out_step
            yield span.chunk, selected, slice(span.out, stop if stop >= 0 else None, self.axis.out_step)


def _product(dimensions, d):
    if d == len(dimensions):
        yield (), (), ()
        return
    for coord, selected, out in dimensions[d]:
        for coords, inner_selected, inner_out in _product(dimensions, d + 1):
            yield (coord, *coords), (selected, *inner_selected), (out, *inner_out)


cdef int _check_ndim(one, other) except -1:
    if len(one) != len(other):
        raise ValueError(f"{len(one)} and {len(other)} dimensions do not match")
    return 0


cdef int64_t _chunk_length(chunk_shape, d) except -1:
    cdef int64_t chunk = chunk_shape[d]
    if chunk < 1:
        raise ValueError(f"a chunk has {chunk} elements along dimension {d}, at least 1 is needed")
    return chunk


cdef int64_t _coordinate(coords, d) except -1:
    cdef int64_t coord = coords[d]
    if coord < 0:
        raise SelectionError(f"coordinate {coord} of dimension {d} is negative", dimension=d)
    return coord
