# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Reading arrays whose objects are shards: of each shard the index and the selected chunks only.

A task is a group of the selected chunks of one shard. With plenty of shards, a group is all of them. With few shards,
each is several tasks, so that threads share it. The first task of a shard opens it and looks up the selected chunks in
its index; the others find it open, and the last one closes it. All of them read the same open file, so all threads see
the same version of a shard.

Chunks may be shards themselves. The task that opens the outermost shard walks through the indices of all inner shards
that the selection touches, depth first, so that the chunks of all of them form one list.

Groups are cut in the order of the chunks in the file, and neighbouring chunks are fetched by one read.
"""
cimport cython
from libc.stdint cimport UINT64_MAX, uint8_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from zcore.kernel.atomics cimport zc_add, zc_back_off, zc_load, zc_store, zc_swap_if
from zcore.kernel.io.files cimport Content, buffer_free, buffer_reserve, content_at
from zcore.kernel.io.locks cimport section_enter
from zcore.kernel.memory cimport zc_new_zeros
from zcore.kernel.plan.cache cimport Kept, kept_new, kept_release
from zcore.kernel.plan.chunk cimport begin_kept, decode_chunk, end_kept, place_fill, place_kept
from zcore.kernel.plan.fetch cimport fetch_close, fetch_identity, fetch_open
from zcore.kernel.plan.shard_index import INDICES

from zcore.kernel.plan.shard_index cimport IndexForm, ShardProgram, note_outer, sort_extents
from zcore.kernel.select.grid cimport Axis, ceil_div
from zcore.kernel.select.open_array cimport MAX_KEY
from zcore.kernel.status cimport (
    INTERRUPTED, MAX_SHARD_LEVELS, MISSING, NO_MEMORY, OK, WANTED, Status, fail, status_clear,
)

cdef enum:
    GROUP_NBYTES = 1 << 20     # decoded bytes of the smallest task that is worth a thread
    GROUPS_PER_THREAD = 8      # so that threads end at about the same time
    BATCH_NBYTES = 1 << 19     # of one read of several chunks: stays in the CPU's cache until they are decoded
    GAP_NBYTES = 1 << 14       # reading through a gap of this size costs less than another read
    # States of an open shard.
    NEW = -1                   # no task has begun to open it
    OPENING = 0
    READY = 1
    GONE = 2                   # the object is absent
    UNREADABLE = 3             # the task that opened it failed


@cython.final
cdef class ShardReader:
    """Reads the objects of one plan, if they are shards.

    Parameters
    ----------
    indices : IndexCache or None
        Cache for shard indices; None: the cache that all arrays share.
    """

    def __cinit__(self):
        self.places = NULL

    def __init__(self, IndexCache indices):
        self.cache = INDICES if indices is None else indices

    def __dealloc__(self):
        _free_places(self)

    cdef int follow(self, Plan plan, int n_threads) noexcept nogil:
        cdef int64_t n_parts = 1
        cdef int64_t n_places, i
        cdef int d
        # No shard has a larger part of the selection.
        plan.task_nbytes = plan.layout.n_bytes
        for d in range(plan.ndim):
            plan.task_nbytes *= min(plan.axes[d].n_chunks, plan.objects[d].chunk // plan.axes[d].chunk)
        if (plan.dirfd == -1 and plan.extents is None) or plan.n_tasks == 0:
            return OK
        if n_threads > 1:
            n_parts = max(1, min(plan.task_nbytes // GROUP_NBYTES,
                                 ceil_div(GROUPS_PER_THREAD * n_threads, plan.n_tasks)))
        # As many as the tasks in progress, and one for the shard whose tasks are being taken.
        n_places = min(n_threads + 1, plan.n_tasks)
        if n_places > self.n_places:
            _free_places(self)
            self.places = <OpenShard *>zc_new_zeros(n_places, sizeof(OpenShard))
            if self.places == NULL:
                return NO_MEMORY
            self.n_places = n_places
        for i in range(self.n_places):
            self.places[i].shard = -1
            self.places[i].read.object.content.fd = -1
        plan.task_nbytes //= n_parts
        plan.n_tasks *= n_parts
        plan.n_parts = n_parts
        return OK

    cdef void enter(self) noexcept nogil:
        zc_add(&self.n_inside, 1)

    cdef void leave(self) noexcept nogil:
        # When the last thread leaves, every task is done, or the plan has stopped with shards left open.
        if zc_add(&self.n_inside, -1) == 1:
            _close_all(self)

    cdef int run_task(self, Plan plan, int64_t task, Worker *worker) noexcept nogil:
        cdef Span object[MAX_NDIM]
        cdef int64_t group = task % plan.n_parts
        cdef OpenShard *shard
        cdef int64_t n, rest
        cdef int code
        plan.spans_of(plan.object_of(task), object)
        shard = _enter(self, plan, plan.object_of(task), object, worker)
        if shard == NULL:
            return INTERRUPTED
        if zc_load(&shard.state) == READY:
            n = shard.read.n // plan.n_parts
            rest = shard.read.n % plan.n_parts
            code = _read_chunks(self, plan, &shard.read, object, n * group + rest * group // plan.n_parts,
                                n * (group + 1) + rest * (group + 1) // plan.n_parts, worker)
        elif zc_load(&shard.state) == UNREADABLE:
            # Another task of the shard has reported the reason.
            code = worker.status.code if worker.status.code != OK else INTERRUPTED
        elif plan.opened.missing_raises:
            code = fail(&worker.status, MISSING, 0, 0, 0)
        else:
            code = place_fill(plan, plan.objects, object, worker) if group == 0 else OK
        _leave(shard)
        return code

    # shards that the caller passes, whole or in blocks

    cdef int read_passed(self, Plan plan, const Object *object, const Span *spans, Worker *worker) noexcept nogil:
        cdef Shard shard
        cdef int code
        memset(&shard, 0, sizeof(Shard))
        shard.object = object[0]
        code = _find_chunks(self, plan, &shard, spans, &worker.levels[0].extents, worker)
        return _read_chunks(self, plan, &shard, spans, 0, shard.n, worker) if code == OK else code

    cdef int find_wanted(self, Plan plan, const Span *spans, const Extent **extents, int64_t *n,
                         Worker *worker) noexcept nogil:
        cdef Shard shard
        cdef int code
        memset(&shard, 0, sizeof(Shard))
        shard.object = worker.passed[0]
        shard.notes_wanted = True
        code = _find_chunks(self, plan, &shard, spans, &worker.levels[0].extents, worker)
        extents[0] = shard.extents
        n[0] = shard.n
        return code

    cdef bint is_few(self, Plan plan, int64_t task):
        cdef Span object[MAX_NDIM]
        cdef int64_t first[MAX_NDIM]
        cdef int64_t count[MAX_NDIM]
        plan.spans_of(plan.object_of(task), object)
        return (2 * plan.chunks_of(plan.levels.axes_of(0), object, first, count)
                < plan.n_chunks_of(plan.levels.axes_of(0), object))


cdef void _free_places(ShardReader self) noexcept nogil:
    cdef int64_t i
    if self.places != NULL:
        _close_all(self)
        for i in range(self.n_places):
            buffer_free(&self.places[i].extents)
        free(self.places)
    self.places = NULL
    self.n_places = 0


cdef void _close_all(ShardReader self) noexcept nogil:
    cdef int64_t i
    # Another thread may have entered a plan that has stopped, and be the last one that leaves it, too.
    section_enter(&self.guard)
    for i in range(self.n_places):
        fetch_close(&self.places[i].read.object)
    zc_store(&self.guard, 0)


# open shards

cdef OpenShard *_enter(ShardReader self, Plan plan, int64_t task, const Span *object, Worker *worker) noexcept nogil:
    """Return the shard, opened by this thread or another one; NULL if the worker has to stop."""
    cdef OpenShard *shard
    cdef int64_t n_waits = 0
    while True:
        shard = _place_of(self, plan, task)
        if shard != NULL:
            break
        # More threads than slots. The threads that use the slots will leave them.
        if plan.poll(worker):
            return NULL
        zc_back_off(n_waits)
        n_waits += 1
    if zc_swap_if(&shard.state, NEW, OPENING):
        zc_store(&shard.state, _open(self, plan, shard, object, worker))
        return shard
    while zc_load(&shard.state) == OPENING:
        if plan.poll(worker):
            return NULL
        zc_back_off(n_waits)
        n_waits += 1
    return shard


cdef OpenShard *_place_of(ShardReader self, Plan plan, int64_t task) noexcept nogil:
    """Return the slot of a shard, a free one if it has none yet, or NULL."""
    cdef OpenShard *free_place = NULL
    cdef OpenShard *found = NULL
    cdef int64_t i
    section_enter(&self.guard)
    for i in range(self.n_places):
        if zc_load(&self.places[i].shard) == task:
            found = &self.places[i]
            break
        if free_place == NULL and zc_load(&self.places[i].shard) < 0:
            free_place = &self.places[i]
    if found == NULL and free_place != NULL:
        found = free_place
        found.state = NEW
        found.n_left = plan.n_parts
        zc_store(&found.shard, task)
    zc_store(&self.guard, 0)
    return found


cdef void _leave(OpenShard *shard) noexcept nogil:
    if zc_add(&shard.n_left, -1) == 1:
        fetch_close(&shard.read.object)
        zc_store(&shard.shard, -1)


cdef int64_t _open(ShardReader self, Plan plan, OpenShard *shard, const Span *object, Worker *worker) noexcept nogil:
    """Open a shard and find the selected chunks in it; returns its state."""
    cdef char key[MAX_KEY]
    cdef Object *opened = &shard.read.object
    cdef int code
    plan.key_of(object, key)
    code = fetch_open(plan, key, opened, worker)
    if code == OK:
        code = fetch_identity(opened, &worker.status)
    if code != OK:
        fetch_close(opened)
        return GONE if code == MISSING else UNREADABLE
    shard.read.is_trusted = opened.content.fd >= 0 and plan.keeps and plan.chunks.trusts(
        &opened.identity, opened.content.fd, plan.dirfd)
    code = _find_chunks(self, plan, &shard.read, object, &shard.extents, worker)
    return READY if code == OK else UNREADABLE


# selected chunks

cdef int _find_chunks(ShardReader self, Plan plan, Shard *shard, const Span *object, Buffer *extents,
                      Worker *worker) noexcept nogil:
    """Note the extents of the selected chunks, in the order of the shard's bytes."""
    cdef Search search
    cdef Extent everything
    cdef int64_t n
    cdef int code
    n = plan.chunks_of(plan.levels.axes_of(plan.levels.n - 1), object, search.first, search.count)
    code = buffer_reserve(extents, n * <int64_t>sizeof(Extent), &worker.status)
    if code != OK:
        return code
    shard.extents = <Extent *>extents.data
    shard.n = 0
    search.shard = shard
    search.object = object
    everything.offset = 0
    everything.n_bytes = shard.object.content.size
    code = _find_in(self, plan, &search, 0, object, &everything, worker)
    if code == OK:
        sort_extents(shard.extents, shard.n)
    return code


