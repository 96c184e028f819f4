"""Writing: each task replaces one stored object, under its lock."""
from libc.stdint cimport int64_t, uint8_t, uint64_t

from zcore.kernel.copy cimport MAX_NDIM
from zcore.kernel.fileio cimport Identity
from zcore.kernel.grid cimport Span
from zcore.kernel.holds cimport ObjectLocks
from zcore.kernel.plan cimport Plan, Worker
from zcore.kernel.tasks cimport Layout


cdef enum:
    FILLED = -3                # instead of a size: nothing but the fill value, not to be stored


cdef class WritePlan(Plan):
    cdef ObjectLocks locks
    cdef bytes document
    cdef const char *document_name
    cdef Identity identity
    cdef bint has_identity
    cdef bytes content
    cdef const char *content_text
    cdef int64_t n_content     # -1: not compared
    cdef int64_t old_shape[MAX_NDIM]
    cdef readonly bint keep_filled
    cdef int fsync
    cdef uint64_t token
    cdef int64_t n_workers

    cdef int _compare_content(self, Worker *worker) noexcept nogil
    cdef int _replace(self, const Span *spans, const char *key, Worker *worker) noexcept nogil
    cdef int _prepare(self, const Span *spans, const char *key, Worker *worker, bint *erase) noexcept nogil
    cdef int64_t encode_covered(self, const Span *spans, Worker *worker, const uint8_t **encoded) noexcept nogil
    cdef int _merge(self, const Span *spans, const char *key, Worker *worker) noexcept nogil
    cdef int _merge_locked(self, const Span *spans, const char *key, Worker *worker) noexcept nogil
    cdef int64_t encode_merged(self, const Span *spans, bint found, Worker *worker,
                               const uint8_t **encoded) noexcept nogil
    cdef void _reset_outside(self, const Span *spans, const Layout *layout, char *chunk) noexcept nogil
    cdef int64_t _encode(self, const uint8_t *chunk, Worker *worker, const uint8_t **encoded) noexcept nogil
    cdef int _lock(self, const char *key, Worker *worker) noexcept nogil
    cdef void _unlock(self, Worker *worker) noexcept nogil
