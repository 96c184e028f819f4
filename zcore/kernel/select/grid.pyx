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
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free

from zcore.kernel.memory cimport zc_new
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
    axis.before = <int64_t *>zc_new(axis.n_runs + 1, sizeof(int64_t))
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
