# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Reading: each task fetches one object, decodes it, and places its selected elements in the caller's array.

With a cache, each chunk is looked up there first; if all chunks of the plan fit into the cache, they are cached. Of an
object that is stored without a codec, only the selected elements are fetched, straight to their places.

A `LayoutReadPlan` reads an array whose elements lie uncompressed in a file or in memory, at an offset and with strides.
Nothing is decoded, so a task needs no chunk. The array is cut into parts of some megabytes, and of each part only the
bytes that the selection needs are read (`zcore.kernel.plan.fetch`).
"""
cimport cython
from libc.stdint cimport int64_t
from libc.string cimport memset
from posix.unistd cimport close

from zcore.kernel.atomics cimport zc_load
from zcore.kernel.io.files cimport Content, Identity, buffer_reserve, identify_fd, identify_name
from zcore.kernel.memory cimport Bytes
from zcore.kernel.plan.cache cimport ChunkCache
from zcore.kernel.plan.chunk cimport begin_kept, decode_chunk, end_kept, place_fill, place_kept
from zcore.kernel.plan.fetch cimport copy_raw, fetch_end, fetch_open, fetch_whole, is_cheaper
from zcore.kernel.plan.plan cimport Object, PlanOptions, Worker
from zcore.kernel.select.gather cimport Sides, piece_of
from zcore.kernel.select.grid cimport Span
from zcore.kernel.select.open_array cimport MAX_KEY, OpenArray
from zcore.kernel.select.points cimport Boxes
from zcore.kernel.select.tasks cimport Layout
from zcore.kernel.status cimport MISSING, NO_MEMORY, OK, STOPPED, fail, status_clear
from zcore.kernel.strided.copy cimport MAX_NDIM, Copy, is_filled

cdef enum:
    NOT_RAW = -4               # beside the codes of `Status`: the object has to be fetched whole


cdef class ReadPlan(Plan):
    """A `Plan` that reads; same parameters. If objects are shards, a `ShardReader` handles them."""

    def __init__(self, OpenArray array not None, selection, elements=None, PlanOptions options=None):
        if options is None:
            options = PlanOptions()
        Plan.__init__(self, array, selection, elements, options)
        if self.levels is not None:
            self.shards = ShardReader(options.indices)
        if self.adapt(options.n_threads) != OK:
            raise MemoryError
        self.is_filled = (options.holds_zeros and self.items is None
                          and is_filled(self.opened.fill, self.opened.itemsize, b"\0", 1))

    cdef int adapt(self, int n_threads) noexcept nogil:
        Plan.adapt(self, n_threads)
        if self.chunks is not None:
            self.keeps = _fits_cache(self)
        if self.shards is not None and self.shards.follow(self, n_threads) != OK:
            return NO_MEMORY
        # Parts of one file are read in order, for the sake of disks.
        self.set_lanes(n_threads if self.dirfd != -1 else 1)
        return OK

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
        cdef Identity identity
        cdef int code
        if self.shards is not None and worker.passed == NULL:
            return self.shards.run_task(self, task, worker)
        self.spans_of(self.object_of(task), spans)
        self.measure_chunk(spans, &worker.layout)
        self.key_of(spans, key)
        if (self.chunks is not None and worker.passed == NULL and identify_name(self.dirfd, key, &identity) == 0
                and place_kept(self, &identity, 0, identity.size, spans, worker)):
            return OK
        code = _read_object(self, key, spans, worker)
        end_kept(self, code, worker)
        if code != MISSING:
            return code
        if self.opened.missing_raises:
            return fail(&worker.status, MISSING, 0, 0, 0)
        if self.is_filled and worker.passed == NULL:
            # A file is looked for once in a plan, so no earlier content of it was moved to the elements.
            return OK
        return place_fill(self, self.objects, spans, worker)

    def is_few(self, int64_t task):
        """Whether the selection touches fewer than half of the chunks of a shard."""
        return self.shards is not None and self.shards.is_few(self, task)


cdef bint _fits_cache(ReadPlan plan) noexcept nogil:
    return plan.n_tasks > 0 and plan.task_nbytes <= zc_load(&plan.chunks.max_nbytes) // plan.n_tasks


cdef int _read_object(ReadPlan plan, const char *key, const Span *spans, Worker *worker) noexcept nogil:
    """Fetch an object, decode it and place its elements: OK, MISSING, or another code."""
    cdef Object object
    cdef int code = fetch_open(plan, key, &object, worker)
    if code != OK:
        return code
    if plan.shards is not None:
        return plan.shards.read_passed(plan, &object, spans, worker)
    if plan.keeps:
        _begin_kept_object(plan, &object, worker)
    code = _read_raw(plan, &object, spans, worker)
    if code == NOT_RAW:
        code = fetch_whole(plan, &object, spans, decode_chunk, worker)
    return fetch_end(plan, &object, code, worker)


cdef void _begin_kept_object(ReadPlan plan, Object *object, Worker *worker) noexcept nogil:
    # Before the bytes are fetched: if a file is written in place meanwhile, no later look-up has this identity.
    if worker.passed == NULL and (plan.extents is not None
                                  or identify_fd(object.content.fd, &object.identity) != 0):
        return
    if (worker.passed == NULL or object.is_identified) and plan.chunks.trusts(
            &object.identity, object.content.fd, plan.dirfd):
        begin_kept(plan, &object.identity, 0, object.identity.size, worker)


cdef int _read_raw(ReadPlan plan, const Object *object, const Span *spans, Worker *worker) noexcept nogil:
    """Fetch only the selected elements, if they lie in a file without a codec: OK, a code, or NOT_RAW."""
    cdef Identity identity
    cdef Content content
    cdef Copy spec
    cdef int64_t n_bytes = object.content.size
    cdef int64_t offset
    cdef int code
    if (object.content.fd < 0 or plan.program is None or plan.program.n_steps > 0
            or plan.items is not None or plan.points is not None or worker.kept != NULL):
        return NOT_RAW
    if n_bytes < 0 and identify_fd(object.content.fd, &identity) == 0:
        n_bytes = identity.size
    # An object of another size is no chunk, or one that ends at the array's border.
    if n_bytes != worker.layout.n_bytes:
        return NOT_RAW
    plan.copy_spec(spans, &worker.layout, False, &spec)
    if not is_cheaper(&spec, n_bytes):
        return NOT_RAW
    memset(&content, 0, sizeof(Content))
    content.fd = object.content.fd
    offset = object.content.start + plan.item_offset + plan.chunk_offset(spans, &worker.layout)
    code = copy_raw(plan, &content, &spec, offset, plan.data + plan.data_offset(spans), worker)
    if code == OK or code == STOPPED:
        return code
    # It is read again as a whole, which finds the reason.
    status_clear(&worker.status)
    return NOT_RAW


cdef enum:
    PART_NBYTES = 1 << 22      # of the file, spanned by a task
    POINTS_NBYTES = 1 << 16    # the same for selections by lists, which read all of a part


def parts_of(shape, strides, int64_t n_bytes):
    """Return the shape of parts that span about `n_bytes` of a file, and are long along its densest dimensions.

    >>> parts_of((100, 1000, 1000), (8000000, 8000, 8), 1 << 22)
    (1, 524, 1000)
    """
    lengths = [1] * len(shape)
    for d in sorted(range(len(shape)), key=lambda d: abs(strides[d])):
        stride = max(1, abs(strides[d]))
        lengths[d] = max(1, min(shape[d], n_bytes // stride))
        if lengths[d] < shape[d]:
            break
    return tuple(lengths)


@cython.final
cdef class LayoutReadPlan(ReadPlan):
    """A `ReadPlan` of an array whose elements lie at an offset and with strides.

    Parameters
    ----------
    array, selection, elements, options
        As for `Plan`. The chunk shape and the program of the array are not used.
    source : callable
        Returns a new descriptor, which the plan closes, or the bytes. It is called here, so no signal comes between.
    offset : int
        Offset of the element (0, ..., 0) in the source.
    strides : tuple of int
        In bytes, one for each dimension. Every element must lie in the source.
    name : str
        Name of the object, for messages.
    """

    cdef Bytes source
    cdef Content content
    cdef int64_t offset
    cdef Layout placed
    cdef str name

    def __cinit__(self):
        self.content.fd = -1
        self.content.data = NULL

    def __init__(self, OpenArray array not None, selection, elements=None, PlanOptions options=None, *, source,
                 int64_t offset, tuple strides not None, str name not None):
        cdef int64_t n_bytes
        cdef int d
        opened = source()
        if isinstance(opened, int):
            self.content.fd = opened
        else:
            self.source = Bytes(opened)
            self.content.data = self.source.data
            self.content.size = self.source.n
        n_bytes = POINTS_NBYTES if selection.groups and not isinstance(selection, Boxes) else PART_NBYTES
        ReadPlan.__init__(self, array.cut(parts_of(array.shape, strides, n_bytes)), selection, elements, options)
        assert len(strides) == self.ndim
        self.offset = offset
        self.name = name
        for d in range(self.ndim):
            self.placed.strides[d] = strides[d]

    def __dealloc__(self):
        if self.content.fd >= 0:
            close(self.content.fd)

    def task(self, int64_t task):
        """Return a description of a task, see `Tasks.task`; its object is the only object of the array."""
        return (self.name, (0,) * self.ndim, *ReadPlan.task(self, task)[2:])

    cdef int run_task(self, int64_t task, Worker *worker) noexcept nogil:
        cdef Span spans[MAX_NDIM]
        cdef Copy spec
        cdef int64_t offset = self.offset
        cdef int d, code
        self.spans_of(task, spans)
        for d in range(self.ndim):
            offset += spans[d].origin * self.placed.strides[d]
        if self.points is None:
            self.copy_spec(spans, &self.placed, False, &spec)
            offset += self.item_offset + self.chunk_offset(spans, &self.placed)
            return copy_raw(self, &self.content, &spec, offset, self.data + self.data_offset(spans), worker)
        if self.points.boxes is not None:
            return _read_pieces(self, spans, offset, worker)
        if buffer_reserve(&worker.batch, worker.layout.n_bytes, &worker.status) != OK:
            return worker.status.code
        spec.ndim = self.ndim
        spec.itemsize = self.opened.itemsize
        spec.swap = 0
        for d in range(self.ndim):
            spec.shape[d] = spans[d].valid
            spec.src_strides[d] = self.placed.strides[d]
            spec.dst_strides[d] = worker.layout.strides[d]
        code = copy_raw(self, &self.content, &spec, offset, <char *>worker.batch.data, worker)
        if code == OK:
            self.move(spans, &worker.layout, False, <char *>worker.batch.data)
        return code


cdef int _read_pieces(LayoutReadPlan plan, const Span *spans, int64_t offset, Worker *worker) noexcept nogil:
    """Read the boxes selected in a part that begins at `offset`, one by one, as nothing is decoded."""
    cdef int64_t chunk_offset, data_offset, i
    cdef Copy spec
    cdef Sides sides
    cdef int code
    plan._describe(&plan.placed, &sides)
    for i in range(spans[0].first, spans[0].first + spans[0].count):
        piece_of(plan.points, i, spans, &sides, &spec, &chunk_offset, &data_offset)
        chunk_offset += offset + plan.item_offset
        code = copy_raw(plan, &plan.content, &spec, chunk_offset, plan.data + data_offset, worker)
        if code != OK:
            return code
    return OK
