"""Reading: each task brings the selected elements of one object into the caller's array."""
from libc.stdint cimport int64_t

from zcore.kernel.chunk_cache cimport ChunkCache
from zcore.kernel.grid cimport Span
from zcore.kernel.plan cimport Plan, Worker


cdef class ReadPlan(Plan):
    cdef ChunkCache chunks     # that are kept between reads, or None
    cdef int64_t form          # of chunks: how they become bytes
    cdef bint keeps            # those that are decoded now as well
    cdef bint find_kept(self, const char *key, const Span *spans, Worker *worker) noexcept nogil
    cdef void copy_out(self, const char *chunk, const Span *spans, Worker *worker) noexcept nogil
    cdef void fill_in(self, const Span *spans) noexcept nogil
