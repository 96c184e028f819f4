# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Objects that Python passes to a plan and takes from it, for stores whose values are not files.

A thread that runs such a plan has one `Feed`. For reading, it takes tasks, gets their objects from the store and passes
them to the feed, which decodes them and moves the elements without the GIL, like objects read from files. For writing,
it gets the bytes of each object from the feed, and puts them. Python decides which keys, when, and under which lock;
only the kernel handles the content.

For a shard, parts are enough: its index, then the chunks that `wanted` names.
"""
from array import array
from operator import itemgetter

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from zcore import errors

from zcore.kernel.memory cimport Bytes
from zcore.kernel.plan.cache cimport identity_of
from zcore.kernel.codec.table cimport workspace_exception
from zcore.kernel.strided.copy cimport MAX_NDIM
from zcore.kernel.io.files cimport FAILED, Block, Identity
from zcore.kernel.select.grid cimport Span
from zcore.kernel.plan.chunk cimport place_kept
from zcore.kernel.plan.fetch cimport stored_limit
from zcore.kernel.plan.plan cimport FILLED, SAME, Object, Plan, Worker
from zcore.kernel.plan.read cimport ReadPlan
from zcore.kernel.plan.shard_index cimport Extent
from zcore.kernel.status cimport INTERRUPTED, OK, STALE, status_clear
from zcore.kernel.select.open_array cimport MAX_KEY
from zcore.kernel.plan.write cimport WritePlan

# Size of a shard in blocks if the store does not tell it: no chunk ends behind it.
UNKNOWN = 1 << 62
# Result of `Feed.merge` for an object that stays as it is.
UNCHANGED = type("Unchanged", (), {"__repr__": lambda self: "UNCHANGED"})()


@cython.final
@cython.no_gc_clear
cdef class Feed:
    """The objects that one thread passes to a plan and takes from it.

    Parameters
    ----------
    plan : Plan
        A `ReadPlan` or a `WritePlan` without a directory.
    step_names : tuple of str
        Step names of its program, for errors.
    main : bool
        Whether this thread waits for the plan, so that signal handlers run in it.
    """

    cdef Plan plan
    cdef Worker worker
    cdef object step_names

    def __cinit__(self, Plan plan not None, step_names=(), bint main=True):
        self.plan = plan
        self.step_names = step_names
        plan.furnish(&self.worker, main)

    def __dealloc__(self):
        Plan.close_worker(self.plan, &self.worker)

    # tasks

    def key(self, int64_t task):
        """Return the key of the object of a task, relative to the array."""
        cdef Span spans[MAX_NDIM]
        cdef char key[MAX_KEY]
        self.plan.spans_of(self.plan.object_of(task), spans)
        return key[:self.plan.key_of(spans, key)].decode()

    def is_covered(self, int64_t task):
        """Return whether the selection covers all elements of the object that are inside the array."""
        cdef Span spans[MAX_NDIM]
        self.plan.spans_of(self.plan.object_of(task), spans)
        return bool(self.plan.has_elements and self.plan.is_covered(spans))

    def limit(self, int64_t task):
        """Return the maximum size of a task's object; for a shard, of all its chunks together."""
        cdef Span spans[MAX_NDIM]
        self.plan.spans_of(self.plan.object_of(task), spans)
        self.plan.measure_chunk(spans, &self.worker.layout)
        return stored_limit(self.plan, spans, &self.worker)

    # reading

    def read(self, list tasks not None, list values not None):
        """Pass the whole objects of tasks to the plan; None means absent.

        A failure with one of them is kept by the plan, which stops: see `Plan.raise_failure`.

        Raises : StoreError, if a value is not bytes-like.
        """
        cdef Py_ssize_t n = len(tasks)
        cdef Py_ssize_t i
        cdef list views = []
        cdef Bytes numbers = Bytes(array("q", tasks))
        cdef Bytes held = Bytes(bytearray(n * sizeof(Object)))
        cdef Object *passed = <Object *>held.data
        for i in range(n):
            views.append(_pass(self, tasks[i], values[i], &passed[i]))
        with nogil:
            for i in range(n):
                if self.plan.poll(&self.worker) or not self._run((<int64_t *>numbers.data)[i], &passed[i]):
                    break

    def read_one(self, int64_t task, value, size=None, identity=None):
        """Pass one object to the plan.

        `size` is its full size if `value` may be only its beginning. Its chunk is cached with `identity`, the identity
        with which it was read.
        """
        cdef Object passed
        cdef Identity known
        cdef Bytes _held = _pass(self, task, value, &passed, size)
        if identity is not None and identity_of(identity, &known):
            passed.identity = known
            passed.is_identified = True
        with nogil:
            self._run(task, &passed)

    def find(self, int64_t task, tuple identity not None):
        """Fill in the elements of a cached chunk of the object with this identity; return whether it is cached."""
        cdef Span spans[MAX_NDIM]
        cdef Identity known
        cdef ReadPlan plan = <ReadPlan?>self.plan
        cdef bint found
        if plan.chunks is None or not identity_of(identity, &known):
            return False
        with nogil:
            plan.spans_of(plan.object_of(task), spans)
            plan.measure_chunk(spans, &self.worker.layout)
            found = place_kept(plan, &known, 0, known.size, spans, &self.worker)
        return bool(found)

    cdef bint _run(self, int64_t task, const Object *passed) noexcept nogil:
        cdef bint goes_on
        self.worker.passed = passed
        goes_on = self.plan.finish(task, self.plan.run_task(task, &self.worker), &self.worker)
        self.worker.passed = NULL
        return goes_on

    # shards in parts

    def wanted(self, int64_t task, int64_t size, list blocks not None):
        """Return the byte ranges of a shard that are needed beside those at hand, a list of (start, stop).

        Parameters
        ----------
        task : int
        size : int
            Size of the shard, or UNKNOWN.
        blocks : list of (start, bytes-like)

        Returns
        -------
        list
            Ranges of indices, as long as any are missing: after passing them, the caller calls again. Then ranges of
            chunks; empty when all are at hand.
        None
            An index is damaged, and the size UNKNOWN: the shard may have been replaced between two blocks.

        Raises
        ------
        ChunkError
            An index is damaged.
        """
        cdef Span spans[MAX_NDIM]
        cdef const Extent *extents = NULL
        cdef int64_t n = 0
        cdef int64_t i
        cdef int code
        cdef _Passed blocked = _Passed(self, task, size, blocks)
        with nogil:
            self.plan.spans_of(self.plan.object_of(task), spans)
            self.worker.passed = &blocked.object
            code = _find_wanted(self.plan, spans, &extents, &n, &self.worker)
            self.worker.passed = NULL
        if code != OK:
            if size == UNKNOWN and _forgets(self, code):
                return None
            _fail(self, task)
        found = [(<int64_t>extents[i].offset, <int64_t>extents[i].offset + extents[i].n_bytes)
                 for i in range(n) if extents[i].i < 0]
        if found:
            return found
        return [(<int64_t>extents[i].offset, <int64_t>extents[i].offset + extents[i].n_bytes)
                for i in range(n) if extents[i].n_bytes > 0 and not blocked.has(&extents[i])]

    def read_blocks(self, int64_t task, int64_t size, list blocks not None):
        """Pass a shard to the plan when nothing of it is `wanted` any more; return whether its chunks were decoded.

        It is always True if `size` is known: then the plan keeps a failure.
        """
        cdef _Passed blocked = _Passed(self, task, size, blocks)
        cdef int code
        with nogil:
            self.worker.passed = &blocked.object
            code = self.plan.run_task(task, &self.worker)
            self.worker.passed = NULL
        if size == UNKNOWN and code != OK and _forgets(self, code):
            return False
        with nogil:
            self.plan.finish(task, code, &self.worker)
        return True

    # writing

    def encode(self, int64_t task, bint keeps_filled):
        """Return the object of a task that covers it, or None if it holds only the fill value.

        Raises : ChunkError, if its elements cannot be encoded.
        """
        return _encoded(self, task, NULL, keeps_filled)

    def merge(self, int64_t task, old, bint keeps_filled, size=None):
        """Return the old object merged with the elements of a task, bytes-like or None.

        `size` is the full size of the old object if `old` is only its beginning.

        Returns
        -------
        bytes, None or UNCHANGED
            None: only the fill value is left. UNCHANGED: the object stays as it is.

        Raises
        ------
        ChunkError
            The old object is damaged; or it is absent, and the array reports missing chunks as errors.
        """
        cdef Object passed
        cdef Bytes _held = _pass(self, task, old, &passed, size)
        return _encoded(self, task, &passed, keeps_filled)

    def merge_blocks(self, int64_t task, int64_t size, list blocks not None, bint keeps_filled):
        """Like `merge`, for a shard of which nothing is `wanted` any more."""
        cdef _Passed blocked = _Passed(self, task, size, blocks)
        return _encoded(self, task, &blocked.object, keeps_filled)


