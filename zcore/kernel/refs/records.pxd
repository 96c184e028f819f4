"""References of the chunks of one array by their numbers, in files of so many each: columns, and no keys."""
from libc.stdint cimport int64_t, uint8_t

from zcore.kernel.strided.copy cimport MAX_NDIM
from zcore.kernel.refs.table cimport ReferenceTable


cdef struct Rows:              # of one file; none, if there is no such file
    int64_t n
    const int *targets
    const int64_t *offsets
    const int64_t *lengths
    const uint8_t *data


cdef class Records:
    cdef Rows rows
    cdef readonly object targets           # what these point into
    cdef readonly object offsets
    cdef readonly object lengths
    cdef readonly bytes data


cdef class RecordTable(ReferenceTable):
    cdef readonly bytes prefix             # of a key
    cdef const char *prefix_text
    cdef int64_t n_prefix
    cdef readonly tuple grid_shape
    cdef readonly int64_t record_size
    cdef readonly bytes separator          # of a key's indices, and the sign
    cdef char sign
    cdef object load_file
    cdef int ndim
    cdef int64_t grid[MAX_NDIM]
    cdef int64_t n_files       # that are loaded, for the tasks that this table is for
    cdef int64_t *numbers      # of them, ascending
    cdef Rows *rows_of         # each of them
    cdef list files            # whose these are

    cdef int64_t _number_of_key(self, const uint8_t *key, int64_t n_key) noexcept nogil
    cdef int _take(self, list numbers, list files) except -1
