"""Writing objects that are shards: the part of a `WritePlan` that handles them."""
from libc.stdint cimport int64_t, uint8_t, uint64_t

from zcore.kernel.io.files cimport Buffer, Content
from zcore.kernel.plan.plan cimport Plan, Worker
from zcore.kernel.plan.shard_index cimport Extent, IndexForm, ShardProgram
from zcore.kernel.plan.shard_threads cimport Crews
from zcore.kernel.select.grid cimport Span
from zcore.kernel.strided.copy cimport MAX_NDIM


cdef struct NewShard:          # the shard that is being written
    int level                  # number of shards around it
    Buffer *built              # its bytes in memory; NULL: it goes to a file
    const char *key            # key of that file
    int fd                     # -1 until there is something to write
    IndexForm form
    int64_t size               # its size so far, with the batch
    int64_t n_batch
    int64_t n_stored           # number of its chunks; carried over damaged chunks may have no bytes
    uint64_t *words            # of its index

cdef struct OldShard:          # the shard that is replaced
    bint found
    Content content
    uint64_t *words            # of its index, if it was found

cdef struct Job:               # the chunks of a shard that are to be encoded
    const Span *spans          # of the shard
    const OldShard *old        # NULL: all elements inside the array are selected
    NewShard *new
    int64_t first[MAX_NDIM]    # from `chunks_of`, if elements are selected
    int64_t count[MAX_NDIM]


cdef class ShardWriter(Crews):
    cdef ShardProgram shards
    cdef bint in_parts         # whether a shard is written to its file in parts: not with codecs behind it

    # Follows a plan that is begun anew: OK or NO_MEMORY.
    cdef int follow(self, Plan plan, int n_threads) noexcept nogil
    # Write a covered shard, or one that is merged with the old one, to a temporary file: OK, FILLED, SAME or a code.
    cdef int stage_covered(self, Plan plan, const Span *spans, const char *key, Worker *worker) noexcept nogil
    cdef int stage_merged(self, Plan plan, const Span *spans, const char *key, Worker *worker) noexcept nogil
    # Finds the needed parts of a shard that is passed: see `ShardReader`.
    cdef int find_wanted(self, Plan plan, const Span *spans, const Extent **extents, int64_t *n,
                         Worker *worker) noexcept nogil
    # Undoes the codecs behind a stored shard: `worker.content` gets its bytes, for `encode_merged`.
    cdef int unwrap(self, Plan plan, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                    Worker *worker) noexcept nogil
    # Make a shard in memory: return its size, FILLED or FAILED.
    cdef int64_t encode_covered(self, Plan plan, const Span *spans, Worker *worker,
                                const uint8_t **encoded) noexcept nogil
    cdef int64_t encode_merged(self, Plan plan, const Span *spans, bint found, Worker *worker,
                               const uint8_t **encoded) noexcept nogil
