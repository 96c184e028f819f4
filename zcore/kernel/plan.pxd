"""The loop that runs the tasks of a selection.

A plan is made under the GIL and not changed afterwards. Any number of threads enter `run`; each takes the next task
from an atomic counter until none is left or one has failed. `ReadPlan` and `WritePlan` say what a task does.
"""
from libc.stdint cimport int64_t, uint8_t

from zcore.kernel.extents cimport Extents, Place
from zcore.kernel.fileio cimport Buffer, Content, Identity, Staging
from zcore.kernel.grid cimport Span
from zcore.kernel.kept cimport Kept
from zcore.kernel.locks cimport Holder
from zcore.kernel.program cimport Program, Workspace
from zcore.kernel.shard cimport Extent
from zcore.kernel.status cimport MAX_SHARD_LEVELS, Status
from zcore.kernel.tasks cimport Layout, Tasks


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


cdef class Plan(Tasks):
    cdef readonly int64_t task_threads     # that can share a task
    cdef Program program
    cdef int n_inner_threads   # threads inside one chunk
    cdef bint lenient
    cdef bint missing_raises
    # the objects
    cdef int dirfd
    cdef readonly bytes directory          # None when there are no files of theirs
    cdef Extents extents       # where they are parts of other files, else None
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

    cdef int _resume(self, Plan before) except -1
    cdef int _select(self, object tasks) except -1
    cdef void furnish(self, Worker *worker) noexcept
    cdef int open_worker(self, Worker *worker) noexcept nogil
    cdef void close_worker(self, Worker *worker) noexcept nogil
    # Which of the objects a task is a part of.
    cdef int64_t object_of(self, int64_t task) noexcept nogil
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
    # without which nobody can tell more.
    cdef int find_wanted(self, const Span *spans, const Extent **extents, int64_t *n, Worker *worker) noexcept nogil
    cdef void opened(self, int fd, Worker *worker) noexcept nogil
    cdef void identified(self, const Identity *identity, Worker *worker) noexcept nogil
    cdef int _take_in(self, int64_t n_bytes, int64_t limit, const Span *spans, Worker *worker) noexcept nogil
    cdef bint is_cut(self, int code, const Span *spans, Worker *worker) noexcept nogil
    cdef int take_in_cut(self, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                         Worker *worker) noexcept nogil
    cdef int take_in(self, const uint8_t *encoded, int64_t n_bytes, const Span *spans, Worker *worker) noexcept nogil


cdef int poll_worker(void *context) noexcept with gil
