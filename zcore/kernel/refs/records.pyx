# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""References by chunk number, the Parquet layout of reference sets.

A chunk's number in the C order of the grid gives the file and the row of its reference. So a reference needs 20 bytes
and no key: keys are parsed when they are looked up. Compiled because sets of millions of references are read chunk by
chunk.
"""
from zcore.errors import ReferenceFormatError

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport INT64_MAX, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp

from zcore.kernel.strided.copy cimport MAX_NDIM
from zcore.kernel.select.grid cimport Span
from zcore.kernel.refs.table cimport INLINE, REMOVED, WHOLE, Reference, ReferenceTable
from zcore.kernel.select.tasks cimport Tasks

cdef enum:
    POLLED = 1 << 20           # tasks between two polls of signals


@cython.final
cdef class Records:
    """The references of one file, a row for each chunk.

    Parameters
    ----------
    targets : array of int32
        Numbers of targets; -1 for inline data, -2 for no reference.
    offsets, lengths : array of int64
        Within the target or `data`; a length of -1 means the whole target.
    data : bytes
    n_targets : int

    Raises
    ------
    ReferenceFormatError
        A row has no valid target or an impossible extent.
    """

    def __init__(self, const int[::1] targets, const int64_t[::1] offsets, const int64_t[::1] lengths,
                 bytes data not None, int n_targets):
        cdef int64_t i
        cdef int64_t n_data = len(data)
        cdef bint is_right
        assert len(targets) == len(offsets) == len(lengths)
        for i in range(len(targets)):
            if targets[i] == REMOVED:
                continue
            is_right = offsets[i] >= 0 and lengths[i] >= WHOLE and offsets[i] <= INT64_MAX - max(lengths[i], 0)
            if targets[i] == INLINE:
                is_right = is_right and lengths[i] >= 0 and offsets[i] + lengths[i] <= n_data
            if not is_right or targets[i] < INLINE or targets[i] >= n_targets:
                raise ReferenceFormatError(
                    f"row {i}: expected an offset and a size from 0 on that end before byte 2**63, found {offsets[i]} "
                    f"and {lengths[i]}")
        self.targets = targets.base
        self.offsets = offsets.base
        self.lengths = lengths.base
        self.data = data
        self.rows.n = len(targets)
        self.rows.data = <const uint8_t *>PyBytes_AS_STRING(data)
        if self.rows.n:
            self.rows.targets = &targets[0]
            self.rows.offsets = &offsets[0]
            self.rows.lengths = &lengths[0]

    def __len__(self):
        return self.rows.n

    @property
    def nbytes(self):
        """Bytes of memory of the columns."""
        return 20 * self.rows.n + len(self.data)


@cython.final
cdef class RecordTable(ReferenceTable):
    """The references of one array.

    Parameters
    ----------
    documents : ReferenceTable
        The table whose targets the records use.
    prefix : bytes
        Prefix of the array's keys.
    grid_shape : tuple of int
        Chunks per dimension; their product is below 2**63.
    separator : bytes
        Between the indices in a key; one character.
    record_size : int
        Number of references in a file.
    load : callable
        Returns the `Records` of a file by its number, or None if there is no such file.

    Examples
    --------
    >>> from zcore.kernel.refs.table import ReferenceTable
    >>> table = RecordTable(ReferenceTable(), b"x/", (3, 4), b".", 5, None)
    >>> table.number_of(b"x/1.2"), table.number_of(b"x/3.0"), table.number_of(b"x/01.2"), table.number_of(b"x/1")
    (6, -1, -1, -1)
    """

    def __cinit__(self, *args):
        self.numbers = NULL
        self.rows_of = NULL

    def __init__(self, ReferenceTable documents not None, bytes prefix not None, tuple grid_shape not None,
                 bytes separator not None, int64_t record_size, load):
        cdef int d
        assert len(separator) == 1 and record_size >= 1 and len(grid_shape) <= MAX_NDIM
        self._targets = documents._targets
        self.prefix = prefix
        self.prefix_text = PyBytes_AS_STRING(prefix)
        self.n_prefix = PyBytes_GET_SIZE(prefix)
        self.grid_shape = grid_shape
        self.separator = separator
        self.sign = PyBytes_AS_STRING(separator)[0]
        self.record_size = record_size
        self.load_file = load
        self.ndim = len(grid_shape)
        for d in range(self.ndim):
            self.grid[d] = grid_shape[d]

    def __dealloc__(self):
        free(self.numbers)
        free(self.rows_of)

    def number_of(self, bytes key not None):
        """Return the chunk number of a key, or -1."""
        return _number_of_key(self, <const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))

    cdef ReferenceTable of_tasks(self, Tasks tasks):
        """Return the same table with the files loaded that these tasks need."""
        cdef Span spans[MAX_NDIM]
        cdef RecordTable table = RecordTable(self, self.prefix, self.grid_shape, self.separator, self.record_size,
                                             self.load_file)
        cdef int64_t task, number
        cdef int64_t last = -1
        cdef int d
        cdef set needed = set()
        cdef list numbers
        if tasks.ndim == self.ndim:
            for task in range(tasks.n_tasks):
                tasks.spans_of(task, spans)
                number = 0
                for d in range(self.ndim):
                    if spans[d].chunk >= self.grid[d]:
                        break
                    number = number * self.grid[d] + spans[d].chunk
                else:
                    number //= self.record_size
                    if number != last:
                        needed.add(number)
                        last = number
                if task % POLLED == POLLED - 1:
                    PyErr_CheckSignals()
        numbers = sorted(needed)
        table._take(numbers, [self.load_file(number) for number in numbers])
        return table

    cdef int _take(self, list numbers, list files) except -1:
        cdef int64_t i
        cdef int64_t n = len(files)
        self.numbers = <int64_t *>malloc((n + 1) * sizeof(int64_t))
        self.rows_of = <Rows *>malloc((n + 1) * sizeof(Rows))
        if self.numbers == NULL or self.rows_of == NULL:
            raise MemoryError
        for i in range(n):
            self.numbers[i] = numbers[i]
            self.rows_of[i].n = 0
            if files[i] is not None:
                self.rows_of[i] = (<Records?>files[i]).rows
        self.files = files
        self.n_files = n
        return 0

    cdef int look_up(self, const uint8_t *key, int64_t n_key, Reference *row, const uint8_t **data) noexcept nogil:
        cdef int64_t number = _number_of_key(self, key, n_key)
        cdef int64_t file = number // self.record_size
        cdef int64_t low = 0
        cdef int64_t high = self.n_files
        cdef int64_t middle, i
        cdef const Rows *rows
        if number < 0:
            return 0
        while low < high:
            middle = (low + high) // 2
            if self.numbers[middle] < file:
                low = middle + 1
            else:
                high = middle
        if low == self.n_files or self.numbers[low] != file:
            return -1
        rows = &self.rows_of[low]
        i = number - file * self.record_size
        if i >= rows.n or rows.targets[i] == REMOVED:
            return 0
        row.target = rows.targets[i]
        row.offset = rows.offsets[i]
        row.n_bytes = rows.lengths[i]
        data[0] = rows.data
        return 1


cdef int64_t _number_of_key(RecordTable self, const uint8_t *key, int64_t n_key) noexcept nogil:
    cdef int64_t i = self.n_prefix
    cdef int64_t number = 0
    cdef int64_t index, first
    cdef int d
    if n_key <= i or memcmp(key, self.prefix_text, i) != 0:
        return -1
    if self.ndim == 0:
        return 0 if n_key == i + 1 and key[i] == c'0' else -1
    for d in range(self.ndim):
        first = i
        index = 0
        while i < n_key and i - first < 19 and c'0' <= key[i] <= c'9':
            # Every number of 18 digits is below 2**63, but not every number of 19 digits.
            if index > (INT64_MAX - 9) // 10:
                return -1
            index = 10 * index + (key[i] - c'0')
            i += 1
        if i == first or (key[first] == c'0' and i > first + 1) or index >= self.grid[d]:
            return -1
        number = number * self.grid[d] + index
        if d < self.ndim - 1:
            if i >= n_key or key[i] != <uint8_t>self.sign:
                return -1
            i += 1
    return number if i == n_key else -1
