# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""LRU caches of content of files, limited in bytes: of decoded chunks, and of shard indices (`plan.shard_index`).

Compiled because a look-up precedes the read of each chunk. Safe among threads and across a fork. A cache is a hash
table and a list under a spin lock that is held for some instructions. Content that one thread drops while another
thread reads it lives until the reader releases it.
"""
import os
import weakref

cimport cython
from libc.stdlib cimport free
from libc.string cimport memset

from zcore.kernel.atomics cimport zc_add, zc_back_off, zc_load, zc_store, zc_swap_if
from zcore.kernel.io.files cimport is_final, same_identity
from zcore.kernel.memory cimport zc_new

cdef enum:
    OVERHEAD_NBYTES = 64       # memory of one entry beside its structure and bytes

_all_caches = weakref.WeakSet()


cdef Kept *kept_new(const Identity *identity, int64_t base, int64_t size, int64_t form, int64_t n_bytes) noexcept nogil:
    cdef Kept *kept = <Kept *>zc_new(<int64_t>(<uint64_t>n_bytes + sizeof(Kept)), 1)
    if kept != NULL:
        kept.identity = identity[0]
        kept.base = base
        kept.size = size
        kept.form = form
        kept.n_bytes = n_bytes
        kept.n_holders = 1
        kept.words = <uint64_t *>(kept + 1)
    return kept


cdef void kept_release(Kept *kept) noexcept nogil:
    # Releases what this holder did, and acquires what all others did before the last one frees it.
    if zc_add(&kept.n_holders, -1) == 1:
        free(kept)


cdef int64_t _cost(const Kept *kept) noexcept nogil:
    return kept.n_bytes + <int64_t>sizeof(Kept) + OVERHEAD_NBYTES


cdef uint64_t _bucket(const Identity *identity, int64_t base) noexcept nogil:
    cdef uint64_t hash = (identity.inode + <uint64_t>base * 0xC2B2AE3D27D4EB4FULL) * 0x9E3779B97F4A7C15ULL
    hash += <uint64_t>identity.ctime_ns
    hash ^= hash >> 29
    return (hash * 0xBF58476D1CE4E5B9ULL >> 32) % N_BUCKETS


cdef class Cache:
    """LRU cache of content of files, each with the identity of its file.

    A file that is replaced has another identity, so content is never used for another file.

    Parameters
    ----------
    capacity : int
        Maximum bytes of all content.
    trusted_age_ns : int
        Age from which on the identity of a file is trusted. File systems count time in steps, so a younger file may be
        replaced by a file of the same inode, size and times, unless the file system tells each change.
    """

    def __cinit__(self, int64_t capacity, int64_t trusted_age_ns=2_000_000_000, *args, **kwargs):
        self.capacity = capacity
        self.max_nbytes = capacity
        self.trusted_age_ns = trusted_age_ns
        _all_caches.add(self)

    def __dealloc__(self):
        with nogil:
            _release_row(_shrink(self, 0))

    cdef Kept *get(self, const Identity *identity, int64_t base, int64_t size, int64_t form,
                   bint asks_again) noexcept nogil:
        cdef Kept *kept
        _lock(self)
        kept = _look_up(self, identity, base, size, form)
        if kept == NULL:
            self.n_misses += not asks_again
        else:
            self.n_hits += 1
            zc_add(&kept.n_holders, 1)
            if kept != self.newest:
                _unlink(self, kept)
                _touch(self, kept)
        zc_store(&self.guard, 0)
        return kept

    cdef bint trusts(self, const Identity *identity, int fd, int dirfd) noexcept nogil:
        return is_final(identity, fd, dirfd, self.trusted_age_ns)

    cdef void put(self, Kept *kept) noexcept nogil:
        cdef Kept **bucket = &self.buckets[_bucket(&kept.identity, kept.base)]
        cdef Kept *dropped = NULL
        cdef int64_t n_bytes = _cost(kept)
        _lock(self)
        # Another thread may have cached the same content at the same time.
        if n_bytes <= self.max_nbytes and _look_up(self, &kept.identity, kept.base, kept.size, kept.form) == NULL:
            dropped = _shrink(self, self.capacity - n_bytes)
            zc_add(&kept.n_holders, 1)
            kept.next = bucket[0]
            bucket[0] = kept
            _touch(self, kept)
            self.n_bytes += n_bytes
            self.n_kept += 1
        zc_store(&self.guard, 0)
        _release_row(dropped)

    def clear(self):
        """Drop all content."""
        cdef Kept *dropped
        with nogil:
            _lock(self)
            dropped = _shrink(self, 0)
            zc_store(&self.guard, 0)
            _release_row(dropped)

    cdef dict _info(self, str what):
        cdef int64_t n_hits, n_misses, n_kept, n_bytes, capacity
        with nogil:
            _lock(self)
            n_hits, n_misses, n_kept, n_bytes = self.n_hits, self.n_misses, self.n_kept, self.n_bytes
            capacity = self.capacity
            zc_store(&self.guard, 0)
        return {"hits": n_hits, "misses": n_misses, what: n_kept, "nbytes": n_bytes, "capacity": capacity}


cdef void _lock(Cache self) noexcept nogil:
    # The exchange acquires the changes made under the guard; the store of 0 releases them.
    cdef int64_t n = 0
    while not zc_swap_if(&self.guard, 0, 1):
        zc_back_off(n)
        n += 1


cdef void _touch(Cache self, Kept *kept) noexcept nogil:
    """Make unlinked content the newest."""
    kept.newer = NULL
    kept.older = self.newest
    if self.newest != NULL:
        self.newest.newer = kept
    else:
        self.oldest = kept
    self.newest = kept


cdef Kept *_look_up(Cache self, const Identity *identity, int64_t base, int64_t size, int64_t form) noexcept nogil:
    cdef Kept *kept = self.buckets[_bucket(identity, base)]
    while kept != NULL and not (kept.form == form and kept.base == base and kept.size == size
                                and same_identity(&kept.identity, identity)):
        kept = kept.next
    return kept


cdef void _unlink(Cache self, Kept *kept) noexcept nogil:
    """Remove content from the list."""
    if kept.newer != NULL:
        kept.newer.older = kept.older
    else:
        self.newest = kept.older
    if kept.older != NULL:
        kept.older.newer = kept.newer
    else:
        self.oldest = kept.newer


cdef Kept *_shrink(Cache self, int64_t n_bytes) noexcept nogil:
    """Drop the oldest until at most `n_bytes` are left. Return a list of the dropped, to release unlocked."""
    cdef Kept *dropped = NULL
    cdef Kept *kept
    cdef Kept **place
    while self.oldest != NULL and self.n_bytes > n_bytes:
        kept = self.oldest
        place = &self.buckets[_bucket(&kept.identity, kept.base)]
        while place[0] != kept:
            place = &place[0].next
        place[0] = kept.next
        _unlink(self, kept)
        self.n_bytes -= _cost(kept)
        self.n_kept -= 1
        kept.next = dropped
        dropped = kept
    return dropped


cdef void _release_row(Kept *kept) noexcept nogil:
    cdef Kept *next
    while kept != NULL:
        # Freeing megabytes takes time; done here, outside the lock, no other thread waits for it.
        next = kept.next
        kept_release(kept)
        kept = next


def _after_fork_in_child():
    """Free all caches. One that a thread was changing, which is no more, starts anew; its memory is lost."""
    cdef Cache cache
    for cache in list(_all_caches):
        if zc_load(&cache.guard):
            memset(cache.buckets, 0, sizeof(cache.buckets))
            cache.newest = cache.oldest = NULL
            cache.n_bytes = cache.n_kept = 0
            zc_store(&cache.guard, 0)


os.register_at_fork(after_in_child=_after_fork_in_child)


# decoded chunks

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

    def resize(self, int64_t capacity):
        """Set the capacity in bytes."""
        cdef Kept *dropped
        with nogil:
            _lock(self)
            self.capacity = capacity
            zc_store(&self.max_nbytes, capacity)
            dropped = _shrink(self, capacity)
            zc_store(&self.guard, 0)
            _release_row(dropped)

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
