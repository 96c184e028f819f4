"""The loop that runs the tasks of a selection.

A plan is made under the GIL and not changed afterwards. Any number of threads enter `run`; each takes the next task
from an atomic counter until none is left or one has failed. `ReadPlan` and `WritePlan` say what a task does.
"""
from libc.stdint cimport int64_t, uint8_t, uint64_t

from zcore.kernel.refs.extents cimport Extents, Place
from zcore.kernel.io.files cimport Buffer, Content, Identity, Staging
from zcore.kernel.strided.copy cimport MAX_NDIM
from zcore.kernel.cache.chunks cimport ChunkCache
from zcore.kernel.select.grid cimport Axis, Span
from zcore.kernel.cache.lru cimport Kept
from zcore.kernel.io.locks cimport Holder
from zcore.kernel.codec.program cimport Program
from zcore.kernel.codec.table cimport Workspace
from zcore.kernel.io.holds cimport ObjectLocks
from zcore.kernel.plan.shard_index cimport Extent, IndexCache
from zcore.kernel.plan.shard_levels cimport ShardLevels
from zcore.kernel.status cimport MAX_SHARD_LEVELS, Status
from zcore.kernel.select.tasks cimport Layout, Selected, Tasks


cdef enum:                     # what an object that is to be written may be instead of a size, beside FAILED
    FILLED = -3                # nothing but the fill value, not to be stored
    SAME = -5                  # the object stays as it is

cdef struct ShardBuffers:      # of the shards of one level, the outermost first
    Buffer content             # bytes of one that is in no file of its own
    Buffer extents             # of the chunks that are read or carried over
    Buffer index               # of the one that is being written: (offset, size) of each chunk
    Buffer built               # what there is of that so far, unless it goes to a file

cdef struct Brought:           # the bytes of an object that the caller has brought
    bint is_absent
    Content content            # whole, or in blocks where the object is a shard
    const Identity *identity   # NULL: unknown

cdef struct Worker:            # what one thread owns while it runs a plan
    void *plan                 # the Plan it runs, which outlives it
    bint main                  # it looks for signals ...
    bint joined                # ... but not now: others that hold objects wait for what it does
    int64_t last_poll_ns
    const Brought *brought     # the object of the task that it is at; NULL: it is read here
    bint keeps_filled          # objects of nothing but the fill value
    Layout layout              # of the chunk that it is at
    Status status
    Buffer encoded
    Buffer decoded
    Workspace work
    Kept *kept                 # where the chunk is decoded to, if it is to be kept
    ShardBuffers levels[MAX_SHARD_LEVELS]
    Content content            # of the object that was taken in as a whole, where it is a shard
    Buffer batch               # bytes of a shard that are on their way to its file
    Holder holder
    Staging staging


cdef class PlanOptions:
    cdef public int n_threads
    cdef public bint opens_files
    cdef public object part
    cdef public Extents extents
    cdef public IndexCache indices
    cdef public object tasks
    cdef public Plan resume
    cdef public object old_shape
    cdef public ObjectLocks locks
    cdef public uint64_t token


