"""Shards: stored objects of many chunks, their index, and the cache of indices.

Zarr v3, codec "sharding_indexed", "Binary shard format"::

    chunk chunk chunk ... index        the index may also be first
    index = (offset, nbytes) of each chunk of the shard, in C order; 64-bit words, then the output of its own codecs

Offsets count from the first byte of the shard, and an empty chunk has 2**64 - 1 twice.
"""
from libc.stdint cimport int64_t, uint64_t, uint8_t

from zcore.kernel.plan.cache cimport Cache
from zcore.kernel.codec.program cimport Program
from zcore.kernel.codec.table cimport Workspace
from zcore.kernel.io.files cimport Buffer, Content
from zcore.kernel.memory cimport Bytes
from zcore.kernel.select.grid cimport Axis
from zcore.kernel.select.tasks cimport Tasks
from zcore.kernel.status cimport MAX_SHARD_LEVELS, Status
from zcore.kernel.strided.copy cimport MAX_NDIM

cdef struct Extent:            # encoded bytes of a chunk in its shard
    uint64_t offset            # NO_CHUNK: not stored, all its elements are the fill value
    int64_t n_bytes
    int64_t i                  # index of the chunk

cdef struct IndexForm:         # how an index is stored; if shards differ in shape, each has its own
    int64_t n_chunks           # chunks of the shard
    int64_t n_bytes
    int64_t number             # distinguishes indices of the same shard that must not be mixed up
    int64_t base               # where the shard begins in its content: 0, except for a shard in a shard


# Notes that the failure lies in the chunk at `position` of an outer shard.
cdef void note_outer(Status *status, int64_t position) noexcept nogil
# Sorts by offset; chunks without bytes come last.
cdef void sort_extents(Extent *extents, int64_t n) noexcept nogil


cdef class ShardProgram:
    cdef readonly Program program          # program of a chunk; if chunks are shards, of the innermost chunks
    cdef readonly ShardProgram inner       # of a chunk that is a shard, else None
    cdef readonly int n_levels             # levels of shards: 1 plus the levels of the chunks
    cdef readonly tuple shard_shape
    cdef readonly tuple chunk_shape
    cdef readonly int64_t n_chunks         # of a shard; of the largest, if shards differ
    cdef readonly int64_t index_nbytes     # as stored
    cdef readonly int64_t max_nbytes       # maximum size of a shard not read in parts from its own file; of the largest
    cdef readonly int64_t chunk_room       # share of a chunk in it, without its entry in the index
    cdef readonly bint at_start
    cdef int ndim
    cdef const int *order      # dimensions in the order of the index, the slowest first; NULL: C order
    cdef int _order[MAX_NDIM]
    cdef Program index_program
    cdef bint turned           # the words are stored in the other byte order
    # Maximum size of a shard of `n_chunks` chunks, if it is not read in parts from its own file.
    cdef int64_t max_of(self, int64_t n_chunks) noexcept nogil
    # Computes the form of the index of a shard of `n_chunks` chunks that begins at `base` of its content.
    cdef void form_of(self, int64_t n_chunks, int64_t base, IndexForm *form) noexcept nogil
    # Reads the index of a shard of `size` bytes into 2 * n_chunks words.
    cdef int read_index(self, const IndexForm *form, const Content *content, int64_t size, uint64_t *words,
                        Buffer *scratch, Workspace *work, Status *status) noexcept nogil
    # Encodes an index and may swap its words in place: returns its size, or -1.
    cdef int64_t encode_index(self, const IndexForm *form, uint64_t *words, Buffer *buffer, const uint8_t **encoded,
                              Workspace *work, Status *status) noexcept nogil
    # Takes the extent of a chunk from the index, and checks it against the shard's size and the longest encoding.
    cdef int extent_of(self, const IndexForm *form, const uint64_t *words, int64_t position, int64_t size,
                       int64_t limit, Extent *extent, Status *status) noexcept nogil
    # Byte range of the index of a shard of `n_chunks` chunks, in the form of stores.
    cdef tuple index_part(self, int64_t n_chunks)


cdef class IndexCache(Cache):
    pass


cdef class ShardLevels:
    cdef int n
    # The ShardProgram of each level, the outermost first; the open array keeps them.
    cdef void *programs[MAX_SHARD_LEVELS]
    cdef const Axis *_innermost
    cdef Axis *_outer          # of all levels except the innermost
    cdef Bytes _held           # their memory
    cdef int64_t _chunk_limit

    # Takes over the selection of the tasks.
    cdef void follow(self, Tasks tasks) noexcept nogil
    # The axes of the chunks of the shards of a level.
    cdef const Axis *axes_of(self, int level) noexcept nogil
    # Their order in the index, see `ShardProgram`.
    cdef const int *order_of(self, int level) noexcept nogil
    # Maximum size of one of these chunks.
    cdef int64_t limit_of(self, int level) noexcept nogil
    # Coordinates of the failed chunk in a shard of that shape, and in the shards inside it.
    cdef tuple coords_of(self, const Status *status, object shard_shape)
