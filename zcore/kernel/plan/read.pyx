# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Reading: each task moves the selected elements of one chunk into the caller's array.

A chunk whose elements have the same layout in the caller's array is decoded straight into place. Any other chunk is
decoded into the worker's scratch and its elements are copied from there. With a cache, each chunk is looked up there
first; if all chunks of the plan fit into the cache, they are decoded into memory of their own, which is cached.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from zcore.kernel.cache.chunks cimport ChunkCache
from zcore.kernel.strided.copy cimport MAX_NDIM, Copy, Runs, copy_by_source
from zcore.kernel.io.files cimport Content, Identity, buffer_reserve, identify_fd, identify_name
from zcore.kernel.select.grid cimport Axis, Span
from zcore.kernel.cache.lru cimport kept_release
from zcore.kernel.select.gather cimport Sides, mark_blocks
from zcore.kernel.plan.plan cimport NOT_RAW, Plan, PlanOptions, Worker
from zcore.kernel.plan.raw_copy cimport copy_raw, is_cheaper
from zcore.kernel.plan.shard_index cimport Extent
from zcore.kernel.plan.shard_read cimport ShardReader
from zcore.kernel.codec.table cimport NOT_BLOCKWISE, raised_in
from zcore.kernel.status cimport MISSING, NO_MEMORY, OK, RAISED, STOPPED, fail, status_clear
from zcore.kernel.select.open_array cimport MAX_KEY, OpenArray

cdef enum:
    MAX_BLOCKS = 4096          # of a chunk; a chunk with more blocks is decoded as a whole


