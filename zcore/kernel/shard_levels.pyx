# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Shards in shards as one selection sees them: of each level the program, and the axes of its chunks.

Levels are counted from the outermost, 0. Compiled because reads and writes ask for each chunk.
"""
cimport cython
from libc.stdlib cimport calloc, free

from zcore.kernel.copy cimport MAX_NDIM


def innermost(ShardProgram program not None):
    """Return the program of the shards whose chunks are no shards."""
    while program.inner is not None:
        program = program.inner
    return program


def inner_shapes(ShardProgram program not None):
    """Return the shapes of the shards in the shards of a program, the outermost first."""
    shapes = []
    while program.inner is not None:
        shapes.append(program.chunk_shape)
        program = program.inner
    return shapes


@cython.final
cdef class ShardLevels:
    """The levels of a program.

    Parameters
    ----------
    program : ShardProgram
    tasks : Tasks
        Of the selection; its chunks are the innermost.
    shape, starts, steps, counts : sequence of int
        Of the array and the selection.
    """

    def __cinit__(self):
        self._outer = NULL

    def __init__(self, ShardProgram program not None, Tasks tasks not None, shape, starts, steps, counts):
        cdef ShardProgram level = program
        cdef int64_t length, chunk, start, step, count
        cdef int i
        cdef int d
        self._outermost = program
        self._innermost = &tasks.axes[0]
        self._chunk_limit = program.program.max_encoded(tasks.layout.n_bytes)
        self.n = program.n_levels
        self._outer = <Axis *>calloc(self.n * MAX_NDIM, sizeof(Axis))
        if self._outer == NULL:
            raise MemoryError
        for i in range(self.n):
            self.programs[i] = <void *>level
            for d in range(tasks.ndim if level.inner is not None else 0):
                length, chunk, start, step, count = shape[d], level.chunk_shape[d], starts[d], steps[d], counts[d]
                if tasks.points is not None and tasks.points.group_of[d] >= 0:
                    tasks.points.set_axis(d, i + 1, &self._outer[i * MAX_NDIM + d])
                else:
                    tasks._set_axis(&self._outer[i * MAX_NDIM + d], None, length, chunk, start, step, count)
            level = level.inner

    def __dealloc__(self):
        free(self._outer)

    cdef const Axis *axes_of(self, int level) noexcept nogil:
        return self._innermost if level == self.n - 1 else &self._outer[level * MAX_NDIM]

    cdef const int *order_of(self, int level) noexcept nogil:
        return (<ShardProgram>self.programs[level]).order

    cdef bint is_wrapped(self, int level) noexcept nogil:
        return (<ShardProgram>self.programs[level]).is_wrapped

    cdef int64_t limit_of(self, int level) noexcept nogil:
        # As programs are made, there are no more levels; said again, the compiler knows it, too.
        if level >= self.n - 1 or level >= MAX_SHARD_LEVELS - 1:
            return self._chunk_limit
        # Shards in shards are all of one shape.
        return (<ShardProgram>self.programs[level + 1]).max_stored(
            (<ShardProgram>self.programs[level + 1]).n_chunks)

    cdef int last_of(self, int level) noexcept nogil:
        while level < self.n - 1 and level < MAX_SHARD_LEVELS - 1 and not self.is_wrapped(level + 1):
            level += 1
        return level

    cdef tuple coords_of(self, const Status *status, object shard_shape):
        cdef ShardProgram level = self._outermost
        cdef int i
        coords = []
        for i in range(status.n_outer):
            coords.append(level.position_coords(status.outer[i], shard_shape))
            shard_shape = level.chunk_shape
            level = level.inner
        if status.inner >= 0:
            coords.append(level.position_coords(status.inner, shard_shape))
        return tuple(coords)