cdef int _find_in(ShardReader self, Plan plan, Search *search, int level, const Span *object, const Extent *place,
                  Worker *worker) noexcept nogil:
    """Note the selected chunks of a shard of that level; empty ones, if the shard itself is an empty chunk."""
    cdef Span spans[MAX_NDIM]
    cdef int64_t first[MAX_NDIM]
    cdef int64_t count[MAX_NDIM]
    cdef const Axis *axes = plan.levels.axes_of(level)
    # Programs never have more levels. The second comparison tells the compiler.
    cdef bint is_last = level == plan.levels.n - 1 or level == MAX_SHARD_LEVELS - 1
    cdef int64_t limit = plan.levels.limit_of(level)
    cdef Kept *index = NULL
    cdef IndexForm form
    cdef Extent extent
    cdef int64_t i, position
    cdef int code = OK
    if place.offset != UINT64_MAX:
        if level > 0 and plan.poll(worker):
            return INTERRUPTED
        (<ShardProgram>plan.levels.programs[level]).form_of(plan.n_chunks_of(axes, object), <int64_t>place.offset,
                                                            &form)
        index = _index_of(self, plan, search.shard, level, &form, place.n_bytes, worker)
        if index == NULL and worker.status.code == WANTED and search.shard.notes_wanted:
            # There is room: the shard has at least one selected chunk.
            extent.i = -1
            extent.offset = <uint64_t>worker.status.offset
            extent.n_bytes = worker.status.expected
            search.shard.extents[search.shard.n] = extent
            search.shard.n += 1
            status_clear(&worker.status)
            return OK
        if index == NULL:
            return worker.status.code
    for i in range(plan.chunks_of(axes, object, first, count)):
        position = plan.chunk_of(axes, plan.levels.order_of(level), object, first, count, i, spans)
        extent.offset = UINT64_MAX
        extent.n_bytes = 0
        if index != NULL:
            code = (<ShardProgram>plan.levels.programs[level]).extent_of(
                &form, index.words, position, place.n_bytes, limit, &extent, &worker.status)
        if code == OK and is_last:
            extent.i = i if level == 0 else _number_of(plan, search, first, count, i)
            search.shard.extents[search.shard.n] = extent
            search.shard.n += 1
        elif code == OK:
            code = _find_in(self, plan, search, level + 1, spans, &extent, worker)
            if code != OK and code != INTERRUPTED:
                note_outer(&worker.status, position)
        if code != OK:
            break
    if index != NULL:
        kept_release(index)
    return code


