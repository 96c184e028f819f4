"""The loop that runs the tasks of a selection.

A plan is made under the GIL and not changed afterwards. Any number of threads call `run`; each takes the next task from
an atomic counter until none is left or one has failed. `ReadPlan` and `WritePlan` define what a task does.
"""
from libc.stdint cimport int64_t, uint64_t

from zcore.kernel.plan.cache cimport ChunkCache, Kept
from zcore.kernel.codec.program cimport Program
from zcore.kernel.codec.table cimport Workspace
from zcore.kernel.io.files cimport Buffer, Content, Identity, Staging
from zcore.kernel.io.locks cimport Holder, ObjectLocks
from zcore.kernel.memory cimport Bytes
from zcore.kernel.plan.shard_index cimport IndexCache, ShardLevels
from zcore.kernel.refs.table cimport Extents
from zcore.kernel.select.grid cimport Span
from zcore.kernel.select.tasks cimport Layout, Selected, Tasks
from zcore.kernel.status cimport MAX_SHARD_LEVELS, Status
from zcore.kernel.strided.copy cimport MAX_NDIM

cdef enum:                     # values instead of the size of an object to write, beside FAILED
    FILLED = -3                # only the fill value, not to be stored
    SAME = -5                  # the object stays as it is

cdef struct ShardBuffers:      # for the shards of one level, the outermost first
    Buffer content             # bytes of a shard that is not a file of its own
    Buffer extents             # extents of the chunks that are read or carried over
    Buffer index               # index of the shard that is being written: (offset, size) of each chunk
    Buffer built               # bytes of that shard so far, unless it goes to a file

cdef struct Object:            # an object whose bytes are fetched, or that the caller has passed
    bint is_absent
    bint is_shared             # the file stays open when the object is closed
    bint is_identified
    Content content            # all bytes; or blocks of them, if the object is a shard
    Identity identity

cdef struct Worker:            # state of one thread while it runs a plan
    void *plan                 # the Plan it runs, which outlives it
    bint main                  # it polls signals ...
    bint joined                # ... but not now: other threads that hold objects wait for its work
    int64_t last_poll_ns
    const Object *passed       # the object of its current task; NULL: the worker fetches it
    bint keeps_filled          # store objects that hold only the fill value, too
    Layout layout              # of its current chunk
    Status status
    Buffer encoded
    Buffer decoded             # a decoded chunk, or the object of one that was merged by blocks
    int64_t n_merged           # size of that object; not positive: the chunk was decoded
    Workspace work
    int n_inner_threads        # threads inside its current chunk
    Kept *kept                 # memory to decode the chunk to, if it is to be cached
    ShardBuffers levels[MAX_SHARD_LEVELS]
    Content content            # of the stored object that is merged: a shard, or elements of varying length
    Buffer batch               # bytes of a shard that wait to be written to its file
    Holder holder
    Staging staging


cdef class PlanOptions:
    cdef public int n_threads
    cdef public bint opens_files
    cdef public object part
    cdef public Extents extents
    cdef public IndexCache indices
    cdef public object tasks
    cdef public object old_shape
    cdef public ObjectLocks locks
    cdef public uint64_t token
    cdef public bint holds_zeros
    cdef public int dir_fd
    cdef public bint writes_out


cdef class Plan(Tasks):
    cdef readonly int64_t task_threads     # threads that can share a task
    cdef Program program       # program of a chunk; the open array keeps it alive
    cdef ShardLevels levels    # if objects are shards, else None
    cdef int n_inner_threads   # threads inside one chunk, if no other chunk is being decoded
    cdef bint encodes          # whether the plan writes
    # the objects
    cdef int dirfd             # -1: the objects are not files. AT_FDCWD, without a directory: keys are whole paths
    cdef int document_fd       # descriptor of the document, if it is held; else -1
    cdef readonly bint is_old  # when the document was opened, no other document could have its identity any more
    cdef Extents extents       # if objects are parts of other files, else None
    cdef int64_t old_shape[MAX_NDIM]        # elements of existing chunks outside it are reset in a merge
    # cached chunks
    cdef ChunkCache chunks     # None: no cache
    cdef int64_t form          # how chunks are encoded
    cdef bint keeps            # also caches chunks that are decoded now
    # the run
    cdef int64_t n_begun       # no order: each task is taken once, and the plan is not changed meanwhile
    cdef int64_t n_lanes       # objects are taken in turn from so many stretches of their order
    cdef int64_t stop          # no order: the reason is read when all threads have returned
    cdef int64_t n_forks       # when its run began; no order: a number
    cdef int64_t n_helpers     # threads in it, without those that wait for it; no order: only a fork makes it matter
    cdef int64_t n_given
    cdef Bytes given_tasks     # numbers: the only ones that are done; None: all
    cdef Status status         # status of the task that stopped the plan
    cdef object exception      # exception of a signal handler
    cdef object raised         # exception of a codec in Python, in the task that stopped the plan
    cdef int64_t guard         # spin lock of the fields below
    cdef int64_t n_deferred
    cdef int64_t max_deferred
    cdef int64_t *deferred_tasks

    # Computes what depends on the selection and the number of threads, beside the tasks: OK or NO_MEMORY. The
    # constructors of subclasses end with it.
    cdef int adapt(self, int n_threads) noexcept nogil
    # Opens the directory of the objects, by its descriptor if that is not -1: 0, or the errno.
    cdef int open_directory(self, int dir_fd) noexcept nogil
    cdef void close_directory(self) noexcept nogil
    # Whether this is a forked child that cannot go on: other threads were in the plan, or objects are half written.
    cdef bint is_cut_off(self) noexcept nogil
    # Makes a worker of this plan. `main`: on the thread that waits for the plan.
    cdef void furnish(self, Worker *worker, bint main) noexcept nogil
    cdef int open_worker(self, Worker *worker) noexcept nogil
    cdef void close_worker(self, Worker *worker) noexcept nogil
    cdef int run_task(self, int64_t task, Worker *worker) noexcept nogil
    cdef void set_lanes(self, int64_t n_threads) noexcept nogil
    cdef void record(self, Worker *worker, int64_t task) noexcept nogil
    cdef void _loop(self, Worker *worker) noexcept nogil
    # Handles the code of a task: returns whether the worker takes another task.
    cdef bint finish(self, int64_t task, int code, Worker *worker) noexcept nogil
    cdef int poll(self, Worker *worker) noexcept nogil
    cdef bint is_poll_due(self, const Worker *worker) noexcept nogil


cdef int poll_worker(void *context) noexcept with gil


cdef enum:
    MAX_PLANS = 64             # of a pool

cdef class PlanPool:
    cdef object make           # returns a new plan, of a selection of nothing
    cdef int n_slots
    cdef void *plans[MAX_PLANS]            # the plan of each slot, NULL until one is needed
    cdef int64_t is_used[MAX_PLANS]        # 1 acquires the plan as 0 has released it

    # Returns an idle plan, which only the caller uses until `give_back`; NULL, if all are used or none can be made. It
    # takes the GIL only to make one.
    cdef void *borrow(self) noexcept nogil
    cdef void give_back(self, void *plan) noexcept nogil


# Runs a plan for another box, with the caller's elements at `data`; returns whether all of it was done. If not, the
# caller does all of it again in the general way, which raises the error. `is_shared`: other threads may be started for
# several chunks; otherwise a box that is worth them is left undone.
cdef bint run_anew(Plan plan, const Selected *box, char *data, const int64_t *strides, int n_threads,
                   bint is_shared) noexcept nogil
