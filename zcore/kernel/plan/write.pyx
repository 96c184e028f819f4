# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Writing: each task replaces one stored object, under its lock.

A covered object (all its elements inside the array are written) is encoded and staged beside the old one before the
lock is taken, and never read. A partly covered object is read, merged and written back under the lock. Elements of a
chunk outside the array are reset to the fill value on the way, whichever program wrote them. An object that holds only
the fill value is erased, not written, unless the caller wants it stored. If all elements to be written are one in
memory, and that is the fill value, nothing is encoded, and absent objects are not locked.
"""
from libc.errno cimport ENOENT
from libc.string cimport memcmp

from zcore.kernel.atomics cimport zc_add, zc_load, zc_store
from zcore.kernel.io.files cimport (
    FAILED, MAX_WAITING, buffer_reserve, object_commit, object_drop, object_erase, object_is_absent, object_read,
    object_stage, pass_barrier, same_identity, write_out_all, staging_init, staging_write_out,
)
from zcore.kernel.io.locks cimport holder_close, holder_open, key_hash, lock_object, unlock_object
from zcore.kernel.plan.chunk cimport encode_covered_chunk, encode_merged_chunk, merge_chunk
from zcore.kernel.plan.fetch cimport fetch_end, fetch_open, fetch_whole
from zcore.kernel.plan.plan cimport FILLED, SAME, Object, PlanOptions, poll_worker
from zcore.kernel.select.grid cimport Span
from zcore.kernel.select.open_array cimport MAX_KEY, OpenArray, Opened
from zcore.kernel.status cimport (
    CHUNK_LONG, INTERRUPTED, IO_OPEN, IO_RENAME, MISSING, OK, STALE, fail, make_error, status_clear,
)
from zcore.kernel.strided.copy cimport MAX_NDIM


cdef enum:
    _MAX_OPEN = 128                # files of all workers that are kept open until they are written out


cdef class WritePlan(Plan):
    """A `Plan` that writes; same parameters. If objects are shards, a `ShardWriter` handles them.

    A worker that finds another document than that of the open array stops the plan. Without `elements`, nothing is
    written; existing objects are reset outside `old_shape`.
    """

    def __init__(self, OpenArray array not None, selection, elements=None, PlanOptions options=None):
        cdef int d
        if options is None:
            options = PlanOptions()
        self.encodes = True
        Plan.__init__(self, array, selection, elements, options)
        if self.levels is not None:
            self.shards = ShardWriter(self)
        if self.adapt(options.n_threads) != OK:
            raise MemoryError
        if self.items is not None and not self.opened.keep_filled:
            self.is_fill = self.items.is_fill
        for d in range(self.ndim):
            self.old_shape[d] = self.opened.shape[d]
        self.token = options.token
        self.writes_out = options.writes_out
        self.locks = options.locks
        for d in range(0 if options.old_shape is None else self.ndim):
            self.old_shape[d] = options.old_shape[d]

    cdef int adapt(self, int n_threads) noexcept nogil:
        Plan.adapt(self, n_threads)
        self.room = max(1, min(<int>MAX_WAITING, <int>_MAX_OPEN // max(1, n_threads)))
        _find_fill(self)
        return OK if self.shards is None else self.shards.follow(self, n_threads)

    cdef int write_out(self, Status *status) noexcept nogil:
        """After all workers: wait until what they wrote is written out, and, with fsync, on the disk: OK or a code."""
        cdef bint has_many = zc_load(&self.has_many)
        self.has_many = 0
        if has_many:
            return write_out_all(self.dirfd, status)     # that is a barrier as well
        return pass_barrier(self.dirfd, False, status) if self.opened.fsync and self.dirfd >= 0 else OK

    def raise_failure(self, codecs):
        cdef Status status
        Plan.raise_failure(self, codecs)
        status_clear(&status)
        with nogil:
            self.write_out(&status)
        if status.code != OK:
            raise make_error(&status, None, None, None, None, ())

    @property
    def keep_filled(self):
        """Whether objects that hold only the fill value are stored."""
        return bool(self.opened.keep_filled)

    cdef int open_worker(self, Worker *worker) noexcept nogil:
        cdef int code
        # Each worker has its own temporary names.
        cdef uint64_t token = self.token + <uint64_t>zc_add(&self.n_workers, 1)     # no order: it only counts
        cdef const char *document = self.opened.document
        cdef int dirfd = self.dirfd if document != NULL else -1
        worker.keeps_filled = self.opened.keep_filled
        staging_init(&worker.staging, token, self.writes_out or self.opened.fsync)
        worker.staging.room = self.room
        worker.staging.disk = <int>zc_load(&(<Opened *>self.opened).disk)
        if self.locks is None:
            return OK
        code = holder_open(&worker.holder, &self.locks.table, dirfd, document, &worker.status)
        if code != OK:
            return code
        if self.opened.has_identity and not same_identity(&worker.holder.identity, &self.opened.identity):
            return fail(&worker.status, STALE, 0, 0, 0)
        if self.opened.n_content >= 0 and worker.holder.fd >= 0:
            return _compare_content(self, worker)
        return OK

    cdef void close_worker(self, Worker *worker) noexcept nogil:
        object_drop(self.dirfd, &worker.staging)
        if staging_write_out(&worker.staging, &worker.status) != OK:
            self.record(worker, -1)
        zc_store(&(<Opened *>self.opened).disk, worker.staging.disk)
        if worker.staging.has_many:
            zc_store(&self.has_many, 1)
        holder_close(&worker.holder)
        Plan.close_worker(self, worker)

    cdef void _loop(self, Worker *worker) noexcept nogil:
        Plan._loop(self, worker)
        if self.shards is not None:
            self.shards.help(self, worker)

    cdef int run_task(self, int64_t task, Worker *worker) noexcept nogil:
        cdef Span spans[MAX_NDIM]
        cdef char key[MAX_KEY]
        cdef int code
        self.spans_of(task, spans)
        self.measure_chunk(spans, &worker.layout)
        self.key_of(spans, key)
        if self.shards is not None:
            zc_add(&self.shards.n_open, 1)
        if self.has_elements and self.is_covered(spans):
            code = _replace(self, spans, key, worker)
        else:
            code = _merge(self, spans, key, worker)
        if self.shards is not None:
            zc_add(&self.shards.n_open, -1)
        return code

    cdef int64_t encode_task(self, int64_t task, Worker *worker, const uint8_t **encoded) noexcept nogil:
        cdef Span spans[MAX_NDIM]
        self.spans_of(task, spans)
        self.measure_chunk(spans, &worker.layout)
        if worker.passed == NULL:
            return _encode_covered(self, spans, worker, encoded)
        if buffer_reserve(&worker.decoded, worker.layout.n_bytes, &worker.status) != OK:
            return FAILED
        return _encode_merged(self, spans, NULL, worker, encoded)


cdef void _find_fill(WritePlan plan) noexcept nogil:
    cdef int d
    plan.is_fill = (plan.data != NULL and plan.points is None and not plan.opened.keep_filled
                    and plan.item_nbytes == plan.opened.itemsize)
    for d in range(plan.ndim):
        if plan.axes[d].count == 0 or (plan.axes[d].count > 1 and plan.data_strides[d] != 0):
            plan.is_fill = False
    if plan.is_fill:
        plan.is_fill = memcmp(plan.data, plan.opened.fill, <size_t>plan.item_nbytes) == 0


cdef int _compare_content(WritePlan plan, Worker *worker) noexcept nogil:
    cdef int64_t n = object_read(worker.holder.fd, plan.opened.n_content, &worker.encoded, &worker.status)
    if n == FAILED and worker.status.code != CHUNK_LONG:
        return worker.status.code
    if n != plan.opened.n_content or memcmp(worker.encoded.data, plan.opened.content, <size_t>n) != 0:
        return fail(&worker.status, STALE, 0, 0, 0)
    return OK


cdef int _replace(WritePlan plan, const Span *spans, const char *key, Worker *worker) noexcept nogil:
    """Write a covered object without reading the old one: encode, stage, lock, put."""
    cdef const uint8_t *encoded = NULL
    cdef int64_t n
    cdef int staged = FILLED
    cdef int code
    if plan.is_fill:
        # Of two writers that meet here, this one came first.
        if object_is_absent(plan.dirfd, key):
            return OK
    elif plan.shards is not None:
        staged = plan.shards.stage_covered(plan, spans, key, worker)
    else:
        n = _encode_covered(plan, spans, worker, &encoded)
        staged = _stage(plan, key, encoded, n, worker)
    if staged > OK:
        return _explain(plan, key, staged, worker)
    code = _lock(plan, key, worker)
    if code != OK:
        object_drop(plan.dirfd, &worker.staging)
        return code
    code = _put(plan, key, staged, worker)
    _unlock(plan, worker)
    return _explain(plan, key, code, worker)


cdef int _merge(WritePlan plan, const Span *spans, const char *key, Worker *worker) noexcept nogil:
    """Change some elements of an object: lock, fetch, merge, encode, stage, put."""
    cdef const uint8_t *encoded = NULL
    cdef int64_t n
    cdef int code
    if buffer_reserve(&worker.decoded, worker.layout.n_bytes, &worker.status) != OK:
        return worker.status.code
    code = _lock(plan, key, worker)
    if code != OK:
        return code
    if plan.shards is not None:
        code = plan.shards.stage_merged(plan, spans, key, worker)
    else:
        n = _encode_merged(plan, spans, key, worker, &encoded)
        # A codec in Python may have let a signal handler fork, and the child does not hold the lock.
        code = INTERRUPTED if n != FAILED and plan.is_cut_off() else _stage(plan, key, encoded, n, worker)
    if code <= OK:
        code = _put(plan, key, code, worker)
    _unlock(plan, worker)
    return _explain(plan, key, code, worker)


cdef int _stage(WritePlan plan, const char *key, const uint8_t *encoded, int64_t n, Worker *worker) noexcept nogil:
    """Write the temporary file of an object of size `n`: OK or a code. For FILLED and SAME, do nothing."""
    if n == FAILED:
        return worker.status.code
    if n == FILLED or n == SAME:
        return <int>n
    return object_stage(plan.dirfd, key, encoded, n, &worker.staging, &worker.status)


cdef int _put(WritePlan plan, const char *key, int staged, Worker *worker) noexcept nogil:
    """Put what was staged in the place of an object, or erase it if that is FILLED: OK or a code."""
    if staged == SAME:
        return OK
    if staged == FILLED:
        return object_erase(plan.dirfd, key, &worker.status)
    return object_commit(plan.dirfd, key, &worker.staging, &worker.status)


cdef int _explain(WritePlan plan, const char *key, int code, Worker *worker) noexcept nogil:
    """Return the result of a write: `code`, or STALE, if the directory of the object is gone since the array is."""
    cdef Status failure
    if (code != IO_OPEN and code != IO_RENAME) or worker.status.sys_errno != ENOENT:
        return code
    failure = worker.status
    status_clear(&worker.status)
    code = _lock(plan, key, worker)
    if code != OK:
        return code
    _unlock(plan, worker)
    worker.status = failure
    return failure.code


cdef int64_t _encode_covered(WritePlan plan, const Span *spans, Worker *worker, const uint8_t **encoded) noexcept nogil:
    """Encode an object of which all elements inside the array are written: return its size, FILLED or FAILED."""
    if plan.is_fill:
        return FILLED
    if plan.shards is None:
        return encode_covered_chunk(plan, spans, worker, encoded)
    return plan.shards.encode_covered(plan, spans, worker, encoded)


cdef int64_t _encode_merged(WritePlan plan, const Span *spans, const char *key, Worker *worker,
                            const uint8_t **encoded) noexcept nogil:
    """Encode an object of which some elements are written: return its size, FILLED, SAME or FAILED."""
    cdef int code = _fetch_old(plan, spans, key, worker)
    if code == MISSING and not plan.has_elements:
        return SAME
    if code == MISSING and plan.opened.missing_raises:
        fail(&worker.status, MISSING, 0, 0, 0)
        return FAILED
    if code == MISSING and plan.is_fill:
        return SAME
    if code != OK and code != MISSING:
        # Results that are no failure, such as an interruption, have not set the code.
        worker.status.code = code
        return FAILED
    if plan.shards is None:
        return encode_merged_chunk(plan, spans, code == OK, worker, encoded)
    return plan.shards.encode_merged(plan, spans, code == OK, worker, encoded)


cdef int _fetch_old(WritePlan plan, const Span *spans, const char *key, Worker *worker) noexcept nogil:
    """Fetch a stored object and merge it, or, if it is a shard, get its bytes: OK, MISSING, or another code."""
    cdef Object object
    cdef int code = fetch_open(plan, key, &object, worker)
    if code != OK:
        return code
    if plan.shards is not None:
        # Gaps can make a shard longer than the limit of its chunks, so the limit does not apply here.
        worker.content = object.content
        return OK
    code = fetch_whole(plan, &object, spans, merge_chunk, worker)
    return fetch_end(plan, &object, code, worker)


cdef int _lock(WritePlan plan, const char *key, Worker *worker) noexcept nogil:
    if plan.locks is None:
        return OK
    return lock_object(&worker.holder, key_hash(key), poll_worker, <void *>worker, &worker.status)


cdef void _unlock(WritePlan plan, Worker *worker) noexcept nogil:
    if plan.locks is not None:
        unlock_object(&worker.holder)