cdef Kept *_index_of(ShardReader self, Plan plan, const Shard *shard, int level, const IndexForm *form,
                     int64_t size, Worker *worker) noexcept nogil:
    """Return the index of a shard of that level, kept or read; NULL with the worker's status."""
    cdef Kept *index = NULL
    cdef uint64_t *words = NULL
    # Shards that are passed are in memory and have no identity.
    cdef bint is_kept = self.cache is not None and shard.object.content.fd >= 0
    cdef int64_t base = shard.object.content.start + form.base
    if is_kept:
        index = self.cache.get(&shard.object.identity, base, size, form.number, False)
    if index != NULL:
        return index
    # A shard that is too short for its index is refused before memory is allocated.
    if size >= form.n_bytes:
        index = kept_new(&shard.object.identity, base, size, form.number,
                         2 * form.n_chunks * <int64_t>sizeof(uint64_t))
        if index == NULL:
            fail(&worker.status, NO_MEMORY, 0, form.n_bytes, 0)
            return NULL
        words = index.words
    if (<ShardProgram>plan.levels.programs[level]).read_index(
            form, &shard.object.content, size, words, &worker.encoded, &worker.work, &worker.status) != OK:
        if index != NULL:
            kept_release(index)
        return NULL
    if is_kept and self.cache.trusts(&index.identity, shard.object.content.fd, plan.dirfd):
        self.cache.put(index)
    return index


