# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Writing arrays whose objects are shards: each task replaces one shard. `write.pyx` holds its lock.

A covered shard is never read. Its chunks are encoded directly from the caller's elements and go to the temporary file
in batches, so a writer needs memory for some chunks, not for a shard. Threads without a shard of their own help.

In a shard that changes in part, only the chunks that the selection touches are encoded anew. The others are carried
over as stored, in the order of the old file, by copying whole runs. Chunks that share bytes keep sharing them, and gaps
from older programs are closed. Touched chunks are decoded only if some of their elements stay.

Chunks that are shards themselves are made by the same rules, in memory.

Chunks that hold only the fill value are left out; a shard without chunks is erased.

One thread, its owner, locks and replaces a shard. A shard can be as large as the whole array, so a thread without a
task helps the owners that are still at work: it begins the next part of a shard, encodes it into a slot, and begins
another. The owner does the same, except for the part that is next in order, which it adds at once. From the slots it
adds those that are ready. So the bytes of the shard do not depend on which thread encoded which part.

At most `n_slots` parts are begun before they are added. With half as many slots as parts, all encoders and their slots
together need less memory than the shard, decoded and encoded.
"""
cimport cython
from libc.stdint cimport UINT64_MAX, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from zcore.kernel.atomics cimport zc_add, zc_back_off, zc_load, zc_store, zc_swap_if
from zcore.kernel.codec.table cimport Workspace, workspace_free
from zcore.kernel.io.files cimport (
    FAILED, Content, buffer_extend, buffer_free, buffer_relax, buffer_reserve, content_at, stage_close, stage_open,
    stage_write,
)
from zcore.kernel.io.locks cimport section_enter
from zcore.kernel.memory cimport zc_new_zeros
from zcore.kernel.plan.chunk cimport encode_covered_chunk, encode_merged_chunk, is_inside, merge_chunk
from zcore.kernel.plan.fetch cimport fetch_close, fetch_identity, fetch_open
from zcore.kernel.plan.plan cimport FILLED, SAME, Object
from zcore.kernel.plan.shard_index cimport IndexForm, note_outer, sort_extents
from zcore.kernel.select.grid cimport Axis
from zcore.kernel.status cimport INTERRUPTED, MAX_SHARD_LEVELS, MISSING, NO_MEMORY, OK, WANTED, fail, status_clear
from zcore.kernel.strided.copy cimport MAX_NDIM

cdef enum:
    BATCH_NBYTES = 1 << 19     # written to the file at once
    ALONE_NBYTES = 1 << 16     # a chunk of this size is worth a write of its own
    SLOTS_PER_THREAD = 4
    SKIPPED = -4               # instead of a size, beside FILLED and FAILED: the part stays as it is

cdef struct NewShard:          # the shard that is being written
    int level                  # number of shards around it
    Buffer *built              # its bytes in memory; NULL: it goes to a file
    const char *key            # key of that file
    int fd                     # -1 until there is something to write
    IndexForm form
    int64_t size               # its size so far, with the batch
    int64_t n_batch
    int64_t n_stored           # number of its chunks; carried over damaged chunks may have no bytes
    uint64_t *words            # of its index

cdef struct OldShard:          # the shard that is replaced
    bint found
    Content content
    uint64_t *words            # of its index, if it was found

cdef struct Job:               # the chunks of a shard that are to be encoded
    const Span *spans          # of the shard
    const OldShard *old        # NULL: all elements inside the array are selected
    NewShard *new
    int64_t first[MAX_NDIM]    # from `chunks_of`, if elements are selected
    int64_t count[MAX_NDIM]


@cython.final
cdef class ShardWriter:
    """Writes the objects of one plan, if they are shards.

    Parameters
    ----------
    plan : Plan
        The plan that owns this writer.
    """

    def __cinit__(self):
        self.crews = NULL

    def __init__(self, Plan plan not None):
        self.shards = <ShardProgram>plan.levels.programs[0]
        self.parts_are_encoded = plan.program.n_steps > 0 or plan.levels.n > 1

    def __dealloc__(self):
        free(self.crews)

    cdef int follow(self, Plan plan, int n_threads) noexcept nogil:
        cdef Crew **crews
        plan.task_threads = max(1, self.shards.n_chunks // 2)
        if n_threads != self.n_crew:
            crews = <Crew **>calloc(n_threads, sizeof(Crew *))
            if crews == NULL:
                return NO_MEMORY
            free(self.crews)
            self.crews = crews
            self.n_crew = n_threads
        return OK

    cdef void help(self, Plan plan, Worker *worker) noexcept nogil:
        cdef Crew *crew
        cdef bint found
        cdef int64_t i
        cdef int64_t n_waits = 0
        while not plan.poll(worker):
            found = False
            for i in range(self.n_crew):
                crew = _join(self, i)
                if crew == NULL:
                    continue
                # A signal handler that wants this crew's object would wait for its owner, and the owner waits for
                # helpers.
                worker.joined = True
                while not plan.poll(worker) and not plan.is_poll_due(worker) and _help_once(self, plan, crew, worker):
                    found = True
                worker.joined = False
                zc_add(&crew.n_helpers, -1)
            if found:
                n_waits = 0
                continue
            if zc_load(&self.n_open) == 0:
                return
            zc_back_off(n_waits)
            n_waits += 1

    # objects: files that are written in parts, or bytes for the caller

    cdef int stage_covered(self, Plan plan, const Span *spans, const char *key, Worker *worker) noexcept nogil:
        cdef NewShard new
        cdef bint changed = True
        cdef int code
        _start(&new, 0, NULL, key)
        code = _make(self, plan, &new, spans, NULL, &changed, worker)
        return _end(plan, &new, code, worker)

    cdef int stage_merged(self, Plan plan, const Span *spans, const char *key, Worker *worker) noexcept nogil:
        cdef Object object
        cdef OldShard old
        cdef NewShard new
        cdef bint changed = plan.has_elements
        cdef int code = fetch_open(plan, key, &object, worker)
        if code == OK:
            code = fetch_identity(&object, &worker.status)
        if code == MISSING and not plan.has_elements:
            fetch_close(&object)
            return SAME
        if code == MISSING and plan.opened.missing_raises:
            fail(&worker.status, MISSING, 0, 0, 0)
        elif code == OK or code == MISSING:
            old.found = code == OK
            old.content = object.content
            _start(&new, 0, NULL, key)
            code = _make(self, plan, &new, spans, &old, &changed, worker)
            code = SAME if code == OK and not changed else _end(plan, &new, code, worker)
        fetch_close(&object)
        return code

    cdef int find_wanted(self, Plan plan, const Span *spans, const Extent **extents, int64_t *n,
                         Worker *worker) noexcept nogil:
        cdef IndexForm form
        cdef Extent *found
        cdef uint64_t *words
        cdef const Content *content = &worker.passed.content
        cdef int64_t n_chunks = plan.n_chunks_of(plan.levels.axes_of(0), spans)
        cdef int64_t position
        cdef int code
        self.shards.form_of(n_chunks, 0, &form)
        n[0] = 0
        code = buffer_reserve(&worker.levels[0].extents, n_chunks * <int64_t>sizeof(Extent), &worker.status)
        if code == OK:
            code = buffer_reserve(&worker.levels[0].index, n_chunks * 2 * <int64_t>sizeof(uint64_t), &worker.status)
        if code != OK:
            return code
        extents[0] = found = <Extent *>worker.levels[0].extents.data
        words = <uint64_t *>worker.levels[0].index.data
        code = self.shards.read_index(&form, content, content.size, words, &worker.encoded, &worker.work,
                                      &worker.status)
        if code == WANTED:
            found[0].i = -1
            found[0].offset = <uint64_t>worker.status.offset
            found[0].n_bytes = worker.status.expected
            n[0] = 1
            status_clear(&worker.status)
            return OK
        # All of its chunks: those that change are decoded, the others are carried over.
        for position in range(n_chunks if code == OK else 0):
            if _is_empty(words, position):
                continue
            found[n[0]].i = position
            # A bad entry is reported when it is used.
            if self.shards.extent_of(&form, words, position, content.size, plan.levels.limit_of(0), &found[n[0]],
                                     &worker.status) == OK:
                n[0] += 1
            else:
                status_clear(&worker.status)
        return code

    cdef int64_t encode_covered(self, Plan plan, const Span *spans, Worker *worker,
                                const uint8_t **encoded) noexcept nogil:
        return _encode_shard(self, plan, 0, spans, NULL, worker, encoded)

    cdef int64_t encode_merged(self, Plan plan, const Span *spans, bint found, Worker *worker,
                               const uint8_t **encoded) noexcept nogil:
        cdef OldShard old
        old.found = found
        old.content = worker.content
        return _encode_shard(self, plan, 0, spans, &old, worker, encoded)

    # building a shard


# shards of any level

cdef int _make(ShardWriter self, Plan plan, NewShard *new, const Span *spans, OldShard *old, bint *changed,
               Worker *worker) noexcept nogil:
    """Add all chunks of a shard; do nothing if none of them changes."""
    cdef int code = _begin(plan, new, spans, 1 if old == NULL else 2, worker)
    if code == OK and old != NULL:
        old.words = new.words + 2 * new.form.n_chunks
        if old.found:
            code = (<ShardProgram>plan.levels.programs[new.level]).read_index(
                &new.form, &old.content, old.content.size, old.words, &worker.encoded, &worker.work,
                &worker.status)
        if code == OK:
            code = _carry_over(plan, spans, old, new, changed, worker)
    if code == OK and changed[0]:
        code = _add_changed(self, plan, spans, old, new, worker)
    return code


cdef int64_t _encode_shard(ShardWriter self, Plan plan, int level, const Span *spans, OldShard *old, Worker *worker,
                           const uint8_t **encoded) noexcept nogil:
    """Make a shard in memory: return its size, FILLED or FAILED."""
    cdef NewShard new
    cdef bint changed = True
    cdef int code
    # Programs never have more levels. This comparison tells the compiler.
    if level >= MAX_SHARD_LEVELS:
        return FAILED
    _start(&new, level, &worker.levels[level].built, NULL)
    code = _make(self, plan, &new, spans, old, &changed, worker)
    if code != OK:
        if code == INTERRUPTED:
            fail(&worker.status, INTERRUPTED, 0, 0, 0)
        return FAILED
    buffer_relax(&worker.levels[level].content)
    if level + 1 < plan.levels.n:
        buffer_relax(&worker.levels[level + 1].built)
    return _finish(plan, &new, worker, encoded)


# chunks that stay as they are stored

cdef int _carry_over(Plan plan, const Span *spans, const OldShard *old, NewShard *new, bint *changed,
                     Worker *worker) noexcept nogil:
    """Copy the chunks that do not change, and mark those that do."""
    cdef Span chunk[MAX_NDIM]
    cdef int64_t first[MAX_NDIM]
    cdef int64_t count[MAX_NDIM]
    cdef const Axis *axes = plan.levels.axes_of(new.level)
    cdef const int *order = plan.levels.order_of(new.level)
    cdef Buffer *buffer = &worker.levels[new.level].extents
    cdef Extent *extents
    cdef int64_t limit = plan.levels.limit_of(new.level)
    cdef int64_t n = 0
    cdef int64_t position
    cdef int inside
    if plan.has_elements:
        for position in range(plan.chunks_of(axes, spans, first, count)):
            _mark(new, plan.chunk_of(axes, order, spans, first, count, position, chunk))
    if not old.found:
        return OK
    if buffer_reserve(buffer, new.form.n_chunks * <int64_t>sizeof(Extent), &worker.status) != OK:
        return worker.status.code
    extents = <Extent *>buffer.data
    for position in range(new.form.n_chunks):
        if _is_marked(new, position) or _is_empty(old.words, position):
            continue
        _locate(plan, new.level, spans, position, chunk)
        inside = is_inside(plan, chunk)
        if inside == 0:
            # Outside the array: invisible now, and it must stay so when the array grows.
            changed[0] = True
        elif inside < 0 and not plan.has_elements:
            changed[0] = True
            _mark(new, position)
        else:
            extents[n].i = position
            if (<ShardProgram>plan.levels.programs[new.level]).extent_of(
                    &new.form, old.words, position, old.content.size, limit, &extents[n], &worker.status) != OK:
                return worker.status.code
            n += 1
    if not changed[0]:
        return OK
    sort_extents(extents, n)
    return _copy(plan, old, new, extents, n, worker)


cdef void _locate(Plan plan, int level, const Span *object, int64_t position,
                  Span *chunk) noexcept nogil:
    """Set `chunk` to the chunk at `position` of a shard, with no element selected."""
    cdef const Axis *axes = plan.levels.axes_of(level)
    cdef const int *order = plan.levels.order_of(level)
    cdef int k = plan.ndim - 1
    cdef int d
    cdef int64_t ratio
    while k >= 0:
        d = k if order == NULL else order[k]
        ratio = object[d].length // axes[d].chunk
        chunk[d].length = axes[d].chunk
        chunk[d].origin = object[d].origin + position % ratio * axes[d].chunk
        chunk[d].chunk = chunk[d].origin // axes[d].chunk
        position //= ratio
        k -= 1


# chunks that are encoded

cdef int _add_changed(ShardWriter self, Plan plan, const Span *spans, const OldShard *old, NewShard *new,
                      Worker *worker) noexcept nogil:
    """Encode the selected chunks, or the marked ones."""
    cdef Job job
    job.spans = spans
    job.old = old
    job.new = new
    cdef int64_t n = new.form.n_chunks
    if plan.has_elements:
        n = plan.chunks_of(plan.levels.axes_of(new.level), spans, job.first, job.count)
    # Shards in shards are parts themselves, which threads already share.
    return _run_parts(self, plan, &job, n, worker) if new.level == 0 else _run_alone(self, plan, &job, n, worker)


cdef int64_t _place_of_part(Plan plan, Job *job, int64_t i, Span *chunk) noexcept nogil:
    """Describe the i-th chunk of a job; return its position in the shard."""
    if plan.has_elements:
        return plan.chunk_of(plan.levels.axes_of(job.new.level),
                             plan.levels.order_of(job.new.level), job.spans, job.first,
                             job.count, i, chunk)
    _locate(plan, job.new.level, job.spans, i, chunk)
    return i


cdef int64_t _encode_part(ShardWriter self, Plan plan, Job *job, int64_t i, Worker *worker,
                          const uint8_t **encoded) noexcept nogil:
    """Encode the i-th chunk of a job, on any thread: return its size, FILLED, SKIPPED or FAILED."""
    cdef Span chunk[MAX_NDIM]
    cdef int level = job.new.level
    cdef int64_t n
    cdef bint covered = plan.has_elements
    cdef int64_t position = _place_of_part(plan, job, i, chunk)
    if not covered and not _is_marked(job.new, position):
        return SKIPPED
    if not covered or (job.old != NULL and not plan.is_covered(chunk)):
        return _encode_changed(self, plan, job, chunk, position, worker, encoded)
    if level == plan.levels.n - 1:
        n = encode_covered_chunk(plan, chunk, worker, encoded)
    else:
        n = _encode_shard(self, plan, level + 1, chunk, NULL, worker, encoded)
    if n == FAILED:
        note_outer(&worker.status, position)
    return n


cdef int _add_part(Plan plan, Job *job, int64_t i, const uint8_t *encoded, int64_t n_bytes,
                   Worker *worker) noexcept nogil:
    """Add the i-th chunk, on the owner's thread and in order: OK or a code."""
    cdef Span chunk[MAX_NDIM]
    cdef int64_t position
    if n_bytes == SKIPPED:
        return OK
    position = _place_of_part(plan, job, i, chunk)
    if n_bytes == FILLED:
        _note(job.new, position, -1, -1)
        return OK
    _note(job.new, position, job.new.size, n_bytes)
    job.new.n_stored += 1
    return _append(plan, job.new, encoded, n_bytes, worker)


