"""What is kept in memory between reads: content of files, each with the identity of its file.

An index of a shard and a decoded chunk are kept in the same way. A reader asks for the identity that stands there
now, so content of a file that was replaced is never found again, by any program.
"""
from libc.stdint cimport int64_t, uint64_t, uint8_t

from zcore.kernel.io.files cimport Identity


cdef enum:
    N_BUCKETS = 4096

cdef struct Kept:              # content that was read; each holder releases it
    Identity identity          # of the file
    int64_t base               # where in the file it begins,
    int64_t size               # on how many bytes: 0 and the file's, where it is the whole file
    int64_t form               # how it was stored: nothing else is made of the same bytes
    int64_t n_bytes            # of `words`
    int64_t n_holders
    Kept *next                 # in the bucket of the cache
    Kept *newer
    Kept *older
    uint64_t *words            # the content


# NULL when there is no memory; held once.
cdef Kept *kept_new(int64_t n_bytes) noexcept nogil
cdef void kept_release(Kept *kept) noexcept nogil


cdef class Cache:
    cdef int64_t guard         # spin lock of what follows
    cdef readonly int64_t capacity
    cdef int64_t max_nbytes    # of what is worth keeping
    cdef int64_t trusted_age_ns
    cdef int64_t n_bytes
    cdef int64_t n_kept
    cdef int64_t n_hits
    cdef int64_t n_misses
    cdef Kept *newest
    cdef Kept *oldest
    cdef Kept *buckets[N_BUCKETS]
    cdef void *next            # the caches of this process are a list, for a fork
    cdef void *before
    # What is kept of a file, held once more, or NULL. `asks_again`: NULL is no miss, as the caller will look once more.
    cdef Kept *get(self, const Identity *identity, int64_t base, int64_t size, int64_t form,
                   bint asks_again) noexcept nogil
    # Whether content that is read from now on may be kept by this identity, which was taken just now.
    cdef bint trusts(self, const Identity *identity) noexcept nogil
    # Keeps what was read from a file of trusted identity, if there is room for it.
    cdef void put(self, Kept *kept) noexcept nogil
    cdef void set_capacity(self, int64_t capacity, int64_t max_nbytes) noexcept nogil
    cdef void _lock(self) noexcept nogil
    cdef Kept *_look_up(self, const Identity *identity, int64_t base, int64_t size, int64_t form) noexcept nogil
    cdef void _touch(self, Kept *kept) noexcept nogil
    cdef void _unlink(self, Kept *kept) noexcept nogil
    cdef Kept *_shrink(self, int64_t n_bytes) noexcept nogil
    cdef void _enlist(self) noexcept nogil
    cdef void _delist(self) noexcept nogil
    cdef dict _info(self, str what)