cdef int64_t _number_of(Plan plan, const Search *search, const int64_t *first, const int64_t *count,
                        int64_t i) noexcept nogil:
    """Return the number, as `chunks_of` counts, of the i-th chunk of a shard in the search."""
    cdef int d = plan.ndim - 1
    cdef int64_t rest
    cdef int64_t stride = 1
    cdef int64_t number = 0
    while d >= 0:
        rest = i // count[d]
        number += (first[d] + i - rest * count[d] - search.first[d]) * stride
        stride *= search.count[d]
        i = rest
        d -= 1
    return number


cdef int64_t _position_of(Plan plan, const Span *object, int level, const Span *chunk) noexcept nogil:
    """Return the position of the chunk of `level` that is or contains `chunk`."""
    cdef const Axis *axes = plan.levels.axes_of(level)
    cdef const int *order = plan.levels.order_of(level)
    cdef int64_t position = 0
    cdef int64_t origin, length
    cdef int d, k
    for k in range(plan.ndim):
        d = k if order == NULL else order[k]
        origin = object[d].origin
        length = object[d].length
        if level > 0:
            length = plan.levels.axes_of(level - 1)[d].chunk
            origin = chunk[d].origin - chunk[d].origin % length
        position = position * (length // axes[d].chunk) + (chunk[d].origin - origin) // axes[d].chunk
    return position


# the chunks of a group

cdef int _read_chunks(ShardReader self, Plan plan, Shard *shard, const Span *object, int64_t i, int64_t end,
                      Worker *worker) noexcept nogil:
    """Read the selected chunks from the i-th to `end`, in the order of the shard's bytes."""
    cdef Search search
    cdef int code = OK
    search.shard = shard
    search.object = object
    plan.chunks_of(plan.levels.axes_of(plan.levels.n - 1), object, search.first, search.count)
    while i < end and code == OK:
        if plan.poll(worker):
            return INTERRUPTED
        code = _read_batch(self, plan, &search, &i, end, worker)
    return code


cdef int _read_batch(ShardReader self, Plan plan, const Search *search, int64_t *i, int64_t end,
                     Worker *worker) noexcept nogil:
    """Fetch neighbouring chunks by one read, from the i-th on, decode and place them; move `i` behind them."""
    cdef Span spans[MAX_NDIM]
    cdef const Shard *shard = search.shard
    cdef const Content *content = &shard.object.content
    cdef const Axis *axes = plan.levels.axes_of(plan.levels.n - 1)
    cdef const Extent *extent = &shard.extents[i[0]]
    cdef const uint8_t *data
    cdef int64_t low = <int64_t>extent.offset
    cdef int64_t high = low + extent.n_bytes
    cdef int64_t behind
    cdef int64_t j = i[0] + 1
    cdef int code = OK
    plan.chunk_of(axes, NULL, search.object, search.first, search.count, extent.i, spans)
    if extent.offset == UINT64_MAX:
        i[0] = j
        return place_fill(plan, axes, spans, worker)
    if plan.chunks is not None and content.fd >= 0 and place_kept(
            plan, &shard.object.identity, content.start + low, extent.n_bytes, spans, worker):
        i[0] = j
        return OK
    # Bytes in memory need no batches, and blocks end where the requested bytes end.
    while j < end and shard.extents[j].offset != UINT64_MAX and content.fd >= 0:
        behind = max(high, <int64_t>shard.extents[j].offset + shard.extents[j].n_bytes)
        if <int64_t>shard.extents[j].offset > high + GAP_NBYTES or behind - low > BATCH_NBYTES:
            break
        high = behind
        j += 1
    data = content_at(content, low, high - low, &worker.encoded, &worker.status)
    if data == NULL:
        code = worker.status.code
    while i[0] < j and code == OK:
        extent = &shard.extents[i[0]]
        plan.chunk_of(axes, NULL, search.object, search.first, search.count, extent.i, spans)
        if shard.is_trusted:
            begin_kept(plan, &shard.object.identity, content.start + <int64_t>extent.offset, extent.n_bytes, worker)
        code = decode_chunk(plan, data + (<int64_t>extent.offset - low), extent.n_bytes, spans, worker)
        end_kept(plan, code, worker)
        if code != OK and code != INTERRUPTED:
            _note_position(plan, search, spans, &worker.status)
            worker.status.offset += <int64_t>extent.offset
        i[0] += 1
    return code


cdef void _note_position(Plan plan, const Search *search, const Span *chunk, Status *status) noexcept nogil:
    """Note for an error the position of a chunk in its shard, and of the shards around it."""
    cdef int level = plan.levels.n - 1
    while level >= 0:
        note_outer(status, _position_of(plan, search.object, level, chunk))
        level -= 1
