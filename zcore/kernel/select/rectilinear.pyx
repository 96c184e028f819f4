# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Lengths of the chunks along a dimension of a rectilinear grid.

zarr-extensions, chunk grid "rectilinear": the chunk of an element is the first whose cumulative length exceeds the
element's coordinate. Chunks may lie beyond the end of the array, so a dimension keeps its lengths when it shrinks.

Compiled because a plan looks up the chunks of its tasks here. Lengths come from documents, where a run of 2**62 chunks
takes twenty characters. So a run is never expanded, and takes 24 bytes for any number of chunks.
"""
from zcore.errors import SelectionError

cimport cython
from cpython.long cimport PyLong_AsLongLongAndOverflow
from libc.stdint cimport INT64_MAX
from libc.stdlib cimport free
from libc.string cimport memcmp

from zcore.kernel.memory cimport zc_new, zc_resized

cdef int64_t run_of(const Run *runs, int64_t n, int64_t i, bint is_chunk) noexcept nogil:
    cdef int64_t low = 0
    cdef int64_t high = n
    cdef int64_t middle
    while high - low > 1:
        middle = (low + high) // 2
        if (runs[middle].first if is_chunk else runs[middle].origin) <= i:
            low = middle
        else:
            high = middle
    return low


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
        return type(other) is Edges and _equals(self, other)

    def __hash__(self):
        return hash(("edges", _first_runs(self, min(self.n_runs, 64))))

    def __reduce__(self):
        return Edges, (self.runs,)

    def __repr__(self):
        return f"Edges({self.runs!r})"


cdef tuple _first_runs(Edges self, int64_t n):
    return tuple([(self.table[i].edge, self.table[i + 1].first - self.table[i].first) for i in range(n)])


cdef bint _equals(Edges self, Edges other):
    return (self.n_runs == other.n_runs
            and memcmp(self.table, other.table, (self.n_runs + 1) * sizeof(Run)) == 0)
