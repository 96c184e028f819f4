"""Decoded chunks that are kept between reads."""
from libc.stdint cimport int64_t

from zcore.kernel.io.files cimport Identity
from zcore.kernel.cache.lru cimport Cache, Kept


# Whether an identity that a store gives is one of five numbers.
cdef bint identity_of(tuple identity, Identity *result) except -1


cdef class ChunkCache(Cache):
    # The chunk of `n_bytes` bytes that was made of those `size` bytes of an object in that form, held once more, or
    # NULL; see `Cache.get`.
    cdef Kept *find(self, const Identity *identity, int64_t base, int64_t size, int64_t form, int64_t n_bytes,
                    bint asks_again) noexcept nogil
    # A place to decode a chunk to, held once; NULL for one that is too large. The identity is trusted.
    cdef Kept *place(self, const Identity *identity, int64_t base, int64_t size, int64_t form,
                     int64_t n_bytes) noexcept nogil
