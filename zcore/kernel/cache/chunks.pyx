# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""LRU cache of decoded chunks.

Compiled because a look-up must cost less than it saves, and a chunk may have only a few kilobytes. A chunk is cached
after decoding and before its elements are moved, with the identity that its object had when it was opened. Each read
first asks for the object's current identity, so a replaced chunk is not found.
"""
cimport cython

from zcore.kernel.cache.lru cimport kept_new, kept_release


@cython.final
cdef class ChunkCache(Cache):
    """LRU cache of decoded chunks, each with the identity of its object; see `Cache`.

    A chunk that is larger than the capacity is not cached.
    """

    cdef Kept *find(self, const Identity *identity, int64_t base, int64_t size, int64_t form, int64_t n_bytes,
                    bint asks_again) noexcept nogil:
        cdef Kept *kept = self.get(identity, base, size, form, asks_again)
        if kept != NULL and kept.n_bytes != n_bytes:
            kept_release(kept)
            return NULL
        return kept

    cdef Kept *place(self, const Identity *identity, int64_t base, int64_t size, int64_t form,
                     int64_t n_bytes) noexcept nogil:
        cdef Kept *kept = kept_new(n_bytes) if n_bytes <= self.max_nbytes else NULL
        if kept != NULL:
            kept.identity = identity[0]
            kept.base = base
            kept.size = size
            kept.form = form
        return kept

    def resize(self, int64_t capacity):
        """Set the capacity in bytes."""
        with nogil:
            self.set_capacity(capacity, capacity)

    def info(self):
        """Return the use of the cache: a dict of hits, misses, chunks, nbytes and capacity."""
        return self._info("chunks")


cdef bint identity_of(tuple identity, Identity *result) except -1:
    try:
        result.device, result.inode, result.size, result.mtime_ns, result.ctime_ns = identity
    except (TypeError, ValueError, OverflowError):
        return False
    return True


# For the handles that were opened without a cache of their own. `zcore.config.cache` sets its capacity.
CHUNKS = ChunkCache(0)
