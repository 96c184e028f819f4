# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Decoded chunks that are kept between reads.

Compiled because a look-up must cost less than what it saves, which may be a chunk of a few kilobytes. A chunk is kept
as it was decoded, before its elements are moved, with the identity that its object had when it was opened. Each read
asks first what stands there now; so a chunk that anybody has replaced is not found any more.
"""
cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from libc.string cimport memcpy

from zcore.kernel.cache.lru cimport kept_new, kept_release


@cython.final
cdef class ChunkCache(Cache):
    """Decoded chunks, each with the identity of its object; see `Cache`.

    A chunk that is larger than all is not kept.
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
        """Keep at most so many bytes from now on."""
        with nogil:
            self.set_capacity(capacity, capacity)

    def info(self):
        """Return what is kept and how often it helped: a dict of hits, misses, chunks, nbytes and capacity."""
        return self._info("chunks")

    # for what is decoded in Python

    def trusts_now(self, tuple identity not None):
        """Whether a chunk may be kept that is made of bytes read with this identity just now."""
        cdef Identity now
        return identity_of(identity, &now) and self.trusts(&now)

    def find_chunk(self, tuple identity not None, int64_t form, int64_t n_bytes):
        """Return the bytes of a chunk that is kept, read-only, or None."""
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
        """Keep the bytes of a chunk, if there is room for it; `trusts_now` was true when its object was read."""
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
    """The bytes of a chunk that is kept, for as long as a buffer of them is in use."""

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


# Of the handles that were opened without a cache of their own; `zcore.config.cache` says how large it is.
CHUNKS = ChunkCache(0)
