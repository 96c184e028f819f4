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
equal chunks (`Edges`). Then k is first looked up among the runs that the selection touches, by bisection.

Compiled, because it runs once per dimension for every chunk of every read and write. All numbers are exact 64-bit
integers; no floating point, and no intermediate result is larger than `length`.
"""
from zcore.errors import SelectionError

cimport cython
from cpython.long cimport PyLong_AsLongLongAndOverflow
from libc.stdint cimport INT64_MAX, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp

from zcore.kernel.memory cimport zc_new, zc_resized


cdef int64_t last_at_most(const int64_t *numbers, int64_t distance, int64_t n, int64_t limit) noexcept nogil:
    cdef int64_t low = 0
    cdef int64_t high = n
    cdef int64_t middle
    while high - low > 1:
        middle = (low + high) // 2
        if numbers[middle * distance] <= limit:
            low = middle
        else:
            high = middle
    return low


cdef int64_t run_of(const Run *runs, int64_t n, int64_t i, bint is_chunk) noexcept nogil:
    return last_at_most(&runs.first if is_chunk else &runs.origin, sizeof(Run) // sizeof(int64_t), n, i)


cdef inline int64_t _number(object value) except -1:
    """Return an integer from 1 to 2**63 - 1, 0 for anything else."""
    cdef int overflow = 0
    cdef int64_t number
    if type(value) is not int:
        return 0
    number = PyLong_AsLongLongAndOverflow(value, &overflow)
    return 0 if overflow or number < 1 else number


cdef inline bint _read_entry(object entry, int64_t *edge, int64_t *count) except -1:
    """Take length and number of chunks from an entry: a length, or a pair; return whether it is valid."""
    if type(entry) is list and len(<list>entry) == 2:
        edge[0] = _number((<list>entry)[0])
        count[0] = _number((<list>entry)[1])
    elif type(entry) is tuple and len(<tuple>entry) == 2:
        edge[0] = _number((<tuple>entry)[0])
        count[0] = _number((<tuple>entry)[1])
    else:
        edge[0] = _number(entry)
        count[0] = 1
    return edge[0] > 0 and count[0] > 0


def is_entry(entry):
    """Return whether `Edges` accepts an entry: a length, or a list or tuple of a length and a number."""
    cdef int64_t edge, count
    return _read_entry(entry, &edge, &count)


def equal_run(list entries not None):
    """Return length and number of chunks that all have one length; None if they differ.

    Parameters
    ----------
    entries : list
        As `Edges` takes them. Entries behind the first different length are not checked.

    Returns
    -------
    (int, int) or None
        A larger number is returned as 2**63 - 1.

    Raises
    ------
    ValueError
        A checked entry is invalid, or there are none.
    """
    cdef int64_t edge, count
    cdef int64_t common = 0
    cdef int64_t total = 0
    for entry in entries:
        if not _read_entry(entry, &edge, &count):
            _refuse(entry)
        if common == 0:
            common = edge
        elif edge != common:
            return None
        total = total + count if count <= INT64_MAX - total else INT64_MAX
    if common == 0:
        raise ValueError("expected at least one chunk")
    return common, total


def _refuse(entry):
    """Raise the error of an invalid entry."""
    edge, count = entry if type(entry) in (list, tuple) and len(entry) == 2 else (entry, 1)
    if type(edge) is not int or type(count) is not int:
        raise TypeError(f"expected integers as length and number of chunks, found {edge!r:.60}, {count!r:.60}")
    if edge < 1 or count < 1:
        raise ValueError(f"expected chunks of at least 1 element, and at least one of them, found {count:d} of "
                         f"length {edge:d}")
    raise ValueError("expected chunks that end before 2**63")


@cython.final
cdef class Edges:
    """The lengths of the chunks along one dimension; a value that never changes.

    Parameters
    ----------
    runs : iterable of (int, int) or int
        Length and number of consecutive chunks, both at least 1; a length alone is one chunk. Adjacent runs of one
        length become one run.

    Attributes
    ----------
    n_runs : int
    longest : int
        Elements of the longest chunk.

    Raises
    ------
    ValueError
        There are no chunks, a number is less than 1, or the chunks do not end before 2**63.
    TypeError
        A number is no integer.

    Examples
    --------
    >>> edges = Edges([(2, 3), (5, 1)])
    >>> edges.total, edges.n_chunks, edges.place(3), edges.sizes(8)
    (11, 4, (6, 5), (2, 2, 2, 2))
    """

    def __cinit__(self, runs):
        cdef list entries = list(runs)
        cdef int64_t n_entries = len(entries)
        cdef int64_t origin = 0
        cdef int64_t first = 0
        cdef int64_t edge, count
        cdef Run *fitting
        if n_entries == 0:
            raise ValueError("expected at least one chunk")
        self.table = <Run *>zc_new(n_entries + 1, sizeof(Run))
        if self.table == NULL:
            raise MemoryError
        for entry in entries:
            if not _read_entry(entry, &edge, &count):
                _refuse(entry)
            # Each chunk has at least one element, so the number of chunks is at most that of elements.
            if edge > INT64_MAX - origin or (count > 1 and count > (INT64_MAX - origin) // edge):
                raise ValueError("expected chunks that end before 2**63")
            if self.n_runs == 0 or self.table[self.n_runs - 1].edge != edge:
                self.table[self.n_runs] = Run(edge, origin, first)
                self.n_runs += 1
                if edge > self.longest:
                    self.longest = edge
            origin += edge * count
            first += count
        self.table[self.n_runs] = Run(0, origin, first)
        if self.n_runs < n_entries:
            fitting = <Run *>zc_resized(self.table, self.n_runs + 1, sizeof(Run))
            if fitting != NULL:
                self.table = fitting

    def __dealloc__(self):
        free(self.table)

    @property
    def runs(self):
        """Length and number of chunks of each run, a tuple of tuples."""
        return _first_runs(self, self.n_runs)

    @property
    def total(self):
        """Elements of all chunks."""
        return self.table[self.n_runs].origin

    @property
    def n_chunks(self):
        """Number of chunks, including those beyond the end of an array."""
        return self.table[self.n_runs].first

    def count(self, int64_t length):
        """Return how many chunks have elements in a dimension of `length`, which is at most `total`."""
        assert 0 <= length <= self.total
        if length == 0:
            return 0
        cdef int64_t r = run_of(self.table, self.n_runs, length - 1, False)
        return self.table[r].first + (length - 1 - self.table[r].origin) // self.table[r].edge + 1

    def place(self, int64_t chunk):
        """Return the first element of a chunk and its number of elements.

        Raises : SelectionError, if there is no such chunk.
        """
        if not 0 <= chunk < self.table[self.n_runs].first:
            raise SelectionError(f"there is no chunk {chunk} of {self.n_chunks}")
        cdef int64_t r = run_of(self.table, self.n_runs, chunk, True)
        return self.table[r].origin + (chunk - self.table[r].first) * self.table[r].edge, self.table[r].edge

    def sizes(self, int64_t length):
        """Return the number of elements of each non-empty chunk inside a dimension of `length`, as a tuple."""
        sizes = []
        cdef int64_t origin
        for i in range(self.n_runs):
            origin = self.table[i].origin
            if origin >= length:
                break
            edge = self.table[i].edge
            n_whole, rest = divmod(min(self.table[i + 1].origin, length) - origin, edge)
            sizes += [edge] * n_whole
            if rest:
                sizes.append(rest)
        return tuple(sizes)

    def covering(self, length):
        """Return lengths that cover a dimension of `length`: these, and as many more of the last one as needed.

        Raises : ValueError, if they do not end before 2**63.
        """
        missing = length - self.total
        if missing <= 0:
            return self
        last = self.table[self.n_runs - 1].edge
        return Edges((*self.runs, (last, -(-missing // last))))

    def agrees(self, Edges other not None, int64_t length):
        """Return whether both cut the first `length` elements into the same chunks."""
        cdef int64_t i = 0
        if min(self.total, other.total) < length:
            return False
        while i < self.n_runs and self.table[i].origin < length:
            if (i == other.n_runs or other.table[i].origin != self.table[i].origin
                    or other.table[i].edge != self.table[i].edge):
                return False
            i += 1
        return i == other.n_runs or other.table[i].origin >= length

    def are_multiples_of(self, int64_t length):
        """Return whether each chunk length is a multiple of `length`."""
        for i in range(self.n_runs):
            if self.table[i].edge % length:
                return False
        return True

    def __eq__(self, other):
        return (type(other) is Edges and self.n_runs == (<Edges>other).n_runs
                and memcmp(self.table, (<Edges>other).table, (self.n_runs + 1) * sizeof(Run)) == 0)

    def __hash__(self):
        return hash(("edges", _first_runs(self, min(self.n_runs, 64))))

    def __reduce__(self):
        return Edges, (self.runs,)

    def __repr__(self):
        return f"Edges({self.runs!r})"


cdef tuple _first_runs(Edges self, int64_t n):
    return tuple([(self.table[i].edge, self.table[i + 1].first - self.table[i].first) for i in range(n)])


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
    # Runs that a step skips have no touched chunks and are passed over.
    cdef int64_t r = last_at_most(axis.before, 1, axis.n_runs, k)
    cdef Axis part
    _part_of(axis, r, &part)
    axis_span(&part, k - axis.before[r], span)
    span.chunk += axis.runs[r].first
    span.origin += axis.runs[r].origin