cdef class ReadPlan(Plan):
    """A `Plan` that reads; same parameters. If objects are shards, a `ShardReader` handles them."""

    def __init__(self, OpenArray array not None, selection, elements=None, PlanOptions options=None):
        if options is None:
            options = PlanOptions()
        Plan.__init__(self, array, selection, elements, options)
        if self.levels is not None:
            self.shards = ShardReader(self, options)
        _spread_files(self, options.n_threads)
        self.is_filled = options.holds_zeros and self.items is None and _is_zero(self.opened.fill, self.opened.itemsize)

    cdef int adapt(self, int n_threads) noexcept nogil:
        Plan.adapt(self, n_threads)
        if self.chunks is not None:
            self.keeps = _fits_cache(self)
        if self.shards is not None and self.shards.follow(self, n_threads) != OK:
            return NO_MEMORY
        _spread_files(self, n_threads)
        return OK

    def _direction(self):
        return "decode"

    def keep(self, ChunkCache chunks not None, int64_t form):
        """Use a cache: look chunks up there, and cache those that are decoded.

        A plan that reads more than fits caches nothing: its last chunks would evict its first ones, and those of
        earlier reads.

        Parameters
        ----------
        chunks : ChunkCache
        form : int
            Identifies how chunks are encoded, so that different encodings do not mix.
        """
        if self.shards is not None and not self.shards.reads_chunks():
            # The cache identifies chunks by their range in a stored file. These chunks have none.
            return
        self.chunks = chunks
        self.form = form
        self.keeps = _fits_cache(self)

    cdef int open_worker(self, Worker *worker) noexcept nogil:
        if self.shards is not None:
            self.shards.enter()
        return OK

    cdef void close_worker(self, Worker *worker) noexcept nogil:
        if self.shards is not None:
            self.shards.leave()
        Plan.close_worker(self, worker)

    cdef int run_task(self, int64_t task, Worker *worker) noexcept nogil:
        cdef Span spans[MAX_NDIM]
        cdef char key[MAX_KEY]
        cdef int code
        if self.shards is not None and self.shards.n_open and worker.brought == NULL:
            return self.shards.run_task(self, task, worker)
        self.spans_of(self.object_of(task), spans)
        self.measure_chunk(spans, &worker.layout)
        self.key_of(spans, key)
        if self.chunks is not None and worker.brought == NULL and _find_object(self, key, spans, worker):
            return OK
        code = self.load(key, spans, worker)
        self.end_kept(code, worker)
        if code != MISSING:
            return code
        if self.opened.missing_raises:
            return fail(&worker.status, MISSING, 0, 0, 0)
        if self.is_filled and worker.brought == NULL:
            # A file is looked for once in a plan, so no earlier content of it was moved to the elements.
            return OK
        return self.fill_selected(self.objects, spans, worker)

    cdef int fill_selected(self, const Axis *axes, const Span *spans, Worker *worker) noexcept nogil:
        if self.items is not None:
            return _move_items(self, NULL, -1, axes, spans, worker)
        self.fill_in(spans)
        return OK

    cdef void before_read(self, int fd, Worker *worker) noexcept nogil:
        cdef Identity identity
        # Before the read: if the file is written in place meanwhile, no later look-up has this identity.
        if self.keeps and identify_fd(fd, &identity) == 0:
            self.identified(&identity, worker)

    cdef void identified(self, const Identity *identity, Worker *worker) noexcept nogil:
        if self.keeps and self.chunks.trusts(identity):
            self.begin_kept(identity, 0, identity.size, worker)

    cdef int load_raw(self, int fd, int64_t offset, int64_t n_bytes, const Span *spans, Worker *worker) noexcept nogil:
        cdef Identity identity
        cdef Content content
        cdef Copy spec
        cdef int code
        if self.program is None or self.program.n_steps > 0 or self.shards is not None or self.items is not None:
            return NOT_RAW
        if self.points is not None or worker.kept != NULL:
            return NOT_RAW
        if n_bytes < 0 and identify_fd(fd, &identity) == 0:
            n_bytes = identity.size
        # An object of another size is no chunk, or one that ends at the array's border.
        if n_bytes != worker.layout.n_bytes:
            return NOT_RAW
        self.copy_spec(spans, &worker.layout, False, &spec)
        if not is_cheaper(&spec, n_bytes):
            return NOT_RAW
        memset(&content, 0, sizeof(Content))
        content.fd = fd
        offset += self.item_offset + self.chunk_offset(spans, &worker.layout)
        code = copy_raw(self, &content, &spec, offset, self.data + self.data_offset(spans), worker)
        if code == OK or code == STOPPED:
            return code
        # It is read again as a whole, which finds the reason.
        status_clear(&worker.status)
        return NOT_RAW

    cdef int load_brought(self, const Span *spans, Worker *worker) noexcept nogil:
        if self.shards is None or self.shards.n_open == 0 or worker.brought.is_absent:
            return Plan.load_brought(self, spans, worker)
        return self.shards.load_brought(self, spans, worker)

    cdef int find_wanted(self, const Span *spans, const Extent **extents, int64_t *n, Worker *worker) noexcept nogil:
        if self.shards is None:
            return Plan.find_wanted(self, spans, extents, n, worker)
        return self.shards.find_wanted(self, spans, extents, n, worker)

    def is_few(self, int64_t task):
        """Whether the selection touches fewer than half of the chunks of a shard that can be read in parts."""
        return self.shards is not None and self.shards.is_few(self, task)

    cdef int take_in(self, const uint8_t *encoded, int64_t n_bytes, const Span *spans, Worker *worker) noexcept nogil:
        cdef bint has_turn
        cdef int code
        if self.shards is not None:
            return self.shards.take_in(self, encoded, n_bytes, spans, worker)
        has_turn = self.take_turn(worker.layout.n_bytes, worker)
        code = self.take_in_chunk(encoded, n_bytes, spans, worker)
        if has_turn:
            self.leave_turn()
        return code

    cdef int take_in_chunk(self, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                           Worker *worker) noexcept nogil:
        """Decode a chunk and move its selected elements to their places."""
        cdef int code = _take_in_whole(self, encoded, n_bytes, spans, worker)
        if not self.is_cut(code, spans, worker):
            return code
        if worker.kept != NULL:
            kept_release(worker.kept)
            worker.kept = NULL
        code = self.take_in_cut(encoded, n_bytes, spans, worker)
        if code == OK:
            self.move(spans, &worker.layout, False, <char *>worker.decoded.data)
        return code


cdef void _spread_files(ReadPlan plan, int n_threads) noexcept nogil:
    # Parts of one file are read in order, for the sake of disks.
    plan.set_lanes(n_threads if plan.dirfd != -1 else 1)


cdef bint _fits_cache(ReadPlan plan) noexcept nogil:
    return plan.n_tasks > 0 and plan.task_nbytes <= plan.chunks.max_nbytes // plan.n_tasks


cdef int _move_items(ReadPlan plan, const uint8_t *encoded, int64_t n_bytes, const Axis *axes, const Span *spans,
                     Worker *worker) noexcept with gil:
    """Read elements of varying length from a chunk, or set them to the fill value if `n_bytes` is -1."""
    try:
        try:
            inside, outside = plan.selections(axes, spans)
            if n_bytes < 0:
                plan.items.fill(outside)
            else:
                raw = PyBytes_FromStringAndSize(<const char *>encoded, n_bytes)
                plan.items.read(raw, plan.lengths_of(spans), inside, outside)
            return OK
        except BaseException as exception:
            return raised_in(&worker.work, exception, &worker.status)
    except:  # noqa: E722 (the only clause that cannot raise itself)
        pass
    return RAISED


