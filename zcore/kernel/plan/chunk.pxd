"""The next steps of a task: a chunk is decoded and its elements are placed, or it is merged and encoded."""
from libc.stdint cimport int64_t, uint8_t

from zcore.kernel.io.files cimport Identity
from zcore.kernel.plan.plan cimport Plan, Worker
from zcore.kernel.select.grid cimport Axis, Span


# Decodes a chunk and places its selected elements in the caller's array.
cdef int decode_chunk(Plan plan, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                      Worker *worker) noexcept nogil
# Places the fill value in the selected elements of an object, or of a chunk in it.
cdef int place_fill(Plan plan, const Axis *axes, const Span *spans, Worker *worker) noexcept nogil
# Places the elements of a cached chunk, found by the range of its bytes; returns whether it was cached.
cdef bint place_kept(Plan plan, const Identity *identity, int64_t base, int64_t size, const Span *spans,
                     Worker *worker) noexcept nogil
# begin_kept makes room for a chunk to be cached, `worker.kept`, unless it is too large; `identity` is trusted. end_kept
# caches it, or not, by the code of decoding it.
cdef void begin_kept(Plan plan, const Identity *identity, int64_t base, int64_t size, Worker *worker) noexcept nogil
cdef void end_kept(Plan plan, int code, Worker *worker) noexcept nogil

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
