# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Plans: the loop over the tasks of a selection.

Compiled because a task of a small chunk costs a few microseconds in all. The loop takes no lock and makes no Python
object; only the calling thread takes the GIL now and then, to let signal handlers run.

Small reads from Python, and callers that are not Python, borrow an idle plan of a `PlanPool`, set its box and run it
without Python. A slot is taken by one atomic exchange, not under a lock: in a forked child the slots of the parent's
other threads stay used, and nothing waits.
"""
import os
from array import array as array_of

from zcore import errors

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cpython.ref cimport PyObject, Py_INCREF, Py_XDECREF
from libc.errno cimport EINTR, ENOENT, ENOTDIR, errno
from libc.stdlib cimport free
from libc.string cimport memset
from posix.fcntl cimport AT_FDCWD, openat
from posix.unistd cimport close

from zcore.kernel.atomics cimport zc_add, zc_load, zc_now_ns, zc_store, zc_swap_if
from zcore.kernel.codec.table cimport workspace_exception, workspace_free
from zcore.kernel.io.files cimport buffer_free, n_forks
from zcore.kernel.io.locks cimport section_enter
from zcore.kernel.memory cimport zc_resized
from zcore.kernel.select.open_array cimport OpenArray, document_hold, document_is_old, document_stands
from zcore.kernel.plan.shard_index cimport ShardProgram
from zcore.kernel.status cimport INTERRUPTED, NO_MEMORY, OK, RAISED, STALE, fail, locate_error, make_error, status_clear

cdef enum:
    POLL_NS = 50_000_000       # between two polls of signals

cdef int _OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


cdef int _open_objects(Plan plan, bytes directory, int dir_fd) except -1:
    cdef int error
    while True:
        with nogil:
            error = plan.open_directory(dir_fd)
        if error == 0:
            return 0
        if error == EINTR:
            PyErr_CheckSignals()
            continue
        path = os.fsdecode(directory)
        if error == ENOENT or error == ENOTDIR:
            raise errors.NodeNotFoundError(f"the directory of the array is gone: {path}", path=path)
        raise errors.StoreError(f"cannot open {path}: {os.strerror(error)}", key=path, errno=error)


@cython.final
cdef class PlanOptions:
    """Options of one call that reads or writes. Options of all calls are in the open array.

    Parameters
    ----------
    n_threads : int
        Number of threads that will run the plan. With fewer tasks than threads, several may decode one chunk.
    opens_files : bool
        Whether the plan opens the files of objects, if they are files; otherwise they are passed to it, or only listed.
    part : (offset, nbytes), or None
        The bytes of each element that are moved; the caller's elements have this item size.
    extents : Extents or None
        Where the objects lie, instead of a directory; only for reading.
    indices : IndexCache or None
        Cache for shard indices; None: the cache that all arrays share.
    tasks : sequence of int or None
        Only these tasks.
    old_shape : tuple of int or None
        Elements of existing chunks outside this shape are reset to the fill value when chunks are merged. None: the
        array's shape; an append passes the shape before it.
    dir_fd : int
        Descriptor of the array's directory, if the caller holds the document: its path may lead elsewhere by now.
        Otherwise -1.
    locks : ObjectLocks or None
        Locks of the array. None: write without locks, and do not check the document.
    token : int
        Random; part of the names of temporary files of a plan that writes its own files.
    holds_zeros : bool
        All bytes of the caller's elements are 0. A plan that reads then leaves those of absent files as they are, if
        the fill value has only zero bytes too.
    writes_out : bool
        After a power cut, a plan that writes has left whole objects, old or new ones, if a later change has survived.
    """

    def __init__(self, *, int n_threads=1, bint opens_files=True, part=None, Extents extents=None,
                 IndexCache indices=None, tasks=None, old_shape=None, ObjectLocks locks=None,
                 uint64_t token=0, bint holds_zeros=False, int dir_fd=-1, bint writes_out=False):
        self.n_threads = n_threads
        self.writes_out = writes_out
        self.opens_files = opens_files
        self.part = part
        self.extents = extents
        self.indices = indices
        self.tasks = tasks
        self.old_shape = old_shape
        self.locks = locks
        self.token = token
        self.holds_zeros = holds_zeros
        self.dir_fd = dir_fd


cdef class Plan(Tasks):
    """The tasks of one selection, and their progress.

    Parameters
    ----------
    array : OpenArray
    selection : Box or Product
        `starts`, `steps`, `counts`: one number per dimension; steps may be negative. `groups`: dimensions that are
        selected by lists, see `Points`. The first dimension of a group has the number of points as its count, the
        others have 1.
    elements : ndarray, Items or None
        The caller's elements, of shape `counts` and the stored item size; `Items` for elements of varying length. None
        moves no elements.
    options : PlanOptions

    Raises
    ------
    SelectionError
        The selection does not lie in the array.
    """

    def __cinit__(self):
        self.dirfd = self.document_fd = -1
        self.deferred_tasks = NULL
        self.n_lanes = 1
        self.n_forks = n_forks()

    def __init__(self, OpenArray array not None, selection, elements, PlanOptions options not None):
        self.select(array, selection, elements, options.part)
        if self.opened.program != NULL:
            self.program = <Program>self.opened.program
        if self.opened.n_levels:
            self.levels = ShardLevels(self)
        self.extents = options.extents
        if self.extents is not None:
            self.extents.prepare(self)
        elif options.opens_files and array.directory is not None:
            _open_objects(self, array.directory, options.dir_fd)
        status_clear(&self.status)
        if options.tasks is not None:
            self.given_tasks = Bytes(array_of("q", options.tasks))
            self.n_given = len(options.tasks)
            assert all([0 <= task < self.n_tasks for task in options.tasks])

    def __dealloc__(self):
        self.close_directory()
        if self.document_fd >= 0:
            close(self.document_fd)
        free(self.deferred_tasks)

    cdef int adapt(self, int n_threads) noexcept nogil:
        self.task_threads = 1
        self.n_inner_threads = 1
        if 0 < self.n_chunks < n_threads and self.program is not None:
            self.n_inner_threads = self.program.inner_threads(n_threads // self.n_chunks, self.layout.n_bytes,
                                                              self.encodes)
        if self.levels is not None:
            self.levels.follow(self)
        return OK

    cdef int open_directory(self, int dir_fd) noexcept nogil:
        if dir_fd < 0:
            self.dirfd = openat(AT_FDCWD, self.opened.directory, _OPEN_DIRECTORY)
        else:
            self.dirfd = openat(dir_fd, b".", _OPEN_DIRECTORY)
        return errno if self.dirfd < 0 else 0

    cdef void close_directory(self) noexcept nogil:
        if self.dirfd >= 0:
            close(self.dirfd)
        self.dirfd = -1

    # the loop

    cdef int open_worker(self, Worker *worker) noexcept nogil:
        return OK

    cdef void close_worker(self, Worker *worker) noexcept nogil:
        cdef int i
        buffer_free(&worker.encoded)
        buffer_free(&worker.decoded)
        workspace_free(&worker.work)
        buffer_free(&worker.batch)
        for i in range(MAX_SHARD_LEVELS):
            buffer_free(&worker.levels[i].content)
            buffer_free(&worker.levels[i].extents)
            buffer_free(&worker.levels[i].index)
            buffer_free(&worker.levels[i].built)

    cdef int run_task(self, int64_t task, Worker *worker) noexcept nogil:
        return OK

    cdef int poll(self, Worker *worker) noexcept nogil:
        """Whether the worker has to stop. Runs signal handlers on the main thread."""
        if zc_load(&self.stop):
            return 1
        if self.is_cut_off() or (self.is_poll_due(worker) and not worker.joined):
            worker.last_poll_ns = zc_now_ns()
            if _run_signal_handlers(self):
                zc_store(&self.stop, 1)
                return 1
        return 0

    cdef bint is_cut_off(self) noexcept nogil:
        return zc_load(&self.n_forks) != n_forks() and (self.encodes or zc_load(&self.n_helpers) > 0)

    cdef bint is_poll_due(self, const Worker *worker) noexcept nogil:
        return worker.main and zc_now_ns() - worker.last_poll_ns > POLL_NS

    cdef void set_lanes(self, int64_t n_threads) noexcept nogil:
        if self.n_begun == 0 and self.given_tasks is None:
            self.n_lanes = max(1, min(n_threads, self.n_tasks // self.n_parts))

    def spread(self, int64_t n_threads):
        """Let so many threads work in different parts of the selection. A plan of given tasks stays as it is.

        Chunks beside each other lie in the same pages of the result. Of threads that touch a new page at the same time
        each one clears a page, which is 2 MB with huge pages, and all but one of these pages are thrown away.
        """
        self.set_lanes(n_threads)

    cdef void record(self, Worker *worker, int64_t task) noexcept nogil:
        """Keep the first failure and stop the plan."""
        cdef bint is_first = False
        section_enter(&self.guard)
        if self.status.code == OK:
            self.status = worker.status
            self.status.task = task
            is_first = True
        zc_store(&self.guard, 0)
        if is_first and worker.status.code == RAISED:
            _keep_raised(self, worker)
        zc_store(&self.stop, 1)

    cdef void _loop(self, Worker *worker) noexcept nogil:
        cdef int64_t task
        while not self.poll(worker):
            task = _next_task(self)
            if task < 0 or not self.finish(task, self.run_task(task, worker), worker):
                return

    cdef bint finish(self, int64_t task, int code, Worker *worker) noexcept nogil:
        cdef bint undone
        if code == OK:
            return True
        # Not done: Python has to ask the store, or the plan has to be made anew.
        undone = code == STALE or code == INTERRUPTED
        if undone and _defer(self, task) != OK:
            code = fail(&worker.status, NO_MEMORY, 0, 0, 0)
            undone = False
        if code == STALE or not undone:
            self.record(worker, task)
            return False
        status_clear(&worker.status)
        return True

    def run(self, bint main=True):
        """Run tasks until none is left or the plan has stopped. Any number of threads may run at the same time.

        Never raises the failure of a task: call `raise_failure` after all threads have returned. `main` is True for the
        one thread that waits for the plan.
        """
        with nogil:
            _work(self, main)

    cdef void furnish(self, Worker *worker, bint main) noexcept nogil:
        memset(worker, 0, sizeof(Worker))
        worker.main = main
        worker.plan = <void *>self
        worker.layout = self.layout
        worker.holder.fd = -1
        worker.last_poll_ns = zc_now_ns()
        worker.n_inner_threads = self.n_inner_threads
        worker.work.ndim = self.ndim
        if self.opened.is_irregular:
            # The shape of each chunk.
            worker.work.lengths = worker.layout.lengths
        status_clear(&worker.status)

    def cancel(self):
        """Make every thread stop after its current task."""
        zc_store(&self.stop, 1)

    @property
    def n_left(self):
        """Number of tasks that were not taken yet."""
        return max(0, _n_todo(self) - self.n_begun)

    def begin_task(self):
        """Return the next task for a run in Python, or -1 when none is left or the plan has stopped."""
        return -1 if zc_load(&self.stop) else _next_task(self)

    def begin_tasks(self, int64_t n):
        """Return a list of the next tasks, at most `n`; empty when none is left or the plan has stopped."""
        cdef int64_t task
        tasks = []
        while len(tasks) < n and not zc_load(&self.stop):
            task = _next_task(self)
            if task < 0:
                break
            tasks.append(task)
        return tasks

    def undone(self):
        """Return the tasks that this plan has not done: a list of int. It gives none to threads any more."""
        cdef int64_t task = _next_task(self)
        tasks = self.deferred
        while task >= 0:
            tasks.append(task)
            task = _next_task(self)
        return tasks

    def leave_stale(self, int64_t task):
        """Return a task undone, and stop the plan as `stale`."""
        cdef Worker worker
        self.furnish(&worker, False)
        fail(&worker.status, STALE, 0, 0, 0)
        if _defer(self, task) != OK:
            raise MemoryError
        self.record(&worker, task)

    @property
    def stopped(self):
        """Whether the plan has stopped, so that waiting for a task is useless."""
        return zc_load(&self.stop) != 0

    @property
    def has_directory(self):
        """Whether the plan has the directory of the objects open."""
        return self.dirfd >= 0

    def hold_document(self):
        """Hold the document open until the plan is freed; return whether it is the plan's document."""
        with nogil:
            # Before the content is compared: a later write in place might already be old enough when checked
            # afterwards.
            self.is_old = document_is_old(self.opened)
            self.document_fd = document_hold(self.opened)
        return self.document_fd >= 0

    @property
    def is_current(self):
        """Whether the document that the plan was made from is still at its whole path."""
        return document_stands(self.opened)

    @property
    def stale(self):
        """Whether the plan stopped because the metadata document was replaced."""
        return self.status.code == STALE

    @property
    def deferred(self):
        """Tasks whose objects Python has to pass: a list of int."""
        tasks = [self.deferred_tasks[i] for i in range(self.n_deferred)]
        return tasks if self.n_parts == 1 else sorted({task - task % self.n_parts for task in tasks})

    def raise_failure(self, codecs):
        """Raise the exception of a signal handler or the failure of a task, if there is one.

        `codecs` names the steps of the program. Neither the plan nor a frame keeps the exception, because its traceback
        refers to the plan: its buffers, descriptors and the caller's array are freed with the exception.
        """
        exception, self.exception = self.exception, None
        if exception is None:
            exception = _error(self, codecs)
        if exception is not None:
            raise exception

    def index_part(self, int64_t task):
        """Return the byte range of the index of a shard: ``(0, n)``, or ``(None, n)`` for its last bytes."""
        cdef Span spans[MAX_NDIM]
        assert self.levels is not None
        self.spans_of(self.object_of(task), spans)
        return (<ShardProgram>self.levels.programs[0]).index_part(self.n_chunks_of(self.levels.axes_of(0), spans))


