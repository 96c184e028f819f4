"""Writing: each task replaces one stored object, under its lock."""
from libc.stdint cimport int64_t, uint8_t, uint64_t

from zcore.kernel.io.locks cimport ObjectLocks
from zcore.kernel.plan.plan cimport Plan, Worker
from zcore.kernel.plan.shard_write cimport ShardWriter
from zcore.kernel.status cimport Status


cdef class WritePlan(Plan):
    cdef ShardWriter shards    # if objects are shards, else None
    cdef ObjectLocks locks
    cdef uint64_t token
    cdef int64_t n_workers
    cdef bint writes_out       # no later change of a name reaches the disk before the objects
    cdef int64_t has_many      # 1: more objects than are written out one by one; no order: read after all workers
    cdef int room              # for files that a worker keeps open until they are written out
    cdef readonly bint is_fill  # all elements are one in memory, the fill value, and objects of it are not stored

    cdef int write_out(self, Status *status) noexcept nogil

    # Makes the object of a task in memory: returns its size, FILLED, SAME or FAILED. The object is covered, or its
    # needed parts were passed.
    cdef int64_t encode_task(self, int64_t task, Worker *worker, const uint8_t **encoded) noexcept nogil
