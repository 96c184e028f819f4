# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Writing: each task replaces one stored object, under its lock.

A covered object (all its elements inside the array are written) is encoded and staged beside the old one before the
lock is taken, and never read. A partly covered object is read, merged and written back under the lock. Elements of a
chunk outside the array are reset to the fill value on the way, whichever program wrote them. An object that holds only
the fill value is erased, not written, unless the caller wants it stored. If all elements to be written are one in
memory, and that is the fill value, nothing is encoded, and absent objects are not locked.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.errno cimport ENOENT
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp

from zcore.kernel.atomics cimport zc_add
from zcore.kernel.strided.copy cimport (
    MAX_NDIM, Copy, Runs, copy_by_source, copy_simplify, fill_bytes, fill_run, is_filled, runs_are_filled,
)
from zcore.kernel.io.files cimport (
    FAILED, buffer_reserve, object_commit, object_drop, object_erase, object_is_absent, object_read, object_stage,
    same_identity, staging_init,
)
from zcore.kernel.select.grid cimport Span
from zcore.kernel.io.locks cimport holder_close, holder_open, key_hash, lock_object, unlock_object
from zcore.kernel.plan.plan cimport FILLED, SAME, Plan, PlanOptions, Worker, poll_worker
from zcore.kernel.plan.shard_index cimport Extent
from zcore.kernel.plan.shard_write cimport ShardWriter
from zcore.kernel.codec.table cimport NOT_BLOCKWISE, hold_bytes, raised_in
from zcore.kernel.status cimport CHUNK_LONG, INTERRUPTED, IO_OPEN, MISSING, OK, STALE, Status, fail, status_clear
from zcore.kernel.select.open_array cimport MAX_KEY, OpenArray
from zcore.kernel.select.tasks cimport Layout


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
            self.shards = ShardWriter(self, options.n_threads)
        _share_last(self, options.n_threads)
        _find_fill(self)
        if self.items is not None and not self.opened.keep_filled:
            self.is_fill = self.items.is_fill
        for d in range(self.ndim):
            self.old_shape[d] = self.opened.shape[d]
        self.token = options.token
        self.locks = options.locks
        for d in range(0 if options.old_shape is None else self.ndim):
            self.old_shape[d] = options.old_shape[d]

    cdef int adapt(self, int n_threads) noexcept nogil:
        Plan.adapt(self, n_threads)
        _share_last(self, n_threads)
        _find_fill(self)
        return OK if self.shards is None else self.shards.follow(self, n_threads)

    @property
    def keep_filled(self):
        """Whether objects that hold only the fill value are stored."""
        return bool(self.opened.keep_filled)

    def _direction(self):
        # A failed merge could not decode the chunk it read, or has not found it.
        return "encode" if self.status.is_encode else "decode"

    cdef int open_worker(self, Worker *worker) noexcept nogil:
        cdef int code
        # Each worker has its own temporary names.
        cdef uint64_t token = self.token + <uint64_t>zc_add(&self.n_workers, 1)
        cdef const char *document = self.opened.document
        cdef int dirfd = self.dirfd if document != NULL else -1
        worker.keeps_filled = self.opened.keep_filled
        staging_init(&worker.staging, token, self.opened.fsync)
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
        holder_close(&worker.holder)
        Plan.close_worker(self, worker)

    cdef void _loop(self, Worker *worker) noexcept nogil:
        Plan._loop(self, worker)
        if self.shards is not None:
            self.shards.help(self, worker)

    cdef int run_task(self, int64_t task, Worker *worker) noexcept nogil:
        cdef int code
        if self.shards is None:
            return _run_task(self, task, worker)
        self.shards.begin()
        code = _run_task(self, task, worker)
        self.shards.end()
        return code

    cdef int64_t encode_covered(self, const Span *spans, Worker *worker, const uint8_t **encoded) noexcept nogil:
        """Encode an object of which all elements inside the array are written: return its size, FILLED or FAILED."""
        if self.is_fill:
            return FILLED
        if self.shards is None:
            return self.encode_covered_chunk(spans, worker, encoded)
        return self.shards.encode_covered(self, spans, worker, encoded)

    cdef int64_t encode_covered_chunk(self, const Span *spans, Worker *worker, const uint8_t **encoded) noexcept nogil:
        """Encode a chunk of which all elements inside the array are written: return its size, FILLED or FAILED."""
        cdef const uint8_t *chunk = <const uint8_t *>self.data + self.data_offset(spans)
        cdef bint whole = self.is_whole(spans)
        cdef Runs runs
        cdef int64_t n
        if self.items is not None:
            return _encode_items(self, spans, False, worker, encoded)
        if not (whole and worker.layout.in_place):
            if buffer_reserve(&worker.decoded, worker.layout.n_bytes, &worker.status) != OK:
                return FAILED
            if whole and worker.n_inner_threads == 1 and self.runs_of(spans, &runs):
                if not worker.keeps_filled and runs_are_filled(chunk, &runs, worker.layout.n_items,
                                                               self.opened.stored_fill):
                    return FILLED
                n = self.program.gather(chunk, &runs, worker.layout.n_bytes, &worker.encoded, worker.decoded.data,
                                        &worker.work, &worker.status)
                if n != NOT_BLOCKWISE:
                    encoded[0] = worker.encoded.data
                    return n
            chunk = worker.decoded.data
            if not whole:
                fill_bytes(<char *>chunk, worker.layout.n_items, self.opened.stored_fill, self.opened.itemsize)
            self.move(spans, &worker.layout, True, <char *>chunk)
        return _encode(self, chunk, worker, encoded)

    cdef int64_t encode_task(self, int64_t task, Worker *worker, const uint8_t **encoded) noexcept nogil:
        cdef Span spans[MAX_NDIM]
        self.spans_of(task, spans)
        self.measure_chunk(spans, &worker.layout)
        if worker.brought == NULL:
            return self.encode_covered(spans, worker, encoded)
        if buffer_reserve(&worker.decoded, worker.layout.n_bytes, &worker.status) != OK:
            return FAILED
        return _encode_changed_object(self, spans, NULL, worker, encoded)

    cdef int64_t encode_merged(self, const Span *spans, bint found, Worker *worker,
                               const uint8_t **encoded) noexcept nogil:
        """Change the object that was `found` and taken in, and encode it like `encode_covered`."""
        if self.shards is None:
            return self.encode_merged_chunk(spans, found, worker, encoded)
        return self.shards.encode_merged(self, spans, found, worker, encoded)

    cdef int64_t encode_merged_chunk(self, const Span *spans, bint found, Worker *worker,
                                     const uint8_t **encoded) noexcept nogil:
        """Change the chunk that was `found` and taken in, and encode it like `encode_covered`."""
        cdef char *chunk = <char *>worker.decoded.data
        if self.items is not None:
            return _encode_items(self, spans, found, worker, encoded)
        if found and worker.n_merged > 0:
            encoded[0] = worker.decoded.data
            return worker.n_merged
        if found:
            _reset_outside(self, spans, &worker.layout, chunk)
        else:
            fill_bytes(chunk, worker.layout.n_items, self.opened.stored_fill, self.opened.itemsize)
        if self.has_elements:
            self.move(spans, &worker.layout, True, chunk)
        return _encode(self, <const uint8_t *>chunk, worker, encoded)

    cdef int take_in(self, const uint8_t *encoded, int64_t n_bytes, const Span *spans, Worker *worker) noexcept nogil:
        if self.shards is None:
            return self.take_in_chunk(encoded, n_bytes, spans, worker)
        return self.shards.take_in(self, encoded, n_bytes, spans, worker)

    cdef int load_brought(self, const Span *spans, Worker *worker) noexcept nogil:
        if self.shards is None or not self.shards.in_parts or worker.brought.is_absent:
            return Plan.load_brought(self, spans, worker)
        # Gaps can make a shard longer than the limit of its chunks, so the limit does not apply here.
        worker.content = worker.brought.content
        return OK

    cdef int find_wanted(self, const Span *spans, const Extent **extents, int64_t *n, Worker *worker) noexcept nogil:
        if self.shards is None:
            return Plan.find_wanted(self, spans, extents, n, worker)
        return self.shards.find_wanted(self, spans, extents, n, worker)

    cdef int take_in_chunk(self, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                           Worker *worker) noexcept nogil:
        if self.items is not None:
            # `_encode_items` decodes it.
            worker.content.data = encoded
            worker.content.size = n_bytes
            return OK
        worker.n_merged = _merge_blocks(self, encoded, n_bytes, spans, worker)
        if worker.n_merged == FAILED:
            return worker.status.code
        return OK if worker.n_merged > 0 else Plan.take_in_chunk(self, encoded, n_bytes, spans, worker)

    cdef int _lock(self, const char *key, Worker *worker) noexcept nogil:
        if self.locks is None:
            return OK
        return lock_object(&worker.holder, key_hash(key), poll_worker, <void *>worker, &worker.status)


