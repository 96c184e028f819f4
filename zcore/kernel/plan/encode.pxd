"""The steps of a task that writes: elements are merged with a stored chunk, and the chunk is encoded."""
from libc.stdint cimport int64_t, uint8_t

from zcore.kernel.plan.plan cimport Plan, Worker
from zcore.kernel.select.grid cimport Span


# Prepares a stored chunk for `encode_merged_chunk`: it is decoded, or merged block by block. OK or a code.
cdef int merge_chunk(Plan plan, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                     Worker *worker) noexcept nogil
# Encodes the chunk that merge_chunk has prepared, or a new one, if none was `found`: its size, FILLED or FAILED.
cdef int64_t encode_merged_chunk(Plan plan, const Span *spans, bint found, Worker *worker,
                                 const uint8_t **encoded) noexcept nogil
# Encodes a chunk of which all elements inside the array are written.
cdef int64_t encode_covered_chunk(Plan plan, const Span *spans, Worker *worker,
                                  const uint8_t **encoded) noexcept nogil
# Whether a chunk lies in `old_shape`: 1 yes, 0 no, -1 in part.
cdef int is_inside(Plan plan, const Span *chunk) noexcept nogil
