# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""The levels of nested shards for one selection: the program and the chunk axes of each level.

Levels count from the outermost, 0. Compiled because reads and writes need them for each chunk.
"""
cimport cython
from libc.stdlib cimport calloc, free

from zcore.kernel.codec.program cimport Program
from zcore.kernel.select.grid cimport axis_init
from zcore.kernel.select.open_array cimport Opened
from zcore.kernel.strided.copy cimport MAX_NDIM


@cython.final
cdef class ShardLevels:
    """The shard levels of an array, for one selection. Valid only as long as `tasks`.

    Parameters
    ----------
    tasks : Tasks
        Tasks of the selection, in an array whose objects are shards; its chunks are the innermost.
    """

    def __cinit__(self):
        self._outer = NULL

    def __init__(self, Tasks tasks not None):
        cdef const Opened *opened = tasks.opened
        cdef int i
        self.n = opened.n_levels
        for i in range(self.n):
            self.programs[i] = <void *>(<ShardProgram?><object>opened.levels[i])
        self._innermost = &tasks.axes[0]
        self._outer = <Axis *>calloc(self.n * MAX_NDIM, sizeof(Axis))
        if self._outer == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self._outer)

    cdef void follow(self, Tasks tasks) noexcept nogil:
        cdef const Opened *opened = tasks.opened
        cdef const Axis *axis
        cdef int64_t start
        cdef int i, d
        self._chunk_limit = (<Program>opened.program).max_encoded(tasks.layout.n_bytes)
        for i in range(self.n - 1):
            for d in range(opened.ndim):
                if tasks.points is not None and tasks.points.group_of[d] >= 0:
                    tasks.points.set_axis(d, i + 1, &self._outer[i * MAX_NDIM + d])
                    continue
                axis = &tasks.axes[d]
                start = axis.start if axis.out_step > 0 else axis.start + (axis.count - 1) * axis.step
                # This cannot fail: the tasks have checked the same box.
                axis_init(&self._outer[i * MAX_NDIM + d], axis.length, opened.level_chunks[i][d], start,
                          axis.step * axis.out_step, axis.count)

    cdef const Axis *axes_of(self, int level) noexcept nogil:
        return self._innermost if level == self.n - 1 else &self._outer[level * MAX_NDIM]

    cdef const int *order_of(self, int level) noexcept nogil:
        return (<ShardProgram>self.programs[level]).order

    cdef bint is_wrapped(self, int level) noexcept nogil:
        return (<ShardProgram>self.programs[level]).is_wrapped

    cdef int64_t limit_of(self, int level) noexcept nogil:
        # Programs never have more levels. The second comparison tells the compiler.
        if level >= self.n - 1 or level >= MAX_SHARD_LEVELS - 1:
            return self._chunk_limit
        # Shards in shards all have one shape.
        return (<ShardProgram>self.programs[level + 1]).max_stored(
            (<ShardProgram>self.programs[level + 1]).n_chunks)

    cdef int last_of(self, int level) noexcept nogil:
        while level < self.n - 1 and level < MAX_SHARD_LEVELS - 1 and not self.is_wrapped(level + 1):
            level += 1
        return level

    cdef tuple coords_of(self, const Status *status, object shard_shape):
        cdef ShardProgram level = <ShardProgram>self.programs[0]
        cdef int i
        coords = []
        for i in range(status.n_outer):
            coords.append(level.position_coords(status.outer[i], shard_shape))
            shard_shape = level.chunk_shape
            level = level.inner
        if status.inner >= 0:
            coords.append(level.position_coords(status.inner, shard_shape))
        return tuple(coords)
