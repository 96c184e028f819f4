"""The tasks of one selection: which objects they are, which of their elements, and where these lie.

Tasks are numbered in C order of the objects that the selection touches, so that spans and key are computed from the
number of a task.
"""
from libc.stdint cimport int64_t

from zcore.kernel.blosc_blocks cimport Runs
from zcore.kernel.copy cimport MAX_NDIM, Copy
from zcore.kernel.edges cimport Edges
from zcore.kernel.grid cimport Axis, Span
from zcore.kernel.moves cimport Sides
from zcore.kernel.points cimport Points


cdef enum:
    MIN_RUN_NBYTES = 64        # shorter runs move faster by a blocked copy of the whole chunk
    MAX_KEY = 4400             # bytes of a key with its directory, and the final zero

cdef struct Layout:            # how the elements of a chunk lie in its decoded bytes
    int64_t n_items
    int64_t n_bytes
    int64_t lengths[MAX_NDIM]
    int64_t strides[MAX_NDIM]
    bint in_place              # those of a whole chunk lie in the caller's array in the same way


cdef class Tasks:
    cdef readonly int ndim
    cdef readonly int64_t n_tasks
    cdef readonly int64_t task_nbytes      # the most that a task decodes or encodes
    cdef int64_t n_chunks      # that are touched
    cdef Axis axes[MAX_NDIM]   # of the chunks
    cdef Axis *objects         # of the stored objects: the same axes, or those of shards of many chunks
    cdef Points points         # None: the selection is a box
    cdef tuple edges           # keeps what `axes` and `objects` point to
    # a chunk's decoded bytes
    cdef bytes fill            # one element, as chunks store it
    cdef const char *fill_value
    cdef bytes shown_fill      # the same, as `array` holds it
    cdef const char *shown_fill_value
    cdef int64_t itemsize
    cdef int64_t item_offset   # of the bytes of each element that are moved: a field of it, or all
    cdef int64_t item_nbytes
    cdef int64_t swap
    cdef Layout layout         # the only one there is, or of the longest edges
    cdef bint is_irregular     # chunks differ in shape: each is measured when its turn comes
    cdef bint is_c_order       # elements lie in a chunk in C order and the caller's byte order
    cdef int order[MAX_NDIM]   # dimensions of a chunk, the slowest first
    # the caller's elements
    cdef object array
    cdef char *data            # NULL: the plan moves no elements by itself
    cdef object items          # moves those of varying length, see `zcore.codecs.items`; else None
    cdef bint has_elements     # there are elements to move
    cdef int64_t data_strides[MAX_NDIM]
    # the keys
    cdef bytes head            # of every key, before the first index
    cdef bytes separator
    cdef bytes tail
    cdef const char *head_text
    cdef const char *separator_text
    cdef const char *tail_text
    cdef int n_head
    cdef int n_separator
    cdef int n_tail

    cdef int project(self, shape, chunk_shape, starts, steps, counts, tuple shard_shapes, tuple edges,
                     groups) except -1
    cdef int lay_out(self, bytes fill, int64_t swap, order, array, part, items) except -1
    cdef int name_keys(self, tuple template) except -1
    cdef int _set_axis(self, Axis *axis, Edges edges, int64_t length, int64_t chunk, int64_t start, int64_t step,
                       int64_t count) except? -1
    cdef int _set_array(self, object array) except -1
    cdef void measure(self, const int64_t *lengths, Layout *layout) noexcept nogil
    cdef void spans_of(self, int64_t task, Span *spans) noexcept nogil
    cdef void measure_chunk(self, const Span *spans, Layout *layout) noexcept nogil
    cdef int64_t chunks_of(self, const Axis *axes, const Span *object, int64_t *first, int64_t *count) noexcept nogil
    cdef int64_t n_chunks_of(self, const Axis *axes, const Span *object) noexcept nogil
    cdef int64_t chunk_of(self, const Axis *axes, const int *order, const Span *object, const int64_t *first,
                          const int64_t *count, int64_t i, Span *spans) noexcept nogil
    cdef int key_of(self, const Span *spans, char *key) noexcept nogil
    cdef bint is_covered(self, const Span *spans) noexcept nogil
    cdef bint is_whole(self, const Span *spans) noexcept nogil
    cdef int64_t data_offset(self, const Span *spans) noexcept nogil
    cdef void copy_spec(self, const Span *spans, const Layout *layout, bint to_chunk, Copy *spec) noexcept nogil
    # Move the selected elements from the decoded bytes of a chunk to the caller's array, or back; or give them there
    # the fill value.
    cdef void move(self, const Span *spans, const Layout *layout, bint to_chunk, char *chunk) noexcept nogil
    cdef void fill_in(self, const Span *spans) noexcept nogil
    cdef void _describe(self, const Layout *layout, Sides *sides) noexcept nogil
    # What is selected of an object or a chunk, and where that lies in the caller's array: slices or arrays, see `task`.
    cdef tuple lengths_of(self, const Span *spans)
    cdef tuple selections(self, const Axis *axes, const Span *spans)
    cdef bint runs_of(self, const Span *spans, Runs *runs) noexcept nogil
    cdef int64_t chunk_offset(self, const Span *spans, const Layout *layout) noexcept nogil


# The coordinates of a chunk in its shard, where it has that position in C order.
cdef tuple coords_of(int64_t position, object shard_shape, object chunk_shape)
