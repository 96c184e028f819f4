"""Reading: each task moves the selected elements of one object into the caller's array."""
from zcore.kernel.plan.plan cimport Plan
from zcore.kernel.plan.shard_read cimport ShardReader


cdef class ReadPlan(Plan):
    cdef ShardReader shards    # if objects are shards, else None
    cdef bint is_filled        # the caller's elements have the fill value already
