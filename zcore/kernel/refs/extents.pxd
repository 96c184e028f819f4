"""Objects that are parts of other files: finds the bytes of a key and opens their file."""
from libc.stdint cimport int64_t, uint8_t

from zcore.kernel.io.files cimport Identity
from zcore.kernel.refs.table cimport ReferenceTable
from zcore.kernel.select.tasks cimport Tasks


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