cdef int64_t _encode_changed(ShardWriter self, Plan plan, Job *job, const Span *chunk, int64_t position,
                             Worker *worker, const uint8_t **encoded) noexcept nogil:
    """Change the selected elements of a chunk of the old shard, and encode it like `encode_part`."""
    cdef const OldShard *old = job.old
    cdef int level = job.new.level
    cdef OldShard inner
    cdef Extent extent
    cdef Buffer *buffer = &worker.encoded
    cdef const uint8_t *data
    cdef int64_t n = FAILED
    cdef int code = OK
    cdef bint is_shard = level < plan.levels.n - 1
    extent.offset = 0
    inner.found = old.found and not _is_empty(old.words, position)
    if inner.found:
        if (<ShardProgram>plan.levels.programs[level]).extent_of(
                &job.new.form, old.words, position, old.content.size, plan.levels.limit_of(level), &extent,
                &worker.status) != OK:
            return FAILED
        if is_shard:
            # Another buffer: this one is used to carry over chunks while others are encoded.
            buffer = &worker.levels[level + 1].content
        data = content_at(&old.content, <int64_t>extent.offset, extent.n_bytes, buffer, &worker.status)
        if data == NULL:
            return FAILED
        if is_shard:
            memset(&inner.content, 0, sizeof(Content))
            inner.content.fd = -1
            inner.content.data = data
            inner.content.size = extent.n_bytes
        else:
            code = merge_chunk(plan, data, extent.n_bytes, chunk, worker)
    elif not is_shard:
        code = buffer_reserve(&worker.decoded, plan.layout.n_bytes, &worker.status)
    if code == OK and is_shard:
        n = _encode_shard(self, plan, level + 1, chunk, &inner, worker, encoded)
    elif code == OK:
        n = encode_merged_chunk(plan, chunk, inner.found, worker, encoded)
    if n == FAILED:
        note_outer(&worker.status, position)
        if not worker.status.is_encode:
            worker.status.offset += <int64_t>extent.offset
    return n


