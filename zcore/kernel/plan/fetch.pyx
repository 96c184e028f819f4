# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""The first step of a task: fetching the bytes of an object.

Compiled because it is most of the cost of a small chunk. An object is a file of its own, a part of another file, bytes
in memory, or what the caller has passed. The steps behind this one need not know which.
"""
from libc.string cimport memset

from zcore.kernel.atomics cimport zc_load, zc_store
from zcore.kernel.io.files cimport (
    ABSENT, FAILED, Identity, buffer_reserve, object_close, object_identify, object_open, object_read, object_read_at,
    object_read_rest,
)
from zcore.kernel.plan.shard_index cimport ShardProgram
from zcore.kernel.refs.extents cimport Place
from zcore.kernel.status cimport (
    CHUNK_LONG, INNER_NONE, INTERRUPTED, MISSING, OK, RAISED, STOPPED, fail, status_clear,
)


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


cdef int fetch_whole(Plan plan, Object *object, int64_t limit, Worker *worker) noexcept nogil:
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


cdef int fetch_rest(Plan plan, Object *object, int64_t limit, int code, Worker *worker) noexcept nogil:
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
        object_close(object.content.fd)
    object.content.fd = -1


cdef int64_t stored_limit(Plan plan, const Span *spans, Worker *worker) noexcept nogil:
    if plan.levels is None:
        return plan.program.max_encoded(worker.layout.n_bytes)
    return (<ShardProgram>plan.levels.programs[0]).max_stored(plan.n_chunks_of(plan.levels.axes_of(0), spans))