cdef void _share_last(WritePlan plan, int n_threads) noexcept nogil:
    """Let threads that find no task any more help with the chunks that are left for the others."""
    plan.n_last = 0
    if 1 < n_threads < plan.n_tasks and plan.program is not None and plan.shards is None:
        plan.n_last = plan.n_tasks % n_threads
    if plan.n_last > 0:
        plan.last_threads = plan.program.inner_threads(n_threads // plan.n_last, plan.layout.n_bytes, True)


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


cdef int _run_task(WritePlan plan, int64_t task, Worker *worker) noexcept nogil:
    cdef Span spans[MAX_NDIM]
    cdef char key[MAX_KEY]
    plan.spans_of(task, spans)
    plan.measure_chunk(spans, &worker.layout)
    plan.key_of(spans, key)
    if plan.has_elements and plan.is_covered(spans):
        worker.n_inner_threads = (plan.last_threads if task >= plan.n_tasks - plan.n_last
                                  else plan.n_inner_threads)
        return _replace(plan, spans, key, worker)
    return _merge(plan, spans, key, worker)


cdef int _replace(WritePlan plan, const Span *spans, const char *key, Worker *worker) noexcept nogil:
    """Write an object without reading the old one."""
    cdef bint erase = plan.is_fill
    cdef int code = OK
    if erase:
        # Of two writers that meet here, this one came first.
        if object_is_absent(plan.dirfd, key):
            return OK
    else:
        code = _prepare(plan, spans, key, worker, &erase)
    if code != OK:
        return _say_why(plan, key, worker)
    code = plan._lock(key, worker)
    if code != OK:
        object_drop(plan.dirfd, &worker.staging)
        return code
    if erase:
        code = object_erase(plan.dirfd, key, &worker.staging, &worker.status)
    else:
        code = object_commit(plan.dirfd, key, &worker.staging, &worker.status)
    _unlock(plan, worker)
    return code


cdef int _say_why(WritePlan plan, const char *key, Worker *worker) noexcept nogil:
    """Return why an object cannot be prepared: STALE, if its directory is gone since the array is."""
    cdef Status failure = worker.status
    cdef int code
    if failure.code != IO_OPEN or failure.sys_errno != ENOENT:
        return failure.code
    status_clear(&worker.status)
    code = plan._lock(key, worker)
    if code != OK:
        return code
    _unlock(plan, worker)
    worker.status = failure
    return failure.code


cdef int _prepare(WritePlan plan, const Span *spans, const char *key, Worker *worker, bint *erase) noexcept nogil:
    """Encode and stage a covered object, or set `erase`."""
    cdef const uint8_t *encoded = NULL
    cdef int64_t n
    if plan.shards is not None and plan.shards.in_parts:
        return plan.shards.prepare(plan, spans, key, worker, erase)
    n = plan.encode_covered(spans, worker, &encoded)
    if n == FAILED:
        return worker.status.code
    erase[0] = n == FILLED
    return OK if erase[0] else object_stage(plan.dirfd, key, encoded, n, &worker.staging, &worker.status)


cdef int _merge(WritePlan plan, const Span *spans, const char *key, Worker *worker) noexcept nogil:
    """Read an object, change some of its elements, and write it back."""
    cdef int code
    if buffer_reserve(&worker.decoded, worker.layout.n_bytes, &worker.status) != OK:
        return worker.status.code
    code = plan._lock(key, worker)
    if code != OK:
        return code
    code = _merge_locked(plan, spans, key, worker)
    _unlock(plan, worker)
    return code


cdef int _merge_locked(WritePlan plan, const Span *spans, const char *key, Worker *worker) noexcept nogil:
    cdef const uint8_t *encoded = NULL
    cdef int64_t n
    cdef int code
    if plan.shards is not None and plan.shards.in_parts:
        return plan.shards.merge(plan, spans, key, worker)
    n = _encode_changed_object(plan, spans, key, worker, &encoded)
    if n == FAILED:
        return worker.status.code
    # A codec in Python may have let a signal handler fork, and the child does not hold the lock.
    if plan.is_cut_off():
        return INTERRUPTED
    if n == SAME:
        return OK
    if n == FILLED:
        return object_erase(plan.dirfd, key, &worker.staging, &worker.status)
    code = object_stage(plan.dirfd, key, encoded, n, &worker.staging, &worker.status)
    if code != OK:
        return code
    return object_commit(plan.dirfd, key, &worker.staging, &worker.status)


cdef int64_t _encode_changed_object(WritePlan plan, const Span *spans, const char *key, Worker *worker,
                                    const uint8_t **encoded) noexcept nogil:
    cdef int code = plan.load(key, spans, worker)
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
    return plan.encode_merged(spans, code == OK, worker, encoded)


cdef int64_t _merge_blocks(WritePlan plan, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                           Worker *worker) noexcept nogil:
    """Change the selected elements of a chunk block by block: see `Program.merge`."""
    cdef Copy part
    cdef int64_t offset
    cdef const uint8_t *elements
    cdef const uint8_t *fill = NULL if worker.keeps_filled else <const uint8_t *>plan.opened.stored_fill
    if (not plan.has_elements or plan.points is not None or plan.item_nbytes != plan.opened.itemsize
            or plan.is_inside(spans) != 1):
        return NOT_BLOCKWISE
    plan.copy_spec(spans, &worker.layout, False, &part)
    copy_by_source(&part)
    offset = plan.chunk_offset(spans, &worker.layout)
    elements = <const uint8_t *>plan.data + plan.data_offset(spans)
    return plan.program.merge(encoded, n_bytes, worker.layout.n_bytes, &part, offset, plan.n_inner_threads > 1,
                              elements, fill, &worker.decoded, &worker.status)


cdef int64_t _encode_items(WritePlan plan, const Span *spans, bint found, Worker *worker,
                           const uint8_t **encoded) noexcept with gil:
    """Change the chunk that was `found` and taken in, or a new one, and encode it: see `encode_covered`."""
    cdef int d
    cdef int64_t n
    try:
        try:
            old = None
            if found:
                old = PyBytes_FromStringAndSize(<const char *>worker.content.data, worker.content.size)
            inside, outside = plan.selections(plan.axes, spans) if plan.has_elements else (None, None)
            kept = tuple([max(0, min(plan.old_shape[d] - spans[d].origin, spans[d].length))
                          for d in range(plan.ndim)])
            new = plan.items.write(old, plan.lengths_of(spans), kept, inside, outside, bool(worker.keeps_filled))
            n = FILLED if new is None else hold_bytes(&worker.work, new, encoded)
            return n
        except BaseException as exception:
            raised_in(&worker.work, exception, &worker.status)
            worker.status.is_encode = not found
            return FAILED
    except:  # noqa: E722 (the only clause that cannot raise itself)
        pass
    return FAILED


cdef void _reset_outside(WritePlan plan, const Span *spans, const Layout *layout, char *chunk) noexcept nogil:
    """Set the elements of a chunk outside `old_shape` to the fill value."""
    cdef Copy spec
    cdef int64_t kept
    cdef int d
    cdef int e
    for d in range(plan.ndim):
        kept = max(0, min(plan.old_shape[d] - spans[d].origin, spans[d].length))
        if kept == spans[d].length:
            continue
        spec.ndim = plan.ndim
        spec.itemsize = plan.opened.itemsize
        spec.swap = 0
        for e in range(plan.ndim):
            spec.shape[e] = spans[e].length
            spec.src_strides[e] = 0
            spec.dst_strides[e] = layout.strides[e]
        spec.shape[d] = spans[d].length - kept
        copy_simplify(&spec)
        fill_run(&spec, plan.opened.stored_fill, chunk + kept * layout.strides[d])


cdef int64_t _encode(WritePlan plan, const uint8_t *chunk, Worker *worker, const uint8_t **encoded) noexcept nogil:
    """Encode a chunk of contiguous elements: return its size, FILLED or FAILED."""
    cdef int64_t n
    if not worker.keeps_filled and is_filled(<const char *>chunk, worker.layout.n_items, plan.opened.stored_fill,
                                             plan.opened.itemsize):
        return FILLED
    n = plan.program.encode(chunk, worker.layout.n_bytes, &worker.encoded, encoded, worker.n_inner_threads,
                            &worker.work, &worker.status)
    return FAILED if n < 0 else n


cdef void _unlock(WritePlan plan, Worker *worker) noexcept nogil:
    if plan.locks is not None:
        unlock_object(&worker.holder)