cdef int _append(Plan plan, NewShard *new, const uint8_t *data, int64_t n_bytes,
                 Worker *worker) noexcept nogil:
    cdef int code = OK
    if new.built != NULL:
        code = buffer_extend(new.built, new.size, n_bytes, &worker.status)
        if code == OK:
            memcpy(new.built.data + new.size, data, n_bytes)
            new.size += n_bytes
        return code
    # A child shares the file with its parent.
    if plan.is_cut_off():
        return INTERRUPTED
    if n_bytes >= ALONE_NBYTES or new.n_batch + n_bytes > BATCH_NBYTES:
        code = _flush(plan, new, worker)
    if code != OK:
        return code
    if n_bytes < ALONE_NBYTES:
        memcpy(worker.batch.data + new.n_batch, data, n_bytes)
        new.n_batch += n_bytes
    else:
        code = stage_write(new.fd, data, n_bytes, new.size, &worker.status)
    new.size += n_bytes
    return code


cdef int _flush(Plan plan, NewShard *new, Worker *worker) noexcept nogil:
    """Write the batch to the file, which is created when there is something to write."""
    cdef int64_t n = new.n_batch
    if new.fd < 0:
        new.fd = stage_open(plan.dirfd, new.key, &worker.staging, &worker.status)
        if new.fd < 0:
            return worker.status.code
    new.n_batch = 0
    return stage_write(new.fd, worker.batch.data, n, new.size - n, &worker.status)


