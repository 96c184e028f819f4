"""One selection of one array as a list of tasks, a stored object each, and the loop that runs them.

A plan is made under the GIL and not changed afterwards. Any number of threads enter `run`; each takes the next task
from an atomic counter until none is left or one has failed. `ReadPlan` and `WritePlan` say what a task does.
"""
from libc.stdint cimport int64_t, uint8_t

from zcore.kernel.blosc_blocks cimport Runs
from zcore.kernel.copy cimport MAX_NDIM, Copy
from zcore.kernel.edges cimport Edges
from zcore.kernel.fileio cimport Buffer, Staging
from zcore.kernel.grid cimport Axis, Span
from zcore.kernel.locks cimport Holder
from zcore.kernel.program cimport Program, Workspace
from zcore.kernel.status cimport Status


cdef enum:
    MIN_RUN_NBYTES = 64        # shorter runs move faster by a blocked copy of the whole chunk
    MAX_KEY = 4400             # bytes of a key with its directory, and the final zero

cdef struct Layout:            # how the elements of a chunk lie in its decoded bytes
    int64_t n_items
    int64_t n_bytes
    int64_t strides[MAX_NDIM]
    bint in_place              # those of a whole chunk lie in the caller's array in the same way

cdef struct Worker:            # what one thread owns while it runs a plan
    void *plan                 # the Plan it runs, which outlives it
    bint main                  # it looks for signals
    int64_t last_poll_ns
    Layout layout              # of the chunk that it is at
    Status status
    Buffer encoded
    Buffer decoded
    Workspace work
    Buffer index               # of the shard that is being written: (offset, size) of each chunk
    Buffer extents             # of its chunks that are carried over
    Buffer batch               # bytes of it that are on their way to the file
    Holder holder
    Staging staging


cdef class Plan:
    # the selection
    cdef readonly int ndim
    cdef readonly int64_t n_tasks
    cdef readonly int64_t task_nbytes      # the most that a task decodes or encodes
    cdef readonly int64_t task_threads     # that can share a task
    cdef Axis axes[MAX_NDIM]   # of the chunks
    cdef Axis *objects         # of the stored objects: the same axes, or those of shards of many chunks
    # a chunk's decoded bytes
    cdef Program program
    cdef bytes fill            # one element, as chunks store it
    cdef const char *fill_value
    cdef bytes shown_fill      # the same, as `array` holds it
    cdef const char *shown_fill_value
    cdef int64_t itemsize
    cdef int64_t swap
    cdef Layout layout         # the only one there is, or of the longest edges
    cdef bint is_irregular     # chunks differ in shape: each is measured when its turn comes
    cdef int order[MAX_NDIM]   # dimensions of a chunk, the slowest first
    cdef tuple edges           # keeps what `axes` and `objects` point to
    cdef int n_inner_threads   # threads inside one chunk
    # the caller's elements
    cdef object array
    cdef char *data            # NULL: the plan moves no elements
    cdef int64_t data_strides[MAX_NDIM]
    cdef bint lenient
    cdef bint missing_raises
    cdef bint is_c_order       # elements lie in a chunk in C order and the caller's byte order
    # the objects
    cdef int dirfd
    cdef bytes head            # of every key, before the first index
    cdef bytes separator
    cdef bytes tail
    cdef const char *head_text
    cdef const char *separator_text
    cdef const char *tail_text
    cdef int n_head
    cdef int n_separator
    cdef int n_tail
    cdef readonly bytes directory          # of the objects; None when there are no files
    # the run
    cdef int64_t n_taken
    cdef int64_t stop
    cdef int64_t first         # tasks before this one were done by an earlier plan, but for `again`
    cdef int64_t n_again
    cdef int64_t *again
    cdef Status status         # of the task that stopped the plan
    cdef object exception      # that a signal handler raised
    cdef int64_t guard         # spin lock of what follows
    cdef int64_t n_deferred
    cdef int64_t max_deferred
    cdef int64_t *deferred_tasks

    cdef int _set_axis(self, Axis *axis, Edges edges, int64_t length, int64_t chunk, int64_t start, int64_t step,
                       int64_t count) except? -1
    cdef int _set_array(self, object array) except -1
    cdef void measure(self, const int64_t *lengths, Layout *layout) noexcept nogil
    cdef int _resume(self, Plan before) except -1
    cdef int _select(self, object tasks) except -1
    cdef void spans_of(self, int64_t task, Span *spans) noexcept nogil
    cdef void begin_chunk(self, const Span *spans, Worker *worker) noexcept nogil
    cdef int64_t chunks_of(self, const Axis *axes, const Span *object, int64_t *first, int64_t *count) noexcept nogil
    cdef int64_t n_chunks_of(self, const Axis *axes, const Span *object) noexcept nogil
    cdef int64_t chunk_of(self, const Axis *axes, const Span *object, const int64_t *first, const int64_t *count,
                          int64_t i, Span *spans) noexcept nogil
    cdef int key_of(self, const Span *spans, char *key) noexcept nogil
    cdef bint is_whole(self, const Span *spans) noexcept nogil
    cdef int64_t data_offset(self, const Span *spans) noexcept nogil
    cdef void copy_spec(self, const Span *spans, const Layout *layout, bint to_chunk, Copy *spec) noexcept nogil
    cdef bint runs_of(self, const Span *spans, Runs *runs) noexcept nogil
    cdef int64_t chunk_offset(self, const Span *spans, const Layout *layout) noexcept nogil
    cdef int open_worker(self, Worker *worker) noexcept nogil
    cdef void close_worker(self, Worker *worker) noexcept nogil
    cdef int run_task(self, int64_t task, Worker *worker) noexcept nogil
    cdef int64_t _take(self) noexcept nogil
    cdef int _defer(self, int64_t task) noexcept nogil
    cdef void _record(self, const Status *status, int64_t task) noexcept nogil
    cdef void _loop(self, Worker *worker) noexcept nogil
    cdef object _error(self, object codecs)
    cdef int _run_signal_handlers(self) noexcept with gil
    cdef int poll(self, Worker *worker) noexcept nogil
    cdef int load(self, const char *key, const Span *spans, Worker *worker) noexcept nogil
    cdef int _take_in(self, int64_t n_bytes, int64_t limit, const Span *spans, Worker *worker) noexcept nogil
    cdef int take_in(self, const uint8_t *encoded, int64_t n_bytes, const Span *spans, Worker *worker) noexcept nogil


# The coordinates of a chunk in its shard, where it has that position in C order.
cdef tuple coords_of(int64_t position, object shard_shape, object chunk_shape)
cdef int poll_worker(void *context) noexcept with gil
