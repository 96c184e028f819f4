# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""The index of a shard: read, checked, written, and cached. The levels of nested shards, as a selection sees them.

An index is a table of numbers from a file, so no entry is used before it is compared with the file's size: a chunk lies
between the index and the end of the shard, or between the beginning and the index. Chunks may overlap, since some
programs store equal chunks once. An entry is checked when it is used. The table as a whole is checked only by its
checksum, if its codecs have one.

Compiled because the read of each chunk looks up an entry.
"""
from math import prod

cimport cython
from libc.stdint cimport INT64_MAX, UINT64_MAX
from libc.stdlib cimport qsort

from zcore.kernel.io.files cimport content_at
from zcore.kernel.select.grid cimport axis_init
from zcore.kernel.select.open_array cimport Opened
from zcore.kernel.status cimport (
    CHUNK_LONG, INNER_INDEX, INNER_NONE, OK, SHARD_END, SHARD_MARK, SHARD_SHORT, SHARD_START, fail,
)

cdef extern from * nogil:
    uint64_t __builtin_bswap64(uint64_t x)

cdef enum:
    ENTRY_NBYTES = 16
    MAX_INDEX_NBYTES = 1 << 30             # 2**26 chunks: more in one object are refused before memory is allocated


# Maximum levels of shards in shards of a program.
MAX_LEVELS = MAX_SHARD_LEVELS


cdef void note_outer(Status *status, int64_t position) noexcept nogil:
    cdef int i
    if status.inner == INNER_NONE:
        status.inner = position
        return
    # A status has room for all outer shards, see `MAX_SHARD_LEVELS`.
    status.n_outer = min(status.n_outer + 1, <int>MAX_SHARD_LEVELS - 1)
    i = status.n_outer - 1
    while i > 0:
        status.outer[i] = status.outer[i - 1]
        i -= 1
    status.outer[0] = position


cdef int _compare(const void *a, const void *b) noexcept nogil:
    cdef uint64_t x = (<const Extent *>a).offset
    cdef uint64_t y = (<const Extent *>b).offset
    if x == y:
        # Chunks that share their bytes: a fixed order, so that the same damaged chunk is reported each time.
        x, y = <uint64_t>(<const Extent *>a).i, <uint64_t>(<const Extent *>b).i
    return (x > y) - (x < y)


cdef void sort_extents(Extent *extents, int64_t n) noexcept nogil:
    cdef int64_t i
    # Most writers store the chunks in the order of the index.
    for i in range(1, n):
        if extents[i].offset < extents[i - 1].offset:
            qsort(extents, <size_t>n, sizeof(Extent), _compare)
            return


cdef void _turn(uint64_t *words, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        words[i] = __builtin_bswap64(words[i])


@cython.final
cdef class ShardProgram:
    """A codec chain with `sharding_indexed` as its array-to-bytes codec, lowered to C.

    Parameters
    ----------
    shard_shape, chunk_shape : tuple of int
        Elements of a shard, and of its chunks; of the longest, if shards differ in shape.
    program : Program or ShardProgram
        Program that encodes a chunk.
    index_steps : Program or sequence of tuple
        Codecs of the index; their output size must not depend on the content, as for ``("crc32c",)``.
    turned : bool
        The words of the index are stored in the other byte order than the machine's.
    at_start : bool
        The index is first in a shard, not last.
    max_nbytes : int, optional
        Maximum size of a shard as a chunk of another shard; of the largest, if shards differ in shape.
    chunk_room : int, optional
        Share of each chunk in these bytes, without its entry in the index.
    order : tuple of int, optional
        Permutation of the dimensions in which the index counts chunks, the slowest first; C order by default. A shard
        behind `transpose` has another order than the array.

    Raises
    ------
    ValueError
        The shard shape is no multiple of the chunk shape, the shard has more chunks than an index may list, or shards
        are nested too deep.
    """

    def __cinit__(self):
        self.order = NULL

    def __init__(self, shard_shape, chunk_shape, program, index_steps=(), *, bint turned=False,
                 bint at_start=False, max_nbytes=INT64_MAX, chunk_room=0, order=None):
        cdef int i
        if len(shard_shape) != len(chunk_shape) or any(n % c for n, c in zip(shard_shape, chunk_shape, strict=True)):
            raise ValueError(f"shards of shape {shard_shape} are not cut into chunks of shape {chunk_shape}")
        n_chunks = prod(n // c for n, c in zip(shard_shape, chunk_shape, strict=True))
        if n_chunks * ENTRY_NBYTES > MAX_INDEX_NBYTES:
            raise ValueError(f"shards of {n_chunks} chunks, at most {MAX_INDEX_NBYTES // ENTRY_NBYTES} are supported")
        self.ndim = len(shard_shape)
        if order is not None:
            if self.ndim > MAX_NDIM or sorted(order) != list(range(self.ndim)):
                raise ValueError(f"{order} is no permutation of {self.ndim} dimensions")
            for i in range(self.ndim):
                self._order[i] = order[i]
            self.order = self._order
        self.shard_shape = tuple(shard_shape)
        self.chunk_shape = tuple(chunk_shape)
        self.n_levels = 1
        if isinstance(program, ShardProgram):
            self.inner = program
            self.program = self.inner.program
            self.n_levels += self.inner.n_levels
            if self.inner.shard_shape != self.chunk_shape:
                raise ValueError(f"chunks of shape {chunk_shape} are no shards of shape {self.inner.shard_shape}")
        else:
            self.program = <Program?>program
        if self.n_levels > MAX_SHARD_LEVELS:
            raise ValueError(f"shards lie {self.n_levels} deep in each other, at most {MAX_SHARD_LEVELS} are supported")
        self.max_nbytes = min(max_nbytes, INT64_MAX)
        self.chunk_room = min(chunk_room, INT64_MAX)
        self.index_program = index_steps if isinstance(index_steps, Program) else Program(index_steps)
        self.n_chunks = n_chunks
        self.index_nbytes = self.index_program.max_encoded(n_chunks * ENTRY_NBYTES)
        self.at_start = at_start
        self.turned = turned

    @property
    def is_native(self):
        """Whether no step of it, of its chunks or of its index runs in Python."""
        return self.program.is_native and self.index_program.is_native and (
            self.inner is None or self.inner.is_native)

    @property
    def decodes_natively(self):
        """Whether no step decodes in Python."""
        return self.program.decodes_natively and self.index_program.decodes_natively and (
            self.inner is None or self.inner.decodes_natively)

    cdef int64_t max_of(self, int64_t n_chunks) noexcept nogil:
        if n_chunks == self.n_chunks or self.max_nbytes == INT64_MAX:
            return self.max_nbytes
        return (self.max_nbytes - (self.n_chunks - n_chunks) * self.chunk_room
                - (self.index_nbytes - self.index_program.max_encoded(n_chunks * ENTRY_NBYTES)))

    cdef void form_of(self, int64_t n_chunks, int64_t base, IndexForm *form) noexcept nogil:
        form.n_chunks = n_chunks
        form.base = base
        form.n_bytes = self.index_program.max_encoded(n_chunks * ENTRY_NBYTES)
        form.number = form.n_bytes * 4 + self.at_start * 2 + self.turned

    cdef int read_index(self, const IndexForm *form, const Content *content, int64_t size, uint64_t *words,
                        Buffer *scratch, Workspace *work, Status *status) noexcept nogil:
        cdef int64_t n_bytes = form.n_bytes
        cdef int64_t offset = form.base + (0 if self.at_start else size - n_bytes)
        cdef const uint8_t *stored
        # From here on, any failure belongs to the index as a whole.
        status.inner = INNER_INDEX
        if size < n_bytes:
            return fail(status, SHARD_SHORT, form.base, n_bytes, size)
        stored = content_at(content, offset, n_bytes, scratch, status)
        if stored != NULL and self.index_program.decode(stored, n_bytes, <uint8_t *>words,
                                                        form.n_chunks * ENTRY_NBYTES, 1, work, status) != OK:
            status.offset += offset
        status.step = -1
        if status.code != OK:
            return status.code
        status.inner = INNER_NONE
        if self.turned:
            _turn(words, 2 * form.n_chunks)
        return OK

    cdef int64_t encode_index(self, const IndexForm *form, uint64_t *words, Buffer *buffer, const uint8_t **encoded,
                              Workspace *work, Status *status) noexcept nogil:
        if self.turned:
            _turn(words, 2 * form.n_chunks)
        return self.index_program.encode(<const uint8_t *>words, form.n_chunks * ENTRY_NBYTES, buffer, encoded, 1,
                                         work, status)

    cdef int extent_of(self, const IndexForm *form, const uint64_t *words, int64_t position, int64_t size,
                       int64_t limit, Extent *extent, Status *status) noexcept nogil:
        cdef uint64_t offset = words[2 * position]
        cdef uint64_t n_bytes = words[2 * position + 1]
        cdef uint64_t low = form.n_bytes if self.at_start else 0
        cdef uint64_t high = size if self.at_start else size - form.n_bytes
        cdef int64_t entry = (0 if self.at_start else size - form.n_bytes) + position * ENTRY_NBYTES
        cdef int64_t found
        cdef int code = OK
        extent.offset = offset
        extent.n_bytes = <int64_t>n_bytes
        if offset == UINT64_MAX and n_bytes == UINT64_MAX:
            extent.n_bytes = 0
            return OK
        if offset == UINT64_MAX or n_bytes == UINT64_MAX:
            found = _capped(offset if n_bytes == UINT64_MAX else n_bytes)
            code = fail(status, SHARD_MARK, form.base + entry, -1, found)
        elif n_bytes > high or offset > high - n_bytes:
            # Their sum may exceed 64 bits.
            found = INT64_MAX if offset > UINT64_MAX - n_bytes else _capped(offset + n_bytes)
            code = fail(status, SHARD_END, form.base + entry, <int64_t>high, found)
        elif n_bytes and offset < low:
            code = fail(status, SHARD_START, form.base + entry, <int64_t>low, <int64_t>offset)
        elif n_bytes > <uint64_t>limit:
            code = fail(status, CHUNK_LONG, form.base + <int64_t>offset, limit, <int64_t>n_bytes)
        if code != OK:
            status.inner = position
            return code
        # Both are within a file or within memory, so the sum does not overflow.
        extent.offset += form.base
        return OK

    cdef tuple index_part(self, int64_t n_chunks):
        cdef IndexForm form
        self.form_of(n_chunks, 0, &form)
        return (0 if self.at_start else None), form.n_bytes


cdef int64_t _capped(uint64_t number) noexcept nogil:
    return <int64_t>min(number, <uint64_t>INT64_MAX)


@cython.final
cdef class IndexCache(Cache):
    """LRU cache of shard indices, each with the identity of its shard; see `Cache`.

    An index is the offset and the size of each chunk, in words.
    """

    def __cinit__(self, int64_t capacity, *args, **kwargs):
        self.max_nbytes = capacity // 2

    def info(self):
        """Return the use of the cache: a dict of hits, misses, indices, nbytes and capacity."""
        return self._info("indices")


# All arrays of the process share it: the indices belong to files, not to handles.
INDICES = IndexCache(64 << 20)


# levels

@cython.final
cdef class ShardLevels:
    """The shard levels of an array, for one selection. Valid only as long as `tasks`.

    Parameters
    ----------
    tasks : Tasks
        Tasks of the selection, in an array whose objects are shards; its chunks are the innermost.
    """

    def __init__(self, Tasks tasks not None):
        cdef const Opened *opened = tasks.opened
        cdef int i
        self.n = opened.n_levels
        for i in range(self.n):
            self.programs[i] = <void *>(<ShardProgram?><object>opened.levels[i])
        self._innermost = &tasks.axes[0]
        self._held = Bytes(bytearray(self.n * MAX_NDIM * sizeof(Axis)))
        self._outer = <Axis *>self._held.data

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

    cdef int64_t limit_of(self, int level) noexcept nogil:
        # Programs never have more levels. The second comparison tells the compiler.
        if level >= self.n - 1 or level >= MAX_SHARD_LEVELS - 1:
            return self._chunk_limit
        # Shards in shards all have one shape.
        return (<ShardProgram>self.programs[level + 1]).max_nbytes

    cdef tuple coords_of(self, const Status *status, object shard_shape):
        cdef ShardProgram level = <ShardProgram>self.programs[0]
        cdef int i
        coords = []
        for i in range(status.n_outer):
            coords.append(_coords_of(level, status.outer[i], shard_shape))
            shard_shape = level.chunk_shape
            level = level.inner
        if status.inner >= 0:
            coords.append(_coords_of(level, status.inner, shard_shape))
        return tuple(coords)


cdef tuple _coords_of(ShardProgram level, int64_t position, shard_shape):
    """Return the coordinates of the chunk at a position, in the order of the index, of a shard of that shape."""
    cdef int k
    order = range(level.ndim) if level.order == NULL else [level.order[k] for k in range(level.ndim)]
    coords = []
    for d in reversed(order):
        position, i = divmod(position, shard_shape[d] // level.chunk_shape[d])
        coords.append(i)
    return tuple(reversed(coords))
