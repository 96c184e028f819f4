"""The levels of nested shards for one selection: the program and the chunk axes of each level."""
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
    cdef Axis *_outer          # of all levels except the innermost
    cdef int64_t _chunk_limit

    # Takes over the selection of the tasks.
    cdef void follow(self, Tasks tasks) noexcept nogil
    # The axes of the chunks of the shards of a level.
    cdef const Axis *axes_of(self, int level) noexcept nogil
    # Their order in the index, see `ShardProgram`.
    cdef const int *order_of(self, int level) noexcept nogil
    # Whether there are codecs behind the shards of a level.
    cdef bint is_wrapped(self, int level) noexcept nogil
    # Maximum size of one of these chunks.
    cdef int64_t limit_of(self, int level) noexcept nogil
    # The deepest level whose chunks lie in the same bytes as a shard of `level`.
    cdef int last_of(self, int level) noexcept nogil
    # Coordinates of the failed chunk in a shard of that shape, and in the shards inside it.
    cdef tuple coords_of(self, const Status *status, object shard_shape)
