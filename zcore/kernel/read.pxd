"""Reading: each task brings the selected elements of one object into the caller's array."""
from libc.stdint cimport int64_t, uint8_t

from zcore.kernel.chunk_cache cimport ChunkCache
from zcore.kernel.fileio cimport Identity
from zcore.kernel.grid cimport Axis, Span
from zcore.kernel.plan cimport Plan, Worker


cdef class ReadPlan(Plan):
    cdef ChunkCache chunks     # that are kept between reads, or None
    cdef int64_t form          # of chunks: how they become bytes
    cdef bint keeps            # those that are decoded now as well
    # Takes the elements of a chunk from those that are kept, by the place of its bytes; whether it was there.
    cdef bint find_kept(self, const Identity *identity, int64_t base, int64_t size, const Span *spans,
                        Worker *worker) noexcept nogil
    # Ends what began by `worker.kept`: the chunk that was decoded with that code is kept, or not.
    cdef void end_kept(self, int code, Worker *worker) noexcept nogil
    # Gives what is selected of an object, or of a chunk in it, the fill value.
    cdef int fill_selected(self, const Axis *axes, const Span *spans, Worker *worker) noexcept nogil
    cdef int _fill_items(self, const Axis *axes, const Span *spans, Worker *worker) noexcept with gil
    cdef bint _find_object(self, const char *key, const Span *spans, Worker *worker) noexcept nogil
    cdef int _take_in_whole(self, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                            Worker *worker) noexcept nogil
    cdef int _take_items(self, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                         Worker *worker) noexcept with gil
    cdef int _take_points(self, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                          Worker *worker) noexcept nogil