cdef bint _find_object(ReadPlan plan, const char *key, const Span *spans, Worker *worker) noexcept nogil:
    cdef Identity identity
    return (identify_name(plan.dirfd, key, &identity) == 0
            and plan.find_kept(&identity, 0, identity.size, spans, worker))


cdef int _take_in_whole(ReadPlan plan, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                        Worker *worker) noexcept nogil:
    cdef char *out = plan.data + plan.data_offset(spans)
    cdef bint whole = plan.is_whole(spans)
    cdef uint8_t *chunk
    cdef Runs runs
    cdef Copy part
    cdef int code
    if plan.items is not None:
        return _move_items(plan, encoded, n_bytes, plan.axes, spans, worker)
    if worker.kept != NULL:
        chunk = <uint8_t *>worker.kept.words
        code = plan.program.decode(encoded, n_bytes, chunk, worker.layout.n_bytes, worker.n_inner_threads,
                                   &worker.work, &worker.status)
        if code == OK:
            plan.move(spans, &worker.layout, False, <char *>chunk)
        return code
    if plan.program.n_steps == 0 and n_bytes == worker.layout.n_bytes and not (whole and worker.layout.in_place):
        # Stored as it is: the elements are moved from there.
        plan.move(spans, &worker.layout, False, <char *>encoded)
        return OK
    if whole and worker.layout.in_place:
        return plan.program.decode(encoded, n_bytes, <uint8_t *>out, worker.layout.n_bytes, worker.n_inner_threads,
                                   &worker.work, &worker.status)
    if whole and worker.n_inner_threads == 1 and plan.runs_of(spans, &runs):
        code = buffer_reserve(&worker.decoded, worker.layout.n_bytes, &worker.status)
        if code == OK:
            code = plan.program.scatter(encoded, n_bytes, worker.layout.n_bytes, &runs, <uint8_t *>out,
                                        worker.decoded.data, &worker.status)
        if code != NOT_BLOCKWISE:
            return code
    if not whole and plan.points is None and plan.item_nbytes == plan.opened.itemsize:
        plan.copy_spec(spans, &worker.layout, False, &part)
        copy_by_source(&part)
        code = plan.program.select(encoded, n_bytes, worker.layout.n_bytes, &part,
                                   plan.chunk_offset(spans, &worker.layout), worker.n_inner_threads > 1,
                                   <uint8_t *>out, &worker.decoded, &worker.status)
        if code != NOT_BLOCKWISE:
            return code
    if plan.points is not None and plan.item_nbytes == plan.opened.itemsize:
        code = _take_points(plan, encoded, n_bytes, spans, worker)
        if code != NOT_BLOCKWISE:
            return code
    code = Plan.take_in_chunk(plan, encoded, n_bytes, spans, worker)
    if code == OK:
        plan.move(spans, &worker.layout, False, <char *>worker.decoded.data)
    return code


cdef int _take_points(ReadPlan plan, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                      Worker *worker) noexcept nogil:
    """Decode only the blocks of a chunk that contain points, if these are fewer than half."""
    cdef uint8_t needed[MAX_BLOCKS]
    cdef Sides sides
    cdef int64_t n = worker.layout.n_bytes
    cdef int64_t blocksize = plan.program.blocksize_of(encoded, n_bytes, n, plan.opened.itemsize)
    cdef int64_t n_blocks
    cdef int code
    # A single block is always needed.
    if blocksize == 0 or not 1 < (n + blocksize - 1) // blocksize <= MAX_BLOCKS:
        return NOT_BLOCKWISE
    n_blocks = (n + blocksize - 1) // blocksize
    memset(needed, 0, n_blocks)
    plan._describe(&worker.layout, &sides)
    if 2 * mark_blocks(plan.points, spans, &sides, blocksize, n_blocks, needed) >= n_blocks:
        return NOT_BLOCKWISE
    code = buffer_reserve(&worker.decoded, n + 2 * blocksize, &worker.status)
    if code == OK:
        code = plan.program.decode_some(encoded, n_bytes, n, needed, worker.decoded.data,
                                        worker.decoded.data + n, &worker.status)
    if code == OK:
        plan.move(spans, &worker.layout, False, <char *>worker.decoded.data)
    return code


cdef bint _is_zero(const char *value, int64_t n_bytes) noexcept nogil:
    cdef int64_t i
    for i in range(n_bytes):
        if value[i] != 0:
            return False
    return True
