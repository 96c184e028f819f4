# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Writing arrays whose objects are shards: each task replaces one shard, under its lock.

A covered shard is never read. Its chunks are encoded straight from the caller's elements and go to the temporary file
in batches, so a writer needs memory for some chunks, not for a shard. Threads without a shard of their own help.

Of a shard that is changed in part only the chunks that the selection touches are encoded anew. The others are carried
over as they are stored, in the order of the old file, whose runs are copied as a whole: chunks that share bytes go on
sharing them, and gaps that older programs have left are closed. Of chunks that are touched only those are decoded of
which some elements stay.

Chunks that hold nothing but the fill value are left out; a shard of which no chunk is left is erased.
"""
cimport cython
from libc.stdint cimport UINT64_MAX, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from zcore.kernel.copy cimport MAX_NDIM
from zcore.kernel.fileio cimport (
    ABSENT, FAILED, Identity, buffer_reserve, object_close, object_commit, object_erase, object_identify, object_open,
    object_read_at, stage_close, stage_open, stage_write,
)
from zcore.kernel.grid cimport Span
from zcore.kernel.plan cimport Worker
from zcore.kernel.shard cimport Extent, IndexForm, ShardProgram, sort_extents
from zcore.kernel.shard_crew cimport SKIPPED, CrewPlan
from zcore.kernel.status cimport INTERRUPTED, MISSING, OK, fail
from zcore.kernel.write cimport FILLED

cdef enum:
    BATCH_NBYTES = 1 << 19     # goes to the file at once
    ALONE_NBYTES = 1 << 16     # a chunk of so many bytes is worth a write of its own

cdef struct NewShard:          # the shard that is being written
    const char *key
    IndexForm form
    int fd                     # -1 until there is something to write
    int64_t size               # bytes that it has, those in the batch included
    int64_t n_batch
    uint64_t *words            # of its index

cdef struct OldShard:          # the one that it replaces
    int fd                     # ABSENT when there is none
    int64_t size
    uint64_t *words


cdef struct Job:               # the chunks of a shard that are to be encoded
    const Span *spans          # of the shard
    const OldShard *old
    NewShard *new
    int64_t first[MAX_NDIM]    # as `chunks_of` gives them, where elements are selected
    int64_t count[MAX_NDIM]


@cython.final
cdef class ShardWritePlan(CrewPlan):
    """A `WritePlan` of an array whose objects are shards.

    Parameters
    ----------
    shape, shard_shape : tuple of int
        Of the array and its objects, elements.
    program : ShardProgram

    Notes
    -----
    The other parameters are those of `WritePlan`; `swap` and `order` are of the inner chunks.
    """

    cdef ShardProgram shards

    def __init__(self, shape, shard_shape, *args, ShardProgram program, **kwargs):
        CrewPlan.__init__(self, shape, None if program is None else program.chunk_shape, *args,
                          program=None if program is None else program.program, shard_shape=shard_shape, **kwargs)
        self.shards = program
        if program is not None:
            assert program.inner is None
            self.task_threads = max(1, program.n_chunks // 2)

    cdef int _prepare(self, const Span *spans, const char *key, Worker *worker, bint *erase) noexcept nogil:
        """Stage a covered shard, or find that it is to be erased."""
        cdef NewShard new
        cdef int code = self._begin(&new, key, spans, 1, worker)
        if code == OK:
            code = self._add_changed(spans, NULL, &new, worker)
        return self._end(&new, code, worker, erase)

    cdef int _merge_locked(self, const Span *spans, const char *key, Worker *worker) noexcept nogil:
        cdef Identity identity
        cdef OldShard old
        cdef int code = OK
        old.size = 0
        old.fd = object_open(self.dirfd, key, &worker.status)
        if old.fd == FAILED:
            return worker.status.code
        if old.fd != ABSENT:
            code = object_identify(old.fd, &identity, &worker.status)
            if code == OK:
                old.size = identity.size
            else:
                object_close(old.fd)
                old.fd = ABSENT
                if code != ABSENT:
                    return worker.status.code
        if old.fd != ABSENT:
            code = self._change(spans, key, &old, worker)
            object_close(old.fd)
            return code
        if self.data == NULL:
            return OK
        if self.missing_raises:
            return fail(&worker.status, MISSING, 0, 0, 0)
        return self._change(spans, key, &old, worker)

    cdef int _change(self, const Span *spans, const char *key, OldShard *old, Worker *worker) noexcept nogil:
        """Write a shard that differs from the old one in the selected elements, or only within the old shape."""
        cdef NewShard new
        cdef bint erase = False
        cdef bint changed = self.data != NULL
        cdef int code = self._begin(&new, key, spans, 2, worker)
        if code == OK:
            old.words = new.words + 2 * new.form.n_chunks
            if old.fd != ABSENT:
                code = self.shards.read_index(&new.form, old.fd, old.size, old.words, &worker.encoded,
                                              &worker.work, &worker.status)
        if code == OK:
            code = self._carry_over(spans, old, &new, &changed, worker)
        if code == OK and not changed:
            return OK
        if code == OK:
            code = self._add_changed(spans, old, &new, worker)
        code = self._end(&new, code, worker, &erase)
        if code != OK:
            return code
        if erase:
            return object_erase(self.dirfd, key, &worker.staging, &worker.status)
        return object_commit(self.dirfd, key, &worker.staging, &worker.status)

    # chunks that stay as they are stored

    cdef int _carry_over(self, const Span *spans, const OldShard *old, NewShard *new, bint *changed,
                         Worker *worker) noexcept nogil:
        """Copy the chunks that do not change, and mark those that do."""
        cdef Span chunk[MAX_NDIM]
        cdef int64_t first[MAX_NDIM]
        cdef int64_t count[MAX_NDIM]
        cdef Extent *extents
        cdef int64_t limit = self.program.max_encoded(self.layout.n_bytes)
        cdef int64_t n = 0
        cdef int64_t position
        cdef int inside
        if self.data != NULL:
            for position in range(self.chunks_of(self.axes, spans, first, count)):
                _mark(new, self.chunk_of(self.axes, spans, first, count, position, chunk))
        if old.fd == ABSENT:
            return OK
        if buffer_reserve(&worker.extents, new.form.n_chunks * <int64_t>sizeof(Extent), &worker.status) != OK:
            return worker.status.code
        extents = <Extent *>worker.extents.data
        for position in range(new.form.n_chunks):
            if _is_marked(new, position) or _is_empty(old.words, position):
                continue
            inside = self._is_inside(spans, position)
            if inside == 0:
                # Beyond the array: nobody sees it now, and nobody shall when the array grows.
                changed[0] = True
            elif inside < 0 and self.data == NULL:
                changed[0] = True
                _mark(new, position)
            else:
                extents[n].i = position
                if self.shards.extent_of(&new.form, old.words, position, old.size, limit, &extents[n],
                                         &worker.status) != OK:
                    return worker.status.code
                n += 1
        if not changed[0]:
            return OK
        sort_extents(extents, n)
        return self._copy(old, new, extents, n, worker)

    cdef int _is_inside(self, const Span *object, int64_t position) noexcept nogil:
        """Whether a chunk lies in `old_shape`: 1, 0 when none of it does, or -1 when a part does."""
        cdef int d = self.ndim - 1
        cdef int64_t ratio
        cdef int64_t origin
        cdef int inside = 1
        while d >= 0:
            ratio = object[d].length // self.axes[d].chunk
            origin = object[d].origin + position % ratio * self.axes[d].chunk
            if origin >= self.old_shape[d]:
                return 0
            if origin > self.old_shape[d] - self.axes[d].chunk:
                inside = -1
            position //= ratio
            d -= 1
        return inside

    cdef int _copy(self, const OldShard *old, NewShard *new, const Extent *extents, int64_t n,
                   Worker *worker) noexcept nogil:
        cdef int64_t i = 0
        cdef int64_t j
        cdef int64_t low
        cdef int64_t high
        cdef int64_t moved
        cdef int64_t n_bytes
        cdef int code = OK
        while i < n:
            low = high = <int64_t>extents[i].offset
            moved = new.size - low
            j = i
            # Chunks that touch or share bytes go together, and lie to each other as they did.
            while j < n and <int64_t>extents[j].offset <= high:
                high = max(high, <int64_t>extents[j].offset + extents[j].n_bytes)
                _note(new, extents[j].i, <int64_t>extents[j].offset + moved, extents[j].n_bytes)
                j += 1
            while low < high and code == OK:
                if self.poll(worker):
                    return INTERRUPTED
                n_bytes = min(high - low, <int64_t>BATCH_NBYTES)
                code = buffer_reserve(&worker.encoded, n_bytes, &worker.status)
                if code == OK:
                    code = object_read_at(old.fd, low, n_bytes, worker.encoded.data, &worker.status)
                if code == OK:
                    code = self._append(new, worker.encoded.data, n_bytes, worker)
                low += n_bytes
            if code != OK:
                return code
            i = j
        return OK

    # chunks that are encoded

    cdef int _add_changed(self, const Span *spans, const OldShard *old, NewShard *new, Worker *worker) noexcept nogil:
        """Encode the selected chunks, or those that are marked; `old` is NULL when the shard is covered."""
        cdef Job job
        job.spans = spans
        job.old = old
        job.new = new
        cdef int64_t n = new.form.n_chunks
        if self.data != NULL:
            n = self.chunks_of(self.axes, spans, job.first, job.count)
        return self.run_parts(&job, n, worker)

    cdef int64_t _place_of_part(self, const Job *job, int64_t i, Span *chunk) noexcept nogil:
        """Describe the i-th chunk of a job; returns its position in the shard."""
        if self.data != NULL:
            return self.chunk_of(self.axes, job.spans, job.first, job.count, i, chunk)
        self._locate(job.spans, i, chunk)
        return i

    cdef int64_t encode_part(self, void *job, int64_t i, Worker *worker, const uint8_t **encoded) noexcept nogil:
        cdef Job *the = <Job *>job
        cdef Span chunk[MAX_NDIM]
        cdef int64_t n
        cdef int d
        cdef bint covered = self.data != NULL
        cdef int64_t position = self._place_of_part(the, i, chunk)
        if not covered and not _is_marked(the.new, position):
            return SKIPPED
        for d in range(self.ndim):
            covered = covered and (the.old == NULL or chunk[d].count == chunk[d].valid)
        if covered:
            n = self.encode_covered(chunk, worker, encoded)
            if n == FAILED:
                worker.status.inner = position
            return n
        return self._encode_changed(&the.new.form, the.old, chunk, position, worker, encoded)

    cdef int add_part(self, void *job, int64_t i, const uint8_t *encoded, int64_t n_bytes,
                      Worker *worker) noexcept nogil:
        cdef Job *the = <Job *>job
        cdef Span chunk[MAX_NDIM]
        cdef int64_t position
        if n_bytes == SKIPPED:
            return OK
        position = self._place_of_part(the, i, chunk)
        if n_bytes == FILLED:
            _note(the.new, position, -1, -1)
            return OK
        _note(the.new, position, the.new.size, n_bytes)
        return self._append(the.new, encoded, n_bytes, worker)

    cdef int64_t _encode_changed(self, const IndexForm *form, const OldShard *old, const Span *chunk, int64_t position,
                                 Worker *worker, const uint8_t **encoded) noexcept nogil:
        """Decode a chunk of the old shard, change what is selected of it, and encode it as `encode_part`."""
        cdef Extent extent
        cdef int64_t n
        cdef bint found = old.fd != ABSENT and not _is_empty(old.words, position)
        cdef int code = buffer_reserve(&worker.decoded, self.layout.n_bytes, &worker.status)
        if found:
            if code == OK:
                code = self.shards.extent_of(form, old.words, position, old.size,
                                             self.program.max_encoded(self.layout.n_bytes), &extent, &worker.status)
            if code == OK:
                code = buffer_reserve(&worker.encoded, extent.n_bytes, &worker.status)
            if code == OK:
                code = object_read_at(old.fd, <int64_t>extent.offset, extent.n_bytes, worker.encoded.data,
                                      &worker.status)
            if code == OK:
                code = self.take_in(worker.encoded.data, extent.n_bytes, chunk, worker)
                if code != OK:
                    worker.status.inner = position
                    worker.status.offset += <int64_t>extent.offset
        if code != OK:
            return FAILED
        n = self.encode_merged(chunk, found, worker, encoded)
        if n == FAILED:
            worker.status.inner = position
        return n

    cdef void _locate(self, const Span *object, int64_t position, Span *chunk) noexcept nogil:
        """Give `chunk` the place of the chunk at `position` of an object; nothing of it is selected."""
        cdef int d = self.ndim - 1
        cdef int64_t ratio
        while d >= 0:
            ratio = object[d].length // self.axes[d].chunk
            chunk[d].length = self.axes[d].chunk
            chunk[d].origin = object[d].origin + position % ratio * self.axes[d].chunk
            chunk[d].chunk = chunk[d].origin // self.axes[d].chunk
            position //= ratio
            d -= 1

    # the file

    cdef int _begin(self, NewShard *new, const char *key, const Span *spans, int n_indices,
                    Worker *worker) noexcept nogil:
        """Start a shard without chunks; room for so many indices is reserved, and empty."""
        cdef int64_t n_words = 2 * self.n_chunks_of(self.axes, spans) * n_indices
        cdef int code
        self.shards.form_of(self.n_chunks_of(self.axes, spans), 0, &new.form)
        new.key = key
        new.fd = -1
        new.size = new.form.n_bytes if self.shards.at_start else 0
        new.n_batch = 0
        code = buffer_reserve(&worker.index, n_words * <int64_t>sizeof(uint64_t), &worker.status)
        if code == OK:
            code = buffer_reserve(&worker.batch, BATCH_NBYTES, &worker.status)
        if code == OK:
            new.words = <uint64_t *>worker.index.data
            memset(new.words, 0xff, n_words * sizeof(uint64_t))
        return code

    cdef int _append(self, NewShard *new, const uint8_t *data, int64_t n_bytes, Worker *worker) noexcept nogil:
        cdef int code = OK
        if n_bytes >= ALONE_NBYTES or new.n_batch + n_bytes > BATCH_NBYTES:
            code = self._flush(new, worker)
        if code != OK:
            return code
        if n_bytes < ALONE_NBYTES:
            memcpy(worker.batch.data + new.n_batch, data, n_bytes)
            new.n_batch += n_bytes
        else:
            code = stage_write(new.fd, data, n_bytes, new.size, &worker.status)
        new.size += n_bytes
        return code

    cdef int _flush(self, NewShard *new, Worker *worker) noexcept nogil:
        """Bring the batch to the file, which is made when there is something to write."""
        cdef int64_t n = new.n_batch
        if new.fd < 0:
            new.fd = stage_open(self.dirfd, new.key, &worker.staging, &worker.status)
            if new.fd < 0:
                return worker.status.code
        new.n_batch = 0
        return stage_write(new.fd, worker.batch.data, n, new.size - n, &worker.status)

    cdef int _end(self, NewShard *new, int code, Worker *worker, bint *erase) noexcept nogil:
        """Write the index of a shard and stage it, or find that it has no chunks."""
        cdef const uint8_t *encoded = NULL
        cdef int64_t n
        if code == OK and new.fd < 0 and new.n_batch == 0 and not self.keep_filled:
            erase[0] = True
            return OK
        if code == OK:
            code = self._flush(new, worker)
        if code == OK:
            n = self.shards.encode_index(&new.form, new.words, &worker.encoded, &encoded, &worker.work,
                                         &worker.status)
            code = worker.status.code if n < 0 else stage_write(new.fd, encoded, n, 0 if self.shards.at_start else
                                                                new.size, &worker.status)
        if new.fd < 0:
            return code
        return stage_close(self.dirfd, new.fd, code, &worker.staging, &worker.status)


cdef inline void _note(NewShard *new, int64_t position, int64_t offset, int64_t n_bytes) noexcept nogil:
    new.words[2 * position] = <uint64_t>offset
    new.words[2 * position + 1] = <uint64_t>n_bytes


cdef inline void _mark(NewShard *new, int64_t position) noexcept nogil:
    """Note that a chunk will be encoded anew, until it is: no entry of an index looks so."""
    _note(new, position, 0, -1)


cdef inline bint _is_marked(const NewShard *new, int64_t position) noexcept nogil:
    return new.words[2 * position] == 0 and new.words[2 * position + 1] == UINT64_MAX


cdef inline bint _is_empty(const uint64_t *words, int64_t position) noexcept nogil:
    return words[2 * position] == UINT64_MAX and words[2 * position + 1] == UINT64_MAX
