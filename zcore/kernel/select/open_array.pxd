"""The kernel's view of an open array: one C struct with a reference count, shared by threads and by all plans.

It never changes. A plan holds it and adds the values of one call: a selection, the caller's elements and a few options.
"""
from libc.stdint cimport int64_t

from zcore.kernel.io.files cimport Identity
from zcore.kernel.select.grid cimport Run
from zcore.kernel.status cimport MAX_SHARD_LEVELS
from zcore.kernel.strided.copy cimport MAX_NDIM

cdef enum:
    MAX_KEY = 4400             # bytes of a key with its directory, and the final zero
    MAX_DIGITS = 20            # of the index of a chunk

cdef struct Opened:
    int64_t n_holders          # the last release acquires what all others did before it frees this
    void *owner                # a tuple of the Python objects that the pointers below lead to
    # the chunk grid
    int ndim
    int64_t shape[MAX_NDIM]
    int64_t chunk_shape[MAX_NDIM]          # of the encoded chunks; of the longest, if they differ
    int64_t object_shape[MAX_NDIM]         # of the stored objects: chunks or shards
    const Run *runs[MAX_NDIM]  # of the stored objects; NULL: all have one length
    int64_t n_runs[MAX_NDIM]
    bint is_irregular          # chunks differ in shape, and are objects
    # elements
    int64_t itemsize
    const char *fill           # one element, in the form of the caller's memory
    const char *stored_fill    # the same, in the form of stored chunks
    int64_t swap               # unit in bytes whose order differs between the two, 0: none
    int order[MAX_NDIM]        # dimensions of a chunk, the slowest first
    bint is_c_order            # elements lie in a chunk in C order and the caller's byte order
    # codecs
    void *program              # the Program of a chunk, or NULL: tasks are only listed
    int n_levels               # of shards
    void *levels[MAX_SHARD_LEVELS]         # the ShardProgram of each level, the outermost first
    int64_t level_chunks[MAX_SHARD_LEVELS][MAX_NDIM]   # chunk shapes of these levels
    # keys, relative to the directory
    const char *head           # of every key, before the first index
    const char *separator
    const char *tail
    int n_head
    int n_separator
    int n_tail
    # files
    const char *directory      # of the objects; NULL: the kernel opens no files for them
    const char *document       # name of the metadata document; NULL: none
    bint has_identity
    Identity identity          # of the document that the array was opened with
    const char *content        # of the document, if its identity alone does not distinguish it
    int64_t n_content          # -1: not compared
    # how objects are read and written
    bint lenient               # a border chunk may be stored without the elements outside the array
    bint missing_raises        # an absent object is an error if its elements are needed
    bint keep_filled           # objects that hold only the fill value are stored
    bint fsync                 # sync objects to disk before a write returns
    int64_t disk               # what the directory is on, see `Staging`; -1: not known yet. No order: a number


# Add and drop a reference. The last one frees the struct, and takes the GIL for the owner.
cdef const Opened *opened_hold(const Opened *opened) noexcept nogil
cdef void opened_release(const Opened *opened) noexcept nogil


cdef class OpenArray:
    cdef Opened *opened
    cdef readonly tuple shape
    cdef readonly tuple chunk_shape
    cdef readonly tuple shard_shapes       # shapes of the objects and of the shards in them; empty without shards
    cdef readonly tuple edges
    cdef readonly bytes directory

    # Returns the same array with keys that are whole paths; ValueError, if these would be too long.
    cdef OpenArray rooted(self)
    # Returns the same elements without codecs, with another chunk shape.
    cdef OpenArray cut(self, tuple chunk_shape)


# Opens the document: a descriptor, if it is the document that the array was opened with; else -1. While the descriptor
# is open, no other file can have the document's identity, however young it is.
cdef int document_hold(const Opened *opened) noexcept nogil
# Whether the document is at its whole path. (Another directory may have got the name of the one that a plan has open.)
cdef bint document_stands(const Opened *opened) noexcept nogil
# Whether the document is so old that no other document can have its identity.
cdef bint document_is_old(const Opened *opened) noexcept nogil
