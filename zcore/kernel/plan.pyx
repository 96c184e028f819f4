# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Plans: tasks of a selection, their keys, and the loop over them.

Compiled because a task of a small chunk costs a few microseconds in all. The loop takes no lock and makes no Python
object; only the calling thread takes the GIL now and then, to let signal handlers run.
"""
import os

from zcore import errors

cimport numpy as cnp
from cpython.exc cimport PyErr_CheckSignals
from libc.errno cimport EINTR, ENOENT, ENOTDIR, errno
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset
from posix.fcntl cimport AT_FDCWD, openat
from posix.unistd cimport close

from zcore.kernel.atomics cimport zc_load, zc_now_ns, zc_store, zc_swap_if
from zcore.kernel.blosc_blocks cimport Runs, runs_init
from zcore.kernel.copy cimport MAX_NDIM, Copy
from zcore.kernel.edges cimport Edges
from zcore.kernel.fileio cimport (
    ABSENT, FAILED, Identity, buffer_free, buffer_reserve, identify_fd, identify_name, object_close, object_open,
    object_read, object_read_rest,
)
from zcore.kernel.grid cimport Span, axis_free, axis_init, axis_init_runs, axis_span
from zcore.kernel.program cimport Program, workspace_free
from zcore.kernel.status cimport (
    BLOSC_NBYTES, BLOSC_SNAPPY, CHUNK_LONG, INTERRUPTED, MISSING, NO_MEMORY, OK, STALE, Status, fail,
    make_error, status_clear,
)

cnp.import_array()

cdef enum:
    POLL_NS = 50_000_000       # between two looks for signals
    MAX_DIGITS = 20


cdef int _OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


cdef int _open_directory(bytes directory) except -1:
    cdef const char *name = directory
    cdef int fd
    cdef int error
    while True:
        with nogil:
            fd = openat(AT_FDCWD, name, _OPEN_DIRECTORY)
            error = errno
        if fd >= 0:
            return fd
        if error == EINTR:
            PyErr_CheckSignals()
            continue
        path = os.fsdecode(directory)
        if error == ENOENT or error == ENOTDIR:
            raise errors.NodeNotFoundError(f"the directory of the array is gone: {path}", path=path)
        raise errors.StoreError(f"cannot open {path}: {os.strerror(error)}", key=path, errno=error)


cdef bytes _swapped(bytes item, int64_t unit):
    """The bytes of an item with the order of each `unit` of them reversed."""
    return b"".join([item[i:i + unit][::-1] for i in range(0, len(item), unit)])


cdef tuple coords_of(int64_t position, shard_shape, chunk_shape):
    """The coordinates of a chunk in its shard, where it has that position in C order."""
    coords = []
    for length, chunk in zip(reversed(shard_shape), reversed(chunk_shape), strict=True):
        position, i = divmod(position, length // chunk)
        coords.append(i)
    return tuple(reversed(coords))


cdef class Plan:
    """Tasks of one selection.

    Parameters
    ----------
    shape, chunk_shape : tuple of int
        Of the array and of what is encoded as one, elements; where chunks differ, of the longest in each dimension.
    starts, steps, counts : sequence of int
        The box, one number per dimension; steps may be negative.
    program : Program
        How a chunk becomes an object; None for a plan whose tasks are only listed.
    fill : bytes
        One element, as `array` holds it; empty for a plan whose tasks are only listed.
    array : ndarray or None
        The caller's elements, of shape `counts` and the stored item size; None moves no elements.
    template : tuple of bytes
        ``(head, separator, tail)`` of the chunk keys, relative to `directory`.
    directory : bytes or None
        Directory of the array's objects; None for a plan whose tasks are only listed.
    swap : int
        Unit in bytes whose order differs between chunk and `array`, 0 for none.
    order : tuple of int or None
        Permutation of the dimensions in which a chunk is stored, None for C order.
    n_threads : int
        Threads that will run the plan: with fewer tasks than that, a chunk may be decoded by several.
    lenient : bool
        A chunk of another decoded size than the metadata demand is left to Python, not an error.
    missing_raises : bool
        An absent object is an error where its elements are needed; else they are the fill value.
    resume : Plan or None
        An earlier plan of the same selection and chunk shape: only what it did not do is done.
    tasks : sequence of int or None
        Only these tasks.
    shard_shape : tuple of int or None
        Of the stored objects, where they hold many chunks; a multiple of `chunk_shape`.
    edges : tuple of (Edges or None) or None
        Of the stored objects, for the dimensions in which they differ in length.

    Raises
    ------
    SelectionError
        The box does not lie in the array.
    """

    def __cinit__(self, *args, **kwargs):
        self.dirfd = -1
        self.data = NULL
        self.objects = self.axes
        self.again = NULL
        self.deferred_tasks = NULL

    def __init__(self, shape, chunk_shape, starts, steps, counts, *, Program program, bytes fill not None,
                 cnp.ndarray array, template, bytes directory=None, int64_t swap=0, order=None, int n_threads=1,
                 bint lenient=False, bint missing_raises=False, Plan resume=None, tasks=None, shard_shape=None,
                 tuple edges=None):
        cdef int d
        cdef int i
        cdef int64_t length, chunk, start, step, count
        cdef Edges unequal
        cdef int64_t lengths[MAX_NDIM]
        cdef int64_t n_chunks = 1
        if len(shape) > MAX_NDIM:
            raise ValueError(f"array has {len(shape)} dimensions, at most {MAX_NDIM} are supported")
        self.ndim = len(shape)
        self.program = program
        self.shown_fill = fill
        self.shown_fill_value = self.shown_fill
        self.fill = fill if swap == 0 else _swapped(fill, swap)
        self.fill_value = self.fill
        self.itemsize = len(fill)
        self.swap = swap
        self.n_tasks = 1
        self.task_nbytes = self.itemsize
        self.edges = edges
        self.task_threads = 1
        if shard_shape is not None:
            self.objects = <Axis *>calloc(MAX_NDIM, sizeof(Axis))
            if self.objects == NULL:
                raise MemoryError
        else:
            self.is_irregular = edges is not None
        for d in range(self.ndim):
            length, chunk, start, step, count = shape[d], chunk_shape[d], starts[d], steps[d], counts[d]
            unequal = None if edges is None or shard_shape is not None else edges[d]
            if self._set_axis(&self.axes[d], unequal, length, chunk, start, step, count):
                raise errors.SelectionError(
                    f"selection {start}:{step}:{count} does not fit dimension {d} of {shape}", dimension=d)
            if shard_shape is not None:
                assert shard_shape[d] % chunk == 0
                chunk = shard_shape[d]
                unequal = None if edges is None else edges[d]
                self._set_axis(&self.objects[d], unequal, length, chunk, start, step, count)
            # None overflows: the metadata have bounded all these products.
            n_chunks *= self.axes[d].n_chunks
            self.n_tasks *= self.objects[d].n_chunks
            self.task_nbytes *= self.objects[d].chunk
            lengths[d] = self.axes[d].chunk
        for i, d in enumerate(range(self.ndim) if order is None else order):
            self.order[i] = d
        self.lenient = lenient
        self.missing_raises = missing_raises
        self.is_c_order = swap == 0 and order is None
        self.n_inner_threads = 1
        if 0 < n_chunks < n_threads:
            self.n_inner_threads = <int>(n_threads // n_chunks)
        self._set_array(array)
        self.measure(lengths, &self.layout)
        self.head, self.separator, self.tail = template
        self.head_text, self.n_head = self.head, <int>len(self.head)
        self.separator_text, self.n_separator = self.separator, <int>len(self.separator)
        self.tail_text, self.n_tail = self.tail, <int>len(self.tail)
        if self.n_head + self.n_tail + self.ndim * (MAX_DIGITS + self.n_separator) >= MAX_KEY:
            raise ValueError("chunk keys of this array would be too long")
        self.directory = directory
        if directory is not None:
            self.dirfd = _open_directory(directory)
        status_clear(&self.status)
        if resume is not None:
            self._resume(resume)
        elif tasks is not None:
            self._select(tasks)

    def __dealloc__(self):
        cdef int d
        if self.dirfd >= 0:
            close(self.dirfd)
        for d in range(self.ndim):
            axis_free(&self.axes[d])
            if self.objects != self.axes:
                axis_free(&self.objects[d])
        if self.objects != self.axes:
            free(self.objects)
        free(self.again)
        free(self.deferred_tasks)

    cdef int _set_axis(self, Axis *axis, Edges edges, int64_t length, int64_t chunk, int64_t start, int64_t step,
                       int64_t count) except? -1:
        """Project one dimension; returns whether the selection does not fit it."""
        cdef int code
        if edges is None:
            return axis_init(axis, length, chunk, start, step, count)
        assert edges.total >= length and edges.longest == chunk
        code = axis_init_runs(axis, edges.table, edges.n_runs, length, chunk, start, step, count)
        if code < 0:
            raise MemoryError
        return code

    cdef int _set_array(self, object elements) except -1:
        cdef cnp.ndarray array = elements
        cdef int d
        self.array = array
        if array is None:
            return 0
        assert cnp.PyArray_NDIM(array) == self.ndim and cnp.PyArray_ITEMSIZE(array) == self.itemsize
        self.data = <char *>cnp.PyArray_DATA(array)
        for d in range(self.ndim):
            assert cnp.PyArray_DIM(array, d) == self.axes[d].count
            self.data_strides[d] = cnp.PyArray_STRIDE(array, d)
        return 0

    cdef void measure(self, const int64_t *lengths, Layout *layout) noexcept nogil:
        """Find how elements lie in a chunk of these lengths."""
        cdef int i = self.ndim - 1
        cdef int d
        layout.n_items = 1
        layout.in_place = self.swap == 0
        while i >= 0:
            d = self.order[i]
            layout.strides[d] = layout.n_items * self.itemsize
            if lengths[d] > 1 and self.data_strides[d] != layout.strides[d]:
                layout.in_place = False
            layout.n_items *= lengths[d]
            i -= 1
        layout.n_bytes = layout.n_items * self.itemsize

    cdef int _resume(self, Plan before) except -1:
        """Take over what `before` did not do. Its `n_taken` counts its own list first, then new tasks."""
        cdef int64_t n_old = before.n_taken if before.n_taken < before.n_again else before.n_again
        cdef int64_t n_left = before.n_again - n_old
        self.first = before.first + (before.n_taken - before.n_again if before.n_taken > before.n_again else 0)
        self.n_again = before.n_deferred + n_left
        if self.n_again:
            self.again = <int64_t *>malloc(self.n_again * sizeof(int64_t))
            if self.again == NULL:
                raise MemoryError
            if before.n_deferred:
                memcpy(self.again, before.deferred_tasks, before.n_deferred * sizeof(int64_t))
            if n_left:
                memcpy(self.again + before.n_deferred, before.again + n_old, n_left * sizeof(int64_t))
        return 0

    cdef int _select(self, object tasks) except -1:
        cdef int64_t i
        self.first = self.n_tasks
        self.n_again = len(tasks)
        self.again = <int64_t *>malloc((self.n_again + 1) * sizeof(int64_t))
        if self.again == NULL:
            raise MemoryError
        for i in range(self.n_again):
            self.again[i] = tasks[i]
            assert 0 <= self.again[i] < self.n_tasks
        return 0

    # geometry of a task

    cdef void spans_of(self, int64_t task, Span *spans) noexcept nogil:
        """The part of the selection that lies in the object of a task."""
        cdef int d = self.ndim - 1
        cdef int64_t rest
        while d >= 0:
            rest = task // self.objects[d].n_chunks
            axis_span(&self.objects[d], task - rest * self.objects[d].n_chunks, &spans[d])
            task = rest
            d -= 1

    cdef void begin_chunk(self, const Span *spans, Worker *worker) noexcept nogil:
        """Let the worker know the shape of the chunk of a task."""
        cdef int64_t lengths[MAX_NDIM]
        cdef int d
        if self.is_irregular:
            for d in range(self.ndim):
                lengths[d] = spans[d].length
            self.measure(lengths, &worker.layout)

    cdef int64_t chunks_of(self, const Axis *axes, const Span *object, int64_t *first, int64_t *count) noexcept nogil:
        """The chunks of an object that are touched, as positions on `axes`; returns how many there are."""
        cdef const Axis *axis
        cdef int64_t low
        cdef int64_t n = 1
        cdef int d
        for d in range(self.ndim):
            axis = &axes[d]
            low = object[d].origin + object[d].start
            if axis.step >= axis.chunk:
                first[d] = (low - axis.start) // axis.step
                count[d] = object[d].count
            else:
                first[d] = low // axis.chunk - axis.first_chunk
                count[d] = (low + (object[d].count - 1) * axis.step) // axis.chunk - low // axis.chunk + 1
            n *= count[d]
        return n

    cdef int64_t n_chunks_of(self, const Axis *axes, const Span *object) noexcept nogil:
        """How many chunks an object is cut into."""
        cdef int64_t n = 1
        cdef int d
        for d in range(self.ndim):
            n *= object[d].length // axes[d].chunk
        return n

    cdef int64_t chunk_of(self, const Axis *axes, const Span *object, const int64_t *first, const int64_t *count,
                          int64_t i, Span *spans) noexcept nogil:
        """The i-th chunk that `chunks_of` has found: its spans, and its position in the object in C order."""
        cdef int d = self.ndim - 1
        cdef int64_t rest
        cdef int64_t ratio
        cdef int64_t stride = 1
        cdef int64_t position = 0
        while d >= 0:
            rest = i // count[d]
            axis_span(&axes[d], first[d] + i - rest * count[d], &spans[d])
            i = rest
            ratio = object[d].length // axes[d].chunk
            position += (spans[d].chunk - object[d].origin // axes[d].chunk) * stride
            stride *= ratio
            d -= 1
        return position

    cdef int key_of(self, const Span *spans, char *key) noexcept nogil:
        """Write the key of a task's chunk, with a final zero; returns its length."""
        cdef char digits[MAX_DIGITS]
        cdef int n = self.n_head
        cdef int n_digits
        cdef int64_t number
        cdef int d
        memcpy(key, self.head_text, n)
        for d in range(self.ndim):
            if d:
                memcpy(key + n, self.separator_text, self.n_separator)
                n += self.n_separator
            number = spans[d].chunk
            n_digits = 0
            while True:
                digits[n_digits] = c'0' + <char>(number % 10)
                n_digits += 1
                number //= 10
                if number == 0:
                    break
            while n_digits:
                n_digits -= 1
                key[n] = digits[n_digits]
                n += 1
        memcpy(key + n, self.tail_text, self.n_tail + 1)
        return n + self.n_tail

    cdef bint is_whole(self, const Span *spans) noexcept nogil:
        """Whether the task takes every element of its chunk, in order."""
        cdef int d
        for d in range(self.ndim):
            if spans[d].count != spans[d].length or (spans[d].count > 1 and self.axes[d].out_step != 1):
                return False
        return True

    cdef int64_t data_offset(self, const Span *spans) noexcept nogil:
        cdef int64_t offset = 0
        cdef int d
        for d in range(self.ndim):
            offset += spans[d].out * self.data_strides[d]
        return offset

    cdef bint runs_of(self, const Span *spans, Runs *runs) noexcept nogil:
        """Describe where the elements of a whole chunk lie in the caller's array; whether to go block by block."""
        cdef int64_t shape[MAX_NDIM]
        cdef int d
        if not self.is_c_order or self.n_inner_threads > 1:
            return False
        for d in range(self.ndim):
            shape[d] = spans[d].length
        runs_init(runs, self.ndim, shape, self.data_strides, self.itemsize)
        return runs.n_items * runs.itemsize >= MIN_RUN_NBYTES

    cdef int64_t chunk_offset(self, const Span *spans, const Layout *layout) noexcept nogil:
        cdef int64_t offset = 0
        cdef int d
        for d in range(self.ndim):
            offset += spans[d].start * layout.strides[d]
        return offset

    cdef void copy_spec(self, const Span *spans, const Layout *layout, bint to_chunk, Copy *spec) noexcept nogil:
        """Describe the copy between the selected elements of a chunk and their place in the caller's array."""
        cdef int64_t *chunk_side = &spec.dst_strides[0] if to_chunk else &spec.src_strides[0]
        cdef int64_t *data_side = &spec.src_strides[0] if to_chunk else &spec.dst_strides[0]
        cdef int d
        spec.ndim = self.ndim
        spec.itemsize = self.itemsize
        spec.swap = self.swap
        for d in range(self.ndim):
            spec.shape[d] = spans[d].count
            # A step beyond the chunk is never taken, and its bytes may be no 64-bit number.
            chunk_side[d] = layout.strides[d] * self.axes[d].step if spans[d].count > 1 else 0
            data_side[d] = self.data_strides[d] * self.axes[d].out_step

    # the loop

    cdef int open_worker(self, Worker *worker) noexcept nogil:
        return OK

    cdef void close_worker(self, Worker *worker) noexcept nogil:
        buffer_free(&worker.encoded)
        buffer_free(&worker.decoded)
        workspace_free(&worker.work)
        buffer_free(&worker.index)
        buffer_free(&worker.extents)
        buffer_free(&worker.batch)

    cdef int run_task(self, int64_t task, Worker *worker) noexcept nogil:
        return OK

    cdef int poll(self, Worker *worker) noexcept nogil:
        """Whether the worker has to stop; on the main thread signal handlers get their turn."""
        cdef int64_t now
        if zc_load(&self.stop):
            return 1
        if worker.main:
            now = zc_now_ns()
            if now - worker.last_poll_ns > POLL_NS:
                worker.last_poll_ns = now
                if self._run_signal_handlers():
                    zc_store(&self.stop, 1)
                    return 1
        return 0

    cdef int _run_signal_handlers(self) noexcept with gil:
        try:
            try:
                PyErr_CheckSignals()
            except BaseException as exception:
                self.exception = exception
                return 1
        except:  # noqa: E722 (the only clause that cannot raise itself, as nobody above could see it)
            return 1
        return 0

    cdef int64_t _take(self) noexcept nogil:
        cdef int64_t i
        while True:
            i = zc_load(&self.n_taken)
            if i >= self.n_again + self.n_tasks - self.first:
                return -1
            # Never counted further: what resumes this plan takes `n_taken` for the tasks that somebody has had.
            if zc_swap_if(&self.n_taken, i, i + 1):
                break
        return self.again[i] if i < self.n_again else self.first + i - self.n_again

    cdef int _defer(self, int64_t task) noexcept nogil:
        """Note a task that was not done: for the engine, or for a plan that resumes this one."""
        cdef int64_t *grown
        cdef int code = OK
        while not zc_swap_if(&self.guard, 0, 1):
            pass
        if self.n_deferred == self.max_deferred:
            grown = <int64_t *>realloc(self.deferred_tasks, (2 * self.max_deferred + 64) * sizeof(int64_t))
            if grown == NULL:
                code = NO_MEMORY
            else:
                self.deferred_tasks = grown
                self.max_deferred = 2 * self.max_deferred + 64
        if code == OK:
            self.deferred_tasks[self.n_deferred] = task
            self.n_deferred += 1
        zc_store(&self.guard, 0)
        return code

    cdef void _record(self, const Status *status, int64_t task) noexcept nogil:
        """Keep the first failure and stop the plan."""
        while not zc_swap_if(&self.guard, 0, 1):
            pass
        if self.status.code == OK:
            self.status = status[0]
            self.status.task = task
        zc_store(&self.guard, 0)
        zc_store(&self.stop, 1)

    cdef void _loop(self, Worker *worker) noexcept nogil:
        cdef int64_t task
        cdef int code
        cdef bint undone
        while not self.poll(worker):
            task = self._take()
            if task < 0:
                return
            code = self.run_task(task, worker)
            if code == OK:
                continue
            # Left to Python, or to be done again once the plan is made anew: in either case not done.
            undone = code == BLOSC_SNAPPY or code == STALE or code == INTERRUPTED or (
                self.lenient and code == BLOSC_NBYTES)
            if undone and self._defer(task) != OK:
                code = fail(&worker.status, NO_MEMORY, 0, 0, 0)
                undone = False
            if code == STALE or not undone:
                self._record(&worker.status, task)
                return
            status_clear(&worker.status)

    def run(self, bint main=True):
        """Run tasks until none is left or the plan has stopped; any number of threads may be in here.

        Never raises for a task: `raise_failure` does when all have left. `main` is for the thread that
        waits for the plan, of which there is one.
        """
        cdef Worker worker
        memset(&worker, 0, sizeof(Worker))
        worker.main = main
        worker.plan = <void *>self
        worker.layout = self.layout
        worker.holder.fd = -1
        status_clear(&worker.status)
        with nogil:
            worker.last_poll_ns = zc_now_ns()
            if self.open_worker(&worker) == OK:
                self._loop(&worker)
            else:
                self._record(&worker.status, -1)
            self.close_worker(&worker)

    def cancel(self):
        """Let every thread stop after the task it is in."""
        zc_store(&self.stop, 1)

    @property
    def n_left(self):
        """Tasks that nobody has taken yet."""
        return max(0, self.n_again + self.n_tasks - self.first - self.n_taken)

    def take(self):
        """Return the next task for a run in Python, or -1 when none is left or the plan has stopped."""
        return -1 if zc_load(&self.stop) else self._take()

    def leave_stale(self, int64_t task):
        """Give a task back, undone, and stop the plan as `stale`."""
        cdef Status status
        status_clear(&status)
        fail(&status, STALE, 0, 0, 0)
        if self._defer(task) != OK:
            raise MemoryError
        self._record(&status, task)

    @property
    def stopped(self):
        """Whether nobody should wait any longer to do a task."""
        return zc_load(&self.stop) != 0

    def finds(self, str document not None, tuple identity not None):
        """Return whether the name `document` in the plan's directory stands for the object of that identity."""
        cdef Identity now
        cdef bytes name = os.fsencode(document)
        return (identify_name(self.dirfd, name, &now) == 0
                and (now.device, now.inode, now.size, now.mtime_ns, now.ctime_ns) == identity)

    @property
    def stale(self):
        """Whether the plan stopped because the metadata document is not the one it was made from."""
        return self.status.code == STALE

    @property
    def deferred(self):
        """Tasks left to Python: a list of int."""
        return [self.deferred_tasks[i] for i in range(self.n_deferred)]

    def raise_failure(self, codecs):
        """Raise what a signal handler raised or what made a task fail, if anything.

        `codecs` names the steps of the program. Neither the plan nor a frame keeps the exception, whose traceback leads
        to the plan: its buffers, descriptors and the caller's array are free as soon as the exception is.
        """
        exception, self.exception = self.exception, None
        if exception is None:
            exception = self._error(codecs)
        if exception is not None:
            raise exception

    cdef object _error(self, object codecs):
        if self.status.code == OK or self.status.code == STALE:
            return None
        key, coords, inner = None, None, ()
        if self.status.task >= 0:
            key, coords, _, _, _ = self.task(self.status.task)
            inner = self._inner_coords(self.place(self.status.task)[1])
        codec = codecs[self.status.step] if 0 <= self.status.step < len(codecs) else None
        return make_error(&self.status, key, coords, codec, self._direction(), inner)

    def _inner_coords(self, shard_shape):
        """Return which chunk of its shard has failed, its coordinates in a tuple, or nothing in it."""
        if self.status.inner < 0:
            return ()
        chunk_shape = [self.axes[d].chunk for d in range(self.ndim)]
        return (coords_of(self.status.inner, shard_shape, chunk_shape),)

    def _direction(self):
        return None

    def task(self, int64_t task):
        """Return what a task is, for code that runs it in Python.

        Returns
        -------
        (key, chunk_coords, chunk_selection, array_selection, covered)
            Of the stored object. `covered`: no element of it inside the array is left out.
        """
        cdef Span spans[MAX_NDIM]
        cdef char key[MAX_KEY]
        cdef int d
        cdef int64_t last
        self.spans_of(task, spans)
        cdef int n = self.key_of(spans, key)
        coords, inside, outside, covered = [], [], [], True
        for d in range(self.ndim):
            coords.append(spans[d].chunk)
            step = self.objects[d].step
            inside.append(slice(spans[d].start, spans[d].start + (spans[d].count - 1) * step + 1, step))
            last = spans[d].out + spans[d].count * self.objects[d].out_step
            outside.append(slice(spans[d].out, last if last >= 0 else None, self.objects[d].out_step))
            covered = covered and spans[d].count == spans[d].valid
        return key[:n].decode(), tuple(coords), tuple(inside), tuple(outside), covered

    def place(self, int64_t task):
        """Return the first element and the shape of a task's object, in elements: two tuples of int."""
        cdef Span spans[MAX_NDIM]
        self.spans_of(task, spans)
        return (tuple([spans[d].origin for d in range(self.ndim)]), tuple([spans[d].length for d in range(self.ndim)]))

    cdef int load(self, const char *key, const Span *spans, Worker *worker) noexcept nogil:
        """Read an object that is one chunk and take it in: OK, MISSING, or another code with the worker's status."""
        cdef int64_t limit = self.program.max_encoded(worker.layout.n_bytes)
        cdef int64_t n
        cdef int64_t n_all
        cdef Identity identity
        cdef int code
        cdef int fd = object_open(self.dirfd, key, &worker.status)
        if fd == ABSENT:
            return MISSING
        if fd == FAILED:
            return worker.status.code
        n = object_read(fd, limit, &worker.encoded, &worker.status)
        if n == ABSENT:
            object_close(fd)
            return MISSING
        code = worker.status.code
        if n >= 0:
            code = self._take_in(n, limit, spans, worker)
            if code != OK:
                # Were these all bytes of the object? One read more tells.
                n_all = object_read_rest(fd, n, limit, &worker.encoded, &worker.status)
                if n_all > n:
                    status_clear(&worker.status)
                    code = self._take_in(n_all, limit, spans, worker)
        if code == CHUNK_LONG and identify_fd(fd, &identity) == 0:
            worker.status.found = identity.size
        object_close(fd)
        return code

    cdef int _take_in(self, int64_t n_bytes, int64_t limit, const Span *spans, Worker *worker) noexcept nogil:
        if n_bytes > limit:
            return fail(&worker.status, CHUNK_LONG, limit, limit, n_bytes)
        return self.take_in(worker.encoded.data, n_bytes, spans, worker)

    cdef int take_in(self, const uint8_t *encoded, int64_t n_bytes, const Span *spans, Worker *worker) noexcept nogil:
        """Decode a chunk to the worker's scratch, which is reserved only now: an absent chunk needs no memory."""
        if buffer_reserve(&worker.decoded, worker.layout.n_bytes, &worker.status) != OK:
            return worker.status.code
        return self.program.decode(encoded, n_bytes, worker.decoded.data, worker.layout.n_bytes, self.n_inner_threads,
                                   &worker.work, &worker.status)


cdef int poll_worker(void *context) noexcept with gil:
    """Whether a worker that waits for a lock has to give up; `context` is the `Worker`."""
    cdef Worker *worker = <Worker *>context
    return (<Plan>worker.plan).poll(worker)
