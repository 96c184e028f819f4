"""References of the chunks of one array by chunk number, in files of a fixed number each: columns without keys."""
from libc.stdint cimport int64_t, uint8_t

from zcore.kernel.strided.copy cimport MAX_NDIM
from zcore.kernel.refs.table cimport ReferenceTable


cdef struct Rows:              # of one file; empty if there is no such file
    int64_t n
    const int *targets
    const int64_t *offsets
    const int64_t *lengths
    const uint8_t *data


cdef class Records:
    cdef Rows rows
    cdef readonly object targets           # the arrays that `rows` points into
    cdef readonly object offsets
    cdef readonly object lengths
    cdef readonly bytes data


cdef class RecordTable(ReferenceTable):
    cdef readonly bytes prefix             # of the keys
    cdef const char *prefix_text
    cdef int64_t n_prefix
    cdef readonly tuple grid_shape
    cdef readonly int64_t record_size
    cdef readonly bytes separator          # between the indices in a key; `sign` is its only byte
    cdef char sign
    cdef object load_file
    cdef int ndim
    cdef int64_t grid[MAX_NDIM]
    cdef int64_t n_files       # loaded files, for the tasks of this table
    cdef int64_t *numbers      # of the files, ascending
    cdef Rows *rows_of         # of each file
    cdef list files            # keeps the memory of the rows alive

    cdef int _take(self, list numbers, list files) except -1