cdef int64_t _n_todo(Plan plan) noexcept nogil:
    return plan.n_tasks if plan.given_tasks is None else plan.n_given


cdef int64_t _next_task(Plan plan) noexcept nogil:
    cdef int64_t i = zc_add(&plan.n_begun, 1)
    if i >= _n_todo(plan):
        return -1
    return _in_lanes(plan, i) if plan.given_tasks is None else (<int64_t *>plan.given_tasks.data)[i]


cdef void _work(Plan plan, bint main) noexcept nogil:
    """Run tasks. `main`: on the thread that waits for the plan."""
    cdef Worker worker
    plan.furnish(&worker, main)
    if not main:
        zc_add(&plan.n_helpers, 1)
    elif zc_load(&plan.n_helpers) == 0:
        zc_store(&plan.n_forks, n_forks())
    if plan.open_worker(&worker) == OK:
        plan._loop(&worker)
    else:
        plan.record(&worker, -1)
    plan.close_worker(&worker)
    if not main:
        zc_add(&plan.n_helpers, -1)


cdef object _error(Plan plan, object codecs):
    cdef str key = None
    # A failed merge could not decode the chunk it read, or has not found it.
    cdef str direction = "encode" if plan.status.is_encode else "decode"
    cdef tuple inner = ()
    raised, plan.raised = plan.raised, None
    if plan.status.code == OK or plan.status.code == STALE:
        return None
    coords = None
    if plan.status.task >= 0:
        key, coords, _, _, _ = plan.task(plan.status.task)
        if plan.levels is not None:
            shard_shape = plan.place(plan.status.task)[1]
            inner = plan.levels.coords_of(&plan.status, shard_shape)
    if plan.status.code == RAISED:
        return locate_error(raised, &plan.status, key, coords, direction, inner)
    codec = codecs[plan.status.step] if 0 <= plan.status.step < len(codecs) else None
    return make_error(&plan.status, key, coords, codec, direction, inner)