cdef Bytes _bytes(Feed self, int64_t task, object value):
    try:
        return Bytes(value)
    except (TypeError, BufferError, ValueError) as exc:
        key = self.key(task)
        raise errors.StoreError(f"{key}: the store gave {type(value).__name__}, expected contiguous bytes",
                                key=key) from exc


cdef Bytes _pass(Feed self, int64_t task, object value, Object *passed, object size=None):
    """Describe the object of a task in `passed`, and return its bytes, or None for an absent one.

    `size` is its full size if `value` may be only its beginning.
    """
    cdef Bytes view
    memset(passed, 0, sizeof(Object))
    passed.content.fd = -1
    passed.is_absent = value is None
    if value is None:
        return None
    view = _bytes(self, task, value)
    passed.content.data = view.data
    passed.content.size = view.n if size is None else max(size, view.n)
    if view.n < passed.content.size <= self.limit(task):
        key = self.key(task)
        raise errors.StoreError(f"{key}: the store gave {view.n} of {passed.content.size} bytes", key=key)
    return view


cdef bint _forgets(Feed self, int code):
    """Drop the failure with a shard that may not be damaged; return whether it was about the shard's bytes."""
    if code == STALE or code == INTERRUPTED:
        return False
    workspace_exception(&self.worker.work)
    status_clear(&self.worker.status)
    return True