cdef class Plan(Tasks):
    cdef readonly int64_t task_threads     # that can share a task
    cdef Program program       # of a chunk, which the open array keeps
    cdef ShardLevels levels    # where objects are shards, else None
    cdef int n_inner_threads   # threads inside one chunk
    # the objects
    cdef int dirfd             # -1: there are no files of theirs
    cdef int document_fd       # of the document, where that is held; else -1
    cdef readonly bint is_old  # when that was opened, no other document could have got its identity any more
    cdef Extents extents       # where they are parts of other files, else None
    cdef int64_t old_shape[MAX_NDIM]        # what of existing chunks is kept when they are merged
    # chunks that are kept between reads
    cdef ChunkCache chunks     # None: none are kept
    cdef int64_t form          # how chunks become bytes
    cdef bint keeps            # those that are decoded now as well
    # the run
    cdef int64_t n_taken
    cdef int64_t stop
    cdef int64_t first         # tasks before this one were done by an earlier plan, but for `again`
    cdef int64_t n_again
    cdef int64_t *again
    cdef Status status         # of the task that stopped the plan
    cdef object exception      # that a signal handler raised
    cdef object raised         # by a codec in Python, in the task that stopped the plan
    cdef int64_t guard         # spin lock of what follows
    cdef int64_t n_deferred
    cdef int64_t max_deferred
    cdef int64_t *deferred_tasks

    # What follows from the selection and the number of threads, beside the tasks: OK or NO_MEMORY.
    cdef int adapt(self, int n_threads) noexcept nogil
    # Makes it the plan of another box, as if it were new, without Python: OK; NO_MEMORY, or -1 - d where the box does
    # not fit into the dimension d.
    cdef int begin_anew(self, const Selected *selected, char *data, const int64_t *strides,
                        int n_threads) noexcept nogil
    # Opens the directory of the objects: 0, or the errno.
    cdef int open_directory(self) noexcept nogil
    cdef void close_directory(self) noexcept nogil
    # Runs tasks, on the thread that waits for the plan or on another one.
    cdef void work(self, bint main) noexcept nogil
    cdef int _resume(self, Plan before) except -1
    cdef int _take_only(self, object tasks) except -1
    cdef void furnish(self, Worker *worker) noexcept nogil
    cdef int open_worker(self, Worker *worker) noexcept nogil
    cdef void close_worker(self, Worker *worker) noexcept nogil
    cdef int run_task(self, int64_t task, Worker *worker) noexcept nogil
    cdef int64_t _take(self) noexcept nogil
    cdef int _defer(self, int64_t task) noexcept nogil
    cdef void record(self, Worker *worker, int64_t task) noexcept nogil
    cdef void _take_raised(self, Worker *worker) noexcept with gil
    cdef void _loop(self, Worker *worker) noexcept nogil
    # What follows from the code of a task: whether the worker takes another one.
    cdef bint settle(self, int64_t task, int code, Worker *worker) noexcept nogil
    cdef object _error(self, object codecs)
    cdef int _run_signal_handlers(self) noexcept with gil
    cdef int poll(self, Worker *worker) noexcept nogil
    cdef bint is_poll_due(self, const Worker *worker) noexcept nogil
    cdef int64_t stored_limit(self, const Span *spans, Worker *worker) noexcept nogil
    cdef int load(self, const char *key, const Span *spans, Worker *worker) noexcept nogil
    cdef int place_of(self, const char *key, Place *place) noexcept nogil
    cdef void _take_exception(self) noexcept with gil
    cdef int _load_extent(self, const char *key, const Span *spans, Worker *worker) noexcept nogil
    cdef int load_brought(self, const Span *spans, Worker *worker) noexcept nogil
    # Finds what of a shard is needed, part of which was brought: `n` extents, among them -1 for those of an index
    # without which no more can be told.
    cdef int find_wanted(self, const Span *spans, const Extent **extents, int64_t *n, Worker *worker) noexcept nogil
    cdef void before_read(self, int fd, Worker *worker) noexcept nogil
    cdef void identified(self, const Identity *identity, Worker *worker) noexcept nogil
    cdef int _take_in(self, int64_t n_bytes, int64_t limit, const Span *spans, Worker *worker) noexcept nogil
    cdef bint is_cut(self, int code, const Span *spans, Worker *worker) noexcept nogil
    cdef int take_in_cut(self, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                         Worker *worker) noexcept nogil
    # Takes in an object as it is stored; and a chunk, which is one or lies in a shard.
    cdef int take_in(self, const uint8_t *encoded, int64_t n_bytes, const Span *spans, Worker *worker) noexcept nogil
    cdef int take_in_chunk(self, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                           Worker *worker) noexcept nogil
    # Takes the elements of a chunk from those that are kept, by the place of its bytes; whether it was there.
    cdef bint find_kept(self, const Identity *identity, int64_t base, int64_t size, const Span *spans,
                        Worker *worker) noexcept nogil
    # Makes room for a chunk that is to be kept, `worker.kept`; and ends that: the chunk that was decoded with that code
    # is kept, or not.
    cdef void begin_kept(self, const Identity *identity, int64_t base, int64_t size, Worker *worker) noexcept nogil
    cdef void end_kept(self, int code, Worker *worker) noexcept nogil
    # What shards ask of a plan that reads: to give what is selected of an object, or of a chunk in it, the fill value.
    cdef int fill_selected(self, const Axis *axes, const Span *spans, Worker *worker) noexcept nogil
    # And of one that writes: see `WritePlan`.
    cdef int64_t encode_covered_chunk(self, const Span *spans, Worker *worker, const uint8_t **encoded) noexcept nogil
    cdef int64_t encode_merged_chunk(self, const Span *spans, bint found, Worker *worker,
                                     const uint8_t **encoded) noexcept nogil


cdef int poll_worker(void *context) noexcept with gil
