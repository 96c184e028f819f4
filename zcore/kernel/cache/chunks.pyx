# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""LRU cache of decoded chunks.

Compiled because a look-up must cost less than it saves, and a chunk may have only a few kilobytes. A chunk is cached
after decoding and before its elements are moved, with the identity that its object had when it was opened. Each read
first asks for the object's current identity, so a replaced chunk is not found.
"""
cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from libc.string cimport memcpy

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

    # for chunks that are decoded in Python

    def trusts_now(self, tuple identity not None):
        """Whether a chunk that is read with this identity now may be cached."""
        cdef Identity now
        return identity_of(identity, &now) and self.trusts(&now)

    def find_chunk(self, tuple identity not None, int64_t form, int64_t n_bytes):
        """Return the bytes of a cached chunk, read-only, or None."""
        cdef Identity now
        cdef KeptChunk found
        cdef Kept *kept = NULL
        if identity_of(identity, &now):
            kept = self.find(&now, 0, now.size, form, n_bytes, False)
        if kept == NULL:
            return None
        found = KeptChunk.__new__(KeptChunk)
        found.kept = kept
        return found

    def keep_chunk(self, tuple identity not None, int64_t form, chunk):
        """Cache the bytes of a chunk if there is room. `trusts_now` was true when its object was read."""
        cdef Identity read
        cdef Kept *kept = NULL
        cdef Py_buffer view
        if not identity_of(identity, &read):
            return
        PyObject_GetBuffer(chunk, &view, PyBUF_SIMPLE)
        try:
            kept = self.place(&read, 0, read.size, form, view.len)
            if kept != NULL:
                memcpy(kept.words, view.buf, view.len)
                self.put(kept)
                kept_release(kept)
        finally:
            PyBuffer_Release(&view)


@cython.final
cdef class KeptChunk:
    """The bytes of a cached chunk. They live as long as a buffer of them is in use."""

    cdef Kept *kept

    def __cinit__(self):
        self.kept = NULL

    def __dealloc__(self):
        if self.kept != NULL:
            kept_release(self.kept)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.kept.words, self.kept.n_bytes, True, flags)


cdef bint identity_of(tuple identity, Identity *result) except -1:
    try:
        result.device, result.inode, result.size, result.mtime_ns, result.ctime_ns = identity
    except (TypeError, ValueError, OverflowError):
        return False
    return True


# For the handles that were opened without a cache of their own. `zcore.config.cache` sets its capacity.
CHUNKS = ChunkCache(0)
