# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Lengths of the chunks along a dimension of a rectilinear grid.

zarr-extensions, chunk grid "rectilinear": the chunk of an element is the first whose cumulative length exceeds the
element's coordinate. Chunks may lie beyond the end of the array, so a dimension keeps its lengths when it shrinks.

Compiled because a plan looks up the chunks of its tasks here. Lengths come out of documents, where a run of 2**62
chunks takes twenty characters: a run is never spelled out, and takes 24 bytes however many chunks it has.
"""
from zcore.errors import SelectionError

cimport cython
from libc.stdint cimport INT64_MAX
from libc.stdlib cimport free, malloc


cdef int64_t run_of_element(const Run *runs, int64_t n, int64_t i) noexcept nogil:
    cdef int64_t low = 0
    cdef int64_t high = n
    cdef int64_t middle
    while high - low > 1:
        middle = (low + high) // 2
        if runs[middle].origin <= i:
            low = middle
        else:
            high = middle
    return low


cdef int64_t run_of_chunk(const Run *runs, int64_t n, int64_t chunk) noexcept nogil:
    cdef int64_t low = 0
    cdef int64_t high = n
    cdef int64_t middle
    while high - low > 1:
        middle = (low + high) // 2
        if runs[middle].first <= chunk:
            low = middle
        else:
            high = middle
    return low


@cython.final
cdef class Edges:
    """The lengths of the chunks along one dimension; a value that never changes.

    Parameters
    ----------
    runs : iterable of (int, int)
        Length and number of chunks that follow each other, both at least 1. Neighbours of one length become one run.

    Attributes
    ----------
    n_runs : int
    longest : int
        Elements of the longest chunk.

    Raises
    ------
    ValueError
        There are none, a number is less than 1, or the chunks do not end before 2**63.
    TypeError
        A number is no integer.

    Examples
    --------
    >>> edges = Edges([(2, 3), (5, 1)])
    >>> edges.total, edges.n_chunks, edges.place(3), edges.sizes(8)
    (11, 4, (6, 5), (2, 2, 2, 2))
    """

    def __cinit__(self, runs):
        merged = []
        last = None
        total = 0
        for edge, count in runs:
            if type(edge) is not int or type(count) is not int:
                raise TypeError(f"expected integers as length and number of chunks, found {edge!r:.60}, {count!r:.60}")
            if edge < 1 or count < 1:
                raise ValueError(f"expected chunks of at least 1 element, and at least one of them, found {count:d} of "
                                 f"length {edge:d}")
            total += edge * count
            if total > INT64_MAX:
                raise ValueError("expected chunks that end before 2**63")
            if last is not None and last[0] == edge:
                last[1] += count
            else:
                last = [edge, count]
                merged.append(last)
        if not merged:
            raise ValueError("expected at least one chunk")
        self.n_runs = len(merged)
        self.table = <Run *>malloc((self.n_runs + 1) * sizeof(Run))
        if self.table == NULL:
            raise MemoryError
        cdef int64_t i = 0
        cdef int64_t origin = 0
        cdef int64_t first = 0
        cdef int64_t n
        for edge, count in merged:
            n = count
            self.table[i].edge = edge
            self.table[i].origin = origin
            self.table[i].first = first
            self.longest = max(self.longest, self.table[i].edge)
            origin += self.table[i].edge * n
            first += n
            i += 1
        self.table[i].edge = 0
        self.table[i].origin = origin
        self.table[i].first = first

    def __dealloc__(self):
        free(self.table)

    @property
    def runs(self):
        """Length and number of the chunks of each run, a tuple of tuples."""
        return tuple([(self.table[i].edge, self.table[i + 1].first - self.table[i].first) for i in range(self.n_runs)])

    @property
    def total(self):
        """Elements of all chunks."""
        return self.table[self.n_runs].origin

    @property
    def n_chunks(self):
        """Number of chunks, those beyond the end of an array included."""
        return self.table[self.n_runs].first

    def count(self, int64_t length):
        """Return how many chunks have elements in a dimension of `length`, which is at most `total`."""
        assert 0 <= length <= self.total
        if length == 0:
            return 0
        cdef int64_t r = run_of_element(self.table, self.n_runs, length - 1)
        return self.table[r].first + (length - 1 - self.table[r].origin) // self.table[r].edge + 1

    def place(self, int64_t chunk):
        """Return the first element of a chunk, and how many it has.

        Raises : SelectionError, if there is no such chunk.
        """
        if not 0 <= chunk < self.table[self.n_runs].first:
            raise SelectionError(f"there is no chunk {chunk} of {self.n_chunks}")
        cdef int64_t r = run_of_chunk(self.table, self.n_runs, chunk)
        return self.table[r].origin + (chunk - self.table[r].first) * self.table[r].edge, self.table[r].edge

    def sizes(self, int64_t length):
        """Return how many elements of a dimension of `length` each chunk has that has any, a tuple."""
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
        """Return lengths that cover a dimension of `length`: these, and as many as needed of the last one.

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
        """Return whether each chunk is cut into parts of `length` exactly."""
        for i in range(self.n_runs):
            if self.table[i].edge % length:
                return False
        return True

    def __eq__(self, other):
        return type(other) is Edges and self.runs == other.runs

    def __hash__(self):
        return hash(("edges", self.runs[:64]))

    def __reduce__(self):
        return Edges, (self.runs,)

    def __repr__(self):
        return f"Edges({self.runs!r})"
