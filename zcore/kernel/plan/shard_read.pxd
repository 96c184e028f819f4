"""Reading objects that are shards: what a plan that reads has for them."""
from libc.stdint cimport int64_t, uint8_t

from zcore.kernel.io.files cimport Buffer, Content, Identity
from zcore.kernel.plan.plan cimport Plan, Worker
from zcore.kernel.plan.shard_index cimport Extent, IndexCache, IndexForm, ShardIndex, ShardProgram
from zcore.kernel.plan.shard_levels cimport ShardLevels
from zcore.kernel.select.grid cimport Axis, Span
from zcore.kernel.status cimport Status
from zcore.kernel.strided.copy cimport MAX_NDIM


cdef struct Shard:             # one whose selected chunks are read; levels are counted from the outermost, 0
    Content content
    Identity identity          # of the file, where it is one
    bint is_trusted            # when it was opened, see `Cache.trusts`
    bint is_shared             # the file stays open when the shard is closed
    bint notes_wanted          # an index that has not been brought is noted among the extents, as chunk -1
    int level                  # its own
    int last                   # of its chunks: shards in shards on the way there are found in the same bytes
    int64_t n                  # chunks that are selected
    Extent *extents            # of these, in the order of the bytes

cdef struct OpenShard:
    int64_t shard              # of the plan; -1: this place is free
    int64_t state
    int64_t n_left             # groups of it that are not done
    Buffer extents
    Shard read

cdef struct Search:            # for the selected chunks of a shard
    Shard *shard
    const Span *object         # its place
    int64_t first[MAX_NDIM]    # as `chunks_of` gives them for the chunks of its last level
    int64_t count[MAX_NDIM]


cdef class ShardReader:
    cdef ShardProgram shards
    cdef ShardLevels levels
    cdef int n_open            # levels down to which the file of a shard is read in parts
    cdef IndexCache cache
    cdef int64_t n_places
    cdef OpenShard *places
    cdef int64_t n_inside      # threads that run the plan
    cdef int64_t guard         # spin lock of the places

    # Follows the selection of the plan, and a number of threads: OK or NO_MEMORY.
    cdef int follow(self, Plan plan, int n_threads) noexcept nogil
    # Whether chunks are read out of files as they are stored, so that each has a place there.
    cdef bint reads_chunks(self) noexcept nogil
    # A thread begins to run the plan, and ends that: the last one closes what is open.
    cdef void enter(self) noexcept nogil
    cdef void leave(self) noexcept nogil
    # Reads a group of chunks of a shard in a file.
    cdef int run_task(self, Plan plan, int64_t task, Worker *worker) noexcept nogil
    # Reads a shard that the caller has brought, as a whole or in blocks; and finds what of it is needed.
    cdef int load_brought(self, Plan plan, const Span *spans, Worker *worker) noexcept nogil
    cdef int find_wanted(self, Plan plan, const Span *spans, const Extent **extents, int64_t *n,
                         Worker *worker) noexcept nogil
    # Whether the selection touches fewer than half of the chunks of a shard that can be read in parts.
    cdef bint is_few(self, Plan plan, int64_t task)
    # Takes in an object that is no file to be read in parts.
    cdef int take_in(self, Plan plan, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                     Worker *worker) noexcept nogil

    cdef void _free_places(self) noexcept nogil
    cdef void _close_all(self) noexcept nogil
    cdef void _close(self, Shard *shard) noexcept nogil
    cdef OpenShard *_enter(self, Plan plan, int64_t task, const Span *object, Worker *worker) noexcept nogil
    cdef OpenShard *_place_of(self, Plan plan, int64_t task) noexcept nogil
    cdef void _leave(self, OpenShard *shard) noexcept nogil
    cdef int64_t _open(self, Plan plan, OpenShard *shard, const Span *object, Worker *worker) noexcept nogil
    cdef int _open_file(self, Plan plan, const char *key, Shard *shard, Worker *worker) noexcept nogil
    cdef int _open_extent(self, Plan plan, const char *key, Shard *shard) noexcept nogil
    cdef int _find_chunks(self, Plan plan, Shard *shard, const Span *object, Buffer *extents,
                          Worker *worker) noexcept nogil
    cdef int _find_in(self, Plan plan, Search *search, int level, const Span *object, const Extent *place,
                      Worker *worker) noexcept nogil
    cdef ShardIndex *_index_of(self, const Shard *shard, int level, const IndexForm *form, int64_t size,
                               Worker *worker) noexcept nogil
    cdef int64_t _number_of(self, Plan plan, const Search *search, const int64_t *first, const int64_t *count,
                            int64_t i) noexcept nogil
    cdef int64_t _position_of(self, Plan plan, const Span *object, int first, int level,
                              const Span *chunk) noexcept nogil
    cdef int _read_group(self, Plan plan, const Shard *shard, const Span *object, int64_t group,
                         Worker *worker) noexcept nogil
    cdef int _read_chunks(self, Plan plan, const Shard *shard, const Span *object, int64_t i, int64_t end,
                          Worker *worker) noexcept nogil
    cdef int _read_batch(self, Plan plan, const Shard *shard, const Span *object, const int64_t *first,
                         const int64_t *count, int64_t *i, int64_t end, Worker *worker) noexcept nogil
    cdef bint _find_chunk(self, Plan plan, const Shard *shard, const Axis *axes, const Span *object,
                          const int64_t *first, const int64_t *count, const Extent *extent, Span *spans,
                          Worker *worker) noexcept nogil
    cdef void _note_place(self, Plan plan, const Shard *shard, const Span *object, const Span *chunk,
                          Status *status) noexcept nogil
    cdef int _take_in_chunk(self, Plan plan, int level, const uint8_t *stored, int64_t n_bytes, const Span *spans,
                            Worker *worker) noexcept nogil
    cdef int _take_in_shard(self, Plan plan, int level, const uint8_t *stored, int64_t n_bytes, const Span *spans,
                            Worker *worker) noexcept nogil
