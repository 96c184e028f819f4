# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Reading: each task brings the selected elements of one chunk into the caller's array.

A chunk that lies in the array as it lies in its object is decoded straight into place. Any other is decoded into the
worker's scratch and its elements are copied from there. With a cache each chunk is looked for there first; where all
chunks of the plan fit into it, they are decoded into memory of their own, which is kept.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from zcore.kernel.blosc_blocks cimport NOT_BLOCKWISE, Runs, part_init
from zcore.kernel.chunk_cache cimport ChunkCache
from zcore.kernel.copy cimport MAX_NDIM, Copy
from zcore.kernel.fileio cimport Identity, buffer_reserve, identify_fd, identify_name
from zcore.kernel.grid cimport Axis, Span
from zcore.kernel.kept cimport Kept, kept_release
from zcore.kernel.moves cimport Sides, mark_blocks
from zcore.kernel.plan cimport Plan, Worker
from zcore.kernel.program cimport raised_in
from zcore.kernel.status cimport MISSING, OK, RAISED, fail
from zcore.kernel.tasks cimport MAX_KEY

cdef enum:
    MAX_BLOCKS = 4096          # of a chunk; one of more is decoded as a whole


cdef class ReadPlan(Plan):
    """A `Plan` that reads; same parameters."""

    def _direction(self):
        return "decode"

    def keep(self, ChunkCache chunks not None, int64_t form):
        """Look for chunks among those that are kept, and keep those that are decoded.

        A plan that reads more than fits keeps nothing: the last chunks would drive out the first ones, and those of
        other reads before.

        Parameters
        ----------
        chunks : ChunkCache
        form : int
            Tells apart in what ways chunks become bytes.
        """
        self.chunks = chunks
        self.form = form
        self.keeps = self.n_tasks > 0 and self.task_nbytes <= chunks.max_nbytes // self.n_tasks

    cdef int run_task(self, int64_t task, Worker *worker) noexcept nogil:
        cdef Span spans[MAX_NDIM]
        cdef char key[MAX_KEY]
        cdef int code
        self.spans_of(task, spans)
        self.measure_chunk(spans, &worker.layout)
        self.key_of(spans, key)
        if self.chunks is not None and worker.brought == NULL and self._find_object(key, spans, worker):
            return OK
        code = self.load(key, spans, worker)
        self.end_kept(code, worker)
        if code != MISSING:
            return code
        if self.missing_raises:
            return fail(&worker.status, MISSING, 0, 0, 0)
        return self.fill_selected(self.objects, spans, worker)

    cdef int fill_selected(self, const Axis *axes, const Span *spans, Worker *worker) noexcept nogil:
        if self.items is not None:
            return self._fill_items(axes, spans, worker)
        self.fill_in(spans)
        return OK

    cdef int _fill_items(self, const Axis *axes, const Span *spans, Worker *worker) noexcept with gil:
        try:
            try:
                self.items.fill(self.selections(axes, spans)[1])
                return OK
            except BaseException as exception:
                return raised_in(&worker.work, exception, &worker.status)
        except:  # noqa: E722 (the only clause that cannot raise itself)
            pass
        return RAISED

    cdef bint _find_object(self, const char *key, const Span *spans, Worker *worker) noexcept nogil:
        cdef Identity identity
        return (identify_name(self.dirfd, key, &identity) == 0
                and self.find_kept(&identity, 0, identity.size, spans, worker))

    cdef bint find_kept(self, const Identity *identity, int64_t base, int64_t size, const Span *spans,
                        Worker *worker) noexcept nogil:
        cdef Kept *kept = self.chunks.find(identity, base, size, self.form, worker.layout.n_bytes, False)
        if kept == NULL:
            return False
        self.move(spans, &worker.layout, False, <char *>kept.words)
        kept_release(kept)
        return True

    cdef void opened(self, int fd, Worker *worker) noexcept nogil:
        cdef Identity identity
        # Before it is read: of what is written in place meanwhile, no later look gives the identity again.
        if self.keeps and identify_fd(fd, &identity) == 0:
            self.identified(&identity, worker)

    cdef void identified(self, const Identity *identity, Worker *worker) noexcept nogil:
        if self.keeps and self.chunks.trusts(identity):
            worker.kept = self.chunks.place(identity, 0, identity.size, self.form, worker.layout.n_bytes)

    cdef void end_kept(self, int code, Worker *worker) noexcept nogil:
        if worker.kept == NULL:
            return
        if code == OK:
            self.chunks.put(worker.kept)
        kept_release(worker.kept)
        worker.kept = NULL

    cdef int take_in(self, const uint8_t *encoded, int64_t n_bytes, const Span *spans, Worker *worker) noexcept nogil:
        """Decode a chunk and bring its selected elements to their places."""
        cdef int code = self._take_in_whole(encoded, n_bytes, spans, worker)
        if not self.is_cut(code, spans, worker):
            return code
        if worker.kept != NULL:
            kept_release(worker.kept)
            worker.kept = NULL
        code = self.take_in_cut(encoded, n_bytes, spans, worker)
        if code == OK:
            self.move(spans, &worker.layout, False, <char *>worker.decoded.data)
        return code

    cdef int _take_in_whole(self, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                            Worker *worker) noexcept nogil:
        cdef char *out = self.data + self.data_offset(spans)
        cdef bint whole = self.is_whole(spans)
        cdef uint8_t *chunk
        cdef Runs runs
        cdef Copy part
        cdef int code
        if self.items is not None:
            return self._take_items(encoded, n_bytes, spans, worker)
        if worker.kept != NULL:
            chunk = <uint8_t *>worker.kept.words
            code = self.program.decode(encoded, n_bytes, chunk, worker.layout.n_bytes, self.n_inner_threads,
                                       &worker.work, &worker.status)
            if code == OK:
                self.move(spans, &worker.layout, False, <char *>chunk)
            return code
        if whole and worker.layout.in_place:
            return self.program.decode(encoded, n_bytes, <uint8_t *>out, worker.layout.n_bytes, self.n_inner_threads,
                                       &worker.work, &worker.status)
        if whole and self.n_inner_threads == 1 and self.runs_of(spans, &runs):
            code = buffer_reserve(&worker.decoded, worker.layout.n_bytes, &worker.status)
            if code == OK:
                code = self.program.scatter(encoded, n_bytes, worker.layout.n_bytes, &runs, <uint8_t *>out,
                                            worker.decoded.data, &worker.status)
            if code != NOT_BLOCKWISE:
                return code
        if not whole and self.points is None and self.item_nbytes == self.itemsize:
            self.copy_spec(spans, &worker.layout, False, &part)
            part_init(&part)
            code = self.program.select(encoded, n_bytes, worker.layout.n_bytes, &part,
                                       self.chunk_offset(spans, &worker.layout), self.n_inner_threads > 1,
                                       <uint8_t *>out, &worker.decoded, &worker.status)
            if code != NOT_BLOCKWISE:
                return code
        if self.points is not None and self.item_nbytes == self.itemsize:
            code = self._take_points(encoded, n_bytes, spans, worker)
            if code != NOT_BLOCKWISE:
                return code
        code = Plan.take_in(self, encoded, n_bytes, spans, worker)
        if code == OK:
            self.move(spans, &worker.layout, False, <char *>worker.decoded.data)
        return code

    cdef int _take_items(self, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                         Worker *worker) noexcept with gil:
        try:
            try:
                inside, outside = self.selections(self.axes, spans)
                raw = PyBytes_FromStringAndSize(<const char *>encoded, n_bytes)
                self.items.read(raw, self.lengths_of(spans), inside, outside)
                return OK
            except BaseException as exception:
                return raised_in(&worker.work, exception, &worker.status)
        except:  # noqa: E722 (the only clause that cannot raise itself)
            pass
        return RAISED

    cdef int _take_points(self, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                          Worker *worker) noexcept nogil:
        """Decode those blocks of a chunk in which points lie, if these are fewer than half."""
        cdef uint8_t needed[MAX_BLOCKS]
        cdef Sides sides
        cdef int64_t n = worker.layout.n_bytes
        cdef int64_t blocksize = self.program.blocksize_of(encoded, n_bytes, n, self.itemsize)
        cdef int64_t n_blocks
        cdef int code
        # Where it is one, the points need it.
        if blocksize == 0 or not 1 < (n + blocksize - 1) // blocksize <= MAX_BLOCKS:
            return NOT_BLOCKWISE
        n_blocks = (n + blocksize - 1) // blocksize
        memset(needed, 0, n_blocks)
        self._describe(&worker.layout, &sides)
        if 2 * mark_blocks(self.points, spans, &sides, blocksize, n_blocks, needed) >= n_blocks:
            return NOT_BLOCKWISE
        code = buffer_reserve(&worker.decoded, n + 2 * blocksize, &worker.status)
        if code == OK:
            code = self.program.decode_some(encoded, n_bytes, n, needed, worker.decoded.data,
                                            worker.decoded.data + n, &worker.status)
        if code == OK:
            self.move(spans, &worker.layout, False, <char *>worker.decoded.data)
        return code
