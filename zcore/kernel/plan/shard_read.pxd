"""Reading objects that are shards: the step of a `ReadPlan` that decodes them. Their chunks are fetched."""
from libc.stdint cimport int64_t

from zcore.kernel.io.files cimport Buffer
from zcore.kernel.plan.plan cimport Object, Plan, Worker
from zcore.kernel.plan.shard_index cimport Extent, IndexCache
from zcore.kernel.select.grid cimport Span
from zcore.kernel.strided.copy cimport MAX_NDIM


cdef struct Shard:             # a shard whose selected chunks are read
    Object object
    bint is_trusted            # its chunks are cached: its identity was trusted when it was opened, see `Cache.trusts`
    bint notes_wanted          # a missing index is noted among the extents, as chunk -1
    int64_t n                  # selected chunks
    Extent *extents            # of these chunks, in the order of the bytes

cdef struct OpenShard:
    int64_t shard              # number of the shard in the plan; -1: a free slot, and releases it
    int64_t state              # READY, GONE and UNREADABLE release the fields below
    int64_t n_left             # groups of its chunks that are not done; the last one acquires what the others did
    Buffer extents
    Shard read

cdef struct Search:            # walk through the selected chunks of a shard
    Shard *shard
    const Span *object         # position of the shard
    int64_t first[MAX_NDIM]    # first chunks, from `chunks_of` for the last level
    int64_t count[MAX_NDIM]


cdef class ShardReader:
    cdef IndexCache cache
    cdef int64_t n_places
    cdef OpenShard *places
    cdef int64_t n_inside      # threads that run the plan; the last one acquires what the others did
    cdef int64_t guard         # spin lock of `places`

    # Follows the plan's selection and number of threads: OK or NO_MEMORY.
    cdef int follow(self, Plan plan, int n_threads) noexcept nogil
    # A thread starts and ends running the plan; the last one closes all open shards.
    cdef void enter(self) noexcept nogil
    cdef void leave(self) noexcept nogil
    # Reads a group of chunks of a shard in a file.
    cdef int run_task(self, Plan plan, int64_t task, Worker *worker) noexcept nogil
    # Reads a shard that the caller has passed, whole or in blocks. find_wanted finds its needed parts: `n` extents;
    # those with chunk -1 are parts of an index that must be passed before more can be found.
    cdef int read_passed(self, Plan plan, const Object *object, const Span *spans, Worker *worker) noexcept nogil
    cdef int find_wanted(self, Plan plan, const Span *spans, const Extent **extents, int64_t *n,
                         Worker *worker) noexcept nogil
    # Whether the selection touches fewer than half of the chunks of a shard.
    cdef bint is_few(self, Plan plan, int64_t task)