cdef int _find_wanted(Plan plan, const Span *spans, const Extent **extents, int64_t *n, Worker *worker) noexcept nogil:
    n[0] = 0
    if plan.levels is None:
        return OK
    if plan.encodes:
        return (<WritePlan>plan).shards.find_wanted(plan, spans, extents, n, worker)
    return (<ReadPlan>plan).shards.find_wanted(plan, spans, extents, n, worker)


cdef object _encoded(Feed self, int64_t task, const Object *passed, bint keeps_filled):
    cdef const uint8_t *encoded = NULL
    cdef int64_t n
    cdef WritePlan plan = <WritePlan?>self.plan
    with nogil:
        self.worker.passed = passed
        self.worker.keeps_filled = keeps_filled
        n = plan.encode_task(task, &self.worker, &encoded)
        self.worker.passed = NULL
    if n == FILLED:
        return None
    if n == SAME:
        return UNCHANGED
    if n == FAILED:
        _fail(self, task)
    return PyBytes_FromStringAndSize(<const char *>encoded, n)


cdef int _fail(Feed self, int64_t task) except -1:
    """Raise the worker's failure, and stop the plan."""
    self.plan.record(&self.worker, task)
    status_clear(&self.worker.status)
    self.plan.raise_failure(self.step_names)
    raise errors.StoreError(f"{self.key(task)}: interrupted", key=self.key(task))


@cython.final
@cython.no_gc_clear
cdef class _Passed:
    """Blocks of a shard, sorted, with the objects that hold their bytes."""

    cdef Object object
    cdef Block *blocks
    cdef Bytes held            # their memory
    cdef list views

    def __cinit__(self, Feed feed not None, int64_t task, int64_t size, list blocks not None):
        cdef Py_ssize_t i = 0
        cdef Bytes view
        memset(&self.object, 0, sizeof(Object))
        self.held = Bytes(bytearray((len(blocks) + 1) * sizeof(Block)))
        self.blocks = <Block *>self.held.data
        self.views = []
        for start, value in sorted(blocks, key=itemgetter(0)):
            view = _bytes(feed, task, value)
            self.views.append(view)
            self.blocks[i].data = view.data
            self.blocks[i].start = start
            self.blocks[i].stop = start + view.n
            i += 1
        self.object.content.fd = -1
        self.object.content.size = size
        self.object.content.blocks = self.blocks
        # One empty block stands for none: it contains nothing.
        self.object.content.n_blocks = max(i, 1)

    cdef bint has(self, const Extent *extent) noexcept:
        cdef int64_t i
        for i in range(self.object.content.n_blocks):
            if (self.blocks[i].start <= <int64_t>extent.offset
                    and <int64_t>extent.offset + extent.n_bytes <= self.blocks[i].stop):
                return True
        return False
