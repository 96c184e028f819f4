# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""The first step of a task: fetching the bytes of an object.

Compiled because it is most of the cost of a small chunk. An object is a file of its own, a part of another file, bytes
in memory, or what the caller has passed. The steps behind this one need not know which.

Elements that lie in a file as they are go straight to the caller's array. Runs of elements that have the same order in
both are read into place, many of them by one system call. Short runs, and those in another order, are read into scratch
memory, and a strided copy moves them. Small gaps are read as well, because another system call costs as much. Much is
read by way of scratch memory, too, if the system copies slowly to its address: NumPy's memory begins 16 bytes behind a
page.
"""
from libc.stdint cimport uint8_t
from libc.string cimport memcpy, memset
from posix.unistd cimport close

from zcore.kernel.atomics cimport zc_load, zc_store
from zcore.kernel.io.files cimport (
    ABSENT, FAILED, Identity, Piece, buffer_reserve, content_at, object_identify, object_open, object_read,
    object_read_at, object_read_pieces, object_read_rest,
)
from zcore.kernel.plan.shard_index cimport ShardProgram
from zcore.kernel.refs.table cimport Place
from zcore.kernel.status cimport (
    CHUNK_LONG, FILE_CUT, INNER_NONE, INTERRUPTED, MISSING, OK, RAISED, SHARD_CUT, STOPPED, fail, status_clear,
)
from zcore.kernel.strided.copy cimport MAX_NDIM, copy_run, copy_simplify, copy_sort


cdef int fetch_open(Plan plan, const char *key, Object *object, Worker *worker) noexcept nogil:
    if worker.passed != NULL:
        object[0] = worker.passed[0]
        return MISSING if object.is_absent else OK
    memset(object, 0, sizeof(Object))
    object.content.fd = -1
    if plan.extents is not None:
        return _open_extent(plan, key, object)
    object.content.size = -1
    object.content.fd = object_open(plan.dirfd, key, &worker.status)
    if object.content.fd < 0:
        return MISSING if object.content.fd == ABSENT else worker.status.code
    return OK


cdef int _open_extent(Plan plan, const char *key, Object *object) noexcept nogil:
    cdef Place place
    cdef int code = plan.extents.find(key, &place)
    if code == INTERRUPTED and zc_load(&plan.extents.is_interrupted):
        _keep_exception(plan)
    if code == OK:
        object.content.data = place.data
        object.content.fd = place.fd
        object.content.start = place.offset
        object.content.size = place.n_bytes
        object.is_shared = place.is_shared
        object.is_identified = True
        object.identity = place.identity
    return code


cdef void _keep_exception(Plan plan) noexcept with gil:
    plan.exception = plan.extents.exception
    zc_store(&plan.stop, 1)


cdef int fetch_identity(Object *object, Status *status) noexcept nogil:
    cdef int code
    if object.is_identified:
        return OK
    code = object_identify(object.content.fd, &object.identity, status)
    if code == OK:
        object.content.size = object.identity.size
        object.is_identified = True
        return OK
    return MISSING if code == ABSENT else status.code


cdef int fetch_whole(Plan plan, Object *object, const Span *spans, Use use, Worker *worker) noexcept nogil:
    cdef int64_t limit = stored_limit(plan, spans, worker)
    cdef int code = _fetch(plan, object, limit, worker)
    if code == OK:
        code = use(plan, object.content.data, object.content.size, spans, worker)
        if code != OK:
            code = _fetch_rest(plan, object, limit, code, worker)
            if code == OK:
                code = use(plan, object.content.data, object.content.size, spans, worker)
    return code


cdef int _fetch(Plan plan, Object *object, int64_t limit, Worker *worker) noexcept nogil:
    """Fetch at most `limit` bytes: OK, MISSING, or another code."""
    cdef int64_t n = object.content.size
    if worker.passed == NULL and plan.extents is None:
        n = object_read(object.content.fd, limit, &worker.encoded, &worker.status)
        if n < 0:
            return MISSING if n == ABSENT else worker.status.code
        object.content.data = worker.encoded.data
        object.content.size = n
    elif worker.passed == NULL and n > limit:
        # Python raises the error; no memory is allocated for a size that only a reference set states.
        return INTERRUPTED
    elif object.content.data == NULL:
        if buffer_reserve(&worker.encoded, n, &worker.status) != OK:
            return worker.status.code
        if object_read_at(object.content.fd, object.content.start, n, worker.encoded.data, &worker.status) != OK:
            status_clear(&worker.status)
            return INTERRUPTED
        object.content.data = worker.encoded.data
    return OK if n <= limit else fail(&worker.status, CHUNK_LONG, limit, limit, n)


cdef int _fetch_rest(Plan plan, Object *object, int64_t limit, int code, Worker *worker) noexcept nogil:
    """Return OK if more was fetched, else `code`."""
    cdef int64_t n
    if worker.passed != NULL or plan.extents is not None:
        return code
    n = object_read_rest(object.content.fd, object.content.size, limit, &worker.encoded, &worker.status)
    if n <= object.content.size:
        return code
    status_clear(&worker.status)
    object.content.data = worker.encoded.data
    object.content.size = n
    return OK if n <= limit else fail(&worker.status, CHUNK_LONG, limit, limit, n)


cdef int fetch_end(Plan plan, Object *object, int code, Worker *worker) noexcept nogil:
    cdef Identity identity
    cdef Status special
    if (code != OK and code != MISSING and code != STOPPED and code != RAISED and worker.passed == NULL
            and plan.extents is None):
        status_clear(&special)
        if object_identify(object.content.fd, &identity, &special) == FAILED:
            # A device gives bytes, or none. It is no chunk that is damaged: the chunk is unreachable.
            worker.status = special
            code = special.code
        elif code == CHUNK_LONG and worker.status.inner == INNER_NONE:
            worker.status.found = identity.size
    fetch_close(object)
    return code


cdef void fetch_close(Object *object) noexcept nogil:
    if object.content.fd >= 0 and not object.is_shared:
        close(object.content.fd)
    object.content.fd = -1


cdef int64_t stored_limit(Plan plan, const Span *spans, Worker *worker) noexcept nogil:
    if plan.levels is None:
        return plan.program.max_encoded(worker.layout.n_bytes)
    return (<ShardProgram>plan.levels.programs[0]).max_of(plan.n_chunks_of(plan.levels.axes_of(0), spans))


# elements that lie as they are

cdef enum:
    MAX_GAP = 4096             # largest gap in bytes that is read along: a page, which the system reads anyway
    MIN_RUN = 1 << 10          # shorter runs with small gaps are read into scratch memory: a copy is cheaper
    MAX_SCRATCH = 1 << 23
    MAX_PIECES = 1024          # of a system call, by the limit of Linux
    CALL_NBYTES = 1 << 22      # read by one system call, unless one run is longer
    READ_NBYTES = 1 << 16      # a read elsewhere in a file costs as much as so many bytes
    POLLED = 1024              # reads between two polls of signals
    ALIGNMENT = 64             # of the addresses to which the system copies fast
    MIN_STAGED = 1 << 18       # less is read to any address
    STAGE_NBYTES = 1 << 20     # stays in the cache of a CPU
    CACHED_NBYTES = 1 << 25    # a smaller result may stay in the caches, where its address matters little


cdef struct Pieces:            # bytes that follow each other in a file, and their places in memory
    int64_t offset
    int64_t n_bytes
    int n
    Piece items[MAX_PIECES]


cdef int copy_raw(Plan plan, const Content *content, Copy *spec, int64_t offset, char *dst,
                  Worker *worker) noexcept nogil:
    cdef int64_t extent = spec.itemsize
    cdef int n_outer, d
    cdef bint in_place = spec.swap == 0
    cdef Copy inner
    _run_upwards(spec, &offset, &dst)
    # Dimensions that could be merged stay separate: the gaps inside may be short enough to be read along.
    copy_sort(spec, True)
    n_outer = spec.ndim
    while n_outer > 0 and in_place and spec.src_strides[n_outer - 1] == extent == spec.dst_strides[n_outer - 1]:
        n_outer -= 1
        extent *= spec.shape[n_outer]
    if n_outer > 0 and extent < MIN_RUN and _reach(spec, n_outer - 1, extent) >= 0:
        in_place = False
    if in_place:
        return _read_runs(plan, content, spec, n_outer, extent, offset, dst, worker)
    n_outer = spec.ndim
    extent = spec.itemsize
    while n_outer > 0 and _reach(spec, n_outer - 1, extent) >= 0:
        n_outer -= 1
        extent = _reach(spec, n_outer, extent)
    inner.ndim = spec.ndim - n_outer
    inner.itemsize = spec.itemsize
    inner.swap = spec.swap
    for d in range(inner.ndim):
        inner.shape[d] = spec.shape[n_outer + d]
        inner.src_strides[d] = spec.src_strides[n_outer + d]
        inner.dst_strides[d] = spec.dst_strides[n_outer + d]
    copy_simplify(&inner)
    return _move_runs(plan, content, spec, n_outer, &inner, extent, offset, dst, worker)


cdef bint is_cheaper(const Copy *spec, int64_t n_bytes) noexcept nogil:
    cdef Copy upwards
    cdef int64_t extent = spec.itemsize
    cdef int64_t n = 1
    cdef int d
    upwards = spec[0]
    for d in range(upwards.ndim):
        if upwards.src_strides[d] < 0:
            upwards.src_strides[d] = -upwards.src_strides[d]
    copy_sort(&upwards, True)
    d = upwards.ndim - 1
    while d >= 0 and upwards.src_strides[d] - extent <= MAX_GAP:
        extent += (upwards.shape[d] - 1) * upwards.src_strides[d]
        d -= 1
    while d >= 0:
        n *= upwards.shape[d]
        d -= 1
    return n - 1 <= n_bytes // READ_NBYTES and n * extent + (n - 1) * READ_NBYTES <= n_bytes


cdef int _read_runs(Plan plan, const Content *content, const Copy *spec, int n_outer, int64_t extent, int64_t offset,
                    char *dst, Worker *worker) noexcept nogil:
    """Read runs of `extent` bytes into place: the items of the first `n_outer` dimensions."""
    cdef int64_t index[MAX_NDIM]
    cdef int64_t gap
    cdef int64_t n = 0
    cdef int code
    cdef Pieces pieces
    pieces.n = 0
    pieces.n_bytes = 0
    pieces.offset = 0
    _start(index, n_outer)
    while True:
        if content.data != NULL:
            if offset < 0 or extent > content.size - offset:
                return fail(&worker.status, FILE_CUT, offset, offset + extent, content.size)
            memcpy(dst, content.data + offset, extent)
        else:
            gap = offset - pieces.offset - pieces.n_bytes
            if pieces.n > 0 and not (0 <= gap <= MAX_GAP and pieces.n + 2 <= MAX_PIECES
                                     and pieces.n_bytes + gap + extent <= CALL_NBYTES):
                code = _read_pieces(plan, content, &pieces, worker)
                if code != OK:
                    return code
            if pieces.n == 0:
                pieces.offset = offset
            elif gap > 0:
                _add(&pieces, NULL, gap)
            _add(&pieces, <uint8_t *>dst, extent)
        if not _next(spec, n_outer, index, &offset, &dst):
            break
        n += 1
        if n % POLLED == 0 and plan.poll(worker):
            return STOPPED
    return _read_pieces(plan, content, &pieces, worker) if pieces.n else OK


cdef void _add(Pieces *pieces, uint8_t *dst, int64_t n_bytes) noexcept nogil:
    # `dst`: NULL for a gap.
    pieces.items[pieces.n].iov_base = dst
    pieces.items[pieces.n].iov_len = <size_t>n_bytes
    pieces.n += 1
    pieces.n_bytes += n_bytes


cdef int _read_pieces(Plan plan, const Content *content, Pieces *pieces, Worker *worker) noexcept nogil:
    cdef int code, i
    if (pieces.n_bytes >= MIN_STAGED and <size_t>pieces.items[0].iov_base % ALIGNMENT != 0
            and plan.n_tasks >= CACHED_NBYTES // max(1, plan.task_nbytes)):
        code = _read_staged(content, pieces, worker)
    elif pieces.n == 1:
        code = object_read_at(content.fd, pieces.offset, pieces.n_bytes, <uint8_t *>pieces.items[0].iov_base,
                              &worker.status)
    elif buffer_reserve(&worker.encoded, MAX_GAP, &worker.status) != OK:
        code = worker.status.code
    else:
        for i in range(pieces.n):
            if pieces.items[i].iov_base == NULL:
                # Several gaps go to the same bytes, which nothing reads.
                pieces.items[i].iov_base = worker.encoded.data
        code = object_read_pieces(content.fd, pieces.offset, pieces.items, pieces.n, &worker.status)
    pieces.n = 0
    pieces.n_bytes = 0
    return _checked(code, worker)


cdef int _read_staged(const Content *content, const Pieces *pieces, Worker *worker) noexcept nogil:
    """Read pieces into scratch memory, whose address suits the system, and copy them to their places."""
    cdef int64_t n_read = 0
    cdef int64_t n_bytes, n
    cdef int64_t n_done = 0     # of a piece
    cdef const uint8_t *data
    cdef int i = 0
    cdef int code
    if buffer_reserve(&worker.encoded, min(<int64_t>STAGE_NBYTES, pieces.n_bytes) + ALIGNMENT, &worker.status) != OK:
        return worker.status.code
    while n_read < pieces.n_bytes:
        n_bytes = min(<int64_t>STAGE_NBYTES, pieces.n_bytes - n_read)
        data = worker.encoded.data + -<size_t>worker.encoded.data % ALIGNMENT
        code = object_read_at(content.fd, pieces.offset + n_read, n_bytes, <uint8_t *>data, &worker.status)
        if code != OK:
            return code
        n_read += n_bytes
        while n_bytes > 0:
            n = min(n_bytes, <int64_t>pieces.items[i].iov_len - n_done)
            if pieces.items[i].iov_base != NULL:
                memcpy(<char *>pieces.items[i].iov_base + n_done, data, <size_t>n)
            data += n
            n_bytes -= n
            n_done += n
            if n_done == <int64_t>pieces.items[i].iov_len:
                i, n_done = i + 1, 0
    return OK


cdef int _move_runs(Plan plan, const Content *content, const Copy *spec, int n_outer, const Copy *inner,
                    int64_t extent, int64_t offset, char *dst, Worker *worker) noexcept nogil:
    """Read `extent` bytes that have gaps, or another order than in `dst`, and move their elements, time and again."""
    cdef int64_t index[MAX_NDIM]
    cdef int64_t n = 0
    cdef const uint8_t *data
    _start(index, n_outer)
    while True:
        if content.data != NULL and (offset < 0 or extent > content.size - offset):
            return fail(&worker.status, FILE_CUT, offset, offset + extent, content.size)
        data = content_at(content, offset, extent, &worker.encoded, &worker.status)
        if data == NULL:
            return _checked(worker.status.code, worker)
        copy_run(inner, <const char *>data, dst)
        if not _next(spec, n_outer, index, &offset, &dst):
            return OK
        n += 1
        if n % POLLED == 0 and plan.poll(worker):
            return STOPPED


cdef inline void _start(int64_t *index, int n_outer) noexcept nogil:
    cdef int d
    for d in range(n_outer):
        index[d] = 0


cdef inline bint _next(const Copy *spec, int n_outer, int64_t *index, int64_t *offset, char **dst) noexcept nogil:
    """Go to the next item of the first `n_outer` dimensions; return False behind the last one."""
    cdef int d = n_outer - 1
    while d >= 0:
        index[d] += 1
        if index[d] < spec.shape[d]:
            offset[0] += spec.src_strides[d]
            dst[0] += spec.dst_strides[d]
            return True
        offset[0] -= (spec.shape[d] - 1) * spec.src_strides[d]
        dst[0] -= (spec.shape[d] - 1) * spec.dst_strides[d]
        index[d] = 0
        d -= 1
    return False


cdef int _checked(int code, Worker *worker) noexcept nogil:
    if code == SHARD_CUT:
        worker.status.code = code = FILE_CUT
    return code


cdef void _run_upwards(Copy *spec, int64_t *offset, char **dst) noexcept nogil:
    """Reverse the dimensions with negative strides in the source."""
    cdef int d
    for d in range(spec.ndim):
        if spec.src_strides[d] < 0:
            offset[0] += (spec.shape[d] - 1) * spec.src_strides[d]
            dst[0] += (spec.shape[d] - 1) * spec.dst_strides[d]
            spec.src_strides[d], spec.dst_strides[d] = -spec.src_strides[d], -spec.dst_strides[d]


cdef int64_t _reach(const Copy *spec, int d, int64_t extent) noexcept nogil:
    """Return the bytes that a dimension of runs of `extent` bytes spans; -1 if the runs are better read one by one."""
    cdef int64_t reach
    if spec.src_strides[d] - extent > MAX_GAP:
        return -1
    reach = (spec.shape[d] - 1) * spec.src_strides[d] + extent
    return reach if reach <= MAX_SCRATCH else -1
