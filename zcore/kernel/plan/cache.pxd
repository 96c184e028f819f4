"""LRU cache of content of files, each with the identity of its file.

Shard indices and decoded chunks are cached in the same way. A reader looks up by the file's current identity, so
content of a replaced file is never found again, whichever program replaced it.
"""
from libc.stdint cimport int64_t, uint64_t

from zcore.kernel.io.files cimport Identity

cdef enum:
    N_BUCKETS = 4096

cdef struct Kept:              # content that was read; released by each holder
    Identity identity          # of the file
    int64_t base               # offset of the content in the file
    int64_t size               # its bytes in the file; for a whole file, `base` is 0 and this is the file's size
    int64_t form               # how the content was decoded: other forms do not match
    int64_t n_bytes            # of `words`
    int64_t n_holders
    Kept *next                 # in the bucket of the cache
    Kept *newer
    Kept *older
    uint64_t *words            # the content


# Returns memory for content, with one reference; NULL without memory.
cdef Kept *kept_new(const Identity *identity, int64_t base, int64_t size, int64_t form, int64_t n_bytes) noexcept nogil
cdef void kept_release(Kept *kept) noexcept nogil


cdef class Cache:
    cdef int64_t guard         # spin lock of the fields below
    cdef readonly int64_t capacity
    cdef int64_t max_nbytes    # content larger than this is not cached; read without the guard, no order: a number
    cdef int64_t trusted_age_ns
    cdef int64_t n_bytes
    cdef int64_t n_kept
    cdef int64_t n_hits
    cdef int64_t n_misses
    cdef Kept *newest
    cdef Kept *oldest
    cdef Kept *buckets[N_BUCKETS]
    cdef object __weakref__
    # Return the content with one more reference, or NULL. `asks_again`: NULL is no miss, the caller looks again.
    cdef Kept *get(self, const Identity *identity, int64_t base, int64_t size, int64_t form,
                   bint asks_again) noexcept nogil
    # Whether content that is read from now on may be cached with this identity, which was taken just now; `fd` and
    # `dirfd` as for `is_final`.
    cdef bint trusts(self, const Identity *identity, int fd, int dirfd) noexcept nogil
    # Caches content that was read from a file of trusted identity, if there is room.
    cdef void put(self, Kept *kept) noexcept nogil
    cdef dict _info(self, str what)


# Whether `identity`, as a store gives it, consists of five numbers; fills `result`.
cdef bint identity_of(tuple identity, Identity *result) except -1


cdef class ChunkCache(Cache):
    # Return the cached chunk of `n_bytes` bytes that was decoded from `size` bytes at `base` with `form`, with one more
    # reference, or NULL; see `Cache.get`.
    cdef Kept *find(self, const Identity *identity, int64_t base, int64_t size, int64_t form, int64_t n_bytes,
                    bint asks_again) noexcept nogil
