"""Shards in shards as one selection sees them: of each level the program, and the axes of its chunks."""
from libc.stdint cimport int64_t

from zcore.kernel.select.grid cimport Axis
from zcore.kernel.plan.shard_index cimport ShardProgram
from zcore.kernel.status cimport MAX_SHARD_LEVELS, Status
from zcore.kernel.select.tasks cimport Tasks


cdef class ShardLevels:
    cdef int n
    # The ShardProgram of each level, the outermost first; the open array keeps them.
    cdef void *programs[MAX_SHARD_LEVELS]
    cdef const Axis *_innermost
    cdef Axis *_outer          # of all levels but the innermost
    cdef int64_t _chunk_limit

    # Takes over what the tasks select.
    cdef void follow(self, Tasks tasks) noexcept nogil
    # The axes of the chunks of the shards of a level.
    cdef const Axis *axes_of(self, int level) noexcept nogil
    # Their order in the index, see `ShardProgram`.
    cdef const int *order_of(self, int level) noexcept nogil
    # Whether there are codecs behind the shards of a level.
    cdef bint is_wrapped(self, int level) noexcept nogil
    # The most bytes of one of these chunks.
    cdef int64_t limit_of(self, int level) noexcept nogil
    # The level whose chunks are found in the same bytes as a shard of `level`, as far down as they are.
    cdef int last_of(self, int level) noexcept nogil
    # The coordinates of the chunk that has failed in the shard of that shape, and in those in it.
    cdef tuple coords_of(self, const Status *status, object shard_shape)
