"""Reference table: keys, and for each its value as bytes or a byte range of a target. The same by chunk numbers."""
from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t

from zcore.kernel.io.files cimport Identity
from zcore.kernel.select.tasks cimport Tasks
from zcore.kernel.strided.copy cimport MAX_NDIM


cdef enum:
    INLINE = -1                # instead of a target: the bytes are in the table
    REMOVED = -2               # the key has no value any more
    WHOLE = -1                 # instead of a length: the whole target

cdef struct Reference:
    int64_t key                # where the key begins in `keys`
    int64_t offset             # in the target, or in `data`
    int64_t n_bytes
    int n_key
    int target

cdef struct Slot:              # of the hash table
    uint32_t hash              # of the key: distinguishes most keys without comparing them
    int row                    # -1: free


cdef class ReferenceTable:
    cdef Reference *rows
    cdef int64_t n_rows
    cdef int64_t n_removed
    cdef int64_t capacity
    cdef uint8_t *keys         # of all rows, concatenated
    cdef int64_t n_keys
    cdef int64_t keys_capacity
    cdef uint8_t *data         # of all inline values
    cdef int64_t n_data
    cdef int64_t data_capacity
    cdef int64_t n_unused      # bytes in `data` whose keys have other values now
    cdef Slot *slots           # a hash table of rows
    cdef int64_t n_slots
    cdef uint64_t seed
    cdef int last_target       # target of the previous reference, and where its URL is in the document
    cdef int64_t last_url
    cdef int64_t n_last_url
    cdef int *order            # rows sorted by key; NULL until needed
    cdef bint is_listed        # whether a listing was made since the last new row; the next one sorts the rows
    cdef list _targets
    cdef dict _target_of
    cdef int64_t targets_nbytes    # of the URLs, and of their places in the list and the dict
    cdef int64_t max_nbytes    # of memory; references that need more are refused
    cdef str advice

    # Returns the row of a key, or -1.
    cdef int64_t row_of(self, const uint8_t *key, int64_t n_key) noexcept nogil
    # Returns the slot that holds the key's row, or the free slot for it. There always is one.
    cdef Slot *_slot_of(self, const uint8_t *key, int64_t n_key, uint32_t hashed) noexcept nogil
    cdef int _put(self, const uint8_t *key, int64_t n_key, int target, int64_t offset, int64_t n_bytes) except -1
    cdef int _put_data(self, const uint8_t *key, int64_t n_key, const uint8_t *data, int64_t n_data) except -1
    cdef void _leave(self, const Reference *row) noexcept nogil
    cdef int _number_of(self, url) except -1
    cdef int _reserve(self, int64_t n_rows) except -1
    cdef int _sort(self) except -1
    cdef bytes _key(self, int64_t i)
    # Returns 1 with the reference of a key and the inline bytes; 0 if the key has no value; -1 if it is not known here.
    cdef int look_up(self, const uint8_t *key, int64_t n_key, Reference *row, const uint8_t **data) noexcept nogil
    # Returns the table to look up the keys of these tasks.
    cdef ReferenceTable of_tasks(self, Tasks tasks)


# Whether a text is a key: see `zcore.stores.keys`.
cdef bint is_key(const uint8_t *key, int64_t n_key) noexcept nogil


cdef struct Rows:              # of one file; empty if there is no such file
    int64_t n
    const int *targets
    const int64_t *offsets
    const int64_t *lengths
    const uint8_t *data


cdef class Records:
    cdef Rows rows
    cdef readonly object targets
    cdef readonly object offsets
    cdef readonly object lengths
    cdef tuple columns                     # their `Bytes`, which `rows` points into
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
    cdef tuple held            # the memory of both
    cdef list files            # keeps the memory of the rows alive

cdef struct Place:             # the bytes of a key
    const uint8_t *data        # in memory; NULL: in the file
    int fd                     # -1: no file
    bint is_shared             # the descriptor stays open for other keys
    int64_t offset
    int64_t n_bytes            # all of them were in the file when it was opened
    Identity identity          # of the file

cdef struct File:
    int64_t target             # -1: a free slot
    int fd                     # negative: Python could not open it
    Identity identity


cdef class Extents:
    cdef ReferenceTable table
    cdef bytes prefix
    cdef const char *prefix_text
    cdef int64_t n_prefix
    cdef object open_target
    cdef object exception      # exception of a signal handler that was raised while a target was opened
    cdef int64_t is_interrupted            # releases the exception
    cdef int64_t guard         # spin lock of the fields below
    cdef int64_t n_files
    cdef int64_t max_open      # maximum targets that all plans hold open
    cdef int64_t n_slots
    cdef File *files           # a hash table by target

    # Looks up references for these tasks that are not loaded yet; to be called before `find`.
    cdef int prepare(self, Tasks tasks) except -1
    # Finds the bytes of a key: OK, MISSING, or INTERRUPTED if Python has to look.
    cdef int find(self, const char *key, Place *place) noexcept nogil
    # Releases the result of `find`.
    cdef void leave(self, const Place *place) noexcept nogil
    cdef File *_slot_of(self, int64_t target) noexcept nogil
    cdef void _open(self, int target, Place *place) noexcept with gil
