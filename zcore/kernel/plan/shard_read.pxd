"""Reading objects that are shards: the part of a `ReadPlan` that handles them."""
from libc.stdint cimport int64_t, uint8_t

from zcore.kernel.io.files cimport Buffer, Content, Identity
from zcore.kernel.plan.plan cimport Plan, Worker
from zcore.kernel.plan.shard_index cimport Extent, IndexCache, IndexForm, ShardIndex, ShardProgram
from zcore.kernel.plan.shard_levels cimport ShardLevels
from zcore.kernel.select.grid cimport Axis, Span
from zcore.kernel.status cimport Status
from zcore.kernel.strided.copy cimport MAX_NDIM


cdef struct Shard:             # a shard whose selected chunks are read; levels count from the outermost, 0
    Content content
    Identity identity          # of the file, if it is one
    bint is_trusted            # whether the identity was trusted when it was opened, see `Cache.trusts`
    bint is_shared             # the file stays open when the shard is closed
    bint notes_wanted          # a missing index is noted among the extents, as chunk -1
    int level                  # level of the shard
    int last                   # level of its chunks: shards between the two levels lie in the same bytes
    int64_t n                  # selected chunks
    Extent *extents            # of these chunks, in the order of the bytes

cdef struct OpenShard:
    int64_t shard              # number of the shard in the plan; -1: a free slot
    int64_t state
    int64_t n_left             # groups of its chunks that are not done
    Buffer extents
    Shard read

cdef struct Search:            # walk through the selected chunks of a shard
    Shard *shard
    const Span *object         # position of the shard
    int64_t first[MAX_NDIM]    # first chunks, from `chunks_of` for the last level
    int64_t count[MAX_NDIM]


cdef class ShardReader:
    cdef ShardProgram shards
    cdef ShardLevels levels
    cdef int n_open            # levels down to which a shard's file is read in parts
    cdef IndexCache cache
    cdef int64_t n_places
    cdef OpenShard *places
    cdef int64_t n_inside      # threads that run the plan
    cdef int64_t guard         # spin lock of `places`

    # Follows the plan's selection and number of threads: OK or NO_MEMORY.
    cdef int follow(self, Plan plan, int n_threads) noexcept nogil
    # Whether chunks are read from files as they are stored, so that each has an offset there.
    cdef bint reads_chunks(self) noexcept nogil
    # A thread starts and ends running the plan; the last one closes all open shards.
    cdef void enter(self) noexcept nogil
    cdef void leave(self) noexcept nogil
    # Reads a group of chunks of a shard in a file.
    cdef int run_task(self, Plan plan, int64_t task, Worker *worker) noexcept nogil
    # Reads a shard that the caller has passed, whole or in blocks; find_wanted finds its needed parts.
    cdef int load_brought(self, Plan plan, const Span *spans, Worker *worker) noexcept nogil
    cdef int find_wanted(self, Plan plan, const Span *spans, const Extent **extents, int64_t *n,
                         Worker *worker) noexcept nogil
    # Whether the selection touches fewer than half of the chunks of a shard that can be read in parts.
    cdef bint is_few(self, Plan plan, int64_t task)
    # Takes in an object that is not read in parts from a file.
    cdef int take_in(self, Plan plan, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                     Worker *worker) noexcept nogil

    cdef void _close(self, Shard *shard) noexcept nogil
    cdef void _leave(self, OpenShard *shard) noexcept nogil
    cdef int64_t _open(self, Plan plan, OpenShard *shard, const Span *object, Worker *worker) noexcept nogil
    cdef int64_t _number_of(self, Plan plan, const Search *search, const int64_t *first, const int64_t *count,
                            int64_t i) noexcept nogil