cdef int64_t _finish(Plan plan, NewShard *new, Worker *worker,
                     const uint8_t **encoded) noexcept nogil:
    """Add the index of a shard in memory: return its size, FILLED or FAILED."""
    cdef const uint8_t *index = NULL
    cdef int64_t at = new.size
    cdef int64_t n
    if new.n_stored == 0 and not worker.keeps_filled:
        return FILLED
    n = (<ShardProgram>plan.levels.programs[new.level]).encode_index(&new.form, new.words, &worker.encoded, &index,
                                                                     &worker.work, &worker.status)
    if n < 0:
        return FAILED
    if (<ShardProgram>plan.levels.programs[new.level]).at_start:
        at = 0
    else:
        new.size += n
        if buffer_extend(new.built, at, n, &worker.status) != OK:
            return FAILED
    memcpy(new.built.data + at, index, n)
    encoded[0] = new.built.data
    return new.size


cdef int _copy(Plan plan, const OldShard *old, NewShard *new, const Extent *extents, int64_t n,
               Worker *worker) noexcept nogil:
    cdef int64_t i = 0
    cdef int64_t j, low, high, moved, n_bytes
    cdef const uint8_t *data
    cdef int code = OK
    while i < n:
        low = high = <int64_t>extents[i].offset
        moved = new.size - low
        j = i
        # Chunks that touch or share bytes are copied together, so their relative offsets stay.
        while j < n and <int64_t>extents[j].offset <= high:
            high = max(high, <int64_t>extents[j].offset + extents[j].n_bytes)
            _note(new, extents[j].i, <int64_t>extents[j].offset + moved, extents[j].n_bytes)
            new.n_stored += 1
            j += 1
        while low < high and code == OK:
            if plan.poll(worker):
                return INTERRUPTED
            n_bytes = min(high - low, <int64_t>BATCH_NBYTES)
            data = content_at(&old.content, low, n_bytes, &worker.encoded, &worker.status)
            code = worker.status.code if data == NULL else _append(plan, new, data, n_bytes, worker)
            low += n_bytes
        if code != OK:
            return code
        i = j
    return OK


