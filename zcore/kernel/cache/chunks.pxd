"""LRU cache of decoded chunks."""
from libc.stdint cimport int64_t

from zcore.kernel.io.files cimport Identity
from zcore.kernel.cache.lru cimport Cache, Kept


# Whether `identity`, as a store gives it, consists of five numbers; fills `result`.
cdef bint identity_of(tuple identity, Identity *result) except -1


cdef class ChunkCache(Cache):
    # Return the cached chunk of `n_bytes` bytes that was decoded from `size` bytes at `base` with `form`, with one more
    # reference, or NULL; see `Cache.get`.
    cdef Kept *find(self, const Identity *identity, int64_t base, int64_t size, int64_t form, int64_t n_bytes,
                    bint asks_again) noexcept nogil
    # Return memory to decode a chunk to, with one reference; NULL for a chunk that is too large. `identity` is trusted.
    cdef Kept *place(self, const Identity *identity, int64_t base, int64_t size, int64_t form,
                     int64_t n_bytes) noexcept nogil
