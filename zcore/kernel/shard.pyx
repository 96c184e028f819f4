# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""The index of a shard: read, checked, written, and kept between reads.

An index is a table of numbers out of a file, so none is used before it was compared with the file's size: a chunk
lies between the index and the end of the shard, or behind the beginning and before the index. Chunks may overlap each
other, as programs do that store equal chunks once. An entry is checked when it is used; the table as a whole only by
its checksum, where its codecs have one.

Compiled because one entry of it stands between a read and each chunk.
"""
import os
from math import prod

cimport cython
from libc.stdint cimport INT64_MAX, UINT64_MAX
from libc.stdlib cimport free, malloc, qsort

from zcore.kernel.atomics cimport zc_add, zc_back_off, zc_store, zc_swap_if, zc_wall_ns
from zcore.kernel.fileio cimport buffer_reserve, content_at, same_identity
from zcore.kernel.status cimport (
    CHUNK_LONG, INNER_INDEX, INNER_NONE, MAX_SHARD_LEVELS, OK, SHARD_END, SHARD_MARK, SHARD_SHORT, SHARD_START,
    Status, fail,
)
from zcore.kernel.tasks cimport coords_of

cdef extern from * nogil:
    uint64_t __builtin_bswap64(uint64_t x)

cdef enum:
    WORD_NBYTES = 8
    ENTRY_NBYTES = 16
    MAX_INDEX_NBYTES = 1 << 30             # 2**26 chunks: more in one object are refused before memory is asked for
    OVERHEAD_NBYTES = 64                   # of an index in memory, beside its structure and words


# Of shards in shards, which a program can have.
MAX_LEVELS = MAX_SHARD_LEVELS


cdef ShardIndex *index_new(int64_t n_words) noexcept nogil:
    cdef ShardIndex *index = <ShardIndex *>malloc(sizeof(ShardIndex) + n_words * WORD_NBYTES)
    if index != NULL:
        index.n_words = n_words
        index.n_holders = 1
        index.words = <uint64_t *>(index + 1)
    return index


cdef void index_release(ShardIndex *index) noexcept nogil:
    if zc_add(&index.n_holders, -1) == 1:
        free(index)


cdef void note_outer(Status *status, int64_t position) noexcept nogil:
    cdef int i
    if status.inner == INNER_NONE:
        status.inner = position
        return
    # Further out than a status has room for there are no shards, see `MAX_SHARD_LEVELS`.
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
        # Chunks that share their bytes: which one is found damaged first is no matter of chance.
        x, y = <uint64_t>(<const Extent *>a).i, <uint64_t>(<const Extent *>b).i
    return (x > y) - (x < y)


cdef void sort_extents(Extent *extents, int64_t n) noexcept nogil:
    cdef int64_t i
    # Most writers leave the chunks in the order of the index.
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
    """A chain whose codec from array to bytes is `sharding_indexed`, lowered to C.

    Parameters
    ----------
    shard_shape, chunk_shape : tuple of int
        Elements of a shard, and of the chunks in it; of the longest, where shards differ in shape.
    program : Program or ShardProgram
        How a chunk becomes bytes.
    index_steps : sequence of tuple
        Of the index: steps of a `Program` whose length does not depend on what it encodes, such as ``("crc32c",)``.
    turned : bool
        The words of the index are stored in the other byte order than the machine's.
    at_start : bool
        The index is the first thing in a shard, not the last.
    max_nbytes : int, optional
        The most bytes that such a shard may have as a chunk of another one, or before the codecs behind it; of the
        largest, where shards differ in shape.
    chunk_room : int, optional
        How many of these bytes are there for each chunk, beside its entry in the index.
    order : tuple of int, optional
        Permutation of the dimensions in which the index counts chunks, the slowest first; C order when left out.
        A shard behind `transpose` has another one than the array.
    after : Program, optional
        The codecs behind the shard.

    Raises
    ------
    ValueError
        The shard is not cut into chunks exactly, has more of them than an index may list, or shards lie too deep in
        each other.
    """

    def __cinit__(self):
        self.order = NULL

    def __init__(self, shard_shape, chunk_shape, program, index_steps=(), *, bint turned=False,
                 bint at_start=False, max_nbytes=INT64_MAX, chunk_room=0, order=None, Program after=None):
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
            self.first_step = self.inner.first_step + self.inner.after.n_steps
            if self.inner.shard_shape != self.chunk_shape:
                raise ValueError(f"chunks of shape {chunk_shape} are no shards of shape {self.inner.shard_shape}")
        else:
            self.program = <Program?>program
            self.first_step = self.program.n_steps
        if self.n_levels > MAX_SHARD_LEVELS:
            raise ValueError(f"shards lie {self.n_levels} deep in each other, at most {MAX_SHARD_LEVELS} are supported")
        self.after = Program(()) if after is None else after
        self.is_wrapped = self.after.n_steps > 0
        self.max_nbytes = min(max_nbytes, INT64_MAX)
        self.chunk_room = min(chunk_room, INT64_MAX)
        self.index_program = Program(index_steps)
        self.n_chunks = n_chunks
        self.index_nbytes = self.index_program.max_encoded(n_chunks * ENTRY_NBYTES)
        self.at_start = at_start
        self.turned = turned

    cdef int64_t max_of(self, int64_t n_chunks) noexcept nogil:
        if n_chunks == self.n_chunks or self.max_nbytes == INT64_MAX:
            return self.max_nbytes
        return (self.max_nbytes - (self.n_chunks - n_chunks) * self.chunk_room
                - (self.index_nbytes - self.index_program.max_encoded(n_chunks * ENTRY_NBYTES)))

    cdef int64_t max_stored(self, int64_t n_chunks) noexcept nogil:
        cdef int64_t n_bytes = self.max_of(n_chunks)
        return self.after.max_encoded(n_bytes) if self.is_wrapped else n_bytes

    cdef int unwrap(self, int64_t n_chunks, const uint8_t *stored, int64_t n_bytes, Content *content, Buffer *buffer,
                    Workspace *work, Status *status) noexcept nogil:
        cdef int64_t limit
        content.fd = -1
        content.data = stored
        content.size = n_bytes
        if not self.is_wrapped:
            return OK
        limit = self.max_of(n_chunks)
        if buffer_reserve(buffer, limit, status) != OK:
            return status.code
        content.data = buffer.data
        content.size = self.after.decode_within(stored, n_bytes, buffer.data, limit, False, 1, work, status)
        if content.size >= 0:
            return OK
        if status.step >= 0:
            status.step += self.first_step
        return status.code

    cdef int64_t wrap(self, const uint8_t *shard, int64_t n_bytes, Buffer *buffer, const uint8_t **stored,
                      Workspace *work, Status *status) noexcept nogil:
        cdef int64_t n = self.after.encode(shard, n_bytes, buffer, stored, 1, work, status)
        if n < 0 and status.step >= 0:
            status.step += self.first_step
        return n

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
        # Whatever is wrong now is wrong with the index as a whole.
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
            # Their sum may be no 64-bit number.
            found = INT64_MAX if offset > UINT64_MAX - n_bytes else _capped(offset + n_bytes)
            code = fail(status, SHARD_END, form.base + entry, <int64_t>high, found)
        elif n_bytes and offset < low:
            code = fail(status, SHARD_START, form.base + entry, <int64_t>low, <int64_t>offset)
        elif n_bytes > <uint64_t>limit:
            code = fail(status, CHUNK_LONG, form.base + <int64_t>offset, limit, <int64_t>n_bytes)
        if code != OK:
            status.inner = position
            return code
        # Both lie within a file, or within memory.
        extent.offset += form.base
        return OK

    cdef tuple position_coords(self, int64_t position, object shard_shape):
        cdef int i
        if self.order == NULL:
            return coords_of(position, shard_shape, self.chunk_shape)
        order = [self._order[i] for i in range(self.ndim)]
        return coords_of(position, [shard_shape[d] for d in order], [self.chunk_shape[d] for d in order])


cdef int64_t _capped(uint64_t number) noexcept nogil:
    return <int64_t>min(number, <uint64_t>INT64_MAX)


@cython.final
cdef class IndexCache:
    """Indices of shards that have been read, each with the identity of its shard; those used last are kept.

    A shard that is replaced has another identity, so an index is never used for another shard than its own. Safe among
    threads and across a fork.

    Parameters
    ----------
    capacity : int
        Bytes that all indices may take.
    trusted_age_ns : int
        Age from which on the identity of a shard is its own: file systems count time in steps, and a younger shard
        may be followed by another one of the same inode, size and times.
    """

    def __cinit__(self, int64_t capacity, int64_t trusted_age_ns=2_000_000_000):
        self.capacity = capacity
        self.trusted_age_ns = trusted_age_ns

    def __dealloc__(self):
        while self.oldest != NULL:
            self._drop(self.oldest)

    cdef void _lock(self) noexcept nogil:
        cdef int64_t n = 0
        while not zc_swap_if(&self.guard, 0, 1):
            zc_back_off(n)
            n += 1

    cdef ShardIndex *find(self, const Identity *identity, const IndexForm *form, int64_t size) noexcept nogil:
        cdef ShardIndex *index
        self._lock()
        index = self._look_up(identity, form.number, form.base, size)
        if index == NULL:
            self.n_misses += 1
        else:
            self.n_hits += 1
            zc_add(&index.n_holders, 1)
            if index != self.newest:
                self._unlink(index)
                self._touch(index)
        zc_store(&self.guard, 0)
        return index

    cdef ShardIndex *_look_up(self, const Identity *identity, int64_t form, int64_t base,
                              int64_t size) noexcept nogil:
        cdef ShardIndex *index = self.buckets[_bucket(identity, base)]
        while index != NULL and not (index.form == form and index.base == base and index.size == size
                                     and same_identity(&index.identity, identity)):
            index = index.next
        return index

    cdef void keep(self, ShardIndex *index) noexcept nogil:
        cdef const Identity *identity = &index.identity
        cdef ShardIndex **bucket = &self.buckets[_bucket(identity, index.base)]
        cdef int64_t n_bytes = _kept_nbytes(index)
        cdef int64_t age = self.trusted_age_ns
        if n_bytes > self.capacity // 2 or zc_wall_ns() - max(identity.mtime_ns, identity.ctime_ns) < age:
            return
        self._lock()
        # Another thread may have read the same shard at the same time.
        if self._look_up(identity, index.form, index.base, index.size) == NULL:
            while self.n_bytes + n_bytes > self.capacity:
                self._drop(self.oldest)
            zc_add(&index.n_holders, 1)
            index.next = bucket[0]
            bucket[0] = index
            self._touch(index)
            self.n_bytes += n_bytes
            self.n_indices += 1
        zc_store(&self.guard, 0)

    cdef void _touch(self, ShardIndex *index) noexcept nogil:
        """Make an index that is in no row the newest one."""
        index.newer = NULL
        index.older = self.newest
        if self.newest != NULL:
            self.newest.newer = index
        else:
            self.oldest = index
        self.newest = index

    cdef void _unlink(self, ShardIndex *index) noexcept nogil:
        """Take an index out of the row."""
        if index.newer != NULL:
            index.newer.older = index.older
        else:
            self.newest = index.older
        if index.older != NULL:
            index.older.newer = index.newer
        else:
            self.oldest = index.newer

    cdef void _drop(self, ShardIndex *index) noexcept nogil:
        cdef ShardIndex **place = &self.buckets[_bucket(&index.identity, index.base)]
        while place[0] != index:
            place = &place[0].next
        place[0] = index.next
        self._unlink(index)
        self.n_bytes -= _kept_nbytes(index)
        self.n_indices -= 1
        index_release(index)

    def clear(self):
        """Forget all indices."""
        with nogil:
            self._lock()
            while self.oldest != NULL:
                self._drop(self.oldest)
            zc_store(&self.guard, 0)

    def info(self):
        """Return what is kept and how often it helped: a dict of hits, misses, indices, nbytes and capacity."""
        cdef int64_t n_hits, n_misses, n_indices, n_bytes
        with nogil:
            self._lock()
            n_hits, n_misses, n_indices, n_bytes = self.n_hits, self.n_misses, self.n_indices, self.n_bytes
            zc_store(&self.guard, 0)
        return {"hits": n_hits, "misses": n_misses, "indices": n_indices, "nbytes": n_bytes,
                "capacity": self.capacity}

    def hold(self):
        """Keep all threads out until `let_go`: no index is half-way in or out when a process forks."""
        with nogil:
            self._lock()

    def let_go(self):
        """Undo `hold`."""
        zc_store(&self.guard, 0)


cdef int64_t _kept_nbytes(const ShardIndex *index) noexcept nogil:
    return index.n_words * WORD_NBYTES + <int64_t>sizeof(ShardIndex) + OVERHEAD_NBYTES


cdef uint64_t _bucket(const Identity *identity, int64_t base) noexcept nogil:
    cdef uint64_t hash = (identity.inode + <uint64_t>base * 0xC2B2AE3D27D4EB4FULL) * 0x9E3779B97F4A7C15ULL
    hash += <uint64_t>identity.ctime_ns
    hash ^= hash >> 29
    return (hash * 0xBF58476D1CE4E5B9ULL >> 32) % N_BUCKETS


# All arrays of the process share it: what is kept belongs to files, not to handles.
INDICES = IndexCache(64 << 20)
os.register_at_fork(before=INDICES.hold, after_in_parent=INDICES.let_go, after_in_child=INDICES.let_go)