cdef int _begin(Plan plan, NewShard *new, const Span *spans, int n_indices, Worker *worker) noexcept nogil:
    """Start a shard without chunks, and reserve empty memory for `n_indices` indices."""
    cdef int64_t n_chunks = plan.n_chunks_of(plan.levels.axes_of(new.level), spans)
    cdef int64_t n_words = 2 * n_chunks * n_indices
    cdef Buffer *index = &worker.levels[new.level].index
    cdef int code
    (<ShardProgram>plan.levels.programs[new.level]).form_of(n_chunks, 0, &new.form)
    # The index may precede the first chunk.
    new.size = new.form.n_bytes if (<ShardProgram>plan.levels.programs[new.level]).at_start else 0
    code = buffer_reserve(index, n_words * <int64_t>sizeof(uint64_t), &worker.status)
    if code == OK and new.built == NULL:
        code = buffer_reserve(&worker.batch, BATCH_NBYTES, &worker.status)
    elif code == OK:
        code = buffer_reserve(new.built, new.form.n_bytes, &worker.status)
    if code == OK:
        new.words = <uint64_t *>index.data
        memset(new.words, 0xff, n_words * sizeof(uint64_t))
    return code


cdef int _end(Plan plan, NewShard *new, int code, Worker *worker) noexcept nogil:
    """Write the index of a file and stage it: OK or a code; FILLED, if it has no chunks."""
    cdef const uint8_t *encoded = NULL
    cdef int64_t offset, n
    if code == OK and plan.is_cut_off():
        code = INTERRUPTED
    if code == OK and new.n_stored == 0 and not worker.keeps_filled:
        return FILLED
    if code == OK:
        code = _flush(plan, new, worker)
    if code == OK:
        offset = 0 if (<ShardProgram>plan.levels.programs[0]).at_start else new.size
        n = (<ShardProgram>plan.levels.programs[0]).encode_index(&new.form, new.words, &worker.encoded, &encoded,
                                                                 &worker.work, &worker.status)
        code = worker.status.code if n < 0 else stage_write(new.fd, encoded, n, offset, &worker.status)
    if new.fd < 0:
        return code
    return stage_close(plan.dirfd, new.fd, code, &worker.staging, &worker.status)