cdef int _run_signal_handlers(Plan plan) noexcept with gil:
    try:
        try:
            if not plan.is_cut_off():
                PyErr_CheckSignals()
            if plan.is_cut_off():
                raise errors.StoreError(errors.FORKED)
        except BaseException as exception:
            plan.exception = exception
            return 1
    except:  # noqa: E722 (the only clause that cannot raise itself; no caller could see an exception)
        return 1
    return 0


cdef int64_t _in_lanes(Plan plan, int64_t i) noexcept nogil:
    """Return the task that is taken as number `i`."""
    cdef int64_t n = plan.n_tasks // plan.n_parts
    cdef int64_t lane
    if plan.n_lanes == 1:
        return i
    lane = i // plan.n_parts % plan.n_lanes
    # The first lanes are longer by one if the lanes cannot be equal.
    n = lane * (n // plan.n_lanes) + min(lane, n % plan.n_lanes) + i // plan.n_parts // plan.n_lanes
    return n * plan.n_parts + i % plan.n_parts


cdef int _defer(Plan plan, int64_t task) noexcept nogil:
    """Note a task that was not done, for the engine or for a plan that resumes this one."""
    cdef int64_t *grown
    cdef int code = OK
    section_enter(&plan.guard)
    if plan.n_deferred == plan.max_deferred:
        grown = <int64_t *>zc_resized(plan.deferred_tasks, 2 * plan.max_deferred + 64, sizeof(int64_t))
        if grown == NULL:
            code = NO_MEMORY
        else:
            plan.deferred_tasks = grown
            plan.max_deferred = 2 * plan.max_deferred + 64
    if code == OK:
        plan.deferred_tasks[plan.n_deferred] = task
        plan.n_deferred += 1
    zc_store(&plan.guard, 0)
    return code


cdef void _keep_raised(Plan plan, Worker *worker) noexcept with gil:
    try:
        plan.raised = workspace_exception(&worker.work)
    except:  # noqa: E722 (the only clause that cannot raise itself)
        pass


cdef int poll_worker(void *context) noexcept with gil:
    """Whether a worker that waits for a lock has to stop; `context` is the `Worker`."""
    cdef Worker *worker = <Worker *>context
    return (<Plan>worker.plan).poll(worker)


# pools

cdef extern from "threads.h" nogil:
    void zc_run_together(int n, void (*work)(void *) noexcept nogil, void *context)

cdef enum:
    MIN_SHARED_NBYTES = 1 << 17            # as in the engine: a smaller plan is done before a second thread wakes up


@cython.final
cdef class PlanPool:
    """Plans of one array.

    Parameters
    ----------
    make : callable
        Returns a new plan, of a selection of nothing. It must not lead to the owner of the pool.
    n_slots : int
        Maximum number of plans, and so of calls at the same time.
    n_made : int
        Plans that are made now, so that the first calls do not take the GIL.
    """

    def __init__(self, make, int n_slots=MAX_PLANS, int n_made=0):
        cdef int i
        self.make = make
        self.n_slots = n_slots
        for i in range(min(n_made, n_slots)):
            _make(self, i)

    def __dealloc__(self):
        cdef int i
        for i in range(MAX_PLANS):
            Py_XDECREF(<PyObject *>self.plans[i])

    cdef void *borrow(self) noexcept nogil:
        cdef int i
        for i in range(self.n_slots):
            if zc_load(&self.is_used[i]) == 0 and zc_swap_if(&self.is_used[i], 0, 1):
                if self.plans[i] != NULL or _made(self, i):
                    return self.plans[i]
                zc_store(&self.is_used[i], 0)
                break
        return NULL

    cdef void give_back(self, void *plan) noexcept nogil:
        cdef int i = 0
        while self.plans[i] != plan:
            i += 1
        zc_store(&self.is_used[i], 0)


cdef int _make(PlanPool pool, int i) except -1:
    cdef Plan plan = pool.make()
    Py_INCREF(plan)
    pool.plans[i] = <void *>plan
    return 0


cdef bint _made(PlanPool pool, int i) noexcept with gil:
    try:
        try:
            _make(pool, i)
            return True
        except BaseException:
            pass
    except:  # noqa: E722 (the only clause that cannot raise itself)
        pass
    return False


cdef void _help(void *plan) noexcept nogil:
    _work(<Plan>plan, False)


cdef bint run_anew(Plan plan, const Selected *box, char *data, const int64_t *strides, int n_threads,
                   bint is_shared) noexcept nogil:
    cdef int64_t n
    cdef int code = plan.project_anew(box, data, strides)
    status_clear(&plan.status)
    plan.n_forks = n_forks()
    plan.n_begun = plan.stop = plan.n_deferred = 0
    if code != OK or plan.adapt(n_threads) != OK:
        return False
    if not is_shared and plan.n_chunks > 1 and plan.n_chunks * plan.layout.n_bytes >= MIN_SHARED_NBYTES:
        return False
    n = min(<int64_t>n_threads, plan.n_tasks * plan.task_threads) if is_shared else 1
    if plan.n_tasks * plan.task_nbytes < MIN_SHARED_NBYTES:
        n = 1
    if plan.n_tasks:
        zc_run_together(<int>n, _help, <void *>plan)
    return zc_load(&plan.stop) == 0 and plan.status.code == OK and plan.n_deferred == 0
