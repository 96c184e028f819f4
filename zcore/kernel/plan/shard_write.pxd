"""Writing objects that are shards: the part of a `WritePlan` that handles them."""
from libc.stdint cimport int64_t, uint8_t

from zcore.kernel.io.files cimport Buffer
from zcore.kernel.plan.plan cimport Plan, Worker
from zcore.kernel.plan.shard_index cimport Extent, ShardProgram
from zcore.kernel.select.grid cimport Span
from zcore.kernel.status cimport Status


cdef struct Slot:              # a part that is encoded and not yet added
    int64_t ready              # 1 releases the fields below to the owner, 0 the slot to helpers, with `n_added`
    int64_t n_bytes
    Buffer encoded

cdef struct Crew:              # an object whose parts are being encoded, on its owner's stack
    void *job
    int64_t n_parts
    int64_t n_slots
    int64_t n_begun            # no order: each number is taken once
    int64_t n_added            # releases slots: a helper acquires it before it fills one again
    int64_t n_helpers          # threads beside the owner that use it; 0 acquires what they did, before it is freed
    int64_t failure            # 0; 1 while `status` is being filled; then 2, which releases that
    Status status
    void *exception            # exception of a codec in Python, if that failed
    Slot *slots


cdef class ShardWriter:
    cdef ShardProgram shards
    cdef int n_crew            # maximum threads that run the plan
    cdef Crew **crews          # slots for as many, NULL for a free one
    cdef int64_t guard         # spin lock of the slots
    # Tasks in progress. No order: a crew is found under the guard. A thread that looks between the choice of a task and
    # its begin may leave without helping.
    cdef int64_t n_open
    cdef bint parts_are_encoded    # False: parts without any codec are only copied, so helpers would not help

    # Follows the number of threads: OK or NO_MEMORY.
    cdef int follow(self, Plan plan, int n_threads) noexcept nogil
    # Encodes parts of other threads' shards until these are done.
    cdef void help(self, Plan plan, Worker *worker) noexcept nogil
    # Write a covered shard, or one that is merged with the old one, to a temporary file: OK, FILLED, SAME or a code.
    cdef int stage_covered(self, Plan plan, const Span *spans, const char *key, Worker *worker) noexcept nogil
    cdef int stage_merged(self, Plan plan, const Span *spans, const char *key, Worker *worker) noexcept nogil
    # Finds the needed parts of a shard that is passed: see `ShardReader`.
    cdef int find_wanted(self, Plan plan, const Span *spans, const Extent **extents, int64_t *n,
                         Worker *worker) noexcept nogil
    # Make a shard in memory: return its size, FILLED or FAILED.
    cdef int64_t encode_covered(self, Plan plan, const Span *spans, Worker *worker,
                                const uint8_t **encoded) noexcept nogil
    cdef int64_t encode_merged(self, Plan plan, const Span *spans, bint found, Worker *worker,
                               const uint8_t **encoded) noexcept nogil
