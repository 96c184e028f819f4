"""Shards: stored objects of many chunks, their index, and the indices that are kept between reads.

Zarr v3, codec "sharding_indexed", "Binary shard format"::

    chunk chunk chunk ... index        the index may stand first instead
    index = (offset, nbytes) of each chunk of the shard, in C order; 64-bit words, then what its own codecs add

Offsets count from the first byte of the shard, and an empty chunk has 2**64 - 1 twice.
"""
from libc.stdint cimport int64_t, uint64_t, uint8_t

from zcore.kernel.strided.copy cimport MAX_NDIM
from zcore.kernel.io.files cimport Buffer, Content, Identity
from zcore.kernel.cache.lru cimport Cache, Kept
from zcore.kernel.codec.program cimport Program
from zcore.kernel.codec.table cimport Workspace
from zcore.kernel.status cimport Status


cdef struct Extent:            # where the encoded bytes of a chunk lie in its shard
    uint64_t offset            # NO_CHUNK: nowhere, all its elements are the fill value
    int64_t n_bytes
    int64_t i                  # which chunk

cdef struct IndexForm:         # how an index is stored; where shards differ in shape, each has its own
    int64_t n_chunks           # of the shard
    int64_t n_bytes
    int64_t number             # tells indices of the same shard apart that are not to be mixed up
    int64_t base               # where the shard begins in its content: 0, but for a shard in a shard

ctypedef Kept ShardIndex       # an index that was read: offset and size of each chunk, in words


# NULL when there is no memory; held once.
cdef ShardIndex *index_new(int64_t n_words) noexcept nogil
cdef void index_release(ShardIndex *index) noexcept nogil
# Notes that what has failed lies in the chunk at `position` of a shard around it.
cdef void note_outer(Status *status, int64_t position) noexcept nogil
# By offset; chunks without bytes come last.
cdef void sort_extents(Extent *extents, int64_t n) noexcept nogil


cdef class ShardProgram:
    cdef readonly Program program          # of a chunk, of the innermost where they are shards
    cdef readonly ShardProgram inner       # of a chunk that is a shard, else None
    cdef readonly int n_levels             # of shards: 1, and one more for each in which they lie
    cdef readonly Program after            # codecs behind the shard, mostly none
    cdef readonly tuple shard_shape
    cdef readonly tuple chunk_shape
    cdef readonly int64_t n_chunks         # of a shard, of the largest where they differ
    cdef readonly int64_t index_nbytes     # as stored
    cdef readonly int64_t max_nbytes       # of a shard that is not read in parts from a file of its own, the largest
    cdef readonly int64_t chunk_room       # what a chunk adds to that, beside its entry in the index
    cdef readonly bint at_start
    cdef bint is_wrapped       # there are codecs behind it
    cdef int first_step        # number of the first of these in the whole chain, see `Status.step`
    cdef int ndim
    cdef const int *order      # dimensions as the index counts them, the slowest first; NULL: C order
    cdef int _order[MAX_NDIM]
    cdef Program index_program
    cdef bint turned           # the words are stored in the other byte order than the machine's
    # The most bytes of a shard of so many chunks, where it is not read in parts from a file of its own.
    cdef int64_t max_of(self, int64_t n_chunks) noexcept nogil
    # The same with what is done to it.
    cdef int64_t max_stored(self, int64_t n_chunks) noexcept nogil
    # Undoes the codecs behind a shard of so many chunks: its bytes at `content`, in `buffer` or where they are. OK or
    # a code.
    cdef int unwrap(self, int64_t n_chunks, const uint8_t *stored, int64_t n_bytes, Content *content, Buffer *buffer,
                    Workspace *work, Status *status) noexcept nogil
    # Applies them to the bytes of a shard: see `Program.encode`.
    cdef int64_t wrap(self, const uint8_t *shard, int64_t n_bytes, Buffer *buffer, const uint8_t **stored,
                      Workspace *work, Status *status) noexcept nogil
    # Finds the form of the index of a shard of so many chunks, which begins there in its content.
    cdef void form_of(self, int64_t n_chunks, int64_t base, IndexForm *form) noexcept nogil
    # Reads the index of a shard of `size` bytes into 2 * n_chunks words.
    cdef int read_index(self, const IndexForm *form, const Content *content, int64_t size, uint64_t *words,
                        Buffer *scratch, Workspace *work, Status *status) noexcept nogil
    # Encodes an index, whose words may be turned on the way: its size, or -1.
    cdef int64_t encode_index(self, const IndexForm *form, uint64_t *words, Buffer *buffer, const uint8_t **encoded,
                              Workspace *work, Status *status) noexcept nogil
    # Takes the extent of a chunk in the content from the index, checked against the shard's size and the longest
    # encoding.
    cdef int extent_of(self, const IndexForm *form, const uint64_t *words, int64_t position, int64_t size,
                       int64_t limit, Extent *extent, Status *status) noexcept nogil
    # The byte range of the index of a shard of so many chunks, as stores take it.
    cdef tuple index_part(self, int64_t n_chunks)
    # The coordinates, as the index counts them, of the chunk at that position of a shard of that shape.
    cdef tuple position_coords(self, int64_t position, object shard_shape)


cdef class IndexCache(Cache):
    # The index kept for a shard of so many bytes that begins there in its file, held once more, or NULL.
    cdef ShardIndex *find(self, const Identity *identity, int64_t base, int64_t size, int64_t form) noexcept nogil
    # Keeps an index unless its shard is so young that another one could have the same identity.
    cdef void keep(self, ShardIndex *index) noexcept nogil
