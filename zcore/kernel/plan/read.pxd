"""Reading: each task moves the selected elements of one object into the caller's array."""
from libc.stdint cimport int64_t, uint8_t

from zcore.kernel.select.grid cimport Axis, Span
from zcore.kernel.plan.plan cimport Plan, Worker
from zcore.kernel.plan.shard_read cimport ShardReader


cdef class ReadPlan(Plan):
    cdef ShardReader shards    # if objects are shards, else None
    cdef bint is_filled        # the caller's elements have the fill value already
    # Elements of varying length: of a chunk, or the fill value if there is no chunk (`n_bytes` is -1).
    cdef int _move_items(self, const uint8_t *encoded, int64_t n_bytes, const Axis *axes, const Span *spans,
                         Worker *worker) noexcept with gil
    cdef void _spread_files(self, int n_threads) noexcept nogil
    cdef bint _fits_cache(self) noexcept nogil
    cdef bint _find_object(self, const char *key, const Span *spans, Worker *worker) noexcept nogil
    cdef int _take_in_whole(self, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                            Worker *worker) noexcept nogil
    cdef int _take_points(self, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                          Worker *worker) noexcept nogil