cdef inline void _start(NewShard *new, int level, Buffer *built, const char *key) noexcept nogil:
    new.level = level
    new.built = built
    new.key = key
    new.fd = -1
    new.n_batch = 0
    new.n_stored = 0


cdef inline void _note(NewShard *new, int64_t position, int64_t offset, int64_t n_bytes) noexcept nogil:
    new.words[2 * position] = <uint64_t>offset
    new.words[2 * position + 1] = <uint64_t>n_bytes


cdef inline void _mark(NewShard *new, int64_t position) noexcept nogil:
    """Mark a chunk to be encoded anew, with a value that no index entry has."""
    _note(new, position, 0, -1)


cdef inline bint _is_marked(const NewShard *new, int64_t position) noexcept nogil:
    return new.words[2 * position] == 0 and new.words[2 * position + 1] == UINT64_MAX


cdef inline bint _is_empty(const uint64_t *words, int64_t position) noexcept nogil:
    return words[2 * position] == UINT64_MAX and words[2 * position + 1] == UINT64_MAX


# threads that share the encoding of one shard

cdef int _run_parts(ShardWriter self, Plan plan, Job *job, int64_t n_parts, Worker *worker) noexcept nogil:
    cdef Crew crew
    cdef Workspace left
    cdef int64_t i
    cdef int64_t n_waits = 0
    cdef int code
    memset(&crew, 0, sizeof(Crew))
    crew.job = <void *>job
    crew.n_parts = n_parts
    crew.n_slots = min(SLOTS_PER_THREAD * self.n_crew, n_parts // 2)
    if self.n_crew > 1 and crew.n_slots > 1 and self.parts_are_encoded:
        crew.slots = <Slot *>zc_new_zeros(crew.n_slots, sizeof(Slot))
    if crew.slots == NULL or not _show(self, &crew):
        free(crew.slots)
        return _run_alone(self, plan, job, n_parts, worker)
    code = _lead(self, plan, &crew, worker)
    _hide(self, &crew)
    while zc_load(&crew.n_helpers):
        if plan.is_cut_off():
            return INTERRUPTED     # what the helpers had in hand, in the parent, stays as it is
        zc_back_off(n_waits)
        n_waits += 1
    for i in range(crew.n_slots):
        buffer_free(&crew.slots[i].encoded)
    free(crew.slots)
    # A helper's exception, if both the helper and the owner failed.
    memset(&left, 0, sizeof(Workspace))
    left.exception = crew.exception
    workspace_free(&left)
    return code


cdef int _run_alone(ShardWriter self, Plan plan, Job *job, int64_t n_parts, Worker *worker) noexcept nogil:
    cdef const uint8_t *encoded = NULL
    cdef int64_t i, n
    cdef int code = OK
    for i in range(n_parts):
        if plan.poll(worker):
            return INTERRUPTED
        n = _encode_part(self, plan, job, i, worker, &encoded)
        code = worker.status.code if n == FAILED else _add_part(plan, job, i, encoded, n, worker)
        if code != OK:
            return code
    return OK


cdef int _lead(ShardWriter self, Plan plan, Crew *crew, Worker *worker) noexcept nogil:
    cdef const uint8_t *encoded = NULL
    cdef Slot *slot
    cdef int64_t n
    cdef int64_t n_waits = 0
    cdef int code = OK
    while crew.n_added < crew.n_parts and code == OK:
        if plan.poll(worker):
            return INTERRUPTED
        if zc_load(&crew.failure):
            while zc_load(&crew.failure) != 2:
                if plan.is_cut_off():
                    return INTERRUPTED
                zc_back_off(n_waits)
                n_waits += 1
            worker.status = crew.status
            worker.work.exception, crew.exception = crew.exception, worker.work.exception
            return worker.status.code
        slot = &crew.slots[crew.n_added % crew.n_slots]
        if zc_load(&slot.ready):
            code = _add_part(plan, <Job *>crew.job, crew.n_added, slot.encoded.data, slot.n_bytes, worker)
            zc_store(&slot.ready, 0)
            zc_add(&crew.n_added, 1)
        elif zc_swap_if(&crew.n_begun, crew.n_added, crew.n_added + 1):
            n = _encode_part(self, plan, <Job *>crew.job, crew.n_added, worker, &encoded)
            code = (worker.status.code if n == FAILED else
                    _add_part(plan, <Job *>crew.job, crew.n_added, encoded, n, worker))
            zc_add(&crew.n_added, 1)
        elif not _help_once(self, plan, crew, worker):
            # Another thread encodes the part that is next in order.
            zc_back_off(n_waits)
            n_waits += 1
            continue
        n_waits = 0
    return code


cdef bint _help_once(ShardWriter self, Plan plan, Crew *crew, Worker *worker) noexcept nogil:
    """Encode the next part into its slot; return False if none may be taken now."""
    cdef const uint8_t *encoded = NULL
    cdef Slot *slot
    cdef int64_t n
    cdef int64_t i = zc_load(&crew.n_begun)
    if i >= crew.n_parts or i >= zc_load(&crew.n_added) + crew.n_slots or zc_load(&crew.failure):
        return False
    if not zc_swap_if(&crew.n_begun, i, i + 1):
        return True
    slot = &crew.slots[i % crew.n_slots]
    n = _encode_part(self, plan, <Job *>crew.job, i, worker, &encoded)
    if n > 0:
        if buffer_reserve(&slot.encoded, n, &worker.status) == OK:
            memcpy(slot.encoded.data, encoded, n)
        else:
            n = FAILED
    if n == FAILED:
        if zc_swap_if(&crew.failure, 0, 1):
            crew.status = worker.status
            crew.exception, worker.work.exception = worker.work.exception, NULL
            zc_store(&crew.failure, 2)
        status_clear(&worker.status)
        return False
    slot.n_bytes = n
    zc_store(&slot.ready, 1)
    return True


# list of crews

cdef bint _show(ShardWriter self, Crew *crew) noexcept nogil:
    """Let other threads help; return False if there are more owners than announced threads."""
    cdef int64_t i
    cdef bint shown = False
    section_enter(&self.guard)
    for i in range(self.n_crew):
        if self.crews[i] == NULL:
            self.crews[i] = crew
            shown = True
            break
    zc_store(&self.guard, 0)
    return shown


cdef void _hide(ShardWriter self, Crew *crew) noexcept nogil:
    cdef int64_t i
    section_enter(&self.guard)
    for i in range(self.n_crew):
        if self.crews[i] == crew:
            self.crews[i] = NULL
    zc_store(&self.guard, 0)


cdef Crew *_join(ShardWriter self, int64_t i) noexcept nogil:
    """Return the crew at a slot, which stays until `n_helpers` is counted down again, or NULL."""
    cdef Crew *crew
    section_enter(&self.guard)
    crew = self.crews[i]
    if crew != NULL:
        zc_add(&crew.n_helpers, 1)
    zc_store(&self.guard, 0)
    return crew
