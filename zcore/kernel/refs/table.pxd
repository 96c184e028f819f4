"""References: keys, and for each the bytes that are its value, or where these lie in a target."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from zcore.kernel.select.tasks cimport Tasks

cdef enum:
    INLINE = -1                # in place of a target: the bytes are at hand
    REMOVED = -2               # there is no value any more
    WHOLE = -1                 # in place of a length: all of the target

cdef struct Reference:
    int64_t key                # where its bytes begin in those of all keys
    int64_t offset             # in the target, or in the bytes at hand
    int64_t n_bytes
    int n_key
    int target

cdef struct Slot:              # of a hash table
    uint32_t hash              # of the key: most others are told apart without a look at them
    int row                    # -1: it is free


cdef class ReferenceTable:
    cdef Reference *rows
    cdef int64_t n_rows
    cdef int64_t n_removed
    cdef int64_t capacity
    cdef uint8_t *keys         # of all rows, one behind the other
    cdef int64_t n_keys
    cdef int64_t keys_capacity
    cdef uint8_t *data         # of all that are at hand
    cdef int64_t n_data
    cdef int64_t data_capacity
    cdef int64_t n_unused      # of these bytes, because their keys have other values now
    cdef Slot *slots           # a hash table of rows
    cdef int64_t n_slots
    cdef uint64_t seed
    cdef int last_target       # and where its URL stands in the document that is read
    cdef int64_t last_url
    cdef int64_t n_last_url
    cdef int *order            # rows sorted by their keys; NULL until it is asked for
    cdef bint is_listed        # since the last new row; the next listing sorts the rows
    cdef list _targets
    cdef dict _target_of

    # The row of a key, or -1.
    cdef int64_t row_of(self, const uint8_t *key, int64_t n_key) noexcept nogil
    # The slot in which its number is, or would be; there is one.
    cdef Slot *_slot_of(self, const uint8_t *key, int64_t n_key, uint32_t hashed) noexcept nogil
    cdef uint32_t _hash_of(self, const uint8_t *key, int64_t n_key) noexcept nogil
    cdef int _put(self, const uint8_t *key, int64_t n_key, int target, int64_t offset, int64_t n_bytes) except -1
    cdef int _put_data(self, const uint8_t *key, int64_t n_key, const uint8_t *data, int64_t n_data) except -1
    cdef void _leave(self, const Reference *row) noexcept nogil
    cdef int _repack(self) except -1
    cdef int _number_of(self, url) except -1
    cdef int _reserve(self, int64_t n_rows) except -1
    cdef int _grow_slots(self, int64_t n_slots) except -1
    cdef int _sort(self) except -1
    cdef tuple _found_below(self, bytes prefix)
    cdef int64_t _row_of(self, bytes key) except? -2
    cdef object _value(self, int64_t i)
    cdef bytes _key(self, int64_t i)
    cdef int64_t _first_from(self, const uint8_t *key, int64_t n_key) noexcept nogil
    # Give the reference of a key, and all bytes that are at hand: 1. 0 where it stands for nothing, -1 where that is
    # not known here.
    cdef int look_up(self, const uint8_t *key, int64_t n_key, Reference *row, const uint8_t **data) noexcept nogil
    # The table in which the keys of these tasks are looked up.
    cdef ReferenceTable of_tasks(self, Tasks tasks)


# Whether a text is a key: see `zcore.stores.keys`.
cdef bint is_key(const uint8_t *key, int64_t n_key) noexcept nogil
